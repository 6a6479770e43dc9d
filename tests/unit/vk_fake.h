/* A Vulkan device that is only a table of functions: it answers with the required limits of Vulkan 1.1, counts every call, keeps the books of
   what was created and not destroyed, remembers what was asked for by name, and fails the nth call that can fail. For tests of the door. */
#ifndef TESTS_VK_FAKE_H
#define TESTS_VK_FAKE_H
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <stdbool.h>

enum { FAKE_MAX_NAMES = 64, FAKE_MAX_DISPATCHES = 64, FAKE_MAX_NAMED = 32 };
typedef struct vk_fake_dispatch {
  uint32_t grid[3], push[33], push_words, barriers; /* barriers since the dispatch before */
} vk_fake_dispatch;
typedef struct vk_fake_barrier {
  VkPipelineStageFlags from, to;
  VkAccessFlags made, seen;
  uint32_t behind; /* so many dispatches */
} vk_fake_barrier;
typedef struct vk_fake {
  const char *asked[FAKE_MAX_NAMES]; /* entry points looked up */
  uint32_t asked_count;
  uint32_t calls[FAKE_MAX_NAMES]; /* by the place in `asked` */
  int64_t alive;                  /* created and not destroyed */
  uint32_t fallible;              /* calls that could have failed */
  uint32_t fail_at;               /* 1-based; 0: never */
  VkResult fail_with;
  uint32_t most_range; /* maxStorageBufferRange; 0: the required one */
  bool slow_dots;      /* integer dot products are no instructions */
  bool logging;        /* the dispatches, one thread only */
  vk_fake_dispatch dispatches[FAKE_MAX_DISPATCHES];
  uint32_t dispatch_count;
  vk_fake_barrier barriers[FAKE_MAX_DISPATCHES];
  uint32_t barrier_count;
  VkBufferCopy copies[FAKE_MAX_DISPATCHES];
  VkBuffer copied_to[FAKE_MAX_DISPATCHES];
  uint32_t copy_count;
  char named[FAKE_MAX_NAMED][120]; /* type and name of each object that was named */
  uint32_t named_count;
} vk_fake;
extern vk_fake fake; /* C functions without a user pointer leave no other way */

void vk_fake_reset(void);
void vk_fake_forget_calls(void);
uint32_t vk_fake_calls(const char *name);
uint32_t vk_fake_all_calls(void);
void vk_fake_properties(VkPhysicalDeviceProperties2 *);
PFN_vkVoidFunction VKAPI_PTR vk_fake_get(VkInstance, const char *name);
#endif
