/* DeformConv: every tap of every place reads the picture where an offset moves it to, between four pixels, and what was read is multiplied with the
   weights as in any convolution. Outside the picture is 0. */
#include "onnx/ops.h"

enum { DOWN, ACROSS };
enum { MOST_TAPS = 1024 };
typedef struct deform {
  onnx_spatial s;
  ir_expr batch, groups, channels, taps, out[2], in[2]; /* groups of offsets, channels of each; extents down and across */
  ir_tensor place;                                      /* [batch, groups, taps, out down, out across] */
  uint32_t source;                                      /* [batch, groups, channels, in down * in across] */
  uint32_t low[2], part[2], mask;                       /* of each place: the pixel before it, the way from there; a factor, or 0 */
} deform;

/* Where tap and place lie without an offset, plus the offset. */
static uint32_t position(onnx_call *c, const deform *d, uint32_t offsets, uint32_t side) {
  const int64_t rows = d->s.size[DOWN], columns = d->s.size[ACROSS];
  const ir_tensor line = {.dtype = SNT_F32, .rank = 1, .dims = {d->taps}};
  double *start = ir_arena_take(onnx_arena(c), (size_t)(rows * columns) * sizeof *start, 8);
  if (!start) return 0;
  for (int64_t k = 0; k < rows * columns; k++)
    start[k] = (double)((side == DOWN ? k / columns : k % columns) * d->s.dilation[side] - d->s.pads[side]);
  const uint32_t first = onnx_reshape(c, onnx_data(c, &line, start), 5, (const ir_expr[]){1, 1, d->taps, 1, 1});
  const uint32_t steps = onnx_2n(c, IR_OP_mul, onnx_iota(c, SNT_F32, 5, d->place.dims, 3 + side), (double)d->s.stride[side]);
  const uint32_t moved = onnx_reshape(c, onnx_slice(c, offsets, 3, (ir_expr)side, 1, 1), 5, d->place.dims);
  return onnx_2(c, IR_OP_add, onnx_2(c, IR_OP_add, steps, first), moved);
}

static uint32_t inside(onnx_call *c, uint32_t at, ir_expr extent) {
  const uint32_t above = onnx_2n(c, IR_OP_ge, at, 0), below = onnx_2(c, IR_OP_lt, at, onnx_extent(c, extent, SNT_F32));
  return onnx_2(c, IR_OP_and, above, below);
}

/* A value of each place as one of each channel's line: [batch, groups, 1, taps * places]. */
static uint32_t as_line(onnx_call *c, const deform *d, uint32_t node) {
  const ir_expr count = expr_mul(c->g->pool, d->taps, expr_mul(c->g->pool, d->out[0], d->out[1]));
  return onnx_reshape(c, node, 4, (const ir_expr[]){d->batch, d->groups, 1, count});
}

/* What one of the four pixels around each place gives. */
static uint32_t corner(onnx_call *c, const deform *d, uint32_t which) {
  uint32_t at[2], share = d->mask, good = 0;
  for (uint32_t side = 0; side < 2; side++) {
    const bool far = which >> side & 1;
    at[side] = far ? onnx_2n(c, IR_OP_add, d->low[side], 1) : d->low[side];
    const uint32_t near = onnx_2(c, IR_OP_sub, onnx_like(c, d->part[side], 1), d->part[side]), own = far ? d->part[side] : near;
    share = share ? onnx_2(c, IR_OP_mul, share, own) : own;
    const uint32_t within = inside(c, at[side], d->in[side]);
    good = good ? onnx_2(c, IR_OP_and, good, within) : within;
  }
  for (uint32_t side = 0; side < 2; side++) at[side] = onnx_cast(c, onnx_select(c, good, at[side], onnx_like(c, at[side], 0)), SNT_I32);
  const uint32_t row = onnx_2(c, IR_OP_mul, at[DOWN], onnx_extent(c, d->in[ACROSS], SNT_I32));
  const uint32_t index = as_line(c, d, onnx_2(c, IR_OP_add, row, at[ACROSS]));
  if (!index || !share || !good) return 0;
  ir_tensor all = *onnx_type_of(c, index);
  all.dims[2] = d->channels;
  const uint32_t read = onnx_add(c, "gather_elements %%%u, %%%u, axis=3", d->source, onnx_broadcast(c, index, 4, all.dims));
  const uint32_t product = onnx_2(c, IR_OP_mul, read, as_line(c, d, share));
  return onnx_select(c, as_line(c, d, good), product, onnx_like(c, product, 0));
}

static bool read_deform(onnx_call *c, deform *d, uint32_t x, uint32_t weights, uint32_t offsets) {
  const ir_tensor type = *onnx_type_of(c, x), moved = *onnx_type_of(c, offsets);
  expr_pool *pool = c->g->pool;
  int64_t channels, groups = onnx_int(c, "offset_group", 1);
  if (type.rank != 4 || moved.rank != 4) return onnx_refuse(c, "only pictures have a deformed convolution here");
  if (!onnx_read_spatial(c, &type, onnx_type_of(c, weights), &d->s)) return false;
  if (d->s.count != 2 || d->s.size[0] > MOST_TAPS || d->s.size[1] > MOST_TAPS / d->s.size[0])
    return onnx_refuse(c, "a kernel of more than %d taps", MOST_TAPS);
  if (!expr_is_const(pool, type.dims[1], &channels) || groups < 1 || channels % groups)
    return onnx_refuse(c, "offset_group must divide a fixed number of channels");
  *d = (deform){.s = d->s, .batch = type.dims[0], .groups = expr_int(pool, groups), .channels = expr_int(pool, channels / groups)};
  d->taps = expr_int(pool, d->s.size[0] * d->s.size[1]);
  for (uint32_t side = 0; side < 2; side++) d->out[side] = moved.dims[2 + side], d->in[side] = type.dims[2 + side];
  d->place = (ir_tensor){.dtype = SNT_F32, .rank = 5, .dims = {d->batch, d->groups, d->taps, d->out[0], d->out[1]}};
  d->source = onnx_reshape(c, x, 4, (const ir_expr[]){d->batch, d->groups, d->channels, expr_mul(pool, d->in[0], d->in[1])});
  const uint32_t pairs = onnx_reshape(c, offsets, 6, (const ir_expr[]){d->batch, d->groups, d->taps, 2, d->out[0], d->out[1]});
  for (uint32_t side = 0; side < 2; side++) {
    const uint32_t at = pairs ? position(c, d, pairs, side) : 0;
    if (!(d->low[side] = onnx_1(c, IR_OP_floor, at))) return false;
    d->part[side] = onnx_2(c, IR_OP_sub, at, d->low[side]);
  }
  if (onnx_has(c, 4) && !(d->mask = onnx_reshape(c, onnx_in(c, 4), 5, d->place.dims))) return false;
  return d->source && d->part[1];
}

bool onnx_op_deform_conv(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0), weights = onnx_in(c, 1), offsets = onnx_in(c, 2);
  const int64_t groups = onnx_int(c, "group", 1);
  deform d;
  int64_t outputs, inputs;
  uint32_t read = 0;
  expr_pool *pool = c->g->pool;
  if (!x || !weights || !offsets || !read_deform(c, &d, x, weights, offsets)) return false;
  for (uint32_t k = 0; k < 4; k++) {
    const uint32_t one = corner(c, &d, k);
    if (!(read = k ? onnx_2(c, IR_OP_add, read, one) : one)) return false;
  }
  const ir_tensor w = *onnx_type_of(c, weights);
  if (!expr_is_const(pool, w.dims[0], &outputs) || !expr_is_const(pool, w.dims[1], &inputs) || groups < 1 || outputs % groups)
    return onnx_refuse(c, "group must divide a fixed number of outputs");
  const ir_expr g = expr_int(pool, groups), own = expr_int(pool, outputs / groups), places = expr_mul(pool, d.out[0], d.out[1]);
  const uint32_t columns = onnx_reshape(c, read, 5, (const ir_expr[]){d.batch, g, w.dims[1], d.taps, places});
  const uint32_t filters = onnx_reshape(c, weights, 4, (const ir_expr[]){g, own, w.dims[1], d.taps});
  if (!columns || !filters) return false;
  const uint32_t made = onnx_add(c, "einsum %%%u, %%%u, labels=\"ngckp,gock->ngop\"", columns, filters);
  const uint32_t result = onnx_reshape(c, made, 4, (const ir_expr[]){d.batch, w.dims[0], d.out[0], d.out[1]});
  if (!onnx_has(c, 3)) return onnx_out(c, 0, result);
  return onnx_out(c, 0, onnx_2(c, IR_OP_add, result, onnx_reshape(c, onnx_in(c, 3), 4, (const ir_expr[]){1, w.dims[0], 1, 1})));
}
