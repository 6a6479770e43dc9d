/* Taps of a convolution that read nothing but padding (fusion/rewrite_taps.c). */
#ifndef FUSION_REWRITE_TAPS_H
#define FUSION_REWRITE_TAPS_H
#include "fusion/rebuild.h"

/* A rule (rebuild.h). */
uint32_t rewrite_live_taps(rebuild *);
#endif
