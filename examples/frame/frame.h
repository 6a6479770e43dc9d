/* A small renderer with a fused post-process in its frame: the parts of the example. Everything Vulkan is the renderer's own: instance, device,
   queue, allocator, three frames in flight. Sinter records into its command buffers and owns nothing of it. */
#ifndef EXAMPLES_FRAME_FRAME_H
#define EXAMPLES_FRAME_FRAME_H
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <sinter/vulkan.h>
#include <stdbool.h>

enum { FRAMES_IN_FLIGHT = 3, MAX_WIDTH = 640, MAX_HEIGHT = 360, MAX_BLOCKS = 32, MAX_RANGES = 16 };

// clang-format off
#define GPU_FUNCTIONS(F)                                                                                                   \
  F(vkDestroyInstance) F(vkEnumeratePhysicalDevices) F(vkGetPhysicalDeviceProperties) F(vkGetPhysicalDeviceMemoryProperties) \
  F(vkGetPhysicalDeviceQueueFamilyProperties) F(vkCreateDevice) F(vkDestroyDevice) F(vkGetDeviceQueue) F(vkDeviceWaitIdle) \
  F(vkQueueSubmit) F(vkAllocateMemory) F(vkFreeMemory) F(vkMapMemory) F(vkCreateBuffer) F(vkDestroyBuffer)                 \
  F(vkGetBufferMemoryRequirements) F(vkBindBufferMemory) F(vkCreateImage) F(vkDestroyImage)                                \
  F(vkGetImageMemoryRequirements) F(vkBindImageMemory) F(vkCreateImageView) F(vkDestroyImageView) F(vkCreateRenderPass)    \
  F(vkDestroyRenderPass) F(vkCreateFramebuffer) F(vkDestroyFramebuffer) F(vkCreateShaderModule) F(vkDestroyShaderModule)   \
  F(vkCreatePipelineLayout) F(vkDestroyPipelineLayout) F(vkCreateGraphicsPipelines) F(vkDestroyPipeline)                   \
  F(vkCreateCommandPool) F(vkDestroyCommandPool) F(vkAllocateCommandBuffers) F(vkResetCommandBuffer)                       \
  F(vkBeginCommandBuffer) F(vkEndCommandBuffer) F(vkCreateFence) F(vkDestroyFence) F(vkWaitForFences) F(vkResetFences)     \
  F(vkCmdBeginRenderPass) F(vkCmdEndRenderPass) F(vkCmdBindPipeline) F(vkCmdSetViewport) F(vkCmdSetScissor)                \
  F(vkCmdPushConstants) F(vkCmdDraw) F(vkCmdPipelineBarrier) F(vkCmdCopyImageToBuffer)
// clang-format on

/* One allocation of a memory type, given out from its start; the renderer frees everything together at its end. */
typedef struct gpu_block {
  VkDeviceMemory memory;
  uint32_t type;
  VkDeviceSize bytes, used;
  char *mapped; /* null: not visible to the host */
} gpu_block;

typedef struct gpu {
  PFN_vkGetInstanceProcAddr get;
#define GPU_MEMBER(name) PFN_##name name;
  GPU_FUNCTIONS(GPU_MEMBER)
#undef GPU_MEMBER
  VkInstance instance;
  VkDebugUtilsMessengerEXT messenger;
  VkPhysicalDevice physical;
  VkPhysicalDeviceProperties properties;
  VkPhysicalDeviceMemoryProperties memory;
  VkPhysicalDeviceFeatures2 features;
  VkDeviceCreateInfo created_with; /* what snt_vk_attach is told */
  VkDevice device;
  VkQueue queue;
  uint32_t family;
  gpu_block blocks[MAX_BLOCKS];
  uint32_t block_count, messages; /* messages: of the validation layers */
} gpu;
typedef struct gpu_buffer {
  VkBuffer buffer;
  VkDeviceSize bytes;
  char *mapped;
} gpu_buffer;
typedef struct gpu_image {
  VkImage image;
  VkImageView view;
} gpu_image;

/* gpu.c: false after saying on stderr what failed */
enum { GPU_PLAIN, GPU_VALIDATE, GPU_VALIDATE_SHADERS }; /* the layers, with synchronisation; and with what shaders reach (slow) */
typedef struct gpu_wish {
  const char *device; /* a part of its name, in whatever case; null: the first */
  int validate;
  uint32_t extension_count; /* of the instance, for a window; then the device has swapchains */
  const char *const *extensions;
} gpu_wish;
bool gpu_open(gpu *, const gpu_wish *);
void gpu_close(gpu *);
bool gpu_buffer_create(gpu *, VkDeviceSize, VkBufferUsageFlags, VkMemoryPropertyFlags required, gpu_buffer *);
bool gpu_image_create(gpu *, VkFormat, uint32_t width, uint32_t height, VkImageUsageFlags, gpu_image *);
bool gpu_check(VkResult, const char *what);

/* scene.c: draws into an RGBA16F image, which is then in SHADER_READ_ONLY_OPTIMAL for compute shaders */
typedef struct scene {
  VkRenderPass pass;
  VkPipelineLayout layout;
  VkPipeline pipeline;
} scene;
bool scene_create(gpu *, scene *);
void scene_destroy(gpu *, scene *);
bool scene_target(gpu *, const scene *, const gpu_image *, VkFramebuffer *out);
void scene_draw(gpu *, const scene *, VkCommandBuffer, VkFramebuffer, uint32_t width, uint32_t height, float time);

/* post.c: the fused post-process behind Sinter's Vulkan door */
typedef struct post {
  snt_context *context;
  snt_device *device;
  snt_program *program;
  snt_exec *exec;
  snt_binding *binding;
  gpu_buffer memory[MAX_RANGES];
  char *values;
  uint32_t in, out, memory_count;
} post;
bool post_create(gpu *, const gpu_image *lit, const gpu_image *shown, VkCommandBuffer for_upload,
                 post *); /* images: one a frame in flight */
void post_destroy(gpu *, post *);
bool post_record(post *, VkCommandBuffer, uint32_t slot, uint32_t width, uint32_t height, float exposure);
#endif
