/* The table of backends and of code generators: the one place where the library names them.
   Selectors are `name` or `name:which`, "opencl:pocl", "vulkan:0", "interp"; a backend added by a hook has its hook's name. */
#ifndef RUNTIME_TARGETS_H
#define RUNTIME_TARGETS_H
#include "codegen_common/codegen.h"
#include "runtime/backend.h"
#include <sinter/backend.h>

typedef struct rt_hooks {
  uint32_t count;
  const snt_backend *const *at;
} rt_hooks; /* null or {0}: none */

/* Two-call: *count becomes the number of devices; at most `capacity` are written. A loader that is missing counts as no device. */
snt_result rt_list_devices(const snt_host_alloc *, const rt_hooks *, uint32_t *count, rt_device_desc *out, uint32_t capacity);
/* Null or empty selector: the best device. The device is closed with rt_close_device. */
snt_result rt_open_device(const snt_host_alloc *, const rt_hooks *, const char *selector, rt_device **out, snt_diag *);
void rt_close_device(rt_device *);

/* Generators by SNT_TARGET_* bit or by name ("opencl" "spirv" "cuda"); null: not built in. */
const codegen_target *rt_codegen(uint32_t bit);
const codegen_target *rt_codegen_named(const char *name);
/* What a device can do, of what a generator can print. */
void rt_narrow_caps(kir_caps *device, const kir_caps *generator);
uint32_t rt_codegen_list(const codegen_target *const **out);
#endif
