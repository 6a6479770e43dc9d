/* What the expansions of several functions share: exact tails of sums and products, corrected quotients and roots, ranges, powers of two,
   special values. Everything here is right with or without a fused multiply-add, with division within 2.5 ULP and 1/sqrt within 6, and,
   where arithmetic does not promise them (km.ieee), keeps NaN and infinities through integer selects, which no driver may optimise away. */
#include "ir/math/private.h"
#include "ir/kir_pass_private.h"

kv(km_mad)(km *m, kv a, kv b, kv c) { return m->fma ? km_fma(m, a, b, c) : km_add(m, km_mul(m, a, b), c); }

/* Horner's rule; c[0] belongs to the highest power. */
kv km_poly(km *m, kv x, uint32_t count, const float *c) {
  kv sum = km_f(m, c[0]);
  for (uint32_t i = 1; i < count; i++) sum = km_mad(m, sum, x, km_f(m, c[i]));
  return sum;
}

kv km_abs_bits(km *m, kv x) { return km_and(m, km_as_u(m, x), km_u(m, 0x7fffffff)); }

/* `magnitude` (not negative) with the sign of x. */
kv km_with_sign(km *m, kv magnitude, kv x) {
  const kv sign = km_and(m, km_as_u(m, x), km_u(m, 0x80000000));
  return km_as_f(m, km_or(m, km_as_u(m, magnitude), sign));
}

enum { INFINITE = 0x7f800000 }; /* only NaN is beyond */

static kv x_where(km *m, kv keep, kv x, kv result) { return km_as_f(m, km_select(m, keep, km_as_u(m, x), km_as_u(m, result))); }

/* x itself where |x| is above the float with the bits `most`, or NaN, else `result`: a signed comparison, which processors' vectors have.
   Where only NaN is above and arithmetic has it, `result`, which was computed from x, is NaN by itself. */
kv km_beyond(km *m, kv x, int32_t most, kv result) {
  if (m->ieee && most == INFINITE) return result;
  return x_where(m, km_gt(m, km_as_i(m, km_abs_bits(m, x)), km_i(m, most)), x, result);
}

/* x itself where it is NaN or |x| is below the float with the bits `tiny`, else `result`: one unsigned comparison does both. */
kv km_pass(km *m, kv x, uint32_t tiny, kv result) {
  if (!tiny) return km_beyond(m, x, INFINITE, result);
  return x_where(m, km_gt(m, km_sub(m, km_abs_bits(m, x), km_u(m, tiny)), km_u(m, INFINITE - tiny)), x, result);
}

/* For a function that goes on with |x|: the same with the domain of |x|. */
km km_of_abs(const km *m) {
  km abs = *m;
  abs.lo = 0;
  abs.hi = -m->lo > m->hi ? -m->lo : m->hi;
  return abs;
}

/* The argument is proven to be finite. */
bool km_is_finite(const km *m) { return m->has_dom && m->lo >= -0x1.fffffep+127f && m->hi <= 0x1.fffffep+127f; }

/* Clamps that leave NaN alone; nothing is emitted where the proven domain makes them idle. */
kv km_at_most(km *m, kv x, double hi) {
  if (m->hi <= hi) return x;
  return km_select(m, km_gt(m, x, km_f(m, hi)), km_f(m, hi), x);
}

kv km_at_least(km *m, kv x, double lo) {
  if (m->lo >= lo) return x;
  return km_select(m, km_lt(m, x, km_f(m, lo)), km_f(m, lo), x);
}

/* +infinity where x > limit. */
kv(km_over)(km *m, kv x, double limit, kv result) {
  if (m->hi <= limit) return result;
  return km_as_f(m, km_select(m, km_gt(m, x, km_f(m, limit)), km_u(m, 0x7f800000), km_as_u(m, result)));
}

/* a + b - s exactly, where s = a + b rounded and |a| >= |b| (or a sum whose tail is zero). */
kv km_sum_tail(km *m, kv a, kv b, kv s) { return km_sub(m, b, km_sub(m, s, a)); }

kv km_top_half(km *m, kv x) { return km_as_f(m, km_and(m, km_as_u(m, x), km_u(m, 0xfffff000))); }

/* a * b - p exactly, where p = a * b rounded (Dekker; halves by masking, so no overflow). */
kv km_product_tail(km *m, kv a, kv b, kv p) {
  if (m->fma) return km_fma(m, a, b, km_neg(m, p));
  const kv ah = km_top_half(m, a), al = km_sub(m, a, ah), bh = km_top_half(m, b), bl = km_sub(m, b, bh);
  const kv high = km_sub(m, km_mul(m, ah, bh), p);
  const kv cross = km_add(m, km_add(m, high, km_mul(m, ah, bl)), km_mul(m, al, bh));
  return km_add(m, cross, km_mul(m, al, bl));
}

/* a / (b + b_tail) as a float and its tail, about 44 bits together, from one reciprocal of any usual quality. |b| must be normal
   and below 2^126. */
kv km_quotient(km *m, kv a, kv b, kv b_tail, kv *tail) {
  const kv inverse = km_div(m, km_f(m, 1), b), q = km_mul(m, a, inverse);
  const kv p = km_mul(m, q, b);
  const kv rest = km_sub(m, km_sub(m, a, p), km_product_tail(m, q, b, p));
  *tail = km_mul(m, km_sub(m, rest, km_mul(m, q, b_tail)), inverse);
  return q;
}

/* sqrt(z + z_tail) and its tail from one 1/sqrt; z is 0 or normal. */
kv km_root(km *m, kv z, kv z_tail, kv *tail) {
  const kv safe = km_select(m, km_lt(m, z, km_f(m, 0x1p-100)), km_f(m, 0x1p-100), z);
  const kv inverse = km_inverse_root(m, safe), s = km_mul(m, z, inverse), p = km_mul(m, s, s);
  const kv rest = km_add(m, km_sub(m, km_sub(m, z, p), km_product_tail(m, s, s, p)), z_tail);
  const kv low = km_mul(m, rest, km_mul(m, inverse, km_f(m, 0.5))), root = km_add(m, s, low);
  *tail = km_sum_tail(m, s, low, root);
  return root;
}

kv km_from_table(km *m, const float *table, kv number) {
  kv entries[KM_TABLE];
  for (uint32_t i = 0; i < KM_TABLE; i++) entries[i] = kir_const_float(m->k, kir_t(SNT_F32, 1), (double)table[i]);
  return kir_2(m->k, KIR_permute, kir_emit_op(m->k, KIR_vec, kir_t(SNT_F32, KM_TABLE), KM_TABLE, entries), number);
}

kv km_within(km *m, kv x, double limit) { return km_at_most(m, km_at_least(m, x, -limit), limit); }

/* x P(x^2) / Q(x^2) with x held within +-limit and the result within +-1 (that of such x is): the form of the cheap tanh. */
kv km_odd_quotient(km *m, kv x, double limit, uint32_t count, const float *p, const float *q) {
  const kv held = km_within(m, x, limit), z = km_mul(m, held, held);
  return km_within(m, km_div(m, km_mul(m, held, km_poly(m, z, count, p)), km_poly(m, z, count, q)), 1);
}

kv km_with_error(km *m, kir_op op, float ulp, uint32_t count, const kv *args) {
  const kir_inst in = {.op = (uint16_t)op, .ulp = m->same_bits ? 0.5f : ulp};
  return kir_put(m->k, &in, count, args);
}

kv(km_div)(km *m, kv a, kv b) { return m->repairs ? km_exact_div(m, a, b) : km_with_error(m, KIR_div, 2.5f, 2, (kv[]){a, b}); }

kv km_rcp(km *m, kv a, kv unused) {
  (void)unused;
  return km_div(m, km_f(m, 1), a);
}

kv km_sqrt(km *m, kv a, kv unused) {
  (void)unused;
  return m->repairs ? km_exact_sqrt(m, a) : km_with_error(m, KIR_sqrt, 3, 1, &a);
}

/* One operation, which devices round as they like; in two, each rounds in one way. */
kv km_inverse_root(km *m, kv a) {
  if (!m->same_bits) return km_with_error(m, KIR_rsqrt, 6, 1, &a);
  return km_div(m, km_f(m, 1), km_sqrt(m, a, 0));
}

void km_rare(km *m, kv bits, uint32_t limit, km_slow *slow, kv in, kv *inout, uint32_t count) {
  const kv most = m->lanes > 1 ? kir_1(m->k, KIR_hred_max, bits) : bits;
  const kv opened = kir_if(m->k, kir_2(m->k, KIR_gt, most, kir_const_int(m->k, kir_t(SNT_U32, 1), limit)));
  kv computed[KM_RARE_MAX];
  slow(m, in, computed);
  if (m->lanes > 1) {
    const kv chosen = km_gt(m, bits, km_u(m, limit));
    for (uint32_t i = 0; i < count; i++) computed[i] = km_select(m, chosen, computed[i], inout[i]);
  }
  kir_else(m->k, opened, count, computed);
  kir_if_end(m->k, opened, count, inout, inout);
}
