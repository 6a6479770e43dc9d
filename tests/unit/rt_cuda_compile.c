/* CUDA text to cubin, which needs the compiler but no GPU: for the two architectures that are measured. */
#include "runtime/rt_cuda.h"
#include "tests/tap.h"
#include "tests/unit/rt_kernels.h"
#include "tools/host/host.h"

static void check_good(const char *text, uint32_t arch) {
  void *cubin = NULL;
  size_t bytes = 0;
  snt_diag diag = {0};
  snt_result result = rt_cuda_compile(NULL, text, arch, &cubin, &bytes, &diag);
  if (!tap_is_int(result, SNT_OK, "sm_%u: a kernel compiles", arch)) tap_diag("%s", diag.text);
  tap_ok(bytes > 64 && cubin && memcmp(cubin, "\177ELF", 4) == 0, "sm_%u: to an ELF of %zu bytes", arch, bytes);
  rt_give(NULL, cubin, bytes);
}

static void check_bad(uint32_t arch) {
  void *cubin = NULL;
  size_t bytes = 0;
  snt_diag diag = {0};
  tap_is_int(rt_cuda_compile(NULL, test_code_broken(SNT_TARGET_CUDA), arch, &cubin, &bytes, &diag), SNT_E_BACKEND,
             "sm_%u: what does not compile is refused", arch);
  tap_ok(strstr(diag.text, "undeclared_name") != NULL, "in the compiler's words: %s", diag.text);
  tap_ok(cubin == NULL && bytes == 0 && diag.native != 0, "with its code (%d) and nothing else", diag.native);
}

int main(void) {
  test_code code;
  const char *why;
  void *cubin = NULL;
  size_t bytes = 0;
  snt_diag diag = {0};
  host_prepare_drivers(NULL);
  test_code_make(&code, SNT_TARGET_CUDA, false, &why);
  if (rt_cuda_compile(NULL, code.code.data, 80, &cubin, &bytes, &diag) == SNT_E_UNSUPPORTED) return tap_skip_all(diag.text);
  rt_give(NULL, cubin, bytes);
  check_good(code.code.data, 80);
  check_good(code.code.data, 90);
  check_bad(90);
  test_code_free(&code);
  return tap_done();
}
