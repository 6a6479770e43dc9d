/* Whether a NaN that an extremum would pass on shows in the results all the same, so that it may be the extremum of the numbers: one operation a
   term instead of three (a softmax on PoCL takes 0.8 of the time). So where every result that hangs on the extremum hangs on a sum, too, that the same
   NaN has reached: max(x) in e^(x - max(x)) / sum(e^(x - max(x))), x - max(x) - log(sum(..)). */
#include "fusion/emit_private.h"

enum { STEPS = 512 /* of looking: what takes more, as many ways to one value, is not looked through */ };
typedef struct looker {
  const emit *e;
  uint32_t extremum, left; /* steps */
} looker;
static bool may_step(looker *l) { return l->left && l->left--; }

/* A NaN among the operands is a NaN of the result. */
static bool keeps_nan(const ir_graph *g, uint32_t node) {
  const ir_node *n = ir_at(g, node);
  switch (n->op) {
  case IR_OP_neg:
  case IR_OP_abs:
  case IR_OP_sqrt:
  case IR_OP_rsqrt:
  case IR_OP_recip:
  case IR_OP_exp:
  case IR_OP_exp2:
  case IR_OP_log:
  case IR_OP_log2:
  case IR_OP_add:
  case IR_OP_sub:
  case IR_OP_mul:
  case IR_OP_div:
  case IR_OP_fma:
  case IR_OP_cast: return ir_dtypes[n->type.dtype].is_float && ir_dtypes[ir_at(g, ir_arg(g, node, 0))->type.dtype].is_float;
  default: return false;
  }
}

/* Of the shape of one row's results, whatever axes of one element it has. */
static bool is_row(const looker *l, const ir_tensor *t) {
  const ir_tensor *row = &ir_at(l->e->g, l->extremum)->type;
  uint32_t i = 0, j = 0;
  for (;; i++, j++) {
    while (i < t->rank && t->dims[i] == 1) i++;
    while (j < row->rank && row->dims[j] == 1) j++;
    if (i == t->rank || j == row->rank) return i == t->rank && j == row->rank;
    if (t->dims[i] != row->dims[j]) return false;
  }
}
static const ir_tensor *full_of(const looker *l) { return &ir_at(l->e->g, ir_arg(l->e->g, l->extremum, 0))->type; }

/* Results of the rows, spread over the terms of their own rows. */
static bool spreads_over_rows(const looker *l, uint32_t view) {
  const ir_graph *g = l->e->g;
  const ir_tensor *from = &ir_at(g, ir_arg(g, view, 0))->type, *full = full_of(l);
  uint32_t count, reduced_count, at = 0;
  const ir_expr *axes = ir_attr_ints(g, view, IR_ATTR_axes, &count), *reduced = ir_attr_ints(g, l->extremum, IR_ATTR_axes, &reduced_count);
  if (!ir_same_shape(&ir_at(g, view)->type, full) || !is_row(l, from)) return false;
  for (uint32_t d = 0; d < full->rank; d++) {
    bool kept = full->dims[d] != 1;
    for (uint32_t i = 0; i < reduced_count; i++) kept &= reduced[i] != (ir_expr)d;
    if (!kept) continue;
    while (at < from->rank && from->dims[at] == 1) at++;
    if (at == from->rank || (axes ? (uint32_t)axes[at] : full->rank - from->rank + at) != d) return false;
    at++;
  }
  return true;
}

typedef enum { NOT_READ, READ_IN_PLACE, READ_ELSEWHERE } reading;

/* How `from`, an operand, reads the values of `node`: in the row they belong to, or otherwise. */
static reading reads(const looker *l, uint32_t from, uint32_t node) {
  const ir_graph *g = l->e->g;
  bool in_place = true;
  while (from != node) {
    const ir_node *n = ir_at(g, from);
    if (!fusion_is_view(g, from)) return NOT_READ;
    if (n->op == IR_OP_concat) {
      for (uint32_t i = 0; i < n->arity; i++)
        if (reads(l, ir_arg(g, from, i), node)) return READ_ELSEWHERE;
      return NOT_READ;
    }
    const uint32_t below = ir_arg(g, from, 0);
    const bool moves = n->op != IR_OP_broadcast && n->op != IR_OP_reshape;
    in_place &= !moves &&
                ((is_row(l, &n->type) && is_row(l, &ir_at(g, below)->type)) || (n->op == IR_OP_broadcast && spreads_over_rows(l, from)));
    from = below;
  }
  return in_place ? READ_IN_PLACE : READ_ELSEWHERE;
}

bool emit_reads_own_row(const emit *e, uint32_t from, uint32_t extremum) {
  return reads(&(looker){.e = e, .extremum = extremum}, from, extremum) == READ_IN_PLACE;
}

/* Each NaN of x is one of `node`, at the same place. */
static bool has_nans_of(looker *l, uint32_t node, uint32_t x) {
  const ir_graph *g = l->e->g;
  if (node == x) return true;
  if (!may_step(l) || !keeps_nan(g, node) || !ir_same_shape(&ir_at(g, node)->type, &ir_at(g, x)->type)) return false;
  for (uint32_t i = 0; i < ir_at(g, node)->arity; i++)
    if (has_nans_of(l, ir_arg(g, node, i), x)) return true;
  return false;
}

/* A sum over the axes of the extremum, of what has the NaNs of its operand. */
static bool is_sum_beside(looker *l, uint32_t node) {
  const ir_graph *g = l->e->g;
  uint32_t count, own_count;
  if (ir_at(g, node)->op != IR_OP_reduce_sum || !ir_dtypes[ir_at(g, node)->type.dtype].is_float) return false;
  const ir_expr *axes = ir_attr_ints(g, l->extremum, IR_ATTR_axes, &count), *own = ir_attr_ints(g, node, IR_ATTR_axes, &own_count);
  if (count != own_count || (count && memcmp(axes, own, count * sizeof *axes))) return false;
  return has_nans_of(l, ir_arg(g, node, 0), ir_arg(g, l->extremum, 0));
}

static bool is_of_rows(const looker *l, uint32_t node) {
  const ir_tensor *t = &ir_at(l->e->g, node)->type;
  return ir_same_shape(t, full_of(l)) || is_row(l, t);
}

/* Every element of `node` is NaN where such a sum of its row is. */
static bool hangs_on_sum(looker *l, uint32_t node) {
  const fusion_group *group = l->e->group;
  const ir_graph *g = l->e->g;
  if (is_sum_beside(l, node)) return true;
  if (!may_step(l) || !keeps_nan(g, node) || !is_of_rows(l, node)) return false;
  for (uint32_t i = 0; i < ir_at(g, node)->arity; i++) {
    const uint32_t operand = ir_arg(g, node, i), below = fusion_through_views(g, operand);
    if (fusion_group_has(group, below) && below != l->extremum && reads(l, operand, below) == READ_IN_PLACE && hangs_on_sum(l, below))
      return true;
  }
  return false;
}

static bool is_output(const fusion_group *group, uint32_t node) {
  for (uint32_t i = 0; i < group->output_count; i++)
    if (group->outputs[i] == node) return true;
  return false;
}

/* What hangs on `node` shows the NaN. */
static bool shows(looker *l, uint32_t node) {
  const fusion_group *group = l->e->group;
  const ir_graph *g = l->e->g;
  if (node != l->extremum && hangs_on_sum(l, node)) return true;
  if (!may_step(l) || is_output(group, node)) return false;
  for (uint32_t i = 0; i < group->count; i++) {
    const uint32_t user = group->nodes[i];
    reading how = NOT_READ;
    for (uint32_t k = 0; k < ir_at(g, user)->arity && how != READ_ELSEWHERE; k++) {
      const reading one = reads(l, ir_arg(g, user, k), node);
      if (one > how) how = one;
    }
    if (how == NOT_READ) continue;
    if (how == READ_ELSEWHERE || !is_of_rows(l, user) || !shows(l, user)) return false;
  }
  return true;
}

bool emit_nan_shows(const emit *e, uint32_t extremum) {
  const ir_op op = (ir_op)ir_at(e->g, extremum)->op;
  const uint8_t mode = e->c->options->numerics;
  if (op != IR_OP_reduce_max && op != IR_OP_reduce_min) return false;
  if (mode != SNT_NUMERICS_DEFAULT && mode != SNT_NUMERICS_FAST) return false;
  return ir_dtypes[ir_at(e->g, extremum)->type.dtype].is_float && fusion_group_has(e->group, extremum) &&
         shows(&(looker){e, extremum, STEPS}, extremum);
}
