/* sin, cos and tan in f64. Angles below 2^22 reduce by pi/2 in four pieces; larger ones, behind a branch, by 192 bits of 2/pi in integers.
   What is left is a pair, so sums of sines and cosines need no care. */
#include "ir/math/wide_private.h"

static const double MAGIC = 0x1.8p52;
static const double PIECES[] = {0x1.921fb544p0, 0x1.0b4611a4p-34, 0x1.13198a2cp-65,
                                0x1.01b839a25204ap-96}; /* pi/2; 31 bits each but the last */
static const double HALF_PI = 0x1.921fb54442d18p+0, HALF_PI_TAIL = 0x1.1a62633145c07p-54;
enum { FAR_BITS = 0x41500000 }; /* the upper half of 2^22 */

/* x - n pi/2 for |n| < 2^22 */
static kw_pair subtract_turns(km *m, kv x, kv n) {
  const kv first = km_sub(m, x, km_mul(m, n, kw_f(m, PIECES[0]))); /* exact */
  const kw_pair a = kw_sum(m, first, km_mul(m, n, kw_f(m, -PIECES[1])));
  const kw_pair b = kw_sum(m, a.high, km_mul(m, n, kw_f(m, -PIECES[2])));
  return kw_sum(m, b.high, km_add(m, km_add(m, a.low, b.low), km_mul(m, n, kw_f(m, -PIECES[3]))));
}

/* 2/pi as a stream of 32-bit words after one word of zeros */
static const uint32_t TWO_OVER_PI[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
                                       0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5,
                                       0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff,
                                       0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7,
                                       0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046};
enum { STREAM = IR_COUNT(TWO_OVER_PI), WINDOW = 7 };

/* The seven words from `at` (u32, below 32) on: the stream is moved by 16, 8, 4, 2 and 1 words, and only what can still matter. */
static void stream_words(km *m, kv at, kv *w) {
  kv s[STREAM];
  for (uint32_t i = 0; i < STREAM; i++) s[i] = km_u(m, TWO_OVER_PI[i]);
  for (uint32_t step = 16; step > 0; step /= 2) {
    const kv moved = km_ne(m, km_and(m, at, km_u(m, step)), km_u(m, 0));
    for (uint32_t i = 0; i < WINDOW + step - 1; i++) s[i] = km_select(m, moved, s[i + step], s[i]);
  }
  for (uint32_t i = 0; i < WINDOW; i++) w[i] = s[i];
}

static kv wide_of(km *m, kv word) { return kir_cast(m->k, kir_t(SNT_U64, m->lanes), word); }
static kv low_half(km *m, kv wide) { return km_and(m, wide, kw_u(m, 0xffffffff)); }
static kv high_half(km *m, kv wide) { return km_shr(m, wide, kw_u(m, 32)); }

/* The upper four 32-bit words of the low 192 bits of mantissa * s, most significant first, as u64. */
static void multiply(km *m, kv mantissa, const kv *s, kv *product) {
  const kv factor[2] = {low_half(m, mantissa), high_half(m, mantissa)};
  kv column[6];
  for (uint32_t i = 0; i < 6; i++) column[i] = kw_u(m, 0);
  for (uint32_t f = 0; f < 2; f++)
    for (uint32_t i = f; i < 6; i++) { /* s[i] counts 2^32 (5 - i), the factor 2^32 f */
      const kv p = km_mul(m, factor[f], s[i]);
      column[i - f] = km_add(m, column[i - f], low_half(m, p));
      if (i > f) column[i - f - 1] = km_add(m, column[i - f - 1], high_half(m, p));
    }
  kv carry = kw_u(m, 0);
  for (uint32_t i = 6; i-- > 0;) {
    const kv sum = km_add(m, column[i], carry);
    carry = high_half(m, sum);
    if (i < 4) product[i] = low_half(m, sum);
  }
}

/* For 2^22 <= |x| finite: the quarter turns modulo 4 (u64) and the rest as a pair. With |x| = M 2^e, the 192 bits
   of 2/pi that start where M 2^e bit < 4 give the product modulo 4 with 126 bits of fraction left after the lowest words are dropped. */
static void reduce_far(km *m, kv x, kv *out) {
  const kv bits = kw_abs_bits(m, x), mantissa = km_or(m, km_and(m, bits, kw_u(m, 0x000fffffffffffff)), kw_u(m, 0x0010000000000000));
  const kv exponent = kir_cast(m->k, kir_t(SNT_U32, m->lanes), km_shr(m, bits, kw_u(m, 52)));
  const kv at = km_sub(m, exponent, km_u(m, 1075 - 30)), shift = wide_of(m, km_and(m, at, km_u(m, 31)));
  kv w[WINDOW], s[6], p[4];
  stream_words(m, km_shr(m, at, km_u(m, 5)), w);
  for (uint32_t i = 0; i < 6; i++) {
    const kv both = km_or(m, km_shl(m, wide_of(m, w[i]), kw_u(m, 32)), wide_of(m, w[i + 1]));
    s[i] = low_half(m, km_shr(m, both, km_sub(m, kw_u(m, 32), shift)));
  }
  multiply(m, mantissa, s, p);
  const kv high = km_or(m, km_shl(m, p[0], kw_u(m, 32)), p[1]), low = km_or(m, km_shl(m, p[2], kw_u(m, 32)), p[3]);
  const kv quarter = km_shr(m, km_add(m, high, kw_u(m, (uint64_t)1 << 61)), kw_u(m, 62));
  const kv rest = km_sub(m, high, km_shl(m, quarter, kw_u(m, 62))); /* signed, unit 2^-62 of a quarter turn */
  const kv a = km_mul(m, kw_to_f(m, kw_as_i(m, km_and(m, rest, kw_u(m, ~(uint64_t)2047)))), kw_f(m, 0x1p-62));
  const kv fine = km_or(m, km_shl(m, km_and(m, rest, kw_u(m, 2047)), kw_u(m, 52)), km_shr(m, low, kw_u(m, 12)));
  const kw_pair turns = kw_sum(m, a, km_mul(m, kw_to_f(m, kw_as_i(m, fine)), kw_f(m, 0x1p-114)));
  const kw_pair r = kw_multiply_pairs(m, turns, kw_constant(m, HALF_PI, HALF_PI_TAIL));
  const kv negative = km_shr(m, kw_as_u(m, x), kw_u(m, 63)), mask = km_sub(m, kw_u(m, 0), negative);
  const kv flip = km_shl(m, negative, kw_u(m, 63));
  out[0] = km_sub(m, km_xor(m, quarter, mask), mask);
  out[1] = kw_as_f(m, km_xor(m, kw_as_u(m, r.high), flip));
  out[2] = kw_as_f(m, km_xor(m, kw_as_u(m, r.low), flip));
}

/* x = quarter pi/2 + r, |r| <= pi/4 (and a little) */
static kv reduce(km *m, kv x, kw_pair *r) {
  const kv upper = kir_cast(m->k, kir_t(SNT_U32, m->lanes), km_shr(m, kw_abs_bits(m, x), kw_u(m, 32)));
  const kv t = km_add(m, km_mul(m, x, kw_f(m, 0x1.45f306dc9c883p-1)), kw_f(m, MAGIC));
  const kw_pair near = subtract_turns(m, x, km_sub(m, t, kw_f(m, MAGIC)));
  kv found[] = {kw_as_u(m, t), near.high, near.low};
  km_rare(m, upper, FAR_BITS - 1, reduce_far, x, found, 3);
  *r = (kw_pair){found[1], found[2]};
  return found[0];
}

/* fpminimax on |r| <= 0.786: sin = r + r^3 S, 2^-57.9; cos = 1 - z/2 + z^2 C, 2^-63.9 */
static const double SIN[] = {-0x1.5555555555548p-3, 0x1.111111110f751p-7,   -0x1.a01a019befb93p-13,
                             0x1.71de355c5f14p-19,  -0x1.ae5e52092adcap-26, 0x1.5d8d6e1092095p-33};
static const double COS[] = {0x1.555555555554bp-5,   -0x1.6c16c16c1500cp-10, 0x1.a01a019c8d949p-16,
                             -0x1.27e4f7f008783p-22, 0x1.1ee9da88f4795p-29,  -0x1.8fa5c165deabcp-37};

static kw_pair sin_of(km *m, kw_pair r, kv z) {
  const kv bend = km_mul(m, km_mul(m, z, r.high), kw_poly(m, z, IR_COUNT(SIN), SIN));
  return kw_fast_sum(m, r.high, km_add(m, bend, km_mul(m, r.low, km_sub(m, kw_f(m, 1), km_mul(m, z, kw_f(m, 0.5))))));
}

static kw_pair cos_of(km *m, kw_pair r, kv z) {
  const kw_pair square = kw_product(m, r.high, r.high), w = kw_fast_sum(m, kw_f(m, 1), km_mul(m, square.high, kw_f(m, -0.5)));
  const kv bend = km_mul(m, km_mul(m, z, z), kw_poly(m, z, IR_COUNT(COS), COS));
  const kv tail = km_sub(m, km_mul(m, square.low, kw_f(m, -0.5)), km_mul(m, r.high, r.low));
  return kw_fast_sum(m, w.high, km_add(m, w.low, km_add(m, bend, tail)));
}

/* NaN for infinities and NaN */
static kv finite_only(km *m, kv x, kv y) {
  return kw_as_f(m, km_select(m, km_lt(m, kw_abs_bits(m, x), kw_u(m, KW_INF)), kw_as_u(m, y), kw_u(m, KW_NAN)));
}

static kv is_odd(km *m, kv quarter) { return km_ne(m, km_and(m, quarter, kw_u(m, 1)), kw_u(m, 0)); }

/* sin(x + ahead pi/2) */
static kv sine(km *m, kv x, uint32_t ahead) {
  kw_pair r;
  const kv quarter = km_add(m, reduce(m, x, &r), kw_u(m, ahead)), z = km_mul(m, r.high, r.high);
  const kw_pair y = kw_choose_pair(m, is_odd(m, quarter), cos_of(m, r, z), sin_of(m, r, z));
  const kv sign = km_shl(m, km_and(m, quarter, kw_u(m, 2)), kw_u(m, 62));
  return finite_only(m, x, kw_as_f(m, km_xor(m, kw_as_u(m, km_add(m, y.high, y.low)), sign)));
}

kv kw_sin(km *m, kv x, kv unused) {
  (void)unused;
  return kw_pass(m, x, 0x1p-28, sine(m, x, 0));
}

kv kw_cos(km *m, kv x, kv unused) {
  (void)unused;
  return sine(m, x, 1);
}

/* sin / cos, or -cos / sin in odd quarters */
kv kw_tan(km *m, kv x, kv unused) {
  (void)unused;
  kw_pair r;
  const kv odd = is_odd(m, reduce(m, x, &r)), z = km_mul(m, r.high, r.high);
  const kw_pair s = sin_of(m, r, z), c = cos_of(m, r, z);
  const kw_pair y = kw_divide_pairs(m, kw_choose_pair(m, odd, kw_negate(m, c), s), kw_choose_pair(m, odd, s, c));
  return kw_pass(m, x, 0x1p-28, finite_only(m, x, km_add(m, y.high, y.low)));
}
