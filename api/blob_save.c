/* snt_program_save. In: a program, compiled or loaded. Out: one blob (api/blob.h), the same bytes for the same program. */
#include "api/blob.h"

typedef struct saved_data {
  const void *data;
  uint64_t size, offset, hash;
} saved_data;
typedef struct saver {
  const snt_program *p;
  ir_arena temp;
  ir_text sections[BLOB_SECTION_END];
  IR_VEC(saved_data) known; /* what DATA holds already */
} saver;

static void put_u32(ir_text *to, uint32_t v) {
  const uint8_t b[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};
  ir_text_put(to, (const char *)b, 4);
}
static void put_u64(ir_text *to, uint64_t v) {
  put_u32(to, (uint32_t)v);
  put_u32(to, (uint32_t)(v >> 32));
}
static void put_zeros(ir_text *to, size_t multiple) {
  static const char zeros[BLOB_ALIGN];
  ir_text_put(to, zeros, (multiple - to->length % multiple) % multiple);
}

static const saved_data *find_data(const saver *s, const void *data, uint64_t size, uint64_t hash) {
  for (uint32_t i = 0; i < s->known.count; i++) {
    const saved_data *k = &s->known.at[i];
    if (k->size == size && k->hash == hash && (k->data == data || !memcmp(k->data, data, (size_t)size))) return k;
  }
  return NULL;
}

static uint64_t append_data(saver *s, const void *data, uint64_t size, uint64_t hash) {
  ir_text *to = &s->sections[BLOB_DATA];
  put_zeros(to, BLOB_ALIGN);
  const saved_data row = {data, size, to->length, hash};
  ir_text_put(to, data, (size_t)size);
  if (!IR_PUSH(&s->temp, &s->known, row)) to->failed = true;
  return row.offset;
}

/* Where DATA holds these bytes; the weights that graph and plan share are there once. */
static uint64_t put_data(saver *s, const void *data, uint64_t size) {
  const uint64_t hash = ir_hash64(size, data, (size_t)size);
  const saved_data *known = find_data(s, data, size, hash);
  return known ? known->offset : append_data(s, data, size, hash);
}

static bool save_constant(void *user, const void *data, uint64_t size, const char **file, uint64_t *offset) {
  *file = "data";
  *offset = put_data(user, data, size);
  return true;
}

static void put_meta(saver *s) {
  const snt_program *p = s->p;
  ir_text *to = &s->sections[BLOB_META];
  put_u32(to, p->targets);
  put_u32(to, p->options.numerics);
  put_u32(to, p->options.level);
  put_u32(to, p->options.no_rewrites);
  put_u64(to, p->options.peak_bytes);
  put_u32(to, p->port_count);
  for (uint32_t i = 0; i < p->port_count; i++) put_u32(to, p->ports[i]);
}

static void put_kernels(saver *s) {
  ir_text *to = &s->sections[BLOB_KERNELS];
  for (uint32_t i = 0; i < s->p->plan.kernels.count; i++) {
    const api_kernel *k = &s->p->kernels[i];
    put_u32(to, k->binding_count);
    put_u32(to, k->block_bytes);
    for (int a = 0; a < 3; a++) put_u32(to, k->items[a]);
    put_u32(to, k->sub);
    put_u32(to, s->p->targets & SNT_TARGET_SPIRV ? k->binding_count : 0);
    if (s->p->targets & SNT_TARGET_SPIRV) ir_text_put(to, (const char *)k->kinds, k->binding_count);
    for (uint32_t t = 0; t < API_TARGETS; t++) {
      const codegen_code *code = &k->code[t].code;
      put_u64(to, code->data ? code->size : 0);
      if (code->data) ir_text_put(to, code->data, code->size);
    }
  }
}

/* ---- f32 numbers that fewer bytes hold exactly: weights that were narrow before a schedule laid them out ---- */

static bool same_bits(float a, float b) { return !memcmp(&a, &b, sizeof a); } /* the sign of a zero, too */
static bool is_byte(float v) { return v >= -128 && v <= 127 && same_bits((float)(int8_t)v, v); }
static bool is_half(float v) { return same_bits(ir_f32_from_f16(ir_f16_from_f32(v)), v); }
static bool all_are(bool (*holds)(float), const float *numbers, uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    if (!holds(numbers[i])) return false;
  return true;
}

/* The same numbers in fewer bytes; null: there are none. */
static void *narrowed(saver *s, const plan_buffer *b, const float *numbers, uint64_t size, int32_t *dtype) {
  enum { FEW = 256 };
  const uint64_t count = size / sizeof *numbers;
  if (b->dtype != SNT_F32 || count < FEW) return NULL;
  *dtype = all_are(is_byte, numbers, count) ? SNT_I8 : all_are(is_half, numbers, count) ? SNT_F16 : 0;
  void *to = *dtype ? ir_arena_take_own(&s->temp, (size_t)count * ir_dtypes[*dtype].bytes) : NULL;
  for (uint64_t i = 0; to && i < count; i++) {
    if (*dtype == SNT_I8) ((int8_t *)to)[i] = (int8_t)numbers[i];
    else ((uint16_t *)to)[i] = ir_f16_from_f32(numbers[i]);
  }
  return to;
}

/* A row a buffer of the plan that has data: buffer, type it is stored as (0: its own), offset in DATA, size there. */
static void put_constants(saver *s) {
  const ir_plan *plan = &s->p->plan;
  ir_text *to = &s->sections[BLOB_CONSTANTS];
  for (uint32_t i = 0; i < plan->buffers.count; i++) {
    const plan_buffer *b = &plan->buffers.at[i];
    uint64_t size;
    if (b->kind != PLAN_CONSTANT || b->first_step == UINT32_MAX || (!b->data && !b->making)) continue;
    const void *data = api_constant(s->p, i);
    if (!data || !plan_logical_bytes(plan, b, NULL, &size)) {
      to->failed = true;
      return;
    }
    int32_t stored = 0;
    const uint64_t hash = ir_hash64(size, data, (size_t)size);
    const saved_data *known = find_data(s, data, size, hash);
    const void *few = known ? NULL : narrowed(s, b, data, size, &stored);
    if (few) size = size / ir_dtypes[SNT_F32].bytes * ir_dtypes[stored].bytes;
    const uint64_t at = known ? known->offset : few ? put_data(s, few, size) : append_data(s, data, size, hash);
    put_u32(to, i);
    put_u32(to, few ? (uint32_t)stored : 0);
    put_u64(to, at);
    put_u64(to, size);
  }
}

static void put_sections(saver *s) {
  const ir_text_hooks hooks = {.user = s, .save = save_constant, .limit = 16};
  put_meta(s);
  cost_profile_print(&s->p->profile, &s->sections[BLOB_PROFILE]);
  ir_graph_print_with(&s->p->graph, &hooks, &s->sections[BLOB_GRAPH]);
  plan_print(&s->p->plan, &s->sections[BLOB_PLAN]);
  put_kernels(s);
  put_constants(s);
  api_explain(s->p, SNT_EXPLAIN_TEXT, &s->temp, &s->sections[BLOB_TEXT]);
  api_explain(s->p, SNT_EXPLAIN_JSON, &s->temp, &s->sections[BLOB_JSON]);
}

static void assemble(saver *s, ir_text *out) {
  uint64_t at = BLOB_HEADER + BLOB_SECTIONS * BLOB_ROW, whole = at;
  for (int i = 1; i < BLOB_SECTION_END; i++) whole = (whole + BLOB_ALIGN - 1) / BLOB_ALIGN * BLOB_ALIGN + s->sections[i].length;
  ir_text_put(out, blob_magic(), 8);
  put_u32(out, BLOB_VERSION);
  put_u32(out, BLOB_SECTIONS);
  put_u64(out, whole);
  put_u64(out, 0);
  for (int i = 0; i < 4; i++) put_u64(out, 0); /* the digest */
  for (uint32_t i = 1; i < BLOB_SECTION_END; i++) {
    at = (at + BLOB_ALIGN - 1) / BLOB_ALIGN * BLOB_ALIGN;
    put_u32(out, i);
    put_u32(out, 0);
    put_u64(out, at);
    put_u64(out, s->sections[i].length);
    at += s->sections[i].length;
  }
  for (int i = 1; i < BLOB_SECTION_END; i++) {
    put_zeros(out, BLOB_ALIGN);
    if (s->sections[i].length) ir_text_put(out, s->sections[i].at, s->sections[i].length);
    if (s->sections[i].failed) out->failed = true;
  }
  if (!out->failed) blob_digest((const uint8_t *)out->at, out->length, (uint8_t *)out->at + BLOB_DIGEST_AT);
}

snt_result snt_program_save(const snt_program *p, void *dst, size_t *size) {
  if (!p || !size) return SNT_E_ARG;
  saver s = {.p = p};
  ir_text out;
  ir_arena_init(&s.temp, &p->context->alloc);
  for (int i = 0; i < BLOB_SECTION_END; i++) ir_text_init(&s.sections[i], &s.temp);
  ir_text_init(&out, &s.temp);
  put_sections(&s);
  assemble(&s, &out);
  const size_t room = *size;
  const bool good = !out.failed && !s.temp.failed;
  if (good) *size = out.length;
  if (good && dst && room >= out.length) memcpy(dst, out.at, out.length);
  const bool fits = dst && room >= out.length;
  ir_arena_free(&s.temp);
  return !good ? SNT_E_HOST_MEM : fits ? SNT_OK : SNT_INCOMPLETE;
}
