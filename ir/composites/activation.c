/* Activations. Transcendental ones are computed in f32 when the operand is narrower: the casts fold into loads and stores. */
#include "ir/composites/private.h"
#include <math.h>

/* A narrow operand widened; finish() casts the result back. */
static uint32_t wide(composite_call *c) { return step_widen(c, c->args[0]); }
static void finish(composite_call *c, uint32_t y) { c->results[0] = y ? step_cast(c, y, type_of(c, c->args[0])->dtype) : 0; }

static uint32_t add(composite_call *c, uint32_t a, double b) { return step_2n(c, IR_OP_add, a, b); }
static uint32_t mul(composite_call *c, uint32_t a, double b) { return step_2n(c, IR_OP_mul, a, b); }
static uint32_t between(composite_call *c, uint32_t a, double low, double high) {
  return step_2n(c, IR_OP_min, step_2n(c, IR_OP_max, a, low), high);
}

void build_relu(composite_call *c) { c->results[0] = step_2n(c, IR_OP_max, c->args[0], 0); }
void build_relu6(composite_call *c) { c->results[0] = between(c, c->args[0], 0, 6); }

static uint32_t slope_below_zero(composite_call *c, uint32_t x, uint32_t scaled) {
  return step_select(c, step_2n(c, IR_OP_lt, x, 0), scaled, x);
}

void build_leaky_relu(composite_call *c) {
  const uint32_t x = c->args[0];
  c->results[0] = slope_below_zero(c, x, mul(c, x, call_number(c, IR_PARAM_alpha, 0.01)));
}

void build_prelu(composite_call *c) {
  const ir_tensor shape = *type_of(c, c->args[0]);
  uint32_t slope = c->args[1];
  const bool by_channel = shape.rank > 1 && type_of(c, slope)->rank == 1 && type_of(c, slope)->dims[0] == shape.dims[1];
  slope = by_channel ? step_along(c, slope, 1, &shape) : step_broadcast(c, slope, &shape);
  c->results[0] = slope_below_zero(c, c->args[0], step_2(c, IR_OP_mul, c->args[0], slope));
}

void build_thresholded_relu(composite_call *c) {
  const uint32_t x = c->args[0], kept = step_2n(c, IR_OP_gt, x, call_number(c, IR_PARAM_alpha, 1));
  c->results[0] = step_select(c, kept, x, step_number(c, x, 0));
}

void build_shrink(composite_call *c) {
  const uint32_t x = c->args[0];
  const double bound = call_number(c, IR_PARAM_alpha, 0.5), bias = call_number(c, IR_PARAM_bias, 0);
  const uint32_t above = step_2n(c, IR_OP_gt, x, bound), below = step_2n(c, IR_OP_lt, x, -bound);
  const uint32_t lifted = add(c, x, bias), middle = step_select(c, below, lifted, step_number(c, x, 0));
  c->results[0] = step_select(c, above, add(c, x, -bias), middle);
}

static uint32_t scaled_expm1(composite_call *c, uint32_t x, double alpha) { return mul(c, step_1(c, IR_OP_expm1, x), alpha); }

void build_elu(composite_call *c) {
  const uint32_t x = wide(c), positive = step_2n(c, IR_OP_gt, x, 0);
  finish(c, step_select(c, positive, x, scaled_expm1(c, x, call_number(c, IR_PARAM_alpha, 1))));
}

void build_selu(composite_call *c) {
  const double alpha = call_number(c, IR_PARAM_alpha, 1.67326319217681884765625);
  const double gamma = call_number(c, IR_PARAM_scale, 1.05070102214813232421875);
  const uint32_t x = wide(c), positive = step_2n(c, IR_OP_gt, x, 0);
  finish(c, mul(c, step_select(c, positive, x, scaled_expm1(c, x, alpha)), gamma));
}

void build_celu(composite_call *c) {
  const double alpha = call_number(c, IR_PARAM_alpha, 1);
  const uint32_t x = wide(c), below = scaled_expm1(c, mul(c, x, 1 / alpha), alpha);
  const uint32_t positive = step_2n(c, IR_OP_max, x, 0), negative = step_2n(c, IR_OP_min, below, 0);
  finish(c, step_2(c, IR_OP_add, positive, negative));
}

void build_gelu(composite_call *c) {
  const uint32_t x = wide(c), e = add(c, step_1(c, IR_OP_erf, mul(c, x, sqrt(0.5))), 1), half = mul(c, x, 0.5);
  finish(c, step_2(c, IR_OP_mul, half, e));
}

void build_gelu_tanh(composite_call *c) {
  const uint32_t x = wide(c), square = step_2(c, IR_OP_mul, x, x);
  const uint32_t linear = mul(c, x, 0.79788456080286535588), curve = add(c, mul(c, square, 0.044715), 1);
  const uint32_t t = add(c, step_1(c, IR_OP_tanh, step_2(c, IR_OP_mul, linear, curve)), 1), half = mul(c, x, 0.5);
  finish(c, step_2(c, IR_OP_mul, half, t));
}

void build_silu(composite_call *c) {
  const double beta = call_number(c, IR_PARAM_beta, 1);
  const uint32_t x = wide(c), gate = step_1(c, IR_OP_sigmoid, beta == 1 ? x : mul(c, x, beta));
  finish(c, step_2(c, IR_OP_mul, x, gate));
}

void build_swiglu(composite_call *c) {
  const uint32_t x = wide(c), gate = step_2(c, IR_OP_mul, x, step_1(c, IR_OP_sigmoid, x));
  finish(c, step_2(c, IR_OP_mul, gate, step_widen(c, c->args[1])));
}

static uint32_t softplus(composite_call *c, uint32_t x) {
  const uint32_t tail = step_1(c, IR_OP_log1p, step_1(c, IR_OP_exp, step_1(c, IR_OP_neg, step_1(c, IR_OP_abs, x))));
  return step_2(c, IR_OP_add, step_2n(c, IR_OP_max, x, 0), tail);
}

void build_softplus(composite_call *c) { finish(c, softplus(c, wide(c))); }

void build_mish(composite_call *c) {
  const uint32_t x = wide(c);
  finish(c, step_2(c, IR_OP_mul, x, step_1(c, IR_OP_tanh, softplus(c, x))));
}

void build_hardswish(composite_call *c) {
  const uint32_t x = wide(c);
  finish(c, step_2(c, IR_OP_mul, x, between(c, add(c, mul(c, x, 1.0 / 6), 0.5), 0, 1)));
}

void build_hardsigmoid(composite_call *c) {
  const double alpha = call_number(c, IR_PARAM_alpha, 0.2), beta = call_number(c, IR_PARAM_beta, 0.5);
  finish(c, between(c, add(c, mul(c, wide(c), alpha), beta), 0, 1));
}

void build_softsign(composite_call *c) {
  const uint32_t x = wide(c);
  finish(c, step_2(c, IR_OP_div, x, add(c, step_1(c, IR_OP_abs, x), 1)));
}

void build_clip(composite_call *c) {
  uint32_t y = c->args[0];
  if (c->args[1]) y = step_2(c, IR_OP_max, y, c->args[1]);
  else if (call_has(c, IR_PARAM_low)) y = step_2n(c, IR_OP_max, y, call_number(c, IR_PARAM_low, 0));
  if (c->args[2]) y = step_2(c, IR_OP_min, y, c->args[2]);
  else if (call_has(c, IR_PARAM_high)) y = step_2n(c, IR_OP_min, y, call_number(c, IR_PARAM_high, 0));
  c->results[0] = y;
}
