/* Devices of a backend that a component outside the library registered through <sinter/backend.h>: the public function table on one
   side, the internal vtable on the other. The hook was checked by the API when it was added. */
#include "runtime/rt_sync.h"

typedef struct hooked_device {
  rt_sync_device base;
  const snt_backend *hook;
  void *handle;
} hooked_device;
typedef struct hooked_pipeline {
  rt_sync_pipeline base;
  void *handle;
} hooked_pipeline;
enum { HOOKED_MAX_BINDINGS = 64 };

static snt_result run_hooked(rt_sync_device *base, rt_sync_pipeline *pipeline, const rt_dispatch *dispatch, const rt_shape *shape,
                             uint64_t *ns, snt_diag *diag) {
  hooked_device *device = (hooked_device *)base;
  void *bindings[HOOKED_MAX_BINDINGS];
  uint64_t offsets[HOOKED_MAX_BINDINGS], bytes[HOOKED_MAX_BINDINGS];
  for (uint32_t slot = 0; slot < dispatch->binding_count; slot++) {
    const struct rt_bound *bound = &dispatch->bindings[slot];
    const rt_sync_buffer *buffer = (const rt_sync_buffer *)bound->buffer;
    bool own_memory = base->create != NULL;
    bindings[slot] = own_memory ? buffer->handle : (char *)buffer->base.host + bound->offset;
    offsets[slot] = own_memory ? bound->offset : 0;
    bytes[slot] = bound->bytes;
  }
  const snt_backend_launch launch = {.grid = {shape->grid[0], shape->grid[1], shape->grid[2]},
                                     .binding_count = dispatch->binding_count,
                                     .bindings = bindings,
                                     .offsets = offsets,
                                     .bytes = bytes,
                                     .block = shape->words,
                                     .block_bytes = 4 * shape->word_count};
  return device->hook->run(device->handle, ((hooked_pipeline *)pipeline)->handle, &launch, ns, diag);
}

static snt_result create_memory(rt_sync_device *base, uint64_t bytes, void **out, snt_diag *diag) {
  const hooked_device *device = (const hooked_device *)base;
  return device->hook->buffer_create(device->handle, bytes, out, diag);
}

static void destroy_memory(rt_sync_device *base, void *handle) {
  const hooked_device *device = (const hooked_device *)base;
  device->hook->buffer_destroy(device->handle, handle);
}

static snt_result copy_memory(rt_sync_device *base, void *handle, uint64_t offset, void *host, uint64_t bytes, uint32_t to_device,
                              snt_diag *diag) {
  const hooked_device *device = (const hooked_device *)base;
  return device->hook->buffer_copy(device->handle, handle, offset, host, bytes, to_device, diag);
}

snt_result rt_hooked_open(const snt_host_alloc *alloc, const snt_backend *hook, const char *which, rt_device **out, snt_diag *diag) {
  if (!hook->profile) return ir_fail(diag, SNT_E_ARG, "open", 0, "backend %s has no profile", hook->name);
  hooked_device *device = rt_take(alloc, sizeof *device);
  if (!device) return ir_fail(diag, SNT_E_HOST_MEM, "open", 0, "out of memory");
  device->base.base = (rt_device){.v = &rt_hooked, .alloc = alloc, .target = hook->target};
  device->base.run = run_hooked;
  device->hook = hook;
  if (hook->buffer_create) device->base.create = create_memory, device->base.destroy = destroy_memory, device->base.copy = copy_memory;
  rt_device *base = &device->base.base;
  rt_copy_text(base->selector, sizeof base->selector, hook->name);
  rt_copy_text(base->name, sizeof base->name, hook->device_name ? hook->device_name : hook->name);
  rt_copy_text(base->driver, sizeof base->driver, hook->driver ? hook->driver : "");
  snt_result result = cost_profile_parse(&base->profile, hook->profile, strlen(hook->profile), diag);
  if (result == SNT_OK) result = hook->open(hook->user, which, &device->handle, diag);
  if (result != SNT_OK) {
    rt_give(alloc, device, sizeof *device);
    return result;
  }
  *out = base;
  return SNT_OK;
}

static void hooked_close(rt_device *base) {
  if (!base) return;
  hooked_device *device = (hooked_device *)base;
  device->hook->close(device->handle);
  rt_give(base->alloc, device, sizeof *device);
}

static snt_result hooked_pipeline_create(rt_device *base, const rt_code *code, const void *cached, size_t cached_bytes, rt_pipeline **out,
                                         snt_diag *diag) {
  (void)cached, (void)cached_bytes;
  hooked_device *device = (hooked_device *)base;
  if (code->binding_count > HOOKED_MAX_BINDINGS) return ir_fail(diag, SNT_E_LIMIT, "pipeline", 0, "%u bindings", code->binding_count);
  hooked_pipeline *pipeline = rt_take(base->alloc, sizeof *pipeline);
  if (!pipeline) return ir_fail(diag, SNT_E_HOST_MEM, "pipeline", 0, "out of memory");
  pipeline->base = (rt_sync_pipeline){.base = {.v = base->v, .device = base}, .binding_count = code->binding_count};
  const snt_backend_code given = {.data = code->data,
                                  .size = code->size,
                                  .entry = code->entry,
                                  .items = {code->items[0], code->items[1], code->items[2]},
                                  .binding_count = code->binding_count,
                                  .block_bytes = code->block_bytes + 4};
  snt_result result = device->hook->pipeline_create(device->handle, &given, &pipeline->handle, diag);
  if (result != SNT_OK) rt_give(base->alloc, pipeline, sizeof *pipeline);
  else *out = &pipeline->base.base;
  return result;
}

static void hooked_pipeline_report(const rt_pipeline *base, rt_report *out) {
  const hooked_device *device = (const hooked_device *)base->device;
  *out = (rt_report){UINT32_MAX, UINT32_MAX};
  if (device->hook->pipeline_report)
    device->hook->pipeline_report(device->handle, ((const hooked_pipeline *)base)->handle, &out->private_bytes, &out->registers);
}

static void hooked_pipeline_destroy(rt_pipeline *base) {
  if (!base) return;
  hooked_device *device = (hooked_device *)base->device;
  device->hook->pipeline_destroy(device->handle, ((hooked_pipeline *)base)->handle);
  rt_give(base->device->alloc, base, sizeof(hooked_pipeline));
}

static snt_result hooked_enumerate(const snt_host_alloc *alloc, uint32_t *count, rt_device_desc *out, uint32_t capacity) {
  (void)alloc, (void)out, (void)capacity;
  *count = 0; /* listed by rt_list_devices, which has the hooks */
  return SNT_OK;
}

static snt_result hooked_open(const snt_host_alloc *alloc, const char *which, rt_device **out, snt_diag *diag) {
  (void)alloc, (void)which, (void)out;
  return ir_fail(diag, SNT_E_INTERNAL, "open", 0, "a hooked device needs its hook");
}

const rt_vtable rt_hooked = {
    .name = "hooked",
    .enumerate = hooked_enumerate,
    .open = hooked_open,
    .close = hooked_close,
    .pipeline_create = hooked_pipeline_create,
    .pipeline_report = hooked_pipeline_report,
    .pipeline_destroy = hooked_pipeline_destroy,
    RT_SYNC_FUNCTIONS,
};
