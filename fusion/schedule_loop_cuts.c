/* Columns at which the conditions of an elementwise kernel's loads change: the seams of a concatenation, the borders of a pad. Between two of them every
   condition is decided, so that vectors stay whole where they were put together lane by lane (measured on PoCL: a rotary embedding 2.4 times as long).
   In: the group's columns along the last axis. Out: literals in order. What is not found stays conditional, and right. */
#include "fusion/schedule_loop_private.h"
#include "fusion/emit_private.h"

typedef struct cut_search {
  const fusion_context *c;
  loop_cuts *cuts;
  uint32_t var;
  int64_t columns;
} cut_search;

static void add_cut(cut_search *s, int64_t at) {
  loop_cuts *cuts = s->cuts;
  uint32_t i = 0;
  while (i < cuts->count && cuts->at[i] < at) i++;
  if (at <= 0 || at >= s->columns || (i < cuts->count && cuts->at[i] == at)) return;
  if (cuts->count++ >= LOOP_MOST_CUTS) return; /* too many: counted, and none is made */
  for (uint32_t k = cuts->count - 1; k > i; k--) cuts->at[k] = cuts->at[k - 1];
  cuts->at[i] = at;
}

/* lo <= column + shift < hi changes at lo - shift and at hi - shift. */
static void add_condition(cut_search *s, const map_condition *condition) {
  expr_pool *x = s->c->graph->pool;
  int64_t coef, shift, bound;
  ir_expr rest;
  if (!expr_split_affine(x, condition->value, s->var, &coef, &rest) || coef != 1 || !expr_is_const(x, rest, &shift)) return;
  if (expr_is_const(x, condition->lo, &bound)) add_cut(s, bound - shift);
  if (expr_is_const(x, condition->hi, &bound)) add_cut(s, bound - shift);
}

static void look_at(void *user, const fusion_load *load) {
  for (uint32_t i = 0; i < load->access->condition_count; i++) add_condition(user, &load->access->conditions[i]);
}

void loop_find_cuts(const fusion_context *c, const fusion_group *group, const schedule_space *space, loop_cuts *cuts) {
  expr_pool *x = c->graph->pool;
  cut_search s = {.c = c, .cuts = cuts};
  *cuts = (loop_cuts){0};
  if (space->split + 1 != space->rank || !expr_is_const(x, space->columns, &s.columns)) return;
  const ir_expr row = space->split ? expr_var_add(x, "r", 0, space->rows, 1) : 0, column = expr_var_add(x, "c", 0, space->columns, 1);
  s.var = emit_var_number(x, column);
  for (uint32_t i = 0; i < group->output_count; i++) {
    const uint32_t node = group->outputs[i];
    const map_access at = schedule_at(x, space, row, column);
    if (!ir_same_shape(&ir_at(c->graph, node)->type, &ir_at(c->graph, group->hero)->type)) continue;
    if (!fusion_walk_loads(c, group, node, &at, look_at, &s)) cuts->count = 0;
  }
  if (cuts->count > LOOP_MOST_CUTS) cuts->count = 0;
}
