/* sinter bench --serve: a process that stays, so that blocks of runs can be interleaved with those of others (bench/table). */
#include "tools/sinter/bench.h"
#include <stdlib.h>

static snt_result write_first(tool_session *s, snt_stream *stream, const bench_side *side, tool_tensor *tensors, uint32_t count) {
  snt_result r = SNT_OK;
  for (uint32_t i = 0; r == SNT_OK && i < count && s->options.output_count; i++)
    if (tensors[i].port.kind == SNT_PORT_OUTPUT)
      r = snt_buffer_download(stream, side->buffers[i], 0, tensors[i].data, tensors[i].bytes, &s->diag);
  return r == SNT_OK ? tool_write_outputs(s, tensors, count) : r;
}

static snt_result run_block(tool_session *s, snt_stream *stream, bench_side *side, uint32_t count, uint32_t runs) {
  snt_result r = bench_run_side(s, stream, side, count); /* warm again after the others' block */
  side->runs = 0;
  for (uint32_t i = 0; r == SNT_OK && i < runs; i++) r = bench_run_side(s, stream, side, count);
  for (uint32_t i = 0; r == SNT_OK && i < runs; i++) printf("%s%.5f", i ? ", " : "[", side->ms[i]);
  if (r == SNT_OK) printf("]\n");
  fflush(stdout);
  return r;
}

snt_result bench_serve(tool_session *s, snt_stream *stream, const bench_ready *ready, bench_side *side, tool_tensor *tensors,
                       uint32_t count) {
  char line[64];
  snt_result r = bench_run_side(s, stream, side, count);
  if (r == SNT_OK) r = write_first(s, stream, side, tensors, count);
  if (r == SNT_OK)
    printf("{\"ready\": true, \"import_ms\": %.1f, \"compile_ms\": %.1f, \"build_ms\": %.1f, \"ready_ms\": %.1f, \"ready_cpu_ms\": %.1f, "
           "\"kernels\": %u}\n",
           ready->import_ms, ready->compile_ms, ready->build_ms, bench_ready_ms(ready), ready->cpu_ms, snt_exec_step_count(side->exec));
  fflush(stdout);
  while (r == SNT_OK && fgets(line, sizeof line, stdin)) {
    const unsigned long runs = strtoul(line, NULL, 10);
    if (runs < 1 || runs > side->room) return host_fail(&s->diag, SNT_E_ARG, "serve", "1 to %u runs a block", side->room);
    r = run_block(s, stream, side, count, (uint32_t)runs);
  }
  return r;
}
