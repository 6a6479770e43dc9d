/* Model texts that nobody meant: thousands of mutations of good ones, each parsed, verified and, if it is still a graph, compiled for the
   interpreter. No crash, no leak, an error with its place. api_garbage [MUTATIONS [FIRST SEED]]; run from the project's root. */
#include "api/handles.h"
#include "tests/tap.h"
#include "tests/unit/api_support.h"
#include "tools/host/host.h"
#include <glob.h>
#include <time.h>

enum { MAX_TEXT = 1 << 16 };
typedef struct seed_text {
  char *text;
  size_t size;
  const char *path;
} seed_text;
typedef struct counts {
  uint32_t parsed, verified, compiled, too_large, slow, without_place, odd;
} counts;

/* ---- mutation ---- */

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state * 0x2545f4914f6cdd1du >> 16;
}

static size_t put(char *text, size_t size, size_t at, size_t cut, const char *piece, size_t length) {
  if (at + cut > size) cut = size - at;
  if (size - cut + length >= MAX_TEXT) return size;
  memmove(text + at + length, text + at + cut, size - at - cut);
  memcpy(text + at, piece, length);
  return size - cut + length;
}

static size_t token_end(const char *text, size_t size, size_t at) {
  while (at < size && !strchr(" \n,[]()=%", text[at])) at++;
  return at > size ? size : at;
}

static size_t mutate(char *text, size_t size, uint64_t *state) {
  static const char *const words[] = {"0",          "-1",         "1",
                                      "7",          "4294967296", "9223372036854775807",
                                      "n",          "h",          "%x",
                                      "%1",         "f16",        "i8",
                                      "bool",       "f32[0]",     "f32[1,1,1,1,1,1,1,1]",
                                      "axes=[0]",   "axis=-1",    "keep",
                                      "reduce.sum", "softmax",    "matmul",
                                      "broadcast",  "transpose",  "gather",
                                      "repeat",     "const",      "normal seed=1",
                                      "update",     "return",     "nan",
                                      "\"",         "}",          "{",
                                      "[",          "]",          ",",
                                      "=",          "stride=[0]", "min=0",
                                      "max=0",      "conv",       "concat",
                                      "\n",         "must_fuse"};
  size_t at = size ? next_random(state) % size : 0;
  const size_t end = token_end(text, size, at), other = size ? next_random(state) % size : 0;
  char piece[64];
  size_t length = token_end(text, size, other) - other;
  if (length > sizeof piece) length = sizeof piece;
  memcpy(piece, text + other, length);
  switch (next_random(state) % 6) {
  case 0: return text[at] = (char)next_random(state), size;
  case 1: return text[at] = (char)('0' + next_random(state) % 10), size;
  case 2: return put(text, size, at, end - at, piece, length); /* a token becomes another of the text */
  case 3: return put(text, size, at, end - at, "", 0);
  case 4: return put(text, size, at, 0, piece, length);
  default: break;
  }
  const char *word = words[next_random(state) % (sizeof words / sizeof *words)];
  return put(text, size, at, next_random(state) % 2 ? end - at : 0, word, strlen(word));
}

/* ---- one text ---- */

static bool is_large(snt_graph *g) {
  for (uint32_t n = 1; n < g->graph.nodes.count; n++) {
    int64_t count;
    const ir_expr elements = ir_tensor_elements(&g->pool, &g->graph.nodes.at[n].type);
    if (g->pool.failed) return true;
    if (expr_is_const(&g->pool, elements, &count) && count > 1 << 20) return true;
  }
  return g->graph.nodes.count > 400;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
static int SNT_CALL too_long(void *user, const char *stage, double fraction) {
  (void)stage;
  (void)fraction;
  return now() > *(double *)user;
}

static void try_compile(snt_context *c, snt_graph *g, const snt_profile *profile, counts *to) {
  double limit = now() + 2;
  snt_program *p = NULL;
  snt_diag diag = {.head = SNT_HEAD(diag)};
  const snt_compile_info info = {
      .head = SNT_HEAD(compile_info), .targets = SNT_TARGET_HOST | SNT_TARGET_OPENCL, .user = &limit, .progress = too_long};
  (void)c;
  const snt_result r = snt_compile(g, profile, &info, &p, &diag);
  to->compiled += r == SNT_OK;
  to->slow += r == SNT_E_CANCELLED;
  if (r == SNT_E_INTERNAL && to->odd++ < 10) {
    size_t length = 0;
    (void)snt_graph_print(g, NULL, &length);
    char *text = malloc(length + 1);
    tap_diag("an internal error: %s: %s", diag.stage, diag.text);
    if (text && snt_graph_print(g, text, &length) == SNT_OK) tap_diag_text(text);
    free(text);
  }
  snt_program_destroy(p);
}

static void try_text(snt_context *c, const snt_profile *profile, const char *text, size_t size, counts *to) {
  snt_graph *g = NULL;
  snt_diag diag = {.head = SNT_HEAD(diag)};
  char *exact = malloc(size ? size : 1); /* its own block: a sanitizer sees a read past the end */
  memcpy(exact, text, size);
  snt_graph_create(c, &g);
  snt_result r = snt_graph_parse(g, exact, size, NULL, &diag);
  if (r != SNT_OK && !strchr(diag.text, ':')) to->without_place++;
  to->parsed += r == SNT_OK;
  if (r == SNT_OK) r = snt_graph_verify(g, &diag);
  to->verified += r == SNT_OK;
  if (r == SNT_OK && is_large(g)) to->too_large++;
  else if (r == SNT_OK) try_compile(c, g, profile, to);
  snt_graph_destroy(g);
  free(exact);
}

static void save_last(const char *text, size_t size) {
  const char *path = getenv("SNT_TEST_KEEP"); /* to have the text after a crash */
  if (path) host_write_file(path, text, size, NULL);
}

static void fuzz(snt_context *c, const seed_text *seeds, uint32_t seed_count, uint32_t mutations, uint64_t first) {
  snt_profile *profile = NULL;
  counts to = {0};
  static char text[MAX_TEXT];
  snt_profile_builtin(c, "pocl", &profile);
  for (uint32_t i = 0; i < mutations; i++) {
    uint64_t state = (first + i) * 0x9e3779b97f4a7c15u | 1;
    const seed_text *s = &seeds[next_random(&state) % seed_count];
    size_t size = s->size;
    memcpy(text, s->text, size);
    for (uint32_t k = 1 + (uint32_t)(next_random(&state) % 3); k > 0; k--) size = mutate(text, size, &state);
    save_last(text, size);
    try_text(c, profile, text, size, &to);
  }
  tap_diag("%u parsed, %u hold, %u too large, %u compiled, %u took too long", to.parsed, to.verified, to.too_large, to.compiled, to.slow);
  tap_ok(to.parsed > mutations / 50 && to.parsed < mutations, "%u mutations of %u texts: some are graphs, some are not", mutations,
         seed_count);
  tap_is_int(to.without_place, 0, "every parse error says where");
  tap_is_int(to.odd, 0, "no graph that holds is an internal error");
  snt_profile_destroy(profile);
}

static uint32_t read_seeds(seed_text *seeds, uint32_t room) {
  static const char *const patterns[] = {"examples/*.snt", "tests/golden/graph/*.snt", "tests/patterns/*.snt"};
  uint32_t count = 0;
  for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
    glob_t found;
    if (glob(patterns[p], 0, NULL, &found)) continue;
    for (size_t i = 0; i < found.gl_pathc && count < room; i++) {
      void *data;
      size_t size;
      if (host_read_file(found.gl_pathv[i], &data, &size, NULL) != SNT_OK) continue;
      if (size < MAX_TEXT / 4) seeds[count++] = (seed_text){data, size, NULL};
      else free(data);
    }
    globfree(&found);
  }
  return count;
}

int main(int argc, char **argv) {
  static seed_text seeds[256];
  api_memory memory = {0, 0, 0};
  const uint32_t count = read_seeds(seeds, 256);
  snt_context *c = api_context(&memory);
  if (!tap_ok(count >= 5, "%u texts to start from", count)) return tap_done();
  fuzz(c, seeds, count, argc > 1 ? (uint32_t)atoi(argv[1]) : 10000, argc > 2 ? (uint64_t)atoll(argv[2]) : 1);
  for (uint32_t i = 0; i < count; i++) free(seeds[i].text);
  snt_context_destroy(c);
  tap_is_int(atomic_load(&memory.live), 0, "all memory is given back");
  return tap_done();
}
