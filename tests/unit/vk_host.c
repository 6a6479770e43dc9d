/* The application behind the door's tests; see the header. */
#include "tests/unit/vk_host.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

vk_host_look vk_host_looks = VK_HOST_LOOKS;

static VkBool32 VKAPI_PTR on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT types,
                                     const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
  vk_host *h = user;
  (void)severity, (void)types;
  if (strstr(data->pMessage, "GPU-AV is being disabled")) { /* layers 1.4 on a device without addresses: said of themselves */
    snprintf(h->unseen, sizeof h->unseen, "GPU-assisted checks: %.*s", (int)strcspn(data->pMessage, "\n"), data->pMessage);
    return VK_FALSE;
  }
  if (!h->messages++) snprintf(h->first_message, sizeof h->first_message, "%s", data->pMessage);
  return VK_FALSE;
}

/* The version of the layer; 0: there is none. */
static uint32_t layer_version(const vk_host *h, const char *name) {
  const PFN_vkEnumerateInstanceLayerProperties list = (PFN_vkEnumerateInstanceLayerProperties)h->get(NULL,
                                                                                                     "vkEnumerateInstanceLayerProperties");
  VkLayerProperties layers[32];
  uint32_t count = 32;
  if (!list || list(&count, layers) < 0) return 0;
  for (uint32_t i = 0; i < count; i++)
    if (!strcmp(layers[i].layerName, name)) return layers[i].specVersion;
  return 0;
}

/* Whether the layers shall look into shaders; says in h->unseen what they then do not see, and why. */
static bool look_into_shaders(vk_host *h, uint32_t version) {
  enum { MENDED = VK_MAKE_API_VERSION(0, 1, 4, 0) };
  if (!version || vk_host_looks == VK_HOST_LOOKS_AWAY) return false;
  if (version >= MENDED) {
    setenv("VK_LAYER_GPUAV_DESCRIPTOR_CHECKS", "0", 0);
    snprintf(h->unseen, sizeof h->unseen,
             "GPU-assisted checks of descriptors: those of these layers end in a fault of their own on lavapipe");
  } else if (vk_host_looks == VK_HOST_LOOKS_BEYOND_SETS) {
    snprintf(h->unseen, sizeof h->unseen,
             "GPU-assisted checks of pushed descriptors and addresses: the layers are %u.%u.%u and leave stores out while they watch "
             "(layers_push), "
             "1.4 see addresses",
             version >> 22 & 127, version >> 12 & 1023, version & 4095);
    return false;
  }
  return true;
}

static bool make_instance(vk_host *h) {
  static const char *const layer = "VK_LAYER_KHRONOS_validation";
  static const VkValidationFeatureEnableEXT on[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
                                                    VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT,
                                                    VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_RESERVE_BINDING_SLOT_EXT};
  const PFN_vkCreateInstance create = (PFN_vkCreateInstance)h->get(NULL, "vkCreateInstance");
  const uint32_t version = layer_version(h, layer);
  const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_1};
  VkDebugUtilsMessengerCreateInfoEXT messenger = {.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
                                                  .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
                                                  .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                                                                 VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
                                                  .pfnUserCallback = on_message,
                                                  .pUserData = h};
  const VkValidationFeaturesEXT features = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                            .pNext = &messenger,
                                            .enabledValidationFeatureCount = look_into_shaders(h, version) ? sizeof on / sizeof *on : 1,
                                            .pEnabledValidationFeatures = on};
  VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &app};
  h->validated = version != 0;
  h->instance_extensions[0] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  if (h->validated) {
    h->instance_extension_count = 1;
    info.pNext = &features;
    info.enabledLayerCount = 1, info.ppEnabledLayerNames = &layer;
    info.enabledExtensionCount = 1, info.ppEnabledExtensionNames = h->instance_extensions;
  }
  if (!create || create(&info, NULL, &h->instance) != VK_SUCCESS) return false;
  const PFN_vkCreateDebugUtilsMessengerEXT listen = (PFN_vkCreateDebugUtilsMessengerEXT)h->get(h->instance,
                                                                                               "vkCreateDebugUtilsMessengerEXT");
  if (h->validated && listen) listen(h->instance, &messenger, NULL, &h->messenger);
  return true;
}

static bool load(vk_host *h) {
  bool all = true;
#define VK_HOST_LOAD(name) all = (h->name = (PFN_##name)h->get(h->instance, #name)) != NULL && all;
  VK_HOST_FUNCTIONS(VK_HOST_LOAD)
#undef VK_HOST_LOAD
  return all;
}

static bool pick_device(vk_host *h, const char *part) {
  VkPhysicalDevice all[16];
  uint32_t count = 16;
  if (h->vkEnumeratePhysicalDevices(h->instance, &count, all) < 0) return false;
  for (uint32_t i = 0; i < count; i++) {
    h->vkGetPhysicalDeviceProperties(all[i], &h->properties);
    if (!strstr(h->properties.deviceName, part)) continue;
    h->physical = all[i];
    h->vkGetPhysicalDeviceMemoryProperties(all[i], &h->memory);
    return true;
  }
  return false;
}

/* All that the door wishes for and the device has, in the chain of the features that it is made with. */
static void add_wished(vk_host *h) {
  snt_vk_wishlist wish = {.head = SNT_HEAD(vk_wishlist)};
  h->storage16 = (VkPhysicalDevice16BitStorageFeatures){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
  h->cache_control = (VkPhysicalDevicePipelineCreationCacheControlFeatures){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES};
  h->address = (VkPhysicalDeviceBufferDeviceAddressFeatures){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES};
  h->small = (VkPhysicalDeviceShaderFloat16Int8Features){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
  h->memory_model = (VkPhysicalDeviceVulkanMemoryModelFeatures){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES};
  h->storage8 = (VkPhysicalDevice8BitStorageFeatures){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES};
  h->subgroup_size = (VkPhysicalDeviceSubgroupSizeControlFeatures){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
  h->dots = (VkPhysicalDeviceShaderIntegerDotProductFeatures){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
  h->units.type = (VkStructureType)1000506000;
  h->features = (VkPhysicalDeviceFeatures2){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &h->storage16};
  if (snt_vk_query_wishlist(h->get, h->instance, h->physical, &wish) != SNT_OK) return;
  const struct {
    const char *extension;
    void *features; /* its struct; null: it has none */
  } known[] = {{VK_EXT_PIPELINE_CREATION_CACHE_CONTROL_EXTENSION_NAME, &h->cache_control},
               {VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME, &h->address},
               {VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, &h->small},
               {VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, &h->memory_model},
               {VK_KHR_8BIT_STORAGE_EXTENSION_NAME, &h->storage8},
               {VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, &h->subgroup_size},
               {VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME, &h->dots},
               {"VK_KHR_cooperative_matrix", &h->units},
               {VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME, NULL}};
  for (uint32_t i = 0; i < wish.extension_count; i++)
    for (uint32_t k = 0; k < sizeof known / sizeof *known; k++) {
      if (strcmp(wish.extensions[i], known[k].extension) != 0) continue;
      h->device_extensions[h->created_with.enabledExtensionCount++] = wish.extensions[i];
      VkBaseOutStructure *s = known[k].features;
      if (!s) continue;
      s->pNext = h->features.pNext;
      h->features.pNext = s;
    }
  (void)snt_vk_merge_features(wish.features, &h->features, &h->enabled);
  h->enabled |= wish.features & SNT_VK_FEATURE_PUSH_DESCRIPTORS;
}

static bool make_device(vk_host *h, bool with_features) {
  static const float priority = 1;
  VkQueueFamilyProperties families[16];
  uint32_t count = 16;
  h->vkGetPhysicalDeviceQueueFamilyProperties(h->physical, &count, families);
  while (h->family < count && !(families[h->family].queueFlags & VK_QUEUE_COMPUTE_BIT)) h->family++;
  if (h->family == count) return false;
  const VkDeviceQueueCreateInfo queue = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueFamilyIndex = h->family, .queueCount = 1, .pQueuePriorities = &priority};
  h->created_with = (VkDeviceCreateInfo){.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                         .pNext = with_features ? &h->features : NULL,
                                         .queueCreateInfoCount = 1,
                                         .pQueueCreateInfos = &queue,
                                         .ppEnabledExtensionNames = h->device_extensions};
  if (with_features) add_wished(h);
  if (h->vkCreateDevice(h->physical, &h->created_with, NULL, &h->device) != VK_SUCCESS) return false;
  h->created_with.pQueueCreateInfos = NULL, h->created_with.queueCreateInfoCount = 0; /* the local ones end here */
  h->vkGetDeviceQueue(h->device, h->family, 0, &h->queue);
  const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                        .queueFamilyIndex = h->family};
  if (h->vkCreateCommandPool(h->device, &pool, NULL, &h->pool) != VK_SUCCESS) return false;
  const VkCommandBufferAllocateInfo one = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = h->pool, .commandBufferCount = 1};
  return h->vkAllocateCommandBuffers(h->device, &one, &h->commands) == VK_SUCCESS;
}

bool vk_host_open(vk_host *h, const char *part, bool with_features, char *why, size_t why_size) {
  memset(h, 0, sizeof *h);
  h->library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!h->library) return snprintf(why, why_size, "no Vulkan loader"), false;
  *(void **)(void *)&h->get = dlsym(h->library, "vkGetInstanceProcAddr");
  if (!h->get || !make_instance(h) || !load(h)) return snprintf(why, why_size, "no Vulkan 1.1 instance"), false;
  if (!pick_device(h, part)) {
    vk_host_close(h);
    return snprintf(why, why_size, "no Vulkan device \"%s\"", part), false;
  }
  if (make_device(h, with_features)) return true;
  vk_host_close(h);
  return snprintf(why, why_size, "no device could be made on \"%s\"", part), false;
}

void vk_host_close(vk_host *h) {
  if (h->device) {
    h->vkDeviceWaitIdle(h->device);
    if (h->pool) h->vkDestroyCommandPool(h->device, h->pool, NULL);
    h->vkDestroyDevice(h->device, NULL);
  }
  const PFN_vkDestroyDebugUtilsMessengerEXT stop = h->instance ? (PFN_vkDestroyDebugUtilsMessengerEXT)h->get(
                                                                     h->instance, "vkDestroyDebugUtilsMessengerEXT")
                                                               : NULL;
  if (h->messenger && stop) stop(h->instance, h->messenger, NULL);
  if (h->instance) h->vkDestroyInstance(h->instance, NULL);
  h->instance = VK_NULL_HANDLE, h->device = VK_NULL_HANDLE;
}

snt_result vk_host_attach(vk_host *h, snt_context *c, uint32_t flags, snt_device **out, snt_diag *diag) {
  const snt_vk_attach_info info = {.head = SNT_HEAD(vk_attach_info),
                                   .instance = h->instance,
                                   .physical_device = h->physical,
                                   .device = h->device,
                                   .get_instance_proc = h->get,
                                   .api_version = VK_API_VERSION_1_1,
                                   .created_with = &h->created_with,
                                   .instance_extension_count = h->instance_extension_count,
                                   .instance_extensions = h->instance_extensions,
                                   .pipeline_cache = h->cache,
                                   .debug_name = "test",
                                   .flags = flags};
  return snt_vk_attach(c, &info, out, diag);
}

/* ---- memory ---- */

static bool allocate(vk_host *h, const VkMemoryRequirements *needs, bool for_host, VkDeviceMemory *out) {
  const VkMemoryPropertyFlags wanted = for_host ? VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
                                                : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  const VkMemoryAllocateFlagsInfo addressed = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                               .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  for (uint32_t i = 0; i < h->memory.memoryTypeCount; i++) {
    if (!(needs->memoryTypeBits >> i & 1) || (h->memory.memoryTypes[i].propertyFlags & wanted) != wanted) continue;
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .pNext = h->enabled & SNT_VK_FEATURE_BUFFER_ADDRESS ? &addressed : NULL,
                                       .allocationSize = needs->size,
                                       .memoryTypeIndex = i};
    return h->vkAllocateMemory(h->device, &info, NULL, out) == VK_SUCCESS;
  }
  return false;
}

bool vk_host_buffer_create(vk_host *h, VkDeviceSize bytes, VkBufferUsageFlags usage, vk_host_buffer *out) {
  const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes, .usage = usage};
  VkMemoryRequirements needs;
  *out = (vk_host_buffer){.bytes = bytes};
  if (h->vkCreateBuffer(h->device, &info, NULL, &out->buffer) != VK_SUCCESS) return false;
  h->vkGetBufferMemoryRequirements(h->device, out->buffer, &needs);
  return allocate(h, &needs, true, &out->memory) && h->vkBindBufferMemory(h->device, out->buffer, out->memory, 0) == VK_SUCCESS &&
         h->vkMapMemory(h->device, out->memory, 0, VK_WHOLE_SIZE, 0, &out->mapped) == VK_SUCCESS;
}

void vk_host_buffer_destroy(vk_host *h, vk_host_buffer *b) {
  h->vkDestroyBuffer(h->device, b->buffer, NULL);
  h->vkFreeMemory(h->device, b->memory, NULL);
  *b = (vk_host_buffer){0};
}

bool vk_host_image_create(vk_host *h, VkFormat format, uint32_t width, uint32_t height, VkImageUsageFlags usage, vk_host_image *out) {
  const VkImageCreateInfo info = {.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                  .imageType = VK_IMAGE_TYPE_2D,
                                  .format = format,
                                  .extent = {width, height, 1},
                                  .mipLevels = 1,
                                  .arrayLayers = 1,
                                  .samples = VK_SAMPLE_COUNT_1_BIT,
                                  .tiling = VK_IMAGE_TILING_OPTIMAL,
                                  .usage = usage | VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT};
  VkMemoryRequirements needs;
  *out = (vk_host_image){.format = format, .width = width, .height = height};
  if (h->vkCreateImage(h->device, &info, NULL, &out->image) != VK_SUCCESS) return false;
  h->vkGetImageMemoryRequirements(h->device, out->image, &needs);
  if (!allocate(h, &needs, false, &out->memory) || h->vkBindImageMemory(h->device, out->image, out->memory, 0) != VK_SUCCESS) return false;
  const VkImageViewCreateInfo view = {.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
                                      .image = out->image,
                                      .viewType = VK_IMAGE_VIEW_TYPE_2D,
                                      .format = format,
                                      .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
  return h->vkCreateImageView(h->device, &view, NULL, &out->view) == VK_SUCCESS;
}

void vk_host_image_destroy(vk_host *h, vk_host_image *i) {
  h->vkDestroyImageView(h->device, i->view, NULL);
  h->vkDestroyImage(h->device, i->image, NULL);
  h->vkFreeMemory(h->device, i->memory, NULL);
  *i = (vk_host_image){0};
}

/* ---- commands ---- */

bool vk_host_begin(vk_host *h) {
  const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  return h->vkResetCommandBuffer(h->commands, 0) == VK_SUCCESS && h->vkBeginCommandBuffer(h->commands, &info) == VK_SUCCESS;
}

bool vk_host_submit_wait(vk_host *h) {
  const VkMemoryBarrier barrier = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT, .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
  h->vkCmdPipelineBarrier(h->commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
  const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &h->commands};
  return h->vkEndCommandBuffer(h->commands) == VK_SUCCESS && h->vkQueueSubmit(h->queue, 1, &submit, VK_NULL_HANDLE) == VK_SUCCESS &&
         h->vkDeviceWaitIdle(h->device) == VK_SUCCESS;
}

void vk_host_transition(vk_host *h, const vk_host_image *i, VkImageLayout from, VkImageLayout to) {
  const VkImageMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
                                        .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                                        .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
                                        .oldLayout = from,
                                        .newLayout = to,
                                        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                        .image = i->image,
                                        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
  h->vkCmdPipelineBarrier(h->commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, NULL, 0, NULL, 1,
                          &barrier);
}

void vk_host_copy_image(vk_host *h, const vk_host_image *i, VkImageLayout layout, const vk_host_buffer *b, bool to_image) {
  const VkBufferImageCopy region = {.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1}, .imageExtent = {i->width, i->height, 1}};
  if (to_image) h->vkCmdCopyBufferToImage(h->commands, b->buffer, i->image, layout, 1, &region);
  else h->vkCmdCopyImageToBuffer(h->commands, i->image, layout, b->buffer, 1, &region);
}
