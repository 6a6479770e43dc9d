/* What fusion/rewrite/words.c, word_bytes.c and word_values.c share: rows of constant fields as words, neighbouring rows in neighbouring lanes. */
#ifndef FUSION_REWRITE_WORDS_PRIVATE_H
#define FUSION_REWRITE_WORDS_PRIVATE_H
#include "fusion/rewrite/words.h"

enum { WORDS_BYTES = 4 /* of a word */, WORDS_FACTORS = 4, WORDS_PACKED = 8, WORDS_SLICES = 3 /* of a vector of floats */ };

typedef struct words {
  rebuild *r;
  ir_tensor from, to; /* [n, s.., bytes, fields]; [n / lanes, s.., words, vectors * lanes] */
  int64_t lanes, fields, vectors;
  bool only_codes; /* more vectors than are summed as floats */
  bool sliced;     /* the one vector, of floats, becomes codes of three sizes, or there is no sum */
  uint32_t packed_count, source[WORDS_PACKED], packed[WORDS_PACKED];
} words;

bool words_is_pointwise(const ir_node *);
bool words_only_units(const ir_tensor *, const ir_tensor *); /* the same elements, but for axes of one at the end */
/* A constant of [n, rest..] as [n / lanes, rest.., lanes] of `type`, whose elements may be several of the source's. 0: its bytes are not at hand. */
uint32_t words_pack(words *, uint32_t node, const ir_tensor *type);
uint32_t words_for_vectors(words *, uint32_t node); /* what is [.., lanes], for each of the vectors */
uint32_t words_shared(words *, uint32_t node);      /* what all bytes of a block share, beside the words. 0: it differs from byte to byte */
uint32_t words_joined_bytes(const words *, uint32_t concat); /* the constant bytes whose fields are put together. 0: they are not */
/* Those elements of [vectors, s.., words, any] that are the same for all lanes, beside the words. */
uint32_t words_element(words *, uint32_t vectors, uint32_t at);
/* What all terms of a word share, off the matrix: as many factors beside the words. */
uint32_t words_take_factors(words *, uint32_t *matrix, uint32_t factors[WORDS_FACTORS]);
/* Are the vectors codes of 8 bits times scales, which the device multiplies four at once? */
bool words_are_codes(const rebuild *, uint32_t vectors);
/* The sums of words beside vectors of codes of 8 bits times a scale a block, where the device multiplies four bytes at once; `to` then has
   fewer words. 0: other vectors, or another matrix. */
uint32_t words_times_codes(words *, uint32_t matrix, uint32_t vectors);
#endif
