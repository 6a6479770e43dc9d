/* Hyper-edges: whole groups that structural matchers propose, for what loses edge by edge and pays as a whole. In: the graph and the table of matchers.
   Out: proposals in the one queue, priced like any edge: T(one kernel) against the sum of T(parts); parts may have grown in the meantime.
   Adding one: a match function over the graph and a row in `hyper_matchers`; the kind's `accepts` is the legality, its `work` the price. */
#include "fusion/group/private.h"

const hyper_matcher hyper_matchers[] = {
    {"gated-dual-contraction", IR_OP_mul, GROUP_CONTRACT, match_gated_contraction},
    {"attention", IR_OP_contract, GROUP_ATTENTION, match_attention},
    {"sibling-contractions", IR_OP_contract, GROUP_CONTRACT, match_sibling_contractions},
};
const uint32_t hyper_matcher_count = IR_COUNT(hyper_matchers);

bool hyper_add(hyper_match *m, uint32_t node) {
  for (uint32_t i = 0; i < m->count; i++)
    if (m->nodes[i] == node) return true;
  if (m->count == HYPER_MAX_NODES) return false;
  m->nodes[m->count++] = node;
  return true;
}

/* The groups that hold its nodes now, each once, in the order of their numbers (the last one takes the others in). */
static uint32_t groups_of(const group_run *r, const hyper_edge *h, uint32_t *groups) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < h->count; i++) {
    if (!r->s.group_of[h->nodes[i]]) continue;
    const uint32_t number = group_number(r, h->nodes[i]);
    uint32_t at = 0;
    while (at < count && groups[at] < number) at++;
    if (at < count && groups[at] == number) continue;
    for (uint32_t k = count++; k > at; k--) groups[k] = groups[k - 1];
    groups[at] = number;
  }
  return count;
}

typedef struct hyper_parts {
  uint32_t count, version;
  double ns, bytes;
  uint32_t groups[HYPER_MAX_NODES];
} hyper_parts;

static void find_parts(const group_run *r, const hyper_edge *h, hyper_parts *p) {
  *p = (hyper_parts){0};
  p->count = groups_of(r, h, p->groups);
  for (uint32_t i = 0; i < p->count; i++) {
    const fusion_group *group = &r->s.c->groups.at[p->groups[i]];
    p->version += r->version[p->groups[i]];
    p->ns += group->cost.ns;
    p->bytes += group->cost.bytes;
  }
}

static bool price(group_run *r, const hyper_edge *h, const hyper_parts *p, fusion_group *fused, const char **why) {
  *fused = (fusion_group){0};
  *why = group_forbidden(r, p->groups, p->count);
  if (*why || !group_unite_all(&r->s, p->groups, p->count, (group_kind)h->matcher->kind, h->hero, fused, why)) return false;
  group_price(&r->s, fused);
  const bool pays = group_pays(&r->s, p->ns - fused->cost.ns);
  *why = pays ? "saves" : "loses";
  return pays;
}

/* Into the queue when it saves; else a record says why not. */
static void consider(group_run *r, uint32_t number) {
  const hyper_edge *h = &r->hypers.at[number];
  hyper_parts parts;
  fusion_group fused;
  const char *why;
  find_parts(r, h, &parts);
  if (parts.count < 2 || !group_in_block(r, parts.groups[0]) || !group_in_block(r, parts.groups[parts.count - 1])) return;
  if (!price(r, h, &parts, &fused, &why)) {
    group_record_hyper(&r->s, h, false, why, parts.ns, parts.bytes, &fused);
    return;
  }
  const edge e = {.saving = parts.ns - fused.cost.ns,
                  .producer = h->nodes[0],
                  .consumer = h->nodes[h->count - 1],
                  .version = parts.version,
                  .hyper = number + 1};
  if (!group_push(r->s.c, &r->queue, e)) r->s.c->plan->failed = true;
}

uint32_t hyper_pop(group_run *r, const edge *e) {
  const hyper_edge *h = &r->hypers.at[e->hyper - 1];
  hyper_parts parts;
  fusion_group fused;
  const char *why;
  find_parts(r, h, &parts);
  if (parts.version != e->version) { /* a part has changed: its saving is another */
    consider(r, e->hyper - 1);
    return 0;
  }
  if (group_makes_cycle(&r->s, parts.groups, parts.count)) {
    group_record_hyper(&r->s, h, false, "cycle", parts.ns, parts.bytes, NULL);
    return 0;
  }
  if (!price(r, h, &parts, &fused, &why)) return 0;
  group_record_hyper(&r->s, h, true, h->matcher->name, parts.ns, parts.bytes, &fused);
  group_take(r, parts.groups, parts.count, &fused);
  return parts.groups[parts.count - 1] + 1;
}

static void sort_nodes(hyper_match *m) {
  for (uint32_t i = 1; i < m->count; i++)
    for (uint32_t k = i; k && m->nodes[k - 1] > m->nodes[k]; k--) {
      const uint32_t node = m->nodes[k];
      m->nodes[k] = m->nodes[k - 1];
      m->nodes[k - 1] = node;
    }
}

static void propose(group_run *r, const hyper_matcher *matcher, uint32_t node) {
  fusion_context *c = r->s.c;
  hyper_match m = {0};
  if (!matcher->match(&r->s, node, &m) || m.count < 2) return;
  sort_nodes(&m);
  uint32_t *nodes = IR_NEW_ARRAY(c->arena, uint32_t, m.count);
  const hyper_edge h = {.matcher = matcher, .count = m.count, .hero = m.hero, .nodes = nodes};
  if (!nodes || !IR_PUSH(c->arena, &r->hypers, h)) {
    c->plan->failed = true;
    return;
  }
  memcpy(nodes, m.nodes, m.count * sizeof *nodes);
  consider(r, r->hypers.count - 1);
}

void hyper_propose(group_run *r) {
  const fusion_context *c = r->s.c;
  if (c->options->level == FUSION_UNFUSED) return;
  for (; r->matched < c->graph->nodes.count; r->matched++) {
    const uint32_t node = r->matched;
    if (!r->s.needed[node] || !r->s.group_of[node]) continue;
    if (group_number(r, node) >= r->end) return;
    for (uint32_t i = 0; i < hyper_matcher_count; i++)
      if (hyper_matchers[i].anchor == ir_at(c->graph, node)->op) propose(r, &hyper_matchers[i], node);
  }
}

void hyper_propose_across(group_run *r) {
  for (uint32_t i = 0; i < r->hypers.count; i++) consider(r, i);
}
