/* A fused program in an application's own CUDA: its context, its stream, its device pointers. Nothing of Sinter's blocks between the upload and the
   read-back: the kernels follow the upload on the stream, and the read-back follows them.
     cuda [LIBRARY]                  the driver's library; libcuda.so.1 */
#include <dlfcn.h>
#include <math.h>
#include <sinter/cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 37, COLUMNS = 64, RUNS = 3 };
static const char graph_text[] = "symbols { n: min=1 max=64 multiple_of=1 hint=64 }\n"
                                 "graph @rows(%x: f32[n,64], %bias: f32[64]) {\n"
                                 "  %b: f32[n,64] = broadcast %bias, axes=[1], shape=[n,64]\n"
                                 "  %s = add %x, %b\n"
                                 "  %r = relu %s\n"
                                 "  %y = softmax %r, axis=1\n"
                                 "  return y=%y\n"
                                 "}\n";

/* ---- the driver's functions that the application calls, as its manual declares them ---- */
typedef struct CUctx_st *context_handle;
typedef struct CUstream_st *stream_handle;
// clang-format off
#define FUNCTIONS(F)                                                                                                           \
  F(cuInit, (unsigned)) F(cuDeviceGet, (int *, int)) F(cuDeviceGetName, (char *, int, int)) F(cuCtxCreate_v2, (context_handle *, unsigned, int)) \
  F(cuCtxDestroy_v2, (context_handle)) F(cuStreamCreate, (stream_handle *, unsigned)) F(cuStreamDestroy_v2, (stream_handle))  \
  F(cuStreamSynchronize, (stream_handle)) F(cuMemAlloc_v2, (uint64_t *, size_t)) F(cuMemFree_v2, (uint64_t))                  \
  F(cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, stream_handle)) F(cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, stream_handle))
// clang-format on
static struct {
#define MEMBER(name, parameters) int(*name) parameters;
  FUNCTIONS(MEMBER)
#undef MEMBER
} cu;
static void *loader;
static snt_diag diag = {.head = SNT_HEAD(diag)};

static void must(int good, const char *what) {
  if (good) return;
  fprintf(stderr, "cuda: %s\n", what);
  exit(1);
}
static void fine(snt_result r, const char *what) {
  if (r == SNT_OK) return;
  fprintf(stderr, "cuda: %s: %s: %s\n", what, snt_result_text(r), diag.text);
  exit(1);
}

/* NVRTC's names are not here: for those Sinter loads the library itself. */
static void *SNT_CALL get_proc(void *user, const char *name) {
  (void)user;
  return dlsym(loader, name);
}

static context_handle open_cuda(const char *library) {
  char name[128] = "";
  int device = 0;
  context_handle context = NULL;
  loader = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  must(loader != NULL, "no CUDA driver");
#define LOAD(f, parameters) must((*(void **)(void *)&cu.f = dlsym(loader, #f)) != NULL, #f);
  FUNCTIONS(LOAD)
#undef LOAD
  must(cu.cuInit(0) == 0 && cu.cuDeviceGet(&device, 0) == 0, "no CUDA device");
  cu.cuDeviceGetName(name, sizeof name, device);
  printf("%s\n", name);
  must(cu.cuCtxCreate_v2(&context, 0, device) == 0, "cuCtxCreate");
  return context;
}

/* ---- the program: everything that may build, block or take memory is here ---- */
static snt_exec *make_exec(snt_context *c, snt_device *attached) {
  static const int64_t most = 64;
  const snt_exec_info info = {.head = SNT_HEAD(exec_info), .max_symbols = &most, .symbol_count = 1};
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  snt_program *program = NULL;
  snt_exec *exec = NULL;
  fine(snt_graph_create(c, &graph), "graph");
  fine(snt_graph_parse(graph, graph_text, strlen(graph_text), NULL, &diag), "parse");
  fine(snt_device_profile(attached, &profile), "profile");
  fine(snt_compile(graph, profile, NULL, &program, &diag), "compile");
  fine(snt_exec_create(attached, program, &info, &exec, &diag), "exec");
  fine(snt_exec_prepare(exec, &diag), "build");
  printf("kernels: %u\n", snt_exec_step_count(exec));
  snt_program_destroy(program);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return exec;
}

static double reference_error(const float *x, const float *bias, const float *y, int rows) {
  double worst = 0;
  for (int r = 0; r < rows; r++) {
    double sum = 0;
    for (int k = 0; k < COLUMNS; k++) sum += exp(fmax((double)x[r * COLUMNS + k] + (double)bias[k], 0));
    for (int k = 0; k < COLUMNS; k++) {
      const double want = exp(fmax((double)x[r * COLUMNS + k] + (double)bias[k], 0)) / sum;
      const double apart = fabs((double)y[r * COLUMNS + k] - want);
      if (!(apart <= worst)) worst = apart;
    }
  }
  return worst;
}

static double one_run(snt_exec *exec, snt_stream *stream, snt_buffer *const ports[3], const uint64_t at[3], stream_handle queue, int rows) {
  static float x[ROWS * COLUMNS], bias[COLUMNS], y[ROWS * COLUMNS];
  for (int i = 0; i < rows * COLUMNS; i++) x[i] = (float)((i * 7 + rows) % 29) / 8 - 1.5f;
  for (int i = 0; i < COLUMNS; i++) bias[i] = (float)(i % 5) / 4 - 0.5f;
  const size_t bytes = sizeof(float) * COLUMNS * (size_t)rows;
  must(cu.cuMemcpyHtoDAsync_v2(at[0], x, bytes, queue) == 0 && cu.cuMemcpyHtoDAsync_v2(at[1], bias, sizeof bias, queue) == 0, "upload");

  const int64_t n = rows;
  const snt_argument arguments[] = {{.port = 0, .buffer = ports[0]}, {.port = 1, .buffer = ports[1]}, {.port = 2, .buffer = ports[2]}};
  const snt_run_info run = {.head = SNT_HEAD(run_info), .argument_count = 3, .arguments = arguments, .symbols = &n, .symbol_count = 1};
  const snt_cuda_enqueue_info info = {.head = SNT_HEAD(cuda_enqueue_info), .run = &run};
  fine(snt_cuda_enqueue(exec, stream, &info, &diag), "enqueue");

  must(cu.cuMemcpyDtoHAsync_v2(y, at[2], bytes, queue) == 0, "read");
  must(cu.cuStreamSynchronize(queue) == 0, "wait");
  return reference_error(x, bias, y, rows);
}

int main(int argc, char **argv) {
  static const size_t bytes[] = {ROWS * COLUMNS * sizeof(float), COLUMNS * sizeof(float), ROWS * COLUMNS * sizeof(float)};
  snt_context *c = NULL;
  snt_device *attached = NULL;
  snt_stream *stream = NULL;
  snt_buffer *ports[3] = {NULL, NULL, NULL};
  stream_handle queue = NULL;
  uint64_t at[3];
  const context_handle context = open_cuda(argc > 1 ? argv[1] : "libcuda.so.1");
  must(cu.cuStreamCreate(&queue, 1) == 0, "cuStreamCreate");

  const snt_cuda_attach_info how = {.head = SNT_HEAD(cuda_attach_info), .context = context, .get_proc = get_proc};
  fine(snt_context_create(NULL, &c), "context");
  fine(snt_cuda_attach(c, &how, &attached, &diag), "attach");
  snt_exec *exec = make_exec(c, attached);
  fine(snt_cuda_stream(attached, queue, &stream, &diag), "stream");
  for (int i = 0; i < 3; i++) {
    must(cu.cuMemAlloc_v2(&at[i], bytes[i]) == 0, "cuMemAlloc");
    fine(snt_cuda_buffer(attached, at[i], bytes[i], &ports[i], &diag), "buffer");
  }

  double worst = 0;
  for (int i = 0; i < RUNS; i++) worst = fmax(worst, one_run(exec, stream, ports, at, queue, i ? ROWS - i : ROWS));
  printf("%d runs, largest error %.1e\n", RUNS, worst);

  for (int i = 0; i < 3; i++) snt_buffer_destroy(ports[i]), cu.cuMemFree_v2(at[i]);
  snt_stream_destroy(stream);
  snt_exec_destroy(exec);
  snt_device_destroy(attached);
  snt_context_destroy(c);
  cu.cuStreamDestroy_v2(queue);
  cu.cuCtxDestroy_v2(context);
  return worst < 1e-6 ? 0 : 1;
}
