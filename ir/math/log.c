/* log, log2, log1p, asinh, acosh and atanh in f32: the argument is 2^k (1 + f) with 1 + f in [2/3, 4/3), taken apart by integer
   operations on its bits, denormals included; log(1 + f) is one polynomial. */
#include "ir/math/private.h"
#include <math.h>

static const double LN2_HIGH = 0x1.62e4p-1, LN2_LOW = 0x1.7f7d1cp-20; /* HIGH has 15 bits: k * HIGH is exact */

/* fpminimax of log(1 + f) = f - f^2/2 + f^3 P(f), |f| <= 1/3: 2^-27.7, and one degree less, 2^-24.7 */
static const float LOG10TH[] = {-0x1.080caap-3f, 0x1.1e73b8p-3f, -0x1.f30e34p-4f, 0x1.1ed422p-3f,
                                -0x1.559de4p-3f, 0x1.99d05ep-3f, -0x1.fffefp-3f,  0x1.555506p-2f};
static const float LOG9TH[] = {0x1.1b0d9cp-3f, -0x1.35b426p-3f, 0x1.1f954ep-3f, -0x1.515a64p-3f,
                               0x1.99c32ep-3f, -0x1.000b1cp-2f, 0x1.555528p-2f};

/* Horner's rule in f^2 for every other coefficient from c[first] on */
static kv every_other(km *m, kv square, uint32_t first, uint32_t count, const float *c) {
  kv sum = km_f(m, c[first]);
  for (uint32_t i = first + 2; i < count; i += 2) sum = km_mad(m, sum, square, km_f(m, c[i]));
  return sum;
}

/* f^3 P(f), even and odd powers by themselves: as many steps, half as many of them one behind another */
static kv log_bend(km *m, kv f, kv square) {
  const uint32_t count = m->loose ? IR_COUNT(LOG9TH) : IR_COUNT(LOG10TH), odd = count & 1;
  const float *c = m->loose ? LOG9TH : LOG10TH;
  const kv p = km_mad(m, every_other(m, square, odd, count, c), f, every_other(m, square, 1 - odd, count, c));
  return km_mul(m, km_mul(m, square, f), p);
}

/* k ln 2 + log(1 + f) + tail, if there is one */
static kv log_sum(km *m, kv k, kv f, kv tail) {
  const kv square = km_mul(m, f, f), bend = log_bend(m, f, square);
  const kv low = km_mad(m, k, km_f(m, LN2_LOW), tail ? km_add(m, bend, tail) : bend);
  const kv y = km_add(m, km_mad(m, square, km_f(m, -0.5), low), f);
  return km_mad(m, k, km_f(m, LN2_HIGH), y);
}

/* Positive finite x (denormals too) = 2^k (1 + f), 1 + f in [from, 2 from), `from` given by its bits. */
kv km_log_reduce(km *m, kv x, uint32_t from, kv *f) {
  kv bits = km_as_u(m, x), extra = km_i(m, 0);
  const bool normal = m->lo >= 0x1p-126f;
  if (!normal) {                                                  /* a denormal's bits are the integer x 2^149 */
    const kv tiny = km_lt(m, km_as_i(m, x), km_i(m, 0x00800000)); /* signed: processors' vectors compare and convert so */
    bits = km_select(m, tiny, km_as_u(m, km_to_f(m, km_as_i(m, x))), bits);
    extra = km_select(m, tiny, km_i(m, -149), extra);
  }
  const kv k = km_shr(m, km_as_i(m, km_sub(m, bits, km_u(m, from))), km_i(m, 23));
  *f = km_sub(m, km_as_f(m, km_sub(m, bits, km_as_u(m, km_shl(m, k, km_i(m, 23))))), km_f(m, 1));
  return km_to_f(m, normal ? k : km_add(m, k, extra));
}

/* The results of 0 (-inf), +inf, NaN and negative arguments; `shifted` is x for log and log2, 1 + x for log1p. */
static kv log_specials(km *m, kv shifted, kv y) {
  if (m->lo > 0 && km_is_finite(m)) return y;
  if (m->lo > 0 && m->ieee) return km_select(m, km_lt(m, shifted, km_f(m, INFINITY)), y, shifted);
  if (m->lo > 0) return km_beyond(m, shifted, 0x7f7fffff, y);
  const kv bits = km_as_i(m, shifted);
  const kv wrong = km_select(m, km_eq(m, km_add(m, bits, bits), km_i(m, 0)), km_u(m, 0xff800000), km_u(m, 0x7fc00000));
  const kv endless = km_gt(m, bits, km_i(m, 0x7f7fffff)), right = km_select(m, endless, km_as_u(m, shifted), km_as_u(m, y));
  return km_as_f(m, km_select(m, km_lt(m, bits, km_i(m, 1)), wrong, right));
}
#define log_specials(m, x, y) IR_LAST_FIRST_2(log_specials, x, y, m)

enum { TWO_THIRDS = 0x3f2aaaab };

kv km_log(km *m, kv x, kv unused) {
  (void)unused;
  kv f;
  const kv k = km_log_reduce(m, x, TWO_THIRDS, &f);
  return log_specials(m, x, log_sum(m, k, f, 0));
}

/* log(1 + f) in two parts, the first of 12 bits, so that its product with the first part of 1/ln 2 is exact */
kv km_log2(km *m, kv x, kv unused) {
  (void)unused;
  kv f;
  const kv k = km_log_reduce(m, x, TWO_THIRDS, &f), square = km_mul(m, f, f), half = km_mul(m, square, km_f(m, 0.5));
  const kv bend = log_bend(m, f, square);
  const kv high = km_as_f(m, km_and(m, km_as_u(m, km_sub(m, f, half)), km_u(m, 0xfffff000)));
  const kv low = km_add(m, km_sub(m, km_sub(m, f, high), half), bend);
  const kv part = km_mad(m, low, km_f(m, 0x1.715476p+0), km_mul(m, high, km_f(m, 0x1.47652cp-12)));
  const kv main = km_mul(m, high, km_f(m, 0x1.714p+0)), y = km_add(m, k, main);
  return log_specials(m, x, km_add(m, y, km_add(m, km_sum_tail(m, k, main, y), part)));
}

/* log(1 + h + tail) for h > -1, plus extra ln 2, each if there is one; where h is huge, log(h). */
static kv log_of_sum(km *m, kv h, kv tail, kv extra) {
  const kv one = km_f(m, 1), u = km_add(m, h, one), bits = km_as_u(m, u);
  const kv k = km_shr(m, km_as_i(m, km_sub(m, bits, km_u(m, TWO_THIRDS))), km_i(m, 23));
  const kv shift = km_as_u(m, km_shl(m, k, km_i(m, 23)));
  const kv huge = km_gt(m, h, km_f(m, 0x1p30));
  const kv scale = km_as_f(m, km_select(m, huge, km_u(m, 0), km_sub(m, km_u(m, 0x3f800000), shift))); /* 2^-k */
  const kv exact = km_mad(m, h, scale, km_sub(m, scale, one)), rough = km_sub(m, km_as_f(m, km_sub(m, bits, shift)), one);
  const kv f = km_select(m, huge, rough, exact);
  if (tail) tail = km_mul(m, km_mul(m, tail, scale), km_sub(m, one, km_mul(m, f, km_f(m, 0.75)))); /* tail / (1 + f), nearly */
  const kv whole = km_to_f(m, k);
  return log_sum(m, extra ? km_add(m, whole, extra) : whole, f, tail);
}
#define log_of_sum(m, h, tail, extra) IR_LAST_FIRST_3(log_of_sum, h, tail, extra, m)

kv km_log1p(km *m, kv x, kv unused) {
  (void)unused;
  const kv y = log_specials(m, km_add(m, x, km_f(m, 1)), log_of_sum(m, x, 0, 0));
  return km_pass(m, x, 0x33000000, y);
}

/* log1p(|x| + (sqrt(1 + x^2) - 1)), every step with its tail; from 2^14 on log(2|x|) */
kv km_asinh(km *m, kv x, kv unused) {
  (void)unused;
  const kv a = km_abs(m, x), one = km_f(m, 1), far = km_ge(m, a, km_f(m, 0x1p14)), b = km_select(m, far, one, a);
  const kv p = km_mul(m, b, b), z = km_add(m, p, one), back = km_sub(m, z, p);
  const kv z_tail = km_add(m, km_sub(m, one, back), km_sub(m, p, km_sub(m, z, back)));
  kv s_tail, zero = km_f(m, 0);
  const kv s = km_root(m, z, km_add(m, z_tail, km_product_tail(m, b, b, p)), &s_tail), less = km_sub(m, s, one);
  const kv h = km_add(m, b, less), tail = km_add(m, km_sum_tail(m, b, less, h), s_tail);
  const kv y = log_of_sum(m, km_select(m, far, km_sub(m, a, one), h), km_select(m, far, zero, tail), km_select(m, far, one, zero));
  const kv sure = km_as_f(m, km_select(m, km_eq(m, km_as_u(m, a), km_u(m, 0x7f800000)), km_as_u(m, a), km_as_u(m, y)));
  return km_pass(m, x, 0x39000000, km_with_sign(m, sure, x));
}

/* log1p(t + sqrt(2t + t^2)), t = x - 1 exact; from 2^14 on log(2x) */
kv km_acosh(km *m, kv x, kv unused) {
  (void)unused;
  const kv one = km_f(m, 1), zero = km_f(m, 0), far = km_ge(m, x, km_f(m, 0x1p14)), t = km_select(m, far, one, km_sub(m, x, one));
  const kv p = km_mul(m, t, t), twice = km_add(m, t, t), z = km_add(m, twice, p), back = km_sub(m, z, twice);
  const kv z_tail = km_add(m, km_sub(m, p, back), km_sub(m, twice, km_sub(m, z, back)));
  kv s_tail;
  const kv s = km_root(m, z, km_add(m, z_tail, km_product_tail(m, t, t, p)), &s_tail);
  const kv h = km_add(m, s, t), tail = km_add(m, km_sum_tail(m, s, t, h), s_tail);
  const kv y = log_of_sum(m, km_select(m, far, km_sub(m, x, one), h), km_select(m, far, zero, tail), km_select(m, far, one, zero));
  const kv bits = km_as_u(m, x), usual = km_lt(m, km_sub(m, bits, km_u(m, 0x3f800000)), km_u(m, 0x7f800000 - 0x3f800000));
  const kv special = km_select(m, km_eq(m, bits, km_u(m, 0x7f800000)), bits, km_u(m, 0x7fc00000));
  return km_as_f(m, km_select(m, usual, km_as_u(m, y), special));
}

/* log1p(2|x| / (1 - |x|)) / 2 */
kv km_atanh(km *m, kv x, kv unused) {
  (void)unused;
  const kv a = km_abs(m, x), one = km_f(m, 1), valid = km_lt(m, a, one), b = km_select(m, valid, a, km_f(m, 0));
  const kv d = km_sub(m, one, b), d_tail = km_sub(m, km_sub(m, one, d), b);
  kv tail;
  const kv q = km_quotient(m, km_add(m, b, b), d, d_tail, &tail);
  const kv h = km_add(m, q, tail), y = log_of_sum(m, h, km_sum_tail(m, q, tail, h), 0);
  const kv half = km_as_u(m, km_mul(m, y, km_f(m, 0.5)));
  const kv edge = km_select(m, km_eq(m, km_as_u(m, a), km_u(m, 0x3f800000)), km_u(m, 0x7f800000), km_u(m, 0x7fc00000));
  return km_pass(m, x, 0x39000000, km_with_sign(m, km_as_f(m, km_select(m, valid, half, edge)), x));
}
