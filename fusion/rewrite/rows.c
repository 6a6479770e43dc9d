/* Rows that a scatter sets in a number, or in another such result: each row of the result asks which update is its own. In: scatter.set of
   many wide rows, one at least. Out: the number of the last update of each row, a scatter of numbers; gathers of the updates, and selects.
   What follows one another, or the result, is one kernel then, and of updates that no row takes nothing is read. */
#include "fusion/rebuild.h"
#include "fusion/schedule_common.h"
#include "fusion/rewrite_rows.h"

enum { LEAST_ROWS = 9, LEAST_COLUMNS = 64 }; /* of fewer updates each element looks at all of them (schedule/scatter.c) */

typedef struct set_rows {
  uint32_t axis, rank;
  ir_expr rows, count; /* of the result; updates */
} set_rows;

static bool is_number(const ir_graph *g, uint32_t node) {
  node = fusion_through_views(g, node);
  double value;
  return ir_is_scalar_const(g, node, &value);
}

static bool read_set(const rebuild *r, set_rows *s) {
  const ir_node *n = ir_at(r->from, r->node);
  const expr_pool *x = r->to->pool;
  const ir_tensor *index = &ir_at(r->to, r->args[1])->type;
  s->axis = (uint32_t)ir_attr_int(r->from, r->node, IR_ATTR_axis, 0), s->rank = n->type.rank;
  if (index->rank != 1) return false;
  s->rows = n->type.dims[s->axis], s->count = index->dims[0];
  const ir_expr columns = schedule_product(r->to->pool, s->rank - s->axis - 1, n->type.dims + s->axis + 1);
  int64_t least, most;
  expr_bounds(x, s->count, &least, &most);
  if (least < 1) return false; /* the row that no update is for reads the first one all the same */
  if (schedule_hint(x, s->count) < LEAST_ROWS || schedule_hint(x, columns) < LEAST_COLUMNS) return false;
  return is_number(r->to, r->args[0]) || ir_at(r->to, r->args[0])->op == IR_OP_select;
}

static uint32_t along(rebuild *r, uint32_t node, ir_expr axis, const ir_tensor *type) {
  return rebuild_broadcast(r, node, 1, &axis, type->rank, type->dims);
}

static uint32_t number(rebuild *r, double value, ir_expr count) {
  return rebuild_broadcast(r, ir_add_splat(r->to, SNT_I32, value), 0, NULL, 1, &count);
}

uint32_t rewrite_set_rows(rebuild *r) {
  ir_graph *g = r->to;
  set_rows s;
  if (!read_set(r, &s)) return 0;
  const ir_expr axis = s.axis, first = 0;
  const ir_attr_value on_axis = {IR_ATTR_axis, 1, &axis}, on_first = {IR_ATTR_axis, 1, &first};
  const ir_tensor numbers = {.dtype = SNT_I32, .rank = 1, .dims = {s.count}};
  const ir_tensor type = ir_at(r->from, r->node)->type;
  const uint32_t none = number(r, -1, s.rows), zero = number(r, 0, s.rows);
  const uint32_t set[] = {none, r->args[1], ir_add_node(g, IR_OP_iota, 0, NULL, 1, &on_first, &numbers)};
  const uint32_t winner = ir_add_node(g, IR_OP_scatter_set, 3, set, 1, &on_first, NULL);
  const uint32_t taken = ir_add2(g, IR_OP_ge, winner, zero);
  const uint32_t from[] = {r->args[2], ir_add2(g, IR_OP_max, winner, zero)};
  const uint32_t wide = along(r, taken, axis, &type), gathered = ir_add_node(g, IR_OP_gather, 2, from, 1, &on_axis, NULL);
  return ir_add3(g, IR_OP_select, wide, gathered, r->args[0]);
}
