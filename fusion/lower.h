/* The lowering cell of every primitive: how one pointwise operator becomes kernel IR. The table in lower.c has a cell for each row of ops.def;
   a row without one does not compile. */
#ifndef FUSION_LOWER_H
#define FUSION_LOWER_H
#include "ir/graph.h"
#include "ir/kernel.h"

/* Emits pointwise operator `op` on values already in their compute types. `arg_dtype`: graph dtype of operand 0; `result`: compute type of the result. */
uint32_t lower_pointwise(kir_kernel *, ir_op op, const uint32_t *args, int32_t arg_dtype, int32_t result_dtype, kir_type result);
bool lower_has(ir_op op); /* a pointwise cell exists */
#endif
