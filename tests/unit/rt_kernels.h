/* One kernel in every target's text, for tests of the backends that must not depend on the generators:
   y[i] = a * x[i] + i for i < n; items (64,1,1); slot 0 x, slot 1 y; scalars n u32 at 0, a f32 at 4; the group count follows at 8. */
#ifndef TESTS_UNIT_RT_KERNELS_H
#define TESTS_UNIT_RT_KERNELS_H
#include "runtime/backend.h"

typedef struct test_code {
  rt_code code;
  void *owned;
  size_t owned_size;
  ir_arena arena;
  kir_kernel kernel;
} test_code;
/* False with a reason when it cannot be had here (no SPIR-V assembler). `texel`: x is read through a texel buffer (Vulkan only). */
bool test_code_make(test_code *, uint32_t target, bool texel, const char **why);
void test_code_free(test_code *);
const char *test_code_broken(uint32_t target); /* does not compile */
#endif
