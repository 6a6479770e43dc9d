/* A Vulkan application for the tests of the door: its own instance, device, queue and memory, with the validation layers where they are. */
#ifndef TESTS_VK_HOST_H
#define TESTS_VK_HOST_H
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <sinter/vulkan.h>
#include <stdbool.h>

// clang-format off
#define VK_HOST_FUNCTIONS(F)                                                                                              \
  F(vkDestroyInstance) F(vkEnumeratePhysicalDevices) F(vkGetPhysicalDeviceProperties) F(vkGetPhysicalDeviceFeatures2)     \
  F(vkGetPhysicalDeviceMemoryProperties) F(vkGetPhysicalDeviceQueueFamilyProperties) F(vkCreateDevice) F(vkGetDeviceQueue) \
  F(vkDestroyDevice) F(vkDeviceWaitIdle) F(vkQueueSubmit) F(vkCreateBuffer) F(vkDestroyBuffer)                            \
  F(vkGetBufferMemoryRequirements) F(vkAllocateMemory) F(vkFreeMemory) F(vkBindBufferMemory) F(vkMapMemory)               \
  F(vkCreateImage) F(vkDestroyImage) F(vkGetImageMemoryRequirements) F(vkBindImageMemory) F(vkCreateImageView)            \
  F(vkDestroyImageView) F(vkCreateCommandPool) F(vkDestroyCommandPool) F(vkAllocateCommandBuffers)                        \
  F(vkBeginCommandBuffer) F(vkEndCommandBuffer) F(vkResetCommandBuffer) F(vkCmdPipelineBarrier)                           \
  F(vkCmdCopyBuffer) F(vkCmdCopyBufferToImage) F(vkCmdCopyImageToBuffer) F(vkCreateQueryPool) F(vkDestroyQueryPool)                          \
  F(vkCmdResetQueryPool) F(vkGetQueryPoolResults) F(vkCreateBufferView) F(vkDestroyBufferView) F(vkCreatePipelineCache) F(vkDestroyPipelineCache)                      \
  F(vkGetPipelineCacheData)
// clang-format on

typedef struct vk_host {
  void *library;
  PFN_vkGetInstanceProcAddr get;
#define VK_HOST_MEMBER(name) PFN_##name name;
  VK_HOST_FUNCTIONS(VK_HOST_MEMBER)
#undef VK_HOST_MEMBER
  VkInstance instance;
  VkDebugUtilsMessengerEXT messenger;
  VkPhysicalDevice physical;
  VkPhysicalDeviceProperties properties;
  VkPhysicalDeviceMemoryProperties memory;
  VkDevice device;
  VkQueue queue;
  VkCommandPool pool;
  VkCommandBuffer commands;
  uint32_t family;
  bool validated; /* the layers are on */
  uint32_t messages;
  char first_message[400];
  char unseen[200]; /* what the layers are not asked to look at, for tests to say */
  /* as given to vkCreateDevice, for snt_vk_attach */
  VkPhysicalDeviceFeatures2 features;
  VkPhysicalDevice16BitStorageFeatures storage16;
  VkPhysicalDevicePipelineCreationCacheControlFeatures cache_control;
  VkPhysicalDeviceBufferDeviceAddressFeatures address;
  VkPhysicalDeviceShaderFloat16Int8Features small;
  VkPhysicalDeviceVulkanMemoryModelFeatures memory_model;
  VkPhysicalDevice8BitStorageFeatures storage8;
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dots;
  struct {
    VkStructureType type;
    void *next;
    VkBool32 cooperative_matrix, robust_buffer_access;
  } units;               /* VK_KHR_cooperative_matrix, which headers before 1.3.255 lack */
  uint64_t enabled;      /* SNT_VK_FEATURE_* */
  VkPipelineCache cache; /* for snt_vk_attach; null at first */
  VkDeviceCreateInfo created_with;
  const char *device_extensions[16], *instance_extensions[2];
  uint32_t instance_extension_count;
} vk_host;
typedef struct vk_host_buffer {
  VkBuffer buffer;
  VkDeviceMemory memory;
  VkDeviceSize bytes;
  void *mapped; /* all of them are host-visible and coherent */
} vk_host_buffer;
typedef struct vk_host_image {
  VkImage image;
  VkDeviceMemory memory;
  VkImageView view;
  VkFormat format;
  uint32_t width, height;
} vk_host_image;

/* Once in each program that has a vk_host: what the loader unloads drivers and layers with is nobody's, so no leak of theirs is reported. door_calls counts the
   library's own memory. Not in vk_host.c, which is part of every test. */
#if defined(__SANITIZE_ADDRESS__)
#define VK_HOST_LEAKS                                                              \
  __attribute__((visibility("default"))) const char *__lsan_default_options(void); \
  const char *__lsan_default_options(void) { return "detect_leaks=0"; }
#else
#define VK_HOST_LEAKS
#endif

/* Whether the layers look into shaders too (GPU-assisted checks). Layers 1.3.239 leave stores through pushed descriptors out on lavapipe
   while they watch (by hand: `layers_push`) and take the first byte of a live buffer for out of bounds: they look at sets alone. Layers
   1.4.363 check ranges of addresses and find nothing on any path; their check of descriptors ends in a fault of its own there and is off
   (bench/results/conform.md). */
typedef enum { VK_HOST_LOOKS, VK_HOST_LOOKS_BEYOND_SETS, VK_HOST_LOOKS_AWAY } vk_host_look;
extern vk_host_look vk_host_looks;
/* The device whose name has `part` in it. False: there is none; `why` says so. */
bool vk_host_open(vk_host *, const char *part, bool with_features, char *why, size_t why_size);
void vk_host_close(vk_host *);
snt_result vk_host_attach(vk_host *, snt_context *, uint32_t flags, snt_device **out, snt_diag *);
bool vk_host_buffer_create(vk_host *, VkDeviceSize bytes, VkBufferUsageFlags, vk_host_buffer *out);
void vk_host_buffer_destroy(vk_host *, vk_host_buffer *);
bool vk_host_image_create(vk_host *, VkFormat, uint32_t width, uint32_t height, VkImageUsageFlags, vk_host_image *out);
void vk_host_image_destroy(vk_host *, vk_host_image *);
bool vk_host_begin(vk_host *);       /* the one command buffer */
bool vk_host_submit_wait(vk_host *); /* and waits until it is over */
void vk_host_transition(vk_host *, const vk_host_image *, VkImageLayout from, VkImageLayout to);
void vk_host_copy_image(vk_host *, const vk_host_image *, VkImageLayout, const vk_host_buffer *, bool to_image);
#endif
