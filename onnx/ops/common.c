/* Steps that handlers of every family are written in. */
#include "onnx/ops.h"
#include "onnx/import_private.h"

uint32_t onnx_flat(onnx_call *c, uint32_t node) {
  if (!node) return 0;
  const ir_expr total = ir_tensor_elements(c->g->pool, onnx_type_of(c, node));
  return onnx_reshape(c, node, 1, &total);
}

uint32_t onnx_scalar_in(onnx_call *c, uint32_t i) {
  const uint32_t node = onnx_in(c, i);
  return node ? onnx_reshape(c, node, 0, NULL) : 0;
}

const char *onnx_operand_text(onnx_call *c, uint32_t i) {
  if (!onnx_has(c, i)) return "_";
  ir_text text;
  ir_text_init(&text, c->im->temp);
  ir_text_format(&text, "%%%u", onnx_in(c, i));
  return text.failed ? "_" : text.at;
}

uint32_t onnx_1(onnx_call *c, ir_op op, uint32_t a) { return a ? ir_add1(c->g, op, a) : 0; }

uint32_t(onnx_2)(onnx_call *c, ir_op op, uint32_t a, uint32_t b) {
  uint32_t both[] = {a, b};
  return onnx_broadcast_all(c, 2, both, true) ? ir_add2(c->g, op, both[0], both[1]) : 0;
}

uint32_t onnx_2n(onnx_call *c, ir_op op, uint32_t a, double b) {
  const uint32_t number = onnx_like(c, a, b);
  return a && number ? ir_add2(c->g, op, a, number) : 0;
}

uint32_t(onnx_select)(onnx_call *c, uint32_t condition, uint32_t yes, uint32_t no) {
  uint32_t all[] = {condition, yes, no};
  return onnx_broadcast_all(c, 3, all, true) ? ir_add3(c->g, IR_OP_select, all[0], all[1], all[2]) : 0;
}

uint32_t onnx_reduce(onnx_call *c, ir_op op, uint32_t a, uint32_t mask, bool keep) {
  int64_t axes[SNT_MAX_RANK];
  uint32_t count = 0;
  for (uint32_t i = 0; i < SNT_MAX_RANK; i++)
    if (mask >> i & 1) axes[count++] = i;
  return a ? ir_add_axes(c->g, op, a, count, axes, keep) : 0;
}

uint32_t onnx_iota(onnx_call *c, int32_t dtype, uint32_t rank, const ir_expr *dims, uint32_t axis) {
  ir_tensor type = {.dtype = (uint8_t)dtype, .rank = (uint8_t)rank};
  memcpy(type.dims, dims, rank * sizeof *dims);
  const ir_expr at = axis;
  const ir_attr_value attr = {IR_ATTR_axis, 1, &at};
  return ir_add_node(c->g, IR_OP_iota, 0, NULL, 1, &attr, &type);
}

uint32_t onnx_gather(onnx_call *c, uint32_t x, uint32_t index, uint32_t axis) {
  const ir_expr at = axis;
  const ir_attr_value attr = {IR_ATTR_axis, 1, &at};
  const uint32_t args[] = {x, index};
  return x && index ? ir_add_node(c->g, IR_OP_gather, 2, args, 1, &attr, NULL) : 0;
}

/* One whose start is a late number: its places are gathered. */
static uint32_t slice_later(onnx_call *c, uint32_t node, uint32_t axis, ir_expr start, ir_expr size, int64_t step) {
  const uint32_t at = onnx_iota(c, SNT_I64, 1, &size, 0), far = step == 1 ? at : onnx_2n(c, IR_OP_mul, at, (double)step);
  return onnx_gather(c, node, onnx_2(c, IR_OP_add, far, onnx_extent(c, start, SNT_I64)), axis);
}

uint32_t onnx_slice(onnx_call *c, uint32_t node, uint32_t axis, ir_expr start, ir_expr size, int64_t step) {
  if (!node) return 0;
  if (onnx_is_late(c->im, start)) return slice_later(c, node, axis, start, size, step);
  const ir_tensor *is = onnx_type_of(c, node);
  ir_expr starts[SNT_MAX_RANK] = {0}, sizes[SNT_MAX_RANK], steps[SNT_MAX_RANK];
  for (uint32_t i = 0; i < is->rank; i++) sizes[i] = is->dims[i], steps[i] = 1;
  starts[axis] = start, sizes[axis] = size, steps[axis] = expr_int(c->g->pool, step);
  const ir_attr_value attrs[] = {{IR_ATTR_sizes, is->rank, sizes}, {IR_ATTR_starts, is->rank, starts}, {IR_ATTR_steps, is->rank, steps}};
  return ir_add_node(c->g, IR_OP_slice, 1, &node, 3, attrs, NULL);
}

bool onnx_demand_beside(onnx_call *c, const ir_tensor *a, const ir_tensor *b, uint32_t axis) {
  for (uint32_t d = 0; a->rank == b->rank && d < a->rank; d++)
    if (d != axis && a->dims[d] != b->dims[d] && onnx_demand_equal(c->im, a->dims[d], b->dims[d])) return false;
  return true;
}

bool onnx_demand_meet(onnx_call *c, uint32_t a, uint32_t axis, uint32_t b, uint32_t b_axis) {
  const ir_tensor *left = onnx_type_of(c, a), *right = onnx_type_of(c, b);
  if (axis >= left->rank || b_axis >= right->rank || left->dims[axis] == right->dims[b_axis]) return true;
  return !onnx_demand_equal(c->im, left->dims[axis], right->dims[b_axis]);
}

uint32_t onnx_concat(onnx_call *c, uint32_t axis, uint32_t count, const uint32_t *parts) {
  const ir_expr at = axis;
  const ir_attr_value attr = {IR_ATTR_axis, 1, &at};
  for (uint32_t i = 0; i < count; i++)
    if (!parts[i] || !onnx_demand_beside(c, onnx_type_of(c, parts[0]), onnx_type_of(c, parts[i]), axis)) return 0;
  const uint32_t joined = count == 1 ? parts[0] : onnx_join_alike(c, axis, count, parts);
  return joined ? joined : ir_add_node(c->g, IR_OP_concat, count, parts, 1, &attr, NULL);
}

uint32_t onnx_data(onnx_call *c, const ir_tensor *type, const double *values) {
  int64_t count = 1;
  for (uint32_t i = 0; i < type->rank; i++) count *= type->dims[i];
  uint8_t *data = ir_arena_take(onnx_arena(c), (size_t)count * ir_dtypes[type->dtype].bytes, 64);
  if (!data) return 0;
  for (int64_t i = 0; i < count; i++) {
    if (ir_dtypes[type->dtype].is_float) ir_dtype_store(type->dtype, data, (uint64_t)i, values[i]);
    else ir_dtype_store_int(type->dtype, data, (uint64_t)i, (int64_t)values[i]);
  }
  return ir_add_const(c->g, type, &(ir_const){.kind = IR_CONST_DATA, .data = data});
}

const char *onnx_lower(onnx_call *c, const char *name, const char *otherwise) {
  const char *given = onnx_text(c, name, NULL);
  char *small = given ? ir_arena_text(c->im->temp, given, strlen(given)) : NULL;
  for (char *at = small; at && *at; at++)
    if (*at >= 'A' && *at <= 'Z') *at = (char)(*at - 'A' + 'a');
  return small ? small : otherwise;
}

bool onnx_axes(onnx_call *c, uint32_t input, uint32_t rank, uint32_t none, uint32_t *mask) {
  onnx_list list = {0};
  if (!input) list = onnx_int_list(c, "axes");
  else if (onnx_has(c, input) && onnx_in_type(c, input)->dims[0] != 0 && !onnx_in_list(c, input, &list)) return false;
  *mask = list.count ? 0 : none;
  for (uint32_t i = 0; i < list.count; i++) {
    int64_t number;
    uint32_t axis;
    if (!expr_is_const(c->g->pool, list.at[i], &number)) return onnx_refuse(c, "axes must be fixed");
    if (!onnx_axis(c, number, rank, &axis)) return false;
    *mask |= 1u << axis;
  }
  return true;
}

const char *onnx_mask_text(onnx_call *c, uint32_t mask) {
  int64_t axes[SNT_MAX_RANK];
  uint32_t count = 0;
  for (uint32_t i = 0; i < SNT_MAX_RANK; i++)
    if (mask >> i & 1) axes[count++] = i;
  return onnx_numbers_text(c, count, axes);
}
