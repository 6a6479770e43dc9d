/* Fourier transforms as contractions with a table of the signal's length, and determinants. */
#include "ir/composites/private.h"
#include <math.h>

enum { MOST_DETERMINANT = 6 };
static const double tau = 6.28318530717958647692;

typedef struct transform {
  int64_t length, bins;
  uint32_t parts; /* 1: a real signal */
  int32_t dtype;
  bool inverse;
} transform;

static void put_number(void *table, int32_t dtype, size_t at, double value) {
  if (dtype == SNT_F64) ((double *)table)[at] = value;
  else ((float *)table)[at] = (float)value;
}

/* The table [given, parts, bins, 2] of exp(-i tau n k / length), conjugated and divided by the length for the inverse. */
static uint32_t put_table(composite_call *c, int64_t given, const transform *t) {
  const ir_tensor type = {.dtype = (uint8_t)t->dtype, .rank = 4, .dims = {given, t->parts, t->bins, 2}};
  const size_t size = t->dtype == SNT_F64 ? sizeof(double) : sizeof(float);
  if (given * t->bins > 1 << 22) return call_mistake(c, "a table of %lld entries", (long long)(given * t->bins));
  void *table = ir_arena_take(c->g->arena, (size_t)(given * t->bins) * t->parts * 2 * size, size);
  if (!table) return call_mistake(c, "out of memory");
  for (int64_t n = 0; n < given; n++)
    for (int64_t k = 0; k < t->bins; k++) {
      const double angle = tau * (double)(n * k % t->length) / (double)t->length, scale = t->inverse ? 1 / (double)t->length : 1;
      const double re = cos(angle) * scale, im = (t->inverse ? sin(angle) : -sin(angle)) * scale;
      for (uint32_t part = 0; part < t->parts; part++) {
        const size_t at = (size_t)((n * t->parts + part) * t->bins + k) * 2;
        put_number(table, t->dtype, at, part ? -im : re);
        put_number(table, t->dtype, at + 1, part ? re : im);
      }
    }
  const ir_const data = {.kind = IR_CONST_DATA, .data = table};
  return ir_add_const(c->g, &type, &data);
}

static bool read_transform(composite_call *c, ir_expr extent, ir_expr parts, transform *t) {
  int64_t own, given_parts;
  if (!expr_is_const(c->g->pool, extent, &own) || own < 1) return call_mistake(c, "the length of the signal must be fixed"), false;
  if (!expr_is_const(c->g->pool, parts, &given_parts) || given_parts < 1 || given_parts > 2)
    return call_mistake(c, "the last axis must have extent 1 (real) or 2 (complex)"), false;
  t->length = call_int(c, IR_PARAM_length, own);
  t->parts = (uint32_t)given_parts;
  t->dtype = type_of(c, c->args[0])->dtype == SNT_F64 ? SNT_F64 : SNT_F32;
  t->inverse = call_has(c, IR_PARAM_inverse);
  if (t->length < 1 || t->length > 1 << 14) return call_mistake(c, "length %lld", (long long)t->length), false;
  t->bins = call_has(c, IR_PARAM_onesided) ? t->length / 2 + 1 : t->length;
  return true;
}

/* x [.., n at axis, .., parts]: [.., bins, .., 2] */
static uint32_t put_transform(composite_call *c, uint32_t x, uint32_t axis, const transform *t, int64_t taken) {
  const uint32_t table = put_table(c, taken, t);
  contract_desc d = {.rhs = {{20, 21, 22, 23}, 4}};
  if (!x || !table) return 0;
  const uint32_t rank = type_of(c, x)->rank;
  for (uint32_t i = 0; i + 1 < rank; i++) {
    label_add(&d.lhs, i == axis ? 20 : (int64_t)i);
    label_add(&d.out, i == axis ? 22 : (int64_t)i);
  }
  label_add(&d.lhs, 21);
  label_add(&d.out, 23);
  return step_contract(c, x, table, &d);
}

void build_dft(composite_call *c) {
  uint32_t x = step_widen(c, c->args[0]);
  const ir_tensor shape = *type_of(c, x);
  transform t;
  if (shape.rank < 2 || !ir_dtypes[shape.dtype].is_float) {
    call_mistake(c, "needs a signal of floats with a last axis of 1 or 2 parts");
    return;
  }
  const uint32_t axis = call_axis(c, IR_PARAM_axis, -2, shape.rank);
  if (axis == shape.rank - 1u || !read_transform(c, shape.dims[axis], shape.dims[shape.rank - 1], &t)) return;
  int64_t taken = 0;
  expr_is_const(c->g->pool, shape.dims[axis], &taken);
  if (taken > t.length) x = step_slice(c, x, axis, 0, taken = t.length, 1);
  c->results[0] = step_cast(c, put_transform(c, x, axis, &t, taken), type_of(c, c->args[0])->dtype);
}

/* x [batch, samples, parts] [, window [length]]: frames every `step` samples, transformed. */
void build_stft(composite_call *c) {
  const uint32_t x = step_widen(c, c->args[0]);
  const ir_tensor shape = *type_of(c, x);
  transform t;
  const ir_expr length = c->args[1] ? type_of(c, c->args[1])->dims[0] : call_expr(c, IR_PARAM_length, 0);
  if (shape.rank != 3 || !ir_dtypes[shape.dtype].is_float || (c->args[1] && type_of(c, c->args[1])->rank != 1)) {
    call_mistake(c, "needs x [batch, samples, parts] of floats and a window of rank 1");
    return;
  }
  if (!read_transform(c, length, shape.dims[2], &t)) return;
  const window_desc w = {.axis = 1, .count = 1, .size = {t.length}, .stride = {call_int(c, IR_PARAM_step, 1)}, .dilation = {1}};
  static const uint32_t parts_last[] = {0, 1, 3, 2};
  uint32_t frames = step_transpose(c, step_window(c, x, &w), parts_last); /* [batch, frames, length, parts] */
  if (!frames) return;
  const ir_tensor type = *type_of(c, frames);
  if (c->args[1]) frames = step_2(c, IR_OP_mul, frames, step_along(c, step_widen(c, c->args[1]), 2, &type));
  c->results[0] = step_cast(c, put_transform(c, frames, 2, &t, t.length), type_of(c, c->args[0])->dtype);
}

/* ---- determinant: minors of the last rows by sets of columns, each from those of one row less ---- */
static uint32_t element(composite_call *c, uint32_t x, uint32_t row, uint32_t column) {
  const ir_tensor shape = *type_of(c, x);
  const uint32_t line = step_slice(c, x, shape.rank - 2u, row, 1, 1);
  return step_reshape(c, step_slice(c, line, shape.rank - 1u, column, 1, 1), shape.rank - 2u, shape.dims);
}

static uint32_t expand_minor(composite_call *c, uint32_t x, uint32_t row, uint32_t set, const uint32_t *minors) {
  uint32_t sum = 0;
  bool odd = false;
  for (uint32_t column = 0; set >> column; column++) {
    if (!(set >> column & 1)) continue;
    const uint32_t own = element(c, x, row, column), rest = minors[set & ~(1u << column)];
    const uint32_t part = rest ? step_2(c, IR_OP_mul, own, rest) : own;
    sum = sum ? step_2(c, odd ? IR_OP_sub : IR_OP_add, sum, part) : part;
    odd = !odd;
  }
  return sum;
}

void build_det(composite_call *c) {
  const uint32_t x = step_widen(c, c->args[0]);
  const ir_tensor shape = *type_of(c, x);
  int64_t n;
  if (shape.rank < 2 || shape.dims[shape.rank - 1] != shape.dims[shape.rank - 2] ||
      !expr_is_const(c->g->pool, shape.dims[shape.rank - 1], &n) || n < 1 || n > MOST_DETERMINANT) {
    call_mistake(c, "needs square matrices of %d rows at most", MOST_DETERMINANT);
    return;
  }
  uint32_t minors[1 << MOST_DETERMINANT] = {0};
  for (uint32_t set = 1; set < 1u << n; set++) {
    uint32_t size = 0;
    for (uint32_t i = 0; i < n; i++) size += set >> i & 1;
    minors[set] = expand_minor(c, x, (uint32_t)n - size, set, minors);
  }
  c->results[0] = step_cast(c, minors[(1u << n) - 1], type_of(c, c->args[0])->dtype);
}
