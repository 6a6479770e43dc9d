/* For the tests of kernel IR: kernels from text or from tests/golden/kernel, and dispatches on the interpreter. Run from the project's root.
   Failures are answered and explained on a comment line of the output; counting them is the test's part. */
#ifndef TESTS_KERNEL_SUPPORT_H
#define TESTS_KERNEL_SUPPORT_H
#include "ir/kir_interp.h"

/* The file's bytes, terminated, in the arena; null if it cannot be read. */
char *kernel_read_file(ir_arena *, const char *path, size_t *length);
/* Parses and verifies. */
bool kernel_from_text(kir_kernel *, ir_arena *, const char *text);
bool kernel_from_golden(kir_kernel *, ir_arena *, const char *name);
char *kernel_print(const kir_kernel *);

/* A dispatch with its buffers and scalars gathered one after the other. */
typedef struct kernel_dispatch {
  kir_interp_buffer buffers[16];
  kir_interp_image images[16];
  uint8_t block[128];
  kir_interp_info info;
  kir_interp_stats stats;
  snt_diag diag;
} kernel_dispatch;
void kernel_dispatch_init(kernel_dispatch *, const kir_kernel *, uint64_t groups);
void kernel_dispatch_buffer(kernel_dispatch *, void *data, uint64_t bytes);
void kernel_dispatch_scalar(kernel_dispatch *, const char *name, double value);
snt_result kernel_dispatch_run(kernel_dispatch *);

/* Numbers that look random and are the same everywhere: in [-1, 1). */
float kernel_number(uint32_t *state);
void kernel_numbers(float *to, size_t count, uint32_t seed);
#endif
