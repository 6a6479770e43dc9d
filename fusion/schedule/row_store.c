/* What is stored of a row: outputs of its shape vector by vector, those of an element a row once. */
#include "fusion/schedule/row_private.h"

static bool full_output_access(const row_job *j, uint32_t node, map_access *at) {
  if (row_is_full(j, node)) return true;
  for (uint32_t i = 0; i < j->group->count; i++) {
    map_access moved = *at;
    if (row_is_full(j, j->group->nodes[i]) && fusion_forward_access(j->c, j->group->nodes[i], node, &moved)) {
      *at = moved;
      return true;
    }
  }
  return false;
}

static bool is_full_output(const row_job *j, uint32_t node) {
  const ir_graph *g = j->c->graph;
  return ir_tensor_elements(g->pool, &ir_at(g, node)->type) == ir_tensor_elements(g->pool, &j->full) && !row_is_reduce(j, node);
}

/* Whatever vector of the row `at` is. */
void row_store_at(row_job *j, uint32_t sweep, const map_access *at, ir_expr column) {
  emit *e = j->e;
  for (uint32_t i = 0; i < j->group->output_count; i++) {
    const uint32_t node = j->group->outputs[i];
    const bool kept = emit_is_stored(e, node); /* the row is already there, or is as soon as it is computed */
    map_access own = *at;
    if (j->stored_in[i] != sweep || !is_full_output(j, node) || (kept && sweep == j->sweeps)) continue;
    if (!full_output_access(j, node, &own)) {
      e->failed = true;
      return;
    }
    const uint32_t value = emit_value(e, node, &own);
    if (!kept) emit_store_where(e, node, &own, value, j->edge, &(map_condition){column, 0, j->columns});
  }
}

void row_store_column(emit *e, void *user, ir_expr column) {
  row_job *j = user;
  ir_expr reduced_dims[SNT_MAX_RANK], reduced_at[SNT_MAX_RANK];
  uint32_t count = 0;
  for (uint32_t d = 0; d < j->full.rank; d++)
    if (j->reduced[d]) reduced_dims[count++] = j->full.dims[d];
  map_delinear(e->x, column, count, reduced_dims, reduced_at);
  map_access at = {.rank = j->full.rank};
  for (uint32_t d = 0, r = 0; d < j->full.rank; d++) at.at[d] = j->reduced[d] ? reduced_at[r++] : j->at[d];
  row_fetch(j, j->sweeps, &at);
  row_store_at(j, j->sweeps, &at, column);
}

void row_store_outputs(row_job *j) {
  emit *e = j->e;
  for (uint32_t i = 0; i < j->group->output_count; i++) {
    const uint32_t node = j->group->outputs[i];
    if (is_full_output(j, node)) continue;
    map_access own = {0};
    bool found = false;
    for (uint32_t s = 0; s < j->sweeps && !found; s++) {
      own = row_result_at(j, j->reduce[s]);
      found = fusion_forward_access(j->c, j->reduce[s], node, &own);
    }
    if (!found) {
      e->failed = true;
      return;
    }
    emit_store_node(e, node, &own, emit_value(e, node, &own));
  }
}

bool row_stores_in(const row_job *j, uint32_t sweep) {
  for (uint32_t i = 0; i < j->group->output_count; i++)
    if (j->stored_in[i] == sweep && is_full_output(j, j->group->outputs[i])) return true;
  return false;
}

bool row_has_full_outputs(const row_job *j) {
  for (uint32_t s = 0; s <= j->sweeps; s++)
    if (row_stores_in(j, s)) return true;
  return false;
}

/* ---- rows that begin inside of a line ---- */

static void store_element(emit *e, void *user, ir_expr element) {
  row_job *j = user;
  row_store_column(e, j, expr_sub(e->x, element, j->start));
}

/* Vectors that begin with the row are aligned in few rows, and unaligned ones would not go past the caches. */
bool row_is_cut_at_lines(const row_job *j) {
  enum { LEAST = 4 }; /* vectors a row */
  int64_t columns;
  return j->e->stream && expr_is_const(j->e->x, j->columns, &columns) && columns % j->lanes && columns >= LEAST * (int64_t)j->lanes;
}

/* The element of the first full output's buffer that the row begins with; 0: it is not known. */
static ir_expr first_element(const row_job *j) {
  for (uint32_t i = 0; i < j->group->output_count; i++) {
    map_access own = {.rank = j->full.rank};
    for (uint32_t d = 0; d < own.rank; d++) own.at[d] = j->at[d];
    if (j->stored_in[i] == j->sweeps && is_full_output(j, j->group->outputs[i]) && full_output_access(j, j->group->outputs[i], &own))
      return fusion_stored_offset(j->c, j->group->outputs[i], &own);
  }
  return 0;
}

/* Whole vectors begin where lines do, so that they go past the caches: elements of the buffer are counted, not columns. */
void row_store_columns(row_job *j) {
  emit *e = j->e;
  j->start = row_is_cut_at_lines(j) ? first_element(j) : 0;
  if (!j->start) {
    schedule_vector_loop(e, 0, j->columns, j->lanes, 4, row_store_column, j);
    return;
  }
  const ir_expr line = expr_mul(e->x, expr_ceil_div(e->x, j->start, j->lanes), j->lanes);
  schedule_vector_loop(e, j->start, line, j->lanes > 4 ? j->lanes / 4 : 1, 0, store_element, j);
  schedule_vector_loop(e, line, expr_add(e->x, j->start, j->columns), j->lanes, 4, store_element, j);
  j->start = 0;
}

static void store_vector(row_job *j, ir_expr first) {
  emit *e = j->e;
  expr_pool *x = e->x;
  row_store_column(e, j, emit_lanes(e, expr_add(x, expr_add(x, first, j->start), expr_mul(x, j->item, j->lanes)), j->lanes));
  emit_scalar_lanes(e);
}

void row_store_vectors(row_job *j, ir_expr lo, ir_expr hi) {
  const ir_expr v = emit_steps(j->e, "c", lo, hi, (ir_expr)j->lanes * j->items);
  store_vector(j, v);
  emit_loop_end(j->e, v, 0, NULL, NULL);
}

void row_store_by_hand(row_job *j) {
  if (!fusion_runs_on_cuda(j->c->options)) emit_by_hand(j->e, j->item);
  for (ir_expr v = 0; v < j->columns; v += (ir_expr)j->lanes * j->items) store_vector(j, v);
  j->e->hand_var = UINT32_MAX;
}
