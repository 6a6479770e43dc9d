/* address: index sums become multiplications and additions, values of outer loops first, so that licm can take the outer part out of the inner loop
   and accesses that differ by a constant share all but that; division by constants becomes multiplication and shifts. */
#include "ir/kir_pass_private.h"

typedef struct lowering {
  kir_clone c;
  const kir_caps *caps;
  const uint32_t *depth;
} lowering;

static uint32_t lit(kir_kernel *k, kir_type t, uint64_t v) { return kir_const_int(k, t, (int64_t)v); }
/* Of two scalars of one type: what the builder would check and infer holds by what the pass was given. */
static uint32_t two(kir_kernel *k, kir_op op, uint32_t a, uint32_t b) {
  return kir_emit_op(k, op, kir_type_of(k, a), 2, (uint32_t[]){a, b});
}
#define two(k, op, a, b) IR_LAST_FIRST_2(two, a, b, k, op)
static bool is_power_of_two(uint64_t v) { return v && !(v & (v - 1)); }
static uint32_t log2_of(uint64_t v) { return 63u - (uint32_t)__builtin_clzll(v); }

/* ---- index sums ---- */
typedef struct term {
  uint32_t coef, value, depth;
} term;
enum { MAX_TERMS = 16 };

/* Outer values first; a stable insertion sort of a handful. */
static void sort_terms(term *terms, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    const term t = terms[i];
    uint32_t at = i;
    for (; at > 0 && terms[at - 1].depth > t.depth; at--) terms[at] = terms[at - 1];
    terms[at] = t;
  }
}

static uint32_t product(kir_kernel *k, kir_type t, uint32_t coef, uint32_t value) {
  int64_t c;
  const uint32_t typed = kir_bitcast(k, t, value);
  if (!kir_is_int_const(k, coef, &c)) return two(k, KIR_mul, kir_bitcast(k, t, coef), typed);
  if (c == 1) return typed;
  if (c == -1) return kir_1(k, KIR_neg, typed);
  if (c > 0 && is_power_of_two((uint64_t)c)) return two(k, KIR_shl, typed, lit(k, t, log2_of((uint64_t)c)));
  return two(k, KIR_mul, typed, lit(k, t, (uint64_t)c));
}

static uint32_t sum(lowering *l, uint32_t i) {
  const kir_inst *in = kir_at(l->c.in, i);
  kir_kernel *k = l->c.out;
  term terms[MAX_TERMS];
  const uint32_t count = in->arg_count / 2;
  uint32_t total = 0;
  for (uint32_t n = 0; n < count; n++) {
    const uint32_t coef = kir_arg(l->c.in, i, 2 * n), value = kir_arg(l->c.in, i, 2 * n + 1);
    terms[n] = (term){l->c.map[coef], l->c.map[value], l->depth[value]};
  }
  sort_terms(terms, count);
  for (uint32_t n = 0; n < count; n++) {
    const uint32_t p = product(k, in->type, terms[n].coef, terms[n].value);
    total = n ? two(k, KIR_add, total, p) : p;
  }
  const uint32_t constant = lit(k, in->type, (uint64_t)in->imm.i);
  if (!count) return constant;
  return kir_wrap_int(in->type.base, in->imm.i) ? two(k, KIR_add, total, constant) : total;
}

/* ---- division ---- */
/* Granlund and Montgomery: with l = ceil(log2 d), a 33-bit factor 2^32 + m always works; where d lets 32 bits do, they do. */
static uint32_t quotient(kir_kernel *k, uint32_t value, uint64_t d) {
  const kir_type t = kir_type_of(k, value);
  const uint32_t l = log2_of(d - 1) + 1;
  /* the short form: the least shift whose rounded-up factor is close enough */
  for (uint32_t s = 0; s < l; s++) {
    const uint64_t factor = ((1ull << (32 + s)) + d - 1) / d, error = factor * d - (1ull << (32 + s));
    if (factor < (1ull << 32) && error <= (1ull << s)) {
      const uint32_t high = two(k, KIR_mulhi, value, lit(k, t, factor));
      return s ? two(k, KIR_shr, high, lit(k, t, s)) : high;
    }
  }
  const uint64_t m = (((1ull << 32) * ((1ull << l) - d)) / d) + 1;
  const uint32_t high = two(k, KIR_mulhi, value, lit(k, t, m));
  const uint32_t half = two(k, KIR_shr, two(k, KIR_sub, value, high), lit(k, t, 1));
  return two(k, KIR_shr, two(k, KIR_add, high, half), lit(k, t, l - 1));
}

/* The value, or 0: the instruction stays (run-time divisors, 64 bits). */
static uint32_t divide(lowering *l, uint32_t i) {
  const kir_inst *in = kir_at(l->c.in, i);
  kir_kernel *k = l->c.out;
  const uint32_t value = l->c.map[kir_arg(l->c.in, i, 0)], divisor = l->c.map[kir_arg(l->c.in, i, 1)];
  const bool remainder = in->op == KIR_umod;
  int64_t d;
  if (!kir_is_int_const(k, divisor, &d) || d <= 0) return 0;
  if (is_power_of_two((uint64_t)d)) {
    if (remainder) return two(k, KIR_and, value, lit(k, in->type, (uint64_t)d - 1));
    return d == 1 ? value : two(k, KIR_shr, value, lit(k, in->type, log2_of((uint64_t)d)));
  }
  if (l->caps->divmod || in->type.base != SNT_U32) return 0;
  const uint32_t q = quotient(k, value, (uint64_t)d);
  return remainder ? two(k, KIR_sub, value, two(k, KIR_mul, q, lit(k, in->type, (uint64_t)d))) : q;
}

snt_result kir_pass_address(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  lowering l = {.caps = caps};
  SNT_TRY(kir_clone_begin(&l.c, in, out));
  kir_share(out);
  if (!(l.depth = kir_find_depths(in, out->arena))) return kir_pass_stop(out, "address", diag);
  for (uint32_t i = 1; i < in->insts.count && !out->failed; i++) {
    const kir_inst *inst = kir_at(in, i);
    const bool division = inst->op == KIR_udiv || inst->op == KIR_umod;
    const uint32_t value = division ? divide(&l, i) : inst->op == KIR_ix && !caps->ix && inst->arg_count <= 2 * MAX_TERMS ? sum(&l, i) : 0;
    if (value) l.c.map[i] = value;
    else kir_clone_inst(&l.c, i);
  }
  return kir_pass_end(out, "address", diag);
}
