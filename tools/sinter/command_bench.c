/* sinter bench: fused and unfused plans on device buffers, interleaved; whole submissions timed from the host, minimum and median.
   One model is a line, several or a folder are a Markdown table; JSON either way with --json, a line a model. */
#include "tools/sinter/bench.h"
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_MODELS = 512, SERVED_RUNS = 1000000 };

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

static snt_result compare(tool_session *s, snt_stream *stream, const bench_side sides[2], const tool_tensor *tensors, uint32_t count,
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

typedef struct bench_row {
  double best, median, plain, bytes, plain_bytes, flops, worst;
  uint32_t kernels, plain_kernels;
} bench_row;

static void sort_times(bench_side *side) {
  qsort(side->ms, side->runs, sizeof(double), by_value);
  qsort(side->cpu_ms, side->runs, sizeof(double), by_value);
}

static bench_row make_row(bench_side sides[2], double worst) {
  char *text = explain(sides[0].program), *plain = sides[1].exec ? explain(sides[1].program) : NULL;
  const bench_row row = {.best = sides[0].ms[0],
                         .median = sides[0].ms[sides[0].runs / 2],
                         .plain = sides[1].exec ? sides[1].ms[0] : NAN,
                         .bytes = text ? json_number(text, "\"bytes_moved\"") : 0,
                         .plain_bytes = plain ? json_number(plain, "\"bytes_moved\"") : 0,
                         .flops = text ? sum_flops(text) : 0,
                         .worst = worst,
                         .kernels = snt_exec_step_count(sides[0].exec),
                         .plain_kernels = sides[1].exec ? snt_exec_step_count(sides[1].exec) : 0};
  free(text);
  free(plain);
  return row;
}

/* What --no-unfused leaves out is not printed. */
static void print_json(const char *model, const bench_side sides[2], const bench_ready *ready, const bench_row *row) {
  printf("{\"model\": \"%s\", \"min_ms\": %.4f, \"median_ms\": %.4f, \"cpu_ms\": %.4f, \"import_ms\": %.1f, \"compile_ms\": %.1f, "
         "\"build_ms\": %.1f, \"ready_ms\": %.1f, \"ready_cpu_ms\": %.1f, \"kernels\": %u, \"bytes_moved\": %.0f, \"gbps\": %.3f, "
         "\"gflops\": %.3f",
         model, row->best, row->median, sides[0].cpu_ms[0], ready->import_ms, ready->compile_ms, ready->build_ms, bench_ready_ms(ready),
         ready->cpu_ms, row->kernels, row->bytes, row->bytes / row->best / 1e6, row->flops / row->best / 1e6);
  if (sides[1].exec)
    printf(", \"unfused_min_ms\": %.4f, \"unfused_cpu_ms\": %.4f, \"unfused_kernels\": %u, \"bytes_unfused\": %.0f, \"max_diff\": %.3g",
           row->plain, sides[1].cpu_ms[0], row->plain_kernels, row->plain_bytes, row->worst);
  printf("}\n");
}

static void print_line(const char *model, const bench_side sides[2], const bench_ready *ready, const bench_row *row) {
  printf("%s: %u kernels %.3f ms (median %.3f)", model, row->kernels, row->best, row->median);
  if (sides[1].exec) printf(", unfused %u kernels %.3f ms, %.2fx", row->plain_kernels, row->plain, row->plain / row->best);
  printf("; %.1f MB moved, %.2f GB/s, %.2f GFLOP/s; ready in %.0f ms (import %.0f, compile %.0f, build %.0f)", row->bytes / 1e6,
         row->bytes / row->best / 1e6, row->flops / row->best / 1e6, bench_ready_ms(ready), ready->import_ms, ready->compile_ms,
         ready->build_ms);
  if (sides[1].exec) printf("; max difference %.3g", row->worst);
  printf("\n");
}

static const char table_head[] = "| model | kernels | min ms | median ms | unfused kernels | unfused ms | unfused / fused | MB moved | "
                                 "GB/s | GFLOP/s | ready ms | max difference |\n"
                                 "|---|---|---|---|---|---|---|---|---|---|---|---|\n";

static void print_row(const char *model, const bench_side sides[2], const bench_ready *ready, const bench_row *row) {
  const char *name = strrchr(model, '/');
  printf("| %s | %u | %.3f | %.3f | ", name ? name + 1 : model, row->kernels, row->best, row->median);
  if (sides[1].exec) printf("%u | %.3f | %.2f | ", row->plain_kernels, row->plain, row->plain / row->best);
  else printf("- | - | - | ");
  printf("%.1f | %.2f | %.2f | %.0f | ", row->bytes / 1e6, row->bytes / row->best / 1e6, row->flops / row->best / 1e6,
         bench_ready_ms(ready));
  if (sides[1].exec) printf("%.3g |\n", row->worst);
  else printf("- |\n");
}

static void report(const tool_session *s, bool rows, const bench_ready *ready, bench_side sides[2], double worst) {
  for (int i = 0; i < 2; i++)
    if (sides[i].exec) sort_times(&sides[i]);
  const bench_row row = make_row(sides, worst);
  (s->options.json ? print_json : rows ? print_row : print_line)(s->options.model, sides, ready, &row);
  fflush(stdout);
}

static snt_result interleave(tool_session *s, snt_stream *stream, bench_side *sides, uint32_t count, uint32_t runs) {
  const int used = sides[1].exec ? 2 : 1;
  snt_result r = SNT_OK;
  for (uint32_t i = 0; r == SNT_OK && i < runs + 1; i++)
    for (int k = 0; r == SNT_OK && k < used; k++) {
      r = bench_run_side(s, stream, &sides[k], count);
      if (i == 0) sides[k].runs = 0; /* the first is a warm-up */
    }
  return r;
}

static snt_result measure(tool_session *s, bool rows, const bench_ready *ready, tool_tensor *tensors, uint32_t count) {
  bench_side sides[2] = {{.runs = 0}, {.runs = 0}};
  snt_stream *stream = NULL;
  const uint32_t runs = s->options.runs ? s->options.runs : 10;
  const bool both = !s->options.no_unfused && !s->options.serve;
  double worst = 0;
  snt_result r = snt_stream_create(s->device, &stream, &s->diag);
  if (r == SNT_OK) r = bench_open_side(s, stream, false, tensors, count, s->options.serve ? SERVED_RUNS : runs, &sides[0]);
  if (r == SNT_OK && both) r = bench_open_side(s, stream, true, tensors, count, runs, &sides[1]);
  if (r == SNT_OK && s->options.serve) r = bench_serve(s, stream, ready, &sides[0], tensors, count);
  if (r == SNT_OK && !s->options.serve) {
    r = interleave(s, stream, sides, count, runs);
    if (r == SNT_OK && both) r = compare(s, stream, sides, tensors, count, &worst);
    if (r == SNT_OK) report(s, rows, ready, sides, worst);
  }
  for (int i = 0; i < 2; i++) bench_close_side(&sides[i]);
  snt_stream_destroy(stream);
  return r;
}

static int bench_model(const tool_options *options, bool rows) {
  tool_session s;
  tool_tensor tensors[TOOL_MAX_PORTS];
  uint32_t count = 0;
  bench_ready ready;
  snt_result r = tool_open(&s, options, true);
  if (r == SNT_OK) r = bench_make_ready(&s, &ready);
  if (r == SNT_OK && !options->no_unfused && !options->serve) r = tool_need_graph(&s);
  if (r == SNT_OK) r = tool_make_tensors(&s, tensors, &count);
  if (r == SNT_OK) r = measure(&s, rows, &ready, tensors, count);
  const int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&s, r);
  tool_free_tensors(tensors, count);
  tool_close(&s);
  return code;
}

/* ---- several models ---- */

typedef struct model_list {
  char *path[MAX_MODELS];
  uint32_t count;
} model_list;

static bool is_model(const char *name) {
  const char *end = strrchr(name, '.');
  return end && (!strcmp(end, ".onnx") || !strcmp(end, ".snt"));
}

static int by_path(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The models of a folder in the order of their names; anything else is taken for a model. */
static void add_models(model_list *list, const char *path) {
  char inner[4096];
  struct stat found;
  const bool folder = !stat(path, &found) && S_ISDIR(found.st_mode);
  const uint32_t first = list->count;
  DIR *d = folder ? opendir(path) : NULL;
  if (!folder && list->count < MAX_MODELS) list->path[list->count++] = strdup(path);
  for (struct dirent *e = d ? readdir(d) : NULL; e && list->count < MAX_MODELS; e = readdir(d)) {
    if (!is_model(e->d_name) || snprintf(inner, sizeof inner, "%s/%s", path, e->d_name) >= (int)sizeof inner) continue;
    list->path[list->count++] = strdup(inner);
  }
  if (d) closedir(d);
  if (list->count > first) qsort(list->path + first, list->count - first, sizeof *list->path, by_path);
}

/* A model that fails is said and does not stop the others. */
static int bench_all(const tool_options *options, const model_list *list, bool rows) {
  int worst = EXIT_GOOD;
  if (rows && !options->json) fputs(table_head, stdout);
  for (uint32_t i = 0; i < list->count; i++) {
    tool_options one = *options;
    one.model = list->path[i];
    const int code = one.model ? bench_model(&one, rows) : EXIT_FAILED;
    if (code > worst) worst = code;
  }
  return worst;
}

int command_bench(const tool_options *options) {
  model_list list;
  list.count = 0;
  for (uint32_t i = 0; i < options->path_count; i++) add_models(&list, options->paths[i]);
  /* one model by its name is a line */
  const bool rows = list.count != 1 || options->path_count != 1 || strcmp(list.path[0], options->paths[0]) != 0;
  if (!list.count || (options->serve && rows)) {
    fprintf(stderr, "sinter: %s\n", list.count ? "--serve takes one model" : "no model given");
    return EXIT_USAGE;
  }
  const int code = bench_all(options, &list, rows);
  for (uint32_t i = 0; i < list.count; i++) free(list.path[i]);
  return code;
}
