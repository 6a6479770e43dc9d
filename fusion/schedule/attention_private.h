/* Shared by the files schedule/attention*.c: one attention kernel under construction, and the steps that every tile shape is made of. */
#ifndef FUSION_SCHEDULE_ATTENTION_PRIVATE_H
#define FUSION_SCHEDULE_ATTENTION_PRIVATE_H
#include "fusion/attention.h"
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"

typedef struct attend {
  fusion_context *c;
  const fusion_group *group;
  emit *e;
  const attention *a;
  ir_expr now[SNT_MAX_RANK]; /* coordinate of each label of the result */
  ir_expr key;               /* and of the key */
  ir_expr group_number, groups;
  float ulp;          /* by which exps may err */
  uint32_t spare;     /* bindings left for scratch buffers */
  uint32_t reference; /* the (finite) extremum that references stand for */
} attend;

/* An array of this work-item: private where it is small, else its part of a scratch buffer. */
typedef struct attend_array {
  uint32_t memory;
  int32_t element; /* loads and stores are of f32 whatever it is */
  ir_expr base;
} attend_array;
extern const char attend_sum_names[ATTENTION_REDUCES][5]; /* of the arrays that keep them */
attend_array attend_array_add(attend *, const char *name, int64_t elements);
snt_result attend_begin(attend *, const char *name); /* a kernel of the group, into `e` */
uint32_t attend_load(attend *, const attend_array *, ir_expr offset);
void attend_store(attend *, const attend_array *, ir_expr offset, uint32_t value);

/* ---- coordinates ---- */
map_access attend_place(const attend *, const map_access *symbolic); /* labels replaced by `now` and `key` */
map_access attend_place_of(const attend *, uint32_t node);
uint32_t attend_value(attend *, uint32_t node);                /* emit_value where the pattern reads it */
void attend_remember(attend *, uint32_t node, uint32_t value); /* later values of it there are this */
map_access attend_query_place(const attend *, ir_expr inner);
map_access attend_key_place(const attend *, ir_expr inner);
map_access attend_values_place(const attend *); /* of the values operand at `key` and the result's depth */
uint32_t attend_query_node(const attend *);
uint32_t attend_key_node(const attend *);
uint32_t attend_values_node(const attend *);

/* ---- values ---- */
uint32_t attend_f32(attend *, uint32_t value);
uint32_t attend_lane(attend *, uint32_t vector, uint32_t lane);    /* of a scalar: itself */
uint32_t attend_scaled(attend *, uint32_t factor, uint32_t value); /* factor 0: nothing to multiply by */
#define attend_scaled(t, factor, value) IR_LAST_FIRST_2(attend_scaled, factor, value, t)
uint32_t attend_sum(attend *, uint32_t vector, uint32_t lanes); /* over its lanes; of a scalar: so many times itself */

/* ---- the online rule ---- */
uint32_t attend_kept(const attend *);            /* the node whose values are kept between the sweeps: a(k), or the scores */
uint32_t attend_start(attend *, uint32_t lanes); /* the extremum before the first key */
uint32_t attend_extremum(attend *, uint32_t a, uint32_t b);
uint32_t attend_across(attend *, uint32_t vector);                  /* extremum of the lanes */
uint32_t attend_finite(attend *, uint32_t extremum);                /* as reference: never infinite where no key was seen */
void attend_refer(attend *, uint32_t extremum);                     /* references stand for this (finite) extremum in the open scope */
uint32_t attend_correction(attend *, uint8_t exp, uint32_t before); /* exp(c (before - now)); after attend_refer; 0: none needed */
/* The weight of the key whose kept value is given, and the terms of the sums; after attend_refer. */
uint32_t attend_weigh(attend *, uint32_t kept, uint32_t *terms);
/* At the end: extrema and sums become known to the scope; what the accumulated values are multiplied by, 0: nothing. */
uint32_t attend_finish(attend *, uint32_t extremum, const uint32_t *sums);
void attend_output(attend *, uint32_t value); /* stores a result (scalar or along the open lanes) at `now` */

/* A block of the scores: `queries` from `row` on, `keys` from `key` on. */
typedef struct attend_block {
  ir_expr row, key;
  int64_t queries, keys;
} attend_block;
/* A bool: masks by position leave out every score of the block. 0: none can be told. low: the greatest value that masked scores take. */
uint32_t attend_all_masked(attend *, const attend_block *, double *low);

ir_expr attend_batch(const attend *); /* product of the extents of the labels other than row and depth */
void attend_set_batch(attend *, ir_expr number);

/* The shapes of a kernel. Those of tiles say the least queries and keys that they need; false: they do not fit, or are not the quicker ones. */
bool attend_tile_fits(const attend *, int64_t *queries, int64_t *keys); /* explicit vectors */
snt_result attend_build_tile(attend *, uint32_t choice, uint32_t guard_count, const plan_condition *guards);
bool attend_local_fits(const attend *, int64_t *queries, int64_t *keys); /* lanes, by way of local memory */
snt_result attend_build_local(attend *, uint32_t choice, uint32_t guard_count, const plan_condition *guards);
/* One query an item; few: the items of a group share one query. */
snt_result attend_build_items(attend *, bool few, uint32_t choice, uint32_t guard_count, const plan_condition *guards);
#endif
