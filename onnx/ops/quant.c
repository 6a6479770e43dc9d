/* Quantised operators: integers less their zero points, accumulated in i32, scaled back. */
#include "onnx/import_private.h"
#include "onnx/ops.h"

static const char *axis_text(onnx_call *c, char *room, size_t size) {
  snprintf(room, size, ", axis=%lld", (long long)onnx_int(c, "axis", 1));
  return room;
}

uint32_t onnx_unblocked(onnx_call *c, uint32_t v, const ir_tensor *x, uint32_t axis, int64_t block) {
  if (!v || onnx_type_of(c, v)->rank != x->rank || block < 1) return v;
  ir_expr scales[SNT_MAX_RANK], sizes[SNT_MAX_RANK];
  for (uint32_t i = 0; i < x->rank; i++) scales[i] = i == axis ? block : 1, sizes[i] = x->dims[i];
  const uint32_t wide = onnx_add(c, "resize_nearest %%%u, scales=%s", v, onnx_list_text(c, x->rank, scales));
  return wide ? onnx_add(c, "slice %%%u, sizes=%s", wide, onnx_list_text(c, x->rank, sizes)) : 0;
}

static bool take_scales(onnx_call *c, const ir_tensor *x, uint32_t *scale, uint32_t *zero) {
  const int64_t block = onnx_int(c, "block_size", 0);
  uint32_t axis;
  *scale = onnx_in(c, 1), *zero = onnx_in(c, 2);
  if (!*scale || (onnx_has(c, 2) && !*zero)) return false;
  if (onnx_type_of(c, *scale)->rank == 1 && onnx_type_of(c, *scale)->dims[0] == 1) {
    *scale = onnx_reshape(c, *scale, 0, NULL);
    if (*zero) *zero = onnx_reshape(c, *zero, 0, NULL);
  }
  if (block == 0) return true;
  if (!onnx_axis(c, onnx_int(c, "axis", 1), x->rank, &axis)) return false;
  *scale = onnx_unblocked(c, *scale, x, axis, block);
  if (*zero) *zero = onnx_unblocked(c, *zero, x, axis, block);
  return *scale != 0;
}

/* To 8-bit floats, whose zero points are 0: nothing is rounded to whole numbers. */
static bool quantize_to_float(onnx_call *c, uint32_t x, uint32_t scale, int32_t dtype) {
  const ir_tensor type = *onnx_type_of(c, x);
  ir_expr dims[SNT_MAX_RANK];
  uint32_t axis;
  if (onnx_type_of(c, scale)->rank == 1 && type.rank != 1) {
    if (!onnx_axis(c, onnx_int(c, "axis", 1), type.rank, &axis)) return false;
    for (uint32_t i = 0; i < type.rank; i++) dims[i] = i == axis ? type.dims[i] : 1;
    scale = onnx_reshape(c, scale, type.rank, dims);
  }
  return onnx_out(c, 0, onnx_convert(c, onnx_2(c, IR_OP_div, x, scale), dtype, onnx_int(c, "saturate", 1) != 0));
}

bool onnx_op_quantize(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  char axis[40];
  uint32_t scale, zero;
  onnx_ignore(c, "saturate"), onnx_ignore(c, "precision");
  const onnx_attr *given = onnx_find_attr(c, "output_dtype");
  const int32_t dtype = given && given->i ? onnx_dtype_attr(c, "output_dtype", 0) : SNT_U8;
  if (!x || !dtype || !take_scales(c, onnx_type_of(c, x), &scale, &zero)) return false;
  const uint32_t wide = onnx_cast(c, x, onnx_type_of(c, scale)->dtype);
  const int32_t narrow = zero ? onnx_type_of(c, zero)->dtype : dtype;
  if (ir_dtypes[narrow].is_float) return quantize_to_float(c, wide, scale, narrow);
  if (zero) return onnx_out(c, 0, onnx_add(c, "quantize %%%u, %%%u, %%%u%s", wide, scale, zero, axis_text(c, axis, sizeof axis)));
  return onnx_out(c, 0,
                  onnx_add(c, "quantize %%%u, %%%u, dtype=%s%s", wide, scale, ir_dtypes[dtype].name, axis_text(c, axis, sizeof axis)));
}

bool onnx_op_dequantize(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  char axis[40], last[24] = "";
  uint32_t scale, zero;
  if (!x || !take_scales(c, onnx_type_of(c, x), &scale, &zero)) return false;
  if (zero) snprintf(last, sizeof last, ", %%%u", zero);
  const uint32_t y = onnx_add(c, "dequantize %%%u, %%%u%s%s", x, scale, last, axis_text(c, axis, sizeof axis));
  const onnx_attr *given = onnx_find_attr(c, "output_dtype");
  return onnx_out(c, 0, given && given->i ? onnx_cast(c, y, onnx_dtype_attr(c, "output_dtype", 0)) : y);
}

/* u8 with the range of x and 0 in it: scale (max - min) / 255, zero point round(-min / scale). */
bool onnx_quantized_dynamically(onnx_call *c, uint32_t x, onnx_quantized *out) {
  if (!x) return false;
  const uint32_t all = (1u << onnx_type_of(c, x)->rank) - 1;
  const uint32_t low = onnx_2n(c, IR_OP_min, onnx_reduce(c, IR_OP_reduce_min, x, all, false), 0);
  const uint32_t high = onnx_2n(c, IR_OP_max, onnx_reduce(c, IR_OP_reduce_max, x, all, false), 0);
  const uint32_t scale = onnx_2n(c, IR_OP_div, onnx_2(c, IR_OP_sub, high, low), 255);
  const uint32_t offset = onnx_1(c, IR_OP_neg, onnx_2(c, IR_OP_div, low, scale));
  const uint32_t zero = onnx_cast(c, onnx_1(c, IR_OP_round, offset), SNT_U8);
  const uint32_t codes = zero ? onnx_add(c, "quantize %%%u, %%%u, %%%u", x, scale, zero) : 0;
  *out = (onnx_quantized){codes, scale, zero};
  return codes != 0;
}

bool onnx_op_dynamic_quantize(onnx_call *c) {
  onnx_quantized q;
  if (!onnx_quantized_dynamically(c, onnx_in(c, 0), &q)) return false;
  return onnx_out(c, 0, q.codes) && onnx_out(c, 1, q.scale) && onnx_out(c, 2, q.zero);
}

uint32_t onnx_scale_in(onnx_call *c, uint32_t i, uint32_t rank, uint32_t axis) {
  const uint32_t v = onnx_in(c, i);
  ir_expr dims[SNT_MAX_RANK];
  if (!v) return 0;
  const ir_tensor type = *onnx_type_of(c, v);
  if (type.rank == 0 || (type.rank == 1 && type.dims[0] == 1)) return onnx_reshape(c, v, 0, NULL);
  if (type.rank != 1) return v;
  for (uint32_t k = 0; k < rank; k++) dims[k] = k == axis ? type.dims[0] : 1;
  return onnx_reshape(c, v, rank, dims);
}

uint32_t onnx_less_zero(onnx_call *c, uint32_t x, int32_t dtype, uint32_t i, uint32_t axis) {
  const uint32_t wide = onnx_cast(c, x, dtype);
  if (!wide || !onnx_has(c, i)) return wide;
  return onnx_2(c, IR_OP_sub, wide, onnx_cast(c, onnx_scale_in(c, i, onnx_type_of(c, wide)->rank, axis), dtype));
}

/* Zero points of a are one a row, those of b one a column. */
static uint32_t product(onnx_call *c, int32_t dtype, uint32_t b_at, uint32_t a_zero_at, uint32_t b_zero_at) {
  uint32_t a = onnx_in(c, 0), b = onnx_in(c, b_at);
  if (!a || !b) return 0;
  const uint32_t ranks[] = {onnx_type_of(c, a)->rank, onnx_type_of(c, b)->rank};
  a = onnx_less_zero(c, a, dtype, a_zero_at, ranks[0] > 1 ? ranks[0] - 2 : 0);
  b = onnx_less_zero(c, b, dtype, b_zero_at, ranks[1] ? ranks[1] - 1 : 0);
  return a && b ? onnx_add(c, "matmul %%%u, %%%u%s", a, b, dtype == SNT_F32 ? "" : ", dtype=i32") : 0;
}

/* 8 bits less 8 bits fit in 16, whose products processors add up faster than those of 32. */
bool onnx_op_matmul_integer(onnx_call *c) {
  const ir_tensor *a = onnx_in_type(c, 0), *b = onnx_in_type(c, 1);
  const bool narrow = a && b && ir_dtypes[a->dtype].bits <= 8 && ir_dtypes[b->dtype].bits <= 8;
  return onnx_out(c, 0, product(c, narrow ? SNT_I16 : SNT_I32, 1, 2, 3));
}

/* sums * (scale a * scale b / scale y) + zero y, saturated */
uint32_t(onnx_requantized)(onnx_call *c, uint32_t sums, uint32_t scales, uint32_t y_scale, uint32_t y_zero) {
  if (!sums || !scales || !y_scale || !y_zero) return 0;
  const uint32_t real = onnx_2(c, IR_OP_mul, onnx_cast(c, sums, onnx_type_of(c, scales)->dtype), onnx_2(c, IR_OP_div, scales, y_scale));
  const uint32_t one = onnx_like(c, real, 1);
  return real ? onnx_add(c, "quantize %%%u, %%%u, %%%u", real, one, y_zero) : 0;
}

bool onnx_op_qlinear_matmul(onnx_call *c) {
  const uint32_t a = onnx_in(c, 0), b = onnx_in(c, 3), sums = product(c, SNT_F32, 3, 2, 5);
  if (!sums) return false;
  const uint32_t ranks[] = {onnx_type_of(c, a)->rank, onnx_type_of(c, b)->rank};
  const uint32_t left = onnx_scale_in(c, 1, ranks[0], ranks[0] > 1 ? ranks[0] - 2 : 0),
                 right = onnx_scale_in(c, 4, ranks[1], ranks[1] ? ranks[1] - 1 : 0);
  const uint32_t scales = onnx_2(c, IR_OP_mul, left, right);
  return onnx_out(c, 0, onnx_requantized(c, sums, scales, onnx_scale_in(c, 6, 0, 0), onnx_scale_in(c, 7, 0, 0)));
}

/* With channels_last, which ONNX Runtime's own has, x and y are [n, spatial.., c]; w is [m, c / groups, taps..] all the same. */
bool onnx_op_qlinear_conv(onnx_call *c) {
  const bool last = c->node->domain[0] && onnx_int(c, "channels_last", 0);
  const uint32_t x = onnx_channels_second(c, onnx_in(c, 0), last), w = onnx_in(c, 3), bias = onnx_in(c, 8);
  onnx_spatial s;
  if (!x || !w || !onnx_read_spatial(c, onnx_type_of(c, x), onnx_type_of(c, w), &s)) return false;
  const uint32_t rank = onnx_type_of(c, x)->rank;
  if (!onnx_demand_channels(c, x, w)) return false;
  const uint32_t left = onnx_less_zero(c, x, SNT_F32, 2, 1), right = onnx_less_zero(c, w, SNT_F32, 5, 0);
  const char *window = onnx_spatial_text(c, &s);
  char last_operand[24] = "_";
  if (bias) snprintf(last_operand, sizeof last_operand, "%%%u", onnx_cast(c, bias, SNT_F32));
  if (!left || !right) return false;
  const uint32_t sums = onnx_add(c, "conv %%%u, %%%u, %s, %s, groups=%lld", left, right, last_operand, window,
                                 (long long)onnx_int(c, "group", 1));
  const uint32_t scales = onnx_2(c, IR_OP_mul, onnx_scale_in(c, 1, rank, 1), onnx_scale_in(c, 4, rank, 1));
  const uint32_t y = onnx_requantized(c, sums, scales, onnx_scale_in(c, 6, 0, 0), onnx_scale_in(c, 7, 0, 0));
  return onnx_out(c, 0, onnx_channels_back(c, y, last));
}
