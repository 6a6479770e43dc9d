/* Places every value of a kernel: ids and literals in shared arrays, the rest in slots that are reused once nothing reads them.
   A value read inside a loop that began after it lives to that loop's end; a result shares the slot of its loop's carry. */
#include "ir/interp/private.h"

static const uint64_t max_value_bytes = (uint64_t)1 << 30;
enum { MAX_SIZES = 64 };

typedef struct free_slot {
  uint64_t at;
  uint32_t next;
} free_slot; /* next: 1 + index, 0 ends */
typedef struct placer {
  kvm *vm;
  const kir_kernel *k;
  uint32_t *last;               /* last instruction that needs the value */
  uint32_t *owner;              /* the value whose slot this one is (carry of a result) */
  uint32_t *dying, *dying_next; /* values by last use: 1 + value */
  uint64_t *offset;             /* 1 + offset of the slot */
  uint64_t sizes[MAX_SIZES], top;
  uint32_t lists[MAX_SIZES], size_count;
  IR_VEC(free_slot) slots;
} placer;

static uint64_t slot_bytes(const placer *p, uint32_t value) {
  const kir_type t = kir_type_of(p->k, value);
  const uint64_t elements = t.frag ? (uint64_t)p->vm->subgroups * kvm_fragment_elements(p->vm, t.frag) : (uint64_t)p->vm->items * t.lanes;
  return (elements * kvm_kind_bytes(kvm_kind_of(t.base)) + 63) / 64 * 64;
}

/* ---- live ranges ---- */
static uint32_t loop_of_result(const kir_kernel *k, uint32_t i) { return kir_at(k, i - 1 - kir_at(k, i)->index)->index; }

/* Where a use at `user` keeps the value to: the end of the outermost loop around it that began after the value. */
static uint32_t use_point(const placer *p, uint32_t value, uint32_t user) {
  uint32_t point = user;
  if (kir_at(p->k, user)->op == KIR_yield && kir_at(p->k, p->vm->regions.parent[user])->op == KIR_loop) point = user + 1;
  if (kir_at(p->k, user)->op == KIR_loop) point = user + kir_at(p->k, user)->arg_count - 3u; /* the carries are set one after the other */
  for (uint32_t scope = p->vm->regions.parent[user]; scope; scope = p->vm->regions.parent[scope])
    if (kir_at(p->k, scope)->op == KIR_loop && scope > value) point = p->vm->regions.close[scope];
  return point;
}

static void extend(placer *p, uint32_t value, uint32_t point) {
  const uint32_t owner = p->owner[value];
  if (p->last[owner] < point) p->last[owner] = point;
}

static void find_owners(placer *p) {
  for (uint32_t i = 1; i < p->k->insts.count; i++) {
    p->owner[i] = i;
    p->last[i] = i;
    const kir_inst *in = kir_at(p->k, i);
    if (in->op == KIR_result && kir_at(p->k, loop_of_result(p->k, i))->op == KIR_loop)
      p->owner[i] = loop_of_result(p->k, i) + 1 + in->index;
    if (in->op == KIR_loop) p->last[i] = p->vm->regions.close[i];
    if (in->op == KIR_carry) p->last[i] = p->vm->regions.close[i - 1 - in->index];
  }
}

static void find_ranges(placer *p) {
  find_owners(p);
  for (uint32_t i = 1; i < p->k->insts.count; i++)
    for (uint32_t n = 0; n < kir_at(p->k, i)->arg_count; n++) {
      const uint32_t value = kir_arg(p->k, i, n);
      /* a result used in a loop that began after its own loop ended: the carry is older than both */
      extend(p, value, use_point(p, value, i));
    }
  for (uint32_t i = 1; i < p->k->insts.count; i++)
    if (p->owner[i] == i) p->dying_next[i] = p->dying[p->last[i]], p->dying[p->last[i]] = i;
}

/* ---- slots ---- */
static uint32_t size_class(placer *p, uint64_t bytes) {
  for (uint32_t i = 0; i < p->size_count; i++)
    if (p->sizes[i] == bytes) return i;
  if (p->size_count < MAX_SIZES) p->sizes[p->size_count++] = bytes;
  return p->size_count - 1;
}

static void take_slot(placer *p, uint32_t value) {
  const uint64_t bytes = slot_bytes(p, value);
  const uint32_t class = size_class(p, bytes), free = p->lists[class];
  if (free) {
    p->lists[class] = p->slots.at[free - 1].next;
    p->offset[value] = 1 + p->slots.at[free - 1].at;
    return;
  }
  p->offset[value] = 1 + p->top;
  p->top += bytes;
}

static bool free_slots(placer *p, uint32_t at) {
  for (uint32_t value = p->dying[at]; value; value = p->dying_next[value]) {
    if (!p->offset[value]) continue;
    const uint32_t class = size_class(p, slot_bytes(p, value));
    const free_slot slot = {p->offset[value] - 1, p->lists[class]};
    if (!IR_PUSH(p->vm->arena, &p->slots, slot)) return false;
    p->lists[class] = p->slots.count;
  }
  return true;
}

/* Ids, literals and scalars have arrays of their own. */
static bool needs_slot(const kir_inst *in) { return !(kir_ops[in->op].flags & KIR_GIVEN) && kir_has_value(in->op); }

/* Results of an if are written inside it, so their slots begin with it. */
static void take_if_results(placer *p, uint32_t opener) {
  uint32_t end = p->vm->regions.close[opener];
  if (kir_at(p->k, end)->op == KIR_else) end = p->vm->regions.close[end];
  for (uint32_t i = end + 1; i < p->k->insts.count && kir_at(p->k, i)->op == KIR_result; i++) take_slot(p, i);
}

static bool place_slots(placer *p) {
  for (uint32_t i = 1; i < p->k->insts.count; i++) {
    const kir_inst *in = kir_at(p->k, i);
    if (in->op == KIR_if) take_if_results(p, i);
    if (needs_slot(in) && in->op != KIR_result) take_slot(p, i);
    if (!free_slots(p, i)) return false;
    if (p->top > max_value_bytes) return false;
  }
  return true;
}

/* ---- literals and scalars: one array a distinct value ---- */
typedef struct pool_entry {
  uint64_t bits;
  uint32_t base, elements, next;
  void *values;
} pool_entry;
enum { POOL_BUCKETS = 256 };
typedef struct pool {
  kvm *vm;
  uint32_t buckets[POOL_BUCKETS];
  IR_VEC(pool_entry) entries;
  uint64_t bytes;
} pool;

static void *fill_entry(pool *pl, uint32_t base, uint64_t bits, uint32_t elements) {
  const kvm_kind kind = kvm_kind_of(base);
  const uint64_t bytes = (uint64_t)elements * kvm_kind_bytes(kind);
  pl->bytes += bytes;
  uint8_t *values = pl->bytes > max_value_bytes ? NULL : ir_arena_take(pl->vm->arena, bytes, 64);
  if (!values) return NULL;
  union {
    uint64_t u64;
    uint32_t u32;
    float f32;
    double f64;
  } v = {.u64 = bits};
  if (kind == KVM_F32) v.f32 = (float)v.f64;
  if (kind == KVM_I32 || kind == KVM_U32) v.u32 = (uint32_t)bits;
  for (uint32_t i = 0; i < elements; i++) memcpy(values + (size_t)i * kvm_kind_bytes(kind), &v, kvm_kind_bytes(kind));
  return values;
}

static void *find_entry(pool *pl, uint32_t base, uint64_t bits, uint32_t elements) {
  const uint32_t bucket = (uint32_t)((bits ^ bits >> 29 ^ bits >> 52 ^ base * 31u ^ elements) % POOL_BUCKETS);
  for (uint32_t i = pl->buckets[bucket]; i; i = pl->entries.at[i - 1].next) {
    const pool_entry *e = &pl->entries.at[i - 1];
    if (e->bits == bits && e->base == base && e->elements == elements) return e->values;
  }
  const pool_entry made = {bits, base, elements, pl->buckets[bucket], fill_entry(pl, base, bits, elements)};
  if (!made.values || !IR_PUSH(pl->vm->arena, &pl->entries, made)) return NULL;
  pl->buckets[bucket] = pl->entries.count;
  return made.values;
}

/* Scalars of the block as the bits a literal would have. */
static uint64_t scalar_bits(const kvm *vm, const kir_scalar *s) {
  const uint8_t *at = (const uint8_t *)vm->info->scalars + s->offset;
  union {
    double f64;
    uint64_t u64;
    int64_t i64;
  } v = {0};
  if (kir_is_float(s->type.base)) {
    v.f64 = kvm_read_element(s->type.base, at);
  } else if (kir_base_bits(s->type.base) == 64) {
    memcpy(&v.u64, at, 8);
  } else {
    uint32_t word;
    memcpy(&word, at, 4);
    v.i64 = kir_wrap_int(s->type.base, (int64_t)word);
  }
  return v.u64;
}

static bool place_shared(kvm *vm) {
  pool *pl = IR_NEW(vm->arena, pool);
  if (!pl) return false;
  pl->vm = vm;
  for (uint32_t i = 1; i < vm->k->insts.count; i++) {
    const kir_inst *in = kir_at(vm->k, i);
    uint64_t bits;
    switch (in->op) {
    case KIR_group: vm->values[i] = vm->group_value; continue;
    case KIR_local: vm->values[i] = vm->ids[in->index]; continue;
    case KIR_sg_id: vm->values[i] = vm->ids[3]; continue;
    case KIR_sg_lane: vm->values[i] = vm->ids[4]; continue;
    case KIR_sg_count: vm->values[i] = vm->ids[5]; continue;
    case KIR_const: memcpy(&bits, &in->imm, sizeof bits); break;
    case KIR_scalar: bits = scalar_bits(vm, &vm->k->scalars.at[in->index]); break;
    default: continue;
    }
    vm->values[i] = find_entry(pl, in->type.base, bits, vm->items * in->type.lanes);
    if (!vm->values[i]) return false;
  }
  return true;
}

static bool place(kvm *vm) {
  const uint32_t count = vm->k->insts.count;
  placer p = {.vm = vm, .k = vm->k};
  vm->values = IR_NEW_ARRAY(vm->arena, void *, count);
  p.last = IR_NEW_ARRAY(vm->arena, uint32_t, count);
  p.owner = IR_NEW_ARRAY(vm->arena, uint32_t, count);
  p.dying = IR_NEW_ARRAY(vm->arena, uint32_t, (size_t)count + 1);
  p.dying_next = IR_NEW_ARRAY(vm->arena, uint32_t, count);
  p.offset = IR_NEW_ARRAY(vm->arena, uint64_t, count);
  if (vm->arena->failed) return false;
  find_ranges(&p);
  if (!place_slots(&p)) return false;
  uint8_t *base = ir_arena_take(vm->arena, p.top, 64);
  if (!base) return false;
  for (uint32_t i = 1; i < count; i++)
    if (p.offset[p.owner[i]]) vm->values[i] = base + (p.offset[p.owner[i]] - 1);
  return place_shared(vm);
}

snt_result kvm_prepare_values(kvm *vm) {
  if (place(vm)) return SNT_OK;
  return ir_fail(vm->diag, vm->arena->failed ? SNT_E_HOST_MEM : SNT_E_LIMIT, "interpret", 0, "@%s: its values need too much memory",
                 vm->k->name);
}
