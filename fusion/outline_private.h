/* Shared by outline.c, outline_trips.c and outline_copy.c only. */
#ifndef FUSION_OUTLINE_PRIVATE_H
#define FUSION_OUTLINE_PRIVATE_H
#include "fusion/fusion.h"

enum { MAX_CARRIED = 255 };

typedef struct outline {
  fusion_context *c;
  const ir_graph *from;
  ir_graph *to;
  uint32_t *map; /* node of `from` -> node of `to` */
} outline;

/* A repeat being taken out. */
typedef struct taken {
  outline *o;
  uint32_t region, owner;
  ir_graph *body;
  uint32_t *map;     /* node of `from` -> node of the body */
  uint32_t *regions; /* inner regions */
  ir_expr variable, trips;
  int64_t goes_on; /* the carried value without which no trip begins, or -1 */
  bool tables;     /* all that is read of some values from around is elements, by their numbers */
  IR_VEC(uint32_t)
  roles, outside; /* per input of the body: operand of the loop, set at the end; the node of `from`, or UINT32_MAX - k for carried k */
  bool counts[MAX_CARRIED], fixed[MAX_CARRIED]; /* carried values that are expressions, and those that stay what they were */
  int64_t step[MAX_CARRIED];
  ir_expr start[MAX_CARRIED];
  bool rows[MAX_CARRIED]; /* carried values of which each trip sets the row of its number; ordered */
} taken;

/* outline_copy.c */
uint32_t outline_copy(const outline *, ir_graph *to, uint32_t node, const uint32_t *map);
bool outline_copy_contracts(const outline *, ir_graph *to, const uint32_t *map, uint32_t region);
bool outline_lies_inside(const ir_graph *, uint32_t region, uint32_t outer);
const uint32_t *outline_yields(const taken *);
bool outline_is_argument(const taken *, uint32_t node, uint32_t index);
uint32_t outline_guard(ir_graph *, bool is_flag, uint32_t flag, uint32_t next, uint32_t before);

enum { OUTLINE_DEEP = 8 }; /* as far as it is asked for constants */
enum { OUTLINE_VARIES, OUTLINE_CONSTANT, OUTLINE_WIDENED };
uint32_t outline_what(const ir_graph *, uint32_t node, uint32_t depth);

/* outline_trips.c */
bool outline_is_better_apart(taken *, int64_t *trips); /* written out; how many trips it has */
bool outline_write_out(taken *, int64_t trips, uint32_t *results);
#endif
