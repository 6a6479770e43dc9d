/* Groups to kernels and steps: each group's kind builds it, in execution order. */
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"

/* Nothing to compute: every output has an extent of 0. */
static bool is_empty(const fusion_context *c, const fusion_group *group) {
  for (uint32_t i = 0; i < group->output_count; i++)
    if (ir_tensor_elements(c->graph->pool, &ir_at(c->graph, group->outputs[i])->type)) return false;
  return true;
}

/* Kernels have no values of the types that only store: 8-bit floats, 4-bit integers. */
static snt_result check_types(const fusion_context *c, const fusion_group *group) {
  for (uint32_t list = 0; list < 2; list++)
    for (uint32_t i = 0; i < (list ? group->input_count : group->count); i++) {
      const uint32_t number = list ? group->inputs[i] : group->nodes[i];
      const ir_node *node = ir_at(c->graph, number);
      if (node->type.dtype <= SNT_BOOL) continue;
      return ir_fail(c->diag, SNT_E_UNSUPPORTED, "schedule", node->origin, "no kernel has elements of type %s (%s)",
                     ir_dtypes[node->type.dtype].name, ir_node_name(c->graph, number));
    }
  return SNT_OK;
}

static double bytes_of(const fusion_context *c, const plan_step *s) {
  const expr_pool *x = c->graph->pool;
  return (double)schedule_hint(x, s->bytes_read) + (double)schedule_hint(x, s->bytes_written);
}

/* What is priced for a group is each of its steps' (partial sums, then their sums) by the bytes that it moves, and a launch each; steps for
   other extents than the hints' have all of it. */
static void share_cost(const fusion_context *c, const fusion_group *group, uint32_t first) {
  const double launch = c->options->profile->launch_ns;
  double bytes = 0;
  for (uint32_t i = first; i < c->plan->steps.count; i++)
    if (c->plan->steps.at[i].nodes == group->nodes && schedule_runs(c->plan, i)) bytes += bytes_of(c, &c->plan->steps.at[i]);
  for (uint32_t i = first; i < c->plan->steps.count; i++) {
    plan_step *s = &c->plan->steps.at[i];
    if (s->nodes != group->nodes) continue;
    const double share = bytes > 0 && schedule_runs(c->plan, i) ? bytes_of(c, s) / bytes : 1;
    s->est_ns = launch + share * (group->cost.ns - launch);
    s->flops = share * group->cost.flops;
  }
}

snt_result fusion_schedule(fusion_context *c, bool *changed) {
  *changed = false;
  schedule_memory *memory = schedule_memory_new(c);
  if (!memory || !schedule_pitch(c)) return ir_no_memory(c->diag, "schedule");
  for (uint32_t i = 0; i < c->order_count; i++) {
    fusion_group *group = &c->groups.at[c->order[i]];
    if (is_empty(c, group)) continue;
    if (group->kind == GROUP_LOOP && schedule_transpose_wanted(c, group)) group->kind = GROUP_TRANSPOSE;
    const schedule_info *kind = &fusion_schedules[group->kind];
    const ir_node *hero = ir_at(c->graph, group->hero);
    if (!kind->build)
      return ir_fail(c->diag, SNT_E_UNSUPPORTED, "schedule", hero->origin, "no schedule for %s (%s)", ir_ops[hero->op].name,
                     ir_node_name(c->graph, group->hero));
    SNT_TRY(check_types(c, group));
    const uint32_t first = c->plan->steps.count;
    SNT_TRY(schedule_build(memory, group));
    share_cost(c, group, first);
    if (c->graph->pool->failed)
      return ir_fail(c->diag, SNT_E_LIMIT, "schedule", hero->origin, "an index of %s does not fit 64 bits",
                     ir_node_name(c->graph, group->hero));
  }
  return fusion_copy_states(c);
}
