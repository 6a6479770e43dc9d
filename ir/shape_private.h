/* Type inference: what a rule sees and gives. In: operands and attributes as written. Out: the result's type, and the attributes complete:
   defaults filled in, negative axes counted from the front, contract labels renumbered. */
#ifndef IR_SHAPE_PRIVATE_H
#define IR_SHAPE_PRIVATE_H
#include "ir/graph.h"

enum { SHAPE_MAX_INTS = SNT_MAX_RANK };
typedef struct shape_query {
  const ir_graph *g;
  expr_pool *pool;
  ir_op op;
  uint32_t arg_count;
  const uint32_t *args;
  const ir_tensor *given;
  snt_diag *diag;
  ir_tensor out;
  uint64_t has; /* keys, a bit each: only theirs of what follows is set */
  ir_attr_value attr[IR_ATTR_COUNT];
  ir_expr ints[IR_ATTR_COUNT][SHAPE_MAX_INTS];
} shape_query;
typedef snt_result (*shape_rule)(shape_query *);

snt_result shape_infer(shape_query *, const ir_graph *, const ir_node_desc *, snt_diag *);
/* Element type, rank, extents that may hold, number of elements. */
snt_result shape_check_type(expr_pool *, const ir_tensor *, snt_diag *);
void shape_print_type(const expr_pool *, const ir_tensor *, ir_text *); /* f32[n,4] */

/* ---- for the rules ---- */
static inline const ir_tensor *shape_arg(const shape_query *q, uint32_t i) { return &ir_at(q->g, q->args[i])->type; }
snt_result shape_fail(shape_query *, const char *format, ...) IR_PRINTF(2, 3); /* "op: ..." as SNT_E_SHAPE */
const char *shape_name_type(shape_query *, const ir_tensor *);                 /* for messages; lives in the pool's arena */
const char *shape_name_dim(shape_query *, ir_expr);
/* Stores a complete value; count at most SHAPE_MAX_INTS. */
void shape_set(shape_query *, ir_attr_key, uint32_t count, const ir_expr *ints);
static inline bool shape_has(const shape_query *q, ir_attr_key key) { return q->has >> key & 1; }
snt_result shape_need(shape_query *, ir_attr_key);
/* A list of exactly `count` entries; `otherwise` for each if the attribute is absent. */
snt_result shape_list(shape_query *, ir_attr_key, uint32_t count, int64_t otherwise);
/* Axis i of the list as a number in [0, rank), normalised in place. */
snt_result shape_axis(shape_query *, ir_attr_key, uint32_t i, uint32_t rank, uint32_t *out);
/* Operand i has an element type of the row's classes; `storage` types (8-bit floats, 4-bit integers) are refused unless allowed. */
snt_result shape_class(shape_query *, uint32_t i, bool storage);
snt_result shape_common(shape_query *, uint32_t first); /* the shape that operands first.. have, those of rank 0 aside */
snt_result shape_fill_value(shape_query *);             /* the `value` of pad and window: 0 if absent */

snt_result shape_given(shape_query *);
snt_result shape_random(shape_query *);
snt_result shape_same(shape_query *);
snt_result shape_bool(shape_query *);
snt_result shape_select(shape_query *);
snt_result shape_dot4(shape_query *);
snt_result shape_cast(shape_query *);
snt_result shape_bitcast(shape_query *);
snt_result shape_reduce(shape_query *);
snt_result shape_reduce_index(shape_query *);
snt_result shape_contract(shape_query *);
snt_result shape_reshape(shape_query *);
snt_result shape_transpose(shape_query *);
snt_result shape_broadcast(shape_query *);
snt_result shape_slice(shape_query *);
snt_result shape_pad(shape_query *);
snt_result shape_concat(shape_query *);
snt_result shape_window(shape_query *);
snt_result shape_words(shape_query *);
snt_result shape_argsort(shape_query *);
snt_result shape_gather(shape_query *);
snt_result shape_scatter(shape_query *);
snt_result shape_repeat(shape_query *);
snt_result shape_loop(shape_query *);
snt_result shape_pick(shape_query *);
snt_result shape_custom(shape_query *);
snt_result shape_opaque(shape_query *);
#endif
