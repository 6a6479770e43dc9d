/* Normalisations with more results or other scales than the composites', and dropout. */
#include "onnx/ops.h"

/* A vector along an axis of `type`. */
static uint32_t along(onnx_call *c, uint32_t vector, uint32_t axis, const ir_tensor *type) {
  ir_expr dims[SNT_MAX_RANK];
  if (!vector) return 0;
  for (uint32_t i = 0; i < type->rank; i++) dims[i] = i == axis ? onnx_type_of(c, vector)->dims[0] : 1;
  return onnx_reshape(c, vector, type->rank, dims);
}

/* running * momentum + new * (1 - momentum) */
static uint32_t blended(onnx_call *c, uint32_t running, uint32_t fresh, double momentum) {
  const uint32_t kept = onnx_2n(c, IR_OP_mul, running, momentum), added = onnx_2n(c, IR_OP_mul, fresh, 1 - momentum);
  return onnx_2(c, IR_OP_add, kept, onnx_cast(c, added, running ? onnx_type_of(c, running)->dtype : 0));
}

static bool batchnorm_training(onnx_call *c, uint32_t x, double epsilon, double momentum) {
  const ir_tensor type = *onnx_type_of(c, x);
  const uint32_t mask = ((1u << type.rank) - 1) & ~2u;
  const uint32_t mean = onnx_add(c, "mean %%%u, axes=%s", x, onnx_mask_text(c, mask));
  const uint32_t variance = mean ? onnx_add(c, "variance %%%u, axes=%s", x, onnx_mask_text(c, mask)) : 0;
  const uint32_t scale = onnx_in(c, 1), bias = onnx_in(c, 2);
  if (!variance || !scale || !bias) return false;
  const uint32_t y = onnx_add(c, "batchnorm %%%u, %%%u, %%%u, %%%u, %%%u, epsilon=%a", x, scale, bias, mean, variance, epsilon);
  return onnx_out(c, 0, y) && onnx_out(c, 1, blended(c, onnx_in(c, 3), mean, momentum)) &&
         onnx_out(c, 2, blended(c, onnx_in(c, 4), variance, momentum));
}

bool onnx_op_batchnorm(onnx_call *c) {
  const double epsilon = onnx_float(c, "epsilon", 1e-5), momentum = onnx_float(c, "momentum", 0.9);
  const bool training = c->opset >= 14 && onnx_int(c, "training_mode", 0) != 0;
  onnx_ignore(c, "consumed_inputs");
  if (onnx_int(c, "spatial", 1) == 0) return onnx_refuse(c, "spatial = 0");
  if (c->opset < 7 && onnx_int(c, "is_test", 0) == 0 && c->out_count > 1) return onnx_refuse(c, "training before operator set 14");
  const uint32_t x = onnx_in(c, 0);
  if (!x) return false;
  if (training) return batchnorm_training(c, x, epsilon, momentum);
  const uint32_t v[] = {onnx_in(c, 1), onnx_in(c, 2), onnx_in(c, 3), onnx_in(c, 4)};
  if (!v[0] || !v[1] || !v[2] || !v[3]) return false;
  return onnx_out(c, 0, onnx_add(c, "batchnorm %%%u, %%%u, %%%u, %%%u, %%%u, epsilon=%a", x, v[0], v[1], v[2], v[3], epsilon));
}

/* What it was normalised by, as f32 whatever x is: the mean, and 1 / sqrt(variance + epsilon), or 1 / sqrt(mean of the squares + epsilon) alone. */
static bool moments(onnx_call *c, uint32_t x, uint32_t axis, const onnx_layernorm *l) {
  const uint32_t mask = ((1u << onnx_type_of(c, x)->rank) - 1) & ~((1u << axis) - 1);
  const char *axes = onnx_mask_text(c, mask);
  x = onnx_cast(c, x, SNT_F32);
  if (!x || (!l->simplified && !onnx_out(c, 1, onnx_add(c, "mean %%%u, axes=%s, keep", x, axes)))) return false;
  if (c->out_count <= l->spread) return true;
  const uint32_t spread = l->simplified ? onnx_add(c, "mean %%%u, axes=%s, keep", onnx_2(c, IR_OP_mul, x, x), axes)
                                        : onnx_add(c, "variance %%%u, axes=%s, keep", x, axes);
  return onnx_out(c, l->spread, onnx_1(c, IR_OP_rsqrt, onnx_2n(c, IR_OP_add, spread, l->epsilon)));
}

uint32_t onnx_layernorm_of(onnx_call *c, uint32_t x, const onnx_layernorm *l) {
  char bias[24] = "";
  uint32_t axis;
  if (!x || !l->scale || !onnx_axis(c, l->axis, onnx_type_of(c, x)->rank, &axis)) return 0;
  if (l->bias) snprintf(bias, sizeof bias, ", %%%u", l->bias);
  const char *name = l->simplified ? "rmsnorm" : "layernorm";
  const uint32_t y = onnx_add(c, "%s %%%u, %%%u%s, axis=%u, epsilon=%a", name, x, l->scale, bias, axis, l->epsilon);
  return !y || !l->spread || c->out_count < 2 || moments(c, x, axis, l) ? y : 0;
}

bool onnx_op_layernorm(onnx_call *c) {
  onnx_layernorm l = {.scale = onnx_in(c, 1), .bias = onnx_in(c, 2), .axis = onnx_int(c, "axis", -1)};
  l.epsilon = onnx_float(c, "epsilon", 1e-5), l.simplified = !strcmp(c->node->op, "SimplifiedLayerNormalization");
  l.spread = l.simplified ? 1 : 2;
  onnx_ignore(c, "stash_type");
  return onnx_out(c, 0, onnx_layernorm_of(c, onnx_in(c, 0), &l));
}

/* Before 21 scale and bias are those of groups, not of channels. */
bool onnx_op_groupnorm(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0), scale = onnx_in(c, 1), bias = onnx_in(c, 2);
  const int64_t groups = onnx_int(c, "num_groups", 0);
  const double epsilon = onnx_float(c, "epsilon", 1e-5);
  onnx_ignore(c, "stash_type");
  if (!x || !scale || !bias) return false;
  if (c->opset >= 21)
    return onnx_out(c, 0, onnx_add(c, "groupnorm %%%u, %%%u, %%%u, groups=%lld, epsilon=%a", x, scale, bias, (long long)groups, epsilon));
  const ir_tensor type = *onnx_type_of(c, x);
  const uint32_t unit = onnx_add(c, "groupnorm %%%u, groups=%lld, epsilon=%a", x, (long long)groups, epsilon);
  if (!unit || groups < 1 || type.rank < 2 || type.rank >= SNT_MAX_RANK) return onnx_refuse(c, "rank %u", type.rank);
  ir_tensor split = {.dtype = type.dtype, .rank = (uint8_t)(type.rank + 1), .dims = {type.dims[0], groups}};
  for (uint32_t i = 1; i < type.rank; i++) split.dims[i + 1] = type.dims[i];
  split.dims[2] = expr_div(c->g->pool, type.dims[1], groups);
  const uint32_t open = onnx_reshape(c, unit, split.rank, split.dims), by_scale = along(c, scale, 1, &split),
                 by_bias = along(c, bias, 1, &split);
  return onnx_out(c, 0, onnx_reshape(c, onnx_2(c, IR_OP_add, onnx_2(c, IR_OP_mul, open, by_scale), by_bias), type.rank, type.dims));
}

bool onnx_op_mvn(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  uint32_t mask;
  if (!x || !onnx_axes(c, 0, onnx_type_of(c, x)->rank, 0xD & ((1u << onnx_type_of(c, x)->rank) - 1), &mask)) return false;
  return onnx_out(c, 0, onnx_add(c, "mean_variance_norm %%%u, axes=%s", x, onnx_mask_text(c, mask)));
}

/* ---- dropout: what is random comes from the seed alone ---- */
static bool dropout_ratio(onnx_call *c, double *ratio, bool *training) {
  double mode = 0;
  *ratio = onnx_float(c, "ratio", 0.5);
  if (onnx_has(c, 2) && !onnx_in_number(c, 2, &mode)) return false;
  *training = mode != 0;
  return !*training || !onnx_has(c, 1) || onnx_in_number(c, 1, ratio);
}

bool onnx_op_dropout(onnx_call *c) {
  double ratio;
  bool training;
  const int64_t seed = onnx_int(c, "seed", 0);
  const uint32_t x = onnx_in(c, 0);
  onnx_ignore(c, "is_test");
  if (!x || !dropout_ratio(c, &ratio, &training)) return false;
  ir_tensor mask = *onnx_type_of(c, x);
  mask.dtype = c->opset >= 10 ? SNT_BOOL : mask.dtype;
  if (!training || ratio == 0) return onnx_out_same(c, 0, 0) && onnx_out(c, 1, onnx_fill(c, &mask, 1));
  ir_tensor shape = *onnx_type_of(c, x);
  shape.dtype = SNT_F32;
  const uint32_t filled = onnx_fill(c, &shape, 1),
                 kept = filled ? onnx_add(c, "dropout %%%u, ratio=%a, seed=%lld", filled, ratio, (long long)seed) : 0;
  const uint32_t y = onnx_2(c, IR_OP_mul, x, onnx_cast(c, kept, onnx_type_of(c, x)->dtype));
  return onnx_out(c, 0, y) && onnx_out(c, 1, onnx_2n(c, IR_OP_ne, kept, 0));
}
