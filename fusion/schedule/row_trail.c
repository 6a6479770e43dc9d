/* Rows of several sweeps that are stored while the next one is swept. A row waits for its extremum, its sum and its last sweep, one after
   the other; what the last sweep of a row stores has nothing to do with the next row, so both go side by side. */
#include "fusion/schedule/row_private.h"

static bool is_dear(const row_job *j, uint32_t node) {
  return ir_ops[ir_at(j->c->graph, node)->op].flags & IR_EXPENSIVE && row_is_full(j, node);
}

/* Rows of transcendental functions that the sweep computes: where there is more than one, each has a loop of its own. */
static uint32_t count_dear(const row_job *j, uint32_t sweep) {
  const uint8_t *needed = j->seen + (size_t)sweep * j->c->graph->nodes.count;
  uint32_t count = 0;
  for (uint32_t i = 0; i < j->group->count; i++) count += needed[j->group->nodes[i]] && is_dear(j, j->group->nodes[i]);
  return count;
}

/* The sums of the row before are carried from trip to trip, of which the first has none: what it stores is garbage and is stored again, so
   nothing may depend on its being a number, and the room must be the kernel's own. */
bool row_can_trail(const row_job *j) {
  enum { WIDE = 16 };
  const ir_graph *g = j->c->graph;
  const uint32_t kept = j->staged_count ? *j->staged : 0, last = j->sweeps - 1;
  if (schedule_lanes(j->c) < WIDE || j->staged_count > 1 || !row_stores_in(j, j->sweeps) || row_is_cut_at_lines(j) ||
      emit_chooser(j->c, j->group, j->reduce[last]))
    return false;
  if (count_dear(j, last) != 1 ||
      (kept ? j->staged_in[0] != last || !row_is_read_in_place(j, kept) || !ir_dtypes[ir_at(g, kept)->type.dtype].is_float
            : j->e->stream) ||
      count_dear(j, j->sweeps) > (kept && is_dear(j, kept)))
    return false;
  for (uint32_t s = 0; s < j->sweeps; s++)
    if (!ir_dtypes[ir_at(g, j->reduce[s])->type.dtype].is_float) return false;
  for (uint32_t i = 0; i < j->group->count; i++)
    if (ir_at(g, j->group->nodes[i])->op == IR_OP_gather) return false;
  for (uint32_t i = 0; i < j->group->output_count; i++)
    if (fusion_is_update(g, j->group->outputs[i])) return false;
  return true;
}

/* The row before is the one at hand, and its sums are known. */
static void go_before(row_job *j, uint32_t number, ir_expr first, ir_expr last, const uint32_t *sums) {
  j->before = emit_var_for(j->e, "before", number, first, last);
  row_go_to(j, j->before);
  for (uint32_t s = 0; s < j->sweeps; s++) {
    const map_access at = row_result_at(j, j->reduce[s]);
    emit_remember(j->e, j->reduce[s], &at, sums[s]);
  }
  row_show_stages(j);
}

/* What the sweep reads is read before anything is stored: a compiler that does not know that the two lie apart exchanges neither. */
void row_trail(row_job *j, const map_access *at) {
  map_access before = *at;
  for (uint32_t i = 0; i < j->group->input_count; i++)
    if (row_is_full(j, j->group->inputs[i])) emit_value(j->e, j->group->inputs[i], at);
  row_go_to(j, j->before);
  for (uint32_t d = 0; d < j->full.rank; d++)
    if (!j->reduced[d]) before.at[d] = j->at[d];
  row_fetch(j, j->sweeps, &before);
  row_store_at(j, j->sweeps, &before, 0);
  row_go_to(j, j->row);
}

static void clear_column(emit *e, void *user, ir_expr column) {
  const uint32_t *memory = user;
  const kir_type type = kir_t(e->k->memories.at[*memory].type.base, e->lanes);
  emit_store(e, *memory, type.base, column, kir_const_float(e->k, type, 0));
}

/* A kept row in private memory is read before the first trip has stored there. */
static void clear_kept(row_job *j) {
  emit *e = j->e;
  const bool stream = e->stream;
  if (!j->staged_count || e->k->memories.at[*j->memory].space != KIR_PRIVATE) return;
  e->stream = false;
  schedule_vector_loop(e, 0, j->columns, j->lanes, 1, clear_column, j->memory);
  e->stream = stream;
}

void row_emit_trailing(row_job *j, ir_expr first, ir_expr last) {
  emit *e = j->e;
  uint32_t initial[ROW_SWEEPS + 1], carried[ROW_SWEEPS + 1], next[ROW_SWEEPS + 1], results[ROW_SWEEPS + 1];
  const uint32_t count = j->sweeps + 1;
  row_go_to(j, first);
  row_show_stages(j);
  clear_kept(j);
  initial[0] = emit_expr(e, first);
  for (uint32_t s = 0; s < j->sweeps; s++)
    initial[s + 1] = kir_const_float(e->k, emit_compute_type(e, ir_at(e->g, j->reduce[s])->type.dtype, 1), 0);
  j->row = emit_loop(
      e,
      &(emit_loop_info){.name = "row", .lo = first, .hi = last, .step = 1, .carry_count = count, .initial = initial, .carried = carried});
  go_before(j, carried[0], first, last, carried + 1);
  row_go_to(j, j->row);
  row_reduce_alone(j);
  row_store_outputs(j);
  next[0] = emit_expr(e, j->row);
  for (uint32_t s = 0; s < j->sweeps; s++) {
    const map_access at = row_result_at(j, j->reduce[s]);
    next[s + 1] = emit_recall(e, j->reduce[s], &at);
  }
  emit_loop_end(e, j->row, count, next, results);
  go_before(j, results[0], first, last, results + 1);
  row_store_columns(j);
}
