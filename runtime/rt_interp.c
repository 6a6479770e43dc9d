/* The kernel interpreter as a device, for small shapes: it takes kernel IR (a kernel, or its text) and finds what drivers do not report:
   accesses out of bounds, uninitialised reads, races, divergent barriers. Host memory, synchronous. */
#include "ir/kir_interp.h"
#include "runtime/rt_sync.h"

typedef struct interp_pipeline {
  rt_sync_pipeline base;
  const kir_kernel *kernel; /* the caller's, or `own` */
  kir_kernel own;
  ir_arena arena;
} interp_pipeline;
enum { INTERP_INLINE_BINDINGS = 32 };

static snt_result interp_enumerate(const snt_host_alloc *alloc, uint32_t *count, rt_device_desc *out, uint32_t capacity) {
  (void)alloc;
  *count = 1;
  if (capacity == 0) return SNT_OK;
  *out = (rt_device_desc){
      .selector = "interp", .name = "kernel interpreter", .driver = "sinter", .profile = "interp", .api = SNT_TARGET_HOST};
  return SNT_OK;
}

static snt_result run_interp(rt_sync_device *device, rt_sync_pipeline *base, const rt_dispatch *dispatch, const rt_shape *shape,
                             uint64_t *ns, snt_diag *diag) {
  const interp_pipeline *pipeline = (const interp_pipeline *)base;
  const snt_host_alloc *alloc = device->base.alloc;
  kir_interp_buffer few[INTERP_INLINE_BINDINGS], *buffers = few;
  uint32_t count = dispatch->binding_count;
  (void)ns;
  if (count > INTERP_INLINE_BINDINGS && !(buffers = rt_take(alloc, count * sizeof *buffers))) {
    return ir_fail(diag, SNT_E_HOST_MEM, "submit", 0, "out of memory");
  }
  for (uint32_t slot = 0; slot < count; slot++) {
    const struct rt_bound *bound = &dispatch->bindings[slot];
    buffers[slot] = (kir_interp_buffer){.data = (char *)bound->buffer->host + bound->offset, .bytes = bound->bytes};
  }
  const uint32_t sub = pipeline->kernel->sub;
  const kir_interp_info info = {.kernel = pipeline->kernel,
                                .groups = dispatch->groups,
                                .subgroup_size = sub && sub != ~0u ? sub : device->base.profile.subgroup_max,
                                .buffer_count = count,
                                .buffers = buffers,
                                .scalars = shape->words,
                                .scalar_bytes = 4 * shape->word_count};
  kir_interp_stats stats;
  snt_result result = kir_interp_run(&info, alloc, &stats, diag);
  if (buffers != few) rt_give(alloc, buffers, count * sizeof *buffers);
  return result;
}

/* Nothing is expanded away but the mathematical functions: those run as the polynomials that devices run. */
static void interp_profile(cost_profile *profile) {
  const kir_caps caps = {.target = "interp",
                         .max_lanes = 16,
                         .vector_memory = 128,
                         .f16_arithmetic = true,
                         .f16_storage = true,
                         .bf16_storage = true,
                         .int8_storage = true,
                         .int16_storage = true,
                         .int64 = true,
                         .f64 = true,
                         .fma_fused = true,
                         .fma_fast = true,
                         .exp2 = true,
                         .subgroups = true,
                         .subgroup_arithmetic = true,
                         .exact_div = true,
                         .exact_sqrt = true,
                         .prefetch = true,
                         .stream = true,
                         .texel = true,
                         .images = true,
                         .async_copy = true,
                         .atomics_f32 = true,
                         .dot4 = true,
                         .oob_zero = true,
                         .shuffle = true,
                         .hred = true,
                         .wrap = true,
                         .divmod = true,
                         .minmax_nan = true,
                         .ix = true,
                         .fill = true,
                         .lanes_memory = true,
                         .pack2 = true,
                         .push_bytes = 128,
                         .narrow_local = true,
                         .fragment_lanes = true,
                         .subgroup_size = 4};
  profile->caps = caps;
  profile->max_bindings = 64, profile->max_scalar_bytes = 128, profile->max_items = 1024;
  profile->max_local_bytes = 1 << 20, profile->max_buffer_bytes = (uint64_t)1 << 32, profile->max_texels = (uint64_t)1 << 27;
  profile->subgroup_min = 4, profile->subgroup_max = 4, profile->offset_align = 16;
  for (int axis = 0; axis < 3; axis++) profile->max_grid[axis] = UINT32_MAX;
}

static snt_result interp_open(const snt_host_alloc *alloc, const char *which, rt_device **out, snt_diag *diag) {
  uint32_t index;
  if (!rt_index(which, &index) || index != 0) return ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "no device interp:%s", which);
  rt_sync_device *device = rt_take(alloc, sizeof *device);
  if (!device) return ir_fail(diag, SNT_E_HOST_MEM, "open", 0, "out of memory");
  device->base = (rt_device){.v = &rt_interp,
                             .alloc = alloc,
                             .target = SNT_TARGET_HOST,
                             .cpu = true,
                             .selector = "interp",
                             .name = "kernel interpreter",
                             .driver = "sinter"};
  device->run = run_interp;
  snt_result result = rt_base_profile(&device->base.profile, "interp", diag);
  if (result != SNT_OK) {
    rt_give(alloc, device, sizeof *device);
    return result;
  }
  interp_profile(&device->base.profile);
  *out = &device->base;
  return SNT_OK;
}

static void interp_close(rt_device *device) {
  if (device) rt_give(device->alloc, device, sizeof(rt_sync_device));
}

static void interp_pipeline_destroy(rt_pipeline *base) {
  if (!base) return;
  interp_pipeline *pipeline = (interp_pipeline *)base;
  ir_arena_free(&pipeline->arena);
  rt_give(base->device->alloc, pipeline, sizeof *pipeline);
}

/* Text wins over the pointer: the kernel then need not outlive the call. */
static snt_result take_kernel(interp_pipeline *pipeline, const rt_code *code, snt_diag *diag) {
  if (!code->data) {
    if (!code->kernel) return ir_fail(diag, SNT_E_ARG, "pipeline", 0, "neither kernel nor text");
    pipeline->kernel = code->kernel;
    return SNT_OK;
  }
  kir_init(&pipeline->own, &pipeline->arena, code->entry ? code->entry : "kernel");
  SNT_TRY(kir_parse(&pipeline->own, code->data, code->size, diag));
  pipeline->kernel = &pipeline->own;
  return kir_verify(pipeline->kernel, NULL, diag);
}

static snt_result interp_pipeline_create(rt_device *device, const rt_code *code, const void *cached, size_t cached_bytes, rt_pipeline **out,
                                         snt_diag *diag) {
  (void)cached, (void)cached_bytes;
  interp_pipeline *pipeline = rt_take(device->alloc, sizeof *pipeline);
  if (!pipeline) return ir_fail(diag, SNT_E_HOST_MEM, "pipeline", 0, "out of memory");
  pipeline->base = (rt_sync_pipeline){.base = {.v = device->v, .device = device}, .binding_count = code->binding_count};
  ir_arena_init(&pipeline->arena, device->alloc);
  snt_result result = take_kernel(pipeline, code, diag);
  if (result != SNT_OK) interp_pipeline_destroy(&pipeline->base.base);
  else *out = &pipeline->base.base;
  return result;
}

const rt_vtable rt_interp = {
    .name = "interp",
    .target = SNT_TARGET_HOST,
    .enumerate = interp_enumerate,
    .open = interp_open,
    .close = interp_close,
    .pipeline_create = interp_pipeline_create,
    .pipeline_destroy = interp_pipeline_destroy,
    RT_SYNC_FUNCTIONS,
};
