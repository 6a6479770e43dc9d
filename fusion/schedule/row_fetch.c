/* What rows ask memory for while they compute: the row after this one, and the room of a row that the sweep after this one writes. Hardware does not
   look beyond a page, and a store to a line that is not there waits where nothing else is left to do. (Softmax on PoCL, 4096 rows of 1021 or 16384 of
   1024: 0.8 of the time.) */
#include "fusion/schedule/row_private.h"

enum { LONG_ROW = 1024 };

/* The vector at `offset` of a buffer, if it is one that lies together. */
static void ask(row_job *j, uint32_t node, ir_expr offset, uint32_t access) {
  emit *e = j->e;
  int64_t coef;
  ir_expr rest;
  if (!row_is_full(j, node) || ir_at(e->g, node)->type.dtype != SNT_F32) return;
  if (!expr_split_affine(e->x, offset, e->lane_var, &coef, &rest) || coef != 1) return;
  const uint32_t index = emit_expr(e, rest);
  const kir_inst fetch = {.op = KIR_prefetch,
                          .index = emit_bind(e, fusion_buffer_of(e->c, node), access),
                          .lanes = (int32_t)(4 * e->lanes),
                          .flags = access == KIR_WRITE ? KIR_IS_RW : 0};
  kir_put(e->k, &fetch, 1, &index);
}

/* The last sweep of several before the one that stores computes the most. Every other input waits for the one that stores, so that memory is not idle
   there (layer norm of x + r on Zen 4, 4096 x 1024: 0.8 of the time, 16384 x 1024: 0.86; both there: 0.9 and 0.86). */
static bool asks_for_next(const row_job *j, uint32_t sweep, uint32_t nth) {
  const bool waits = j->sweeps == 1 || (nth % 2 && j->stores_last);
  return j->follows && sweep == (j->trails || !waits ? j->sweeps - 1 : j->sweeps);
}

/* The room of the row at hand while the sweep before runs; where vectors take two registers, or rows are stored while the next one is
   swept, that of the next row in the long sweep that asks for its input: beside a sweep that only reads it is asked for faster than it
   comes (softmax of 4096 x 1024 on Zen 3 0.93 of the time, on Zen 4 0.95). */
static bool asks_for_room(const row_job *j, uint32_t stage, uint32_t sweep, bool next) {
  return j->home[stage] && (next ? asks_for_next(j, sweep, 0) : j->staged_in[stage] == sweep + 1);
}

/* Of rows that are stored while the next one is swept: their sweep for the extremum comes right behind, and what it reads is to be there. */
static ir_expr rows_ahead(const row_job *j) { return expr_mul(j->e->x, j->columns, j->trails ? 2 : 1); }

void row_fetch(row_job *j, uint32_t sweep, const map_access *at) {
  emit *e = j->e;
  int64_t columns;
  if (!j->fetches || e->lanes < 2 || !expr_is_const(e->x, j->columns, &columns) || columns * 4 < LONG_ROW) return;
  const ir_expr here = map_linear(e->x, at, j->full.dims);
  for (uint32_t i = 0, nth = 0; i < j->group->input_count; i++)
    if (row_is_full(j, j->group->inputs[i]) && asks_for_next(j, sweep, nth++))
      ask(j, j->group->inputs[i], expr_add(e->x, here, rows_ahead(j)), KIR_READ);
  for (uint32_t i = 0; i < j->group->output_count && j->trails && !j->staged_count && asks_for_next(j, sweep, 0); i++)
    ask(j, j->group->outputs[i], here, KIR_WRITE);
  const bool next = j->follows && (j->trails || j->lanes > schedule_lanes(j->c));
  for (uint32_t i = 0; i < j->staged_count && !e->stream; i++)
    if (asks_for_room(j, i, sweep, next)) ask(j, j->home[i], next ? expr_add(e->x, here, j->columns) : here, KIR_WRITE);
}
