/* Random tensors. A model has no state, so they depend on the seed alone: each run gives the same numbers, seed 0 where there is none. */
#include "onnx/ops.h"

/* A tensor of fixed shape drawn when the model is loaded; `shape` comes from the attribute, or from the operand of the ..Like operators. */
bool onnx_op_random(onnx_call *c) {
  const bool like = strstr(c->node->op, "Like") != NULL, normal = !strncmp(c->node->op, "RandomNormal", 12);
  const ir_tensor *t = like ? onnx_in_type(c, 0) : NULL;
  const onnx_list given = onnx_int_list(c, "shape");
  ir_tensor type = {.dtype = SNT_F32, .rank = (uint8_t)(t ? t->rank : given.count)};
  const int32_t dtype = onnx_dtype_attr(c, "dtype", t ? t->dtype : SNT_F32);
  const double low = normal ? onnx_float(c, "mean", 0) : onnx_float(c, "low", 0);
  const double size = normal ? onnx_float(c, "scale", 1) : onnx_float(c, "high", 1) - low;
  if (like && !t) return onnx_refuse(c, "input 0 is missing");
  if (!dtype || (!t && given.count > SNT_MAX_RANK)) return onnx_refuse(c, "rank %u", given.count);
  memcpy(type.dims, t ? t->dims : given.at, type.rank * sizeof *type.dims);
  for (uint32_t i = 0; i < type.rank; i++)
    if (type.dims[i] < 0) return onnx_refuse(c, "the shape must be fixed");
  const ir_const drawn = {.kind = normal ? IR_CONST_NORMAL : IR_CONST_UNIFORM,
                          .seed = (uint64_t)(int64_t)onnx_float(c, "seed", 0),
                          .scale = normal ? size : size / 2};
  const uint32_t x = ir_add_const(c->g, &type, &drawn);
  const uint32_t y = onnx_2n(c, IR_OP_add, x, normal ? low : low + size / 2);
  return onnx_out(c, 0, onnx_cast(c, y, dtype));
}

/* Numbers from 0 to below 1 of such a shape: element i is word i of the generator. */
static uint32_t draw(onnx_call *c, uint32_t rank, const ir_expr *dims) {
  ir_tensor type = {.dtype = SNT_F32, .rank = (uint8_t)rank};
  memcpy(type.dims, dims, rank * sizeof *dims);
  const ir_expr total = ir_tensor_elements(c->g->pool, &type);
  const uint32_t counter = onnx_reshape(c, onnx_iota(c, SNT_U32, 1, &total, 0), rank, dims);
  const uint32_t word = onnx_2(c, IR_OP_random, onnx_scalar(c, SNT_U32, (double)(uint32_t)(int64_t)onnx_float(c, "seed", 0)), counter);
  return onnx_2n(c, IR_OP_mul, onnx_cast(c, onnx_2n(c, IR_OP_shr, word, 8), SNT_F32), 0x1p-24);
}

/* 1 with the probability that the operand says: element i where word i of the generator is below it. */
bool onnx_op_bernoulli(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  if (!x) return false;
  const ir_tensor type = *onnx_type_of(c, x);
  const int32_t dtype = onnx_dtype_attr(c, "dtype", type.dtype);
  return dtype && onnx_out(c, 0, onnx_cast(c, onnx_2(c, IR_OP_lt, draw(c, type.rank, type.dims), onnx_cast(c, x, SNT_F32)), dtype));
}

/* A class a sample: those whose share of the sum of all ends at or below the number drawn lie before it. The last one needs no asking. */
bool onnx_op_multinomial(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  if (!x) return false;
  const ir_tensor type = *onnx_type_of(c, x);
  const int64_t samples = onnx_int(c, "sample_size", 1);
  const int32_t dtype = onnx_dtype_attr(c, "dtype", SNT_I32);
  int64_t classes = 0;
  if (!dtype || samples < 1 || samples > INT32_MAX) return onnx_refuse(c, "sample_size %lld", (long long)samples);
  if (type.rank != 2 || !expr_is_const(c->g->pool, type.dims[1], &classes) || classes < 1)
    return onnx_refuse(c, "classes must be a fixed number of columns");
  const ir_expr drawn_dims[] = {type.dims[0], samples, 1}, step_dims[] = {type.dims[0], 1, classes};
  const uint32_t share = onnx_add(c, "softmax %%%u, axis=1", onnx_cast(c, x, SNT_F32));
  const uint32_t ends = share ? onnx_reshape(c, onnx_add(c, "scan.sum %%%u, axis=1", share), 3, step_dims) : 0;
  const uint32_t drawn = onnx_2(c, IR_OP_mul, draw(c, 3, drawn_dims), onnx_slice(c, ends, 2, classes - 1, 1, 1));
  const uint32_t before = drawn ? onnx_2(c, IR_OP_le, onnx_slice(c, ends, 2, 0, classes, 1), drawn) : 0;
  const uint32_t last = before ? onnx_slice(c, onnx_cast(c, before, SNT_I32), 2, 0, classes - 1, 1) : 0;
  return onnx_out(c, 0, onnx_cast(c, onnx_reduce(c, IR_OP_reduce_sum, last, 1u << 2, false), dtype));
}
