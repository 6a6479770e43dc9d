/* Texts that OpenCL kernels include when they use what the texts define. */
#ifndef CODEGEN_OPENCL_HELPERS_H
#define CODEGEN_OPENCL_HELPERS_H
#include "codegen_common/ctext.h"

extern const ctext_helper opencl_helpers[];
extern const uint32_t opencl_helper_count;
#endif
