/* Uniformity: which values are the same for every item of the group, or of the subgroup. What is read from memory that the kernel writes is so
   where all items read one element at once: nobody may write it then. In: a kernel whose regions nest and whose operands exist. */
#include "ir/kir/verify.h"

static uint8_t join(uint8_t a, uint8_t b) { return a > b ? a : b; }

static uint8_t join_args(const kir_uniformity *u, uint32_t i, uint32_t first) {
  uint8_t level = KIR_UNIFORM_GROUP;
  const kir_inst *in = kir_at(u->k, i);
  for (uint32_t n = first; n < in->arg_count; n++) level = join(level, u->value[kir_arg(u->k, i, n)]);
  return level;
}

/* Differences that a region itself makes: its condition, or bounds that let items leave a loop at different times. */
static uint8_t own_control(const kir_uniformity *u, uint32_t opener) {
  const kir_inst *in = kir_at(u->k, opener);
  if (in->op == KIR_else) opener = in->index;
  uint8_t level = KIR_UNIFORM_GROUP;
  const uint32_t bounds = kir_at(u->k, opener)->op == KIR_loop ? 3 : 1;
  for (uint32_t n = 0; n < bounds; n++) level = join(level, u->value[kir_arg(u->k, opener, n)]);
  return level;
}

static uint8_t read_level(const kir_uniformity *u, uint32_t i) {
  const kir_inst *in = kir_at(u->k, i);
  const kir_memory *m = &u->k->memories.at[in->index];
  const bool constant = m->space == KIR_CONSTANT || ((m->space == KIR_GLOBAL || m->space == KIR_IMAGE) && m->access == KIR_READ);
  if (m->space == KIR_PRIVATE) return KIR_UNIFORM_ITEM;
  return constant ? join_args(u, i, 0) : join(join_args(u, i, 0), u->control[i]);
}

static uint8_t yielded(const kir_uniformity *u, uint32_t closer, uint32_t n) {
  const uint32_t yield = closer - 1;
  const kir_inst *in = kir_at(u->k, yield);
  return in->op == KIR_yield && n < in->arg_count ? u->value[kir_arg(u->k, yield, n)] : KIR_UNIFORM_ITEM;
}

static uint8_t carry_level(const kir_uniformity *u, uint32_t i) {
  const uint32_t n = kir_at(u->k, i)->index, loop = i - 1 - n;
  return join(u->value[kir_arg(u->k, loop, 3 + n)], yielded(u, u->regions.close[loop], n));
}

static uint8_t result_level(const kir_uniformity *u, uint32_t i) {
  const uint32_t n = kir_at(u->k, i)->index, end = i - 1 - n, opener = kir_at(u->k, end)->index;
  uint8_t level = join(own_control(u, opener), yielded(u, end, n));
  if (kir_at(u->k, opener)->op == KIR_if) return join(level, yielded(u, u->regions.close[opener], n));
  return join(level, u->value[kir_arg(u->k, opener, 3 + n)]); /* no trip: the initial value */
}

static uint8_t shuffle_level(const kir_uniformity *u, uint32_t i) {
  if (u->value[kir_arg(u->k, i, 0)] == KIR_UNIFORM_GROUP) return KIR_UNIFORM_GROUP;
  return u->value[kir_arg(u->k, i, 1)] <= KIR_UNIFORM_SUBGROUP ? KIR_UNIFORM_SUBGROUP : KIR_UNIFORM_ITEM;
}

static uint8_t value_level(const kir_uniformity *u, uint32_t i) {
  const kir_inst *in = kir_at(u->k, i);
  switch (in->op) {
  case KIR_local: return u->k->items[in->index < 3 ? in->index : 0] == 1 ? KIR_UNIFORM_GROUP : KIR_UNIFORM_ITEM;
  case KIR_sg_lane: return u->k->sub == 1 ? KIR_UNIFORM_GROUP : KIR_UNIFORM_ITEM;
  case KIR_sg_id: return KIR_UNIFORM_SUBGROUP;
  case KIR_sg_add: return KIR_UNIFORM_SUBGROUP; /* the last subgroup may be smaller */
  case KIR_sg_max:
  case KIR_sg_min: return u->value[kir_arg(u->k, i, 0)] == KIR_UNIFORM_GROUP ? KIR_UNIFORM_GROUP : KIR_UNIFORM_SUBGROUP;
  case KIR_sg_shuffle: return shuffle_level(u, i);
  case KIR_mma_load:
  case KIR_mma_make:
  case KIR_mma: return KIR_UNIFORM_SUBGROUP;
  case KIR_load:
  case KIR_tex_load:
  case KIR_tex_sample: return read_level(u, i);
  case KIR_atomic_add:
  case KIR_atomic_min:
  case KIR_atomic_max:
  case KIR_atomic_or:
  case KIR_atomic_and:
  case KIR_mma_get:
  case KIR_atomic_cas: return KIR_UNIFORM_ITEM;
  case KIR_loop: return own_control(u, i);
  case KIR_carry: return carry_level(u, i);
  case KIR_result: return result_level(u, i);
  default: return join_args(u, i, 0);
  }
}

static void find_control(kir_uniformity *u) {
  for (uint32_t i = 1; i < u->k->insts.count; i++) {
    const uint32_t op = kir_at(u->k, i)->op, parent = u->regions.parent[i];
    const uint8_t outer = parent ? u->control[parent] : KIR_UNIFORM_GROUP;
    u->control[i] = op == KIR_loop || op == KIR_if || op == KIR_else ? join(outer, own_control(u, i)) : outer;
  }
}

bool kir_uniformity_find(const kir_kernel *k, ir_arena *arena, const kir_regions *regions, kir_uniformity *u) {
  *u = (kir_uniformity){.k = k, .regions = *regions};
  u->value = IR_NEW_ARRAY(arena, uint8_t, k->insts.count);
  u->control = IR_NEW_ARRAY(arena, uint8_t, k->insts.count);
  if (!u->value || !u->control) return false;
  if ((uint64_t)k->items[0] * k->items[1] * k->items[2] == 1) return true; /* one item agrees with itself */
  bool changed = true;
  while (changed) { /* levels only rise, so this ends */
    changed = false;
    find_control(u);
    for (uint32_t i = 1; i < k->insts.count; i++) {
      if (!kir_has_value(kir_at(k, i)->op)) continue;
      const uint8_t level = value_level(u, i);
      if (level > u->value[i]) u->value[i] = level, changed = true;
    }
  }
  return true;
}

bool kir_find_uniformity(const kir_kernel *k, ir_arena *arena, uint8_t **out) {
  kir_regions regions;
  kir_uniformity u;
  if (!kir_find_regions(k, arena, &regions) || !kir_uniformity_find(k, arena, &regions, &u)) return false;
  *out = u.value;
  return true;
}
