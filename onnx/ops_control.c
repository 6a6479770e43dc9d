/* If, Loop and Scan. A condition that is known picks a branch; one that is not picks between the results of both. Loops whose number of trips is
   known are written out, so that what depends on the trip's number (slices, shapes) is known, too. */
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
/* The most trips there can be: the count, if it is given; false if it is not known. */
static bool loop_trips(onnx_call *c, int64_t *most) {
  *most = INT64_MAX;
  if (!onnx_has(c, 0)) return true;
  return onnx_in_int(c, 0, most);
}

static bool run_trip(onnx_call *c, unrolled *u, uint32_t trip, onnx_value **condition) {
  onnx_value *in[MOST_VALUES + 2], *out[2 * MOST_VALUES + 1];
  in[0] = known_value(c, "iteration", SNT_I64, trip);
  in[1] = *condition;
  if (!in[0] || !in[1]) return false;
  for (uint32_t i = 0; i < u->carried; i++) in[2 + i] = u->value[i];
  if (!onnx_import_body(c, u->body, 2 + u->carried, in, 1 + u->carried + u->slices, out)) return false;
  *condition = out[0];
  for (uint32_t i = 0; i < u->carried; i++) u->value[i] = out[1 + i];
  for (uint32_t i = 0; i < u->slices; i++)
    if (!(u->part[i][trip] = with_axis(c, onnx_node_of(c, out[1 + u->carried + i]), 0))) return false;
  return true;
}

bool onnx_op_loop(onnx_call *c) {
  unrolled u = {.body = graph_attr(c, "body")};
  onnx_value *condition = onnx_has(c, 1) ? c->in[1] : known_value(c, "condition", SNT_BOOL, 1);
  int64_t most;
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
  for (; (int64_t)trips < most; trips++) {
    if (!known_flag(c, condition, &again)) return onnx_refuse(c, "its end depends on data");
    if (!again) break;
    if (trips == MOST_TRIPS) return onnx_refuse(c, "more than %d trips", MOST_TRIPS);
    if (!run_trip(c, &u, trips, &condition)) return false;
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
