/* The order of a convolution's terms in local memory, for the rules of the rewriting pass. */
#ifndef FUSION_REWRITE_TAP_ORDER_H
#define FUSION_REWRITE_TAP_ORDER_H
#include "fusion/rebuild.h"

/* Rules (rebuild.h). A contraction of a window and a constant with channels before taps, as one with taps before channels. */
uint32_t rewrite_tap_order(rebuild *);
/* One of channels that are no vector, for matrix units, over rows of taps of a source that is stored so (tap_rows.c), where that pays. */
uint32_t rewrite_tap_rows(rebuild *);
bool rewrite_goes_through_local(const fusion_context *); /* do contractions, in tiles? */
#endif
