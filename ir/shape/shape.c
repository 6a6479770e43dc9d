/* Type inference: reads the attributes, calls the rule of the operator's row, checks the result against what was declared.
   The rules are in ir/shape/pointwise.c, shape/reduce.c, shape/move.c and shape/index.c. */
#include "ir/custom.h"
#include "ir/shape_private.h"

static const shape_rule rules[IR_RULE_COUNT] = {
    [IR_RULE_GIVEN] = shape_given,
    [IR_RULE_RANDOM] = shape_random,
    [IR_RULE_SAME] = shape_same,
    [IR_RULE_BOOL] = shape_bool,
    [IR_RULE_SELECT] = shape_select,
    [IR_RULE_DOT4] = shape_dot4,
    [IR_RULE_CAST] = shape_cast,
    [IR_RULE_BITCAST] = shape_bitcast,
    [IR_RULE_REDUCE] = shape_reduce,
    [IR_RULE_REDUCE_INDEX] = shape_reduce_index,
    [IR_RULE_ARGSORT] = shape_argsort,
    [IR_RULE_CONTRACT] = shape_contract,
    [IR_RULE_RESHAPE] = shape_reshape,
    [IR_RULE_TRANSPOSE] = shape_transpose,
    [IR_RULE_BROADCAST] = shape_broadcast,
    [IR_RULE_SLICE] = shape_slice,
    [IR_RULE_PAD] = shape_pad,
    [IR_RULE_CONCAT] = shape_concat,
    [IR_RULE_WINDOW] = shape_window,
    [IR_RULE_WORDS] = shape_words,
    [IR_RULE_GATHER] = shape_gather,
    [IR_RULE_SCATTER] = shape_scatter,
    [IR_RULE_REPEAT] = shape_repeat,
    [IR_RULE_LOOP] = shape_loop,
    [IR_RULE_PICK] = shape_pick,
    [IR_RULE_CUSTOM] = shape_custom,
    [IR_RULE_OPAQUE] = shape_opaque,
};

static snt_result read_attr(shape_query *q, const ir_attr_value *a) {
  if (a->key == IR_ATTR_NONE || a->key >= IR_ATTR_COUNT) return shape_fail(q, "unknown attribute %u", a->key);
  const ir_attr_info *info = &ir_attr_infos[a->key];
  if (!(ir_ops[q->op].attrs >> a->key & 1)) return shape_fail(q, "takes no attribute %s", info->name);
  if (shape_has(q, a->key)) return shape_fail(q, "attribute %s is given twice", info->name);
  if (info->kind == IR_KIND_TEXT) { /* long: the caller's numbers as they are */
    if (!ir_text_attr_fits(a->ints, a->count)) return shape_fail(q, "attribute %s is no text", info->name);
    q->has |= UINT64_C(1) << a->key;
    q->attr[a->key] = *a;
    return SNT_OK;
  }
  uint32_t most = info->kind == IR_KIND_FLAG ? 0 : info->kind == IR_KIND_INTS ? SHAPE_MAX_INTS : 1;
  uint32_t least = info->kind == IR_KIND_INTS ? 0 : most;
  if (a->count > most || a->count < least) return shape_fail(q, "attribute %s has %u values", info->name, a->count);
  shape_set(q, a->key, a->count, a->ints);
  return SNT_OK;
}

snt_result shape_check_type(expr_pool *pool, const ir_tensor *type, snt_diag *diag) {
  if (type->dtype == 0 || type->dtype >= SNT_DTYPE_COUNT)
    return ir_fail(diag, SNT_E_ARG, "shape", 0, "unknown element type %u", type->dtype);
  if (type->rank > SNT_MAX_RANK) return ir_fail(diag, SNT_E_SHAPE, "shape", 0, "rank %u is over %d", type->rank, SNT_MAX_RANK);
  int64_t elements = 1, extent, lo, hi;
  for (uint32_t i = 0; i < type->rank; i++) {
    expr_bounds(pool, type->dims[i], &lo, &hi);
    if (hi < 0) return ir_fail(diag, SNT_E_SHAPE, "shape", 0, "the extent of axis %u is negative (at most %lld)", i, (long long)hi);
    if (!expr_is_const(pool, type->dims[i], &extent) || extent <= 1) continue;
    if (elements > (INT64_C(1) << 56) / extent) return ir_fail(diag, SNT_E_SHAPE, "shape", 0, "more than 2^56 elements");
    elements *= extent;
  }
  return SNT_OK;
}

static snt_result check_declared(shape_query *q) {
  const ir_tensor *given = q->given;
  if (!given || ir_ops[q->op].rule == IR_RULE_GIVEN) return SNT_OK;
  if (given->dtype == q->out.dtype && ir_same_shape(given, &q->out)) return SNT_OK;
  return shape_fail(q, "the result is %s, declared as %s", shape_name_type(q, &q->out), shape_name_type(q, given));
}

static snt_result check_arity(shape_query *q) {
  const uint8_t arity = ir_ops[q->op].arity;
  if (arity == IR_VARIADIC && (q->arg_count == 0 || q->arg_count > 255)) return shape_fail(q, "%u operands", q->arg_count);
  if (arity != IR_VARIADIC && arity != q->arg_count) return shape_fail(q, "%u operands, %u are needed", q->arg_count, arity);
  return SNT_OK;
}

snt_result shape_infer(shape_query *q, const ir_graph *g, const ir_node_desc *node, snt_diag *diag) {
  q->has = 0;
  memset(&q->out, 0, sizeof q->out);
  q->g = g, q->pool = g->pool, q->op = node->op, q->arg_count = node->arg_count, q->args = node->args, q->given = node->given,
  q->diag = diag;
  snt_diag unused;
  if (!diag) q->diag = &unused;
  SNT_TRY(check_arity(q));
  for (uint32_t i = 0; i < node->attr_count; i++) SNT_TRY(read_attr(q, &node->attrs[i]));
  if (q->given && shape_check_type(q->pool, q->given, diag) != SNT_OK) return shape_fail(q, "the declared type is impossible");
  SNT_TRY(rules[ir_ops[q->op].rule](q));
  snt_diag wrong;
  if (shape_check_type(q->pool, &q->out, &wrong) != SNT_OK) return shape_fail(q, "the result is impossible: %s", wrong.text);
  return check_declared(q);
}

snt_result ir_infer_type(const ir_graph *g, const ir_node_desc *node, ir_tensor *out, snt_diag *diag) {
  shape_query q;
  SNT_TRY(shape_infer(&q, g, node, diag));
  *out = q.out;
  return SNT_OK;
}
