/* CUDA text to cubin, which needs the compiler but no GPU: for the two architectures that are measured, and for one that no compiler knows yet. */
#include "runtime/rt_cuda.h"
#include "tests/tap.h"
#include "tests/unit/rt_kernels.h"
#include "tools/host/host.h"

static void check_good(const char *text, uint32_t arch) {
  cuda_binary cubin = {NULL, 0};
  snt_diag diag = {0};
  snt_result result = rt_cuda_compile(NULL, text, arch, &cubin, &diag);
  if (!tap_is_int(result, SNT_OK, "sm_%u: a kernel compiles", arch)) tap_diag("%s", diag.text);
  tap_ok(cubin.bytes > 64 && memcmp(cubin.at, "\177ELF", 4) == 0, "sm_%u: to an ELF of %zu bytes", arch, cubin.bytes);
  rt_give(NULL, cubin.at, cubin.bytes);
}

static void check_younger(const char *text) {
  cuda_binary ptx = {NULL, 0};
  snt_diag diag = {0};
  snt_result result = rt_cuda_compile(NULL, text, 999, &ptx, &diag);
  if (!tap_is_int(result, SNT_OK, "a device younger than the compiler: a kernel compiles")) tap_diag("%s", diag.text);
  tap_ok(ptx.at && strstr(ptx.at, ".target sm_") && strlen(ptx.at) + 1 == ptx.bytes, "to PTX, which its driver compiles");
  rt_give(NULL, ptx.at, ptx.bytes);
}

static void check_bad(uint32_t arch, const char *text, const char *why) {
  cuda_binary cubin = {NULL, 0};
  snt_diag diag = {0};
  tap_is_int(rt_cuda_compile(NULL, text, arch, &cubin, &diag), SNT_E_BACKEND, "sm_%u: what does not compile is refused", arch);
  tap_ok(strstr(diag.text, why) != NULL, "in the compiler's words: %s", diag.text);
  tap_ok(!cubin.at && !cubin.bytes && diag.native != 0, "with its code (%d) and nothing else", diag.native);
}

int main(void) {
  test_code code;
  const char *why;
  cuda_binary cubin = {NULL, 0};
  snt_diag diag = {0};
  host_prepare_drivers(NULL);
  test_code_make(&code, SNT_TARGET_CUDA, false, &why);
  if (rt_cuda_compile(NULL, code.code.data, 80, &cubin, &diag) == SNT_E_UNSUPPORTED) return tap_skip_all(diag.text);
  rt_give(NULL, cubin.at, cubin.bytes);
  check_good(code.code.data, 80);
  check_good(code.code.data, 90);
  check_younger(code.code.data);
  check_bad(90, test_code_broken(SNT_TARGET_CUDA), "undeclared_name");
  check_bad(20, code.code.data, "architecture"); /* older than all that it knows */
  test_code_free(&code);
  return tap_done();
}
