/* Shared by the files schedule/row*.c: one kernel of rows under construction, and what is kept of a row between its sweeps. */
#ifndef FUSION_SCHEDULE_ROW_PRIVATE_H
#define FUSION_SCHEDULE_ROW_PRIVATE_H
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"

enum { PRIVATE_ROW_BYTES = 16384, MAX_DEAR = 12 };

typedef struct row_job {
  fusion_context *c;
  const fusion_group *group;
  emit *e;
  bool across, keep_stage;
  bool fetches, follows; /* a row is contiguous, and memory can be asked for early; the next one begins where it ends */
  bool stores_last;      /* there is a sweep behind the last reduction's */
  bool trails;           /* a row is stored while the one behind it is swept (schedule/row_trail.c) */
  bool edge;             /* some elements of the vectors at hand are none of the row */
  uint32_t kept_rank;
  uint32_t sweeps, staged_count, dear_count;
  uint32_t lanes, items, vectors; /* vectors: of neighbouring rows across the unit stride, in one loop */
  ir_expr first;                  /* of these rows */
  uint32_t vector;                /* beside all rows, computed before the first; 0: none */
  uint32_t sweep;                 /* being emitted */
  ir_expr columns;
  ir_expr apart; /* of rows in one loop: how far they are from each other */
  ir_expr item;
  bool down;     /* the items of a row are those of the second dimension: there are others beside them */
  ir_expr start; /* of the vectors, if not 0 (sweep) */
  bool reduced[SNT_MAX_RANK];
  ir_expr at[SNT_MAX_RANK]; /* coordinates of the current row in `full`; reduced axes 0 */
  ir_expr row, before;      /* where one trails: numbers of the row at hand and of the one that is stored meanwhile */
  ir_expr group_var, groups;
  uint8_t *seen;      /* [sweeps + 1][nodes]: needed in that sweep */
  uint8_t *stored_in; /* per output of the group: the sweep, of those that read no result of one an early one */
  ir_expr rows, kept[SNT_MAX_RANK];
  uint32_t reduce[ROW_SWEEPS]; /* reductions in order; the sweep after the last stores */
  uint32_t staged[ROW_SWEEPS], staged_in[ROW_SWEEPS], home[ROW_SWEEPS], memory[ROW_SWEEPS];
  uint32_t dear[MAX_DEAR]; /* rows of their own, of transcendental functions */
  ir_tensor full;          /* shape that the reductions read */
} row_job;

/* ---- where a row lies (schedule/row_place.c) ---- */
bool row_is_reduce(const row_job *, uint32_t node);
bool row_is_full(const row_job *, uint32_t node); /* of the shape that the reductions read */
void row_find_shape(row_job *);
void row_set_place(row_job *, const ir_expr *kept_at);
void row_go_to(row_job *, ir_expr row);
map_access row_result_at(const row_job *, uint32_t reduce); /* of the current row */

/* ---- what is stored of it (schedule/row_store.c) ---- */
void row_store_at(row_job *, uint32_t sweep, const map_access *at, ir_expr column); /* of the full outputs of the sweep, the vector there */
void row_store_column(emit *, void *row_job, ir_expr column);                       /* the one at the column */
void row_store_columns(row_job *);                                                  /* all of the current row */
bool row_is_cut_at_lines(const row_job *);           /* then by vectors that begin where lines do, not where it does */
void row_store_outputs(row_job *);                   /* those of an element a row */
bool row_stores_in(const row_job *, uint32_t sweep); /* full outputs */
bool row_has_full_outputs(const row_job *);
void row_store_by_hand(row_job *);                         /* of a literal number of whole trips, written out */
void row_store_vectors(row_job *, ir_expr lo, ir_expr hi); /* of all outputs, those that the items share out between these columns */

void row_reduce_alone(row_job *); /* all reductions of the current row, by one item in vectors along it (schedule/row.c) */

/* ---- rows of odd lengths read through texels (schedule/row_aligned.c) ---- */
bool row_fits_aligned(const row_job *);
void row_go_to_aligned(row_job *); /* the group's row; sets `start` */
void row_store_aligned(row_job *, const sweep *);

/* ---- how many items share rows, and in which vectors (schedule/row_items.c) ---- */
bool row_is_of_subgroup(const row_job *); /* has a subgroup a row to itself, and do its sums meet in no local memory? */
uint32_t row_items_beside(const fusion_context *, int64_t inner, int64_t outer, uint32_t lanes);
uint32_t row_lanes_along(const row_job *, int64_t columns);
uint32_t row_items_down(const row_job *, uint32_t lanes, uint32_t *beside);

/* ---- what to keep of a row (schedule/row_stages.c) ---- */
bool row_find_kept(row_job *);                           /* marks what each sweep needs and chooses stages; false: out of host memory */
uint32_t row_find_stage(const row_job *, uint32_t node); /* staged_count: none */
bool row_is_staged(const row_job *, uint32_t node);
bool row_is_made(const row_job *, uint32_t node); /* ahead of the sweep, in a loop of its own */
stage_info row_stage(const row_job *, uint32_t node,
                     uint32_t stage); /* where what is kept lies; of a row of the sweep's own, at staged_count, private */
bool row_is_read_in_place(const row_job *, uint32_t node); /* while outputs are stored: where they are */
void row_find_homes(row_job *);
void row_drop_shared_stages(row_job *, bool item_rows);
void row_open_stages(row_job *, uint32_t sweep);
void row_leave_to_last(row_job *); /* nothing is kept or stored before the last sweep */
void row_show_stages(row_job *);   /* of a row that was swept before */
void row_fill_stages(row_job *, uint32_t sweep);
void row_order_stages(row_job *, uint32_t sweep);

/* ---- rows that are stored while the next one is swept (schedule/row_trail.c) ---- */
bool row_can_trail(const row_job *);
void row_emit_trailing(row_job *, ir_expr first, ir_expr last);
void row_trail(row_job *, const map_access *at); /* beside the vector of the last sweep at this place */

/* ---- what a sweep asks memory for (schedule/row_fetch.c) ---- */
void row_fetch(row_job *, uint32_t sweep, const map_access *at); /* beside the vector at this place */
#endif
