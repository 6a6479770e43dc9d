/* Values whose extent depends on the data: along one axis the first `count` places are the value, `count` being a value of its own; the others are
   nobody's and hold -1 or 0. What each place is computed from the same place alone has as many places: this file finds out whether that is so, from the
   nodes that an operator became, and refuses what is not. An output of the model that is such a value has an output NAME.count beside it. */
#include "onnx/ops.h"
#include "onnx/import_private.h"

enum { FREE = -1, MIXED = -2 }; /* else the axis: of a node that does not depend on the value, and of one whose places do not keep apart */

typedef struct spreading {
  onnx_call *c;
  const ir_graph *g;
  int8_t *axis; /* of each node */
} spreading;

bool onnx_out_counted(onnx_call *c, uint32_t i, uint32_t node, uint32_t count, uint32_t axis, double rest) {
  if (!node || !count) return false;
  const ir_tensor type = *onnx_type_of(c, node);
  const uint32_t at = onnx_iota(c, SNT_I64, type.rank, type.dims, axis);
  if (!onnx_out(c, i, onnx_select(c, onnx_2(c, IR_OP_lt, at, count), node, onnx_like(c, node, rest)))) return false;
  if (i < c->out_count) c->out[i].count = count, c->out[i].count_axis = (uint8_t)axis;
  return true;
}

bool onnx_all_of(onnx_call *c, const onnx_value *v) {
  return !v->count || onnx_refuse(c, "how much of %.60s there is depends on the data", v->name);
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

static int of_reshape(const spreading *s, const ir_tensor *from, const ir_tensor *to, int axis) {
  const ir_expr before = elements_before(s, from, (uint32_t)axis);
  for (uint32_t i = 0; i < to->rank; i++)
    if (to->dims[i] == from->dims[axis] && elements_before(s, to, i) == before) return (int)i;
  return MIXED;
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
static int moved_axis(const spreading *s, uint32_t n, uint32_t i, int axis) {
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
  case IR_OP_reshape: return of_reshape(s, from, &node->type, axis);
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

static int axis_of(const spreading *s, uint32_t n) {
  int axis = FREE;
  for (uint32_t i = 0; i < ir_at(s->g, n)->arity; i++) {
    const int own = s->axis[ir_arg(s->g, n, i)];
    if (own == FREE) continue;
    const int moved = own == MIXED ? MIXED : moved_axis(s, n, i, own);
    if (moved == MIXED || (axis != FREE && moved != axis)) return MIXED;
    axis = moved;
  }
  return axis;
}

/* ---- a call ---- */
/* The one count of its operands, 0: none has one; false: there are several. */
static bool find_count(onnx_call *c, const onnx_value **out) {
  *out = NULL;
  for (uint32_t i = 0; i < c->in_count; i++) {
    if (!onnx_has(c, i) || !c->in[i]->count) continue;
    if (*out && (*out)->count != c->in[i]->count)
      return onnx_refuse(c, "how much of %.60s and how much of %.60s there is depends on the data", (*out)->name, c->in[i]->name);
    *out = c->in[i];
  }
  return true;
}

static bool has_graph(const onnx_node *n) {
  for (uint32_t i = 0; i < n->attrs.count; i++)
    if (n->attrs.at[i].kind == ONNX_GRAPH) return true;
  return false;
}

static bool refuse_all(onnx_call *c, const onnx_value *v) {
  return onnx_refuse(c, "how much of input %.60s there is depends on the data, and all of it would be needed", v->name);
}

bool onnx_spread_counts(onnx_call *c, uint32_t first) {
  const onnx_value *counted;
  if (!find_count(c, &counted) || c->refused) return false;
  if (!counted) return true;
  if (has_graph(c->node)) return refuse_all(c, counted);
  spreading s = {.c = c, .g = c->g, .axis = ir_arena_take(c->im->temp, c->g->nodes.count + 1, 1)};
  if (!s.axis) return false;
  memset(s.axis, FREE, c->g->nodes.count + 1);
  for (uint32_t i = 0; i < c->in_count; i++)
    if (onnx_has(c, i) && c->in[i]->count) s.axis[c->in[i]->node] = (int8_t)c->in[i]->count_axis;
  for (uint32_t n = first; n < c->g->nodes.count; n++) s.axis[n] = (int8_t)axis_of(&s, n);
  for (uint32_t i = 0; i < c->out_count; i++) {
    onnx_value *v = &c->out[i];
    if (v->count || !c->node->outputs.at[i][0]) continue;
    if (!v->node || s.axis[v->node] < 0) return refuse_all(c, counted);
    if (!onnx_out_counted(c, i, v->node, counted->count, (uint32_t)s.axis[v->node], 0)) return false;
  }
  return true;
}
