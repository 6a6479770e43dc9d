/* Questions about expressions and the two walks over them: substitution and evaluation. */
#include "ir/expr_private.h"

bool expr_uses_var(const expr_pool *pool, ir_expr e, uint32_t var) {
  if (e >= 0) return false;
  const expr_node *node = &pool->nodes.at[IR_EXPR_NODE(e)];
  if (!(node->vars >> (var & 63) & 1)) return false;
  if (node->kind == EXPR_VAR) return node->value == (int64_t)var;
  for (uint32_t i = 0; i < node->count; i++)
    if (expr_uses_var(pool, pool->terms.at[node->first + i], var)) return true;
  return false;
}

IR_COLD bool expr_split_affine(expr_pool *pool, ir_expr e, uint32_t var, int64_t *coef, ir_expr *rest) {
  *coef = 0;
  *rest = e;
  if (!expr_uses_var(pool, e, var)) return true;
  uint32_t count = expr_term_count(pool, e);
  for (uint32_t i = 0; i < count; i++) {
    int64_t k;
    ir_expr term = expr_term(pool, e, i, &k);
    if (!expr_uses_var(pool, term, var)) continue;
    if (expr_kind_of(pool, term) != EXPR_VAR) return false;
    *coef = k;
    *rest = expr_sub(pool, e, expr_mul(pool, term, expr_int(pool, k)));
  }
  return !pool->failed;
}

IR_COLD uint32_t expr_cost(const expr_pool *pool, ir_expr e) {
  if (e >= 0) return 0;
  const expr_node *node = &pool->nodes.at[IR_EXPR_NODE(e)];
  uint32_t cost = 0;
  for (uint32_t i = 0; i < node->count; i++) {
    cost += expr_cost(pool, pool->terms.at[node->first + i]);
    int64_t coef = pool->coefs.at[node->first + i];
    if (node->kind == EXPR_SUM && coef != 1 && coef != -1) cost++;
  }
  switch ((expr_kind)node->kind) {
  case EXPR_SUM: return cost + node->count - 1 + (node->value != 0);
  case EXPR_PRODUCT: return cost + node->count - 1;
  case EXPR_DIV:
  case EXPR_MOD: return cost + 4;
  case EXPR_MIN:
  case EXPR_MAX: return cost + 1;
  default: return cost;
  }
}

/* ---- substitution ---- */
typedef struct substitution {
  uint32_t count;
  bool never_by_0; /* what is divided by becomes 1 at least */
  const uint32_t *from;
  const ir_expr *to;
  uint64_t vars;
  const int64_t *symbols; /* by number: what stands for it, 0: itself; null: no symbol is replaced */
} substitution;

static ir_expr substitute(expr_pool *pool, ir_expr e, const substitution *s);

static ir_expr substitute_sum(expr_pool *pool, ir_expr e, const substitution *s) {
  expr_acc acc;
  uint32_t count = expr_term_count(pool, e);
  expr_acc_begin(pool, &acc);
  expr_acc_add(pool, &acc, expr_int(pool, expr_constant(pool, e)), 1);
  for (uint32_t i = 0; i < count && !pool->failed; i++) {
    int64_t k;
    ir_expr term = substitute(pool, expr_term(pool, e, i, &k), s);
    expr_acc_add(pool, &acc, term, k);
  }
  return expr_acc_end(pool, &acc);
}

static ir_expr substitute_product(expr_pool *pool, ir_expr e, const substitution *s) {
  ir_expr product = 1;
  uint32_t count = expr_factor_count(pool, e);
  for (uint32_t i = 0; i < count; i++) product = expr_mul(pool, product, substitute(pool, expr_factor(pool, e, i), s));
  return product;
}

IR_COLD static ir_expr substitute(expr_pool *pool, ir_expr e, const substitution *s) {
  if (e >= 0 || pool->failed) return e;
  const expr_node node = pool->nodes.at[IR_EXPR_NODE(e)];
  if (!s->symbols && !s->never_by_0 && !(node.vars & s->vars)) return e;
  if (node.kind == EXPR_CONST) return e;
  if (node.kind == EXPR_SYMBOL) return s->symbols && s->symbols[node.value] ? expr_int(pool, s->symbols[node.value]) : e;
  if (node.kind == EXPR_VAR) {
    for (uint32_t i = 0; i < s->count; i++)
      if (s->from[i] == (uint32_t)node.value) return s->to[i];
    return e;
  }
  if (node.kind == EXPR_SUM) return substitute_sum(pool, e, s);
  if (node.kind == EXPR_PRODUCT) return substitute_product(pool, e, s);
  ir_expr a = substitute(pool, expr_child(pool, e, 0), s), b = substitute(pool, expr_child(pool, e, 1), s);
  if (s->never_by_0 && node.kind <= EXPR_MOD) b = expr_max(pool, b, 1);
  switch ((expr_kind)node.kind) {
  case EXPR_DIV: return expr_div(pool, a, b);
  case EXPR_MOD: return expr_mod(pool, a, b);
  case EXPR_MIN: return expr_min(pool, a, b);
  default: return expr_max(pool, a, b);
  }
}

ir_expr expr_substitute(expr_pool *pool, ir_expr e, uint32_t count, const uint32_t *from, const ir_expr *to) {
  substitution s = {count, false, from, to, 0, NULL};
  for (uint32_t i = 0; i < count; i++) s.vars |= (uint64_t)1 << (from[i] & 63);
  return substitute(pool, e, &s);
}

ir_expr expr_fix(expr_pool *pool, ir_expr e, const int64_t *values) { return substitute(pool, e, &(substitution){.symbols = values}); }

IR_COLD static bool may_divide_by_0(expr_pool *pool, ir_expr e) {
  if (e >= 0) return false;
  const expr_node node = pool->nodes.at[IR_EXPR_NODE(e)];
  if ((node.kind == EXPR_DIV || node.kind == EXPR_MOD) && !expr_proves_lt(pool, 0, expr_child(pool, e, 1))) return true;
  bool may = false;
  for (uint32_t i = 0; i < node.count && !may; i++) may = may_divide_by_0(pool, pool->terms.at[node.first + i]);
  return may;
}

ir_expr expr_never_by_0(expr_pool *pool, ir_expr e) {
  return may_divide_by_0(pool, e) ? substitute(pool, e, &(substitution){.never_by_0 = true}) : e;
}

/* ---- evaluation ---- */
static bool eval_pair(expr_kind kind, int64_t a, int64_t b, int64_t *out) {
  switch (kind) {
  case EXPR_DIV:
    if (b <= 0) return false;
    return *out = expr_floor_div(a, b), true;
  case EXPR_MOD:
    if (b <= 0) return false;
    return *out = a - b * expr_floor_div(a, b), true;
  case EXPR_MIN: return *out = a < b ? a : b, true;
  default: return *out = a > b ? a : b, true;
  }
}

static bool eval_node(const expr_pool *pool, ir_expr e, const expr_values *at, int64_t *out) {
  const expr_node *node = &pool->nodes.at[IR_EXPR_NODE(e)];
  const ir_expr *terms = node->count ? pool->terms.at + node->first : NULL;
  int64_t value, total = node->kind == EXPR_PRODUCT ? 1 : node->value;
  switch ((expr_kind)node->kind) {
  case EXPR_CONST: return *out = node->value, true;
  case EXPR_SYMBOL:
  case EXPR_VAR: {
    const int64_t *values = node->kind == EXPR_VAR ? at->vars : at->symbols;
    if (at->other) return at->other(at, pool, node, out);
    return values ? (*out = values[node->value], true) : false;
  }
  case EXPR_SUM:
    for (uint32_t i = 0; i < node->count; i++) {
      if (!expr_eval(pool, terms[i], at, &value)) return false;
      if (__builtin_mul_overflow(value, pool->coefs.at[node->first + i], &value) || __builtin_add_overflow(total, value, &total))
        return false;
    }
    return *out = total, true;
  case EXPR_PRODUCT:
    for (uint32_t i = 0; i < node->count; i++)
      if (!expr_eval(pool, terms[i], at, &value) || __builtin_mul_overflow(total, value, &total)) return false;
    return *out = total, true;
  default: {
    int64_t a, b;
    if (!expr_eval(pool, terms[0], at, &a) || !expr_eval(pool, terms[1], at, &b)) return false;
    return eval_pair((expr_kind)node->kind, a, b, out);
  }
  }
}

bool expr_eval(const expr_pool *pool, ir_expr e, const expr_values *at, int64_t *out) {
  if (e >= 0) return *out = e, true;
  const uint32_t number = IR_EXPR_NODE(e);
  const expr_node *node = &pool->nodes.at[number];
  if (!EXPR_KNOWN || !at->known || node->vars || !node->count) return eval_node(pool, e, at, out);
  expr_known *known = &at->known[number & (EXPR_KNOWN - 1)];
  if (known->turn == at->turn && known->node == number) return *out = known->value, true;
  if (!eval_node(pool, e, at, out)) return false;
  *known = (expr_known){number, at->turn, *out};
  return true;
}
