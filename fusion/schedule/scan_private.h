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
/* Whole steps from lo to hi, which carry values. */
ir_expr scan_loop(emit *, ir_expr lo, ir_expr hi, int64_t step, uint32_t count, const uint32_t *initial, uint32_t *carried);
/* The running value after the element at `at`; 0 where it cannot be computed. */
uint32_t scan_next(emit *, const scan_job *, uint32_t carried, const map_access *at);
/* `place` counts in the direction of the scan. */
map_access scan_at(const emit *, const scan_job *, ir_expr outer, ir_expr inner, ir_expr place);
bool scan_store(emit *, const scan_job *, const map_access *at, uint32_t value);

/* ---- schedule/scan_chunks.c ---- */
typedef struct chunk_job {
  fusion_context *c;
  const scan_job *scan;
  emit *e;
  ir_expr extent, inner, lines, size, count; /* elements of a chunk; chunks of a line */
  ir_expr unit, line, chunk, lo, hi;         /* unit: number of the chunk among those of all lines */
  uint32_t totals, factors;                  /* plan buffers; factors: of scan.linear, the product of a chunk's first operands */
  int32_t dtype;                             /* of a total: the type that is computed in */
  uint32_t lanes;                            /* vectors along the line; 1: none */
  uint32_t items;                            /* that share a chunk; 1: none do */
  ir_expr item;
} chunk_job;
map_access scan_place(const chunk_job *, ir_expr place); /* scan_step.c */
bool scan_wants_chunks(const fusion_context *, const scan_job *);
snt_result schedule_scan_chunks(fusion_context *, const scan_job *);
/* ---- schedule/scan_tiles.c ---- */
/* Items of a group that walk a chunk of a line together, vectors of neighbours beside each other; 1: each walks its own. */
uint32_t scan_items(const fusion_context *, const scan_job *, uint32_t *lanes);
bool scan_walk_tiles(chunk_job *, uint32_t start);
#endif
