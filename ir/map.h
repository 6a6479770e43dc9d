/* Index maps: where each element of a view comes from. A map takes the coordinates of the output (variables with extents) to coordinates of
   the input, plus a validity predicate (a list of proven-or-tested ranges); outside it the element is the fill value.
   Movement operators and stored layouts are maps; they compose by substitution and simplify in the expression pool. */
#ifndef IR_MAP_H
#define IR_MAP_H
#include "ir/expr.h"

enum { MAP_MAX_CONDITIONS = 24 };
typedef struct map_condition {
  ir_expr value, lo, hi;
} map_condition; /* lo <= value < hi */

/* The coordinates of one access as expressions over whatever variables the caller uses, with the conditions gathered on the way. */
typedef struct map_access {
  uint32_t rank;
  ir_expr at[SNT_MAX_RANK];
  uint32_t condition_count;
  map_condition conditions[MAP_MAX_CONDITIONS];
} map_access;

typedef struct ir_map {
  uint32_t in_rank, out_rank;    /* variables, results */
  uint32_t vars[SNT_MAX_RANK];   /* pool variables standing for the output coordinates */
  ir_expr extents[SNT_MAX_RANK]; /* of the variables */
  map_access to;
} ir_map;

/* Each rewrites `access`, coordinates of the result of the movement, into coordinates of its operand. Conditions are appended only when they
   are not proven. All return false if there is no room for another condition. */
bool map_transpose(expr_pool *, map_access *, const uint32_t *perm); /* result axis i is operand axis perm[i] */
bool map_reshape(expr_pool *, map_access *, uint32_t from_rank, const ir_expr *from_dims, const ir_expr *result_dims);
bool map_broadcast(expr_pool *, map_access *, uint32_t from_rank, const ir_expr *from_dims,
                   const int64_t *axes); /* axes[i]: result axis of operand axis i; extent 1 repeats */
bool map_slice(expr_pool *, map_access *, const ir_expr *starts, const int64_t *steps);
bool map_pad(expr_pool *, map_access *, const ir_expr *low, const ir_expr *from_dims); /* adds 0 <= at < dim */
/* window: operand [.., s0, s1 ..] -> result [.., o0, o1 .., k0, k1 ..]: spatial axes become output positions, taps are appended at the end.
   `first` spatial axis, `count` of them; padding is a condition. */
bool map_window(expr_pool *, map_access *, uint32_t first, uint32_t count, const int64_t *stride, const int64_t *dilation,
                const ir_expr *low, const ir_expr *from_dims);
/* Is one of the conditions from number `first` on false wherever the coordinates go? */
bool map_never_holds(expr_pool *, const map_access *, uint32_t first);
bool map_add_condition(expr_pool *, map_access *, ir_expr value, ir_expr lo, ir_expr hi);
void map_substitute(expr_pool *, map_access *, uint32_t count, const uint32_t *vars,
                    const ir_expr *to); /* expressions in place of variables */
/* The coordinate of an axis, and the condition that it is one. Of one element it is 0 wherever that holds, so that what is known there is found. */
bool map_place(expr_pool *, map_access *, uint32_t axis, ir_expr at, ir_expr extent);
ir_expr map_linear(expr_pool *, const map_access *, const ir_expr *dims); /* row-major offset */
void map_delinear(expr_pool *, ir_expr offset, uint32_t rank, const ir_expr *dims, ir_expr *at);

void map_identity(expr_pool *, ir_map *, uint32_t rank, const ir_expr *extents);
/* out = the map that first applies `outer` (to the final coordinates), then `inner`: inner o outer. */
bool map_compose(expr_pool *, ir_map *out, const ir_map *outer, const ir_map *inner);
bool map_equal(const ir_map *, const ir_map *);
void map_print(const expr_pool *, const ir_map *, ir_text *);
#endif
