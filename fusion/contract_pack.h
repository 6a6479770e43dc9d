/* The packed form of a constant operand (fusion/contract/pack.c). */
#ifndef FUSION_CONTRACT_PACK_H
#define FUSION_CONTRACT_PACK_H
#include "fusion/contract_private.h"

typedef struct
    contract_pack_loops { /* from the outermost in; the last one runs over the columns of a panel, the one at `panel` over panels */
  uint32_t count, panel;
  int64_t extent[CONTRACT_LABELS], stride[CONTRACT_LABELS], first, columns;
} contract_pack_loops;
typedef struct contract_packing {
  ir_making making;
  contract_pack_loops loops;
  uint32_t bytes; /* of an element */
} contract_packing;
/* Null: out of memory. */
const contract_packing *contract_describe_packing(fusion_context *, uint32_t node, const contract_pack_loops *, int64_t elements);
/* The plan's buffer with the constant in this order; kernels that want the same order share it. UINT32_MAX: out of memory. */
uint32_t contract_packed_buffer(fusion_context *, uint32_t node, const contract_pack_loops *);
#endif
