/* Rows of a depthwise convolution's source that are the results of a contraction: its tiles run along the positions of one row, and what follows it element by
   element up to the padding goes into the ring. In: a group that holds the contraction, whose constant is packed, and whose other operand is stored. */
#include "fusion/depthwise.h"
#include <stddef.h>

static depthwise *of_product(contraction *t) { return (depthwise *)(void *)((char *)t - offsetof(depthwise, p)); }

/* ---- where the contraction is, at coordinates of the source ---- */

static bool find_place(const depthwise *d, const map_access *source, map_access *at) {
  return fusion_one_place(d->t.c, d->t.group, d->source, source, d->product, at);
}

/* One label runs along the positions, the lanes along the channels; no other depends on either. */
static bool find_row(depthwise *d) {
  contraction *p = &d->p, *t = &d->t;
  expr_pool *x = t->c->graph->pool;
  const ir_expr *dims = ir_at(t->c->graph, d->source)->type.dims;
  for (uint32_t i = 0; i < t->out_rank; i++)
    t->at[t->out[i]] = t->extent[t->out[i]] == 1 ? 0 : expr_var_add(x, "i", 0, t->extent[t->out[i]], 1);
  const ir_expr position = expr_var_add(x, "w", 0, dims[d->source_axis + 1], 1), row = expr_var_add(x, "r", 0, dims[d->source_axis], 1),
                channel = expr_var_add(x, "k", 0, expr_int(x, d->channels), 1);
  const map_access source = depthwise_source_at(d, row, position, channel);
  map_access at;
  int64_t step;
  ir_expr rest;
  bool found = false;
  if (position >= 0 || channel >= 0 || !find_place(d, &source, &at)) return false;
  const uint32_t along = emit_var_number(x, position), across = emit_var_number(x, channel);
  for (uint32_t i = 0; i < p->out_rank; i++) {
    const bool lane = (int32_t)i == p->lane_axis;
    if (lane ? at.at[i] != channel : expr_uses_var(x, at.at[i], across)) return false;
    if (lane || !expr_uses_var(x, at.at[i], along)) continue;
    if (found || !expr_split_affine(x, at.at[i], along, &step, &rest) || step != 1) return false;
    if (contract_in_operand(p, p->lane_operand, p->out[i])) return false;
    found = true;
    p->row_axis = (int32_t)i;
    d->p_row = (uint32_t)p->out[i];
  }
  return found;
}

bool depthwise_plan_product(depthwise *d) {
  contraction *p = &d->p;
  const ir_graph *g = d->t.c->graph;
  const ir_tensor *type = &ir_at(g, d->source)->type;
  int64_t width;
  *p = (contraction){.c = d->t.c, .group = d->t.group, .type = kir_t(SNT_F32, 1), .set = {1, {d->product}}};
  if (ir_at(g, d->product)->type.dtype != SNT_F32 || type->dtype != SNT_F32 || type->rank != d->t.out_rank) return false;
  if (d->source_axis + 3 != type->rank || d->t.lane_axis + 1 != (int32_t)d->t.out_rank) return false;
  if (!contract_read_labels(p) || !contract_pick_axes(p) || p->both_lanes || p->reduced_count != 1) return false;
  const uint32_t other = fusion_through_views(g, contract_operand(p, 0, 1 - p->lane_operand));
  if (fusion_group_has(p->group, other) || !fusion_is_stored(p->c, other) || !find_row(d)) return false;
  if (!expr_is_const(g->pool, type->dims[d->source_axis + 1], &width)) return false;
  if ((double)((d->taps + 1) * width * d->channels) * sizeof(float) > 0.5 * p->c->options->profile->l2_bytes) return false;
  return contract_pick_tile_of(p, width) && contract_settle_lane_operands(p) && p->lane_form[0] == CONTRACT_PACKED;
}

/* ---- one row ---- */

/* The value of the source that follows this cell, into the ring. */
static void store_cell(contraction *t, const uint32_t *acc) {
  depthwise *d = of_product(t);
  emit *e = t->e;
  map_access at = {.rank = t->out_rank};
  for (uint32_t i = 0; i < t->out_rank; i++) at.at[i] = t->at[t->out[i]];
  emit_remember(e, d->product, &at, emit_round_node(e, ir_at(e->g, d->product), acc[0]));
  if (!fusion_forward_access(t->c, d->product, d->source, &at)) e->failed = true;
  const uint32_t value = e->failed ? 0 : emit_value(e, d->source, &at);
  if (value) emit_stage_store(e, &d->ring, &at, value);
}

static void row_body(contraction *t, ir_expr tile, ir_expr position, ir_expr column) {
  (void)tile;
  contract_emit_tile(t, expr_add(t->e->x, of_product(t)->p_first, position), column);
}

static void column_body(contraction *t, ir_expr tile, ir_expr column, ir_expr unused) {
  const depthwise *d = of_product(t);
  const ir_expr width = ir_at(t->c->graph, d->source)->type.dims[d->source_axis + 1];
  const ir_expr tiles[2] = {0, expr_ceil_div(t->e->x, width, (ir_expr)t->rows)};
  (void)unused;
  contract_open_panels(t, tile, column);
  contract_tile_loop(t, &(contract_tiles){"m", tiles, width, t->rows}, row_body, column);
}

void depthwise_open_product(depthwise *d) {
  d->p.e = d->t.e;
  d->p.store = store_cell;
  contract_make_lanes(&d->p, d->p.lanes);
}

void depthwise_make_row(depthwise *d, ir_expr row) {
  contraction *p = &d->p;
  expr_pool *x = p->e->x;
  const map_access source = depthwise_source_at(d, row, 0, 0);
  map_access at;
  if (!find_place(d, &source, &at)) {
    p->e->failed = true;
    return;
  }
  for (uint32_t i = 0; i < p->out_rank; i++) p->at[p->out[i]] = at.at[i];
  d->p_first = p->at[d->p_row];
  const int64_t width = contract_width(p);
  const ir_expr panels[2] = {0, expr_ceil_div(x, expr_int(x, d->channels), expr_int(x, width))};
  contract_tile_loop(p, &(contract_tiles){"n", panels, expr_int(x, d->channels), width}, column_body, 0);
}

/* Is the axis of the source that of the channels? */
bool depthwise_is_channel(const depthwise *d, uint32_t axis) {
  uint32_t rank;
  return contract_labels(&d->t, d->data, &rank)[axis] == d->t.out[d->t.lane_axis];
}

/* Coordinates of the source: those of the result, but for its row, position and channel. */
map_access depthwise_source_at(const depthwise *d, ir_expr row, ir_expr position, ir_expr channel) {
  const contraction *t = &d->t;
  uint32_t rank;
  const ir_expr *labels = contract_labels(t, d->data, &rank);
  map_access at = {.rank = ir_at(t->c->graph, d->source)->type.rank};
  for (uint32_t i = 0; i < at.rank; i++) at.at[i] = depthwise_is_channel(d, i) ? channel : t->at[labels[i]];
  at.at[d->source_axis] = row;
  at.at[d->source_axis + 1] = position;
  return at;
}
