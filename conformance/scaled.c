/* Larger numbers: where a result is of degree d in the inputs (twice the inputs give 2^d times the result), inputs times a power of two give its bits with
   another exponent, as no rounding depends on it. The degree of every value follows from the operators, a column of a table; where it does not, or
   where a device may round in its own way (division, roots), the relation does not apply. It sees whatever has a size of its own: starting values,
   fills, thresholds, numbers that are flushed. */
#include "conformance/relations.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Degrees beyond these are not followed: numbers must stay normal. */
enum { SCALE = 5, MOST = 4, ANY = 100 /* zeros, infinities */, NONE = 101 /* not that of one degree */ };

typedef enum {
  DEGREE_NONE_OR_0, /* of anything of degree 0: degree 0 */
  DEGREE_SAME,      /* all operands have one degree, which is the result's */
  DEGREE_COMPARED,  /* all operands have one degree, the result has none */
  DEGREE_LOST,      /* of any degree, the result has none */
  DEGREE_SUM,       /* products: of the first two; a third must have that */
  DEGREE_FILLED,    /* as the operand, but what is filled in must be of any degree */
  DEGREE_INDEXED,   /* as operands 0 and 2; operand 1 says where */
  DEGREE_CHOSEN     /* as operands 1 and 2; operand 0 says which */
} degree_rule;

static const uint8_t rules[IR_OP_COUNT] = {
    [IR_OP_neg] = DEGREE_SAME,
    [IR_OP_abs] = DEGREE_SAME,
    [IR_OP_add] = DEGREE_SAME,
    [IR_OP_sub] = DEGREE_SAME,
    [IR_OP_min] = DEGREE_SAME,
    [IR_OP_max] = DEGREE_SAME,
    [IR_OP_cast] = DEGREE_SAME,
    [IR_OP_reduce_sum] = DEGREE_SAME,
    [IR_OP_reduce_max] = DEGREE_SAME,
    [IR_OP_reduce_min] = DEGREE_SAME,
    [IR_OP_scan_sum] = DEGREE_SAME,
    [IR_OP_scan_max] = DEGREE_SAME,
    [IR_OP_scan_min] = DEGREE_SAME,
    [IR_OP_reshape] = DEGREE_SAME,
    [IR_OP_transpose] = DEGREE_SAME,
    [IR_OP_broadcast] = DEGREE_SAME,
    [IR_OP_slice] = DEGREE_SAME,
    [IR_OP_concat] = DEGREE_SAME,
    [IR_OP_eq] = DEGREE_COMPARED,
    [IR_OP_ne] = DEGREE_COMPARED,
    [IR_OP_lt] = DEGREE_COMPARED,
    [IR_OP_le] = DEGREE_COMPARED,
    [IR_OP_gt] = DEGREE_COMPARED,
    [IR_OP_ge] = DEGREE_COMPARED,
    [IR_OP_reduce_argmax] = DEGREE_LOST,
    [IR_OP_reduce_argmin] = DEGREE_LOST,
    [IR_OP_argsort] = DEGREE_LOST,
    [IR_OP_sign] = DEGREE_LOST,
    [IR_OP_isnan] = DEGREE_LOST,
    [IR_OP_isinf] = DEGREE_LOST,
    [IR_OP_mul] = DEGREE_SUM,
    [IR_OP_fma] = DEGREE_SUM,
    [IR_OP_contract] = DEGREE_SUM,
    [IR_OP_pad] = DEGREE_FILLED,
    [IR_OP_window] = DEGREE_FILLED,
    [IR_OP_gather] = DEGREE_INDEXED,
    [IR_OP_scatter_set] = DEGREE_INDEXED,
    [IR_OP_scatter_add] = DEGREE_INDEXED,
    [IR_OP_scatter_min] = DEGREE_INDEXED,
    [IR_OP_scatter_max] = DEGREE_INDEXED,
    [IR_OP_select] = DEGREE_CHOSEN,
};

static int join(int a, int b) { return a == ANY ? b : b == ANY || a == b ? a : NONE; }
static bool has_no_size(double value) { return value == 0 || isinf(value); }

/* Types whose exponents leave room; numbers cast to others have a degree only if it is 0. */
static bool is_wide(uint8_t dtype) { return dtype == SNT_F32 || dtype == SNT_BF16 || dtype == SNT_F64; }

static int degree_of_operands(const ir_graph *g, const int8_t *degrees, uint32_t node, uint32_t first, uint32_t step) {
  int degree = ANY;
  for (uint32_t i = first; i < ir_at(g, node)->arity; i += step) degree = join(degree, degrees[ir_arg(g, node, i)]);
  return degree;
}

static bool is_free(int degree) { return degree == 0 || degree == ANY; }

static int degree_of_product(const ir_graph *g, const int8_t *degrees, uint32_t node) {
  const int a = degrees[ir_arg(g, node, 0)], b = degrees[ir_arg(g, node, 1)];
  const int product = a == NONE || b == NONE ? NONE : a == ANY || b == ANY ? ANY : a + b;
  return ir_at(g, node)->arity > 2 ? join(product, degrees[ir_arg(g, node, 2)]) : product;
}

static int degree_of_node(const ir_graph *g, const int8_t *degrees, uint32_t node) {
  const ir_node *n = ir_at(g, node);
  double value;
  if (n->op == IR_OP_const) return ir_is_scalar_const(g, node, &value) && has_no_size(value) ? ANY : 0;
  const int all = degree_of_operands(g, degrees, node, 0, 1);
  switch (rules[n->op]) {
  case DEGREE_SAME: return all;
  case DEGREE_COMPARED: return all == NONE ? NONE : 0;
  case DEGREE_LOST: return all == NONE ? NONE : 0;
  case DEGREE_SUM: return degree_of_product(g, degrees, node);
  case DEGREE_FILLED: return is_free(all) || has_no_size(ir_attr_scalar(g, node, IR_ATTR_value)) ? all : NONE;
  case DEGREE_INDEXED: return is_free(degrees[ir_arg(g, node, 1)]) ? degree_of_operands(g, degrees, node, 0, 2) : NONE;
  case DEGREE_CHOSEN: return is_free(degrees[ir_arg(g, node, 0)]) ? degree_of_operands(g, degrees, node, 1, 1) : NONE;
  default: return is_free(all) ? 0 : NONE;
  }
}

/* Degrees of all outputs if the inputs in `scaled` (a bit each) have degree 1 and the others 0; false: one has none, or all have 0. */
static bool find_degrees(const ir_graph *g, int8_t *degrees, uint32_t scaled, int8_t *of_outputs) {
  for (uint32_t n = 1; n < g->nodes.count; n++) {
    int degree = degree_of_node(g, degrees, n);
    for (uint32_t i = 0; i < g->inputs.count; i++)
      if (g->inputs.at[i].node == n) degree = (int)(scaled >> i & 1);
    const bool followed = is_free(degree) || (degree != NONE && is_wide(ir_at(g, n)->type.dtype) && abs(degree) <= MOST);
    degrees[n] = (int8_t)(followed ? degree : NONE);
  }
  bool any = false;
  for (uint32_t o = 0; o < g->outputs.count; o++) {
    of_outputs[o] = degrees[g->outputs.at[o].node];
    if (of_outputs[o] == NONE) return false;
    any |= !is_free(of_outputs[o]);
  }
  return any;
}

/* The inputs to scale: all of floats, or else the first one that will do alone. 0: none. */
static uint32_t choose_inputs(const ir_graph *g, int8_t *degrees, int8_t *of_outputs) {
  uint32_t floats = 0;
  for (uint32_t i = 0; i < g->inputs.count && i < MAX_PORTS; i++)
    floats |= (uint32_t)is_wide(ir_at(g, g->inputs.at[i].node)->type.dtype) << i;
  if (!floats || g->regions.count > 1) return 0;
  if (find_degrees(g, degrees, floats, of_outputs)) return floats;
  for (uint32_t i = 0; i < MAX_PORTS; i++)
    if ((floats >> i & 1) && find_degrees(g, degrees, 1u << i, of_outputs)) return 1u << i;
  return 0;
}

static bool prepare_scaled(const relation_case *c, related runs[RELATED_RUNS]) {
  conform_parsed p;
  uint32_t scaled = 0;
  if (conform_parse(&p, c->graph->text, NULL) == SNT_OK) {
    int8_t *degrees = ir_arena_take(&p.arena, p.graph.nodes.count, 1);
    if (degrees) scaled = choose_inputs(&p.graph, degrees, runs->degree);
  }
  conform_forget(&p);
  if (!scaled || !relation_copy_inputs(c, runs)) return false;
  for (uint32_t i = 0; i < runs->ports.count; i++) {
    const port *at = &runs->ports.at[i];
    const int32_t dtype = at->info.tensor.dtype;
    for (uint64_t e = 0; (scaled >> i & 1) && e < at->elements; e++)
      ir_dtype_store(dtype, at->data, e, ldexp(ir_dtype_load(dtype, at->data, e), SCALE));
  }
  return true;
}

/* Numbers that stay far from both ends of f32's exponents on the way. */
static bool is_ordinary(double x) { return x == 0 || (fabs(x) > 0x1p-90 && fabs(x) < 0x1p90); }

static bool scale_holds(const relation_case *c, const related runs[RELATED_RUNS], const ports *const got[RELATED_RUNS],
                        const relation_at *at) {
  const port *p = &c->all->at[at->port], *scaled = &got[0]->at[at->port];
  const int8_t degree = runs->degree[at->output];
  const int32_t dtype = p->info.tensor.dtype;
  const uint32_t size = ir_dtypes[dtype].bytes;
  if (!ir_dtypes[dtype].is_float)
    return !memcmp((const uint8_t *)p->data + at->element * size, (const uint8_t *)scaled->data + at->element * size, size);
  const double x = ir_dtype_load(dtype, p->data, at->element), y = ir_dtype_load(dtype, scaled->data, at->element);
  if (x == 0 && !is_ordinary(y)) return true; /* a zero may be what was below all numbers, and is one when it is larger */
  return !is_ordinary(x) || y == ldexp(x, is_free(degree) ? 0 : degree * SCALE);
}

const relation conform_relation_scaled = {"other bits, beside the exponent, where the inputs are 32 times as large", 1, prepare_scaled,
                                          scale_holds};
