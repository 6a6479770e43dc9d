/* The renderer's Vulkan: one device, one queue with graphics and compute, and an allocator that gives out parts of large blocks. */
#include "examples/frame/frame.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool gpu_check(VkResult code, const char *what) {
  if (code != VK_SUCCESS) fprintf(stderr, "frame: %s: error %d\n", what, (int)code);
  return code == VK_SUCCESS;
}

static VkBool32 VKAPI_PTR on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT types,
                                     const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
  (void)severity, (void)types;
  ((gpu *)user)->messages++;
  fprintf(stderr, "frame: validation: %s\n", data->pMessage);
  return VK_FALSE;
}

static bool make_instance(gpu *g, const gpu_wish *wish) {
  static const char *const layer = "VK_LAYER_KHRONOS_validation";
  const int validate = wish->validate;
  const char *extensions[8] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
  uint32_t extension_count = validate != GPU_PLAIN;
  for (uint32_t i = 0; i < wish->extension_count && extension_count < 8; i++) extensions[extension_count++] = wish->extensions[i];
  static const VkValidationFeatureEnableEXT on[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
                                                    VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT,
                                                    VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_RESERVE_BINDING_SLOT_EXT};
  const VkDebugUtilsMessengerCreateInfoEXT listener = {.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
                                                       .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
                                                       .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
                                                       .pfnUserCallback = on_message,
                                                       .pUserData = g};
  const VkValidationFeaturesEXT features = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                            .pNext = &listener,
                                            .enabledValidationFeatureCount = validate == GPU_VALIDATE_SHADERS ? sizeof on / sizeof *on : 1,
                                            .pEnabledValidationFeatures = on};
  const VkApplicationInfo app = {
      .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pApplicationName = "frame", .apiVersion = VK_API_VERSION_1_1};
  const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                     .pNext = validate ? &features : NULL,
                                     .pApplicationInfo = &app,
                                     .enabledLayerCount = validate != GPU_PLAIN,
                                     .ppEnabledLayerNames = &layer,
                                     .enabledExtensionCount = extension_count,
                                     .ppEnabledExtensionNames = extensions};
  const PFN_vkCreateInstance create = (PFN_vkCreateInstance)g->get(NULL, "vkCreateInstance");
  const VkResult made = create ? create(&info, NULL, &g->instance) : VK_ERROR_INITIALIZATION_FAILED;
  if (made == VK_ERROR_LAYER_NOT_PRESENT) fprintf(stderr, "frame: %s is not installed\n", layer);
  else gpu_check(made, "vkCreateInstance");
  if (made != VK_SUCCESS) return false;
  const PFN_vkCreateDebugUtilsMessengerEXT listen = (PFN_vkCreateDebugUtilsMessengerEXT)g->get(g->instance,
                                                                                               "vkCreateDebugUtilsMessengerEXT");
  if (validate && listen) listen(g->instance, &listener, NULL, &g->messenger);
  bool all = true;
#define GPU_LOAD(name) all = (g->name = (PFN_##name)g->get(g->instance, #name)) != NULL && all;
  GPU_FUNCTIONS(GPU_LOAD)
#undef GPU_LOAD
  return all;
}

/* Is `part` in the name, in whatever case? */
static bool has_part(const char *name, const char *part) {
  for (; *name; name++)
    if (!strncasecmp(name, part, strlen(part))) return true;
  return false;
}

static bool pick_device(gpu *g, const char *part) {
  VkPhysicalDevice all[16];
  uint32_t count = 16;
  if (g->vkEnumeratePhysicalDevices(g->instance, &count, all) < 0) return false;
  for (uint32_t i = 0; i < count; i++) {
    g->vkGetPhysicalDeviceProperties(all[i], &g->properties);
    if (part && !has_part(g->properties.deviceName, part)) continue;
    g->physical = all[i];
    g->vkGetPhysicalDeviceMemoryProperties(all[i], &g->memory);
    return true;
  }
  fprintf(stderr, "frame: no Vulkan device \"%s\"\n", part ? part : "");
  return false;
}

/* The device is made as the renderer wants it, and what Sinter could use beside that is added: all of it optional. */
static bool make_device(gpu *g, bool presents) {
  static const char *const swapchain = VK_KHR_SWAPCHAIN_EXTENSION_NAME;
  static const float priority = 1;
  VkQueueFamilyProperties families[16];
  uint32_t count = 16;
  g->vkGetPhysicalDeviceQueueFamilyProperties(g->physical, &count, families);
  const VkQueueFlags both = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
  while (g->family < count && (families[g->family].queueFlags & both) != both) g->family++;
  if (g->family == count) return gpu_check(VK_ERROR_FEATURE_NOT_PRESENT, "a queue with graphics and compute");
  const VkDeviceQueueCreateInfo queue = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueFamilyIndex = g->family, .queueCount = 1, .pQueuePriorities = &priority};
  snt_vk_wishlist wish = {.head = SNT_HEAD(vk_wishlist)};
  g->features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  if (snt_vk_query_wishlist(g->get, g->instance, g->physical, &wish) == SNT_OK) snt_vk_merge_features(wish.features, &g->features, NULL);
  g->created_with = (VkDeviceCreateInfo){.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                         .pNext = &g->features,
                                         .enabledExtensionCount = presents,
                                         .ppEnabledExtensionNames = &swapchain};
  VkDeviceCreateInfo info = g->created_with;
  info.queueCreateInfoCount = 1, info.pQueueCreateInfos = &queue;
  if (!gpu_check(g->vkCreateDevice(g->physical, &info, NULL, &g->device), "vkCreateDevice")) return false;
  g->vkGetDeviceQueue(g->device, g->family, 0, &g->queue);
  return true;
}

bool gpu_open(gpu *g, const gpu_wish *wish) {
  memset(g, 0, sizeof *g);
  void *loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (loader) *(void **)(void *)&g->get = dlsym(loader, "vkGetInstanceProcAddr");
  if (!g->get) return gpu_check(VK_ERROR_INITIALIZATION_FAILED, "libvulkan.so.1");
  return make_instance(g, wish) && pick_device(g, wish->device) && make_device(g, wish->extension_count != 0);
}

void gpu_close(gpu *g) {
  for (uint32_t i = 0; i < g->block_count; i++) g->vkFreeMemory(g->device, g->blocks[i].memory, NULL);
  if (g->device) g->vkDestroyDevice(g->device, NULL);
  const PFN_vkDestroyDebugUtilsMessengerEXT stop = g->instance ? (PFN_vkDestroyDebugUtilsMessengerEXT)g->get(
                                                                     g->instance, "vkDestroyDebugUtilsMessengerEXT")
                                                               : NULL;
  if (g->messenger && stop) stop(g->instance, g->messenger, NULL);
  if (g->instance && g->vkDestroyInstance) g->vkDestroyInstance(g->instance, NULL);
}

/* ---- memory ---- */

static bool pick_type(const gpu *g, uint32_t allowed, VkMemoryPropertyFlags wanted, uint32_t *out) {
  for (*out = 0; *out < g->memory.memoryTypeCount; ++*out)
    if ((allowed >> *out & 1) && (g->memory.memoryTypes[*out].propertyFlags & wanted) == wanted) return true;
  return false;
}

static gpu_block *add_block(gpu *g, uint32_t type, VkDeviceSize least) {
  const VkDeviceSize usual = 16 << 20;
  const VkMemoryAllocateInfo info = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = least > usual ? least : usual, .memoryTypeIndex = type};
  if (g->block_count == MAX_BLOCKS) return NULL;
  gpu_block *b = &g->blocks[g->block_count];
  *b = (gpu_block){.type = type, .bytes = info.allocationSize};
  if (!gpu_check(g->vkAllocateMemory(g->device, &info, NULL, &b->memory), "vkAllocateMemory")) return NULL;
  g->block_count++;
  void *mapped = NULL;
  const bool visible = g->memory.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
  if (visible && g->vkMapMemory(g->device, b->memory, 0, VK_WHOLE_SIZE, 0, &mapped) == VK_SUCCESS) b->mapped = mapped;
  return b;
}

/* Parts stand 64 KiB apart at least, so that buffers and images never share a page (bufferImageGranularity). */
static gpu_block *take(gpu *g, const VkMemoryRequirements *needs, VkMemoryPropertyFlags wanted, VkDeviceSize *offset) {
  const VkDeviceSize align = needs->alignment > 65536 ? needs->alignment : 65536;
  uint32_t type;
  if (!pick_type(g, needs->memoryTypeBits, wanted, &type)) return NULL;
  gpu_block *b = NULL;
  for (uint32_t i = 0; i < g->block_count && !b; i++)
    if (g->blocks[i].type == type && (g->blocks[i].used + align - 1) / align * align + needs->size <= g->blocks[i].bytes) b = &g->blocks[i];
  if (!b) b = add_block(g, type, needs->size);
  if (!b) return NULL;
  *offset = (b->used + align - 1) / align * align;
  b->used = *offset + needs->size;
  return b;
}

bool gpu_buffer_create(gpu *g, VkDeviceSize bytes, VkBufferUsageFlags usage, VkMemoryPropertyFlags required, gpu_buffer *out) {
  const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes, .usage = usage};
  VkMemoryRequirements needs;
  VkDeviceSize offset;
  *out = (gpu_buffer){.bytes = bytes};
  if (!gpu_check(g->vkCreateBuffer(g->device, &info, NULL, &out->buffer), "vkCreateBuffer")) return false;
  g->vkGetBufferMemoryRequirements(g->device, out->buffer, &needs);
  gpu_block *b = take(g, &needs, required, &offset);
  if (!b || !gpu_check(g->vkBindBufferMemory(g->device, out->buffer, b->memory, offset), "vkBindBufferMemory")) return false;
  out->mapped = b->mapped ? b->mapped + offset : NULL;
  return true;
}

bool gpu_image_create(gpu *g, VkFormat format, uint32_t width, uint32_t height, VkImageUsageFlags usage, gpu_image *out) {
  const VkImageCreateInfo info = {.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                  .imageType = VK_IMAGE_TYPE_2D,
                                  .format = format,
                                  .extent = {width, height, 1},
                                  .mipLevels = 1,
                                  .arrayLayers = 1,
                                  .samples = VK_SAMPLE_COUNT_1_BIT,
                                  .tiling = VK_IMAGE_TILING_OPTIMAL,
                                  .usage = usage};
  VkMemoryRequirements needs;
  VkDeviceSize offset;
  if (!gpu_check(g->vkCreateImage(g->device, &info, NULL, &out->image), "vkCreateImage")) return false;
  g->vkGetImageMemoryRequirements(g->device, out->image, &needs);
  gpu_block *b = take(g, &needs, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, &offset);
  if (!b || !gpu_check(g->vkBindImageMemory(g->device, out->image, b->memory, offset), "vkBindImageMemory")) return false;
  const VkImageViewCreateInfo view = {.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
                                      .image = out->image,
                                      .viewType = VK_IMAGE_VIEW_TYPE_2D,
                                      .format = format,
                                      .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
  return gpu_check(g->vkCreateImageView(g->device, &view, NULL, &out->view), "vkCreateImageView");
}
