/* Activations and normalisations of ONNX Runtime's own domain: ONNX's, with the sums that stand in front of them. */
#include "onnx/ops.h"

/* a + b, the one that is there, 0 after a mistake. */
static uint32_t with(onnx_call *c, uint32_t a, uint32_t i) {
  const uint32_t b = onnx_in(c, i);
  if (!onnx_has(c, i)) return a;
  return onnx_2(c, IR_OP_add, a, b);
}

bool onnx_op_bias_gelu(onnx_call *c) {
  const uint32_t x = with(c, onnx_in(c, 0), 1);
  const bool fast = !strcmp(c->node->op, "FastGelu"); /* the tangent's */
  return x && onnx_out(c, 0, onnx_add(c, "%s %%%u", fast ? "gelu_tanh" : "gelu", x));
}

/* The left half times Gelu of the right one. */
bool onnx_op_bias_split_gelu(onnx_call *c) {
  const uint32_t x = with(c, onnx_in(c, 0), 1);
  if (!x) return false;
  const uint32_t last = onnx_type_of(c, x)->rank - 1u;
  const ir_expr half = expr_div(c->g->pool, onnx_type_of(c, x)->dims[last], 2);
  const uint32_t left = onnx_slice(c, x, last, 0, half, 1), right = onnx_slice(c, x, last, half, half, 1);
  return right && onnx_out(c, 0, onnx_2(c, IR_OP_mul, left, onnx_add(c, "gelu %%%u", right)));
}

bool onnx_op_bias_add(onnx_call *c) { return onnx_out(c, 0, with(c, with(c, onnx_in(c, 0), 1), 2)); }

/* The sum of x, skip and bias is a result, too. */
bool onnx_op_skip_layernorm(onnx_call *c) {
  const bool simplified = !strcmp(c->node->op, "SkipSimplifiedLayerNormalization");
  onnx_layernorm l = {
      .scale = onnx_in(c, 2), .axis = -1, .epsilon = onnx_float(c, "epsilon", 1e-12), .simplified = simplified, .spread = 2};
  if (!simplified) l.bias = onnx_in(c, 3);
  const uint32_t sum = with(c, with(c, onnx_in(c, 0), 1), simplified ? 3 : 4);
  return onnx_out(c, 0, onnx_layernorm_of(c, sum, &l)) && (c->out_count < 4 || onnx_out(c, 3, sum));
}

/* ---- embeddings ---- */
/* Rows of the table that is operand `table`, by operand `index` or by their places. */
static uint32_t rows_of(onnx_call *c, uint32_t table, uint32_t index) {
  uint32_t at = onnx_in(c, index);
  const ir_tensor *words = onnx_in_type(c, 0);
  if (!onnx_has(c, index)) at = onnx_iota(c, SNT_I32, 1, &words->dims[1], 0);
  return onnx_gather(c, onnx_in(c, table), at, 0);
}

/* How many of a row of the mask are set: where its words end. */
static uint32_t words_of(onnx_call *c) {
  const uint32_t mask = onnx_in(c, 7);
  ir_tensor type = *onnx_in_type(c, 0);
  type.rank = 1, type.dtype = SNT_I32;
  return onnx_has(c, 7) ? onnx_reduce(c, IR_OP_reduce_sum, onnx_cast(c, mask, SNT_I32), 2, false) : onnx_fill(c, &type, 0);
}

bool onnx_op_embed_layernorm(onnx_call *c) {
  onnx_layernorm l = {.scale = onnx_in(c, 5), .bias = onnx_in(c, 6), .axis = -1, .epsilon = onnx_float(c, "epsilon", 1e-12)};
  const ir_tensor *words = onnx_in_type(c, 0);
  onnx_ignore(c, "mask_index_type");
  if (!words || words->rank != 2) return onnx_refuse(c, "input_ids must have rank 2");
  uint32_t sum = onnx_2(c, IR_OP_add, rows_of(c, 2, 0), rows_of(c, 3, 8));
  if (onnx_has(c, 1) && onnx_has(c, 4)) sum = onnx_2(c, IR_OP_add, sum, rows_of(c, 4, 1));
  return onnx_out(c, 0, onnx_layernorm_of(c, sum, &l)) && (c->out_count < 2 || onnx_out(c, 1, words_of(c))) &&
         (c->out_count < 3 || onnx_out(c, 2, sum));
}

/* ---- groups of channels ---- */
/* x + skip + bias of channels at axis `at`; skip [n, c] is every place's. */
static uint32_t skipped(onnx_call *c, uint32_t x, uint32_t at) {
  const uint32_t skip = onnx_in(c, 3), bias = onnx_in(c, 4);
  if (!x || !skip) return 0;
  const uint32_t rank = onnx_type_of(c, x)->rank;
  const ir_tensor type = *onnx_type_of(c, skip);
  ir_expr dims[SNT_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) dims[i] = 1;
  if (type.rank == 2) dims[0] = type.dims[0], dims[at] = type.dims[1];
  uint32_t sum = onnx_2(c, IR_OP_add, x, type.rank == 2 ? onnx_reshape(c, skip, rank, dims) : skip);
  if (!onnx_has(c, 4)) return sum;
  dims[0] = 1, dims[at] = bias ? onnx_type_of(c, bias)->dims[0] : 1;
  return onnx_2(c, IR_OP_add, sum, onnx_reshape(c, bias, rank, dims));
}

bool onnx_op_skip_groupnorm(onnx_call *c) {
  const bool skip = !strcmp(c->node->op, "SkipGroupNorm"), last = onnx_int(c, "channels_last", 1) != 0;
  const int64_t silu = onnx_int(c, "activation", 0), groups = onnx_int(c, "groups", 0);
  const uint32_t given = onnx_in(c, 0), scale = onnx_in(c, 1), bias = onnx_in(c, 2);
  if (!given || !scale || !bias || onnx_type_of(c, given)->rank < 3)
    return onnx_refuse(c, "X needs rank 3 or more, gamma and beta must be there");
  if (silu != 0 && silu != 1) return onnx_refuse(c, "activation %lld", (long long)silu);
  const uint32_t sum = skip ? skipped(c, given, last ? onnx_type_of(c, given)->rank - 1u : 1) : given;
  const uint32_t x = onnx_channels_second(c, sum, last);
  uint32_t y = x ? onnx_add(c, "groupnorm %%%u, %%%u, %%%u, groups=%lld, epsilon=%a", x, scale, bias, (long long)groups,
                            onnx_float(c, "epsilon", 1e-5))
                 : 0;
  if (y && silu) y = onnx_add(c, "silu %%%u", y);
  return onnx_out(c, 0, onnx_channels_back(c, y, last)) && (!skip || c->out_count < 2 || onnx_out(c, 1, sum));
}
