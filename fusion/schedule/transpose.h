/* Shared by the files of kind `transpose`: schedule/transpose.c, by blocks in registers, and schedule/transpose_local.c, by tiles in local memory. */
#ifndef FUSION_SCHEDULE_TRANSPOSE_H
#define FUSION_SCHEDULE_TRANSPOSE_H
#include "fusion/emit.h"

enum { TRANSPOSE_MOST = 4 };

/* A loop group some of whose loads, `turned`, run along `source_axis` of the result, not along the last, which its stores run along. */
typedef struct transpose_job {
  fusion_context *c;
  const fusion_group *group;
  emit *e;
  uint32_t lane_axis, source_axis, rank;
  uint32_t var[SNT_MAX_RANK];                    /* of the coordinates that `turned_at` is made of; UINT32_MAX: the axis has one element */
  uint32_t turned[TRANSPOSE_MOST], turned_count; /* nodes read along source_axis */
  ir_expr turned_at[TRANSPOSE_MOST];             /* where: offsets in what is stored */
  uint32_t width, line; /* blocks: width x width, a store `line` elements, a cache line where rows are whole ones */
  map_access at;        /* coordinates of the result; those of the two axes change */
} transpose_job;

bool transpose_analyse(transpose_job *);
map_access transpose_load_at(transpose_job *, uint32_t node); /* where a turned node is read for the result at `at` */
bool transpose_fits_local(transpose_job *);
snt_result transpose_build_local(transpose_job *);
#endif
