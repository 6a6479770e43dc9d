/* The one loader of models: ONNX, the graph text or a saved program, told apart by name and first bytes. */
#include "tools/sinter/tool.h"
#include <stdlib.h>
#include <string.h>

typedef struct data_files {
  const char *model;
  void *data[64];
  size_t size[64];
  char name[64][160];
  uint32_t count;
} data_files;
static data_files files; /* of the one model a process loads: constant data stays beside its text */

static const void *SNT_CALL find_data(void *user, const char *name, uint64_t offset, uint64_t bytes) {
  data_files *f = user;
  uint32_t i = 0;
  while (i < f->count && strcmp(f->name[i], name)) i++;
  if (i == f->count) {
    char path[4096];
    const char *slash = strrchr(f->model, '/');
    if (i == 64 || strlen(name) >= sizeof f->name[0] || strstr(name, "..") || name[0] == '/') return NULL; /* only beside the model */
    snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - f->model + 1) : 0, f->model, name);
    if (host_read_file(path, &f->data[i], &f->size[i], NULL) != SNT_OK) return NULL;
    strcpy(f->name[i], name);
    f->count++;
  }
  return offset <= f->size[i] && bytes <= f->size[i] - offset ? (const char *)f->data[i] + offset : NULL;
}

void tool_forget_data(void) {
  for (uint32_t i = 0; i < files.count; i++) free(files.data[i]);
  files.count = 0;
}

/* A saved program, or of a pack the best for the device at hand; without a device the first. The bytes stay in the session: the program borrows them. */
static snt_result load_program(tool_session *s) {
  const void *bytes = s->text;
  size_t size = s->text_size;
  if (s->device) return snt_program_load_best(s->device, bytes, size, &s->program, &s->diag);
  if (snt_pack_count(bytes, size) && snt_pack_variant(s->text, s->text_size, 0, &bytes, &size) != SNT_OK)
    return host_fail(&s->diag, SNT_E_BAD_BLOB, "load", "the pack has no first variant");
  return snt_program_load(s->context, bytes, size, &s->program, &s->diag);
}

static snt_result load_text(tool_session *s) {
  snt_result r = snt_graph_create(s->context, &s->graph);
  if (r != SNT_OK) return r;
  files.model = s->options.model;
  const snt_data_source source = {&files, find_data};
  r = snt_graph_parse(s->graph, s->text, s->text_size, &source, &s->diag);
  return r == SNT_OK ? snt_graph_verify(s->graph, &s->diag) : r;
}

static bool ends_with(const char *path, const char *end) {
  const size_t length = strlen(path), own = strlen(end);
  return length > own && !strcmp(path + length - own, end);
}

/* An ONNX file starts with its first field, the version: byte 8. */
bool tool_is_onnx(const char *path) {
  if (ends_with(path, ".onnx")) return true;
  FILE *f = fopen(path, "rb");
  const int first = f ? fgetc(f) : EOF;
  if (f) fclose(f);
  return first == 8;
}

/* What is given and can mean nothing for a saved program; null: nothing. */
static const char *of_compiling(const tool_options *o) {
  return o->numerics         ? "--numerics"
         : o->weights        ? "--weights"
         : o->image_count    ? "--image"
         : o->fuse_count     ? "--fuse"
         : o->fixed_count    ? "--fix"
         : o->profile        ? "--profile"
         : o->open           ? "--open"
         : o->accuracy_level ? "--accuracy-level"
         : o->compile_flags  ? "--unfused, --no-rewrites or --line-info"
                             : NULL;
}

static snt_result load_model(tool_session *s) {
  if (!s->options.model) return host_fail(&s->diag, SNT_E_ARG, "model", "no model given");
  if (tool_is_onnx(s->options.model)) return tool_load_onnx(s);
  const snt_result r = host_read_file(s->options.model, &s->text, &s->text_size, &s->diag);
  if (r != SNT_OK) return r;
  if (s->text_size > 8 && !memcmp(s->text, "SNTP", 4)) {
    const char *option = of_compiling(&s->options);
    if (option) return host_fail(&s->diag, SNT_E_ARG, "load", "a saved program is compiled: %s comes too late", option);
    return load_program(s);
  }
  if (ends_with(s->options.model, ".sntp")) return host_fail(&s->diag, SNT_E_BAD_BLOB, "load", "no saved program");
  if (s->options.fixed_count) return host_fail(&s->diag, SNT_E_ARG, "load", "--fix %s: no ONNX model", s->options.fixed[0].name);
  return load_text(s);
}

snt_result tool_load(tool_session *s) {
  const snt_result r = load_model(s);
  return r == SNT_OK ? tool_steer(s) : r;
}

snt_result tool_need_graph(tool_session *s) {
  return s->graph ? SNT_OK : host_fail(&s->diag, SNT_E_ARG, "model", "a saved program has no model to work on");
}
