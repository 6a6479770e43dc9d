/* The reference interpreter of kernel IR: runs whole dispatches, item by item in lock step between barriers, and checks:
   out-of-bounds, uninitialised reads, data races between items (unsynchronised write/read or write/write), barrier divergence.
   It counts transactions per 32 lanes, bank conflicts, barriers and the instruction mix. */
#ifndef IR_KIR_INTERP_H
#define IR_KIR_INTERP_H
#include "ir/kernel.h"

typedef struct kir_interp_buffer {
  void *data;
  uint64_t bytes;
} kir_interp_buffer;
typedef struct kir_interp_image {
  void *data;
  uint32_t width, height, channels;
  int32_t dtype;
} kir_interp_image; /* row-major, channels interleaved */
typedef struct kir_interp_stats {
  uint64_t instructions, loads, stores, barriers, transactions, ideal_transactions, bank_conflicts, flops;
} kir_interp_stats;
/* The same of one instruction: how many items ran it, and what it cost where it reads or writes memory. */
typedef struct kir_interp_inst {
  uint64_t runs, transactions, ideal_transactions, bank_conflicts;
} kir_interp_inst;
typedef struct kir_interp_info {
  const kir_kernel *kernel;
  uint64_t groups;        /* linear count */
  uint64_t sample;        /* run only so many of them, the first, the last and evenly between; 0: all */
  kir_interp_inst *insts; /* added to, by instruction; null: not counted */
  uint32_t subgroup_size; /* 0: 4 */
  uint32_t buffer_count;
  const kir_interp_buffer *buffers; /* by slot; images use the same slot numbers in `images` */
  const kir_interp_image *images;
  const void *scalars; /* the block */
  uint32_t scalar_bytes;
  uint64_t step_limit; /* instructions per item before giving up (SNT_E_LIMIT); 0: 1e9 */
} kir_interp_info;
snt_result kir_interp_run(const kir_interp_info *, const snt_host_alloc *, kir_interp_stats *stats, snt_diag *);
#endif
