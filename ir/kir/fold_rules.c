/* Exact algebra: for an instruction about to be emitted, a simpler value that always has the same bits. A table of rules by operation.
   Float rules keep signed zeros, infinities and NaN: x*1, x-(+0), x+(-0), x/1, x/2^n. */
#include "ir/kir_pass_private.h"
#include <math.h>

typedef struct site {
  kir_kernel *k;
  const kir_inst *in;
  uint32_t count;
  const uint32_t *args;
} site;
typedef uint32_t (*rule)(const site *);

static const kir_inst *arg(const site *s, uint32_t n) { return kir_at(s->k, s->args[n]); }
static bool int_arg(const site *s, uint32_t n, int64_t *out) { return kir_is_int_const(s->k, s->args[n], out); }
static bool is_int(const site *s, uint32_t n, int64_t value) {
  int64_t have;
  return int_arg(s, n, &have) && have == kir_wrap_int(arg(s, n)->type.base, value);
}
static bool is_float(const site *s, uint32_t n, double value) {
  double have;
  return kir_is_float_const(s->k, s->args[n], &have) && have == value && !signbit(have) == !signbit(value);
}
static bool is_number(const site *s, uint32_t n, int value) { return is_int(s, n, value) || is_float(s, n, value); }
static bool floats(const site *s) { return kir_is_float(s->in->type.base); }
static uint32_t constant(const site *s, int64_t value) { return kir_const_int(s->k, s->in->type, value); }
static uint32_t emit_2(const site *s, kir_op op, uint32_t a, uint32_t b) {
  return kir_emit_op(s->k, op, s->in->type, 2, (uint32_t[]){a, b});
}

/* ---- arithmetic ---- */
static uint32_t add(const site *s) {
  if (floats(s)) return is_float(s, 1, -0.0) ? s->args[0] : is_float(s, 0, -0.0) ? s->args[1] : 0;
  return is_int(s, 1, 0) ? s->args[0] : is_int(s, 0, 0) ? s->args[1] : 0;
}
/* Bits of an unsigned value as a number: (value & mask) >> shift. */
typedef struct bit_field {
  uint32_t value, shift;
  int64_t mask;
} bit_field;
static int64_t all_bits(const kir_kernel *k, uint32_t x) { return (INT64_C(1) << kir_base_bits(kir_type_of(k, x).base)) - 1; }
/* Of a byte of a word that is shifted there, of the word. */
static bool read_field(const kir_kernel *k, uint32_t x, bit_field *f) {
  int64_t literal;
  if (!kir_is_word(kir_type_of(k, x))) return false;
  *f = (bit_field){.value = x, .mask = all_bits(k, x)};
  for (;;) {
    const kir_inst *in = kir_at(k, f->value);
    const uint32_t from = in->arg_count ? kir_arg(k, f->value, 0) : 0;
    const bool by = in->arg_count == 2 && kir_is_int_const(k, kir_arg(k, f->value, 1), &literal);
    if (in->op == KIR_and && by) f->mask &= literal;
    else if (in->op == KIR_shr && by && literal >= 0 && literal < kir_base_bits(in->type.base))
      f->shift += (uint32_t)literal, f->mask <<= literal;
    else if (in->op != KIR_cast || in->flags & KIR_SAT || !kir_is_word(kir_type_of(k, from))) break;
    if (f->shift >= 32) return false; /* nothing is left of it */
    f->mask &= all_bits(k, from);
    f->value = from;
  }
  return f->value != x;
}
/* A number of few bits less a whole one, a literal or a byte (zero points): its bits in the mantissa of 2^(23 - shift), less that power and
   the number, which is exact: no conversion, and no shift but of upper halves of words, one for all fields there, which then lie as those
   of lower halves do. */
static bool is_byte(const site *s, uint32_t n) {
  return arg(s, n)->op == KIR_cast && kir_base_bits(kir_type_of(s->k, kir_arg(s->k, s->args[n], 0)).base) == 8;
}
static uint32_t sub_from_field(const site *s) {
  enum { MANTISSA = 23, BIAS = 127, HALF = 16 };
  bit_field f;
  double c = 0;
  const bool known = kir_is_float_const(s->k, s->args[1], &c);
  if (s->in->type.base != SNT_F32 || arg(s, 0)->op != KIR_cast || (!known && !is_byte(s, 1))) return 0;
  if (!read_field(s->k, kir_arg(s->k, s->args[0], 0), &f)) return 0;
  const bool upper = f.shift >= HALF;
  if (upper) f.shift -= HALF, f.mask >>= HALF;
  if (f.mask >= INT64_C(1) << MANTISSA) return 0;
  const double power = ldexp(1, MANTISSA - (int)f.shift);
  if (c != floor(c) || fabs(c) >= power / 2) return 0;
  const kir_type word = kir_t(SNT_U32, s->in->type.lanes);
  const uint32_t wide = kir_emit_folded(s->k, &(kir_inst){.op = KIR_cast, .type = word}, 1, &f.value);
  const uint32_t half = upper ? kir_emit_op(s->k, KIR_shr, word, 2, (uint32_t[]){wide, kir_const_int(s->k, word, HALF)}) : wide;
  const uint32_t bits = kir_emit_op(s->k, KIR_and, word, 2, (uint32_t[]){half, kir_const_int(s->k, word, f.mask)});
  const int64_t exponent = (int64_t)(BIAS + MANTISSA - f.shift) << MANTISSA;
  const uint32_t placed = kir_emit_op(s->k, KIR_or, word, 2, (uint32_t[]){bits, kir_const_int(s->k, word, exponent)});
  const uint32_t base = kir_const_float(s->k, s->in->type, power + c), off = known ? base : emit_2(s, KIR_add, s->args[1], base);
  return emit_2(s, KIR_sub, kir_emit_op(s->k, KIR_bitcast, s->in->type, 1, &placed), off);
}
IR_COLD static uint32_t sub(const site *s) {
  if (floats(s)) return is_float(s, 1, 0.0) ? s->args[0] : sub_from_field(s);
  if (s->args[0] == s->args[1]) return constant(s, 0);
  return is_int(s, 1, 0) ? s->args[0] : 0;
}
static uint32_t mul(const site *s) {
  if (is_number(s, 1, 1)) return s->args[0];
  if (is_number(s, 0, 1)) return s->args[1];
  return !floats(s) && (is_int(s, 0, 0) || is_int(s, 1, 0)) ? constant(s, 0) : 0;
}
/* A power of two whose reciprocal is a normal number divides and multiplies alike. */
IR_COLD static uint32_t div_rule(const site *s) {
  double c;
  int exponent;
  if (is_number(s, 1, 1)) return s->args[0];
  if (!kir_is_float_const(s->k, s->args[1], &c) || c == 0 || c - c != 0 || fabs(frexp(c, &exponent)) != 0.5) return 0;
  const int limit = s->in->type.base == SNT_F16 ? 14 : 120;
  if (exponent > limit || exponent < -limit + 2) return 0;
  return emit_2(s, KIR_mul, s->args[0], kir_const_float(s->k, s->in->type, 1 / c));
}
static uint32_t udiv(const site *s) { return is_int(s, 1, 1) ? s->args[0] : is_int(s, 0, 0) ? s->args[0] : 0; }
static uint32_t umod(const site *s) { return is_int(s, 1, 1) ? constant(s, 0) : is_int(s, 0, 0) ? s->args[0] : 0; }
static uint32_t rem_rule(const site *s) { return floats(s) ? 0 : umod(s); }
/* neg neg, not not */
static uint32_t involution(const site *s) { return arg(s, 0)->op == s->in->op ? kir_arg(s->k, s->args[0], 0) : 0; }
static uint32_t abs_rule(const site *s) { return arg(s, 0)->op == KIR_abs ? s->args[0] : 0; }
static uint32_t idempotent(const site *s) { return s->args[0] == s->args[1] ? s->args[0] : 0; }
IR_COLD static uint32_t fma_rule(const site *s) {
  if (is_float(s, 0, 1)) return kir_emit_folded(s->k, &(kir_inst){.op = KIR_add, .type = s->in->type}, 2, s->args + 1);
  if (is_float(s, 1, 1))
    return kir_emit_folded(s->k, &(kir_inst){.op = KIR_add, .type = s->in->type}, 2, (uint32_t[]){s->args[0], s->args[2]});
  if (is_float(s, 2, -0.0)) return emit_2(s, KIR_mul, s->args[0], s->args[1]);
  return 0;
}

/* ---- bits ---- */
static uint32_t and_rule(const site *s) {
  if (s->args[0] == s->args[1] || is_int(s, 1, -1)) return s->args[0];
  if (is_int(s, 0, -1)) return s->args[1];
  return is_int(s, 0, 0) || is_int(s, 1, 0) ? constant(s, 0) : 0;
}
static uint32_t or_rule(const site *s) {
  if (s->args[0] == s->args[1] || is_int(s, 1, 0)) return s->args[0];
  if (is_int(s, 0, 0)) return s->args[1];
  return is_int(s, 0, -1) || is_int(s, 1, -1) ? constant(s, -1) : 0;
}
static uint32_t xor_rule(const site *s) {
  if (s->args[0] == s->args[1]) return constant(s, 0);
  return is_int(s, 1, 0) ? s->args[0] : is_int(s, 0, 0) ? s->args[1] : 0;
}
static uint32_t shift(const site *s) { return is_int(s, 1, 0) || is_int(s, 0, 0) ? s->args[0] : 0; }

/* ---- comparisons and choices ---- */
static uint32_t reflexive(const site *s) {
  const bool holds = s->in->op == KIR_eq || s->in->op == KIR_le || s->in->op == KIR_ge;
  if (!kir_is_float(arg(s, 0)->type.base) && s->args[0] == s->args[1]) return constant(s, holds);
  if (!kir_is_int(arg(s, 0)->type.base) || kir_is_signed(arg(s, 0)->type.base)) return 0;
  if (s->in->op == KIR_lt && is_int(s, 1, 0)) return constant(s, 0); /* nothing unsigned is below 0 */
  return s->in->op == KIR_ge && is_int(s, 1, 0) ? constant(s, 1) : 0;
}
static uint32_t select(const site *s) {
  int64_t condition;
  if (int_arg(s, 0, &condition)) return s->args[condition ? 1 : 2];
  if (s->args[1] == s->args[2]) return s->args[1];
  if (s->in->type.base == SNT_BOOL && is_int(s, 1, 1) && is_int(s, 2, 0) && kir_same(arg(s, 0)->type, s->in->type)) return s->args[0];
  return 0;
}

/* ---- conversions ---- */
/* Every value of `a` exists in `b`. */
static bool fits_in(kir_type a, kir_type b) {
  const ir_dtype_info *x = &ir_dtypes[a.base], *y = &ir_dtypes[b.base];
  if (a.base == b.base) return true;
  if (a.base == SNT_BOOL) return b.base != SNT_BOOL;
  if (b.base == SNT_BOOL) return false;
  if (x->is_float) return y->is_float && y->mantissa >= x->mantissa && y->bits > x->bits;
  if (y->is_float) return x->bits - x->is_signed <= y->mantissa + 1 && b.base != SNT_F16;
  return x->is_signed ? y->is_signed && y->bits >= x->bits : y->bits - y->is_signed >= x->bits;
}
static bool is_half(kir_type t) { return t.base == SNT_F16 || t.base == SNT_BF16; }
IR_COLD static uint32_t cast(const site *s) {
  const kir_inst *inner = arg(s, 0);
  const kir_type to = s->in->type;
  if (kir_same(inner->type, to)) return s->args[0];
  if (inner->op != KIR_cast) return 0;
  const uint32_t source = kir_arg(s->k, s->args[0], 0);
  const kir_type from = kir_type_of(s->k, source);
  if (!fits_in(from, inner->type)) return 0;
  if (kir_same(from, to)) return source;
  const bool class_kept = kir_is_float(from.base) == kir_is_float(inner->type.base);
  if (is_half(from) || is_half(to)) return 0;          /* by way of f32, which every target has; few do both steps at once */
  if (!class_kept && !kir_is_float(to.base)) return 0; /* int -> float -> int saturates where int -> int wraps */
  return kir_emit_folded(s->k, s->in, 1, &source);
}
static uint32_t bitcast(const site *s) {
  const kir_inst *inner = arg(s, 0);
  if (kir_same(inner->type, s->in->type)) return s->args[0];
  if (inner->op != KIR_bitcast) return 0;
  const uint32_t source = kir_arg(s->k, s->args[0], 0);
  return kir_same(kir_type_of(s->k, source), s->in->type) ? source : kir_emit(s->k, s->in, 1, &source);
}

/* ---- vectors ---- */
static bool same_constant(const kir_inst *a, const kir_inst *b) {
  return a->op == KIR_const && b->op == KIR_const && kir_same(a->type, b->type) && a->imm.i == b->imm.i;
}
static uint32_t splat(const site *s) {
  const kir_inst *in = arg(s, 0);
  if (s->in->type.lanes == 1) return s->args[0];
  if (in->op != KIR_const) return 0;
  kir_inst wide = *in;
  wide.type = s->in->type;
  return kir_emit(s->k, &wide, 0, NULL);
}
/* The value of one lane if it exists already; 0: no. */
static uint32_t lane_value(kir_kernel *k, uint32_t vector, uint32_t lane) {
  for (;;) {
    const kir_inst *in = kir_at(k, vector);
    int64_t at;
    switch (in->op) {
    case KIR_vec: return kir_arg(k, vector, lane);
    case KIR_splat: return kir_arg(k, vector, 0);
    case KIR_iota: return kir_const_int(k, kir_element(in->type), lane);
    case KIR_const: {
      kir_inst scalar = *in;
      scalar.type = kir_element(in->type);
      return kir_emit(k, &scalar, 0, NULL);
    }
    case KIR_insert:
      if (!kir_is_int_const(k, kir_arg(k, vector, 1), &at)) return 0;
      if (at == lane) return kir_arg(k, vector, 2);
      vector = kir_arg(k, vector, 0);
      continue;
    case KIR_shuffle: {
      if (!kir_is_int_const(k, kir_arg(k, vector, 2 + lane), &at)) return 0;
      const uint32_t a = kir_arg(k, vector, 0), lanes = kir_type_of(k, a).lanes;
      vector = at < lanes ? a : kir_arg(k, vector, 1);
      lane = (uint32_t)at % lanes;
      if (kir_type_of(k, vector).lanes == 1) return vector;
      continue;
    }
    default: return 0;
    }
  }
}
static uint32_t extract(const site *s) {
  int64_t lane, inner_lane;
  if (arg(s, 0)->type.lanes == 1) return s->args[0];
  if (arg(s, 0)->op == KIR_splat) return kir_arg(s->k, s->args[0], 0);
  if (!int_arg(s, 1, &lane) || (uint64_t)lane >= arg(s, 0)->type.lanes) return 0;
  const uint32_t found = lane_value(s->k, s->args[0], (uint32_t)lane);
  if (found) return found;
  /* past inserts of other lanes */
  const kir_inst *in = arg(s, 0);
  if (in->op != KIR_insert || !kir_is_int_const(s->k, kir_arg(s->k, s->args[0], 1), &inner_lane)) return 0;
  return kir_emit_folded(s->k, s->in, 2, (uint32_t[]){kir_arg(s->k, s->args[0], 0), s->args[1]});
}
IR_COLD static uint32_t vec(const site *s) {
  bool equal = true, whole = arg(s, 0)->op == KIR_extract;
  const uint32_t source = whole ? kir_arg(s->k, s->args[0], 0) : 0;
  if (s->in->type.lanes == 1) return s->args[0];
  whole = whole && kir_same(kir_type_of(s->k, source), s->in->type);
  for (uint32_t i = 0; i < s->count && (equal || whole); i++) {
    int64_t lane;
    equal = equal && (s->args[i] == s->args[0] || same_constant(arg(s, i), arg(s, 0)));
    whole = whole && arg(s, i)->op == KIR_extract && kir_arg(s->k, s->args[i], 0) == source &&
            kir_is_int_const(s->k, kir_arg(s->k, s->args[i], 1), &lane) && lane == i;
  }
  if (whole) return source;
  return equal ? kir_emit_folded(s->k, &(kir_inst){.op = KIR_splat, .type = s->in->type}, 1, s->args) : 0;
}
IR_COLD static uint32_t shuffle(const site *s) {
  bool identity = kir_same(arg(s, 0)->type, s->in->type);
  for (uint32_t i = 2; i < s->count && identity; i++) identity = is_int(s, i, i - 2);
  if (identity) return s->args[0];
  if (arg(s, 0)->op == KIR_splat && (s->args[0] == s->args[1] || arg(s, 1)->op == KIR_splat) &&
      kir_arg(s->k, s->args[0], 0) == kir_arg(s->k, s->args[1], 0))
    return kir_emit_op(s->k, KIR_splat, s->in->type, 1, &s->k->args.at[arg(s, 0)->args]);
  if (!same_constant(arg(s, 0), arg(s, 1))) return 0;
  kir_inst other = *arg(s, 0);
  other.type = s->in->type;
  return kir_emit(s->k, &other, 0, NULL);
}
static uint32_t hred(const site *s) { return arg(s, 0)->type.lanes == 1 ? s->args[0] : 0; }

/* ---- index sums ---- */
enum { MAX_TERMS = 8 };
typedef struct sum {
  kir_type type;
  int64_t constant;
  uint32_t count;
  uint32_t coefs[MAX_TERMS + 1], values[MAX_TERMS + 1];
  bool changed, full;
} sum;

/* One spelling a factor: negative ones are signed literals whatever the sum's type. */
static uint32_t factor(kir_kernel *k, kir_type type, int64_t value) {
  const bool narrow = kir_base_bits(type.base) == 32;
  value = narrow ? (int32_t)value : value;
  return kir_const_int(k, value < 0 && type.base == SNT_U32 ? kir_t(SNT_I32, 1) : type, value);
}

static bool one_coef(const kir_kernel *k, uint32_t coef) {
  int64_t c;
  return kir_is_int_const(k, coef, &c) && c == 1;
}

static void sum_term(kir_kernel *k, sum *t, uint32_t coef, uint32_t value) {
  int64_t a, b;
  for (uint32_t i = 0; i < t->count; i++) { /* like terms */
    if (t->values[i] != value || !kir_is_int_const(k, coef, &a) || !kir_is_int_const(k, t->coefs[i], &b)) continue;
    t->coefs[i] = factor(k, t->type, a + b);
    t->changed = true;
    return;
  }
  if (t->count == MAX_TERMS) t->full = true;
  else t->coefs[t->count] = coef, t->values[t->count++] = value;
}

/* coef * value, where value is itself a product or sum by constants, in pieces. */
static void sum_add(kir_kernel *k, sum *t, uint32_t coef, uint32_t value, uint32_t depth) {
  const kir_inst in = *kir_at(k, value);
  int64_t c = 0, v = 0, inner;
  const bool known = kir_is_int_const(k, coef, &c);
  if (known && (c == 0 || kir_is_int_const(k, value, &v))) {
    t->constant += c ? (int64_t)((uint64_t)c * (uint64_t)v) : 0;
    t->changed = true;
    return;
  }
  const bool same = kir_base_bits(in.type.base) == kir_base_bits(t->type.base);
  if (kir_is_int_const(k, value, &v) && kir_at(k, coef)->op == KIR_scalar) { /* 4 * scalar: the literal is the factor */
    t->changed = true;
    sum_add(k, t, factor(k, t->type, v), coef, depth + 1);
    return;
  }
  if (depth < 4 && same && known && in.op == KIR_ix) {
    t->changed = true;
    t->constant += (int64_t)((uint64_t)c * (uint64_t)in.imm.i);
    for (uint32_t i = 0; i < in.arg_count; i += 2) {
      const uint32_t inner_coef = kir_arg(k, value, i), inner_value = kir_arg(k, value, i + 1);
      if (kir_is_int_const(k, inner_coef, &inner))
        sum_add(k, t, factor(k, t->type, (int64_t)((uint64_t)c * (uint64_t)inner)), inner_value, depth + 1);
      else if (c == 1) sum_add(k, t, inner_coef, inner_value, depth + 1);
      else t->full = true; /* scalar times constant is no single factor */
    }
    return;
  }
  if (depth < 4 && same && known && (in.op == KIR_mul || in.op == KIR_shl) && in.type.lanes == 1 &&
      kir_is_int_const(k, kir_arg(k, value, 1), &inner)) {
    const uint64_t by = in.op == KIR_mul ? (uint64_t)inner : 1ull << ((uint64_t)inner & (kir_base_bits(in.type.base) - 1));
    t->changed = true;
    sum_add(k, t, factor(k, t->type, (int64_t)((uint64_t)c * by)), kir_arg(k, value, 0), depth + 1);
    return;
  }
  if (depth < 4 && same && known && in.op == KIR_add && kir_is_int_const(k, kir_arg(k, value, 1), &inner)) {
    t->changed = true;
    t->constant += (int64_t)((uint64_t)c * (uint64_t)inner);
    sum_add(k, t, coef, kir_arg(k, value, 0), depth + 1);
    return;
  }
  sum_term(k, t, coef, value);
}

static uint32_t ix(const site *s) {
  sum t = {.type = s->in->type, .constant = s->in->imm.i};
  for (uint32_t i = 0; i < s->count; i += 2) sum_add(s->k, &t, s->args[i], s->args[i + 1], 0);
  if (t.full) return 0;
  uint32_t args[2 * MAX_TERMS], n = 0;
  for (uint32_t i = 0; i < t.count; i++) {
    int64_t c;
    if (kir_is_int_const(s->k, t.coefs[i], &c) && kir_wrap_int(t.type.base, c) == 0) continue;
    args[2 * n] = t.coefs[i], args[2 * n + 1] = t.values[i], n++;
  }
  t.constant = kir_wrap_int(kir_base_bits(t.type.base) == 32 ? SNT_I32 : SNT_I64,
                            t.constant); /* readable either way, equal modulo the width */
  if (n == 0) return kir_const_int(s->k, t.type, t.constant);
  if (n == 1 && t.constant == 0 && one_coef(s->k, args[0]) && kir_same(kir_type_of(s->k, args[1]), t.type)) return args[1];
  if (!t.changed && n == t.count && t.constant == s->in->imm.i) return 0;
  kir_inst made = *s->in;
  made.imm.i = t.constant;
  return kir_emit(s->k, &made, 2 * n, args);
}

/* ---- memory ---- */
/* Constant tables at constant places. */
IR_COLD static uint32_t load(const site *s) {
  const kir_memory *m = &s->k->memories.at[s->in->index];
  if (m->space != KIR_CONSTANT || !m->values || m->type.lanes != 1 || m->type.frag) return 0;
  uint64_t at = 0;
  for (uint32_t d = 0; d < s->count; d++) {
    int64_t i;
    if (!int_arg(s, d, &i) || i < 0 || (uint64_t)i >= m->dims[d]) return 0;
    at = at * m->dims[d] + (uint64_t)i;
  }
  const uint32_t lanes = s->in->type.lanes, stride = s->in->lanes > 1 ? (uint32_t)s->in->lanes : 1;
  uint64_t total = 1;
  for (uint32_t d = 0; d < m->rank; d++) total *= m->dims[d];
  if (at + (uint64_t)(lanes - 1) * stride >= total) return 0;
  uint32_t values[16];
  for (uint32_t i = 0; i < lanes; i++) values[i] = kir_emit_const(s->k, m->type, m->values[at + (uint64_t)i * stride]);
  return lanes == 1 ? values[0] : kir_emit_folded(s->k, &(kir_inst){.op = KIR_vec, .type = s->in->type}, lanes, values);
}

/* Of a literal it is not left to drivers: Mesa 22.3 makes the high half of one 0. */
static uint32_t unpack2(const site *s) {
  const kir_inst *word = arg(s, 0);
  uint32_t halves[2];
  if (word->op != KIR_const) return 0;
  for (uint32_t i = 0; i < 2; i++) {
    const uint16_t bits = (uint16_t)((uint64_t)word->imm.i >> 16 * i);
    halves[i] = kir_const_float(s->k, kir_t(SNT_F32, 1),
                                (double)(s->in->index == SNT_BF16 ? ir_f32_from_bf16(bits) : ir_f32_from_f16(bits)));
  }
  return kir_emit_op(s->k, KIR_vec, kir_t(SNT_F32, 2), 2, halves);
}

static const rule rules[KIR_OP_COUNT] = {
    [KIR_add] = add,         [KIR_sub] = sub,         [KIR_mul] = mul,         [KIR_div] = div_rule,    [KIR_udiv] = udiv,
    [KIR_umod] = umod,       [KIR_rem] = rem_rule,    [KIR_neg] = involution,  [KIR_not] = involution,  [KIR_abs] = abs_rule,
    [KIR_min] = idempotent,  [KIR_max] = idempotent,  [KIR_fma] = fma_rule,    [KIR_and] = and_rule,    [KIR_or] = or_rule,
    [KIR_xor] = xor_rule,    [KIR_shl] = shift,       [KIR_shr] = shift,       [KIR_eq] = reflexive,    [KIR_ne] = reflexive,
    [KIR_lt] = reflexive,    [KIR_le] = reflexive,    [KIR_gt] = reflexive,    [KIR_ge] = reflexive,    [KIR_select] = select,
    [KIR_cast] = cast,       [KIR_bitcast] = bitcast, [KIR_splat] = splat,     [KIR_extract] = extract, [KIR_vec] = vec,
    [KIR_shuffle] = shuffle, [KIR_hred_add] = hred,   [KIR_hred_max] = hred,   [KIR_hred_min] = hred,   [KIR_hred_mul] = hred,
    [KIR_ix] = ix,           [KIR_load] = load,       [KIR_unpack2] = unpack2,
};

/* All operands constant: the value itself. */
static uint32_t evaluate(const site *s) {
  if (s->count == 0 || s->count > 3 || !(kir_is_elementwise(s->in->op) || s->in->op == KIR_cast || s->in->op == KIR_bitcast)) return 0;
  kir_value values[3] = {{0}}, result;
  for (uint32_t i = 0; i < s->count; i++) {
    const kir_inst *a = arg(s, i);
    if (a->op != KIR_const || a->type.frag) return 0;
    if (kir_is_float(a->type.base)) values[i].f = a->imm.f;
    else values[i].i = a->imm.i;
  }
  const kir_type operand = arg(s, 0)->type;
  if (!kir_eval(s->in, operand, values, &result)) return 0;
  return kir_is_float(s->in->type.base) ? kir_const_float(s->k, s->in->type, result.f) : kir_const_int(s->k, s->in->type, result.i);
}

uint32_t kir_simplify(kir_kernel *k, const kir_inst *like, uint32_t arg_count, const uint32_t *args) {
  if (k->failed) return 0;
  const kir_inst own = *like; /* `like` may lie in k->insts, and `args` in k->args: both move when rules emit */
  uint32_t few[32];
  if (arg_count > IR_COUNT(few)) return 0;
  if (arg_count) memcpy(few, args, arg_count * sizeof *few);
  const site s = {k, &own, arg_count, few};
  const uint32_t known = evaluate(&s);
  if (known) return known;
  return rules[own.op] ? rules[own.op](&s) : 0;
}
