/* matmul and linear as contractions, of floats and of integers with zero points. Batch axes of extent 1 that the other operand repeats are
   dropped, not broadcast. */
#include "ir/composites/private.h"

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

void build_matmul(composite_call *c) {
  uint32_t args[2] = {c->args[0], c->args[1]}, drop[2] = {0, 0};
  contract_desc d = {.dtype = sum_dtype(c, args[0])};
  label_list *sides[] = {&d.lhs, &d.rhs};
  if (!matmul_labels(c, 0, call_has(c, IR_PARAM_transpose_a), &d.lhs) || !matmul_labels(c, 1, call_has(c, IR_PARAM_transpose_b), &d.rhs))
    return;
  const label_list wider = d.rhs.count > d.lhs.count ? d.rhs : d.lhs;
  for (uint32_t i = 0; i + 2 < wider.count; i++) {
    const int64_t label = wider.at[i];
    const uint32_t axis[2] = {find_label(&d.lhs, label), find_label(&d.rhs, label)};
    label_add(&d.out, label);
    if (axis[0] == d.lhs.count || axis[1] == d.rhs.count) continue;
    const bool once[2] = {type_of(c, args[0])->dims[axis[0]] == 1, type_of(c, args[1])->dims[axis[1]] == 1};
    for (uint32_t side = 0; side < 2; side++)
      if (once[side] && !once[1 - side]) drop[side] |= 1u << axis[side];
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

/* ---- integers ---- */
/* Widened to i32, less its zero point: one number, or one a row of `axis`. */
static uint32_t without_zero(composite_call *c, uint32_t a, uint32_t zero, uint32_t axis) {
  const uint32_t wide = step_cast(c, a, SNT_I32);
  if (!zero || !wide) return wide;
  const ir_tensor shape = *type_of(c, wide), own = *type_of(c, zero);
  zero = step_cast(c, zero, SNT_I32);
  if (own.rank == 1 && own.dims[0] == 1) zero = step_reshape(c, zero, 0, NULL);
  else if (own.rank == 1) zero = step_along(c, zero, axis, &shape);
  return step_2(c, IR_OP_sub, wide, zero);
}

void build_matmul_integer(composite_call *c) {
  const uint32_t ranks[] = {type_of(c, c->args[0])->rank, type_of(c, c->args[1])->rank};
  c->args[0] = without_zero(c, c->args[0], c->args[2], ranks[0] > 1 ? ranks[0] - 2 : 0);
  c->args[1] = without_zero(c, c->args[1], c->args[3], ranks[1] > 0 ? ranks[1] - 1 : 0);
  if (c->args[0] && c->args[1]) build_matmul(c);
}

void build_conv_integer(composite_call *c) {
  c->args[0] = without_zero(c, c->args[0], c->args[2], 1);
  c->args[1] = without_zero(c, c->args[1], c->args[3], 0);
  c->args[2] = 0;
  if (c->args[0] && c->args[1]) build_conv(c);
}
