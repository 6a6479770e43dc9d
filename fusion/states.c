/* States. In: groups in execution order. Out: for each update, whether its kernel may write over the state, and the copies of those that may not.
   In place is right when every kernel that reads the state runs before the one that stores the new value, or is that kernel and reads each element
   only where it stores it. Anything else gets storage of its own and is copied when all other kernels are done. */
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"

typedef struct alignment {
  uint32_t state, rank;
  const ir_expr *at;
  bool good;
} alignment;

static void check_aligned(void *user, const fusion_load *load) {
  alignment *a = user;
  if (load->node != a->state) return;
  a->good &= load->access->rank == a->rank && load->access->condition_count == 0;
  for (uint32_t d = 0; d < a->rank && a->good; d++) a->good = load->access->at[d] == a->at[d];
}

/* Every result of the kernel reads the state only at the element that it stores. */
static bool reads_aligned(fusion_context *c, const fusion_group *group, uint32_t state) {
  const ir_tensor *t = &ir_at(c->graph, state)->type;
  map_access at = {.rank = t->rank};
  for (uint32_t d = 0; d < t->rank; d++) at.at[d] = expr_var_add(c->graph->pool, "s", 0, t->dims[d], 1);
  alignment a = {state, t->rank, at.at, true};
  for (uint32_t i = 0; i < group->output_count && a.good; i++) {
    if (!ir_same_shape(&ir_at(c->graph, group->outputs[i])->type, t)) return false;
    if (!fusion_walk_loads(c, group, group->outputs[i], &at, check_aligned, &a)) return false;
  }
  return a.good;
}

static bool reads(const fusion_group *group, uint32_t node) {
  for (uint32_t i = 0; i < group->input_count; i++)
    if (group->inputs[i] == node) return true;
  return false;
}

static bool fits_in_place(fusion_context *c, const ir_update *u) {
  const uint32_t owner = c->group_of[u->value];
  bool stored = false;
  for (uint32_t i = 0; i < c->order_count; i++) {
    const fusion_group *group = &c->groups.at[c->order[i]];
    const bool own = c->order[i] + 1 == owner;
    const bool again = own && group->kind == GROUP_CONTRACT; /* tails overlap: some elements are computed and stored twice */
    if (reads(group, u->state) && (own ? again || !reads_aligned(c, group, u->state) : stored)) return false;
    stored |= own;
  }
  return stored;
}

snt_result fusion_settle_states(fusion_context *c, bool *changed) {
  *changed = false;
  const uint32_t count = c->graph->updates.count;
  c->copied_update = IR_NEW_ARRAY(c->arena, uint8_t, count + 1);
  if (!c->copied_update) return ir_no_memory(c->diag, "states");
  for (uint32_t i = 0; i < count; i++) c->copied_update[i] = !fits_in_place(c, &c->graph->updates.at[i]);
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
