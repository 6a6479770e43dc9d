/* In which sweep a kernel of rows stores outputs of the rows' shape: what reads no sweep's result need not wait for the sweep behind the last, where all that it
   reads would be read again. */
#include "fusion/schedules.h"

enum { MOST_MEMBERS = 192, MOST_SWEEPS = 31 };
#define LATE (1u << MOST_SWEEPS)

typedef struct store_sweeps {
  const fusion_context *c;
  const fusion_group *group;
  double full;                  /* elements of the rows */
  uint32_t count, sweeps;       /* members as far as the last output that may be early; reductions */
  uint32_t meets[MOST_MEMBERS]; /* the sweeps that compute a member, or what is nearest to it of what it is made of; LATE */
} store_sweeps;

static bool reduces(const ir_graph *g, uint32_t node) { return (ir_ops[ir_at(g, node)->op].flags & IR_REDUCE) != 0; }

/* A state's old value is read by its own new one alone, and before. */
static bool may_be_early(const store_sweeps *s, uint32_t node) {
  const ir_graph *g = s->c->graph;
  return s->c->elements[node] >= s->full && !reduces(g, node) && !fusion_is_update(g, node) &&
         ir_same_shape(&ir_at(g, node)->type, &ir_at(g, ir_arg(g, s->group->hero, 0))->type);
}

/* Does the member read a result of a sweep, or something of the rows at another place than its own? */
static bool is_late(const store_sweeps *s, uint32_t i) {
  const ir_graph *g = s->c->graph;
  const ir_node *n = ir_at(g, s->group->nodes[i]);
  if (!(ir_ops[n->op].flags & IR_POINTWISE) || ir_ops[n->op].flags & IR_REDUCE) return true;
  for (uint32_t a = 0; a < n->arity; a++) {
    const uint32_t arg = g->args.at[n->args + a], from = s->c->facts[arg].base, at = fusion_position(s->c, s->group, from);
    if (at != UINT32_MAX ? s->meets[at] & LATE : ir_at(g, from)->op == IR_OP_concat) return true;
    if (arg != from && s->c->elements[from] >= s->full) return true;
  }
  return false;
}

static void find_meetings(store_sweeps *s) {
  const ir_graph *g = s->c->graph;
  uint32_t masks[MOST_MEMBERS] = {0}, sweep = s->sweeps;
  for (uint32_t i = s->group->count; i-- > 0;) {
    const ir_node *n = ir_at(g, s->group->nodes[i]);
    if (reduces(g, s->group->nodes[i])) masks[i] = 1u << --sweep;
    for (uint32_t a = 0; a < n->arity && masks[i]; a++) {
      const uint32_t at = fusion_position(s->c, s->group, s->c->facts[g->args.at[n->args + a]].base);
      if (at != UINT32_MAX) masks[at] |= masks[i];
    }
  }
  for (uint32_t i = 0; i < s->count; i++) {
    const ir_node *n = ir_at(g, s->group->nodes[i]);
    if (s->meets[i] || s->c->elements[s->group->nodes[i]] < s->full) continue;
    s->meets[i] = masks[i];
    for (uint32_t a = 0; a < n->arity && !masks[i]; a++) {
      const uint32_t at = fusion_position(s->c, s->group, s->c->facts[g->args.at[n->args + a]].base);
      if (at != UINT32_MAX) s->meets[i] |= s->meets[at];
    }
  }
}

void schedule_store_sweeps(const fusion_context *c, const fusion_group *group, uint8_t last, uint8_t *sweep) {
  store_sweeps s;
  s.c = c, s.group = group, s.full = c->elements[ir_arg(c->graph, group->hero, 0)], s.count = s.sweeps = 0;
  memset(sweep, last, group->output_count);
  if (group->output_count < 2 || group->count > MOST_MEMBERS) return;
  for (uint32_t i = 0; i < group->output_count; i++) {
    const uint32_t at = fusion_position(c, group, group->outputs[i]);
    if (at != UINT32_MAX && at >= s.count && may_be_early(&s, group->outputs[i])) s.count = at + 1;
  }
  if (!s.count) return;
  for (uint32_t i = 0; i < group->count; i++) {
    s.sweeps += reduces(c->graph, group->nodes[i]);
    if (i < s.count) s.meets[i] = s.sweeps && is_late(&s, i) ? LATE : 0;
  }
  if (s.sweeps >= MOST_SWEEPS) return;
  if (s.sweeps > 1) find_meetings(&s);
  for (uint32_t i = 0; i < group->output_count; i++) {
    const uint32_t at = fusion_position(c, group, group->outputs[i]), met = at < s.count ? s.meets[at] : LATE;
    if (met & LATE || !may_be_early(&s, group->outputs[i]) || is_late(&s, at) || (!met && s.sweeps > 1)) continue;
    for (sweep[i] = 0; s.sweeps > 1 && !(met >> sweep[i] & 1);) sweep[i]++;
  }
}
