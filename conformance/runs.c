/* Files of JSON lines taken apart into runs. A run begins with a line that names suite and device; where that line comes again, what
   follows is another part of the same run, so the parts of --shard are one run when their files are joined. */
#include "conformance/conform.h"
#include "tools/host/host.h"
#include <stdlib.h>
#include <string.h>

static bool begins_run(const char *line) {
  static const char first[] = "{\"suite\": ";
  return !strncmp(line, first, sizeof first - 1);
}

static bool same_line(const char *a, const char *b) {
  const size_t length = strcspn(a, "\n");
  return length == strcspn(b, "\n") && !memcmp(a, b, length);
}

/* Where the part that begins here ends: at the next line that begins one. */
static const char *end_of_part(const char *part) {
  const char *line = part;
  do line += strcspn(line, "\n"), line += *line == '\n';
  while (*line && !begins_run(line));
  return line;
}

static bool append(conform_lines *run, const char *from, size_t size) {
  char *text = realloc(run->text, run->size + size + 1);
  if (!text) return false;
  memcpy(text + run->size, from, size);
  run->text = text, run->size += size;
  text[run->size] = 0;
  return true;
}

static snt_result split(const char *path, const char *text, conform_lines *runs, uint32_t most, uint32_t *count, snt_diag *diag) {
  if (!begins_run(text)) return host_fail(diag, SNT_E_PARSE, "conform", "%s:1: no line that names suite and device", path);
  for (const char *part = text, *end; *part; part = end) {
    uint32_t i = 0;
    end = end_of_part(part);
    while (i < *count && !same_line(runs[i].text, part)) i++;
    if (i == most) return host_fail(diag, SNT_E_LIMIT, "conform", "%s: more runs than there is room for", path);
    if (i == *count) runs[(*count)++] = (conform_lines){.text = NULL};
    if (!append(&runs[i], part, (size_t)(end - part))) return host_fail(diag, SNT_E_HOST_MEM, "conform", "out of memory");
  }
  return SNT_OK;
}

snt_result conform_read_lines(const char *path, conform_lines *runs, uint32_t most, uint32_t *count, snt_diag *diag) {
  void *data;
  size_t size;
  *count = 0;
  snt_result r = host_read_file(path, &data, &size, diag);
  if (r != SNT_OK) return r;
  r = split(path, data, runs, most, count, diag);
  free(data);
  if (r != SNT_OK) conform_free_lines(runs, *count), *count = 0;
  return r;
}

void conform_free_lines(conform_lines *runs, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) free(runs[i].text);
}
