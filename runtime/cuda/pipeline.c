/* CUDA modules: text through NVRTC to a binary for this device, or the binary from the cache, with the text to fall back on. */
#include "runtime/rt_cuda.h"
#include <stdlib.h>

static CUresult load_module(cuda_device *device, cuda_pipeline *pipeline, const void *image, const char *entry) {
  const cuda_api *api = &device->api;
  CUresult code = api->cuModuleLoadData(&pipeline->module, image);
  if (code != CUDA_SUCCESS) return code;
  code = api->cuModuleGetFunction(&pipeline->function, pipeline->module, entry);
  if (code == CUDA_SUCCESS) return code;
  api->cuModuleUnload(pipeline->module);
  pipeline->module = NULL;
  return code;
}

static bool keep_binary(cuda_pipeline *pipeline, const void *cached, size_t bytes) {
  pipeline->binary.at = rt_take(pipeline->base.device->alloc, bytes);
  if (!pipeline->binary.at) return false;
  memcpy(pipeline->binary.at, cached, bytes);
  pipeline->binary.bytes = bytes;
  return true;
}

/* The text says what its launches give: SNT_LOCAL(BYTES), if anything. */
static uint32_t dynamic_bytes(const char *text) {
  static const char word[] = "SNT_LOCAL(";
  uint32_t bytes = 0;
  for (const char *at = text; !bytes && (at = strstr(at, word)) != NULL;) bytes = (uint32_t)strtoul(at += strlen(word), NULL, 10);
  return bytes;
}

static snt_result check_function(cuda_device *device, const cuda_pipeline *pipeline, snt_diag *diag) {
  int most = 0;
  if (pipeline->local_bytes) {
    const CUresult code = device->api.cuFuncSetAttribute(pipeline->function, CU_FUNC_MOST_DYNAMIC, (int)pipeline->local_bytes);
    if (code != CUDA_SUCCESS) return cuda_fail(device, code, "pipeline", "cuFuncSetAttribute", diag);
  }
  uint32_t items = pipeline->items[0] * pipeline->items[1] * pipeline->items[2];
  device->api.cuFuncGetAttribute(&most, CU_FUNC_MAX_THREADS, pipeline->function);
  if (items <= (uint32_t)most) return SNT_OK;
  return ir_fail(diag, SNT_E_LIMIT, "pipeline", 0, "%u threads a block, this kernel may have %d here", items, most);
}

/* With the context current. */
static snt_result build(cuda_device *device, cuda_pipeline *pipeline, const rt_code *code, const void *cached, size_t cached_bytes,
                        snt_diag *diag) {
  pipeline->base.from_binary = cached && cached_bytes && load_module(device, pipeline, cached, code->entry) == CUDA_SUCCESS;
  if (pipeline->base.from_binary) {
    if (!keep_binary(pipeline, cached, cached_bytes)) return ir_fail(diag, SNT_E_HOST_MEM, "pipeline", 0, "out of memory");
    return check_function(device, pipeline, diag);
  }
  SNT_TRY(cuda_compile_on(device, code->data, &pipeline->binary, diag));
  CUresult result = load_module(device, pipeline, pipeline->binary.at, code->entry);
  if (result != CUDA_SUCCESS) return cuda_fail(device, result, "pipeline", "cuModuleLoadData", diag);
  return check_function(device, pipeline, diag);
}

snt_result cuda_pipeline_create(rt_device *base, const rt_code *code, const void *cached, size_t cached_bytes, rt_pipeline **out,
                                snt_diag *diag) {
  cuda_device *device = (cuda_device *)base;
  if (base->lost) return SNT_E_DEVICE_LOST;
  if (code->binding_count > CUDA_MAX_BINDINGS) return ir_fail(diag, SNT_E_LIMIT, "pipeline", 0, "%u bindings", code->binding_count);
  cuda_pipeline *pipeline = rt_take(base->alloc, sizeof *pipeline);
  if (!pipeline) return ir_fail(diag, SNT_E_HOST_MEM, "pipeline", 0, "out of memory");
  pipeline->base = (rt_pipeline){.v = base->v, .device = base};
  memcpy(pipeline->items, code->items, sizeof pipeline->items);
  pipeline->binding_count = code->binding_count, pipeline->block_bytes = code->block_bytes;
  pipeline->local_bytes = dynamic_bytes(code->data);
  snt_result result = SNT_E_BACKEND;
  if (cuda_enter(device)) {
    result = build(device, pipeline, code, cached, cached_bytes, diag);
    cuda_leave(device);
  }
  if (result != SNT_OK) cuda_pipeline_destroy(&pipeline->base);
  else *out = &pipeline->base;
  return result;
}

snt_result cuda_pipeline_binary(rt_pipeline *base, void *dst, size_t *size) {
  const cuda_pipeline *pipeline = (const cuda_pipeline *)base;
  size_t room = *size;
  *size = pipeline->binary.bytes;
  if (!dst) return SNT_OK;
  if (room < pipeline->binary.bytes) return SNT_INCOMPLETE;
  memcpy(dst, pipeline->binary.at, pipeline->binary.bytes);
  return SNT_OK;
}

static uint32_t attribute(cuda_device *device, CUfunction function, int which) {
  int value = 0;
  return device->api.cuFuncGetAttribute(&value, which, function) == CUDA_SUCCESS && value >= 0 ? (uint32_t)value : UINT32_MAX;
}

void cuda_pipeline_report(const rt_pipeline *base, rt_report *out) {
  cuda_device *device = (cuda_device *)base->device;
  *out = (rt_report){UINT32_MAX, UINT32_MAX};
  if (!cuda_enter(device)) return;
  const CUfunction function = ((const cuda_pipeline *)base)->function;
  *out = (rt_report){attribute(device, function, CU_FUNC_LOCAL_BYTES), attribute(device, function, CU_FUNC_REGISTERS)};
  cuda_leave(device);
}

void cuda_pipeline_destroy(rt_pipeline *base) {
  if (!base) return;
  cuda_pipeline *pipeline = (cuda_pipeline *)base;
  cuda_device *device = (cuda_device *)base->device;
  if (pipeline->module && cuda_enter(device)) {
    device->api.cuModuleUnload(pipeline->module);
    cuda_leave(device);
  }
  rt_give(base->device->alloc, pipeline->binary.at, pipeline->binary.bytes);
  rt_give(base->device->alloc, pipeline, sizeof *pipeline);
}
