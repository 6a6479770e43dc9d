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

enum { ADDRESS_BYTES = 8, LEAST_PUSH_BYTES = 128 };

bool kir_is_addressed(const kir_memory *m, const kir_caps *caps) {
  return m->space == KIR_GLOBAL && !(m->flags & KIR_MEM_TEXEL && caps->texel) && ir_dtypes[m->type.base].bytes >= 4;
}

static uint32_t count_addressed(const kir_kernel *k, const kir_caps *caps) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < k->memories.count; i++) count += kir_is_addressed(&k->memories.at[i], caps);
  return count;
}

uint32_t kir_address_at(const kir_kernel *k, const kir_caps *caps) {
  const uint32_t at = (kir_block_bytes(k) + 4 + ADDRESS_BYTES - 1) / ADDRESS_BYTES * ADDRESS_BYTES;
  const uint32_t count = caps->address && !k->owns.count ? count_addressed(k, caps) : 0;
  return count && at + ADDRESS_BYTES * count <= LEAST_PUSH_BYTES ? at : 0;
}

uint32_t kir_push_bytes(const kir_kernel *k, const kir_caps *caps) {
  const uint32_t at = kir_address_at(k, caps);
  return at ? at + ADDRESS_BYTES * count_addressed(k, caps) : kir_block_bytes(k) + 4;
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
