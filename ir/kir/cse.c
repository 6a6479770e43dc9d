/* cse: each value once. A scoped table follows the regions, so that what it offers dominates; loads carry the version of their memory, which writes,
   barriers and loops that write renew; a store offers its value to the loads that follow. Constants move to the top of the kernel. */
#include "ir/kir_pass_private.h"

typedef struct entry {
  uint32_t hash, value, like, version, slot;
} entry; /* `like`: the instruction whose operands are compared */
typedef struct table {
  kir_clone c;
  uint32_t *slots, mask; /* number of an entry + 1 */
  entry *entries;        /* in the order in which they were offered */
  uint32_t entry_count;
  uint32_t *scopes, scope_count; /* entry_count where each open region began */
  uint32_t *versions, next_version;
  uint32_t *row_of;
  kir_regions regions;
  kir_bits_table clobbers;
} table;

/* What two equal values have in common besides operands: a load is the same whatever its hints, and lanes 0 are lanes 1. */
static uint32_t flags_of(const kir_inst *in) { return in->op == KIR_load ? 0 : in->flags; }
static int32_t lanes_of(const kir_inst *in) { return in->op == KIR_load && in->lanes < 2 ? 0 : in->lanes; }

static bool is_like(const kir_inst *a, const kir_inst *b) {
  return a->op == b->op && flags_of(a) == flags_of(b) && kir_same(a->type, b->type) && a->index == b->index && a->imm.i == b->imm.i &&
         lanes_of(a) == lanes_of(b) && ir_f32_bits(a->dom_lo) == ir_f32_bits(b->dom_lo) &&
         ir_f32_bits(a->dom_hi) == ir_f32_bits(b->dom_hi) && ir_f32_bits(a->ulp) == ir_f32_bits(b->ulp);
}

/* A store offers the load that would read it. */
static kir_inst load_of(const kir_inst *store, kir_type type) {
  kir_inst load = *store;
  load.op = KIR_load;
  load.type = type;
  return load;
}

static bool may_share(const kir_inst *in) {
  if (in->op == KIR_load || in->op == KIR_tex_load || in->op == KIR_tex_sample) return true;
  return (kir_ops[in->op].flags & KIR_PURE) != 0;
}

static bool matches(const table *t, const entry *e, const kir_inst *in, uint32_t version, const uint32_t *args) {
  const kir_inst *have = kir_at(t->c.out, e->like);
  const uint32_t count = in->arg_count;
  if (e->version != version || have->arg_count != count + (have->op == KIR_store)) return false;
  if (have->op == KIR_store) {
    const kir_inst load = load_of(have, kir_type_of(t->c.out, e->value));
    if (!is_like(in, &load)) return false;
  } else if (!is_like(in, have)) return false;
  return count == 0 || memcmp(&t->c.out->args.at[have->args], args, count * sizeof *args) == 0;
}

static uint32_t hash_of(const kir_inst *in, uint32_t version, const uint32_t *args) {
  const uint64_t type = in->type.base | (uint64_t)in->type.lanes << 8 | (uint64_t)in->type.frag << 16;
  uint64_t h = ir_hash_word(in->op | type << 16 | (uint64_t)version << 40, (uint64_t)in->imm.i);
  h = ir_hash_word(h, in->index | (uint64_t)(uint32_t)lanes_of(in) << 32);
  for (uint32_t n = 0; n < in->arg_count; n++) h = ir_hash_word(h, args[n]);
  return (uint32_t)h;
}

static const entry *look_up(table *t, uint32_t hash, const kir_inst *in, uint32_t version, const uint32_t *args, uint32_t *free_slot) {
  uint32_t at = hash & t->mask;
  for (; t->slots[at]; at = (at + 1) & t->mask) {
    const entry *e = &t->entries[t->slots[at] - 1];
    if (e->hash == hash && matches(t, e, in, version, args)) return e;
  }
  *free_slot = at;
  return NULL;
}

static void offer(table *t, uint32_t slot, uint32_t hash, uint32_t value, uint32_t like, uint32_t version) {
  t->entries[t->entry_count++] = (entry){hash, value, like, version, slot};
  t->slots[slot] = t->entry_count;
}

static void open_scope(table *t) { t->scopes[t->scope_count++] = t->entry_count; }
static void close_scope(table *t) { /* in reverse order, so probe sequences stay whole */
  const uint32_t down_to = t->scopes[--t->scope_count];
  while (t->entry_count > down_to) t->slots[t->entries[--t->entry_count].slot] = 0;
}

static uint32_t version_of(const table *t, const kir_inst *in) { return (kir_ops[in->op].flags & KIR_MEM) ? t->versions[in->index] : 0; }
static void renew(table *t, uint32_t memory) { t->versions[memory] = ++t->next_version; }
static void renew_aliases(table *t, uint32_t memory) {
  for (uint32_t m = 0; m < t->c.in->memories.count; m++)
    if (kir_may_alias(t->c.in, memory, m)) renew(t, m);
}
static void renew_row(table *t, uint32_t opener) {
  for (uint32_t m = 0; m < t->c.in->memories.count; m++)
    if (kir_bits_get(&t->clobbers, t->row_of[opener], m)) renew(t, m);
}
static void renew_shared(table *t) {
  for (uint32_t m = 0; m < t->c.in->memories.count; m++)
    if (t->c.in->memories.at[m].space != KIR_PRIVATE && !kir_mem_is_ro(t->c.in, m)) renew(t, m);
}

static void order_operands(const kir_inst *in, uint32_t *args) {
  if (!kir_may_swap(in) || args[0] >= args[1]) return;
  const uint32_t first = args[0]; /* constants have the lowest numbers: they end up right */
  args[0] = args[1], args[1] = first;
}

static void share(table *t, uint32_t i) {
  const kir_inst *in = kir_at(t->c.in, i);
  uint32_t few[64], slot = 0;
  if (in->arg_count > IR_COUNT(few)) {
    kir_clone_inst(&t->c, i);
    return;
  }
  for (uint32_t n = 0; n < in->arg_count; n++) few[n] = t->c.map[kir_arg(t->c.in, i, n)];
  order_operands(in, few);
  const uint32_t version = version_of(t, in);
  const uint32_t hash = hash_of(in, version, few);
  const entry *found = look_up(t, hash, in, version, few, &slot);
  if (found) {
    kir_inst *kept = kir_at(t->c.out, found->value);
    const bool is_same_place = found->like == found->value; /* what a store offers may be a load of elsewhere */
    if (in->op == KIR_load && is_same_place && in->align > kept->align) kept->align = in->align;
    t->c.map[i] = found->value;
    return;
  }
  t->c.map[i] = kir_emit(t->c.out, in, in->arg_count, few);
  offer(t, slot, hash, t->c.map[i], t->c.map[i], version);
}

/* The stored value, to loads of the same place. */
static void forward_store(table *t, uint32_t store) {
  const kir_inst *in = kir_at(t->c.out, store);
  const kir_memory *m = &t->c.out->memories.at[in->index];
  const uint32_t count = in->arg_count - 1u, value = kir_arg(t->c.out, store, count);
  if (m->space == KIR_IMAGE || m->overlay || m->alias || !(m->access & KIR_READ || m->space != KIR_GLOBAL)) return;
  kir_inst load = {
      .op = KIR_load, .type = kir_type_of(t->c.out, value), .index = in->index, .lanes = in->lanes, .arg_count = (uint16_t)count};
  const uint32_t *args = &t->c.out->args.at[in->args], version = t->versions[in->index];
  const uint32_t hash = hash_of(&load, version, args);
  uint32_t slot = 0;
  if (!look_up(t, hash, &load, version, args, &slot)) offer(t, slot, hash, value, store, version);
}

static void visit(table *t, uint32_t i) {
  const kir_inst *in = kir_at(t->c.in, i);
  if (in->op == KIR_const) return;
  if (in->op == KIR_end || in->op == KIR_else) close_scope(t);
  if (in->op == KIR_loop) renew_row(t, i);
  if (may_share(in)) share(t, i);
  else kir_clone_inst(&t->c, i);
  if (in->op == KIR_loop || in->op == KIR_if || in->op == KIR_else) open_scope(t);
  if (in->op == KIR_barrier || in->op == KIR_sg_barrier || in->op == KIR_async_wait) renew_shared(t);
  const uint32_t written = kir_written_memory(in);
  if (written) renew_aliases(t, written - 1);
  if (in->op == KIR_store) forward_store(t, t->c.map[i]);
}

static bool prepare(table *t, const kir_kernel *in, ir_arena *arena) {
  uint32_t size = 64;
  while (size < 2 * in->insts.count) size *= 2;
  t->mask = size - 1;
  t->slots = IR_NEW_ARRAY(arena, uint32_t, size);
  t->entries = ir_arena_take_bare(arena, in->insts.count * sizeof *t->entries,
                                  _Alignof(entry)); /* an instruction offers one value at most */
  t->scopes = ir_arena_take_bare(arena, in->insts.count * sizeof *t->scopes, _Alignof(uint32_t));
  t->versions = IR_NEW_ARRAY(arena, uint32_t, in->memories.count);
  t->row_of = IR_NEW_ARRAY(arena, uint32_t, in->insts.count);
  if (!t->slots || !t->entries || !t->scopes || !t->versions || !t->row_of || !kir_find_regions(in, arena, &t->regions)) return false;
  const uint32_t rows = kir_number_regions(in, t->row_of);
  return kir_find_clobbers(in, &t->regions, t->row_of, rows, arena, &t->clobbers);
}

snt_result kir_pass_cse(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  (void)caps;
  table t = {.mask = 0};
  SNT_TRY(kir_clone_begin(&t.c, in, out));
  if (!prepare(&t, in, out->arena)) return kir_pass_stop(out, "cse", diag);
  for (uint32_t i = 1; i < in->insts.count; i++)
    if (kir_at(in, i)->op == KIR_const) share(&t, i);
  for (uint32_t i = 1; i < in->insts.count && !out->failed; i++) visit(&t, i);
  return kir_pass_end(out, "cse", diag);
}
