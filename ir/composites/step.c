/* The steps that builders of composites are written in. */
#include "ir/composites/private.h"
#include <math.h>
#include <stdio.h>

uint32_t call_mistake(composite_call *c, const char *format, ...) {
  char text[200];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return graph_mistake(c->g, SNT_E_SHAPE, "%s: %s", c->info->name, text);
}

/* ---- parameters ---- */
const ir_attr_info ir_param_infos[IR_PARAM_COUNT] = {
    [IR_PARAM_NONE] = {"none", IR_KIND_FLAG},
#define PARAM(id, type) [IR_PARAM_##id] = {#id, IR_KIND_##type},
#include "ir/params.def"
#undef PARAM
};

double call_number(const composite_call *c, ir_param_key key, double otherwise) {
  return c->params[key] ? c->params[key]->number : otherwise;
}

ir_expr call_expr(const composite_call *c, ir_param_key key, ir_expr otherwise) {
  return c->params[key] ? c->params[key]->ints[0] : otherwise;
}

int64_t call_int(composite_call *c, ir_param_key key, int64_t otherwise) {
  int64_t value = otherwise;
  if (c->params[key] && !expr_is_const(c->g->pool, c->params[key]->ints[0], &value))
    call_mistake(c, "%s must be a number", ir_param_infos[key].name);
  return value;
}

bool call_list(composite_call *c, ir_param_key key, uint32_t count, int64_t otherwise, int64_t *out) {
  const ir_param *given = c->params[key];
  for (uint32_t i = 0; i < count; i++) out[i] = otherwise;
  if (!given) return true;
  if (given->count != count)
    return call_mistake(c, "%s has %u entries, %u are needed", ir_param_infos[key].name, given->count, count), false;
  for (uint32_t i = 0; i < count; i++)
    if (!expr_is_const(c->g->pool, given->ints[i], &out[i])) return call_mistake(c, "%s must be numbers", ir_param_infos[key].name), false;
  return true;
}

uint32_t call_axis(composite_call *c, ir_param_key key, int64_t otherwise, uint32_t rank) {
  int64_t axis = call_int(c, key, otherwise);
  if (axis < -(int64_t)rank || axis >= (int64_t)rank)
    return call_mistake(c, "%s %lld is outside rank %u", ir_param_infos[key].name, (long long)axis, rank);
  return (uint32_t)(axis < 0 ? axis + rank : axis);
}

bool call_spatial(composite_call *c, uint32_t spatial, window_desc *w) {
  int64_t pads[2 * SNT_MAX_RANK];
  w->axis = 2;
  w->count = spatial;
  if (!call_list(c, IR_PARAM_stride, spatial, 1, w->stride) || !call_list(c, IR_PARAM_dilation, spatial, 1, w->dilation)) return false;
  if (!call_list(c, IR_PARAM_pads, 2 * spatial, 0, pads)) return false;
  for (uint32_t i = 0; i < spatial; i++) {
    w->low[i] = pads[i], w->high[i] = pads[spatial + i];
    if (w->stride[i] < 1 || w->dilation[i] < 1) return call_mistake(c, "stride and dilation must be over 0"), false;
    if (w->low[i] < 0 || w->high[i] < 0 || w->low[i] > INT32_MAX || w->high[i] > INT32_MAX)
      return call_mistake(c, "pads must be numbers from 0, below 2^31"), false;
  }
  return true;
}

/* ---- pointwise ---- */
uint32_t step_number(composite_call *c, uint32_t like, double value) {
  return like ? ir_add_splat(c->g, type_of(c, like)->dtype, value) : 0;
}

uint32_t step_1(composite_call *c, ir_op op, uint32_t a) { return a ? ir_add1(c->g, op, a) : 0; }

/* The shape both broadcast to, aligned at the last axis. */
static bool join_shapes(composite_call *c, const ir_tensor *a, const ir_tensor *b, ir_tensor *out) {
  *out = a->rank >= b->rank ? *a : *b;
  for (uint32_t i = 1; i <= a->rank && i <= b->rank; i++) {
    const ir_expr left = a->dims[a->rank - i], right = b->dims[b->rank - i];
    if (left != right && left != 1 && right != 1) return call_mistake(c, "the operands differ in axis %u from the end", i), false;
    out->dims[out->rank - i] = left == 1 ? right : left;
  }
  return true;
}

uint32_t step_2(composite_call *c, ir_op op, uint32_t a, uint32_t b) {
  ir_tensor shape;
  if (!a || !b || !join_shapes(c, type_of(c, a), type_of(c, b), &shape)) return 0;
  if (type_of(c, a)->rank) a = step_broadcast(c, a, &shape);
  if (b && type_of(c, b)->rank) b = step_broadcast(c, b, &shape);
  return a && b ? ir_add2(c->g, op, a, b) : 0;
}

uint32_t step_2n(composite_call *c, ir_op op, uint32_t a, double b) { return step_2(c, op, a, step_number(c, a, b)); }

uint32_t step_select(composite_call *c, uint32_t condition, uint32_t yes, uint32_t no) {
  return condition && yes && no ? ir_add3(c->g, IR_OP_select, condition, yes, no) : 0;
}

uint32_t step_cast(composite_call *c, uint32_t a, int32_t dtype) {
  if (!a || type_of(c, a)->dtype == dtype) return a;
  const ir_expr to = dtype;
  const ir_attr_value attr = {IR_ATTR_dtype, 1, &to};
  return ir_add_node(c->g, IR_OP_cast, 1, &a, 1, &attr, NULL);
}

uint32_t step_widen(composite_call *c, uint32_t a) {
  if (!a) return 0;
  const ir_dtype_info *info = &ir_dtypes[type_of(c, a)->dtype];
  return info->is_float && info->bits < 32 ? step_cast(c, a, SNT_F32) : a;
}

uint32_t step_bias(composite_call *c, uint32_t x, uint32_t bias, uint32_t axis) {
  if (!bias || !x) return x;
  bias = step_cast(c, bias, type_of(c, x)->dtype);
  const ir_tensor shape = *type_of(c, x);
  return step_2(c, IR_OP_add, x, step_along(c, bias, axis, &shape));
}

/* ---- movement ---- */
static uint32_t put_broadcast(composite_call *c, uint32_t a, const ir_tensor *shape, uint32_t count, const ir_expr *axes) {
  const ir_attr_value attrs[] = {{IR_ATTR_axes, count, axes}, {IR_ATTR_shape, shape->rank, shape->dims}};
  return ir_add_node(c->g, IR_OP_broadcast, 1, &a, 2, attrs, NULL);
}

uint32_t step_broadcast(composite_call *c, uint32_t a, const ir_tensor *shape) {
  if (!a || ir_same_shape(type_of(c, a), shape)) return a;
  ir_expr axes[SNT_MAX_RANK];
  const uint32_t rank = type_of(c, a)->rank;
  if (rank > shape->rank) return call_mistake(c, "an operand of rank %u is broadcast to rank %u", rank, shape->rank);
  for (uint32_t i = 0; i < rank; i++) axes[i] = shape->rank - rank + i;
  return put_broadcast(c, a, shape, rank, axes);
}

uint32_t step_along(composite_call *c, uint32_t vector, uint32_t axis, const ir_tensor *shape) {
  if (!vector || type_of(c, vector)->rank == 0) return vector;
  if (type_of(c, vector)->rank != 1)
    return call_mistake(c, "an operand of rank %u where one value a channel is needed", type_of(c, vector)->rank);
  const ir_expr at = axis;
  return axis < shape->rank ? put_broadcast(c, vector, shape, 1, &at) : call_mistake(c, "there is no axis %u", axis);
}

uint32_t step_reshape(composite_call *c, uint32_t a, uint32_t rank, const ir_expr *dims) {
  if (!a) return 0;
  const ir_tensor *is = type_of(c, a);
  if (is->rank == rank && memcmp(is->dims, dims, rank * sizeof *dims) == 0) return a;
  const ir_attr_value attr = {IR_ATTR_shape, rank, dims};
  return ir_add_node(c->g, IR_OP_reshape, 1, &a, 1, &attr, NULL);
}

uint32_t step_transpose(composite_call *c, uint32_t a, const uint32_t *perm) {
  if (!a) return 0;
  ir_expr axes[SNT_MAX_RANK];
  const uint32_t rank = type_of(c, a)->rank;
  bool moves = false;
  for (uint32_t i = 0; i < rank; i++) axes[i] = perm[i], moves |= perm[i] != i;
  const ir_attr_value attr = {IR_ATTR_perm, rank, axes};
  return moves ? ir_add_node(c->g, IR_OP_transpose, 1, &a, 1, &attr, NULL) : a;
}

uint32_t step_slice(composite_call *c, uint32_t a, uint32_t axis, ir_expr start, ir_expr size, int64_t step) {
  if (!a) return 0;
  const ir_tensor *is = type_of(c, a);
  ir_expr starts[SNT_MAX_RANK] = {0}, sizes[SNT_MAX_RANK], steps[SNT_MAX_RANK];
  for (uint32_t i = 0; i < is->rank; i++) sizes[i] = is->dims[i], steps[i] = 1;
  starts[axis] = start, sizes[axis] = size, steps[axis] = expr_int(c->g->pool, step);
  const ir_attr_value attrs[] = {{IR_ATTR_sizes, is->rank, sizes}, {IR_ATTR_starts, is->rank, starts}, {IR_ATTR_steps, is->rank, steps}};
  return ir_add_node(c->g, IR_OP_slice, 1, &a, 3, attrs, NULL);
}

uint32_t step_concat(composite_call *c, uint32_t axis, uint32_t count, const uint32_t *parts) {
  for (uint32_t i = 0; i < count; i++)
    if (!parts[i]) return 0;
  if (count == 1) return parts[0];
  const ir_expr at = axis;
  const ir_attr_value attr = {IR_ATTR_axis, 1, &at};
  return ir_add_node(c->g, IR_OP_concat, count, parts, 1, &attr, NULL);
}

uint32_t step_window(composite_call *c, uint32_t a, const window_desc *w) {
  if (!a) return 0;
  ir_expr lists[5][SNT_MAX_RANK], axis = w->axis, bits = 0;
  const int64_t *from[] = {w->size, w->stride, w->dilation, w->low, w->high};
  for (uint32_t list = 0; list < 5; list++)
    for (uint32_t i = 0; i < w->count; i++) lists[list][i] = expr_int(c->g->pool, from[list][i]);
  if (ir_dtypes[type_of(c, a)->dtype].is_float) memcpy(&bits, &w->fill, sizeof bits);
  else bits = (int64_t)w->fill;
  const ir_attr_value attrs[] = {{IR_ATTR_axis, 1, &axis},
                                 {IR_ATTR_size, w->count, lists[0]},
                                 {IR_ATTR_stride, w->count, lists[1]},
                                 {IR_ATTR_dilation, w->count, lists[2]},
                                 {IR_ATTR_low, w->count, lists[3]},
                                 {IR_ATTR_high, w->count, lists[4]},
                                 {IR_ATTR_value, 1, &bits}};
  return ir_add_node(c->g, IR_OP_window, 1, &a, IR_COUNT(attrs), attrs, NULL);
}

/* ---- sources, reductions, contractions ---- */
uint32_t step_iota(composite_call *c, int32_t dtype, uint32_t rank, const ir_expr *dims, uint32_t axis) {
  ir_tensor type = {.dtype = (uint8_t)dtype, .rank = (uint8_t)rank};
  memcpy(type.dims, dims, rank * sizeof *dims);
  const ir_expr at = axis;
  const ir_attr_value attr = {IR_ATTR_axis, 1, &at};
  return ir_add_node(c->g, IR_OP_iota, 0, NULL, 1, &attr, &type);
}

uint32_t step_dim(composite_call *c, ir_expr value, int32_t dtype) {
  int64_t number;
  if (expr_is_const(c->g->pool, value, &number)) return ir_add_splat(c->g, dtype, (double)number);
  const ir_tensor type = {.dtype = (uint8_t)dtype};
  const ir_attr_value attr = {IR_ATTR_shape, 1, &value};
  return ir_add_node(c->g, IR_OP_dim, 0, NULL, 1, &attr, &type);
}

uint32_t step_reduce(composite_call *c, ir_op op, uint32_t a, uint32_t mask, bool keep) {
  int64_t axes[SNT_MAX_RANK];
  uint32_t count = 0;
  for (uint32_t i = 0; i < SNT_MAX_RANK; i++)
    if (mask >> i & 1) axes[count++] = i;
  return a ? ir_add_axes(c->g, op, a, count, axes, keep) : 0;
}

uint32_t step_count(composite_call *c, uint32_t like, const ir_tensor *shape, uint32_t mask) {
  ir_expr count = 1;
  for (uint32_t i = 0; i < shape->rank; i++)
    if (mask >> i & 1) count = expr_mul(c->g->pool, count, shape->dims[i]);
  return like ? step_dim(c, count, type_of(c, like)->dtype) : 0;
}

uint32_t step_contract(composite_call *c, uint32_t a, uint32_t b, const contract_desc *d) {
  if (!a || !b) return 0;
  const label_list *lists[] = {&d->lhs, &d->rhs, &d->out};
  ir_expr labels[3][2 * SNT_MAX_RANK], type = d->dtype;
  const uint32_t args[] = {a, b};
  for (uint32_t list = 0; list < 3; list++)
    for (uint32_t i = 0; i < lists[list]->count; i++) labels[list][i] = lists[list]->at[i];
  const ir_attr_value attrs[] = {{IR_ATTR_lhs, d->lhs.count, labels[0]},
                                 {IR_ATTR_rhs, d->rhs.count, labels[1]},
                                 {IR_ATTR_out, d->out.count, labels[2]},
                                 {IR_ATTR_dtype, 1, &type}};
  return ir_add_node(c->g, IR_OP_contract, 2, args, d->dtype ? 4 : 3, attrs, NULL);
}
