/* Helpers of the schedules; see the header. Nothing here knows a group kind. */
#include "fusion/schedule_common.h"
#include "fusion/emit_private.h"

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
    return emit_steps(e, "u", lo, expr_min(x, expr_add(x, lo, expr_int(x, per)), units), 1);
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

void schedule_join(emit *e, uint32_t *rows, const uint32_t *more, uint32_t width) {
  static const uint8_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  for (uint32_t i = 0; i < width; i++) rows[i] = kir_shuffle(e->k, rows[i], more[i], 2 * width, numbers);
}
