/* Kind `scan`: each line along the scanned axis is walked once, the running value carried; what follows is computed and stored on the way.
   In: a group of one scan, pointwise nodes and views around it. A work-item (lanes) or a vector of neighbouring lines (explicit) owns whole lines.
   Few long lines are cut: schedule/scan_chunks.c. */
#include "fusion/schedule/scan_private.h"
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

/* The whole of one line, or of `lanes` neighbouring ones: `inner` is the place among the axes after the scanned one. */
static void walk_line(emit *e, void *user, ir_expr inner) {
  const scan_job *job = user;
  const uint32_t hero = job->group->hero, lanes = e->lanes, lane_var = e->lane_var;
  const kir_type type = emit_compute_type(e, ir_at(e->g, hero)->type.dtype, lanes);
  const ir_expr extent = job->dims[job->axis];
  uint32_t carried, ignored, start = scan_identity(e, job->op, type);
  const ir_expr v = scan_loop(e, 0, extent, 1, 1, &start, &carried);
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
  if (!e) return ir_no_memory(c->diag, "schedule");
  const ir_expr outer = schedule_product(g->pool, job.axis, t->dims),
                inner = schedule_product(g->pool, t->rank - job.axis - 1, t->dims + job.axis + 1);
  return schedule_is_explicit(c) ? build_explicit(c, e, &job, outer, inner) : build_lanes(c, e, &job, outer, inner);
}
