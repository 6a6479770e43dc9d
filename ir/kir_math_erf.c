/* erf in f32: a polynomial in x near 0, 1 - exp(polynomial) beyond; or one quotient where a few ULP do. */
#include "ir/kir_math_private.h"

/* fpminimax: erf(x) = x + x E(x^2), |x| <= 0.925, 2^-30.1; log(erfc(x)) on 0.92..3.94: erf within 2^-29 */
static const float ERF13[] = {0x1.5c7f38p-14f, -0x1.aa1048p-11f, 0x1.54bf5ep-8f, -0x1.b80d2ap-6f,
                              0x1.ce2deep-4f,  -0x1.812742p-2f,  0x1.06eba8p-3f};
static const float LOG_ERFC8[] = {0x1.b43582p-20f, -0x1.801458p-15f, 0x1.378cd2p-11f, -0x1.370c8ep-8f, 0x1.b03308p-6f,
                                  -0x1.c28f16p-4f, -0x1.438adap-1f,  -0x1.215324p0f,  0x1.3f6daap-12f};

/* x P(x^2) / Q(x^2) on |x| <= 3.92, 2^-25.7: an iteratively reweighted rational fit */
static const float ERF_P[] = {0x1.13288p-19f, 0x1.2ab8c2p-12f, 0x1.ed9186p-9f, 0x1.b01e2ap-5f, 0x1.85f3f4p-3f, 0x1.20dd74p+0f};
static const float ERF_Q[] = {0x1.3f896ap-15f, 0x1.30c0a8p-10f, 0x1.ea8316p-7f, 0x1.d3643p-4f, 0x1.011024p-1f, 1.0f};

kv km_erf(km *m, kv x, kv unused) {
  (void)unused;
  if (m->loose) return km_pass(m, x, 0, km_odd_quotient(m, x, 3.92, IR_COUNT(ERF_P), ERF_P, ERF_Q));
  km of_abs = km_of_abs(m);
  const kv a = km_abs(m, x), z = km_mul(m, x, x);
  const kv small = km_mad(m, a, km_poly(m, z, IR_COUNT(ERF13), ERF13), a);
  const kv inner = km_poly(m, km_at_most(&of_abs, a, 3.94), IR_COUNT(LOG_ERFC8), LOG_ERFC8);
  const kv large = km_sub(m, km_f(m, 1), km_exp_small(m, inner));
  const kv y = km_select(m, km_lt(m, a, km_f(m, 0.921875)), small, large);
  return km_pass(m, x, 0, km_with_sign(m, y, x));
}
