/* Elementwise operators on known numbers. Whole numbers are expressions over symbols; reals are such an expression over a literal divisor.
   What cannot be said that way (an order of two symbols, say) is left to the operator's row. */
#include "onnx/known.h"

enum { MAX_DEN = 1 << 30 };

static bool is_real(int32_t dtype) { return ir_dtypes[dtype].is_float; }

/* Lowest terms where that can be seen. */
static onnx_number reduced(const known_call *k, ir_expr num, int64_t den) {
  int64_t divisor = expr_multiple_of(k->pool, num);
  int64_t a = divisor ? divisor : den, b = den;
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a > 1 ? (onnx_number){expr_div(k->pool, num, a), den / a} : (onnx_number){num, den};
}

static bool scale(const known_call *k, onnx_number a, onnx_number b, ir_expr *x, ir_expr *y, int64_t *den) {
  if (a.den > MAX_DEN / b.den) return false;
  *x = a.den == b.den ? a.num : expr_mul(k->pool, a.num, expr_int(k->pool, b.den));
  *y = a.den == b.den ? b.num : expr_mul(k->pool, b.num, expr_int(k->pool, a.den));
  *den = a.den == b.den ? a.den : a.den * b.den;
  return true;
}

static bool divide(const known_call *k, onnx_number a, onnx_number b, bool real, onnx_number *out) {
  int64_t x, y, lo, hi;
  if (real) {
    if (!expr_is_const(k->pool, b.num, &y) || y == 0 || y > MAX_DEN || y < -MAX_DEN) return false;
    const int64_t size = y < 0 ? -y : y;
    if (a.den > MAX_DEN / size) return false;
    *out = reduced(k, expr_mul(k->pool, a.num, expr_int(k->pool, y < 0 ? -b.den : b.den)), a.den * size);
    return true;
  }
  if (known_literal(k, a, &x) && known_literal(k, b, &y)) {
    if (y == 0 || (x == INT64_MIN && y == -1)) return false;
    *out = known_whole(expr_int(k->pool, x / y));
    return true;
  }
  expr_bounds(k->pool, a.num, &lo, &hi);
  if (lo < 0) return false;
  expr_bounds(k->pool, b.num, &lo, &hi);
  if (lo <= 0) return false;
  *out = known_whole(expr_div(k->pool, a.num, b.num));
  return true;
}

static bool modulo(const known_call *k, onnx_number a, onnx_number b, bool c_style, onnx_number *out) {
  int64_t x, y, lo, hi;
  if (a.den != 1 || b.den != 1) return false;
  if (known_literal(k, a, &x) && known_literal(k, b, &y)) {
    if (y == 0 || y == -1) return false;
    int64_t rest = x % y;
    if (!c_style && rest && (rest < 0) != (y < 0)) rest += y;
    *out = known_whole(expr_int(k->pool, rest));
    return true;
  }
  expr_bounds(k->pool, b.num, &lo, &hi);
  if (lo <= 0) return false;
  expr_bounds(k->pool, a.num, &lo, &hi);
  if (c_style && lo < 0) return false;
  *out = known_whole(expr_mod(k->pool, a.num, b.num));
  return true;
}

static bool combine(known_call *k, onnx_number a, onnx_number b, onnx_number *out) {
  const char *op = k->c->node->op;
  const bool real = is_real(k->in[0].type.dtype);
  ir_expr x, y;
  int64_t den;
  if (!strcmp(op, "Div")) return divide(k, a, b, real, out);
  if (!strcmp(op, "Mod")) return modulo(k, a, b, onnx_int(k->c, "fmod", 0) != 0, out);
  if (!strcmp(op, "Mul")) {
    if (a.den > MAX_DEN / b.den) return false;
    *out = reduced(k, expr_mul(k->pool, a.num, b.num), a.den * b.den);
    return true;
  }
  if (!scale(k, a, b, &x, &y, &den)) return false;
  if (!strcmp(op, "Add")) x = expr_add(k->pool, x, y);
  else if (!strcmp(op, "Sub")) x = expr_sub(k->pool, x, y);
  else if (!strcmp(op, "Min")) x = expr_min(k->pool, x, y);
  else x = expr_max(k->pool, x, y);
  *out = reduced(k, x, den);
  return true;
}

/* At least the second, at most the third, where they are there. */
known_result known_clip(known_call *k) {
  const known_list *low = &k->in[1], *high = &k->in[2];
  if (k->c->opset < 11 || !known_make(k, k->in[0].type.dtype, k->in[0].type.rank, k->in[0].type.dims)) return KNOWN_NO; /* attributes */
  for (uint32_t i = 0; i < k->out.count; i++) {
    onnx_number *at = &k->out.at[i];
    ir_expr x, y;
    int64_t den;
    *at = k->in[0].at[i];
    for (const known_list *bound = low; bound <= high; bound++) {
      if (!bound->count) continue;
      if (!scale(k, *at, bound->at[0], &x, &y, &den)) return KNOWN_NO;
      *at = reduced(k, bound == low ? expr_max(k->pool, x, y) : expr_min(k->pool, x, y), den);
    }
  }
  return KNOWN_YES;
}

/* 1: holds, 0: does not, -1: cannot be said. */
static int compare(known_call *k, onnx_number a, onnx_number b) {
  const char *op = k->c->node->op;
  ir_expr x, y;
  int64_t den;
  if (!scale(k, a, b, &x, &y, &den)) return -1;
  if (!strcmp(op, "Equal")) return x == y ? 1 : expr_proves_lt(k->pool, x, y) || expr_proves_lt(k->pool, y, x) ? 0 : -1;
  const bool swapped = op[0] == 'G', weak = strstr(op, "Equal") != NULL;
  const ir_expr less = swapped ? y : x, more = swapped ? x : y;
  if (weak) return expr_proves_le(k->pool, less, more) ? 1 : expr_proves_lt(k->pool, more, less) ? 0 : -1;
  return expr_proves_lt(k->pool, less, more) ? 1 : expr_proves_le(k->pool, more, less) ? 0 : -1;
}

/* ---- broadcasting ---- */
static bool broadcast_shape(known_call *k, int32_t dtype) {
  const ir_tensor *types[16];
  ir_tensor shape;
  for (uint32_t i = 0; i < k->in_count; i++) {
    if (!k->in[i].at) return false;
    types[i] = &k->in[i].type;
  }
  return onnx_common_shape(k->c, k->in_count, types, &shape) && known_make(k, dtype, shape.rank, shape.dims);
}

static onnx_number element(const known_call *k, uint32_t input, uint32_t index) {
  const ir_tensor *out = &k->out.type, *in = &k->in[input].type;
  uint32_t at = 0, stride = 1;
  for (uint32_t d = 0; d < in->rank; d++) {
    const uint32_t from_end = out->rank - 1 - d, axis = in->rank - 1 - d;
    const uint32_t position = index % (uint32_t)out->dims[from_end];
    index /= (uint32_t)out->dims[from_end];
    if (in->dims[axis] != 1) at += position * stride;
    stride *= (uint32_t)in->dims[axis];
  }
  return k->in[input].at[at];
}

known_result known_binary(known_call *k) {
  if (k->in_count < 1 || !broadcast_shape(k, k->in[0].type.dtype)) return KNOWN_NO;
  for (uint32_t i = 0; i < k->out.count; i++) {
    k->out.at[i] = element(k, 0, i);
    for (uint32_t n = 1; n < k->in_count; n++)
      if (!combine(k, k->out.at[i], element(k, n, i), &k->out.at[i])) return KNOWN_NO;
  }
  return KNOWN_YES;
}

known_result known_compare(known_call *k) {
  if (k->in_count != 2 || !broadcast_shape(k, SNT_BOOL)) return KNOWN_NO;
  for (uint32_t i = 0; i < k->out.count; i++) {
    const int holds = compare(k, element(k, 0, i), element(k, 1, i));
    if (holds < 0) return KNOWN_NO;
    k->out.at[i] = known_whole(holds);
  }
  return KNOWN_YES;
}

known_result known_logic(known_call *k) {
  int64_t a, b = 0;
  if (!broadcast_shape(k, SNT_BOOL)) return KNOWN_NO;
  for (uint32_t i = 0; i < k->out.count; i++) {
    if (!known_literal(k, element(k, 0, i), &a) || (k->in_count > 1 && !known_literal(k, element(k, 1, i), &b))) return KNOWN_NO;
    k->out.at[i] = known_whole(k->in_count == 1 ? !a : k->c->node->op[0] == 'A' ? a && b : a || b);
  }
  return KNOWN_YES;
}

known_result known_where(known_call *k) {
  int64_t condition;
  if (k->in_count != 3 || !broadcast_shape(k, k->in[1].type.dtype)) return KNOWN_NO;
  for (uint32_t i = 0; i < k->out.count; i++) {
    if (!known_literal(k, element(k, 0, i), &condition)) return KNOWN_NO;
    k->out.at[i] = element(k, condition ? 1 : 2, i);
  }
  return KNOWN_YES;
}

static bool apply(known_call *k, onnx_number a, onnx_number *out) {
  const char *op = k->c->node->op;
  const ir_expr negative = expr_sub(k->pool, 0, a.num);
  int64_t lo, hi;
  if (!strcmp(op, "Neg")) *out = (onnx_number){negative, a.den};
  else if (!strcmp(op, "Floor")) *out = known_whole(expr_div(k->pool, a.num, a.den));
  else if (!strcmp(op, "Ceil")) *out = known_whole(expr_ceil_div(k->pool, a.num, a.den));
  else {
    expr_bounds(k->pool, a.num, &lo, &hi);
    if (lo < 0 && hi > 0) return false;
    const ir_expr below = strcmp(op, "Relu") != 0 ? negative : 0;
    *out = (onnx_number){lo >= 0 ? a.num : below, a.den};
  }
  return true;
}

known_result known_unary(known_call *k) {
  if (!known_make(k, k->in[0].type.dtype, k->in[0].type.rank, k->in[0].type.dims)) return KNOWN_NO;
  for (uint32_t i = 0; i < k->out.count; i++)
    if (!apply(k, k->in[0].at[i], &k->out.at[i])) return KNOWN_NO;
  return KNOWN_YES;
}

static bool cast(known_call *k, onnx_number a, int32_t to, onnx_number *out) {
  int64_t value, lo, hi;
  *out = a;
  if (is_real(to)) return true;
  expr_bounds(k->pool, a.num, &lo, &hi);
  if (a.den != 1 && lo < 0) return false;
  if (a.den != 1) *out = known_whole(expr_div(k->pool, a.num, a.den)); /* towards zero */
  if (to == SNT_BOOL) {
    if (a.den == 1 && lo > 0) *out = known_whole(1);
    else if (known_literal(k, a, &value)) *out = known_whole(value != 0);
    else return false;
  } else if (known_literal(k, *out, &value) && !is_real(k->in[0].type.dtype)) {
    int64_t room = 0;
    ir_dtype_store_int(to, &room, 0, value);
    *out = known_whole(expr_int(k->pool, ir_dtype_load_int(to, &room, 0)));
  }
  return true;
}

known_result known_cast(known_call *k) {
  const int32_t to = onnx_dtype_attr(k->c, "to", 0);
  if (!to) return k->c->refused ? KNOWN_REFUSED : KNOWN_NO;
  if (!known_make(k, to, k->in[0].type.rank, k->in[0].type.dims)) return KNOWN_NO;
  for (uint32_t i = 0; i < k->out.count; i++)
    if (!cast(k, k->in[0].at[i], to, &k->out.at[i])) return KNOWN_NO;
  return KNOWN_YES;
}
