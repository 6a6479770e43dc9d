/* A plan that was compiled by itself becomes a loop of another plan's steps: the body of a repeat, or a branch (fusion/branch.c). */
#ifndef FUSION_LINK_H
#define FUSION_LINK_H
#include "fusion/fusion.h"

/* The outer buffer that stands for one of the inner plan's; `other` where `swap` is not 0. */
typedef struct link_place {
  uint32_t buffer, other;
  ir_expr swap;
  bool known;
} link_place;

typedef struct plan_link {
  fusion_context *c, *inner;     /* both given */
  link_place *places;            /* per buffer of the inner plan */
  uint32_t first_kernel, number; /* of the inner graph, for explain: plan_loop.body */
} plan_link;

/* Kernels and graphs become the outer's; no place is known yet. The inner plan may get `spare` buffers more before the rest is placed. */
snt_result fusion_link_begin(plan_link *, uint32_t spare);
/* Places for what has none: constants that the program has already are shared, everything else is new. */
snt_result fusion_link_rest(plan_link *);
/* The steps of the inner plan, of which there is one at least, at the end of the outer's: trips of the loop. */
snt_result fusion_link_steps(plan_link *, const plan_loop *own);
#endif
