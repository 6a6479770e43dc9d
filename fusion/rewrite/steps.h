/* Products of one constant with the steps of a sequence, for the rewriting pass. */
#ifndef FUSION_REWRITE_STEPS_H
#define FUSION_REWRITE_STEPS_H
#include "fusion/rebuild.h"

enum { REWRITE_STEPS = 8 };   /* sequences at most */
typedef struct rewrite_step { /* one of the products of steps; that of all of them, in r->to */
  uint32_t of, product;
} rewrite_step;
/* The value of the contraction at hand as a step of a product with all steps; 0: it is none. `kept`: REWRITE_STEPS of a pass. */
uint32_t rewrite_steps(rebuild *, const ir_uses *, rewrite_step *kept);
#endif
