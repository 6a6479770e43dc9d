/* The graph builder: sources, nodes, names, outputs, updates, contracts. A mistake is remembered, the functions then return 0 and do nothing,
   so a caller may build a whole graph and test once. Types are inferred by ir/shape/shape.c; regions are in ir/graph/region.c. */
#include "ir/graph_private.h"
#include "ir/shape_private.h"
#include <stdio.h>

uint32_t graph_mistake(ir_graph *g, snt_result result, const char *format, ...) {
  if (g->failed) return 0;
  g->failed = true;
  char text[sizeof g->first_error.text];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  ir_fail(&g->first_error, result, "graph", g->nodes.count, "%s", text);
  return 0;
}

bool graph_alive(ir_graph *g) {
  if (g->failed) return false;
  if (g->arena->failed || g->pool->arena->failed) return graph_mistake(g, SNT_E_HOST_MEM, "out of memory") != 0;
  if (g->pool->failed) return graph_mistake(g, SNT_E_SHAPE, "an extent is too large for 64 bits") != 0;
  return true;
}

void ir_graph_init(ir_graph *g, ir_arena *arena, expr_pool *pool) {
  memset(g, 0, sizeof *g);
  g->arena = arena;
  g->pool = pool;
  g->title = "graph";
  const ir_node none = {0};
  const ir_region main_region = {0};
  if (!IR_PUSH(arena, &g->nodes, none) || !IR_PUSH(arena, &g->names, 0) || !IR_PUSH(arena, &g->regions, main_region))
    graph_mistake(g, SNT_E_HOST_MEM, "out of memory");
}

uint32_t ir_name_add(ir_graph *g, const char *name, size_t length) {
  if (g->failed || length == 0 || length > UINT32_MAX - g->names.count - 1) return 0;
  const uint32_t at = g->names.count;
  if (memchr(name, 0, length)) return graph_mistake(g, SNT_E_ARG, "a name holds a zero byte");
  while (g->names.capacity - at < length + 1)
    if (!ir_vec_grow(g->arena, &g->names, 1)) return graph_mistake(g, SNT_E_HOST_MEM, "out of memory");
  memcpy(g->names.at + at, name, length);
  g->names.at[at + length] = 0;
  g->names.count += (uint32_t)length + 1;
  return at;
}

void ir_graph_expect(ir_graph *g, const ir_graph *like) {
  IR_RESERVE(g->arena, &g->nodes, like->nodes.count + like->nodes.count / 16);
  IR_RESERVE(g->arena, &g->args, like->args.count);
  IR_RESERVE(g->arena, &g->attrs, like->attrs.count);
  IR_RESERVE(g->arena, &g->ints, like->ints.count);
  IR_RESERVE(g->arena, &g->consts, like->consts.count);
  IR_RESERVE(g->arena, &g->names, like->names.count);
}

const char *ir_node_name(const ir_graph *g, uint32_t node) { return g->names.at ? &g->names.at[g->nodes.at[node].name] : ""; }

void ir_set_name(ir_graph *g, uint32_t node, const char *name) {
  if (!graph_check_values(g, "a name", 1, &node)) return;
  g->nodes.at[node].name = name ? ir_name_add(g, name, strlen(name)) : 0;
}

bool graph_check_values(ir_graph *g, const char *what, uint32_t count, const uint32_t *values) {
  if (!graph_alive(g)) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (values[i] > 0 && values[i] < g->nodes.count) continue;
    graph_mistake(g, SNT_E_ARG, "%s: operand %u is no value of this graph", what, i + 1);
    return false;
  }
  return true;
}

uint32_t graph_put(ir_graph *g, const ir_node *node, uint32_t arg_count, const uint32_t *args) {
  ir_node n = *node;
  n.args = g->args.count;
  n.arity = (uint8_t)arg_count;
  n.region = g->open_region;
  for (uint32_t i = 0; i < arg_count; i++)
    if (!IR_PUSH(g->arena, &g->args, args[i])) break;
  bool put = g->args.count == n.args + arg_count && IR_PUSH(g->arena, &g->nodes, n);
  return put ? g->nodes.count - 1 : graph_mistake(g, SNT_E_HOST_MEM, "out of memory");
}

bool graph_put_attr(ir_graph *g, uint8_t key, uint32_t count, const ir_expr *ints) {
  const ir_attr attr = {.key = key, .count = count, .first = g->ints.count};
  for (uint32_t i = 0; i < count; i++)
    if (!IR_PUSH(g->arena, &g->ints, ints[i])) break;
  if (g->ints.count == attr.first + count && IR_PUSH(g->arena, &g->attrs, attr)) return true;
  graph_mistake(g, SNT_E_HOST_MEM, "out of memory");
  return false;
}

/* ---- sources ---- */
static uint32_t put_source(ir_graph *g, ir_op op, const ir_tensor *type, uint32_t name, uint32_t payload) {
  snt_diag diag;
  if (shape_check_type(g->pool, type, &diag) != SNT_OK) return graph_mistake(g, diag.result, "%s: %s", ir_ops[op].name, diag.text);
  const ir_node node = {.op = (uint16_t)op, .type = *type, .name = name, .payload = payload, .attrs = g->attrs.count};
  return graph_put(g, &node, 0, NULL);
}

static uint32_t add_port(ir_graph *g, ir_op op, const char *name, const ir_tensor *type) {
  if (!graph_alive(g)) return 0;
  if (!name || !*name) return graph_mistake(g, SNT_E_ARG, "%s: a name is needed", ir_ops[op].name);
  if (g->open_region) return graph_mistake(g, SNT_E_ORDER, "%s %s inside a repeat", ir_ops[op].name, name);
  uint32_t text = ir_name_add(g, name, strlen(name));
  uint32_t node = put_source(g, op, type, text, 0);
  const ir_port port = {text, node};
  if (node && !IR_PUSH(g->arena, &g->inputs, port)) graph_mistake(g, SNT_E_HOST_MEM, "out of memory");
  return g->failed ? 0 : node;
}

uint32_t ir_add_input(ir_graph *g, const char *name, const ir_tensor *type) { return add_port(g, IR_OP_input, name, type); }
uint32_t ir_add_state(ir_graph *g, const char *name, const ir_tensor *type) { return add_port(g, IR_OP_state, name, type); }

uint32_t ir_add_const(ir_graph *g, const ir_tensor *type, const ir_const *value) {
  if (!graph_alive(g)) return 0;
  if (value->kind > IR_CONST_MADE) return graph_mistake(g, SNT_E_ARG, "const: unknown kind %u", value->kind);
  for (uint32_t i = 0; i < type->rank && i < SNT_MAX_RANK && value->kind != IR_CONST_SPLAT; i++)
    if (!expr_is_const(g->pool, type->dims[i], NULL)) return graph_mistake(g, SNT_E_SHAPE, "const: axis %u has no fixed extent", i);
  if ((value->kind == IR_CONST_DATA && !value->data) || (value->kind == IR_CONST_MADE && !value->making))
    return graph_mistake(g, SNT_E_ARG, "const: no data");
  if (!IR_PUSH(g->arena, &g->consts, *value)) return graph_mistake(g, SNT_E_HOST_MEM, "out of memory");
  return put_source(g, IR_OP_const, type, 0, g->consts.count - 1);
}

uint32_t ir_add_splat(ir_graph *g, int32_t dtype, double value) {
  const ir_tensor type = {.dtype = (uint8_t)dtype};
  if (dtype <= 0 || dtype >= SNT_DTYPE_COUNT) return graph_mistake(g, SNT_E_ARG, "const: unknown element type %d", dtype);
  /* Through the type itself, so that the constant is a value the type has. */
  uint64_t stored[1] = {0};
  ir_dtype_store(dtype, stored, 0, value);
  ir_const splat = {.kind = IR_CONST_SPLAT};
  if (ir_dtypes[dtype].is_float) {
    double rounded = ir_dtype_load(dtype, stored, 0);
    memcpy(&splat.bits, &rounded, sizeof rounded);
  } else {
    splat.bits = (uint64_t)ir_dtype_load_int(dtype, stored, 0);
  }
  return ir_add_const(g, &type, &splat);
}

/* ---- operators ---- */
uint32_t ir_add_node(ir_graph *g, ir_op op, uint32_t arg_count, const uint32_t *args, uint32_t attr_count, const ir_attr_value *attrs,
                     const ir_tensor *given) {
  if (op <= IR_OP_NONE || op >= IR_OP_COUNT) return graph_mistake(g, SNT_E_ARG, "unknown operator %d", (int)op);
  if (op == IR_OP_input || op == IR_OP_state || op == IR_OP_const)
    return graph_mistake(g, SNT_E_ARG, "%s is added by its own function", ir_ops[op].name);
  if (!graph_check_values(g, ir_ops[op].name, arg_count, args)) return 0;
  shape_query q;
  snt_diag diag;
  const ir_node_desc desc = {op, arg_count, args, attr_count, attrs, given};
  snt_result result = shape_infer(&q, g, &desc, &diag);
  if (result != SNT_OK) return graph_mistake(g, result, "%s", diag.text);
  ir_node node = {.op = (uint16_t)op, .type = q.out, .attrs = g->attrs.count};
  const uint64_t stored = q.has & ir_ops[op].attrs;
  for (uint8_t key = 1; stored >> key; key++) {
    if (!(stored >> key & 1)) continue;
    if (!graph_put_attr(g, key, q.attr[key].count, q.attr[key].ints)) return 0;
    node.attr_count++;
  }
  return graph_alive(g) ? graph_put(g, &node, arg_count, args) : 0;
}

uint32_t ir_add1(ir_graph *g, ir_op op, uint32_t a) { return ir_add_node(g, op, 1, &a, 0, NULL, NULL); }

uint32_t(ir_add2)(ir_graph *g, ir_op op, uint32_t a, uint32_t b) {
  const uint32_t args[] = {a, b};
  return ir_add_node(g, op, 2, args, 0, NULL, NULL);
}

uint32_t(ir_add3)(ir_graph *g, ir_op op, uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t args[] = {a, b, c};
  return ir_add_node(g, op, 3, args, 0, NULL, NULL);
}

uint32_t ir_add_cast(ir_graph *g, uint32_t a, int32_t dtype) {
  const ir_expr own = dtype;
  if (a && ir_at(g, a)->type.dtype == dtype) return a;
  return ir_add_node(g, IR_OP_cast, 1, &a, 1, &(ir_attr_value){IR_ATTR_dtype, 1, &own}, NULL);
}

uint32_t ir_add_axes(ir_graph *g, ir_op op, uint32_t a, uint32_t count, const int64_t *axes, bool keep) {
  ir_expr list[SNT_MAX_RANK];
  if (count > SNT_MAX_RANK) return graph_mistake(g, SNT_E_ARG, "%u axes", count);
  for (uint32_t i = 0; i < count; i++) list[i] = expr_int(g->pool, axes[i]);
  const ir_attr_value attrs[] = {{IR_ATTR_axes, count, list}, {IR_ATTR_keep, 0, NULL}};
  return ir_add_node(g, op, 1, &a, keep ? 2 : 1, attrs, NULL);
}

/* ---- results and what the user demands ---- */
void ir_add_output(ir_graph *g, const char *name, uint32_t value) {
  if (!graph_check_values(g, "output", 1, &value)) return;
  if (g->nodes.at[value].region) graph_mistake(g, SNT_E_ORDER, "output %s: node %u belongs to a repeat", name ? name : "", value);
  const ir_port port = {name ? ir_name_add(g, name, strlen(name)) : 0, value};
  if (!IR_PUSH(g->arena, &g->outputs, port)) graph_mistake(g, SNT_E_HOST_MEM, "out of memory");
}

void ir_add_update(ir_graph *g, uint32_t state, uint32_t value) {
  const uint32_t values[] = {state, value};
  if (!graph_check_values(g, "update", 2, values)) return;
  const ir_node *from = ir_at(g, value), *to = ir_at(g, state);
  if (to->op != IR_OP_state) graph_mistake(g, SNT_E_ARG, "update: node %u (%s) is no state", state, ir_node_name(g, state));
  else if (from->type.dtype != to->type.dtype || !ir_same_shape(&from->type, &to->type))
    graph_mistake(g, SNT_E_SHAPE, "update: the type of node %u is not that of state %s", value, ir_node_name(g, state));
  const ir_update update = {state, value};
  if (!g->failed && !IR_PUSH(g->arena, &g->updates, update)) graph_mistake(g, SNT_E_HOST_MEM, "out of memory");
}

void ir_add_contract(ir_graph *g, ir_contract_kind kind, uint32_t count, const uint32_t *values) {
  if (!graph_check_values(g, "contract", count, values)) return;
  if (kind < IR_MUST_FUSE || kind > IR_BARRIER || count == 0) {
    graph_mistake(g, SNT_E_ARG, "contract: kind %d with %u values", (int)kind, count);
    return;
  }
  const ir_contract contract = {(uint8_t)kind, count, g->contract_values.count};
  for (uint32_t i = 0; i < count; i++)
    if (!IR_PUSH(g->arena, &g->contract_values, values[i])) graph_mistake(g, SNT_E_HOST_MEM, "out of memory");
  if (!g->failed && !IR_PUSH(g->arena, &g->contracts, contract)) graph_mistake(g, SNT_E_HOST_MEM, "out of memory");
}
