/* One term of a reduction: its axes and where its operands lie, what it is combined with, and sums that stand side by side. In: a reduction
   whose `at` says which term. Out: the accumulators with that term in them. */
#include "fusion/emit/reduce_private.h"
#include <math.h>

enum { MOST_SUMS = 64 };

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

void reduction_open_axes(const emit *e, reduction *r) {
  if (r->contract) open_contract(e, r);
  else open_reduce(e, r);
  put_units_first(r);
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

map_access reduction_factor_at(const emit *e, const reduction *r, uint32_t operand) {
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

map_access reduction_operand(const emit *e, const reduction *r, uint32_t row) {
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

kir_op reduction_op(const emit *e, const reduction *r) { return r->contract ? KIR_add : emit_combine_op((ir_op)ir_at(e->g, r->node)->op); }

/* The extremum of numbers: the term where either is NaN, which lets processors read it from memory in the one instruction. */
uint32_t reduction_combine(emit *e, const reduction *r, uint32_t acc, uint32_t value) {
  const kir_op op = reduction_op(e, r);
  if (!r->of_numbers) return kir_2(e->k, op, acc, value);
  return kir_3(e->k, KIR_select, kir_2(e->k, op == KIR_max ? KIR_gt : KIR_lt, acc, value), acc, value);
}

/* A sum of products takes the product unrounded, where modes may round differently. */
static uint32_t combine_term(emit *e, const reduction *r, uint32_t acc, uint32_t value) {
  const uint8_t mode = e->c->options->numerics;
  if (!value || e->k->failed) return 0;
  const kir_inst *in = kir_at(e->k, value);
  const bool fuses = reduction_op(e, r) == KIR_add && in->op == KIR_mul && ir_dtypes[in->type.base].is_float &&
                     in->type.base == r->type.base && (mode == SNT_NUMERICS_DEFAULT || mode == SNT_NUMERICS_FAST);
  if (!fuses) return reduction_combine(e, r, acc, value);
  return kir_3(e->k, KIR_fma, kir_arg(e->k, value, 0), kir_arg(e->k, value, 1), acc);
}

static bool is_of_words(const emit *e, uint32_t node) {
  return ir_at(e->g, node)->op == IR_OP_cast && ir_at(e->g, ir_arg(e->g, node, 0))->op == IR_OP_dot4;
}

/* Adds an operand that is a sum itself, of products of bytes below a cast, or the product that one begins with. */
static void add_sum(const emit *e, uint32_t *sums, uint32_t *count, uint32_t node) {
  if (is_of_words(e, node)) node = ir_arg(e->g, node, 0);
  const ir_op op = (ir_op)ir_at(e->g, node)->op;
  const bool sums_up = op == IR_OP_fma || op == IR_OP_dot4 || op == IR_OP_add || op == IR_OP_mul;
  if (*count == MOST_SUMS || !sums_up || !fusion_group_has(e->group, node)) return;
  if (!ir_same_shape(&ir_at(e->g, node)->type, &ir_at(e->g, *sums)->type)) return;
  sums[(*count)++] = node;
}

/* The sums that a term is written out as, in the order in which the graph has them. */
static uint32_t find_sums(const emit *e, const reduction *r, uint32_t *sums) {
  uint32_t count = 1;
  *sums = r->term;
  for (uint32_t i = 0; i < count; i++) {
    const ir_node *n = ir_at(e->g, sums[i]);
    const bool adds = n->op == IR_OP_add || (n->op == IR_OP_mul && !i), goes_on = n->op == IR_OP_fma || n->op == IR_OP_dot4;
    for (uint32_t a = 0; a < n->arity; a++) {
      const uint32_t operand = ir_arg(e->g, sums[i], a);
      if (a < 2 ? adds || is_of_words(e, operand) : goes_on) add_sum(e, sums, &count, operand);
    }
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

/* The next term of each row. Sums that it is written out as are computed in their order: several of them take turns there, so that
   neighbours do not wait for each other; going down one after the other would undo that, and compilers keep to the order of the text. Of
   rows side by side each sum is of all rows, which share what it is made of, and a single one goes on where the row's own stands. */
void reduction_add_rows(emit *e, const reduction *r, uint32_t step, uint32_t *acc) {
  enum { FEW = 4 };
  uint32_t sums[MOST_SUMS];
  const uint32_t count = e->lanes > 1 ? find_sums(e, r, sums) : (*sums = r->term, 1);
  const bool one = r->rows > 1 && r->lanes == 1 && count > FEW && reduction_op(e, r) == KIR_add && is_one_sum(e, sums, count);
  for (uint32_t row = 0; r->how->beside && row < r->rows; row++) {
    const map_access at = reduction_operand(e, r, row);
    r->how->beside(e, r->how->user, &at, r->edge);
  }
  for (uint32_t i = count > FEW ? 0 : count - 1; i < count; i++)
    for (uint32_t row = 0; row < r->rows; row++) {
      const map_access at = reduction_operand(e, r, row);
      if (one && !i) emit_remember(e, *sums, &at, combine_term(e, r, acc[row * step], emit_value(e, *sums, &at)));
      const uint32_t value = emit_value(e, sums[i], &at);
      if (i + 1 == count) acc[row * step] = one ? value : combine_term(e, r, acc[row * step], value);
    }
}

/* One more term into the accumulator. */
uint32_t reduction_add(emit *e, const reduction *r, uint32_t acc) {
  if (!r->contract) {
    const uint32_t last = r->count - 1;
    uint32_t next = acc;
    reduction_add_rows(e, r, 1, &next);
    if (!r->edge) return next;
    return kir_3(e->k, KIR_select, emit_conditions(e, 1, &(map_condition){r->at[last], 0, r->extent[last]}), next, acc);
  }
  const map_access a = reduction_factor_at(e, r, 0), b = reduction_factor_at(e, r, 1);
  uint32_t x = emit_value(e, ir_arg(e->g, r->node, 0), &a), y = emit_value(e, ir_arg(e->g, r->node, 1), &b);
  if (!x || !y) return 0;
  const kir_type to = kir_t(r->type.base, emit_value_type(e, x).lanes), to_y = kir_t(r->type.base, emit_value_type(e, y).lanes);
  if (emit_value_type(e, x).base != to.base) x = kir_cast(e->k, to, x);
  if (emit_value_type(e, y).base != to.base) y = kir_cast(e->k, to_y, y);
  return emit_multiply_add(e, r->node, to.base, x, y, acc);
}

/* Of rows side by side: what all terms of the last axis are multiplied with, which is multiplied with their sum; of those then the others
   are summed. 0: nothing. */
uint32_t reduction_take_factor(const emit *e, reduction *r) {
  uint32_t count;
  if (r->rows < 2 || r->contract || ir_at(e->g, r->term)->op != IR_OP_mul) return 0;
  const uint32_t factor = ir_arg(e->g, r->term, 1);
  const ir_expr *axes = ir_attr_ints(e->g, factor, IR_ATTR_axes, &count);
  if (ir_at(e->g, factor)->op != IR_OP_broadcast || !axes || fusion_find_label(axes, count, r->label[r->count - 1]) >= 0) return 0;
  r->term = ir_arg(e->g, r->term, 0);
  return factor;
}

uint32_t reduction_factor(emit *e, const reduction *r, uint32_t factor, uint32_t row) {
  const map_access at = reduction_operand(e, r, row);
  return emit_value(e, factor, &at);
}

/* An identity as a constant: the highest 64-bit integers are no doubles. */
uint32_t reduction_extreme(emit *e, kir_type type, double x) {
  if (ir_dtypes[type.base].is_float) return kir_const_float(e->k, type, x);
  if (type.base == SNT_U64 && x > 1) return kir_const_int(e->k, type, -1);
  return kir_const_int(e->k, type, x >= 9.2e18 ? INT64_MAX : (int64_t)x);
}

/* Where the sign of a zero counts, -0 is what changes no sum. */
uint32_t emit_no_sum(emit *e, kir_type type) {
  if (!ir_dtypes[type.base].is_float) return kir_const_int(e->k, type, 0);
  return kir_const_float(e->k, type, fusion_keeps_order(e->c->options) ? -0.0 : 0);
}

uint32_t reduction_identity(emit *e, const reduction *r, uint32_t lanes) {
  const kir_type type = kir_t(r->type.base, lanes);
  if (reduction_op(e, r) == KIR_add) return emit_no_sum(e, type);
  return reduction_extreme(e, type, emit_identity((ir_op)ir_at(e->g, r->node)->op, r->type.base));
}
