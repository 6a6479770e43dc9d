/* Scans of few long lines: each line is cut into chunks. One kernel computes the total of every chunk but the last; the next starts each chunk from
   the totals before it and walks it. The order of a float's operations is then another, so STRICT takes this way only where it cannot show.
   Where the driver ends loops after so many trips and the order is not free, the chunks of all lines are walked one after the other by a loop of
   the plan, the running values waiting in memory between.
   Explicit classes walk a unit-stride chunk in vectors: the running values inside one by log2(lanes) shifted combinations. Where local memory is near a group
   walks it (schedule/scan_tiles.c), also whole lines. */
#include "fusion/schedule/scan_private.h"

enum { LEAST_EXPLICIT = 512, LEAST_LANES = 64, TILES_A_CHUNK = 8, MOST_CHUNKS = 1024 };

static bool order_is_free(const fusion_context *c, const scan_job *s) {
  const ir_tensor *t = &ir_at(c->graph, s->group->hero)->type;
  return !fusion_keeps_order(c->options) || !ir_dtypes[t->dtype].is_float || s->op == IR_OP_scan_max || s->op == IR_OP_scan_min;
}

static int64_t line_count(const fusion_context *c, const scan_job *s) {
  const expr_pool *x = c->graph->pool;
  int64_t lines = 1;
  for (uint32_t d = 0; d < s->rank; d++)
    if (d != s->axis) lines *= schedule_hint(x, s->dims[d]);
  return lines < 1 ? 1 : lines;
}

/* Chunks a line so that the device is busy. */
static int64_t chunks_wanted(const fusion_context *c, const scan_job *s) {
  const cost_profile *p = c->options->profile;
  uint32_t lanes;
  const uint32_t items = scan_items(c, s, &lanes);
  const double pieces = schedule_is_explicit(c) ? 4 * p->units : items > 1 ? p->min_groups : p->min_groups * p->group_items;
  const int64_t least = schedule_is_explicit(c) ? LEAST_EXPLICIT
                        : items > 1             ? TILES_A_CHUNK * items * lanes
                                                : LEAST_LANES,
                extent = schedule_hint(c->graph->pool, s->dims[s->axis]);
  int64_t wanted = (int64_t)(pieces / (double)line_count(c, s));
  if (wanted > extent / least) wanted = extent / least;
  return wanted > MOST_CHUNKS ? MOST_CHUNKS : wanted;
}

static bool is_too_long(const fusion_context *c, const scan_job *s) {
  int64_t least, most;
  expr_bounds(c->graph->pool, s->dims[s->axis], &least, &most);
  return c->options->profile->max_trips && most >= c->options->profile->max_trips;
}

/* Worth a second reading where lines alone leave most of the device idle. */
bool scan_wants_chunks(const fusion_context *c, const scan_job *s) {
  const uint32_t bindings = s->group->input_count + s->group->output_count + (s->op == IR_OP_scan_linear ? 2 : 1);
  if (c->options->profile->max_bindings && bindings > c->options->profile->max_bindings) return false;
  uint32_t lanes;
  return (order_is_free(c, s) && (scan_items(c, s, &lanes) > 1 || chunks_wanted(c, s) >= 4)) || is_too_long(c, s);
}

/* ---- one chunk ---- */

static snt_result begin(chunk_job *j, const char *suffix) {
  j->e = emit_begin(j->c, j->scan->group, suffix);
  return j->e ? SNT_OK : ir_no_memory(j->c->diag, "schedule");
}

static void set_chunk(chunk_job *j, ir_expr unit, ir_expr chunks) {
  expr_pool *x = j->e->x;
  j->line = expr_div(x, unit, chunks);
  j->chunk = expr_mod(x, unit, chunks);
  j->lo = expr_mul(x, j->chunk, j->size);
  j->hi = expr_min(x, expr_add(x, j->lo, j->size), j->extent);
}

/* The one of `all` chunks that the group, or the item, walks; of a line there are `chunks`. */
static ir_expr open_chunk(chunk_job *j, ir_expr all, ir_expr chunks) {
  const expr_pool *x = j->e->x;
  ir_expr groups = all;
  if (j->items > 1) j->item = emit_item(j->e, 0, j->items), j->unit = emit_group(j->e, groups);
  else j->unit = schedule_units(j->e, groups, schedule_hint(x, j->size), &groups);
  set_chunk(j, j->unit, chunks);
  return groups;
}

static void close_chunk(chunk_job *j) {
  if (j->items == 1) schedule_units_end(j->e, j->unit);
}

static ir_expr total_offset(const chunk_job *j, ir_expr chunk) { return expr_add(j->e->x, expr_mul(j->e->x, j->line, j->count), chunk); }

/* ---- totals ---- */

static uint32_t vector_total(chunk_job *j) {
  emit *e = j->e;
  uint32_t carried, total, start = scan_identity(e, j->scan->op, kir_t(j->dtype, j->lanes));
  const ir_expr v = emit_loop(e, &(emit_loop_info){.name = "i",
                                                   .lo = j->lo,
                                                   .hi = j->hi,
                                                   .step = j->lanes * j->items,
                                                   .whole = true,
                                                   .unroll = 4,
                                                   .carry_count = 1,
                                                   .initial = &start,
                                                   .carried = &carried});
  const map_access at = scan_place(j, emit_lanes(e, expr_add(e->x, v, expr_mul(e->x, j->item, (ir_expr)j->lanes)), j->lanes));
  uint32_t next = scan_next(e, j->scan, carried, &at);
  emit_scalar_lanes(e);
  emit_loop_end(e, v, 1, &next, &total);
  static const kir_op across[] = {[KIR_add] = KIR_hred_add, [KIR_mul] = KIR_hred_mul, [KIR_max] = KIR_hred_max, [KIR_min] = KIR_hred_min};
  if (!next) return 0;
  if (j->lanes > 1) total = kir_1(e->k, across[scan_combine(j->scan->op)], total);
  return emit_group_combine(e, scan_combine(j->scan->op), total, j->items);
}

static void scalar_total(chunk_job *j, uint32_t *total, uint32_t *factor) {
  emit *e = j->e;
  const bool linear = j->scan->op == IR_OP_scan_linear;
  const kir_type type = kir_t(j->dtype, 1);
  const uint32_t start[2] = {scan_identity(e, j->scan->op, type), linear ? kir_const_float(e->k, type, 1) : 0};
  uint32_t carried[2], next[2] = {0, 0}, last[2] = {0, 0};
  const ir_expr v = scan_loop(e, j->lo, j->hi, 1, linear ? 2 : 1, start, carried);
  const map_access at = scan_place(j, v);
  next[0] = scan_next(e, j->scan, carried[0], &at);
  if (linear && next[0]) next[1] = kir_2(e->k, KIR_mul, carried[1], emit_value(e, ir_arg(e->g, j->scan->group->hero, 0), &at));
  if (!next[0]) e->failed = true;
  emit_loop_end(e, v, linear ? 2 : 1, next, last);
  *total = last[0];
  *factor = last[1];
}

static snt_result build_totals(chunk_job *j) {
  SNT_TRY(begin(j, "totals"));
  emit *e = j->e;
  expr_pool *x = e->x;
  uint32_t total, factor = 0;
  const ir_expr chunks = expr_sub(x, expr_max(x, j->count, 1), 1); /* of a line; the last one's total is not needed */
  const ir_expr groups = open_chunk(j, expr_mul(x, j->lines, chunks), expr_max(x, chunks, 1));
  j->hi = expr_add(x, j->lo, j->size);
  if (j->lanes * j->items > 1) total = vector_total(j);
  else scalar_total(j, &total, &factor);
  if (j->items > 1) emit_if_below(e, j->item, 1);
  emit_store(e, emit_bind(e, j->totals, KIR_WRITE), j->dtype, total_offset(j, j->chunk), total);
  if (factor) emit_store(e, emit_bind(e, j->factors, KIR_WRITE), j->dtype, total_offset(j, j->chunk), factor);
  if (j->items > 1) emit_if_end(e);
  close_chunk(j);
  return emit_end(e, groups, 0, 0, NULL);
}

/* ---- walking ---- */

static uint32_t start_of_chunk(chunk_job *j) {
  emit *e = j->e;
  uint32_t carried, result, start = scan_identity(e, j->scan->op, kir_t(j->dtype, 1));
  if (j->count == 1) return start;
  const ir_expr v = emit_loop(
      e, &(emit_loop_info){
             .name = "t", .lo = j->item, .hi = j->chunk, .step = j->items, .carry_count = 1, .initial = &start, .carried = &carried});
  const uint32_t total = emit_load(e, emit_bind(e, j->totals, KIR_READ), j->dtype, total_offset(j, v), 0, NULL);
  uint32_t next;
  if (j->scan->op == IR_OP_scan_linear) {
    const uint32_t factor = emit_load(e, emit_bind(e, j->factors, KIR_READ), j->dtype, total_offset(j, v), 0, NULL);
    next = kir_2(e->k, KIR_add, kir_2(e->k, KIR_mul, factor, carried), total);
  } else {
    next = kir_2(e->k, scan_combine(j->scan->op), carried, total);
  }
  emit_loop_end(e, v, 1, &next, &result);
  return emit_group_combine(e, scan_combine(j->scan->op), result, j->items);
}

/* Lane i of the result is lane i - by of `value`, or of `before` where there is none. */
static uint32_t shifted(emit *e, uint32_t before, uint32_t value, uint32_t lanes, uint32_t by) {
  uint8_t from[16];
  for (uint32_t i = 0; i < lanes; i++) from[i] = (uint8_t)(lanes - by + i);
  return kir_shuffle(e->k, before, value, lanes, from);
}

/* A vector of elements to their running values after `carried`. */
static uint32_t scan_vector(emit *e, const chunk_job *j, uint32_t elements, uint32_t carried) {
  const kir_op op = scan_combine(j->scan->op);
  const uint32_t nothing = scan_identity(e, j->scan->op, kir_t(j->dtype, j->lanes));
  uint32_t sums = elements;
  for (uint32_t by = 1; by < j->lanes && !e->k->failed; by *= 2) sums = kir_2(e->k, op, shifted(e, nothing, sums, j->lanes, by), sums);
  return kir_2(e->k, op, kir_splat(e->k, carried, j->lanes), sums);
}

static uint32_t walk_vectors(chunk_job *j, uint32_t start, ir_expr end) {
  emit *e = j->e;
  uint32_t carried, result;
  const ir_expr v = scan_loop(e, j->lo, end, j->lanes, 1, &start, &carried);
  const map_access at = scan_place(j, emit_lanes(e, v, j->lanes));
  const uint32_t elements = kir_splat(e->k, emit_value(e, ir_arg(e->g, j->scan->group->hero, 0), &at), j->lanes);
  if (!elements) return 0;
  const uint32_t sums = scan_vector(e, j, elements, carried);
  const uint32_t next = kir_lane(e->k, sums, j->lanes - 1);
  if (e->failed || e->k->failed) return 0;
  const uint32_t before = j->scan->exclusive ? shifted(e, kir_splat(e->k, carried, j->lanes), sums, j->lanes, 1) : sums;
  (void)scan_store(e, j->scan, &at, before);
  emit_scalar_lanes(e);
  emit_loop_end(e, v, 1, &next, &result);
  return result;
}

static uint32_t walk_scalars(chunk_job *j, uint32_t start, ir_expr from) {
  emit *e = j->e;
  uint32_t carried, last;
  const ir_expr v = scan_loop(e, from, j->hi, 1, 1, &start, &carried);
  const map_access at = scan_place(j, v);
  const uint32_t next = scan_next(e, j->scan, carried, &at);
  if (!next || !scan_store(e, j->scan, &at, j->scan->exclusive ? carried : next)) {
    e->failed = true;
    return 0;
  }
  emit_loop_end(e, v, 1, &next, &last);
  return last;
}

static snt_result build_walk(chunk_job *j) {
  SNT_TRY(begin(j, "scan"));
  emit *e = j->e;
  expr_pool *x = e->x;
  const ir_expr groups = open_chunk(j, expr_mul(x, j->lines, j->count), j->count);
  uint32_t start = start_of_chunk(j);
  ir_expr from = j->lo;
  if (j->items > 1) {
    if (!scan_walk_tiles(j, start)) e->failed = true;
    return emit_end(e, groups, 0, 0, NULL);
  }
  if (j->lanes > 1) {
    from = expr_sub(x, j->hi, expr_mod(x, expr_sub(x, j->hi, j->lo), j->lanes));
    start = walk_vectors(j, start, from);
  }
  if (start) (void)walk_scalars(j, start, from);
  else e->failed = true;
  if (!e->failed) close_chunk(j);
  return emit_end(e, groups, 0, 0, NULL);
}

/* One chunk of every line a dispatch, in a loop of the plan: `totals` holds each line's running value between the trips. */
static snt_result build_turns(chunk_job *j) {
  fusion_context *c = j->c;
  expr_pool *x = c->graph->pool;
  SNT_TRY(begin(j, "scan"));
  emit *e = j->e;
  ir_expr groups;
  j->chunk = expr_var_add(x, "turn", 0, j->count, 1);
  if (x->failed) return ir_fail(c->diag, SNT_E_LIMIT, "schedule", j->scan->group->hero, "a line is too long");
  x->vars.at[emit_var_number(x, j->chunk)].plan = true;
  j->line = schedule_units(e, j->lines, schedule_hint(x, j->size), &groups);
  j->lo = expr_mul(x, j->chunk, j->size);
  j->hi = expr_min(x, expr_add(x, j->lo, j->size), j->extent);
  const uint32_t memory = emit_bind(e, j->totals, KIR_READ | KIR_WRITE), zero = kir_const_int(e->k, kir_t(SNT_U32, 1), 0);
  const uint32_t nothing = scan_identity(e, j->scan->op, kir_t(j->dtype, 1)), before = emit_load(e, memory, j->dtype, j->line, 0, NULL);
  const uint32_t last = walk_scalars(j, kir_3(e->k, KIR_select, kir_2(e->k, KIR_eq, emit_expr(e, j->chunk), zero), nothing, before), j->lo);
  if (last) emit_store(e, memory, j->dtype, j->line, last);
  schedule_units_end(e, j->line);
  const plan_loop loop = {.variable = j->chunk, .trips = j->count, .first = c->plan->steps.count, .end = c->plan->steps.count + 1};
  if (!IR_PUSH(c->plan->arena, &c->plan->loops, loop)) return ir_no_memory(c->diag, "schedule");
  return emit_end(e, groups, 0, 0, NULL);
}

snt_result schedule_scan_chunks(fusion_context *c, const scan_job *s) {
  expr_pool *x = c->graph->pool;
  const uint8_t dtype = ir_at(c->graph, s->group->hero)->type.dtype;
  chunk_job j = {.c = c, .scan = s, .extent = s->dims[s->axis], .items = 1};
  j.inner = schedule_product(x, s->rank - s->axis - 1, s->dims + s->axis + 1);
  j.lines = expr_mul(x, schedule_product(x, s->axis, s->dims), j.inner);
  j.dtype = dtype == SNT_F16 || dtype == SNT_BF16 ? SNT_F32 : dtype;
  if (!order_is_free(c, s)) {
    j.size = c->options->profile->max_trips / 2;
    j.count = expr_ceil_div(x, j.extent, j.size);
    j.totals = fusion_add_scratch(c, "running", j.dtype, j.lines);
    return build_turns(&j);
  }
  const int64_t extent = schedule_hint(x, j.extent), few = chunks_wanted(c, s), wanted = few < 4 ? 4 : few;
  j.items = scan_items(c, s, &j.lanes);
  if (j.items == 1) j.lanes = schedule_is_explicit(c) && j.inner == 1 && !s->reverse && s->op != IR_OP_scan_linear ? schedule_lanes(c) : 1;
  if (j.items > 1 && few < 4) {
    j.size = j.extent, j.count = 1;
    return build_walk(&j);
  }
  const int64_t unit = j.items > 1 ? j.items * j.lanes : 64;
  j.size = (ir_expr)(((extent + wanted - 1) / wanted + unit - 1) / unit * unit);
  j.count = expr_ceil_div(x, j.extent, j.size);
  j.totals = fusion_add_scratch(c, "totals", j.dtype, expr_mul(x, j.lines, j.count));
  if (s->op == IR_OP_scan_linear) j.factors = fusion_add_scratch(c, "factors", j.dtype, expr_mul(x, j.lines, j.count));
  SNT_TRY(build_totals(&j));
  return build_walk(&j);
}
