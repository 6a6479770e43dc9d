/* Scan: a graph over slices of the operands along an axis each. Few trips are written out; more, or as many as a symbol says, are those of a Loop whose
   graph takes its slices itself. Before 9 there is a batch around it. */
#include "onnx/ops.h"
#include "onnx/import_private.h"

typedef struct scan_axes {
  uint32_t in[ONNX_MOST_VALUES], out[ONNX_MOST_VALUES];
  bool in_backwards[ONNX_MOST_VALUES], out_backwards[ONNX_MOST_VALUES];
  int64_t out_axis[ONNX_MOST_VALUES]; /* as the file says it, from the end of what a trip says if it is negative */
} scan_axes;

static int64_t entry(onnx_call *c, const char *name, uint32_t i) {
  const onnx_list list = onnx_int_list(c, name);
  int64_t number = 0;
  if (i < list.count) expr_is_const(c->g->pool, list.at[i], &number);
  return number;
}

static bool read_axes(onnx_call *c, const onnx_unrolled *u, uint32_t first, uint32_t inputs, scan_axes *a) {
  for (uint32_t i = 0; i < inputs; i++) {
    const ir_tensor *t = onnx_in_type(c, first + u->carried + i);
    if (!t || !onnx_axis(c, entry(c, "scan_input_axes", i), t->rank, &a->in[i])) return false;
    a->in_backwards[i] = entry(c, "scan_input_directions", i) != 0 || entry(c, "directions", i) != 0;
  }
  for (uint32_t i = 0; i < u->slices; i++) {
    a->out_axis[i] = entry(c, "scan_output_axes", i), a->out[i] = (uint32_t)a->out_axis[i];
    a->out_backwards[i] = entry(c, "scan_output_directions", i) != 0;
  }
  return true;
}

typedef struct scan {
  onnx_unrolled u;
  scan_axes axes;
  uint32_t inputs, sources[ONNX_MOST_VALUES]; /* what is scanned */
  ir_expr trips;
} scan;

/* ---- written out ---- */
static uint32_t without_axis(onnx_call *c, uint32_t node, uint32_t axis) {
  if (!node) return 0;
  ir_tensor t = *onnx_type_of(c, node);
  for (uint32_t i = axis; i + 1 < t.rank; i++) t.dims[i] = t.dims[i + 1];
  return onnx_reshape(c, node, t.rank - 1u, t.dims);
}

static bool scan_trip(onnx_call *c, scan *s, uint32_t trip, uint32_t trips) {
  onnx_unrolled *u = &s->u;
  scan_axes *a = &s->axes;
  onnx_value *in[2 * ONNX_MOST_VALUES], *out[2 * ONNX_MOST_VALUES];
  for (uint32_t i = 0; i < u->carried; i++) in[i] = u->value[i];
  for (uint32_t i = 0; i < s->inputs; i++) {
    const uint32_t at = a->in_backwards[i] ? trips - 1 - trip : trip;
    const uint32_t slice = without_axis(c, onnx_slice(c, s->sources[i], a->in[i], at, 1, 1), a->in[i]);
    if (!(in[u->carried + i] = onnx_value_of(c, "slice", slice))) return false;
  }
  if (!onnx_import_body(c, u->body, u->carried + s->inputs, in, u->carried + u->slices, out)) return false;
  for (uint32_t i = 0; i < u->carried; i++) u->value[i] = out[i];
  for (uint32_t i = 0; i < u->slices; i++) {
    const uint32_t at = a->out_backwards[i] ? trips - 1 - trip : trip;
    const uint32_t slice = onnx_all_of(c, out[u->carried + i]) ? onnx_node_of(c, out[u->carried + i]) : 0;
    if (!slice || !onnx_axis(c, a->out_axis[i], onnx_type_of(c, slice)->rank + 1u, &a->out[i])) return false;
    if (!(u->part[i][at] = onnx_with_axis(c, slice, a->out[i]))) return false;
  }
  return true;
}

/* ---- as a Loop ---- */
static const char TRIP[] = "Scan trip", GOES_ON[] = "Scan goes on", LAST[] = "Scan last", FROM_END[] = "Scan trip from the end";

static bool add_node(onnx_call *c, onnx_graph *g, const onnx_node *what, const char *a, const char *b, const char *out) {
  ir_arena *arena = c->im->temp;
  onnx_node n = *what;
  n.name = n.domain = "";
  return (!a || IR_PUSH(arena, &n.inputs, a)) && (!b || IR_PUSH(arena, &n.inputs, b)) && IR_PUSH(arena, &n.outputs, out) &&
         IR_PUSH(arena, &g->nodes, n);
}

static bool add_port(onnx_call *c, onnx_ports *ports, const char *name, int32_t type) {
  const onnx_port port = {.name = name, .type = type, .has_shape = true};
  return IR_PUSH(c->im->temp, ports, port);
}

/* Slice i of a trip: the operand, which is around the graph, at the trip's number, or at -1 less that. */
static bool add_slice(onnx_call *c, const scan *s, onnx_graph *g, uint32_t i) {
  const onnx_attr axis = {.name = "axis", .kind = ONNX_INT, .i = s->axes.in[i]};
  onnx_node gather = {.op = "Gather"};
  return IR_PUSH(c->im->temp, &gather.attrs, axis) &&
         add_node(c, g, &gather, c->node->inputs.at[s->u.carried + i], s->axes.in_backwards[i] ? FROM_END : TRIP,
                  s->u.body->inputs.at[s->u.carried + i].name);
}

static bool make_body(onnx_call *c, const scan *s, onnx_graph *g) {
  enum { I64 = 7, BOOL = 9 }; /* as ONNX has them */
  const onnx_graph *body = s->u.body;
  const onnx_attr number = {.name = "value_int", .kind = ONNX_INT, .i = -1};
  onnx_node constant = {.op = "Constant"};
  *g = (onnx_graph){.name = body->name, .constants = body->constants, .sparse = body->sparse};
  bool good = add_port(c, &g->inputs, TRIP, I64) && add_port(c, &g->inputs, GOES_ON, BOOL) && add_port(c, &g->outputs, GOES_ON, BOOL);
  for (uint32_t i = 0; good && i < s->u.carried; i++) good = IR_PUSH(c->im->temp, &g->inputs, body->inputs.at[i]);
  for (uint32_t i = 0; good && i < body->outputs.count; i++) good = IR_PUSH(c->im->temp, &g->outputs, body->outputs.at[i]);
  good = good && IR_PUSH(c->im->temp, &constant.attrs, number) && add_node(c, g, &constant, NULL, NULL, LAST) &&
         add_node(c, g, &(onnx_node){.op = "Sub"}, LAST, TRIP, FROM_END);
  for (uint32_t i = 0; good && i < s->inputs; i++) good = add_slice(c, s, g, i);
  for (uint32_t i = 0; good && i < body->nodes.count; i++) good = IR_PUSH(c->im->temp, &g->nodes, body->nodes.at[i]);
  return good;
}

/* Slices lie in the order of the trips along the first axis: brought to theirs. */
static bool settle_slices(onnx_call *c, const scan *s) {
  for (uint32_t i = 0; i < s->u.slices; i++) {
    onnx_value *v = &c->out[s->u.carried + i];
    uint32_t node = v->node, axis, perm[SNT_MAX_RANK];
    if (!node) continue; /* nobody asks for it */
    const uint32_t rank = onnx_type_of(c, node)->rank;
    if (!onnx_axis(c, s->axes.out_axis[i], rank, &axis)) return false;
    if (s->axes.out_backwards[i]) node = onnx_slice(c, node, 0, expr_sub(c->g->pool, s->trips, 1), s->trips, -1);
    for (uint32_t k = 0; k < rank; k++) perm[k] = k < axis ? k + 1 : k == axis ? 0 : k;
    if (!node || !onnx_out(c, s->u.carried + i, axis ? onnx_transpose(c, node, perm) : node)) return false;
  }
  return true;
}

static bool scan_as_loop(onnx_call *c, scan *s) {
  onnx_graph *g = IR_NEW(c->im->temp, onnx_graph);
  if (s->u.body->inputs.count != s->u.carried + s->inputs || s->u.body->outputs.count != s->u.carried + s->u.slices)
    return onnx_refuse(c, "its graph has %u inputs and %u outputs", s->u.body->inputs.count, s->u.body->outputs.count);
  if (!g || !make_body(c, s, g)) return false;
  s->u.body = g;
  return onnx_repeat_graph(c, &s->u, c->in, s->trips) && settle_slices(c, s);
}

bool onnx_op_scan(onnx_call *c) {
  const onnx_graph *body = onnx_graph_attr(c, "body");
  const int64_t inputs = onnx_int(c, "num_scan_inputs", 0);
  scan *s = IR_NEW(c->im->temp, scan);
  int64_t trips;
  if (!s || !body || inputs < 1 || inputs > (int64_t)c->in_count || c->in_count > ONNX_MOST_VALUES || c->out_count > ONNX_MOST_VALUES)
    return onnx_refuse(c, "%u operands", c->in_count);
  *s = (scan){.u = {.body = body, .carried = c->in_count - (uint32_t)inputs}, .inputs = (uint32_t)inputs};
  if (s->u.carried > c->out_count) return onnx_refuse(c, "%u results", c->out_count);
  s->u.slices = c->out_count - s->u.carried;
  for (uint32_t i = 0; i < s->u.carried; i++)
    if (!(s->u.value[i] = c->in[i])) return onnx_refuse(c, "input %u is missing", i);
  if (!read_axes(c, &s->u, 0, s->inputs, &s->axes)) return false;
  for (uint32_t i = 0; i < s->inputs; i++) {
    if (!(s->sources[i] = onnx_in(c, s->u.carried + i))) return false;
    const ir_expr own = onnx_type_of(c, s->sources[i])->dims[s->axes.in[i]];
    if (i && own != s->trips) return onnx_refuse(c, "scanned operands have different extents");
    s->trips = own;
  }
  if (!expr_is_const(c->g->pool, s->trips, &trips) || trips > ONNX_MOST_TRIPS) return scan_as_loop(c, s);
  if (!onnx_start_slices(c, &s->u)) return false;
  for (uint32_t trip = 0; trip < trips; trip++)
    if (!scan_trip(c, s, trip, (uint32_t)trips)) return false;
  return onnx_give_trips(c, &s->u, (uint32_t)trips, s->axes.out);
}
