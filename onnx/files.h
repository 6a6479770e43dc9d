/* Mapped files of a model: see files.c. */
#ifndef ONNX_FILES_H
#define ONNX_FILES_H
#include "onnx/model.h"

typedef struct onnx_mapping {
  const char *name;
  void *data; /* null: an empty file */
  size_t size;
} onnx_mapping;
typedef struct onnx_folder {
  ir_arena *arena;
  const char *model; /* its path */
  IR_VEC(onnx_mapping) maps;
} onnx_folder;
snt_result onnx_map_file(onnx_mapping *, const char *path, snt_diag *);
onnx_files onnx_folder_files(onnx_folder *);
void onnx_folder_close(void *folder);
bool onnx_folder_holds(void *folder, const void *data, uint64_t bytes);
void onnx_folder_rest(void *folder); /* gives back the memory that reading took */
#endif
