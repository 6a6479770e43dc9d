/* The transcendental functions: each row of ir/kir_math.def is expanded for several kinds of device, evaluated over the whole range of f32
   (every 8191st bit pattern, as many evenly spread within +-100, every exponent, the neighbours of thresholds) and compared with long
   double. The devices are models (math_machine.c): division and 1/sqrt as wrong as OpenCL and Vulkan allow, with and without fma, keeping or
   flushing denormals. The interpreter of kernel IR must agree with the model bit for bit.
   Arguments: a number in place of 8191, and the name of one function. */
#include "ir/kir_interp.h"
#include "ir/math/private.h"
#include "tests/tap.h"
#include "tests/unit/math_machine.h"
#include "tests/unit/math_support.h"
#include <fenv.h>
#include <float.h>

enum { ONE_IN = 8191 };
#ifdef __SANITIZE_ADDRESS__
enum { DEFAULT_ONE_IN = 131071 }; /* a sanitizer looks at the code, not at the values: the build without one counts them */
#else
enum { DEFAULT_ONE_IN = ONE_IN };
#endif
static const math_device devices[] = {
    {.name = "rough division", .rough = true},
    {.name = "fma, rough division", .fma = true, .rough = true},
    {.name = "exact division", .exact_div = true},
    {.name = "flushes denormals", .flush = true},
    {.name = "fma, tables of 16", .fma = true, .exact_div = true, .table = 16},
};

static const math_device as_interpreter = {.name = "as the interpreter", .exact_div = true, .root_once = true};
static const math_device by_integers = {.name = "denormals by integers", .flush = true, .rough = true, .small = true};

/* ---- kernels of one function ---- */
typedef struct request {
  kir_op op;
  uint32_t lanes;
  float ulp;
  bool has_dom, has_least; /* both ends of where the argument lies, or the lower one */
  float lo, hi;
  bool same_bits;
} request;

static kir_caps caps_of(const math_device *d) {
  return (kir_caps){.target = "test",
                    .fma_fused = d->fma,
                    .fma_fast = d->fma,
                    .exact_div = d->exact_div,
                    .flushes = d->small,
                    .permute = d->table,
                    .nan_unsafe = d->rough};
}

static uint32_t expand(kir_kernel *k, const request *r, const math_device *d, uint32_t a, uint32_t b) {
  const kir_caps caps = caps_of(d);
  const kir_inst inst = {.op = (uint16_t)r->op,
                         .type = kir_t(SNT_F32, r->lanes),
                         .ulp = r->ulp,
                         .flags = r->has_dom ? KIR_HAS_DOM : 0,
                         .dom_lo = r->has_dom || r->has_least ? r->lo : -INFINITY,
                         .dom_hi = r->has_dom ? r->hi : INFINITY};
  if (!kir_math_find(r->op)) {
    const uint32_t value = kir_ops[r->op].args == 2 ? kir_2(k, r->op, a, b) : kir_1(k, r->op, a);
    const kir_type type = kir_at(k, value)->type;
    return type.base != SNT_BOOL ? value : kir_3(k, KIR_select, value, kir_const_like(k, a, 1), kir_const_like(k, a, 0));
  }
  return kir_math_expand(k, &inst, a, kir_ops[r->op].args == 2 ? b : 0, &caps);
}

/* The arguments are scalars of the kernel; the result is its last instruction. */
static bool make_machine(math_machine *v, ir_arena *arena, const request *r, const math_device *d) {
  kir_kernel *k = IR_NEW(arena, kir_kernel);
  kir_init(k, arena, "math");
  k->mode = r->same_bits ? SNT_NUMERICS_REPRODUCIBLE : SNT_NUMERICS_DEFAULT;
  uint32_t args[2];
  for (uint32_t i = 0; i < 2; i++) args[i] = kir_splat(k, kir_scalar_read(k, kir_scalar_add(k, i ? "b" : "a", SNT_F32, 0, 0, 0)), r->lanes);
  const uint32_t result = expand(k, r, d, args[0], args[1]);
  kir_bitcast(k, kir_t(SNT_U32, r->lanes), result);
  snt_diag diag = {0};
  bool good = !k->failed && kir_verify(k, NULL, &diag) == SNT_OK;
  if (good && d->small) {
    kir_kernel *legal = IR_NEW(arena, kir_kernel);
    const kir_caps caps = caps_of(d);
    kir_init(legal, arena, "math");
    good = kir_run_passes(k, legal, &caps, "small", NULL, &diag) == SNT_OK;
    k = legal;
  }
  if (!good) tap_ok(false, "%s for a device with %s: %s", kir_ops[r->op].name, d->name, k->failed ? k->first_error.text : diag.text);
  *v = (math_machine){.k = k, .d = *d, .cells = IR_NEW_ARRAY(arena, uint32_t, (size_t)k->insts.count * MATH_WIDTH)};
  return good && v->cells;
}

static const uint32_t *results_of(const math_machine *v) { return math_cells_of(v, v->k->insts.count - 1); }

/* ---- the measurement ---- */
typedef struct variant {
  math_machine v;
  bool cheap;
  float promise;
  double worst;
  uint32_t worst_at[2];
} variant;
enum { MAX_VARIANTS = 2 * IR_COUNT(devices) };

static uint32_t make_variants(variant *out, ir_arena *arena, kir_op op) {
  const kir_math_row *row = kir_math_find(op);
  uint32_t count = 0;
  for (uint32_t d = 0; d < IR_COUNT(devices); d++)
    for (uint32_t cheap = 0; cheap < 2; cheap++) {
      const float offer = kir_math_cheap(row, devices[d].fma, devices[d].exact_div);
      if (cheap && offer == 0) continue;
      const request r = {.op = op, .lanes = devices[d].table ? devices[d].table : 1, .ulp = cheap ? offer : 0};
      variant *x = &out[count];
      *x = (variant){.cheap = cheap, .promise = cheap ? offer : row->ulp};
      if (make_machine(&x->v, arena, &r, &devices[d])) count++;
    }
  return count;
}

static void measure(variant *x, const long double *want, const uint32_t *a, const uint32_t *b) {
  x->v.in[0] = a, x->v.in[1] = b;
  if (!math_machine_run(&x->v)) return;
  const uint32_t *got = results_of(&x->v);
  MATH_EACH {
    const double e = math_error(math_float(got[c]), want[c], x->v.d.flush);
    if (e > x->worst) x->worst = e, x->worst_at[0] = a[c], x->worst_at[1] = b[c];
  }
}

static uint32_t operations(const kir_kernel *k) {
  uint32_t count = 0;
  for (uint32_t i = 1; i < k->insts.count; i++) {
    const uint32_t op = kir_at(k, i)->op;
    count += op != KIR_const && op != KIR_scalar && op != KIR_bitcast && !(kir_ops[op].flags & KIR_REGION);
  }
  return count;
}

static void report(const math_truth *t, const variant *all, uint32_t count, uint32_t one_in) {
  const char *name = kir_ops[t->op].name;
  double worst[2] = {0, 0};
  for (uint32_t i = 0; i < count; i++) {
    const variant *x = &all[i];
    tap_diag("%s%s max %.3f ulp at x=%a%s%.9g (%s, %u operations)", name, x->cheap ? " (cheap)" : "", x->worst,
             (double)math_float(x->worst_at[0]), t->two ? ", y=" : " = ", (double)math_float(x->worst_at[t->two ? 1 : 0]), x->v.d.name,
             operations(x->v.k));
    tap_ok(x->worst <= (double)x->promise, "%s%s within %.2f ulp: %s", name, x->cheap ? " (cheap)" : "", (double)x->promise, x->v.d.name);
    if (!x->v.d.flush && x->worst > worst[x->cheap]) worst[x->cheap] = x->worst;
  }
  const double promise = (double)kir_math_max_ulp(t->op);
  if (one_in <= ONE_IN) tap_ok(worst[0] >= 0.6 * promise, "%s: the promise is not slack (%.3f of %.2f ulp)", name, worst[0], promise);
}

static void check_errors(const math_truth *t, uint32_t one_in) {
  static long double want[MATH_WIDTH];
  static uint32_t a[MATH_WIDTH], b[MATH_WIDTH];
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  variant all[MAX_VARIANTS];
  const uint32_t count = make_variants(all, &arena, t->op);
  const uint64_t spread = (((uint64_t)1 << 32) + one_in - 1) / one_in, total = 2 * spread + math_edge_count;
  for (uint64_t first = 0; first < total; first += MATH_WIDTH) {
    math_fill(t, first, spread, one_in, MATH_WIDTH, a, b);
    MATH_EACH want[c] = t->two ? t->two(math_float(a[c]), math_float(b[c])) : t->one(math_float(a[c]));
    for (uint32_t i = 0; i < count; i++)
      if (all[i].v.d.rough || first / MATH_WIDTH % 4 == 0) measure(&all[i], want, a, b);
  }
  report(t, all, count, one_in);
  ir_arena_free(&arena);
}

/* ---- special values, whatever the device makes of NaN in arithmetic ---- */
typedef struct special {
  kir_op op;
  float a, b, want;
} special;
// clang-format off
static const special special_cases[] = {
    {KIR_exp, -INFINITY, 0, 0}, {KIR_exp, INFINITY, 0, INFINITY}, {KIR_exp, 0, 0, 1}, {KIR_exp, 88.8f, 0, INFINITY}, {KIR_exp, -150, 0, 0},
    {KIR_exp2, 128, 0, INFINITY}, {KIR_exp2, -149, 0, 0x1p-149f}, {KIR_exp2, 127, 0, 0x1p127f}, {KIR_exp2, -151, 0, 0}, {KIR_expm1, -INFINITY, 0, -1},
    {KIR_expm1, -0.0f, 0, -0.0f}, {KIR_log, 0, 0, -INFINITY}, {KIR_log, -0.0f, 0, -INFINITY}, {KIR_log, -1, 0, NAN}, {KIR_log, 1, 0, 0},
    {KIR_log2, 0x1p-149f, 0, -149}, {KIR_log2, 0x1p127f, 0, 127}, {KIR_log2, 8, 0, 3}, {KIR_log1p, -1, 0, -INFINITY}, {KIR_log1p, -0.0f, 0, -0.0f},
    {KIR_log1p, -1.5f, 0, NAN}, {KIR_tanh, 90, 0, 1}, {KIR_tanh, -1000, 0, -1}, {KIR_tanh, INFINITY, 0, 1}, {KIR_sinh, -100, 0, -INFINITY},
    {KIR_cosh, -100, 0, INFINITY}, {KIR_cosh, 0, 0, 1}, {KIR_sigmoid, -INFINITY, 0, 0}, {KIR_sigmoid, 0, 0, 0.5f}, {KIR_sigmoid, INFINITY, 0, 1},
    {KIR_sin, INFINITY, 0, NAN}, {KIR_sin, -0.0f, 0, -0.0f}, {KIR_cos, -INFINITY, 0, NAN}, {KIR_cos, 0, 0, 1}, {KIR_tan, NAN, 0, NAN},
    {KIR_asin, 1.0000001f, 0, NAN}, {KIR_acos, 1, 0, 0}, {KIR_acos, -2, 0, NAN}, {KIR_atan, -INFINITY, 0, -1.57079637f}, {KIR_acosh, 0.5f, 0, NAN},
    {KIR_acosh, 1, 0, 0}, {KIR_acosh, INFINITY, 0, INFINITY}, {KIR_asinh, -INFINITY, 0, -INFINITY}, {KIR_atanh, -1, 0, -INFINITY}, {KIR_atanh, 2, 0, NAN},
    {KIR_erf, -INFINITY, 0, -1}, {KIR_erf, -0.0f, 0, -0.0f}, {KIR_atan2, 0, 0, 0}, {KIR_atan2, -0.0f, -0.0f, -3.14159274f}, {KIR_atan2, 0, -1, 3.14159274f},
    {KIR_atan2, INFINITY, -INFINITY, 2.3561945f}, {KIR_atan2, 1, NAN, NAN}, {KIR_atan2, -1, INFINITY, -0.0f}, {KIR_pow, NAN, 0, 1}, {KIR_pow, 1, NAN, 1},
    {KIR_pow, 2, NAN, NAN}, {KIR_pow, -8, 3, -512}, {KIR_pow, -8, 0.5f, NAN}, {KIR_pow, -0.0f, -3, -INFINITY}, {KIR_pow, -0.0f, -2, INFINITY},
    {KIR_pow, 0, 0.5f, 0}, {KIR_pow, -INFINITY, 3, -INFINITY}, {KIR_pow, -INFINITY, -0.5f, 0}, {KIR_pow, -1, INFINITY, 1}, {KIR_pow, 0.5f, -INFINITY, INFINITY},
    {KIR_pow, 2, -149, 0x1p-149f}, {KIR_pow, -2, 127, -0x1p127f}, {KIR_pow, 2, 128, INFINITY}, {KIR_pow, 3, 2, 9}, {KIR_pow, 10, 10, 1e10f},
};
// clang-format on

static bool same_value(float a, float b) { return isnan(a) ? isnan(b) : math_bits(a) == math_bits(b); }

static void check_specials(const math_device *d) {
  static uint32_t a[MATH_WIDTH], b[MATH_WIDTH];
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  for (uint32_t i = 0; i < IR_COUNT(special_cases); i++) {
    const special *s = &special_cases[i];
    const request r = {.op = s->op, .lanes = 1};
    MATH_EACH a[c] = math_bits(s->a), b[c] = math_bits(s->b);
    math_machine v;
    if (!make_machine(&v, &arena, &r, d)) continue;
    v.in[0] = a, v.in[1] = b;
    if (!math_machine_run(&v)) continue;
    const float got = math_float(results_of(&v)[0]);
    const bool flushes = d->flush && fabsf(s->want) < FLT_MIN && fabsf(got) < FLT_MIN;
    tap_ok(flushes || same_value(got, s->want), "%s(%g, %g) is %g, %s: %g", kir_ops[s->op].name, (double)s->a, (double)s->b,
           (double)s->want, d->name, (double)got);
    ir_arena_free(&arena);
  }
  ir_arena_free(&arena);
}

/* ---- vectors, and the interpreter of kernel IR ---- */
static bool interpret(ir_arena *arena, const request *r, const math_device *d, uint32_t *a, uint32_t *b, uint32_t *out) {
  kir_kernel k;
  kir_init(&k, arena, "math");
  const char *const names[] = {"a", "b", "y"};
  uint32_t mems[3];
  for (uint32_t i = 0; i < 3; i++)
    mems[i] = kir_memory_add(&k, &(kir_memory){.name = names[i],
                                               .space = KIR_GLOBAL,
                                               .access = i < 2 ? KIR_READ : KIR_WRITE,
                                               .rank = 1,
                                               .type = kir_t(SNT_F32, 1),
                                               .slot = i,
                                               .dims = {MATH_WIDTH}});
  const uint32_t at = kir_ix(&k, 1, (int64_t[]){r->lanes}, (uint32_t[]){kir_id(&k, KIR_group, 0)}, 0);
  const uint32_t x = kir_load(&k, mems[0], r->lanes, 1, &at), y = kir_load(&k, mems[1], r->lanes, 1, &at);
  kir_store(&k, mems[2], 1, &at, expand(&k, r, d, x, y));
  const kir_interp_buffer buffers[] = {{a, 4 * MATH_WIDTH}, {b, 4 * MATH_WIDTH}, {out, 4 * MATH_WIDTH}};
  const kir_interp_info info = {.kernel = &k, .groups = MATH_WIDTH / r->lanes, .buffer_count = 3, .buffers = buffers};
  kir_interp_stats stats;
  snt_diag diag = {0};
  const bool good = !k.failed && kir_interp_run(&info, ir_host_malloc(), &stats, &diag) == SNT_OK;
  if (!good) tap_ok(false, "interprets %s: %s", kir_ops[r->op].name, k.failed ? k.first_error.text : diag.text);
  return good;
}

static bool same_results(const uint32_t *a, const uint32_t *b) {
  MATH_EACH if (!same_value(math_float(a[c]), math_float(b[c]))) return false;
  return true;
}

static void check_widths(const math_truth *t, const math_device *d) {
  static uint32_t a[MATH_WIDTH], b[MATH_WIDTH], interpreted[MATH_WIDTH];
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  math_seed(7);
  for (uint32_t i = 0; i < MATH_WIDTH; i++) a[i] = i & 1 ? math_edge(math_random() % math_edge_count) : math_random(), b[i] = math_random();
  math_machine one, four;
  const request scalar = {.op = t->op, .lanes = 1}, vector = {.op = t->op, .lanes = 4};
  if (make_machine(&one, &arena, &scalar, d) && make_machine(&four, &arena, &vector, d)) {
    one.in[0] = four.in[0] = a, one.in[1] = four.in[1] = b;
    if (math_machine_run(&one) && math_machine_run(&four))
      tap_ok(same_results(results_of(&one), results_of(&four)), "%s: a vector's lanes are as scalars", kir_ops[t->op].name);
    if (interpret(&arena, &vector, d, a, b, interpreted))
      tap_ok(same_results(results_of(&one), interpreted), "%s: the interpreter agrees, %s", kir_ops[t->op].name, d->name);
  }
  ir_arena_free(&arena);
}

/* ---- proven domains: fewer operations, the same promise ---- */
typedef struct domain {
  kir_op op;
  float ulp, lo, hi;
} domain;
// clang-format off
static const domain domains[] = {
    {KIR_exp, 0, -87, 88},   {KIR_exp, 2, -INFINITY, 0}, {KIR_exp2, 2.5f, -INFINITY, 0}, {KIR_exp, 0, -INFINITY, 0}, {KIR_log, 0, 0x1p-126f, FLT_MAX},
    {KIR_log, 1.4f, 1, 2},   {KIR_log2, 0, 0x1p-20f, 1},    {KIR_sin, 0, -8192, 8192},      {KIR_cos, 2, -100, 100}, {KIR_tan, 0, -1, 1},
    {KIR_asin, 0, -1, 1},    {KIR_acos, 0, -1, 1},          {KIR_tanh, 0, -9, 1},           {KIR_erf, 9, -3, 3},     {KIR_expm1, 0, -10, 10},
    {KIR_sinh, 0, -80, 3},   {KIR_cosh, 0, -3, 80},         {KIR_sigmoid, 0, -104, 20},
};
// clang-format on

static void check_domain(const domain *m, const math_truth *t, const math_device *d) {
  static uint32_t a[MATH_WIDTH], b[MATH_WIDTH];
  const uint32_t lanes = d->table ? d->table : 1;
  const request free_range = {.op = m->op, .lanes = lanes, .ulp = m->ulp},
                proven = {m->op, lanes, m->ulp, true, false, m->lo, m->hi, false};
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  math_machine full, less;
  double worst = 0;
  const double lo = m->lo < -200 && m->hi <= 0 ? -200 : (double)m->lo, hi = (double)m->hi;
  const bool made = make_machine(&full, &arena, &free_range, d) && make_machine(&less, &arena, &proven, d);
  for (uint32_t batch = 0; made && batch < 64; batch++) {
    MATH_EACH a[c] = math_bits((float)(lo + (hi - lo) * (math_random() / 4294967296.0)));
    a[0] = math_bits(m->lo), a[1] = math_bits(m->hi);
    less.in[0] = a, less.in[1] = b;
    if (!math_machine_run(&less)) break;
    MATH_EACH { /* the cheap form may turn denormal results into 0 */
      const double e = math_error(math_float(results_of(&less)[c]), t->one(math_float(a[c])), m->ulp > 0);
      if (e > worst) worst = e;
    }
    if (isinf(m->lo)) tap_is_int(results_of(&less)[0], 0, "%s of -inf is exactly 0", kir_ops[m->op].name);
  }
  const double promise = m->ulp > 0 ? (double)m->ulp : (double)kir_math_max_ulp(m->op);
  tap_ok(made && worst <= promise, "%s on [%g, %g]: %.3f of %.2f ulp", kir_ops[m->op].name, (double)m->lo, (double)m->hi, worst, promise);
  tap_ok(made && operations(less.k) < operations(full.k), "%s on [%g, %g] is cheaper", kir_ops[m->op].name, (double)m->lo, (double)m->hi);
  ir_arena_free(&arena);
}

/* ---- proven ends of whatever function: what it promises anywhere, up to them and far beyond what random numbers reach ---- */
static const struct ends {
  float lo, hi;
} ends[] = {{0, INFINITY}, {1, INFINITY}, {-1, INFINITY}, {-INFINITY, 0}, {-INFINITY, 1}, {-1, 1}, {0, 300}, {-300, 0}, {-300, 300}};

static float between(const struct ends *e, uint32_t n) {
  const float any = math_float(math_random() << 16 ^ math_random()), share = (float)math_random() / 4294967296.0f;
  const float lo = fmaxf(e->lo, -400), hi = fminf(e->hi, 400), x = n % 2 ? any : lo + (hi - lo) * share;
  return n == 0 ? e->lo : n == 1 ? e->hi : x >= e->lo && x <= e->hi ? x : -x >= e->lo && -x <= e->hi ? -x : lo;
}

static void check_ends(const math_truth *t, const math_device *d) {
  static uint32_t a[MATH_WIDTH];
  const kir_math_row *row = kir_math_find(t->op);
  const float offer = kir_math_cheap(row, d->fma, d->exact_div);
  for (uint32_t i = 0; i < 2 * IR_COUNT(ends); i++) {
    const struct ends *e = &ends[i / 2];
    const bool cheap = i % 2;
    if (cheap && offer == 0) continue;
    const request r = {.op = t->op, .lanes = d->table ? d->table : 1, .ulp = cheap ? offer : 0, .has_dom = true, .lo = e->lo, .hi = e->hi};
    const float promise = cheap ? offer : row->ulp;
    double worst = 0;
    float worst_at = 0;
    ir_arena arena;
    ir_arena_init(&arena, NULL);
    math_machine v;
    bool ran = make_machine(&v, &arena, &r, d);
    for (uint32_t batch = 0; ran && batch < 16; batch++) {
      MATH_EACH a[c] = math_bits(between(e, c));
      v.in[0] = v.in[1] = a;
      ran = math_machine_run(&v);
      if (ran) MATH_EACH {
          const double error = math_error(math_float(results_of(&v)[c]), t->one(math_float(a[c])), d->flush || cheap);
          if (error > worst) worst = error, worst_at = math_float(a[c]);
        }
    }
    tap_ok(ran && worst <= (double)promise, "%s%s on [%g, %g], %s: %.3f of %.2f ulp (%g)", kir_ops[t->op].name, cheap ? " (cheap)" : "",
           (double)e->lo, (double)e->hi, d->name, worst, (double)promise, (double)worst_at);
    ir_arena_free(&arena);
  }
}

/* ---- a lower end alone: fewer operations, the same bits; of NaN NaN ---- */
static const domain least[] = {{KIR_log, 0, 1, 0},     {KIR_log, 1.4f, 0x1p-126f, 0}, {KIR_log2, 0, 0x1p-126f, 0},
                               {KIR_log2, 1.5f, 1, 0}, {KIR_log1p, 0, 1, 0},          {KIR_erf, 0, 0, 0},
                               {KIR_exp, 0, -1, 0}};

static void check_least(const domain *m, const math_device *d) {
  static uint32_t a[MATH_WIDTH], b[MATH_WIDTH];
  static const uint32_t nan[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7f800000};
  const uint32_t lanes = d->table ? d->table : 1;
  const request free_range = {.op = m->op, .lanes = lanes, .ulp = m->ulp},
                proven = {.op = m->op, .lanes = lanes, .ulp = m->ulp, .has_least = true, .lo = m->lo};
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  math_machine full, less;
  const bool made = make_machine(&full, &arena, &free_range, d) && make_machine(&less, &arena, &proven, d);
  bool same = made;
  for (uint32_t batch = 0; same && batch < 64; batch++) {
    MATH_EACH {
      a[c] = math_random() << 16 ^ math_random();
      if (math_float(a[c]) < m->lo) a[c] = batch % 2 ? math_bits(m->lo + (float)(a[c] % 4096) / 512) : a[c] & 0x7fffffff;
      if (math_float(a[c]) < m->lo) a[c] = math_bits(m->lo);
    }
    memcpy(a, nan, sizeof nan);
    full.in[0] = less.in[0] = a, full.in[1] = less.in[1] = b;
    same = math_machine_run(&full) && math_machine_run(&less) && same_results(results_of(&full), results_of(&less));
  }
  tap_ok(same, "%s from %g on: the bits of everywhere, %s", kir_ops[m->op].name, (double)m->lo, d->name);
  tap_ok(made && operations(less.k) < operations(full.k), "%s from %g on is cheaper, %s", kir_ops[m->op].name, (double)m->lo, d->name);
  ir_arena_free(&arena);
}

static void check_domains(void) {
  for (uint32_t i = 0; i < IR_COUNT(least); i++)
    for (uint32_t d = 0; d < IR_COUNT(devices); d += IR_COUNT(devices) - 1) check_least(&least[i], &devices[d]);
  for (uint32_t i = 0; i < IR_COUNT(domains); i++)
    for (uint32_t n = 0; n < math_truth_count; n++)
      if (math_truths[n].op == domains[i].op)
        for (uint32_t d = 0; d < IR_COUNT(devices); d += IR_COUNT(devices) - 1) check_domain(&domains[i], &math_truths[n], &devices[d]);
}

/* ---- what they cost: the chain of transcendental functions is bound by its operations (bench/results/lavapipe.md) ---- */
static const struct cost {
  kir_op op;
  uint32_t most;
} costs[] = {{KIR_exp, 29}, {KIR_tanh, 28}, {KIR_sigmoid, 30}};

static void check_costs(const math_device *d) {
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  for (uint32_t i = 0; i < IR_COUNT(costs); i++) {
    const request r = {.op = costs[i].op, .lanes = 1};
    math_machine v;
    if (!make_machine(&v, &arena, &r, d)) continue;
    tap_ok(operations(v.k) <= costs[i].most, "%s takes %u operations, %s", kir_ops[costs[i].op].name, operations(v.k), d->name);
  }
  ir_arena_free(&arena);
}

/* ---- what masks leave: a processor takes a hundred cycles for a vector with one result that underflows ---- */
static const request masked[] = {{.op = KIR_exp},
                                 {.op = KIR_exp, .has_dom = true, .lo = -INFINITY, .ulp = 2},
                                 {.op = KIR_exp, .has_dom = true, .lo = -INFINITY, .same_bits = true},
                                 {.op = KIR_exp2},
                                 {.op = KIR_sigmoid},
                                 {.op = KIR_sigmoid, .same_bits = true}};

static bool is_zero_at_masks(math_machine *v) {
  static const float left[] = {-1e4f, -1e9f, -65504, -FLT_MAX, -INFINITY, -300};
  uint32_t x[MATH_WIDTH];
  bool zero = true;
  MATH_EACH x[c] = ir_f32_bits(left[c % IR_COUNT(left)]);
  v->in[0] = v->in[1] = x;
  feclearexcept(FE_ALL_EXCEPT);
  if (!math_machine_run(v)) return false;
  const bool underflows = fetestexcept(FE_UNDERFLOW) != 0 && !v->d.table; /* what a table's vectors replace is not computed */
  MATH_EACH zero = zero && results_of(v)[c] == 0;
  return zero && !underflows;
}

static void check_masks(const math_device *d) {
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  for (uint32_t i = 0; i < IR_COUNT(masked); i++) {
    request r = masked[i];
    math_machine v;
    r.lanes = d->table ? d->table : 1;
    if (!make_machine(&v, &arena, &r, d)) continue;
    tap_ok(is_zero_at_masks(&v), "%s%s%s of what masks leave is 0 and underflows nowhere, %s", kir_ops[r.op].name,
           r.has_dom ? " below 0" : "", r.same_bits ? ", reproducible" : "", d->name);
  }
  ir_arena_free(&arena);
}

static void check_refusals(void) {
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  kir_kernel k;
  kir_init(&k, &arena, "math");
  const kir_inst inst = {.op = KIR_exp, .type = kir_t(SNT_F64, 1), .dom_lo = -INFINITY, .dom_hi = INFINITY};
  const kir_caps caps = caps_of(&devices[0]);
  const uint32_t value = kir_math_expand(&k, &inst, kir_const_float(&k, inst.type, 1), 0, &caps);
  tap_ok(value == 0 && k.failed && k.first_error.result == SNT_E_UNSUPPORTED, "exp on f64 is refused: %s", k.first_error.text);
  tap_ok(strstr(k.first_error.text, "exp on f64"), "and named");
  ir_arena_free(&arena);
}

/* ---- reproducible mode: one expansion for every device, or none ---- */
static char *reproducible_text(ir_arena *arena, kir_op op, const kir_caps *caps, snt_diag *diag) {
  kir_kernel k;
  kir_init(&k, arena, "math");
  k.mode = SNT_NUMERICS_REPRODUCIBLE;
  const uint32_t a = kir_scalar_read(&k, kir_scalar_add(&k, "a", SNT_F32, 0, 0, 0)),
                 b = kir_scalar_read(&k, kir_scalar_add(&k, "b", SNT_F32, 0, 0, 0));
  const kir_inst inst = {.op = (uint16_t)op, .type = kir_t(SNT_F32, 1), .dom_lo = -INFINITY, .dom_hi = INFINITY};
  kir_math_expand(&k, &inst, a, b, caps);
  ir_text text;
  ir_text_init(&text, arena);
  kir_print(&k, &text);
  *diag = k.first_error;
  return k.failed ? NULL : text.at;
}

static void check_reproducible(const math_truth *t) {
  const kir_caps one = {.fma_fused = true, .fma_fast = true, .exact_div = true, .exact_sqrt = true},
                 two = {.exact_div = true, .exact_sqrt = true};
  const kir_caps rough = {.fma_fused = true};
  const char *name = kir_ops[t->op].name;
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  snt_diag diag;
  const char *a = reproducible_text(&arena, t->op, &one, &diag), *b = reproducible_text(&arena, t->op, &two, &diag);
  tap_ok(a && b && !strcmp(a, b), "%s: reproducible mode expands alike with and without fma", name);
  tap_ok(a && !strstr(a, "fma") && !strstr(a, "rsqrt"), "%s: with neither fma nor rsqrt", name);
  const bool divides = a && (strstr(a, " div ") || strstr(a, " sqrt "));
  const char *c = reproducible_text(&arena, t->op, &rough, &diag);
  tap_ok(c && (divides || !strcmp(a, c)), "%s: rough division is %s", name, divides ? "repaired" : "not needed");
  ir_arena_free(&arena);
}

/* ---- reproducible mode: own division and root ---- */
static float exact_of(kir_op op, float a, float b) { return op == KIR_div ? a / b : op == KIR_rcp ? 1 / a : sqrtf(a); }

/* Arguments of all magnitudes, then pairs whose quotients lie near denormals, halves and overflow. */
static void fill_quotients(uint32_t round, uint32_t *a, uint32_t *b) {
  static const uint32_t edges[] = {0, 1, 0x007fffff, 0x00800000, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x7f7fffff, 0x7f800000, 0x7fc00000};
  MATH_EACH {
    a[c] = math_random() << 16 ^ math_random();
    b[c] = round % 2 ? (math_random() & 0x807fffff) | (((a[c] >> 23 & 0xff) + 126 + round % 32) % 255) << 23
                     : math_random() << 16 ^ math_random();
    if (round % 8 == 3) a[c] = edges[math_random() % IR_COUNT(edges)] | (math_random() & 1) << 31;
    if (round % 8 == 5) b[c] = edges[math_random() % IR_COUNT(edges)] | (math_random() & 1) << 31;
  }
}

static void check_exact(kir_op op, const math_device *d) {
  static uint32_t a[MATH_WIDTH], b[MATH_WIDTH];
  const request r = {.op = op, .lanes = 1, .same_bits = true};
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  math_machine v;
  uint32_t wrong = 0, at = 0, rounds = 0;
  for (bool made = make_machine(&v, &arena, &r, d); made && rounds < 8192; rounds++) {
    fill_quotients(rounds, a, b);
    v.in[0] = a, v.in[1] = b;
    if (!math_machine_run(&v)) break;
    const uint32_t *got = results_of(&v);
    MATH_EACH if (!same_value(math_float(got[c]), exact_of(op, math_float(a[c]), math_float(b[c]))) && !wrong++) at = c;
    if (wrong) break;
  }
  tap_ok(rounds == 8192 && !wrong, "reproducible %s is rounded correctly with %s (%a, %a)", kir_ops[op].name, d->name,
         (double)math_float(a[at]), (double)math_float(b[at]));
  ir_arena_free(&arena);
}

/* ---- reproducible mode: denormals on a device that flushes them ---- */
static uint32_t any_size(uint32_t round, uint32_t beside) {
  const uint32_t x = math_random() << 16 ^ math_random(), size = math_random() % 64;
  switch (round % 6) {
  case 0: return x & 0x80ffffff; /* denormals and those just above */
  case 1: return (x & 0x807fffff) | (size + (math_random() & 64) + 1) << 23;
  case 2: return (x & 0x807fffff) | (size + 96) << 23;
  case 3: return beside ^ (x & 0x80000000) ^ (x & ((2u << size % 24) - 1));
  case 4: return math_edge(x % math_edge_count);
  default: return x;
  }
}

static void check_small(kir_op op) {
  enum { ROUNDS = 252 };
  static uint32_t a[MATH_WIDTH], b[MATH_WIDTH];
  const request r = {.op = op, .lanes = 1, .same_bits = true};
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  math_machine keeps, flushes;
  uint32_t wrong = 0, at = 0, rounds = 0;
  const bool made = make_machine(&keeps, &arena, &r, &as_interpreter) && make_machine(&flushes, &arena, &r, &by_integers);
  for (; made && rounds < ROUNDS && !wrong; rounds++) {
    MATH_EACH a[c] = any_size(rounds, 0), b[c] = any_size(rounds / 6, a[c]);
    keeps.in[0] = flushes.in[0] = a, keeps.in[1] = flushes.in[1] = b;
    if (!math_machine_run(&keeps) || !math_machine_run(&flushes)) break;
    MATH_EACH if (!same_value(math_float(results_of(&keeps)[c]), math_float(results_of(&flushes)[c])) && !wrong++) at = c;
  }
  tap_ok(rounds == ROUNDS && !wrong, "reproducible %s is the same where denormals are flushed (%a, %a), %u operations", kir_ops[op].name,
         (double)math_float(a[at]), (double)math_float(b[at]), made ? operations(flushes.k) : 0);
  ir_arena_free(&arena);
}

/* Every operation with the attributes of these functions has a row here and in the table. */
static void check_totality(void) {
  for (uint32_t op = 1; op < KIR_OP_COUNT; op++) {
    if (!(kir_ops[op].attrs & KA_MATH)) continue;
    bool known = false;
    for (uint32_t i = 0; i < math_truth_count; i++) known |= math_truths[i].op == (kir_op)op;
    tap_ok(known && kir_math_find((kir_op)op), "%s has a row and a reference", kir_ops[op].name);
  }
}

int main(int argc, char **argv) {
  const uint32_t one_in = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : DEFAULT_ONE_IN;
  check_totality();
  for (uint32_t i = 0; i < math_truth_count; i++) {
    if (argc > 2 && strcmp(argv[2], kir_ops[math_truths[i].op].name)) continue;
    check_errors(&math_truths[i], one_in ? one_in : DEFAULT_ONE_IN);
    check_widths(&math_truths[i], &as_interpreter);
    check_reproducible(&math_truths[i]);
    check_small(math_truths[i].op);
    for (uint32_t d = 0; d < IR_COUNT(devices) && !math_truths[i].two; d++) check_ends(&math_truths[i], &devices[d]);
  }
  check_specials(&devices[0]);
  check_specials(&devices[1]);
  check_specials(&devices[2]);
  check_specials(&devices[3]);
  check_domains();
  check_costs(&devices[2]);
  check_masks(&devices[2]);
  check_masks(&devices[4]);
  check_refusals();
  static const kir_op plain[] = {KIR_add, KIR_sub, KIR_mul, KIR_div, KIR_sqrt, KIR_neg, KIR_eq, KIR_ne, KIR_lt, KIR_le, KIR_gt, KIR_ge};
  for (uint32_t i = 0; i < IR_COUNT(plain); i++) check_small(plain[i]);
  for (uint32_t d = 0; d < 2; d++) check_exact(KIR_div, &devices[d]), check_exact(KIR_rcp, &devices[d]), check_exact(KIR_sqrt, &devices[d]);
  return tap_done();
}
