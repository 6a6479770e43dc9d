/* Kind `transpose`: a loop whose reads run along another axis of the result than its stores. Explicit classes: blocks of lanes x lanes elements are
   read in vectors along the source's axis, turned in registers by a network of shuffles, and stored in vectors along the result's.
   In: a loop group one of whose loads has stride 1 along an axis other than the last. Devices whose local memory is near: schedule/transpose_local.c. Lanes
   that read texels: four texels and four vectors an item (schedule/window_lanes.c). Other lanes: the loop schedule, whose stores are contiguous. */
#include "fusion/schedule/transpose.h"
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"
#include <math.h>

enum { SHARE = 64, LINE = 16, MAX_BLOCK = 8, TEXEL = 4 }; /* 16 x 16 is 0.8 times as fast as 8 x 8 on PoCL with 512-bit vectors */

/* ---- which loads run along which axis ---- */

enum { MOST_STRAIGHT = 16 };
typedef struct axis_probe {
  transpose_job *j;
  uint32_t own; /* variables from this one on are the walk's: coordinates that elements or terms decide */
  bool ok;
  uint32_t straight[MOST_STRAIGHT],
      straight_count; /* nodes read along the result's own axis before any other way: transpose_load_at finds that load */
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
  const ir_expr offset = fusion_stored_offset(j->c, load->node, load->access);
  int64_t coef;
  ir_expr rest;
  if (load->access->condition_count || is_found_by_data(p, offset)) {
    p->ok = false;
    return;
  }
  if (!expr_split_affine(x, offset, j->var[j->rank - 1], &coef, &rest)) {
    p->ok = false;
    return;
  }
  if (coef == 0 || coef == 1) {
    if (p->straight_count < MOST_STRAIGHT) p->straight[p->straight_count++] = load->node;
    else p->ok = false;
    return;
  }
  for (uint32_t i = 0; i < p->straight_count; i++)
    if (p->straight[i] == load->node) return;
  for (uint32_t d = 0; d + 1 < j->rank; d++) {
    if (j->var[d] == UINT32_MAX || !expr_split_affine(x, offset, j->var[d], &coef, &rest) || coef != 1) continue;
    if (j->turned_count && j->source_axis != d) {
      p->ok = false;
      return;
    }
    j->source_axis = d;
    for (uint32_t i = 0; i < j->turned_count; i++)
      if (j->turned[i] == load->node) {
        p->ok &= j->turned_at[i] == offset; /* read twice: in different places? */
        return;
      }
    if (j->turned_count == TRANSPOSE_MOST) return;
    j->turned[j->turned_count] = load->node;
    j->turned_at[j->turned_count++] = offset;
    return;
  }
  p->ok = false;
}

bool transpose_analyse(transpose_job *j) {
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
    j->var[d] = UINT32_MAX;
    if (literal && extent == 1) continue;
    at.at[d] = expr_var_add(x, "i", 0, t->dims[d], 1);
    j->var[d] = emit_var_number(x, at.at[d]);
  }
  if (j->var[j->rank - 1] == UINT32_MAX) return false;
  p.own = x->vars.count;
  for (uint32_t i = 0; i < j->group->output_count && p.ok; i++) {
    if (!ir_same_shape(&ir_at(g, j->group->outputs[i])->type, t)) return false;
    if (!fusion_walk_loads(j->c, j->group, j->group->outputs[i], &at, probe_load, &p)) return false;
  }
  j->lane_axis = j->rank - 1;
  return p.ok && j->turned_count;
}

static bool fits_blocks(transpose_job *j) {
  expr_pool *x = j->c->graph->pool;
  const ir_tensor *t = &ir_at(j->c->graph, j->group->hero)->type;
  j->width = schedule_lanes(j->c) < MAX_BLOCK ? schedule_lanes(j->c) : MAX_BLOCK;
  const uint32_t two = 2 * j->width; /* blocks */
  j->line = expr_mod(x, t->dims[j->lane_axis], two) == 0 && j->c->options->profile->caps.max_lanes >= two ? two : j->width;
  return schedule_hint(x, t->dims[j->source_axis]) >= j->width && schedule_hint(x, t->dims[j->lane_axis]) >= j->width;
}

/* Of four columns by four rows from the first of a vector on it is known in which element of a texel each lies. */
static bool fits_texels(const transpose_job *j) {
  expr_pool *x = j->c->graph->pool;
  const ir_tensor *t = &ir_at(j->c->graph, j->group->hero)->type;
  const cost_profile *p = j->c->options->profile;
  if (p->simd != COST_SIMD_LANES || p->reads != COST_READS_TEXEL || schedule_hint(x, t->dims[j->source_axis]) < TEXEL) return false;
  for (uint32_t i = 0; i < j->turned_count; i++) {
    int64_t coef;
    ir_expr rest;
    if (!expr_split_affine(x, j->turned_at[i], j->var[j->lane_axis], &coef, &rest) ||
        !expr_split_affine(x, rest, j->var[j->source_axis], &coef, &rest) || expr_multiple_of(x, rest) % TEXEL)
      return false;
  }
  return true;
}

/* ---- one block ---- */

/* One block, or two below each other: their rows, turned, are stored side by side, a line of the result in one store. */
static void turn_blocks(transpose_job *j, ir_expr source, ir_expr lane, uint32_t parts) {
  emit *e = j->e;
  expr_pool *x = e->x;
  const uint32_t width = j->width;
  uint32_t rows[TRANSPOSE_MOST][LINE];
  for (uint32_t n = 0; n < j->turned_count && !e->failed; n++) {
    const ir_expr along = emit_lanes(e, source, width);
    for (uint32_t i = 0; i < parts * width; i++) {
      j->at.at[j->source_axis] = along;
      j->at.at[j->lane_axis] = expr_add(x, lane, i);
      const map_access from = transpose_load_at(j, j->turned[n]);
      rows[n][i] = kir_splat(e->k, emit_value(e, j->turned[n], &from), width);
      if (e->failed || e->k->failed) return;
    }
    emit_scalar_lanes(e);
    for (uint32_t p = 0; p < parts; p++) emit_turn(e, rows[n] + p * width, width);
    if (parts == 2) schedule_join(e, rows[n], rows[n] + width, width);
  }
  const ir_expr along = emit_lanes(e, lane, parts * width);
  for (uint32_t i = 0; i < width && !e->failed; i++) {
    j->at.at[j->source_axis] = expr_add(x, source, i);
    j->at.at[j->lane_axis] = along;
    for (uint32_t n = 0; n < j->turned_count; n++) {
      const map_access from = transpose_load_at(j, j->turned[n]);
      emit_remember(e, j->turned[n], &from, rows[n][i]);
    }
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

/* ---- loops: lines of blocks, then what is left of each axis, by blocks and element by element ---- */

typedef struct block_range {
  ir_expr lo, hi;
  int64_t step;
} block_range;

/* Lines of the result lie beside each other in the inner loop: four of them are a run that passes the caches by (4096 x 4096 on two cores of Sapphire
   Rapids: 4.7 ms; lines one by one, further apart, 11.5, plain stores 20 in any order). */
static void sweep_range(transpose_job *j, block_range source, block_range lane) {
  int64_t rows, columns;
  emit *e = j->e;
  if ((expr_is_const(e->x, expr_sub(e->x, source.hi, source.lo), &rows) && rows <= 0) ||
      (expr_is_const(e->x, expr_sub(e->x, lane.hi, lane.lo), &columns) && columns <= 0))
    return;
  const ir_expr s = emit_steps(e, "s", source.lo, source.hi, source.step);
  const ir_expr l = emit_steps(e, "l", lane.lo, lane.hi, lane.step);
  if (lane.step > 1) turn_blocks(j, s, l, (uint32_t)lane.step / j->width);
  else single(j, s, l);
  emit_loop_end(e, l, 0, NULL, NULL);
  emit_loop_end(e, s, 0, NULL, NULL);
}

/* An axis shared out: whole steps in parts of `per`, and what is left, which is the last part's. */
typedef struct axis_share {
  ir_expr lo, hi, last; /* last: 1 in the last part, else 0 */
  ir_expr whole;
} axis_share;

static ir_expr whole_of(expr_pool *x, ir_expr extent, int64_t step) { return expr_sub(x, extent, expr_mod(x, extent, expr_int(x, step))); }

static ir_expr parts_of(expr_pool *x, ir_expr extent, int64_t step, int64_t per) {
  return expr_max(x, 1, expr_ceil_div(x, whole_of(x, extent, step), expr_int(x, per)));
}

static axis_share share_axis(expr_pool *x, ir_expr extent, int64_t step, int64_t per, ir_expr *number) {
  const ir_expr parts = parts_of(x, extent, step, per), part = expr_mod(x, *number, parts), whole = whole_of(x, extent, step),
                lo = expr_mul(x, part, expr_int(x, per));
  *number = expr_div(x, *number, parts);
  return (axis_share){.lo = lo,
                      .hi = expr_min(x, expr_add(x, lo, expr_int(x, per)), whole),
                      .last = expr_div(x, expr_add(x, part, 1), parts),
                      .whole = whole};
}

/* From where whole steps end, so many more in the last part. */
static block_range rest_of(expr_pool *x, const axis_share *a, ir_expr from, ir_expr count, int64_t step) {
  return (block_range){from, expr_add(x, from, expr_mul(x, count, a->last)), step};
}

/* Blocks of the source that a part has, so that there are groups enough: at the hints. */
static int64_t source_per(const cost_profile *p, int64_t source, int64_t width, double others) {
  const int64_t blocks = source / width, wanted = (int64_t)ceil(p->min_groups / others), parts = wanted < blocks ? wanted : blocks;
  return width * ((blocks + parts - 1) / parts);
}

static snt_result build_blocks(transpose_job *j) {
  fusion_context *c = j->c;
  expr_pool *x = c->graph->pool;
  emit *e = j->e = emit_begin(c, j->group, "transpose");
  if (!e) return ir_no_memory(c->diag, "schedule");
  const ir_tensor *t = &ir_at(c->graph, j->group->hero)->type;
  const ir_expr sources = t->dims[j->source_axis], lanes = t->dims[j->lane_axis];
  const int64_t width = j->width, line = j->line;
  ir_expr outer = 1;
  for (uint32_t d = 0; d < j->rank; d++)
    if (d != j->source_axis && d != j->lane_axis) outer = expr_mul(x, outer, t->dims[d]);
  const ir_expr lane_parts = parts_of(x, lanes, line, SHARE);
  const double others = (double)schedule_hint(x, expr_mul(x, lane_parts, outer));
  const int64_t per = source_per(c->options->profile, schedule_hint(x, sources), width, others);
  const ir_expr groups = expr_mul(x, outer, expr_mul(x, lane_parts, parts_of(x, sources, width, per)));
  ir_expr rest = emit_group(e, groups);
  const axis_share lane = share_axis(x, lanes, line, SHARE, &rest), source = share_axis(x, sources, width, per, &rest);
  j->at.rank = j->rank;
  for (uint32_t d = j->rank; d-- > 0;) {
    if (d == j->source_axis || d == j->lane_axis) continue;
    j->at.at[d] = expr_mod(x, rest, t->dims[d]);
    rest = expr_div(x, rest, t->dims[d]);
  }
  e->stream = schedule_streams(c, j->group, false);
  const block_range blocks = {source.lo, source.hi, width}, elements = {source.lo, source.hi, 1};
  const ir_expr left = expr_sub(x, lanes, lane.whole), block = whole_of(x, left, width), single_from = expr_add(x, lane.whole, block);
  const block_range tail = rest_of(x, &source, source.whole, expr_sub(x, sources, source.whole), 1),
                    last = rest_of(x, &lane, single_from, expr_sub(x, left, block), 1);
  sweep_range(j, blocks, (block_range){lane.lo, lane.hi, line});
  sweep_range(j, blocks, rest_of(x, &lane, lane.whole, block, width));
  sweep_range(j, elements, last);
  sweep_range(j, tail, (block_range){lane.lo, lane.hi, 1});
  sweep_range(j, tail, rest_of(x, &lane, lane.whole, left, 1));
  return emit_end(e, groups, 0, 0, NULL);
}

bool schedule_transpose_accepts(const fusion_context *c, const fusion_group *group, const char **why_not) {
  return schedule_loop_accepts(c, group, why_not);
}

/* Cheaper to ask than what each load says: is there a transpose in what the members read through views? */
static bool has_transpose(const fusion_context *c, const fusion_group *group) {
  const ir_graph *g = c->graph;
  for (uint32_t i = 0; i < group->count; i++) {
    if (ir_at(g, group->nodes[i])->op == IR_OP_transpose) return true;
    for (uint32_t a = 0; a < ir_at(g, group->nodes[i])->arity; a++)
      for (uint32_t from = ir_arg(g, group->nodes[i], a); fusion_is_view(g, from); from = ir_arg(g, from, 0))
        if (ir_at(g, from)->op == IR_OP_transpose) return true;
  }
  return false;
}

bool schedule_transpose_wanted(fusion_context *c, const fusion_group *group) {
  transpose_job j = {.c = c, .group = group};
  return has_transpose(c, group) && transpose_analyse(&j) &&
         (schedule_is_explicit(c) ? fits_blocks(&j) : fits_texels(&j) || transpose_fits_local(&j));
}

snt_result schedule_transpose_build(fusion_context *c, const fusion_group *group) {
  transpose_job j = {.c = c, .group = group};
  const bool turned = transpose_analyse(&j);
  if (turned && schedule_is_explicit(c) && fits_blocks(&j)) return build_blocks(&j);
  if (turned && !schedule_is_explicit(c) && transpose_fits_local(&j)) return transpose_build_local(&j);
  snt_result result = SNT_OK;
  if (turned && fits_texels(&j) && schedule_turned_lanes_build(c, group, j.source_axis, &result)) return result;
  return schedule_loop_build(c, group);
}
