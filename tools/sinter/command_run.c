/* sinter run: compile for the device, run once with host memory, check, write outputs, trace. */
#include "tools/sinter/tool.h"
#include <stdlib.h>

static snt_result run_once(tool_session *s, tool_tensor *tensors, uint32_t count) {
  snt_argument arguments[TOOL_MAX_PORTS] = {{0, 0, NULL, 0, NULL, 0}};
  uint32_t used = 0;
  for (uint32_t i = 0; i < count; i++)
    if (tensors[i].port.kind != SNT_PORT_STATE) arguments[used++] = (snt_argument){i, 0, NULL, 0, tensors[i].data, tensors[i].bytes};
  const snt_run_info info = {.head = SNT_HEAD(run_info),
                             .argument_count = used,
                             .arguments = arguments,
                             .symbols = s->symbols,
                             .symbol_count = snt_program_symbol_count(s->program)};
  return snt_run(s->exec, &info, &s->diag);
}

/* ---- --trace: the same run on device buffers, each kernel with the time the device took, the least of --runs ---- */

static snt_result measure_once(tool_session *s, snt_stream *stream, const snt_run_info *info, uint32_t count, uint64_t *ns) {
  snt_event *event = NULL;
  snt_result r = snt_submit(s->exec, stream, info, &event, &s->diag);
  if (r == SNT_OK) r = snt_event_wait(event, UINT64_MAX);
  if (r == SNT_OK) r = snt_event_timings(event, &count, ns);
  snt_event_destroy(event);
  return r;
}

static snt_result measure_least(tool_session *s, snt_stream *stream, const snt_run_info *info, tool_times *out) {
  uint64_t *again = calloc(out->count + 1, sizeof *again);
  snt_result r = again ? measure_once(s, stream, info, out->count, out->ns) : SNT_E_HOST_MEM;
  for (uint32_t run = 1; r == SNT_OK && run < s->options.runs; run++) {
    r = measure_once(s, stream, info, out->count, again);
    for (uint32_t i = 0; r == SNT_OK && i < out->count; i++)
      if (again[i] < out->ns[i]) out->ns[i] = again[i];
  }
  free(again);
  return r;
}

static snt_result find_steps(tool_session *s, const snt_run_info *info, tool_times *out) {
  snt_result r = snt_exec_steps_taken(s->exec, info, &out->count, NULL);
  out->step = calloc(out->count + 1, sizeof *out->step);
  out->ns = calloc(out->count + 1, sizeof *out->ns);
  if (r == SNT_OK && (!out->step || !out->ns)) r = SNT_E_HOST_MEM;
  if (r == SNT_OK && out->count) return snt_exec_steps_taken(s->exec, info, &out->count, out->step);
  if (r == SNT_OK) out->step[out->count++] = UINT32_MAX;
  return r;
}

void tool_free_times(tool_times *t) {
  free(t->step);
  free(t->ns);
}

snt_result tool_measure_steps(tool_session *s, const tool_tensor *tensors, uint32_t count, tool_times *out) {
  snt_argument arguments[TOOL_MAX_PORTS] = {{0, 0, NULL, 0, NULL, 0}};
  snt_stream *stream = NULL;
  uint32_t used = 0;
  *out = (tool_times){0};
  snt_result r = snt_stream_create(s->device, &stream, &s->diag);
  for (uint32_t i = 0; r == SNT_OK && i < count; i++) {
    if (tensors[i].port.kind == SNT_PORT_STATE) continue;
    snt_argument *a = &arguments[used++];
    a->port = i;
    r = snt_buffer_create(s->device, tensors[i].bytes, &a->buffer, &s->diag);
    if (r == SNT_OK) r = snt_buffer_upload(stream, a->buffer, 0, tensors[i].data, tensors[i].bytes, &s->diag);
  }
  const snt_run_info info = {.head = SNT_HEAD(run_info),
                             .argument_count = used,
                             .arguments = arguments,
                             .symbols = s->symbols,
                             .symbol_count = snt_program_symbol_count(s->program)};
  if (r == SNT_OK) r = find_steps(s, &info, out);
  if (r == SNT_OK) r = measure_least(s, stream, &info, out);
  for (uint32_t i = 0; i < used; i++) snt_buffer_destroy(arguments[i].buffer);
  snt_stream_destroy(stream);
  return r;
}

static void put_events(const tool_session *s, const tool_times *t, FILE *f) {
  double at = 0;
  fprintf(f, "{\"traceEvents\": [");
  for (uint32_t i = 0; i < t->count; i++) {
    snt_step step = {{0}, "host", "graph", 0, 0, 0};
    if (t->step[i] != UINT32_MAX) (void)snt_exec_step(s->exec, t->step[i], &step);
    fprintf(f,
            "%s\n{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": %.3f, \"dur\": %.3f, \"args\": "
            "{\"step\": %u, \"estimate_us\": %.3f}}",
            i ? "," : "", step.name, step.kind, at, (double)t->ns[i] / 1e3, t->step[i] == UINT32_MAX ? 0 : t->step[i],
            (double)step.est_ns / 1e3);
    at += (double)t->ns[i] / 1e3;
  }
  fprintf(f, "\n]}\n");
}

static snt_result write_trace(tool_session *s, const tool_tensor *tensors, uint32_t count) {
  tool_times times;
  snt_result r = tool_measure_steps(s, tensors, count, &times);
  host_output out;
  if (r == SNT_OK) {
    r = host_begin_file(&out, s->options.trace, &s->diag);
    if (r == SNT_OK) put_events(s, &times, out.file);
    r = host_end_file(&out, r, &s->diag);
  }
  tool_free_times(&times);
  return r;
}

int command_run(const tool_options *options) {
  tool_session s;
  tool_tensor tensors[TOOL_MAX_PORTS];
  uint32_t count = 0;
  double ratio = 0;
  char where[200] = "";
  snt_result r = tool_open(&s, options, true);
  if (r == SNT_OK) r = tool_load(&s);
  if (r == SNT_OK && options->check) r = tool_need_graph(&s);
  if (r == SNT_OK) r = tool_tune(&s);
  if (r == SNT_OK) r = tool_learn(&s);
  if (r == SNT_OK) r = tool_compile(&s, 0);
  if (r == SNT_OK) r = tool_make_tensors(&s, tensors, &count);
  const snt_exec_info apart = {.head = SNT_HEAD(exec_info), .flags = SNT_EXEC_APART}; /* a trace tells kernels apart */
  if (r == SNT_OK) r = snt_exec_create(s.device, s.program, s.options.trace ? &apart : NULL, &s.exec, &s.diag);
  if (r == SNT_OK) r = tool_prepare(&s, s.exec, options->compile_flags);
  if (r == SNT_OK) r = run_once(&s, tensors, count);
  if (r == SNT_OK && options->check) r = tool_check(&s, tensors, count, &ratio, where, sizeof where);
  if (r == SNT_OK && options->trace) r = write_trace(&s, tensors, count);
  if (r == SNT_OK) r = tool_write_outputs(&s, tensors, count);
  if (r == SNT_OK && !options->check && !options->trace && !options->output_count && !options->quiet) tool_print_outputs(tensors, count);
  int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&s, r);
  if (r == SNT_OK && options->check) {
    printf("%s: %u kernel%s, max(error / bound) %.3g (%s)\n", options->model, snt_exec_step_count(s.exec),
           tool_plural(snt_exec_step_count(s.exec)), ratio, where);
    if (!(ratio <= 1)) code = EXIT_MISMATCH;
  }
  tool_free_tensors(tensors, count);
  tool_close(&s);
  return code;
}
