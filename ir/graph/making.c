/* Constants that are described: their bytes on demand, a step after those that it reads. */
#include "ir/making.h"

enum { ALIGN = 64 };

bool ir_make(const ir_making *m, const snt_host_alloc *host, void *to) {
  const void *sources[IR_MAKING_SOURCES] = {0};
  void *own[IR_MAKING_SOURCES] = {0};
  bool good = true;
  for (uint32_t i = 0; i < m->source_count && good; i++) {
    const ir_making *inner = m->sources[i].data ? NULL : m->sources[i].making;
    if (inner) own[i] = host->acquire(host->user, (size_t)inner->bytes, ALIGN, 0);
    good = !inner || (own[i] && ir_make(inner, host, own[i]));
    sources[i] = inner ? own[i] : m->sources[i].data;
  }
  if (good) m->fill(m, sources, to);
  for (uint32_t i = 0; i < m->source_count; i++)
    if (own[i]) host->release(host->user, own[i], (size_t)m->sources[i].making->bytes, ALIGN);
  return good;
}

bool ir_same_making(const ir_making *a, const ir_making *b) {
  if (a == b || !a || !b) return a == b;
  if (!a->size || a->size != b->size || a->fill != b->fill || a->bytes != b->bytes || a->source_count != b->source_count) return false;
  for (uint32_t i = 0; i < a->source_count; i++)
    if (a->sources[i].data != b->sources[i].data || !ir_same_making(a->sources[i].making, b->sources[i].making)) return false;
  return !memcmp(a + 1, b + 1, a->size - sizeof *a);
}
