/* A repeat whose body is pointwise runs inside the kernel that reads it: a loop with the carried values in registers.
   In: a loop or pick at coordinates. Out: its value there; those of the loop's other results at the same place are remembered. */
#include "fusion/emit_private.h"
#include "fusion/lower.h"

enum { MAX_REGISTERS = 16 };

typedef struct register_loop {
  const fusion_body *body;
  uint32_t node;
  const map_access *access;
  uint32_t *values;    /* per node of the body's graph, in this trip */
  uint32_t outer[256]; /* operands of the loop that are read from around */
} register_loop;

static uint32_t operand_at(emit *e, const register_loop *r, uint32_t operand) {
  const uint32_t node = ir_arg(e->g, r->node, operand);
  map_access at = *r->access;
  if (ir_at(e->g, node)->type.rank == 0) at.rank = 0;
  return emit_value(e, node, &at);
}

static uint32_t put_number(emit *e, const register_loop *r, uint32_t node, ir_expr trip) {
  const ir_graph *g = &r->body->graph;
  const ir_node *n = ir_at(g, node);
  const kir_type type = emit_compute_type(e, n->type.dtype, 1);
  if (n->op == IR_OP_const) {
    double value = 0;
    (void)ir_is_scalar_const(g, node, &value);
    return ir_dtypes[type.base].is_float ? kir_const_float(e->k, type, value)
                                         : kir_const_int(e->k, type, (int64_t)g->consts.at[n->payload].bits);
  }
  const uint32_t variable = emit_var_number(e->x, r->body->variable);
  const ir_expr value = expr_substitute(e->x, ir_attr_ints(g, node, IR_ATTR_shape, NULL)[0], 1, &variable, &trip);
  const uint32_t made = emit_expr(e, value);
  if (type.base == SNT_U32) return made;
  const uint32_t whole = kir_bitcast(e->k, kir_t(SNT_I32, 1), made); /* counts are proven to fit */
  return type.base == SNT_I32 ? whole : kir_cast(e->k, type, whole);
}

static uint32_t put_node(emit *e, register_loop *r, uint32_t node, ir_expr trip) {
  const ir_graph *g = &r->body->graph;
  const ir_node *n = ir_at(g, node);
  uint32_t args[3] = {0};
  uint8_t lanes = 1;
  if (n->op == IR_OP_const || n->op == IR_OP_dim) return put_number(e, r, node, trip);
  for (uint32_t i = 0; i < n->arity; i++) {
    args[i] = r->values[ir_arg(g, node, i)];
    if (!args[i] || e->k->failed) return 0;
    const uint8_t own = emit_value_type(e, args[i]).lanes;
    if (own > lanes) lanes = own;
  }
  const ir_tensor *first = &ir_at(g, ir_arg(g, node, 0))->type;
  const uint32_t value = lower_pointwise(e->k, (ir_op)n->op, args, first->dtype, n->type.dtype, emit_compute_type(e, n->type.dtype, lanes));
  return value ? emit_round_node(e, n, value) : 0;
}

static void put_trip(emit *e, register_loop *r, const uint32_t *carried, uint32_t *next, ir_expr trip) {
  const ir_graph *g = &r->body->graph;
  for (uint32_t i = 0; i < r->body->input_count; i++) {
    const uint32_t operand = r->body->input_roles[i];
    r->values[g->inputs.at[i].node] = operand < r->body->carried ? carried[operand] : r->outer[operand];
  }
  for (uint32_t n = 1; n < g->nodes.count && !e->failed && !e->k->failed; n++) {
    const ir_op op = (ir_op)ir_at(g, n)->op;
    if (op != IR_OP_input && op != IR_OP_state) r->values[n] = put_node(e, r, n, trip);
  }
  for (uint32_t i = 0; i < r->body->input_count; i++)
    for (uint32_t u = 0; u < g->updates.count; u++)
      if (g->updates.at[u].state == g->inputs.at[i].node) next[r->body->input_roles[i]] = r->values[g->updates.at[u].value];
}

/* A value that is the same in all columns stays one: it is remembered, and may be asked for where there are no columns. */
static bool is_along_lanes(const emit *e, const map_access *access) {
  bool along = emit_conditions_use_lanes(e, access->condition_count, access->conditions);
  for (uint32_t d = 0; d < access->rank; d++) along |= emit_uses_lanes(e, access->at[d]);
  return along;
}

static uint32_t in_lanes(emit *e, const register_loop *r, uint32_t value) {
  if (!value || e->failed || e->k->failed || e->lanes == 1 || emit_value_type(e, value).lanes == e->lanes) return value;
  return is_along_lanes(e, r->access) ? kir_splat(e->k, value, e->lanes) : value;
}

/* All results at one place; those of picks are remembered for when they are asked. */
static uint32_t put_loop(emit *e, register_loop *r) {
  const uint32_t count = r->body->carried, lanes = e->lanes, lane_var = e->lane_var, arity = ir_at(e->g, r->node)->arity;
  uint32_t initial[MAX_REGISTERS], carried[MAX_REGISTERS], next[MAX_REGISTERS] = {0}, results[MAX_REGISTERS];
  for (uint32_t k = 0; k < count; k++) initial[k] = in_lanes(e, r, operand_at(e, r, k));
  for (uint32_t k = count; k < arity; k++) r->outer[k] = operand_at(e, r, k);
  if (e->failed || e->k->failed) return 0;
  const ir_expr v = emit_loop(
      e, &(emit_loop_info){
             .name = "trip", .lo = 0, .hi = r->body->trips, .step = 1, .carry_count = count, .initial = initial, .carried = carried});
  emit_use_lanes(e, lane_var, lanes);
  put_trip(e, r, carried, next, v);
  for (uint32_t k = 0; k < count; k++) next[k] = in_lanes(e, r, next[k]);
  if (e->failed || e->k->failed) return 0;
  emit_loop_end(e, v, count, next, results);
  for (uint32_t n = r->node + 1; n < e->g->nodes.count; n++)
    if (ir_at(e->g, n)->op == IR_OP_pick && ir_arg(e->g, n, 0) == r->node)
      emit_remember(e, n, r->access, results[ir_attr_int(e->g, n, IR_ATTR_index, 0)]);
  return results[0];
}

uint32_t emit_register_loop(emit *e, uint32_t node, const map_access *access) {
  const bool pick = ir_at(e->g, node)->op == IR_OP_pick;
  register_loop *r = IR_NEW(e->arena, register_loop);
  if (!r) return e->failed = true, 0;
  r->body = fusion_register_loop(e->c, node);
  r->node = pick ? ir_arg(e->g, node, 0) : node;
  r->access = access;
  r->values = IR_NEW_ARRAY(e->arena, uint32_t, r->body->graph.nodes.count);
  if (!r->values) return e->failed = true, 0;
  const uint32_t first = put_loop(e, r);
  if (!pick || !first) return first;
  emit_remember(e, r->node, access, first);
  return emit_recall(e, node, access);
}
