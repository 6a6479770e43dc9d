/* Reading a graph: attributes, types, constants as scalars, users of a value. */
#include "ir/graph.h"

const ir_attr *ir_find_attr(const ir_graph *g, uint32_t node, ir_attr_key key) {
  const ir_node *n = ir_at(g, node);
  for (uint32_t i = 0; i < n->attr_count; i++)
    if (g->attrs.at[n->attrs + i].key == key) return &g->attrs.at[n->attrs + i];
  return NULL;
}

const ir_expr *ir_attr_ints(const ir_graph *g, uint32_t node, ir_attr_key key, uint32_t *count) {
  const ir_attr *attr = ir_find_attr(g, node, key);
  if (count) *count = attr ? attr->count : 0;
  return attr && attr->count ? &g->ints.at[attr->first] : NULL;
}

int64_t ir_attr_int(const ir_graph *g, uint32_t node, ir_attr_key key, int64_t otherwise) {
  const ir_expr *value = ir_attr_ints(g, node, key, NULL);
  if (!value) return otherwise;
  if (ir_attr_infos[key].kind == IR_KIND_SCALAR) return *value;
  int64_t number;
  return expr_is_const(g->pool, *value, &number) ? number : otherwise;
}

double ir_attr_scalar(const ir_graph *g, uint32_t node, ir_attr_key key) {
  int64_t bits = ir_attr_int(g, node, key, 0);
  if (!ir_dtypes[ir_at(g, node)->type.dtype].is_float) return (double)bits;
  double number;
  memcpy(&number, &bits, sizeof number);
  return number;
}

bool ir_attr_flag(const ir_graph *g, uint32_t node, ir_attr_key key) { return ir_find_attr(g, node, key) != NULL; }

ir_expr ir_tensor_elements(expr_pool *pool, const ir_tensor *type) {
  int64_t literal = 1; /* handles that are literals multiply as they are */
  uint32_t i = 0;
  while (i < type->rank && type->dims[i] >= 0 && type->dims[i] <= INT32_MAX && literal <= INT32_MAX) literal *= type->dims[i++];
  ir_expr product = (ir_expr)literal;
  for (; i < type->rank; i++) product = expr_mul(pool, product, type->dims[i]);
  return product;
}

bool ir_same_shape(const ir_tensor *a, const ir_tensor *b) {
  if (a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return false;
  return true;
}

bool ir_is_literal(const ir_graph *g, uint32_t node) {
  const ir_node *n = ir_at(g, node);
  return n->op == IR_OP_const && g->consts.at[n->payload].kind == IR_CONST_SPLAT;
}

bool ir_is_scalar_const(const ir_graph *g, uint32_t node, double *value) {
  const ir_node *n = ir_at(g, node);
  if (!ir_is_literal(g, node)) return false;
  const uint64_t bits = g->consts.at[n->payload].bits;
  double number;
  if (ir_dtypes[n->type.dtype].is_float) {
    memcpy(&number, &bits, sizeof number);
  } else if (n->type.dtype == SNT_U64) {
    number = (double)bits;
    if (bits >> 53) return false;
  } else {
    number = (double)(int64_t)bits;
    if ((int64_t)bits > INT64_C(1) << 53 || (int64_t)bits < -(INT64_C(1) << 53)) return false;
  }
  if (value) *value = number;
  return true;
}

bool ir_is_output(const ir_graph *g, uint32_t node) {
  for (uint32_t i = 0; i < g->outputs.count; i++)
    if (g->outputs.at[i].node == node) return true;
  for (uint32_t i = 0; i < g->updates.count; i++)
    if (g->updates.at[i].value == node) return true;
  return false;
}

/* What node n reads: its operands and, for a repeat, the values its region yields. */
static uint32_t reads_of(const ir_graph *g, uint32_t n, const uint32_t **args, const uint32_t **yields) {
  const ir_node *node = ir_at(g, n);
  *args = node->arity ? &g->args.at[node->args] : NULL;
  *yields = NULL;
  if (node->op != IR_OP_repeat) return 0;
  const ir_region *region = &g->regions.at[ir_attr_int(g, n, IR_ATTR_region, 0)];
  *yields = &g->yields.at[region->first];
  return region->count;
}

/* Counting sort of (operand, user) pairs: users come out in ascending order, one entry for each time they read the value. */
bool ir_find_uses(const ir_graph *g, ir_arena *arena, ir_uses *out) {
  const uint32_t count = g->nodes.count, *args, *yields;
  uint32_t *first = IR_NEW_ARRAY(arena, uint32_t, count + 2), total = 0;
  if (!first) return false;
  for (uint32_t n = 1; n < count; n++) {
    uint32_t yield_count = reads_of(g, n, &args, &yields), arity = ir_at(g, n)->arity;
    for (uint32_t i = 0; i < arity; i++) first[args[i] + 2]++;
    for (uint32_t i = 0; i < yield_count; i++) first[yields[i] + 2]++;
    total += arity + yield_count;
  }
  for (uint32_t n = 1; n < count + 2; n++) first[n] += first[n - 1];
  uint32_t *user = IR_NEW_ARRAY(arena, uint32_t, total);
  uint8_t *is_output = IR_NEW_ARRAY(arena, uint8_t, count);
  if (!user || !is_output) return false;
  for (uint32_t i = 0; i < g->outputs.count; i++) is_output[g->outputs.at[i].node] = 1;
  for (uint32_t i = 0; i < g->updates.count; i++) is_output[g->updates.at[i].value] = 1;
  for (uint32_t n = 1; n < count; n++) {
    uint32_t yield_count = reads_of(g, n, &args, &yields), arity = ir_at(g, n)->arity;
    for (uint32_t i = 0; i < arity; i++) user[first[args[i] + 1]++] = n;
    for (uint32_t i = 0; i < yield_count; i++) user[first[yields[i] + 1]++] = n;
  }
  *out = (ir_uses){.first = first, .user = user, .is_output = is_output};
  return true;
}
