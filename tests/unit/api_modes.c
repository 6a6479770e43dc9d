/* The numerics mode is in the key of the cache by way of the code that it makes. One graph in the four modes: programs differ, keys differ
   exactly where code does, and a cache that another mode has filled is a hit for the same code only and never changes an answer. */
#include "tests/tap.h"
#include "tests/unit/api_support.h"
#include "tools/host/host.h"

enum { MODES = 4, ENTRIES = 64, JOBS = 16 };
static const uint32_t modes[MODES] = {SNT_NUMERICS_DEFAULT, SNT_NUMERICS_STRICT, SNT_NUMERICS_FAST, SNT_NUMERICS_REPRODUCIBLE};
static const char *const mode_names[MODES] = {"DEFAULT", "STRICT", "FAST", "REPRODUCIBLE"};

/* ---- a cache in memory ---- */
typedef struct entry {
  uint8_t key[32];
  void *data;
  size_t size;
} entry;
typedef struct cache {
  entry at[ENTRIES];
  uint32_t count, hits;
} cache;

static entry *find(cache *c, const uint8_t key[32]) {
  for (uint32_t i = 0; i < c->count; i++)
    if (!memcmp(c->at[i].key, key, 32)) return &c->at[i];
  return NULL;
}
static snt_result SNT_CALL cache_get(void *user, const uint8_t key[32], void *dst, size_t *size) {
  cache *c = user;
  const entry *e = find(c, key);
  if (!e) return SNT_E_ARG;
  const size_t room = *size;
  *size = e->size;
  if (!dst || room < e->size) return SNT_INCOMPLETE;
  memcpy(dst, e->data, e->size);
  c->hits++;
  return SNT_OK;
}
static void SNT_CALL cache_set(void *user, const uint8_t key[32], const void *src, size_t size) {
  cache *c = user;
  entry *e = find(c, key);
  void *data = malloc(size);
  if (!data || (!e && c->count == ENTRIES)) {
    free(data);
    return;
  }
  if (!e) e = &c->at[c->count++];
  free(e->data);
  memcpy(data, src, size);
  memcpy(e->key, key, 32);
  e->data = data, e->size = size;
}
static void cache_empty(cache *c) {
  for (uint32_t i = 0; i < c->count; i++) free(c->at[i].data);
  *c = (cache){.count = 0};
}

/* ---- one mode on one device ---- */
typedef struct job {
  uint8_t key[32];
  void *code;
  size_t size;
  bool hit;
} job;
typedef struct made {
  uint32_t count;
  job jobs[JOBS];
  void *blob;
  size_t blob_size;
  api_tensors tensors;
} made;

/* A function with a cheap form (of log each device has one), sums whose order the mode gives, a division: code of each mode's own. And moves, which are the same in modes that ask
   the same of a module. */
static const struct {
  const char *name, *text;
  bool own;
} graphs[] = {{"numbers",
               "graph @numbers(%x: f32[24,80]) {\n  %a = abs %x\n  %e = log %a\n  %s = softmax %e, axis=1\n  %r = reduce.sum %x, axes=[1]\n"
               "  %q = div %r, 3.0\n  return s=%s, q=%q\n}\n",
               true},
              {"moves", "graph @moves(%y: f32[20,30]) {\n  %t = transpose %y, perm=[1,0]\n  return t=%t\n}\n", false}};

static snt_result compile(snt_context *c, snt_device *d, const char *text, uint32_t mode, snt_program **out, snt_diag *diag) {
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .numerics = mode};
  snt_graph *g = NULL;
  snt_profile *profile = NULL;
  snt_result r = snt_graph_create(c, &g);
  if (r == SNT_OK) r = snt_graph_parse(g, text, strlen(text), NULL, diag);
  if (r == SNT_OK) r = snt_device_profile(d, &profile);
  if (r == SNT_OK) r = snt_compile(g, profile, &info, out, diag);
  snt_profile_destroy(profile);
  snt_graph_destroy(g);
  return r;
}

static bool keep_blob(const snt_program *p, made *out) {
  if (snt_program_save(p, NULL, &out->blob_size) != SNT_INCOMPLETE) return false;
  out->blob = malloc(out->blob_size);
  return out->blob && snt_program_save(p, out->blob, &out->blob_size) == SNT_OK;
}

/* A job's code is that of the kernel of its name. */
static bool keep_job(const snt_program *p, uint32_t target, const snt_exec *x, uint32_t number, job *out) {
  snt_job said = {.head = {SNT_TYPE_job, sizeof said, NULL}};
  snt_kernel k = {.head = {SNT_TYPE_kernel, sizeof k, NULL}};
  if (snt_exec_job(x, number, &said) != SNT_OK) return false;
  for (uint32_t i = 0; i < snt_program_kernel_count(p) && !out->code; i++) {
    if (snt_program_kernel(p, i, target, &k) != SNT_OK || strcmp(k.name, said.name)) continue;
    out->code = malloc(k.code_size), out->size = k.code_size;
    if (out->code) memcpy(out->code, k.code, k.code_size);
  }
  memcpy(out->key, said.key, sizeof out->key);
  out->hit = said.from_cache != 0;
  return out->code != NULL;
}

static snt_result run_mode(const char *selector, const char *text, uint32_t mode, cache *c, made *out, snt_diag *diag) {
  const snt_context_info info = {
      .head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION, .cache = {.user = c, .get = cache_get, .set = cache_set}};
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = selector};
  snt_device_info about = {.head = {SNT_TYPE_device_info, sizeof about, NULL}};
  snt_context *context = NULL;
  snt_device *d = NULL;
  snt_program *p = NULL;
  snt_exec *x = NULL;
  *out = (made){.count = 0};
  snt_result r = snt_context_create(&info, &context);
  if (r == SNT_OK) r = snt_device_open(context, &open, &d, diag);
  if (r == SNT_OK) r = snt_device_get_info(d, &about);
  if (r == SNT_OK) r = compile(context, d, text, mode, &p, diag);
  if (r == SNT_OK && (!keep_blob(p, out) || !api_make_tensors(p, NULL, 7, &out->tensors))) r = SNT_E_HOST_MEM;
  if (r == SNT_OK) r = snt_exec_create(d, p, NULL, &x, diag);
  if (r == SNT_OK) r = snt_exec_prepare(x, diag);
  for (uint32_t i = 0; r == SNT_OK && i < snt_exec_job_count(x); i++)
    if (i == JOBS || !keep_job(p, about.api, x, out->count++, &out->jobs[i])) r = SNT_E_LIMIT;
  if (r == SNT_OK) r = api_run_once(d, x, &out->tensors, API_HOST_MEMORY, NULL, diag);
  snt_exec_destroy(x);
  snt_program_destroy(p);
  snt_device_destroy(d);
  snt_context_destroy(context);
  return r;
}

static void drop(made *m) {
  for (uint32_t i = 0; i < m->count; i++) free(m->jobs[i].code);
  free(m->blob);
  api_free_tensors(&m->tensors);
}

/* ---- what must hold ---- */
static bool same_code(const job *a, const job *b) { return a->size == b->size && !memcmp(a->code, b->code, a->size); }
static bool same_key(const job *a, const job *b) { return !memcmp(a->key, b->key, sizeof a->key); }

/* Pairs of jobs whose keys are equal although their code is not, or the other way round; and jobs of `a` whose code `b` lacks. */
static void compare(const made *a, const made *b, uint32_t *wrong, uint32_t *own) {
  *wrong = *own = 0;
  for (uint32_t i = 0; i < a->count; i++) {
    bool found = false;
    for (uint32_t k = 0; k < b->count; k++) {
      const bool code = same_code(&a->jobs[i], &b->jobs[k]);
      *wrong += code != same_key(&a->jobs[i], &b->jobs[k]);
      found = found || code;
    }
    *own += !found;
  }
}

static bool same_answers(const made *a, const made *b) {
  bool same = a->tensors.count == b->tensors.count;
  for (uint32_t i = 0; same && i < a->tensors.count; i++)
    same = !memcmp(a->tensors.at[i].data, b->tensors.at[i].data, a->tensors.at[i].bytes);
  return same;
}

static void check_pairs(const char *selector, uint32_t g, const made *alone) {
  for (uint32_t a = 0; a < MODES; a++)
    for (uint32_t b = a + 1; b < MODES; b++) {
      uint32_t wrong, own;
      compare(&alone[a], &alone[b], &wrong, &own);
      tap_is_int(wrong, 0, "%s, %s: keys of %s and %s differ where the code does", selector, graphs[g].name, mode_names[a], mode_names[b]);
      if (graphs[g].own)
        tap_ok(own > 0, "%s, %s: %u of %u kernels are no kernels of the other", selector, graphs[g].name, own, alone[a].count);
      tap_ok(alone[a].blob_size != alone[b].blob_size || memcmp(alone[a].blob, alone[b].blob, alone[a].blob_size),
             "%s, %s: as saved programs they differ", selector, graphs[g].name);
    }
}

/* The modes one after the other into one cache. */
static uint32_t check_shared(const char *selector, uint32_t g, const made *alone, bool backwards) {
  cache shared = {.count = 0};
  uint32_t all = 0;
  for (uint32_t n = 0; n < MODES; n++) {
    const uint32_t m = backwards ? MODES - 1 - n : n;
    made now;
    snt_diag diag = {.head = SNT_HEAD(diag)};
    uint32_t wrong = 0;
    const snt_result r = run_mode(selector, graphs[g].text, modes[m], &shared, &now, &diag);
    if (!tap_is_int(r, SNT_OK, "%s, %s: %s after %u others %s", selector, graphs[g].name, mode_names[m], n, diag.text)) return 0;
    for (uint32_t i = 0; i < now.count; i++) {
      bool known = false;
      for (uint32_t before = 0; before < n; before++) {
        const made *other = &alone[backwards ? MODES - 1 - before : before];
        for (uint32_t k = 0; k < other->count; k++) known = known || same_code(&now.jobs[i], &other->jobs[k]);
      }
      wrong += now.jobs[i].hit != known, all += now.jobs[i].hit;
    }
    tap_is_int(wrong, 0, "%s, %s: those of its %u kernels are hits whose code another mode has", selector, graphs[g].name, now.count);
    tap_ok(same_answers(&now, &alone[m]), "%s, %s: %s gives the bits that it gives alone", selector, graphs[g].name, mode_names[m]);
    drop(&now);
  }
  cache_empty(&shared);
  return all;
}

/* Some drivers crash on damaged binaries: none sees one. */
static void check_damaged(const char *selector, uint32_t g, uint32_t m, const made *alone, cache *full) {
  made now;
  snt_diag diag = {.head = SNT_HEAD(diag)};
  uint32_t hits = 0;
  for (uint32_t i = 0; i < full->count; i++) ((uint8_t *)full->at[i].data)[full->at[i].size / 2] ^= 1;
  if (!tap_is_int(run_mode(selector, graphs[g].text, modes[m], full, &now, &diag), SNT_OK, "%s: with damaged binaries %s", selector,
                  diag.text))
    return;
  for (uint32_t i = 0; i < now.count; i++) hits += now.jobs[i].hit;
  tap_is_int(hits, 0, "%s: a damaged binary is no hit", selector);
  tap_ok(same_answers(&now, alone), "%s: and changes no answer", selector);
  drop(&now);
  if (!tap_is_int(run_mode(selector, graphs[g].text, modes[m], full, &now, &diag), SNT_OK, "%s: once more %s", selector, diag.text)) return;
  for (uint32_t i = 0; i < now.count; i++) hits += now.jobs[i].hit;
  tap_is_int(hits, now.count, "%s: whole ones have replaced them", selector);
  drop(&now);
}

/* How many hits there were; UINT32_MAX: there is no such device. */
static uint32_t check_graph(const char *selector, uint32_t g) {
  made alone[MODES];
  cache own[MODES] = {{.count = 0}};
  snt_diag diag = {.head = SNT_HEAD(diag)};
  for (uint32_t m = 0; m < MODES; m++) {
    const snt_result r = run_mode(selector, graphs[g].text, modes[m], &own[m], &alone[m], &diag);
    if (!m && r == SNT_E_UNSUPPORTED) return UINT32_MAX;
    if (!tap_is_int(r, SNT_OK, "%s, %s: %s %s", selector, graphs[g].name, mode_names[m], diag.text)) return 0;
    tap_ok(own[m].count > 0, "%s, %s: %u binaries are stored", selector, graphs[g].name, own[m].count);
  }
  check_pairs(selector, g, alone);
  const uint32_t hits = check_shared(selector, g, alone, false) + check_shared(selector, g, alone, true);
  check_damaged(selector, g, 0, &alone[0], &own[0]);
  for (uint32_t m = 0; m < MODES; m++) drop(&alone[m]), cache_empty(&own[m]);
  return hits;
}

int main(void) {
  static const char *const selectors[] = {"opencl:pocl", "vulkan:llvmpipe", "vulkan:swiftshader"};
  host_prepare_drivers(NULL);
  for (uint32_t d = 0; d < sizeof selectors / sizeof *selectors; d++) {
    const uint32_t hits = check_graph(selectors[d], 0);
    if (hits == UINT32_MAX) tap_skip("no device %s", selectors[d]);
    else tap_is_int(hits, 0, "%s: no mode's numbers are another's", selectors[d]);
    if (hits != UINT32_MAX) tap_ok(check_graph(selectors[d], 1) > 0, "%s: moves are shared", selectors[d]);
  }
  return tap_done();
}
