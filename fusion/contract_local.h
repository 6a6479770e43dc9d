/* One contraction as tiles in local memory: a group computes a tile of rows x columns, its items a part of it each, and both operands come through local
   memory, a few terms at a time. Rows, columns and terms are each one number, whatever labels they are made of, so convolutions are products too. */
#ifndef FUSION_CONTRACT_LOCAL_H
#define FUSION_CONTRACT_LOCAL_H
#include "fusion/contract_private.h"
#include "fusion/fragments.h"

enum { LOCAL_VECTOR = 4, LOCAL_PATCH = 8, LOCAL_PANELS = 2 * CONTRACT_SET_MAX, LOCAL_FETCHED = 32, LOCAL_ROWS = 8 };

/* Labels taken as one number, the last running fastest. */
typedef struct local_axis {
  uint32_t count;
  uint32_t label[CONTRACT_LABELS];
  ir_expr dims[CONTRACT_LABELS], extent;
} local_axis;

/* The part of an operand that a group needs for one step: `tile` rows (or columns) by `terms`. Where elements of memory follow each other along the terms,
   it lies by rows, else by terms: fetched in whole vectors, stored as fetched, read in vectors by either way without conflicts of banks. */
typedef struct local_panel {
  uint32_t node, operand;
  bool columns, by_rows;
  uint32_t unit; /* elements that an item fetches at once: a vector, or 1 where nothing proves that vectors can be */
  bool patches;  /* of one element each, which lie beside each other along the terms and a few apart along the axis: see place_of */
  bool copied;   /* asynchronously */
  uint32_t memory, size, count; /* elements of one of its buffers; fetches of an item a step */
  uint32_t fetched[LOCAL_FETCHED];
} local_panel;

typedef struct local_shape {
  uint16_t rows, columns; /* of the tile */
  uint8_t item_rows, item_columns;
} local_shape;

typedef struct contract_local {
  contraction *t;
  local_shape shape;
  uint32_t step, items; /* terms a step; items of a group */
  uint32_t slices;      /* of each step's terms, summed by items of their own and added up before results are stored */
  uint32_t buffers;     /* of each panel: the step at hand and those that are under way */
  bool copies;          /* some panel is copied */
  uint32_t parts;       /* of the terms, each summed by groups of its own; 1: the tile is summed by one */
  uint32_t panel_count, panel_of[CONTRACT_SET_MAX][2]; /* by member: of its rows, of its columns */
  bool fragments;  /* on matrix units: the panels keep elements of 16 or 8 bits, a subgroup holds warp_rows x warp_columns of the tile */
  uint8_t element; /* their type */
  bool padded;     /* behind the last term rows, and columns of floats, have zeros, as the last fragment is not whole */
  matrix_units units;
  uint32_t warp_rows, warp_columns, cells;
  uint32_t beside;                                   /* groups that share a unit's local memory; 0: not known */
  ir_expr warp;                                      /* this item's subgroup */
  ir_expr place, slice;                              /* of the item: its part of the tile, and of the terms */
  ir_expr item, row_tile, column_tile, first, steps; /* steps [first, first + steps) */
  ir_expr batch_at, part_at, row_at;
  uint32_t scratch, scratch_memory; /* buffer of the parts' sums: [member][part][batch][rows][columns], in whole tiles */
  local_panel panel[LOCAL_PANELS];
  local_axis rows, columns, terms, batch;
} contract_local;

/* Can the contraction be computed so on this device, and is it worth it? Fills all but the variables of the kernel. */
bool contract_plan_local(contraction *, contract_local *);
uint32_t contract_local_buffers(const contract_local *); /* that fit, where steps are copied ahead */
/* contract/local_fetch.c: the first step, whole; while step `at` is at hand, what comes next; and the end of that, so that step `number` is there. */
void contract_fetch_first(contract_local *);
void contract_fetch_step(contract_local *, ir_expr at);
void contract_keep_step(contract_local *, ir_expr number);
static inline int32_t contract_panel_base(const contract_local *l) { return l->fragments ? l->element : l->t->type.base; }
/* schedule/contract_local.c: the kernel and its step. */
snt_result contract_build_local(contract_local *, const contract_guard *);
/* schedule/contract_local.c, for schedule/contract_mma.c */
ir_expr contract_local_element(const contract_local *, const local_panel *, ir_expr buffer, ir_expr own, ir_expr term);
uint32_t contract_local_unit(const contract_local *); /* neighbours along the columns that are stored at once */
/* The results of a vector of columns at `column` of the tile, or of one; `row`: a test that the row is one, or 0. acc: of each member. */
void contract_local_store(contract_local *, uint32_t row, ir_expr column, uint32_t lane_var, ir_expr lane, const uint32_t *acc);
uint32_t contract_local_row(contract_local *, ir_expr at); /* goes to row `at` of the tile; returns the test, or 0 */
/* schedule/contract_mma.c */
enum { MMA_MOST = 16 }; /* fragments of sums that a subgroup holds, half as many where nothing is known of registers */
static inline uint32_t contract_mma_pad(const contract_local *l) { return FRAGMENT_PAD / ir_dtypes[l->element].bytes; }
/* Elements from term to term of a panel by terms. */
static inline uint32_t contract_term_pitch(const contract_local *l, const local_panel *p, const local_shape *s) {
  return (p->columns ? s->columns : s->rows) + (l->fragments ? contract_mma_pad(l) : p->patches ? LOCAL_PATCH : 0u);
}
/* Columns of a subgroup's results that pass through its stage at once: of all its fragments beside each other through CUDA, where the stage lies over the
   panels, of one elsewhere. Elements from row to row: four rows of half a fragment lie in banks of their own. */
static inline uint32_t contract_stage_columns(const contract_local *l) {
  return fusion_runs_on_cuda(l->t->c->options) ? l->warp_columns : l->units.size.n;
}
static inline uint32_t contract_mma_stage(const contract_local *l) { return contract_stage_columns(l) + 8u; }
/* Of results on their way out, or from slice to slice. */
static inline uint64_t contract_stage_bytes(const contract_local *l) {
  return l->fragments ? (uint64_t)(l->items / l->units.lanes) * l->units.size.m * contract_mma_stage(l) * 4
                      : (l->slices - 1) * 4 * l->shape.rows * l->shape.columns;
}
/* The panel that the stage lies over, which is large enough and read no more then; panel_count: none, it has bytes of its own. */
uint32_t contract_stage_panel(const contract_local *);
void contract_mma_multiply(contract_local *, ir_expr buffer, uint32_t terms, uint32_t *acc);
void contract_mma_store(contract_local *, const uint32_t *acc);
/* Labels of an axis at number `at`, which counts whole vectors of the last label where `unit` is more than 1; `lane` goes with them. */
void contract_place_axis(contract_local *, const local_axis *, ir_expr at, uint32_t unit, ir_expr lane);
/* Where the scratch has a sum of a part. */
ir_expr contract_part_place(const contract_local *, uint32_t member, ir_expr part, ir_expr batch, ir_expr row, ir_expr column);
/* contract/local_parts.c: what all parts take of the scratch, and the kernel that adds them and computes what follows. */
ir_expr contract_part_elements(const contract_local *);
snt_result contract_build_sum(contract_local *);
#endif
