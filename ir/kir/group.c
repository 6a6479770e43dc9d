/* group: subgroup operations, asynchronous copies, prefetches and cache hints that the target lacks. A subgroup of one item is always right, because
   kernels size their arrays for it; where the size is known, reductions over lanes are butterflies of shuffles. */
#include "ir/kir_pass_private.h"

typedef struct lowering {
  kir_clone c;
  const kir_caps *caps;
  bool single, tree;
  uint32_t size;
} lowering; /* single: subgroups of one item; tree: the group is one subgroup that the target lacks */

static kir_type u32(void) { return kir_t(SNT_U32, 1); }

static uint32_t linear_item(kir_kernel *out) {
  uint32_t id = kir_id(out, KIR_local, 0);
  if (out->items[1] > 1) id = kir_ix(out, 2, (int64_t[]){1, out->items[0]}, (uint32_t[]){id, kir_id(out, KIR_local, 1)}, 0);
  if (out->items[2] > 1)
    id = kir_ix(out, 2, (int64_t[]){1, (int64_t)out->items[0] * out->items[1]}, (uint32_t[]){id, kir_id(out, KIR_local, 2)}, 0);
  return id;
}

static uint32_t butterfly(kir_kernel *out, kir_op op, uint32_t value, uint32_t size) {
  const uint32_t lane = kir_id(out, KIR_sg_lane, 0);
  for (uint32_t distance = size / 2; distance; distance /= 2) {
    const uint32_t partner = kir_2(out, KIR_xor, lane, kir_const_int(out, u32(), distance));
    value = kir_2(out, op, value, kir_2(out, KIR_sg_shuffle, value, partner));
  }
  return value;
}

/* The same butterfly through local memory, for a group that is one subgroup. */
static uint32_t exchange(kir_kernel *out, kir_op op, uint32_t value, uint32_t size) {
  const kir_memory cells = {
      .name = "lanes", .space = KIR_LOCAL, .access = KIR_READ | KIR_WRITE, .rank = 1, .type = kir_type_of(out, value), .dims = {size}};
  const uint32_t memory = kir_memory_add(out, &cells), lane = kir_id(out, KIR_local, 0);
  for (uint32_t distance = size / 2; distance; distance /= 2) {
    const uint32_t partner = kir_2(out, KIR_xor, lane, kir_const_int(out, u32(), distance));
    kir_barrier(out, KIR_SYNC_LOCAL);
    kir_store(out, memory, 1, &lane, value);
    kir_barrier(out, KIR_SYNC_LOCAL);
    value = kir_2(out, op, value, kir_load(out, memory, 1, 1, &partner));
  }
  return value;
}

static uint32_t reduce(lowering *l, uint32_t i, kir_op op) {
  const uint32_t value = l->c.map[kir_arg(l->c.in, i, 0)];
  if (l->tree) return exchange(l->c.out, op, value, l->size);
  if (l->single) return value;
  return l->caps->subgroup_arithmetic ? kir_clone_inst(&l->c, i) : butterfly(l->c.out, op, value, l->size);
}

/* Loads here and stores at once: the schedule keeps readers away from the place from the copy to the wait. Where zeros are copied, the index is one that
   may be read all the same. */
static void copy_now(lowering *l, uint32_t i) {
  const kir_inst *in = kir_at(l->c.in, i);
  kir_kernel *out = l->c.out;
  const uint32_t indices = in->arg_count - 2u, element = kir_mem_bytes(&out->memories.at[in->index2]), bytes = (uint32_t)in->lanes;
  uint32_t args[6];
  for (uint32_t n = 0; n < in->arg_count; n++) args[n] = l->c.map[kir_arg(l->c.in, i, n)];
  uint32_t value = kir_load(out, in->index2, bytes / element, 1, &args[indices]);
  if (!out->failed) kir_at(out, value)->align = (uint16_t)bytes;
  value = kir_3(out, KIR_select, args[indices + 1], value, kir_const_like(out, value, 0));
  const uint32_t store = kir_store(out, in->index, indices, args, value);
  if (!out->failed) kir_at(out, store)->align = (uint16_t)bytes;
}

static void clone_hinted(lowering *l, uint32_t i) {
  kir_clone_inst(&l->c, i);
  kir_inst *made = kir_at(l->c.out, l->c.map[i]);
  if (made->op == KIR_store && !l->caps->stream) made->flags &= (uint16_t)~KIR_IS_STREAM;
}

static void visit(lowering *l, uint32_t i) {
  kir_kernel *out = l->c.out;
  uint32_t *map = &l->c.map[i];
  switch (kir_at(l->c.in, i)->op) {
  case KIR_sg_id: *map = l->single ? linear_item(out) : kir_clone_inst(&l->c, i); break;
  case KIR_sg_lane: *map = l->single ? kir_const_int(out, u32(), 0) : kir_clone_inst(&l->c, i); break;
  case KIR_sg_count: *map = l->single ? kir_const_int(out, u32(), kir_items(out)) : kir_clone_inst(&l->c, i); break;
  case KIR_sg_add: *map = reduce(l, i, KIR_add); break;
  case KIR_sg_max: *map = reduce(l, i, KIR_max); break;
  case KIR_sg_min: *map = reduce(l, i, KIR_min); break;
  case KIR_sg_shuffle: *map = l->single ? l->c.map[kir_arg(l->c.in, i, 0)] : kir_clone_inst(&l->c, i); break;
  case KIR_sg_barrier:
    if (!l->single) kir_clone_inst(&l->c, i);
    break;
  case KIR_async_copy:
    if (l->caps->async_copy) kir_clone_inst(&l->c, i);
    else copy_now(l, i);
    break;
  case KIR_async_commit:
  case KIR_async_wait:
    if (l->caps->async_copy) kir_clone_inst(&l->c, i);
    break;
  case KIR_prefetch:
    if (l->caps->prefetch) kir_clone_inst(&l->c, i);
    break;
  default: clone_hinted(l, i); break;
  }
}

bool kir_has_group_work(const kir_kernel *k, const kir_caps *caps) {
  bool found = k->sub != 0;
  for (uint32_t m = 0; m < k->memories.count; m++) found |= !caps->texel && (k->memories.at[m].flags & KIR_MEM_TEXEL);
  for (uint32_t i = 1; i < k->insts.count && !found; i++) {
    const kir_inst *in = kir_at(k, i);
    switch (in->op) {
    case KIR_sg_id:
    case KIR_sg_lane:
    case KIR_sg_count:
    case KIR_sg_add:
    case KIR_sg_max:
    case KIR_sg_min:
    case KIR_sg_shuffle:
    case KIR_sg_barrier:
    case KIR_async_copy:
    case KIR_async_commit:
    case KIR_async_wait: return true;
    case KIR_prefetch: found = !caps->prefetch; break;
    case KIR_store: found = !caps->stream && (in->flags & KIR_IS_STREAM); break;
    default: break;
    }
  }
  return found;
}

snt_result kir_pass_group(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  lowering l = {.caps = caps, .size = in->sub && in->sub != ~0u ? in->sub : caps->subgroup_size};
  SNT_TRY(kir_clone_begin(&l.c, in, out));
  const bool whole = l.size && kir_items(in) % l.size == 0; /* every lane takes part */
  l.tree = !caps->subgroups && in->sub && in->sub == kir_items(in) && in->items[0] == in->sub;
  l.single = !caps->subgroups || (!caps->subgroup_arithmetic && !whole);
  if (l.single) out->sub = 0;
  for (uint32_t m = 0; m < out->memories.count; m++)
    if (!caps->texel) out->memories.at[m].flags &= (uint16_t)~KIR_MEM_TEXEL;
  for (uint32_t i = 1; i < in->insts.count; i++) visit(&l, i);
  return kir_pass_end(out, "group", diag);
}
