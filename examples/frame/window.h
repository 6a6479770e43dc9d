/* The renderer's window: a swapchain that each frame is scaled onto. Where frame was built without GLFW or there is no display, there is none. */
#ifndef EXAMPLES_FRAME_WINDOW_H
#define EXAMPLES_FRAME_WINDOW_H
#include "examples/frame/frame.h"

enum { WINDOW_MOST_IMAGES = 8 };

// clang-format off
#define WINDOW_FUNCTIONS(F)                                                                                                 \
  F(vkDestroySurfaceKHR) F(vkGetPhysicalDeviceSurfaceSupportKHR) F(vkGetPhysicalDeviceSurfaceCapabilitiesKHR)               \
  F(vkGetPhysicalDeviceSurfaceFormatsKHR) F(vkCreateSwapchainKHR) F(vkDestroySwapchainKHR) F(vkGetSwapchainImagesKHR)       \
  F(vkAcquireNextImageKHR) F(vkQueuePresentKHR) F(vkCreateSemaphore) F(vkDestroySemaphore) F(vkCmdBlitImage)
// clang-format on

typedef struct window {
#define WINDOW_MEMBER(name) PFN_##name name;
  WINDOW_FUNCTIONS(WINDOW_MEMBER)
#undef WINDOW_MEMBER
  void *handle; /* GLFW's */
  VkSurfaceKHR surface;
  VkSwapchainKHR swapchain;
  VkImage images[WINDOW_MOST_IMAGES];
  VkSemaphore presentable[WINDOW_MOST_IMAGES], acquired[FRAMES_IN_FLIGHT];
  uint32_t image_count, width, height, image; /* image: the one acquired */
  bool stale;                                 /* the swapchain fits the window no longer */
} window;

/* Before there is an instance: the extensions that it needs, NULL where there is no display. */
const char *const *window_extensions(uint32_t *count);
/* false after saying on stderr what failed */
bool window_open(gpu *, window *);
void window_close(gpu *, window *);
/* Looks at what the user did; false: closed. Waits while the window has no area. */
bool window_is_open(window *);
/* A frame: an image is acquired, `shown` (in GENERAL, written and made visible to transfers) is scaled onto it, and it is presented. */
bool window_acquire(gpu *, window *, uint32_t slot);
void window_record(gpu *, const window *, VkCommandBuffer, VkImage shown, uint32_t width, uint32_t height);
bool window_present(gpu *, window *);
void window_finish(void);
#endif
