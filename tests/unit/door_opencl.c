/* The OpenCL door's refusals: what would block, build or take memory is an error, and nothing is enqueued. On PoCL, where it is. */
#include "tests/tap.h"
#include "tests/unit/api_support.h"
#include <time.h>
#include <CL/cl.h>
#include <dlfcn.h>
#include <sinter/opencl.h>
#include <string.h>

// clang-format off
#define FUNCTIONS(F)                                                                                           \
  F(clGetPlatformIDs) F(clGetPlatformInfo) F(clGetDeviceIDs) F(clCreateContext) F(clCreateCommandQueue)        \
  F(clCreateBuffer) F(clReleaseMemObject) F(clReleaseCommandQueue) F(clReleaseContext) F(clEnqueueReadBuffer)  \
  F(clEnqueueWriteBuffer) F(clGetContextInfo) F(clCreateUserEvent) F(clSetUserEventStatus) F(clWaitForEvents)  \
  F(clGetEventInfo) F(clReleaseEvent)
// clang-format on
static struct {
#define MEMBER(name) __typeof__(&name) name;
  FUNCTIONS(MEMBER)
#undef MEMBER
} cl;
static cl_device_id device;
static void *loader;
static snt_diag diag = {.head = SNT_HEAD(diag)};

static const char text[] = "symbols { n: min=1 max=64 multiple_of=1 hint=8 }\n"
                           "graph @sum(%x: f32[n,16], state %total: f32[16]) {\n"
                           "  %s = reduce.sum %x, axes=[0]\n"
                           "  %next = add %total, %s\n"
                           "  update %total, %next\n"
                           "  return y=%next\n"
                           "}\n";

static bool find_pocl(void) {
  cl_platform_id platforms[16];
  cl_uint count = 0;
  loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  bool all = loader != NULL;
#define LOAD(name) all = all && (*(void **)(void *)&cl.name = dlsym(loader, #name)) != NULL;
  FUNCTIONS(LOAD)
#undef LOAD
  if (!all || cl.clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS) return false;
  for (cl_uint i = 0; i < count && i < 16; i++) {
    char name[128] = "";
    cl.clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof name, name, NULL);
    if (strstr(name, "Portable") && cl.clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS) return true;
  }
  return false;
}

static void *SNT_CALL no_proc(void *user, const char *name) {
  ++*(int *)user;
  return strcmp(name, "clEnqueueNDRangeKernel") ? (void *)(uintptr_t)1 : NULL; /* a table that lacks one function; none is called */
}

static void check_attach(snt_context *c, cl_context context) {
  int asked = 0;
  snt_device *d = NULL;
  snt_cl_attach_info info = {.head = SNT_HEAD(cl_attach_info), .device = device};
  tap_is_int(snt_cl_attach(c, &info, &d, &diag), SNT_E_ARG, "no context: %s", diag.text);
  info.context = context, info.user = &asked, info.get_proc = no_proc;
  tap_is_int(snt_cl_attach(c, &info, &d, &diag), SNT_E_UNSUPPORTED, "a table without a function: %s", diag.text);
  tap_ok(asked > 1 && strstr(diag.text, "clEnqueueNDRangeKernel") != NULL, "which is named");
  info.head.size -= 8;
  tap_is_int(snt_cl_attach(c, &info, &d, &diag), SNT_E_STRUCT, "a struct cut short: %s", diag.text);
  info.head.type++;
  tap_is_int(snt_cl_attach(c, &info, &d, &diag), SNT_E_STRUCT, "another struct: %s", diag.text);
}

static void check_adoption(snt_device *d, cl_context context) {
  cl_int code = CL_SUCCESS;
  const cl_context other = cl.clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  const cl_command_queue loose = cl.clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
  const cl_command_queue foreign = cl.clCreateCommandQueue(other, device, 0, &code);
  const cl_mem mem = cl.clCreateBuffer(other, CL_MEM_READ_WRITE, 64, NULL, &code);
  snt_stream *s = NULL;
  snt_buffer *b = NULL;
  if (loose) tap_is_int(snt_cl_stream(d, loose, &s, &diag), SNT_E_UNSUPPORTED, "a queue out of order: %s", diag.text);
  tap_is_int(snt_cl_stream(d, foreign, &s, &diag), SNT_E_ARG, "another context's queue: %s", diag.text);
  tap_is_int(snt_cl_buffer(d, mem, &b, &diag), SNT_E_ARG, "another context's memory: %s", diag.text);
  if (loose) cl.clReleaseCommandQueue(loose);
  cl.clReleaseCommandQueue(foreign);
  cl.clReleaseMemObject(mem);
  cl.clReleaseContext(other);
}

/* x (n x 16 ones), the state and the result in memory of the host. */
static void check_runs(snt_exec *x, snt_stream *s, snt_buffer *const buffers[3], const cl_mem mems[3], cl_command_queue queue) {
  float ones[8 * 16], zeros[16] = {0}, sums[16];
  int64_t n = 4;
  const snt_argument arguments[] = {
      {.port = 0, .buffer = buffers[0]}, {.port = 1, .buffer = buffers[1]}, {.port = 2, .buffer = buffers[2]}};
  snt_run_info run = {.head = SNT_HEAD(run_info), .argument_count = 3, .arguments = arguments, .symbols = &n, .symbol_count = 1};
  const snt_cl_enqueue_info info = {.head = SNT_HEAD(cl_enqueue_info), .run = &run};
  for (int i = 0; i < 8 * 16; i++) ones[i] = 1;
  cl.clEnqueueWriteBuffer(queue, mems[0], CL_TRUE, 0, sizeof ones, ones, 0, NULL, NULL);
  cl.clEnqueueWriteBuffer(queue, mems[1], CL_TRUE, 0, sizeof zeros, zeros, 0, NULL, NULL);
  tap_is_int(snt_cl_enqueue(x, s, &info, &diag), SNT_E_ORDER, "before the jobs are done: %s", diag.text);
  tap_is_int(snt_exec_prepare(x, &diag), SNT_OK, "the jobs are done");
  n = 9;
  tap_is_int(snt_cl_enqueue(x, s, &info, &diag), SNT_E_ARG, "more rows than the memory has: %s", diag.text);
  n = 65;
  tap_is_int(snt_cl_enqueue(x, s, &info, &diag), SNT_E_SHAPE, "more rows than the program takes: %s", diag.text);
  n = 4;
  const snt_argument without[] = {arguments[0], arguments[2]};
  run.arguments = without, run.argument_count = 2;
  tap_is_int(snt_cl_enqueue(x, s, &info, &diag), SNT_E_ARG, "no memory for a state: %s", diag.text);
  run.arguments = arguments, run.argument_count = 3;
  for (int i = 0; i < 2; i++) tap_is_int(snt_cl_enqueue(x, s, &info, &diag), SNT_OK, "run %d", i);
  cl.clEnqueueReadBuffer(queue, mems[2], CL_TRUE, 0, sizeof sums, sums, 0, NULL, NULL);
  tap_ok(sums[0] == 8 && sums[15] == 8, "two runs of four rows, and none of the refused ones: %g", (double)sums[0]);
}

#define REFUSED(call) tap_is_int((call), SNT_E_ARG, "%s: %s", #call, diag.text)

/* Nothing where something is needed, and what is another backend's. */
static void check_nothing(snt_context *c, snt_device *d, cl_context context, snt_exec *x, snt_stream *s) {
  const snt_cl_attach_info info = {.head = SNT_HEAD(cl_attach_info), .context = context, .device = device};
  const snt_cl_attach_info nowhere = {.head = SNT_HEAD(cl_attach_info), .device = device};
  const snt_cl_attach_info nobody = {.head = SNT_HEAD(cl_attach_info), .context = context};
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = "interp"};
  const snt_run_info run = {.head = SNT_HEAD(run_info)};
  const snt_cl_enqueue_info right = {.head = SNT_HEAD(cl_enqueue_info), .run = &run}, empty = {.head = SNT_HEAD(cl_enqueue_info)};
  const snt_cl_enqueue_info waits = {.head = SNT_HEAD(cl_enqueue_info), .run = &run, .wait_count = 1};
  snt_cl_enqueue_info cut = right;
  const cl_command_queue queue = (cl_command_queue)(uintptr_t)256;
  const cl_mem mem = (cl_mem)(uintptr_t)256;
  snt_device *other = NULL, *made = NULL;
  snt_stream *far = NULL, *none = NULL;
  snt_buffer *b = NULL;
  cut.head.size -= 8;
  REFUSED(snt_cl_attach(NULL, &info, &made, &diag));
  REFUSED(snt_cl_attach(c, NULL, &made, &diag));
  REFUSED(snt_cl_attach(c, &info, NULL, &diag));
  REFUSED(snt_cl_attach(c, &nowhere, &made, &diag));
  REFUSED(snt_cl_attach(c, &nobody, &made, &diag));
  tap_is_int(snt_device_open(c, &open, &other, &diag), SNT_OK, "a device of another backend");
  tap_is_int(snt_stream_create(other, &far, &diag), SNT_OK, "and a stream of it");
  REFUSED(snt_cl_stream(NULL, queue, &none, &diag));
  REFUSED(snt_cl_stream(other, queue, &none, &diag));
  REFUSED(snt_cl_stream(d, NULL, &none, &diag));
  REFUSED(snt_cl_stream(d, queue, NULL, &diag));
  REFUSED(snt_cl_buffer(NULL, mem, &b, &diag));
  REFUSED(snt_cl_buffer(other, mem, &b, &diag));
  REFUSED(snt_cl_buffer(d, NULL, &b, &diag));
  REFUSED(snt_cl_buffer(d, mem, NULL, &diag));
  REFUSED(snt_cl_enqueue(NULL, s, &right, &diag));
  REFUSED(snt_cl_enqueue(x, NULL, &right, &diag));
  REFUSED(snt_cl_enqueue(x, s, NULL, &diag));
  REFUSED(snt_cl_enqueue(x, far, &right, &diag));
  REFUSED(snt_cl_enqueue(x, s, &empty, &diag));
  REFUSED(snt_cl_enqueue(x, s, &waits, &diag));
  tap_is_int(snt_cl_enqueue(x, s, &cut, &diag), SNT_E_STRUCT, "a struct cut short: %s", diag.text);
  tap_ok(!made && !none && !b, "and nothing is made");
  snt_stream_destroy(far);
  snt_device_destroy(other);
}

/* The loader's functions, but for two that the door calls when it enqueues: one that counts, and one that can be told to fail. */
static int flushes, launch_fails;
static cl_int CL_API_CALL counted_flush(cl_command_queue queue) {
  cl_int (*own)(cl_command_queue) = NULL;
  *(void **)(void *)&own = dlsym(loader, "clFlush");
  flushes++;
  return own(queue);
}
static cl_int CL_API_CALL failing_launch(cl_command_queue queue, cl_kernel kernel, cl_uint rank, const size_t *offset, const size_t *items,
                                         const size_t *group, cl_uint count, const cl_event *waits, cl_event *event) {
  __typeof__(&clEnqueueNDRangeKernel) own = NULL;
  *(void **)(void *)&own = dlsym(loader, "clEnqueueNDRangeKernel");
  return launch_fails ? CL_OUT_OF_RESOURCES : own(queue, kernel, rank, offset, items, group, count, waits, event);
}
static void *SNT_CALL own_proc(void *user, const char *name) {
  (void)user;
  if (!strcmp(name, "clFlush")) return (void *)(uintptr_t)counted_flush;
  if (!strcmp(name, "clEnqueueNDRangeKernel")) return (void *)(uintptr_t)failing_launch;
  return dlsym(loader, name);
}

static cl_int status_of(cl_event event) {
  cl_int status = -1;
  cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
  return status;
}

/* Of a run of `n` rows, which waits for an event of the host: another tells when it is over, not before; without a row there is no kernel, and both still hold. */
static void check_event(snt_exec *x, snt_stream *s, snt_buffer *const buffers[2], cl_context context, int64_t n) {
  cl_int code = CL_SUCCESS;
  const cl_event gate = cl.clCreateUserEvent(context, &code);
  cl_event done = NULL;
  const snt_argument arguments[] = {{.port = 0, .buffer = buffers[0]}, {.port = 1, .buffer = buffers[1]}};
  const snt_run_info run = {.head = SNT_HEAD(run_info), .argument_count = 2, .arguments = arguments, .symbols = &n, .symbol_count = 1};
  const snt_cl_enqueue_info info = {.head = SNT_HEAD(cl_enqueue_info), .run = &run, .wait_count = 1, .waits = &gate, .event = &done};
  const int before = flushes;
  tap_is_int(snt_cl_enqueue(x, s, &info, &diag), SNT_OK, "%lld rows behind an event", (long long)n);
  tap_is_int(flushes - before, 1, "the queue is flushed");
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  tap_ok(done && status_of(done) > CL_COMPLETE, "which has not come: they are not over");
  cl.clSetUserEventStatus(gate, CL_COMPLETE);
  for (int tries = 0; done && tries < 1000 && status_of(done) > CL_COMPLETE; tries++)
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  tap_ok(done && status_of(done) == CL_COMPLETE, "and are when it has");
  if (done) cl.clReleaseEvent(done);
  cl.clReleaseEvent(gate);
}

/* A kernel that the driver refuses is told; nothing is flushed for it, and the next run is as any other. */
static void check_refused(snt_exec *x, snt_stream *s, snt_buffer *const buffers[2]) {
  const int64_t n = 3;
  const snt_argument arguments[] = {{.port = 0, .buffer = buffers[0]}, {.port = 1, .buffer = buffers[1]}};
  const snt_run_info run = {.head = SNT_HEAD(run_info), .argument_count = 2, .arguments = arguments, .symbols = &n, .symbol_count = 1};
  const snt_cl_enqueue_info info = {.head = SNT_HEAD(cl_enqueue_info), .run = &run};
  const int before = flushes;
  launch_fails = 1;
  tap_ok(snt_cl_enqueue(x, s, &info, &diag) != SNT_OK, "a kernel that the driver refuses: %s", diag.text);
  tap_is_int(flushes - before, 0, "flushes nothing");
  launch_fails = 0;
  tap_is_int(snt_cl_enqueue(x, s, &info, &diag), SNT_OK, "and the next is taken");
}

static void check_events(snt_context *c, cl_context context) {
  static const char rows[] = "symbols { n: min=0 max=8 multiple_of=1 hint=8 }\n"
                             "graph @rows(%x: f32[n,16]) {\n  %y = add %x, 1\n  return y=%y\n}\n";
  const snt_cl_attach_info own = {.head = SNT_HEAD(cl_attach_info), .context = context, .device = device, .get_proc = own_proc};
  cl_int code = CL_SUCCESS;
  const cl_command_queue queue = cl.clCreateCommandQueue(context, device, 0, &code);
  cl_mem mems[2];
  snt_device *d = NULL;
  snt_buffer *buffers[2] = {NULL, NULL};
  snt_stream *s = NULL;
  snt_exec *x = NULL;
  tap_is_int(snt_cl_attach(c, &own, &d, &diag), SNT_OK, "attach, with a table of the host's");
  snt_program *p = api_compile_text(c, d, rows, &diag);
  float zeros[8 * 16] = {0}, got[8 * 16];
  tap_is_int(snt_cl_stream(d, queue, &s, &diag), SNT_OK, "the host's queue");
  for (int i = 0; i < 2; i++) {
    mems[i] = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof zeros, NULL, &code);
    tap_is_int(snt_cl_buffer(d, mems[i], &buffers[i], &diag), SNT_OK, "the host's memory");
    cl.clEnqueueWriteBuffer(queue, mems[i], CL_TRUE, 0, sizeof zeros, zeros, 0, NULL, NULL);
  }
  const int64_t most = 8;
  const snt_exec_info info = {.head = SNT_HEAD(exec_info), .max_symbols = &most, .symbol_count = 1};
  tap_is_int(snt_exec_create(d, p, &info, &x, &diag), SNT_OK, "exec");
  tap_is_int(snt_exec_prepare(x, &diag), SNT_OK, "its jobs");
  check_event(x, s, buffers, context, 0);
  check_event(x, s, buffers, context, 3);
  cl.clEnqueueReadBuffer(queue, mems[1], CL_TRUE, 0, sizeof got, got, 0, NULL, NULL);
  tap_ok(got[0] == 1 && got[3 * 16 - 1] == 1 && got[3 * 16] == 0, "three rows of eight");
  check_refused(x, s, buffers);
  for (int i = 0; i < 2; i++) snt_buffer_destroy(buffers[i]), cl.clReleaseMemObject(mems[i]);
  snt_exec_destroy(x);
  snt_stream_destroy(s);
  snt_program_destroy(p);
  cl.clReleaseCommandQueue(queue);
  snt_device_destroy(d);
}

static void check_exec(snt_context *c, snt_device *d, cl_context context) {
  cl_int code = CL_SUCCESS;
  const cl_command_queue queue = cl.clCreateCommandQueue(context, device, 0, &code);
  const size_t bytes[] = {8 * 16 * 4, 64, 64};
  cl_mem mems[3];
  snt_buffer *buffers[3] = {NULL, NULL, NULL};
  snt_stream *s = NULL;
  snt_exec *x = NULL, *unbounded = NULL;
  snt_program *p = api_compile_text(c, d, text, &diag);
  const int64_t most = 8;
  const snt_exec_info info = {.head = SNT_HEAD(exec_info), .max_symbols = &most, .symbol_count = 1};
  tap_ok(p != NULL, "compile %s", diag.text);
  tap_is_int(snt_cl_stream(d, queue, &s, &diag), SNT_OK, "the host's queue");
  for (int i = 0; i < 3; i++) {
    mems[i] = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, bytes[i], NULL, &code);
    tap_is_int(snt_cl_buffer(d, mems[i], &buffers[i], &diag), SNT_OK, "the host's memory");
  }
  tap_is_int(snt_exec_create(d, p, &info, &x, &diag), SNT_OK, "exec");
  check_nothing(c, d, context, x, s);
  check_runs(x, s, buffers, mems, queue);
  const int64_t n = 4;
  const snt_argument arguments[] = {
      {.port = 0, .buffer = buffers[0]}, {.port = 1, .buffer = buffers[1]}, {.port = 2, .buffer = buffers[2]}};
  const snt_run_info run = {.head = SNT_HEAD(run_info), .argument_count = 3, .arguments = arguments, .symbols = &n, .symbol_count = 1};
  const snt_cl_enqueue_info enqueue = {.head = SNT_HEAD(cl_enqueue_info), .run = &run};
  tap_is_int(snt_exec_create(d, p, NULL, &unbounded, &diag), SNT_OK, "an exec without max_symbols");
  tap_is_int(snt_exec_prepare(unbounded, &diag), SNT_OK, "its jobs");
  tap_is_int(snt_cl_enqueue(unbounded, s, &enqueue, &diag), SNT_E_LIMIT, "would take memory: %s", diag.text);
  for (int i = 0; i < 3; i++) snt_buffer_destroy(buffers[i]), cl.clReleaseMemObject(mems[i]);
  snt_exec_destroy(unbounded);
  snt_exec_destroy(x);
  snt_stream_destroy(s);
  snt_program_destroy(p);
  cl.clReleaseCommandQueue(queue);
}

/* A driver's thread may let go of the last command a moment after everybody was told that it is done. */
static cl_uint uses_of(cl_context context) {
  cl_uint uses = 0;
  for (int tries = 0; tries < 400 && uses != 1; tries++) {
    if (tries) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    cl.clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof uses, &uses, NULL);
  }
  return uses;
}

int main(void) {
  if (!find_pocl()) {
    printf("TAP version 13\n1..0 # SKIP no PoCL\n");
    return 0;
  }
  cl_int code = CL_SUCCESS;
  const cl_context context = cl.clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  snt_context *c = NULL;
  snt_device *d = NULL;
  const snt_cl_attach_info info = {.head = SNT_HEAD(cl_attach_info), .context = context, .device = device};
  tap_is_int(snt_context_create(NULL, &c), SNT_OK, "context");
  check_attach(c, context);
  tap_is_int(snt_cl_attach(c, &info, &d, &diag), SNT_OK, "attach, with the loader's own table");
  check_adoption(d, context);
  check_exec(c, d, context);
  check_events(c, context);
  snt_device_destroy(d);
  snt_context_destroy(c);
  tap_is_int((int)uses_of(context), 1, "nothing of the host's is kept");
  cl.clReleaseContext(context);
  return tap_done();
}
