/* Where an element's place is and what comes before it: what all sorts are made of (schedule/sort.c, sort_first.c). */
#include "fusion/schedule/sort_private.h"

map_access sort_at(const sort_job *j, ir_expr line, ir_expr place) {
  expr_pool *x = j->e->x;
  map_access at = {.rank = j->rank};
  map_delinear(x, expr_div(x, line, j->inner), j->axis, j->dims, at.at);
  map_delinear(x, expr_mod(x, line, j->inner), j->rank - j->axis - 1, j->dims + j->axis + 1, at.at + j->axis + 1);
  at.at[j->axis] = place;
  return at;
}

/* ---- order ---- */

static uint32_t is_less(const sort_job *j, uint32_t a, uint32_t b) {
  kir_kernel *k = j->e->k;
  const uint32_t less = kir_2(k, KIR_lt, a, b);
  if (j->e->failed || k->failed || !ir_dtypes[j->key].is_float) return less;
  return kir_2(k, KIR_or, less, kir_2(k, KIR_and, kir_2(k, KIR_ne, b, b), kir_2(k, KIR_eq, a, a)));
}
uint32_t sort_comes_before(const sort_job *j, uint32_t a, uint32_t b) { return j->descending ? is_less(j, b, a) : is_less(j, a, b); }

snt_result sort_begin(sort_job *j, const char *suffix) {
  j->e = emit_begin(j->c, j->group, suffix);
  return j->e ? SNT_OK : ir_no_memory(j->c->diag, "schedule");
}

static void store_place(sort_job *j, ir_expr place, uint32_t key, uint32_t rank) {
  emit *e = j->e;
  expr_pool *x = e->x;
  const ir_expr to = expr_add(x, j->lo, emit_var_for(e, "rank", rank, 0, j->first ? j->first : expr_sub(x, j->hi, j->lo)));
  const uint32_t own = emit_expr(e, place);
  if (j->first) emit_if(e, kir_2(e->k, KIR_lt, rank, kir_const_int(e->k, kir_t(SNT_U32, 1), j->first)));
  if (j->of_parts) {
    emit_store(e, emit_bind(e, j->order[1], KIR_WRITE), SNT_U32, expr_add(x, expr_mul(x, j->line, j->first), to), own);
  } else if (j->whole || j->first) {
    const map_access at = sort_at(j, j->line, to);
    emit_store_node(e, j->node, &at, kir_cast(e->k, kir_t(SNT_I64, 1), own));
  } else {
    const ir_expr offset = expr_add(x, expr_mul(x, j->line, j->length), to);
    emit_store(e, emit_bind(e, j->keys[0], KIR_WRITE), j->key, offset, key);
    emit_store(e, emit_bind(e, j->order[0], KIR_WRITE), SNT_U32, offset, own);
  }
  if (j->first) emit_if_end(e);
}

ir_expr sort_each_other(sort_job *j, const ranked *r, ir_expr lo, ir_expr hi, const uint32_t *start, uint32_t *carried) {
  const ir_expr v = emit_loop(
      j->e, &(emit_loop_info){.name = "o", .lo = lo, .hi = hi, .step = 1, .carry_count = 1, .initial = start, .carried = carried});
  emit_use_lanes(j->e, r->lane_var, r->lanes);
  return v;
}

/* `count` with those elements counted that the other one comes before. */
uint32_t sort_count_before(sort_job *j, const ranked *r, uint32_t count, uint32_t key, uint32_t place) {
  kir_kernel *k = j->e->k;
  const kir_type t = kir_t(SNT_U32, r->lanes);
  const uint32_t earlier = kir_2(k, KIR_lt, place, r->place), not_after = kir_1(k, KIR_not, sort_comes_before(j, r->key, key));
  const uint32_t before = kir_2(k, KIR_or, kir_2(k, KIR_and, earlier, not_after), sort_comes_before(j, key, r->key));
  return kir_2(k, KIR_add, count, kir_3(k, KIR_select, before, kir_const_int(k, t, 1), kir_const_int(k, t, 0)));
}

void sort_store_places(sort_job *j, const ranked *r, ir_expr place, uint32_t rank) {
  emit *e = j->e;
  if (e->failed || e->k->failed) return;
  emit_scalar_lanes(e);
  for (uint32_t i = 0; i < r->lanes; i++) {
    const ir_expr lane = i;
    const uint32_t number = kir_const_int(e->k, kir_t(SNT_U32, 1), i);
    const uint32_t own_rank = r->lanes > 1 ? kir_2(e->k, KIR_extract, rank, number) : rank;
    const uint32_t own_key = r->lanes > 1 ? kir_2(e->k, KIR_extract, r->key, number) : r->key;
    store_place(j, r->lanes > 1 ? expr_substitute(e->x, place, 1, &r->lane_var, &lane) : place, own_key, own_rank);
  }
  emit_use_lanes(e, r->lane_var, r->lanes);
}

uint32_t sort_value_at(sort_job *j, ir_expr place) {
  const map_access at = sort_at(j, j->line, place);
  return emit_value(j->e, j->operand, &at);
}
