/* Loads, stores, fills and atomics. Every access is located first (bounds, promised alignment), then checked against the shadow, then done. */
#include "ir/interp/private.h"
#include <math.h>

/* ---- stored elements ---- */
double kvm_read_element(uint32_t base, const uint8_t *at) {
  union {
    float f32;
    double f64;
    uint16_t u16;
    int16_t i16;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
  } v = {0};
  switch (base) {
  case SNT_F32: memcpy(&v, at, 4); return (double)v.f32;
  case SNT_F64: memcpy(&v, at, 8); return v.f64;
  case SNT_F16: memcpy(&v, at, 2); return (double)ir_f32_from_f16(v.u16);
  case SNT_BF16: memcpy(&v, at, 2); return (double)ir_f32_from_bf16(v.u16);
  case SNT_I8: return (int8_t)*at;
  case SNT_U8: return *at;
  case SNT_BOOL: return *at != 0;
  case SNT_I16: memcpy(&v, at, 2); return v.i16;
  case SNT_U16: memcpy(&v, at, 2); return v.u16;
  case SNT_I32: memcpy(&v, at, 4); return v.i32;
  case SNT_U32: memcpy(&v, at, 4); return v.u32;
  case SNT_I64: memcpy(&v, at, 8); return (double)v.i64;
  default: memcpy(&v, at, 8); return (double)v.u64;
  }
}

static int64_t saturated(double v) {
  return v >= 0x1p63 ? (v >= 0x1p64 ? -1 : (int64_t)(uint64_t)v) : v <= -0x1p63 ? INT64_MIN : (int64_t)v;
}

/* `v` is a value of the type already. */
void kvm_write_element(uint32_t base, uint8_t *at, double v) {
  const float f32 = (float)v;
  const int64_t i64 = kir_is_float(base) || v != v ? 0 : saturated(v);
  const uint16_t half = base == SNT_F16 ? ir_f16_from_f32(f32) : base == SNT_BF16 ? ir_bf16_from_f32(f32) : 0;
  switch (base) {
  case SNT_F32: memcpy(at, &f32, 4); break;
  case SNT_F64: memcpy(at, &v, 8); break;
  case SNT_F16:
  case SNT_BF16: memcpy(at, &half, 2); break;
  default: ir_dtype_store_int((int32_t)base, at, 0, i64); break;
  }
}

/* ---- where an access goes ---- */
static int64_t index_at(const kvm_access *a, uint32_t n, uint32_t item) {
  const void *values = a->index[n];
  switch (a->index_kind[n]) {
  case KVM_U32: return ((const uint32_t *)values)[item];
  case KVM_I32: return ((const int32_t *)values)[item];
  default: return ((const int64_t *)values)[item];
  }
}

static bool fail_bounds(kvm *vm, const kvm_step *s, const kvm_access *a, uint32_t item, uint32_t n, int64_t index) {
  const kvm_memory *m = a->memory;
  const uint64_t lanes = m->lanes > 1 ? 1 : a->lanes;
  return kvm_fail(vm, s, item, SNT_E_ARG, "%%%s: index %lld (dimension %u, %llu elements %u apart) is out of bounds of %llu", m->decl->name,
                  (long long)index, n, (unsigned long long)lanes, a->stride, (unsigned long long)m->dims[n]);
}

bool kvm_locate(kvm *vm, const kvm_step *s, const kvm_access *a, uint32_t item, uint64_t *at, bool *outside) {
  const kvm_memory *m = a->memory;
  uint64_t cell = 0;
  for (uint32_t n = 0; n < a->count; n++) {
    const int64_t index = index_at(a, n, item);
    const uint64_t reach = n + 1 == m->rank && m->lanes == 1 ? (uint64_t)(a->lanes - 1) * a->stride : 0;
    if (index < 0 || (uint64_t)index >= m->dims[n] || reach >= m->dims[n] - (uint64_t)index) {
      if (outside && ((m->decl->flags & KIR_MEM_OOB_ZERO) || (m->dims[n] == 0 && index >= 0 && index < KIR_EMPTY_ELEMENTS)))
        return *outside = true;
      return fail_bounds(vm, s, a, item, n, index);
    }
    cell = cell * m->dims[n] + (uint64_t)index;
  }
  for (uint32_t n = a->count; n < m->rank; n++) cell *= m->dims[n];
  const uint64_t local = cell * m->lanes * m->bytes;
  if (a->align > m->bytes && local % a->align)
    return kvm_fail(vm, s, item, SNT_E_ARG, "%%%s: byte %llu breaks the promised alignment of %u", m->decl->name, (unsigned long long)local,
                    a->align);
  *at = m->base + m->item_stride * item + local;
  vm->address[item] = *at;
  return true;
}

static bool touch_lanes(kvm *vm, const kvm_step *s, const kvm_access *a, uint64_t at, uint32_t item, kvm_use use) {
  const kvm_memory *m = a->memory;
  if (a->stride == 1) return kvm_touch(vm, s, m, at, m->bytes * a->lanes, item, use);
  for (uint32_t n = 0; n < a->lanes; n++)
    if (!kvm_touch(vm, s, m, at + (uint64_t)n * a->stride * m->bytes, m->bytes, item, use)) return false;
  return true;
}

/* ---- copies between memory and values: element `lane` of `item` lies at [lane * items + item] ---- */
#define EACH_LANE(statement)                                                     \
  for (uint32_t n = 0; n < lanes; n++, from += step, at += items) { statement; } \
  break

/* One item's contiguous elements that are stored as they are computed with. */
static bool is_plain_copy(uint32_t base, uint64_t step, uint32_t items) {
  const uint32_t bytes = kir_base_bits(base) / 8;
  return items == 1 && step == bytes && bytes >= 4;
}

static void get_lanes(uint32_t base, const uint8_t *from, uint64_t step, uint32_t lanes, void *values, uint32_t items, uint32_t item) {
  if (is_plain_copy(base, step, items)) {
    memcpy(values, from, step * lanes);
    return;
  }
  uint32_t at = item, *words = values;
  int32_t *ints = values;
  float *floats = values;
  uint64_t *wide = values;
  int16_t i16;
  uint16_t u16;
  switch (base) {
  case SNT_F32:
  case SNT_I32:
  case SNT_U32: EACH_LANE(memcpy(&words[at], from, 4));
  case SNT_F64:
  case SNT_I64:
  case SNT_U64: EACH_LANE(memcpy(&wide[at], from, 8));
  case SNT_F16: EACH_LANE(memcpy(&u16, from, 2); floats[at] = ir_f32_from_f16(u16));
  case SNT_BF16: EACH_LANE(memcpy(&u16, from, 2); floats[at] = ir_f32_from_bf16(u16));
  case SNT_I8: EACH_LANE(ints[at] = (int8_t)*from);
  case SNT_I16: EACH_LANE(memcpy(&i16, from, 2); ints[at] = i16);
  case SNT_U16: EACH_LANE(memcpy(&u16, from, 2); words[at] = u16);
  case SNT_BOOL: EACH_LANE(words[at] = *from != 0);
  default: EACH_LANE(words[at] = *from);
  }
}

static void put_lanes(uint32_t base, uint8_t *from, uint64_t step, uint32_t lanes, const void *values, uint32_t items, uint32_t item) {
  if (is_plain_copy(base, step, items)) {
    memcpy(from, values, step * lanes);
    return;
  }
  uint32_t at = item;
  const uint32_t *words = values;
  const float *floats = values;
  const uint64_t *wide = values;
  uint16_t u16;
  switch (base) {
  case SNT_F32:
  case SNT_I32:
  case SNT_U32: EACH_LANE(memcpy(from, &words[at], 4));
  case SNT_F64:
  case SNT_I64:
  case SNT_U64: EACH_LANE(memcpy(from, &wide[at], 8));
  case SNT_F16: EACH_LANE(u16 = ir_f16_from_f32(floats[at]); memcpy(from, &u16, 2));
  case SNT_BF16: EACH_LANE(u16 = ir_bf16_from_f32(floats[at]); memcpy(from, &u16, 2));
  case SNT_I16:
  case SNT_U16: EACH_LANE(u16 = (uint16_t)words[at]; memcpy(from, &u16, 2));
  default: EACH_LANE(*from = (uint8_t)words[at]);
  }
}
#undef EACH_LANE

/* Outside a texel buffer there are zeros. What a buffer of no elements begins with, which a select leaves out, is NaN, or all bits: whoever uses
   it shows. */
static void read_outside(const kvm_step *s, const kvm_access *a, uint32_t items, uint32_t item) {
  uint8_t made[16 * 8];
  memset(made, a->memory->decl->flags & KIR_MEM_OOB_ZERO ? 0 : 0xFF, sizeof made);
  get_lanes(s->base, made, 0, a->lanes, s->dst, items, item);
}

/* ---- load, store ---- */
static bool check_uniform(kvm *vm, const kvm_step *s) {
  uint64_t first = UINT64_MAX;
  for (uint32_t i = 0; i < vm->items; i++) {
    if (!vm->mask[i]) continue;
    if (first == UINT64_MAX) first = vm->address[i];
    if (vm->address[i] != first) return kvm_fail(vm, s, i, SNT_E_ARG, "the load is promised uniform, but items read different places");
  }
  return true;
}

bool kvm_run_load(kvm *vm, const kvm_step *s) {
  const kvm_access *a = s->state;
  const kvm_memory *m = a->memory;
  for (uint32_t i = 0; i < vm->items; i++) {
    uint64_t at = 0;
    bool outside = false;
    if (!vm->mask[i]) continue;
    if (!kvm_locate(vm, s, a, i, &at, &outside)) return false;
    if (outside) {
      vm->address[i] = m->base;
      read_outside(s, a, vm->items, i);
      continue;
    }
    if (!touch_lanes(vm, s, a, at, i, KVM_READ)) return false;
    get_lanes(s->base, m->region->data + at, (uint64_t)a->stride * m->bytes, a->lanes, s->dst, vm->items, i);
  }
  kvm_count_access(vm, a, false);
  return !(s->mode & KIR_IS_UNIFORM) || check_uniform(vm, s);
}

/* The same value: the same bits, or two NaN, whose bits no processor promises (the order of an operation's operands decides their sign). */
static bool is_same_element(uint32_t base, const void *made, const void *there) {
  if (!memcmp(made, there, ir_dtypes[base].bytes)) return true;
  return ir_dtypes[base].is_float && isnan(ir_dtype_load((int32_t)base, made, 0)) && isnan(ir_dtype_load((int32_t)base, there, 0));
}

/* A store of what others may store too: each element that lies there already is no race with who wrote it. */
static bool touch_same(kvm *vm, const kvm_step *s, const kvm_access *a, uint64_t at, uint32_t item) {
  const kvm_memory *m = a->memory;
  uint8_t made[16 * 8];
  const bool known = (size_t)a->lanes * m->bytes <= sizeof made;
  if (known) put_lanes(s->base, made, m->bytes, a->lanes, s->a, vm->items, item);
  for (uint32_t n = 0; n < a->lanes; n++) {
    const uint64_t element = at + (uint64_t)n * a->stride * m->bytes;
    const bool there = known && is_same_element(s->base, made + (size_t)n * m->bytes, m->region->data + element);
    if (!kvm_touch(vm, s, m, element, m->bytes, item, there ? KVM_SAME : KVM_WRITE)) return false;
  }
  return true;
}

bool kvm_run_store(kvm *vm, const kvm_step *s) {
  const kvm_access *a = s->state;
  const kvm_memory *m = a->memory;
  for (uint32_t i = 0; i < vm->items; i++) {
    uint64_t at = 0;
    if (!vm->mask[i]) continue;
    if (!kvm_locate(vm, s, a, i, &at, NULL)) return false;
    if (!(s->mode & KIR_IS_SAME ? touch_same(vm, s, a, at, i) : touch_lanes(vm, s, a, at, i, KVM_WRITE))) return false;
    put_lanes(s->base, m->region->data + at, (uint64_t)a->stride * m->bytes, a->lanes, s->a, vm->items, i);
  }
  kvm_count_access(vm, a, true);
  return true;
}

/* Every element under the leading indices. */
bool kvm_run_fill(kvm *vm, const kvm_step *s) {
  const kvm_access *a = s->state;
  const kvm_memory *m = a->memory;
  uint64_t count = 1;
  for (uint32_t n = a->count; n < m->rank; n++) count *= m->dims[n];
  if (vm->budget < count) return kvm_fail(vm, s, KVM_NO_ITEM, SNT_E_LIMIT, "the step limit is reached");
  vm->budget -= count;
  for (uint32_t i = 0; i < vm->items; i++) {
    uint64_t at = 0;
    if (!vm->mask[i]) continue;
    if (!kvm_locate(vm, s, a, i, &at, NULL)) return false;
    for (uint64_t n = 0; n < count; n++, at += (uint64_t)m->lanes * m->bytes) {
      if (!kvm_touch(vm, s, m, at, m->lanes * m->bytes, i, KVM_WRITE)) return false;
      put_lanes(s->base, m->region->data + at, m->bytes, m->lanes, s->a, vm->items, i);
    }
  }
  vm->stats.stores += vm->active * count;
  return true;
}

/* ---- atomics: one item after the other ---- */
static double combine_float(uint32_t op, double old, double v) {
  switch (op) {
  case KIR_atomic_add: return (double)((float)old + (float)v);
  case KIR_atomic_min: return old < v || old != old ? old : v;
  default: return old > v || old != old ? old : v;
  }
}

static int64_t combine_int(uint32_t op, bool is_signed, int64_t old, int64_t v, int64_t replacement) {
  const bool less = is_signed ? v < old : (uint64_t)v < (uint64_t)old;
  switch (op) {
  case KIR_atomic_add: return (int64_t)((uint64_t)old + (uint64_t)v);
  case KIR_atomic_min: return less ? v : old;
  case KIR_atomic_max: return less ? old : v;
  case KIR_atomic_or: return old | v;
  case KIR_atomic_and: return old & v;
  default: return old == v ? replacement : old;
  }
}

static void update(const kvm_step *s, uint32_t op, uint8_t *at, uint32_t item) {
  if (s->base == SNT_F32) {
    const double old = kvm_read_element(s->base, at);
    kvm_write_element(s->base, at, combine_float(op, old, kvm_get(s->a, KVM_F32, item)));
    ((float *)s->dst)[item] = (float)old;
    return;
  }
  const kvm_kind kind = (kvm_kind)s->kind;
  int64_t old = 0;
  get_lanes(s->base, at, 0, 1, &old, 1, 0);
  old = kvm_get_int(&old, kind, 0);
  const int64_t made = combine_int(op, kir_is_signed(s->base), old, kvm_get_int(s->a, kind, item),
                                   s->b ? kvm_get_int(s->b, kind, item) : 0);
  ir_dtype_store_int((int32_t)s->base, at, 0, made);
  ir_dtype_store_int((int32_t)s->base, s->dst, item, old);
}

bool kvm_run_atomic(kvm *vm, const kvm_step *s) {
  const kvm_access *a = s->state;
  const uint32_t op = kir_at(vm->k, s->inst)->op;
  for (uint32_t i = 0; i < vm->items; i++) {
    uint64_t at = 0;
    if (!vm->mask[i]) continue;
    if (!kvm_locate(vm, s, a, i, &at, NULL) || !kvm_touch(vm, s, a->memory, at, a->memory->bytes, i, KVM_UPDATE)) return false;
    update(s, op, a->memory->region->data + at, i);
  }
  kvm_count_access(vm, a, false);
  vm->stats.stores += vm->active;
  return true;
}
