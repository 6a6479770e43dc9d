/* Saved programs: the same bytes for the same program, the same results after loading, and SNT_E_BAD_BLOB for anything else. */
#include "api/blob.h"
#include "tests/tap.h"
#include "tests/unit/api_support.h"
#include "tools/host/host.h"

static const uint32_t all_targets = SNT_TARGET_HOST | SNT_TARGET_OPENCL | SNT_TARGET_SPIRV;

static snt_program *compile(snt_context *c, snt_graph *g, const snt_profile *given, snt_diag *diag) {
  snt_profile *profile = NULL;
  snt_program *p = NULL;
  const snt_compile_info info = {.head = SNT_HEAD(compile_info),
                                 .targets = given ? 0 : all_targets}; /* a device's own profile: its own target */
  if (!given && snt_profile_builtin(c, "pocl", &profile) != SNT_OK) return NULL;
  (void)snt_compile(g, given ? given : profile, &info, &p, diag);
  snt_profile_destroy(profile);
  return p;
}

static uint8_t *save(const snt_program *p, size_t *size) {
  *size = 0;
  if (snt_program_save(p, NULL, size) != SNT_INCOMPLETE) return NULL;
  uint8_t *blob = malloc(*size);
  if (blob && snt_program_save(p, blob, size) == SNT_OK) return blob;
  free(blob);
  return NULL;
}

/* ---- runs ---- */

static bool equal_runs(snt_device *d, const snt_program *a, const snt_program *b, const api_model *m, uint32_t size, snt_diag *diag) {
  const snt_program *programs[] = {a, b};
  api_tensors tensors[2];
  bool same = true;
  for (int i = 0; i < 2; i++) {
    snt_exec *x = NULL;
    same = api_make_tensors(programs[i], m->sizes[size], 7, &tensors[i]) && same;
    same = snt_exec_create(d, programs[i], NULL, &x, diag) == SNT_OK && same;
    for (int k = 0; same && k < 2; k++) same = api_run_once(d, x, &tensors[i], API_HOST_MEMORY, NULL, diag) == SNT_OK;
    snt_exec_destroy(x);
  }
  for (uint32_t i = 0; same && i < tensors[0].count; i++)
    same = !memcmp(tensors[0].at[i].data, tensors[1].at[i].data, tensors[0].at[i].bytes);
  for (int i = 0; i < 2; i++) api_free_tensors(&tensors[i]);
  return same;
}

static void run_on(snt_context *c, const api_model *m, const char *selector) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = selector};
  snt_device *d = NULL;
  snt_profile *profile = NULL;
  snt_graph *g = NULL;
  snt_program *loaded = NULL;
  if (snt_device_open(c, &open, &d, &diag) != SNT_OK) {
    tap_skip("no device %s", selector);
    return;
  }
  snt_device_profile(d, &profile);
  snt_graph_create(c, &g);
  m->build(g);
  snt_program *made = compile(c, g, profile, &diag);
  snt_graph_destroy(g); /* a program needs nothing of its graph */
  size_t size = 0;
  uint8_t *blob = made ? save(made, &size) : NULL;
  if (blob) snt_program_load(c, blob, size, &loaded, &diag);
  if (blob) memset(blob, 0xee, size); /* nor of its blob */
  free(blob);
  if (tap_ok(loaded != NULL, "%s on %s: saved and loaded", m->name, selector))
    for (uint32_t i = 0; i < m->size_count; i++)
      tap_ok(equal_runs(d, made, loaded, m, i, &diag), "%s on %s, sizes %u: the loaded program gives the same bytes", m->name, selector, i);
  if (diag.result) tap_diag("%s: %s", diag.stage, diag.text);
  snt_program_destroy(made);
  snt_program_destroy(loaded);
  snt_profile_destroy(profile);
  snt_device_destroy(d);
}

/* ---- bytes ---- */

static void check_texts(const snt_program *a, const snt_program *b, const char *name) {
  for (uint32_t format = 0; format <= SNT_EXPLAIN_PLAN; format++) {
    char *texts[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
      size_t length = 0;
      (void)snt_program_explain(i ? b : a, format, NULL, &length);
      texts[i] = malloc(length + 1);
      if (texts[i] && snt_program_explain(i ? b : a, format, texts[i], &length) != SNT_OK) texts[i][0] = 0;
    }
    tap_ok(texts[0][0] != 0, "%s: explanation %u is not empty", name, format);
    tap_is_text(texts[1], texts[0], "%s: explanation %u is the same after loading", name, format);
    free(texts[0]);
    free(texts[1]);
  }
}

static void check_bytes(snt_context *c, const api_model *m) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  uint8_t *blobs[3] = {NULL, NULL, NULL};
  size_t sizes[3] = {0, 0, 0};
  snt_program *programs[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 2; i++) {
    snt_graph *g = NULL;
    snt_graph_create(c, &g);
    m->build(g);
    programs[i] = compile(c, g, NULL, &diag);
    if (programs[i]) blobs[i] = save(programs[i], &sizes[i]);
    snt_graph_destroy(g);
  }
  if (tap_ok(blobs[0] && blobs[1], "%s: compiled and saved twice", m->name)) {
    tap_ok(sizes[0] == sizes[1] && !memcmp(blobs[0], blobs[1], sizes[0]), "%s: the same program gives the same %zu bytes", m->name,
           sizes[0]);
    const snt_result r = snt_program_load(c, blobs[0], sizes[0], &programs[2], &diag);
    if (!tap_is_int(r, SNT_OK, "%s: loads", m->name)) tap_diag("%s", diag.text);
    if (r == SNT_OK) {
      blobs[2] = save(programs[2], &sizes[2]);
      tap_ok(blobs[2] && sizes[2] == sizes[0] && !memcmp(blobs[0], blobs[2], sizes[0]), "%s: saved again, the same bytes", m->name);
      check_texts(programs[0], programs[2], m->name);
    }
  } else {
    tap_diag("%s: %s", diag.stage, diag.text);
  }
  for (int i = 0; i < 3; i++) free(blobs[i]), snt_program_destroy(programs[i]);
}

/* ---- damage ---- */

static uint32_t flips(snt_context *c, uint8_t *blob, size_t size) {
  uint32_t wrong = 0;
  for (size_t i = 0; i < size; i++) {
    snt_program *p = NULL;
    blob[i] ^= (uint8_t)(1u << (i % 8));
    if (snt_program_load(c, blob, size, &p, NULL) != SNT_E_BAD_BLOB || p) wrong++;
    blob[i] ^= (uint8_t)(1u << (i % 8));
    snt_program_destroy(p);
  }
  return wrong;
}

/* At its exact length, so that a read past the end is seen by a sanitizer. */
static uint32_t truncations(snt_context *c, const uint8_t *blob, size_t size) {
  uint32_t wrong = 0;
  for (size_t n = 0; n < size; n++) {
    snt_program *p = NULL;
    uint8_t *cut = malloc(n ? n : 1);
    memcpy(cut, blob, n);
    if (snt_program_load(c, cut, n, &p, NULL) != SNT_E_BAD_BLOB || p) wrong++;
    free(cut);
    snt_program_destroy(p);
  }
  return wrong;
}

/* Made wrong on purpose: one to four bytes changed and the checksum computed again. Loading either fails or gives a program that can be asked. */
static void forge(snt_context *c, const uint8_t *blob, size_t size, uint32_t tries, uint32_t *refused, uint32_t *odd) {
  uint8_t *forged = malloc(size);
  uint64_t seed = 1;
  for (uint32_t i = 0; i < tries; i++) {
    snt_program *p = NULL;
    memcpy(forged, blob, size);
    for (uint32_t k = 0; k <= i % 4; k++) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      const size_t at = BLOB_HEADER + (size_t)(seed >> 33) % (size - BLOB_HEADER);
      forged[at] = seed % 3 ? (uint8_t)(forged[at] + (seed >> 20) % 5 - 2) : (uint8_t)(seed >> 24);
    }
    blob_digest(forged, size, forged + BLOB_DIGEST_AT);
    const snt_result r = snt_program_load(c, forged, size, &p, NULL);
    *refused += r == SNT_E_BAD_BLOB;
    *odd += (r != SNT_OK && r != SNT_E_BAD_BLOB) || (r == SNT_OK) != (p != NULL);
    size_t length = 0;
    if (p) (void)snt_program_explain(p, SNT_EXPLAIN_JSON, NULL, &length);
    snt_program_destroy(p);
  }
  free(forged);
}

static void check_damage(snt_context *c, api_memory *memory) {
  snt_graph *g = NULL;
  snt_graph_create(c, &g);
  api_model_named("state")->build(g);
  snt_program *p = compile(c, g, NULL, NULL);
  size_t size = 0;
  uint8_t *blob = p ? save(p, &size) : NULL;
  if (!tap_ok(blob != NULL, "a small program is saved")) return;
  snt_program_destroy(p);
  snt_graph_destroy(g);
  const long long before = atomic_load(&memory->live);
  tap_is_int(flips(c, blob, size), 0, "each of %zu bytes flipped: a bad blob", size);
  tap_is_int(truncations(c, blob, size), 0, "each of %zu lengths: a bad blob", size);
  uint32_t refused = 0, odd = 0;
  forge(c, blob, size, 3000, &refused, &odd);
  tap_ok(refused > 1000, "of 3000 forged blobs %u are refused", refused);
  tap_is_int(odd, 0, "and every other one loads");
  tap_is_int(atomic_load(&memory->live) - before, 0, "nothing leaks");
  snt_diag diag = {.head = SNT_HEAD(diag)};
  tap_is_int(snt_program_load(c, NULL, 4, &p, &diag), SNT_E_ARG, "no blob");
  blob[8]++; /* the version */
  tap_is_int(snt_program_load(c, blob, size, &p, &diag), SNT_E_BAD_BLOB, "another version: %s", diag.text);
  size_t small = 10;
  tap_is_int(snt_program_save(NULL, NULL, &small), SNT_E_ARG, "no program");
  free(blob);
}

/* ---- numbers that fewer bytes hold ---- */

static const char dense[] = "graph @dense(%x: f32[4,64]) {\n  %w: f32[64,96] = const normal seed=3 scale=0.1\n"
                            "  %y = matmul %x, %w\n  return y=%y\n}\n";

static snt_result compile_dense(snt_context *c, uint32_t weights, snt_program **out, snt_diag *diag) {
  snt_graph *g = NULL;
  snt_profile *profile = NULL;
  snt_profile_builtin(c, "pocl", &profile);
  snt_graph_create(c, &g);
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .weights = weights};
  snt_result r = snt_graph_parse(g, dense, sizeof dense - 1, NULL, diag);
  if (r == SNT_OK) r = snt_compile(g, profile, &info, out, diag);
  snt_graph_destroy(g);
  snt_profile_destroy(profile);
  return r;
}

static uint32_t read_u32(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24; }

/* The first row of the constants that is stored as another type: its second word. Null: there is none. */
static uint8_t *stored_type(uint8_t *blob) {
  const uint8_t *section = blob + BLOB_HEADER + (BLOB_CONSTANTS - 1) * BLOB_ROW;
  uint8_t *row = blob + read_u32(section + 8);
  for (uint32_t i = 0; i < read_u32(section + 16); i += BLOB_ROW)
    if (read_u32(row + i + 4)) return row + i + 4;
  return NULL;
}

/* Bits that nobody knows are not passed over. */
static void refuse_unknown(snt_context *c) {
  static const char text[] = "graph @g(%x: f32[4]) {\n  %y = neg %x\n  return y=%y\n}\n";
  static const snt_compile_info infos[] = {{.head = SNT_HEAD(compile_info), .flags = 1 << 20},
                                           {.head = SNT_HEAD(compile_info), .targets = 1 << 20}};
  snt_diag diag = {.head = SNT_HEAD(diag)};
  snt_graph *g = NULL;
  snt_profile *profile = NULL;
  snt_program *p = NULL;
  (void)snt_graph_create(c, &g);
  (void)snt_graph_parse(g, text, sizeof text - 1, NULL, &diag);
  (void)snt_profile_builtin(c, "pocl", &profile);
  for (int i = 0; i < 2; i++) tap_is_int(snt_compile(g, profile, &infos[i], &p, &diag), SNT_E_ARG, "unknown bits: %s", diag.text);
  snt_profile_destroy(profile);
  snt_graph_destroy(g);
}

static void check_stored(snt_context *c) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  snt_program *p = NULL, *again = NULL;
  tap_is_int(compile_dense(c, SNT_WEIGHTS_I8 + 1, &p, &diag), SNT_E_ARG, "weights of no kind: %s", diag.text);
  refuse_unknown(c);
  tap_is_int(compile_dense(c, SNT_WEIGHTS_I8, &p, &diag), SNT_OK, "weights of eight bits");
  size_t size = 0;
  uint8_t *blob = p ? save(p, &size) : NULL, *type = blob ? stored_type(blob) : NULL;
  snt_program_destroy(p);
  if (!tap_ok(type != NULL, "panels of them are f32, and stored as they were")) return;
  tap_is_int(*type, SNT_I8, "as i8");
  static const uint8_t wrong[] = {SNT_F16, SNT_BF16, SNT_F32, 0, 255};
  for (uint32_t i = 0; i < IR_COUNT(wrong); i++) {
    *type = wrong[i];
    blob_digest(blob, size, blob + BLOB_DIGEST_AT);
    tap_is_int(snt_program_load(c, blob, size, &again, &diag), SNT_E_BAD_BLOB, "as type %u: %s", wrong[i], diag.text);
  }
  *type = SNT_I8;
  blob_digest(blob, size, blob + BLOB_DIGEST_AT);
  tap_is_int(snt_program_load(c, blob, size, &again, &diag), SNT_OK, "as it was, it loads");
  snt_program_destroy(again);
  free(blob);
}

static void check_target_names(void) {
  for (uint32_t t = 0; t < API_TARGETS; t++) {
    const codegen_target *generator = rt_codegen(api_targets[t].bit);
    tap_ok(generator && !strcmp(generator->name, api_targets[t].name), "the generator of target %s has that name", api_targets[t].name);
  }
}

int main(void) {
  static const char *const selectors[] = {"host", "interp", "opencl:pocl", "vulkan:0"};
  api_memory memory = {0, 0, 0};
  host_prepare_drivers(NULL);
  snt_context *c = api_context(&memory);
  for (uint32_t i = 0; i < api_model_count; i++) check_bytes(c, &api_models[i]);
  check_damage(c, &memory);
  check_stored(c);
  check_target_names();
  for (uint32_t i = 0; i < api_model_count; i++)
    for (uint32_t d = 0; d < sizeof selectors / sizeof *selectors; d++) run_on(c, &api_models[i], selectors[d]);
  snt_context_destroy(c);
  tap_is_int(atomic_load(&memory.live), 0, "all memory is given back");
  return tap_done();
}
