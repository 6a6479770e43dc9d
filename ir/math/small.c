/* small: f32 denormals on a device that takes them for 0, operands and results alike. The device's own sum or product stands wherever it is
   right, which is nearly always; where an operand or the result may be below 2^-126, integers give what IEEE 754 does. Both are computed
   and one chosen: SwiftShader compiles a loop with a branch for each in a minute, without them in a second. Comparisons are those of the
   bits. Nothing is done where ranges say that nothing is so small, or nobody would see it: what is added to a coefficient rounds away.
   Reproducible kernels only: transcendental functions are additions and multiplications by now, division and roots are integers
   (ir/math/exact.c). */
#include "ir/math/private.h"
#include "ir/kir_pass_private.h"

enum { NORMAL = 0x00800000, INFINITE = 0x7f800000, FAR = 0x0d800000 /* 2^-100 */, LIFT = 64 };

static kv both(km *m, kv a, kv b) { return km_and(m, a, b); }
#define both(m, a, b) IR_LAST_FIRST_2(both, a, b, m)
static kv sign_of(km *m, kv x) { return km_and(m, km_as_u(m, x), km_u(m, 0x80000000)); }
static kv larger(km *m, kv a, kv b) { return km_select(m, km_gt(m, a, b), a, b); }
#define larger(m, a, b) IR_LAST_FIRST_2(larger, a, b, m)

/* ---- sums: of two below 2^-100, both raised by 2^64, where nothing is denormal; below 2^-126 the result is a multiple of 2^-149, hence exact ---- */
static kv raised(km *m, kv x) {
  const kv bits = km_abs_bits(m, x), low = km_lt(m, bits, km_u(m, NORMAL));
  const kv whole = km_mul(m, km_to_f(m, bits), km_f(m, 0x1p-85)); /* a denormal is its bits times 2^-149 */
  return km_with_sign(m, km_select(m, low, whole, km_mul(m, km_as_f(m, bits), km_f(m, 0x1p64))), x);
}

static kv small_sum(km *m, kv a, kv b) {
  const kv sum = km_add(m, raised(m, a), raised(m, b)), bits = km_abs_bits(m, sum);
  const kv whole = km_as_u(m, km_to_i(m, km_mul(m, km_as_f(m, bits), km_f(m, 0x1p85))));
  const kv small = km_lt(m, bits, km_u(m, NORMAL + (LIFT << 23)));
  const kv lowered = km_select(m, small, whole, km_sub(m, bits, km_u(m, LIFT << 23)));
  return km_as_f(m, km_or(m, lowered, sign_of(m, sum)));
}

static kv sum_of(km *m, kv a, kv b) {
  const kv size = larger(m, km_abs_bits(m, a), km_abs_bits(m, b)); /* two zeros need nothing */
  const kv rare = km_lt(m, km_sub(m, size, km_u(m, 1)), km_u(m, FAR - 1));
  return km_select(m, rare, small_sum(m, a, b), km_add(m, a, b));
}

/* ---- products: those that came out as 0 or NaN although no operand is 0 ---- */
static kv small_product(km *m, kv x, kv y) {
  const km_parts a = km_parts_of(m, x), b = km_parts_of(m, y);
  const kv left = km_shl(m, a.m, km_u(m, 8)), right = km_shl(m, b.m, km_u(m, 8));
  const kv high = km_mulhi(m, left, right), low = km_mul(m, left, right);
  const kv top = km_shr(m, high, km_u(m, 31)), shift = km_add(m, km_u(m, 7), top); /* the product of mantissas is in [2, 4), or below */
  const kv q = km_shr(m, high, shift), sticky = km_one_where(m, km_ne(m, low, km_u(m, 0)));
  const kv lost = km_sub(m, high, km_shl(m, q, shift)), rest = km_or(m, km_add(m, lost, lost), sticky);
  const kv e = km_add(m, km_add(m, a.e, b.e), km_as_i(m, top));
  const kv value = km_rounded(m, q, rest, km_shl(m, km_u(m, 2), shift), e);
  const kv size = larger(m, a.bits, b.bits);
  const kv special = km_select(m, km_gt(m, size, km_u(m, INFINITE)), km_u(m, 0x7fc00000), km_u(m, INFINITE));
  const kv sign = km_and(m, km_xor(m, km_as_u(m, x), km_as_u(m, y)), km_u(m, 0x80000000));
  return km_as_f(m, km_or(m, km_select(m, km_ge(m, size, km_u(m, INFINITE)), special, value), sign));
}

static kv product_of(km *m, kv a, kv b) {
  const kv result = km_mul(m, a, b);
  const kv zero = km_u(m, 0), odd = km_ge(m, km_sub(m, km_abs_bits(m, result), km_u(m, 1)), km_u(m, INFINITE));
  const kv some = both(m, km_ne(m, km_abs_bits(m, a), zero), km_ne(m, km_abs_bits(m, b), zero));
  return km_select(m, both(m, odd, some), small_product(m, a, b), result);
}

/* ---- comparisons: integers in the order of the floats, both zeros alike ---- */
static kv order_of(km *m, kv x) {
  const kv bits = km_as_i(m, x), negative = km_lt(m, bits, km_i(m, 0));
  return km_select(m, negative, km_sub(m, km_i(m, INT32_MIN), bits), bits);
}

static kv compared(km *m, kir_op op, kv a, kv b) {
  const kv left = order_of(m, a), right = order_of(m, b), found = kir_2(m->k, op, left, right);
  const kv size = larger(m, km_abs_bits(m, a), km_abs_bits(m, b)), nan = km_gt(m, size, km_u(m, INFINITE));
  return op == KIR_ne ? km_or(m, found, nan) : both(m, found, km_not(m, nan));
}

/* What is rounded to a whole number: any other number below 1 of that sign does as well. */
static kv grown(km *m, kv x) {
  const kv bits = km_abs_bits(m, x), low = km_lt(m, km_sub(m, bits, km_u(m, 1)), km_u(m, NORMAL - 1));
  return km_as_f(m, km_select(m, low, km_or(m, km_as_u(m, x), km_u(m, NORMAL)), km_as_u(m, x)));
}

/* ---- what needs it ---- */
typedef struct small {
  const kir_kernel *in;
  const kir_range *ranges;
  int16_t *slack; /* a value may be wrong by being too small where its magnitude is at most 2^slack */
} small;
enum { NONE = -10000, ROOM = 26 /* bits that an operand must be below a sum to round away, and one more */, DEEP = 64 };

static bool is_single(const kir_kernel *k, uint32_t i) { return kir_at(k, i)->type.base == SNT_F32 && !kir_at(k, i)->type.frag; }
static bool may_be_small(const small *s, uint32_t v) { return kir_range_least(s->ranges[v]) < -126; }

/* Below which power of two v is while `tiny` is next to 0: a polynomial in it is next to its last coefficient, however large its argument may be elsewhere. */
static int32_t most_beside(const small *s, uint32_t v, uint32_t tiny, uint32_t depth) {
  const kir_inst *in = kir_at(s->in, v);
  const int32_t most = kir_range_most(s->ranges[v]);
  if (v == tiny) return 0;
  if (most < KIR_UNBOUNDED || depth == DEEP || !is_single(s->in, v) || (in->op != KIR_add && in->op != KIR_sub && in->op != KIR_mul))
    return most;
  const int32_t a = most_beside(s, kir_arg(s->in, v, 0), tiny, depth + 1), b = most_beside(s, kir_arg(s->in, v, 1), tiny, depth + 1);
  if (a >= KIR_UNBOUNDED || b >= KIR_UNBOUNDED) return KIR_UNBOUNDED;
  return in->op == KIR_mul ? a + b : (a > b ? a : b) + 1;
}

/* How wrong user i lets its operand n be. */
static int32_t slack_for(const small *s, uint32_t i, uint32_t n) {
  const kir_inst *in = kir_at(s->in, i);
  if (!is_single(s->in, i) || in->arg_count != 2) return NONE;
  const uint32_t other = kir_arg(s->in, i, 1 - n);
  int32_t slack = NONE;
  if (in->op == KIR_add || in->op == KIR_sub) {
    if (kir_range_absorbs(s->ranges[other])) slack = kir_range_least((kir_range){.lo = s->ranges[other].lo, .grid = -149}) - ROOM;
    if (s->slack[i] - ROOM > slack) slack = s->slack[i] - ROOM;
  } else if (in->op == KIR_mul) {
    const int32_t most = most_beside(s, other, kir_arg(s->in, i, n), 0);
    if (most < KIR_UNBOUNDED && s->slack[i] > NONE) slack = s->slack[i] - (most > 0 ? most : 0);
  }
  return slack;
}

static int16_t *find_slack(small *s, ir_arena *arena) {
  const uint32_t count = s->in->insts.count;
  s->slack = IR_NEW_ARRAY(arena, int16_t, count);
  if (!s->slack) return NULL;
  for (uint32_t i = 0; i < count; i++) s->slack[i] = INT16_MAX;
  for (uint32_t i = count; i-- > 1;)
    for (uint32_t n = 0; n < kir_at(s->in, i)->arg_count; n++) {
      int16_t *at = &s->slack[kir_arg(s->in, i, n)];
      const int32_t slack = slack_for(s, i, n);
      if (slack < *at) *at = (int16_t)(slack < NONE ? NONE : slack > 0 ? 0 : slack);
    }
  return s->slack;
}

/* Where an operand that counts as 0 would have made this much. */
static int32_t lost_with(const small *s, uint32_t v, uint32_t other) {
  if (!may_be_small(s, v)) return -126;
  const int32_t most = most_beside(s, other, v, 0);
  return most >= KIR_UNBOUNDED ? KIR_UNBOUNDED : most > 0 ? most - 126 : -126;
}

/* The device's own operation gives what it should, or nothing sees that it does not. */
static bool is_enough(const small *s, uint32_t i) {
  const kir_inst *in = kir_at(s->in, i);
  const uint32_t a = kir_arg(s->in, i, 0), b = in->arg_count > 1 ? kir_arg(s->in, i, 1) : a;
  const kir_range left = s->ranges[a], right = s->ranges[b];
  const bool operands = !may_be_small(s, a) && !may_be_small(s, b);
  switch (in->op) {
  case KIR_add:
  case KIR_sub:
    if (kir_range_absorbs(left) || kir_range_absorbs(right) || s->slack[i] >= -126 + ROOM) return true;
    return operands && (left.grid < right.grid ? left.grid : right.grid) >= -126;
  case KIR_mul: {
    if (operands && kir_range_least(left) + kir_range_least(right) >= -126) return true;
    const int32_t first = lost_with(s, a, b), second = lost_with(s, b, a);
    return s->slack[i] >= first && s->slack[i] >= second;
  }
  case KIR_floor:
  case KIR_ceil:
  case KIR_trunc:
  case KIR_rint: return operands;
  default: /* comparisons: what is never small is on the same side of 0 as of anything small */
    return operands || (!left.zero && left.lo >= NORMAL) || (!right.zero && right.lo >= NORMAL);
  }
}

/* The value, or 0: the instruction stays. */
static kv replaced(km *m, const kir_inst *in, const kv *args) {
  switch (in->op) {
  case KIR_add: return sum_of(m, args[0], args[1]);
  case KIR_sub: return sum_of(m, args[0], km_as_f(m, km_xor(m, km_as_u(m, args[1]), km_u(m, 0x80000000))));
  case KIR_mul: return product_of(m, args[0], args[1]);
  case KIR_neg: return km_as_f(m, km_xor(m, km_as_u(m, args[0]), km_u(m, 0x80000000)));
  case KIR_eq:
  case KIR_ne:
  case KIR_lt:
  case KIR_le:
  case KIR_gt:
  case KIR_ge: return compared(m, (kir_op)in->op, args[0], args[1]);
  case KIR_floor:
  case KIR_ceil:
  case KIR_trunc:
  case KIR_rint: return kir_1(m->k, (kir_op)in->op, grown(m, args[0]));
  default: return 0;
  }
}

bool kir_loses_small(const kir_kernel *k, const kir_caps *caps) { return caps->flushes && k->mode == SNT_NUMERICS_REPRODUCIBLE; }

snt_result kir_pass_small(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  kir_clone c;
  (void)caps;
  SNT_TRY(kir_clone_begin(&c, in, out));
  small s = {.in = in, .ranges = kir_find_ranges(in, out->arena)};
  if (!s.ranges || !find_slack(&s, out->arena)) return kir_pass_stop(out, "small", diag);
  for (uint32_t i = 1; i < in->insts.count && !out->failed; i++) {
    const kir_inst *inst = kir_at(in, i);
    kv args[2] = {0}, value = 0;
    if (inst->arg_count == 1 || inst->arg_count == 2) {
      const kir_type type = kir_type_of(in, kir_arg(in, i, 0));
      km m = {.k = out, .lanes = type.lanes, .same_bits = true};
      for (uint32_t n = 0; n < inst->arg_count; n++) args[n] = c.map[kir_arg(in, i, n)];
      if (type.base == SNT_F32 && !type.frag && !(kir_ops[inst->op].flags & KIR_MEM) && !is_enough(&s, i)) value = replaced(&m, inst, args);
    }
    if (value) c.map[i] = value;
    else kir_clone_inst(&c, i);
  }
  return kir_pass_end(out, "small", diag);
}
