/* Element types: facts, and access to one element as a double or an int64. Floats narrower than f32 are rounded once, from the double, to nearest
   even. The 8-bit floats saturate instead of becoming infinite; 4-bit integers occupy one byte an element. */
#include "ir/base.h"
#include <math.h>

#define INTEGER(text, size, width, sign) \
  { .name = text, .bytes = size, .bits = width, .is_signed = sign, .is_int = 1 }
#define FLOATING(text, size, man) \
  { .name = text, .bytes = size, .bits = 8 * size, .is_float = 1, .is_signed = 1, .mantissa = man }
const ir_dtype_info ir_dtypes[SNT_DTYPE_COUNT] = {
    [0] = {.name = "none"},
    [SNT_F32] = FLOATING("f32", 4, 23),
    [SNT_F16] = FLOATING("f16", 2, 10),
    [SNT_BF16] = FLOATING("bf16", 2, 7),
    [SNT_F64] = FLOATING("f64", 8, 52),
    [SNT_I8] = INTEGER("i8", 1, 8, 1),
    [SNT_I16] = INTEGER("i16", 2, 16, 1),
    [SNT_I32] = INTEGER("i32", 4, 32, 1),
    [SNT_I64] = INTEGER("i64", 8, 64, 1),
    [SNT_U8] = INTEGER("u8", 1, 8, 0),
    [SNT_U16] = INTEGER("u16", 2, 16, 0),
    [SNT_U32] = INTEGER("u32", 4, 32, 0),
    [SNT_U64] = INTEGER("u64", 8, 64, 0),
    [SNT_BOOL] = {.name = "bool", .bytes = 1, .bits = 1},
    [SNT_F8E4M3] = FLOATING("f8e4m3", 1, 3),
    [SNT_F8E5M2] = FLOATING("f8e5m2", 1, 2),
    [SNT_I4] = INTEGER("i4", 1, 4, 1),
    [SNT_U4] = INTEGER("u4", 1, 4, 0),
    [SNT_F8E4M3FNUZ] = FLOATING("f8e4m3fnuz", 1, 3),
    [SNT_F8E5M2FNUZ] = FLOATING("f8e5m2fnuz", 1, 2),
};

int32_t ir_dtype_find(const char *name, size_t length) {
  for (int32_t i = 1; i < SNT_DTYPE_COUNT; i++)
    if (strlen(ir_dtypes[i].name) == length && memcmp(ir_dtypes[i].name, name, length) == 0) return i;
  return 0;
}

/* ---- small floats ---- */
typedef struct small_float {
  int exponent_bits, mantissa_bits, bias;
  bool saturates;    /* overflow and infinity give the largest finite value */
  uint32_t top, nan; /* encoding of the largest finite value and of a NaN */
  bool fnuz;         /* no -0: its code is the only NaN */
} small_float;
static const small_float float16 = {5, 10, 15, false, 0x7bff, 0x7e00, false}, bfloat16 = {8, 7, 127, false, 0x7f7f, 0x7fc0, false};
static const small_float float8e4m3 = {4, 3, 7, true, 0x7e, 0x7f, false}, float8e5m2 = {5, 2, 15, true, 0x7b, 0x7e, false};
static const small_float float8e4m3fnuz = {4, 3, 8, true, 0x7f, 0x80, true}, float8e5m2fnuz = {5, 2, 16, true, 0x7f, 0x80, true};

static uint32_t small_from_double(double value, const small_float *f) {
  int width = f->exponent_bits + f->mantissa_bits, bias = f->bias;
  uint32_t sign = signbit(value) ? 1u << width : 0;
  uint32_t infinite = f->saturates ? f->top : f->top + 1;
  if (isnan(value)) return sign | f->nan;
  value = fabs(value);
  if (isinf(value)) return sign | infinite;
  if (value == 0) return f->fnuz ? 0 : sign;
  int exponent = ilogb(value);
  if (exponent < 1 - bias) exponent = 1 - bias;
  /* In units of the last place: an integer up to 2^(mantissa_bits + 1), exact before the one rounding. */
  double units = nearbyint(ldexp(value, f->mantissa_bits - exponent));
  double code = units + ldexp((double)(exponent + bias - 1), f->mantissa_bits);
  return (f->fnuz && code == 0 ? 0 : sign) | (code > (double)f->top ? infinite : (uint32_t)code);
}

static double small_to_double(uint32_t code, const small_float *f) {
  int width = f->exponent_bits + f->mantissa_bits, bias = f->bias;
  uint32_t body = code & ((1u << width) - 1), mantissa = body & ((1u << f->mantissa_bits) - 1);
  int exponent = (int)(body >> f->mantissa_bits);
  double value = exponent ? ldexp((double)(mantissa | 1u << f->mantissa_bits), exponent - bias - f->mantissa_bits)
                          : ldexp((double)mantissa, 1 - bias - f->mantissa_bits);
  if (f->fnuz && code == f->nan) return (double)NAN;
  if (body > f->top) value = !f->saturates && body == f->top + 1 ? (double)INFINITY : (double)NAN;
  if (f == &float8e5m2 && body == f->top + 1) value = INFINITY; /* read from outside; never written by us */
  return code >> width ? -value : value;
}

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Branch-light forms of the two 16-bit types: they carry whole tensors. */
uint16_t ir_f16_from_f32(float value) {
  uint32_t bits = ir_f32_bits(value), sign = bits >> 16 & 0x8000, body = bits & 0x7fffffff;
  if (body > 0x7f800000) return (uint16_t)(sign | 0x7e00);
  if (body >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* rounds to 65520 or more */
  if (body < 0x38800000) { /* subnormal: adding 0.5 places the last bit of f16 at the last bit of f32, and the addition rounds */
    float shifted = float_of(body) + 0.5f;
    return (uint16_t)(sign | (ir_f32_bits(shifted) - ir_f32_bits(0.5f)));
  }
  return (uint16_t)(sign | ((body - 0x38000000 + 0xfff + (body >> 13 & 1)) >> 13));
}

float ir_f32_from_f16(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, body = half & 0x7fff;
  if (body >= 0x7c00) return float_of(sign | 0x7f800000 | (body & 0x3ff) << 13);
  if (body < 0x400) return float_of(sign | ir_f32_bits((float)body * 0x1p-24f));
  return float_of(sign | ((body << 13) + 0x38000000));
}

uint16_t ir_bf16_from_f32(float value) {
  uint32_t bits = ir_f32_bits(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)((bits >> 16) | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float ir_f32_from_bf16(uint16_t value) { return float_of((uint32_t)value << 16); }

/* ---- integers ---- */
/* Data may lie anywhere: tensors of a mapped file are aligned to nothing. */
#define LOAD(T)                                                    \
  static T load_##T(const void *data, size_t i) {                  \
    T value;                                                       \
    memcpy(&value, (const char *)data + i * sizeof(T), sizeof(T)); \
    return value;                                                  \
  }
// clang-format off
LOAD(int16_t) LOAD(int32_t) LOAD(int64_t) LOAD(uint16_t) LOAD(uint32_t) LOAD(uint64_t) LOAD(float) LOAD(double)
#undef LOAD
static int8_t load_int8_t(const void *data, size_t i) { return ((const int8_t *)data)[i]; }
static uint8_t load_uint8_t(const void *data, size_t i) { return ((const uint8_t *)data)[i]; }
// clang-format on

int64_t ir_dtype_load_int(int32_t dtype, const void *data, size_t i) {
  switch (dtype) {
  case SNT_I8: return load_int8_t(data, i);
  case SNT_I16: return load_int16_t(data, i);
  case SNT_I32: return load_int32_t(data, i);
  case SNT_I64: return load_int64_t(data, i);
  case SNT_U8: return load_uint8_t(data, i);
  case SNT_U16: return load_uint16_t(data, i);
  case SNT_U32: return load_uint32_t(data, i);
  case SNT_U64: return (int64_t)load_uint64_t(data, i);
  case SNT_BOOL: return load_uint8_t(data, i) != 0;
  case SNT_I4: return (int64_t)((load_uint8_t(data, i) & 15) ^ 8) - 8;
  case SNT_U4: return load_uint8_t(data, i) & 15;
  default: break;
  }
  int64_t out;
  ir_dtype_store(SNT_I64, &out, 0, ir_dtype_load(dtype, data, i));
  return out;
}

#define AT(T) (((T *)data)[i])
void ir_dtype_store_int(int32_t dtype, void *data, size_t i, int64_t value) {
  switch (dtype) {
  case SNT_I8:
  case SNT_U8: AT(uint8_t) = (uint8_t)value; return;
  case SNT_I16:
  case SNT_U16: AT(uint16_t) = (uint16_t)value; return;
  case SNT_I32:
  case SNT_U32: AT(uint32_t) = (uint32_t)value; return;
  case SNT_I64:
  case SNT_U64: AT(int64_t) = value; return;
  case SNT_BOOL: AT(uint8_t) = value != 0; return;
  case SNT_I4:
  case SNT_U4: AT(uint8_t) = (uint8_t)(value & 15); return;
  default: ir_dtype_store(dtype, data, i, (double)value); return;
  }
}

double ir_dtype_load(int32_t dtype, const void *data, size_t i) {
  switch (dtype) {
  case SNT_F32: return load_float(data, i);
  case SNT_F64: return load_double(data, i);
  case SNT_F16: return (double)ir_f32_from_f16(load_uint16_t(data, i));
  case SNT_BF16: return (double)ir_f32_from_bf16(load_uint16_t(data, i));
  case SNT_F8E4M3: return small_to_double(load_uint8_t(data, i), &float8e4m3);
  case SNT_F8E5M2: return small_to_double(load_uint8_t(data, i), &float8e5m2);
  case SNT_F8E4M3FNUZ: return small_to_double(load_uint8_t(data, i), &float8e4m3fnuz);
  case SNT_F8E5M2FNUZ: return small_to_double(load_uint8_t(data, i), &float8e5m2fnuz);
  case SNT_U64: return (double)load_uint64_t(data, i);
  default: return (double)ir_dtype_load_int(dtype, data, i);
  }
}

/* Nearest even, then the ends of the type; NaN is 0. */
static int64_t saturate(int32_t dtype, double value) {
  const ir_dtype_info *info = &ir_dtypes[dtype];
  if (isnan(value)) return 0;
  value = nearbyint(value);
  double top = ldexp(1, info->bits - info->is_signed), bottom = info->is_signed ? -top : 0;
  if (value <= bottom) return info->is_signed ? (int64_t)(-((uint64_t)1 << (info->bits - 1))) : 0;
  if (value >= top) return info->is_signed ? (int64_t)(((uint64_t)1 << (info->bits - 1)) - 1) : (int64_t)(UINT64_MAX >> (64 - info->bits));
  return value >= 0x1p63 ? (int64_t)(uint64_t)value : (int64_t)value;
}

void ir_dtype_store(int32_t dtype, void *data, size_t i, double value) {
  switch (dtype) {
  case SNT_F32: AT(float) = (float)value; return;
  case SNT_F64: AT(double) = value; return;
  case SNT_F16: AT(uint16_t) = (uint16_t)small_from_double(value, &float16); return;
  case SNT_BF16: AT(uint16_t) = (uint16_t)small_from_double(value, &bfloat16); return;
  case SNT_F8E4M3: AT(uint8_t) = (uint8_t)small_from_double(value, &float8e4m3); return;
  case SNT_F8E5M2: AT(uint8_t) = (uint8_t)small_from_double(value, &float8e5m2); return;
  case SNT_F8E4M3FNUZ: AT(uint8_t) = (uint8_t)small_from_double(value, &float8e4m3fnuz); return;
  case SNT_F8E5M2FNUZ: AT(uint8_t) = (uint8_t)small_from_double(value, &float8e5m2fnuz); return;
  case SNT_BOOL: AT(uint8_t) = value != 0; return;
  default:
    if (dtype > 0 && dtype < SNT_DTYPE_COUNT) ir_dtype_store_int(dtype, data, i, saturate(dtype, value));
    return;
  }
}
#undef AT

void ir_dtype_load_run(int32_t dtype, const void *data, size_t count, double *out) {
  for (size_t i = 0; dtype == SNT_F32 && i < count; i++) out[i] = (double)load_float(data, i);
  for (size_t i = 0; dtype != SNT_F32 && i < count; i++) out[i] = ir_dtype_load(dtype, data, i);
}

void ir_dtype_store_run(int32_t dtype, void *data, size_t count, const double *values) {
  for (size_t i = 0; dtype == SNT_F32 && i < count; i++) ((float *)data)[i] = (float)values[i];
  for (size_t i = 0; dtype != SNT_F32 && i < count; i++) ir_dtype_store(dtype, data, i, values[i]);
}
