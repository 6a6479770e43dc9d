/* sinter import: an ONNX model as graph text, with the weights in a file beside it. Both are written under other names and renamed when
   whole, the weights first, so that a text is never without its data. */
#include "api/handles.h"
#include "tools/sinter/tool.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 64, SHORT = 64 }; /* constants of at most so many elements stay in the text */
typedef struct weights {
  FILE *file;
  const char *name;
  uint64_t size;
  bool failed;
} weights;

static bool save(void *user, const void *data, uint64_t size, const char **file, uint64_t *offset) {
  static const char zeros[ALIGN];
  weights *w = user;
  const uint64_t gap = (ALIGN - w->size % ALIGN) % ALIGN;
  w->failed |= fwrite(zeros, 1, gap, w->file) != gap || fwrite(data, 1, size, w->file) != size;
  *file = w->name;
  *offset = w->size + gap;
  w->size += gap + size;
  return !w->failed;
}

static snt_result write_both(tool_session *s, const char *out, const char *beside, const char *temp) {
  const char *slash = strrchr(beside, '/');
  weights w = {.file = fopen(temp, "wb"), .name = slash ? slash + 1 : beside};
  ir_arena arena;
  ir_text text;
  if (!w.file) return host_fail(&s->diag, SNT_E_ARG, "import", "cannot write %s", temp);
  ir_arena_init(&arena, NULL);
  ir_text_init(&text, &arena);
  const ir_text_hooks hooks = {.user = &w, .save = save, .limit = SHORT};
  ir_graph_print_with(&s->graph->graph, &hooks, &text);
  w.failed |= fclose(w.file) != 0;
  snt_result r = SNT_OK;
  if (w.failed) r = host_fail(&s->diag, SNT_E_ARG, "import", "cannot write %s", temp);
  else if (text.failed) r = host_fail(&s->diag, SNT_E_HOST_MEM, "import", "out of memory");
  else if (w.size && rename(temp, beside)) r = host_fail(&s->diag, SNT_E_ARG, "import", "cannot write %s", beside);
  if (r == SNT_OK) r = host_write_file(out, text.at, text.length, &s->diag);
  ir_arena_free(&arena);
  return r;
}

int command_import(const tool_options *options) {
  tool_session s;
  char beside[4096], temp[4096 + 32];
  snt_result r = tool_open(&s, options, false);
  if (r == SNT_OK) r = tool_load(&s);
  if (r == SNT_OK) r = tool_need_graph(&s);
  if (r == SNT_OK && !options->out) r = host_fail(&s.diag, SNT_E_ARG, "import", "-o FILE.snt is missing");
  if (r == SNT_OK) {
    const char *dot = strrchr(options->out, '.'), *slash = strrchr(options->out, '/');
    const size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - options->out) : strlen(options->out);
    if (stem > 4000) r = host_fail(&s.diag, SNT_E_ARG, "import", "the path is too long");
    snprintf(beside, sizeof beside, "%.*s.weights", (int)stem, options->out);
    snprintf(temp, sizeof temp, "%s.%ld", beside, (long)getpid());
    if (r == SNT_OK) r = write_both(&s, options->out, beside, temp);
    (void)remove(temp);
  }
  const int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&s, r);
  tool_close(&s);
  return code;
}
