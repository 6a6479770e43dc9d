/* Shared by schedule/contract.c and the files of contract/: one contraction under construction. */
#ifndef FUSION_CONTRACT_PRIVATE_H
#define FUSION_CONTRACT_PRIVATE_H
#include "fusion/contract_set.h"
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"
#include <math.h>

enum {
  CONTRACT_LABELS = 32,
  CONTRACT_CELLS = 64,
  CONTRACT_STAGED = 4,
  CONTRACT_NONE = -1,
  CONTRACT_VECTORS = 8,
  CONTRACT_TEXEL_ROWS = 16,     /* of a tile whose operands are texels, at most */
  CONTRACT_NEAR_PANEL = 131072, /* bytes of a panel in private memory */
  CONTRACT_ITEMS = 64           /* a group, where they are lanes */
};

typedef struct contraction {
  fusion_context *c;
  emit *e;
  const ir_expr *out;
  uint32_t out_rank, reduced_count;
  int32_t lane_axis, row_axis, outer_axis; /* axes of the result; CONTRACT_NONE if absent */
  uint32_t lane_operand;
  uint32_t lanes, vectors, rows; /* tile */
  uint32_t overlap;              /* columns that its last vector shares with the one before */
  kir_type type;
  bool packed;                  /* operands are words of four bytes */
  bool past_rows, past_columns; /* tiles reach past the last one */
  bool both_lanes;              /* the other operand varies along the lanes too: element by element (depthwise) */
  contract_set set;             /* the contractions that share the tile: their cells one after another */
  uint32_t staged_count;
  const ir_expr *lhs, *rhs;
  uint32_t lhs_rank, rhs_rank;
  ir_expr at[CONTRACT_LABELS], extent[CONTRACT_LABELS]; /* by label */
  uint32_t reduced[CONTRACT_LABELS], staged[CONTRACT_STAGED];
  uint32_t chooser; /* of the hero (emit_chooser); 0: none is asked */
  const fusion_group *group;
  void (*store)(struct contraction *, const uint32_t *acc); /* of a cell; null: contract_store_cell */
  uint32_t lane_var[CONTRACT_VECTORS];
  ir_expr lane_at[CONTRACT_VECTORS];     /* offset of vector j's lanes from the tile's column */
  ir_expr row_tiles[2], column_tiles[2]; /* first tile of this work-item, one past its last */
  ir_expr outer_range[2];                /* its share of the outer axis; the end is 0 when it is one index */
  int64_t most_outer, most_rows;         /* indices of it, and tiles of rows, that a work-item has at most; 0: unknown */
  uint32_t operands[2];                  /* different ones of theirs, left and right: what is the same for several is read once */
  uint32_t panel[CONTRACT_SET_MAX];      /* memory of a panel of the lane operand, staged for each tile of columns */
  uint8_t lane_form[CONTRACT_SET_MAX];   /* contract_form: how each one's lane operand is read */
  ir_expr group_number, groups;
  struct contract_ahead { /* the panel after the one at hand, fetched while this one is used again and again */
    uint32_t memory;
    bool wanted, by_outer, rows; /* rows: there is a next tile of them */
    ir_expr base, pass;          /* its first element; which of the passes over the panel at hand this is */
    int64_t passes;
  } ahead;
  /* Of a panel that is larger than the near cache: so many of the outermost reduced label at a time, sums kept between. */
  struct contract_blocks {
    int64_t size;  /* 0: all terms at once */
    bool summed;   /* all blocks are; what is left is to store */
    uint32_t sums; /* memory */
    ir_expr lo;    /* of the label, where the block at hand starts */
  } blocks;
  uint32_t stored_pad, stored_in; /* a padded operand that a kernel before stores, and its buffer; 0: none is */
} contraction;

typedef enum { CONTRACT_IN_PLACE, CONTRACT_PANEL, CONTRACT_PACKED } contract_form;

uint32_t contract_operand(const contraction *, uint32_t member, uint32_t operand);
static inline uint32_t contract_cells(const contraction *t) { return t->rows * t->vectors * t->set.count; }
/* Where the last vector shares half of its columns with the one before, one sum holds the other half for two rows. */
static inline bool contract_pairs_rows(const contraction *t) {
  return t->overlap && 2 * t->overlap == t->lanes && t->rows % 2 == 0 && t->set.count == 1 && !t->both_lanes;
}
static inline uint32_t contract_sums(const contraction *t) { return contract_cells(t) - (contract_pairs_rows(t) ? t->rows / 2 : 0); }
static inline int64_t contract_width(const contraction *t) { return (int64_t)t->lanes * t->vectors - t->overlap; } /* columns of a tile */
static inline const ir_expr *contract_labels(const contraction *t, uint32_t operand, uint32_t *rank) {
  *rank = operand ? t->rhs_rank : t->lhs_rank;
  return operand ? t->rhs : t->lhs;
}
bool contract_in_operand(const contraction *, uint32_t operand, int64_t label);
bool contract_is_reduced(const contraction *, int64_t label);
bool contract_literal(const contraction *, int32_t axis, int64_t *out); /* the extent of a result's axis, 1 without one */
double contract_terms(const contraction *);                             /* at the hints */
map_access contract_operand_at(const contraction *, uint32_t operand);

/* contract/tile.c: the shape of the tile. */
bool contract_pick_tile(contraction *);
bool contract_pick_tile_of(contraction *, int64_t row_extent);        /* where rows come in runs of so many */
uint32_t contract_lanes(const fusion_context *, int64_t lane_extent); /* width of its vectors */
/* Passes over a panel that is made here, at most, so that it can be taken in blocks; 0: as many as there are. */
int64_t contract_most_passes(const contraction *);
int64_t contract_block_size(const contraction *,
                            int64_t passes); /* indices of the outermost reduced label; 0: the panel is better taken whole */

/* contract/sums.c: its code. */
void contract_store_cell(contraction *, const uint32_t *acc); /* results that follow the contractions at `at`, whose sums are acc[] */
/* Tiles [first, end) of an extent, each in turn; the last one of all is moved back so that it is whole. */
typedef void (*contract_tile_body)(contraction *, ir_expr tile, ir_expr at, ir_expr other);
typedef struct contract_tiles {
  const char *name;
  const ir_expr *tiles;
  ir_expr extent;
  int64_t step;
} contract_tiles;
void contract_tile_loop(contraction *, const contract_tiles *, contract_tile_body, ir_expr other); /* contract/axes.c */
bool contract_read_labels(contraction *);
void contract_take_lanes(contraction *, int32_t axis);   /* of the result, and rows and outer to it */
bool contract_pick_axes(contraction *);                  /* of the result: lanes, rows, outer; false: one element */
void contract_make_lanes(contraction *, ir_expr stride); /* the vectors of a tile, `stride` columns apart */
void contract_emit_tile(contraction *, ir_expr row, ir_expr column);
/* One term of a row and a column, whichever operand has the lanes: of words the first is the unsigned one. */
void contract_add_term(const contraction *, uint32_t *cell, uint32_t row, uint32_t column);
/* Room for the sums of `passes` tiles, cleared, if the panel at hand is better taken in blocks. */
bool contract_open_blocks(contraction *, int64_t passes);

/* contract/operands.c: how the operands come to the inner loop. */
int64_t contract_stride(contraction *, uint32_t member, uint32_t operand, uint32_t label); /* largest stride of its loads along a label */
void contract_find_pads(contraction *, uint32_t node);
bool contract_can_stage(contraction *);
bool contract_stage_pads(contraction *, ir_expr outer_lo, int64_t outer_count);
bool contract_can_store_pad(const contraction *);  /* the one that is staged: of literal extents, in whole vectors */
snt_result contract_store_pad(contraction *);      /* `stored_pad`, if there is one */
bool contract_settle_lane_operands(contraction *); /* fills lane_form; false: the lanes of one cannot be read in vectors */
bool contract_has_form(const contraction *, contract_form);
/* After the panel was opened; passes: over it, by this work-item; 0: unknown. by_outer: each index of the outer axis has a panel of its own. */
void contract_look_ahead(contraction *, int64_t passes, bool by_outer);
/* Prefetches the part of the panel ahead that belongs to the step at hand: `step` terms of the innermost loop, which is at `k`. */
void contract_fetch_ahead(contraction *, uint32_t step);
/* The same of the next tile's rows of the other operand, where they lie behind those of the tile at `row` and are few enough to stay near. */
void contract_fetch_rows(contraction *, ir_expr row, uint32_t step);
/* Panels and packed parts of the tile of columns at hand; `tile` is its number. */
void contract_open_panels(contraction *, ir_expr tile, ir_expr column);
/* Constants packed for tiles of another shape than one item's: the lane operand by `columns` of them; the other operand by tiles of rows, so that the
   rows of a term lie side by side. False: not constants, nothing is open. */
bool contract_open_packed_columns(contraction *, uint32_t columns, ir_expr tile, ir_expr column);
bool contract_open_packed_rows(contraction *, ir_expr tile, ir_expr row);

/* Which of the steps that do the same this one is, and when it is taken. */
typedef struct contract_guard {
  uint32_t choice, count;
  const plan_condition *conditions;
} contract_guard;

/* schedule/contract_lanes.c: work-items are lanes, any extents. */
bool contract_fits_flat(contraction *);
void contract_narrow_tile(contraction *); /* to what neighbouring items load side by side */
snt_result contract_build_flat(contraction *, const contract_guard *);
ir_expr contract_item(emit *, ir_expr group, uint32_t items, ir_expr tiles); /* the item's tile: those past the last one repeat it */

/* schedule/staged.c: rows of the other operand are a depthwise convolution's, computed here row by row. */
bool schedule_staged_accepts(const fusion_context *, const fusion_group *);
snt_result schedule_staged_build(fusion_context *, const fusion_group *);

/* schedule/depthwise.c: the same for windows of taps where both operands are vectors of channels. */
bool contract_build_depthwise(const contraction *, snt_result *);
#endif
