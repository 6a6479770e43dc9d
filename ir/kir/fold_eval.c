/* Constant evaluation of one lane of a pure operation, exactly as the interpreter and the targets compute it: integers modulo their width, floats
   rounded once to the result's type. Nothing is folded to a NaN: its bits are the target's business. */
#include "ir/fused.h"
#include "ir/kir_pass_private.h"

#include <math.h>

static int compare(double a, double b) { return a < b ? -1 : a > b; }
static bool is_unsigned64(kir_type t) { return t.base == SNT_U64; }
static int compare_int(kir_type t, int64_t a, int64_t b) {
  if (is_unsigned64(t)) return (uint64_t)a < (uint64_t)b ? -1 : (uint64_t)a > (uint64_t)b;
  return a < b ? -1 : a > b;
}

static bool test(uint16_t op, int order) {
  switch (op) {
  case KIR_eq: return order == 0;
  case KIR_ne: return order != 0;
  case KIR_lt: return order < 0;
  case KIR_le: return order <= 0;
  case KIR_gt: return order > 0;
  default: return order >= 0;
  }
}

/* Results are exact in a double, or rounded to nearest in one operation of at least twice the precision plus two bits. */
static bool eval_float(const kir_inst *like, const kir_value *a, double *out) {
  const bool wide = like->type.base == SNT_F64;
  switch (like->op) {
  case KIR_add: *out = a[0].f + a[1].f; return true;
  case KIR_sub: *out = a[0].f - a[1].f; return true;
  case KIR_mul: *out = a[0].f * a[1].f; return true;
  case KIR_div: *out = a[0].f / a[1].f; return true;
  case KIR_sqrt: *out = sqrt(a[0].f); return true;
  case KIR_fma: *out = ir_fma(a[0].f, a[1].f, a[2].f); return wide || like->type.base == SNT_F32;
  case KIR_neg: *out = -a[0].f; return true;
  case KIR_abs: *out = fabs(a[0].f); return true;
  case KIR_min: *out = a[0].f < a[1].f ? a[0].f : a[1].f; return a[0].f != a[1].f;
  case KIR_max: *out = a[0].f > a[1].f ? a[0].f : a[1].f; return a[0].f != a[1].f;
  case KIR_floor: *out = floor(a[0].f); return true;
  case KIR_ceil: *out = ceil(a[0].f); return true;
  case KIR_trunc: *out = trunc(a[0].f); return true;
  case KIR_rint: *out = rint(a[0].f); return true;
  default: return false;
  }
}

static bool round_to(const kir_inst *like, double value, kir_value *out) {
  if (value != value) return false;
  out->f = kir_round_float(like->type.base, value, KIR_ROUND_NONE);
  /* Where a target flushes denormals the run-time result may differ; constants that stay exact are safe. */
  return true;
}

/* f32 fma through doubles is rounded twice unless the double sum was exact. */
static bool fold_float(const kir_inst *like, const kir_value *a, kir_value *out) {
  if (like->op == KIR_fma && like->type.base == SNT_F32) {
    out->f = ir_fmaf((float)a[0].f, (float)a[1].f, (float)a[2].f);
    return out->f == out->f;
  }
  double value;
  return eval_float(like, a, &value) && round_to(like, value, out);
}

static int64_t divide(kir_type t, int64_t a, int64_t b, bool remainder) {
  if (b == 0) return 0;
  if (!kir_is_signed(t.base)) {
    const uint64_t x = (uint64_t)a, y = (uint64_t)b;
    return (int64_t)(remainder ? x % y : x / y);
  }
  if (b == -1) return remainder ? 0 : (int64_t)(0 - (uint64_t)a);
  return remainder ? a % b : a / b;
}

static int64_t shift(const kir_inst *like, int64_t a, int64_t amount) {
  const uint32_t by = (uint32_t)amount & (kir_base_bits(like->type.base) - 1);
  if (like->op == KIR_shl) return (int64_t)((uint64_t)a << by);
  return kir_is_signed(like->type.base) ? a >> by : (int64_t)((uint64_t)a >> by);
}

static int64_t count_bits(const kir_inst *like, int64_t a) {
  const uint32_t bits = kir_base_bits(like->type.base);
  const uint64_t mask = bits == 64 ? ~0ull : (1ull << bits) - 1, v = (uint64_t)a & mask;
  if (like->op == KIR_popcount) return __builtin_popcountll(v);
  return v ? (int64_t)bits - (64 - __builtin_clzll(v)) : (int64_t)bits;
}

static bool fold_int(const kir_inst *like, const kir_value *a, kir_value *out) {
  const kir_type t = like->type;
  const uint64_t x = (uint64_t)a[0].i, y = (uint64_t)a[1].i;
  uint64_t r;
  switch (like->op) {
  case KIR_add: r = x + y; break;
  case KIR_sub: r = x - y; break;
  case KIR_mul: r = x * y; break;
  case KIR_neg: r = 0 - x; break;
  case KIR_abs: r = kir_is_signed(t.base) && a[0].i < 0 ? 0 - x : x; break;
  case KIR_min: r = compare_int(t, a[0].i, a[1].i) < 0 ? x : y; break;
  case KIR_max: r = compare_int(t, a[0].i, a[1].i) > 0 ? x : y; break;
  case KIR_div:
  case KIR_udiv: r = (uint64_t)divide(t, a[0].i, a[1].i, false); break;
  case KIR_rem:
  case KIR_umod: r = (uint64_t)divide(t, a[0].i, a[1].i, true); break;
  case KIR_mulhi: r = ((x & 0xffffffff) * (y & 0xffffffff)) >> 32; break;
  case KIR_dot4: r = ir_dot4((uint32_t)x, (uint32_t)y, (uint32_t)a[2].i); break;
  case KIR_wrap: r = a[2].i ? (x + y) % (uint64_t)a[2].i : 0; break;
  case KIR_and: r = x & y; break;
  case KIR_or: r = x | y; break;
  case KIR_xor: r = x ^ y; break;
  case KIR_not: r = t.base == SNT_BOOL ? !x : ~x; break;
  case KIR_shl:
  case KIR_shr: r = (uint64_t)shift(like, a[0].i, a[1].i); break;
  case KIR_popcount:
  case KIR_clz: r = (uint64_t)count_bits(like, a[0].i); break;
  default: return false;
  }
  if (like->op == KIR_mulhi && t.base != SNT_U32) return false;
  out->i = kir_wrap_int(t.base, (int64_t)r);
  return true;
}

static bool fold_compare(const kir_inst *like, kir_type operand, const kir_value *a, kir_value *out) {
  if (!kir_is_float(operand.base)) out->i = test(like->op, compare_int(operand, a[0].i, a[1].i));
  else if (a[0].f != a[0].f || a[1].f != a[1].f) out->i = like->op == KIR_ne;
  else out->i = test(like->op, compare(a[0].f, a[1].f));
  return true;
}

static double round_whole(double v, uint32_t mode) {
  switch (mode) {
  case KIR_ROUND_RNE: return rint(v);
  case KIR_ROUND_RTP: return ceil(v);
  case KIR_ROUND_RTN: return floor(v);
  default: return trunc(v);
  }
}

static int64_t saturate(kir_type to, double v) {
  const int bits = (int)kir_base_bits(to.base) - kir_is_signed(to.base);
  const double top = ldexp(1, bits), bottom = kir_is_signed(to.base) ? -top : 0;
  if (v != v) return 0;
  if (v >= top) return bits == 64 ? -1 : bits == 63 ? INT64_MAX : (int64_t)(top - 1);
  if (v <= bottom) return bits == 63 ? INT64_MIN : (int64_t)bottom;
  return bits == 64 ? (int64_t)(uint64_t)v : (int64_t)v;
}

static bool fold_cast(const kir_inst *like, kir_type from, const kir_value *a, kir_value *out) {
  const kir_type to = like->type;
  const uint32_t mode = like->flags & ~(uint32_t)KIR_SAT;
  if (kir_is_float(from.base) && kir_is_float(to.base)) {
    out->f = kir_round_float(to.base, a[0].f, like->flags);
    return out->f == out->f;
  }
  if (kir_is_float(from.base)) {
    if (to.base == SNT_BOOL) return false;
    out->i = saturate(to, round_whole(a[0].f, mode));
    return true;
  }
  if (kir_is_float(to.base)) { /* through a double: exact below 2^53, and nothing else is folded */
    if (a[0].i > (1ll << 53) || a[0].i < (is_unsigned64(from) ? 0 : -(1ll << 53)) || mode > KIR_ROUND_RNE) return false;
    out->f = kir_round_float(to.base, (double)a[0].i, KIR_ROUND_NONE);
    return true;
  }
  if ((like->flags & KIR_SAT) && kir_base_bits(from.base) == 64) return false;
  out->i = (like->flags & KIR_SAT) && to.base != SNT_BOOL ? saturate(to, (double)a[0].i) : kir_wrap_int(to.base, a[0].i);
  return true;
}

static bool fold_bitcast(const kir_inst *like, kir_type from, const kir_value *a, kir_value *out) {
  const kir_type to = like->type;
  if (!kir_is_float(from.base) && !kir_is_float(to.base)) {
    out->i = kir_wrap_int(to.base, a[0].i);
    return true;
  }
  if (from.base == SNT_F32 && kir_base_bits(to.base) == 32 && !kir_is_float(to.base)) {
    const float f = (float)a[0].f;
    int32_t bits;
    memcpy(&bits, &f, sizeof bits);
    out->i = kir_wrap_int(to.base, bits);
    return f == f;
  }
  if (to.base != SNT_F32 || kir_base_bits(from.base) != 32) return false;
  const int32_t bits = (int32_t)a[0].i;
  float f;
  memcpy(&f, &bits, sizeof f);
  out->f = (double)f;
  return f == f;
}

bool kir_eval(const kir_inst *like, kir_type operand, const kir_value *args, kir_value *out) {
  switch (like->op) {
  case KIR_eq:
  case KIR_ne:
  case KIR_lt:
  case KIR_le:
  case KIR_gt:
  case KIR_ge: return fold_compare(like, operand, args, out);
  case KIR_isnan: return out->i = args[0].f != args[0].f, true;
  case KIR_isinf: return out->i = isinf(args[0].f) != 0, true;
  case KIR_cast: return fold_cast(like, operand, args, out);
  case KIR_bitcast: return fold_bitcast(like, operand, args, out);
  default: return kir_is_float(like->type.base) ? fold_float(like, args, out) : fold_int(like, args, out);
  }
}
