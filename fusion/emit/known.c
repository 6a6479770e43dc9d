/* What the graph proves of a value, and the cheaper operations that it allows in the numerics that may round differently:
   the exponent of a softmax is never positive, its divisor, a sum of which one term is e^0, is no denormal and no infinity, and a constant
   divisor has a reciprocal. Products with reciprocals are within 1.5 ULP, and 2.5 are promised of divisions. */
#include "fusion/emit_private.h"
#include <float.h>
#include <math.h>

static bool same_axes(const ir_graph *g, uint32_t a, uint32_t b) {
  uint32_t count[2];
  const ir_expr *axes[2] = {ir_attr_ints(g, a, IR_ATTR_axes, &count[0]), ir_attr_ints(g, b, IR_ATTR_axes, &count[1])};
  return count[0] == count[1] && (count[0] == 0 || !memcmp(axes[0], axes[1], count[0] * sizeof *axes[0]));
}

/* `node` is x - max(x), each row without its own maximum: the node of that, else 0. */
static uint32_t maximum_taken_off(const emit *e, uint32_t node) {
  const ir_graph *g = e->g;
  if (ir_at(g, node)->op != IR_OP_sub) return 0;
  const uint32_t top = fusion_through_moves(g, ir_arg(g, node, 1));
  if (ir_at(g, top)->op != IR_OP_reduce_max || ir_arg(g, top, 0) != ir_arg(g, node, 0)) return 0;
  return emit_reads_own_row(e, ir_arg(g, node, 1), top) ? top : 0;
}

/* `node`, seen through views, is a sum of e^(x - max(x)) over the axes of that maximum: at least 1. */
static bool is_softmax_sum(const emit *e, uint32_t node) {
  const ir_graph *g = e->g;
  const uint32_t sum = fusion_through_moves(g, node);
  if (ir_at(g, sum)->op != IR_OP_reduce_sum) return false;
  const uint32_t term = ir_arg(g, sum, 0);
  if (ir_at(g, term)->op != IR_OP_exp) return false;
  const uint32_t top = maximum_taken_off(e, ir_arg(g, term, 0));
  return top && same_axes(g, sum, top);
}

/* The divisor is a constant whose reciprocal is a normal number. */
static bool has_reciprocal(const ir_graph *g, uint32_t node, float *reciprocal) {
  double value;
  if (!ir_is_scalar_const(g, fusion_through_moves(g, node), &value) || !(fabs(value) <= FLT_MAX) || value == 0) return false;
  *reciprocal = (float)(1 / value);
  return fabsf(*reciprocal) >= FLT_MIN && fabsf(*reciprocal) <= FLT_MAX;
}

static bool may_round_differently(const emit *e, uint32_t node) {
  const uint8_t mode = e->c->options->numerics;
  return ir_at(e->g, node)->type.dtype == SNT_F32 && (mode == SNT_NUMERICS_DEFAULT || mode == SNT_NUMERICS_FAST);
}

uint32_t emit_of_negative(kir_kernel *k, uint32_t value, float ulp) {
  if (k->failed || !value) return value;
  kir_inst *in = kir_at(k, value);
  if (in->op != KIR_exp && in->op != KIR_exp2) return value;
  in->flags |= KIR_HAS_DOM;
  in->dom_lo = -INFINITY;
  in->dom_hi = 0;
  in->ulp = ulp; /* results below 2^-126 may be 0 */
  return value;
}

uint32_t emit_known_pointwise(emit *e, uint32_t node, const uint32_t *args) {
  const ir_op op = (ir_op)ir_at(e->g, node)->op;
  if (!may_round_differently(e, node)) return 0;
  if (op == IR_OP_exp && maximum_taken_off(e, ir_arg(e->g, node, 0)))
    return emit_of_negative(e->k, kir_1(e->k, KIR_exp, args[0]), ir_ops[op].max_ulp);
  float reciprocal;
  if (op == IR_OP_div && has_reciprocal(e->g, ir_arg(e->g, node, 1), &reciprocal))
    return kir_2(e->k, KIR_mul, args[0], kir_const_like(e->k, args[0], (double)reciprocal));
  if (op != IR_OP_div || !is_softmax_sum(e, ir_arg(e->g, node, 1)) || emit_value_type(e, args[1]).lanes > 1) return 0;
  return kir_2(e->k, KIR_mul, args[0], kir_2(e->k, KIR_div, kir_const_like(e->k, args[1], 1), args[1])); /* one division a row */
}
