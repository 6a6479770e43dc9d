/* CUDA C to cubin with NVRTC, found at run time; to PTX for devices that are younger than it. Contraction is off: forming fma is our decision, made before
   this. */
#include "runtime/rt_cuda.h"
#include <stdio.h>

enum { MOST_KNOWN = 64 }; /* architectures of a compiler */

static const char symbols[] = NVRTC_FUNCTIONS(RT_NAME);

static snt_result load_nvrtc(nvrtc_api *api, snt_diag *diag) {
  static const char *const names[] = {RT_NVRTC_NAMES, NULL};
  api->library = rt_library_open(names);
  if (!api->library) return ir_fail(diag, SNT_E_UNSUPPORTED, "pipeline", 0, "%s was not found: CUDA text cannot be compiled", names[0]);
  const char *missing = rt_library_symbols(api->library, symbols, &api->nvrtcVersion);
  if (!missing) return SNT_OK;
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

/* The latest architecture up to `arch` that the compiler knows; `arch` where it knows none, so that it says so itself. */
static uint32_t latest_known(const nvrtc_api *api, uint32_t arch) {
  int known[MOST_KNOWN], count = 0;
  uint32_t latest = 0;
  if (api->nvrtcGetNumSupportedArchs(&count) != 0 || count > MOST_KNOWN || api->nvrtcGetSupportedArchs(known) != 0) return arch;
  for (int i = 0; i < count; i++)
    if ((uint32_t)known[i] <= arch && (uint32_t)known[i] > latest) latest = (uint32_t)known[i];
  return latest ? latest : arch;
}

/* Of an architecture that the compiler does not know yet the driver makes a cubin itself: it takes what runs there and on all later ones. */
static snt_result take_binary(const nvrtc_api *api, const snt_host_alloc *alloc, nvrtcProgram program, bool portable, cuda_binary *out,
                              snt_diag *diag) {
  size_t size = 0;
  int code = (portable ? api->nvrtcGetPTXSize : api->nvrtcGetCUBINSize)(program, &size);
  if (code != 0 || size == 0) return rt_fail_native(diag, SNT_E_BACKEND, code, "pipeline", "nvrtcGetCUBINSize");
  void *binary = rt_take(alloc, size);
  if (!binary) return ir_fail(diag, SNT_E_HOST_MEM, "pipeline", 0, "out of memory");
  code = (portable ? api->nvrtcGetPTX : api->nvrtcGetCUBIN)(program, binary);
  if (code != 0) {
    rt_give(alloc, binary, size);
    return rt_fail_native(diag, SNT_E_BACKEND, code, "pipeline", "nvrtcGetCUBIN");
  }
  *out = (cuda_binary){binary, size};
  return SNT_OK;
}

static snt_result compile(const nvrtc_api *api, const snt_host_alloc *alloc, const char *text, uint32_t arch, cuda_binary *out,
                          snt_diag *diag) {
  nvrtcProgram program = NULL;
  char target[32];
  const uint32_t known = latest_known(api, arch);
  snprintf(target, sizeof target, "--gpu-architecture=%s_%u", known == arch ? "sm" : "compute", known);
  const char *const options[] = {target, "-fmad=false", "--std=c++17"};
  int code = api->nvrtcCreateProgram(&program, text, "kernel.cu", 0, NULL, NULL);
  if (code != 0) return rt_fail_native(diag, SNT_E_BACKEND, code, "pipeline", "nvrtcCreateProgram");
  code = api->nvrtcCompileProgram(program, (int)IR_COUNT(options), options);
  snt_result result = code == 0 ? take_binary(api, alloc, program, known != arch, out, diag)
                                : fail_with_log(api, alloc, program, code, diag);
  api->nvrtcDestroyProgram(&program);
  return result;
}

snt_result rt_cuda_compile(const snt_host_alloc *alloc, const char *text, uint32_t arch, cuda_binary *out, snt_diag *diag) {
  nvrtc_api api;
  SNT_TRY(load_nvrtc(&api, diag));
  snt_result result = compile(&api, alloc, text, arch, out, diag);
  rt_library_close(api.library);
  return result;
}

/* All of NVRTC from the host, or none of it. */
static bool take_nvrtc(const cuda_device *device, nvrtc_api *api) {
  return device->get_proc && !rt_find_all(device->get_proc, device->user, symbols, &api->nvrtcVersion);
}

snt_result cuda_compile_on(const cuda_device *device, const char *text, cuda_binary *out, snt_diag *diag) {
  nvrtc_api api = {.library = NULL};
  if (take_nvrtc(device, &api)) return compile(&api, device->base.alloc, text, device->arch, out, diag);
  return rt_cuda_compile(device->base.alloc, text, device->arch, out, diag);
}
