/* Rules of reductions and of the contraction. */
#include "ir/shape_private.h"

/* The axes as a mask, sorted in the stored attribute. */
static snt_result read_axes(shape_query *q, uint32_t rank, uint32_t *mask) {
  SNT_TRY(shape_need(q, IR_ATTR_axes));
  *mask = 0;
  for (uint32_t i = 0; i < q->attr[IR_ATTR_axes].count; i++) {
    uint32_t axis;
    SNT_TRY(shape_axis(q, IR_ATTR_axes, i, rank, &axis));
    if (*mask & (1u << axis)) return shape_fail(q, "axis %u is named twice", axis);
    *mask |= 1u << axis;
  }
  ir_expr sorted[SNT_MAX_RANK];
  uint32_t count = 0;
  for (uint32_t axis = 0; axis < rank; axis++)
    if (*mask & (1u << axis)) sorted[count++] = axis;
  shape_set(q, IR_ATTR_axes, count, sorted);
  return SNT_OK;
}

snt_result shape_reduce(shape_query *q) {
  const ir_tensor *x = shape_arg(q, 0);
  uint32_t mask;
  SNT_TRY(shape_class(q, 0, false));
  SNT_TRY(read_axes(q, x->rank, &mask));
  q->out.dtype = x->dtype;
  for (uint32_t axis = 0; axis < x->rank; axis++) {
    if (!(mask & (1u << axis))) q->out.dims[q->out.rank++] = x->dims[axis];
    else if (shape_has(q, IR_ATTR_keep)) q->out.dims[q->out.rank++] = 1;
  }
  return SNT_OK;
}

snt_result shape_reduce_index(shape_query *q) {
  SNT_TRY(shape_reduce(q));
  if (q->attr[IR_ATTR_axes].count != 1) return shape_fail(q, "%u axes, 1 is needed", q->attr[IR_ATTR_axes].count);
  q->out.dtype = SNT_I64;
  return SNT_OK;
}

/* ---- contract ---- */
typedef struct labels { /* every label once, in order of first appearance over lhs, rhs */
  int64_t name[2 * SNT_MAX_RANK];
  ir_expr extent[2 * SNT_MAX_RANK];
  uint8_t sides[2 * SNT_MAX_RANK]; /* 1: in lhs, 2: in rhs, 4: in out */
  uint32_t count;
} labels;

static uint32_t find_label(const labels *l, int64_t name) {
  uint32_t i = 0;
  while (i < l->count && l->name[i] != name) i++;
  return i;
}

static snt_result read_operand_labels(shape_query *q, labels *l, uint32_t operand, ir_attr_key key) {
  const ir_tensor *x = shape_arg(q, operand);
  SNT_TRY(shape_need(q, key));
  if (q->attr[key].count != x->rank)
    return shape_fail(q, "%s names %u axes, operand %u is %s", ir_attr_infos[key].name, q->attr[key].count, operand + 1,
                      shape_name_type(q, x));
  for (uint32_t axis = 0; axis < x->rank; axis++) {
    int64_t name;
    if (!expr_is_const(q->pool, q->ints[key][axis], &name)) return shape_fail(q, "a label of %s is no number", ir_attr_infos[key].name);
    uint32_t at = find_label(l, name);
    if (at == l->count) l->name[at] = name, l->extent[at] = x->dims[axis], l->sides[at] = 0, l->count++;
    if (l->sides[at] & (1u << operand)) return shape_fail(q, "label %lld is twice in %s", (long long)name, ir_attr_infos[key].name);
    if (l->extent[at] != x->dims[axis])
      return shape_fail(q, "axis %u of operand %u (label %lld) has extent %s, operand 1 has %s", axis, operand + 1, (long long)name,
                        shape_name_dim(q, x->dims[axis]), shape_name_dim(q, l->extent[at]));
    l->sides[at] |= (uint8_t)(1u << operand);
    q->ints[key][axis] = at;
  }
  return SNT_OK;
}

static snt_result read_out_labels(shape_query *q, labels *l) {
  SNT_TRY(shape_need(q, IR_ATTR_out));
  q->out.rank = (uint8_t)q->attr[IR_ATTR_out].count;
  for (uint32_t i = 0; i < q->out.rank; i++) {
    int64_t name;
    if (!expr_is_const(q->pool, q->ints[IR_ATTR_out][i], &name)) return shape_fail(q, "a label of out is no number");
    uint32_t at = find_label(l, name);
    if (at == l->count) return shape_fail(q, "label %lld of out is in no operand", (long long)name);
    if (l->sides[at] & 4) return shape_fail(q, "label %lld is twice in out", (long long)name);
    l->sides[at] |= 4;
    q->out.dims[i] = l->extent[at];
    q->ints[IR_ATTR_out][i] = at;
  }
  for (uint32_t i = 0; i < l->count; i++)
    if (l->sides[i] == 1 || l->sides[i] == 2)
      return shape_fail(q, "label %lld is in one operand only and not in out: reduce that axis first", (long long)l->name[i]);
  return SNT_OK;
}

/* Words of bytes: i32 on both sides, summed in i32. */
static snt_result packed_dtype(shape_query *q) {
  for (uint32_t i = 0; i < 2; i++)
    if (shape_arg(q, i)->dtype != SNT_I32)
      return shape_fail(q, "packed operands are i32, operand %u is %s", i + 1, ir_dtypes[shape_arg(q, i)->dtype].name);
  return q->out.dtype == SNT_I32 ? SNT_OK : shape_fail(q, "the result of packed operands is i32");
}

static snt_result contract_dtype(shape_query *q) {
  const uint8_t lhs = shape_arg(q, 0)->dtype, rhs = shape_arg(q, 1)->dtype;
  if (ir_dtypes[lhs].is_float != ir_dtypes[rhs].is_float)
    return shape_fail(q, "operand 1 is %s, operand 2 %s", ir_dtypes[lhs].name, ir_dtypes[rhs].name);
  if (lhs != rhs && (lhs == SNT_F64 || rhs == SNT_F64))
    return shape_fail(q, "operand 1 is %s, operand 2 %s: cast one", ir_dtypes[lhs].name, ir_dtypes[rhs].name);
  ir_expr dtype = q->given ? q->given->dtype : lhs;
  if (!shape_has(q, IR_ATTR_dtype)) {
    if (lhs != rhs && !q->given) return shape_fail(q, "operands are %s and %s: dtype is needed", ir_dtypes[lhs].name, ir_dtypes[rhs].name);
    shape_set(q, IR_ATTR_dtype, 1, &dtype);
  }
  dtype = q->ints[IR_ATTR_dtype][0];
  bool known = dtype > 0 && dtype < SNT_DTYPE_COUNT;
  if (!known || ir_dtypes[dtype].is_float != ir_dtypes[lhs].is_float || dtype == SNT_BOOL)
    return shape_fail(q, "the result may not be %s", known ? ir_dtypes[dtype].name : "of that type");
  q->out.dtype = (uint8_t)dtype;
  return SNT_OK;
}

snt_result shape_contract(shape_query *q) {
  labels l = {.count = 0};
  SNT_TRY(shape_class(q, 0, false));
  SNT_TRY(shape_class(q, 1, false));
  SNT_TRY(contract_dtype(q));
  if (shape_has(q, IR_ATTR_packed)) SNT_TRY(packed_dtype(q));
  SNT_TRY(read_operand_labels(q, &l, 0, IR_ATTR_lhs));
  SNT_TRY(read_operand_labels(q, &l, 1, IR_ATTR_rhs));
  return read_out_labels(q, &l);
}
