/* The groups as a graph of their own: their order of execution, and levels, which say what cannot lie on a path. */
#include "fusion/group/private.h"

enum { UNKNOWN, OPEN, KNOWN };
typedef struct depth_search {
  const group_run *r;
  uint8_t *state;
  uint32_t *depth;
  uint32_t up, down; /* a group is so much deeper than a producer of a lower number, and than others */
} depth_search;

/* The depth of a group whose producers are known; false, and one of them, when one is not. */
static bool depth_of(const depth_search *q, uint32_t group, uint32_t *unknown) {
  const fusion_group *at = &q->r->s.c->groups.at[group];
  uint32_t depth = 0;
  for (uint32_t k = 0; k < at->input_count; k++) {
    const uint32_t owner = q->r->s.group_of[at->inputs[k]];
    if (!owner) continue;
    if (q->state[owner - 1] != KNOWN) {
      *unknown = owner - 1;
      return false;
    }
    const uint32_t own = q->depth[owner - 1] + (owner - 1 >= group ? q->down : q->up);
    if (own > depth) depth = own;
  }
  q->depth[group] = depth;
  return true;
}

static snt_result find_depths(depth_search *q, uint32_t *most) {
  fusion_context *c = q->r->s.c;
  IR_VEC(uint32_t) stack = {0};
  for (uint32_t i = 0; i < c->groups.count; i++) {
    if (c->groups.at[i].dead || q->state[i] == KNOWN) continue;
    if (!IR_PUSH(c->arena, &stack, i)) return SNT_E_HOST_MEM;
    while (stack.count) {
      const uint32_t at = stack.at[stack.count - 1];
      uint32_t unknown = 0;
      q->state[at] = OPEN;
      if (depth_of(q, at, &unknown)) {
        q->state[at] = KNOWN;
        if (q->depth[at] > *most) *most = q->depth[at];
        stack.count--;
        continue;
      }
      if (q->state[unknown] == OPEN) return ir_fail(c->diag, SNT_E_INTERNAL, "group", 0, "the groups depend on each other in a circle");
      if (!IR_PUSH(c->arena, &stack, unknown)) return SNT_E_HOST_MEM;
    }
  }
  return SNT_OK;
}

/* Execution order: a group after the groups whose outputs it reads. As sweeps over the list would find it, in which every group goes that can:
   by the sweep that takes it, then by number. */
snt_result group_find_order(group_run *r) {
  fusion_context *c = r->s.c;
  const uint32_t count = c->groups.count;
  uint32_t most = 0;
  depth_search q = {r, IR_NEW_ARRAY(c->arena, uint8_t, count + 1), IR_NEW_ARRAY(c->arena, uint32_t, count + 1), 0, 1};
  c->order = IR_NEW_ARRAY(c->arena, uint32_t, count + 1);
  if (!q.state || !q.depth || !c->order) return SNT_E_HOST_MEM;
  SNT_TRY(find_depths(&q, &most));
  uint32_t *first = IR_NEW_ARRAY(c->arena, uint32_t, most + 2);
  if (!first) return SNT_E_HOST_MEM;
  for (uint32_t i = 0; i < count; i++)
    if (!c->groups.at[i].dead) first[q.depth[i] + 1]++, c->order_count++;
  for (uint32_t i = 1; i < most + 2; i++) first[i] += first[i - 1];
  for (uint32_t i = 0; i < count; i++)
    if (!c->groups.at[i].dead) c->order[first[q.depth[i]]++] = i;
  return SNT_OK;
}

snt_result group_find_levels(group_run *r) {
  const uint32_t count = r->s.c->groups.count;
  uint32_t most = 0;
  depth_search q = {r, IR_NEW_ARRAY(r->s.c->arena, uint8_t, count + 1), IR_NEW_ARRAY(r->s.c->arena, uint32_t, count + 1), GROUP_LEVEL_STEP,
                    GROUP_LEVEL_STEP};
  if (!q.state || !q.depth) return SNT_E_HOST_MEM;
  SNT_TRY(find_depths(&q, &most));
  for (uint32_t i = 0; i < count; i++)
    if (q.state[i] == KNOWN) r->s.place[i].level = q.depth[i];
  return SNT_OK;
}
