/* The hyper-edge of attention: anchored at the contraction of the values. In: the graph. Out: the members that fusion/attention.c finds. */
#include "fusion/attention.h"
#include "fusion/group/private.h"

/* Pointwise operators and transposes below a value: each is a node of the attention that it would be the weights of. */
static uint32_t count_below(grouping *s, uint32_t node, uint32_t count) {
  const ir_graph *g = s->c->graph;
  const ir_node *n = ir_at(g, node);
  if (s->tried[node] == s->mark || count > ATTENTION_NODES) return count;
  s->tried[node] = s->mark;
  count++;
  if (n->op == IR_OP_transpose || ((ir_ops[n->op].flags & IR_POINTWISE) && !s->uses.is_output[node]))
    for (uint32_t i = 0; i < n->arity; i++) count = count_below(s, ir_arg(g, node, i), count);
  return count;
}

static bool too_many_below(grouping *s, uint32_t node) {
  s->mark++;
  return count_below(s, node, 0) > ATTENTION_NODES;
}

bool match_attention(grouping *s, uint32_t node, hyper_match *m) {
  attention a;
  const char *why;
  uint32_t count;
  if (too_many_below(s, ir_arg(s->c->graph, node, 0)) && too_many_below(s, ir_arg(s->c->graph, node, 1))) return false;
  if (!attention_find(s->c, NULL, &s->uses, node, &a, &why)) return false;
  const uint32_t *members = attention_members(s->c, &a, &count);
  for (uint32_t i = 0; members && i < count; i++)
    if (!hyper_add(m, members[i])) return false;
  m->hero = node;
  return members != NULL;
}
