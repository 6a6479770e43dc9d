/* The walk that every generator is a client of, and the calling convention that all of them and the plan agree on:
   bindings and the size of the scalar block. */
#include "codegen_common/codegen.h"

snt_result kernel_walk(const kir_kernel *k, const kernel_visitor *visit, void *self) {
  SNT_TRY(visit->begin(self, k));
  for (uint32_t i = 1; i < k->insts.count; i++) SNT_TRY(visit->inst(self, k, i));
  return visit->end(self, k);
}

uint32_t kir_block_bytes(const kir_kernel *k) {
  uint32_t end = 0;
  for (uint32_t i = 0; i < k->scalars.count; i++) {
    const kir_scalar *s = &k->scalars.at[i];
    uint32_t last = s->offset + ir_dtypes[s->type.base].bytes;
    if (last > end) end = last;
  }
  return (end + 3) & ~3u;
}

static bool has_slot(const kir_memory *m) { return m->space == KIR_GLOBAL || m->space == KIR_IMAGE; }

uint32_t kir_binding(const kir_kernel *k, uint32_t memory) {
  const kir_memory *m = &k->memories.at[memory];
  if (has_slot(m)) return m->slot;
  if (m->space != KIR_SCRATCH) return ~0u;
  uint32_t slot = 0;
  for (uint32_t i = 0; i < k->memories.count; i++)
    slot += has_slot(&k->memories.at[i]) || (i < memory && k->memories.at[i].space == KIR_SCRATCH);
  return slot;
}

uint32_t kir_binding_count(const kir_kernel *k) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < k->memories.count; i++) count += has_slot(&k->memories.at[i]) || k->memories.at[i].space == KIR_SCRATCH;
  return count;
}
