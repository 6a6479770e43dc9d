/* Memories of a dispatch: binds buffers and images, makes the arrays the kernel owns, and the shadow that the checks keep beside them. */
#include "ir/interp/private.h"
#include <stdlib.h>

static const uint64_t max_owned_bytes = (uint64_t)256 << 20;

static snt_result wrong(kvm *vm, const kir_memory *m, snt_result result, const char *text) {
  return ir_fail(vm->diag, result, "interpret", 0, "@%s: %s: %s", vm->k->name, m->name, text);
}

static uint32_t stored_bytes(const kvm_memory *m) { return m->decl->type.frag ? 4 : kir_base_bits(m->decl->type.base) / 8; }

/* Race shadow: who wrote and read each granule last. Skipped, as documented, where it would pass the budget. */
static void add_shadow(kvm *vm, kvm_region *r) {
  if ((vm->items == 1 && (r->per_group || vm->info->groups == 1)) || !r->bytes) return;
  const uint64_t count = r->bytes / r->granule + 1, cost = count * (vm->items > 1 ? 20 : 8);
  if (cost > vm->shadow_left) return;
  vm->shadow_left -= cost;
  r->writer = IR_NEW_ARRAY(vm->arena, uint32_t, count);
  r->reader = IR_NEW_ARRAY(vm->arena, uint32_t, count);
  if (vm->items == 1) return;
  r->write_time = IR_NEW_ARRAY(vm->arena, uint32_t, count);
  r->read_time = IR_NEW_ARRAY(vm->arena, uint32_t, count);
  r->write_item = IR_NEW_ARRAY(vm->arena, uint16_t, count);
  r->read_item = IR_NEW_ARRAY(vm->arena, uint16_t, count);
}

/* ---- global memory: buffers that overlap on the host are one region ---- */
static bool overlap(const kvm_region *a, const kvm_region *b) {
  const uintptr_t a0 = (uintptr_t)a->data, b0 = (uintptr_t)b->data;
  return a->bytes && b->bytes && a0 < b0 + b->bytes && b0 < a0 + a->bytes;
}

static void absorb(kvm_region *into, kvm_region *other) {
  const uintptr_t a = (uintptr_t)into->data, b = (uintptr_t)other->data;
  const uintptr_t end = a + into->bytes > b + other->bytes ? a + into->bytes : b + other->bytes;
  if (other->granule < into->granule) into->granule = other->granule;
  if ((a > b ? a - b : b - a) % into->granule) into->granule = 1;
  if (b < a) into->data = other->data;
  into->bytes = end - (uintptr_t)into->data;
}

static snt_result bind_buffer(kvm *vm, kvm_memory *m, kvm_region *r) {
  if (m->decl->slot >= vm->info->buffer_count || !vm->info->buffers) return wrong(vm, m->decl, SNT_E_ARG, "no buffer is bound to its slot");
  const kir_interp_buffer *b = &vm->info->buffers[m->decl->slot];
  if (b->bytes && !b->data) return wrong(vm, m->decl, SNT_E_ARG, "the buffer has no data");
  *r = (kvm_region){.data = b->data, .bytes = b->bytes, .granule = m->bytes};
  return SNT_OK;
}

static int64_t scalar_number(const kvm *vm, uint32_t scalar) {
  const kir_scalar *s = &vm->k->scalars.at[scalar];
  const uint8_t *at = (const uint8_t *)vm->info->scalars + s->offset;
  uint32_t word;
  int64_t wide;
  if (kir_base_bits(s->type.base) == 64) return memcpy(&wide, at, 8), wide;
  memcpy(&word, at, 4);
  return kir_is_signed(s->type.base) ? (int64_t)(int32_t)word : (int64_t)word;
}

/* Extent and offset in cells, checked against what is bound. */
static snt_result size_buffer(kvm *vm, kvm_memory *m) {
  const kir_memory *d = m->decl;
  const kir_interp_buffer *b = &vm->info->buffers[d->slot];
  const uint64_t cell = (uint64_t)m->bytes * m->lanes, room = b->bytes / cell;
  const int64_t offset = d->offset_scalar ? scalar_number(vm, d->offset_scalar - 1) : 0;
  if (offset < 0 || (uint64_t)offset > room) return wrong(vm, d, SNT_E_ARG, "the offset lies outside the buffer");
  uint64_t size = d->dims[0] ? d->dims[0] : room - (uint64_t)offset;
  if (d->size_scalar) {
    const int64_t count = scalar_number(vm, d->size_scalar - 1);
    const uint64_t factor = d->dims[1] ? d->dims[1] : 1;
    if (count < 0 || (count && factor > UINT64_MAX / (uint64_t)count)) return wrong(vm, d, SNT_E_ARG, "its size overflows");
    size = (uint64_t)count * factor;
  }
  if (size > room - (uint64_t)offset) return wrong(vm, d, SNT_E_ARG, "the buffer is smaller than declared");
  if (d->align && (uint64_t)offset * cell % d->align) return wrong(vm, d, SNT_E_ARG, "the offset breaks the promised alignment");
  m->dims[0] = size;
  m->base = (uint64_t)((uintptr_t)b->data - (uintptr_t)m->region->data) + (uint64_t)offset * cell;
  return SNT_OK;
}

/* Merges regions until none overlap; every memory ends up in the region that holds its buffer. */
static void merge_regions(kvm *vm) {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t i = 0; i < vm->k->memories.count; i++)
      for (uint32_t j = 0; j < vm->k->memories.count; j++) {
        kvm_region *a = vm->memories[i].region, *b = vm->memories[j].region;
        if (!a || !b || a == b || vm->memories[i].decl->space != KIR_GLOBAL || vm->memories[j].decl->space != KIR_GLOBAL || !overlap(a, b))
          continue;
        absorb(a, b);
        for (uint32_t n = 0; n < vm->k->memories.count; n++)
          if (vm->memories[n].region == b) vm->memories[n].region = a;
        again = true;
      }
  }
}

static snt_result prepare_globals(kvm *vm) {
  for (uint32_t i = 0; i < vm->k->memories.count; i++) {
    kvm_memory *m = &vm->memories[i];
    if (m->decl->space != KIR_GLOBAL) continue;
    m->region = IR_NEW(vm->arena, kvm_region);
    if (!m->region) return SNT_E_HOST_MEM;
    SNT_TRY(bind_buffer(vm, m, m->region));
  }
  merge_regions(vm);
  for (uint32_t i = 0; i < vm->k->memories.count; i++) {
    kvm_memory *m = &vm->memories[i];
    if (m->decl->space != KIR_GLOBAL) continue;
    SNT_TRY(size_buffer(vm, m));
    if ((m->decl->access & KIR_WRITE) && !m->region->writer) add_shadow(vm, m->region);
  }
  return SNT_OK;
}

/* ---- arrays that the kernel owns ---- */
static uint64_t cells(const kvm_memory *m) {
  uint64_t count = 1;
  for (uint32_t d = 0; d < m->rank; d++) count *= m->dims[d];
  return count;
}

static uint64_t cell_bytes(const kvm *vm, const kvm_memory *m) {
  const uint32_t frag = m->decl->type.frag;
  return (uint64_t)m->bytes * (frag ? kvm_fragment_elements(vm, frag) : m->lanes);
}

static uint64_t max_bytes(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Local memories laid over this one share its bytes. */
static void include_overlays(kvm *vm, uint32_t index, kvm_region *r) {
  for (uint32_t i = 0; i < vm->k->memories.count; i++) {
    const kvm_memory *m = &vm->memories[i];
    if (m->decl->overlay != index + 1) continue;
    r->bytes = max_bytes(r->bytes, cells(m) * cell_bytes(vm, m));
    if (m->bytes < r->granule) r->granule = m->bytes;
  }
}

static snt_result make_region(kvm *vm, uint32_t index) {
  kvm_memory *m = &vm->memories[index];
  const uint64_t copies = m->decl->space != KIR_PRIVATE ? 1 : m->decl->type.frag ? vm->subgroups : vm->items;
  const uint64_t each = cells(m) * cell_bytes(vm, m);
  if (each > max_owned_bytes || each * copies > max_owned_bytes)
    return wrong(vm, m->decl, SNT_E_LIMIT, "the array is too large to interpret");
  kvm_region *r = IR_NEW(vm->arena, kvm_region);
  if (!r) return SNT_E_HOST_MEM;
  *r = (kvm_region){.bytes = each * copies, .granule = m->bytes, .per_group = true, .is_local = m->decl->space == KIR_LOCAL};
  if (m->decl->space == KIR_LOCAL) include_overlays(vm, index, r);
  r->data = ir_arena_take(vm->arena, r->bytes, 64);
  m->item_stride = m->decl->space == KIR_PRIVATE ? each : 0;
  m->region = r;
  if (m->decl->space == KIR_CONSTANT) return r->data ? SNT_OK : SNT_E_HOST_MEM;
  r->written = IR_NEW_ARRAY(vm->arena, uint8_t, r->bytes / r->granule + 1);
  if (m->decl->space != KIR_PRIVATE) add_shadow(vm, r);
  return r->written && IR_PUSH(vm->arena, &vm->owned, r) ? SNT_OK : SNT_E_HOST_MEM;
}

static void fill_constants(kvm_memory *m) {
  for (uint64_t i = 0; i < cells(m); i++) kvm_write_element(m->decl->type.base, m->region->data + i * m->bytes, m->decl->values[i]);
}

static snt_result prepare_owned(kvm *vm) {
  for (uint32_t i = 0; i < vm->k->memories.count; i++) {
    kvm_memory *m = &vm->memories[i];
    if (m->decl->space == KIR_GLOBAL || m->decl->space == KIR_IMAGE || m->decl->overlay) continue;
    SNT_TRY(make_region(vm, i));
    if (m->decl->space == KIR_CONSTANT) fill_constants(m);
  }
  for (uint32_t i = 0; i < vm->k->memories.count; i++)
    if (vm->memories[i].decl->overlay) vm->memories[i].region = vm->memories[vm->memories[i].decl->overlay - 1].region;
  return SNT_OK;
}

/* ---- images: one texel is one granule ---- */
static snt_result prepare_image(kvm *vm, kvm_memory *m) {
  uint32_t texel = 0, channels = 0;
  int32_t dtype = 0;
  m->format = kvm_find_format(m->decl->format, &texel, &channels, &dtype);
  if (!m->format) return wrong(vm, m->decl, SNT_E_UNSUPPORTED, "the interpreter does not know its format");
  if (m->decl->slot >= vm->info->buffer_count || !vm->info->images) return wrong(vm, m->decl, SNT_E_ARG, "no image is bound to its slot");
  const kir_interp_image *image = &vm->info->images[m->decl->slot];
  if (!image->data || !image->width || !image->height || image->width > 1u << 16 || image->height > 1u << 16)
    return wrong(vm, m->decl, SNT_E_ARG, "the image bound to its slot is empty or too large");
  if (image->channels != channels || image->dtype != dtype)
    return wrong(vm, m->decl, SNT_E_ARG, "the image bound to its slot has another layout than its format");
  m->width = image->width, m->height = image->height, m->bytes = texel, m->lanes = channels;
  m->region = IR_NEW(vm->arena, kvm_region);
  if (!m->region) return SNT_E_HOST_MEM;
  *m->region = (kvm_region){.data = image->data, .bytes = (uint64_t)texel * m->width * m->height, .granule = texel};
  if (m->decl->access & KIR_WRITE) add_shadow(vm, m->region);
  return SNT_OK;
}

snt_result kvm_prepare_memories(kvm *vm) {
  const uint32_t count = vm->k->memories.count;
  vm->memories = IR_NEW_ARRAY(vm->arena, kvm_memory, count);
  if (!vm->memories) return SNT_E_HOST_MEM;
  for (uint32_t i = 0; i < count; i++) {
    kvm_memory *m = &vm->memories[i];
    m->decl = &vm->k->memories.at[i];
    if (m->decl->space == KIR_IMAGE) {
      SNT_TRY(prepare_image(vm, m));
      continue;
    }
    m->rank = m->decl->rank;
    m->bytes = stored_bytes(m);
    m->lanes = m->decl->type.lanes;
    memcpy(m->dims, m->decl->dims, sizeof m->dims);
  }
  SNT_TRY(prepare_globals(vm));
  SNT_TRY(prepare_owned(vm));
  return vm->arena->failed ? SNT_E_HOST_MEM : SNT_OK;
}
