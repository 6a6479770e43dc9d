/* Where a row lies: which axes are reduced, coordinates of the row at hand and of its results. */
#include "fusion/schedule/row_private.h"

bool row_is_reduce(const row_job *j, uint32_t node) { return (ir_ops[ir_at(j->c->graph, node)->op].flags & IR_REDUCE) != 0; }

bool row_is_full(const row_job *j, uint32_t node) { return ir_same_shape(&ir_at(j->c->graph, node)->type, &j->full); }

void row_find_shape(row_job *j) {
  const ir_graph *g = j->c->graph;
  uint32_t count;
  const ir_expr *axes = ir_attr_ints(g, j->group->hero, IR_ATTR_axes, &count);
  j->full = ir_at(g, ir_arg(g, j->group->hero, 0))->type;
  for (uint32_t i = 0; i < count; i++) j->reduced[axes[i]] = true;
  ir_expr columns = 1;
  for (uint32_t i = 0; i < j->full.rank; i++) {
    if (j->reduced[i]) columns = expr_mul(g->pool, columns, j->full.dims[i]);
    else j->kept[j->kept_rank++] = j->full.dims[i];
  }
  j->columns = columns;
  j->rows = schedule_product(g->pool, j->kept_rank, j->kept);
  j->across = j->full.rank && !j->reduced[j->full.rank - 1];
  for (uint32_t i = 0; i < j->group->count && j->sweeps < ROW_SWEEPS - 1; i++)
    if (row_is_reduce(j, j->group->nodes[i])) j->reduce[j->sweeps++] = j->group->nodes[i];
}

/* Along an axis of one element the place is 0, as broadcasts write it: what was computed there is found again. */
void row_set_place(row_job *j, const ir_expr *kept_at) {
  for (uint32_t i = 0, k = 0; i < j->full.rank; i++) {
    const ir_expr at = j->reduced[i] ? 0 : kept_at[k++];
    j->at[i] = j->full.dims[i] == 1 ? 0 : at;
  }
}

void row_go_to(row_job *j, ir_expr row) {
  ir_expr kept_at[SNT_MAX_RANK];
  map_delinear(j->e->x, row, j->kept_rank, j->kept, kept_at);
  row_set_place(j, kept_at);
}

map_access row_result_at(const row_job *j, uint32_t node) {
  const bool keep = ir_attr_flag(j->c->graph, node, IR_ATTR_keep);
  map_access a = {0};
  for (uint32_t i = 0; i < j->full.rank; i++)
    if (!j->reduced[i] || keep) a.at[a.rank++] = j->at[i];
  return a;
}
