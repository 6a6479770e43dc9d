/* Rules of sources, pointwise operators, scans and casts. Operands have one shape; an operand of rank 0 is repeated over it. */
#include "ir/shape_private.h"

/* The shape that operands first.. share. */
snt_result shape_common(shape_query *q, uint32_t first) {
  uint32_t shaped = first;
  while (shaped + 1 < q->arg_count && shape_arg(q, shaped)->rank == 0) shaped++;
  const ir_tensor *shape = shape_arg(q, shaped);
  for (uint32_t i = first; i < q->arg_count; i++) {
    const ir_tensor *is = shape_arg(q, i);
    if (is->rank == 0 || ir_same_shape(is, shape)) continue;
    if (is->rank != shape->rank)
      return shape_fail(q, "operand %u is %s, operand %u %s: ranks differ, broadcast one of them", i + 1, shape_name_type(q, is),
                        shaped + 1, shape_name_type(q, shape));
    uint32_t axis = 0;
    while (is->dims[axis] == shape->dims[axis]) axis++;
    return shape_fail(q, "operand %u is %s, operand %u %s: axis %u has extents %s and %s", i + 1, shape_name_type(q, is), shaped + 1,
                      shape_name_type(q, shape), axis, shape_name_dim(q, is->dims[axis]), shape_name_dim(q, shape->dims[axis]));
  }
  q->out.rank = shape->rank;
  memcpy(q->out.dims, shape->dims, sizeof shape->dims);
  return SNT_OK;
}

static snt_result same_dtype(shape_query *q, uint32_t first, bool storage) {
  for (uint32_t i = first; i < q->arg_count; i++) {
    SNT_TRY(shape_class(q, i, storage));
    if (shape_arg(q, i)->dtype == shape_arg(q, first)->dtype) continue;
    return shape_fail(q, "operand %u is %s, operand %u %s", i + 1, ir_dtypes[shape_arg(q, i)->dtype].name, first + 1,
                      ir_dtypes[shape_arg(q, first)->dtype].name);
  }
  q->out.dtype = shape_arg(q, first)->dtype;
  return SNT_OK;
}

snt_result shape_same(shape_query *q) {
  SNT_TRY(same_dtype(q, 0, false));
  SNT_TRY(shape_common(q, 0));
  if (!(ir_ops[q->op].flags & IR_SCAN)) return SNT_OK;
  uint32_t axis;
  SNT_TRY(shape_need(q, IR_ATTR_axis));
  return shape_axis(q, IR_ATTR_axis, 0, q->out.rank, &axis);
}

snt_result shape_bool(shape_query *q) {
  SNT_TRY(same_dtype(q, 0, false));
  q->out.dtype = SNT_BOOL;
  return shape_common(q, 0);
}

snt_result shape_select(shape_query *q) {
  if (shape_arg(q, 0)->dtype != SNT_BOOL) return shape_fail(q, "operand 1 is %s, not bool", ir_dtypes[shape_arg(q, 0)->dtype].name);
  SNT_TRY(same_dtype(q, 1, true));
  return shape_common(q, 0);
}

snt_result shape_dot4(shape_query *q) {
  if (shape_arg(q, 0)->dtype != SNT_I32) return shape_fail(q, "the operands are %s, i32 is needed", ir_dtypes[shape_arg(q, 0)->dtype].name);
  return shape_same(q);
}

static snt_result target_dtype(shape_query *q) {
  ir_expr from_type = q->given ? q->given->dtype : 0;
  if (!shape_has(q, IR_ATTR_dtype) && q->given) shape_set(q, IR_ATTR_dtype, 1, &from_type);
  SNT_TRY(shape_need(q, IR_ATTR_dtype));
  const ir_expr dtype = q->ints[IR_ATTR_dtype][0];
  if (dtype <= 0 || dtype >= SNT_DTYPE_COUNT) return shape_fail(q, "unknown element type %lld", (long long)dtype);
  q->out = *shape_arg(q, 0);
  q->out.dtype = (uint8_t)dtype;
  return SNT_OK;
}

snt_result shape_cast(shape_query *q) {
  SNT_TRY(shape_class(q, 0, true));
  return target_dtype(q);
}

snt_result shape_bitcast(shape_query *q) {
  SNT_TRY(shape_class(q, 0, true));
  SNT_TRY(target_dtype(q));
  const ir_dtype_info *from = &ir_dtypes[shape_arg(q, 0)->dtype], *to = &ir_dtypes[q->out.dtype];
  if (from->bits == to->bits && q->out.dtype != SNT_BOOL) return SNT_OK;
  return shape_fail(q, "%s has %u bits, %s %u", from->name, from->bits, to->name, to->bits);
}

snt_result shape_random(shape_query *q) {
  for (uint32_t i = 0; i < 2; i++) {
    uint8_t dtype = shape_arg(q, i)->dtype;
    if (dtype != SNT_U32 && dtype != SNT_U64) return shape_fail(q, "operand %u is %s, not u32 or u64", i + 1, ir_dtypes[dtype].name);
  }
  q->out.dtype = SNT_U32;
  return shape_common(q, 0);
}

static snt_result given_iota(shape_query *q) {
  const ir_expr first = 0;
  uint32_t axis;
  if (q->out.rank == 0) return shape_fail(q, "the result must have an axis");
  if (!shape_has(q, IR_ATTR_axis) && q->out.rank == 1) shape_set(q, IR_ATTR_axis, 1, &first);
  SNT_TRY(shape_need(q, IR_ATTR_axis));
  return shape_axis(q, IR_ATTR_axis, 0, q->out.rank, &axis);
}

static snt_result given_dim(shape_query *q) {
  SNT_TRY(shape_need(q, IR_ATTR_shape));
  if (q->attr[IR_ATTR_shape].count != 1) return shape_fail(q, "shape has %u entries, 1 is needed", q->attr[IR_ATTR_shape].count);
  return q->out.rank == 0 ? SNT_OK : shape_fail(q, "the result has rank 0");
}

snt_result shape_given(shape_query *q) {
  const ir_tensor number = {.dtype = SNT_I64};
  if (!q->given && q->op != IR_OP_dim) return shape_fail(q, "a type must be declared");
  q->out = q->given ? *q->given : number;
  const ir_dtype_info *info = &ir_dtypes[q->out.dtype];
  const uint8_t is = info->is_float ? IR_CLASS_F : info->is_int ? IR_CLASS_I : IR_CLASS_B;
  if (!(ir_ops[q->op].classes & is)) return shape_fail(q, "the result may not be %s", info->name);
  if (q->op == IR_OP_iota) return given_iota(q);
  if (q->op == IR_OP_dim) return given_dim(q);
  if (q->op == IR_OP_argument) return shape_need(q, IR_ATTR_index);
  return SNT_OK;
}
