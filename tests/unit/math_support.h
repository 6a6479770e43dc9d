/* What the tests of transcendental functions share. For programs of one thread. */
#ifndef TESTS_UNIT_MATH_SUPPORT_H
#define TESTS_UNIT_MATH_SUPPORT_H
#include "ir/kernel.h"

uint32_t math_bits(float);
float math_float(uint32_t bits);
void math_seed(uint32_t seed); /* not 0 */
uint32_t math_random(void);

typedef struct math_truth {
  kir_op op;
  long double (*one)(long double);
  long double (*two)(long double, long double);
} math_truth;
extern const math_truth math_truths[];
extern const uint32_t math_truth_count;

/* Units in the last place; 1e9 for a wrong NaN, infinity or sign of zero. `flush`: what lies below 2^-126 may be 0. */
double math_error(float got, long double want, bool flush);

/* Samples first .. first + count of: `spread` bit patterns one_in apart and as many dense ones, in turns; then math_edge_count edges,
   again and again. Functions of two arguments get random pairs. */
void math_fill(const math_truth *, uint64_t first, uint64_t spread, uint32_t one_in, uint32_t count, uint32_t *a, uint32_t *b);
uint32_t math_edge(uint32_t n);
extern const uint32_t math_edge_count;
#endif
