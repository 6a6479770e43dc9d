/* A fused program in an application's own OpenCL: its context, its queues, its memory objects and events. Nothing of Sinter's blocks between
   the upload and the read-back: the kernels wait for the application's event, and the application waits for theirs.
     opencl [PLATFORM-PART]          for example `opencl Portable`, `opencl rusticl` */
#define _POSIX_C_SOURCE 199309L /* nanosleep */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <dlfcn.h>
#include <math.h>
#include <sinter/opencl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 37, COLUMNS = 64, RUNS = 3 };
static const char graph_text[] = "symbols { n: min=1 max=64 multiple_of=1 hint=64 }\n"
                                 "graph @rows(%x: f32[n,64], %bias: f32[64]) {\n"
                                 "  %b: f32[n,64] = broadcast %bias, axes=[1], shape=[n,64]\n"
                                 "  %s = add %x, %b\n"
                                 "  %r = relu %s\n"
                                 "  %y = softmax %r, axis=1\n"
                                 "  return y=%y\n"
                                 "}\n";

// clang-format off
#define FUNCTIONS(F)                                                                                             \
  F(clGetPlatformIDs) F(clGetPlatformInfo) F(clGetDeviceIDs) F(clCreateContext) F(clCreateCommandQueue)          \
  F(clCreateBuffer) F(clEnqueueWriteBuffer) F(clEnqueueReadBuffer) F(clWaitForEvents) F(clReleaseEvent)          \
  F(clReleaseMemObject) F(clReleaseCommandQueue) F(clReleaseContext) F(clFlush) F(clFinish) F(clGetContextInfo)  \
  F(clCreateUserEvent) F(clSetUserEventStatus) F(clGetEventInfo)
// clang-format on
typedef struct opencl {
#define MEMBER(name) __typeof__(&name) name;
  FUNCTIONS(MEMBER)
#undef MEMBER
} opencl;

static opencl cl;
static void *loader;
static cl_context context;
static cl_device_id device;
static snt_diag diag = {.head = SNT_HEAD(diag)};

static void must(int good, const char *what) {
  if (good) return;
  fprintf(stderr, "opencl: %s\n", what);
  exit(1);
}
static void fine(snt_result r, const char *what) {
  if (r == SNT_OK) return;
  fprintf(stderr, "opencl: %s: %s: %s\n", what, snt_result_text(r), diag.text);
  exit(1);
}

static void *SNT_CALL get_proc(void *user, const char *name) {
  (void)user;
  return dlsym(loader, name);
}

/* ---- the application ---- */

static void open_opencl(const char *part) {
  cl_platform_id platforms[16];
  cl_uint count = 0;
  loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  must(loader != NULL, "no OpenCL platform: no libOpenCL.so.1");
#define LOAD(name) must((*(void **)(void *)&cl.name = dlsym(loader, #name)) != NULL, #name);
  FUNCTIONS(LOAD)
#undef LOAD
  must(cl.clGetPlatformIDs(16, platforms, &count) == CL_SUCCESS, "no OpenCL platform");
  for (cl_uint i = 0; i < count && i < 16 && !device; i++) {
    char name[128] = "";
    cl.clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof name, name, NULL);
    if (part && !strstr(name, part)) continue;
    if (cl.clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS) printf("%s\n", name);
  }
  must(device != NULL, "no OpenCL platform of that name has a device");
  cl_int code = CL_SUCCESS;
  context = cl.clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  must(code == CL_SUCCESS, "clCreateContext");
}

static cl_mem memory(size_t bytes) {
  cl_int code = CL_SUCCESS;
  const cl_mem made = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, NULL, &code);
  must(code == CL_SUCCESS, "clCreateBuffer");
  return made;
}
static cl_command_queue queue(void) {
  cl_int code = CL_SUCCESS;
  const cl_command_queue made = cl.clCreateCommandQueue(context, device, 0, &code);
  must(code == CL_SUCCESS, "clCreateCommandQueue");
  return made;
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

/* One run: a gate that the application opens late, an upload behind it, the kernels behind the upload, the read-back behind the kernels. */
static double one_run(snt_exec *exec, snt_stream *stream, snt_buffer *const ports[3], const cl_mem mems[3], cl_command_queue copies,
                      int rows) {
  static float x[ROWS * COLUMNS], bias[COLUMNS], y[ROWS * COLUMNS];
  cl_event uploads[2], done = NULL, read = NULL;
  cl_int code = CL_SUCCESS, status = CL_COMPLETE;
  for (int i = 0; i < rows * COLUMNS; i++) x[i] = (float)((i * 7 + rows) % 29) / 8 - 1.5f;
  for (int i = 0; i < COLUMNS; i++) bias[i] = (float)(i % 5) / 4 - 0.5f;
  const cl_event gate = cl.clCreateUserEvent(context, &code);
  const size_t bytes = sizeof(float) * COLUMNS * (size_t)rows;
  must(code == CL_SUCCESS, "clCreateUserEvent");
  must(cl.clEnqueueWriteBuffer(copies, mems[0], CL_FALSE, 0, bytes, x, 1, &gate, &uploads[0]) == CL_SUCCESS, "write");
  must(cl.clEnqueueWriteBuffer(copies, mems[1], CL_FALSE, 0, sizeof bias, bias, 0, NULL, &uploads[1]) == CL_SUCCESS, "write");
  cl.clFlush(copies);

  const int64_t n = rows;
  const snt_argument arguments[] = {{.port = 0, .buffer = ports[0]}, {.port = 1, .buffer = ports[1]}, {.port = 2, .buffer = ports[2]}};
  const snt_run_info run = {.head = SNT_HEAD(run_info), .argument_count = 3, .arguments = arguments, .symbols = &n, .symbol_count = 1};
  const snt_cl_enqueue_info info = {.head = SNT_HEAD(cl_enqueue_info), .run = &run, .wait_count = 2, .waits = uploads, .event = &done};
  fine(snt_cl_enqueue(exec, stream, &info, &diag), "enqueue");

  cl.clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
  must(status != CL_COMPLETE, "the kernels did not wait for the upload"); /* it cannot have run: the gate is shut */
  cl.clSetUserEventStatus(gate, CL_COMPLETE);
  must(cl.clEnqueueReadBuffer(copies, mems[2], CL_FALSE, 0, bytes, y, 1, &done, &read) == CL_SUCCESS, "read");
  cl.clFlush(copies);
  must(cl.clWaitForEvents(1, &read) == CL_SUCCESS, "wait");
  const cl_event all[] = {gate, uploads[0], uploads[1], done, read};
  for (int i = 0; i < 5; i++) cl.clReleaseEvent(all[i]);
  return reference_error(x, bias, y, rows);
}

/* A driver's thread may let go of the last command a moment after everybody was told that it is done: asked for two seconds at most. */
static cl_uint uses_of_context(void) {
  cl_uint uses = 0;
  for (int tries = 0; tries < 400 && uses != 1; tries++) {
    if (tries) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    cl.clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof uses, &uses, NULL);
  }
  return uses;
}

int main(int argc, char **argv) {
  snt_context *c = NULL;
  snt_device *attached = NULL;
  snt_stream *stream = NULL;
  snt_buffer *ports[3] = {NULL, NULL, NULL};
  open_opencl(argc > 1 ? argv[1] : NULL);
  const cl_command_queue copies = queue(), compute = queue();
  const cl_mem mems[] = {memory(ROWS * COLUMNS * sizeof(float)), memory(COLUMNS * sizeof(float)), memory(ROWS * COLUMNS * sizeof(float))};

  const snt_cl_attach_info how = {.head = SNT_HEAD(cl_attach_info), .context = context, .device = device, .get_proc = get_proc};
  fine(snt_context_create(NULL, &c), "context");
  fine(snt_cl_attach(c, &how, &attached, &diag), "attach");
  snt_exec *exec = make_exec(c, attached);
  fine(snt_cl_stream(attached, compute, &stream, &diag), "stream");
  for (int i = 0; i < 3; i++) fine(snt_cl_buffer(attached, mems[i], &ports[i], &diag), "buffer");

  double worst = 0;
  for (int i = 0; i < RUNS; i++) worst = fmax(worst, one_run(exec, stream, ports, mems, copies, i ? ROWS - i : ROWS));
  printf("%d runs, largest error %.1e\n", RUNS, worst);

  for (int i = 0; i < 3; i++) snt_buffer_destroy(ports[i]);
  snt_stream_destroy(stream);
  snt_exec_destroy(exec);
  snt_device_destroy(attached);
  snt_context_destroy(c);
  for (int i = 0; i < 3; i++) cl.clReleaseMemObject(mems[i]);
  cl.clReleaseCommandQueue(copies);
  cl.clReleaseCommandQueue(compute);
  const cl_uint uses = uses_of_context(); /* what was borrowed is given back: the application alone holds its context */
  cl.clReleaseContext(context);
  printf("the context has %u use\n", uses);
  return worst < 1e-6 ? 0 : 1;
}
