/* require: what no legaliser can replace is named here, before anything else is rewritten: types, images, fragments, atomics, exact rounding. */
#include "ir/kir_pass_private.h"

static const char *missing_type(uint32_t base, const kir_caps *caps) {
  if (base == SNT_F64) return caps->f64 ? NULL : "64-bit floats";
  if (base == SNT_I64 || base == SNT_U64) return caps->int64 ? NULL : "64-bit integers";
  return NULL;
}

/* Reproducible results need operations that round once, everywhere; the math pass has its own division and root for f32. */
static const char *missing_rounding(const kir_inst *in, const kir_caps *caps) {
  if (in->op == KIR_fma && kir_is_float(in->type.base))
    return caps->fma_fused ? NULL : "fused multiply-add, which reproducible mode asks for";
  if (in->op == KIR_rem && in->type.base == SNT_F32)
    return caps->exact_div && !caps->nan_unsafe ? NULL : "an exact remainder, which reproducible mode asks for";
  if (in->type.base != SNT_F64) return NULL;
  switch (in->op) {
  case KIR_div:
  case KIR_rcp: return caps->exact_div ? NULL : "correctly rounded division, which reproducible mode asks for";
  case KIR_sqrt:
  case KIR_rsqrt: return caps->exact_sqrt ? NULL : "a correctly rounded square root, which reproducible mode asks for";
  default: return NULL;
  }
}

static bool names_subgroup(uint16_t op) { return op >= KIR_sg_add && op <= KIR_sg_barrier; }

static const char *missing_for(const kir_kernel *k, const kir_inst *in, const kir_caps *caps) {
  const char *type = kir_has_value(in->op) || in->op == KIR_store ? missing_type(in->type.base, caps) : NULL;
  const char *fragments = k->needs && *k->needs ? k->needs : "matrix fragments";
  if (type) return type;
  if (in->type.frag && !kir_mma_has(caps, k->needs)) return fragments;
  switch (in->op) {
  case KIR_tex_sample:
  case KIR_tex_load:
  case KIR_tex_store: return caps->images ? NULL : "images";
  case KIR_mma_store: return kir_mma_has(caps, k->needs) ? NULL : fragments;
  case KIR_mma_get:
  case KIR_mma_make: return caps->fragment_lanes ? NULL : "to know which lane holds what of a fragment";
  case KIR_atomic_add:
  case KIR_atomic_min:
  case KIR_atomic_max: return in->type.base == SNT_F32 && !caps->atomics_f32 ? "float atomics" : NULL;
  default: break;
  }
  const bool reduction = in->op == KIR_sg_add || in->op == KIR_sg_max ||
                         in->op == KIR_sg_min; /* over a group that is one subgroup: local memory does */
  if (names_subgroup(in->op) && k->sub && k->sub != ~0u && !caps->subgroups &&
      !(reduction && k->sub == kir_items(k) && k->items[0] == k->sub))
    return "subgroups of a fixed size";
  return k->mode == SNT_NUMERICS_REPRODUCIBLE ? missing_rounding(in, caps) : NULL;
}

snt_result kir_pass_require(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  (void)out; /* the kernel stays as it is */
  for (uint32_t m = 0; m < in->memories.count; m++) {
    const char *lacks = in->memories.at[m].space == KIR_IMAGE ? (caps->images ? NULL : "images")
                                                              : missing_type(in->memories.at[m].type.base, caps);
    if (lacks)
      return ir_fail(diag, SNT_E_UNSUPPORTED, "require", 0, "kernel %s: memory %s needs %s", in->name, in->memories.at[m].name, lacks);
  }
  for (uint32_t i = 1; i < in->insts.count; i++) {
    const char *lacks = missing_for(in, kir_at(in, i), caps);
    if (lacks) return kir_unsupported(in, "require", i, lacks, diag);
  }
  return SNT_OK;
}
