/* A depthwise convolution under construction: what its own kernel (schedule_depthwise.c) and one that reads its rows where they were just computed
   (schedule_staged.c) share. In: a contraction with its labels and axes read. */
#ifndef FUSION_DEPTHWISE_H
#define FUSION_DEPTHWISE_H
#include "fusion/contract_private.h"

typedef struct depthwise {
  contraction t;
  uint32_t data;                     /* which operand: the window */
  uint32_t down, across, tap[2];     /* labels: rows and positions of the result; taps down and across */
  int64_t stride, low, rows, taps;   /* down */
  int64_t tile, positions, channels; /* across; of the lanes */
  ir_expr row, position;             /* of the result, at hand */
  uint32_t staged;                   /* a pointwise value of the result whose row is staged; 0: the outputs are stored */
} depthwise;

bool depthwise_plan(depthwise *);                /* fills all but `t`'s labels and axes; false: another schedule's */
ir_expr depthwise_units(const depthwise *);      /* rows of the result */
void depthwise_place(depthwise *, ir_expr unit); /* coordinates of row number `unit` */
void depthwise_emit_row(depthwise *);            /* all positions and channels of the row at hand */
#endif
