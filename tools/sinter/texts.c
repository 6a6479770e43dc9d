/* Texts that entry points write in two calls, the first of which says how long: as strings, for the caller to free. In: what is printed. Out: the string; null,
   and why, where there is none. */
#include "tools/sinter/tool.h"
#include <stdlib.h>

typedef snt_result (*text_printer)(const void *what, uint32_t format, char *text, size_t *length);

static snt_result take_text(text_printer print, const void *what, uint32_t format, char **out) {
  size_t length = 0;
  *out = NULL;
  snt_result r = print(what, format, NULL, &length);
  if (r != SNT_OK) return r;
  char *text = malloc(length);
  r = text ? print(what, format, text, &length) : SNT_E_HOST_MEM;
  if (r == SNT_OK) *out = text;
  else free(text);
  return r;
}

static snt_result print_program(const void *p, uint32_t format, char *text, size_t *length) {
  return snt_program_explain(p, format, text, length);
}
static snt_result print_graph(const void *g, uint32_t format, char *text, size_t *length) {
  (void)format;
  return snt_graph_print(g, text, length);
}
static snt_result print_profile(const void *p, uint32_t format, char *text, size_t *length) {
  (void)format;
  return snt_profile_print(p, text, length);
}

snt_result tool_explain(const snt_program *p, uint32_t format, char **out) { return take_text(print_program, p, format, out); }
snt_result tool_graph_text(const snt_graph *g, char **out) { return take_text(print_graph, g, 0, out); }
snt_result tool_profile_text(const snt_profile *p, char **out) { return take_text(print_profile, p, 0, out); }
