/* exp, exp2, expm1, sinh, cosh, tanh and sigmoid in f32. Arguments reduce to |r| <= ln(2)/2 by adding and subtracting 1.5 * 2^23
   and what an exponent's bits want beside the integer (the low bits of that sum are both together), and results grow by powers of two built from these. */
#include "ir/math/private.h"
#include "ir/kir_pass_private.h"

static const double MAGIC =
    0x1.8p23; /* bits 0x4b400000: the integer n sits in the low bits of MAGIC + n, and shifts out of a word before */
static const double LN2_HIGH = 0x1.63p-1, LN2_LOW = -0x1.bd0106p-13; /* HIGH has 9 bits: n * HIGH is exact */

/* What is added to n so that its bits are ready: to the exponent of 2^n, of 2^(n + 23), of two powers whose product is 2^n. Of SIXTEENTHS, which is no bias,
   n has four bits behind the point. */
enum { SIXTEENTHS, ONE = 127, RAISED = 127 + 23, TWO = 127 + 127 };
static kv magic_of(km *m, int32_t bias) { return km_f(m, bias == SIXTEENTHS ? MAGIC / 16 : MAGIC + bias); }

/* 2^(n - ONE) from bits that end in n, for n in 0..254 (0 gives 0) */
static kv power(km *m, kv bits) { return km_as_f(m, km_shl(m, bits, km_u(m, 23))); }

/* p 2^n with gradual underflow and overflow to infinity from bits that end in n + TWO, for n in -252..254: two factors, each a normal number.
   `first` is multiplied by one of them. */
typedef kv times(km *m, kv first, kv s, bool loose);
static kv grown(km *m, times *by, kv first, kv bits, bool loose) {
  const kv half = km_shr(m, bits, km_u(m, 1));
  return km_mul(m, by(m, first, power(m, half), loose), power(m, km_sub(m, bits, half)));
}
/* What masks leave (-1e9, -infinity) must not become 0 by rounding: a processor takes a hundred cycles for a vector with one such result. Arguments are held
   where a factor is 0, or the dividend becomes 0. */
static kv zero_below(km *m, kv x, double least, kv result) {
  return m->lo >= least ? result : km_select(m, km_lt(m, x, km_f(m, least)), km_f(m, 0), result);
}
/* Infinity where x > limit, where the second factor does not make it. */
static kv grown_over(km *m, kv x, double limit, kv result) { return m->ieee ? result : km_over(m, x, limit, result); }
static kv product(km *m, kv p, kv s, bool unused) {
  (void)unused;
  return km_mul(m, p, s);
}

/* n + bias for n of x / ln 2 and, in *n, n alone, for |x| < 2^20. */
static kv count_of(km *m, kv x, int32_t bias, kv *n) {
  const kv magic = magic_of(m, bias), t = km_mad(m, x, km_f(m, 0x1.715476p+0), magic);
  *n = km_sub(m, t, magic);
  return km_as_u(m, t);
}

/* x = n ln 2 + r + r_tail with |r| <= 0.3467, of SIXTEENTHS 0.0217; *r_tail only if asked for. Returns bits that end in n + bias. */
static kv reduce(km *m, kv x, int32_t bias, kv *r, kv *r_tail) {
  kv n;
  const kv bits = count_of(m, x, bias, &n), coarse = km_mad(m, n, km_f(m, -LN2_HIGH), x);
  if (!r_tail) {
    *r = km_mad(m, n, km_f(m, -LN2_LOW), coarse);
    return bits;
  }
  const kv low = km_mul(m, n, km_f(m, -LN2_LOW));
  *r = km_add(m, coarse, low);
  *r_tail = km_sum_tail(m, coarse, low, *r);
  return bits;
}

/* fpminimax of exp(r) = 1 + r + r^2 P(r), relative error 2^-27.8; and of expm1 relative to itself, 2^-30.9 */
static const float EXP6[] = {0x1.681d3p-10f, 0x1.123be8p-7f, 0x1.555c5ep-5f, 0x1.55548ep-3f, 0x1.fffff6p-2f};
static const float EXPM1_7[] = {0x1.9e0c28p-13f, 0x1.6d4372p-10f, 0x1.111306p-7f, 0x1.5554fp-5f, 0x1.555554p-3f, 0x1p-1f};
/* The same of degree 5, exp(r) = 1 + r + r D(r), where the results below 1, whose last places are half as large, err by 2.4 times less: with a fused last step
   1.945 ULP, of all arguments (docs/derive/exp5.c) */
static const float EXP5_FUSED[] = {0x1.0deeeep-7f, 0x1.573c54p-5f, 0x1.555f34p-3f, 0x1.fffdcp-2f, -0x1.5c2ff6p-21f};
/* plain degree 5: exp(r) = 1 + r Q(r), 2^-23.4 */
static const float EXP5[] = {0x1.0fa386p-7f, 0x1.573acep-5f, 0x1.555a7ap-3f, 0x1.fffdc4p-2f, 0x1.fffff6p-1f};
/* 2^r = 1 + r Q(r), |r| <= 1/2: 2^-28; degree 5: 2^-23.3 */
static const float EXP2_6[] = {0x1.3fa206p-13f, 0x1.5f0b82p-10f, 0x1.3b30ap-7f, 0x1.c6af76p-5f, 0x1.ebfbd8p-3f, 0x1.62e43p-1f};
static const float EXP2_5[] = {0x1.5bfd58p-10f, 0x1.3ceaf8p-7f, 0x1.c6b69ap-5f, 0x1.ebf9bap-3f, 0x1.62e42ap-1f};

/* e^r s for a power of two s: the 1 is added as s, which rounds where adding 1 would. */
static kv exp_times(km *m, kv r, kv s, bool loose) {
  if (m->fma && loose) return km_fma(m, km_fma(m, r, km_poly(m, r, IR_COUNT(EXP5_FUSED), EXP5_FUSED), r), s, s);
  if (loose) return km_mul(m, km_mad(m, r, km_poly(m, r, IR_COUNT(EXP5), EXP5), km_f(m, 1)), s);
  const kv p = km_mad(m, km_mul(m, r, r), km_poly(m, r, IR_COUNT(EXP6), EXP6), r);
  return m->fma ? km_fma(m, p, s, s) : km_mul(m, km_add(m, p, km_f(m, 1)), s);
}

/* The domain lets the result be built with one factor: nothing overflows, and what would be denormal either cannot occur or may
   become 0 (n is then held at -127, whose power of two is 0). */
static bool simple_range(const km *m, double normal_lo, double normal_hi) {
  return m->has_dom && m->hi <= normal_hi && (m->may_flush || m->lo >= normal_lo);
}

/* 2^(j / 16), and by how much of themselves these floats are less than it */
static const float ROOTS[KM_TABLE] = {0x1p+0f,        0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fep+0f,  0x1.3dea64p+0f,
                                      0x1.4bfdaep+0f, 0x1.5ab07ep+0f, 0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
                                      0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};
static const float ROOTS_REST[KM_TABLE] = {0x0p+0f,          0x1.8d96d4p-25f,  -0x1.9c0c22p-27f, 0x1.964904p-25f,
                                           0x1.125002p-25f,  0x1.370be4p-25f,  -0x1.0a355p-25f,  -0x1.00d8acp-27f,
                                           0x1.26055cp-26f,  -0x1.05cb44p-25f, 0x1.67a1cap-28f,  0x1.a3b5e4p-28f,
                                           -0x1.f9c304p-27f, -0x1.6961b4p-28f, -0x1.a5217cp-28f, 0x1.61428ep-28f};
/* exp(r) = 1 + r Q(r), |r| <= 0.0217: 2^-29 */
static const float EXP3[] = {0x1.555556p-3f, 0x1.00022p-1f, 1};

/* Where a vector is a table of 16, a root by number and three terms take the place of five terms, and one operation, which rounds denormal results once,
   that of powers put together from bits: 0.57 ULP (docs/derive/exp5.c). e^x 2^-down for x in BY_ROOTS..120. What is far below the denormals, masked terms of
   a softmax, say, goes on as 2^-519: a Xeon takes 85 ns for a vector of which one power lies in -512..-127, and no more than for others below that. */
enum { BY_ROOTS = -360 };
static kv exp_by_roots(km *m, kv x, double down) {
  kv r;
  const kv bits = reduce(m, x, SIXTEENTHS, &r, NULL), n = km_sub(m, km_as_f(m, bits), km_f(m, MAGIC / 16 + down));
  const kv s = km_from_table(m, ROOTS, bits), rest = km_from_table(m, ROOTS_REST, bits);
  const kv p = km_fma(m, r, km_poly(m, r, IR_COUNT(EXP3), EXP3), rest);
  return kir_2(m->k, KIR_scalef, km_fma(m, p, s, s), n);
}

/* e^x for x in -104..72: the power of two is built 2^23 too large, so that a denormal result is rounded once; at -104 it is 0. */
static kv exp_down(km *m, kv x, bool loose) {
  if (m->tables) return exp_by_roots(m, x, 0);
  kv r;
  const kv bits = reduce(m, x, RAISED, &r, NULL);
  return km_mul(m, exp_times(m, r, power(m, bits), loose), km_f(m, 0x1p-23));
}

/* e^x for x proven in -87..88, or -88 where the result may become 0 */
kv km_exp_small(km *m, kv x) {
  if (m->tables) return exp_by_roots(m, x, 0);
  kv r;
  const kv bits = reduce(m, x, ONE, &r, NULL);
  return exp_times(m, r, power(m, bits), m->loose);
}

kv km_exp(km *m, kv x, kv unused) {
  (void)unused;
  kv r;
  if (m->own_exp2) return km_with_error(m, KIR_exp2, KIR_OWN_EXP2, 1, (kv[]){km_mul(m, x, km_f(m, 0x1.715476p+0))});
  if (simple_range(m, -87, 88) && !m->tables) return km_exp_small(m, km_at_least(m, x, -88));
  const bool down = m->has_dom && m->hi <= 72;
  const kv above = km_at_least(m, x, m->tables ? BY_ROOTS : down ? -104 : -176); /* -254 ln 2: factors that are 0 */
  if (down) return exp_down(m, above, m->loose);
  const kv held = km_at_most(m, above, 89);
  kv y;
  if (m->tables) {
    y = exp_by_roots(m, held, 0);
  } else {
    const kv bits = reduce(m, held, TWO, &r, NULL);
    y = grown_over(m, x, 0x1.62e42ep+6, grown(m, exp_times, r, bits, m->loose));
  }
  return m->has_dom ? y : km_pass(m, x, 0, y);
}

kv km_exp2(km *m, kv x, kv unused) {
  (void)unused;
  const bool simple = simple_range(m, -126, 127);
  const kv held = km_at_most(m, km_at_least(m, x, simple ? -127 : -253), 129);
  const kv magic = km_f(m, MAGIC + (simple ? ONE : TWO)), t = km_add(m, held, magic), r = km_sub(m, held, km_sub(m, t, magic));
  const kv q = m->loose ? km_poly(m, r, IR_COUNT(EXP2_5), EXP2_5) : km_poly(m, r, IR_COUNT(EXP2_6), EXP2_6);
  const kv p = km_mad(m, r, q, km_f(m, 1));
  if (simple) return km_mul(m, p, power(m, km_as_u(m, t)));
  const kv y = grown_over(m, x, 0x1.fffffep+6, grown(m, product, p, km_as_u(m, t), false));
  return m->has_dom ? y : km_pass(m, x, 0, y);
}

/* 2^(h + tail) for |h| <= 200, tail small: the last step of pow */
kv km_exp2_pair(km *m, kv h, kv tail) {
  const kv magic = km_f(m, MAGIC + TWO), t = km_add(m, h, magic), r = km_add(m, km_sub(m, h, km_sub(m, t, magic)), tail);
  const kv bits = km_as_u(m, t);
  return grown(m, product, km_mad(m, r, km_poly(m, r, IR_COUNT(EXP2_6), EXP2_6), km_f(m, 1)), bits, false);
}

/* 2^n p + (2^n - 1), halved to survive n = 128; both terms exact but for p */
kv km_expm1(km *m, kv x, kv unused) {
  (void)unused;
  kv r, tail;
  const kv bits = reduce(m, km_at_most(m, km_at_least(m, x, -20), 89), ONE - 1, &r, &tail);
  const kv bend = km_mad(m, km_mul(m, r, r), km_poly(m, r, IR_COUNT(EXPM1_7), EXPM1_7), km_mad(m, tail, r, tail));
  const kv p = km_add(m, r, bend), p_tail = km_sum_tail(m, r, bend, p);
  const kv s = power(m, bits), base = km_sub(m, s, km_f(m, 0.5));
  const kv y = km_add(m, km_mad(m, s, p, base), km_mul(m, s, p_tail));
  return km_pass(m, x, 0x33000000, km_over(m, x, 0x1.62e42ep+6, km_add(m, y, y)));
}

/* fpminimax: sinh(r) = r + r^3 S(r^2), 2^-34.2; cosh(r) = 1 + r^2 C(r^2), 2^-33.2; |r| <= 0.3468 */
static const float SINH7[] = {0x1.a28f32p-13f, 0x1.110fe2p-7f, 0x1.555556p-3f};
static const float COSH6[] = {0x1.6d515ap-10f, 0x1.5554e4p-5f, 0x1p-1f};

/* With |x| = n ln 2 + r: plus = (2^n + 2^-n)/4, minus = (2^n - 2^-n)/4, c = cosh(r) - 1, s = sinh(r); neither a division nor a
   cancellation is needed to put sinh and cosh together. */
typedef struct hyper {
  kv plus, minus, c, s;
} hyper;
static hyper split_hyper(km *m, kv x) {
  km of_abs = km_of_abs(m);
  kv r;
  const kv bits = reduce(m, km_at_most(&of_abs, km_abs(m, x), 90), ONE - 2, &r, NULL), z = km_mul(m, r, r);
  const kv most = km_u(m, 0x4b400000 + ONE - 2 + 60), few = km_select(m, km_gt(m, bits, most), most, bits); /* 2^-n no longer matters */
  const kv up = power(m, bits), down = power(m, km_sub(m, km_u(m, 2 * (ONE - 2)), few));
  return (hyper){.plus = km_add(m, up, down),
                 .minus = km_sub(m, up, down),
                 .c = km_mul(m, z, km_poly(m, z, IR_COUNT(COSH6), COSH6)),
                 .s = km_mad(m, km_mul(m, z, r), km_poly(m, z, IR_COUNT(SINH7), SINH7), r)};
}

static const double SINH_MAX = 0x1.65a9f8p+6; /* the largest argument with a finite sinh and cosh */

kv km_sinh(km *m, kv x, kv unused) {
  (void)unused;
  const hyper h = split_hyper(m, x);
  const kv y = km_add(m, h.minus, km_mad(m, h.minus, h.c, km_mul(m, h.plus, h.s)));
  km of_abs = km_of_abs(m);
  const kv magnitude = km_over(&of_abs, km_abs(m, x), SINH_MAX, km_add(m, y, y));
  return km_pass(m, x, 0x39000000, km_with_sign(m, magnitude, x));
}

kv km_cosh(km *m, kv x, kv unused) {
  (void)unused;
  const hyper h = split_hyper(m, x);
  const kv y = km_add(m, h.plus, km_mad(m, h.plus, h.c, km_mul(m, h.minus, h.s)));
  km of_abs = km_of_abs(m);
  return km_pass(m, x, 0, km_over(&of_abs, km_abs(m, x), SINH_MAX, km_add(m, y, y)));
}

/* a / b rounded nearly once; neither b nor 1 / b may be denormal. Without fma the quotient to correct
   is cut to half of its digits, so that its products with both halves of b are exact. */
static kv near_quotient(km *m, kv a, kv b) {
  if (m->exact_div) return km_div(m, a, b);
  const kv inverse = km_div(m, km_f(m, 1), b), q = km_mul(m, a, inverse);
  if (m->fma) return km_fma(m, km_fma(m, km_neg(m, q), b, a), inverse, q);
  const kv cut = km_top_half(m, q), high = km_top_half(m, b), rest = km_sub(m, a, km_mul(m, cut, high));
  return km_add(m, km_mul(m, km_sub(m, rest, km_mul(m, cut, km_sub(m, b, high))), inverse), cut);
}

/* e^r - 1 = r + r^2 P(r) as tanh wants it: each error beside what it makes of the result, 2^-26.1 at most; docs/derive/tanh.py prints them again. */
static const float TANH5[] = {0x1.6d48c4p-10f, 0x1.1237a6p-7f, 0x1.5553dap-5f, 0x1.555494p-3f, 0x1.000002p-1f};

/* x P(x^2) / Q(x^2) on |x| <= 9, 2^-25.5: an iteratively reweighted rational fit */
static const float TANH_P[] = {0x1.cadc9p-27f, 0x1.59c33ap-16f, 0x1.ca2c6cp-9f, 0x1.120b1ap-3f, 1.0f};
static const float TANH_Q[] = {0x1.a18004p-21f, 0x1.588604p-12f, 0x1.a7f7e8p-6f, 0x1.de5ad6p-2f, 1.0f};

/* y / (y + 2) of y = e^2|x| - 1, which keeps its places near 0. Where it is large its error counts no longer, nor that of ln 2 as one float, whose
   products with n are exact up to 8. */
kv km_tanh(km *m, kv x, kv unused) {
  (void)unused;
  if (m->tables) return km_tanh_by_pieces(m, x);
  if (m->loose) return km_pass(m, x, 0, km_odd_quotient(m, x, 9, IR_COUNT(TANH_P), TANH_P, TANH_Q));
  km of_abs = km_of_abs(m);
  const kv a = km_at_most(&of_abs, km_abs(m, x), 10), twice = km_add(m, a, a);
  kv n;
  const kv s = power(m, count_of(m, twice, ONE, &n)), r = km_mad(m, n, km_f(m, -0x1.62e43p-1), twice);
  const kv p = km_mad(m, km_mul(m, r, r), km_poly(m, r, IR_COUNT(TANH5), TANH5), r), y = km_mad(m, s, p, km_sub(m, s, km_f(m, 1)));
  return km_pass(m, x, 0, km_with_sign(m, near_quotient(m, y, km_add(m, y, km_f(m, 2))), x));
}

/* 1 / (1 + e^-x), both times 2^-SCALE: the divisor is finite where the result is not 0, and its inverse is no denormal. Where the device's own
   quotient is enough, e^-|x| or 1 over 1 + e^-|x|, whose places are all of the same size. */
kv km_sigmoid(km *m, kv x, kv unused) {
  (void)unused;
  enum { SCALE = 25 };
  const kv one = km_f(m, 1), scale = km_f(m, 0x1p-25);
  if (m->loose && !m->tables) {
    km of_abs = km_of_abs(m);
    const kv z = exp_down(m, km_neg(m, km_at_most(&of_abs, km_abs(m, x), 104)), false);
    return km_pass(m, x, 0, km_div(m, km_select(m, km_lt(m, x, km_f(m, 0)), z, one), km_add(m, z, one)));
  }
  kv r, z;
  const bool by_infinity = m->tables && m->exact_div; /* a quotient of 0, which no processor waits for (`zero_below`) */
  const kv held = km_neg(m, km_at_most(m, km_at_least(m, x, by_infinity ? -120 : -104), 70));
  if (m->tables) {
    z = exp_by_roots(m, held, SCALE);
  } else {
    const kv s = power(m, reduce(m, held, ONE - SCALE, &r, NULL));
    z = exp_times(m, r, s, false);
  }
  const kv over = m->exact_div && !m->tables ? zero_below(m, x, -104, scale) : scale, under = km_add(m, z, scale);
  return km_pass(m, x, 0, near_quotient(m, over, under));
}
