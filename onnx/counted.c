/* Operators that need all places of an operand whose extent depends on the data (bounded.c), as rows: over which axes they go, and what stands in the places
   that are not used so that these change nothing. In: a call before its row runs; out: operands that the row may take for whole. What no row of this
   table, no handler and no spreading through nodes explains is refused. */
#include "onnx/ops.h"
#include "onnx/import_private.h"

typedef bool (*goes_over)(onnx_call *, uint32_t operand, uint32_t axis);
typedef struct counted_rule {
  const char *op;
  goes_over over;
  onnx_filling filling;
  enum {
    GONE,
    KEPT,
    MEAN
  } result; /* the axis is no longer there, or extent 1; it is there as it was; gone, and a sum is divided by its extent */
} counted_rule;

static bool is_axis(const onnx_call *c, uint32_t operand, int64_t named, uint32_t axis) {
  const int64_t rank = c->in[operand]->type.rank;
  return (named < 0 ? named + rank : named) == axis;
}

static bool along_attribute(onnx_call *c, uint32_t operand, uint32_t axis) {
  const int64_t otherwise = c->node->op[0] == 'A' ? 0 : c->opset < 13 ? 1 : -1; /* ArgMax and ArgMin; those of rows */
  if (onnx_int(c, "select_last_index", 0)) return false;                        /* which of equals could be a filling */
  return operand == 0 && is_axis(c, 0, onnx_int(c, "axis", otherwise), axis);
}

/* Before 13 rows are all axes from the named one on. */
static bool in_rows(onnx_call *c, uint32_t operand, uint32_t axis) {
  const int64_t named = onnx_int(c, "axis", 1), rank = c->in[operand]->type.rank;
  return c->opset >= 13 ? along_attribute(c, operand, axis) : operand == 0 && (named < 0 ? named + rank : named) <= axis;
}

static bool along_input(onnx_call *c, uint32_t operand, uint32_t axis) {
  int64_t named;
  return operand == 0 && onnx_int(c, "reverse", 0) && onnx_in_int(c, 1, &named) && is_axis(c, 0, named, axis);
}

static bool in_reduced(onnx_call *c, uint32_t operand, uint32_t axis) {
  const bool by_input = c->opset >= 18 || (c->opset >= 13 && !strcmp(c->node->op, "ReduceSum"));
  const uint32_t rank = c->in[operand]->type.rank, all = onnx_int(c, "noop_with_empty_axes", 0) ? 0 : (1u << rank) - 1;
  uint32_t mask;
  return operand == 0 && onnx_axes(c, by_input ? 1 : 0, rank, all, &mask) && mask >> axis & 1;
}

static bool in_product(onnx_call *c, uint32_t operand, uint32_t axis) {
  const uint32_t rank = c->in[operand]->type.rank;
  return operand < 2 && axis + (operand == 1 && rank > 1 ? 2 : 1) == rank;
}

static bool in_gemm(onnx_call *c, uint32_t operand, uint32_t axis) {
  static const char *const turned[] = {"transA", "transB"};
  return operand < 2 && axis == (operand == (onnx_int(c, turned[operand], 0) != 0));
}

static bool anywhere(onnx_call *c, uint32_t operand, uint32_t axis) { return (void)c, (void)axis, operand == 0; }

// clang-format off
static const counted_rule rules[] = {
    {"ReduceSum", in_reduced, ONNX_ZERO, GONE},       {"ReduceMean", in_reduced, ONNX_ZERO, MEAN},
    {"ReduceMax", in_reduced, ONNX_LEAST, GONE},      {"ReduceMin", in_reduced, ONNX_GREATEST, GONE},
    {"ReduceProd", in_reduced, ONNX_ONE, GONE},       {"ReduceL1", in_reduced, ONNX_ZERO, GONE},
    {"ReduceL2", in_reduced, ONNX_ZERO, GONE},        {"ReduceLogSum", in_reduced, ONNX_ZERO, GONE},
    {"ReduceLogSumExp", in_reduced, ONNX_LEAST, GONE},{"ReduceSumSquare", in_reduced, ONNX_ZERO, GONE},
    {"ArgMax", along_attribute, ONNX_LEAST, GONE},    {"ArgMin", along_attribute, ONNX_GREATEST, GONE},
    {"Softmax", in_rows, ONNX_LEAST, KEPT},           {"LogSoftmax", in_rows, ONNX_LEAST, KEPT},
    {"Hardmax", in_rows, ONNX_LEAST, KEPT},           {"CumSum", along_input, ONNX_ZERO, KEPT},
    {"CumProd", along_input, ONNX_ONE, KEPT},
    {"MatMul", in_product, ONNX_ZERO, GONE},          {"Gemm", in_gemm, ONNX_ZERO, GONE},
    {"NonZero", anywhere, ONNX_ZERO, GONE},           {"DynamicQuantizeLinear", anywhere, ONNX_ZERO, KEPT},
    {"RandomNormalLike", anywhere, ONNX_ZERO, KEPT},  {"RandomUniformLike", anywhere, ONNX_ZERO, KEPT},
};
// clang-format on

static const counted_rule *find_rule(const onnx_node *n) {
  for (uint32_t i = 0; !n->domain[0] && i < IR_COUNT(rules); i++)
    if (!strcmp(rules[i].op, n->op)) return &rules[i];
  return NULL;
}

/* ---- operands that meet: what is known of an extent, and the less of what it may be, holds for all ---- */
static bool fit_operand(onnx_call *c, uint32_t i) {
  const onnx_value *v = c->in[i];
  const uint32_t back = v->type.rank - 1u - v->count_axis;
  const ir_expr own = v->type.dims[v->count_axis];
  ir_expr least = own;
  bool known = false;
  for (uint32_t k = 0; k < c->in_count; k++) {
    const onnx_value *other = onnx_has(c, k) && k != i ? c->in[k] : NULL;
    if (!other || other->type.rank <= back) continue;
    const uint32_t axis = other->type.rank - 1u - back;
    const ir_expr extent = other->type.dims[axis];
    const bool counted = onnx_is_counted(c, k, axis);
    if ((extent == 1 && !counted) || extent == least || !expr_proves_le(c->g->pool, extent, least)) continue;
    least = extent, known = !counted;
  }
  const uint32_t axis = v->count_axis;
  return least == own || (onnx_cut_in(c, i, axis, least) && (!known || onnx_drop_in(c, i)));
}

static bool fit_operands(onnx_call *c) {
  for (uint32_t i = 0; i < c->in_count; i++)
    if (onnx_has(c, i) && c->in[i]->count && !fit_operand(c, i)) return false;
  return true;
}

static bool any_counted(const onnx_call *c) {
  for (uint32_t i = 0; i < c->in_count; i++)
    if (onnx_has(c, i) && c->in[i]->count) return true;
  return false;
}

bool onnx_ready_counted(onnx_call *c, onnx_counted *out) {
  const onnx_row *other;
  if (!any_counted(c)) return true;
  c->opset = onnx_scope_opset(c->im->scope, c->node->domain);
  const onnx_row *row = onnx_find_row(c->node, c->opset, &other);
  const counted_rule *rule = find_rule(c->node);
  if (!onnx_ready_moved(c, out)) return false;
  if (row && row->flags & ONNX_BROADCAST) return fit_operands(c);
  for (uint32_t i = 0; rule && i < c->in_count; i++) {
    const uint32_t axis = onnx_has(c, i) ? c->in[i]->count_axis : 0;
    if (!onnx_has(c, i) || !c->in[i]->count || !rule->over(c, i, axis)) continue;
    if (rule->result != GONE) *out = (onnx_counted){c->in[i]->count, axis, false, rule->result == MEAN ? c->in[i]->type.dims[axis] : 0};
    if (!onnx_mask_in(c, i, rule->filling)) return false;
  }
  return !c->refused;
}

/* Of as many places as there can be to one of those that there are. */
static bool settle_mean(onnx_call *c, const onnx_counted *counted) {
  const uint32_t node = c->out[0].node, count = node ? onnx_extent(c, counted->count, onnx_type_of(c, node)->dtype) : 0;
  const uint32_t sum = count ? onnx_2(c, IR_OP_mul, node, onnx_extent(c, counted->extent, onnx_type_of(c, node)->dtype)) : 0;
  return onnx_out(c, 0, sum ? onnx_2(c, IR_OP_div, sum, count) : 0);
}

bool onnx_settle_counted(onnx_call *c, const onnx_counted *counted, uint32_t first) {
  if (!c->out_count) return true;
  if (counted->count && counted->extent) return settle_mean(c, counted) && onnx_spread_counts(c, first);
  if (!counted->count) return onnx_spread_counts(c, first);
  const uint32_t node = counted->sums ? onnx_mask(c, c->out[0].node, counted->count, counted->axis, onnx_like(c, c->out[0].node, 0))
                                      : c->out[0].node;
  return onnx_out_counted(c, 0, node, counted->count, counted->axis, 0);
}
