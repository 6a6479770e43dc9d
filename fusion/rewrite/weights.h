/* Contractions with constants of fewer bytes, a rule of the rewriting pass. */
#ifndef FUSION_REWRITE_WEIGHTS_H
#define FUSION_REWRITE_WEIGHTS_H
#include "fusion/rebuild.h"

/* The contraction with what its operands are before they are scaled channel by channel, and scaled after it; 0: nothing is to be done. */
uint32_t rewrite_narrow_weights(rebuild *);
#endif
