/* 16-bit floats by integer operations on u32 lanes, exact for every bit pattern: the conversions that a target without them gets.
   Rounding is to nearest even; denormals are kept; every NaN stays a NaN (quiet). */
#include "ir/kir_pass_private.h"

typedef struct site {
  kir_kernel *k;
  kir_type u, f;
} site;

static site site_of(kir_kernel *k, uint32_t value) {
  const uint32_t lanes = k->failed ? 1 : kir_type_of(k, value).lanes;
  return (site){k, kir_t(SNT_U32, lanes), kir_t(SNT_F32, lanes)};
}
static uint32_t lit(const site *s, int64_t value) { return kir_const_int(s->k, s->u, value); }
static uint32_t with(const site *s, kir_op op, uint32_t a, int64_t b) { return kir_2(s->k, op, a, lit(s, b)); }
static uint32_t pick(const site *s, uint32_t condition, uint32_t a, uint32_t b) { return kir_3(s->k, KIR_select, condition, a, b); }
#define pick(s, condition, a, b) IR_LAST_FIRST_3(pick, condition, a, b, s)

uint32_t kir_f16_to_bits(kir_kernel *k, uint32_t f32) {
  const site s = site_of(k, f32);
  const uint32_t bits = kir_bitcast(k, s.u, f32), sign = with(&s, KIR_and, bits, 0x80000000), a = kir_2(k, KIR_xor, bits, sign);
  /* too large, infinite or NaN */
  const uint32_t nan = with(&s, KIR_gt, a, 0x7f800000), top = pick(&s, nan, lit(&s, 0x7e00), lit(&s, 0x7c00));
  /* below the smallest normal: adding 1/2 aligns the mantissa so that the addition rounds it */
  const uint32_t shifted = kir_2(k, KIR_add, kir_bitcast(k, s.f, a), kir_const_float(k, s.f, 0.5));
  const uint32_t denormal = with(&s, KIR_sub, kir_bitcast(k, s.u, shifted), 126ll << 23);
  /* normal: rebias, round by the bit below */
  const uint32_t odd = with(&s, KIR_and, with(&s, KIR_shr, a, 13), 1);
  const uint32_t rounded = kir_2(k, KIR_add, with(&s, KIR_add, a, ((15ll - 127) * (1 << 23)) + 0xfff), odd);
  const uint32_t normal = with(&s, KIR_shr, rounded, 13);
  const uint32_t small = pick(&s, with(&s, KIR_lt, a, 113ll << 23), denormal, normal);
  const uint32_t body = pick(&s, with(&s, KIR_ge, a, 143ll << 23), top, small);
  return kir_2(k, KIR_or, body, with(&s, KIR_shr, sign, 16));
}

uint32_t kir_f16_from_bits(kir_kernel *k, uint32_t u32) {
  const site s = site_of(k, u32);
  const uint32_t body = with(&s, KIR_shl, with(&s, KIR_and, u32, 0x7fff), 13), exponent = with(&s, KIR_and, body, 0x7c00 << 13);
  const uint32_t sign = with(&s, KIR_shl, with(&s, KIR_and, u32, 0x8000), 16);
  const uint32_t normal = with(&s, KIR_add, body, (127 - 15) << 23);
  const uint32_t special = with(&s, KIR_add, body, (255 - 31) << 23);
  /* a denormal is its mantissa below an implicit one that is subtracted again */
  const uint32_t raised = kir_bitcast(k, s.f, with(&s, KIR_add, body, 113ll << 23));
  const uint32_t denormal = kir_bitcast(k, s.u, kir_2(k, KIR_sub, raised, kir_const_float(k, s.f, 0x1p-14)));
  const uint32_t finite = pick(&s, with(&s, KIR_eq, exponent, 0), denormal, normal);
  const uint32_t value = pick(&s, with(&s, KIR_eq, exponent, 0x7c00 << 13), special, finite);
  return kir_bitcast(k, s.f, kir_2(k, KIR_or, value, sign));
}

uint32_t kir_bf16_to_bits(kir_kernel *k, uint32_t f32) {
  const site s = site_of(k, f32);
  const uint32_t bits = kir_bitcast(k, s.u, f32), odd = with(&s, KIR_and, with(&s, KIR_shr, bits, 16), 1);
  const uint32_t rounded = with(&s, KIR_shr, kir_2(k, KIR_add, with(&s, KIR_add, bits, 0x7fff), odd), 16);
  const uint32_t quiet = with(&s, KIR_or, with(&s, KIR_shr, bits, 16), 0x40);
  return pick(&s, with(&s, KIR_gt, with(&s, KIR_and, bits, 0x7fffffff), 0x7f800000), quiet, rounded);
}

uint32_t kir_bf16_from_bits(kir_kernel *k, uint32_t u32) {
  const site s = site_of(k, u32);
  return kir_bitcast(k, s.f, with(&s, KIR_shl, u32, 16));
}
