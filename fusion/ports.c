/* Outputs get storage of their own. In: a canonical graph. Out: every output and update is a node that some kernel stores.
   Runs after the last canonicalise, which would drop the copies. */
#include "fusion/image.h"

static uint32_t add_copy(ir_graph *g, uint32_t node) {
  const ir_tensor type = ir_at(g, node)->type;
  const ir_attr_value shape = {IR_ATTR_shape, type.rank, type.dims};
  const uint32_t copy = ir_add_node(g, IR_OP_reshape, 1, &node, 1, &shape, NULL);
  g->nodes.at[copy].origin = ir_at(g, node)->origin;
  return copy;
}

static const ir_port *find_port(const ir_graph *g, const char *name) {
  for (uint32_t i = 0; i < g->inputs.count; i++)
    if (!strcmp(&g->names.at[g->inputs.at[i].name], name)) return &g->inputs.at[i];
  for (uint32_t i = 0; i < g->outputs.count; i++)
    if (!strcmp(&g->names.at[g->outputs.at[i].name], name)) return &g->outputs.at[i];
  return NULL;
}

/* Null, or what keeps an input from being filtered. */
static const char *filter_fails(const fusion_context *c, const ir_node *node, const char *name) {
  if (node->op != IR_OP_input) return "what is stored is not filtered";
  if (!ir_dtypes[node->type.dtype].is_float) return "whole numbers are not filtered";
  return fusion_image_origin(c->graph->pool, name, 'x') || fusion_image_origin(c->graph->pool, name, 'y')
             ? "a part of an image is not filtered"
             : NULL;
}

static snt_result check_image(fusion_context *c, const fusion_image *image) {
  const ir_graph *g = c->graph;
  const ir_port *port = find_port(g, image->name);
  image_axes axes;
  if (!port) return SNT_OK; /* of another graph: a body of a repeat */
  if (!c->options->profile->caps.images)
    return ir_fail(c->diag, SNT_E_UNSUPPORTED, "ports", 0, "profile %s has no images", c->options->profile->name);
  const ir_node *node = ir_at(g, port->node);
  const char *wrong = node->op == IR_OP_state ? "it is a state" : fusion_image_axes(g->pool, &node->type, image->layout, &axes);
  if (!wrong && image->filtered) wrong = filter_fails(c, node, image->name);
  return wrong ? ir_fail(c->diag, SNT_E_ARG, "ports", node->origin, "port %s cannot be an image: %s", image->name, wrong) : SNT_OK;
}

/* A port is storage of its own: an output that is an input, a state or a constant is a copy, and so is a node that two outputs name. */
snt_result fusion_copy_ports(fusion_context *c, bool *changed) {
  ir_graph *g = c->graph;
  const uint32_t count = g->nodes.count;
  uint8_t *named = IR_NEW_ARRAY(c->arena, uint8_t, count); /* by an output */
  if (!named) return ir_no_memory(c->diag, "ports");
  for (uint32_t i = 0; i < c->options->image_count; i++) SNT_TRY(check_image(c, &c->options->images[i]));
  for (uint32_t i = 0; i < g->outputs.count; i++) {
    const uint32_t node = g->outputs.at[i].node;
    bool again = (ir_ops[ir_at(g, node)->op].flags & IR_SOURCE) != 0;
    again |= fusion_image_layout(c, node) != PLAN_IMAGE_NONE; /* what is stored to an image is read by nobody else */
    again |= named[node] != 0;
    again |= fusion_is_update(g, node);
    named[node] = 1;
    if (!again) continue;
    g->outputs.at[i].node = add_copy(g, node);
    *changed = true;
  }
  for (uint32_t i = 0; i < g->updates.count; i++) { /* a state that takes over an input, another state or the same value as another */
    const uint32_t node = g->updates.at[i].value;
    bool again = (ir_ops[ir_at(g, node)->op].flags & IR_SOURCE) != 0;
    for (uint32_t k = 0; k < i; k++) again |= g->updates.at[k].value == node;
    again |= c->is_body &&
             (ir_at(g, node)->op == IR_OP_loop || ir_at(g, node)->op == IR_OP_pick); /* a loop's results may be pairs already */
    if (!again) continue;
    g->updates.at[i].value = add_copy(g, node);
    *changed = true;
  }
  return SNT_OK;
}
