/* Texts that OpenCL kernels include when they use what the texts define. */
#ifndef CODEGEN_OPENCL_HELPERS_H
#define CODEGEN_OPENCL_HELPERS_H
#include "codegen_common/ctext.h"

#define OPENCL_FLUSHES UINT64_C(1) /* the first row: it asks for denormals as zero */
extern const ctext_helper opencl_helpers[];
extern const uint32_t opencl_helper_count;
bool opencl_can_link(const codegen_code *); /* chain.c: as codegen_target has them */
snt_result opencl_chain(uint32_t count, const codegen_link *, ir_arena *, codegen_code *out, snt_diag *);
#endif
