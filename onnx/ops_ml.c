/* Operators of the domain ai.onnx.ml that are arithmetic on rows: what pipelines of scikit-learn are written as, around forests (ops_trees.c) or by themselves.
   Where its text leaves something open, as ONNX Runtime has it. Labels that are text are told by their number, as everywhere here: there are no tensors of text. */
#include "onnx/ops.h"
#include <math.h>

/* A list of numbers as a vector; 0: it is not given, or refused. */
static uint32_t vector_attr(onnx_call *c, const char *name, int32_t dtype, uint32_t *count) {
  const onnx_attr *a = onnx_find_attr(c, name);
  *count = a && a->kind == ONNX_FLOATS ? a->floats.count : a && a->kind == ONNX_INTS ? a->ints.count : 0;
  double *values = ir_arena_take(onnx_arena(c), (*count + 1) * sizeof *values, 8);
  if (!*count || !values) return 0;
  for (uint32_t i = 0; i < *count; i++) values[i] = a->kind == ONNX_FLOATS ? (double)a->floats.at[i] : (double)a->ints.at[i];
  return onnx_data(c, &(ir_tensor){.dtype = (uint8_t)dtype, .rank = 1, .dims = {*count}}, values);
}

static bool is_vector_for(onnx_call *c, const char *name, uint32_t count, uint32_t x) {
  const ir_tensor *type = onnx_type_of(c, x);
  int64_t columns;
  if (count == 1) return true;
  const bool known = type->rank && expr_is_const(c->g->pool, type->dims[type->rank - 1], &columns);
  return (type->rank && (!known || columns == count)) || onnx_refuse(c, "%s has %u elements", name, count);
}

uint32_t onnx_rows_in(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  if (!x) return 0;
  const ir_tensor type = *onnx_type_of(c, x);
  if (type.rank < 1 || type.rank > 2) return onnx_refuse(c, "rows of rank %u", type.rank), 0;
  const ir_expr dims[] = {type.rank == 2 ? type.dims[0] : 1, type.dims[type.rank - 1]};
  return onnx_cast(c, onnx_reshape(c, x, 2, dims), SNT_F32);
}

/* ---- what classifiers share ---- */

/* NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO (where scores that are 0 stay so). */
uint32_t onnx_post_transform(onnx_call *c, uint32_t y, const char *how) {
  if (!y || !strcmp(how, "NONE")) return y;
  if (!strcmp(how, "LOGISTIC")) return onnx_add(c, "sigmoid %%%u", y);
  if (!strcmp(how, "SOFTMAX")) return onnx_add(c, "softmax %%%u, axis=-1", y);
  if (strcmp(how, "SOFTMAX_ZERO") != 0) return onnx_refuse(c, "post_transform %.20s", how), 0;
  const uint32_t there = onnx_2n(c, IR_OP_ne, y, 0), far = onnx_like(c, y, -INFINITY);
  return onnx_select(c, there, onnx_add(c, "softmax %%%u, axis=-1", onnx_select(c, there, y, far)), onnx_like(c, y, 0));
}

uint32_t onnx_class_count(onnx_call *c, const char *ints) {
  const onnx_attr *whole = onnx_find_attr(c, ints), *texts = onnx_find_attr(c, "classlabels_strings");
  return whole && whole->ints.count ? whole->ints.count : texts ? texts->texts.count : 0;
}

bool onnx_give_labels(onnx_call *c, uint32_t number, const char *ints, int64_t classes) {
  const onnx_attr *whole = onnx_find_attr(c, ints);
  uint32_t count;
  bool counted = true;
  if (onnx_class_count(c, ints) != classes)
    return onnx_refuse(c, "%u labels for %lld classes", onnx_class_count(c, ints), (long long)classes);
  for (uint32_t i = 0; whole && i < whole->ints.count; i++) counted &= whole->ints.at[i] == (int64_t)i;
  if (!number || counted) return onnx_out(c, 0, number);
  return onnx_out(c, 0, onnx_gather(c, vector_attr(c, ints, SNT_I64, &count), number, 0));
}

/* ---- linear models ---- */

/* [rows, columns of scores]: x by the rows of coefficients, and intercepts. */
static uint32_t scores(onnx_call *c, uint32_t x, uint32_t columns) {
  uint32_t count, given;
  const uint32_t weights = vector_attr(c, "coefficients", SNT_F32, &count), bias = vector_attr(c, "intercepts", SNT_F32, &given);
  if (!x || !weights || !columns || count % columns) return onnx_refuse(c, "%u coefficients for %u columns", count, columns), 0;
  if (given && given != columns) return onnx_refuse(c, "%u intercepts for %u columns", given, columns), 0;
  const ir_expr features = count / columns, dims[] = {columns, features};
  if (onnx_type_of(c, x)->dims[1] != features)
    return onnx_refuse(c, "%u coefficients for %u columns of other rows than these", count, columns), 0;
  const uint32_t y = onnx_add(c, "matmul %%%u, %%%u, transpose_b", x, onnx_reshape(c, weights, 2, dims));
  return bias ? onnx_2(c, IR_OP_add, y, bias) : y;
}

bool onnx_op_linear_regressor(onnx_call *c) {
  const int64_t targets = onnx_int(c, "targets", 1);
  const char *after = onnx_text(c, "post_transform", "NONE");
  if (targets < 1 || targets > UINT16_MAX) return onnx_refuse(c, "%lld targets", (long long)targets);
  const uint32_t y = scores(c, onnx_rows_in(c), (uint32_t)targets);
  return onnx_out(c, 0, targets == 1 ? y : onnx_post_transform(c, y, after)); /* of one target ONNX Runtime transforms nothing */
}

/* Of two classes one score may stand for both: s and 1 - s, or their logistics. */
static bool classify_by_one(onnx_call *c, uint32_t s, const char *after) {
  const bool logistic = !strcmp(after, "LOGISTIC");
  const uint32_t number = onnx_flat(c, onnx_cast(c, onnx_2n(c, IR_OP_gt, s, 0), SNT_I64));
  if (!number || !onnx_give_labels(c, number, "classlabels_ints", 2)) return false;
  if (!logistic && strncmp(after, "SOFTMAX", 7) != 0 && strcmp(after, "NONE") != 0) return onnx_refuse(c, "post_transform %.20s", after);
  const uint32_t other = logistic ? onnx_1(c, IR_OP_neg, s) : onnx_2(c, IR_OP_sub, onnx_like(c, s, 1), s), parts[] = {other, s};
  const uint32_t both = onnx_concat(c, 1, 2, parts);
  return onnx_out(c, 1, logistic ? onnx_post_transform(c, both, after) : both);
}

bool onnx_op_linear_classifier(onnx_call *c) {
  const uint32_t classes = onnx_class_count(c, "classlabels_ints");
  const char *after = onnx_text(c, "post_transform", "NONE");
  const onnx_attr *intercepts = onnx_find_attr(c, "intercepts");
  onnx_ignore(c, "multi_class");
  const uint32_t columns = intercepts && intercepts->floats.count ? intercepts->floats.count : classes,
                 y = scores(c, onnx_rows_in(c), columns);
  if (!y) return false;
  if (columns == 1 && classes == 2) return classify_by_one(c, y, after);
  const uint32_t number = onnx_add(c, "argmax %%%u, axis=-1", y);
  return number && onnx_give_labels(c, number, "classlabels_ints", columns) && onnx_out(c, 1, onnx_post_transform(c, y, after));
}

/* ---- rows before and behind them ---- */

bool onnx_op_scaler(onnx_call *c) {
  uint32_t x = onnx_cast(c, onnx_in(c, 0), SNT_F32), offsets, scales;
  const uint32_t offset = vector_attr(c, "offset", SNT_F32, &offsets), scale = vector_attr(c, "scale", SNT_F32, &scales);
  if (!x || (offset && !is_vector_for(c, "offset", offsets, x)) || (scale && !is_vector_for(c, "scale", scales, x))) return false;
  if (offset) x = onnx_2(c, IR_OP_sub, x, offset);
  return onnx_out(c, 0, scale ? onnx_2(c, IR_OP_mul, x, scale) : x);
}

/* By the greatest (not of magnitudes), the sum of magnitudes or the root of the sum of squares; rows of which that is 0 stay. */
bool onnx_op_normalizer(onnx_call *c) {
  const char *norm = onnx_text(c, "norm", "MAX");
  const uint32_t x = onnx_cast(c, onnx_in(c, 0), SNT_F32);
  if (!x) return false;
  const uint32_t rank = onnx_type_of(c, x)->rank;
  uint32_t by = 0;
  if (rank < 1 || rank > 2) return onnx_refuse(c, "rows of rank %u", rank);
  const uint32_t row = 1u << (rank - 1);
  if (!strcmp(norm, "MAX")) by = onnx_reduce(c, IR_OP_reduce_max, x, row, true);
  else if (!strcmp(norm, "L1")) by = onnx_reduce(c, IR_OP_reduce_sum, onnx_1(c, IR_OP_abs, x), row, true);
  else if (!strcmp(norm, "L2")) by = onnx_1(c, IR_OP_sqrt, onnx_reduce(c, IR_OP_reduce_sum, onnx_2(c, IR_OP_mul, x, x), row, true));
  else return onnx_refuse(c, "norm %.20s", norm);
  return by && onnx_out(c, 0, onnx_2(c, IR_OP_div, x, onnx_select(c, onnx_2n(c, IR_OP_eq, by, 0), onnx_like(c, by, 1), by)));
}

bool onnx_op_binarizer(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  return x && onnx_out(c, 0, onnx_cast(c, onnx_2n(c, IR_OP_gt, x, onnx_float(c, "threshold", 0)), onnx_type_of(c, x)->dtype));
}

/* What is equal to a number, or NaN where that is it, becomes another: one for all columns, or each one's. */
bool onnx_op_imputer(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  uint32_t count;
  if (!x) return false;
  const bool real = ir_dtypes[onnx_type_of(c, x)->dtype].is_float;
  const char *name = real ? "imputed_value_floats" : "imputed_value_int64s";
  const double replaced = real ? onnx_float(c, "replaced_value_float", 0) : (double)onnx_int(c, "replaced_value_int64", 0);
  const uint32_t given = vector_attr(c, name, onnx_type_of(c, x)->dtype, &count);
  onnx_ignore(c, real ? "replaced_value_int64" : "replaced_value_float"),
      onnx_ignore(c, real ? "imputed_value_int64s" : "imputed_value_floats");
  if (!given || !is_vector_for(c, name, count, x)) return onnx_refuse(c, "%s must be given", name);
  return onnx_out(c, 0, onnx_select(c, isnan(replaced) ? onnx_1(c, IR_OP_isnan, x) : onnx_2n(c, IR_OP_eq, x, replaced), given, x));
}

/* [.., categories] */
bool onnx_op_one_hot_encoder(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  uint32_t count;
  if (!x) return false;
  const uint32_t rank = onnx_type_of(c, x)->rank, categories = vector_attr(c, "cats_int64s", SNT_I64, &count);
  if (!categories) return onnx_refuse(c, "categories that are no whole numbers");
  if (!onnx_int(c, "zeros", 1)) return onnx_refuse(c, "zeros=0: a category that is not listed would be an error");
  return rank < SNT_MAX_RANK &&
         onnx_out(c, 0, onnx_cast(c, onnx_2(c, IR_OP_eq, onnx_cast(c, onnx_with_axis(c, x, rank), SNT_I64), categories), SNT_F32));
}

/* Columns of all operands beside each other. */
bool onnx_op_feature_vectorizer(onnx_call *c) {
  uint32_t parts[ONNX_MAX_INPUTS];
  onnx_ignore(c, "inputdimensions");
  for (uint32_t i = 0; i < c->in_count; i++) {
    const uint32_t x = onnx_cast(c, onnx_in(c, i), SNT_F32);
    if (!x) return false;
    const ir_tensor type = *onnx_type_of(c, x);
    const ir_expr dims[] = {type.dims[0], type.rank == 1 ? 1 : type.dims[1]};
    if (type.rank < 1 || type.rank > 2 || !(parts[i] = onnx_reshape(c, x, 2, dims))) return onnx_refuse(c, "rows of rank %u", type.rank);
  }
  return c->in_count && onnx_out(c, 0, onnx_concat(c, 1, c->in_count, parts));
}

/* Columns by number; of a vector a row. */
bool onnx_op_array_feature_extractor(onnx_call *c) {
  uint32_t x = onnx_in(c, 0);
  const uint32_t index = onnx_flat(c, onnx_in(c, 1));
  if (!x || !index || onnx_type_of(c, x)->rank < 1) return false;
  if (onnx_type_of(c, x)->rank == 1) x = onnx_with_axis(c, x, 0);
  return x && onnx_out(c, 0, onnx_gather(c, x, index, onnx_type_of(c, x)->rank - 1));
}

/* The value of the first key that is equal; since version 4 NaN is equal to NaN. */
bool onnx_op_label_encoder(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  uint32_t keys, values;
  if (!x) return false;
  const int32_t dtype = onnx_type_of(c, x)->dtype;
  const bool real = ir_dtypes[dtype].is_float, floats = onnx_find_attr(c, "values_floats") != NULL;
  const uint32_t key = vector_attr(c, real ? "keys_floats" : "keys_int64s", dtype, &keys);
  const uint32_t value = vector_attr(c, floats ? "values_floats" : "values_int64s", floats ? SNT_F32 : SNT_I64, &values);
  onnx_ignore(c, "default_string"), onnx_ignore(c, floats ? "default_int64" : "default_float");
  if (!key || !value || keys != values) return onnx_refuse(c, "keys and values must be numbers, as many of the one as of the other");
  const uint32_t own = onnx_with_axis(c, x, onnx_type_of(c, x)->rank), rank = onnx_type_of(c, x)->rank;
  uint32_t met = onnx_2(c, IR_OP_eq, own, key);
  if (real && c->opset >= 4) met = onnx_2(c, IR_OP_or, met, onnx_2(c, IR_OP_and, onnx_1(c, IR_OP_isnan, own), onnx_1(c, IR_OP_isnan, key)));
  const uint32_t flags = onnx_cast(c, met, SNT_I32),
                 found = onnx_2n(c, IR_OP_gt, onnx_reduce(c, IR_OP_reduce_max, flags, 1u << rank, false), 0);
  const uint32_t number = onnx_reduce(c, IR_OP_reduce_argmax, flags, 1u << rank, false);
  const uint32_t otherwise = onnx_like(c, value, floats ? onnx_float(c, "default_float", -0.0) : (double)onnx_int(c, "default_int64", -1));
  return found && onnx_out(c, 0, onnx_select(c, found, onnx_gather(c, value, number, 0), otherwise));
}

/* A map from labels to scores, a row each: the scores, in the order of the labels. */
bool onnx_op_zip_map(onnx_call *c) {
  onnx_ignore(c, "classlabels_int64s"), onnx_ignore(c, "classlabels_strings");
  return onnx_out(c, 0, onnx_in(c, 0));
}
