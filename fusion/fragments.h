/* Matrix units: products of fragments that a subgroup holds together. Which lane holds what of one is most devices' secret, so they come out of local memory
   and go back there; where it is known (`open`), lanes take elements out of sums and make operands of them. */
#ifndef FUSION_FRAGMENTS_H
#define FUSION_FRAGMENTS_H
#include "fusion/emit_private.h"

typedef struct matrix_units {
  uint32_t type;  /* KIR_MMA_ */
  kir_mma size;   /* of a fragment */
  uint32_t lanes; /* of a subgroup */
  bool open;      /* fragment_element and fragment_make are there */
} matrix_units;

enum { FRAGMENT_A = 1, FRAGMENT_B, FRAGMENT_C, FRAGMENT_PAD = 16 /* bytes behind a row in local memory: rows begin in other banks */ };

/* Units for such elements, where the kernel is printed for no target but that of the profile: another has other sizes. */
bool matrix_units_find(const fusion_context *, int32_t element, matrix_units *out);
void matrix_units_use(emit *, const matrix_units *);            /* by the kernel */
uint32_t fragment_zero(emit *, const char *name, int32_t base); /* of sums */
/* The fragment of `kind` whose first element lies at `at` of the memory, rows (columns: by_columns) `pitch` elements apart. */
uint32_t fragment_load(emit *, uint32_t memory, uint32_t kind, ir_expr at, uint32_t pitch, bool by_columns);
uint32_t fragment_multiply(emit *, uint32_t a, uint32_t b, uint32_t sum); /* sum + a b */
uint32_t fragment_element(emit *, uint32_t sum, uint32_t element);        /* of those that the lane holds (kir_mma_own) */
uint32_t fragment_make(emit *, int32_t base, uint32_t kind, uint32_t count, const uint32_t *elements);
void fragment_store(emit *, uint32_t memory, ir_expr at, uint32_t pitch, uint32_t sum);
/* Which of a panel's vectors is number `number` of `across` in a row: neighbours are neighbours in memory. Items that store at once have 128 bytes, and rows begin
   FRAGMENT_PAD bytes later each: where a row is no whole number of such, they take pieces of rows so far apart that these lie in banks of their own.
   bytes: of a vector; less than a word: rows follow each other. */
typedef struct fragment_place {
  ir_expr row, vector;
} fragment_place;
fragment_place fragment_spread(expr_pool *, ir_expr number, int64_t across, int64_t bytes);
void fragment_barrier(emit *); /* what the subgroup has stored is there for all of it */
#endif
