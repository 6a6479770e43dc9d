/* Pieces of one division meet again in a sum: q*c + x%c, x - x%c and their relatives. In: a sorted sum under construction.
   Each rule makes the sum smaller, so their repetition ends. */
#include "ir/expr_private.h"

/* One item of the sum seen as K * F * piece, piece = DIV(s, c) or MOD(s, c). */
typedef struct piece {
  uint32_t item;
  int64_t k;
  ir_expr rest, s, c; /* rest: F */
} piece;

static expr_item *items_of(expr_pool *pool, const expr_acc *acc) { return pool->work.at + acc->base; }

static expr_item *find_item(expr_pool *pool, const expr_acc *acc, ir_expr term) {
  uint32_t lo = 0, hi = pool->work.count - acc->base;
  expr_item *items = items_of(pool, acc);
  while (lo < hi) {
    uint32_t middle = (lo + hi) / 2;
    int order = expr_order(pool, items[middle].term, term);
    if (order == 0) return &items[middle];
    if (order < 0) lo = middle + 1;
    else hi = middle;
  }
  return NULL;
}

/* Whether every term of k * e is in the sum with exactly that coefficient, none of them being item `except`. */
static bool contains(expr_pool *pool, const expr_acc *acc, ir_expr e, int64_t k, uint32_t except) {
  uint32_t count = expr_term_count(pool, e);
  for (uint32_t i = 0; i < count; i++) {
    int64_t coef, wanted;
    ir_expr term = expr_term(pool, e, i, &coef);
    const expr_item *item = find_item(pool, acc, term);
    if (!item || item == items_of(pool, acc) + except) return false;
    if (__builtin_mul_overflow(coef, k, &wanted) || item->coef != wanted) return false;
  }
  return count > 0;
}

static bool negate(int64_t a, int64_t *out) { return !__builtin_sub_overflow((int64_t)0, a, out); }

/* Replaces the piece's item and old_k * old by new_k * new. */
static bool replace(expr_pool *pool, expr_acc *acc, const piece *p, ir_expr old, int64_t old_k, ir_expr fresh, int64_t new_k) {
  int64_t minus;
  if (!negate(old_k, &minus)) return false;
  items_of(pool, acc)[p->item].coef = 0;
  expr_acc_add(pool, acc, old, minus);
  expr_acc_add(pool, acc, fresh, new_k);
  return true;
}

/* K F c (s / c) + K F (s % c) = K F s */
static bool join_quotient(expr_pool *pool, expr_acc *acc, const piece *p) {
  ir_expr quotient = expr_div(pool, p->s, p->c);
  ir_expr counterpart = expr_mul(pool, expr_mul(pool, p->rest, p->c), quotient);
  if (!contains(pool, acc, counterpart, p->k, p->item)) return false;
  return replace(pool, acc, p, counterpart, p->k, expr_mul(pool, p->rest, p->s), p->k);
}

/* K F (s % c) - K F s = -K F c (s / c) */
static bool subtract_remainder(expr_pool *pool, expr_acc *acc, const piece *p) {
  int64_t minus;
  ir_expr whole = expr_mul(pool, p->rest, p->s);
  if (!negate(p->k, &minus) || !contains(pool, acc, whole, minus, p->item)) return false;
  ir_expr quotient = expr_mul(pool, expr_mul(pool, p->rest, p->c), expr_div(pool, p->s, p->c));
  return replace(pool, acc, p, whole, minus, quotient, minus);
}

/* z where y = z + quotient; false if the quotient is no part of y. */
static bool without_quotient(expr_pool *pool, ir_expr y, ir_expr quotient, ir_expr *z) {
  expr_kind kind = expr_kind_of(pool, quotient);
  if (kind == EXPR_CONST || kind == EXPR_SUM) return false;
  uint32_t count = expr_term_count(pool, y);
  for (uint32_t i = 0; i < count; i++) {
    int64_t coef;
    if (expr_term(pool, y, i, &coef) == quotient && coef == 1) return *z = expr_sub(pool, y, quotient), true;
  }
  return false;
}

/* K F c ((z + s/c) % a) + K F (s % c) = K F ((c z + s) % (c a))
   K F c (t / c) + K F (s % c) = K F t where t % c is s % c: remainders may have been left out below the one that are needed below the other. */
static bool join_remainders(expr_pool *pool, expr_acc *acc, const piece *p) {
  ir_expr quotient = expr_div(pool, p->s, p->c), scaled = expr_mul(pool, expr_mul(pool, p->rest, p->c), expr_int(pool, p->k));
  uint32_t count = pool->work.count - acc->base;
  for (uint32_t j = 0; j < count; j++) {
    expr_item other = items_of(pool, acc)[j];
    uint32_t factors = j == p->item ? 0 : expr_factor_count(pool, other.term);
    for (uint32_t f = 0; f < factors; f++) {
      ir_expr factor = expr_factor(pool, other.term, f), beside, z = 0;
      const expr_kind kind = expr_kind_of(pool, factor);
      if (kind != EXPR_MOD && (kind != EXPR_DIV || expr_child(pool, factor, 1) != p->c)) continue;
      ir_expr joined = expr_child(pool, factor, 0);
      if (kind == EXPR_MOD && !without_quotient(pool, joined, quotient, &z)) continue;
      if (!expr_divide_term(pool, other.term, factor, &beside)) continue;
      if (expr_mul(pool, beside, expr_int(pool, other.coef)) != scaled) continue;
      if (kind == EXPR_DIV && expr_mod(pool, joined, p->c) != expr_mod(pool, p->s, p->c)) continue;
      if (kind == EXPR_MOD)
        joined = expr_mod(pool, expr_add(pool, expr_mul(pool, p->c, z), p->s), expr_mul(pool, p->c, expr_child(pool, factor, 1)));
      return replace(pool, acc, p, other.term, other.coef, expr_mul(pool, p->rest, joined), p->k);
    }
  }
  return false;
}

/* K F (s / c) with s a known multiple of c and c dividing K: K/c F s */
static bool multiply_exact(expr_pool *pool, expr_acc *acc, const piece *p) {
  int64_t c;
  if (!expr_literal(pool, p->c, &c) || p->k % c != 0 || expr_multiple_of(pool, p->s) % c != 0) return false;
  return replace(pool, acc, p, 0, 0, expr_mul(pool, p->rest, p->s), p->k / c);
}

/* K F = -k F' c:   k F' s - k F' c (s / c) = k F' (s % c) */
static bool subtract_quotient(expr_pool *pool, expr_acc *acc, const piece *p) {
  int64_t c, k;
  ir_expr term, rest;
  if (!expr_monomial(pool, p->c, &c, &term) || p->k % c != 0 || !expr_divide_term(pool, p->rest, term, &rest)) return false;
  if (!negate(p->k / c, &k)) return false;
  ir_expr whole = expr_mul(pool, rest, p->s);
  if (!contains(pool, acc, whole, k, p->item)) return false;
  return replace(pool, acc, p, whole, k, expr_mul(pool, rest, expr_mod(pool, p->s, p->c)), k);
}

static bool rewrite_piece(expr_pool *pool, expr_acc *acc, const piece *p, expr_kind kind) {
  if (kind == EXPR_DIV) return multiply_exact(pool, acc, p) || subtract_quotient(pool, acc, p);
  uint32_t count = pool->work.count - acc->base;
  if (count == 1) return false;
  return join_quotient(pool, acc, p) || join_remainders(pool, acc, p) || subtract_remainder(pool, acc, p);
}

bool expr_recombine(expr_pool *pool, expr_acc *acc) {
  uint32_t count = pool->work.count - acc->base;
  for (uint32_t i = 0; i < count; i++) {
    expr_item item = items_of(pool, acc)[i];
    uint32_t factors = expr_factor_count(pool, item.term);
    for (uint32_t f = 0; f < factors && !pool->failed; f++) {
      ir_expr factor = expr_factor(pool, item.term, f);
      expr_kind kind = expr_kind_of(pool, factor);
      if (kind != EXPR_DIV && kind != EXPR_MOD) continue;
      piece p = {.item = i, .k = item.coef, .s = expr_child(pool, factor, 0), .c = expr_child(pool, factor, 1)};
      if (expr_divide_term(pool, item.term, factor, &p.rest) && rewrite_piece(pool, acc, &p, kind)) return true;
    }
  }
  return false;
}

/* ---- quotients that make no difference ---- */

/* r = high + low where high and b are multiples of a number that low stays below: then r / b = high / b (lanes behind the first of a vector). */
bool expr_split_low(expr_pool *pool, ir_expr r, ir_expr b, ir_expr *high, ir_expr *low) {
  int64_t c, k, lo, hi;
  if (!expr_literal(pool, b, &c)) return false;
  int64_t g = c;
  *high = 0;
  for (uint32_t i = 0; i < expr_term_count(pool, r); i++) {
    ir_expr whole = expr_term(pool, r, i, &k);
    whole = expr_mul(pool, whole, expr_int(pool, k));
    const int64_t shared = expr_gcd(expr_multiple_of(pool, whole), c);
    if (shared > 1) *high = expr_add(pool, *high, whole), g = expr_gcd(g, shared);
  }
  *high = expr_add(pool, *high, expr_int(pool, expr_floor_div(expr_constant(pool, r), g) * g));
  *low = expr_sub(pool, r, *high);
  expr_bounds(pool, *low, &lo, &hi);
  return *low != 0 && lo >= 0 && hi < g;
}
