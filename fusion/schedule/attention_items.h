/* Shared by schedule/attention_items.c and schedule/attention_rows.c: items with the state of one query or several, and where the operands' rows lie. */
#ifndef FUSION_SCHEDULE_ATTENTION_ITEMS_H
#define FUSION_SCHEDULE_ATTENTION_ITEMS_H
#include "fusion/schedule/attention_private.h"

enum { LEAST_ITEMS = 8, MAX_PIECES = 132 };

typedef struct piece {
  int64_t from;
  uint32_t lanes;
} piece;

typedef enum operand { QUERIES, KEYS, VALUES, OPERANDS } operand;

/* An operand's rows in scratch, one after another, each beginning at a whole texel. */
typedef struct copied {
  bool made;
  uint32_t scratch;
  ir_expr rows; /* of a batch */
  int64_t pitch;
} copied;

typedef struct query {
  attend *t;
  copied copies[OPERANDS];
  uint32_t lanes, items, queries; /* queries: of an item, from `row` on */
  uint32_t block;                 /* keys at once */
  bool shared;                    /* the items share one query */
  uint32_t parts, scratch;        /* of the keys, each for a group of its own; the buffer of their states: results, extremum, sums */
  ir_expr part, number;           /* which part of which query */
  ir_expr batch;                  /* of an item's queries */
  ir_expr item, row;
  int64_t inner, depth;
  uint32_t piece_count;
  piece pieces[MAX_PIECES];
} query;

static inline ir_expr row_extent(const query *s) { return s->t->a->row >= 0 ? s->t->a->extent[s->t->a->row] : 1; }

/* Element `at` of the operand's row at hand in f32, from its copy if there is one. */
uint32_t attend_read_row(query *, operand, ir_expr at);
/* A kernel for each operand that is copied; begins the one that reads them. */
snt_result attend_copy_rows(query *);
#endif
