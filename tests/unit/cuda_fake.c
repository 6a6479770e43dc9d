#include "tests/unit/cuda_fake.h"
#include "runtime/rt_cuda.h"
#include "tools/host/host.h"
#include <sinter/sinter.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_PARAMETERS = 32 };
typedef struct fake_module {
  void *pipeline; /* of cuda-text */
  uint32_t bindings, block_bytes, items[3];
  int dynamic; /* bytes that a launch may give */
  char *text;
} fake_module;

cuda_fake_counts cuda_fake;
int cuda_fake_major;
bool cuda_fake_integrated;
const char *cuda_fake_name = "fake";
static const snt_backend *backend;
static void *text_device;
static int fail_launch, objects[2];

CUcontext cuda_fake_context(void) { return (CUcontext)(void *)&objects[0]; }
CUstream cuda_fake_stream(void) { return (CUstream)(void *)&objects[1]; }
void cuda_fake_fail_launch(int code) { fail_launch = code; }

bool cuda_fake_open(void) {
  backend = host_cuda_text();
  return backend->open(backend->user, "", &text_device, NULL) == SNT_OK;
}
void cuda_fake_close(void) { backend->close(text_device); }

/* ---- device ---- */
static CUresult init(unsigned flags) { return (void)flags, CUDA_SUCCESS; }
static CUresult version(int *out) { return *out = 12040, CUDA_SUCCESS; }
static CUresult device_count(int *out) { return *out = 1, CUDA_SUCCESS; }
static CUresult device_get(CUdevice *out, int i) { return *out = i, i ? 101 : CUDA_SUCCESS; }
static CUresult device_name(char *out, int room, CUdevice d) {
  return (void)d, snprintf(out, (size_t)room, "%s", cuda_fake_name), CUDA_SUCCESS;
}
static CUresult device_memory(size_t *out, CUdevice d) { return (void)d, *out = (size_t)1 << 30, CUDA_SUCCESS; }
static CUresult device_uuid(void *out, CUdevice d) { return (void)d, memset(out, 7, 16), CUDA_SUCCESS; }
static CUresult attribute(int *out, int which, CUdevice d) {
  static const int values[CU_MAX_SHARED_OPTIN + 1] = {[CU_MAX_THREADS_PER_BLOCK] = 1024, [CU_MAX_GRID_DIM_X] = INT32_MAX,
                                                      [CU_MAX_GRID_DIM_Y] = 65535,       [CU_MAX_GRID_DIM_Z] = 65535,
                                                      [CU_MAX_SHARED_PER_BLOCK] = 49152, [CU_WARP_SIZE] = 32,
                                                      [CU_CLOCK_RATE] = 1500000,         [CU_MULTIPROCESSOR_COUNT] = 8,
                                                      [CU_L2_CACHE_SIZE] = 4 << 20,      [CU_COMPUTE_MAJOR] = 8,
                                                      [CU_MEMORY_CLOCK_RATE] = 1215000,  [CU_MEMORY_BUS_WIDTH] = 5120,
                                                      [CU_MAX_SHARED_OPTIN] = 166912};
  if (which == CU_COMPUTE_MAJOR && cuda_fake_major) return *out = cuda_fake_major, CUDA_SUCCESS;
  if (which == CU_INTEGRATED) return *out = cuda_fake_integrated, CUDA_SUCCESS;
  if (cuda_fake_integrated && (which == CU_CLOCK_RATE || which == CU_L2_CACHE_SIZE || which == CU_MEMORY_CLOCK_RATE))
    return *out = 0, CUDA_SUCCESS;
  return (void)d, *out = which <= CU_MAX_SHARED_OPTIN ? values[which] : 0, CUDA_SUCCESS;
}
static CUresult retain(CUcontext *out, CUdevice d) { return (void)d, *out = cuda_fake_context(), CUDA_SUCCESS; }
static CUresult release(CUdevice d) { return (void)d, cuda_fake.releases++, CUDA_SUCCESS; }
static CUresult push(CUcontext c) { return c == cuda_fake_context() ? cuda_fake.depth++, CUDA_SUCCESS : 201; }
static CUresult pop(CUcontext *out) { return *out = cuda_fake_context(), cuda_fake.depth--, CUDA_SUCCESS; }
static CUresult current_device(CUdevice *out) { return *out = 0, cuda_fake.depth ? CUDA_SUCCESS : 201; }
static CUresult error_name(CUresult code, const char **out) { return (void)code, *out = "FAKE", CUDA_SUCCESS; }

/* ---- memory, streams, events ---- */
static CUresult take(CUdeviceptr *out, size_t bytes) {
  void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  cuda_fake.allocations++;
  return *out = (CUdeviceptr)(uintptr_t)memory, memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
static CUresult give(CUdeviceptr at) { return free((void *)(uintptr_t)at), cuda_fake.frees++, CUDA_SUCCESS; }
static CUresult up(CUdeviceptr to, const void *from, size_t bytes, CUstream s) {
  return (void)s, memcpy((void *)(uintptr_t)to, from, bytes), CUDA_SUCCESS;
}
static CUresult down(void *to, CUdeviceptr from, size_t bytes, CUstream s) {
  return (void)s, memcpy(to, (const void *)(uintptr_t)from, bytes), CUDA_SUCCESS;
}
static CUresult stream_create(CUstream *out, unsigned flags) {
  return (void)flags, *out = (CUstream)malloc(1), cuda_fake.streams++, CUDA_SUCCESS;
}
static CUresult stream_destroy(CUstream s) {
  if (s == cuda_fake_stream()) return 400;
  return free(s), cuda_fake.stream_ends++, CUDA_SUCCESS;
}
static CUresult stream_wait(CUstream s) { return (void)s, cuda_fake.waits++, CUDA_SUCCESS; }
static CUresult event_create(CUevent *out, unsigned flags) { return (void)flags, *out = (CUevent)malloc(1), CUDA_SUCCESS; }
static CUresult event_destroy(CUevent e) { return free(e), CUDA_SUCCESS; }
static CUresult event_record(CUevent e, CUstream s) { return (void)e, (void)s, CUDA_SUCCESS; }
static CUresult event_done(CUevent e) { return (void)e, CUDA_SUCCESS; }
static CUresult event_time(float *ms, CUevent a, CUevent b) { return (void)a, (void)b, *ms = 1, CUDA_SUCCESS; }

/* ---- modules: a cubin is the kernel's text ---- */
static CUresult module_load(CUmodule *out, const void *image) {
  fake_module *m = calloc(1, sizeof *m);
  if (!m) return CUDA_ERROR_OUT_OF_MEMORY;
  m->text = strdup(image);
  cuda_fake.modules++;
  return *out = (CUmodule)(void *)m, CUDA_SUCCESS;
}
static CUresult module_unload(CUmodule handle) {
  fake_module *m = (fake_module *)(void *)handle;
  if (m->pipeline) backend->pipeline_destroy(text_device, m->pipeline);
  free(m->text);
  free(m);
  return cuda_fake.unloads++, CUDA_SUCCESS;
}

/* The signature says how many pointers come first, the block's struct how many words follow. */
static CUresult module_function(CUfunction *out, CUmodule handle, const char *entry) {
  fake_module *m = (fake_module *)(void *)handle;
  char head[128];
  snprintf(head, sizeof head, " %s(", entry);
  const char *at = strstr(m->text, head), *words = strstr(m->text, "unsigned w["), *bounds = strstr(m->text, "__launch_bounds__(");
  if (!at || !words || !bounds) return 500;
  for (at += strlen(head); *at != ')'; at++) m->bindings += *at == '*';
  m->block_bytes = (uint32_t)(4 * (strtoul(words + 11, NULL, 10) - 1));
  return *out = (CUfunction)(void *)m, CUDA_SUCCESS;
}
static CUresult function_attribute(int *out, int which, CUfunction f) {
  return (void)f, *out = which == CU_FUNC_MAX_THREADS ? 1024 : 0, CUDA_SUCCESS;
}

static CUresult set_attribute(CUfunction f, int which, int value) {
  if (which != CU_FUNC_MOST_DYNAMIC || value > 166912) return 1;
  return ((fake_module *)(void *)f)->dynamic = value, CUDA_SUCCESS;
}

static CUresult compile_for(fake_module *m, const uint32_t items[3]) {
  const char *head = strstr(m->text, "__launch_bounds__("), *name = strchr(head + 18, ')') + 2;
  char entry[128];
  snprintf(entry, sizeof entry, "%.*s", (int)strcspn(name, "("), name);
  const snt_backend_code code = {.data = m->text,
                                 .size = strlen(m->text),
                                 .entry = entry,
                                 .items = {items[0], items[1], items[2]},
                                 .binding_count = m->bindings,
                                 .block_bytes = m->block_bytes + 4};
  snt_diag diag = {.head = SNT_HEAD(diag)};
  if (backend->pipeline_create(text_device, &code, &m->pipeline, &diag) == SNT_OK) return CUDA_SUCCESS;
  fprintf(stderr, "# %s\n", diag.text);
  return 209;
}

static CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                       CUstream s, void **parameters, void **extra) {
  fake_module *m = (fake_module *)(void *)f;
  void *bindings[MAX_PARAMETERS];
  const uint32_t items[3] = {bx, by, bz};
  (void)extra;
  if (shared > (m->dynamic ? (unsigned)m->dynamic : 49152u)) return 1;
  if (shared) cuda_fake.dynamic++;
  if (fail_launch) return fail_launch;
  if (!cuda_fake.depth || m->bindings > MAX_PARAMETERS) return 201;
  if (s != cuda_fake_stream()) cuda_fake.other_streams++;
  if (!m->pipeline && compile_for(m, items) != CUDA_SUCCESS) return 209;
  for (uint32_t i = 0; i < m->bindings; i++) bindings[i] = *(void **)parameters[i];
  const snt_backend_launch what = {.grid = {gx, gy, gz},
                                   .binding_count = m->bindings,
                                   .bindings = bindings,
                                   .block = parameters[m->bindings],
                                   .block_bytes = m->block_bytes + 4};
  cuda_fake.launches++;
  return backend->run(text_device, m->pipeline, &what, NULL, NULL) == SNT_OK ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
}

/* ---- NVRTC: hands the text through ---- */
static int rtc_version(int *major, int *minor) { return *major = 12, *minor = 4, 0; }
static int rtc_create(nvrtcProgram *out, const char *text, const char *name, int count, const char *const *headers,
                      const char *const *names) {
  (void)name, (void)count, (void)headers, (void)names;
  cuda_fake.compiles++;
  return *out = (nvrtcProgram)(void *)strdup(text), 0;
}
static int rtc_destroy(nvrtcProgram *p) { return free(*p), *p = NULL, 0; }
static int rtc_compile(nvrtcProgram p, int count, const char *const *options) {
  (void)p;
  return snprintf(cuda_fake.target, sizeof cuda_fake.target, "%s", count ? options[0] : ""), 0;
}
static int rtc_arch_count(int *out) { return *out = 3, 0; }
static int rtc_archs(int *out) { return out[0] = 75, out[1] = 80, out[2] = 90, 0; }
static int rtc_ptx(nvrtcProgram p, char *out) { return cuda_fake.portable++, strcpy(out, (const char *)(void *)p), 0; }
static int rtc_size(nvrtcProgram p, size_t *out) { return *out = strlen((const char *)(void *)p) + 1, 0; }
static int rtc_cubin(nvrtcProgram p, char *out) { return strcpy(out, (const char *)(void *)p), 0; }
static int rtc_log_size(nvrtcProgram p, size_t *out) { return (void)p, *out = 1, 0; }
static int rtc_log(nvrtcProgram p, char *out) { return (void)p, *out = 0, 0; }

void *cuda_fake_proc(void *user, const char *name) {
  typedef void (*any)(void);
  // clang-format off
  static const struct { const char *name; any at; } table[] = {
    {"cuInit", (any)init}, {"cuDriverGetVersion", (any)version}, {"cuDeviceGetCount", (any)device_count}, {"cuDeviceGet", (any)device_get},
    {"cuDeviceGetName", (any)device_name}, {"cuDeviceGetAttribute", (any)attribute}, {"cuDeviceTotalMem_v2", (any)device_memory},
    {"cuDeviceGetUuid", (any)device_uuid}, {"cuDevicePrimaryCtxRetain", (any)retain}, {"cuDevicePrimaryCtxRelease_v2", (any)release},
    {"cuCtxPushCurrent_v2", (any)push}, {"cuCtxPopCurrent_v2", (any)pop}, {"cuCtxGetDevice", (any)current_device}, {"cuGetErrorName", (any)error_name},
    {"cuMemAlloc_v2", (any)take}, {"cuMemFree_v2", (any)give}, {"cuMemcpyHtoDAsync_v2", (any)up}, {"cuMemcpyDtoHAsync_v2", (any)down},
    {"cuStreamCreate", (any)stream_create}, {"cuStreamDestroy_v2", (any)stream_destroy}, {"cuStreamSynchronize", (any)stream_wait},
    {"cuEventCreate", (any)event_create}, {"cuEventDestroy_v2", (any)event_destroy}, {"cuEventRecord", (any)event_record},
    {"cuEventQuery", (any)event_done}, {"cuEventSynchronize", (any)event_done}, {"cuEventElapsedTime", (any)event_time},
    {"cuModuleLoadData", (any)module_load}, {"cuModuleUnload", (any)module_unload}, {"cuModuleGetFunction", (any)module_function},
    {"cuFuncGetAttribute", (any)function_attribute}, {"cuFuncSetAttribute", (any)set_attribute},
    {"cuLaunchKernel", (any)launch},
    {"nvrtcVersion", (any)rtc_version}, {"nvrtcCreateProgram", (any)rtc_create}, {"nvrtcDestroyProgram", (any)rtc_destroy},
    {"nvrtcCompileProgram", (any)rtc_compile}, {"nvrtcGetCUBINSize", (any)rtc_size}, {"nvrtcGetCUBIN", (any)rtc_cubin},
    {"nvrtcGetNumSupportedArchs", (any)rtc_arch_count}, {"nvrtcGetSupportedArchs", (any)rtc_archs}, {"nvrtcGetPTXSize", (any)rtc_size},
    {"nvrtcGetPTX", (any)rtc_ptx}, {"nvrtcGetProgramLogSize", (any)rtc_log_size}, {"nvrtcGetProgramLog", (any)rtc_log},
  };
  // clang-format on
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    void *at;
    if (strcmp(table[i].name, name) || (user && !strcmp(user, name))) continue;
    memcpy(&at, &table[i].at, sizeof at);
    return at;
  }
  return NULL;
}
