/* States. In: groups in execution order. Out: for each update, whether its kernel may write over the state, and the copies of those that may not.
   In place is right when every kernel that reads the state runs before the one that stores the new value, or is that kernel and reads each element
   only where it stores it, and before: a loop stores one result behind the other, new values last; other kinds store some of them in an earlier sweep, and
   the terms of their sums are several items'.
   Anything else gets storage of its own and is copied when all other kernels are done. */
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"

typedef struct alignment {
  const ir_update *u;
  const map_access *at;
  bool stored, alone,
      good; /* stored: the state's element is the new one by now; alone: who stores an element is the only one to compute it */
} alignment;

static void check_aligned(void *user, const fusion_load *load) {
  alignment *a = user;
  const map_access *at = load->access;
  if (load->node != a->u->state && load->node != a->u->value) return;
  a->good &= at->rank == a->at->rank && at->condition_count == 0 && !(a->stored && load->node == a->u->state) &&
             (a->alone || load->weight <= 1);
  for (uint32_t d = 0; d < a->at->rank && a->good; d++) a->good = at->at[d] == a->at->at[d];
}

/* Every result of the kernel reads the state only at the element that it stores, and no later than that, but for what it reads through the new value. */
static bool reads_aligned(fusion_context *c, const fusion_group *group, const ir_update *u) {
  const map_access at = fusion_anywhere(c, u->state);
  const fusion_stops stops = {&u->value, 1};
  alignment a = {.u = u, .at = &at, .alone = group->kind == GROUP_LOOP, .good = true};
  bool stored = !a.alone;
  for (uint32_t i = 0; i < group->output_count && a.good; i++) {
    const uint32_t node = group->outputs[i];
    const bool own = node == u->value;
    a.stored = stored && !own, stored |= own;
    if (!ir_same_shape(&ir_at(c->graph, node)->type, &ir_at(c->graph, u->state)->type)) return false;
    if (!fusion_walk_until(c, group, node, &at, own ? NULL : &stops, check_aligned, &a)) return false;
  }
  return a.good;
}

/* Behind all that its loop stores, new values of other states among them. */
static bool store_last(fusion_context *c, uint32_t value) {
  fusion_group *group = c->group_of[value] ? &c->groups.at[c->group_of[value] - 1] : NULL;
  if (!group || group->kind != GROUP_LOOP) return true;
  uint32_t *outputs = IR_NEW_ARRAY(c->arena, uint32_t, group->output_count), count = 0;
  if (!outputs) return false;
  for (uint32_t i = 0; i < group->output_count; i++)
    if (group->outputs[i] != value) outputs[count++] = group->outputs[i];
  outputs[count] = value;
  group->outputs = outputs;
  return true;
}

static bool reads(const fusion_group *group, uint32_t node) {
  for (uint32_t i = 0; i < group->input_count; i++)
    if (group->inputs[i] == node) return true;
  return false;
}

/* Tails overlap: some elements are computed and stored twice. Of a window on lanes the last vector of a row reads on into the next, which is another item's. */
static bool reaches_others(const fusion_context *c, const fusion_group *group) {
  return group->kind == GROUP_CONTRACT || group->kind == GROUP_ATTENTION || (group->kind == GROUP_WINDOW && !schedule_is_explicit(c));
}

static bool fits_in_place(fusion_context *c, const ir_update *u) {
  const uint32_t owner = c->group_of[u->value];
  bool stored = false;
  for (uint32_t i = 0; i < c->order_count; i++) {
    const fusion_group *group = &c->groups.at[c->order[i]];
    const bool own = c->order[i] + 1 == owner;
    if (reads(group, u->state) && (own ? reaches_others(c, group) || !reads_aligned(c, group, u) : stored)) return false;
    stored |= own;
  }
  return stored;
}

snt_result fusion_settle_states(fusion_context *c, bool *changed) {
  *changed = false;
  const uint32_t count = c->graph->updates.count;
  const ir_update *updates = c->graph->updates.at;
  c->copied_update = IR_NEW_ARRAY(c->arena, uint8_t, count + 1);
  if (!c->copied_update) return ir_no_memory(c->diag, "states");
  for (uint32_t i = 0; i < count; i++)
    if (!store_last(c, updates[i].value)) return ir_no_memory(c->diag, "states");
  for (uint32_t i = 0; i < count; i++) c->copied_update[i] = !fits_in_place(c, &updates[i]);
  return SNT_OK;
}

snt_result fusion_copy_states(fusion_context *c) {
  const ir_graph *g = c->graph;
  if (c->is_body) return SNT_OK;
  for (uint32_t i = 0; i < g->updates.count; i++) {
    if (!c->copied_update || !c->copied_update[i]) continue;
    SNT_TRY(schedule_copy(c, g->updates.at[i].value, fusion_buffer_of(c, g->updates.at[i].state)));
  }
  return SNT_OK;
}
