/* Weights in fewer bytes, before a graph is compiled. */
#ifndef FUSION_NARROW_H
#define FUSION_NARROW_H
#include "fusion/fusion.h"

/* Copies `given`, of which nothing is left that could be used, into the empty `to` of the same pool, with large weights as options->weights (F16, I8) behind a
   cast; their data is in the arena of `to`, everything temporary in that of `given`. out_count: how many there are. */
snt_result fusion_narrow(ir_graph *given, const fusion_options *options, ir_graph *to, uint32_t *out_count, snt_diag *diag);
#endif
