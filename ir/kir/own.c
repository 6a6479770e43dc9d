/* own: operators of the user's own. Where the target has a text for one it stays, lane by lane, without the operations that it stands for; else
   it is what they compute, unless the user said that only texts will do. */
#include "ir/kir_pass_private.h"

/* Which text the target prints; KIR_OWN_TARGETS: none, it computes what the operator means. */
static uint32_t text_of(const char *target) {
  static const char *const names[KIR_OWN_TARGETS] = {[KIR_OWN_OPENCL] = "opencl", [KIR_OWN_CUDA] = "cuda", [KIR_OWN_GLSL] = "spirv"};
  for (uint32_t i = 0; i < KIR_OWN_TARGETS; i++)
    if (target && !strcmp(target, names[i])) return i;
  return KIR_OWN_TARGETS;
}

static bool has_text(const kir_own *own, uint32_t text) {
  if (text == KIR_OWN_TARGETS) return false;
  return text == KIR_OWN_GLSL ? own->spirv != NULL : own->source[text] != NULL;
}

/* The same on scalars: texts are functions of one element. */
static uint32_t lane_by_lane(kir_clone *c, uint32_t i) {
  kir_kernel *out = c->out;
  const kir_inst *in = kir_at(c->in, i);
  uint32_t parts[16], args[1 + KIR_OWN_NAMES];
  if (in->arg_count > IR_COUNT(args)) return kir_mistake(out, "%u operands of one of the user's own", in->arg_count);
  args[0] = kir_const_int(out, kir_element(in->type), 0);
  for (uint32_t lane = 0; lane < in->type.lanes && !out->failed; lane++) {
    for (uint32_t n = 1; n < in->arg_count; n++) {
      args[n] = c->map[kir_arg(c->in, i, n)];
      if (in->type.lanes > 1) args[n] = kir_lane(out, args[n], lane);
    }
    const kir_inst one = {.op = KIR_own, .index = in->index};
    parts[lane] = kir_put(out, &one, in->arg_count, args);
  }
  if (in->type.lanes == 1 || out->failed) return out->failed ? 0 : parts[0];
  const kir_inst whole = {.op = KIR_vec, .type = in->type};
  return kir_put(out, &whole, in->type.lanes, parts);
}

snt_result kir_pass_own(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  const uint32_t text = text_of(caps->target);
  kir_clone c;
  SNT_TRY(kir_clone_begin(&c, in, out));
  for (uint32_t i = 1; i < in->insts.count && !out->failed; i++) {
    const kir_inst *inst = kir_at(in, i);
    const kir_own *own = (inst->op == KIR_own || inst->op == KIR_inline) && inst->index < in->owns.count ? &in->owns.at[inst->index] : NULL;
    if (own && !has_text(own, text) && (inst->op == KIR_inline || own->native) && text != KIR_OWN_TARGETS)
      return ir_fail(diag, SNT_E_UNSUPPORTED, "own", 0, "operator %s has no source for %s", own->name, caps->target);
    if (inst->op == KIR_inline && text == KIR_OWN_TARGETS)
      return ir_fail(diag, SNT_E_UNSUPPORTED, "own", 0, "operator %s is a kernel in other languages than %s", own ? own->name : "?",
                     caps->target ? caps->target : "this");
    if (inst->op != KIR_own) kir_clone_inst(&c, i);
    else c.map[i] = own && has_text(own, text) ? lane_by_lane(&c, i) : c.map[kir_arg(in, i, 0)];
  }
  return kir_pass_end(out, "own", diag);
}
