/* Multiply-adds with one rounding out of additions and multiplications: the sum is rounded to odd in more bits than the result has, after
   which rounding to nearest is right (S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using
   rounding to odd", IEEE Transactions on Computers 57(4), 2008). In: values that the host computes in IEEE 754's own widths. Out: as fma;
   of doubles whose product or its error leaves the range, rounded twice. */
#include "ir/fused.h"
#include <stdint.h>
#include <string.h>

/* sum + error is a + b without any rounding (D. Knuth). */
static double two_sum(double a, double b, double *error) {
  const double sum = a + b, part = sum - a;
  *error = (a - (sum - part)) + (b - part);
  return sum;
}

/* Where something was rounded away, the neighbour of the sum towards it whose last bit is set, or the sum itself if that is. */
static double to_odd(double sum, double error) {
  uint64_t bits;
  if (error == 0 || !isfinite(sum)) return sum;
  memcpy(&bits, &sum, sizeof bits);
  if (bits & 1) return sum;
  bits += (error > 0) == (sum > 0) ? 1 : UINT64_MAX;
  memcpy(&sum, &bits, sizeof sum);
  return sum;
}

float ir_exact_fmaf(float a, float b, float c) {
  double error; /* a product of floats is a double */
  const double sum = two_sum((double)a * b, c, &error);
  return (float)to_odd(sum, error);
}

/* The halves of a double's bits (T. Dekker, G. Veltkamp). */
static double upper(double x) {
  const double by = x * 134217729.0;
  return by - (by - x);
}

double ir_exact_fma(double a, double b, double c) {
  const double product = a * b, size = fabs(product);
  if (!(size > 0x1p-900 && size < 0x1p1000 && fabs(a) < 0x1p990 && fabs(b) < 0x1p990 && fabs(c) < 0x1p1000)) return product + c;
  const double a1 = upper(a), a2 = a - a1, b1 = upper(b), b2 = b - b1;
  const double rest = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2;
  double low, error;
  const double high = two_sum(c, rest, &low), sum = two_sum(product, high, &error);
  double lost;
  const double tail = two_sum(low, error, &lost);
  return sum + to_odd(tail, lost);
}
