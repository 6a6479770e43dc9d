/* One self-contained HTML page over any number of runs: families by devices, worst ratios, and each case that did not pass with its graph and its
   kernels. */
#include "conformance/page.h"
#include "tools/host/host.h"
#include <stdlib.h>
#include <string.h>

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

static void put_cell(ir_text *t, const page_cell *c) {
  const uint32_t ran = c->total - c->counts[CONFORM_SKIP], good = c->counts[CONFORM_PASS];
  const uint32_t excused = c->counts[CONFORM_EXCUSED];
  if (!c->total) ir_text_add(t, "<td class=n>&ndash;");
  else if (!ran) ir_text_format(t, "<td class=n>%u skipped", c->total);
  else
    ir_text_format(t, "<td class=%s>%u/%u <small>%.2g</small>", good == ran ? "g" : good + excused == ran ? "w" : "b", good, ran, c->ratio);
  ir_text_add(t, "</td>");
}

/* A line a run: what it ran on, and how it went. */
static void put_summary(ir_text *t, const conform_page *p) {
  ir_text_add(t,
              "<table><thead><tr><th>device<th>driver<th>suite<th>cases<th>passed<th>failed<th>skipped<th>excused</tr></thead><tbody>\n");
  for (uint32_t i = 0; i < p->run_count; i++) {
    uint32_t counts[CONFORM_RESULTS] = {0}, bad = 0;
    for (uint32_t f = 0; f < p->family_count; f++)
      for (uint32_t k = 0; k < CONFORM_RESULTS; k++) counts[k] += p->cells[f][i].counts[k];
    bad = counts[CONFORM_FAIL] + counts[CONFORM_CRASH] + counts[CONFORM_TIMEOUT] + counts[CONFORM_FLAKY];
    ir_text_add(t, "<tr><th><a href=\"#");
    ir_text_format(t, "run%u\">", i);
    put_html(t, p->runs[i].device);
    ir_text_add(t, "</a></th><th>");
    put_html(t, p->runs[i].driver);
    ir_text_add(t, "</th><th>");
    put_html(t, p->runs[i].suite);
    ir_text_format(t, "</th><td>%u<td>%u<td class=%s>%u<td>%u<td>%u</tr>\n", p->runs[i].cases, counts[CONFORM_PASS], bad ? "b" : "g", bad,
                   counts[CONFORM_SKIP], counts[CONFORM_EXCUSED]);
  }
  ir_text_add(t, "</tbody></table>\n");
}

static bool has_failed(const page_cell cells[PAGE_RUNS]) {
  for (uint32_t i = 0; i < PAGE_RUNS; i++)
    if (conform_count_bad(&cells[i])) return true;
  return false;
}

/* Families by name, those first where something failed. */
static void order_families(const conform_page *p, uint32_t order[PAGE_FAMILIES]) {
  for (uint32_t f = 0; f < p->family_count; f++) {
    uint32_t at = f;
    const bool bad = has_failed(p->cells[f]);
    while (at && (bad != has_failed(p->cells[order[at - 1]]) ? bad : strcmp(p->families[order[at - 1]], p->families[f]) > 0))
      order[at] = order[at - 1], at--;
    order[at] = f;
  }
}

static void put_matrix(ir_text *t, const conform_page *p) {
  uint32_t order[PAGE_FAMILIES];
  order_families(p, order);
  ir_text_add(t,
              "<h2>Families by device</h2><p>Passed of run, and the largest error as a part of its bound.</p><table><thead><tr><th></th>");
  for (uint32_t i = 0; i < p->run_count; i++) {
    ir_text_add(t, "<th>");
    put_html(t, p->runs[i].device);
    ir_text_add(t, "</th>");
  }
  ir_text_add(t, "</tr></thead><tbody>\n");
  for (uint32_t f = 0; f < p->family_count; f++) {
    ir_text_format(t, "<tr><th><code>%s</code></th>", p->families[order[f]]);
    for (uint32_t i = 0; i < p->run_count; i++) put_cell(t, &p->cells[order[f]][i]);
    ir_text_add(t, "</tr>\n");
  }
  ir_text_add(t, "</tbody></table>\n");
}

/* Who stands alone, and where. */
static void put_votes(ir_text *t, const conform_page *p) {
  static const char *const words[VOTE_KINDS] = {"alone fails", "alone passes", "is far above the others", "alone has other bits",
                                                "and all others fail"};
  enum { MOST = 200 };
  uint32_t count;
  page_vote *votes = p->run_count > 2 ? conform_vote(p, &count) : NULL;
  if (!votes) return;
  ir_text_format(
      t, "<h2 id=votes>Devices against each other</h2><p>Cases that three or more devices ran and in which one stands alone: %u.</p>\n",
      count);
  for (uint32_t i = 0; i < count && i < MOST; i++) {
    const page_vote *v = &votes[i];
    ir_text_add(t, "<p><b>");
    put_html(t, p->runs[v->odd].device);
    ir_text_format(t, "</b> %s of %u: <code>%.*s</code>", words[v->kind], v->voices, (int)v->length, v->id);
    if (v->kind == VOTE_FAR_ABOVE) ir_text_format(t, " (%.2g of the bound, the others %.2g at most)", v->ratio, v->next);
    if (v->kind == VOTE_PASSES_ALONE && v->alike) ir_text_add(t, ": the others have the same bits");
    if (v->kind == VOTE_ALL_FAIL)
      ir_text_add(t, v->alike ? ", with the same bits: the reference stands alone" : ": what they share is wrong, or the reference");
    ir_text_add(t, "</p>\n");
  }
  if (count > MOST) ir_text_format(t, "<p>.. and %u more.</p>\n", count - MOST);
  free(votes);
}

static void put_case(ir_text *t, const char *line) {
  static char id[CONFORM_ID], result[16], detail[2 * CONFORM_DETAIL], graph[CONFORM_TEXT], source[CONFORM_SOURCE];
  if (!conform_field(line, "result", result, sizeof result) || !strcmp(result, "pass") || !strcmp(result, "skip")) return;
  detail[0] = graph[0] = source[0] = 0;
  (void)conform_field(line, "id", id, sizeof id), (void)conform_field(line, "detail", detail, sizeof detail),
      (void)conform_field(line, "graph", graph, sizeof graph), (void)conform_field(line, "source", source, sizeof source);
  ir_text_format(t, "<details><summary><b>%s</b> <code>%s</code></summary><p>", result, id);
  put_html(t, detail);
  ir_text_add(t, "</p><pre>");
  put_html(t, graph);
  ir_text_add(t, "</pre>");
  if (source[0]) {
    ir_text_add(t, "<details><summary>its kernels</summary><pre>");
    put_html(t, source);
    ir_text_add(t, "</pre></details>");
  }
  ir_text_add(t, "</details>\n");
}

static void put_cases(ir_text *t, const page_run *r, uint32_t number) {
  ir_text_format(t, "<h2 id=run%u>", number);
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

static snt_result write_html(const conform_page *p, const char *out, snt_diag *diag) {
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  ir_text t;
  ir_text_init(&t, &arena);
  ir_text_add(&t, head);
  ir_text_format(&t, "<h1>Sinter conformance</h1><p>%u runs, %u families.</p>\n", p->run_count, p->family_count);
  put_summary(&t, p);
  put_matrix(&t, p);
  put_votes(&t, p);
  for (uint32_t i = 0; i < p->run_count; i++) put_cases(&t, &p->runs[i], i);
  const snt_result r = t.failed ? host_fail(diag, SNT_E_HOST_MEM, "report", "out of memory") : host_write_file(out, t.at, t.length, diag);
  ir_arena_free(&arena);
  return r;
}

snt_result conform_write_page(uint32_t count, char *const *paths, const char *out, snt_diag *diag) {
  const size_t length = strlen(out);
  conform_page *p = conform_read_runs(count, paths, diag);
  if (!p) return SNT_E_PARSE;
  const bool table = length > 3 && !strcmp(out + length - 3, ".md");
  const snt_result r = table ? conform_write_table(p, out, diag) : write_html(p, out, diag);
  conform_free_runs(p);
  return r;
}
