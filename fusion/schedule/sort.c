/* Kind `sort`: the positions of a stable sort along one axis. Short lines: an element's place is the number of those that come before it, in one
   kernel. Longer ones: runs of RUN elements sorted so, with their keys; then runs of one width merged in pairs, pass by pass, each work-item finding
   by bisection where its piece of the merged run begins in both; a last kernel writes the positions. Where only the first places are read, no more of
   a run are merged; where they are few of many, nothing is (sort_first.c).
   One kernel serves all passes: the width is a scalar of the plan, and a pass that a line does not need is left out by its guard.
   Flags are parted: parts of a line count theirs, then each element goes behind those of its kind before it. */
#include "fusion/schedule/sort_private.h"
#include "fusion/schedules.h"

enum { RUN = 32, MAX_PASSES = 26, RUN_BITS = 5, MOST_PARTS = 256, LEAST_PART = 64 };
_Static_assert(RUN == 1 << RUN_BITS, "widths are powers of two");

/* ---- runs: how many of the run come before each element ---- */

static void rank_elements(emit *e, void *user, ir_expr place) {
  sort_job *j = user;
  const uint32_t key = sort_value_at(j, place);
  const ranked r = {key, emit_any_expr(e, place), e->lanes, e->lane_var};
  const uint32_t start = kir_const_int(e->k, kir_t(SNT_U32, r.lanes), 0);
  uint32_t carried, rank;
  const ir_expr v = sort_each_other(j, &r, j->lo, j->hi, &start, &carried);
  const uint32_t other = sort_value_at(j, v), next = sort_count_before(j, &r, carried, other, emit_expr(e, v));
  emit_loop_end(e, v, 1, &next, &rank);
  sort_store_places(j, &r, place, rank);
}

static ir_expr end_of_run(const sort_job *j) {
  expr_pool *x = j->e->x;
  return j->whole ? j->length : expr_min(x, expr_add(x, j->lo, RUN), j->length);
}

/* Explicit: a run at a time, its elements in vectors. Lanes: an element an item. */
static snt_result build_runs(sort_job *j) {
  SNT_TRY(sort_begin(j, "sort"));
  emit *e = j->e;
  expr_pool *x = e->x;
  ir_expr groups;
  if (schedule_is_explicit(j->c)) {
    const ir_expr runs = j->whole ? 1 : expr_ceil_div(x, j->length, RUN);
    const ir_expr unit = schedule_units(e, expr_mul(x, j->lines, runs), 64, &groups);
    j->line = expr_div(x, unit, runs);
    j->lo = expr_mul(x, expr_mod(x, unit, runs), RUN);
    j->hi = end_of_run(j);
    schedule_vector_loop(e, j->lo, j->hi, schedule_lanes(j->c), 1, rank_elements, j);
    schedule_units_end(e, unit);
  } else {
    const ir_expr unit = schedule_units(e, expr_mul(x, j->lines, j->length), 1, &groups), place = expr_mod(x, unit, j->length);
    j->line = expr_div(x, unit, j->length);
    j->lo = j->whole ? 0 : expr_sub(x, place, expr_mod(x, place, RUN));
    j->hi = end_of_run(j);
    rank_elements(e, j, place);
    schedule_units_end(e, unit);
  }
  return emit_end(e, groups, 0, 0, NULL);
}

/* ---- merging ---- */

typedef struct merge_piece {
  ir_expr base, first, count; /* of the pair of runs; of the piece, within the line; elements of the piece */
  uint32_t a_count, b_count;
  uint32_t keys, order; /* memories read */
} merge_piece;

static uint32_t u32_const(const sort_job *j, int64_t v) { return kir_const_int(j->e->k, kir_t(SNT_U32, 1), v); }

/* An element of the pair of runs, `place` from its base, as an offset of the scratch buffers. */
static ir_expr pair_offset(const sort_job *j, const merge_piece *m, uint32_t place) {
  expr_pool *x = j->e->x;
  const ir_expr start = expr_add(x, expr_mul(x, j->line, j->length), m->base);
  return expr_add(x, start, emit_var_for(j->e, "place", place, 0, expr_sub(x, j->length, m->base)));
}
static uint32_t key_at(const sort_job *j, const merge_piece *m, uint32_t place) {
  return emit_load(j->e, m->keys, j->key, pair_offset(j, m, place), 0, NULL);
}

/* How many of the piece's forerunners are of the first run: the smallest number that leaves no element of it behind a later one of the second. */
static uint32_t bisect(const sort_job *j, const merge_piece *m, uint32_t behind) {
  emit *e = j->e;
  kir_kernel *k = e->k;
  const uint32_t width = emit_expr(e, j->width), zero = u32_const(j, 0), one = u32_const(j, 1);
  uint32_t start[2], carried[2], next[2], found[2];
  start[0] = kir_2(k, KIR_sub, kir_2(k, KIR_max, behind, m->b_count), m->b_count);
  start[1] = kir_2(k, KIR_min, behind, m->a_count);
  const ir_expr v = emit_loop(
      e, &(emit_loop_info){.name = "h", .lo = 0, .hi = j->halvings, .step = 1, .carry_count = 2, .initial = start, .carried = carried});
  const uint32_t open = kir_2(k, KIR_lt, carried[0], carried[1]);
  const uint32_t middle = kir_2(k, KIR_shr, kir_2(k, KIR_add, carried[0], carried[1]), one);
  const uint32_t rest = kir_2(k, KIR_sub, kir_2(k, KIR_sub, behind, one), middle);
  const uint32_t a = key_at(j, m, kir_3(k, KIR_select, open, middle, zero));
  const uint32_t b = key_at(j, m, kir_3(k, KIR_select, open, kir_2(k, KIR_add, width, rest), zero));
  const uint32_t a_first = kir_1(k, KIR_not, sort_comes_before(j, b, a));
  next[0] = kir_3(k, KIR_select, kir_2(k, KIR_and, open, a_first), kir_2(k, KIR_add, middle, one), carried[0]);
  next[1] = kir_3(k, KIR_select, kir_2(k, KIR_and, open, kir_1(k, KIR_not, a_first)), middle, carried[1]);
  emit_loop_end(e, v, 2, next, found);
  return found[0];
}

static void merge_elements(sort_job *j, const merge_piece *m, uint32_t a_start, uint32_t b_start) {
  emit *e = j->e;
  kir_kernel *k = e->k;
  expr_pool *x = e->x;
  const uint32_t width = emit_expr(e, j->width), zero = u32_const(j, 0), one = u32_const(j, 1);
  const uint32_t start[2] = {a_start, b_start};
  uint32_t carried[2], next[2], ignored[2];
  const ir_expr v = emit_loop(
      e, &(emit_loop_info){.name = "i", .lo = 0, .hi = m->count, .step = 1, .carry_count = 2, .initial = start, .carried = carried});
  const uint32_t more_a = kir_2(k, KIR_lt, carried[0], m->a_count), more_b = kir_2(k, KIR_lt, carried[1], m->b_count);
  const uint32_t at_a = kir_3(k, KIR_select, more_a, carried[0], zero);
  const uint32_t at_b = kir_3(k, KIR_select, more_b, kir_2(k, KIR_add, width, carried[1]), zero);
  const uint32_t a = key_at(j, m, at_a), b = key_at(j, m, at_b);
  const uint32_t not_b = kir_2(k, KIR_or, kir_1(k, KIR_not, more_b), kir_1(k, KIR_not, sort_comes_before(j, b, a)));
  const uint32_t take_a = kir_2(k, KIR_and, more_a, not_b);
  const uint32_t key = kir_3(k, KIR_select, take_a, a, b);
  const uint32_t position = emit_load(e, m->order, SNT_U32, pair_offset(j, m, kir_3(k, KIR_select, take_a, at_a, at_b)), 0, NULL);
  const ir_expr to = expr_add(x, expr_add(x, expr_mul(x, j->line, j->length), m->first), v);
  emit_store(e, emit_bind(e, j->keys[1], KIR_WRITE), j->key, to, key);
  emit_store(e, emit_bind(e, j->order[1], KIR_WRITE), SNT_U32, to, position);
  const uint32_t step = kir_3(k, KIR_select, take_a, one, zero);
  next[0] = kir_2(k, KIR_add, carried[0], step);
  next[1] = kir_2(k, KIR_add, carried[1], kir_2(k, KIR_sub, one, step));
  emit_loop_end(e, v, 2, next, ignored);
}

static snt_result build_merge(sort_job *j, const plan_condition *guard) {
  SNT_TRY(sort_begin(j, "merge"));
  emit *e = j->e;
  expr_pool *x = e->x;
  ir_expr groups;
  const ir_expr piece = schedule_is_explicit(j->c) ? 2 * RUN : 8, pieces = expr_ceil_div(x, j->length, piece);
  const ir_expr unit = schedule_units(e, expr_mul(x, j->lines, pieces), piece, &groups), both = expr_mul(x, j->width, 2);
  merge_piece m = {.first = expr_mul(x, expr_mod(x, unit, pieces), piece)};
  j->line = expr_div(x, unit, pieces);
  m.base = expr_sub(x, m.first, expr_mod(x, m.first, both));
  m.count = expr_min(x, expr_sub(x, j->length, m.first), piece);
  m.keys = emit_bind(e, j->keys[0], KIR_READ), m.order = emit_bind(e, j->order[0], KIR_READ);
  const uint32_t base = emit_expr(e, m.base), length = emit_expr(e, j->length);
  const uint32_t middle = kir_2(e->k, KIR_min, length, emit_expr(e, expr_add(x, m.base, j->width)));
  const uint32_t end = kir_2(e->k, KIR_min, length, emit_expr(e, expr_add(x, m.base, both)));
  m.a_count = kir_2(e->k, KIR_sub, middle, base);
  m.b_count = kir_2(e->k, KIR_sub, end, middle);
  const uint32_t behind = emit_expr(e, expr_sub(x, m.first, m.base));
  if (j->read != j->length) emit_if(e, kir_2(e->k, KIR_lt, behind, emit_expr(e, j->read)));
  const uint32_t a = bisect(j, &m, behind);
  merge_elements(j, &m, a, kir_2(e->k, KIR_sub, behind, a));
  if (j->read != j->length) emit_if_end(e);
  schedule_units_end(e, unit);
  return emit_end(e, groups, 0, 1, guard);
}

/* ---- passes ---- */

static ir_expr plan_variable(fusion_context *c, const char *name, ir_expr lo, ir_expr hi) {
  const ir_expr v = expr_var_add(c->graph->pool, name, lo, hi, 1);
  if (!c->graph->pool->failed) c->graph->pool->vars.at[emit_var_number(c->graph->pool, v)].plan = true;
  return v;
}

static plan_condition guard_of(const sort_job *j, int64_t width) {
  return (plan_condition){j->length, expr_int(j->c->graph->pool, width + 1), expr_int(j->c->graph->pool, INT64_MAX)};
}

/* The merge of pass `pass` is the kernel of pass 0 with its own width, and with the buffers exchanged where the number is odd. */
static snt_result put_pass(sort_job *j, const plan_step *model, uint32_t pass) {
  ir_plan *p = j->c->plan;
  expr_pool *x = p->pool;
  plan_step s = *model;
  char name[64];
  const int length = snprintf(name, sizeof name, "%s_%u", model->name, pass);
  s.name = ir_arena_text(p->arena, name, (size_t)length);
  s.bindings = IR_NEW_ARRAY(p->arena, plan_binding, s.binding_count);
  s.scalars = IR_NEW_ARRAY(p->arena, ir_expr, s.scalar_count);
  s.guards = IR_NEW_ARRAY(p->arena, plan_condition, 1);
  if (!s.name || !s.bindings || !s.scalars || !s.guards) return ir_no_memory(j->c->diag, "schedule");
  for (uint32_t i = 0; i < s.binding_count; i++) {
    s.bindings[i] = model->bindings[i];
    for (uint32_t side = 0; side < 2 && pass % 2; side++) {
      if (model->bindings[i].buffer == j->keys[side]) s.bindings[i].buffer = j->keys[1 - side];
      if (model->bindings[i].buffer == j->order[side]) s.bindings[i].buffer = j->order[1 - side];
    }
  }
  const uint32_t from[2] = {emit_var_number(x, j->width), emit_var_number(x, j->halvings)};
  const ir_expr to[2] = {(ir_expr)RUN << pass, RUN_BITS + 1 + pass};
  for (uint32_t i = 0; i < s.scalar_count; i++) s.scalars[i] = expr_substitute(x, model->scalars[i], 2, from, to);
  s.guards[0] = guard_of(j, to[0]);
  return IR_PUSH(p->arena, &p->steps, s) ? SNT_OK : ir_no_memory(j->c->diag, "schedule");
}

static snt_result build_passes(sort_job *j, ir_expr *odd) {
  fusion_context *c = j->c;
  expr_pool *x = c->graph->pool;
  int64_t least, most;
  expr_bounds(x, j->length, &least, &most);
  j->width = plan_variable(c, "width", RUN, (ir_expr)1 << 31);
  j->halvings = plan_variable(c, "halvings", 1, 40);
  const plan_condition guard = guard_of(j, RUN);
  SNT_TRY(build_merge(j, &guard));
  const plan_step model = c->plan->steps.at[--c->plan->steps.count];
  *odd = 0;
  for (uint32_t pass = 0; pass < MAX_PASSES && (int64_t)RUN << pass < most; pass++) {
    SNT_TRY(put_pass(j, &model, pass));
    const ir_expr beyond = expr_max(x, expr_sub(x, j->length, (ir_expr)RUN << pass), 0);
    *odd = expr_add(x, *odd, expr_min(x, beyond, 1));
  }
  *odd = expr_mod(x, *odd, 2);
  return SNT_OK;
}

/* ---- positions ---- */

static void put_positions(emit *e, void *user, ir_expr place) {
  const sort_job *j = user;
  const ir_expr from = expr_add(e->x, expr_mul(e->x, j->line, j->length), place);
  const uint32_t position = emit_load(e, emit_bind(e, j->order[0], KIR_READ), SNT_U32, from, 0, NULL);
  if (!position) return;
  const map_access at = sort_at(j, j->line, place);
  emit_store_node(e, j->node, &at, kir_cast(e->k, kir_t(SNT_I64, emit_value_type(e, position).lanes), position));
}

/* The buffer that the last pass wrote depends on how many there were. */
static snt_result build_positions(sort_job *j, ir_expr odd) {
  SNT_TRY(sort_begin(j, "positions"));
  emit *e = j->e;
  expr_pool *x = e->x;
  ir_expr groups;
  if (schedule_is_explicit(j->c)) {
    const ir_expr unit = schedule_units(e, j->lines, schedule_hint(x, j->read), &groups);
    j->line = unit;
    schedule_vector_loop(e, 0, j->read, schedule_lanes(j->c), 1, put_positions, j);
    schedule_units_end(e, unit);
  } else {
    const ir_expr unit = schedule_units(e, expr_mul(x, j->lines, j->read), 1, &groups);
    j->line = expr_div(x, unit, j->read);
    put_positions(e, j, expr_mod(x, unit, j->read));
    schedule_units_end(e, unit);
  }
  SNT_TRY(emit_end(e, groups, 0, 0, NULL));
  plan_step *s = &j->c->plan->steps.at[j->c->plan->steps.count - 1];
  int64_t literal;
  for (uint32_t i = 0; i < s->binding_count; i++) {
    plan_binding *b = &s->bindings[i];
    if (b->buffer != j->order[0]) continue;
    if (expr_is_const(x, odd, &literal)) b->buffer = j->order[literal];
    else b->other = j->order[1], b->swap = odd;
  }
  return SNT_OK;
}

/* ---- flags ---- */

bool schedule_sorts_flags(const ir_graph *g, uint32_t node) {
  const uint32_t key = fusion_through_moves(g, ir_arg(g, node, 0));
  if (ir_at(g, key)->op != IR_OP_cast || ir_at(g, ir_arg(g, key, 0))->type.dtype != SNT_BOOL) return false;
  int64_t least, most;
  expr_bounds(g->pool, ir_at(g, node)->type.dims[ir_attr_int(g, node, IR_ATTR_axis, 0)], &least, &most);
  return most > WHOLE_LINE;
}

/* A part of a line: its elements are [lo, hi). Returns the unit, which schedule_units_end closes; the parts of a line are `parts`. */
static ir_expr begin_part(sort_job *j, ir_expr *parts, ir_expr *groups) {
  expr_pool *x = j->e->x;
  const ir_expr size = expr_max(x, expr_ceil_div(x, j->length, MOST_PARTS), LEAST_PART);
  *parts = expr_ceil_div(x, j->length, size);
  const ir_expr unit = schedule_units(j->e, expr_mul(x, j->lines, *parts), schedule_hint(x, size), groups);
  j->line = expr_div(x, unit, *parts);
  j->lo = expr_mul(x, expr_mod(x, unit, *parts), size);
  j->hi = expr_min(x, expr_add(x, j->lo, size), j->length);
  return unit;
}

static ir_expr loop_with(sort_job *j, ir_expr lo, ir_expr hi, uint32_t count, const uint32_t *start, uint32_t *carried) {
  return emit_loop(
      j->e, &(emit_loop_info){.name = "i", .lo = lo, .hi = hi, .step = 1, .carry_count = count, .initial = start, .carried = carried});
}

static uint32_t flag_at(const sort_job *j, ir_expr place) {
  const map_access at = sort_at(j, j->line, place);
  return kir_cast(j->e->k, kir_t(SNT_U32, 1), emit_value(j->e, j->operand, &at));
}

static snt_result build_counts(sort_job *j, uint32_t counts) {
  SNT_TRY(sort_begin(j, "count"));
  emit *e = j->e;
  ir_expr parts, groups;
  const ir_expr unit = begin_part(j, &parts, &groups);
  const uint32_t none = u32_const(j, 0);
  uint32_t sum, all;
  const ir_expr v = loop_with(j, j->lo, j->hi, 1, &none, &sum);
  const uint32_t next = kir_2(e->k, KIR_add, sum, flag_at(j, v));
  emit_loop_end(e, v, 1, &next, &all);
  emit_store(e, emit_bind(e, counts, KIR_WRITE), SNT_U32, unit, all);
  schedule_units_end(e, unit);
  return emit_end(e, groups, 0, 0, NULL);
}

/* Those set of the line before this part, and of all of it. */
static void count_set(sort_job *j, uint32_t counts, ir_expr unit, ir_expr parts, uint32_t *found) {
  emit *e = j->e;
  expr_pool *x = e->x;
  const uint32_t start[2] = {u32_const(j, 0), u32_const(j, 0)}, own = emit_expr(e, expr_mod(x, unit, parts)),
                 memory = emit_bind(e, counts, KIR_READ);
  uint32_t sums[2], next[2];
  const ir_expr v = loop_with(j, 0, parts, 2, start, sums);
  const uint32_t count = emit_load(e, memory, SNT_U32, expr_add(x, expr_mul(x, j->line, parts), v), 0, NULL);
  const uint32_t before = kir_2(e->k, KIR_lt, emit_expr(e, v), own);
  next[0] = kir_2(e->k, KIR_add, sums[0], kir_3(e->k, KIR_select, before, count, u32_const(j, 0)));
  next[1] = kir_2(e->k, KIR_add, sums[1], count);
  emit_loop_end(e, v, 2, next, found);
}

static snt_result build_parting(sort_job *j, uint32_t counts) {
  SNT_TRY(sort_begin(j, "part"));
  emit *e = j->e;
  kir_kernel *k = e->k;
  ir_expr parts, groups;
  const ir_expr unit = begin_part(j, &parts, &groups);
  uint32_t found[2], set, ignored;
  count_set(j, counts, unit, parts, found);
  const uint32_t rest = j->descending ? found[1] : kir_2(k, KIR_sub, emit_expr(e, j->length), found[1]); /* where the later kind begins */
  const ir_expr v = loop_with(j, j->lo, j->hi, 1, found, &set);
  const uint32_t flag = flag_at(j, v), own = emit_expr(e, v), clear = kir_2(k, KIR_sub, own, set);
  const uint32_t first = j->descending ? set : kir_2(k, KIR_add, rest, set),
                 second = j->descending ? kir_2(k, KIR_add, rest, clear) : clear;
  const uint32_t place = kir_3(k, KIR_select, kir_2(k, KIR_ne, flag, u32_const(j, 0)), first, second);
  const map_access to = sort_at(j, j->line, emit_var_for(e, "place", place, 0, j->length));
  emit_store_node(e, j->node, &to, kir_cast(k, kir_t(SNT_I64, 1), own));
  const uint32_t next = kir_2(k, KIR_add, set, flag);
  emit_loop_end(e, v, 1, &next, &ignored);
  schedule_units_end(e, unit);
  return emit_end(e, groups, 0, 0, NULL);
}

static snt_result build_by_flags(sort_job *j) {
  expr_pool *x = j->c->graph->pool;
  const uint32_t counts = fusion_add_scratch(j->c, "counts", SNT_U32, expr_mul(x, j->lines, expr_min(x, j->length, MOST_PARTS)));
  SNT_TRY(build_counts(j, counts));
  return build_parting(j, counts);
}

snt_result schedule_sort_build(fusion_context *c, const fusion_group *group) {
  const ir_graph *g = c->graph;
  expr_pool *x = g->pool;
  const ir_tensor *t = &ir_at(g, group->hero)->type;
  sort_job j = {.c = c, .group = group, .node = group->hero, .operand = ir_arg(g, group->hero, 0), .rank = t->rank, .dims = t->dims};
  int64_t least, most;
  j.axis = (uint32_t)ir_attr_int(g, j.node, IR_ATTR_axis, 0);
  j.descending = ir_attr_flag(g, j.node, IR_ATTR_descending);
  j.length = t->dims[j.axis];
  j.inner = schedule_product(x, t->rank - j.axis - 1, t->dims + j.axis + 1);
  j.lines = expr_mul(x, schedule_product(x, j.axis, t->dims), j.inner);
  j.read = sort_places_read(c, j.node);
  const uint8_t dtype = ir_at(g, j.operand)->type.dtype;
  j.key = dtype == SNT_F16 || dtype == SNT_BF16 ? SNT_F32 : dtype;
  expr_bounds(x, j.length, &least, &most);
  j.whole = most <= WHOLE_LINE;
  if (schedule_sorts_flags(g, j.node)) return build_by_flags(&j);
  if (j.whole) return build_runs(&j);
  if ((j.first = schedule_sort_first(c, j.node))) return sort_build_first(&j);
  const ir_expr elements = expr_mul(x, j.lines, j.length);
  for (int side = 0; side < 2; side++) {
    j.keys[side] = fusion_add_scratch(c, "keys", j.key, elements);
    j.order[side] = fusion_add_scratch(c, "order", SNT_U32, elements);
  }
  ir_expr odd;
  SNT_TRY(build_runs(&j));
  SNT_TRY(build_passes(&j, &odd));
  return build_positions(&j, odd);
}
