/* Shared by schedule/attention_tile.c and schedule/attention_pack.c: a tile of queries in lanes, and how its operands come near and its results leave. */
#ifndef FUSION_SCHEDULE_ATTENTION_TILE_H
#define FUSION_SCHEDULE_ATTENTION_TILE_H
#include "fusion/schedule/attention_private.h"

typedef struct attend_tile {
  attend *t;
  uint32_t lanes, vectors, rows; /* register tile: rows keys (or depths) x vectors of lanes queries */
  int64_t queries, block, depth, inner;
  ir_expr row, first, skip; /* first query; first key of the block; keys of it that were seen before */
  uint32_t half_lanes;      /* of the pass that makes weights */
  attend_array scores, results, extremum, correction, sums[ATTENTION_REDUCES];
  ir_expr lane_at[8];
  uint32_t lane_var[8];
} attend_tile;

void attend_pack_queries(attend_tile *);
void attend_pack_keys(attend_tile *);
void attend_pack_values(attend_tile *);
void attend_store_tile(attend_tile *);
#endif
