/* Copies from global into local memory on their way beside whatever else the group does: they take no registers. */
#include "fusion/emit_private.h"

static bool is_zero(const kir_kernel *k, uint32_t value) {
  if (kir_at(k, value)->op == KIR_splat) value = kir_arg(k, value, 0);
  return kir_at(k, value)->op == KIR_const && kir_at(k, value)->imm.i == 0;
}

bool emit_can_copy(const fusion_options *o, kir_type kept) {
  const uint32_t bytes = ir_dtypes[kept.base].bytes * kept.lanes;
  return o->profile->caps.async_copy && fusion_runs_on_cuda(o) && (bytes == 4 || bytes == 8 || bytes == 16);
}

bool emit_find_copied(const emit *e, uint32_t value, kir_type kept, int32_t widened, emit_copied *out) {
  const kir_kernel *k = e->k;
  *out = (emit_copied){.bytes = ir_dtypes[kept.base].bytes * kept.lanes};
  if (!value || e->failed || k->failed) return false;
  if (kir_at(k, value)->op == KIR_select && kir_at(k, kir_arg(k, value, 0))->type.lanes == 1 && is_zero(k, kir_arg(k, value, 2))) {
    out->inside = kir_arg(k, value, 0);
    value = kir_arg(k, value, 1);
  }
  if (kir_at(k, value)->op == KIR_cast && kir_at(k, value)->type.base == widened) value = kir_arg(k, value, 0);
  const kir_inst *in = kir_at(k, value);
  if (in->op != KIR_load || in->type.lanes != kept.lanes || in->lanes > 1) return false;
  const kir_memory *m = &k->memories.at[in->index];
  out->load = value;
  return m->space == KIR_GLOBAL && m->access == KIR_READ && kir_same(m->type, kir_t(kept.base, 1)) &&
         (kept.lanes == 1 || in->align >= out->bytes);
}

void emit_copy(emit *e, const emit_copied *from, uint32_t memory, uint32_t at) {
  if (e->failed || e->k->failed) return;
  const uint32_t inside = from->inside ? from->inside : kir_const_int(e->k, kir_t(SNT_BOOL, 1), 1);
  const uint32_t operands[] = {at, kir_arg(e->k, from->load, 0), inside};
  const kir_inst copy = {.op = KIR_async_copy, .index = memory, .index2 = kir_at(e->k, from->load)->index, .lanes = (int32_t)from->bytes};
  (void)kir_put(e->k, &copy, IR_COUNT(operands), operands);
}

void emit_copy_close(emit *e) { (void)kir_put(e->k, &(kir_inst){.op = KIR_async_commit}, 0, NULL); }
void emit_copy_wait(emit *e, int64_t open) { (void)kir_put(e->k, &(kir_inst){.op = KIR_async_wait, .imm.i = open}, 0, NULL); }
