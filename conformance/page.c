/* Any number of runs read back from their files of JSON lines: families by devices, with counts and the largest ratios. */
#include "conformance/page.h"
#include "tools/host/host.h"
#include <stdlib.h>
#include <string.h>

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

static page_cell *find_cell(conform_page *p, const char *family, uint32_t run_number) {
  uint32_t f = 0;
  while (f < p->family_count && strcmp(p->families[f], family)) f++;
  if (f == PAGE_FAMILIES) return NULL;
  if (f == p->family_count) {
    snprintf(p->families[p->family_count++], PAGE_WORD, "%s", family);
    for (uint32_t i = 0; i < PAGE_RUNS; i++)
      for (uint32_t k = 0; k < PATH_COUNT; k++) p->cells[f][i].of_path[k] = -1;
  }
  return &p->cells[f][run_number];
}

/* The path is the last word of an id. */
static uint32_t path_of(const char *id) {
  uint32_t path = 0;
  const char *word = strrchr(id, '.');
  while (word && path < PATH_COUNT && strcmp(word + 1, conform_path_names[path])) path++;
  return path;
}

static void count_path(page_run *r, page_cell *c, const char *line, uint32_t kind, double ratio) {
  char id[CONFORM_ID];
  if (!conform_field(line, "id", id, sizeof id) || kind == CONFORM_SKIP) return;
  const uint32_t path = path_of(id);
  if (path == PATH_COUNT) return;
  r->ran[path]++;
  r->passed[path] += kind == CONFORM_PASS;
  if (ratio > c->of_path[path]) c->of_path[path] = ratio;
}

static bool count_line(conform_page *p, uint32_t number, const char *line) {
  char family[PAGE_WORD], result[16], ratio[32], revision[64] = "unknown";
  page_run *r = &p->runs[number];
  if (conform_field(line, "suite", result, sizeof result)) {
    (void)conform_field(line, "revision", revision, sizeof revision); /* runs of before it was told have none */
    snprintf(r->suite, sizeof r->suite, "%s, %s", result, revision);
    return conform_field(line, "device", r->device, sizeof r->device) && conform_field(line, "name", r->name, sizeof r->name) &&
           conform_field(line, "driver", r->driver, sizeof r->driver);
  }
  if (!conform_field(line, "family", family, sizeof family) || !conform_field(line, "result", result, sizeof result)) return false;
  page_cell *c = find_cell(p, family, number);
  const uint32_t kind = result_of(result);
  if (!c || kind == CONFORM_RESULTS) return false;
  c->counts[kind]++, c->total++, r->cases++;
  const double most = conform_field(line, "ratio", ratio, sizeof ratio) ? atof(ratio) : 0;
  if (most > c->ratio) c->ratio = most;
  count_path(r, c, line, kind, most);
  return true;
}

static snt_result count_run(conform_page *p, uint32_t run, const char *path, snt_diag *diag) {
  uint32_t number = 0;
  for (char *line = p->runs[run].text, *next; *line; line = next) {
    next = line + strcspn(line, "\n");
    const char end = *next;
    *next = 0;
    number++;
    if (*line && !count_line(p, run, line))
      return host_fail(diag, SNT_E_PARSE, "report", "%s: line %u of the run of %s is not a line of a conformance run", path, number,
                       p->runs[run].device);
    *next = end;
    next += end != 0;
  }
  return SNT_OK;
}

static snt_result read_file(conform_page *p, const char *path, snt_diag *diag) {
  conform_lines lines[PAGE_RUNS];
  uint32_t count;
  snt_result r = conform_read_lines(path, lines, PAGE_RUNS - p->run_count, &count, diag);
  for (uint32_t i = 0; i < count; i++) {
    p->runs[p->run_count].text = lines[i].text;
    if (r == SNT_OK) r = count_run(p, p->run_count, path, diag);
    p->run_count++;
  }
  return r;
}

void conform_free_runs(conform_page *p) {
  for (uint32_t i = 0; p && i < PAGE_RUNS; i++) free(p->runs[i].text);
  free(p);
}

conform_page *conform_read_runs(uint32_t count, char *const *paths, snt_diag *diag) {
  conform_page *p = calloc(1, sizeof *p);
  snt_result r = p ? SNT_OK : host_fail(diag, SNT_E_HOST_MEM, "report", "out of memory");
  for (uint32_t i = 0; r == SNT_OK && i < count; i++) r = read_file(p, paths[i], diag);
  if (r == SNT_OK) return p;
  conform_free_runs(p);
  return NULL;
}

uint32_t conform_count_bad(const page_cell *c) {
  return c->counts[CONFORM_FAIL] + c->counts[CONFORM_CRASH] + c->counts[CONFORM_TIMEOUT] + c->counts[CONFORM_FLAKY];
}
