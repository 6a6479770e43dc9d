/* Between schedule_loop.c, schedule_loop_dear.c and schedule_loop_cuts.c. */
#ifndef FUSION_SCHEDULE_LOOP_PRIVATE_H
#define FUSION_SCHEDULE_LOOP_PRIVATE_H
#include "fusion/schedule_common.h"

enum { LOOP_MOST_DEAR = 16, LOOP_MOST_CUTS = 6 };
/* Values of transcendental functions that a kernel computes in loops of their own, a tile of columns at a time. */
typedef struct loop_dear {
  uint32_t count, nodes[LOOP_MOST_DEAR], memories[LOOP_MOST_DEAR], columns; /* nodes in graph order; columns: of a tile */
  bool open;                                                                /* the memories are there */
} loop_dear;
/* Columns where conditions change; a kernel has a loop for each piece between them. */
typedef struct loop_cuts {
  uint32_t count;
  int64_t at[LOOP_MOST_CUTS];
} loop_cuts;
typedef struct loop_job {
  const fusion_group *group;
  schedule_space space; /* of the hero */
  ir_expr row;
  loop_dear dear;
  loop_cuts cuts;
} loop_job;

/* Which they are; none where one loop does as well. */
void loop_find_dear(const fusion_context *, const fusion_group *, const schedule_space *, loop_dear *);
/* The columns from lo to hi in tiles: a loop for each dear value, then one for what is left; `store` stores the outputs at a column. */
void loop_dear_columns(emit *, loop_job *, ir_expr lo, ir_expr hi, uint32_t lanes, schedule_body store);
void loop_find_cuts(const fusion_context *, const fusion_group *, const schedule_space *, loop_cuts *);
#endif
