/* argmax and argmin: the first of equals; a NaN wins over every number. */
#include "fusion/emit/reduce_private.h"

typedef struct extremum {
  uint32_t value, index; /* u32 */
} extremum;

static bool is_argmax(const emit *e, const reduction *r) { return ir_at(e->g, r->node)->op == IR_OP_reduce_argmax; }

/* Both NaN, or equal. */
static uint32_t is_as_good(emit *e, const reduction *r, uint32_t value, uint32_t best) {
  const uint32_t equal = kir_2(e->k, KIR_eq, value, best);
  if (!ir_dtypes[r->type.base].is_float) return equal;
  return kir_2(e->k, KIR_or, equal, kir_2(e->k, KIR_and, kir_1(e->k, KIR_isnan, value), kir_1(e->k, KIR_isnan, best)));
}

static uint32_t is_better(emit *e, const reduction *r, uint32_t value, uint32_t best) {
  const uint32_t better = kir_2(e->k, is_argmax(e, r) ? KIR_gt : KIR_lt, value, best);
  if (!ir_dtypes[r->type.base].is_float) return better;
  return kir_2(e->k, KIR_or, better,
               kir_2(e->k, KIR_and, kir_1(e->k, KIR_isnan, value), kir_1(e->k, KIR_not, kir_1(e->k, KIR_isnan, best))));
}

/* Terms from lo to hi, in vectors where the reduction has lanes: each lane keeps its own. */
static extremum sweep_extremum(emit *e, reduction *r, ir_expr lo, ir_expr hi, extremum start) {
  const uint32_t initial[2] = {start.value, start.index};
  uint32_t carried[2], result[2];
  const int64_t step = (int64_t)r->lanes * r->items;
  const emit_loop_info info = {
      .name = "k", .lo = lo, .hi = hi, .step = step, .whole = !r->tail, .carry_count = 2, .initial = initial, .carried = carried};
  const ir_expr v = emit_loop(e, &info), at = r->items > 1 && !r->tail ? expr_add(e->x, v, expr_mul(e->x, r->item, r->lanes)) : v;
  r->at[0] = r->lanes > 1 ? emit_lanes(e, at, r->lanes) : at;
  const map_access a = reduction_operand(e, r, 0);
  if (r->how->beside) r->how->beside(e, r->how->user, &a, false);
  const uint32_t value = emit_value(e, ir_arg(e->g, r->node, 0), &a), better = is_better(e, r, value, carried[0]);
  const uint32_t next[2] = {kir_3(e->k, KIR_select, better, value, carried[0]),
                            kir_3(e->k, KIR_select, better, emit_any_expr(e, r->at[0]), carried[1])};
  if (r->lanes > 1) emit_scalar_lanes(e);
  emit_loop_end(e, v, 2, next, result);
  return (extremum){result[0], result[1]};
}

static extremum nothing_yet(emit *e, const reduction *r, uint32_t lanes) {
  const double worst = emit_identity(is_argmax(e, r) ? IR_OP_reduce_max : IR_OP_reduce_min, r->type.base);
  return (extremum){reduction_extreme(e, kir_t(r->type.base, lanes), worst), kir_const_int(e->k, kir_t(SNT_U32, lanes), 0)};
}

/* The index where a value is the best one; behind all of them where it is not. */
static uint32_t index_of(emit *e, const reduction *r, extremum own, uint32_t best, uint32_t lanes) {
  return kir_3(e->k, KIR_select, is_as_good(e, r, own.value, best), own.index, kir_const_int(e->k, kir_t(SNT_U32, lanes), -1));
}

/* Of the lanes of a vector: the first of those that have the best. */
static extremum across_lanes(emit *e, const reduction *r, extremum own) {
  const uint32_t best = kir_1(e->k, is_argmax(e, r) ? KIR_hred_max : KIR_hred_min, own.value);
  return (extremum){best, kir_1(e->k, KIR_hred_min, index_of(e, r, own, kir_splat(e->k, best, r->lanes), r->lanes))};
}

static extremum across_items(emit *e, const reduction *r, extremum own) {
  const uint32_t best = emit_group_combine(e, is_argmax(e, r) ? KIR_max : KIR_min, own.value, r->items);
  return (extremum){best, emit_group_combine(e, KIR_min, index_of(e, r, own, best, 1), r->items)};
}

/* Rows in lanes, or rows that lanes and items share. */
uint32_t reduction_index(emit *e, reduction *r) {
  const ir_expr extent = r->extent[0];
  const uint32_t lanes = e->lanes;
  r->type = emit_compute_type(e, ir_at(e->g, ir_arg(e->g, r->node, 0))->type.dtype, 1);
  reduction_fit(e, r);
  const ir_expr whole = expr_sub(e->x, extent, expr_mod(e->x, extent, (ir_expr)r->lanes * r->items));
  extremum best = sweep_extremum(e, r, 0, whole, nothing_yet(e, r, r->lanes > 1 ? r->lanes : lanes));
  if (r->lanes > 1) best = across_lanes(e, r, best);
  if (extent != whole) {
    reduction tail = *r;
    tail.lanes = 1, tail.tail = true;
    best = sweep_extremum(e, &tail, tail.items > 1 ? expr_add(e->x, whole, r->item) : whole, extent, best);
  }
  if (r->items > 1) best = across_items(e, r, best);
  return kir_cast(e->k, kir_t(SNT_I64, lanes), best.index);
}
