/* Products of bytes through the door, against a device that is only a table of functions: they are instructions of a profile where the host
   has enabled them and the device is fast at them, attached or only planned. */
#include "tests/tap.h"
#include "tests/unit/vk_fake.h"
#include <sinter/vulkan.h>

static const VkPhysicalDeviceShaderIntegerDotProductFeatures own_struct = {
    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, .shaderIntegerDotProduct = VK_TRUE};
static const VkPhysicalDeviceVulkan13Features core_struct = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                                                             .shaderIntegerDotProduct = VK_TRUE};
static const VkDeviceCreateInfo by_extension = {.pNext = &own_struct}, by_core = {.pNext = &core_struct}, without = {.pNext = NULL};

typedef struct dots_case {
  const char *what;
  const VkDeviceCreateInfo *made;
  bool slow, has;
} dots_case;

static snt_result attach(snt_context *context, const VkDeviceCreateInfo *made, snt_device **device, snt_diag *diag) {
  const snt_vk_attach_info info = {.head = SNT_HEAD(vk_attach_info),
                                   .instance = (VkInstance)(uintptr_t)1,
                                   .physical_device = (VkPhysicalDevice)(uintptr_t)2,
                                   .device = (VkDevice)(uintptr_t)3,
                                   .get_instance_proc = vk_fake_get,
                                   .created_with = made};
  return snt_vk_attach(context, &info, device, diag);
}

static snt_result plan(snt_context *context, const VkDeviceCreateInfo *made, snt_device **device, snt_diag *diag) {
  VkPhysicalDeviceShaderIntegerDotProductProperties dots = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES};
  VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &dots};
  const VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                              .pNext = (void *)(uintptr_t)made->pNext};
  const snt_vk_caps caps = {.head = SNT_HEAD(vk_caps), .properties = &properties, .features = &features};
  vk_fake_properties(&properties);
  return snt_vk_plan(context, &caps, device, diag);
}

static bool multiplies_words(snt_device *device) {
  static char text[1 << 14];
  size_t size = sizeof text;
  snt_profile *profile = NULL;
  snt_result r = device ? snt_device_profile(device, &profile) : SNT_E_ARG;
  if (r == SNT_OK) r = snt_profile_print(profile, text, &size);
  snt_profile_destroy(profile);
  return tap_ok(r == SNT_OK, "it has a profile") && strstr(text, "caps.dot4 = 1");
}

static void check(snt_context *context, const dots_case *row) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  snt_device *attached = NULL, *planned = NULL;
  vk_fake_reset();
  fake.slow_dots = row->slow;
  tap_result(attach(context, row->made, &attached, &diag) == SNT_OK, __FILE__, __LINE__, "attached, %s: %s", row->what, diag.text);
  tap_is_int(multiplies_words(attached), row->has, "products of bytes: %s", row->what);
  tap_result(plan(context, row->made, &planned, &diag) == SNT_OK, __FILE__, __LINE__, "planned, %s: %s", row->what, diag.text);
  tap_is_int(multiplies_words(planned), row->has, "and of a planned device");
  snt_device_destroy(planned);
  snt_device_destroy(attached);
}

int main(void) {
  static const dots_case rows[] = {{"enabled, and fast", &by_extension, false, true},
                                   {"enabled by Vulkan 1.3's struct", &by_core, false, true},
                                   {"enabled, but slow", &by_extension, true, false},
                                   {"not enabled", &without, false, false}};
  const snt_context_info info = {.head = SNT_HEAD(context_info)};
  snt_context *context = NULL;
  if (!tap_ok(snt_context_create(&info, &context) == SNT_OK, "a context")) return tap_done();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check(context, &rows[i]);
  snt_context_destroy(context);
  return tap_done();
}
