/* One case on one device: compiled, run in device buffers between guard words, its outputs poisoned first, and held against the f64 reference. */
#include "conformance/relations.h"
#include "ir/eval.h"
#include "tools/host/host.h"
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sinter/backend.h>
#include <time.h>
#include <unistd.h>

enum { MASKED_RUN = 1, STRICT_RUN = 2, UNFUSED_RUN = 4, SAME_RUN = 8, INTERP_RUN = 16, FAST_RUN = 32 };

const char *const conform_result_names[CONFORM_RESULTS] = {"pass", "fail", "skip", "crash", "timeout", "flaky", "excused"};

const char *const conform_phase_names[PHASE_COUNT] = {"compile time", "driver compile time",
                                                      "driver compile time or run time, as drivers compile on a kernel's first run",
                                                      "run time", "time of the reference"};

/* ---- devices ---- */

static void enter(conform_device *d, uint8_t phase) {
  if (d->phase) *d->phase = phase;
}

/* Schedules and code of another device, as the interpreter takes them. */
static snt_result foreign_profile(snt_context *context, const char *name, snt_profile **out, snt_diag *diag) {
  char text[128];
  const int length = snprintf(text, sizeof text, "base = %.60s\nname = %.40s\ntarget = kir\n", name, name);
  return snt_profile_parse(context, text, (size_t)length, out, diag);
}

snt_result conform_open(const char *selector, conform_device *d, snt_diag *diag) {
  host_prepare_drivers(NULL);
  *d = (conform_device){.phase = d->phase, .again = d->again, .info = {.head = SNT_HEAD(device_info)}};
  const snt_context_info made = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION};
  snt_result r = snt_context_create(&made, &d->context);
  if (r == SNT_OK) (void)snt_context_add_backend(d->context, host_cuda_text());
  static const char mask[] = "vulkan11-min";
  const char *foreign = strchr(selector, '=');
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = foreign ? "interp" : selector};
  if (r == SNT_OK) r = snt_device_open(d->context, &open, &d->device, diag);
  if (r == SNT_OK && foreign) r = foreign_profile(d->context, foreign + 1, &d->profile, diag);
  else if (r == SNT_OK) r = snt_device_profile(d->device, &d->profile);
  if (r == SNT_OK) r = snt_device_get_info(d->device, &d->info);
  const snt_open_info judge = {.head = SNT_HEAD(open_info), .selector = "interp"};
  if (r == SNT_OK) r = snt_device_open(d->context, &judge, &d->interp, diag);
  if (r == SNT_OK) r = snt_device_profile(d->interp, &d->interp_profile);
  const snt_open_info less = {.head = SNT_HEAD(open_info), .selector = open.selector, .mask = mask};
  if (r == SNT_OK && snt_device_open(d->context, &less, &d->masked, NULL) == SNT_OK)
    (void)(foreign ? snt_profile_mask(d->profile, mask, &d->masked_profile, NULL) : snt_device_profile(d->masked, &d->masked_profile));
  return r;
}

void conform_close(conform_device *d) {
  snt_profile_destroy(d->interp_profile);
  snt_device_destroy(d->interp);
  snt_profile_destroy(d->masked_profile);
  snt_device_destroy(d->masked);
  snt_profile_destroy(d->profile);
  snt_device_destroy(d->device);
  snt_context_destroy(d->context);
}

/* ---- ports ---- */

static uint64_t next_random(uint64_t *state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

typedef struct source {
  const conform_graph *graph;
  double low, high;
  uint64_t state;
  const int64_t *symbols;
  const ports *given; /* the inputs; null: made */
} source;

static const double specials[] = {NAN, INFINITY, -INFINITY, -0.0, 0};
enum { SPECIAL_EVERY = 41 }; /* a row or two of a small shape has none */

/* A border's zero times an infinite weight is NaN where it is computed: either is right. */
static bool is_weight(const char *name) { return name[0] == 'w' && (!name[1] || name[1] == '.'); } /* also one that cut.c joins */

/* The value of an element, by the port's name (calls.def) and the case's data. */
static double value_of(source *s, const char *name, int32_t dtype) {
  const uint64_t bits = next_random(&s->state);
  if (!strncmp(name, "i_", 2)) return (double)(bits % (uint64_t)s->symbols[name[2] == 'n' ? 0 : name[2] == 'm' ? 1 : 2]);
  if (dtype == SNT_BOOL) return (double)(bits & 1);
  const double unit = (double)(bits >> 11) * 0x1p-53;
  if (!strncmp(name, "p_", 2)) return 0.25 + unit;
  if (s->graph->special && ir_dtypes[dtype].is_float && !is_weight(name) && bits % SPECIAL_EVERY == 0)
    return specials[bits / SPECIAL_EVERY % IR_COUNT(specials)];
  if (!s->graph->whole && ir_dtypes[dtype].is_float) return s->low + (s->high - s->low) * unit;
  const bool is_unsigned = ir_dtypes[dtype].is_int && !ir_dtypes[dtype].is_signed;
  if (s->graph->full && ir_dtypes[dtype].is_int) /* all of a narrow type; of a wide one what f64 holds */
    return (double)((int64_t)bits >> (64 - (ir_dtypes[dtype].bits < 53 ? ir_dtypes[dtype].bits : 53))) +
           (is_unsigned ? ldexp(1, ir_dtypes[dtype].bits < 53 ? ir_dtypes[dtype].bits - 1 : 52) : 0);
  return (double)(int64_t)(bits % 9) - (is_unsigned ? 0 : 4);
}

static bool make_ports(const snt_program *program, source *s, ports *all) {
  all->count = snt_program_port_count(program);
  if (all->count > MAX_PORTS) return false;
  for (uint32_t i = 0; i < all->count; i++) {
    port *p = &all->at[i];
    *p = (port){.info = {.head = SNT_HEAD(port)}, .elements = 1};
    if (snt_program_port(program, i, &p->info) != SNT_OK || snt_program_port_dims(program, i, s->symbols, p->dims) != SNT_OK) return false;
    for (uint32_t d = 0; d < p->info.tensor.rank; d++) p->elements *= (uint64_t)p->dims[d];
    p->bytes = p->elements * snt_dtype_size(p->info.tensor.dtype);
    p->data = malloc(p->bytes + 2 * GUARD);
    if (!p->data) return false;
    memset(p->data, POISON, p->bytes);
    if (s->given && p->info.kind != SNT_PORT_OUTPUT) memcpy(p->data, s->given->at[i].data, p->bytes);
    for (uint64_t e = s->given ? p->elements : 0; p->info.kind != SNT_PORT_OUTPUT && e < p->elements; e++)
      ir_dtype_store(p->info.tensor.dtype, p->data, e, value_of(s, p->info.name, p->info.tensor.dtype));
  }
  return true;
}

static void free_ports(ports *all) {
  for (uint32_t i = 0; i < all->count && i < MAX_PORTS; i++) free(all->at[i].data);
}

/* ---- running ---- */

typedef struct attempt {
  snt_device *device;
  snt_program *program;
  snt_exec *exec;
  snt_stream *stream;
  snt_event *event;
  snt_buffer *buffers[MAX_PORTS];
  snt_argument arguments[MAX_PORTS];
  ports ports;
  uint8_t *scratch;
} attempt;

static snt_result upload(snt_device *device, attempt *a, snt_diag *diag) {
  snt_result r = snt_stream_create(device, &a->stream, diag);
  for (uint32_t i = 0; r == SNT_OK && i < a->ports.count; i++) {
    port *p = &a->ports.at[i];
    a->scratch = realloc(a->scratch, p->bytes + 2 * GUARD);
    memset(a->scratch, POISON, p->bytes + 2 * GUARD);
    memcpy(a->scratch + GUARD, p->data, p->bytes);
    r = snt_buffer_create(device, p->bytes + 2 * GUARD, &a->buffers[i], diag);
    if (r == SNT_OK) r = snt_buffer_upload(a->stream, a->buffers[i], 0, a->scratch, p->bytes + 2 * GUARD, diag);
    a->arguments[i] = (snt_argument){.port = i, .buffer = a->buffers[i], .offset = GUARD};
  }
  return r;
}

/* Reads everything back; inputs and guard words must be what they were. */
static snt_result download(attempt *a, conform_verdict *v, snt_diag *diag) {
  snt_result r = SNT_OK;
  for (uint32_t i = 0; r == SNT_OK && i < a->ports.count; i++) {
    port *p = &a->ports.at[i];
    a->scratch = realloc(a->scratch, p->bytes + 2 * GUARD);
    r = snt_buffer_download(a->stream, a->buffers[i], 0, a->scratch, p->bytes + 2 * GUARD, diag);
    for (uint32_t k = 0; r == SNT_OK && k < GUARD; k++)
      if (a->scratch[k] != POISON || a->scratch[GUARD + p->bytes + k] != POISON) {
        v->result = CONFORM_FAIL;
        snprintf(v->detail, sizeof v->detail, "%s: written outside its buffer, %u bytes %s", p->info.name,
                 a->scratch[k] != POISON ? GUARD - k : k, a->scratch[k] != POISON ? "before" : "behind");
        break;
      }
    if (p->info.kind == SNT_PORT_OUTPUT) memcpy(p->data, a->scratch + GUARD, p->bytes);
    else if (r == SNT_OK && memcmp(p->data, a->scratch + GUARD, p->bytes))
      v->result = CONFORM_FAIL, snprintf(v->detail, sizeof v->detail, "input %s was written", p->info.name);
  }
  return r;
}

uint32_t conform_path_numerics(uint32_t path) {
  static const uint32_t numerics[PATH_COUNT] = {
      [PATH_FUSED] = SNT_NUMERICS_DEFAULT,     [PATH_STRICT] = SNT_NUMERICS_STRICT, [PATH_MASKED] = SNT_NUMERICS_DEFAULT,
      [PATH_SAME] = SNT_NUMERICS_REPRODUCIBLE, [PATH_FAST] = SNT_NUMERICS_FAST,     [PATH_CUT] = SNT_NUMERICS_STRICT};
  return path < PATH_COUNT ? numerics[path] : SNT_NUMERICS_DEFAULT;
}

static snt_result build_attempt(conform_device *d, const char *text, uint32_t flags, attempt *a, conform_verdict *v, snt_diag *diag) {
  snt_device *device = flags & MASKED_RUN ? d->masked : flags & INTERP_RUN ? d->interp : d->device;
  const snt_profile *profile = flags & MASKED_RUN ? d->masked_profile : flags & INTERP_RUN ? d->interp_profile : d->profile;
  snt_graph *graph = NULL;
  enter(d, PHASE_COMPILE);
  snt_result r = snt_graph_create(d->context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, text, strlen(text), NULL, diag);
  host_glsl glsl = {NULL};
  const snt_compile_info info = {.head = SNT_HEAD(compile_info),
                                 .glsl = host_glsl_found() ? host_glsl_compile : NULL,
                                 .glsl_user = &glsl,
                                 .numerics = flags & SAME_RUN     ? SNT_NUMERICS_REPRODUCIBLE
                                             : flags & STRICT_RUN ? SNT_NUMERICS_STRICT
                                             : flags & FAST_RUN   ? SNT_NUMERICS_FAST
                                                                  : SNT_NUMERICS_DEFAULT,
                                 .flags = flags & UNFUSED_RUN ? SNT_COMPILE_UNFUSED : 0};
  if (r == SNT_OK) r = snt_compile(graph, profile, &info, &a->program, diag);
  host_glsl_free(&glsl);
  snt_graph_destroy(graph);
  if (r == SNT_OK) v->kernels = snt_program_kernel_count(a->program);
  a->device = device;
  enter(d, PHASE_DRIVER);
  if (r == SNT_OK) r = snt_exec_create(device, a->program, NULL, &a->exec, diag);
  enter(d, PHASE_FIRST);
  return r;
}

/* A hash of all outputs, in which a NaN is a NaN, whatever its bits. */
static uint64_t bits_of(const ports *all) {
  uint64_t hash = 0;
  for (uint32_t i = 0; i < all->count; i++) {
    const port *p = &all->at[i];
    const uint32_t dtype = (uint32_t)p->info.tensor.dtype, size = ir_dtypes[dtype].bytes;
    for (uint64_t e = 0; p->info.kind == SNT_PORT_OUTPUT && e < p->elements; e++) {
      const double value = ir_dtypes[dtype].is_float ? ir_dtype_load((int32_t)dtype, p->data, e) : 0;
      hash = value != value ? ir_hash64(hash, "NaN", 3) : ir_hash64(hash, (const uint8_t *)p->data + e * size, size);
    }
  }
  return hash | 1;
}

static snt_result run_built(attempt *a, source *s, conform_verdict *v, snt_diag *diag) {
  snt_result r = make_ports(a->program, s, &a->ports) ? SNT_OK : SNT_E_HOST_MEM;
  if (r == SNT_OK) r = upload(a->device, a, diag);
  const snt_run_info run = {.head = SNT_HEAD(run_info),
                            .argument_count = a->ports.count,
                            .arguments = a->arguments,
                            .symbols = s->symbols,
                            .symbol_count = snt_program_symbol_count(a->program)};
  if (r == SNT_OK) r = snt_submit(a->exec, a->stream, &run, &a->event, diag);
  if (r == SNT_OK) r = snt_event_wait(a->event, UINT64_MAX);
  return r == SNT_OK ? download(a, v, diag) : r;
}

static snt_result run_attempt(conform_device *d, const char *text, source *s, uint32_t flags, attempt *a, conform_verdict *v,
                              snt_diag *diag) {
  const snt_result r = build_attempt(d, text, flags, a, v, diag);
  return r == SNT_OK ? run_built(a, s, v, diag) : r;
}

/* What one run made; the program stays for the next. */
static void end_run(attempt *a) {
  snt_event_destroy(a->event);
  for (uint32_t i = 0; i < MAX_PORTS; i++) snt_buffer_destroy(a->buffers[i]);
  snt_stream_destroy(a->stream);
  free_ports(&a->ports);
  free(a->scratch);
}

static void end_attempt(attempt *a) {
  end_run(a);
  snt_exec_destroy(a->exec);
  snt_program_destroy(a->program);
}

/* ---- the verdict ---- */

static void compare_port(const port *p, bool exact, ir_eval_tensor *expected, conform_verdict *v) {
  if (exact) expected->bound = NULL;
  ir_eval_report report;
  ir_eval_compare(expected, p->info.tensor.dtype, p->data, &report);
  const double ratio = report.nan_mismatch ? INFINITY : report.max_ratio;
  if (ratio > v->ratio) v->ratio = ratio;
  if (ratio <= 1 || v->result != CONFORM_PASS) return;
  v->result = CONFORM_FAIL;
  snprintf(v->detail, sizeof v->detail, "%s[%llu]: got %.9g, want %.9g, bound %.3g%s", p->info.name, (unsigned long long)report.worst_index,
           report.got, report.want, report.bound, report.nan_mismatch ? "; NaN on one side" : "");
}

static snt_result hold_against_reference(const conform_graph *graph, uint32_t path, const ports *all, conform_verdict *v, snt_diag *diag) {
  conform_parsed p;
  ir_eval_tensor out[MAX_PORTS];
  const void *inputs[MAX_PORTS];
  snt_result r = conform_parse(&p, graph->text, diag);
  for (uint32_t i = 0; i < all->count; i++) inputs[i] = all->at[i].data;
  const ir_eval_info info = {.symbols = graph->symbols,
                             .inputs = inputs,
                             .fast = path == PATH_FAST,
                             .direct = path == PATH_STRICT || path == PATH_SAME || path == PATH_CUT};
  if (r == SNT_OK) r = ir_eval_reference(&p.graph, &info, &p.arena, out, diag);
  for (uint32_t i = 0; r == SNT_OK && i < p.graph.outputs.count; i++)
    compare_port(&all->at[p.graph.inputs.count + i], graph->exact >> i & 1, &out[i], v);
  conform_forget(&p);
  return r;
}

static void compare_bits(const ports *a, const ports *b, const char *whom, conform_verdict *v) {
  for (uint32_t i = 0; v->result == CONFORM_PASS && i < a->count; i++) {
    const int32_t dtype = a->at[i].info.tensor.dtype;
    const uint32_t size = ir_dtypes[dtype].bytes;
    const uint8_t *x = a->at[i].data, *y = b->at[i].data;
    for (size_t at = 0; v->result == CONFORM_PASS && at + size <= a->at[i].bytes; at += size) {
      if (relation_same_bits(dtype, x + at, y + at)) continue;
      v->result = CONFORM_FAIL;
      snprintf(v->detail, sizeof v->detail, "%s[%zu]: %s differ", a->at[i].info.name, at / size, whom);
    }
  }
}

/* The same program on other inputs, whose results are known from those it gave. */
static snt_result hold_relation(const relation *which, const conform_graph *graph, attempt *first, conform_verdict *v, snt_diag *diag) {
  const relation_case plain = {graph, &first->ports};
  related runs[RELATED_RUNS] = {0};
  attempt again[RELATED_RUNS] = {0};
  const ports *got[RELATED_RUNS] = {&again[0].ports, &again[1].ports};
  relation_at miss;
  snt_result r = SNT_OK;
  const bool applies = which->prepare(&plain, runs);
  for (uint32_t i = 0; r == SNT_OK && applies && i < which->runs; i++) {
    source s = {.graph = graph, .given = &runs[i].ports, .symbols = runs[i].symbols};
    again[i].device = first->device, again[i].program = first->program, again[i].exec = first->exec;
    r = run_built(&again[i], &s, v, diag);
  }
  if (r == SNT_OK && applies && v->result == CONFORM_PASS && relation_differs(which, &plain, runs, got, &miss)) {
    v->result = CONFORM_FAIL;
    snprintf(v->detail, sizeof v->detail, "%s[%llu]: %s", first->ports.at[miss.port].info.name, (unsigned long long)miss.element,
             which->words);
  }
  for (uint32_t i = 0; i < RELATED_RUNS; i++) end_run(&again[i]);
  relation_free(runs);
  return r;
}

static snt_result hold_relations(const conform_graph *graph, attempt *first, conform_verdict *v, snt_diag *diag) {
  snt_result r = SNT_OK;
  for (uint32_t i = 0; r == SNT_OK && v->result == CONFORM_PASS && i < RELATIONS && relation_is_small(&first->ports); i++)
    r = hold_relation(conform_relations[i], graph, first, v, diag);
  return r;
}

static void judge_runs(conform_device *d, const conform_graph *graph, uint32_t path, source s, bool spoils, conform_verdict *v) {
  const uint64_t seed = s.state;
  snt_diag diag = {0};
  attempt first = {.program = NULL}, second = {.program = NULL};
  static const uint32_t path_flags[PATH_COUNT] = {
      [PATH_MASKED] = MASKED_RUN, [PATH_STRICT] = STRICT_RUN, [PATH_SAME] = SAME_RUN, [PATH_FAST] = FAST_RUN, [PATH_CUT] = STRICT_RUN};
  static const struct {
    uint32_t flags;
    const char *whom;
  } again[PATH_COUNT] = {[PATH_STRICT] = {STRICT_RUN | UNFUSED_RUN, "fused and unfused in STRICT"},
                         [PATH_SAME] = {SAME_RUN | INTERP_RUN, "the device and the interpreter in REPRODUCIBLE"},
                         [PATH_CUT] = {STRICT_RUN, "inputs cut in two and whole ones in STRICT"}};
  const uint32_t flags = path_flags[path];
  char cut[CONFORM_TEXT];
  const bool cuts = path == PATH_CUT && conform_cut(graph->text, cut);
  snt_result r = run_attempt(d, cuts ? cut : graph->text, &s, flags, &first, v, &diag);
  if (r == SNT_OK && spoils) ((uint8_t *)first.ports.at[first.ports.count - 1].data)[0] ^= 0x40;
  if (r == SNT_OK) v->bits = bits_of(&first.ports);
  enter(d, PHASE_REFERENCE);
  if (r == SNT_OK) r = hold_against_reference(graph, path, &first.ports, v, &diag);
  enter(d, PHASE_RUN);
  s.state = seed;
  if (r == SNT_OK && again[path].flags) {
    r = run_attempt(d, graph->text, &s, again[path].flags, &second, v, &diag);
    if (r == SNT_OK) compare_bits(&first.ports, &second.ports, again[path].whom, v);
  }
  if (r == SNT_OK && path == PATH_STRICT) r = hold_relations(graph, &first, v, &diag);
  if (r != SNT_OK) {
    v->result = r == SNT_E_UNSUPPORTED ? CONFORM_SKIP : CONFORM_FAIL;
    snprintf(v->detail, sizeof v->detail, "%s: %s", snt_result_text(r), diag.text);
  }
  end_attempt(&first);
  end_attempt(&second);
}

static void judge_timed(conform_device *d, const conform_graph *graph, uint32_t path, source s, bool spoils, conform_verdict *v) {
  struct timespec start, end;
  *v = (conform_verdict){.result = CONFORM_PASS};
  if (path == PATH_MASKED && !d->masked) {
    v->result = CONFORM_SKIP;
    snprintf(v->detail, sizeof v->detail, "the device cannot be opened under vulkan11-min");
    return;
  }
  if (path == PATH_FAST && graph->special) {
    v->result = CONFORM_SKIP;
    snprintf(v->detail, sizeof v->detail, "a minimum or maximum of a NaN may be either operand in FAST");
    return;
  }
  clock_gettime(CLOCK_MONOTONIC, &start);
  s.graph = graph, s.symbols = graph->symbols;
  judge_runs(d, graph, path, s, spoils, v);
  clock_gettime(CLOCK_MONOTONIC, &end);
  v->us = (uint32_t)((end.tv_sec - start.tv_sec) * 1000000 + (end.tv_nsec - start.tv_nsec) / 1000);
}

void conform_judge_graph(conform_device *d, const conform_graph *graph, uint32_t path, uint64_t seed, conform_verdict *v) {
  judge_timed(d, graph, path, (source){.low = -4, .high = 4, .state = seed}, false, v);
}

/* One kernel that would run for hours. */
static const char endless[] = "graph @endless(%x: f32[4096]) {\n  %i: f32[4096,1073741824] = iota axis=1\n"
                              "  %w = broadcast %x, axes=[0], shape=[4096,1073741824]\n  %a = add %i, %w\n  %s = sin %a\n"
                              "  %y = reduce.sum %s, axes=[1]\n  return y=%y\n}\n";

void conform_judge(conform_device *d, const conform_case *c, uint64_t seed, conform_verdict *v) {
  const bool self = c->call == CONFORM_SELF;
  if (self && c->path == SELF_CRASH) raise(SIGKILL);
  conform_graph graph;
  source s = {.state = seed};
  (void)conform_case_graph(c, &graph);
  if (self && c->path == SELF_HANG) snprintf(graph.text, sizeof graph.text, "%s", endless);
  conform_domain(c, &s.low, &s.high);
  judge_timed(d, &graph, self ? PATH_FUSED : c->path, s, self && !(c->path == SELF_FLAKY && d->again), v);
}
