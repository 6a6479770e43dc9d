/* The Vulkan loader by dlopen, an instance of our own, the three tables of entry points, and the validation layers when asked for. */
#include "runtime/rt_vulkan.h"

static const char global_names[] = VK_GLOBAL_FUNCTIONS(RT_NAME), instance_names[] = VK_INSTANCE_FUNCTIONS(RT_NAME),
                  device_names[] = VK_DEVICE_FUNCTIONS(RT_NAME);

/* By a device's own lookup where there is a device. */
static bool load(const vk_instance *instance, VkInstance handle, VkDevice device, const char *names, void *table) {
  bool all = true;
  for (char *at = table; *names; names = rt_next_name(names), at += sizeof(PFN_vkVoidFunction)) {
    PFN_vkVoidFunction function = device ? instance->api.vkGetDeviceProcAddr(device, names) : instance->get(handle, names);
    memcpy(at, &function, sizeof function);
    all = all && function;
  }
  return all;
}

bool vk_load_device_functions(vk_instance *instance, VkDevice device) {
  return load(instance, NULL, device, device_names, &instance->api.vkDestroyDevice);
}

static const char *const loader_names[] = {RT_VULKAN_NAMES, NULL};

static PFN_vkGetInstanceProcAddr open_loader(vk_instance *instance) {
  PFN_vkGetInstanceProcAddr get = NULL;
  instance->library = rt_library_open(loader_names);
  if (instance->library) (void)rt_library_symbols(instance->library, RT_NAME(vkGetInstanceProcAddr), &get);
  return get;
}

/* ---- validation ---- */

static VKAPI_ATTR VkBool32 VKAPI_CALL take_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT types,
                                                   const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
  vk_messages *messages = user;
  (void)types;
  if (!(severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT)) return VK_FALSE;
  rt_lock_take(&messages->lock);
  if (messages->count++ == 0) rt_copy_text(messages->first, sizeof messages->first, data->pMessage);
  rt_lock_give(&messages->lock);
  return VK_FALSE;
}

snt_result vk_judge(vk_device *device, snt_result result, snt_diag *diag) {
  vk_messages *messages = &device->instance->messages;
  if (!(device->flags & VK_VALIDATE)) return result;
  rt_lock_take(&messages->lock);
  uint32_t count = messages->count;
  messages->count = 0;
  rt_lock_give(&messages->lock);
  if (count == 0) return result;
  return ir_fail(diag, SNT_E_BACKEND, "validation", 0, "%u messages: %s", count, messages->first);
}

static VkDebugUtilsMessengerCreateInfoEXT messenger_info(vk_instance *instance) {
  const VkDebugUtilsMessengerCreateInfoEXT info = {
      .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
      .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
      .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
      .pfnUserCallback = take_message,
      .pUserData = &instance->messages,
  };
  return info;
}

static snt_result add_messenger(vk_instance *instance, PFN_vkGetInstanceProcAddr get, snt_diag *diag) {
  PFN_vkCreateDebugUtilsMessengerEXT create = (PFN_vkCreateDebugUtilsMessengerEXT)get(instance->handle, "vkCreateDebugUtilsMessengerEXT");
  const VkDebugUtilsMessengerCreateInfoEXT info = messenger_info(instance);
  instance->destroy_messenger = (PFN_vkDestroyDebugUtilsMessengerEXT)get(instance->handle, "vkDestroyDebugUtilsMessengerEXT");
  if (!create || !instance->destroy_messenger || create(instance->handle, &info, NULL, &instance->messenger) != VK_SUCCESS) {
    return ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "the validation messages cannot be heard");
  }
  return SNT_OK;
}

/* ---- the instance ---- */

static bool has_validation_layer(const vk_api *api, const snt_host_alloc *alloc) {
  uint32_t count = 0;
  bool found = false;
  api->vkEnumerateInstanceLayerProperties(&count, NULL);
  VkLayerProperties *layers = rt_take(alloc, (count + 1) * sizeof *layers);
  uint32_t room = count;
  if (layers && api->vkEnumerateInstanceLayerProperties(&count, layers) == VK_SUCCESS) {
    for (uint32_t i = 0; i < count; i++) found = found || strcmp(layers[i].layerName, "VK_LAYER_KHRONOS_validation") == 0;
  }
  rt_give(alloc, layers, (room + 1) * sizeof *layers);
  return found;
}

static VkResult create_instance(vk_instance *instance, uint32_t flags) {
  static const char *const layers[] = {"VK_LAYER_KHRONOS_validation"}, *const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
  static const VkValidationFeatureEnableEXT enables[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
                                                         VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT,
                                                         VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_RESERVE_BINDING_SLOT_EXT};
  const VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(instance);
  const VkValidationFeaturesEXT features = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                            .pNext = &messenger,
                                            .enabledValidationFeatureCount = flags & VK_VALIDATE_GPU ? 2 : 1,
                                            .pEnabledValidationFeatures = flags & VK_VALIDATE_GPU ? enables + 1 : enables};
  const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                         .pEngineName = "sinter",
                                         .apiVersion = instance->version >= VK_API_VERSION_1_3 ? VK_API_VERSION_1_3 : VK_API_VERSION_1_1};
  const uint32_t validate = flags & VK_VALIDATE ? 1 : 0;
  const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                     .pNext = validate ? &features : NULL,
                                     .pApplicationInfo = &application,
                                     .enabledLayerCount = validate,
                                     .ppEnabledLayerNames = layers,
                                     .enabledExtensionCount = validate,
                                     .ppEnabledExtensionNames = extensions};
  return instance->api.vkCreateInstance(&info, NULL, &instance->handle);
}

static snt_result start_instance(vk_instance *instance, const snt_host_alloc *alloc, uint32_t flags, snt_diag *diag) {
  PFN_vkGetInstanceProcAddr get = open_loader(instance);
  instance->get = get;
  if (!get) return ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "%s was not found: no Vulkan loader is installed", loader_names[0]);
  if (!load(instance, NULL, NULL, global_names, &instance->api)) {
    return ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "the Vulkan loader is older than 1.1");
  }
  if ((flags & VK_VALIDATE) && !has_validation_layer(&instance->api, alloc)) {
    return ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "VK_LAYER_KHRONOS_validation is not installed");
  }
  instance->api.vkEnumerateInstanceVersion(&instance->version);
  VkResult code = create_instance(instance, flags);
  if (code != VK_SUCCESS) {
    snt_result result = code == VK_ERROR_OUT_OF_HOST_MEMORY ? SNT_E_HOST_MEM : SNT_E_UNSUPPORTED; /* no driver is installed, say */
    return rt_fail_native(diag, result, code, "open", "vkCreateInstance");
  }
  if (!load(instance, instance->handle, NULL, instance_names, &instance->api.vkDestroyInstance)) {
    return ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "the Vulkan instance lacks functions of 1.1");
  }
  return flags & VK_VALIDATE ? add_messenger(instance, get, diag) : SNT_OK;
}

void vk_instance_close(const snt_host_alloc *alloc, vk_instance *instance) {
  if (!instance) return;
  if (instance->messenger) instance->destroy_messenger(instance->handle, instance->messenger, NULL);
  if (instance->handle && instance->api.vkDestroyInstance) instance->api.vkDestroyInstance(instance->handle, NULL);
  rt_library_close(instance->library);
  rt_lock_drop(&instance->messages.lock);
  rt_give(alloc, instance, sizeof *instance);
}

snt_result vk_instance_open(const snt_host_alloc *alloc, uint32_t flags, vk_instance **out, snt_diag *diag) {
  vk_instance *instance = rt_take(alloc, sizeof *instance);
  if (!instance) return ir_fail(diag, SNT_E_HOST_MEM, "open", 0, "out of memory");
  rt_lock_init(&instance->messages.lock);
  snt_result result = start_instance(instance, alloc, flags, diag);
  if (result != SNT_OK) vk_instance_close(alloc, instance);
  else *out = instance;
  return result;
}

bool vk_has_extension(const vk_api *api, const snt_host_alloc *alloc, VkPhysicalDevice physical, const char *name) {
  uint32_t count = 0;
  bool found = false;
  if (api->vkEnumerateDeviceExtensionProperties(physical, NULL, &count, NULL) != VK_SUCCESS || count == 0) return false;
  uint32_t room = count;
  VkExtensionProperties *extensions = rt_take(alloc, room * sizeof *extensions);
  if (extensions && api->vkEnumerateDeviceExtensionProperties(physical, NULL, &count, extensions) == VK_SUCCESS) {
    for (uint32_t i = 0; i < count; i++) found = found || strcmp(extensions[i].extensionName, name) == 0;
  }
  rt_give(alloc, extensions, room * sizeof *extensions);
  return found;
}

snt_result vk_fail(vk_device *device, VkResult code, const char *stage, const char *what, snt_diag *diag) {
  switch (code) {
  case VK_ERROR_DEVICE_LOST: device->base.lost = true; return rt_fail_native(diag, SNT_E_DEVICE_LOST, code, stage, what);
  case VK_ERROR_OUT_OF_HOST_MEMORY: return rt_fail_native(diag, SNT_E_HOST_MEM, code, stage, what);
  case VK_ERROR_OUT_OF_DEVICE_MEMORY:
  case VK_ERROR_TOO_MANY_OBJECTS:
  case VK_ERROR_OUT_OF_POOL_MEMORY: return rt_fail_native(diag, SNT_E_DEVICE_MEM, code, stage, what);
  default: return rt_fail_native(diag, SNT_E_BACKEND, code, stage, what);
  }
}
