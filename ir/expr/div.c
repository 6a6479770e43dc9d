/* Floor division and remainder. a = b*q + r splits off what divides; then ranges, common divisors and nested divisions simplify r.
   Both operators take the same steps on the same r, so that r / b and r % b find each other again (ir/expr/recombine.c).
   Every rewrite ends in a call of expr_div or expr_mod: a DIV or MOD node is made only when no rule applies to it. */
#include "ir/expr_private.h"

static bool symbolic_range(const expr_pool *pool, ir_expr e) {
  int64_t ignored;
  uint32_t count = expr_term_count(pool, e);
  for (uint32_t i = 0; i < count; i++) {
    ir_expr term = expr_term(pool, e, i, &ignored);
    if (expr_kind_of(pool, term) != EXPR_VAR) continue;
    const expr_var *var = &pool->vars.at[pool->nodes.at[IR_EXPR_NODE(term)].value];
    if (!expr_is_const(pool, var->lo, NULL) || !expr_is_const(pool, var->hi, NULL)) return true;
  }
  return false;
}

/* Whether floor(r / b) is proven to be one number. */
static bool constant_quotient(expr_pool *pool, ir_expr r, ir_expr b, int64_t *quotient) {
  int64_t lo, hi, c;
  expr_bounds(pool, r, &lo, &hi);
  bool literal = expr_literal(pool, b, &c);
  if (literal) {
    if (lo != INT64_MIN && hi != INT64_MAX && expr_floor_div(lo, c) == expr_floor_div(hi, c))
      return *quotient = expr_floor_div(lo, c), true;
    if (!symbolic_range(pool, r)) return false;
  }
  if (hi >= 0 && expr_proves_lt(pool, r, b) && expr_proves_nonneg(pool, r)) return *quotient = 0, true;
  if (lo < 0 && hi < 0 && expr_proves_nonneg(pool, expr_add(pool, r, b))) return *quotient = -1, true;
  return false;
}

/* The one factor of a product that c is known to divide, or 0. */
static ir_expr divisible_factor(const expr_pool *pool, ir_expr term, int64_t c) {
  uint32_t count = expr_factor_count(pool, term);
  for (uint32_t i = 0; i < count && count > 1; i++)
    if (expr_multiple_of(pool, expr_factor(pool, term, i)) % c == 0) return expr_factor(pool, term, i);
  return 0;
}

/* term / c where c is known to divide the term. */
static ir_expr divide_exactly(expr_pool *pool, ir_expr term, int64_t c) {
  if (c == 1) return term;
  ir_expr factor = divisible_factor(pool, term, c), rest;
  if (factor && expr_divide_term(pool, term, factor, &rest)) return expr_mul(pool, rest, expr_div(pool, factor, c));
  return expr_div(pool, term, c);
}

typedef struct split {
  ir_expr quotient, rest;
} split;

/* By a literal: also terms whose known divisor makes them multiples (a symbol that is a multiple of 8). */
static split split_literal(expr_pool *pool, ir_expr a, int64_t c) {
  split out = {expr_int(pool, expr_floor_div(expr_constant(pool, a), c)), 0};
  out.rest = expr_constant(pool, a) - expr_floor_div(expr_constant(pool, a), c) * c;
  uint32_t count = expr_term_count(pool, a);
  for (uint32_t i = 0; i < count; i++) {
    int64_t k;
    ir_expr term = expr_term(pool, a, i, &k);
    int64_t shared = expr_gcd(k, c), left = c / shared;
    bool irreducible = left == c && k == 1 && expr_term_count(pool, a) == 1 && expr_constant(pool, a) == 0 &&
                       !divisible_factor(pool, term, c);
    if (expr_multiple_of(pool, term) % left == 0 && !irreducible) {
      out.quotient = expr_add(pool, out.quotient, expr_mul(pool, divide_exactly(pool, term, left), expr_int(pool, k / shared)));
    } else {
      out.quotient = expr_add(pool, out.quotient, expr_mul(pool, term, expr_int(pool, k / c)));
      out.rest = expr_add(pool, out.rest, expr_mul(pool, term, expr_int(pool, k % c)));
    }
  }
  return out;
}

/* By c * (product of factors). */
static split split_monomial(expr_pool *pool, ir_expr a, int64_t c, ir_expr by) {
  split out = {0, expr_int(pool, expr_constant(pool, a))};
  uint32_t count = expr_term_count(pool, a);
  for (uint32_t i = 0; i < count; i++) {
    int64_t k;
    ir_expr term = expr_term(pool, a, i, &k), left;
    int64_t whole = expr_divide_term(pool, term, by, &left) ? k / c : 0;
    if (whole) out.quotient = expr_add(pool, out.quotient, expr_mul(pool, left, expr_int(pool, whole)));
    out.rest = expr_add(pool, out.rest, expr_mul(pool, term, expr_int(pool, k - whole * c)));
  }
  return out;
}

/* The term of b with the most factors; later ones win a tie. */
static ir_expr leading_term(const expr_pool *pool, ir_expr b, int64_t *coef) {
  ir_expr best = 1;
  *coef = 1;
  uint32_t count = expr_term_count(pool, b);
  for (uint32_t i = 0; i < count; i++) {
    int64_t k;
    ir_expr term = expr_term(pool, b, i, &k);
    if (best == 1 || expr_factor_count(pool, term) >= expr_factor_count(pool, best)) best = term, *coef = k;
  }
  return best;
}

/* By a polynomial such as n + 1: long division, kept when it helps. */
static split split_polynomial(expr_pool *pool, ir_expr a, ir_expr b) {
  split none = {0, a}, out = none;
  int64_t lead_coef, ignored;
  ir_expr lead = leading_term(pool, b, &lead_coef);
  for (int step = 0; step < 16; step++) {
    ir_expr part = 0;
    uint32_t count = expr_term_count(pool, out.rest);
    for (uint32_t i = 0; i < count && part == 0; i++) {
      int64_t k;
      ir_expr term = expr_term(pool, out.rest, i, &k), left;
      if (expr_divide_term(pool, term, lead, &left)) part = expr_mul(pool, left, expr_int(pool, k / lead_coef));
    }
    if (part == 0) break;
    out.quotient = expr_add(pool, out.quotient, part);
    out.rest = expr_sub(pool, out.rest, expr_mul(pool, part, b));
  }
  if (out.quotient == 0) return none;
  bool helps = expr_term_count(pool, out.rest) < expr_term_count(pool, a) || constant_quotient(pool, out.rest, b, &ignored);
  return helps ? out : none;
}

static split split_off(expr_pool *pool, ir_expr a, ir_expr b) {
  int64_t c;
  ir_expr term;
  if (expr_literal(pool, b, &c)) return split_literal(pool, a, c);
  return expr_monomial(pool, b, &c, &term) ? split_monomial(pool, a, c, term) : split_polynomial(pool, a, b);
}

/* r = g*s + low with floor(low / g) a known number: then r / (g*c) = (s + that) / c. */
typedef struct factoring {
  ir_expr g, s, low, c;
  int64_t carry;
} factoring;

static bool factor_with(expr_pool *pool, ir_expr r, int64_t g, ir_expr factors, factoring *out) {
  int64_t constant = expr_constant(pool, r), whole = factors == 1 ? expr_floor_div(constant, g) : 0;
  out->s = expr_int(pool, whole);
  out->low = expr_int(pool, constant - whole * g);
  uint32_t count = expr_term_count(pool, r);
  for (uint32_t i = 0; i < count; i++) {
    int64_t k;
    ir_expr term = expr_term(pool, r, i, &k), left;
    if (k % g == 0 && expr_divide_term(pool, term, factors, &left))
      out->s = expr_add(pool, out->s, expr_mul(pool, left, expr_int(pool, k / g)));
    else out->low = expr_add(pool, out->low, expr_mul(pool, term, expr_int(pool, k)));
  }
  out->g = expr_mul(pool, factors, expr_int(pool, g));
  out->carry = 0;
  return out->low == 0 || constant_quotient(pool, out->low, out->g, &out->carry);
}

static bool find_factoring(expr_pool *pool, ir_expr r, ir_expr b, factoring *out) {
  int64_t c, tried[8];
  ir_expr by, tried_factors[8];
  uint32_t tried_count = 0, count = expr_term_count(pool, r);
  if (!expr_monomial(pool, b, &c, &by)) return false;
  for (uint32_t i = 0; i < count && tried_count < 8; i++) {
    int64_t k;
    ir_expr term = expr_term(pool, r, i, &k), factors = expr_common_factors(pool, term, by), left;
    int64_t g = expr_gcd(k, c);
    bool useless = (g == 1 && factors == 1) || (g == c && factors == by);
    for (uint32_t j = 0; j < tried_count; j++) useless |= tried[j] == g && tried_factors[j] == factors;
    if (useless) continue;
    tried[tried_count] = g;
    tried_factors[tried_count++] = factors;
    if (!factor_with(pool, r, g, factors, out) || !expr_divide_term(pool, by, factors, &left)) continue;
    out->c = expr_mul(pool, left, expr_int(pool, c / g));
    return true;
  }
  return false;
}

/* (x/c + y) / b = (x + y*c) / (c*b), where one such term is all there is. */
static bool merge_division(expr_pool *pool, ir_expr r, ir_expr b, ir_expr *out) {
  ir_expr found = 0;
  uint32_t count = expr_term_count(pool, r);
  for (uint32_t i = 0; i < count; i++) {
    int64_t k;
    ir_expr term = expr_term(pool, r, i, &k);
    if (expr_kind_of(pool, term) != EXPR_DIV || k != 1) continue;
    if (found) return false;
    found = term;
  }
  if (!found) return false;
  ir_expr c = expr_child(pool, found, 1), y = expr_sub(pool, r, found);
  *out = expr_div(pool, expr_add(pool, expr_child(pool, found, 0), expr_mul(pool, y, c)), expr_mul(pool, c, b));
  return true;
}

/* m / b as a whole number of times, or 0. */
static ir_expr times(expr_pool *pool, ir_expr m, ir_expr b) {
  int64_t km, kb;
  ir_expr tm, tb, left;
  if (!expr_monomial(pool, m, &km, &tm) || !expr_monomial(pool, b, &kb, &tb)) return m == b ? 1 : 0;
  if (km % kb != 0 || !expr_divide_term(pool, tm, tb, &left)) return 0;
  return expr_mul(pool, left, expr_int(pool, km / kb));
}

/* (x % (b*c)) / b = (x / b) % c */
static bool divide_remainder(expr_pool *pool, ir_expr r, ir_expr b, ir_expr *out) {
  if (expr_kind_of(pool, r) != EXPR_MOD) return false;
  ir_expr c = times(pool, expr_child(pool, r, 1), b);
  if (c == 0) return false;
  ir_expr x = expr_child(pool, r, 0);
  *out = expr_mod(pool, expr_div(pool, x, b), c);
  return true;
}

/* k F (x % m) counts as k F x under % b when b divides k F m. */
static bool drop_inner_remainders(expr_pool *pool, ir_expr r, ir_expr b, ir_expr *out) {
  uint32_t count = expr_term_count(pool, r);
  for (uint32_t i = 0; i < count; i++) {
    int64_t k;
    ir_expr term = expr_term(pool, r, i, &k);
    uint32_t factors = expr_factor_count(pool, term);
    for (uint32_t f = 0; f < factors; f++) {
      ir_expr factor = expr_factor(pool, term, f), beside;
      if (expr_kind_of(pool, factor) != EXPR_MOD || !expr_divide_term(pool, term, factor, &beside)) continue;
      ir_expr scale = expr_mul(pool, beside, expr_int(pool, k));
      if (!times(pool, expr_mul(pool, scale, expr_child(pool, factor, 1)), b)) continue;
      ir_expr without = expr_sub(pool, r, expr_mul(pool, term, expr_int(pool, k)));
      *out = expr_add(pool, without, expr_mul(pool, scale, expr_child(pool, factor, 0)));
      return true;
    }
  }
  return false;
}

/* Rules that end both operators the same way: literals, equal operands, a divisor that is not positive. */
static bool trivial(expr_pool *pool, ir_expr a, ir_expr b, bool remainder, ir_expr *out) {
  int64_t x, y;
  *out = 0;
  if (pool->failed) return true;
  if (expr_literal(pool, b, &y) && y <= 0) return expr_fail(pool), true;
  if (a == 0) return true;
  if (b == 1) return *out = remainder ? 0 : a, true;
  if (a == b) return *out = remainder ? 0 : 1, true;
  if (!expr_literal(pool, a, &x) || !expr_literal(pool, b, &y)) return false;
  int64_t quotient = expr_floor_div(x, y);
  *out = expr_int(pool, remainder ? x - quotient * y : quotient);
  return true;
}

/* h / c = h/m * (m/c) for a symbol that is a multiple of m, and c divides m: all its exact quotients are multiples of one. */
static bool finer_than_known(expr_pool *pool, ir_expr a, ir_expr b, ir_expr *out) {
  int64_t c;
  if (expr_kind_of(pool, a) != EXPR_SYMBOL || !expr_literal(pool, b, &c)) return false;
  const int64_t known = expr_multiple_of(pool, a);
  if (known <= c || known % c) return false;
  *out = expr_mul(pool, expr_div(pool, a, expr_int(pool, known)), expr_int(pool, known / c));
  return true;
}

static ir_expr divide(expr_pool *pool, ir_expr a, ir_expr b) {
  ir_expr out, low;
  int64_t carry;
  factoring parts;
  split whole = split_off(pool, a, b);
  if (pool->failed) return 0;
  if (whole.quotient != 0 && whole.rest != a) return expr_add(pool, whole.quotient, expr_div(pool, whole.rest, b));
  if (constant_quotient(pool, a, b, &carry)) return expr_int(pool, carry);
  if (find_factoring(pool, a, b, &parts)) return expr_div(pool, expr_add(pool, parts.s, expr_int(pool, parts.carry)), parts.c);
  if (EXPR_KNOWN && expr_split_low(pool, a, b, &out, &low)) return expr_div(pool, out, b);
  if (merge_division(pool, a, b, &out) || divide_remainder(pool, a, b, &out)) return out;
  if (finer_than_known(pool, a, b, &out)) return out;
  ir_expr operands[2] = {a, b};
  return expr_intern(pool, EXPR_DIV, 0, 2, operands, NULL);
}

static ir_expr remainder_of(expr_pool *pool, ir_expr a, ir_expr b) {
  ir_expr out, low;
  int64_t carry, c;
  factoring parts;
  if (expr_literal(pool, b, &c) && expr_multiple_of(pool, a) % c == 0) return 0;
  split whole = split_off(pool, a, b);
  if (pool->failed) return 0;
  if (whole.rest != a) return expr_mod(pool, whole.rest, b);
  if (constant_quotient(pool, a, b, &carry)) return expr_sub(pool, a, expr_mul(pool, b, expr_int(pool, carry)));
  if (drop_inner_remainders(pool, a, b, &out)) return expr_mod(pool, out, b);
  if (find_factoring(pool, a, b, &parts)) {
    ir_expr high = expr_mod(pool, expr_add(pool, parts.s, expr_int(pool, parts.carry)), parts.c);
    low = expr_sub(pool, parts.low, expr_mul(pool, parts.g, expr_int(pool, parts.carry)));
    return expr_add(pool, expr_mul(pool, parts.g, high), low);
  }
  if (EXPR_KNOWN && expr_split_low(pool, a, b, &out, &low)) return expr_add(pool, expr_mod(pool, out, b), low);
  ir_expr operands[2] = {a, b};
  return expr_intern(pool, EXPR_MOD, 0, 2, operands, NULL);
}

static ir_expr remembered(expr_pool *pool, ir_expr a, ir_expr b, bool remainder) {
  ir_expr out;
  if (trivial(pool, a, b, remainder, &out)) return out;
  const expr_ask ask = expr_remember(pool, remainder ? EXPR_ASK_MOD : EXPR_ASK_DIV, a, b);
  if (ask.known) return ask.memo->result;
  out = remainder ? remainder_of(pool, a, b) : divide(pool, a, b);
  return expr_learn(pool, &ask, out);
}

ir_expr expr_div(expr_pool *pool, ir_expr a, ir_expr b) { return remembered(pool, a, b, false); }
ir_expr expr_mod(expr_pool *pool, ir_expr a, ir_expr b) { return remembered(pool, a, b, true); }

ir_expr expr_ceil_div(expr_pool *pool, ir_expr a, ir_expr b) { return expr_div(pool, expr_add(pool, a, expr_sub(pool, b, 1)), b); }
