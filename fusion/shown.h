/* Constants as values above their views and casts show them (fusion/shown.c). */
#ifndef FUSION_SHOWN_H
#define FUSION_SHOWN_H
#include "fusion/fusion.h"

/* Element `first` of the constant, then a stride along each axis of the value. */
typedef struct fusion_shown {
  const void *data; /* the caller's to find: ir_const_data of `constant` */
  int32_t dtype;
  uint32_t constant, rank;
  int64_t first, stride[SNT_MAX_RANK], extent[SNT_MAX_RANK], elements;
} fusion_shown;
/* False: no constant of fixed extents lies below, or one that views compute (concatenated, padded). */
bool fusion_show(ir_graph *, uint32_t node, fusion_shown *);

/* Calls for each element in order, with the number of its channel: of its place along the axes of the mask. Returns how many channels there are. */
typedef void (*fusion_element_fn)(void *user, int64_t at, int64_t channel, float value);
int64_t fusion_walk(const fusion_shown *, uint32_t channels, fusion_element_fn, void *user);
#endif
