/* How an expansion is written: one call an operation, values of type kv, all of one width. The width, the freedom to fuse, the wanted
   accuracy and the proven domain are in km. Expansions choose by km while they are built and never by a value. */
#ifndef IR_MATH_PRIVATE_H
#define IR_MATH_PRIVATE_H
#include "ir/kir_pass.h"

typedef uint32_t kv; /* a value of the kernel being built */
enum { KM_TABLE = 16 };
typedef struct km {
  kir_kernel *k;
  uint8_t lanes;
  bool tables;    /* a vector is a table of KM_TABLE numbers (caps.permute), steps are fused, and results may be another's of equal error */
  bool fma;       /* a fused multiply-add exists and is fast */
  bool exact_div; /* division and 1/sqrt need no correction */
  bool same_bits; /* reproducible mode: nothing may depend on the device */
  bool repairs;   /* and the device's own division or root is not exact: ir/math/exact.c */
  bool loose;     /* the cheap variant is wanted */
  bool ieee;      /* sums and products give NaN and infinity where they should: no tests for what comes out by itself */
  bool own_exp2;  /* exp may err by KIR_OWN_EXP, and the device has an exp2 */
  bool may_flush; /* results below 2^-126 may become 0 everywhere */
  bool has_dom;   /* the argument is proven to lie in lo..hi, so it is no NaN either; else it may be NaN beside what lies there */
  float lo, hi;
} km;
typedef kv km_function(km *m, kv a, kv b); /* b is 0 where the function has one argument */

/* A row of ir/kir_math.def; null: not one of them. */
typedef struct kir_math_row {
  km_function *expand;
  float ulp, cheap, cheap_exact, cheap_fused;
} kir_math_row;
const kir_math_row *kir_math_find(kir_op);
float kir_math_cheap(const kir_math_row *, bool fused, bool exact_div); /* promised error of the cheap variant; 0: there is none */

/* ---- operations: ir/math/operations.c ---- */
kv km_f(km *m, double x);
kv km_u(km *m, uint32_t x);
kv km_i(km *m, int32_t x);
kv km_as_f(km *m, kv a);
kv km_as_u(km *m, kv a);
kv km_as_i(km *m, kv a);
kv km_to_f(km *m, kv a);
kv km_to_i(km *m, kv a);
/* Each is the kernel's operation of that name: KM_1 of one value, KM_2 of two. */
// clang-format off
#define KM_OPERATIONS(KM_1, KM_2) \
  KM_1(neg) KM_1(abs) KM_1(not) \
  KM_2(add) KM_2(sub) KM_2(mul) KM_2(mulhi) KM_2(and) KM_2(or) KM_2(xor) KM_2(shl) KM_2(shr) \
  KM_2(lt) KM_2(le) KM_2(gt) KM_2(ge) KM_2(eq) KM_2(ne)
#define KM_1(name) kv km_##name(km *m, kv a);
#define KM_2(name) kv km_##name(km *m, kv a, kv b);
KM_OPERATIONS(KM_1, KM_2)
#undef KM_1
#undef KM_2
// clang-format on
kv km_fma(km *m, kv a, kv b, kv c);
kv km_select(km *m, kv condition, kv a, kv b);
#define km_add(m, a, b) IR_LAST_FIRST_2(km_add, a, b, m)
#define km_sub(m, a, b) IR_LAST_FIRST_2(km_sub, a, b, m)
#define km_mul(m, a, b) IR_LAST_FIRST_2(km_mul, a, b, m)
#define km_mulhi(m, a, b) IR_LAST_FIRST_2(km_mulhi, a, b, m)
#define km_and(m, a, b) IR_LAST_FIRST_2(km_and, a, b, m)
#define km_or(m, a, b) IR_LAST_FIRST_2(km_or, a, b, m)
#define km_xor(m, a, b) IR_LAST_FIRST_2(km_xor, a, b, m)
#define km_shl(m, a, b) IR_LAST_FIRST_2(km_shl, a, b, m)
#define km_shr(m, a, b) IR_LAST_FIRST_2(km_shr, a, b, m)
#define km_lt(m, a, b) IR_LAST_FIRST_2(km_lt, a, b, m)
#define km_le(m, a, b) IR_LAST_FIRST_2(km_le, a, b, m)
#define km_gt(m, a, b) IR_LAST_FIRST_2(km_gt, a, b, m)
#define km_ge(m, a, b) IR_LAST_FIRST_2(km_ge, a, b, m)
#define km_eq(m, a, b) IR_LAST_FIRST_2(km_eq, a, b, m)
#define km_ne(m, a, b) IR_LAST_FIRST_2(km_ne, a, b, m)
#define km_fma(m, a, b, c) IR_LAST_FIRST_3(km_fma, a, b, c, m)
#define km_select(m, condition, a, b) IR_LAST_FIRST_3(km_select, condition, a, b, m)
kv km_one_where(km *m, kv condition);                                          /* 1 or 0 */
kv km_with_error(km *m, kir_op op, float ulp, uint32_t count, const kv *args); /* the device's own, allowed to be off by so much */
kv km_div(km *m, kv a, kv b);       /* within 2.5 ULP: the legaliser must not correct it; rounded correctly in reproducible mode */
kv km_inverse_root(km *m, kv a);    /* 1 / sqrt within 6 ULP */
kv km_exact_div(km *m, kv a, kv b); /* rounded correctly whatever the device's own division does: ir/math/exact.c */
kv km_exact_sqrt(km *m, kv a);
#define km_div(m, a, b) IR_LAST_FIRST_2(km_div, a, b, m)
/* A magnitude as m * 2^(e - 23), m in [2^23, 2^24); zero, infinity and NaN come out as something that later selects replace. */
typedef struct km_parts {
  kv bits, m, e;
} km_parts;
km_parts km_parts_of(km *m, kv x);
/* q + rest / divisor in units of the last place of 2^e, q in [2^23, 2^24): as float bits, rounded once, also to a denormal. */
kv km_rounded(km *m, kv q, kv rest, kv divisor, kv e);

/* ---- ir/math/common.c ---- */
kv km_mad(km *m, kv a, kv b, kv c);
kv km_poly(km *m, kv x, uint32_t count, const float *c);
kv km_odd_quotient(km *m, kv x, double limit, uint32_t count, const float *p, const float *q);
kv km_abs_bits(km *m, kv x);
kv km_with_sign(km *m, kv magnitude, kv x);
kv km_beyond(km *m, kv x, int32_t most, kv result);
kv km_pass(km *m, kv x, uint32_t tiny, kv result);
km km_of_abs(const km *m);
bool km_is_finite(const km *m);
kv km_at_most(km *m, kv x, double hi);
kv km_at_least(km *m, kv x, double lo);
kv km_within(km *m, kv x, double limit);
kv km_over(km *m, kv x, double limit, kv result);
kv km_sum_tail(km *m, kv a, kv b, kv s);
kv km_top_half(km *m, kv x);
kv km_product_tail(km *m, kv a, kv b, kv p);
kv km_quotient(km *m, kv a, kv b, kv b_tail, kv *tail);
kv km_root(km *m, kv z, kv z_tail, kv *tail);
kv km_from_table(km *m, const float *table, kv number); /* by the last four bits of the number; m->tables */
#define km_mad(m, a, b, c) IR_LAST_FIRST_3(km_mad, a, b, c, m)
#define km_over(m, x, limit, result) IR_LAST_FIRST_3(km_over, x, limit, result, m)

/* Replaces inout[] by what `slow` computes from `in`, in the lanes where the u32 `bits` exceed `limit`; it runs behind a branch. */
enum { KM_RARE_MAX = 3 };
typedef void km_slow(km *m, kv in, kv *out);
void km_rare(km *m, kv bits, uint32_t limit, km_slow *slow, kv in, kv *inout, uint32_t count);

/* ---- steps that several families use ---- */
kv km_exp_small(km *m, kv x);
kv km_exp2_pair(km *m, kv h, kv tail);
kv km_erf_by_pieces(km *m, kv x);
kv km_tanh_by_pieces(km *m, kv x);
kv km_log_reduce(km *m, kv x, uint32_t from, kv *f);

/* ---- the functions ---- */
km_function km_exp, km_exp2, km_expm1, km_sinh, km_cosh, km_tanh, km_sigmoid, km_log, km_log2, km_log1p, km_asinh, km_acosh, km_atanh;
km_function km_sin, km_cos, km_tan, km_asin, km_acos, km_atan, km_atan2, km_pow, km_erf, km_rsqrt, km_rcp, km_sqrt, km_rem;
#endif
