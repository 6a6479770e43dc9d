/* What the backends take of the system: driver libraries and their names there, locks, the clock. */
#ifndef RUNTIME_RT_SYSTEM_H
#define RUNTIME_RT_SYSTEM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- driver libraries: lists of names, the best first ---- */
#if defined(_WIN32)
#define RT_VULKAN_NAMES "vulkan-1.dll"
#define RT_OPENCL_NAMES "OpenCL.dll"
#define RT_CUDA_NAMES "nvcuda.dll"
#define RT_NVRTC_NAMES "nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"
#else
#define RT_VULKAN_NAMES "libvulkan.so.1", "libvulkan.so"
#define RT_OPENCL_NAMES "libOpenCL.so.1", "libOpenCL.so"
#define RT_CUDA_NAMES "libcuda.so.1", "libcuda.so"
#define RT_NVRTC_NAMES "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"
#endif
/* Names of functions one behind another, each with its end, then an empty one; they stand in the caller's table in the same order. */
#define RT_NAME(...) RT_FIRST_NAME(__VA_ARGS__, 0)
#define RT_FIRST_NAME(name, ...) #name "\0"
static inline const char *rt_next_name(const char *name) { return name + strlen(name) + 1; }
/* Fills `table` by `find`; what it does not find, or null. */
const char *rt_find_all(void *(*find)(void *user, const char *name), void *user, const char *names, void *table);
void *
rt_library_open(const char *const *names); /* the first that loads, of a null-terminated list; null: none. Never unloaded from memory. */
void rt_library_close(void *library);
const char *rt_library_symbols(void *library, const char *names, void *table); /* rt_find_all there */

/* ---- locks: not recursive ---- */
#if defined(_WIN32)
typedef struct rt_lock {
  void *state;
} rt_lock; /* an SRWLOCK, without all of windows.h */
#else
#include <pthread.h>
typedef pthread_mutex_t rt_lock;
#endif
void rt_lock_init(rt_lock *);
void rt_lock_drop(rt_lock *);
void rt_lock_take(rt_lock *);
void rt_lock_give(rt_lock *);

/* ---- the clock: steady, from any beginning ---- */
uint64_t rt_clock_ns(void);
void rt_sleep_ns(uint64_t);
#endif
