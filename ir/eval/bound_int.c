/* Pairs (value, bound): integers, truth values and the way between them and floats. A bound of an integer is a number of steps; a truth
   value with a bound is either. Integers are exact unless they came from a float whose threshold was near. */
#include "ir/eval/private.h"
#include <math.h>

int64_t eval_int_end(int32_t dtype, bool highest) {
  const ir_dtype_info *info = &ir_dtypes[dtype];
  if (!info->is_signed) return highest ? (int64_t)(UINT64_MAX >> (64 - info->bits)) : 0;
  int64_t top = (int64_t)((UINT64_C(1) << (info->bits - 1)) - 1);
  return highest ? top : -top - 1;
}

double eval_int_to_float(int32_t dtype, int64_t value) { return dtype == SNT_U64 ? (double)(uint64_t)value : (double)value; }

int64_t eval_float_to_int(int32_t dtype, double value) {
  if (dtype == SNT_BOOL) return value != 0;
  if (isnan(value)) return 0;
  value = trunc(value);
  double top = ldexp(1, ir_dtypes[dtype].bits - ir_dtypes[dtype].is_signed), bottom = ir_dtypes[dtype].is_signed ? -top : 0;
  if (value <= bottom) return eval_int_end(dtype, false);
  if (value >= top) return eval_int_end(dtype, true);
  return value >= 0x1p63 ? (int64_t)(uint64_t)value : (int64_t)value;
}

bounded_int bound_to_int(int32_t dtype, bounded x) {
  bounded_int out = {eval_float_to_int(dtype, x.v), 0};
  if (x.e == 0) return out;
  if (isinf(x.e)) return out.e = INFINITY, out;
  if (dtype == SNT_BOOL) return out.e = fabs(x.v) <= x.e, out;
  double at = eval_int_to_float(dtype, out.v);
  double lo = eval_int_to_float(dtype, eval_float_to_int(dtype, x.v - x.e)),
         hi = eval_int_to_float(dtype, eval_float_to_int(dtype, x.v + x.e));
  out.e = fmax(fabs(lo - at), fabs(hi - at));
  return out;
}

static bounded_int either(int64_t v) { return (bounded_int){v, 1}; }

bounded_int bound_compare(ir_op op, const bounded *in) {
  bounded_int out = {(int64_t)ir_op_eval(op, in[0].v, in[1].v, 0), 0};
  double slack = in[0].e + in[1].e;
  if (slack == 0) return out;
  if (!isfinite(slack)) return either(out.v);
  if (isnan(in[0].v) || isnan(in[1].v) || isinf(in[0].v) || op == IR_OP_isnan || op == IR_OP_isinf) return out;
  return fabs(in[0].v - in[1].v) <= slack ? either(out.v) : out;
}

/* Truth values: whether the result differs for any way the undecided operands may fall. */
static bounded_int truth(ir_op op, const bounded_int *in, uint32_t arity) {
  int64_t base = ir_op_eval_int(op, in[0].v, arity > 1 ? in[1].v : 0, 0, SNT_BOOL);
  for (int pick = 1; pick < 4; pick++) {
    int64_t a = pick & 1 && in[0].e > 0 ? !in[0].v : in[0].v;
    int64_t b = arity > 1 ? (pick & 2 && in[1].e > 0 ? !in[1].v : in[1].v) : 0;
    if (ir_op_eval_int(op, a, b, 0, SNT_BOOL) != base) return either(base);
  }
  return (bounded_int){base, 0};
}

static double scaled(double size, double bound) { return size == 0 || bound == 0 ? 0 : size * bound; } /* 0 times anything at all */

static double int_error(ir_op op, const bounded_int *in, double a, double b) {
  switch (op) {
  case IR_OP_add:
  case IR_OP_sub: return in[0].e + in[1].e;
  case IR_OP_mul: return scaled(fabs(a), in[1].e) + scaled(fabs(b), in[0].e) + scaled(in[0].e, in[1].e);
  case IR_OP_neg:
  case IR_OP_abs: return in[0].e;
  case IR_OP_sign: return 2;
  case IR_OP_min:
  case IR_OP_max: return fmax(in[0].e, in[1].e);
  case IR_OP_dot4: return in[0].e || in[1].e ? INFINITY : in[2].e;
  default: return INFINITY;
  }
}

bounded_int bound_int(ir_op op, int32_t dtype, const bounded_int *in) {
  uint32_t arity = ir_ops[op].arity;
  bool exact = in[0].e == 0 && (arity < 2 || in[1].e == 0) && (arity < 3 || in[2].e == 0);
  if (dtype == SNT_BOOL && !exact) return truth(op, in, arity);
  bounded_int out = {ir_op_eval_int(op, in[0].v, arity > 1 ? in[1].v : 0, arity > 2 ? in[2].v : 0, dtype), 0};
  if (exact) return out;
  double a = eval_int_to_float(dtype, in[0].v), b = arity > 1 ? eval_int_to_float(dtype, in[1].v) : 0;
  if (ir_ops[op].rule == IR_RULE_BOOL) {
    bool decided = fabs(a - b) > in[0].e + in[1].e;
    return decided ? out : either(out.v);
  }
  out.e = int_error(op, in, a, b);
  double v = eval_int_to_float(dtype, out.v);
  bool may_wrap = v - out.e < eval_int_to_float(dtype, eval_int_end(dtype, false)) ||
                  v + out.e > eval_int_to_float(dtype, eval_int_end(dtype, true));
  if (may_wrap) out.e = INFINITY;
  return out;
}
