/* What a run costs in calls of the driver, counted in the backends' own tables: one wait a run, one submission, and on Vulkan nothing recorded
   again when nothing changed. */
#include "api/handles.h"
#include "runtime/rt_opencl.h"
#include "runtime/rt_vulkan.h"
#include "tests/tap.h"
#include "tests/unit/api_support.h"

static const char text[] = "symbols { n: min=1 max=4096 multiple_of=1 hint=64 }\n"
                           "graph @three(%x: f32[n,64], %r: f32[n,64]) {\n"
                           "  %a = add %x, %r\n"
                           "  %b = softmax %a, axis=1\n"
                           "  %c = mul %b, %x\n"
                           "  return y=%c, z=%a\n"
                           "}\n";

/* ---- counting tables: the real function, and a number ---- */

typedef struct call_counts {
  uint32_t waits, submits, records, launches;
} call_counts;
static call_counts seen;
static ocl_api real_ocl;
static vk_api real_vk;

static cl_int CL_API_CALL count_finish(cl_command_queue queue) {
  seen.waits++;
  return real_ocl.clFinish(queue);
}

static cl_int CL_API_CALL count_flush(cl_command_queue queue) {
  seen.submits++;
  return real_ocl.clFlush(queue);
}

static cl_int CL_API_CALL count_launch(cl_command_queue queue, cl_kernel kernel, cl_uint rank, const size_t *offset, const size_t *global,
                                       const size_t *local, cl_uint count, const cl_event *before, cl_event *event) {
  seen.launches++;
  return real_ocl.clEnqueueNDRangeKernel(queue, kernel, rank, offset, global, local, count, before, event);
}

static VkResult VKAPI_CALL count_fences(VkDevice device, uint32_t count, const VkFence *fences, VkBool32 all, uint64_t timeout) {
  seen.waits += timeout != 0;
  return real_vk.vkWaitForFences(device, count, fences, all, timeout);
}

static VkResult VKAPI_CALL count_submit(VkQueue queue, uint32_t count, const VkSubmitInfo *submits, VkFence fence) {
  seen.submits++;
  return real_vk.vkQueueSubmit(queue, count, submits, fence);
}

static VkResult VKAPI_CALL count_begin(VkCommandBuffer commands, const VkCommandBufferBeginInfo *info) {
  seen.records++;
  return real_vk.vkBeginCommandBuffer(commands, info);
}

static void VKAPI_CALL count_dispatch(VkCommandBuffer commands, uint32_t x, uint32_t y, uint32_t z) {
  seen.launches++;
  real_vk.vkCmdDispatch(commands, x, y, z);
}

static void listen_in(snt_device *device, bool vulkan) {
  if (vulkan) {
    vk_api *api = (vk_api *)(uintptr_t)vk_of(device->rt);
    real_vk = *api;
    api->vkWaitForFences = count_fences, api->vkQueueSubmit = count_submit;
    api->vkBeginCommandBuffer = count_begin, api->vkCmdDispatch = count_dispatch;
  } else {
    ocl_api *api = &((ocl_device *)device->rt)->api;
    real_ocl = *api;
    api->clFinish = count_finish, api->clFlush = count_flush, api->clEnqueueNDRangeKernel = count_launch;
  }
}

/* ---- one device ---- */

typedef struct bench {
  snt_device *device;
  snt_program *program;
  snt_exec *exec, *together;
  api_tensors tensors;
  int64_t rows;
} bench;

static bool open_bench(snt_context *context, const char *selector, bench *b) {
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = selector};
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .flags = SNT_COMPILE_UNFUSED};
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  *b = (bench){.rows = 64};
  if (snt_device_open(context, &open, &b->device, NULL) != SNT_OK) return false;
  snt_result r = snt_graph_create(context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, text, sizeof text - 1, NULL, NULL);
  if (r == SNT_OK) r = snt_device_profile(b->device, &profile);
  if (r == SNT_OK) r = snt_compile(graph, profile, &info, &b->program, NULL);
  const snt_exec_info apart = {.head = SNT_HEAD(exec_info), .flags = SNT_EXEC_APART};
  if (r == SNT_OK) r = snt_exec_create(b->device, b->program, &apart, &b->exec, NULL);
  if (r == SNT_OK) r = snt_exec_create(b->device, b->program, NULL, &b->together, NULL);
  if (r == SNT_OK) r = snt_exec_prepare(b->exec, NULL);
  if (r == SNT_OK) r = snt_exec_prepare(b->together, NULL);
  tap_ok(r == SNT_OK && api_make_tensors(b->program, &b->rows, 1, &b->tensors), "%s: a plan of several kernels is made", selector);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return r == SNT_OK;
}

static void close_bench(bench *b) {
  api_free_tensors(&b->tensors);
  snt_exec_destroy(b->exec);
  snt_exec_destroy(b->together);
  snt_program_destroy(b->program);
  snt_device_destroy(b->device);
}

static call_counts count_run(bench *b, snt_exec *exec) {
  const call_counts none = {0, 0, 0, 0};
  seen = none;
  tap_is_int(api_run_once(b->device, exec, &b->tensors, API_HOST_MEMORY, NULL, NULL), SNT_OK, "a run");
  return seen;
}

static void check_device(snt_context *context, const char *selector, bool vulkan) {
  bench b;
  if (!open_bench(context, selector, &b)) {
    tap_skip("%s is not here", selector);
    return;
  }
  listen_in(b.device, vulkan);
  const uint32_t steps = snt_exec_step_count(b.exec);
  const call_counts first = count_run(&b, b.exec), second = count_run(&b, b.exec), third = count_run(&b, b.together);
  tap_ok(steps >= 3, "%s: %u kernels", selector, steps);
  tap_is_int(first.launches, steps, "%s: each is launched once", selector);
  tap_is_int(third.launches, strcmp(selector, "opencl:pocl") ? steps : 1, "%s: all in one launch where a launch may go through several",
             selector);
  tap_is_int(second.waits, 1, "%s: one wait a run, whatever goes in and out", selector);
  tap_is_int(second.submits, 1, "%s: one submission a run", selector);
  if (vulkan) {
    tap_is_int(first.records, 1, "%s: a first run is recorded", selector);
    tap_is_int(second.records, 0, "%s: one like it is not", selector);
    b.rows = 3;
    api_free_tensors(&b.tensors);
    tap_ok(api_make_tensors(b.program, &b.rows, 2, &b.tensors), "%s: other extents", selector);
    tap_is_int(count_run(&b, b.exec).records, 1, "%s: are recorded", selector);
    tap_is_int(count_run(&b, b.exec).records, 0, "%s: once", selector);
  }
  close_bench(&b);
}

int main(void) {
  api_memory memory = {0};
  memset(&memory, 0, sizeof memory);
  snt_context *context = api_context(&memory);
  check_device(context, "opencl:pocl", false);
  check_device(context, "vulkan:llvmpipe", true);
  snt_context_destroy(context);
  return tap_done();
}
