/* Convolutions of any rank as a contraction over a window view. Groups become a batch label; where each group has one input channel
   (depthwise) that label is the channel axis itself. x [n, c, spatial..], w [m, c / groups, taps..]. */
#include "ir/composites/private.h"

typedef struct conv { /* everything but n and the spatial extents is fixed */
  uint32_t x, w, spatial;
  int64_t groups, channels, outputs; /* in and out channels of a group */
  bool flipped;                      /* w is [c, m / groups, taps..] and runs backwards: a transposed convolution */
  window_desc window;
} conv;
enum { LABEL_N, LABEL_GROUP, LABEL_CHANNEL, LABEL_OUTPUT, LABEL_POSITION = 10, LABEL_TAP = 20 };

static bool fixed(composite_call *c, ir_expr dim, int64_t *out, const char *what) {
  return expr_is_const(c->g->pool, dim, out) || (call_mistake(c, "%s must be fixed", what), false);
}

static bool read_conv(composite_call *c, conv *v, bool transposed) {
  *v = (conv){.x = c->args[0], .w = c->args[1], .flipped = transposed};
  const ir_tensor x = *type_of(c, v->x), w = *type_of(c, v->w);
  int64_t in, first, second;
  if (x.rank < 3 || x.rank != w.rank) return call_mistake(c, "x has rank %u, w %u: both need the same, 3 or more", x.rank, w.rank), false;
  v->spatial = x.rank - 2u;
  v->groups = call_int(c, IR_PARAM_groups, 1);
  if (!call_spatial(c, v->spatial, &v->window)) return false;
  if (!fixed(c, x.dims[1], &in, "the number of channels")) return false;
  if (!fixed(c, w.dims[0], &first, "w") || !fixed(c, w.dims[1], &second, "w")) return false;
  for (uint32_t i = 0; i < v->spatial; i++)
    if (!fixed(c, w.dims[2 + i], &v->window.size[i], "w")) return false;
  if (v->groups < 1 || v->groups > in)
    return call_mistake(c, "x has %lld channels for %lld groups", (long long)in, (long long)v->groups), false;
  const int64_t total = transposed ? first : second * v->groups;
  if (in != total || first % v->groups != 0)
    return call_mistake(c, "x has %lld channels, w suits %lld in %lld groups", (long long)in, (long long)total, (long long)v->groups),
           false;
  v->channels = in / v->groups;
  v->outputs = transposed ? second : first / v->groups;
  return true;
}

static bool is_pointwise(const conv *v) {
  for (uint32_t i = 0; i < v->spatial; i++)
    if (v->window.size[i] != 1 || v->window.low[i] != 0 || v->window.high[i] != 0) return false;
  return true;
}

/* x as positions (and taps, unless each window is a single element). */
static uint32_t put_view(composite_call *c, const conv *v, uint32_t x, uint32_t axis) {
  if (!is_pointwise(v)) {
    window_desc w = v->window;
    w.axis = axis;
    return step_window(c, x, &w);
  }
  for (uint32_t i = 0; x && i < v->spatial; i++) {
    if (v->window.stride[i] == 1) continue;
    expr_pool *pool = c->g->pool;
    const ir_expr last = expr_sub(pool, type_of(c, x)->dims[axis + i], 1);
    x = step_slice(c, x, axis + i, 0, expr_add(pool, expr_div(pool, last, v->window.stride[i]), 1), v->window.stride[i]);
  }
  return x;
}

/* w with the axes [group] [output] [channel] [taps..] that the contraction names; its labels. */
static uint32_t put_weights(composite_call *c, const conv *v, bool with_channel, label_list *labels) {
  const int64_t head[3] = {v->groups, v->flipped ? v->channels : v->outputs, v->flipped ? v->outputs : v->channels};
  const int64_t names[3] = {LABEL_GROUP, v->flipped ? LABEL_CHANNEL : LABEL_OUTPUT, v->flipped ? LABEL_OUTPUT : LABEL_CHANNEL};
  const bool used[3] = {v->groups > 1, v->flipped ? with_channel : v->outputs > 1 || v->groups == 1,
                        v->flipped ? v->outputs > 1 || v->groups == 1 : with_channel};
  ir_expr dims[SNT_MAX_RANK + 1];
  uint32_t rank = 0, w = v->w;
  for (uint32_t i = 0; v->flipped && i < v->spatial; i++)
    if (v->window.size[i] > 1) w = step_slice(c, w, 2 + i, v->window.size[i] - 1, v->window.size[i], -1);
  for (uint32_t i = 0; i < 3; i++)
    if (used[i]) label_add(labels, names[i]), dims[rank++] = head[i];
  for (uint32_t i = 0; i < v->spatial && !is_pointwise(v); i++) label_add(labels, LABEL_TAP + i), dims[rank++] = v->window.size[i];
  return step_reshape(c, w, rank, dims);
}

/* The contraction: [n, (group), (output), positions..], reshaped to [n, m, positions..]. */
static uint32_t put_product(composite_call *c, const conv *v, uint32_t x, bool split, int32_t dtype) {
  contract_desc d = {.dtype = dtype};
  const bool depthwise = v->groups > 1 && v->channels == 1;
  const uint32_t view = put_view(c, v, x, split ? 3 : 2), w = put_weights(c, v, !depthwise, &d.rhs);
  if (!view || !w) return 0;
  label_add(&d.lhs, LABEL_N), label_add(&d.out, LABEL_N);
  if (v->groups > 1) label_add(&d.lhs, LABEL_GROUP), label_add(&d.out, LABEL_GROUP);
  if (!depthwise) label_add(&d.lhs, LABEL_CHANNEL);
  if (v->outputs > 1 || v->groups == 1) label_add(&d.out, LABEL_OUTPUT);
  for (uint32_t i = 0; i < v->spatial; i++) label_add(&d.lhs, LABEL_POSITION + i), label_add(&d.out, LABEL_POSITION + i);
  for (uint32_t i = 0; i < v->spatial && !is_pointwise(v); i++) label_add(&d.lhs, LABEL_TAP + i);
  const uint32_t y = step_contract(c, view, w, &d);
  if (!y) return 0;
  const ir_tensor made = *type_of(c, y);
  ir_expr dims[SNT_MAX_RANK] = {made.dims[0], v->groups * v->outputs};
  for (uint32_t i = 0; i < v->spatial; i++) dims[2 + i] = made.dims[made.rank - v->spatial + i];
  return step_reshape(c, y, 2 + v->spatial, dims);
}

/* Groups whose window view would have more axes than there are: one convolution a group. */
static uint32_t put_each_group(composite_call *c, const conv *v, uint32_t x, int32_t dtype) {
  uint32_t parts[64];
  const int64_t rows = v->flipped ? v->channels : v->outputs;
  if (v->groups > IR_COUNT(parts))
    return call_mistake(c, "more than %u groups of several channels with %u spatial axes", IR_COUNT(parts), v->spatial);
  for (uint32_t i = 0; i < v->groups; i++) {
    conv one = *v;
    one.groups = 1;
    one.w = step_slice(c, v->w, 0, i * rows, rows, 1);
    parts[i] = put_product(c, &one, step_slice(c, x, 1, i * v->channels, v->channels, 1), false, dtype);
  }
  return step_concat(c, 1, (uint32_t)v->groups, parts);
}

static uint32_t put_conv(composite_call *c, const conv *v, int32_t dtype) {
  if (v->groups == 1 || v->channels == 1) return put_product(c, v, v->x, false, dtype);
  if (3 + 2 * v->spatial > SNT_MAX_RANK) return put_each_group(c, v, v->x, dtype);
  const ir_tensor x = *type_of(c, v->x);
  ir_expr dims[SNT_MAX_RANK] = {x.dims[0], v->groups, v->channels};
  for (uint32_t i = 0; i < v->spatial; i++) dims[3 + i] = x.dims[2 + i];
  return put_product(c, v, step_reshape(c, v->x, 3 + v->spatial, dims), true, dtype);
}

/* Narrow floats are summed and biased in f32 and rounded once. */
static int32_t sum_type(const composite_call *c, int32_t result) {
  const bool narrow = c->args[2] && result > 0 && result < SNT_DTYPE_COUNT && ir_dtypes[result].is_float && ir_dtypes[result].bits < 32;
  return narrow ? SNT_F32 : result;
}

static int32_t result_type(const composite_call *c) { return (int32_t)call_expr(c, IR_PARAM_dtype, type_of(c, c->args[0])->dtype); }

static void finish(composite_call *c, uint32_t y) { c->results[0] = step_cast(c, step_bias(c, y, c->args[2], 1), result_type(c)); }

void build_conv(composite_call *c) {
  conv v;
  if (read_conv(c, &v, false)) finish(c, put_conv(c, &v, sum_type(c, result_type(c))));
}

/* ---- transposed: the gradient of a convolution. Result i of an axis is the sum of x[j] w[i - stride j]: i = stride a + b takes the taps b,
   b + stride .. of w, so that the results of one b are a convolution with those, of as many channels as there are b. ---- */

static int64_t ceil_div(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

static uint32_t pad_axes(composite_call *c, uint32_t x, const ir_expr *high) {
  bool needed = false;
  for (uint32_t i = 0; x && i < type_of(c, x)->rank; i++) needed |= high[i] != 0;
  return needed ? ir_add_node(c->g, IR_OP_pad, 1, &x, 1, &(ir_attr_value){IR_ATTR_high, type_of(c, x)->rank, high}, NULL) : x;
}

/* w [c, m, taps..] as [c, m * strides.., taps of each b..]; where the stride does not divide the taps, the last ones are 0. */
static void split_taps(composite_call *c, conv *v, const int64_t *stride) {
  const ir_tensor w = *type_of(c, v->w);
  ir_expr high[SNT_MAX_RANK] = {0}, open[SNT_MAX_RANK] = {w.dims[0], w.dims[1]}, joined[SNT_MAX_RANK] = {w.dims[0]};
  uint32_t perm[SNT_MAX_RANK] = {0, 1};
  for (uint32_t i = 0; i < v->spatial; i++) {
    const int64_t taps = ceil_div(v->window.size[i], stride[i]);
    high[2 + i] = taps * stride[i] - v->window.size[i];
    open[2 + 2 * i] = joined[2 + i] = taps, open[3 + 2 * i] = stride[i];
    perm[2 + i] = 3 + 2 * i, perm[2 + v->spatial + i] = 2 + 2 * i;
    v->outputs *= stride[i];
    v->window.size[i] = taps;
  }
  joined[1] = v->outputs;
  const uint32_t apart = step_reshape(c, pad_axes(c, v->w, high), 2 + 2 * v->spatial, open);
  v->w = step_reshape(c, step_transpose(c, apart, perm), 2 + v->spatial, joined);
}

/* [n, m * strides.., positions..] as [n, m, positions * strides ..]. */
static uint32_t join_results(composite_call *c, const conv *v, uint32_t y, const int64_t *stride) {
  if (!y) return 0;
  const ir_tensor t = *type_of(c, y);
  ir_expr open[SNT_MAX_RANK] = {t.dims[0], t.dims[1]}, joined[SNT_MAX_RANK] = {t.dims[0]};
  uint32_t perm[SNT_MAX_RANK] = {0, 1};
  for (uint32_t i = 0; i < v->spatial; i++) {
    open[1] = expr_div(c->g->pool, open[1], stride[i]);
    open[2 + i] = stride[i], open[2 + v->spatial + i] = t.dims[2 + i];
    perm[2 + 2 * i] = 2 + v->spatial + i, perm[3 + 2 * i] = 2 + i;
    joined[2 + i] = expr_mul(c->g->pool, t.dims[2 + i], stride[i]);
  }
  joined[1] = open[1];
  return step_reshape(c, step_transpose(c, step_reshape(c, y, 2 + 2 * v->spatial, open), perm), 2 + v->spatial, joined);
}

static uint32_t put_transposed(composite_call *c, conv v, const int64_t *extra, int32_t dtype) {
  const window_desc given = v.window;
  const ir_tensor x = *type_of(c, v.x);
  int64_t first[SNT_MAX_RANK];
  split_taps(c, &v, given.stride);
  for (uint32_t i = 0; i < v.spatial; i++) {
    const int64_t stride = given.stride[i], taps = v.window.size[i];
    const int64_t before = ceil_div(-given.low[i], stride),
                  after = ceil_div(extra[i] - given.high[i] - (stride * taps - given.size[i]), stride);
    v.window.low[i] = taps - 1 + before;
    v.window.high[i] = taps - 1 + after;
    v.window.stride[i] = 1;
    first[i] = given.low[i] + before * stride;
  }
  uint32_t y = join_results(c, &v, put_conv(c, &v, dtype), given.stride);
  for (uint32_t i = 0; y && i < v.spatial; i++) {
    const ir_expr inner = expr_mul(c->g->pool, expr_sub(c->g->pool, x.dims[2 + i], 1), given.stride[i]);
    const ir_expr size = expr_add(c->g->pool, inner, expr_int(c->g->pool, given.size[i] - given.low[i] - given.high[i] + extra[i]));
    if (first[i] || size != type_of(c, y)->dims[2 + i]) y = step_slice(c, y, 2 + i, first[i], size, 1);
  }
  return y;
}

/* Where taps are dilated, or most of what the stride leaves apart has none: zeros between the elements, [.., h] -> [.., h, 1] -> [.., h,
   stride] -> [.., h * stride], and the taps backwards. */
static uint32_t put_zeros_between(composite_call *c, const conv *v) {
  const ir_tensor x = *type_of(c, v->x);
  ir_expr split[SNT_MAX_RANK] = {x.dims[0], x.dims[1]}, joined[SNT_MAX_RANK] = {x.dims[0], x.dims[1]}, high[SNT_MAX_RANK] = {0};
  for (uint32_t i = 0; i < v->spatial; i++) {
    split[2 + 2 * i] = x.dims[2 + i], split[3 + 2 * i] = 1;
    high[3 + 2 * i] = v->window.stride[i] - 1;
    joined[2 + i] = expr_mul(c->g->pool, x.dims[2 + i], v->window.stride[i]);
  }
  return step_reshape(c, pad_axes(c, step_reshape(c, v->x, 2 + 2 * v->spatial, split), high), 2 + v->spatial, joined);
}

static uint32_t put_backwards(composite_call *c, conv v, const int64_t *extra, int32_t dtype) {
  for (uint32_t i = 0; i < v.spatial; i++) {
    window_desc *w = &v.window;
    const int64_t reach = w->dilation[i] * (w->size[i] - 1);
    w->low[i] = reach - w->low[i];
    w->high[i] = reach - w->high[i] + extra[i] - (w->stride[i] - 1);
    w->stride[i] = 1;
  }
  return put_conv(c, &v, dtype);
}

void build_conv_transpose(composite_call *c) {
  conv v;
  int64_t extra[SNT_MAX_RANK];
  bool spread = false, sparse = false;
  if (!read_conv(c, &v, true) || !call_list(c, IR_PARAM_output_pads, v.spatial, 0, extra)) return;
  for (uint32_t i = 0; i < v.spatial; i++) {
    /* one position has no neighbours that its taps could meet, whatever the stride is: as far apart as they reach, they are results of one product */
    if (type_of(c, v.x)->dims[2 + i] == 1 && v.window.dilation[i] == 1 && 2 + 2 * v.spatial <= SNT_MAX_RANK)
      v.window.stride[i] = v.window.size[i];
    spread |= v.window.stride[i] > 1;
    sparse |= v.window.dilation[i] > 1 || v.window.stride[i] / 2 > v.window.size[i];
  }
  if (spread && 2 + 2 * v.spatial > SNT_MAX_RANK) {
    call_mistake(c, "%u spatial axes", v.spatial);
    return;
  }
  const int32_t type = sum_type(c, result_type(c));
  if (spread && !sparse) {
    finish(c, put_transposed(c, v, extra, type));
    return;
  }
  if (spread) v.x = put_zeros_between(c, &v);
  if (v.x) finish(c, put_backwards(c, v, extra, type));
}
