/* sin, cos and tan in f32. Angles below 2^13 reduce by pi/2 in several exact pieces; larger ones, behind a
   branch, by 96 bits of 2/pi in integers, so the result is right over the whole range. */
#include "ir/math/private.h"

static const double MAGIC = 0x1.8p23;
enum { FAR_BITS = 0x46000000 }; /* 2^13: the pieces below are exact times 13 bits */

/* pi/2 in pieces of 11 bits, the last of 24; and in floats, for where a fused multiply-add keeps products whole */
static const double PIECES[] = {0x1.92p+0, 0x1.fb4p-12, 0x1.444p-24, 0x1.68cp-39, 0x1.1a6264p-54};
static const double FLOATS[] = {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50};

/* x - n pi/2 for |n| < 2^13 */
static kv subtract_turns(km *m, kv x, kv n) {
  if (m->fma) {
    kv r = x;
    for (uint32_t i = 0; i < IR_COUNT(FLOATS); i++) r = km_fma(m, n, km_f(m, -FLOATS[i]), r);
    return r;
  }
  kv p[IR_COUNT(PIECES)];
  for (uint32_t i = 0; i < IR_COUNT(PIECES); i++) p[i] = km_mul(m, n, km_f(m, PIECES[i]));
  const kv r2 = km_sub(m, km_sub(m, x, p[0]), p[1]); /* exact */
  const kv r3 = km_sub(m, r2, p[2]);
  if (m->loose) return km_sub(m, km_sub(m, r3, p[3]), p[4]);
  const kv low = km_sub(m, km_sub(m, km_sub(m, r2, r3), p[2]), p[3]);
  const kv r4 = km_add(m, r3, low);
  return km_add(m, r4, km_sub(m, km_sum_tail(m, r3, low, r4), p[4]));
}

/* 2/pi as a stream of 32-bit words after one word of zeros */
static const uint32_t TWO_OVER_PI[] = {0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};

/* The word at `word` + offset of the stream, word in 0..4. */
static kv stream_word(km *m, kv word, uint32_t offset) {
  kv w = km_u(m, TWO_OVER_PI[offset]);
  for (uint32_t i = 1; i <= 4; i++) w = km_select(m, km_eq(m, word, km_u(m, i)), km_u(m, TWO_OVER_PI[offset + i]), w);
  return w;
}

/* For 2^13 <= |x| finite: the number of quarter turns modulo 4 (u32) and the rest in radians. With |x| = M 2^e, the 96 bits of
   2/pi that start where M 2^e bit < 4 give the product modulo 4 with 62 bits of fraction left after the lowest word is dropped. */
static void reduce_far(km *m, kv x, kv *out) {
  const kv bits = km_abs_bits(m, x), mantissa = km_or(m, km_and(m, bits, km_u(m, 0x007fffff)), km_u(m, 0x00800000));
  const kv at = km_sub(m, km_shr(m, bits, km_u(m, 23)), km_u(m, 150 - 30)), word = km_shr(m, at, km_u(m, 5)),
           shift = km_and(m, at, km_u(m, 31));
  kv w[4], s[3];
  for (uint32_t i = 0; i < 4; i++) w[i] = stream_word(m, word, i);
  for (uint32_t i = 0; i < 3; i++) {
    const kv carried = km_shr(m, km_shr(m, w[i + 1], km_u(m, 1)), km_sub(m, km_u(m, 31), shift));
    s[i] = km_or(m, km_shl(m, w[i], shift), carried);
  }
  const kv carry_in = km_mulhi(m, mantissa, s[2]), low = km_add(m, km_mul(m, mantissa, s[1]), carry_in);
  const kv carry = km_one_where(m, km_lt(m, low, carry_in));
  const kv high = km_add(m, km_add(m, km_mul(m, mantissa, s[0]), km_mulhi(m, mantissa, s[1])), carry);
  const kv quarter = km_shr(m, km_add(m, high, km_u(m, 0x20000000)), km_u(m, 30));
  const kv rest = km_sub(m, high, km_shl(m, quarter, km_u(m, 30))); /* signed, unit 2^-30 of a quarter turn */
  const kv a = km_mul(m, km_to_f(m, km_as_i(m, km_and(m, rest, km_u(m, 0xffffffc0)))), km_f(m, 0x1p-30));
  const kv fine = km_or(m, km_shl(m, km_and(m, rest, km_u(m, 63)), km_u(m, 26)), km_shr(m, low, km_u(m, 6)));
  const kv b = km_mul(m, km_to_f(m, fine), km_f(m, 0x1p-56));
  const kv half_pi = km_f(m, FLOATS[0]), p = km_mul(m, a, half_pi);
  const kv tail = km_mad(m, b, half_pi, km_mad(m, a, km_f(m, FLOATS[1]), km_product_tail(m, a, half_pi, p)));
  const kv r = km_add(m, p, tail), negative = km_shr(m, km_as_u(m, x), km_u(m, 31)), mask = km_sub(m, km_u(m, 0), negative);
  out[0] = km_sub(m, km_xor(m, quarter, mask), mask);
  out[1] = km_as_f(m, km_xor(m, km_as_u(m, r), km_shl(m, negative, km_u(m, 31))));
}

/* x = quarter pi/2 + r, |r| <= pi/4 (and a little) */
static kv reduce(km *m, kv x, kv *r) {
  const bool near = m->has_dom && m->lo >= -8192 && m->hi <= 8192;
  const kv bits = km_abs_bits(m, x);
  const kv t = km_mad(m, x, km_f(m, 0x1.45f306p-1), km_f(m, MAGIC));
  kv found[KM_RARE_MAX] = {km_as_u(m, t), subtract_turns(m, x, km_sub(m, t, km_f(m, MAGIC)))};
  if (!near) km_rare(m, bits, FAR_BITS - 1, reduce_far, x, found, 2);
  *r = found[1];
  return found[0];
}

/* fpminimax on |r| <= 0.786: sin = r + r^3 S, 2^-27.9; cos = 1 - z/2 + z^2 C, 2^-32.9; tan = r + r^3 T, 2^-29.5 */
static const float SIN7[] = {-0x1.9952ecp-13f, 0x1.110776p-7f, -0x1.555546p-3f};
static const float COS8[] = {0x1.99e8fcp-16f, -0x1.6c0c2ap-10f, 0x1.55554ap-5f};
static const float TAN15[] = {0x1.1ed6dp-8f, 0x1.7bf92p-14f, 0x1.62f874p-7f, 0x1.5cb958p-6f, 0x1.bada54p-5f, 0x1.110d9cp-3f, 0x1.55556p-2f};

static kv sin_poly(km *m, kv r, kv z) { return km_mad(m, km_mul(m, z, r), km_poly(m, z, IR_COUNT(SIN7), SIN7), r); }

static kv cos_poly(km *m, kv z) {
  const kv one = km_f(m, 1), half = km_mul(m, z, km_f(m, -0.5)), w = km_add(m, one, half);
  const kv bend = km_mul(m, km_mul(m, z, z), km_poly(m, z, IR_COUNT(COS8), COS8));
  if (m->loose) return km_add(m, w, bend);
  return km_add(m, w, km_add(m, km_sum_tail(m, one, half, w), bend));
}

/* NaN for infinities and NaN */
static kv finite_only(km *m, kv x, kv y) {
  if (km_is_finite(m)) return y;
  const kv finite = km_lt(m, km_abs_bits(m, x), km_u(m, 0x7f800000));
  return km_as_f(m, km_select(m, finite, km_as_u(m, y), km_u(m, 0x7fc00000)));
}

/* sin(x + ahead pi/2) */
static kv sine(km *m, kv x, uint32_t ahead) {
  kv r;
  const kv found = reduce(m, x, &r), quarter = ahead ? km_add(m, found, km_u(m, ahead)) : found, z = km_mul(m, r, r);
  const kv odd = km_ne(m, km_and(m, quarter, km_u(m, 1)), km_u(m, 0));
  const kv y = km_select(m, odd, cos_poly(m, z), sin_poly(m, r, z));
  const kv sign = km_shl(m, km_and(m, quarter, km_u(m, 2)), km_u(m, 30));
  return finite_only(m, x, km_as_f(m, km_xor(m, km_as_u(m, y), sign)));
}

kv km_sin(km *m, kv x, kv unused) {
  (void)unused;
  return km_pass(m, x, 0x39000000, sine(m, x, 0));
}

kv km_cos(km *m, kv x, kv unused) {
  (void)unused;
  return sine(m, x, 1);
}

/* tan r, or -1 / tan r in odd quarters */
kv km_tan(km *m, kv x, kv unused) {
  (void)unused;
  kv r, q_tail;
  const kv quarter = reduce(m, x, &r), z = km_mul(m, r, r);
  const kv bend = km_mul(m, km_mul(m, z, r), km_poly(m, z, IR_COUNT(TAN15), TAN15)), t = km_add(m, r, bend);
  const kv odd = km_ne(m, km_and(m, quarter, km_u(m, 1)), km_u(m, 0));
  const kv safe = km_select(m, odd, t, km_f(m, 1)), t_tail = km_sum_tail(m, r, bend, t);
  const kv q = km_quotient(m, km_f(m, -1), safe, t_tail, &q_tail);
  return km_pass(m, x, 0x39000000, finite_only(m, x, km_select(m, odd, km_add(m, q, q_tail), t)));
}
