/* Rows of weights times a factor. */
#ifndef FUSION_SCALE_ROWS_H
#define FUSION_SCALE_ROWS_H
#include "fusion/fusion.h"

float scale_number(const void *data, int64_t i); /* of f32 of any alignment */
void scale_row(float *restrict to, const void *restrict from, int64_t count, float factor, bool divides);
fusion_sizes scale_read_sizes(const void *data, int64_t count);                    /* the smallest size from FLT_MIN on and the largest */
bool scale_row_keeps(const void *from, int64_t count, float factor, bool divides); /* does no product lose more than rounding? */
#endif
