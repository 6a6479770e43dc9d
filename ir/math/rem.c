/* rem for devices whose own is not exact: a - b * trunc(a / b), where the product's tail counts, so that the difference is exact. The
   quotient is off by at most one below 2^21 (f64: 2^50), which one correction each way repairs; beyond, the device's own remainder is left. */
#include "ir/math/wide_private.h"

kv km_rem(km *m, kv a, kv b) {
  const kv x = km_as_f(m, km_abs_bits(m, a)), y = km_as_f(m, km_abs_bits(m, b)), zero = km_f(m, 0);
  const kv quotient = km_div(m, x, y), q = kir_1(m->k, KIR_trunc, quotient), p = km_mul(m, q, y);
  kv r = km_sub(m, km_sub(m, x, p), km_product_tail(m, q, y, p));
  r = km_select(m, km_lt(m, r, zero), km_add(m, r, y), r);
  r = km_select(m, km_ge(m, r, y), km_sub(m, r, y), r);
  r = km_select(m, km_lt(m, x, y), x, r); /* an infinite b too */
  return km_select(m, km_lt(m, quotient, km_f(m, 0x1p21)), km_with_sign(m, r, a), kir_2(m->k, KIR_rem, a, b));
}

kv kw_rem(km *m, kv a, kv b) {
  const kv x = kw_abs(m, a), y = kw_abs(m, b), zero = kw_f(m, 0), quotient = kw_div(m, x, y), q = kir_1(m->k, KIR_trunc, quotient);
  const kw_pair p = kw_product(m, q, y);
  kv r = km_sub(m, km_sub(m, x, p.high), p.low);
  r = km_select(m, km_lt(m, r, zero), km_add(m, r, y), r);
  r = km_select(m, km_ge(m, r, y), km_sub(m, r, y), r);
  r = km_select(m, km_lt(m, x, y), x, r);
  return km_select(m, km_lt(m, quotient, kw_f(m, 0x1p50)), kw_with_sign(m, r, a), kir_2(m->k, KIR_rem, a, b));
}
