/* Types and constants, interned in order of first use; a type that needs a capability asks for it here. */
#include "codegen_spirv/spv_private.h"

static uint32_t int_type(spv *s, uint32_t bits) {
  if (bits == 64) spv_need(s, SpvCapabilityInt64);
  return SPV_TYPE(&s->m, SpvOpTypeInt, bits, 0);
}

static uint32_t float_type(spv *s, uint32_t bits) {
  if (bits == 64) spv_need(s, SpvCapabilityFloat64);
  return SPV_TYPE(&s->m, SpvOpTypeFloat, bits);
}

static uint32_t define_scalar(spv *s, uint32_t base) {
  if (base == SNT_BOOL) return spv_intern(&s->m, SpvOpTypeBool, false, NULL, 0, 0, NULL);
  if (base == SNT_BF16) return int_type(s, 16);
  const uint32_t bits = ir_dtypes[base].bytes * 8u;
  return ir_dtypes[base].is_float ? float_type(s, bits) : int_type(s, bits);
}

static uint32_t scalar_type(spv *s, uint32_t base) {
  uint32_t *known = &s->types[base][1];
  return *known ? *known : (*known = define_scalar(s, base));
}

uint32_t spv_type(spv *s, kir_type t) {
  if (t.lanes <= 4 && !t.frag && s->types[t.base][t.lanes]) return s->types[t.base][t.lanes];
  if (t.frag) return spv_matrix_type(s, t);
  if (t.lanes > 4) spv_fail(s, SNT_E_INTERNAL, 0, "SPIR-V has no type of %u lanes of %s", t.lanes, ir_dtypes[t.base].name);
  const uint32_t scalar = scalar_type(s, t.base);
  if (t.lanes == 1) return scalar;
  const uint32_t vector = SPV_TYPE(&s->m, SpvOpTypeVector, scalar, t.lanes);
  if (t.lanes <= 4) s->types[t.base][t.lanes] = vector;
  return vector;
}

uint32_t spv_pointer(spv *s, uint32_t storage_class, uint32_t type) { return SPV_TYPE(&s->m, SpvOpTypePointer, storage_class, type); }

uint32_t spv_u32(spv *s, uint32_t value) { return SPV_CONST(&s->m, SpvOpConstant, scalar_type(s, SNT_U32), value); }

uint32_t spv_array(spv *s, uint32_t element, uint32_t count, uint32_t stride) {
  bool is_new = false;
  uint32_t id = 0;
  if (count) {
    const uint32_t key[2] = {element, spv_u32(s, count)};
    id = spv_intern(&s->m, SpvOpTypeArray, false, key, 2, stride, &is_new);
  } else {
    id = spv_intern(&s->m, SpvOpTypeRuntimeArray, false, &element, 1, stride, &is_new);
  }
  if (is_new && stride) SPV(&s->m, SPV_DECORATIONS, SpvOpDecorate, id, SpvDecorationArrayStride, stride);
  return id;
}

static uint32_t scalar_literal(spv *s, uint32_t base, int64_t i, double f) {
  const uint32_t type = scalar_type(s, base);
  float single = (float)f;
  uint64_t bits = (uint64_t)i;
  uint32_t word;
  switch (base) {
  case SNT_BOOL: return spv_intern(&s->m, i ? SpvOpConstantTrue : SpvOpConstantFalse, true, &type, 1, 0, NULL);
  case SNT_F32: memcpy(&word, &single, sizeof word); return SPV_CONST(&s->m, SpvOpConstant, type, word);
  case SNT_F16: return SPV_CONST(&s->m, SpvOpConstant, type, ir_f16_from_f32(single));
  case SNT_BF16: return SPV_CONST(&s->m, SpvOpConstant, type, ir_bf16_from_f32(single));
  case SNT_F64: memcpy(&bits, &f, sizeof bits); break;
  case SNT_I8: return SPV_CONST(&s->m, SpvOpConstant, type, (uint32_t)(i & 0xff));
  case SNT_U8: return SPV_CONST(&s->m, SpvOpConstant, type, (uint32_t)(i & 0xff));
  case SNT_I16: return SPV_CONST(&s->m, SpvOpConstant, type, (uint32_t)(i & 0xffff));
  case SNT_U16: return SPV_CONST(&s->m, SpvOpConstant, type, (uint32_t)(i & 0xffff));
  default: break;
  }
  if (ir_dtypes[base].bytes == 8) return SPV_CONST(&s->m, SpvOpConstant, type, (uint32_t)bits, (uint32_t)(bits >> 32));
  return SPV_CONST(&s->m, SpvOpConstant, type, (uint32_t)bits);
}

uint32_t spv_literal(spv *s, kir_type t, int64_t i, double f) {
  const uint32_t scalar = scalar_literal(s, t.base, i, f);
  if (t.lanes == 1) return scalar;
  uint32_t operands[5] = {spv_type(s, t), scalar, scalar, scalar, scalar};
  return spv_intern(&s->m, SpvOpConstantComposite, true, operands, 1 + (size_t)(t.lanes & 7), 0, NULL);
}

uint32_t spv_matrix_type(spv *s, kir_type t) {
  enum { USE_A, USE_B, USE_SUM };
  if (!s->matrices || t.base == SNT_BF16) {
    spv_fail(s, SNT_E_UNSUPPORTED, 0, "SPIR-V has no fragments of %s here", ir_dtypes[t.base].name);
    return spv_type(s, kir_t(t.base, 1));
  }
  const uint32_t rows = t.frag == 2 ? s->mma.k : s->mma.m, columns = t.frag == 1 ? s->mma.k : s->mma.n;
  const uint32_t use = t.frag == 1 ? USE_A : t.frag == 2 ? USE_B : USE_SUM;
  return SPV_TYPE(&s->m, SpvOpTypeCooperativeMatrixKHR, spv_type(s, kir_t(t.base, 1)), spv_u32(s, SpvScopeSubgroup), spv_u32(s, rows),
                  spv_u32(s, columns), spv_u32(s, use));
}
