/* TAP 13 and JSON lines, and what is known to fail: a line `DEVICE FILTER YYYY-MM-DD reason` excuses failing cases of a device whose selector,
   name or driver contains DEVICE and whose id contains FILTER until that day. An excused case that passes is a failure: the line must go; unless
   FILTER is written ~FILTER: some of those cases fail. */
#include "conformance/conform.h"
#include "tools/host/host.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool is_day(const char *text) {
  int year, month, day, end = 0;
  return sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &end) == 3 && end == 10 && month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

bool conform_read_excuses(const char *path, conform_excuse **out, uint32_t *count, snt_diag *diag) {
  void *data;
  size_t size;
  *count = 0;
  if (host_read_file(path, &data, &size, diag) != SNT_OK) return false;
  uint32_t lines = 1, number = 0;
  for (const char *c = data; *c; c++) lines += *c == '\n';
  *out = calloc(lines, sizeof **out);
  bool good = *out != NULL;
  for (char *next, *line = data; good && line && *line; line = next) {
    next = strchr(line, '\n');
    if (next) *next++ = 0;
    number++;
    if (!*line || *line == '#') continue;
    conform_excuse *e = &(*out)[*count];
    good = sscanf(line, "%63s %127s %10[0-9-] %159[^\n]", e->device, e->filter, e->expiry, e->reason) == 4 && is_day(e->expiry);
    if (good) ++*count;
    else (void)host_fail(diag, SNT_E_PARSE, "expectations", "%s:%u: not `DEVICE FILTER YYYY-MM-DD reason`", path, number);
  }
  free(data);
  return good;
}

static const conform_excuse *find_excuse(const conform_report *r, const char *id) {
  char today[16];
  const time_t t = time(NULL);
  strftime(today, sizeof today, "%Y-%m-%d", gmtime(&t));
  for (uint32_t i = 0; i < r->excuse_count; i++) {
    const conform_excuse *e = &r->excuses[i];
    const bool device = strstr(r->device.selector, e->device) || strstr(r->device.name, e->device) || strstr(r->device.driver, e->device);
    if (device && strstr(id, e->filter + (e->filter[0] == '~')) && strcmp(today, e->expiry) <= 0) return e;
  }
  return NULL;
}

static void put_json(FILE *f, const char *key, const char *text) {
  fprintf(f, "\"%s\": ", key);
  host_put_json(f, text, SIZE_MAX, "");
}

void conform_report_device(void *report, const snt_device_info *info, const char *profile) {
  conform_report *r = report;
  r->device = *info;
  snprintf(r->profile, sizeof r->profile, "%s", profile);
  fprintf(r->tap, "# device %s: %s; driver %s; profile %s\n", info->selector, info->name, info->driver, info->profile);
  if (!r->json) return;
  fprintf(r->json, "{\"suite\": \"%s\", \"revision\": \"%s\", \"seed\": %llu, ", SNT_VERSION_TEXT, conform_revision,
          (unsigned long long)r->seed);
  put_json(r->json, "device", info->selector), fputs(", ", r->json);
  put_json(r->json, "name", info->name), fputs(", ", r->json);
  put_json(r->json, "driver", info->driver), fputs(", ", r->json);
  put_json(r->json, "profile", profile), fputs("}\n", r->json); /* what the device can and its limits */
}

/* What the driver was given for a case that went wrong: its beginning, if it is long. */
static void write_source(const conform_report *r, const conform_case *c, const char *graph) {
  ir_arena arena;
  ir_text source;
  ir_arena_init(&arena, NULL);
  ir_text_init(&source, &arena);
  const conform_source_info info = {.profile = r->profile, .graph = graph, .path = c->path};
  if (r->profile[0] && conform_source(&info, &source) && !source.failed) {
    if (source.length >= CONFORM_SOURCE) source.at[CONFORM_SOURCE - 1] = 0;
    fputs(", ", r->json), put_json(r->json, "source", source.at);
  }
  ir_arena_free(&arena);
}

static void write_json(conform_report *r, const char *id, const conform_case *c, const conform_verdict *v) {
  fputc('{', r->json);
  put_json(r->json, "id", id), fputs(", ", r->json);
  put_json(r->json, "family", conform_case_family(c)), fputs(", ", r->json);
  put_json(r->json, "result", conform_result_names[v->result]);
  if (v->ratio < 1e300) fprintf(r->json, ", \"ratio\": %.6g", v->ratio);
  if (v->bits) fprintf(r->json, ", \"bits\": \"%016llx\"", (unsigned long long)v->bits);
  fprintf(r->json, ", \"kernels\": %u, \"us\": %u", v->kernels, v->us);
  char text[CONFORM_TEXT];
  int64_t symbols[3];
  if (v->detail[0]) fputs(", ", r->json), put_json(r->json, "detail", v->detail);
  if (v->result != CONFORM_PASS && conform_case_text(c, text, symbols)) {
    fputs(", ", r->json), put_json(r->json, "graph", text);
    if (v->result != CONFORM_SKIP) write_source(r, c, text);
  }
  fputs("}\n", r->json);
  fflush(r->json); /* of a run that is ended from outside, whole lines are there */
}

void conform_report_case(void *report, const conform_case *c, const conform_verdict *verdict) {
  conform_report *r = report;
  conform_verdict v = *verdict;
  char id[CONFORM_ID];
  conform_case_id(c, id);
  const conform_excuse *excuse = find_excuse(r, id);
  const bool good = v.result == CONFORM_PASS || v.result == CONFORM_SKIP;
  bool pass = good;
  if (excuse && !good) v.result = CONFORM_EXCUSED, pass = true;
  if (excuse && excuse->filter[0] != '~' && v.result == CONFORM_PASS) {
    v.result = CONFORM_FAIL, pass = false;
    snprintf(v.detail, sizeof v.detail, "passes although it is expected to fail: %.120s", excuse->reason);
  }
  r->counts[v.result]++;
  r->failed += !pass;
  if (good && v.ratio > r->worst) r->worst = v.ratio;
  fprintf(r->tap, "%sok %u - %s", pass ? "" : "not ", ++r->number, id);
  if (v.result == CONFORM_SKIP) fprintf(r->tap, " # SKIP %s", v.detail);
  else if (v.result == CONFORM_EXCUSED) fprintf(r->tap, " # TODO until %s: %s", excuse->expiry, excuse->reason);
  fputc('\n', r->tap);
  if (!pass) fprintf(r->tap, "# %s: %s\n", conform_result_names[v.result], v.detail);
  fflush(r->tap);
  if (r->json) write_json(r, id, c, &v);
}
