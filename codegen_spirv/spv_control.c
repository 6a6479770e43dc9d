/* Structured control: loops, and ifs with phis after the merge. A loop's variable and carried values are variables of the function, read in the
   header, which dominates what follows, and written where the body ends: Mesa puts what the continue block does, phis of the header among it,
   behind a condition at the top of the body, which costs lanes of a processor a selection for each. */
#include "codegen_spirv/spv_private.h"

void spv_label(spv *s, uint32_t label) {
  SPV(&s->m, SPV_CODE, SpvOpLabel, label);
  s->block = label;
}

static void branch_to(spv *s, uint32_t label) { SPV(&s->m, SPV_CODE, SpvOpBranch, label); }

static void keep(spv *s, uint32_t place, uint32_t value) { SPV(&s->m, SPV_CODE, SpvOpStore, place, value); }

static void begin_loop(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  const uint32_t body = spv_fresh(&s->m), count = in->arg_count - 2u;
  spv_region *r = &s->region[s->depth++];
  *r = (spv_region){.opener = inst, .header = spv_fresh(&s->m), .proceed = spv_fresh(&s->m), .merge = spv_fresh(&s->m), .kept = s->m.bound};
  s->m.bound += count;
  for (uint32_t n = 0; n < count; n++) {
    const uint32_t pointer = spv_pointer(s, SpvStorageClassFunction, spv_type(s, kir_at(s->k, inst + n)->type));
    SPV(&s->m, SPV_LOCALS, SpvOpVariable, pointer, r->kept + n, SpvStorageClassFunction);
    keep(s, r->kept + n, spv_arg(s, inst, n ? n + 2 : 0));
  }
  branch_to(s, r->header);
  spv_label(s, r->header);
  for (uint32_t n = 0; n < count; n++) s->id[inst + n] = SPV_DO(s, SpvOpLoad, spv_type(s, kir_at(s->k, inst + n)->type), r->kept + n);
  const uint32_t less = spv_is_signed(in->type.base) ? SpvOpSLessThan : SpvOpULessThan;
  const uint32_t more = SPV_DO(s, less, spv_type(s, kir_t(SNT_BOOL, 1)), s->id[inst], spv_arg(s, inst, 1));
  const uint32_t hint = in->flags & KIR_LOOP_ROLLED                  ? SpvLoopControlDontUnrollMask
                        : in->flags & KIR_LOOP_FULL || in->lanes > 1 ? SpvLoopControlUnrollMask
                                                                     : 0;
  SPV(&s->m, SPV_CODE, SpvOpLoopMerge, r->merge, r->proceed, hint);
  SPV(&s->m, SPV_CODE, SpvOpBranchConditional, more, body, r->merge);
  spv_label(s, body);
}

static void end_loop(spv *s, spv_region *r) {
  const kir_inst *in = kir_at(s->k, r->opener);
  keep(s, r->kept, SPV_DO(s, SpvOpIAdd, spv_type(s, in->type), s->id[r->opener], spv_arg(s, r->opener, 2)));
  branch_to(s, r->proceed);
  spv_label(s, r->proceed);
  branch_to(s, r->header);
  spv_label(s, r->merge);
}

static bool has_else(const spv *s, uint32_t inst) {
  uint32_t depth = 0;
  for (uint32_t i = inst + 1; i < s->k->insts.count; i++) {
    const kir_inst *in = kir_at(s->k, i);
    if (in->op == KIR_loop || in->op == KIR_if) depth++;
    else if (in->op == KIR_else && !depth) return true;
    else if (in->op == KIR_end && depth-- == 0) return false;
  }
  return false;
}

static void begin_if(spv *s, uint32_t inst) {
  spv_region *r = &s->region[s->depth++];
  const uint32_t then = spv_fresh(&s->m);
  *r = (spv_region){.opener = inst, .merge = spv_fresh(&s->m), .has_else = has_else(s, inst)};
  r->proceed = r->has_else ? spv_fresh(&s->m) : r->merge;
  SPV(&s->m, SPV_CODE, SpvOpSelectionMerge, r->merge, 0);
  SPV(&s->m, SPV_CODE, SpvOpBranchConditional, spv_arg(s, inst, 0), then, r->proceed);
  spv_label(s, then);
}

static void begin_else(spv *s) {
  spv_region *r = &s->region[s->depth - 1];
  r->ends[0] = s->block;
  branch_to(s, r->merge);
  spv_label(s, r->proceed);
}

static void end_if(spv *s, spv_region *r) {
  r->ends[r->has_else] = s->block;
  branch_to(s, r->merge);
  spv_label(s, r->merge);
}

static void yield(spv *s, uint32_t inst) {
  spv_region *r = &s->region[s->depth - 1];
  if (kir_at(s->k, r->opener)->op == KIR_loop) {
    for (uint32_t n = 0; n < kir_at(s->k, inst)->arg_count; n++) keep(s, r->kept + 1 + n, spv_arg(s, inst, n));
  } else {
    r->yields[r->yields[0] != 0] = inst;
  }
}

/* Right after end: the region just left is still above the top of the stack. */
static void result(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  const spv_region *r = &s->region[s->depth];
  if (kir_at(s->k, r->opener)->op == KIR_loop) {
    s->id[inst] = s->id[r->opener + 1 + in->index];
    return;
  }
  s->id[inst] = SPV_DO(s, SpvOpPhi, spv_type(s, in->type), spv_arg(s, r->yields[0], in->index), r->ends[0],
                       spv_arg(s, r->yields[1], in->index), r->ends[1]);
}

static void end(spv *s) {
  spv_region *r = &s->region[--s->depth];
  if (kir_at(s->k, r->opener)->op == KIR_loop) end_loop(s, r);
  else end_if(s, r);
}

bool spv_control(spv *s, uint32_t inst) {
  switch (kir_at(s->k, inst)->op) {
  case KIR_loop: begin_loop(s, inst); return true;
  case KIR_if: begin_if(s, inst); return true;
  case KIR_else: begin_else(s); return true;
  case KIR_end: end(s); return true;
  case KIR_yield: yield(s, inst); return true;
  case KIR_result: result(s, inst); return true;
  case KIR_carry: return true; /* made with its loop */
  default: return false;
  }
}
