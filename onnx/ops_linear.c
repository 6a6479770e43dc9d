/* Gemm, Einsum, attention and what goes with it. */
#include "onnx/ops.h"

bool onnx_op_gemm(onnx_call *c) {
  const uint32_t a = onnx_in(c, 0), b = onnx_in(c, 1);
  const double alpha = onnx_float(c, "alpha", 1), beta = onnx_float(c, "beta", 1);
  const bool left = onnx_int(c, "transA", 0) != 0, right = onnx_int(c, "transB", 0) != 0;
  uint32_t bias = onnx_in(c, 2);
  onnx_ignore(c, "broadcast");
  if (!a || !b || (onnx_has(c, 2) && !bias)) return false;
  if (bias && alpha == 1 && beta == 1 && !left && right && onnx_type_of(c, bias)->rank == 1 && onnx_type_of(c, bias)->dims[0] != 1)
    return onnx_out(c, 0, onnx_add(c, "linear %%%u, %%%u, %%%u", a, b, bias));
  uint32_t y = onnx_add(c, "matmul %%%u, %%%u%s%s", a, b, left ? ", transpose_a" : "", right ? ", transpose_b" : "");
  if (alpha != 1) y = onnx_2n(c, IR_OP_mul, y, alpha);
  if (!bias || beta == 0) return onnx_out(c, 0, y);
  if (beta != 1) bias = onnx_2n(c, IR_OP_mul, bias, beta);
  return onnx_out(c, 0, onnx_2(c, IR_OP_add, y, bias));
}

bool onnx_op_einsum(onnx_call *c) {
  const char *equation = onnx_text(c, "equation", "");
  ir_text text;
  ir_text_init(&text, onnx_arena(c));
  ir_text_add(&text, "einsum ");
  for (uint32_t i = 0; i < c->in_count; i++) {
    const uint32_t node = onnx_in(c, i);
    if (!node) return false;
    ir_text_format(&text, "%%%u, ", node);
  }
  for (const char *at = equation; *at; at++)
    if (*at == '"' || *at == '\\') return onnx_refuse(c, "equation %.60s", equation);
  ir_text_format(&text, "labels=\"%s\"", equation);
  return !text.failed && onnx_out(c, 0, onnx_add(c, "%s", text.at));
}

/* ---- attention (23) ---- */
/* [batch, length, heads * width] as [batch, heads, length, width] */
static uint32_t split_heads(onnx_call *c, uint32_t x, int64_t heads) {
  static const uint32_t perm[] = {0, 2, 1, 3};
  if (!x || onnx_type_of(c, x)->rank == 4) return x;
  const ir_tensor type = *onnx_type_of(c, x);
  if (type.rank != 3 || heads < 1) return onnx_refuse(c, "q_num_heads and kv_num_heads are needed for rank 3"), 0;
  const ir_expr dims[] = {type.dims[0], type.dims[1], heads, expr_div(c->g->pool, type.dims[2], heads)};
  return onnx_transpose(c, onnx_reshape(c, x, 4, dims), perm);
}

static uint32_t with_past(onnx_call *c, uint32_t past, uint32_t x) {
  const uint32_t parts[] = {past, x};
  return past ? onnx_concat(c, 2, 2, parts) : x;
}

bool onnx_op_attention(onnx_call *c) {
  const int64_t heads = onnx_int(c, "q_num_heads", 0), pairs = onnx_int(c, "kv_num_heads", 0);
  const uint32_t given = onnx_in(c, 0), q = split_heads(c, given, heads);
  const uint32_t k = with_past(c, onnx_in(c, 4), split_heads(c, onnx_in(c, 1), pairs));
  const uint32_t v = with_past(c, onnx_in(c, 5), split_heads(c, onnx_in(c, 2), pairs)), mask = onnx_in(c, 3);
  const double scale = onnx_float(c, "scale", 0), cap = onnx_float(c, "softcap", 0);
  char words[4][48] = {"", "", "", ""};
  onnx_ignore(c, "softmax_precision");
  if (onnx_int(c, "qk_matmul_output_mode", 0) != 0 || c->out_count > 3) return onnx_refuse(c, "the scores as a result");
  if (onnx_has(c, 6)) return onnx_refuse(c, "nonpad_kv_seqlen");
  if (!q || !k || !v || (onnx_has(c, 3) && !mask)) return false;
  if (mask) snprintf(words[0], sizeof words[0], ", %%%u", mask);
  if (scale != 0) snprintf(words[1], sizeof words[1], ", scale=%a", scale);
  if (cap != 0) snprintf(words[2], sizeof words[2], ", softcap=%a", cap);
  if (onnx_int(c, "is_causal", 0)) snprintf(words[3], sizeof words[3], onnx_has(c, 4) ? ", causal" : ", causal, past=0");
  uint32_t y = onnx_add(c, "attention %%%u, %%%u, %%%u%s%s%s%s", q, k, v, words[0], words[1], words[2], words[3]);
  if (y && onnx_type_of(c, given)->rank == 3) {
    static const uint32_t perm[] = {0, 2, 1, 3};
    const ir_tensor type = *onnx_type_of(c, y);
    const ir_expr dims[] = {type.dims[0], type.dims[2], expr_mul(c->g->pool, type.dims[1], type.dims[3])};
    y = onnx_reshape(c, onnx_transpose(c, y, perm), 3, dims);
  }
  return onnx_out(c, 0, y) && onnx_out(c, 1, k) && onnx_out(c, 2, v);
}

/* x [batch, heads, length, width] or [batch, length, heads * width]; cos and sin are rows of the tables, or those at the positions. */
bool onnx_op_rotary(onnx_call *c) {
  static const uint32_t perm[] = {0, 2, 1, 3};
  const uint32_t given = onnx_in(c, 0), positions = onnx_in(c, 3);
  uint32_t table[2], x = split_heads(c, given, onnx_int(c, "num_heads", 0));
  const char *interleaved = onnx_int(c, "interleaved", 0) ? ", interleaved" : "";
  const int64_t width = onnx_int(c, "rotary_embedding_dim", 0);
  if (!x) return false;
  for (uint32_t i = 0; i < 2; i++) {
    table[i] = onnx_in(c, 1 + i);
    if (positions) table[i] = onnx_gather(c, table[i], positions, 0);
    if (!table[i] || onnx_type_of(c, table[i])->rank != 3) return onnx_refuse(c, "tables of cosines need rank 2 with positions, 3 without");
    const ir_tensor type = *onnx_type_of(c, table[i]);
    const ir_expr dims[] = {type.dims[0], 1, type.dims[1], type.dims[2]};
    table[i] = onnx_reshape(c, table[i], 4, dims);
  }
  const ir_tensor type = *onnx_type_of(c, x);
  uint32_t rest = 0;
  if (width && expr_int(c->g->pool, width) != type.dims[3]) {
    rest = onnx_slice(c, x, 3, width, expr_sub(c->g->pool, type.dims[3], width), 1);
    x = onnx_slice(c, x, 3, 0, width, 1);
  }
  uint32_t y = onnx_add(c, "rotary %%%u, %%%u, %%%u%s", x, table[0], table[1], interleaved);
  const uint32_t parts[] = {y, rest};
  if (rest) y = onnx_concat(c, 3, 2, parts);
  if (y && onnx_type_of(c, given)->rank == 3) y = onnx_reshape(c, onnx_transpose(c, y, perm), 3, onnx_type_of(c, given)->dims);
  return onnx_out(c, 0, y);
}
