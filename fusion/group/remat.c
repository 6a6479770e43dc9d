/* Rematerialisation: a stored value with readers in other kernels is computed again in each of them when that is cheaper than the round trip.
   In: groups as the queue left them. Out: the pointwise nodes that give the value become members of every reader, and nobody stores it.
   The three choices are priced alike: a kernel of its own and an extra output of some kernel are what the queue chose between; here the better of
   them is compared with recomputing. A member that is recomputed is never an output: `recomputed` says so to group_find_ports. */
#include "fusion/group/private.h"
#include "fusion/schedule_common.h"
#include <stddef.h>

enum { MAX_READERS = 16, MAX_CONE = 64 };

typedef struct remat {
  uint32_t value, owner; /* the stored value and its group's number */
  uint32_t reader_count, cone_count;
  uint32_t version, bindings; /* bindings: of the group that could not be */
  double ns_before, ns_after, bytes_before, bytes_after;
  fusion_group rest; /* of the owner, without what only the value needed; no members: it vanishes */
  /* Lists, set as far as they are counted: */
  uint32_t readers[MAX_READERS], cone[MAX_CONE]; /* the cone in graph order */
  fusion_group changed[MAX_READERS];
} remat;

static bool has(const uint32_t *list, uint32_t count, uint32_t node) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == node) return true;
  return false;
}

static bool is_output_of(const fusion_group *group, uint32_t node) { return has(group->outputs, group->output_count, node); }

static double bytes_of(const fusion_context *c, uint32_t node) {
  return c->elements[node] * ir_dtypes[ir_at(c->graph, node)->type.dtype].bytes;
}

/* ---- who reads it, and what computes it ---- */

static bool add_readers(const group_run *r, remat *m, uint32_t node, uint32_t depth) {
  const grouping *s = &r->s;
  for (uint32_t u = s->uses.first[node]; u < s->uses.first[node + 1]; u++) {
    const uint32_t user = s->uses.user[u];
    if (!s->needed[user]) continue;
    if (!s->group_of[user]) {
      if (depth == 64 || !fusion_is_view(s->c->graph, user) || !add_readers(r, m, user, depth + 1)) return false;
      continue;
    }
    if (s->recomputed[user]) return false; /* it lives in several groups */
    const uint32_t number = group_number(r, user);
    if (number == m->owner || has(m->readers, m->reader_count, number)) continue;
    if (m->reader_count == MAX_READERS) return false;
    m->readers[m->reader_count++] = number;
  }
  return true;
}

/* Kernels of which neither waits for the other are given one launch: batch.c. */
static bool may_share_launch(const fusion_context *c, const fusion_group *a, const fusion_group *b) {
  const cost_profile *p = c->options->profile;
  if (!schedule_is_explicit(c) && !(p->both_sides && a->kind == b->kind)) return false; /* whose workgroups may differ */
  return fusion_is_launch_bound(p, a->cost.ns) && fusion_is_launch_bound(p, b->cost.ns);
}

bool group_shares_launch(const group_run *r, uint32_t value, uint32_t reader) {
  remat m;
  m.owner = group_number(r, value), m.reader_count = 0;
  const bool all = add_readers(r, &m, value, 0);
  while (all && m.reader_count--) { /* as deep as each other: neither waits */
    const uint32_t other = m.readers[m.reader_count];
    if (other != reader && r->s.place[other].level == r->s.place[reader].level &&
        may_share_launch(r->s.c, &r->s.c->groups.at[other], &r->s.c->groups.at[reader]))
      return true;
  }
  return false;
}

static bool in_cone(const remat *m, uint32_t node) { return has(m->cone, m->cone_count, node); }

/* Pointwise members down to values that are stored anyway. */
static bool add_cone(const group_run *r, remat *m, uint32_t node) {
  const grouping *s = &r->s;
  const ir_graph *g = s->c->graph;
  const fusion_group *owner = &s->c->groups.at[m->owner];
  if (node != m->value && is_output_of(owner, node)) return true;
  if (!fusion_is_view(g, node) || s->group_of[node]) {
    if (!fusion_group_has(owner, node) || in_cone(m, node)) return true;
    if (!(ir_ops[ir_at(g, node)->op].flags & IR_POINTWISE) || m->cone_count == MAX_CONE) return false;
    m->cone[m->cone_count++] = node;
  }
  for (uint32_t i = 0; i < ir_at(g, node)->arity; i++)
    if (!add_cone(r, m, ir_arg(g, node, i))) return false;
  return true;
}

static void sort_cone(remat *m) {
  for (uint32_t i = 1; i < m->cone_count; i++)
    for (uint32_t k = i; k && m->cone[k - 1] > m->cone[k]; k--) {
      const uint32_t node = m->cone[k];
      m->cone[k] = m->cone[k - 1];
      m->cone[k - 1] = node;
    }
}

/* ---- what is plain before anything is built ---- */

/* What the cone would have a reader read beside what it reads: how many buffers, and their bytes. */
static uint32_t count_new(grouping *s, const remat *m, const fusion_group *reader, double *bytes) {
  const fusion_context *c = s->c;
  const fusion_group *owner = &c->groups.at[m->owner];
  const uint32_t mark = ++s->mark;
  uint32_t count = 0;
  for (uint32_t i = 0; i < reader->input_count; i++) s->tried[reader->inputs[i]] = mark;
  for (uint32_t i = 0; i < m->cone_count; i++)
    for (uint32_t a = 0; a < ir_at(c->graph, m->cone[i])->arity; a++) {
      const uint32_t from = c->facts[ir_arg(c->graph, m->cone[i], a)].base;
      if (s->tried[from] == mark || in_cone(m, from) || !(has(owner->inputs, owner->input_count, from) || is_output_of(owner, from)))
        continue;
      s->tried[from] = mark;
      count++;
      *bytes += bytes_of(c, from);
    }
  return count;
}

/* A word for what cannot be bound, or reads more than is not stored and read any more; null: that takes prices. */
static const char *refused(grouping *s, remat *m) {
  const fusion_context *c = s->c;
  const uint32_t most = c->options->profile->max_bindings;
  const double own = bytes_of(c, m->value);
  double more = 0;
  for (uint32_t i = 0; i < m->reader_count; i++) {
    const fusion_group *reader = &c->groups.at[m->readers[i]];
    m->bindings = reader->input_count - 1 + count_new(s, m, reader, &more) + reader->output_count;
    if (most && m->bindings > most) return "bindings";
    more -= own;
  }
  return c->groups.at[m->owner].output_count > 1 && more >= own ? "reads more" : NULL;
}

/* ---- the groups as they would be ---- */

static void keep_member(grouping *s, const fusion_group *group, uint32_t node, uint32_t mark) {
  const ir_graph *g = s->c->graph;
  const bool member = fusion_group_has(group, node), view = !s->group_of[node] && fusion_is_view(g, node);
  if ((!member && !view) || (member && s->inside[node] == mark)) return;
  if (member) s->inside[node] = mark;
  for (uint32_t i = 0; i < ir_at(g, node)->arity; i++) keep_member(s, group, ir_arg(g, node, i), mark);
}

/* The owner without the value: members that its other results need. */
static bool build_rest(grouping *s, remat *m, const char **why) {
  const fusion_group *owner = &s->c->groups.at[m->owner];
  uint32_t *nodes = IR_NEW_ARRAY(&s->scratch, uint32_t, owner->count), count = 0;
  const uint32_t mark = ++s->mark;
  if (!nodes) return false;
  for (uint32_t i = 0; i < owner->output_count; i++)
    if (owner->outputs[i] != m->value) keep_member(s, owner, owner->outputs[i], mark);
  for (uint32_t i = 0; i < owner->count; i++)
    if (s->inside[owner->nodes[i]] == mark) nodes[count++] = owner->nodes[i];
  m->rest = (fusion_group){.kind = owner->kind, .moved = owner->moved, .nodes = nodes, .count = count, .dead = count == 0};
  if (!count) return true;
  m->bindings = 0;
  if (!group_finish(s, &m->rest, why)) {
    m->bindings = m->rest.input_count + m->rest.output_count;
    return false;
  }
  group_price(s, &m->rest);
  return true;
}

static bool build_readers(grouping *s, remat *m, const char **why) {
  const fusion_group cone = {.kind = GROUP_LOOP, .moved = (uint8_t)m->cone_count, .count = m->cone_count, .nodes = m->cone};
  for (uint32_t i = 0; i < m->reader_count; i++) {
    if (!group_extend(s, &s->c->groups.at[m->readers[i]], &cone, &m->changed[i], why)) {
      m->bindings = m->changed[i].input_count + m->changed[i].output_count;
      return false;
    }
    group_price(s, &m->changed[i]);
    m->ns_after += m->changed[i].cost.ns;
    m->bytes_after += m->changed[i].cost.bytes;
  }
  return true;
}

static const char *forbidden(const group_run *r, const remat *m) {
  const fusion_context *c = r->s.c;
  for (uint32_t i = 0; i < m->cone_count; i++)
    if (steer_pins(c->steer, m->cone[i])) return "must_fuse";
  for (uint32_t i = 0; i < m->reader_count; i++) {
    const fusion_group *reader = &c->groups.at[m->readers[i]];
    const steer_part parts[] = {{m->cone, m->cone_count}, {reader->nodes, reader->count}};
    const char *why = steer_forbids(c->steer, parts, IR_COUNT(parts));
    if (why) return why;
  }
  return NULL;
}

static void set_recomputed(grouping *s, const remat *m, uint8_t delta) {
  for (uint32_t i = 0; i < m->cone_count; i++) s->recomputed[m->cone[i]] = (uint8_t)(s->recomputed[m->cone[i]] + delta);
}

/* Of two kernels of which neither waits for the other any more. */
static double shared_launch(const grouping *s, const remat *m) {
  const fusion_group *reader = &m->changed[0];
  if (m->rest.dead || m->reader_count != 1) return 0;
  for (uint32_t i = 0; i < reader->input_count; i++)
    if (is_output_of(&m->rest, reader->inputs[i])) return 0;
  return may_share_launch(s->c, &m->rest, reader) ? s->c->options->profile->launch_ns : 0;
}

/* False when there is nothing to choose; else `why` is null or the obstacle, and both prices are known. */
static bool build(group_run *r, uint32_t value, remat *m, const char **why) {
  grouping *s = &r->s;
  const fusion_context *c = s->c;
  ir_arena_rewind(&s->scratch, s->empty);
  memset(m, 0, offsetof(remat, readers));
  m->value = value, m->owner = group_number(r, value);
  const fusion_group *owner = &c->groups.at[m->owner];
  if (s->storage[value] || s->recomputed[value] || !is_output_of(owner, value)) return false;
  if (!add_readers(r, m, value, 0) || !m->reader_count || !add_cone(r, m, value)) return false;
  sort_cone(m);
  for (uint32_t i = 0; i <= m->reader_count; i++) {
    const uint32_t number = i ? m->readers[i - 1] : m->owner;
    m->ns_before += c->groups.at[number].cost.ns;
    m->bytes_before += c->groups.at[number].cost.bytes;
    m->version += r->version[number];
  }
  *why = r->many ? refused(s, m) : NULL;
  if (!*why) *why = forbidden(r, m);
  if (*why) return true;
  set_recomputed(s, m, 1);
  if (build_rest(s, m, why) && build_readers(s, m, why)) *why = NULL;
  set_recomputed(s, m, (uint8_t)-1);
  m->ns_after += m->rest.cost.ns;
  if (!*why) m->ns_after -= shared_launch(s, m);
  m->bytes_after += m->rest.cost.bytes;
  return true;
}

/* ---- records, queue ---- */

static void record(group_run *r, const remat *m, const char *rule, bool taken) {
  group_record(&r->s, (fusion_decision){.producer = m->value,
                                        .consumer = r->s.c->groups.at[m->readers[0]].hero,
                                        .taken = taken,
                                        .form = DECISION_RECOMPUTE,
                                        .rule = rule,
                                        .count = strcmp(rule, "bindings") ? m->reader_count : m->bindings,
                                        .limit = r->s.c->options->profile->max_bindings,
                                        .ns_parts = m->ns_before,
                                        .ns_fused = m->ns_after,
                                        .bytes_saved = m->bytes_before - m->bytes_after});
}

static bool pays(const group_run *r, const remat *m) { return group_pays(&r->s, m->ns_before - m->ns_after); }

/* Into the queue when it saves. */
static void propose(group_run *r, const remat *m, const char *why) {
  if (why || !pays(r, m)) {
    record(r, m, why ? why : "kept", false);
    return;
  }
  const edge e = {
      .saving = m->ns_before - m->ns_after, .producer = m->value, .consumer = m->cone[0], .version = m->version, .recompute = true};
  if (!group_push(r->s.c, &r->queue, e)) r->s.c->plan->failed = true;
}

static void replace(group_run *r, uint32_t number, const fusion_group *by) {
  const fusion_group was = r->s.c->groups.at[number];
  if (group_settle(&r->s, number, by)) group_drop(&r->s, &was);
  else r->s.c->plan->failed = true;
}

/* Applies it; the readers' numbers go to `readers` (MAX 16). */
static void apply(group_run *r, const remat *m) {
  fusion_context *c = r->s.c;
  set_recomputed(&r->s, m, 1);
  r->version[m->owner]++;
  if (m->rest.dead) c->groups.at[m->owner].dead = 1;
  else replace(r, m->owner, &m->rest);
  for (uint32_t i = 0; i < m->reader_count; i++) {
    replace(r, m->readers[i], &m->changed[i]);
    r->version[m->readers[i]]++;
  }
  for (uint32_t i = 0; i < m->cone_count; i++) /* some group that has it speaks for it */
    if (m->rest.dead || !fusion_group_has(&m->rest, m->cone[i])) r->s.group_of[m->cone[i]] = m->readers[0] + 1;
}

static uint32_t take(group_run *r, const remat *m, uint32_t *changed) {
  uint32_t count = 0;
  record(r, m, "recompute", true);
  apply(r, m);
  if (!m->rest.dead) changed[count++] = m->owner;
  for (uint32_t i = 0; i < m->reader_count; i++) changed[count++] = m->readers[i];
  return count;
}

uint32_t remat_consider(group_run *r, uint32_t value, uint32_t *changed) {
  remat m;
  const char *why;
  if (r->s.c->options->level != FUSION_FUSED || !build(r, value, &m, &why)) return 0;
  if (r->many && !why && pays(r, &m)) return take(r, &m, changed);
  propose(r, &m, why);
  return 0;
}

uint32_t remat_pop(group_run *r, const edge *e, uint32_t *changed) {
  remat m;
  const char *why;
  if (!build(r, e->producer, &m, &why)) return 0;
  if (m.version != e->version) {
    propose(r, &m, why);
    return 0;
  }
  return why || !pays(r, &m) ? 0 : take(r, &m, changed);
}
