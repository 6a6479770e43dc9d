/* The walk that every generator is a client of, and the size of the scalar block that all of them and the plan agree on. */
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
