/* Contractions on matrix units: what schedule/contract_local.c does, with a subgroup's part of the tile as fragments. These come out of the
   panels as they lie there, by rows or by columns; results pass through a stage of each subgroup, since which lane holds what is the device's secret. */
#include "fusion/contract_local.h"

static ir_expr warp_place(const contract_local *l, bool columns) {
  expr_pool *x = l->t->e->x;
  const uint32_t across = l->shape.columns / l->warp_columns;
  return columns ? expr_mul(x, expr_mod(x, l->warp, across), l->warp_columns) : expr_mul(x, expr_div(x, l->warp, across), l->warp_rows);
}

/* The fragment whose first row (or column) is `own` of the tile, and first term `term` of the step. */
static uint32_t load_fragment(contract_local *l, const local_panel *p, ir_expr buffer, ir_expr own, uint32_t term) {
  const uint32_t pitch = p->by_rows ? l->step + contract_mma_pad(l) : contract_term_pitch(l, p, &l->shape);
  return fragment_load(l->t->e, p->memory, p->columns ? FRAGMENT_B : FRAGMENT_A, contract_local_element(l, p, buffer, own, term), pitch,
                       p->by_rows == p->columns);
}

void contract_mma_multiply(contract_local *l, ir_expr buffer, uint32_t terms, uint32_t *acc) {
  emit *e = l->t->e;
  expr_pool *x = e->x;
  const uint32_t rows = l->warp_rows / l->units.size.m, columns = l->warp_columns / l->units.size.n;
  for (uint32_t term = 0; term < terms; term += l->units.size.k) {
    uint32_t read[LOCAL_PANELS][MMA_MOST];
    for (uint32_t p = 0; p < l->panel_count; p++) {
      const bool across = l->panel[p].columns;
      const ir_expr side = across ? l->units.size.n : l->units.size.m;
      for (uint32_t i = 0; i < (across ? columns : rows); i++)
        read[p][i] = load_fragment(l, &l->panel[p], buffer, expr_add(x, warp_place(l, across), i * side), term);
    }
    for (uint32_t s = 0; s < l->t->set.count; s++)
      for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < columns; j++) {
          uint32_t *cell = &acc[(s * rows + i) * columns + j];
          *cell = fragment_multiply(e, read[l->panel_of[s][0]][i], read[l->panel_of[s][1]][j], *cell);
        }
  }
}

static uint32_t declare_stage(contract_local *l) {
  emit *e = l->t->e;
  kir_memory m = {
      .name = "stage", .space = KIR_LOCAL, .access = KIR_READ | KIR_WRITE, .rank = 1, .align = 64, .type = kir_t(l->t->type.base, 1)};
  const uint32_t under = contract_stage_panel(l);
  m.dims[0] = contract_stage_bytes(l) / 4;
  if (under < l->panel_count) {
    m.overlay = l->panel[under].memory + 1;
    kir_barrier(e->k, KIR_SYNC_LOCAL);
  }
  return kir_memory_add(e->k, &m);
}

enum { STAGE_PASSES = LOCAL_VECTOR * MMA_MOST };

/* Items that read at once have rows two apart: by the stage's pitch these lie in banks of their own, neighbours do not. */
static ir_expr stage_row(expr_pool *x, ir_expr number, bool turns) {
  if (!turns) return number;
  const ir_expr within = expr_mod(x, number, 4);
  const ir_expr turned = expr_add(x, expr_mul(x, expr_mod(x, within, 2), 2), expr_div(x, within, 2));
  return expr_add(x, expr_sub(x, number, within), turned);
}

/* As many fragments beside each other as the stage holds: items side by side hold a whole row of them, which of 16-bit results is a sector of one fragment
   and a line of four, and go down its rows. Where columns are no whole vectors an item has elements one by one, beside its neighbours'. */
void contract_mma_store(contract_local *l, const uint32_t *acc) {
  emit *e = l->t->e;
  expr_pool *x = e->x;
  const uint32_t stage = declare_stage(l), rows = l->warp_rows / l->units.size.m, columns = l->warp_columns / l->units.size.n,
                 ld = contract_mma_stage(l), unit = contract_local_unit(l);
  const uint32_t together = contract_stage_columns(l) / l->units.size.n;
  const uint32_t across = contract_stage_columns(l) / unit;                                          /* items beside each other in a row */
  const uint32_t passes = l->units.size.m * across / l->units.lanes, down = l->units.lanes / across; /* rows at once */
  const bool turns = unit > 1 ? down % 4 == 0 : down > 1;
  const ir_expr own = expr_mul(x, l->warp, l->units.size.m * ld), item = expr_mod(x, l->item, l->units.lanes),
                lane = emit_lanes(e, 0, unit);
  const uint32_t lane_var = e->lane_var;
  ir_expr row[STAGE_PASSES], part[STAGE_PASSES];
  emit_scalar_lanes(e);
  for (uint32_t p = 0; p < passes; p++) {
    const ir_expr at = expr_add(x, item, (ir_expr)(p * l->units.lanes));
    row[p] = stage_row(x, expr_div(x, at, across), turns), part[p] = expr_mul(x, expr_mod(x, at, across), unit);
  }
  for (uint32_t i = 0; i < rows; i++)
    for (uint32_t j = 0; j < columns; j += together) {
      uint32_t parts[STAGE_PASSES][CONTRACT_SET_MAX];
      for (uint32_t s = 0; s < l->t->set.count; s++) {
        for (uint32_t f = 0; f < together; f++)
          fragment_store(e, stage, expr_add(x, own, (ir_expr)(f * l->units.size.n)), ld, acc[(s * rows + i) * columns + j + f]);
        fragment_barrier(e);
        for (uint32_t p = 0; p < passes; p++) {
          const uint32_t index = emit_expr(e, expr_add(x, expr_add(x, own, expr_mul(x, row[p], ld)), part[p]));
          parts[p][s] = kir_load(e->k, stage, unit, 1, &index);
          if (!e->k->failed) kir_at(e->k, parts[p][s])->align = (uint16_t)(4 * unit);
        }
        fragment_barrier(e);
      }
      const ir_expr first = expr_add(x, warp_place(l, false), (ir_expr)i * l->units.size.m),
                    column = expr_add(x, warp_place(l, true), (ir_expr)j * l->units.size.n);
      for (uint32_t p = 0; p < passes; p++)
        contract_local_store(l, contract_local_row(l, expr_add(x, first, row[p])), expr_add(x, column, part[p]), lane_var, lane, parts[p]);
    }
}
