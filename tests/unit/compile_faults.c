/* Host memory that runs out at the n-th call while a graph is read, from ONNX in memory or from text, and compiled: SNT_E_HOST_MEM, however many calls came
   behind it and whatever saw it first (a compile that went on without what it asked for gave a program whose answers were wrong), never a crash, and
   nothing is kept.
     compile_faults [FILE..] : without, those of tests/fuzz/corpus/onnx that import without a decoder of pictures, and some of tests/patterns. */
#include "tests/tap.h"
#include "tests/unit/api_support.h"
#include <dirent.h>
#include <sinter/sinter_onnx.h>

enum { MOST_BYTES = 1 << 20, DENSE = 60 };
static uint8_t file[MOST_BYTES];
static uint32_t refused; /* nodes: want of memory is no fault of theirs */
static void SNT_CALL refuse(void *user, const char *node, const char *op, const char *reason) {
  (void)user, (void)node, (void)op, (void)reason;
  refused++;
}

static snt_result read_graph(snt_graph *g, const char *name, size_t size, snt_diag *diag) {
  const snt_onnx_info info = {.head = SNT_HEAD(onnx_info), .unsupported = refuse};
  refused = 0;
  if (strstr(name, ".snt")) return snt_graph_parse(g, (const char *)file, size, NULL, diag);
  return snt_onnx_import(g, file, size, &info, diag);
}

static snt_result live(snt_context *c, const char *name, size_t size, const char *profile_name, snt_diag *diag) {
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  snt_program *program = NULL;
  snt_result r = snt_graph_create(c, &graph);
  if (r == SNT_OK) r = read_graph(graph, name, size, diag);
  if (r == SNT_OK) r = snt_profile_builtin(c, profile_name, &profile);
  if (r == SNT_OK) r = snt_compile(graph, profile, NULL, &program, diag);
  snt_program_destroy(program);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return r;
}

/* Whether the graph is one that is read; each of the first calls fails, then further and further apart ones, until all are behind. */
static bool starve(const char *name, size_t size, const char *profile) {
  uint32_t tries = 0, odd = 0, leaks = 0;
  for (long long n = 0;; n += n <= DENSE ? 1 : n / 8 + 1) {
    api_memory memory = {0, 0, n};
    snt_diag diag = {.head = SNT_HEAD(diag)};
    snt_context *c = api_context(&memory);
    const snt_result r = c ? live(c, name, size, profile, &diag) : SNT_E_HOST_MEM;
    const bool reached = n && atomic_load(&memory.calls) >= n;
    snt_context_destroy(c);
    if (!n && r != SNT_OK) return false;
    if ((r != (reached ? SNT_E_HOST_MEM : SNT_OK) || refused) && odd++ < 5)
      tap_diag("%s: call %lld fails: result %d, %s: %s", name, n, r, diag.stage, diag.text);
    if (atomic_load(&memory.live) && leaks++ < 5)
      tap_diag("%s: call %lld fails: %lld bytes kept", name, n, (long long)atomic_load(&memory.live));
    tries++;
    if (n && !reached) break;
  }
  return tap_ok(!odd && !leaks, "%s for %s: %u failures are all told as such, and nothing is kept", name, profile, tries - 2);
}

static uint32_t starve_file(const char *folder, const char *name) {
  char path[512];
  FILE *f = snprintf(path, sizeof path, "%s%s", folder, name) < (int)sizeof path ? fopen(path, "rb") : NULL;
  const size_t size = f ? fread(file, 1, sizeof file, f) : 0;
  if (f) fclose(f);
  static const char *const profiles[] = {"pocl", "h100", "lavapipe", "interp"};
  bool read = size && size < sizeof file;
  for (uint32_t i = 0; read && i < sizeof profiles / sizeof *profiles; i++) read = starve(name, size, profiles[i]);
  return read;
}

int main(int argc, char **argv) {
  static const char corpus[] = "tests/fuzz/corpus/onnx/", patterns[] = "tests/patterns/";
  static const char *const texts[] = {"p02_diamond.snt",         "p03_remat_kept.snt",         "p04_horizontal.snt",
                                      "p08_softmax.snt",         "p11_disguise1.snt",          "p12_disguise1.snt",
                                      "p13_dequant_weights.snt", "p16_winograd_disguise1.snt", "p16_winograd_odd_disguise1.snt"};
  uint32_t count = 0;
  for (int i = 1; i < argc; i++) count += starve_file("", argv[i]);
  if (argc > 1) {
    tap_is_int((int)count, argc - 1, "all of them");
    return tap_done();
  }
  DIR *dir = opendir(corpus);
  for (struct dirent *item; dir && (item = readdir(dir));)
    if (item->d_name[0] != '.') count += starve_file(corpus, item->d_name);
  if (dir) closedir(dir);
  tap_ok(count >= 25, "%u models", count);
  for (uint32_t i = 0; i < sizeof texts / sizeof *texts; i++) starve_file(patterns, texts[i]);
  return tap_done();
}
