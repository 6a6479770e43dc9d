/* Shared by the files schedule/scan*.c. */
#ifndef FUSION_SCHEDULE_SCAN_PRIVATE_H
#define FUSION_SCHEDULE_SCAN_PRIVATE_H
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"

typedef struct scan_job {
  const fusion_group *group;
  ir_op op;
  uint32_t axis, rank;
  bool exclusive, reverse;
  const ir_expr *dims;
  ir_expr outer; /* number of the line among the axes before the scanned one */
} scan_job;

uint32_t scan_identity(emit *, ir_op, kir_type);
kir_op scan_combine(ir_op);
/* The running value after the element at `at`; 0 where it cannot be computed. */
uint32_t scan_next(emit *, const scan_job *, uint32_t carried, const map_access *at);
/* `place` counts in the direction of the scan. */
map_access scan_at(const emit *, const scan_job *, ir_expr outer, ir_expr inner, ir_expr place);
bool scan_store(emit *, const scan_job *, const map_access *at, uint32_t value);

/* ---- schedule/scan_chunks.c ---- */
bool scan_wants_chunks(const fusion_context *, const scan_job *);
snt_result schedule_scan_chunks(fusion_context *, const scan_job *);
#endif
