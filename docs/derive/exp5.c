/* EXP5_FUSED and the roots of ir/math/exp.c held to what ir/kir_math.def promises: e^x as km_exp makes it with fused multiply-adds, for
   every f32 of magnitude 2^-12 to 88 (below, the polynomial's error is nothing beside the last rounding), against the double function.
   cc -O3 -mfma docs/derive/exp5.c -lm && ./a.out     (seconds; prints the largest error on each side of 0)
   The coefficients are the weighted least maximum of e^r - 1 - r - r D(r) on +-0.34674, weight 2.4 below 0, rounded: an iteratively reweighted fit, as
   docs/derive/rational.py makes them. Weight 1 gives 2.13, 2.0 with the first power exact 2.4. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static float exp5(float x) {
  static const float d[] = {0x1.0deeeep-7f, 0x1.573c54p-5f, 0x1.555f34p-3f, 0x1.fffdcp-2f, -0x1.5c2ff6p-21f};
  const float t = fmaf(x, 0x1.715476p+0f, 0x1.8p23f), n = t - 0x1.8p23f;
  const float r = fmaf(n, 0x1.bd0106p-13f, fmaf(n, -0x1.63p-1f, x));
  uint32_t bits;
  float s, sum = d[0];
  memcpy(&bits, &t, 4);
  bits = (bits - 0x4b400000 + 127) << 23;
  memcpy(&s, &bits, 4);
  for (int i = 1; i < 5; i++) sum = fmaf(sum, r, d[i]);
  return fmaf(fmaf(r, sum, r), s, s);
}

/* The form where a vector is a table of 16 (exp_by_roots): 2^(j / 16), by how much of itself that float is less, and three terms. */
static float exp_by_roots(float x) {
  const float t = fmaf(x, 0x1.715476p+0f, 0x1.8p19f), n = t - 0x1.8p19f;
  const float r = fmaf(n, 0x1.bd0106p-13f, fmaf(n, -0x1.63p-1f, x));
  uint32_t bits;
  memcpy(&bits, &t, 4);
  const double root = exp2((bits & 15) / 16.0);
  const float s = (float)root, rest = (float)((root - s) / s);
  const float p = fmaf(r, fmaf(fmaf(0x1.555556p-3f, r, 0x1.00022p-1f), r, 1), rest);
  return ldexpf(fmaf(p, s, s), (int)floorf(n));
}

static void check(const char *name, float (*form)(float), float from, float to) {
  uint32_t first, last;
  double worst = 0;
  float at = 0;
  memcpy(&first, &from, 4), memcpy(&last, &to, 4);
  for (uint32_t i = first; i <= last; i++) {
    float x;
    int power;
    memcpy(&x, &i, 4);
    const double right = exp((double)x);
    if (right < 0x1p-126) continue; /* degree 5: may become 0; by roots: one rounding more, half a place */
    frexp(right, &power);
    const double error = fabs((double)form(x) - right) / ldexp(1, power - 24);
    if (error > worst) worst = error, at = x;
  }
  printf("%s %.4f ulp at %a\n", name, worst, (double)at);
}

int main(void) {
  check("degree 5", exp5, 0x1p-12f, 88);
  check("degree 5", exp5, -0x1p-12f, -88);
  check("roots", exp_by_roots, 0x1p-12f, 88);
  check("roots", exp_by_roots, -0x1p-12f, -88);
  return 0;
}
