/* Where groups are many: pointwise nodes begin in one group with their only reader, and in each block such groups join the first of their readers. In: the
   graph, and what is stored; the groups of a block. Out: per node the root of its cone, the one member that others read; larger groups. Such a union saves a
   launch and a pass over a value, computes nothing twice and closes no circle, so it is taken without a price. Few members and few ports: which of the
   larger ones are worth their bindings the queue knows better. */
#include "fusion/group/private.h"

enum { MOST_MEMBERS = 16 };

static uint32_t most_ports(const grouping *s) {
  const uint32_t half = s->c->options->profile->max_bindings / 2, enough = 8;
  return half && half < enough ? half : enough;
}

static bool is_pointwise(const grouping *s, uint32_t node) {
  return s->needed[node] && s->kinds[node] == GROUP_LOOP && (ir_ops[ir_at(s->c->graph, node)->op].flags & IR_POINTWISE);
}

/* The root that all readers of a value share; 0: they do not, or something else reads it. */
static uint32_t root_of_readers(const grouping *s, const uint32_t *roots, uint32_t node) {
  const fusion_context *c = s->c;
  uint32_t root = 0;
  if (s->storage[node] || s->uses.is_output[node]) return 0;
  for (uint32_t u = s->uses.first[node]; u < s->uses.first[node + 1]; u++) {
    const uint32_t user = s->uses.user[u];
    if (!s->needed[user]) continue;
    if (!is_pointwise(s, user) || c->facts[user].count != c->facts[node].count || (root && roots[user] != root)) return 0;
    root = roots[user];
  }
  return root;
}

static void record(grouping *s, uint32_t node, uint32_t root, const char *rule) {
  group_record(s, (fusion_decision){.producer = node,
                                    .consumer = root,
                                    .taken = true,
                                    .form = DECISION_PAIR,
                                    .kinds = {GROUP_LOOP, GROUP_LOOP},
                                    .rule = rule,
                                    .limit = s->c->options->profile->max_bindings});
}

bool group_find_cones(grouping *s, uint32_t **roots) {
  const fusion_context *c = s->c;
  const uint32_t n = c->graph->nodes.count, most = most_ports(s);
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
    record(s, node, with, "only reader");
  }
  *roots = root;
  return true;
}

/* Of the groups that read a value, through free views, the least deep: what all paths from the value to it begin with, so that none leads around. */
static void find_first_reader(const grouping *s, uint32_t number, uint32_t from, uint32_t depth, uint32_t *first) {
  for (uint32_t u = s->uses.first[from]; u < s->uses.first[from + 1]; u++) {
    const uint32_t user = s->uses.user[u], owner = s->group_of[user];
    if (!s->needed[user] || owner == number + 1) continue;
    if (!owner && depth < 64 && fusion_is_view(s->c->graph, user)) find_first_reader(s, number, user, depth + 1, first);
    if (owner && (!*first || s->place[owner - 1].level < s->place[*first - 1].level)) *first = owner;
  }
}

static bool may_join(const group_run *r, const fusion_group *a, const fusion_group *b) {
  const fusion_context *c = r->s.c;
  return b->kind == GROUP_LOOP && c->facts[a->hero].count == c->facts[b->hero].count && a->count + b->count <= MOST_MEMBERS &&
         a->moved + b->moved <= GROUP_FEW_MOVED;
}

static bool join_first_reader(group_run *r, uint32_t a) {
  grouping *s = &r->s;
  const fusion_group *group = &s->c->groups.at[a];
  uint32_t first = 0;
  fusion_group fused;
  for (uint32_t i = 0; i < group->output_count; i++) {
    const uint32_t node = group->outputs[i];
    if (s->storage[node] == GROUP_STORED_APART) return true;
    find_first_reader(s, a, node, 0, &first);
  }
  if (!first || !group_in_block(r, first - 1) || !may_join(r, group, &s->c->groups.at[first - 1])) return true;
  if (!group_join_loops(s, a, first - 1, &fused)) return false;
  if (fused.input_count + fused.output_count > most_ports(s)) return true;
  for (uint32_t i = 0; i < group->output_count; i++) record(s, group->outputs[i], fused.hero, "first reader");
  group_take(r, (const uint32_t[]){a, first - 1}, 2, &fused);
  return true;
}

bool group_join_first_readers(group_run *r) {
  const fusion_context *c = r->s.c;
  const char *why;
  for (uint32_t a = r->first; a < r->end; a++)
    if (!c->groups.at[a].dead && c->groups.at[a].kind == GROUP_LOOP && !join_first_reader(r, a)) return false;
  for (uint32_t a = r->first; a < r->end; a++) {
    const fusion_group was = c->groups.at[a];
    fusion_group group = was;
    if (group.dead || group.cost.ns > 0) continue;
    ir_arena_rewind(&r->s.scratch, r->s.empty); /* legal as it is: only memory can run out */
    if (!group_finish(&r->s, &group, &why)) return false;
    group_price(&r->s, &group);
    if (!group_settle(&r->s, a, &group)) return false;
    group_drop(&r->s, &was);
  }
  return true;
}
