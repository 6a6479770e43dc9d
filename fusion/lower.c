/* Lowering cells: graph primitive -> kernel operations.
   In: operand values in compute types. Out: the value. Rows are macros named after the operator, so that a new row of ops.def does not
   compile until its cell stands here. NOT_POINTWISE rows are emitted by emit/value.c and the schedules. */
#include "fusion/lower.h"

typedef struct lower_site {
  kir_kernel *k;
  const uint32_t *a;
  int32_t from, to;
  kir_type type;
} lower_site;
typedef uint32_t (*lower_fn)(const lower_site *);
typedef struct lower_cell {
  uint16_t op;
  lower_fn fn;
} lower_cell; /* op: one kernel operation on the operands in order */

static uint32_t constant(const lower_site *s, double x) { return kir_const_like(s->k, s->a[0], x); }

static uint32_t lower_sign(const lower_site *s) {
  kir_kernel *k = s->k;
  uint32_t zero = constant(s, 0), x = s->a[0];
  uint32_t below = kir_3(k, KIR_select, kir_2(k, KIR_lt, x, zero), constant(s, -1),
                         ir_dtypes[s->from].is_float ? x : zero); /* keeps NaN and signed zero */
  return kir_3(k, KIR_select, kir_2(k, KIR_gt, x, zero), constant(s, 1), below);
}
static uint32_t lower_sign_unsigned(const lower_site *s) {
  return kir_3(s->k, KIR_select, kir_2(s->k, KIR_ne, s->a[0], constant(s, 0)), constant(s, 1), constant(s, 0));
}
static uint32_t lower_sign_any(const lower_site *s) { return ir_dtypes[s->from].is_signed ? lower_sign(s) : lower_sign_unsigned(s); }
static uint32_t lower_abs(const lower_site *s) { return ir_dtypes[s->from].is_signed ? kir_1(s->k, KIR_abs, s->a[0]) : s->a[0]; }
/* floor modulo: the remainder takes the sign of the divisor */
static uint32_t lower_mod(const lower_site *s) {
  kir_kernel *k = s->k;
  uint32_t r = kir_2(k, KIR_rem, s->a[0], s->a[1]);
  if (!ir_dtypes[s->from].is_signed) return r;
  uint32_t zero = constant(s, 0);
  uint32_t differs = kir_2(k, KIR_ne, kir_2(k, KIR_lt, r, zero), kir_2(k, KIR_lt, s->a[1], zero));
  uint32_t wrong = kir_2(k, KIR_and, kir_2(k, KIR_ne, r, zero), differs);
  return kir_3(k, KIR_select, wrong, kir_2(k, KIR_add, r, s->a[1]), r);
}
static uint32_t lower_cast(const lower_site *s) {
  if (s->from == SNT_BOOL && s->to != SNT_BOOL) {
    uint32_t one = ir_dtypes[s->to].is_float ? kir_const_float(s->k, s->type, 1) : kir_const_int(s->k, s->type, 1);
    uint32_t zero = ir_dtypes[s->to].is_float ? kir_const_float(s->k, s->type, 0) : kir_const_int(s->k, s->type, 0);
    return kir_3(s->k, KIR_select, s->a[0], one, zero);
  }
  if (s->to == SNT_BOOL && s->from != SNT_BOOL) return kir_2(s->k, KIR_ne, s->a[0], constant(s, 0));
  return kir_cast(s->k, s->type, s->a[0]);
}
static uint32_t lower_bitcast(const lower_site *s) {
  kir_kernel *k = s->k;
  kir_type raw = kir_t(s->from, s->type.lanes);
  bool widened = s->from == SNT_F16 || s->from == SNT_BF16;
  uint32_t x = widened ? kir_cast(k, raw, s->a[0]) : s->a[0];
  uint32_t bits = kir_bitcast(k, kir_t(s->to, s->type.lanes), x);
  return s->to == SNT_F16 || s->to == SNT_BF16 ? kir_cast(k, s->type, bits) : bits;
}

#define K(op) \
  { KIR_##op, 0 }
#define FN(f) \
  { 0, f }
#define NOT_POINTWISE \
  { 0, 0 }
#define LOWER_input NOT_POINTWISE
#define LOWER_state NOT_POINTWISE
#define LOWER_const NOT_POINTWISE
#define LOWER_iota NOT_POINTWISE
#define LOWER_random NOT_POINTWISE
#define LOWER_argument NOT_POINTWISE
#define LOWER_dim NOT_POINTWISE
#define LOWER_neg K(neg)
#define LOWER_abs FN(lower_abs)
#define LOWER_sign FN(lower_sign_any)
#define LOWER_floor K(floor)
#define LOWER_ceil K(ceil)
#define LOWER_round K(rint)
#define LOWER_trunc K(trunc)
#define LOWER_sqrt K(sqrt)
#define LOWER_rsqrt K(rsqrt)
#define LOWER_recip K(rcp)
#define LOWER_exp K(exp)
#define LOWER_exp2 K(exp2)
#define LOWER_expm1 K(expm1)
#define LOWER_log K(log)
#define LOWER_log2 K(log2)
#define LOWER_log1p K(log1p)
#define LOWER_sin K(sin)
#define LOWER_cos K(cos)
#define LOWER_tan K(tan)
#define LOWER_asin K(asin)
#define LOWER_acos K(acos)
#define LOWER_atan K(atan)
#define LOWER_sinh K(sinh)
#define LOWER_cosh K(cosh)
#define LOWER_tanh K(tanh)
#define LOWER_asinh K(asinh)
#define LOWER_acosh K(acosh)
#define LOWER_atanh K(atanh)
#define LOWER_sigmoid K(sigmoid)
#define LOWER_erf K(erf)
#define LOWER_isnan K(isnan)
#define LOWER_isinf K(isinf)
#define LOWER_not K(not )
#define LOWER_popcount K(popcount)
#define LOWER_clz K(clz)
#define LOWER_add K(add)
#define LOWER_sub K(sub)
#define LOWER_mul K(mul)
#define LOWER_div K(div)
#define LOWER_rem K(rem)
#define LOWER_mod FN(lower_mod)
#define LOWER_pow K(pow)
#define LOWER_atan2 K(atan2)
#define LOWER_min K(min)
#define LOWER_max K(max)
#define LOWER_and K(and)
#define LOWER_or K(or)
#define LOWER_xor K(xor)
#define LOWER_shl K(shl)
#define LOWER_shr K(shr)
#define LOWER_eq K(eq)
#define LOWER_ne K(ne)
#define LOWER_lt K(lt)
#define LOWER_le K(le)
#define LOWER_gt K(gt)
#define LOWER_ge K(ge)
#define LOWER_select K(select)
#define LOWER_fma K(fma)
#define LOWER_dot4 K(dot4)
#define LOWER_cast FN(lower_cast)
#define LOWER_bitcast FN(lower_bitcast)
#define LOWER_reduce_sum NOT_POINTWISE
#define LOWER_reduce_prod NOT_POINTWISE
#define LOWER_reduce_max NOT_POINTWISE
#define LOWER_reduce_min NOT_POINTWISE
#define LOWER_reduce_argmax NOT_POINTWISE
#define LOWER_reduce_argmin NOT_POINTWISE
#define LOWER_scan_sum NOT_POINTWISE
#define LOWER_scan_prod NOT_POINTWISE
#define LOWER_scan_max NOT_POINTWISE
#define LOWER_scan_min NOT_POINTWISE
#define LOWER_scan_linear NOT_POINTWISE
#define LOWER_contract NOT_POINTWISE
#define LOWER_reshape NOT_POINTWISE
#define LOWER_transpose NOT_POINTWISE
#define LOWER_broadcast NOT_POINTWISE
#define LOWER_slice NOT_POINTWISE
#define LOWER_pad NOT_POINTWISE
#define LOWER_concat NOT_POINTWISE
#define LOWER_window NOT_POINTWISE
#define LOWER_words NOT_POINTWISE
#define LOWER_gather NOT_POINTWISE
#define LOWER_scatter_set NOT_POINTWISE
#define LOWER_scatter_add NOT_POINTWISE
#define LOWER_scatter_mul NOT_POINTWISE
#define LOWER_scatter_min NOT_POINTWISE
#define LOWER_scatter_max NOT_POINTWISE
#define LOWER_argsort NOT_POINTWISE
#define LOWER_repeat NOT_POINTWISE
#define LOWER_loop NOT_POINTWISE
#define LOWER_pick NOT_POINTWISE
#define LOWER_custom NOT_POINTWISE /* emit/custom.c */
#define LOWER_opaque NOT_POINTWISE

static const lower_cell cells[IR_OP_COUNT] = {
#define OP(name, ...) [IR_OP_##name] = LOWER_##name,
#include "ir/ops.def"
#undef OP
};

bool lower_has(ir_op op) { return cells[op].op || cells[op].fn; }

uint32_t lower_pointwise(kir_kernel *k, ir_op op, const uint32_t *args, int32_t arg_dtype, int32_t result_dtype, kir_type result) {
  const lower_site site = {k, args, arg_dtype, result_dtype, result};
  const lower_cell *cell = &cells[op];
  if (cell->fn) return cell->fn(&site);
  switch (ir_ops[op].arity) {
  case 1: return kir_1(k, (kir_op)cell->op, args[0]);
  case 2: return kir_2(k, (kir_op)cell->op, args[0], args[1]);
  default: return kir_3(k, (kir_op)cell->op, args[0], args[1], args[2]);
  }
}
