/* Rank statistics of bench/cost. */
#include "bench/cost.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double rank_of(const double *values, uint32_t count, uint32_t i) {
  uint32_t less = 0, equal = 0;
  for (uint32_t k = 0; k < count; k++) {
    less += values[k] < values[i];
    equal += values[k] == values[i];
  }
  return less + 0.5 * (equal - 1); /* ties share the mean of their ranks */
}

double cost_spearman(const double *a, const double *b, uint32_t count) {
  const double mean = 0.5 * (count - 1);
  double both = 0, own_a = 0, own_b = 0;
  for (uint32_t i = 0; i < count; i++) {
    const double x = rank_of(a, count, i) - mean, y = rank_of(b, count, i) - mean;
    both += x * y;
    own_a += x * x;
    own_b += y * y;
  }
  return own_a > 0 && own_b > 0 ? both / sqrt(own_a * own_b) : 0;
}

double cost_agreement(const double *a, const double *b, uint32_t count, double noise) {
  double same = 0, pairs = 0;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < i; k++) {
      const double least = fmin(b[i], b[k]);
      if (fabs(b[i] - b[k]) <= noise * least) continue;
      pairs++;
      if (a[i] != a[k]) same += (a[i] < a[k]) == (b[i] < b[k]) ? 1 : -1;
    }
  return pairs > 0 ? same / pairs : 1;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void cost_tie(const double *values, uint32_t count, double noise, double *tied) {
  memcpy(tied, values, count * sizeof *tied);
  qsort(tied, count, sizeof *tied, by_value);
  uint32_t classes = 0; /* the least of each, in front of what is still to come */
  for (uint32_t i = 0; i < count; i++)
    if (!classes || tied[i] > tied[classes - 1] * (1 + noise)) tied[classes++] = tied[i];
  double least[COST_BENCH_PARTITIONS];
  memcpy(least, tied, classes * sizeof *least);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t k = classes - 1;
    while (k && least[k] > values[i]) k--;
    tied[i] = least[k];
  }
}

double cost_median(double *values, uint32_t count) {
  if (!count) return 0;
  qsort(values, count, sizeof *values, by_value);
  return values[count / 2];
}
