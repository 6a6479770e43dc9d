/* A repeat whose body is pointwise runs inside the kernel that reads it: a loop with the carried values in registers.
   In: a loop or pick at coordinates. Out: its value there; those of the loop's other results at the same place are remembered.
   Where the body reads tables, every lane goes its own way as a number by itself, since its loads are: one lane's need not wait for another's. Nobody goes on
   once a trip has changed none. */
#include "fusion/emit_private.h"
#include "fusion/lower.h"

enum { MAX_REGISTERS = 16, MAX_WIDTH = 16 };

typedef struct register_loop {
  const fusion_body *body;
  uint32_t node;
  const map_access *access;
  uint32_t width;                 /* elements that go beside each other, of which none is a vector */
  uint32_t *values;               /* per node of the body's graph, in this trip */
  uint32_t outer[256][MAX_WIDTH]; /* operands of the loop that are read from around; of a table its node */
} register_loop;

static uint32_t operand_at(emit *e, const register_loop *r, uint32_t operand) {
  const uint32_t node = ir_arg(e->g, r->node, operand);
  map_access at = *r->access;
  if (ir_at(e->g, node)->type.rank == 0) at.rank = 0;
  return emit_value(e, node, &at);
}

/* The value as the numbers that go beside each other. */
static void part_lanes(emit *e, const register_loop *r, uint32_t value, uint32_t *out) {
  for (uint32_t i = 0; i < r->width && value && !e->k->failed; i++) {
    const bool apart = r->width > 1 && emit_value_type(e, value).lanes > 1;
    out[i] = apart ? kir_lane(e->k, value, i) : value;
  }
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
  return emit_dim(e, n, value); /* counts are proven to fit */
}

static uint32_t put_element(emit *e, const register_loop *r, uint32_t node) {
  const uint32_t table = r->values[ir_arg(&r->body->graph, node, 0)], index = r->values[ir_arg(&r->body->graph, node, 1)];
  const ir_expr extent = ir_at(e->g, table)->type.dims[0];
  map_access at = {.rank = 1, .at = {emit_index_var(e, emit_near_index(e, index, extent), extent)}};
  return emit_element(e, table, &at, extent, 0);
}

static uint32_t put_node(emit *e, register_loop *r, uint32_t node, ir_expr trip) {
  const ir_graph *g = &r->body->graph;
  const ir_node *n = ir_at(g, node);
  uint32_t args[3] = {0};
  uint8_t lanes = 1;
  if (n->op == IR_OP_const || n->op == IR_OP_dim) return put_number(e, r, node, trip);
  if (n->op == IR_OP_gather) return put_element(e, r, node);
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

/* A trip of one of the elements beside each other. */
static void put_element_trip(emit *e, register_loop *r, uint32_t which, const uint32_t *carried, uint32_t *next, ir_expr trip) {
  const ir_graph *g = &r->body->graph;
  for (uint32_t i = 0; i < r->body->input_count; i++) {
    const uint32_t operand = r->body->input_roles[i];
    const bool table = operand >= r->body->carried && fusion_is_table(e->g, r->node, operand);
    r->values[g->inputs.at[i].node] = operand < r->body->carried ? carried[operand * r->width + which]
                                                                 : r->outer[operand][table ? 0 : which];
  }
  for (uint32_t n = 1; n < g->nodes.count && !e->failed && !e->k->failed; n++) {
    const ir_op op = (ir_op)ir_at(g, n)->op;
    if (op != IR_OP_input && op != IR_OP_state) r->values[n] = put_node(e, r, n, trip);
  }
  for (uint32_t i = 0; i < r->body->input_count; i++)
    for (uint32_t u = 0; u < g->updates.count; u++)
      if (g->updates.at[u].state == g->inputs.at[i].node)
        next[r->body->input_roles[i] * r->width + which] = r->values[g->updates.at[u].value];
}

/* Whether a trip changed some number. */
static uint32_t changes(emit *e, uint32_t count, const uint32_t *before, const uint32_t *after) {
  uint32_t any = 0;
  for (uint32_t k = 0; k < count; k++) {
    const uint32_t own = kir_2(e->k, KIR_ne, before[k], after[k]);
    any = any ? kir_2(e->k, KIR_or, any, own) : own;
  }
  return any;
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

/* Behind all carried values, where the body comes to rest, whether the trip before changed any. */
static void put_trip(emit *e, register_loop *r, uint32_t *carried, uint32_t *next, ir_expr trip) {
  const uint32_t count = r->body->carried * r->width;
  if (r->body->rests) emit_if(e, carried[count]);
  for (uint32_t i = 0; i < r->width; i++) put_element_trip(e, r, i, carried, next, trip);
  for (uint32_t k = 0; k < count; k++) next[k] = in_lanes(e, r, next[k]);
  if (!r->body->rests || e->failed || e->k->failed) return;
  next[count] = changes(e, count, carried, next);
  emit_else(e, count + 1, next);
  emit_if_result(e, count + 1, carried, next);
}

/* All results at one place; those of picks are remembered for when they are asked. */
static uint32_t put_loop(emit *e, register_loop *r) {
  const uint32_t count = r->body->carried, lanes = e->lanes, lane_var = e->lane_var, arity = ir_at(e->g, r->node)->arity;
  uint32_t carried[MAX_REGISTERS * MAX_WIDTH + 1], initial[IR_COUNT(carried)], next[IR_COUNT(carried)] = {0}, results[IR_COUNT(carried)];
  for (uint32_t k = 0; k < count; k++) part_lanes(e, r, in_lanes(e, r, operand_at(e, r, k)), &initial[k * r->width]);
  for (uint32_t k = count; k < arity; k++) {
    if (fusion_is_table(e->g, r->node, k)) r->outer[k][0] = ir_arg(e->g, r->node, k);
    else part_lanes(e, r, operand_at(e, r, k), r->outer[k]);
  }
  if (r->body->rests) initial[count * r->width] = kir_const_int(e->k, kir_t(SNT_BOOL, 1), 1);
  if (e->failed || e->k->failed) return 0;
  const uint32_t all = count * r->width + r->body->rests;
  const ir_expr v = emit_loop(e, &(emit_loop_info){.name = "trip",
                                                   .lo = 0,
                                                   .hi = r->body->trips,
                                                   .step = 1,
                                                   .flags = r->body->rests ? KIR_LOOP_ROLLED : 0,
                                                   .carry_count = all,
                                                   .initial = initial,
                                                   .carried = carried});
  emit_use_lanes(e, lane_var, r->width > 1 ? 1 : lanes);
  put_trip(e, r, carried, next, v);
  emit_use_lanes(e, lane_var, lanes);
  if (e->failed || e->k->failed) return 0;
  emit_loop_end(e, v, all, next, results);
  for (uint32_t k = 0; k < count && r->width > 1; k++) {
    results[k] = kir_vector(e->k, emit_value_type(e, results[k * r->width]).base, r->width, &results[k * r->width]);
  }
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
  r->width = r->body->tables && is_along_lanes(e, access) ? e->lanes : 1;
  const uint32_t first = put_loop(e, r);
  if (!pick || !first) return first;
  emit_remember(e, r->node, access, first);
  return emit_recall(e, node, access);
}
