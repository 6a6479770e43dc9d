/* Values whose extent depends on the data: along one axis the first `count` places are the value, `count` being a late number (late.c); the others are
   nobody's. What each place is computed from the same place alone has as many places: this file finds out whether that is so, from the nodes that an operator
   became, and refuses what is not. What needs all places says what stands in those that are not used (counted.c and the handlers). An output of the model that
   is such a value has an output NAME.count beside it, and -1 or 0 behind its places. */
#include "onnx/ops.h"
#include "onnx/import_private.h"
#include <math.h>

enum { FREE = -1, MIXED = -2 }; /* else the axis: of a node that does not depend on the value, and of one whose places do not keep apart */

typedef struct spreading {
  onnx_call *c;
  const ir_graph *g;
  uint32_t first, end; /* of the call's nodes; of each of which: */
  int8_t *axis;
  ir_expr *count; /* where it has an axis */
} spreading;

bool onnx_out_counted(onnx_call *c, uint32_t i, uint32_t node, ir_expr count, uint32_t axis, double rest) {
  if (!node || !count) return false;
  const ir_expr extent = onnx_type_of(c, node)->dims[axis], most = onnx_most(c, count);
  if (most != extent && expr_proves_le(c->g->pool, most, extent)) node = onnx_slice(c, node, axis, 0, most, 1);
  if (!onnx_out(c, i, node)) return false;
  if (i < c->out_count && onnx_is_late(c->im, count)) c->out[i].count = count, c->out[i].count_axis = (uint8_t)axis, c->out[i].rest = rest;
  return true;
}

bool onnx_all_of(onnx_call *c, const onnx_value *v) {
  return !v->count || onnx_refuse(c, "how much of %.60s there is depends on the data", v->name);
}

/* ---- places that are not used ---- */
static uint64_t whole_end(int32_t dtype, bool greatest) {
  const uint32_t bits = ir_dtypes[dtype].bits;
  const uint64_t all = bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
  if (!ir_dtypes[dtype].is_signed) return greatest ? all : 0;
  return greatest ? all >> 1 : ~(all >> 1);
}

uint32_t onnx_filler(onnx_call *c, int32_t dtype, onnx_filling filling) {
  const ir_tensor type = {.dtype = (uint8_t)dtype};
  if (filling == ONNX_ZERO || filling == ONNX_ONE) return onnx_scalar(c, dtype, filling == ONNX_ONE);
  const bool greatest = filling == ONNX_GREATEST;
  if (ir_dtypes[dtype].is_float) return onnx_scalar(c, dtype, greatest ? (double)INFINITY : -(double)INFINITY);
  return ir_add_const(c->g, &type, &(ir_const){.kind = IR_CONST_SPLAT, .bits = dtype == SNT_BOOL ? greatest : whole_end(dtype, greatest)});
}

/* The condition is a vector along the axis: where readers share it, that is what is stored, whatever the order of the other axes. */
uint32_t onnx_mask(onnx_call *c, uint32_t node, ir_expr count, uint32_t axis, uint32_t fill) {
  if (!node || !fill) return 0;
  const ir_tensor type = *onnx_type_of(c, node);
  ir_expr dims[SNT_MAX_RANK];
  for (uint32_t i = 0; i < type.rank; i++) dims[i] = i == axis ? type.dims[i] : 1;
  const uint32_t at = onnx_iota(c, SNT_I64, 1, &type.dims[axis], 0);
  const uint32_t used = onnx_reshape(c, onnx_2(c, IR_OP_lt, at, onnx_extent(c, count, SNT_I64)), type.rank, dims);
  return onnx_select(c, used, node, fill);
}

uint32_t onnx_node_at_rest(onnx_call *c, onnx_value *v) {
  return onnx_mask(c, v->node, v->count, v->count_axis, onnx_like(c, v->node, v->rest));
}

bool onnx_is_counted(const onnx_call *c, uint32_t i, uint32_t axis) {
  return onnx_has(c, i) && c->in[i]->count && c->in[i]->count_axis == axis;
}

/* Operand i as another node, all of whose places are used. */
static bool replace_in(onnx_call *c, uint32_t i, uint32_t node) {
  onnx_value *v = node ? IR_NEW(c->im->temp, onnx_value) : NULL;
  if (!v) return false;
  *v = (onnx_value){.name = c->in[i]->name, .node = node, .type = *onnx_type_of(c, node)};
  c->in[i] = v;
  return true;
}

bool onnx_fill_in(onnx_call *c, uint32_t i, uint32_t fill) {
  const onnx_value *v = c->in[i];
  return replace_in(c, i, onnx_mask(c, v->node, v->count, v->count_axis, fill));
}

bool onnx_mask_in(onnx_call *c, uint32_t i, onnx_filling filling) {
  const onnx_value *v = onnx_has(c, i) ? c->in[i] : NULL;
  return !v || !v->count || onnx_fill_in(c, i, onnx_filler(c, v->type.dtype, filling));
}

bool onnx_drop_in(onnx_call *c, uint32_t i) { return !onnx_has(c, i) || !c->in[i]->count || replace_in(c, i, c->in[i]->node); }

bool onnx_cut_in(onnx_call *c, uint32_t i, uint32_t axis, ir_expr extent) {
  onnx_value was = *c->in[i];
  if (was.type.dims[axis] == extent) return true;
  if (!replace_in(c, i, onnx_slice(c, was.node, axis, 0, extent, 1))) return false;
  c->in[i]->count = was.count, c->in[i]->count_axis = was.count_axis;
  return true;
}

/* ---- where an operand's axis is in the result ---- */
static int of_list(const spreading *s, uint32_t n, ir_attr_key key, int axis) {
  uint32_t count;
  const ir_expr *at = ir_attr_ints(s->g, n, key, &count);
  for (uint32_t i = 0; i < count; i++)
    if (at[i] == axis) return (int)i;
  return MIXED;
}

static bool is_untouched(const spreading *s, uint32_t n, ir_attr_key key, int axis, ir_expr untouched) {
  uint32_t count;
  const ir_expr *at = ir_attr_ints(s->g, n, key, &count);
  return (uint32_t)axis < count && at[axis] == untouched;
}

static ir_expr elements_before(const spreading *s, const ir_tensor *t, uint32_t axis) {
  ir_expr product = 1;
  for (uint32_t i = 0; i < axis; i++) product = expr_mul(s->g->pool, product, t->dims[i]);
  return product;
}

static ir_expr elements_after(const spreading *s, const ir_tensor *t, uint32_t axis) {
  ir_expr product = 1;
  for (uint32_t i = axis + 1; i < t->rank; i++) product = expr_mul(s->g->pool, product, t->dims[i]);
  return product;
}

/* The axis whose places begin where the operand's do: as many of them, or one for each element of a place, or of several, where the count
   is such a multiple. */
static int of_reshape(const spreading *s, const ir_tensor *from, const ir_tensor *to, int axis, ir_expr *count) {
  expr_pool *x = s->g->pool;
  const ir_expr before = elements_before(s, from, (uint32_t)axis), after = elements_after(s, from, (uint32_t)axis);
  int same = MIXED, last = MIXED;
  int64_t own, other;
  for (uint32_t i = 0; i < to->rank; i++) {
    if (elements_before(s, to, i) != before) continue;
    last = (int)i;
    if (to->dims[i] != from->dims[axis] || elements_after(s, to, i) != after) continue;
    if (same != MIXED) return MIXED; /* axes of extent 1: any of them could be it */
    same = (int)i;
  }
  if (same != MIXED || last == MIXED || from->dims[axis] == 1) return same;
  if (!expr_is_const(x, after, &own) || !expr_is_const(x, elements_after(s, to, (uint32_t)last), &other) || own < 1 || other < 1)
    return MIXED;
  const ir_expr elements = expr_mul(x, *count, expr_int(x, own));
  if (expr_multiple_of(x, elements) % other) return MIXED;
  *count = expr_div(x, elements, expr_int(x, other));
  return last;
}

static int of_broadcast(const spreading *s, uint32_t n, const ir_tensor *from, const ir_tensor *to, int axis) {
  uint32_t count;
  const ir_expr *at = ir_attr_ints(s->g, n, IR_ATTR_axes, &count);
  const uint32_t moved = at && count ? (uint32_t)at[axis] : to->rank - from->rank + (uint32_t)axis;
  return to->dims[moved] == from->dims[axis] ? (int)moved : MIXED;
}

static int of_reduce(const spreading *s, uint32_t n, int axis) {
  uint32_t count;
  const ir_expr *at = ir_attr_ints(s->g, n, IR_ATTR_axes, &count);
  int moved = axis;
  for (uint32_t i = 0; i < count; i++) {
    if (at[i] == axis) return MIXED;
    moved -= at[i] < axis && !ir_attr_flag(s->g, n, IR_ATTR_keep);
  }
  return moved;
}

static int of_contract(const spreading *s, uint32_t n, uint32_t operand, int axis) {
  uint32_t count;
  return of_list(s, n, IR_ATTR_out, (int)ir_attr_ints(s->g, n, operand ? IR_ATTR_rhs : IR_ATTR_lhs, &count)[axis]);
}

/* x[.., index, ..]: places of x along other axes, or places of the index. */
static int of_gather(const spreading *s, uint32_t n, uint32_t operand, int axis) {
  const int along = (int)ir_attr_int(s->g, n, IR_ATTR_axis, 0), rank = ir_at(s->g, ir_arg(s->g, n, 1))->type.rank;
  if (operand) return along + axis;
  return axis == along ? MIXED : axis < along ? axis : axis + rank - 1;
}

static int of_window(const spreading *s, uint32_t n, int axis) {
  uint32_t count;
  const int first = (int)ir_attr_int(s->g, n, IR_ATTR_axis, 0);
  (void)ir_attr_ints(s->g, n, IR_ATTR_size, &count);
  return axis >= first && axis < first + (int)count ? MIXED : axis;
}

/* The axis of node n along which operand i's axis lies. */
static int moved_axis(const spreading *s, uint32_t n, uint32_t i, int axis, ir_expr *count) {
  const ir_node *node = ir_at(s->g, n);
  const ir_tensor *from = &ir_at(s->g, ir_arg(s->g, n, i))->type;
  const ir_op op = (ir_op)node->op;
  if (ir_ops[op].flags & IR_POINTWISE) return op == IR_OP_custom ? MIXED : axis;
  if (ir_ops[op].flags & IR_REDUCE) return of_reduce(s, n, axis);
  if (ir_ops[op].flags & IR_SCAN) /* a place behind the used ones is read by none of them */
    return axis == (int)ir_attr_int(s->g, n, IR_ATTR_axis, 0) && ir_attr_flag(s->g, n, IR_ATTR_reverse) ? MIXED : axis;
  switch (op) {
  case IR_OP_cast:
  case IR_OP_bitcast: return axis;
  case IR_OP_transpose: return of_list(s, n, IR_ATTR_perm, axis);
  case IR_OP_reshape: return of_reshape(s, from, &node->type, axis, count);
  case IR_OP_broadcast: return of_broadcast(s, n, from, &node->type, axis);
  case IR_OP_slice:
    return is_untouched(s, n, IR_ATTR_starts, axis, 0) && is_untouched(s, n, IR_ATTR_steps, axis, 1) &&
                   node->type.dims[axis] == from->dims[axis]
               ? axis
               : MIXED;
  case IR_OP_pad: return is_untouched(s, n, IR_ATTR_low, axis, 0) && is_untouched(s, n, IR_ATTR_high, axis, 0) ? axis : MIXED;
  case IR_OP_concat:
  case IR_OP_argsort: return axis == (int)ir_attr_int(s->g, n, IR_ATTR_axis, 0) ? MIXED : axis;
  case IR_OP_window: return of_window(s, n, axis);
  case IR_OP_contract: return of_contract(s, n, i, axis);
  case IR_OP_gather: return of_gather(s, n, i, axis);
  default: return MIXED;
  }
}

static const onnx_value *counted_operand(const onnx_call *c, uint32_t node) {
  for (uint32_t i = 0; i < c->in_count; i++)
    if (onnx_has(c, i) && c->in[i]->count && c->in[i]->node == node) return c->in[i];
  return NULL;
}

static int axis_at(const spreading *s, uint32_t n, ir_expr *count) {
  const onnx_value *v = counted_operand(s->c, n);
  if (v) *count = v->count;
  else if (n >= s->first) *count = s->count[n - s->first];
  return v ? v->count_axis : n < s->first ? FREE : s->axis[n - s->first];
}

/* Counts of operands that meet along one axis are equal, as extents are. */
static int axis_of(const spreading *s, uint32_t n, ir_expr *out) {
  int axis = FREE;
  for (uint32_t i = 0; i < ir_at(s->g, n)->arity; i++) {
    ir_expr count = 0;
    const int own = axis_at(s, ir_arg(s->g, n, i), &count);
    if (own == FREE) continue;
    const int moved = own == MIXED ? MIXED : moved_axis(s, n, i, own, &count);
    if (moved == MIXED || (axis != FREE && moved != axis)) return MIXED;
    if (axis == FREE) *out = count;
    axis = moved;
  }
  return axis;
}

/* ---- a call ---- */
static const onnx_value *first_counted(const onnx_call *c) {
  for (uint32_t i = 0; i < c->in_count; i++)
    if (onnx_has(c, i) && c->in[i]->count) return c->in[i];
  return NULL;
}

static bool has_graph(const onnx_node *n) {
  for (uint32_t i = 0; i < n->attrs.count; i++)
    if (n->attrs.at[i].kind == ONNX_GRAPH) return true;
  return false;
}

static bool refuse_all(onnx_call *c, const onnx_value *v) {
  return onnx_refuse(c, "how much of input %.60s there is depends on the data, and all of it would be needed", v->name);
}

static bool spread(spreading *s) {
  const uint32_t end = s->end = s->g->nodes.count, made = end - s->first;
  s->axis = ir_arena_take(s->c->im->temp, made + 1, 1);
  s->count = IR_NEW_ARRAY(s->c->im->temp, ir_expr, made + 1);
  if (!s->axis || !s->count) return false;
  for (uint32_t n = s->first; n < end; n++) s->axis[n - s->first] = (int8_t)axis_of(s, n, &s->count[n - s->first]);
  return true;
}

/* Does each place take many sums of products, or long ones? */
static bool is_dear(const spreading *s, uint32_t n) {
  enum { DEAR = 1024 }; /* elements that are read for a place */
  const ir_node *node = ir_at(s->g, n);
  if (s->axis[n - s->first] < 0 || !node->arity) return false;
  if (node->op != IR_OP_contract && !(ir_ops[node->op].flags & IR_REDUCE)) return false;
  int64_t read, places;
  const ir_expr elements = ir_tensor_elements(s->g->pool, &ir_at(s->g, ir_arg(s->g, n, 0))->type);
  if (!expr_is_const(s->g->pool, elements, &read) || !expr_is_const(s->g->pool, node->type.dims[s->axis[n - s->first]], &places))
    return false;
  return places > 1 && read / places >= DEAR;
}

/* What is dear says that the places behind the count are not wanted: schedules ask before they sum (fusion/emit/wanted.c). */
static uint32_t wanted_places(const spreading *s, uint32_t node, ir_expr count, uint32_t axis) {
  bool dear = false;
  for (uint32_t n = s->first; n <= node && n < s->end; n++) dear |= is_dear(s, n);
  return dear ? onnx_mask(s->c, node, count, axis, onnx_like(s->c, node, 0)) : node;
}

bool onnx_spread_counts(onnx_call *c, uint32_t first) {
  const onnx_value *counted = first_counted(c);
  spreading s = {.c = c, .g = c->g, .first = first};
  if (!counted) return true;
  if (has_graph(c->node)) return refuse_all(c, counted);
  if (!spread(&s)) return false;
  for (uint32_t i = 0; i < c->out_count; i++) {
    onnx_value *v = &c->out[i];
    if (!c->node->outputs.at[i][0] || v->known) continue; /* its extents, counts among them */
    ir_expr count = 0;
    const int axis = v->node ? axis_at(&s, v->node, &count) : FREE;
    if (v->count && (axis != FREE && axis != v->count_axis)) return onnx_refuse(c, "two axes whose extents depend on data");
    if (v->count) continue;
    if (axis < 0) return refuse_all(c, counted);
    if (!onnx_out_counted(c, i, wanted_places(&s, v->node, count, (uint32_t)axis), count, (uint32_t)axis, 0)) return false;
  }
  return true;
}
