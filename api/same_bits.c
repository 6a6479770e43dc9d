/* Reproducible programs on a device. In: a device that is about to get one, or to be compiled for. Out: what the legaliser must do itself for it, or
   SNT_E_UNSUPPORTED with the name of the probe that the device failed whatever is done. The probe is a program like any other; what it must give is IEEE 754
   binary32, rounded to nearest even after every operation, with denormals. Where a device fails, its program is made again with what repairs that row.
   The host device runs such programs on the kernel interpreter: the graph evaluator adds and rounds in an order of its own. */
#include "api/exec.h"
#include <math.h>

enum { PROBES = 23, INPUTS = 4, RESULTS = 7 };
/* What the legaliser does for a device: divisions and roots of our own, products that no sum takes in, tests for NaN on the bits, integers for denormals. */
enum { REPAIR_DIVISION = 1, REPAIR_ROOT = 2, REPAIR_CONTRACTION = 4, REPAIR_NAN = 8, REPAIR_DENORMALS = 16, REPAIR_KNOWN = 32 };
/* %d is %b once more: what a sum adds to is given to nobody else, or compilers keep it as it is. */
static const char probe_text[] =
    "graph @probe(%a: f32[23], %b: f32[23], %c: f32[23], %d: f32[23]) {\n"
    "  %product = mul %a, %d\n  %inner = mul %a, %b\n  %sum = add %inner, %c\n  %quotient = div %a, %b\n  %size = abs %a\n"
    "  %root = sqrt %size\n  %difference = sub %a, %b\n  %greater = max %a, %b\n  %ceiling = ceil %a\n"
    "  return product=%product, sum=%sum, quotient=%quotient, root=%root, difference=%difference, greater=%greater, ceiling=%ceiling\n}\n";

/* Each row is one habit that a driver may have. */
static const struct {
  const char *name;
  float a, b, c;
  uint32_t repair; /* what may help, besides that of the result */
} probes[PROBES] = {
    {"products and sums are not contracted", 0x1.001p0f, 0x1.001p0f, -0x1.002p0f, REPAIR_CONTRACTION},
    {"products and sums are not contracted", 0x1.fffffep0f, 0x1.000002p0f, -0x1.fffffep0f, REPAIR_CONTRACTION},
    {"denormal operands are kept", 0x1p-130f, 0x1p20f, 0x1p-140f, REPAIR_DENORMALS},
    {"denormal operands are compared", 0x1p-131f, -0x1p-130f, 0, REPAIR_DENORMALS},
    {"denormal results are kept", 0x1p-100f, 0x1p-30f, 0x1p-149f, REPAIR_DENORMALS},
    {"denormal results are kept", 0x1.8p-126f, 0.5f, -0x1p-126f, REPAIR_DENORMALS},
    {"denormal results are rounded once", 0x1.000002p-100f, 0x1.8p-30f, 0, REPAIR_DENORMALS},
    {"sums round to nearest even", 1, 1, 0x1p-24f, 0},
    {"sums round to nearest even", 1, 0x1.000002p0f, 0x1p-24f, 0},
    {"sums round to nearest even", -1, 1, -0x1.8p-24f, 0},
    {"products round to nearest even", 0x1.000002p0f, 0x1.8p0f, 0, 0},
    {"quotients are rounded correctly", 1, 3, 0, 0},
    {"quotients are rounded correctly", 0x1.fffffep0f, 0x1.000002p0f, 0, 0},
    {"quotients are rounded correctly", 0x1.234568p-100f, 0x1.9p30f, 0, REPAIR_DENORMALS},
    {"roots are rounded correctly", 2, 7, 0, 0},
    {"roots are rounded correctly", 0x1.fffffep-1f, 5, 0, 0},
    {"a zero has a sign", -0.0f, 3, -0.0f, 0},
    {"large results are infinite", 0x1p100f, 0x1p100f, 1, 0},
    {"what is no number is NaN", 0x1p100f, 0x1p100f, -INFINITY, 0},
    {"what is no number is NaN", INFINITY, 0, 1, 0},
    {"NaN stays NaN", NAN, 1, 2, REPAIR_NAN},
    {"NaN stays NaN", 1, NAN, 2, REPAIR_NAN},
    {"NaN stays NaN", 0, 1, NAN, REPAIR_NAN},
};

static void expect(float out[RESULTS][PROBES]) {
  for (uint32_t i = 0; i < PROBES; i++) {
    volatile float product = probes[i].a * probes[i].b; /* rounded here, whatever the compiler may fuse */
    out[0][i] = product;
    out[1][i] = product + probes[i].c;
    out[2][i] = probes[i].a / probes[i].b;
    out[3][i] = sqrtf(fabsf(probes[i].a));
    out[4][i] = probes[i].a - probes[i].b;
    out[5][i] = isnan(probes[i].a) || probes[i].a > probes[i].b ? probes[i].a : probes[i].b;
    out[6][i] = ceilf(probes[i].a);
  }
}

static void repair_caps(kir_caps *caps, uint32_t repairs) {
  caps->flushes = caps->flushes || (repairs & REPAIR_DENORMALS);
  caps->exact_div = caps->exact_div && !(repairs & (REPAIR_DIVISION | REPAIR_DENORMALS)); /* nor do its own steps see denormals */
  caps->exact_sqrt = caps->exact_sqrt && !(repairs & (REPAIR_ROOT | REPAIR_DENORMALS));
  caps->contracts = caps->contracts || (repairs & REPAIR_CONTRACTION);
  caps->nan_unsafe = caps->nan_unsafe || (repairs & REPAIR_NAN);
}

static uint32_t repairs_of(const kir_caps *caps) {
  return (caps->flushes ? REPAIR_DENORMALS : 0u) | (caps->exact_div ? 0u : REPAIR_DIVISION) | (caps->exact_sqrt ? 0u : REPAIR_ROOT) |
         (caps->contracts ? REPAIR_CONTRACTION : 0u) | (caps->nan_unsafe ? REPAIR_NAN : 0u);
}

static snt_result make_program(snt_device *d, uint32_t repairs, snt_program **out, snt_diag *diag) {
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .targets = d->info.api, .numerics = SNT_NUMERICS_REPRODUCIBLE, .flags = 0};
  snt_result r = snt_graph_create(d->context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, probe_text, sizeof probe_text - 1, NULL, diag);
  if (r == SNT_OK) r = snt_device_profile(d, &profile);
  if (r == SNT_OK) {
    api_profile_forget(profile); /* of which device it is: or its probe would be asked */
    repair_caps(&profile->profile.caps, repairs);
  }
  if (r == SNT_OK) r = snt_compile(graph, profile, &info, out, diag);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return r;
}

static snt_result judge(float got[RESULTS][PROBES], float want[RESULTS][PROBES], const snt_device *d, uint32_t *repair, snt_diag *diag) {
  static const struct {
    const char *name;
    uint32_t repair;
  } results[RESULTS] = {{"product", 0}, {"sum", 0},    {"quotient", REPAIR_DIVISION}, {"root", REPAIR_ROOT}, {"difference", 0},
                        {"greater", 0}, {"ceiling", 0}};
  for (uint32_t r = 0; r < RESULTS; r++)
    for (uint32_t i = 0; i < PROBES; i++)
      if (memcmp(&got[r][i], &want[r][i], sizeof(float)) && !(isnan(got[r][i]) && isnan(want[r][i]))) {
        *repair = probes[i].repair | results[r].repair;
        return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0,
                       "%s cannot give reproducible results: it fails the probe \"%s\" (the %s of %a and %a: %a, not %a)", d->info.selector,
                       probes[i].name, results[r].name, (double)probes[i].a, (double)probes[i].b, (double)got[r][i], (double)want[r][i]);
      }
  return SNT_OK;
}

static snt_result run_probe(snt_device *d, snt_program *program, uint32_t *repair, snt_diag *diag) {
  float in[INPUTS][PROBES], got[RESULTS][PROBES], want[RESULTS][PROBES];
  snt_argument arguments[INPUTS + RESULTS];
  for (uint32_t i = 0; i < PROBES; i++) in[0][i] = probes[i].a, in[1][i] = in[3][i] = probes[i].b, in[2][i] = probes[i].c;
  for (uint32_t i = 0; i < INPUTS + RESULTS; i++)
    arguments[i] = (snt_argument){.port = i, .host = i < INPUTS ? in[i] : got[i - INPUTS], .bytes = sizeof in[0]};
  const snt_run_info info = {.head = SNT_HEAD(run_info), .argument_count = INPUTS + RESULTS, .arguments = arguments};
  snt_exec *x = NULL;
  snt_result r = exec_create_unprobed(d, program, NULL, &x, diag);
  if (r == SNT_OK) r = snt_run(x, &info, diag);
  snt_exec_destroy(x);
  if (r != SNT_OK) return r;
  expect(want);
  return judge(got, want, d, repair, diag);
}

/* What the device needs, found once: repairs are added as rows fail, until none does or one does that nothing more would help. */
static snt_result probe(snt_device *d, uint32_t *repairs, snt_diag *diag) {
  *repairs = atomic_load(&d->same_bits);
  if (*repairs & REPAIR_KNOWN) return SNT_OK;
  for (uint32_t done = 0;;) {
    snt_program *program = NULL;
    uint32_t wanted = 0;
    snt_result r = make_program(d, done, &program, diag);
    if (r == SNT_OK) r = run_probe(d, program, &wanted, diag);
    snt_program_destroy(program);
    if (r == SNT_OK) {
      *repairs = done | REPAIR_KNOWN;
      atomic_store(&d->same_bits, *repairs);
      return r;
    }
    wanted &= ~done;
    if (!wanted) return r;
    done |= wanted & (0 - wanted); /* the cheapest first: a quotient may be rough without being denormal */
  }
}

static const char *ability(uint32_t lacking) {
  static const struct {
    uint32_t repair;
    const char *words;
  } abilities[] = {{REPAIR_DENORMALS, "keep denormals"},
                   {REPAIR_CONTRACTION, "round products"},
                   {REPAIR_NAN, "keep NaN"},
                   {REPAIR_DIVISION, "divide exactly"},
                   {REPAIR_ROOT, "take roots exactly"}};
  uint32_t i = 0;
  while (!(lacking & abilities[i].repair)) i++;
  return abilities[i].words;
}

snt_result exec_probe_same_bits(snt_device *d, const snt_program *p, snt_diag *diag) {
  uint32_t repairs;
  if (d->door)
    return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0, "reproducible results need a probe, and %s is its host's to submit to",
                   d->info.selector);
  SNT_TRY(probe(d, &repairs, diag));
  const uint32_t lacking = repairs & ~(repairs_of(&p->profile.caps) | REPAIR_KNOWN);
  if (!lacking) return SNT_OK;
  return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0,
                 "the reproducible program is for devices that %s, which %s does not: compile it for its profile", ability(lacking),
                 d->info.selector);
}

void exec_repair_caps(const snt_profile *of, kir_caps *caps) {
  uint32_t repairs;
  if (of->device && !of->device->host && probe(of->device, &repairs, NULL) == SNT_OK) repair_caps(caps, repairs);
}

snt_result exec_interpret(snt_exec *x, const snt_exec_info *info, snt_diag *diag) {
  snt_device *interp = NULL;
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = "interp"};
  SNT_TRY(snt_device_open(x->device->context, &open, &interp, diag));
  const snt_result r = exec_create_unprobed(interp, x->program, info, &x->inner, diag);
  snt_device_destroy(interp);
  return r;
}

/* Everything is host memory; states are the outer exec's. */
snt_result exec_run_inner(snt_exec *x, const snt_run_info *given, snt_diag *diag) {
  const snt_program *p = x->program;
  snt_context *c = x->device->context;
  snt_argument *arguments = api_take(c, p->port_count * sizeof *arguments);
  if (p->port_count && !arguments) return ir_no_memory(diag, "run");
  for (uint32_t i = 0; i < p->port_count; i++) {
    const uint32_t b = p->ports[i];
    void *own = x->bound[b].host ? x->bound[b].host : x->host_states[b];
    arguments[i] = (snt_argument){.port = i, .host = own, .bytes = x->bound[b].bytes};
  }
  snt_run_info info = *given;
  info.argument_count = p->port_count, info.arguments = arguments, info.argument_stride = 0;
  const snt_result r = snt_run(x->inner, &info, diag);
  api_give(c, arguments, p->port_count * sizeof *arguments);
  return r;
}
