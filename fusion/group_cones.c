/* Where groups are many: pointwise nodes begin in one group with their only reader. In: the graph, and what is stored. Out: per node the root of its cone, the one
   member that others read. Such a union saves a launch and a round trip, computes nothing twice and closes no circle: the queue takes it first on every
   profile, so it is taken without a price. Few members and few reads: which of the larger ones are worth their bindings the queue knows better. */
#include "fusion/group_private.h"

enum { MOST_MEMBERS = 16, MOST_READS = 8 };

static bool is_pointwise(const grouping *s, uint32_t node) {
  return s->needed[node] && s->kinds[node] == GROUP_LOOP && (ir_ops[ir_at(s->c->graph, node)->op].flags & IR_POINTWISE);
}

/* The root that all readers of a value share; 0: they do not, or something else reads it. */
static uint32_t root_of_readers(const grouping *s, const uint32_t *roots, uint32_t node) {
  const fusion_context *c = s->c;
  uint32_t root = 0;
  if (s->is_stored[node] || s->uses.is_output[node]) return 0;
  for (uint32_t u = s->uses.first[node]; u < s->uses.first[node + 1]; u++) {
    const uint32_t user = s->uses.user[u];
    if (!s->needed[user]) continue;
    if (!is_pointwise(s, user) || c->facts[user].count != c->facts[node].count || (root && roots[user] != root)) return 0;
    root = roots[user];
  }
  return root;
}

static void record(grouping *s, uint32_t node, uint32_t root) {
  group_record(s, (fusion_decision){.producer = node,
                                    .consumer = root,
                                    .taken = true,
                                    .form = DECISION_PAIR,
                                    .kinds = {GROUP_LOOP, GROUP_LOOP},
                                    .rule = "only reader",
                                    .limit = s->c->options->profile->max_bindings});
}

bool group_find_cones(grouping *s, uint32_t **roots) {
  const fusion_context *c = s->c;
  const uint32_t n = c->graph->nodes.count, half = c->options->profile->max_bindings / 2,
                 most = half && half < MOST_READS ? half : MOST_READS;
  if (c->options->level != FUSION_FUSED || c->graph->contracts.count) return true;
  uint32_t *root = IR_NEW_ARRAY(c->arena, uint32_t, n);
  uint8_t *members = IR_NEW_ARRAY(c->arena, uint8_t, n), *reads = IR_NEW_ARRAY(c->arena, uint8_t, n); /* of roots; each operand counts */
  if (!root || !members || !reads) return false;
  for (uint32_t node = n; node-- > 1;) {
    root[node] = node;
    if (!is_pointwise(s, node)) continue;
    const uint32_t own = ir_at(c->graph, node)->arity, with = root_of_readers(s, root, node);
    members[node] = 1;
    reads[node] = (uint8_t)own;
    if (!with || members[with] == MOST_MEMBERS || reads[with] + own > most + 1) continue;
    root[node] = with;
    members[with]++;
    reads[with] = (uint8_t)(reads[with] + own - 1);
    record(s, node, with);
  }
  *roots = root;
  return true;
}
