/* What outline.c and outline_trips.c both do: nodes copied into another graph, and what is asked of a repeat and its values. */
#include "fusion/outline_private.h"

uint32_t outline_copy(const outline *o, ir_graph *to, uint32_t node, const uint32_t *map) {
  const ir_node *n = ir_at(o->from, node);
  ir_attr_value attrs[IR_ATTR_COUNT];
  uint32_t args[256], made;
  for (uint32_t i = 0; i < n->arity; i++) args[i] = map[ir_arg(o->from, node, i)];
  for (uint32_t i = 0; i < n->attr_count; i++) {
    const ir_attr *a = &o->from->attrs.at[n->attrs + i];
    attrs[i] = (ir_attr_value){a->key, a->count, o->from->ints.at + a->first};
  }
  switch (n->op) {
  case IR_OP_input: made = ir_add_input(to, ir_node_name(o->from, node), &n->type); break;
  case IR_OP_state: made = ir_add_state(to, ir_node_name(o->from, node), &n->type); break;
  case IR_OP_const: made = ir_add_const(to, &n->type, &o->from->consts.at[n->payload]); break;
  default: made = ir_add_node(to, (ir_op)n->op, n->arity, args, n->attr_count, attrs, &n->type); break;
  }
  if (to->failed) return 0;
  if (n->name && !ir_at(to, made)->name) ir_set_name(to, made, ir_node_name(o->from, node));
  to->nodes.at[made].origin = n->origin;
  return made;
}

bool outline_lies_inside(const ir_graph *g, uint32_t region, uint32_t outer) {
  while (region > outer) region = g->regions.at[region].parent;
  return region == outer;
}

/* What contracts say of values of a region, and of those inside it if it is a loop's: of the others its graph knows nothing. */
bool outline_copy_contracts(const outline *o, ir_graph *to, const uint32_t *map, uint32_t region) {
  const ir_graph *g = o->from;
  uint32_t *own = g->contracts.count ? IR_NEW_ARRAY(o->c->arena, uint32_t, g->nodes.count) : NULL;
  for (uint32_t n = 1; own && n < g->nodes.count; n++) {
    const uint32_t of = ir_at(g, n)->region;
    if (region ? outline_lies_inside(g, of, region) : !of) own[n] = map[n];
  }
  if (own) ir_copy_contracts(g, to, own);
  return own || !g->contracts.count;
}

const uint32_t *outline_yields(const taken *t) { return &t->o->from->yields.at[t->o->from->regions.at[t->region].first]; }

bool outline_is_argument(const taken *t, uint32_t node, uint32_t index) {
  const ir_node *n = ir_at(t->o->from, node);
  return n->op == IR_OP_argument && n->region == t->region && ir_attr_int(t->o->from, node, IR_ATTR_index, -1) == (int64_t)index;
}

/* Is it made of constants by views, casts and arithmetic alone? OUTLINE_WIDENED: one of them has fewer bytes; weights of products are, which settle
   such (rewrite/weights.c) in the body as anywhere. As an input they would be widened in every run, and be no constant to the products. */
uint32_t outline_what(const ir_graph *g, uint32_t node, uint32_t depth) {
  const ir_node *n = ir_at(g, node);
  uint32_t most = OUTLINE_CONSTANT;
  if (n->op == IR_OP_const) return OUTLINE_CONSTANT;
  const bool simple = n->op == IR_OP_cast || n->op == IR_OP_add || n->op == IR_OP_sub || n->op == IR_OP_mul || n->op == IR_OP_broadcast;
  if (!depth || !(simple || (fusion_is_view(g, node) && n->op != IR_OP_concat))) return OUTLINE_VARIES;
  for (uint32_t i = 0; i < n->arity; i++) {
    const uint32_t own = outline_what(g, ir_arg(g, node, i), depth - 1);
    if (own == OUTLINE_VARIES) return OUTLINE_VARIES;
    if (own > most) most = own;
  }
  return n->op == IR_OP_cast && ir_dtypes[ir_at(g, ir_arg(g, node, 0))->type.dtype].bytes < ir_dtypes[n->type.dtype].bytes ? OUTLINE_WIDENED
                                                                                                                           : most;
}

/* What carried value k is behind a trip: where the flag is down, what it was. The trips behind the end change nothing, and so may be left out. */
uint32_t outline_guard(ir_graph *g, bool is_flag, uint32_t flag, uint32_t next, uint32_t before) {
  if (next == before) return next;
  return is_flag ? ir_add2(g, IR_OP_and, flag, next) : ir_add3(g, IR_OP_select, flag, next, before);
}
