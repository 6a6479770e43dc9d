/* What can be one kernel of rows: reductions over the same axes of one shape, whose results are read in their own rows. A pool is none. */
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"

bool schedule_depends_on_reduction(const fusion_context *c, const fusion_group *group, uint32_t node, uint32_t *steps) {
  const ir_node *n = ir_at(c->graph, node);
  const bool member = fusion_group_has(group, node);
  if ((member && (ir_ops[n->op].flags & IR_REDUCE)) || !*steps) return true;
  --*steps;
  if (!member && !fusion_is_view(c->graph, node)) return false;
  for (uint32_t i = 0; i < n->arity; i++)
    if (schedule_depends_on_reduction(c, group, ir_arg(c->graph, node, i), steps)) return true;
  return false;
}

/* Does the node spread results of the rows along the terms of a row? A row would need all rows: layers of matrices times vectors. */
static bool crosses_rows(const fusion_context *c, const fusion_group *group, uint32_t node, const ir_tensor *full, uint32_t axes) {
  const ir_graph *g = c->graph;
  const ir_node *n = ir_at(g, node);
  uint32_t count, steps = 128;
  if (n->op != IR_OP_broadcast || !ir_same_shape(&n->type, full)) return false;
  const uint32_t operand = ir_arg(g, node, 0), rank = ir_at(g, operand)->type.rank;
  const ir_expr *own = ir_attr_ints(g, node, IR_ATTR_axes, &count);
  bool along = false;
  for (uint32_t i = 0; i < rank && rank < full->rank; i++) along |= axes >> (own ? (uint32_t)own[i] : full->rank - rank + i) & 1;
  return along && schedule_depends_on_reduction(c, group, operand, &steps);
}

/* Is the list of integers something else than 0, or its place in the list of a transpose, on an axis along which rows follow each other? */
static bool changes_rows(const ir_graph *g, uint32_t node, ir_attr_key key, uint32_t axes) {
  uint32_t count;
  const ir_expr *list = ir_attr_ints(g, node, key, &count);
  for (uint32_t i = 0; list && i < count; i++)
    if (!(axes >> i & 1) && list[i] != (key == IR_ATTR_perm ? (ir_expr)i : 0)) return true;
  return false;
}

/* Does the node, of the shape of the rows, put what lies in one row into another? Along the terms of a row nothing leaves it. */
static bool is_move(const ir_graph *g, uint32_t node, uint32_t axes) {
  switch (ir_at(g, node)->op) {
  case IR_OP_concat:
  case IR_OP_gather: return !(axes >> (uint32_t)ir_attr_int(g, node, IR_ATTR_axis, 0) & 1);
  case IR_OP_transpose: return changes_rows(g, node, IR_ATTR_perm, axes);
  case IR_OP_pad: return changes_rows(g, node, IR_ATTR_low, axes) || changes_rows(g, node, IR_ATTR_high, axes);
  case IR_OP_slice: return changes_rows(g, node, IR_ATTR_starts, axes);
  default: return false;
  }
}

static bool is_movement(const ir_graph *g, uint32_t node) {
  const ir_op op = (ir_op)ir_at(g, node)->op;
  return (ir_ops[op].flags & IR_MOVEMENT) != 0 || op == IR_OP_gather;
}

/* Does each row of the node lie where the row of the same place lies in the shape of the rows, if in more or fewer terms? */
static bool has_rows(const ir_graph *g, uint32_t node, const ir_tensor *full, uint32_t axes) {
  const ir_tensor *t = &ir_at(g, node)->type;
  bool same = t->rank == full->rank;
  for (uint32_t i = 0; same && i < t->rank; i++) same = axes >> i & 1 || t->dims[i] == full->dims[i];
  return same;
}

/* Does the node put what lies in one row into another? Where it or what it moves has other rows, not only more or fewer terms of them (the halves of each row,
   joined), all but a transpose is taken for one that does: elements of one row lie anywhere there. */
static bool may_move(const ir_graph *g, uint32_t node, const ir_tensor *full, uint32_t axes) {
  if (ir_same_shape(&ir_at(g, node)->type, full) || (has_rows(g, node, full, axes) && has_rows(g, ir_arg(g, node, 0), full, axes)))
    return is_move(g, node, axes);
  return ir_at(g, node)->op != IR_OP_transpose && is_move(g, node, 0);
}

/* Is a result of the rows read in other rows than its own, here or through views below? There each element would sum a row again (a norm, then Swin's roll: 500
   times as long as two kernels). */
static bool moves_rows(const fusion_context *c, const fusion_group *group, uint32_t node, const ir_tensor *full, uint32_t axes) {
  const ir_graph *g = c->graph;
  uint32_t steps = 128;
  while (is_movement(g, node)) {
    if (may_move(g, node, full, axes) && schedule_depends_on_reduction(c, group, node, &steps)) return true;
    if (!fusion_is_view(g, node) || fusion_group_has(group, node)) return false;
    node = ir_arg(g, node, 0);
  }
  return false;
}

/* Is the node, in any shape, a result of rows that is put elsewhere? */
static bool may_read_two(const fusion_context *c, const fusion_group *group, uint32_t node) {
  uint32_t steps = 128;
  return is_move(c->graph, node, 0) && schedule_depends_on_reduction(c, group, node, &steps);
}

bool schedule_row_accepts(const fusion_context *c, const fusion_group *group, const char **why_not) {
  const ir_graph *g = c->graph;
  uint32_t count, own_count, reduces = 0;
  const ir_expr *axes = ir_attr_ints(g, group->hero, IR_ATTR_axes, &count);
  const ir_tensor *full = &ir_at(g, ir_arg(g, group->hero, 0))->type;
  uint32_t summed = 0;
  bool moved = false;
  for (uint32_t i = 0; i < count; i++) summed |= 1u << axes[i];
  for (uint32_t i = 0; i < group->count; i++) {
    const uint32_t node = group->nodes[i];
    *why_not = "results of rows in other rows";
    if (is_movement(g, node)) {
      if (moves_rows(c, group, node, full, summed)) return false;
      moved = moved || may_read_two(c, group, node);
    }
    for (uint32_t k = 0; k < ir_at(g, node)->arity; k++) {
      const uint32_t operand = ir_arg(g, node, k);
      if (is_movement(g, operand)) {
        if (moves_rows(c, group, operand, full, summed) || crosses_rows(c, group, operand, full, summed)) return false;
        moved = moved || may_read_two(c, group, operand);
      }
    }
    if (!(ir_ops[ir_at(g, node)->op].flags & IR_REDUCE)) continue;
    const ir_expr *own = ir_attr_ints(g, node, IR_ATTR_axes, &own_count);
    if (own_count != count || (count && memcmp(own, axes, count * sizeof *axes))) {
      *why_not = "reductions over different axes";
      return false;
    }
    if (!ir_same_shape(&ir_at(g, ir_arg(g, node, 0))->type, full)) {
      *why_not = "reductions over different shapes";
      return false;
    }
    if (++reduces >= ROW_SWEEPS) {
      *why_not = "too many reductions";
      return false;
    }
  }
  /* a row's norm in another shape, there turned and added to itself: what else moves it there has been refused above */
  *why_not = "results of rows in other rows";
  for (uint32_t i = 0; moved && i < group->count; i++)
    if ((ir_ops[ir_at(g, group->nodes[i])->op].flags & IR_REDUCE) && fusion_reads_apart(c, group, group->nodes[i])) return false;
  return true;
}
bool schedule_reduce_accepts(const fusion_context *c, const fusion_group *group, const char **why_not) {
  return schedule_row_accepts(c, group, why_not);
}

/* A few taps of a window, and enough results beside each other along the last axis for vectors: each lane has a result of its own. */
static bool is_pool(fusion_context *c, const fusion_group *group) {
  enum { TAPS = 64 };
  const ir_graph *g = c->graph;
  const ir_tensor *full = &ir_at(g, ir_arg(g, group->hero, 0))->type, *t = &ir_at(g, group->hero)->type;
  uint32_t node = ir_arg(g, group->hero, 0), count;
  const ir_expr *axes = ir_attr_ints(g, group->hero, IR_ATTR_axes, &count);
  int64_t taps = 1, extent;
  while (fusion_is_view(g, node) && ir_at(g, node)->op != IR_OP_window && ir_at(g, node)->op != IR_OP_concat) node = ir_arg(g, node, 0);
  if (ir_at(g, node)->op != IR_OP_window || !t->rank) return false;
  for (uint32_t i = 0; i < count && taps <= TAPS; i++) {
    if (!expr_is_const(g->pool, full->dims[axes[i]], &extent)) return false;
    taps = extent > TAPS ? extent : taps * extent;
  }
  for (uint32_t i = 0; i < group->output_count; i++)
    if (!ir_same_shape(&ir_at(g, group->outputs[i])->type, t)) return false;
  return taps <= TAPS && ir_tensor_elements(g->pool, t) && schedule_hint(g->pool, t->dims[t->rank - 1]) >= (int64_t)schedule_lanes(c);
}

snt_result schedule_reduce_build(fusion_context *c, const fusion_group *group) {
  return is_pool(c, group) ? schedule_loop_build(c, group) : schedule_row_build(c, group);
}
