/* Reductions and contractions in place: loops over the reduced axes that carry accumulators. With sweep.lanes > 1 the last reduced axis runs along
   vectors with several accumulators, then a horizontal reduction and a scalar tail; without, each lane of an open lane axis has its own sum. Several
   results of one node may share the loops, each with accumulators of its own: what they read alike is read once. */
#include "fusion/emit/reduce_private.h"

enum {
  MAX_ACCUMULATORS = 16,
  UNROLLED_TERMS = 96,
  UNROLLED_DEAR_TERMS = 16,
  UNROLLED_FUNCTIONS = 32,
  FUNCTION_TEXT = 4,
  UNROLLED_TEXT = 400,
  SHORT_LEVEL = 4
};

static void sweep_terms(emit *e, reduction *r, ir_expr base, uint32_t *acc) {
  for (uint32_t j = 0; j < r->accumulators; j++) {
    const ir_expr first = expr_add(e->x, expr_add(e->x, base, r->how->start), (ir_expr)j * r->lanes * r->items);
    const ir_expr at = r->items > 1 && !r->tail ? expr_add(e->x, first, expr_mul(e->x, r->item, r->lanes)) : first;
    r->at[r->count - 1] = r->lanes > 1 ? emit_lanes(e, at, r->lanes) : at;
    if (r->rows > 1) reduction_add_rows(e, r, r->accumulators, acc + j);
    else acc[j] = reduction_add(e, r, acc[j]);
    if (r->lanes > 1) emit_scalar_lanes(e);
  }
}

static void sweep_levels(emit *e, reduction *r, uint32_t level, ir_expr lo, ir_expr hi, uint32_t *acc);

/* The sums of an inner axis begin anew and are added to those of the outer one: each term meets few others (the mean of 25600 is off by 4e-8, else by 6e-6). */
static void sweep_below(emit *e, reduction *r, uint32_t level, ir_expr lo, ir_expr hi, uint32_t *acc) {
  if (reduction_op(e, r) != KIR_add || fusion_keeps_order(e->c->options)) {
    sweep_levels(e, r, level, lo, hi, acc);
    return;
  }
  uint32_t own[MAX_ACCUMULATORS];
  reduction below = *r;
  const uint32_t count = r->accumulators * r->rows, factor = level + 1 == r->count && r->lanes == 1 ? reduction_take_factor(e, &below) : 0;
  for (uint32_t j = 0; j < count; j++) own[j] = emit_no_sum(e, emit_value_type(e, acc[j]));
  sweep_levels(e, &below, level, lo, hi, own);
  below.at[level] = 0;
  for (uint32_t j = 0; j < count; j++)
    acc[j] = factor ? kir_3(e->k, KIR_fma, own[j], reduction_factor(e, &below, factor, j / r->accumulators), acc[j])
                    : reduction_combine(e, r, acc[j], own[j]);
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
    for (ir_expr k = 0; k < (ir_expr)literal; k += (ir_expr)r->accumulators) sweep_terms(e, r, k, acc);
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
  if (r->lanes > 1 && last) emit_fetch_ahead(e, first, r->rows, 0);
  else if (r->lanes == 1 && e->lanes > 1) emit_fetch_ahead(e, first, r->rows > 1 ? 1 : r->accumulators, emit_expr(e, v));
  emit_loop_end(e, v, r->accumulators * r->rows, carried, acc);
}

static uint32_t horizontal(emit *e, const reduction *r, uint32_t value) {
  static const kir_op across[] = {KIR_hred_add, KIR_hred_mul, KIR_hred_max, KIR_hred_min};
  const kir_op op = reduction_op(e, r);
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

void reduction_fit(const emit *e, reduction *r) {
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

/* Lanes that lie apart are read one by one, and those of a vector across a seam or a border. */
static uint32_t text_of_read(const emit *e, uint32_t node, const map_access *at) {
  int64_t apart;
  ir_expr rest;
  if (at->rank != ir_at(e->g, node)->type.rank) return 1; /* below what has no map */
  if (emit_conditions_use_lanes(e, at->condition_count, at->conditions)) return e->lanes;
  const ir_expr offset = fusion_plain_offset(e->c, node, at);
  if (!emit_uses_lanes(e, offset) || (expr_split_affine(e->x, offset, e->lane_var, &apart, &rest) && apart == 1)) return 1;
  return e->lanes;
}

/* How much is written for one term, in reads; a transcendental function is as long as four, for each part of a vector. Below views too, where the term lies at
   a place, or not: of the pieces that a view joins (a border reflected in two axes has nine) each has its own. What a stage holds is only read. */
static uint32_t text_of_term(const emit *e, uint32_t node, const map_access *at, uint32_t depth) {
  const ir_node *n = ir_at(e->g, node);
  const bool view = at && fusion_is_view(e->g, node);
  bool read = depth > 16 || !(view || fusion_group_has(e->group, node));
  for (uint32_t i = 0; i < e->stages.count && at; i++) read |= e->stages.at[i].node == node;
  if (read) return at && n->op != IR_OP_const && n->op != IR_OP_iota ? text_of_read(e, node, at) : 0;
  if (ir_ops[n->op].flags & IR_EXPENSIVE) return FUNCTION_TEXT * parts_of_vector(e);
  uint32_t count = 0;
  for (uint32_t i = 0; i < n->arity && count <= UNROLLED_TEXT; i++) {
    const uint32_t arg = ir_arg(e->g, node, i);
    map_access below;
    if (!at && !ir_same_shape(&ir_at(e->g, arg)->type, &n->type)) continue;
    if (view) below = *at, (void)ir_movement_access(e->g, node, i, &below);
    count += text_of_term(e, arg, view ? &below : at, depth + 1);
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
  if (r->how->stores && total > SHORT_LEVEL) return false;
  if (total <= UNROLLED_DEAR_TERMS && total * parts_of_vector(e) <= UNROLLED_FUNCTIONS) return true;
  /* Forty instructions a function, of which one driver takes minutes to make a kernel of 33 terms, or of 15 in four lanes that it has apart; another ends at
     379, and at 729 reads through borders. */
  if (total > UNROLLED_TERMS) return false;
  uint32_t text = 0;
  for (uint32_t i = 0; i < ir_at(e->g, r->node)->arity; i++) {
    const uint32_t operand = ir_arg(e->g, r->node, i);
    const map_access first = r->contract ? reduction_factor_at(e, r, i) : reduction_operand(e, r, 0);
    if (text_of_term(e, operand, NULL, 0)) return false;
    text += text_of_term(e, operand, &first, 0);
  }
  return total * text * e->copies <= UNROLLED_TEXT;
}

/* Into one accumulator after the other. */
static void write_out(emit *e, reduction *r, uint32_t level, uint32_t *acc) {
  for (ir_expr i = 0; i < r->extent[level]; i++) {
    r->at[level] = i;
    if (level + 1 < r->count) write_out(e, r, level + 1, acc);
    else acc[i % r->accumulators] = reduction_add(e, r, acc[i % r->accumulators]);
  }
}

/* One for each row is left, at the beginning. */
static void add_accumulators(emit *e, const reduction *r, uint32_t *acc) {
  for (uint32_t row = 0; row < r->rows; row++) {
    uint32_t *own = acc + row * r->accumulators;
    for (uint32_t n = r->accumulators; n > 1; n = (n + 1) / 2)
      for (uint32_t j = 0; j < n / 2; j++) own[j] = reduction_combine(e, r, own[j], own[j + (n + 1) / 2]);
    acc[row] = *own;
  }
}

/* The vector part, then the elements that do not fill a vector. */
static uint32_t sweep_in_order(emit *e, reduction *r) {
  const ir_expr extent = r->extent[r->count - 1], width = (ir_expr)r->lanes * r->accumulators * r->items;
  const ir_expr whole = expr_sub(e->x, extent, expr_mod(e->x, extent, width));
  uint32_t acc[MAX_ACCUMULATORS];
  for (uint32_t j = 0; j < r->accumulators; j++) acc[j] = reduction_identity(e, r, r->lanes > 1 ? r->lanes : e->lanes);
  sweep_levels(e, r, 0, 0, whole, acc);
  add_accumulators(e, r, acc);
  uint32_t total = r->lanes > 1 ? horizontal(e, r, acc[0]) : acc[0];
  const bool together = r->items > 1 && fusion_keeps_order(e->c->options); /* what is left over comes last, in every item */
  if (together) total = emit_group_combine(e, reduction_op(e, r), total, r->items);
  if (whole != extent) {
    reduction tail = *r;
    tail.lanes = tail.accumulators = 1;
    if (together) tail.items = 1;
    tail.unroll = 0;
    tail.tail = true;
    sweep_levels(e, &tail, 0, tail.items > 1 ? expr_add(e->x, whole, r->item) : whole, extent, &total);
  }
  return r->items > 1 && !together ? emit_group_combine(e, reduction_op(e, r), total, r->items) : total;
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
  uint32_t acc = reduction_identity(e, r, r->lanes);
  emit_cut_sweep(e, r->how, r->extent[r->count - 1], cuts);
  r->accumulators = 1;
  for (uint32_t i = 0; i + 1 < SWEEP_CUTS; i++) {
    r->edge = i != 1;
    if (cuts[i] < cuts[i + 1]) sweep_levels(e, r, 0, expr_int(e->x, cuts[i]), expr_int(e->x, cuts[i + 1]), &acc);
  }
  return emit_group_combine(e, reduction_op(e, r), horizontal(e, r, acc), r->items);
}

/* The lanes of a vector, put into one of fewer lanes: by halves. */
static uint32_t narrow(emit *e, const reduction *r, uint32_t value, uint32_t lanes) {
  if (lanes == 1) return horizontal(e, r, value);
  static const uint8_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  for (uint32_t half = r->lanes / 2; half >= lanes; half /= 2) {
    const uint32_t low = kir_shuffle(e->k, value, value, half, numbers), high = kir_shuffle(e->k, value, value, half, numbers + half);
    value = reduction_combine(e, r, low, high);
  }
  return value;
}

/* Vectors and several accumulators, then one, then vectors of a quarter, down to single elements: what is left of a row takes a few steps at
   each width, not one an element. (61 elements that were left of 1021 took as long as the rest of a softmax's row.) */
static void sweep_stairs(emit *e, reduction *r, uint32_t *results) {
  const ir_expr extent = r->extent[r->count - 1];
  uint32_t acc[MAX_ACCUMULATORS];
  ir_expr from = 0;
  for (uint32_t j = 0; j < r->accumulators * r->rows; j++) acc[j] = reduction_identity(e, r, r->lanes);
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
  if (!r.contract) r.of_numbers = emit_nan_shows(e, node);
  reduction_open_axes(e, &r);
  return r;
}

static uint32_t reduce_unrounded(emit *e, uint32_t node, const map_access *access, const sweep *s) {
  const ir_node *n = ir_at(e->g, node);
  reduction r = open_reduction(e, node, access, s);
  if (n->op == IR_OP_reduce_argmax || n->op == IR_OP_reduce_argmin) return reduction_index(e, &r);
  if (!r.count) { /* an empty contraction is a product; a reduction over no axis is its operand */
    uint32_t acc = reduction_identity(e, &r, e->lanes);
    return reduction_add(e, &r, acc);
  }
  if (s->start) return sweep_aligned(e, &r);
  const bool fixed = fusion_keeps_order(e->c->options);
  if (fixed) fix_tree(e, &r);
  else reduction_fit(e, &r);
  uint32_t acc[MAX_ACCUMULATORS];
  if (is_written_out(e, &r)) {
    for (uint32_t j = 0; j < r.accumulators; j++) acc[j] = reduction_identity(e, &r, e->lanes);
    write_out(e, &r, 0, acc);
    add_accumulators(e, &r, acc);
    return *acc;
  }
  if (!fixed && r.lanes > 1 && r.items == 1) {
    sweep_stairs(e, &r, acc);
    return *acc;
  }
  return sweep_in_order(e, &r);
}

uint32_t emit_reduce(emit *e, uint32_t node, const map_access *access, const sweep *s) {
  const uint32_t value = reduce_unrounded(e, node, access, s);
  return value ? emit_round_node(e, ir_at(e->g, node), value) : 0;
}

void emit_reduce_rows(emit *e, uint32_t node, uint32_t rows, const map_access *access, const sweep *s, uint32_t *values) {
  reduction r = open_reduction(e, node, access, s);
  r.rows = rows;
  if (r.accumulators * rows > MAX_ACCUMULATORS) r.accumulators = MAX_ACCUMULATORS / rows;
  reduction_fit(e, &r);
  for (uint32_t row = 0; e->lanes > 1 && row < rows; row++) values[row] = reduction_identity(e, &r, e->lanes);
  if (e->lanes > 1) sweep_levels(e, &r, 0, 0, r.extent[r.count - 1], values);
  else sweep_stairs(e, &r, values);
  for (uint32_t row = 0; row < rows; row++) values[row] = values[row] ? emit_round_node(e, ir_at(e->g, node), values[row]) : 0;
}
