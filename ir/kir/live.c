/* An estimate of the 32-bit words that an item holds at once: live values by their last use (what a loop needs from outside lives to its end), and
   register arrays that are still arrays. Constants and scalars live in the code or in uniform registers. */
#include "ir/kir_pass_private.h"

static uint32_t words_of(kir_type t) {
  if (t.frag) return 8;
  return t.lanes * (kir_base_bits(t.base) == 64 ? 2u : 1u);
}

static bool holds_words(const kir_inst *in) {
  switch (in->op) {
  case KIR_const:
  case KIR_scalar:
  case KIR_group:
  case KIR_iota: return false;
  case KIR_result: return true;
  default: return kir_has_value(in->op);
  }
}

/* Where a use at `user` of a value from `def` ends the value's life: the end of the outermost loop around the use that is not around the value. */
static uint32_t life_end(const kir_kernel *k, const kir_regions *r, const uint32_t *depth, uint32_t def, uint32_t user) {
  uint32_t end = user;
  for (uint32_t region = r->parent[user]; region && depth[region] > depth[def]; region = r->parent[region])
    if (kir_at(k, region)->op == KIR_loop && region > def) end = r->close[region];
  return end;
}

static uint32_t array_words(const kir_kernel *k) {
  uint64_t words = 0;
  for (uint32_t m = 0; m < k->memories.count; m++) {
    const kir_memory *mem = &k->memories.at[m];
    if (mem->space != KIR_PRIVATE || !(mem->flags & KIR_MEM_REGS)) continue;
    uint64_t cells = words_of(mem->type);
    for (uint32_t d = 0; d < mem->rank; d++) cells *= mem->dims[d];
    words += cells;
  }
  return words > UINT32_MAX ? UINT32_MAX : (uint32_t)words;
}

/* Nesting depth of each instruction: that of the region that holds it, plus one inside an opener. */
static uint32_t *find_levels(const kir_kernel *k, const kir_regions *r, ir_arena *arena) {
  uint32_t *level = IR_NEW_ARRAY(arena, uint32_t, k->insts.count);
  for (uint32_t i = 1; level && i < k->insts.count; i++) level[i] = r->parent[i] ? level[r->parent[i]] + 1 : 0;
  return level;
}

static uint32_t sweep(const kir_kernel *k, const kir_regions *r, const uint32_t *level, uint32_t *last, int64_t *change) {
  for (uint32_t i = 1; i < k->insts.count; i++)
    for (uint32_t n = 0; n < kir_at(k, i)->arg_count; n++) {
      const uint32_t value = kir_arg(k, i, n), end = life_end(k, r, level, value, i);
      if (end > last[value]) last[value] = end;
    }
  int64_t live = 0, most = 0;
  for (uint32_t i = 1; i < k->insts.count; i++) {
    const kir_inst *in = kir_at(k, i);
    live += change[i]; /* what died before */
    if (!holds_words(in)) continue;
    const uint32_t end = in->op == KIR_loop ? r->close[i]
                                            : last[i]; /* a carried value's register passes to the one that is yielded for it */
    if (end <= i) continue;
    live += words_of(in->type);
    change[end] -= words_of(in->type);
    if (live > most) most = live;
  }
  return (uint32_t)most;
}

uint32_t kir_live_words(const kir_kernel *k) {
  ir_arena arena;
  kir_regions r;
  uint32_t words = 0;
  ir_arena_init(&arena, &k->arena->host);
  if (kir_find_regions(k, &arena, &r)) {
    const uint32_t *level = find_levels(k, &r, &arena);
    uint32_t *last = IR_NEW_ARRAY(&arena, uint32_t, k->insts.count);
    int64_t *change = IR_NEW_ARRAY(&arena, int64_t, k->insts.count + 1u);
    if (level && last && change) words = sweep(k, &r, level, last, change);
  }
  ir_arena_free(&arena);
  const uint32_t arrays = array_words(k);
  return words > UINT32_MAX - arrays ? UINT32_MAX : words + arrays;
}
