/* Elementwise operators whose types, counts of operands or attributes a template cannot say. */
#include "onnx/ops.h"

static bool take_all(onnx_call *c, uint32_t **nodes) {
  *nodes = ir_arena_take(onnx_arena(c), c->in_count * sizeof **nodes, _Alignof(uint32_t));
  if (!*nodes || c->in_count == 0 || c->in_count > ONNX_MAX_INPUTS) return onnx_refuse(c, "%u operands", c->in_count);
  for (uint32_t i = 0; i < c->in_count; i++)
    if (!((*nodes)[i] = onnx_in(c, i))) return false;
  return onnx_broadcast_all(c, c->in_count, *nodes, false);
}

/* Max, Min, Sum, Mean of any number of operands. */
bool onnx_op_variadic(onnx_call *c) {
  const char *op = c->node->op;
  const ir_op step = !strcmp(op, "Max") ? IR_OP_max : !strcmp(op, "Min") ? IR_OP_min : IR_OP_add;
  uint32_t *nodes;
  onnx_ignore(c, "consumed_inputs");
  if (!take_all(c, &nodes)) return false;
  uint32_t y = nodes[0];
  for (uint32_t i = 1; y && i < c->in_count; i++) y = ir_add2(c->g, step, y, nodes[i]);
  if (!strcmp(op, "Mean") && c->in_count > 1) y = onnx_2n(c, IR_OP_div, y, (double)c->in_count);
  return onnx_out(c, 0, y);
}

/* Before operator set 7 the second operand is aligned at `axis`, and only where `broadcast` says so. */
bool onnx_op_aligned(onnx_call *c) {
  static const struct {
    const char *op;
    ir_op primitive;
  } ops[] = {{"Add", IR_OP_add}, {"Sub", IR_OP_sub}, {"Mul", IR_OP_mul},  {"Div", IR_OP_div},    {"Pow", IR_OP_pow}, {"And", IR_OP_and},
             {"Or", IR_OP_or},   {"Xor", IR_OP_xor}, {"Equal", IR_OP_eq}, {"Greater", IR_OP_gt}, {"Less", IR_OP_lt}};
  const uint32_t a = onnx_in(c, 0);
  uint32_t b = onnx_in(c, 1), which = 0;
  if (!a || !b) return false;
  const ir_tensor wide = *onnx_type_of(c, a), small = *onnx_type_of(c, b);
  const int64_t axis = onnx_int(c, "axis", (int64_t)wide.rank - small.rank);
  onnx_int(c, "broadcast", 0);
  onnx_ignore(c, "consumed_inputs");
  if (axis < 0 || axis + small.rank > wide.rank) return onnx_refuse(c, "axis %lld", (long long)axis);
  ir_expr dims[SNT_MAX_RANK];
  for (uint32_t i = 0; i < wide.rank - (uint32_t)axis; i++) dims[i] = i < small.rank ? small.dims[i] : 1;
  b = onnx_reshape(c, b, wide.rank - (uint32_t)axis, dims);
  while (which < IR_COUNT(ops) - 1 && strcmp(ops[which].op, c->node->op) != 0) which++;
  return onnx_out(c, 0, onnx_2(c, ops[which].primitive, a, b));
}

/* ---- powers: integers by squaring, exactly as they wrap ---- */
static uint32_t whole_power(onnx_call *c, uint32_t x, uint32_t y) {
  uint32_t result = onnx_like(c, x, 1), base = x;
  for (uint32_t bit = 0; bit < 6; bit++) {
    const uint32_t set = onnx_2n(c, IR_OP_and, onnx_2n(c, IR_OP_shr, y, bit), 1), odd = onnx_2n(c, IR_OP_ne, set, 0);
    const uint32_t more = onnx_2(c, IR_OP_mul, result, base);
    result = onnx_select(c, odd, more, result);
    if (bit < 5) base = onnx_2(c, IR_OP_mul, base, base);
  }
  const uint32_t negative = onnx_2n(c, IR_OP_lt, y, 0), size = onnx_1(c, IR_OP_abs, x), unit = onnx_2n(c, IR_OP_eq, size, 1);
  const uint32_t reciprocal = onnx_select(c, unit, result, onnx_like(c, x, 0));
  return ir_dtypes[onnx_type_of(c, y)->dtype].is_signed ? onnx_select(c, negative, reciprocal, result) : result;
}

bool onnx_op_pow(onnx_call *c) {
  uint32_t v[] = {onnx_in(c, 0), onnx_in(c, 1)};
  if (!onnx_broadcast_all(c, 2, v, true)) return false;
  const int32_t own = onnx_type_of(c, v[0])->dtype, other = onnx_type_of(c, v[1])->dtype;
  const bool whole[] = {ir_dtypes[own].is_int, ir_dtypes[other].is_int};
  if (whole[0] && whole[1]) return onnx_out(c, 0, whole_power(c, v[0], onnx_cast(c, v[1], own)));
  if (!whole[0]) return onnx_out(c, 0, onnx_2(c, IR_OP_pow, v[0], onnx_cast(c, v[1], own)));
  /* Whole exponents are exact; of others the nearest whole number is what lies so near below it (4 to 0.5). */
  const uint32_t y = onnx_2(c, IR_OP_pow, onnx_cast(c, v[0], other), v[1]), nudge = onnx_2n(c, IR_OP_mul, onnx_1(c, IR_OP_sign, y), 1e-4);
  const uint32_t exact = whole_power(c, v[0], onnx_cast(c, v[1], own)), is_whole = onnx_2(c, IR_OP_eq, v[1], onnx_1(c, IR_OP_floor, v[1]));
  return onnx_out(c, 0, onnx_select(c, is_whole, exact, onnx_cast(c, onnx_1(c, IR_OP_trunc, onnx_2(c, IR_OP_add, y, nudge)), own)));
}

bool onnx_op_mod(onnx_call *c) {
  const bool truncated = onnx_int(c, "fmod", 0) != 0;
  const uint32_t a = onnx_in(c, 0), b = onnx_in(c, 1);
  return onnx_out(c, 0, onnx_2(c, truncated ? IR_OP_rem : IR_OP_mod, a, b));
}

/* A shift by the width or more, or by less than nothing, leaves copies of the sign, or 0. */
bool onnx_op_bit_shift(onnx_call *c) {
  const char *direction = onnx_text(c, "direction", "");
  uint32_t v[] = {onnx_in(c, 0), onnx_in(c, 1)};
  if (strcmp(direction, "LEFT") != 0 && strcmp(direction, "RIGHT") != 0) return onnx_refuse(c, "direction %.40s", direction);
  if (!onnx_broadcast_all(c, 2, v, true)) return false;
  const ir_dtype_info *type = &ir_dtypes[onnx_type_of(c, v[1])->dtype];
  const uint32_t moved = onnx_2(c, direction[0] == 'L' ? IR_OP_shl : IR_OP_shr, v[0], v[1]);
  uint32_t inside = onnx_2n(c, IR_OP_lt, v[1], type->bits), rest = onnx_like(c, moved, 0);
  if (type->is_signed) inside = onnx_2(c, IR_OP_and, inside, onnx_2n(c, IR_OP_ge, v[1], 0));
  if (type->is_signed && direction[0] == 'R') rest = onnx_2n(c, IR_OP_shr, v[0], type->bits - 1.0);
  return onnx_out(c, 0, onnx_select(c, inside, moved, rest));
}

bool onnx_op_isinf(onnx_call *c) {
  const bool below = onnx_int(c, "detect_negative", 1) != 0, above = onnx_int(c, "detect_positive", 1) != 0;
  const uint32_t x = onnx_in(c, 0), infinite = onnx_1(c, IR_OP_isinf, x);
  if (!infinite || (below && above)) return onnx_out(c, 0, infinite);
  const uint32_t side = onnx_2n(c, below ? IR_OP_lt : IR_OP_gt, x, 0), none = onnx_like(c, infinite, 0);
  return onnx_out(c, 0, below || above ? onnx_2(c, IR_OP_and, infinite, side) : onnx_2(c, IR_OP_and, infinite, none));
}

bool onnx_op_cast_like(onnx_call *c) {
  const ir_tensor *like = onnx_in_type(c, 1);
  const uint32_t x = onnx_in(c, 0);
  const bool saturate = onnx_int(c, "saturate", 1) != 0;
  if (!like || !like->dtype) return onnx_refuse(c, "the element type of input 1 is not supported");
  return onnx_out(c, 0, onnx_convert(c, x, like->dtype, saturate));
}

/* The same bits as a type of the same width. */
bool onnx_op_bit_cast(onnx_call *c) {
  const int32_t to = onnx_dtype_attr(c, "to", 0);
  const uint32_t x = onnx_in(c, 0);
  if (!to || !x) return false;
  const int32_t from = onnx_type_of(c, x)->dtype;
  if (from == to) return onnx_out(c, 0, x);
  if (ir_dtypes[from].bytes != ir_dtypes[to].bytes) return onnx_refuse(c, "%s as %s", ir_dtypes[from].name, ir_dtypes[to].name);
  const bool flag = from == SNT_BOOL || to == SNT_BOOL; /* a byte of 0 or 1 */
  return onnx_out(c, 0, flag ? onnx_cast(c, x, to) : onnx_add(c, "bitcast %%%u, dtype=%s", x, ir_dtypes[to].name));
}

/* a sigmoid(alpha a) b */
bool onnx_op_swiglu(onnx_call *c) {
  const double alpha = onnx_float(c, "alpha", 1);
  const uint32_t a = onnx_in(c, 0), b = onnx_in(c, 1);
  if (!a || !b) return false;
  if (alpha == 1) return onnx_out(c, 0, onnx_add(c, "swiglu %%%u, %%%u", a, b));
  const uint32_t gate = onnx_1(c, IR_OP_sigmoid, onnx_2n(c, IR_OP_mul, a, alpha));
  return onnx_out(c, 0, onnx_2(c, IR_OP_mul, onnx_2(c, IR_OP_mul, a, gate), b));
}

bool onnx_op_gelu(onnx_call *c) {
  const bool tangent = !strcmp(onnx_text(c, "approximate", "none"), "tanh");
  const uint32_t x = onnx_in(c, 0);
  return x && onnx_out(c, 0, onnx_add(c, "%s %%%u", tangent ? "gelu_tanh" : "gelu", x));
}

/* Whole numbers are compared and moved as floats, then cut. */
bool onnx_op_shrink(onnx_call *c) {
  const double bound = onnx_float(c, "lambd", 0.5), bias = onnx_float(c, "bias", 0);
  const uint32_t x = onnx_in(c, 0);
  if (!x) return false;
  const int32_t dtype = onnx_type_of(c, x)->dtype;
  const uint32_t real = ir_dtypes[dtype].is_float ? x : onnx_cast(c, x, SNT_F32);
  return onnx_out(c, 0, onnx_cast(c, onnx_add(c, "shrink %%%u, alpha=%a, bias=%a", real, bound, bias), dtype));
}

/* Arguments of the wrong sign do not occur: ONNX's Sign of NaN is left to the primitive. Bounds beyond the type's range are its ends. */
bool onnx_op_clip(onnx_call *c) {
  uint32_t y = onnx_in(c, 0);
  for (uint32_t i = 1; i < 3 && y; i++)
    if (onnx_has(c, i)) y = onnx_2(c, i == 1 ? IR_OP_max : IR_OP_min, y, onnx_scalar_in(c, i));
  return onnx_out(c, 0, y);
}
