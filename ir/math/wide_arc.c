/* asin, acos, atan and atan2 in f64: all are angles of a point (den, num), both pairs and neither negative, as a quotient of at most 0.4143 from the nearest
   of 0, pi/4 and pi/2. */
#include "ir/math/wide_private.h"

static const double HALF_PI = 0x1.921fb54442d18p+0, HALF_PI_TAIL = 0x1.1a62633145c07p-54;

/* fpminimax: atan(q) = q + q^3 A(q^2), |q| <= 0.4143: 2^-63.8 */
static const double ATAN[] = {-0x1.5555555555554p-2, 0x1.99999999995bep-3, -0x1.24924924720fep-3, 0x1.c71c71b5f20a3p-4,
                              -0x1.745d14907df9ep-4, 0x1.3b136b01edb26p-4, -0x1.110c4948949c7p-4, 0x1.e16f24c99aae4p-5,
                              -0x1.ab6cc80645376p-5, 0x1.70aee49bd2747p-5, -0x1.11b1742bec9eap-5, 0x1.efed1591348c2p-7};

/* atan(num / den) in 0..pi/2 */
static kw_pair angle(km *m, kw_pair num, kw_pair den) {
  const kv low = km_le(m, num.high, km_mul(m, den.high, kw_f(m, 0.4142))), high = km_gt(m, km_mul(m, num.high, kw_f(m, 0.4142)), den.high);
  const kw_pair less = kw_add_pairs(m, num, kw_negate(m, den)), both = kw_add_pairs(m, num, den);
  const kw_pair over = kw_choose_pair(m, low, num, kw_choose_pair(m, high, kw_negate(m, den), less));
  const kw_pair under = kw_choose_pair(m, low, den, kw_choose_pair(m, high, num, both));
  const kw_pair q = kw_divide_pairs(m, over, under);
  const kv z = km_mul(m, q.high, q.high), bend = km_mul(m, km_mul(m, z, q.high), kw_poly(m, z, IR_COUNT(ATAN), ATAN));
  const kv tail = km_mul(m, q.low, km_sub(m, kw_f(m, 1), km_mul(m, z, kw_f(m, 0.9)))); /* q.low / (1 + z), nearly */
  const kv part = km_select(m, low, kw_f(m, 0), km_select(m, high, kw_f(m, 1), kw_f(m, 0.5)));
  const kw_pair base = {km_mul(m, part, kw_f(m, HALF_PI)), km_mul(m, part, kw_f(m, HALF_PI_TAIL))};
  const kw_pair s = kw_sum(m, base.high, q.high);
  return kw_fast_sum(m, s.high, km_add(m, s.low, km_add(m, base.low, km_add(m, bend, tail))));
}
#define angle(m, num, den) IR_LAST_FIRST_2(angle, num, den, m)

static kv closed(km *m, kw_pair a) { return km_add(m, a.high, a.low); }

/* pi - a */
static kw_pair opposite(km *m, kw_pair a) { return kw_add_pairs(m, kw_constant(m, 2 * HALF_PI, 2 * HALF_PI_TAIL), kw_negate(m, a)); }

kv kw_atan(km *m, kv x, kv unused) {
  (void)unused;
  const kv a = kw_at_most(m, kw_abs(m, x), 0x1p100);
  return kw_pass(m, x, 0x1p-28, kw_with_sign(m, closed(m, angle(m, kw_alone(m, a), kw_constant(m, 1, 0))), x));
}

/* sqrt(1 - a^2) */
static kw_pair cosine_of(km *m, kv a) {
  const kv one = kw_f(m, 1), safe = km_select(m, km_lt(m, a, one), a, one);
  return kw_root_of(m, kw_add_pairs(m, kw_constant(m, 1, 0), kw_negate(m, kw_product(m, safe, safe))));
}

static kv within_one(km *m, kv x, kv y) {
  const kv wrong = km_gt(m, kw_abs_bits(m, x), kw_u(m, KW_ONE));
  return kw_as_f(m, km_select(m, wrong, kw_u(m, KW_NAN), kw_as_u(m, y)));
}

kv kw_asin(km *m, kv x, kv unused) {
  (void)unused;
  const kv a = kw_abs(m, x), y = closed(m, angle(m, kw_alone(m, a), cosine_of(m, a)));
  return kw_pass(m, x, 0x1p-28, within_one(m, x, kw_with_sign(m, y, x)));
}

kv kw_acos(km *m, kv x, kv unused) {
  (void)unused;
  const kv a = kw_abs(m, x);
  const kw_pair right = angle(m, cosine_of(m, a), kw_alone(m, a));
  return within_one(m, x, closed(m, kw_choose_pair(m, km_lt(m, x, kw_f(m, 0)), opposite(m, right), right)));
}

/* The sizes of y and x, both times 2^600 where both are small and 2^-100 where one is large; 0 or 1 where one is infinite or both are 0. */
static void sizes(km *m, kv y, kv x, kv *num, kv *den) {
  const kv ay = kw_abs_bits(m, y), ax = kw_abs_bits(m, x), large = km_select(m, km_gt(m, ay, ax), ay, ax);
  const kv big = km_gt(m, large, kw_u(m, 0x7e00000000000000)), small = km_lt(m, large, kw_u(m, 0x2000000000000000));
  const kv by = km_select(m, big, kw_f(m, 0x1p-100), km_select(m, small, kw_f(m, 0x1p600), kw_f(m, 1)));
  const kv infinite = km_ge(m, large, kw_u(m, KW_INF)), none = km_eq(m, large, kw_u(m, 0)), one = kw_f(m, 1), zero = kw_f(m, 0);
  const kv y_edge = km_select(m, km_eq(m, ay, kw_u(m, KW_INF)), one, zero);
  const kv x_edge = km_select(m, km_or(m, none, km_eq(m, ax, kw_u(m, KW_INF))), one, zero), edge = km_or(m, infinite, none);
  *num = kw_choose(m, edge, y_edge, km_mul(m, kw_as_f(m, ay), by));
  *den = kw_choose(m, edge, x_edge, km_mul(m, kw_as_f(m, ax), by));
}

kv kw_atan2(km *m, kv y, kv x) {
  kv num, den;
  sizes(m, y, x, &num, &den);
  const kw_pair right = angle(m, kw_alone(m, num), kw_alone(m, den));
  const kv left = km_ne(m, km_shr(m, kw_as_u(m, x), kw_u(m, 63)), kw_u(m, 0));
  const kv a = kw_with_sign(m, closed(m, kw_choose_pair(m, left, opposite(m, right), right)), y);
  const kv inf = kw_u(m, KW_INF), wrong = km_or(m, km_gt(m, kw_abs_bits(m, y), inf), km_gt(m, kw_abs_bits(m, x), inf));
  return kw_as_f(m, km_select(m, wrong, kw_u(m, KW_NAN), kw_as_u(m, a)));
}
