/* Losses, and the optimiser steps of ai.onnx.preview.training. */
#include "onnx/ops.h"

static uint32_t nll(onnx_call *c, uint32_t logarithms) {
  const uint32_t target = onnx_in(c, 1), weight = onnx_in(c, 2);
  char words[2][48] = {"", ""};
  if (!logarithms || !target || (onnx_has(c, 2) && !weight)) return 0;
  if (weight) snprintf(words[0], sizeof words[0], ", %%%u", weight);
  if (onnx_find_attr(c, "ignore_index")) snprintf(words[1], sizeof words[1], ", ignore=%lld", (long long)onnx_int(c, "ignore_index", 0));
  return onnx_add(c, "nll_loss %%%u, %%%u%s, mode=%.10s%s", logarithms, target, words[0], onnx_text(c, "reduction", "mean"), words[1]);
}

bool onnx_op_nll(onnx_call *c) { return onnx_out(c, 0, nll(c, onnx_in(c, 0))); }

bool onnx_op_softmax_loss(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0), logarithms = x ? onnx_add(c, "log_softmax %%%u, axis=1", x) : 0;
  return onnx_out(c, 0, nll(c, logarithms)) && onnx_out(c, 1, logarithms);
}

/* ---- optimisers: rate, step, then all parameters, all gradients, all states ---- */
typedef struct step_values {
  uint32_t rate, step; /* rank 0 */
  double norm;
} step_values;
typedef bool (*optimiser)(onnx_call *, const step_values *, const uint32_t *in, uint32_t *out);

#define add(c, a, b) onnx_2(c, IR_OP_add, a, b)
static uint32_t mul(onnx_call *c, uint32_t a, uint32_t b) { return onnx_2(c, IR_OP_mul, a, b); }
static uint32_t muln(onnx_call *c, uint32_t a, double b) { return onnx_2n(c, IR_OP_mul, a, b); }

static uint32_t regularised(onnx_call *c, const step_values *s, const uint32_t *in) { return add(c, muln(c, in[0], s->norm), in[1]); }

/* H += G^2; X -= R / (1 + T decay) G / (sqrt(H) + epsilon) */
static bool adagrad(onnx_call *c, const step_values *s, const uint32_t *in, uint32_t *out) {
  const double decay = onnx_float(c, "decay_factor", 0), epsilon = onnx_float(c, "epsilon", 1e-6);
  const uint32_t slowed = onnx_2n(c, IR_OP_add, muln(c, s->step, decay), 1), rate = onnx_2(c, IR_OP_div, s->rate, slowed);
  const uint32_t g = regularised(c, s, in);
  out[1] = add(c, in[2], mul(c, g, g));
  const uint32_t size = onnx_2n(c, IR_OP_add, onnx_1(c, IR_OP_sqrt, out[1]), epsilon);
  out[0] = onnx_2(c, IR_OP_sub, in[0], onnx_2(c, IR_OP_div, mul(c, g, rate), size));
  return out[0] != 0;
}

/* V = alpha V + beta G; X -= R V, or R (G + alpha V) by Nesterov. The first step takes beta as 1. */
static bool momentum(onnx_call *c, const step_values *s, const uint32_t *in, uint32_t *out) {
  const double alpha = onnx_float(c, "alpha", 0), beta = onnx_float(c, "beta", 0);
  const bool nesterov = !strcmp(onnx_text(c, "mode", "standard"), "nesterov");
  const uint32_t g = regularised(c, s, in), later = onnx_2n(c, IR_OP_gt, s->step, 0);
  const uint32_t weight = onnx_select(c, later, onnx_like(c, g, beta), onnx_like(c, g, 1));
  out[1] = add(c, muln(c, in[2], alpha), mul(c, g, weight));
  const uint32_t move = nesterov ? add(c, g, muln(c, out[1], alpha)) : out[1];
  out[0] = onnx_2(c, IR_OP_sub, in[0], mul(c, move, s->rate));
  return out[0] != 0;
}

/* V = alpha V + (1 - alpha) G; H = beta H + (1 - beta) G^2; X -= R' V / (sqrt(H) + epsilon), R' corrected for step T > 0 */
static bool adam(onnx_call *c, const step_values *s, const uint32_t *in, uint32_t *out) {
  const double alpha = onnx_float(c, "alpha", 0.9), beta = onnx_float(c, "beta", 0.999), epsilon = onnx_float(c, "epsilon", 1e-6);
  const double after = onnx_float(c, "norm_coefficient_post", 0);
  const uint32_t g = regularised(c, s, in);
  out[1] = add(c, muln(c, in[2], alpha), muln(c, g, 1 - alpha));
  out[2] = add(c, muln(c, in[3], beta), muln(c, mul(c, g, g), 1 - beta));
  uint32_t correction[2];
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t power = onnx_2(c, IR_OP_pow, onnx_like(c, s->step, i ? beta : alpha), s->step);
    correction[i] = onnx_2(c, IR_OP_sub, onnx_like(c, s->step, 1), power);
  }
  const uint32_t ratio = onnx_2(c, IR_OP_div, onnx_1(c, IR_OP_sqrt, correction[1]), correction[0]);
  const uint32_t later = onnx_2n(c, IR_OP_gt, s->step, 0), rate = mul(c, s->rate, onnx_select(c, later, ratio, onnx_like(c, ratio, 1)));
  const uint32_t size = onnx_2n(c, IR_OP_add, onnx_1(c, IR_OP_sqrt, out[2]), epsilon);
  const uint32_t moved = onnx_2(c, IR_OP_sub, in[0], onnx_2(c, IR_OP_div, mul(c, out[1], rate), size));
  out[0] = after == 0 ? moved : muln(c, moved, 1 - after);
  return out[0] != 0;
}

bool onnx_op_training(onnx_call *c) {
  static const struct {
    const char *op;
    optimiser run;
    uint32_t states;
  } kinds[] = {{"Adagrad", adagrad, 1}, {"Momentum", momentum, 1}, {"Adam", adam, 2}};
  uint32_t kind = 0, in[4], out[3];
  while (kind < IR_COUNT(kinds) - 1 && strcmp(kinds[kind].op, c->node->op) != 0) kind++;
  const uint32_t each = 2 + kinds[kind].states, count = c->in_count > 2 ? (c->in_count - 2) / each : 0;
  if (!count || c->in_count != 2 + count * each) return onnx_refuse(c, "%u operands", c->in_count);
  for (uint32_t k = 0; k < count; k++) {
    for (uint32_t i = 0; i < each; i++)
      if (!(in[i] = onnx_in(c, 2 + i * count + k))) return false;
    const int32_t dtype = onnx_type_of(c, in[0])->dtype;
    const step_values s = {.rate = onnx_cast(c, onnx_scalar_in(c, 0), dtype),
                           .step = onnx_cast(c, onnx_scalar_in(c, 1), dtype),
                           .norm = onnx_float(c, "norm_coefficient", 0)};
    if (!s.rate || !s.step || !kinds[kind].run(c, &s, in, out)) return false;
    for (uint32_t i = 0; i <= kinds[kind].states; i++)
      if (!onnx_out(c, i * count + k, out[i])) return false;
  }
  return true;
}
