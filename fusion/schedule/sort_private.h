/* What the parts of sorts share: sort.c, sort_first.c, sort_rank.c. */
#ifndef FUSION_SCHEDULE_SORT_PRIVATE_H
#define FUSION_SCHEDULE_SORT_PRIVATE_H
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"

enum { WHOLE_LINE = 128 };

typedef struct sort_job {
  fusion_context *c;
  const fusion_group *group;
  emit *e;
  uint32_t node, operand, axis, rank;
  const ir_expr *dims;
  ir_expr length, inner, lines, read; /* read: the first places of a line that anybody reads */
  bool descending, whole;             /* whole: lines of one run */
  int32_t key;
  uint32_t keys[2], order[2]; /* plan buffers, written in turn */
  ir_expr line, lo, hi;       /* of the run at hand */
  ir_expr width, halvings;    /* variables that stand for scalars of the merge: elements a run, bisections */
  /* of a selection: `read` as a number, parts of a line, elements of the longest part; part p has the elements p, p + parts, p + 2 parts .. */
  int64_t first, parts, rows;
  ir_expr part;  /* the chosen one at hand */
  bool of_parts; /* places are those of parts, which are kept by their numbers */
} sort_job;

/* A vector of elements (or one) whose places among others are counted, and what the vector axis was. */
typedef struct ranked {
  uint32_t key, place, lanes, lane_var;
} ranked;

map_access sort_at(const sort_job *, ir_expr line, ir_expr place);
snt_result sort_begin(sort_job *, const char *suffix);
uint32_t sort_value_at(sort_job *, ir_expr place);
uint32_t sort_comes_before(const sort_job *, uint32_t a, uint32_t b);
/* A loop over others, within the vector axis of those that are ranked. */
ir_expr sort_each_other(sort_job *, const ranked *, ir_expr lo, ir_expr hi, const uint32_t *start, uint32_t *carried);
uint32_t sort_count_before(sort_job *, const ranked *, uint32_t count, uint32_t key, uint32_t place);
void sort_store_places(sort_job *, const ranked *, ir_expr place, uint32_t rank);

ir_expr sort_places_read(const fusion_context *, uint32_t node);
snt_result sort_build_first(sort_job *);
#endif
