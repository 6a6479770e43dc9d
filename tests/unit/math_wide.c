/* The transcendental functions of f64: each is expanded by the math pass, run by the interpreter of kernel IR on edges, dense samples and bit
   patterns of all exponents, and compared with long double. Argument: the name of one function. */
#include "ir/kir_interp.h"
#include "ir/kir_pass.h"
#include "tests/tap.h"
#include "tests/unit/math_support.h"
#include <float.h>

enum { SAMPLES = 49152, ITEMS = 64 };
static const double PROMISE = 2.4; /* ULP, of each function: docs/numerics.md */
static double a_values[SAMPLES], b_values[SAMPLES], results[SAMPLES];

static double from_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static uint64_t random_bits(void) { return (uint64_t)math_random() << 32 | math_random(); }

/* ---- samples ---- */
// clang-format off
static const double edges[] = {0, 0x1p-1074, 0x1p-1022, 0x1p-60, 0x1p-54, 0x1p-28, 0x1p-27, 0.25, 0.4142, 0.5, 0.70710678118654752, 0.84375, 1, 1.4142135623730951, 1.5, 2,
                               2.4143, 3.1415926535897931, 1.5707963267948966, 5.95, 20, 22, 50, 700, 708.39641853226408, 709.78271289338397, 709.9, 710.4758600739439,
                               745.13321910194111, 746, 1022, 1023, 1024, 1074, 1075, 1e5, 4194303, 4194304, 0x1p28, 0x1p53, 0x1p60, 0x1p100, 1e300, 1.7976931348623157e308,
                               6381956970095103.0 * 0x1p797 /* nearest to a multiple of pi/2 */, INFINITY, NAN};
// clang-format on

static double edge(uint32_t n) {
  const double e = edges[n / 6 % IR_COUNT(edges)], near = n / 2 % 3 == 0 ? e : nextafter(e, n / 2 % 3 == 1 ? INFINITY : 0);
  return n & 1 ? -near : near;
}

static double dense(void) {
  static const double reach[] = {0x1p-20, 0.1, 1, 1, 4, 10, 40, 800, 1e5, 1e8};
  return reach[math_random() % IR_COUNT(reach)] * ((double)random_bits() * 0x1p-63 - 1);
}

static void make(const math_truth *t, uint32_t i) {
  const uint32_t edge_count = IR_COUNT(edges) * 6;
  double *a = &a_values[i], *b = &b_values[i];
  *a = i < edge_count ? edge(i) : i % 4 ? dense() : from_bits(random_bits());
  if (!t->two) return;
  *b = i % 3 == 0 ? edge(math_random() % edge_count) : i % 3 == 1 ? dense() : from_bits(random_bits());
  if (t->op == KIR_pow && i % 2) {
    const double y = 700 * ((double)random_bits() * 0x1p-63 - 1) / log(fabs(*a));
    *b = i % 4 == 1 ? rint(y) : y;
  }
}

/* ---- a run ---- */
static uint32_t add_memory(kir_kernel *k, const char *name, uint32_t slot) {
  return kir_memory_add(k, &(kir_memory){.name = name,
                                         .space = KIR_GLOBAL,
                                         .access = slot < 2 ? KIR_READ : KIR_WRITE,
                                         .rank = 1,
                                         .slot = slot,
                                         .type = kir_t(SNT_F64, 1),
                                         .dims = {SAMPLES}});
}

static void build(kir_kernel *k, const math_truth *t, uint32_t lanes) {
  k->items[0] = ITEMS;
  const uint32_t a = add_memory(k, "a", 0), b = add_memory(k, "b", 1), y = add_memory(k, "y", 2);
  const uint32_t ids[] = {kir_id(k, KIR_group, 0), kir_id(k, KIR_local, 0)};
  const int64_t coefs[] = {(int64_t)ITEMS * lanes, lanes};
  const uint32_t at = kir_ix(k, 2, coefs, ids, 0), x = kir_load(k, a, lanes, 1, &at), z = kir_load(k, b, lanes, 1, &at);
  kir_store(k, y, 1, &at, t->two ? kir_2(k, t->op, x, z) : kir_1(k, t->op, x));
}

static bool run(const math_truth *t, uint32_t lanes, bool same_bits) {
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  kir_kernel kernel, legal;
  kir_init(&kernel, &arena, "wide");
  kir_init(&legal, &arena, "wide");
  kernel.mode = same_bits ? SNT_NUMERICS_REPRODUCIBLE : SNT_NUMERICS_DEFAULT;
  build(&kernel, t, lanes);
  const kir_caps caps = {.target = "test", .f64 = true, .int64 = true, .exact_div = true, .exact_sqrt = true};
  const kir_interp_buffer buffers[] = {{a_values, sizeof a_values}, {b_values, sizeof b_values}, {results, sizeof results}};
  const kir_interp_info info = {.kernel = &legal, .groups = SAMPLES / (ITEMS * lanes), .buffer_count = 3, .buffers = buffers};
  snt_diag diag = {0};
  snt_result result = kir_run_passes(&kernel, &legal, &caps, NULL, &(kir_pass_hooks){.verify = true}, &diag);
  if (result == SNT_OK) result = kir_interp_run(&info, NULL, NULL, &diag);
  ir_arena_free(&arena);
  return result == SNT_OK || tap_ok(false, "%s runs: %s", kir_ops[t->op].name, diag.text);
}

/* ---- the error ---- */
static double error_of(double got, long double want) {
  const double rounded = (double)want;
  if (isnan(rounded) || isnan(got)) return isnan(rounded) && isnan(got) ? 0 : 1e9;
  if (isinf(got)) return got == rounded || (fabsl(want) >= DBL_MAX * (1 - 0x1p-52L) && (want > 0) == (got > 0)) ? 0 : 1e9;
  if (isinf(rounded)) return fabs(got) == DBL_MAX && (got > 0) == (rounded > 0) ? 1 : 1e9;
  if (rounded == 0 && got == 0) return !signbit(rounded) == !signbit(got) ? 0 : 1e9;
  int exponent = -1074;
  if (want != 0) frexpl(want, &exponent);
  exponent = exponent - 53 < -1074 ? -1074 : exponent - 53;
  return (double)ldexpl(fabsl(want - (long double)got), -exponent);
}

static void check(const math_truth *t) {
  static double scalar[SAMPLES];
  for (uint32_t i = 0; i < SAMPLES; i++) make(t, i);
  if (!run(t, 1, false)) return;
  double worst = 0;
  uint32_t at = 0;
  for (uint32_t i = 0; i < SAMPLES; i++) {
    const long double a = (long double)a_values[i], b = (long double)b_values[i];
    const double e = error_of(results[i], t->one ? t->one(a) : t->two(a, b));
    if (e > worst) worst = e, at = i;
  }
  const char *name = kir_ops[t->op].name;
  if (!tap_ok(worst <= PROMISE, "%s within %g ulp of f64 (%.3f)", name, PROMISE, worst))
    tap_diag("  of %a, %a: %a", a_values[at], b_values[at], results[at]);
  memcpy(scalar, results, sizeof scalar);
  tap_ok(run(t, 4, true) && memcmp(scalar, results, sizeof scalar) == 0, "%s: the same bits in vectors and in reproducible mode", name);
}

int main(int argc, char **argv) {
  for (uint32_t i = 0; i < math_truth_count; i++)
    if (argc < 2 || strcmp(kir_ops[math_truths[i].op].name, argv[1]) == 0) check(&math_truths[i]);
  return tap_done();
}
