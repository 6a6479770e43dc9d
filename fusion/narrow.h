/* Weights in fewer bytes, before a graph is compiled. */
#ifndef FUSION_NARROW_H
#define FUSION_NARROW_H
#include "fusion/fusion.h"

/* Copies `from` into the empty `to` of the same pool, with large weights as `dtype` (F16, I8) behind a cast; their data is in the arena of `to`, everything
   temporary in that of `from`. out_count: how many there are. */
snt_result fusion_narrow(ir_graph *from, int32_t dtype, ir_graph *to, uint32_t *out_count);
#endif
