/* Gates of a recurrent cell. In: in the body of a loop, one product with a constant for all gates, of which each reader takes as many columns.
   Out: a product a gate. All are of one shape, so one kernel makes them and the new state of the same columns (contract/set.c). Where a kernel
   has few bindings it stays one product: each gate's columns are one more. */
#include "fusion/contract_set.h"
#include "fusion/rewrite/gates.h"
#include "fusion/schedule_common.h"

enum { OTHER_BINDINGS = 12 }; /* two states and their new values, results, and what the gates are made of beside the product */

/* The one axis of which the slice takes a part, without gaps, all of the others; -1: none. */
static int32_t axis_of_part(const ir_graph *g, uint32_t slice) {
  const ir_tensor *part = &ir_at(g, slice)->type, *all = &ir_at(g, ir_arg(g, slice, 0))->type;
  const ir_expr *steps = ir_attr_ints(g, slice, IR_ATTR_steps, NULL);
  int32_t axis = -1;
  for (uint32_t i = 0; i < part->rank; i++) {
    if (part->dims[i] == all->dims[i]) continue;
    if (axis >= 0 || (steps && steps[i] != 1)) return -1;
    axis = (int32_t)i;
  }
  return axis;
}

/* Do slices of one size read all columns, and nothing else any of them? */
static bool is_read_in_parts(const ir_graph *g, const ir_uses *uses, uint32_t product, uint32_t slice, uint32_t axis) {
  const uint32_t first = uses->first[product], count = uses->first[product + 1] - first;
  const ir_tensor *part = &ir_at(g, slice)->type;
  if (uses->is_output[product] || count > CONTRACT_SET_MAX) return false;
  for (uint32_t i = 0; i < count; i++)
    if (ir_at(g, uses->user[first + i])->op != IR_OP_slice || !ir_same_shape(&ir_at(g, uses->user[first + i])->type, part)) return false;
  return expr_mul(g->pool, count, part->dims[axis]) == ir_at(g, product)->type.dims[axis];
}

uint32_t rewrite_gate(rebuild *r, const ir_uses *uses) {
  const ir_graph *g = r->from;
  const uint32_t product = ir_arg(g, r->node, 0), bindings = r->c->options->profile->max_bindings;
  if (!uses || ir_at(g, product)->op != IR_OP_contract || !schedule_is_explicit(r->c)) return 0;
  if (bindings && bindings < OTHER_BINDINGS + CONTRACT_SET_MAX) return 0;
  const uint32_t matrix = ir_arg(g, product, 1);
  const int32_t axis = axis_of_part(g, r->node);
  uint32_t count;
  const ir_expr *out = ir_attr_ints(g, product, IR_ATTR_out, &count), *labels = ir_attr_ints(g, product, IR_ATTR_rhs, &count);
  const int32_t at = axis < 0 ? -1 : fusion_find_label(labels, count, out[axis]);
  if (at < 0 || ir_at(g, fusion_through_views(g, matrix))->op != IR_OP_const) return 0;
  if (!is_read_in_parts(g, uses, product, r->node, (uint32_t)axis)) return 0;
  ir_expr starts[SNT_MAX_RANK] = {0}, sizes[SNT_MAX_RANK];
  memcpy(sizes, ir_at(g, matrix)->type.dims, count * sizeof *sizes);
  starts[at] = ir_attr_ints(g, r->node, IR_ATTR_starts, NULL)[axis];
  sizes[at] = ir_at(g, r->node)->type.dims[axis];
  const uint32_t args[] = {r->map[ir_arg(g, product, 0)], rebuild_slice(r, r->map[matrix], count, starts, sizes, NULL)};
  const uint32_t slice = r->node;
  r->node = product;
  const uint32_t made = args[1] ? rebuild_with(r, 2, args, 0, NULL) : 0;
  r->node = slice;
  return made;
}
