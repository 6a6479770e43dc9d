/* Declarations of a kernel: header, scalars, memories. */
#include "ir/kir/verify.h"
#include <math.h>
#include <stdio.h>

void kir_complain(kir_verifier *v, uint32_t inst, const char *format, ...) {
  char text[200];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  const char *op = inst && kir_at(v->k, inst)->op < KIR_OP_COUNT ? kir_ops[kir_at(v->k, inst)->op].name : "";
  if (v->errors && inst) ir_text_format(v->errors, "kernel @%s: instruction %u (%s): %s\n", v->k->name, inst, op, text);
  if (v->errors && !inst) ir_text_format(v->errors, "kernel @%s: %s\n", v->k->name, text);
  if (v->count++) return;
  if (inst) ir_fail(v->diag, SNT_E_ARG, "verify kernel", inst, "@%s: instruction %u (%s): %s", v->k->name, inst, op, text);
  else ir_fail(v->diag, SNT_E_ARG, "verify kernel", 0, "@%s: %s", v->k->name, text);
}

enum { MAX_BLOCK = 128, MAX_ITEMS = 4096, MAX_SUBGROUP = 128 };
static const uint64_t max_elements = (uint64_t)1 << 31; /* of an array the kernel owns */

static bool is_power_of_two(uint64_t v) { return v && !(v & (v - 1)); }

static bool is_name(const char *s) {
  if (!s || !*s || (*s >= '0' && *s <= '9')) return false;
  for (; *s; s++) {
    const bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '_';
    if (!letter && !(*s >= '0' && *s <= '9') && *s != '.') return false;
  }
  return true;
}

static void check_head(kir_verifier *v) {
  const kir_kernel *k = v->k;
  if (!is_name(k->name)) kir_complain(v, 0, "the kernel's name is no identifier");
  uint64_t items = 1;
  for (uint32_t d = 0; d < 3; d++) {
    if (!k->items[d] || k->items[d] > MAX_ITEMS) kir_complain(v, 0, "workgroup dimension %u is %u", d, k->items[d]);
    items *= k->items[d] ? k->items[d] : 1;
    if (items > MAX_ITEMS) items = MAX_ITEMS + 1;
  }
  if (items > MAX_ITEMS) kir_complain(v, 0, "a workgroup has over %u items", MAX_ITEMS);
  if (k->sub != UINT32_MAX && k->sub > MAX_SUBGROUP) kir_complain(v, 0, "subgroup of %u", k->sub);
  if (k->mode > SNT_NUMERICS_REPRODUCIBLE) kir_complain(v, 0, "numerics mode %u does not exist", k->mode);
  for (const char *s = k->needs ? k->needs : ""; *s; s++)
    if (*s < ' ' || *s == '(' || *s == ')') kir_complain(v, 0, "needs= holds a character that cannot be written");
}

static void check_scalar(kir_verifier *v, const kir_scalar *s) {
  if (!is_name(s->name)) kir_complain(v, 0, "a scalar's name is no identifier");
  const uint32_t size = kir_base_bits(s->type.base) == 64 ? 8 : 4;
  if (!kir_type_valid(s->type) || s->type.lanes != 1 || s->type.frag) kir_complain(v, 0, "scalar %s has no valid type", s->name);
  if (s->offset % size || s->offset > MAX_BLOCK - size)
    kir_complain(v, 0, "scalar %s at byte %u is misaligned or outside the block of %d bytes", s->name, s->offset, MAX_BLOCK);
  if (s->max && s->min > s->max && s->type.base != SNT_U64) kir_complain(v, 0, "scalar %s has min above max", s->name);
  if (s->multiple_of < 0) kir_complain(v, 0, "scalar %s is a multiple of a negative number", s->name);
}

static void check_scalars(kir_verifier *v) {
  uint8_t used[MAX_BLOCK] = {0};
  for (uint32_t i = 0; i < v->k->scalars.count; i++) {
    const kir_scalar *s = &v->k->scalars.at[i];
    check_scalar(v, s);
    const uint32_t size = kir_base_bits(s->type.base) == 64 ? 8 : 4;
    for (uint32_t b = s->offset; b < s->offset + size && s->offset <= MAX_BLOCK - size; b++)
      if (used[b]++ && b == s->offset) kir_complain(v, 0, "scalar %s overlaps another", s->name);
  }
}

static void check_image(kir_verifier *v, const kir_memory *m) {
  if (!memchr(m->format, 0, sizeof m->format) || !is_name(m->format)) kir_complain(v, 0, "image %s has no valid format", m->name);
  if ((m->flags & KIR_MEM_SAMPLED) && m->access != KIR_READ) kir_complain(v, 0, "sampled image %s must be read only", m->name);
}

static void check_global(kir_verifier *v, const kir_memory *m) {
  if (m->rank != 1) kir_complain(v, 0, "parameter %s needs one dimension", m->name);
  if (m->size_scalar > v->k->scalars.count || m->offset_scalar > v->k->scalars.count)
    kir_complain(v, 0, "parameter %s refers to a scalar that does not exist", m->name);
  if (!is_power_of_two(m->align)) kir_complain(v, 0, "parameter %s: alignment %u", m->name, m->align);
  if (m->view && !kir_type_valid(kir_t(m->view, 1))) kir_complain(v, 0, "parameter %s has an impossible view", m->name);
  if ((m->flags & KIR_MEM_TEXEL) && (m->access & KIR_WRITE)) kir_complain(v, 0, "parameter %s is read through texels but written", m->name);
  if (m->type.frag) kir_complain(v, 0, "parameter %s holds matrix fragments", m->name);
  if (m->state && !is_name(m->state)) kir_complain(v, 0, "parameter %s: state is no identifier", m->name);
}

/* An integer array's values are doubles that lie in the type's range. */
static void check_values(kir_verifier *v, const kir_memory *m, uint64_t count) {
  const uint32_t bits = m->type.base == SNT_BOOL ? 1 : kir_base_bits(m->type.base);
  const bool is_signed = kir_is_signed(m->type.base);
  const double low = is_signed ? -ldexp(1, (int)bits - 1) : 0, high = ldexp(1, is_signed ? (int)bits - 1 : (int)bits);
  for (uint64_t i = 0; i < count && !kir_is_float(m->type.base); i++)
    if (!(m->values[i] >= low && m->values[i] < high && m->values[i] == floor(m->values[i]))) {
      kir_complain(v, 0, "const %s: value %llu does not fit its type", m->name, (unsigned long long)i);
      return;
    }
}

static void check_array(kir_verifier *v, const kir_memory *m) {
  uint64_t elements = 1;
  for (uint32_t d = 0; d < m->rank; d++) {
    if (!m->dims[d] || m->dims[d] > max_elements) kir_complain(v, 0, "array %s: extent %llu", m->name, (unsigned long long)m->dims[d]);
    elements = elements > max_elements ? elements : elements * (m->dims[d] <= max_elements ? m->dims[d] : 1);
  }
  if (elements > max_elements) kir_complain(v, 0, "array %s is too large", m->name);
  const uint32_t kinds = m->flags & (KIR_MEM_REGS | KIR_MEM_ROWS);
  if (m->space == KIR_PRIVATE && kinds != KIR_MEM_REGS && kinds != KIR_MEM_ROWS)
    kir_complain(v, 0, "private %s is either regs or rows", m->name);
  if (m->space != KIR_PRIVATE && kinds) kir_complain(v, 0, "%s is not private, so neither regs nor rows", m->name);
  if (m->type.frag && !(m->flags & KIR_MEM_REGS)) kir_complain(v, 0, "fragments of %s need a register array", m->name);
  if (m->space == KIR_CONSTANT && (!m->values || m->type.lanes != 1)) kir_complain(v, 0, "const %s needs values of a scalar type", m->name);
  else if (m->space == KIR_CONSTANT && elements <= max_elements) check_values(v, m, elements);
  if ((m->space == KIR_LOCAL || m->space == KIR_SCRATCH) && !is_power_of_two(m->align))
    kir_complain(v, 0, "%s: alignment %u", m->name, m->align);
}

static void check_overlay(kir_verifier *v, const kir_memory *m) {
  if (!m->overlay) return;
  const kir_memory *under = m->overlay <= v->k->memories.count ? &v->k->memories.at[m->overlay - 1] : NULL;
  if (!under || under == m || under->space != KIR_LOCAL || m->space != KIR_LOCAL || under->overlay)
    kir_complain(v, 0, "%s: overlay must name a local array that has none itself", m->name);
}

static void check_memory(kir_verifier *v, const kir_memory *m, uint32_t *slots) {
  if (!is_name(m->name)) kir_complain(v, 0, "a memory's name is no identifier");
  if (m->space > KIR_CONSTANT) kir_complain(v, 0, "memory %s is in no known space", m->name);
  if (m->space != KIR_IMAGE && !kir_type_valid(m->type)) kir_complain(v, 0, "memory %s has no valid type", m->name);
  if (!m->rank || m->rank > IR_COUNT(m->dims)) kir_complain(v, 0, "memory %s has %u dimensions", m->name, m->rank);
  check_overlay(v, m);
  const bool bound = m->space == KIR_GLOBAL || m->space == KIR_IMAGE;
  if (bound && (!m->access || m->access > (KIR_READ | KIR_WRITE))) kir_complain(v, 0, "memory %s has no access", m->name);
  if (bound && m->slot > *slots) kir_complain(v, 0, "memory %s: slot %u leaves a gap", m->name, m->slot);
  if (bound && m->slot == *slots) ++*slots;
  if (m->space == KIR_IMAGE) check_image(v, m);
  else if (m->space == KIR_GLOBAL) check_global(v, m);
  else if (m->rank <= IR_COUNT(m->dims)) check_array(v, m);
}

/* Memories and scalars share one set of names. */
static const char *name_at(const kir_kernel *k, uint32_t i) {
  return i < k->memories.count ? k->memories.at[i].name : k->scalars.at[i - k->memories.count].name;
}

static void check_names(kir_verifier *v) {
  const uint32_t count = v->k->memories.count + v->k->scalars.count;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t j = 0; j < i; j++)
      if (!strcmp(name_at(v->k, i), name_at(v->k, j))) kir_complain(v, 0, "two declarations are named %s", name_at(v->k, i));
}

void kir_verify_declarations(kir_verifier *v) {
  check_head(v);
  check_scalars(v);
  uint32_t slots = 0;
  for (uint32_t i = 0; i < v->k->memories.count; i++) check_memory(v, &v->k->memories.at[i], &slots);
  if (!v->count) check_names(v);
}
