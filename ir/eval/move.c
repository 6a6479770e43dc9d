/* Movement operators on views. Transpose, broadcast, slice and window (after padding) only change strides; reshape does where it can;
   pad and concat copy. */
#include "ir/eval/private.h"
#include <math.h>

static snt_result dims_of(eval_ctx *ctx, uint32_t node, ir_attr_key key, int64_t *out) {
  uint32_t count;
  const ir_expr *ints = ir_attr_ints(ctx->g, node, key, &count);
  for (uint32_t i = 0; i < count && i < SNT_MAX_RANK; i++) SNT_TRY(eval_dim(ctx, ints[i], &out[i]));
  return SNT_OK;
}

/* The strides of the same elements under new dims, if there are any: runs of axes with equal products must be one axis in memory. */
static bool reshape_strides(const eval_view *from, eval_view *to) {
  uint32_t i = 0, j = 0;
  while (i < from->rank || j < to->rank) {
    const uint32_t first = i, start = j;
    int64_t a = i < from->rank ? from->dims[i++] : 1, b = j < to->rank ? to->dims[j++] : 1;
    while (a != b) {
      if (a < b && i < from->rank) a *= from->dims[i++];
      else if (j < to->rank) b *= to->dims[j++];
      else return false;
    }
    int64_t stride = 0, span = 0; /* of the axis the run makes */
    for (uint32_t k = first; k < i; k++) {
      if (from->dims[k] == 1) continue;
      if (span && stride != from->strides[k] * from->dims[k]) return false;
      stride = from->strides[k];
      span = 1;
    }
    for (uint32_t k = j; k-- > start;) {
      to->strides[k] = stride;
      stride *= to->dims[k];
    }
  }
  return true;
}

static snt_result move_reshape(eval_ctx *ctx, const eval_view *x, eval_view *out) {
  if (x->count && reshape_strides(x, out)) {
    out->offset = x->offset;
    out->buffer = x->buffer;
    out->buffer->references++;
    return SNT_OK;
  }
  eval_view dense, shape = *out;
  SNT_TRY(eval_dense(ctx, x, &dense));
  eval_set_dense(&shape);
  shape.offset = dense.offset;
  shape.buffer = dense.buffer;
  *out = shape;
  return SNT_OK;
}

static snt_result move_strides(eval_ctx *ctx, uint32_t node, const eval_view *x, eval_view *out) {
  int64_t axes[SNT_MAX_RANK] = {0}, starts[SNT_MAX_RANK] = {0}, steps[SNT_MAX_RANK] = {0};
  out->offset = x->offset;
  memset(out->strides, 0, sizeof out->strides);
  switch (ir_at(ctx->g, node)->op) {
  case IR_OP_transpose:
    SNT_TRY(dims_of(ctx, node, IR_ATTR_perm, axes));
    for (uint32_t i = 0; i < x->rank; i++) out->strides[i] = x->strides[axes[i]];
    break;
  case IR_OP_broadcast:
    SNT_TRY(dims_of(ctx, node, IR_ATTR_axes, axes));
    for (uint32_t i = 0; i < x->rank; i++) out->strides[axes[i]] = x->dims[i] == 1 ? 0 : x->strides[i];
    break;
  default:
    SNT_TRY(dims_of(ctx, node, IR_ATTR_starts, starts));
    SNT_TRY(dims_of(ctx, node, IR_ATTR_steps, steps));
    for (uint32_t i = 0; i < x->rank; i++) {
      int64_t last = starts[i] + (out->dims[i] - 1) * steps[i];
      if (out->count && (starts[i] < 0 || starts[i] >= x->dims[i] || last < 0 || last >= x->dims[i]))
        return eval_fail(ctx, node, SNT_E_SHAPE, "the slice leaves its operand");
      out->offset += starts[i] * x->strides[i];
      out->strides[i] = steps[i] * x->strides[i];
    }
    if (out->count == 0) out->offset = x->offset;
    break;
  }
  out->buffer = x->buffer;
  out->buffer->references++;
  return SNT_OK;
}

/* x inside a larger array; negative padding cuts. */
static snt_result pad_view(eval_ctx *ctx, uint32_t node, const eval_view *x, const int64_t *low, const int64_t *dims, eval_view *out) {
  uint64_t element;
  eval_view from = *x;
  *out = *x;
  out->buffer = NULL;
  memcpy(out->dims, dims, x->rank * sizeof *dims);
  for (uint32_t i = 0; i < x->rank; i++)
    if (dims[i] < 0) return eval_fail(ctx, node, SNT_E_SHAPE, "a negative extent");
  SNT_TRY(eval_new(ctx, out, x->buffer->bound != NULL));
  eval_element(ctx, x->dtype, ir_attr_int(ctx->g, node, IR_ATTR_value, 0), &element);
  eval_fill(ctx, out, &element);
  eval_view to = *out;
  from.count = 1;
  for (uint32_t i = 0; i < x->rank; i++) {
    int64_t begin = low[i] < 0 ? -low[i] : 0, end = low[i] + x->dims[i] > dims[i] ? dims[i] - low[i] : x->dims[i];
    from.dims[i] = to.dims[i] = end > begin ? end - begin : 0;
    from.offset += begin * from.strides[i];
    to.offset += (low[i] + begin) * to.strides[i];
    from.count *= (uint64_t)from.dims[i];
  }
  to.count = from.count;
  eval_copy(ctx, &from, &to);
  return SNT_OK;
}

static snt_result move_pad(eval_ctx *ctx, uint32_t node, const eval_view *x, eval_view *out) {
  int64_t low[SNT_MAX_RANK] = {0}, dims[SNT_MAX_RANK];
  SNT_TRY(dims_of(ctx, node, IR_ATTR_low, low));
  memcpy(dims, out->dims, sizeof dims);
  return pad_view(ctx, node, x, low, dims, out);
}

static snt_result move_window(eval_ctx *ctx, uint32_t node, const eval_view *x, eval_view *out) {
  int64_t low[SNT_MAX_RANK] = {0}, high[SNT_MAX_RANK] = {0}, stride[SNT_MAX_RANK] = {0}, dilation[SNT_MAX_RANK] = {0}, dims[SNT_MAX_RANK];
  int64_t all_low[SNT_MAX_RANK] = {0};
  uint32_t count, first = (uint32_t)ir_attr_int(ctx->g, node, IR_ATTR_axis, 0);
  ir_attr_ints(ctx->g, node, IR_ATTR_size, &count);
  SNT_TRY(dims_of(ctx, node, IR_ATTR_low, low));
  SNT_TRY(dims_of(ctx, node, IR_ATTR_high, high));
  SNT_TRY(dims_of(ctx, node, IR_ATTR_stride, stride));
  SNT_TRY(dims_of(ctx, node, IR_ATTR_dilation, dilation));
  memcpy(dims, x->dims, sizeof dims);
  bool padded = false;
  for (uint32_t i = 0; i < count; i++) {
    padded |= low[i] != 0 || high[i] != 0;
    all_low[first + i] = low[i];
    dims[first + i] += low[i] + high[i];
  }
  eval_view source;
  if (padded) SNT_TRY(pad_view(ctx, node, x, all_low, dims, &source));
  else source = eval_share(x);
  out->buffer = source.buffer;
  out->offset = source.offset;
  memcpy(out->strides, source.strides, sizeof out->strides);
  for (uint32_t i = 0; i < count; i++) {
    out->strides[first + i] = source.strides[first + i] * stride[i];
    out->strides[x->rank + i] = source.strides[first + i] * dilation[i];
  }
  return SNT_OK;
}

static snt_result move_concat(eval_ctx *ctx, uint32_t node, eval_view *out) {
  const ir_node *n = ir_at(ctx->g, node);
  uint32_t axis = (uint32_t)ir_attr_int(ctx->g, node, IR_ATTR_axis, 0);
  bool bounds = false;
  for (uint32_t i = 0; i < n->arity; i++) bounds |= ctx->values[ir_arg(ctx->g, node, i)].buffer->bound != NULL;
  SNT_TRY(eval_new(ctx, out, bounds));
  eval_view part = *out;
  for (uint32_t i = 0; i < n->arity; i++) {
    const eval_view *x = &ctx->values[ir_arg(ctx->g, node, i)];
    part.dims[axis] = x->dims[axis];
    part.count = x->count;
    eval_copy(ctx, x, &part);
    part.offset += x->dims[axis] * part.strides[axis];
  }
  return SNT_OK;
}

/* Bits of bytes that are not exactly known are anything. */
static snt_result move_words(eval_ctx *ctx, const eval_view *x, eval_view *out) {
  const double *bound = x->buffer->bound;
  SNT_TRY(eval_new(ctx, out, bound != NULL));
  for (uint64_t i = 0; i < out->count; i++) {
    uint32_t word = 0;
    double e = 0;
    for (uint32_t byte = 0; byte < 4; byte++) {
      const int64_t at = eval_offset_at(x, 4 * i + byte);
      const int64_t value = ctx->engine->bounds ? ((const int64_t *)x->buffer->data)[at]
                                                : ir_dtype_load_int(x->dtype, x->buffer->data, (size_t)at);
      word |= ((uint32_t)value & 255) << (8 * byte);
      if (bound && bound[at] > 0) e = INFINITY;
    }
    if (ctx->engine->bounds) ref_save_int(out, i, (bounded_int){(int32_t)word, e});
    else ((int32_t *)out->buffer->data)[i] = (int32_t)word;
  }
  return SNT_OK;
}

snt_result eval_movement(eval_ctx *ctx, uint32_t node, eval_view *out) {
  const eval_view *x = ir_at(ctx->g, node)->arity ? &ctx->values[ir_arg(ctx->g, node, 0)] : NULL;
  SNT_TRY(eval_type_of(ctx, node, out));
  switch (ir_at(ctx->g, node)->op) {
  case IR_OP_reshape: return move_reshape(ctx, x, out);
  case IR_OP_pad: return move_pad(ctx, node, x, out);
  case IR_OP_concat: return move_concat(ctx, node, out);
  case IR_OP_window: return move_window(ctx, node, x, out);
  case IR_OP_words: return move_words(ctx, x, out);
  default: return move_strides(ctx, node, x, out);
  }
}
