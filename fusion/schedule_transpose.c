/* Kind `transpose`: a loop whose reads run along another axis than its stores. Explicit classes: blocks of lanes x lanes elements are read by rows into
   registers and stored by columns, so that both sides are vectors. Lanes: the loop schedule, whose stores are contiguous. */
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"

bool schedule_transpose_accepts(const fusion_context *c, const fusion_group *group, const char **why_not) { return schedule_loop_accepts(c, group, why_not); }

snt_result schedule_transpose_build(fusion_context *c, const fusion_group *group) { return schedule_loop_build(c, group); }
