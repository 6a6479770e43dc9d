/* pairs: 64-bit integers on a device without them become two u32 values each, low and high, and their memories twice as many words.
   In: a kernel before `require`. Out: the same without i64 and u64, but where an operation has no form here (bit counts, scalars):
   that is an error which names it. A device that has the type gets a plain copy. */
#include "ir/kir_pass_private.h"

typedef struct pair {
  uint32_t lo, hi;
} pair;
typedef struct pairs {
  kir_clone c;
  uint32_t *hi;     /* per old instruction, as c.map for the low halves */
  uint32_t running; /* number of the next carried value or result, counted in halves */
} pairs;

static bool is_wide(uint32_t base) { return base == SNT_I64 || base == SNT_U64; }
static kir_type words(uint32_t lanes) { return kir_t(SNT_U32, lanes); }
static pair of(const pairs *p, uint32_t old) { return (pair){p->c.map[old], p->hi[old]}; }
static uint32_t lit(pairs *p, uint32_t lanes, int64_t v) { return kir_const_int(p->c.out, words(lanes), v); }
#define two(p, op, a, b) kir_2((p)->c.out, op, a, b)
#define pick(p, condition, a, b) kir_3((p)->c.out, KIR_select, condition, a, b)
static uint32_t as_signed(pairs *p, uint32_t v) { return kir_bitcast(p->c.out, kir_t(SNT_I32, kir_type_of(p->c.out, v).lanes), v); }
static uint32_t as_word(pairs *p, uint32_t v) { return kir_bitcast(p->c.out, words(kir_type_of(p->c.out, v).lanes), v); }
static uint32_t lanes_of(pairs *p, pair a) { return p->c.out->failed ? 1 : kir_type_of(p->c.out, a.lo).lanes; }
static pair pick_pair(pairs *p, uint32_t condition, pair a, pair b) {
  return (pair){pick(p, condition, a.lo, b.lo), pick(p, condition, a.hi, b.hi)};
}
#define pick_pair(p, condition, a, b) IR_LAST_FIRST_3(pick_pair, condition, a, b, p)
static uint32_t one_if(pairs *p, uint32_t condition, uint32_t lanes) { return pick(p, condition, lit(p, lanes, 1), lit(p, lanes, 0)); }

/* ---- arithmetic ---- */

static pair add(pairs *p, pair a, pair b) {
  const uint32_t lo = two(p, KIR_add, a.lo, b.lo), carry = one_if(p, two(p, KIR_lt, lo, a.lo), lanes_of(p, a));
  return (pair){lo, two(p, KIR_add, two(p, KIR_add, a.hi, b.hi), carry)};
}
static pair sub(pairs *p, pair a, pair b) {
  const uint32_t borrow = one_if(p, two(p, KIR_lt, a.lo, b.lo), lanes_of(p, a));
  return (pair){two(p, KIR_sub, a.lo, b.lo), two(p, KIR_sub, two(p, KIR_sub, a.hi, b.hi), borrow)};
}
static pair negate(pairs *p, pair a) {
  const uint32_t zero = lit(p, lanes_of(p, a), 0);
  return sub(p, (pair){zero, zero}, a);
}
static pair multiply(pairs *p, pair a, pair b) {
  const uint32_t cross = two(p, KIR_add, two(p, KIR_mul, a.lo, b.hi), two(p, KIR_mul, a.hi, b.lo));
  return (pair){two(p, KIR_mul, a.lo, b.lo), two(p, KIR_add, two(p, KIR_mulhi, a.lo, b.lo), cross)};
}
static uint32_t is_less(pairs *p, pair a, pair b, bool is_signed) {
  const uint32_t high = is_signed ? two(p, KIR_lt, as_signed(p, a.hi), as_signed(p, b.hi)) : two(p, KIR_lt, a.hi, b.hi);
  return two(p, KIR_or, high, two(p, KIR_and, two(p, KIR_eq, a.hi, b.hi), two(p, KIR_lt, a.lo, b.lo)));
}
static uint32_t is_equal(pairs *p, pair a, pair b) { return two(p, KIR_and, two(p, KIR_eq, a.lo, b.lo), two(p, KIR_eq, a.hi, b.hi)); }
static uint32_t is_negative(pairs *p, pair a) {
  return two(p, KIR_lt, as_signed(p, a.hi), kir_const_int(p->c.out, kir_t(SNT_I32, lanes_of(p, a)), 0));
}
static uint32_t zeros(pairs *p, pair like) { return lit(p, lanes_of(p, like), 0); }
static uint32_t leading_zeros(pairs *p, pair a) {
  const uint32_t below = two(p, KIR_add, kir_1(p->c.out, KIR_clz, a.lo), lit(p, lanes_of(p, a), 32));
  return pick(p, two(p, KIR_eq, a.hi, zeros(p, a)), below, kir_1(p->c.out, KIR_clz, a.hi));
}
static uint32_t invert(pairs *p, uint32_t v) { return kir_1(p->c.out, KIR_not, v); }
static uint32_t sign_words(pairs *p, uint32_t word) {
  const uint32_t lanes = p->c.out->failed ? 1 : kir_type_of(p->c.out, word).lanes;
  return as_word(p, two(p, KIR_shr, as_signed(p, word), kir_const_int(p->c.out, kir_t(SNT_I32, lanes), 31)));
}

/* By less than 32 with bits handed over, by 32 or more with whole words; an amount of 0 hands over none. */
static pair shift(pairs *p, pair a, pair by, bool left, bool is_signed) {
  const uint32_t lanes = lanes_of(p, a), amount = two(p, KIR_and, by.lo, lit(p, lanes, 63)), zero = lit(p, lanes, 0);
  const uint32_t small = two(p, KIR_and, amount, lit(p, lanes, 31)),
                 rest = two(p, KIR_and, two(p, KIR_sub, lit(p, lanes, 32), small), lit(p, lanes, 31));
  const uint32_t whole = two(p, KIR_ge, amount, lit(p, lanes, 32)), none = two(p, KIR_eq, small, zero);
  if (left) {
    const uint32_t over = pick(p, none, zero, two(p, KIR_shr, a.lo, rest));
    const pair near = {two(p, KIR_shl, a.lo, small), two(p, KIR_or, two(p, KIR_shl, a.hi, small), over)};
    return pick_pair(p, whole, ((pair){zero, near.lo}), near);
  }
  const uint32_t over = pick(p, none, zero, two(p, KIR_shl, a.hi, rest)), filled = is_signed ? sign_words(p, a.hi) : zero;
  const uint32_t high = is_signed ? as_word(p, two(p, KIR_shr, as_signed(p, a.hi), as_signed(p, small))) : two(p, KIR_shr, a.hi, small);
  return pick_pair(p, whole, ((pair){high, filled}), ((pair){two(p, KIR_or, two(p, KIR_shr, a.lo, small), over), high}));
}

/* ---- conversions ---- */

/* Truncated; NaN is 0; what is too large is the type's end. */
static pair from_float(pairs *p, uint32_t x, bool is_signed) {
  kir_kernel *k = p->c.out;
  const uint32_t lanes = k->failed ? 1 : kir_type_of(k, x).lanes, zero = lit(p, lanes, 0), ones = lit(p, lanes, 0xffffffff);
  const kir_type f = kir_t(SNT_F32, lanes);
  const uint32_t size = kir_1(k, KIR_abs, x), top = kir_1(k, KIR_trunc, two(p, KIR_mul, size, kir_const_float(k, f, 0x1p-32)));
  const uint32_t rest = two(p, KIR_sub, size, two(p, KIR_mul, top, kir_const_float(k, f, 0x1p32)));
  pair v = {kir_cast(k, words(lanes), rest), kir_cast(k, words(lanes), top)};
  const uint32_t negative = two(p, KIR_lt, x, kir_const_float(k, f, 0));
  const uint32_t beyond = two(p, KIR_ge, size, kir_const_float(k, f, is_signed ? 0x1p63 : 0x1p64));
  v = pick_pair(p, beyond, ((pair){ones, is_signed ? lit(p, lanes, 0x7fffffff) : ones}), v);
  const pair below = is_signed ? pick_pair(p, beyond, ((pair){zero, lit(p, lanes, 0x80000000)}), negate(p, v)) : (pair){zero, zero};
  v = pick_pair(p, negative, below, v);
  return pick_pair(p, two(p, KIR_ne, x, x), ((pair){zero, zero}), v);
}

/* By way of i32, whose conversion every driver rounds once: the lowest bit of two stays as a sticky one. */
static uint32_t word_to_float(pairs *p, uint32_t word) {
  kir_kernel *k = p->c.out;
  const uint32_t lanes = k->failed ? 1 : kir_type_of(k, word).lanes, one = lit(p, lanes, 1);
  const kir_type f = kir_t(SNT_F32, lanes);
  const uint32_t half = two(p, KIR_or, two(p, KIR_shr, word, one), two(p, KIR_and, word, one));
  const uint32_t large = two(p, KIR_mul, kir_cast(k, f, as_signed(p, half)), kir_const_float(k, f, 2));
  return pick(p, two(p, KIR_lt, word, lit(p, lanes, 0x80000000)), kir_cast(k, f, as_signed(p, word)), large);
}

/* Rounded once: the top 32 bits with what is below them as one sticky bit. */
static uint32_t to_float(pairs *p, pair a, bool is_signed) {
  kir_kernel *k = p->c.out;
  const uint32_t lanes = lanes_of(p, a), zero = lit(p, lanes, 0), one = lit(p, lanes, 1);
  const kir_type f = kir_t(SNT_F32, lanes);
  const uint32_t negative = is_signed ? is_negative(p, a) : 0;
  const pair v = is_signed ? pick_pair(p, negative, negate(p, a), a) : a;
  const uint32_t spare = kir_1(k, KIR_clz, v.hi), amount = two(p, KIR_and, spare, lit(p, lanes, 31)), none = two(p, KIR_eq, amount, zero);
  const uint32_t back = two(p, KIR_and, two(p, KIR_sub, lit(p, lanes, 32), amount), lit(p, lanes, 31));
  const uint32_t over = pick(p, none, zero, two(p, KIR_shr, v.lo, back)), rest = two(p, KIR_shl, v.lo, amount);
  const uint32_t sticky = pick(p, two(p, KIR_ne, rest, zero), one, zero);
  const uint32_t top = two(p, KIR_or, two(p, KIR_or, two(p, KIR_shl, v.hi, amount), over), sticky);
  /* 2^(32 - spare), by its bits */
  const uint32_t exponent = two(p, KIR_shl, two(p, KIR_sub, lit(p, lanes, 127 + 32), amount), lit(p, lanes, 23));
  const uint32_t large = two(p, KIR_mul, word_to_float(p, top), kir_bitcast(k, f, exponent));
  const uint32_t value = pick(p, two(p, KIR_eq, v.hi, zero), word_to_float(p, v.lo), large);
  return is_signed ? pick(p, negative, kir_1(k, KIR_neg, value), value) : value;
}

static bool cast_to_pair(pairs *p, uint32_t i, pair *out) {
  kir_kernel *k = p->c.out;
  const kir_inst *in = kir_at(p->c.in, i);
  const uint32_t arg = kir_arg(p->c.in, i, 0), base = kir_type_of(p->c.in, arg).base, v = p->c.map[arg];
  const uint32_t lanes = in->type.lanes, zero = lit(p, lanes, 0);
  if (is_wide(base)) {
    *out = of(p, arg);
    return !(in->flags & KIR_SAT) || base == in->type.base;
  }
  if (ir_dtypes[base].is_float) {
    if ((in->flags & 7) > KIR_ROUND_NONE && (in->flags & 7) != KIR_ROUND_RTZ) return false;
    *out = from_float(p, base == SNT_F32 ? v : kir_cast(k, kir_t(SNT_F32, lanes), v), in->type.base == SNT_I64);
    return base != SNT_F64;
  }
  if (base == SNT_BOOL) *out = (pair){one_if(p, v, lanes), zero};
  else if (!kir_is_signed(base)) *out = (pair){base == SNT_U32 ? v : kir_cast(k, words(lanes), v), zero};
  else {
    const uint32_t wide = as_word(p, base == SNT_I32 ? v : kir_cast(k, kir_t(SNT_I32, lanes), v));
    *out = (pair){wide, sign_words(p, wide)};
  }
  return true;
}

/* Saturation to i32: what the words of an index need. */
static uint32_t saturate(pairs *p, pair a, bool is_signed) {
  const uint32_t lanes = lanes_of(p, a), low = lit(p, lanes, 0x80000000), high = lit(p, lanes, 0x7fffffff);
  const uint32_t fits = two(p, KIR_eq, a.hi, is_signed ? sign_words(p, a.lo) : lit(p, lanes, 0));
  const uint32_t inside = is_signed ? fits : two(p, KIR_and, fits, two(p, KIR_le, a.lo, high));
  const uint32_t end = is_signed ? pick(p, is_negative(p, a), low, high) : high;
  return as_signed(p, pick(p, inside, a.lo, end));
}

static uint32_t cast_from_pair(pairs *p, uint32_t i) {
  kir_kernel *k = p->c.out;
  const kir_inst *in = kir_at(p->c.in, i);
  const uint32_t arg = kir_arg(p->c.in, i, 0);
  const bool is_signed = kir_type_of(p->c.in, arg).base == SNT_I64;
  const pair a = of(p, arg);
  if (in->type.base == SNT_BOOL) return two(p, KIR_ne, two(p, KIR_or, a.lo, a.hi), lit(p, in->type.lanes, 0));
  if (ir_dtypes[in->type.base].is_float) {
    const uint32_t value = to_float(p, a, is_signed);
    return in->type.base == SNT_F32 ? value : in->type.base == SNT_F64 ? 0 : kir_cast(k, in->type, value);
  }
  if (in->flags & KIR_SAT) return in->type.base == SNT_I32 ? saturate(p, a, is_signed) : 0;
  return in->type.base == SNT_U32 ? a.lo : in->type.base == SNT_I32 ? as_signed(p, a.lo) : kir_cast(k, in->type, a.lo);
}

/* ---- memory ---- */

static void declare(kir_kernel *k) {
  for (uint32_t m = 0; m < k->memories.count; m++) {
    kir_memory *memory = &k->memories.at[m];
    if (!is_wide(memory->type.base) || memory->values || memory->type.lanes != 1) continue;
    if (memory->space == KIR_GLOBAL && !memory->view) memory->view = memory->type.base;
    memory->type = words(1);
    if (memory->space == KIR_GLOBAL) memory->dims[0] *= 2, memory->dims[1] *= 2;
    else memory->dims[memory->rank ? memory->rank - 1 : 0] *= 2;
    if (memory->space == KIR_GLOBAL && memory->size_scalar && !memory->dims[1]) memory->dims[1] = 2;
  }
}

static uint32_t access(pairs *p, uint32_t i, bool high, uint32_t value) {
  kir_kernel *k = p->c.out;
  const kir_inst *in = kir_at(p->c.in, i);
  const uint32_t count = in->arg_count - (value != 0), lanes = in->type.lanes;
  uint32_t args[8];
  for (uint32_t n = 0; n < count; n++) args[n] = p->c.map[kir_arg(p->c.in, i, n)];
  const int64_t twice = 2;
  args[count - 1] = kir_ix(k, 1, &twice, &args[count - 1], high);
  kir_inst made = *in;
  made.type = words(lanes);
  made.lanes = lanes > 1 ? 2 * (in->lanes ? in->lanes : 1) : 0;
  made.align = 4;
  if (value) args[count] = value;
  return kir_emit(k, &made, in->arg_count, args);
}

/* ---- lanes to one ---- */

static pair join(pairs *p, kir_op op, pair a, pair b, bool is_signed) {
  switch (op) {
  case KIR_hred_add: return add(p, a, b);
  case KIR_hred_mul: return multiply(p, a, b);
  default: return pick_pair(p, is_less(p, a, b, is_signed), op == KIR_hred_min ? a : b, op == KIR_hred_min ? b : a);
  }
}

/* The tree of pairs that the operation has: element i with i + ceil(n / 2). */
static bool reduce_lanes(pairs *p, uint32_t i, pair *out) {
  const kir_inst *in = kir_at(p->c.in, i);
  const pair a = of(p, kir_arg(p->c.in, i, 0));
  pair part[16];
  uint32_t left = lanes_of(p, a);
  if (left > 16) return false;
  for (uint32_t n = 0; n < left; n++) {
    const uint32_t lane = lit(p, 1, n);
    part[n] = (pair){two(p, KIR_extract, a.lo, lane), two(p, KIR_extract, a.hi, lane)};
  }
  for (; left > 1; left -= left / 2)
    for (uint32_t n = 0; n < left / 2; n++) part[n] = join(p, (kir_op)in->op, part[n], part[n + left - left / 2], in->type.base == SNT_I64);
  *out = part[0];
  return true;
}

static pair divide(pairs *p, pair a, pair b, bool is_signed, bool remainder) {
  uint32_t out[2];
  kir_divide_words(p->c.out, (uint32_t[]){a.lo, a.hi}, (uint32_t[]){b.lo, b.hi}, is_signed, remainder, out);
  return (pair){out[0], out[1]};
}

/* ---- the walk ---- */

static bool put_halves(pairs *p, uint32_t i, pair *out) {
  const kir_inst *in = kir_at(p->c.in, i);
  uint32_t lo[20], hi[20];
  if (in->arg_count > 20) return false;
  for (uint32_t n = 0; n < in->arg_count; n++) {
    const uint32_t arg = kir_arg(p->c.in, i, n);
    lo[n] = p->c.map[arg];
    hi[n] = is_wide(kir_type_of(p->c.in, arg).base) ? p->hi[arg] : p->c.map[arg];
  }
  kir_inst made = *in;
  made.type = words(in->type.lanes);
  out->lo = kir_emit(p->c.out, &made, in->arg_count, lo);
  out->hi = kir_emit(p->c.out, &made, in->arg_count, hi);
  return true;
}

static bool put_wide(pairs *p, uint32_t i, pair *out) {
  const kir_inst *in = kir_at(p->c.in, i);
  const bool is_signed = in->type.base == SNT_I64;
  const pair a = in->arg_count > 0 ? of(p, kir_arg(p->c.in, i, 0)) : (pair){0, 0},
             b = in->arg_count > 1 ? of(p, kir_arg(p->c.in, i, 1)) : a;
  const uint32_t lanes = in->type.lanes;
  switch (in->op) {
  case KIR_const:
    *out = (pair){lit(p, lanes, (int64_t)(uint32_t)in->imm.i), lit(p, lanes, (int64_t)(uint32_t)((uint64_t)in->imm.i >> 32))};
    return true;
  case KIR_iota: *out = (pair){kir_emit_op(p->c.out, KIR_iota, words(lanes), 0, NULL), lit(p, lanes, 0)}; return true;
  case KIR_load: *out = (pair){access(p, i, false, 0), access(p, i, true, 0)}; return true;
  case KIR_carry:
  case KIR_result: {
    kir_inst made = {.op = in->op, .type = words(lanes), .index = p->running++};
    out->lo = kir_emit(p->c.out, &made, 0, NULL);
    made.index = p->running++;
    out->hi = kir_emit(p->c.out, &made, 0, NULL);
    return true;
  }
  case KIR_add: *out = add(p, a, b); return true;
  case KIR_sub: *out = sub(p, a, b); return true;
  case KIR_mul: *out = multiply(p, a, b); return true;
  case KIR_div:
  case KIR_udiv: *out = divide(p, a, b, is_signed, false); return true;
  case KIR_rem:
  case KIR_umod: *out = divide(p, a, b, is_signed, true); return true;
  case KIR_hred_add:
  case KIR_hred_mul:
  case KIR_hred_min:
  case KIR_hred_max: return reduce_lanes(p, i, out);
  case KIR_neg: *out = negate(p, a); return true;
  case KIR_abs: *out = is_signed ? pick_pair(p, is_negative(p, a), negate(p, a), a) : a; return true;
  case KIR_min: *out = pick_pair(p, is_less(p, a, b, is_signed), a, b); return true;
  case KIR_max: *out = pick_pair(p, is_less(p, a, b, is_signed), b, a); return true;
  case KIR_popcount:
    *out = (pair){two(p, KIR_add, kir_1(p->c.out, KIR_popcount, a.lo), kir_1(p->c.out, KIR_popcount, a.hi)), zeros(p, a)};
    return true;
  case KIR_clz: *out = (pair){leading_zeros(p, a), zeros(p, a)}; return true;
  case KIR_shl: *out = shift(p, a, b, true, is_signed); return true;
  case KIR_shr: *out = shift(p, a, b, false, is_signed); return true;
  case KIR_cast: return cast_to_pair(p, i, out);
  case KIR_bitcast: *out = a; return is_wide(kir_type_of(p->c.in, kir_arg(p->c.in, i, 0)).base);
  case KIR_and:
  case KIR_or:
  case KIR_xor:
  case KIR_not:
  case KIR_select:
  case KIR_splat:
  case KIR_vec:
  case KIR_extract:
  case KIR_insert:
  case KIR_shuffle: return put_halves(p, i, out);
  default: return false;
  }
}

/* Operations on pairs whose result is none. 0: no such form. */
static uint32_t put_from_wide(pairs *p, uint32_t i) {
  const kir_inst *in = kir_at(p->c.in, i);
  const uint32_t first = kir_arg(p->c.in, i, 0);
  const bool is_signed = kir_type_of(p->c.in, first).base == SNT_I64;
  const pair a = of(p, first), b = in->arg_count > 1 ? of(p, kir_arg(p->c.in, i, 1)) : a;
  switch (in->op) {
  case KIR_eq: return is_equal(p, a, b);
  case KIR_ne: return invert(p, is_equal(p, a, b));
  case KIR_lt: return is_less(p, a, b, is_signed);
  case KIR_gt: return is_less(p, b, a, is_signed);
  case KIR_le: return invert(p, is_less(p, b, a, is_signed));
  case KIR_ge: return invert(p, is_less(p, a, b, is_signed));
  case KIR_cast: return cast_from_pair(p, i);
  default: return 0;
  }
}

/* Loops, yields: their wide operands take two places. */
static void put_spread(pairs *p, uint32_t i) {
  const kir_inst *in = kir_at(p->c.in, i);
  uint32_t *args = IR_NEW_ARRAY(p->c.out->arena, uint32_t, 2 * in->arg_count + 1), count = 0;
  for (uint32_t n = 0; args && n < in->arg_count; n++) {
    const uint32_t arg = kir_arg(p->c.in, i, n);
    args[count++] = p->c.map[arg];
    if (is_wide(kir_type_of(p->c.in, arg).base)) args[count++] = p->hi[arg];
  }
  if (args) p->c.map[i] = kir_emit(p->c.out, in, count, args);
}

static bool has_wide_operand(const kir_kernel *k, uint32_t i) {
  for (uint32_t n = 0; n < kir_at(k, i)->arg_count; n++)
    if (is_wide(kir_type_of(k, kir_arg(k, i, n)).base)) return true;
  return false;
}

static bool put(pairs *p, uint32_t i) {
  const kir_inst *in = kir_at(p->c.in, i);
  pair made = {0, 0};
  if (in->op == KIR_loop || in->op == KIR_end) p->running = 0;
  if (in->op == KIR_loop || in->op == KIR_yield) {
    put_spread(p, i);
    return true;
  }
  if (in->op == KIR_store && is_wide(in->type.base)) {
    const pair value = of(p, kir_arg(p->c.in, i, in->arg_count - 1));
    p->c.map[i] = access(p, i, false, value.lo);
    (void)access(p, i, true, value.hi);
    return true;
  }
  if (kir_has_value(in->op) && is_wide(in->type.base)) {
    if (!put_wide(p, i, &made)) return false;
    p->c.map[i] = made.lo, p->hi[i] = made.hi;
    return true;
  }
  if (in->op == KIR_carry || in->op == KIR_result) {
    kir_inst same = *in;
    same.index = p->running++;
    p->c.map[i] = kir_emit(p->c.out, &same, 0, NULL);
    return true;
  }
  if (has_wide_operand(p->c.in, i)) return (p->c.map[i] = put_from_wide(p, i)) != 0;
  kir_clone_inst(&p->c, i);
  return true;
}

bool kir_has_missing_words(const kir_kernel *k, const kir_caps *caps) {
  if (caps->int64) return false;
  for (uint32_t m = 0; m < k->memories.count; m++)
    if (is_wide(k->memories.at[m].type.base)) return true;
  for (uint32_t i = 1; i < k->insts.count; i++)
    if (is_wide(kir_at(k, i)->type.base)) return true;
  return false;
}

snt_result kir_pass_pairs(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  pairs p = {.running = 0};
  SNT_TRY(kir_clone_begin(&p.c, in, out));
  const bool needed = kir_has_missing_words(in, caps);
  p.hi = IR_NEW_ARRAY(out->arena, uint32_t, (size_t)in->insts.count + 1);
  if (!p.hi) return kir_pass_stop(out, "pairs", diag);
  if (needed) declare(out);
  for (uint32_t i = 1; i < in->insts.count && !out->failed; i++) {
    if (!needed) kir_clone_inst(&p.c, i);
    else if (!put(&p, i) && !out->failed) return kir_unsupported(in, "pairs", i, "64-bit integers", diag);
  }
  return kir_pass_end(out, "pairs", diag);
}
