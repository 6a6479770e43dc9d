/* How the members of a group vary along its vectors, where schedules form these: what is the same for all lanes is computed once a row of
   results, and what does not lie beside each other is loaded lane by lane. Where reads go through texels, what a concatenation joins is
   computed for all of its elements, then chosen from. From the results down, by what is known of each operand (fusion/group/facts.c). */
#include "fusion/group/private.h"
#include "fusion/schedule_common.h"

enum { NOT_READ = 255 };

typedef struct lane_walk {
  const fusion_context *c;
  const fusion_group *group;
  uint8_t *lanes;                    /* per member */
  bool straight[GROUP_MOST_MEMBERS]; /* read beside each other, maybe apart as well: turned, and as it is */
  double apart[GROUP_MOST_MEMBERS];  /* results that read it apart, in all sweeps of these */
  lane_loads loads;
  bool beside; /* something that is not small is read in vectors */
  bool tiles;  /* what lies the other way is turned block by block: flat loops whose results have one shape (schedule/transpose.c) */
  uint32_t met[GROUP_MOST_INPUTS], met_count;
} lane_walk;

/* Of two readers the one that needs more of a value. */
static uint8_t more_of(uint8_t a, uint8_t b) {
  if (a == NOT_READ || a == FUSION_SAME) return b;
  return b == NOT_READ || b == FUSION_SAME || a > b ? a : b;
}

static bool is_apart(uint8_t how) { return how == FUSION_APART || how == FUSION_LINES; }

static bool first_met(lane_walk *w, uint32_t base) {
  for (uint32_t i = 0; i < w->met_count; i++)
    if (w->met[i] == base) return false;
  if (w->met_count < GROUP_MOST_INPUTS) w->met[w->met_count++] = base;
  return true;
}

static void add_loads(lane_walk *w, uint32_t base, double elements, uint8_t how) {
  w->loads.count += elements;
  if (how != FUSION_LINES || w->tiles) return;
  w->loads.lines += elements;
  w->loads.lined_bytes += w->c->elements[base] * ir_dtypes[ir_at(w->c->graph, base)->type.dtype].bytes;
}

/* From memory: a concatenation that is stored is read as any value. */
static bool is_read(const fusion_group *group, uint32_t base) {
  for (uint32_t i = 0; i < group->input_count; i++)
    if (group->inputs[i] == base) return true;
  return false;
}

/* Loads of single lanes that one of a part of a concatenation stands for: a vector of it and a selection by the row's position where all
   seams lie between vectors, which wait for nobody and take their turns at the ports. */
static double seam_loads(const fusion_context *c, uint32_t joined) {
  const cost_profile *p = c->options->profile;
  const ir_graph *g = c->graph;
  const uint32_t axis = (uint32_t)ir_attr_int(g, joined, IR_ATTR_axis, 0);
  for (uint32_t i = 0; i < ir_at(g, joined)->arity; i++) {
    const ir_tensor *t = &ir_at(g, ir_arg(g, joined, i))->type;
    int64_t run = 1, extent;
    for (uint32_t d = axis; d < t->rank; d++) {
      if (!expr_is_const(g->pool, t->dims[d], &extent)) return 1;
      run *= extent;
    }
    if (run % (int64_t)p->lanes) return 1;
  }
  return (p->vector_load_cycles + 2 / p->fma_per_cycle) / (p->lane_load_cycles * p->lanes);
}

/* Loads for so many results, beyond those of vectors, of what `how` says of a value and all that a concatenation joins to it. */
static void read_value(lane_walk *w, uint32_t base, double elements, uint8_t how) {
  const ir_graph *g = w->c->graph;
  const ir_node *n = ir_at(g, base);
  const uint32_t at = fusion_position(w->c, w->group, base);
  if (at != UINT32_MAX) {
    w->straight[at] |= how == FUSION_BESIDE;
    if (is_apart(how) && w->apart[at] < elements) w->apart[at] = elements;
    w->lanes[at] = more_of(w->lanes[at], how);
    return;
  }
  const bool joins = n->op == IR_OP_concat && !is_read(w->group, base);
  if (n->op == IR_OP_concat && !joins && how == FUSION_SEAMS) how = FUSION_BESIDE;
  /* across seams each part that is read, behind its condition, in every sweep; not what this kernel keeps of its rows */
  for (uint32_t i = 0; joins && i < n->arity; i++) {
    const uint32_t part = w->c->facts[ir_arg(g, base, i)].base;
    const bool read = how == FUSION_SEAMS && fusion_position(w->c, w->group, part) == UINT32_MAX;
    if (read) add_loads(w, part, elements * seam_loads(w->c, base), FUSION_SEAMS);
    else read_value(w, part, elements, how == FUSION_SEAMS ? FUSION_BESIDE : how);
  }
  w->beside |= !joins && how == FUSION_BESIDE && 2 * w->c->elements[base] >= elements;
  if (!joins && how >= FUSION_APART && first_met(w, base) && n->op != IR_OP_const) add_loads(w, base, elements, how);
}

/* `flat`: rows, in which what lies apart is taken as lying beside each other. */
static void walk_lanes(lane_walk *w, const uint8_t *sweeps, bool flat) {
  const ir_graph *g = w->c->graph;
  const fusion_group *group = w->group;
  w->met_count = 0, w->loads = (lane_loads){0}, w->beside = false;
  memset(w->lanes, NOT_READ, group->count);
  memset(w->straight, 0, group->count * sizeof *w->straight);
  memset(w->apart, 0, group->count * sizeof *w->apart);
  for (uint32_t i = 0; i < group->output_count; i++) {
    const uint32_t at = fusion_position(w->c, group, group->outputs[i]);
    if (at != UINT32_MAX) w->lanes[at] = FUSION_BESIDE, w->straight[at] = true;
  }
  for (uint32_t i = group->count; i-- > 0;) {
    const ir_node *n = ir_at(g, group->nodes[i]);
    const bool both = w->straight[i] && w->apart[i] > 0, reduces = (ir_ops[n->op].flags & IR_REDUCE) != 0;
    const double elements = w->c->elements[reduces ? ir_arg(g, group->nodes[i], 0) : group->nodes[i]] *
                            (sweeps && !reduces ? sweeps[i] : 1);
    if (w->lanes[i] == NOT_READ) w->lanes[i] = FUSION_BESIDE;
    for (uint32_t a = 0; a < n->arity; a++) {
      uint8_t how = w->c->neighbours[n->args + a];
      if (group->kind == GROUP_LOOP ? how == FUSION_SEAMS : is_apart(how) && flat)
        how = FUSION_BESIDE; /* a loop has a piece for each part */
      const uint32_t base = w->c->facts[ir_arg(g, group->nodes[i], a)].base;
      if (both && how == FUSION_BESIDE) read_value(w, base, elements, how);
      if (!reduces && w->lanes[i] != FUSION_BESIDE && how != FUSION_SAME) how = w->lanes[i];
      read_value(w, base, both && is_apart(how) ? w->apart[i] : elements, how);
    }
  }
}

static bool makes_tiles(const fusion_context *c, const fusion_group *group) {
  bool alike = group->kind == GROUP_LOOP;
  for (uint32_t i = 0; i < group->output_count && alike; i++)
    alike = ir_same_shape(&ir_at(c->graph, group->outputs[i])->type, &ir_at(c->graph, group->hero)->type);
  return alike;
}

/* Rows are walked along memory, whichever axis that is, unless some of what they read lies along the vectors and some does not. */
lane_loads group_find_lanes(const fusion_context *c, const fusion_group *group, const uint8_t *sweeps, uint8_t *lanes) {
  lane_walk w = {.c = c, .group = group, .lanes = lanes, .tiles = makes_tiles(c, group)};
  walk_lanes(&w, sweeps, false);
  if (group->kind != GROUP_LOOP && !w.beside) walk_lanes(&w, sweeps, true);
  return w.loads;
}

/* Where a member, or what is read, is needed: a bit a part, as parts are, each behind its condition, where nothing is shared with another;
   parts beyond the bits share them. */
typedef struct join_walk {
  const fusion_context *c;
  const fusion_group *group;
  double *joined;
  uint32_t parts, in[GROUP_MOST_MEMBERS], met_count, met[GROUP_MOST_INPUTS], met_in[GROUP_MOST_INPUTS];
} join_walk;

/* In how many parts more it is loaded. */
static double parts_met(join_walk *w, uint32_t base, uint32_t in) {
  uint32_t i = 0;
  while (i < w->met_count && w->met[i] != base) i++;
  if (i == GROUP_MOST_INPUTS) return 1;
  if (i == w->met_count) w->met[w->met_count++] = base, w->met_in[i] = 0;
  in &= ~w->met_in[i];
  w->met_in[i] |= in;
  double count = 0;
  for (; in; in &= in - 1) count++;
  return count;
}

/* As read_value, of what is computed for `elements` of a concatenation; 0: below none. */
static double read_joined(join_walk *w, uint32_t base, double elements, uint32_t in) {
  const ir_graph *g = w->c->graph;
  const ir_node *n = ir_at(g, base);
  const uint32_t at = fusion_position(w->c, w->group, base);
  double loads = 0;
  if (at != UINT32_MAX) {
    if (w->joined[at] < elements) w->joined[at] = elements;
    w->in[at] |= in;
    return 0;
  }
  if (n->op != IR_OP_concat || is_read(w->group, base)) return n->op != IR_OP_const && elements > 0 ? elements * parts_met(w, base, in) : 0;
  const bool inside = elements > 0; /* parts of a part share what they load */
  if (elements < w->c->elements[base]) elements = w->c->elements[base];
  for (uint32_t i = 0; i < n->arity; i++)
    loads += read_joined(w, w->c->facts[ir_arg(g, base, i)].base, elements, inside ? in : UINT32_C(1) << (w->parts++ & 31));
  return loads;
}

double group_find_joined(const fusion_context *c, const fusion_group *group, const uint8_t *sweeps, double *joined) {
  join_walk w = {.c = c, .group = group, .joined = joined};
  double loads = 0;
  memset(joined, 0, group->count * sizeof *joined);
  for (uint32_t i = group->count; i-- > 0;) {
    const ir_node *n = ir_at(c->graph, group->nodes[i]);
    const bool joins = n->op == IR_OP_concat;
    if (joins && joined[i] < c->elements[group->nodes[i]]) joined[i] = c->elements[group->nodes[i]];
    for (uint32_t a = 0; a < n->arity; a++) {
      const uint32_t in = w.in[i] ? w.in[i] : joins ? UINT32_C(1) << (w.parts++ & 31) : 1;
      loads += (sweeps ? sweeps[i] : 1) * read_joined(&w, c->facts[ir_arg(c->graph, group->nodes[i], a)].base, joined[i], in);
    }
  }
  return loads;
}
