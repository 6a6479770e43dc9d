/* Helpers of the schedules; see the header. Nothing here knows a group kind. */
#include "fusion/schedule_common.h"
#include "fusion/emit_private.h"

ir_expr schedule_product(expr_pool *x, uint32_t count, const ir_expr *dims) {
  ir_expr p = 1;
  for (uint32_t i = 0; i < count; i++) p = expr_mul(x, p, dims[i]);
  return p;
}

int64_t schedule_hint(const expr_pool *x, ir_expr e) {
  int64_t values[64], out;
  const uint32_t count = x->symbols.count < 64 ? x->symbols.count : 64;
  for (uint32_t i = 0; i < count; i++)
    values[i] = x->symbols.at[i].hint > 0 ? x->symbols.at[i].hint : x->symbols.at[i].max < 1024 ? x->symbols.at[i].max : 1024;
  return expr_eval(x, e, &(expr_values){.symbols = values}, &out) ? out : 1;
}

static bool guards_hold(const ir_plan *p, const plan_step *s) {
  for (uint32_t i = 0; i < s->guard_count; i++) {
    const int64_t value = schedule_hint(p->pool, s->guards[i].value);
    if (value < schedule_hint(p->pool, s->guards[i].lo) || value >= schedule_hint(p->pool, s->guards[i].hi)) return false;
  }
  return true;
}

bool schedule_runs(const ir_plan *p, uint32_t step) {
  const uint32_t choice = p->steps.at[step].choice;
  for (uint32_t i = step; choice && i-- > 0;) {
    const plan_step *earlier = &p->steps.at[i];
    if (earlier->choice && earlier->choice != choice) break; /* the steps of two choices do not mix */
    if (earlier->choice && guards_hold(p, earlier)) return false;
  }
  return guards_hold(p, &p->steps.at[step]);
}

double schedule_bytes(const fusion_context *c, uint32_t node) {
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  return (double)schedule_hint(c->graph->pool, ir_tensor_elements(c->graph->pool, t)) * ir_dtypes[t->dtype].bytes;
}

bool schedule_is_explicit(const fusion_context *c) { return c->options->profile->simd == COST_SIMD_EXPLICIT; }

uint32_t schedule_lanes(const fusion_context *c) {
  if (!schedule_is_explicit(c)) return 4;
  const cost_profile *p = c->options->profile;
  return p->lanes >= 16 && p->caps.max_lanes >= 16 ? 16 : p->lanes >= 8 ? 8 : 4;
}

uint32_t schedule_dear_lanes(const fusion_context *c) {
  const uint32_t lanes = schedule_lanes(c);
  return schedule_is_explicit(c) && 2 * lanes <= c->options->profile->caps.max_lanes ? 2 * lanes : lanes;
}

uint32_t schedule_item_lanes(const fusion_context *c) { return c->options->profile->caps.flushes ? 1 : 4; }

bool schedule_is_packed(const fusion_context *c, int32_t dtype) {
  const kir_caps *caps = &c->options->profile->caps;
  switch (dtype) {
  case SNT_F16: return !caps->f16_storage;
  case SNT_BF16: return !caps->bf16_storage;
  case SNT_I8:
  case SNT_U8: return !caps->int8_storage;
  case SNT_I16:
  case SNT_U16: return !caps->int16_storage;
  default: return false;
  }
}

bool schedule_has_dear(const ir_graph *g, const fusion_group *group) {
  for (uint32_t i = 0; i < group->count; i++)
    if (ir_ops[ir_at(g, group->nodes[i])->op].flags & IR_EXPENSIVE) return true;
  return false;
}

void schedule_space_split(fusion_context *c, schedule_space *s, uint32_t split) {
  s->split = split;
  s->rows = schedule_product(c->graph->pool, split, s->dims);
  s->columns = schedule_product(c->graph->pool, s->rank - split, s->dims + split);
}

void schedule_space_init(fusion_context *c, schedule_space *s, const ir_tensor *t, uint32_t split) {
  *s = (schedule_space){.rank = t->rank};
  memcpy(s->dims, t->dims, sizeof s->dims);
  schedule_space_split(c, s, split);
}

map_access schedule_at(expr_pool *x, const schedule_space *s, ir_expr row, ir_expr column) {
  map_access a = {.rank = s->rank};
  map_delinear(x, row, s->split, s->dims, a.at);
  map_delinear(x, column, s->rank - s->split, s->dims + s->split, a.at + s->split);
  for (uint32_t i = 0; i < s->rank; i++) a.at[i] = expr_add(x, s->origin[i], a.at[i]);
  return a;
}

typedef struct affinity {
  const fusion_context *c;
  uint32_t var;
  bool good;
} affinity;

static void check_load(void *user, const fusion_load *load) {
  affinity *a = user;
  expr_pool *x = a->c->graph->pool;
  int64_t coef;
  ir_expr rest;
  if (map_never_holds(x, load->access, 0)) return;
  const ir_expr offset = fusion_stored_offset(a->c, load->node, load->access);
  if (!expr_split_affine(x, offset, a->var, &coef, &rest)) a->good = false;
  for (uint32_t i = 0; i < load->access->condition_count; i++)
    if (expr_uses_var(x, load->access->conditions[i].value, a->var)) a->good = false;
}

void schedule_pick_split(fusion_context *c, const fusion_group *group, uint32_t node, schedule_space *space) {
  expr_pool *x = c->graph->pool;
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  for (uint32_t split = 0; split < t->rank; split++) {
    schedule_space_split(c, space, split);
    const ir_expr row = split ? expr_var_add(x, "r", 0, space->rows, 1) : 0, column = expr_var_add(x, "c", 0, space->columns, 1);
    affinity a = {c, emit_var_number(x, column), true};
    for (uint32_t i = 0; i < group->output_count && a.good; i++) {
      schedule_space own = *space;
      const ir_tensor *ot = &ir_at(c->graph, group->outputs[i])->type;
      if (!ir_same_shape(ot, t)) {
        a.good = split == 0;
        schedule_space_init(c, &own, ot, 0);
      }
      const map_access at = schedule_at(x, &own, row, column);
      if (!fusion_walk_loads(c, group, group->outputs[i], &at, check_load, &a)) a.good = false;
    }
    if (a.good) return;
  }
  schedule_space_split(c, space, t->rank ? t->rank - 1 : 0);
}

double schedule_least_parts(const fusion_context *c) {
  const cost_profile *p = c->options->profile;
  return p->units * 4 > p->min_groups ? p->units * 4 : p->min_groups;
}

ir_expr schedule_split_work(fusion_context *c, ir_expr total, int64_t unit_elements, int64_t *per) {
  expr_pool *x = c->graph->pool;
  const double units = schedule_hint(x, total), elements = units * (double)unit_elements;
  double share = 65536; /* elements a group: long enough to hide its start, short enough to even out */
  const double parts = schedule_least_parts(c);
  if (elements / share < parts) share = elements / parts;
  if (share < 2048) share = 2048;
  *per = (int64_t)(share / (double)unit_elements);
  if (*per < 1) *per = 1;
  int64_t literal;
  if (expr_is_const(x, total, &literal)) { /* even parts */
    const int64_t groups = (literal + *per - 1) / *per;
    *per = groups ? (literal + groups - 1) / groups : 1;
  }
  return expr_ceil_div(x, total, expr_int(x, *per));
}

ir_expr schedule_part_start(expr_pool *x, ir_expr extent, ir_expr parts, ir_expr p) {
  return expr_add(x, expr_mul(x, p, expr_div(x, extent, parts)), expr_div(x, expr_mul(x, p, expr_mod(x, extent, parts)), parts));
}

uint32_t schedule_spare_bindings(const fusion_context *c, const fusion_group *group) {
  const uint32_t limit = c->options->profile->max_bindings, used = group->input_count + group->output_count;
  return !limit ? UINT32_MAX : limit > used ? limit - used : 0;
}

/* All inputs and outputs once, at the hints. */
static double group_bytes(fusion_context *c, const fusion_group *group) {
  double bytes = 0;
  const uint32_t *lists[2] = {group->inputs, group->outputs};
  const uint32_t counts[2] = {group->input_count, group->output_count};
  for (int l = 0; l < 2; l++)
    for (uint32_t i = 0; i < counts[l]; i++) bytes += schedule_bytes(c, lists[l][i]);
  return bytes;
}

bool schedule_streams(fusion_context *c, const fusion_group *group, bool runs) {
  const cost_profile *p = c->options->profile;
  return p->caps.stream && !(runs && p->plain_runs) && group_bytes(c, group) > p->stream_threshold;
}

static void loop_part(emit *e, ir_expr lo, ir_expr hi, uint32_t lanes, uint32_t unroll, schedule_body body, void *user) {
  int64_t trips;
  const bool known = expr_is_const(e->x, expr_sub(e->x, hi, lo), &trips);
  if (known && trips <= 0) return;
  if (known && trips == (int64_t)lanes) { /* one trip: no loop */
    body(e, user, emit_lanes(e, lo, lanes));
    emit_scalar_lanes(e);
    return;
  }
  const ir_expr v = emit_loop(e, &(emit_loop_info){.name = "c", .lo = lo, .hi = hi, .step = lanes, .whole = true, .unroll = unroll});
  body(e, user, emit_lanes(e, v, lanes));
  emit_scalar_lanes(e);
  emit_loop_end(e, v, 0, NULL, NULL);
}

/* What does not fill a vector takes vectors of a quarter, then single elements. */
void schedule_vector_loop(emit *e, ir_expr lo, ir_expr hi, uint32_t lanes, uint32_t unroll, schedule_body body, void *user) {
  const ir_expr length = expr_sub(e->x, hi, lo), whole = expr_sub(e->x, hi, expr_mod(e->x, length, lanes));
  loop_part(e, lo, whole, lanes, unroll, body, user);
  if (lanes > 1 && whole != hi) schedule_vector_loop(e, whole, hi, lanes > 4 ? lanes / 4 : 1, 0, body, user);
}

ir_expr schedule_units(emit *e, ir_expr units, int64_t elements, ir_expr *groups) {
  expr_pool *x = e->x;
  if (schedule_is_explicit(e->c)) {
    int64_t per;
    *groups = schedule_split_work(e->c, units, elements, &per);
    const ir_expr lo = expr_mul(x, emit_group(e, *groups), expr_int(x, per));
    return emit_loop(e, &(emit_loop_info){.name = "u", .lo = lo, .hi = expr_min(x, expr_add(x, lo, expr_int(x, per)), units), .step = 1});
  }
  const cost_profile *p = e->c->options->profile;
  uint32_t items = (uint32_t)p->group_items;
  if (items > p->max_items) items = p->max_items;
  *groups = expr_ceil_div(x, units, (ir_expr)items);
  const ir_expr item = emit_item(e, 0, items), unit = expr_add(x, expr_mul(x, emit_group(e, *groups), (ir_expr)items), item);
  emit_if_below(e, unit, units);
  return unit;
}

void schedule_units_end(emit *e, ir_expr unit) {
  if (schedule_is_explicit(e->c)) emit_loop_end(e, unit, 0, NULL, NULL);
  else emit_if_end(e);
}
