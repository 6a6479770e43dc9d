/* Software drivers that are installed but not found by themselves: rusticl wants to be told its device, SwiftShader is not registered,
   Oclgrind checks little unless asked, NVRTC may lie outside the loader's path. Only variables that are not set are set. */
#include "tools/host/host.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *first_readable(const char *const *paths) {
  for (; *paths; paths++) {
    if (access(*paths, R_OK) == 0) return *paths;
  }
  return NULL;
}

/* The Vulkan loader's VK_ADD_DRIVER_FILES adds to what it finds. */
static void add_swiftshader(void) {
  static const char *const paths[] = {"/usr/lib/chromium/vk_swiftshader_icd.json", "/usr/lib64/chromium-browser/vk_swiftshader_icd.json",
                                      "/opt/google/chrome/vk_swiftshader_icd.json", NULL};
  const char *path = first_readable(paths);
  bool chosen = getenv("VK_ICD_FILENAMES") || getenv("VK_DRIVER_FILES");
  if (path && !chosen) setenv("VK_ADD_DRIVER_FILES", path, 0);
}

/* Read by Oclgrind when it is loaded ("opencl:oclgrind"). */
static void make_oclgrind_strict(void) { setenv("OCLGRIND_DATA_RACES", "1", 0); }

/* Loaded by its path once, it is found by its name afterwards. */
static void load_nvrtc(void) {
  const char *path = getenv("SNT_NVRTC");
  if (path && *path) dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
}

/* Given its device, rusticl reads the library of OpenCL's functions when the loader is asked for platforms: a tenth of a second, which who names
   another driver need not wait. */
static void enable_rusticl(const char *device) {
  if (!device || strcmp(device, "opencl:pocl")) setenv("RUSTICL_ENABLE", "llvmpipe", 0);
}

void host_prepare_drivers(const char *device) {
  enable_rusticl(device);
  add_swiftshader();
  make_oclgrind_strict();
  load_nvrtc();
}
