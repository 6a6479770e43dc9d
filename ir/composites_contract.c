/* matmul, linear and einsum as contractions. Batch axes of extent 1 that the other operand repeats are dropped, not broadcast. */
#include "ir/composites_private.h"

/* Narrow floats are summed in f32 and rounded once, at the end, unless the result type is given. */
static int32_t sum_dtype(const composite_call *c, uint32_t a) {
  if (c->params[IR_PARAM_dtype]) return (int32_t)c->params[IR_PARAM_dtype]->ints[0];
  return type_of(c, a)->dtype;
}

/* Drops the axes whose bit is set in `mask`, all of extent 1; their labels go, too. */
static uint32_t drop_axes(composite_call *c, uint32_t a, uint32_t mask, label_list *labels) {
  if (!mask) return a;
  const ir_tensor shape = *type_of(c, a);
  ir_expr dims[SNT_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < shape.rank; i++) {
    if (mask >> i & 1) continue;
    labels->at[rank] = labels->at[i];
    dims[rank++] = shape.dims[i];
  }
  labels->count = rank;
  return step_reshape(c, a, rank, dims);
}

/* Labels of matmul: batch axis i from the end is 10 + i; rows 0, columns 1, the sum 2. */
static bool matmul_labels(composite_call *c, uint32_t side, bool transposed, label_list *labels) {
  const uint32_t rank = type_of(c, c->args[side])->rank;
  const int64_t outer = side ? 2 : 0, inner = side ? 1 : 2;
  if (rank == 0) return call_mistake(c, "operand %u has no axis", side + 1), false;
  if (rank == 1) return label_add(labels, 2), true;
  for (uint32_t i = 0; i + 2 < rank; i++) label_add(labels, 10 + (int64_t)(rank - 3 - i));
  label_add(labels, transposed ? inner : outer);
  label_add(labels, transposed ? outer : inner);
  return true;
}

/* The axis that has the label; the count if there is none. */
static uint32_t find_label(const label_list *labels, int64_t label) {
  uint32_t i = 0;
  while (i < labels->count && labels->at[i] != label) i++;
  return i;
}

static ir_expr extent_of(composite_call *c, uint32_t a, const label_list *labels, int64_t label) {
  const uint32_t axis = find_label(labels, label);
  return axis < labels->count ? type_of(c, a)->dims[axis] : -1;
}

void build_matmul(composite_call *c) {
  uint32_t args[2] = {c->args[0], c->args[1]}, drop[2] = {0, 0};
  contract_desc d = {.dtype = sum_dtype(c, args[0])};
  label_list *sides[] = {&d.lhs, &d.rhs};
  if (!matmul_labels(c, 0, call_has(c, IR_PARAM_transpose_a), &d.lhs) || !matmul_labels(c, 1, call_has(c, IR_PARAM_transpose_b), &d.rhs))
    return;
  const label_list wider = d.rhs.count > d.lhs.count ? d.rhs : d.lhs;
  for (uint32_t i = 0; i + 2 < wider.count; i++) {
    const int64_t label = wider.at[i];
    const ir_expr extent[2] = {extent_of(c, args[0], &d.lhs, label), extent_of(c, args[1], &d.rhs, label)};
    for (uint32_t side = 0; side < 2; side++)
      if (extent[side] == 1 && extent[1 - side] != 1 && extent[1 - side] != -1) drop[side] |= 1u << find_label(sides[side], label);
    label_add(&d.out, label);
  }
  if (d.lhs.count > 1) label_add(&d.out, 0);
  if (d.rhs.count > 1) label_add(&d.out, 1);
  for (uint32_t side = 0; side < 2; side++) args[side] = drop_axes(c, args[side], drop[side], sides[side]);
  c->results[0] = step_contract(c, args[0], args[1], &d);
}

void build_linear(composite_call *c) {
  const uint32_t x = c->args[0], rank = type_of(c, x)->rank;
  if (rank == 0 || type_of(c, c->args[1])->rank != 2) {
    call_mistake(c, "needs x with an axis and w [out, in]");
    return;
  }
  const int32_t result = sum_dtype(c, x);
  const bool narrow = c->args[2] && ir_dtypes[result].is_float && ir_dtypes[result].bits < 32;
  contract_desc d = {.rhs = {{20, 21}, 2}, .dtype = narrow ? SNT_F32 : result};
  for (uint32_t i = 0; i + 1 < rank; i++) label_add(&d.lhs, i), label_add(&d.out, i);
  label_add(&d.lhs, 21);
  label_add(&d.out, 20);
  const uint32_t y = step_contract(c, x, c->args[1], &d);
  c->results[0] = step_cast(c, step_bias(c, y, c->args[2], rank - 1), result);
}

/* ---- einsum ---- */
static bool is_letter(char ch) { return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z'); }

static const char *read_labels(const char *text, label_list *labels) {
  for (; is_letter(*text) || *text == ' '; text++) {
    if (*text == ' ') continue;
    if (labels->count == SNT_MAX_RANK) return NULL;
    label_add(labels, *text);
  }
  return text;
}

static bool holds(const label_list *labels, int64_t label) { return find_label(labels, label) < labels->count; }

/* Sums the axes whose label occurs nowhere else. */
static uint32_t sum_lonely(composite_call *c, uint32_t a, label_list *labels, const label_list *other, const label_list *out) {
  uint32_t mask = 0, kept = 0;
  for (uint32_t i = 0; i < labels->count; i++) {
    if (!holds(other, labels->at[i]) && !holds(out, labels->at[i])) mask |= 1u << i;
    else labels->at[kept++] = labels->at[i];
  }
  labels->count = kept;
  return mask ? step_reduce(c, IR_OP_reduce_sum, a, mask, false) : a;
}

static uint32_t arrange(composite_call *c, uint32_t a, const label_list *labels, const label_list *out) {
  uint32_t perm[SNT_MAX_RANK];
  if (labels->count != out->count) return call_mistake(c, "a label of the result is in no operand, or in it twice");
  for (uint32_t i = 0; i < out->count; i++) {
    perm[i] = find_label(labels, out->at[i]);
    if (perm[i] == labels->count) return call_mistake(c, "a label of the result is in no operand");
  }
  return step_transpose(c, a, perm);
}

void build_einsum(composite_call *c) {
  contract_desc d = {.dtype = sum_dtype(c, c->args[0])};
  uint32_t a = c->args[0], b = c->args[1];
  const char *text = c->params[IR_PARAM_labels] ? c->params[IR_PARAM_labels]->word : NULL;
  if (text) text = read_labels(text, &d.lhs);
  if (text && b) text = *text == ',' ? read_labels(text + 1, &d.rhs) : NULL;
  if (text) text = text[0] == '-' && text[1] == '>' ? read_labels(text + 2, &d.out) : NULL;
  if (!text || *text || d.lhs.count != type_of(c, a)->rank || (b && d.rhs.count != type_of(c, b)->rank)) {
    call_mistake(c, "labels must be given as \"ij,jk->ik\", one letter an axis");
    return;
  }
  a = sum_lonely(c, a, &d.lhs, &d.rhs, &d.out);
  if (b) b = sum_lonely(c, b, &d.rhs, &d.lhs, &d.out);
  c->results[0] = b ? step_contract(c, a, b, &d) : arrange(c, a, &d.lhs, &d.out);
}
