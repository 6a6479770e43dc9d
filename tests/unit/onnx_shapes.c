/* One compiled program for every batch and length: all-MiniLM (SNT_MINILM names its model.onnx; skipped aloud without) is compiled once for
   a device and run at many extents, each against the host's evaluator. onnx_shapes [DEVICE ..]; batches to 8 and tokens to 256 with
   SNT_TEST_FULL. */
#include "tests/tap.h"
#include "tools/host/host.h"
#include <sinter/sinter_onnx.h>

enum { HIDDEN = 384, MAX_BATCH = 8, MAX_TOKENS = 256 };
typedef struct side {
  snt_device *device;
  snt_program *program;
  snt_exec *exec;
  float out[MAX_BATCH * HIDDEN];
} side;
static int64_t ids[MAX_BATCH * MAX_TOKENS], mask[MAX_BATCH * MAX_TOKENS];

static snt_result open_side(snt_context *c, snt_graph *g, const char *selector, side *s, snt_diag *diag) {
  const snt_open_info info = {.head = SNT_HEAD(open_info), .selector = selector};
  snt_profile *profile = NULL;
  snt_result r = snt_device_open(c, &info, &s->device, diag);
  if (r == SNT_OK) r = snt_device_profile(s->device, &profile);
  if (r == SNT_OK) r = snt_compile(g, profile, NULL, &s->program, diag);
  if (r == SNT_OK) r = snt_exec_create(s->device, s->program, NULL, &s->exec, diag);
  if (r == SNT_OK) r = snt_exec_prepare(s->exec, diag);
  snt_profile_destroy(profile);
  return r;
}

static void close_side(side *s) {
  snt_exec_destroy(s->exec);
  snt_program_destroy(s->program);
  snt_device_destroy(s->device);
}

static snt_result run_side(side *s, uint32_t batch, uint32_t tokens, snt_diag *diag) {
  int64_t symbols[2] = {0};
  uint32_t port[3];
  for (uint32_t i = 0; i < 2; i++) {
    snt_symbol symbol;
    const snt_result r = snt_program_symbol(s->program, i, &symbol);
    if (r != SNT_OK) return r;
    symbols[i] = strcmp(symbol.name, "batch") ? tokens : batch;
  }
  (void)snt_program_find_port(s->program, "input_ids", &port[0]);
  (void)snt_program_find_port(s->program, "attention_mask", &port[1]);
  (void)snt_program_find_port(s->program, "embedding", &port[2]);
  const uint64_t words = (uint64_t)batch * tokens * 8;
  const snt_argument arguments[] = {
      {port[0], 0, NULL, 0, ids, words}, {port[1], 0, NULL, 0, mask, words}, {port[2], 0, NULL, 0, s->out, (uint64_t)batch * HIDDEN * 4}};
  const snt_run_info run = {SNT_HEAD(run_info), 3, 0, arguments, symbols, 2};
  return snt_run(s->exec, &run, diag);
}

/* Words from the vocabulary; the last quarter of every second sentence is padding. */
static void fill(uint32_t batch, uint32_t tokens) {
  for (uint32_t b = 0; b < batch; b++)
    for (uint32_t t = 0; t < tokens; t++) {
      ids[b * tokens + t] = 1000 + (b * 7919 + t * 104729) % 20000;
      mask[b * tokens + t] = b % 2 == 0 || t * 4 < tokens * 3 || t == 0;
    }
}

static void compare(side *host, side *device, uint32_t batch, uint32_t tokens, const char *selector) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  double worst = 0;
  fill(batch, tokens);
  memset(device->out, 0xff, sizeof device->out);
  snt_result r = run_side(host, batch, tokens, &diag);
  if (r == SNT_OK) r = run_side(device, batch, tokens, &diag);
  for (uint32_t i = 0; i < batch * HIDDEN; i++) {
    const double error = fabs((double)device->out[i] - (double)host->out[i]);
    if (!(error <= worst)) worst = error;
  }
  const bool near = r == SNT_OK && worst <= 1e-5;
  if (!tap_result(near, __FILE__, __LINE__, "%s: batch %u, %u tokens: within %.2g", selector, batch, tokens, worst))
    tap_diag("%d %s", r, diag.text);
}

static void check_device(snt_context *c, snt_graph *g, side *host, const char *selector) {
  static const uint32_t few[][2] = {{1, 1}, {3, 7}, {8, 12}, {1, 33}};
  static const uint32_t all[][2] = {{1, 1}, {2, 2}, {8, 1}, {1, 256}, {5, 63}, {6, 64}, {7, 65}, {3, 129}, {4, 200}, {8, 255}, {8, 256}};
  static side device;
  snt_diag diag = {.head = SNT_HEAD(diag)};
  device = (side){0};
  const snt_result r = open_side(c, g, selector, &device, &diag);
  if (r != SNT_OK && !device.device) {
    tap_skip("%s: %s", selector, diag.text);
    close_side(&device);
    return;
  }
  if (!tap_result(r == SNT_OK, __FILE__, __LINE__, "%s: compiled once", selector)) tap_diag("%d %s", r, diag.text);
  for (uint32_t i = 0; r == SNT_OK && i < sizeof few / sizeof *few; i++) compare(host, &device, few[i][0], few[i][1], selector);
  for (uint32_t i = 0; r == SNT_OK && getenv("SNT_TEST_FULL") && i < sizeof all / sizeof *all; i++)
    compare(host, &device, all[i][0], all[i][1], selector);
  close_side(&device);
}

int main(int argc, char **argv) {
  const char *model = getenv("SNT_MINILM");
  static side host;
  snt_context *context = NULL;
  snt_graph *graph = NULL;
  snt_diag diag = {.head = SNT_HEAD(diag)};
  if (!model) {
    tap_skip("SNT_MINILM names no model.onnx");
    return tap_done();
  }
  host_prepare_drivers(NULL);
  snt_result r = snt_context_create(NULL, &context);
  if (r == SNT_OK) r = snt_graph_create(context, &graph);
  if (r == SNT_OK) r = snt_onnx_import_file(graph, model, NULL, &diag);
  if (r == SNT_OK) r = open_side(context, graph, "host", &host, &diag);
  if (!tap_result(r == SNT_OK, __FILE__, __LINE__, "MiniLM is imported")) tap_diag("%d %s", r, diag.text);
  for (int i = 1; r == SNT_OK && i < argc; i++) check_device(context, graph, &host, argv[i]);
  if (r == SNT_OK && argc < 2) check_device(context, graph, &host, "opencl:pocl");
  close_side(&host);
  snt_graph_destroy(graph);
  snt_context_destroy(context);
  return tap_done();
}
