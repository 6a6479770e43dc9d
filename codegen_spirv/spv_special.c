/* Operations that take several SPIR-V instructions, or whose operands are not values. What SPIR-V leaves undefined (shifts
   beyond the width, a scalar condition for vectors, remainders of negative numbers) is defined here as the kernel IR has it. */
#include "codegen_spirv/spv_private.h"

static kir_type type_of(const spv *s, uint32_t inst) { return kir_at(s->k, inst)->type; }
static bool is_float(kir_type t) { return ir_dtypes[t.base].is_float; }

static bool const_int(const spv *s, uint32_t inst, uint32_t n, int64_t *out) {
  const kir_inst *in = kir_at(s->k, kir_arg(s->k, inst, n));
  if (in->op != KIR_const || ir_dtypes[in->type.base].is_float) return false;
  *out = in->imm.i;
  return true;
}

uint32_t spv_splat(spv *s, kir_type to, uint32_t scalar) {
  if (to.lanes == 1) return scalar;
  const uint32_t operands[4] = {scalar, scalar, scalar, scalar};
  return spv_result(s, SpvOpCompositeConstruct, spv_type(s, to), operands, to.lanes);
}

/* ---- values without operands ---- */
/* Storage capabilities alone allow no literals of 8 and 16 bits: those are narrowed from 32. */
static uint32_t constant(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  if (in->type.base == SNT_BOOL || ir_dtypes[in->type.base].bytes >= 4) return spv_literal(s, in->type, in->imm.i, in->imm.f);
  const kir_type wide = spv_like(in->type, is_float(in->type) ? SNT_F32 : spv_is_signed(in->type.base) ? SNT_I32 : SNT_U32);
  return spv_cast(s, in->type, wide, spv_literal(s, wide, in->imm.i, in->imm.f), 0);
}

static uint32_t push_word(spv *s, uint32_t word) { return spv_block_word(s, spv_u32(s, word)); }

static uint32_t scalar(spv *s, uint32_t inst) {
  const kir_scalar *p = &s->k->scalars.at[kir_at(s->k, inst)->index];
  const uint32_t low = push_word(s, p->offset / 4), type = spv_type(s, p->type);
  if (ir_dtypes[p->type.base].bytes == 8) {
    const uint32_t pair = SPV_DO(s, SpvOpCompositeConstruct, spv_type(s, kir_t(SNT_U32, 2)), low, push_word(s, p->offset / 4 + 1));
    return SPV_DO(s, SpvOpBitcast, type, pair);
  }
  if (p->type.base == SNT_BOOL) return SPV_DO(s, SpvOpINotEqual, type, low, spv_u32(s, 0));
  if (p->type.base == SNT_F32) return SPV_DO(s, SpvOpBitcast, type, low);
  if (ir_dtypes[p->type.base].bytes == 4) return low;
  spv_fail(s, SNT_E_UNSUPPORTED, inst, "scalar parameters of type %s", ir_dtypes[p->type.base].name);
  return low;
}

uint32_t spv_builtin(spv *s, uint32_t number, uint32_t component) {
  const bool scalar = component == ~0u;
  const uint32_t u32 = spv_type(s, kir_t(SNT_U32, 1)), type = scalar ? u32 : spv_type(s, kir_t(SNT_U32, 3));
  if (!s->builtin[number]) {
    const uint32_t pointer = spv_pointer(s, SpvStorageClassInput, type), id = s->builtin[number] = spv_fresh(&s->m);
    SPV(&s->m, SPV_TYPES, SpvOpVariable, pointer, id, SpvStorageClassInput);
    SPV(&s->m, SPV_DECORATIONS, SpvOpDecorate, id, SpvDecorationBuiltIn, number);
    if (scalar) spv_need(s, SpvCapabilityGroupNonUniform);
  }
  const uint32_t value = SPV_DO(s, SpvOpLoad, type, s->builtin[number]);
  return scalar ? value : SPV_DO(s, SpvOpCompositeExtract, u32, value, component);
}

static uint32_t identity(spv *s, uint32_t inst) {
  switch (kir_at(s->k, inst)->op) {
  case KIR_local: return spv_builtin(s, SpvBuiltInLocalInvocationId, kir_at(s->k, inst)->index);
  case KIR_sg_id: return spv_digit(s, spv_builtin(s, SpvBuiltInSubgroupId, ~0u));
  case KIR_sg_lane: return spv_builtin(s, SpvBuiltInSubgroupLocalInvocationId, ~0u);
  default: return spv_builtin(s, SpvBuiltInNumSubgroups, ~0u);
  }
}

/* ---- integers ---- */
static uint32_t index_sum(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  const uint32_t type = spv_type(s, in->type);
  uint32_t sum = 0;
  int64_t coef;
  for (uint32_t n = 0; n + 1 < in->arg_count; n += 2) {
    uint32_t term = spv_arg(s, inst, n + 1);
    if (!const_int(s, inst, n, &coef)) term = SPV_DO(s, SpvOpIMul, type, spv_arg(s, inst, n), term);
    else if (coef != 1) term = SPV_DO(s, SpvOpIMul, type, spv_literal(s, in->type, coef, 0), term);
    sum = sum ? SPV_DO(s, SpvOpIAdd, type, sum, term) : term;
  }
  const uint32_t last = spv_literal(s, in->type, in->imm.i, 0);
  if (!sum) return last;
  return in->imm.i ? SPV_DO(s, SpvOpIAdd, type, sum, last) : sum;
}

static uint32_t shift(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  const kir_type amount_type = spv_arg_type(s, inst, 1);
  const int64_t mask = ir_dtypes[in->type.base].bytes * 8 - 1;
  int64_t known;
  const uint32_t limit = spv_literal(s, amount_type, mask, 0);
  const uint32_t amount = const_int(s, inst, 1, &known) ? spv_literal(s, amount_type, known & mask, 0)
                                                        : SPV_DO(s, SpvOpBitwiseAnd, spv_type(s, amount_type), spv_arg(s, inst, 1), limit);
  const uint32_t op = in->op == KIR_shl              ? SpvOpShiftLeftLogical
                      : spv_is_signed(in->type.base) ? SpvOpShiftRightArithmetic
                                                     : SpvOpShiftRightLogical;
  return SPV_DO(s, op, spv_type(s, in->type), spv_arg(s, inst, 0), amount);
}

/* The remainder comes from the quotient, since a device may not take negative operands. Divisors are neither 0 nor -1. */
static uint32_t divide(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  if (is_float(in->type) || in->op == KIR_div) return spv_select_op(s, inst);
  const uint32_t type = spv_type(s, in->type), a = spv_arg(s, inst, 0), b = spv_arg(s, inst, 1);
  const uint32_t quotient = SPV_DO(s, spv_is_signed(in->type.base) ? SpvOpSDiv : SpvOpUDiv, type, a, b);
  return SPV_DO(s, SpvOpISub, type, a, SPV_DO(s, SpvOpIMul, type, quotient, b));
}

static uint32_t multiply_high(spv *s, uint32_t inst) {
  const uint32_t type = spv_type(s, type_of(s, inst)), pair = SPV_TYPE(&s->m, SpvOpTypeStruct, type, type);
  const uint32_t product = SPV_DO(s, SpvOpUMulExtended, pair, spv_arg(s, inst, 0), spv_arg(s, inst, 1));
  return SPV_DO(s, SpvOpCompositeExtract, type, product, 1);
}

/* Words of four bytes are scalars, and the signed one comes first. */
static uint32_t sum_of_bytes(spv *s, uint32_t inst) {
  enum { PACKED_4X8 = 0 }; /* PackedVectorFormat4x8Bit */
  const kir_type t = type_of(s, inst);
  const uint32_t a = spv_arg(s, inst, 0), b = spv_arg(s, inst, 1), word = spv_type(s, kir_t(t.base, 1));
  uint32_t dots[4] = {0};
  spv_need(s, SpvCapabilityDotProduct);
  spv_need(s, SpvCapabilityDotProductInput4x8BitPacked);
  for (uint32_t n = 0; n < t.lanes && n < IR_COUNT(dots); n++) {
    const bool whole = t.lanes == 1;
    const uint32_t unsigned_bytes = whole ? a : SPV_DO(s, SpvOpCompositeExtract, word, a, n);
    dots[n] = SPV_DO(s, SpvOpSUDot, word, whole ? b : SPV_DO(s, SpvOpCompositeExtract, word, b, n), unsigned_bytes, PACKED_4X8);
  }
  const uint32_t sums = t.lanes == 1 ? dots[0] : spv_result(s, SpvOpCompositeConstruct, spv_type(s, t), dots, t.lanes);
  return SPV_DO(s, SpvOpIAdd, spv_type(s, t), sums, spv_arg(s, inst, 2));
}

/* SPIR-V counts and finds bits in 32-bit words only: the low and the high words of 64-bit integers. */
static void take_words(spv *s, uint32_t inst, uint32_t words[2]) {
  const kir_type t = type_of(s, inst), wide = spv_like(t, SNT_U64);
  const uint32_t type = spv_type(s, wide), word = spv_type(s, spv_like(t, SNT_U32)), given = spv_arg(s, inst, 0);
  const uint32_t value = spv_is_signed(t.base) ? SPV_DO(s, SpvOpBitcast, type, given) : given;
  words[0] = SPV_DO(s, SpvOpUConvert, word, value);
  words[1] = SPV_DO(s, SpvOpUConvert, word, SPV_DO(s, SpvOpShiftRightLogical, type, value, spv_literal(s, wide, 32, 0)));
}

static uint32_t from_count(spv *s, kir_type t, uint32_t count) {
  const uint32_t value = SPV_DO(s, SpvOpUConvert, spv_type(s, spv_like(t, SNT_U64)), count);
  return spv_is_signed(t.base) ? SPV_DO(s, SpvOpBitcast, spv_type(s, t), value) : value;
}

static uint32_t zeros_of_word(spv *s, kir_type t, uint32_t word) {
  const uint32_t type = spv_type(s, t);
  return SPV_DO(s, SpvOpISub, type, spv_literal(s, t, 31, 0), SPV_GLSL(s, GLSLstd450FindUMsb, type, word));
}

static uint32_t leading_zeros(spv *s, uint32_t inst) {
  const kir_type t = type_of(s, inst), word = spv_like(t, SNT_U32);
  uint32_t words[2];
  if (ir_dtypes[t.base].bytes == 4) return zeros_of_word(s, t, spv_arg(s, inst, 0));
  take_words(s, inst, words);
  const uint32_t below = SPV_DO(s, SpvOpIAdd, spv_type(s, word), zeros_of_word(s, word, words[0]), spv_literal(s, word, 32, 0));
  const uint32_t empty = SPV_DO(s, SpvOpIEqual, spv_type(s, spv_like(t, SNT_BOOL)), words[1], spv_literal(s, word, 0, 0));
  return from_count(s, t, SPV_DO(s, SpvOpSelect, spv_type(s, word), empty, below, zeros_of_word(s, word, words[1])));
}

static uint32_t count_bits(spv *s, uint32_t inst) {
  const kir_type t = type_of(s, inst);
  const uint32_t word = spv_type(s, spv_like(t, SNT_U32));
  uint32_t words[2];
  if (ir_dtypes[t.base].bytes == 4) return spv_select_op(s, inst);
  take_words(s, inst, words);
  return from_count(s, t, SPV_DO(s, SpvOpIAdd, word, SPV_DO(s, SpvOpBitCount, word, words[0]), SPV_DO(s, SpvOpBitCount, word, words[1])));
}

/* ---- selection ---- */
static uint32_t choose(spv *s, uint32_t inst) {
  const kir_type t = type_of(s, inst);
  uint32_t condition = spv_arg(s, inst, 0);
  if (t.lanes > 1 && spv_arg_type(s, inst, 0).lanes == 1) condition = spv_splat(s, spv_like(t, SNT_BOOL), condition);
  return SPV_DO(s, SpvOpSelect, spv_type(s, t), condition, spv_arg(s, inst, 1), spv_arg(s, inst, 2));
}

/* Of floats they are gone (ir/kir/expand.c). Those of integers are compared where one is a literal: spirv-opt 2023.1, which SwiftShader runs, folds the
   extended ones by the sign of their type, and what a loop carries may begin as a literal. */
static uint32_t extreme(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  int64_t literal;
  if (!spv_is_signed(in->type.base) || !(const_int(s, inst, 0, &literal) || const_int(s, inst, 1, &literal))) return spv_select_op(s, inst);
  const uint32_t boolean = spv_type(s, spv_like(in->type, SNT_BOOL)), a = spv_arg(s, inst, 0), b = spv_arg(s, inst, 1);
  const uint32_t better = SPV_DO(s, in->op == KIR_min ? SpvOpSLessThan : SpvOpSGreaterThan, boolean, a, b);
  return SPV_DO(s, SpvOpSelect, spv_type(s, in->type), better, a, b);
}

static uint32_t absolute(spv *s, uint32_t inst) {
  const kir_type t = type_of(s, inst);
  return is_float(t) || spv_is_signed(t.base) ? spv_select_op(s, inst) : spv_arg(s, inst, 0);
}

static uint32_t reciprocal(spv *s, uint32_t inst) {
  const kir_type t = type_of(s, inst);
  return SPV_DO(s, SpvOpFDiv, spv_type(s, t), spv_literal(s, t, 0, 1), spv_arg(s, inst, 0));
}

/* ---- representation ---- */
/* A word of at most 24 bits is the same number as i32, of which f32 is exact on every device. */
static bool has_few_bits(const kir_kernel *k, uint32_t value) {
  const kir_inst *in = kir_at(k, value);
  int64_t a = INT64_MAX, b = INT64_MAX;
  if (in->op == KIR_cast)
    return ir_dtypes[kir_at(k, kir_arg(k, value, 0))->type.base].bits <= 16 && !spv_is_signed(kir_at(k, kir_arg(k, value, 0))->type.base);
  if (in->op != KIR_and && in->op != KIR_shr) return false;
  (void)kir_is_const(k, kir_arg(k, value, 0), &a, NULL);
  const bool known = kir_is_const(k, kir_arg(k, value, 1), &b, NULL);
  return in->op == KIR_shr ? known && b >= 8 : (uint64_t)a < 1u << 24 || (uint64_t)b < 1u << 24;
}

static uint32_t convert(spv *s, uint32_t inst) {
  const uint32_t value = kir_arg(s->k, inst, 0);
  const kir_inst *in = kir_at(s->k, inst), *from = kir_at(s->k, value);
  const bool fetched = from->op == KIR_load && s->memory[from->index].texel && !s->memory[from->index].narrows; /* already wide */
  kir_type type = fetched ? spv_wide(from->type) : from->type;
  if (type.base == SNT_U32 && is_float(in->type) && ((fetched && from->type.base != SNT_U32) || has_few_bits(s->k, value)))
    type = spv_like(type, SNT_I32);
  return spv_cast(s, in->type, type, spv_arg(s, inst, 0), in->flags);
}

static uint32_t reinterpret(spv *s, uint32_t inst) {
  const uint32_t to = spv_type(s, type_of(s, inst)), from = spv_type(s, spv_arg_type(s, inst, 0));
  return to == from ? spv_arg(s, inst, 0) : SPV_DO(s, SpvOpBitcast, to, spv_arg(s, inst, 0));
}

static uint32_t unpack(spv *s, uint32_t inst) {
  const uint32_t u32 = spv_type(s, kir_t(SNT_U32, 1)), pair = spv_type(s, kir_t(SNT_F32, 2)), word = spv_arg(s, inst, 0);
  if (kir_at(s->k, inst)->index != SNT_BF16) return SPV_GLSL(s, GLSLstd450UnpackHalf2x16, pair, word);
  const uint32_t low = SPV_DO(s, SpvOpShiftLeftLogical, u32, word, spv_u32(s, 16));
  const uint32_t high = SPV_DO(s, SpvOpBitwiseAnd, u32, word, spv_u32(s, 0xffff0000u));
  return SPV_DO(s, SpvOpBitcast, pair, SPV_DO(s, SpvOpCompositeConstruct, spv_type(s, kir_t(SNT_U32, 2)), low, high));
}

static uint32_t pack(spv *s, uint32_t inst) {
  if (kir_at(s->k, inst)->index != SNT_BF16) return spv_pack_half(s, spv_arg(s, inst, 0));
  const uint32_t u32 = spv_type(s, kir_t(SNT_U32, 1));
  const uint32_t bits = spv_bfloat_bits(s, kir_t(SNT_F32, 2), spv_arg(s, inst, 0));
  const uint32_t low = SPV_DO(s, SpvOpCompositeExtract, u32, bits, 0), high = SPV_DO(s, SpvOpCompositeExtract, u32, bits, 1);
  return SPV_DO(s, SpvOpBitwiseOr, u32, low, SPV_DO(s, SpvOpShiftLeftLogical, u32, high, spv_u32(s, 16)));
}

/* ---- lanes ---- */
static uint32_t compose(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  uint32_t lanes[4] = {0};
  if (in->op == KIR_splat) return spv_splat(s, in->type, spv_arg(s, inst, 0));
  if (in->type.lanes == 1) return spv_arg(s, inst, 0);
  for (uint32_t n = 0; n < in->arg_count && n < 4; n++) lanes[n] = spv_arg(s, inst, n);
  return spv_result(s, SpvOpCompositeConstruct, spv_type(s, in->type), lanes, in->type.lanes);
}

static uint32_t iota(spv *s, uint32_t inst) {
  const kir_type t = type_of(s, inst);
  uint32_t operands[5] = {spv_type(s, t)};
  for (uint32_t n = 0; n < t.lanes && n < 4; n++) operands[1 + n] = spv_literal(s, kir_t(t.base, 1), n, n);
  return t.lanes == 1 ? operands[1] : spv_intern(&s->m, SpvOpConstantComposite, true, operands, 1 + (size_t)t.lanes, 0, NULL);
}

static uint32_t take_lane(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  const uint32_t type = spv_type(s, in->type), from = spv_arg(s, inst, 0);
  int64_t lane;
  const bool known = const_int(s, inst, 1, &lane);
  if (in->op == KIR_extract) {
    if (spv_arg_type(s, inst, 0).lanes == 1) return from;
    return known ? SPV_DO(s, SpvOpCompositeExtract, type, from, (uint32_t)lane)
                 : SPV_DO(s, SpvOpVectorExtractDynamic, type, from, spv_arg(s, inst, 1));
  }
  const uint32_t value = spv_arg(s, inst, 2);
  return known ? SPV_DO(s, SpvOpCompositeInsert, type, value, from, (uint32_t)lane)
               : SPV_DO(s, SpvOpVectorInsertDynamic, type, from, value, spv_arg(s, inst, 1));
}

static uint32_t shuffle(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  uint32_t operands[6] = {spv_arg(s, inst, 0), spv_arg(s, inst, 1)}, count = 2;
  int64_t lane = 0;
  for (uint32_t n = 2; n < in->arg_count && count < 6; n++) {
    if (!const_int(s, inst, n, &lane)) spv_fail(s, SNT_E_INTERNAL, inst, "the lanes of a shuffle must be literals");
    operands[count++] = (uint32_t)lane;
  }
  return spv_result(s, SpvOpVectorShuffle, spv_type(s, in->type), operands, count);
}

/* ---- subgroup and workgroup ---- */
static uint32_t subgroup(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  const uint32_t type = spv_type(s, in->type), scope = spv_u32(s, SpvScopeSubgroup);
  spv_need(s, SpvCapabilityGroupNonUniform);
  if (in->op == KIR_sg_shuffle) {
    spv_need(s, SpvCapabilityGroupNonUniformShuffle);
    return SPV_DO(s, SpvOpGroupNonUniformShuffle, type, scope, spv_arg(s, inst, 0), spv_arg(s, inst, 1));
  }
  spv_need(s, SpvCapabilityGroupNonUniformArithmetic);
  return SPV_DO(s, spv_isel_op((kir_op)in->op, in->type.base), type, scope, SpvGroupOperationReduce, spv_arg(s, inst, 0));
}

static uint32_t barrier(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  const uint32_t scope = spv_u32(s, in->op == KIR_barrier ? SpvScopeWorkgroup : SpvScopeSubgroup);
  uint32_t semantics = SpvMemorySemanticsAcquireReleaseMask;
  if (in->op == KIR_sg_barrier || in->flags & KIR_SYNC_LOCAL || !in->flags) semantics |= SpvMemorySemanticsWorkgroupMemoryMask;
  if (in->flags & KIR_SYNC_GLOBAL) semantics |= SpvMemorySemanticsUniformMemoryMask;
  if (s->matrices) semantics |= SpvMemorySemanticsMakeAvailableMask | SpvMemorySemanticsMakeVisibleMask;
  if (in->op == KIR_sg_barrier) spv_need(s, SpvCapabilityGroupNonUniform);
  SPV(&s->m, SPV_CODE, SpvOpControlBarrier, scope, scope, spv_u32(s, semantics));
  return 0;
}

static uint32_t group(spv *s, uint32_t inst) {
  (void)inst;
  return s->id[0];
}
static uint32_t nothing(spv *s, uint32_t inst) {
  (void)s, (void)inst;
  return 0;
}
static uint32_t store(spv *s, uint32_t inst) {
  spv_store(s, inst);
  return 0;
}

uint32_t spv_special(spv *s, uint32_t inst) {
  static uint32_t (*const table[KIR_OP_COUNT])(spv *, uint32_t) = {[KIR_const] = constant,
                                                                   [KIR_scalar] = scalar,
                                                                   [KIR_own] = spv_own_call,
                                                                   [KIR_group] = group,
                                                                   [KIR_local] = identity,
                                                                   [KIR_sg_id] = identity,
                                                                   [KIR_sg_lane] = identity,
                                                                   [KIR_sg_count] = identity,
                                                                   [KIR_ix] = index_sum,
                                                                   [KIR_abs] = absolute,
                                                                   [KIR_min] = extreme,
                                                                   [KIR_max] = extreme,
                                                                   [KIR_div] = divide,
                                                                   [KIR_rem] = divide,
                                                                   [KIR_rcp] = reciprocal,
                                                                   [KIR_mulhi] = multiply_high,
                                                                   [KIR_dot4] = sum_of_bytes,
                                                                   [KIR_shl] = shift,
                                                                   [KIR_shr] = shift,
                                                                   [KIR_clz] = leading_zeros,
                                                                   [KIR_popcount] = count_bits,
                                                                   [KIR_select] = choose,
                                                                   [KIR_cast] = convert,
                                                                   [KIR_bitcast] = reinterpret,
                                                                   [KIR_unpack2] = unpack,
                                                                   [KIR_pack2] = pack,
                                                                   [KIR_splat] = compose,
                                                                   [KIR_vec] = compose,
                                                                   [KIR_iota] = iota,
                                                                   [KIR_extract] = take_lane,
                                                                   [KIR_insert] = take_lane,
                                                                   [KIR_shuffle] = shuffle,
                                                                   [KIR_load] = spv_load,
                                                                   [KIR_store] = store,
                                                                   [KIR_fill] = spv_matrix_fill,
                                                                   [KIR_mma_load] = spv_matrix_load,
                                                                   [KIR_mma_store] = spv_matrix_store,
                                                                   [KIR_mma] = spv_matrix_multiply,
                                                                   [KIR_prefetch] = nothing,
                                                                   [KIR_atomic_add] = spv_atomic,
                                                                   [KIR_atomic_min] = spv_atomic,
                                                                   [KIR_atomic_max] = spv_atomic,
                                                                   [KIR_atomic_or] = spv_atomic,
                                                                   [KIR_atomic_and] = spv_atomic,
                                                                   [KIR_atomic_cas] = spv_atomic,
                                                                   [KIR_tex_sample] = spv_image,
                                                                   [KIR_tex_load] = spv_image,
                                                                   [KIR_tex_store] = spv_image,
                                                                   [KIR_sg_add] = subgroup,
                                                                   [KIR_sg_max] = subgroup,
                                                                   [KIR_sg_min] = subgroup,
                                                                   [KIR_sg_shuffle] = subgroup,
                                                                   [KIR_sg_barrier] = barrier,
                                                                   [KIR_barrier] = barrier};
  const kir_op op = (kir_op)kir_at(s->k, inst)->op;
  return table[op] ? table[op](s, inst) : spv_select_op(s, inst);
}
