/* dce: keeps what an effect needs. Effects are roots, except stores to item- or group-private arrays that nothing reads; carried values, results,
   branches and declared arrays that become useless go too. */
#include "ir/kir_pass_private.h"

typedef struct marker {
  kir_clone c;
  kir_regions regions;
  bool *live, *read; /* by instruction; by memory */
  uint32_t *work, count;
} marker;

static const kir_inst *at(const marker *m, uint32_t i) { return kir_at(m->c.in, i); }

static void mark(marker *m, uint32_t i) {
  if (!i || m->live[i]) return;
  m->live[i] = true;
  m->work[m->count++] = i;
}

/* Operand n of the yield that ends the region of `opener`. */
static void mark_yielded(marker *m, uint32_t opener, uint32_t n) { mark(m, kir_arg(m->c.in, m->regions.close[opener] - 1, n)); }

static void mark_result(marker *m, uint32_t i) {
  const uint32_t end = i - 1 - at(m, i)->index, opener = at(m, end)->index;
  if (at(m, opener)->op == KIR_loop) {
    mark(m, opener + 1 + at(m, i)->index);
    return;
  }
  const uint32_t otherwise = m->regions.close[opener];
  mark(m, opener);
  mark(m, otherwise);
  mark_yielded(m, opener, at(m, i)->index);
  mark_yielded(m, otherwise, at(m, i)->index);
}

static void mark_carry(marker *m, uint32_t i) {
  const uint32_t n = at(m, i)->index, loop = i - 1 - n;
  mark(m, loop);
  mark(m, kir_arg(m->c.in, loop, 3 + n));
  mark_yielded(m, loop, n);
}

static void follow(marker *m, uint32_t i) {
  const kir_inst *in = at(m, i);
  mark(m, m->regions.parent[i]);
  if (in->op == KIR_result) mark_result(m, i);
  else if (in->op == KIR_carry) mark_carry(m, i);
  else if (in->op == KIR_else) mark(m, in->index);
  else
    for (uint32_t n = 0; n < (in->op == KIR_loop ? 3u : in->arg_count); n++) mark(m, kir_arg(m->c.in, i, n));
}

static bool reads_memory(const kir_inst *in) {
  if (!(kir_ops[in->op].flags & KIR_MEM) || in->op == KIR_prefetch) return false;
  return in->op != KIR_store && in->op != KIR_fill && in->op != KIR_mma_store && in->op != KIR_tex_store;
}

static void find_reads(marker *m) {
  const kir_kernel *in = m->c.in;
  for (uint32_t i = 1; i < in->insts.count; i++) {
    if (!reads_memory(at(m, i)) || m->read[at(m, i)->index]) continue;
    for (uint32_t other = 0; other < in->memories.count; other++)
      if (kir_may_alias(in, at(m, i)->index, other)) m->read[other] = true;
  }
}

static bool is_root(const marker *m, const kir_inst *in) {
  if (!(kir_ops[in->op].flags & KIR_EFFECT)) return false;
  if (in->op != KIR_store && in->op != KIR_fill && in->op != KIR_mma_store) return true;
  const uint8_t space = m->c.in->memories.at[in->index].space;
  return m->read[in->index] || space == KIR_GLOBAL || space == KIR_IMAGE;
}

/* ---- writing what is left ---- */
/* A carried value or result number n survives. */
static bool slot_live(const marker *m, uint32_t opener, uint32_t n) {
  if (at(m, opener)->op == KIR_loop) return m->live[opener + 1 + n];
  const uint32_t last = at(m, m->regions.close[opener])->op == KIR_else ? m->regions.close[m->regions.close[opener]]
                                                                        : m->regions.close[opener];
  return m->live[last + 1 + n];
}

static void put_yield(marker *m, uint32_t i) {
  uint32_t opener = m->regions.parent[i], kept = 0;
  if (at(m, opener)->op == KIR_else) opener = at(m, opener)->index;
  kir_kernel *out = m->c.out;
  uint32_t *args = IR_NEW_ARRAY(out->arena, uint32_t, at(m, i)->arg_count);
  for (uint32_t n = 0; args && n < at(m, i)->arg_count; n++)
    if (slot_live(m, opener, n)) args[kept++] = m->c.map[kir_arg(m->c.in, i, n)];
  if (kept) kir_emit(out, at(m, i), kept, args);
}

static void put_loop(marker *m, uint32_t i) {
  kir_kernel *out = m->c.out;
  uint32_t *args = IR_NEW_ARRAY(out->arena, uint32_t, at(m, i)->arg_count), kept = 0;
  for (uint32_t n = 0; args && n < at(m, i)->arg_count; n++)
    if (n < 3 || m->live[i + 1 + n - 3]) args[kept++] = m->c.map[kir_arg(m->c.in, i, n)];
  if (args) m->c.map[i] = kir_emit(out, at(m, i), kept, args);
}

/* Carries and results follow their opener or end, renumbered without gaps. */
static void put_slot(marker *m, uint32_t i) {
  const uint32_t before = kir_at(m->c.out, m->c.out->insts.count - 1)->op == at(m, i)->op
                              ? kir_at(m->c.out, m->c.out->insts.count - 1)->index + 1
                              : 0;
  kir_inst made = *at(m, i);
  made.index = at(m, i)->index == 0 ? 0 : before;
  m->c.map[i] = kir_emit(m->c.out, &made, 0, NULL);
}

static uint32_t rewrite(marker *m, uint32_t i) {
  const kir_inst *in = at(m, i);
  const uint32_t parent = m->regions.parent[i];
  switch (in->op) {
  case KIR_yield:
    if (m->live[parent]) put_yield(m, i);
    return i + 1;
  case KIR_end:
    if (m->live[in->index]) kir_clone_inst(&m->c, i);
    return i + 1;
  case KIR_else: /* an else without live content: on to the end */
    if (m->live[i]) kir_clone_inst(&m->c, i);
    return m->live[i] ? i + 1 : m->regions.close[i];
  case KIR_loop:
    if (m->live[i]) put_loop(m, i);
    return i + 1;
  case KIR_carry:
  case KIR_result:
    if (m->live[i] || (in->op == KIR_result && slot_live(m, at(m, i - 1 - in->index)->index, in->index))) put_slot(m, i);
    return i + 1;
  default:
    if (m->live[i]) kir_clone_inst(&m->c, i);
    return i + 1;
  }
}

/* Declared arrays that no instruction names any more. */
static void drop_memories(kir_kernel *k) {
  uint32_t *number = IR_NEW_ARRAY(k->arena, uint32_t, k->memories.count + 1u), kept = 0;
  bool *used = IR_NEW_ARRAY(k->arena, bool, k->memories.count + 1u);
  if (!number || !used) return;
  for (uint32_t i = 1; i < k->insts.count; i++)
    if (kir_names_memory(kir_at(k, i)->op)) {
      used[kir_at(k, i)->index] = true;
      if (kir_at(k, i)->op == KIR_async_copy) used[kir_at(k, i)->index2] = true;
    }
  for (uint32_t m = 0; m < k->memories.count; m++) {
    const kir_memory *mem = &k->memories.at[m];
    if (mem->space == KIR_GLOBAL || mem->space == KIR_IMAGE) used[m] = true;
    if (used[m] && mem->overlay) used[mem->overlay - 1] = true;
  }
  for (uint32_t m = 0; m < k->memories.count; m++) {
    if (!used[m]) continue;
    number[m] = kept;
    k->memories.at[kept++] = k->memories.at[m];
  }
  if (kept == k->memories.count) return;
  k->memories.count = kept;
  for (uint32_t m = 0; m < kept; m++)
    if (k->memories.at[m].overlay) k->memories.at[m].overlay = number[k->memories.at[m].overlay - 1] + 1;
  for (uint32_t i = 1; i < k->insts.count; i++) {
    kir_inst *in = kir_at(k, i);
    if (kir_names_memory(in->op)) in->index = number[in->index];
    if (in->op == KIR_async_copy) in->index2 = number[in->index2];
  }
}

snt_result kir_pass_dce(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  (void)caps;
  marker m = {.count = 0};
  SNT_TRY(kir_clone_begin(&m.c, in, out));
  m.live = IR_NEW_ARRAY(out->arena, bool, in->insts.count);
  m.read = IR_NEW_ARRAY(out->arena, bool, in->memories.count);
  m.work = IR_NEW_ARRAY(out->arena, uint32_t, in->insts.count);
  if (!m.live || !m.read || !m.work || !kir_find_regions(in, out->arena, &m.regions)) return kir_pass_stop(out, "dce", diag);
  find_reads(&m);
  for (uint32_t i = 1; i < in->insts.count; i++)
    if (is_root(&m, at(&m, i))) mark(&m, i);
  while (m.count) follow(&m, m.work[--m.count]);
  for (uint32_t i = 1; i < in->insts.count;) i = rewrite(&m, i);
  drop_memories(out);
  return kir_pass_end(out, "dce", diag);
}
