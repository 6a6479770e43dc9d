/* The pointwise operators on contiguous blocks, one loop an operator. What has no loop here goes through the meaning in ops.def. */
#include "ir/fused.h"
#include "ir/eval/fast.h"

#include <math.h>

#define LOOP(T, expression)              \
  for (uint32_t i = 0; i < count; i++) { \
    const T x = a[i];                    \
    out[i] = (expression);               \
  }                                      \
  return;
#define LOOP2(T, expression)             \
  for (uint32_t i = 0; i < count; i++) { \
    const T x = a[i], y = b[i];          \
    out[i] = (expression);               \
  }                                      \
  return;

void fast_op_f32(ir_op op, uint32_t count, const float *a, const float *b, const float *c, float *out) {
  switch (op) {
  case IR_OP_neg: LOOP(float, -x)
  case IR_OP_abs: LOOP(float, fabsf(x))
  case IR_OP_sqrt: LOOP(float, sqrtf(x))
  case IR_OP_rsqrt: LOOP(float, 1 / sqrtf(x))
  case IR_OP_recip: LOOP(float, 1 / x)
  case IR_OP_floor: LOOP(float, floorf(x))
  case IR_OP_ceil: LOOP(float, ceilf(x))
  case IR_OP_trunc: LOOP(float, truncf(x))
  case IR_OP_round: LOOP(float, nearbyintf(x))
  case IR_OP_exp: LOOP(float, expf(x))
  case IR_OP_exp2: LOOP(float, exp2f(x))
  case IR_OP_log: LOOP(float, logf(x))
  case IR_OP_log2: LOOP(float, log2f(x))
  case IR_OP_tanh: LOOP(float, tanhf(x))
  case IR_OP_sigmoid: LOOP(float, 1 / (1 + expf(-x)))
  case IR_OP_erf: LOOP(float, erff(x))
  case IR_OP_sin: LOOP(float, sinf(x))
  case IR_OP_cos: LOOP(float, cosf(x))
  case IR_OP_add: LOOP2(float, x + y)
  case IR_OP_sub: LOOP2(float, x - y)
  case IR_OP_mul: LOOP2(float, x *y)
  case IR_OP_div: LOOP2(float, x / y)
  case IR_OP_min: LOOP2(float, x < y || x != x ? x : y)
  case IR_OP_max: LOOP2(float, x > y || x != x ? x : y)
  case IR_OP_fma:
    for (uint32_t i = 0; i < count; i++) out[i] = ir_fmaf(a[i], b[i], c[i]);
    return;
  default: break;
  }
  uint32_t arity = ir_ops[op].arity;
  for (uint32_t i = 0; i < count; i++)
    out[i] = (float)ir_op_eval(op, (double)a[i], arity > 1 ? (double)b[i] : 0, arity > 2 ? (double)c[i] : 0);
}

void fast_compare_f32(ir_op op, uint32_t count, const float *a, const float *b, uint8_t *out) {
  switch (op) {
  case IR_OP_isnan: LOOP(float, x != x)
  case IR_OP_isinf: LOOP(float, isinf(x) != 0)
  case IR_OP_eq: LOOP2(float, x == y)
  case IR_OP_ne: LOOP2(float, x != y)
  case IR_OP_lt: LOOP2(float, x < y)
  case IR_OP_le: LOOP2(float, x <= y)
  case IR_OP_gt: LOOP2(float, x > y)
  default: LOOP2(float, x >= y)
  }
}

/* Results are wrapped to the type when they are stored; only u64 does not compare as int64. */
void fast_op_int(ir_op op, int32_t dtype, uint32_t count, const int64_t *const operands[3], int64_t *out) {
  const int64_t *a = operands[0], *b = operands[1], *c = operands[2];
  bool plain = dtype != SNT_U64;
  switch (op) {
  case IR_OP_add: LOOP2(int64_t, (int64_t)((uint64_t)x + (uint64_t)y))
  case IR_OP_sub: LOOP2(int64_t, (int64_t)((uint64_t)x - (uint64_t)y))
  case IR_OP_mul: LOOP2(int64_t, (int64_t)((uint64_t)x * (uint64_t)y))
  case IR_OP_and: LOOP2(int64_t, x & y)
  case IR_OP_or: LOOP2(int64_t, x | y)
  case IR_OP_xor: LOOP2(int64_t, x ^ y)
  case IR_OP_eq: LOOP2(int64_t, x == y)
  case IR_OP_ne: LOOP2(int64_t, x != y)
  case IR_OP_lt:
    if (!plain) break;
    LOOP2(int64_t, x < y)
  case IR_OP_le:
    if (!plain) break;
    LOOP2(int64_t, x <= y)
  case IR_OP_gt:
    if (!plain) break;
    LOOP2(int64_t, x > y)
  case IR_OP_ge:
    if (!plain) break;
    LOOP2(int64_t, x >= y)
  case IR_OP_min:
    if (!plain) break;
    LOOP2(int64_t, x < y ? x : y)
  case IR_OP_max:
    if (!plain) break;
    LOOP2(int64_t, x > y ? x : y)
  default: break;
  }
  uint32_t arity = ir_ops[op].arity;
  for (uint32_t i = 0; i < count; i++) out[i] = ir_op_eval_int(op, a[i], arity > 1 ? b[i] : 0, arity > 2 ? c[i] : 0, dtype);
}
