/* align: writes on every access the alignment in bytes that its memory and its indices prove (never less than was claimed). */
#include "ir/kir_pass_private.h"

enum { MOST = 64 };
static uint32_t at_most(uint64_t bytes) { return bytes > MOST ? MOST : (uint32_t)bytes; }
static uint32_t lower(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* The declared alignment is that of the first element, offset included. */
static uint32_t base_bytes(const kir_memory *m) {
  uint32_t bytes = m->align ? m->align : kir_mem_bytes(m);
  if (m->type.lanes == 3 || !bytes) bytes = ir_dtypes[m->type.base].bytes;
  return lower(bytes, MOST);
}

static uint32_t power_of_two_in(uint64_t value) { return at_most(value & (0 - value)); }

static uint32_t proven(const kir_kernel *k, uint32_t i, const uint32_t *multiples) {
  const kir_inst *in = kir_at(k, i);
  const kir_memory *m = &k->memories.at[in->index];
  const uint32_t indices = kir_index_count(in);
  uint64_t row = kir_mem_bytes(m); /* bytes from one value of the index to the next */
  uint32_t bytes = base_bytes(m);
  for (uint32_t d = indices; d-- > 0;) {
    bytes = lower(bytes, at_most((uint64_t)power_of_two_in(row) * multiples[kir_arg(k, i, d)]));
    row *= m->dims[d];
  }
  return bytes;
}

snt_result kir_pass_align(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  (void)caps;
  kir_clone c;
  SNT_TRY(kir_clone_begin(&c, in, out));
  const uint32_t *multiples = kir_find_multiples(in, out->arena);
  for (uint32_t i = 1; multiples && i < in->insts.count; i++) {
    kir_clone_inst(&c, i);
    const uint16_t op = kir_at(in, i)->op;
    if (out->failed || !(kir_ops[op].attrs & KA_ALIGN) || kir_mem_bytes(&in->memories.at[kir_at(in, i)->index]) == 0) continue;
    kir_inst *made = kir_at(out, c.map[i]);
    const uint32_t bytes = proven(in, i, multiples);
    if (bytes > made->align) made->align = (uint16_t)bytes;
  }
  return kir_pass_end(out, "align", diag);
}
