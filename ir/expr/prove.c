/* Proofs that an expression is never negative, and the operators min and max that use them.
   Terms are replaced one by one by a bound that is at least as bad: choices by their operands, divisions by the inequality that defines
   them, variables by the end of their range, until only symbols are left. Incomplete by a budget, never unsound. */
#include "ir/expr_private.h"

enum { PROOF_STEPS = 40, PROOF_DEPTH = 2 };

static bool nonneg(expr_pool *pool, ir_expr e, int *steps);

static bool same_sign_known(const expr_pool *pool, ir_expr e, bool *negative) {
  int64_t lo, hi;
  expr_bounds(pool, e, &lo, &hi);
  *negative = hi <= 0;
  return lo >= 0 || hi <= 0;
}

/* The factor to remove next: choices, then divisions, then the innermost variable. 0: only symbols are left. */
static ir_expr next_factor(const expr_pool *pool, ir_expr e) {
  ir_expr best = 0;
  int64_t best_rank = -1;
  uint32_t count = expr_term_count(pool, e);
  for (uint32_t i = 0; i < count; i++) {
    int64_t ignored;
    ir_expr term = expr_term(pool, e, i, &ignored);
    uint32_t factors = expr_factor_count(pool, term);
    for (uint32_t f = 0; f < factors; f++) {
      ir_expr factor = expr_factor(pool, term, f);
      expr_kind kind = expr_kind_of(pool, factor);
      int64_t rank = -1;
      if (kind == EXPR_VAR) rank = pool->nodes.at[IR_EXPR_NODE(factor)].value;
      if (kind == EXPR_DIV || kind == EXPR_MOD) rank = INT64_MAX - 1;
      if (kind == EXPR_MIN || kind == EXPR_MAX) rank = INT64_MAX;
      if (rank > best_rank) best = factor, best_rank = rank;
    }
  }
  return best;
}

/* e = a * factor + b; false where the factor occurs squared. */
static bool collect(expr_pool *pool, ir_expr e, ir_expr factor, ir_expr *a, ir_expr *b) {
  *a = 0;
  *b = expr_int(pool, expr_constant(pool, e));
  uint32_t count = expr_term_count(pool, e);
  for (uint32_t i = 0; i < count; i++) {
    int64_t k;
    ir_expr term = expr_term(pool, e, i, &k), rest, twice;
    bool has = expr_divide_term(pool, term, factor, &rest);
    if (has && expr_divide_term(pool, rest, factor, &twice)) return false;
    ir_expr *into = has ? a : b;
    *into = expr_add(pool, *into, expr_mul(pool, has ? rest : term, expr_int(pool, k)));
  }
  return !pool->failed;
}

static ir_expr put(expr_pool *pool, ir_expr a, ir_expr value, ir_expr b) { return expr_add(pool, expr_mul(pool, a, value), b); }

/* min(x, y) and max(x, y) are one of their operands: both must hold; where the sign helps, one is enough. */
static bool try_choice(expr_pool *pool, ir_expr factor, ir_expr a, ir_expr b, int *steps) {
  bool negative, known = same_sign_known(pool, a, &negative);
  ir_expr x = expr_child(pool, factor, 0), y = expr_child(pool, factor, 1);
  bool first = nonneg(pool, put(pool, a, x, b), steps);
  bool either = known && negative == (expr_kind_of(pool, factor) == EXPR_MIN);
  if (either ? first : !first) return first;
  return nonneg(pool, put(pool, a, y, b), steps);
}

/* c*a' / c = a' where that is exact. */
static bool divide_coefficient(expr_pool *pool, ir_expr a, ir_expr c, ir_expr *out) {
  int64_t ka, kc;
  ir_expr ta, tc, left;
  if (!expr_monomial(pool, a, &ka, &ta) || !expr_monomial(pool, c, &kc, &tc)) return a == c ? (*out = 1, true) : false;
  if (ka % kc != 0 || !expr_divide_term(pool, ta, tc, &left)) return false;
  *out = expr_mul(pool, left, expr_int(pool, ka / kc));
  return true;
}

static bool try_ends(expr_pool *pool, ir_expr factor, ir_expr a, ir_expr b, bool negative, int *steps) {
  int64_t lo, hi;
  expr_bounds(pool, factor, &lo, &hi);
  int64_t end = negative ? hi : lo;
  if (end == INT64_MIN || end == INT64_MAX) return false;
  return nonneg(pool, put(pool, a, expr_int(pool, end), b), steps);
}

/* s - c + 1 <= c * (s / c) <= s */
static bool try_quotient(expr_pool *pool, ir_expr factor, ir_expr a, ir_expr b, int *steps) {
  bool negative;
  if (!same_sign_known(pool, a, &negative)) return false;
  ir_expr s = expr_child(pool, factor, 0), c = expr_child(pool, factor, 1), scaled = a, rest = b;
  ir_expr bound = negative ? s : expr_add(pool, expr_sub(pool, s, c), 1);
  if (!divide_coefficient(pool, a, c, &scaled)) rest = expr_mul(pool, b, c);
  return nonneg(pool, put(pool, scaled, bound, rest), steps) || try_ends(pool, factor, a, b, negative, steps);
}

/* 0 <= s % c <= c - 1, and s % c <= s for s >= 0 */
static bool try_remainder(expr_pool *pool, ir_expr factor, ir_expr a, ir_expr b, int *steps) {
  bool negative;
  int64_t lo, hi;
  if (!same_sign_known(pool, a, &negative)) return false;
  if (!negative) return nonneg(pool, b, steps);
  ir_expr s = expr_child(pool, factor, 0), c = expr_child(pool, factor, 1);
  if (nonneg(pool, put(pool, a, expr_sub(pool, c, 1), b), steps)) return true;
  expr_bounds(pool, s, &lo, &hi);
  return (lo >= 0 || nonneg(pool, s, steps)) && nonneg(pool, put(pool, a, s, b), steps);
}

/* Linear in the variable: the least value is at an end of its range. */
static bool try_variable(expr_pool *pool, ir_expr factor, ir_expr a, ir_expr b, int *steps) {
  const expr_var var = pool->vars.at[pool->nodes.at[IR_EXPR_NODE(factor)].value];
  bool negative, known = same_sign_known(pool, a, &negative);
  if ((!known || !negative) && !nonneg(pool, put(pool, a, var.lo, b), steps)) return false;
  return (known && !negative) || nonneg(pool, put(pool, a, expr_sub(pool, var.hi, 1), b), steps);
}

/* The symbol read as min + (something >= 0). */
static ir_expr shifted_term(expr_pool *pool, ir_expr term) {
  ir_expr product = 1;
  uint32_t count = expr_factor_count(pool, term);
  for (uint32_t i = 0; i < count; i++) {
    int64_t lo, hi;
    ir_expr factor = expr_factor(pool, term, i);
    expr_bounds(pool, factor, &lo, &hi);
    if (lo == INT64_MIN) return expr_fail(pool); /* the caller gives up */
    product = expr_mul(pool, product, expr_add(pool, factor, expr_int(pool, lo)));
  }
  return product;
}

/* The largest value of a product of shifted symbols, INT64_MAX if unknown. */
static int64_t shifted_top(const expr_pool *pool, ir_expr term) {
  int64_t product = 1;
  uint32_t count = expr_factor_count(pool, term);
  for (uint32_t i = 0; i < count; i++) {
    int64_t lo, hi, width;
    expr_bounds(pool, expr_factor(pool, term, i), &lo, &hi);
    if (hi == INT64_MAX || __builtin_sub_overflow(hi, lo, &width) || __builtin_mul_overflow(product, width, &product)) return INT64_MAX;
  }
  return product;
}

/* A polynomial in symbols: with each symbol shifted to start at 0, negative coefficients need a bound on their term. */
static bool symbols_nonneg(expr_pool *pool, ir_expr e) {
  ir_expr shifted = expr_int(pool, expr_constant(pool, e));
  uint32_t count = expr_term_count(pool, e);
  for (uint32_t i = 0; i < count && !pool->failed; i++) {
    int64_t k;
    ir_expr term = expr_term(pool, e, i, &k);
    shifted = expr_add(pool, shifted, expr_mul(pool, shifted_term(pool, term), expr_int(pool, k)));
  }
  if (pool->failed) return false;
  int64_t least = expr_constant(pool, shifted);
  count = expr_term_count(pool, shifted);
  for (uint32_t i = 0; i < count; i++) {
    int64_t k, product;
    ir_expr term = expr_term(pool, shifted, i, &k);
    if (k >= 0) continue;
    int64_t top = shifted_top(pool, term);
    if (top == INT64_MAX || __builtin_mul_overflow(k, top, &product) || __builtin_add_overflow(least, product, &least)) return false;
  }
  return least >= 0;
}

/* A term k (s / d) with a literal d. */
static bool is_quotient(expr_pool *pool, ir_expr e, uint32_t i, int64_t *k, ir_expr *s, int64_t *d) {
  const ir_expr term = expr_term(pool, e, i, k);
  if (expr_factor_count(pool, term) != 1) return false;
  const ir_expr factor = expr_factor(pool, term, 0);
  if (expr_kind_of(pool, factor) != EXPR_DIV || !expr_is_const(pool, expr_child(pool, factor, 1), d)) return false;
  *s = expr_child(pool, factor, 0);
  return true;
}

static bool takes_quotient_by(expr_pool *pool, ir_expr e, int64_t d) {
  const uint32_t count = expr_term_count(pool, e);
  for (uint32_t i = 0; i < count; i++) {
    int64_t k, divisor;
    ir_expr s;
    if (is_quotient(pool, e, i, &k, &s, &divisor) && k < 0 && divisor == d) return true;
  }
  return false;
}

/* s / c - (k - 1) <= k * (s / (k c)) <= s / c: a term -k (s / (k c)) of e may become -(s / c), and k (s / (k c)) may become s / c - (k - 1), which then meet
   other quotients by c: whole tiles of 4 hold n / 32. */
static bool merge_quotient(expr_pool *pool, ir_expr e, ir_expr *out) {
  const uint32_t count = expr_term_count(pool, e);
  for (uint32_t i = 0; i < count; i++) {
    int64_t k, divisor;
    ir_expr s;
    if (!is_quotient(pool, e, i, &k, &s, &divisor) || k > INT32_MAX || k < -INT32_MAX || (k >= -1 && k <= 1)) continue;
    const int64_t times = k < 0 ? -k : k;
    if (divisor % times || (k > 0 && !takes_quotient_by(pool, e, divisor / times))) continue;
    const ir_expr coarse = expr_div(pool, s, expr_int(pool, divisor)), finer = expr_div(pool, s, expr_int(pool, divisor / times));
    const ir_expr rest = expr_sub(pool, e, expr_mul(pool, coarse, expr_int(pool, k)));
    *out = k < 0 ? expr_sub(pool, rest, finer) : expr_sub(pool, expr_add(pool, rest, finer), expr_int(pool, times - 1));
    return true;
  }
  return false;
}

/* The variables that are factors of terms of e, one after the other; 0: there is no more. */
typedef struct variable_walk {
  uint32_t term, factor;
} variable_walk;
static ir_expr next_variable(expr_pool *pool, ir_expr e, variable_walk *w) {
  for (const uint32_t count = expr_term_count(pool, e); w->term < count; w->term++, w->factor = 0) {
    int64_t k;
    const ir_expr term = expr_term(pool, e, w->term, &k);
    const uint32_t factors = expr_factor_count(pool, term);
    while (w->factor < factors) {
      const ir_expr factor = expr_factor(pool, term, w->factor++);
      if (expr_kind_of(pool, factor) == EXPR_VAR) return factor;
    }
  }
  return 0;
}

/* Another variable of e begins or ends at this one, and goes before it. */
static bool is_end_of_another(expr_pool *pool, ir_expr e, uint32_t number) {
  variable_walk w = {0};
  for (ir_expr v = next_variable(pool, e, &w); v; v = next_variable(pool, e, &w)) {
    const expr_var var = pool->vars.at[pool->nodes.at[IR_EXPR_NODE(v)].value];
    if (expr_uses_var(pool, var.lo, number) || expr_uses_var(pool, var.hi, number)) return true;
  }
  return false;
}

/* A variable that ends at quotients or choices goes before they do, so that they meet their like: r <= 2 * (n / 2) in 2 * (n / 2) - r. */
static bool try_inner_variable(expr_pool *pool, ir_expr e, int *steps) {
  variable_walk w = {0};
  for (ir_expr v = next_variable(pool, e, &w); v; v = next_variable(pool, e, &w)) {
    ir_expr a, b;
    const uint32_t number = pool->nodes.at[IR_EXPR_NODE(v)].value;
    const ir_expr end = next_factor(pool, pool->vars.at[number].hi);
    if (end == 0 || expr_kind_of(pool, end) == EXPR_VAR || is_end_of_another(pool, e, number) || !collect(pool, e, v, &a, &b)) continue;
    if (!expr_uses_var(pool, a, number) && !expr_uses_var(pool, b, number) && try_variable(pool, v, a, b, steps)) return true;
  }
  return false;
}

static bool nonneg(expr_pool *pool, ir_expr e, int *steps) {
  int64_t lo, hi;
  ir_expr a, b;
  expr_bounds(pool, e, &lo, &hi);
  if (pool->failed || hi < 0) return false;
  if (lo >= 0) return true;
  if (--*steps < 0) return false;
  if (merge_quotient(pool, e, &a) && nonneg(pool, a, steps)) return true;
  if (try_inner_variable(pool, e, steps)) return true;
  ir_expr factor = next_factor(pool, e);
  if (factor == 0) return symbols_nonneg(pool, e);
  if (!collect(pool, e, factor, &a, &b)) return false;
  switch (expr_kind_of(pool, factor)) {
  case EXPR_MIN:
  case EXPR_MAX: return try_choice(pool, factor, a, b, steps);
  case EXPR_DIV: return try_quotient(pool, factor, a, b, steps);
  case EXPR_MOD: return try_remainder(pool, factor, a, b, steps);
  default: return try_variable(pool, factor, a, b, steps);
  }
}

bool expr_proves_nonneg(expr_pool *pool, ir_expr e) {
  int64_t lo, hi;
  expr_bounds(pool, e, &lo, &hi);
  if (pool->failed || hi < 0) return false;
  if (lo >= 0) return true;
  if (pool->depth >= PROOF_DEPTH) return false;
  const expr_ask ask = expr_remember(pool, EXPR_ASK_NONNEG, e, 0);
  if (ask.known) return ask.memo->result != 0;
  if (expr_is_negative_somewhere(pool, e)) return expr_learn(pool, &ask, false) != 0;
  int steps = PROOF_STEPS;
  pool->depth++;
  bool proven = nonneg(pool, e, &steps);
  pool->depth--;
  /* An overflow inside a proof says nothing about the caller's expressions. */
  if (pool->failed && !pool->arena->failed) pool->failed = proven = false;
  return expr_learn(pool, &ask, proven && !pool->failed) != 0;
}

/* b - a - gap >= 0 */
static bool proves_gap(expr_pool *pool, ir_expr a, ir_expr b, int64_t gap) {
  int64_t lo_a, hi_a, lo_b, hi_b;
  if (pool->failed) return false;
  expr_bounds(pool, a, &lo_a, &hi_a);
  expr_bounds(pool, b, &lo_b, &hi_b);
  if (hi_a != INT64_MAX && lo_b != INT64_MIN && (gap ? hi_a < lo_b : hi_a <= lo_b)) return true;
  if (lo_a != INT64_MIN && hi_b != INT64_MAX && (gap ? lo_a >= hi_b : lo_a > hi_b)) return false;
  ir_expr difference = expr_sub(pool, expr_sub(pool, b, a), gap);
  if (pool->failed && !pool->arena->failed) return pool->failed = false;
  return expr_proves_nonneg(pool, difference);
}

bool expr_proves_lt(expr_pool *pool, ir_expr a, ir_expr b) { return a != b && proves_gap(pool, a, b, 1); }
bool expr_proves_le(expr_pool *pool, ir_expr a, ir_expr b) { return a == b || proves_gap(pool, a, b, 0); }

/* ---- min and max: the leaves of nested choices, sorted, without those another one beats ---- */
enum { MAX_LEAVES = 16 };
typedef struct leaves {
  uint32_t count;
  ir_expr at[MAX_LEAVES];
} leaves;

static bool gather(expr_pool *pool, expr_kind kind, ir_expr e, leaves *out) {
  if (expr_kind_of(pool, e) == kind)
    return gather(pool, kind, expr_child(pool, e, 0), out) && gather(pool, kind, expr_child(pool, e, 1), out);
  for (uint32_t i = 0; i < out->count; i++) {
    bool kept_wins = kind == EXPR_MIN ? expr_proves_le(pool, out->at[i], e) : expr_proves_le(pool, e, out->at[i]);
    if (kept_wins) return true;
    bool new_wins = kind == EXPR_MIN ? expr_proves_le(pool, e, out->at[i]) : expr_proves_le(pool, out->at[i], e);
    if (new_wins) out->at[i--] = out->at[--out->count];
  }
  if (out->count == MAX_LEAVES) return false;
  uint32_t at = out->count++;
  for (; at > 0 && expr_order(pool, out->at[at - 1], e) > 0; at--) out->at[at] = out->at[at - 1];
  out->at[at] = e;
  return true;
}

static void sort_leaves(expr_pool *pool, leaves *all) {
  for (uint32_t i = 1; i < all->count; i++) {
    ir_expr e = all->at[i];
    uint32_t at = i;
    for (; at > 0 && expr_order(pool, all->at[at - 1], e) > 0; at--) all->at[at] = all->at[at - 1];
    all->at[at] = e;
  }
}

static ir_expr choose(expr_pool *pool, expr_kind kind, ir_expr a, ir_expr b) {
  leaves all = {.count = 0};
  if (!gather(pool, kind, a, &all) || !gather(pool, kind, b, &all)) {
    ir_expr pair[2] = {a, b};
    return expr_intern(pool, kind, 0, 2, pair, NULL);
  }
  sort_leaves(pool, &all);
  ir_expr result = all.at[all.count - 1];
  for (uint32_t i = all.count - 1; i-- > 0;) {
    ir_expr pair[2] = {all.at[i], result};
    result = expr_intern(pool, kind, 0, 2, pair, NULL);
  }
  return result;
}

static ir_expr chosen(expr_pool *pool, expr_kind kind, ir_expr a, ir_expr b) {
  if (a == b) return a;
  const expr_ask ask = expr_remember(pool, kind == EXPR_MIN ? EXPR_ASK_MIN : EXPR_ASK_MAX, a, b);
  return ask.known ? ask.memo->result : expr_learn(pool, &ask, choose(pool, kind, a, b));
}

ir_expr expr_min(expr_pool *pool, ir_expr a, ir_expr b) { return chosen(pool, EXPR_MIN, a, b); }
ir_expr expr_max(expr_pool *pool, ir_expr a, ir_expr b) { return chosen(pool, EXPR_MAX, a, b); }
