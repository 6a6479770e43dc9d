/* Kind `contract`: matrix products and convolutions with operand prologues and an epilogue on the accumulators.
   One operand is read in vectors along the result's last axis (the *lane* label); the other one element at a time along the *row* label, whose
   rows share those vectors. A work-item holds a tile of rows x vectors in registers, sized from the profile's register count.
   Padded operands (convolution) are staged once a work-item, so that the inner loops need no tests. Tails overlap the last whole tile. */
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"
#include <math.h>

enum { MAX_LABELS = 16, MAX_TILE = 64, MAX_STAGED = 4, NONE = -1 };
/* Six rows: more of them meet in one cache set when rows lie a power of two apart. */
enum { TILE_ROWS = 6, MAX_ROWS = 8, MAX_VECTORS = 4 };

typedef struct contraction {
  fusion_context *c;
  const fusion_group *group;
  emit *e;
  uint32_t out_rank, lhs_rank, rhs_rank, reduced_count;
  const ir_expr *out, *lhs, *rhs;
  uint32_t reduced[MAX_LABELS];
  ir_expr extent[MAX_LABELS], at[MAX_LABELS]; /* by label */
  int32_t lane_axis, row_axis, outer_axis;    /* axes of the result; NONE if absent */
  uint32_t lane_operand;
  uint32_t lanes, vectors, rows; /* tile */
  kir_type type;
  uint32_t staged[MAX_STAGED], staged_count;
  uint32_t lane_var[8];
  ir_expr lane_at[8];                           /* offset of vector j's lanes from the tile's column */
  ir_expr row_lo, row_hi, column_lo, column_hi; /* of this work-item */
  uint32_t panel, panel_memory;                 /* the lane operand's node when a panel of it is staged for each tile of columns; 0: none */
  ir_expr group_number, groups;
} contraction;

static int32_t find_label(const ir_expr *list, uint32_t count, int64_t label) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == label) return (int32_t)i;
  return NONE;
}

static bool read_labels(contraction *t) {
  const ir_graph *g = t->c->graph;
  const uint32_t hero = t->group->hero;
  t->out = ir_attr_ints(g, hero, IR_ATTR_out, &t->out_rank);
  t->lhs = ir_attr_ints(g, hero, IR_ATTR_lhs, &t->lhs_rank);
  t->rhs = ir_attr_ints(g, hero, IR_ATTR_rhs, &t->rhs_rank);
  const ir_expr *lists[2] = {t->lhs, t->rhs};
  const uint32_t ranks[2] = {t->lhs_rank, t->rhs_rank};
  for (uint32_t o = 0; o < 2; o++)
    for (uint32_t i = 0; i < ranks[o]; i++) {
      if (lists[o][i] < 0 || lists[o][i] >= MAX_LABELS) return false;
      t->extent[lists[o][i]] = ir_at(g, ir_arg(g, hero, o))->type.dims[i];
      const bool seen = o == 1 && find_label(t->lhs, t->lhs_rank, t->rhs[i]) != NONE;
      if (!seen && find_label(t->out, t->out_rank, lists[o][i]) == NONE) t->reduced[t->reduced_count++] = (uint32_t)lists[o][i];
    }
  return true;
}

/* ---- which axis is which ---- */

static map_access operand_at(const contraction *t, uint32_t operand) {
  const ir_expr *labels = operand ? t->rhs : t->lhs;
  map_access a = {.rank = operand ? t->rhs_rank : t->lhs_rank};
  for (uint32_t i = 0; i < a.rank; i++) a.at[i] = t->at[labels[i]];
  return a;
}

typedef struct stride_probe {
  const fusion_context *c;
  uint32_t var;
  int64_t worst;
} stride_probe;
static void probe_load(void *user, const fusion_load *load) {
  stride_probe *p = user;
  expr_pool *x = p->c->graph->pool;
  int64_t coef;
  ir_expr rest;
  const ir_expr offset = map_linear(x, load->access, ir_at(p->c->graph, load->node)->type.dims);
  if (!expr_split_affine(x, offset, p->var, &coef, &rest) || coef < 0) coef = INT32_MAX;
  if (coef > p->worst) p->worst = coef;
}

/* Largest stride in memory of an operand's loads along a label; 0: it does not depend on it. */
static int64_t stride_along(contraction *t, uint32_t operand, uint32_t label) {
  expr_pool *x = t->c->graph->pool;
  ir_expr v = 0;
  for (uint32_t i = 0; i < MAX_LABELS; i++) {
    if (t->extent[i] == 0) continue;
    const ir_expr made = expr_var_add(x, "i", 0, t->extent[i], 1);
    t->at[i] = made;
    if (i == label) v = made;
  }
  if (v >= 0) return 0;
  stride_probe p = {t->c, emit_var_number(x, v), 0};
  const map_access a = operand_at(t, operand);
  const uint32_t node = ir_arg(t->c->graph, t->group->hero, operand);
  return fusion_walk_loads(t->c, t->group, node, &a, probe_load, &p) ? p.worst : INT32_MAX;
}

static bool in_operand(const contraction *t, uint32_t operand, int64_t label) {
  return find_label(operand ? t->rhs : t->lhs, operand ? t->rhs_rank : t->lhs_rank, label) != NONE;
}

/* The lane label: the last axis of the result with more than one element. The row label: the longest free axis of the other operand. */
static bool pick_axes(contraction *t) {
  const expr_pool *x = t->c->graph->pool;
  t->lane_axis = t->row_axis = t->outer_axis = NONE;
  for (int32_t i = (int32_t)t->out_rank; i-- > 0 && t->lane_axis == NONE;)
    if (t->extent[t->out[i]] != 1) t->lane_axis = i;
  if (t->lane_axis == NONE) return false;
  const int64_t lane = t->out[t->lane_axis];
  if (in_operand(t, 0, lane) && in_operand(t, 1, lane)) return false;
  t->lane_operand = in_operand(t, 1, lane) ? 1 : 0;
  int64_t longest = 1;
  for (int32_t i = 0; i < (int32_t)t->out_rank; i++) {
    const int64_t label = t->out[i];
    if (i == t->lane_axis || in_operand(t, t->lane_operand, label)) continue;
    const int64_t length = schedule_hint(x, t->extent[label]);
    if (length > longest) {
      longest = length;
      t->row_axis = i;
    }
  }
  for (int32_t i = (int32_t)t->out_rank; i-- > 0 && t->outer_axis == NONE;)
    if (i != t->lane_axis && i != t->row_axis && t->extent[t->out[i]] != 1) t->outer_axis = i;
  return true;
}

/* ---- the tile ---- */

static bool literal_extent(const contraction *t, int32_t axis, int64_t *out) {
  *out = 1;
  return axis == NONE || expr_is_const(t->c->graph->pool, t->extent[t->out[axis]], out);
}

/* The device's whole vector where the columns are many of them: its tile is loads, multiply-adds and stores only, which no compiler splits. */
static uint32_t tile_lanes(const fusion_context *c, int64_t lane_extent) {
  const cost_profile *p = c->options->profile;
  const bool whole = schedule_is_explicit(c) && p->lanes >= 16 && p->caps.max_lanes >= 16 && lane_extent >= 16 * MAX_VECTORS;
  return whole ? 16 : schedule_lanes(c);
}

/* rows * vectors accumulators + vectors + one broadcast <= registers; the tile never exceeds the extents. */
static bool pick_tile(contraction *t) {
  int64_t lane_extent, row_extent;
  if (!literal_extent(t, t->lane_axis, &lane_extent) || !literal_extent(t, t->row_axis, &row_extent)) return false;
  const bool wide = schedule_is_explicit(t->c);
  const uint32_t registers = wide ? (uint32_t)t->c->options->profile->registers : 24;
  t->lanes = tile_lanes(t->c, lane_extent);
  while (t->lanes > 1 && t->lanes > lane_extent) t->lanes /= 2;
  t->rows = TILE_ROWS < row_extent ? TILE_ROWS : (uint32_t)row_extent;
  t->vectors = wide ? (registers - 1) / (t->rows + 1) : 2;
  if (t->vectors > MAX_VECTORS) t->vectors = MAX_VECTORS;
  while (t->vectors > 1 && (int64_t)t->vectors * t->lanes > lane_extent) t->vectors--;
  if (t->rows == TILE_ROWS) { /* narrow results leave room for more rows */
    t->rows = (registers - t->vectors - 1) / t->vectors;
    if (t->rows > MAX_ROWS) t->rows = MAX_ROWS;
    if (t->rows > row_extent) t->rows = (uint32_t)row_extent;
  }
  return t->rows * t->vectors <= MAX_TILE && t->lanes > 1;
}

/* ---- padded operands ---- */

static void find_pads(contraction *t, uint32_t node) {
  const ir_graph *g = t->c->graph;
  while (fusion_is_view(g, node) && ir_at(g, node)->op != IR_OP_concat && !t->c->group_of[node]) {
    if (ir_at(g, node)->op == IR_OP_pad && t->staged_count < MAX_STAGED) {
      t->staged[t->staged_count++] = node;
      return;
    }
    node = ir_arg(g, node, 0);
  }
}

typedef struct pad_region {
  uint32_t pad;
  bool found;
  map_access access;
} pad_region;
static void take_region(void *user, const fusion_load *load) {
  pad_region *r = user;
  if (load->node != r->pad) return;
  r->access = *load->access;
  r->found = true;
}

/* Smallest and largest coordinate over the variables in [first, end): those of the tile and of the reduction. */
static bool span(expr_pool *x, ir_expr e, uint32_t first, uint32_t end, ir_expr *lo, ir_expr *hi) {
  *lo = *hi = e;
  for (uint32_t v = first; v < end; v++) {
    int64_t coef;
    ir_expr rest;
    const expr_var var = x->vars.at[v];
    if (!expr_uses_var(x, *lo, v) && !expr_uses_var(x, *hi, v)) continue;
    const ir_expr last = expr_sub(x, var.hi, 1);
    if (!expr_split_affine(x, *lo, v, &coef, &rest)) return false;
    *lo = expr_add(x, rest, expr_mul(x, expr_int(x, coef), coef > 0 ? var.lo : last));
    if (!expr_split_affine(x, *hi, v, &coef, &rest)) return false;
    *hi = expr_add(x, rest, expr_mul(x, expr_int(x, coef), coef > 0 ? last : var.lo));
  }
  return true;
}

/* Variables for everything that ranges inside a work-item: terms, lanes, rows, its share of the outer axis. */
static void range_fully(contraction *t, ir_expr outer_lo, int64_t outer_count) {
  expr_pool *x = t->e->x;
  for (uint32_t r = 0; r < t->reduced_count; r++) t->at[t->reduced[r]] = expr_var_add(x, "k", 0, t->extent[t->reduced[r]], 1);
  t->at[t->out[t->lane_axis]] = expr_var_add(x, "n", 0, t->extent[t->out[t->lane_axis]], 1);
  if (t->row_axis != NONE) t->at[t->out[t->row_axis]] = expr_var_add(x, "m", 0, t->extent[t->out[t->row_axis]], 1);
  if (t->outer_axis != NONE)
    t->at[t->out[t->outer_axis]] = expr_add(x, outer_lo, outer_count > 1 ? expr_var_add(x, "o", 0, outer_count, 1) : 0);
}

/* Stages what this work-item needs of a padded operand. */
static bool stage_operand(contraction *t, uint32_t node, ir_expr outer_lo, int64_t outer_count, ir_expr group, ir_expr groups) {
  emit *e = t->e;
  expr_pool *x = e->x;
  uint8_t *stop = IR_NEW_ARRAY(t->c->arena, uint8_t, t->c->graph->nodes.count);
  if (!stop) return false;
  stop[node] = 1;
  ir_expr kept[MAX_LABELS];
  memcpy(kept, t->at, sizeof kept);
  const uint32_t first = x->vars.count;
  range_fully(t, outer_lo, outer_count);
  pad_region region = {.pad = node};
  for (uint32_t o = 0; o < 2 && !region.found; o++) {
    const map_access a = operand_at(t, o);
    if (!fusion_walk_until(t->c, t->group, ir_arg(e->g, t->group->hero, o), &a, stop, take_region, &region)) return false;
  }
  const uint32_t end = x->vars.count;
  memcpy(t->at, kept, sizeof kept);
  if (!region.found) return true;
  stage_info info = {.node = node, .storage = STAGE_WORKSPACE, .ring_axis = -1, .group = group, .groups = groups};
  for (uint32_t d = 0; d < region.access.rank; d++) {
    ir_expr lo, hi;
    if (!span(x, region.access.at[d], first, end, &lo, &hi)) return false;
    info.origin[d] = lo;
    info.extent[d] = expr_add(x, expr_sub(x, hi, lo), 1);
  }
  emit_stage(e, &info, t->lanes, UINT32_MAX);
  return true;
}

/* The columns of one tile, all terms: contiguous, with the lane axis innermost, whatever the operand's own layout and strides. */
static void order_lane_last(const contraction *t, uint32_t rank, stage_info *info) {
  const ir_expr *labels = t->lane_operand ? t->rhs : t->lhs;
  const int32_t axis = find_label(labels, rank, t->out[t->lane_axis]);
  uint32_t count = 0;
  for (uint32_t i = 0; i < rank; i++)
    if ((int32_t)i != axis) info->order[count++] = (uint8_t)i;
  info->order[count] = (uint8_t)axis;
  info->ordered = true;
}

static void stage_panel(contraction *t, ir_expr column) {
  emit *e = t->e;
  const ir_expr *labels = t->lane_operand ? t->rhs : t->lhs;
  const uint32_t rank = t->lane_operand ? t->rhs_rank : t->lhs_rank;
  stage_info info = {.node = t->panel, .storage = STAGE_WORKSPACE, .ring_axis = -1, .group = t->group_number, .groups = t->groups};
  for (uint32_t d = 0; d < rank; d++) {
    bool reduced = false;
    for (uint32_t r = 0; r < t->reduced_count; r++) reduced |= labels[d] == (ir_expr)t->reduced[r];
    const bool lane = labels[d] == t->out[t->lane_axis];
    info.origin[d] = reduced ? 0 : lane ? column : t->at[labels[d]];
    info.extent[d] = reduced ? t->extent[labels[d]] : lane ? (ir_expr)t->lanes * t->vectors : 1;
  }
  order_lane_last(t, rank, &info);
  t->panel_memory = emit_stage(e, &info, t->lanes, t->panel_memory);
}

static bool stage_operands(contraction *t, ir_expr outer_lo, int64_t outer_count, ir_expr group, ir_expr groups) {
  for (uint32_t i = 0; i < t->staged_count; i++)
    if (!stage_operand(t, t->staged[i], outer_lo, outer_count, group, groups)) return false;
  return true;
}

/* ---- inner loops ---- */

static uint32_t to_type(emit *e, uint32_t value, int32_t base) {
  const kir_type type = emit_value_type(e, value);
  return type.base == base ? value : kir_cast(e->k, kir_t(base, type.lanes), value);
}

/* One term: vectors of the lane operand once, each row's scalar against all of them. */
static void multiply(contraction *t, ir_expr row, ir_expr column, uint32_t *acc) {
  emit *e = t->e;
  uint32_t vector[8];
  for (uint32_t j = 0; j < t->vectors; j++) {
    emit_use_lanes(e, t->lane_var[j], t->lanes);
    t->at[t->out[t->lane_axis]] = expr_add(e->x, column, t->lane_at[j]);
    const map_access a = operand_at(t, t->lane_operand);
    vector[j] = to_type(e, emit_value(e, ir_arg(e->g, t->group->hero, t->lane_operand), &a), t->type.base);
  }
  for (uint32_t i = 0; i < t->rows; i++) {
    if (t->row_axis != NONE) t->at[t->out[t->row_axis]] = expr_add(e->x, row, i);
    const map_access a = operand_at(t, 1 - t->lane_operand);
    const uint32_t scalar = to_type(e, emit_value(e, ir_arg(e->g, t->group->hero, 1 - t->lane_operand), &a), t->type.base);
    for (uint32_t j = 0; j < t->vectors; j++) {
      uint32_t *cell = &acc[i * t->vectors + j];
      *cell = ir_dtypes[t->type.base].is_float ? kir_3(e->k, KIR_fma, scalar, vector[j], *cell)
                                               : kir_2(e->k, KIR_add, *cell, kir_2(e->k, KIR_mul, scalar, vector[j]));
    }
  }
  emit_scalar_lanes(e);
}

/* Loops over the reduced labels; the innermost short ones are written out, a long innermost one is unrolled. */
static void reduce_level(contraction *t, uint32_t level, ir_expr row, ir_expr column, uint32_t *acc) {
  emit *e = t->e;
  if (level == t->reduced_count) {
    multiply(t, row, column, acc);
    return;
  }
  const uint32_t label = t->reduced[level];
  int64_t extent;
  const bool literal = expr_is_const(e->x, t->extent[label], &extent);
  if (literal && extent <= 4) {
    for (ir_expr i = 0; i < extent; i++) {
      t->at[label] = i;
      reduce_level(t, level + 1, row, column, acc);
    }
    return;
  }
  const uint32_t cells = t->rows * t->vectors;
  const bool last = level + 1 == t->reduced_count;
  const uint32_t step = last && literal && extent % 4 == 0 ? 4 : 1; /* whole texels and shared indices */
  uint32_t carried[MAX_TILE];
  const ir_expr k = emit_loop(e, &(emit_loop_info){.name = "k",
                                                   .lo = 0,
                                                   .hi = t->extent[label],
                                                   .step = step,
                                                   .whole = step > 1,
                                                   .carry_count = cells,
                                                   .initial = acc,
                                                   .carried = carried});
  for (uint32_t s = 0; s < step; s++) {
    t->at[label] = expr_add(e->x, k, s);
    reduce_level(t, level + 1, row, column, carried);
  }
  emit_loop_end(e, k, cells, carried, acc);
}

static void store_tile(contraction *t, ir_expr row, ir_expr column, const uint32_t *acc) {
  emit *e = t->e;
  for (uint32_t i = 0; i < t->rows; i++)
    for (uint32_t j = 0; j < t->vectors; j++) {
      emit_use_lanes(e, t->lane_var[j], t->lanes);
      t->at[t->out[t->lane_axis]] = expr_add(e->x, column, t->lane_at[j]);
      if (t->row_axis != NONE) t->at[t->out[t->row_axis]] = expr_add(e->x, row, i);
      map_access at = {.rank = t->out_rank};
      for (uint32_t d = 0; d < t->out_rank; d++) at.at[d] = t->at[t->out[d]];
      emit_remember(e, t->group->hero, &at, acc[i * t->vectors + j]);
      for (uint32_t o = 0; o < t->group->output_count; o++) {
        map_access own = at;
        if (!fusion_forward_access(t->c, t->group->hero, t->group->outputs[o], &own)) {
          e->failed = true;
          return;
        }
        emit_store_node(e, t->group->outputs[o], &own, emit_value(e, t->group->outputs[o], &own));
      }
    }
  emit_scalar_lanes(e);
}

static void emit_tile(contraction *t, ir_expr row, ir_expr column) {
  emit *e = t->e;
  uint32_t acc[MAX_TILE];
  const kir_type type = kir_t(t->type.base, t->lanes);
  for (uint32_t i = 0; i < t->rows * t->vectors; i++)
    acc[i] = ir_dtypes[type.base].is_float ? kir_const_float(e->k, type, 0) : kir_const_int(e->k, type, 0);
  reduce_level(t, 0, row, column, acc);
  store_tile(t, row, column, acc);
}

/* Tiles over [lo, hi) by `step`, the last one moved back so that it is whole: hi - lo >= step. */
typedef void (*tile_body)(contraction *, ir_expr at, ir_expr other);
typedef struct tile_range {
  const char *name;
  ir_expr lo, hi, extent;
  int64_t step;
} tile_range;

static void tile_loop(contraction *t, const tile_range *r, tile_body body, ir_expr other) {
  emit *e = t->e;
  expr_pool *x = e->x;
  int64_t length;
  const bool literal = expr_is_const(x, expr_sub(x, r->hi, r->lo), &length);
  if (literal && length == r->step) {
    body(t, r->lo, other);
    return;
  }
  const ir_expr v = emit_loop(e, &(emit_loop_info){.name = r->name, .lo = r->lo, .hi = r->hi, .step = r->step});
  ir_expr at = v;
  if (!literal || length % r->step)
    at = emit_var_for(e, r->name, emit_expr(e, expr_min(x, v, expr_sub(x, r->hi, expr_int(x, r->step)))), 0,
                      expr_sub(x, r->extent, expr_int(x, r->step - 1)));
  body(t, at, other);
  emit_loop_end(e, v, 0, NULL, NULL);
}

static void row_body(contraction *t, ir_expr row, ir_expr column) { emit_tile(t, row, column); }

static void column_body(contraction *t, ir_expr column, ir_expr unused) {
  (void)unused;
  if (t->panel) stage_panel(t, column);
  if (t->row_axis == NONE) {
    emit_tile(t, 0, column);
    return;
  }
  const tile_range rows = {"m", t->row_lo, t->row_hi, t->extent[t->out[t->row_axis]], t->rows};
  tile_loop(t, &rows, row_body, column);
}

/* ---- sharing out ---- */

/* Even parts of `extent`: part p is [start(p), start(p + 1)); each holds a whole tile because parts <= extent / tile. */
static ir_expr part_start(expr_pool *x, ir_expr extent, ir_expr parts, ir_expr p) {
  return expr_add(x, expr_mul(x, p, expr_div(x, extent, parts)), expr_min(x, p, expr_mod(x, extent, parts)));
}

typedef struct shares {
  ir_expr batch, rows, columns, outer, groups;
  int64_t outer_per;
} shares;

static void pick_shares(const contraction *t, shares *s) {
  expr_pool *x = t->c->graph->pool;
  const double wanted = t->c->options->profile->min_groups;
  *s = (shares){.batch = 1, .rows = 1, .columns = 1, .outer = 1, .outer_per = 1};
  for (int32_t i = 0; i < (int32_t)t->out_rank; i++)
    if (i != t->lane_axis && i != t->row_axis && i != t->outer_axis) s->batch = expr_mul(x, s->batch, t->extent[t->out[i]]);
  if (t->outer_axis != NONE) {
    const ir_expr outer = t->extent[t->out[t->outer_axis]];
    const double all = (double)schedule_hint(x, outer) * (double)schedule_hint(x, s->batch);
    s->outer_per = t->staged_count && all > wanted ? (int64_t)(all / wanted) : 1;
    if (s->outer_per > 8) s->outer_per = 8;
    s->outer = expr_ceil_div(x, outer, expr_int(x, s->outer_per));
  }
  const double groups = (double)schedule_hint(x, s->outer) * (double)schedule_hint(x, s->batch);
  if (groups < wanted * 2 && !t->staged_count) {
    s->columns = expr_max(x, 1, expr_div(x, t->extent[t->out[t->lane_axis]], 64));
    if (t->row_axis != NONE) s->rows = expr_max(x, 1, expr_div(x, t->extent[t->out[t->row_axis]], 96));
    /* every share of the rows copies the panel again: no more of them than fill the device */
    const double missing = ceil(wanted / (groups * (double)schedule_hint(x, s->columns)));
    if (t->panel && t->row_axis != NONE) s->rows = expr_min(x, s->rows, expr_int(x, (int64_t)missing));
  } else if (groups < wanted && t->row_axis != NONE) {
    s->rows = expr_max(
        x, 1, expr_min(x, expr_int(x, (int64_t)(wanted / groups)), expr_div(x, t->extent[t->out[t->row_axis]], expr_int(x, t->rows))));
  }
  s->groups = expr_mul(x, expr_mul(x, s->batch, s->outer), expr_mul(x, s->rows, s->columns));
}

/* Coordinates that the group number fixes; returns its part of the outer axis. */
static ir_expr place_group(contraction *t, const shares *s, ir_expr group) {
  expr_pool *x = t->c->graph->pool;
  ir_expr rest = group;
  const ir_expr columns = t->extent[t->out[t->lane_axis]], column = expr_mod(x, rest, s->columns);
  rest = expr_div(x, rest, s->columns);
  t->column_lo = part_start(x, columns, s->columns, column);
  t->column_hi = s->columns == 1 ? columns : part_start(x, columns, s->columns, expr_add(x, column, 1));
  const ir_expr row = expr_mod(x, rest, s->rows);
  rest = expr_div(x, rest, s->rows);
  if (t->row_axis != NONE) {
    const ir_expr rows = t->extent[t->out[t->row_axis]];
    t->row_lo = part_start(x, rows, s->rows, row);
    t->row_hi = s->rows == 1 ? rows : part_start(x, rows, s->rows, expr_add(x, row, 1));
  }
  const ir_expr outer = expr_mod(x, rest, s->outer);
  rest = expr_div(x, rest, s->outer);
  for (int32_t i = (int32_t)t->out_rank; i-- > 0;) {
    if (i == t->lane_axis || i == t->row_axis || i == t->outer_axis) continue;
    const ir_expr extent = t->extent[t->out[i]];
    t->at[t->out[i]] = extent == 1 ? 0 : expr_mod(x, rest, extent);
    rest = expr_div(x, rest, extent);
  }
  return expr_mul(x, outer, expr_int(x, s->outer_per));
}

static void make_lanes(contraction *t, ir_expr stride) {
  emit *e = t->e;
  for (uint32_t j = 0; j < t->vectors; j++) {
    t->lane_at[j] = emit_lanes(e, expr_mul(e->x, stride, j), t->lanes);
    t->lane_var[j] = e->lane_var;
  }
  emit_scalar_lanes(e);
}

static snt_result build_explicit(contraction *t, uint32_t choice, uint32_t guard_count, const plan_condition *guards) {
  expr_pool *x = t->c->graph->pool;
  emit *e = t->e = emit_begin(t->c, t->group, "contract");
  if (!e) return ir_fail(t->c->diag, SNT_E_HOST_MEM, "schedule", t->group->hero, "out of host memory");
  shares s;
  pick_shares(t, &s);
  const ir_expr group = emit_group(e, s.groups), outer = place_group(t, &s, group);
  make_lanes(t, t->lanes);
  t->group_number = group;
  t->groups = s.groups;
  if (!stage_operands(t, outer, s.outer_per, group, s.groups))
    return ir_fail(t->c->diag, SNT_E_INTERNAL, "schedule", t->group->hero, "the region of a staged operand is not affine");
  const tile_range columns = {"n", t->column_lo, t->column_hi, t->extent[t->out[t->lane_axis]], (int64_t)t->lanes * t->vectors};
  ir_expr v = outer;
  if (s.outer_per > 1) {
    const ir_expr extent = t->extent[t->out[t->outer_axis]];
    v = emit_loop(
        e, &(emit_loop_info){.name = "o", .lo = outer, .hi = expr_min(x, expr_add(x, outer, expr_int(x, s.outer_per)), extent), .step = 1});
  }
  if (t->outer_axis != NONE) t->at[t->out[t->outer_axis]] = v;
  tile_loop(t, &columns, column_body, 0);
  if (s.outer_per > 1) emit_loop_end(e, v, 0, NULL, NULL);
  return emit_end(e, s.groups, choice, guard_count, guards);
}

/* Rows of unknown number: the tile where there are enough of them, else one row at a time. */
static snt_result build_symbolic_rows(contraction *t) {
  const uint32_t choice = t->c->plan->steps.count + 1;
  const ir_expr rows = t->extent[t->out[t->row_axis]];
  const contraction start = *t;
  t->rows = 6;
  const plan_condition enough = {rows, t->rows, INT64_MAX};
  SNT_TRY(build_explicit(t, choice, 1, &enough));
  *t = start;
  t->rows = 1;
  return build_explicit(t, choice, 0, NULL);
}

/* Lanes: each item holds rows x two vectors, neighbouring items neighbouring vectors, so that loads of the lane operand are contiguous. */
static snt_result build_lanes(contraction *t) {
  expr_pool *x = t->c->graph->pool;
  int64_t columns;
  const bool texel = t->c->options->profile->reads == COST_READS_TEXEL;
  uint32_t items = texel ? 8 : 64;
  (void)expr_is_const(x, t->extent[t->out[t->lane_axis]], &columns);
  while (items > 1 && columns % (4 * (int64_t)items * t->vectors)) items /= 2;
  while (t->vectors > 1 && columns % (4 * (int64_t)items * t->vectors)) t->vectors /= 2;
  emit *e = t->e = emit_begin(t->c, t->group, "contract");
  if (!e) return ir_fail(t->c->diag, SNT_E_HOST_MEM, "schedule", t->group->hero, "out of host memory");
  shares s = {.batch = 1, .outer = 1, .outer_per = 1, .rows = 1, .columns = expr_int(x, columns / (4 * (int64_t)items * t->vectors))};
  for (int32_t i = 0; i < (int32_t)t->out_rank; i++)
    if (i != t->lane_axis && i != t->row_axis && i != t->outer_axis) s.batch = expr_mul(x, s.batch, t->extent[t->out[i]]);
  if (t->outer_axis != NONE) s.outer = t->extent[t->out[t->outer_axis]];
  if (t->row_axis != NONE) s.rows = expr_div(x, t->extent[t->out[t->row_axis]], expr_int(x, t->rows));
  s.groups = expr_mul(x, expr_mul(x, s.batch, s.outer), expr_mul(x, s.rows, s.columns));
  const ir_expr group = emit_group(e, s.groups), outer = place_group(t, &s, group);
  if (t->outer_axis != NONE) t->at[t->out[t->outer_axis]] = outer;
  make_lanes(t, (ir_expr)items * 4);
  const ir_expr column = expr_add(x, expr_mul(x, expr_mod(x, group, s.columns), (ir_expr)items * 4 * t->vectors),
                                  expr_mul(x, emit_item(e, 0, items), 4));
  column_body(t, column, 0);
  return emit_end(e, s.groups, 0, 0, NULL);
}

/* ---- entry ---- */

static bool symbolic_rows(const contraction *t) {
  int64_t literal;
  return t->row_axis != NONE && !literal_extent(t, t->row_axis, &literal) && literal_extent(t, t->lane_axis, &literal);
}

static bool has_pads(const contraction *t) { return t->staged_count > 0; }

/* Smallest stride in memory, in bytes, between consecutive terms of the lane operand. */
static int64_t term_stride(contraction *t) {
  if (!t->reduced_count) return 0;
  return stride_along(t, t->lane_operand, t->reduced[t->reduced_count - 1]) * 4;
}

/* The lane operand is read with unit stride from a panel where it has another stride, or where its rows lie so far apart that they meet in few
   cache sets; copying a panel pays when enough rows share it. */
static bool settle_lane_operand(contraction *t) {
  enum { FAR_APART = 1024, ROWS_TO_PAY = 16 };
  const int64_t stride = stride_along(t, t->lane_operand, (uint32_t)t->out[t->lane_axis]);
  const bool shared = schedule_is_explicit(t->c) && !t->staged_count && t->row_axis != NONE &&
                      schedule_hint(t->c->graph->pool, t->extent[t->out[t->row_axis]]) >= ROWS_TO_PAY;
  t->panel_memory = UINT32_MAX;
  if (shared && (stride != 1 || term_stride(t) >= FAR_APART)) t->panel = ir_arg(t->c->graph, t->group->hero, t->lane_operand);
  return t->panel || (stride >= 1 && stride <= 4);
}

bool schedule_contract_accepts(const fusion_context *c, const fusion_group *group, const char **why_not) {
  uint32_t contractions = 0;
  for (uint32_t i = 0; i < group->count; i++) contractions += ir_at(c->graph, group->nodes[i])->op == IR_OP_contract;
  *why_not = "a tile holds one contraction";
  return contractions == 1;
}

/* What no tile fits (unknown columns, tiny extents, both operands along the lanes) is computed element by element in the loop schedule. */
snt_result schedule_contract_build(fusion_context *c, const fusion_group *group) {
  contraction t = {.c = c, .group = group, .type = emit_compute_type(NULL, ir_at(c->graph, group->hero)->type.dtype, 1)};
  if (!read_labels(&t) || !pick_axes(&t)) return schedule_loop_build(c, group);
  for (uint32_t o = 0; o < 2; o++) find_pads(&t, ir_arg(c->graph, group->hero, o));
  if (symbolic_rows(&t) && schedule_is_explicit(c) && !has_pads(&t)) {
    int64_t columns;
    t.lanes = schedule_lanes(c);
    t.vectors = 2;
    t.rows = 6;
    if (literal_extent(&t, t.lane_axis, &columns) && columns >= 2 * (int64_t)t.lanes && settle_lane_operand(&t))
      return build_symbolic_rows(&t);
    return schedule_loop_build(c, group);
  }
  int64_t columns;
  if (!pick_tile(&t)) return schedule_loop_build(c, group);
  if (schedule_is_explicit(c)) return settle_lane_operand(&t) ? build_explicit(&t, 0, 0, NULL) : schedule_loop_build(c, group);
  const bool fits = literal_extent(&t, t.lane_axis, &columns) && columns % 4 == 0 && !has_pads(&t) && settle_lane_operand(&t);
  return fits ? build_lanes(&t) : schedule_loop_build(c, group);
}
