/* Blocks of keys that a mask leaves out as a whole: select(condition, score, very low) where the condition compares positions. In: the pattern and the
   corners of a block. Out: a kernel value that says that no key of the block counts for any query of the tile. Interval arithmetic over iotas and constants. */
#include "fusion/schedule/attention_private.h"
#include <math.h>

typedef struct span {
  ir_expr lo, hi;
} span;
typedef struct corners {
  attend *t;
  const attend_block *block;
} corners;

static bool at_corner(const corners *c, ir_expr symbolic, bool high, ir_expr *out) {
  const attend *t = c->t;
  expr_pool *x = t->e->x;
  const attention *a = t->a;
  const ir_expr axes[2] = {a->label[a->row], a->key};
  const int64_t extent[2] = {c->block->queries, c->block->keys};
  const ir_expr from[2] = {c->block->row, c->block->key};
  uint32_t vars[SNT_MAX_RANK + 1], count = 0;
  ir_expr to[SNT_MAX_RANK + 1];
  for (uint32_t i = 0; i < a->label_count; i++)
    if (a->label[i] < 0 && (int32_t)i != a->row) vars[count] = emit_var_number(x, a->label[i]), to[count++] = t->now[i];
  for (uint32_t i = 0; i < 2; i++) {
    int64_t coef;
    ir_expr rest;
    const uint32_t number = emit_var_number(x, axes[i]);
    if (expr_uses_var(x, symbolic, number) && (!expr_split_affine(x, symbolic, number, &coef, &rest) || coef < 0)) return false;
    vars[count] = number;
    to[count++] = expr_add(x, from[i], high ? expr_int(x, extent[i] - 1) : 0);
  }
  if (a->depth >= 0 && a->label[a->depth] < 0 && expr_uses_var(x, symbolic, emit_var_number(x, a->label[a->depth]))) return false;
  *out = expr_substitute(x, symbolic, count, vars, to);
  return true;
}

/* The range of an integer-valued node over the block. */
static bool span_of(const corners *c, uint32_t node, const map_access *at, span *out, uint32_t depth) {
  const ir_graph *g = c->t->e->g;
  expr_pool *x = c->t->e->x;
  const ir_node *n = ir_at(g, node);
  map_access in = *at;
  span a, b;
  double value;
  uint32_t count;
  if (depth > 24 || ir_dtypes[n->type.dtype].bits < 32) return false; /* whole numbers that a type holds as they are */
  if (ir_is_scalar_const(g, node, &value)) {
    if (value != floor(value) || fabs(value) > 1e9) return false;
    out->lo = out->hi = expr_int(x, (int64_t)value);
    return true;
  }
  if (n->arity && ir_at(g, ir_arg(g, node, 0))->type.rank == 0 && !(ir_ops[n->op].flags & IR_MOVEMENT)) in.rank = 0;
  switch (n->op) {
  case IR_OP_iota: {
    const ir_expr place = at->at[ir_attr_int(g, node, IR_ATTR_axis, 0)];
    return at_corner(c, place, false, &out->lo) && at_corner(c, place, true, &out->hi);
  }
  case IR_OP_dim: out->lo = out->hi = ir_attr_ints(g, node, IR_ATTR_shape, &count)[0]; return true;
  case IR_OP_cast: return span_of(c, ir_arg(g, node, 0), &in, out, depth + 1);
  case IR_OP_add:
  case IR_OP_sub: {
    map_access other = *at;
    if (ir_at(g, ir_arg(g, node, 1))->type.rank == 0) other.rank = 0;
    if (!span_of(c, ir_arg(g, node, 0), &in, &a, depth + 1) || !span_of(c, ir_arg(g, node, 1), &other, &b, depth + 1)) return false;
    const bool minus = n->op == IR_OP_sub;
    out->lo = minus ? expr_sub(x, a.lo, b.hi) : expr_add(x, a.lo, b.lo);
    out->hi = minus ? expr_sub(x, a.hi, b.lo) : expr_add(x, a.hi, b.hi);
    return true;
  }
  default: break;
  }
  if (!(ir_ops[n->op].flags & IR_MOVEMENT) || n->arity != 1) return false;
  if (!ir_movement_access(g, node, 0, &in) || in.condition_count) return false;
  return span_of(c, ir_arg(g, node, 0), &in, out, depth + 1);
}

static uint32_t is_at_least(attend *t, ir_expr a, ir_expr b, int64_t more) {
  emit *e = t->e;
  const ir_expr difference = expr_sub(e->x, expr_sub(e->x, a, b), expr_int(e->x, more));
  const uint32_t value = kir_bitcast(e->k, kir_t(SNT_I32, 1), emit_expr(e, difference));
  return kir_2(e->k, KIR_ge, value, kir_const_int(e->k, kir_t(SNT_I32, 1), 0));
}

/* The comparison is `wanted` for every pair of the block, as a kernel value; 0: not known. */
static uint32_t is_always(const corners *c, uint32_t node, const map_access *at, bool wanted) {
  const ir_graph *g = c->t->e->g;
  map_access in = *at, other = *at;
  while (fusion_is_view(g, node) && ir_at(g, node)->arity == 1) {
    if (!ir_movement_access(g, node, 0, &in) || in.condition_count) return 0;
    node = ir_arg(g, node, 0);
    other = in;
  }
  const ir_op op = (ir_op)ir_at(g, node)->op;
  if (op != IR_OP_lt && op != IR_OP_le && op != IR_OP_gt && op != IR_OP_ge) return 0;
  span a, b;
  if (ir_at(g, ir_arg(g, node, 0))->type.rank == 0) in.rank = 0;
  if (ir_at(g, ir_arg(g, node, 1))->type.rank == 0) other.rank = 0;
  if (!span_of(c, ir_arg(g, node, 0), &in, &a, 0) || !span_of(c, ir_arg(g, node, 1), &other, &b, 0)) return 0;
  const bool less = (op == IR_OP_lt || op == IR_OP_le) == wanted; /* a below b always, else a above b always */
  const bool strict = (op == IR_OP_lt || op == IR_OP_gt) == wanted;
  return less ? is_at_least(c->t, b.lo, a.hi, strict) : is_at_least(c->t, a.lo, b.hi, strict);
}

/* No other factor than 1 stands between a(k) - m and the exp: what lies a billion below the extremum weighs exactly nothing. */
static bool falls_to_zero(const attend *t) {
  const ir_graph *g = t->e->g;
  for (uint32_t i = 0; i < t->a->exp_count; i++) {
    const ir_op op = (ir_op)ir_at(g, t->a->exps[i].shifted)->op;
    if (op != IR_OP_sub && op != IR_OP_add) return false;
  }
  return t->a->exp_count && !t->a->smallest;
}

uint32_t attend_all_masked(attend *t, const attend_block *block, double *low) {
  const ir_graph *g = t->e->g;
  const corners c = {t, block};
  uint32_t node = t->a->argument, masked = 0;
  *low = -INFINITY;
  if (!falls_to_zero(t) || t->a->row < 0 || t->a->label[t->a->row] >= 0) return 0;
  while (node) {
    const attention_node *own = attention_at(t->a, node);
    if (!own) break;
    if (fusion_is_view(g, node)) {
      node = ir_arg(g, node, 0);
      continue;
    }
    if (ir_at(g, node)->op != IR_OP_select) break;
    uint32_t side = 0;
    double value = 0;
    for (uint32_t i = 1; i < 3 && !side; i++)
      if (ir_is_scalar_const(g, fusion_through_moves(g, ir_arg(g, node, i)), &value) && value <= -1e9) side = i;
    if (!side) break;
    const uint32_t always = is_always(&c, ir_arg(g, node, 0), &own->at, side == 1);
    if (always) {
      masked = masked ? kir_2(t->e->k, KIR_or, masked, always) : always;
      if (value > *low) *low = value;
    }
    node = ir_arg(g, node, 3 - side);
  }
  return masked;
}
