/* Depthwise convolutions on explicit vectors: channels along the lanes, a few neighbouring positions a tile, read where they lie. Rows of taps that
   fall into the padding are left out of the loop over taps; the first and the last tile of a row have code of their own, where the taps outside are
   known; so nothing is staged and nothing is tested. In: a contraction whose both operands vary along the lanes, over a window of two taps axes. */
#include "fusion/depthwise.h"

enum { TILE_MOST = 8 };

/* ---- does it fit ---- */

static bool fixed(const contraction *t, ir_expr e, int64_t *out) { return expr_is_const(t->c->graph->pool, e, out); }

static bool entry(const contraction *t, uint32_t node, ir_attr_key key, uint32_t at, int64_t *out) {
  uint32_t count;
  const ir_expr *list = ir_attr_ints(t->c->graph, node, key, &count);
  return list && at < count && fixed(t, list[at], out);
}

/* window of pad of a stored value, dense taps; its padding and extent down. */
static bool read_window(depthwise *d) {
  contraction *t = &d->t;
  const ir_graph *g = t->c->graph;
  const uint32_t window = contract_operand(t, 0, d->data);
  uint32_t rank, pad = 0;
  const ir_expr *labels = contract_labels(t, d->data, &rank);
  int64_t dilation, axis;
  if (ir_at(g, window)->op != IR_OP_window || rank < 4) return false;
  axis = ir_attr_int(g, window, IR_ATTR_axis, 0);
  if (axis + 4 > (int64_t)rank || !entry(t, window, IR_ATTR_dilation, 0, &dilation) || dilation != 1) return false;
  if (!entry(t, window, IR_ATTR_stride, 0, &d->stride) || !entry(t, window, IR_ATTR_size, 0, &d->taps)) return false;
  d->down = (uint32_t)labels[axis], d->across = (uint32_t)labels[axis + 1];
  d->tap[0] = (uint32_t)labels[rank - 2], d->tap[1] = (uint32_t)labels[rank - 1];
  uint32_t source = ir_arg(g, window, 0);
  if (ir_at(g, source)->op == IR_OP_pad) pad = source, source = ir_arg(g, source, 0);
  const uint32_t base = fusion_through_views(g, source);
  const bool member = fusion_group_has(t->group, base);
  if (!pad || t->c->group_of[pad] || t->c->group_of[window] || (d->product ? !member : member || !fusion_is_stored(t->c, base)))
    return false;
  d->source = source, d->source_axis = (uint32_t)axis;
  d->rows = ir_at(g, source)->type.dims[axis];
  return entry(t, pad, IR_ATTR_low, (uint32_t)axis, &d->low) && d->low >= 0;
}

static bool is_zero_pad(const depthwise *d) {
  const ir_graph *g = d->t.c->graph;
  const ir_attr *a = ir_find_attr(g, ir_arg(g, contract_operand(&d->t, 0, d->data), 0), IR_ATTR_value);
  return !a || g->ints.at[a->first] == 0;
}

static bool fits(depthwise *d) {
  contraction *t = &d->t;
  const uint8_t mode = t->c->options->numerics;
  d->data = 1 - t->lane_operand;
  if (mode != SNT_NUMERICS_DEFAULT && mode != SNT_NUMERICS_FAST) return false; /* what lies in the padding is not multiplied */
  if (!t->both_lanes || t->set.count != 1 || t->reduced_count != 2 || t->type.base != SNT_F32 || !read_window(d) || !is_zero_pad(d))
    return false;
  if (!contract_is_reduced(t, d->tap[0]) || !contract_is_reduced(t, d->tap[1])) return false;
  const int32_t down = fusion_find_label(t->out, t->out_rank, d->down), across = fusion_find_label(t->out, t->out_rank, d->across);
  expr_pool *x = t->c->graph->pool;
  int64_t taps_across;
  if (down == CONTRACT_NONE || across == CONTRACT_NONE || down == t->lane_axis || across == t->lane_axis) return false;
  if (!fixed(t, t->extent[d->tap[1]], &taps_across) || taps_across > TILE_MOST) return false;
  const ir_expr last = expr_mul(x, expr_sub(x, t->extent[d->down], 1), expr_int(x, d->stride));
  if (!expr_proves_lt(x, last, expr_add(x, d->rows, expr_int(x, d->low))) || d->low >= d->taps)
    return false; /* each row has a tap inside */
  d->positions = t->extent[d->across];
  d->turned = !d->product && contract_stride(t, 0, d->data, (uint32_t)t->out[t->lane_axis]) != 1;
  return true;
}

/* The longest even tile that leaves registers for what is read; else the longest, whose last one overlaps. */
static void pick_tile(depthwise *d) {
  int64_t most = (int64_t)(d->t.c->options->profile->registers / 2);
  if (most > TILE_MOST) most = TILE_MOST;
  if (d->positions >= 0 && most > d->positions) most = d->positions;
  d->tile = most;
  if (d->positions < 0) return;
  for (int64_t tile = most; 2 * tile > most; tile--)
    if (d->positions % tile == 0) {
      d->tile = tile;
      break;
    }
}

/* ---- one tile of positions, one vector of channels ---- */

static uint32_t operand(contraction *t, uint32_t number) {
  const map_access at = contract_operand_at(t, number);
  return emit_value(t->e, contract_operand(t, 0, number), &at);
}

/* `tap` for the weights; for the data the tap that makes its row the one at hand. */
static void add_row(depthwise *d, ir_expr tap, ir_expr data_tap, uint32_t *acc) {
  contraction *t = &d->t;
  int64_t taps;
  if (!fixed(t, t->extent[d->tap[1]], &taps)) return;
  for (ir_expr s = 0; s < taps; s++) {
    t->at[d->tap[1]] = s;
    t->at[d->tap[0]] = tap;
    const uint32_t weight = operand(t, t->lane_operand);
    t->at[d->tap[0]] = data_tap;
    for (int64_t i = 0; i < d->tile && !t->e->failed; i++) {
      t->at[d->across] = expr_add(t->e->x, d->position, expr_int(t->e->x, i));
      const uint32_t x = operand(t, d->data);
      if (x && weight) acc[i] = kir_3(t->e->k, KIR_fma, x, weight, acc[i]);
    }
  }
}

/* The value that a reader in the group wants of this place: stored where it is staged. */
static void stage_cell(depthwise *d, uint32_t sum) {
  contraction *t = &d->t;
  map_access at = {.rank = t->out_rank};
  for (uint32_t i = 0; i < t->out_rank; i++) at.at[i] = t->at[t->out[i]];
  emit_remember(t->e, t->set.node[0], &at, emit_round_node(t->e, ir_at(t->e->g, t->set.node[0]), sum));
  emit_value(t->e, d->staged, &at);
}

/* Taps from the first to the last whose row of the source exists. The row is a variable of its own, so that the padding is known to be elsewhere. */
static void tile_body(contraction *t, ir_expr panel, ir_expr column, ir_expr unused) {
  depthwise *d = (depthwise *)t; /* its first member */
  emit *e = t->e;
  expr_pool *x = e->x;
  uint32_t acc[TILE_MOST], carried[TILE_MOST], sums[TILE_MOST];
  (void)unused;
  contract_open_panels(t, panel, column);
  depthwise_fetch_row(d, d->position, column);
  t->at[t->out[t->lane_axis]] = emit_lanes(e, column, t->lanes);
  const uint32_t zero = kir_const_float(e->k, kir_t(SNT_F32, e->lanes), 0);
  for (int64_t i = 0; i < d->tile; i++) acc[i] = zero;
  const ir_expr top = expr_mul(x, d->row, expr_int(x, d->stride)), low = expr_int(x, d->low);
  const ir_expr first = expr_sub(x, low, expr_min(x, low, top)), left = expr_sub(x, expr_add(x, d->rows, low), top);
  const ir_expr r = emit_loop(e, &(emit_loop_info){.name = "r",
                                                   .lo = first,
                                                   .hi = expr_min(x, left, expr_int(x, d->taps)),
                                                   .step = 1,
                                                   .carry_count = (uint32_t)d->tile,
                                                   .initial = acc,
                                                   .carried = carried});
  const ir_expr height = expr_sub(x, expr_add(x, top, r), low);
  const ir_expr h = emit_var_for(e, "h", emit_expr(e, height), 0, d->rows);
  const ir_expr tap = emit_var_for(e, "t", emit_expr(e, r), 0, expr_int(x, d->taps));
  t->at[d->down] = d->row;
  add_row(d, tap, expr_sub(x, expr_add(x, h, low), top), carried);
  emit_loop_end(e, r, (uint32_t)d->tile, carried, sums);
  for (int64_t i = 0; i < d->tile && !e->failed; i++) {
    t->at[d->across] = expr_add(x, d->position, expr_int(x, i));
    if (d->staged) stage_cell(d, sums[i]);
    else contract_store_cell(t, &sums[i]);
  }
  emit_scalar_lanes(e);
}

static void channels(depthwise *d, ir_expr position) {
  contraction *t = &d->t;
  d->position = position;
  const ir_expr panels[2] = {0, expr_int(t->e->x, (d->channels + t->lanes - 1) / t->lanes)};
  contract_tile_loop(t, &(contract_tiles){"n", panels, expr_int(t->e->x, d->channels), t->lanes}, tile_body, 0);
}

/* The first tile, those between, the last one, which is moved back so that it is whole; there is one whole tile at least. */
void depthwise_emit_row(depthwise *d) {
  emit *e = d->t.e;
  expr_pool *x = e->x;
  const ir_expr tile = expr_int(x, d->tile), last = expr_sub(x, expr_ceil_div(x, d->positions, tile), 1);
  channels(d, 0);
  if (!expr_proves_le(x, last, 1)) {
    const ir_expr v = emit_steps(e, "o", 1, last, 1);
    channels(d, expr_mul(x, v, tile));
    emit_loop_end(e, v, 0, NULL, NULL);
  }
  if (last != 0) channels(d, expr_sub(x, d->positions, tile));
}

/* Coordinates of row number `unit` of the result. */
static void place(depthwise *d) {
  contraction *t = &d->t;
  expr_pool *x = t->e->x;
  ir_expr rest = d->unit;
  for (uint32_t i = t->out_rank; i-- > 0;) {
    const uint32_t label = (uint32_t)t->out[i];
    if ((int32_t)i == t->lane_axis || label == d->across) continue;
    t->at[label] = t->extent[label] == 1 ? 0 : expr_mod(x, rest, t->extent[label]);
    rest = expr_div(x, rest, t->extent[label]);
  }
  d->row = t->at[d->down];
  if (d->row < 0) d->row = t->at[d->down] = emit_var_for(t->e, "p", emit_expr(t->e, d->row), 0, t->extent[d->down]);
}

/* A work-item that makes rows of its source makes some again that its neighbour has: few work-items. */
static ir_expr rows_of_item(const depthwise *d, ir_expr units, int64_t *per) {
  const contraction *t = &d->t;
  expr_pool *x = t->e->x;
  if (!depthwise_has_ring(d)) return schedule_split_work(t->c, units, d->channels * schedule_hint(x, d->positions), per);
  const double parts = CONTRACT_ROW_SHARES * t->c->options->profile->units;
  *per = (int64_t)ceil((double)schedule_hint(x, units) / parts);
  return expr_ceil_div(x, units, expr_int(x, *per));
}

void depthwise_begin_row(depthwise *d) {
  contraction *t = &d->t;
  emit *e = t->e;
  expr_pool *x = e->x;
  ir_expr units = 1;
  int64_t per;
  for (uint32_t i = 0; i < t->out_rank; i++)
    if ((int32_t)i != t->lane_axis && (uint32_t)t->out[i] != d->across) units = expr_mul(x, units, t->extent[t->out[i]]);
  d->groups = rows_of_item(d, units, &per);
  d->share = expr_mul(x, emit_group(e, d->groups), expr_int(x, per));
  if (depthwise_has_ring(d)) depthwise_open_rows(d);
  const ir_expr end = expr_min(x, expr_add(x, d->share, expr_int(x, per)), units);
  d->unit = emit_steps(e, "u", d->share, end, 1);
  place(d);
  if (depthwise_has_ring(d)) depthwise_fill_rows(d);
}

void depthwise_end_row(depthwise *d) { emit_loop_end(d->t.e, d->unit, 0, NULL, NULL); }

static snt_result build_step(depthwise *d, uint32_t choice, uint32_t count, const plan_condition *conditions) {
  contraction *t = &d->t;
  fusion_context *c = t->c;
  emit *e = t->e = emit_begin(c, t->group, "depthwise");
  if (!e) return ir_no_memory(c->diag, "schedule");
  depthwise_begin_row(d);
  depthwise_emit_row(d);
  depthwise_end_row(d);
  return emit_end(e, d->groups, choice, count, conditions);
}

/* Where nobody knows how many positions there are: the tile, if it is whole somewhere, else one at a time. */
static snt_result build(depthwise *d) {
  if (d->positions >= 0) return build_step(d, 0, 0, NULL);
  const uint32_t choice = d->t.c->plan->steps.count + 1;
  const plan_condition whole = {d->positions, d->tile, INT64_MAX};
  const depthwise start = *d;
  SNT_TRY(build_step(d, choice, 1, &whole));
  *d = start;
  d->tile = 1;
  return build_step(d, choice, 0, NULL);
}

bool depthwise_plan(depthwise *d) {
  contraction *t = &d->t;
  if (!fits(d) || !contract_literal(t, t->lane_axis, &d->channels)) return false;
  t->lanes = contract_lanes(t->c, d->channels);
  t->rows = t->vectors = 1;
  if (t->lanes < 2 || !contract_settle_lane_operands(t) || contract_has_form(t, CONTRACT_PANEL)) return false;
  pick_tile(d);
  if (depthwise_has_ring(d) && (d->rows < 0 || d->positions < 0)) return false;
  return (!d->turned || depthwise_can_turn(d)) && (!d->product || depthwise_plan_product(d));
}

bool contract_build_depthwise(const contraction *from, snt_result *result) {
  depthwise d = {.t = *from};
  if (!depthwise_plan(&d)) return false;
  *result = build(&d);
  return true;
}
