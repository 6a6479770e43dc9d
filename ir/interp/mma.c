/* Matrix fragments and asynchronous copies. A fragment is one row-major matrix a subgroup; its shape comes from needs=mma.A.C.MxNxK.
   A copy happens at the wait that finishes its set; until then its target is marked, and whoever touches it is told. */
#include "ir/interp/private.h"
#include "ir/kir_pass.h"

enum { MAX_COPIES = 1 << 20, MAX_SIDE = UINT8_MAX, FRAGMENT_ALIGN = 16 };

/* ---- shape ---- */
static bool read_shape(kvm *vm) {
  uint32_t type;
  kir_mma size;
  if (!kir_mma_named(vm->k->needs, &type, &size)) return false;
  vm->frag_m = size.m, vm->frag_n = size.n, vm->frag_k = size.k;
  return true;
}

bool kvm_check_fragment(kvm *vm) {
  bool used = false, wide = false;
  for (uint32_t i = 1; i < vm->k->insts.count; i++) {
    const kir_type t = kir_at(vm->k, i)->type;
    if (!kir_has_value(kir_at(vm->k, i)->op) || !t.frag) continue;
    used = true;
    wide |= kir_base_bits(t.base) == 64;
  }
  for (uint32_t i = 0; i < vm->k->memories.count; i++) used |= vm->k->memories.at[i].type.frag != 0;
  if (wide) return kvm_fail(vm, NULL, KVM_NO_ITEM, SNT_E_UNSUPPORTED, "fragments of 64-bit elements");
  if (!used || read_shape(vm)) return true;
  return kvm_fail(vm, NULL, KVM_NO_ITEM, SNT_E_UNSUPPORTED, "fragments are used, but needs= has no mma.A.C.MxNxK");
}

uint32_t kvm_fragment_elements(const kvm *vm, uint32_t frag) {
  return frag == 1 ? vm->frag_m * vm->frag_k : frag == 2 ? vm->frag_k * vm->frag_n : vm->frag_m * vm->frag_n;
}

static uint32_t fragment_columns(const kvm *vm, uint32_t frag) { return frag == 1 ? vm->frag_k : vm->frag_n; }

/* ---- cells of fragment arrays ---- */
bool kvm_run_fragment_cell(kvm *vm, const kvm_step *s) {
  const kvm_access *a = s->state;
  const kvm_memory *m = a->memory;
  const uint32_t op = kir_at(vm->k, s->inst)->op, elements = kvm_fragment_elements(vm, m->decl->type.frag);
  uint64_t count = 1;
  for (uint32_t n = a->count; n < m->rank; n++) count *= m->dims[n];
  for (uint32_t n = 0; n < vm->subgroups; n++) {
    bool active;
    if (!kvm_subgroup_together(vm, s, n, &active)) return false;
    if (!active) continue;
    uint64_t cell = 0;
    for (uint32_t d = 0; d < m->rank; d++) {
      const int64_t index = d < a->count ? kvm_get_int(a->index[d], (kvm_kind)a->index_kind[d], n * vm->subgroup) : 0;
      if (index < 0 || (uint64_t)index >= m->dims[d])
        return kvm_fail(vm, s, n * vm->subgroup, SNT_E_ARG, "%%%s: index %lld is out of bounds of %llu", m->decl->name, (long long)index,
                        (unsigned long long)m->dims[d]);
      cell = cell * m->dims[d] + (uint64_t)index;
    }
    const uint64_t bytes = (uint64_t)elements * 4, at = m->item_stride * n + cell * bytes;
    uint8_t *stored = m->region->data + at, *written = m->region->written + at / 4;
    if (op == KIR_load && !*written)
      return kvm_fail(vm, s, n * vm->subgroup, SNT_E_ARG, "%%%s: read before anything was written there", m->decl->name);
    if (op == KIR_load) memcpy((uint8_t *)s->dst + n * bytes, stored, bytes);
    if (op == KIR_store) memcpy(stored, (const uint8_t *)s->a + n * bytes, bytes);
    for (uint64_t e = 0; op == KIR_fill && e < elements * count; e++)
      memcpy(stored + e * 4, (const uint8_t *)s->a + (size_t)n * vm->subgroup * 4, 4);
    if (op != KIR_load) memset(written, 1, elements * (op == KIR_fill ? count : 1));
  }
  return true;
}

/* ---- fragments and memory ---- */
static void put_element(const kvm_step *s, uint32_t at, double v) {
  if (s->kind == KVM_F32) ((float *)s->dst)[at] = (float)v;
  else ((int32_t *)s->dst)[at] = (int32_t)(int64_t)v;
}

/* Rows (columns) lie as devices fetch them: at whole pieces of 16 bytes, or of what they have. */
static bool check_rows(kvm *vm, const kvm_step *s, uint64_t first, uint32_t row) {
  const kvm_access *a = s->state;
  const kvm_memory *m = a->memory;
  const uint64_t bytes = (uint64_t)row * m->bytes, align = bytes < FRAGMENT_ALIGN ? bytes : FRAGMENT_ALIGN;
  if ((first - m->base) % align == 0 && a->stride * m->bytes % align == 0 && m->decl->align >= align) return true;
  return kvm_fail(vm, s, KVM_NO_ITEM, SNT_E_ARG, "%%%s: rows of the fragment begin at byte %llu and %llu apart, not at multiples of %llu",
                  m->decl->name, (unsigned long long)(first - m->base), (unsigned long long)(a->stride * m->bytes),
                  (unsigned long long)align);
}

static bool move_fragment(kvm *vm, const kvm_step *s, bool load) {
  const kvm_access *a = s->state;
  const kvm_memory *m = a->memory;
  const uint32_t frag = s->mode, elements = kvm_fragment_elements(vm, frag), columns = fragment_columns(vm, frag);
  const uint64_t end = m->dims[0] * (m->rank > 1 ? m->dims[1] : 1) * (m->rank > 2 ? m->dims[2] : 1) * (m->rank > 3 ? m->dims[3] : 1) *
                       m->bytes;
  if (m->decl->type.lanes != 1) return kvm_fail(vm, s, KVM_NO_ITEM, SNT_E_UNSUPPORTED, "a fragment of a memory of vectors");
  const bool by_columns = kir_at(vm->k, s->inst)->flags & KIR_IS_COLUMNS;
  for (uint32_t n = 0; n < vm->subgroups; n++) {
    bool active;
    uint64_t first;
    const uint32_t lead = n * vm->subgroup;
    const uint32_t members = lead + vm->subgroup < vm->items ? vm->subgroup : vm->items - lead;
    if (!kvm_subgroup_together(vm, s, n, &active)) return false;
    if (!active) continue;
    if (!kvm_locate(vm, s, a, lead, &first, NULL) || !check_rows(vm, s, first, by_columns ? elements / columns : columns)) return false;
    for (uint32_t e = 0; e < elements; e++) {
      const uint64_t far = by_columns ? e % columns : e / columns, near = by_columns ? e / columns : e % columns;
      const uint64_t at = first + (far * a->stride + near) * m->bytes;
      const uint32_t item = lead + e % members; /* which item touches what is the device's secret: spread over all */
      if (at + m->bytes > m->base + end)
        return kvm_fail(vm, s, lead, SNT_E_ARG, "%%%s: row %u of the fragment is out of bounds", m->decl->name, e / columns);
      if (!kvm_touch(vm, s, m, at, m->bytes, item, load ? KVM_READ : KVM_WRITE)) return false;
      if (load) put_element(s, n * elements + e, kvm_read_element(m->decl->type.base, m->region->data + at));
      else kvm_write_element(m->decl->type.base, m->region->data + at, kvm_get(s->a, (kvm_kind)s->kind, n * elements + e));
    }
  }
  *(load ? &vm->stats.loads : &vm->stats.stores) += vm->active;
  return true;
}

bool kvm_run_mma_load(kvm *vm, const kvm_step *s) { return move_fragment(vm, s, true); }
bool kvm_run_mma_store(kvm *vm, const kvm_step *s) { return move_fragment(vm, s, false); }

/* ---- the product: k ascending; products of 16-bit floats are exact in f32, sums round to f32 ---- */
static void multiply_floats(const kvm *vm, uint32_t base, const float *a, const float *b, const float *c, float *to) {
  const uint32_t n = vm->frag_n;
  for (uint32_t i = 0; i < vm->frag_m; i++) {
    float sum[MAX_SIDE];
    memcpy(sum, c + (size_t)i * n, n * sizeof *sum);
    for (uint32_t k = 0; k < vm->frag_k; k++)
      for (uint32_t j = 0; j < n; j++) sum[j] += a[i * vm->frag_k + k] * b[k * n + j];
    for (uint32_t j = 0; j < n; j++) to[i * n + j] = base == SNT_F32 ? sum[j] : (float)kir_round_float(base, (double)sum[j], KIR_ROUND_RNE);
  }
}

static void multiply_ints(const kvm *vm, const int32_t *a, const int32_t *b, const int32_t *c, int32_t *to) {
  for (uint32_t i = 0; i < vm->frag_m; i++)
    for (uint32_t j = 0; j < vm->frag_n; j++) {
      uint32_t sum = (uint32_t)c[i * vm->frag_n + j];
      for (uint32_t k = 0; k < vm->frag_k; k++) sum += (uint32_t)a[i * vm->frag_k + k] * (uint32_t)b[k * vm->frag_n + j];
      to[i * vm->frag_n + j] = (int32_t)sum;
    }
}

bool kvm_run_mma(kvm *vm, const kvm_step *s) {
  for (uint32_t n = 0; n < vm->subgroups; n++) {
    bool active;
    if (!kvm_subgroup_together(vm, s, n, &active)) return false;
    const size_t a = (size_t)n * kvm_fragment_elements(vm, 1), b = (size_t)n * kvm_fragment_elements(vm, 2),
                 c = (size_t)n * kvm_fragment_elements(vm, 3);
    if (!active) continue;
    if (s->kind == KVM_F32)
      multiply_floats(vm, s->base, (const float *)s->a + a, (const float *)s->b + b, (const float *)s->c + c, (float *)s->dst + c);
    else multiply_ints(vm, (const int32_t *)s->a + a, (const int32_t *)s->b + b, (const int32_t *)s->c + c, (int32_t *)s->dst + c);
    vm->stats.flops += (uint64_t)2 * vm->frag_m * vm->frag_n * vm->frag_k;
  }
  return true;
}

/* ---- what each lane holds of a fragment (kir_mma_own) ---- */
static uint32_t place_of(const kvm *vm, uint32_t frag, uint32_t item, uint32_t element) {
  const uint32_t lane = item % vm->subgroup, row = lane / 4 + element / 2 % 2 * 8, column = lane % 4 * 2 + element % 2 + element / 4 * 8;
  return item / vm->subgroup * kvm_fragment_elements(vm, frag) + row * fragment_columns(vm, frag) + column;
}

bool kvm_run_mma_get(kvm *vm, const kvm_step *s) {
  const uint32_t element = *(const uint32_t *)s->b;
  for (uint32_t i = 0; i < vm->items; i++)
    if (vm->mask[i]) ((float *)s->dst)[i] = ((const float *)s->a)[place_of(vm, 3, i, element)];
  return true;
}

bool kvm_run_mma_make(kvm *vm, const kvm_step *s) {
  const kir_inst *in = kir_at(vm->k, s->inst);
  for (uint32_t n = 0; n < in->arg_count; n++) {
    const float *from = vm->values[kir_arg(vm->k, s->inst, n)];
    for (uint32_t i = 0; i < vm->items; i++)
      if (vm->mask[i])
        ((float *)s->dst)[place_of(vm, in->type.frag, i, n)] = in->type.base == SNT_F32
                                                                   ? from[i]
                                                                   : (float)kir_round_float(in->type.base, (double)from[i], KIR_ROUND_RNE);
  }
  return true;
}

/* ---- asynchronous copies ---- */
/* Marks the target: `coming`, or nothing any more. */
static void mark_target(const kvm_copy *c, uint8_t mark) {
  const kvm_region *r = c->to->memory->region;
  for (uint64_t g = c->to_at / r->granule; g <= (c->to_at + c->bytes - 1) / r->granule; g++) r->written[g] = mark;
}

bool kvm_run_async_copy(kvm *vm, const kvm_step *s) {
  kvm_access *to = s->state, *from = to + 1;
  for (uint32_t i = 0; i < vm->items; i++) {
    kvm_copy copy = {.inst = s->inst, .item = i, .to = to, .from = from, .bytes = to->lanes * to->memory->bytes};
    if (!vm->mask[i]) continue;
    if (!kvm_locate(vm, s, to, i, &copy.to_at, NULL)) return false;
    if (!kvm_touch(vm, s, to->memory, copy.to_at, copy.bytes, i, KVM_WRITE)) return false;
    mark_target(&copy, KVM_COMING);
    copy.zeros = kvm_get(s->a, (kvm_kind)s->kind, i) == 0;
    if (vm->copies.count >= MAX_COPIES || !IR_PUSH(vm->arena, &vm->copies, copy))
      return kvm_fail(vm, s, i, SNT_E_LIMIT, "too many copies are under way");
  }
  kvm_count_access(vm, to, true);
  const uint32_t first = vm->copies.count - vm->active;
  for (uint32_t n = 0; n < vm->active; n++) {
    kvm_copy *c = &vm->copies.at[first + n];
    bool outside = false;
    if (!kvm_locate(vm, s, from, c->item, &c->from_at, c->zeros ? &outside : NULL)) return false;
    if (outside) vm->address[c->item] = from->memory->base;
  }
  kvm_count_access(vm, from, false);
  return true;
}

bool kvm_run_async_commit(kvm *vm, const kvm_step *s) {
  if (vm->commits.count >= MAX_COPIES || !IR_PUSH(vm->arena, &vm->commits, vm->copies.count))
    return kvm_fail(vm, s, KVM_NO_ITEM, SNT_E_LIMIT, "too many sets of copies");
  return true;
}

static bool finish_copy(kvm *vm, const kvm_copy *c) {
  kvm_step blame = {.inst = c->inst};
  uint8_t *target = c->to->memory->region->data + c->to_at;
  mark_target(c, 0);
  if (!kvm_touch(vm, &blame, c->to->memory, c->to_at, c->bytes, c->item, KVM_WRITE)) return false;
  if (c->zeros) return memset(target, 0, c->bytes) != NULL;
  if (!kvm_touch(vm, &blame, c->from->memory, c->from_at, c->bytes, c->item, KVM_READ)) return false;
  return memcpy(target, c->from->memory->region->data + c->from_at, c->bytes) != NULL;
}

bool kvm_run_async_wait(kvm *vm, const kvm_step *s) {
  const uint64_t open = (uint64_t)kir_at(vm->k, s->inst)->imm.i;
  if (vm->commits.count <= open) return true;
  const uint32_t sets = vm->commits.count - (uint32_t)open, done = vm->commits.at[sets - 1];
  for (uint32_t i = 0; i < done; i++)
    if (!finish_copy(vm, &vm->copies.at[i])) return false;
  if (done) memmove(vm->copies.at, vm->copies.at + done, (vm->copies.count - done) * sizeof *vm->copies.at);
  vm->copies.count -= done;
  vm->commits.count -= sets;
  for (uint32_t i = 0; i < vm->commits.count; i++) vm->commits.at[i] = vm->commits.at[sets + i] - done;
  return true;
}
