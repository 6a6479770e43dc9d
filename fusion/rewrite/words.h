/* Sums over rows of constant fields of bytes, read as words (fusion/rewrite/words.c). */
#ifndef FUSION_REWRITE_WORDS_H
#define FUSION_REWRITE_WORDS_H
#include "fusion/rebuild.h"

/* The sum over the last `summed` axes of `matrix`, f32 [rows, summed..], of its product with `vector`, which has as many elements; 0: not such rows.
   slices: its vector may be cut into slices of 8 bits, whose bound is of its own (docs/numerics.md). */
uint32_t rewrite_words_sum(rebuild *, uint32_t matrix, uint32_t vector, uint32_t summed, bool slices);
/* A rule: a product of several rows with such a matrix [n, k], which is read as words, too: [n / lanes, k, lanes]. */
uint32_t rewrite_words_product(rebuild *);
#endif
