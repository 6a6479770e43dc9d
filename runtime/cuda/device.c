/* CUDA devices: libcuda by dlopen, the primary context of a device, its facts, and the vtable. Without a driver there are no devices. */
#include "runtime/rt_cuda.h"
#include <stdio.h>

static const char symbols[] = CUDA_FUNCTIONS(RT_NAME);

static snt_result load_cuda(cuda_api *api, snt_diag *diag) {
  static const char *const names[] = {RT_CUDA_NAMES, NULL};
  api->library = rt_library_open(names);
  if (!api->library) return ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "%s was not found: no CUDA driver is installed", names[0]);
  const char *missing = rt_library_symbols(api->library, symbols, &api->cuInit);
  if (missing) {
    rt_library_close(api->library);
    return ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "libcuda has no %s", missing);
  }
  CUresult code = api->cuInit(0);
  if (code == CUDA_SUCCESS) return SNT_OK;
  rt_library_close(api->library);
  return rt_fail_native(diag, SNT_E_UNSUPPORTED, code, "open", "cuInit");
}

snt_result cuda_load_from(cuda_device *device, snt_diag *diag) {
  if (!device->get_proc) return load_cuda(&device->api, diag);
  const char *missing = rt_find_all(device->get_proc, device->user, symbols, &device->api.cuInit);
  return missing ? ir_fail(diag, SNT_E_UNSUPPORTED, "attach", 0, "the host's CUDA has no %s", missing) : SNT_OK;
}

/* ---- facts ---- */

static uint32_t attribute(const cuda_api *api, CUdevice id, int which) {
  int value = 0;
  return api->cuDeviceGetAttribute(&value, which, id) == CUDA_SUCCESS && value > 0 ? (uint32_t)value : 0;
}

static uint32_t architecture(const cuda_api *api, CUdevice id) {
  return 10 * attribute(api, id, CU_COMPUTE_MAJOR) + attribute(api, id, CU_COMPUTE_MINOR);
}

static const char *profile_name(const cuda_api *api, CUdevice id, const char *name) {
  if (attribute(api, id, CU_INTEGRATED)) return "igpu";
  return rt_profile_of(name, architecture(api, id) >= 90 ? "h100" : "dgpu");
}

static void describe(const cuda_api *api, CUdevice id, uint32_t index, rt_device_desc *desc) {
  int version = 0;
  *desc = (rt_device_desc){.api = SNT_TARGET_CUDA};
  api->cuDriverGetVersion(&version);
  api->cuDeviceGetName(desc->name, sizeof desc->name - 1, id);
  api->cuDeviceGetUuid(desc->id, id);
  snprintf(desc->selector, sizeof desc->selector, "cuda:%u", index);
  snprintf(desc->driver, sizeof desc->driver, "CUDA %d.%d sm_%u", version / 1000, version % 1000 / 10, architecture(api, id));
  rt_copy_text(desc->profile, sizeof desc->profile, profile_name(api, id, desc->name));
}

static void query_profile(cuda_device *device) {
  const cuda_api *api = &device->api;
  cost_profile *profile = &device->base.profile;
  size_t total = 0;
  api->cuDeviceTotalMem_v2(&total, device->id);
  rt_copy_text(profile->target, sizeof profile->target, "cuda");
  profile->units = attribute(api, device->id, CU_MULTIPROCESSOR_COUNT);
  if (attribute(api, device->id, CU_CLOCK_RATE)) profile->ghz = attribute(api, device->id, CU_CLOCK_RATE) / 1e6;
  const double two_a_cycle = 2e3 * attribute(api, device->id, CU_MEMORY_CLOCK_RATE) * (attribute(api, device->id, CU_MEMORY_BUS_WIDTH) / 8);
  if (two_a_cycle > 0) profile->dram_gbs = 0.9e-9 * two_a_cycle; /* what copies reach */
  if (attribute(api, device->id, CU_L2_CACHE_SIZE)) profile->l2_bytes = attribute(api, device->id, CU_L2_CACHE_SIZE);
  profile->max_items = attribute(api, device->id, CU_MAX_THREADS_PER_BLOCK);
  profile->max_local_bytes = attribute(api, device->id, CU_MAX_SHARED_OPTIN); /* of which arrays have CU_MAX_SHARED_PER_BLOCK */
  if (!profile->max_local_bytes) profile->max_local_bytes = attribute(api, device->id, CU_MAX_SHARED_PER_BLOCK);
  profile->max_bindings = CUDA_MAX_BINDINGS, profile->max_scalar_bytes = 128;
  profile->max_buffer_bytes = total, profile->max_texels = 0;
  profile->subgroup_min = profile->subgroup_max = attribute(api, device->id, CU_WARP_SIZE);
  profile->offset_align = 16;
  for (int axis = 0; axis < 3; axis++) profile->max_grid[axis] = attribute(api, device->id, CU_MAX_GRID_DIM_X + axis);
  kir_caps *caps = &profile->caps;
  caps->target = "cuda", caps->push_bytes = 128;
  caps->fma_fused = caps->fma_fast = caps->exp2 = caps->int64 = caps->f64 = caps->exact_div = caps->exact_sqrt = true;
  caps->f16_storage = caps->int8_storage = caps->int16_storage = caps->subgroups = caps->subgroup_arithmetic = true;
  caps->f16_arithmetic = device->arch >= 53, caps->bf16_storage = true;
  caps->async_copy = caps->fragment_lanes = device->arch >= 80, caps->dot4 = device->arch >= 61;
  static const kir_mma fragments[KIR_MMA_TYPES] = {KIR_MMA_TENSOR_CORES};
  for (uint32_t i = 0; i < KIR_MMA_TYPES; i++) caps->mma[i] = device->arch >= 80 ? fragments[i] : (kir_mma){0, 0, 0};
  caps->texel = caps->images = caps->nan_unsafe = false;
  caps->subgroup_size = (uint8_t)profile->subgroup_max, caps->narrow_local = true;
}

/* ---- opening ---- */

static snt_result cuda_enumerate(const snt_host_alloc *alloc, uint32_t *count, rt_device_desc *out, uint32_t capacity) {
  cuda_api api;
  int have = 0;
  (void)alloc;
  *count = 0;
  if (load_cuda(&api, NULL) != SNT_OK) return SNT_OK;
  if (api.cuDeviceGetCount(&have) != CUDA_SUCCESS || have < 0) have = 0;
  *count = (uint32_t)have;
  for (uint32_t i = 0; i < *count && i < capacity; i++) {
    CUdevice id = 0;
    api.cuDeviceGet(&id, (int)i);
    describe(&api, id, i, &out[i]);
  }
  rt_library_close(api.library);
  return SNT_OK;
}

static void cuda_close(rt_device *base) {
  if (!base) return;
  cuda_device *device = (cuda_device *)base;
  if (device->context && !device->adopted) device->api.cuDevicePrimaryCtxRelease_v2(device->id);
  rt_library_close(device->api.library);
  rt_give(base->alloc, device, sizeof *device);
}

static snt_result choose(cuda_device *device, const char *which, snt_diag *diag) {
  const cuda_api *api = &device->api;
  int count = 0;
  uint32_t index = UINT32_MAX;
  api->cuDeviceGetCount(&count);
  bool by_number = rt_index(which, &index);
  for (int i = 0; i < count; i++) {
    rt_device_desc desc;
    if (api->cuDeviceGet(&device->id, i) != CUDA_SUCCESS) continue;
    describe(api, device->id, (uint32_t)i, &desc);
    if (by_number ? (uint32_t)i != index : !rt_contains(desc.name, which)) continue;
    rt_copy_text(device->base.selector, sizeof device->base.selector, desc.selector);
    rt_copy_text(device->base.name, sizeof device->base.name, desc.name);
    rt_copy_text(device->base.driver, sizeof device->base.driver, desc.driver);
    return SNT_OK;
  }
  return ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "no CUDA device \"%s\" among the %d found", which, count);
}

static snt_result start_device(cuda_device *device, const char *which, snt_diag *diag) {
  SNT_TRY(choose(device, which, diag));
  SNT_TRY(rt_base_profile(&device->base.profile, profile_name(&device->api, device->id, device->base.name), diag));
  CUresult code = device->api.cuDevicePrimaryCtxRetain(&device->context, device->id);
  if (code != CUDA_SUCCESS) return cuda_fail(device, code, "open", "cuDevicePrimaryCtxRetain", diag);
  device->arch = architecture(&device->api, device->id);
  query_profile(device);
  return SNT_OK;
}

snt_result cuda_start_adopted(cuda_device *device, snt_diag *diag) {
  rt_device_desc desc;
  if (!cuda_enter(device)) return ir_fail(diag, SNT_E_ARG, "attach", 0, "the CUDA context cannot be made current");
  const CUresult code = device->api.cuCtxGetDevice(&device->id);
  cuda_leave(device);
  if (code != CUDA_SUCCESS) return cuda_fail(device, code, "attach", "cuCtxGetDevice", diag);
  describe(&device->api, device->id, 0, &desc);
  rt_copy_text(device->base.selector, sizeof device->base.selector, "cuda:host");
  rt_copy_text(device->base.name, sizeof device->base.name, desc.name);
  rt_copy_text(device->base.driver, sizeof device->base.driver, desc.driver);
  SNT_TRY(rt_base_profile(&device->base.profile, profile_name(&device->api, device->id, device->base.name), diag));
  device->arch = architecture(&device->api, device->id);
  query_profile(device);
  return SNT_OK;
}

static snt_result cuda_open(const snt_host_alloc *alloc, const char *which, rt_device **out, snt_diag *diag) {
  cuda_device *device = rt_take(alloc, sizeof *device);
  if (!device) return ir_fail(diag, SNT_E_HOST_MEM, "open", 0, "out of memory");
  device->base = (rt_device){.v = &rt_cuda, .alloc = alloc, .target = SNT_TARGET_CUDA};
  snt_result result = load_cuda(&device->api, diag);
  if (result != SNT_OK) {
    rt_give(alloc, device, sizeof *device);
    return result;
  }
  result = start_device(device, which, diag);
  if (result != SNT_OK) cuda_close(&device->base);
  else *out = &device->base;
  return result;
}

const rt_vtable rt_cuda = {
    .name = "cuda",
    .target = SNT_TARGET_CUDA,
    .enumerate = cuda_enumerate,
    .open = cuda_open,
    .close = cuda_close,
    .buffer_create = cuda_buffer_create,
    .buffer_destroy = cuda_buffer_destroy,
    .pipeline_create = cuda_pipeline_create,
    .pipeline_binary = cuda_pipeline_binary,
    .pipeline_report = cuda_pipeline_report,
    .pipeline_destroy = cuda_pipeline_destroy,
    .stream_create = cuda_stream_create,
    .stream_destroy = cuda_stream_destroy,
    .upload = cuda_upload,
    .download = cuda_download,
    .submit = cuda_submit,
    .wait = cuda_wait,
    .event_wait = cuda_event_wait,
    .event_timings = cuda_event_timings,
    .event_destroy = cuda_event_destroy,
};
