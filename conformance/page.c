/* One self-contained HTML page over any number of runs (files of JSON lines): families by devices, worst ratios, and each case that did not pass
   with its graph. */
#include "conformance/conform.h"
#include "tools/host/host.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_FAMILIES = 256, MAX_RUNS = 64, WORD = 48 };
typedef struct cell {
  uint32_t counts[CONFORM_RESULTS], total;
  double ratio;
} cell;
typedef struct run {
  char *text, device[64], name[128], driver[128];
  uint32_t cases;
} run;
typedef struct page {
  run runs[MAX_RUNS];
  uint32_t run_count, family_count;
  char families[MAX_FAMILIES][WORD];
  cell cells[MAX_FAMILIES][MAX_RUNS];
} page;

bool conform_field(const char *line, const char *key, char *out, size_t size) {
  char wanted[40];
  snprintf(wanted, sizeof wanted, "\"%s\": ", key);
  const char *at = strstr(line, wanted), *end = strchr(line, '\n');
  if (!at || (end && at > end)) return false;
  at += strlen(wanted);
  const bool quoted = *at == '"';
  size_t n = 0;
  for (at += quoted; *at && n + 1 < size && !(quoted ? *at == '"' : strchr(",}", *at) != NULL); at++) {
    unsigned code;
    if (*at != '\\') out[n++] = *at;
    else if (*++at == 'u' && sscanf(at + 1, "%4x", &code) == 1) out[n++] = (char)code, at += 4;
    else if (*at) out[n++] = *at;
    else break;
  }
  out[n] = 0;
  return true;
}

static uint32_t result_of(const char *name) {
  uint32_t r = 0;
  while (r < CONFORM_RESULTS && strcmp(name, conform_result_names[r])) r++;
  return r;
}

static cell *find_cell(page *p, const char *family, uint32_t run_number) {
  uint32_t f = 0;
  while (f < p->family_count && strcmp(p->families[f], family)) f++;
  if (f == MAX_FAMILIES) return NULL;
  if (f == p->family_count) snprintf(p->families[p->family_count++], WORD, "%s", family);
  return &p->cells[f][run_number];
}

static bool count_line(page *p, uint32_t number, const char *line) {
  char family[WORD], result[16], ratio[32];
  run *r = &p->runs[number];
  if (conform_field(line, "suite", result, sizeof result)) {
    return conform_field(line, "device", r->device, sizeof r->device) && conform_field(line, "name", r->name, sizeof r->name) &&
           conform_field(line, "driver", r->driver, sizeof r->driver);
  }
  if (!conform_field(line, "family", family, sizeof family) || !conform_field(line, "result", result, sizeof result)) return false;
  cell *c = find_cell(p, family, number);
  const uint32_t kind = result_of(result);
  if (!c || kind == CONFORM_RESULTS) return false;
  c->counts[kind]++, c->total++, r->cases++;
  if (conform_field(line, "ratio", ratio, sizeof ratio) && atof(ratio) > c->ratio) c->ratio = atof(ratio);
  return true;
}

static snt_result read_run(page *p, const char *path, snt_diag *diag) {
  void *data;
  size_t size;
  snt_result r = host_read_file(path, &data, &size, diag);
  if (r != SNT_OK) return r;
  run *into = &p->runs[p->run_count];
  into->text = data;
  uint32_t number = 0;
  for (char *line = data, *next; *line; line = next) {
    next = line + strcspn(line, "\n");
    const char end = *next;
    *next = 0;
    number++;
    if (*line && !count_line(p, p->run_count, line))
      return host_fail(diag, SNT_E_PARSE, "report", "%s:%u: not a line of a conformance run", path, number);
    *next = end;
    next += end != 0;
  }
  p->run_count++;
  return into->device[0] ? SNT_OK : host_fail(diag, SNT_E_PARSE, "report", "%s: no line names its device", path);
}

/* ---- writing ---- */

static const char head[] =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Sinter conformance</title><style>"
    "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:76rem;padding:0 1rem;color:#1d2733;background:#fbfbfa}"
    "h1{font-weight:650;margin:0 0 .2rem}h2{margin:2.2rem 0 .6rem;font-size:1.15rem}p{color:#536070}"
    "table{border-collapse:separate;border-spacing:2px;font-variant-numeric:tabular-nums}"
    "th{text-align:left;font-weight:600;padding:.25rem .6rem;vertical-align:bottom}td{padding:.2rem "
    ".6rem;border-radius:4px;text-align:right}"
    "td small{color:#536070}.g{background:#dcf1e0}.w{background:#fdf0cf}.b{background:#f9d2cd}.n{background:#eef0f2;color:#8a94a0}"
    "details{margin:.35rem 0;padding:.35rem .7rem;background:#fff;border:1px solid #e1e5e9;border-radius:6px}summary{cursor:pointer}"
    "code,pre{font:13px/1.4 ui-monospace,monospace}pre{background:#f4f5f6;padding:.6rem;overflow:auto}"
    "tbody tr:hover th{background:#eef3f8}</style>\n";

static void put_html(ir_text *t, const char *text) {
  for (; *text; text++) {
    if (*text == '<') ir_text_add(t, "&lt;");
    else if (*text == '&') ir_text_add(t, "&amp;");
    else ir_text_put(t, text, 1);
  }
}

static void put_cell(ir_text *t, const cell *c) {
  const uint32_t ran = c->total - c->counts[CONFORM_SKIP], good = c->counts[CONFORM_PASS];
  const uint32_t excused = c->counts[CONFORM_EXCUSED];
  if (!c->total) ir_text_add(t, "<td class=n>&ndash;");
  else if (!ran) ir_text_format(t, "<td class=n>%u skipped", c->total);
  else
    ir_text_format(t, "<td class=%s>%u/%u <small>%.2g</small>", good == ran ? "g" : good + excused == ran ? "w" : "b", good, ran, c->ratio);
  ir_text_add(t, "</td>");
}

static void put_matrix(ir_text *t, const page *p) {
  ir_text_add(t,
              "<h2>Families by device</h2><p>Passed of run, and the largest error as a part of its bound.</p><table><thead><tr><th></th>");
  for (uint32_t i = 0; i < p->run_count; i++) {
    ir_text_add(t, "<th>");
    put_html(t, p->runs[i].device);
    ir_text_add(t, "</th>");
  }
  ir_text_add(t, "</tr></thead><tbody>\n");
  for (uint32_t f = 0; f < p->family_count; f++) {
    ir_text_format(t, "<tr><th><code>%s</code></th>", p->families[f]);
    for (uint32_t i = 0; i < p->run_count; i++) put_cell(t, &p->cells[f][i]);
    ir_text_add(t, "</tr>\n");
  }
  ir_text_add(t, "</tbody></table>\n");
}

static void put_case(ir_text *t, const char *line) {
  static char id[CONFORM_ID], result[16], detail[2 * CONFORM_DETAIL], graph[CONFORM_TEXT];
  if (!conform_field(line, "result", result, sizeof result) || !strcmp(result, "pass") || !strcmp(result, "skip")) return;
  detail[0] = graph[0] = 0;
  (void)conform_field(line, "id", id, sizeof id), (void)conform_field(line, "detail", detail, sizeof detail),
      (void)conform_field(line, "graph", graph, sizeof graph);
  ir_text_format(t, "<details><summary><b>%s</b> <code>%s</code></summary><p>", result, id);
  put_html(t, detail);
  ir_text_add(t, "</p><pre>");
  put_html(t, graph);
  ir_text_add(t, "</pre></details>\n");
}

static void put_cases(ir_text *t, const run *r) {
  ir_text_add(t, "<h2>");
  put_html(t, r->device);
  ir_text_add(t, "</h2><p>");
  put_html(t, r->name);
  ir_text_add(t, "; driver ");
  put_html(t, r->driver);
  ir_text_format(t, "; %u cases.</p>\n", r->cases);
  for (char *line = r->text, *next; *line; line = next) {
    next = line + strcspn(line, "\n");
    const char end = *next;
    *next = 0;
    put_case(t, line);
    next += end != 0;
  }
}

snt_result conform_write_page(uint32_t count, char *const *paths, const char *out, snt_diag *diag) {
  page *p = calloc(1, sizeof *p);
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  ir_text t;
  ir_text_init(&t, &arena);
  snt_result r = p ? SNT_OK : SNT_E_HOST_MEM;
  for (uint32_t i = 0; r == SNT_OK && i < count; i++) r = read_run(p, paths[i], diag);
  if (r == SNT_OK) {
    ir_text_add(&t, head);
    ir_text_format(&t, "<h1>Sinter conformance</h1><p>%u runs, %u families.</p>\n", p->run_count, p->family_count);
    put_matrix(&t, p);
    for (uint32_t i = 0; i < p->run_count; i++) put_cases(&t, &p->runs[i]);
    r = t.failed ? SNT_E_HOST_MEM : host_write_file(out, t.at, t.length, diag);
  }
  for (uint32_t i = 0; p && i < MAX_RUNS; i++) free(p->runs[i].text);
  free(p);
  ir_arena_free(&arena);
  return r;
}
