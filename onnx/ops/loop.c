/* Loop. Written out where every trip's condition is known and they are few, so that what depends on a trip's number (slices, shapes) is
   known, too; else a `repeat` of as many trips as there may be, which ends where the condition says so. What its graph says of itself
   (loop_facts.c) keeps known what is: values that never change are those around it, and counters are expressions over the trip's number. */
#include "onnx/ops.h"
#include "onnx/import_private.h"

static onnx_value *known_value(onnx_call *c, const char *name, int32_t dtype, ir_expr number) {
  onnx_value *v = IR_NEW(c->im->temp, onnx_value);
  onnx_number *at = IR_NEW(c->im->temp, onnx_number);
  if (!v || !at) return NULL;
  *at = (onnx_number){number, 1};
  *v = (onnx_value){.name = name, .type = {.dtype = (uint8_t)dtype}, .known = at};
  return v;
}

/* One trip over u->value: the next ones take their places, `slices` gets what is kept of it. */
static bool run_trip(onnx_call *c, onnx_unrolled *u, onnx_value *number, onnx_value **condition, onnx_value **slices) {
  onnx_value *in[ONNX_MOST_VALUES + 2], *out[2 * ONNX_MOST_VALUES + 1];
  in[0] = number, in[1] = *condition;
  if (!in[0] || !in[1]) return false;
  for (uint32_t i = 0; i < u->carried; i++) in[2 + i] = u->value[i];
  if (!onnx_import_body(c, u->body, 2 + u->carried, in, 1 + u->carried + u->slices, out)) return false;
  if (!onnx_is_truth(c, out[0])) return false;
  *condition = out[0];
  for (uint32_t i = 0; i < u->carried; i++) u->value[i] = out[1 + i];
  for (uint32_t i = 0; i < u->slices; i++)
    if (!onnx_all_of(c, slices[i] = out[1 + u->carried + i])) return false;
  return true;
}

/* ---- a loop that stays one ---- */
enum { MOST_IN_LOOP = 2 * ONNX_MOST_VALUES + 3 };
typedef struct in_loop {
  onnx_unrolled *u;
  onnx_loop_facts facts;
  onnx_value *start;  /* the first condition */
  uint32_t limit;     /* node of the most trips, where it is not known; 0: it is */
  ir_expr most, trip; /* trips, and the number of one */
  bool by_data;       /* its condition, or its limit, ends it */
  uint32_t number, goes_on, made, value[ONNX_MOST_VALUES], slice[ONNX_MOST_VALUES]; /* places among what is carried; UINT32_MAX: none */
  uint32_t count, initial[MOST_IN_LOOP], inside[MOST_IN_LOOP], next[MOST_IN_LOOP];
} in_loop;

static uint32_t carry(in_loop *l, uint32_t initial) {
  l->initial[l->count] = initial;
  return l->count++;
}

static bool is_carried(const in_loop *l, uint32_t i) { return !l->facts.same[i] && !l->facts.counts[i]; }

/* start + step * trips */
static ir_expr counted_to(const onnx_call *c, const in_loop *l, uint32_t i, ir_expr trips) {
  expr_pool *x = c->g->pool;
  return expr_add(x, l->facts.start[i], expr_mul(x, expr_int(x, l->facts.step[i]), trips));
}

/* Carried value i as the graph of a trip sees it, `at` being the nodes of what is carried. */
static onnx_value *seen_value(onnx_call *c, const in_loop *l, const uint32_t *at, uint32_t i) {
  onnx_value *before = l->facts.initial[i];
  if (l->facts.same[i]) return before;
  if (!l->facts.counts[i]) return onnx_value_of(c, "carried", at[l->value[i]]);
  onnx_value *v = known_value(c, "count", before->type.dtype, counted_to(c, l, i, l->trip));
  if (v) v->type = before->type;
  return v;
}

/* A trip over the nodes `at`: the nodes of its results in `next`, slices with an axis in front. */
static bool trip_of_nodes(onnx_call *c, in_loop *l, const uint32_t *at, onnx_value **condition, uint32_t *next) {
  onnx_unrolled *u = l->u;
  onnx_value *slices[ONNX_MOST_VALUES];
  const onnx_late trip = {.variable = (uint32_t)c->g->pool->nodes.at[IR_EXPR_NODE(l->trip)].value, .node = at[l->number]};
  for (uint32_t i = 0; i < u->carried; i++)
    if (!(u->value[i] = seen_value(c, l, at, i))) return false;
  if (!IR_PUSH(c->im->temp, &c->im->trips, trip)) return false;
  bool good = run_trip(c, u, known_value(c, "iteration", SNT_I64, l->trip), condition, slices);
  for (uint32_t i = 0; good && i < u->carried; i++)
    if (is_carried(l, i)) good = onnx_all_of(c, u->value[i]) && (next[l->value[i]] = onnx_node_of(c, u->value[i])) != 0;
  for (uint32_t i = 0; good && i < u->slices; i++) good = (next[l->slice[i]] = onnx_with_axis(c, onnx_node_of(c, slices[i]), 0)) != 0;
  const bool by_data = good && !onnx_known_flag(c, *condition, &(bool){false});
  if (by_data && at == l->inside) good = (next[l->goes_on] = onnx_reshape(c, onnx_node_of(c, *condition), 0, NULL)) != 0;
  if (c->im->trips.count) c->im->trips.count--;
  return good;
}

/* Where a carried value has another type behind the first trip, it has that from the start if nobody sees what it was: one element gets its axes of extent 1,
   and what no trip reads is nothing as long as there is a trip. */
static bool fits_next(onnx_call *c, in_loop *l, uint32_t i, bool again) {
  const uint32_t place = l->value[i];
  const ir_tensor before = *onnx_type_of(c, l->initial[place]), after = *onnx_type_of(c, l->next[place]);
  expr_pool *x = c->g->pool;
  bool first;
  if (before.dtype == after.dtype && ir_same_shape(&before, &after)) return true;
  if (again) return false;
  if (!l->facts.read[i] && !l->limit && onnx_known_flag(c, l->start, &first) && first && expr_proves_lt(x, 0, l->most))
    return (l->initial[place] = onnx_fill(c, &after, 0)) != 0;
  if (before.dtype != after.dtype || ir_tensor_elements(x, &before) != 1 || ir_tensor_elements(x, &after) != 1) return false;
  return (l->initial[place] = onnx_reshape(c, l->initial[place], after.rank, after.dims)) != 0;
}

/* A trip outside, which nobody reads: it shows the types, and what the graph takes from around it becomes nodes there. */
static bool look_at_trip(onnx_call *c, in_loop *l, bool again) {
  onnx_value *condition = known_value(c, "condition", SNT_BOOL, 1);
  bool changed = false, first, later;
  if (!condition || !trip_of_nodes(c, l, l->initial, &condition, l->next)) return false;
  l->by_data = l->limit || !onnx_known_flag(c, l->start, &first) || !first;
  if (!l->facts.alone) l->by_data |= !onnx_known_flag(c, condition, &later) || !later;
  for (uint32_t i = 0; i < l->u->carried; i++) {
    if (!is_carried(l, i)) continue;
    const uint32_t was = l->initial[l->value[i]];
    if (!fits_next(c, l, i, again))
      return onnx_refuse(c, "carried value %u (%.60s) has another shape behind a trip", i, l->facts.initial[i]->name);
    changed |= l->initial[l->value[i]] != was;
  }
  return !changed || look_at_trip(c, l, true);
}

static bool start_slices(onnx_call *c, in_loop *l) {
  for (uint32_t i = 0; i < l->u->slices; i++) {
    ir_tensor type = *onnx_type_of(c, l->next[l->slice[i]]);
    type.dims[0] = l->most;
    if (!(l->initial[l->slice[i]] = onnx_fill(c, &type, 0))) return false;
  }
  return true;
}

static bool go_on(onnx_call *c, in_loop *l) {
  onnx_value *condition = known_value(c, "condition", SNT_BOOL, 1);
  bool known;
  if (!condition || !trip_of_nodes(c, l, l->inside, &condition, l->next)) return false;
  const uint32_t behind = l->next[l->number] = onnx_2n(c, IR_OP_add, l->inside[l->number], 1);
  l->next[l->made] = l->inside[l->made];
  if (!l->by_data) l->next[l->goes_on] = l->inside[l->goes_on];
  if (l->by_data) {
    if (onnx_known_flag(c, condition, &known)) l->next[l->goes_on] = onnx_scalar(c, SNT_BOOL, known);
    if (l->limit) l->next[l->goes_on] = onnx_2(c, IR_OP_and, l->next[l->goes_on], onnx_2(c, IR_OP_lt, behind, l->limit));
    l->next[l->made] = onnx_2n(c, IR_OP_add, l->inside[l->made], 1);
    ir_repeat_while(c->g, l->goes_on);
  }
  for (uint32_t i = 0; i < l->u->slices; i++) {
    const uint32_t at = l->slice[i];
    const ir_tensor *type = onnx_type_of(c, l->inside[at]);
    const uint32_t here = onnx_2(c, IR_OP_eq, onnx_iota(c, SNT_I64, type->rank, type->dims, 0), l->inside[l->number]);
    l->next[at] = here ? onnx_select(c, here, l->next[at], l->inside[at]) : 0;
  }
  for (uint32_t i = 0; i < l->count; i++)
    if (!l->next[i]) return false;
  return true;
}

/* Where a counter is at the end: known if the number of trips is. */
static bool give_count(onnx_call *c, const in_loop *l, uint32_t i, uint32_t made) {
  const ir_tensor type = l->facts.initial[i]->type;
  if (!l->by_data) {
    onnx_number *at = IR_NEW(c->im->temp, onnx_number);
    if (!at) return false;
    *at = (onnx_number){counted_to(c, l, i, l->most), 1};
    return onnx_out_known(c, i, &type, at);
  }
  const uint32_t far = onnx_2(c, IR_OP_mul, made, onnx_scalar(c, SNT_I64, (double)l->facts.step[i]));
  const uint32_t end = onnx_2(c, IR_OP_add, far, onnx_extent(c, l->facts.start[i], SNT_I64));
  return onnx_out(c, i, onnx_reshape(c, onnx_cast(c, end, type.dtype), type.rank, type.dims));
}

static bool give_all(onnx_call *c, const in_loop *l, const uint32_t *results) {
  const uint32_t made = l->by_data ? results[l->made] : 0;
  const ir_expr trips = made && l->u->slices ? onnx_late_number(c, made, l->most) : 0;
  for (uint32_t i = 0; i < l->u->carried; i++) {
    const bool good = l->facts.same[i]     ? onnx_give(c, i, l->facts.initial[i])
                      : l->facts.counts[i] ? give_count(c, l, i, made)
                                           : onnx_out(c, i, results[l->value[i]]);
    if (!good) return false;
  }
  for (uint32_t i = 0; i < l->u->slices; i++) {
    const uint32_t result = l->u->carried + i;
    const uint32_t slices = results[l->slice[i]];
    if (!(l->by_data ? onnx_out_counted(c, result, slices, trips, 0, 0) : onnx_out(c, result, slices))) return false;
  }
  return true;
}

/* Room for what is carried; of slices the shape is not known yet. */
static bool start_values(onnx_call *c, in_loop *l) {
  const uint32_t flag = onnx_node_of(c, l->start);
  l->goes_on = carry(l, flag ? onnx_reshape(c, flag, 0, NULL) : 0);
  l->number = carry(l, onnx_scalar(c, SNT_I64, 0)), l->made = carry(l, onnx_scalar(c, SNT_I64, 0));
  if (l->limit) l->initial[l->goes_on] = onnx_2(c, IR_OP_and, l->initial[l->goes_on], onnx_2n(c, IR_OP_gt, l->limit, 0));
  for (uint32_t i = 0; i < l->u->carried; i++) l->value[i] = is_carried(l, i) ? carry(l, onnx_node_of(c, l->facts.initial[i])) : UINT32_MAX;
  for (uint32_t i = 0; i < l->count; i++)
    if (!l->initial[i]) return false;
  for (uint32_t i = 0; i < l->u->slices; i++) l->slice[i] = carry(l, 0);
  return true;
}

/* The most trips: the count, what the condition compares, or the less of both. */
static bool bound_trips(onnx_call *c, in_loop *l, ir_expr given) {
  expr_pool *x = c->g->pool;
  l->most = given == INT64_MAX ? l->facts.most : l->facts.most == INT64_MAX ? given : expr_min(x, given, l->facts.most);
  if (l->most == INT64_MAX)
    return onnx_refuse(c,
                       "its end depends on data, and nothing says how many trips there may be: its count is %s, and its condition compares "
                       "no counter with a known number",
                       l->limit ? "not known when the model is loaded" : "left out");
  l->most = expr_max(x, l->most, 0);
  if (onnx_uses_trip(c->im, l->most)) { /* of the loop around it: as many as there can be in any of its trips */
    int64_t low;
    expr_bounds(x, l->most, &low, &l->most);
    l->facts.alone = false;
  }
  l->trip = expr_var_add(x, "trip", 0, l->most, 1);
  return !x->failed;
}

/* No trip: the graph is looked at for the shapes of what it would keep. */
static bool give_nothing(onnx_call *c, onnx_unrolled *u, onnx_value **initial) {
  onnx_value *condition = known_value(c, "condition", SNT_BOOL, 1), *slices[ONNX_MOST_VALUES];
  for (uint32_t i = 0; i < u->carried; i++)
    if (!onnx_give(c, i, u->value[i] = initial[i])) return false;
  if (u->slices && !run_trip(c, u, known_value(c, "iteration", SNT_I64, 0), &condition, slices)) return false;
  for (uint32_t i = 0; i < u->slices; i++) {
    const uint32_t one = onnx_with_axis(c, onnx_node_of(c, slices[i]), 0);
    if (!one) return false;
    ir_tensor type = *onnx_type_of(c, one);
    type.dims[0] = 0;
    if (!onnx_out(c, u->carried + i, onnx_fill(c, &type, 0))) return false;
  }
  return true;
}

static bool repeat_trips(onnx_call *c, onnx_unrolled *u, onnx_value **initial, onnx_value *start, ir_expr most, uint32_t limit) {
  uint32_t results[MOST_IN_LOOP];
  in_loop *l = IR_NEW(c->im->temp, in_loop);
  if (!l) return false;
  *l = (in_loop){.u = u, .facts = {.body = u->body, .carried = u->carried, .initial = initial}, .start = start, .limit = limit};
  if (!onnx_find_loop_facts(c, &l->facts) || !bound_trips(c, l, most)) return false;
  if (l->most == 0) return give_nothing(c, u, initial);
  if (!start_values(c, l) || !look_at_trip(c, l, false) || !start_slices(c, l)) return false;
  ir_repeat_begin(c->g, l->count, l->initial, l->most, l->inside);
  const bool good = !c->g->failed && go_on(c, l);
  ir_repeat_end(c->g, l->count, good ? l->next : l->inside, results);
  return good && !c->g->failed && give_all(c, l, results);
}

bool onnx_repeat_graph(onnx_call *c, onnx_unrolled *u, onnx_value **initial, ir_expr trips) {
  return repeat_trips(c, u, initial, known_value(c, "condition", SNT_BOOL, 1), trips, 0);
}

/* The count, if it is given: a number or an expression over symbols, or the node of what is known only later. */
static bool read_limit(onnx_call *c, ir_expr *most, uint32_t *limit) {
  *most = INT64_MAX, *limit = 0;
  if (!onnx_has(c, 0)) return true;
  const onnx_number *known = onnx_known(c, 0);
  if (onnx_count(c->in[0]) != 1 || !ir_dtypes[c->in[0]->type.dtype].is_int)
    return onnx_refuse(c, "its count %.60s is not one whole number", c->in[0]->name);
  if (known && !onnx_uses_trip(c->im, known->num)) *most = known->num;
  else *limit = onnx_cast(c, onnx_scalar_in(c, 0), SNT_I64);
  return !c->refused;
}

/* Trips written out as long as it is known that they are made; false: that is not known of the next one, or something was refused. */
static bool write_out(onnx_call *c, onnx_unrolled *u, onnx_value *condition, int64_t most, uint32_t *trips) {
  onnx_value *slices[ONNX_MOST_VALUES];
  bool again;
  for (; (int64_t)*trips < most; ++*trips) {
    if (!onnx_known_flag(c, condition, &again) || (again && *trips == ONNX_MOST_TRIPS)) return false;
    if (!again) break;
    if (!run_trip(c, u, known_value(c, "iteration", SNT_I64, *trips), &condition, slices)) return false;
    for (uint32_t i = 0; i < u->slices; i++)
      if (!(u->part[i][*trips] = onnx_with_axis(c, onnx_node_of(c, slices[i]), 0))) return false;
  }
  return true;
}

bool onnx_op_loop(onnx_call *c) {
  onnx_unrolled u = {.body = onnx_graph_attr(c, "body")};
  onnx_value *start = onnx_has(c, 1) ? c->in[1] : known_value(c, "condition", SNT_BOOL, 1);
  const uint32_t inputs = c->node->inputs.count;
  ir_expr most;
  int64_t fixed;
  uint32_t trips = 0, limit;
  if (!u.body || !start || !onnx_is_truth(c, start) || !read_limit(c, &most, &limit)) return false;
  u.carried = inputs > 2 ? inputs - 2 : 0;
  if (u.carried > c->out_count || c->out_count > ONNX_MOST_VALUES)
    return onnx_refuse(c, "%u results for %u carried values", c->out_count, u.carried);
  u.slices = c->out_count - u.carried;
  for (uint32_t i = 0; i < u.carried; i++)
    if (!onnx_has(c, 2 + i) || !(u.value[i] = c->in[2 + i])) return onnx_refuse(c, "input %u is missing", 2 + i);
  if (limit || !expr_is_const(c->g->pool, most, &fixed)) return repeat_trips(c, &u, &c->in[2], start, most, limit);
  if (!onnx_start_slices(c, &u)) return false;
  if (!write_out(c, &u, start, fixed, &trips))
    return !c->refused && !c->im->failed && !c->im->again && repeat_trips(c, &u, &c->in[2], start, most, limit);
  return trips ? onnx_give_trips(c, &u, trips, NULL) : give_nothing(c, &u, &c->in[2]);
}
