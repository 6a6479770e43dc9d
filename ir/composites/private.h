/* For the builders of composites: the call, and small steps written in primitives. Every step returns a node, 0 once something has failed. */
#ifndef IR_COMPOSITES_PRIVATE_H
#define IR_COMPOSITES_PRIVATE_H
#include "ir/composites.h"
#include "ir/graph_private.h"

typedef struct composite_call {
  ir_graph *g;
  const ir_composite_info *info;
  uint32_t arg_count;
  uint32_t args[8]; /* 0: left out */
  uint32_t results[IR_MAX_RESULTS];
  const ir_param *params[IR_PARAM_COUNT]; /* null: not given */
} composite_call;
typedef void (*composite_build)(composite_call *); /* fills results */

/* ---- parameters ---- */
double call_number(const composite_call *, ir_param_key, double otherwise);
int64_t call_int(composite_call *, ir_param_key, int64_t otherwise); /* a fixed number, else a mistake */
ir_expr call_expr(const composite_call *, ir_param_key, ir_expr otherwise);
static inline bool call_has(const composite_call *c, ir_param_key key) { return c->params[key] != NULL; }
/* `count` numbers into out; each `otherwise` if the parameter is not given. */
bool call_list(composite_call *, ir_param_key, uint32_t count, int64_t otherwise, int64_t *out);
uint32_t call_axis(composite_call *, ir_param_key, int64_t otherwise, uint32_t rank); /* counted from the front */
uint32_t call_mistake(composite_call *, const char *format, ...) IR_PRINTF(2, 3);     /* "softmax: ..." */

/* ---- steps: C does not order the arguments of a call, so at most one of them may be a step, or numbering would depend on the compiler ---- */
static inline const ir_tensor *type_of(const composite_call *c, uint32_t n) { return &ir_at(c->g, n)->type; } /* n 0: the empty type */
uint32_t step_number(composite_call *, uint32_t like, double value); /* a splat of the type of `like` */
uint32_t step_1(composite_call *, ir_op, uint32_t a);
uint32_t step_2(composite_call *, ir_op, uint32_t a, uint32_t b); /* shapes are broadcast to each other, aligned at the last axis */
uint32_t step_2n(composite_call *, ir_op, uint32_t a, double b);
uint32_t step_select(composite_call *, uint32_t condition, uint32_t yes, uint32_t no);
uint32_t step_cast(composite_call *, uint32_t a, int32_t dtype);                               /* a itself if it has the type */
uint32_t step_widen(composite_call *, uint32_t a);                                             /* floats narrower than f32 to f32 */
uint32_t step_broadcast(composite_call *, uint32_t a, const ir_tensor *shape);                 /* aligned at the last axis */
uint32_t step_along(composite_call *, uint32_t vector, uint32_t axis, const ir_tensor *shape); /* rank 1 along an axis; rank 0 as it is */
uint32_t step_reduce(composite_call *, ir_op, uint32_t a, uint32_t mask, bool keep);           /* mask of axes */
uint32_t step_reshape(composite_call *, uint32_t a, uint32_t rank, const ir_expr *dims);
uint32_t step_transpose(composite_call *, uint32_t a, const uint32_t *perm);
uint32_t step_slice(composite_call *, uint32_t a, uint32_t axis, ir_expr start, ir_expr size, int64_t step);
uint32_t step_concat(composite_call *, uint32_t axis, uint32_t count, const uint32_t *parts);
uint32_t step_iota(composite_call *, int32_t dtype, uint32_t rank, const ir_expr *dims, uint32_t axis);
uint32_t step_dim(composite_call *, ir_expr value, int32_t dtype); /* a number known when symbols are: a splat if it is fixed */
/* Number of elements under the masked axes as a value of the type of `like`. */
uint32_t step_count(composite_call *, uint32_t like, const ir_tensor *shape, uint32_t mask);
uint32_t step_gather(composite_call *, uint32_t x, uint32_t index, uint32_t axis);
uint32_t step_from_end(composite_call *, uint32_t index, ir_expr extent); /* a negative index counted from the end of the extent */
typedef struct label_list {
  int16_t at[2 * SNT_MAX_RANK];
  uint32_t count;
} label_list; /* small numbers, one an axis */
typedef struct contract_desc {
  label_list lhs, rhs, out;
  int32_t dtype;
} contract_desc; /* dtype 0: that of the operands */
static inline void label_add(label_list *l, int64_t label) {
  if (l->count < 2 * SNT_MAX_RANK) l->at[l->count++] = (int16_t)label;
}
uint32_t step_contract(composite_call *, uint32_t a, uint32_t b, const contract_desc *);
typedef struct window_desc {
  uint32_t axis, count;
  int64_t size[SNT_MAX_RANK], stride[SNT_MAX_RANK], dilation[SNT_MAX_RANK], low[SNT_MAX_RANK], high[SNT_MAX_RANK];
  double fill;
} window_desc;
uint32_t step_window(composite_call *, uint32_t a, const window_desc *);
uint32_t step_softmax(composite_call *, uint32_t x, uint32_t axis);             /* x is wide */
uint32_t step_bias(composite_call *, uint32_t x, uint32_t bias, uint32_t axis); /* bias 0: x itself */
/* Spatial parameters of convolutions and pools: stride, dilation, pads around axes 2... */
bool call_spatial(composite_call *, uint32_t spatial, window_desc *);

#define COMPOSITE(name, ...) void build_##name(composite_call *);
#include "ir/composites.def"
#undef COMPOSITE
#endif
