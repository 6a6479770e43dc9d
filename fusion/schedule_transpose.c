/* Kind `transpose`: a loop whose reads run along another axis of the result than its stores. Explicit classes: blocks of lanes x lanes elements are
   read in vectors along the source's axis, turned in registers by a network of shuffles, and stored in vectors along the result's.
   In: a loop group one of whose loads has stride 1 along an axis other than the last. Lanes: the loop schedule, whose stores are contiguous. */
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"

enum { MAX_TURNED = 4, SHARE = 64, LINE = 16, MAX_BLOCK = 8 }; /* 16 x 16 is 0.8 times as fast as 8 x 8 on PoCL with 512-bit vectors */

typedef struct transpose_job {
  fusion_context *c;
  const fusion_group *group;
  emit *e;
  uint32_t lane_axis, source_axis, rank, width;
  uint32_t turned[MAX_TURNED], turned_count; /* nodes read along source_axis */
  map_access at;                             /* coordinates of the result; those of the two axes change */
  map_access found;
  uint32_t wanted;
  bool seen;
} transpose_job;

/* ---- which loads run along which axis ---- */

typedef struct axis_probe {
  transpose_job *j;
  uint32_t var[SNT_MAX_RANK];
  uint32_t own; /* variables from this one on are the walk's: coordinates that elements or terms decide */
  bool ok;
} axis_probe;

static bool is_found_by_data(const axis_probe *p, ir_expr offset) {
  const expr_pool *x = p->j->c->graph->pool;
  for (uint32_t v = p->own; v < x->vars.count; v++)
    if (expr_uses_var(x, offset, v)) return true;
  return false;
}

static void probe_load(void *user, const fusion_load *load) {
  axis_probe *p = user;
  transpose_job *j = p->j;
  expr_pool *x = j->c->graph->pool;
  const ir_expr offset = map_linear(x, load->access, ir_at(j->c->graph, load->node)->type.dims);
  int64_t coef;
  ir_expr rest;
  if (load->access->condition_count || is_found_by_data(p, offset)) {
    p->ok = false;
    return;
  }
  if (!expr_split_affine(x, offset, p->var[j->rank - 1], &coef, &rest)) {
    p->ok = false;
    return;
  }
  if (coef == 0 || coef == 1) return;
  for (uint32_t d = 0; d + 1 < j->rank; d++) {
    if (p->var[d] == UINT32_MAX || !expr_split_affine(x, offset, p->var[d], &coef, &rest) || coef != 1) continue;
    if (j->turned_count && j->source_axis != d) {
      p->ok = false;
      return;
    }
    j->source_axis = d;
    for (uint32_t i = 0; i < j->turned_count; i++)
      if (j->turned[i] == load->node) {
        p->ok = false;
        return;
      } /* read twice in different places */
    if (j->turned_count < MAX_TURNED) j->turned[j->turned_count++] = load->node;
    return;
  }
  p->ok = false;
}

static bool analyse(transpose_job *j) {
  const ir_graph *g = j->c->graph;
  expr_pool *x = g->pool;
  const ir_tensor *t = &ir_at(g, j->group->hero)->type;
  j->rank = t->rank;
  if (j->rank < 2) return false;
  axis_probe p = {.j = j, .ok = true};
  map_access at = {.rank = j->rank};
  for (uint32_t d = 0; d < j->rank; d++) {
    int64_t extent;
    const bool literal = expr_is_const(x, t->dims[d], &extent);
    p.var[d] = UINT32_MAX;
    if (literal && extent == 1) continue;
    at.at[d] = expr_var_add(x, "i", 0, t->dims[d], 1);
    p.var[d] = emit_var_number(x, at.at[d]);
  }
  if (p.var[j->rank - 1] == UINT32_MAX) return false;
  p.own = x->vars.count;
  for (uint32_t i = 0; i < j->group->output_count && p.ok; i++) {
    if (!ir_same_shape(&ir_at(g, j->group->outputs[i])->type, t)) return false;
    if (!fusion_walk_loads(j->c, j->group, j->group->outputs[i], &at, probe_load, &p)) return false;
  }
  int64_t source, lane;
  j->lane_axis = j->rank - 1;
  j->width = schedule_lanes(j->c) < MAX_BLOCK ? schedule_lanes(j->c) : MAX_BLOCK;
  if (!p.ok || !j->turned_count) return false;
  return expr_is_const(x, t->dims[j->source_axis], &source) && expr_is_const(x, t->dims[j->lane_axis], &lane) && source >= j->width &&
         lane >= j->width;
}

/* ---- one block ---- */

static void take_load(void *user, const fusion_load *load) {
  transpose_job *j = user;
  if (load->node != j->wanted || j->seen) return;
  j->found = *load->access;
  j->seen = true;
}

static const map_access *load_access(transpose_job *j, uint32_t node) {
  j->wanted = node;
  j->seen = false;
  for (uint32_t i = 0; i < j->group->output_count && !j->seen; i++)
    if (!fusion_walk_loads(j->c, j->group, j->group->outputs[i], &j->at, take_load, j)) break;
  if (!j->seen) j->e->failed = true;
  return &j->found;
}

/* Step `reach` of the network: lanes whose bit `reach` differs change places between rows i and i + reach. */
static void exchange(emit *e, uint32_t *rows, uint32_t width, uint32_t reach) {
  for (uint32_t i = 0; i < width; i++) {
    if (i & reach) continue;
    uint8_t low[16], high[16];
    for (uint32_t l = 0; l < width; l++) {
      const bool second = (l & reach) != 0;
      low[l] = (uint8_t)(second ? width + l - reach : l);
      high[l] = (uint8_t)(second ? width + l : l + reach);
    }
    const uint32_t a = rows[i], b = rows[i + reach];
    rows[i] = kir_shuffle(e->k, a, b, width, low);
    rows[i + reach] = kir_shuffle(e->k, a, b, width, high);
  }
}

void schedule_turn(emit *e, uint32_t *rows, uint32_t width) {
  for (uint32_t reach = 1; reach < width; reach *= 2) exchange(e, rows, width, reach);
}

static void turn_block(transpose_job *j, ir_expr source, ir_expr lane) {
  emit *e = j->e;
  expr_pool *x = e->x;
  uint32_t rows[MAX_TURNED][16];
  for (uint32_t n = 0; n < j->turned_count && !e->failed; n++) {
    const ir_expr along = emit_lanes(e, source, j->width);
    for (uint32_t i = 0; i < j->width; i++) {
      j->at.at[j->source_axis] = along;
      j->at.at[j->lane_axis] = expr_add(x, lane, i);
      rows[n][i] = emit_value(e, j->turned[n], load_access(j, j->turned[n]));
      if (e->failed || e->k->failed || emit_value_type(e, rows[n][i]).lanes != j->width) {
        e->failed = true;
        return;
      }
    }
    emit_scalar_lanes(e);
    schedule_turn(e, rows[n], j->width);
  }
  const ir_expr along = emit_lanes(e, lane, j->width);
  for (uint32_t i = 0; i < j->width && !e->failed; i++) {
    j->at.at[j->source_axis] = expr_add(x, source, i);
    j->at.at[j->lane_axis] = along;
    for (uint32_t n = 0; n < j->turned_count; n++) emit_remember(e, j->turned[n], load_access(j, j->turned[n]), rows[n][i]);
    for (uint32_t o = 0; o < j->group->output_count; o++)
      emit_store_node(e, j->group->outputs[o], &j->at, emit_value(e, j->group->outputs[o], &j->at));
  }
  emit_scalar_lanes(e);
}

static void single(transpose_job *j, ir_expr source, ir_expr lane) {
  j->at.at[j->source_axis] = source;
  j->at.at[j->lane_axis] = lane;
  for (uint32_t o = 0; o < j->group->output_count; o++)
    emit_store_node(j->e, j->group->outputs[o], &j->at, emit_value(j->e, j->group->outputs[o], &j->at));
}

/* ---- loops: blocks, then what is left of each axis element by element ---- */

typedef void (*block_body)(transpose_job *, ir_expr source, ir_expr lane);
typedef struct block_range {
  ir_expr lo, hi;
  int64_t step;
} block_range;

/* A cache line of the result is stored whole, by blocks one after another, before the next line is begun. */
static ir_expr line_loop(emit *e, const char *name, block_range r, ir_expr line, int64_t width) {
  return emit_loop(e, &(emit_loop_info){.name = name,
                                        .lo = line,
                                        .hi = expr_min(e->x, expr_add(e->x, line, expr_int(e->x, width)), r.hi),
                                        .step = r.step,
                                        .whole = true});
}

static void sweep_blocks(transpose_job *j, block_range source, block_range lane, block_body body) {
  int64_t rows, columns;
  emit *e = j->e;
  if ((expr_is_const(e->x, expr_sub(e->x, source.hi, source.lo), &rows) && rows <= 0) ||
      (expr_is_const(e->x, expr_sub(e->x, lane.hi, lane.lo), &columns) && columns <= 0))
    return;
  const int64_t line = lane.step > 1 ? LINE : 1;
  const ir_expr ll = emit_loop(e, &(emit_loop_info){.name = "l", .lo = lane.lo, .hi = lane.hi, .step = line});
  const ir_expr s = emit_loop(e, &(emit_loop_info){.name = "s", .lo = source.lo, .hi = source.hi, .step = source.step, .whole = true});
  const ir_expr l = line > lane.step ? line_loop(e, "k", lane, ll, line) : ll;
  body(j, s, l);
  if (l != ll) emit_loop_end(e, l, 0, NULL, NULL);
  emit_loop_end(e, s, 0, NULL, NULL);
  emit_loop_end(e, ll, 0, NULL, NULL);
}

static snt_result build_blocks(transpose_job *j) {
  fusion_context *c = j->c;
  expr_pool *x = c->graph->pool;
  emit *e = j->e = emit_begin(c, j->group, "transpose");
  if (!e) return ir_fail(c->diag, SNT_E_HOST_MEM, "schedule", j->group->hero, "out of host memory");
  const ir_tensor *t = &ir_at(c->graph, j->group->hero)->type;
  const int64_t source = t->dims[j->source_axis], lane = t->dims[j->lane_axis], width = j->width, whole_lane = lane - lane % width,
                whole_source = source - source % width;
  const int64_t shares = source % SHARE == 0 ? source / SHARE : 1, /* the rest of an uneven axis belongs to one share */
      share = whole_source / shares;
  ir_expr outer = 1;
  for (uint32_t d = 0; d < j->rank; d++)
    if (d != j->source_axis && d != j->lane_axis) outer = expr_mul(x, outer, t->dims[d]);
  const ir_expr groups = expr_mul(x, outer, expr_int(x, shares)), g = emit_group(e, groups);
  ir_expr rest = expr_div(x, g, expr_int(x, shares));
  j->at.rank = j->rank;
  for (uint32_t d = j->rank; d-- > 0;) {
    if (d == j->source_axis || d == j->lane_axis) continue;
    j->at.at[d] = expr_mod(x, rest, t->dims[d]);
    rest = expr_div(x, rest, t->dims[d]);
  }
  e->stream = schedule_streams(c, j->group);
  const ir_expr lo = expr_mul(x, expr_mod(x, g, expr_int(x, shares)), expr_int(x, share)), hi = expr_add(x, lo, expr_int(x, share));
  sweep_blocks(j, (block_range){lo, hi, width}, (block_range){0, whole_lane, width}, turn_block);
  sweep_blocks(j, (block_range){lo, hi, 1}, (block_range){whole_lane, lane, 1}, single);
  sweep_blocks(j, (block_range){shares == 1 ? whole_source : source, source, 1}, (block_range){0, lane, 1}, single);
  return emit_end(e, groups, 0, 0, NULL);
}

bool schedule_transpose_accepts(const fusion_context *c, const fusion_group *group, const char **why_not) {
  return schedule_loop_accepts(c, group, why_not);
}

bool schedule_transpose_wanted(fusion_context *c, const fusion_group *group) {
  transpose_job j = {.c = c, .group = group};
  return schedule_is_explicit(c) && analyse(&j);
}

snt_result schedule_transpose_build(fusion_context *c, const fusion_group *group) {
  transpose_job j = {.c = c, .group = group};
  return schedule_is_explicit(c) && analyse(&j) ? build_blocks(&j) : schedule_loop_build(c, group);
}
