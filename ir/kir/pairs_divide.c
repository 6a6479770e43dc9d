/* Division of 64-bit integers that are two words each: in, the words of both operands as u32 values; out, those of the quotient and of what
   is left. 64 steps of long division in a loop of the kernel; the sizes are divided and the signs put on afterwards. */
#include "ir/kir_pass_private.h"

typedef struct words {
  kir_kernel *k;
  uint32_t lanes;
} words;
typedef struct word_pair {
  uint32_t lo, hi;
} word_pair;

static uint32_t lit(const words *w, int64_t v) { return kir_const_int(w->k, kir_t(SNT_U32, w->lanes), v); }
static uint32_t one(const words *w, int64_t v) { return kir_const_int(w->k, kir_t(SNT_U32, 1), v); }
#define two(w, op, a, b) kir_2((w)->k, op, a, b)
#define pick(w, condition, a, b) kir_3((w)->k, KIR_select, condition, a, b)
static word_pair pick_pair(const words *w, uint32_t condition, word_pair a, word_pair b) {
  return (word_pair){pick(w, condition, a.lo, b.lo), pick(w, condition, a.hi, b.hi)};
}
#define pick_pair(w, condition, a, b) IR_LAST_FIRST_3(pick_pair, condition, a, b, w)
static uint32_t is_less(const words *w, word_pair a, word_pair b) {
  return two(w, KIR_or, two(w, KIR_lt, a.hi, b.hi), two(w, KIR_and, two(w, KIR_eq, a.hi, b.hi), two(w, KIR_lt, a.lo, b.lo)));
}
static word_pair sub(const words *w, word_pair a, word_pair b) {
  const uint32_t borrow = pick(w, two(w, KIR_lt, a.lo, b.lo), lit(w, 1), lit(w, 0));
  return (word_pair){two(w, KIR_sub, a.lo, b.lo), two(w, KIR_sub, two(w, KIR_sub, a.hi, b.hi), borrow)};
}
static word_pair negate_if(const words *w, uint32_t condition, word_pair a) {
  return pick_pair(w, condition, sub(w, ((word_pair){lit(w, 0), lit(w, 0)}), a), a);
}
static uint32_t top_bit(const words *w, uint32_t word) { return two(w, KIR_shr, word, lit(w, 31)); }
static word_pair twice(const words *w, word_pair a, uint32_t lowest) {
  return (word_pair){two(w, KIR_or, two(w, KIR_shl, a.lo, lit(w, 1)), lowest),
                     two(w, KIR_or, two(w, KIR_shl, a.hi, lit(w, 1)), top_bit(w, a.lo))};
}

/* The quotient moves in from below while the dividend moves out above, into the rest. */
static void long_division(const words *w, word_pair *a, word_pair b, word_pair *rest) {
  const uint32_t start[] = {a->lo, a->hi, lit(w, 0), lit(w, 0)};
  uint32_t now[4], after[4];
  const uint32_t step = one(w, 1), end = one(w, 64);
  const uint32_t loop = kir_loop(w->k, one(w, 0), end, step, 4, start, now, 0, 1);
  const word_pair n = {now[0], now[1]}, r = {now[2], now[3]}, grown = twice(w, r, top_bit(w, n.hi));
  const uint32_t over = two(w, KIR_ne, top_bit(w, r.hi), lit(w, 0)); /* the rest has 65 bits for a moment */
  const uint32_t fits = two(w, KIR_or, over, kir_1(w->k, KIR_not, is_less(w, grown, b)));
  const word_pair kept = pick_pair(w, fits, sub(w, grown, b), grown), quotient = twice(w, n, pick(w, fits, lit(w, 1), lit(w, 0)));
  const uint32_t next[] = {quotient.lo, quotient.hi, kept.lo, kept.hi};
  kir_loop_end(w->k, loop, 4, next, after);
  *a = (word_pair){after[0], after[1]};
  *rest = (word_pair){after[2], after[3]};
}

void kir_divide_words(kir_kernel *k, const uint32_t a[2], const uint32_t b[2], bool is_signed, bool remainder, uint32_t out[2]) {
  const words w = {k, k->failed ? 1 : kir_type_of(k, a[0]).lanes};
  word_pair n = {a[0], a[1]}, d = {b[0], b[1]}, rest;
  const uint32_t none = two(&w, KIR_eq, two(&w, KIR_or, d.lo, d.hi), lit(&w, 0));
  const uint32_t n_negative = is_signed ? two(&w, KIR_ne, top_bit(&w, n.hi), lit(&w, 0)) : 0;
  const uint32_t d_negative = is_signed ? two(&w, KIR_ne, top_bit(&w, d.hi), lit(&w, 0)) : 0;
  if (is_signed) n = negate_if(&w, n_negative, n), d = negate_if(&w, d_negative, d);
  long_division(&w, &n, d, &rest);
  word_pair result = remainder ? rest : n;
  if (is_signed) result = negate_if(&w, remainder ? n_negative : two(&w, KIR_xor, n_negative, d_negative), result);
  result = pick_pair(&w, none, ((word_pair){lit(&w, 0), lit(&w, 0)}), result);
  out[0] = result.lo, out[1] = result.hi;
}
