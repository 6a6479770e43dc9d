/* The public calls of libsinter-onnx: argument checks, files, and the import in between. */
#include "api/handles.h"
#include "onnx/files.h"
#include "onnx/import_private.h"

enum { BUILT_FOR = 0x000100 }; /* of snt_version: the graph in memory has one layout a version */

static bool is_fixed(const snt_onnx_fixed *f) {
  bool good = f->name && f->tensor.rank <= SNT_MAX_RANK;
  for (uint32_t i = 0; good && i < f->tensor.rank; i++) good = f->tensor.dims[i] >= 0;
  return good;
}

static snt_result check_info(const snt_onnx_info *info, snt_diag *diag) {
  if (info->head.type != SNT_TYPE_onnx_info || info->head.next) return ir_fail(diag, SNT_E_STRUCT, "onnx", 0, "this is no snt_onnx_info");
  if (info->head.size != sizeof *info) return ir_fail(diag, SNT_E_STRUCT, "onnx", 0, "snt_onnx_info has another size here");
  if (info->flags & ~(uint32_t)(SNT_ONNX_OTHER_EXTENTS | SNT_ONNX_ACCURACY_LEVEL))
    return ir_fail(diag, SNT_E_ARG, "onnx", 0, "unknown flags 0x%x", info->flags);
  if ((info->dim_count && !info->dims) || (info->fixed_count && !info->fixed))
    return ir_fail(diag, SNT_E_ARG, "onnx", 0, "as many extents and fixed inputs are needed as are counted");
  for (uint32_t i = 0; i < info->fixed_count; i++)
    if (!is_fixed(&info->fixed[i])) return ir_fail(diag, SNT_E_ARG, "onnx", 0, "fixed input %u needs a name, rank <= 8 and extents", i);
  return SNT_OK;
}

static snt_result check(const snt_graph *g, const snt_onnx_info *info, snt_diag *diag) {
  if (!g) return ir_fail(diag, SNT_E_ARG, "onnx", 0, "a graph is needed");
  if (g->graph.nodes.count > 1) return ir_fail(diag, SNT_E_ORDER, "onnx", 0, "the graph is not empty");
  if (info) SNT_TRY(check_info(info, diag));
  /* Both libraries work on one graph in memory. */
  if (snt_version() != BUILT_FOR) return ir_fail(diag, SNT_E_STRUCT, "onnx", 0, "libsinter and libsinter-onnx are of different versions");
  return SNT_OK;
}

static snt_result import(snt_graph *g, const void *data, size_t size, const snt_onnx_info *info, const onnx_files *files, snt_diag *diag) {
  ir_arena temp;
  onnx_model model;
  ir_arena_init(&temp, &g->context->alloc);
  onnx_import im = {.g = &g->graph,
                    .temp = &temp,
                    .model = &model,
                    .info = info,
                    .files = files,
                    .diag = diag,
                    .starved = &g->context->starved,
                    .starved_before = atomic_load(&g->context->starved)};
  snt_result r = onnx_read_model(&model, &temp, data, size, diag);
  if (r == SNT_OK) r = onnx_import_model(&im);
  ir_arena_free(&temp);
  if (r == SNT_OK) r = snt_graph_verify(g, diag);
  if (onnx_starved(&im)) r = ir_fail(diag, SNT_E_HOST_MEM, "onnx", 0, "out of memory");
  if (r != SNT_OK && !g->graph.failed) { /* half a graph must not be compiled */
    g->graph.failed = true;
    ir_fail(&g->graph.first_error, r, "onnx", 0, "the import failed");
  }
  return r;
}

static const void *find_external(void *user, const char *location, uint64_t offset, uint64_t bytes, snt_diag *diag) {
  const snt_onnx_info *info = user;
  (void)diag;
  return info->external(info->user, location, offset, bytes);
}

snt_result snt_onnx_import(snt_graph *g, const void *data, size_t size, const snt_onnx_info *info, snt_diag *diag) {
  SNT_TRY(check(g, info, diag));
  if (!data || !size) return ir_fail(diag, SNT_E_PARSE, "onnx", 0, "the model is empty");
  const onnx_files files = {(void *)(uintptr_t)info, find_external};
  return import(g, data, size, info, info && info->external ? &files : NULL, diag);
}

snt_result snt_onnx_import_file(snt_graph *g, const char *path, const snt_onnx_info *info, snt_diag *diag) {
  SNT_TRY(check(g, info, diag));
  if (!path) return ir_fail(diag, SNT_E_ARG, "onnx", 0, "a path is needed");
  ir_arena *arena = &g->store->arena;
  onnx_folder *folder = IR_NEW(arena, onnx_folder);
  api_kept *kept = IR_NEW(arena, api_kept);
  onnx_mapping model = {0};
  if (!folder || !kept) return ir_fail(diag, SNT_E_HOST_MEM, "onnx", 0, "out of memory");
  *folder = (onnx_folder){.arena = arena, .model = ir_arena_text(arena, path, strlen(path))};
  *kept = (api_kept){g->store->kept, folder, onnx_folder_close, onnx_folder_holds, onnx_folder_rest};
  g->store->kept = kept;
  if (!folder->model) return ir_fail(diag, SNT_E_HOST_MEM, "onnx", 0, "out of memory");
  SNT_TRY(onnx_map_file(&model, path, diag));
  model.name = "";
  if (!IR_PUSH(arena, &folder->maps, model)) return ir_fail(diag, SNT_E_HOST_MEM, "onnx", 0, "out of memory");
  if (!model.size) return ir_fail(diag, SNT_E_PARSE, "onnx", 0, "the model is empty");
  const onnx_files files = onnx_folder_files(folder);
  return import(g, model.data, model.size, info, &files, diag);
}

static snt_result give_tensor(const onnx_tensor *t, ir_arena *temp, snt_tensor *type, void *data, size_t *bytes, snt_diag *diag) {
  const void *elements = NULL;
  uint64_t count = 0;
  SNT_TRY(onnx_tensor_data(t, temp, NULL, &elements, &count, diag));
  *type = (snt_tensor){.dtype = onnx_type(t->type).dtype, .rank = t->dims.count};
  for (uint32_t i = 0; i < t->dims.count; i++) type->dims[i] = t->dims.at[i];
  const size_t size = (size_t)count * ir_dtypes[type->dtype].bytes, room = *bytes;
  *bytes = size;
  if (!data || room < size) return SNT_INCOMPLETE;
  if (size) memcpy(data, elements, size);
  return SNT_OK;
}

snt_result snt_onnx_tensor(const void *file, size_t size, char name[128], snt_tensor *type, void *data, size_t *bytes, snt_diag *diag) {
  ir_arena temp;
  onnx_tensor t;
  if (!file || !type || !bytes) return ir_fail(diag, SNT_E_ARG, "onnx", 0, "a file and a place for the result are needed");
  ir_arena_init(&temp, NULL);
  snt_result r = onnx_read_tensor(&t, &temp, file, size, diag);
  if (r == SNT_OK && name) {
    const size_t length = strlen(t.name) < 127 ? strlen(t.name) : 127;
    memcpy(name, t.name, length);
    name[length] = 0;
  }
  if (r == SNT_OK) r = give_tensor(&t, &temp, type, data, bytes, diag);
  ir_arena_free(&temp);
  return r;
}
