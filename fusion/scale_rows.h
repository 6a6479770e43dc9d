/* Rows of weights times a factor. */
#ifndef FUSION_SCALE_ROWS_H
#define FUSION_SCALE_ROWS_H
#include "fusion/fusion.h"

float scale_number(const void *data, int64_t i); /* of f32 of any alignment */
void scale_row(float *restrict to, const void *restrict from, int64_t count, float factor, bool divides);
fusion_sizes scale_read_sizes(const void *data, int64_t count);                    /* the smallest size from FLT_MIN on and the largest */
bool scale_row_keeps(const void *from, int64_t count, float factor, bool divides); /* does no product lose more than rounding? */

enum { SCALE_RUN = 32 }; /* numbers beside each other, of which loops are made for vectors */
void scale_sum(const double *restrict from, int64_t apart, const double factors[3],
               double *restrict to);                                /* three runs, each times a number */
void scale_narrow(float *restrict to, const double *restrict from); /* a run as f32 */
#endif
