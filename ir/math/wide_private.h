/* Transcendental functions of f64: like ir/math/private.h, on 64-bit floats and integers. There is one expansion a function, the same on
   every device: pairs of floats (high + low, about 106 bits) without fused multiply-adds, division and root as the device has them. Values
   are km's; what does not name a type there serves here too. Devices keep denormals of 64-bit floats. */
#ifndef IR_MATH_WIDE_PRIVATE_H
#define IR_MATH_WIDE_PRIVATE_H
#include "ir/math/private.h"

/* ---- operations ---- */
kv kw_f(km *m, double x);
kv kw_u(km *m, uint64_t x);
kv kw_i(km *m, int64_t x);
kv kw_as_f(km *m, kv a);
kv kw_as_u(km *m, kv a);
kv kw_as_i(km *m, kv a);
kv kw_to_f(km *m, kv a);
kv kw_div(km *m, kv a, kv b);
kv kw_sqrt(km *m, kv a);
#define kw_div(m, a, b) IR_LAST_FIRST_2(kw_div, a, b, m)

static const uint64_t KW_INF = 0x7ff0000000000000, KW_NAN = 0x7ff8000000000000, KW_SIGN = 0x8000000000000000, KW_ONE = 0x3ff0000000000000;

/* ---- ir/math/wide.c ---- */
kv kw_poly(km *m, kv x, uint32_t count, const double *c); /* Horner's rule; c[0] belongs to the lowest power */
kv kw_abs_bits(km *m, kv x);
kv kw_abs(km *m, kv x);
kv kw_with_sign(km *m, kv magnitude, kv x);
kv kw_pow2(km *m, kv n);                         /* 2^n for an i64 n in -1022..1023 */
kv kw_pass(km *m, kv x, double tiny, kv result); /* x itself where it is NaN or |x| < tiny */
kv kw_choose(km *m, kv condition, kv a, kv b);   /* a select of bits: no driver may think about NaN */
kv kw_at_most(km *m, kv x, double hi);
kv kw_at_least(km *m, kv x, double lo);

typedef struct kw_pair {
  kv high, low;
} kw_pair;
kw_pair kw_constant(km *m, double high, double low);
kw_pair kw_sum(km *m, kv a, kv b);      /* exact, whatever the sizes */
kw_pair kw_fast_sum(km *m, kv a, kv b); /* exact where |a| >= |b| */
kw_pair kw_product(km *m, kv a, kv b);  /* exact to 2^-106 */
kw_pair kw_add_pairs(km *m, kw_pair a, kw_pair b);
kw_pair kw_multiply_pairs(km *m, kw_pair a, kw_pair b);
kw_pair kw_divide_pairs(km *m, kw_pair a, kw_pair b);
kw_pair kw_root_of(km *m, kw_pair a); /* of what is not negative */
kw_pair kw_negate(km *m, kw_pair a);
kw_pair kw_choose_pair(km *m, kv condition, kw_pair a, kw_pair b);
kw_pair kw_alone(km *m, kv high); /* high + 0 */
#define kw_choose(m, condition, a, b) IR_LAST_FIRST_3(kw_choose, condition, a, b, m)
#define kw_sum(m, a, b) IR_LAST_FIRST_2(kw_sum, a, b, m)
#define kw_fast_sum(m, a, b) IR_LAST_FIRST_2(kw_fast_sum, a, b, m)
#define kw_add_pairs(m, a, b) IR_LAST_FIRST_2(kw_add_pairs, a, b, m)
#define kw_multiply_pairs(m, a, b) IR_LAST_FIRST_2(kw_multiply_pairs, a, b, m)
#define kw_divide_pairs(m, a, b) IR_LAST_FIRST_2(kw_divide_pairs, a, b, m)
#define kw_choose_pair(m, condition, a, b) IR_LAST_FIRST_3(kw_choose_pair, condition, a, b, m)

/* ---- steps that several families use ---- */
kv kw_exp_of(km *m, kw_pair x, int64_t offset); /* e^x 2^offset for x in +-1300: 0 and infinity at its ends */
kv kw_log_of(km *m, kw_pair u, int64_t offset); /* log(u) + offset ln 2 for normal u > 0 */
kw_pair kw_log2_pair(km *m, kv x);              /* of a positive finite x, to about 2^-66 of itself */

/* ---- the functions ---- */
km_function kw_exp, kw_exp2, kw_expm1, kw_sinh, kw_cosh, kw_tanh, kw_sigmoid, kw_log, kw_log2, kw_log1p, kw_asinh, kw_acosh, kw_atanh;
km_function kw_sin, kw_cos, kw_tan, kw_asin, kw_acos, kw_atan, kw_atan2, kw_pow, kw_erf, kw_rsqrt, kw_rem;
#endif
