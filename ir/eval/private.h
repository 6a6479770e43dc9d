/* What the files of the evaluators share: buffers, strided views of them, the walk over the nodes, and the functions each evaluator supplies.
   A view is what a node's value is: movement operators give new views of old buffers. The reference keeps every element in 8 bytes (double
   for floats, int64 for the others) with an optional bound beside it; the fast evaluator keeps the type's own storage. */
#ifndef IR_EVAL_PRIVATE_H
#define IR_EVAL_PRIVATE_H
#include "ir/eval.h"
#include <math.h>

typedef struct eval_buffer {
  void *data;
  double *bound; /* null: exact (and always in the fast evaluator) */
  size_t bytes, bound_bytes;
  uint32_t references;
  bool borrowed; /* data is the caller's */
} eval_buffer;

typedef struct eval_view {
  eval_buffer *buffer; /* null: no value */
  uint8_t dtype, rank;
  int64_t offset; /* in elements */
  uint64_t count;
  int64_t dims[SNT_MAX_RANK], strides[SNT_MAX_RANK];
} eval_view;

typedef struct eval_ctx eval_ctx;
typedef snt_result (*eval_node_fn)(eval_ctx *, uint32_t node, eval_view *out);
typedef struct eval_engine {
  const char *stage;
  bool bounds; /* elements of 8 bytes, bounds */
  eval_node_fn point, cast, bitcast, reduce, scan, contract, gather, scatter, random;
} eval_engine;

struct eval_ctx {
  const ir_graph *g;
  const ir_eval_info *info;
  const eval_engine *engine;
  snt_host_alloc host;
  snt_diag *diag;
  ir_arena scratch;    /* of the walk: lists, tables */
  eval_view *values;   /* of each node */
  eval_view **results; /* of each repeat: all carried values */
  uint8_t *needed;
  uint32_t *first_dead, *next_dead; /* list of values that die after each node */
};

snt_result eval_run(const eval_engine *, const ir_graph *, const ir_eval_info *, ir_arena *, ir_eval_tensor *outputs, snt_diag *);
snt_result eval_fail(eval_ctx *, uint32_t node, snt_result, const char *text);

/* ---- ir/eval/view.c ---- */
size_t eval_element_bytes(const eval_ctx *, int32_t dtype);
void *eval_take(eval_ctx *, size_t bytes); /* not zeroed; null: out of memory */
void eval_give(eval_ctx *, void *, size_t bytes);
void eval_release(eval_ctx *, eval_view *);
eval_view eval_share(const eval_view *);                            /* one more reference */
snt_result eval_type_of(eval_ctx *, uint32_t node, eval_view *out); /* dtype, dims, dense strides, count; no buffer */
void eval_set_dense(eval_view *);                                   /* strides and count from dims */
snt_result eval_new(eval_ctx *, eval_view *, bool with_bound);      /* a dense buffer for a view that has its dims */
bool eval_is_dense(const eval_view *);
snt_result eval_dense(eval_ctx *, const eval_view *, eval_view *out);   /* shared where it is dense already, else a copy */
void eval_copy(eval_ctx *, const eval_view *from, const eval_view *to); /* same dims; `to` has bounds if `from` has */
void eval_fill(eval_ctx *, const eval_view *, const void *element);
void eval_element(const eval_ctx *, int32_t dtype, int64_t bits,
                  uint64_t *element); /* f64 bits or an int64 as one element, rounded to dtype */
void eval_load(const eval_ctx *, int32_t dtype, const void *data, uint64_t count, void *elements); /* the type's storage to elements */
int64_t eval_offset_at(const eval_view *, uint64_t linear);                         /* of element number `linear`, row-major */
void eval_offsets(const eval_view *, uint64_t first, uint32_t count, int64_t *out); /* the same for a run */
static inline void *eval_at(const eval_ctx *ctx, const eval_view *v) {
  return (char *)v->buffer->data + (size_t)v->offset * eval_element_bytes(ctx, v->dtype);
}
/* Spreads a rank-0 operand over a shape. */
eval_view eval_spread(const eval_view *, const eval_view *shape);

snt_result eval_argsort(eval_ctx *, uint32_t node, eval_view *out); /* ir/eval/sort.c, for both evaluators */
snt_result eval_custom(eval_ctx *, uint32_t node, eval_view *out);  /* ir/eval/custom.c, the same */

/* ---- ir/eval/move.c ---- */
snt_result eval_movement(eval_ctx *, uint32_t node, eval_view *out);
snt_result eval_dim(eval_ctx *, ir_expr, int64_t *out); /* value of an expression over symbols */

/* ---- labelled axes of a contraction, grouped; ir/eval/labels.c ---- */
typedef struct eval_group {
  uint32_t count;
  uint64_t size;
  int64_t dims[SNT_MAX_RANK], out[SNT_MAX_RANK], lhs[SNT_MAX_RANK], rhs[SNT_MAX_RANK];
} eval_group;
typedef struct eval_labels {
  eval_group batch, m, n, k;
} eval_labels; /* m: of lhs only, n: of rhs only, k: summed */
void eval_find_labels(const eval_ctx *, uint32_t node, const eval_view *lhs, const eval_view *rhs, const eval_view *out, eval_labels *);
/* Element offsets of every index of a group along `strides` (one of its arrays), row-major. */
void eval_group_offsets(const eval_group *, const int64_t *strides, int64_t *out);

/* ---- gather and scatter seen as [outer, axis, inner]; ir/eval/labels.c ---- */
typedef struct eval_rows {
  uint64_t outer, extent, inner, picks;
} eval_rows;
eval_rows eval_find_rows(const eval_ctx *, uint32_t node, const eval_view *x, const eval_view *index);
/* Row number of index value i of type `dtype`, or -1 where it is out of range. */
int64_t eval_row(int32_t dtype, int64_t i, uint64_t extent);

/* ---- values with bounds; ir/eval/bound.c ---- */
typedef struct bounded {
  double v, e; /* of an infinite v, an e between: it is a product that overflowed, which one operation with a sum does not (bound_over) */
} bounded;
typedef struct bounded_int {
  int64_t v;
  double e;
} bounded_int;
typedef struct bound_type {
  int32_t dtype;
  double unit, tiny, top, slack;
  bool flushes, narrow, joins;
} bound_type; /* unit: ulp of 1; tiny: least normal; slack: of functions; joins: a product and a sum may be one operation */
bound_type bound_type_of(const eval_ctx *, int32_t dtype);
double bound_ulp(const bound_type *, double v);
static inline bool bound_over(bounded x) { return isinf(x.v) && x.e > 0 && !isinf(x.e); }
bounded bound_store(const bound_type *, bounded exact, double ulps,
                    bool rounds_right);                      /* adds the operator's own error and the type's range */
double bound_at_ends(ir_op, double v, bounded a, bounded b); /* of a monotone operator whose value is v */
bounded bound_float(ir_op, const bound_type *, const bounded *operands);
bounded_int bound_compare(ir_op, const bounded *operands);
bounded_int bound_int(ir_op, int32_t dtype, const bounded_int *operands);
double bound_gamma(double n, const bound_type *accumulated_in);
bound_type bound_accumulator(const eval_ctx *, int32_t dtype); /* at least f32 */
double bound_depth(const eval_ctx *, uint32_t node, uint64_t length);
int64_t eval_int_end(int32_t dtype, bool highest);
bounded_int bound_to_int(int32_t dtype, bounded);
int64_t eval_float_to_int(int32_t dtype, double); /* truncates, saturates, NaN 0 */
double eval_int_to_float(int32_t dtype, int64_t);

/* ---- the reference's operators and its elements ---- */
snt_result ref_point(eval_ctx *, uint32_t node, eval_view *out);
snt_result ref_cast(eval_ctx *, uint32_t node, eval_view *out);
snt_result ref_bitcast(eval_ctx *, uint32_t node, eval_view *out);
snt_result ref_random(eval_ctx *, uint32_t node, eval_view *out);
snt_result ref_reduce(eval_ctx *, uint32_t node, eval_view *out);
snt_result ref_scan(eval_ctx *, uint32_t node, eval_view *out);
snt_result ref_contract(eval_ctx *, uint32_t node, eval_view *out);
snt_result ref_gather(eval_ctx *, uint32_t node, eval_view *out);
snt_result ref_scatter(eval_ctx *, uint32_t node, eval_view *out);
static inline bounded ref_load(const eval_view *v, int64_t at) {
  return (bounded){((const double *)v->buffer->data)[at], v->buffer->bound ? v->buffer->bound[at] : 0};
}
static inline bounded_int ref_load_int(const eval_view *v, int64_t at) {
  return (bounded_int){((const int64_t *)v->buffer->data)[at], v->buffer->bound ? v->buffer->bound[at] : 0};
}
static inline void ref_save(const eval_view *v, uint64_t at, bounded x) {
  ((double *)v->buffer->data)[at] = x.v;
  if (v->buffer->bound) v->buffer->bound[at] = x.e;
}
static inline void ref_save_int(const eval_view *v, uint64_t at, bounded_int x) {
  ((int64_t *)v->buffer->data)[at] = x.v;
  if (v->buffer->bound) v->buffer->bound[at] = x.e;
}
void ref_drop_zero_bounds(eval_ctx *, eval_view *); /* frees the bounds if all are 0 */
#endif
