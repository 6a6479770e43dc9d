/* Where the elements of a movement operator's result come from, as a rewrite of coordinates (ir/map.h does the arithmetic). */
#include "ir/graph.h"

static void const_ints(const ir_graph *g, uint32_t node, ir_attr_key key, int64_t *out) {
  uint32_t count;
  const ir_expr *ints = ir_attr_ints(g, node, key, &count);
  for (uint32_t i = 0; i < count && i < SNT_MAX_RANK; i++)
    if (!expr_is_const(g->pool, ints[i], &out[i])) out[i] = 0; /* the shape rules allow numbers only */
}

static bool access_transpose(const ir_graph *g, uint32_t node, map_access *access) {
  int64_t perm[SNT_MAX_RANK];
  uint32_t axes[SNT_MAX_RANK] = {0};
  const_ints(g, node, IR_ATTR_perm, perm);
  for (uint32_t i = 0; i < ir_at(g, node)->type.rank; i++) axes[i] = (uint32_t)perm[i];
  return map_transpose(g->pool, access, axes);
}

static bool access_broadcast(const ir_graph *g, uint32_t node, map_access *access) {
  const ir_tensor *from = &ir_at(g, ir_arg(g, node, 0))->type;
  int64_t axes[SNT_MAX_RANK] = {0};
  const_ints(g, node, IR_ATTR_axes, axes);
  return map_broadcast(g->pool, access, from->rank, from->dims, axes);
}

static bool access_slice(const ir_graph *g, uint32_t node, map_access *access) {
  int64_t steps[SNT_MAX_RANK] = {0};
  const_ints(g, node, IR_ATTR_steps, steps);
  return map_slice(g->pool, access, ir_attr_ints(g, node, IR_ATTR_starts, NULL), steps);
}

static bool access_window(const ir_graph *g, uint32_t node, map_access *access) {
  int64_t stride[SNT_MAX_RANK] = {0}, dilation[SNT_MAX_RANK] = {0};
  uint32_t count;
  const ir_expr *low = ir_attr_ints(g, node, IR_ATTR_low, &count);
  const_ints(g, node, IR_ATTR_stride, stride);
  const_ints(g, node, IR_ATTR_dilation, dilation);
  const uint32_t first = (uint32_t)ir_attr_int(g, node, IR_ATTR_axis, 0);
  return map_window(g->pool, access, first, count, stride, dilation, low, ir_at(g, ir_arg(g, node, 0))->type.dims);
}

/* The operand's segment of the axis starts where those before it end. */
static bool access_concat(const ir_graph *g, uint32_t node, uint32_t operand, map_access *access) {
  const uint32_t axis = (uint32_t)ir_attr_int(g, node, IR_ATTR_axis, 0);
  ir_expr start = 0;
  for (uint32_t i = 0; i < operand; i++) start = expr_add(g->pool, start, ir_at(g, ir_arg(g, node, i))->type.dims[axis]);
  return map_place(g->pool, access, axis, expr_sub(g->pool, access->at[axis], start), ir_at(g, ir_arg(g, node, operand))->type.dims[axis]);
}

bool ir_movement_access(const ir_graph *g, uint32_t node, uint32_t operand, map_access *access) {
  const ir_node *n = ir_at(g, node);
  if (operand >= n->arity) return false;
  const ir_tensor *from = &ir_at(g, ir_arg(g, node, operand))->type;
  switch (n->op) {
  case IR_OP_reshape: return map_reshape(g->pool, access, from->rank, from->dims, n->type.dims);
  case IR_OP_transpose: return access_transpose(g, node, access);
  case IR_OP_broadcast: return access_broadcast(g, node, access);
  case IR_OP_slice: return access_slice(g, node, access);
  case IR_OP_pad: return map_pad(g->pool, access, ir_attr_ints(g, node, IR_ATTR_low, NULL), from->dims);
  case IR_OP_concat: return access_concat(g, node, operand, access);
  case IR_OP_window: return access_window(g, node, access);
  case IR_OP_words: /* of the first byte */ access->at[access->rank - 1] = expr_mul(g->pool, access->at[access->rank - 1], 4); return true;
  default: return false;
  }
}
