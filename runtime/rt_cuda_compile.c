/* CUDA C to cubin with NVRTC, found at run time. Contraction is off: forming fma is our decision, made before this. */
#include "runtime/rt_cuda.h"
#include <stdio.h>

static const rt_symbol symbols[] = {
#define NVRTC_SYMBOL(name, parameters) RT_SYMBOL(nvrtc_api, name),
    NVRTC_FUNCTIONS(NVRTC_SYMBOL)
#undef NVRTC_SYMBOL
};

static snt_result load_nvrtc(nvrtc_api *api, snt_diag *diag) {
  static const char *const names[] = {RT_NVRTC_NAMES, NULL};
  const char *missing = "";
  api->library = rt_library_open(names);
  if (!api->library) return ir_fail(diag, SNT_E_UNSUPPORTED, "pipeline", 0, "%s was not found: CUDA text cannot be compiled", names[0]);
  if (rt_library_symbols(api->library, symbols, IR_COUNT(symbols), api, &missing)) return SNT_OK;
  rt_library_close(api->library);
  return ir_fail(diag, SNT_E_UNSUPPORTED, "pipeline", 0, "libnvrtc has no %s: 11.2 or later is needed", missing);
}

static snt_result fail_with_log(const nvrtc_api *api, const snt_host_alloc *alloc, nvrtcProgram program, int code, snt_diag *diag) {
  size_t size = 0;
  api->nvrtcGetProgramLogSize(program, &size);
  char *log = rt_take(alloc, size + 1);
  if (log && size) api->nvrtcGetProgramLog(program, log);
  snt_result result = rt_fail_log(diag, SNT_E_BACKEND, code, "pipeline", "NVRTC says", log);
  rt_give(alloc, log, size + 1);
  return result;
}

static snt_result take_cubin(const nvrtc_api *api, const snt_host_alloc *alloc, nvrtcProgram program, void **cubin, size_t *bytes,
                             snt_diag *diag) {
  size_t size = 0;
  int code = api->nvrtcGetCUBINSize(program, &size);
  if (code != 0 || size == 0) return rt_fail_native(diag, SNT_E_BACKEND, code, "pipeline", "nvrtcGetCUBINSize");
  void *binary = rt_take(alloc, size);
  if (!binary) return ir_fail(diag, SNT_E_HOST_MEM, "pipeline", 0, "out of memory");
  code = api->nvrtcGetCUBIN(program, binary);
  if (code != 0) {
    rt_give(alloc, binary, size);
    return rt_fail_native(diag, SNT_E_BACKEND, code, "pipeline", "nvrtcGetCUBIN");
  }
  *cubin = binary, *bytes = size;
  return SNT_OK;
}

static snt_result compile(const nvrtc_api *api, const snt_host_alloc *alloc, const char *text, uint32_t arch, void **cubin, size_t *bytes,
                          snt_diag *diag) {
  nvrtcProgram program = NULL;
  char target[32];
  snprintf(target, sizeof target, "--gpu-architecture=sm_%u", arch);
  const char *const options[] = {target, "-fmad=false", "--std=c++17"};
  int code = api->nvrtcCreateProgram(&program, text, "kernel.cu", 0, NULL, NULL);
  if (code != 0) return rt_fail_native(diag, SNT_E_BACKEND, code, "pipeline", "nvrtcCreateProgram");
  code = api->nvrtcCompileProgram(program, (int)IR_COUNT(options), options);
  snt_result result = code == 0 ? take_cubin(api, alloc, program, cubin, bytes, diag) : fail_with_log(api, alloc, program, code, diag);
  api->nvrtcDestroyProgram(&program);
  return result;
}

snt_result rt_cuda_compile(const snt_host_alloc *alloc, const char *text, uint32_t arch, void **cubin, size_t *bytes, snt_diag *diag) {
  nvrtc_api api;
  SNT_TRY(load_nvrtc(&api, diag));
  snt_result result = compile(&api, alloc, text, arch, cubin, bytes, diag);
  rt_library_close(api.library);
  return result;
}

/* All of NVRTC from the host, or none of it. */
static bool take_nvrtc(const cuda_device *device, nvrtc_api *api) {
  for (uint32_t i = 0; device->get_proc && i < IR_COUNT(symbols); i++) {
    void *address = device->get_proc(device->user, symbols[i].name);
    if (!address) return false;
    memcpy((char *)api + symbols[i].offset, &address, sizeof address);
  }
  return device->get_proc != NULL;
}

snt_result cuda_compile_on(const cuda_device *device, const char *text, void **cubin, size_t *bytes, snt_diag *diag) {
  nvrtc_api api = {.library = NULL};
  if (take_nvrtc(device, &api)) return compile(&api, device->base.alloc, text, device->arch, cubin, bytes, diag);
  return rt_cuda_compile(device->base.alloc, text, device->arch, cubin, bytes, diag);
}
