/* A program that Sinter compiled before, in an application that has no compiler: linked against libsinter-runtime alone.
     sinter compile MODEL.snt --target spirv --profile dgpu -o MODEL.sntp
     saved MODEL.sntp [--device PART] [--dim NAME=N].. [--out FOLDER]
   The application owns the Vulkan; inputs are a ramp of numbers, outputs are printed and written as FOLDER/NAME.bin. */
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <dlfcn.h>
#include <sinter/vulkan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PORTS = 32, MOST_NEEDS = 16, MOST_SYMBOLS = 16 };

// clang-format off
#define FUNCTIONS(F)                                                                                                     \
  F(vkEnumeratePhysicalDevices) F(vkGetPhysicalDeviceProperties) F(vkGetPhysicalDeviceMemoryProperties) F(vkCreateDevice) \
  F(vkGetDeviceQueue) F(vkCreateBuffer) F(vkDestroyBuffer) F(vkGetBufferMemoryRequirements) F(vkAllocateMemory)          \
  F(vkFreeMemory) F(vkBindBufferMemory) F(vkMapMemory) F(vkCreateCommandPool) F(vkDestroyCommandPool)                    \
  F(vkAllocateCommandBuffers) F(vkBeginCommandBuffer) F(vkEndCommandBuffer) F(vkQueueSubmit) F(vkQueueWaitIdle)          \
  F(vkCmdPipelineBarrier) F(vkDestroyDevice) F(vkDestroyInstance)
// clang-format on
#define DECLARE(name) static PFN_##name name;
FUNCTIONS(DECLARE)

typedef struct buffer {
  VkBuffer handle;
  VkDeviceMemory memory;
  VkDeviceSize bytes;
  void *mapped;
} buffer;

static PFN_vkGetInstanceProcAddr get;
static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;
static VkCommandPool pool;
static VkCommandBuffer commands;
static snt_diag diag = {.head = SNT_HEAD(diag)};

static void must(int good, const char *what) {
  if (good) return;
  fprintf(stderr, "saved: %s\n", what);
  exit(1);
}
static void fine(snt_result r, const char *what) {
  if (r == SNT_OK) return;
  fprintf(stderr, "saved: %s: %s: %s\n", what, snt_result_text(r), diag.text);
  exit(1);
}

/* ---- the application's Vulkan ---- */

static void open_instance(const char *part) {
  const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_1};
  const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &app};
  void *loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  must(loader != NULL, "no Vulkan device: no libvulkan.so.1");
  *(void **)(void *)&get = dlsym(loader, "vkGetInstanceProcAddr");
  const PFN_vkCreateInstance create = (PFN_vkCreateInstance)get(NULL, "vkCreateInstance");
  must(create && create(&info, NULL, &instance) == VK_SUCCESS, "no Vulkan device: vkCreateInstance");
#define LOAD(name) must((name = (PFN_##name)get(instance, #name)) != NULL, #name);
  FUNCTIONS(LOAD)
  VkPhysicalDevice all[16];
  uint32_t count = 16;
  must(vkEnumeratePhysicalDevices(instance, &count, all) >= 0, "vkEnumeratePhysicalDevices");
  for (uint32_t i = 0; i < count && !physical; i++) {
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(all[i], &properties);
    if (!part || strstr(properties.deviceName, part)) physical = all[i];
  }
  must(physical != NULL, "no Vulkan device of that name");
}

/* Queue family 0 and no features: what the wishlist offers is left to examples/frame. */
static snt_device *attach(snt_context *context) {
  const float priority = 1;
  const VkDeviceQueueCreateInfo first = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
  const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &first};
  const VkCommandPoolCreateInfo pool_info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  must(vkCreateDevice(physical, &info, NULL, &device) == VK_SUCCESS, "vkCreateDevice");
  vkGetDeviceQueue(device, 0, 0, &queue);
  must(vkCreateCommandPool(device, &pool_info, NULL, &pool) == VK_SUCCESS, "vkCreateCommandPool");
  const VkCommandBufferAllocateInfo one = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = pool, .commandBufferCount = 1};
  must(vkAllocateCommandBuffers(device, &one, &commands) == VK_SUCCESS, "vkAllocateCommandBuffers");
  const snt_vk_attach_info how = {.head = SNT_HEAD(vk_attach_info),
                                  .instance = instance,
                                  .physical_device = physical,
                                  .device = device,
                                  .get_instance_proc = get,
                                  .api_version = VK_API_VERSION_1_1,
                                  .created_with = &info};
  snt_device *attached = NULL;
  fine(snt_vk_attach(context, &how, &attached, &diag), "attach");
  return attached;
}

/* All memory of this example is mapped; a renderer would go by `required` and `preferred` of each need. */
static buffer make_buffer(VkDeviceSize bytes, VkBufferUsageFlags usage) {
  const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes, .usage = usage};
  VkPhysicalDeviceMemoryProperties types;
  VkMemoryRequirements needs;
  buffer b = {.bytes = bytes};
  must(vkCreateBuffer(device, &info, NULL, &b.handle) == VK_SUCCESS, "vkCreateBuffer");
  vkGetBufferMemoryRequirements(device, b.handle, &needs);
  vkGetPhysicalDeviceMemoryProperties(physical, &types);
  uint32_t t = 0;
  while (t < types.memoryTypeCount && (!(needs.memoryTypeBits >> t & 1) || (types.memoryTypes[t].propertyFlags & wanted) != wanted)) t++;
  const VkMemoryAllocateInfo taken = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size, .memoryTypeIndex = t};
  must(vkAllocateMemory(device, &taken, NULL, &b.memory) == VK_SUCCESS, "vkAllocateMemory");
  must(vkBindBufferMemory(device, b.handle, b.memory, 0) == VK_SUCCESS, "vkBindBufferMemory");
  must(vkMapMemory(device, b.memory, 0, VK_WHOLE_SIZE, 0, &b.mapped) == VK_SUCCESS, "vkMapMemory");
  return b;
}
static void drop_buffer(const buffer *b) {
  vkDestroyBuffer(device, b->handle, NULL);
  vkFreeMemory(device, b->memory, NULL);
}

/* ---- the program ---- */

typedef struct run {
  snt_program *program;
  snt_exec *exec;
  snt_binding *binding;
  int64_t symbols[MOST_SYMBOLS];
  uint32_t symbol_count, need_count, port_count;
  buffer memory[MOST_NEEDS], ports[MOST_PORTS];
  snt_vk_port kinds[MOST_PORTS];
  unsigned char values[256];
  void *values_mapped;
} run;

static void *read_file(const char *path, size_t *size) {
  FILE *in = fopen(path, "rb");
  must(in != NULL, "the program cannot be read");
  fseek(in, 0, SEEK_END);
  *size = (size_t)ftell(in);
  rewind(in);
  void *bytes = malloc(*size ? *size : 1);
  must(bytes && fread(bytes, 1, *size, in) == *size, "the program cannot be read");
  fclose(in);
  return bytes;
}

/* Extents that --dim does not give are the program's hints. */
static void choose_symbols(run *r, int argc, char **argv) {
  r->symbol_count = snt_program_symbol_count(r->program);
  must(r->symbol_count <= MOST_SYMBOLS, "too many symbols for this example");
  for (uint32_t i = 0; i < r->symbol_count; i++) {
    snt_symbol s;
    fine(snt_program_symbol(r->program, i, &s), "symbol");
    const size_t length = strlen(s.name);
    r->symbols[i] = s.hint;
    for (int a = 2; a + 1 < argc; a++)
      if (!strcmp(argv[a], "--dim") && !strncmp(argv[a + 1], s.name, length) && argv[a + 1][length] == '=')
        r->symbols[i] = atoll(argv[a + 1] + length + 1);
  }
}

static void make_memory(run *r) {
  snt_vk_memory_need needs[MOST_NEEDS];
  snt_vk_range ranges[MOST_NEEDS];
  snt_vk_init_info init = {.head = SNT_HEAD(vk_init_info), .flags = SNT_VK_INIT_BARRIER, .constant = ranges};
  r->need_count = MOST_NEEDS;
  for (uint32_t i = 0; i < MOST_NEEDS; i++) needs[i].head = (snt_out_head)SNT_HEAD(vk_memory_need);
  fine(snt_vk_exec_memory(r->exec, r->symbols, r->symbol_count, &r->need_count, 0, needs), "memory");
  uint32_t state = r->need_count;
  for (uint32_t i = 0; i < r->need_count; i++) {
    r->memory[i] = make_buffer(needs[i].size, needs[i].usage);
    ranges[i] = (snt_vk_range){r->memory[i].handle, 0, needs[i].size};
    init.constant_count += needs[i].memory_class == SNT_MEM_CONSTANT;
    if (needs[i].memory_class == SNT_MEM_STATE && state == r->need_count) state = i;
    init.state_count += needs[i].memory_class == SNT_MEM_STATE;
    if (needs[i].memory_class == SNT_MEM_VALUES) r->values_mapped = r->memory[i].mapped;
    if (needs[i].memory_class == SNT_MEM_STAGING) init.staging = ranges[i], init.staging_mapped = r->memory[i].mapped;
  }
  if (init.state_count) init.state = &ranges[state];
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  vkBeginCommandBuffer(commands, &begin);
  uint64_t next = 0;
  fine(snt_vk_record_init(r->exec, commands, &init, &next, &diag), "upload");
  must(next == SNT_VK_INIT_DONE, "the weights need more than one upload: more than this example does");
  const snt_vk_binding_info info = {.head = SNT_HEAD(vk_binding_info),
                                    .max_symbols = r->symbols,
                                    .symbol_count = r->symbol_count,
                                    .slot_count = 1,
                                    .memory_count = r->need_count,
                                    .memory = ranges};
  fine(snt_vk_binding_create(r->exec, &info, &r->binding, &diag), "binding");
}

/* f32 elements of an input are 0, 1/16, .. 16/16, 0, ..; other types hold zeros. */
static void fill(void *to, VkDeviceSize bytes, int32_t dtype) {
  memset(to, 0, (size_t)bytes);
  for (VkDeviceSize i = 0; dtype == SNT_F32 && i < bytes / 4; i++) ((float *)to)[i] = (float)(i % 17) / 16;
}

static void bind_ports(run *r) {
  r->port_count = MOST_PORTS;
  for (uint32_t i = 0; i < MOST_PORTS; i++) r->kinds[i].head = (snt_out_head)SNT_HEAD(vk_port);
  fine(snt_vk_exec_ports(r->exec, &r->port_count, 0, r->kinds), "ports");
  for (uint32_t i = 0; i < r->port_count; i++) {
    const snt_vk_port *p = &r->kinds[i];
    if (p->kind == SNT_VK_PORT_STATE) continue;
    if (p->kind == SNT_VK_PORT_VALUE) {
      must(p->value_offset + p->value_size <= sizeof r->values, "too many values for this example");
      fill(r->values + p->value_offset, p->value_size, p->tensor.dtype);
      continue;
    }
    must(p->kind == SNT_VK_PORT_BUFFER && p->format == VK_FORMAT_UNDEFINED, "ports that are images, or read as texels: see examples/frame");
    VkDeviceSize bytes = 0;
    fine(snt_vk_port_bytes(r->exec, i, r->symbols, r->symbol_count, &bytes), "the size of a port");
    r->ports[i] = make_buffer(bytes, p->buffer_usage);
    fill(r->ports[i].mapped, bytes, p->access & VK_ACCESS_SHADER_WRITE_BIT ? 0 : p->tensor.dtype);
    const snt_vk_bind b = {.port = i, .range = {r->ports[i].handle, 0, bytes}};
    fine(snt_vk_binding_set(r->binding, 0, 1, sizeof b, &b, &diag), "bind");
  }
}

static void record_and_wait(run *r) {
  const snt_vk_record_info info = {.head = SNT_HEAD(vk_record_info),
                                   .symbols = r->symbols,
                                   .symbol_count = r->symbol_count,
                                   .values = r->values_mapped ? r->values : NULL,
                                   .values_size = sizeof r->values,
                                   .values_mapped = r->values_mapped};
  fine(snt_vk_record(r->binding, commands, &info, &diag), "record");
  const VkMemoryBarrier seen = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT, .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &seen, 0, NULL, 0, NULL);
  must(vkEndCommandBuffer(commands) == VK_SUCCESS, "vkEndCommandBuffer");
  const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
  must(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE) == VK_SUCCESS && vkQueueWaitIdle(queue) == VK_SUCCESS, "submit");
}

static void show(const run *r, const char *folder) {
  for (uint32_t i = 0; i < r->port_count; i++) {
    snt_port port = {.head = SNT_HEAD(port)};
    int64_t dims[SNT_MAX_RANK];
    fine(snt_program_port(r->program, i, &port), "port");
    if (port.kind != SNT_PORT_OUTPUT) continue;
    fine(snt_program_port_dims(r->program, i, r->symbols, dims), "dims");
    size_t bytes = snt_dtype_size(port.tensor.dtype);
    for (uint32_t d = 0; d < port.tensor.rank; d++) bytes *= (size_t)dims[d];
    printf("%s: %zu bytes", port.name, bytes);
    for (size_t k = 0; port.tensor.dtype == SNT_F32 && k < 4 && k < bytes / 4; k++) printf(" %g", (double)((float *)r->ports[i].mapped)[k]);
    printf("\n");
    char path[512];
    if (!folder) continue;
    snprintf(path, sizeof path, "%s/%s.bin", folder, port.name);
    FILE *out = fopen(path, "wb");
    must(out && fwrite(r->ports[i].mapped, 1, bytes, out) == bytes && fclose(out) == 0, "an output cannot be written");
  }
}

static const char *option(int argc, char **argv, const char *name) {
  for (int i = 2; i + 1 < argc; i++)
    if (!strcmp(argv[i], name)) return argv[i + 1];
  return NULL;
}

int main(int argc, char **argv) {
  static run r;
  snt_context *context = NULL;
  size_t size = 0;
  must(argc >= 2, "usage: saved MODEL.sntp [--device PART] [--dim NAME=N].. [--out FOLDER]");
  void *blob = read_file(argv[1], &size);
  open_instance(option(argc, argv, "--device"));
  fine(snt_context_create(NULL, &context), "context");
  snt_device *attached = attach(context);
  fine(snt_program_load_best(attached, blob, size, &r.program, &diag), "load");
  choose_symbols(&r, argc, argv);
  fine(snt_exec_create(attached, r.program, NULL, &r.exec, &diag), "exec");
  fine(snt_exec_prepare(r.exec, &diag), "pipelines");
  make_memory(&r);
  bind_ports(&r);
  record_and_wait(&r);
  printf("kernels: %u\n", snt_exec_step_count(r.exec));
  show(&r, option(argc, argv, "--out"));

  snt_binding_destroy(r.binding);
  snt_exec_destroy(r.exec);
  snt_program_destroy(r.program);
  snt_device_destroy(attached);
  snt_context_destroy(context);
  free(blob);
  for (uint32_t i = 0; i < r.need_count; i++) drop_buffer(&r.memory[i]);
  for (uint32_t i = 0; i < r.port_count; i++)
    if (r.ports[i].handle) drop_buffer(&r.ports[i]);
  vkDestroyCommandPool(device, pool, NULL);
  vkDestroyDevice(device, NULL);
  vkDestroyInstance(instance, NULL);
  return 0;
}
