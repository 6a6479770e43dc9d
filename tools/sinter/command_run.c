/* sinter run: compile for the device, run once with host memory, check, write outputs, trace. */
#include "tools/sinter/tool.h"
#include <string.h>

static snt_result run_once(tool_session *s, tool_tensor *tensors, uint32_t count) {
  snt_argument arguments[TOOL_MAX_PORTS] = {{0, 0, NULL, 0, NULL, 0}};
  uint32_t used = 0;
  for (uint32_t i = 0; i < count; i++)
    if (tensors[i].port.kind != SNT_PORT_STATE) arguments[used++] = (snt_argument){i, 0, NULL, 0, tensors[i].data, tensors[i].bytes};
  const snt_run_info info = {.head = SNT_HEAD(run_info), .argument_count = used, .arguments = arguments, .symbols = s->symbols, .symbol_count = snt_program_symbol_count(s->program)};
  return snt_run(s->exec, &info, &s->diag);
}

static snt_result write_trace(tool_session *s) {
  /* the plan's steps with the model's estimates laid end to end; measured times come with device buffers (sinter bench) */
  FILE *f = fopen(s->options.trace, "w");
  double at = 0;
  if (!f) return host_fail(&s->diag, SNT_E_ARG, "trace", "cannot write %s", s->options.trace);
  fprintf(f, "{\"traceEvents\": [");
  for (uint32_t i = 0; i < snt_exec_step_count(s->exec); i++) {
    snt_step step = {{0}, NULL, NULL, 0, 0, 0};
    (void)snt_exec_step(s->exec, i, &step);
    fprintf(f, "%s\n{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": %.3f, \"dur\": %.3f}", i ? "," : "", step.name, step.kind, at, (double)step.est_ns / 1e3);
    at += (double)step.est_ns / 1e3;
  }
  fprintf(f, "\n]}\n");
  return fclose(f) ? host_fail(&s->diag, SNT_E_ARG, "trace", "cannot write %s", s->options.trace) : SNT_OK;
}

int command_run(const tool_options *options) {
  tool_session s;
  tool_tensor tensors[TOOL_MAX_PORTS];
  uint32_t count = 0;
  double ratio = 0;
  char where[200] = "";
  snt_result r = tool_open(&s, options, true);
  if (r == SNT_OK) r = tool_load(&s);
  if (r == SNT_OK) r = tool_compile(&s, 0);
  if (r == SNT_OK) r = tool_make_tensors(&s, tensors, &count);
  if (r == SNT_OK) r = snt_exec_create(s.device, s.program, NULL, &s.exec, &s.diag);
  if (r == SNT_OK) r = run_once(&s, tensors, count);
  if (r == SNT_OK && options->check) r = tool_check(&s, tensors, count, &ratio, where, sizeof where);
  if (r == SNT_OK && options->trace) r = write_trace(&s);
  if (r == SNT_OK) r = tool_write_outputs(&s, tensors, count);
  int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&s, r);
  if (r == SNT_OK && options->check) {
    printf("%s: %u kernels, max(error / bound) %.3g (%s)\n", options->model, snt_exec_step_count(s.exec), ratio, where);
    if (!(ratio <= 1)) code = EXIT_MISMATCH;
  }
  tool_free_tensors(tensors, count);
  tool_close(&s);
  return code;
}
