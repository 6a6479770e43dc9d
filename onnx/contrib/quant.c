/* Quantised operators of ONNX Runtime's own domain. An operand comes with its scale and its zero point, (q - zero) scale is what it stands for. Those that
   are not sums of products are computed in f32 between a dequantize and a quantize, which fuse with what lies between them. */
#include "onnx/import_private.h"
#include "onnx/ops.h"

/* ---- operands ---- */
static uint32_t needed(onnx_call *c, uint32_t i) {
  if (!onnx_has(c, i)) onnx_refuse(c, "input %u is missing", i);
  return onnx_in(c, i);
}

/* A scale or a zero point of a whole tensor, as rank 0. */
static uint32_t one_number(onnx_call *c, uint32_t i) {
  const uint32_t node = needed(c, i);
  const ir_tensor *t = onnx_in_type(c, i);
  if (!node) return 0;
  if (t->rank > 1 || (t->rank == 1 && t->dims[0] != 1)) {
    onnx_refuse(c, "input %u (%.60s) must be one number: it has rank %u", i, c->in[i]->name, t->rank);
    return 0;
  }
  return onnx_reshape(c, node, 0, NULL);
}

/* Operand i, whose scale and zero point (which may be left out: 0) follow it. */
static uint32_t real_in(onnx_call *c, uint32_t i) {
  const uint32_t x = needed(c, i), scale = one_number(c, i + 1), zero = onnx_has(c, i + 2) ? one_number(c, i + 2) : 0;
  if (!x || !scale || (onnx_has(c, i + 2) && !zero)) return 0;
  return zero ? onnx_add(c, "dequantize %%%u, %%%u, %%%u", x, scale, zero) : onnx_add(c, "dequantize %%%u, %%%u", x, scale);
}

/* With the scale at i and the zero point behind it; without one to `dtype`. */
static uint32_t quantized(onnx_call *c, uint32_t real, uint32_t i, int32_t dtype) {
  const uint32_t scale = real ? one_number(c, i) : 0, zero = onnx_has(c, i + 1) ? one_number(c, i + 1) : 0;
  if (!scale || (onnx_has(c, i + 1) && !zero)) return 0;
  if (zero) return onnx_add(c, "quantize %%%u, %%%u, %%%u", real, scale, zero);
  return onnx_add(c, "quantize %%%u, %%%u, dtype=%s", real, scale, ir_dtypes[dtype].name);
}

/* Another handler for this node, with these operands (0: left out). */
static bool run_with(onnx_call *c, onnx_handler run, uint32_t count, const uint32_t *nodes) {
  onnx_call inner = *c;
  inner.in = IR_NEW_ARRAY(c->im->temp, onnx_value *, count);
  inner.in_count = count;
  if (!inner.in) return false;
  for (uint32_t i = 0; i < count; i++) inner.in[i] = onnx_value_of(c, c->name, nodes[i]);
  const bool good = run(&inner);
  c->used = inner.used, c->refused = inner.refused;
  return good;
}

/* ---- two operands ---- */
bool onnx_op_qlinear_binary(onnx_call *c) {
  const ir_op op = !strcmp(c->node->op, "QLinearMul") ? IR_OP_mul : IR_OP_add;
  const uint32_t a = real_in(c, 0), b = real_in(c, 3), y = a && b ? onnx_2(c, op, a, b) : 0;
  return onnx_out(c, 0, quantized(c, y, 6, y ? onnx_in_type(c, 0)->dtype : 0));
}

bool onnx_op_qlinear_where(onnx_call *c) {
  const uint32_t condition = needed(c, 0), x = real_in(c, 1), y = real_in(c, 4);
  return condition && x && y && onnx_out(c, 0, quantized(c, onnx_select(c, condition, x, y), 7, onnx_in_type(c, 1)->dtype));
}

/* Each part is brought to the scale of the result; one that has it already comes out as it is, as k s / s rounds to k. */
bool onnx_op_qlinear_concat(onnx_call *c) {
  const uint32_t count = c->in_count > 2 ? (c->in_count - 2) / 3 : 0;
  uint32_t *parts = IR_NEW_ARRAY(c->im->temp, uint32_t, count + 1);
  if (!count || (c->in_count - 2) % 3) return onnx_refuse(c, "each operand must be a tensor, its scale and its zero point");
  if (!onnx_find_attr(c, "axis")) return onnx_refuse(c, "attribute axis is missing");
  for (uint32_t i = 0; parts && i < count; i++)
    if (!(parts[i] = quantized(c, real_in(c, 2 + 3 * i), 0, SNT_U8))) return false;
  return parts && run_with(c, onnx_op_concat, count, parts);
}

/* ---- one operand: x, its scale and zero point, those of y ---- */
static uint32_t leaky_relu(onnx_call *c, uint32_t x) { return onnx_add(c, "leaky_relu %%%u, alpha=%a", x, onnx_float(c, "alpha", 0.01)); }
static uint32_t sigmoid(onnx_call *c, uint32_t x) { return onnx_1(c, IR_OP_sigmoid, x); }

/* The runtime multiplies by the whole part of 1 / scale of y, which is the same for the 1 / 256 that quantisers give it. The axis is -1 by default whatever
   the version, as its schema says so. */
static uint32_t softmax(onnx_call *c, uint32_t x) {
  const int64_t version = onnx_int(c, "opset", 0);
  const ir_tensor type = *onnx_type_of(c, x);
  uint32_t axis;
  if (version < 1) onnx_refuse(c, "attribute opset is missing");
  if (version < 1 || !onnx_axis(c, onnx_int(c, "axis", -1), type.rank, &axis)) return 0;
  if (version >= 13) return onnx_add(c, "softmax %%%u, axis=%u", x, axis);
  const uint32_t flat = onnx_add(c, "flatten %%%u, axis=%u", x, axis), y = flat ? onnx_add(c, "softmax %%%u, axis=1", flat) : 0;
  return onnx_reshape(c, y, type.rank, type.dims);
}

static uint32_t average_pool(onnx_call *c, uint32_t x) {
  const bool last = onnx_int(c, "channels_last", 0) != 0;
  x = onnx_channels_second(c, x, last);
  const char *window = x ? onnx_pool_text(c, onnx_type_of(c, x)) : NULL;
  const char *count = onnx_int(c, "count_include_pad", 0) ? ", count_pads" : "";
  return window ? onnx_channels_back(c, onnx_add(c, "avgpool %%%u, %s%s", x, window, count), last) : 0;
}

static uint32_t global_average(onnx_call *c, uint32_t x) {
  const uint32_t rank = onnx_type_of(c, x)->rank, first = onnx_int(c, "channels_last", 0) ? 1 : 2;
  uint32_t mask = 0;
  for (uint32_t i = first; i + 2 < rank + first; i++) mask |= 1u << i;
  if (!mask) onnx_refuse(c, "rank %u has no spatial axis", rank);
  return mask ? onnx_add(c, "mean %%%u, axes=%s, keep", x, onnx_mask_text(c, mask)) : 0;
}

static uint32_t reduce_mean(onnx_call *c, uint32_t x) {
  const uint32_t rank = onnx_type_of(c, x)->rank;
  const char *keep = onnx_int(c, "keepdims", 1) ? ", keep" : "";
  uint32_t mask;
  if (!onnx_axes(c, 0, rank, (1u << rank) - 1, &mask)) return 0;
  return onnx_add(c, "mean %%%u, axes=%s%s", x, onnx_mask_text(c, mask), keep);
}

bool onnx_op_qlinear_unary(onnx_call *c) {
  static const struct {
    const char *op;
    uint32_t (*real)(onnx_call *, uint32_t x);
  } kinds[] = {
      {"QLinearSigmoid", sigmoid},
      {"QLinearLeakyRelu", leaky_relu},
      {"QLinearSoftmax", softmax},
      {"QLinearAveragePool", average_pool},
      {"QLinearGlobalAveragePool", global_average},
      {"QLinearReduceMean", reduce_mean},
  };
  uint32_t kind = 0;
  while (kind < IR_COUNT(kinds) - 1 && strcmp(kinds[kind].op, c->node->op) != 0) kind++;
  const uint32_t x = real_in(c, 0), y = x ? kinds[kind].real(c, x) : 0;
  return onnx_out(c, 0, quantized(c, y, 3, y ? onnx_in_type(c, 0)->dtype : 0));
}

bool onnx_op_nhwc_max_pool(onnx_call *c) {
  const uint32_t x = onnx_channels_second(c, needed(c, 0), true);
  const char *window = x ? onnx_pool_text(c, onnx_type_of(c, x)) : NULL;
  return window && onnx_out(c, 0, onnx_channels_back(c, onnx_add(c, "maxpool %%%u, %s", x, window), true));
}

/* ---- sums of products ---- */
static uint32_t last_axis(const onnx_call *c, uint32_t node) { return onnx_type_of(c, node)->rank ? onnx_type_of(c, node)->rank - 1u : 0; }

static uint32_t product(onnx_call *c, uint32_t a, uint32_t b) {
  if (!a || !b || !onnx_demand_meet(c, a, last_axis(c, a), b, last_axis(c, b) ? last_axis(c, b) - 1 : 0)) return 0;
  return onnx_add(c, "matmul %%%u, %%%u", a, b);
}
#define product(c, a, b) IR_LAST_FIRST_2(product, a, b, c)

/* Alpha belongs to the product and to C, as the words say of C's scale; without a scale of y the result is f32. */
bool onnx_op_qgemm(onnx_call *c) {
  static const uint32_t swap[] = {1, 0};
  const double alpha = onnx_float(c, "alpha", 1);
  uint32_t a = needed(c, 0), b = needed(c, 3);
  if (!a || !b || !one_number(c, 2) || !needed(c, 5)) return false;
  if (onnx_has(c, 7) != onnx_has(c, 8)) return onnx_refuse(c, "y_scale and y_zero_point must be given together");
  if (onnx_type_of(c, a)->rank != 2 || onnx_type_of(c, b)->rank != 2) return onnx_refuse(c, "A and B must be matrices");
  if (onnx_int(c, "transA", 0)) a = onnx_transpose(c, a, swap);
  if (onnx_int(c, "transB", 0)) b = onnx_transpose(c, b, swap);
  a = onnx_less_zero(c, a, SNT_F32, 2, 0), b = onnx_less_zero(c, b, SNT_F32, 5, 1);
  uint32_t sums = product(c, a, b);
  if (onnx_has(c, 6)) sums = onnx_2(c, IR_OP_add, sums, onnx_cast(c, onnx_in(c, 6), SNT_F32));
  uint32_t scales = onnx_2(c, IR_OP_mul, one_number(c, 1), onnx_scale_in(c, 4, 2, 1));
  if (alpha != 1) scales = onnx_2n(c, IR_OP_mul, scales, alpha);
  if (onnx_has(c, 7)) return onnx_out(c, 0, onnx_requantized(c, sums, scales, one_number(c, 7), one_number(c, 8)));
  return sums && scales && onnx_out(c, 0, onnx_2(c, IR_OP_mul, onnx_cast(c, sums, onnx_type_of(c, scales)->dtype), scales));
}

/* sums * scale a * scale b + bias, in f32 whatever the type of the scales, which is that of the result. */
static bool scaled_out(onnx_call *c, uint32_t sums, uint32_t a_scale, uint32_t b_scale, uint32_t bias_at) {
  if (!sums || !a_scale || !b_scale) return false;
  const int32_t dtype = onnx_type_of(c, b_scale)->dtype;
  const uint32_t scales = onnx_2(c, IR_OP_mul, onnx_cast(c, a_scale, SNT_F32), onnx_cast(c, b_scale, SNT_F32));
  uint32_t y = onnx_2(c, IR_OP_mul, onnx_cast(c, sums, SNT_F32), scales);
  if (onnx_has(c, bias_at)) y = onnx_2(c, IR_OP_add, y, onnx_cast(c, onnx_in(c, bias_at), SNT_F32));
  return onnx_out(c, 0, onnx_cast(c, y, dtype));
}

bool onnx_op_dynamic_quantize_matmul(onnx_call *c) {
  const uint32_t b = needed(c, 1), b_scale = b && needed(c, 2) ? onnx_scale_in(c, 2, onnx_type_of(c, b)->rank, last_axis(c, b)) : 0;
  onnx_quantized a;
  if (!b_scale || !onnx_quantized_dynamically(c, needed(c, 0), &a)) return false;
  const uint32_t left = onnx_2(c, IR_OP_sub, onnx_cast(c, a.codes, SNT_F32), onnx_cast(c, a.zero, SNT_F32));
  return scaled_out(c, product(c, left, onnx_less_zero(c, b, SNT_F32, 3, last_axis(c, b))), a.scale, b_scale, 4);
}

bool onnx_op_matmul_integer_to_float(onnx_call *c) {
  const uint32_t a = needed(c, 0), b = needed(c, 1), a_scale = one_number(c, 2);
  if (!a || !b || !a_scale || !needed(c, 3) || (onnx_has(c, 4) && !one_number(c, 4))) return false;
  const uint32_t b_scale = onnx_scale_in(c, 3, onnx_type_of(c, b)->rank, last_axis(c, b));
  const uint32_t sums = product(c, onnx_less_zero(c, a, SNT_F32, 4, 0), onnx_less_zero(c, b, SNT_F32, 5, last_axis(c, b)));
  return scaled_out(c, sums, a_scale, b_scale, 6);
}

/* ---- other integers ---- */
bool onnx_op_mul_integer(onnx_call *c) {
  const uint32_t a = needed(c, 0), b = needed(c, 2);
  if (!a || !b || (onnx_has(c, 1) && !one_number(c, 1)) || (onnx_has(c, 3) && !one_number(c, 3))) return false;
  return onnx_out(c, 0, onnx_2(c, IR_OP_mul, onnx_less_zero(c, a, SNT_I32, 1, 0), onnx_less_zero(c, b, SNT_I32, 3, 0)));
}

bool onnx_op_reduce_sum_integer(onnx_call *c) {
  const uint32_t x = needed(c, 0), rank = x ? onnx_type_of(c, x)->rank : 0;
  uint32_t mask;
  if (!x || !onnx_axes(c, 0, rank, (1u << rank) - 1, &mask)) return false;
  const uint32_t wide = onnx_cast(c, x, onnx_type_of(c, x)->dtype == SNT_U8 ? SNT_U32 : SNT_I32);
  return onnx_out(c, 0, onnx_reduce(c, IR_OP_reduce_sum, wide, mask, onnx_int(c, "keepdims", 1) != 0));
}

/* ---- DynamicQuantizeLSTM ---- */
/* Weights [directions, in, 4 hidden] with a scale and a zero point a direction or a column, as LSTM has them: real, [directions, 4 hidden, in]. */
static uint32_t lstm_weights(onnx_call *c, uint32_t i, uint32_t scale_at) {
  static const uint32_t perm[] = {0, 2, 1};
  const uint32_t w = needed(c, i);
  uint32_t steps[2] = {needed(c, scale_at), needed(c, scale_at + 1)};
  if (!w || !steps[0] || !steps[1]) return 0;
  const ir_tensor type = *onnx_type_of(c, w);
  if (type.rank != 3) return onnx_refuse(c, "input %u must be [directions, inputs, 4 hidden]", i), 0;
  for (uint32_t k = 0; k < 2; k++) {
    const ir_tensor own = *onnx_type_of(c, steps[k]);
    const ir_expr dims[] = {type.dims[0], 1, own.rank == 2 ? type.dims[2] : 1};
    if (own.rank != 1 && own.rank != 2)
      return onnx_refuse(c, "input %u must have one number a direction, or one a column", scale_at + k), 0;
    steps[k] = onnx_cast(c, onnx_reshape(c, steps[k], 3, dims), SNT_F32);
  }
  const uint32_t real = onnx_2(c, IR_OP_mul, onnx_2(c, IR_OP_sub, onnx_cast(c, w, SNT_F32), steps[1]), steps[0]);
  return real ? onnx_transpose(c, real, perm) : 0;
}

/* An LSTM with the weights that the codes stand for. x, and h in each step, are rounded to the 256 codes between their least and their greatest value, of all
   sequences of the batch together: so does the runtime on one thread. On several it rounds parts of the batch, as many as threads share it. */
bool onnx_op_dynamic_quantize_lstm(onnx_call *c) {
  uint32_t operands[8] = {needed(c, 0), lstm_weights(c, 1, 8), lstm_weights(c, 2, 10)};
  if (!operands[0] || !operands[1] || !operands[2] || !onnx_demand_meet(c, operands[0], 2, operands[1], 2)) return false;
  for (uint32_t i = 3; i < IR_COUNT(operands); i++)
    if (onnx_has(c, i) && !(operands[i] = onnx_in(c, i))) return false;
  return run_with(c, onnx_op_recurrent, IR_COUNT(operands), operands);
}

/* ---- QEmbedLayerNormalization ---- */
/* Rows of table i at `index` (all of it for 0), with the scale and the zero point of the k-th of the node's five quantised tensors. */
static uint32_t rows_of(onnx_call *c, uint32_t i, uint32_t index, uint32_t k) {
  const uint32_t table = needed(c, i), scale = one_number(c, 8 + k), zero = one_number(c, 13 + k);
  const uint32_t rows = index && table ? onnx_gather(c, table, index, 0) : table;
  return rows && scale && zero ? onnx_add(c, "dequantize %%%u, %%%u, %%%u", rows, scale, zero) : 0;
}

/* How many places of a row of the mask are 1; 0 without a mask. */
static uint32_t mask_index(onnx_call *c, const ir_tensor *ids) {
  const ir_tensor type = {.dtype = SNT_I32, .rank = 1, .dims = {ids->dims[0]}};
  if (!onnx_has(c, 7)) return onnx_fill(c, &type, 0);
  return onnx_reduce(c, IR_OP_reduce_sum, onnx_cast(c, onnx_2n(c, IR_OP_eq, onnx_in(c, 7), 1), SNT_I32), 2, false);
}

bool onnx_op_qembed_layernorm(onnx_call *c) {
  const uint32_t ids = needed(c, 0), segments = onnx_in(c, 1);
  if (!ids) return false;
  const ir_tensor type = *onnx_type_of(c, ids);
  if (type.rank != 2) return onnx_refuse(c, "input_ids must be [batch, sequence]");
  const ir_tensor *table = onnx_in_type(c, 3);
  if (table && table->rank == 2 && expr_proves_lt(c->g->pool, table->dims[0], type.dims[1]))
    return onnx_refuse(c, "sequences are longer than position_embedding");
  if (onnx_has(c, 1) != onnx_has(c, 4)) return onnx_refuse(c, "segment_ids and segment_embedding must be given together");
  const uint32_t places = onnx_iota(c, SNT_I64, 1, &type.dims[1], 0);
  uint32_t x = onnx_2(c, IR_OP_add, rows_of(c, 2, ids, 0), rows_of(c, 3, places, 1));
  if (segments) x = onnx_2(c, IR_OP_add, x, rows_of(c, 4, segments, 2));
  const uint32_t gamma = rows_of(c, 5, 0, 3), beta = rows_of(c, 6, 0, 4);
  if (!x || !gamma || !beta) return false;
  const uint32_t y = onnx_add(c, "layernorm %%%u, %%%u, %%%u, epsilon=%a", x, gamma, beta, onnx_float(c, "epsilon", 1e-12));
  return onnx_out(c, 0, y) && (c->out_count < 2 || onnx_out(c, 1, mask_index(c, &type)));
}
