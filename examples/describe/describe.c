/* describe: a toy render graph fed by Sinter. The device is only described (snt_vk_plan), no Vulkan is called: the program's dispatches, resources
   and hazards come as data, as a host with a render graph of its own wants them. The graph here works out for itself which barriers are needed and
   which memory may alias, and prints the frame. */
#include <sinter/vulkan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char post[] = "symbols { h: min=8 max=2160 multiple_of=1 hint=1080, w: min=8 max=3840 multiple_of=1 hint=1920 }\n"
                           "graph @post(%lit: f32[1,3,h,w]) {\n"
                           "  %blur: f32[3,1,3,3] = const normal seed=1 scale=0.1\n"
                           "  %soft = conv %lit, %blur, pads=[1,1,1,1], groups=3\n"
                           "  %again = conv %soft, %blur, pads=[1,1,1,1], groups=3\n"
                           "  %sum = add %lit, %again\n"
                           "  %low = max %sum, 0.0\n"
                           "  %shown = min %low, 1.0\n"
                           "  return shown=%shown\n"
                           "}\n";

/* What the host knows of its target hardware when no device is at hand: numbers from a data sheet. */
static VkPhysicalDeviceProperties2 console(void) {
  VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  strcpy(p.properties.deviceName, "a described device");
  p.properties.apiVersion = VK_API_VERSION_1_1;
  p.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
  p.properties.limits = (VkPhysicalDeviceLimits){.maxPerStageDescriptorStorageBuffers = 4,
                                                 .maxPerStageResources = 128,
                                                 .maxPushConstantsSize = 128,
                                                 .maxComputeWorkGroupInvocations = 128,
                                                 .maxComputeWorkGroupSize = {128, 128, 64},
                                                 .maxComputeWorkGroupCount = {65535, 65535, 65535},
                                                 .maxComputeSharedMemorySize = 16384,
                                                 .maxStorageBufferRange = 1 << 27,
                                                 .maxTexelBufferElements = 65536,
                                                 .minStorageBufferOffsetAlignment = 256,
                                                 .minTexelBufferOffsetAlignment = 256};
  return p;
}

/* ---- the toy render graph: passes that read and write parts of resources ---- */

typedef struct use {
  uint32_t is_port, index;
  VkDeviceSize offset, size;
  int writes;
} use;

static use use_of(const snt_vk_resource_ref *r) {
  const use u = {r->is_port, r->index, r->offset, r->size, (r->access & VK_ACCESS_SHADER_WRITE_BIT) != 0};
  return u;
}

static int conflict(const use *a, const use *b) {
  const int same = a->is_port == b->is_port && a->index == b->index;
  const int apart = !a->is_port && (a->offset + a->size <= b->offset || b->offset + b->size <= a->offset);
  return same && !apart && (a->writes || b->writes);
}

/* Must dispatch `late` wait for `early`? */
static int waits(const snt_vk_description *d, const snt_vk_dispatch_desc *early, const snt_vk_dispatch_desc *late) {
  for (uint32_t i = 0; i < early->resource_count; i++)
    for (uint32_t k = 0; k < late->resource_count; k++) {
      const use a = use_of(&d->resources[early->resource_first + i]), b = use_of(&d->resources[late->resource_first + k]);
      if (conflict(&a, &b)) return 1;
    }
  return 0;
}

/* The graph's own barriers: one where a pass waits for any since the barrier before. Returns how many, or -1 if Sinter's list says otherwise. */
static int place_barriers(const snt_vk_description *d) {
  int barriers = 0;
  uint32_t since = 0;
  for (uint32_t i = 0; i < d->dispatch_count; i++) {
    int needed = 0;
    for (uint32_t k = since; k < i; k++) needed |= waits(d, &d->dispatches[k], &d->dispatches[i]);
    if (needed && !d->dispatches[i].barrier) return -1;
    if (needed) since = i, barriers++;
  }
  return barriers;
}

static void print_frame(const snt_exec *exec, const snt_vk_description *d) {
  static const char *const classes[] = {"CONSTANT", "STATE", "SCRATCH", "VALUES", "STAGING"};
  snt_vk_memory_need needs[16];
  const int64_t most[] = {1080, 1920};
  uint32_t count = 16;
  for (int i = 0; i < 16; i++) needs[i].head = (snt_out_head)SNT_HEAD(vk_memory_need);
  if (snt_vk_exec_memory(exec, most, 2, &count, 0, needs) != SNT_OK) return;
  for (uint32_t i = 0; i < count; i++)
    printf("memory %u: %s, %llu bytes\n", i, classes[needs[i].memory_class], (unsigned long long)needs[i].size);
  for (uint32_t i = 0; i < d->init_count; i++)
    printf("upload: %llu bytes to memory %u at %llu\n", (unsigned long long)d->init[i].size, d->init[i].memory,
           (unsigned long long)d->init[i].offset);
  for (uint32_t i = 0; i < d->dispatch_count; i++) {
    const snt_vk_dispatch_desc *p = &d->dispatches[i];
    if (p->barrier) printf("barrier\n");
    printf("pass %s: pipeline %u (%zu bytes of SPIR-V), %u x %u x %u groups, %u bytes of constants, about %.1f us\n", p->name, p->pipeline,
           d->pipelines[p->pipeline].spirv_size, p->groups[0], p->groups[1], p->groups[2], p->push_size, (double)p->est_ns / 1e3);
    for (uint32_t r = 0; r < p->resource_count; r++) {
      const snt_vk_resource_ref *ref = &d->resources[p->resource_first + r];
      printf("  %s %s %u\n", ref->access & VK_ACCESS_SHADER_WRITE_BIT ? "writes" : "reads", ref->is_port ? "port" : "memory", ref->index);
    }
  }
}

/* ---- the program, for a device that is not here ---- */

static snt_result compile(snt_context *c, snt_device *device, snt_program **out, snt_diag *diag) {
  static const snt_image_port images[] = {{"lit", SNT_IMAGE_CHW, 0}, {"shown", SNT_IMAGE_CHW, 0}};
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .image_count = 2, .images = images};
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  snt_result r = snt_graph_create(c, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, post, strlen(post), NULL, diag);
  if (r == SNT_OK) r = snt_device_profile(device, &profile);
  if (r == SNT_OK) r = snt_compile(graph, profile, &info, out, diag);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return r;
}

static snt_result describe(const snt_exec *exec, void **storage, const snt_vk_description **out, snt_diag *diag) {
  static const int64_t most[] = {1080, 1920}, now[] = {720, 1280};
  const snt_vk_describe_info info = {.head = SNT_HEAD(vk_describe_info), .max_symbols = most, .symbols = now, .symbol_count = 2};
  size_t size = 0;
  const snt_result r = snt_vk_describe(exec, &info, NULL, &size, NULL, diag);
  if (r != SNT_INCOMPLETE) return r;
  *storage = aligned_alloc(16, (size + 15) / 16 * 16);
  return *storage ? snt_vk_describe(exec, &info, *storage, &size, out, diag) : SNT_E_HOST_MEM;
}

int main(void) {
  const VkPhysicalDeviceProperties2 properties = console();
  const snt_vk_caps caps = {.head = SNT_HEAD(vk_caps), .properties = &properties};
  const snt_vk_port_format formats[] = {{0, VK_FORMAT_R16G16B16A16_SFLOAT}, {1, VK_FORMAT_R8G8B8A8_UNORM}};
  const snt_vk_exec_info door = {.head = SNT_HEAD(vk_exec_info), .port_format_count = 2, .port_formats = formats};
  snt_exec_info info = {.head = SNT_HEAD(exec_info)};
  snt_diag diag = {.head = SNT_HEAD(diag)};
  snt_context *context = NULL;
  snt_device *device = NULL;
  snt_program *program = NULL;
  snt_exec *exec = NULL;
  const snt_vk_description *d = NULL;
  void *storage = NULL;
  info.head.next = &door;
  snt_result r = snt_context_create(NULL, &context);
  if (r == SNT_OK) r = snt_vk_plan(context, &caps, &device, &diag);
  if (r == SNT_OK) r = compile(context, device, &program, &diag);
  if (r == SNT_OK) r = snt_exec_create(device, program, &info, &exec, &diag);
  if (r == SNT_OK) r = describe(exec, &storage, &d, &diag);
  int barriers = -1;
  if (r == SNT_OK) {
    print_frame(exec, d);
    barriers = place_barriers(d);
    printf("the graph's own analysis: %d barriers\n", barriers);
  } else {
    fprintf(stderr, "describe: %s: %s\n", snt_result_text(r), diag.text);
  }
  free(storage);
  snt_exec_destroy(exec);
  snt_program_destroy(program);
  snt_device_destroy(device);
  snt_context_destroy(context);
  return r == SNT_OK && barriers >= 0 ? 0 : 1;
}
