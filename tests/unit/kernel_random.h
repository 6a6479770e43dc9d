/* Random structured kernels for differential tests: the same seed gives the same kernel everywhere. Each dispatch of RANDOM_GROUPS groups writes
   only its own segments, so the result does not depend on the order of items. */
#ifndef TESTS_KERNEL_RANDOM_H
#define TESTS_KERNEL_RANDOM_H
#include "ir/kir_interp.h"

enum { RANDOM_ELEMENTS = 256, RANDOM_SEGMENT = 64, RANDOM_GROUPS = 2 };
enum { RANDOM_OFFSET = 16 }; /* elements before some buffers' first */
enum { F_IN, U_IN, B_IN, L_IN, S_IN, H_IN, G_IN, F_OUT, U_OUT, B_OUT, L_OUT, S_OUT, H_OUT, G_OUT, RANDOM_BUFFERS };
typedef struct random_buffers {
  uint8_t data[RANDOM_BUFFERS][(8 * RANDOM_SEGMENT + RANDOM_OFFSET) * 4];
} random_buffers;
extern const uint8_t random_bases[RANDOM_BUFFERS];
extern const uint32_t random_block[2]; /* the scalars */
uint64_t random_bytes(uint32_t buffer);

void random_kernel(kir_kernel *, uint64_t seed, bool with_fma);
void random_inputs(random_buffers *);
/* On the interpreter, from fresh inputs. */
snt_result random_run(const kir_kernel *, random_buffers *, snt_diag *);
/* A NaN is a NaN. The first difference is put into words. */
bool random_same(const random_buffers *, const random_buffers *, char *why, size_t size);
#endif
