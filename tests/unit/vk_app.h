/* An application whose device is only a table of functions (vk_fake.h): a program of some steps with an input, a value, a state and an output, taken through
   the door step by step, in memory that is counted and may run out. For tests of the door. */
#ifndef TESTS_VK_APP_H
#define TESTS_VK_APP_H
#include "tests/unit/vk_fake.h"

#include <sinter/vulkan.h>
#include <stdatomic.h>

enum { VK_APP_SLOTS = 8, VK_APP_MOST = 4096 }; /* the most that symbol n may be */

typedef struct vk_app_memory {
  atomic_llong bytes, calls, fail_at;
} vk_app_memory;
extern vk_app_memory vk_app_heap;

/* What the host enabled and asks for; all zero: nothing. */
typedef struct vk_app_paths {
  const VkDeviceCreateInfo *created_with;
  uint32_t attach_flags, exec_flags, instance_extension_count;
  uint64_t max_dispatch_ns;
} vk_app_paths;
extern vk_app_paths vk_app_path;

typedef struct vk_app {
  snt_context *context;
  snt_device *device;
  snt_program *program;
  snt_exec *exec;
  snt_binding *binding;
  snt_vk_memory_need needs[8];
  snt_vk_range ranges[8];
  uint32_t need_count;
  char values[VK_APP_SLOTS * 4096];
  snt_diag diag;
} vk_app;

VkBuffer vk_app_buffer(uintptr_t n);
VkCommandBuffer vk_app_commands(void);
snt_result vk_app_attach(vk_app *);
snt_result vk_app_compile(vk_app *, snt_device *, snt_program **out);
snt_result vk_app_exec(vk_app *);
snt_result vk_app_run_jobs(vk_app *);
snt_result vk_app_bind(vk_app *);
snt_result vk_app_set_slot(vk_app *, uint32_t slot);
snt_result vk_app_record(vk_app *, uint32_t slot, int64_t n, snt_diag *);
snt_result vk_app_whole(vk_app *); /* all of these, the first slot recorded */
void vk_app_finish(vk_app *);      /* gives everything back; zeros will do */
#endif
