/* Backends when things fail: every allocation of ours in turn, and every driver call that can, in turn, with each of its errors. What must
   hold: a result is given, nothing is left over (the validation layer counts the driver's objects), and a lost device stays lost. */
#include "runtime/rt_opencl.h"
#include "runtime/rt_vulkan.h"
#include "runtime/targets.h"
#include "tests/tap.h"
#include "tests/unit/rt_kernels.h"
#include "tools/host/host.h"
#include <dlfcn.h>

/* ---- an allocator that fails at one call ---- */

typedef struct failing {
  int64_t calls, fail_at, live;
} failing;

static void *fail_acquire(void *user, size_t size, size_t align, uint32_t scope) {
  failing *f = user;
  (void)scope;
  if (f->calls++ == f->fail_at) return NULL;
  f->live += (int64_t)size;
  return aligned_alloc(align, (size + align - 1) / align * align + (size ? 0 : align));
}

static void fail_release(void *user, void *ptr, size_t size, size_t align) {
  (void)align;
  if (ptr) ((failing *)user)->live -= (int64_t)size;
  free(ptr);
}

/* ---- what a program does with a device, step by step, until one fails ---- */

typedef struct things {
  rt_stream *stream;
  rt_pipeline *pipeline;
  rt_buffer *x, *y;
  rt_event *event;
} things;

static snt_result use_device(rt_device *device, const rt_code *code, things *t) {
  const rt_vtable *v = device->v;
  float data[64] = {1};
  uint32_t block[2] = {64, 0x40000000}, count = 1;
  uint64_t ns = 0;
  SNT_TRY(v->stream_create(device, &t->stream, NULL));
  SNT_TRY(v->pipeline_create(device, code, NULL, 0, &t->pipeline, NULL));
  SNT_TRY(v->buffer_create(device, sizeof data + 4096, &t->x, NULL));
  SNT_TRY(v->buffer_create(device, sizeof data, &t->y, NULL));
  SNT_TRY(v->upload(t->stream, t->x, 0, data, sizeof data, NULL));
  struct rt_bound bindings[2] = {{t->x, 0, sizeof data, KIR_READ}, {t->y, 0, sizeof data, KIR_WRITE}};
  const rt_dispatch dispatch = {
      .pipeline = t->pipeline, .groups = 1, .binding_count = 2, .bindings = bindings, .block = block, .block_bytes = 8};
  SNT_TRY(v->submit(t->stream, 1, &dispatch, true, &t->event, NULL));
  SNT_TRY(v->event_timings(t->event, &count, &ns));
  SNT_TRY(v->download(t->stream, t->y, 0, data, sizeof data, NULL));
  return data[0] == 2 ? SNT_OK : SNT_E_INTERNAL;
}

static void drop_things(rt_device *device, things *t) {
  device->v->event_destroy(t->event);
  device->v->buffer_destroy(t->x), device->v->buffer_destroy(t->y);
  device->v->pipeline_destroy(t->pipeline);
  device->v->stream_destroy(t->stream);
  *t = (things){0};
}

/* ---- our own memory ---- */

static void check_memory(const char *selector, const rt_code *code, const rt_hooks *hooks) {
  int wrong = 0, leaked = 0;
  int64_t steps = 0;
  for (;; steps++) {
    failing f = {.fail_at = steps};
    const snt_host_alloc alloc = {&f, fail_acquire, fail_release};
    rt_device *device = NULL;
    snt_result result = rt_open_device(&alloc, hooks, selector, &device, NULL);
    if (result == SNT_OK) {
      things t = {0};
      result = use_device(device, code, &t);
      drop_things(device, &t);
      rt_close_device(device);
    }
    leaked += f.live != 0;
    if (f.calls <= steps) break; /* it was not reached any more: everything went well */
    wrong += result != SNT_OK && result != SNT_E_HOST_MEM && result != SNT_E_DEVICE_MEM && result != SNT_E_UNSUPPORTED;
  }
  tap_ok(steps > 3 && wrong == 0 && leaked == 0, "%s: each of %d allocations may fail (%d wrong results, %d leaks)", selector, (int)steps,
         wrong, leaked);
}

/* ---- Vulkan's calls ---- */

static VkResult next_code;
static VkResult fail_call(void) { return next_code; }

typedef struct call_row {
  const char *name;
  size_t offset;
} call_row;
#define ROW(function) {#function, offsetof(vk_api, function)},
// clang-format off
static const call_row vulkan_calls[] = {
    ROW(vkQueueSubmit) ROW(vkCreateBuffer) ROW(vkAllocateMemory) ROW(vkBindBufferMemory) ROW(vkMapMemory) ROW(vkCreateBufferView) ROW(vkCreateShaderModule)
    ROW(vkCreatePipelineCache) ROW(vkCreateComputePipelines) ROW(vkCreatePipelineLayout) ROW(vkCreateDescriptorSetLayout) ROW(vkCreateDescriptorPool)
    ROW(vkAllocateDescriptorSets) ROW(vkCreateCommandPool) ROW(vkAllocateCommandBuffers) ROW(vkBeginCommandBuffer) ROW(vkEndCommandBuffer) ROW(vkCreateFence)
    ROW(vkResetFences) ROW(vkWaitForFences) ROW(vkCreateQueryPool) ROW(vkGetQueryPoolResults)};
// clang-format on
#undef ROW
// clang-format off
static const struct { VkResult code; snt_result result; } vulkan_errors[] = {
    {VK_ERROR_DEVICE_LOST, SNT_E_DEVICE_LOST}, {VK_ERROR_OUT_OF_DEVICE_MEMORY, SNT_E_DEVICE_MEM}, {VK_ERROR_OUT_OF_HOST_MEMORY, SNT_E_HOST_MEM}};
// clang-format on

/* The driver's objects that were not destroyed, by the layer's count, are errors of vkDestroyDevice. */
static uint32_t left_in_driver(vk_device *device) {
  const vk_api *api = &device->instance->api;
  api->vkDeviceWaitIdle(device->handle);
  device->instance->messages.count = 0;
  api->vkDestroyDevice(device->handle, NULL);
  device->handle = VK_NULL_HANDLE;
  if (device->instance->messages.count) tap_diag("  %s", device->instance->messages.first);
  return device->instance->messages.count;
}

static bool fails_well(const call_row *row, VkResult code, snt_result wanted, const rt_code *rt) {
  rt_device *base = NULL;
  if (rt_open_device(NULL, NULL, "vulkan:llvmpipe+validate", &base, NULL) != SNT_OK) return false;
  vk_device *device = (vk_device *)base;
  things t = {0};
  PFN_vkVoidFunction saved, failing_call = (PFN_vkVoidFunction)(void (*)(void))fail_call;
  char *table = (char *)&device->instance->api;
  next_code = code;
  memcpy(&saved, table + row->offset, sizeof saved);
  memcpy(table + row->offset, &failing_call, sizeof saved);
  snt_result result = use_device(base, rt, &t), again = SNT_OK;
  bool lost = wanted == SNT_E_DEVICE_LOST;
  rt_buffer *another = NULL;
  if (lost) again = base->v->buffer_create(base, 16, &another, NULL);
  memcpy(table + row->offset, &saved, sizeof saved);
  device->instance->api.vkDeviceWaitIdle(device->handle); /* the failures are not true: work may be running */
  drop_things(base, &t);
  uint32_t left = left_in_driver(device);
  rt_close_device(base);
  bool good = result == wanted && left == 0 && (!lost || (again == SNT_E_DEVICE_LOST && !another));
  if (!good) tap_diag("  %s giving %d: result %d, want %d; %u left; then %d", row->name, code, result, wanted, left, again);
  return good;
}

static void check_vulkan(void) {
  test_code code;
  const char *why = "";
  rt_device *device = NULL;
  snt_diag diag = {0};
  if (rt_open_device(NULL, NULL, "vulkan:llvmpipe+validate", &device, &diag) != SNT_OK) {
    tap_skip("Vulkan: %s", diag.text);
    return;
  }
  rt_close_device(device);
  if (!test_code_make(&code, SNT_TARGET_SPIRV, true, &why)) tap_skip("Vulkan: %s", why);
  else {
    for (uint32_t i = 0; i < IR_COUNT(vulkan_calls); i++) {
      bool good = true;
      for (uint32_t e = 0; e < IR_COUNT(vulkan_errors); e++) {
        good = fails_well(&vulkan_calls[i], vulkan_errors[e].code, vulkan_errors[e].result, &code.code) && good;
      }
      tap_ok(good, "%s fails: the result says why, nothing is left, lost stays lost", vulkan_calls[i].name);
    }
    check_memory("vulkan:llvmpipe", &code.code, NULL);
  }
  test_code_free(&code);
}

/* ---- OpenCL's calls ---- */

static cl_int CL_API_CALL refuse_launch(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
                                        const size_t *global, const size_t *local, cl_uint count, const cl_event *list, cl_event *event) {
  (void)queue, (void)kernel, (void)dimensions, (void)offset, (void)global, (void)local, (void)count, (void)list, (void)event;
  return CL_DEVICE_NOT_AVAILABLE;
}

static void check_opencl(void) {
  test_code code;
  const char *why = "";
  rt_device *device = NULL;
  snt_diag diag = {0};
  things t = {0};
  if (rt_open_device(NULL, NULL, "opencl:pocl", &device, &diag) != SNT_OK) {
    tap_skip("OpenCL: %s", diag.text);
    return;
  }
  test_code_make(&code, SNT_TARGET_OPENCL, false, &why);
  tap_is_int(use_device(device, &code.code, &t), SNT_OK, "PoCL: a run");
  drop_things(device, &t);
  ((ocl_device *)device)->api.clEnqueueNDRangeKernel = refuse_launch;
  tap_is_int(use_device(device, &code.code, &t), SNT_E_DEVICE_LOST, "a launch without a device is a lost one");
  rt_buffer *another = NULL;
  tap_is_int(device->v->buffer_create(device, 16, &another, NULL), SNT_E_DEVICE_LOST, "and it stays lost");
  drop_things(device, &t);
  rt_close_device(device);
  check_memory("opencl:pocl", &code.code, NULL);
  test_code_free(&code);
}

static void check_others(void) {
  test_code code;
  const char *why;
  const snt_backend *hook = host_cuda_text();
  const rt_hooks hooks = {1, &hook};
  test_code_make(&code, SNT_TARGET_HOST, false, &why);
  check_memory("interp", &code.code, NULL);
  test_code_free(&code);
  rt_device *device = NULL;
  snt_diag diag = {0};
  if (rt_open_device(NULL, &hooks, "cuda-text", &device, &diag) != SNT_OK) {
    tap_skip("cuda-text: %s", diag.text);
    return;
  }
  rt_close_device(device);
  test_code_make(&code, SNT_TARGET_CUDA, false, &why);
  check_memory("cuda-text", &code.code, &hooks);
  test_code_free(&code);
}

int main(void) {
  host_prepare_drivers(NULL);
  dlopen("libVkLayer_khronos_validation.so", RTLD_NOW | RTLD_NODELETE); /* so that the leak checker can name it */
  check_vulkan();
  check_opencl();
  check_others();
  return tap_done();
}
