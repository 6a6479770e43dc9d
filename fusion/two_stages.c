/* Long reductions with few results, so that all of the device takes part. In: a graph in its layout: the order of what is reduced is that
   in memory. Out: partial results of even parts, then a reduction of the parts; fused and unfused plans share the tree. */
#include "fusion/rebuild.h"
#include "fusion/schedule_common.h"
#include <stdlib.h>

enum { LONG_REDUCTION = 65536 };

/* The divisor of n nearest to `wanted` parts, 1 if none is useful. */
static int64_t pick_parts(int64_t n, int64_t wanted) {
  int64_t best = 1;
  for (int64_t p = 2; p <= 4 * wanted && p <= n / 1024; p++)
    if (n % p == 0 && llabs(p - wanted) < llabs(best - wanted)) best = p;
  return best * 4 < wanted ? 1 : best;
}

/* A long reduction with few results: partial results of even parts, then a reduction of the parts. */
static uint32_t in_two_stages(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  const ir_tensor *operand = &ir_at(r->to, r->args[0])->type;
  const cost_profile *p = r->c->options->profile;
  uint32_t count;
  const ir_expr *axes = ir_attr_ints(r->from, r->node, IR_ATTR_axes, &count);
  const uint32_t first = operand->rank - count;
  int64_t length = 1, results = 1;
  for (uint32_t i = 0; i < operand->rank; i++) {
    if (operand->dims[i] < 0) return 0;
    if (i < first) results *= operand->dims[i];
    else length *= operand->dims[i];
  }
  for (uint32_t i = 0; i < count; i++)
    if (axes[i] != (ir_expr)(first + i)) return 0;
  const int64_t wanted = (int64_t)(p->min_groups > p->units * 4 ? p->min_groups : p->units * 4);
  if (length < LONG_REDUCTION || results * 2 > wanted || first + 2 > SNT_MAX_RANK) return 0;
  const int64_t parts = pick_parts(length, wanted / results);
  if (parts == 1) return 0;
  ir_expr dims[SNT_MAX_RANK];
  for (uint32_t i = 0; i < first; i++) dims[i] = operand->dims[i];
  dims[first] = parts;
  dims[first + 1] = length / parts;
  const int64_t inner = first + 1, outer = first;
  const uint32_t split = rebuild_reshape(r, r->args[0], first + 2, dims);
  const uint32_t partial = ir_add_axes(r->to, (ir_op)n->op, split, 1, &inner, false);
  r->to->nodes.at[partial].origin = n->origin;
  const uint32_t whole = ir_add_axes(r->to, (ir_op)n->op, partial, 1, &outer, false);
  return rebuild_reshape(r, whole, n->type.rank, n->type.dims);
}

static const rebuild_rule rules[] = {{in_two_stages, .ops = {IR_OP_reduce_sum, IR_OP_reduce_prod, IR_OP_reduce_max, IR_OP_reduce_min}}};

snt_result fusion_reduce_in_stages(fusion_context *c, bool *changed) { return fusion_rebuild(c, rules, IR_COUNT(rules), changed); }
