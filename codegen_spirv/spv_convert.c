/* Conversions. Float to integer saturates, with NaN giving 0; narrowing to f16 and bf16 rounds to nearest even whatever the driver's
   rounding is, by rounding in 32 bits first so that the driver's conversion is exact. */
#include "codegen_spirv/spv_private.h"
#include <math.h>

bool spv_is_signed(uint32_t base) { return base >= SNT_I8 && base <= SNT_I64; }
static bool is_float(uint32_t base) { return base == SNT_F32 || base == SNT_F64 || base == SNT_F16; }
static uint32_t bits_of(uint32_t base) { return ir_dtypes[base].bytes * 8u; }
static uint32_t boolean(spv *s, kir_type t) { return spv_type(s, spv_like(t, SNT_BOOL)); }

/* Of operands that are there, the type of the result follows. */
static uint32_t one(spv *s, uint32_t op, kir_type t, uint32_t a) { return SPV_DO(s, op, spv_type(s, t), a); }
static uint32_t compare(spv *s, uint32_t op, kir_type t, uint32_t a, uint32_t b) { return SPV_DO(s, op, boolean(s, t), a, b); }
static uint32_t choose(spv *s, kir_type t, uint32_t condition, uint32_t yes, uint32_t no) {
  return SPV_DO(s, SpvOpSelect, spv_type(s, t), condition, yes, no);
}
#define choose(s, t, condition, yes, no) IR_LAST_FIRST_3(choose, condition, yes, no, s, t)

static uint32_t rounded(spv *s, kir_type t, uint32_t value, uint32_t round) {
  static const uint32_t inst[] = {GLSLstd450Trunc, GLSLstd450RoundEven, GLSLstd450Trunc, GLSLstd450Ceil, GLSLstd450Floor};
  if (round == KIR_ROUND_NONE || round == KIR_ROUND_RTZ || round >= IR_COUNT(inst)) return value; /* the conversion truncates */
  return SPV_GLSL(s, inst[round], spv_type(s, t), value);
}

/* To a 32- or 64-bit integer, saturating at `bits`. */
static uint32_t float_to_int(spv *s, kir_type to, kir_type from, uint32_t value, uint32_t flags, int bits) {
  const bool is_signed = spv_is_signed(to.base);
  const double end = ldexp(1.0, bits - is_signed), begin = is_signed ? -end : 0;
  const int64_t top = (int64_t)(UINT64_MAX >> (64 - bits + is_signed)), bottom = is_signed ? -top - 1 : 0;
  const uint32_t x = rounded(s, from, value, flags & 7);
  const uint32_t raw = one(s, is_signed ? SpvOpConvertFToS : SpvOpConvertFToU, to, x);
  const uint32_t high = compare(s, SpvOpFOrdGreaterThanEqual, to, x, spv_literal(s, from, 0, end));
  const uint32_t low = compare(s, SpvOpFOrdLessThanEqual, to, x, spv_literal(s, from, 0, begin));
  const uint32_t nan = compare(s, SpvOpFUnordNotEqual, to, x, x);
  uint32_t result = choose(s, to, high, spv_literal(s, to, top, 0), raw);
  result = choose(s, to, low, spv_literal(s, to, bottom, 0), result);
  return choose(s, to, nan, spv_literal(s, to, 0, 0), result);
}

/* Clamped to the bounds of an integer type of `to_bits`, as far as the operand's values can exceed them. */
static uint32_t saturated(spv *s, bool to_signed, uint32_t to_bits, kir_type from, uint32_t value) {
  const uint32_t type = spv_type(s, from), from_bits = bits_of(from.base);
  const bool from_signed = spv_is_signed(from.base);
  const int64_t top = (int64_t)(UINT64_MAX >> (64 - to_bits + to_signed)), bottom = to_signed ? -top - 1 : 0;
  if (from_signed && (!to_signed || from_bits > to_bits)) value = SPV_GLSL(s, GLSLstd450SMax, type, value, spv_literal(s, from, bottom, 0));
  if (from_bits - from_signed > to_bits - to_signed)
    value = SPV_GLSL(s, from_signed ? GLSLstd450SMin : GLSLstd450UMin, type, value, spv_literal(s, from, top, 0));
  return value;
}

static uint32_t bits_op(spv *s, uint32_t op, kir_type t, uint32_t a, uint32_t literal) {
  return SPV_DO(s, op, spv_type(s, t), a, spv_literal(s, t, (int64_t)literal, 0));
}

/* An int becomes 64 bits by way of its unsigned number: lavapipe is wrong where it is compared with a literal. */
static uint32_t int_to_int(spv *s, kir_type to, kir_type from, uint32_t value) {
  if (bits_of(to.base) == bits_of(from.base)) return value;
  const bool apart = from.base == SNT_I32; /* others become 32 bits */
  value = one(s, spv_is_signed(from.base) && !apart ? SpvOpSConvert : SpvOpUConvert, to, value);
  return apart ? bits_op(s, SpvOpISub, to, bits_op(s, SpvOpBitwiseXor, to, value, 0x80000000u), 0x80000000u) : value;
}

/* ---- halves ---- */
/* The nearest multiple of 2^drop in the bits of a float, ties to even; not for NaN. */
static uint32_t round_bits(spv *s, kir_type u, uint32_t bits, uint32_t drop) {
  const uint32_t odd = bits_op(s, SpvOpBitwiseAnd, u, bits_op(s, SpvOpShiftRightLogical, u, bits, drop), 1);
  const uint32_t half = SPV_DO(s, SpvOpIAdd, spv_type(s, u), bits_op(s, SpvOpIAdd, u, bits, (1u << (drop - 1)) - 1), odd);
  return bits_op(s, SpvOpBitwiseAnd, u, half, ~((1u << drop) - 1));
}

/* x rounded to a value that f16 has: by the bits where f16 is normal, by adding 1/2 below (its last bit is f16's), infinity above. */
static uint32_t to_half_precision(spv *s, kir_type t, uint32_t x) {
  const kir_type u = spv_like(t, SNT_U32);
  const uint32_t type = spv_type(s, t), raw = spv_type(s, u);
  const uint32_t bits = one(s, SpvOpBitcast, u, x);
  const uint32_t sign = bits_op(s, SpvOpBitwiseAnd, u, bits, 0x80000000u), magnitude = bits_op(s, SpvOpBitwiseAnd, u, bits, 0x7fffffffu);
  const uint32_t half = spv_literal(s, t, 0, 0.5);
  const uint32_t raised = spv_float_op(s, SpvOpFAdd, type, one(s, SpvOpBitcast, t, magnitude), half);
  const uint32_t small = one(s, SpvOpBitcast, u, spv_float_op(s, SpvOpFSub, type, raised, half));
  const uint32_t normal = round_bits(s, u, magnitude, 13);
  const uint32_t is_big = compare(s, SpvOpUGreaterThanEqual, t, normal, spv_literal(s, u, 0x47800000, 0));
  const uint32_t is_small = compare(s, SpvOpULessThan, t, magnitude, spv_literal(s, u, 0x38800000, 0));
  const uint32_t is_nan = compare(s, SpvOpUGreaterThan, t, magnitude, spv_literal(s, u, 0x7f800000, 0));
  uint32_t result = choose(s, u, is_big, spv_literal(s, u, 0x7f800000, 0), normal);
  result = choose(s, u, is_small, small, result);
  result = choose(s, u, is_nan, spv_literal(s, u, 0x7fc00000, 0), result);
  return one(s, SpvOpBitcast, t, SPV_DO(s, SpvOpBitwiseOr, raw, result, sign));
}

uint32_t spv_pack_half(spv *s, uint32_t pair) {
  return SPV_GLSL(s, GLSLstd450PackHalf2x16, spv_type(s, kir_t(SNT_U32, 1)), to_half_precision(s, kir_t(SNT_F32, 2), pair));
}

/* The upper half of the bits, rounded, in the low half of u32 lanes. */
uint32_t spv_bfloat_bits(spv *s, kir_type from, uint32_t value) {
  const kir_type u = spv_like(from, SNT_U32);
  const uint32_t bits = one(s, SpvOpBitcast, u, value);
  const uint32_t magnitude = bits_op(s, SpvOpBitwiseAnd, u, bits, 0x7fffffffu);
  const uint32_t nan = compare(s, SpvOpUGreaterThan, u, magnitude, spv_literal(s, u, 0x7f800000, 0));
  const uint32_t result = choose(s, u, nan, bits_op(s, SpvOpBitwiseOr, u, bits, 0x400000u), round_bits(s, u, bits, 16));
  return bits_op(s, SpvOpShiftRightLogical, u, result, 16);
}

static uint32_t from_bfloat(spv *s, kir_type to, uint32_t value) {
  const kir_type u = spv_like(to, SNT_U32);
  const uint32_t wide = one(s, SpvOpUConvert, u, value);
  return one(s, SpvOpBitcast, to, bits_op(s, SpvOpShiftLeftLogical, u, wide, 16));
}

/* ---- dispatch: narrow types only widen and narrow, which storage capabilities allow ---- */
kir_type spv_wide(kir_type t) {
  static const uint8_t wide[SNT_DTYPE_COUNT] = {
      [SNT_F16] = SNT_F32, [SNT_BF16] = SNT_F32, [SNT_I8] = SNT_I32, [SNT_I16] = SNT_I32, [SNT_U8] = SNT_U32, [SNT_U16] = SNT_U32};
  return wide[t.base] ? spv_like(t, wide[t.base]) : t;
}

static uint32_t widen(spv *s, kir_type to, kir_type from, uint32_t value) {
  if (from.base == SNT_BF16) return from_bfloat(s, to, value);
  if (from.base == SNT_F16) return one(s, SpvOpFConvert, to, value);
  return int_to_int(s, to, from, value);
}

static uint32_t narrow(spv *s, kir_type to, kir_type from, uint32_t value) {
  if (to.base == SNT_BF16) return one(s, SpvOpUConvert, to, spv_bfloat_bits(s, from, value));
  if (to.base == SNT_F16) return one(s, SpvOpFConvert, to, to_half_precision(s, from, value));
  return one(s, SpvOpUConvert, to, value);
}

/* u32 to f32 to nearest even, which not every driver gives above 2^31: both halves are exact, and only their sum is rounded. */
static uint32_t word_to_float(spv *s, kir_type to, kir_type from, uint32_t value) {
  const uint32_t type = spv_type(s, to);
  const uint32_t high = one(s, SpvOpConvertUToF, to, bits_op(s, SpvOpShiftRightLogical, from, value, 16));
  const uint32_t low = one(s, SpvOpConvertUToF, to, bits_op(s, SpvOpBitwiseAnd, from, value, 0xffff));
  return spv_float_op(s, SpvOpFAdd, type, spv_float_op(s, SpvOpFMul, type, high, spv_literal(s, to, 0, 65536)), low);
}

/* Between bool and types of 32 and 64 bits; integers saturate at `bits`. */
static uint32_t cast_wide(spv *s, kir_type to, kir_type from, uint32_t value, uint32_t flags, uint32_t bits, bool to_signed) {
  const uint32_t type = spv_type(s, to);
  if (from.base == SNT_BOOL) return to.base == SNT_BOOL ? value : choose(s, to, value, spv_literal(s, to, 1, 1), spv_literal(s, to, 0, 0));
  if (to.base == SNT_BOOL)
    return SPV_DO(s, is_float(from.base) ? SpvOpFUnordNotEqual : SpvOpINotEqual, type, value, spv_literal(s, from, 0, 0));
  if (is_float(from.base) && is_float(to.base)) return to.base == from.base ? value : SPV_DO(s, SpvOpFConvert, type, value);
  if (is_float(from.base)) return float_to_int(s, to, from, value, flags, (int)bits);
  if (is_float(to.base)) return SPV_DO(s, spv_is_signed(from.base) ? SpvOpConvertSToF : SpvOpConvertUToF, type, value);
  if (flags & KIR_SAT) value = saturated(s, to_signed, bits, from, value);
  return int_to_int(s, to, from, value);
}

uint32_t spv_cast(spv *s, kir_type to, kir_type from, uint32_t value, uint32_t flags) {
  if (to.base == from.base) return value;
  const kir_type wide_from = spv_wide(from), wide_to = spv_wide(to);
  if (wide_from.base != from.base) value = widen(s, wide_from, from, value);
  if (from.base == SNT_U32 && wide_to.base == SNT_F32) value = word_to_float(s, wide_to, from, value);
  else if (wide_to.base != wide_from.base || wide_to.base != to.base)
    value = cast_wide(s, wide_to, wide_from, value, flags, bits_of(to.base), spv_is_signed(to.base));
  return wide_to.base == to.base ? value : narrow(s, to, wide_to, value);
}
