/* The whole way in one file: a graph, compiled for the best device there is, run on host memory.
   minimal [DEVICE], for example `minimal opencl:pocl`. */
#include <sinter/ops.h>
#include <stdio.h>

static snt_value build(snt_graph *g) {
  const snt_symbol batch = {"n", 1, 4096, 1, 64};
  const int64_t n = -(int64_t)snt_graph_symbol(g, &batch) - 1; /* an extent that is known when it runs */
  const snt_tensor rows = {SNT_F32, 2, {n, 8}}, weights = {SNT_F32, 2, {8, 4}};
  const snt_value x = snt_graph_input(g, "x", &rows), w = snt_graph_input(g, "w", &weights);
  const snt_value hidden = snt_relu(g, snt_matmul(g, x, w, NULL));
  return snt_softmax(g, hidden, "axis=1");
}

static int report(const char *what, snt_result r, const snt_diag *diag) {
  fprintf(stderr, "%s: %s: %s\n", what, snt_result_text(r), diag->text);
  return 1;
}

int main(int argc, char **argv) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = argc > 1 ? argv[1] : NULL};
  snt_context *context = NULL;
  snt_device *device = NULL;
  snt_profile *profile = NULL;
  snt_graph *graph = NULL;
  snt_program *program = NULL;
  snt_exec *exec = NULL;
  snt_result r = snt_context_create(NULL, &context);
  if (r == SNT_OK) r = snt_device_open(context, &open, &device, &diag);
  if (r == SNT_OK) r = snt_device_profile(device, &profile);
  if (r == SNT_OK) r = snt_graph_create(context, &graph);
  if (r != SNT_OK) return report("device", r, &diag);
  snt_graph_output(graph, "y", build(graph));
  r = snt_compile(graph, profile, NULL, &program, &diag); /* reports what went wrong while building, too */
  if (r == SNT_OK) r = snt_exec_create(device, program, NULL, &exec, &diag);
  if (r != SNT_OK) return report("compile", r, &diag);

  float x[2][8], w[8][4], y[2][4];
  for (int i = 0; i < 16; i++) x[i / 8][i % 8] = (float)i / 8;
  for (int i = 0; i < 32; i++) w[i / 4][i % 4] = (float)(i % 5) / 4 - 0.5f;
  const int64_t n = 2;
  const snt_argument arguments[] = {{0, 0, NULL, 0, x, sizeof x}, {1, 0, NULL, 0, w, sizeof w}, {2, 0, NULL, 0, y, sizeof y}};
  const snt_run_info run = {.head = SNT_HEAD(run_info), .argument_count = 3, .arguments = arguments, .symbols = &n, .symbol_count = 1};
  r = snt_run(exec, &run, &diag);
  if (r != SNT_OK) return report("run", r, &diag);
  printf("kernels: %u\n", snt_program_kernel_count(program));
  for (int i = 0; i < 2; i++) printf("%.4f %.4f %.4f %.4f\n", y[i][0], y[i][1], y[i][2], y[i][3]);
  snt_exec_destroy(exec);
  snt_program_destroy(program);
  snt_graph_destroy(graph);
  snt_profile_destroy(profile);
  snt_device_destroy(device);
  snt_context_destroy(context);
  return 0;
}
