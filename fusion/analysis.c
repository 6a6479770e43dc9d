/* Analyses shared by grouping, schedules and the cost model: what is a view, what is stored, which loads a value makes, forward coordinates.
   Nothing is emitted; every walk follows the same rules as emit_value. */
#include "fusion/schedule_common.h"
#include "fusion/winograd.h"

bool fusion_is_view(const ir_graph *g, uint32_t node) { return (ir_ops[ir_at(g, node)->op].flags & IR_MOVEMENT) != 0; }

bool fusion_only_moves(const ir_graph *g, uint32_t node) {
  return fusion_is_view(g, node) && ir_at(g, node)->op != IR_OP_concat && ir_at(g, node)->op != IR_OP_words &&
         ir_attr_int(g, node, IR_ATTR_value, 0) == 0;
}

bool fusion_is_free(const ir_graph *g, uint32_t node) {
  return fusion_is_view(g, node) || (ir_ops[ir_at(g, node)->op].flags & IR_SOURCE) != 0;
}

int32_t fusion_find_label(const ir_expr *list, uint32_t count, ir_expr label) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == label) return (int32_t)i;
  return -1;
}

bool fusion_is_update(const ir_graph *g, uint32_t node) {
  for (uint32_t i = 0; i < g->updates.count; i++)
    if (g->updates.at[i].value == node) return true;
  return false;
}

uint32_t fusion_through_views(const ir_graph *g, uint32_t node) {
  while (node && fusion_is_view(g, node) && ir_at(g, node)->op != IR_OP_concat) node = ir_arg(g, node, 0);
  return node;
}

uint32_t fusion_through_moves(const ir_graph *g, uint32_t node) {
  while (fusion_only_moves(g, node) && ir_at(g, node)->op != IR_OP_pad && ir_at(g, node)->op != IR_OP_window) node = ir_arg(g, node, 0);
  return node;
}

uint32_t fusion_below_window(const ir_graph *g, uint32_t node) {
  while (ir_at(g, node)->op == IR_OP_window || ir_at(g, node)->op == IR_OP_pad) node = ir_arg(g, node, 0);
  return node;
}

bool fusion_has_taps(const ir_graph *g, uint32_t node) {
  while (ir_at(g, node)->op != IR_OP_window && ir_at(g, node)->arity == 1 && fusion_is_view(g, node)) node = ir_arg(g, node, 0);
  return ir_at(g, node)->op == IR_OP_window;
}

/* Sums that somebody takes for whole numbers (integers.c) are not to be off by rounding. */
bool fusion_is_whole(const ir_graph *g, const ir_uses *uses, uint32_t node) {
  for (uint32_t u = uses->first[node]; u < uses->first[node + 1]; u++) {
    const uint32_t reader = uses->user[u];
    if (fusion_is_view(g, reader) ? fusion_is_whole(g, uses, reader)
                                  : ir_at(g, reader)->op == IR_OP_cast && ir_dtypes[ir_at(g, reader)->type.dtype].is_int)
      return true;
  }
  return false;
}

bool fusion_group_has(const fusion_group *group, uint32_t node) {
  uint32_t lo = 0, hi = group->count;
  while (lo < hi) {
    const uint32_t middle = lo + (hi - lo) / 2;
    if (group->nodes[middle] < node) lo = middle + 1;
    else hi = middle;
  }
  return lo < group->count && group->nodes[lo] == node;
}

const fusion_body *fusion_register_loop(const fusion_context *c, uint32_t node) {
  if (ir_at(c->graph, node)->op == IR_OP_pick) node = ir_arg(c->graph, node, 0);
  if (ir_at(c->graph, node)->op != IR_OP_loop) return NULL;
  const fusion_body *b = c->bodies.at[ir_attr_int(c->graph, node, IR_ATTR_region, 1) - 1];
  return b->in_registers && c->options->level == FUSION_FUSED ? b : NULL;
}

bool fusion_is_table(const ir_graph *g, uint32_t node, uint32_t operand) {
  const ir_tensor *t = &ir_at(g, ir_arg(g, node, operand))->type;
  return ir_at(g, node)->op == IR_OP_loop && t->rank == 1 && !ir_same_shape(t, &ir_at(g, node)->type);
}

bool fusion_is_stored(const fusion_context *c, uint32_t node) {
  const ir_node *n = ir_at(c->graph, node);
  if (n->op == IR_OP_input || n->op == IR_OP_state) return true;
  if (n->op == IR_OP_const) return !ir_is_literal(c->graph, node);
  if (!c->group_of[node]) return false;
  const fusion_group *group = &c->groups.at[c->group_of[node] - 1];
  for (uint32_t i = 0; i < group->output_count; i++)
    if (group->outputs[i] == node) return true;
  return false;
}

/* ---- loads of a value ---- */

typedef struct visit {
  uint32_t node, rank;
  ir_expr at[SNT_MAX_RANK];
} visit;
typedef struct load_walk {
  const fusion_context *c;
  const fusion_group *group;
  fusion_load_fn fn;
  void *user;
  double weight;
  const fusion_stops *stops;
  IR_VEC(visit) seen;
  bool ok;
} load_walk;

static void walk(load_walk *w, uint32_t node, const map_access *access);

static bool seen_before(load_walk *w, uint32_t node, const map_access *access) {
  for (uint32_t i = w->seen.count; i-- > 0;) {
    const visit *v = &w->seen.at[i];
    if (v->node == node && v->rank == access->rank && !memcmp(v->at, access->at, access->rank * sizeof access->at[0])) return true;
  }
  visit v = {node, access->rank, {0}};
  memcpy(v.at, access->at, access->rank * sizeof access->at[0]);
  if (!IR_PUSH(w->c->arena, &w->seen, v)) w->ok = false;
  return false;
}

static bool is_read(const load_walk *w, uint32_t node) {
  for (uint32_t i = 0; w->stops && i < w->stops->count; i++)
    if (w->stops->nodes[i] == node) return true;
  if (w->c->group_of[node] && !w->group) return fusion_is_stored(w->c, node);
  if (w->c->group_of[node] && !fusion_group_has(w->group, node)) return true;
  const ir_op op = (ir_op)ir_at(w->c->graph, node)->op;
  return op == IR_OP_input || op == IR_OP_state || (op == IR_OP_const && !ir_is_literal(w->c->graph, node));
}

static bool listed(const ir_expr *list, uint32_t count, int64_t label, uint32_t *where) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == label) {
      *where = i;
      return true;
    }
  return false;
}

static ir_expr new_axis(load_walk *w, ir_expr extent, double *times) {
  int64_t lo, hi;
  if (extent == 1) return 0;
  expr_bounds(w->c->graph->pool, extent, &lo, &hi);
  *times *= hi < 1 ? 1 : (double)(hi < (1 << 30) ? hi : 1024);
  return expr_var_add(w->c->graph->pool, "k", 0, extent, 1);
}

static void walk_reduce(load_walk *w, uint32_t node, const map_access *access) {
  const ir_graph *g = w->c->graph;
  const uint32_t operand = ir_arg(g, node, 0);
  const ir_tensor *from = &ir_at(g, operand)->type;
  uint32_t count, where, kept = 0;
  const ir_expr *axes = ir_attr_ints(g, node, IR_ATTR_axes, &count);
  const bool keep = ir_attr_flag(g, node, IR_ATTR_keep);
  const double weight = w->weight;
  map_access a = *access;
  a.rank = from->rank;
  for (uint32_t i = 0; i < from->rank; i++) {
    const bool reduced = listed(axes, count, i, &where);
    a.at[i] = reduced ? new_axis(w, from->dims[i], &w->weight) : access->at[keep ? i : kept];
    kept += !reduced;
  }
  walk(w, operand, &a);
  w->weight = weight;
}

static void walk_contract(load_walk *w, uint32_t node, const map_access *access) {
  const ir_graph *g = w->c->graph;
  uint32_t counts[2], out_count, where;
  const ir_expr *labels[2] = {ir_attr_ints(g, node, IR_ATTR_lhs, &counts[0]), ir_attr_ints(g, node, IR_ATTR_rhs, &counts[1])};
  const ir_expr *out = ir_attr_ints(g, node, IR_ATTR_out, &out_count);
  const double weight = w->weight;
  map_access a[2] = {*access, *access};
  for (uint32_t o = 0; o < 2; o++) {
    a[o].rank = counts[o];
    for (uint32_t i = 0; i < counts[o]; i++) {
      if (listed(out, out_count, labels[o][i], &where)) a[o].at[i] = access->at[where];
      else if (o == 1 && listed(labels[0], counts[0], labels[1][i], &where)) a[1].at[i] = a[0].at[where];
      else a[o].at[i] = new_axis(w, ir_at(g, ir_arg(g, node, o))->type.dims[i], &w->weight);
    }
  }
  walk(w, ir_arg(g, node, 0), &a[0]);
  walk(w, ir_arg(g, node, 1), &a[1]);
  w->weight = weight;
}

/* Is the node what the state becomes, and its only reader? So it is written in place (states.c). */
static bool renews_alone(const ir_graph *g, uint32_t node, uint32_t state) {
  uint32_t readers = 0;
  bool updates = false;
  for (uint32_t i = 0; i < g->updates.count; i++) updates |= g->updates.at[i].value == node && g->updates.at[i].state == state;
  for (uint32_t i = 0; i < g->args.count && updates; i++) readers += g->args.at[i] == state;
  return updates && readers == 1 && !ir_is_output(g, state);
}

bool fusion_row_of_scatter(const ir_graph *g, uint32_t node, ir_expr *row) {
  expr_pool *x = g->pool;
  const uint32_t state = ir_arg(g, node, 0), index = ir_arg(g, node, 1);
  if (ir_at(g, state)->op != IR_OP_state || ir_at(g, index)->op != IR_OP_dim || ir_dtypes[ir_at(g, index)->type.dtype].bits < 32)
    return false;
  *row = ir_attr_ints(g, index, IR_ATTR_shape, NULL)[0];
  return renews_alone(g, node, state) && expr_proves_lt(x, expr_int(x, -1), *row) &&
         expr_proves_lt(x, *row, ir_at(g, node)->type.dims[ir_attr_int(g, node, IR_ATTR_axis, 0)]);
}

bool fusion_row_update(const ir_graph *g, uint32_t node, const map_access *result, map_access *update) {
  const uint32_t axis = (uint32_t)ir_attr_int(g, node, IR_ATTR_axis, 0);
  ir_expr row;
  if (!fusion_sets_row(g, node, &row) || result->at[axis] != row) return false;
  *update = *result;
  update->rank--;
  memmove(update->at + axis, update->at + axis + 1, (update->rank - axis) * sizeof update->at[0]);
  return true;
}

static void walk_gather(load_walk *w, uint32_t node, const map_access *access) {
  const ir_graph *g = w->c->graph;
  const uint32_t data = ir_arg(g, node, 0), indices = ir_arg(g, node, 1), axis = (uint32_t)ir_attr_int(g, node, IR_ATTR_axis, 0);
  const ir_tensor *from = &ir_at(g, data)->type;
  const uint32_t index_rank = ir_at(g, indices)->type.rank;
  map_access at_index = *access, at_data = *access;
  at_index.rank = index_rank;
  for (uint32_t i = 0; i < index_rank; i++) at_index.at[i] = access->at[axis + i];
  walk(w, indices, &at_index);
  at_data.rank = from->rank;
  at_data.at[axis] = expr_var_add(g->pool, "index", 0, from->dims[axis], 1);
  for (uint32_t i = axis + 1; i < from->rank; i++) at_data.at[i] = access->at[i - 1 + index_rank];
  walk(w, data, &at_data);
}

/* Every element sweeps the indices and the updates at its place. */
static void walk_scatter(load_walk *w, uint32_t node, const map_access *access) {
  const ir_graph *g = w->c->graph;
  const ir_tensor *index = &ir_at(g, ir_arg(g, node, 1))->type;
  const uint32_t axis = (uint32_t)ir_attr_int(g, node, IR_ATTR_axis, 0);
  const double weight = w->weight;
  map_access at_index = *access, at_updates = *access;
  if (fusion_row_update(g, node, access, &at_updates)) {
    walk(w, ir_arg(g, node, 2), &at_updates);
    return;
  }
  walk(w, ir_arg(g, node, 0), access);
  at_index.rank = index->rank;
  for (uint32_t i = 0; i < index->rank; i++) at_index.at[i] = new_axis(w, index->dims[i], &w->weight);
  at_updates.rank = ir_at(g, ir_arg(g, node, 2))->type.rank;
  for (uint32_t d = axis; d < at_updates.rank; d++)
    at_updates.at[d] = d < axis + index->rank ? at_index.at[d - axis] : access->at[d - index->rank + 1];
  walk(w, ir_arg(g, node, 1), &at_index);
  walk(w, ir_arg(g, node, 2), &at_updates);
  w->weight = weight;
}

static void walk_scan(load_walk *w, uint32_t node, const map_access *access) {
  const ir_graph *g = w->c->graph;
  const uint32_t axis = (uint32_t)ir_attr_int(g, node, IR_ATTR_axis, 0);
  const double weight = w->weight;
  map_access line = *access;
  line.at[axis] = new_axis(w, ir_at(g, node)->type.dims[axis], &w->weight);
  for (uint32_t i = 0; i < ir_at(g, node)->arity; i++) walk(w, ir_arg(g, node, i), &line);
  w->weight = weight;
}

static void walk_views(load_walk *w, uint32_t node, const map_access *access) {
  const ir_node *n = ir_at(w->c->graph, node);
  for (uint32_t i = 0; i < n->arity; i++) {
    map_access inner = *access;
    if (!ir_movement_access(w->c->graph, node, i, &inner)) {
      w->ok = false;
      return;
    }
    walk(w, ir_arg(w->c->graph, node, i), &inner);
  }
}

static void walk(load_walk *w, uint32_t node, const map_access *access) {
  if (!w->ok || seen_before(w, node, access)) return;
  const ir_graph *g = w->c->graph;
  const ir_node *n = ir_at(g, node);
  if (is_read(w, node)) {
    const fusion_load load = {node, access, w->weight};
    w->fn(w->user, &load);
    return;
  }
  const uint8_t flags = ir_ops[n->op].flags;
  if (flags & IR_SOURCE) return;
  const bool in_registers = fusion_register_loop(w->c, node) != NULL;
  if (!in_registers &&
      (n->op == IR_OP_loop || n->op == IR_OP_pick || n->op == IR_OP_argsort || n->op == IR_OP_opaque)) { /* reads what it likes */
    w->ok = false;
    return;
  }
  if (flags & IR_MOVEMENT) {
    walk_views(w, node, access);
    return;
  }
  if (flags & IR_REDUCE) {
    walk_reduce(w, node, access);
    return;
  }
  if (n->op == IR_OP_contract) {
    walk_contract(w, node, access);
    return;
  }
  if (flags & IR_SCAN) {
    walk_scan(w, node, access);
    return;
  }
  if (n->op >= IR_OP_scatter_set && n->op <= IR_OP_scatter_max) {
    walk_scatter(w, node, access);
    return;
  }
  if (n->op == IR_OP_gather) {
    walk_gather(w, node, access);
    return;
  }
  for (uint32_t i = 0; i < n->arity; i++) {
    const uint32_t operand = ir_arg(g, node, i);
    map_access a = *access;
    if (ir_at(g, operand)->type.rank == 0) a.rank = 0;
    if (fusion_is_table(g, node, i)) a = fusion_anywhere(w->c, operand);
    walk(w, operand, &a);
  }
}

bool fusion_walk_until(const fusion_context *c, const fusion_group *group, uint32_t node, const map_access *access,
                       const fusion_stops *stops, fusion_load_fn fn, void *user) {
  visit few[16]; /* most walks meet no more */
  load_walk w = {.c = c, .group = group, .fn = fn, .user = user, .weight = 1, .stops = stops, .ok = true};
  w.seen.at = few;
  w.seen.capacity = IR_COUNT(few);
  walk(&w, node, access);
  return w.ok;
}

bool fusion_walk_loads(const fusion_context *c, const fusion_group *group, uint32_t node, const map_access *access, fusion_load_fn fn,
                       void *user) {
  return fusion_walk_until(c, group, node, access, NULL, fn, user);
}

map_access fusion_anywhere(const fusion_context *c, uint32_t node) {
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  map_access at = {.rank = t->rank};
  for (uint32_t d = 0; d < t->rank; d++) at.at[d] = t->dims[d] == 1 ? 0 : expr_var_add(c->graph->pool, "i", 0, t->dims[d], 1);
  return at;
}

typedef struct places {
  uint32_t member;
  map_access *at;
  bool found, guarded, apart;
} places;

static void take_place(void *user, const fusion_load *load) {
  places *p = user;
  const map_access *a = load->access;
  if (load->node != p->member) return;
  p->guarded |= a->condition_count != 0;
  p->apart |= p->found && memcmp(a->at, p->at->at, a->rank * sizeof a->at[0]) != 0;
  *p->at = *a;
  p->found = true;
}

static bool walk_places(const fusion_context *c, const fusion_group *group, uint32_t node, const map_access *access, places *out) {
  const fusion_stops stops = {&out->member, 1};
  return fusion_walk_until(c, group, node, access, &stops, take_place, out);
}

bool fusion_one_place(const fusion_context *c, const fusion_group *group, uint32_t node, const map_access *access, uint32_t member,
                      map_access *out) {
  places p = {.member = member, .at = out};
  return walk_places(c, group, node, access, &p) && p.found && !p.guarded && !p.apart;
}

bool fusion_reads_apart(const fusion_context *c, const fusion_group *group, uint32_t member) {
  bool apart = false;
  for (uint32_t i = 0; i < group->output_count && !apart; i++) {
    const map_access own = fusion_anywhere(c, group->outputs[i]);
    map_access at;
    places p = {.member = member, .at = &at};
    apart = !walk_places(c, group, group->outputs[i], &own, &p) || p.apart;
  }
  return apart;
}

/* ---- forward coordinates ---- */

enum { PATH_LONGEST = 64, PATH_FEW = 24, PATH_SEEN = 2048 };
/* Nodes between `from` and `to` on one operand path that keeps elements one to one, or leaves the last of them out. What was seen in vain is not tried
   again. */
typedef struct path_search {
  const fusion_context *c;
  const fusion_group *group; /* the ways stay in it; null: anywhere */
  const ir_graph *g;
  bool crops; /* slices may leave elements out, behind the last of Winograd's products */
  uint32_t from, path[PATH_LONGEST], length;
  uint32_t few[PATH_FEW], seen_count; /* the first; most searches see no more */
  uint32_t seen[PATH_SEEN];           /* all, once there are more: open addressing; 0: free */
} path_search;

static bool add_seen(path_search *p, uint32_t node) {
  uint32_t at = node * 2654435761u % PATH_SEEN;
  while (p->seen[at] && p->seen[at] != node) at = (at + 1) % PATH_SEEN;
  if (p->seen[at] == node || p->seen_count > PATH_SEEN / 2) return false;
  p->seen[at] = node;
  return true;
}

static bool first_visit(path_search *p, uint32_t node) {
  if (p->seen_count < PATH_FEW) {
    for (uint32_t i = 0; i < p->seen_count; i++)
      if (p->few[i] == node) return false;
    p->few[p->seen_count++] = node;
    return true;
  }
  if (p->seen_count == PATH_FEW) {
    memset(p->seen, 0, sizeof p->seen);
    for (uint32_t i = 0; i < PATH_FEW; i++) add_seen(p, p->few[i]);
  }
  if (!add_seen(p, node)) return false;
  p->seen_count++;
  return true;
}

/* Every element that is kept has the coordinates it had. */
static bool is_crop(const ir_graph *g, uint32_t node) {
  uint32_t count;
  if (ir_at(g, node)->op != IR_OP_slice) return false;
  const ir_expr *starts = ir_attr_ints(g, node, IR_ATTR_starts, &count), *steps = ir_attr_ints(g, node, IR_ATTR_steps, NULL);
  for (uint32_t i = 0; i < count; i++)
    if (starts[i] != 0 || (steps && steps[i] != 1)) return false;
  return true;
}

static bool may_crop(const path_search *p, uint32_t node) {
  bool last;
  return p->crops && is_crop(p->g, node) && winograd_of(p->c, p->from, &last) && last;
}

static bool forward_path(path_search *p, uint32_t to) {
  const ir_graph *g = p->g;
  ir_expr row;
  if (to == p->from) return true;
  if (to < p->from || p->length == PATH_LONGEST || !first_visit(p, to)) return false;
  if (p->group && p->c->group_of[to] && !fusion_group_has(p->group, to)) return false;
  const ir_node *n = ir_at(g, to);
  const bool bijective = n->op == IR_OP_reshape || n->op == IR_OP_transpose;
  const bool sets = fusion_sets_row(g, to, &row);
  if (!(ir_ops[n->op].flags & IR_POINTWISE) && !bijective && !sets && !may_crop(p, to)) return false;
  for (uint32_t i = sets ? 2 : 0; i < n->arity; i++) {
    const uint32_t operand = ir_arg(g, to, i), before = p->length;
    if (ir_at(g, operand)->type.rank == 0 && n->type.rank != 0) continue;
    p->path[p->length++] = to;
    if (forward_path(p, operand)) return true;
    p->length = before;
  }
  return false;
}

static bool forward(const fusion_context *c, const fusion_group *group, bool crops, uint32_t from, uint32_t to, map_access *at) {
  const ir_graph *g = c->graph;
  path_search p; /* large: only what is used is written */
  ir_expr row;
  const uint32_t *path = p.path;
  p.c = c;
  p.group = group;
  p.g = g;
  p.crops = crops;
  p.from = from;
  p.length = p.seen_count = 0;
  if (from == to) return true;
  if (!forward_path(&p, to)) return false;
  for (uint32_t i = p.length; i-- > 0;) { /* the path was recorded from `to` down */
    const ir_node *n = ir_at(g, path[i]);
    if (n->op == IR_OP_transpose) {
      uint32_t rank;
      const ir_expr *perm = ir_attr_ints(g, path[i], IR_ATTR_perm, &rank);
      map_access moved = *at;
      for (uint32_t d = 0; d < rank; d++) moved.at[d] = at->at[perm[d]];
      *at = moved;
    } else if (n->op == IR_OP_reshape) {
      const ir_tensor *operand = &ir_at(g, ir_arg(g, path[i], 0))->type;
      if (!map_reshape(g->pool, at, n->type.rank, n->type.dims, operand->dims)) return false;
    } else if (fusion_sets_row(g, path[i], &row)) {
      const uint32_t axis = (uint32_t)ir_attr_int(g, path[i], IR_ATTR_axis, 0);
      memmove(at->at + axis + 1, at->at + axis, (at->rank++ - axis) * sizeof row);
      at->at[axis] = row;
    } else if (n->op == IR_OP_slice) {
      for (uint32_t d = 0; d < n->type.rank; d++)
        if (!map_add_condition(g->pool, at, at->at[d], 0, n->type.dims[d])) return false;
    }
  }
  return true;
}

bool fusion_forward_access(const fusion_context *c, uint32_t from, uint32_t to, map_access *at) {
  return forward(c, NULL, false, from, to, at);
}

bool fusion_forward_within(const fusion_context *c, const fusion_group *group, uint32_t from, uint32_t to, map_access *at) {
  return forward(c, group, true, from, to, at);
}

double fusion_columns_beside(const ir_graph *g, uint32_t node, uint32_t shared) {
  uint32_t count[2];
  const ir_expr *own = ir_attr_ints(g, node, shared ? IR_ATTR_rhs : IR_ATTR_lhs, &count[0]),
                *other = ir_attr_ints(g, node, shared ? IR_ATTR_lhs : IR_ATTR_rhs, &count[1]);
  double columns = 1;
  for (uint32_t i = 0; i < count[1]; i++)
    if (fusion_find_label(own, count[0], other[i]) < 0)
      columns *= (double)schedule_hint(g->pool, ir_at(g, ir_arg(g, node, 1 - shared))->type.dims[i]);
  return columns;
}
