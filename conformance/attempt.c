/* One program of a graph on one device: its ports with their data, a run of it between guard words, and what its outputs are held against. */
#include "conformance/attempt.h"
#include "tools/host/host.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

void attempt_enter(conform_device *d, uint8_t phase) {
  if (d->phase) *d->phase = phase;
}

/* ---- ports ---- */

static const double specials[] = {NAN, INFINITY, -INFINITY, -0.0, 0};
enum { SPECIAL_EVERY = 41 }; /* a row or two of a small shape has none */

/* A border's zero times an infinite weight is NaN where it is computed: either is right. */
static bool is_weight(const char *name) { return name[0] == 'w' && (!name[1] || name[1] == '.'); } /* also one that cut.c joins */

/* The value of an element, by the port's name (calls.def) and the case's data. */
static double value_of(source *s, const char *name, int32_t dtype) {
  const uint64_t bits = host_random(&s->state);
  const int64_t extent = strncmp(name, "i_", 2) ? 0 : s->symbols[name[2] == 'n' ? 0 : name[2] == 'm' ? 1 : 2];
  if (extent) return (double)(bits % (uint64_t)extent); /* graphs of files may have no such symbol */
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

bool attempt_make_ports(const snt_program *program, source *s, ports *all) {
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

void attempt_free_ports(ports *all) {
  for (uint32_t i = 0; i < all->count && i < MAX_PORTS; i++) free(all->at[i].data), free(all->at[i].after);
}

/* ---- running ---- */

static snt_result attempt_upload(snt_device *device, attempt *a, snt_diag *diag) {
  snt_result r = snt_stream_create(device, &a->stream, diag);
  for (uint32_t i = 0; r == SNT_OK && i < a->ports.count; i++) {
    port *p = &a->ports.at[i];
    a->scratch = realloc(a->scratch, p->bytes + 2 * GUARD);
    memset(a->scratch, POISON, p->bytes + 2 * GUARD);
    memcpy(a->scratch + GUARD, p->data, p->bytes);
    r = snt_buffer_create(device, p->bytes + 2 * GUARD, &a->buffers[i], diag);
    if (r == SNT_OK) r = snt_buffer_upload(a->stream, a->buffers[i], 0, a->scratch, p->bytes + 2 * GUARD, diag);
    if (p->info.kind != SNT_PORT_STATE || !a->holds)
      a->arguments[a->argument_count++] = (snt_argument){.port = i, .buffer = a->buffers[i], .offset = GUARD};
  }
  return r;
}

/* Reads everything back; inputs and guard words must be what they were. */
static snt_result attempt_download(attempt *a, conform_verdict *v, snt_diag *diag) {
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
    else if (p->info.kind == SNT_PORT_STATE && !a->holds && (p->after = malloc(p->bytes + 1)))
      memcpy(p->after, a->scratch + GUARD, p->bytes);
    else if (r == SNT_OK && p->info.kind == SNT_PORT_INPUT && memcmp(p->data, a->scratch + GUARD, p->bytes))
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

snt_result attempt_build(conform_device *d, const char *text, const recipe *how, attempt *a, conform_verdict *v, snt_diag *diag) {
  const uint32_t flags = how->runs;
  snt_device *device = flags & MASKED_RUN ? d->masked : flags & INTERP_RUN ? d->interp : d->device;
  const snt_profile *profile = flags & MASKED_RUN ? d->masked_profile : flags & INTERP_RUN ? d->interp_profile : d->profile;
  snt_graph *graph = NULL;
  attempt_enter(d, PHASE_COMPILE);
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
                                 .flags = how->compile_flags | (flags & UNFUSED_RUN ? SNT_COMPILE_UNFUSED : 0),
                                 .peak_bytes = how->peak_bytes};
  if (r == SNT_OK && how->steer) r = how->steer(graph, how);
  if (r == SNT_OK) r = snt_compile(graph, profile, &info, &a->program, diag);
  host_glsl_free(&glsl);
  snt_graph_destroy(graph);
  if (r == SNT_OK) v->kernels = snt_program_kernel_count(a->program);
  a->device = device;
  attempt_enter(d, PHASE_DRIVER);
  if (r == SNT_OK) r = snt_exec_create(device, a->program, NULL, &a->exec, diag);
  attempt_enter(d, PHASE_FIRST);
  return r;
}

/* A hash of all outputs, in which a NaN is a NaN, whatever its bits. */
uint64_t attempt_bits(const ports *all) {
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

snt_result attempt_run(attempt *a, source *s, conform_verdict *v, snt_diag *diag) {
  snt_result r = attempt_make_ports(a->program, s, &a->ports) ? SNT_OK : SNT_E_HOST_MEM;
  if (r == SNT_OK) r = attempt_upload(a->device, a, diag);
  const snt_run_info run = {.head = SNT_HEAD(run_info),
                            .argument_count = a->argument_count,
                            .arguments = a->arguments,
                            .symbols = s->symbols,
                            .symbol_count = snt_program_symbol_count(a->program)};
  if (r == SNT_OK) r = snt_submit(a->exec, a->stream, &run, &a->event, diag);
  if (r == SNT_OK) r = snt_event_wait(a->event, UINT64_MAX);
  return r == SNT_OK ? attempt_download(a, v, diag) : r;
}

snt_result attempt_make(conform_device *d, const char *text, source *s, const recipe *how, attempt *a, conform_verdict *v, snt_diag *diag) {
  const snt_result r = attempt_build(d, text, how, a, v, diag);
  return r == SNT_OK ? attempt_run(a, s, v, diag) : r;
}

/* What one run made; the program stays for the next. */
void attempt_end_run(attempt *a) {
  snt_event_destroy(a->event);
  for (uint32_t i = 0; i < MAX_PORTS; i++) snt_buffer_destroy(a->buffers[i]);
  snt_stream_destroy(a->stream);
  attempt_free_ports(&a->ports);
  free(a->scratch);
}

void attempt_end(attempt *a) {
  attempt_end_run(a);
  snt_exec_destroy(a->exec);
  snt_program_destroy(a->program);
}

/* ---- the verdict ---- */

void attempt_compare_port(const port *p, bool exact, ir_eval_tensor *expected, conform_verdict *v) {
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

snt_result attempt_hold(const conform_graph *graph, uint32_t path, const ports *all, conform_verdict *v, snt_diag *diag) {
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
    attempt_compare_port(&all->at[p.graph.inputs.count + i], graph->exact >> i & 1, &out[i], v);
  conform_forget(&p);
  return r;
}

static void compare_bytes(const port *p, const void *a, const void *b, const char *whom, conform_verdict *v) {
  const int32_t dtype = p->info.tensor.dtype;
  const uint32_t size = ir_dtypes[dtype].bytes;
  for (size_t at = 0; v->result == CONFORM_PASS && at + size <= p->bytes; at += size) {
    if (relation_same_bits(dtype, (const uint8_t *)a + at, (const uint8_t *)b + at)) continue;
    v->result = CONFORM_FAIL;
    snprintf(v->detail, sizeof v->detail, "%s[%zu]: %s differ", p->info.name, at / size, whom);
  }
}

void attempt_compare_bits(const ports *a, const ports *b, const char *whom, conform_verdict *v) {
  for (uint32_t i = 0; v->result == CONFORM_PASS && i < a->count; i++) {
    const port *x = &a->at[i], *y = &b->at[i];
    compare_bytes(x, x->data, y->data, whom, v);
    if (x->after && y->after) compare_bytes(x, x->after, y->after, whom, v);
  }
}
