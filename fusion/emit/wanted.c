/* Sums that a select leaves out, wherever its condition is false: what lies behind a count. A schedule asks before it makes them, where the
   condition is the same for all lanes. */
#include "fusion/emit.h"
#include "fusion/emit_private.h"

static bool is_below(const ir_graph *g, uint32_t node, uint32_t from) {
  from = fusion_through_views(g, from);
  bool found = from == node;
  for (uint32_t a = 0; !found && ir_at(g, from)->op == IR_OP_concat && a < ir_at(g, from)->arity; a++)
    found = is_below(g, node, ir_arg(g, from, a));
  return found;
}

/* Who reads a node within the group, through views; 0: several do, or it is a result, or a part of something that is joined. */
static uint32_t only_reader(const fusion_context *c, const fusion_group *group, uint32_t node) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < group->output_count; i++)
    if (is_below(c->graph, node, group->outputs[i])) return 0;
  for (uint32_t i = 0; i < group->count; i++)
    for (uint32_t a = 0; a < ir_at(c->graph, group->nodes[i])->arity; a++) {
      const uint32_t operand = ir_arg(c->graph, group->nodes[i], a);
      if (!is_below(c->graph, node, operand)) continue;
      if (found || fusion_through_views(c->graph, operand) != node) return 0;
      found = group->nodes[i];
    }
  return found;
}

uint32_t emit_chooser(const fusion_context *c, const fusion_group *group, uint32_t node) {
  const ir_graph *g = c->graph;
  for (uint32_t reader; (reader = only_reader(c, group, node)) != 0; node = reader) {
    const ir_node *n = ir_at(g, reader);
    if (!(ir_ops[n->op].flags & IR_POINTWISE)) return 0;
    if (n->op == IR_OP_select && fusion_through_views(g, ir_arg(g, reader, 1)) == node) return reader;
  }
  return 0;
}

uint32_t emit_wanted(emit *e, uint32_t node, uint32_t chooser, const map_access *at) {
  map_access own = *at;
  if (!chooser || !fusion_forward_within(e->c, e->group, node, chooser, &own) || own.condition_count) return 0;
  const uint32_t condition = ir_arg(e->g, chooser, 0);
  if (ir_at(e->g, condition)->type.rank == 0) own.rank = 0;
  const uint32_t wanted = emit_value(e, condition, &own);
  return wanted && emit_value_type(e, wanted).lanes == 1 ? wanted : 0;
}
