/* Where members are read. At more than one place: an element, and what a transpose, a slice or a gather takes from elsewhere, are two values to
   `emit_value`, and so is all that only they need. And in which pieces of a loop: what a concatenation joins is computed in the piece of
   its results, what several parts need in each of theirs. From the results down; what is read through the same view is read once. */
#include "fusion/group/private.h"
#include "fusion/schedule_common.h"

enum { MOST_READS = 2 * GROUP_MOST_MEMBERS, MOST_PIECES = 31 };
static const uint32_t WHOLE = UINT32_C(1) << MOST_PIECES; /* all results */

typedef struct map_read {
  uint32_t member, map; /* of the group; the view that decides where it is read, or itself */
  double times;         /* of its elements */
} map_read;
typedef struct map_walk {
  const fusion_context *c;
  const fusion_group *group;
  bool by_pieces;
  uint32_t count, piece_count;
  uint32_t in[GROUP_MOST_MEMBERS]; /* per member: a bit a piece */
  double sums[GROUP_MOST_MEMBERS]; /* of its reads' times */
  double pieces[MOST_PIECES];      /* results of each */
  map_read reads[MOST_READS];
} map_walk;

static void add_read(map_walk *w, uint32_t member, uint32_t map, double times) {
  const double part = w->c->elements[map] / w->c->elements[w->group->nodes[member]];
  if (part < 1 || ir_at(w->c->graph, map)->op == IR_OP_gather) times *= part; /* a slice; all that is gathered */
  for (uint32_t i = 0; i < w->count; i++)
    if (w->reads[i].member == member && w->reads[i].map == map) {
      if (w->reads[i].times < times) w->sums[member] += times - w->reads[i].times, w->reads[i].times = times;
      return;
    }
  if (w->count == MOST_READS) return;
  w->reads[w->count++] = (map_read){member, map, times};
  w->sums[member] += times;
}

/* Is each part of a concatenation computed for its own results only (schedule/loop_boxes.c)? */
static bool makes_pieces(const fusion_context *c, const fusion_group *group, uint32_t concat) {
  const ir_tensor *t = &ir_at(c->graph, concat)->type;
  const uint32_t last = group_last_axis(t);
  return group->kind == GROUP_LOOP && !c->options->profile->both_sides &&
         (schedule_is_explicit(c) || ir_attr_int(c->graph, concat, IR_ATTR_axis, 0) + 1 < (ir_expr)last);
}

static void read_operands(map_walk *w, uint32_t node, double times, uint32_t in);

static void read_operand(map_walk *w, uint32_t operand, uint32_t map, double times, uint32_t in) {
  const uint32_t base = w->c->facts[operand].base, at = fusion_position(w->c, w->group, base);
  if (at != UINT32_MAX) {
    add_read(w, at, map, times);
    w->in[at] |= in;
  } else if (ir_at(w->c->graph, base)->op == IR_OP_concat && !w->c->group_of[base]) {
    read_operands(w, base, times, in);
  }
}

/* Those of a concatenation of all results in a piece of them each. */
static void read_operands(map_walk *w, uint32_t node, double times, uint32_t in) {
  const ir_node *n = ir_at(w->c->graph, node);
  const bool pieces = n->op == IR_OP_concat && in == WHOLE && w->by_pieces && w->piece_count + n->arity <= MOST_PIECES &&
                      makes_pieces(w->c, w->group, node);
  for (uint32_t a = 0; a < n->arity; a++) {
    const uint32_t operand = ir_arg(w->c->graph, node, a);
    if (pieces) w->pieces[w->piece_count++] = w->c->elements[operand];
    read_operand(w, operand, group_map_read(w->c->graph, w->c->facts, node, a), times, pieces ? UINT32_C(1) << (w->piece_count - 1) : in);
  }
}

/* What a row is reduced to is found once a row, wherever it is read. */
static double times_read(const map_walk *w, uint32_t member) {
  if (w->group->kind == GROUP_ROW && ir_ops[ir_at(w->c->graph, w->group->nodes[member])->op].flags & IR_REDUCE) return 1;
  return w->sums[member] > 1 ? w->sums[member] : 1;
}

static double results_in(const map_walk *w, uint32_t in) {
  double results = 0;
  if (in & WHOLE || !in) return w->c->elements[w->group->hero];
  for (uint32_t i = 0; i < w->piece_count; i++)
    if (in >> i & 1) results += w->pieces[i];
  return results;
}

bool group_count_maps(const fusion_context *c, const fusion_group *group, double *times, double *reach) {
  map_walk w;
  bool several = reach != NULL;
  for (uint32_t i = 0; i < group->count && group->moved && !several; i++) several = c->facts[group->nodes[i]].moved;
  if (!several || group->count > GROUP_MOST_MEMBERS) return false;
  w.c = c, w.group = group, w.by_pieces = reach != NULL, w.count = w.piece_count = 0;
  memset(w.in, 0, group->count * sizeof *w.in);
  memset(w.sums, 0, group->count * sizeof *w.sums);
  for (uint32_t i = 0; i < group->output_count; i++) read_operand(&w, group->outputs[i], c->facts[group->outputs[i]].map, 1, WHOLE);
  for (uint32_t i = group->count; i-- > 0;) {
    times[i] = times_read(&w, i);
    if (reach) reach[i] = results_in(&w, w.in[i]);
    read_operands(&w, group->nodes[i], times[i], w.in[i]);
  }
  return true;
}

/* Members that are each read turned and as they are by the next are written twice as often, one after the other. */
bool group_writes_too_often(const fusion_context *c, const fusion_group *group) {
  double times[GROUP_MOST_MEMBERS];
  fusion_note_positions(c, group);
  const bool counted = group_count_maps(c, group, times, NULL);
  for (uint32_t i = 0; counted && i < group->count; i++)
    if (times[i] > 1 << GROUP_FEW_MOVED) return true;
  return false;
}
