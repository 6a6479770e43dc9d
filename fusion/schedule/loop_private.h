/* Between schedule/loop.c, schedule/loop_dear.c and schedule/loop_boxes.c. */
#ifndef FUSION_SCHEDULE_LOOP_PRIVATE_H
#define FUSION_SCHEDULE_LOOP_PRIVATE_H
#include "fusion/schedule_common.h"

enum { LOOP_MOST_DEAR = 16, LOOP_MOST_SEAMS = 127, LOOP_MOST_BOXES = LOOP_MOST_SEAMS + 1, LOOP_SHORT_ROW = 16384 };
/* Values of transcendental functions that a kernel computes in loops of their own, a tile of columns at a time. */
typedef struct loop_dear {
  uint32_t count, nodes[LOOP_MOST_DEAR], memories[LOOP_MOST_DEAR], columns; /* nodes in graph order; columns: of a tile */
  bool open;                                                                /* the memories are there */
} loop_dear;
/* Places along an axis where conditions change, in order. */
typedef struct loop_seams {
  uint32_t count;
  ir_expr at[LOOP_MOST_SEAMS];
} loop_seams;
/* What is computed between seams, and how it is shared out: parts of rows times parts of a row. */
typedef struct loop_box {
  schedule_space space; /* of the hero's */
  loop_seams cuts;      /* of a row: a loop for each piece between them */
  ir_expr row_parts, column_parts, groups;
  int64_t rows_per, columns_per;
  uint32_t lanes, vectors; /* of a vector of an item; lanes: so many vectors an item has */
} loop_box;
typedef struct loop_job {
  const fusion_group *group;
  const loop_box *box;
  ir_expr row, item, items; /* of lanes: which, of how many */
  loop_dear dear;
  bool by_hand;
} loop_job;

/* Which they are; none where one loop does as well. */
void loop_find_dear(const fusion_context *, const fusion_group *, const schedule_space *widest, loop_dear *);
/* The columns from lo to hi in tiles: a loop for each dear value, then one for what is left; `store` stores the outputs at a column. */
void loop_dear_columns(emit *, loop_job *, ir_expr lo, ir_expr hi, uint32_t lanes, schedule_body store);
/* Boxes that are all results together, with their spaces; NULL: out of host memory. */
loop_box *loop_find_boxes(fusion_context *, const fusion_group *, uint32_t *count);
void loop_find_cuts(const fusion_context *, const fusion_group *, loop_box *);
#endif
