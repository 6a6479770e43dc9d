/* The walk that rewriting passes share. Names and origins survive: a value that replaces another takes its name if it has none.
   Graphs with regions are left as they are: their bodies are rewritten when they are expanded. */
#include "fusion/rebuild.h"

void rebuild_keep_identity(rebuild *r, uint32_t made, uint32_t node) {
  const ir_node *old = ir_at(r->from, node);
  ir_node *n = &r->to->nodes.at[made];
  if (!n->origin) n->origin = old->origin;
  if (!n->name && old->name) n->name = ir_name_add(r->to, ir_node_name(r->from, node), strlen(ir_node_name(r->from, node)));
}

static uint32_t copy_source(rebuild *r, const ir_node *n) {
  switch (n->op) {
  case IR_OP_input: return ir_add_input(r->to, ir_node_name(r->from, r->node), &n->type);
  case IR_OP_state: return ir_add_state(r->to, ir_node_name(r->from, r->node), &n->type);
  default: return ir_add_const(r->to, &n->type, &r->from->consts.at[n->payload]);
  }
}

uint32_t rebuild_copy_of(rebuild *r, uint32_t node, const uint32_t *args) {
  const uint32_t made = ir_add_like(r->to, r->from, node, args);
  if (made) rebuild_keep_identity(r, made, node);
  return made;
}

uint32_t rebuild_copy(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  if (n->op == IR_OP_input || n->op == IR_OP_state || n->op == IR_OP_const) return copy_source(r, n);
  uint32_t args[256];
  for (uint32_t i = 0; i < n->arity; i++) args[i] = r->map[ir_arg(r->from, r->node, i)];
  return rebuild_copy_of(r, r->node, args);
}

uint32_t rebuild_view(rebuild *r, ir_op op, uint32_t operand, uint32_t attr_count, const ir_attr_value *attrs) {
  return ir_add_node(r->to, op, 1, &operand, attr_count, attrs, NULL);
}

uint32_t rebuild_reshape(rebuild *r, uint32_t operand, uint32_t rank, const ir_expr *dims) {
  return rebuild_view(r, IR_OP_reshape, operand, 1, &(ir_attr_value){IR_ATTR_shape, rank, dims});
}

uint32_t rebuild_transpose(rebuild *r, uint32_t operand, uint32_t rank, const ir_expr *perm) {
  return rebuild_view(r, IR_OP_transpose, operand, 1, &(ir_attr_value){IR_ATTR_perm, rank, perm});
}

uint32_t rebuild_broadcast(rebuild *r, uint32_t operand, uint32_t count, const ir_expr *axes, uint32_t rank, const ir_expr *dims) {
  const ir_attr_value attrs[] = {{IR_ATTR_shape, rank, dims}, {IR_ATTR_axes, count, axes}};
  return rebuild_view(r, IR_OP_broadcast, operand, axes ? 2 : 1, attrs);
}

uint32_t rebuild_slice(rebuild *r, uint32_t operand, uint32_t rank, const ir_expr *starts, const ir_expr *sizes, const ir_expr *steps) {
  const ir_attr_value attrs[] = {{IR_ATTR_sizes, rank, sizes}, {IR_ATTR_starts, rank, starts}, {IR_ATTR_steps, rank, steps}};
  return rebuild_view(r, IR_OP_slice, operand, steps ? 3 : 2, attrs);
}

uint32_t rebuild_with(rebuild *r, uint32_t arity, const uint32_t *args, uint32_t count, const ir_attr_value *replaced) {
  const ir_node *n = ir_at(r->from, r->node);
  ir_attr_value attrs[IR_ATTR_COUNT];
  for (uint32_t i = 0; i < n->attr_count; i++) {
    const ir_attr *a = &r->from->attrs.at[n->attrs + i];
    attrs[i] = (ir_attr_value){a->key, a->count, r->from->ints.at + a->first};
    for (uint32_t k = 0; k < count; k++)
      if (replaced[k].key == a->key) attrs[i] = replaced[k];
  }
  return ir_add_node(r->to, (ir_op)n->op, arity, args, n->attr_count, attrs, NULL);
}

uint32_t rebuild_wide(rebuild *r, uint32_t node) {
  if (!node || ir_at(r->to, node)->type.dtype == SNT_F32) return node;
  if (!fusion_only_moves(r->to, node)) return ir_add_cast(r->to, node, SNT_F32);
  const uint32_t below = rebuild_wide(r, ir_arg(r->to, node, 0));
  return below ? ir_add_retyped(r->to, node, &below) : 0;
}

/* The rules of a pass, a bit each for every operator that they have a word about: most have none about most nodes. */
typedef struct rule_table {
  const rebuild_rule *rules;
  uint16_t of[IR_OP_COUNT];
} rule_table;

static void fill_table(rule_table *t, const rebuild_rule *rules, uint32_t rule_count) {
  *t = (rule_table){.rules = rules};
  IR_ASSERT(rule_count <= 16);
  for (uint32_t i = 0; i < rule_count; i++) {
    const bool all = !rules[i].ops[0] && !rules[i].flags;
    for (uint32_t k = 0; k < IR_COUNT(rules[i].ops); k++) t->of[rules[i].ops[k]] |= (uint16_t)(1u << i);
    for (uint32_t op = 0; (all || rules[i].flags) && op < IR_OP_COUNT; op++)
      if (all || ir_ops[op].flags & rules[i].flags) t->of[op] |= (uint16_t)(1u << i);
  }
}

/* What the first rule that has a word about the node says; 0: none has. */
static uint32_t rewrite_node(rebuild *r, const rule_table *t) {
  const ir_node *n = ir_at(r->from, r->node);
  uint32_t made = 0, asked = t->of[n->op];
  for (uint32_t i = 0; asked && i < n->arity && i < 16; i++) r->args[i] = r->map[ir_arg(r->from, r->node, i)];
  for (uint32_t i = 0; asked >> i && !made; i++)
    if (asked >> i & 1) made = t->rules[i].make(r);
  return made;
}

/* The first node that a rule replaces or adds something for. Up to there the new graph would be the old one, which stands for it: most passes have
   nothing to say of most graphs. */
static uint32_t find_first(rebuild *r, const rule_table *t) {
  ir_graph same = *r->from;
  r->to = &same;
  for (r->node = 1; r->node < r->from->nodes.count; r->node++) {
    r->map[r->node] = r->node;
    if (rewrite_node(r, t) || same.nodes.count > r->from->nodes.count || same.failed) break;
  }
  return r->node;
}

static void copy_ends(rebuild *r) {
  const ir_graph *f = r->from;
  for (uint32_t i = 0; i < f->outputs.count; i++) ir_add_output(r->to, &f->names.at[f->outputs.at[i].name], r->map[f->outputs.at[i].node]);
  for (uint32_t i = 0; i < f->updates.count; i++) ir_add_update(r->to, r->map[f->updates.at[i].state], r->map[f->updates.at[i].value]);
  ir_copy_contracts(f, r->to, r->map);
}

static snt_result drop_dead(fusion_context *c, bool *changed) {
  ir_graph *live = IR_NEW(c->arena, ir_graph);
  uint32_t *map = IR_NEW_ARRAY(c->arena, uint32_t, c->graph->nodes.count);
  if (!live || !map) return ir_no_memory(c->diag, "canonicalise");
  ir_graph_init(live, c->arena, c->graph->pool);
  SNT_TRY(ir_graph_copy_live(c->graph, live, map));
  if (live->nodes.count < c->graph->nodes.count) *changed = true;
  c->graph = live;
  return SNT_OK;
}

snt_result fusion_rebuild_with(fusion_context *c, const rebuild_rule *rules, uint32_t rule_count, void *user, bool *changed) {
  if (c->graph->regions.count > 1) return SNT_OK;
  rebuild r = {.c = c, .from = c->graph, .user = user};
  r.map = IR_NEW_ARRAY(c->arena, uint32_t, c->graph->nodes.count);
  if (!r.map) return ir_no_memory(c->diag, "canonicalise");
  rule_table t;
  fill_table(&t, rules, rule_count);
  const uint32_t first = find_first(&r, &t);
  if (first == r.from->nodes.count) return SNT_OK;
  r.to = IR_NEW(c->arena, ir_graph);
  if (!r.to) return ir_no_memory(c->diag, "canonicalise");
  ir_graph_init(r.to, c->arena, c->graph->pool);
  r.to->title = c->graph->title;
  r.to->bodies = c->graph->bodies;
  ir_graph_expect(r.to, r.from);
  for (r.node = 1; r.node < r.from->nodes.count && !r.to->failed; r.node++) {
    const uint32_t made = r.node < first ? 0 : rewrite_node(&r, &t);
    r.changed |= made != 0;
    r.map[r.node] = made ? made : rebuild_copy(&r);
    if (r.map[r.node]) rebuild_keep_identity(&r, r.map[r.node], r.node);
  }
  copy_ends(&r);
  if (r.to->failed) {
    if (c->diag) *c->diag = r.to->first_error;
    return r.to->first_error.result ? r.to->first_error.result : SNT_E_HOST_MEM;
  }
  if (!r.changed) return SNT_OK;
  *changed = true;
  c->graph = r.to;
  return drop_dead(c, changed);
}

snt_result fusion_rebuild(fusion_context *c, const rebuild_rule *rules, uint32_t rule_count, bool *changed) {
  return fusion_rebuild_with(c, rules, rule_count, NULL, changed);
}
