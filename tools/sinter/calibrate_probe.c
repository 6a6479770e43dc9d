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

/* Nanoseconds of a submission, of `repeats` that follow each other. */
static snt_result sample(calibration *c, probe *p, uint32_t repeats, double *ns) {
  const snt_run_info info = {.head = SNT_HEAD(run_info), .argument_count = p->port_count, .arguments = p->arguments};
  snt_result r = SNT_OK;
  const double start = clock_ms(c);
  for (uint32_t i = 0; r == SNT_OK && i < repeats; i++) r = snt_submit(p->exec, c->stream, &info, NULL, &c->session.diag);
  if (r == SNT_OK) r = snt_stream_wait(c->stream, &c->session.diag);
  *ns = (clock_ms(c) - start) * 1e6 / repeats / (c->processor_time ? c->facts.units : 1);
  return r;
}

static uint32_t repeats_for(const calibration *c, double ns) {
  const double wanted = c->sample_ns / (ns > 1 ? ns : 1);
  return wanted < 1 ? 1 : wanted > 256 ? 256 : (uint32_t)wanted;
}

/* The least times of the first and of the second places of the blocks: more blocks are run until they say the same. */
enum { LEAST_BLOCKS = 4 };
static bool agree(const double least[2]) { return fabs(least[0] - least[1]) < 0.01 * least[0]; }

snt_result probe_compare(calibration *c, probe *a, probe *b, timing out[2]) {
  probe *const both[2] = {a, b};
  double least[2][2] = {{INFINITY, INFINITY}, {INFINITY, INFINITY}}, ns = 0;
  uint32_t repeats[2];
  snt_result r = SNT_OK;
  for (uint32_t k = 0; k < 2 && r == SNT_OK; k++) {
    r = sample(c, both[k], 1, &ns); /* the first is a warm-up */
    if (r == SNT_OK) r = sample(c, both[k], 1, &ns);
    repeats[k] = repeats_for(c, ns);
  }
  static const uint8_t order[4] = {0, 1, 1, 0};
  for (uint32_t i = 0; i < c->blocks && r == SNT_OK && !(i >= LEAST_BLOCKS && agree(least[0]) && agree(least[1])); i++)
    for (uint32_t k = 0; k < 4 && r == SNT_OK; k++) {
      const uint32_t side = order[k];
      r = sample(c, both[side], repeats[side], &ns);
      if (ns < least[side][k / 2]) least[side][k / 2] = ns;
    }
  for (uint32_t k = 0; k < 2; k++) {
    out[k].ns = fmin(least[k][0], least[k][1]);
    out[k].noise = fabs(least[k][0] - least[k][1]) / (out[k].ns > 0 ? out[k].ns : 1);
  }
  return r;
}
