/* A contraction that reads a depthwise convolution: one row of positions of the convolution, all channels, is computed into near memory, and the tiles of
   the contraction over these positions read it there. In: a group of two contractions, the convolution, what follows it element by element, and the one
   that sums over its channels; explicit vectors. What is between them never reaches a buffer. */
#include "fusion/depthwise.h"
#include "fusion/schedules.h"

typedef struct staged {
  contraction t; /* of the rows; first: bodies of tile loops get it */
  depthwise d;
  uint32_t operand, source; /* what the contraction reads, and the value below its views, whose rows are staged */
  uint32_t row;             /* the label of the contraction that runs along the positions */
  ir_expr first;            /* its value at the first position of the row at hand */
} staged;

/* ---- does it fit ---- */

/* Coordinates of the operand where the source's positions and channels are at `position` and `channel`, its others where the convolution's are. */
static bool operand_at(const staged *s, ir_expr position, ir_expr channel, map_access *at) {
  const contraction *d = &s->d.t;
  *at = (map_access){.rank = d->out_rank};
  for (uint32_t i = 0; i < d->out_rank; i++) {
    const uint32_t label = (uint32_t)d->out[i];
    at->at[i] = (int32_t)i == d->lane_axis ? channel : label == s->d.across ? position : d->at[label];
  }
  return fusion_forward_access(d->c, s->source, s->operand, at);
}

/* The source is a value of the group that follows the convolution element by element; all views between it and the contraction cost nothing. */
static bool find_source(staged *s, uint32_t producer) {
  const contraction *t = &s->t;
  const ir_graph *g = t->c->graph;
  s->operand = s->source = contract_operand(t, 0, 1 - t->lane_operand);
  while (fusion_is_view(g, s->source)) {
    if (t->c->group_of[s->source] || ir_at(g, s->source)->op == IR_OP_concat) return false;
    s->source = ir_arg(g, s->source, 0);
  }
  const ir_tensor *type = &ir_at(g, s->source)->type;
  if (!fusion_group_has(t->group, s->source) || !ir_same_shape(type, &ir_at(g, producer)->type) || type->dtype != SNT_F32) return false;
  map_access at = {.rank = type->rank};
  for (uint32_t i = 0; i < type->rank; i++) at.at[i] = expr_var_add(g->pool, "i", 0, type->dims[i], 1);
  const map_access own = at;
  return fusion_forward_access(t->c, producer, s->source, &at) && !memcmp(at.at, own.at, at.rank * sizeof at.at[0]);
}

/* One label runs along the positions, one term at a time along the channels; nothing else depends on either. */
static bool find_row(staged *s) {
  contraction *t = &s->t, *d = &s->d.t;
  expr_pool *x = t->c->graph->pool;
  uint32_t rank;
  const ir_expr *labels = contract_labels(t, 1 - t->lane_operand, &rank);
  for (uint32_t i = 0; i < d->out_rank; i++)
    d->at[d->out[i]] = d->extent[d->out[i]] == 1 ? 0 : expr_var_add(x, "i", 0, d->extent[d->out[i]], 1);
  const ir_expr position = expr_var_add(x, "w", 0, s->d.positions, 1), channel = expr_var_add(x, "k", 0, expr_int(x, s->d.channels), 1);
  const uint32_t along = emit_var_number(x, position), across = emit_var_number(x, channel);
  map_access at;
  int64_t step;
  ir_expr rest;
  bool found = false;
  if (position >= 0 || channel >= 0 || !operand_at(s, position, channel, &at)) return false;
  for (uint32_t i = 0; i < rank; i++) {
    const bool term = contract_is_reduced(t, labels[i]);
    if (term ? at.at[i] != channel : expr_uses_var(x, at.at[i], across)) return false;
    if (term || !expr_uses_var(x, at.at[i], along)) continue;
    if (found || !expr_split_affine(x, at.at[i], along, &step, &rest) || step != 1 || contract_in_operand(t, t->lane_operand, labels[i]))
      return false;
    found = true;
    s->row = (uint32_t)labels[i];
  }
  t->row_axis = found ? fusion_find_label(t->out, t->out_rank, s->row) : CONTRACT_NONE;
  return t->row_axis != CONTRACT_NONE && t->row_axis != t->lane_axis;
}

/* The row stays near: beside it come the panels of the other operand and the rows that the convolution reads. */
static bool stays_near(const staged *s) {
  return (double)(s->d.positions * s->d.channels) * sizeof(float) <= 0.25 * s->t.c->options->profile->l2_bytes;
}

static bool plan(fusion_context *c, const fusion_group *group, staged *s) {
  uint32_t product;
  const uint32_t producer = contract_staged_producer(c, group, &product);
  *s = (staged){.t = {.c = c, .group = group, .type = kir_t(SNT_F32, 1), .set = {1, {group->hero}}}};
  s->d.t = s->t;
  s->d.product = product;
  s->d.t.set.node[0] = producer;
  contraction *t = &s->t;
  if (!contract_read_labels(t) || !contract_pick_axes(t) || t->both_lanes || t->reduced_count != 1 ||
      ir_at(c->graph, group->hero)->type.dtype != SNT_F32)
    return false;
  if (!contract_read_labels(&s->d.t) || !contract_pick_axes(&s->d.t) || !depthwise_plan(&s->d)) return false;
  if (s->d.rows < 0 || s->d.positions < 0) return false;
  s->d.staged = s->source;
  if (s->d.t.lane_axis + 1 != (int32_t)s->d.t.out_rank || !find_source(s, producer) || !find_row(s) || !stays_near(s)) return false;
  s->d.staged = s->source;
  return contract_pick_tile_of(t, s->d.positions) && contract_settle_lane_operands(t) && t->lane_form[0] == CONTRACT_PACKED;
}

bool schedule_staged_accepts(const fusion_context *c, const fusion_group *group) {
  fusion_context own = *c;
  staged s;
  return plan(&own, group, &s);
}

/* ---- one row ---- */

static void row_body(contraction *t, ir_expr tile, ir_expr position, ir_expr column) {
  const staged *s = (const staged *)t;
  (void)tile;
  contract_emit_tile(t, expr_add(t->e->x, s->first, position), column);
}

static void column_body(contraction *t, ir_expr tile, ir_expr column, ir_expr unused) {
  const staged *s = (const staged *)t;
  expr_pool *x = t->e->x;
  const ir_expr tiles[2] = {0, expr_int(x, (s->d.positions + t->rows - 1) / t->rows)};
  (void)unused;
  contract_open_panels(t, tile, column);
  contract_tile_loop(t, &(contract_tiles){"m", tiles, s->d.positions, t->rows}, row_body, column);
}

static void stage_row(staged *s) {
  const contraction *d = &s->d.t;
  stage_info info = {.node = s->source, .storage = STAGE_PRIVATE, .ring_axis = -1};
  for (uint32_t i = 0; i < d->out_rank; i++) {
    const bool whole = (int32_t)i == d->lane_axis || (uint32_t)d->out[i] == s->d.across;
    info.origin[i] = whole ? 0 : d->at[d->out[i]];
    info.extent[i] = whole ? d->extent[d->out[i]] : 1;
  }
  emit_stage_open(s->t.e, &info, UINT32_MAX);
  depthwise_emit_row(&s->d);
  emit_stage_filled(s->t.e, s->source);
}

static void multiply_row(staged *s) {
  contraction *t = &s->t;
  expr_pool *x = t->e->x;
  map_access at;
  uint32_t rank;
  int64_t columns;
  const ir_expr *labels = contract_labels(t, 1 - t->lane_operand, &rank);
  if (!operand_at(s, 0, 0, &at) || !contract_literal(t, t->lane_axis, &columns)) {
    t->e->failed = true;
    return;
  }
  for (uint32_t i = 0; i < rank; i++) t->at[labels[i]] = at.at[i];
  s->first = t->at[s->row];
  const ir_expr panels[2] = {0, expr_int(x, (columns + contract_width(t) - 1) / contract_width(t))};
  contract_tile_loop(t, &(contract_tiles){"n", panels, expr_int(x, columns), contract_width(t)}, column_body, 0);
}

snt_result schedule_staged_build(fusion_context *c, const fusion_group *group) {
  staged s;
  if (!plan(c, group, &s)) return ir_fail(c->diag, SNT_E_INTERNAL, "schedule", group->hero, "rows that cannot be staged");
  emit *e = s.t.e = s.d.t.e = emit_begin(c, group, "staged");
  if (!e) return ir_no_memory(c->diag, "schedule");
  depthwise_begin_row(&s.d);
  stage_row(&s);
  contract_make_lanes(&s.t, s.t.lanes);
  multiply_row(&s);
  depthwise_end_row(&s.d);
  return emit_end(e, s.d.groups, 0, 0, NULL);
}
