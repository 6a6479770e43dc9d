/* Taps of a convolution that read nothing but padding, everywhere (fusion/rewrite/taps.c) or at most positions (fusion/rewrite/tap_boxes.c). */
#ifndef FUSION_REWRITE_TAPS_H
#define FUSION_REWRITE_TAPS_H
#include "fusion/rebuild.h"

enum { TAPS_MOST_AXES = 3 };
typedef struct tap_axis {
  int64_t extent, positions, low, high, size, stride, dilation; /* of the map; the padding's; the window's */
} tap_axis;
/* A window of literal extents over a value with zeros around it. */
typedef struct taps {
  uint32_t window, pad, source, rank, count; /* rank: of the source; count: of the axes with taps */
  int64_t axis;                              /* the first of them */
  const ir_expr *low, *high;                 /* the padding's, until a node is added */
  tap_axis at[TAPS_MOST_AXES];
} taps;
bool rewrite_read_taps(const rebuild *, uint32_t node, taps *);
/* Zeros times these weights are zeros, or FAST does not ask. */
bool rewrite_taps_finite(const rebuild *, uint32_t weights);

/* Rules (rebuild.h). */
uint32_t rewrite_live_taps(rebuild *), rewrite_tap_boxes(rebuild *);
#endif
