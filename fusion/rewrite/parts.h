/* Sums over rows of alternating parts (fusion/rewrite/parts.c). */
#ifndef FUSION_REWRITE_PARTS_H
#define FUSION_REWRITE_PARTS_H
#include "fusion/rebuild.h"

/* The sum over the last `summed` axes of `matrix`, f32, of its product with `vector`, which has as many elements; 0: not such rows. */
uint32_t rewrite_parts_sum(rebuild *, uint32_t matrix, uint32_t vector, uint32_t summed);
/* The matrix with fields of bytes on an axis of their own below its last reshape, or as it is (fusion/rewrite/fields.c). */
uint32_t rewrite_fields(rebuild *, uint32_t matrix);
#endif
