/* Each Vulkan call of a device's life fails in turn, with each of three errors, from the first of the instance on: the real driver stands
   behind a table that lets all calls through but one. What must hold: a call that matters gives its own result, others change nothing,
   whatever was created is destroyed, a lost device stays lost. rt_failures.c has the same calls, the first of each, under the validation
   layer. */
#include "runtime/rt_vulkan.h"
#include "runtime/targets.h"
#include "tests/tap.h"
#include "tests/unit/rt_kernels.h"
#include "tests/unit/rt_life.h"
#include "tools/host/host.h"
#include <dlfcn.h>

static struct {
  int64_t alive;           /* created and not destroyed */
  uint32_t calls, fail_at; /* 1-based, 0: never */
  VkResult fail_with;
  const char *failed;
} plan;

static bool fails(const char *name) {
  if (++plan.calls != plan.fail_at) return false;
  plan.failed = name;
  return true;
}
static VkResult booked(VkResult code, int64_t made) {
  if (code >= 0) plan.alive += made;
  return code;
}

/* ---- the functions that can fail; how many objects each makes; WAITS: what waits has waited before it says that it could not ---- */
// clang-format off
#define ALLOCATOR const VkAllocationCallbacks *b
#define FALLIBLE(F, WAITS)                                                                                                                       \
  F(vkCreateInstance, 1, (const VkInstanceCreateInfo *a, ALLOCATOR, VkInstance *c), (a, b, c))                                                   \
  F(vkEnumerateInstanceVersion, 0, (uint32_t *a), (a))                                                                                           \
  F(vkEnumerateInstanceLayerProperties, 0, (uint32_t *a, VkLayerProperties *b), (a, b))                                                          \
  F(vkEnumeratePhysicalDevices, 0, (VkInstance a, uint32_t *b, VkPhysicalDevice *c), (a, b, c))                                                  \
  F(vkEnumerateDeviceExtensionProperties, 0, (VkPhysicalDevice a, const char *b, uint32_t *c, VkExtensionProperties *d), (a, b, c, d))           \
  F(vkCreateDevice, 1, (VkPhysicalDevice d, const VkDeviceCreateInfo *a, ALLOCATOR, VkDevice *c), (d, a, b, c))                                  \
  F(vkQueueSubmit, 0, (VkQueue a, uint32_t b, const VkSubmitInfo *c, VkFence d), (a, b, c, d))                                                   \
  F(vkCreateBuffer, 1, (VkDevice d, const VkBufferCreateInfo *a, ALLOCATOR, VkBuffer *c), (d, a, b, c))                                          \
  F(vkAllocateMemory, 1, (VkDevice d, const VkMemoryAllocateInfo *a, ALLOCATOR, VkDeviceMemory *c), (d, a, b, c))                                \
  F(vkBindBufferMemory, 0, (VkDevice d, VkBuffer a, VkDeviceMemory b, VkDeviceSize c), (d, a, b, c))                                             \
  F(vkMapMemory, 0, (VkDevice d, VkDeviceMemory a, VkDeviceSize b, VkDeviceSize c, VkMemoryMapFlags e, void **f), (d, a, b, c, e, f))            \
  F(vkCreateBufferView, 1, (VkDevice d, const VkBufferViewCreateInfo *a, ALLOCATOR, VkBufferView *c), (d, a, b, c))                              \
  F(vkCreateShaderModule, 1, (VkDevice d, const VkShaderModuleCreateInfo *a, ALLOCATOR, VkShaderModule *c), (d, a, b, c))                        \
  F(vkCreatePipelineCache, 1, (VkDevice d, const VkPipelineCacheCreateInfo *a, ALLOCATOR, VkPipelineCache *c), (d, a, b, c))                     \
  F(vkGetPipelineCacheData, 0, (VkDevice d, VkPipelineCache a, size_t *b, void *c), (d, a, b, c))                                                \
  F(vkCreateComputePipelines, 1, (VkDevice d, VkPipelineCache e, uint32_t f, const VkComputePipelineCreateInfo *a, ALLOCATOR, VkPipeline *c),     \
    (d, e, f, a, b, c))                                                                                                                          \
  F(vkCreatePipelineLayout, 1, (VkDevice d, const VkPipelineLayoutCreateInfo *a, ALLOCATOR, VkPipelineLayout *c), (d, a, b, c))                  \
  F(vkCreateDescriptorSetLayout, 1, (VkDevice d, const VkDescriptorSetLayoutCreateInfo *a, ALLOCATOR, VkDescriptorSetLayout *c), (d, a, b, c))   \
  F(vkCreateDescriptorPool, 1, (VkDevice d, const VkDescriptorPoolCreateInfo *a, ALLOCATOR, VkDescriptorPool *c), (d, a, b, c))                  \
  F(vkResetDescriptorPool, 0, (VkDevice d, VkDescriptorPool a, VkDescriptorPoolResetFlags b), (d, a, b))                                         \
  F(vkAllocateDescriptorSets, 0, (VkDevice d, const VkDescriptorSetAllocateInfo *a, VkDescriptorSet *b), (d, a, b))                              \
  F(vkCreateCommandPool, 1, (VkDevice d, const VkCommandPoolCreateInfo *a, ALLOCATOR, VkCommandPool *c), (d, a, b, c))                           \
  F(vkAllocateCommandBuffers, 0, (VkDevice d, const VkCommandBufferAllocateInfo *a, VkCommandBuffer *b), (d, a, b))                              \
  F(vkBeginCommandBuffer, 0, (VkCommandBuffer a, const VkCommandBufferBeginInfo *b), (a, b))                                                     \
  F(vkEndCommandBuffer, 0, (VkCommandBuffer a), (a))                                                                                             \
  F(vkCreateFence, 1, (VkDevice d, const VkFenceCreateInfo *a, ALLOCATOR, VkFence *c), (d, a, b, c))                                             \
  F(vkResetFences, 0, (VkDevice d, uint32_t a, const VkFence *b), (d, a, b))                                                                     \
  F(vkCreateQueryPool, 1, (VkDevice d, const VkQueryPoolCreateInfo *a, ALLOCATOR, VkQueryPool *c), (d, a, b, c))                                 \
  WAITS(vkWaitForFences, 0, (VkDevice d, uint32_t a, const VkFence *b, VkBool32 c, uint64_t e), (d, a, b, c, e))                                 \
  WAITS(vkGetFenceStatus, 0, (VkDevice d, VkFence a), (d, a))                                                                                    \
  WAITS(vkDeviceWaitIdle, 0, (VkDevice d), (d))                                                                                                  \
  WAITS(vkGetQueryPoolResults, 0, (VkDevice d, VkQueryPool a, uint32_t b, uint32_t c, size_t e, void *f, VkDeviceSize g, VkQueryResultFlags h),  \
        (d, a, b, c, e, f, g, h))
#define DROPS(F)                                                                                                                                 \
  F(vkFreeMemory, VkDeviceMemory) F(vkDestroyBuffer, VkBuffer) F(vkDestroyBufferView, VkBufferView) F(vkDestroyShaderModule, VkShaderModule)     \
  F(vkDestroyPipelineCache, VkPipelineCache) F(vkDestroyPipeline, VkPipeline) F(vkDestroyPipelineLayout, VkPipelineLayout)                       \
  F(vkDestroyDescriptorSetLayout, VkDescriptorSetLayout) F(vkDestroyDescriptorPool, VkDescriptorPool) F(vkDestroyCommandPool, VkCommandPool)      \
  F(vkDestroyFence, VkFence) F(vkDestroyQueryPool, VkQueryPool)
// clang-format on

static struct {
#define MEMBER(name, ...) PFN_##name name;
  FALLIBLE(MEMBER, MEMBER)
  DROPS(MEMBER)
  PFN_vkDestroyInstance vkDestroyInstance;
  PFN_vkDestroyDevice vkDestroyDevice;
  PFN_vkGetDeviceProcAddr vkGetDeviceProcAddr;
  PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr;
} real;

#define FALLIBLE_CALL(name, made, parameters, arguments) \
  static VKAPI_ATTR VkResult VKAPI_CALL f##name parameters { return fails(#name) ? plan.fail_with : booked(real.name arguments, made); }
#define WAITING_CALL(name, made, parameters, arguments)      \
  static VKAPI_ATTR VkResult VKAPI_CALL f##name parameters { \
    const VkResult code = real.name arguments;               \
    return fails(#name) ? plan.fail_with : code;             \
  }
#define DROPPING_CALL(name, Handle)                                                                 \
  static VKAPI_ATTR void VKAPI_CALL f##name(VkDevice d, Handle h, const VkAllocationCallbacks *a) { \
    plan.alive -= h != VK_NULL_HANDLE;                                                              \
    real.name(d, h, a);                                                                             \
  }
FALLIBLE(FALLIBLE_CALL, WAITING_CALL)
DROPS(DROPPING_CALL)
static VKAPI_ATTR void VKAPI_CALL fvkDestroyInstance(VkInstance i, const VkAllocationCallbacks *a) {
  plan.alive -= i != VK_NULL_HANDLE;
  real.vkDestroyInstance(i, a);
}
static VKAPI_ATTR void VKAPI_CALL fvkDestroyDevice(VkDevice d, const VkAllocationCallbacks *a) {
  plan.alive -= d != VK_NULL_HANDLE;
  real.vkDestroyDevice(d, a);
}
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL fvkGetDeviceProcAddr(VkDevice, const char *);

/* The function of that name, ours where we have one; what is behind it is `found`. */
static PFN_vkVoidFunction stand_before(const char *name, PFN_vkVoidFunction found) {
  static const struct {
    const char *name;
    void *real;
    PFN_vkVoidFunction ours;
  } rows[] = {
#define ROW(name, ...) {#name, &real.name, (PFN_vkVoidFunction)(void (*)(void))f##name},
      FALLIBLE(ROW, ROW) DROPS(ROW) ROW(vkDestroyInstance, 0) ROW(vkDestroyDevice, 0) ROW(vkGetDeviceProcAddr, 0)};
  for (size_t i = 0; found && i < IR_COUNT(rows); i++) {
    if (strcmp(rows[i].name, name) != 0) continue;
    memcpy(rows[i].real, &found, sizeof found);
    return rows[i].ours;
  }
  return found;
}
static PFN_vkVoidFunction VKAPI_CALL fvkGetDeviceProcAddr(VkDevice d, const char *name) {
  return stand_before(name, real.vkGetDeviceProcAddr(d, name));
}
/* Newer loaders have this one whether or not the driver does, and end the program where it does not. */
static uint32_t units_asked;
static VKAPI_ATTR VkResult VKAPI_CALL ask_units(VkPhysicalDevice d, uint32_t *count, vk_units_properties *list) {
  (void)d, (void)list;
  *count = 0;
  units_asked++;
  return VK_SUCCESS;
}
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get(VkInstance i, const char *name) {
  if (!strcmp(name, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR")) return (PFN_vkVoidFunction)(void (*)(void))ask_units;
  return stand_before(name, real.vkGetInstanceProcAddr(i, name));
}

/* ---- in place of runtime/rt_loader.c ---- */

void *rt_library_open(const char *const *names) {
  void *library = strstr(*names, "vulkan") ? dlopen(*names, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
  void *found = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
  memcpy(&real.vkGetInstanceProcAddr, &found, sizeof found);
  return found ? library : NULL;
}
void rt_library_close(void *library) { (void)library; }
const char *rt_library_symbols(void *library, const char *names, void *table) {
  (void)library, (void)names;
  const PFN_vkGetInstanceProcAddr ours = get;
  memcpy(table, &ours, sizeof ours);
  return NULL;
}

/* ---- a life of a device ---- */

static snt_result use(rt_life *t, rt_device *device, const rt_code *code) {
  static uint8_t binary[1 << 20];
  t->turns = 2; /* the second submission has the first one's command buffer */
  t->wait_ns = UINT64_C(60000000000), t->binary = binary, t->binary_size = sizeof binary;
  SNT_TRY(rt_life_use(t, device, code));
  return t->result[0] == 2 ? SNT_OK : SNT_E_INTERNAL;
}

static bool never_opened;
static snt_result live(const rt_code *code, snt_result *after) {
  rt_device *device = NULL;
  rt_life t = {0};
  *after = SNT_E_DEVICE_LOST;
  plan.calls = 0, plan.alive = 0, plan.failed = "none";
  const snt_result opened = rt_open_device(NULL, NULL, "vulkan:llvmpipe", &device, NULL);
  if ((never_opened = opened != SNT_OK)) return opened;
  const snt_result result = use(&t, device, code);
  *after = rt_life_ask(device);
  rt_life_free(&t, device);
  rt_close_device(device);
  return result;
}

/* Without these all goes on: what only reads a list, asks whether something is there, or is for a cache. */
static bool may_be_silent(const char *name) {
  static const char *const names[] = {"vkEnumerateInstanceVersion",
                                      "vkEnumerateInstanceLayerProperties",
                                      "vkEnumerateDeviceExtensionProperties",
                                      "vkCreatePipelineCache",
                                      "vkGetPipelineCacheData",
                                      "vkDeviceWaitIdle"};
  for (size_t i = 0; i < IR_COUNT(names); i++)
    if (!strcmp(names[i], name)) return true;
  return false;
}

// clang-format off
static const struct { VkResult code; snt_result result; } errors[] = {
    {VK_ERROR_DEVICE_LOST, SNT_E_DEVICE_LOST}, {VK_ERROR_OUT_OF_DEVICE_MEMORY, SNT_E_DEVICE_MEM}, {VK_ERROR_OUT_OF_HOST_MEMORY, SNT_E_HOST_MEM}};
// clang-format on

static void fail_each(const rt_code *code, uint32_t calls) {
  for (size_t e = 0; e < IR_COUNT(errors); e++) {
    uint32_t wrong = 0, left = 0, revived = 0;
    plan.fail_with = errors[e].code;
    for (plan.fail_at = 1; plan.fail_at <= calls; plan.fail_at++) {
      snt_result after;
      const snt_result got = live(code, &after);
      const bool opening = never_opened && (got == SNT_E_UNSUPPORTED || got == SNT_E_BACKEND); /* no such device, then */
      const bool right = got == errors[e].result || opening || (got == SNT_OK && (after == errors[e].result || may_be_silent(plan.failed)));
      const bool stays = got != SNT_E_DEVICE_LOST || after == SNT_E_DEVICE_LOST;
      wrong += !right, left += plan.alive != 0, revived += !stays;
      if (!right || plan.alive || !stays)
        tap_diag("call %u, %s, gives %d: result %d, then %d; %lld objects left", plan.fail_at, plan.failed, errors[e].code, got, after,
                 (long long)plan.alive);
    }
    tap_ok(wrong == 0, "each of %u calls gives %d, and the result says so", calls, errors[e].code);
    tap_is_int(left, 0, "nothing is left in the driver after any of these lives");
    tap_is_int(revived, 0, "a lost device stays lost");
  }
}

int main(void) {
  test_code code;
  const char *why = "";
  snt_result after;
  rt_device *device = NULL;
  snt_diag diag = {0};
  host_prepare_drivers(NULL);
  if (rt_open_device(NULL, NULL, "vulkan:llvmpipe", &device, &diag) != SNT_OK) return tap_skip_all(diag.text);
  const vk_device *own = (const vk_device *)device;
  const bool has_units = vk_has_extension(&own->instance->api, device->alloc, own->physical, VK_UNITS_EXTENSION);
  tap_is_int(units_asked, has_units, "matrix units are asked for only of a driver that has them");
  rt_close_device(device);
  if (!test_code_make(&code, SNT_TARGET_SPIRV, true, &why)) return tap_skip_all(why);
  tap_is_int(live(&code.code, &after), SNT_OK, "nothing fails, and the kernel's numbers come out");
  tap_is_int(plan.alive, 0, "nothing is left");
  const uint32_t calls = plan.calls;
  tap_ok(calls > 60, "%u calls that can fail", calls);
  fail_each(&code.code, calls);
  test_code_free(&code);
  return tap_done();
}
