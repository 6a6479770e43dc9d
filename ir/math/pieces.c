/* erf and tanh where a vector is a table of 16 (caps.permute): each of sixteen pieces has its polynomial, whose coefficients are taken from
   tables by the number of the piece. They take a third of the multiply-adds of what erf.c and exp.c have for other devices, and no division. */
#include "ir/math/private.h"

enum { PIECES = KM_TABLE, ERF_TERMS = 6, TANH_TERMS = 7 };

/* Minimax fits of erf around n / 4 and of tanh behind its pieces' beginnings, relative to them; docs/derive/pieces.py prints them again. */
static const float ERF[ERF_TERMS][PIECES] = {
    {0x1.cb9d2ap-4f, 0x1.4b1632p-4f, 0x1.0b60ccp-7f, -0x1.ade5p-5f, -0x1.1986e4p-4f, -0x1.81ecaap-5f, -0x1.ec92aep-7f, 0x1.a5883ap-8f,
     0x1.a97cdcp-7f, 0x1.5c8ab2p-7f, 0x1.920256p-8f, 0x1.6bd966p-9f, 0x1.0daf04p-10f, 0x1.4e9f32p-12f, 0x1.601622p-14f, 0x1.3cd124p-16f},
    {0x0p+0f, 0x1.022274p-3f, 0x1.748e8ep-3f, 0x1.3351f2p-3f, 0x1.1bcff8p-4f, -0x1.73186ap-8f, -0x1.69a6b6p-5f, -0x1.885484p-5f,
     -0x1.1a14ep-5f, -0x1.39c52ap-6f, -0x1.1caef2p-7f, -0x1.b024b6p-9f, -0x1.1654fap-10f, -0x1.33009ap-12f, -0x1.23bb8ap-14f,
     -0x1.dfc01ap-17f},
    {-0x1.81265p-2f, -0x1.3c9c9ep-2f, -0x1.2bfcdcp-3f, 0x1.b6c258p-6f, 0x1.1b5f34p-3f, 0x1.571ce4p-3f, 0x1.1c2aeap-3f, 0x1.714aacp-4f,
     0x1.8b0cep-5f, 0x1.63f032p-6f, 0x1.119c52p-7f, 0x1.69c902p-9f, 0x1.9da814p-11f, 0x1.9a8a0ap-13f, 0x1.62a878p-15f, 0x1.0b4182p-17f},
    {0x0p+0f, -0x1.0f5baap-2f, -0x1.c1eep-2f, -0x1.edc46ep-2f, -0x1.a9121ap-2f, -0x1.2ecp-2f, -0x1.6d5bfap-3f, -0x1.7a4bd6p-4f,
     -0x1.529bc2p-5f, -0x1.0749b8p-6f, -0x1.64dd6ep-8f, -0x1.a695dp-10f, -0x1.b5f20cp-12f, -0x1.8dbca8p-14f, -0x1.3cdfeep-16f,
     -0x1.bb477ap-19f},
    {0x1.20dd74p+0f, 0x1.0f5d18p+0f, 0x1.c1efccp-1f, 0x1.492e44p-1f, 0x1.a911f2p-2f, 0x1.e4653p-3f, 0x1.e72372p-4f, 0x1.b0552ep-5f,
     0x1.529b9cp-6f, 0x1.d41438p-8f, 0x1.1d831ap-9f, 0x1.3360dcp-11f, 0x1.24091p-13f, 0x1.e9b66ep-16f, 0x1.6a5a2ap-18f, 0x1.d938bcp-21f},
    {0x0p+0f, 0x1.1af54ep-2f, 0x1.0a7ef6p-1f, 0x1.6c1c98p-1f, 0x1.af767ap-1f, 0x1.d8865ep-1f, 0x1.eea556p-1f, 0x1.f92d08p-1f,
     0x1.fd9ae2p-1f, 0x1.ff4048p-1f, 0x1.ffcaa8p-1f, 0x1.fff2dp-1f, 0x1.fffd1ap-1f, 0x1.ffff7p-1f, 0x1.ffffe8p-1f, 0x1.fffffep-1f},
};
static const float TANH[TANH_TERMS][PIECES] = {
    {0x1.eef676p-7f, 0x1.1470e2p-9f, -0x1.76f254p-11f, -0x1.1e0924p-11f, -0x1.4af364p-13f, -0x1.7bbc7ap-16f, -0x1.9e4f8ap-19f,
     -0x1.c1085ep-22f, -0x1.92eb64p-26f, 0x0p+0f, 0x0p+0f, 0x0p+0f, -0x1.2eeae6p-5f, -0x1.1b097ap-4f, -0x1.8f35a8p-6f, 0x1.a52b62p-7f},
    {-0x1.5aeac2p-5f, 0x1.4e2416p-12f, 0x1.4aee0cp-8f, 0x1.663df2p-9f, 0x1.f94f6p-11f, 0x1.1da538p-13f, 0x1.370e32p-16f, 0x1.51097ep-19f,
     0x1.c6276cp-23f, 0x0p+0f, 0x0p+0f, 0x0p+0f, 0x1.25097p-3f, 0x1.221dd2p-4f, -0x1.276a96p-5f, -0x1.174bb6p-4f},
    {0x1.ad11e2p-6f, -0x1.a85ddep-6f, -0x1.2655ecp-6f, -0x1.064e94p-7f, -0x1.8b2e2ap-9f, -0x1.b816fcp-12f, -0x1.de496p-15f,
     -0x1.030c84p-17f, -0x1.ca0328p-21f, 0x0p+0f, 0x0p+0f, 0x0p+0f, -0x1.36505ap-10f, 0x1.1ecc5cp-3f, 0x1.5447aep-3f, 0x1.9b4024p-4f},
    {0x1.a9836ep-4f, 0x1.68549p-4f, 0x1.590c3ap-5f, 0x1.16bfc4p-6f, 0x1.a52e6ep-8f, 0x1.cf6aa2p-11f, 0x1.f6d39cp-14f, 0x1.1047eap-16f,
     0x1.14a98ap-19f, 0x0p+0f, 0x0p+0f, 0x0p+0f, -0x1.5544c8p-2f, -0x1.0727dap-2f, -0x1.825da2p-4f, 0x1.560ffap-5f},
    {-0x1.478d08p-2f, -0x1.4f0254p-3f, -0x1.16faaep-4f, -0x1.add846p-6f, -0x1.41696ap-7f, -0x1.5ef104p-10f, -0x1.7c64bp-13f,
     -0x1.9be8aep-16f, -0x1.b818eep-19f, 0x0p+0f, 0x0p+0f, 0x0p+0f, -0x1.26882cp-20f, -0x1.d7808p-3f, -0x1.7425ecp-2f, -0x1.840346p-2f},
    {0x1.ae0df4p-2f, 0x1.721684p-3f, 0x1.2162c8p-4f, 0x1.b3afcep-6f, 0x1.4345fcp-7f, 0x1.5f805ep-10f, 0x1.7cc8eap-13f, 0x1.9c4d22p-16f,
     0x1.bdb1b4p-19f, 0x0p+0f, 0x0p+0f, 0x0p+0f, 0x1p+0f, 0x1.e149ap-1f, 0x1.92a944p-1f, 0x1.3173bp-1f},
    {0x1.85efacp-1f, 0x1.cf6f98p-1f, 0x1.ed9506p-1f, 0x1.f92582p-1f, 0x1.fd77d2p-1f, 0x1.ffa818p-1f, 0x1.fff41ap-1f, 0x1.fffe64p-1f,
     0x1.ffffc8p-1f, 0x1p+0f, 0x1p+0f, 0x1p+0f, 0x0p+0f, 0x1.f597eap-3f, 0x1.d9353ep-2f, 0x1.45323ep-1f},
};

/* Horner's rule, each coefficient by the last four bits of `number` */
static kv by_piece(km *m, kv number, kv r, uint32_t terms, const float (*table)[PIECES]) {
  kv sum = km_from_table(m, table[0], number);
  for (uint32_t i = 1; i < terms; i++) sum = km_fma(m, sum, r, km_from_table(m, table[i], number));
  return sum;
}

static kv magnitude_within(km *m, kv x, double limit) {
  km of_abs = km_of_abs(m);
  return km_at_most(&of_abs, m->lo >= 0 ? x : km_abs(m, x), limit);
}

/* Pieces of a quarter: |x| + 1.5 2^21 is rounded to one, and ends in its number. Beyond 3.875, the end of the last, the result is 1. */
kv km_erf_by_pieces(km *m, kv x) {
  const kv a = magnitude_within(m, x, 0x1.effffep+1), magic = km_f(m, 0x1.8p21), t = km_add(m, a, magic);
  const kv y = by_piece(m, km_as_u(m, t), km_sub(m, a, km_sub(m, t, magic)), ERF_TERMS, ERF);
  return km_pass(m, x, 0, km_with_sign(m, y, x));
}

/* |x| + 1 lies in 1..16, a piece is a quarter of an octave. From 9.02 on the result is 1. */
kv km_tanh_by_pieces(km *m, kv x) {
  const kv a = magnitude_within(m, x, 9.02), one = km_f(m, 1), bits = km_as_u(m, km_add(m, a, one));
  const kv first = km_sub(m, km_as_f(m, km_and(m, bits, km_u(m, 0xffe00000))), one);
  const kv y = by_piece(m, km_shr(m, bits, km_u(m, 21)), km_sub(m, a, first), TANH_TERMS, TANH);
  return km_pass(m, x, 0, km_with_sign(m, y, x));
}
