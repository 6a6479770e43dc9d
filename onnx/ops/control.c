/* If, and what Scan and Loop (ops/scan.c, ops/loop.c) share. A condition that is known picks a branch; one that is not picks between the results of both. */
#include "onnx/ops.h"
#include "onnx/import_private.h"

bool onnx_give(onnx_call *c, uint32_t i, onnx_value *v) {
  if (v->known) return onnx_out_known(c, i, &v->type, v->known);
  if (!onnx_out(c, i, onnx_node_of(c, v))) return false;
  if (i < c->out_count) c->out[i].count = v->count, c->out[i].count_axis = v->count_axis, c->out[i].rest = v->rest;
  return true;
}

bool onnx_is_truth(onnx_call *c, const onnx_value *v) {
  if (v->broken || (v->type.dtype == SNT_BOOL && onnx_count(v) == 1)) return true;
  return onnx_refuse(c, "its condition %.60s is %s of rank %u, not one bool", v->name, ir_dtypes[v->type.dtype].name, v->type.rank);
}

bool onnx_known_flag(onnx_call *c, onnx_value *v, bool *out) {
  const onnx_number *known = onnx_value_known(c->im, v);
  int64_t number;
  if (!known || onnx_count(v) != 1 || !expr_is_const(c->g->pool, known[0].num, &number)) return false;
  *out = number != 0;
  return true;
}

const onnx_graph *onnx_graph_attr(onnx_call *c, const char *name) {
  const onnx_attr *a = onnx_find_attr(c, name);
  if (a && a->kind == ONNX_GRAPH && a->graph) return a->graph;
  onnx_refuse(c, "attribute %s is no graph", name);
  return NULL;
}

/* ---- If ---- */
/* One element may have axes of extent 1 in one branch and none in the other: then it has them. */
static bool join_ranks(onnx_call *c, uint32_t *a, uint32_t *b) {
  const ir_tensor *x = onnx_type_of(c, *a), *y = onnx_type_of(c, *b);
  if (x->rank == y->rank || ir_tensor_elements(c->g->pool, x) != 1 || ir_tensor_elements(c->g->pool, y) != 1) return true;
  uint32_t *less = x->rank < y->rank ? a : b;
  const ir_tensor more = x->rank < y->rank ? *y : *x;
  return (*less = onnx_reshape(c, *less, more.rank, more.dims)) != 0;
}

/* The axis along which the branches give different extents, or such as depend on the data: -1 none, -2 there are several. */
static int32_t differing_axis(const onnx_value *yes, const onnx_value *no, const ir_tensor *a, const ir_tensor *b) {
  int32_t found = -1;

  for (uint32_t i = 0; i < a->rank; i++) {
    const bool counted = (yes->count && yes->count_axis == i) || (no->count && no->count_axis == i);
    if (counted || a->dims[i] != b->dims[i]) found = found == -1 ? (int32_t)i : -2;
  }
  return found;
}

/* With zeros behind it, up to an extent. */
static uint32_t filled_up(onnx_call *c, uint32_t node, uint32_t axis, ir_expr extent) {
  ir_tensor rest = *onnx_type_of(c, node);
  rest.dims[axis] = expr_sub(c->g->pool, extent, rest.dims[axis]);
  return rest.dims[axis] == 0 ? node : onnx_concat(c, axis, 2, (const uint32_t[]){node, onnx_fill(c, &rest, 0)});
}

/* Result i of what a condition picks, which has as much as the branch gives. */
static bool choose(onnx_call *c, uint32_t i, uint32_t condition, onnx_value *then, onnx_value *otherwise) {
  uint32_t no = onnx_node_of(c, otherwise), yes = onnx_node_of(c, then);
  if (!no || !yes || !join_ranks(c, &no, &yes)) return false;
  const ir_tensor a = *onnx_type_of(c, yes), b = *onnx_type_of(c, no);
  const int32_t axis = a.rank == b.rank ? differing_axis(then, otherwise, &a, &b) : -2;
  if (a.dtype != b.dtype || axis == -2 || (axis >= 0 && !then->count && !otherwise->count))
    return onnx_refuse(c, "the branches give result %u of different types, and the condition is not known", i);
  if (axis < 0) return onnx_out(c, i, ir_add3(c->g, IR_OP_select, condition, yes, no));
  const ir_expr counts[] = {then->count ? then->count : a.dims[axis], otherwise->count ? otherwise->count : b.dims[axis]};
  const ir_expr most = expr_max(c->g->pool, a.dims[axis], b.dims[axis]);
  const uint32_t count = onnx_select(c, condition, onnx_extent(c, counts[0], SNT_I64), onnx_extent(c, counts[1], SNT_I64));
  const uint32_t both = onnx_select(c, condition, filled_up(c, yes, (uint32_t)axis, most), filled_up(c, no, (uint32_t)axis, most));
  return onnx_out_counted(c, i, both, onnx_late_number(c, count, most), (uint32_t)axis, then->count ? then->rest : otherwise->rest);
}

bool onnx_op_if(onnx_call *c) {
  const onnx_graph *branches[] = {onnx_graph_attr(c, "else_branch"), onnx_graph_attr(c, "then_branch")};
  onnx_value *out[2][ONNX_MOST_VALUES];
  bool taken;
  if (!branches[0] || !branches[1] || !onnx_has(c, 0) || c->out_count > ONNX_MOST_VALUES) return onnx_refuse(c, "%u results", c->out_count);
  if (!onnx_is_truth(c, c->in[0])) return false;
  if (onnx_known_flag(c, c->in[0], &taken)) {
    if (!onnx_import_body(c, branches[taken], 0, NULL, c->out_count, out[0])) return false;
    for (uint32_t i = 0; i < c->out_count; i++)
      if (!onnx_give(c, i, out[0][i])) return false;
    return true;
  }
  const uint32_t condition = onnx_scalar_in(c, 0);
  if (!condition) return false;
  for (uint32_t b = 0; b < 2; b++)
    if (!onnx_import_body(c, branches[b], 0, NULL, c->out_count, out[b])) return false;
  for (uint32_t i = 0; i < c->out_count; i++)
    if (!choose(c, i, condition, out[1][i], out[0][i])) return false;
  return true;
}

/* ---- what Loop and Scan share: values carried from trip to trip, and a slice of each trip ---- */
bool onnx_start_slices(onnx_call *c, onnx_unrolled *u) {
  for (uint32_t i = 0; i < u->slices; i++)
    if (!(u->part[i] = ir_arena_take(c->im->temp, ONNX_MOST_TRIPS * sizeof *u->part[i], _Alignof(uint32_t)))) return false;
  return true;
}

/* A node with an axis of extent 1 more, or less. */
uint32_t onnx_with_axis(onnx_call *c, uint32_t node, uint32_t axis) {
  if (!node) return 0;
  ir_tensor t = *onnx_type_of(c, node);
  if (t.rank == SNT_MAX_RANK || axis > t.rank) return onnx_refuse(c, "rank %u", t.rank), 0;
  for (uint32_t i = t.rank; i > axis; i--) t.dims[i] = t.dims[i - 1];
  t.dims[axis] = 1;
  return onnx_reshape(c, node, t.rank + 1u, t.dims);
}

bool onnx_give_trips(onnx_call *c, const onnx_unrolled *u, uint32_t trips, const uint32_t *axes) {
  for (uint32_t i = 0; i < u->carried; i++)
    if (!onnx_give(c, i, u->value[i])) return false;
  for (uint32_t i = 0; i < u->slices; i++) {
    if (trips == 0) return onnx_refuse(c, "no trip: the shape of result %u is not known", u->carried + i);
    if (!onnx_out(c, u->carried + i, onnx_concat(c, axes ? axes[i] : 0, trips, u->part[i]))) return false;
  }
  return true;
}
