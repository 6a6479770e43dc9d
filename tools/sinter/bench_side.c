/* A program on a device with its buffers, run and timed whole: submit to the end of the wait, on device buffers, by the host's clock. */
#include "tools/sinter/bench.h"
#include <stdlib.h>
#include <time.h>

static double ms_of(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

snt_result bench_make_ready(tool_session *s, bench_ready *out) {
  const double start = ms_of(CLOCK_MONOTONIC), start_cpu = ms_of(CLOCK_PROCESS_CPUTIME_ID);
  snt_result r = tool_load(s);
  if (r == SNT_OK) r = tool_tune(s);
  if (r == SNT_OK) r = tool_learn(s);
  const double loaded = ms_of(CLOCK_MONOTONIC);
  if (r == SNT_OK) r = tool_compile(s, 0);
  const double compiled = ms_of(CLOCK_MONOTONIC);
  if (r == SNT_OK) r = snt_exec_create(s->device, s->program, NULL, &s->exec, &s->diag);
  if (r == SNT_OK) r = tool_prepare(s, s->exec, s->options.compile_flags);
  *out = (bench_ready){loaded - start, compiled - loaded, ms_of(CLOCK_MONOTONIC) - compiled, ms_of(CLOCK_PROCESS_CPUTIME_ID) - start_cpu};
  return r;
}

static snt_result open_unfused(tool_session *s, bench_side *side) {
  snt_result r = tool_compile_flags(s, 0, SNT_COMPILE_UNFUSED, &side->own);
  side->program = side->own;
  if (r == SNT_OK) r = snt_exec_create(s->device, side->own, NULL, &side->exec, &s->diag);
  return r == SNT_OK ? tool_prepare(s, side->exec, SNT_COMPILE_UNFUSED) : r;
}

snt_result bench_open_side(tool_session *s, snt_stream *stream, bool unfused, const tool_tensor *tensors, uint32_t count, uint32_t room,
                           bench_side *side) {
  *side = (bench_side){.program = s->program, .exec = s->exec, .room = room};
  side->ms = calloc((size_t)room + 1, sizeof *side->ms);
  side->cpu_ms = calloc((size_t)room + 1, sizeof *side->cpu_ms);
  snt_result r = side->ms && side->cpu_ms ? SNT_OK : SNT_E_HOST_MEM;
  if (r == SNT_OK && unfused) r = open_unfused(s, side);
  for (uint32_t i = 0; r == SNT_OK && i < count; i++) {
    if (tensors[i].port.kind == SNT_PORT_STATE) continue;
    r = snt_buffer_create(s->device, tensors[i].bytes, &side->buffers[i], &s->diag);
    if (r == SNT_OK) r = snt_buffer_upload(stream, side->buffers[i], 0, tensors[i].data, tensors[i].bytes, &s->diag);
  }
  return r;
}

snt_result bench_run_side(tool_session *s, snt_stream *stream, bench_side *side, uint32_t count) {
  snt_argument arguments[TOOL_MAX_PORTS] = {{0, 0, NULL, 0, NULL, 0}};
  uint32_t used = 0;
  for (uint32_t i = 0; i < count; i++)
    if (side->buffers[i]) arguments[used++] = (snt_argument){i, 0, side->buffers[i], 0, NULL, 0};
  const snt_run_info info = {.head = SNT_HEAD(run_info),
                             .argument_count = used,
                             .arguments = arguments,
                             .symbols = s->symbols,
                             .symbol_count = snt_program_symbol_count(side->program)};
  const double start = ms_of(CLOCK_MONOTONIC), start_cpu = ms_of(CLOCK_PROCESS_CPUTIME_ID);
  snt_result r = snt_submit(side->exec, stream, &info, NULL, &s->diag);
  if (r == SNT_OK) r = snt_stream_wait(stream, &s->diag);
  const double cpu = ms_of(CLOCK_PROCESS_CPUTIME_ID) - start_cpu, ms = ms_of(CLOCK_MONOTONIC) - start;
  if (side->runs == side->room) side->runs = 0; /* a caller that does not count */
  side->cpu_ms[side->runs] = cpu;
  side->ms[side->runs++] = ms;
  return r;
}

void bench_close_side(bench_side *side) {
  for (uint32_t i = 0; i < TOOL_MAX_PORTS; i++) snt_buffer_destroy(side->buffers[i]);
  if (side->own) snt_exec_destroy(side->exec);
  snt_program_destroy(side->own);
  free(side->ms);
  free(side->cpu_ms);
}
