/* What the backends share. Nothing here knows a driver. */
#include "runtime/rt_common.h"
#include <ctype.h>
#include <stdio.h>

enum { RT_ALIGN = 16 };

void *rt_take(const snt_host_alloc *alloc, size_t size) {
  if (!alloc) alloc = ir_host_malloc();
  void *ptr = alloc->acquire(alloc->user, size, RT_ALIGN, 0);
  if (ptr) memset(ptr, 0, size);
  return ptr;
}

void rt_give(const snt_host_alloc *alloc, void *ptr, size_t size) {
  if (!ptr) return;
  if (!alloc) alloc = ir_host_malloc();
  alloc->release(alloc->user, ptr, size, RT_ALIGN);
}

bool rt_grow(const snt_host_alloc *alloc, void **at, uint32_t *capacity, uint32_t need, size_t item) {
  if (need <= *capacity) return true;
  uint32_t larger = *capacity ? *capacity : 8;
  while (larger < need) {
    if (larger > UINT32_MAX / 2) return false;
    larger *= 2;
  }
  void *fresh = rt_take(alloc, larger * item);
  if (!fresh) return false;
  if (*at) memcpy(fresh, *at, *capacity * item);
  rt_give(alloc, *at, *capacity * item);
  *at = fresh;
  *capacity = larger;
  return true;
}

bool rt_contains(const char *text, const char *part) {
  for (; *text || !*part; text++) {
    size_t i = 0;
    while (part[i] && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i])) i++;
    if (!part[i]) return true;
  }
  return false;
}

void rt_copy_text(char *to, size_t size, const char *from) {
  size_t length = strlen(from);
  if (length >= size) length = size - 1;
  memcpy(to, from, length);
  to[length] = 0;
}

bool rt_index(const char *which, uint32_t *index) {
  uint32_t value = 0;
  for (const char *c = which; *c; c++) {
    if (*c < '0' || *c > '9' || value > 100000) return false;
    value = value * 10 + (uint32_t)(*c - '0');
  }
  *index = value;
  return true;
}

bool rt_take_suffix(char *which, const char *suffix) {
  size_t length = strlen(which), tail = strlen(suffix);
  if (length < tail || strcmp(which + length - tail, suffix) != 0) return false;
  which[length - tail] = 0;
  return true;
}

/* The compiler's own words without its file name and caret lines. */
static const char *telling_line(const char *log, int *length) {
  const char *first = NULL;
  int first_length = 0;
  while (*log) {
    size_t size = strcspn(log, "\r\n"), blank = strspn(log, " \t");
    if (blank < size && !first) first = log, first_length = (int)size;
    for (size_t i = 0; i + 5 <= size; i++) {
      if (strncmp(log + i, "error", 5) == 0) {
        *length = (int)size;
        return log;
      }
    }
    log += size;
    log += strspn(log, "\r\n");
  }
  *length = first_length;
  return first ? first : "";
}

snt_result rt_fail_log(snt_diag *diag, snt_result result, int32_t native, const char *stage, const char *what, const char *log) {
  int length = 0;
  const char *line = telling_line(log ? log : "", &length);
  ir_fail(diag, result, stage, 0, "%s: %.*s", what, length, line);
  if (diag) diag->native = native;
  return result;
}

snt_result rt_fail_native(snt_diag *diag, snt_result result, int32_t native, const char *stage, const char *what) {
  ir_fail(diag, result, stage, 0, "%s failed: %d", what, (int)native);
  if (diag) diag->native = native;
  return result;
}

const char *rt_find_all(void *(*find)(void *user, const char *name), void *user, const char *names, void *table) {
  for (char *at = table; *names; names = rt_next_name(names), at += sizeof(void *)) {
    void *address = find(user, names);
    if (!address) return names;
    memcpy(at, &address, sizeof address); /* ISO C has no cast from object to function pointer */
  }
  return NULL;
}

const char *rt_profile_of(const char *device, const char *otherwise) {
  static const char known[][2][8] = {{"H100", "h100"}, {"H200", "h200"}};
  for (uint32_t i = 0; i < IR_COUNT(known); i++)
    if (rt_contains(device, known[i][0])) return known[i][1];
  return otherwise;
}

snt_result rt_base_profile(cost_profile *out, const char *name, snt_diag *diag) {
  const cost_profile *found = cost_profile_builtin(name, out);
  if (!found) return ir_fail(diag, SNT_E_INTERNAL, "open", 0, "there is no built-in profile %s", name);
  if (found != out) *out = *found;
  return SNT_OK;
}

/* ---- dispatches ---- */

snt_result rt_dispatch_shape(const rt_device *device, const rt_dispatch *dispatch, rt_shape *out, snt_diag *diag) {
  if (dispatch->block_bytes % 4 != 0 || dispatch->block_bytes > 4 * (RT_MAX_BLOCK_WORDS - 1)) {
    return ir_fail(diag, SNT_E_LIMIT, "submit", 0, "a scalar block of %u bytes", dispatch->block_bytes);
  }
  const uint64_t limit[3] = {device->profile.max_grid[0], device->profile.max_grid[1], device->profile.max_grid[2]};
  plan_fold_grid(dispatch->groups, limit, out->grid);
  uint64_t launched = (uint64_t)out->grid[0] * out->grid[1];
  bool fits = dispatch->groups <= UINT32_MAX && launched <= UINT32_MAX && launched * out->grid[2] >= dispatch->groups;
  for (int axis = 0; axis < 3; axis++) fits = fits && out->grid[axis] <= limit[axis];
  if (!fits) return ir_fail(diag, SNT_E_LIMIT, "submit", 0, "%llu groups are too many", (unsigned long long)dispatch->groups);
  if (dispatch->block_bytes) memcpy(out->words, dispatch->block, dispatch->block_bytes);
  out->words[dispatch->block_bytes / 4] = (uint32_t)dispatch->groups;
  out->word_count = dispatch->block_bytes / 4 + 1;
  return SNT_OK;
}

snt_result rt_copy_timings(const uint64_t *from, uint32_t have, uint32_t *count, uint64_t *ns) {
  uint32_t room = *count, copied = room < have ? room : have;
  *count = have;
  if (!ns) return SNT_OK;
  if (copied) memcpy(ns, from, copied * sizeof *ns);
  return copied < have ? SNT_INCOMPLETE : SNT_OK;
}

snt_result rt_check_range(const rt_buffer *buffer, uint64_t offset, uint64_t bytes, snt_diag *diag) {
  if (offset <= buffer->bytes && bytes <= buffer->bytes - offset) return SNT_OK;
  return ir_fail(diag, SNT_E_ARG, "buffer", 0, "bytes %llu + %llu of a buffer of %llu", (unsigned long long)offset,
                 (unsigned long long)bytes, (unsigned long long)buffer->bytes);
}

snt_result rt_check_dispatch(const rt_device *device, const rt_dispatch *dispatch, uint32_t binding_count, snt_diag *diag) {
  if (dispatch->binding_count != binding_count) {
    return ir_fail(diag, SNT_E_ARG, "submit", 0, "%u bindings for a kernel with %u", dispatch->binding_count, binding_count);
  }
  uint32_t align = device->profile.offset_align ? device->profile.offset_align : 1;
  for (uint32_t slot = 0; slot < binding_count; slot++) {
    const struct rt_bound *bound = &dispatch->bindings[slot];
    if (!bound->buffer) return ir_fail(diag, SNT_E_ARG, "submit", 0, "nothing is bound to slot %u", slot);
    SNT_TRY(rt_check_range(bound->buffer, bound->offset, bound->bytes, diag));
    if (bound->offset % align != 0) {
      return ir_fail(diag, SNT_E_ARG, "submit", 0, "slot %u begins at byte %llu, not a multiple of %u", slot,
                     (unsigned long long)bound->offset, align);
    }
  }
  return SNT_OK;
}

static const struct {
  uint8_t base, lanes, kind;
} texel_kinds[] = {
    {SNT_F32, 4, RT_SLOT_F32X4}, {SNT_F32, 1, RT_SLOT_F32}, {SNT_U32, 4, RT_SLOT_U32X4}, {SNT_U32, 1, RT_SLOT_U32},
    {SNT_I32, 4, RT_SLOT_I32X4}, {SNT_I32, 1, RT_SLOT_I32}, {SNT_F16, 4, RT_SLOT_F16X4}, {SNT_U8, 4, RT_SLOT_U8X4},
};

static uint8_t image_slot_kind(const kir_kernel *kernel, uint32_t number) {
  if (!(kernel->memories.at[number].flags & KIR_MEM_SAMPLED)) return RT_SLOT_IMAGE_STORE;
  for (uint32_t i = 1; i < kernel->insts.count; i++) {
    if (kernel->insts.at[i].op == KIR_tex_sample && kernel->insts.at[i].index == number) return RT_SLOT_IMAGE_SAMPLE;
  }
  return RT_SLOT_IMAGE_FETCH;
}

static uint8_t memory_slot_kind(const kir_memory *memory) {
  if (!(memory->flags & KIR_MEM_TEXEL)) return RT_SLOT_STORAGE;
  uint8_t base = memory->view ? memory->view : memory->type.base;
  for (uint32_t i = 0; i < IR_COUNT(texel_kinds); i++) {
    if (texel_kinds[i].base == base && texel_kinds[i].lanes == memory->type.lanes) return texel_kinds[i].kind;
  }
  return RT_SLOT_STORAGE;
}

void rt_slot_kinds(const kir_kernel *kernel, uint32_t count, uint8_t *kinds) {
  memset(kinds, RT_SLOT_STORAGE, count);
  for (uint32_t i = 0; i < kernel->memories.count; i++) {
    const kir_memory *memory = &kernel->memories.at[i];
    if (memory->slot >= count) continue;
    if (memory->space == KIR_GLOBAL) kinds[memory->slot] = memory_slot_kind(memory);
    if (memory->space == KIR_IMAGE) kinds[memory->slot] = image_slot_kind(kernel, i);
  }
}
