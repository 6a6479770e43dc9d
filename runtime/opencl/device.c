/* OpenCL devices: libOpenCL by dlopen, platforms and devices, selectors ("opencl:0", "opencl:pocl", any part of a device's name). */
#include "runtime/rt_opencl.h"
#include <stdio.h>

enum { OCL_MAX_PLATFORMS = 16, OCL_MAX_DEVICES = 16 };

/* What is wrong with them was seen in the version named, first and last on the days named; tests/unit/rt_fake_opencl.c holds each to what it changes. */
static const ocl_family families[] = {
    {.platform = "Portable Computing Language",
     .name = "pocl",
     .profile = "pocl",
     .binary_part = "/program.bc",
     .host_mapped = true,
     .warms_up = true,
     .assembles = true,
     .near = "basic",
     .slow_binaries = true}, /* 3.1: 2026-11-21 to 22 */
    {.platform = "rusticl",
     .name = "rusticl",
     .profile = "rusticl",
     .understates = true,
     .finishes_early = true}, /* Mesa 22.3.6: 2026-11-21 to 22 */
    {.platform = "Oclgrind",
     .name = "oclgrind",
     .profile = "dgpu",
     .unoptimised = true,
     .builds_alone = true}, /* 21.10: 2026-11-22; checks like a GPU: races, barriers, bounds */
    {.platform = "Clover", .name = "clover", .profile = "igpu"},
    {.platform = "NVIDIA CUDA", .name = "nvidia", .profile = "dgpu"},
    {.platform = "AMD Accelerated", .name = "amd", .profile = "dgpu"},
    {.platform = "Intel(R) OpenCL", .name = "intel", .profile = "igpu"},
};
static const ocl_family other_gpu = {.platform = "", .name = "gpu", .profile = "dgpu"},
                        other_cpu = {.platform = "", .name = "cpu", .profile = "pocl"};

const char ocl_symbols[] = OCL_FUNCTIONS(RT_NAME);

/* Oclgrind is a whole OpenCL by itself. It is seldom registered with the loader, and too slow to load for everyone: only who names it
   gets it. */
snt_result ocl_load(ocl_api *api, bool oclgrind, snt_diag *diag) {
  static const char *const loader[] = {RT_OPENCL_NAMES, NULL};
  static const char *const simulator[] = {"liboclgrind-rt.so", "/usr/lib/oclgrind/liboclgrind-rt.so",
                                          "/usr/local/lib/oclgrind/liboclgrind-rt.so", NULL};
  api->library = rt_library_open(oclgrind ? simulator : loader);
  if (!api->library && oclgrind)
    return ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "liboclgrind-rt.so was not found: Oclgrind is not installed");
  if (!api->library) return ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "%s was not found: no OpenCL loader is installed", loader[0]);
  const char *missing = rt_library_symbols(api->library, ocl_symbols, &api->clGetPlatformIDs);
  if (!missing) return SNT_OK;
  rt_library_close(api->library);
  api->library = NULL;
  return ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "libOpenCL has no %s: OpenCL 1.2 is needed", missing);
}

const ocl_family *ocl_family_of(const char *platform, bool cpu) {
  for (uint32_t i = 0; i < IR_COUNT(families); i++) {
    bool wrong_class = strcmp(families[i].name, "pocl") == 0 && !cpu; /* PoCL drives GPUs too */
    if (rt_contains(platform, families[i].platform) && !wrong_class) return &families[i];
  }
  return cpu ? &other_cpu : &other_gpu;
}

void ocl_describe(const ocl_api *api, ocl_found *found, uint32_t index, bool first_of_family) {
  rt_device_desc *desc = &found->desc;
  char version[64] = "";
  *desc = (rt_device_desc){.api = SNT_TARGET_OPENCL};
  api->clGetDeviceInfo(found->device, CL_DEVICE_NAME, sizeof desc->name, desc->name, NULL);
  api->clGetDeviceInfo(found->device, CL_DRIVER_VERSION, sizeof version, version, NULL);
  snprintf(desc->driver, sizeof desc->driver, "%s %s", found->family->name, version);
  if (first_of_family) snprintf(desc->selector, sizeof desc->selector, "opencl:%s", found->family->name);
  else snprintf(desc->selector, sizeof desc->selector, "opencl:%u", index);
  rt_copy_text(desc->profile, sizeof desc->profile, rt_profile_of(desc->name, found->family->profile));
  desc->device_class = (uint32_t)ocl_query_uint(api, found->device, CL_DEVICE_TYPE, sizeof(cl_device_type));
  desc->id[0] = ocl_query_uint(api, found->device, CL_DEVICE_VENDOR_ID, sizeof(cl_uint));
  desc->id[1] = ir_hash64(0, desc->name, strlen(desc->name));
}

/* Of a platform's devices the one that is near to the others, and none of its own beside them; null: there is no such one. */
static cl_device_id find_near(const ocl_api *api, const ocl_family *family, const cl_device_id *devices, cl_uint count) {
  cl_device_id found = NULL;
  for (cl_uint d = 0; family->near && count > 1 && d < count; d++) {
    char name[sizeof(((rt_device_desc *)NULL)->name)] = ""; /* a driver gives nothing of what does not fit */
    api->clGetDeviceInfo(devices[d], CL_DEVICE_NAME, sizeof name - 1, name, NULL);
    if (!strncmp(name, family->near, strlen(family->near))) found = devices[d];
  }
  return found;
}

static bool family_listed(const ocl_found *found, uint32_t count, const ocl_family *family) {
  for (uint32_t i = 0; i < count; i++) {
    if (found[i].family == family) return true;
  }
  return false;
}

static snt_result ocl_find(const ocl_api *api, const snt_host_alloc *alloc, uint32_t *count, ocl_found **out) {
  cl_platform_id platforms[OCL_MAX_PLATFORMS];
  cl_device_id devices[OCL_MAX_DEVICES];
  cl_uint platform_count = 0;
  uint32_t capacity = 0;
  *count = 0, *out = NULL;
  if (api->clGetPlatformIDs(OCL_MAX_PLATFORMS, platforms, &platform_count) != CL_SUCCESS) return SNT_OK;
  if (platform_count > OCL_MAX_PLATFORMS) platform_count = OCL_MAX_PLATFORMS;
  for (cl_uint p = 0; p < platform_count; p++) {
    char name[128] = "";
    cl_uint device_count = 0;
    api->clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof name, name, NULL);
    if (api->clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, OCL_MAX_DEVICES, devices, &device_count) != CL_SUCCESS) continue;
    if (device_count > OCL_MAX_DEVICES) device_count = OCL_MAX_DEVICES;
    const cl_device_id near = find_near(api, ocl_family_of(name, true), devices, device_count);
    for (cl_uint d = 0; d < device_count; d++) {
      if (devices[d] == near) continue;
      uint32_t old = capacity;
      if (!rt_grow(alloc, (void **)out, &capacity, *count + 1, sizeof **out)) {
        rt_give(alloc, *out, old * sizeof **out);
        return SNT_E_HOST_MEM;
      }
      bool cpu = ocl_query_uint(api, devices[d], CL_DEVICE_TYPE, sizeof(cl_device_type)) & CL_DEVICE_TYPE_CPU;
      ocl_found *found = &(*out)[*count];
      *found = (ocl_found){.platform = platforms[p], .device = devices[d], .family = ocl_family_of(name, cpu)};
      if (found->family->near) found->near = near;
      ocl_describe(api, found, *count, !family_listed(*out, *count, found->family));
      ++*count;
    }
  }
  /* the caller frees *count items */
  if (*count == 0 || *count == capacity) return SNT_OK;
  ocl_found *exact = rt_take(alloc, *count * sizeof *exact);
  if (exact) memcpy(exact, *out, *count * sizeof *exact);
  rt_give(alloc, *out, capacity * sizeof **out);
  *out = exact;
  return exact ? SNT_OK : SNT_E_HOST_MEM;
}

static snt_result ocl_enumerate(const snt_host_alloc *alloc, uint32_t *count, rt_device_desc *out, uint32_t capacity) {
  ocl_api api;
  ocl_found *found;
  *count = 0;
  if (ocl_load(&api, false, NULL) != SNT_OK) return SNT_OK;
  snt_result result = ocl_find(&api, alloc, count, &found);
  for (uint32_t i = 0; result == SNT_OK && i < *count && i < capacity; i++) out[i] = found[i].desc;
  if (result == SNT_OK) rt_give(alloc, found, *count * sizeof *found);
  rt_library_close(api.library);
  return result;
}

static const ocl_found *select_device(const ocl_found *found, uint32_t count, const char *which) {
  uint32_t index;
  for (uint32_t i = 0; i < count && !*which; i++) { /* none asked for: a GPU before a CPU */
    if (found[i].desc.device_class & CL_DEVICE_TYPE_GPU) return &found[i];
  }
  if (rt_index(which, &index)) return index < count ? &found[index] : NULL;
  for (uint32_t i = 0; i < count; i++) {
    if (strcmp(found[i].family->name, which) == 0) return &found[i];
  }
  for (uint32_t i = 0; i < count; i++) {
    if (rt_contains(found[i].desc.name, which)) return &found[i];
  }
  return NULL;
}

/* With the device chosen and `base` filled: context, facts, and whether its events tell the time. */
static snt_result start_device(ocl_device *device, snt_diag *diag) {
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)device->platform, 0};
  const cl_device_id ids[] = {device->id, device->near};
  cl_int code = CL_SUCCESS;
  device->context = device->api.clCreateContext(properties, device->near ? 2 : 1, ids, NULL, NULL, &code);
  if (!device->context) return ocl_fail(device, code, "open", "clCreateContext", diag);
  SNT_TRY(ocl_query_profile(device, diag));
  device->profiling = ocl_probe_profiling(device);
  return SNT_OK;
}

ocl_device *ocl_take_device(const snt_host_alloc *alloc) {
  ocl_device *device = rt_take(alloc, sizeof *device);
  if (!device) return NULL;
  device->base = (rt_device){.v = &rt_opencl, .alloc = alloc, .target = SNT_TARGET_OPENCL};
  rt_lock_init(&device->building);
  return device;
}

static void ocl_close(rt_device *base) {
  if (!base) return;
  ocl_device *device = (ocl_device *)base;
  rt_lock_drop(&device->building);
  if (device->context) device->api.clReleaseContext(device->context);
  rt_library_close(device->api.library);
  rt_give(base->alloc, device, sizeof *device);
}

void ocl_take_found(ocl_device *device, const ocl_found *chosen) {
  device->base.cpu = chosen->desc.device_class & CL_DEVICE_TYPE_CPU;
  device->base.late_binaries = chosen->family->slow_binaries;
  device->base.near = chosen->near;
  device->platform = chosen->platform, device->id = chosen->device, device->near = chosen->near, device->family = chosen->family;
  rt_copy_text(device->base.selector, sizeof device->base.selector, chosen->desc.selector);
  rt_copy_text(device->base.name, sizeof device->base.name, chosen->desc.name);
  rt_copy_text(device->base.driver, sizeof device->base.driver, chosen->desc.driver);
}

static snt_result choose(ocl_device *device, const char *which, snt_diag *diag) {
  uint32_t count;
  ocl_found *found;
  snt_result result = ocl_find(&device->api, device->base.alloc, &count, &found);
  if (result != SNT_OK) return ir_fail(diag, result, "open", 0, "out of memory");
  const ocl_found *chosen = select_device(found, count, which);
  if (chosen) ocl_take_found(device, chosen);
  rt_give(device->base.alloc, found, count * sizeof *found);
  if (chosen) return SNT_OK;
  return ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "no OpenCL device \"%s\" among the %u found", which, count);
}

static snt_result ocl_open(const snt_host_alloc *alloc, const char *which, rt_device **out, snt_diag *diag) {
  ocl_device *device = ocl_take_device(alloc);
  if (!device) return ir_fail(diag, SNT_E_HOST_MEM, "open", 0, "out of memory");
  snt_result result = ocl_load(&device->api, strcmp(which, "oclgrind") == 0, diag);
  if (result == SNT_OK) result = choose(device, which, diag);
  if (result == SNT_OK) result = start_device(device, diag);
  if (result != SNT_OK) ocl_close(&device->base);
  else *out = &device->base;
  return result;
}

const rt_vtable rt_opencl = {
    .name = "opencl",
    .target = SNT_TARGET_OPENCL,
    .enumerate = ocl_enumerate,
    .open = ocl_open,
    .close = ocl_close,
    .buffer_create = ocl_buffer_create,
    .buffer_destroy = ocl_buffer_destroy,
    .buffer_over = ocl_buffer_over,
    .pipeline_create = ocl_pipeline_create,
    .pipeline_binary = ocl_pipeline_binary,
    .pipeline_report = ocl_pipeline_report,
    .pipeline_destroy = ocl_pipeline_destroy,
    .stream_create = ocl_stream_create,
    .stream_destroy = ocl_stream_destroy,
    .upload = ocl_upload,
    .download = ocl_download,
    .submit = ocl_submit,
    .wait = ocl_wait,
    .event_wait = ocl_event_wait,
    .event_timings = ocl_event_timings,
    .event_destroy = ocl_event_destroy,
};
