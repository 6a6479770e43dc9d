/* Loops over all weights of a model, which only vectors make short (release builds compile this file for them). In: rows of f32, of any alignment. */
#include "fusion/scale_rows.h"
#include <float.h>
#include <math.h>
#include <string.h>

float scale_number(const void *data, int64_t i) {
  float value;
  memcpy(&value, (const char *)data + i * (int64_t)sizeof value, sizeof value);
  return value;
}

/* A row of numbers times one. */
void scale_row(float *restrict to, const void *restrict from, int64_t count, float factor, bool divides) {
  for (int64_t i = 0; !divides && i < count; i++) to[i] = scale_number(from, i) * factor;
  for (int64_t i = 0; divides && i < count; i++) to[i] = scale_number(from, i) / factor;
}

/* A product that is no number, or that fell below the normal numbers from above (but for products with zero). */
static uint32_t is_lost(float from, float product, uint32_t may_vanish) {
  const float p = fabsf(product);
  return (uint32_t) !(p <= FLT_MAX) | ((uint32_t)(p < FLT_MIN) & (uint32_t)(fabsf(from) >= FLT_MIN) & (may_vanish ^ 1u));
}

static uint32_t bits_of(const void *data, int64_t i) {
  uint32_t bits;
  memcpy(&bits, (const char *)data + i * (int64_t)sizeof bits, sizeof bits);
  return bits;
}

/* The smallest size from FLT_MIN on and the largest, as bits without the sign: such compare as the numbers do, NaN above all. Turned so that the
   normal numbers come first, all sizes below them come last. */
fusion_sizes scale_read_sizes(const void *data, int64_t count) {
  const float tiny = FLT_MIN, endless = INFINITY;
  const uint32_t turn = 0x80000000u - bits_of(&tiny, 0);
  int32_t least = (int32_t)(bits_of(&endless, 0) + turn), most = 0;
  fusion_sizes sizes = {.known = true};
  for (int64_t i = 0; i < count; i++) {
    const int32_t size = (int32_t)(bits_of(data, i) & 0x7fffffffu), turned = (int32_t)((uint32_t)size + turn);
    most = most < size ? size : most;
    least = least < turned ? least : turned;
  }
  const uint32_t first = (uint32_t)least - turn;
  memcpy(&sizes.least, &first, sizeof sizes.least);
  memcpy(&sizes.most, &most, sizeof sizes.most);
  return sizes;
}

/* Whether no product of a row loses more than rounding. */
bool scale_row_keeps(const void *from, int64_t count, float factor, bool divides) {
  const uint32_t by_zero = factor == 0;
  uint32_t lost = !(fabsf(factor) <= FLT_MAX);
  for (int64_t i = 0; i < count; i++) {
    const float x = scale_number(from, i);
    lost |= is_lost(x, divides ? x / factor : x * factor, by_zero);
  }
  return !lost;
}

void scale_sum(const double *restrict from, int64_t apart, const double factors[3], double *restrict to) {
  for (int64_t i = 0; i < SCALE_RUN; i++) to[i] = factors[0] * from[i] + factors[1] * from[apart + i] + factors[2] * from[2 * apart + i];
}

void scale_narrow(float *restrict to, const double *restrict from) {
  for (int64_t i = 0; i < SCALE_RUN; i++) to[i] = (float)from[i];
}
