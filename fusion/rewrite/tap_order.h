/* The order of a convolution's terms in local memory, for the rules of the rewriting pass. */
#ifndef FUSION_REWRITE_TAP_ORDER_H
#define FUSION_REWRITE_TAP_ORDER_H
#include "fusion/rebuild.h"

/* A contraction of a window and a constant with channels before taps, as one with taps before channels; of channels that are no vector, for matrix units, over
   rows of taps and channels of a source that is stored so, where that pays. 0: it is none. */
uint32_t rewrite_tap_order(rebuild *);
#endif
