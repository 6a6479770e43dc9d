/* Products of small integers summed in f32, which are exact while no sum leaves 24 bits, in whatever order: integers of 8 bits less their
   zero points. In: a contraction of integers in 32 bits. Out: one of the same numbers as f32, and a cast back. Where schedules lay
   constants out in panels or texels, those are f32, and a multiplication of integers is several of floats (profile: cycles.mul.int); matrix
   units for integers take them as they are. */
#include "fusion/rewrite_constants.h"
#include "fusion/schedule_common.h"
#include "fusion/shown.h"
#include "fusion/words.h"
#include <math.h>

enum { DEPTH = 6 };
static const double most_exact = 16777216; /* 2^24: IEEE 754 binary32 holds all integers up to it */

/* ---- how far a value reaches ---- */

typedef struct range {
  double low, high;
} range;

static range of_type(int32_t dtype) {
  const ir_dtype_info *t = &ir_dtypes[dtype];
  if (dtype == SNT_BOOL) return (range){0, 1};
  if (!t->is_int) return (range){-INFINITY, INFINITY};
  return t->is_signed ? (range){-ldexp(1, t->bits - 1), ldexp(1, t->bits - 1) - 1} : (range){0, ldexp(1, t->bits) - 1};
}

static bool is_within(range a, range b) { return a.low >= b.low && a.high <= b.high; }

/* What is added up may wrap: then all that the type holds. */
static range range_of(const ir_graph *g, uint32_t node, uint32_t depth) {
  const ir_node *n = ir_at(g, node);
  const range all = of_type(n->type.dtype);
  range r = all;
  double number;
  if (ir_is_scalar_const(g, node, &number)) return (range){number, number};
  if (!depth || !n->arity) return all;
  const range a = range_of(g, ir_arg(g, node, 0), depth - 1);
  if (n->op == IR_OP_cast) r = a;
  else if (fusion_only_moves(g, node)) r = (range){fmin(a.low, 0), fmax(a.high, 0)}; /* what pads */
  else if (n->op == IR_OP_add || n->op == IR_OP_sub) {
    const range b = range_of(g, ir_arg(g, node, 1), depth - 1);
    r = n->op == IR_OP_add ? (range){a.low + b.low, a.high + b.high} : (range){a.low - b.high, a.high - b.low};
  }
  return is_within(r, all) ? r : all;
}

static double magnitude(const ir_graph *g, uint32_t node) {
  const range r = range_of(g, node, DEPTH);
  return fmax(-r.low, r.high);
}

/* ---- the same value as f32 ---- */

static uint32_t as_float(rebuild *r, uint32_t node, uint32_t depth) {
  ir_graph *g = r->to;
  const ir_node n = *ir_at(g, node);
  double number;
  if (ir_is_scalar_const(g, node, &number)) {
    ir_const value = {.kind = IR_CONST_SPLAT};
    memcpy(&value.bits, &number, sizeof number);
    ir_tensor type = n.type;
    type.dtype = SNT_F32;
    return ir_add_const(g, &type, &value);
  }
  if (!depth || !n.arity || magnitude(g, node) > most_exact) return ir_add_cast(g, node, SNT_F32);
  const uint32_t a = ir_arg(g, node, 0);
  if (n.op == IR_OP_cast && is_within(range_of(g, a, DEPTH), of_type(n.type.dtype))) return as_float(r, a, depth - 1);
  if (n.op == IR_OP_add || n.op == IR_OP_sub) {
    const uint32_t b = ir_arg(g, node, 1);
    const range sum = range_of(g, node, DEPTH), all = of_type(n.type.dtype); /* all of it: it may have wrapped */
    if ((sum.low > all.low || sum.high < all.high) && fmax(magnitude(g, a), magnitude(g, b)) <= most_exact)
      return ir_add2(g, (ir_op)n.op, as_float(r, a, depth - 1), as_float(r, b, depth - 1));
  }
  if (!fusion_only_moves(g, node)) return ir_add_cast(g, node, SNT_F32);
  const uint32_t below = as_float(r, a, depth - 1);
  return ir_add_retyped(g, node, &below);
}

/* ---- the greatest sum ---- */

typedef struct product {
  const ir_expr *labels[2], *out;
  uint32_t rank[2], out_rank;
  double terms, results;
} product;

static bool read_product(const rebuild *r, product *p) {
  int64_t extent;
  p->labels[0] = ir_attr_ints(r->from, r->node, IR_ATTR_lhs, &p->rank[0]);
  p->labels[1] = ir_attr_ints(r->from, r->node, IR_ATTR_rhs, &p->rank[1]);
  p->out = ir_attr_ints(r->from, r->node, IR_ATTR_out, &p->out_rank);
  p->terms = 1;
  for (uint32_t d = 0; d < p->rank[0]; d++) {
    if (fusion_find_label(p->out, p->out_rank, p->labels[0][d]) >= 0) continue;
    if (!expr_is_const(r->to->pool, ir_at(r->to, r->args[0])->type.dims[d], &extent)) return false;
    p->terms *= (double)extent;
  }
  p->results = (double)schedule_hint(r->to->pool, ir_tensor_elements(r->to->pool, &ir_at(r->from, r->node)->type));
  return true;
}

/* What is saved by adding up floats, against the bytes that a constant has more of: those of one row are read once, and there is little to add up. */
static bool pays(const rebuild *r, const product *p, uint32_t constant) {
  const cost_profile *profile = r->c->options->profile;
  const ir_tensor *type = &ir_at(r->to, constant)->type;
  const double elements = (double)schedule_hint(r->to->pool, ir_tensor_elements(r->to->pool, type)), more = sizeof(float) - 1;
  const double cycles = cost_op_cycles(profile, IR_OP_mul, SNT_I32) - cost_op_cycles(profile, IR_OP_mul, SNT_F32);
  return p->results * p->terms * cycles / (profile->lanes * profile->units * profile->ghz) > elements * more / profile->dram_gbs;
}

static void add_magnitude(void *user, int64_t at, int64_t channel, float value) {
  (void)at;
  ((double *)user)[channel] += fabs((double)value);
}

/* The greatest sum of magnitudes of a constant, over the labels that the result has not; 0: it is none. */
static double most_of(rebuild *r, const product *p, uint32_t side, uint32_t node) {
  fusion_shown s;
  uint32_t channels = 0;
  int64_t count = 1;
  double most = 0;
  if (!fusion_show(r->to, node, &s) || !(s.data = ir_const_data(r->to, s.constant))) return 0;
  for (uint32_t d = 0; d < s.rank; d++)
    if (fusion_find_label(p->out, p->out_rank, p->labels[side][d]) >= 0) channels |= 1u << d, count *= s.extent[d];
  double *sums = IR_NEW_ARRAY(r->c->arena, double, (size_t)count);
  if (!sums) return 0;
  fusion_walk(&s, channels, add_magnitude, sums);
  for (int64_t i = 0; i < count; i++) most = fmax(most, sums[i]);
  return most;
}

/* ---- the pass ---- */

/* Bytes that the device multiplies by four (fusion/quantised.c). */
static bool has_instruction(const rebuild *r) {
  return words_pay(r->c, r->to, r->args[0]) && ir_at(r->to, r->args[0])->type.dtype == SNT_U8 &&
         ir_at(r->to, r->args[1])->type.dtype == SNT_I8 && ir_at(r->to, fusion_through_views(r->to, r->args[1]))->op == IR_OP_const;
}

static bool is_small(const ir_graph *g, uint32_t node) {
  return ir_dtypes[ir_at(g, node)->type.dtype].is_int && magnitude(g, node) < 65536;
}

static uint32_t summed_as_floats(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  product p;
  uint32_t args[2];
  if (n->type.dtype != SNT_I32 || !is_small(r->to, r->args[0]) || !is_small(r->to, r->args[1])) return 0;
  if (has_instruction(r) || !read_product(r, &p)) return 0;
  const double most[2] = {magnitude(r->to, r->args[0]), magnitude(r->to, r->args[1])};
  bool exact = p.terms * most[0] * most[1] <= most_exact;
  for (uint32_t side = 0; side < 2; side++) {
    args[side] = as_float(r, r->args[side], DEPTH);
    const uint32_t settled = rewrite_settle(r, args[side]);
    if (settled && !pays(r, &p, settled)) return 0;
    if (settled) args[side] = settled;
    const double sum = exact ? 0 : most_of(r, &p, side, args[side]);
    exact |= sum > 0 && sum * most[1 - side] <= most_exact;
  }
  if (!exact) return 0;
  const ir_attr_value lists[] = {
      {IR_ATTR_lhs, p.rank[0], p.labels[0]}, {IR_ATTR_out, p.out_rank, p.out}, {IR_ATTR_rhs, p.rank[1], p.labels[1]}};
  const uint32_t sums = ir_add_node(r->to, IR_OP_contract, 2, args, IR_COUNT(lists), lists, NULL);
  if (sums) r->to->nodes.at[sums].origin = n->origin;
  return ir_add_cast(r->to, sums, SNT_I32);
}

static const rebuild_rule rules[] = {{summed_as_floats, .ops = {IR_OP_contract}}};

snt_result fusion_sum_as_floats(fusion_context *c, bool *changed) {
  const cost_profile *p = c->options->profile;
  const double whole = cost_op_cycles(p, IR_OP_mul, SNT_I32), real = cost_op_cycles(p, IR_OP_mul, SNT_F32);
  if (whole <= real || (!schedule_is_explicit(c) && p->reads != COST_READS_TEXEL)) return SNT_OK;
  return fusion_rebuild(c, rules, IR_COUNT(rules), changed);
}
