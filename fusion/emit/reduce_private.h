/* A reduction or contraction that is emitted in place: what its sweeps (emit/reduce.c), one term (emit/reduce_terms.c) and the place of an extremum
   (emit/reduce_index.c) share. */
#ifndef FUSION_EMIT_REDUCE_PRIVATE_H
#define FUSION_EMIT_REDUCE_PRIVATE_H
#include "fusion/emit_private.h"

typedef struct reduction {
  uint32_t node, term, count; /* reduced axes */
  uint32_t rows;
  bool contract, tail; /* tail: what does not fill a vector of every item; the loop starts at the item */
  bool edge;           /* some elements of a vector lie outside the axis */
  bool of_numbers;     /* an extremum that may leave NaNs out: emit/nan.c */
  uint32_t lanes, accumulators, unroll, items;
  kir_type type; /* of one accumulator */
  ir_expr at[SNT_MAX_RANK], extent[SNT_MAX_RANK];
  uint32_t label[SNT_MAX_RANK]; /* reduce: operand axis; contract: label */
  const map_access *result;     /* the first of `rows` */
  ir_expr item;
  const sweep *how;
} reduction;

/* emit/reduce_terms.c */
void reduction_open_axes(const emit *, reduction *);
map_access reduction_factor_at(const emit *, const reduction *, uint32_t operand); /* of a contraction */
map_access reduction_operand(const emit *, const reduction *, uint32_t row);       /* of what is no contraction */
kir_op reduction_op(const emit *, const reduction *);
uint32_t reduction_combine(emit *, const reduction *, uint32_t acc, uint32_t value);
uint32_t reduction_add(emit *, const reduction *, uint32_t acc);                  /* one more term */
void reduction_add_rows(emit *, const reduction *, uint32_t step, uint32_t *acc); /* and of each row side by side */
uint32_t reduction_take_factor(const emit *, reduction *);
uint32_t reduction_factor(emit *, const reduction *, uint32_t factor, uint32_t row);
uint32_t reduction_extreme(emit *, kir_type, double);
uint32_t reduction_identity(emit *, const reduction *, uint32_t lanes);

/* emit/reduce.c */
void reduction_fit(const emit *, reduction *); /* lanes and accumulators to the terms that there are */

/* emit/reduce_index.c */
uint32_t reduction_index(emit *, reduction *);
#endif
