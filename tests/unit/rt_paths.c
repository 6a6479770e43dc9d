/* Paths that software devices take only when told to: memory that the host does not see, queues without timestamps, more ranges than the
   caches hold, more work in flight than there are batches. */
#include "runtime/rt_opencl.h"
#include "runtime/rt_vulkan.h"
#include "runtime/targets.h"
#include "tests/tap.h"
#include "tests/unit/rt_kernels.h"
#include "tools/host/host.h"
#include <dlfcn.h>

typedef struct bench {
  rt_device *device;
  const rt_vtable *v;
  rt_stream *stream;
  rt_pipeline *pipeline;
  test_code code;
} bench;

static bool bench_open(bench *b, const char *selector, bool texel) {
  snt_diag diag = {0};
  const char *why = "";
  memset(b, 0, sizeof *b);
  if (rt_open_device(NULL, NULL, selector, &b->device, &diag) != SNT_OK) {
    tap_skip("%s: %s", selector, diag.text);
    return false;
  }
  b->v = b->device->v;
  if (!test_code_make(&b->code, b->device->target, texel, &why)) {
    tap_skip("%s: %s", selector, why);
    rt_close_device(b->device);
    return false;
  }
  snt_result result = b->v->stream_create(b->device, &b->stream, &diag);
  if (result == SNT_OK) result = b->v->pipeline_create(b->device, &b->code.code, NULL, 0, &b->pipeline, &diag);
  return tap_is_int(result, SNT_OK, "%s: stream and pipeline %s", selector, diag.text);
}

static void bench_close(bench *b) {
  b->v->pipeline_destroy(b->pipeline);
  b->v->stream_destroy(b->stream);
  rt_close_device(b->device);
  test_code_free(&b->code);
}

typedef struct call {
  struct rt_bound bindings[2];
  uint32_t block[2];
  rt_dispatch dispatch;
} call;

/* Reads x from its start, writes y from `offset`. */
static void set_call(call *c, bench *b, rt_buffer *x, rt_buffer *y, uint64_t offset, uint32_t n, float a) {
  c->bindings[0] = (struct rt_bound){x, 0, 4 * (uint64_t)n, KIR_READ};
  c->bindings[1] = (struct rt_bound){y, offset, 4 * (uint64_t)n, KIR_WRITE};
  c->block[0] = n;
  memcpy(&c->block[1], &a, sizeof a);
  c->dispatch = (rt_dispatch){.pipeline = b->pipeline,
                              .groups = (n + 63) / 64,
                              .binding_count = 2,
                              .bindings = c->bindings,
                              .block = c->block,
                              .block_bytes = 8,
                              .barrier = true};
}

/* ---- memory that the host does not see: more than one staging buffer's worth, at odd offsets ---- */

static void check_staging(void) {
  enum { N = 5000001 }; /* 20 MB */
  bench b;
  if (!bench_open(&b, "vulkan:llvmpipe+validate", false)) return;
  ((vk_device *)b.device)->unified = false;
  float *x = malloc(4 * (size_t)N), *y = malloc(4 * (size_t)N);
  rt_buffer *bx = NULL, *by = NULL;
  snt_diag diag = {0};
  bool ok = b.v->buffer_create(b.device, 4 * (uint64_t)N, &bx, NULL) == SNT_OK &&
            b.v->buffer_create(b.device, 4 * (uint64_t)N, &by, NULL) == SNT_OK;
  tap_ok(ok && !bx->host && !by->host, "staging: buffers without a host address");
  for (uint32_t i = 0; i < N; i++) x[i] = (float)(i % 1001), y[i] = 0;
  call c;
  set_call(&c, &b, bx, by, 0, N, 2);
  ok = b.v->upload(b.stream, bx, 0, x, 4 * (uint64_t)N, &diag) == SNT_OK;
  ok = ok && b.v->submit(b.stream, 1, &c.dispatch, false, NULL, &diag) == SNT_OK;
  ok = ok && b.v->download(b.stream, by, 0, y, 4 * (uint64_t)N, &diag) == SNT_OK;
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < N; i++) wrong += y[i] != 2 * x[i] + (float)i;
  if (!tap_ok(ok && wrong == 0, "staging: 20 MB up, through a kernel and down: %u wrong", wrong)) tap_diag("%s", diag.text);
  unsigned char odd[7] = {1, 2, 3, 4, 5, 6, 7}, back[9] = {0};
  ok = b.v->upload(b.stream, bx, 4097, odd, sizeof odd, &diag) == SNT_OK &&
       b.v->download(b.stream, bx, 4096, back, sizeof back, &diag) == SNT_OK;
  tap_ok(ok && memcmp(back + 1, odd, sizeof odd) == 0 && back[0] == ((unsigned char *)x)[4096], "staging: seven bytes at an odd place %s",
         diag.text);
  b.v->buffer_destroy(bx), b.v->buffer_destroy(by);
  free(x), free(y);
  bench_close(&b);
}

/* ---- no timestamps: the host's clock ---- */

static void check_clock(const char *selector) {
  bench b;
  if (!bench_open(&b, selector, false)) return;
  if (b.device->target == SNT_TARGET_SPIRV) ((vk_device *)b.device)->timestamps = false;
  else ((ocl_device *)b.device)->profiling = false;
  rt_buffer *buffer[2] = {NULL, NULL};
  call c;
  rt_event *event = NULL;
  uint64_t ns[3] = {0};
  uint32_t count = 3;
  b.v->buffer_create(b.device, 4096, &buffer[0], NULL), b.v->buffer_create(b.device, 4096, &buffer[1], NULL);
  set_call(&c, &b, buffer[0], buffer[1], 0, 1024, 1);
  const rt_dispatch three[3] = {c.dispatch, c.dispatch, c.dispatch};
  snt_result result = b.v->submit(b.stream, 3, three, true, &event, NULL);
  if (result == SNT_OK) result = b.v->event_timings(event, &count, ns);
  tap_ok(result == SNT_OK && count == 3 && ns[0] && ns[1] && ns[2], "%s: three times by the host's clock: %llu %llu %llu ns", selector,
         (unsigned long long)ns[0], (unsigned long long)ns[1], (unsigned long long)ns[2]);
  count = 1;
  tap_is_int(b.v->event_timings(event, &count, ns), SNT_INCOMPLETE, "%s: of which only one may be wanted", selector);
  b.v->event_destroy(event);
  b.v->buffer_destroy(buffer[0]), b.v->buffer_destroy(buffer[1]);
  bench_close(&b);
}

/* ---- more ranges than the caches of slices and descriptor sets hold ---- */

static void check_ranges(const char *selector, bool texel, uint32_t rounds) {
  enum { N = 16 };
  bench b;
  if (!bench_open(&b, selector, texel)) return;
  uint32_t align = b.device->profile.offset_align < 64 ? 64 : b.device->profile.offset_align, wrong = 0;
  uint64_t bytes = (uint64_t)align * (rounds + 1) + 64;
  float x[N] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3}, y[N];
  rt_buffer *bx = NULL, *by = NULL;
  snt_result result = b.v->buffer_create(b.device, sizeof x, &bx, NULL);
  if (result == SNT_OK) result = b.v->buffer_create(b.device, bytes, &by, NULL);
  if (result == SNT_OK) result = b.v->upload(b.stream, bx, 0, x, sizeof x, NULL);
  for (uint32_t i = 0; result == SNT_OK && i < rounds; i++) {
    call c;
    set_call(&c, &b, bx, by, (uint64_t)align * i, N, (float)(i % 50));
    result = b.v->submit(b.stream, 1, &c.dispatch, false, NULL, NULL);
  }
  if (result == SNT_OK) result = b.v->wait(b.stream, NULL);
  for (uint32_t i = 0; result == SNT_OK && i < rounds; i += 1 + rounds / 700) {
    result = b.v->download(b.stream, by, (uint64_t)align * i, y, sizeof y, NULL);
    for (uint32_t j = 0; j < N; j++) wrong += y[j] != (float)(i % 50) * x[j] + (float)j;
  }
  tap_ok(result == SNT_OK && wrong == 0, "%s: %u ranges of one buffer, each submitted alone (%u wrong)", selector, rounds, wrong);
  b.v->buffer_destroy(bx), b.v->buffer_destroy(by);
  bench_close(&b);
}

/* Events kept while their stream goes on: their batches may not be used again. */
static void check_kept_events(const char *selector) {
  enum { EVENTS = 100 };
  bench b;
  if (!bench_open(&b, selector, false)) return;
  rt_buffer *buffer[2] = {NULL, NULL};
  rt_event *events[EVENTS] = {NULL};
  call c;
  snt_result result = SNT_OK;
  uint32_t timed = 0;
  b.v->buffer_create(b.device, 4096, &buffer[0], NULL), b.v->buffer_create(b.device, 4096, &buffer[1], NULL);
  set_call(&c, &b, buffer[0], buffer[1], 0, 1024, 1);
  for (int i = 0; i < EVENTS && result == SNT_OK; i++) result = b.v->submit(b.stream, 1, &c.dispatch, true, &events[i], NULL);
  tap_is_int(result, SNT_OK, "%s: a hundred events", selector);
  for (int i = EVENTS - 1; i >= 0; i--) {
    uint32_t count = 1;
    uint64_t ns = 0;
    timed += events[i] && b.v->event_timings(events[i], &count, &ns) == SNT_OK && count == 1 && ns > 0;
    b.v->event_destroy(events[i]);
  }
  tap_is_int(timed, EVENTS, "%s: have their times, the last one first", selector);
  b.v->buffer_destroy(buffer[0]), b.v->buffer_destroy(buffer[1]);
  bench_close(&b);
}

static void check_subgroups(void) {
  bench b;
  if (!bench_open(&b, "vulkan:llvmpipe", false)) return;
  rt_code code = b.code.code;
  rt_pipeline *pipeline = NULL;
  snt_diag diag = {0};
  code.sub = b.device->profile.subgroup_max;
  tap_is_int(b.v->pipeline_create(b.device, &code, NULL, 0, &pipeline, &diag), SNT_OK, "subgroups of the device's size %s", diag.text);
  b.v->pipeline_destroy(pipeline);
  pipeline = NULL, code.sub = 128;
  tap_is_int(b.v->pipeline_create(b.device, &code, NULL, 0, &pipeline, &diag), SNT_E_UNSUPPORTED, "subgroups of 128: %s", diag.text);
  code.sub = 0, code.block_bytes = 252;
  tap_is_int(b.v->pipeline_create(b.device, &code, NULL, 0, &pipeline, &diag), SNT_E_LIMIT, "scalars beyond the push constants: %s",
             diag.text);
  bench_close(&b);
}

/* ---- what drivers say of pipelines: none of the software ones says anything, so others' statistics are put in its mouth ---- */

typedef struct said {
  const char *name;
  uint64_t value;
} said;
typedef struct talker {
  const char *driver;
  uint32_t subgroup;
  said says[2][3]; /* of each executable */
  rt_report heard;
} talker;
static const talker talkers[] = {
    {"NVIDIA", 32, {{{"Register Count", 168}, {"Stack Size", 0}, {"Local Memory Size", 96}}}, {96, 168}},
    {"RADV", 64, {{{"VGPRs", 256}, {"Spilled VGPRs", 12}, {"Scratch size", 3072}}}, {48, 256}},
    {"ANV, two widths",
     16,
     {{{"GRF registers", 128}, {"Scratch Memory Size", 0}, {"Spills", 0}},
      {{"GRF registers", 128}, {"Scratch Memory Size", 2048}, {"Spills", 9}}},
     {128, 128}},
    {"one of other words", 32, {{{"Cycles", 7}, {"Loops", 1}, {"Sends", 2}}}, {UINT32_MAX, UINT32_MAX}},
};
static const talker *talking;

static VkResult VKAPI_CALL say_executables(VkDevice device, const VkPipelineInfoKHR *info, uint32_t *count,
                                           VkPipelineExecutablePropertiesKHR *out) {
  (void)device, (void)info;
  *count = talking->says[1][0].name ? 2 : 1;
  for (uint32_t i = 0; out && i < *count; i++) out[i].subgroupSize = talking->subgroup;
  return VK_SUCCESS;
}

static VkResult VKAPI_CALL say_statistics(VkDevice device, const VkPipelineExecutableInfoKHR *which, uint32_t *count,
                                          VkPipelineExecutableStatisticKHR *out) {
  (void)device;
  *count = 3;
  for (uint32_t i = 0; out && i < 3; i++) {
    const said *s = &talking->says[which->executableIndex][i];
    snprintf(out[i].name, sizeof out[i].name, "%s", s->name);
    out[i].format = VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR;
    out[i].value.u64 = s->value;
  }
  return VK_SUCCESS;
}

static VkPipelineCreateFlags asked_flags;
static PFN_vkCreateComputePipelines real_create;
static VkResult VKAPI_CALL create_and_look(VkDevice device, VkPipelineCache cache, uint32_t count, const VkComputePipelineCreateInfo *info,
                                           const VkAllocationCallbacks *alloc, VkPipeline *out) {
  VkComputePipelineCreateInfo plain = *info;
  asked_flags = info->flags;
  plain.flags = 0; /* this driver has no statistics to keep */
  return real_create(device, cache, count, &plain, alloc, out);
}

static void check_report(const char *selector) {
  bench b;
  rt_report report;
  rt_pipeline *quiet = NULL, *loud = NULL;
  if (!bench_open(&b, selector, true)) return;
  vk_device *device = (vk_device *)b.device;
  b.v->pipeline_report(b.pipeline, &report);
  tap_ok(report.private_bytes == UINT32_MAX && report.registers == UINT32_MAX, "%s: nothing is said unasked", selector);
  device->executables = say_executables, device->statistics = say_statistics;
  real_create = device->instance->api.vkCreateComputePipelines;
  device->instance->api.vkCreateComputePipelines = create_and_look;
  rt_code code = b.code.code;
  tap_is_int(b.v->pipeline_create(b.device, &code, NULL, 0, &quiet, NULL), SNT_OK, "a pipeline without statistics");
  tap_is_int(asked_flags, 0, "none are asked for");
  code.report = true;
  tap_is_int(b.v->pipeline_create(b.device, &code, NULL, 0, &loud, NULL), SNT_OK, "a pipeline with statistics");
  tap_is_int(asked_flags, VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR, "they are asked for");
  for (uint32_t i = 0; i < IR_COUNT(talkers) && loud; i++) {
    talking = &talkers[i];
    b.v->pipeline_report(loud, &report);
    tap_ok(!memcmp(&report, &talking->heard, sizeof report), "%s: %d bytes of an item, %d registers", talking->driver,
           (int)report.private_bytes, (int)report.registers);
  }
  b.v->pipeline_destroy(quiet);
  b.v->pipeline_destroy(loud);
  device->instance->api.vkCreateComputePipelines = real_create;
  bench_close(&b);
}

/* The feature is asked for where the device lists the extension and has it. */
static PFN_vkEnumerateDeviceExtensionProperties real_extensions;
static PFN_vkGetPhysicalDeviceFeatures2 real_features;
static VkResult VKAPI_CALL one_extension_more(VkPhysicalDevice physical, const char *layer, uint32_t *count, VkExtensionProperties *out) {
  const uint32_t room = *count;
  const VkResult code = real_extensions(physical, layer, count, out);
  if (out && *count < room)
    snprintf(out[*count].extensionName, sizeof out->extensionName, "%s", VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  ++*count;
  return code;
}
static void VKAPI_CALL features_with_it(VkPhysicalDevice physical, VkPhysicalDeviceFeatures2 *out) {
  real_features(physical, out);
  for (VkBaseOutStructure *link = (VkBaseOutStructure *)out; link; link = link->pNext)
    if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR)
      ((VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR *)(void *)link)->pipelineExecutableInfo = VK_TRUE;
}

static void check_report_feature(const char *selector) {
  bench b;
  vk_features features;
  if (!bench_open(&b, selector, true)) return;
  vk_device *device = (vk_device *)b.device;
  vk_api api = device->instance->api;
  real_extensions = api.vkEnumerateDeviceExtensionProperties, real_features = api.vkGetPhysicalDeviceFeatures2;
  vk_query_features(&api, b.device->alloc, device->physical, false, &features);
  tap_ok(!features.executables.pipelineExecutableInfo, "%s: without the extension no statistics", selector);
  const uint32_t before = features.extension_count;
  api.vkEnumerateDeviceExtensionProperties = one_extension_more, api.vkGetPhysicalDeviceFeatures2 = features_with_it;
  vk_query_features(&api, b.device->alloc, device->physical, false, &features);
  bool named = false;
  for (uint32_t i = 0; i < features.extension_count; i++)
    named |= !strcmp(features.extensions[i], VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  tap_ok(features.executables.pipelineExecutableInfo && named && features.extension_count == before + 1,
         "with it they are, and it is enabled");
  bench_close(&b);
}

int main(void) {
  host_prepare_drivers(NULL);
  dlopen("libVkLayer_khronos_validation.so", RTLD_NOW | RTLD_NODELETE); /* so that the leak checker can name it */
  check_staging();
  check_clock("vulkan:llvmpipe");
  check_clock("opencl:pocl");
  check_ranges("vulkan:llvmpipe", false, 9000);
  check_ranges("vulkan:llvmpipe+validate", true, 600);
  check_ranges("opencl:pocl", false, 5000);
  check_kept_events("vulkan:llvmpipe+validate");
  check_kept_events("opencl:pocl");
  check_subgroups();
  check_report("vulkan:llvmpipe");
  check_report_feature("vulkan:llvmpipe");
  return tap_done();
}
