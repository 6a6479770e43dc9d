/* The first few of long lines, where no more are read: the first k of a line lie in the k parts whose first elements come first. One kernel finds those
   of all parts, the next the k parts, a third the places of their elements among each other. Part p has the elements p, p + parts, p + 2 parts ..,
   so that neighbours are in neighbouring parts. */
#include "fusion/schedule/sort_private.h"

enum { MOST_FIRST = 64, MOST_COMPARED = 1 << 26, PIECE = 64 };

static ir_expr rows_of(const sort_job *j, ir_expr part) { return expr_ceil_div(j->e->x, expr_sub(j->e->x, j->length, part), j->parts); }

/* The first element of each part of `hi` elements. */
static void find_first(emit *e, void *user, ir_expr part) {
  sort_job *j = user;
  expr_pool *x = e->x;
  const uint32_t lanes = e->lanes, lane_var = e->lane_var;
  uint32_t start[2], carried[2], next[2], found[2];
  start[0] = sort_value_at(j, part), start[1] = emit_any_expr(e, part);
  const ir_expr v = emit_loop(
      e, &(emit_loop_info){.name = "r", .lo = 1, .hi = j->hi, .step = 1, .carry_count = 2, .initial = start, .carried = carried});
  emit_use_lanes(e, lane_var, lanes);
  const ir_expr place = expr_add(x, part, expr_mul(x, v, j->parts));
  const uint32_t key = sort_value_at(j, place), mine = emit_any_expr(e, place), before = sort_comes_before(j, key, carried[0]);
  next[0] = kir_3(e->k, KIR_select, before, key, carried[0]);
  next[1] = kir_3(e->k, KIR_select, before, mine, carried[1]);
  emit_loop_end(e, v, 2, next, found);
  emit_use_lanes(e, lane_var, lanes);
  const ir_expr to = expr_add(x, expr_mul(x, j->line, j->parts), part);
  emit_store(e, emit_bind(e, j->keys[0], KIR_WRITE), j->key, to, found[0]);
  emit_store(e, emit_bind(e, j->order[0], KIR_WRITE), SNT_U32, to, found[1]);
}

/* What a part's first element is among those of all. */
static void rank_parts(emit *e, void *user, ir_expr part) {
  sort_job *j = user;
  expr_pool *x = e->x;
  const ir_expr base = expr_mul(x, j->line, j->parts), own = expr_add(x, base, part);
  const uint32_t keys = emit_bind(e, j->keys[0], KIR_READ), order = emit_bind(e, j->order[0], KIR_READ);
  const uint32_t key = emit_load(e, keys, j->key, own, 0, NULL), place = emit_load(e, order, SNT_U32, own, 0, NULL);
  const ranked r = {key, place, e->lanes, e->lane_var};
  const uint32_t start = kir_const_int(e->k, kir_t(SNT_U32, r.lanes), 0);
  uint32_t carried, rank;
  const ir_expr v = sort_each_other(j, &r, 0, j->parts, &start, &carried), other = expr_add(x, base, v);
  const uint32_t other_key = emit_load(e, keys, j->key, other, 0, NULL);
  const uint32_t next = sort_count_before(j, &r, carried, other_key, emit_load(e, order, SNT_U32, other, 0, NULL));
  emit_loop_end(e, v, 1, &next, &rank);
  sort_store_places(j, &r, part, rank);
}

static ir_expr chosen_part(const sort_job *j, ir_expr number) {
  expr_pool *x = j->e->x;
  const ir_expr at = expr_add(x, expr_mul(x, j->line, j->first), number);
  return emit_var_for(j->e, "part", emit_load(j->e, emit_bind(j->e, j->order[1], KIR_READ), SNT_U32, at, 0, NULL), 0, j->parts);
}

/* What an element of the chosen part at hand is among those of all of them. */
static void rank_chosen(emit *e, void *user, ir_expr row) {
  sort_job *j = user;
  expr_pool *x = e->x;
  const ir_expr place = expr_add(x, j->part, expr_mul(x, row, j->parts));
  const uint32_t key = sort_value_at(j, place);
  const ranked r = {key, emit_any_expr(e, place), e->lanes, e->lane_var};
  const uint32_t start = kir_const_int(e->k, kir_t(SNT_U32, r.lanes), 0);
  uint32_t outer, inner, next, rank;
  const ir_expr s = sort_each_other(j, &r, 0, j->first, &start, &outer);
  emit_scalar_lanes(e);
  const ir_expr part = chosen_part(j, s);
  const ir_expr v = sort_each_other(j, &r, 0, rows_of(j, part), &outer, &inner), other = expr_add(x, part, expr_mul(x, v, j->parts));
  const uint32_t other_key = sort_value_at(j, other);
  next = sort_count_before(j, &r, inner, other_key, emit_expr(e, other));
  emit_loop_end(e, v, 1, &next, &next);
  emit_loop_end(e, s, 1, &next, &rank);
  emit_use_lanes(e, r.lane_var, r.lanes);
  sort_store_places(j, &r, place, rank);
}

/* Parts in vectors, or one an item. `step` is find_first or rank_parts. */
static snt_result build_of_parts(sort_job *j, const char *suffix, schedule_body step) {
  SNT_TRY(sort_begin(j, suffix));
  emit *e = j->e;
  expr_pool *x = e->x;
  ir_expr groups;
  const ir_expr piece = !schedule_is_explicit(j->c) ? 1 : j->parts < PIECE ? j->parts : PIECE, pieces = j->parts / piece;
  const ir_expr unit = schedule_units(e, expr_mul(x, j->lines, pieces), piece * (j->of_parts ? j->parts : j->rows), &groups);
  const ir_expr lo = expr_mul(x, expr_mod(x, unit, pieces), piece), end = expr_add(x, lo, piece);
  j->line = expr_div(x, unit, pieces);
  j->lo = 0;
  if (piece == 1) {
    j->hi = rows_of(j, lo);
    step(e, j, lo);
  } else if (j->of_parts) {
    schedule_vector_loop(e, lo, end, schedule_lanes(j->c), 1, step, j);
  } else { /* those that have an element in the last row, and the others */
    const ir_expr longer = expr_min(x, expr_max(x, expr_sub(x, j->length, j->parts * (j->rows - 1)), lo), end);
    j->hi = j->rows;
    schedule_vector_loop(e, lo, longer, schedule_lanes(j->c), 1, step, j);
    j->hi = j->rows - 1;
    schedule_vector_loop(e, longer, end, schedule_lanes(j->c), 1, step, j);
  }
  schedule_units_end(e, unit);
  return emit_end(e, groups, 0, 0, NULL);
}

static snt_result build_chosen(sort_job *j) {
  SNT_TRY(sort_begin(j, "first"));
  emit *e = j->e;
  expr_pool *x = e->x;
  ir_expr groups;
  const bool explicit = schedule_is_explicit(j->c);
  const ir_expr rows = explicit ? 1 : j->rows, all = j->first * rows;
  const ir_expr unit = schedule_units(e, expr_mul(x, j->lines, all), j->rows * j->rows * j->first, &groups), row = expr_mod(x, unit, rows);
  j->line = expr_div(x, unit, all);
  j->part = chosen_part(j, expr_mod(x, expr_div(x, unit, rows), j->first));
  if (explicit) {
    schedule_vector_loop(e, 0, rows_of(j, j->part), schedule_lanes(j->c), 1, rank_chosen, j);
  } else {
    emit_if_below(e, row, rows_of(j, j->part));
    rank_chosen(e, j, row);
    emit_if_end(e);
  }
  schedule_units_end(e, unit);
  return emit_end(e, groups, 0, 0, NULL);
}

/* How many of a line's first places are read: all, but where its readers are slices from the first on. */
ir_expr sort_places_read(const fusion_context *c, uint32_t node) {
  const ir_graph *g = c->graph;
  const ir_uses *uses = c->uses;
  const uint32_t axis = (uint32_t)ir_attr_int(g, node, IR_ATTR_axis, 0);
  const ir_expr length = ir_at(g, node)->type.dims[axis];
  ir_expr most = 0;
  uint32_t count;
  if (!uses || uses->is_output[node]) return length;
  for (uint32_t u = uses->first[node]; u < uses->first[node + 1]; u++) {
    const uint32_t user = uses->user[u];
    if (ir_at(g, user)->op != IR_OP_slice || ir_attr_ints(g, user, IR_ATTR_starts, &count)[axis] != 0 ||
        ir_attr_ints(g, user, IR_ATTR_steps, &count)[axis] != 1)
      return length;
    most = expr_max(g->pool, most, ir_at(g, user)->type.dims[axis]);
  }
  return expr_min(g->pool, most, length);
}

int64_t schedule_sort_first(const fusion_context *c, uint32_t node) {
  const expr_pool *x = c->graph->pool;
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  int64_t length, first;
  if (!expr_is_const(x, t->dims[ir_attr_int(c->graph, node, IR_ATTR_axis, 0)], &length) || length <= WHOLE_LINE) return 0;
  if (!expr_is_const(x, sort_places_read(c, node), &first) || first > MOST_FIRST || length < 4 * first) return 0;
  return first <= MOST_COMPARED / length ? first : 0;
}

snt_result sort_build_first(sort_job *j) {
  expr_pool *x = j->c->graph->pool;
  const int64_t length = (int64_t)j->length;
  for (j->parts = 1; j->parts * j->parts < length * j->first;)
    j->parts *= 2; /* about as many comparisons of parts as of elements of `first` of them */
  j->rows = (length + j->parts - 1) / j->parts;
  const ir_expr firsts = expr_mul(x, j->lines, j->parts);
  j->keys[0] = fusion_add_scratch(j->c, "keys", j->key, firsts);
  j->order[0] = fusion_add_scratch(j->c, "order", SNT_U32, firsts);
  j->order[1] = fusion_add_scratch(j->c, "parts", SNT_U32, expr_mul(x, j->lines, j->first));
  SNT_TRY(build_of_parts(j, "best", find_first));
  j->of_parts = true;
  SNT_TRY(build_of_parts(j, "parts", rank_parts));
  j->of_parts = false;
  return build_chosen(j);
}
