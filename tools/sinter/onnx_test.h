/* Between `sinter onnx-test`, which runs many tests, and what runs one. */
#ifndef TOOLS_SINTER_ONNX_TEST_H
#define TOOLS_SINTER_ONNX_TEST_H
#include "tools/sinter/tool.h"
#include <sinter/sinter_onnx.h>

typedef struct onnx_case_info {
  const tool_options *options;
  double rtol, atol;
} onnx_case_info;
/* Runs the test in `folder`; `line` becomes a remark if it passed, else the reason. */
bool onnx_case_run(const onnx_case_info *, const char *folder, char *line, size_t size);
#endif
