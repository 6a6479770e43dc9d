/* Canonical form: constants folded, equal nodes shared, identities dropped, constants that do not vary along an axis made small, dead code gone.
   In: any graph of primitives. Out: the same values, bit for bit. Order of the rules: the list at the end. */
#include "fusion/rebuild.h"
#include <math.h>

static double splat_value(const rebuild *r, uint32_t made, bool *found) {
  double value = 0;
  *found = ir_is_scalar_const(r->to, made, &value);
  return value;
}

/* x * 1, x / 1, x - 0: exact for every x; x - -0 is not, -0 would be 0. */
static uint32_t drop_identity(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  bool found;
  const double neutral = n->op == IR_OP_sub ? 0 : 1;
  for (uint32_t side = n->op == IR_OP_mul ? 0 : 1; side < 2; side++) {
    const double value = splat_value(r, r->args[side], &found);
    if (found && value == neutral && !signbit(value) && ir_same_shape(&ir_at(r->to, r->args[1 - side])->type, &n->type))
      return r->args[1 - side];
  }
  return 0;
}

/* A view or cast that changes nothing. */
static uint32_t drop_view(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  const ir_tensor *operand = &ir_at(r->to, r->args[0])->type;
  if (operand->dtype != n->type.dtype || !ir_same_shape(operand, &n->type)) return 0;
  uint32_t count;
  if (n->op == IR_OP_slice) {
    const ir_expr *steps = ir_attr_ints(r->from, r->node, IR_ATTR_steps, &count);
    for (uint32_t i = 0; steps && i < count; i++)
      if (steps[i] < 0 || IR_EXPR_NODE(steps[i]) == 0) return 0;
    const ir_expr *starts = ir_attr_ints(r->from, r->node, IR_ATTR_starts, &count);
    for (uint32_t i = 0; starts && i < count; i++)
      if (starts[i] != 0) return 0;
    for (uint32_t i = 0; steps && i < n->type.rank; i++)
      if (steps[i] != 1) return 0;
  }
  if (n->op == IR_OP_pad) { /* as much cut off on one side as added on the other keeps the shape */
    const ir_expr *low = ir_attr_ints(r->from, r->node, IR_ATTR_low, &count);
    for (uint32_t i = 0; low && i < count; i++)
      if (low[i] != 0) return 0;
  }
  return r->args[0];
}

/* reshape of reshape reads through. */
static uint32_t merge_reshapes(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node), *inner = ir_at(r->to, r->args[0]);
  if (n->arity != 1 || inner->op != IR_OP_reshape) return 0;
  const uint32_t operand = ir_arg(r->to, r->args[0], 0);
  return rebuild_reshape(r, operand, n->type.rank, n->type.dims);
}

/* gather at a known place is a slice. */
static uint32_t gather_is_slice(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  expr_pool *x = r->to->pool;
  uint32_t index = r->args[1];
  const ir_tensor *data = &ir_at(r->to, r->args[0])->type;
  const ir_expr *dims = ir_at(r->to, index)->type.dims;
  for (uint32_t i = 0; i < ir_at(r->to, index)->type.rank; i++)
    if (dims[i] != 1) return 0;
  for (;; index = ir_arg(r->to, index, 0)) {
    const ir_node *in = ir_at(r->to, index);
    const ir_dtype_info *type = &ir_dtypes[in->type.dtype];
    if (in->op != IR_OP_const && (type->bits < 32 || type->is_float)) return 0; /* it may not hold the number */
    if (in->op != IR_OP_reshape && in->op != IR_OP_cast) break;
  }
  double value;
  ir_expr at;
  if (ir_at(r->to, index)->op == IR_OP_dim) at = ir_attr_ints(r->to, index, IR_ATTR_shape, NULL)[0];
  else if (ir_is_scalar_const(r->to, index, &value) && value >= 0 && value < 0x1p31) at = expr_int(x, (int64_t)value);
  else return 0;
  const uint32_t axis = (uint32_t)ir_attr_int(r->from, r->node, IR_ATTR_axis, 0);
  if (!expr_proves_le(x, 0, at) || !expr_proves_lt(x, at, data->dims[axis])) return 0;
  ir_expr starts[SNT_MAX_RANK] = {0}, sizes[SNT_MAX_RANK];
  memcpy(sizes, data->dims, sizeof sizes);
  starts[axis] = at;
  sizes[axis] = 1;
  return rebuild_reshape(r, rebuild_slice(r, r->args[0], data->rank, starts, sizes, NULL), n->type.rank, n->type.dims);
}

/* A splat needs no shape: pointwise operators take it as a scalar. */
static uint32_t shrink_splat(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  if (n->arity < 2 || n->op == IR_OP_custom) return 0;
  uint32_t args[3];
  bool changed = false, shaped = false;
  for (uint32_t i = 0; i < n->arity; i++) {
    uint32_t at = r->args[i];
    while (ir_at(r->to, at)->op == IR_OP_broadcast || ir_at(r->to, at)->op == IR_OP_reshape) at = ir_arg(r->to, at, 0);
    double value;
    const bool splat = ir_is_scalar_const(r->to, at, &value) && ir_at(r->to, r->args[i])->type.rank > 0;
    args[i] = r->args[i];
    if (splat && ir_at(r->to, at)->type.rank == 0) args[i] = at, changed = true;
    shaped |= ir_at(r->to, args[i])->type.rank == n->type.rank;
  }
  return changed && shaped ? ir_add_node(r->to, (ir_op)n->op, n->arity, args, 0, NULL, NULL) : 0;
}

static bool varies_along(const void *data, uint32_t bytes, int64_t outer, int64_t extent, int64_t inner) {
  const uint8_t *p = data;
  const size_t row = (size_t)inner * bytes;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 1; i < extent; i++)
      if (memcmp(p + (size_t)o * extent * row, p + ((size_t)o * extent + i) * row, row)) return true;
  return false;
}

/* A constant equal along an axis is one slice of it, broadcast: filters that are the same for every channel become a few literals. */
static uint32_t shrink_const(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  if (r->from->consts.at[n->payload].kind != IR_CONST_DATA || n->type.rank == 0) return 0;
  const uint8_t *data = r->from->consts.at[n->payload].data;
  const uint32_t bytes = ir_dtypes[n->type.dtype].bytes;
  for (uint32_t axis = 0; axis < n->type.rank; axis++) {
    int64_t outer = 1, inner = 1;
    const int64_t extent = n->type.dims[axis];
    for (uint32_t i = 0; i < axis; i++) outer *= n->type.dims[i];
    for (uint32_t i = axis + 1; i < n->type.rank; i++) inner *= n->type.dims[i];
    if (extent < 2 || outer < 1 || inner < 1 || varies_along(data, bytes, outer, extent, inner)) continue;
    ir_tensor small = n->type;
    small.dims[axis] = 1;
    uint8_t *kept = ir_arena_take(r->c->arena, (size_t)(outer * inner) * bytes, 16);
    if (!kept) return 0;
    for (int64_t o = 0; o < outer; o++)
      memcpy(kept + (size_t)(o * inner) * bytes, data + (size_t)(o * extent * inner) * bytes, (size_t)inner * bytes);
    const ir_const payload = {.kind = IR_CONST_DATA, .data = kept};
    const uint32_t made = ir_add_const(r->to, &small, &payload);
    ir_expr axes[SNT_MAX_RANK];
    for (uint32_t i = 0; i < n->type.rank; i++) axes[i] = i;
    return rebuild_broadcast(r, made, n->type.rank, axes, n->type.rank, n->type.dims);
  }
  return 0;
}

/* Data of one element is a splat. */
static uint32_t splat_of_one(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  if (r->from->consts.at[n->payload].kind != IR_CONST_DATA) return 0;
  for (uint32_t i = 0; i < n->type.rank; i++)
    if (n->type.dims[i] != 1) return 0;
  const void *data = r->from->consts.at[n->payload].data;
  ir_const payload = {.kind = IR_CONST_SPLAT};
  if (ir_dtypes[n->type.dtype].is_float) {
    const double value = ir_dtype_load(n->type.dtype, data, 0);
    memcpy(&payload.bits, &value, sizeof value);
  } else {
    payload.bits = (uint64_t)ir_dtype_load_int(n->type.dtype, data, 0);
  }
  const ir_tensor scalar = {.dtype = n->type.dtype};
  const uint32_t made = ir_add_const(r->to, &scalar, &payload);
  if (!n->type.rank) return made;
  return rebuild_reshape(r, made, n->type.rank, n->type.dims);
}

static bool is_read_once(const ir_graph *g, uint32_t node) {
  const ir_node *n = ir_at(g, node + 1);
  uint32_t readers = 0;
  for (const ir_node *end = ir_at(g, g->nodes.count - 1); n <= end; n++)
    for (uint32_t i = 0; i < n->arity; i++) readers += g->args.at[n->args + i] == node;
  return readers == 1 && !ir_is_output(g, node);
}

/* A concatenation of more than a kernel can bind is one of concatenations, each as wide as can be; one that grows step by step, each of which nothing but
   the next one reads, is as wide as can be, too. */
static uint32_t nest_concat(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  const uint32_t limit = r->c->options->profile->max_bindings, most = limit > 2 ? limit - 1 : UINT32_MAX,
                 given = ir_arg(r->from, r->node, 0), first = r->map[given];
  const bool joins = ir_at(r->to, first)->op == IR_OP_concat && ir_at(r->to, first)->arity + n->arity - 1u <= most &&
                     ir_attr_int(r->to, first, IR_ATTR_axis, 0) == ir_attr_int(r->from, r->node, IR_ATTR_axis, 0) &&
                     is_read_once(r->from, given);
  if (!joins && n->arity <= most) return 0;
  const uint32_t own = joins ? ir_at(r->to, first)->arity : 1, all = own + n->arity - 1;
  uint32_t *parts = IR_NEW_ARRAY(r->c->arena, uint32_t, all), count = 0;
  if (!parts) return 0;
  for (uint32_t k = 0; k < all; k++)
    parts[k] = k >= own ? r->map[ir_arg(r->from, r->node, k + 1 - own)] : joins ? ir_arg(r->to, first, k) : first;
  for (uint32_t i = 0; i < all && !joins; i += most) {
    const uint32_t size = all - i < most ? all - i : most;
    parts[count++] = size == 1 ? parts[i] : rebuild_with(r, size, parts + i, 0, NULL);
  }
  return rebuild_with(r, joins ? all : count, parts, 0, NULL);
}

/* The value on which `axis` runs forwards, where it runs backwards as a whole, below transposes and beside other cuts; 0: it does not. */
static uint32_t turned_forwards(rebuild *r, uint32_t node, uint32_t axis) {
  const ir_node *n = ir_at(r->to, node);
  uint32_t count;
  int64_t step;
  if (n->op == IR_OP_transpose) {
    ir_expr perm[SNT_MAX_RANK];
    memcpy(perm, ir_attr_ints(r->to, node, IR_ATTR_perm, &count), n->type.rank * sizeof *perm);
    const uint32_t below = turned_forwards(r, ir_arg(r->to, node, 0), (uint32_t)perm[axis]);
    return below ? rebuild_transpose(r, below, count, perm) : 0;
  }
  const ir_expr *old = n->op == IR_OP_slice ? ir_attr_ints(r->to, node, IR_ATTR_steps, &count) : NULL;
  const ir_tensor *operand = old ? &ir_at(r->to, ir_arg(r->to, node, 0))->type : NULL;
  if (!old || !expr_is_const(r->to->pool, old[axis], &step) || step != -1 || operand->dims[axis] != n->type.dims[axis]) return 0;
  ir_expr starts[SNT_MAX_RANK], steps[SNT_MAX_RANK], sizes[SNT_MAX_RANK];
  memcpy(steps, old, count * sizeof *steps);
  memcpy(starts, ir_attr_ints(r->to, node, IR_ATTR_starts, &count), count * sizeof *starts);
  memcpy(sizes, n->type.dims, count * sizeof *sizes);
  starts[axis] = 0, steps[axis] = 1;
  return rebuild_slice(r, ir_arg(r->to, node, 0), count, starts, sizes, steps);
}

/* Turned twice is not turned. */
static uint32_t turn_back(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  const ir_expr *steps = ir_attr_ints(r->from, r->node, IR_ATTR_steps, NULL);
  const ir_tensor *operand = steps ? &ir_at(r->to, r->args[0])->type : NULL;
  int64_t step;
  for (uint32_t axis = 0; steps && axis < n->type.rank; axis++) {
    if (!expr_is_const(r->to->pool, steps[axis], &step) || step != -1 || operand->dims[axis] != n->type.dims[axis]) continue;
    const uint32_t below = turned_forwards(r, r->args[0], axis);
    if (below) return turned_forwards(r, rebuild_copy_of(r, r->node, &below), axis);
  }
  return 0;
}

/* A scan of what runs backwards is the scan from the other end, backwards: its readers often turn it again. */
static uint32_t scan_from_end(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  const ir_expr axis = ir_attr_int(r->from, r->node, IR_ATTR_axis, 0);
  uint32_t args[2], count = 0;
  for (uint32_t i = 0; i < n->arity; i++)
    if (!(args[i] = turned_forwards(r, r->args[i], (uint32_t)axis))) return 0;
  ir_attr_value attrs[3] = {{IR_ATTR_axis, 1, &axis}};
  if (ir_attr_flag(r->from, r->node, IR_ATTR_exclusive)) attrs[++count] = (ir_attr_value){IR_ATTR_exclusive, 0, NULL};
  if (!ir_attr_flag(r->from, r->node, IR_ATTR_reverse)) attrs[++count] = (ir_attr_value){IR_ATTR_reverse, 0, NULL};
  const uint32_t scan = ir_add_node(r->to, (ir_op)n->op, n->arity, args, count + 1, attrs, NULL);
  r->to->nodes.at[scan].origin = n->origin;
  ir_expr starts[SNT_MAX_RANK] = {0}, steps[SNT_MAX_RANK];
  for (uint32_t i = 0; i < n->type.rank; i++) steps[i] = i == (uint32_t)axis ? expr_int(r->to->pool, -1) : 1;
  starts[axis] = expr_sub(r->to->pool, n->type.dims[axis], 1);
  return rebuild_slice(r, scan, n->type.rank, starts, n->type.dims, steps);
}

static bool same_attrs(const ir_graph *g, const ir_node *a, const ir_node *b) {
  if (a->attr_count != b->attr_count) return false;
  for (uint32_t i = 0; i < a->attr_count; i++) {
    const ir_attr *x = &g->attrs.at[a->attrs + i], *y = &g->attrs.at[b->attrs + i];
    if (x->key != y->key || x->count != y->count || memcmp(g->ints.at + x->first, g->ints.at + y->first, x->count * sizeof(ir_expr)))
      return false;
  }
  return true;
}

/* ---- equal nodes ---- */

/* Nodes have one number where they are equal all the way down, constants and iotas included. */
typedef struct numbering {
  uint32_t *table, *number, *same; /* same: the node that is read in its place */
  uint32_t mask;
} numbering;

static const ir_making *making_of(const ir_graph *g, const ir_node *n) {
  return n->op == IR_OP_const && g->consts.at[n->payload].kind == IR_CONST_MADE ? g->consts.at[n->payload].making : NULL;
}

static bool has_number(const ir_graph *g, const ir_node *n) {
  if (n->op == IR_OP_const) return g->consts.at[n->payload].kind == IR_CONST_SPLAT || making_of(g, n);
  return n->op == IR_OP_iota || n->op == IR_OP_dim || (!(ir_ops[n->op].flags & IR_SOURCE) && n->op != IR_OP_repeat && n->op != IR_OP_pick);
}

/* Equal for equal constants. */
static uint64_t bits_of(const ir_graph *g, const ir_node *n) {
  const ir_making *m = making_of(g, n);
  if (m) return m->bytes ^ (uintptr_t)m->sources[0].data;
  return n->op == IR_OP_const ? g->consts.at[n->payload].bits : 0;
}

static bool is_equal(const ir_graph *g, const uint32_t *number, const ir_node *a, const ir_node *b) {
  if (a->op != b->op || a->arity != b->arity || a->type.dtype != b->type.dtype || a->region != b->region || bits_of(g, a) != bits_of(g, b))
    return false;
  for (uint32_t i = 0; i < a->arity; i++)
    if (number[g->args.at[a->args + i]] != number[g->args.at[b->args + i]]) return false;
  return ir_same_shape(&a->type, &b->type) && same_attrs(g, a, b) && ir_same_making(making_of(g, a), making_of(g, b));
}

/* What is made of numbers by the way stays with each reader: a mask that many share would be stored for all of them. Sums and sorts are worth being one, and so
   are constants that are described: each would have its room (the weights of a recurrence that is written out, once a step). */
static bool is_shared(const ir_graph *g, const ir_node *a, const ir_node *b) {
  return !(ir_ops[a->op].flags & (IR_POINTWISE | IR_MOVEMENT)) ||
         !memcmp(g->args.at + a->args, g->args.at + b->args, a->arity * sizeof(uint32_t));
}

static void share_node(ir_graph *g, numbering *s, uint32_t n, bool *changed) {
  const ir_node *node = ir_at(g, n);
  uint64_t h = bits_of(g, node) + node->op;
  for (uint32_t i = 0; i < node->arity; i++) h = (h + s->number[g->args.at[node->args + i]]) * UINT64_C(0x9E3779B97F4A7C15);
  h ^= h >> 32;
  for (;; h++) {
    uint32_t *cell = &s->table[h & s->mask];
    if (!*cell) {
      *cell = n;
      return;
    }
    const ir_node *other = ir_at(g, *cell);
    if (!is_equal(g, s->number, other, node)) continue;
    s->number[n] = s->number[*cell];
    if ((ir_ops[node->op].flags & IR_SOURCE) && !making_of(g, node)) return;
    if (!is_shared(g, other, node)) continue;
    s->same[n] = *cell;
    *changed = true;
    return;
  }
}

static snt_result share_equal(fusion_context *c, bool *changed) {
  ir_graph *g = c->graph;
  uint32_t size = 64;
  while (size < 2 * g->nodes.count) size *= 2;
  numbering s = {IR_NEW_ARRAY(c->arena, uint32_t, size), IR_NEW_ARRAY(c->arena, uint32_t, g->nodes.count),
                 IR_NEW_ARRAY(c->arena, uint32_t, g->nodes.count), size - 1};
  if (!s.table || !s.number || !s.same) return ir_no_memory(c->diag, "canonicalise");
  for (uint32_t n = 1; n < g->nodes.count; n++) {
    const ir_node *node = ir_at(g, n);
    s.number[n] = s.same[n] = n;
    for (uint32_t i = 0; i < node->arity; i++) g->args.at[node->args + i] = s.same[g->args.at[node->args + i]];
    if (has_number(g, node)) share_node(g, &s, n, changed);
  }
  for (uint32_t i = 0; i < g->outputs.count; i++) g->outputs.at[i].node = s.same[g->outputs.at[i].node];
  for (uint32_t i = 0; i < g->updates.count; i++) g->updates.at[i].value = s.same[g->updates.at[i].value];
  for (uint32_t i = 0; i < g->contract_values.count; i++) g->contract_values.at[i] = s.same[g->contract_values.at[i]];
  return SNT_OK;
}

static const rebuild_rule rules[] = {
    {drop_identity, .ops = {IR_OP_mul, IR_OP_div, IR_OP_sub}},
    {drop_view, .ops = {IR_OP_reshape, IR_OP_broadcast, IR_OP_cast, IR_OP_slice, IR_OP_pad}},
    {gather_is_slice, .ops = {IR_OP_gather}},
    {merge_reshapes, .ops = {IR_OP_reshape}},
    {shrink_splat, .flags = IR_POINTWISE},
    {splat_of_one, .ops = {IR_OP_const}},
    {shrink_const, .ops = {IR_OP_const}},
    {nest_concat, .ops = {IR_OP_concat}},
    {turn_back, .ops = {IR_OP_slice}},
    {scan_from_end, .flags = IR_SCAN},
};

snt_result fusion_canonicalise(fusion_context *c, bool *changed) {
  bool folded = false, shared = false, widened = false;
  SNT_TRY(ir_graph_fold(c->graph, FUSION_FOLD_LIMIT, &folded));
  /* Only f32 goes through the fast path of reads there, and that is worth twice the bytes many times over. */
  if (c->options->profile->reads == COST_READS_TEXEL) SNT_TRY(ir_graph_widen(c->graph, &widened));
  SNT_TRY(share_equal(c, &shared));
  SNT_TRY(fusion_rebuild(c, rules, IR_COUNT(rules), changed));
  *changed |= folded || widened;
  return SNT_OK;
}
