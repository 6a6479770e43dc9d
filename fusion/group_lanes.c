/* How the members of a group vary along its vectors, where schedules form these: what is the same for all lanes is computed once a row of results, and what does not
   lie beside each other is loaded lane by lane. Where reads go through texels, what a concatenation joins is computed for all of its elements, then chosen from.
   From the results down, by what is known of each operand (fusion/group_facts.c). */
#include "fusion/group_private.h"
#include "fusion/schedule_common.h"

enum { NOT_READ = 255 };

typedef struct lane_walk {
  const fusion_context *c;
  const fusion_group *group;
  uint8_t *lanes; /* per member */
  uint32_t met[GROUP_MOST_INPUTS], met_count;
} lane_walk;

/* Of two readers the one that needs more of a value. */
static uint8_t more_of(uint8_t a, uint8_t b) {
  if (a == NOT_READ || a == FUSION_SAME) return b;
  return b == NOT_READ || b == FUSION_SAME || a > b ? a : b;
}

static bool first_met(lane_walk *w, uint32_t base) {
  for (uint32_t i = 0; i < w->met_count; i++)
    if (w->met[i] == base) return false;
  if (w->met_count < GROUP_MOST_INPUTS) w->met[w->met_count++] = base;
  return true;
}

/* Loads for a result, beyond those of vectors, of what `how` says of a value and all that a concatenation joins to it. */
static uint32_t read_value(lane_walk *w, uint32_t base, uint8_t how) {
  const ir_graph *g = w->c->graph;
  const ir_node *n = ir_at(g, base);
  const uint32_t at = fusion_position(w->c, w->group, base);
  uint32_t loads = 0;
  if (at != UINT32_MAX) {
    w->lanes[at] = more_of(w->lanes[at], how);
    return 0;
  }
  /* across seams each part that is read, behind its condition, in every sweep; not what this kernel keeps of its rows */
  for (uint32_t i = 0; n->op == IR_OP_concat && i < n->arity; i++) {
    const uint32_t part = w->c->facts[ir_arg(g, base, i)].base;
    const bool read = how == FUSION_SEAMS && fusion_position(w->c, w->group, part) == UINT32_MAX;
    loads += read ? 1 : read_value(w, part, how == FUSION_SEAMS ? FUSION_BESIDE : how);
  }
  if (n->op == IR_OP_concat) return loads;
  return how >= FUSION_APART && first_met(w, base) && n->op != IR_OP_const;
}

double group_find_lanes(const fusion_context *c, const fusion_group *group, const uint8_t *sweeps, uint8_t *lanes) {
  lane_walk w = {.c = c, .group = group, .lanes = lanes};
  const ir_graph *g = c->graph;
  /* a loop has a piece for each part between seams; rows are walked along memory, whichever axis that is */
  const bool loop = group->kind == GROUP_LOOP;
  double loads = 0;
  memset(lanes, NOT_READ, group->count);
  for (uint32_t i = 0; i < group->output_count; i++) {
    const uint32_t at = fusion_position(c, group, group->outputs[i]);
    if (at != UINT32_MAX) lanes[at] = FUSION_BESIDE;
  }
  for (uint32_t i = group->count; i-- > 0;) {
    const ir_node *n = ir_at(g, group->nodes[i]);
    const bool reduces = (ir_ops[n->op].flags & IR_REDUCE) != 0;
    const double elements = c->elements[reduces ? ir_arg(g, group->nodes[i], 0) : group->nodes[i]] * (sweeps && !reduces ? sweeps[i] : 1);
    if (lanes[i] == NOT_READ) lanes[i] = FUSION_BESIDE;
    for (uint32_t a = 0; a < n->arity; a++) {
      uint8_t how = c->neighbours[n->args + a];
      if (how == (loop ? FUSION_SEAMS : FUSION_APART)) how = FUSION_BESIDE;
      if (!reduces && lanes[i] != FUSION_BESIDE && how != FUSION_SAME) how = lanes[i];
      loads += elements * read_value(&w, c->facts[ir_arg(g, group->nodes[i], a)].base, how);
    }
  }
  return loads;
}

/* As read_value, of what is computed for `elements` of a concatenation; 0: below none. */
static double read_joined(lane_walk *w, uint32_t base, double elements, double *joined) {
  const ir_graph *g = w->c->graph;
  const ir_node *n = ir_at(g, base);
  const uint32_t at = fusion_position(w->c, w->group, base);
  double loads = 0;
  if (at != UINT32_MAX) {
    if (joined[at] < elements) joined[at] = elements;
    return 0;
  }
  if (n->op != IR_OP_concat) return n->op != IR_OP_const && elements > 0 && first_met(w, base) ? elements : 0;
  if (elements < w->c->elements[base]) elements = w->c->elements[base];
  for (uint32_t i = 0; i < n->arity; i++) loads += read_joined(w, w->c->facts[ir_arg(g, base, i)].base, elements, joined);
  return loads;
}

double group_find_joined(const fusion_context *c, const fusion_group *group, const uint8_t *sweeps, double *joined) {
  lane_walk w = {.c = c, .group = group};
  double loads = 0;
  memset(joined, 0, group->count * sizeof *joined);
  for (uint32_t i = group->count; i-- > 0;) {
    const ir_node *n = ir_at(c->graph, group->nodes[i]);
    if (n->op == IR_OP_concat && joined[i] < c->elements[group->nodes[i]]) joined[i] = c->elements[group->nodes[i]];
    for (uint32_t a = 0; a < n->arity; a++)
      loads += (sweeps ? sweeps[i] : 1) * read_joined(&w, c->facts[ir_arg(c->graph, group->nodes[i], a)].base, joined[i], joined);
  }
  return loads;
}
