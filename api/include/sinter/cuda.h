/* The CUDA door: programs in the host's own context, on its streams, with its device pointers. C99, C++11; no CUDA header is needed before or after.

   What is whose: context, streams and memory are the host's and stay so: nothing is retained, so they must outlive what is made of them here. Sinter
   makes in that context: modules, and per exec the memory of constants and scratch, with one stream of its own for filling constants.
   snt_exec_create returns when that is done.

   snt_cuda_enqueue never blocks, builds or takes memory: every job of the exec must be done (snt_exec_run_job), and snt_exec_info.max_symbols bounds
   what is run. It launches kernels on the stream, in order with what the host put there; events before and after are the host's own
   (cuStreamWaitEvent, cuEventRecord). It makes the context current for the call and leaves the thread's own as it was. It may be called while the stream
   is being captured: what it launches becomes nodes of the graph.
   The other calls on such a device work as on any: snt_buffer_create, snt_run and so on use streams of Sinter's own.

   Threads: as <sinter/sinter.h> says; the submissions of one exec are one thread's at a time. */
#ifndef SINTER_CUDA_H
#define SINTER_CUDA_H
#include "sinter.h"
#ifdef __cplusplus
extern "C" {
#endif

struct CUctx_st;    /* *CUcontext */
struct CUstream_st; /* *CUstream, cudaStream_t */

enum { SNT_TYPE_cuda_attach_info = 1280, SNT_TYPE_cuda_enqueue_info };

typedef struct snt_cuda_attach_info {
  snt_head head;
  struct CUctx_st *context; /* a primary context, too: what cuCtxGetCurrent gives beside the runtime API */
  void *user;
  /* Where the driver's functions (cuLaunchKernel ..) and NVRTC's come from, by name: a layer may stand behind it. Null, or null for NVRTC's:
     libcuda and libnvrtc, loaded by dlopen. */
  void *(SNT_CALL *get_proc)(void *user, const char *name);
} snt_cuda_attach_info;
/* Programs for it are compiled with snt_device_profile's profile, or ahead of time for SNT_TARGET_CUDA. Destroy it before the context. */
SNT_API snt_result SNT_CALL snt_cuda_attach(snt_context *, const snt_cuda_attach_info *, snt_device **out, snt_diag *);
/* A stream of the host; null: the context's default stream. snt_stream_destroy leaves it alone and does not wait. */
SNT_API snt_result SNT_CALL snt_cuda_stream(snt_device *, struct CUstream_st *, snt_stream **out, snt_diag *);
/* Memory of the host by its device address (CUdeviceptr, or a pointer of cudaMalloc's), aligned to 16, for snt_argument.buffer. */
SNT_API snt_result SNT_CALL snt_cuda_buffer(snt_device *, uint64_t address, uint64_t bytes, snt_buffer **out, snt_diag *);

typedef struct snt_cuda_enqueue_info {
  snt_head head;
  const snt_run_info *run; /* buffers only; states, too, are given */
} snt_cuda_enqueue_info;
/* After an error nothing was launched, unless the driver refused a kernel in the middle (SNT_E_BACKEND and memory errors). */
SNT_API snt_result SNT_CALL snt_cuda_enqueue(snt_exec *, snt_stream *, const snt_cuda_enqueue_info *, snt_diag *);

#ifdef __cplusplus
}
#endif
#endif
