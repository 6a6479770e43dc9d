/* sinter import: an ONNX model as graph text, with the weights in a file beside it. Both are whole before either takes the place of what was there. */
#include "api/handles.h"
#include "tools/sinter/tool.h"
#include <stdio.h>
#include <string.h>

enum { ALIGN = 64, SHORT = 64 }; /* constants of at most so many elements stay in the text */
typedef struct weights {
  host_output out;
  const char *name;
  uint64_t size;
} weights;

static bool save(void *user, const void *data, uint64_t size, const char **file, uint64_t *offset) {
  static const char zeros[ALIGN];
  weights *w = user;
  const uint64_t gap = (ALIGN - w->size % ALIGN) % ALIGN;
  fwrite(zeros, 1, gap, w->out.file);
  fwrite(data, 1, size, w->out.file);
  *file = w->name;
  *offset = w->size + gap;
  w->size += gap + size;
  return !ferror(w->out.file);
}

static snt_result print_both(tool_session *s, weights *w, host_output *to) {
  ir_arena arena;
  ir_text text;
  ir_arena_init(&arena, NULL);
  ir_text_init(&text, &arena);
  const ir_text_hooks hooks = {.user = w, .save = save, .limit = SHORT};
  ir_graph_print_with(&s->graph->graph, &hooks, &text);
  const bool starved = text.failed && !ferror(w->out.file);
  if (!text.failed) fwrite(text.at, 1, text.length, to->file);
  ir_arena_free(&arena);
  return starved ? host_fail(&s->diag, SNT_E_HOST_MEM, "import", "out of memory") : SNT_OK;
}

static snt_result write_both(tool_session *s, const char *out, const char *beside) {
  const char *slash = strrchr(beside, '/');
  weights w = {.name = slash ? slash + 1 : beside};
  host_output text = {.file = NULL};
  snt_result r = host_begin_file(&w.out, beside, &s->diag);
  if (r == SNT_OK) r = host_begin_file(&text, out, &s->diag);
  if (r == SNT_OK) r = print_both(s, &w, &text);
  r = host_close_file(&w.out, r, &s->diag);
  r = host_close_file(&text, r, &s->diag);
  const snt_result kept = host_end_file(&w.out, w.size ? r : SNT_INCOMPLETE, &s->diag); /* nothing in it: no file */
  return host_end_file(&text, w.size ? kept : r, &s->diag);
}

int command_import(const tool_options *options) {
  tool_session s;
  char beside[4096];
  snt_result r = tool_open(&s, options, false);
  if (r == SNT_OK) r = tool_load(&s);
  if (r == SNT_OK) r = tool_need_graph(&s);
  if (r == SNT_OK && !options->out) r = host_fail(&s.diag, SNT_E_ARG, "import", "-o FILE.snt is missing");
  if (r == SNT_OK && !strcmp(options->out, "-"))
    r = host_fail(&s.diag, SNT_E_ARG, "import", "-o -: the weights lie beside the text, so that it needs a file's name");
  if (r == SNT_OK) {
    const char *dot = strrchr(options->out, '.'), *slash = strrchr(options->out, '/');
    const size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - options->out) : strlen(options->out);
    if (stem > 4000) r = host_fail(&s.diag, SNT_E_ARG, "import", "the path is too long");
    snprintf(beside, sizeof beside, "%.*s.weights", (int)stem, options->out);
    if (r == SNT_OK) r = write_both(&s, options->out, beside);
  }
  const int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&s, r);
  tool_close(&s);
  return code;
}
