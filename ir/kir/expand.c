/* expand: operations that the target cannot print become ones that every target has. One function an operation, in a table; each is asked with the
   capability that would make it unnecessary. */
#include "ir/kir_pass_private.h"
#include <math.h>

typedef struct site {
  kir_clone c;
  const kir_caps *caps;
  const kir_inst *in;
  const uint32_t *args;
} site;
typedef uint32_t (*expansion)(site *); /* the value, or 0: keep the instruction */

static kir_type u32(void) { return kir_t(SNT_U32, 1); }
static kir_type arg_type(const site *s, uint32_t n) { return kir_type_of(s->c.out, s->args[n]); }
static uint32_t lit(site *s, kir_type t, double v) { return kir_emit_const(s->c.out, t, v); }
static uint32_t lane(site *s, uint32_t vector, uint32_t n) { return kir_lane(s->c.out, vector, n); }
static uint32_t two(site *s, kir_op op, uint32_t a, uint32_t b) { return kir_2(s->c.out, op, a, b); }
static uint32_t pick(site *s, uint32_t condition, uint32_t a, uint32_t b) { return kir_3(s->c.out, KIR_select, condition, a, b); }
#define two(s, op, a, b) IR_LAST_FIRST_2(two, a, b, s, op)
#define pick(s, condition, a, b) IR_LAST_FIRST_3(pick, condition, a, b, s)

static uint32_t expanded(site *s, kir_op op, uint32_t a, uint32_t b); /* a op b, expanded itself where that is needed */
#define expanded(s, op, a, b) IR_LAST_FIRST_2(expanded, a, b, s, op)

/* ---- vectors ---- */
static uint32_t half_of(site *s, uint32_t vector, uint32_t first, uint32_t lanes) {
  uint32_t args[18] = {vector, vector};
  for (uint32_t i = 0; i < lanes; i++) args[2 + i] = lit(s, u32(), first + i);
  return kir_emit_op(s->c.out, KIR_shuffle, kir_with_lanes(kir_type_of(s->c.out, vector), lanes), lanes + 2, args);
}

/* Lane i with lane i + N/2, as vectors where the target has them; three lanes are padded in order: (0 + 2) + 1. */
static uint32_t reduce(site *s, kir_op op) {
  uint32_t v = s->args[0], lanes = arg_type(s, 0).lanes;
  if (s->caps->hred && lanes <= s->caps->max_lanes) return 0;
  if (lanes == 3) return expanded(s, op, expanded(s, op, lane(s, v, 0), lane(s, v, 2)), lane(s, v, 1));
  for (; lanes > 2 && s->caps->shuffle; lanes /= 2) v = expanded(s, op, half_of(s, v, 0, lanes / 2), half_of(s, v, lanes / 2, lanes / 2));
  uint32_t values[16];
  for (uint32_t i = 0; i < lanes; i++) values[i] = lane(s, v, i);
  for (; lanes > 1; lanes /= 2)
    for (uint32_t i = 0; i < lanes / 2; i++) values[i] = expanded(s, op, values[i], values[i + lanes / 2]);
  return values[0];
}
static uint32_t hred_add(site *s) { return reduce(s, KIR_add); }
static uint32_t hred_mul(site *s) { return reduce(s, KIR_mul); }
static uint32_t hred_max(site *s) { return reduce(s, KIR_max); }
static uint32_t hred_min(site *s) { return reduce(s, KIR_min); }

static uint32_t extract(site *s) {
  int64_t known;
  if (kir_is_int_const(s->c.out, s->args[1], &known)) return 0;
  uint32_t value = lane(s, s->args[0], 0);
  for (uint32_t i = 1; i < arg_type(s, 0).lanes; i++)
    value = pick(s, two(s, KIR_eq, s->args[1], lit(s, u32(), i)), lane(s, s->args[0], i), value);
  return value;
}

/* Lane by number: a choice for each lane of the table. */
static uint32_t permute(site *s) {
  const uint32_t lanes = s->in->type.lanes;
  if (s->caps->permute == lanes) return 0;
  const uint32_t number = two(s, KIR_and, s->args[1], lit(s, arg_type(s, 1), lanes - 1));
  uint32_t value = kir_splat(s->c.out, lane(s, s->args[0], 0), lanes);
  for (uint32_t i = 1; i < lanes; i++)
    value = pick(s, two(s, KIR_eq, number, lit(s, arg_type(s, 1), i)), kir_splat(s->c.out, lane(s, s->args[0], i), lanes), value);
  return value;
}

static uint32_t shuffle(site *s) {
  if (s->caps->shuffle) return 0;
  uint32_t values[16];
  const uint32_t lanes = arg_type(s, 0).lanes;
  for (uint32_t i = 0; i < s->in->type.lanes; i++) {
    int64_t at = 0;
    kir_is_int_const(s->c.out, s->args[2 + i], &at);
    values[i] = lane(s, s->args[at < lanes ? 0 : 1], (uint32_t)at % lanes);
  }
  return kir_emit_op(s->c.out, KIR_vec, s->in->type, s->in->type.lanes, values);
}

/* ---- integers ---- */
/* Bits of a word in the mantissa of a power of two, (x & m) | e: the exponents of 2^7 to 2^23 come first, all at once, and then what is
   each field's, so that fields of a word share that. Not where vectors are as wide as tables: such processors have one instruction for
   both. */
static uint32_t or_expand(site *s) {
  enum { EXPONENTS = 0x4f800000, LEAST = 0x43000000 };
  const kir_inst *field = kir_at(s->c.out, s->args[0]);
  const kir_type t = s->in->type;
  int64_t mask, exponent;
  if (t.base != SNT_U32 || t.lanes < 2 || t.lanes >= s->caps->permute || field->op != KIR_and) return 0;
  const uint32_t word = kir_arg(s->c.out, s->args[0], 0);
  if (!kir_is_int_const(s->c.out, kir_arg(s->c.out, s->args[0], 1), &mask) || !kir_is_int_const(s->c.out, s->args[1], &exponent)) return 0;
  if (mask & EXPONENTS || exponent & ~(int64_t)EXPONENTS || exponent < LEAST) return 0;
  const uint32_t placed = two(s, KIR_or, word, kir_const_int(s->c.out, t, EXPONENTS));
  return two(s, KIR_and, placed, kir_const_int(s->c.out, t, mask | exponent));
}

static uint32_t dot4(site *s) {
  if (s->caps->dot4) return 0;
  const kir_type t = s->in->type;
  uint32_t sum = s->args[2];
  for (uint32_t byte = 0; byte < 4; byte++) {
    const uint32_t moved = byte ? two(s, KIR_shr, s->args[0], lit(s, t, 8 * byte)) : s->args[0];
    const uint32_t left = two(s, KIR_and, moved, lit(s, t, 255));
    const uint32_t high = byte < 3 ? two(s, KIR_shl, s->args[1], lit(s, t, 24 - 8 * byte)) : s->args[1];
    sum = two(s, KIR_add, sum, two(s, KIR_mul, left, two(s, KIR_shr, high, lit(s, t, 24))));
  }
  return sum;
}

/* a + b < 2 n, and n is far below 2^31. */
static uint32_t wrap(site *s) {
  if (s->caps->wrap) return 0;
  const uint32_t sum = two(s, KIR_add, s->args[0], s->args[1]), over = two(s, KIR_ge, sum, s->args[2]);
  return pick(s, over, two(s, KIR_sub, sum, s->args[2]), sum);
}

/* A divisor that the plain operator of C takes: x / 0 and x / -1 are answered beside it. */
static uint32_t divide(site *s, bool remainder) {
  const kir_type t = s->in->type;
  int64_t known;
  if (kir_is_int_const(s->c.out, s->args[1], &known) && known != 0 && known != -1) return 0;
  const bool sign = kir_is_signed(t.base);
  const uint32_t zero = lit(s, t, 0), one = lit(s, t, 1), none = two(s, KIR_eq, s->args[1], zero);
  const uint32_t minus = sign ? two(s, KIR_eq, s->args[1], kir_const_int(s->c.out, t, -1)) : 0;
  const uint32_t odd = sign ? two(s, KIR_or, none, minus) : none;
  uint32_t value = two(s, remainder ? KIR_rem : KIR_div, s->args[0], pick(s, odd, one, s->args[1]));
  if (sign) value = pick(s, minus, remainder ? zero : kir_1(s->c.out, KIR_neg, s->args[0]), value);
  return pick(s, none, zero, value);
}

/* Of f64 a lane at a time: one driver's remainder of vectors is wrong beside a lane that is NaN or far greater than its divisor. */
static uint32_t rem_expand(site *s) {
  const kir_type type = s->in->type;
  if (!kir_is_float(type.base)) return divide(s, true);
  if (type.base != SNT_F64 || type.lanes == 1 || s->caps->keeps_math) return 0;
  uint32_t lanes[16];
  for (uint32_t i = 0; i < type.lanes; i++) lanes[i] = two(s, KIR_rem, lane(s, s->args[0], i), lane(s, s->args[1], i));
  return kir_emit_op(s->c.out, KIR_vec, type, type.lanes, lanes);
}

/* ---- floats: NaN ---- */
static uint32_t bits_above(site *s, kir_op op, uint32_t value) {
  kir_kernel *out = s->c.out;
  const kir_type single = kir_with_base(kir_type_of(out, value), SNT_F32), word = kir_with_base(single, SNT_U32);
  const uint32_t bits = two(s, KIR_and, kir_bitcast(out, word, kir_cast(out, single, value)), lit(s, word, 0x7fffffff));
  return two(s, op, bits, lit(s, word, 0x7f800000));
}
static bool bits_reach(const site *s, uint32_t value) { return kir_type_of(s->c.out, value).base != SNT_F64; }

/* Of narrower floats, too: what computes on them is f32. */
static bool keeps_nan(const site *s) { return kir_keeps_nan(s->caps, s->c.in->mode); }
static uint32_t is_nan(site *s, uint32_t value) {
  return keeps_nan(s) || !bits_reach(s, value) ? two(s, KIR_ne, value, value) : bits_above(s, KIR_gt, value);
}
static uint32_t isnan_expand(site *s) { return s->caps->nan_unsafe && bits_reach(s, s->args[0]) ? bits_above(s, KIR_gt, s->args[0]) : 0; }
static uint32_t isinf_expand(site *s) { return s->caps->nan_unsafe && bits_reach(s, s->args[0]) ? bits_above(s, KIR_eq, s->args[0]) : 0; }

static bool is_number(const site *s, uint32_t n) {
  double value;
  return kir_is_const(s->c.out, s->args[n], NULL, &value) && value == value;
}

/* What a limit on the side of its own sign beats is one stretch of bits without a NaN, from the limit's to infinity's: max(a, c), c <= 0, and min(a, c),
   c > 0. Compared as signed integers, which all devices have of vectors; for max(a, 0) they lie so already. */
static uint32_t beaten_bits(site *s, kir_op better) {
  const kir_type type = s->in->type, word = kir_with_base(type, SNT_I32);
  double limit;
  if (type.base != SNT_F32 || !kir_is_const(s->c.out, s->args[1], NULL, &limit)) return 0;
  if (better == KIR_gt ? limit > 0 || (limit == 0 && signbit(limit)) : !(limit > 0)) return 0;
  const uint32_t first = better == KIR_gt && limit == 0 ? 0x80000000 : ir_f32_bits((float)limit),
                 last = better == KIR_gt ? 0xff800000 : 0x7f800000;
  const uint32_t bits = kir_bitcast(s->c.out, word, s->args[0]), moved = 0x80000000 - first;
  const uint32_t place = moved ? two(s, KIR_add, bits, lit(s, word, (int32_t)moved)) : bits;
  return two(s, KIR_le, place, lit(s, word, (int32_t)(last + moved)));
}

/* (a better than b, or a is NaN) ? a : b. Where a comparison with NaN is false, the other operand is taken: the order of operands decides what a NaN
   gives, and which zero an equal pair gives: an instruction that keeps NaN does not say either, where the mode does. */
static uint32_t extreme(site *s, kir_op better, kir_op as_good) {
  if (!kir_is_float(s->in->type.base) || (s->caps->minmax_nan && s->c.in->mode != SNT_NUMERICS_REPRODUCIBLE)) return 0;
  const uint32_t a = s->args[0], b = s->args[1];
  const bool safe = s->in->type.base == SNT_F64 || keeps_nan(s) || s->c.in->mode == SNT_NUMERICS_FAST;
  if (is_number(s, 1)) { /* a NaN in `a` stays */
    const uint32_t beaten = safe ? 0 : beaten_bits(s, better);
    if (beaten) return pick(s, beaten, b, a);
    const uint32_t chosen = pick(s, two(s, as_good, b, a), b, a);
    return safe ? chosen : pick(s, is_nan(s, a), a, chosen);
  }
  const uint32_t chosen = pick(s, two(s, better, a, b), a, b); /* a NaN in `b` stays */
  const uint32_t with_b = safe ? chosen : pick(s, is_nan(s, b), b, chosen);
  return is_number(s, 0) ? with_b : pick(s, is_nan(s, a), a, with_b);
}
static uint32_t max_expand(site *s) { return extreme(s, KIR_gt, KIR_ge); }
static uint32_t min_expand(site *s) { return extreme(s, KIR_lt, KIR_le); }

/* Over a subgroup no driver says what becomes of a NaN: integers in the order of the floats, a NaN better than all. */
static uint32_t sg_extreme(site *s, uint32_t wins) {
  kir_kernel *out = s->c.out;
  const kir_type type = s->in->type, word = kir_with_base(type, SNT_I32);
  if (type.base != SNT_F32 || !s->caps->nan_unsafe || s->c.in->mode == SNT_NUMERICS_FAST) return 0;
  const uint32_t places = lit(s, word, 0x7fffffff), sign = lit(s, word, 31);
  const uint32_t bits = pick(s, is_nan(s, s->args[0]), lit(s, word, (int32_t)wins), kir_bitcast(out, word, s->args[0]));
  const uint32_t key = two(s, KIR_xor, bits, two(s, KIR_and, two(s, KIR_shr, bits, sign), places));
  const uint32_t best = kir_1(out, (kir_op)s->in->op, key);
  return kir_bitcast(out, type, two(s, KIR_xor, best, two(s, KIR_and, two(s, KIR_shr, best, sign), places)));
}
static uint32_t sg_max_expand(site *s) { return sg_extreme(s, 0x7fc00000); }
static uint32_t sg_min_expand(site *s) { return sg_extreme(s, 0xffc00000); }

/* ---- floats: rounding ---- */
/* One driver of the targets that need not keep NaNs rounds a vector of f64 by way of integers on some processors: 1.5 becomes 1, and -0 becomes 0. Its floor is
   right. What is whole stays as it is, -0 and infinities among it. */
static uint32_t by_floor(site *s, bool to_even) {
  const kir_type type = s->in->type;
  if (type.base != SNT_F64 || !s->caps->nan_unsafe) return 0;
  const uint32_t x = s->args[0], zero = lit(s, type, 0), half = lit(s, type, 0.5), one = lit(s, type, 1);
  const uint32_t size = kir_1(s->c.out, KIR_abs, x), whole = kir_1(s->c.out, KIR_floor, size);
  uint32_t value = whole;
  if (to_even) {
    const uint32_t rest = two(s, KIR_sub, size, whole), halved = two(s, KIR_mul, whole, half);
    const uint32_t odd = two(s, KIR_ne, halved, kir_1(s->c.out, KIR_floor, halved));
    const uint32_t up = two(s, KIR_or, two(s, KIR_gt, rest, half), two(s, KIR_and, two(s, KIR_eq, rest, half), odd));
    value = pick(s, up, two(s, KIR_add, whole, one), whole);
  }
  return pick(s, two(s, KIR_eq, size, whole), x, pick(s, two(s, KIR_lt, x, zero), kir_1(s->c.out, KIR_neg, value), value));
}
static uint32_t rint_expand(site *s) { return by_floor(s, true); }
static uint32_t trunc_expand(site *s) { return by_floor(s, false); }

static bool is_plus_zero(const site *s, uint32_t n) {
  double value;
  return kir_is_const(s->c.out, s->args[n], NULL, &value) && value == 0 && !signbit(value);
}

/* Some drivers take x + 0 for x, others do not, and -0 tells. In reproducible mode no driver sees it. */
static uint32_t add_expand(site *s) {
  const kir_type type = s->in->type;
  if (s->c.in->mode != SNT_NUMERICS_REPRODUCIBLE || type.base != SNT_F32) return 0;
  const bool first = is_plus_zero(s, 0);
  if (!first && !is_plus_zero(s, 1)) return 0;
  const kir_type word = kir_with_base(type, SNT_U32);
  const uint32_t bits = kir_bitcast(s->c.out, word, s->args[first ? 1 : 0]);
  const uint32_t negative = two(s, KIR_eq, bits, lit(s, word, 0x80000000));
  return kir_bitcast(s->c.out, type, pick(s, negative, lit(s, word, 0), bits));
}

/* A product that may be NaN by a test on its bits is nothing that a sum could take in. */
static uint32_t mul_expand(site *s) {
  const kir_type type = s->in->type, word = kir_with_base(type, SNT_U32);
  if (!s->caps->contracts || s->c.in->mode != SNT_NUMERICS_REPRODUCIBLE || type.base != SNT_F32 || type.frag) return 0;
  const uint32_t product = kir_emit(s->c.out, s->in, 2, s->args), bits = kir_bitcast(s->c.out, word, product);
  return kir_bitcast(s->c.out, type, pick(s, bits_above(s, KIR_gt, product), lit(s, word, 0x7fc00000), bits));
}

static uint32_t fma_expand(site *s) {
  return kir_keeps_fma(s->c.in, s->caps) ? 0 : two(s, KIR_add, two(s, KIR_mul, s->args[0], s->args[1]), s->args[2]);
}

static uint32_t with_ulp(site *s, kir_op op, uint32_t count, const uint32_t *args) {
  const kir_inst like = {.op = (uint16_t)op, .type = s->in->type};
  return kir_emit(s->c.out, &like, count, args);
}

/* c - a * b with one rounding: by fma, or by Veltkamp's halves and Dekker's product. */
static uint32_t residual(site *s, uint32_t c, uint32_t a, uint32_t b) {
  kir_kernel *k = s->c.out;
  if (s->caps->fma_fused) return kir_3(k, KIR_fma, kir_1(k, KIR_neg, a), b, c);
  uint32_t high[2], low[2];
  const uint32_t whole[2] = {a, b};
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t scaled = two(s, KIR_mul, whole[i], lit(s, s->in->type, 4097));
    high[i] = two(s, KIR_sub, scaled, two(s, KIR_sub, scaled, whole[i]));
    low[i] = two(s, KIR_sub, whole[i], high[i]);
  }
  const uint32_t p = two(s, KIR_mul, a, b);
  uint32_t error = two(s, KIR_sub, two(s, KIR_mul, high[0], high[1]), p);
  error = two(s, KIR_add, error, two(s, KIR_mul, high[0], low[1]));
  error = two(s, KIR_add, error, two(s, KIR_mul, low[0], high[1]));
  error = two(s, KIR_add, error, two(s, KIR_mul, low[0], low[1]));
  return two(s, KIR_sub, two(s, KIR_sub, c, p), error);
}

/* Inside (2^-60, 2^60) no product or residual overflows or is denormal; outside the target's own result stands. */
static uint32_t moderate(site *s, uint32_t value) {
  const uint32_t size = kir_1(s->c.out, KIR_abs, value);
  return two(s, KIR_and, two(s, KIR_gt, size, lit(s, s->in->type, 0x1p-60)), two(s, KIR_lt, size, lit(s, s->in->type, 0x1p60)));
}
static bool wants_correction(const site *s, bool exact) {
  return !exact && s->in->type.base == SNT_F32 && s->in->ulp > 0 && s->in->ulp < 2.5f;
}

static uint32_t div_expand(site *s) {
  if (!kir_is_float(s->in->type.base)) return divide(s, false);
  if (!wants_correction(s, s->caps->exact_div)) return 0;
  const uint32_t a = s->args[0], b = s->args[1], q = with_ulp(s, KIR_div, 2, s->args);
  const uint32_t step = with_ulp(s, KIR_div, 2, (uint32_t[]){residual(s, a, q, b), b});
  const uint32_t safe = two(s, KIR_and, moderate(s, a), two(s, KIR_and, moderate(s, b), moderate(s, q)));
  return pick(s, safe, two(s, KIR_add, q, step), q);
}

static uint32_t sqrt_expand(site *s) {
  if (!wants_correction(s, s->caps->exact_sqrt)) return 0;
  const uint32_t a = s->args[0], root = with_ulp(s, KIR_sqrt, 1, s->args);
  const uint32_t step = with_ulp(s, KIR_div, 2, (uint32_t[]){residual(s, a, root, root), two(s, KIR_add, root, root)});
  return pick(s, moderate(s, a), two(s, KIR_add, root, step), root);
}

static uint32_t rcp_expand(site *s) {
  const uint32_t args[2] = {lit(s, s->in->type, 1), s->args[0]};
  const kir_inst div = {.op = KIR_div, .type = s->in->type, .ulp = s->in->ulp};
  site as_div = *s;
  as_div.in = &div, as_div.args = args;
  const uint32_t value = div_expand(&as_div);
  return value ? value : kir_emit(s->c.out, &div, 2, args);
}

/* Bool has no arithmetic: not 0 makes it, a choice of 1 and 0 unmakes it. */
static uint32_t cast(site *s) {
  const kir_type from = arg_type(s, 0), to = s->in->type;
  if (to.base == SNT_BOOL && from.base != SNT_BOOL) return two(s, KIR_ne, s->args[0], lit(s, from, 0));
  return from.base == SNT_BOOL && to.base != SNT_BOOL ? pick(s, s->args[0], lit(s, to, 1), lit(s, to, 0)) : 0;
}

/* ---- halves ---- */
static uint32_t pack2(site *s) {
  if (s->caps->pack2 && s->in->index == SNT_F16) return 0;
  kir_kernel *out = s->c.out;
  const uint32_t bits = s->in->index == SNT_BF16 ? kir_bf16_to_bits(out, s->args[0]) : kir_f16_to_bits(out, s->args[0]);
  return two(s, KIR_or, lane(s, bits, 0), two(s, KIR_shl, lane(s, bits, 1), lit(s, u32(), 16)));
}
static uint32_t unpack2(site *s) {
  if (s->caps->pack2 && s->in->index == SNT_F16) return 0;
  kir_kernel *out = s->c.out;
  const uint32_t low = two(s, KIR_and, s->args[0], lit(s, u32(), 0xffff)), high = two(s, KIR_shr, s->args[0], lit(s, u32(), 16));
  const uint32_t bits = kir_emit_op(out, KIR_vec, kir_t(SNT_U32, 2), 2, (uint32_t[]){low, high});
  return s->in->index == SNT_BF16 ? kir_bf16_from_bits(out, bits) : kir_f16_from_bits(out, bits);
}

static const expansion expansions[KIR_OP_COUNT] = {
    [KIR_hred_add] = hred_add,
    [KIR_hred_mul] = hred_mul,
    [KIR_hred_max] = hred_max,
    [KIR_hred_min] = hred_min,
    [KIR_extract] = extract,
    [KIR_shuffle] = shuffle,
    [KIR_wrap] = wrap,
    [KIR_dot4] = dot4,
    [KIR_rem] = rem_expand,
    [KIR_div] = div_expand,
    [KIR_isnan] = isnan_expand,
    [KIR_isinf] = isinf_expand,
    [KIR_max] = max_expand,
    [KIR_min] = min_expand,
    [KIR_sg_max] = sg_max_expand,
    [KIR_sg_min] = sg_min_expand,
    [KIR_fma] = fma_expand,
    [KIR_sqrt] = sqrt_expand,
    [KIR_permute] = permute,
    [KIR_add] = add_expand,
    [KIR_or] = or_expand,
    [KIR_rcp] = rcp_expand,
    [KIR_pack2] = pack2,
    [KIR_unpack2] = unpack2,
    [KIR_cast] = cast,
    [KIR_mul] = mul_expand,
    [KIR_rint] = rint_expand,
    [KIR_trunc] = trunc_expand,
};

static uint32_t(expanded)(site *s, kir_op op, uint32_t a, uint32_t b) {
  const kir_inst like = {.op = (uint16_t)op, .type = kir_type_of(s->c.out, a)};
  site inner = *s;
  inner.in = &like, inner.args = (const uint32_t[]){a, b};
  const uint32_t value = s->c.out->failed || !expansions[op] ? 0 : expansions[op](&inner);
  return value ? value : two(s, op, a, b);
}

snt_result kir_pass_expand(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  site s = {.caps = caps};
  SNT_TRY(kir_clone_begin(&s.c, in, out));
  for (uint32_t i = 1; i < in->insts.count && !out->failed; i++) {
    uint32_t args[18];
    s.in = kir_at(in, i);
    s.args = args;
    const expansion expand = s.in->arg_count <= IR_COUNT(args) ? expansions[s.in->op] : NULL;
    for (uint32_t n = 0; expand && n < s.in->arg_count; n++) args[n] = s.c.map[kir_arg(in, i, n)];
    const uint32_t value = expand ? expand(&s) : 0;
    if (value) s.c.map[i] = value;
    else kir_clone_inst(&s.c, i);
  }
  return kir_pass_end(out, "expand", diag);
}
