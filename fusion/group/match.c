/* Structural matchers of the hyper-edges over contractions. In: a node. Out: the nodes that would be one kernel. They look at structure only:
   pointwise nodes and views between contractions, operands shared, labels equal; never at names. */
#include "fusion/contract_set.h"
#include "fusion/group/private.h"

/* ---- gated dual contraction: a product of two branches, each of which ends in contractions of one shape over one operand ---- */

static bool same_elements(const fusion_context *c, uint32_t a, uint32_t b) { return c->facts[a].count == c->facts[b].count; }

static bool hyper_has(const hyper_match *m, uint32_t node) {
  uint32_t i = 0;
  while (i < m->count && m->nodes[i] != node) i++;
  return i < m->count;
}

/* Pointwise nodes, each once, down to contractions of as many elements; other leaves (bias, residual) are read. */
static bool collect_branch(grouping *s, uint32_t node, hyper_match *m, uint32_t *contractions, uint32_t depth) {
  const ir_graph *g = s->c->graph;
  const ir_node *n = ir_at(g, node);
  if (depth > 24) return false;
  if (n->op == IR_OP_contract) {
    (*contractions)++;
    return hyper_add(m, node);
  }
  if (fusion_is_view(g, node) && n->op != IR_OP_concat) return collect_branch(s, ir_arg(g, node, 0), m, contractions, depth + 1);
  if (!(ir_ops[n->op].flags & IR_POINTWISE)) return true;
  if (s->tried[node] == s->mark) {
    *contractions += hyper_has(m, node);
    return true;
  }
  s->tried[node] = s->mark;
  const uint32_t before = *contractions, kept = m->count;
  for (uint32_t i = 0; i < n->arity; i++)
    if (same_elements(s->c, ir_arg(g, node, i), node) && !collect_branch(s, ir_arg(g, node, i), m, contractions, depth + 1)) return false;
  if (*contractions == before) m->count = kept; /* does not come from a contraction */
  else if (!hyper_add(m, node)) return false;
  return true;
}

static bool share_operand(const ir_graph *g, uint32_t a, uint32_t b) {
  return ir_arg(g, a, 0) == ir_arg(g, b, 0) || ir_arg(g, a, 1) == ir_arg(g, b, 1);
}

/* Every contraction of the match is alike the first and reads one of its operands. */
static bool all_alike(const ir_graph *g, const hyper_match *m) {
  uint32_t first = 0, count = 0;
  for (uint32_t i = 0; i < m->count; i++) {
    if (ir_at(g, m->nodes[i])->op != IR_OP_contract) continue;
    if (!first) first = m->nodes[i];
    else if (!contract_alike(g, first, m->nodes[i]) || !share_operand(g, first, m->nodes[i])) return false;
    count++;
  }
  return count >= 2 && count <= CONTRACT_SET_MAX;
}

bool match_gated_contraction(grouping *s, uint32_t node, hyper_match *m) {
  const ir_graph *g = s->c->graph;
  uint32_t in_branch[2] = {0};
  s->mark++;
  if (!same_elements(s->c, ir_arg(g, node, 0), ir_arg(g, node, 1)) || !hyper_add(m, node)) return false;
  for (uint32_t i = 0; i < 2; i++)
    if (!collect_branch(s, ir_arg(g, node, i), m, &in_branch[i], 0) || !in_branch[i]) return false;
  return all_alike(g, m);
}

/* ---- siblings: contractions of one shape that read one operand (query, key and value of one input) ---- */

static void add_siblings(const grouping *s, uint32_t node, uint32_t operand, hyper_match *m) {
  const ir_graph *g = s->c->graph;
  const uint32_t shared = ir_arg(g, node, operand);
  for (uint32_t u = s->uses.first[shared]; u < s->uses.first[shared + 1] && m->count < CONTRACT_SET_MAX; u++) {
    const uint32_t user = s->uses.user[u];
    if (s->needed[user] && contract_alike(g, node, user) && ir_arg(g, user, operand) == shared) hyper_add(m, user);
  }
}

/* Anchored at the first of them, so that each set is proposed once. */
bool match_sibling_contractions(grouping *s, uint32_t node, hyper_match *m) {
  for (uint32_t operand = 0; operand < 2; operand++) {
    *m = (hyper_match){0};
    add_siblings(s, node, operand, m);
    for (uint32_t i = 0; i < m->count; i++)
      if (m->nodes[i] < node) m->count = 0;
    if (m->count >= 2) return true;
  }
  return false;
}
