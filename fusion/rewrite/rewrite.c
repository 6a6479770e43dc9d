/* Algorithm choices as rewrites in primitives, priced on the profile; each may reassociate and is part of the graph from then on, so that fused and
   unfused plans share the same tree. Rules: the list at the end. */
#include "fusion/rewrite_constants.h"
#include "fusion/rewrite/gates.h"
#include "fusion/rewrite/parts.h"
#include "fusion/rewrite/steps.h"
#include "fusion/rewrite/tap_order.h"
#include "fusion/rewrite/taps.h"
#include "fusion/rewrite/weights.h"
#include "fusion/rewrite/words.h"
#include "fusion/schedule_common.h"

/* An extreme over a window of several axes: axis by axis, where that is half of the elements or less (25 of 5 x 5 are 10, 169 of 13 x 13 are 26). */
static uint32_t axis_by_axis(rebuild *r) {
  static const uint8_t keys[] = {IR_ATTR_size, IR_ATTR_stride, IR_ATTR_dilation, IR_ATTR_low, IR_ATTR_high};
  const ir_node *n = ir_at(r->from, r->node);
  if (ir_at(r->to, r->args[0])->op != IR_OP_window) return 0;
  if (!schedule_is_explicit(r->c) || fusion_keeps_order(r->c->options)) return 0;
  const uint32_t window = r->args[0], rank = ir_at(r->to, window)->type.rank;
  uint32_t count, taken, unused;
  int64_t size, all = 1, sum = 0;
  const ir_expr *axes = ir_attr_ints(r->from, r->node, IR_ATTR_axes, &count), *lists[IR_COUNT(keys)];
  for (uint32_t k = 0; k < IR_COUNT(keys); k++) lists[k] = ir_attr_ints(r->to, window, (ir_attr_key)keys[k], &taken);
  const ir_expr *fill = ir_attr_ints(r->to, window, IR_ATTR_value, &unused);
  if (count < 2 || count != taken || !fill) return 0;
  for (uint32_t i = 0; i < count; i++) {
    if (axes[i] != (ir_expr)(rank - count + i) || !expr_is_const(r->to->pool, lists[0][i], &size)) return 0;
    all *= size, sum += size;
  }
  if (all < 2 * sum) return 0;
  const ir_expr first = ir_attr_int(r->to, window, IR_ATTR_axis, 0), value = *fill;
  ir_expr part[IR_COUNT(keys)][SNT_MAX_RANK]; /* adding nodes may move the lists */
  for (uint32_t k = 0; k < IR_COUNT(keys); k++) memcpy(part[k], lists[k], count * sizeof part[k][0]);
  uint32_t made = ir_arg(r->to, window, 0);
  for (uint32_t i = count; i-- > 0;) {
    const ir_expr axis = first + i;
    const int64_t taps = rank - count;
    ir_attr_value attrs[IR_COUNT(keys) + 2] = {{IR_ATTR_axis, 1, &axis}, {IR_ATTR_value, 1, &value}};
    for (uint32_t k = 0; k < IR_COUNT(keys); k++) attrs[2 + k] = (ir_attr_value){keys[k], 1, &part[k][i]};
    made = rebuild_view(r, IR_OP_window, made, IR_COUNT(attrs), attrs);
    made = ir_add_axes(r->to, (ir_op)n->op, made, 1, &taps, false);
    r->to->nodes.at[made].origin = n->origin;
  }
  return rebuild_reshape(r, made, n->type.rank, n->type.dims);
}

/* ---- a matrix times a vector ---- */

typedef struct matrix_vector {
  uint32_t matrix;                /* which operand; the other one is the vector */
  const ir_expr *labels[2], *out; /* of the matrix, of the vector; of the result */
  uint32_t rank[2], out_rank;
  int64_t axes[SNT_MAX_RANK]; /* of the matrix, that are summed */
  uint32_t axis_count;
} matrix_vector;

static bool read_product(const rebuild *r, uint32_t matrix, matrix_vector *m) {
  const ir_attr_key keys[2] = {IR_ATTR_lhs, IR_ATTR_rhs};
  *m = (matrix_vector){.matrix = matrix};
  m->labels[0] = ir_attr_ints(r->from, r->node, keys[matrix], &m->rank[0]);
  m->labels[1] = ir_attr_ints(r->from, r->node, keys[1 - matrix], &m->rank[1]);
  m->out = ir_attr_ints(r->from, r->node, IR_ATTR_out, &m->out_rank);
  for (uint32_t i = 0; i < m->rank[0]; i++)
    if (fusion_find_label(m->out, m->out_rank, m->labels[0][i]) < 0) m->axes[m->axis_count++] = i;
  return m->axis_count && m->axes[m->axis_count - 1] == (int64_t)m->rank[0] - 1 && m->rank[0] > m->axis_count;
}

/* The longer labels of `list` occur in `within`, in its order. */
static bool follows(const ir_expr *list, const ir_expr *dims, uint32_t count, const ir_expr *within, uint32_t within_count) {
  int32_t last = -1;
  for (uint32_t i = 0; i < count; i++) {
    const int32_t at = fusion_find_label(within, within_count, list[i]);
    if (at < 0 && dims[i] == 1) continue;
    if (at <= last) return false;
    last = at;
  }
  return true;
}

/* Each row of the matrix has one result, and nothing but sums are over labels of the vector. */
static bool has_one_column(const rebuild *r, const matrix_vector *m) {
  const ir_tensor *t = &ir_at(r->from, r->node)->type, *v = &ir_at(r->to, r->args[1 - m->matrix])->type;
  for (uint32_t i = 0; i < m->rank[1]; i++)
    if (v->dims[i] != 1 && fusion_find_label(m->out, m->out_rank, m->labels[1][i]) >= 0)
      return false; /* a batch may be attention's heads */
  return follows(m->out, t->dims, m->out_rank, m->labels[0], m->rank[0]) &&
         follows(m->labels[1], v->dims, m->rank[1], m->labels[0], m->rank[0]);
}

/* Whether neighbouring terms of a row lie beside each other: a matrix that is turned has its columns there, as a contraction's vectors want it. */
static bool rows_lie_along(const ir_graph *g, uint32_t node) {
  uint32_t behind = 0, count; /* axes behind that of the terms */
  for (const ir_node *n = ir_at(g, node); n->op == IR_OP_transpose || n->op == IR_OP_reshape || n->op == IR_OP_slice; n = ir_at(g, node)) {
    const ir_expr *perm = ir_attr_ints(g, node, IR_ATTR_perm, &count);
    node = ir_arg(g, node, 0);
    const ir_tensor *t = &ir_at(g, node)->type;
    const uint32_t last = n->type.rank - 1;
    if (n->op == IR_OP_transpose) behind = last - (uint32_t)perm[last - behind];
    for (uint32_t i = 0; n->op == IR_OP_reshape && behind && i <= behind; i++)
      if (t->rank <= behind || t->dims[t->rank - 1 - i] != n->type.dims[last - i]) return true;
  }
  return behind == 0;
}

/* Constants that the schedules lay out in panels stream as well as rows do. */
static bool is_packed(const rebuild *r, uint32_t node) {
  const cost_profile *p = r->c->options->profile;
  return ir_at(r->to, fusion_through_views(r->to, node))->op == IR_OP_const && (schedule_is_explicit(r->c) || p->reads == COST_READS_TEXEL);
}

/* Scores, of which the extreme is taken, are attention's, with one query: that is found as contractions. So is what has more readers than `steps`. */
static bool is_score(const ir_graph *g, const ir_uses *uses, uint32_t node, uint32_t depth, uint32_t *steps) {
  for (uint32_t u = uses->first[node]; u < uses->first[node + 1]; u++) {
    const ir_node *n = ir_at(g, uses->user[u]);
    if (n->op == IR_OP_reduce_max || !*steps) return true;
    --*steps;
    const bool passes = (ir_ops[n->op].flags & IR_POINTWISE) || fusion_is_view(g, uses->user[u]);
    if (passes && depth < 6 && is_score(g, uses, uses->user[u], depth + 1, steps)) return true;
  }
  return false;
}

typedef struct rewriting { /* of one run of the pass */
  ir_uses uses;
  rewrite_step steps[REWRITE_STEPS];
} rewriting;

/* The readers of the graph, counted when the first product of this kind asks. */
static const ir_uses *find_uses(rebuild *r) {
  ir_uses *uses = &((rewriting *)r->user)->uses;
  return uses->first || ir_find_uses(r->from, r->c->arena, uses) ? uses : NULL;
}

static bool may_be_score(rebuild *r) {
  const ir_uses *uses = find_uses(r);
  uint32_t steps = 256;
  return !uses || is_score(r->from, uses, r->node, 0, &steps);
}

/* Few weights of fewer bytes that several products take (layers that are one) would be widened by each, or by the first for all, in every
   run: as the operands of contractions they are f32 in panels, made once (rewrite/weights.c). */
static bool is_shared(rebuild *r, uint32_t matrix) {
  enum { MOST = 262144 };
  const uint32_t node = ir_arg(r->from, r->node, matrix);
  const ir_uses *uses = find_uses(r);
  int64_t elements;
  uint32_t products = 0;
  if (!uses || !schedule_is_explicit(r->c) ||
      !expr_is_const(r->to->pool, ir_tensor_elements(r->to->pool, &ir_at(r->from, node)->type), &elements))
    return false;
  if (elements > MOST || !rewrite_settle(r, r->args[matrix])) return false;
  for (uint32_t u = uses->first[node]; u < uses->first[node + 1]; u++) products += ir_at(r->from, uses->user[u])->op == IR_OP_contract;
  return products > 1;
}

static bool is_short_float(int32_t dtype) { return dtype == SNT_F32 || dtype == SNT_F16 || dtype == SNT_BF16; }

/* The vector beside every row of the matrix. */
static uint32_t spread(rebuild *r, const matrix_vector *m, uint32_t vector, const ir_tensor *matrix) {
  const ir_tensor t = ir_at(r->to, vector)->type;
  ir_expr dims[SNT_MAX_RANK], axes[SNT_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < m->rank[1]; i++) {
    const int32_t at = fusion_find_label(m->labels[0], m->rank[0], m->labels[1][i]);
    if (at >= 0) dims[rank] = t.dims[i], axes[rank++] = at;
  }
  if (rank < t.rank) vector = rebuild_reshape(r, vector, rank, dims);
  return rebuild_broadcast(r, vector, rank, axes, matrix->rank, matrix->dims);
}

/* The operand of a broadcast over all axes that are summed, beside the results; 0: it varies along one of them. */
static uint32_t beside_results(rebuild *r, const matrix_vector *m, uint32_t node) {
  const ir_node *n = ir_at(r->to, node);
  ir_expr dims[SNT_MAX_RANK], axes[SNT_MAX_RANK];
  uint32_t count = 0, rank = 0, kept[SNT_MAX_RANK] = {0};
  const ir_expr *own = ir_attr_ints(r->to, node, IR_ATTR_axes, &count);
  if (n->op != IR_OP_broadcast || !own || count != ir_at(r->to, ir_arg(r->to, node, 0))->type.rank) return 0;
  for (uint32_t i = 0, s = 0; i < m->rank[0]; i++) {
    if (s < m->axis_count && m->axes[s] == (int64_t)i) s++, kept[i] = UINT32_MAX;
    else kept[i] = rank, dims[rank++] = n->type.dims[i];
  }
  for (uint32_t i = 0; i < count; i++) {
    if (kept[own[i]] == UINT32_MAX) return 0;
    axes[i] = kept[own[i]];
  }
  return rebuild_broadcast(r, ir_arg(r->to, node, 0), count, axes, rank, dims);
}

/* matrix = rest * factor, where the factor is one for each row: it is multiplied with the sum (scales of 8-bit weights). 0: none. */
static uint32_t take_factor(rebuild *r, const matrix_vector *m, uint32_t *matrix) {
  if (fusion_keeps_order(r->c->options) || ir_at(r->to, *matrix)->op != IR_OP_mul || ir_at(r->to, *matrix)->type.dtype != SNT_F32) return 0;
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t factor = beside_results(r, m, ir_arg(r->to, *matrix, i));
    if (!factor) continue;
    *matrix = ir_arg(r->to, *matrix, 1 - i);
    return factor;
  }
  return 0;
}

/* Vectors of a device with lanes are a load for each element, in whatever order. */
static uint32_t in_parts(rebuild *r, const matrix_vector *m, uint32_t matrix, uint32_t vector) {
  const ir_tensor full = ir_at(r->to, matrix)->type, v = ir_at(r->to, vector)->type;
  ir_expr terms = 1;
  if (fusion_keeps_order(r->c->options) || !schedule_is_explicit(r->c) || m->axes[0] != (int64_t)(m->rank[0] - m->axis_count)) return 0;
  for (uint32_t i = 0; i < m->axis_count; i++) terms = expr_mul(r->to->pool, terms, full.dims[m->axes[i]]);
  if (ir_tensor_elements(r->to->pool, &v) != terms) return 0;
  matrix = rewrite_fields(r, matrix);
  const ir_uses *uses = find_uses(r);
  const uint32_t made = rewrite_words_sum(r, matrix, vector, m->axis_count,
                                          m->matrix == 1 && uses && !fusion_is_whole(r->from, uses, r->node));
  return made ? made : rewrite_parts_sum(r, matrix, vector, m->axis_count);
}

static uint32_t in_whole(rebuild *r, const matrix_vector *m, uint32_t matrix, uint32_t vector) {
  const ir_tensor full = ir_at(r->to, matrix)->type;
  const uint32_t both[2] = {matrix, spread(r, m, vector, &full)};
  const uint32_t product = ir_add_node(r->to, IR_OP_mul, 2, both, 0, NULL, NULL);
  r->to->nodes.at[product].origin = ir_at(r->from, r->node)->origin;
  return ir_add_axes(r->to, IR_OP_reduce_sum, product, m->axis_count, m->axes, false);
}

/* Few taps of a window: a stencil, which joins others and keeps a ring of rows, of one channel as of many. Of more, explicit vectors lie along the
   positions, if there are many: along the terms, which lie in as many places as there are rows of taps, each element would be read for itself. */
static bool is_stencil(const rebuild *r, const matrix_vector *m) {
  enum { MANY_POSITIONS = 256 };
  const ir_tensor *t = &ir_at(r->to, r->args[m->matrix])->type;
  int64_t taps = 1;
  for (uint32_t i = 0; i < m->axis_count; i++) taps *= schedule_hint(r->to->pool, t->dims[m->axes[i]]);
  if (!fusion_has_taps(r->to, r->args[m->matrix])) return false;
  if (taps <= FUSION_STENCIL_TAPS) return true;
  return schedule_is_explicit(r->c) &&
         schedule_hint(r->to->pool, ir_tensor_elements(r->to->pool, &ir_at(r->from, r->node)->type)) >= MANY_POSITIONS;
}

/* One column, and rows that lie along the terms: products that are summed, whose schedule reads rows in vectors, or by all items of a group. A
   contraction's vectors would run across the rows (PoCL: a 4096 x 4096 matrix 3 times, of 8-bit weights 3.4 times as fast by processor time). */
static uint32_t sum_of_products(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  matrix_vector m;
  if (!is_short_float(n->type.dtype)) return 0;
  for (uint32_t o = 0; o < 2; o++)
    if (!is_short_float(ir_at(r->to, r->args[o])->type.dtype)) return 0;
  bool found = false;
  for (uint32_t o = 0; o < 2 && !found; o++) found = read_product(r, 1 - o, &m) && has_one_column(r, &m);
  if (!found || is_packed(r, r->args[m.matrix]) || !rows_lie_along(r->to, r->args[m.matrix]) || is_stencil(r, &m) || may_be_score(r) ||
      is_shared(r, m.matrix))
    return 0;
  uint32_t matrix = ir_add_cast(r->to, r->args[m.matrix], SNT_F32);
  const uint32_t factor = take_factor(r, &m, &matrix);
  const uint32_t vector = ir_add_cast(r->to, r->args[1 - m.matrix], SNT_F32);
  uint32_t made = in_parts(r, &m, matrix, vector);
  if (!made) made = in_whole(r, &m, matrix, vector);
  r->to->nodes.at[made].origin = n->origin;
  if (factor) {
    made = ir_add_node(r->to, IR_OP_mul, 2, (const uint32_t[]){made, factor}, 0, NULL, NULL);
    r->to->nodes.at[made].origin = n->origin;
  }
  if (n->type.dtype != SNT_F32) {
    made = ir_add_cast(r->to, made, n->type.dtype);
    r->to->nodes.at[made].origin = n->origin;
  }
  return rebuild_reshape(r, made, n->type.rank, n->type.dims);
}

/* The product at hand as steps of a longer one; the part at hand of the gates' one product as one of its own. */
static uint32_t steps_or_gates(rebuild *r) {
  const uint8_t op = ir_at(r->from, r->node)->op;
  if (op == IR_OP_contract) return rewrite_steps(r, find_uses(r), ((rewriting *)r->user)->steps);
  return r->c->is_body ? rewrite_gate(r, find_uses(r)) : 0;
}

/* A square or a cube is products: within 1.5 units where pow promises 4, and special values are the same. */
static uint32_t power_is_products(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  const uint32_t x = r->args[0];
  double order;
  if (!ir_is_scalar_const(r->to, r->args[1], &order) || (order != 2 && order != 3)) return 0;
  if (ir_at(r->to, x)->type.rank != n->type.rank) return 0; /* one number, as often as there are exponents */
  const uint32_t square = ir_add2(r->to, IR_OP_mul, x, x);
  return order == 2 ? square : ir_add2(r->to, IR_OP_mul, square, x);
}

static const rebuild_rule rules[] = {
    {steps_or_gates, .ops = {IR_OP_contract, IR_OP_slice}},
    {rewrite_tap_boxes, .ops = {IR_OP_contract}},
    {rewrite_live_taps, .ops = {IR_OP_contract}},
    {axis_by_axis, .ops = {IR_OP_reduce_max, IR_OP_reduce_min}},
    {sum_of_products, .ops = {IR_OP_contract}},
    {rewrite_words_product, .ops = {IR_OP_contract}},
    {rewrite_narrow_weights, .ops = {IR_OP_contract}},
    {power_is_products, .ops = {IR_OP_pow}},
    {rewrite_tap_rows, .ops = {IR_OP_contract}},
    {rewrite_tap_order, .ops = {IR_OP_contract}},
};

snt_result fusion_rewrite(fusion_context *c, bool *changed) {
  rewriting own = {0};
  return fusion_rebuild_with(c, rules, IR_COUNT(rules), &own, changed);
}
