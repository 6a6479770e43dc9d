/* Rules of the movement operators. Extents may be symbolic: they are compared as canonical expressions. */
#include "ir/shape_private.h"

/* The declared shape stands in for the attribute `shape`. */
static snt_result wanted_shape(shape_query *q) {
  if (!shape_has(q, IR_ATTR_shape) && q->given) shape_set(q, IR_ATTR_shape, q->given->rank, q->given->dims);
  SNT_TRY(shape_need(q, IR_ATTR_shape));
  q->out.dtype = shape_arg(q, 0)->dtype;
  q->out.rank = (uint8_t)q->attr[IR_ATTR_shape].count;
  memcpy(q->out.dims, q->ints[IR_ATTR_shape], q->out.rank * sizeof *q->out.dims);
  return SNT_OK;
}

/* The extent written -1 takes what the others leave. */
static snt_result fill_wildcard(shape_query *q, ir_expr total) {
  uint32_t hole = SNT_MAX_RANK;
  ir_expr rest = 1;
  for (uint32_t i = 0; i < q->out.rank; i++) {
    int64_t extent;
    bool open = expr_is_const(q->pool, q->out.dims[i], &extent) && extent == -1;
    if (open && hole < SNT_MAX_RANK) return shape_fail(q, "shape has two extents of -1");
    if (open) hole = i;
    else rest = expr_mul(q->pool, rest, q->out.dims[i]);
  }
  if (hole == SNT_MAX_RANK) return SNT_OK;
  int64_t lo, hi;
  expr_bounds(q->pool, rest, &lo, &hi);
  if (lo <= 0) return shape_fail(q, "-1 beside an extent that may be 0");
  q->out.dims[hole] = expr_div(q->pool, total, rest);
  shape_set(q, IR_ATTR_shape, q->out.rank, q->out.dims);
  return SNT_OK;
}

snt_result shape_reshape(shape_query *q) {
  SNT_TRY(wanted_shape(q));
  const ir_expr total = ir_tensor_elements(q->pool, shape_arg(q, 0));
  SNT_TRY(fill_wildcard(q, total));
  const ir_expr made = ir_tensor_elements(q->pool, &q->out);
  if (total == made) return SNT_OK;
  return shape_fail(q, "%s has %s elements, %s %s", shape_name_type(q, shape_arg(q, 0)), shape_name_dim(q, total),
                    shape_name_type(q, &q->out), shape_name_dim(q, made));
}

snt_result shape_transpose(shape_query *q) {
  const ir_tensor *x = shape_arg(q, 0);
  uint32_t seen = 0;
  SNT_TRY(shape_need(q, IR_ATTR_perm));
  SNT_TRY(shape_list(q, IR_ATTR_perm, x->rank, 0));
  q->out = (ir_tensor){.dtype = x->dtype, .rank = x->rank};
  for (uint32_t i = 0; i < x->rank; i++) {
    uint32_t axis;
    SNT_TRY(shape_axis(q, IR_ATTR_perm, i, x->rank, &axis));
    if (seen & (1u << axis)) return shape_fail(q, "perm names axis %u twice", axis);
    seen |= 1u << axis;
    q->out.dims[i] = x->dims[axis];
  }
  return SNT_OK;
}

snt_result shape_broadcast(shape_query *q) {
  const ir_tensor *x = shape_arg(q, 0);
  SNT_TRY(wanted_shape(q));
  if (x->rank > q->out.rank) return shape_fail(q, "operand 1 is %s, the result has rank %u", shape_name_type(q, x), q->out.rank);
  if (!shape_has(q, IR_ATTR_axes)) {
    ir_expr trailing[SNT_MAX_RANK] = {0};
    for (uint32_t i = 0; i < x->rank; i++) trailing[i] = q->out.rank - x->rank + i;
    shape_set(q, IR_ATTR_axes, x->rank, trailing);
  }
  SNT_TRY(shape_list(q, IR_ATTR_axes, x->rank, 0));
  int64_t before = -1;
  for (uint32_t i = 0; i < x->rank; i++) {
    uint32_t axis;
    SNT_TRY(shape_axis(q, IR_ATTR_axes, i, q->out.rank, &axis));
    if ((int64_t)axis <= before) return shape_fail(q, "axes must ascend");
    before = axis;
    if (x->dims[i] != 1 && x->dims[i] != q->out.dims[axis])
      return shape_fail(q, "axis %u of operand 1 has extent %s, axis %u of the result %s", i, shape_name_dim(q, x->dims[i]), axis,
                        shape_name_dim(q, q->out.dims[axis]));
  }
  return SNT_OK;
}

/* First and last element read along an axis must be proven to lie in the operand: a slice is a view and tests nothing. */
static snt_result check_slice(shape_query *q, uint32_t axis, int64_t step) {
  const ir_expr dim = shape_arg(q, 0)->dims[axis], start = q->ints[IR_ATTR_starts][axis], size = q->ints[IR_ATTR_sizes][axis];
  if (size == 0) return SNT_OK;
  const ir_expr reach = expr_mul(q->pool, expr_sub(q->pool, size, 1), expr_int(q->pool, step)), last = expr_add(q->pool, start, reach);
  const ir_expr low = step > 0 ? start : last, high = step > 0 ? last : start;
  if (expr_proves_le(q->pool, 0, low) && expr_proves_lt(q->pool, high, dim)) return SNT_OK;
  return shape_fail(q, "axis %u reads from %s to %s, which cannot be shown to lie within extent %s", axis, shape_name_dim(q, low),
                    shape_name_dim(q, high), shape_name_dim(q, dim));
}

snt_result shape_slice(shape_query *q) {
  const ir_tensor *x = shape_arg(q, 0);
  SNT_TRY(shape_need(q, IR_ATTR_sizes));
  SNT_TRY(shape_list(q, IR_ATTR_starts, x->rank, 0));
  SNT_TRY(shape_list(q, IR_ATTR_sizes, x->rank, 0));
  SNT_TRY(shape_list(q, IR_ATTR_steps, x->rank, 1));
  q->out = (ir_tensor){.dtype = x->dtype, .rank = x->rank};
  for (uint32_t i = 0; i < x->rank; i++) {
    int64_t step;
    if (!expr_is_const(q->pool, q->ints[IR_ATTR_steps][i], &step) || step == 0)
      return shape_fail(q, "the step of axis %u must be a number other than 0", i);
    SNT_TRY(check_slice(q, i, step));
    q->out.dims[i] = q->ints[IR_ATTR_sizes][i];
  }
  return SNT_OK;
}

snt_result shape_pad(shape_query *q) {
  const ir_tensor *x = shape_arg(q, 0);
  SNT_TRY(shape_list(q, IR_ATTR_low, x->rank, 0));
  SNT_TRY(shape_list(q, IR_ATTR_high, x->rank, 0));
  SNT_TRY(shape_fill_value(q));
  q->out = (ir_tensor){.dtype = x->dtype, .rank = x->rank};
  for (uint32_t i = 0; i < x->rank; i++)
    q->out.dims[i] = expr_add(q->pool, expr_add(q->pool, x->dims[i], q->ints[IR_ATTR_low][i]), q->ints[IR_ATTR_high][i]);
  return SNT_OK;
}

snt_result shape_concat(shape_query *q) {
  const ir_tensor *first = shape_arg(q, 0);
  uint32_t axis;
  SNT_TRY(shape_need(q, IR_ATTR_axis));
  SNT_TRY(shape_axis(q, IR_ATTR_axis, 0, first->rank, &axis));
  q->out = *first;
  for (uint32_t i = 1; i < q->arg_count; i++) {
    const ir_tensor *x = shape_arg(q, i);
    bool fits = x->dtype == first->dtype && x->rank == first->rank;
    for (uint32_t d = 0; fits && d < x->rank; d++) fits = d == axis || x->dims[d] == first->dims[d];
    if (!fits)
      return shape_fail(q, "operand %u is %s, operand 1 %s: only axis %u may differ", i + 1, shape_name_type(q, x),
                        shape_name_type(q, first), axis);
    q->out.dims[axis] = expr_add(q->pool, q->out.dims[axis], x->dims[axis]);
  }
  return SNT_OK;
}

/* Positions along one axis: (extent + low + high - dilation * (size - 1) - 1) / stride + 1. */
static snt_result window_axis(shape_query *q, uint32_t axis, uint32_t i) {
  int64_t size, stride, dilation;
  if (!expr_is_const(q->pool, q->ints[IR_ATTR_size][i], &size) || size < 1 || size > INT32_MAX)
    return shape_fail(q, "size must be numbers over 0");
  if (!expr_is_const(q->pool, q->ints[IR_ATTR_stride][i], &stride) || stride < 1) return shape_fail(q, "stride must be numbers over 0");
  if (!expr_is_const(q->pool, q->ints[IR_ATTR_dilation][i], &dilation) || dilation < 1 || dilation > INT32_MAX)
    return shape_fail(q, "dilation must be numbers over 0");
  const ir_expr padded = expr_add(q->pool, expr_add(q->pool, shape_arg(q, 0)->dims[axis], q->ints[IR_ATTR_low][i]),
                                  q->ints[IR_ATTR_high][i]);
  const ir_expr room = expr_add(q->pool, padded, expr_int(q->pool, -dilation * (size - 1) - 1));
  int64_t lo, hi;
  expr_bounds(q->pool, room, &lo, &hi);
  if (hi < 0)
    return shape_fail(q, "%lld taps %lld apart do not fit axis %u, which has extent %s with its padding", (long long)size,
                      (long long)dilation, axis, shape_name_dim(q, padded));
  q->out.dims[axis] = expr_add(q->pool, expr_div(q->pool, room, expr_int(q->pool, stride)), 1);
  q->out.dims[q->out.rank++] = size;
  return SNT_OK;
}

snt_result shape_window(shape_query *q) {
  const ir_tensor *x = shape_arg(q, 0);
  uint32_t first;
  SNT_TRY(shape_need(q, IR_ATTR_axis));
  SNT_TRY(shape_need(q, IR_ATTR_size));
  SNT_TRY(shape_axis(q, IR_ATTR_axis, 0, x->rank, &first));
  const uint32_t count = q->attr[IR_ATTR_size].count;
  if (count == 0 || first + count > x->rank) return shape_fail(q, "%u axes from axis %u, the operand has rank %u", count, first, x->rank);
  if (x->rank + count > SNT_MAX_RANK) return shape_fail(q, "the result would have rank %u", x->rank + count);
  SNT_TRY(shape_list(q, IR_ATTR_stride, count, 1));
  SNT_TRY(shape_list(q, IR_ATTR_dilation, count, 1));
  SNT_TRY(shape_list(q, IR_ATTR_low, count, 0));
  SNT_TRY(shape_list(q, IR_ATTR_high, count, 0));
  SNT_TRY(shape_fill_value(q));
  q->out = *x;
  for (uint32_t i = 0; i < count; i++) SNT_TRY(window_axis(q, first + i, i));
  return SNT_OK;
}

snt_result shape_words(shape_query *q) {
  const ir_tensor *x = shape_arg(q, 0);
  if (x->dtype != SNT_U8 && x->dtype != SNT_I8) return shape_fail(q, "the operand is %s, u8 or i8 is needed", ir_dtypes[x->dtype].name);
  q->out = *x;
  q->out.dtype = SNT_I32;
  const ir_expr last = x->rank ? x->dims[x->rank - 1] : 1, four = expr_int(q->pool, 4);
  if (expr_mod(q->pool, last, four) != 0) return shape_fail(q, "the last axis of %s is no multiple of four", shape_name_type(q, x));
  q->out.dims[x->rank - 1] = expr_div(q->pool, last, four);
  return SNT_OK;
}
