/* Views that one kernel cannot read through. In: what is needed and stored so far. Out: where a node would read more buffers than the device binds,
   the views that join most of them are stored too, and have kernels of their own. (Wider concatenations are nested before: nest_concat.) */
#include "fusion/group_private.h"

enum { MOST_BASES = 256, DEEPEST = 64 };
typedef struct base_list {
  const grouping *s;
  uint32_t count, at[MOST_BASES];
} base_list;

static bool is_read(const grouping *s, uint32_t node) { return s->is_stored[node] || !fusion_is_view(s->c->graph, node); }

/* The buffers below: each once; scalar constants are none. */
static void add_bases(base_list *l, uint32_t node, uint32_t depth) {
  const ir_graph *g = l->s->c->graph;
  double splat;
  if (depth && is_read(l->s, node)) {
    const ir_op op = (ir_op)ir_at(g, node)->op;
    if (op == IR_OP_iota || op == IR_OP_dim || (op == IR_OP_const && ir_is_scalar_const(g, node, &splat))) return;
    for (uint32_t i = 0; i < l->count; i++)
      if (l->at[i] == node) return;
    if (l->count < MOST_BASES) l->at[l->count++] = node;
    return;
  }
  for (uint32_t i = 0; depth < DEEPEST && i < ir_at(g, node)->arity; i++) add_bases(l, ir_arg(g, node, i), depth + 1);
}

static uint32_t count_bases(const grouping *s, uint32_t node) {
  base_list l = {.s = s};
  add_bases(&l, node, 0);
  return l.count;
}

/* The view below `node` that joins most buffers, of those that a kernel of its own can: 0 if there is none. */
static uint32_t widest_view(const grouping *s, uint32_t node, uint32_t most, uint32_t depth, uint32_t *width) {
  const ir_graph *g = s->c->graph;
  uint32_t best = 0;
  for (uint32_t i = 0; depth < DEEPEST && i < ir_at(g, node)->arity; i++) {
    const uint32_t operand = ir_arg(g, node, i);
    if (is_read(s, operand)) continue;
    const uint32_t own = ir_at(g, operand)->op == IR_OP_concat ? count_bases(s, operand) : 0;
    if (own > *width && own <= most) *width = own, best = operand;
    const uint32_t below = widest_view(s, operand, most, depth + 1, width);
    if (below) best = below;
  }
  return best;
}

bool group_store_wide_views(grouping *s) {
  const ir_graph *g = s->c->graph;
  const uint32_t limit = s->c->options->profile->max_bindings;
  uint32_t *bound = limit ? IR_NEW_ARRAY(s->c->arena, uint32_t, g->nodes.count) : NULL; /* at least as many as the bases below */
  for (uint32_t n = 1; bound && n < g->nodes.count; n++) {
    for (uint32_t i = 0; i < ir_at(g, n)->arity && bound[n] < MOST_BASES; i++) {
      const uint32_t operand = ir_arg(g, n, i);
      bound[n] += is_read(s, operand) ? 1 : bound[operand];
    }
    if (!s->needed[n] || bound[n] + 1 <= limit || (!s->is_stored[n] && fusion_is_free(g, n))) continue;
    while (count_bases(s, n) + 1 > limit) {
      uint32_t width = 1;
      const uint32_t view = widest_view(s, n, limit - 1, 0, &width);
      if (!view) break; /* the node itself has more operands: fission says so */
      s->is_stored[view] = 1;
    }
  }
  return !limit || bound;
}
