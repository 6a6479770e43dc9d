/* Grouping by a priority queue. In: a canonical graph of primitives. Out: groups in execution order, and a decision record for every considered edge.
   The key of an edge is the nanoseconds saved on the profile: T(parts) - T(fused), all traffic and recompute counted once.
   Order of the queue: largest saving first. Savings that prices do not tell apart by the order of the graph, so that the result does not
   depend on memory layout either: the first value that is made joins the last that it is made of, and what was made before stays free for
   others.
   Of many groups a saving is guessed by launches and bytes, and priced at the head of the queue; what was said of a pair stays while others merge into the
   two, unless they bring them closer. They begin as cones (group/cones.c) and meet block by block (group/blocks.c), so that what is at hand is small. */
#include "fusion/group/private.h"

/* ---- heap ---- */

static bool before(const edge *a, const edge *b) {
  if (a->rank != b->rank) return a->rank > b->rank;
  if (a->hyper != b->hyper) return a->hyper > b->hyper;
  return a->consumer != b->consumer ? a->consumer < b->consumer : a->producer > b->producer;
}

/* Savings that differ by less than `step` are alike. */
static double rank_of(const edge_queue *q, double saving) { return q->step > 0 ? (double)(int64_t)(saving / q->step) : saving; }

bool group_push(fusion_context *c, edge_queue *q, edge e) {
  e.rank = rank_of(q, e.saving);
  if (q->count == q->capacity && !ir_vec_grow(c->arena, q, sizeof e)) return false;
  uint32_t i = q->count++;
  for (; i && before(&e, &q->at[(i - 1) / 2]); i = (i - 1) / 2) q->at[i] = q->at[(i - 1) / 2];
  q->at[i] = e;
  return true;
}

static edge pop(edge_queue *q) {
  const edge top = q->at[0], last = q->at[--q->count];
  uint32_t i = 0;
  for (;;) {
    uint32_t child = 2 * i + 1;
    if (child >= q->count) break;
    if (child + 1 < q->count && before(&q->at[child + 1], &q->at[child])) child++;
    if (!before(&q->at[child], &last)) break;
    q->at[i] = q->at[child];
    i = child;
  }
  q->at[i] = last;
  return top;
}

/* ---- the graph of groups ---- */

uint32_t group_number(const group_run *r, uint32_t node) { return r->s.group_of[node] - 1; }

/* --unfused=nodes: one kernel holds what came of one source node. */
static bool same_source_node(const group_run *r, const uint32_t *groups, uint32_t count) {
  const fusion_context *c = r->s.c;
  const uint32_t name = ir_at(c->graph, c->groups.at[groups[0]].hero)->name;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < c->groups.at[groups[i]].count; k++)
      if (!name || ir_at(c->graph, c->groups.at[groups[i]].nodes[k])->name != name) return false;
  return true;
}

const char *group_forbidden(const group_run *r, const uint32_t *groups, uint32_t count) {
  const fusion_context *c = r->s.c;
  const fusion_level level = (fusion_level)c->options->level;
  steer_part parts[HYPER_MAX_NODES];
  if (level == FUSION_UNFUSED) return "unfused";
  if (level == FUSION_UNFUSED_NODES && !same_source_node(r, groups, count)) return "unfused";
  if (!c->steer) return NULL;
  for (uint32_t i = 0; i < count && i < HYPER_MAX_NODES; i++)
    parts[i] = (steer_part){c->groups.at[groups[i]].nodes, c->groups.at[groups[i]].count};
  return count > HYPER_MAX_NODES ? "size" : steer_forbids(c->steer, parts, count);
}

/* Is a value of group `a` read outside by what may feed `b`: by what is less deep? Whom a recomputed reader belongs to is not asked. */
static bool read_above(const grouping *s, uint32_t a, uint32_t b, uint32_t from, uint32_t depth) {
  for (uint32_t u = s->uses.first[from]; u < s->uses.first[from + 1]; u++) {
    const uint32_t user = s->uses.user[u], owner = s->group_of[user];
    if (!s->needed[user]) continue;
    if (s->recomputed[user] || depth == 64) return true;
    if (!owner && read_above(s, a, b, user, depth + 1)) return true;
    if (owner && owner != a + 1 && owner != b + 1 && s->place[owner - 1].level < s->place[b].level) return true;
  }
  return false;
}

/* Between two groups a path through others begins at a value of the less deep one. */
static bool pair_may_close(const grouping *s, uint32_t a, uint32_t b) {
  if (s->place[a].level > s->place[b].level) return pair_may_close(s, b, a);
  const fusion_group *group = &s->c->groups.at[a];
  for (uint32_t i = 0; i < group->output_count; i++)
    if (read_above(s, a, b, group->outputs[i], 0)) return true;
  return false;
}

/* Does a member feed another through a group outside? Walks inputs backwards from the members; what is not deeper than the highest member cannot, and it
   reads none that could. */
bool group_makes_cycle(grouping *s, const uint32_t *groups, uint32_t count) {
  fusion_context *c = s->c;
  if (count == 2 && !pair_may_close(s, groups[0], groups[1])) return false;
  const uint32_t member = ++s->mark, reached = ++s->mark;
  uint32_t highest = UINT32_MAX;
  s->stack.count = 0;
  for (uint32_t i = 0; i < count; i++)
    if (s->place[groups[i]].level < highest) highest = s->place[groups[i]].level;
  for (uint32_t i = 0; i < count; i++) {
    s->place[groups[i]].mark = member;
    if (s->place[groups[i]].level > highest && !IR_PUSH(c->arena, &s->stack, groups[i])) return true;
  }
  while (s->stack.count) {
    const uint32_t at = s->stack.at[--s->stack.count];
    const fusion_group *group = &c->groups.at[at];
    const bool outside = s->place[at].mark != member;
    for (uint32_t i = 0; i < group->input_count; i++) {
      const uint32_t owner = s->group_of[group->inputs[i]];
      group_place *place = owner ? &s->place[owner - 1] : NULL;
      if (!place || place->level < highest || place->mark == reached) continue;
      if (place->mark == member) {
        if (outside) return true;
        continue; /* an edge inside the union */
      }
      if (place->level == highest) continue;
      place->mark = reached;
      if (!IR_PUSH(c->arena, &s->stack, owner - 1)) return true;
    }
  }
  return false;
}

/* ---- pricing and taking an edge ---- */

typedef enum { GUESS, LOOK, MAKE } closeness;
static bool evaluate(group_run *r, const edge *e, closeness how, fusion_group *fused, const char **why, double *saving) {
  fusion_context *c = r->s.c;
  const uint32_t a = group_number(r, e->producer), b = group_number(r, e->consumer);
  *saving = 0;
  *fused = (fusion_group){0};
  *why = group_forbidden(r, (const uint32_t[]){a, b}, 2);
  if (*why) return false;
  if (how == GUESS) return group_guess(&r->s, a, b, fused, why, saving);
  if (!(how == MAKE ? group_unite : group_look)(&r->s, a, b, fused, why)) return false;
  group_price(&r->s, fused);
  *saving = c->groups.at[a].cost.ns + c->groups.at[b].cost.ns - fused->cost.ns;
  const bool pays = group_pays(&r->s, *saving);
  *why = pays ? "saves" : "loses";
  if (how != MAKE || !pays || *saving >= c->options->profile->launch_ns || !group_shares_launch(r, e->producer, b)) return pays;
  *why = "its launch is shared"; /* by another reader: nothing saves it */
  return false;
}

static void refuse(group_run *r, const edge *e, const char *why, const fusion_group *fused) {
  const fusion_context *c = r->s.c;
  const fusion_group *parts[2] = {&c->groups.at[group_number(r, e->producer)], &c->groups.at[group_number(r, e->consumer)]};
  group_record_pair(&r->s, e->producer, e->consumer, false, why, parts, fused);
}

void group_consider(group_run *r, uint32_t producer, uint32_t consumer) {
  fusion_context *c = r->s.c;
  const uint32_t a = group_number(r, producer), b = group_number(r, consumer);
  edge e = {.producer = producer, .consumer = consumer, .version = r->version[a] + r->version[b], .guessed = r->many};
  fusion_group fused;
  const char *why;
  if (a == b || !group_in_block(r, a) || !group_in_block(r, b)) return;
  group_pair *pair = group_pair_make(r, a, b);
  if (!pair || pair->version == e.version) return; /* nothing has changed since */
  *pair = (group_pair){.producer = a + 1, .consumer = b + 1, .version = e.version};
  const uint32_t least = r->many ? group_least_bindings(&r->s, a, b) : 0, most = c->options->profile->max_bindings;
  if (most && least > most) {
    refuse(r, &e, "bindings", &(fusion_group){.input_count = least});
    return;
  }
  if (!evaluate(r, &e, r->many ? GUESS : LOOK, &fused, &why, &e.saving)) {
    refuse(r, &e, why, &fused);
    return;
  }
  e.proposal = pair->proposal = ++r->proposals;
  if (!group_push(c, &r->queue, e)) c->plan->failed = true;
}

/* A pair of which one part has changed. Where that took another group in, what was said of the pair stays, unless its other part had met both: then less
   is read or stored than before. */
static void consider_again(group_run *r, uint32_t producer, uint32_t consumer, uint32_t changed) {
  const uint32_t a = group_number(r, producer), b = group_number(r, consumer);
  const group_pair *kept = r->gone ? group_pair_find(r, a, b) : NULL;
  const group_pair *other = r->gone ? group_pair_find(r, a == changed ? r->gone - 1 : a, b == changed ? r->gone - 1 : b) : NULL;
  if (!kept == !other) {
    group_consider(r, producer, consumer);
    return;
  }
  if (kept) return;
  group_pair word = *other;
  word.producer = a + 1;
  word.consumer = b + 1;
  group_pair *pair = group_pair_make(r, a, b);
  if (pair) *pair = word;
}

/* Two groups that meet in several values are one proposal. */
static bool first_meeting(group_run *r, uint32_t other) {
  const bool first = r->met[other] != r->meeting;
  r->met[other] = r->meeting;
  return first;
}

void group_consider_neighbours(group_run *r, uint32_t number) {
  const fusion_group group = r->s.c->groups.at[number];
  r->meeting++;
  for (uint32_t i = 0; i < group.input_count; i++) {
    const uint32_t owner = r->s.group_of[group.inputs[i]];
    if (owner && first_meeting(r, owner - 1)) consider_again(r, group.inputs[i], group.hero, number);
  }
}

/* Groups that read an output of `number`: each output's users, through free views. */
static void consider_readers(group_run *r, uint32_t number, uint32_t node, uint32_t from, uint32_t depth) {
  grouping *s = &r->s;
  for (uint32_t u = s->uses.first[from]; u < s->uses.first[from + 1]; u++) {
    const uint32_t user = s->uses.user[u];
    if (!s->needed[user]) continue;
    if (s->group_of[user]) {
      if (s->group_of[user] != number + 1 && first_meeting(r, s->group_of[user] - 1)) consider_again(r, node, user, number);
    } else if (depth < 64 && fusion_is_view(s->c->graph, user)) consider_readers(r, number, node, user, depth + 1);
  }
}

static void refresh(group_run *r, uint32_t number) {
  const fusion_group group = r->s.c->groups.at[number];
  if (group.dead) return;
  group_consider_neighbours(r, number);
  r->meeting++;
  for (uint32_t i = 0; i < group.output_count; i++) consider_readers(r, number, group.outputs[i], group.outputs[i], 0);
}

/* Readers of a group are deeper than it: those that are not any more sink, and theirs after them. */
static void sink_readers(group_run *r, uint32_t number, uint32_t from, uint32_t depth) {
  grouping *s = &r->s;
  for (uint32_t u = s->uses.first[from]; u < s->uses.first[from + 1]; u++) {
    const uint32_t user = s->uses.user[u], owner = s->group_of[user];
    if (!s->needed[user]) continue;
    const bool through = s->recomputed[user] ||
                         (!owner && fusion_is_view(s->c->graph, user)); /* a recomputed reader is in all of its readers */
    if (through && depth < 256) sink_readers(r, number, user, depth + 1);
    if (!owner || owner - 1 == number || s->place[owner - 1].level > s->place[number].level) continue;
    s->place[owner - 1].level = s->place[number].level + 1;
    if (!IR_PUSH(s->c->arena, &s->stack, owner - 1)) s->c->plan->failed = true;
  }
}

static void sink(group_run *r, uint32_t number) {
  grouping *s = &r->s;
  s->stack.count = 0;
  if (!IR_PUSH(s->c->arena, &s->stack, number)) s->c->plan->failed = true;
  while (s->stack.count) {
    const uint32_t at = s->stack.at[--s->stack.count];
    const fusion_group *group = &s->c->groups.at[at];
    for (uint32_t i = 0; i < group->output_count; i++) sink_readers(r, at, group->outputs[i], 0);
  }
}

void group_take(group_run *r, const uint32_t *groups, uint32_t count, const fusion_group *fused) {
  fusion_context *c = r->s.c;
  const uint32_t last = groups[count - 1];
  const fusion_group was = c->groups.at[last];
  if (!group_settle(&r->s, last, fused)) {
    c->plan->failed = true; /* the groups stay as they were */
    return;
  }
  for (uint32_t k = 0; k + 1 < count; k++) {
    for (uint32_t i = 0; i < c->groups.at[groups[k]].count; i++) {
      uint32_t *owner = &r->s.group_of[c->groups.at[groups[k]].nodes[i]];
      if (*owner == groups[k] + 1) *owner = last + 1; /* a recomputed member may have another */
    }
    c->groups.at[groups[k]].dead = 1;
    if (r->s.place[groups[k]].level > r->s.place[last].level) r->s.place[last].level = r->s.place[groups[k]].level;
    r->version[last] += r->version[groups[k]] + 1;
  }
  for (uint32_t k = 0; k < count; k++) group_drop(&r->s, k + 1 < count ? &c->groups.at[groups[k]] : &was);
  sink(r, last);
}

/* A pair at the head of the queue. A price from before is made again: it goes back where it has become worse and another is better. */
static void run_pair(group_run *r, edge e) {
  static const double TOLERANCE = 0.01;
  fusion_context *c = r->s.c;
  const uint32_t a = group_number(r, e.producer), b = group_number(r, e.consumer), version = r->version[a] + r->version[b];
  group_pair *pair = a == b ? NULL : group_pair_find(r, a, b);
  if (!pair || pair->proposal != e.proposal) return;
  fusion_group fused;
  const char *why;
  double saving;
  const bool cycle = group_makes_cycle(&r->s, (const uint32_t[]){a, b}, 2);
  if (cycle || !evaluate(r, &e, r->many ? LOOK : MAKE, &fused, &why, &saving)) {
    pair->proposal = 0;
    pair->version = cycle ? UINT32_MAX : version; /* another group may open the circle */
    refuse(r, &e, cycle ? "cycle" : why, cycle ? NULL : &fused);
    return;
  }
  if (saving < (1 - TOLERANCE) * e.saving && (e.guessed || e.version != version)) {
    e.saving = saving, e.rank = rank_of(&r->queue, saving);
    e.guessed = false;
    pair->version = e.version = version;
    if (r->queue.count && before(&r->queue.at[0], &e)) {
      if (!group_push(c, &r->queue, e)) c->plan->failed = true;
      return;
    }
  }
  const fusion_group parts[2] = {c->groups.at[a], c->groups.at[b]};
  group_record_pair(&r->s, e.producer, e.consumer, true, "saves", (const fusion_group *[]){&parts[0], &parts[1]}, &fused);
  group_take(r, (const uint32_t[]){a, b}, 2, &fused);
  r->gone = r->many ? a + 1 : 0;
  refresh(r, b);
  r->gone = 0;
}

void group_refresh(group_run *r, const uint32_t *changed, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) refresh(r, changed[i]);
}

void group_run_queue(group_run *r) {
  while (r->queue.count) {
    const edge e = pop(&r->queue);
    if (e.hyper) {
      const uint32_t taken = hyper_pop(r, &e);
      if (taken) refresh(r, taken - 1);
      continue;
    }
    if (e.recompute) {
      uint32_t changed[REMAT_MAX_CHANGED];
      group_refresh(r, changed, remat_pop(r, &e, changed));
      continue;
    }
    run_pair(r, e);
  }
}

/* ---- start and end ---- */

static void mark_stored(grouping *s) {
  const ir_graph *g = s->c->graph;
  for (uint32_t i = 0; i < g->outputs.count; i++) s->needed[g->outputs.at[i].node] = s->storage[g->outputs.at[i].node] = GROUP_STORED;
  for (uint32_t i = 0; i < g->updates.count; i++) s->needed[g->updates.at[i].value] = s->storage[g->updates.at[i].value] = GROUP_STORED;
  for (uint32_t i = 0; i < g->contracts.count; i++) {
    const ir_contract *k = &g->contracts.at[i];
    for (uint32_t v = 0; k->kind == IR_KEEP && v < k->count; v++) s->storage[g->contract_values.at[k->first + v]] = GROUP_STORED;
  }
  for (uint32_t n = g->nodes.count; n-- > 1;) /* operands come before their users */
    for (uint32_t i = 0; s->needed[n] && i < ir_at(g, n)->arity; i++) s->needed[ir_arg(g, n, i)] = 1;
}

/* A loop and its picks: the results of one group. */
static bool start_repeat(group_run *r, uint32_t node) {
  fusion_context *c = r->s.c;
  const uint32_t first = r->s.uses.first[node], end = r->s.uses.first[node + 1];
  uint32_t *nodes = IR_NEW_ARRAY(c->arena, uint32_t, 1 + end - first), count = 0;
  if (!nodes) return false;
  nodes[count++] = node;
  for (uint32_t n = node + 1; n < c->graph->nodes.count; n++)
    if (ir_at(c->graph, n)->op == IR_OP_pick && r->s.needed[n] && ir_arg(c->graph, n, 0) == node) nodes[count++] = n;
  const group_kind kind = fusion_register_loop(c, node) ? GROUP_LOOP : GROUP_REPEAT;
  const fusion_group group = {.kind = (uint8_t)kind, .hero = node, .count = count, .nodes = nodes};
  if (!IR_PUSH(c->arena, &c->groups, group)) return false;
  for (uint32_t i = 0; i < count; i++) r->s.group_of[nodes[i]] = c->groups.count;
  return true;
}

static bool start_group(group_run *r, uint32_t node, const uint32_t *rest) {
  fusion_context *c = r->s.c;
  uint32_t count = 1;
  if (ir_at(c->graph, node)->op == IR_OP_pick) return true; /* of its loop's group */
  if (ir_at(c->graph, node)->op == IR_OP_loop) return start_repeat(r, node);
  for (uint32_t i = rest ? rest[node] : 0; i; i = rest[i]) count++;
  uint32_t *own = IR_NEW_ARRAY(c->arena, uint32_t, count), at = count - 1;
  if (!own) return false;
  own[at] = node;
  for (uint32_t i = rest ? rest[node] : 0; i; i = rest[i]) own[--at] = i;
  fusion_group group = {.kind = (uint8_t)group_kind_of_node(&r->s, node), .hero = node, .count = count, .nodes = own};
  for (uint32_t i = 0; i < count; i++) group.moved += c->facts[own[i]].moved;
  if (!IR_PUSH(c->arena, &c->groups, group)) return false;
  for (uint32_t i = 0; i < count; i++) r->s.group_of[own[i]] = c->groups.count;
  return true;
}

/* Is the node a member of some group, rather than read through? */
static bool is_member(const group_run *r, uint32_t node) {
  const ir_graph *g = r->s.c->graph;
  const uint16_t op = ir_at(g, node)->op;
  if (!r->s.needed[node]) return false;
  const bool source = (ir_ops[op].flags & IR_SOURCE) != 0, stored = r->s.storage[node] && (!source || op == IR_OP_iota || op == IR_OP_dim);
  return stored || !fusion_is_free(g, node);
}

/* Of a cone the members that are not its root: each names the one before it. */
static bool find_rest(group_run *r, const uint32_t *roots, uint32_t **rest) {
  const uint32_t n = r->s.c->graph->nodes.count;
  if (!roots) return true;
  *rest = IR_NEW_ARRAY(r->s.c->arena, uint32_t, n);
  for (uint32_t node = 1; *rest && node < n; node++) {
    if (roots[node] == node) continue;
    (*rest)[node] = (*rest)[roots[node]];
    (*rest)[roots[node]] = node;
  }
  return *rest;
}

static bool make_first_groups(group_run *r) {
  enum { FEW_DECISIONS = 4 }; /* to a member: room for them, so that they move seldom */
  fusion_context *c = r->s.c;
  const uint32_t n = c->graph->nodes.count;
  uint32_t count = 0, *roots = NULL, *rest = NULL;
  for (uint32_t node = 1; node < n; node++) count += is_member(r, node);
  r->many = count > GROUP_MANY;
  r->queue.step = r->many ? 0
                          : c->options->profile->launch_ns / 50; /* in the order of a large graph, one group would grow through all of it */
  if (r->many && !IR_RESERVE(c->arena, &c->decisions, FEW_DECISIONS * count)) return false;
  if ((r->many && !group_find_cones(&r->s, &roots)) || !find_rest(r, roots, &rest)) return false;
  r->cones = roots != NULL;
  if (!IR_RESERVE(c->arena, &c->groups, count)) return false;
  for (uint32_t node = 1; node < n; node++)
    if (is_member(r, node) && (!roots || roots[node] == node) && !start_group(r, node, rest)) return false;
  return true;
}

static bool price_alone(group_run *r, fusion_group *group) {
  ir_arena_rewind(&r->s.scratch, r->s.empty);
  if (!group_find_ports(&r->s, group)) return false;
  group_price(&r->s, group);
  return true;
}

static fusion_group one_of(const fusion_context *c, const fusion_group *group, uint32_t member) {
  const uint32_t node = group->nodes[member];
  return (fusion_group){.kind = group->kind, .moved = c->facts[node].moved, .hero = node, .count = 1, .nodes = &group->nodes[member]};
}

/* As it would be with one kernel a primitive; a loop and its picks are one. */
static bool add_unfused(group_run *r, const fusion_group *group) {
  fusion_context *c = r->s.c;
  const bool cone = group->count > 1 && ir_at(c->graph, group->hero)->op != IR_OP_loop;
  for (uint32_t i = 0; i < (cone ? group->count : 1); i++) {
    fusion_group one = *group;
    if (cone) one = one_of(c, group, i);
    if (cone && !price_alone(r, &one)) return false;
    c->ns_unfused += one.cost.ns;
    c->bytes_unfused += one.cost.bytes;
  }
  return true;
}

static snt_result start_groups(group_run *r) {
  fusion_context *c = r->s.c;
  if (!make_first_groups(r)) return SNT_E_HOST_MEM;
  for (uint32_t i = 0; i < c->groups.count; i++) {
    fusion_group *group = &c->groups.at[i];
    if (!price_alone(r, group) || !group_settle(&r->s, i, group)) return SNT_E_HOST_MEM;
    r->s.place[i].level = group_first_level(i);
    for (uint32_t k = 0; k < group->input_count; k++) {
      const uint32_t owner = r->s.group_of[group->inputs[k]];
      if (owner && r->s.place[owner - 1].level >= r->s.place[i].level) r->s.place[i].level = r->s.place[owner - 1].level + GROUP_LEVEL_STEP;
    }
    if (!add_unfused(r, group)) return SNT_E_HOST_MEM;
  }
  return SNT_OK;
}

IR_COLD static bool run_init(group_run *r, fusion_context *c) {
  const uint32_t n = c->graph->nodes.count;
  grouping *s = &r->s;
  s->c = c;
  ir_arena_init(&s->scratch, &c->arena->host);
  if (!ir_arena_take(&s->scratch, 1, 1)) return false; /* the block that unions are made in */
  s->empty = ir_arena_here(&s->scratch);
  c->group_of = s->group_of = IR_NEW_ARRAY(c->arena, uint32_t, n);
  c->buffers = IR_NEW_ARRAY(c->arena, uint32_t, n);
  s->storage = IR_NEW_ARRAY(c->arena, uint8_t, n);
  s->needed = IR_NEW_ARRAY(c->arena, uint8_t, n);
  s->recomputed = IR_NEW_ARRAY(c->arena, uint8_t, n);
  s->place = IR_NEW_ARRAY(c->arena, group_place, n);
  s->tried = IR_NEW_ARRAY(c->arena, uint32_t, n);
  s->inside = IR_NEW_ARRAY(c->arena, uint32_t, n);
  s->ports = IR_NEW_ARRAY(c->arena, group_ports, n);
  r->version = IR_NEW_ARRAY(c->arena, uint32_t, n);
  r->met = IR_NEW_ARRAY(c->arena, uint32_t, n);
  ir_uses *shared = IR_NEW(c->arena, ir_uses);
  if (!shared || !ir_find_uses(c->graph, c->arena, &s->uses)) return false;
  *shared = s->uses;
  c->uses = shared;
  s->kinds = IR_NEW_ARRAY(c->arena, uint8_t, n);
  if (!fusion_count_elements(c) || c->arena->failed) return false;
  for (uint32_t i = 1; i < n; i++) s->kinds[i] = (uint8_t)group_find_kind(s, i);
  return true;
}

static snt_result make_groups(group_run *r) {
  mark_stored(&r->s);
  group_store_dear_views(&r->s);
  if (!group_store_wide_views(&r->s)) return SNT_E_HOST_MEM;
  SNT_TRY(start_groups(r));
  SNT_TRY(steer_begin(r->s.c));
  must_take(r);
  SNT_TRY(group_run_blocks(r));
  return group_find_order(r);
}

snt_result fusion_group_nodes(fusion_context *c, bool *changed) {
  group_run r = {0};
  *changed = false;
  snt_result result = run_init(&r, c) ? make_groups(&r) : SNT_E_HOST_MEM;
  if (r.s.scratch.failed) result = SNT_E_HOST_MEM;
  ir_arena_free(&r.s.scratch);
  return result == SNT_E_HOST_MEM ? ir_no_memory(c->diag, "group") : result;
}
