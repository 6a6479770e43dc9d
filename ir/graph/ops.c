/* The operator table of the graph IR and the meaning of its scalar rows, both read from ops.def.
   Integer operands arrive as int64: sign-extended for signed types, zero-extended for unsigned ones; results are wrapped to the type. */
#include "ir/graph.h"
#include <math.h>

/* The words that the cells of ops.def use. */
// clang-format off
enum {
  POINTWISE = IR_POINTWISE, MOVEMENT = IR_MOVEMENT, REDUCE = IR_REDUCE, SCAN = IR_SCAN, COMMUTES = IR_COMMUTES, EXACT = IR_EXACT,
  SOURCE = IR_SOURCE, EXPENSIVE = IR_EXPENSIVE, F = IR_CLASS_F, I = IR_CLASS_I, B = IR_CLASS_B, VARIADIC = IR_VARIADIC
};
// clang-format on
#define A(key) (UINT64_C(1) << IR_ATTR_##key)

/* Names are identifiers in the table, so they have "_" where the text form has "."; longer ones than 15 letters would not fit below. */
#define LETTER(text, i) ((i) < sizeof(text) ? (text)[(i) < sizeof(text) ? (i) : 0] : 0)
#define DOTTED(text, i) (LETTER(text, i) == '_' ? '.' : LETTER(text, i))
#define FOUR(text, i) DOTTED(text, i), DOTTED(text, i + 1), DOTTED(text, i + 2), DOTTED(text, i + 3)
// clang-format off
const ir_op_info ir_ops[IR_OP_COUNT] = {
  [IR_OP_NONE] = {.name = "none"},
#define OP(id, operands, result, bits, types, keys, ulp, feval, ieval)                                                              \
  [IR_OP_##id] = {.name = {FOUR(#id, 0), FOUR(#id, 4), FOUR(#id, 8), FOUR(#id, 12)}, .arity = operands, .rule = IR_RULE_##result, .flags = bits, .classes = types, .attrs = keys, \
                  .max_ulp = ulp},
#include "ir/ops.def"
#undef OP
};
// clang-format on

const ir_attr_info ir_attr_infos[IR_ATTR_COUNT] = {
    [IR_ATTR_NONE] = {"none", IR_KIND_FLAG},
#define ATTR(id, type) [IR_ATTR_##id] = {#id, IR_KIND_##type},
#include "ir/attrs.def"
#undef ATTR
};
_Static_assert(IR_ATTR_COUNT <= 64, "attribute masks are 64 bits");

/* ---- integer arithmetic with a meaning for every operand ---- */
static int64_t ir_wrap_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t ir_wrap_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static int64_t ir_wrap_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static bool ir_int_lt(int64_t a, int64_t b, bool u) { return u ? (uint64_t)a < (uint64_t)b : a < b; }

/* Truncates; x / 0 = 0; the one overflowing quotient wraps. */
static int64_t ir_int_div(int64_t a, int64_t b, bool u) {
  if (b == 0) return 0;
  if (u) return (int64_t)((uint64_t)a / (uint64_t)b);
  return b == -1 ? ir_wrap_sub(0, a) : a / b;
}

static int64_t ir_int_rem(int64_t a, int64_t b, bool u) {
  if (b == 0) return 0;
  if (u) return (int64_t)((uint64_t)a % (uint64_t)b);
  return b == -1 ? 0 : a % b;
}

static int64_t ir_int_mod(int64_t a, int64_t b, bool u) {
  int64_t r = ir_int_rem(a, b, u);
  return !u && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static double ir_float_mod(double a, double b) {
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static uint64_t low_bits(int64_t a, uint32_t bits) { return bits >= 64 ? (uint64_t)a : (uint64_t)a & ((UINT64_C(1) << bits) - 1); }

static int64_t ir_popcount(int64_t a, uint32_t bits) {
  int64_t n = 0;
  for (uint64_t rest = low_bits(a, bits); rest; rest &= rest - 1) n++;
  return n;
}

static int64_t ir_clz(int64_t a, uint32_t bits) {
  int64_t n = (int64_t)bits;
  for (uint64_t rest = low_bits(a, bits); rest; rest >>= 1) n--;
  return n;
}

/* Shift amounts count modulo the width. */
static int64_t ir_shl(int64_t a, int64_t b, uint32_t bits) { return (int64_t)((uint64_t)a << ((uint64_t)b & (bits - 1))); }
static int64_t ir_shr(int64_t a, int64_t b, uint32_t bits, bool u) {
  uint32_t amount = (uint32_t)((uint64_t)b & (bits - 1));
  if (u) return (int64_t)(low_bits(a, bits) >> amount);
  return a < 0 ? ~(int64_t)(~(uint64_t)a >> amount) : a >> amount;
}

static int64_t wrap_to(int64_t value, int32_t dtype, uint32_t bits) {
  if (dtype == SNT_BOOL) return value != 0;
  if (bits >= 64) return value;
  uint64_t low = low_bits(value, bits);
  bool negative = ir_dtypes[dtype].is_signed && (low >> (bits - 1));
  return (int64_t)(negative ? low | ~((UINT64_C(1) << bits) - 1) : low);
}

double ir_op_eval(ir_op op, double a, double b, double c) {
  switch (op) {
#define OP(id, operands, result, bits, types, keys, ulp, feval, ieval) \
  case IR_OP_##id:                                                     \
    return (double)(feval);
#include "ir/ops.def"
#undef OP
  default: return 0;
  }
}

static int64_t eval_int(ir_op op, int64_t a, int64_t b, int64_t c, uint32_t bits, bool u) {
  switch (op) {
#define OP(id, operands, result, flag_bits, types, keys, ulp, feval, ieval) \
  case IR_OP_##id:                                                          \
    return (int64_t)(ieval);
#include "ir/ops.def"
#undef OP
  default: return 0;
  }
}

int64_t ir_op_eval_int(ir_op op, int64_t a, int64_t b, int64_t c, int32_t dtype) {
  uint32_t bits = dtype == SNT_BOOL ? 1 : ir_dtypes[dtype].bits;
  return wrap_to(eval_int(op, a, b, c, bits, !ir_dtypes[dtype].is_signed), dtype, bits);
}

ir_op ir_op_find(const char *name, size_t length) {
  for (uint32_t op = 1; op < IR_OP_COUNT; op++)
    if (strncmp(ir_ops[op].name, name, length) == 0 && strlen(ir_ops[op].name) == length) return (ir_op)op;
  return IR_OP_NONE;
}
