/* The code generators there are. Each is one row; whoever needs them all lists them in one table of their own. */
#ifndef CODEGEN_COMMON_TARGETS_H
#define CODEGEN_COMMON_TARGETS_H
#include "codegen_common/codegen.h"

extern const codegen_target codegen_opencl, codegen_spirv, codegen_cuda, codegen_kir;
extern const kir_caps opencl_caps, spirv_caps, cuda_caps, kir_text_caps; /* at best; a device narrows them */
#endif
