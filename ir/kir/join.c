/* The body of one kernel appended to another: what makes two launches one. In: the kernel, and what stands for its memories, scalars and
   group number in the new one. Out: the instructions, in order, with every operand and region renumbered; items that a larger workgroup has
   beside pass it by, and those of a smaller one go through it several times. */
#include "ir/kir_pass_private.h"

static void renumber(kir_inst *made, const kir_site *site, const uint32_t *map) {
  if (kir_ops[made->op].flags & KIR_MEM) made->index = site->memories[made->index];
  if (made->op == KIR_scalar) made->index = site->scalars[made->index];
  if (made->op == KIR_async_copy) {
    made->index = site->memories[made->index];
    made->index2 = site->memories[made->index2];
  }
  if (made->op == KIR_end || made->op == KIR_else) made->index = map[made->index];
}

/* Rows of the user's own that the new kernel does not have yet. */
static uint32_t own_of(kir_kernel *out, const kir_kernel *in, uint32_t row) {
  return row < in->owns.count ? kir_own_add(out, &in->owns.at[row]) : row;
}

/* What an instruction is where it needs none of its own; 0: it needs one. */
static uint32_t stand_in(const kir_inst *in, const kir_site *site, uint32_t item) {
  if (in->op == KIR_group) return site->group;
  if (in->op == KIR_local && in->index == 0) return item;
  return in->op == KIR_scalar && site->values ? site->values[in->index] : 0;
}

static bool append_all(kir_kernel *out, const kir_kernel *in, const kir_site *site, uint32_t item) {
  uint32_t *map = IR_NEW_ARRAY(out->arena, uint32_t, in->insts.count + 1);
  if (!map) return false;
  for (uint32_t i = 1; i < in->insts.count; i++) {
    kir_inst made = *kir_at(in, i);
    const uint32_t from = made.args;
    map[i] = stand_in(&made, site, item);
    if (map[i]) continue;
    renumber(&made, site, map);
    if (made.op == KIR_own) made.index = own_of(out, in, made.index);
    made.args = out->args.count;
    for (uint32_t n = 0; n < made.arg_count; n++)
      if (!IR_PUSH(out->arena, &out->args, map[in->args.at[from + n]])) return false;
    if (!IR_PUSH(out->arena, &out->insts, made)) return false;
    map[i] = out->insts.count - 1;
  }
  return !out->failed;
}

bool kir_append(kir_kernel *out, const kir_kernel *in, const kir_site *site) {
  const kir_type u32 = kir_t(SNT_U32, 1);
  if (in->items[0] == out->items[0]) return append_all(out, in, site, 0);
  const uint32_t item = kir_id(out, KIR_local, 0), used = kir_const_int(out, u32, in->items[0]);
  if (in->items[0] < out->items[0]) {
    const uint32_t opened = kir_if(out, kir_2(out, KIR_lt, item, used));
    const bool good = append_all(out, in, site, 0);
    kir_if_end(out, opened, 0, NULL, NULL);
    return good;
  }
  const uint32_t loop = kir_loop(out, item, used, kir_const_int(out, u32, out->items[0]), 0, NULL, NULL, KIR_LOOP_ROLLED, 0);
  const bool good = append_all(out, in, site, loop);
  kir_loop_end(out, loop, 0, NULL, NULL);
  return good;
}

bool kir_waits(const kir_kernel *k) {
  for (uint32_t i = 1; i < k->insts.count; i++) {
    const uint16_t op = kir_at(k, i)->op;
    if (op == KIR_barrier || (op >= KIR_sg_add && op <= KIR_sg_barrier)) return true;
  }
  return false;
}

/* Items of a larger workgroup may sit idle unless the others wait for them. */
bool kir_fits_items(const kir_kernel *k, const kir_kernel *into) {
  if (k->items[1] != into->items[1] || k->items[2] != into->items[2]) return false;
  return k->items[0] == into->items[0] || (k->items[0] < into->items[0] && k->items[1] == 1 && k->items[2] == 1 && !kir_waits(k));
}

bool kir_is_written(const kir_kernel *k) {
  for (uint32_t i = 1; k->owns.count && i < k->insts.count; i++)
    if (kir_at(k, i)->op == KIR_inline) return true;
  return false;
}

uint32_t kir_local_bytes(const kir_kernel *k) {
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < k->memories.count; i++) {
    const kir_memory *m = &k->memories.at[i];
    if (m->space != KIR_LOCAL || m->overlay) continue; /* schedules lay nothing over what is smaller */
    uint64_t cells = 1;
    for (uint32_t d = 0; d < m->rank; d++) cells *= m->dims[d];
    bytes += (uint32_t)cells * ir_dtypes[m->type.base].bytes * m->type.lanes;
  }
  return bytes;
}
