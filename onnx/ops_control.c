/* If, Loop and Scan. A condition that is known picks a branch; one that is not picks between the results of both. Loops of few
   trips that are known are written out, so that what depends on the trip's number (slices, shapes) is known, too; others stay loops (`repeat`). */
#include "onnx/ops.h"
#include "onnx/import_private.h"

enum { MOST_TRIPS = 256, MOST_VALUES = 64 };

static bool give(onnx_call *c, uint32_t i, onnx_value *v) {
  if (v->known) return onnx_out_known(c, i, &v->type, v->known);
  return onnx_out(c, i, onnx_node_of(c, v));
}

static onnx_value *known_value(onnx_call *c, const char *name, int32_t dtype, int64_t number) {
  onnx_value *v = IR_NEW(c->im->temp, onnx_value);
  onnx_number *at = IR_NEW(c->im->temp, onnx_number);
  if (!v || !at) return NULL;
  *at = (onnx_number){expr_int(c->g->pool, number), 1};
  *v = (onnx_value){.name = name, .type = {.dtype = (uint8_t)dtype}, .known = at};
  return v;
}

/* Whether a value is a known true or false. */
static bool known_flag(onnx_call *c, onnx_value *v, bool *out) {
  const onnx_number *known = onnx_value_known(c->im, v);
  int64_t number;
  if (!known || onnx_count(v) != 1 || !expr_is_const(c->g->pool, known[0].num, &number)) return false;
  *out = number != 0;
  return true;
}

static const onnx_graph *graph_attr(onnx_call *c, const char *name) {
  const onnx_attr *a = onnx_find_attr(c, name);
  if (a && a->kind == ONNX_GRAPH && a->graph) return a->graph;
  onnx_refuse(c, "attribute %s is no graph", name);
  return NULL;
}

/* ---- If ---- */
bool onnx_op_if(onnx_call *c) {
  const onnx_graph *branches[] = {graph_attr(c, "else_branch"), graph_attr(c, "then_branch")};
  onnx_value *out[2][MOST_VALUES];
  bool taken;
  if (!branches[0] || !branches[1] || !onnx_has(c, 0) || c->out_count > MOST_VALUES) return onnx_refuse(c, "%u results", c->out_count);
  if (known_flag(c, c->in[0], &taken)) {
    if (!onnx_import_body(c, branches[taken], 0, NULL, c->out_count, out[0])) return false;
    for (uint32_t i = 0; i < c->out_count; i++)
      if (!give(c, i, out[0][i])) return false;
    return true;
  }
  const uint32_t condition = onnx_scalar_in(c, 0);
  if (!condition) return false;
  for (uint32_t b = 0; b < 2; b++)
    if (!onnx_import_body(c, branches[b], 0, NULL, c->out_count, out[b])) return false;
  for (uint32_t i = 0; i < c->out_count; i++) {
    const uint32_t no = onnx_node_of(c, out[0][i]), yes = onnx_node_of(c, out[1][i]);
    if (!no || !yes) return false;
    if (onnx_type_of(c, no)->dtype != onnx_type_of(c, yes)->dtype || !ir_same_shape(onnx_type_of(c, no), onnx_type_of(c, yes)))
      return onnx_refuse(c, "the branches give result %u of different types, and the condition is not known", i);
    if (!onnx_out(c, i, ir_add3(c->g, IR_OP_select, condition, yes, no))) return false;
  }
  return true;
}

/* ---- what Loop and Scan share: values carried from trip to trip, and a slice of each trip ---- */
typedef struct unrolled {
  const onnx_graph *body;
  uint32_t carried, slices; /* results of the body: (a condition,) carried values, slices */
  onnx_value *value[MOST_VALUES];
  uint32_t *part[MOST_VALUES]; /* node of each trip's slice, with an axis of extent 1 */
} unrolled;

static bool start_slices(onnx_call *c, unrolled *u) {
  for (uint32_t i = 0; i < u->slices; i++)
    if (!(u->part[i] = ir_arena_take(c->im->temp, MOST_TRIPS * sizeof *u->part[i], _Alignof(uint32_t)))) return false;
  return true;
}

/* A node with an axis of extent 1 more, or less. */
static uint32_t with_axis(onnx_call *c, uint32_t node, uint32_t axis) {
  if (!node) return 0;
  ir_tensor t = *onnx_type_of(c, node);
  if (t.rank == SNT_MAX_RANK || axis > t.rank) return onnx_refuse(c, "rank %u", t.rank), 0;
  for (uint32_t i = t.rank; i > axis; i--) t.dims[i] = t.dims[i - 1];
  t.dims[axis] = 1;
  return onnx_reshape(c, node, t.rank + 1u, t.dims);
}

static uint32_t without_axis(onnx_call *c, uint32_t node, uint32_t axis) {
  if (!node) return 0;
  ir_tensor t = *onnx_type_of(c, node);
  for (uint32_t i = axis; i + 1 < t.rank; i++) t.dims[i] = t.dims[i + 1];
  return onnx_reshape(c, node, t.rank - 1u, t.dims);
}

static bool give_results(onnx_call *c, const unrolled *u, uint32_t trips, const uint32_t *axes) {
  for (uint32_t i = 0; i < u->carried; i++)
    if (!give(c, i, u->value[i])) return false;
  for (uint32_t i = 0; i < u->slices; i++) {
    if (trips == 0) return onnx_refuse(c, "no trip: the shape of result %u is not known", u->carried + i);
    if (!onnx_out(c, u->carried + i, onnx_concat(c, axes ? axes[i] : 0, trips, u->part[i]))) return false;
  }
  return true;
}

/* ---- Loop ---- */
/* The most trips there can be: the count, if it is given, as a number or an expression over symbols; false if it is not known. */
static bool loop_trips(onnx_call *c, ir_expr *most) {
  *most = INT64_MAX;
  if (!onnx_has(c, 0)) return true;
  const onnx_number *known = onnx_known(c, 0);
  if (!known || onnx_count(c->in[0]) != 1 || known->den != 1) return onnx_refuse(c, "how many trips there may be must be known");
  *most = known->num;
  return true;
}

/* One trip over u->value: the next ones take their places, `slices` gets what is kept of it. */
static bool run_trip(onnx_call *c, unrolled *u, onnx_value *number, onnx_value **condition, onnx_value **slices) {
  onnx_value *in[MOST_VALUES + 2], *out[2 * MOST_VALUES + 1];
  in[0] = number, in[1] = *condition;
  if (!in[0] || !in[1]) return false;
  for (uint32_t i = 0; i < u->carried; i++) in[2 + i] = u->value[i];
  if (!onnx_import_body(c, u->body, 2 + u->carried, in, 1 + u->carried + u->slices, out)) return false;
  *condition = out[0];
  for (uint32_t i = 0; i < u->carried; i++) u->value[i] = out[1 + i];
  for (uint32_t i = 0; i < u->slices; i++) slices[i] = out[1 + u->carried + i];
  return true;
}

/* ---- a loop that stays one: as many trips as there may be. Behind the end that its data sets nothing changes any more; of the slices it keeps as many are
   used as it made trips (ops_bounded.c), the rest is 0. ---- */
enum { NUMBER, GOES_ON, CARRIED, MOST_IN_LOOP = 2 * MOST_VALUES + CARRIED };
typedef struct in_loop {
  ir_expr most;
  uint32_t count, initial[MOST_IN_LOOP], inside[MOST_IN_LOOP], next[MOST_IN_LOOP]; /* carried values, then what slices are kept in */
  bool by_data;
} in_loop;

/* A trip over the nodes `at`: the nodes of its results in `next`, slices with an axis in front. */
static bool trip_of_nodes(onnx_call *c, unrolled *u, const uint32_t *at, onnx_value **condition, uint32_t *next) {
  onnx_value *slices[MOST_VALUES], *number = onnx_value_of(c, "iteration", at[NUMBER]);
  for (uint32_t i = 0; i < u->carried; i++) u->value[i] = onnx_value_of(c, "carried", at[CARRIED + i]);
  if (!run_trip(c, u, number, condition, slices)) return false;
  for (uint32_t i = 0; i < u->carried; i++)
    if (!(next[CARRIED + i] = onnx_node_of(c, u->value[i]))) return false;
  for (uint32_t i = 0; i < u->slices; i++)
    if (!(next[CARRIED + u->carried + i] = with_axis(c, onnx_node_of(c, slices[i]), 0))) return false;
  return true;
}

/* A trip outside, which nobody reads: it shows the types, and what the body takes from around it becomes nodes there. */
static bool look_at_trip(onnx_call *c, unrolled *u, onnx_value *start, in_loop *l) {
  onnx_value *condition = known_value(c, "condition", SNT_BOOL, 1);
  bool first, later;
  if (!condition || !trip_of_nodes(c, u, l->initial, &condition, l->next)) return false;
  l->by_data = !known_flag(c, start, &first) || !known_flag(c, condition, &later) || !first || !later;
  for (uint32_t i = CARRIED; i < CARRIED + u->carried; i++) {
    const ir_tensor *before = onnx_type_of(c, l->initial[i]), *after = onnx_type_of(c, l->next[i]);
    if (before->dtype != after->dtype || !ir_same_shape(before, after))
      return onnx_refuse(c, "value %u has another shape behind a trip", i - CARRIED);
  }
  for (uint32_t i = CARRIED + u->carried; i < l->count; i++) {
    ir_tensor type = *onnx_type_of(c, l->next[i]);
    type.dims[0] = l->most;
    if (!(l->initial[i] = onnx_fill(c, &type, 0))) return false;
  }
  return true;
}

static bool go_on(onnx_call *c, unrolled *u, in_loop *l) {
  onnx_value *condition = known_value(c, "condition", SNT_BOOL, 1);
  if (!condition || !trip_of_nodes(c, u, l->inside, &condition, l->next)) return false;
  l->next[NUMBER] = onnx_2n(c, IR_OP_add, l->inside[NUMBER], 1);
  l->next[GOES_ON] = l->inside[GOES_ON];
  if (l->by_data) { /* behind the end the number stays: that of the trips that were made */
    l->next[NUMBER] = onnx_2(c, IR_OP_add, l->inside[NUMBER], onnx_cast(c, l->inside[GOES_ON], SNT_I64));
    const uint32_t goes_on = onnx_reshape(c, onnx_node_of(c, condition), 0, NULL);
    l->next[GOES_ON] = goes_on ? onnx_2(c, IR_OP_and, l->inside[GOES_ON], goes_on) : 0;
  }
  for (uint32_t i = CARRIED; l->by_data && i < l->count; i++) l->next[i] = onnx_select(c, l->inside[GOES_ON], l->next[i], l->inside[i]);
  for (uint32_t i = CARRIED + u->carried; i < l->count; i++) {
    const ir_tensor *type = onnx_type_of(c, l->inside[i]);
    const uint32_t here = onnx_2(c, IR_OP_eq, onnx_iota(c, SNT_I64, type->rank, type->dims, 0), l->inside[NUMBER]);
    l->next[i] = here ? onnx_select(c, here, l->next[i], l->inside[i]) : 0;
  }
  for (uint32_t i = 0; i < l->count; i++)
    if (!l->next[i]) return false;
  return true;
}

static bool repeat_trips(onnx_call *c, unrolled *u, onnx_value *start, ir_expr most) {
  uint32_t results[MOST_IN_LOOP];
  in_loop l = {.most = most, .count = CARRIED + u->carried + u->slices};
  if (most == INT64_MAX) return onnx_refuse(c, "its end depends on data, and nothing says how many trips there may be");
  const uint32_t flag = onnx_node_of(c, start);
  l.initial[NUMBER] = onnx_scalar(c, SNT_I64, 0), l.initial[GOES_ON] = flag ? onnx_reshape(c, flag, 0, NULL) : 0;
  for (uint32_t i = 0; i < u->carried; i++) l.initial[CARRIED + i] = onnx_node_of(c, c->in[2 + i]);
  for (uint32_t i = 0; i < CARRIED + u->carried; i++)
    if (!l.initial[i]) return false;
  if (!look_at_trip(c, u, start, &l)) return false;
  ir_repeat_begin(c->g, l.count, l.initial, most, l.inside);
  const bool good = go_on(c, u, &l);
  ir_repeat_end(c->g, l.count, good ? l.next : l.inside, results);
  for (uint32_t i = CARRIED; good && i < l.count; i++)
    if (!onnx_out(c, i - CARRIED, results[i])) return false;
  for (uint32_t i = u->carried; good && l.by_data && i < c->out_count; i++) c->out[i].count = results[NUMBER];
  return good;
}

/* Written out where every trip's condition is known and they are few, so that what depends on a trip's number is known, too. */
bool onnx_op_loop(onnx_call *c) {
  unrolled u = {.body = graph_attr(c, "body")};
  onnx_value *start = onnx_has(c, 1) ? c->in[1] : known_value(c, "condition", SNT_BOOL, 1), *condition = start, *slices[MOST_VALUES];
  ir_expr most;
  int64_t fixed;
  bool again;
  uint32_t trips = 0;
  if (!u.body || !condition || c->in_count < 2 || !loop_trips(c, &most))
    return c->refused ? false : onnx_refuse(c, "%u operands", c->in_count);
  u.carried = c->in_count - 2;
  if (u.carried > c->out_count || c->out_count > MOST_VALUES) return onnx_refuse(c, "%u results", c->out_count);
  u.slices = c->out_count - u.carried;
  for (uint32_t i = 0; i < u.carried; i++)
    if (!(u.value[i] = c->in[2 + i])) return onnx_refuse(c, "input %u is missing", 2 + i);
  if (!start_slices(c, &u)) return false;
  if (!expr_is_const(c->g->pool, most, &fixed)) return repeat_trips(c, &u, start, most);
  for (; (int64_t)trips < fixed; trips++) {
    if (!known_flag(c, condition, &again)) return repeat_trips(c, &u, start, most);
    if (!again) break;
    if (trips == MOST_TRIPS) return repeat_trips(c, &u, start, most);
    if (!run_trip(c, &u, known_value(c, "iteration", SNT_I64, trips), &condition, slices)) return false;
    for (uint32_t i = 0; i < u.slices; i++)
      if (!(u.part[i][trips] = with_axis(c, onnx_node_of(c, slices[i]), 0))) return false;
  }
  return give_results(c, &u, trips, NULL);
}

/* ---- Scan: slices of the operands along an axis each; before 9 there is a batch around it ---- */
typedef struct scan_axes {
  uint32_t in[MOST_VALUES], out[MOST_VALUES];
  bool in_backwards[MOST_VALUES], out_backwards[MOST_VALUES];
} scan_axes;

static int64_t entry(onnx_call *c, const char *name, uint32_t i) {
  const onnx_list list = onnx_int_list(c, name);
  int64_t number = 0;
  if (i < list.count) expr_is_const(c->g->pool, list.at[i], &number);
  return number;
}

static bool read_axes(onnx_call *c, const unrolled *u, uint32_t first, uint32_t inputs, scan_axes *a) {
  for (uint32_t i = 0; i < inputs; i++) {
    const ir_tensor *t = onnx_in_type(c, first + u->carried + i);
    if (!t || !onnx_axis(c, entry(c, "scan_input_axes", i), t->rank, &a->in[i])) return false;
    a->in_backwards[i] = entry(c, "scan_input_directions", i) != 0 || entry(c, "directions", i) != 0;
  }
  for (uint32_t i = 0; i < u->slices; i++) {
    const int64_t axis = entry(c, "scan_output_axes", i);
    if (axis < 0) return onnx_refuse(c, "scan_output_axes counted from the end");
    a->out[i] = (uint32_t)axis;
    a->out_backwards[i] = entry(c, "scan_output_directions", i) != 0;
  }
  return true;
}

static bool scan_trip(onnx_call *c, unrolled *u, const scan_axes *a, uint32_t inputs, const uint32_t *sources, uint32_t trip,
                      uint32_t trips) {
  onnx_value *in[2 * MOST_VALUES], *out[2 * MOST_VALUES];
  for (uint32_t i = 0; i < u->carried; i++) in[i] = u->value[i];
  for (uint32_t i = 0; i < inputs; i++) {
    const uint32_t at = a->in_backwards[i] ? trips - 1 - trip : trip;
    const uint32_t slice = without_axis(c, onnx_slice(c, sources[i], a->in[i], at, 1, 1), a->in[i]);
    if (!(in[u->carried + i] = onnx_value_of(c, "slice", slice))) return false;
  }
  if (!onnx_import_body(c, u->body, u->carried + inputs, in, u->carried + u->slices, out)) return false;
  for (uint32_t i = 0; i < u->carried; i++) u->value[i] = out[i];
  for (uint32_t i = 0; i < u->slices; i++) {
    const uint32_t at = a->out_backwards[i] ? trips - 1 - trip : trip;
    if (!(u->part[i][at] = with_axis(c, onnx_node_of(c, out[u->carried + i]), a->out[i]))) return false;
  }
  return true;
}

bool onnx_op_scan(onnx_call *c) {
  unrolled u = {.body = graph_attr(c, "body")};
  const int64_t inputs = onnx_int(c, "num_scan_inputs", 0);
  scan_axes a = {{0}, {0}, {0}, {0}};
  uint32_t sources[MOST_VALUES];
  int64_t trips = 0;
  if (!u.body || inputs < 1 || inputs > (int64_t)c->in_count || c->in_count > MOST_VALUES || c->out_count > MOST_VALUES)
    return onnx_refuse(c, "%u operands", c->in_count);
  u.carried = c->in_count - (uint32_t)inputs;
  if (u.carried > c->out_count) return onnx_refuse(c, "%u results", c->out_count);
  u.slices = c->out_count - u.carried;
  for (uint32_t i = 0; i < u.carried; i++)
    if (!(u.value[i] = c->in[i])) return onnx_refuse(c, "input %u is missing", i);
  if (!read_axes(c, &u, 0, (uint32_t)inputs, &a) || !start_slices(c, &u)) return false;
  for (uint32_t i = 0; i < inputs; i++) {
    if (!(sources[i] = onnx_in(c, u.carried + i))) return false;
    if (!expr_is_const(c->g->pool, onnx_type_of(c, sources[i])->dims[a.in[i]], &trips) || trips > MOST_TRIPS)
      return onnx_refuse(c, "the scanned extent must be fixed, %d at most", MOST_TRIPS);
  }
  for (uint32_t trip = 0; trip < trips; trip++)
    if (!scan_trip(c, &u, &a, (uint32_t)inputs, sources, trip, (uint32_t)trips)) return false;
  return give_results(c, &u, (uint32_t)trips, a.out);
}
