/* Arithmetic on values, one function an operation and kind, written once for all elements of all items. The table at the end chooses.
   Narrow types compute in their kind and are narrowed by the step's `fix`. Integer sums wrap in unsigned arithmetic. */
#include "ir/fused.h"
#include "ir/interp/private.h"

#include <math.h>

/* a, b, c: the operands of one element; the ones an operation lacks repeat the first. */
#define OPERATION(name, R, A, expression)                   \
  static bool name(kvm *vm, const kvm_step *s) {            \
    R *restrict to = s->dst;                                \
    const A *from_a = s->a, *from_b = s->b, *from_c = s->c; \
    const uint32_t width = s->bits;                         \
    (void)vm, (void)width;                                  \
    for (uint32_t i = 0; i < s->n; i++) {                   \
      const A a = from_a[i], b = from_b[i], c = from_c[i];  \
      (void)b, (void)c;                                     \
      to[i] = (R)(expression);                              \
    }                                                       \
    return true;                                            \
  }
#define FOR_FLOATS(name, f32, f64) OPERATION(name##_f32, float, float, f32) OPERATION(name##_f64, double, double, f64)
#define FOR_BITS(name, expression) \
  OPERATION(name##_b32, uint32_t, uint32_t, expression) OPERATION(name##_b64, uint64_t, uint64_t, expression)
#define FOR_SIGNED(name, expression) OPERATION(name##_i32, int32_t, int32_t, expression) OPERATION(name##_i64, int64_t, int64_t, expression)
#define EQUAL(name, op)                           \
  OPERATION(name##_f32, uint32_t, float, a op b)  \
  OPERATION(name##_f64, uint32_t, double, a op b) \
  OPERATION(name##_b32, uint32_t, uint32_t, a op b) OPERATION(name##_b64, uint32_t, uint64_t, a op b)
#define COMPARE(name, op) EQUAL(name, op) OPERATION(name##_i32, uint32_t, int32_t, a op b) OPERATION(name##_i64, uint32_t, int64_t, a op b)

FOR_FLOATS(add, a + b, a + b)
FOR_BITS(add, a + b)
FOR_FLOATS(sub, a - b, a - b)
FOR_BITS(sub, a - b)
FOR_FLOATS(mul, a *b, a *b)
FOR_BITS(mul, a *b)
FOR_FLOATS(neg, -a, -a)
FOR_BITS(neg, 0 - a)
FOR_FLOATS(abs, fabsf(a), fabs(a))
OPERATION(abs_i32, int32_t, int32_t, a < 0 ? (int32_t)(0 - (uint32_t)a) : a)
OPERATION(abs_i64, int64_t, int64_t, a < 0 ? (int64_t)(0 - (uint64_t)a) : a)
FOR_BITS(abs, a)
FOR_FLOATS(min, (a < b || a != a) ? a : b, (a < b || a != a) ? a : b)
FOR_SIGNED(min, a < b ? a : b)
FOR_BITS(min, a < b ? a : b)
FOR_FLOATS(max, (a > b || a != a) ? a : b, (a > b || a != a) ? a : b)
FOR_SIGNED(max, a > b ? a : b)
FOR_BITS(max, a > b ? a : b)
FOR_FLOATS(fma, ir_fmaf(a, b, c), ir_fma(a, b, c))
FOR_FLOATS(div, a / b, a / b)
FOR_SIGNED(div, b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b)
FOR_BITS(div, b == 0 ? 0 : a / b)
FOR_FLOATS(rem, fmodf(a, b), fmod(a, b))
FOR_SIGNED(rem, b == 0 || b == -1 ? 0 : a % b)
FOR_BITS(rem, b == 0 ? 0 : a % b)
FOR_FLOATS(sqrt, sqrtf(a), sqrt(a))
FOR_FLOATS(rcp, 1 / a, 1 / a)
FOR_FLOATS(rsqrt, 1 / sqrt((double)a), 1 / sqrt(a))
FOR_FLOATS(floor, floorf(a), floor(a))
FOR_FLOATS(ceil, ceilf(a), ceil(a))
FOR_FLOATS(trunc, truncf(a), trunc(a))
FOR_FLOATS(rint, rintf(a), rint(a))
OPERATION(mulhi_b32, uint32_t, uint32_t, (uint64_t)a *b >> 32)
OPERATION(scalef_f32, float, float, b == b ? ldexpf(a, (int)floorf(b<-300 ? -300 : b> 300 ? 300 : b)) : b)
OPERATION(dot4_b32, uint32_t, uint32_t, ir_dot4(a, b, c))
FOR_BITS(wrap, (a + b < a || a + b >= c) ? a + b - c : a + b)
FOR_BITS(and, a &b)
FOR_BITS(or, a | b)
FOR_BITS(xor, a ^ b)
FOR_BITS(not, ~a)
OPERATION(not_bool, uint32_t, uint32_t, !a)
FOR_BITS(shl, a << (b & (width - 1)))
FOR_BITS(shr, a >> (b & (width - 1)))
FOR_SIGNED(shr, a >> (b & (int)(width - 1)))
EQUAL(eq, ==)
EQUAL(ne, !=)
COMPARE(lt, <)
COMPARE(le, <=)
OPERATION(isnan_f32, uint32_t, float, a != a)
OPERATION(isnan_f64, uint32_t, double, a != a)
OPERATION(isinf_f32, uint32_t, float, a == INFINITY || a == -INFINITY)
OPERATION(isinf_f64, uint32_t, double, a == (double)INFINITY || a == -(double)INFINITY)

static uint32_t count_bits(uint64_t v, uint32_t width) {
  uint32_t n = 0;
  if (width < 64) v &= ((uint64_t)1 << width) - 1;
  for (; v; v &= v - 1) n++;
  return n;
}

static uint32_t count_zeros(uint64_t v, uint32_t width) {
  uint32_t n = 0;
  while (n < width && !(v >> (width - 1 - n) & 1)) n++;
  return n;
}
FOR_BITS(popcount, count_bits(a, width))
FOR_BITS(clz, count_zeros(a, width))

/* One rounding for types narrower than f32: the sum is rounded to odd in double, which the last rounding cannot see. */
static float fma_narrow(uint32_t base, float x, float y, float z) {
  const double p = (double)x * (double)y, sum = p + (double)z;
  if (sum - sum != 0 || sum == 0) return (float)sum;
  const double part = sum - p, error = (p - (sum - part)) + ((double)z - part);
  uint64_t bits;
  memcpy(&bits, &sum, 8);
  if (error != 0 && !(bits & 1)) bits += (error > 0) == (sum > 0) ? 1 : UINT64_MAX;
  double odd;
  memcpy(&odd, &bits, 8);
  return (float)kir_round_float(base, odd, KIR_ROUND_RNE);
}

static bool fma_half(kvm *vm, const kvm_step *s) {
  float *restrict to = s->dst;
  const float *a = s->a, *b = s->b, *c = s->c;
  (void)vm;
  for (uint32_t i = 0; i < s->n; i++) to[i] = fma_narrow(s->base, a[i], b[i], c[i]);
  return true;
}

/* ---- the table: a row an operator, since most have none ---- */
#define ROW(op, ...)          \
  {                           \
    KIR_##op, { __VA_ARGS__ } \
  }
#define FLOATS(op) ROW(op, [KVM_F32] = op##_f32, [KVM_F64] = op##_f64)
#define BITS(op) ROW(op, [KVM_I32] = op##_b32, [KVM_U32] = op##_b32, [KVM_I64] = op##_b64, [KVM_U64] = op##_b64)
#define NUMBERS(op) ROW(op, op##_f32, op##_f64, op##_b32, op##_b32, op##_b64, op##_b64)
#define SIGNS(op) ROW(op, op##_f32, op##_f64, op##_i32, op##_b32, op##_i64, op##_b64)
#define UNSIGNED(op, name) ROW(op, [KVM_U32] = name##_b32, [KVM_U64] = name##_b64)
static const struct {
  uint8_t op;
  kvm_fn by_kind[KVM_KINDS];
} arithmetic[] = {NUMBERS(add),
                  NUMBERS(sub),
                  NUMBERS(mul),
                  NUMBERS(neg),
                  SIGNS(abs),
                  SIGNS(min),
                  SIGNS(max),
                  FLOATS(fma),
                  SIGNS(div),
                  SIGNS(rem),
                  FLOATS(sqrt),
                  FLOATS(rcp),
                  FLOATS(rsqrt),
                  FLOATS(floor),
                  FLOATS(ceil),
                  FLOATS(trunc),
                  FLOATS(rint),
                  UNSIGNED(udiv, div),
                  UNSIGNED(umod, rem),
                  UNSIGNED(wrap, wrap),
                  ROW(mulhi, [KVM_U32] = mulhi_b32),
                  ROW(scalef, [KVM_F32] = scalef_f32),
                  ROW(dot4, [KVM_I32] = dot4_b32),
                  BITS(and),
                  BITS(or),
                  BITS(xor),
                  BITS(not ),
                  BITS(shl),
                  BITS(popcount),
                  BITS(clz),
                  ROW(shr, [KVM_I32] = shr_i32, [KVM_U32] = shr_b32, [KVM_I64] = shr_i64, [KVM_U64] = shr_b64),
                  NUMBERS(eq),
                  NUMBERS(ne),
                  SIGNS(lt),
                  SIGNS(le),
                  FLOATS(isnan),
                  FLOATS(isinf)};

kvm_fn kvm_arithmetic(uint32_t op, kvm_kind kind, uint32_t base) {
  if (op == KIR_not && base == SNT_BOOL) return not_bool;
  if (op == KIR_fma && (base == SNT_F16 || base == SNT_BF16)) return fma_half;
  for (size_t i = 0; i < IR_COUNT(arithmetic); i++)
    if (arithmetic[i].op == op) return arithmetic[i].by_kind[kind];
  return NULL;
}

/* ---- narrowing ---- */
static void fix_f16(void *values, uint32_t n) {
  float *v = values;
  for (uint32_t i = 0; i < n; i++) v[i] = ir_f32_from_f16(ir_f16_from_f32(v[i]));
}

static void fix_bf16(void *values, uint32_t n) {
  float *v = values;
  for (uint32_t i = 0; i < n; i++) v[i] = ir_f32_from_bf16(ir_bf16_from_f32(v[i]));
}

#define NARROW(name, T, W)                              \
  static void name(void *values, uint32_t n) {          \
    W *v = values;                                      \
    for (uint32_t i = 0; i < n; i++) v[i] = (W)(T)v[i]; \
  }
NARROW(fix_i8, int8_t, int32_t)
NARROW(fix_i16, int16_t, int32_t)
NARROW(fix_u8, uint8_t, uint32_t)
NARROW(fix_u16, uint16_t, uint32_t)
NARROW(fix_bool, bool, uint32_t)

void (*kvm_fix_for(uint32_t base))(void *, uint32_t) {
  switch (base) {
  case SNT_F16: return fix_f16;
  case SNT_BF16: return fix_bf16;
  case SNT_I8: return fix_i8;
  case SNT_I16: return fix_i16;
  case SNT_U8: return fix_u8;
  case SNT_U16: return fix_u16;
  case SNT_BOOL: return fix_bool;
  default: return NULL;
  }
}

/* ---- one element as a number ---- */
kvm_kind kvm_kind_of(uint32_t base) {
  static const uint8_t kinds[SNT_DTYPE_COUNT] = {
      [SNT_F32] = KVM_F32, [SNT_F16] = KVM_F32, [SNT_BF16] = KVM_F32, [SNT_F64] = KVM_F64, [SNT_I8] = KVM_I32,
      [SNT_I16] = KVM_I32, [SNT_I32] = KVM_I32, [SNT_I64] = KVM_I64,  [SNT_U8] = KVM_U32,  [SNT_U16] = KVM_U32,
      [SNT_U32] = KVM_U32, [SNT_U64] = KVM_U64, [SNT_BOOL] = KVM_U32};
  return (kvm_kind)kinds[base];
}

int64_t kvm_get_int(const void *values, kvm_kind kind, uint32_t at) {
  switch (kind) {
  case KVM_I32: return ((const int32_t *)values)[at];
  case KVM_U32: return ((const uint32_t *)values)[at];
  case KVM_I64:
  case KVM_U64: return ((const int64_t *)values)[at];
  default: return (int64_t)kvm_get(values, kind, at);
  }
}

double kvm_get(const void *values, kvm_kind kind, uint32_t at) {
  switch (kind) {
  case KVM_F32: return (double)((const float *)values)[at];
  case KVM_F64: return ((const double *)values)[at];
  case KVM_U64: return (double)((const uint64_t *)values)[at];
  default: return (double)kvm_get_int(values, kind, at);
  }
}
