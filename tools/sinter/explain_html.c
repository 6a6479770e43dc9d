/* sinter explain --html -o PAGE: one self-contained page. In: a compiled program, or one with an open device, whose kernels are then timed. Out: the
   template explain.html with the data as JSON and the two graphs as SVG, drawn by graphviz where it is (else the page draws them itself, and says so). */
#include "tools/sinter/explain_texts.h"
#include "tools/sinter/tool.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- other programs as filters ---- */

static char *read_all(FILE *f, snt_result *r) {
  if (fseek(f, 0, SEEK_END)) return NULL;
  const long length = ftell(f);
  char *text = length >= 0 ? malloc((size_t)length + 1) : NULL;
  rewind(f);
  if (!text || fread(text, 1, (size_t)length, f) != (size_t)length) {
    if (!text) *r = SNT_E_HOST_MEM;
    free(text);
    return NULL;
  }
  text[length] = 0;
  return text;
}

static int run_child(char *const *argv, FILE *in, FILE *out) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    if (dup2(fileno(in), 0) < 0 || dup2(fileno(out), 1) < 0 || !freopen("/dev/null", "w", stderr)) _exit(127);
    execvp(argv[0], argv);
    _exit(127);
  }
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What the program writes when it reads this; null when it is not here, or fails, and where memory runs out. */
static char *filter(char *const *argv, const void *bytes, size_t size, snt_result *r) {
  FILE *in = tmpfile(), *out = tmpfile();
  char *text = NULL;
  if (in && out && fwrite(bytes, 1, size, in) == size && !fflush(in)) {
    rewind(in);
    if (run_child(argv, in, out) == 0) text = read_all(out, r);
  }
  if (in) fclose(in);
  if (out) fclose(out);
  return text;
}

/* ---- JSON into a page ---- */

/* Inside a script element nothing may look like its end. */
static void put_data(FILE *f, const char *json) {
  for (; *json; json++) {
    if (json[0] == '<' && (json[1] == '/' || json[1] == '!')) fputs("\\u003c", f);
    else fputc(*json, f);
  }
}

static void put_string(FILE *f, const char *text, size_t length) { host_put_json(f, text, length, "<"); }

/* ---- sources ---- */

static void put_spirv(FILE *f, const snt_kernel *k, snt_result *r) {
  char *const argv[] = {"spirv-dis", "--no-color", "--no-header", "-", NULL};
  char *text = filter(argv, k->code, k->code_size, r);
  char words[96];
  snprintf(words, sizeof words, "; %zu words; spirv-dis was not found to show them", k->code_size / 4);
  put_string(f, text ? text : words, text ? strlen(text) : strlen(words));
  free(text);
}

static snt_result put_sources(const tool_session *s, FILE *f) {
  static const struct {
    const char *name;
    uint32_t target;
  } languages[] = {{"OpenCL C", SNT_TARGET_OPENCL}, {"SPIR-V", SNT_TARGET_SPIRV}, {"CUDA C", SNT_TARGET_CUDA}};
  snt_result r = SNT_OK;
  fputs("\"sources\": [", f);
  for (uint32_t i = 0; i < snt_program_kernel_count(s->program); i++) {
    fputs(i ? ",\n{" : "\n{", f);
    for (uint32_t l = 0, put = 0; l < sizeof languages / sizeof *languages; l++) {
      snt_kernel k = {.head = SNT_HEAD(kernel)};
      if (snt_program_kernel(s->program, i, languages[l].target, &k) != SNT_OK || !k.code) continue;
      fprintf(f, "%s\"%s\": ", put++ ? ", " : "", languages[l].name);
      if (languages[l].target == SNT_TARGET_SPIRV) put_spirv(f, &k, &r);
      else put_string(f, k.code, k.code_size);
    }
    fputs("}", f);
  }
  fputs("]", f);
  return r;
}

/* ---- times ---- */

static snt_result put_times(tool_session *s, FILE *f) {
  tool_tensor tensors[TOOL_MAX_PORTS];
  uint32_t count = 0;
  tool_times times = {0};
  snt_program *whole = s->program, *own = NULL;
  snt_result r = s->device ? tool_compile_flags(s, 0, s->options.compile_flags, &own) : SNT_OK; /* for the device, not for reading */
  if (own) s->program = own;
  for (uint32_t i = 0; i < snt_program_symbol_count(s->program); i++) { /* what the estimates are for */
    snt_symbol symbol;
    if (snt_program_symbol(s->program, i, &symbol) == SNT_OK) s->symbols[i] = symbol.hint > 0 ? symbol.hint : symbol.min;
  }
  if (r == SNT_OK && s->device) r = tool_make_tensors(s, tensors, &count);
  const snt_exec_info apart = {.head = SNT_HEAD(exec_info), .flags = SNT_EXEC_APART};
  if (r == SNT_OK && s->device) r = snt_exec_create(s->device, s->program, &apart, &s->exec, &s->diag);
  if (r == SNT_OK && s->device) r = snt_exec_prepare(s->exec, &s->diag);
  if (r == SNT_OK && s->device) r = tool_measure_steps(s, tensors, count, &times);
  fputs("\"measured\": [", f);
  for (uint32_t i = 0; r == SNT_OK && i < times.count; i++)
    fprintf(f, "%s[%u, %.3f]", i ? ", " : "", times.step[i] == UINT32_MAX ? 0 : times.step[i], (double)times.ns[i] / 1e3);
  fputs("]", f);
  if (s->device) tool_free_tensors(tensors, count);
  tool_free_times(&times);
  s->program = whole;
  if (own) {
    snt_exec_destroy(s->exec);
    s->exec = NULL;
    snt_program_destroy(own);
  }
  return r;
}

/* ---- the page ---- */

static snt_result put_all_data(tool_session *s, FILE *f) {
  char *json = NULL, *graphs = NULL;
  const char *model = strrchr(s->options.model, '/') ? strrchr(s->options.model, '/') + 1 : s->options.model;
  snt_result r = tool_explain(s->program, SNT_EXPLAIN_JSON, &json);
  if (r == SNT_OK) r = tool_explain(s->program, SNT_EXPLAIN_GRAPH, &graphs);
  if (r == SNT_OK) {
    fputs("{\"model\": ", f);
    put_string(f, model, strlen(model));
    fputs(", \"device\": ", f);
    put_string(f, s->device && s->options.device ? s->options.device : "", 64);
    fprintf(f, ", \"sinter\": \"sinter %s\", \"runs\": %u,\n\"explain\": ", SNT_VERSION_TEXT, s->options.runs);
    put_data(f, json);
    fputs(",\n\"graphs\": ", f);
    put_data(f, graphs);
    fputs(",\n", f);
    r = put_sources(s, f);
    fputs(",\n", f);
    if (r == SNT_OK) r = put_times(s, f);
    fputs("}\n", f);
  }
  free(json);
  free(graphs);
  return r;
}

static snt_result put_svg(const tool_session *s, uint32_t format, FILE *f) {
  char *const argv[] = {"dot", "-Tsvg", NULL};
  char *dot;
  snt_result r = tool_explain(s->program, format, &dot);
  char *svg = r == SNT_OK ? filter(argv, dot, strlen(dot), &r) : NULL;
  const char *start = svg ? strstr(svg, "<svg") : NULL;
  if (start) fputs(start, f);
  else if (r == SNT_OK) fprintf(stderr, "sinter: graphviz (dot) is not here, or failed: the page draws the graph itself\n");
  free(dot);
  free(svg);
  return r;
}

snt_result tool_write_page(tool_session *s, const char *path) {
  host_output out;
  snt_result r = host_begin_file(&out, path, &s->diag);
  FILE *f = out.file;
  if (!s->options.runs) s->options.runs = 20;
  for (const char *at = explain_texts[0].text; r == SNT_OK && *at;) {
    const char *mark = strchr(at, '@');
    fwrite(at, 1, mark ? (size_t)(mark - at) : strlen(at), f);
    if (!mark) break;
    const size_t word = strcspn(mark + 1, "@");
    if (!strncmp(mark, "@DATA@", 6)) r = put_all_data(s, f);
    else if (!strncmp(mark, "@SVG_BEFORE@", 12)) r = put_svg(s, SNT_EXPLAIN_DOT_BEFORE, f);
    else if (!strncmp(mark, "@SVG_AFTER@", 11)) r = put_svg(s, SNT_EXPLAIN_DOT_AFTER, f);
    else { /* not one of ours: "@media" */ fputc('@', f);
      at = mark + 1;
      continue;
    }
    at = mark + word + 2;
  }
  return host_end_file(&out, r, &s->diag);
}
