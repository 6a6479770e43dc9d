/* The hook by which a component outside the library adds a backend to a context: devices that take the code of one target and run it
   synchronously. Streams, events, selectors, profiles, caching and everything above work on them as on built-in ones. C99, C++11-clean.
   The functions are called as the public objects are: `open`, `pipeline_create` from any thread, the rest one thread a stream. */
#ifndef SINTER_BACKEND_H
#define SINTER_BACKEND_H
#include "types.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { SNT_TYPE_backend = 256 };
struct snt_context;

typedef struct snt_backend_code {
  const void *data; /* text of an OpenCL or CUDA kernel (terminated), or SPIR-V words */
  size_t size;
  const char *entry;      /* "main" for SPIR-V */
  uint32_t items[3];      /* work-items a group */
  uint32_t binding_count; /* buffers, the first parameters in slot order */
  uint32_t block_bytes;   /* the scalar block that follows them, group count included: a multiple of 4 */
} snt_backend_code;

typedef struct snt_backend_launch {
  uint32_t grid[3];
  uint32_t binding_count;
  void *const *bindings;   /* address or handle of each slot's first byte: host memory unless buffer_create is given */
  const uint64_t *offsets; /* bytes into the handle; all 0 for host memory */
  const uint64_t *bytes;
  const void *block; /* scalars, then the number of groups as u32 */
  uint32_t block_bytes;
} snt_backend_launch;

typedef struct snt_backend {
  snt_head head; /* SNT_HEAD(backend) */
  void *user;
  const char *name;      /* selectors are "name" and "name:which" */
  uint32_t target;       /* one SNT_TARGET_* */
  uint32_t device_count; /* devices to list: "name:0" .. */
  const char *device_name, *driver;
  const char *profile; /* profile text of its devices, `base = NAME` to start from a built-in one */
  snt_result(SNT_CALL *open)(void *user, const char *which, void **out_device, snt_diag *);
  void(SNT_CALL *close)(void *device);
  snt_result(SNT_CALL *pipeline_create)(void *device, const snt_backend_code *, void **out_pipeline, snt_diag *);
  void(SNT_CALL *pipeline_destroy)(void *device, void *pipeline);
  /* Runs one dispatch to its end. `ns`: device time if the backend knows better than the clock around the call, else left alone. */
  snt_result(SNT_CALL *run)(void *device, void *pipeline, const snt_backend_launch *, uint64_t *ns, snt_diag *);
  /* Own memory; all three or none (null: Sinter gives host memory). `to_device` 1: host to buffer, 0: back. */
  snt_result(SNT_CALL *buffer_create)(void *device, uint64_t bytes, void **out_buffer, snt_diag *);
  void(SNT_CALL *buffer_destroy)(void *device, void *buffer);
  snt_result(SNT_CALL *buffer_copy)(void *device, void *buffer, uint64_t offset, void *host, uint64_t bytes, uint32_t to_device,
                                    snt_diag *);
  /* Bytes of private memory an item of a built kernel has, and its registers; UINT32_MAX: unknown. Null: the backend cannot say. */
  void(SNT_CALL *pipeline_report)(void *device, void *pipeline, uint32_t *private_bytes, uint32_t *registers);
} snt_backend;

/* Before any device of the context is opened. The struct is copied; what it points to must outlive the context. */
SNT_API snt_result SNT_CALL snt_context_add_backend(struct snt_context *, const snt_backend *);

#ifdef __cplusplus
}
#endif
#endif
