/* Where members are read. At more than one place: an element, and what a transpose or a slice takes from elsewhere, are two values to `emit_value`, and so is all that only they need.
   And for how many of the results: what a concatenation joins is computed for its part of them, by a piece of the loop. From the results down; what is read through the same view is
   read once. */
#include "fusion/group_private.h"

enum { MOST_READS = 2 * GROUP_MOST_MEMBERS };

typedef struct map_read {
  uint32_t member, map; /* of the group; the view that decides where it is read, or itself */
  double times;         /* of its elements */
} map_read;
typedef struct map_walk {
  const fusion_context *c;
  const fusion_group *group;
  double *reach; /* per member; null: not asked */
  uint32_t count;
  map_read reads[MOST_READS];
} map_walk;

static void add_read(map_walk *w, uint32_t member, uint32_t map, double times) {
  const double part = w->c->elements[map] / w->c->elements[w->group->nodes[member]];
  if (part < 1) times *= part; /* a slice */
  for (uint32_t i = 0; i < w->count; i++)
    if (w->reads[i].member == member && w->reads[i].map == map) {
      if (w->reads[i].times < times) w->reads[i].times = times;
      return;
    }
  if (w->count < MOST_READS) w->reads[w->count++] = (map_read){member, map, times};
}

static void read_operand(map_walk *w, uint32_t operand, double times, double reach) {
  const ir_graph *g = w->c->graph;
  const uint32_t base = w->c->facts[operand].base, at = fusion_position(w->c, w->group, base);
  if (at != UINT32_MAX) {
    add_read(w, at, w->c->facts[operand].map, times);
    if (w->reach && w->reach[at] < reach) w->reach[at] = reach;
    return;
  }
  for (uint32_t i = 0; ir_at(g, base)->op == IR_OP_concat && i < ir_at(g, base)->arity; i++) {
    const double part = w->c->elements[ir_arg(g, base, i)];
    read_operand(w, ir_arg(g, base, i), times, part < reach ? part : reach);
  }
}

static double times_read(const map_walk *w, uint32_t member) {
  double times = 0;
  for (uint32_t i = 0; i < w->count; i++)
    if (w->reads[i].member == member) times += w->reads[i].times;
  return times > 1 ? times : 1;
}

bool group_count_maps(const fusion_context *c, const fusion_group *group, double *times, double *reach) {
  map_walk w = {.c = c, .group = group, .reach = reach, .count = 0};
  bool several = reach != NULL;
  for (uint32_t i = 0; i < group->count; i++) several |= c->facts[group->nodes[i]].moved;
  if (!several || group->count > GROUP_MOST_MEMBERS) return false;
  if (reach) memset(reach, 0, group->count * sizeof *reach);
  for (uint32_t i = 0; i < group->output_count; i++) read_operand(&w, group->outputs[i], 1, c->elements[group->hero]);
  for (uint32_t i = group->count; i-- > 0;) {
    times[i] = times_read(&w, i);
    for (uint32_t a = 0; a < ir_at(c->graph, group->nodes[i])->arity; a++)
      read_operand(&w, ir_arg(c->graph, group->nodes[i], a), times[i], reach ? reach[i] : 0);
  }
  return true;
}
