/* Helpers of the code generator tests: passes and emission, temporary files, outside tools. */
#include "tests/unit/codegen_support.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

snt_result codegen_make(const kir_kernel *k, const codegen_target *t, ir_arena *arena, kir_kernel *legal, codegen_code *code,
                        snt_diag *diag) {
  kir_init(legal, arena, k->name);
  SNT_TRY(kir_run_passes(k, legal, t->caps, NULL, NULL, diag));
  return t->emit(legal, t->caps, arena, code, diag);
}

bool codegen_write_file(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "wb");
  if (!file) return false;
  const bool wrote = fwrite(data, 1, size, file) == size;
  return fclose(file) == 0 && wrote;
}

char *codegen_command(ir_arena *arena, int *status, const char *format, ...) {
  char command[1024], chunk[4096];
  ir_text text;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(command, sizeof command, format, arguments);
  va_end(arguments);
  ir_text_init(&text, arena);
  ir_text_add(&text, "");
  FILE *pipe = popen(command, "r");
  if (!pipe) {
    *status = -1;
    return "popen failed";
  }
  for (size_t n; (n = fread(chunk, 1, sizeof chunk, pipe)) > 0;) ir_text_put(&text, chunk, n);
  *status = pclose(pipe);
  return text.at ? text.at : "";
}

bool codegen_has_tool(const char *name) {
  char command[128];
  snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", name);
  return system(command) == 0;
}

/* What CUDA gives without a header, for a C++ compiler that only checks syntax. */
static const char shim[] =
    "#include <math.h>\n#include <string.h>\n"
    "#define SNT_SHIM\n#define __global__\n#define __device__\n#define __shared__ static\n#define __restrict__ __restrict\n#define "
    "__launch_bounds__(...)\n"
    "static struct { unsigned x, y, z; } threadIdx, blockIdx, blockDim, gridDim;\n"
    "static inline void __syncthreads() {}\nstatic inline void __syncwarp() {}\n"
    "template <class T> static inline T __shfl_sync(unsigned, T x, int) { return x; }\n"
    "template <class T> static inline T __shfl_xor_sync(unsigned, T x, int) { return x; }\n"
    "template <int N> void snt_copy(void *, const void *, bool) {}\nstatic inline void snt_copy_commit() {}\ntemplate <int N> void "
    "snt_copy_wait() {}\n"
    "#define SNT_AT(p) (const char *)(p)\nstatic inline unsigned snt_lane() { return 0; }\n"
    "static inline void snt_read(unsigned *, const char *, bool) {}\n"
    "template <class A, class C> void snt_unit(C *, const A &, const unsigned *) {}\n"
    "template <class A> void snt_pair(A &, int, float, float) {}\n"
    "static inline unsigned __byte_perm(unsigned a, unsigned, unsigned) { return a; }\n"
    "static inline float snt_f32_from_f16(unsigned short h) { return h; }\nstatic inline unsigned short snt_f16_from_f32(float x) { return "
    "(unsigned short)x; }\n"
    "static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }\nstatic inline int __clzll(long long x) { return "
    "__builtin_clzll((unsigned long long)x); }\n"
    "template <class T> static inline T atomicAdd(T *p, T x) { T old = *p; *p += x; return old; }\n"
    "template <class T> static inline T atomicMin(T *p, T x) { T old = *p; if (x < old) *p = x; return old; }\n"
    "template <class T> static inline T atomicMax(T *p, T x) { T old = *p; if (x > old) *p = x; return old; }\n"
    "template <class T> static inline T atomicOr(T *p, T x) { T old = *p; *p |= x; return old; }\n"
    "template <class T> static inline T atomicAnd(T *p, T x) { T old = *p; *p &= x; return old; }\n"
    "template <class T> static inline T atomicCAS(T *p, T a, T x) { T old = *p; if (old == a) *p = x; return old; }\n"
    "static inline unsigned __float_as_uint(float x) { unsigned u; memcpy(&u, &x, 4); return u; }\n"
    "static inline float __uint_as_float(unsigned u) { float x; memcpy(&x, &u, 4); return x; }\n"
    "static inline float __fdiv_rn(float a, float b) { return a / b; }\nstatic inline float __fsqrt_rn(float a) { return sqrtf(a); }\n";

typedef struct judge {
  uint32_t bit;
  const char *tool, *command; /* %1$s the code, %2$s the folder */
} judge;
// clang-format off
static const judge judges[] = {
    {SNT_TARGET_SPIRV, "spirv-val", "spirv-val --target-env vulkan1.1 %1$s 2>&1"},
    {SNT_TARGET_OPENCL, "clang", "clang -x cl -cl-std=CL1.2 -fsyntax-only -Werror -Xclang -finclude-default-header %1$s 2>&1"},
    {SNT_TARGET_OPENCL, "clang",
     "clang -x cl -cl-std=CL3.0 -target spir64 -DSNT_DOT4=32 -fsyntax-only -Werror -Xclang -finclude-default-header %1$s 2>&1"},
    {SNT_TARGET_CUDA, "g++", "g++ -x c++ -std=c++17 -fsyntax-only -Wall -Werror -Wno-unused-variable -Wno-unknown-pragmas -include %2$s/shim.h %1$s 2>&1"},
    {SNT_TARGET_CUDA, "nvcc", "nvcc -x cu -std=c++17 -fmad=false -arch=sm_80 -ptx -o %2$s/out.ptx %1$s 2>&1"},
    {SNT_TARGET_CUDA, "nvcc", "nvcc -x cu -std=c++17 -fmad=false -arch=sm_90 -ptx -o %2$s/out.ptx %1$s 2>&1"},
};
// clang-format on

bool codegen_judge(const codegen_target *t, const codegen_code *code, codegen_verdict verdict, void *user) {
  char folder[] = "/tmp/sinter-codegen-XXXXXX", path[64], shim_path[64], command[512];
  ir_arena arena;
  if (!mkdtemp(folder)) return false;
  snprintf(path, sizeof path, "%s/code%s", folder, t->suffix);
  snprintf(shim_path, sizeof shim_path, "%s/shim.h", folder);
  bool written = codegen_write_file(path, code->data, code->size) && codegen_write_file(shim_path, shim, sizeof shim - 1);
  ir_arena_init(&arena, NULL);
  for (size_t i = 0; i < IR_COUNT(judges) && written; i++) {
    const judge *j = &judges[i];
    int status = -1;
    if (j->bit != t->bit) continue;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(command, sizeof command, j->command, path, folder);
#pragma GCC diagnostic pop
    const char *said = codegen_has_tool(j->tool) ? codegen_command(&arena, &status, "%s", command) : NULL;
    verdict(user, j->tool, status, said);
  }
  int ignored;
  codegen_command(&arena, &ignored, "rm -r %s", folder);
  ir_arena_free(&arena);
  return written;
}
