/* An OpenCL that is only a table of functions, in place of the library that the loader would find: it knows one kernel (rt_kernels.h), keeps the books of
   what was created and not released, and fails the n-th call that can fail, for every n and every kind of error, as each family of drivers. What must
   hold: a call that matters gives its own result, others change nothing, nothing is left over, a lost device stays lost. And what is known to be wrong with
   each family of drivers (runtime/opencl/device.c) is seen in what is asked of the driver. */
#include "runtime/rt_opencl.h"
#include "runtime/targets.h"
#include "tests/tap.h"
#include "tests/unit/rt_kernels.h"
#include "tests/unit/rt_life.h"
#include <pthread.h>
#include <time.h>

/* ---- the books ---- */

static struct {
  const char *platform;
  bool cpu, dots, fast_dots; /* cl_khr_integer_dot_product, and that it is fast */
  const char *version;
  _Atomic int64_t alive;   /* builders are threads */
  uint32_t calls, fail_at; /* of those that can fail; 1-based, 0: never */
  cl_int fail_with;
  const char *name;   /* of the device; null: another */
  const char *failed; /* the name of the call that did */
  /* what was asked */
  char options[128];
  const char *binary; /* its 16 bytes */
  cl_mem_flags flags;
  uint32_t launches, markers, from_binary;
  bool near; /* another device is listed, first */
  uint32_t finishes;
  bool was_near;     /* its queue */
  size_t group_size; /* that a kernel may have */
  int32_t builders, most_builders;
  cl_ulong ends_ns; /* of what begins at 1000 */
} fake = {.version = "OpenCL 1.2 ", .group_size = 256, .ends_ns = 9000};

/* Functions whose failure must be told at least once where they are called (all but the first: with an open device). Others are queries, times and what
   only a cache is for, without which all goes on. */
// clang-format off
static const char must[][28] = {
    "clCreateContext", "clCreateCommandQueue", "clCreateBuffer", "clCreateSubBuffer", "clCreateProgramWithSource", "clBuildProgram",
    "clCreateKernel", "clGetKernelInfo", "clGetKernelWorkGroupInfo", "clSetKernelArg", "clEnqueueNDRangeKernel", "clEnqueueReadBuffer",
    "clEnqueueWriteBuffer", "clFlush", "clWaitForEvents", "clGetEventInfo"};
// clang-format on
static bool called[IR_COUNT(must)];

typedef struct object {
  uint32_t references;
  size_t bytes;
  uint8_t *data;
  struct object *parent; /* of a part of a buffer */
} object;

static cl_int fails(const char *name) {
  for (uint32_t k = 0; k < IR_COUNT(must); k++) called[k] |= !strcmp(name + 1, must[k]);
  if (++fake.calls != fake.fail_at) return CL_SUCCESS;
  fake.failed = name;
  return fake.fail_with;
}

static object *make(size_t bytes, object *parent, size_t offset) {
  object *o = calloc(1, sizeof *o);
  *o = (object){.references = 1, .bytes = bytes, .parent = parent, .data = parent ? parent->data + offset : calloc(1, bytes + 1)};
  if (parent) parent->references++;
  fake.alive++;
  return o;
}

static cl_int drop(object *o) {
  if (--o->references) return CL_SUCCESS;
  if (o->parent) drop(o->parent);
  else free(o->data);
  free(o);
  fake.alive--;
  return CL_SUCCESS;
}

static object *made(const char *name, size_t bytes, cl_int *code) {
  *code = fails(name);
  return *code == CL_SUCCESS ? make(bytes, NULL, 0) : NULL;
}

static cl_int answer(const char *name, const void *value, size_t have, size_t room, void *to, size_t *size) {
  const cl_int code = fails(name);
  if (code != CL_SUCCESS) return code;
  if (size) *size = have;
  if (to && room < have) return CL_INVALID_VALUE;
  if (to) memcpy(to, value, have);
  return CL_SUCCESS;
}
#define TEXT_ANSWER(text) answer(__func__, text, strlen(text) + 1, room, to, size)
#define NUMBER_ANSWER(type, value) answer(__func__, &(type){value}, sizeof(type), room, to, size)

/* ---- the functions: libOpenCL's names, f in front ---- */

static int platform_here, device_here, device_near;
static object *arguments[2];
static cl_uint words[3];

static cl_int CL_API_CALL fclGetPlatformIDs(cl_uint room, cl_platform_id *to, cl_uint *count) {
  (void)room, *to = (cl_platform_id)(void *)&platform_here, *count = 1;
  return fails(__func__);
}
static cl_int CL_API_CALL fclGetPlatformInfo(cl_platform_id p, cl_platform_info what, size_t room, void *to, size_t *size) {
  (void)p, (void)what;
  return TEXT_ANSWER(fake.platform);
}
static cl_int CL_API_CALL fclGetDeviceIDs(cl_platform_id p, cl_device_type type, cl_uint room, cl_device_id *to, cl_uint *count) {
  (void)p, (void)type, (void)room, *count = 0;
  if (fake.near) to[(*count)++] = (cl_device_id)(void *)&device_near;
  to[(*count)++] = (cl_device_id)(void *)&device_here;
  return fails(__func__);
}
static cl_int CL_API_CALL fclGetDeviceInfo(cl_device_id d, cl_device_info what, size_t room, void *to, size_t *size) {
  const cl_device_integer_dot_product_acceleration_properties_khr fast = {.mixed_signedness_accelerated = fake.fast_dots};
  switch (what) {
  case CL_DEVICE_NAME:
    return TEXT_ANSWER(d == (cl_device_id)(void *)&device_near ? "basic table of functions, beside a processor of a long name"
                       : fake.name                             ? fake.name
                                                               : "a table of functions");
  case CL_DRIVER_VERSION: return TEXT_ANSWER("1");
  case CL_DEVICE_VERSION: return TEXT_ANSWER(fake.version);
  case CL_DEVICE_EXTENSIONS: return TEXT_ANSWER(fake.dots ? "cl_khr_integer_dot_product cl_khr_fp64" : "cl_khr_fp64");
  case CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_4x8BIT_PACKED_KHR: return answer(__func__, &fast, sizeof fast, room, to, size);
  case CL_DEVICE_TYPE: return NUMBER_ANSWER(cl_device_type, fake.cpu ? CL_DEVICE_TYPE_CPU : CL_DEVICE_TYPE_GPU);
  case CL_DEVICE_SINGLE_FP_CONFIG: return NUMBER_ANSWER(cl_device_fp_config, CL_FP_FMA | CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT);
  case CL_DEVICE_MAX_PARAMETER_SIZE:
  case CL_DEVICE_MAX_WORK_GROUP_SIZE: return NUMBER_ANSWER(size_t, 1024);
  case CL_DEVICE_LOCAL_MEM_SIZE: return NUMBER_ANSWER(cl_ulong, 32 << 10);
  case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return NUMBER_ANSWER(cl_ulong, 1 << 28);
  case CL_DEVICE_MEM_BASE_ADDR_ALIGN: return NUMBER_ANSWER(cl_uint, 1024);
  default: return NUMBER_ANSWER(cl_uint, 4);
  }
}
static cl_context CL_API_CALL fclCreateContext(const cl_context_properties *p, cl_uint n, const cl_device_id *d,
                                               void(CL_CALLBACK *f)(const char *, const void *, size_t, void *), void *user, cl_int *code) {
  (void)p, (void)n, (void)d, (void)f, (void)user;
  return (cl_context)(void *)made(__func__, 0, code);
}
static cl_command_queue CL_API_CALL fclCreateCommandQueue(cl_context c, cl_device_id d, cl_command_queue_properties p, cl_int *code) {
  (void)c, (void)p;
  return (cl_command_queue)(void *)made(__func__, d == (cl_device_id)(void *)&device_near, code);
}
static cl_mem CL_API_CALL fclCreateBuffer(cl_context c, cl_mem_flags flags, size_t bytes, void *host, cl_int *code) {
  (void)c, (void)host, fake.flags = flags;
  return (cl_mem)(void *)made(__func__, bytes, code);
}
static cl_mem CL_API_CALL fclCreateSubBuffer(cl_mem m, cl_mem_flags flags, cl_buffer_create_type type, const void *info, cl_int *code) {
  const cl_buffer_region *region = info;
  (void)flags, (void)type, *code = fails(__func__);
  return *code == CL_SUCCESS ? (cl_mem)(void *)make(region->size, (object *)(void *)m, region->origin) : NULL;
}
static cl_program CL_API_CALL fclCreateProgramWithSource(cl_context c, cl_uint n, const char **text, const size_t *size, cl_int *code) {
  (void)c, (void)n, (void)text, (void)size;
  return (cl_program)(void *)made(__func__, 0, code);
}
static cl_program CL_API_CALL fclCreateProgramWithBinary(cl_context c, cl_uint n, const cl_device_id *d, const size_t *size,
                                                         const unsigned char **bytes, cl_int *status, cl_int *code) {
  (void)c, (void)n, (void)d, (void)size, (void)bytes, *status = CL_SUCCESS, fake.from_binary++;
  return (cl_program)(void *)made(__func__, 0, code);
}
static cl_int CL_API_CALL fclBuildProgram(cl_program p, cl_uint n, const cl_device_id *d, const char *options,
                                          void(CL_CALLBACK *f)(cl_program, void *), void *user) {
  const struct timespec some = {0, 20000000};
  (void)p, (void)n, (void)d, (void)f, (void)user;
  if (fake.group_size == 0) { /* how many threads are here at once */
    const int32_t now = __atomic_add_fetch(&fake.builders, 1, __ATOMIC_SEQ_CST);
    if (now > fake.most_builders) fake.most_builders = now;
    nanosleep(&some, NULL);
    __atomic_sub_fetch(&fake.builders, 1, __ATOMIC_SEQ_CST);
    return CL_BUILD_PROGRAM_FAILURE;
  }
  snprintf(fake.options, sizeof fake.options, "%s", options);
  return fails(__func__);
}
static cl_int CL_API_CALL fclGetProgramBuildInfo(cl_program p, cl_device_id d, cl_program_build_info what, size_t room, void *to,
                                                 size_t *size) {
  (void)p, (void)d, (void)what;
  return TEXT_ANSWER("1:1: no such thing");
}
static cl_int CL_API_CALL fclGetProgramInfo(cl_program p, cl_program_info what, size_t room, void *to, size_t *size) {
  (void)p;
  if (what == CL_PROGRAM_BINARY_SIZES) return NUMBER_ANSWER(size_t, 16);
  const cl_int code = fails(__func__);
  if (code == CL_SUCCESS) memcpy(*(unsigned char **)to, fake.binary ? fake.binary : "no part is known", 16);
  return code;
}
static cl_kernel CL_API_CALL fclCreateKernel(cl_program p, const char *name, cl_int *code) {
  (void)p, (void)name;
  return (cl_kernel)(void *)made(__func__, 0, code);
}
static cl_int CL_API_CALL fclSetKernelArg(cl_kernel k, cl_uint i, size_t size, const void *value) {
  (void)k;
  if (i < 2) memcpy(&arguments[i], value, size);
  else memcpy(&words[i - 2], value, size);
  return fails(__func__);
}
static cl_int CL_API_CALL fclGetKernelInfo(cl_kernel k, cl_kernel_info what, size_t room, void *to, size_t *size) {
  (void)k, (void)what;
  return NUMBER_ANSWER(cl_uint, 5);
}
static cl_int CL_API_CALL fclGetKernelWorkGroupInfo(cl_kernel k, cl_device_id d, cl_kernel_work_group_info what, size_t room, void *to,
                                                    size_t *size) {
  (void)k, (void)d, (void)what;
  return NUMBER_ANSWER(size_t, fake.group_size);
}
static cl_int event_for(cl_int code, cl_event *event) {
  if (code == CL_SUCCESS && event) *event = (cl_event)(void *)make(0, NULL, 0);
  return code;
}
static cl_int CL_API_CALL fclEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint rank, const size_t *offset, const size_t *global,
                                                  const size_t *local, cl_uint n, const cl_event *list, cl_event *event) {
  (void)k, (void)rank, (void)offset, (void)local, (void)n, (void)list, fake.launches++;
  fake.was_near = ((object *)(void *)q)->bytes;
  const cl_int code = fails(__func__);
  for (size_t i = 0; code == CL_SUCCESS && i < global[0] && i < words[0] && i / 64 < words[2]; i++) {
    float a;
    memcpy(&a, &words[1], sizeof a);
    ((float *)(void *)arguments[1]->data)[i] = a * ((float *)(void *)arguments[0]->data)[i] + (float)i;
  }
  return event_for(code, event);
}
static cl_int CL_API_CALL fclEnqueueReadBuffer(cl_command_queue q, cl_mem m, cl_bool wait, size_t offset, size_t bytes, void *to, cl_uint n,
                                               const cl_event *list, cl_event *event) {
  (void)q, (void)wait, (void)n, (void)list;
  const cl_int code = fails(__func__);
  if (code == CL_SUCCESS) memcpy(to, ((object *)(void *)m)->data + offset, bytes);
  return event_for(code, event);
}
static cl_int CL_API_CALL fclEnqueueWriteBuffer(cl_command_queue q, cl_mem m, cl_bool wait, size_t offset, size_t bytes, const void *from,
                                                cl_uint n, const cl_event *list, cl_event *event) {
  (void)q, (void)wait, (void)n, (void)list;
  const cl_int code = fails(__func__);
  if (code == CL_SUCCESS) memcpy(((object *)(void *)m)->data + offset, from, bytes);
  return event_for(code, event);
}
static void *CL_API_CALL fclEnqueueMapBuffer(cl_command_queue q, cl_mem m, cl_bool wait, cl_map_flags flags, size_t offset, size_t bytes,
                                             cl_uint n, const cl_event *list, cl_event *event, cl_int *code) {
  (void)q, (void)wait, (void)flags, (void)bytes, (void)n, (void)list, (void)event, *code = fails(__func__);
  fake.alive += *code == CL_SUCCESS;
  return *code == CL_SUCCESS ? ((object *)(void *)m)->data + offset : NULL;
}
static cl_int CL_API_CALL fclEnqueueUnmapMemObject(cl_command_queue q, cl_mem m, void *at, cl_uint n, const cl_event *list,
                                                   cl_event *event) {
  (void)q, (void)m, (void)n, (void)list, (void)event;
  fake.alive--;
  return at ? CL_SUCCESS : CL_INVALID_VALUE;
}
static cl_int CL_API_CALL fclEnqueueMarkerWithWaitList(cl_command_queue q, cl_uint n, const cl_event *list, cl_event *event) {
  (void)q, (void)n, (void)list, fake.markers++;
  return event_for(fails(__func__), event);
}
static cl_int CL_API_CALL fclGetEventInfo(cl_event e, cl_event_info what, size_t room, void *to, size_t *size) {
  (void)e, (void)what;
  return NUMBER_ANSWER(cl_int, CL_COMPLETE);
}
static cl_int CL_API_CALL fclGetEventProfilingInfo(cl_event e, cl_profiling_info what, size_t room, void *to, size_t *size) {
  (void)e;
  return NUMBER_ANSWER(cl_ulong, what == CL_PROFILING_COMMAND_END ? fake.ends_ns : 1000);
}
static cl_int CL_API_CALL fclWaitForEvents(cl_uint n, const cl_event *list) { return (void)n, (void)list, fails(__func__); }
static cl_int CL_API_CALL fclFinish(cl_command_queue q) { return (void)q, fake.finishes++, fails(__func__); }
static cl_int CL_API_CALL fclFlush(cl_command_queue q) { return (void)q, fails(__func__); }
#define RELEASE(name, type) \
  static cl_int CL_API_CALL f##name(type o) { return drop((object *)(void *)o); }
RELEASE(clReleaseContext, cl_context)
RELEASE(clReleaseCommandQueue, cl_command_queue)
RELEASE(clReleaseMemObject, cl_mem)
RELEASE(clReleaseProgram, cl_program)
RELEASE(clReleaseKernel, cl_kernel)
RELEASE(clReleaseEvent, cl_event)
static cl_int CL_API_CALL never(void) { return CL_INVALID_OPERATION; } /* what only a host's own objects need */

/* ---- the loader: these three in place of runtime/rt_loader.c ---- */

typedef cl_int(CL_API_CALL *any_function)(void);
#define ROW(name) {#name, (any_function)(void (*)(void))f##name},
// clang-format off
static const struct { const char *name; any_function function; } functions[] = {
    ROW(clGetPlatformIDs) ROW(clGetPlatformInfo) ROW(clGetDeviceIDs) ROW(clGetDeviceInfo) ROW(clCreateContext) ROW(clReleaseContext)
    ROW(clCreateCommandQueue) ROW(clReleaseCommandQueue) ROW(clCreateBuffer) ROW(clCreateSubBuffer) ROW(clReleaseMemObject)
    ROW(clCreateProgramWithSource) ROW(clCreateProgramWithBinary) ROW(clBuildProgram) ROW(clGetProgramBuildInfo) ROW(clGetProgramInfo)
    ROW(clReleaseProgram) ROW(clCreateKernel) ROW(clReleaseKernel) ROW(clSetKernelArg) ROW(clGetKernelInfo) ROW(clGetKernelWorkGroupInfo)
    ROW(clEnqueueNDRangeKernel) ROW(clEnqueueReadBuffer) ROW(clEnqueueWriteBuffer) ROW(clEnqueueMapBuffer) ROW(clEnqueueUnmapMemObject)
    ROW(clEnqueueMarkerWithWaitList) ROW(clFinish) ROW(clFlush) ROW(clWaitForEvents) ROW(clGetEventInfo) ROW(clGetEventProfilingInfo) ROW(clReleaseEvent)};
// clang-format on

void *rt_library_open(const char *const *names) { return strstr(*names, "OpenCL") || strstr(*names, "oclgrind") ? &fake : NULL; }
void rt_library_close(void *library) { (void)library; }
const char *rt_library_symbols(void *library, const char *names, void *table) {
  (void)library;
  for (char *at = table; *names; names = rt_next_name(names), at += sizeof(any_function)) {
    any_function found = never;
    for (uint32_t k = 0; k < IR_COUNT(functions); k++)
      if (!strcmp(functions[k].name, names)) found = functions[k].function;
    memcpy(at, &found, sizeof found);
  }
  return NULL;
}

/* ---- a life of a device ---- */

static struct { int64_t live; } ours;
static void *count_acquire(void *user, size_t size, size_t align, uint32_t scope) {
  (void)user, (void)scope, ours.live += (int64_t)size;
  return aligned_alloc(align, (size + align - 1) / align * align + (size ? 0 : align));
}
static void count_release(void *user, void *at, size_t size, size_t align) {
  (void)user, (void)align;
  if (at) ours.live -= (int64_t)size;
  free(at);
}

static snt_result use(rt_life *t, rt_device *device, const rt_code *code) {
  static uint8_t binary[16];
  t->turns = 1, t->wait_ns = 1000, t->binary = binary, t->binary_size = sizeof binary;
  SNT_TRY(rt_life_use(t, device, code));
  return t->result[0] == 2 && t->result[63] == 63 ? SNT_OK : SNT_E_INTERNAL;
}

static bool never_opened;
static snt_result live(const rt_code *code, snt_result *after) {
  const snt_host_alloc alloc = {NULL, count_acquire, count_release};
  rt_device *device = NULL;
  rt_life t = {0};
  *after = SNT_E_DEVICE_LOST;
  const snt_result opened = rt_open_device(&alloc, NULL, "opencl:0", &device, NULL);
  if ((never_opened = opened != SNT_OK)) return opened;
  memset(called + 1, 0, sizeof called - sizeof *called);
  const snt_result result = use(&t, device, code);
  *after = rt_life_ask(device);
  rt_life_free(&t, device);
  rt_close_device(device);
  return result;
}

// clang-format off
static const struct { cl_int code; snt_result result; } errors[] = {
    {CL_DEVICE_NOT_AVAILABLE, SNT_E_DEVICE_LOST}, {CL_OUT_OF_RESOURCES, SNT_E_DEVICE_MEM}, {CL_OUT_OF_HOST_MEMORY, SNT_E_HOST_MEM},
    {CL_INVALID_OPERATION, SNT_E_BACKEND}};
// clang-format on

static void fail_each(const rt_code *code, const char *platform, bool cpu) {
  uint32_t tries = 0, wrong = 0, left = 0, revived = 0;
  bool told[IR_COUNT(must)] = {false};
  memset(called, 0, sizeof called);
  snt_result after;
  fake.platform = platform, fake.cpu = cpu, fake.fail_at = 0, fake.calls = 0;
  tap_is_int(live(code, &after), SNT_OK, "%s: nothing fails, and the kernel's numbers come out", platform);
  const uint32_t calls = fake.calls;
  for (uint32_t e = 0; e < IR_COUNT(errors); e++) {
    for (uint32_t n = 1; n <= calls; n++, tries++) {
      fake.fail_at = n, fake.fail_with = errors[e].code, fake.calls = 0, fake.failed = "none", ours.live = 0;
      fake.alive = 0;
      const snt_result got = live(code, &after);
      const bool right = got == SNT_OK || got == errors[e].result || (never_opened && (got == SNT_E_UNSUPPORTED || got == SNT_E_BACKEND));
      const bool lost = got == SNT_E_DEVICE_LOST, stays = !lost || after == SNT_E_DEVICE_LOST;
      wrong += !right, left += fake.alive != 0 || ours.live != 0, revived += !stays;
      if (!right || !stays || fake.alive || ours.live)
        tap_diag("call %u, %s, gives %d: result %d, then %d; %lld objects and %lld bytes left", n, fake.failed + 1, errors[e].code, got,
                 after, (long long)fake.alive, (long long)ours.live);
      for (uint32_t k = 0; k < IR_COUNT(must); k++) told[k] |= got == errors[e].result && !strcmp(fake.failed + 1, must[k]);
    }
  }
  tap_ok(calls > 60 && wrong == 0, "%s: each of %u calls fails with each of %u errors, and the result says which", platform, calls,
         IR_COUNT(errors));
  tap_is_int(left, 0, "%s: nothing is left in the driver or of our own after %u lives", platform, tries);
  tap_is_int(revived, 0, "%s: a lost device stays lost", platform);
  for (uint32_t k = 0; k < IR_COUNT(must); k++)
    if (called[k] && !told[k]) tap_ok(false, "%s: a failing %s is told", platform, must[k]);
}

/* ---- what is known to be wrong with a family, by what is asked of its driver ---- */

typedef struct habits {
  const char *platform, *selector;
  bool cpu, mapped, understates, early, warms, unoptimised, alone, late, whole;
} habits;
static const habits known[] = {
    {"Portable Computing Language", "opencl:pocl", .cpu = true, .mapped = true, .warms = true, .late = true, .whole = true}, /* 3.1 */
    {"rusticl", "opencl:rusticl", .cpu = true, .understates = true, .early = true},   /* Mesa 22.3.6 */
    {"Oclgrind", "opencl:oclgrind", .cpu = true, .unoptimised = true, .alone = true}, /* 21.10 */
    {"some other driver", "opencl:0", .cpu = false},
};

typedef struct builder {
  rt_device *device;
  const rt_code *code;
} builder;
static void *build_one(void *user) {
  const builder *b = user;
  rt_pipeline *none = NULL;
  return (void *)(intptr_t)(b->device->v->pipeline_create(b->device, b->code, NULL, 0, &none, NULL) == SNT_OK);
}

static void check_binaries(rt_device *device, const habits *h, const rt_code *code, rt_pipeline *pipeline) {
  static const char *const binaries[2] = {"1234/program.b56", "1234/program.bc5"};
  for (uint32_t whole = 0; whole < 2; whole++) {
    char binary[16];
    size_t size = sizeof binary;
    const bool taken = whole || !h->whole;
    rt_pipeline *again = NULL;
    fake.binary = binaries[whole], fake.from_binary = 0;
    tap_is_int(device->v->pipeline_binary(pipeline, binary, &size), taken ? SNT_OK : SNT_E_BACKEND, "%s: %s", h->selector,
               whole ? "a whole binary is handed out" : "a binary that lacks a part is none");
    tap_is_int(device->v->pipeline_create(device, code, binaries[whole], sizeof binary, &again, NULL), SNT_OK, "and built");
    tap_ok(again && again->from_binary == taken && fake.from_binary == taken, "from it, or from its text");
    device->v->pipeline_destroy(again);
  }
  fake.binary = NULL;
}

static void check_habits(const habits *h, const rt_code *code) {
  rt_device *device = NULL;
  rt_stream *stream = NULL;
  rt_pipeline *pipeline = NULL, *wide = NULL;
  rt_buffer *buffer = NULL;
  rt_life t = {0};
  pthread_t threads[4];
  fake.platform = h->platform, fake.cpu = h->cpu, fake.fail_at = 0, fake.group_size = 256;
  if (!tap_ok(rt_open_device(NULL, NULL, h->selector, &device, NULL) == SNT_OK, "%s opens", h->selector)) return;
  const rt_vtable *v = device->v;
  const int64_t before = fake.alive;
  v->stream_create(device, &stream, NULL);
  tap_is_int(fake.alive - before, h->early ? 2 : 1, "%s: a stream has a word to read only where finishing does not wait", h->selector);
  fake.launches = 0;
  v->pipeline_create(device, code, NULL, 0, &pipeline, NULL);
  tap_is_int(fake.launches, h->warms, "%s: an empty launch only where the first one compiles", h->selector);
  tap_is_int(strstr(fake.options, "-cl-opt-disable") != NULL, h->unoptimised, "%s: the optimiser is off only where it harms", h->selector);
  check_binaries(device, h, code, pipeline);
  v->buffer_create(device, 64, &buffer, NULL);
  tap_is_int((fake.flags & CL_MEM_ALLOC_HOST_PTR) != 0, h->mapped, "%s: memory that may stay mapped is asked for where it may",
             h->selector);
  tap_is_int(buffer && buffer->host, h->mapped, "%s: buffers stay mapped only where they may", h->selector);
  tap_is_int(device->late_binaries, h->late, "%s: binaries are asked for late only where that compiles again", h->selector);
  fake.group_size = 16;
  tap_is_int(v->pipeline_create(device, code, NULL, 0, &wide, NULL), h->understates ? SNT_OK : SNT_E_LIMIT,
             "%s: a group size too small is believed unless the driver understates it", h->selector);
  fake.group_size = 256, fake.markers = 0;
  tap_is_int(use(&t, device, code), SNT_OK, "%s: a kernel runs", h->selector);
  if (h->early) tap_is_int(fake.markers, 0, "%s: no marker is trusted where they do not wait", h->selector);
  fake.group_size = 0, fake.most_builders = 0;
  builder b = {device, code};
  for (uint32_t i = 0; i < IR_COUNT(threads); i++) pthread_create(&threads[i], NULL, build_one, &b);
  for (uint32_t i = 0; i < IR_COUNT(threads); i++) pthread_join(threads[i], NULL);
  fake.group_size = 256;
  if (h->alone) tap_is_int(fake.most_builders, 1, "%s: one thread builds at a time", h->selector);
  rt_life_free(&t, device);
  v->buffer_destroy(buffer);
  v->pipeline_destroy(pipeline), v->pipeline_destroy(wide);
  v->stream_destroy(stream);
  rt_close_device(device);
  tap_is_int(fake.alive - before, -1, "%s: nothing is left, nor is its context", h->selector);
}

/* Drivers that take the flag for times and answer 0, or 1 ns. */
static void check_times(void) {
  for (cl_ulong ns = 0; ns < 3; ns++) {
    rt_device *device = NULL;
    fake.ends_ns = 1000 + (ns < 2 ? ns : 8000);
    if (!tap_ok(rt_open_device(NULL, NULL, "opencl:0", &device, NULL) == SNT_OK, "a device whose copies take %u ns opens",
                (unsigned)(fake.ends_ns - 1000)))
      return;
    tap_is_int(((ocl_device *)device)->profiling, ns == 2, "its times are believed only where they can be true");
    rt_close_device(device);
  }
}

/* Products of bytes are the language's where the driver says that they are fast, and that the language has them. */
static void check_dots(const rt_code *code) {
  static const struct {
    const char *selector, *platform, *version, *options;
    bool has, fast;
  } rows[] = {
      {"opencl:0", "some other driver", "OpenCL 3.0 x", "-cl-std=CL3.0 -DSNT_DOT4=32", true, true},
      {"opencl:0", "some other driver", "OpenCL 3.0 x", "-cl-std=CL1.2", true, false},
      {"opencl:0", "some other driver", "OpenCL 3.0 x", "-cl-std=CL1.2", false, true},
      {"opencl:0", "some other driver", "OpenCL 2.1 x", "-cl-std=CL1.2", true, true},
      {"opencl:pocl", "Portable Computing Language", "OpenCL 3.0 x", "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt", true,
       true}, /* has assembly of its own */
  };
  for (uint32_t i = 0; i < IR_COUNT(rows); i++) {
    rt_device *device = NULL;
    rt_pipeline *pipeline = NULL;
    fake.platform = rows[i].platform, fake.version = rows[i].version, fake.dots = rows[i].has, fake.fast_dots = rows[i].fast;
    fake.cpu = !strcmp(rows[i].selector, "opencl:pocl");
    if (!tap_ok(rt_open_device(NULL, NULL, rows[i].selector, &device, NULL) == SNT_OK, "%s of %s opens", rows[i].selector, rows[i].version))
      return;
    device->v->pipeline_create(device, code, NULL, 0, &pipeline, NULL);
    tap_is_text(fake.options, rows[i].options, "what it is built with");
    tap_is_int(device->profile.caps.dot4, strstr(rows[i].options, "DOT4") != NULL, "and compiled for");
    device->v->pipeline_destroy(pipeline);
    rt_close_device(device);
  }
}

/* Where the driver lists a device that runs kernels on the thread that enqueues them: kernels made for it go there, and a stream that turns to its other queue
   waits for the one before. */
static void check_near(const rt_code *code) {
  rt_device *device = NULL;
  rt_stream *stream = NULL;
  rt_pipeline *pipelines[2] = {NULL, NULL};
  rt_buffer *buffer = NULL;
  rt_code made = *code;
  uint32_t block[2] = {0}, listed = 0;
  rt_device_desc all[2];
  fake.platform = "Portable Computing Language", fake.cpu = true, fake.near = true;
  rt_opencl.enumerate(NULL, &listed, all, 2);
  tap_is_int(listed, 1, "a device near to another is none of its own");
  if (!tap_ok(rt_open_device(NULL, NULL, "opencl:pocl", &device, NULL) == SNT_OK && device->near, "and is known to that")) return;
  const rt_vtable *v = device->v;
  v->stream_create(device, &stream, NULL);
  v->buffer_create(device, 64, &buffer, NULL);
  for (uint32_t near = 0; near < 2; near++) {
    made.near = near;
    v->pipeline_create(device, &made, NULL, 0, &pipelines[near], NULL);
  }
  struct rt_bound bindings[2] = {{buffer, 0, 64, KIR_READ}, {buffer, 0, 64, KIR_WRITE}};
  static const struct {
    bool near;
    uint32_t waits;
  } rows[] = {{true, 0}, {true, 0}, {false, 1}, {false, 0}, {true, 1}};
  for (uint32_t i = 0; i < IR_COUNT(rows); i++) {
    const rt_dispatch dispatch = {
        .pipeline = pipelines[rows[i].near], .groups = 1, .binding_count = 2, .bindings = bindings, .block = block, .block_bytes = 8};
    fake.finishes = 0;
    tap_ok(v->submit(stream, 1, &dispatch, false, NULL, NULL) == SNT_OK && fake.was_near == rows[i].near && fake.finishes == rows[i].waits,
           "launch %u goes to its queue behind %u waits", i, rows[i].waits);
  }
  v->buffer_destroy(buffer);
  v->pipeline_destroy(pipelines[0]), v->pipeline_destroy(pipelines[1]);
  v->stream_destroy(stream);
  rt_close_device(device);
}

/* A device that has a profile of its own begins from it, without what the language lacks. */
static void check_known(void) {
  rt_device *device = NULL;
  fake.platform = "NVIDIA CUDA", fake.cpu = false, fake.name = "NVIDIA H200";
  if (!tap_ok(rt_open_device(NULL, NULL, "opencl:nvidia", &device, NULL) == SNT_OK, "a device of a known name opens")) return;
  const cost_profile *p = &device->profile;
  tap_ok(!strcmp(p->name, "h200") && p->dram_gbs > 4000, "and begins from its profile: %s, %.0f GB/s", p->name, p->dram_gbs);
  tap_ok(p->caps.max_lanes == 4 && !p->caps.subgroups && !p->caps.mma[KIR_MMA_F16].m, "with vectors, without what the language lacks");
  rt_close_device(device);
  fake.platform = "rusticl", fake.cpu = true, fake.name = NULL;
  if (!tap_ok(rt_open_device(NULL, NULL, "opencl:rusticl", &device, NULL) == SNT_OK, "one of a family opens")) return;
  tap_is_int(device->profile.caps.max_lanes, 1, "and its profile has scalars alone where that says so");
  rt_close_device(device);
}

/* The first device of a family has its name, the others their numbers. */
static void check_selectors(void) {
  const snt_host_alloc alloc = {NULL, count_acquire, count_release};
  rt_device_desc all[2];
  uint32_t listed = 0;
  fake.platform = "rusticl", fake.cpu = true, fake.near = true, ours.live = 0;
  tap_ok(rt_opencl.enumerate(&alloc, &listed, all, 2) == SNT_OK && ours.live == 0, "two devices of a family");
  tap_ok(listed == 2 && !strcmp(all[0].selector, "opencl:rusticl") && !strcmp(all[1].selector, "opencl:1"), "are told apart");
  fake.near = false;
}

/* Each part of a buffer that kernels are given is an object that is made once, however many there are. */
static void check_parts(const rt_code *code) {
  enum { PARTS = 100, STEP = 1024 };
  rt_device *device = NULL;
  rt_stream *stream = NULL;
  rt_pipeline *pipeline = NULL;
  rt_buffer *x = NULL, *y = NULL;
  const uint32_t block[2] = {0};
  const int64_t start = fake.alive;
  fake.platform = "some other driver", fake.cpu = false;
  if (!tap_ok(rt_open_device(NULL, NULL, "opencl:0", &device, NULL) == SNT_OK, "a device opens")) return;
  const rt_vtable *v = device->v;
  v->stream_create(device, &stream, NULL);
  v->pipeline_create(device, code, NULL, 0, &pipeline, NULL);
  v->buffer_create(device, 64, &x, NULL);
  v->buffer_create(device, PARTS * STEP, &y, NULL);
  const int64_t before = fake.alive;
  for (uint32_t round = 0; round < 2; round++) {
    uint32_t failed = 0;
    for (uint32_t i = 0; i < PARTS; i++) {
      struct rt_bound bindings[2] = {{x, 0, 64, KIR_READ}, {y, (uint64_t)i * STEP, 64, KIR_WRITE}};
      const rt_dispatch dispatch = {
          .pipeline = pipeline, .groups = 1, .binding_count = 2, .bindings = bindings, .block = block, .block_bytes = 8};
      failed += v->submit(stream, 1, &dispatch, false, NULL, NULL) != SNT_OK;
    }
    failed += v->wait(stream, NULL) != SNT_OK;
    tap_ok(!failed && fake.alive - before == PARTS, "round %u: %lld objects are made for %d parts", round, (long long)(fake.alive - before),
           PARTS);
  }
  v->buffer_destroy(x), v->buffer_destroy(y);
  v->pipeline_destroy(pipeline);
  v->stream_destroy(stream);
  rt_close_device(device);
  tap_is_int(fake.alive, start, "and are gone with it");
}

int main(void) {
  test_code code;
  const char *why = "";
  if (!test_code_make(&code, SNT_TARGET_OPENCL, false, &why)) return tap_skip_all(why);
  fail_each(&code.code, "Portable Computing Language", true);
  check_near(&code.code);
  fail_each(&code.code, "Portable Computing Language", true); /* with two queues a stream */
  fake.near = false;
  fail_each(&code.code, "rusticl", true);
  fail_each(&code.code, "some other driver", false);
  for (uint32_t i = 0; i < IR_COUNT(known); i++) check_habits(&known[i], &code.code);
  check_known();
  check_selectors();
  check_parts(&code.code);
  check_times();
  check_dots(&code.code);
  test_code_free(&code);
  return tap_done();
}
