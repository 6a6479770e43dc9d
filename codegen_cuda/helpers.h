/* Texts that CUDA kernels include when they use what the texts define. */
#ifndef CODEGEN_CUDA_HELPERS_H
#define CODEGEN_CUDA_HELPERS_H
#include "codegen_common/ctext.h"

extern const ctext_helper cuda_helpers[];
extern const uint32_t cuda_helper_count;
#endif
