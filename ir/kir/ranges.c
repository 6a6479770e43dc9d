/* What is known of how large and how fine values are, for pass small: an interval of the bits without the sign, and the power of two that a float is a
   multiple of. In: a kernel. Out: a range a value. One walk in the order of the code; what loops and branches give may be anything. */
#include "ir/kir_pass_private.h"

enum { MAGNITUDE = 0x7fffffff, INFINITE = 0x7f800000, NORMAL = 0x00800000, FINEST = -149, VAGUE = 0x12800000 /* 2^-90 */ };

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static uint32_t bits_of(double x) { return ir_f32_bits((float)x); }
static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }
static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }
static int16_t exponent(uint32_t bits) { return bits < NORMAL ? FINEST : (int16_t)((int32_t)(bits >> 23) - 127); }
static uint32_t trailing(uint32_t x) {
  uint32_t n = 0;
  while (n < 32 && !(x >> n & 1)) n++;
  return n;
}

/* The grid is at least the last place that the smallest magnitude has. */
static kir_range settled(kir_range r) {
  if (r.lo > r.hi) return (kir_range){.lo = MAGNITUDE, .zero = true, .sign = r.sign, .zeros = 31, .grid = 127}; /* 0 alone */
  const int32_t last = r.lo < NORMAL ? FINEST + (int32_t)smaller(r.zeros, 23) : exponent(r.lo) - 23 + (int32_t)smaller(r.zeros, 23);
  if (r.lo == 0) r.zero = true;
  if (r.grid < last) r.grid = (int16_t)last;
  if (r.grid < FINEST) r.grid = FINEST;
  if (r.grid > 127) r.grid = 127;
  return r;
}
static kir_range anything(void) { return (kir_range){.hi = MAGNITUDE, .zero = true, .sign = true, .grid = FINEST}; }
static kir_range bits_between(uint32_t lo, uint32_t hi) {
  return settled((kir_range){.lo = lo, .hi = hi, .zero = lo == 0, .grid = FINEST});
}
static bool is_zero(kir_range r) { return r.hi == 0; }
static uint32_t least(kir_range r) { return r.zero ? 0 : r.lo; }

static kir_range constant(const kir_inst *in) {
  const uint32_t bits = in->type.base == SNT_F32 ? bits_of(in->imm.f) : (uint32_t)in->imm.i, size = bits & MAGNITUDE;
  if (!size) return settled((kir_range){.lo = 1, .sign = bits != 0});
  return settled((kir_range){.lo = size, .hi = size, .sign = bits != size, .zeros = (uint8_t)trailing(size), .grid = FINEST});
}

static kir_range either(kir_range a, kir_range b) {
  return (kir_range){.lo = smaller(a.lo, b.lo),
                     .hi = larger(a.hi, b.hi),
                     .zero = a.zero || b.zero,
                     .sign = a.sign || b.sign,
                     .zeros = a.zeros < b.zeros ? a.zeros : b.zeros,
                     .grid = a.grid < b.grid ? a.grid : b.grid};
}

/* ---- floats. What pass small lets be wrong is tiny, and wrong by being 0: nothing is said of how small tiny values are ---- */
static kir_range rounded(double lo, double hi, bool zero, bool sign, int32_t grid) {
  const bool vague = !(lo >= (double)float_of(VAGUE));
  return settled((kir_range){.lo = vague ? 0 : smaller(bits_of(lo), INFINITE - 1),
                             .hi = hi < 0x1p127 ? bits_of(hi) + 1 : MAGNITUDE,
                             .zero = zero || vague,
                             .sign = sign,
                             .grid = (int16_t)(grid < FINEST ? FINEST
                                               : grid > 127  ? 127
                                                             : grid)});
}

static double low(kir_range r) { return (double)float_of(smaller(r.lo, INFINITE - 1)); }
static double high(kir_range r) { return r.hi < INFINITE ? (double)float_of(r.hi) : 0x1p300; }

static kir_range product(kir_range a, kir_range b, bool square) {
  if (is_zero(a) || is_zero(b)) return anything();
  kir_range r = rounded(low(a) * low(b), high(a) * high(b), a.zero || b.zero, !square && (a.sign || b.sign), a.grid + b.grid);
  if (r.lo == 0 && exponent(a.lo) + exponent(b.lo) - 23 > r.grid) r.grid = (int16_t)(exponent(a.lo) + exponent(b.lo) - 23);
  return r;
}

static kir_range quotient(kir_range a, kir_range b) {
  if (is_zero(a) || least(b) < NORMAL || b.hi >= INFINITE) return anything();
  return rounded(low(a) / high(b) * 0.999, high(a) / low(b) * 1.001, a.zero, a.sign || b.sign, FINEST);
}

static kir_range sum(kir_range a, kir_range b, bool minus) {
  int32_t grid = a.grid < b.grid ? a.grid : b.grid;
  for (uint32_t n = 0; n < 2; n++) { /* beside one that is never tiny nothing is finer than its last places */
    const kir_range of = n ? b : a;
    if (kir_range_absorbs(of) && exponent(of.lo) - 24 > grid) grid = exponent(of.lo) - 24;
  }
  const bool sign = a.sign || b.sign || minus;
  const double lo = sign || (a.zero && b.zero) ? 0 : a.zero ? low(b) : b.zero ? low(a) : low(a) + low(b);
  return rounded(lo, high(a) + high(b), sign || (a.zero && b.zero), sign, grid);
}

/* ---- integers, and floats as such: sign and magnitude apart ---- */
static uint32_t below(uint32_t x) { /* ones up to the highest of x */
  for (uint32_t n = 1; n < 32; n *= 2) x |= x >> n;
  return x;
}

static uint32_t combined(uint16_t op, uint32_t a, uint32_t b) { return op == KIR_and ? a & b : op == KIR_or ? a | b : a ^ b; }

static kir_range bitwise(uint16_t op, kir_range a, kir_range b) {
  kir_range r = {.sign = op == KIR_and ? a.sign && b.sign : a.sign || b.sign, .grid = FINEST};
  if (op != KIR_and && (is_zero(a) || is_zero(b))) { /* a sign */
    const kir_range of = is_zero(a) ? b : a;
    r.lo = of.lo, r.hi = of.hi, r.zero = of.zero, r.zeros = of.zeros, r.grid = of.grid;
    return r;
  }
  const uint32_t step = b.lo && b.lo == b.hi ? 1u << trailing(b.lo) : 0;
  if (op == KIR_and && step && b.lo + step == 0x80000000u && step <= NORMAL) { /* the last bits of a mantissa become 0 */
    r.lo = a.lo & b.lo, r.hi = a.hi & b.lo, r.zero = a.zero || !r.lo, r.grid = a.grid;
    r.zeros = (uint8_t)larger(a.zeros, trailing(step));
    return settled(r);
  }
  const uint32_t open = below((least(a) ^ a.hi) | (least(b) ^ b.hi));
  r.lo = combined(op, a.hi, b.hi) & ~open, r.hi = r.lo | open;
  if (op == KIR_and) r.hi = smaller(r.hi, smaller(a.hi, b.hi));
  if (op == KIR_or) r.lo = larger(r.lo, larger(least(a), least(b)));
  r.zero = r.lo == 0;
  r.zeros = op == KIR_and ? (uint8_t)larger(a.zeros, b.zeros) : (uint8_t)smaller(a.zeros, b.zeros);
  return settled(r);
}

static kir_range moved(uint16_t op, bool is_signed, kir_range a, kir_range by) {
  if (by.lo != by.hi || by.zero) return anything();
  const uint32_t n = by.lo & 31;
  kir_range r = anything();
  if (op == KIR_shr && !(a.sign && is_signed)) return bits_between(a.sign ? 0 : least(a) >> n, (a.hi | (a.sign ? 0x80000000u : 0)) >> n);
  if (op == KIR_shr) return r;
  if (!a.sign && !((uint64_t)a.hi << n >> 31)) r.lo = a.lo << n, r.hi = a.hi << n, r.zero = a.zero, r.sign = false;
  r.zeros = (uint8_t)smaller(a.zeros + n, 31);
  if (r.zeros == 31) r.hi = 0, r.lo = 1;
  return settled(r);
}

static kir_range integer(const kir_inst *in, kir_range a, kir_range b) {
  const bool known = !a.sign && !b.sign;
  const uint32_t zeros = smaller(a.zeros, b.zeros);
  kir_range r = anything();
  if (in->op == KIR_add && known && (uint64_t)a.hi + b.hi <= MAGNITUDE) r = bits_between(least(a) + least(b), a.hi + b.hi);
  else if (in->op == KIR_sub && known && least(a) >= b.hi) r = bits_between(least(a) - b.hi, a.hi - least(b));
  else if (in->op == KIR_mul) return r;
  r.zeros = (uint8_t)zeros;
  return settled(r);
}

/* To f32; whole numbers and f16 have no denormals there. */
static kir_range converted(int32_t from, kir_range a) {
  if (from == SNT_F16) return settled((kir_range){.lo = 0x33800000, .hi = MAGNITUDE, .zero = true, .sign = true, .grid = -24});
  if (kir_is_float(from)) return anything();
  if ((from == SNT_U32 || from == SNT_I32) && !a.sign) return rounded(larger(a.lo, 1), a.hi, a.zero, false, 0);
  return rounded(1, 0x1p64, true, true, 0);
}

static bool is_word(int32_t base) { return base == SNT_F32 || base == SNT_U32 || base == SNT_I32; }

static kir_range range_of(const kir_kernel *k, uint32_t i, const kir_range *ranges) {
  const kir_inst *in = kir_at(k, i);
  const bool real = in->type.base == SNT_F32;
  if (!is_word(in->type.base) || in->type.frag) return anything();
  kir_range a = anything(), b = anything();
  if (in->arg_count > 0 && !(kir_ops[in->op].flags & KIR_MEM)) a = ranges[kir_arg(k, i, 0)];
  if (in->arg_count > 1 && !(kir_ops[in->op].flags & KIR_MEM)) b = ranges[kir_arg(k, i, 1)];
  switch (in->op) {
  case KIR_const: return constant(in);
  case KIR_bitcast:
  case KIR_splat:
  case KIR_extract: return is_word(kir_type_of(k, kir_arg(k, i, 0)).base) ? a : anything();
  case KIR_insert: return either(a, ranges[kir_arg(k, i, 2)]);
  case KIR_select: return either(b, ranges[kir_arg(k, i, 2)]);
  case KIR_vec:
    for (uint32_t n = 1; n < in->arg_count; n++) a = either(a, ranges[kir_arg(k, i, n)]);
    return a;
  case KIR_shuffle: return either(a, b);
  case KIR_cast: return real ? converted(kir_type_of(k, kir_arg(k, i, 0)).base, a) : anything();
  case KIR_unpack2: return in->index == SNT_F16 ? converted(SNT_F16, a) : anything();
  case KIR_neg: a.sign = true; return real ? a : anything();
  case KIR_abs: a.sign = false; return real ? a : anything();
  case KIR_and:
  case KIR_or:
  case KIR_xor: return bitwise(in->op, a, b);
  case KIR_shl:
  case KIR_shr: return moved(in->op, in->type.base == SNT_I32, a, b);
  case KIR_add:
  case KIR_sub: return real ? sum(a, b, in->op == KIR_sub) : integer(in, a, b);
  case KIR_mul: return real ? product(a, b, kir_arg(k, i, 0) == kir_arg(k, i, 1)) : anything();
  case KIR_div: return real ? quotient(a, b) : anything();
  case KIR_floor:
  case KIR_ceil:
  case KIR_trunc:
  case KIR_rint: return rounded(1, high(a) + 1, true, true, 0);
  default: return anything();
  }
}

kir_range *kir_find_ranges(const kir_kernel *k, ir_arena *arena) {
  kir_range *ranges = IR_NEW_ARRAY(arena, kir_range, k->insts.count);
  for (uint32_t i = 1; ranges && i < k->insts.count; i++) ranges[i] = range_of(k, i, ranges);
  return ranges;
}

/* Never 0, and so large that what is below 2^-126 rounds away beside it. */
bool kir_range_absorbs(kir_range r) { return !r.zero && r.lo >= VAGUE && r.lo < INFINITE; }
int32_t kir_range_least(kir_range r) { return exponent(r.lo) > r.grid ? exponent(r.lo) : r.grid; }
int32_t kir_range_most(kir_range r) { return r.hi >= INFINITE ? KIR_UNBOUNDED : exponent(larger(r.hi, NORMAL)) + 1; }
