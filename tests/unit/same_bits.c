/* Devices with habits: the kernel interpreter runs what a compiler with that habit would make of a kernel. The probe of REPRODUCIBLE (api/same_bits.c) finds
   each; what the legaliser can repair gives the bits of the interpreter without it, and what it cannot is refused by the name of the probe. */
#include "ir/kir_interp.h"
#include "ir/kir_pass.h"
#include "ir/kir/text.h"
#include "ir/kir/verify.h"
#include "tests/tap.h"
#include <sinter/backend.h>
#include <sinter/sinter.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a compiler makes of one operation on f32 ---- */
typedef struct site {
  kir_kernel *k;
  const kir_kernel *in;
  uint32_t at; /* in `in` */
  const kir_inst *inst;
  const uint32_t *args; /* in `k` */
  kir_type type, word;  /* of the operands, and bits of as many lanes */
} site;
static bool is(const site *s, kir_op op) { return s->inst->op == op; }
static bool is_arithmetic(const site *s) {
  return is(s, KIR_add) || is(s, KIR_sub) || is(s, KIR_mul) || is(s, KIR_div) || is(s, KIR_sqrt) || is(s, KIR_max);
}
static bool is_comparison(const site *s) { return s->inst->op >= KIR_eq && s->inst->op <= KIR_ge; }
static uint32_t lit(const site *s, uint32_t bits) { return kir_const_int(s->k, s->word, bits); }
static uint32_t bits_of(const site *s, uint32_t v) { return kir_bitcast(s->k, s->word, v); }
static uint32_t from_bits(const site *s, uint32_t v) { return kir_bitcast(s->k, s->type, v); }
static uint32_t pick(const site *s, uint32_t c, uint32_t a, uint32_t b) { return kir_3(s->k, KIR_select, c, a, b); }
static uint32_t plain(const site *s, const uint32_t *args) { return kir_put(s->k, s->inst, s->inst->arg_count, args); }
static uint32_t flushed(const site *s, uint32_t v) {
  const uint32_t bits = bits_of(s, v), small = kir_2(s->k, KIR_eq, kir_2(s->k, KIR_and, bits, lit(s, 0x7f800000)), lit(s, 0));
  return from_bits(s, pick(s, small, kir_2(s->k, KIR_and, bits, lit(s, 0x80000000)), bits));
}
static uint32_t uses(const kir_kernel *k, uint32_t v) {
  uint32_t count = 0;
  for (uint32_t i = v + 1; i < k->insts.count; i++)
    for (uint32_t n = 0; n < kir_at(k, i)->arg_count; n++) count += kir_arg(k, i, n) == v;
  return count;
}
/* Operand n is a product that nobody else reads: what it is of. */
static bool product(const site *s, uint32_t n, uint32_t of[2]) {
  const uint32_t v = s->args[n];
  if (kir_at(s->k, v)->op != KIR_mul || uses(s->in, kir_arg(s->in, s->at, n)) > 1) return false;
  of[0] = kir_arg(s->k, v, 0), of[1] = kir_arg(s->k, v, 1);
  return true;
}

/* 0: the operation stays. */
static uint32_t contracts(const site *s) {
  uint32_t of[2];
  if (is(s, KIR_add) && product(s, 0, of)) return kir_3(s->k, KIR_fma, of[0], of[1], s->args[1]);
  if (is(s, KIR_add) && product(s, 1, of)) return kir_3(s->k, KIR_fma, of[0], of[1], s->args[0]);
  if (is(s, KIR_sub) && product(s, 0, of)) return kir_3(s->k, KIR_fma, of[0], of[1], kir_1(s->k, KIR_neg, s->args[1]));
  return 0;
}
static uint32_t flushes(const site *s) {
  uint32_t args[2] = {0};
  if (!is_arithmetic(s) && !is_comparison(s) && !is(s, KIR_ceil)) return 0;
  for (uint32_t n = 0; n < s->inst->arg_count; n++) args[n] = flushed(s, s->args[n]);
  return is_comparison(s) ? plain(s, args) : flushed(s, plain(s, args));
}
static uint32_t flushes_results(const site *s) { return is_arithmetic(s) ? flushed(s, plain(s, s->args)) : 0; }
static uint32_t divides_by_reciprocal(const site *s) {
  if (!is(s, KIR_div)) return 0;
  return kir_2(s->k, KIR_mul, s->args[0], kir_2(s->k, KIR_div, kir_const_float(s->k, s->type, 1), s->args[1]));
}
static uint32_t cuts_quotients(const site *s) { /* the last bit is lost */
  return is(s, KIR_div) ? from_bits(s, kir_2(s->k, KIR_and, bits_of(s, plain(s, s->args)), lit(s, 0xfffffffe))) : 0;
}
static uint32_t cuts_roots(const site *s) {
  return is(s, KIR_sqrt) ? from_bits(s, kir_2(s->k, KIR_and, bits_of(s, plain(s, s->args)), lit(s, 0xfffffffe))) : 0;
}
static uint32_t in_double(const site *s, uint32_t v) { return kir_cast(s->k, kir_t(SNT_F64, s->type.lanes), v); }
/* Towards 0: one less where rounding went away from it. */
static uint32_t cut(const site *s) {
  const uint32_t exact = kir_2(s->k, (kir_op)s->inst->op, in_double(s, s->args[0]), in_double(s, s->args[1])),
                 near = kir_cast(s->k, s->type, exact);
  const uint32_t beyond = kir_2(s->k, KIR_gt, kir_1(s->k, KIR_abs, in_double(s, near)), kir_1(s->k, KIR_abs, exact));
  return from_bits(s, kir_2(s->k, KIR_sub, bits_of(s, near), pick(s, beyond, lit(s, 1), lit(s, 0))));
}
static uint32_t cuts_sums(const site *s) { return is(s, KIR_add) ? cut(s) : 0; }
static uint32_t cuts_products(const site *s) { return is(s, KIR_mul) ? cut(s) : 0; }
static uint32_t loses_signs(const site *s) { /* x * y + 0 */
  const uint32_t zero = kir_const_float(s->k, s->type, 0);
  return is(s, KIR_mul) ? kir_2(s->k, KIR_add, plain(s, s->args), zero) : 0;
}
static uint32_t saturates(const site *s) {
  if (!is(s, KIR_add) && !is(s, KIR_mul)) return 0;
  const uint32_t value = plain(s, s->args), bits = bits_of(s, value), size = kir_2(s->k, KIR_and, bits, lit(s, 0x7fffffff));
  return from_bits(s, pick(s, kir_2(s->k, KIR_eq, size, lit(s, 0x7f800000)), kir_2(s->k, KIR_sub, bits, lit(s, 1)), bits));
}
static uint32_t makes_zeros(const site *s) { /* where there is no number */
  if (!is(s, KIR_mul) && !is(s, KIR_add)) return 0;
  const uint32_t value = plain(s, s->args), zero = kir_const_float(s->k, s->type, 0);
  return pick(s, kir_1(s->k, KIR_isnan, value), zero, value);
}
static uint32_t compares_without_nan(const site *s) { /* nothing differs from itself, and the greater is what is not smaller */
  if (is(s, KIR_ne) && s->args[0] == s->args[1]) return kir_2(s->k, KIR_lt, s->args[0], s->args[1]);
  if (is(s, KIR_max)) return pick(s, kir_2(s->k, KIR_gt, s->args[0], s->args[1]), s->args[0], s->args[1]);
  return is(s, KIR_isnan) ? kir_2(s->k, KIR_lt, s->args[0], s->args[0]) : 0;
}

typedef struct habit {
  const char *name;
  uint32_t (*make)(const site *);
  const char *lacks;   /* what a program for devices without it says that this one does not; null: it lacks nothing */
  const char *refused; /* the probe by which, whatever is done */
} habit;
static const habit habits[] = {
    {"none", NULL, NULL, NULL},
    {"contracts", contracts, "round products", NULL},
    {"flushes", flushes, "keep denormals", NULL},
    {"flushes-results", flushes_results, "keep denormals", NULL},
    {"divides-by-reciprocal", divides_by_reciprocal, "divide exactly", NULL},
    {"cuts-quotients", cuts_quotients, "divide exactly", NULL},
    {"cuts-roots", cuts_roots, "take roots exactly", NULL},
    {"compares-without-nan", compares_without_nan, "keep NaN", NULL},
    {"cuts-sums", cuts_sums, NULL, "sums round to nearest even"},
    {"cuts-products", cuts_products, NULL, "products round to nearest even"},
    {"loses-signs", loses_signs, NULL, "a zero has a sign"},
    {"saturates", saturates, NULL, "large results are infinite"},
    {"makes-zeros", makes_zeros, NULL, "what is no number is NaN"},
};

static snt_result spoil(const kir_kernel *in, kir_kernel *out, const habit *h) {
  kir_clone c;
  snt_result r = kir_clone_begin(&c, in, out);
  for (uint32_t i = 1; r == SNT_OK && i < in->insts.count; i++) {
    const kir_inst *inst = kir_at(in, i);
    uint32_t args[2] = {0}, value = 0;
    const bool few = inst->arg_count == 1 || inst->arg_count == 2;
    const kir_type type = few ? kir_type_of(in, kir_arg(in, i, 0)) : inst->type;
    for (uint32_t n = 0; few && n < inst->arg_count; n++) args[n] = c.map[kir_arg(in, i, n)];
    const site s = {out, in, i, inst, args, type, kir_t(SNT_U32, type.lanes)};
    if (h->make && few && type.base == SNT_F32 && !(kir_ops[inst->op].flags & KIR_MEM)) value = h->make(&s);
    if (value) c.map[i] = value;
    else kir_clone_inst(&c, i);
  }
  return out->failed ? SNT_E_HOST_MEM : r;
}

/* ---- a device of that habit ---- */
static const char profile_text[] =
    "base = pocl\ntarget = interp\nname = habit\ncaps.exact_div = 1\ncaps.exact_sqrt = 1\ncaps.nan_unsafe = 0\n";
typedef struct pipeline {
  ir_arena arena;
  kir_kernel kernel;
} pipeline;
static snt_result SNT_CALL open_habit(void *user, const char *which, void **out, snt_diag *diag) {
  (void)which, (void)diag;
  *out = user;
  return SNT_OK;
}
static void SNT_CALL close_habit(void *device) { (void)device; }
static snt_result SNT_CALL create_pipeline(void *device, const snt_backend_code *code, void **out, snt_diag *diag) {
  pipeline *p = calloc(1, sizeof *p);
  kir_kernel read;
  if (!p) return SNT_E_HOST_MEM;
  ir_arena_init(&p->arena, NULL);
  kir_init(&read, &p->arena, "read");
  kir_init(&p->kernel, &p->arena, "spoilt");
  snt_result r = kir_parse(&read, code->data, code->size, diag);
  if (r == SNT_OK) r = spoil(&read, &p->kernel, device);
  if (r == SNT_OK) r = kir_verify(&p->kernel, NULL, diag);
  *out = p;
  return r;
}
static void SNT_CALL destroy_pipeline(void *device, void *made) {
  pipeline *p = made;
  (void)device;
  ir_arena_free(&p->arena);
  free(p);
}
static snt_result SNT_CALL run_pipeline(void *device, void *made, const snt_backend_launch *launch, uint64_t *ns, snt_diag *diag) {
  const pipeline *p = made;
  kir_interp_buffer buffers[16];
  kir_interp_stats stats;
  (void)device, (void)ns;
  if (launch->binding_count > IR_COUNT(buffers)) return SNT_E_LIMIT;
  for (uint32_t i = 0; i < launch->binding_count; i++) buffers[i] = (kir_interp_buffer){launch->bindings[i], launch->bytes[i]};
  const uint32_t words = launch->block_bytes / 4;
  const kir_interp_info info = {.kernel = &p->kernel,
                                .groups = ((const uint32_t *)launch->block)[words - 1],
                                .subgroup_size = 4,
                                .buffer_count = launch->binding_count,
                                .buffers = buffers,
                                .scalars = launch->block,
                                .scalar_bytes = launch->block_bytes};
  return kir_interp_run(&info, NULL, &stats, diag);
}

static snt_device *open_device(snt_context *c, const habit *h) {
  const snt_backend b = {.head = SNT_HEAD(backend),
                         .user = (void *)(uintptr_t)h,
                         .name = h->name,
                         .target = SNT_TARGET_HOST,
                         .device_count = 1,
                         .profile = profile_text,
                         .open = open_habit,
                         .close = close_habit,
                         .pipeline_create = create_pipeline,
                         .pipeline_destroy = destroy_pipeline,
                         .run = run_pipeline};
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = h->name};
  snt_device *d = NULL;
  snt_diag diag = {.head = SNT_HEAD(diag)};
  if (snt_context_add_backend(c, &b) != SNT_OK || snt_device_open(c, &open, &d, &diag) != SNT_OK) tap_diag("%s: %s", h->name, diag.text);
  return d;
}

/* ---- programs ---- */
enum { ROWS = 7, COLUMNS = 19, ELEMENTS = ROWS * COLUMNS, OUTPUTS = 4 };
static const char model[] = "graph @habits(%a: f32[7,19], %b: f32[7,19]) {\n"
                            "  %p = mul %a, %b\n  %s = add %p, %a\n  %d = sub %p, %b\n  %o = add %s, %d\n"
                            "  %u = mul %a, %a\n  %v = add %u, %b\n  %f = add %o, %v\n"
                            "  %q = div %a, %b\n  %n = abs %b\n  %r = sqrt %n\n  %t = add %q, %r\n"
                            "  %g = max %a, %b\n  %e = sigmoid %b\n  %h = mul %g, %e\n  %k = min %h, 3.0\n"
                            "  %m = softmax %b, axis=1\n  return f=%f, t=%t, k=%k, m=%m\n}\n";
typedef struct values {
  float at[OUTPUTS][ELEMENTS];
} values;

/* Numbers of every size, zeros of both signs, an infinity and NaN; of %b the last row has no special ones. */
static void fill(float a[ELEMENTS], float b[ELEMENTS]) {
  static const float special[] = {0, -0.0f, INFINITY, NAN, 0x1p-149f, -0x1.8p-130f, 0x1p-126f, 0x1.fffffep127f};
  uint32_t state = 1;
  for (uint32_t i = 0; i < 2 * ELEMENTS; i++) {
    state = state * 1664525u + 1013904223u;
    const float size = (state & 7) == 0 ? 0x1p-64f : 1, number = ((float)(state >> 8) * 0x1p-24f * 4 - 2) * size;
    (i < ELEMENTS ? a : b)[i % ELEMENTS] = (state >> 5) % 11 == 0 && i % ELEMENTS < ELEMENTS - COLUMNS ? special[(state >> 12) % 8]
                                                                                                       : number;
  }
}

static snt_program *compile(snt_context *c, const snt_profile *profile, uint32_t numerics, snt_diag *diag) {
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .numerics = numerics, .targets = SNT_TARGET_HOST};
  snt_graph *g = NULL;
  snt_program *p = NULL;
  snt_result r = snt_graph_create(c, &g);
  if (r == SNT_OK) r = snt_graph_parse(g, model, sizeof model - 1, NULL, diag);
  if (r == SNT_OK) r = snt_compile(g, profile, &info, &p, diag);
  snt_graph_destroy(g);
  return p;
}

static snt_result run(snt_device *d, const snt_program *p, values *out, snt_diag *diag) {
  float in[2][ELEMENTS];
  snt_argument arguments[2 + OUTPUTS];
  snt_exec *x = NULL;
  fill(in[0], in[1]);
  memset(out, 0, sizeof *out);
  for (uint32_t i = 0; i < 2 + OUTPUTS; i++)
    arguments[i] = (snt_argument){.port = i, .host = i < 2 ? in[i] : out->at[i - 2], .bytes = sizeof in[0]};
  const snt_run_info info = {.head = SNT_HEAD(run_info), .argument_count = 2 + OUTPUTS, .arguments = arguments};
  snt_result r = snt_exec_create(d, p, NULL, &x, diag);
  if (r == SNT_OK) r = snt_run(x, &info, diag);
  snt_exec_destroy(x);
  return r;
}

/* A NaN is a NaN. */
static uint32_t differ(const values *a, const values *b) {
  uint32_t count = 0;
  for (uint32_t o = 0; o < OUTPUTS; o++)
    for (uint32_t i = 0; i < ELEMENTS; i++) {
      const float x = a->at[o][i], y = b->at[o][i];
      if (memcmp(&x, &y, sizeof x) && !(isnan(x) && isnan(y)) && !count++)
        tap_diag("output %u, element %u: %a, not %a", o, i, (double)x, (double)y);
    }
  return count;
}

static values right, right_strict; /* of the device without a habit */

/* What a program of the device's own profile gives, or why it is refused. */
static void check_own(snt_device *d, const habit *h, const snt_program *p) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  values got;
  const snt_result r = run(d, p, &got, &diag);
  if (h->refused) {
    tap_is_int(r, SNT_E_UNSUPPORTED, "%s is refused", h->name);
    tap_ok(strstr(diag.text, h->refused) != NULL, "%s: %s", h->name, diag.text);
  } else if (tap_is_int(r, SNT_OK, "%s: a reproducible program for its profile runs %s", h->name, diag.text)) {
    tap_is_int(differ(&got, &right), 0, "%s: the bits of a device without it", h->name);
  }
}

/* A program for a device without the habit. */
static void check_others(snt_device *d, const habit *h, const snt_program *p) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  values got;
  if (!h->lacks) return;
  tap_is_int(run(d, p, &got, &diag), SNT_E_UNSUPPORTED, "%s: a reproducible program for other devices is refused", h->name);
  tap_ok(strstr(diag.text, "for devices that") && strstr(diag.text, h->lacks), "%s: %s", h->name, diag.text);
}

static void check_habit(const habit *h) {
  const snt_context_info info = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION};
  snt_diag diag = {.head = SNT_HEAD(diag)};
  snt_context *c = NULL;
  snt_profile *own = NULL, *plain_profile = NULL;
  values got;
  snt_context_create(&info, &c);
  snt_device *d = open_device(c, h);
  if (d) snt_device_profile(d, &own), snt_profile_parse(c, profile_text, strlen(profile_text), &plain_profile, &diag);
  snt_program *strict = compile(c, own, SNT_NUMERICS_STRICT, &diag), *same = compile(c, own, SNT_NUMERICS_REPRODUCIBLE, &diag),
              *others = compile(c, plain_profile, SNT_NUMERICS_REPRODUCIBLE, &diag);
  if (tap_ok(strict && same && others, "%s: programs are compiled %s", h->name, diag.text)) {
    tap_is_int(run(d, strict, &got, &diag), SNT_OK, "%s: STRICT asks no probe %s", h->name, diag.text);
    if (!h->make) right_strict = got, run(d, same, &right, &diag);
    else tap_ok(differ(&got, &right_strict) > 0, "%s: it shows in STRICT", h->name);
    check_own(d, h, same);
    check_others(d, h, others);
  }
  snt_program_destroy(strict), snt_program_destroy(same), snt_program_destroy(others);
  snt_profile_destroy(own), snt_profile_destroy(plain_profile);
  snt_device_destroy(d);
  snt_context_destroy(c);
}

int main(void) {
  for (uint32_t i = 0; i < IR_COUNT(habits); i++) check_habit(&habits[i]);
  return tap_done();
}
