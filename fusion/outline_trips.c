/* Repeats of few trips, written out. In: a repeat, as outline has sorted what it carries. Out: the body again and again in the graph around; rows that
   trips set one after the other are a concatenation. Whether that is better than a loop is the device's to say. */
#include "fusion/outline_private.h"

enum { UNROLL_TRIPS = 8, UNROLL_NODES = 128, RECURRENCE_TRIPS = 16, LEAST_LOOP_TRIPS = 5, ITEM_PRODUCTS = 2 };

/* Is all that becomes of carried value k that each trip sets its own row, from the first to the last or backwards, and all rows are set? */
static bool sets_rows(const taken *t, uint32_t k, int64_t trips) {
  const ir_graph *g = t->o->from;
  const uint32_t set = outline_yields(t)[k], index = ir_at(g, set)->op == IR_OP_scatter_set ? ir_arg(g, set, 1) : 0;
  if (!index || ir_at(g, index)->op != IR_OP_argument || ir_at(g, index)->type.rank || !outline_is_argument(t, ir_arg(g, set, 0), k))
    return false;
  const uint32_t counter = (uint32_t)ir_attr_int(g, index, IR_ATTR_index, 0);
  const ir_expr rows = ir_at(g, set)->type.dims[ir_attr_int(g, set, IR_ATTR_axis, 0)];
  if (!outline_is_argument(t, index, counter) || !t->counts[counter] || rows != expr_int(g->pool, trips)) return false;
  if (t->start[counter] != expr_int(g->pool, t->step[counter] < 0 ? trips - 1 : 0)) return false;
  if (t->step[counter] != 1 && t->step[counter] != -1) return false;
  for (uint32_t n = 1; n < t->owner; n++)
    for (uint32_t i = 0; i < ir_at(g, n)->arity; i++)
      if (outline_is_argument(t, ir_arg(g, n, i), k) && n != set) return false;
  return true;
}

/* What a trip sets, as a row, at its place. */
static void keep_row(const taken *t, uint32_t k, int64_t trip, int64_t trips, uint32_t *rows) {
  const ir_graph *g = t->o->from;
  const uint32_t set = outline_yields(t)[k];
  ir_tensor type = ir_at(g, set)->type;
  type.dims[ir_attr_int(g, set, IR_ATTR_axis, 0)] = 1;
  const ir_attr_value shape = {IR_ATTR_shape, type.rank, type.dims};
  const bool backwards = t->step[ir_attr_int(g, ir_arg(g, set, 1), IR_ATTR_index, 0)] < 0;
  rows[k * trips + (backwards ? trips - 1 - trip : trip)] = ir_add_node(t->o->to, IR_OP_reshape, 1, &t->o->map[ir_arg(g, set, 2)], 1,
                                                                        &shape, NULL);
}

/* Of a recurrence of few trips, whose weights a trip reads: as launches its trips are no slower than as a loop, and the first needs no product with a state
   of zeros, on explicit vectors where there are fewer still or the units' own caches do not hold the weights, on lanes, where one group goes through all
   trips of a loop, where its items have more than a few products each. */
static bool is_recurrence_apart(const taken *t, int64_t trips, double weights) {
  const cost_profile *p = t->o->c->options->profile;
  bool rows = false;
  for (uint32_t k = 0; k < t->o->from->regions.at[t->region].count; k++) rows |= t->rows[k];
  if (p->simd == COST_SIMD_EXPLICIT) return rows && (trips < LEAST_LOOP_TRIPS || weights > p->l2_bytes * p->units);
  return rows && weights / sizeof(float) > ITEM_PRODUCTS * p->group_items;
}

static double bytes_of(const ir_graph *g, uint32_t node) {
  const ir_tensor *type = &ir_at(g, node)->type;
  int64_t elements = 0;
  (void)expr_is_const(g->pool, ir_tensor_elements(g->pool, type), &elements);
  return (double)elements * (outline_what(g, node, OUTLINE_DEEP) == OUTLINE_WIDENED ? 1 : ir_dtypes[type->dtype].bytes);
}

bool outline_is_better_apart(taken *t, int64_t *trips) {
  const ir_graph *g = t->o->from;
  if (!expr_is_const(g->pool, t->trips, trips) || *trips > RECURRENCE_TRIPS) return false;
  uint32_t nodes = 0, heavy = 0;
  double weights = 0;
  for (uint32_t n = 1; n < t->owner; n++) {
    const ir_node *node = ir_at(g, n);
    if (!outline_lies_inside(g, node->region, t->region)) continue;
    if (node->region != t->region || node->op == IR_OP_repeat) return *trips == 0;
    nodes++;
    heavy += !(ir_ops[node->op].flags & (IR_POINTWISE | IR_MOVEMENT | IR_SOURCE)) && node->op != IR_OP_argument;
    if (node->op == IR_OP_contract) weights += bytes_of(g, ir_arg(g, n, 1));
  }
  for (uint32_t k = 0; k < g->regions.at[t->region].count; k++) t->rows[k] = *trips && t->goes_on < 0 && sets_rows(t, k, *trips);
  if (*trips <= 1 || is_recurrence_apart(t, *trips, weights)) return true;
  return !heavy && *trips <= UNROLL_TRIPS && nodes * (uint64_t)*trips <= UNROLL_NODES;
}

bool outline_write_out(taken *t, int64_t trips, uint32_t *results) {
  outline *o = t->o;
  const ir_graph *g = o->from;
  const ir_region *r = &g->regions.at[t->region];
  uint32_t *rows = IR_NEW_ARRAY(o->c->arena, uint32_t, r->count * (size_t)trips + 1);
  if (!rows) return false;
  for (uint32_t k = 0; k < r->count; k++) results[k] = o->map[ir_arg(g, t->owner, k)];
  for (int64_t trip = 0; trip < trips && !o->to->failed; trip++) {
    for (uint32_t n = 1; n < t->owner && !o->to->failed; n++) {
      const ir_node *node = ir_at(g, n);
      if (node->region != t->region) continue;
      if (node->op == IR_OP_argument) o->map[n] = results[ir_attr_int(g, n, IR_ATTR_index, 0)];
      else o->map[n] = outline_copy(o, o->to, n, o->map);
    }
    const uint32_t flag = t->goes_on < 0 ? 0 : results[t->goes_on];
    for (uint32_t k = 0; k < r->count; k++) {
      const uint32_t next = o->map[outline_yields(t)[k]];
      if (t->rows[k]) keep_row(t, k, trip, trips, rows);
      results[k] = flag ? outline_guard(o->to, t->goes_on == (int64_t)k, flag, next, results[k]) : next;
    }
    if (!outline_copy_contracts(o, o->to, o->map, t->region)) return false;
  }
  for (uint32_t k = 0; k < r->count; k++) {
    const ir_expr axis = t->rows[k] ? ir_attr_int(g, outline_yields(t)[k], IR_ATTR_axis, 0) : 0;
    const ir_attr_value along = {IR_ATTR_axis, 1, &axis};
    if (t->rows[k]) results[k] = ir_add_node(o->to, IR_OP_concat, (uint32_t)trips, rows + k * trips, 1, &along, NULL);
  }
  return !o->to->failed;
}
