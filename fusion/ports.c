/* Outputs get storage of their own. In: a canonical graph. Out: every output and update is a node that some kernel stores.
   Runs after the last canonicalise, which would drop the copies. */
#include "fusion/fusion.h"

static uint32_t add_copy(ir_graph *g, uint32_t node) {
  const ir_tensor type = ir_at(g, node)->type;
  const ir_attr_value shape = {IR_ATTR_shape, type.rank, type.dims};
  const uint32_t copy = ir_add_node(g, IR_OP_reshape, 1, &node, 1, &shape, NULL);
  g->nodes.at[copy].origin = ir_at(g, node)->origin;
  return copy;
}

/* A port is storage of its own: an output that is an input, a state or a constant is a copy, and so is a node that two outputs name. */
snt_result fusion_copy_ports(fusion_context *c, bool *changed) {
  ir_graph *g = c->graph;
  for (uint32_t i = 0; i < g->outputs.count; i++) {
    const uint32_t node = g->outputs.at[i].node;
    bool again = (ir_ops[ir_at(g, node)->op].flags & IR_SOURCE) != 0;
    for (uint32_t k = 0; k < i; k++) again |= g->outputs.at[k].node == node;
    for (uint32_t k = 0; k < g->updates.count; k++) again |= g->updates.at[k].value == node;
    if (!again) continue;
    g->outputs.at[i].node = add_copy(g, node);
    *changed = true;
  }
  for (uint32_t i = 0; i < g->updates.count; i++) { /* a state that takes over an input, another state or the same value as another */
    const uint32_t node = g->updates.at[i].value;
    bool again = (ir_ops[ir_at(g, node)->op].flags & IR_SOURCE) != 0;
    for (uint32_t k = 0; k < i; k++) again |= g->updates.at[k].value == node;
    again |= c->is_body && (ir_at(g, node)->op == IR_OP_loop || ir_at(g, node)->op == IR_OP_pick); /* a loop's results may be pairs already */
    if (!again) continue;
    g->updates.at[i].value = add_copy(g, node);
    *changed = true;
  }
  return SNT_OK;
}
