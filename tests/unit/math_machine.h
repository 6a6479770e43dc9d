/* A model of devices that evaluates a kernel of one expansion for many arguments at once: division and 1/sqrt as wrong as OpenCL and Vulkan
   allow, with and without fma, keeping or flushing denormals. */
#ifndef TESTS_UNIT_MATH_MACHINE_H
#define TESTS_UNIT_MATH_MACHINE_H
#include "ir/kernel.h"

enum { MATH_WIDTH = 256 };
#define MATH_EACH for (uint32_t c = 0; c < MATH_WIDTH; c++)
typedef struct math_device {
  const char *name;
  bool fma, exact_div, rough, flush, root_once, small;
  uint8_t table; /* lanes of vectors that are tables */
} math_device; /* rough: and NaN is not to be relied on, as in SPIR-V; root_once: 1/sqrt has one rounding; small: pass small gives back what it flushes */

typedef struct math_machine {
  const kir_kernel *k;
  math_device d;
  uint32_t *cells; /* MATH_WIDTH of each instruction */
  const uint32_t *in[2];
  uint32_t condition, sides[2], side; /* of the branch being walked: no expansion nests them */
} math_machine;

uint32_t *math_cells_of(const math_machine *, uint32_t inst);
bool math_machine_run(math_machine *); /* false, and a failed check: an operation that no expansion should contain */
#endif
