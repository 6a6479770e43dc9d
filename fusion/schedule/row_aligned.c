/* Rows of an odd length that are read through texels begin inside of one: which of its elements, every fourth row tells. Vectors that begin where texels do are
   one read in place of two and a shift, and are stored whole; of the first and the last one what is none of the row is left out. */
#include "fusion/schedule/row_private.h"

bool row_fits_aligned(const row_job *j) {
  enum { LEAST = 16 }; /* elements an item */
  int64_t columns;
  return j->items > 1 && j->lanes == 4 && j->full.rank == j->kept_rank + 1 && !j->staged_count && !fusion_keeps_order(j->c->options) &&
         expr_is_const(j->c->graph->pool, j->columns, &columns) && columns % 4 && columns >= LEAST * (int64_t)j->items &&
         emit_reads_only_texels(j->e);
}

void row_go_to_aligned(row_job *j) {
  emit *e = j->e;
  expr_pool *x = e->x;
  const ir_expr odd = expr_mod(x, j->columns, 4);
  const ir_expr place = emit_var_for(e, "row", emit_expr(e, expr_mod(x, j->group_var, 4)), 0, 4);
  e->near = true;
  j->start = odd == 3 ? expr_sub(x, place, 4) : expr_sub(x, 0, expr_mul(x, place, odd));
  row_go_to(j, expr_add(x, expr_mul(x, expr_div(x, j->group_var, 4), 4), place));
}

void row_store_aligned(row_job *j, const sweep *how) {
  int64_t cuts[SWEEP_CUTS];
  emit_cut_sweep(j->e, how, j->columns, cuts);
  for (uint32_t i = 0; i + 1 < SWEEP_CUTS; i++) {
    j->edge = i != 1;
    if (cuts[i] < cuts[i + 1]) row_store_vectors(j, expr_int(j->e->x, cuts[i]), expr_int(j->e->x, cuts[i + 1]));
  }
}
