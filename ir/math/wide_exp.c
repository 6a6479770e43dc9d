/* exp, exp2, expm1, sinh, cosh, tanh, sigmoid and erf in f64. An argument is n ln 2 + r, |r| <= ln(2)/2, and e^r - 1 a pair: r, its tail and
   r^2 times a polynomial. */
#include "ir/math/wide_private.h"

static const double MAGIC = 0x1.8p52; /* bits 0x4338000000000000: the integer n sits in the low bits of MAGIC + n */
static const double LN2 = 0x1.62e42fefa39efp-1, LN2_TAIL = 0x1.abc9e3b39803fp-56;
static const double LN2_HIGH = 0x1.62e42fefa38p-1, LN2_LOW = 0x1.ef35793c7673p-45; /* HIGH has 42 bits: n * HIGH is exact */

/* fpminimax: expm1(r) = r + r^2 P(r), |r| <= 0.3467: 2^-61.5 */
static const double EXPM1_12[] = {0.5,
                                  0x1.5555555555559p-3,
                                  0x1.555555555554ap-5,
                                  0x1.111111110f651p-7,
                                  0x1.6c16c16c1c0ccp-10,
                                  0x1.a01a01b005b55p-13,
                                  0x1.a01a018731649p-16,
                                  0x1.71ddf808ef2f6p-19,
                                  0x1.27e521b844052p-22,
                                  0x1.af5f387fc28f7p-26,
                                  0x1.1f044a876af77p-29};

/* The integer nearest x, and that as an i64; |x| < 2^51. */
static kv nearest(km *m, kv x, kv *integer) {
  const kv t = km_add(m, x, kw_f(m, MAGIC));
  *integer = km_sub(m, kw_as_i(m, t), kw_i(m, 0x4338000000000000));
  return km_sub(m, t, kw_f(m, MAGIC));
}

/* x = n ln 2 + r */
static kw_pair reduce(km *m, kw_pair x, kv *integer) {
  const kv n = nearest(m, km_mul(m, x.high, kw_f(m, 0x1.71547652b82fep0)), integer);
  const kv coarse = km_sub(m, x.high, km_mul(m, n, kw_f(m, LN2_HIGH)));
  return kw_sum(m, coarse, km_sub(m, x.low, km_mul(m, n, kw_f(m, LN2_LOW))));
}

static kw_pair expm1_of(km *m, kw_pair r) {
  const kv bend = km_mul(m, km_mul(m, r.high, r.high), kw_poly(m, r.high, IR_COUNT(EXPM1_12), EXPM1_12));
  return kw_sum(m, r.high, km_add(m, bend, km_add(m, r.low, km_mul(m, r.low, r.high))));
}

/* p 2^n for n in -2000..2000: three factors, of which the first keeps every bit of p, and at most one result is denormal. */
static kv scale(km *m, kv p, kv n) {
  const kv third = km_shr(m, n, kw_i(m, 1)), rest = km_sub(m, n, third), low = km_shr(m, rest, kw_i(m, 1));
  const kv once = km_mul(m, km_mul(m, p, kw_pow2(m, low)), kw_pow2(m, km_sub(m, rest, low)));
  return km_mul(m, once, kw_pow2(m, third));
}
#define scale(m, p, n) IR_LAST_FIRST_2(scale, p, n, m)

static kv one_plus(km *m, kw_pair p) {
  const kw_pair s = kw_fast_sum(m, kw_f(m, 1), p.high);
  return km_add(m, s.high, km_add(m, s.low, p.low));
}

kv kw_exp_of(km *m, kw_pair x, int64_t offset) {
  kv n;
  const kw_pair p = expm1_of(m, reduce(m, x, &n));
  return scale(m, one_plus(m, p), km_add(m, n, kw_i(m, offset)));
}

static kw_pair alone(km *m, kv x) { return kw_alone(m, x); }
static kv held(km *m, kv x, double limit) { return kw_at_most(m, kw_at_least(m, x, -limit), limit); }

kv kw_exp(km *m, kv x, kv unused) {
  (void)unused;
  return kw_pass(m, x, 0, kw_exp_of(m, alone(m, held(m, x, 1000)), 0));
}

kv kw_exp2(km *m, kv x, kv unused) {
  (void)unused;
  kv integer;
  const kv clamped = held(m, x, 1200), n = nearest(m, clamped, &integer), f = km_sub(m, clamped, n);
  const kw_pair p = expm1_of(m, kw_multiply_pairs(m, alone(m, f), kw_constant(m, LN2, LN2_TAIL)));
  return kw_pass(m, x, 0, scale(m, one_plus(m, p), integer));
}

/* e^x - 1 for |x| <= 750 or so: 2^n p + (2^n - 1), halved to survive n = 1024 */
static kv expm1_body(km *m, kv x) {
  kv n;
  const kw_pair p = expm1_of(m, reduce(m, alone(m, x), &n));
  const kv s = kw_pow2(m, km_sub(m, n, kw_i(m, 1)));
  const kw_pair sum = kw_sum(m, km_sub(m, s, kw_f(m, 0.5)), km_mul(m, s, p.high));
  const kv y = km_add(m, sum.high, km_add(m, sum.low, km_mul(m, s, p.low)));
  return km_add(m, y, y);
}

kv kw_expm1(km *m, kv x, kv unused) {
  (void)unused;
  const kv y = expm1_body(m, kw_at_most(m, kw_at_least(m, x, -50), 709.9));
  return kw_pass(m, x, 0x1p-54, kw_choose(m, km_gt(m, x, kw_f(m, 0x1.62e42fefa39efp+9)), kw_as_f(m, kw_u(m, KW_INF)), y));
}

/* t = e^|x| - 1: (t + t / (t + 1)) / 2; far out e^|x| / 2 */
kv kw_sinh(km *m, kv x, kv unused) {
  (void)unused;
  const kv a = kw_abs(m, x), t = expm1_body(m, kw_at_most(m, a, 23));
  const kv near = km_mul(m, km_add(m, t, kw_div(m, t, km_add(m, t, kw_f(m, 1)))), kw_f(m, 0.5));
  const kv far = kw_exp_of(m, alone(m, kw_at_most(m, a, 1000)), -1);
  return kw_pass(m, x, 0x1p-28, kw_with_sign(m, km_select(m, km_gt(m, a, kw_f(m, 22)), far, near), x));
}

kv kw_cosh(km *m, kv x, kv unused) {
  (void)unused;
  const kv half = kw_exp_of(m, alone(m, kw_at_most(m, kw_abs(m, x), 1000)), -1);
  const kv y = km_add(m, half, kw_div(m, kw_f(m, 0.25), half));
  return kw_choose(m, km_gt(m, kw_abs_bits(m, x), kw_u(m, KW_INF)), x, y);
}

/* t / (t + 2), t = e^(2|x|) - 1 */
kv kw_tanh(km *m, kv x, kv unused) {
  (void)unused;
  const kv a = kw_at_most(m, kw_abs(m, x), 20), t = expm1_body(m, km_add(m, a, a));
  return kw_pass(m, x, 0x1p-28, kw_with_sign(m, kw_div(m, t, km_add(m, t, kw_f(m, 2))), x));
}

/* e^-|x| over 1 + e^-|x| on the left, 1 over it on the right */
kv kw_sigmoid(km *m, kv x, kv unused) {
  (void)unused;
  const kv z = kw_exp_of(m, alone(m, kw_at_least(m, km_neg(m, kw_abs(m, x)), -1000)), 0), one = kw_f(m, 1);
  const kv over = km_select(m, km_lt(m, x, kw_f(m, 0)), z, one);
  return kw_pass(m, x, 0, kw_div(m, over, km_add(m, z, one)));
}

/* fpminimax: erf(x) = x + x E(x^2), |x| <= 0.84375: 2^-56; remez weighted by erfc: log(erfc(2 + u)) on 0.84..5.95: erfc within 2^-61.1 */
static const double ERF[] = {0x1.06eba8214db68p-3,  -0x1.812746b03799bp-2,  0x1.ce2f21a03ed2fp-4,  -0x1.b82ce3113b5f4p-6,
                             0x1.565bccd4ecd4p-8,   -0x1.c02da8596eea7p-11, 0x1.f9a1abfa6be1dp-14, -0x1.f4b341af7185ep-17,
                             0x1.b83fcc1453653p-20, -0x1.515140e7d4bf1p-23, 0x1.6fe8f3737edf9p-27};
static const double LOG_ERFC[] = {-0x1.575b329b1f516p2,   -0x1.1ac3258a8dc2cp2,   -0x1.d8f5dece92339p-1,  -0x1.0dc3b5fb0ee39p-6,
                                  0x1.d406b3734d656p-9,   -0x1.7ffcfb4b1e4d2p-11, 0x1.1bc3a61c86485p-13,  -0x1.5b656c88ac217p-16,
                                  0x1.0604532eb4e4ap-19,  0x1.b54618eb6897p-23,   -0x1.73e70066271efp-23, 0x1.f0c1ac947cd4cp-25,
                                  -0x1.e025c0d4788d5p-27, 0x1.5954bac584c8bp-29,  -0x1.1c587e88d8789p-32, -0x1.1e77b7702aa7fp-35,
                                  0x1.0cbcfee5bd5d5p-35,  -0x1.908c4adbbed43p-37, 0x1.5417b4ee85f0dp-39,  -0x1.edcdfaaeb7179p-43};

kv kw_erf(km *m, kv x, kv unused) {
  (void)unused;
  const kv a = kw_abs(m, x), z = km_mul(m, x, x), small = km_add(m, a, km_mul(m, a, kw_poly(m, z, IR_COUNT(ERF), ERF)));
  const kv u = km_sub(m, kw_at_most(m, kw_at_least(m, a, 0.84), 5.95), kw_f(m, 2));
  const kv large = km_sub(m, kw_f(m, 1), kw_exp_of(m, alone(m, kw_poly(m, u, IR_COUNT(LOG_ERFC), LOG_ERFC)), 0));
  const kv y = km_select(m, km_lt(m, a, kw_f(m, 0.84375)), small, large);
  return kw_pass(m, x, 0, kw_with_sign(m, y, x));
}
