/* Views that one kernel cannot read through, or should not. In: what is needed and stored so far. Out: what joins of joins have made of
   very many pieces is stored on the way; where a node would read more buffers than the device binds, the views that join most of them are
   stored too, and have kernels of their own (wider concatenations are nested before: nest_concat); and where a contraction would ask for
   every term which part it lies in, for longer than putting the parts together takes, the concatenation is; so is a table whose rows lie
   apart in memory, where vectors of picked rows are wanted for longer. */
#include "fusion/group/private.h"
#include "fusion/schedule_common.h"
#include "fusion/winograd.h"

enum { MOST_BASES = 256, MOST_WAYS = 128, DEEPEST = 64 };
typedef struct base_list {
  const grouping *s;
  uint32_t count, at[MOST_BASES];
} base_list;

static bool is_read(const grouping *s, uint32_t node) { return s->storage[node] || !fusion_is_view(s->c->graph, node); }

/* The buffers below: each once; scalar constants are none. */
static void add_bases(base_list *l, uint32_t node, uint32_t depth) {
  const ir_graph *g = l->s->c->graph;
  if (depth && is_read(l->s, node)) {
    const ir_op op = (ir_op)ir_at(g, node)->op;
    if (!l->s->storage[node] && (op == IR_OP_iota || op == IR_OP_dim || ir_is_literal(g, node))) return;
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

/* The concatenation that an operand is, through views that add nothing to it. What a contraction pads is staged: there an element is looked for once. */
static uint32_t find_concat(const grouping *s, uint32_t node, bool pads) {
  const ir_graph *g = s->c->graph;
  while (!is_read(s, node) && ir_at(g, node)->arity == 1 && (pads || ir_at(g, node)->op != IR_OP_pad)) node = ir_arg(g, node, 0);
  return !is_read(s, node) && ir_at(g, node)->op == IR_OP_concat ? node : 0;
}

/* Until the device binds all that the node reads. */
static void store_until_bound(grouping *s, uint32_t node) {
  const uint32_t limit = s->c->options->profile->max_bindings;
  while (limit && count_bases(s, node) + 1 > limit) {
    uint32_t width = 1;
    const uint32_t view = widest_view(s, node, limit - 1, 0, &width);
    if (!view) break; /* the node itself has more operands: fission says so */
    s->storage[view] = GROUP_STORED;
  }
}

/* Of so many ways down through views that whoever follows each would not come to an end (a join of joins doubles them, and each is a piece
   with a condition of its own), the concatenations among the operands are kernels of their own. */
static void store_joins(grouping *s, uint32_t concat) {
  for (uint32_t i = 0; i < ir_at(s->c->graph, concat)->arity; i++) {
    const uint32_t below = find_concat(s, ir_arg(s->c->graph, concat, i), true);
    if (!below) continue;
    store_until_bound(s, below);
    s->storage[below] = GROUP_STORED_APART;
  }
}

bool group_store_wide_views(grouping *s) {
  const ir_graph *g = s->c->graph;
  const uint32_t limit = s->c->options->profile->max_bindings;
  uint32_t *ways = IR_NEW_ARRAY(s->c->arena, uint32_t, g->nodes.count); /* at least as many as the bases below */
  for (uint32_t n = 1; ways && n < g->nodes.count; n++) {
    for (uint32_t i = 0; i < ir_at(g, n)->arity; i++) {
      const uint32_t operand = ir_arg(g, n, i);
      ways[n] += is_read(s, operand) ? 1 : ways[operand];
    }
    if (ways[n] >= MOST_WAYS && ir_at(g, n)->op == IR_OP_concat) store_joins(s, n), ways[n] = ir_at(g, n)->arity;
    if (s->needed[n] && ways[n] + 1 > limit && (s->storage[n] || !fusion_is_free(g, n))) store_until_bound(s, n);
  }
  return ways != NULL;
}

static uint32_t count_parts(const grouping *s, uint32_t concat) {
  const ir_graph *g = s->c->graph;
  uint32_t count = 0;
  for (uint32_t i = 0; i < ir_at(g, concat)->arity && count < MOST_BASES; i++) {
    uint32_t part = ir_arg(g, concat, i);
    while (!is_read(s, part) && ir_at(g, part)->arity == 1) part = ir_arg(g, part, 0);
    count += !is_read(s, part) && ir_at(g, part)->op == IR_OP_concat ? count_parts(s, part) : 1;
  }
  return count;
}

/* Of every term of each tile, all parts but one: a load, and whether it is there. Results that share a term are those of a tile's columns; where texels are
   read, sixteen, and a texel is four terms. */
static double parts_ns(const grouping *s, uint32_t contract, uint32_t concat) {
  enum { NARROWEST = 16, WIDEST = 64 };
  const cost_profile *p = s->c->options->profile;
  const ir_tensor *t = &ir_at(s->c->graph, contract)->type;
  const int64_t columns = t->rank ? schedule_hint(s->c->graph->pool, t->dims[t->rank - 1]) : 1;
  const int64_t shared = p->reads == COST_READS_TEXEL || columns > WIDEST ? WIDEST : columns < NARROWEST ? NARROWEST : columns;
  const double terms = s->c->elements[contract] * group_contract_depth(s->c, contract) / (double)shared;
  const double lanes = p->units * p->ghz * (schedule_is_explicit(s->c) ? 1 : p->lanes);
  return terms * (count_parts(s, concat) - 1) * (p->scalar_load_cycles + p->op_cycles) / lanes;
}

/* Winograd's transform of a source: each element of its result is a vector of channels from somewhere, whose place is no loop's. */
static double transform_ns(const grouping *s, uint32_t transform, uint32_t concat) {
  const cost_profile *p = s->c->options->profile;
  const double vectors = s->c->elements[transform] / (p->lanes > 1 ? p->lanes : 1);
  return vectors * (count_parts(s, concat) - 1) * (p->vector_load_cycles + 3 * p->op_cycles) / (p->units * p->ghz);
}

static double store_ns(const grouping *s, uint32_t concat) {
  const cost_profile *p = s->c->options->profile;
  const double bytes = s->c->elements[concat] * ir_dtypes[ir_at(s->c->graph, concat)->type.dtype].bytes;
  return p->launch_ns + bytes * (1 + 1 / (p->stream_store_factor > 0 ? p->stream_store_factor : 1)) / p->cache_gbs;
}

/* Vectors along whole rows of a table that lie apart below its views: lane by lane, not at once. */
static double rows_ns(const grouping *s, uint32_t gather) {
  const cost_profile *p = s->c->options->profile;
  const uint8_t *neighbours = s->c->neighbours ? s->c->neighbours + ir_at(s->c->graph, gather)->args : NULL;
  if (!neighbours || neighbours[0] != FUSION_APART || neighbours[1] != FUSION_SAME) return 0;
  return s->c->elements[gather] * (p->lane_load_cycles - p->vector_load_cycles / p->lanes) / (p->units * p->ghz);
}

/* The concatenation that a table is, stored or not, whose parts lie along the axis that places are picked of; 0: none. */
static uint32_t picked_concat(const ir_graph *g, uint32_t gather) {
  const uint32_t table = ir_arg(g, gather, 0);
  uint32_t node = table;
  while (ir_at(g, node)->op == IR_OP_reshape) node = ir_arg(g, node, 0);
  if (ir_at(g, node)->op != IR_OP_concat) return 0;
  return node != table || ir_attr_int(g, node, IR_ATTR_axis, 0) == ir_attr_int(g, gather, IR_ATTR_axis, 0) ? node : 0;
}

/* Of every place that is picked, or vector of places in one row, all parts but one: a load, and whether it is there. */
static double picked_ns(const grouping *s, uint32_t gather, uint32_t concat) {
  const cost_profile *p = s->c->options->profile;
  const uint8_t *neighbours = s->c->neighbours ? s->c->neighbours + ir_at(s->c->graph, gather)->args : NULL;
  const bool rows = neighbours && neighbours[1] == FUSION_SAME;
  const double lanes = p->units * p->ghz * (schedule_is_explicit(s->c) && !rows ? 1 : p->lanes);
  return s->c->elements[gather] * (count_parts(s, concat) - 1) * (p->scalar_load_cycles + 3 * p->op_cycles) / lanes;
}

static void store_table(grouping *s, uint32_t gather) {
  const uint32_t table = ir_arg(s->c->graph, gather, 0), concat = picked_concat(s->c->graph, gather);
  if (!is_read(s, table) && rows_ns(s, gather) > store_ns(s, table)) s->storage[table] = GROUP_STORED;
  if (concat && picked_ns(s, gather, concat) > store_ns(s, concat)) s->storage[concat] = GROUP_STORED_APART;
}

/* What each trip would compute again. */
static void store_tables(grouping *s, uint32_t loop) {
  const ir_graph *g = s->c->graph;
  for (uint32_t i = 0; i < ir_at(g, loop)->arity; i++) {
    const uint32_t from = fusion_through_views(g, ir_arg(g, loop, i));
    if (fusion_is_table(g, loop, i) && !(ir_ops[ir_at(g, from)->op].flags & IR_SOURCE)) s->storage[from] = GROUP_STORED;
  }
}

void group_store_dear_views(grouping *s) {
  const ir_graph *g = s->c->graph;
  for (uint32_t n = 1; n < g->nodes.count; n++) {
    bool output = false;
    if (ir_at(g, n)->op == IR_OP_loop && s->needed[n]) store_tables(s, n);
    if (ir_at(g, n)->op == IR_OP_gather && s->needed[n]) store_table(s, n);
    if (ir_at(g, n)->op != IR_OP_contract || !s->needed[n] || s->kinds[n] != GROUP_CONTRACT) continue;
    const bool transform = winograd_of(s->c, n, &output) != NULL;
    for (uint32_t o = 0; o < 2 && !output; o++) {
      const uint32_t concat = find_concat(s, ir_arg(g, n, o), transform);
      if (!concat) continue;
      const double dear = transform ? transform_ns(s, n, concat) : parts_ns(s, n, concat);
      if (dear > store_ns(s, concat)) s->storage[concat] = GROUP_STORED;
    }
  }
}
