/* Contractions that one kernel computes tile by tile together: equal labels and extents, each with accumulators of its own. */
#ifndef FUSION_CONTRACT_SET_H
#define FUSION_CONTRACT_SET_H
#include "fusion/fusion.h"

enum {
  CONTRACT_SET_MAX = 4,
  CONTRACT_ROW_SHARES = 2,   /* work-items a processor, where rows that two of them need are made twice */
  CONTRACT_ROWS_TO_PAY = 16, /* that share a panel of an operand which is copied, but could be read in vectors where it lies */
  CONTRACT_ROWS_TO_TURN = 2, /* of one that could not: two rows of 64 terms by 512 columns take 0.7 of the time, twelve a fifth */
  CONTRACT_LANE_STRIDE = 4,  /* elements between the lanes of a vector that is read where it lies, at most */
  CONTRACT_FAR_APART = 1024  /* bytes between its terms, from which on they meet in few cache sets */
};
typedef struct contract_set {
  uint32_t count, node[CONTRACT_SET_MAX]; /* the hero first */
} contract_set;

/* Rows that pay for a panel of an operand whose neighbours along the lanes lie so many elements apart. */
static inline int64_t contract_rows_to_pay(int64_t stride) {
  return stride >= 1 && stride <= CONTRACT_LANE_STRIDE ? CONTRACT_ROWS_TO_PAY : CONTRACT_ROWS_TO_TURN;
}
uint32_t contract_lane_operands(const ir_graph *,
                                uint32_t node); /* bit o: operand o varies along the result's last axis of several elements */
bool contract_alike(const ir_graph *, uint32_t a, uint32_t b); /* equal labels and extents: one tile fits both */
/* The members that are alike the hero. */
void contract_set_find(const fusion_context *, const fusion_group *, contract_set *);
/* Coordinates of `output` where the contractions of the set have `at`; false if it follows none of them element by element. */
bool contract_set_forward(const fusion_context *, const fusion_group *, const contract_set *, uint32_t output, map_access *at);
/* Can one tile hold them: no other contraction among the members, none feeds another, and every result reads all of them at one place. */
bool contract_pads_fit(const fusion_context *, const fusion_group *);
bool contract_set_fits(const fusion_context *, const fusion_group *, const char **why_not);
uint32_t contract_window_operand(const ir_graph *, uint32_t node); /* the operand that is a window; 0: none */
/* Could a contraction around `consumer` compute the rows of a depthwise convolution `producer` that it reads? By what both are and by the device. */
bool contract_may_stage(const fusion_context *, uint32_t producer, uint32_t consumer);
/* Could the depthwise convolution that `consumer` stages read rows of the contraction `product`, which are made in the same kernel? */
bool contract_may_make_rows(const fusion_context *, uint32_t product, const fusion_group *consumer);
/* The contraction of the group that its hero reads row by row (schedule/staged.c); 0: none. `product`: the one that it reads in turn; 0: none. */
uint32_t contract_staged_producer(const fusion_context *, const fusion_group *, uint32_t *product);
#endif
