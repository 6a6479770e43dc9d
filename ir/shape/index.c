/* Rules of gather, scatter, repeat and pick. */
#include "ir/shape_private.h"

/* x with `axis` replaced by the axes of the index: what gather gives and what scatter takes. */
static snt_result picked_shape(shape_query *q, ir_tensor *out) {
  const ir_tensor *x = shape_arg(q, 0), *index = shape_arg(q, 1);
  uint32_t axis;
  SNT_TRY(shape_list(q, IR_ATTR_axis, 1, 0));
  SNT_TRY(shape_axis(q, IR_ATTR_axis, 0, x->rank, &axis));
  if (!ir_dtypes[index->dtype].is_int || ir_dtypes[index->dtype].bits < 8)
    return shape_fail(q, "operand 2 (the index) is %s, no integer", ir_dtypes[index->dtype].name);
  if (x->rank - 1u + index->rank > SNT_MAX_RANK) return shape_fail(q, "the result would have rank %u", x->rank - 1u + index->rank);
  *out = (ir_tensor){.dtype = x->dtype};
  for (uint32_t i = 0; i < axis; i++) out->dims[out->rank++] = x->dims[i];
  for (uint32_t i = 0; i < index->rank; i++) out->dims[out->rank++] = index->dims[i];
  for (uint32_t i = axis + 1; i < x->rank; i++) out->dims[out->rank++] = x->dims[i];
  return SNT_OK;
}

snt_result shape_gather(shape_query *q) {
  SNT_TRY(shape_class(q, 0, true));
  return picked_shape(q, &q->out);
}

snt_result shape_scatter(shape_query *q) {
  const ir_tensor *x = shape_arg(q, 0), *updates = shape_arg(q, 2);
  ir_tensor want;
  SNT_TRY(shape_class(q, 0, q->op == IR_OP_scatter_set));
  SNT_TRY(picked_shape(q, &want));
  if (updates->dtype != x->dtype || !ir_same_shape(updates, &want))
    return shape_fail(q, "operand 3 is %s, %s is needed", shape_name_type(q, updates), shape_name_type(q, &want));
  q->out = *x;
  return SNT_OK;
}

/* As many positions as elements. */
snt_result shape_argsort(shape_query *q) {
  uint32_t axis;
  SNT_TRY(shape_class(q, 0, false));
  SNT_TRY(shape_list(q, IR_ATTR_axis, 1, 0));
  SNT_TRY(shape_axis(q, IR_ATTR_axis, 0, shape_arg(q, 0)->rank, &axis));
  q->out = *shape_arg(q, 0);
  q->out.dtype = SNT_I64;
  return SNT_OK;
}

/* What decides whether a trip begins is one of the carried values, a truth of rank 0. */
static snt_result check_while(shape_query *q) {
  int64_t carried;
  if (!shape_has(q, IR_ATTR_while)) return SNT_OK;
  const bool names = expr_is_const(q->pool, q->ints[IR_ATTR_while][0], &carried) && carried >= 0 && carried < q->arg_count;
  const ir_tensor *t = names ? shape_arg(q, (uint32_t)carried) : NULL;
  return t && t->dtype == SNT_BOOL && t->rank == 0 ? SNT_OK : shape_fail(q, "while= names no carried bool of rank 0");
}

snt_result shape_repeat(shape_query *q) {
  int64_t region, lo, hi;
  SNT_TRY(shape_need(q, IR_ATTR_region));
  SNT_TRY(shape_need(q, IR_ATTR_trips));
  if (!expr_is_const(q->pool, q->ints[IR_ATTR_region][0], &region) || region <= 0 || region >= (int64_t)q->g->regions.count)
    return shape_fail(q, "there is no such region");
  if (q->g->regions.at[region].count != q->arg_count)
    return shape_fail(q, "%u operands for %u carried values", q->arg_count, q->g->regions.at[region].count);
  expr_bounds(q->pool, q->ints[IR_ATTR_trips][0], &lo, &hi);
  if (hi < 0) return shape_fail(q, "a negative number of trips");
  SNT_TRY(check_while(q));
  q->out = *shape_arg(q, 0);
  return SNT_OK;
}

snt_result shape_loop(shape_query *q) {
  int64_t body;
  SNT_TRY(shape_need(q, IR_ATTR_region));
  SNT_TRY(shape_need(q, IR_ATTR_trips));
  if (!expr_is_const(q->pool, q->ints[IR_ATTR_region][0], &body) || body <= 0 || body > (int64_t)q->g->bodies || !q->arg_count)
    return shape_fail(q, "only the compiler makes these, from a repeat");
  q->out = *shape_arg(q, 0);
  return SNT_OK;
}

snt_result shape_pick(shape_query *q) {
  const ir_node *repeat = ir_at(q->g, q->args[0]);
  int64_t index;
  SNT_TRY(shape_need(q, IR_ATTR_index));
  if (repeat->op != IR_OP_repeat && repeat->op != IR_OP_loop) return shape_fail(q, "operand 1 is no repeat");
  if (!expr_is_const(q->pool, q->ints[IR_ATTR_index][0], &index) || index < 0 || index >= repeat->arity)
    return shape_fail(q, "the repeat has %u results", repeat->arity);
  q->out = ir_at(q->g, q->g->args.at[repeat->args + index])->type;
  return SNT_OK;
}
