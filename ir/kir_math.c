/* Legalises transcendental instructions: in, the instruction and its operands in the kernel being built; out, the value of a sequence of
   basic operations in f32. Rows in ir/kir_math.def; the functions live in ir/kir_math_*.c, one family a file. Those of f64 are ir/kir_wide_*.c. */
#include "ir/kir_wide_private.h"
#include "ir/kernel_private.h"

static const kir_math_row rows[KIR_OP_COUNT] = {
#define MATH(name, precise, cheap_any, cheap_exact_div, fused) \
  [KIR_##name] = {km_##name, (float)precise, (float)cheap_any, (float)cheap_exact_div, (float)fused},
#include "ir/kir_math.def"
#undef MATH
};

const kir_math_row *kir_math_find(kir_op op) { return op < KIR_OP_COUNT && rows[op].expand ? &rows[op] : NULL; }

float kir_math_max_ulp(kir_op op) {
  const kir_math_row *row = kir_math_find(op);
  return row ? row->ulp : 0;
}

static uint32_t refuse(kir_kernel *out, const char *format, const char *a, const char *b) {
  kir_mistake(out, format, a, b);
  out->first_error.result = SNT_E_UNSUPPORTED;
  return 0;
}

static kv with_error(km *m, kir_op op, float ulp, uint32_t count, const kv *args) {
  const kir_inst in = {.op = (uint16_t)op, .ulp = m->same_bits ? 0.5f : ulp};
  return kir_put(m->k, &in, count, args);
}

kv(km_div)(km *m, kv a, kv b) { return m->repairs ? km_exact_div(m, a, b) : with_error(m, KIR_div, 2.5f, 2, (kv[]){a, b}); }
kv km_rcp(km *m, kv a, kv unused) {
  (void)unused;
  return km_div(m, km_f(m, 1), a);
}
kv km_sqrt(km *m, kv a, kv unused) {
  (void)unused;
  return m->repairs ? km_exact_sqrt(m, a) : with_error(m, KIR_sqrt, 3, 1, &a);
}

/* One operation, which devices round as they like; in two, each rounds in one way. */
kv km_inverse_root(km *m, kv a) {
  if (!m->same_bits) return with_error(m, KIR_rsqrt, 6, 1, &a);
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

float kir_math_cheap(const kir_math_row *row, bool fused, bool exact_div) {
  return fused && row->cheap_fused > 0 ? row->cheap_fused : exact_div ? row->cheap_exact : row->cheap;
}

static bool wants_cheap(const kir_math_row *row, const kir_inst *inst, const kir_caps *caps, bool fast) {
  const float cheap = kir_math_cheap(row, caps->fma_fused && caps->fma_fast, caps->exact_div);
  return cheap > 0 && (fast || inst->ulp >= cheap);
}

/* One expansion a function, which takes everything apart by its bits. */
static uint32_t expand_wide(kir_kernel *out, const kir_inst *inst, uint32_t a, uint32_t b, const kir_caps *caps) {
  km_function *expand = kir_wide_find((kir_op)inst->op);
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
          .may_flush = !same_bits && (fast || inst->ulp >= 2),
          .has_dom = (inst->flags & KIR_HAS_DOM) != 0 && kir_ops[inst->op].args == 1,
          .lo = inst->dom_lo,
          .hi = inst->dom_hi};
  m.roots = m.loose && m.fma && m.lanes == 16 && caps->permute == 16;
  return row->expand(&m, a, b);
}
