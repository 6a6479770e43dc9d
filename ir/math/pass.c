/* math: transcendental functions become our own polynomials, computed in f32, or in f64 where they are of f64. */
#include "ir/kir_pass_private.h"
#include <math.h>

enum { LEAST_DEPTH = 5 }; /* log(1 + e^x) within erf */

/* Devices that divide exactly have an exact remainder too. */
static bool is_math(const kir_kernel *k, const kir_inst *in, const kir_caps *caps) {
  const bool real = kir_is_float(in->type.base) && in->type.base != SNT_F64, same_bits = k->mode == SNT_NUMERICS_REPRODUCIBLE;
  switch (in->op) {
  case KIR_rem: return (!caps->exact_div || caps->nan_unsafe) && (real || (in->type.base == SNT_F64 && caps->int64));
  case KIR_div:
  case KIR_rcp: return real && same_bits && !caps->exact_div;
  case KIR_sqrt: return real && same_bits && !caps->exact_sqrt;
  case KIR_rsqrt: return same_bits || !caps->keeps_math;
  case KIR_exp2:
    if (real && !same_bits && caps->exp2 && in->ulp >= KIR_OWN_EXP2) return false;
    return same_bits || !caps->keeps_math;
  default: return (kir_ops[in->op].attrs & KA_MATH) && (same_bits || !caps->keeps_math);
  }
}

/* What no number that `v` may be is below; it may be NaN beside. A sum rounds no further than to the sum of what its terms are not below.
   stored: the same of what is in each memory; null: not known. */
static float least_of(const kir_kernel *k, const float *stored, uint32_t v, uint32_t depth) {
  const kir_inst *in = kir_at(k, v);
  if (in->type.base != SNT_F32 || depth == 0) return -INFINITY;
  if (in->op == KIR_const) return (float)in->imm.f;
  if (in->op == KIR_load) return stored ? stored[in->index] : -INFINITY;
  float least[2] = {0};
  for (uint32_t n = 0; n < in->arg_count && n < IR_COUNT(least); n++) least[n] = least_of(k, stored, kir_arg(k, v, n), depth - 1);
  switch (in->op) {
  case KIR_exp:
  case KIR_sigmoid: return 0;
  case KIR_splat: return least[0];
  case KIR_add: return least[0] + least[1];
  case KIR_log: return least[0] >= 1 ? 0 : -INFINITY;
  case KIR_mul: return kir_arg(k, v, 0) == kir_arg(k, v, 1) ? 0 : -INFINITY;
  default: return -INFINITY;
  }
}

/* An item's own memory holds what its stores put there: values go through it from loop to loop. Null: there is none, or no room. */
static const float *find_stored(const kir_kernel *k, ir_arena *arena) {
  float *stored = NULL;
  for (uint32_t n = 0; n < k->memories.count; n++) {
    if (k->memories.at[n].space != KIR_PRIVATE) continue;
    if (!stored && !(stored = IR_NEW_ARRAY(arena, float, k->memories.count))) return NULL;
    stored[n] = INFINITY;
  }
  for (uint32_t i = 1; stored && i < k->insts.count; i++) {
    const kir_inst *in = kir_at(k, i);
    if ((kir_ops[in->op].flags & (KIR_MEM | KIR_EFFECT)) != (KIR_MEM | KIR_EFFECT)) continue;
    const bool whole = in->op == KIR_store || in->op == KIR_fill;
    const float least = whole ? least_of(k, NULL, kir_arg(k, i, in->arg_count - 1), LEAST_DEPTH) : -INFINITY;
    if (least < stored[in->index]) stored[in->index] = least;
  }
  for (uint32_t n = 0; stored && n < k->memories.count; n++)
    if (k->memories.at[n].space != KIR_PRIVATE || stored[n] == INFINITY) stored[n] = -INFINITY;
  return stored;
}

static snt_result expand(kir_clone *c, uint32_t i, const float *stored, const kir_caps *caps, snt_diag *diag) {
  const kir_inst *in = kir_at(c->in, i);
  const kir_type single = kir_with_base(in->type, in->type.base == SNT_F64 ? SNT_F64 : SNT_F32);
  if (in->type.base == SNT_F64 && !caps->int64) return kir_unsupported(c->in, "math", i, "64-bit integers in f64", diag);
  kir_inst like = *in;
  like.type = single;
  const bool one = kir_ops[in->op].args == 1;
  if (!(in->flags & KIR_HAS_DOM) || !one)
    like.dom_lo = one ? least_of(c->in, stored, kir_arg(c->in, i, 0), LEAST_DEPTH) : -INFINITY, like.dom_hi = INFINITY;
  uint32_t args[2] = {0};
  for (uint32_t n = 0; n < in->arg_count && n < 2; n++) args[n] = kir_cast(c->out, single, c->map[kir_arg(c->in, i, n)]);
  c->map[i] = kir_cast(c->out, in->type, kir_math_expand(c->out, &like, args[0], args[1], caps));
  return SNT_OK;
}

bool kir_has_math(const kir_kernel *k, const kir_caps *caps) {
  for (uint32_t i = 1; i < k->insts.count; i++)
    if (is_math(k, kir_at(k, i), caps)) return true;
  return false;
}

snt_result kir_pass_math(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  kir_clone c;
  SNT_TRY(kir_clone_begin(&c, in, out));
  const float *stored = find_stored(in, out->arena);
  for (uint32_t i = 1; i < in->insts.count && !out->failed; i++) {
    if (is_math(in, kir_at(in, i), caps)) SNT_TRY(expand(&c, i, stored, caps, diag));
    else kir_clone_inst(&c, i);
  }
  return kir_pass_end(out, "math", diag);
}
