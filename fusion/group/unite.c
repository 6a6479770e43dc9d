/* One kernel of two groups: its members, what it reads and stores, its kind and hero; legality by kind and by the device's limits.
   Invariant: a node that another group reads is an output; views are read through. */
#include "fusion/contract_set.h"
#include "fusion/fragments.h"
#include "fusion/winograd.h"
#include "fusion/group/private.h"
#include "fusion/image.h"
#include "fusion/schedule_common.h"

static double elements_at_hint(const expr_pool *x, const ir_tensor *t) {
  double n = 1;
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t lo, hi, d = 1;
    if (t->dims[i] >= 0) d = t->dims[i];
    else {
      expr_bounds(x, t->dims[i], &lo, &hi);
      d = hi > 0 && hi < (1 << 20) ? hi : 1024;
    }
    n *= (double)d;
  }
  return n;
}

/* A contraction over a few taps of a window: a stencil rather than a matrix product. Where the taps are vectors of channels it has tiles; where vectors
   are explicit, so have many columns of the same taps, which a stencil would read for each. Weights are few beside what they make; on
   lanes without local memory near they need only be fewer where no columns share a tap, since tiles would gain nothing. Matrix units multiply a fragment of
   columns at once. */
static bool is_stencil(const grouping *s, uint32_t node) {
  enum { FRAGMENT = 16 };
  matrix_units units;
  const ir_graph *g = s->c->graph;
  const uint32_t lhs = ir_arg(g, node, 0), rhs = ir_arg(g, node, 1);
  bool output;
  if (winograd_of(s->c, node, &output)) return false;
  if (!fusion_has_taps(g, lhs) && !fusion_has_taps(g, rhs)) return false;
  const double out = elements_at_hint(g->pool, &ir_at(g, node)->type), a = elements_at_hint(g->pool, &ir_at(g, lhs)->type),
               b = elements_at_hint(g->pool, &ir_at(g, rhs)->type);
  const double wide = a > b ? a : b;
  const double taps = group_contract_depth(s->c, node);
  if (schedule_is_explicit(s->c) && (contract_lane_operands(g, node) & (a < b ? 1u : 2u))) return false;
  const double beside = fusion_columns_beside(s->c->graph, node, a < b);
  if (schedule_is_explicit(s->c) && taps * beside > FUSION_STENCIL_TAPS) return false;
  if (beside >= FRAGMENT && matrix_units_find(s->c, ir_at(g, lhs)->type.dtype, &units)) return false;
  const bool tiles = schedule_is_explicit(s->c) || s->c->options->profile->local_bytes > 0;
  const double few = tiles || beside > 1 ? out / 64 : out;
  return out > 0 && taps <= FUSION_STENCIL_TAPS && wide >= out && (a < few || b < few);
}

group_kind group_find_kind(const grouping *s, uint32_t node) {
  const ir_op op = (ir_op)ir_at(s->c->graph, node)->op;
  if (s->c->options->image_count && ir_is_output(s->c->graph, node) && fusion_image_layout(s->c, node)) return GROUP_IMAGE;
  if (ir_ops[op].flags & IR_REDUCE) return GROUP_REDUCE;
  if (ir_ops[op].flags & IR_SCAN) return GROUP_SCAN;
  if (op == IR_OP_argsort) return GROUP_SORT;
  if (op == IR_OP_opaque) return GROUP_OPAQUE;
  if (op == IR_OP_contract) return is_stencil(s, node) ? GROUP_WINDOW : GROUP_CONTRACT;
  if (op >= IR_OP_scatter_set && op <= IR_OP_scatter_max) return GROUP_SCATTER;
  return GROUP_LOOP;
}

/* Room for node numbers that are written at once, for as long as the union at hand. */
static uint32_t *new_list(grouping *s, uint32_t count) {
  return ir_arena_take_bare(&s->scratch, count * sizeof(uint32_t), _Alignof(uint32_t));
}

/* The members of both, in graph order, each once. */
static bool merge_members(grouping *s, const fusion_group *a, const fusion_group *b, fusion_group *out) {
  uint32_t *nodes = new_list(s, a->count + b->count), i = 0, k = 0, n = 0;
  if (!nodes) return false;
  while (i < a->count || k < b->count) {
    if (i < a->count && k < b->count && a->nodes[i] == b->nodes[k]) i++;
    else if (k == b->count || (i < a->count && a->nodes[i] < b->nodes[k])) nodes[n++] = a->nodes[i++];
    else nodes[n++] = b->nodes[k++];
  }
  out->nodes = nodes;
  out->count = n;
  out->moved = (uint8_t)(a->moved + b->moved < UINT8_MAX ? a->moved + b->moved : UINT8_MAX);
  return true;
}

typedef struct port_lists {
  uint32_t *outputs, output_count, most;
  uint32_t mark, listed; /* of members; of what is among the inputs */
  bool overflow;
  const fusion_group *parts[2]; /* or of the members of two groups, whose numbers are owner - 1 */
  uint32_t owner[2];
} port_lists;

static bool in_parts(const grouping *s, const port_lists *p, uint32_t node) {
  const uint32_t owner = s->group_of[node];
  if (owner && (owner == p->owner[0] || owner == p->owner[1])) return true;
  return s->recomputed[node] && (fusion_group_has(p->parts[0], node) || fusion_group_has(p->parts[1], node));
}

static inline bool inside(const grouping *s, const port_lists *p, uint32_t node) {
  return p->parts[0] ? in_parts(s, p, node) : s->inside[node] == p->mark;
}

static void add_reads(grouping *s, port_lists *p, uint32_t node, uint32_t depth) {
  const ir_graph *g = s->c->graph;
  const ir_node *n = ir_at(g, node);
  ir_expr row;
  for (uint32_t i = fusion_sets_row(g, node, &row); i < n->arity; i++) {
    const uint32_t operand = ir_arg(g, node, i);
    const ir_op op = (ir_op)ir_at(g, operand)->op;
    if (inside(s, p, operand)) continue;
    if (!s->group_of[operand] && fusion_is_view(g, operand)) {
      if (depth < 64) add_reads(s, p, operand, depth + 1);
      continue;
    }
    if (!s->group_of[operand] && (op == IR_OP_iota || op == IR_OP_dim || ir_is_literal(g, operand))) continue;
    if (s->tried[operand] == p->listed) continue;
    s->tried[operand] = p->listed;
    if (s->reads.count == p->most || !IR_PUSH(s->c->arena, &s->reads, operand)) p->overflow = true;
  }
}

/* Is the node read, directly or through free views, by something outside? A recomputed reader is also a member of another group, which reads too. */
static bool read_outside(const grouping *s, const port_lists *p, uint32_t node, uint32_t depth) {
  if (s->uses.is_output[node]) return true;
  for (uint32_t u = s->uses.first[node]; u < s->uses.first[node + 1]; u++) {
    const uint32_t user = s->uses.user[u];
    if (!s->needed[user] || (inside(s, p, user) && !s->recomputed[user])) continue;
    if (!s->group_of[user] && fusion_is_view(s->c->graph, user)) {
      if (depth < 64 && read_outside(s, p, user, depth + 1)) return true;
      continue;
    }
    return true;
  }
  return false;
}

bool group_find_ports(grouping *s, fusion_group *group) {
  port_lists p = {.most = 4 * group->count + 64};
  p.mark = ++s->mark;
  p.listed = ++s->mark;
  p.outputs = new_list(s, group->count);
  if (!p.outputs) return false;
  s->reads.count = 0;
  for (uint32_t i = 0; i < group->count; i++) s->inside[group->nodes[i]] = p.mark;
  for (uint32_t i = 0; i < group->count; i++) {
    const uint32_t node = group->nodes[i];
    add_reads(s, &p, node, 0);
    if (s->recomputed[node]) continue;
    if (s->storage[node] || read_outside(s, &p, node, 0)) p.outputs[p.output_count++] = node;
  }
  uint32_t *inputs = new_list(s, s->reads.count);
  if (!inputs) return false;
  if (s->reads.count) memcpy(inputs, s->reads.at, s->reads.count * sizeof *inputs);
  group->inputs = inputs;
  group->outputs = p.outputs;
  group->input_count = s->reads.count;
  group->output_count = p.output_count;
  return !p.overflow;
}

/* The same sets from the ports of two groups: what a part does not read or store, the union does not; a result that the other part does not read is still
   read outside. Only the order may differ from group_find_ports, which is asked when the union is made. */
static bool join_ports(grouping *s, uint32_t a, uint32_t b, fusion_group *group, const char **why_not) {
  const fusion_group *groups = s->c->groups.at;
  port_lists p = {.parts = {&groups[a], &groups[b]}, .owner = {a + 1, b + 1}, .listed = ++s->mark};
  p.outputs = new_list(s, p.parts[0]->output_count + p.parts[1]->output_count);
  uint32_t *inputs = new_list(s, p.parts[0]->input_count + p.parts[1]->input_count), count = 0;
  *why_not = "host memory";
  if (!p.outputs || !inputs) return false;
  *why_not = "joins of joins";
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t i = 0; i < p.parts[k]->input_count; i++) {
      const uint32_t node = p.parts[k]->inputs[i];
      if (s->tried[node] == p.listed) continue;
      s->tried[node] = p.listed;
      if (!inside(s, &p, node)) inputs[count++] = node;
      else if (s->storage[node] == GROUP_STORED_APART) return false;
    }
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t i = 0; i < p.parts[k]->output_count; i++) {
      const uint32_t node = p.parts[k]->outputs[i];
      if (s->tried[node] != p.listed || s->storage[node] || read_outside(s, &p, node, 0)) p.outputs[p.output_count++] = node;
    }
  group->inputs = inputs;
  group->outputs = p.outputs;
  group->input_count = count;
  group->output_count = p.output_count;
  return true;
}

/* ---- the lists of groups: those of groups that are gone serve others of about their length ---- */

struct group_spare {
  group_spare *next;
};

/* Room for 4, 8, 16 .. numbers. */
static uint32_t size_class(uint32_t count) {
  uint32_t size = 0;
  while (UINT32_C(4) << size < count) size++;
  return size;
}

static bool keep_list(grouping *s, const uint32_t **list, uint32_t count) {
  const uint32_t size = size_class(count);
  void *room = s->spare[size];
  if (room) s->spare[size] = s->spare[size]->next;
  else room = ir_arena_take_bare(s->c->arena, sizeof(uint32_t) << (2 + size), _Alignof(group_spare));
  if (!room) return false;
  if (count) memcpy(room, *list, count * sizeof **list);
  *list = room;
  return true;
}

static void drop_list(grouping *s, const uint32_t *list, uint32_t count) {
  group_spare *room = (group_spare *)(uintptr_t)list;
  room->next = s->spare[size_class(count)];
  s->spare[size_class(count)] = room;
}

void group_drop(grouping *s, const fusion_group *group) {
  drop_list(s, group->nodes, group->count);
  drop_list(s, group->inputs, group->input_count);
  drop_list(s, group->outputs, group->output_count);
}

static double bytes_of_ports(const fusion_context *c, const fusion_group *group) {
  double bytes = 0;
  for (uint32_t i = 0; i < group->input_count + group->output_count; i++) {
    const uint32_t node = i < group->input_count ? group->inputs[i] : group->outputs[i - group->input_count];
    bytes += c->elements[node] * ir_dtypes[ir_at(c->graph, node)->type.dtype].bytes;
  }
  return bytes;
}

static uint64_t bits_of(const uint32_t *nodes, uint32_t count) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < count; i++) bits |= UINT64_C(1) << (nodes[i] * UINT32_C(0x9e3779b9) >> 26);
  return bits;
}

static uint32_t count_bits(uint64_t bits) {
  uint32_t count = 0;
  for (; bits; bits &= bits - 1) count++;
  return count;
}

/* What one of them stores and the other does not read is still stored; what they read and neither stores is still read. */
uint32_t group_least_bindings(const grouping *s, uint32_t a, uint32_t b) {
  const group_ports *p = &s->ports[a], *q = &s->ports[b];
  const uint64_t reads = (p->reads | q->reads) & ~(p->stores | q->stores), stores = (p->stores & ~q->reads) | (q->stores & ~p->reads);
  return count_bits(reads) + count_bits(stores);
}

bool group_settle(grouping *s, uint32_t number, const fusion_group *made) {
  fusion_group group = *made;
  if (!keep_list(s, &group.nodes, group.count) || !keep_list(s, &group.inputs, group.input_count) ||
      !keep_list(s, &group.outputs, group.output_count))
    return false;
  s->ports[number] = (group_ports){bits_of(group.inputs, group.input_count), bits_of(group.outputs, group.output_count),
                                   bytes_of_ports(s->c, &group)};
  s->c->groups.at[number] = group;
  return true;
}

/* ---- kinds ---- */

/* rows: kind of the producer; columns: kind of the consumer. NONE: never one kernel. */
// clang-format off
static const uint8_t merged_kind[GROUP_KIND_COUNT][GROUP_KIND_COUNT] = {
    [GROUP_LOOP] = {[GROUP_LOOP] = GROUP_LOOP, [GROUP_REDUCE] = GROUP_ROW, [GROUP_ROW] = GROUP_ROW, [GROUP_CONTRACT] = GROUP_CONTRACT, [GROUP_WINDOW] = GROUP_WINDOW, [GROUP_TRANSPOSE] = GROUP_LOOP, [GROUP_SCAN] = GROUP_SCAN, [GROUP_IMAGE] = GROUP_IMAGE},
    [GROUP_REDUCE] = {[GROUP_LOOP] = GROUP_ROW, [GROUP_REDUCE] = GROUP_ROW, [GROUP_ROW] = GROUP_ROW},
    [GROUP_ROW] = {[GROUP_LOOP] = GROUP_ROW, [GROUP_REDUCE] = GROUP_ROW, [GROUP_ROW] = GROUP_ROW},
    [GROUP_CONTRACT] = {[GROUP_LOOP] = GROUP_CONTRACT, [GROUP_CONTRACT] = GROUP_CONTRACT /* where rows are staged: kind_of_both */, [GROUP_SCATTER] = GROUP_CONTRACT /* of a row */},
    [GROUP_WINDOW] = {[GROUP_LOOP] = GROUP_WINDOW, [GROUP_WINDOW] = GROUP_WINDOW, [GROUP_IMAGE] = GROUP_IMAGE},
    [GROUP_TRANSPOSE] = {[GROUP_LOOP] = GROUP_LOOP, [GROUP_IMAGE] = GROUP_IMAGE},
    [GROUP_SCAN] = {[GROUP_LOOP] = GROUP_SCAN},
    [GROUP_ATTENTION] = {[GROUP_LOOP] = GROUP_ATTENTION},
};
// clang-format on

group_kind group_merged_kind(group_kind producer, group_kind consumer) { return (group_kind)merged_kind[producer][consumer]; }

/* What two groups become: a contraction takes another one only where that can be staged, and a scatter that sets a row. */
static group_kind kind_of_both(const grouping *s, const fusion_group *producer, const fusion_group *consumer) {
  const group_kind kind = group_merged_kind((group_kind)producer->kind, (group_kind)consumer->kind);
  ir_expr row;
  if (producer->kind != GROUP_CONTRACT) return kind;
  if (consumer->kind == GROUP_SCATTER) return fusion_sets_row(s->c->graph, consumer->hero, &row) ? kind : GROUP_NONE;
  if (consumer->kind != GROUP_CONTRACT || contract_may_stage(s->c, producer->hero, consumer->hero)) return kind;
  return contract_may_make_rows(s->c, producer->hero, consumer) ? kind : GROUP_NONE;
}

/* Does `node` follow, element by element, a value of the rows' shape (`whole`) or a result of their reductions? */
typedef struct row_path {
  grouping *s;
  const fusion_group *group;
  const ir_tensor *full;
  bool whole;
  uint32_t mark, depth;
} row_path;

IR_COLD static bool follows_rows(row_path *p, uint32_t node) {
  const ir_graph *g = p->s->c->graph;
  const ir_node *n = ir_at(g, node);
  if (p->s->tried[node] == p->mark || p->depth > 60) return false;
  p->s->tried[node] = p->mark;
  const bool member = fusion_group_has(p->group, node), reduce = (ir_ops[n->op].flags & IR_REDUCE) != 0;
  if (member && (p->whole ? ir_same_shape(&n->type, p->full) : reduce)) return true;
  if (!(ir_ops[n->op].flags & IR_POINTWISE) && n->op != IR_OP_reshape && n->op != IR_OP_transpose) return false;
  bool found = false;
  p->depth++;
  for (uint32_t i = 0; i < n->arity && !found; i++) {
    const ir_node *operand = ir_at(g, ir_arg(g, node, i));
    found = (operand->type.rank || !n->type.rank) && follows_rows(p, ir_arg(g, node, i));
  }
  p->depth--;
  return found;
}

static bool outputs_fit_rows(grouping *s, fusion_group *group, const char **why_not) {
  const fusion_context *c = s->c;
  const ir_graph *g = c->graph;
  const ir_tensor *full = &ir_at(g, ir_arg(g, group->hero, 0))->type;
  const ir_expr all = c->facts[ir_arg(g, group->hero, 0)].count, rows = c->facts[group->hero].count;
  bool full_output = false;
  uint32_t reduces = 0;
  for (uint32_t i = 0; i < group->count; i++) reduces += (ir_ops[ir_at(g, group->nodes[i])->op].flags & IR_REDUCE) != 0;
  for (uint32_t i = 0; i < group->output_count; i++) {
    const uint32_t node = group->outputs[i];
    const ir_tensor *t = &ir_at(g, node)->type;
    const bool reduce = (ir_ops[ir_at(g, node)->op].flags & IR_REDUCE) != 0;
    const ir_expr elements = c->facts[node].count;
    if (reduce || (elements == all && ir_same_shape(t, full))) {
      full_output |= !reduce;
      continue;
    }
    row_path path = {.s = s, .group = group, .full = full, .whole = elements == all, .mark = ++s->mark};
    const bool reached = (elements == all || elements == rows) && follows_rows(&path, node);
    if (!reached) {
      *why_not = "a result that is neither a whole row nor one value a row";
      return false;
    }
    full_output |= elements == all;
  }
  group->kind = full_output || reduces > 1 ? GROUP_ROW : GROUP_REDUCE;
  return true;
}

/* Of what a flat loop stores the last of the largest. */
static bool pick_output(const grouping *s, fusion_group *group) {
  const ir_graph *g = s->c->graph;
  double best = -1;
  for (uint32_t i = 0; i < group->output_count; i++) {
    const uint32_t node = group->outputs[i];
    const bool reduce = group_kind_of_node(s, node) == GROUP_REDUCE;
    const double size = elements_at_hint(g->pool, &ir_at(g, reduce ? ir_arg(g, node, 0) : node)->type);
    if (size < best || (size == best && node < group->hero)) continue;
    best = size;
    group->hero = node;
  }
  return best >= 0;
}

static bool pick_hero(const grouping *s, fusion_group *group) {
  const ir_graph *g = s->c->graph;
  double best = -1;
  if (group->kind == GROUP_LOOP) return pick_output(s, group);
  for (uint32_t i = 0; i < group->count; i++) {
    const uint32_t node = group->nodes[i];
    const group_kind own = group_kind_of_node(s, node);
    const bool values = ir_at(g, node)->op == IR_OP_contract &&
                        (group->kind == GROUP_ATTENTION || (group->kind == GROUP_CONTRACT && own == GROUP_CONTRACT));
    if (values) best = -1; /* the last contraction */
    const bool wanted = values || own == group->kind || (own == GROUP_REDUCE && group->kind == GROUP_ROW);
    if (!wanted) continue;
    const double size = elements_at_hint(g->pool, &ir_at(g, own == GROUP_REDUCE ? ir_arg(g, node, 0) : node)->type);
    if (size >= best) {
      best = size;
      group->hero = node;
    } /* the last of the largest */
  }
  return best >= 0;
}

/* Contractions and stencils store in the coordinates of their hero. */
static bool outputs_follow_hero(const grouping *s, const fusion_group *group, const char **why_not) {
  const ir_graph *g = s->c->graph;
  contract_set set = {.count = 1, .node = {group->hero}};
  if (group->kind == GROUP_CONTRACT) contract_set_find(s->c, group, &set);
  for (uint32_t i = 0; i < group->output_count; i++) {
    map_access at = {.rank = ir_at(g, group->hero)->type.rank};
    if (!contract_set_forward(s->c, group, &set, group->outputs[i], &at)) {
      *why_not = "a result that does not follow the contraction element by element";
      return false;
    }
  }
  return true;
}

static bool can_be_bound(const grouping *s, const fusion_group *group) {
  const uint32_t most = s->c->options->profile->max_bindings;
  return !most || group->input_count + group->output_count <= most;
}

static bool is_legal(grouping *s, fusion_group *group, const char **why_not) {
  if (!can_be_bound(s, group)) {
    *why_not = "bindings";
    return false;
  }
  if (!group->output_count || (!group->hero && !pick_hero(s, group))) {
    *why_not = "nothing stored";
    return false;
  }
  if ((group->kind == GROUP_ROW || group->kind == GROUP_REDUCE) && !outputs_fit_rows(s, group, why_not)) return false;
  if ((group->kind == GROUP_CONTRACT || group->kind == GROUP_WINDOW) && !outputs_follow_hero(s, group, why_not)) return false;
  const schedule_info *kind = &fusion_schedules[group->kind];
  return !kind->accepts || kind->accepts(s->c, group, why_not);
}

/* The text of a kernel has an end, too. */
static bool can_be_written(const grouping *s, const fusion_group *group, const char **why_not) {
  *why_not = "values that many others each read in two ways";
  return group->moved <= GROUP_FEW_MOVED || !group_writes_too_often(s->c, group);
}

bool group_finish(grouping *s, fusion_group *group, const char **why_not) {
  if (group->count > GROUP_MOST_MEMBERS) {
    *why_not = "size";
    return false;
  }
  if (!group_find_ports(s, group)) {
    *why_not = "too many values";
    return false;
  }
  return is_legal(s, group, why_not) && can_be_written(s, group, why_not);
}

bool group_unite_all(grouping *s, const uint32_t *groups, uint32_t count, group_kind kind, uint32_t hero, fusion_group *out,
                     const char **why_not) {
  const fusion_group *first = &s->c->groups.at[groups[0]];
  uint32_t members = 0;
  *out = (fusion_group){0};
  ir_arena_rewind(&s->scratch, s->empty);
  for (uint32_t i = 0; i < count; i++) members += s->c->groups.at[groups[i]].count;
  if (members > GROUP_MOST_MEMBERS) {
    *why_not = "size";
    return false;
  }
  *out = (fusion_group){.kind = (uint8_t)kind, .hero = hero, .moved = first->moved, .count = first->count, .nodes = first->nodes};
  for (uint32_t i = 1; i < count; i++) {
    const fusion_group so_far = *out;
    if (!merge_members(s, &so_far, &s->c->groups.at[groups[i]], out)) {
      *why_not = "host memory";
      return false;
    }
  }
  return group_finish(s, out, why_not);
}

bool group_extend(grouping *s, const fusion_group *group, const fusion_group *with, fusion_group *out, const char **why_not) {
  *out = (fusion_group){.kind = (uint8_t)kind_of_both(s, with, group)};
  *why_not = "kind";
  return out->kind && merge_members(s, group, with, out) && group_finish(s, out, why_not);
}

/* Two flat loops over as many elements: no kind, size or hero to look at. */
bool group_join_loops(grouping *s, uint32_t a, uint32_t b, fusion_group *out) {
  const fusion_group *parts[2] = {&s->c->groups.at[a], &s->c->groups.at[b]};
  const char *why_not;
  *out = (fusion_group){.kind = GROUP_LOOP};
  ir_arena_rewind(&s->scratch, s->empty);
  return join_ports(s, a, b, out, &why_not) && merge_members(s, parts[0], parts[1], out) && pick_output(s, out);
}

static bool join(grouping *s, uint32_t a, uint32_t b, fusion_group *out, const char **why_not) {
  const fusion_group *parts[2] = {&s->c->groups.at[a], &s->c->groups.at[b]};
  *out = (fusion_group){.kind = (uint8_t)kind_of_both(s, parts[0], parts[1])};
  *why_not = out->kind ? "size" : "kind";
  if (!out->kind || parts[0]->count + parts[1]->count > GROUP_MOST_MEMBERS) return false;
  ir_arena_rewind(&s->scratch, s->empty);
  if (!join_ports(s, a, b, out, why_not)) return false;
  *why_not = "bindings"; /* most unions of large groups end here: before their members are put together */
  return can_be_bound(s, out);
}

/* As group_unite, with the ports in any order: for a price. */
bool group_look(grouping *s, uint32_t a, uint32_t b, fusion_group *out, const char **why_not) {
  if (!join(s, a, b, out, why_not)) return false;
  *why_not = "host memory";
  return merge_members(s, &s->c->groups.at[a], &s->c->groups.at[b], out) && is_legal(s, out, why_not) && can_be_written(s, out, why_not);
}

bool group_guess(grouping *s, uint32_t a, uint32_t b, fusion_group *out, const char **why_not, double *saving) {
  const fusion_group *parts[2] = {&s->c->groups.at[a], &s->c->groups.at[b]};
  if (!join(s, a, b, out, why_not)) return false;
  const double less = s->ports[a].bytes + s->ports[b].bytes - bytes_of_ports(s->c, out);
  out->cost.ns = cost_of_both(s->c->options->profile, &parts[0]->cost, &parts[1]->cost, less);
  out->cost.bytes = parts[0]->cost.bytes + parts[1]->cost.bytes - less;
  *saving = parts[0]->cost.ns + parts[1]->cost.ns - out->cost.ns;
  *why_not = "loses";
  return group_pays(s, *saving);
}

bool group_unite(grouping *s, uint32_t a, uint32_t b, fusion_group *out, const char **why_not) {
  const group_kind kind = kind_of_both(s, &s->c->groups.at[a], &s->c->groups.at[b]);
  if (!kind) {
    *why_not = "kind";
    return false;
  }
  return group_unite_all(s, (const uint32_t[]){a, b}, 2, kind, 0, out, why_not);
}
