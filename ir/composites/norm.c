/* Reductions over named axes, softmax and the norms: dependent reductions over the same rows. Computed in f32 when the operand is narrower.
   The variance is centred: the mean first, then the mean of the squared differences. */
#include "ir/composites/private.h"

static void finish(composite_call *c, uint32_t y) { c->results[0] = y ? step_cast(c, y, type_of(c, c->args[0])->dtype) : 0; }

/* The axes named, or all; with `axis`: from it to the last. 0 after a mistake. */
static uint32_t read_mask(composite_call *c, bool from_axis) {
  const uint32_t rank = type_of(c, c->args[0])->rank;
  const ir_param *axes = c->params[IR_PARAM_axes];
  uint32_t mask = 0;
  if (!axes && from_axis) {
    if (rank == 0) return call_mistake(c, "the operand has no axis");
    return ((1u << rank) - 1) & ~((1u << call_axis(c, IR_PARAM_axis, -1, rank)) - 1);
  }
  if (!axes) return (1u << rank) - 1;
  for (uint32_t i = 0; i < axes->count; i++) {
    int64_t axis;
    if (!expr_is_const(c->g->pool, axes->ints[i], &axis) || axis < -(int64_t)rank || axis >= (int64_t)rank)
      return call_mistake(c, "entry %u of axes is outside rank %u", i + 1, rank);
    mask |= 1u << (axis < 0 ? axis + rank : axis);
  }
  return mask;
}

static uint32_t mean_of(composite_call *c, uint32_t x, uint32_t mask, bool keep) {
  const ir_tensor shape = *type_of(c, x);
  const uint32_t sum = step_reduce(c, IR_OP_reduce_sum, x, mask, keep);
  return step_2(c, IR_OP_div, sum, step_count(c, x, &shape, mask));
}

static uint32_t squared(composite_call *c, uint32_t x) { return step_2(c, IR_OP_mul, x, x); }
static uint32_t centred(composite_call *c, uint32_t x, uint32_t mask) { return step_2(c, IR_OP_sub, x, mean_of(c, x, mask, true)); }

void build_sum(composite_call *c) {
  const uint32_t mask = read_mask(c, false);
  finish(c, step_reduce(c, IR_OP_reduce_sum, step_widen(c, c->args[0]), mask, call_has(c, IR_PARAM_keep)));
}

void build_mean(composite_call *c) {
  const uint32_t mask = read_mask(c, false);
  finish(c, mean_of(c, step_widen(c, c->args[0]), mask, call_has(c, IR_PARAM_keep)));
}

void build_variance(composite_call *c) {
  const uint32_t mask = read_mask(c, false), d = centred(c, step_widen(c, c->args[0]), mask);
  finish(c, d ? mean_of(c, squared(c, d), mask, call_has(c, IR_PARAM_keep)) : 0);
}

void build_norm_l1(composite_call *c) {
  const uint32_t mask = read_mask(c, false), size = step_1(c, IR_OP_abs, step_widen(c, c->args[0]));
  finish(c, step_reduce(c, IR_OP_reduce_sum, size, mask, call_has(c, IR_PARAM_keep)));
}

void build_norm_l2(composite_call *c) {
  const uint32_t mask = read_mask(c, false), square = squared(c, step_widen(c, c->args[0]));
  finish(c, step_1(c, IR_OP_sqrt, step_reduce(c, IR_OP_reduce_sum, square, mask, call_has(c, IR_PARAM_keep))));
}

/* ---- softmax ---- */
uint32_t step_softmax(composite_call *c, uint32_t x, uint32_t axis) {
  const uint32_t top = step_reduce(c, IR_OP_reduce_max, x, 1u << axis, true);
  const uint32_t e = step_1(c, IR_OP_exp, step_2(c, IR_OP_sub, x, top));
  return step_2(c, IR_OP_div, e, step_reduce(c, IR_OP_reduce_sum, e, 1u << axis, true));
}

void build_softmax(composite_call *c) {
  const uint32_t axis = call_axis(c, IR_PARAM_axis, -1, type_of(c, c->args[0])->rank);
  finish(c, step_softmax(c, step_widen(c, c->args[0]), axis));
}

void build_log_softmax(composite_call *c) {
  const uint32_t mask = 1u << call_axis(c, IR_PARAM_axis, -1, type_of(c, c->args[0])->rank), x = step_widen(c, c->args[0]);
  const uint32_t shifted = step_2(c, IR_OP_sub, x, step_reduce(c, IR_OP_reduce_max, x, mask, true));
  const uint32_t sum = step_reduce(c, IR_OP_reduce_sum, step_1(c, IR_OP_exp, shifted), mask, true);
  finish(c, step_2(c, IR_OP_sub, shifted, step_1(c, IR_OP_log, sum)));
}

void build_logsumexp(composite_call *c) {
  const uint32_t mask = read_mask(c, false), x = step_widen(c, c->args[0]);
  const bool keep = call_has(c, IR_PARAM_keep);
  const uint32_t shifted = step_2(c, IR_OP_sub, x, step_reduce(c, IR_OP_reduce_max, x, mask, true));
  const uint32_t sum = step_reduce(c, IR_OP_reduce_sum, step_1(c, IR_OP_exp, shifted), mask, keep);
  const uint32_t top = step_reduce(c, IR_OP_reduce_max, x, mask, keep);
  const uint32_t infinite = step_1(c, IR_OP_isinf, top); /* which no difference to is */
  finish(c, step_select(c, infinite, top, step_2(c, IR_OP_add, step_1(c, IR_OP_log, sum), top)));
}

/* ---- norms ---- */
/* Scale or bias over the normalised axes, or aligned at the last axis. */
static uint32_t affine(composite_call *c, ir_op op, uint32_t x, uint32_t operand, uint32_t mask) {
  if (!operand || !x) return x;
  operand = step_widen(c, operand);
  const ir_tensor shape = *type_of(c, x);
  ir_expr axes[SNT_MAX_RANK];
  uint32_t count = 0;
  for (uint32_t i = 0; i < shape.rank; i++)
    if (mask >> i & 1) axes[count++] = i;
  if (operand && type_of(c, operand)->rank == count && count) {
    const ir_attr_value attrs[] = {{IR_ATTR_axes, count, axes}, {IR_ATTR_shape, shape.rank, shape.dims}};
    operand = ir_add_node(c->g, IR_OP_broadcast, 1, &operand, 2, attrs, NULL);
  }
  return step_2(c, op, x, operand);
}

/* x times 1 / sqrt(mean of its squares + epsilon) */
static uint32_t unit_scale(composite_call *c, uint32_t x, uint32_t mask) {
  const uint32_t power = x ? mean_of(c, squared(c, x), mask, true) : 0;
  const uint32_t scale = step_1(c, IR_OP_rsqrt, step_2n(c, IR_OP_add, power, call_number(c, IR_PARAM_epsilon, 1e-5)));
  return step_2(c, IR_OP_mul, x, scale);
}

void build_layernorm(composite_call *c) {
  const uint32_t mask = read_mask(c, true), unit = unit_scale(c, centred(c, step_widen(c, c->args[0]), mask), mask);
  finish(c, affine(c, IR_OP_add, affine(c, IR_OP_mul, unit, c->args[1], mask), c->args[2], mask));
}

void build_rmsnorm(composite_call *c) {
  const uint32_t mask = read_mask(c, true), unit = unit_scale(c, step_widen(c, c->args[0]), mask);
  finish(c, affine(c, IR_OP_mul, unit, c->args[1], mask));
}

/* The four vectors become two before they meet x, so that constant ones fold into a scale and a shift. */
void build_batchnorm(composite_call *c) {
  uint32_t v[5];
  for (uint32_t i = 0; i < 5; i++) v[i] = step_widen(c, c->args[i]);
  const ir_tensor shape = *type_of(c, v[0]);
  if (shape.rank < 2) {
    call_mistake(c, "the operand has no axis of channels");
    return;
  }
  const uint32_t root = step_1(c, IR_OP_rsqrt, step_2n(c, IR_OP_add, v[4], call_number(c, IR_PARAM_epsilon, 1e-5)));
  const uint32_t scale = step_2(c, IR_OP_mul, v[1], root), shift = step_2(c, IR_OP_sub, v[2], step_2(c, IR_OP_mul, v[3], scale));
  const uint32_t scaled = step_2(c, IR_OP_mul, v[0], step_along(c, scale, 1, &shape));
  finish(c, step_2(c, IR_OP_add, scaled, step_along(c, shift, 1, &shape)));
}

static uint32_t channel_affine(composite_call *c, uint32_t y) {
  if (!y) return 0;
  const ir_tensor shape = *type_of(c, y);
  if (c->args[1]) y = step_2(c, IR_OP_mul, y, step_along(c, step_widen(c, c->args[1]), 1, &shape));
  if (c->args[2]) y = step_2(c, IR_OP_add, y, step_along(c, step_widen(c, c->args[2]), 1, &shape));
  return y;
}

void build_groupnorm(composite_call *c) {
  const uint32_t x = step_widen(c, c->args[0]);
  const ir_tensor shape = *type_of(c, x);
  const int64_t groups = call_int(c, IR_PARAM_groups, 0);
  if (groups < 1 || shape.rank < 2 || shape.rank >= SNT_MAX_RANK) {
    call_mistake(c, "groups must be given, and the operand have 2 to 7 axes");
    return;
  }
  ir_expr dims[SNT_MAX_RANK] = {shape.dims[0], groups, expr_div(c->g->pool, shape.dims[1], groups)};
  for (uint32_t i = 2; i < shape.rank; i++) dims[i + 1] = shape.dims[i];
  const uint32_t mask = ((1u << (shape.rank + 1)) - 1) & ~3u, split = step_reshape(c, x, shape.rank + 1, dims);
  const uint32_t unit = split ? unit_scale(c, centred(c, split, mask), mask) : 0;
  finish(c, channel_affine(c, step_reshape(c, unit, shape.rank, shape.dims)));
}

void build_instancenorm(composite_call *c) {
  const uint32_t x = step_widen(c, c->args[0]), rank = type_of(c, x)->rank, mask = ((1u << rank) - 1) & ~3u;
  if (rank < 3) {
    call_mistake(c, "the operand has no spatial axis");
    return;
  }
  finish(c, channel_affine(c, unit_scale(c, centred(c, x, mask), mask)));
}

void build_mean_variance_norm(composite_call *c) {
  const uint32_t mask = read_mask(c, false), d = centred(c, step_widen(c, c->args[0]), mask);
  if (!d) return;
  const uint32_t deviation = step_1(c, IR_OP_sqrt, mean_of(c, squared(c, d), mask, true));
  finish(c, step_2(c, IR_OP_div, d, step_2n(c, IR_OP_add, deviation, call_number(c, IR_PARAM_epsilon, 1e-9))));
}

/* x over its p-norm along the axis; 0 where that is 0. */
void build_lp_norm(composite_call *c) {
  const uint32_t x = step_widen(c, c->args[0]), mask = 1u << call_axis(c, IR_PARAM_axis, -1, type_of(c, x)->rank);
  const double order = call_number(c, IR_PARAM_order, 2);
  if (order != 1 && order != 2) {
    call_mistake(c, "order must be 1 or 2");
    return;
  }
  uint32_t size = step_reduce(c, IR_OP_reduce_sum, order == 1 ? step_1(c, IR_OP_abs, x) : squared(c, x), mask, true);
  if (order == 2) size = step_1(c, IR_OP_sqrt, size);
  const uint32_t none = step_2n(c, IR_OP_eq, size, 0);
  finish(c, step_2(c, IR_OP_div, x, step_select(c, none, step_number(c, size, 1), size)));
}

/* x over (bias + alpha / size * sum of the squares of `size` neighbouring channels)^beta */
void build_lrn(composite_call *c) {
  const uint32_t x = step_widen(c, c->args[0]), rank = type_of(c, x)->rank;
  int64_t size;
  if (rank < 2 || rank == SNT_MAX_RANK || !call_list(c, IR_PARAM_size, 1, 1, &size) || size < 1) {
    call_mistake(c, "needs channels (axis 1), 7 axes at most and size=[channels]");
    return;
  }
  const window_desc w = {
      .axis = 1, .count = 1, .size = {size}, .stride = {1}, .dilation = {1}, .low = {(size - 1) / 2}, .high = {size / 2}};
  const double alpha = call_number(c, IR_PARAM_alpha, 1e-4), beta = call_number(c, IR_PARAM_beta, 0.75);
  const uint32_t sum = step_reduce(c, IR_OP_reduce_sum, step_window(c, squared(c, x), &w), 1u << rank, false);
  const uint32_t base = step_2n(c, IR_OP_add, step_2n(c, IR_OP_mul, sum, alpha / (double)size), call_number(c, IR_PARAM_bias, 1));
  if (beta != 0.75 && beta != 0.5) {
    finish(c, step_2(c, IR_OP_mul, x, step_2n(c, IR_OP_pow, base, -beta)));
    return;
  }
  uint32_t y = step_1(c, IR_OP_rsqrt, base);
  if (beta == 0.75) y = step_2(c, IR_OP_mul, y, step_1(c, IR_OP_sqrt, y));
  finish(c, step_2(c, IR_OP_mul, x, y));
}
