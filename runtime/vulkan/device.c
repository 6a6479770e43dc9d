/* Vulkan devices: selectors ("vulkan:0", "vulkan:llvmpipe", any part of the device's or driver's name, "+validate" behind it), the logical
   device with every optional feature that kernels can use, and the vtable. */
#include "runtime/rt_vulkan.h"
#include <stdio.h>

enum { VK_MAX_DEVICES = 16 };

/* ---- finding ---- */

typedef struct vk_found {
  VkPhysicalDevice physical;
  VkPhysicalDeviceType type;
  rt_device_desc desc;
} vk_found;

static const char *short_name(const char *device, const char *driver) {
  static const char *const known[] = {"llvmpipe", "swiftshader", "nvidia", "radv", "amd",  "intel",
                                      "moltenvk", "mali",        "adreno", "v3dv", "venus"};
  for (uint32_t i = 0; i < IR_COUNT(known); i++) {
    if (rt_contains(device, known[i]) || rt_contains(driver, known[i])) return known[i];
  }
  return NULL;
}

static void describe(const vk_api *api, const snt_host_alloc *alloc, vk_found *found) {
  VkPhysicalDeviceDriverProperties driver = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
  VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};
  if (vk_has_extension(api, alloc, found->physical, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME)) id.pNext = &driver;
  api->vkGetPhysicalDeviceProperties2(found->physical, &properties);
  const VkPhysicalDeviceProperties *plain = &properties.properties;
  found->type = plain->deviceType;
  rt_device_desc *desc = &found->desc;
  *desc = (rt_device_desc){.api = SNT_TARGET_SPIRV, .device_class = (uint32_t)plain->deviceType};
  rt_copy_text(desc->name, sizeof desc->name, plain->deviceName);
  snprintf(desc->driver, sizeof desc->driver, "%.40s %.60s %u", driver.driverName, driver.driverInfo, plain->driverVersion);
  rt_copy_text(desc->profile, sizeof desc->profile, vk_profile_name(desc->name, desc->driver, plain->deviceType));
  memcpy(desc->id, id.deviceUUID, sizeof desc->id);
}

/* Short names where they say which; else numbers. */
static void name_selectors(vk_found *found, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const char *name = short_name(found[i].desc.name, found[i].desc.driver);
    bool taken = name == NULL;
    for (uint32_t j = 0; j < i && !taken; j++) taken = rt_contains(found[j].desc.name, name) || rt_contains(found[j].desc.driver, name);
    if (taken) snprintf(found[i].desc.selector, sizeof found[i].desc.selector, "vulkan:%u", i);
    else snprintf(found[i].desc.selector, sizeof found[i].desc.selector, "vulkan:%s", name);
  }
}

static uint32_t find_devices(const vk_instance *instance, const snt_host_alloc *alloc, vk_found found[VK_MAX_DEVICES]) {
  VkPhysicalDevice physical[VK_MAX_DEVICES];
  uint32_t count = VK_MAX_DEVICES, kept = 0;
  VkResult code = instance->api.vkEnumeratePhysicalDevices(instance->handle, &count, physical);
  if (code != VK_SUCCESS && code != VK_INCOMPLETE) return 0;
  for (uint32_t i = 0; i < count; i++) {
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    instance->api.vkGetPhysicalDeviceProperties2(physical[i], &properties);
    if (properties.properties.apiVersion < VK_API_VERSION_1_1) continue;
    found[kept].physical = physical[i];
    describe(&instance->api, alloc, &found[kept++]);
  }
  name_selectors(found, kept);
  return kept;
}

static snt_result vk_enumerate(const snt_host_alloc *alloc, uint32_t *count, rt_device_desc *out, uint32_t capacity) {
  vk_found found[VK_MAX_DEVICES];
  vk_instance *instance;
  *count = 0;
  snt_result result = vk_instance_open(alloc, 0, &instance, NULL);
  if (result != SNT_OK) return result == SNT_E_HOST_MEM ? result : SNT_OK;
  *count = find_devices(instance, alloc, found);
  for (uint32_t i = 0; i < *count && i < capacity; i++) out[i] = found[i].desc;
  vk_instance_close(alloc, instance);
  return SNT_OK;
}

/* None asked for: a card, else a GPU beside the processor, else what there is. */
static const vk_found *best_device(const vk_found *found, uint32_t count) {
  static const VkPhysicalDeviceType order[] = {VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
                                               VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU};
  for (uint32_t type = 0; type < IR_COUNT(order); type++) {
    for (uint32_t i = 0; i < count; i++) {
      if (found[i].type == order[type]) return &found[i];
    }
  }
  for (uint32_t i = 0; i < count; i++) {
    if (rt_contains(found[i].desc.name, "llvmpipe")) return &found[i];
  }
  return count ? &found[0] : NULL;
}

static const vk_found *select_device(const vk_found *found, uint32_t count, const char *which) {
  uint32_t index;
  if (!*which) return best_device(found, count);
  if (rt_index(which, &index)) return index < count ? &found[index] : NULL;
  for (uint32_t i = 0; i < count; i++) {
    if (rt_contains(found[i].desc.name, which) || rt_contains(found[i].desc.driver, which)) return &found[i];
  }
  return NULL;
}

/* ---- the logical device ---- */

static bool find_queue_family(vk_device *device, snt_diag *diag) {
  const vk_api *api = &device->instance->api;
  VkQueueFamilyProperties families[16];
  uint32_t count = IR_COUNT(families);
  api->vkGetPhysicalDeviceQueueFamilyProperties(device->physical, &count, families);
  for (uint32_t wanted = 0; wanted < 2; wanted++) { /* a compute-only family first: it does not wait behind graphics */
    for (uint32_t i = 0; i < count; i++) {
      bool graphics = families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT;
      if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) || graphics != (wanted == 1)) continue;
      device->family = i;
      uint32_t bits = families[i].timestampValidBits;
      device->timestamps = bits != 0;
      device->timestamp_mask = bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
      return true;
    }
  }
  ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "%s has no compute queue", device->base.name);
  return false;
}

static void query_memory(vk_device *device, VkPhysicalDeviceType type) {
  device->unified = type == VK_PHYSICAL_DEVICE_TYPE_CPU || type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  VkPhysicalDeviceMaintenance3Properties sizes = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &sizes};
  device->instance->api.vkGetPhysicalDeviceProperties2(device->physical, &properties);
  device->max_allocation = sizes.maxMemoryAllocationSize;
  device->timestamp_ns = properties.properties.limits.timestampPeriod;
  device->max_texels = properties.properties.limits.maxTexelBufferElements;
}

static snt_result create_device(vk_device *device, snt_diag *diag) {
  const vk_api *api = &device->instance->api;
  const float priority = 1;
  vk_query_features(api, device->base.alloc, device->physical, device->flags & VK_VALIDATE_GPU, &device->features);
  const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                         .queueFamilyIndex = device->family,
                                         .queueCount = 1,
                                         .pQueuePriorities = &priority};
  const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                   .pNext = &device->features.core,
                                   .queueCreateInfoCount = 1,
                                   .pQueueCreateInfos = &queue,
                                   .enabledExtensionCount = device->features.extension_count,
                                   .ppEnabledExtensionNames = device->features.extensions};
  VkResult code = api->vkCreateDevice(device->physical, &info, NULL, &device->handle);
  if (code != VK_SUCCESS) return vk_fail(device, code, "open", "vkCreateDevice", diag);
  if (!vk_load_device_functions(device->instance, device->handle)) {
    return ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "%s lacks functions of Vulkan 1.1", device->base.name);
  }
  api->vkGetDeviceQueue(device->handle, device->family, 0, &device->queue);
  if (device->features.executables.pipelineExecutableInfo) vk_load_statistics(device);
  return SNT_OK;
}

static void vk_close(rt_device *base) {
  if (!base) return;
  vk_device *device = (vk_device *)base;
  const snt_host_alloc *alloc = base->alloc;
  if (device->handle && device->instance->api.vkDestroyDevice) {
    device->instance->api.vkDeviceWaitIdle(device->handle);
    device->instance->api.vkDestroyDevice(device->handle, NULL);
  }
  vk_instance_close(alloc, device->instance);
  rt_lock_drop(&device->queue_lock);
  rt_give(alloc, device, sizeof *device);
}

static snt_result choose(vk_device *device, const char *which, snt_diag *diag) {
  vk_found found[VK_MAX_DEVICES];
  uint32_t count = find_devices(device->instance, device->base.alloc, found);
  const vk_found *chosen = select_device(found, count, which);
  if (!chosen) return ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "no Vulkan device \"%s\" among the %u found", which, count);
  device->physical = chosen->physical;
  rt_copy_text(device->base.selector, sizeof device->base.selector, chosen->desc.selector);
  rt_copy_text(device->base.name, sizeof device->base.name, chosen->desc.name);
  rt_copy_text(device->base.driver, sizeof device->base.driver, chosen->desc.driver);
  if (!find_queue_family(device, diag)) return SNT_E_UNSUPPORTED;
  device->base.cpu = chosen->type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  query_memory(device, chosen->type);
  SNT_TRY(create_device(device, diag));
  SNT_TRY(vk_query_profile(device, chosen->desc.profile, diag));
  return vk_judge(device, SNT_OK, diag);
}

static snt_result vk_open(const snt_host_alloc *alloc, const char *selector, rt_device **out, snt_diag *diag) {
  char which[64];
  uint32_t flags = 0;
  rt_copy_text(which, sizeof which, selector);
  if (rt_take_suffix(which, "+validate-gpu")) flags = VK_VALIDATE | VK_VALIDATE_GPU;
  else if (rt_take_suffix(which, "+validate")) flags = VK_VALIDATE;
  vk_device *device = rt_take(alloc, sizeof *device);
  if (!device) return ir_fail(diag, SNT_E_HOST_MEM, "open", 0, "out of memory");
  device->base = (rt_device){.v = &rt_vulkan, .alloc = alloc, .target = SNT_TARGET_SPIRV};
  device->flags = flags;
  rt_lock_init(&device->queue_lock);
  snt_result result = vk_instance_open(alloc, flags, &device->instance, diag);
  if (result == SNT_OK) result = choose(device, which, diag);
  if (result != SNT_OK) vk_close(&device->base);
  else *out = &device->base;
  return result;
}

const rt_vtable rt_vulkan = {
    .name = "vulkan",
    .target = SNT_TARGET_SPIRV,
    .enumerate = vk_enumerate,
    .open = vk_open,
    .close = vk_close,
    .buffer_create = vk_buffer_create,
    .buffer_destroy = vk_buffer_destroy,
    .image_create = vk_image_create,
    .pipeline_create = vk_pipeline_create,
    .pipeline_binary = vk_pipeline_binary,
    .pipeline_destroy = vk_pipeline_destroy,
    .pipeline_report = vk_pipeline_report,
    .stream_create = vk_stream_create,
    .stream_destroy = vk_stream_destroy,
    .upload = vk_upload,
    .download = vk_download,
    .submit = vk_submit,
    .wait = vk_wait,
    .event_wait = vk_event_wait,
    .event_timings = vk_event_timings,
    .event_destroy = vk_event_destroy,
};
