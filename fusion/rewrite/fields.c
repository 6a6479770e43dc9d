/* Rows put together of alternating fields whose last two axes become one below operators of elements, as importers write weights of few bits: bytes are put
   together and folded, then made floats, less a zero, times a scale a block. In: a matrix. Out: the same elements, with [bytes, fields] apart all the way,
   folded at the end, as rewrite/words.c and rewrite/parts.c take them. */
#include "fusion/rewrite/parts.h"

enum { DEPTH = 16 };

static bool is_elementwise(const ir_node *n) { return (ir_ops[n->op].flags & IR_POINTWISE) && n->op != IR_OP_custom && n->arity <= 3; }

/* The shape before the last axis became one of two: that of a concatenation along fields of one element. A constant byte is its own field. */
static bool find_fields(const ir_graph *g, uint32_t node, uint32_t depth, ir_tensor *found) {
  const ir_node *n = ir_at(g, node);
  if (n->op == IR_OP_reshape) {
    const uint32_t joined = ir_arg(g, node, 0);
    *found = ir_at(g, joined)->type;
    const bool folds = n->type.rank && found->rank == n->type.rank + 1u &&
                       !memcmp(found->dims, n->type.dims, (n->type.rank - 1u) * sizeof *found->dims);
    return folds && ir_at(g, joined)->op == IR_OP_concat && ir_attr_int(g, joined, IR_ATTR_axis, 0) == found->rank - 1;
  }
  if (n->op == IR_OP_const && n->type.dtype == SNT_U8 && n->type.rank > 1 && n->type.rank < SNT_MAX_RANK) {
    *found = n->type;
    return found->dims[found->rank++] = 1, true;
  }
  bool is = false;
  for (uint32_t i = 0; depth && is_elementwise(n) && i < n->arity && !is; i++) is = find_fields(g, ir_arg(g, node, i), depth - 1, found);
  return is;
}

/* The same for all fields of a byte, and for all bytes of a block: an operand without the last axis. 0: it is not. */
static uint32_t spread_blocks(rebuild *r, uint32_t node, const ir_tensor *to) {
  ir_graph *g = r->to;
  const ir_node *n = ir_at(g, node);
  uint32_t count, operand = ir_arg(g, node, 0);
  const ir_expr *own = ir_attr_ints(g, node, IR_ATTR_axes, &count);
  const ir_tensor from = ir_at(g, operand)->type;
  ir_expr axes[SNT_MAX_RANK];
  for (uint32_t i = 0; i < from.rank; i++) axes[i] = own && count ? own[i] : (ir_expr)(n->type.rank - from.rank + i);
  uint32_t rank = from.rank;
  if (rank && axes[rank - 1] == n->type.rank - 1) {
    if (from.dims[rank - 1] != 1) return 0;
    operand = rebuild_reshape(r, operand, --rank, from.dims);
  }
  return rebuild_broadcast(r, operand, rank, axes, to->rank, to->dims);
}

/* The value in the shape `to`. */
static uint32_t unfolded(rebuild *r, uint32_t node, const ir_tensor *to, uint32_t depth) {
  ir_graph *g = r->to;
  const ir_node *n = ir_at(g, node);
  const uint32_t arity = n->arity;
  uint32_t args[3] = {0};
  if (!n->type.rank) return node;
  const uint32_t spread = n->op == IR_OP_broadcast ? spread_blocks(r, node, to) : 0;
  if (spread) return spread;
  if (n->op == IR_OP_reshape && ir_same_shape(&ir_at(g, ir_arg(g, node, 0))->type, to)) return ir_arg(g, node, 0);
  if (!depth || !is_elementwise(n)) return rebuild_reshape(r, node, to->rank, to->dims);
  for (uint32_t i = 0; i < arity; i++) args[i] = unfolded(r, ir_arg(g, node, i), to, depth - 1);
  return ir_add_retyped(g, node, args);
}

uint32_t rewrite_fields(rebuild *r, uint32_t matrix) {
  const ir_tensor full = ir_at(r->to, matrix)->type;
  const uint32_t rows = ir_at(r->to, matrix)->op == IR_OP_reshape ? ir_arg(r->to, matrix, 0) : matrix;
  ir_tensor to;
  if (!is_elementwise(ir_at(r->to, rows)) || !find_fields(r->to, rows, DEPTH, &to)) return matrix;
  return rebuild_reshape(r, unfolded(r, rows, &to, DEPTH), full.rank, full.dims);
}
