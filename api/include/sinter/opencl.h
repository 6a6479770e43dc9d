/* The OpenCL door: programs on the host's own context, device, queue and memory objects. C99, C++11; include your OpenCL headers first if you
   use others than <CL/cl.h>.

   What is whose: context, queues and memory objects are the host's; what is adopted here is retained, and released when the object made of it is
   destroyed. Sinter makes in that context: kernels, and per exec the memory of constants and scratch, with one queue of its own for filling
   constants. snt_exec_create returns when that is done.

   snt_cl_enqueue never blocks, builds or takes memory: every job of the exec must be done (snt_exec_run_job), and snt_exec_info.max_symbols
   bounds what is run. It sets kernel arguments, enqueues kernels behind the given events, and calls clFlush. Nothing else of the queue is touched.
   The other calls on such a device work as on any: snt_buffer_create, snt_run and so on use queues of Sinter's own.

   Threads: as <sinter/sinter.h> says; the submissions of one exec are one thread's at a time. */
#ifndef SINTER_OPENCL_H
#define SINTER_OPENCL_H
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 120
#endif
#include <CL/cl.h>

#include "sinter.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { SNT_TYPE_cl_attach_info = 1024, SNT_TYPE_cl_enqueue_info };

typedef struct snt_cl_attach_info {
  snt_head head;
  cl_context context;
  cl_device_id device; /* one of the context's */
  void *user;
  /* Where OpenCL's functions come from, by name: a layer or a recorder may stand behind it. Null: libOpenCL, loaded once more by dlopen. */
  void *(SNT_CALL *get_proc)(void *user, const char *name);
} snt_cl_attach_info;
/* Retains the context. Programs for it are compiled with snt_device_profile's profile, or ahead of time for SNT_TARGET_OPENCL. */
SNT_API snt_result SNT_CALL snt_cl_attach(snt_context *, const snt_cl_attach_info *, snt_device **out, snt_diag *);
/* A queue of the host, in order (SNT_E_UNSUPPORTED if it is not). snt_stream_destroy releases it and does not wait. */
SNT_API snt_result SNT_CALL snt_cl_stream(snt_device *, cl_command_queue, snt_stream **out, snt_diag *);
/* A memory object of the host, for snt_argument.buffer. A sub-buffer is taken whole: at offset 0. */
SNT_API snt_result SNT_CALL snt_cl_buffer(snt_device *, cl_mem, snt_buffer **out, snt_diag *);

typedef struct snt_cl_enqueue_info {
  snt_head head;
  const snt_run_info *run; /* buffers only; states, too, are given */
  uint32_t wait_count;
  const cl_event *waits; /* what the first kernel waits for */
  cl_event *event;       /* may be null: of the last kernel, the caller's to release */
} snt_cl_enqueue_info;
/* After an error nothing was enqueued, unless the driver refused a kernel in the middle (SNT_E_BACKEND and memory errors). */
SNT_API snt_result SNT_CALL snt_cl_enqueue(snt_exec *, snt_stream *, const snt_cl_enqueue_info *, snt_diag *);

#ifdef __cplusplus
}
#endif
#endif
