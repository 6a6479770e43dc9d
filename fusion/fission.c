/* What does not fit the device after grouping: a single node with more operands than there are bindings cannot be split further here, and is
   refused by name. (Unions that would not fit were never made: see the "bindings" records of group/group.c.) */
#include "fusion/fusion.h"

snt_result fusion_fission(fusion_context *c, bool *changed) {
  *changed = false;
  const uint32_t limit = c->options->profile->max_bindings;
  for (uint32_t i = 0; i < c->groups.count; i++) {
    const fusion_group *group = &c->groups.at[i];
    const uint32_t needs = group->input_count + group->output_count;
    if (group->dead || !limit || needs <= limit || group->kind == GROUP_REPEAT) continue; /* a loop is no kernel */
    const ir_node *hero = ir_at(c->graph, group->hero);
    return ir_fail(c->diag, SNT_E_LIMIT, "fission", hero->origin, "%s (%s) needs %u bindings; the device has %u",
                   ir_node_name(c->graph, group->hero), ir_ops[hero->op].name, needs, limit);
  }
  return SNT_OK;
}
