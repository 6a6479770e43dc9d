/* The tables of ir/math/pieces.c held to what ir/kir_math.def promises: erf and tanh as km_erf_by_pieces and km_tanh_by_pieces make them,
   for every f32 from 2^-20 to 10 (below, erf is a product and tanh its argument), against the double functions.
   docs/derive/pieces.py > pieces.h && cc -O3 -mfma -ffp-contract=off -I. docs/derive/pieces_check.c -lm && ./a.out     (seconds; prints the largest error, results above 1 and
   that of infinity) */
#include "pieces.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static float of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}

static float erf_by_pieces(float x) {
  const float a = x > 0x1.effffep+1f ? 0x1.effffep+1f : x, t = a + 0x1.8p21f, r = a - (t - 0x1.8p21f);
  float sum = ERF[0][bits_of(t) & 15];
  for (int i = 1; i < 6; i++) sum = fmaf(sum, r, ERF[i][bits_of(t) & 15]);
  return sum;
}

static float tanh_by_pieces(float x) {
  const float a = x > 9.02f ? 9.02f : x;
  const uint32_t bits = bits_of(a + 1), number = bits >> 21 & 15;
  const float r = a - (of_bits(bits & 0xffe00000u) - 1);
  float sum = TANH[0][number];
  for (int i = 1; i < 7; i++) sum = fmaf(sum, r, TANH[i][number]);
  return sum;
}

static void check(const char *name, float (*ours)(float), double (*right)(double)) {
  double worst = 0;
  float at = 0;
  unsigned above = 0;
  for (uint32_t bits = bits_of(0x1p-20f); bits <= bits_of(10.0f); bits++) {
    const float x = of_bits(bits), y = ours(x);
    const double exact = right((double)x);
    int exponent;
    frexp(exact, &exponent);
    const double error = fabs((double)y - exact) / ldexp(1, exponent - 24);
    if (error > worst) worst = error, at = x;
    above += y > 1;
  }
  printf("%s: %.3f ULP at %a, %u above 1, of infinity %a\n", name, worst, (double)at, above, (double)ours(INFINITY));
}

int main(void) {
  check("erf", erf_by_pieces, erf);
  check("tanh", tanh_by_pieces, tanh);
}
