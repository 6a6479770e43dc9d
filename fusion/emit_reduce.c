/* Reductions and contractions in place: loops over the reduced axes that carry accumulators. With sweep.lanes > 1 the last reduced axis runs along
   vectors with several accumulators, then a horizontal reduction and a scalar tail; without, each lane of an open lane axis has its own sum. Several
   results of one node may share the loops, each with accumulators of its own: what they read alike is read once. */
#include "fusion/emit_private.h"
#include <math.h>

enum {
  MAX_ACCUMULATORS = 16,
  UNROLLED_TERMS = 96,
  UNROLLED_DEAR_TERMS = 16,
  UNROLLED_FUNCTIONS = 32,
  FUNCTION_TEXT = 4,
  UNROLLED_TEXT = 400,
  SHORT_LEVEL = 4,
  MOST_SUMS = 64
};

typedef struct reduction {
  uint32_t node, term, count; /* reduced axes */
  ir_expr extent[SNT_MAX_RANK], at[SNT_MAX_RANK];
  uint32_t label[SNT_MAX_RANK]; /* reduce: operand axis; contract: label */
  const map_access *result;     /* the first of `rows` */
  uint32_t rows;
  bool contract, tail; /* tail: what does not fill a vector of every item; the loop starts at the item */
  bool edge;           /* some elements of a vector lie outside the axis */
  bool of_numbers;     /* an extremum that may leave NaNs out: emit_nan.c */
  uint32_t lanes, accumulators, unroll, items;
  ir_expr item;
  kir_type type; /* of one accumulator */
  const sweep *how;
} reduction;

kir_op emit_combine_op(ir_op op) {
  switch (op) {
  case IR_OP_reduce_prod: return KIR_mul;
  case IR_OP_reduce_max: return KIR_max;
  case IR_OP_reduce_min: return KIR_min;
  default: return KIR_add;
  }
}

static double lowest(int32_t dtype) {
  if (ir_dtypes[dtype].is_float) return -INFINITY;
  return ir_dtypes[dtype].is_signed ? -ldexp(1, ir_dtypes[dtype].bits - 1) : 0;
}
static double highest(int32_t dtype) {
  if (ir_dtypes[dtype].is_float) return INFINITY;
  return ldexp(1, ir_dtypes[dtype].bits - ir_dtypes[dtype].is_signed) - 1;
}

double emit_identity(ir_op op, int32_t dtype) {
  switch (op) {
  case IR_OP_reduce_prod: return 1;
  case IR_OP_reduce_max: return lowest(dtype);
  case IR_OP_reduce_min: return highest(dtype);
  default: return 0;
  }
}

static void open_contract(const emit *e, reduction *r) {
  uint32_t count[2], out_count;
  const ir_expr *labels[2] = {ir_attr_ints(e->g, r->node, IR_ATTR_lhs, &count[0]), ir_attr_ints(e->g, r->node, IR_ATTR_rhs, &count[1])};
  const ir_expr *out = ir_attr_ints(e->g, r->node, IR_ATTR_out, &out_count);
  for (uint32_t o = 0; o < 2; o++)
    for (uint32_t i = 0; i < count[o]; i++) {
      if (fusion_find_label(out, out_count, labels[o][i]) >= 0) continue;
      if (o == 1 && fusion_find_label(labels[0], count[0], labels[o][i]) >= 0) continue;
      r->label[r->count] = (uint32_t)labels[o][i];
      r->extent[r->count++] = ir_at(e->g, ir_arg(e->g, r->node, o))->type.dims[i];
    }
}

static void open_reduce(const emit *e, reduction *r) {
  uint32_t count;
  const ir_expr *axes = ir_attr_ints(e->g, r->node, IR_ATTR_axes, &count);
  const ir_tensor *from = &ir_at(e->g, ir_arg(e->g, r->node, 0))->type;
  for (uint32_t i = 0; i < from->rank; i++) {
    if (fusion_find_label(axes, count, i) < 0) continue;
    r->label[r->count] = i;
    r->extent[r->count++] = from->dims[i];
  }
}

/* Extents of 1 go first: the last level is the one that lanes and items share. */
static void put_units_first(reduction *r) {
  for (uint32_t i = 1; i < r->count; i++)
    for (uint32_t j = i; j > 0 && r->extent[j] == 1 && r->extent[j - 1] != 1; j--) {
      const ir_expr extent = r->extent[j - 1];
      const uint32_t label = r->label[j - 1];
      r->extent[j - 1] = r->extent[j], r->label[j - 1] = r->label[j];
      r->extent[j] = extent, r->label[j] = label;
    }
}

static ir_expr reduced_at(const reduction *r, uint32_t label, bool *found) {
  for (uint32_t i = 0; i < r->count; i++)
    if (r->label[i] == label) {
      *found = true;
      return r->at[i];
    }
  *found = false;
  return 0;
}

static map_access contract_operand(const emit *e, const reduction *r, uint32_t operand) {
  uint32_t count, out_count;
  const ir_expr *labels = ir_attr_ints(e->g, r->node, operand ? IR_ATTR_rhs : IR_ATTR_lhs, &count);
  const ir_expr *out = ir_attr_ints(e->g, r->node, IR_ATTR_out, &out_count);
  map_access a = *r->result;
  a.rank = count;
  for (uint32_t i = 0; i < count; i++) {
    bool reduced;
    a.at[i] = reduced_at(r, (uint32_t)labels[i], &reduced);
    for (uint32_t o = 0; o < out_count && !reduced; o++)
      if (out[o] == labels[i]) a.at[i] = r->result->at[o];
  }
  return a;
}

static map_access reduce_operand(const emit *e, const reduction *r, uint32_t row) {
  const map_access *result = r->result + row;
  const ir_tensor *from = &ir_at(e->g, ir_arg(e->g, r->node, 0))->type;
  const bool keep = ir_attr_flag(e->g, r->node, IR_ATTR_keep);
  map_access a = *result;
  a.rank = from->rank;
  for (uint32_t i = 0, kept = 0; i < from->rank; i++) {
    bool reduced;
    const ir_expr at = reduced_at(r, i, &reduced);
    a.at[i] = reduced ? at : result->at[keep ? i : kept];
    kept += !reduced;
  }
  return a;
}

/* Reproducible results round the product: not every device has a fused operation. */
uint32_t emit_multiply_add(emit *e, uint32_t contract, int32_t dtype, uint32_t x, uint32_t y, uint32_t acc) {
  if (ir_attr_flag(e->g, contract, IR_ATTR_packed)) return kir_3(e->k, KIR_dot4, x, y, acc);
  const bool fuses = ir_dtypes[dtype].is_float && e->c->options->numerics != SNT_NUMERICS_REPRODUCIBLE;
  return fuses ? kir_3(e->k, KIR_fma, x, y, acc) : kir_2(e->k, KIR_add, acc, kir_2(e->k, KIR_mul, x, y));
}

static kir_op combine_op(const emit *e, const reduction *r) {
  return r->contract ? KIR_add : emit_combine_op((ir_op)ir_at(e->g, r->node)->op);
}

/* The extremum of numbers: the term where either is NaN, which lets processors read it from memory in the one instruction. */
static uint32_t combine(emit *e, const reduction *r, uint32_t acc, uint32_t value) {
  const kir_op op = combine_op(e, r);
  if (!r->of_numbers) return kir_2(e->k, op, acc, value);
  return kir_3(e->k, KIR_select, kir_2(e->k, op == KIR_max ? KIR_gt : KIR_lt, acc, value), acc, value);
}

/* A sum of products takes the product unrounded, where modes may round differently. */
static uint32_t combine_term(emit *e, const reduction *r, uint32_t acc, uint32_t value) {
  const uint8_t mode = e->c->options->numerics;
  if (!value || e->k->failed) return 0;
  const kir_inst *in = kir_at(e->k, value);
  const bool fuses = combine_op(e, r) == KIR_add && in->op == KIR_mul && ir_dtypes[in->type.base].is_float &&
                     in->type.base == r->type.base && (mode == SNT_NUMERICS_DEFAULT || mode == SNT_NUMERICS_FAST);
  if (!fuses) return combine(e, r, acc, value);
  return kir_3(e->k, KIR_fma, kir_arg(e->k, value, 0), kir_arg(e->k, value, 1), acc);
}

/* Adds an operand that is a sum itself, or the product that one begins with. */
static void add_sum(const emit *e, uint32_t *sums, uint32_t *count, uint32_t node) {
  const ir_op op = (ir_op)ir_at(e->g, node)->op;
  if (*count == MOST_SUMS || (op != IR_OP_fma && op != IR_OP_add && op != IR_OP_mul) || !fusion_group_has(e->group, node)) return;
  if (!ir_same_shape(&ir_at(e->g, node)->type, &ir_at(e->g, *sums)->type)) return;
  sums[(*count)++] = node;
}

/* The sums that a term is written out as, in the order in which the graph has them. */
static uint32_t find_sums(const emit *e, const reduction *r, uint32_t *sums) {
  uint32_t count = 1;
  *sums = r->term;
  for (uint32_t i = 0; i < count; i++) {
    const ir_node *n = ir_at(e->g, sums[i]);
    if (n->op == IR_OP_fma) add_sum(e, sums, &count, ir_arg(e->g, sums[i], 2));
    for (uint32_t a = 0; (n->op == IR_OP_add || (n->op == IR_OP_mul && !i)) && a < 2; a++)
      add_sum(e, sums, &count, ir_arg(e->g, sums[i], a));
  }
  for (uint32_t i = 1; i < count; i++) /* by number: operands come first */
    for (uint32_t j = i; j > 0 && sums[j - 1] > sums[j]; j--) {
      const uint32_t other = sums[j];
      sums[j] = sums[j - 1], sums[j - 1] = other;
    }
  return count;
}

/* A product that is added to, again and again. */
static bool is_one_sum(const emit *e, const uint32_t *sums, uint32_t count) {
  for (uint32_t i = 1; i < count; i++)
    if (ir_at(e->g, sums[i])->op != IR_OP_fma || ir_arg(e->g, sums[i], 2) != sums[i - 1]) return false;
  return ir_at(e->g, *sums)->op == IR_OP_mul;
}

/* The next term of each row. Sums that it is written out as are computed in their order: several of them take turns there, so that neighbours do not wait for each
   other; going down one after the other would undo that, and compilers keep to the order of the text. Of rows side by side each sum is of all rows, which share
   what it is made of, and a single one goes on where the row's own stands. */
static void accumulate_rows(emit *e, const reduction *r, uint32_t step, uint32_t *acc) {
  enum { FEW = 4 };
  uint32_t sums[MOST_SUMS];
  const uint32_t count = e->lanes > 1 ? find_sums(e, r, sums) : (*sums = r->term, 1);
  const bool one = r->rows > 1 && r->lanes == 1 && count > FEW && combine_op(e, r) == KIR_add && is_one_sum(e, sums, count);
  for (uint32_t i = count > FEW ? 0 : count - 1; i < count; i++)
    for (uint32_t row = 0; row < r->rows; row++) {
      const map_access at = reduce_operand(e, r, row);
      if (one && !i) emit_remember(e, *sums, &at, combine_term(e, r, acc[row * step], emit_value(e, *sums, &at)));
      const uint32_t value = emit_value(e, sums[i], &at);
      if (i + 1 == count) acc[row * step] = one ? value : combine_term(e, r, acc[row * step], value);
    }
}

/* One more term into the accumulator. */
static uint32_t accumulate(emit *e, const reduction *r, uint32_t acc) {
  if (!r->contract) {
    const map_access a = reduce_operand(e, r, 0);
    const uint32_t last = r->count - 1;
    uint32_t next = acc;
    if (r->how->beside && e->lanes > 1) r->how->beside(e, r->how->user, &a);
    accumulate_rows(e, r, 1, &next);
    if (!r->edge) return next;
    return kir_3(e->k, KIR_select, emit_conditions(e, 1, &(map_condition){r->at[last], 0, r->extent[last]}), next, acc);
  }
  const map_access a = contract_operand(e, r, 0), b = contract_operand(e, r, 1);
  uint32_t x = emit_value(e, ir_arg(e->g, r->node, 0), &a), y = emit_value(e, ir_arg(e->g, r->node, 1), &b);
  if (!x || !y) return 0;
  const kir_type to = kir_t(r->type.base, emit_value_type(e, x).lanes), to_y = kir_t(r->type.base, emit_value_type(e, y).lanes);
  if (emit_value_type(e, x).base != to.base) x = kir_cast(e->k, to, x);
  if (emit_value_type(e, y).base != to.base) y = kir_cast(e->k, to_y, y);
  return emit_multiply_add(e, r->node, to.base, x, y, acc);
}

static void sweep_terms(emit *e, reduction *r, ir_expr base, uint32_t *acc) {
  for (uint32_t j = 0; j < r->accumulators; j++) {
    const ir_expr first = expr_add(e->x, expr_add(e->x, base, r->how->start), (ir_expr)j * r->lanes * r->items);
    const ir_expr at = r->items > 1 && !r->tail ? expr_add(e->x, first, expr_mul(e->x, r->item, r->lanes)) : first;
    r->at[r->count - 1] = r->lanes > 1 ? emit_lanes(e, at, r->lanes) : at;
    if (r->rows > 1) accumulate_rows(e, r, r->accumulators, acc + j);
    else acc[j] = accumulate(e, r, acc[j]);
    if (r->lanes > 1) emit_scalar_lanes(e);
  }
}

static void sweep_levels(emit *e, reduction *r, uint32_t level, ir_expr lo, ir_expr hi, uint32_t *acc);

/* Of rows side by side: what all terms of the last axis are multiplied with, which is multiplied with their sum; of those then the others are summed. 0: nothing. */
static uint32_t take_factor(const emit *e, reduction *r) {
  uint32_t count;
  if (r->rows < 2 || r->contract || ir_at(e->g, r->term)->op != IR_OP_mul) return 0;
  const uint32_t factor = ir_arg(e->g, r->term, 1);
  const ir_expr *axes = ir_attr_ints(e->g, factor, IR_ATTR_axes, &count);
  if (ir_at(e->g, factor)->op != IR_OP_broadcast || !axes || fusion_find_label(axes, count, r->label[r->count - 1]) >= 0) return 0;
  r->term = ir_arg(e->g, r->term, 0);
  return factor;
}

static uint32_t factor_of_row(emit *e, const reduction *r, uint32_t factor, uint32_t row) {
  const map_access at = reduce_operand(e, r, row);
  return emit_value(e, factor, &at);
}

/* The sums of an inner axis begin anew and are added to those of the outer one: each term meets few others (the mean of 25600 is off by 4e-8, else by 6e-6). */
static void sweep_below(emit *e, reduction *r, uint32_t level, ir_expr lo, ir_expr hi, uint32_t *acc) {
  if (combine_op(e, r) != KIR_add || fusion_keeps_order(e->c->options)) {
    sweep_levels(e, r, level, lo, hi, acc);
    return;
  }
  uint32_t own[MAX_ACCUMULATORS];
  reduction below = *r;
  const uint32_t count = r->accumulators * r->rows, factor = level + 1 == r->count && r->lanes == 1 ? take_factor(e, &below) : 0;
  for (uint32_t j = 0; j < count; j++) own[j] = emit_no_sum(e, emit_value_type(e, acc[j]));
  sweep_levels(e, &below, level, lo, hi, own);
  below.at[level] = 0;
  for (uint32_t j = 0; j < count; j++)
    acc[j] = factor ? kir_3(e->k, KIR_fma, own[j], factor_of_row(e, &below, factor, j / r->accumulators), acc[j])
                    : combine(e, r, acc[j], own[j]);
}

static void sweep_levels(emit *e, reduction *r, uint32_t level, ir_expr lo, ir_expr hi, uint32_t *acc) {
  const bool last = level + 1 == r->count;
  int64_t literal;
  const bool shared = last && (r->items > 1 || lo != 0 || hi != r->extent[level]);
  if (!shared && expr_is_const(e->x, r->extent[level], &literal) && literal == 1) {
    r->at[level] = 0;
    if (last) sweep_terms(e, r, 0, acc);
    else sweep_levels(e, r, level + 1, lo, hi, acc);
    return;
  }
  if (!shared && last && e->lanes > 1 && expr_is_const(e->x, r->extent[level], &literal) && literal * r->rows <= SHORT_LEVEL) {
    for (ir_expr k = 0; k < (ir_expr)literal; k++) sweep_terms(e, r, k, acc);
    return;
  }
  uint32_t carried[MAX_ACCUMULATORS];
  emit_loop_info info = {.name = "k",
                         .lo = last ? lo : 0,
                         .hi = last ? hi : r->extent[level],
                         .step = 1,
                         .carry_count = r->accumulators * r->rows,
                         .initial = acc,
                         .carried = carried};
  if (last) info.step = (int64_t)r->lanes * r->accumulators * r->items, info.unroll = r->unroll, info.whole = !r->tail;
  const ir_expr v = emit_loop(e, &info);
  r->at[level] = v;
  const uint32_t first = e->k->insts.count;
  if (last) sweep_terms(e, r, v, carried);
  else sweep_below(e, r, level + 1, lo, hi, carried);
  if (last && r->lanes > 1) emit_fetch_ahead(e, first, r->rows);
  emit_loop_end(e, v, r->accumulators * r->rows, carried, acc);
}

/* An identity as a constant: the highest 64-bit integers are no doubles. */
static uint32_t extreme_value(emit *e, kir_type type, double x) {
  if (ir_dtypes[type.base].is_float) return kir_const_float(e->k, type, x);
  if (type.base == SNT_U64 && x > 1) return kir_const_int(e->k, type, -1);
  return kir_const_int(e->k, type, x >= 9.2e18 ? INT64_MAX : (int64_t)x);
}

/* Where the sign of a zero counts, -0 is what changes no sum. */
uint32_t emit_no_sum(emit *e, kir_type type) {
  if (!ir_dtypes[type.base].is_float) return kir_const_int(e->k, type, 0);
  return kir_const_float(e->k, type, fusion_keeps_order(e->c->options) ? -0.0 : 0);
}

static uint32_t identity_value(emit *e, const reduction *r, uint32_t lanes) {
  const kir_type type = kir_t(r->type.base, lanes);
  if (combine_op(e, r) == KIR_add) return emit_no_sum(e, type);
  return extreme_value(e, type, emit_identity((ir_op)ir_at(e->g, r->node)->op, r->type.base));
}

static uint32_t horizontal(emit *e, const reduction *r, uint32_t value) {
  static const kir_op across[] = {KIR_hred_add, KIR_hred_mul, KIR_hred_max, KIR_hred_min};
  const kir_op op = combine_op(e, r);
  return kir_1(e->k, across[op == KIR_mul ? 1 : op == KIR_max ? 2 : op == KIR_min ? 3 : 0], value);
}

/* The tree of reproducible sums, which the extent alone decides: TREE partial sums along a long last axis, added by halves, then what is left over
   in order; the terms of contractions and short axes one after another. Vectors, accumulators and items that share a row only share out the partial sums. */
static bool is_tree(const emit *e, const reduction *r) {
  enum { TREE_FROM = 16 };
  int64_t extent;
  return !r->contract && (!expr_is_const(e->x, r->extent[r->count - 1], &extent) || extent >= TREE_FROM);
}

static void fix_tree(const emit *e, reduction *r) {
  enum { TREE = 8 };
  if (!is_tree(e, r)) {
    r->lanes = r->accumulators = r->items = 1;
    return;
  }
  if (r->items > 1) { /* TREE / items partial sums each */
    r->lanes = 1;
    r->accumulators = TREE / r->items;
    return;
  }
  if (r->lanes > TREE) r->lanes = TREE;
  r->accumulators = TREE / r->lanes;
}

static void fit_sweep(const emit *e, reduction *r) {
  int64_t extent;
  const ir_expr last = r->extent[r->count - 1];
  if (expr_is_const(e->x, last, &extent)) {
    while (r->accumulators > 1 && (int64_t)r->lanes * r->accumulators * r->items > extent) r->accumulators /= 2;
    while (r->lanes > 1 && (int64_t)r->lanes * r->items > extent) r->lanes /= 2;
  }
}

/* How many times a vector is written where the target has narrower ones. */
static uint32_t parts_of_vector(const emit *e) {
  const uint32_t most = e->c->options->profile->caps.max_lanes;
  return (e->lanes + most - 1) / (most ? most : 1);
}

/* How much is written for one term, in reads; a transcendental function is as long as four, for each part of a vector. Below views too or not: of the pieces that a view joins (a border
   reflected in two axes has nine) each has its own. What a stage holds is only read. */
static uint32_t text_of_term(const emit *e, uint32_t node, bool below_views, uint32_t depth) {
  const ir_node *n = ir_at(e->g, node);
  const bool view = below_views && fusion_is_view(e->g, node);
  bool read = depth > 16 || !(view || fusion_group_has(e->group, node));
  for (uint32_t i = 0; i < e->stages.count && below_views; i++) read |= e->stages.at[i].node == node;
  if (read) return below_views && n->op != IR_OP_const && n->op != IR_OP_iota;
  if (ir_ops[n->op].flags & IR_EXPENSIVE) return FUNCTION_TEXT * parts_of_vector(e);
  uint32_t count = 0;
  for (uint32_t i = 0; i < n->arity && count <= UNROLLED_TEXT; i++) {
    const uint32_t arg = ir_arg(e->g, node, i);
    if (!below_views && !ir_same_shape(&ir_at(e->g, arg)->type, &n->type)) continue;
    const uint32_t below = text_of_term(e, arg, below_views, depth + 1);
    count = view ? count + below : below > count ? below : count;
  }
  return count;
}

/* Few terms, known in number: written out with literal coordinates, so that taps and weights become literals and shared loads are one. */
static bool is_written_out(const emit *e, const reduction *r) {
  int64_t total = 1, extent;
  const bool fixed = fusion_keeps_order(e->c->options);
  if (r->lanes > 1 || r->items > 1 || (fixed && is_tree(e, r))) return false;
  for (uint32_t i = 0; i < r->count; i++) {
    if (!expr_is_const(e->x, r->extent[i], &extent) || extent > UNROLLED_TERMS) return false;
    total *= extent;
  }
  if (total <= UNROLLED_DEAR_TERMS && total * parts_of_vector(e) <= UNROLLED_FUNCTIONS) return true;
  /* Forty instructions a function, of which one driver takes minutes to make a kernel of 33 terms, or of 15 in four lanes that it has apart; another ends at
     379, and at 729 reads through borders. */
  if (total > UNROLLED_TERMS) return false;
  uint32_t text = 0;
  for (uint32_t i = 0; i < ir_at(e->g, r->node)->arity; i++) {
    const uint32_t operand = ir_arg(e->g, r->node, i);
    if (text_of_term(e, operand, false, 0)) return false;
    text += text_of_term(e, operand, true, 0);
  }
  return total * text <= UNROLLED_TEXT;
}

static void write_out(emit *e, reduction *r, uint32_t level, uint32_t *acc) {
  if (level == r->count) {
    *acc = accumulate(e, r, *acc);
    return;
  }
  for (ir_expr i = 0; i < r->extent[level]; i++) {
    r->at[level] = i;
    write_out(e, r, level + 1, acc);
  }
}

/* One for each row is left, at the beginning. */
static void add_accumulators(emit *e, const reduction *r, uint32_t *acc) {
  for (uint32_t row = 0; row < r->rows; row++) {
    uint32_t *own = acc + row * r->accumulators;
    for (uint32_t n = r->accumulators; n > 1; n = (n + 1) / 2)
      for (uint32_t j = 0; j < n / 2; j++) own[j] = combine(e, r, own[j], own[j + (n + 1) / 2]);
    acc[row] = *own;
  }
}

/* The vector part, then the elements that do not fill a vector. */
static uint32_t sweep_in_order(emit *e, reduction *r) {
  const ir_expr extent = r->extent[r->count - 1], width = (ir_expr)r->lanes * r->accumulators * r->items;
  const ir_expr whole = expr_sub(e->x, extent, expr_mod(e->x, extent, width));
  uint32_t acc[MAX_ACCUMULATORS];
  for (uint32_t j = 0; j < r->accumulators; j++) acc[j] = identity_value(e, r, r->lanes > 1 ? r->lanes : e->lanes);
  sweep_levels(e, r, 0, 0, whole, acc);
  add_accumulators(e, r, acc);
  uint32_t total = r->lanes > 1 ? horizontal(e, r, acc[0]) : acc[0];
  const bool together = r->items > 1 && fusion_keeps_order(e->c->options); /* what is left over comes last, in every item */
  if (together) total = emit_group_combine(e, combine_op(e, r), total, r->items);
  if (whole != extent) {
    reduction tail = *r;
    tail.lanes = tail.accumulators = 1;
    if (together) tail.items = 1;
    tail.unroll = 0;
    tail.tail = true;
    sweep_levels(e, &tail, 0, tail.items > 1 ? expr_add(e->x, whole, r->item) : whole, extent, &total);
  }
  return r->items > 1 && !together ? emit_group_combine(e, combine_op(e, r), total, r->items) : total;
}

void emit_cut_sweep(const emit *e, const sweep *how, ir_expr extent, int64_t *cuts) {
  const int64_t width = (int64_t)how->lanes * how->items;
  int64_t columns = 0, low, high;
  (void)expr_is_const(e->x, extent, &columns);
  expr_bounds(e->x, how->start, &low, &high);
  cuts[0] = 0, cuts[1] = width;
  cuts[2] = (columns - high) / width * width;
  cuts[3] = (columns - low + width - 1) / width * width;
}

static uint32_t sweep_aligned(emit *e, reduction *r) {
  int64_t cuts[SWEEP_CUTS];
  uint32_t acc = identity_value(e, r, r->lanes);
  emit_cut_sweep(e, r->how, r->extent[r->count - 1], cuts);
  r->accumulators = 1;
  for (uint32_t i = 0; i + 1 < SWEEP_CUTS; i++) {
    r->edge = i != 1;
    if (cuts[i] < cuts[i + 1]) sweep_levels(e, r, 0, expr_int(e->x, cuts[i]), expr_int(e->x, cuts[i + 1]), &acc);
  }
  return emit_group_combine(e, combine_op(e, r), horizontal(e, r, acc), r->items);
}

/* The lanes of a vector, put into one of fewer lanes: by halves. */
static uint32_t narrow(emit *e, const reduction *r, uint32_t value, uint32_t lanes) {
  if (lanes == 1) return horizontal(e, r, value);
  static const uint8_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  for (uint32_t half = r->lanes / 2; half >= lanes; half /= 2) {
    const uint32_t low = kir_shuffle(e->k, value, value, half, numbers), high = kir_shuffle(e->k, value, value, half, numbers + half);
    value = combine(e, r, low, high);
  }
  return value;
}

/* Vectors and several accumulators, then one, then vectors of a quarter, down to single elements: what is left of a row takes a few steps at
   each width, not one an element. (61 elements that were left of 1021 took as long as the rest of a softmax's row.) */
static void sweep_stairs(emit *e, reduction *r, uint32_t *results) {
  const ir_expr extent = r->extent[r->count - 1];
  uint32_t acc[MAX_ACCUMULATORS];
  ir_expr from = 0;
  for (uint32_t j = 0; j < r->accumulators * r->rows; j++) acc[j] = identity_value(e, r, r->lanes);
  for (;;) {
    const ir_expr whole = expr_sub(e->x, extent, expr_mod(e->x, extent, (ir_expr)r->lanes * r->accumulators));
    if (whole != from) sweep_levels(e, r, 0, from, whole, acc);
    add_accumulators(e, r, acc);
    const uint32_t lanes = r->accumulators > 1 ? r->lanes : r->lanes > 4 ? r->lanes / 4 : 1;
    if (whole == extent) break;
    for (uint32_t row = 0; row < r->rows && lanes < r->lanes; row++) acc[row] = narrow(e, r, acc[row], lanes);
    r->lanes = lanes;
    r->accumulators = 1;
    r->unroll = 0;
    from = whole;
  }
  for (uint32_t row = 0; row < r->rows; row++) results[row] = r->lanes > 1 ? horizontal(e, r, acc[row]) : acc[row];
}

/* ---- argmax and argmin: the first of equals; a NaN wins over every number ---- */

typedef struct extremum {
  uint32_t value, index; /* u32 */
} extremum;

static bool is_argmax(const emit *e, const reduction *r) { return ir_at(e->g, r->node)->op == IR_OP_reduce_argmax; }

/* Both NaN, or equal. */
static uint32_t is_as_good(emit *e, const reduction *r, uint32_t value, uint32_t best) {
  const uint32_t equal = kir_2(e->k, KIR_eq, value, best);
  if (!ir_dtypes[r->type.base].is_float) return equal;
  return kir_2(e->k, KIR_or, equal, kir_2(e->k, KIR_and, kir_1(e->k, KIR_isnan, value), kir_1(e->k, KIR_isnan, best)));
}

static uint32_t is_better(emit *e, const reduction *r, uint32_t value, uint32_t best) {
  const uint32_t better = kir_2(e->k, is_argmax(e, r) ? KIR_gt : KIR_lt, value, best);
  if (!ir_dtypes[r->type.base].is_float) return better;
  return kir_2(e->k, KIR_or, better,
               kir_2(e->k, KIR_and, kir_1(e->k, KIR_isnan, value), kir_1(e->k, KIR_not, kir_1(e->k, KIR_isnan, best))));
}

/* Terms from lo to hi, in vectors where the reduction has lanes: each lane keeps its own. */
static extremum sweep_extremum(emit *e, reduction *r, ir_expr lo, ir_expr hi, extremum start) {
  const uint32_t initial[2] = {start.value, start.index};
  uint32_t carried[2], result[2];
  const int64_t step = (int64_t)r->lanes * r->items;
  const emit_loop_info info = {
      .name = "k", .lo = lo, .hi = hi, .step = step, .whole = !r->tail, .carry_count = 2, .initial = initial, .carried = carried};
  const ir_expr v = emit_loop(e, &info), at = r->items > 1 && !r->tail ? expr_add(e->x, v, expr_mul(e->x, r->item, r->lanes)) : v;
  r->at[0] = r->lanes > 1 ? emit_lanes(e, at, r->lanes) : at;
  const map_access a = reduce_operand(e, r, 0);
  const uint32_t value = emit_value(e, ir_arg(e->g, r->node, 0), &a), better = is_better(e, r, value, carried[0]);
  const uint32_t next[2] = {kir_3(e->k, KIR_select, better, value, carried[0]),
                            kir_3(e->k, KIR_select, better, emit_any_expr(e, r->at[0]), carried[1])};
  if (r->lanes > 1) emit_scalar_lanes(e);
  emit_loop_end(e, v, 2, next, result);
  return (extremum){result[0], result[1]};
}

static extremum nothing_yet(emit *e, const reduction *r, uint32_t lanes) {
  const double worst = is_argmax(e, r) ? lowest(r->type.base) : highest(r->type.base);
  return (extremum){extreme_value(e, kir_t(r->type.base, lanes), worst), kir_const_int(e->k, kir_t(SNT_U32, lanes), 0)};
}

/* The index where a value is the best one; behind all of them where it is not. */
static uint32_t index_of(emit *e, const reduction *r, extremum own, uint32_t best, uint32_t lanes) {
  return kir_3(e->k, KIR_select, is_as_good(e, r, own.value, best), own.index, kir_const_int(e->k, kir_t(SNT_U32, lanes), -1));
}

/* Of the lanes of a vector: the first of those that have the best. */
static extremum across_lanes(emit *e, const reduction *r, extremum own) {
  const uint32_t best = kir_1(e->k, is_argmax(e, r) ? KIR_hred_max : KIR_hred_min, own.value);
  return (extremum){best, kir_1(e->k, KIR_hred_min, index_of(e, r, own, kir_splat(e->k, best, r->lanes), r->lanes))};
}

static extremum across_items(emit *e, const reduction *r, extremum own) {
  const uint32_t best = emit_group_combine(e, is_argmax(e, r) ? KIR_max : KIR_min, own.value, r->items);
  return (extremum){best, emit_group_combine(e, KIR_min, index_of(e, r, own, best, 1), r->items)};
}

/* Rows in lanes, or rows that lanes and items share. */
static uint32_t sweep_index(emit *e, reduction *r) {
  const ir_expr extent = r->extent[0];
  const uint32_t lanes = e->lanes;
  r->type = emit_compute_type(e, ir_at(e->g, ir_arg(e->g, r->node, 0))->type.dtype, 1);
  fit_sweep(e, r);
  const ir_expr whole = expr_sub(e->x, extent, expr_mod(e->x, extent, (ir_expr)r->lanes * r->items));
  extremum best = sweep_extremum(e, r, 0, whole, nothing_yet(e, r, r->lanes > 1 ? r->lanes : lanes));
  if (r->lanes > 1) best = across_lanes(e, r, best);
  if (extent != whole) {
    reduction tail = *r;
    tail.lanes = 1, tail.tail = true;
    best = sweep_extremum(e, &tail, tail.items > 1 ? expr_add(e->x, whole, r->item) : whole, extent, best);
  }
  if (r->items > 1) best = across_items(e, r, best);
  return kir_cast(e->k, kir_t(SNT_I64, lanes), best.index);
}

static reduction open_reduction(emit *e, uint32_t node, const map_access *access, const sweep *s) {
  const ir_node *n = ir_at(e->g, node);
  reduction r = {.node = node,
                 .term = ir_arg(e->g, node, 0),
                 .result = access,
                 .rows = 1,
                 .how = s,
                 .contract = n->op == IR_OP_contract,
                 .lanes = e->lanes > 1 ? 1 : s->lanes,
                 .unroll = s->unroll,
                 .items = s->items > 1 ? s->items : 1,
                 .item = s->item};
  r.accumulators = s->accumulators < 1 ? 1 : s->accumulators > MAX_ACCUMULATORS ? MAX_ACCUMULATORS : s->accumulators;
  r.type = emit_compute_type(e, n->type.dtype, 1);
  if (r.contract) open_contract(e, &r);
  else open_reduce(e, &r), r.of_numbers = emit_nan_shows(e, node);
  put_units_first(&r);
  return r;
}

static uint32_t reduce_unrounded(emit *e, uint32_t node, const map_access *access, const sweep *s) {
  const ir_node *n = ir_at(e->g, node);
  reduction r = open_reduction(e, node, access, s);
  if (n->op == IR_OP_reduce_argmax || n->op == IR_OP_reduce_argmin) return sweep_index(e, &r);
  if (e->lanes > 1) r.accumulators = 1;
  if (!r.count) { /* an empty contraction is a product; a reduction over no axis is its operand */
    uint32_t acc = identity_value(e, &r, e->lanes);
    return accumulate(e, &r, acc);
  }
  if (s->start) return sweep_aligned(e, &r);
  const bool fixed = fusion_keeps_order(e->c->options);
  if (fixed) fix_tree(e, &r);
  else fit_sweep(e, &r);
  uint32_t acc = identity_value(e, &r, e->lanes);
  if (is_written_out(e, &r)) {
    write_out(e, &r, 0, &acc);
    return acc;
  }
  if (!fixed && r.lanes > 1 && r.items == 1) {
    sweep_stairs(e, &r, &acc);
    return acc;
  }
  if (e->lanes == 1 || fixed) return sweep_in_order(e, &r);
  sweep_levels(e, &r, 0, 0, r.extent[r.count - 1], &acc);
  return acc;
}

uint32_t emit_reduce(emit *e, uint32_t node, const map_access *access, const sweep *s) {
  const uint32_t value = reduce_unrounded(e, node, access, s);
  return value ? emit_round_node(e, ir_at(e->g, node), value) : 0;
}

void emit_reduce_rows(emit *e, uint32_t node, uint32_t rows, const map_access *access, const sweep *s, uint32_t *values) {
  reduction r = open_reduction(e, node, access, s);
  r.rows = rows;
  if (r.accumulators * rows > MAX_ACCUMULATORS) r.accumulators = MAX_ACCUMULATORS / rows;
  fit_sweep(e, &r);
  for (uint32_t row = 0; e->lanes > 1 && row < rows; row++) values[row] = identity_value(e, &r, e->lanes);
  if (e->lanes > 1) sweep_levels(e, &r, 0, 0, r.extent[r.count - 1], values);
  else sweep_stairs(e, &r, values);
  for (uint32_t row = 0; row < rows; row++) values[row] = values[row] ? emit_round_node(e, ir_at(e->g, node), values[row]) : 0;
}
