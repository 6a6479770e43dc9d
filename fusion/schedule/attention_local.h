/* Shared by schedule/attention_local.c, attention_panels.c, attention_shape.c and attention_mma.c: one group's tile of queries and keys in local memory. */
#ifndef FUSION_SCHEDULE_ATTENTION_LOCAL_H
#define FUSION_SCHEDULE_ATTENTION_LOCAL_H
#include "fusion/fragments.h"
#include "fusion/schedule/attention_private.h"

enum {
  WEIGHT_PARTS = 2, /* leading bits and rest, on matrix units */
  ATTEND_ITEMS = 128,
  ATTEND_ROWS = 32,   /* queries of a tile without matrix units */
  ATTEND_ACROSS = 16, /* items beside each other over its keys */
  ATTEND_VECTOR = 4,
  ATTEND_MOST_KEYS = 64,
  ATTEND_MOST_WIDTH = 256,
  ATTEND_MOST_VECTORS = 16,
  ATTEND_HALVES = 2, /* rows of a fragment, eight apart, that an item has pairs of in lanes; four items have a row */
  ATTEND_MOST_TALL = 2,
  ATTEND_MOST_HALVES = ATTEND_HALVES * ATTEND_MOST_TALL,
  ATTEND_SHARE_STEPS = 2,
  ATTEND_PAIRS = ATTEND_MOST_KEYS / 8,
  ATTEND_MOST_CELLS = 16
};

typedef enum { ATTEND_QUERIES, ATTEND_KEYS, ATTEND_VALUES, ATTEND_OPERANDS } attend_operand;

typedef struct local_tile {
  attend *t;
  int64_t inner, depth;         /* of rows of panels and of the result: whole vectors of all items, and whole fragments */
  int64_t own_inner, own_depth; /* what the operands have of them; behind that are zeros, which nobody stores */
  bool fragments;               /* products on matrix units: panels and weights keep elements of 16 bits */
  matrix_units units;
  int32_t element;
  bool in_lanes;           /* what lanes hold of fragments is known: scores are weighed, and results leave, where they are */
  uint32_t tall;           /* fragments of rows of a subgroup: each of keys and values that it fetches multiplies so many */
  uint32_t queries, share; /* of a tile; items that weigh the keys of one query, a part each */
  uint32_t halves, half;   /* queries that an item weighs keys for, a row of its fragments each, of `tall` fragments; the one at hand */
  uint32_t keys, vector;   /* of a tile; neighbours of them, or of the result, that an item has */
  uint32_t panels;         /* 2: keys and values have one each */
  uint32_t columns, rows, vectors; /* of the result's vectors: how many items lie across and down, and how many an item has across */
  uint32_t cells;                  /* what an item keeps of the result: vectors, or its subgroup's fragments */
  /* warp: the item's subgroup; at: where the tile begins; first: its first key; skip: so many of its keys have been counted before */
  ir_expr item, warp, row, at, first, skip;
  bool even;                            /* tiles divide the keys */
  bool copied[ATTEND_OPERANDS], ahead;  /* asynchronously; a tile's keys while the one before multiplies its values */
  uint32_t partner[ATTEND_SHARE_STEPS]; /* lanes with which the item finds what all of its query have, in lanes */
  uint32_t factor[ATTEND_MOST_HALVES], weight[ATTEND_MOST_HALVES][ATTEND_PAIRS]; /* and of the tile at hand: corrections, and weights */
  uint32_t held[ATTEND_MOST_TALL * ATTEND_MOST_WIDTH / 16];                      /* queries as operands, where registers keep them */
  bool holds;
  attend_array query, panel, values, scores, weights, most, correction,
      sums[ATTENTION_REDUCES]; /* panel: keys, then values but for `values` */
} local_tile;

/* Elements from row to row of a panel of so many columns, of the scores and of the weights (schedule/attention_shape.c). */
int64_t attend_panel_pitch(const local_tile *, int64_t width);
int64_t attend_weights_pitch(const local_tile *);
static inline int64_t attend_widest(const local_tile *s) { return s->inner > s->depth ? s->inner : s->depth; }
static inline int64_t attend_scores_pitch(const local_tile *s) { return s->keys + (int64_t)s->share * ATTEND_VECTOR; }
/* Elements of the weights that stand for a row of scores: of all parts of a subgroup's rows, which lie together, no more than those have bytes. */
static inline int64_t attend_weights_row(const local_tile *s) { return 4 / ir_dtypes[s->element].bytes * attend_scores_pitch(s); }
/* Where a row of an array lies, from `column` on. */
ir_expr attend_cell(const local_tile *, ir_expr row, int64_t stride, ir_expr column);
static inline void attend_set_query(local_tile *s, ir_expr number) { s->t->now[s->t->a->row] = expr_add(s->t->e->x, s->row, number); }
static inline void attend_barrier(local_tile *s) { kir_barrier(s->t->e->k, KIR_SYNC_LOCAL); }
/* Vector v of the result that the item has: its column. */
ir_expr attend_result_column(const local_tile *, uint32_t v);

/* schedule/attention_shape.c */
bool attend_pick_shape(local_tile *); /* false: none fits */

/* schedule/attention_panels.c */
bool attend_is_copied(local_tile *, attend_operand);  /* keys and values have a panel each, and all items as many whole vectors */
void attend_fill_panel(local_tile *, attend_operand); /* begins to, where it is copied */
void attend_arrive(local_tile *);                     /* what is under way is there, for the whole group */

/* schedule/attention_mma.c */
bool attend_mma_find(local_tile *);                                /* units for both products; fills what depends on them */
void attend_mma_scores(local_tile *, uint32_t *acc);               /* into the scores' room, where they have one */
void attend_mma_weight(local_tile *, ir_expr at, uint32_t weight); /* of the item's query, at `at` of the tile's keys */
void attend_mma_hold(local_tile *);                                /* the queries, which have come */
/* Pair v of a row of sums, of so many fragments, in lanes: of the half at hand. */
uint32_t attend_mma_pair(local_tile *, const uint32_t *sums, uint32_t across, uint32_t v);
/* Results are fragments until their end, vectors then. */
void attend_mma_values(local_tile *, uint32_t *results); /* rows * their corrections + weights * values */
void attend_mma_end(local_tile *, uint32_t *results);
#endif
