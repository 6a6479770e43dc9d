/* What is wrong with a file, and what of it is not supported: the import fails by the one and lists the other. */
#include "onnx/import_private.h"
#include <stdio.h>

bool onnx_fail(onnx_import *im, snt_result result, const char *format, ...) {
  char text[240];
  va_list list;
  if (im->failed) return false;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  im->failed = ir_fail(im->diag, result, "onnx", 0, "%s", text);
  return false;
}

void onnx_add_problem(onnx_import *im, const char *node, const char *op, const char *reason) {
  const onnx_problem p = {node, op, ir_arena_text(im->temp, reason, strlen(reason))};
  if (!p.reason || !IR_PUSH(im->temp, &im->problems, p)) onnx_fail(im, SNT_E_HOST_MEM, "out of memory");
}
