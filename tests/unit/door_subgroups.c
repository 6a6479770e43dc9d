/* Which size of subgroups kernels name, on devices that are only planned: that of pipelines that ask for none, where subgroups of it are sure to be whole and,
   of a device whose sizes vary, where it can be asked for. Elsewhere they are right for any size; what names one is refused where nobody can ask. */
#include "tests/tap.h"
#include "tests/unit/vk_fake.h"
#include <sinter/vulkan.h>
#include <stdlib.h>

typedef struct device_case {
  const char *what;
  uint32_t size, least, most; /* least 0: the host did not look */
  bool control, full;         /* enabled */
  VkShaderStageFlags asks;    /* stages that may ask for a size */
  uint32_t beside;            /* subgroups that a workgroup may have */
  uint32_t named;             /* what kernels may name; 0: none */
  bool takes;                 /* a program of kernels that name 64 */
} device_case;

static const VkSubgroupFeatureFlags operations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
                                                 VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
static const device_case rows[] = {
    {"one size, whole", 64, 64, 64, true, true, 0, 4, 64, true},
    {"one size for all that the host said, whole", 64, 0, 0, false, true, 0, 0, 64, true},
    {"one size, perhaps not whole", 64, 0, 0, false, false, 0, 0, 0, true},
    {"sizes that vary, and can be asked for", 64, 32, 64, true, true, VK_SHADER_STAGE_COMPUTE_BIT, 4, 64, true},
    {"of which the greatest is not the usual one", 32, 8, 64, true, true, VK_SHADER_STAGE_COMPUTE_BIT, 4, 32, true},
    {"sizes that vary, perhaps not whole", 64, 32, 64, true, false, VK_SHADER_STAGE_COMPUTE_BIT, 4, 0, true},
    {"sizes that vary, and only vertices ask", 64, 32, 64, true, true, VK_SHADER_STAGE_VERTEX_BIT, 4, 0, false},
    {"fewer subgroups than a workgroup is made of", 16, 8, 64, true, true, VK_SHADER_STAGE_COMPUTE_BIT, 4, 0, true},
};

static snt_result plan(snt_context *context, const device_case *row, snt_device **device, snt_diag *diag) {
  VkPhysicalDeviceSubgroupSizeControlProperties sizes = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES,
                                                         .minSubgroupSize = row->least,
                                                         .maxSubgroupSize = row->most,
                                                         .maxComputeWorkgroupSubgroups = row->beside,
                                                         .requiredSubgroupSizeStages = row->asks};
  VkPhysicalDeviceSubgroupProperties subgroups = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES,
                                                  .pNext = row->least ? &sizes : NULL};
  VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &subgroups};
  VkPhysicalDeviceSubgroupSizeControlFeatures own = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
                                                     .subgroupSizeControl = row->control,
                                                     .computeFullSubgroups = row->full};
  const VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &own};
  const snt_vk_caps caps = {.head = SNT_HEAD(vk_caps), .properties = &properties, .features = &features};
  vk_fake_properties(&properties);
  properties.properties.deviceType = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  subgroups.subgroupSize = row->size;
  subgroups.supportedOperations = operations;
  return snt_vk_plan(context, &caps, device, diag);
}

/* A row of 64 items. */
static const char text[] = "graph @rows(%x: f32[512,1024]) {\n  %1: f32[512,1024] = softmax %x, axis=1\n  return y=%1\n}\n";

static snt_result compile(snt_context *context, snt_device *device, snt_program **out, snt_diag *diag) {
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  snt_result r = snt_graph_create(context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, text, sizeof text - 1, NULL, diag);
  if (r == SNT_OK) r = snt_device_profile(device, &profile);
  if (r == SNT_OK) r = snt_compile(graph, profile, NULL, out, diag);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return r;
}

static bool has_line(snt_device *device, uint32_t size) {
  static char printed[1 << 14];
  char line[64];
  size_t room = sizeof printed;
  snt_profile *profile = NULL;
  snprintf(line, sizeof line, "caps.subgroup_size = %u\n", size);
  snt_result r = snt_device_profile(device, &profile);
  if (r == SNT_OK) r = snt_profile_print(profile, printed, &room);
  snt_profile_destroy(profile);
  return r == SNT_OK && strstr(printed, line);
}

/* What the pipelines of the program ask for on the device. */
static snt_result asked(snt_device *device, snt_program *program, uint32_t *out, snt_diag *diag) {
  const snt_vk_describe_info info = {.head = SNT_HEAD(vk_describe_info)};
  const snt_vk_description *d = NULL;
  snt_exec *exec = NULL;
  size_t size = 0;
  snt_result r = snt_exec_create(device, program, NULL, &exec, diag);
  if (r != SNT_OK) return r;
  (void)snt_vk_describe(exec, &info, NULL, &size, NULL, diag);
  void *storage = aligned_alloc(16, (size + 15) / 16 * 16);
  r = snt_vk_describe(exec, &info, storage, &size, &d, diag);
  *out = r == SNT_OK && d->pipeline_count == 1 ? d->pipelines[0].required_subgroup_size : ~0u;
  free(storage);
  snt_exec_destroy(exec);
  return r;
}

/* Of two variants the first that the device can run; that of its own profile comes before. */
static void check_best(snt_device *device, const device_case *row, const snt_program *by_64, const snt_program *own) {
  const snt_program *const variants[] = {by_64, own};
  snt_diag diag = {.head = SNT_HEAD(diag)};
  snt_program *best = NULL;
  size_t size = 0;
  uint32_t asks = ~0u;
  (void)snt_program_pack(variants, 2, NULL, &size);
  void *pack = malloc(size);
  snt_result r = pack ? snt_program_pack(variants, 2, pack, &size) : SNT_E_HOST_MEM;
  if (r == SNT_OK) r = snt_program_load_best(device, pack, size, &best, &diag);
  if (r == SNT_OK) r = asked(device, best, &asks, &diag);
  tap_result(r == SNT_OK && asks == (row->takes ? 64 : 0), __FILE__, __LINE__, "%s: of a pack the variant that asks for %u%s%s", row->what,
             asks, r == SNT_OK ? "" : ": ", diag.text);
  snt_program_destroy(best);
  free(pack);
}

static void check(snt_context *context, const device_case *row, snt_program *by_64) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  snt_device *device = NULL;
  snt_program *program = NULL;
  uint32_t size = ~0u;
  if (!tap_result(plan(context, row, &device, &diag) == SNT_OK, __FILE__, __LINE__, "%s: planned: %s", row->what, diag.text)) return;
  tap_result(has_line(device, row->named), __FILE__, __LINE__, "%s: kernels may name %u", row->what, row->named);
  snt_result r = compile(context, device, &program, &diag);
  if (r == SNT_OK) r = asked(device, program, &size, &diag);
  tap_result(r == SNT_OK, __FILE__, __LINE__, "%s: a program of its own: %s", row->what, diag.text);
  tap_is_int(size, row->named == 64 ? 64 : 0, "a row of 64 items: %s", row->what);
  r = asked(device, by_64, &size, &diag);
  const bool unasked = row->least <= 64 && row->most >= 64 && strstr(diag.text, "of which none can be asked for");
  tap_result(row->takes ? r == SNT_OK && size == 64 : r == SNT_E_UNSUPPORTED && strstr(diag.text, "needs subgroups of 64") && unasked,
             __FILE__, __LINE__, "%s: a program that names 64: %s", row->what, r == SNT_OK ? "taken" : diag.text);
  check_best(device, row, by_64, program);
  snt_program_destroy(program);
  snt_device_destroy(device);
}

/* ---- what a host is told to enable ---- */

/* Vulkan 1.3 without an extension, so without matrices. */
static VKAPI_ATTR void VKAPI_CALL get_features(VkPhysicalDevice p, VkPhysicalDeviceFeatures2 *out) {
  (void)p;
  for (VkBaseOutStructure *s = out->pNext; s; s = s->pNext) {
    void *block = s;
    if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES)
      ((VkPhysicalDeviceSubgroupSizeControlFeatures *)block)->computeFullSubgroups = VK_TRUE;
    if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES)
      ((VkPhysicalDeviceVulkanMemoryModelFeatures *)block)->vulkanMemoryModel = VK_TRUE;
  }
}
static VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice p, VkPhysicalDeviceProperties *out) {
  (void)p;
  *out = (VkPhysicalDeviceProperties){.apiVersion = VK_API_VERSION_1_3};
}
static VKAPI_ATTR VkResult VKAPI_CALL get_extensions(VkPhysicalDevice p, const char *layer, uint32_t *count, VkExtensionProperties *out) {
  (void)p, (void)layer, (void)out;
  *count = 0;
  return VK_SUCCESS;
}
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get(VkInstance instance, const char *name) {
  (void)instance;
  if (!strcmp(name, "vkGetPhysicalDeviceFeatures2")) return (PFN_vkVoidFunction)get_features;
  if (!strcmp(name, "vkGetPhysicalDeviceProperties")) return (PFN_vkVoidFunction)get_properties;
  return !strcmp(name, "vkEnumerateDeviceExtensionProperties") ? (PFN_vkVoidFunction)get_extensions : NULL;
}
static void check_wish(void) {
  snt_vk_wishlist wish = {.head = SNT_HEAD(vk_wishlist)};
  const snt_result r = snt_vk_query_wishlist(get, (VkInstance)(uintptr_t)1, (VkPhysicalDevice)(uintptr_t)2, &wish);
  const bool whole = wish.features & SNT_VK_FEATURE_FULL_SUBGROUPS, model = wish.features & SNT_VK_FEATURE_MEMORY_MODEL;
  tap_result(r == SNT_OK && whole && !model, __FILE__, __LINE__,
             "without matrices: whole subgroups are wished for, the memory model is not");
}

int main(void) {
  const snt_context_info info = {.head = SNT_HEAD(context_info)};
  snt_context *context = NULL;
  snt_device *first = NULL;
  snt_program *by_64 = NULL;
  snt_diag diag = {.head = SNT_HEAD(diag)};
  if (!tap_ok(snt_context_create(&info, &context) == SNT_OK, "a context")) return tap_done();
  snt_result r = plan(context, &rows[0], &first, &diag);
  if (r == SNT_OK) r = compile(context, first, &by_64, &diag);
  tap_result(r == SNT_OK, __FILE__, __LINE__, "a program for subgroups of 64: %s", diag.text);
  check_wish();
  for (size_t i = 0; r == SNT_OK && i < sizeof rows / sizeof *rows; i++) check(context, &rows[i], by_64);
  snt_program_destroy(by_64);
  snt_device_destroy(first);
  snt_context_destroy(context);
  return tap_done();
}
