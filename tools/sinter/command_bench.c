/* sinter bench: fused and unfused plans on device buffers, interleaved; whole submissions timed from the host, minimum and median. */
#include "tools/sinter/tool.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct bench_side {
  snt_program *program;
  snt_exec *exec;
  snt_buffer *buffers[TOOL_MAX_PORTS];
  double *ms, *cpu_ms; /* cpu: of the whole process, drivers' threads included */
  uint32_t runs;
  double compile_ms;
} bench_side;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double now_cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static snt_result make_side(tool_session *s, snt_stream *stream, uint32_t flags, const tool_tensor *tensors, uint32_t count,
                            bench_side *side) {
  const double start = now_ms();
  snt_result r = tool_compile_flags(s, 0, flags, &side->program);
  if (r == SNT_OK) r = snt_exec_create(s->device, side->program, NULL, &side->exec, &s->diag);
  if (r == SNT_OK) r = snt_exec_prepare(side->exec, &s->diag);
  side->compile_ms = now_ms() - start;
  for (uint32_t i = 0; r == SNT_OK && i < count; i++) {
    if (tensors[i].port.kind == SNT_PORT_STATE) continue;
    r = snt_buffer_create(s->device, tensors[i].bytes, &side->buffers[i], &s->diag);
    if (r == SNT_OK) r = snt_buffer_upload(stream, side->buffers[i], 0, tensors[i].data, tensors[i].bytes, &s->diag);
  }
  return r;
}

static snt_result run_side(tool_session *s, snt_stream *stream, bench_side *side, uint32_t count) {
  snt_argument arguments[TOOL_MAX_PORTS] = {{0, 0, NULL, 0, NULL, 0}};
  uint32_t used = 0;
  for (uint32_t i = 0; i < count; i++)
    if (side->buffers[i]) arguments[used++] = (snt_argument){i, 0, side->buffers[i], 0, NULL, 0};
  const snt_run_info info = {.head = SNT_HEAD(run_info),
                             .argument_count = used,
                             .arguments = arguments,
                             .symbols = s->symbols,
                             .symbol_count = snt_program_symbol_count(side->program)};
  const double start = now_ms(), start_cpu = now_cpu_ms();
  snt_result r = snt_submit(side->exec, stream, &info, NULL, &s->diag);
  if (r == SNT_OK) r = snt_stream_wait(stream, &s->diag);
  side->cpu_ms[side->runs] = now_cpu_ms() - start_cpu;
  side->ms[side->runs++] = now_ms() - start;
  return r;
}

static void free_side(bench_side *side) {
  for (uint32_t i = 0; i < TOOL_MAX_PORTS; i++) snt_buffer_destroy(side->buffers[i]);
  snt_exec_destroy(side->exec);
  snt_program_destroy(side->program);
  free(side->ms);
  free(side->cpu_ms);
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* A number of a JSON text by its key at the top level. */
static double json_number(const char *text, const char *key) {
  const char *at = strstr(text, key);
  return at ? strtod(at + strlen(key) + 2, NULL) : 0;
}

static double sum_flops(const char *text) {
  double sum = 0;
  for (const char *at = text; (at = strstr(at, "\"flops\": ")) != NULL; at += 9) sum += strtod(at + 9, NULL);
  return sum;
}

static char *explain(const snt_program *p) {
  size_t length = 0;
  (void)snt_program_explain(p, SNT_EXPLAIN_JSON, NULL, &length);
  char *text = malloc(length + 1);
  if (text && snt_program_explain(p, SNT_EXPLAIN_JSON, text, &length) != SNT_OK) text[0] = 0;
  return text;
}

static snt_result compare(tool_session *s, snt_stream *stream, bench_side sides[2], const tool_tensor *tensors, uint32_t count,
                          double *worst) {
  *worst = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (tensors[i].port.kind != SNT_PORT_OUTPUT || tensors[i].port.tensor.dtype != SNT_F32) continue;
    float *a = malloc(tensors[i].bytes + 1), *b = malloc(tensors[i].bytes + 1);
    snt_result r = a && b ? snt_buffer_download(stream, sides[0].buffers[i], 0, a, tensors[i].bytes, &s->diag) : SNT_E_HOST_MEM;
    if (r == SNT_OK) r = snt_buffer_download(stream, sides[1].buffers[i], 0, b, tensors[i].bytes, &s->diag);
    for (uint64_t k = 0; r == SNT_OK && k < tensors[i].elements; k++)
      if (!(fabs((double)a[k] - b[k]) <= *worst) && !(isnan(a[k]) && isnan(b[k]))) *worst = fabs((double)a[k] - b[k]);
    free(a);
    free(b);
    if (r != SNT_OK) return r;
  }
  return SNT_OK;
}

static void report(const tool_session *s, bench_side sides[2], double worst) {
  char *text = explain(sides[0].program), *plain = explain(sides[1].program);
  for (int i = 0; i < 2; i++) {
    qsort(sides[i].ms, sides[i].runs, sizeof(double), by_value);
    qsort(sides[i].cpu_ms, sides[i].runs, sizeof(double), by_value);
  }
  const double best = sides[0].ms[0], median = sides[0].ms[sides[0].runs / 2], bytes = text ? json_number(text, "\"bytes_moved\"") : 0;
  const double flops = text ? sum_flops(text) : 0;
  const uint32_t kernels = snt_exec_step_count(sides[0].exec);
  if (s->options.json)
    printf(
        "{\"model\": \"%s\", \"min_ms\": %.4f, \"median_ms\": %.4f, \"unfused_min_ms\": %.4f, \"cpu_ms\": %.4f, \"unfused_cpu_ms\": %.4f, "
        "\"compile_ms\": %.1f, \"kernels\": %u, "
        "\"unfused_kernels\": %u, \"bytes_moved\": %.0f, \"bytes_unfused\": %.0f, \"gbps\": %.3f, \"gflops\": %.3f, \"max_diff\": %.3g}\n",
        s->options.model, best, median, sides[1].ms[0], sides[0].cpu_ms[0], sides[1].cpu_ms[0], sides[0].compile_ms, kernels,
        snt_exec_step_count(sides[1].exec), bytes, plain ? json_number(plain, "\"bytes_moved\"") : 0, bytes / best / 1e6,
        flops / best / 1e6, worst);
  else
    printf("%s: %u kernels %.3f ms (median %.3f), unfused %u kernels %.3f ms, %.2fx; %.1f MB moved, %.2f GB/s, %.2f GFLOP/s; compile %.0f "
           "ms; max difference %.3g\n",
           s->options.model, kernels, best, median, snt_exec_step_count(sides[1].exec), sides[1].ms[0], sides[1].ms[0] / best, bytes / 1e6,
           bytes / best / 1e6, flops / best / 1e6, sides[0].compile_ms, worst);
  free(text);
  free(plain);
}

static snt_result measure(tool_session *s, const tool_tensor *tensors, uint32_t count) {
  bench_side sides[2] = {{.runs = 0}, {.runs = 0}};
  snt_stream *stream = NULL;
  const uint32_t runs = s->options.runs ? s->options.runs : 10;
  double worst = 0;
  snt_result r = snt_stream_create(s->device, &stream, &s->diag);
  for (int i = 0; i < 2; i++) {
    sides[i].ms = calloc(runs + 2, sizeof(double));
    sides[i].cpu_ms = calloc(runs + 2, sizeof(double));
    if (!sides[i].ms || !sides[i].cpu_ms) r = SNT_E_HOST_MEM;
  }
  if (r == SNT_OK) r = make_side(s, stream, s->options.compile_flags, tensors, count, &sides[0]);
  if (r == SNT_OK) r = make_side(s, stream, SNT_COMPILE_UNFUSED, tensors, count, &sides[1]);
  for (uint32_t i = 0; r == SNT_OK && i < runs + 1; i++)
    for (int k = 0; r == SNT_OK && k < 2; k++) {
      r = run_side(s, stream, &sides[k], count);
      if (i == 0) sides[k].runs = 0; /* the first is a warm-up */
    }
  if (r == SNT_OK) r = compare(s, stream, sides, tensors, count, &worst);
  if (r == SNT_OK) report(s, sides, worst);
  for (int i = 0; i < 2; i++) free_side(&sides[i]);
  snt_stream_destroy(stream);
  return r;
}

int command_bench(const tool_options *options) {
  tool_session s;
  tool_tensor tensors[TOOL_MAX_PORTS];
  uint32_t count = 0;
  snt_result r = tool_open(&s, options, true);
  if (r == SNT_OK) r = tool_load(&s);
  if (r == SNT_OK) r = tool_need_graph(&s);
  if (r == SNT_OK) r = tool_compile(&s, 0);
  if (r == SNT_OK) r = tool_make_tensors(&s, tensors, &count);
  if (r == SNT_OK) r = measure(&s, tensors, count);
  const int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&s, r);
  tool_free_tensors(tensors, count);
  tool_close(&s);
  return code;
}
