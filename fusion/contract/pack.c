/* Constants along the lanes of a contraction in panels of its tile: described here, computed when the bytes are needed. In: loops over a constant's elements.
   Out: the elements in the order of the loops. */
#include "fusion/contract_pack.h"

static void copy_row(uint8_t *to, const uint8_t *from, int64_t count, int64_t stride, uint32_t bytes) {
  switch (bytes) {
  case 1:
    for (int64_t i = 0; i < count; i++) to[i] = from[i * stride];
    break;
  case 2:
    for (int64_t i = 0; i < count; i++) memcpy(to + 2 * i, from + 2 * i * stride, 2);
    break;
  case 4:
    for (int64_t i = 0; i < count; i++) memcpy(to + 4 * i, from + 4 * i * stride, 4);
    break;
  default:
    for (int64_t i = 0; i < count; i++) memcpy(to + i * bytes, from + i * stride * bytes, bytes);
  }
}

static void pack(const ir_making *m, const void *const *sources, void *into) {
  const contract_packing *own = (const contract_packing *)(const void *)m;
  const contract_pack_loops *p = &own->loops;
  const uint32_t bytes = own->bytes;
  const uint8_t *from = sources[0];
  uint8_t *to = into;
  const uint32_t last = p->count - 1;
  int64_t at[CONTRACT_LABELS] = {0}, rows = 1;
  for (uint32_t i = 0; i < last; i++) rows *= p->extent[i];
  const int64_t width = p->extent[last];
  for (int64_t row = 0; row < rows; row++) {
    int64_t offset = p->first;
    for (uint32_t i = 0; i < last; i++) {
      int64_t position = at[i];
      if (i == p->panel) position = position * width < p->columns - width ? position * width : p->columns - width;
      offset += position * p->stride[i];
    }
    copy_row(to + (size_t)(row * width) * bytes, from + (size_t)offset * bytes, width, p->stride[last], bytes);
    for (uint32_t i = last; i-- > 0 && ++at[i] == p->extent[i];) at[i] = 0;
  }
}

const contract_packing *contract_describe_packing(fusion_context *c, uint32_t node, const contract_pack_loops *p, int64_t elements) {
  contract_packing *w = IR_NEW(c->arena, contract_packing);
  if (!w || !ir_const_source(c->graph, node, &w->making.sources[0])) return NULL;
  w->bytes = ir_dtypes[ir_at(c->graph, node)->type.dtype].bytes;
  w->loops = *p;
  w->making.fill = pack, w->making.bytes = (uint64_t)elements * w->bytes, w->making.source_count = 1, w->making.size = sizeof *w;
  return w;
}
