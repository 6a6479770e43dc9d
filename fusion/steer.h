/* What the user says about groups: must_fuse, never_fuse, keep and barrier of the graph, as questions that grouping and batching ask. */
#ifndef FUSION_STEER_H
#define FUSION_STEER_H
#include "fusion/fusion.h"

/* Nodes that are, or would be, computed by one kernel together with those of the other parts. */
typedef struct steer_part {
  const uint32_t *nodes;
  uint32_t count;
} steer_part;

/* A must_fuse in terms of computed nodes: its values, views read through, and what lies on a path between them. */
typedef struct steer_must {
  uint32_t contract, count;
  const uint32_t *nodes;
} steer_must;

typedef struct fusion_steer {
  const ir_graph *graph;
  uint32_t words;                   /* of a row: a bit a contract */
  uint64_t *apart, *before, *after; /* a row a node: values of a never_fuse; what a barrier has in front of it and behind it */
  uint8_t *pinned;                  /* a node a must_fuse holds: never taken out of its kernel */
  IR_VEC(steer_must) musts;
} fusion_steer;

/* Reads the contracts of the working graph into `c->steer`; null there when it has none. */
snt_result steer_begin(fusion_context *);
/* A contract that forbids one kernel of these nodes: "never_fuse", "barrier", or null. A null steer forbids nothing. */
const char *steer_forbids(const fusion_steer *, const steer_part *, uint32_t count);
bool steer_pins(const fusion_steer *, uint32_t node);
/* Does a must_fuse have nodes in both? */
bool steer_wants(const fusion_steer *, steer_part, steer_part);
/* After all fusing: each must_fuse is one step, or compiling fails with what was in the way. */
snt_result steer_check(const fusion_context *);
#endif
