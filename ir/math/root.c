/* rsqrt in f32: the device's own 1 / sqrt, which may be several ULP off and may take denormals for zero, and one exact correction. */
#include "ir/math/private.h"

/* y + y (1 - x y^2) / 2, where 1 - x y^2 is exact to first order: the tails of both products count */
static kv correct(km *m, kv x, kv y) {
  const kv s = km_mul(m, x, y), h = km_mul(m, s, y);
  const kv rest = km_sub(m, km_sub(m, km_sub(m, km_f(m, 1), h), km_product_tail(m, s, y, h)), km_mul(m, km_product_tail(m, x, y, s), y));
  return km_add(m, y, km_mul(m, km_mul(m, y, km_f(m, 0.5)), rest));
}

/* The results of zeros, infinity, NaN and negative arguments. */
static kv specials(km *m, kv x, kv y) {
  const kv bits = km_as_u(m, x), inf = km_u(m, 0x7f800000), none = km_eq(m, km_abs_bits(m, x), km_u(m, 0));
  const kv wrong = km_select(m, km_eq(m, bits, inf), km_u(m, 0), km_u(m, 0x7fc00000));
  const kv edge = km_select(m, none, km_or(m, bits, inf), wrong);
  return km_as_f(m, km_select(m, km_lt(m, km_sub(m, bits, km_u(m, 1)), km_u(m, 0x7f7fffff)), km_as_u(m, y), edge));
}

/* Small arguments are multiplied by 2^64 so that no tail is lost; a denormal's bits are the integer x 2^149. */
kv km_rsqrt(km *m, kv x, kv unused) {
  (void)unused;
  if (m->exact_div) return km_inverse_root(m, x);
  const kv bits = km_as_u(m, x), small = km_lt(m, bits, km_u(m, 0x20000000)), denormal = km_lt(m, bits, km_u(m, 0x00800000));
  const kv raised = km_select(m, denormal, km_mul(m, km_to_f(m, bits), km_f(m, 0x1p-85)), km_mul(m, x, km_f(m, 0x1p64)));
  const kv scaled = km_select(m, small, raised, x), y = correct(m, scaled, km_inverse_root(m, scaled));
  return specials(m, x, km_mul(m, y, km_select(m, small, km_f(m, 0x1p32), km_f(m, 1))));
}
