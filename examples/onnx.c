/* An ONNX model compiled for a device and run once on ramps: onnx MODEL.onnx [DEVICE]. Open extents take their hint. */
#include <sinter/sinter_onnx.h>
#include <stdio.h>
#include <stdlib.h>

enum { PORTS = 32 };

/* Memory for every input and output */
static snt_result make_ports(const snt_program *p, const int64_t *symbols, snt_argument *ports) {
  snt_port port;
  for (uint32_t i = 0; i < PORTS && snt_program_port(p, i, &port) == SNT_OK; i++) {
    int64_t dims[SNT_MAX_RANK], elements = 1;
    const snt_result r = snt_program_port_dims(p, i, symbols, dims);
    if (r != SNT_OK) return r;
    for (uint32_t d = 0; d < port.tensor.rank; d++) elements *= dims[d];
    ports[i] = (snt_argument){.port = i, .bytes = (uint64_t)elements * snt_dtype_size(port.tensor.dtype)};
    ports[i].host = calloc(1, ports[i].bytes + 1);
    if (!ports[i].host) return SNT_E_HOST_MEM;
    for (int64_t k = 0; port.tensor.dtype == SNT_F32 && k < elements; k++) ((float *)ports[i].host)[k] = (float)(k % 17) / 17;
  }
  return SNT_OK;
}

int main(int argc, char **argv) {
  snt_diag diag = {.head = SNT_HEAD(diag), .text = "usage: onnx MODEL.onnx [DEVICE]"};
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = argc > 2 ? argv[2] : NULL};
  snt_context *context = NULL;
  snt_device *device = NULL;
  snt_profile *profile = NULL;
  snt_graph *graph = NULL;
  snt_program *program = NULL;
  snt_exec *exec = NULL;
  snt_argument ports[PORTS] = {{0}};
  int64_t symbols[PORTS] = {0};
  snt_symbol symbol;
  snt_result r = argc > 1 ? snt_context_create(NULL, &context) : SNT_E_ARG;
  if (r == SNT_OK) r = snt_device_open(context, &open, &device, &diag);
  if (r == SNT_OK) r = snt_device_profile(device, &profile);
  if (r == SNT_OK) r = snt_graph_create(context, &graph);
  if (r == SNT_OK) r = snt_onnx_import_file(graph, argv[1], NULL, &diag);
  if (r == SNT_OK) r = snt_compile(graph, profile, NULL, &program, &diag);
  snt_graph_destroy(graph); /* the program shares the weights, which stay mapped */
  for (uint32_t i = 0; i < PORTS && snt_program_symbol(program, i, &symbol) == SNT_OK; i++) symbols[i] = symbol.hint;
  if (r == SNT_OK) r = make_ports(program, symbols, ports);
  if (r == SNT_OK) r = snt_exec_create(device, program, NULL, &exec, &diag);
  const uint32_t count = snt_program_port_count(program), symbol_count = snt_program_symbol_count(program);
  const snt_run_info run = {SNT_HEAD(run_info), count, 0, ports, symbols, symbol_count};
  if (r == SNT_OK) r = snt_run(exec, &run, &diag);
  if (r == SNT_OK)
    printf("%u kernels; first element of the last output %g\n", snt_program_kernel_count(program), (double)*(float *)ports[count - 1].host);
  else fprintf(stderr, "%s: %s\n", snt_result_text(r), diag.text);
  for (uint32_t i = 0; i < PORTS; i++) free(ports[i].host);
  snt_exec_destroy(exec);
  snt_program_destroy(program);
  snt_profile_destroy(profile);
  snt_device_destroy(device);
  snt_context_destroy(context);
  return r == SNT_OK ? 0 : 1;
}
