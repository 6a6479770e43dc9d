/* How often a kernel of kind `row` computes a member and reads an input: once in every sweep that needs it, unless the row is kept. A sweep belongs to each
   reduction, and one more stores what is as large as the rows. The same rules as schedule/row.c's, on the group alone. */
#include "fusion/group/private.h"
#include "fusion/schedule_common.h"

enum { LAST_SWEEP = 31 };

static uint8_t bits_of(uint32_t mask) {
  uint8_t count = 0;
  for (; mask; mask &= mask - 1) count++;
  return count ? count : 1;
}

static bool reduces(const ir_graph *g, uint32_t node) { return (ir_ops[ir_at(g, node)->op].flags & IR_REDUCE) != 0; }

/* What an element of a member takes from scratch, as schedule/row.c counts it. */
typedef struct row_work {
  uint32_t loads;
  bool dear;
} row_work;

static row_work work_of(const fusion_context *c, const fusion_group *group, uint32_t node, double full, const row_work *below) {
  const ir_node *n = ir_at(c->graph, node);
  row_work w = {.dear = (ir_ops[n->op].flags & IR_EXPENSIVE) || n->op == IR_OP_gather};
  if (reduces(c->graph, node)) return (row_work){0};
  for (uint32_t a = 0; a < n->arity; a++) {
    const uint32_t from = c->facts[c->graph->args.at[n->args + a]].base, at = fusion_position(c, group, from);
    if (at == UINT32_MAX) w.loads += c->elements[from] >= full && ir_at(c->graph, from)->op != IR_OP_const;
    else w.loads += below[at].loads, w.dear |= below[at].dear;
  }
  if (w.loads > 2) w.loads = 2; /* more than one is all that is asked */
  return w;
}

static void spread(const fusion_context *c, const fusion_group *group, uint32_t node, uint32_t sweeps, uint32_t *masks,
                   uint32_t *input_masks) {
  const ir_node *n = ir_at(c->graph, node);
  for (uint32_t a = 0; a < n->arity; a++) {
    const uint32_t from = c->facts[c->graph->args.at[n->args + a]].base, at = fusion_position(c, group, from);
    if (at != UINT32_MAX) masks[at] |= sweeps;
    else
      for (uint32_t i = 0; i < group->input_count; i++)
        if (group->inputs[i] == from) input_masks[i] |= sweeps;
  }
}

bool group_count_sweeps(const fusion_context *c, const fusion_group *group, uint8_t *times, uint8_t *input_times) {
  uint32_t masks[GROUP_MOST_MEMBERS], input_masks[GROUP_MOST_INPUTS], sweep = 0;
  const ir_graph *g = c->graph;
  if (group->kind != GROUP_ROW || group->count > GROUP_MOST_MEMBERS || group->input_count > GROUP_MOST_INPUTS || !reduces(g, group->hero))
    return false;
  memset(masks, 0, group->count * sizeof *masks);
  memset(input_masks, 0, group->input_count * sizeof *input_masks);
  const double full = c->elements[ir_arg(g, group->hero, 0)];
  for (uint32_t i = 0; i < group->output_count; i++) {
    const uint32_t at = fusion_position(c, group, group->outputs[i]);
    if (at != UINT32_MAX && !reduces(g, group->outputs[i]) && c->elements[group->outputs[i]] >= full) masks[at] |= 1u << LAST_SWEEP;
  }
  row_work work[GROUP_MOST_MEMBERS];
  const bool kept = schedule_keeps_rows(c, group, 1);
  uint32_t counted = 0;
  for (uint32_t i = group->count; i-- > 0;) { /* the first that two sweeps need is the largest part they have in common */
    const uint32_t node = group->nodes[i];
    if (reduces(g, node)) masks[i] = sweep < LAST_SWEEP ? 1u << sweep++ : masks[i];
    else if (kept && (masks[i] & (masks[i] - 1))) { /* what is below the first of them is all that is ever asked */
      for (; counted <= i; counted++) work[counted] = work_of(c, group, group->nodes[counted], full, work);
      if (work[i].dear || work[i].loads > 1) masks[i] &= -masks[i];
    }
    spread(c, group, node, masks[i], masks, input_masks);
    times[i] = reduces(g, node) ? 1 : bits_of(masks[i]);
  }
  for (uint32_t i = 0; i < group->input_count; i++) input_times[i] = bits_of(input_masks[i]);
  return true;
}
