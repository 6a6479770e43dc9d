/* Kind `scan`: each line along the scanned axis is walked once, the running value carried; what follows is computed and stored on the way.
   In: a group of one scan, pointwise nodes and views around it. A work-item (lanes) or a vector of neighbouring lines (explicit) owns whole lines.
   Few long lines are cut: schedule_scan_chunks.c. */
#include "fusion/schedule_scan_private.h"
#include "fusion/schedules.h"

/* One scan, and every result reads it where the walk stands. */
bool schedule_scan_accepts(const fusion_context *c, const fusion_group *group, const char **why_not) {
  const ir_graph *g = c->graph;
  const map_access at = fusion_anywhere(c, group->hero);
  for (uint32_t i = 0; i < group->count; i++)
    if (group->nodes[i] != group->hero && (ir_ops[ir_at(g, group->nodes[i])->op].flags & IR_SCAN)) {
      *why_not = "two scans";
      return false;
    }
  for (uint32_t i = 0; i < group->output_count; i++) {
    map_access own = at, read;
    if (group->outputs[i] == group->hero) continue;
    if (!fusion_forward_access(c, group->hero, group->outputs[i], &own)) {
      *why_not = "a result that does not follow the scan element by element";
      return false;
    }
    if (!fusion_one_place(c, group, group->outputs[i], &own, group->hero, &read) ||
        memcmp(read.at, at.at, at.rank * sizeof at.at[0]) != 0) {
      *why_not = "a result that reads the scan at other places";
      return false;
    }
  }
  return true;
}

static double identity(ir_op op, int32_t dtype) {
  switch (op) {
  case IR_OP_scan_prod: return emit_identity(IR_OP_reduce_prod, dtype);
  case IR_OP_scan_max: return emit_identity(IR_OP_reduce_max, dtype);
  case IR_OP_scan_min: return emit_identity(IR_OP_reduce_min, dtype);
  default: return 0;
  }
}

uint32_t scan_identity(emit *e, ir_op op, kir_type type) {
  const double x = identity(op, type.base);
  if (ir_dtypes[type.base].is_float) return kir_const_float(e->k, type, x);
  if (type.base == SNT_U64 && x > 0 && op == IR_OP_scan_min) return kir_const_int(e->k, type, -1);
  return kir_const_int(e->k, type, x >= 9.2e18 ? INT64_MAX : (int64_t)x);
}

kir_op scan_combine(ir_op op) {
  return op == IR_OP_scan_prod ? KIR_mul : op == IR_OP_scan_max ? KIR_max : op == IR_OP_scan_min ? KIR_min : KIR_add;
}

uint32_t scan_next(emit *e, const scan_job *job, uint32_t carried, const map_access *at) {
  const uint32_t hero = job->group->hero;
  const uint32_t a = emit_value(e, ir_arg(e->g, hero, 0), at);
  if (!a) return 0;
  if (job->op == IR_OP_scan_linear) {
    const uint32_t b = emit_value(e, ir_arg(e->g, hero, 1), at);
    return b ? kir_2(e->k, KIR_add, kir_2(e->k, KIR_mul, a, carried), b) : 0;
  }
  return kir_2(e->k, scan_combine(job->op), carried, a);
}

map_access scan_at(const emit *e, const scan_job *job, ir_expr outer, ir_expr inner, ir_expr place) {
  map_access at = {.rank = job->rank};
  map_delinear(e->x, outer, job->axis, job->dims, at.at);
  map_delinear(e->x, inner, job->rank - job->axis - 1, job->dims + job->axis + 1, at.at + job->axis + 1);
  at.at[job->axis] = job->reverse ? expr_sub(e->x, expr_sub(e->x, job->dims[job->axis], 1), place) : place;
  return at;
}

typedef struct scan_known {
  emit *e;
  uint32_t hero, value;
} scan_known;

static void know_read(void *user, const fusion_load *load) {
  const scan_known *k = user;
  if (load->node == k->hero) emit_remember(k->e, k->hero, load->access, k->value);
}

/* Results at one place of the line: the scan's value there is `value`, also where a result's way back to it, through a reshape of extents that are
   symbols, writes the same place otherwise. */
bool scan_store(emit *e, const scan_job *job, const map_access *at, uint32_t value) {
  const uint32_t hero = job->group->hero;
  const fusion_stops stops = {&hero, 1};
  scan_known known = {e, hero, emit_round_node(e, ir_at(e->g, hero), value)};
  emit_remember(e, hero, at, known.value);
  for (uint32_t i = 0; i < job->group->output_count; i++) {
    const uint32_t output = job->group->outputs[i];
    map_access own = *at;
    if (output != hero && (!fusion_forward_access(e->c, hero, output, &own) ||
                           !fusion_walk_until(e->c, job->group, output, &own, &stops, know_read, &known))) {
      e->failed = true;
      return false;
    }
    emit_store_node(e, output, &own, emit_value(e, output, &own));
  }
  return true;
}

/* The whole of one line, or of `lanes` neighbouring ones: `inner` is the place among the axes after the scanned one. */
static void walk_line(emit *e, void *user, ir_expr inner) {
  const scan_job *job = user;
  const uint32_t hero = job->group->hero, lanes = e->lanes, lane_var = e->lane_var;
  const kir_type type = emit_compute_type(e, ir_at(e->g, hero)->type.dtype, lanes);
  const ir_expr extent = job->dims[job->axis];
  uint32_t carried, ignored, start = scan_identity(e, job->op, type);
  const ir_expr v = emit_loop(
      e, &(emit_loop_info){.name = "i", .lo = 0, .hi = extent, .step = 1, .carry_count = 1, .initial = &start, .carried = &carried});
  emit_use_lanes(e, lane_var, lanes);
  const map_access at = scan_at(e, job, job->outer, inner, v);
  const uint32_t next = scan_next(e, job, carried, &at);
  if (!next) {
    e->failed = true;
    return;
  }
  if (!scan_store(e, job, &at, job->exclusive ? carried : next)) return;
  emit_loop_end(e, v, 1, &next, &ignored);
}

static snt_result build_explicit(fusion_context *c, emit *e, scan_job *job, ir_expr outer, ir_expr inner) {
  expr_pool *x = c->graph->pool;
  int64_t per;
  const ir_expr parts = schedule_split_work(c, inner, schedule_hint(x, job->dims[job->axis]), &per), groups = expr_mul(x, outer, parts);
  const ir_expr g = emit_group(e, groups), lo = expr_mul(x, expr_mod(x, g, parts), expr_int(x, per));
  job->outer = expr_div(x, g, parts);
  schedule_vector_loop(e, lo, expr_min(x, expr_add(x, lo, expr_int(x, per)), inner), schedule_lanes(c), 1, walk_line, job);
  return emit_end(e, groups, 0, 0, NULL);
}

static snt_result build_lanes(fusion_context *c, emit *e, scan_job *job, ir_expr outer, ir_expr inner) {
  expr_pool *x = c->graph->pool;
  uint32_t items = (uint32_t)c->options->profile->group_items;
  if (items > c->options->profile->max_items) items = c->options->profile->max_items;
  const ir_expr lines = expr_mul(x, outer, inner), groups = expr_ceil_div(x, lines, (ir_expr)items);
  const ir_expr item = emit_item(e, 0, items), line = expr_add(x, expr_mul(x, emit_group(e, groups), (ir_expr)items), item);
  emit_if_below(e, line, lines);
  job->outer = expr_div(x, line, inner);
  walk_line(e, job, expr_mod(x, line, inner));
  emit_if_end(e);
  return emit_end(e, groups, 0, 0, NULL);
}

snt_result schedule_scan_build(fusion_context *c, const fusion_group *group) {
  const ir_graph *g = c->graph;
  const ir_tensor *t = &ir_at(g, group->hero)->type;
  scan_job job = {.group = group, .op = (ir_op)ir_at(g, group->hero)->op, .rank = t->rank, .dims = t->dims};
  job.axis = (uint32_t)ir_attr_int(g, group->hero, IR_ATTR_axis, 0);
  job.exclusive = ir_attr_flag(g, group->hero, IR_ATTR_exclusive);
  job.reverse = ir_attr_flag(g, group->hero, IR_ATTR_reverse);
  if (scan_wants_chunks(c, &job)) return schedule_scan_chunks(c, &job);
  emit *e = emit_begin(c, group, "scan");
  if (!e) return ir_fail(c->diag, SNT_E_HOST_MEM, "schedule", group->hero, "out of host memory");
  const ir_expr outer = schedule_product(g->pool, job.axis, t->dims),
                inner = schedule_product(g->pool, t->rank - job.axis - 1, t->dims + job.axis + 1);
  return schedule_is_explicit(c) ? build_explicit(c, e, &job, outer, inner) : build_lanes(c, e, &job, outer, inner);
}
