/* Pairs (value, bound): the float operators. In: operands with the bound of their error. Out: the f64 value and a bound that holds for every
   operand within its own. Monotone operators are evaluated at the ends of the operand's interval, which needs no derivative and is right where
   one grows; the others have a line of their own. The operator's own error is added last (bound_store). */
#include "ir/fused.h"
#include "ir/eval/private.h"

#include <math.h>

/* ---- types ---- */
bound_type bound_type_of(const eval_ctx *ctx, int32_t dtype) {
  static const struct {
    double tiny, top;
  } ranges[SNT_DTYPE_COUNT] = {
      [SNT_F32] = {0x1p-126, 0x1.fffffep127}, [SNT_F16] = {0x1p-14, 65504},
      [SNT_BF16] = {0x1p-126, 0x1.fep127},    [SNT_F64] = {0x1p-1022, 0x1.fffffffffffffp1023},
      [SNT_F8E4M3] = {0x1p-6, 448},           [SNT_F8E5M2] = {0x1p-14, 57344},
      [SNT_F8E4M3FNUZ] = {0x1p-7, 240},       [SNT_F8E5M2FNUZ] = {0x1p-15, 57344},
  };
  bound_type type = {.dtype = dtype, .unit = ldexp(1, -ir_dtypes[dtype].mantissa), .tiny = ranges[dtype].tiny, .top = ranges[dtype].top};
  type.flushes = dtype == SNT_F32 && !ctx->info->keeps_denormals;
  type.slack = ctx->info->fast ? IR_FAST_SLACK : 1;
  type.narrow = ir_dtypes[dtype].bits < 32;
  type.joins = !type.narrow && !ctx->info->direct;
  return type;
}

bound_type bound_accumulator(const eval_ctx *ctx, int32_t dtype) {
  return bound_type_of(ctx, ir_dtypes[dtype].bits < 32 || !ir_dtypes[dtype].is_float ? SNT_F32 : dtype);
}

double bound_ulp(const bound_type *type, double v) {
  uint64_t bits;
  v = fabs(v);
  if (!(v >= type->tiny)) return type->unit * type->tiny;
  memcpy(&bits, &v, sizeof bits);
  bits &= UINT64_C(0x7ff0000000000000); /* the power of two below */
  memcpy(&v, &bits, sizeof v);
  return v * type->unit;
}

double bound_gamma(double n, const bound_type *type) {
  const double sides = type->dtype == SNT_F64 ? 2 : 1; /* the reference adds in f64 too */
  double nu = n * type->unit * 0.5 * sides;
  return nu < 1 ? nu / (1 - nu) : INFINITY;
}

double bound_depth(const eval_ctx *ctx, uint32_t node, uint64_t length) {
  if (!ctx->info->tree_depth) return (double)length;
  uint32_t depth = ctx->info->tree_depth(ctx->info->user, node, length);
  return depth < length ? (double)depth : (double)length;
}

static bool representable(const bound_type *type, double v) {
  if (type->dtype == SNT_F32) return (double)(float)v == v;
  if (type->dtype == SNT_F64) return true; /* the reference rounds the same way */
  uint64_t stored = 0;
  ir_dtype_store(type->dtype, &stored, 0, v);
  return ir_dtype_load(type->dtype, &stored, 0) == v;
}

static bool saturates(const bound_type *type) { return type->narrow && ir_dtypes[type->dtype].bits == 8; }

/* Beyond the largest finite value; for narrow types either infinite or, still in a wider register, not. */
static bounded overflow(const bound_type *type, bounded x) {
  double limit = type->top + bound_ulp(type, type->top) * 0.5;
  if (fabs(x.v) + x.e < limit) return x;
  if (saturates(type)) {
    double v = fmin(fmax(x.v, -type->top), type->top);
    return (bounded){v, fabs(x.v - v) + x.e};
  }
  bool surely = fabs(x.v) - x.e >= limit && !type->narrow;
  return (bounded){fabs(x.v) >= limit ? copysign(INFINITY, x.v) : x.v, surely ? 0 : INFINITY};
}

bounded bound_store(const bound_type *type, bounded x, double ulps, bool rounds_right) {
  if (!isfinite(x.e)) return (bounded){x.v, INFINITY};
  if (!isfinite(x.v)) return (bounded){x.v, isinf(x.v) && (saturates(type) || x.e > 0) ? INFINITY : 0};
  bool exact = ulps == 0 || (rounds_right && x.e == 0 && representable(type, x.v));
  if (!exact) {
    if (type->dtype == SNT_F64) ulps += 1.5;                        /* the reference's own */
    x.e += ulps * (1 + 0x1p-20) * bound_ulp(type, fabs(x.v) + x.e); /* a little more, for what f64 itself rounds */
  }
  if (type->flushes && fabs(x.v) - x.e < type->tiny) x.e += fmin(fabs(x.v) + x.e, type->tiny);
  return overflow(type, x);
}

/* ---- one operand ---- */
double bound_at_ends(ir_op op, double v, bounded a, bounded b) {
  const double lo = ir_op_eval(op, a.v - a.e, b.v - b.e, 0), hi = ir_op_eval(op, a.v + a.e, b.v + b.e, 0);
  if (isnan(lo) || isnan(hi) || isnan(v)) return isnan(lo) && isnan(hi) && isnan(v) ? 0 : INFINITY;
  return fmax(lo == v ? 0 : fabs(lo - v), hi == v ? 0 : fabs(hi - v));
}
static double at_ends(ir_op op, double v, bounded a) { return bound_at_ends(op, v, a, (bounded){0, 0}); }

static double unary_bound(ir_op op, double v, bounded a) {
  switch (op) {
  case IR_OP_neg:
  case IR_OP_abs: return a.e;
  case IR_OP_recip: return fabs(a.v) <= a.e ? INFINITY : a.e / (fabs(a.v) * (fabs(a.v) - a.e));
  case IR_OP_sin: return fmin(2, fabs(cos(a.v)) * a.e + a.e * a.e * 0.5);
  case IR_OP_cos: return fmin(2, fabs(sin(a.v)) * a.e + a.e * a.e * 0.5);
  case IR_OP_tan: {
    const double pi = 3.14159265358979323846;
    bool pole = floor((a.v - a.e) / pi + 0.5) != floor((a.v + a.e) / pi + 0.5);
    return pole ? INFINITY : at_ends(op, v, a);
  }
  case IR_OP_cosh: {
    bounded size = {fabs(a.v), a.e};
    return size.v > size.e ? at_ends(op, v, size) : fmax(cosh(size.v + size.e) - v, v - 1);
  }
  default: return at_ends(op, v, a);
  }
}

/* ---- two operands, one of them at least with a bound ---- */
static double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; } /* 0 * inf = 0 in bounds */

static double product_bound(bounded a, bounded b) { return times(fabs(a.v), b.e) + times(fabs(b.v), a.e) + times(a.e, b.e); }

static double quotient_bound(bounded a, bounded b) {
  if (fabs(b.v) <= b.e) return INFINITY;
  return (a.e + times(fabs(a.v / b.v), b.e)) / (fabs(b.v) - b.e);
}

/* a - b * (whole part of a / b): continuous but for the whole part. */
static double remainder_bound(ir_op op, bounded a, bounded b) {
  double q = a.v / b.v, spread = quotient_bound(a, b);
  if (!(spread < 0x1p52) || !(fabs(q) < 0x1p52)) return INFINITY;
  double first = op == IR_OP_rem ? trunc(q - spread) : floor(q - spread), last = op == IR_OP_rem ? trunc(q + spread) : floor(q + spread);
  return first == last ? a.e + fabs(first) * b.e : fabs(b.v) + b.e + a.e + fmax(fabs(first), fabs(last)) * b.e;
}

static double corner(double a, double b, double v, double worst) {
  double at = pow(a, b);
  return isnan(at) ? INFINITY : at == v ? worst : fmax(worst, fabs(at - v));
}

static double power_bound(double v, bounded a, bounded b) {
  if (isnan(v)) return INFINITY;
  double worst = 0;
  if (a.v - a.e <= 0) {
    bool whole = b.e == 0 && b.v == nearbyint(b.v);
    if (!whole || (b.v < 0 && fabs(a.v) <= a.e)) return INFINITY;
    if (fabs(a.v) <= a.e) worst = fabs(v - pow(0, b.v));
  }
  for (int i = 0; i < 4; i++) worst = corner(a.v + (i & 1 ? a.e : -a.e), b.v + (i & 2 ? b.e : -b.e), v, worst);
  return worst;
}

static double angle_bound(bounded y, bounded x) {
  const double turn = 6.2831853071795864769;
  double near_x = fmax(0, fabs(x.v) - x.e), near_y = fmax(0, fabs(y.v) - y.e), square = near_x * near_x + near_y * near_y;
  bool cut = x.v - x.e <= 0 && fabs(y.v) <= y.e;
  if (cut || square == 0) return turn;
  return fmin(turn, ((fabs(y.v) + y.e) * x.e + (fabs(x.v) + x.e) * y.e) / square);
}

static double binary_bound(ir_op op, double v, bounded a, bounded b) {
  switch (op) {
  case IR_OP_add:
  case IR_OP_sub: return isinf(v) ? 0 : a.e + b.e; /* what is infinite stays so beside any number */
  case IR_OP_mul: return product_bound(a, b);
  case IR_OP_div: return quotient_bound(a, b);
  case IR_OP_rem:
  case IR_OP_mod: return remainder_bound(op, a, b);
  case IR_OP_pow: return power_bound(v, a, b);
  case IR_OP_atan2: return angle_bound(a, b);
  default: return bound_at_ends(op, v, a, b);
  }
}

/* A product that overflowed meets a term that goes the other way: 3e38 * 2 - infinity is NaN in two operations, -infinity in one. */
bounded bound_float(ir_op op, const bound_type *type, const bounded *operands) {
  uint32_t arity = ir_ops[op].arity;
  bounded in[3] = {{0, 0}, {0, 0}, {0, 0}};
  bool unknown = false, exact = true, over = false;
  for (uint32_t i = 0; i < arity; i++) {
    in[i] = operands[i];
    if (bound_over(in[i])) in[i].e = 0, over = true;
    unknown |= isinf(in[i].e) != 0, exact &= in[i].e == 0;
  }
  bounded out = {ir_op_eval(op, in[0].v, in[1].v, in[2].v), 0};
  if (op == IR_OP_add || op == IR_OP_sub) unknown |= over && in[0].v * (op == IR_OP_sub ? -in[1].v : in[1].v) < 0;
  double ulps = (double)ir_ops[op].max_ulp;
  if (ulps > 0.5) ulps *= type->slack;
  if (unknown) out.e = INFINITY;
  else if (op == IR_OP_fma)
    out.e = product_bound(in[0], in[1]) + in[2].e + 0.5 * bound_ulp(type, in[0].v * in[1].v); /* where it is mul, then add */
  else if (!exact) out.e = arity == 1 ? unary_bound(op, out.v, in[0]) : binary_bound(op, out.v, in[0], in[1]);
  if (op == IR_OP_fma && exact) {
    const double product = in[0].v * in[1].v; /* of f64 it is rounded itself */
    if (ir_fma(in[0].v, in[1].v, -product) == 0 && representable(type, product)) out.e = 0;
  }
  out = bound_store(type, out, ulps, ulps == 0.5);
  if (op == IR_OP_mul && type->joins && isinf(out.v) && out.e == 0 && isfinite(in[0].v + in[1].v)) out.e = 1;
  return out;
}
