/* Quantisation, dropout, losses and optimiser steps. */
#include "ir/composites/private.h"
#include <math.h>

/* ---- quantisation: a float's cast to an integer type saturates ---- */
static uint32_t by_axis(composite_call *c, uint32_t v, uint32_t like) {
  if (!v || !like) return 0;
  const ir_tensor shape = *type_of(c, like);
  if (type_of(c, v)->rank != 1 || shape.rank < 2) return v;
  return step_along(c, v, call_axis(c, IR_PARAM_axis, 1, shape.rank), &shape);
}

void build_quantize(composite_call *c) {
  const uint32_t x = step_widen(c, c->args[0]), scale = by_axis(c, step_widen(c, c->args[1]), x);
  const int32_t own = c->args[2] ? type_of(c, c->args[2])->dtype : SNT_U8;
  uint32_t y = step_1(c, IR_OP_round, step_2(c, IR_OP_div, x, scale));
  if (y && c->args[2]) y = step_2(c, IR_OP_add, y, by_axis(c, step_cast(c, c->args[2], type_of(c, y)->dtype), y));
  c->results[0] = step_cast(c, y, (int32_t)call_expr(c, IR_PARAM_dtype, own));
}

void build_dequantize(composite_call *c) {
  const uint32_t scale = step_widen(c, c->args[1]);
  const int32_t wide = type_of(c, scale)->dtype, result = type_of(c, c->args[1])->dtype;
  uint32_t y = step_cast(c, c->args[0], wide);
  if (c->args[2]) y = step_2(c, IR_OP_sub, y, by_axis(c, step_cast(c, c->args[2], wide), y));
  c->results[0] = step_cast(c, step_2(c, IR_OP_mul, y, by_axis(c, scale, y)), result);
}

/* ---- dropout ---- */
static uint32_t splat_u64(composite_call *c, uint64_t value) {
  const ir_tensor type = {.dtype = value >> 32 ? SNT_U64 : SNT_U32};
  const ir_const splat = {.kind = IR_CONST_SPLAT, .bits = value};
  return ir_add_const(c->g, &type, &splat);
}

void build_dropout(composite_call *c) {
  const double ratio = call_number(c, IR_PARAM_ratio, 0.5);
  const ir_tensor shape = *type_of(c, c->args[0]);
  if (!(ratio >= 0 && ratio < 1)) {
    call_mistake(c, "ratio must be at least 0 and less than 1");
    return;
  }
  const ir_expr total = ir_tensor_elements(c->g->pool, &shape);
  const uint32_t key = c->args[1] ? c->args[1] : splat_u64(c, (uint64_t)call_int(c, IR_PARAM_seed, 0));
  const uint32_t counter = step_reshape(c, step_iota(c, SNT_U32, 1, &total, 0), shape.rank, shape.dims);
  const uint32_t kept = step_2n(c, IR_OP_ge, step_2(c, IR_OP_random, key, counter), floor(ratio * 0x1p32));
  const uint32_t scaled = step_2n(c, IR_OP_mul, c->args[0], 1 / (1 - ratio));
  c->results[0] = step_select(c, kept, scaled, step_number(c, scaled, 0));
}

/* ---- loss: log(sum(exp(x - max))) + max - x[target], so that no other row of logits is kept ---- */
void build_cross_entropy(composite_call *c) {
  const uint32_t x = step_widen(c, c->args[0]);
  const ir_tensor shape = *type_of(c, x), target = *type_of(c, c->args[1]);
  const uint32_t last = shape.rank - 1u;
  if (shape.rank == 0 || target.rank != last) {
    call_mistake(c, "logits have rank %u, target %u: one less is needed", shape.rank, target.rank);
    return;
  }
  const uint32_t top = step_reduce(c, IR_OP_reduce_max, x, 1u << last, true);
  const uint32_t sum = step_reduce(c, IR_OP_reduce_sum, step_1(c, IR_OP_exp, step_2(c, IR_OP_sub, x, top)), 1u << last, true);
  ir_expr axes[SNT_MAX_RANK], dims[SNT_MAX_RANK];
  for (uint32_t i = 0; i < last; i++) axes[i] = i, dims[i] = shape.dims[i];
  const ir_attr_value attrs[] = {{IR_ATTR_axes, last, axes}, {IR_ATTR_shape, shape.rank, shape.dims}};
  const uint32_t wanted = ir_add_node(c->g, IR_OP_broadcast, 1, &c->args[1], 2, attrs, NULL);
  const uint32_t hit = step_2(c, IR_OP_eq, wanted, step_iota(c, target.dtype, shape.rank, shape.dims, last));
  const uint32_t picked = step_reduce(c, IR_OP_reduce_sum, step_select(c, hit, x, step_number(c, x, 0)), 1u << last, true);
  const uint32_t rest = step_2(c, IR_OP_sub, top, picked), loss = step_2(c, IR_OP_add, step_1(c, IR_OP_log, sum), rest);
  c->results[0] = step_cast(c, step_reshape(c, loss, last, dims), type_of(c, c->args[0])->dtype);
}

/* What stands at the target's class (axis 1) in each place of the others; 0 for a target that is no class. */
static uint32_t at_target(composite_call *c, uint32_t values, uint32_t target) {
  const ir_tensor shape = *type_of(c, values);
  ir_expr axes[SNT_MAX_RANK];
  for (uint32_t i = 0; i + 1 < shape.rank; i++) axes[i] = i == 0 ? 0 : i + 1;
  const ir_attr_value attrs[] = {{IR_ATTR_axes, shape.rank - 1u, axes}, {IR_ATTR_shape, shape.rank, shape.dims}};
  const uint32_t wanted = ir_add_node(c->g, IR_OP_broadcast, 1, &target, 2, attrs, NULL);
  const uint32_t hit = step_2(c, IR_OP_eq, wanted, step_iota(c, type_of(c, target)->dtype, shape.rank, shape.dims, 1));
  const uint32_t none = step_number(c, values, 0);
  return step_reduce(c, IR_OP_reduce_sum, step_select(c, hit, values, none), 1u << 1, false);
}

/* The weight of each target: that of its class, 0 where it is ignored. */
static uint32_t target_weights(composite_call *c, uint32_t x, uint32_t target) {
  const ir_tensor shape = *type_of(c, x);
  uint32_t weight = step_number(c, x, 1);
  if (c->args[2]) weight = at_target(c, step_along(c, step_cast(c, c->args[2], shape.dtype), 1, &shape), target);
  if (!call_has(c, IR_PARAM_ignore) || !weight) return weight;
  const ir_tensor type = *type_of(c, target);
  ir_tensor place = {.dtype = shape.dtype, .rank = type.rank};
  memcpy(place.dims, type.dims, sizeof place.dims);
  weight = step_broadcast(c, weight, &place);
  const uint32_t ignored = step_2n(c, IR_OP_eq, target, (double)call_int(c, IR_PARAM_ignore, 0));
  return step_select(c, ignored, step_number(c, weight, 0), weight);
}

void build_nll_loss(composite_call *c) {
  const uint32_t x = step_widen(c, c->args[0]), target = c->args[1];
  const ir_tensor shape = *type_of(c, x);
  const char *mode = call_has(c, IR_PARAM_mode) ? c->params[IR_PARAM_mode]->word : "mean";
  if (shape.rank < 2 || type_of(c, target)->rank + 1u != shape.rank) {
    call_mistake(c, "needs logarithms [n, classes, ..] and targets [n, ..]");
    return;
  }
  const uint32_t weight = target_weights(c, x, target), picked = at_target(c, x, target);
  uint32_t y = step_2(c, IR_OP_mul, step_1(c, IR_OP_neg, picked), weight);
  if (!y) return;
  const ir_tensor places = *type_of(c, y);
  const uint32_t all = (1u << places.rank) - 1;
  if (strcmp(mode, "none") != 0) y = step_reduce(c, IR_OP_reduce_sum, y, all, false);
  if (strcmp(mode, "mean") == 0 && type_of(c, weight)->rank == 0) y = step_2(c, IR_OP_div, y, step_count(c, x, &places, all));
  else if (strcmp(mode, "mean") == 0) y = step_2(c, IR_OP_div, y, step_reduce(c, IR_OP_reduce_sum, weight, all, false));
  c->results[0] = step_cast(c, y, type_of(c, c->args[0])->dtype);
}

/* ---- optimisers ---- */
static uint32_t blend(composite_call *c, uint32_t old, uint32_t fresh, double keep) {
  old = step_2n(c, IR_OP_mul, old, keep);
  return step_2(c, IR_OP_add, old, step_2n(c, IR_OP_mul, fresh, 1 - keep));
}

void build_sgd(composite_call *c) {
  const uint32_t p = c->args[0];
  const double decay = call_number(c, IR_PARAM_weight_decay, 0);
  uint32_t v = c->args[1];
  if (!call_has(c, IR_PARAM_rate)) call_mistake(c, "rate is missing");
  if (decay != 0) v = step_2(c, IR_OP_add, v, step_2n(c, IR_OP_mul, p, decay));
  if (c->args[2]) v = step_2(c, IR_OP_add, step_2n(c, IR_OP_mul, c->args[2], call_number(c, IR_PARAM_momentum, 0)), v);
  c->results[0] = step_2(c, IR_OP_sub, p, step_2n(c, IR_OP_mul, v, call_number(c, IR_PARAM_rate, 0)));
  c->results[1] = v;
}

/* A moment divided by 1 - beta^step. */
static uint32_t unbiased(composite_call *c, uint32_t moment, double beta) {
  const int64_t step = call_int(c, IR_PARAM_step, 1);
  if (!c->args[4]) return step_2n(c, IR_OP_div, moment, 1 - pow(beta, (double)step));
  const uint32_t power = step_2(c, IR_OP_pow, step_number(c, c->args[4], beta), c->args[4]);
  return step_2(c, IR_OP_div, moment, step_2(c, IR_OP_sub, step_number(c, power, 1), power));
}

void build_adam(composite_call *c) {
  const uint32_t p = c->args[0], gradient = c->args[1];
  const double beta1 = call_number(c, IR_PARAM_beta1, 0.9), beta2 = call_number(c, IR_PARAM_beta2, 0.999);
  const double decay = call_number(c, IR_PARAM_weight_decay, 0);
  const uint32_t m = blend(c, c->args[2], gradient, beta1), v = blend(c, c->args[3], step_2(c, IR_OP_mul, gradient, gradient), beta2);
  const uint32_t root = step_1(c, IR_OP_sqrt, unbiased(c, v, beta2));
  const uint32_t size = step_2n(c, IR_OP_add, root, call_number(c, IR_PARAM_epsilon, 1e-8));
  uint32_t move = step_2(c, IR_OP_div, unbiased(c, m, beta1), size);
  if (decay != 0) move = step_2(c, IR_OP_add, move, step_2n(c, IR_OP_mul, p, decay));
  c->results[0] = step_2(c, IR_OP_sub, p, step_2n(c, IR_OP_mul, move, call_number(c, IR_PARAM_rate, 1e-3)));
  c->results[1] = m;
  c->results[2] = v;
}
