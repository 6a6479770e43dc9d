/* Pooling: a window view reduced over its taps. x [n, c, spatial..]. */
#include "ir/composites_private.h"
#include <math.h>

static bool read_pool(composite_call *c, window_desc *w) {
  const uint32_t rank = type_of(c, c->args[0])->rank;
  if (rank < 3) return call_mistake(c, "the operand has no spatial axis"), false;
  if (!call_has(c, IR_PARAM_size)) return call_mistake(c, "size is missing"), false;
  if (!call_list(c, IR_PARAM_size, rank - 2, 1, w->size) || !call_spatial(c, rank - 2, w)) return false;
  if (rank + w->count > SNT_MAX_RANK) return call_mistake(c, "%u spatial axes are too many", w->count), false;
  return true;
}

static uint32_t taps_mask(uint32_t rank, uint32_t count) { return ((1u << count) - 1) << rank; }

static double lowest(int32_t dtype) {
  const ir_dtype_info *info = &ir_dtypes[dtype];
  return info->is_float ? -INFINITY : info->is_signed ? -ldexp(1, info->bits - 1) : 0;
}

void build_maxpool(composite_call *c) {
  window_desc w = {.fill = lowest(type_of(c, c->args[0])->dtype)};
  const uint32_t rank = type_of(c, c->args[0])->rank;
  if (!read_pool(c, &w)) return;
  c->results[0] = step_reduce(c, IR_OP_reduce_max, step_window(c, c->args[0], &w), taps_mask(rank, w.count), false);
}

/* How many taps of each position are elements: the same window over ones. Constant, so it folds. */
static uint32_t valid_taps(composite_call *c, uint32_t x, const window_desc *w) {
  const ir_tensor shape = *type_of(c, x);
  ir_tensor type = {.dtype = shape.dtype, .rank = (uint8_t)w->count};
  memcpy(type.dims, &shape.dims[2], w->count * sizeof *type.dims);
  const double one = 1;
  ir_const splat = {.kind = IR_CONST_SPLAT};
  memcpy(&splat.bits, &one, sizeof one);
  window_desc spatial = *w;
  spatial.axis = 0;
  const uint32_t ones = ir_add_const(c->g, &type, &splat);
  return step_reduce(c, IR_OP_reduce_sum, step_window(c, ones, &spatial), taps_mask(w->count, w->count), false);
}

void build_avgpool(composite_call *c) {
  window_desc w = {.fill = 0};
  const uint32_t x = step_widen(c, c->args[0]), rank = type_of(c, x)->rank;
  if (!ir_dtypes[type_of(c, x)->dtype].is_float || !read_pool(c, &w)) {
    call_mistake(c, "the operand must be a float");
    return;
  }
  const uint32_t sum = step_reduce(c, IR_OP_reduce_sum, step_window(c, x, &w), taps_mask(rank, w.count), false);
  double taps = 1;
  bool padded = false;
  for (uint32_t i = 0; i < w.count; i++) taps *= (double)w.size[i], padded |= w.low[i] != 0 || w.high[i] != 0;
  const bool whole = !padded || call_has(c, IR_PARAM_count_pads);
  const uint32_t mean = whole ? step_2n(c, IR_OP_div, sum, taps) : step_2(c, IR_OP_div, sum, valid_taps(c, x, &w));
  c->results[0] = step_cast(c, mean, type_of(c, c->args[0])->dtype);
}

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
