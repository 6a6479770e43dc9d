/* Host memory that runs out at the n-th call while an ONNX model is imported from memory and compiled: SNT_E_HOST_MEM, however many calls came behind it
   and whatever saw it first (a compile that went on without what it asked for gave a program whose answers were wrong), and nothing is kept.
     onnx_faults [FILE..] : those of tests/fuzz/corpus/onnx that import without a decoder of pictures. */
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

static snt_result live(snt_context *c, size_t size, snt_diag *diag) {
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  snt_program *program = NULL;
  const snt_onnx_info info = {.head = SNT_HEAD(onnx_info), .unsupported = refuse};
  refused = 0;
  snt_result r = snt_graph_create(c, &graph);
  if (r == SNT_OK) r = snt_onnx_import(graph, file, size, &info, diag);
  if (r == SNT_OK) r = snt_profile_builtin(c, "pocl", &profile);
  if (r == SNT_OK) r = snt_compile(graph, profile, NULL, &program, diag);
  snt_program_destroy(program);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return r;
}

/* Whether the model is one that imports; each of the first calls fails, then further and further apart ones, until all are behind. */
static bool starve(const char *name, size_t size) {
  uint32_t tries = 0, odd = 0, leaks = 0;
  for (long long n = 0;; n += n <= DENSE ? 1 : n / 8 + 1) {
    api_memory memory = {0, 0, n};
    snt_diag diag = {.head = SNT_HEAD(diag)};
    snt_context *c = api_context(&memory);
    const snt_result r = c ? live(c, size, &diag) : SNT_E_HOST_MEM;
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
  return tap_ok(!odd && !leaks, "%s: %u failures are all told as such, and nothing is kept", name, tries - 2);
}

static uint32_t starve_file(const char *path, const char *name) {
  FILE *f = fopen(path, "rb");
  const size_t size = f ? fread(file, 1, sizeof file, f) : 0;
  if (f) fclose(f);
  return size && size < sizeof file && starve(name, size);
}

int main(int argc, char **argv) {
  static const char folder[] = "tests/fuzz/corpus/onnx";
  uint32_t count = 0;
  for (int i = 1; i < argc; i++) count += starve_file(argv[i], argv[i]);
  DIR *dir = argc > 1 ? NULL : opendir(folder);
  for (struct dirent *item; dir && (item = readdir(dir));) {
    char path[512];
    if (item->d_name[0] != '.' && snprintf(path, sizeof path, "%s/%s", folder, item->d_name) < (int)sizeof path)
      count += starve_file(path, item->d_name);
  }
  if (dir) closedir(dir);
  tap_ok(argc > 1 ? count > 0 : count >= 25, "%u models", count);
  return tap_done();
}
