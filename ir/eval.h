/* The two evaluators of a graph on the host.
   ir_eval_reference: every element in f64 beside a bound of how far a correct device kernel may be from it. ir_eval_fast: the tensors' own types,
   no bounds, quick enough to be a device. In: a verified graph, a value for each symbol, inputs. Out: its outputs, then the values of its state
   updates. Both hold one buffer per live value, from the arena's host allocator, and give back what is no longer read.

   The bound. Each operator adds max_ulp of its row at the precision of its type (nothing where the exact result is representable and the
   operator rounds correctly); operand bounds propagate by the ends of their interval or, for products and sums, exactly. Reductions, scans,
   contractions and scatters accumulate in f32 at least (16-bit types round once, when stored) and add gamma(n), n the number of operands
   unless `tree_depth` knows better; a 3x3 convolution of stride 1, unless `direct`, 2^-19 of the largest operand times the sum of the
   weights' sizes. f32 results below 2^-126 may be flushed. Where a threshold lies within the bound (compare, floor, argmax, cast to an
   integer, an index), the bound covers the other side. An infinite bound means that anything is right, NaN too. */
#ifndef IR_EVAL_H
#define IR_EVAL_H
#include "ir/graph.h"

typedef struct ir_eval_tensor {
  ir_tensor type; /* dims are literals */
  uint64_t count; /* elements */
  double *value;  /* reference, float types; row-major */
  int64_t *ints;  /* reference, integers and bool (u64: its bits) */
  double *bound;  /* reference; null: exact */
  void *data;     /* fast: the type's storage, row-major */
} ir_eval_tensor;

/* What FAST multiplies the promised error of each function with, in ULP of the operator itself; sums, products and roundings keep theirs. */
#define IR_FAST_SLACK 2.25

typedef struct ir_eval_info {
  const int64_t *symbols;    /* value of each symbol of the pool; null if it has none */
  const void *const *inputs; /* for each of graph->inputs: row-major data in the type's storage, read only during the call */
  void *const *outputs;      /* fast, optional: where to write each output; null, or a null entry: into the arena */
  uint32_t value_count;      /* values to evaluate instead of outputs and updates; 0: those */
  const uint32_t *values;    /* of the main region */
  uint32_t (*tree_depth)(void *user, uint32_t node, uint64_t length); /* additions on the longest path of a reduction; null: length */
  void *user;
  void (*rest)(void *user); /* after the last reader of a large constant: pages of its file need not stay; null: nobody cares */
  void *rest_user;
  bool keeps_denormals; /* no flushing in the bounds */
  bool direct;          /* 3x3 convolutions are sums over their taps, never over tiles (STRICT, or no rewrites) */
  bool values_only;     /* reference: results of pointwise float operators need no bounds; thresholds meet what their type holds of them */
  bool fast;            /* FAST: functions may err by IR_FAST_SLACK times their promise */
} ir_eval_info;

/* Entries that `outputs` must have: the graph's outputs, then its updates; or value_count. */
uint32_t ir_eval_output_count(const ir_graph *, const ir_eval_info *);
/* Results live in `arena`. The graph's constants may be generated on the way (ir_const_data). */
snt_result ir_eval_reference(const ir_graph *, const ir_eval_info *, ir_arena *, ir_eval_tensor *outputs, snt_diag *);
snt_result ir_eval_fast(const ir_graph *, const ir_eval_info *, ir_arena *, ir_eval_tensor *outputs, snt_diag *);

typedef struct ir_eval_report {
  double max_ratio; /* max(error / bound); infinite where a bound of 0 is missed; passes if <= 1 */
  uint64_t worst_index;
  double got, want, bound; /* of the worst */
  uint64_t nan_mismatch;   /* elements NaN on one side only; they do not enter max_ratio */
} ir_eval_report;
/* `actual`: expected->count elements in the storage of `dtype`, which is the expected one or wider. */
void ir_eval_compare(const ir_eval_tensor *expected, int32_t dtype, const void *actual, ir_eval_report *out);
#endif
