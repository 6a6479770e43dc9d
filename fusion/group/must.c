/* must_fuse: groups that the user wants as one kernel. In: a group a node, priced. Out: the nodes of each contract in one group, whatever the price;
   the queue may add to it and never takes from it. What no kind holds is left as it is: independent parts may still share a launch (fusion/batch.c),
   and `steer_check` says what was in the way. Ways to one kernel, in order: the kinds of the parts folded from first to last; a structure that a
   matcher of hyper-edges knows; pairs, as long as two of the parts can be one. */
#include "fusion/group/private.h"
#include <stdlib.h>

typedef struct must {
  group_run *r;
  const steer_must *wanted;
  uint32_t *groups, count; /* the groups of its nodes, ascending */
  const char *why;
  fusion_group fused; /* the last that was tried, for the record */
} must;

static int by_number(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static void find_groups(must *m) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < m->wanted->count; i++)
    if (m->r->s.group_of[m->wanted->nodes[i]]) m->groups[count++] = group_number(m->r, m->wanted->nodes[i]);
  qsort(m->groups, count, sizeof *m->groups, by_number);
  m->count = 0;
  for (uint32_t i = 0; i < count; i++)
    if (!i || m->groups[i] != m->groups[m->count - 1]) m->groups[m->count++] = m->groups[i];
}

static void record(const must *m, bool taken, const char *rule, const uint32_t *groups, uint32_t count, const fusion_group *fused) {
  fusion_context *c = m->r->s.c;
  fusion_group parts[2] = {c->groups.at[groups[0]], c->groups.at[groups[count - 1]]};
  for (uint32_t i = 1; i + 1 < count; i++) {
    parts[0].cost.ns += c->groups.at[groups[i]].cost.ns;
    parts[0].cost.bytes += c->groups.at[groups[i]].cost.bytes;
  }
  const fusion_group *both[2] = {&parts[0], &parts[1]};
  group_record_pair(&m->r->s, c->groups.at[groups[0]].hero, c->groups.at[groups[count - 1]].hero, taken, rule, both, fused);
}

/* One kernel of these groups, of this kind. */
static bool take(must *m, const uint32_t *groups, uint32_t count, group_kind kind, uint32_t hero) {
  group_run *r = m->r;
  if (!kind) m->why = "kind";
  if (!kind || !group_unite_all(&r->s, groups, count, kind, hero, &m->fused, &m->why)) return false;
  if (group_makes_cycle(&r->s, groups, count)) {
    m->why = "cycle";
    return false;
  }
  group_price(&r->s, &m->fused);
  record(m, true, "must_fuse", groups, count, &m->fused);
  group_take(r, groups, count, &m->fused);
  return true;
}

static bool take_by_kinds(must *m) {
  const fusion_context *c = m->r->s.c;
  group_kind kind = (group_kind)c->groups.at[m->groups[0]].kind;
  for (uint32_t i = 1; i < m->count && kind; i++) kind = group_merged_kind(kind, (group_kind)c->groups.at[m->groups[i]].kind);
  return take(m, m->groups, m->count, kind, 0);
}

/* The groups of a match, when all those wanted are among them. */
static uint32_t groups_of_match(const must *m, const hyper_match *found, uint32_t *groups) {
  uint32_t count = 0, kept = 0, wanted = 0;
  for (uint32_t i = 0; i < found->count; i++)
    if (m->r->s.group_of[found->nodes[i]]) groups[count++] = group_number(m->r, found->nodes[i]);
  qsort(groups, count, sizeof *groups, by_number);
  for (uint32_t i = 0; i < count; i++)
    if (!i || groups[i] != groups[kept - 1]) groups[kept++] = groups[i];
  for (uint32_t i = 0; i < kept && wanted < m->count; i++) wanted += groups[i] == m->groups[wanted];
  return wanted == m->count ? kept : 0;
}

static bool take_by_match(must *m) {
  group_run *r = m->r;
  const ir_graph *g = r->s.c->graph;
  for (uint32_t node = m->wanted->nodes[0]; node < g->nodes.count; node++) {
    if (!r->s.needed[node] || !r->s.group_of[node]) continue;
    for (uint32_t i = 0; i < hyper_matcher_count; i++) {
      hyper_match found = {0};
      uint32_t groups[HYPER_MAX_NODES];
      if (hyper_matchers[i].anchor != ir_at(g, node)->op || !hyper_matchers[i].match(&r->s, node, &found)) continue;
      const uint32_t count = groups_of_match(m, &found, groups);
      if (count < 2 || group_forbidden(r, groups, count)) continue;
      if (take(m, groups, count, (group_kind)hyper_matchers[i].kind, found.hero)) return true;
    }
  }
  return false;
}

/* Any two of the groups, again and again. */
static bool take_a_pair(must *m) {
  const fusion_context *c = m->r->s.c;
  for (uint32_t a = 0; a < m->count; a++)
    for (uint32_t b = a + 1; b < m->count; b++) {
      const uint32_t pair[] = {m->groups[a], m->groups[b]};
      const group_kind kind = group_merged_kind((group_kind)c->groups.at[pair[0]].kind, (group_kind)c->groups.at[pair[1]].kind);
      if (take(m, pair, 2, kind, 0)) return true;
    }
  return false;
}

static void take_must(must *m) {
  find_groups(m);
  if (m->count < 2) return;
  m->why = group_forbidden(m->r, m->groups, m->count);
  if (!m->why) {
    if (take_by_kinds(m) || take_by_match(m)) return;
    const must whole = *m;
    while (m->count > 1 && take_a_pair(m)) find_groups(m);
    if (m->count < 2) return;
    m->why = whole.why;
    m->fused = whole.fused;
  }
  record(m, false, m->why, m->groups, m->count, m->fused.count ? &m->fused : NULL);
}

void must_take(group_run *r) {
  fusion_context *c = r->s.c;
  for (uint32_t i = 0; c->steer && i < c->steer->musts.count; i++) {
    must m = {.r = r, .wanted = &c->steer->musts.at[i]};
    m.groups = IR_NEW_ARRAY(c->arena, uint32_t, m.wanted->count + 1);
    if (m.groups) take_must(&m);
    else c->plan->failed = true;
  }
}
