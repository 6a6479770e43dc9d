/* Transcendental functions, through double and rounded once, and conversions between types. */
#include "ir/interp/private.h"
#include <math.h>

/* ---- functions ---- */
static double f_exp(double x, double y) { return (void)y, exp(x); }
static double f_exp2(double x, double y) { return (void)y, exp2(x); }
static double f_expm1(double x, double y) { return (void)y, expm1(x); }
static double f_log(double x, double y) { return (void)y, log(x); }
static double f_log2(double x, double y) { return (void)y, log2(x); }
static double f_log1p(double x, double y) { return (void)y, log1p(x); }
static double f_sin(double x, double y) { return (void)y, sin(x); }
static double f_cos(double x, double y) { return (void)y, cos(x); }
static double f_tan(double x, double y) { return (void)y, tan(x); }
static double f_asin(double x, double y) { return (void)y, asin(x); }
static double f_acos(double x, double y) { return (void)y, acos(x); }
static double f_atan(double x, double y) { return (void)y, atan(x); }
static double f_sinh(double x, double y) { return (void)y, sinh(x); }
static double f_cosh(double x, double y) { return (void)y, cosh(x); }
static double f_tanh(double x, double y) { return (void)y, tanh(x); }
static double f_asinh(double x, double y) { return (void)y, asinh(x); }
static double f_acosh(double x, double y) { return (void)y, acosh(x); }
static double f_atanh(double x, double y) { return (void)y, atanh(x); }
static double f_sigmoid(double x, double y) { return (void)y, 1 / (1 + exp(-x)); }
static double f_erf(double x, double y) { return (void)y, erf(x); }
static double f_pow(double x, double y) { return pow(x, y); }
static double f_atan2(double x, double y) { return atan2(x, y); }
#define F(name) [KIR_##name - KIR_exp] = f_##name
static double (*const functions[])(double, double) = {F(exp),   F(exp2),  F(expm1),   F(log),  F(log2), F(log1p), F(sin),  F(cos),
                                                      F(tan),   F(asin),  F(acos),    F(atan), F(sinh), F(cosh),  F(tanh), F(asinh),
                                                      F(acosh), F(atanh), F(sigmoid), F(erf),  F(pow),  F(atan2)};
#undef F
_Static_assert(IR_COUNT(functions) == KIR_atan2 - KIR_exp + 1, "functions stand together in kernel_ops.def");

static bool run_f32(kvm *vm, const kvm_step *s) {
  double (*const f)(double, double) = functions[kir_at(vm->k, s->inst)->op - KIR_exp];
  const float *x = s->a, *y = s->b ? s->b : s->a;
  float *to = s->dst;
  for (uint32_t i = 0; i < s->n; i++) to[i] = (float)f((double)x[i], (double)y[i]);
  return true;
}

static bool run_f64(kvm *vm, const kvm_step *s) {
  double (*const f)(double, double) = functions[kir_at(vm->k, s->inst)->op - KIR_exp];
  const double *x = s->a, *y = s->b ? s->b : s->a;
  double *to = s->dst;
  for (uint32_t i = 0; i < s->n; i++) to[i] = f(x[i], y[i]);
  return true;
}

kvm_fn kvm_math(uint32_t op, kvm_kind kind) {
  const uint32_t at = op - KIR_exp; /* of those before it a large number */
  return at >= IR_COUNT(functions) || !functions[at] ? NULL : kind == KVM_F32 ? run_f32 : kind == KVM_F64 ? run_f64 : NULL;
}

/* The argument lies where dom= promises; NaN is not judged. */
bool kvm_check_domain(kvm *vm, const kvm_step *s) {
  const kir_inst *in = kir_at(vm->k, s->inst);
  for (uint32_t at = 0; at < s->n; at++) {
    const double x = kvm_get(s->a, (kvm_kind)s->kind, at);
    const uint32_t item = at % vm->items;
    if (vm->mask[item] && (x < (double)in->dom_lo || x > (double)in->dom_hi))
      return kvm_fail(vm, s, item, SNT_E_ARG, "argument %g lies outside dom=[%g,%g]", x, (double)in->dom_lo, (double)in->dom_hi);
  }
  return true;
}

/* What indices are divided by is never 0 for an item that comes there: processors trap. */
bool kvm_check_divisor(kvm *vm, const kvm_step *s) {
  const uint32_t *by = s->b;
  for (uint32_t at = 0; at < s->n; at++)
    if (!by[at] && vm->mask[at % vm->items]) return kvm_fail(vm, s, at % vm->items, SNT_E_ARG, "a division by 0");
  return true;
}

/* ---- conversions ---- */
static double round_to_integer(double v, uint32_t mode) {
  switch (mode & ~(uint32_t)KIR_SAT) {
  case KIR_ROUND_RNE: return rint(v);
  case KIR_ROUND_RTP: return ceil(v);
  case KIR_ROUND_RTN: return floor(v);
  default: return trunc(v);
  }
}

static int64_t lowest_int(uint32_t base) {
  return kir_is_signed(base) ? -(int64_t)(((uint64_t)1 << (kir_base_bits(base) - 1)) - 1) - 1 : 0;
}
static uint64_t highest_int(uint32_t base) {
  const uint32_t bits = kir_base_bits(base) - (kir_is_signed(base) ? 1 : 0);
  return bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

/* Saturates; NaN becomes 0. */
static int64_t int_from_float(uint32_t base, double v, uint32_t mode) {
  if (base == SNT_BOOL) return v != 0;
  v = round_to_integer(v, mode);
  if (v != v) return 0;
  if (v <= (double)lowest_int(base)) return lowest_int(base);
  if (v >= (double)highest_int(base)) return (int64_t)highest_int(base);
  return v >= 0x1p63 ? (int64_t)(uint64_t)v : (int64_t)v;
}

static int64_t int_from_int(uint32_t base, uint32_t from, int64_t v, uint32_t mode) {
  if (base == SNT_BOOL) return v != 0;
  if (!(mode & KIR_SAT)) return kir_wrap_int(base, v);
  const bool huge = from == SNT_U64 && v < 0;
  if (!huge && v < lowest_int(base)) return lowest_int(base);
  if (huge || (v > 0 && (uint64_t)v > highest_int(base))) return huge && base == SNT_U64 ? v : (int64_t)highest_int(base);
  return v;
}

static void put_int(void *values, kvm_kind kind, uint32_t at, int64_t v) {
  if (kvm_kind_bytes(kind) == 8) ((int64_t *)values)[at] = v;
  else ((uint32_t *)values)[at] = (uint32_t)v;
}

/* A 64-bit integer to f32 rounds once: what double drops is kept as a sticky last bit. */
static double double_from_int(uint32_t from, int64_t v) {
  const bool is_unsigned = from == SNT_U64, negative = !is_unsigned && v < 0;
  const uint64_t magnitude = negative ? 0 - (uint64_t)v : (uint64_t)v;
  if (magnitude < (uint64_t)1 << 53) return negative ? -(double)magnitude : (double)magnitude;
  const double kept = (double)(magnitude >> 11 | ((magnitude & 0x7ff) != 0)) * 2048;
  return negative ? -kept : kept;
}

static void put_float(void *values, kvm_kind kind, uint32_t base, uint32_t at, double v, uint32_t mode) {
  if (kind == KVM_F64) ((double *)values)[at] = v;
  else ((float *)values)[at] = (float)kir_round_float(base, v, mode);
}

void kvm_put(void *values, kvm_kind kind, uint32_t base, uint32_t at, double v) {
  if (kind <= KVM_F64) put_float(values, kind, base, at, v, KIR_ROUND_RNE);
  else put_int(values, kind, at, int_from_float(base, v, KIR_ROUND_NONE));
}

static bool run_cast(kvm *vm, const kvm_step *s) {
  const kvm_kind from = (kvm_kind)s->from, to = (kvm_kind)s->kind;
  (void)vm;
  for (uint32_t i = 0; i < s->n; i++) {
    if (to <= KVM_F64 && from <= KVM_F64) put_float(s->dst, to, s->base, i, kvm_get(s->a, from, i), s->mode);
    else if (to == KVM_F64)
      ((double *)s->dst)[i] = from == KVM_U64 ? (double)((const uint64_t *)s->a)[i] : (double)kvm_get_int(s->a, from, i);
    else if (to == KVM_F32) put_float(s->dst, to, s->base, i, double_from_int(s->from_base, kvm_get_int(s->a, from, i)), s->mode);
    else if (from <= KVM_F64) put_int(s->dst, to, i, int_from_float(s->base, kvm_get(s->a, from, i), s->mode));
    else put_int(s->dst, to, i, int_from_int(s->base, s->from_base, kvm_get_int(s->a, from, i), s->mode));
  }
  return true;
}

/* The common conversions without the general one's questions; what is narrower than its kind is narrowed by the step's `fix`. */
static bool copy_words(kvm *vm, const kvm_step *s) {
  (void)vm;
  memcpy(s->dst, s->a, (size_t)s->n * 4);
  return true;
}

static bool float_from_u32(kvm *vm, const kvm_step *s) {
  const uint32_t *from = s->a;
  float *to = s->dst;
  (void)vm;
  for (uint32_t i = 0; i < s->n; i++) to[i] = (float)from[i];
  return true;
}

static bool float_from_i32(kvm *vm, const kvm_step *s) {
  const int32_t *from = s->a;
  float *to = s->dst;
  (void)vm;
  for (uint32_t i = 0; i < s->n; i++) to[i] = (float)from[i];
  return true;
}

/* ---- bits ---- */
static uint64_t to_bits(uint32_t base, const void *values, uint32_t at) {
  const kvm_kind kind = kvm_kind_of(base);
  if (base == SNT_F16) return ir_f16_from_f32(((const float *)values)[at]);
  if (base == SNT_BF16) return ir_bf16_from_f32(((const float *)values)[at]);
  return kvm_kind_bytes(kind) == 8 ? ((const uint64_t *)values)[at] : ((const uint32_t *)values)[at];
}

static bool run_bitcast(kvm *vm, const kvm_step *s) {
  (void)vm;
  for (uint32_t i = 0; i < s->n; i++) {
    const uint64_t bits = to_bits(s->from_base, s->a, i);
    if (s->base == SNT_F16) ((float *)s->dst)[i] = ir_f32_from_f16((uint16_t)bits);
    else if (s->base == SNT_BF16) ((float *)s->dst)[i] = ir_f32_from_bf16((uint16_t)bits);
    else if (kvm_kind_bytes((kvm_kind)s->kind) == 8) ((uint64_t *)s->dst)[i] = bits;
    else ((uint32_t *)s->dst)[i] = (uint32_t)bits;
  }
  return true;
}

static bool run_unpack(kvm *vm, const kvm_step *s) {
  const uint32_t *from = s->a;
  float *to = s->dst;
  for (uint32_t i = 0; i < vm->items; i++)
    for (uint32_t lane = 0; lane < 2; lane++) {
      const uint16_t half = (uint16_t)(from[i] >> 16 * lane);
      to[lane * vm->items + i] = s->mode == SNT_BF16 ? ir_f32_from_bf16(half) : ir_f32_from_f16(half);
    }
  return true;
}

static bool run_pack(kvm *vm, const kvm_step *s) {
  const float *from = s->a;
  uint32_t *to = s->dst;
  for (uint32_t i = 0; i < vm->items; i++) {
    uint32_t word = 0;
    for (uint32_t lane = 0; lane < 2; lane++) {
      const float v = from[lane * vm->items + i];
      word |= (uint32_t)(s->mode == SNT_BF16 ? ir_bf16_from_f32(v) : ir_f16_from_f32(v)) << 16 * lane;
    }
    to[i] = word;
  }
  return true;
}

kvm_fn kvm_conversion(const kir_inst *in, kir_type from) {
  const uint32_t rounding = in->flags & ~(uint32_t)KIR_SAT;
  const bool plain = rounding <= KIR_ROUND_RNE && !(in->flags & KIR_SAT);
  switch (in->op) {
  case KIR_bitcast: return run_bitcast;
  case KIR_unpack2: return run_unpack;
  case KIR_pack2: return run_pack;
  default: break;
  }
  const kvm_kind to = kvm_kind_of(in->type.base), have = kvm_kind_of(from.base);
  if (to == KVM_F32 && have == KVM_F32 && plain) return copy_words;
  if (in->type.base == SNT_F32 && have == KVM_U32 && plain) return float_from_u32;
  if (in->type.base == SNT_F32 && have == KVM_I32 && plain) return float_from_i32;
  const bool words = (to == KVM_I32 || to == KVM_U32) && (have == KVM_I32 || have == KVM_U32);
  if (words && in->type.base != SNT_BOOL && !(in->flags & KIR_SAT)) return copy_words;
  return run_cast;
}
