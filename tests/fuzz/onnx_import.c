#include "tests/fuzz/onnx_import.h"
#include "tools/pictures/picture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory with an end ---- */
size_t onnx_import_live;
static void *SNT_CALL acquire(void *user, size_t size, size_t align, uint32_t scope) {
  (void)user, (void)scope;
  if (size > ONNX_IMPORT_MEMORY - onnx_import_live) return NULL;
  onnx_import_live += size;
  return aligned_alloc(align < 16 ? 16 : align, (size + 127) / 64 * 64);
}
static void SNT_CALL release(void *user, void *at, size_t size, size_t align) {
  (void)user, (void)align;
  if (at) onnx_import_live -= size;
  free(at);
}

/* ---- importing ---- */
enum { MOST_PIXELS = 1 << 18 };
snt_symbol onnx_import_dim;
char onnx_import_said[1024];
static void SNT_CALL note(void *user, const char *node, const char *op, const char *reason) {
  const size_t length = strlen(onnx_import_said);
  (void)user;
  snprintf(onnx_import_said + length, sizeof onnx_import_said - length, "%s (%s): %s; ", node, op, reason);
}

/* Pictures of a few bytes may have millions of pixels, which are all printed below. */
static snt_result SNT_CALL decode(void *user, snt_onnx_image *image) {
  const snt_result r = picture_decode(user, image);
  return r == SNT_OK && (uint64_t)image->width * image->height > MOST_PIXELS ? SNT_E_LIMIT : r;
}

snt_result onnx_import_from(const void *data, size_t size, const char *path, snt_diag *diag) {
  const snt_context_info info = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION, .alloc = {NULL, acquire, release}};
  const snt_onnx_info options = {.head = SNT_HEAD(onnx_info),
                                 .unsupported = note,
                                 .decode_image = decode,
                                 .dims = &onnx_import_dim,
                                 .dim_count = onnx_import_dim.name != NULL};
  snt_context *context = NULL;
  snt_graph *graph = NULL;
  *diag = (snt_diag){.head = SNT_HEAD(diag)};
  onnx_import_said[0] = 0;
  snt_result r = snt_context_create(&info, &context);
  if (r == SNT_OK) r = snt_graph_create(context, &graph);
  if (r == SNT_OK) r = path ? snt_onnx_import_file(graph, path, &options, diag) : snt_onnx_import(graph, data, size, &options, diag);
  if (r == SNT_OK) {
    size_t length = 0;
    (void)snt_graph_print(graph, NULL, &length);
  }
  snt_graph_destroy(graph);
  snt_context_destroy(context);
  return r;
}
