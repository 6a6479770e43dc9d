/* The renderer's window and swapchain; the window itself is GLFW's. */
#include "examples/frame/window.h"
#include <stdio.h>
#include <string.h>

#ifdef EXAMPLES_GLFW
#include <GLFW/glfw3.h>

const char *const *window_extensions(uint32_t *count) {
  *count = 0;
  if (!glfwInit()) return NULL;
  return (const char *const *)glfwGetRequiredInstanceExtensions(count);
}

static bool open_handle(gpu *g, window *w) {
  glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
  w->handle = glfwCreateWindow(MAX_WIDTH, MAX_HEIGHT, "Sinter: a fused pass in a frame", NULL, NULL);
  if (!w->handle) fprintf(stderr, "frame: there is no window\n");
  return w->handle && gpu_check(glfwCreateWindowSurface(g->instance, w->handle, NULL, &w->surface), "glfwCreateWindowSurface");
}

static void close_handle(window *w) {
  if (w->handle) glfwDestroyWindow(w->handle);
}

void window_finish(void) { glfwTerminate(); }

static void look_at_size(const window *w, uint32_t *width, uint32_t *height) {
  int x = 0, y = 0;
  glfwGetFramebufferSize(w->handle, &x, &y);
  *width = (uint32_t)x, *height = (uint32_t)y;
}

bool window_is_open(window *w) {
  uint32_t width, height;
  glfwPollEvents();
  for (look_at_size(w, &width, &height); !width || !height; look_at_size(w, &width, &height)) {
    if (glfwWindowShouldClose(w->handle)) return false;
    glfwWaitEvents();
  }
  w->stale |= width != w->width || height != w->height;
  return !glfwWindowShouldClose(w->handle) && glfwGetKey(w->handle, GLFW_KEY_ESCAPE) != GLFW_PRESS;
}

#else /* built without GLFW: never opened */

const char *const *window_extensions(uint32_t *count) { return *count = 0, NULL; }
static bool open_handle(gpu *g, window *w) { return (void)g, (void)w, false; }
static void close_handle(window *w) { (void)w; }
static void look_at_size(const window *w, uint32_t *width, uint32_t *height) { *width = w->width, *height = w->height; }
bool window_is_open(window *w) { return (void)w, false; }
void window_finish(void) {}

#endif

/* ---- the swapchain ---- */

/* The pass gives gamma-corrected values, so the format is one that stores them as they are. */
static bool pick_format(const gpu *g, const window *w, VkSurfaceFormatKHR *out) {
  VkSurfaceFormatKHR all[64];
  uint32_t count = 64;
  if (w->vkGetPhysicalDeviceSurfaceFormatsKHR(g->physical, w->surface, &count, all) < 0) return false;
  for (uint32_t i = 0; i < count; i++)
    if (all[i].format == VK_FORMAT_B8G8R8A8_UNORM || all[i].format == VK_FORMAT_R8G8B8A8_UNORM) return *out = all[i], true;
  fprintf(stderr, "frame: the surface has no 8-bit UNORM format\n");
  return false;
}

static uint32_t clamp(uint32_t value, uint32_t least, uint32_t most) { return value < least ? least : value > most ? most : value; }

static bool create_swapchain(gpu *g, window *w) {
  VkSurfaceCapabilitiesKHR can;
  VkSurfaceFormatKHR format;
  if (!gpu_check(w->vkGetPhysicalDeviceSurfaceCapabilitiesKHR(g->physical, w->surface, &can),
                 "vkGetPhysicalDeviceSurfaceCapabilitiesKHR") ||
      !pick_format(g, w, &format))
    return false;
  if (!(can.supportedUsageFlags & VK_IMAGE_USAGE_TRANSFER_DST_BIT)) return gpu_check(VK_ERROR_FEATURE_NOT_PRESENT, "copies to the surface");
  look_at_size(w, &w->width, &w->height);
  if (can.currentExtent.width != UINT32_MAX) w->width = can.currentExtent.width, w->height = can.currentExtent.height;
  w->width = clamp(w->width, can.minImageExtent.width, can.maxImageExtent.width);
  w->height = clamp(w->height, can.minImageExtent.height, can.maxImageExtent.height);
  const VkSwapchainKHR old = w->swapchain;
  const uint32_t most = can.maxImageCount && can.maxImageCount < WINDOW_MOST_IMAGES ? can.maxImageCount : WINDOW_MOST_IMAGES;
  const VkSwapchainCreateInfoKHR info = {.sType = VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR,
                                         .surface = w->surface,
                                         .minImageCount = clamp(FRAMES_IN_FLIGHT, can.minImageCount, most),
                                         .imageFormat = format.format,
                                         .imageColorSpace = format.colorSpace,
                                         .imageExtent = {w->width, w->height},
                                         .imageArrayLayers = 1,
                                         .imageUsage = VK_IMAGE_USAGE_TRANSFER_DST_BIT,
                                         .preTransform = can.currentTransform,
                                         .compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR,
                                         .presentMode = VK_PRESENT_MODE_FIFO_KHR,
                                         .clipped = VK_TRUE,
                                         .oldSwapchain = old};
  if (!gpu_check(w->vkCreateSwapchainKHR(g->device, &info, NULL, &w->swapchain), "vkCreateSwapchainKHR")) return w->swapchain = old, false;
  w->vkDestroySwapchainKHR(g->device, old, NULL);
  w->image_count = WINDOW_MOST_IMAGES;
  w->stale = false;
  return gpu_check(w->vkGetSwapchainImagesKHR(g->device, w->swapchain, &w->image_count, w->images), "vkGetSwapchainImagesKHR");
}

static bool create_semaphores(gpu *g, window *w) {
  const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
  VkSemaphore *lists[] = {w->presentable, w->acquired};
  const uint32_t counts[] = {WINDOW_MOST_IMAGES, FRAMES_IN_FLIGHT};
  for (int list = 0; list < 2; list++)
    for (uint32_t i = 0; i < counts[list]; i++)
      if (!gpu_check(w->vkCreateSemaphore(g->device, &info, NULL, &lists[list][i]), "vkCreateSemaphore")) return false;
  return true;
}

bool window_open(gpu *g, window *w) {
  VkBool32 presents = VK_FALSE;
  memset(w, 0, sizeof *w);
  bool all = true;
#define WINDOW_LOAD(name) all = (w->name = (PFN_##name)g->get(g->instance, #name)) != NULL && all;
  WINDOW_FUNCTIONS(WINDOW_LOAD)
#undef WINDOW_LOAD
  if (!all) return gpu_check(VK_ERROR_EXTENSION_NOT_PRESENT, VK_KHR_SWAPCHAIN_EXTENSION_NAME);
  if (!open_handle(g, w)) return false;
  w->vkGetPhysicalDeviceSurfaceSupportKHR(g->physical, g->family, w->surface, &presents);
  if (!presents) return gpu_check(VK_ERROR_FEATURE_NOT_PRESENT, "a queue that presents to the window");
  return create_semaphores(g, w) && create_swapchain(g, w);
}

/* After the device is idle. */
void window_close(gpu *g, window *w) {
  for (uint32_t i = 0; w->vkDestroySemaphore && i < WINDOW_MOST_IMAGES; i++) w->vkDestroySemaphore(g->device, w->presentable[i], NULL);
  for (uint32_t i = 0; w->vkDestroySemaphore && i < FRAMES_IN_FLIGHT; i++) w->vkDestroySemaphore(g->device, w->acquired[i], NULL);
  if (w->swapchain) w->vkDestroySwapchainKHR(g->device, w->swapchain, NULL);
  if (w->surface) w->vkDestroySurfaceKHR(g->instance, w->surface, NULL);
  close_handle(w);
}

/* ---- a frame ---- */

bool window_acquire(gpu *g, window *w, uint32_t slot) {
  enum { TRIES = 4 }; /* a window that is being dragged may change between two calls */
  VkResult r = VK_ERROR_OUT_OF_DATE_KHR;
  for (int i = 0; i < TRIES && r == VK_ERROR_OUT_OF_DATE_KHR; i++) {
    if (w->stale && (!gpu_check(g->vkDeviceWaitIdle(g->device), "vkDeviceWaitIdle") || !create_swapchain(g, w))) return false;
    r = w->vkAcquireNextImageKHR(g->device, w->swapchain, UINT64_MAX, w->acquired[slot], VK_NULL_HANDLE, &w->image);
    w->stale = r == VK_ERROR_OUT_OF_DATE_KHR || r == VK_SUBOPTIMAL_KHR;
  }
  return r == VK_SUBOPTIMAL_KHR || gpu_check(r, "vkAcquireNextImageKHR");
}

static void move(gpu *g, VkCommandBuffer commands, VkImage image, bool before) {
  const VkImageMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
                                        .srcAccessMask = before ? 0 : VK_ACCESS_TRANSFER_WRITE_BIT,
                                        .dstAccessMask = before ? VK_ACCESS_TRANSFER_WRITE_BIT : 0,
                                        .oldLayout = before ? VK_IMAGE_LAYOUT_UNDEFINED : VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
                                        .newLayout = before ? VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL : VK_IMAGE_LAYOUT_PRESENT_SRC_KHR,
                                        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                        .image = image,
                                        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
  g->vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                          before ? VK_PIPELINE_STAGE_TRANSFER_BIT : VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, 0, NULL, 0, NULL, 1, &barrier);
}

void window_record(gpu *g, const window *w, VkCommandBuffer commands, VkImage shown, uint32_t width, uint32_t height) {
  const VkImageBlit whole = {.srcSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                             .srcOffsets = {{0, 0, 0}, {(int32_t)width, (int32_t)height, 1}},
                             .dstSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                             .dstOffsets = {{0, 0, 0}, {(int32_t)w->width, (int32_t)w->height, 1}}};
  const VkImage image = w->images[w->image];
  move(g, commands, image, true);
  w->vkCmdBlitImage(commands, shown, VK_IMAGE_LAYOUT_GENERAL, image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &whole, VK_FILTER_LINEAR);
  move(g, commands, image, false);
}

bool window_present(gpu *g, window *w) {
  const VkPresentInfoKHR info = {.sType = VK_STRUCTURE_TYPE_PRESENT_INFO_KHR,
                                 .waitSemaphoreCount = 1,
                                 .pWaitSemaphores = &w->presentable[w->image],
                                 .swapchainCount = 1,
                                 .pSwapchains = &w->swapchain,
                                 .pImageIndices = &w->image};
  const VkResult r = w->vkQueuePresentKHR(g->queue, &info);
  w->stale |= r == VK_ERROR_OUT_OF_DATE_KHR || r == VK_SUBOPTIMAL_KHR;
  return w->stale || gpu_check(r, "vkQueuePresentKHR");
}
