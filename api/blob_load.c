/* snt_program_load. In: bytes that nobody vouches for. Out: a program, or SNT_E_BAD_BLOB and nothing left. The checksum finds damage; a blob
   that was made to be wrong has a good one, so every offset, count and number is checked again and every text goes through its parser. */
#include "api/blob.h"

typedef struct blob_reader {
  const uint8_t *at, *end;
  bool failed;
} blob_reader;
typedef struct loader {
  snt_program *p;
  blob_reader sections[BLOB_SECTION_END];
  snt_diag *diag;
} loader;

static snt_result bad(snt_diag *diag, const char *what) {
  snt_diag detail = {{0}, 0, 0, 0, {0}, {0}};
  if (diag) detail = *diag;
  if (diag && detail.result < 0 && detail.text[0]) return ir_fail(diag, SNT_E_BAD_BLOB, "load", 0, "%s: %.150s", what, detail.text);
  return ir_fail(diag, SNT_E_BAD_BLOB, "load", 0, "%s", what);
}

/* A part's own error, seen as damage of the blob; running out of memory stays what it is. */
static snt_result as_damage(snt_diag *diag, snt_result r, const char *what) {
  if (r == SNT_OK || r == SNT_E_HOST_MEM) return r;
  return bad(diag, what);
}

static uint32_t take_u32(blob_reader *r) {
  if (r->failed || r->end - r->at < 4) {
    r->failed = true;
    return 0;
  }
  const uint8_t *b = r->at;
  r->at += 4;
  return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}
static uint64_t take_u64(blob_reader *r) {
  const uint64_t low = take_u32(r);
  return low | (uint64_t)take_u32(r) << 32;
}
static const uint8_t *take_bytes(blob_reader *r, uint64_t size) {
  if (r->failed || (uint64_t)(r->end - r->at) < size) {
    r->failed = true;
    return NULL;
  }
  const uint8_t *at = r->at;
  r->at += size;
  return at;
}
static size_t left(const blob_reader *r) { return (size_t)(r->end - r->at); }

/* ---- the frame ---- */

static snt_result check_header(const uint8_t *blob, size_t size, snt_diag *diag) {
  uint8_t digest[32];
  blob_reader r = {blob, blob + size, false};
  if (size < BLOB_HEADER) return ir_fail(diag, SNT_E_BAD_BLOB, "load", 0, "%zu bytes are too few", size);
  if (memcmp(take_bytes(&r, 8), blob_magic(), 8) != 0)
    return ir_fail(diag, SNT_E_BAD_BLOB, "load", 0, "no program: a pack, or one of the other byte order");
  const uint32_t version = take_u32(&r);
  if (version != BLOB_VERSION)
    return ir_fail(diag, SNT_E_BAD_BLOB, "load", 0, "format version %u; this library reads %d", version, BLOB_VERSION);
  if (take_u32(&r) != BLOB_SECTIONS) return ir_fail(diag, SNT_E_BAD_BLOB, "load", 0, "the number of sections is wrong");
  if (take_u64(&r) != size || take_u64(&r) != 0)
    return ir_fail(diag, SNT_E_BAD_BLOB, "load", 0, "the length is wrong: %zu bytes are given", size);
  blob_digest(blob, size, digest);
  return memcmp(digest, r.at, 32) ? ir_fail(diag, SNT_E_BAD_BLOB, "load", 0, "the checksum does not match") : SNT_OK;
}

static snt_result find_sections(loader *l, const uint8_t *blob, size_t size) {
  blob_reader r = {blob + BLOB_HEADER, blob + size, false};
  uint64_t past = BLOB_HEADER + BLOB_SECTIONS * BLOB_ROW;
  for (uint32_t i = 1; i < BLOB_SECTION_END; i++) {
    const uint32_t id = take_u32(&r), zero = take_u32(&r);
    const uint64_t at = take_u64(&r), bytes = take_u64(&r);
    if (r.failed || id != i || zero || at % BLOB_ALIGN || at < past || at - past >= BLOB_ALIGN || at > size || bytes > size - at)
      return bad(NULL, "section");
    for (; past < at; past++)
      if (blob[past]) return bad(NULL, "gap");
    past = at + bytes;
    l->sections[i] = (blob_reader){blob + at, blob + at + bytes, false};
  }
  return past == size ? SNT_OK : bad(NULL, "tail");
}

/* ---- the parts ---- */

static snt_result load_meta(loader *l) {
  snt_program *p = l->p;
  blob_reader *r = &l->sections[BLOB_META];
  const uint32_t known = SNT_TARGET_HOST | SNT_TARGET_OPENCL | SNT_TARGET_SPIRV | SNT_TARGET_CUDA;
  p->targets = take_u32(r);
  const uint32_t numerics = take_u32(r), level = take_u32(r), no_rewrites = take_u32(r);
  p->options.peak_bytes = take_u64(r);
  p->port_count = take_u32(r);
  if (r->failed || (p->targets & ~known) || numerics > SNT_NUMERICS_REPRODUCIBLE || level > FUSION_UNFUSED_NODES || no_rewrites > 1)
    return bad(l->diag, "an option is out of range");
  if (left(r) != (size_t)p->port_count * 4) return bad(l->diag, "the ports are cut short");
  p->options.numerics = (uint8_t)numerics;
  p->options.level = (uint8_t)level;
  p->options.no_rewrites = no_rewrites;
  p->options.profile = &p->profile;
  p->options.verify = true;
  p->ports = IR_NEW_ARRAY(&p->arena, uint32_t, p->port_count);
  for (uint32_t i = 0; p->ports && i < p->port_count; i++) p->ports[i] = take_u32(r);
  return p->ports ? SNT_OK : SNT_E_HOST_MEM;
}

/* Numbers that were stored in fewer bytes, as f32. */
static const void *widened(snt_program *p, uint32_t stored, const uint8_t *from, size_t count) {
  float *to = ir_arena_take(&p->arena, count * sizeof *to, 64);
  for (size_t i = 0; to && i < count; i++) {
    uint16_t half = 0;
    if (stored == SNT_F16) memcpy(&half, from + 2 * i, sizeof half);
    to[i] = stored == SNT_F16 ? ir_f32_from_f16(half) : (float)(int8_t)from[i];
  }
  return to;
}

static blob_bytes section(const loader *l, uint32_t id) { return (blob_bytes){l->sections[id].at, left(&l->sections[id])}; }

static snt_result load_graph(loader *l) {
  const blob_bytes text = section(l, BLOB_GRAPH), data = section(l, BLOB_DATA);
  return as_damage(l->diag, blob_load_graph(l->p, &text, &data, l->diag), "graph");
}

static snt_result load_plan(loader *l) {
  snt_program *p = l->p;
  const blob_reader *r = &l->sections[BLOB_PLAN];
  const uint32_t symbols = p->pool.symbols.count;
  plan_init(&p->plan, &p->arena, &p->pool);
  SNT_TRY(as_damage(l->diag, plan_parse(&p->plan, (const char *)r->at, left(r), l->diag), "plan"));
  if (p->graph.nodes.count && p->pool.symbols.count != symbols) return bad(l->diag, "the plan has symbols that the graph has not");
  return as_damage(l->diag, plan_verify(&p->plan, l->diag), "plan");
}

static snt_result load_constants(loader *l) {
  ir_plan *plan = &l->p->plan;
  blob_reader *r = &l->sections[BLOB_CONSTANTS];
  const blob_bytes data = section(l, BLOB_DATA);
  while (left(r)) {
    const uint32_t number = take_u32(r), stored = take_u32(r), bytes = !stored ? 4 : stored == SNT_F16 ? 2 : stored == SNT_I8;
    const uint64_t at = take_u64(r), size = take_u64(r);
    uint64_t expected;
    if (r->failed || number >= plan->buffers.count) return bad(l->diag, "constants");
    plan_buffer *b = &plan->buffers.at[number];
    if (!bytes || b->kind != PLAN_CONSTANT || b->data || !plan_logical_bytes(plan, b, NULL, &expected) || expected * bytes != size * 4 ||
        (stored && b->dtype != SNT_F32))
      return bad(l->diag, "the size of a constant is wrong");
    if (at > data.size || size > data.size - at) return bad(l->diag, "a constant lies outside the data");
    b->data = stored ? widened(l->p, stored, data.at + at, (size_t)size / bytes) : blob_constant(l->p, &data, at, size);
    if (!b->data) return SNT_E_HOST_MEM;
  }
  for (uint32_t i = 0; i < plan->buffers.count; i++)
    if (plan->buffers.at[i].kind == PLAN_CONSTANT && plan->buffers.at[i].first_step != UINT32_MAX && !plan->buffers.at[i].data)
      return bad(l->diag, "a constant has no data");
  return SNT_OK;
}

/* Inputs and states come first, then outputs; then what the graph says of them, where the library keeps graphs. */
static snt_result check_ports(loader *l) {
  const snt_program *p = l->p;
  bool outputs = false;
  for (uint32_t i = 0; i < p->port_count; i++) {
    if (p->ports[i] >= p->plan.buffers.count) return bad(l->diag, "a port has no buffer");
    const plan_buffer *b = &p->plan.buffers.at[p->ports[i]];
    if (b->kind != PLAN_INPUT && b->kind != PLAN_STATE && b->kind != PLAN_OUTPUT) return bad(l->diag, "a port is no port in the plan");
    if (outputs && b->kind != PLAN_OUTPUT) return bad(l->diag, "an input follows an output");
    outputs = b->kind == PLAN_OUTPUT;
  }
  const char *wrong = blob_compare_graph(p);
  return wrong ? bad(l->diag, wrong) : SNT_OK;
}

static snt_result load_code(loader *l, api_kernel *k, uint32_t target) {
  snt_program *p = l->p;
  blob_reader *r = &l->sections[BLOB_KERNELS];
  const uint64_t size = take_u64(r);
  const uint8_t *bytes = take_bytes(r, size);
  const uint32_t bit = 1u << (target == API_TARGETS - 1 ? 0 : target + 1);
  if (!bytes || (size != 0) != ((p->targets & bit) != 0)) return bad(l->diag, "a kernel has no code, or too much");
  if (!size) return SNT_OK;
  char *copy = ir_arena_take(&p->arena, (size_t)size + 1, 16);
  if (!copy) return SNT_E_HOST_MEM;
  memcpy(copy, bytes, (size_t)size);
  k->code[target].code = (codegen_code){copy, (size_t)size};
  if (bit == SNT_TARGET_SPIRV && size % 4) return bad(l->diag, "SPIR-V is made of whole words");
  return bit == SNT_TARGET_HOST ? as_damage(l->diag, blob_load_kernel(p, k, l->diag), "kernel") : SNT_OK;
}

/* How the SPIR-V code's slots are bound; one kind a slot. */
static snt_result load_slot_kinds(loader *l, api_kernel *k) {
  blob_reader *r = &l->sections[BLOB_KERNELS];
  k->sub = take_u32(r);
  const uint32_t count = take_u32(r);
  if (r->failed || count != (l->p->targets & SNT_TARGET_SPIRV ? k->binding_count : 0) || count > API_MAX_BINDINGS)
    return bad(l->diag, "the kinds of a kernel's slots are wrong");
  const uint8_t *kinds = take_bytes(r, count);
  if (!kinds) return bad(l->diag, "a kernel's slots are cut short");
  for (uint32_t i = 0; i < count; i++)
    if ((k->kinds[i] = kinds[i]) >= RT_SLOT_COUNT) return bad(l->diag, "a slot of no known kind");
  return SNT_OK;
}

static snt_result load_kernels(loader *l) {
  snt_program *p = l->p;
  blob_reader *r = &l->sections[BLOB_KERNELS];
  p->kernels = IR_NEW_ARRAY(&p->arena, api_kernel, p->plan.kernels.count + 1);
  if (!p->kernels) return SNT_E_HOST_MEM;
  for (uint32_t i = 0; i < p->plan.kernels.count; i++) {
    api_kernel *k = &p->kernels[i];
    k->binding_count = take_u32(r);
    k->block_bytes = take_u32(r);
    for (int a = 0; a < 3; a++) k->items[a] = take_u32(r);
    if (r->failed || k->block_bytes > sizeof((plan_launch *)0)->scalars || k->block_bytes % 4)
      return bad(l->diag, "a kernel's block is wrong");
    for (int a = 0; a < 3; a++)
      if (!k->items[a] || k->items[a] > 1024) return bad(l->diag, "a kernel's group size is wrong");
    SNT_TRY(load_slot_kinds(l, k));
    for (uint32_t t = 0; t < API_TARGETS; t++) SNT_TRY(load_code(l, k, t));
  }
  for (uint32_t i = 0; i < p->plan.steps.count; i++)
    if (p->plan.steps.at[i].binding_count != p->kernels[p->plan.steps.at[i].kernel].binding_count)
      return bad(l->diag, "a step binds other slots than its kernel has");
  return left(r) ? bad(l->diag, "kernels") : SNT_OK;
}

static snt_result load_texts(loader *l) {
  for (uint32_t i = 0; i < IR_COUNT(l->p->texts); i++) {
    const blob_reader *r = &l->sections[BLOB_TEXT + i];
    l->p->texts[i] = ir_arena_text(&l->p->arena, (const char *)r->at, left(r));
    if (!l->p->texts[i]) return SNT_E_HOST_MEM;
    if (strlen(l->p->texts[i]) != left(r)) return bad(l->diag, "an explanation holds a zero byte");
  }
  return SNT_OK;
}

static snt_result load_parts(loader *l) {
  const blob_reader *profile = &l->sections[BLOB_PROFILE];
  SNT_TRY(load_meta(l));
  SNT_TRY(as_damage(l->diag, cost_profile_parse(&l->p->profile, (const char *)profile->at, left(profile), l->diag), "profile"));
  SNT_TRY(load_graph(l));
  SNT_TRY(load_plan(l));
  SNT_TRY(load_constants(l));
  SNT_TRY(check_ports(l));
  SNT_TRY(load_kernels(l));
  return load_texts(l);
}

snt_result snt_program_load(snt_context *c, const void *blob, size_t size, snt_program **out, snt_diag *diag) {
  if (!c || !out || (!blob && size)) return ir_fail(diag, SNT_E_ARG, "load", 0, "a context, a blob and a place for the program are needed");
  if (diag) diag->result = SNT_OK, diag->text[0] = 0;
  loader l = {.diag = diag};
  SNT_TRY(check_header(blob, size, diag));
  if (find_sections(&l, blob, size) != SNT_OK) return bad(diag, "the table of sections is wrong");
  l.p = api_program_new(c);
  if (!l.p) return ir_no_memory(diag, "load");
  const uint32_t starved = api_starved(c);
  snt_result r = load_parts(&l);
  if (r == SNT_E_HOST_MEM || (r == SNT_OK && api_starved(c) != starved)) r = ir_no_memory(diag, "load");
  r = api_blame(c, starved, r, diag);
  if (r != SNT_OK) {
    api_program_drop(l.p);
    return r;
  }
  *out = l.p;
  return SNT_OK;
}
