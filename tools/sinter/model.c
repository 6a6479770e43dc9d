/* The one loader of models: ONNX, the graph text or a saved program, told apart by name and first bytes. */
#include "tools/sinter/tool.h"
#include <sinter/sinter_onnx.h>
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

/* A saved program, or the best of a pack of them for the device at hand. The bytes stay in the session: the program borrows them. */
/* A saved program, or of a pack the best for the device at hand; without a device the first. */
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

/* An ONNX file starts with its first field, the version: byte 8. */
bool tool_is_onnx(const char *path) {
  const size_t length = strlen(path);
  if (length > 5 && !strcmp(path + length - 5, ".onnx")) return true;
  FILE *f = fopen(path, "rb");
  const int first = f ? fgetc(f) : EOF;
  if (f) fclose(f);
  return first == 8;
}

static void SNT_CALL print_unsupported(void *user, const char *node, const char *op, const char *reason) {
  (void)user;
  fprintf(stderr, "not supported: %s (%s): %s\n", node, op, reason);
}

/* --dim NAME=N is what an extent usually is: the plan is still good for others. */
static uint32_t hint_dims(const tool_session *s, snt_symbol *out) {
  for (uint32_t i = 0; i < s->options.dim_count; i++) {
    const long long value = strtoll(s->options.dims[i].value, NULL, 10);
    out[i] = (snt_symbol){s->options.dims[i].name, value < 1 ? value : 1, INT32_MAX, 1, value};
    if (value < 0 || value > INT32_MAX) out[i] = (snt_symbol){s->options.dims[i].name, 1, INT32_MAX, 1, 128};
  }
  return s->options.dim_count;
}

static snt_result import_onnx(tool_session *s, const snt_onnx_fixed *fixed, uint32_t fixed_count) {
  snt_symbol dims[TOOL_MAX_DIMS];
  const snt_onnx_info info = {.head = SNT_HEAD(onnx_info),
                              .dims = dims,
                              .dim_count = hint_dims(s, dims),
                              .fixed = fixed,
                              .fixed_count = fixed_count,
                              .unsupported = s->options.quiet ? NULL : print_unsupported,
                              .decode_image = tool_decode_image};
  const snt_result r = snt_graph_create(s->context, &s->graph);
  return r == SNT_OK ? snt_onnx_import_file(s->graph, s->options.model, &info, &s->diag) : r;
}

/* --fix NAME=FILE: inputs whose values the import is to know. */
static snt_result load_onnx(tool_session *s) {
  snt_onnx_fixed fixed[TOOL_MAX_PORTS];
  void *read[TOOL_MAX_PORTS];
  uint32_t count = 0;
  snt_result r = SNT_OK;
  for (; count < s->options.fixed_count; count++) {
    const tool_pair *given = &s->options.fixed[count];
    fixed[count].name = given->name;
    r = npy_open(given->value, &read[count], &fixed[count].tensor, &fixed[count].data, &s->diag);
    if (r != SNT_OK) break;
  }
  if (r == SNT_OK) r = import_onnx(s, fixed, count);
  while (count--) free(read[count]);
  return r;
}

static snt_result load_model(tool_session *s) {
  if (!s->options.model) return host_fail(&s->diag, SNT_E_ARG, "model", "no model given");
  if (tool_is_onnx(s->options.model)) return load_onnx(s);
  const snt_result r = host_read_file(s->options.model, &s->text, &s->text_size, &s->diag);
  if (r != SNT_OK) return r;
  return s->text_size > 8 && !memcmp(s->text, "SNTP", 4) ? load_program(s) : load_text(s);
}

snt_result tool_load(tool_session *s) {
  const snt_result r = load_model(s);
  return r == SNT_OK ? tool_steer(s) : r;
}

snt_result tool_need_graph(tool_session *s) {
  return s->graph ? SNT_OK : host_fail(&s->diag, SNT_E_ARG, "model", "a saved program has no model to work on");
}
