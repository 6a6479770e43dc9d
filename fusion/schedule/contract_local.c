/* Contractions through local memory, for devices where it is near: every element of an operand is fetched once a group, coalesced, into one of two or
   three buffers while the items multiply what lies in another; one barrier a step. An item holds rows x vectors accumulators and adds its terms in order.
   Nothing is fetched outside of an operand: what lies beyond an edge repeats the last elements, and is neither added nor stored. */
#include "fusion/contract_local.h"

/* ---- local memory ---- */

static uint32_t read_vector(contract_local *l, const local_panel *p, ir_expr buffer, ir_expr own, ir_expr term) {
  emit *e = l->t->e;
  const uint32_t index = emit_expr(e, contract_local_element(l, p, buffer, own, term));
  const uint32_t value = kir_load(e->k, p->memory, LOCAL_VECTOR, 1, &index);
  if (!e->k->failed) kir_at(e->k, value)->align = 4 * LOCAL_VECTOR;
  return value;
}

/* An item's rows (or columns) are vectors of four neighbours, one in each half of the tile where there are two: number v of them. */
static ir_expr vector_place(const contract_local *l, bool columns, uint32_t v) {
  expr_pool *x = l->t->e->x;
  const uint32_t tile = columns ? l->shape.columns : l->shape.rows, own = columns ? l->shape.item_columns : l->shape.item_rows;
  const uint32_t across = l->shape.columns / l->shape.item_columns;
  const ir_expr at = columns ? expr_mod(x, l->place, across) : expr_div(x, l->place, across);
  return expr_add(x, expr_mul(x, at, LOCAL_VECTOR), (ir_expr)(v * (tile / (own / LOCAL_VECTOR))));
}

/* Four terms from `term`: out[term][vector], four neighbours each. */
static void read_panel(contract_local *l, const local_panel *p, ir_expr buffer, ir_expr term, uint32_t terms,
                       uint32_t out[LOCAL_VECTOR][LOCAL_ROWS / LOCAL_VECTOR]) {
  emit *e = l->t->e;
  expr_pool *x = e->x;
  const uint32_t vectors = (p->columns ? l->shape.item_columns : l->shape.item_rows) / LOCAL_VECTOR;
  for (uint32_t v = 0; v < vectors; v++) {
    const ir_expr own = vector_place(l, p->columns, v);
    uint32_t rows[LOCAL_VECTOR], parts[LOCAL_VECTOR];
    for (uint32_t k = 0; !p->by_rows && k < terms; k++) out[k][v] = read_vector(l, p, buffer, own, expr_add(x, term, k));
    if (!p->by_rows) continue;
    for (uint32_t i = 0; i < LOCAL_VECTOR; i++) rows[i] = read_vector(l, p, buffer, expr_add(x, own, i), term);
    for (uint32_t k = 0; k < terms; k++) {
      for (uint32_t i = 0; i < LOCAL_VECTOR; i++) parts[i] = kir_lane(e->k, rows[i], k);
      out[k][v] = kir_vector(e->k, l->t->type.base, LOCAL_VECTOR, parts);
    }
  }
}

/* ---- multiplying ---- */

static void multiply_terms(contract_local *l, ir_expr buffer, ir_expr term, uint32_t terms, uint32_t *acc) {
  const contraction *t = l->t;
  emit *e = t->e;
  uint32_t read[LOCAL_PANELS][LOCAL_VECTOR][LOCAL_ROWS / LOCAL_VECTOR];
  for (uint32_t i = 0; i < l->panel_count; i++) read_panel(l, &l->panel[i], buffer, term, terms, read[i]);
  for (uint32_t k = 0; k < terms; k++)
    for (uint32_t s = 0; s < t->set.count; s++)
      for (uint32_t i = 0; i < t->rows; i++) {
        const uint32_t a = kir_lane(e->k, read[l->panel_of[s][0]][k][i / LOCAL_VECTOR], i % LOCAL_VECTOR);
        for (uint32_t j = 0; j < t->vectors; j++)
          contract_add_term(t, &acc[(s * t->rows + i) * t->vectors + j], a, read[l->panel_of[s][1]][k][j]);
      }
}

/* The first `terms` of the step in `buffer`. */
static void multiply_step(contract_local *l, ir_expr buffer, ir_expr terms, uint32_t *acc) {
  emit *e = l->t->e;
  expr_pool *x = e->x;
  const uint32_t cells = l->cells, slices = l->slices;
  const ir_expr own = expr_div(x, terms, (ir_expr)slices), rest = expr_mod(x, own, LOCAL_VECTOR), whole = expr_sub(x, own, rest);
  uint32_t carried[CONTRACT_CELLS];
  if (l->fragments) {
    contract_mma_multiply(l, buffer, (uint32_t)terms, acc);
    return;
  }
  if (whole != 0) {
    const ir_expr k = emit_loop(e, &(emit_loop_info){.name = "k",
                                                     .lo = 0,
                                                     .hi = whole,
                                                     .step = LOCAL_VECTOR,
                                                     .whole = true,
                                                     .carry_count = cells,
                                                     .initial = acc,
                                                     .carried = carried});
    multiply_terms(l, buffer, expr_add(x, k, expr_mul(x, l->slice, own)), LOCAL_VECTOR, carried);
    emit_loop_end(e, k, cells, carried, acc);
  }
  if (rest > 0) multiply_terms(l, buffer, whole, (uint32_t)rest, acc);
}

/* Step `at`, while what comes behind it is fetched. */
static void pass_step(contract_local *l, ir_expr at, uint32_t *acc) {
  expr_pool *x = l->t->e->x;
  contract_fetch_step(l, at);
  multiply_step(l, expr_mod(x, at, (ir_expr)l->buffers), l->step, acc);
  contract_keep_step(l, expr_add(x, at, 1));
}

/* Steps [from, to), `together` a trip, which divide them. */
static void pass_steps(contract_local *l, ir_expr from, ir_expr to, uint32_t together, uint32_t *acc) {
  emit *e = l->t->e;
  expr_pool *x = e->x;
  uint32_t carried[CONTRACT_CELLS];
  if (from == to) return;
  const ir_expr trip = emit_loop(e, &(emit_loop_info){.name = "s",
                                                      .lo = expr_div(x, from, together),
                                                      .hi = expr_div(x, to, together),
                                                      .step = 1,
                                                      .carry_count = l->cells,
                                                      .initial = acc,
                                                      .carried = carried});
  for (uint32_t i = 0; i < together; i++) pass_step(l, expr_add(x, expr_mul(x, trip, together), i), carried);
  emit_loop_end(e, trip, l->cells, carried, acc);
}

/* Of a number of steps that is known, a trip of the loop makes as many as there are buffers: which one a step reads and which it fills are literals, and that
   there is another to fetch is no question. The last steps are made one by one. Units and copies alone: what else a step has in it is long by itself. */
static ir_expr pass_rounds(contract_local *l, ir_expr last, uint32_t *acc) {
  enum { LEAST_ROUNDS = 2 };
  int64_t count;
  if (!l->fragments || !expr_is_const(l->t->e->x, last, &count) || count <= LEAST_ROUNDS * (int64_t)l->buffers) return 0;
  for (uint32_t i = 0; i < l->panel_count; i++)
    if (!l->panel[i].copied) return 0;
  const int64_t rest = 1 + (count - 1) % (int64_t)l->buffers, first = count - rest;
  pass_steps(l, 0, (ir_expr)first, l->buffers, acc);
  for (int64_t at = first; at < count; at++) pass_step(l, (ir_expr)at, acc);
  return last;
}

static void multiply_all(contract_local *l, uint32_t *acc) {
  expr_pool *x = l->t->e->x;
  contract_fetch_first(l);
  const ir_expr last = expr_sub(x, l->steps, 1), passed = pass_rounds(l, last, acc);
  pass_steps(l, passed, last, 1, acc);
  const ir_expr rest = l->parts > 1 ? l->step : expr_sub(x, l->terms.extent, expr_mul(x, last, (ir_expr)l->step));
  multiply_step(l, expr_mod(x, last, (ir_expr)l->buffers), rest, acc);
}

/* The second slice's sums, left in the memory of the rows' panel, which nobody reads any more, and added to the first one's. Whether this item has the first. */
static uint32_t add_slices(contract_local *l, uint32_t *acc) {
  emit *e = l->t->e;
  uint32_t at[CONTRACT_CELLS];
  if (l->slices == 1 || e->k->failed) return 0;
  kir_memory *panel = &e->k->memories.at[l->panel[0].memory];
  const uint64_t tile = (uint64_t)l->shape.rows * l->shape.columns;
  if (panel->dims[0] < tile) panel->dims[0] = tile;
  for (uint32_t i = 0; i < l->cells; i++)
    at[i] = emit_expr(e, expr_mul(e->x, expr_add(e->x, l->place, (ir_expr)(i * l->items / l->slices)), LOCAL_VECTOR));
  kir_barrier(e->k, KIR_SYNC_LOCAL);
  emit_if_below(e, 0, l->slice);
  for (uint32_t i = 0; i < l->cells; i++) kir_store(e->k, l->panel[0].memory, 1, &at[i], acc[i]);
  emit_if_end(e);
  kir_barrier(e->k, KIR_SYNC_LOCAL);
  for (uint32_t i = 0; i < l->cells; i++)
    acc[i] = kir_2(e->k, KIR_add, acc[i], kir_load(e->k, l->panel[0].memory, LOCAL_VECTOR, 1, &at[i]));
  return emit_below(e, l->slice, 1);
}

/* ---- storing ---- */

static void store_results(contract_local *l, uint32_t *acc) {
  contraction *t = l->t;
  emit *e = t->e;
  expr_pool *x = e->x;
  const ir_expr lane = emit_lanes(e, 0, LOCAL_VECTOR);
  const uint32_t lane_var = e->lane_var;
  emit_scalar_lanes(e);
  const uint32_t first = add_slices(l, acc);
  for (uint32_t i = 0; i < t->rows; i++) {
    const uint32_t row = contract_local_row(l, expr_add(x, vector_place(l, false, i / LOCAL_VECTOR), i % LOCAL_VECTOR));
    const uint32_t in = row && first ? kir_2(e->k, KIR_and, row, first) : row + first;
    for (uint32_t j = 0; j < t->vectors; j++)
      contract_local_store(l, in, vector_place(l, true, j), lane_var, lane, &acc[i * t->vectors + j]);
  }
}

/* ---- the kernel ---- */

static ir_expr variable_of(emit *e, const char *name, ir_expr at, ir_expr end) {
  return at < 0 ? emit_var_for(e, name, emit_expr(e, at), 0, end) : at;
}

/* Groups that follow each other take tiles of a few rows below each other, so that what they read of both operands is still near. */
static ir_expr place_group(contract_local *l) {
  emit *e = l->t->e;
  expr_pool *x = e->x;
  const ir_expr row_tiles = expr_ceil_div(x, l->rows.extent, l->shape.rows),
                column_tiles = expr_ceil_div(x, l->columns.extent, l->shape.columns);
  const ir_expr groups = expr_mul(x, expr_mul(x, row_tiles, column_tiles), expr_mul(x, l->batch.extent, l->parts));
  int64_t literal, band = 8;
  while (band > 1 && (!expr_is_const(x, row_tiles, &literal) || literal % band)) band /= 2;
  ir_expr rest = emit_group(e, groups);
  const ir_expr low = expr_mod(x, rest, band);
  rest = expr_div(x, rest, band);
  l->column_tile = variable_of(e, "nt", expr_mod(x, rest, column_tiles), column_tiles);
  rest = expr_div(x, rest, column_tiles);
  const ir_expr bands = expr_div(x, row_tiles, band);
  l->row_tile = variable_of(e, "mt", expr_add(x, expr_mul(x, expr_mod(x, rest, bands), band), low), row_tiles);
  rest = expr_div(x, rest, bands);
  l->part_at = expr_mod(x, rest, l->parts);
  l->batch_at = variable_of(e, "bt", expr_div(x, rest, l->parts), l->batch.extent);
  if (l->batch.count) contract_place_axis(l, &l->batch, l->batch_at, 1, 0);
  return groups;
}

static void declare_panels(contract_local *l) {
  emit *e = l->t->e;
  for (uint32_t i = 0; i < l->panel_count; i++) {
    local_panel *p = &l->panel[i];
    char name[24];
    const int length = snprintf(name, sizeof name, "t%u", e->k->memories.count);
    kir_memory m = {
        .name = ir_arena_text(e->arena, name, (size_t)length), .space = KIR_LOCAL, .access = KIR_READ | KIR_WRITE, .rank = 1, .align = 64};
    m.type = kir_t(contract_panel_base(l), 1);
    m.dims[0] = (uint64_t)l->buffers * p->size;
    p->memory = kir_memory_add(e->k, &m);
  }
}

snt_result contract_build_local(contract_local *l, const contract_guard *guard) {
  contraction *t = l->t;
  emit *e = t->e = emit_begin(t->c, t->group, "contract");
  if (!e) return ir_no_memory(t->c->diag, "schedule");
  uint32_t acc[CONTRACT_CELLS];
  for (uint32_t i = 0; i < CONTRACT_LABELS; i++) t->at[i] = 0;
  const ir_expr groups = place_group(l);
  l->item = emit_item(e, 0, l->items);
  l->slice = expr_div(e->x, l->item, (ir_expr)(l->items / l->slices));
  l->place = expr_mod(e->x, l->item, (ir_expr)(l->items / l->slices));
  if (l->fragments) matrix_units_use(e, &l->units);
  if (l->fragments) l->warp = emit_var_for(e, "w", kir_id(e->k, KIR_sg_id, 0), 0, l->items / l->units.lanes);
  l->steps = expr_ceil_div(e->x, l->terms.extent, (ir_expr)l->step * l->parts);
  l->first = variable_of(e, "first", expr_mul(e->x, l->part_at, l->steps), expr_ceil_div(e->x, l->terms.extent, l->step));
  declare_panels(l);
  for (uint32_t i = 0; i < l->cells; i++)
    acc[i] = !l->fragments ? emit_no_sum(e, kir_t(t->type.base, LOCAL_VECTOR)) : i ? acc[0] : fragment_zero(e, "c", t->type.base);
  multiply_all(l, acc);
  if (l->parts > 1) {
    l->scratch = fusion_add_scratch(t->c, "parts", t->type.base, contract_part_elements(l));
    l->scratch_memory = emit_bind(e, l->scratch, KIR_WRITE);
  }
  if (l->fragments) contract_mma_store(l, acc);
  else store_results(l, acc);
  SNT_TRY(emit_end(e, groups, guard->choice, guard->count, guard->conditions));
  return l->parts > 1 ? contract_build_sum(l) : SNT_OK;
}
