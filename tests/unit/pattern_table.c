/* docs/patterns.md, made from tests/patterns: kernels and bytes of every pattern on four classes of devices, DEFAULT and STRICT, and for each difference
   between classes the numbers of the profile that make it: with those of the other class there is no difference any more. Nothing is run.
     pattern_table            compares the page with what it would be now (TAP)
     pattern_table --bless    writes it */
#include "tests/tap.h"
#include "tools/host/host.h"
#include <dirent.h>
#include <sinter/sinter.h>

static const char page_path[] = "docs/patterns.md", folder[] = "tests/patterns";
enum { CLASSES = 4, MAX_PATTERNS = 256, MAX_LINES = 160, LINE = 160 };
static const struct {
  const char *profile, *title;
} classes[CLASSES] = {{"dgpu", "discrete"}, {"igpu", "integrated"}, {"pocl", "CPU, explicit vectors"}, {"lavapipe", "CPU, lanes"}};

static const char *const titles[] = {
    [1] = "A chain of elementwise operators",
    [2] = "A diamond: one producer, several consumers and results",
    [3] = "A producer computed again in its consumers, where that is cheaper than a round trip, and kept where it is not",
    [4] = "Independent small chains of different shapes in one launch",
    [5] = "Query, key and value projections of one input",
    [6] = "Reductions of something computed: sum f(x), max |x|",
    [7] = "Reductions and what follows them: variance, cross-entropy",
    [8] = "Softmax over any axis, log-softmax",
    [9] = "Layer norm and RMS norm with residual, bias, dropout",
    [10] = "Batch norm in a convolution's weights; group and instance norm as rows",
    [11] = "A product, bias and activation",
    [12] = "A product, bias, residual and layer norm",
    [13] = "Weights dequantised, or operands cast and scaled, on their way into a product",
    [14] = "SwiGLU and GeGLU: two products, gate and product",
    [15] = "Vector times matrix with what follows",
    [16] = "Convolutions with batch norm, ReLU and residuals; Winograd's tiles",
    [17] = "Depthwise and then pointwise convolution",
    [18] = "Attention, its scores never in memory",
    [19] = "A chain of stencils",
    [20] = "A whole post-process, image to image",
    [21] = "Layouts folded into neighbours",
    [22] = "Producers of pooling; global pooling into what reads it",
    [23] = "Embedding, position and layer norm",
    [24] = "Rotary embedding in the load of a product",
    [25] = "Quantise and dequantise pairs; int8 products; u8 to f32",
    [26] = "Half storage, f32 sums",
    [27] = "Dropout from a counter",
    [28] = "Steps of optimisers, in place",
    [29] = "Prefix sums and recurrences with pointwise in and out",
    [30] = "Multiply-adds, where the mode allows",
    [31] = "Cross-entropy over a large vocabulary",
    [32] = "More inputs than a device binds",
    [33] = "No cycles",
    [34] = "No fusion that loses",
    [35] = "A small network where launches dominate",
    [36] = "An encoder layer, forward and backward",
    [37] = "A gradient with its update",
    [38] = "Rows of variable length",
    [39] = "Decoding with quantised weights and a cache",
    [40] = "Scatters",
    [41] = "Loops",
    [42] = "Sorting and choosing",
};
enum { TITLES = sizeof titles / sizeof *titles };

typedef struct result {
  uint32_t kernels;
  double bytes;
} result;
typedef struct text_lines {
  uint32_t count;
  char at[MAX_LINES][LINE];
} text_lines;

static struct {
  snt_context *context;
  snt_profile *profiles[CLASSES];
  text_lines lines[CLASSES]; /* of the profiles' texts */
  char names[MAX_PATTERNS][64];
  uint32_t count, failed;
  bool quiet; /* mixtures of profiles may be devices that cannot be */
  char *page;
  size_t length, capacity;
} t;

static TAP_PRINTF(1, 2) void put(const char *format, ...) {
  va_list list;
  if (t.capacity - t.length < 4096) t.page = realloc(t.page, t.capacity = 2 * t.capacity + 8192);
  if (!t.page) tap_bail_out("no memory");
  va_start(list, format);
  t.length += (size_t)vsnprintf(t.page + t.length, t.capacity - t.length, format, list);
  va_end(list);
}

/* ---- compiling ---- */

static double number_after(const char *text, const char *key) {
  const char *at = strstr(text, key);
  return at ? strtod(at + strlen(key), NULL) : 0;
}

static result compile(snt_graph *graph, const snt_profile *profile, uint32_t numerics) {
  snt_program *program = NULL;
  snt_diag diag = {0};
  result out = {0, 0};
  size_t length = 0;
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .targets = SNT_TARGET_HOST, .numerics = numerics};
  if (snt_compile(graph, profile, &info, &program, &diag) != SNT_OK) {
    if (!t.quiet) tap_diag("%s", diag.text);
    t.failed += !t.quiet;
    return out;
  }
  (void)snt_program_explain(program, SNT_EXPLAIN_JSON, NULL, &length);
  char *text = malloc(length + 1);
  if (text && snt_program_explain(program, SNT_EXPLAIN_JSON, text, &length) == SNT_OK)
    out.bytes = number_after(text, "\"bytes_moved\": "); /* kernels: steps of the plan, in front of it */
  for (const char *at = text; at && (at = strstr(at, "{\"name\": ")) != NULL; at++) out.kernels++;
  for (const char *at = text; at && (at = strstr(at, "\"times\": 0}")) != NULL; at++) out.kernels--; /* for other extents */
  free(text);
  snt_program_destroy(program);
  return out;
}

static snt_graph *read_pattern(const char *name) {
  char path[128];
  void *text = NULL;
  size_t size = 0;
  snt_graph *graph = NULL;
  snt_diag diag = {0};
  snprintf(path, sizeof path, "%s/%s.snt", folder, name);
  if (host_read_file(path, &text, &size, &diag) == SNT_OK && snt_graph_create(t.context, &graph) == SNT_OK)
    (void)snt_graph_parse(graph, text, size, NULL, &diag);
  free(text);
  return graph;
}

/* ---- which numbers of the profile make the difference ---- */

static void read_lines(uint32_t class) {
  size_t length = 0;
  (void)snt_profile_print(t.profiles[class], NULL, &length);
  char *text = malloc(length + 1);
  text_lines *lines = &t.lines[class];
  if (text && snt_profile_print(t.profiles[class], text, &length) == SNT_OK)
    for (char *line = strtok(text, "\n"); line && lines->count < MAX_LINES; line = strtok(NULL, "\n"))
      snprintf(lines->at[lines->count++], LINE, "%s", line);
  free(text);
}

static size_t key_length(const char *line) { return strcspn(line, " ="); }
static const char *line_of(const text_lines *lines, const char *key, size_t length) {
  for (uint32_t i = 0; i < lines->count; i++)
    if (key_length(lines->at[i]) == length && !strncmp(lines->at[i], key, length)) return lines->at[i];
  return NULL;
}

/* On class `of` with the chosen lines of another class in the place of its own. */
static result compile_with(snt_graph *graph, uint32_t of, uint32_t other, const uint8_t *chosen) {
  char text[MAX_LINES * LINE];
  size_t length = 0;
  snt_profile *profile = NULL;
  snt_diag diag = {0};
  for (uint32_t i = 0; i < t.lines[of].count; i++) {
    const char *line = t.lines[of].at[i], *theirs = line_of(&t.lines[other], line, key_length(line));
    length += (size_t)snprintf(text + length, sizeof text - length, "%s\n", chosen[i] && theirs ? theirs : line);
  }
  if (snt_profile_parse(t.context, text, length, &profile, &diag) != SNT_OK) return (result){0, 0};
  t.quiet = true;
  const result r = compile(graph, profile, SNT_NUMERICS_DEFAULT);
  t.quiet = false;
  snt_profile_destroy(profile);
  return r;
}

/* Two plans are the same to a reader of the page. */
static bool is_alike(result a, result b) {
  return a.kernels == b.kernels && fabs(a.bytes - b.bytes) <= 0.02 * (a.bytes > b.bytes ? a.bytes : b.bytes);
}

static bool is_number(uint32_t of, uint32_t other, uint32_t line) {
  const char *own = t.lines[of].at[line], *theirs = line_of(&t.lines[other], own, key_length(own));
  return theirs && strcmp(own, theirs) != 0 && strncmp(own, "name", 4) != 0 && strncmp(own, "target", 6) != 0;
}

typedef struct question {
  snt_graph *graph;
  uint32_t of, other;
  result own, wanted;
} question;
static bool is_answer(const question *q, const uint8_t *chosen) {
  const result r = compile_with(q->graph, q->of, q->other, chosen);
  return q->own.kernels != q->wanted.kernels ? r.kernels == q->wanted.kernels : is_alike(r, q->wanted);
}

/* A single line that makes the difference, else a smallest set; chosen[] is left marked. */
static bool find_reason(const question *q, uint8_t *chosen) {
  const uint32_t of = q->of, other = q->other;
  const uint32_t count = t.lines[of].count;
  memset(chosen, 0, MAX_LINES);
  for (uint32_t i = 0; i < count; i++) {
    if (!is_number(of, other, i)) continue;
    chosen[i] = 1;
    if (is_answer(q, chosen)) return true;
    chosen[i] = 0;
  }
  for (uint32_t i = 0; i < count; i++) chosen[i] = is_number(of, other, i);
  if (!is_answer(q, chosen)) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (!chosen[i]) continue;
    chosen[i] = 0;
    if (!is_answer(q, chosen)) chosen[i] = 1;
  }
  return true;
}

/* "launch_ns = 5000 ns": what stands before a comment. */
static void put_line(const char *line) {
  size_t length = strcspn(line, "#");
  while (length && line[length - 1] == ' ') length--;
  put("`%.*s`", (int)length, line);
}

static void put_bytes(double bytes) {
  if (bytes < 1e6) put("%.1f kB", bytes / 1e3);
  else put("%.2f MB", bytes / 1e6);
}
static void put_plan(result r, const result *beside) {
  put("%u", r.kernels);
  if (r.kernels != beside->kernels) return;
  put(" · ");
  put_bytes(r.bytes);
}

static void put_reason(snt_graph *graph, const char *name, uint32_t of, uint32_t other, const result *r) {
  uint8_t chosen[MAX_LINES];
  put("- `%s`: ", name);
  put_plan(r[of], &r[other]);
  put(" on %s, ", classes[of].title);
  put_plan(r[other], &r[of]);
  put(" on %s. ", classes[other].title);
  const question q = {graph, of, other, r[of], r[other]};
  if (!find_reason(&q, chosen)) {
    put("No numbers of the profile alone: the schedules of the class.\n");
    return;
  }
  put("With ");
  for (uint32_t i = 0, n = 0; i < t.lines[of].count; i++) {
    if (!chosen[i]) continue;
    put("%s", n++ ? ", " : "");
    put_line(line_of(&t.lines[other], t.lines[of].at[i], key_length(t.lines[of].at[i])));
    put(" for ");
    put_line(t.lines[of].at[i]);
  }
  put(" it would be ");
  put_plan(r[other], &r[of]);
  put(".\n");
}

/* ---- the page ---- */

static void put_cell(const result *plain, const result *strict) {
  put(" %u · ", plain->kernels);
  put_bytes(plain->bytes);
  if (strict->kernels != plain->kernels || strict->bytes != plain->bytes) {
    put(" / %u · ", strict->kernels);
    put_bytes(strict->bytes);
  }
  put(" |");
}

typedef struct pattern_row {
  snt_graph *graph;
  result plain[CLASSES], strict[CLASSES];
} pattern_row;

static void put_row(uint32_t pattern, pattern_row *row) {
  row->graph = read_pattern(t.names[pattern]);
  put("| `%s` |", t.names[pattern]);
  for (uint32_t i = 0; i < CLASSES; i++) {
    row->plain[i] = compile(row->graph, t.profiles[i], SNT_NUMERICS_DEFAULT);
    row->strict[i] = compile(row->graph, t.profiles[i], SNT_NUMERICS_STRICT);
    put_cell(&row->plain[i], &row->strict[i]);
  }
  put("\n");
}

/* Against the first class that most agree with. */
static void put_reasons(uint32_t pattern, const pattern_row *row) {
  uint32_t best = 0, most = 0;
  for (uint32_t i = 0; i < CLASSES; i++) {
    uint32_t alike = 0;
    for (uint32_t k = 0; k < CLASSES; k++) alike += is_alike(row->plain[k], row->plain[i]);
    if (alike > most) most = alike, best = i;
  }
  for (uint32_t i = 0; i < CLASSES; i++)
    if (!is_alike(row->plain[i], row->plain[best])) put_reason(row->graph, t.names[pattern], i, best, row->plain);
}

static void put_group(uint32_t number, uint32_t first, uint32_t end) {
  static pattern_row rows[MAX_PATTERNS];
  put("\n## %u. %s\n\n| graph |", number, number < TITLES && titles[number] ? titles[number] : "");
  for (uint32_t i = 0; i < CLASSES; i++) put(" %s |", classes[i].title);
  put("\n|---|");
  for (uint32_t i = 0; i < CLASSES; i++) put("---|");
  put("\n");
  for (uint32_t i = first; i < end; i++) put_row(i, &rows[i]);
  const size_t before = t.length;
  put("\n");
  const size_t empty = t.length;
  for (uint32_t i = first; i < end; i++) put_reasons(i, &rows[i]);
  if (t.length == empty) t.length = before; /* no differences */
  for (uint32_t i = first; i < end; i++) snt_graph_destroy(rows[i].graph);
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

static bool list_patterns(void) {
  DIR *dir = opendir(folder);
  if (!dir) return false;
  for (const struct dirent *e = readdir(dir); e; e = readdir(dir)) {
    const char *dot = strstr(e->d_name, ".snt");
    if (e->d_name[0] != 'p' || !dot || dot[4] || t.count == MAX_PATTERNS) continue;
    snprintf(t.names[t.count++], sizeof t.names[0], "%.*s", (int)(dot - e->d_name), e->d_name);
  }
  closedir(dir);
  qsort(t.names, t.count, sizeof t.names[0], by_name);
  return t.count > 0;
}

static void make_page(void) {
  put("# The patterns\n\nGenerated from `tests/patterns` by `tests/unit/pattern_table.c` (`pattern_table --bless`); a test compares. Each "
      "cell: kernels · bytes "
      "moved, then the same under\nSTRICT where it differs; extents at the hints of their symbols. The classes are the profiles");
  for (uint32_t i = 0; i < CLASSES; i++) put("%s `%s` (%s)", i ? "," : "", classes[i].profile, classes[i].title);
  put(".\nGraphs called `disguise` are the pattern written in another way. That each is correct on every device, fused and unfused, is "
      "what\n"
      "`tests/unit/patterns.c` shows; `sinter explain` says each decision. Pattern 30, multiply-adds, is no fusion of "
      "kernels: `tests/inspect.t`\ncounts them.\n\n"
      "Where classes differ, the numbers that make it were found by putting the other class's numbers into the profile one by one, or "
      "where no single\n"
      "one is enough, all and then as few as possible.\n");
  for (uint32_t first = 0, end; first < t.count; first = end) {
    const uint32_t number = (uint32_t)strtoul(t.names[first] + 1, NULL, 10);
    for (end = first; end < t.count && (uint32_t)strtoul(t.names[end] + 1, NULL, 10) == number;) end++;
    put_group(number, first, end);
  }
}

static void compare_page(void) {
  void *had = NULL;
  size_t size = 0;
  snt_diag diag = {0};
  if (!tap_ok(host_read_file(page_path, &had, &size, &diag) == SNT_OK, "%s is there %s", page_path, diag.text)) return;
  const char *a = had, *b = t.page;
  size_t at = 0, line = 1, start = 0;
  while (at < size && at < t.length && a[at] == b[at])
    if (a[at++] == '\n') line++, start = at;
  if (!tap_ok(size == t.length && at == size, "%s is up to date (pattern_table --bless writes it)", page_path))
    tap_diag("line %zu\n  is     %.*s\n  wanted %.*s", line, (int)strcspn(a + start, "\n"), a + start, (int)strcspn(b + start, "\n"),
             b + start);
  free(had);
}

int main(int argc, char **argv) {
  const bool bless = argc > 1 && !strcmp(argv[1], "--bless");
  tap_begin();
#if defined(__SANITIZE_ADDRESS__)
  if (!bless && !getenv("SNT_TEST_FULL")) {
    tap_skip("thousands of compiles in a build of the sanitizers: with SNT_TEST_FULL");
    return tap_done();
  }
#endif
  if (snt_context_create(NULL, &t.context) != SNT_OK || !list_patterns()) tap_bail_out("no context, or no patterns");
  for (uint32_t i = 0; i < CLASSES; i++) {
    if (!tap_ok(snt_profile_builtin(t.context, classes[i].profile, &t.profiles[i]) == SNT_OK, "profile %s", classes[i].profile))
      return tap_done();
    read_lines(i);
  }
  make_page();
  tap_is_int(t.failed, 0, "every pattern compiles on every class");
  if (bless) tap_ok(host_write_file(page_path, t.page, t.length, NULL) == SNT_OK, "%s written", page_path);
  else compare_page();
  for (uint32_t i = 0; i < CLASSES; i++) snt_profile_destroy(t.profiles[i]);
  snt_context_destroy(t.context);
  free(t.page);
  return tap_done();
}
