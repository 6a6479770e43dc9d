/* The arithmetic that the f64 functions share: sums, products, quotients and roots with their tails. Everything is
   right with plain IEEE operations; specials are chosen by bits. */
#include "ir/math/wide_private.h"

static kir_type of(const km *m, int32_t base) { return kir_t(base, m->lanes); }

kv kw_f(km *m, double x) { return kir_const_float(m->k, of(m, SNT_F64), x); }
kv kw_u(km *m, uint64_t x) { return kir_const_int(m->k, of(m, SNT_U64), (int64_t)x); }
kv kw_i(km *m, int64_t x) { return kir_const_int(m->k, of(m, SNT_I64), x); }
kv kw_as_f(km *m, kv a) { return kir_bitcast(m->k, of(m, SNT_F64), a); }
kv kw_as_u(km *m, kv a) { return kir_bitcast(m->k, of(m, SNT_U64), a); }
kv kw_as_i(km *m, kv a) { return kir_bitcast(m->k, of(m, SNT_I64), a); }
kv kw_to_f(km *m, kv a) { return kir_cast(m->k, of(m, SNT_F64), a); }

kv(kw_div)(km *m, kv a, kv b) { return km_with_error(m, KIR_div, 2.5f, 2, (kv[]){a, b}); }
kv kw_sqrt(km *m, kv a) { return km_with_error(m, KIR_sqrt, 3, 1, &a); }

kv kw_poly(km *m, kv x, uint32_t count, const double *c) {
  kv sum = kw_f(m, c[count - 1]);
  for (uint32_t i = count - 1; i > 0; i--) sum = km_add(m, km_mul(m, sum, x), kw_f(m, c[i - 1]));
  return sum;
}

kv kw_abs_bits(km *m, kv x) { return km_and(m, kw_as_u(m, x), kw_u(m, ~KW_SIGN)); }
kv kw_abs(km *m, kv x) { return kw_as_f(m, kw_abs_bits(m, x)); }
kv kw_pow2(km *m, kv n) { return kw_as_f(m, km_shl(m, km_add(m, n, kw_i(m, 1023)), kw_i(m, 52))); }

kv kw_with_sign(km *m, kv magnitude, kv x) {
  const kv sign = km_and(m, kw_as_u(m, x), kw_u(m, KW_SIGN));
  return kw_as_f(m, km_or(m, kw_as_u(m, magnitude), sign));
}

kv(kw_choose)(km *m, kv condition, kv a, kv b) { return kw_as_f(m, km_select(m, condition, kw_as_u(m, a), kw_as_u(m, b))); }

static uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

kv kw_pass(km *m, kv x, double tiny, kv result) {
  const kv distance = km_sub(m, kw_abs_bits(m, x), kw_u(m, bits_of(tiny)));
  return kw_choose(m, km_gt(m, distance, kw_u(m, KW_INF - bits_of(tiny))), x, result);
}

kv kw_at_most(km *m, kv x, double hi) { return km_select(m, km_gt(m, x, kw_f(m, hi)), kw_f(m, hi), x); }
kv kw_at_least(km *m, kv x, double lo) { return km_select(m, km_lt(m, x, kw_f(m, lo)), kw_f(m, lo), x); }

/* ---- pairs ---- */
kw_pair kw_alone(km *m, kv high) { return (kw_pair){high, kw_f(m, 0)}; }
kw_pair kw_constant(km *m, double high, double low) { return (kw_pair){kw_f(m, high), kw_f(m, low)}; }

kw_pair(kw_fast_sum)(km *m, kv a, kv b) {
  const kv s = km_add(m, a, b);
  return (kw_pair){s, km_sub(m, b, km_sub(m, s, a))};
}

kw_pair(kw_sum)(km *m, kv a, kv b) {
  const kv s = km_add(m, a, b), back = km_sub(m, s, a);
  return (kw_pair){s, km_add(m, km_sub(m, a, km_sub(m, s, back)), km_sub(m, b, back))};
}

static kv top_half(km *m, kv x) { return kw_as_f(m, km_and(m, kw_as_u(m, x), kw_u(m, 0xfffffffff8000000))); }

/* Dekker's, with halves by masking: nothing overflows that the product does not. */
kw_pair kw_product(km *m, kv a, kv b) {
  const kv p = km_mul(m, a, b), ah = top_half(m, a), al = km_sub(m, a, ah), bh = top_half(m, b), bl = km_sub(m, b, bh);
  const kv high = km_sub(m, km_mul(m, ah, bh), p);
  const kv cross = km_add(m, km_add(m, high, km_mul(m, ah, bl)), km_mul(m, al, bh));
  return (kw_pair){p, km_add(m, cross, km_mul(m, al, bl))};
}

kw_pair(kw_add_pairs)(km *m, kw_pair a, kw_pair b) {
  const kw_pair high = kw_sum(m, a.high, b.high), low = kw_sum(m, a.low, b.low);
  const kw_pair s = kw_fast_sum(m, high.high, km_add(m, high.low, low.high));
  return kw_fast_sum(m, s.high, km_add(m, s.low, low.low));
}

kw_pair(kw_multiply_pairs)(km *m, kw_pair a, kw_pair b) {
  const kw_pair p = kw_product(m, a.high, b.high);
  const kv cross = km_add(m, km_mul(m, a.high, b.low), km_mul(m, a.low, b.high));
  return kw_fast_sum(m, p.high, km_add(m, p.low, cross));
}

kw_pair(kw_divide_pairs)(km *m, kw_pair a, kw_pair b) {
  const kv q = kw_div(m, a.high, b.high);
  const kw_pair p = kw_product(m, q, b.high);
  const kv rest = km_sub(m, km_add(m, km_sub(m, km_sub(m, a.high, p.high), p.low), a.low), km_mul(m, q, b.low));
  return kw_fast_sum(m, q, kw_div(m, rest, b.high));
}

/* Where a is 0 the divisor is another and the tail 0. */
kw_pair kw_root_of(km *m, kw_pair a) {
  const kv s = kw_sqrt(m, a.high);
  const kw_pair p = kw_product(m, s, s);
  const kv rest = km_add(m, km_sub(m, km_sub(m, a.high, p.high), p.low), a.low);
  const kv twice = km_add(m, s, s), divisor = km_select(m, km_gt(m, twice, kw_f(m, 0)), twice, kw_f(m, 1));
  return kw_fast_sum(m, s, kw_div(m, rest, divisor));
}

kw_pair kw_negate(km *m, kw_pair a) { return (kw_pair){km_neg(m, a.high), km_neg(m, a.low)}; }

kw_pair(kw_choose_pair)(km *m, kv condition, kw_pair a, kw_pair b) {
  return (kw_pair){km_select(m, condition, a.high, b.high), km_select(m, condition, a.low, b.low)};
}

kv kw_rsqrt(km *m, kv x, kv unused) {
  (void)unused;
  return kw_div(m, kw_f(m, 1), kw_sqrt(m, x));
}
