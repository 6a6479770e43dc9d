/* pow in f32: exp2(y log2 x) with log2 in two floats (about 2^-36 of itself) and the special cases of IEEE 754. */
#include "ir/math/private.h"

/* log2(1 + f) = L s + s^3 P(s^2), s = f / (2 + f), |s| <= 0.172; remez of P: 2^-36; P[0] and L = 2 / ln 2 in two floats */
static const float POW_P[] = {0x1.1e2c2cp-2f, 0x1.47d4d4p-2f, 0x1.a618a6p-2f, 0x1.2776c4p-1f};
static const double P0_HIGH = 0x1.ec709ep-1, P0_LOW = -0x1.e242bp-28, L_HIGH = 0x1.715476p+1, L_LOW = 0x1.4ae0cp-25;

typedef struct pair {
  kv high, low;
} pair;

/* a b in two floats */
static pair product(km *m, pair a, pair b) {
  const kv high = km_mul(m, a.high, b.high);
  const kv cross = km_mad(m, a.high, b.low, km_mul(m, a.low, b.high));
  return (pair){high, km_add(m, km_product_tail(m, a.high, b.high, high), cross)};
}
#define product(m, a, b) IR_LAST_FIRST_2(product, a, b, m)

/* a + b in two floats, |a| >= |b| */
static pair sum(km *m, pair a, pair b) {
  const kv high = km_add(m, a.high, b.high);
  return (pair){high, km_add(m, km_sum_tail(m, a.high, b.high, high), km_add(m, a.low, b.low))};
}
#define sum(m, a, b) IR_LAST_FIRST_2(sum, a, b, m)

static pair constant(km *m, double high, double low) { return (pair){km_f(m, high), km_f(m, low)}; }

/* log2 of a positive finite x */
static pair log2_pair(km *m, kv x) {
  pair s;
  kv f;
  const kv k = km_log_reduce(m, x, 0x3f3504f3, &f), two = km_f(m, 2), d = km_add(m, two, f);
  s.high = km_quotient(m, f, d, km_sum_tail(m, two, f, d), &s.low);
  const pair z = product(m, s, s);
  const kv bend = km_mul(m, z.high, km_poly(m, z.high, IR_COUNT(POW_P), POW_P));
  const pair p = sum(m, constant(m, P0_HIGH, P0_LOW), ((pair){bend, km_f(m, 0)}));
  const pair tail = product(m, product(m, s, z), p), lead = product(m, s, constant(m, L_HIGH, L_LOW));
  return sum(m, sum(m, ((pair){k, km_f(m, 0)}), lead), tail);
}

/* y log2 x, held within +-200; for zero and infinite x the limit itself */
static pair exponent(km *m, kv ax, kv y) {
  const kv bits = km_as_u(m, ax), infinite = km_eq(m, bits, km_u(m, 0x7f800000)), none = km_eq(m, bits, km_u(m, 0));
  kv by = km_select(m, km_gt(m, y, km_f(m, 0x1p40)), km_f(m, 0x1p40), y);
  by = km_select(m, km_lt(m, by, km_f(m, -0x1p40)), km_f(m, -0x1p40), by);
  pair e = product(m, log2_pair(m, ax), ((pair){by, km_f(m, 0)}));
  const kv end = km_or(m, infinite, none), up = km_not(m, km_xor(m, infinite, km_lt(m, km_as_u(m, y), km_u(m, 0x80000000))));
  const kv above = km_or(m, km_gt(m, e.high, km_f(m, 200)), km_and(m, end, up));
  const kv below = km_or(m, km_lt(m, e.high, km_f(m, -200)), km_and(m, end, km_not(m, up)));
  e.high = km_select(m, below, km_f(m, -200), km_select(m, above, km_f(m, 200), e.high));
  e.low = km_select(m, km_or(m, above, below), km_f(m, 0), e.low);
  return e;
}

/* whether y is an integer, and the sign bit if it is an odd one */
static kv integer_of(km *m, kv y, kv *odd_bit) {
  const kv huge = km_ge(m, km_abs_bits(m, y), km_u(m, 0x4b800000)); /* 2^24 on: even */
  const kv safe = km_select(m, huge, km_f(m, 0), y), n = km_to_i(m, safe);
  const kv whole = km_eq(m, km_abs_bits(m, km_to_f(m, n)), km_abs_bits(m, safe)); /* as bits: a flushed denormal is none */
  const kv bit = km_shl(m, km_as_u(m, n), km_u(m, 31));
  *odd_bit = km_select(m, whole, bit, km_u(m, 0));
  return whole;
}

kv km_pow(km *m, kv x, kv y) {
  const kv xb = km_as_u(m, x), ab = km_abs_bits(m, x), inf = km_u(m, 0x7f800000), nan = km_u(m, 0x7fc00000), one = km_u(m, 0x3f800000);
  const pair e = exponent(m, km_as_f(m, ab), y);
  const kv power = km_as_u(m, km_over(m, e.high, 199, km_exp2_pair(m, e.high, e.low)));
  kv odd_bit;
  const kv whole = integer_of(m, y, &odd_bit);
  kv r = km_or(m, power, km_and(m, xb, odd_bit));
  const kv usual = km_lt(m, km_sub(m, xb, km_u(m, 0x80000001)), km_u(m, 0x7f7fffff)); /* negative, neither zero nor infinite nor NaN */
  r = km_select(m, km_and(m, usual, km_not(m, whole)), nan, r);
  r = km_select(m, km_or(m, km_gt(m, ab, inf), km_gt(m, km_abs_bits(m, y), inf)), nan, r);
  const kv sure = km_or(m, km_eq(m, xb, one), km_eq(m, km_abs_bits(m, y), km_u(m, 0)));
  return km_as_f(m, km_select(m, sure, one, r));
}
