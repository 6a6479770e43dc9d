/* Gemm and Einsum. */
#include "onnx/ops.h"

uint32_t onnx_gemm(onnx_call *c) {
  const uint32_t a = onnx_in(c, 0), b = onnx_in(c, 1);
  const double alpha = onnx_float(c, "alpha", 1), beta = onnx_float(c, "beta", 1);
  const bool left = onnx_int(c, "transA", 0) != 0, right = onnx_int(c, "transB", 0) != 0;
  uint32_t bias = onnx_in(c, 2);
  onnx_ignore(c, "broadcast");
  if (!a || !b || (onnx_has(c, 2) && !bias)) return 0;
  if (bias && alpha == 1 && beta == 1 && !left && right && onnx_type_of(c, bias)->rank == 1 && onnx_type_of(c, bias)->dims[0] != 1)
    return onnx_add(c, "linear %%%u, %%%u, %%%u", a, b, bias);
  uint32_t y = onnx_add(c, "matmul %%%u, %%%u%s%s", a, b, left ? ", transpose_a" : "", right ? ", transpose_b" : "");
  if (alpha != 1) y = onnx_2n(c, IR_OP_mul, y, alpha);
  if (!bias || beta == 0) return y;
  if (beta != 1) bias = onnx_2n(c, IR_OP_mul, bias, beta);
  return onnx_2(c, IR_OP_add, y, bias);
}

bool onnx_op_gemm(onnx_call *c) { return onnx_out(c, 0, onnx_gemm(c)); }

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
