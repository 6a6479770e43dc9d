/* The OpenCL backend's own: the entry points it uses, and its objects. OpenCL 1.2, in-order queues. */
#ifndef RUNTIME_RT_OPENCL_H
#define RUNTIME_RT_OPENCL_H
#include "runtime/rt_common.h"
#include <CL/cl.h>
#include <CL/cl_ext.h>

// clang-format off
#define OCL_FUNCTIONS(F)                                                                                              \
  F(clGetPlatformIDs) F(clGetPlatformInfo) F(clGetDeviceIDs) F(clGetDeviceInfo) F(clCreateContext) F(clReleaseContext) \
  F(clCreateCommandQueue) F(clReleaseCommandQueue) F(clCreateBuffer) F(clCreateSubBuffer) F(clReleaseMemObject)        \
  F(clCreateProgramWithSource) F(clCreateProgramWithBinary) F(clBuildProgram) F(clGetProgramBuildInfo)                 \
  F(clGetProgramInfo) F(clReleaseProgram) F(clCreateKernel) F(clReleaseKernel) F(clSetKernelArg)                       \
  F(clGetKernelInfo) F(clGetKernelWorkGroupInfo) F(clEnqueueNDRangeKernel) F(clEnqueueReadBuffer)                      \
  F(clEnqueueWriteBuffer) F(clEnqueueMapBuffer) F(clEnqueueUnmapMemObject) F(clEnqueueMarkerWithWaitList) F(clFinish)  \
  F(clFlush) F(clWaitForEvents) F(clGetEventInfo) F(clGetEventProfilingInfo) F(clReleaseEvent) F(clRetainContext)     \
  F(clRetainCommandQueue) F(clRetainMemObject) F(clGetContextInfo) F(clGetCommandQueueInfo) F(clGetMemObjectInfo)
// clang-format on

typedef struct ocl_api {
  void *library;
#define OCL_MEMBER(name) __typeof__(&name) name;
  OCL_FUNCTIONS(OCL_MEMBER)
#undef OCL_MEMBER
} ocl_api;

/* A driver family: how it is selected, what it is taken for until it is queried, what is known to be wrong with it. */
typedef struct ocl_family {
  const char *platform, *name, *profile;
  const char *binary_part; /* a word that its binaries hold: one without is not whole and ends the process that builds it */
  bool host_mapped;        /* a mapped buffer stays at one address and may stay mapped while kernels run */
  bool understates;        /* answers too small a group size for a kernel: the launch decides */
  bool finishes_early;     /* clFinish and markers do not wait for kernels; reading does: a word of the stream's own is read instead */
  bool warms_up;           /* compiles at the first launch: pipeline_create launches an empty one */
  bool unoptimised;        /* lacks operations that the optimiser it brings along makes: funnel shifts, absolute values */
  bool builds_alone;       /* programs of one context, made by two threads at once, crash it */
  bool assembles;          /* its CPU devices are the processor that this runs on, and kernels may hold that one's assembly */
  const char *
      near; /* how the name of another device of the platform begins, which runs kernels on the thread that enqueues them, in the same memory */
  bool slow_binaries; /* a binary holds code for any group size, too, which is compiled when it is asked for */
} ocl_family;

typedef struct ocl_found {
  cl_platform_id platform;
  cl_device_id device, near;
  const ocl_family *family;
  rt_device_desc desc;
} ocl_found;

enum {
  OCL_DOT4_PAIRS = 16, /* products of pairs of halves are one instruction (AVX2) */
  OCL_DOT4_WORD = 32   /* by a function of the language, not by assembly */
};
typedef struct ocl_device {
  rt_device base;
  ocl_api api;
  cl_platform_id platform;
  cl_device_id id, near; /* near: null, or in the context, too */
  cl_context context;
  const ocl_family *family;
  rt_lock building; /* where the family builds alone */
  bool profiling;   /* its events carry times; else the host clock */
  uint32_t dot4;    /* bits of the vectors whose products of bytes are one instruction: OCL_DOT4_WORD, or more; 0: none are */
  char build_options[256];
} ocl_device;

typedef struct ocl_slice {
  uint64_t offset, bytes;
  cl_mem mem;
} ocl_slice;
typedef struct ocl_buffer {
  rt_buffer base;
  cl_mem mem;
  bool whole;                 /* the host's: at offset 0 it is bound as it is, since it may be a part itself */
  cl_command_queue map_queue; /* when mapped for good */
  rt_lock lock;               /* of the slices: two streams may read one buffer */
  ocl_slice *slices;          /* open addressing; capacity a power of two */
  uint32_t slice_count, slice_capacity;
} ocl_buffer;

typedef struct ocl_pipeline {
  rt_pipeline base;
  cl_device_id id; /* it is built for */
  cl_program program;
  cl_kernel kernel;
  rt_lock lock; /* arguments belong to the kernel object, not to the launch */
  uint32_t items[3], binding_count;
} ocl_pipeline;

typedef struct ocl_stream {
  rt_stream base;
  cl_command_queue queue, queues[2]; /* the one at hand; those of the device, and near to it */
  bool busy;                         /* something was enqueued since the last wait: a wait for nothing asks no driver */
  cl_mem word;                       /* only where clFinish comes back too early: what is read to wait */
  uint32_t sink;
  bool adopted; /* the host's: never waited for */
  uint32_t wait_count;
  const cl_event *waits; /* of the next launch */
} ocl_stream;
typedef struct ocl_event {
  rt_event base;
  cl_event last;    /* null when everything was over at submit */
  uint32_t count;   /* dispatches with a time */
  cl_event *events; /* null where a dispatch had no groups, or the host clock was used */
  uint64_t *ns;
} ocl_event;

/* opencl/call.c */
/* Turns a driver's code into a result; a lost device stays lost. */
snt_result ocl_fail(ocl_device *, cl_int code, const char *stage, const char *what, snt_diag *);
uint64_t ocl_query_uint(const ocl_api *, cl_device_id, cl_device_info, size_t size);
/* opencl/device.c */
snt_result ocl_load(ocl_api *, bool oclgrind, snt_diag *);
extern const char ocl_symbols[];
const ocl_family *ocl_family_of(const char *platform, bool cpu);
void ocl_describe(const ocl_api *, ocl_found *, uint32_t index, bool first_of_family);
ocl_device *ocl_take_device(const snt_host_alloc *); /* to be opened, and closed whatever comes of that; null: out of memory */
void ocl_take_found(ocl_device *, const ocl_found *);
/* opencl/adopt.c: objects of a host (<sinter/opencl.h>) */
typedef struct ocl_adoption {
  cl_context context;
  cl_device_id device;
  void *user;
  void *(SNT_CALL *get_proc)(void *user, const char *name); /* null: libOpenCL */
} ocl_adoption;
typedef struct ocl_edges {
  uint32_t wait_count;
  const cl_event *waits;
  cl_event *event; /* may be null */
} ocl_edges;
snt_result ocl_adopt_device(const snt_host_alloc *, const ocl_adoption *, rt_device **out, snt_diag *);
snt_result ocl_adopt_queue(rt_device *, cl_command_queue, rt_stream **out, snt_diag *);
snt_result ocl_adopt_buffer(rt_device *, cl_mem, rt_buffer **out, snt_diag *);
snt_result ocl_enqueue(rt_stream *, uint32_t count, const rt_dispatch *, const ocl_edges *, snt_diag *);
/* opencl/profile.c */
snt_result ocl_query_profile(ocl_device *, snt_diag *);
/* opencl/buffer.c */
snt_result ocl_buffer_create(rt_device *, uint64_t bytes, rt_buffer **out, snt_diag *);
snt_result ocl_buffer_over(rt_device *, const void *data, uint64_t bytes, rt_buffer **out, snt_diag *);
void ocl_buffer_destroy(rt_buffer *);
/* The memory object for a range; *transient says that the caller releases it after the launch. */
cl_int ocl_buffer_slice(ocl_buffer *, uint64_t offset, uint64_t bytes, cl_mem *out, bool *transient);
/* opencl/copy.c */
snt_result ocl_upload(rt_stream *, rt_buffer *, uint64_t offset, const void *src, uint64_t bytes, snt_diag *);
snt_result ocl_download(rt_stream *, rt_buffer *, uint64_t offset, void *dst, uint64_t bytes, snt_diag *);
/* opencl/pipeline.c */
snt_result ocl_pipeline_create(rt_device *, const rt_code *, const void *cached, size_t cached_bytes, rt_pipeline **out, snt_diag *);
void ocl_pipeline_report(const rt_pipeline *, rt_report *out);
snt_result ocl_pipeline_binary(rt_pipeline *, void *dst, size_t *size);
void ocl_pipeline_destroy(rt_pipeline *);
/* opencl/stream.c */
snt_result ocl_stream_create(rt_device *, rt_stream **out, snt_diag *);
void ocl_stream_destroy(rt_stream *);
snt_result ocl_submit_one(ocl_stream *, const rt_dispatch *, cl_event *event, snt_diag *);
snt_result ocl_submit(rt_stream *, uint32_t count, const rt_dispatch *, bool timed, rt_event **event, snt_diag *);
snt_result ocl_wait(rt_stream *, snt_diag *);
snt_result ocl_event_wait(rt_event *, uint64_t timeout_ns);
snt_result ocl_event_timings(rt_event *, uint32_t *count, uint64_t *ns);
void ocl_event_destroy(rt_event *);
bool ocl_probe_profiling(ocl_device *); /* whether this driver's events carry times */
#endif
