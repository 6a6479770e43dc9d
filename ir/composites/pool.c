/* Pooling: a window view reduced over its taps. x [n, c, spatial..]. With `ceil` the last windows may begin inside and end outside: what they
   miss is neither an element nor padding. */
#include "ir/composites/private.h"
#include <math.h>

/* Windows to the end of the axis rather than within it; what was added above goes to `extra`. */
static bool round_up(composite_call *c, window_desc *w, int64_t *extra) {
  const ir_tensor shape = *type_of(c, c->args[0]);
  for (uint32_t i = 0; i < w->count; i++) {
    int64_t extent;
    extra[i] = 0;
    if (!call_has(c, IR_PARAM_ceil)) continue;
    if (!expr_is_const(c->g->pool, shape.dims[2 + i], &extent)) return call_mistake(c, "ceil needs fixed extents"), false;
    const int64_t reach = w->dilation[i] * (w->size[i] - 1) + 1, room = extent + w->low[i] + w->high[i] - reach;
    if (room <= -w->stride[i]) continue; /* not even one */
    int64_t last = (room + w->stride[i] - 1) / w->stride[i];
    if (last * w->stride[i] >= extent + w->low[i]) last--; /* it would begin in the padding above */
    extra[i] = last * w->stride[i] - room > 0 ? last * w->stride[i] - room : 0;
    w->high[i] += extra[i];
  }
  return true;
}

static bool read_pool(composite_call *c, window_desc *w, int64_t *extra) {
  const uint32_t rank = type_of(c, c->args[0])->rank;
  if (rank < 3) return call_mistake(c, "the operand has no spatial axis"), false;
  if (!call_has(c, IR_PARAM_size)) return call_mistake(c, "size is missing"), false;
  if (!call_list(c, IR_PARAM_size, rank - 2, 1, w->size) || !call_spatial(c, rank - 2, w)) return false;
  if (rank + w->count > SNT_MAX_RANK) return call_mistake(c, "%u spatial axes are too many", w->count), false;
  return round_up(c, w, extra);
}

static uint32_t taps_mask(uint32_t rank, uint32_t count) { return ((1u << count) - 1) << rank; }

static double lowest(int32_t dtype) {
  const ir_dtype_info *info = &ir_dtypes[dtype];
  return info->is_float ? -INFINITY : info->is_signed ? -ldexp(1, info->bits - 1) : 0;
}

void build_maxpool(composite_call *c) {
  window_desc w = {.fill = lowest(type_of(c, c->args[0])->dtype)};
  int64_t extra[SNT_MAX_RANK];
  const uint32_t rank = type_of(c, c->args[0])->rank;
  if (!read_pool(c, &w, extra)) return;
  c->results[0] = step_reduce(c, IR_OP_reduce_max, step_window(c, c->args[0], &w), taps_mask(rank, w.count), false);
}

/* The coordinate of the chosen tap along spatial axis i: position * stride + tap * dilation - low. */
static uint32_t tap_coordinate(composite_call *c, uint32_t tap, uint32_t i, const window_desc *w) {
  const ir_tensor shape = *type_of(c, tap);
  int64_t below = 1;
  for (uint32_t k = i + 1; k < w->count; k++) below *= w->size[k];
  const uint32_t own = step_2n(c, IR_OP_rem, step_2n(c, IR_OP_div, tap, (double)below), (double)w->size[i]);
  const uint32_t moved = step_2n(c, IR_OP_mul, own, (double)w->dilation[i]);
  const uint32_t start = step_2n(c, IR_OP_mul, step_iota(c, SNT_I64, shape.rank, shape.dims, 2 + i), (double)w->stride[i]);
  return step_2n(c, IR_OP_sub, step_2(c, IR_OP_add, start, moved), (double)w->low[i]);
}

/* Where the maxima are: flat positions in x, the first of equals in the window. */
void build_maxpool_index(composite_call *c) {
  window_desc w = {.fill = lowest(type_of(c, c->args[0])->dtype)};
  int64_t extra[SNT_MAX_RANK];
  const ir_tensor x = *type_of(c, c->args[0]);
  if (!read_pool(c, &w, extra)) return;
  const uint32_t view = step_window(c, c->args[0], &w);
  if (!view) return;
  ir_expr dims[SNT_MAX_RANK];
  memcpy(dims, type_of(c, view)->dims, sizeof dims);
  dims[x.rank] = 1;
  for (uint32_t i = 0; i < w.count; i++) dims[x.rank] = expr_mul(c->g->pool, dims[x.rank], w.size[i]);
  const uint32_t tap = step_reduce(c, IR_OP_reduce_argmax, step_reshape(c, view, x.rank + 1u, dims), 1u << x.rank, false);
  if (!tap) return;
  const ir_tensor shape = *type_of(c, tap);
  uint32_t sum = 0;
  ir_expr stride = 1;
  const bool column_major = call_has(c, IR_PARAM_column_major);
  for (uint32_t k = 0; k < x.rank; k++) {
    const uint32_t i = k >= w.count ? x.rank - 1 - k : column_major ? 2 + k : x.rank - 1 - k;
    const uint32_t at = i < 2 ? step_iota(c, SNT_I64, shape.rank, shape.dims, i) : tap_coordinate(c, tap, i - 2, &w);
    const uint32_t scaled = stride == 1 ? at : step_2(c, IR_OP_mul, at, step_dim(c, stride, SNT_I64));
    sum = sum ? step_2(c, IR_OP_add, sum, scaled) : scaled;
    stride = expr_mul(c->g->pool, stride, x.dims[i]);
  }
  c->results[0] = sum;
}

/* How many taps of each position count: the same window over ones, with `inner` ones as padding. Constant, so it folds. */
static uint32_t valid_taps(composite_call *c, uint32_t x, const window_desc *w, const int64_t *extra, bool inner) {
  const ir_tensor shape = *type_of(c, x);
  ir_tensor type = {.dtype = shape.dtype, .rank = (uint8_t)w->count};
  window_desc spatial = *w;
  spatial.axis = 0;
  for (uint32_t i = 0; i < w->count; i++) {
    type.dims[i] = shape.dims[2 + i];
    if (!inner) continue;
    type.dims[i] = expr_add(c->g->pool, type.dims[i], w->low[i] + w->high[i] - extra[i]);
    spatial.low[i] = 0, spatial.high[i] = extra[i];
  }
  const double one = 1;
  ir_const splat = {.kind = IR_CONST_SPLAT};
  memcpy(&splat.bits, &one, sizeof one);
  const uint32_t ones = ir_add_const(c->g, &type, &splat);
  return step_reduce(c, IR_OP_reduce_sum, step_window(c, ones, &spatial), taps_mask(w->count, w->count), false);
}

void build_avgpool(composite_call *c) {
  window_desc w = {.fill = 0};
  int64_t extra[SNT_MAX_RANK];
  const uint32_t x = step_widen(c, c->args[0]), rank = type_of(c, x)->rank;
  if (!ir_dtypes[type_of(c, x)->dtype].is_float || !read_pool(c, &w, extra)) {
    call_mistake(c, "the operand must be a float");
    return;
  }
  const uint32_t sum = step_reduce(c, IR_OP_reduce_sum, step_window(c, x, &w), taps_mask(rank, w.count), false);
  double taps = 1;
  bool padded = false, cut = false, inner = call_has(c, IR_PARAM_count_pads);
  for (uint32_t i = 0; i < w.count; i++) {
    taps *= (double)w.size[i];
    padded |= w.low[i] != 0 || w.high[i] != extra[i];
    cut |= extra[i] != 0;
  }
  const bool whole = !cut && (!padded || inner);
  const uint32_t mean = whole ? step_2n(c, IR_OP_div, sum, taps) : step_2(c, IR_OP_div, sum, valid_taps(c, x, &w, extra, inner));
  c->results[0] = step_cast(c, mean, type_of(c, c->args[0])->dtype);
}

/* ---- p-norms of windows ---- */
static uint32_t powered(composite_call *c, uint32_t x, double order) {
  if (order == 1) return step_1(c, IR_OP_abs, x);
  if (order == 2) return step_2(c, IR_OP_mul, x, x);
  return step_2n(c, IR_OP_pow, step_1(c, IR_OP_abs, x), order);
}

static uint32_t rooted(composite_call *c, uint32_t x, double order) {
  return order == 1 ? x : order == 2 ? step_1(c, IR_OP_sqrt, x) : step_2n(c, IR_OP_pow, x, 1 / order);
}

void build_lppool(composite_call *c) {
  window_desc w = {.fill = 0};
  int64_t extra[SNT_MAX_RANK];
  const double order = call_number(c, IR_PARAM_order, 2);
  const uint32_t x = step_widen(c, c->args[0]), rank = type_of(c, x)->rank;
  if (!read_pool(c, &w, extra)) return;
  const uint32_t view = step_window(c, powered(c, x, order), &w);
  const uint32_t sum = step_reduce(c, IR_OP_reduce_sum, view, taps_mask(rank, w.count), false);
  c->results[0] = step_cast(c, rooted(c, sum, order), type_of(c, c->args[0])->dtype);
}

/* ---- whole planes ---- */
static uint32_t spatial_mask(composite_call *c) {
  const uint32_t rank = type_of(c, c->args[0])->rank;
  return rank > 2 ? ((1u << rank) - 1) & ~3u : call_mistake(c, "the operand has no spatial axis");
}

void build_global_avgpool(composite_call *c) {
  const uint32_t mask = spatial_mask(c), x = step_widen(c, c->args[0]);
  const ir_tensor shape = *type_of(c, x);
  if (!mask) return;
  const uint32_t sum = step_reduce(c, IR_OP_reduce_sum, x, mask, true), mean = step_2(c, IR_OP_div, sum, step_count(c, x, &shape, mask));
  c->results[0] = step_cast(c, mean, type_of(c, c->args[0])->dtype);
}

void build_global_maxpool(composite_call *c) {
  const uint32_t mask = spatial_mask(c);
  if (mask) c->results[0] = step_reduce(c, IR_OP_reduce_max, c->args[0], mask, true);
}

void build_global_lppool(composite_call *c) {
  const uint32_t mask = spatial_mask(c), x = step_widen(c, c->args[0]);
  const double order = call_number(c, IR_PARAM_order, 2);
  if (!mask) return;
  const uint32_t sum = step_reduce(c, IR_OP_reduce_sum, powered(c, x, order), mask, true);
  c->results[0] = step_cast(c, rooted(c, sum, order), type_of(c, c->args[0])->dtype);
}
