/* Kind `window`: stencils, alone or chained. Explicit classes: a work-item slides along the rows of its strip; every padded value is kept in a ring of
   just the rows that its consumers need, zero columns included, so that the inner loops have no border code.
   In: a group whose windows read padded values at row offsets that are constants. Lanes: one stencil a kernel, taps written out
   (schedule/window_lanes.c, or the loop schedule).
   Invariant: at time v the ring of pad i is given its row v + lead[i]; the rows [v + first[i], v + lead[i]] of it are valid. */
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"

enum { MAX_RINGS = 12, MAX_WARM_UP = 64 };

typedef struct ring {
  uint32_t node;
  int64_t first, lead;
  bool needed;
  uint32_t memory;
} ring;
typedef struct window_job {
  const fusion_context *c;
  const fusion_group *group;
  emit *e;
  uint32_t rank, ring_count;
  ring rings[MAX_RINGS]; /* producers before consumers */
  uint32_t stops[MAX_RINGS];
  ir_expr outer[SNT_MAX_RANK]; /* coordinates of the plane */
  ir_expr v;
  uint32_t var;  /* pool variable of the row at hand, for the analysis */
  int64_t shift; /* of the row being analysed */
  const char *why_not;
} window_job;

static bool is_member(const window_job *j, uint32_t node) { return fusion_group_has(j->group, node); }

static ring *ring_of(window_job *j, uint32_t node) {
  for (uint32_t i = 0; i < j->ring_count; i++)
    if (j->rings[i].node == node) return &j->rings[i];
  return NULL;
}

/* Pads read by the group's members through views, in node order. */
static void find_rings(window_job *j, uint32_t node, uint32_t depth) {
  const ir_graph *g = j->c->graph;
  for (uint32_t i = 0; i < ir_at(g, node)->arity && depth < 64; i++) {
    const uint32_t operand = ir_arg(g, node, i);
    if (!fusion_is_view(g, operand) || is_member(j, operand)) continue;
    if (ir_at(g, operand)->op == IR_OP_pad && !ring_of(j, operand)) {
      if (j->ring_count == MAX_RINGS) {
        j->why_not = "too many padded values";
        return;
      }
      j->stops[j->ring_count] = operand;
      uint32_t at = j->ring_count++;
      for (; at && j->rings[at - 1].node > operand; at--) j->rings[at] = j->rings[at - 1];
      j->rings[at] = (ring){.node = operand};
    }
    find_rings(j, operand, depth + 1);
  }
}

/* ---- analysis: which rows of each pad a row needs ---- */

static void need_rows(void *user, const fusion_load *load) {
  window_job *j = user;
  expr_pool *x = j->c->graph->pool;
  ring *r = ring_of(j, load->node);
  if (!r) return;
  int64_t coef, lo, hi;
  ir_expr rest;
  if (load->access->rank != j->rank) {
    j->why_not = "a padded value of another rank";
    return;
  }
  for (uint32_t d = 0; d + 2 < j->rank; d++)
    if (load->access->at[d] != j->outer[d]) {
      j->why_not = "a window across planes";
      return;
    }
  if (!expr_split_affine(x, load->access->at[j->rank - 2], j->var, &coef, &rest) || coef != 1) {
    j->why_not = "rows that do not slide by one";
    return;
  }
  expr_bounds(x, rest, &lo, &hi);
  lo += j->shift;
  hi += j->shift;
  if (lo < -MAX_WARM_UP || hi > MAX_WARM_UP) {
    j->why_not = "a window over too many rows";
    return;
  }
  if (!r->needed || lo < r->first) r->first = lo;
  if (!r->needed || hi > r->lead) r->lead = hi;
  r->needed = true;
}

static map_access row_at(const window_job *j, ir_expr row, ir_expr column) {
  map_access a = {.rank = j->rank};
  memcpy(a.at, j->outer, sizeof a.at);
  a.at[j->rank - 2] = row;
  a.at[j->rank - 1] = column;
  return a;
}

static bool same_planes(const window_job *j, const ir_tensor *t, const ir_tensor *of) {
  if (t->rank != of->rank) return false;
  for (uint32_t d = 0; d + 2 < j->rank; d++)
    if (t->dims[d] != of->dims[d]) return false;
  return true;
}

/* Consumers before producers: the row of pad i made at time v is v + lead[i]; computing it reads earlier pads. */
static bool analyse(window_job *j) {
  const ir_graph *g = j->c->graph;
  expr_pool *x = g->pool;
  const ir_tensor *hero = &ir_at(g, j->group->hero)->type;
  j->rank = hero->rank;
  if (j->rank < 2) {
    j->why_not = "fewer than two axes";
    return false;
  }
  for (uint32_t i = 0; i < j->group->count; i++) find_rings(j, j->group->nodes[i], 0);
  if (j->ring_count > schedule_spare_bindings(j->c, j->group)) {
    j->why_not = "no bindings left for its rows";
    return false;
  }
  for (uint32_t d = 0; d + 2 < j->rank; d++) j->outer[d] = hero->dims[d] == 1 ? 0 : expr_var_add(x, "p", 0, hero->dims[d], 1);
  const ir_expr v = expr_var_add(x, "v", 0, hero->dims[j->rank - 2], 1), column = expr_var_add(x, "c", 0, hero->dims[j->rank - 1], 1);
  const fusion_stops stops = {j->stops, j->ring_count};
  j->var = emit_var_number(x, v);
  for (uint32_t i = 0; i < j->group->output_count && !j->why_not; i++) {
    if (!ir_same_shape(&ir_at(g, j->group->outputs[i])->type, hero)) {
      j->why_not = "results of different shapes";
      return false;
    }
    const map_access at = row_at(j, v, column);
    if (!fusion_walk_until(j->c, j->group, j->group->outputs[i], &at, &stops, need_rows, j)) return false;
  }
  for (uint32_t i = j->ring_count; i-- > 0 && !j->why_not;) {
    const ring *r = &j->rings[i];
    if (!r->needed) continue;
    const ir_tensor *pad = &ir_at(g, r->node)->type;
    if (!same_planes(j, pad, hero)) {
      j->why_not = "a padded value of other planes";
      return false;
    }
    map_access at = row_at(j, v, expr_var_add(x, "c", 0, pad->dims[j->rank - 1], 1));
    j->shift = r->lead;
    if (!ir_movement_access(g, r->node, 0, &at)) return false;
    at.condition_count = 0;
    if (!fusion_walk_until(j->c, j->group, ir_arg(g, r->node, 0), &at, &stops, need_rows, j)) return false;
    j->shift = 0;
  }
  return !j->why_not;
}

/* ---- emission ---- */

static void store_column(emit *e, void *user, ir_expr column) {
  const window_job *j = user;
  const map_access at = row_at(j, j->v, column);
  for (uint32_t i = 0; i < j->group->output_count; i++)
    emit_store_node(e, j->group->outputs[i], &at, emit_value(e, j->group->outputs[i], &at));
}

/* Whole vectors of a padded row lie on whole vectors of memory behind its first columns of zeros, and the rows of a ring do not meet in few sets of the near
   cache: of rows of 2048 elements nine would. */
static void lay_rows(const window_job *j, const ring *r, stage_info *info) {
  const expr_pool *x = j->e->x;
  const int64_t lanes = schedule_lanes(j->c), rows = r->lead - r->first + 1;
  uint32_t count;
  int64_t low, width;
  const ir_expr *lows = ir_attr_ints(j->c->graph, r->node, IR_ATTR_low, &count);
  if (!expr_is_const(x, lows[j->rank - 1], &low) || !expr_is_const(x, info->extent[j->rank - 1], &width) || low < 0) return;
  info->front = (lanes - low % lanes) % lanes;
  info->row = (info->front + width + lanes - 1) / lanes * lanes;
  if (schedule_crowds(j->c->options->profile, rows, info->row * (int64_t)sizeof(float))) info->row += FUSION_LINE / sizeof(float);
}

static stage_info ring_info(const window_job *j, const ring *r, ir_expr origin_row, ir_expr rows, ir_expr group, ir_expr groups) {
  stage_info info = {.node = r->node,
                     .storage = STAGE_WORKSPACE,
                     .ring_axis = (int32_t)j->rank - 2,
                     .ring_size = r->lead - r->first + 1,
                     .group = group,
                     .groups = groups};
  for (uint32_t d = 0; d + 2 < j->rank; d++) info.origin[d] = j->outer[d], info.extent[d] = 1;
  info.origin[j->rank - 2] = origin_row;
  info.extent[j->rank - 2] = rows;
  info.origin[j->rank - 1] = 0;
  info.extent[j->rank - 1] = ir_at(j->e->g, r->node)->type.dims[j->rank - 1];
  lay_rows(j, r, &info);
  return info;
}

/* Row v + lead of one ring, once the strip needs it: from the time at which its first row is wanted by the rings after it. */
static void fill_ring(window_job *j, uint32_t number, ir_expr time, ir_expr start, const int64_t *begins, ir_expr group, ir_expr groups) {
  emit *e = j->e;
  expr_pool *x = e->x;
  ring *r = &j->rings[number];
  const bool always = begins[number] == 0;
  if (!always) emit_if(e, kir_2(e->k, KIR_ge, emit_expr(e, time), emit_expr(e, expr_add(x, start, expr_int(x, begins[number])))));
  const ir_expr row = expr_add(x, j->v, expr_int(x, r->lead));
  stage_info info = ring_info(j, r, row, 1, group, groups);
  emit_stage(e, &info, schedule_lanes(e->c), r->memory);
  if (!always) emit_if_end(e);
}

/* Times, counted from the start of the warm-up, at which each ring begins: so early that it is full when the earliest ring after it starts, or the
   results do. Returns the length of the warm-up. */
static int64_t find_begins(const window_job *j, int64_t *begins) {
  int64_t start[MAX_RINGS], earliest = 0; /* start: relative to the first result row, <= 0 */
  for (uint32_t i = j->ring_count; i-- > 0;) {
    const int64_t fill = j->rings[i].needed ? j->rings[i].lead - j->rings[i].first : 0;
    start[i] = earliest - fill;
    if (start[i] < earliest) earliest = start[i];
  }
  for (uint32_t i = 0; i < j->ring_count; i++) begins[i] = start[i] - earliest;
  return -earliest;
}

/* The memory of each ring exists before the loop. */
static void make_rings(window_job *j, ir_expr group, ir_expr groups) {
  for (uint32_t i = 0; i < j->ring_count; i++) {
    ring *r = &j->rings[i];
    if (!r->needed) continue;
    const stage_info info = ring_info(j, r, 0, 1, group, groups);
    r->memory = emit_stage_open(j->e, &info, UINT32_MAX);
    j->e->stages.count--; /* only the memory is wanted here */
  }
}

/* What later rings and the result read of a ring from now on. */
static void show_ring(window_job *j, const ring *r, ir_expr group, ir_expr groups) {
  expr_pool *x = j->e->x;
  const stage_info info = ring_info(j, r, expr_add(x, j->v, expr_int(x, r->first)), expr_int(x, r->lead - r->first + 1), group, groups);
  const emit_stage_entry room = emit_stage_room(j->e, &info, r->memory);
  emit_stage_show(j->e, &room);
}

/* Rows of a strip: so many that the rows computed again for each are few, and as many in each strip. */
static int64_t strip_rows(const fusion_context *c, ir_expr height, ir_expr planes, int64_t lead) {
  const expr_pool *x = c->graph->pool;
  const int64_t all = schedule_hint(x, height), least = 4 * (lead + 1);
  int64_t rows = (int64_t)((double)all * (double)schedule_hint(x, planes) / c->options->profile->min_groups);
  if (rows < least) rows = least;
  if (rows > all) rows = all;
  if (rows < 1) return 1;
  const int64_t strips = (all + rows - 1) / rows;
  return (all + strips - 1) / strips;
}

/* The result's row, which is one: windows over it need not ask. */
static void store_row(window_job *j, ir_expr lo, ir_expr hi, ir_expr group, ir_expr groups) {
  emit *e = j->e;
  j->v = emit_var_for(e, "y", emit_expr(e, j->v), lo, hi);
  for (uint32_t i = 0; i < j->ring_count; i++)
    if (j->rings[i].needed) show_ring(j, &j->rings[i], group, groups);
  schedule_vector_loop(e, 0, ir_at(e->g, j->group->hero)->type.dims[j->rank - 1], schedule_lanes(e->c), 1, store_column, j);
}

static snt_result build_explicit(fusion_context *c, const fusion_group *group, window_job *j) {
  expr_pool *x = c->graph->pool;
  emit *e = j->e = emit_begin(c, group, "window");
  if (!e) return ir_no_memory(c->diag, "schedule");
  const ir_tensor *hero = &ir_at(c->graph, group->hero)->type;
  const ir_expr height = hero->dims[j->rank - 2], planes = schedule_product(x, j->rank - 2, hero->dims);
  int64_t begins[MAX_RINGS];
  const int64_t lead = find_begins(j, begins), rows = strip_rows(c, height, planes, lead);
  const ir_expr strips = expr_ceil_div(x, height, expr_int(x, rows)), groups = expr_mul(x, strips, planes), g = emit_group(e, groups);
  map_delinear(x, expr_div(x, g, strips), j->rank - 2, hero->dims, j->outer);
  const ir_expr lo = expr_mul(x, expr_mod(x, g, strips), expr_int(x, rows)), hi = expr_min(x, expr_add(x, lo, expr_int(x, rows)), height);
  make_rings(j, g, groups);
  e->stream = schedule_streams(c, group, true);
  const ir_expr time = emit_steps(e, "v", lo, expr_add(x, hi, expr_int(x, lead)), 1);
  j->v = expr_sub(x, time, expr_int(x, lead));
  for (uint32_t i = 0; i < j->ring_count; i++) {
    if (!j->rings[i].needed) continue;
    fill_ring(j, i, time, lo, begins, g, groups);
    show_ring(j, &j->rings[i], g, groups);
  }
  if (lead) emit_if(e, kir_2(e->k, KIR_ge, emit_expr(e, time), emit_expr(e, expr_add(x, lo, expr_int(x, lead)))));
  store_row(j, lo, hi, g, groups);
  if (lead) emit_if_end(e);
  emit_loop_end(e, time, 0, NULL, NULL);
  return emit_end(e, groups, 0, 0, NULL);
}

static uint32_t count_stencils(const fusion_context *c, const fusion_group *group) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < group->count; i++) n += ir_at(c->graph, group->nodes[i])->op == IR_OP_contract;
  return n;
}

bool schedule_window_accepts(const fusion_context *c, const fusion_group *group, const char **why_not) {
  const uint32_t stencils = count_stencils(c, group);
  if (!schedule_is_explicit(c)) {
    if (stencils > 1) *why_not = "recomputing one stencil inside another";
    return stencils <= 1;
  }
  if (stencils <= 1 && group->count == 1) return true;
  window_job j = {.c = c, .group = group};
  if (analyse(&j)) return true;
  *why_not = j.why_not ? j.why_not : "rows that are not affine";
  return stencils <= 1; /* alone it is computed tap by tap */
}

snt_result schedule_window_build(fusion_context *c, const fusion_group *group) {
  window_job j = {.c = c, .group = group};
  if (schedule_is_explicit(c) && analyse(&j) && j.ring_count) return build_explicit(c, group, &j);
  snt_result result = SNT_OK;
  if (!schedule_is_explicit(c) && schedule_window_lanes_build(c, group, "window", &result)) return result;
  return schedule_loop_build(c, group);
}
