/* Software drivers that are installed but not found by themselves: rusticl wants to be told its device, SwiftShader is not registered,
   Oclgrind checks little unless asked, PoCL's threads wander and its device without threads is not listed, NVRTC may lie outside the
   loader's path. Only variables that are not set are set. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "tools/host/host.h"
#include <dlfcn.h>
#include <sched.h>
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
static void add_swiftshader(const char *device) {
  (void)device;
  static const char *const paths[] = {"/usr/lib/chromium/vk_swiftshader_icd.json", "/usr/lib64/chromium-browser/vk_swiftshader_icd.json",
                                      "/opt/google/chrome/vk_swiftshader_icd.json", NULL};
  const char *path = first_readable(paths);
  bool chosen = getenv("VK_ICD_FILENAMES") || getenv("VK_DRIVER_FILES");
  if (path && !chosen) setenv("VK_ADD_DRIVER_FILES", path, 0);
}

/* Read by Oclgrind when it is loaded ("opencl:oclgrind"). */
static void make_oclgrind_strict(const char *device) {
  (void)device;
  setenv("OCLGRIND_DATA_RACES", "1", 0);
}

/* Loaded by its path once, it is found by its name afterwards. */
static void load_nvrtc(const char *device) {
  (void)device;
  const char *path = getenv("SNT_NVRTC");
  if (path && *path) dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
}

/* Given its device, rusticl reads the library of OpenCL's functions when the loader is asked for platforms: a tenth of a second, which who names
   another driver need not wait. */
static void enable_rusticl(const char *device) {
  if (!device || strcmp(device, "opencl:pocl")) setenv("RUSTICL_ENABLE", "llvmpipe", 0);
}

/* May this process run on all processors that are online, and are those the first ones? */
static bool has_all_processors(void) {
  cpu_set_t allowed;
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  if (online < 2 || online > CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed)) return false;
  for (long i = 0; i < online; i++)
    if (!CPU_ISSET((size_t)i, &allowed)) return false;
  return true;
}

/* Between two kernels PoCL's threads sleep, and the one that another wakes starts where that runs: for up to milliseconds two threads then share a processor
   and one idles. Each thread on a processor of its own, as PoCL gives them out by number: in turns, three times each, medians of ResNet-50 93, 54, 58 ms to 51,
   74, 50, least 44.5 to 42.1; of MobileNet-v2 9.6, 5.3, 7.1 to 6.0, 5.6, 6.0. Not where the process was told its processors: the numbers may be others'. */
static void keep_pocl_threads_apart(const char *device) {
  (void)device;
  if (has_all_processors()) setenv("POCL_AFFINITY", "1", 0);
}

/* PoCL lists a device `basic`, which runs kernels on the thread that enqueues them, only if it is asked for. */
static void list_pocl_near(const char *device) {
  (void)device;
  setenv("POCL_DEVICES", "pthread basic", 0);
}

void host_prepare_drivers(const char *device) {
  static const struct {
    const char *backend; /* how selectors of its devices begin */
    void (*prepare)(const char *device);
  } rows[] = {{"opencl", enable_rusticl},       {"opencl", keep_pocl_threads_apart}, {"opencl", list_pocl_near},
              {"opencl", make_oclgrind_strict}, {"vulkan", add_swiftshader},         {"cuda", load_nvrtc}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!device || !strncmp(device, rows[i].backend, strlen(rows[i].backend))) rows[i].prepare(device);
}
