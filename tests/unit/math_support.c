/* The truth in long double, the error in ULP, and the samples: where transcendental functions are measured. */
#include "tests/unit/math_support.h"
#include <float.h>
#include <math.h>

uint32_t math_bits(float x) {
  uint32_t b;
  memcpy(&b, &x, 4);
  return b;
}
float math_float(uint32_t b) {
  float x;
  memcpy(&x, &b, 4);
  return x;
}
static uint32_t random_state = 1;
void math_seed(uint32_t seed) { random_state = seed; }
uint32_t math_random(void) { /* xorshift */
  random_state ^= random_state << 13;
  random_state ^= random_state >> 17;
  return random_state ^= random_state << 5;
}

/* ---- the truth ---- */
static long double sigmoidl(long double x) { return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x)); }

static long double rsqrtl(long double x) { return 1 / sqrtl(x); }

// clang-format off
const math_truth math_truths[] = {
    {KIR_exp, expl, 0},     {KIR_exp2, exp2l, 0},   {KIR_expm1, expm1l, 0}, {KIR_sinh, sinhl, 0},   {KIR_cosh, coshl, 0},   {KIR_tanh, tanhl, 0},
    {KIR_log, logl, 0},     {KIR_log2, log2l, 0},   {KIR_log1p, log1pl, 0}, {KIR_asinh, asinhl, 0}, {KIR_acosh, acoshl, 0}, {KIR_atanh, atanhl, 0},
    {KIR_sin, sinl, 0},     {KIR_cos, cosl, 0},     {KIR_tan, tanl, 0},     {KIR_asin, asinl, 0},   {KIR_acos, acosl, 0},   {KIR_atan, atanl, 0},
    {KIR_atan2, 0, atan2l}, {KIR_pow, 0, powl},     {KIR_erf, erfl, 0},     {KIR_sigmoid, sigmoidl, 0}, {KIR_rsqrt, rsqrtl, 0},
};
// clang-format on

const uint32_t math_truth_count = IR_COUNT(math_truths);

static const double WRONG = 1e9;

double math_error(float got, long double want, bool flush) {
  const float rounded = (float)want;
  if (isnan(rounded) || isnan(got)) return isnan(rounded) && isnan(got) ? 0 : WRONG;
  if (isinf(got)) return got == rounded || (want > 0) == (got > 0) ? (fabsl(want) >= FLT_MAX * (1 - 0x1p-23L) ? 0 : WRONG) : WRONG;
  if (isinf(rounded)) return fabsf(got) == FLT_MAX && (got > 0) == (rounded > 0) && fabsl(want) < 2 * (long double)FLT_MAX ? 1 : WRONG;
  if (flush && fabsl(want - got) <= 0x1p-125L) return 0;
  if (rounded == 0 && got == 0) return !signbit(rounded) == !signbit(got) ? 0 : WRONG;
  int exponent = -149;
  if (want != 0) frexpl(want, &exponent);
  exponent = exponent - 24 < -149 ? -149 : exponent - 24;
  return (double)ldexpl(fabsl(want - got), -exponent);
}

/* ---- samples ---- */
// clang-format off
static const float thresholds[] = {0.25f, 1 / 3.f, 0.5f, 0.55f, 2 / 3.f, 0.70710678f, 0.786f, 0.921875f, 1, 1.3333333f, 1.41421356f, 1.5707964f, 2, 3.1415927f,
                                   3.92f, 3.94f, 6.2831855f, 9, 10, 20, 87.336544f, 88.029f, 88.722839f, 89.415986f, 103.97208f, 104, 126, 127, 128, 149, 150,
                                   151, 4096, 8192, 16384, 0x1p22f, 0x1p23f, 0x1p24f, 0x1p30f, 0x1p31f, 0x1p32f, 0x1p64f};
// clang-format on
static const float specials[] = {0,      -0.0f,   1,     -1,     2,       -2,       3,        -3,        0.5f, -0.5f,
                                 1e-40f, -1e-40f, 1e38f, -1e38f, FLT_MAX, -FLT_MAX, INFINITY, -INFINITY, NAN};
enum { NEAR = 8 };

uint32_t math_edge(uint32_t n) {
  const uint32_t exponents = 512 * 4;
  if (n < exponents) return (n / 4) << 23 | (const uint32_t[]){0, 1, 0x7fffff, 0x400000}[n % 4];
  n -= exponents;
  const uint32_t sign = (n & 1) << 31, around = n / 2 % (2 * NEAR), which = n / (4 * NEAR);
  return (math_bits(thresholds[which % IR_COUNT(thresholds)]) + around - NEAR) | sign;
}
const uint32_t math_edge_count = 512 * 4 + 4 * NEAR * IR_COUNT(thresholds);

/* Two arguments: bases and exponents whose powers stay in range, small integers, special pairs, neighbours in size, anything. */
static void pair_sample(uint32_t *a, uint32_t *b) {
  *a = math_random(), *b = math_random();
  const uint32_t kind = math_random() % 8;
  if (kind < 4) {
    *a = (*a & 0x807fffff) | (kind < 2 ? 126 + math_random() % 2 : 95 + math_random() % 64) << 23;
    const double y = ((int)(math_random() % 300000) - 150000) / 1000.0 / log2(fabs((double)math_float(*a)));
    *b = math_bits((float)(kind & 1 ? rint(y) : y));
  } else if (kind == 4) {
    *b = math_bits((float)(int)(math_random() % 65) - 32);
  } else if (kind == 5) {
    *a = math_bits(specials[math_random() % IR_COUNT(specials)]);
    if (math_random() & 1) *b = math_bits(specials[math_random() % IR_COUNT(specials)]);
  } else if (kind == 6) {
    *b = (*b & 0x807fffff) | ((((*a >> 23) & 255) + math_random() % 9 - 4) & 255) << 23;
  }
}

/* Where functions bend: most in +-1, some out to +-100. */
static uint32_t dense_sample(void) {
  static const double reach[] = {1, 1, 4, 4, 10, 20, 100, 100};
  const double r = reach[math_random() % IR_COUNT(reach)];
  return math_bits((float)(r * (math_random() / 2147483648.0 - 1)));
}

void math_fill(const math_truth *t, uint64_t first, uint64_t spread, uint32_t one_in, uint32_t count, uint32_t *a, uint32_t *b) {
  for (uint32_t c = 0; c < count; c++) {
    const uint64_t n = first + c;
    b[c] = 0;
    if (t->two) pair_sample(&a[c], &b[c]);
    else if (n < 2 * spread) a[c] = n & 1 ? dense_sample() : (uint32_t)(n / 2 * one_in);
    else a[c] = math_edge((uint32_t)(n - 2 * spread) % math_edge_count);
  }
}
