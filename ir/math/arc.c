/* asin, acos, atan and atan2 in f32: one polynomial each on a half or a whole unit, the rest by angles in two floats. */
#include "ir/math/private.h"

static const double HALF_PI = 0x1.921fb6p+0, HALF_PI_LOW = -0x1.777a5cp-25;

/* fpminimax: asin(s) = s + s^3 A(s^2), s <= 1/2: 2^-27.6; atan(q) = q + q^3 B(q^2), q <= 1: 2^-28.5, and cheaper 2^-25.8 */
static const float ASIN11[] = {0x1.5959aap-5f, 0x1.8c415ap-6f, 0x1.747b72p-5f, 0x1.330206p-4f, 0x1.5555c8p-3f};
static const float ATAN19[] = {-0x1.d5a1aap-10f, 0x1.6551e2p-7f,  -0x1.fe7d24p-6f, 0x1.da9c2ep-5f, -0x1.5825f2p-4f,
                               0x1.c0946cp-4f,   -0x1.24211ap-3f, 0x1.9991ecp-3f,  -0x1.55553ep-2f};
static const float ATAN17[] = {0x1.7ec1c4p-9f, -0x1.0c23fep-6f, 0x1.61f756p-5f, -0x1.3553f4p-4f,
                               0x1.b4dfdcp-4f, -0x1.230abp-3f,  0x1.9978eep-3f, -0x1.5554dcp-2f};

/* |x| as s = |x| up to 1/2, else s = sqrt((1 - |x|) / 2): asin(s) = s + bend, where bend includes the root's tail */
typedef struct arc {
  kv s, bend, low;
} arc;
static arc arc_of(km *m, kv a) {
  const kv low = km_lt(m, a, km_f(m, 0.5)), half = km_mul(m, km_sub(m, km_f(m, 1), a), km_f(m, 0.5));
  kv tail;
  const kv safe = km_select(m, km_ge(m, half, km_f(m, 0)), half, km_f(m, 0)), root = km_root(m, safe, km_f(m, 0), &tail);
  const kv z = km_select(m, low, km_mul(m, a, a), half), s = km_select(m, low, a, root);
  const kv bend = km_mul(m, km_mul(m, z, s), km_poly(m, z, IR_COUNT(ASIN11), ASIN11));
  return (arc){.s = s, .bend = km_add(m, bend, km_select(m, low, km_f(m, 0), tail)), .low = low};
}

static kv within_one(km *m, kv x, kv y) {
  if (m->has_dom && m->lo >= -1 && m->hi <= 1) return y;
  const kv wrong = km_gt(m, km_abs_bits(m, x), km_u(m, 0x3f800000));
  return km_as_f(m, km_select(m, wrong, km_u(m, 0x7fc00000), km_as_u(m, y)));
}

/* a - b - c + d, |a| >= |b|, the first difference exact */
static kv minus_pair(km *m, kv a, kv b, kv c, kv d) {
  const kv w = km_sub(m, a, b), tail = km_sub(m, km_sub(m, a, w), b);
  return km_add(m, w, km_add(m, tail, km_sub(m, d, c)));
}

kv km_asin(km *m, kv x, kv unused) {
  (void)unused;
  const arc p = arc_of(m, km_abs(m, x));
  const kv far_low = km_f(m, HALF_PI_LOW), bends = km_add(m, p.bend, p.bend), both = km_add(m, p.s, p.s);
  const kv far = minus_pair(m, km_f(m, HALF_PI), both, bends, far_low);
  const kv y = km_select(m, p.low, km_add(m, p.s, p.bend), far);
  return km_pass(m, x, 0x39000000, within_one(m, x, km_with_sign(m, y, x)));
}

/* low: pi/2 - asin; x >= 1/2: 2 asin(s); x <= -1/2: pi - 2 asin(s) */
kv km_acos(km *m, kv x, kv unused) {
  (void)unused;
  const arc p = arc_of(m, km_abs(m, x));
  const kv negative = km_lt(m, x, km_f(m, 0)), flip = km_and(m, km_as_u(m, x), km_u(m, 0x80000000));
  const kv s = km_as_f(m, km_xor(m, km_as_u(m, p.s), flip)), bend = km_as_f(m, km_xor(m, km_as_u(m, p.bend), flip));
  const kv quarter_low = km_f(m, HALF_PI_LOW), low = minus_pair(m, km_f(m, HALF_PI), s, bend, quarter_low);
  const kv sum = km_add(m, p.s, p.bend), right = km_add(m, sum, sum);
  const kv half_low = km_f(m, 2 * HALF_PI_LOW), bends = km_add(m, p.bend, p.bend), both = km_add(m, p.s, p.s);
  const kv left = minus_pair(m, km_f(m, 2 * HALF_PI), both, bends, half_low);
  return within_one(m, x, km_select(m, p.low, low, km_select(m, negative, left, right)));
}

/* base + base_low +- atan(q + tail), q in 0..1; minus where `flip` is the sign bit */
static kv atan_onto(km *m, kv q, kv tail, kv flip, kv base, kv base_low) {
  const kv z = km_mul(m, q, q), p = m->loose ? km_poly(m, z, IR_COUNT(ATAN17), ATAN17) : km_poly(m, z, IR_COUNT(ATAN19), ATAN19);
  const kv slope = km_mad(m, z, km_f(m, -0.5), km_f(m, 1)); /* 1 / (1 + z), nearly */
  const kv bend = km_mad(m, km_mul(m, z, q), p, km_mul(m, tail, slope));
  const kv turned = km_as_f(m, km_xor(m, km_as_u(m, q), flip)), bent = km_as_f(m, km_xor(m, km_as_u(m, bend), flip));
  const kv w = km_add(m, base, turned);
  if (m->loose) return km_add(m, w, km_add(m, bent, base_low));
  return km_add(m, w, km_add(m, km_sum_tail(m, base, turned, w), km_add(m, bent, base_low)));
}

kv km_atan(km *m, kv x, kv unused) {
  (void)unused;
  const kv a = km_abs(m, x), zero = km_f(m, 0), far = km_gt(m, a, km_f(m, 1));
  const kv b = km_select(m, far, km_select(m, km_gt(m, a, km_f(m, 0x1p60)), km_f(m, 0x1p60), a), km_f(m, 1));
  kv tail = zero, inverse;
  if (m->loose || m->exact_div) inverse = km_div(m, km_f(m, 1), b);
  else inverse = km_quotient(m, km_f(m, 1), b, zero, &tail);
  const kv flip = km_select(m, far, km_u(m, 0x80000000), km_u(m, 0)), q = km_select(m, far, inverse, a);
  const kv base_low = km_select(m, far, km_f(m, HALF_PI_LOW), zero), base = km_select(m, far, km_f(m, HALF_PI), zero);
  const kv y = atan_onto(m, q, km_select(m, far, tail, zero), flip, base, base_low);
  return km_pass(m, x, 0x39000000, km_with_sign(m, y, x));
}

/* |v| 2^60, or |v| 2^-32 where `big`: below 2^-158 of the larger nothing matters; denormals through their integer value */
static kv rescale(km *m, kv v, kv big) {
  const kv bits = km_abs_bits(m, v), a = km_as_f(m, bits);
  const kv tiny = km_mul(m, km_to_f(m, bits), km_f(m, 0x1p-89)), usual = km_mul(m, a, km_select(m, big, km_f(m, 0x1p-32), km_f(m, 0x1p60)));
  return km_select(m, km_and(m, km_lt(m, bits, km_u(m, 0x00800000)), km_not(m, big)), tiny, usual);
}

/* The smaller over the larger of |y|, |x| and its tail; 0 where both are 0, 1 where both are infinite. */
static kv ratio(km *m, kv y, kv x, kv *swapped, kv *tail) {
  const kv ay = km_abs_bits(m, y), ax = km_abs_bits(m, x), zero = km_f(m, 0), one = km_f(m, 1);
  *swapped = km_gt(m, ay, ax);
  const kv large = km_select(m, *swapped, ay, ax), small = km_select(m, *swapped, ax, ay), big = km_ge(m, large, km_u(m, 0x5f800000));
  const kv infinite = km_ge(m, large, km_u(m, 0x7f800000)), none = km_eq(m, large, km_u(m, 0)), either = km_or(m, infinite, none);
  const kv d = km_select(m, either, one, rescale(m, km_as_f(m, large), big));
  const kv edge = km_select(m, km_and(m, infinite, km_eq(m, small, large)), one, zero);
  return km_quotient(m, km_select(m, either, edge, rescale(m, km_as_f(m, small), big)), d, zero, tail);
}

kv km_atan2(km *m, kv y, kv x) {
  kv swapped, tail;
  const kv q = ratio(m, y, x, &swapped, &tail), zero = km_f(m, 0);
  const kv left = km_ne(m, km_shr(m, km_as_u(m, x), km_u(m, 31)), km_u(m, 0));
  const kv base = km_select(m, swapped, km_f(m, HALF_PI), km_select(m, left, km_f(m, 2 * HALF_PI), zero));
  const kv base_low = km_select(m, swapped, km_f(m, HALF_PI_LOW), km_select(m, left, km_f(m, 2 * HALF_PI_LOW), zero));
  const kv flip = km_select(m, km_xor(m, swapped, left), km_u(m, 0x80000000), km_u(m, 0));
  const kv angle = km_with_sign(m, atan_onto(m, q, tail, flip, base, base_low), y);
  const kv inf = km_u(m, 0x7f800000), wrong = km_or(m, km_gt(m, km_abs_bits(m, y), inf), km_gt(m, km_abs_bits(m, x), inf));
  return km_as_f(m, km_select(m, wrong, km_u(m, 0x7fc00000), km_as_u(m, angle)));
}
