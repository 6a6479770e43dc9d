/* Which axis of a contraction is which, the vectors of a tile, and loops over tiles. */
#include "fusion/contract_private.h"

bool contract_read_labels(contraction *t) {
  const ir_graph *g = t->c->graph;
  const uint32_t hero = t->set.node[0];
  t->packed = ir_attr_flag(g, hero, IR_ATTR_packed);
  t->out = ir_attr_ints(g, hero, IR_ATTR_out, &t->out_rank);
  t->lhs = ir_attr_ints(g, hero, IR_ATTR_lhs, &t->lhs_rank);
  t->rhs = ir_attr_ints(g, hero, IR_ATTR_rhs, &t->rhs_rank);
  for (uint32_t o = 0; o < 2; o++) {
    uint32_t rank;
    const ir_expr *labels = contract_labels(t, o, &rank);
    for (uint32_t i = 0; i < rank; i++) {
      if (labels[i] < 0 || labels[i] >= CONTRACT_LABELS) return false;
      t->extent[labels[i]] = ir_at(g, ir_arg(g, hero, o))->type.dims[i];
      const bool seen = o == 1 && contract_in_operand(t, 0, labels[i]);
      if (!seen && fusion_find_label(t->out, t->out_rank, labels[i]) == CONTRACT_NONE) t->reduced[t->reduced_count++] = (uint32_t)labels[i];
    }
  }
  return true;
}

/* Where the lane label is in both operands (depthwise), the one without the row label gives the vectors that the rows share. The row label: the longest free
   axis of the other operand, of equal ones the last. */
void contract_take_lanes(contraction *t, int32_t axis) {
  const expr_pool *x = t->c->graph->pool;
  const int64_t lane = t->out[axis];
  t->lane_axis = axis, t->row_axis = t->outer_axis = CONTRACT_NONE;
  t->both_lanes = contract_in_operand(t, 0, lane) && contract_in_operand(t, 1, lane);
  t->lane_operand = contract_in_operand(t, 1, lane) ? 1 : 0;
  if (t->both_lanes) t->lane_operand = t->rhs_rank <= t->lhs_rank ? 1 : 0;
  int64_t longest = 1;
  for (int32_t i = 0; i < (int32_t)t->out_rank; i++) {
    const int64_t label = t->out[i];
    if (i == t->lane_axis || contract_in_operand(t, t->lane_operand, label)) continue;
    const int64_t length = schedule_hint(x, t->extent[label]);
    if (length < longest || t->extent[label] == 1) continue;
    longest = length;
    t->row_axis = i;
  }
  for (int32_t i = (int32_t)t->out_rank; i-- > 0 && t->outer_axis == CONTRACT_NONE;)
    if (i != t->lane_axis && i != t->row_axis && t->extent[t->out[i]] != 1) t->outer_axis = i;
}

/* The lane label: the last axis of the result with more than one element. */
bool contract_pick_axes(contraction *t) {
  for (int32_t i = (int32_t)t->out_rank; i-- > 0;)
    if (t->extent[t->out[i]] != 1) return contract_take_lanes(t, i), true;
  return false;
}

/* Vector j of a tile starts `stride` columns after the one before; the last one as much earlier as it overlaps that. */
void contract_make_lanes(contraction *t, ir_expr stride) {
  emit *e = t->e;
  for (uint32_t j = 0; j < t->vectors; j++) {
    const ir_expr at = expr_mul(e->x, stride, j);
    t->lane_at[j] = emit_lanes(e, j && j + 1 == t->vectors ? expr_sub(e->x, at, t->overlap) : at, t->lanes);
    t->lane_var[j] = e->lane_var;
  }
  emit_scalar_lanes(e);
}

void contract_tile_loop(contraction *t, const contract_tiles *r, contract_tile_body body, ir_expr other) {
  emit *e = t->e;
  expr_pool *x = e->x;
  int64_t literal;
  const bool one = expr_is_const(x, expr_sub(x, r->tiles[1], r->tiles[0]), &literal) && literal == 1;
  const ir_expr tile = one ? r->tiles[0] : emit_steps(e, r->name, r->tiles[0], r->tiles[1], 1);
  ir_expr at = expr_mul(x, tile, expr_int(x, r->step));
  if (!expr_is_const(x, r->extent, &literal) || literal % r->step) {
    const ir_expr moved = expr_min(x, at, expr_sub(x, r->extent, expr_int(x, r->step)));
    const int64_t apart = expr_gcd(expr_multiple_of(x, r->extent), r->step); /* tiles begin at multiples of it */
    at = expr_is_const(x, moved, &literal)
             ? moved
             : emit_var_by(e, r->name, emit_expr(e, moved), 0, expr_sub(x, r->extent, expr_int(x, r->step - 1)), apart);
  }
  body(t, tile, at, other);
  if (!one) emit_loop_end(e, tile, 0, NULL, NULL);
}
