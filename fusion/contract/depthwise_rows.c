/* Rows of a depthwise convolution's source that are made in its kernel: a ring of as many rows as there are taps, positions by channels, in near memory. The
   row at hand adds what the one before did not need; the first row of a work-item and of an image fills all. In: a source whose positions lie together
   (channels first), which is read in vectors along them and turned in registers, or one that a contraction makes (contract/depthwise_product.c). */
#include "fusion/depthwise.h"

enum { BLOCK = 8 }; /* positions and channels of a block that is turned */

/* A stored value, or the transpose of one, whose last axis in memory are the positions. */
bool depthwise_can_turn(const depthwise *d) {
  const contraction *t = &d->t;
  const ir_graph *g = t->c->graph;
  const ir_node *n = ir_at(g, d->source);
  const bool transposed = n->op == IR_OP_transpose && !t->c->group_of[d->source];
  uint32_t rank = n->type.rank;
  int64_t width;
  const ir_expr *perm = transposed ? ir_attr_ints(g, d->source, IR_ATTR_perm, &rank) : NULL;
  const uint32_t across = d->source_axis + 1;
  const uint32_t stored = transposed ? ir_arg(g, d->source, 0) : d->source;
  if (n->type.dtype != SNT_F32 || fusion_group_has(t->group, stored) || !fusion_is_stored(t->c, stored)) return false;
  if ((perm ? (uint32_t)perm[across] : across) != rank - 1 || t->lane_axis + 1 != (int32_t)t->out_rank) return false;
  if (!expr_is_const(g->pool, n->type.dims[across], &width) || width < BLOCK || d->channels < BLOCK) return false;
  return (double)((d->taps + 1) * width * d->channels) * sizeof(float) <= 0.5 * t->c->options->profile->l2_bytes;
}

/* Channels innermost. */
void depthwise_open_rows(depthwise *d) {
  const ir_tensor *t = &ir_at(d->t.c->graph, d->source)->type;
  stage_info info = {
      .node = d->source, .storage = STAGE_PRIVATE, .ring_axis = (int32_t)d->source_axis, .ring_size = d->taps, .ordered = true};
  uint32_t count = 0;
  for (uint32_t i = 0; i < t->rank; i++) {
    const bool row = i == d->source_axis || i == d->source_axis + 1, channel = depthwise_is_channel(d, i);
    info.extent[i] = row || channel ? t->dims[i] : 1;
    if (channel) info.order[t->rank - 1] = (uint8_t)i;
    else info.order[count++] = (uint8_t)i;
  }
  d->ring = emit_stage_room(d->t.e, &info, UINT32_MAX);
  if (d->product) depthwise_open_product(d);
}

/* ---- one row ---- */

static uint32_t channels_of_block(const depthwise *d) { return d->t.lanes == 2 * BLOCK ? 2 * BLOCK : BLOCK; }

/* Channels of a whole vector are two blocks beside each other: their stores are whole lines. */
static void turn_block(contraction *t, ir_expr tile, ir_expr position, ir_expr channel) {
  depthwise *d = (depthwise *)t; /* its first member */
  emit *e = t->e;
  expr_pool *x = e->x;
  uint32_t rows[2 * BLOCK];
  const uint32_t channels = channels_of_block(d);
  (void)tile;
  const ir_expr along = emit_lanes(e, position, BLOCK);
  for (ir_expr i = 0; i < (ir_expr)channels; i++) {
    const map_access at = depthwise_source_at(d, d->row, along, expr_add(x, channel, i));
    rows[i] = kir_splat(e->k, emit_value(e, d->source, &at), BLOCK);
    if (e->failed || e->k->failed) return;
  }
  emit_scalar_lanes(e);
  for (uint32_t i = 0; i < channels; i += BLOCK) emit_turn(e, rows + i, BLOCK);
  if (channels > BLOCK) schedule_join(e, rows, rows + BLOCK, BLOCK);
  const ir_expr across = emit_lanes(e, channel, channels);
  for (ir_expr i = 0; i < BLOCK && !e->failed; i++) {
    const map_access at = depthwise_source_at(d, d->row, expr_add(x, position, i), across);
    emit_stage_store(e, &d->ring, &at, rows[i]);
  }
  emit_scalar_lanes(e);
}

static void turn_channels(contraction *t, ir_expr tile, ir_expr channel, ir_expr unused) {
  const depthwise *d = (const depthwise *)t;
  const ir_expr width = ir_at(t->e->g, d->source)->type.dims[d->source_axis + 1];
  const ir_expr tiles[2] = {0, expr_ceil_div(t->e->x, width, BLOCK)};
  (void)tile, (void)unused;
  contract_tile_loop(t, &(contract_tiles){"w", tiles, width, BLOCK}, turn_block, channel);
}

/* Along the positions first: the channels of a block are as many streams. */
static void turn_row(depthwise *d) {
  const uint32_t step = channels_of_block(d);
  const ir_expr tiles[2] = {0, expr_int(d->t.e->x, (d->channels + step - 1) / step)};
  contract_tile_loop(&d->t, &(contract_tiles){"n", tiles, expr_int(d->t.e->x, d->channels), step}, turn_channels, 0);
}

/* The row that the next row of the result adds, a part of it with every tile of the one at hand: positions of a line, half of the channels of a vector, the
   other half with the neighbouring tile. */
void depthwise_fetch_row(const depthwise *d, ir_expr position, ir_expr channel) {
  const contraction *t = &d->t;
  const ir_expr each = (ir_expr)t->lanes / 2;
  emit *e = t->e;
  expr_pool *x = e->x;
  if (!d->turned || !t->c->options->profile->caps.prefetch || d->tile != BLOCK || e->failed) return;
  const bool stored = ir_at(e->g, d->source)->op != IR_OP_transpose;
  const uint32_t node = stored ? d->source : ir_arg(e->g, d->source, 0);
  const ir_expr next = expr_add(x, expr_mul(x, d->row, expr_int(x, d->stride)), expr_int(x, d->taps - d->low));
  const ir_expr row = expr_min(x, next, expr_sub(x, d->rows, 1)), half = expr_mod(x, expr_div(x, position, BLOCK), 2);
  const uint32_t memory = emit_bind(e, fusion_buffer_of(t->c, node), KIR_READ);
  for (ir_expr i = 0; i < each; i++) {
    map_access at = depthwise_source_at(d, row, position, expr_add(x, channel, expr_add(x, expr_mul(x, half, each), i)));
    if (!stored && !ir_movement_access(e->c->graph, d->source, 0, &at)) return;
    const uint32_t index = emit_expr(e, fusion_stored_offset(e->c, node, &at));
    kir_put(e->k, &(kir_inst){.op = KIR_prefetch, .index = memory, .lanes = FUSION_LINE}, 1, &index);
  }
}

/* ---- which rows ---- */

/* From the first that the ring does not have; in the first row of a work-item or an image from the first that is needed. */
static ir_expr first_row(const depthwise *d, ir_expr top, ir_expr low, ir_expr needed) {
  emit *e = d->t.e;
  expr_pool *x = e->x;
  const ir_expr end = expr_add(x, d->rows, low);
  const ir_expr had = expr_sub(x, expr_min(x, end, expr_add(x, top, expr_int(x, d->taps - d->stride))), low);
  const uint32_t fresh = kir_2(e->k, KIR_or, kir_2(e->k, KIR_eq, emit_expr(e, d->unit), emit_expr(e, d->share)),
                               kir_2(e->k, KIR_eq, emit_expr(e, d->row), kir_const_int(e->k, kir_t(SNT_U32, 1), 0)));
  const uint32_t start = kir_3(e->k, KIR_select, fresh, emit_expr(e, needed), emit_expr(e, expr_max(x, needed, had)));
  return emit_var_for(e, "f", start, 0, expr_add(x, d->rows, 1));
}

void depthwise_fill_rows(depthwise *d) {
  contraction *t = &d->t;
  emit *e = t->e;
  expr_pool *x = e->x;
  const ir_expr row = d->row, top = expr_mul(x, row, expr_int(x, d->stride)), low = expr_int(x, d->low);
  const ir_expr needed = expr_sub(x, top, expr_min(x, low, top));
  const ir_expr end = expr_sub(x, expr_min(x, expr_add(x, d->rows, low), expr_add(x, top, expr_int(x, d->taps))), low);
  const map_access origin = depthwise_source_at(d, 0, 0, 0);
  memcpy(d->ring.origin, origin.at, sizeof d->ring.origin);
  const ir_expr v = emit_steps(e, "r", first_row(d, top, low, needed), end, 1);
  d->row = v;
  if (d->product) depthwise_make_row(d, v);
  else turn_row(d);
  d->row = row;
  emit_loop_end(e, v, 0, NULL, NULL);
  emit_stage_show(e, &d->ring);
}
