/* Products of one constant with the steps of a sequence: x[i] W for most of the i, as an exporter writes a recurrence out step by step, are steps of x W, which
   reads the constant once. What a step adds to it from the one before stays a product of its own. */
#include "fusion/rewrite/steps.h"
#include "fusion/schedule_common.h"

enum { LEAST_STEPS = 4 };

/* One step of a value along an axis. */
typedef struct step_of {
  uint32_t value;
  uint32_t axis;
  ir_expr place;
} step_of;

static bool all_ones(const ir_graph *g, uint32_t node) {
  uint32_t count;
  const ir_expr *steps = ir_attr_ints(g, node, IR_ATTR_steps, &count);
  for (uint32_t i = 0; steps && i < count; i++)
    if (steps[i] != 1) return false;
  return true;
}

/* reshape(slice) that takes one place of one axis, all of the others, and drops the axis. */
static bool read_step(const ir_graph *g, uint32_t node, step_of *s) {
  const ir_tensor *own = &ir_at(g, node)->type;
  if (ir_at(g, node)->op != IR_OP_reshape || ir_at(g, ir_arg(g, node, 0))->op != IR_OP_slice) return false;
  const uint32_t slice = ir_arg(g, node, 0);
  s->value = ir_arg(g, slice, 0);
  const ir_tensor *from = &ir_at(g, s->value)->type;
  uint32_t count, taken = 0;
  const ir_expr *starts = ir_attr_ints(g, slice, IR_ATTR_starts, &count);
  if (from->rank != own->rank + 1 || !all_ones(g, slice)) return false;
  for (uint32_t d = 0; d < from->rank; d++)
    if (ir_at(g, slice)->type.dims[d] != from->dims[d]) s->axis = d, taken++;
  if (taken != 1 || ir_at(g, slice)->type.dims[s->axis] != 1) return false;
  for (uint32_t d = 0, k = 0; d < from->rank; d++)
    if (d != s->axis && own->dims[k++] != from->dims[d]) return false;
  return (s->place = starts ? starts[s->axis] : 0) >= 0;
}

/* The operand that is a step, beside a constant; 2: neither is. */
static uint32_t step_side(const ir_graph *g, uint32_t node, step_of *s) {
  for (uint32_t side = 0; side < 2; side++)
    if (read_step(g, ir_arg(g, node, side), s) && ir_at(g, fusion_through_views(g, ir_arg(g, node, 1 - side)))->op == IR_OP_const)
      return side;
  return 2;
}

static bool same_labels(const ir_graph *g, uint32_t a, uint32_t b) {
  static const ir_attr_key keys[] = {IR_ATTR_lhs, IR_ATTR_rhs, IR_ATTR_out};
  for (uint32_t k = 0; k < IR_COUNT(keys); k++) {
    uint32_t counts[2];
    const ir_expr *lists[] = {ir_attr_ints(g, a, keys[k], &counts[0]), ir_attr_ints(g, b, keys[k], &counts[1])};
    if (counts[0] != counts[1] || memcmp(lists[0], lists[1], counts[0] * sizeof **lists) != 0) return false;
  }
  return true;
}

/* Do products take at least half of the steps? */
static bool takes_most(rebuild *r, const ir_uses *uses, uint32_t side, const step_of *s) {
  const ir_graph *g = r->from;
  const uint32_t constant = ir_arg(g, r->node, 1 - side);
  int64_t steps, found = 0;
  if (!expr_is_const(g->pool, ir_at(g, s->value)->type.dims[s->axis], &steps)) return false;
  for (uint32_t u = uses->first[constant]; u < uses->first[constant + 1]; u++) {
    const uint32_t user = uses->user[u];
    step_of other;
    if (ir_at(g, user)->op != IR_OP_contract || step_side(g, user, &other) != side || ir_arg(g, user, 1 - side) != constant) continue;
    found += other.value == s->value && other.axis == s->axis && same_labels(g, user, r->node);
  }
  return found >= LEAST_STEPS && 2 * found >= steps;
}

/* The product with all steps: a label more of the sequence, the first of the result. */
static uint32_t whole_product(rebuild *r, uint32_t side, const step_of *s) {
  static const ir_attr_key keys[] = {IR_ATTR_lhs, IR_ATTR_rhs, IR_ATTR_out};
  ir_expr lists[3][SNT_MAX_RANK + 1], label = 0;
  uint32_t counts[3];
  for (uint32_t k = 0; k < 3; k++) {
    const ir_expr *own = ir_attr_ints(r->from, r->node, keys[k], &counts[k]);
    memcpy(lists[k], own, counts[k] * sizeof *own);
    for (uint32_t i = 0; i < counts[k]; i++) label = own[i] >= label ? own[i] + 1 : label;
  }
  const uint32_t at[] = {side == 0 ? s->axis : UINT32_MAX, side == 1 ? s->axis : UINT32_MAX, 0};
  for (uint32_t k = 0; k < 3; k++) {
    if (at[k] == UINT32_MAX) continue;
    if (counts[k] >= SNT_MAX_RANK) return 0;
    memmove(lists[k] + at[k] + 1, lists[k] + at[k], (counts[k]++ - at[k]) * sizeof **lists);
    lists[k][at[k]] = label;
  }
  const ir_expr dtype = ir_at(r->from, r->node)->type.dtype;
  const ir_attr_value attrs[] = {{IR_ATTR_dtype, 1, &dtype},
                                 {IR_ATTR_lhs, counts[0], lists[0]},
                                 {IR_ATTR_out, counts[2], lists[2]},
                                 {IR_ATTR_rhs, counts[1], lists[1]}};
  uint32_t args[] = {r->args[0], r->args[1]};
  args[side] = r->map[s->value];
  const uint32_t made = ir_add_node(r->to, IR_OP_contract, 2, args, IR_COUNT(attrs), attrs, NULL);
  if (made) r->to->nodes.at[made].origin = ir_at(r->from, r->node)->origin;
  return made;
}

static bool is_of(const rebuild *r, uint32_t side, const step_of *s, uint32_t node) {
  step_of own;
  return node && step_side(r->from, node, &own) == side && own.value == s->value && own.axis == s->axis &&
         ir_arg(r->from, node, 1 - side) == ir_arg(r->from, r->node, 1 - side) && same_labels(r->from, node, r->node);
}

/* The product of all steps, made for the first of them; again where the graph has been begun anew since. */
static uint32_t find_product(rebuild *r, uint32_t side, const step_of *s, rewrite_step *kept) {
  for (rewrite_step *at = kept; at < kept + REWRITE_STEPS; at++) {
    if (at->of && !is_of(r, side, s, at->of)) continue;
    const bool there = at->of && at->product < r->to->nodes.count && ir_at(r->to, at->product)->op == IR_OP_contract &&
                       ir_arg(r->to, at->product, side) == r->map[s->value];
    if (!there) *at = (rewrite_step){r->node, whole_product(r, side, s)};
    return at->product;
  }
  return 0;
}

uint32_t rewrite_steps(rebuild *r, const ir_uses *uses, rewrite_step *kept) {
  step_of s;
  const ir_node *n = ir_at(r->from, r->node);
  if (n->op != IR_OP_contract || ir_attr_flag(r->from, r->node, IR_ATTR_packed) || fusion_keeps_order(r->c->options)) return 0;
  const uint32_t side = step_side(r->from, r->node, &s);
  const uint32_t product = side < 2 && uses && takes_most(r, uses, side, &s) ? find_product(r, side, &s, kept) : 0;
  if (!product) return 0;
  ir_tensor type = ir_at(r->to, product)->type;
  ir_expr starts[SNT_MAX_RANK] = {s.place};
  type.dims[0] = 1;
  const uint32_t step = rebuild_slice(r, product, type.rank, starts, type.dims, NULL);
  return step ? rebuild_reshape(r, step, n->type.rank, n->type.dims) : 0;
}
