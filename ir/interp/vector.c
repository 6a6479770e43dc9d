/* Lanes and subgroups. A value is [lane][item], so a lane is one block of items; reductions round to the type after every step. */
#include "ir/interp/private.h"

static size_t lane_bytes(const kvm *vm, const kvm_step *s) { return (size_t)vm->items * kvm_kind_bytes((kvm_kind)s->kind); }
static uint8_t *lane_of(const kvm *vm, const kvm_step *s, void *values, uint32_t lane) {
  return (uint8_t *)values + lane_bytes(vm, s) * lane;
}
static const uint8_t *lane_in(const kvm *vm, const kvm_step *s, const void *values, uint32_t lane) {
  return (const uint8_t *)values + lane_bytes(vm, s) * lane;
}

static bool run_splat(kvm *vm, const kvm_step *s) {
  if (vm->items == 1 && kvm_kind_bytes((kvm_kind)s->kind) == 4) {
    uint32_t *to = s->dst;
    const uint32_t word = *(const uint32_t *)s->a;
    for (uint32_t lane = 0; lane < s->lanes; lane++) to[lane] = word;
    return true;
  }
  for (uint32_t lane = 0; lane < s->lanes; lane++) memcpy(lane_of(vm, s, s->dst, lane), s->a, lane_bytes(vm, s));
  return true;
}

static bool run_iota(kvm *vm, const kvm_step *s) {
  for (uint32_t lane = 0; lane < s->lanes; lane++)
    for (uint32_t i = 0; i < vm->items; i++) kvm_put(s->dst, (kvm_kind)s->kind, s->base, lane * vm->items + i, lane);
  return true;
}

static bool run_vec(kvm *vm, const kvm_step *s) {
  const uint32_t *args = vm->k->args.at + kir_at(vm->k, s->inst)->args;
  for (uint32_t lane = 0; lane < s->lanes; lane++) memcpy(lane_of(vm, s, s->dst, lane), vm->values[args[lane]], lane_bytes(vm, s));
  return true;
}

static bool run_extract(kvm *vm, const kvm_step *s) {
  const uint32_t *lanes = s->b, bytes = kvm_kind_bytes((kvm_kind)s->kind);
  for (uint32_t i = 0; i < vm->items; i++) {
    const bool fits = lanes[i] < s->from;
    if (!fits && vm->mask[i]) return kvm_fail(vm, s, i, SNT_E_ARG, "lane %u of %u", lanes[i], s->from);
    memcpy((uint8_t *)s->dst + (size_t)i * bytes, lane_in(vm, s, s->a, fits ? lanes[i] : 0) + (size_t)i * bytes, bytes);
  }
  return true;
}

static bool run_insert(kvm *vm, const kvm_step *s) {
  const uint32_t lane = *(const uint32_t *)s->b;
  memcpy(s->dst, s->a, lane_bytes(vm, s) * s->lanes);
  memcpy(lane_of(vm, s, s->dst, lane), s->c, lane_bytes(vm, s));
  return true;
}

static bool run_permute(kvm *vm, const kvm_step *s) {
  const uint32_t *numbers = s->b, bytes = kvm_kind_bytes((kvm_kind)s->kind);
  for (uint32_t lane = 0; lane < s->lanes; lane++)
    for (uint32_t i = 0; i < vm->items; i++) {
      const uint32_t from = numbers[lane * vm->items + i] % s->lanes;
      memcpy(lane_of(vm, s, s->dst, lane) + (size_t)i * bytes, lane_in(vm, s, s->a, from) + (size_t)i * bytes, bytes);
    }
  return true;
}

static bool run_shuffle(kvm *vm, const kvm_step *s) {
  const uint32_t *args = vm->k->args.at + kir_at(vm->k, s->inst)->args;
  for (uint32_t lane = 0; lane < s->lanes; lane++) {
    const uint32_t from = (uint32_t)kir_at(vm->k, args[2 + lane])->imm.i;
    memcpy(lane_of(vm, s, s->dst, lane), from < s->from ? lane_in(vm, s, s->a, from) : lane_in(vm, s, s->b, from - s->from),
           lane_bytes(vm, s));
  }
  return true;
}

static bool run_select(kvm *vm, const kvm_step *s) {
  const uint32_t *condition = s->a, bytes = kvm_kind_bytes((kvm_kind)s->kind);
  const uint8_t *x = s->b, *y = s->c;
  uint8_t *to = s->dst;
  for (uint32_t i = 0; i < s->n; i++) {
    const uint32_t which = s->from == 1 && s->lanes > 1 ? i % vm->items : i;
    const size_t at = (size_t)i * bytes;
    if (bytes == 4) memcpy(to + at, (condition[which] ? x : y) + at, 4);
    else memcpy(to + at, (condition[which] ? x : y) + at, 8);
  }
  return true;
}

/* ---- reductions ---- */
static double join_floats(uint32_t op, uint32_t base, double x, double y) {
  switch (op) {
  case KIR_hred_max:
  case KIR_sg_max: return x > y || x != x ? x : y;
  case KIR_hred_min:
  case KIR_sg_min: return x < y || x != x ? x : y;
  case KIR_hred_mul: return base == SNT_F64 ? x * y : kir_round_float(base, x * y, KIR_ROUND_RNE);
  default: return base == SNT_F64 ? x + y : kir_round_float(base, x + y, KIR_ROUND_RNE);
  }
}

static int64_t join_ints(uint32_t op, uint32_t base, int64_t x, int64_t y) {
  const bool less = base == SNT_U64 ? (uint64_t)x < (uint64_t)y : x < y;
  switch (op) {
  case KIR_hred_max:
  case KIR_sg_max: return less ? y : x;
  case KIR_hred_min:
  case KIR_sg_min: return less ? x : y;
  case KIR_hred_mul: return kir_wrap_int(base, (int64_t)((uint64_t)x * (uint64_t)y));
  default: return kir_wrap_int(base, (int64_t)((uint64_t)x + (uint64_t)y));
  }
}

typedef union number {
  double f;
  int64_t i;
} number;
enum { MAX_JOINED = 4096 };

static number get_number(const kvm_step *s, uint32_t at) {
  number v;
  if (s->kind <= KVM_F64) v.f = kvm_get(s->a, (kvm_kind)s->kind, at);
  else v.i = kvm_get_int(s->a, (kvm_kind)s->kind, at);
  return v;
}

static void put_number(const kvm_step *s, uint32_t at, number v) {
  switch (s->kind) {
  case KVM_F32: ((float *)s->dst)[at] = (float)v.f; break;
  case KVM_F64: ((double *)s->dst)[at] = v.f; break;
  case KVM_I32:
  case KVM_U32: ((uint32_t *)s->dst)[at] = (uint32_t)v.i; break;
  default: ((int64_t *)s->dst)[at] = v.i; break;
  }
}

/* The tree of pairs: element i with element i + half, until one is left. */
static number join_tree(const kvm *vm, const kvm_step *s, number *v, uint32_t count) {
  const uint32_t op = kir_at(vm->k, s->inst)->op;
  while (count > 1) {
    const uint32_t half = (count + 1) / 2;
    for (uint32_t i = 0; i + half < count; i++) {
      if (s->kind <= KVM_F64) v[i].f = join_floats(op, s->base, v[i].f, v[i + half].f);
      else v[i].i = join_ints(op, s->base, v[i].i, v[i + half].i);
    }
    count = half;
  }
  return v[0];
}

static bool run_reduce(kvm *vm, const kvm_step *s) {
  for (uint32_t i = 0; i < vm->items; i++) {
    number v[16];
    for (uint32_t lane = 0; lane < s->from; lane++) v[lane] = get_number(s, lane * vm->items + i);
    put_number(s, i, join_tree(vm, s, v, s->from));
  }
  return true;
}

static bool run_subgroup(kvm *vm, const kvm_step *s) {
  for (uint32_t n = 0; n < vm->subgroups; n++) {
    bool active;
    if (!kvm_subgroup_together(vm, s, n, &active)) return false;
    const uint32_t first = n * vm->subgroup, end = first + vm->subgroup < vm->items ? first + vm->subgroup : vm->items;
    for (uint32_t lane = 0; lane < s->lanes && active; lane++) {
      number v[MAX_JOINED];
      for (uint32_t i = first; i < end; i++) v[i - first] = get_number(s, lane * vm->items + i);
      const number joined = join_tree(vm, s, v, end - first);
      for (uint32_t i = first; i < end; i++) put_number(s, lane * vm->items + i, joined);
    }
  }
  return true;
}

static bool run_subgroup_shuffle(kvm *vm, const kvm_step *s) {
  const uint32_t *lanes = s->b, bytes = kvm_kind_bytes((kvm_kind)s->kind);
  for (uint32_t i = 0; i < vm->items; i++) {
    const uint32_t first = i / vm->subgroup * vm->subgroup, from = first + lanes[i];
    bool active;
    if (i == first && !kvm_subgroup_together(vm, s, i / vm->subgroup, &active)) return false;
    if (!vm->mask[i]) continue;
    if (lanes[i] >= vm->subgroup || from >= vm->items) return kvm_fail(vm, s, i, SNT_E_ARG, "lane %u is outside the subgroup", lanes[i]);
    for (uint32_t lane = 0; lane < s->lanes; lane++)
      memcpy(lane_of(vm, s, s->dst, lane) + (size_t)i * bytes, lane_in(vm, s, s->a, lane) + (size_t)from * bytes, bytes);
  }
  return true;
}

kvm_fn kvm_vector(uint32_t op) {
  switch (op) {
  case KIR_splat: return run_splat;
  case KIR_iota: return run_iota;
  case KIR_vec: return run_vec;
  case KIR_extract: return run_extract;
  case KIR_insert: return run_insert;
  case KIR_permute: return run_permute;
  case KIR_shuffle: return run_shuffle;
  case KIR_select: return run_select;
  case KIR_hred_add:
  case KIR_hred_max:
  case KIR_hred_min:
  case KIR_hred_mul: return run_reduce;
  default: return NULL;
  }
}

kvm_fn kvm_subgroup_fn(uint32_t op) {
  switch (op) {
  case KIR_sg_add:
  case KIR_sg_max:
  case KIR_sg_min: return run_subgroup;
  case KIR_sg_shuffle: return run_subgroup_shuffle;
  case KIR_sg_barrier: return kvm_run_subgroup_barrier;
  case KIR_barrier: return kvm_run_barrier;
  default: return NULL;
  }
}
