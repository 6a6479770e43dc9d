/* sinter bench: fused and unfused plans on device buffers, interleaved; whole submissions timed from the host, minimum and median.
   One model is a line, several or a folder are a Markdown table; JSON either way with --json, a line a model. */
#include "tools/sinter/bench.h"
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_MODELS = 512, SERVED_RUNS = 1000000, FEWEST_RUNS = 5, MOST_RUNS = 1000, TIMED_MS = 2000 };

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* A number of a JSON text by its key at the top level. */
static double json_number(const char *text, const char *key) {
  const char *at = strstr(text, key);
  return at ? strtod(at + strlen(key) + 2, NULL) : 0;
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

/* Of one plan; counts and rates are known at the hints of the symbols only (NAN: others were asked for). */
typedef struct bench_plan {
  double ms, cpu_ms, launches, bytes, flops;
} bench_plan;
typedef struct bench_row {
  bench_plan fused, plain;
  uint32_t runs;
  double median, worst;
} bench_row;

static void sort_times(bench_side *side) {
  qsort(side->ms, side->runs, sizeof(double), by_value);
  qsort(side->cpu_ms, side->runs, sizeof(double), by_value);
}

static bool is_at_hints(const tool_session *s, const snt_program *p) {
  for (uint32_t i = 0; i < snt_program_symbol_count(p); i++) {
    snt_symbol symbol;
    if (snt_program_symbol(p, i, &symbol) != SNT_OK || s->symbols[i] != symbol.hint) return false;
  }
  return true;
}

static bench_plan plan_of(const tool_session *s, const bench_side *side) {
  bench_plan out = {NAN, NAN, NAN, NAN, NAN};
  if (!side->exec) return out;
  out.ms = side->ms[0], out.cpu_ms = side->cpu_ms[0], out.launches = snt_exec_step_count(side->exec);
  char *text = NULL;
  if (is_at_hints(s, side->program) && tool_explain(side->program, SNT_EXPLAIN_JSON, &text) == SNT_OK) {
    out.launches = json_number(text, "\"launches\"");
    out.bytes = json_number(text, "\"bytes_moved\"");
    out.flops = json_number(text, "\"total_flops\"");
  }
  free(text);
  return out;
}

static void print_json(const char *model, const bench_ready *ready, const bench_row *row) {
  const bench_plan *fused = &row->fused, *plain = &row->plain;
  printf("{\"model\": ");
  host_put_json(stdout, model, SIZE_MAX, "");
  printf(", \"runs\": %u", row->runs);
  const struct {
    const char *key;
    const char *form;
    double value;
  } values[] = {{"min_ms", "%.4f", fused->ms},
                {"median_ms", "%.4f", row->median},
                {"cpu_ms", "%.4f", fused->cpu_ms},
                {"import_ms", "%.1f", ready->import_ms},
                {"compile_ms", "%.1f", ready->compile_ms},
                {"build_ms", "%.1f", ready->build_ms},
                {"ready_ms", "%.1f", bench_ready_ms(ready)},
                {"ready_cpu_ms", "%.1f", ready->cpu_ms},
                {"kernels", "%.0f", fused->launches},
                {"bytes_moved", "%.0f", fused->bytes},
                {"gbps", "%.3f", fused->bytes / fused->ms / 1e6},
                {"gflops", "%.3f", fused->flops / fused->ms / 1e6},
                {"unfused_min_ms", "%.4f", plain->ms},
                {"unfused_cpu_ms", "%.4f", plain->cpu_ms},
                {"unfused_kernels", "%.0f", plain->launches},
                {"bytes_unfused", "%.0f", plain->bytes},
                {"max_diff", "%.3g", row->worst}};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    if (isnan(values[i].value)) continue; /* not known */
    printf(", \"%s\": ", values[i].key);
    printf(values[i].form, values[i].value);
  }
  printf("}\n");
}

static void print_line(const char *model, const bench_ready *ready, const bench_row *row) {
  const bench_plan *fused = &row->fused, *plain = &row->plain;
  printf("%s: %.0f kernel%s %.3f ms (median of %u runs %.3f)", model, fused->launches, tool_plural((uint32_t)fused->launches), fused->ms,
         row->runs, row->median);
  if (!isnan(plain->ms)) printf(", unfused %.0f, %.3f ms, %.2fx", plain->launches, plain->ms, plain->ms / fused->ms);
  if (!isnan(fused->bytes))
    printf("; %.1f MB moved, %.2f GB/s, %.2f GFLOP/s", fused->bytes / 1e6, fused->bytes / fused->ms / 1e6, fused->flops / fused->ms / 1e6);
  printf("; ready in %.0f ms (import %.0f, compile %.0f, build %.0f)", bench_ready_ms(ready), ready->import_ms, ready->compile_ms,
         ready->build_ms);
  if (!isnan(row->worst)) printf("; max difference %.3g", row->worst);
  printf("\n");
}

static void put_cell(const char *form, double value) {
  if (isnan(value)) printf("- | ");
  else printf(form, value);
}

static const char table_head[] = "| model | kernels | min ms | median ms | unfused kernels | unfused ms | unfused / fused | MB moved | "
                                 "GB/s | GFLOP/s | ready ms | max difference |\n"
                                 "|---|---|---|---|---|---|---|---|---|---|---|---|\n";

static void print_row(const char *model, const bench_ready *ready, const bench_row *row) {
  const char *name = strrchr(model, '/');
  const bench_plan *fused = &row->fused, *plain = &row->plain;
  printf("| %s | %.0f | %.3f | %.3f | ", name ? name + 1 : model, fused->launches, fused->ms, row->median);
  put_cell("%.0f | ", plain->launches);
  put_cell("%.3f | ", plain->ms);
  put_cell("%.2f | ", plain->ms / fused->ms);
  put_cell("%.1f | ", fused->bytes / 1e6);
  put_cell("%.2f | ", fused->bytes / fused->ms / 1e6);
  put_cell("%.2f | ", fused->flops / fused->ms / 1e6);
  put_cell("%.0f | ", bench_ready_ms(ready));
  put_cell("%.3g |", row->worst);
  printf("\n");
}

static void report(const tool_session *s, bool rows, const bench_ready *ready, bench_side sides[2], double worst) {
  for (int i = 0; i < 2; i++)
    if (sides[i].exec) sort_times(&sides[i]);
  const bench_row row = {plan_of(s, &sides[0]), plan_of(s, &sides[1]), sides[0].runs, sides[0].ms[sides[0].runs / 2], worst};
  (s->options.json ? print_json : rows ? print_row : print_line)(s->options.model, ready, &row);
  fflush(stdout);
}

/* As many runs as were asked for; else as many as the time allows, so that the least of them says something where other processes take theirs. */
static bool is_enough(const tool_session *s, uint32_t runs, double ms) {
  if (s->options.runs) return runs >= s->options.runs;
  return runs >= MOST_RUNS || (runs >= FEWEST_RUNS && ms >= TIMED_MS);
}

static snt_result interleave(tool_session *s, snt_stream *stream, bench_side *sides, uint32_t count) {
  const uint32_t used = sides[1].exec ? 2 : 1;
  snt_result r = SNT_OK;
  for (uint32_t k = 0; r == SNT_OK && k < used; k++) {
    r = bench_run_side(s, stream, &sides[k], count);
    sides[k].runs = 0; /* the first is a warm-up */
  }
  double ms = 0;
  for (uint32_t i = 0; r == SNT_OK && !is_enough(s, i, ms); i++)
    for (uint32_t k = 0; r == SNT_OK && k < used; k++) {
      r = bench_run_side(s, stream, &sides[k], count);
      ms += r == SNT_OK ? sides[k].ms[i] : 0;
    }
  return r;
}

static snt_result measure(tool_session *s, bool rows, const bench_ready *ready, tool_tensor *tensors, uint32_t count) {
  bench_side sides[2] = {{.runs = 0}, {.runs = 0}};
  snt_stream *stream = NULL;
  const uint32_t runs = s->options.runs ? s->options.runs : MOST_RUNS;
  const bool both = !s->options.no_unfused && !s->options.serve;
  double worst = NAN;
  snt_result r = snt_stream_create(s->device, &stream, &s->diag);
  if (r == SNT_OK) r = bench_open_side(s, stream, false, tensors, count, s->options.serve ? SERVED_RUNS : runs, &sides[0]);
  if (r == SNT_OK && both) r = bench_open_side(s, stream, true, tensors, count, runs, &sides[1]);
  if (r == SNT_OK && s->options.serve) r = bench_serve(s, stream, ready, &sides[0], tensors, count);
  if (r == SNT_OK && !s->options.serve) {
    r = interleave(s, stream, sides, count);
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

static bool add_model(model_list *list, const char *path) {
  if (list->count == MAX_MODELS) return false;
  list->path[list->count++] = strdup(path);
  return true;
}

/* The models of a folder in the order of their names; anything else is taken for a model. */
static bool add_models(model_list *list, const char *path) {
  char inner[4096];
  struct stat found;
  const bool folder = !stat(path, &found) && S_ISDIR(found.st_mode);
  const uint32_t first = list->count;
  DIR *d = folder ? opendir(path) : NULL;
  bool fits = folder || add_model(list, path);
  for (struct dirent *e = d ? readdir(d) : NULL; e && fits; e = readdir(d)) {
    if (!is_model(e->d_name) || snprintf(inner, sizeof inner, "%s/%s", path, e->d_name) >= (int)sizeof inner) continue;
    fits = add_model(list, inner);
  }
  if (d) closedir(d);
  if (list->count > first) qsort(list->path + first, list->count - first, sizeof *list->path, by_path);
  if (!fits) fprintf(stderr, "sinter: %s: more than %d models\n", path, MAX_MODELS);
  else if (list->count == first) fprintf(stderr, "sinter: %s: no model is there\n", path);
  return fits && list->count > first;
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
  bool good = options->path_count > 0;
  if (!good) fprintf(stderr, "sinter: no model given\n");
  for (uint32_t i = 0; good && i < options->path_count; i++) good = add_models(&list, options->paths[i]);
  /* one model by its name is a line */
  const bool rows = good && (list.count != 1 || options->path_count != 1 || strcmp(list.path[0], options->paths[0]) != 0);
  if (options->serve && rows) good = false, fprintf(stderr, "sinter: --serve takes one model\n");
  const int code = good ? bench_all(options, &list, rows) : EXIT_USAGE;
  for (uint32_t i = 0; i < list.count; i++) free(list.path[i]);
  return code;
}
