/* matmul, linear and einsum as contractions. Batch axes of extent 1 that the other operand repeats are dropped, not broadcast. */
#include "ir/composites_private.h"

/* Narrow floats are summed in f32 and rounded once, at the end, unless the result type is given. */
static int32_t sum_dtype(const composite_call *c, uint32_t a) {
  if (c->params[IR_PARAM_dtype]) return (int32_t)c->params[IR_PARAM_dtype]->ints[0];
  return type_of(c, a)->dtype;
}

/* Drops the axes whose bit is set in `mask`, all of extent 1; moves the labels along. */
static uint32_t drop_axes(composite_call *c, uint32_t a, uint32_t mask, int64_t *labels) {
  if (!mask) return a;
  const ir_tensor shape = *type_of(c, a);
  ir_expr dims[SNT_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < shape.rank; i++) {
    if (mask >> i & 1) continue;
    labels[rank] = labels[i];
    dims[rank++] = shape.dims[i];
  }
  return step_reshape(c, a, rank, dims);
}

/* Labels of matmul: batch axis i from the end is 10 + i; rows 0, columns 1, the sum 2. */
static uint32_t matmul_labels(composite_call *c, uint32_t a, bool is_rhs, bool transposed, int64_t *labels) {
  const uint32_t rank = type_of(c, a)->rank;
  const int64_t outer = is_rhs ? 2 : 0, inner = is_rhs ? 1 : 2;
  if (rank == 0) return call_mistake(c, "operand %u has no axis", is_rhs + 1u);
  if (rank == 1) {
    labels[0] = 2;
    return 1;
  }
  for (uint32_t i = 0; i + 2 < rank; i++) labels[i] = 10 + (int64_t)(rank - 3 - i);
  labels[rank - 2] = transposed ? inner : outer;
  labels[rank - 1] = transposed ? outer : inner;
  return rank;
}

static ir_expr extent_of(composite_call *c, uint32_t a, uint32_t rank, const int64_t *labels, int64_t label) {
  for (uint32_t i = 0; i < rank; i++)
    if (labels[i] == label) return type_of(c, a)->dims[i];
  return -1;
}

void build_matmul(composite_call *c) {
  uint32_t args[2] = {c->args[0], c->args[1]}, rank[2], drop[2] = {0, 0}, out_count = 0;
  int64_t labels[2][SNT_MAX_RANK], out[2 * SNT_MAX_RANK];
  rank[0] = matmul_labels(c, args[0], false, call_has(c, IR_PARAM_transpose_a), labels[0]);
  rank[1] = matmul_labels(c, args[1], true, call_has(c, IR_PARAM_transpose_b), labels[1]);
  if (!rank[0] || !rank[1]) return;
  const uint32_t wider = rank[1] > rank[0];
  for (uint32_t i = 0; i + 2 < rank[wider]; i++) {
    const int64_t label = labels[wider][i];
    const ir_expr extent[2] = {extent_of(c, args[0], rank[0], labels[0], label), extent_of(c, args[1], rank[1], labels[1], label)};
    for (uint32_t side = 0; side < 2; side++) {
      bool repeats = extent[side] == 1 && extent[1 - side] != 1 && extent[1 - side] != -1;
      for (uint32_t axis = 0; repeats && axis < rank[side]; axis++)
        if (labels[side][axis] == label) drop[side] |= 1u << axis;
    }
    out[out_count++] = label;
  }
  if (rank[0] > 1) out[out_count++] = 0;
  if (rank[1] > 1) out[out_count++] = 1;
  for (uint32_t side = 0; side < 2; side++) args[side] = drop_axes(c, args[side], drop[side], labels[side]);
  c->results[0] = step_contract(c, args[0], args[1], labels[0], labels[1], out_count, out, sum_dtype(c, c->args[0]));
}

void build_linear(composite_call *c) {
  const uint32_t x = c->args[0], rank = type_of(c, x)->rank;
  if (rank == 0 || type_of(c, c->args[1])->rank != 2) {
    call_mistake(c, "needs x with an axis and w [out, in]");
    return;
  }
  int64_t lhs[SNT_MAX_RANK], out[SNT_MAX_RANK];
  const int64_t rhs[] = {20, 21};
  for (uint32_t i = 0; i + 1 < rank; i++) lhs[i] = out[i] = i;
  lhs[rank - 1] = 21;
  out[rank - 1] = 20;
  const int32_t result = sum_dtype(c, x);
  const bool narrow = c->args[2] && ir_dtypes[result].is_float && ir_dtypes[result].bits < 32;
  const uint32_t y = step_contract(c, x, c->args[1], lhs, rhs, rank, out, narrow ? SNT_F32 : result);
  c->results[0] = step_cast(c, step_bias(c, y, c->args[2], rank - 1), result);
}

/* ---- einsum ---- */
static bool is_letter(char ch) { return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z'); }

static const char *read_labels(const char *text, int64_t *labels, uint32_t *count) {
  *count = 0;
  for (; is_letter(*text) || *text == ' '; text++) {
    if (*text == ' ') continue;
    if (*count == SNT_MAX_RANK) return NULL;
    labels[(*count)++] = *text;
  }
  return text;
}

static bool holds(const int64_t *labels, uint32_t count, int64_t label) {
  for (uint32_t i = 0; i < count; i++)
    if (labels[i] == label) return true;
  return false;
}

/* Sums the axes whose label occurs nowhere else. */
static uint32_t sum_lonely(composite_call *c, uint32_t a, int64_t *labels, uint32_t *count, const int64_t *other, uint32_t other_count,
                           const int64_t *out, uint32_t out_count) {
  uint32_t mask = 0, kept = 0;
  for (uint32_t i = 0; i < *count; i++) {
    if (!holds(other, other_count, labels[i]) && !holds(out, out_count, labels[i])) mask |= 1u << i;
    else labels[kept++] = labels[i];
  }
  *count = kept;
  return mask ? step_reduce(c, IR_OP_reduce_sum, a, mask, false) : a;
}

static uint32_t arrange(composite_call *c, uint32_t a, const int64_t *labels, uint32_t count, const int64_t *out, uint32_t out_count) {
  uint32_t perm[SNT_MAX_RANK];
  if (count != out_count) return call_mistake(c, "a label of the result is in no operand, or in it twice");
  for (uint32_t i = 0; i < out_count; i++) {
    uint32_t at = 0;
    while (at < count && labels[at] != out[i]) at++;
    if (at == count) return call_mistake(c, "a label of the result is in no operand");
    perm[i] = at;
  }
  return step_transpose(c, a, perm);
}

void build_einsum(composite_call *c) {
  int64_t labels[3][SNT_MAX_RANK];
  uint32_t counts[3] = {0, 0, 0}, a = c->args[0], b = c->args[1];
  const char *text = c->params[IR_PARAM_labels] ? c->params[IR_PARAM_labels]->word : NULL;
  if (text) text = read_labels(text, labels[0], &counts[0]);
  if (text && b) text = *text == ',' ? read_labels(text + 1, labels[1], &counts[1]) : NULL;
  if (text) text = text[0] == '-' && text[1] == '>' ? read_labels(text + 2, labels[2], &counts[2]) : NULL;
  if (!text || *text || counts[0] != type_of(c, a)->rank || (b && counts[1] != type_of(c, b)->rank)) {
    call_mistake(c, "labels must be given as \"ij,jk->ik\", one letter an axis");
    return;
  }
  a = sum_lonely(c, a, labels[0], &counts[0], labels[1], counts[1], labels[2], counts[2]);
  if (!b) {
    c->results[0] = arrange(c, a, labels[0], counts[0], labels[2], counts[2]);
    return;
  }
  b = sum_lonely(c, b, labels[1], &counts[1], labels[0], counts[0], labels[2], counts[2]);
  c->results[0] = step_contract(c, a, b, labels[0], labels[1], counts[2], labels[2], sum_dtype(c, c->args[0]));
}
