/* Indexing and layout: embedding, one-hot, blocks of pixels, repetition, padding by other elements. */
#include "ir/composites/private.h"

void build_embedding(composite_call *c) {
  const ir_expr axis = 0;
  const ir_attr_value attr = {IR_ATTR_axis, 1, &axis};
  c->results[0] = ir_add_node(c->g, IR_OP_gather, 2, c->args, 1, &attr, NULL);
}

void build_one_hot(composite_call *c) {
  const uint32_t index = c->args[0];
  ir_tensor shape = *type_of(c, index);
  if (!call_has(c, IR_PARAM_depth) || shape.rank == SNT_MAX_RANK) {
    call_mistake(c, "depth is missing, or the operand has rank %d", SNT_MAX_RANK);
    return;
  }
  const uint32_t axis = call_axis(c, IR_PARAM_axis, -1, shape.rank + 1u);
  ir_expr axes[SNT_MAX_RANK];
  for (uint32_t i = 0; i < shape.rank; i++) axes[i] = i < axis ? i : i + 1;
  for (uint32_t i = shape.rank; i > axis; i--) shape.dims[i] = shape.dims[i - 1];
  shape.dims[axis] = call_expr(c, IR_PARAM_depth, 1);
  const ir_attr_value attrs[] = {{IR_ATTR_axes, shape.rank, axes}, {IR_ATTR_shape, shape.rank + 1u, shape.dims}};
  const uint32_t repeated = ir_add_node(c->g, IR_OP_broadcast, 1, &index, 2, attrs, NULL);
  const uint32_t hot = step_2(c, IR_OP_eq, repeated, step_iota(c, shape.dtype, shape.rank + 1u, shape.dims, axis));
  c->results[0] = step_cast(c, hot, (int32_t)call_expr(c, IR_PARAM_dtype, SNT_F32));
}

static bool read_block(composite_call *c, int64_t *block) {
  if (!call_has(c, IR_PARAM_size) || !call_list(c, IR_PARAM_size, 1, 1, block)) return call_mistake(c, "size=[block] is missing"), false;
  if (*block < 1 || *block > INT32_MAX || type_of(c, c->args[0])->rank != 4)
    return call_mistake(c, "needs an operand [n, c, h, w] and a block over 0, below 2^31"), false;
  return true;
}

void build_depth_to_space(composite_call *c) {
  static const uint32_t block_first[] = {0, 3, 4, 1, 5, 2}, block_last[] = {0, 1, 4, 2, 5, 3};
  int64_t b;
  if (!read_block(c, &b)) return;
  const ir_tensor x = *type_of(c, c->args[0]);
  const bool crd = call_has(c, IR_PARAM_mode) && strcmp(c->params[IR_PARAM_mode]->word, "crd") == 0;
  const ir_expr channels = expr_div(c->g->pool, x.dims[1], expr_int(c->g->pool, b * b));
  const ir_expr dcr_dims[] = {x.dims[0], b, b, channels, x.dims[2], x.dims[3]},
                crd_dims[] = {x.dims[0], channels, b, b, x.dims[2], x.dims[3]};
  const ir_expr out[] = {x.dims[0], channels, expr_mul(c->g->pool, x.dims[2], b), expr_mul(c->g->pool, x.dims[3], b)};
  const uint32_t split = step_reshape(c, c->args[0], 6, crd ? crd_dims : dcr_dims);
  c->results[0] = step_reshape(c, step_transpose(c, split, crd ? block_last : block_first), 4, out);
}

void build_space_to_depth(composite_call *c) {
  static const uint32_t perm[] = {0, 3, 5, 1, 2, 4};
  int64_t b;
  if (!read_block(c, &b)) return;
  const ir_tensor x = *type_of(c, c->args[0]);
  const ir_expr h = expr_div(c->g->pool, x.dims[2], b), w = expr_div(c->g->pool, x.dims[3], b);
  const ir_expr dims[] = {x.dims[0], x.dims[1], h, b, w, b},
                out[] = {x.dims[0], expr_mul(c->g->pool, x.dims[1], expr_int(c->g->pool, b * b)), h, w};
  c->results[0] = step_reshape(c, step_transpose(c, step_reshape(c, c->args[0], 6, dims), perm), 4, out);
}

/* [.., h, ..] -> [.., h, 1, ..] -> [.., h, s, ..] -> [.., h * s, ..], for one axis after the other. */
void build_resize_nearest(composite_call *c) {
  uint32_t y = c->args[0];
  const uint32_t rank = type_of(c, y)->rank;
  int64_t scales[SNT_MAX_RANK];
  if (!call_list(c, IR_PARAM_scales, rank, 1, scales)) return;
  for (uint32_t axis = 0; y && axis < rank; axis++) {
    if (scales[axis] == 1) continue;
    if (scales[axis] < 1 || rank == SNT_MAX_RANK) {
      call_mistake(c, "scales must be whole numbers over 0, the rank at most 7");
      return;
    }
    const ir_tensor shape = *type_of(c, y);
    ir_tensor opened = {.dtype = shape.dtype, .rank = (uint8_t)(rank + 1)};
    for (uint32_t i = 0; i < rank; i++) opened.dims[i <= axis ? i : i + 1] = shape.dims[i];
    opened.dims[axis + 1] = 1;
    y = step_reshape(c, y, rank + 1, opened.dims);
    opened.dims[axis + 1] = scales[axis];
    y = step_broadcast(c, y, &opened);
    ir_expr joined[SNT_MAX_RANK];
    memcpy(joined, shape.dims, sizeof joined);
    joined[axis] = expr_mul(c->g->pool, joined[axis], scales[axis]);
    y = step_reshape(c, y, rank, joined);
  }
  c->results[0] = y;
}

void build_flatten(composite_call *c) {
  const ir_tensor x = *type_of(c, c->args[0]);
  int64_t axis = call_int(c, IR_PARAM_axis, 1);
  if (axis < 0) axis += x.rank;
  if (axis < 0 || axis > x.rank) {
    call_mistake(c, "axis is outside rank %u", x.rank);
    return;
  }
  ir_expr dims[] = {1, 1};
  for (uint32_t i = 0; i < x.rank; i++) dims[i >= axis] = expr_mul(c->g->pool, dims[i >= axis], x.dims[i]);
  c->results[0] = step_reshape(c, c->args[0], 2, dims);
}

/* ---- padding ---- */
typedef enum { PAD_EDGE, PAD_REFLECT, PAD_WRAP } pad_mode;

/* What stands before (or after) the elements of an axis. */
static uint32_t pad_part(composite_call *c, uint32_t x, uint32_t axis, int64_t size, bool after, pad_mode mode) {
  expr_pool *pool = c->g->pool;
  ir_tensor shape = *type_of(c, x);
  const ir_expr extent = shape.dims[axis], last = expr_sub(pool, extent, 1);
  if (mode == PAD_REFLECT) return step_slice(c, x, axis, after ? expr_sub(pool, extent, 2) : size, size, -1);
  if (mode == PAD_WRAP) return step_slice(c, x, axis, after ? 0 : expr_sub(pool, extent, size), size, 1);
  const uint32_t edge = step_slice(c, x, axis, after ? last : 0, 1, 1);
  shape.dims[axis] = size;
  return step_broadcast(c, edge, &shape);
}

/* Negative amounts cut off; what is padded is what is left (ONNX Runtime's order). */
static uint32_t crop(composite_call *c, uint32_t x, uint32_t axis, int64_t low, int64_t high) {
  expr_pool *pool = c->g->pool;
  const int64_t before = low < 0 ? -low : 0, after = high < 0 ? -high : 0;
  const ir_expr left = expr_sub(pool, type_of(c, x)->dims[axis], before + after);
  int64_t known;
  if (before + after == 0) return x;
  if (expr_is_const(pool, left, &known) && known < 1) {
    call_mistake(c, "pads leave %lld of axis %u", (long long)known, axis);
    return 0;
  }
  return step_slice(c, x, axis, before, left, 1);
}

static void pad_all(composite_call *c, pad_mode mode) {
  uint32_t x = c->args[0];
  const uint32_t rank = type_of(c, x)->rank;
  int64_t pads[2 * SNT_MAX_RANK];
  if (!call_list(c, IR_PARAM_pads, 2 * rank, 0, pads)) return;
  for (uint32_t axis = 0; axis < rank; axis++) {
    uint32_t parts[3], count = 0;
    const int64_t low = pads[axis], high = pads[rank + axis];
    if (low < -INT32_MAX || high < -INT32_MAX) {
      call_mistake(c, "pads of axis %u are out of range", axis);
      return;
    }
    if (!(x = crop(c, x, axis, low, high))) return;
    if (low > 0) parts[count++] = pad_part(c, x, axis, low, false, mode);
    parts[count++] = x;
    if (high > 0) parts[count++] = pad_part(c, x, axis, high, true, mode);
    if (!(x = step_concat(c, axis, count, parts))) return;
  }
  c->results[0] = x;
}

void build_pad_edge(composite_call *c) { pad_all(c, PAD_EDGE); }
void build_pad_reflect(composite_call *c) { pad_all(c, PAD_REFLECT); }
void build_pad_wrap(composite_call *c) { pad_all(c, PAD_WRAP); }
