/* Memories as C: the parameter list, arrays, the linear index of an access, loads and stores. */
#include "codegen_common/ctext_private.h"
#include <stdio.h>

/* A pointer that the kernel moves first (run-time offset, per-group workspace) arrives as a<number> and is used as p<number>. */
static bool is_moved(const kir_memory *m) { return m->offset_scalar || m->space == KIR_SCRATCH; }
static bool is_buffer(const kir_memory *m) { return m->space == KIR_GLOBAL || m->space == KIR_SCRATCH; }

void ctext_memory_name(ctext *c, uint32_t memory) { ir_text_id(&c->out, 'p', memory); }

static uint64_t elements(const kir_memory *m) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < m->rank; i++) n *= m->dims[i];
  return n;
}

static void pointer_type(ctext *c, const kir_memory *m, bool restricted) {
  ir_text_add(&c->out, c->d->space[KIR_GLOBAL]);
  if (!(m->access & KIR_WRITE) && m->space == KIR_GLOBAL) ir_text_add(&c->out, "const ");
  ctext_storage(c, m->type);
  ir_text_add(&c->out, " *");
  if (restricted) ir_text_add(&c->out, c->d->restrict_word);
}

void ctext_pointer(ctext *c, uint32_t memory, const char *name, uint32_t length) {
  ctext_begin_line(c);
  pointer_type(c, &c->k->memories.at[memory], false);
  ir_text_put(&c->out, name, length);
  ir_text_format(&c->out, " = p%u;\n", memory);
}

static void parameter(ctext *c, uint32_t number, bool first) {
  const kir_memory *m = &c->k->memories.at[number];
  if (!first) ir_text_add(&c->out, ", ");
  if (m->space == KIR_IMAGE) {
    const char *text = m->access <= 2 ? c->d->image_param[m->access - (m->access > 0)] : NULL;
    const ctext_site site = {.memory = number + 1};
    if (!text) ctext_fail(c, SNT_E_UNSUPPORTED, 0, "%s has no images of this access (image %s)", c->d->name, m->name);
    else ctext_expand(c, text, &site);
    return;
  }
  pointer_type(c, m, m->alias == 0);
  ir_text_format(&c->out, "%c%u", is_moved(m) ? 'a' : 'p', number);
}

static bool memory_at(const kir_kernel *k, uint32_t binding, uint32_t *number) {
  for (*number = 0; *number < k->memories.count; ++*number)
    if (kir_binding(k, *number) == binding) return true;
  return false;
}

/* Parameters by binding, then the words of the scalar block with the number of groups behind them. */
void ctext_signature(ctext *c) {
  const uint32_t words = kir_block_bytes(c->k) / 4 + 1;
  const uint32_t bound = kir_binding_count(c->k);
  for (uint32_t slot = 0, number; slot < bound; slot++) {
    if (memory_at(c->k, slot, &number)) parameter(c, number, slot == 0);
    else ctext_fail(c, SNT_E_INTERNAL, 0, "slot %u of %u is bound to nothing", slot, bound);
  }
  const char *text = c->d->block_param ? c->d->block_param : c->d->word_param;
  for (uint32_t i = 0; i < (c->d->block_param ? 1 : words); i++) {
    const ctext_site site = {.number = {i}};
    if (bound || i) ir_text_add(&c->out, ", ");
    ctext_expand(c, text, &site);
  }
}

static void initialiser(ctext *c, const kir_memory *m) {
  uint64_t n = elements(m);
  ir_text_add(&c->out, " = {");
  for (uint64_t i = 0; i < n; i++) {
    if (i) ir_text_add(&c->out, ", ");
    ctext_literal(c, m->type, (int64_t)m->values[i], m->values[i]);
  }
  ir_text_add(&c->out, "}");
}

/* An overlay takes the bytes of an earlier array, which is therefore made as large as the largest that shares them. */
static uint64_t array_elements(const ctext *c, uint32_t number) {
  const kir_memory *m = &c->k->memories.at[number];
  const uint64_t size = (uint64_t)ir_dtypes[m->type.base].bytes * m->type.lanes;
  uint64_t bytes = elements(m) * size;
  for (uint32_t i = 0; i < c->k->memories.count; i++) {
    const kir_memory *o = &c->k->memories.at[i];
    if (o->overlay != number + 1) continue;
    uint64_t other = elements(o) * ir_dtypes[o->type.base].bytes * o->type.lanes;
    if (other > bytes) bytes = other;
  }
  return (bytes + size - 1) / size;
}

enum { POOL_ALIGN = 64 };

/* Of the local arrays before array `end`. */
static uint64_t pool_bytes(const ctext *c, uint32_t end) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < end; i++) {
    const kir_memory *m = &c->k->memories.at[i];
    if (m->space != KIR_LOCAL || m->overlay) continue;
    bytes += (array_elements(c, i) * ir_dtypes[m->type.base].bytes * m->type.lanes + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN;
  }
  return bytes;
}

static bool is_pooled(const ctext *c) { return c->d->pool && pool_bytes(c, c->k->memories.count) > c->d->pool_beyond; }

static void array(ctext *c, uint32_t number) {
  const kir_memory *m = &c->k->memories.at[number];
  const uint32_t element = ir_dtypes[m->type.base].bytes * (m->type.lanes == 3 ? 4 : m->type.lanes);
  const bool pooled = m->space == KIR_LOCAL && is_pooled(c);
  char base[32] = "";
  ctext_site site = {.memory = number + 1};
  const char *text = m->overlay || pooled ? c->d->overlay : c->d->array[m->space];
  if (m->overlay) snprintf(base, sizeof base, "p%u", m->overlay - 1);
  else if (pooled) snprintf(base, sizeof base, "(snt_local + %u)", (uint32_t)pool_bytes(c, number));
  site.text[0] = base;
  site.number[0] = array_elements(c, number);
  site.number[1] = m->align > element ? m->align : element > 16 ? element : 16;
  ctext_begin_line(c);
  ctext_expand(c, text, &site);
  if (m->space == KIR_CONSTANT) initialiser(c, m);
  ir_text_add(&c->out, ";\n");
}

static void moved_pointer(ctext *c, uint32_t number) {
  const kir_memory *m = &c->k->memories.at[number];
  ctext_begin_line(c);
  pointer_type(c, m, false);
  ir_text_format(&c->out, "p%u = a%u", number, number);
  if (m->offset_scalar) {
    ir_text_add(&c->out, " + ");
    ctext_scalar(c, m->offset_scalar - 1);
  }
  if (m->space == KIR_SCRATCH) ir_text_format(&c->out, " + (size_t)snt_group * %llu", (unsigned long long)elements(m));
  ir_text_add(&c->out, ";\n");
}

void ctext_arrays(ctext *c) {
  if (is_pooled(c)) ctext_line(c, c->d->pool, &(ctext_site){.number = {pool_bytes(c, c->k->memories.count)}});
  for (uint32_t i = 0; i < c->k->memories.count; i++) {
    const kir_memory *m = &c->k->memories.at[i];
    if (is_buffer(m)) {
      if (is_moved(m)) moved_pointer(c, i);
    } else if (m->space != KIR_IMAGE) array(c, i);
  }
}

/* Has this memory so few elements that an index into it, read as signed, is exact even before a literal is added? */
static bool is_small(const ctext *c, const kir_memory *m) {
  const int64_t limit = 1 << 30, factor = m->dims[1] ? (int64_t)m->dims[1] : 1;
  if (!m->size_scalar) return m->dims[0] && m->dims[0] <= (uint64_t)limit;
  const int64_t most = c->k->scalars.at[m->size_scalar - 1].max;
  return most > 0 && factor <= limit && most <= limit / factor;
}

/* An address `v + literal` is formed in 64 bits, so that the compiler can fold the literal into the access; accesses around one v, itself
   included, share its widening. v may be "negative", as in (row - 1) * width + width; in large memories sums stay modulo 2^32. */
static bool is_foldable(const ctext *c, uint32_t id, uint32_t *base, int64_t *literal) {
  const kir_memory *m = &c->k->memories.at[kir_at(c->k, id)->index];
  if (!c->d->wide_index || m->space != KIR_GLOBAL || !is_small(c, m)) return false;
  const uint32_t index = kir_arg(c->k, id, 0);
  const kir_inst *sum = kir_at(c->k, index);
  *base = index;
  *literal = 0;
  if (sum->op == KIR_const || sum->type.base != SNT_U32) return false;
  if (sum->op != KIR_add || !ctext_const_int(c, kir_arg(c->k, index, 1), literal)) return true;
  *literal = (int32_t)*literal;
  if (*literal > -(1 << 30) && *literal < 1 << 30) *base = kir_arg(c->k, index, 0);
  else *literal = 0;
  return true;
}

void ctext_count_uses(ctext *c) {
  for (uint32_t i = 1; i < c->k->insts.count; i++) {
    const kir_inst *s = kir_at(c->k, i);
    uint32_t base;
    int64_t literal;
    for (uint32_t n = 0; n < s->arg_count; n++) c->uses[kir_arg(c->k, i, n)]++;
    if (!(kir_ops[s->op].flags & KIR_MEM) || !s->arg_count || !is_foldable(c, i, &base, &literal)) continue;
    if (base != kir_arg(c->k, i, 0)) c->folded[kir_arg(c->k, i, 0)]++;
    if (!literal && s->op != KIR_prefetch && s->index < 64 && c->regions.parent[i] == c->regions.parent[base])
      c->anchors[base] |= UINT64_C(1) << s->index;
  }
}

/* Where the element at v is accessed too, `pointer + v` is a pointer into the buffer, to which literals are added. One sum is right everywhere else, but
   LLVM makes an `or` of `v + 1` where v is a multiple of four: other addresses, whose loads it moves up until they spill (a contraction of 128 x 1536 x 384
   on PoCL took 1.5 times as long). */
static bool is_anchored(const ctext *c, uint32_t id, uint32_t base) {
  const uint32_t memory = kir_at(c->k, id)->index;
  return memory < 64 && c->anchors[base] >> memory & 1;
}

static bool is_anchored_sum(const ctext *c, uint32_t id) {
  uint32_t base;
  int64_t literal;
  return is_foldable(c, id, &base, &literal) && literal && is_anchored(c, id, base);
}

static void folded_index(ctext *c, uint32_t base, int64_t literal, bool anchored) {
  const ir_text saved = ctext_divert(c);
  ctext_value(c, base);
  const ctext_site site = {.text = {ctext_restore(c, saved)}};
  if (literal && !anchored) ir_text_add(&c->out, "("); /* one sum, then one pointer */
  ctext_expand(c, c->d->wide_index, &site);
  if (literal) ir_text_format(&c->out, " %c %lld", literal < 0 ? '-' : '+', (long long)(literal < 0 ? -literal : literal));
  if (literal && !anchored) ir_text_add(&c->out, ")");
}

/* Row-major; literal indices fold into one number at the end. */
void ctext_index(ctext *c, uint32_t id) {
  const kir_inst *s = kir_at(c->k, id);
  const kir_memory *m = &c->k->memories.at[s->index];
  const uint32_t rank = m->space == KIR_GLOBAL ? 1 : m->rank;
  uint64_t stride = 1;
  int64_t total = 0, known;
  bool any = false;
  uint32_t base;
  if (is_foldable(c, id, &base, &total)) {
    folded_index(c, base, total, is_anchored(c, id, base));
    return;
  }
  total = 0;
  for (uint32_t n = rank; n-- > 0;) {
    uint32_t index = kir_arg(c->k, id, n);
    if (ctext_const_int(c, index, &known)) total += known * (int64_t)stride;
    else {
      if (any) ir_text_add(&c->out, " + ");
      ctext_value(c, index);
      if (stride != 1) ir_text_format(&c->out, " * %llu", (unsigned long long)stride);
      any = true;
    }
    stride *= m->dims[n];
  }
  if (!any) ir_text_format(&c->out, "%lld", (long long)total);
  else if (total) ir_text_format(&c->out, " %c %lld", total < 0 ? '-' : '+', (long long)(total < 0 ? -total : total));
}

static const char *access_text(ctext *c, uint32_t id, const ctext_access *access, kir_type value) {
  const kir_inst *s = kir_at(c->k, id);
  const kir_memory *m = &c->k->memories.at[s->index];
  const uint32_t bytes = ir_dtypes[value.base].bytes * value.lanes;
  if (s->lanes > 1) ctext_fail(c, SNT_E_INTERNAL, id, "strided lanes must have been split by pass legalise");
  if (value.lanes == m->type.lanes && value.base == SNT_BOOL) return access->boolean;
  if (value.lanes == m->type.lanes) return s->op == KIR_load && is_anchored_sum(c, id) ? "*($m + $j)" : access->cell;
  if (value.base == SNT_BOOL) return NULL;
  if (value.lanes == 3) return access->three;
  if (s->align < bytes) return access->unaligned;
  return s->op == KIR_store && s->flags & KIR_IS_STREAM && access->stream ? access->stream : access->aligned;
}

/* Vectors that the dialect has no access for are put together from elements. */
static void load_lanes(ctext *c, uint32_t id) {
  const kir_inst *s = kir_at(c->k, id);
  const ir_text saved = ctext_divert(c);
  for (uint32_t i = 0; i < s->type.lanes; i++) {
    const ctext_site site = {.id = id, .memory = s->index + 1u, .type = kir_t(s->type.base, 1)};
    if (i) ir_text_add(&c->out, ", ");
    ctext_memory_name(c, s->index);
    ir_text_add(&c->out, "[");
    ctext_expand(c, "$j", &site);
    ir_text_format(&c->out, " + %u]", i);
  }
  const ctext_site site = {.text = {ctext_restore(c, saved)}, .type = s->type};
  ctext_expand(c, c->d->vector_list, &site);
}

void ctext_load(ctext *c, uint32_t id) {
  const kir_inst *s = kir_at(c->k, id);
  const ctext_site site = {.id = id, .memory = s->index + 1u, .type = s->type, .operand = s->type};
  const char *text = access_text(c, id, &c->d->load, s->type);
  ctext_begin_line(c);
  ctext_type(c, s->type);
  ir_text_add(&c->out, " ");
  ir_text_id(&c->out, 'v', id);
  ir_text_add(&c->out, " = ");
  if (text) ctext_expand(c, text, &site);
  else load_lanes(c, id);
  ir_text_add(&c->out, ";\n");
}

static void store_lanes(ctext *c, uint32_t id, uint32_t value, kir_type type) {
  const kir_inst *s = kir_at(c->k, id);
  for (uint32_t i = 0; i < type.lanes; i++) {
    const ctext_site site = {.id = id, .memory = s->index + 1u, .type = kir_t(type.base, 1), .lane = i};
    char name[16];
    snprintf(name, sizeof name, "v%u", c->same[value]);
    const ctext_site lane = {.text = {name}, .lane = i, .type = kir_t(type.base, 1)};
    const char *extract = ctext_cell_for(c, KIR_extract, id, type);
    if (!extract) return;
    ctext_begin_line(c);
    ctext_memory_name(c, s->index);
    ir_text_add(&c->out, "[");
    ctext_expand(c, "$j", &site);
    ir_text_format(&c->out, " + %u] = ", i);
    ctext_expand(c, extract, &lane);
    ir_text_add(&c->out, ";\n");
  }
}

void ctext_store(ctext *c, uint32_t id) {
  const kir_inst *s = kir_at(c->k, id);
  const uint32_t value = kir_arg(c->k, id, s->arg_count - 1u);
  const kir_type type = kir_at(c->k, value)->type;
  const char *pattern = access_text(c, id, &c->d->store, type);
  if (!pattern) {
    store_lanes(c, id, value, type);
    return;
  }
  const ir_text saved = ctext_divert(c);
  ctext_value(c, value);
  const ctext_site site = {.id = id, .memory = s->index + 1u, .type = type, .operand = type, .text = {ctext_restore(c, saved)}};
  ctext_line(c, pattern, &site);
}

/* From $0, an address, to an element of local memory. */
void ctext_copy(ctext *c, uint32_t id) {
  const kir_inst *s = kir_at(c->k, id);
  const char *pattern = ctext_cell_for(c, KIR_async_copy, id, kir_t(SNT_U32, 1));
  const ir_text saved = ctext_divert(c);
  ctext_memory_name(c, s->index2);
  ir_text_add(&c->out, " + ");
  ctext_value(c, kir_arg(c->k, id, s->arg_count - 2u));
  ctext_line(c, pattern, &(ctext_site){.id = id, .memory = s->index + 1u, .text = {ctext_restore(c, saved)}});
}
