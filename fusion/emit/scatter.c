/* Scatter, seen from the result: each element sweeps the indices in row-major order and combines the updates that name it. Every element has one
   writer, so the order is that of the reference on every device and no atomics are needed; the price is a sweep of the indices for each element,
   so it is for few of them: schedule/scatter.c has the ways for many. */
#include "fusion/emit_private.h"

typedef struct scatter_sweep {
  uint32_t node, axis, index_rank;
  const map_access *result;
  ir_expr at[SNT_MAX_RANK]; /* of the indices */
} scatter_sweep;

/* Does the index at hand name this element? One outside the axis names none. */
static uint32_t names_element(emit *e, const scatter_sweep *s) {
  const uint32_t indices = ir_arg(e->g, s->node, 1);
  const int32_t dtype = ir_at(e->g, indices)->type.dtype;
  map_access at = *s->result;
  at.rank = s->index_rank;
  memcpy(at.at, s->at, s->index_rank * sizeof s->at[0]);
  const uint32_t place = emit_any_expr(e, s->result->at[s->axis]), index = emit_value(e, indices, &at);
  if (!index || !place) return 0;
  const int32_t wide = dtype == SNT_I64 || dtype == SNT_U64 ? dtype : SNT_I32;
  const uint8_t lanes = emit_value_type(e, place).lanes;
  const uint32_t same = dtype == wide ? index : kir_cast(e->k, kir_t(wide, 1), index);
  return kir_2(e->k, KIR_eq, kir_cast(e->k, kir_t(wide, lanes), place), same);
}

static uint32_t update_value(emit *e, const scatter_sweep *s) {
  const uint32_t updates = ir_arg(e->g, s->node, 2);
  map_access at = *s->result;
  at.rank = ir_at(e->g, updates)->type.rank;
  for (uint32_t d = s->axis; d < at.rank; d++)
    at.at[d] = d < s->axis + s->index_rank ? s->at[d - s->axis] : s->result->at[d - s->index_rank + 1];
  return emit_value(e, updates, &at);
}

uint32_t emit_scatter_combine(emit *e, ir_op op, uint32_t old, uint32_t value) {
  switch (op) {
  case IR_OP_scatter_add: return kir_2(e->k, KIR_add, old, value);
  case IR_OP_scatter_mul: return kir_2(e->k, KIR_mul, old, value);
  case IR_OP_scatter_min: return kir_2(e->k, KIR_min, old, value);
  case IR_OP_scatter_max: return kir_2(e->k, KIR_max, old, value);
  default: return value;
  }
}

static uint32_t sweep_indices(emit *e, scatter_sweep *s, uint32_t level, uint32_t value) {
  if (level == s->index_rank) {
    const ir_op op = (ir_op)ir_at(e->g, s->node)->op;
    const uint32_t here = names_element(e, s);
    if (!here) return 0;
    /* most updates are not read */
    const bool apart = op != IR_OP_scatter_set && e->c->options->profile->simd != COST_SIMD_EXPLICIT && emit_value_type(e, here).lanes == 1;
    if (apart) emit_if(e, here);
    const uint32_t update = update_value(e, s);
    uint32_t next = update ? emit_scatter_combine(e, op, value, update) : 0;
    if (!apart) return next ? kir_3(e->k, KIR_select, here, next, value) : 0;
    emit_else(e, 1, &next);
    emit_if_result(e, 1, &value, &next);
    return update ? next : 0;
  }
  uint32_t carried, result;
  const ir_expr extent = ir_at(e->g, ir_arg(e->g, s->node, 1))->type.dims[level];
  const ir_expr v = emit_loop(
      e, &(emit_loop_info){.name = "u", .lo = 0, .hi = extent, .step = 1, .carry_count = 1, .initial = &value, .carried = &carried});
  s->at[level] = v;
  const uint32_t next = sweep_indices(e, s, level + 1, carried);
  emit_loop_end(e, v, 1, &next, &result);
  return next ? result : 0;
}

uint32_t emit_scatter(emit *e, uint32_t node, const map_access *access) {
  scatter_sweep s = {.node = node,
                     .axis = (uint32_t)ir_attr_int(e->g, node, IR_ATTR_axis, 0),
                     .index_rank = ir_at(e->g, ir_arg(e->g, node, 1))->type.rank,
                     .result = access};
  map_access at;
  if (fusion_row_update(e->g, node, access, &at)) return emit_value(e, ir_arg(e->g, node, 2), &at);
  uint32_t value = emit_value(e, ir_arg(e->g, node, 0), access);
  if (!value) return 0;
  const uint8_t lanes = emit_value_type(e, value).lanes;
  if (e->lanes > lanes) value = kir_splat(e->k, value, e->lanes); /* the sum differs by lane even where the operand does not */
  return sweep_indices(e, &s, 0, value);
}
