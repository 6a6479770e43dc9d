/* Words of four bytes, for devices that multiply four at once (fusion/words.c). */
#ifndef FUSION_WORDS_H
#define FUSION_WORDS_H
#include "fusion/fusion.h"

typedef struct words_labels { /* of an operand of a contraction, and of its result */
  const ir_expr *own, *out;
  uint32_t rank, out_rank;
} words_labels;

/* The attributes of a view, to be made another's. */
typedef struct words_attrs {
  ir_attr_value at[IR_ATTR_COUNT];
  ir_expr own[IR_ATTR_COUNT][SNT_MAX_RANK];
} words_attrs;
void words_copy_attrs(const ir_graph *, uint32_t view, words_attrs *);

bool words_are_wanted(const fusion_context *);
/* Of a product with this varying operand. */
bool words_pay(const fusion_context *, const ir_graph *, uint32_t varying);
/* The axis of an operand of bytes that words may lie along: of those that are summed, the longest whose bytes lie beside each other where
   the operand is stored, else the longest. False: none is. */
bool words_axis(const ir_graph *, uint32_t node, const words_labels *, uint32_t *axis);
/* Do they lie so where the operand is stored? Else it is stored once more, turned. */
bool words_lie_ready(const ir_graph *, uint32_t node, uint32_t axis);
/* Whole numbers of 9 bits, as zero points of bytes are: what else is taken off a byte (a mean) is none (fusion/quantised.c). */
bool words_are_whole(const ir_graph *, uint32_t node);
#endif
