/* In place of the Vulkan loader, REAL_LOADER: the first submission of a process loses the device, as long as the file that SNT_LOSSES names
   has a byte for it. */
#define VK_NO_PROTOTYPES
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vulkan/vulkan_core.h>

static PFN_vkGetInstanceProcAddr real_instance;
static PFN_vkGetDeviceProcAddr real_device;
static PFN_vkQueueSubmit real_submit;

static int loses(void) {
  static int submitted;
  struct stat status;
  const char *path = getenv("SNT_LOSSES");
  const int file = path && !submitted++ ? open(path, O_RDWR) : -1;
  const int yes = file >= 0 && fstat(file, &status) == 0 && status.st_size > 0 && ftruncate(file, status.st_size - 1) == 0;
  if (file >= 0) close(file);
  return yes;
}

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos, VkFence fence) {
  return loses() ? VK_ERROR_DEVICE_LOST : real_submit(queue, count, infos, fence);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char *name) {
  const PFN_vkVoidFunction found = real_device(device, name);
  if (strcmp(name, "vkQueueSubmit") != 0) return found;
  real_submit = (PFN_vkQueueSubmit)found;
  return (PFN_vkVoidFunction)submit;
}

__attribute__((visibility("default"))) VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance,
                                                                                                      const char *name) {
  if (!real_instance) {
    void *library = dlopen(REAL_LOADER, RTLD_NOW | RTLD_LOCAL), *found = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
    memcpy(&real_instance, &found, sizeof found);
    if (!found) return NULL;
  }
  const PFN_vkVoidFunction found = real_instance(instance, name);
  if (strcmp(name, "vkGetDeviceProcAddr") != 0) return found;
  real_device = (PFN_vkGetDeviceProcAddr)found;
  return (PFN_vkVoidFunction)device_function;
}
