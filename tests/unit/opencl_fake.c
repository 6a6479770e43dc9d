#include "tests/unit/opencl_fake.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

opencl_fake_books opencl_fake = {.version = "OpenCL 1.2 ", .group_size = 256, .ends_ns = 9000};
// clang-format off
const char opencl_fake_must[OPENCL_FAKE_MUST][28] = {
    "clCreateContext", "clCreateCommandQueue", "clCreateBuffer", "clCreateSubBuffer", "clCreateProgramWithSource", "clBuildProgram",
    "clCreateKernel", "clGetKernelInfo", "clGetKernelWorkGroupInfo", "clSetKernelArg", "clEnqueueNDRangeKernel", "clEnqueueReadBuffer",
    "clEnqueueWriteBuffer", "clFlush", "clWaitForEvents", "clGetEventInfo"};
// clang-format on
bool opencl_fake_called[OPENCL_FAKE_MUST];

/* ---- the books ---- */

typedef enum kind { CONTEXT, QUEUE, BUFFER, PROGRAM, KERNEL, EVENT } kind;
typedef struct object {
  kind kind;
  uint32_t references;
  size_t bytes;
  uint8_t *data;
  struct object *parent;       /* of a part of a buffer */
  struct object *queue;        /* of the last command that needs it, of an event the command it is of: null: none, or it is over */
  uint32_t command;            /* that one's number; of a queue the last one's */
  uint32_t over;               /* of a queue: the last one that was waited for */
  bool is_near, tells;         /* of a queue; of an event: that it is over says that its command is */
  struct object *arguments[2]; /* of a kernel */
  cl_uint words[3], given;     /* one bit an argument */
  struct object *next;         /* among those that are gone */
} object;
static object *gone;
static pthread_mutex_t gone_lock = PTHREAD_MUTEX_INITIALIZER;

static cl_int fails(const char *name) {
  for (uint32_t k = 0; k < IR_COUNT(opencl_fake_must); k++) opencl_fake_called[k] |= !strcmp(name + 1, opencl_fake_must[k]);
  if (++opencl_fake.calls != opencl_fake.fail_at) return CL_SUCCESS;
  opencl_fake.failed = name;
  return opencl_fake.fail_with;
}

static object *make(kind kind, size_t bytes, object *parent, size_t offset) {
  object *o = calloc(1, sizeof *o);
  *o = (object){
      .kind = kind, .references = 1, .bytes = bytes, .parent = parent, .data = parent ? parent->data + offset : calloc(1, bytes + 1)};
  if (parent) parent->references++;
  opencl_fake.alive++;
  return o;
}

/* What a caller calls an object of this kind. */
static object *as(kind kind, void *handle) {
  object *o = handle;
  if (o->kind != kind || !o->references) opencl_fake.misused++;
  return o;
}

/* A command of the queue needs it until the queue, or an event behind the command, is waited for. */
static void need(object *queue, object *o) { o->queue = queue, o->command = queue->command; }
static void wait_for(object *queue, uint32_t command) {
  if (command > queue->over) queue->over = command;
}

static cl_int drop(object *o) {
  if (!o->references || --o->references) return CL_SUCCESS;
  if (o->kind == QUEUE ? o->command > o->over : o->kind != EVENT && o->queue && o->command > o->queue->over) opencl_fake.hasty++;
  if (o->parent) drop(o->parent);
  pthread_mutex_lock(&gone_lock);
  o->next = gone, gone = o;
  pthread_mutex_unlock(&gone_lock);
  opencl_fake.alive--;
  return CL_SUCCESS;
}

void opencl_fake_forget(void) {
  for (object *o = gone, *next; o; o = next) {
    next = o->next;
    if (!o->parent) free(o->data);
    free(o);
  }
  gone = NULL;
}

static object *made(const char *name, kind kind, size_t bytes, cl_int *code) {
  *code = fails(name);
  return *code == CL_SUCCESS ? make(kind, bytes, NULL, 0) : NULL;
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

static cl_int CL_API_CALL fclGetPlatformIDs(cl_uint room, cl_platform_id *to, cl_uint *count) {
  (void)room, *to = (cl_platform_id)(void *)&platform_here, *count = 1;
  return fails(__func__);
}
static cl_int CL_API_CALL fclGetPlatformInfo(cl_platform_id p, cl_platform_info what, size_t room, void *to, size_t *size) {
  (void)p, (void)what;
  return TEXT_ANSWER(opencl_fake.platform);
}
static cl_int CL_API_CALL fclGetDeviceIDs(cl_platform_id p, cl_device_type type, cl_uint room, cl_device_id *to, cl_uint *count) {
  (void)p, (void)type, (void)room, *count = 0;
  if (opencl_fake.near) to[(*count)++] = (cl_device_id)(void *)&device_near;
  to[(*count)++] = (cl_device_id)(void *)&device_here;
  return fails(__func__);
}
static cl_int CL_API_CALL fclGetDeviceInfo(cl_device_id d, cl_device_info what, size_t room, void *to, size_t *size) {
  const cl_device_integer_dot_product_acceleration_properties_khr fast = {.mixed_signedness_accelerated = opencl_fake.fast_dots};
  switch (what) {
  case CL_DEVICE_NAME:
    return TEXT_ANSWER(d == (cl_device_id)(void *)&device_near ? "basic table of functions, beside a processor of a long name"
                       : opencl_fake.name                      ? opencl_fake.name
                                                               : "a table of functions");
  case CL_DRIVER_VERSION: return TEXT_ANSWER("1");
  case CL_DEVICE_VERSION: return TEXT_ANSWER(opencl_fake.version);
  case CL_DEVICE_EXTENSIONS: return TEXT_ANSWER(opencl_fake.dots ? "cl_khr_integer_dot_product cl_khr_fp64" : "cl_khr_fp64");
  case CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_4x8BIT_PACKED_KHR: return answer(__func__, &fast, sizeof fast, room, to, size);
  case CL_DEVICE_TYPE: return NUMBER_ANSWER(cl_device_type, opencl_fake.cpu ? CL_DEVICE_TYPE_CPU : CL_DEVICE_TYPE_GPU);
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
  return (cl_context)(void *)made(__func__, CONTEXT, 0, code);
}
static cl_command_queue CL_API_CALL fclCreateCommandQueue(cl_context c, cl_device_id d, cl_command_queue_properties p, cl_int *code) {
  (void)p, as(CONTEXT, c);
  object *q = made(__func__, QUEUE, 0, code);
  if (q) q->is_near = d == (cl_device_id)(void *)&device_near;
  return (cl_command_queue)(void *)q;
}
static cl_mem CL_API_CALL fclCreateBuffer(cl_context c, cl_mem_flags flags, size_t bytes, void *host, cl_int *code) {
  (void)host, as(CONTEXT, c), opencl_fake.flags = flags;
  return (cl_mem)(void *)made(__func__, BUFFER, bytes, code);
}
static cl_mem CL_API_CALL fclCreateSubBuffer(cl_mem m, cl_mem_flags flags, cl_buffer_create_type type, const void *info, cl_int *code) {
  const cl_buffer_region *region = info;
  (void)flags, (void)type, *code = fails(__func__);
  return *code == CL_SUCCESS ? (cl_mem)(void *)make(BUFFER, region->size, as(BUFFER, m), region->origin) : NULL;
}
static cl_program CL_API_CALL fclCreateProgramWithSource(cl_context c, cl_uint n, const char **text, const size_t *size, cl_int *code) {
  (void)n, (void)text, (void)size, as(CONTEXT, c);
  return (cl_program)(void *)made(__func__, PROGRAM, 0, code);
}
static cl_program CL_API_CALL fclCreateProgramWithBinary(cl_context c, cl_uint n, const cl_device_id *d, const size_t *size,
                                                         const unsigned char **bytes, cl_int *status, cl_int *code) {
  (void)n, (void)d, (void)size, (void)bytes, as(CONTEXT, c), *status = CL_SUCCESS, opencl_fake.from_binary++;
  return (cl_program)(void *)made(__func__, PROGRAM, 0, code);
}
static cl_int CL_API_CALL fclBuildProgram(cl_program p, cl_uint n, const cl_device_id *d, const char *options,
                                          void(CL_CALLBACK *f)(cl_program, void *), void *user) {
  const struct timespec some = {0, 20000000};
  (void)n, (void)d, (void)f, (void)user, as(PROGRAM, p);
  if (opencl_fake.group_size == 0) { /* how many threads are here at once */
    const int32_t now = __atomic_add_fetch(&opencl_fake.builders, 1, __ATOMIC_SEQ_CST);
    if (now > opencl_fake.most_builders) opencl_fake.most_builders = now;
    nanosleep(&some, NULL);
    __atomic_sub_fetch(&opencl_fake.builders, 1, __ATOMIC_SEQ_CST);
    return CL_BUILD_PROGRAM_FAILURE;
  }
  snprintf(opencl_fake.options, sizeof opencl_fake.options, "%s", options);
  return fails(__func__);
}
static cl_int CL_API_CALL fclGetProgramBuildInfo(cl_program p, cl_device_id d, cl_program_build_info what, size_t room, void *to,
                                                 size_t *size) {
  (void)d, (void)what, as(PROGRAM, p);
  return TEXT_ANSWER("1:1: no such thing");
}
static cl_int CL_API_CALL fclGetProgramInfo(cl_program p, cl_program_info what, size_t room, void *to, size_t *size) {
  as(PROGRAM, p);
  if (what == CL_PROGRAM_BINARY_SIZES) return NUMBER_ANSWER(size_t, 16);
  const cl_int code = fails(__func__);
  if (code == CL_SUCCESS) memcpy(*(unsigned char **)to, opencl_fake.binary ? opencl_fake.binary : "no part is known", 16);
  return code;
}
static cl_kernel CL_API_CALL fclCreateKernel(cl_program p, const char *name, cl_int *code) {
  (void)name, *code = fails(__func__);
  return *code == CL_SUCCESS ? (cl_kernel)(void *)make(KERNEL, 0, as(PROGRAM, p), 0) : NULL;
}
static cl_int CL_API_CALL fclSetKernelArg(cl_kernel k, cl_uint i, size_t size, const void *value) {
  object *kernel = as(KERNEL, k);
  if (i < 2) memcpy(&kernel->arguments[i], value, size);
  else memcpy(&kernel->words[i - 2], value, size);
  if (i < 2 && kernel->arguments[i]) as(BUFFER, kernel->arguments[i]);
  kernel->given |= 1u << i;
  return fails(__func__);
}
static cl_int CL_API_CALL fclGetKernelInfo(cl_kernel k, cl_kernel_info what, size_t room, void *to, size_t *size) {
  (void)what, as(KERNEL, k);
  return NUMBER_ANSWER(cl_uint, 5);
}
static cl_int CL_API_CALL fclGetKernelWorkGroupInfo(cl_kernel k, cl_device_id d, cl_kernel_work_group_info what, size_t room, void *to,
                                                    size_t *size) {
  (void)d, (void)what, as(KERNEL, k);
  return NUMBER_ANSWER(size_t, opencl_fake.group_size);
}

/* ---- commands ---- */

/* One more of the queue, and its event. */
static object *begin(cl_command_queue q) {
  object *queue = as(QUEUE, q);
  return queue->command++, queue;
}
static cl_int event_for(cl_int code, object *queue, bool tells, cl_event *event) {
  if (code != CL_SUCCESS || !event) return code;
  object *o = make(EVENT, 0, NULL, 0);
  need(queue, o), o->tells = tells;
  *event = (cl_event)(void *)o;
  return code;
}
static void wait_event(object *event) {
  if (event->tells) wait_for(event->queue, event->command);
}

static cl_int CL_API_CALL fclEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint rank, const size_t *offset, const size_t *global,
                                                  const size_t *local, cl_uint n, const cl_event *list, cl_event *event) {
  object *queue = begin(q), *kernel = as(KERNEL, k), **buffers = kernel->arguments;
  const cl_uint *words = kernel->words;
  (void)rank, (void)offset, (void)local, (void)n, (void)list, opencl_fake.launches++;
  opencl_fake.was_near = queue->is_near, opencl_fake.misused += kernel->given != 31;
  const cl_int code = fails(__func__);
  if (code != CL_SUCCESS) return code;
  need(queue, kernel), need(queue, kernel->parent);
  for (uint32_t i = 0; i < 2; i++)
    if (buffers[i]) need(queue, as(BUFFER, buffers[i]));
  for (size_t i = 0; i < global[0] && i < words[0] && i / 64 < words[2]; i++) {
    float a;
    memcpy(&a, &words[1], sizeof a);
    ((float *)(void *)buffers[1]->data)[i] = a * ((float *)(void *)buffers[0]->data)[i] + (float)i;
  }
  return event_for(code, queue, !opencl_fake.early, event);
}
static cl_int copied(cl_int code, cl_command_queue q, cl_mem m, cl_bool wait, cl_event *event) {
  object *queue = begin(q);
  need(queue, as(BUFFER, m));
  if (code == CL_SUCCESS && wait) wait_for(queue, queue->command);
  return event_for(code, queue, true, event);
}
static cl_int CL_API_CALL fclEnqueueReadBuffer(cl_command_queue q, cl_mem m, cl_bool wait, size_t offset, size_t bytes, void *to, cl_uint n,
                                               const cl_event *list, cl_event *event) {
  (void)n, (void)list;
  const cl_int code = fails(__func__);
  if (code == CL_SUCCESS) memcpy(to, ((object *)(void *)m)->data + offset, bytes);
  return copied(code, q, m, wait, event);
}
static cl_int CL_API_CALL fclEnqueueWriteBuffer(cl_command_queue q, cl_mem m, cl_bool wait, size_t offset, size_t bytes, const void *from,
                                                cl_uint n, const cl_event *list, cl_event *event) {
  (void)n, (void)list;
  const cl_int code = fails(__func__);
  if (code == CL_SUCCESS) memcpy(((object *)(void *)m)->data + offset, from, bytes);
  return copied(code, q, m, wait, event);
}
static void *CL_API_CALL fclEnqueueMapBuffer(cl_command_queue q, cl_mem m, cl_bool wait, cl_map_flags flags, size_t offset, size_t bytes,
                                             cl_uint n, const cl_event *list, cl_event *event, cl_int *code) {
  (void)wait, (void)flags, (void)bytes, (void)n, (void)list, (void)event, as(QUEUE, q), as(BUFFER, m), *code = fails(__func__);
  opencl_fake.alive += *code == CL_SUCCESS;
  return *code == CL_SUCCESS ? ((object *)(void *)m)->data + offset : NULL;
}
static cl_int CL_API_CALL fclEnqueueUnmapMemObject(cl_command_queue q, cl_mem m, void *at, cl_uint n, const cl_event *list,
                                                   cl_event *event) {
  (void)n, (void)list, (void)event, need(begin(q), as(BUFFER, m));
  opencl_fake.alive--;
  return at ? CL_SUCCESS : CL_INVALID_VALUE;
}
static cl_int CL_API_CALL fclEnqueueMarkerWithWaitList(cl_command_queue q, cl_uint n, const cl_event *list, cl_event *event) {
  object *queue = begin(q);
  (void)n, (void)list, opencl_fake.markers++;
  return event_for(fails(__func__), queue, !opencl_fake.early, event);
}
static cl_int CL_API_CALL fclGetEventInfo(cl_event e, cl_event_info what, size_t room, void *to, size_t *size) {
  (void)what, wait_event(as(EVENT, e));
  return NUMBER_ANSWER(cl_int, CL_COMPLETE);
}
static cl_int CL_API_CALL fclGetEventProfilingInfo(cl_event e, cl_profiling_info what, size_t room, void *to, size_t *size) {
  as(EVENT, e);
  return NUMBER_ANSWER(cl_ulong, what == CL_PROFILING_COMMAND_END ? opencl_fake.ends_ns : 1000);
}
static cl_int CL_API_CALL fclWaitForEvents(cl_uint n, const cl_event *list) {
  const cl_int code = fails(__func__);
  for (cl_uint i = 0; i < n; i++) wait_event(as(EVENT, list[i]));
  return code;
}
static cl_int CL_API_CALL fclFinish(cl_command_queue q) {
  object *queue = as(QUEUE, q);
  if (!opencl_fake.early) wait_for(queue, queue->command);
  return opencl_fake.finishes++, fails(__func__);
}
static cl_int CL_API_CALL fclFlush(cl_command_queue q) { return as(QUEUE, q), fails(__func__); }
#define RELEASE(name, type, kind) \
  static cl_int CL_API_CALL f##name(type o) { return drop(as(kind, o)); }
RELEASE(clReleaseContext, cl_context, CONTEXT)
RELEASE(clReleaseCommandQueue, cl_command_queue, QUEUE)
RELEASE(clReleaseMemObject, cl_mem, BUFFER)
RELEASE(clReleaseProgram, cl_program, PROGRAM)
RELEASE(clReleaseKernel, cl_kernel, KERNEL)
RELEASE(clReleaseEvent, cl_event, EVENT)
static cl_int CL_API_CALL never(void) { return CL_INVALID_OPERATION; } /* what only a host's own objects need */

#define ROW(name) {#name, (opencl_fake_function)(void (*)(void))f##name},
// clang-format off
static const struct { const char *name; opencl_fake_function function; } functions[] = {
    ROW(clGetPlatformIDs) ROW(clGetPlatformInfo) ROW(clGetDeviceIDs) ROW(clGetDeviceInfo) ROW(clCreateContext) ROW(clReleaseContext)
    ROW(clCreateCommandQueue) ROW(clReleaseCommandQueue) ROW(clCreateBuffer) ROW(clCreateSubBuffer) ROW(clReleaseMemObject)
    ROW(clCreateProgramWithSource) ROW(clCreateProgramWithBinary) ROW(clBuildProgram) ROW(clGetProgramBuildInfo) ROW(clGetProgramInfo)
    ROW(clReleaseProgram) ROW(clCreateKernel) ROW(clReleaseKernel) ROW(clSetKernelArg) ROW(clGetKernelInfo) ROW(clGetKernelWorkGroupInfo)
    ROW(clEnqueueNDRangeKernel) ROW(clEnqueueReadBuffer) ROW(clEnqueueWriteBuffer) ROW(clEnqueueMapBuffer) ROW(clEnqueueUnmapMemObject)
    ROW(clEnqueueMarkerWithWaitList) ROW(clFinish) ROW(clFlush) ROW(clWaitForEvents) ROW(clGetEventInfo) ROW(clGetEventProfilingInfo) ROW(clReleaseEvent)};
// clang-format on

opencl_fake_function opencl_fake_find(const char *name) {
  for (uint32_t k = 0; k < IR_COUNT(functions); k++)
    if (!strcmp(functions[k].name, name)) return functions[k].function;
  return never;
}
