/* What several families of operators share, beside onnx/import.h. */
#ifndef ONNX_OPS_H
#define ONNX_OPS_H
#include "onnx/import.h"
#include <stdio.h>

/* ---- ops/common.c ---- */
uint32_t onnx_flat(onnx_call *, uint32_t node);              /* rank 1 */
uint32_t onnx_scalar_in(onnx_call *, uint32_t i);            /* an operand of one element as rank 0 */
const char *onnx_operand_text(onnx_call *, uint32_t i);      /* "%12", or "_" where it is left out */
uint32_t onnx_1(onnx_call *, ir_op, uint32_t a);             /* steps give 0 once something has failed */
uint32_t onnx_2(onnx_call *, ir_op, uint32_t a, uint32_t b); /* shapes are broadcast to each other */
uint32_t onnx_2n(onnx_call *, ir_op, uint32_t a, double b);
uint32_t onnx_select(onnx_call *, uint32_t condition, uint32_t yes, uint32_t no); /* broadcast to each other */
#define onnx_2(c, op, a, b) IR_LAST_FIRST_2(onnx_2, a, b, c, op)
#define onnx_select(c, condition, yes, no) IR_LAST_FIRST_3(onnx_select, condition, yes, no, c)
uint32_t onnx_reduce(onnx_call *, ir_op, uint32_t a, uint32_t mask, bool keep);
uint32_t onnx_iota(onnx_call *, int32_t dtype, uint32_t rank, const ir_expr *dims, uint32_t axis);
uint32_t onnx_slice(onnx_call *, uint32_t node, uint32_t axis, ir_expr start, ir_expr size, int64_t step);
uint32_t onnx_gather(onnx_call *, uint32_t x, uint32_t index, uint32_t axis);
uint32_t onnx_concat(onnx_call *, uint32_t axis, uint32_t count, const uint32_t *parts);
/* Extents of the axes but `axis` are equal, or open and taken to be; false where the import begins again for that. */
bool onnx_demand_beside(onnx_call *, const ir_tensor *a, const ir_tensor *b, uint32_t axis);
bool onnx_demand_meet(onnx_call *, uint32_t a, uint32_t axis, uint32_t b, uint32_t b_axis); /* the same of two axes */
uint32_t onnx_data(onnx_call *, const ir_tensor *, const double *values);                   /* a constant of fixed shape */
const char *onnx_lower(onnx_call *, const char *name, const char *otherwise);               /* a text attribute in small letters */
/* Axes from the attribute, or from input `i` if `i` is not 0: a mask; `none` if they are not given. False after refusing. */
bool onnx_axes(onnx_call *, uint32_t input, uint32_t rank, uint32_t none, uint32_t *mask);
const char *onnx_mask_text(onnx_call *, uint32_t mask); /* [0,2] */

/* ---- ops/basic.c ---- */
uint32_t onnx_convert(onnx_call *, uint32_t x, int32_t to, bool saturate); /* as Cast does */

/* ---- ops/norm.c ---- */
typedef struct onnx_layernorm {
  uint32_t scale, bias; /* bias 0: none */
  int64_t axis;
  double epsilon;
  bool simplified; /* by the mean of the squares */
  uint32_t spread; /* number of the result that is the factor of normalising, where result 1 is the mean; 0: neither is a result */
} onnx_layernorm;
uint32_t onnx_layernorm_of(onnx_call *, uint32_t x, const onnx_layernorm *); /* writes the results beside the first */

/* ---- ops/linear.c ---- */
uint32_t onnx_gemm(onnx_call *); /* of operands 0, 1 and 2, with Gemm's attributes */

/* ---- ops/quant.c ---- */
/* Scales [.., blocks, ..] repeated `block` times along the axis of `x`. */
uint32_t onnx_unblocked(onnx_call *, uint32_t scales, const ir_tensor *x, uint32_t axis, int64_t block);

/* ---- late.c: numbers that are known only when it runs, as expressions ---- */
ir_expr onnx_late_number(onnx_call *, uint32_t node, ir_expr most); /* of a whole number of rank 0, from 0 to `most` */
ir_expr onnx_late_sum(onnx_call *, ir_expr sum, uint32_t node); /* a sum of many late numbers that the node computes, as one of its own */
bool onnx_is_late(const onnx_import *, ir_expr);
ir_expr onnx_most(onnx_call *, ir_expr);                           /* the most that it can be, which is the plan's to say */
ir_expr onnx_dim_in(const onnx_call *, uint32_t i, uint32_t axis); /* an operand's extent: its count, where it has one */
/* The elements of an operand that are extents, late ones as the most that they can be, and which of them is late: -1 none; false also where there are two. */
bool onnx_in_extents(onnx_call *, uint32_t i, onnx_list *out, int32_t *late);
ir_expr onnx_late_element(onnx_call *, uint32_t i, int32_t late); /* of that operand, as it is */

/* ---- bounded.c ---- */
/* Result i, of at most as many places along `axis` as the node has, `count` of them used; where it is an output of the model, the others are `rest`. */
bool onnx_out_counted(onnx_call *, uint32_t i, uint32_t node, ir_expr count, uint32_t axis, double rest);

bool onnx_all_of(onnx_call *, const onnx_value *); /* refuses a value of such an extent */
typedef enum { ONNX_ZERO, ONNX_ONE, ONNX_LEAST, ONNX_GREATEST } onnx_filling;
uint32_t onnx_filler(onnx_call *, int32_t dtype, onnx_filling);
uint32_t onnx_mask(onnx_call *, uint32_t node, ir_expr count, uint32_t axis, uint32_t fill); /* `fill` in the places that are not used */
bool onnx_is_counted(const onnx_call *, uint32_t i, uint32_t axis);                          /* operand i, along that axis */
bool onnx_mask_in(onnx_call *, uint32_t i, onnx_filling);  /* from now on operand i has all its places, the filling where it had none */
bool onnx_fill_in(onnx_call *, uint32_t i, uint32_t fill); /* .., that node */
bool onnx_drop_in(onnx_call *, uint32_t i);                /* .., whatever is there: nobody reads it, or what it makes */
bool onnx_cut_in(onnx_call *, uint32_t i, uint32_t axis,
                 ir_expr extent); /* only so many places of operand i are there, all or some of which are used */

/* ---- ops/control.c ---- */
enum { ONNX_MOST_TRIPS = 256, ONNX_MOST_VALUES = 64 }; /* that are written out; carried, and kept of each trip */
typedef struct onnx_unrolled {                         /* values carried from trip to trip, and a slice of each trip */
  const onnx_graph *body;
  uint32_t carried, slices; /* results of the body: (a condition,) carried values, slices */
  onnx_value *value[ONNX_MOST_VALUES];
  uint32_t *part[ONNX_MOST_VALUES]; /* node of each trip's slice, with an axis of extent 1 */
} onnx_unrolled;
const onnx_graph *onnx_graph_attr(onnx_call *, const char *name);
bool onnx_give(onnx_call *, uint32_t i, onnx_value *);      /* result i is that value */
bool onnx_is_truth(onnx_call *, const onnx_value *);        /* one bool, or refused */
bool onnx_known_flag(onnx_call *, onnx_value *, bool *out); /* whether a value is a known true or false */
bool onnx_start_slices(onnx_call *, onnx_unrolled *);
bool onnx_give_trips(onnx_call *, const onnx_unrolled *, uint32_t trips, const uint32_t *axes); /* carried values, slices side by side */
bool onnx_repeat_graph(onnx_call *, onnx_unrolled *, onnx_value **initial,
                       ir_expr trips);                              /* the graph of a Loop, so many times (ops/loop.c) */
uint32_t onnx_with_axis(onnx_call *, uint32_t node, uint32_t axis); /* one of extent 1 */

/* ---- ops/bounded.c ---- */
bool onnx_compress_by_data(onnx_call *, uint32_t x, uint32_t axis);

/* ---- ops/ml.c: what operators of ai.onnx.ml share ---- */
enum { ONNX_MOST_REALS = 1 << 24 };
void *onnx_room(onnx_call *, size_t count, size_t size); /* for so many and one more, in the graph's arena */
/* A list of numbers, or a tensor by the same name or with _as_tensor behind it; count 0: not given. False after refusing. */
bool onnx_reals(onnx_call *, const char *name, double **out, uint32_t *count);
uint32_t onnx_vector(onnx_call *, int32_t dtype, uint32_t count, const double *values);
uint32_t onnx_transformed(onnx_call *, uint32_t y,
                          const char *how); /* NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO (where scores that are 0 stay so) */
/* Result 0, the label of each row, by `ints`, the attribute, or classlabels_strings: those that are text are told by their number. */
bool onnx_give_labels(onnx_call *, const char *ints, uint32_t number, int64_t classes);
uint32_t onnx_rows_in(onnx_call *); /* operand 0 as [rows, columns], f32 or f64 */

/* ---- ops/spatial.c ---- */
typedef struct onnx_spatial {
  uint32_t count;
  int64_t size[SNT_MAX_RANK], stride[SNT_MAX_RANK], dilation[SNT_MAX_RANK], pads[2 * SNT_MAX_RANK];
} onnx_spatial;
/* kernel_shape (or the last extents of `weights`), strides, dilations, pads and auto_pad of an operand [n, c, spatial..]. */
bool onnx_read_spatial(onnx_call *, const ir_tensor *x, const ir_tensor *weights, onnx_spatial *);
bool onnx_demand_channels(onnx_call *, uint32_t x, uint32_t w); /* of x, where they are open, are what w [m, c / groups, taps..] takes */
const char *onnx_pool_text(onnx_call *, const ir_tensor *x);    /* "size=[..], stride=[..] .." of a pool of x; null after refusing */
/* Where a node's tensors have their channels last: [n, spatial.., c] to [n, c, spatial..], and back. */
uint32_t onnx_channels_second(onnx_call *, uint32_t x, bool last);
uint32_t onnx_channels_back(onnx_call *, uint32_t y, bool last);
const char *onnx_spatial_text(onnx_call *, const onnx_spatial *); /* "stride=[..], pads=[..], dilation=[..]" */
/* Conv of x by operand 1 [and bias, operand 2]. */
uint32_t onnx_conv(onnx_call *, uint32_t x);
const char *onnx_numbers_text(onnx_call *, uint32_t count, const int64_t *at); /* [1,2] */

/* ---- ops/quant.c ---- */
typedef struct onnx_quantized {
  uint32_t codes, scale, zero; /* nodes */
} onnx_quantized;
bool onnx_quantized_dynamically(onnx_call *, uint32_t x, onnx_quantized *out); /* to u8, by the least and the greatest of x */
/* An operand: one number as rank 0, or a vector along `axis` of that rank. */
uint32_t onnx_scale_in(onnx_call *, uint32_t i, uint32_t rank, uint32_t axis);
/* x less the zero point in operand i (a vector along `axis`, or one number; none: 0). In f32 sums of products of such are exact up to 2^24, and beyond that
   off by parts in ten millions, as their scaling is: good for all that is scaled, and as fast as floats are. */
uint32_t onnx_less_zero(onnx_call *, uint32_t x, int32_t dtype, uint32_t i, uint32_t axis);
/* Sums that stand for sums * scales, with the scale and the zero point of the result. */
uint32_t onnx_requantized(onnx_call *, uint32_t sums, uint32_t scales, uint32_t y_scale, uint32_t y_zero);
#define onnx_requantized(c, sums, scales, y_scale, y_zero) IR_LAST_FIRST_2(onnx_requantized, y_scale, y_zero, c, sums, scales)
#endif
