/* Kind `loop`: pointwise nodes with any movement, several outputs of one element count.
   Explicit classes: a group owns a share of the rows and columns and walks it in vectors. Lanes: an item owns a vector of four. */
#include "fusion/schedule_loop_private.h"
#include "fusion/emit_private.h"
#include "fusion/image.h"
#include "fusion/schedules.h"

static void store_outputs(emit *e, void *user, ir_expr column) {
  const loop_job *job = user;
  const uint32_t first = e->k->insts.count;
  for (uint32_t i = 0; i < job->group->output_count; i++) {
    const uint32_t node = job->group->outputs[i];
    const ir_tensor *t = &ir_at(e->g, node)->type;
    schedule_space own = job->space;
    ir_expr row = job->row, at_column = column;
    if (t->rank != own.rank || memcmp(t->dims, own.dims, t->rank * sizeof t->dims[0])) { /* another shape: by the element's number */
      schedule_space_init(e->c, &own, t, 0);
      at_column = expr_add(e->x, expr_mul(e->x, row, job->space.columns), column);
      row = 0;
    }
    const map_access at = schedule_at(e->x, &own, row, at_column);
    emit_store_node(e, node, &at, emit_value(e, node, &at));
  }
  if (e->lanes > 1 && schedule_is_explicit(e->c)) emit_fetch_ahead(e, first, 1);
}

bool schedule_loop_accepts(const fusion_context *c, const fusion_group *group, const char **why_not) {
  for (uint32_t i = 0; i < group->output_count; i++)
    if (c->facts[group->outputs[i]].count != c->facts[group->hero].count) {
      *why_not = "outputs of different sizes";
      return false;
    }
  return true;
}

static void walk_piece(emit *e, loop_job *job, ir_expr lo, ir_expr hi, uint32_t lanes) {
  if (job->dear.count) loop_dear_columns(e, job, lo, hi, lanes, store_outputs);
  else schedule_vector_loop(e, lo, hi, lanes, 4, store_outputs, job);
}

/* Cuts are those of whole rows: a share of a row has its conditions tested. */
static void walk_columns(emit *e, loop_job *job, ir_expr lo, ir_expr hi, uint32_t lanes) {
  const uint32_t cuts = lo == 0 && hi == job->space.columns ? job->cuts.count : 0;
  for (uint32_t i = 0; i <= cuts; i++)
    walk_piece(e, job, i ? expr_int(e->x, job->cuts.at[i - 1]) : lo, i < cuts ? expr_int(e->x, job->cuts.at[i]) : hi, lanes);
}

/* rows x columns shared out: whole rows to a group where they are short, pieces of a row where they are long. */
static snt_result build_explicit(fusion_context *c, const fusion_group *group) {
  expr_pool *x = c->graph->pool;
  emit *e = emit_begin(c, group, "loop");
  if (!e) return ir_fail(c->diag, SNT_E_HOST_MEM, "schedule", group->hero, "out of host memory");
  loop_job job = {.group = group};
  schedule_space_init(c, &job.space, &ir_at(c->graph, group->hero)->type, schedule_pick_split(c, group, group->hero));
  loop_find_dear(c, group, &job.space, &job.dear);
  loop_find_cuts(c, group, &job.space, &job.cuts);
  const uint32_t lanes = schedule_lanes(c);
  e->stream = schedule_streams(c, group, true);
  int64_t columns_per, rows_per = 1;
  ir_expr column_parts = schedule_split_work(c, job.space.columns, 1, &columns_per), row_parts = job.space.rows;
  const int64_t unit = job.dear.count ? job.dear.columns : 4 * lanes; /* whole tiles */
  columns_per = (columns_per + unit - 1) / unit * unit;
  int64_t literal;
  const bool short_rows = schedule_hint(x, job.space.columns) <= 16384 && job.space.split > 0;
  if (short_rows) {
    column_parts = 1;
    row_parts = schedule_split_work(c, job.space.rows, schedule_hint(x, job.space.columns), &rows_per);
  } else if (expr_is_const(x, job.space.columns, &literal) && literal <= columns_per) {
    column_parts = 1;
  } else {
    column_parts = expr_ceil_div(x, job.space.columns, expr_int(x, columns_per));
  }
  const ir_expr groups = expr_mul(x, row_parts, column_parts), g = emit_group(e, groups);
  const ir_expr part = expr_mod(x, g, column_parts), row_part = expr_div(x, g, column_parts);
  const ir_expr lo = column_parts == 1 ? 0 : expr_mul(x, part, expr_int(x, columns_per));
  const ir_expr hi = column_parts == 1 ? job.space.columns : expr_min(x, expr_add(x, lo, expr_int(x, columns_per)), job.space.columns);
  if (rows_per == 1) {
    job.row = row_part;
    walk_columns(e, &job, lo, hi, lanes);
  } else {
    const ir_expr first = expr_mul(x, row_part, expr_int(x, rows_per));
    job.row = emit_loop(
        e, &(emit_loop_info){
               .name = "r", .lo = first, .hi = expr_min(x, expr_add(x, first, expr_int(x, rows_per)), job.space.rows), .step = 1});
    walk_columns(e, &job, lo, hi, lanes);
    emit_loop_end(e, job.row, 0, NULL, NULL);
  }
  return emit_end(e, groups, 0, 0, NULL);
}

/* One vector an item where the columns are long; a single element otherwise. */
static snt_result build_lanes(fusion_context *c, const fusion_group *group) {
  expr_pool *x = c->graph->pool;
  emit *e = emit_begin(c, group, "loop");
  if (!e) return ir_fail(c->diag, SNT_E_HOST_MEM, "schedule", group->hero, "out of host memory");
  loop_job job = {.group = group};
  uint32_t split = schedule_pick_split(c, group, group->hero);
  const ir_tensor *t = &ir_at(c->graph, group->hero)->type;
  schedule_space_init(c, &job.space, t, split);
  if (split && schedule_hint(x, job.space.columns) < 128) schedule_space_init(c, &job.space, t, 0), split = UINT32_MAX;
  const uint32_t lanes = split == UINT32_MAX ? 1 : schedule_item_lanes(c);
  uint32_t items = (uint32_t)c->options->profile->group_items;
  while (items > 8 && (int64_t)(items / 2) * lanes >= schedule_hint(x, job.space.columns)) items /= 2;
  if (items > c->options->profile->max_items) items = c->options->profile->max_items;
  const ir_expr parts = expr_ceil_div(x, job.space.columns, (ir_expr)items * lanes), groups = expr_mul(x, parts, job.space.rows);
  const ir_expr g = emit_group(e, groups), l = emit_item(e, 0, items);
  job.row = expr_div(x, g, parts);
  const ir_expr column = expr_mul(x, expr_add(x, expr_mul(x, expr_mod(x, g, parts), items), l), lanes);
  const ir_expr last = expr_add(x, column, lanes);
  if (expr_proves_le(x, last, job.space.columns)) {
    store_outputs(e, &job, emit_lanes(e, column, lanes));
    emit_scalar_lanes(e);
    return emit_end(e, groups, 0, 0, NULL);
  }
  emit_if(e, kir_2(e->k, KIR_le, emit_expr(e, last), emit_expr(e, job.space.columns)));
  store_outputs(e, &job, emit_lanes(e, column, lanes));
  emit_scalar_lanes(e);
  if (lanes > 1 && expr_multiple_of(x, job.space.columns) % lanes) {
    emit_else(e, 0, NULL);
    const ir_expr v = emit_loop(e, &(emit_loop_info){.name = "t", .lo = column, .hi = job.space.columns, .step = 1});
    store_outputs(e, &job, v);
    emit_loop_end(e, v, 0, NULL, NULL);
  }
  emit_if_end(e);
  return emit_end(e, groups, 0, 0, NULL);
}

static bool reads_image(const fusion_context *c, const fusion_group *group) {
  for (uint32_t i = 0; c->options->image_count && i < group->input_count; i++)
    if (fusion_image_layout(c, group->inputs[i])) return true;
  return false;
}

snt_result schedule_loop_build(fusion_context *c, const fusion_group *group) {
  snt_result result = SNT_OK;
  if (!schedule_is_explicit(c) && reads_image(c, group) && schedule_window_lanes_build(c, group, "loop", &result)) return result;
  return schedule_is_explicit(c) ? build_explicit(c, group) : build_lanes(c, group);
}
