/* A depthwise convolution under construction: what its own kernel (schedule/depthwise.c), one that reads its rows where they were just computed
   (schedule/staged.c), and rows of its source that are made here (contract/depthwise_rows.c) share. In: a contraction with its labels and axes read. */
#ifndef FUSION_DEPTHWISE_H
#define FUSION_DEPTHWISE_H
#include "fusion/contract_private.h"

typedef struct depthwise {
  contraction t;
  uint32_t data;                 /* which operand: the window */
  uint32_t down, across, tap[2]; /* labels: rows and positions of the result; taps down and across */
  int64_t stride, low, taps;     /* down */
  int64_t tile, channels;        /* positions of a tile; of the lanes */
  ir_expr rows, positions;       /* of the source down, of the result across; of a ring both are known */
  ir_expr row, position;         /* of the result, at hand */
  uint32_t staged;               /* a pointwise value of the result whose row is staged; 0: the outputs are stored */
  uint32_t source, source_axis;  /* below the padding; its axis of rows, after which come its positions */
  bool turned;                   /* positions of the source lie together, not channels: its rows are turned into the ring */
  uint32_t product;              /* a contraction whose results the source follows, its rows made in the ring; 0: none */
  contraction p;                 /* that contraction, */
  uint32_t p_row;                /* its label along the positions, */
  ir_expr p_first;               /* and where that is at the first position of the row at hand */
  emit_stage_entry ring;         /* as many rows of the source as there are taps */
  ir_expr share, unit, groups;   /* first row of this work-item, the one at hand, work-items */
} depthwise;

bool depthwise_plan(depthwise *);      /* fills all but `t`'s labels and axes; false: another schedule's */
void depthwise_begin_row(depthwise *); /* a loop over the work-item's rows of the result; coordinates of the one at hand, its source near */
void depthwise_emit_row(depthwise *);  /* all its positions and channels */
void depthwise_end_row(depthwise *);

/* contract/depthwise_rows.c */
static inline bool depthwise_has_ring(const depthwise *d) { return d->turned || d->product; }
bool depthwise_can_turn(const depthwise *);                  /* of a source whose channels do not lie together */
bool depthwise_is_channel(const depthwise *, uint32_t axis); /* of the source */
map_access depthwise_source_at(const depthwise *, ir_expr row, ir_expr position, ir_expr channel);
void depthwise_open_rows(depthwise *); /* room for the ring, before the loop */
void depthwise_fetch_row(const depthwise *, ir_expr position, ir_expr channel);
void depthwise_fill_rows(depthwise *); /* the rows that the one at hand needs and the ring does not have */

/* contract/depthwise_product.c */
bool depthwise_plan_product(depthwise *);          /* fills `p`; false: the rows cannot be made */
void depthwise_open_product(depthwise *);          /* vectors of its tiles, before the loop over rows */
void depthwise_make_row(depthwise *, ir_expr row); /* of the source, into the ring */
#endif
