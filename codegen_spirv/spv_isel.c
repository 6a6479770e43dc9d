/* Instruction selection: one row an operation, one column a class of operand, to an instruction or an extended one. Operations
   that take several instructions are marked SEVERAL and made in spv_special.c; those that a pass removes say so. */
#include "codegen_spirv/spv_private.h"

typedef struct isel_row {
  uint16_t f, s, u, b;
  uint8_t ext_f, ext_s, ext_u;
  uint8_t why; /* there is more to it than the one instruction: `several`, or the pass that removes it */
} isel_row;
enum { several = 1, legalise, math, require };
static const char *const passes[] = {[legalise] = "legalise", [math] = "math", [require] = "require"};
#define SEVERAL \
  { .why = several }
#define LOWERED(pass) \
  { .why = pass }
#define MATH LOWERED(math)
#define EXT SpvOpExtInst

// clang-format off
static const isel_row rows[KIR_OP_COUNT] = {
    [KIR_const] = SEVERAL, [KIR_scalar] = SEVERAL, [KIR_group] = SEVERAL, [KIR_local] = SEVERAL,
    [KIR_sg_id] = SEVERAL, [KIR_sg_lane] = SEVERAL, [KIR_sg_count] = SEVERAL, [KIR_ix] = SEVERAL,
    [KIR_add] = {.f = SpvOpFAdd, .s = SpvOpIAdd, .u = SpvOpIAdd},
    [KIR_sub] = {.f = SpvOpFSub, .s = SpvOpISub, .u = SpvOpISub},
    [KIR_mul] = {.f = SpvOpFMul, .s = SpvOpIMul, .u = SpvOpIMul},
    [KIR_neg] = {.f = SpvOpFNegate, .s = SpvOpSNegate, .u = SpvOpSNegate},
    [KIR_abs] = {.f = EXT, .s = EXT, .ext_f = GLSLstd450FAbs, .ext_s = GLSLstd450SAbs, .why = several},
    [KIR_min] = {.s = EXT, .u = EXT, .ext_s = GLSLstd450SMin, .ext_u = GLSLstd450UMin, .why = several},
    [KIR_max] = {.s = EXT, .u = EXT, .ext_s = GLSLstd450SMax, .ext_u = GLSLstd450UMax, .why = several},
    [KIR_fma] = {.f = EXT, .ext_f = GLSLstd450Fma},
    [KIR_dot4] = SEVERAL,
    [KIR_div] = {.f = SpvOpFDiv, .s = SpvOpSDiv, .u = SpvOpUDiv},
    [KIR_rem] = {.f = SpvOpFRem, .why = several},
    [KIR_sqrt] = {.f = EXT, .ext_f = GLSLstd450Sqrt},
    [KIR_rcp] = SEVERAL,
    [KIR_rsqrt] = {.f = EXT, .ext_f = GLSLstd450InverseSqrt},
    [KIR_floor] = {.f = EXT, .ext_f = GLSLstd450Floor},
    [KIR_ceil] = {.f = EXT, .ext_f = GLSLstd450Ceil},
    [KIR_trunc] = {.f = EXT, .ext_f = GLSLstd450Trunc},
    [KIR_rint] = {.f = EXT, .ext_f = GLSLstd450RoundEven},
    [KIR_udiv] = {.s = SpvOpUDiv, .u = SpvOpUDiv},
    [KIR_umod] = {.s = SpvOpUMod, .u = SpvOpUMod},
    [KIR_mulhi] = SEVERAL, [KIR_wrap] = LOWERED(legalise),
    [KIR_and] = {.s = SpvOpBitwiseAnd, .u = SpvOpBitwiseAnd, .b = SpvOpLogicalAnd},
    [KIR_or] = {.s = SpvOpBitwiseOr, .u = SpvOpBitwiseOr, .b = SpvOpLogicalOr},
    [KIR_xor] = {.s = SpvOpBitwiseXor, .u = SpvOpBitwiseXor, .b = SpvOpLogicalNotEqual},
    [KIR_not] = {.s = SpvOpNot, .u = SpvOpNot, .b = SpvOpLogicalNot},
    [KIR_shl] = SEVERAL, [KIR_shr] = SEVERAL,
    [KIR_popcount] = {.s = SpvOpBitCount, .u = SpvOpBitCount, .why = several},
    [KIR_clz] = SEVERAL,
    [KIR_eq] = {.f = SpvOpFOrdEqual, .s = SpvOpIEqual, .u = SpvOpIEqual, .b = SpvOpLogicalEqual},
    [KIR_ne] = {.f = SpvOpFUnordNotEqual, .s = SpvOpINotEqual, .u = SpvOpINotEqual, .b = SpvOpLogicalNotEqual},
    [KIR_lt] = {.f = SpvOpFOrdLessThan, .s = SpvOpSLessThan, .u = SpvOpULessThan},
    [KIR_le] = {.f = SpvOpFOrdLessThanEqual, .s = SpvOpSLessThanEqual, .u = SpvOpULessThanEqual},
    [KIR_gt] = {.f = SpvOpFOrdGreaterThan, .s = SpvOpSGreaterThan, .u = SpvOpUGreaterThan},
    [KIR_ge] = {.f = SpvOpFOrdGreaterThanEqual, .s = SpvOpSGreaterThanEqual, .u = SpvOpUGreaterThanEqual},
    [KIR_isnan] = {.f = SpvOpIsNan}, [KIR_isinf] = {.f = SpvOpIsInf},
    [KIR_select] = SEVERAL, [KIR_cast] = SEVERAL, [KIR_bitcast] = SEVERAL, [KIR_unpack2] = SEVERAL, [KIR_pack2] = SEVERAL,
    [KIR_exp] = MATH, [KIR_exp2] = MATH, [KIR_expm1] = MATH, [KIR_log] = MATH, [KIR_log2] = MATH, [KIR_log1p] = MATH, [KIR_sin] = MATH,
    [KIR_cos] = MATH, [KIR_tan] = MATH, [KIR_asin] = MATH, [KIR_acos] = MATH, [KIR_atan] = MATH, [KIR_sinh] = MATH, [KIR_cosh] = MATH,
    [KIR_tanh] = MATH, [KIR_asinh] = MATH, [KIR_acosh] = MATH, [KIR_atanh] = MATH, [KIR_sigmoid] = MATH, [KIR_erf] = MATH, [KIR_pow] = MATH,
    [KIR_atan2] = MATH,
    [KIR_splat] = SEVERAL, [KIR_vec] = SEVERAL, [KIR_iota] = SEVERAL, [KIR_extract] = SEVERAL, [KIR_insert] = SEVERAL, [KIR_shuffle] = SEVERAL,
    [KIR_permute] = LOWERED(legalise), [KIR_scalef] = LOWERED(legalise),
    [KIR_hred_add] = LOWERED(legalise), [KIR_hred_max] = LOWERED(legalise), [KIR_hred_min] = LOWERED(legalise), [KIR_hred_mul] = LOWERED(legalise),
    [KIR_load] = SEVERAL, [KIR_store] = SEVERAL, [KIR_fill] = SEVERAL, [KIR_prefetch] = SEVERAL,
    [KIR_atomic_add] = {.s = SpvOpAtomicIAdd, .u = SpvOpAtomicIAdd, .why = several},
    [KIR_atomic_min] = {.s = SpvOpAtomicSMin, .u = SpvOpAtomicUMin, .why = several},
    [KIR_atomic_max] = {.s = SpvOpAtomicSMax, .u = SpvOpAtomicUMax, .why = several},
    [KIR_atomic_or] = {.s = SpvOpAtomicOr, .u = SpvOpAtomicOr, .why = several},
    [KIR_atomic_and] = {.s = SpvOpAtomicAnd, .u = SpvOpAtomicAnd, .why = several},
    [KIR_atomic_cas] = {.s = SpvOpAtomicCompareExchange, .u = SpvOpAtomicCompareExchange, .why = several},
    [KIR_tex_sample] = SEVERAL, [KIR_tex_load] = SEVERAL, [KIR_tex_store] = SEVERAL,
    [KIR_sg_add] = {.f = SpvOpGroupNonUniformFAdd, .s = SpvOpGroupNonUniformIAdd, .u = SpvOpGroupNonUniformIAdd, .why = several},
    [KIR_sg_max] = {.f = SpvOpGroupNonUniformFMax, .s = SpvOpGroupNonUniformSMax, .u = SpvOpGroupNonUniformUMax, .why = several},
    [KIR_sg_min] = {.f = SpvOpGroupNonUniformFMin, .s = SpvOpGroupNonUniformSMin, .u = SpvOpGroupNonUniformUMin, .why = several},
    [KIR_sg_shuffle] = SEVERAL, [KIR_sg_barrier] = SEVERAL, [KIR_barrier] = SEVERAL,
    [KIR_async_copy] = LOWERED(legalise), [KIR_async_commit] = LOWERED(legalise), [KIR_async_wait] = LOWERED(legalise),
    [KIR_mma_load] = SEVERAL, [KIR_mma_store] = SEVERAL, [KIR_mma] = SEVERAL,
    [KIR_mma_get] = LOWERED(require), [KIR_mma_make] = LOWERED(require),
    [KIR_loop] = SEVERAL, [KIR_carry] = SEVERAL, [KIR_if] = SEVERAL, [KIR_else] = SEVERAL, [KIR_yield] = SEVERAL, [KIR_end] = SEVERAL,
    [KIR_result] = SEVERAL, [KIR_own] = SEVERAL, [KIR_inline] = SEVERAL,
};
// clang-format on

/* The pass that removes it; null: none. */
static const char *pass_of(const isel_row *row) { return row->why > several ? passes[row->why] : NULL; }

bool spv_isel_has(kir_op op, const char **why) {
  const isel_row *row = &rows[op];
  *why = pass_of(row);
  return row->why || row->f || row->s || row->u || row->b;
}

uint32_t spv_isel_op(kir_op op, uint32_t base) {
  const isel_row *row = &rows[op];
  if (base == SNT_BOOL) return row->b;
  if (base == SNT_F16 || base == SNT_BF16) return SpvOpNop;
  return ir_dtypes[base].is_float ? row->f : spv_is_signed(base) ? row->s : row->u;
}

static uint32_t extended(const isel_row *row, uint32_t base) {
  return ir_dtypes[base].is_float ? row->ext_f : spv_is_signed(base) ? row->ext_s : row->ext_u;
}

static bool contractible(uint32_t op) {
  return op == SpvOpFAdd || op == SpvOpFSub || op == SpvOpFMul || op == SpvOpFNegate || op == SpvOpFDiv;
}

uint32_t spv_select_op(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  const isel_row *row = &rows[in->op];
  const kir_type operand = in->arg_count ? spv_arg_type(s, inst, 0) : in->type;
  const uint32_t op = spv_isel_op((kir_op)in->op, operand.base);
  if (pass_of(row)) spv_fail(s, SNT_E_INTERNAL, inst, "%s must have been removed by pass %s", kir_ops[in->op].name, pass_of(row));
  if (op == SpvOpNop || s->result != SNT_OK) return 0;
  uint32_t operands[6], count = 0;
  if (op == SpvOpExtInst) operands[count++] = s->glsl, operands[count++] = extended(row, operand.base);
  for (uint32_t n = 0; n < in->arg_count && n < 3; n++) operands[count++] = spv_arg(s, inst, n);
  const uint32_t id = spv_result(s, op, spv_type(s, in->type), operands, count);
  if (contractible(op)) SPV(&s->m, SPV_DECORATIONS, SpvOpDecorate, id, SpvDecorationNoContraction);
  return id;
}
