/* Legalises transcendental instructions: in, the instruction and its operands in the kernel being built; out, the value of a sequence of
   basic operations in f32. Rows in ir/kir_math.def; the functions live beside it, one family a file. Those of f64 are wide_*.c. */
#include "ir/math/wide_private.h"
#include "ir/kernel_private.h"

/* The rows by number, and the number of each operation that has one: most have none. */
enum {
  MATH_NONE,
#define MATH(name, ...) MATH_##name,
#include "ir/kir_math.def"
#undef MATH
  MATH_COUNT
};
static const uint8_t numbers[KIR_OP_COUNT] = {
#define MATH(name, ...) [KIR_##name] = MATH_##name,
#include "ir/kir_math.def"
#undef MATH
};
static const kir_math_row rows[MATH_COUNT] = {
#define MATH(name, precise, cheap_any, cheap_exact_div, fused) \
  [MATH_##name] = {km_##name, (float)precise, (float)cheap_any, (float)cheap_exact_div, (float)fused},
#include "ir/kir_math.def"
#undef MATH
};

const kir_math_row *kir_math_find(kir_op op) { return op < KIR_OP_COUNT && numbers[op] ? &rows[numbers[op]] : NULL; }

float kir_math_max_ulp(kir_op op) {
  const kir_math_row *row = kir_math_find(op);
  return row ? row->ulp : 0;
}

/* Those of f64. */
static km_function *const wide[MATH_COUNT] = {
    [MATH_exp] = kw_exp,     [MATH_exp2] = kw_exp2,   [MATH_expm1] = kw_expm1,     [MATH_sinh] = kw_sinh,   [MATH_cosh] = kw_cosh,
    [MATH_tanh] = kw_tanh,   [MATH_log] = kw_log,     [MATH_log2] = kw_log2,       [MATH_log1p] = kw_log1p, [MATH_asinh] = kw_asinh,
    [MATH_acosh] = kw_acosh, [MATH_atanh] = kw_atanh, [MATH_sin] = kw_sin,         [MATH_cos] = kw_cos,     [MATH_tan] = kw_tan,
    [MATH_asin] = kw_asin,   [MATH_acos] = kw_acos,   [MATH_atan] = kw_atan,       [MATH_atan2] = kw_atan2, [MATH_pow] = kw_pow,
    [MATH_erf] = kw_erf,     [MATH_rsqrt] = kw_rsqrt, [MATH_sigmoid] = kw_sigmoid, [MATH_rem] = kw_rem};

static uint32_t refuse(kir_kernel *out, const char *format, const char *a, const char *b) {
  kir_mistake(out, format, a, b);
  out->first_error.result = SNT_E_UNSUPPORTED;
  return 0;
}

float kir_math_cheap(const kir_math_row *row, bool fused, bool exact_div) {
  return fused && row->cheap_fused > 0 ? row->cheap_fused : exact_div ? row->cheap_exact : row->cheap;
}

static bool wants_cheap(const kir_math_row *row, const kir_inst *inst, const kir_caps *caps, bool fast) {
  const float cheap = kir_math_cheap(row, caps->fma_fused && caps->fma_fast, caps->exact_div);
  return cheap > 0 && (fast || inst->ulp >= cheap);
}

/* One expansion a function, which takes everything apart by its bits. */
static uint32_t expand_wide(kir_kernel *out, const kir_inst *inst, uint32_t a, uint32_t b, const kir_caps *caps) {
  km_function *expand = wide[numbers[inst->op]];
  if (!expand || !caps->int64)
    return refuse(out, "%s on f64 needs %s", kir_ops[inst->op].name, expand ? "64-bit integers" : "a function of 64-bit floats");
  km m = {.k = out, .lanes = inst->type.lanes, .same_bits = out->mode == SNT_NUMERICS_REPRODUCIBLE};
  return expand(&m, a, b);
}

uint32_t kir_math_expand(kir_kernel *out, const kir_inst *inst, uint32_t a, uint32_t b, const kir_caps *caps) {
  if (out->failed) return 0;
  const kir_math_row *row = kir_math_find((kir_op)inst->op);
  if (inst->type.base == SNT_F64) return expand_wide(out, inst, a, b, caps);
  if (!row || inst->type.base != SNT_F32)
    return refuse(out, "%s on %s is not supported", kir_ops[inst->op].name, ir_dtypes[inst->type.base].name);
  const bool fast = out->mode == SNT_NUMERICS_FAST, same_bits = out->mode == SNT_NUMERICS_REPRODUCIBLE;
  km m = {.k = out,
          .lanes = inst->type.lanes,
          .fma = caps->fma_fused && caps->fma_fast && !same_bits,
          .exact_div = caps->exact_div || same_bits,
          .repairs = same_bits && !(caps->exact_div && caps->exact_sqrt),
          .same_bits = same_bits,
          .loose = !same_bits && wants_cheap(row, inst, caps, fast),
          .ieee = kir_keeps_nan(caps, out->mode) && !same_bits,
          .own_exp2 = !same_bits && caps->exp2 && inst->ulp >= KIR_OWN_EXP,
          .may_flush = !same_bits && (fast || inst->ulp >= 2),
          .has_dom = (inst->flags & KIR_HAS_DOM) != 0 && kir_ops[inst->op].args == 1,
          .lo = inst->dom_lo,
          .hi = inst->dom_hi};
  m.tables = m.fma && out->mode != SNT_NUMERICS_STRICT && m.lanes == KM_TABLE && caps->permute == KM_TABLE;
  return row->expand(&m, a, b);
}
