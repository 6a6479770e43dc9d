/* log, log2, log1p, asinh, acosh, atanh and pow in f64. A positive u + tail is 2^k (1 + f) with 1 + f in [0.707, 1.414), f a pair; with
   s = f / (2 + f), log(1 + f) = 2 s + s^3 (2/3 + s^2 P(s^2)), where all but P has a tail. */
#include "ir/math/wide_private.h"

/* remez of P, |s| <= 0.172: 2^-70 of the logarithm */
static const double LOG[] = {0x1.999999999999ap-2, 0x1.2492492492529p-2, 0x1.c71c71c6e8896p-3, 0x1.745d177c65524p-3,
                             0x1.3b1395148ee39p-3, 0x1.1118ef7804dc2p-3, 0x1.df74a16b7d6ecp-4, 0x1.e0828e6bb969ap-4};
static const double LN2 = 0x1.62e42fefa39efp-1, LN2_TAIL = 0x1.abc9e3b39803fp-56;
static const double INVERSE = 0x1.71547652b82fep0, INVERSE_TAIL = 0x1.777d0ffda0d24p-56; /* 1 / ln 2 */
static const uint64_t ROOT_HALF = 0x3fe6a09e667f3bcd;

static kw_pair log1p_of(km *m, kw_pair f) {
  const kw_pair d = kw_add_pairs(m, kw_constant(m, 2, 0), f), s = kw_divide_pairs(m, f, d), z = kw_multiply_pairs(m, s, s);
  const kv bend = km_mul(m, z.high, kw_poly(m, z.high, IR_COUNT(LOG), LOG));
  const kw_pair p = kw_add_pairs(m, kw_constant(m, 0x1.5555555555555p-1, 0x1.5555555555555p-55), kw_alone(m, bend));
  const kw_pair tail = kw_multiply_pairs(m, kw_multiply_pairs(m, s, z), p);
  return kw_add_pairs(m, ((kw_pair){km_add(m, s.high, s.high), km_add(m, s.low, s.low)}), tail);
}

/* u + tail = 2^k (1 + f); the power of two is taken off by bits the tail of a huge u does not matter. */
static kw_pair take_apart(km *m, kw_pair u, kv *k) {
  const kv bits = kw_as_u(m, u.high);
  *k = km_shr(m, kw_as_i(m, km_sub(m, bits, kw_u(m, ROOT_HALF))), kw_i(m, 52));
  const kv shift = km_shl(m, *k, kw_i(m, 52)), part = kw_as_f(m, km_sub(m, bits, kw_as_u(m, shift)));
  const kv down = kw_choose(m, km_gt(m, *k, kw_i(m, 1000)), kw_f(m, 0), kw_as_f(m, km_sub(m, kw_i(m, (int64_t)KW_ONE), shift)));
  return kw_sum(m, km_sub(m, part, kw_f(m, 1)), km_mul(m, u.low, down));
}

kv kw_log_of(km *m, kw_pair u, int64_t offset) {
  kv k;
  const kw_pair l = log1p_of(m, take_apart(m, u, &k));
  const kv n = kw_to_f(m, km_add(m, k, kw_i(m, offset)));
  const kw_pair y = kw_add_pairs(m, kw_multiply_pairs(m, kw_alone(m, n), kw_constant(m, LN2, LN2_TAIL)), l);
  return km_add(m, y.high, y.low);
}

/* A denormal times 2^64 is normal; *extra is what has to come off the exponent. */
static kv raised(km *m, kv x, kv *extra) {
  const kv tiny = km_lt(m, kw_as_u(m, x), kw_u(m, 0x0010000000000000));
  *extra = km_select(m, tiny, kw_f(m, -64), kw_f(m, 0));
  return km_select(m, tiny, km_mul(m, x, kw_f(m, 0x1p64)), x);
}

/* The results of 0 (-inf), +inf, NaN and negative arguments. */
static kv log_specials(km *m, kv x, kv y) {
  const kv bits = kw_as_u(m, x), none = km_eq(m, kw_abs_bits(m, x), kw_u(m, 0));
  const kv wrong = km_select(m, none, kw_u(m, KW_INF | KW_SIGN), kw_u(m, KW_NAN));
  const kv special = km_select(m, km_eq(m, bits, kw_u(m, KW_INF)), bits, wrong);
  const kv usual = km_lt(m, km_sub(m, bits, kw_u(m, 1)), kw_u(m, KW_INF - 1));
  return kw_as_f(m, km_select(m, usual, kw_as_u(m, y), special));
}

kv kw_log(km *m, kv x, kv unused) {
  (void)unused;
  kv extra, k;
  const kw_pair l = log1p_of(m, take_apart(m, kw_alone(m, raised(m, x, &extra)), &k));
  const kv n = km_add(m, kw_to_f(m, k), extra);
  const kw_pair y = kw_add_pairs(m, kw_multiply_pairs(m, kw_alone(m, n), kw_constant(m, LN2, LN2_TAIL)), l);
  return log_specials(m, x, km_add(m, y.high, y.low));
}

kw_pair kw_log2_pair(km *m, kv x) {
  kv extra, k;
  const kw_pair l = log1p_of(m, take_apart(m, kw_alone(m, raised(m, x, &extra)), &k));
  const kv n = km_add(m, kw_to_f(m, k), extra);
  return kw_add_pairs(m, kw_alone(m, n), kw_multiply_pairs(m, l, kw_constant(m, INVERSE, INVERSE_TAIL)));
}

kv kw_log2(km *m, kv x, kv unused) {
  (void)unused;
  const kw_pair y = kw_log2_pair(m, x);
  return log_specials(m, x, km_add(m, y.high, y.low));
}

kv kw_log1p(km *m, kv x, kv unused) {
  (void)unused;
  const kw_pair u = kw_sum(m, kw_f(m, 1), x);
  return kw_pass(m, x, 0x1p-54, log_specials(m, u.high, kw_log_of(m, u, 0)));
}

/* log(|x| + sqrt(x^2 + 1)); from 2^28 on log(2|x|) */
kv kw_asinh(km *m, kv x, kv unused) {
  (void)unused;
  const kv a = kw_abs(m, x), far = km_gt(m, a, kw_f(m, 0x1p28)), b = km_select(m, far, kw_f(m, 1), a), half = km_mul(m, a, kw_f(m, 0.5));
  const kw_pair root = kw_root_of(m, kw_add_pairs(m, kw_product(m, b, b), kw_constant(m, 1, 0)));
  const kw_pair u = kw_add_pairs(m, root, kw_alone(m, b));
  const kw_pair quarter = {km_mul(m, u.high, kw_f(m, 0.25)), km_mul(m, u.low, kw_f(m, 0.25))};
  const kv y = kw_log_of(m, kw_choose_pair(m, far, kw_alone(m, half), quarter), 2);
  const kv sure = kw_choose(m, km_eq(m, kw_as_u(m, a), kw_u(m, KW_INF)), a, y);
  return kw_pass(m, x, 0x1p-28, kw_with_sign(m, sure, x));
}

/* log(x + sqrt(x^2 - 1)); from 2^28 on log(2x) */
kv kw_acosh(km *m, kv x, kv unused) {
  (void)unused;
  const kv far = km_gt(m, x, kw_f(m, 0x1p28)), b = km_select(m, far, kw_f(m, 2), kw_at_least(m, x, 1)), half = km_mul(m, x, kw_f(m, 0.5));
  const kw_pair root = kw_root_of(m, kw_add_pairs(m, kw_product(m, b, b), kw_constant(m, -1, 0)));
  const kw_pair u = kw_add_pairs(m, root, kw_alone(m, b));
  const kw_pair quarter = {km_mul(m, u.high, kw_f(m, 0.25)), km_mul(m, u.low, kw_f(m, 0.25))};
  const kv y = kw_log_of(m, kw_choose_pair(m, far, kw_alone(m, half), quarter), 2);
  const kv bits = kw_as_u(m, x), usual = km_lt(m, km_sub(m, bits, kw_u(m, KW_ONE)), kw_u(m, KW_INF - KW_ONE));
  const kv special = km_select(m, km_eq(m, bits, kw_u(m, KW_INF)), bits, kw_u(m, KW_NAN));
  return kw_as_f(m, km_select(m, usual, kw_as_u(m, y), special));
}

/* log((1 + |x|) / (1 - |x|)) / 2 */
kv kw_atanh(km *m, kv x, kv unused) {
  (void)unused;
  const kv a = kw_abs(m, x), one = kw_f(m, 1), valid = km_lt(m, a, one), b = km_select(m, valid, a, kw_f(m, 0));
  const kw_pair u = kw_divide_pairs(m, kw_sum(m, one, b), kw_sum(m, one, km_neg(m, b)));
  const kv half = kw_as_u(m, km_mul(m, kw_log_of(m, u, 0), kw_f(m, 0.5)));
  const kv edge = km_select(m, km_eq(m, kw_as_u(m, a), kw_u(m, KW_ONE)), kw_u(m, KW_INF), kw_u(m, KW_NAN));
  return kw_pass(m, x, 0x1p-28, kw_with_sign(m, kw_as_f(m, km_select(m, valid, half, edge)), x));
}

/* y log2 |x| times ln 2, held within +-1000; for zero and infinite x the limit itself */
static kw_pair exponent(km *m, kv ax, kv y) {
  const kv bits = kw_as_u(m, ax), infinite = km_eq(m, bits, kw_u(m, KW_INF)), none = km_eq(m, bits, kw_u(m, 0));
  const kv by = kw_at_most(m, kw_at_least(m, y, -0x1p80), 0x1p80), zero = kw_f(m, 0), most = kw_f(m, 1000), least = kw_f(m, -1000);
  const kw_pair power = kw_multiply_pairs(m, kw_log2_pair(m, ax), ((kw_pair){by, zero}));
  const kw_pair e = kw_multiply_pairs(m, power, kw_constant(m, LN2, LN2_TAIL));
  const kv end = km_or(m, infinite, none), up = km_not(m, km_xor(m, infinite, km_lt(m, kw_as_u(m, y), kw_u(m, KW_SIGN))));
  const kv above = km_or(m, km_gt(m, e.high, most), km_and(m, end, up));
  const kv below = km_or(m, km_lt(m, e.high, least), km_and(m, end, km_not(m, up)));
  return (kw_pair){km_select(m, below, least, km_select(m, above, most, e.high)), km_select(m, km_or(m, above, below), zero, e.low)};
}

/* whether y is an integer, and the sign bit if it is an odd one */
static kv integer_of(km *m, kv y, kv *odd_bit) {
  const kv huge = km_ge(m, kw_abs_bits(m, y), kw_u(m, 0x4340000000000000)); /* 2^53 on: even */
  const kv safe = km_select(m, huge, kw_f(m, 0), y), n = kir_cast(m->k, kir_t(SNT_I64, m->lanes), safe);
  const kv whole = km_eq(m, kw_abs_bits(m, kw_to_f(m, n)), kw_abs_bits(m, safe));
  *odd_bit = km_select(m, whole, km_shl(m, kw_as_u(m, n), kw_u(m, 63)), kw_u(m, 0));
  return whole;
}

kv kw_pow(km *m, kv x, kv y) {
  const kv xb = kw_as_u(m, x), ab = kw_abs_bits(m, x), inf = kw_u(m, KW_INF), nan = kw_u(m, KW_NAN), one = kw_u(m, KW_ONE);
  const kv power = kw_as_u(m, kw_exp_of(m, exponent(m, kw_as_f(m, ab), y), 0));
  kv odd_bit;
  const kv whole = integer_of(m, y, &odd_bit);
  kv r = km_or(m, power, km_and(m, xb, odd_bit));
  const kv usual = km_lt(m, km_sub(m, xb, kw_u(m, KW_SIGN + 1)), kw_u(m, KW_INF - 1)); /* negative, neither zero nor infinite nor NaN */
  r = km_select(m, km_and(m, usual, km_not(m, whole)), nan, r);
  r = km_select(m, km_or(m, km_gt(m, ab, inf), km_gt(m, kw_abs_bits(m, y), inf)), nan, r);
  const kv sure = km_or(m, km_eq(m, xb, one), km_eq(m, kw_abs_bits(m, y), kw_u(m, 0)));
  return kw_as_f(m, km_select(m, sure, one, r));
}
