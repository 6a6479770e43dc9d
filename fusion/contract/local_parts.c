/* Contractions of few tiles and many terms: the terms are summed in parts, each by groups of its own into scratch memory, and a second kernel adds the
   parts, in order, and computes what follows the contraction. */
#include "fusion/contract_local.h"

ir_expr contract_part_elements(const contract_local *l) { return contract_part_place(l, l->t->set.count, 0, 0, 0, 0); }

snt_result contract_build_sum(contract_local *l) {
  contraction *t = l->t;
  expr_pool *x = t->c->graph->pool;
  emit *e = t->e = emit_begin(t->c, t->group, "contract_sum");
  if (!e) return ir_no_memory(t->c->diag, "schedule");
  const local_axis *columns = &l->columns;
  const uint32_t unit = expr_multiple_of(x, columns->dims[columns->count - 1]) % LOCAL_VECTOR ? 1 : LOCAL_VECTOR;
  const ir_expr across = expr_div(x, columns->extent, unit), plane = expr_mul(x, across, l->rows.extent);
  ir_expr groups;
  const ir_expr all = expr_mul(x, plane, l->batch.extent), number = schedule_units(e, all, unit, &groups);
  const ir_expr at = emit_var_for(e, "i", emit_expr(e, number), 0, all); /* inside of the test that it is one */
  const ir_expr column = expr_mod(x, at, across), row = expr_mod(x, expr_div(x, at, across), l->rows.extent),
                batch = expr_div(x, at, plane);
  const uint32_t memory = emit_bind(e, l->scratch, KIR_READ);
  const ir_expr lane = emit_lanes(e, 0, unit);
  uint32_t sums[CONTRACT_SET_MAX];
  for (uint32_t s = 0; s < t->set.count; s++)
    for (uint32_t p = 0; p < l->parts; p++) {
      const ir_expr place = contract_part_place(l, s, p, batch, row, expr_add(x, expr_mul(x, column, unit), lane));
      const uint32_t part = emit_load(e, memory, t->type.base, place, 0, NULL);
      sums[s] = p ? kir_2(e->k, KIR_add, sums[s], part) : part;
    }
  contract_place_axis(l, columns, column, unit, lane);
  contract_place_axis(l, &l->rows, row, 1, 0);
  if (l->batch.count) contract_place_axis(l, &l->batch, batch, 1, 0);
  t->rows = t->vectors = 1;
  contract_store_cell(t, sums);
  emit_scalar_lanes(e);
  schedule_units_end(e, number);
  return emit_end(e, groups, 0, 0, NULL);
}
