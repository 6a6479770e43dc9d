/* A CUDA driver, and NVRTC, without a GPU: the device works by a clock of its own, behind what the host hands over, which needs HAND_OVER_NS for a kernel where
   the device needs GAP_NS and so much for each item. Kernels compute nothing. In place of libcuda and libnvrtc; calibrate is to find GAP_NS and the rate. */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int result;
enum { HAND_OVER_NS = 5000, GAP_NS = 1500, ITEMS_A_NS = 10 };
static int64_t busy_until;
static char object;

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static void spin(int64_t until) {
  while (now() < until) {}
}

#define SEEN __attribute__((visibility("default")))
#define FINE(name, ...)          \
  SEEN result name(__VA_ARGS__); \
  result name(__VA_ARGS__)
// clang-format off
FINE(cuInit, unsigned flags) { return (void)flags, 0; }
FINE(cuDriverGetVersion, int *out) { return *out = 12000, 0; }
FINE(cuDeviceGetCount, int *out) { return *out = 1, 0; }
FINE(cuDeviceGet, int *out, int i) { return *out = i, i ? 101 : 0; }
FINE(cuDeviceGetName, char *out, int room, int device) { return (void)device, snprintf(out, (size_t)room, "slow host"), 0; }
FINE(cuDeviceGetAttribute, int *out, int which, int device) {
  static const int values[128] = {[1] = 1024, [5] = INT32_MAX, [6] = 65535, [7] = 65535, [8] = 49152, [10] = 32, [13] = 1500000, [16] = 8, [38] = 4 << 20, [75] = 8, [97] = 98304};
  return (void)device, *out = which < 128 ? values[which] : 0, 0;
}
FINE(cuDeviceTotalMem_v2, size_t *out, int device) { return (void)device, *out = (size_t)1 << 33, 0; }
FINE(cuDeviceGetUuid, void *out, int device) { return (void)device, memset(out, 7, 16), 0; }
FINE(cuDevicePrimaryCtxRetain, void **out, int device) { return (void)device, *out = &object, 0; }
FINE(cuDevicePrimaryCtxRelease_v2, int device) { return (void)device, 0; }
FINE(cuCtxPushCurrent_v2, void *context) { return (void)context, 0; }
FINE(cuCtxPopCurrent_v2, void **out) { return *out = &object, 0; }
FINE(cuCtxGetDevice, int *out) { return *out = 0, 0; }
FINE(cuGetErrorName, int code, const char **out) { return (void)code, *out = "SLOW", 0; }
FINE(cuMemAlloc_v2, uint64_t *out, size_t bytes) { static uint64_t at = 1 << 20; *out = at; at += (bytes + 511) / 256 * 256; return 0; }
FINE(cuMemFree_v2, uint64_t at) { return (void)at, 0; }
FINE(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t bytes, void *stream) { return (void)to, (void)from, (void)bytes, (void)stream, 0; }
FINE(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t bytes, void *stream) { return (void)from, (void)stream, memset(to, 0, bytes), 0; }
FINE(cuStreamCreate, void **out, unsigned flags) { return (void)flags, *out = &object, 0; }
FINE(cuStreamDestroy_v2, void *stream) { return (void)stream, 0; }
FINE(cuStreamSynchronize, void *stream) { return (void)stream, spin(busy_until), 0; }
FINE(cuEventCreate, void **out, unsigned flags) { return (void)flags, *out = &object, 0; }
FINE(cuEventDestroy_v2, void *event) { return (void)event, 0; }
FINE(cuEventRecord, void *event, void *stream) { return (void)event, (void)stream, 0; }
FINE(cuEventQuery, void *event) { return (void)event, now() < busy_until ? 600 : 0; }
FINE(cuEventSynchronize, void *event) { return (void)event, spin(busy_until), 0; }
FINE(cuEventElapsedTime, float *ms, void *from, void *to) { return (void)from, (void)to, *ms = 1, 0; }
FINE(cuModuleLoadData, void **out, const void *image) { return (void)image, *out = &object, 0; }
FINE(cuModuleUnload, void *module) { return (void)module, 0; }
FINE(cuModuleGetFunction, void **out, void *module, const char *name) { return (void)name, *out = module, 0; }
FINE(cuFuncGetAttribute, int *out, int which, void *function) { return (void)function, *out = which ? 0 : 1024, 0; }
FINE(cuFuncSetAttribute, void *function, int which, int value) { return (void)function, (void)which, (void)value, 0; }
SEEN result cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **parameters, void **extra);
result cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **parameters, void **extra) {
  (void)function, (void)shared, (void)stream, (void)parameters, (void)extra;
  spin(now() + HAND_OVER_NS);
  const int64_t begin = now() > busy_until ? now() : busy_until;
  busy_until = begin + GAP_NS + (int64_t)gx * gy * gz * bx * by * bz / ITEMS_A_NS;
  return 0;
}
FINE(nvrtcVersion, int *major, int *minor) { return *major = 12, *minor = 0, 0; }
FINE(nvrtcCreateProgram, void **out, const char *text, const char *name, int count, const char *const *headers, const char *const *names) {
  return (void)text, (void)name, (void)count, (void)headers, (void)names, *out = &object, 0;
}
FINE(nvrtcDestroyProgram, void **program) { return *program = NULL, 0; }
FINE(nvrtcCompileProgram, void *program, int count, const char *const *options) { return (void)program, (void)count, (void)options, 0; }
FINE(nvrtcGetCUBINSize, void *program, size_t *out) { return (void)program, *out = 4, 0; }
FINE(nvrtcGetCUBIN, void *program, char *out) { return (void)program, memcpy(out, "ELF", 4), 0; }
FINE(nvrtcGetPTXSize, void *program, size_t *out) { return (void)program, *out = 4, 0; }
FINE(nvrtcGetPTX, void *program, char *out) { return (void)program, memcpy(out, "PTX", 4), 0; }
FINE(nvrtcGetProgramLogSize, void *program, size_t *out) { return (void)program, *out = 1, 0; }
FINE(nvrtcGetProgramLog, void *program, char *out) { return (void)program, *out = 0, 0; }
FINE(nvrtcGetNumSupportedArchs, int *out) { return *out = 1, 0; }
FINE(nvrtcGetSupportedArchs, int *out) { return *out = 80, 0; }
