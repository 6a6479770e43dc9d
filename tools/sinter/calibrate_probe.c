/* Probes: a graph's text, compiled for the device, filled with numbers near one, and timed beside another. See calibrate.h. */
#include "tools/sinter/calibrate.h"
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double calibrate_now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

void probe_begin(calibration *c) {
  c->length = 0;
  c->overflow = false;
}

void probe_write(calibration *c, const char *format, ...) {
  va_list list;
  va_start(list, format);
  const int added = vsnprintf(c->text + c->length, sizeof c->text - c->length, format, list);
  va_end(list);
  if (added < 0 || (size_t)added >= sizeof c->text - c->length) c->overflow = true;
  else c->length += (size_t)added;
}

/* ---- inputs: near one, so that chains of operators stay in the range of every type ---- */

static void fill(int32_t dtype, uint64_t elements, void *data) {
  uint32_t seed = 1;
  for (uint64_t i = 0; i < elements; i++) {
    seed = seed * 1664525u + 1013904223u;
    const double near_one = 0.9 + 0.2 * (seed >> 8) / 16777216.0;
    switch (dtype) {
    case SNT_F32: ((float *)data)[i] = (float)near_one; break;
    case SNT_F64: ((double *)data)[i] = near_one; break;
    case SNT_F16: ((uint16_t *)data)[i] = (uint16_t)(0x3C00 - (seed >> 26)); break;
    case SNT_I64: ((int64_t *)data)[i] = (int64_t)(seed % (uint32_t)elements); break; /* of tables: positions */
    default: ((int32_t *)data)[i] = (int32_t)(1 + (seed >> 28)); break;
    }
  }
}

static snt_result give_port(calibration *c, probe *p, uint32_t port) {
  tool_session *s = &c->session;
  snt_port info = {.head = {SNT_TYPE_port, sizeof info, NULL}};
  int64_t dims[SNT_MAX_RANK];
  uint64_t elements = 1;
  snt_result r = snt_program_port(p->program, port, &info);
  if (r == SNT_OK) r = snt_program_port_dims(p->program, port, NULL, dims);
  for (uint32_t i = 0; r == SNT_OK && i < info.tensor.rank; i++) elements *= (uint64_t)dims[i];
  const uint64_t bytes = elements * snt_dtype_size(info.tensor.dtype);
  if (r == SNT_OK) r = snt_buffer_create(s->device, bytes, &p->buffers[port], &s->diag);
  void *data = r == SNT_OK ? malloc(bytes + 8) : NULL;
  if (r == SNT_OK && !data) r = SNT_E_HOST_MEM;
  if (r == SNT_OK) fill(info.tensor.dtype, elements, data);
  if (r == SNT_OK) r = snt_buffer_upload(c->stream, p->buffers[port], 0, data, bytes, &s->diag);
  free(data);
  p->arguments[port] = (snt_argument){.port = port, .buffer = p->buffers[port], .bytes = bytes};
  return r;
}

snt_result probe_make(calibration *c, uint32_t flags, uint32_t kernels, probe *out) {
  tool_session *s = &c->session;
  *out = (probe){0};
  if (c->overflow) return SNT_E_HOST_MEM;
  snt_graph_destroy(s->graph);
  s->graph = NULL;
  snt_result r = snt_graph_create(s->context, &s->graph);
  if (r == SNT_OK) r = snt_graph_parse(s->graph, c->text, c->length, NULL, &s->diag);
  if (r == SNT_OK) r = tool_compile_flags(s, 0, flags, &out->program);
  if (r == SNT_OK)
    r = snt_exec_create(s->device, out->program, NULL, &out->exec, &s->diag); /* as programs run: a launch may go through several kernels */
  if (r == SNT_OK) r = snt_exec_prepare(out->exec, &s->diag);
  if (r == SNT_OK) {
    out->kernels = snt_exec_step_count(out->exec);
    out->port_count = snt_program_port_count(out->program);
    if (out->port_count > PROBE_PORTS || (kernels && out->kernels != kernels)) r = SNT_E_UNSUPPORTED;
  }
  for (uint32_t i = 0; r == SNT_OK && i < out->port_count; i++) r = give_port(c, out, i);
  if (r != SNT_OK) probe_free(out);
  c->full |= r == SNT_E_HOST_MEM;
  return r;
}

void probe_free(probe *p) {
  for (uint32_t i = 0; i < PROBE_PORTS; i++) snt_buffer_destroy(p->buffers[i]);
  snt_exec_destroy(p->exec);
  snt_program_destroy(p->program);
  *p = (probe){0};
}

/* ---- timing ---- */

static double clock_ms(const calibration *c) {
  struct timespec t;
  if (!c->processor_time) return calibrate_now_ms();
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static snt_result submit(calibration *c, const probe *p, uint32_t times) {
  const snt_run_info info = {.head = SNT_HEAD(run_info), .argument_count = p->port_count, .arguments = p->arguments};
  snt_result r = SNT_OK;
  for (uint32_t i = 0; r == SNT_OK && i < times; i++) r = snt_submit(p->exec, c->stream, &info, NULL, &c->session.diag);
  return r;
}

/* How often a side of a comparison is submitted, behind how many covers; `alone`: what those take. */
typedef struct side {
  probe *probe;
  uint32_t repeats, covers;
  double alone, handed; /* handed: nanoseconds in which the host had handed all over */
} side;

/* Nanoseconds of all its submissions, which follow each other. */
static snt_result sample(calibration *c, side *s, uint32_t repeats, double *ns) {
  const double start = clock_ms(c);
  snt_result r = submit(c, &c->cover, s->covers);
  if (r == SNT_OK) r = submit(c, s->probe, repeats);
  s->handed = (clock_ms(c) - start) * 1e6;
  if (r == SNT_OK) r = snt_stream_wait(c->stream, &c->session.diag);
  *ns = (clock_ms(c) - start) * 1e6 / (c->processor_time ? c->facts.units : 1);
  return r;
}

static uint32_t repeats_for(const calibration *c, const probe *p, double ns) {
  enum { MOST = 256, MOST_COVERED = 32, MOST_KERNELS = 512 }; /* a queue holds no more before it makes the host wait */
  const double wanted = c->sample_ns / (ns > 1 ? ns : 1);
  double most = c->cover.exec ? MOST_COVERED : MOST;
  if (c->cover.exec && most * p->kernels > MOST_KERNELS) most = (double)MOST_KERNELS / p->kernels;
  return wanted < 1 || most < 1 ? 1 : wanted > most ? (uint32_t)most : (uint32_t)wanted;
}

static snt_result find_repeats(calibration *c, side *s) {
  double ns = 0;
  snt_result r = sample(c, s, 1, &ns); /* the first is a warm-up */
  if (r == SNT_OK) r = sample(c, s, 1, &ns);
  s->repeats = repeats_for(c, s->probe, ns);
  if (!c->cover.exec || r != SNT_OK) return r;
  s->covers = 1;
  r = sample(c, s, s->repeats, &ns);
  s->covers += (uint32_t)(1.5 * s->handed / c->cover_ns);
  return r;
}

static snt_result sample_alone(calibration *c, side *s) {
  double ns = 0;
  const snt_result r = s->covers ? sample(c, s, 0, &ns) : SNT_OK;
  s->alone = fmin(s->alone, ns);
  return r;
}

/* The least times of the first and of the second places of the blocks: more blocks are run until they say the same. */
enum { LEAST_BLOCKS = 4 };
static double own_of(const side *s, double least) { return (least - s->alone) / s->repeats; }
static double apart(const side *s, const double least[2]) {
  const double own = own_of(s, fmin(least[0], least[1]));
  return own > 0 ? fabs(least[0] - least[1]) / s->repeats / own : 1;
}

snt_result probe_compare(calibration *c, probe *a, probe *b, timing out[2]) {
  side sides[2] = {{.probe = a, .alone = INFINITY}, {.probe = b, .alone = INFINITY}};
  double least[2][2] = {{INFINITY, INFINITY}, {INFINITY, INFINITY}}, ns = 0;
  snt_result r = SNT_OK;
  for (uint32_t k = 0; k < 2 && r == SNT_OK; k++) r = find_repeats(c, &sides[k]);
  static const uint8_t order[4] = {0, 1, 1, 0};
  for (uint32_t i = 0; i < c->blocks && r == SNT_OK; i++) {
    for (uint32_t k = 0; k < 2 && r == SNT_OK; k++) r = sample_alone(c, &sides[k]);
    for (uint32_t k = 0; k < 4 && r == SNT_OK; k++) {
      side *s = &sides[order[k]];
      r = sample(c, s, s->repeats, &ns);
      if (ns < least[order[k]][k / 2]) least[order[k]][k / 2] = ns;
    }
    if (i + 1 >= LEAST_BLOCKS && apart(&sides[0], least[0]) < 0.01 && apart(&sides[1], least[1]) < 0.01) break;
  }
  for (uint32_t k = 0; k < 2; k++)
    out[k] = (timing){fmax(own_of(&sides[k], fmin(least[k][0], least[k][1])), 0), apart(&sides[k], least[k])};
  return r;
}

static snt_result make_cover(calibration *c, uint32_t elements, probe *out) {
  probe_begin(c);
  probe_write(c, "graph @cover(%%x: f32[%u]) {\n  %%y = sub %%x, 0x1.8p0\n  return y=%%y\n}\n", elements);
  return probe_make(c, 0, 1, out);
}

void probe_cover(calibration *c) {
  enum { LEAST = 1 << 16, MOST = 1 << 26, WARM = 3, LONG_NS = 100000 };
  for (uint32_t elements = LEAST; elements <= MOST && c->cover_ns < LONG_NS; elements *= 4) {
    probe cover = {0};
    if (make_cover(c, elements, &cover) != SNT_OK) return; /* the one before it will do */
    side s = {.probe = &cover};
    double ns = 0, least = INFINITY;
    for (uint32_t i = 0; i < WARM; i++)
      if (sample(c, &s, 1, &ns) == SNT_OK) least = fmin(least, ns);
    probe_free(&c->cover);
    c->cover = cover, c->cover_ns = least;
  }
}
