/* The CUDA backend's own: the parts of the driver API and of NVRTC that it uses, declared here so that no CUDA header is needed. */
#ifndef RUNTIME_RT_CUDA_H
#define RUNTIME_RT_CUDA_H
#include "runtime/rt_common.h"

/* ---- driver API (libcuda.so.1): names and values as in its documentation ---- */
typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
// clang-format off
enum { CUDA_SUCCESS = 0, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NOT_READY = 600, CUDA_ERROR_ILLEGAL_ADDRESS = 700, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
       CUDA_ERROR_LAUNCH_TIMEOUT = 702, CUDA_ERROR_LAUNCH_FAILED = 719 };
enum { CU_MAX_THREADS_PER_BLOCK = 1, CU_MAX_GRID_DIM_X = 5, CU_MAX_GRID_DIM_Y = 6, CU_MAX_GRID_DIM_Z = 7, CU_MAX_SHARED_PER_BLOCK = 8, CU_WARP_SIZE = 10,
       CU_CLOCK_RATE = 13, CU_MULTIPROCESSOR_COUNT = 16, CU_INTEGRATED = 18, CU_MEMORY_CLOCK_RATE = 36, CU_MEMORY_BUS_WIDTH = 37, CU_L2_CACHE_SIZE = 38, CU_COMPUTE_MAJOR = 75, CU_COMPUTE_MINOR = 76,
       CU_MAX_SHARED_OPTIN = 97 };
// clang-format on
enum {
  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_DEFAULT = 0,
  CU_EVENT_DISABLE_TIMING = 2,
  CU_FUNC_MAX_THREADS = 0,
  CU_FUNC_SHARED_BYTES = 1,
  CU_FUNC_LOCAL_BYTES = 3,
  CU_FUNC_REGISTERS = 4,
  CU_FUNC_MOST_DYNAMIC = 8
};

// clang-format off
#define CUDA_FUNCTIONS(F)                                                                                                        \
  F(cuInit, (unsigned)) F(cuDriverGetVersion, (int *)) F(cuDeviceGetCount, (int *)) F(cuDeviceGet, (CUdevice *, int))             \
  F(cuDeviceGetName, (char *, int, CUdevice)) F(cuDeviceGetAttribute, (int *, int, CUdevice)) F(cuDeviceTotalMem_v2, (size_t *, CUdevice)) \
  F(cuDeviceGetUuid, (void *, CUdevice)) F(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) F(cuDevicePrimaryCtxRelease_v2, (CUdevice)) \
  F(cuCtxPushCurrent_v2, (CUcontext)) F(cuCtxPopCurrent_v2, (CUcontext *)) F(cuMemAlloc_v2, (CUdeviceptr *, size_t))              \
  F(cuMemFree_v2, (CUdeviceptr)) F(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))                           \
  F(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream)) F(cuStreamCreate, (CUstream *, unsigned))                      \
  F(cuStreamDestroy_v2, (CUstream)) F(cuStreamSynchronize, (CUstream)) F(cuEventCreate, (CUevent *, unsigned))                    \
  F(cuEventDestroy_v2, (CUevent)) F(cuEventRecord, (CUevent, CUstream)) F(cuEventQuery, (CUevent)) F(cuEventSynchronize, (CUevent)) \
  F(cuEventElapsedTime, (float *, CUevent, CUevent)) F(cuModuleLoadData, (CUmodule *, const void *)) F(cuModuleUnload, (CUmodule)) \
  F(cuModuleGetFunction, (CUfunction *, CUmodule, const char *)) F(cuFuncGetAttribute, (int *, int, CUfunction))                  \
  F(cuFuncSetAttribute, (CUfunction, int, int))                                                                                 \
  F(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **)) \
  F(cuGetErrorName, (CUresult, const char **)) F(cuCtxGetDevice, (CUdevice *))
// clang-format on
typedef struct cuda_api {
  void *library;
#define CUDA_MEMBER(name, parameters) CUresult(*name) parameters;
  CUDA_FUNCTIONS(CUDA_MEMBER)
#undef CUDA_MEMBER
} cuda_api;

/* ---- NVRTC (libnvrtc.so) ---- */
typedef struct _nvrtcProgram *nvrtcProgram;
// clang-format off
#define NVRTC_FUNCTIONS(F)                                                                                                         \
  F(nvrtcVersion, (int *, int *)) F(nvrtcCreateProgram, (nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *)) \
  F(nvrtcDestroyProgram, (nvrtcProgram *)) F(nvrtcCompileProgram, (nvrtcProgram, int, const char *const *))                         \
  F(nvrtcGetCUBINSize, (nvrtcProgram, size_t *)) F(nvrtcGetCUBIN, (nvrtcProgram, char *)) F(nvrtcGetProgramLogSize, (nvrtcProgram, size_t *)) \
  F(nvrtcGetProgramLog, (nvrtcProgram, char *)) F(nvrtcGetNumSupportedArchs, (int *)) F(nvrtcGetSupportedArchs, (int *))           \
  F(nvrtcGetPTXSize, (nvrtcProgram, size_t *)) F(nvrtcGetPTX, (nvrtcProgram, char *))
// clang-format on
typedef struct nvrtc_api {
  void *library;
#define NVRTC_MEMBER(name, parameters) int(*name) parameters;
  NVRTC_FUNCTIONS(NVRTC_MEMBER)
#undef NVRTC_MEMBER
} nvrtc_api;

typedef struct cuda_device {
  rt_device base;
  cuda_api api;
  CUdevice id;
  CUcontext context;
  uint32_t arch; /* 80, 90 */
  bool adopted;  /* the context is the host's, and functions come from it where it gives them */
  void *user;
  void *(SNT_CALL *get_proc)(void *user, const char *name);
} cuda_device;
typedef struct cuda_buffer {
  rt_buffer base;
  CUdeviceptr address;
  bool adopted; /* the memory is the host's */
} cuda_buffer;
typedef struct cuda_binary { /* what a module is made of: a cubin, or PTX for a device that the compiler does not know */
  void *at;
  size_t bytes;
} cuda_binary;
typedef struct cuda_pipeline {
  rt_pipeline base;
  CUmodule module;
  CUfunction function;
  uint32_t items[3], binding_count, block_bytes, local_bytes; /* local: that a launch gives */
  cuda_binary binary;
} cuda_pipeline;
enum { CUDA_MAX_BINDINGS = 64 };
/* Timing events are taken from a pool of the stream and given back with the event. */
typedef struct cuda_stream {
  rt_stream base;
  CUstream handle;
  CUevent *pool;
  uint32_t pool_count, pool_capacity;
  bool adopted; /* the handle is the host's */
} cuda_stream;
typedef struct cuda_event {
  rt_event base;
  CUevent *marks;
  uint32_t count;
  bool timed;
} cuda_event; /* timed: count + 1 marks; else one */

/* rt_cuda_compile.c: text to a binary for sm_<arch>, by NVRTC. It is the caller's, taken from `alloc`: rt_give(alloc, out->at, out->bytes).
   SNT_E_UNSUPPORTED without NVRTC; a text that does not compile gives SNT_E_BACKEND and the compiler's words. Needs no GPU. */
snt_result rt_cuda_compile(const snt_host_alloc *, const char *text, uint32_t arch, cuda_binary *out, snt_diag *);
/* The same with the device's own functions of NVRTC, where it was given them. */
snt_result cuda_compile_on(const cuda_device *, const char *text, cuda_binary *out, snt_diag *);
/* cuda/adopt.c */
typedef struct cuda_adoption {
  CUcontext context;
  void *user;
  void *(SNT_CALL *get_proc)(void *user, const char *name);
} cuda_adoption;
snt_result cuda_adopt_device(const snt_host_alloc *, const cuda_adoption *, rt_device **out, snt_diag *);
snt_result cuda_adopt_stream(rt_device *, CUstream, rt_stream **out);
snt_result cuda_adopt_buffer(rt_device *, uint64_t address, uint64_t bytes, rt_buffer **out);
/* cuda/device.c */
snt_result cuda_load_from(cuda_device *, snt_diag *);     /* the driver's functions, from its get_proc or the library */
snt_result cuda_start_adopted(cuda_device *, snt_diag *); /* facts of the device that its context is of */
snt_result cuda_fail(cuda_device *, CUresult, const char *stage, const char *what, snt_diag *);
bool cuda_enter(cuda_device *); /* makes its context current on this thread; cuda_leave undoes it */
void cuda_leave(cuda_device *);
/* cuda/memory.c */
snt_result cuda_buffer_create(rt_device *, uint64_t bytes, rt_buffer **out, snt_diag *);
void cuda_buffer_destroy(rt_buffer *);
snt_result cuda_upload(rt_stream *, rt_buffer *, uint64_t offset, const void *src, uint64_t bytes, snt_diag *);
snt_result cuda_download(rt_stream *, rt_buffer *, uint64_t offset, void *dst, uint64_t bytes, snt_diag *);
/* cuda/pipeline.c */
snt_result cuda_pipeline_create(rt_device *, const rt_code *, const void *cached, size_t cached_bytes, rt_pipeline **out, snt_diag *);
void cuda_pipeline_report(const rt_pipeline *, rt_report *out);
snt_result cuda_pipeline_binary(rt_pipeline *, void *dst, size_t *size);
void cuda_pipeline_destroy(rt_pipeline *);
/* cuda/stream.c */
snt_result cuda_stream_create(rt_device *, rt_stream **out, snt_diag *);
void cuda_stream_destroy(rt_stream *);
snt_result cuda_submit(rt_stream *, uint32_t count, const rt_dispatch *, bool timed, rt_event **event, snt_diag *);
snt_result cuda_wait(rt_stream *, snt_diag *);
snt_result cuda_event_wait(rt_event *, uint64_t timeout_ns);
snt_result cuda_event_timings(rt_event *, uint32_t *count, uint64_t *ns);
void cuda_event_destroy(rt_event *);
#endif
