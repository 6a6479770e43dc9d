/* One small vtable per backend; every object of a backend begins with its vtable. Loaded with dlopen through rt_loader.c, never linked.
   Threading: as the public objects they stand behind. Errors: snt_result and a diag; nothing is left half-made. */
#ifndef RUNTIME_BACKEND_H
#define RUNTIME_BACKEND_H
#include "cost_targets/profile.h"
#include "ir/plan.h"

typedef struct rt_vtable rt_vtable;
typedef struct rt_device {
  const rt_vtable *v;
  const snt_host_alloc *alloc;
  bool lost, cpu;     /* cpu: a processor's cores, no card */
  bool late_binaries; /* pipeline_binary compiles again: better asked when nobody waits */
  bool near;          /* kernels may also be made for the thread that submits them (rt_code.near) */
  uint32_t target;    /* SNT_TARGET_* of the code it takes */
  char selector[64], name[128], driver[128];
  cost_profile profile;
} rt_device;
enum { RT_EMPTY_BYTES = 8 * KIR_EMPTY_ELEMENTS }; /* of a buffer without elements, whatever their type */
/* host: mapped address where memory is shared, else null */
typedef struct rt_buffer {
  const rt_vtable *v;
  rt_device *device;
  uint64_t bytes;
  void *host;
} rt_buffer;
typedef struct rt_pipeline {
  const rt_vtable *v;
  rt_device *device;
  bool from_binary; /* of the cache's binary; not: there was none, or the driver refused it */
} rt_pipeline;
typedef struct rt_stream {
  const rt_vtable *v;
  rt_device *device;
} rt_stream;
typedef struct rt_event {
  const rt_vtable *v;
  rt_stream *stream;
} rt_event;

typedef struct rt_device_desc {
  char selector[64], name[128], driver[128], profile[32];
  uint32_t api, device_class;
  uint64_t id[2];
} rt_device_desc;
typedef struct rt_code {
  const void *data;
  size_t size;
  const char *entry;
  const kir_kernel *kernel; /* null when loaded from a blob without it */
  uint32_t items[3], binding_count, block_bytes;
  const uint8_t *key;
  const uint8_t *slot_kinds; /* [binding_count] RT_SLOT_*, when there is no kernel; null: all storage */
  uint32_t sub;              /* exact subgroup size wanted when there is no kernel, 0 or ~0u: any */
  bool near;                 /* of a device that can: submitting runs it, on the thread that submits */
  bool report;               /* statistics are kept for pipeline_report, where that must be asked for */
} rt_code;
/* How a slot's memory is read: storage, a texel buffer of this format (element type of the kernel's memory), or an image. The numbers are
   blob format. */
enum {
  RT_SLOT_STORAGE,
  RT_SLOT_F32X4,
  RT_SLOT_F32,
  RT_SLOT_U32X4,
  RT_SLOT_U32,
  RT_SLOT_I32X4,
  RT_SLOT_I32,
  RT_SLOT_F16X4,
  RT_SLOT_U8X4,
  RT_SLOT_IMAGE_FETCH,  /* a sampled image of which texels are fetched: no sampler */
  RT_SLOT_IMAGE_SAMPLE, /* image and sampler in one */
  RT_SLOT_IMAGE_STORE,  /* a storage image */
  RT_SLOT_ADDRESS,      /* storage that no descriptor is bound for: its address stands in the block (codegen_common/codegen.h) */
  RT_SLOT_COUNT
};
static inline bool rt_slot_is_image(uint8_t kind) { return kind >= RT_SLOT_IMAGE_FETCH && kind <= RT_SLOT_IMAGE_STORE; }
static inline bool rt_slot_is_texel(uint8_t kind) { return kind > RT_SLOT_STORAGE && kind < RT_SLOT_IMAGE_FETCH; }
void rt_slot_kinds(const kir_kernel *, uint32_t count, uint8_t *kinds); /* from the kernel's global memories and images */
typedef struct rt_dispatch {
  rt_pipeline *pipeline;
  uint64_t groups;
  uint32_t binding_count;
  struct rt_bound {
    rt_buffer *buffer;
    uint64_t offset, bytes;
    uint8_t access;
  } * bindings;
  const void *block;
  uint32_t block_bytes; /* scalars without the group count: the backend appends it */
  bool barrier;         /* wait for earlier dispatches first */
} rt_dispatch;

/* What a driver says of a kernel that it built; UINT32_MAX: it does not say. */
typedef struct rt_report {
  uint32_t private_bytes; /* of an item, in memory: arrays of its own and what registers were spilled to */
  uint32_t registers;
} rt_report;

struct rt_vtable {
  const char *name; /* "opencl" */
  uint32_t target;  /* SNT_TARGET_* of the code it takes */
  snt_result (*enumerate)(const snt_host_alloc *, uint32_t *count, rt_device_desc *out, uint32_t capacity);
  snt_result (*open)(const snt_host_alloc *, const char *selector, rt_device **out, snt_diag *); /* selector after "name:", may be "" */
  void (*close)(rt_device *);
  snt_result (*buffer_create)(rt_device *, uint64_t bytes, rt_buffer **out, snt_diag *);
  void (*buffer_destroy)(rt_buffer *);
  /* A buffer that kernels only read, in host memory that outlives it, 64 aligned and whole in 16 bytes. Null: the backend copies. */
  snt_result (*buffer_over)(rt_device *, const void *data, uint64_t bytes, rt_buffer **out, snt_diag *);
  /* An image as a buffer of rows of texels, for the image slots of a kernel; formats as kernel IR names them. Null: the backend has none. */
  snt_result (*image_create)(rt_device *, const char *format, uint32_t width, uint32_t height, rt_buffer **out, snt_diag *);
  snt_result (*pipeline_create)(rt_device *, const rt_code *, const void *cached, size_t cached_bytes, rt_pipeline **out,
                                snt_diag *);                             /* any thread */
  snt_result (*pipeline_binary)(rt_pipeline *, void *dst, size_t *size); /* driver binary for the cache; SNT_E_UNSUPPORTED: none */
  void (*pipeline_report)(const rt_pipeline *, rt_report *out);          /* null: the backend hears nothing */
  void (*pipeline_destroy)(rt_pipeline *);
  snt_result (*stream_create)(rt_device *, rt_stream **out, snt_diag *);
  void (*stream_destroy)(rt_stream *);
  snt_result (*upload)(rt_stream *, rt_buffer *, uint64_t offset, const void *src, uint64_t bytes, snt_diag *);
  snt_result (*download)(rt_stream *, rt_buffer *, uint64_t offset, void *dst, uint64_t bytes, snt_diag *); /* done on return */
  snt_result (*submit)(rt_stream *, uint32_t count, const rt_dispatch *, bool timed, rt_event **event,
                       snt_diag *); /* in order; event may be null */
  snt_result (*wait)(rt_stream *, snt_diag *);
  snt_result (*event_wait)(rt_event *, uint64_t timeout_ns);              /* SNT_NOT_READY on timeout */
  snt_result (*event_timings)(rt_event *, uint32_t *count, uint64_t *ns); /* one a dispatch, device time where the driver has it */
  void (*event_destroy)(rt_event *);
};
extern const rt_vtable rt_interp, rt_opencl, rt_vulkan, rt_cuda;
/* Backends that a component outside the library registers (cuda-text): see snt_backend_hook in <sinter/backend.h>. */
#endif
