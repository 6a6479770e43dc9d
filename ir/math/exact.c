/* Division and square root rounded correctly on any device, for reproducible mode: the device's own quotient or root of the mantissas, a few units
   off at most, is repaired by its residual in wrapping 32-bit integers, which is exact because it is small; rounding to nearest even and denormal
   results are integer arithmetic too. Markstein's correction needs a fused multiply-add, which Vulkan does not promise. */
#include "ir/math/private.h"

km_parts km_parts_of(km *m, kv x) {
  const kv bits = km_and(m, km_as_u(m, x), km_u(m, 0x7fffffff)), low = km_lt(m, bits, km_u(m, 0x00800000));
  const kv lifted = km_as_u(m, kir_cast(m->k, kir_t(SNT_F32, m->lanes), bits)); /* a denormal is its bits times 2^-149 */
  const kv sound = km_select(m, low, lifted, bits), bias = km_select(m, low, km_i(m, 127 + 149), km_i(m, 127));
  return (km_parts){.bits = bits,
                    .m = km_or(m, km_and(m, sound, km_u(m, 0x007fffff)), km_u(m, 0x00800000)),
                    .e = km_sub(m, km_as_i(m, km_shr(m, sound, km_u(m, 23))), bias)};
}

/* The mantissa as a float in [1, 2). */
static kv unit_of(km *m, kv mantissa) { return km_as_f(m, km_xor(m, mantissa, km_u(m, 0x3f800000 ^ 0x00800000))); }
static kv integer_of(km *m, kv x) { return km_as_u(m, km_to_i(m, x)); }
static kv zero_u(km *m) { return km_u(m, 0); }

kv km_rounded(km *m, kv q, kv rest, kv divisor, kv e) {
  const kv below = km_sub(m, km_i(m, -126), e), limited = km_select(m, km_gt(m, below, km_i(m, 26)), km_i(m, 26), below);
  const kv shift = km_as_u(m, km_select(m, km_gt(m, limited, km_i(m, 0)), limited, km_i(m, 0)));
  const kv kept = km_shr(m, q, shift), lost = km_sub(m, q, km_shl(m, kept, shift));
  const kv odd = km_and(m, kept, km_u(m, 1)), twice = km_add(m, rest, rest);
  const kv half = km_shr(m, km_shl(m, km_u(m, 1), shift), km_u(m, 1)); /* of what is lost; 0: nothing but the rest */
  const kv sticky = km_one_where(m, km_ne(m, rest, zero_u(m)));
  const kv at_half = km_and(m, km_eq(m, lost, half), km_ne(m, km_or(m, sticky, odd), zero_u(m)));
  const kv shifted_up = km_or(m, km_gt(m, lost, half), at_half);
  const kv whole_up = km_or(m, km_gt(m, twice, divisor), km_and(m, km_eq(m, twice, divisor), km_ne(m, odd, zero_u(m))));
  const kv denormal = km_gt(m, shift, zero_u(m));
  const kv up = km_or(m, km_and(m, denormal, shifted_up), km_and(m, km_not(m, denormal), whole_up));
  const kv value = km_add(m, kept, km_one_where(m, up));
  const kv exponent = km_shl(m, km_as_u(m, km_add(m, e, km_i(m, 126))), km_u(m, 23)); /* the hidden bit adds the last 1; a carry too */
  const kv normal = km_add(m, value, exponent), most = km_u(m, 0x7f800000);
  const kv over = km_gt(m, e, km_i(m, 127));
  return km_select(m, denormal, value, km_select(m, over, most, normal));
}

/* The quotient of the mantissas as an integer of 24 bits, and what is left of the dividend. */
static kv mantissa_quotient(km *m, kv a, kv b, kv shift, kv *rest) {
  const kv estimate = kir_2(m->k, KIR_div, unit_of(m, a), unit_of(m, b));
  const kv scale = km_select(m, km_gt(m, shift, km_u(m, 23)), km_f(m, 0x1p24), km_f(m, 0x1p23));
  kv q = km_sub(m, integer_of(m, km_mul(m, estimate, scale)), km_u(m, 4)); /* below the true one now, by less than 8 */
  kv r = km_sub(m, km_shl(m, a, shift), km_mul(m, q, b));
  for (uint32_t step = 4; step; step /= 2) {
    const kv part = km_mul(m, b, km_u(m, step)), fits = km_ge(m, r, part);
    q = km_select(m, fits, km_add(m, q, km_u(m, step)), q);
    r = km_select(m, fits, km_sub(m, r, part), r);
  }
  *rest = r;
  return q;
}

static kv is_above(km *m, kv bits, uint32_t limit) { return km_gt(m, bits, km_u(m, limit)); }
static kv is_bits(km *m, kv bits, uint32_t value) { return km_eq(m, bits, km_u(m, value)); }

kv km_exact_div(km *m, kv x, kv y) {
  const km_parts a = km_parts_of(m, x), b = km_parts_of(m, y);
  const kv small = km_lt(m, a.m, b.m), shift = km_add(m, km_u(m, 23), km_one_where(m, small));
  const kv e = km_sub(m, km_sub(m, a.e, b.e), km_as_i(m, km_one_where(m, small)));
  kv rest;
  const kv q = mantissa_quotient(m, a.m, b.m, shift, &rest);
  kv result = km_rounded(m, q, rest, b.m, e);
  const kv none = km_or(m, is_bits(m, a.bits, 0), is_bits(m, b.bits, 0x7f800000)),
           all = km_or(m, is_bits(m, b.bits, 0), is_bits(m, a.bits, 0x7f800000));
  result = km_select(m, none, zero_u(m), km_select(m, all, km_u(m, 0x7f800000), result));
  const kv sign = km_and(m, km_xor(m, km_as_u(m, x), km_as_u(m, y)), km_u(m, 0x80000000));
  const kv undefined = km_or(m, km_and(m, none, all), km_or(m, is_above(m, a.bits, 0x7f800000), is_above(m, b.bits, 0x7f800000)));
  return km_as_f(m, km_select(m, undefined, km_u(m, 0x7fc00000), km_or(m, result, sign)));
}

kv km_exact_sqrt(km *m, kv x) {
  const km_parts a = km_parts_of(m, x);
  const kv odd = km_and(m, km_as_u(m, a.e), km_u(m, 1)), value = km_shl(m, a.m, odd);
  const kv scaled = km_mul(m, unit_of(m, a.m), km_select(m, km_ne(m, odd, zero_u(m)), km_f(m, 2), km_f(m, 1)));
  kv s = km_sub(m, integer_of(m, km_mul(m, kir_1(m->k, KIR_sqrt, scaled), km_f(m, 0x1p23))), km_u(m, 4));
  kv r = km_sub(m, km_shl(m, value, km_u(m, 23)), km_mul(m, s, s));
  for (uint32_t step = 4; step; step /= 2) { /* (s + n)^2 = s^2 + 2 n s + n^2 */
    const kv part = km_add(m, km_mul(m, s, km_u(m, 2 * step)), km_u(m, step * step)), fits = km_ge(m, r, part);
    s = km_select(m, fits, km_add(m, s, km_u(m, step)), s);
    r = km_select(m, fits, km_sub(m, r, part), r);
  }
  const kv up = km_one_where(m, km_gt(m, r, s)); /* a root never lies half-way */
  const kv half = km_shr(m, km_sub(m, a.e, km_as_i(m, odd)), km_i(m, 1));
  const kv exponent = km_shl(m, km_as_u(m, km_add(m, half, km_i(m, 126))), km_u(m, 23));
  const kv bits = km_as_u(m, x), result = km_add(m, km_add(m, s, up), exponent);
  const kv same = km_or(m, is_bits(m, a.bits, 0), is_bits(m, bits, 0x7f800000));
  const kv undefined = km_or(m, is_above(m, a.bits, 0x7f800000),
                             km_and(m, is_above(m, bits, 0x7fffffff), km_not(m, is_bits(m, a.bits, 0))));
  return km_as_f(m, km_select(m, undefined, km_u(m, 0x7fc00000), km_select(m, same, bits, result)));
}

kv km_exact_rcp(km *m, kv x) { return km_exact_div(m, km_f(m, 1), x); }
