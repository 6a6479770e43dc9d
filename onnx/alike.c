/* Parts that are computed alike, and joined, are computed together: what a file says of 90 classes, one after another, becomes nodes with
   an axis of 90 in front.
   In: the parts of a concatenation. Out: the same value. Alike are nodes of one operator, type and attributes whose operands are; what the
   parts differ by stands where they begin: slices of one value at equal distances, and numbers. */
#include "onnx/import_private.h"
#include "onnx/ops.h"

typedef struct alike {
  onnx_call *c;
  ir_graph *g;
  ir_arena *arena; /* ends with it */
  uint32_t count;
  uint32_t **nodes; /* of a node of the first part: of all parts; null: not asked for */
  uint32_t *made;   /* the node that is all of them together; 0: the same for all, the first's will do */
  bool *leaf;       /* made from what the parts differ by */
} alike;

/* ---- which nodes are alike ---- */

static bool all_same(const alike *a, const uint32_t *nodes) {
  for (uint32_t i = 1; i < a->count; i++)
    if (nodes[i] != nodes[0]) return false;
  return true;
}

static bool same_ints(const ir_graph *g, const ir_attr *a, const ir_attr *b) {
  return a->key == b->key && a->count == b->count &&
         (!a->count || !memcmp(&g->ints.at[a->first], &g->ints.at[b->first], a->count * sizeof(ir_expr)));
}

/* Operator, type and attributes; of slices not where they begin. */
static bool same_kind(const ir_graph *g, uint32_t a, uint32_t b) {
  const ir_node *first = ir_at(g, a), *other = ir_at(g, b);
  bool same = first->op == other->op && first->arity == other->arity && first->attr_count == other->attr_count &&
              first->region == other->region && first->type.dtype == other->type.dtype && ir_same_shape(&first->type, &other->type);
  for (uint32_t i = 0; same && i < first->attr_count; i++) {
    const ir_attr *own = &g->attrs.at[first->attrs + i];
    same = same_ints(g, own, &g->attrs.at[other->attrs + i]) || (first->op == IR_OP_slice && own->key == IR_ATTR_starts);
  }
  return same;
}

/* The axis along which slices of one value lie at equal distances beside each other, one place or all of them; -1: they do not. */
static int slices_lie(const alike *a, const uint32_t *nodes, int64_t *far) {
  uint32_t rank;
  int axis = -1;
  const ir_expr *first = ir_attr_ints(a->g, nodes[0], IR_ATTR_starts, &rank), *second = ir_attr_ints(a->g, nodes[1], IR_ATTR_starts, &rank);
  for (uint32_t d = 0; d < rank; d++) {
    if (first[d] == second[d]) continue;
    if (axis >= 0 || !expr_is_const(a->g->pool, expr_sub(a->g->pool, second[d], first[d]), far)) return -1;
    axis = (int)d;
  }
  for (uint32_t i = 1; axis >= 0 && i < a->count; i++) {
    const ir_expr *own = ir_attr_ints(a->g, nodes[i], IR_ATTR_starts, &rank);
    if (ir_arg(a->g, nodes[i], 0) != ir_arg(a->g, nodes[0], 0)) return -1;
    for (uint32_t d = 0; d < rank; d++)
      if (own[d] != ((int)d == axis ? expr_add(a->g->pool, first[d], expr_int(a->g->pool, *far * i)) : first[d])) return -1;
  }
  if (axis < 0) return -1;
  const ir_expr size = ir_at(a->g, nodes[0])->type.dims[axis], step = ir_attr_ints(a->g, nodes[0], IR_ATTR_steps, &rank)[axis];
  return size == 1 || (step == 1 && size == *far) ? axis : -1;
}

static bool starts_differ(const alike *a, const uint32_t *nodes) {
  const ir_node *first = ir_at(a->g, nodes[0]);
  bool same = true;
  for (uint32_t i = 1; i < a->count; i++)
    for (uint32_t k = 0; k < first->attr_count; k++)
      same &= same_ints(a->g, &a->g->attrs.at[first->attrs + k], &a->g->attrs.at[ir_at(a->g, nodes[i])->attrs + k]);
  return !same;
}

/* With an axis in front it is the same operator, but for a gather, which has a way of its own. */
static bool takes_axis(const ir_graph *g, uint32_t n) {
  const ir_op op = (ir_op)ir_at(g, n)->op;
  const uint32_t flags = ir_ops[op].flags;
  if (op == IR_OP_custom || op == IR_OP_words || ir_at(g, n)->type.rank >= SNT_MAX_RANK) return false;
  if (op == IR_OP_gather) return !ir_attr_flag(g, n, IR_ATTR_zero);
  return flags & (IR_POINTWISE | IR_MOVEMENT | IR_REDUCE | IR_SCAN) || op == IR_OP_argsort || op == IR_OP_iota || op == IR_OP_dim;
}

/* Asks for operand k of all of them; false: its first is asked for with others beside it already. */
static bool ask_operand(alike *a, const uint32_t *nodes, uint32_t k) {
  const uint32_t first = ir_arg(a->g, nodes[0], k);
  uint32_t *own = IR_NEW_ARRAY(a->arena, uint32_t, a->count);
  if (!own) return false;
  for (uint32_t i = 0; i < a->count; i++) own[i] = ir_arg(a->g, nodes[i], k);
  if (!a->nodes[first]) a->nodes[first] = own;
  return !memcmp(a->nodes[first], own, a->count * sizeof *own);
}

static bool are_numbers(alike *a, uint32_t n, const uint32_t *nodes) {
  const ir_const *first = &a->g->consts.at[ir_at(a->g, n)->payload];
  bool numbers = true;
  for (uint32_t i = 0; i < a->count; i++) {
    const ir_const *own = &a->g->consts.at[ir_at(a->g, nodes[i])->payload];
    numbers &= own->kind == IR_CONST_SPLAT;
    a->leaf[n] |= own->bits != first->bits;
  }
  return numbers;
}

static bool look_at(alike *a, uint32_t n) {
  const uint32_t *nodes = a->nodes[n];
  int64_t far;
  if (all_same(a, nodes)) return true;
  for (uint32_t i = 1; i < a->count; i++)
    if (!same_kind(a->g, n, nodes[i])) return false;
  if (ir_at(a->g, n)->op == IR_OP_const) return are_numbers(a, n, nodes);
  if (ir_at(a->g, n)->op == IR_OP_slice && starts_differ(a, nodes)) {
    a->leaf[n] = true;
    return ir_at(a->g, n)->type.rank < SNT_MAX_RANK && slices_lie(a, nodes, &far) >= 0;
  }
  if (!takes_axis(a->g, n)) return false;
  for (uint32_t k = 0; k < ir_at(a->g, n)->arity; k++)
    if (!ask_operand(a, nodes, k)) return false;
  return true;
}

/* ---- all of them together ---- */

/* [count, dims] of a node that is the same for all, or, of rank 0, the same for a whole part. */
static uint32_t spread(alike *a, uint32_t node, const ir_tensor *type, bool by_part) {
  ir_expr dims[SNT_MAX_RANK] = {a->count}, axes[SNT_MAX_RANK] = {0};
  const uint32_t rank = by_part ? 1 : type->rank;
  memcpy(dims + 1, type->dims, type->rank * sizeof *dims);
  for (uint32_t d = 0; d < rank && !by_part; d++) axes[d] = (ir_expr)d + 1;
  const ir_attr_value attrs[] = {{IR_ATTR_axes, rank, axes}, {IR_ATTR_shape, type->rank + 1u, dims}};
  return ir_add_node(a->g, IR_OP_broadcast, 1, &node, 2, attrs, NULL);
}

/* Operand k of n with the axis in front. Numbers beside tensors stay as they are, where they are the same for all. */
static uint32_t operand(alike *a, uint32_t n, uint32_t k) {
  const uint32_t node = ir_arg(a->g, n, k);
  const ir_tensor type = ir_at(a->g, n)->type, own = ir_at(a->g, node)->type;
  const bool pointwise = ir_ops[ir_at(a->g, n)->op].flags & IR_POINTWISE;
  if (!a->made[node]) return pointwise && !own.rank ? node : spread(a, node, &own, false);
  return pointwise && !own.rank && type.rank ? spread(a, a->made[node], &type, true) : a->made[node];
}

/* What stands for the new axis in front of a list that has an entry for each axis. */
static const struct {
  uint8_t op, key;
  int8_t front; /* -1: its extent */
} fronts[] = {
    {IR_OP_transpose, IR_ATTR_perm, 0}, {IR_OP_broadcast, IR_ATTR_axes, 0}, {IR_OP_broadcast, IR_ATTR_shape, -1},
    {IR_OP_reshape, IR_ATTR_shape, -1}, {IR_OP_slice, IR_ATTR_starts, 0},   {IR_OP_slice, IR_ATTR_sizes, -1},
    {IR_OP_slice, IR_ATTR_steps, 1},    {IR_OP_pad, IR_ATTR_low, 0},        {IR_OP_pad, IR_ATTR_high, 0},
};

static ir_attr_value lift_attr(const alike *a, uint32_t op, const ir_attr *attr, ir_expr *room) {
  const bool axes = attr->key == IR_ATTR_axis || attr->key == IR_ATTR_axes || attr->key == IR_ATTR_perm;
  uint32_t count = 0;
  for (uint32_t i = 0; i < IR_COUNT(fronts); i++)
    if (fronts[i].op == op && fronts[i].key == attr->key) room[count++] = fronts[i].front < 0 ? (ir_expr)a->count : fronts[i].front;
  for (uint32_t i = 0; i < attr->count; i++) room[count++] = a->g->ints.at[attr->first + i] + axes;
  return (ir_attr_value){attr->key, count, room};
}

static uint32_t lift(alike *a, uint32_t n) {
  const ir_node node = *ir_at(a->g, n);
  ir_attr_value attrs[IR_ATTR_COUNT];
  ir_expr room[8][SNT_MAX_RANK + 1];
  uint32_t *args = IR_NEW_ARRAY(a->arena, uint32_t, node.arity);
  if (!args || node.attr_count > IR_COUNT(room)) return 0;
  for (uint32_t k = 0; k < node.arity; k++) args[k] = operand(a, n, k);
  for (uint32_t i = 0; i < node.attr_count; i++) attrs[i] = lift_attr(a, node.op, &a->g->attrs.at[node.attrs + i], room[i]);
  return ir_add_node(a->g, (ir_op)node.op, node.arity, args, node.attr_count, attrs, NULL);
}

/* Axis `from` before the first one. */
static uint32_t axis_first(alike *a, uint32_t node, uint32_t from) {
  uint32_t perm[SNT_MAX_RANK] = {from};
  const uint32_t rank = node ? ir_at(a->g, node)->type.rank : 0;
  for (uint32_t d = 0, at = 1; d < rank; d++)
    if (d != from) perm[at++] = d;
  return onnx_transpose(a->c, node, perm);
}

/* A table for each part, looked up by its own indices: one table of all rows. */
static uint32_t gather_own(alike *a, uint32_t table, uint32_t index) {
  expr_pool *x = a->g->pool;
  ir_tensor rows = *onnx_type_of(a->c, table);
  const ir_expr extent = rows.dims[1], zero = 0;
  rows.rank--, rows.dims[0] = expr_mul(x, rows.dims[0], extent);
  memmove(rows.dims + 1, rows.dims + 2, (rows.rank - 1u) * sizeof *rows.dims);
  index = onnx_cast(a->c, index, SNT_I64);
  const ir_tensor type = *onnx_type_of(a->c, index);
  const uint32_t part = onnx_iota(a->c, SNT_I64, type.rank, type.dims, 0), last = onnx_extent(a->c, expr_sub(x, extent, 1), SNT_I64);
  const uint32_t inside = onnx_2(a->c, IR_OP_max, onnx_2(a->c, IR_OP_min, index, last), onnx_extent(a->c, zero, SNT_I64));
  const uint32_t row = onnx_2(a->c, IR_OP_add, inside, onnx_2(a->c, IR_OP_mul, part, onnx_extent(a->c, extent, SNT_I64)));
  return onnx_gather(a->c, onnx_reshape(a->c, table, rows.rank, rows.dims), row, 0);
}

/* The same along another axis of the tables, which is their first one meanwhile. */
static uint32_t gather_along(alike *a, uint32_t table, uint32_t index, uint32_t axis) {
  const uint32_t rank = onnx_type_of(a->c, table)->rank, own = onnx_type_of(a->c, index)->rank - 1u;
  uint32_t perm[SNT_MAX_RANK] = {0, axis + 1}, back[SNT_MAX_RANK] = {0};
  for (uint32_t d = 1, at = 2; d < rank; d++)
    if (d != axis + 1) perm[at++] = d;
  for (uint32_t d = 0; d < axis; d++) back[1 + d] = 1 + own + d;
  for (uint32_t d = 0; d < own; d++) back[1 + axis + d] = 1 + d;
  for (uint32_t d = 1 + axis + own; d < rank - 1u + own; d++) back[d] = d;
  return onnx_transpose(a->c, gather_own(a, onnx_transpose(a->c, table, perm), index), back);
}

static uint32_t lift_gather(alike *a, uint32_t n) {
  const uint32_t table = ir_arg(a->g, n, 0), index = ir_arg(a->g, n, 1), axis = (uint32_t)ir_attr_int(a->g, n, IR_ATTR_axis, 0);
  if (!a->made[index]) return onnx_gather(a->c, a->made[table], index, axis + 1);
  if (!a->made[table]) return axis_first(a, onnx_gather(a->c, table, a->made[index], axis), axis);
  return gather_along(a, a->made[table], a->made[index], axis);
}

static uint32_t lift_slices(alike *a, uint32_t n) {
  const ir_tensor type = ir_at(a->g, n)->type;
  const uint32_t rank = type.rank;
  uint32_t count;
  int64_t far;
  const uint32_t axis = (uint32_t)slices_lie(a, a->nodes[n], &far);
  ir_expr starts[SNT_MAX_RANK], steps[SNT_MAX_RANK], sizes[SNT_MAX_RANK + 1];
  memcpy(starts, ir_attr_ints(a->g, n, IR_ATTR_starts, &count), rank * sizeof *starts);
  memcpy(steps, ir_attr_ints(a->g, n, IR_ATTR_steps, &count), rank * sizeof *steps);
  memcpy(sizes, type.dims, rank * sizeof *sizes);
  if (type.dims[axis] == 1) steps[axis] = expr_int(a->g->pool, far);
  sizes[axis] = expr_mul(a->g->pool, type.dims[axis], a->count);
  const uint32_t x = ir_arg(a->g, n, 0);
  const ir_attr_value attrs[] = {{IR_ATTR_sizes, rank, sizes}, {IR_ATTR_starts, rank, starts}, {IR_ATTR_steps, rank, steps}};
  const uint32_t all = ir_add_node(a->g, IR_OP_slice, 1, &x, 3, attrs, NULL);
  memcpy(sizes + axis + 1, type.dims + axis, (rank - axis) * sizeof *sizes);
  sizes[axis] = a->count;
  return axis_first(a, onnx_reshape(a->c, all, rank + 1, sizes), axis);
}

static uint32_t lift_numbers(alike *a, uint32_t n) {
  const ir_tensor type = ir_at(a->g, n)->type, list = {.dtype = type.dtype, .rank = 1, .dims = {a->count}};
  uint8_t *data = ir_arena_take(onnx_arena(a->c), (size_t)a->count * ir_dtypes[type.dtype].bytes, 64);
  if (!data) return 0;
  for (uint32_t i = 0; i < a->count; i++) {
    const uint64_t bits = a->g->consts.at[ir_at(a->g, a->nodes[n][i])->payload].bits;
    double number;
    memcpy(&number, &bits, sizeof number);
    if (ir_dtypes[type.dtype].is_float) ir_dtype_store(type.dtype, data, i, number);
    else ir_dtype_store_int(type.dtype, data, i, (int64_t)bits);
  }
  const uint32_t all = ir_add_const(a->g, &list, &(ir_const){.kind = IR_CONST_DATA, .data = data});
  return type.rank ? spread(a, all, &type, true) : all;
}

static bool differs(const alike *a, uint32_t n) {
  bool any = false;
  for (uint32_t k = 0; k < ir_at(a->g, n)->arity; k++) any |= a->made[ir_arg(a->g, n, k)] != 0;
  return any;
}

static bool make(alike *a, uint32_t n) {
  const ir_op op = (ir_op)ir_at(a->g, n)->op;
  if (all_same(a, a->nodes[n]) || (!a->leaf[n] && !differs(a, n))) return true;
  a->made[n] = op == IR_OP_const    ? lift_numbers(a, n)
               : a->leaf[n]         ? lift_slices(a, n)
               : op == IR_OP_gather ? lift_gather(a, n)
                                    : lift(a, n);
  return a->made[n] != 0;
}

/* [count, .., extent, ..] as [.., count * extent, ..]. */
static uint32_t side_by_side(alike *a, uint32_t node, uint32_t axis) {
  ir_tensor type = *onnx_type_of(a->c, node);
  uint32_t perm[SNT_MAX_RANK];
  for (uint32_t d = 0; d < type.rank; d++) perm[d] = d < axis ? d + 1 : d == axis ? 0 : d;
  node = onnx_transpose(a->c, node, perm);
  memmove(type.dims, type.dims + 1, (type.rank - 1u) * sizeof *type.dims);
  type.dims[axis] = expr_mul(a->g->pool, type.dims[axis], a->count);
  return onnx_reshape(a->c, node, type.rank - 1u, type.dims);
}

static uint32_t join(alike *a, uint32_t axis, const uint32_t *parts) {
  const uint32_t first = parts[0];
  a->nodes = IR_NEW_ARRAY(a->arena, uint32_t *, first + 1), a->made = IR_NEW_ARRAY(a->arena, uint32_t, first + 1);
  a->leaf = IR_NEW_ARRAY(a->arena, bool, first + 1);
  uint32_t *own = IR_NEW_ARRAY(a->arena, uint32_t, a->count);
  if (!a->nodes || !a->made || !a->leaf || !own) return 0;
  memcpy(own, parts, a->count * sizeof *own);
  a->nodes[first] = own;
  for (uint32_t n = first; n > 0; n--)
    if (a->nodes[n] && !look_at(a, n)) return 0;
  for (uint32_t n = 1; n <= first; n++)
    if (a->nodes[n] && !make(a, n)) return 0;
  return side_by_side(a, a->made[first] ? a->made[first] : spread(a, first, &ir_at(a->g, first)->type, false), axis);
}

uint32_t onnx_join_alike(onnx_call *c, uint32_t axis, uint32_t count, const uint32_t *parts) {
  enum { FEW = 8 }; /* are parts as well */
  ir_arena temp;
  if (count < FEW || c->g->failed || ir_at(c->g, parts[0])->type.rank >= SNT_MAX_RANK || !same_kind(c->g, parts[0], parts[1])) return 0;
  ir_arena_init(&temp, &c->g->arena->host);
  const uint32_t joined = join(&(alike){.c = c, .g = c->g, .arena = &temp, .count = count}, axis, parts);
  ir_arena_free(&temp);
  return joined;
}
