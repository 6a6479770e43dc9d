/* Texts that OpenCL kernels include when they use what the texts define. */
#ifndef CODEGEN_OPENCL_HELPERS_H
#define CODEGEN_OPENCL_HELPERS_H
#include "codegen_common/ctext.h"

enum { OPENCL_FLUSHES = 0, OPENCL_DOUBLE = 2 }; /* rows of the table */
extern const ctext_helper opencl_helpers[];
extern const uint32_t opencl_helper_count;
bool opencl_can_link(const codegen_code *); /* chain.c: as codegen_target has them */
snt_result opencl_chain(uint32_t count, const codegen_link *, ir_arena *, codegen_code *out, snt_diag *);
#endif
