/* Multiply-adds out of additions and multiplications (ir/base/fused.c) beside those of the C library: all bits, among results that cancel,
   are halfway, or below the normal range of floats. */
#include "ir/fused.h"
#include "tests/tap.h"
#include <stdint.h>
#include <string.h>

static uint64_t next(uint64_t *state) { return *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407); }

/* A double within 2^-24 and 2^24, every other one of few bits. */
static double any_double(uint64_t *state) {
  const uint64_t r = next(state);
  uint64_t bits = r >> 12 | (UINT64_C(1000) + (r >> 3) % 48) << 52 | (r & UINT64_C(1) << 63);
  double x;
  if (r & 16) bits &= ~(UINT64_C(0xfffff) << (r >> 5) % 30);
  memcpy(&x, &bits, sizeof x);
  return x;
}
static float any_float(uint64_t *state) {
  const uint32_t bits = (uint32_t)(next(state) >> 20);
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

int main(void) {
  enum { COUNT = 300000 };
  uint64_t state = 1;
  uint32_t doubles = 0, floats = 0, any = 0;
  for (uint32_t i = 0; i < COUNT; i++) {
    const double x = any_double(&state), y = any_double(&state), near = -x * y, z = any_double(&state);
    const double c = i % 7 == 0 ? near : i % 11 == 0 ? near * (1 + 0x1p-50) : z;
    doubles += ir_exact_fma(x, y, c) != fma(x, y, c);
    floats += ir_exact_fmaf((float)x, (float)y, (float)c) != fmaf((float)x, (float)y, (float)c);
    const float a = any_float(&state), b = any_float(&state), d = any_float(&state), given = ir_exact_fmaf(a, b, d), right = fmaf(a, b, d);
    any += given != right && !(isnan(given) && isnan(right));
  }
  tap_is_int(doubles, 0, "doubles");
  tap_is_int(floats, 0, "floats");
  tap_is_int(any, 0, "floats of all bits");
  tap_ok(isinf(ir_exact_fma(INFINITY, 1, 1)) && isnan(ir_exact_fma(INFINITY, 1, -INFINITY)) && isinf(ir_exact_fmaf(0x1p127f, 2, 1)),
         "infinities");
  return tap_done();
}
