/* Sums of products with rows that are put together of alternating parts (4-bit weights: low nibbles and high ones in turn). In: sum of row * vector. Out: the
   sum of part * that part of the vector, each of whole vectors; nothing is interleaved. The terms are the same ones in another order. */
#include "fusion/rewrite/parts.h"

enum { MOST_PARTS = 8, MOST_FACTORS = 4, DEPTH = 16 };

typedef struct parts {
  rebuild *r;
  ir_tensor type;        /* [kept.., summed.., parts] */
  uint32_t kept, summed; /* axes; the last summed one is of the parts */
  int64_t count;
} parts;

static bool is_alternation(const parts *p, uint32_t node) {
  const ir_graph *g = p->r->to;
  const ir_node *n = ir_at(g, node);
  if (n->op != IR_OP_concat || n->arity != p->count || ir_attr_int(g, node, IR_ATTR_axis, 0) != p->type.rank - 1) return false;
  for (uint32_t i = 0; i < n->arity; i++)
    if (ir_at(g, ir_arg(g, node, i))->type.dims[p->type.rank - 1] != 1) return false;
  return true;
}

/* The same for all parts. */
static bool is_shared(const parts *p, uint32_t node) {
  const ir_graph *g = p->r->to;
  uint32_t count;
  if (!ir_at(g, node)->type.rank) return true;
  if (ir_at(g, node)->op != IR_OP_broadcast) return false;
  const ir_expr *axes = ir_attr_ints(g, node, IR_ATTR_axes, &count);
  return fusion_find_label(axes, count, p->type.rank - 1) < 0;
}

/* Pointwise operators down to alternations, of which there is one at least, and to what all parts share. */
static bool divides(const parts *p, uint32_t node, uint32_t depth, bool *found) {
  const ir_graph *g = p->r->to;
  const ir_node *n = ir_at(g, node);
  if (is_shared(p, node)) return true;
  if (is_alternation(p, node)) return *found = true;
  if (!depth || !(ir_ops[n->op].flags & IR_POINTWISE) || n->op == IR_OP_custom) return false;
  for (uint32_t i = 0; i < n->arity; i++)
    if (!divides(p, ir_arg(g, node, i), depth - 1, found)) return false;
  return true;
}

static uint32_t shaped(const parts *p, uint32_t node, uint32_t rank, const ir_expr *dims) {
  return rebuild_reshape(p->r, node, rank, dims);
}

/* Part `i` of the value, without the last axis. */
static uint32_t part_of(const parts *p, uint32_t node, uint32_t i) {
  ir_graph *g = p->r->to;
  const uint32_t rank = p->type.rank - 1u, arity = ir_at(g, node)->arity;
  uint32_t args[4] = {0}, count;
  if (!ir_at(g, node)->type.rank) return node;
  if (is_alternation(p, node)) return shaped(p, ir_arg(g, node, i), rank, p->type.dims);
  if (is_shared(p, node)) {
    const ir_expr *axes = ir_attr_ints(g, node, IR_ATTR_axes, &count);
    return rebuild_broadcast(p->r, ir_arg(g, node, 0), count, axes, rank, p->type.dims);
  }
  for (uint32_t a = 0; a < arity; a++) args[a] = part_of(p, ir_arg(g, node, a), i);
  return ir_add_retyped(g, node, args);
}

static uint32_t vector_part(const parts *p, uint32_t vector, uint32_t i) {
  ir_expr starts[SNT_MAX_RANK] = {0}, steps[SNT_MAX_RANK], sizes[SNT_MAX_RANK], axes[SNT_MAX_RANK];
  const uint32_t rank = p->summed;
  for (uint32_t d = 0; d < rank; d++) steps[d] = 1, sizes[d] = p->type.dims[p->kept + d], axes[d] = p->kept + d;
  starts[rank - 1] = i, sizes[rank - 1] = 1;
  const uint32_t part = shaped(p, rebuild_slice(p->r, vector, rank, starts, sizes, steps), rank - 1, sizes);
  return rebuild_broadcast(p->r, part, rank - 1, axes, p->type.rank - 1u, p->type.dims);
}

/* The rows below a reshape that only divides what is summed. */
static bool read_parts(parts *p, uint32_t *matrix, uint32_t summed) {
  const ir_graph *g = p->r->to;
  const ir_tensor full = ir_at(g, *matrix)->type;
  expr_pool *x = g->pool;
  p->kept = full.rank - summed;
  if (ir_at(g, *matrix)->op == IR_OP_reshape) *matrix = ir_arg(g, *matrix, 0);
  p->type = ir_at(g, *matrix)->type;
  if (p->type.rank < p->kept + 2u || memcmp(p->type.dims, full.dims, p->kept * sizeof full.dims[0])) return false;
  p->summed = p->type.rank - p->kept;
  bool found = false;
  return expr_is_const(x, p->type.dims[p->type.rank - 1], &p->count) && p->count > 1 && p->count <= MOST_PARTS &&
         divides(p, *matrix, DEPTH, &found) && found;
}

uint32_t rewrite_parts_sum(rebuild *r, uint32_t matrix, uint32_t vector, uint32_t summed) {
  parts p = {.r = r};
  uint32_t factors[MOST_FACTORS], factor_count = 0, sum = 0;
  int64_t axes[SNT_MAX_RANK];
  if (!read_parts(&p, &matrix, summed)) return 0;
  while (ir_at(r->to, matrix)->op == IR_OP_mul && factor_count < MOST_FACTORS) { /* what all parts share is multiplied with their sum */
    const uint32_t a = ir_arg(r->to, matrix, 0), b = ir_arg(r->to, matrix, 1);
    if (!is_shared(&p, a) && !is_shared(&p, b)) break;
    factors[factor_count++] = is_shared(&p, a) ? a : b;
    matrix = is_shared(&p, a) ? b : a;
  }
  vector = shaped(&p, vector, p.summed, p.type.dims + p.kept);
  for (uint32_t i = 0; i < p.count; i++) {
    const uint32_t part = part_of(&p, matrix, i), beside = vector_part(&p, vector, i);
    sum = sum ? ir_add3(r->to, IR_OP_fma, part, beside, sum) : ir_add2(r->to, IR_OP_mul, part, beside);
  }
  for (uint32_t i = factor_count; i-- > 0;) sum = ir_add2(r->to, IR_OP_mul, sum, part_of(&p, factors[i], 0));
  for (uint32_t d = 0; d + 1 < p.summed; d++) axes[d] = p.kept + d;
  return ir_add_axes(r->to, IR_OP_reduce_sum, sum, p.summed - 1, axes, false);
}
