/* Operators of the domain ai.onnx.ml that are arithmetic on rows of numbers, as pipelines of scikit-learn are exported, and what these share with the forests
   (ops/trees.c). Results that ONNX Runtime gives as f32 whatever comes in are so here; of wider numbers they are computed in f64 first. */
#include "onnx/ops.h"
#include <math.h>

/* ---- what operators share ---- */

void *onnx_room(onnx_call *c, size_t count, size_t size) { return ir_arena_take(onnx_arena(c), (count + 1) * size, 8); }

bool onnx_reals(onnx_call *c, const char *name, double **out, uint32_t *count) {
  char longer[64];
  snprintf(longer, sizeof longer, "%s_as_tensor", name);
  const onnx_attr *a = onnx_find_attr(c, name), *b = onnx_find_attr(c, longer);
  *count = 0, *out = NULL;
  if (b) a = b;
  if (!a) return true;
  const bool floats = a->kind == ONNX_FLOATS;
  const void *data = floats ? (const void *)a->floats.at : a->ints.at;
  uint64_t elements = floats ? a->floats.count : a->ints.count;
  int32_t dtype = floats ? SNT_F32 : SNT_I64;
  snt_diag unused;
  if (a->kind == ONNX_TENSOR && a->tensor) {
    dtype = onnx_type(a->tensor->type).dtype;
    if (!dtype || onnx_tensor_data(a->tensor, onnx_arena(c), NULL, &data, &elements, &unused) != SNT_OK || elements > ONNX_MOST_REALS)
      return onnx_refuse(c, "%s cannot be read", longer);
  } else if (!floats && a->kind != ONNX_INTS) return onnx_refuse(c, "%s is no list of numbers", name);
  if (!(*out = onnx_room(c, (size_t)elements, sizeof **out))) return false;
  for (; *count < elements; ++*count)
    (*out)[*count] = ir_dtypes[dtype].is_float ? ir_dtype_load(dtype, data, *count) : (double)ir_dtype_load_int(dtype, data, *count);
  return true;
}

uint32_t onnx_vector(onnx_call *c, int32_t dtype, uint32_t count, const double *values) {
  return onnx_data(c, &(ir_tensor){.dtype = (uint8_t)dtype, .rank = 1, .dims = {count}}, values);
}

uint32_t onnx_transformed(onnx_call *c, uint32_t y, const char *how) {
  if (!y || !strcmp(how, "NONE")) return y;
  if (!strcmp(how, "LOGISTIC")) return onnx_add(c, "sigmoid %%%u", y);
  if (!strcmp(how, "SOFTMAX")) return onnx_add(c, "softmax %%%u, axis=-1", y);
  if (strcmp(how, "SOFTMAX_ZERO") != 0) return onnx_refuse(c, "post_transform %.20s", how), 0;
  const uint32_t there = onnx_2n(c, IR_OP_ne, y, 0), far = onnx_like(c, y, -INFINITY);
  return onnx_select(c, there, onnx_add(c, "softmax %%%u, axis=-1", onnx_select(c, there, y, far)), onnx_like(c, y, 0));
}

bool onnx_give_labels(onnx_call *c, const char *ints, uint32_t number, int64_t classes) {
  const onnx_attr *whole = onnx_find_attr(c, ints), *texts = onnx_find_attr(c, "classlabels_strings");
  if (!whole || !whole->ints.count) return (texts && texts->texts.count) ? onnx_out(c, 0, number) : onnx_refuse(c, "no classlabels");
  double *labels = onnx_room(c, whole->ints.count, sizeof *labels);
  bool counted = true;
  if (!labels || whole->ints.count != classes) return onnx_refuse(c, "%u labels", whole->ints.count);
  for (uint32_t i = 0; i < whole->ints.count; i++) labels[i] = (double)whole->ints.at[i], counted &= whole->ints.at[i] == (int64_t)i;
  return onnx_out(c, 0, counted ? number : onnx_gather(c, onnx_vector(c, SNT_I64, whole->ints.count, labels), number, 0));
}

/* Operand 0 in the type that is computed in. */
static uint32_t numbers_in(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  return x ? onnx_cast(c, x, onnx_type_of(c, x)->dtype == SNT_F64 ? SNT_F64 : SNT_F32) : 0;
}

uint32_t onnx_rows_in(onnx_call *c) {
  const uint32_t x = numbers_in(c);
  if (!x) return 0;
  const ir_tensor type = *onnx_type_of(c, x);
  if (type.rank < 1 || type.rank > 2) return onnx_refuse(c, "rows of rank %u", type.rank), 0;
  return onnx_reshape(c, x, 2, (const ir_expr[]){type.rank == 2 ? type.dims[0] : 1, type.dims[type.rank - 1]});
}

/* An attribute of one number, or of one for each place along the last axis of x; `otherwise` where it is not given. */
static uint32_t for_each_feature(onnx_call *c, const char *name, uint32_t x, double otherwise) {
  const ir_tensor type = *onnx_type_of(c, x);
  double *values;
  uint32_t count;
  int64_t columns;
  if (!onnx_reals(c, name, &values, &count)) return 0;
  if (count <= 1) return onnx_scalar(c, type.dtype, count ? values[0] : otherwise);
  if (!type.rank || !expr_is_const(c->g->pool, type.dims[type.rank - 1], &columns) || columns != count)
    return onnx_refuse(c, "%s has %u elements", name, count), 0;
  return onnx_vector(c, type.dtype, count, values);
}

/* A list of numbers of either kind as a vector; 0: it is not given. */
static uint32_t numbers_of(onnx_call *c, const char *name, int32_t dtype, uint32_t *count) {
  const onnx_attr *a = onnx_find_attr(c, name);
  *count = a && a->kind == ONNX_FLOATS ? a->floats.count : a && a->kind == ONNX_INTS ? a->ints.count : 0;
  double *values = onnx_room(c, *count, sizeof *values);
  for (uint32_t i = 0; values && i < *count; i++) values[i] = a->kind == ONNX_FLOATS ? (double)a->floats.at[i] : (double)a->ints.at[i];
  return values && *count ? onnx_vector(c, dtype, *count, values) : 0;
}

/* ---- features ---- */

bool onnx_op_scaler(onnx_call *c) {
  const uint32_t x = numbers_in(c), offset = x ? for_each_feature(c, "offset", x, 0) : 0,
                 scale = x ? for_each_feature(c, "scale", x, 1) : 0;
  return offset && scale && onnx_out(c, 0, onnx_cast(c, onnx_2(c, IR_OP_mul, onnx_2(c, IR_OP_sub, x, offset), scale), SNT_F32));
}

/* Rows whose divisor is 0 stay as they are. */
bool onnx_op_normalizer(onnx_call *c) {
  const char *how = onnx_text(c, "norm", "MAX");
  const uint32_t x = numbers_in(c), rank = x ? onnx_type_of(c, x)->rank : 0;
  const bool greatest = !strcmp(how, "MAX"), squares = !strcmp(how, "L2");
  if (!x || (!greatest && !squares && strcmp(how, "L1") != 0)) return x && onnx_refuse(c, "norm %.20s", how);
  if (!rank) return onnx_refuse(c, "a row of rank 0");
  const uint32_t each = greatest ? x : squares ? onnx_2(c, IR_OP_mul, x, x) : onnx_1(c, IR_OP_abs, x);
  uint32_t by = onnx_reduce(c, greatest ? IR_OP_reduce_max : IR_OP_reduce_sum, each, 1u << (rank - 1), true);
  if (squares) by = onnx_1(c, IR_OP_sqrt, by);
  by = by ? onnx_select(c, onnx_2n(c, IR_OP_eq, by, 0), onnx_like(c, by, 1), by) : 0;
  return onnx_out(c, 0, onnx_cast(c, onnx_2(c, IR_OP_div, x, by), SNT_F32));
}

bool onnx_op_imputer(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  if (!x) return false;
  const bool whole = ir_dtypes[onnx_type_of(c, x)->dtype].is_int;
  const double replaced = whole ? (double)onnx_int(c, "replaced_value_int64", 0) : onnx_float(c, "replaced_value_float", 0);
  uint32_t given, count;
  onnx_ignore(c, whole ? "replaced_value_float" : "replaced_value_int64");
  if (whole && !(given = numbers_of(c, "imputed_value_int64s", onnx_type_of(c, x)->dtype, &count)))
    return onnx_refuse(c, "imputed_value_int64s must be given");
  if (!whole) given = for_each_feature(c, "imputed_value_floats", x, 0);
  const uint32_t is = isnan(replaced) ? onnx_1(c, IR_OP_isnan, x) : onnx_2n(c, IR_OP_eq, x, replaced);
  return given && onnx_out(c, 0, onnx_select(c, is, given, x));
}

bool onnx_op_binarizer(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0), dtype = x ? onnx_type_of(c, x)->dtype : 0;
  return x && onnx_out(c, 0, onnx_cast(c, onnx_2n(c, IR_OP_gt, numbers_in(c), onnx_float(c, "threshold", 0)), (int32_t)dtype));
}

bool onnx_op_feature_vectorizer(onnx_call *c) {
  const onnx_list given = onnx_int_list(c, "inputdimensions");
  uint32_t *parts = onnx_room(c, c->in_count, sizeof *parts);
  if (!parts || !c->in_count) return parts && onnx_refuse(c, "no operands");
  for (uint32_t i = 0; i < c->in_count; i++) {
    const uint32_t x = onnx_in(c, i);
    if (!x) return false;
    const ir_tensor type = *onnx_type_of(c, x);
    if (type.rank < 1 || type.rank > 2) return onnx_refuse(c, "rows of rank %u", type.rank);
    if (i < given.count && given.at[i] != type.dims[type.rank - 1]) return onnx_refuse(c, "inputdimensions differ from operand %u", i);
    parts[i] = onnx_cast(c, onnx_reshape(c, x, 2, (const ir_expr[]){type.rank == 2 ? type.dims[0] : 1, type.dims[type.rank - 1]}), SNT_F32);
  }
  return onnx_out(c, 0, onnx_concat(c, 1, c->in_count, parts));
}

bool onnx_op_array_feature_extractor(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0), at = onnx_flat(c, onnx_in(c, 1));
  if (!x || !at) return false;
  const ir_tensor type = *onnx_type_of(c, x);
  if (!type.rank) return onnx_refuse(c, "an array of rank 0");
  const uint32_t rows = type.rank > 1 ? x : onnx_reshape(c, x, 2, (const ir_expr[]){1, type.dims[0]});
  return onnx_out(c, 0, onnx_gather(c, rows, at, type.rank > 1 ? type.rank - 1u : 1));
}

/* Where each element of x stands in a list, which has an axis of its own behind those of x. */
static uint32_t compare_each(onnx_call *c, uint32_t x, uint32_t list) {
  ir_tensor type = *onnx_type_of(c, x);
  if (type.rank == SNT_MAX_RANK) return onnx_refuse(c, "elements of rank %u", type.rank), 0;
  type.dims[type.rank] = 1;
  return onnx_2(c, IR_OP_eq, onnx_reshape(c, x, type.rank + 1u, type.dims), list);
}

bool onnx_op_one_hot_encoder(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  uint32_t count;
  const uint32_t categories = numbers_of(c, "cats_int64s", SNT_I64, &count);
  if (!x || !categories) return x && onnx_refuse(c, "categories that are strings");
  if (!onnx_int(c, "zeros", 1)) return onnx_refuse(c, "zeros 0: what is in no category must be told");
  return onnx_out(c, 0, onnx_cast(c, compare_each(c, onnx_cast(c, x, SNT_I64), categories), SNT_F32));
}

/* The value of the first key that is equal; since version 4 NaN is equal to NaN. */
bool onnx_op_label_encoder(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  if (!x) return false;
  const int32_t dtype = onnx_type_of(c, x)->dtype;
  const uint32_t rank = onnx_type_of(c, x)->rank;
  const bool real = ir_dtypes[dtype].is_float, floats = onnx_find_attr(c, "values_floats") != NULL;
  uint32_t keys, values;
  const uint32_t key = numbers_of(c, real ? "keys_floats" : "keys_int64s", dtype, &keys);
  const uint32_t value = numbers_of(c, floats ? "values_floats" : "values_int64s", floats ? SNT_F32 : SNT_I64, &values);
  onnx_ignore(c, "default_string"), onnx_ignore(c, floats ? "default_int64" : "default_float");
  if (!key || !value || keys != values) return onnx_refuse(c, "keys and values must be numbers, as many of the one as of the other");
  uint32_t met = compare_each(c, x, key);
  if (real && c->opset >= 4) {
    const uint32_t own = onnx_1(c, IR_OP_isnan, onnx_with_axis(c, x, rank));
    met = onnx_2(c, IR_OP_or, met, onnx_2(c, IR_OP_and, own, onnx_1(c, IR_OP_isnan, key)));
  }
  const uint32_t flags = onnx_cast(c, met, SNT_I32),
                 found = onnx_2n(c, IR_OP_gt, onnx_reduce(c, IR_OP_reduce_max, flags, 1u << rank, false), 0);
  const uint32_t number = onnx_reduce(c, IR_OP_reduce_argmax, flags, 1u << rank, false);
  const uint32_t otherwise = onnx_like(c, value, floats ? onnx_float(c, "default_float", -0.0) : (double)onnx_int(c, "default_int64", -1));
  return found && onnx_out(c, 0, onnx_select(c, found, onnx_gather(c, value, number, 0), otherwise));
}

/* The columns of a table of probabilities are the keys of its maps. */
bool onnx_op_zip_map(onnx_call *c) {
  onnx_ignore(c, "classlabels_int64s"), onnx_ignore(c, "classlabels_strings");
  return onnx_out_same(c, 0, 0);
}

/* ---- linear models ---- */

/* Rows by `coefficients`, of as many features for each result, and the intercepts: [rows, results]. */
static uint32_t linear_scores(onnx_call *c, uint32_t x, uint32_t results) {
  double *weights, *intercepts;
  uint32_t count, ends;
  int64_t features;
  if (!onnx_reals(c, "coefficients", &weights, &count) || !onnx_reals(c, "intercepts", &intercepts, &ends)) return 0;
  const ir_tensor type = *onnx_type_of(c, x);
  if (!results || !expr_is_const(c->g->pool, type.dims[1], &features) || features * results != count || (ends && ends != results))
    return onnx_refuse(c, "%u coefficients and %u intercepts for %u results", count, ends, results), 0;
  const ir_tensor shape = {.dtype = type.dtype, .rank = 2, .dims = {results, type.dims[1]}};
  const uint32_t turned = onnx_transpose(c, onnx_data(c, &shape, weights), (const uint32_t[]){1, 0});
  const uint32_t y = turned ? onnx_add(c, "matmul %%%u, %%%u", x, turned) : 0;
  return ends ? onnx_2(c, IR_OP_add, y, onnx_vector(c, type.dtype, ends, intercepts)) : y;
}

bool onnx_op_linear_regressor(onnx_call *c) {
  const int64_t targets = onnx_int(c, "targets", 1);
  const char *after = onnx_text(c, "post_transform", "NONE");
  const uint32_t x = onnx_rows_in(c);
  if (!x || targets < 1 || targets > ONNX_MOST_REALS) return x && onnx_refuse(c, "%lld targets", (long long)targets);
  const uint32_t y = linear_scores(c, x, (uint32_t)targets);
  return onnx_out(c, 0,
                  onnx_cast(c, targets == 1 ? y : onnx_transformed(c, y, after), SNT_F32)); /* of one ONNX Runtime transforms nothing */
}

/* One score for two classes stands for the second; the first has, as ONNX Runtime has it, 1 less that, or the logistic of its negative. */
bool onnx_op_linear_classifier(onnx_call *c) {
  const onnx_attr *whole = onnx_find_attr(c, "classlabels_ints"), *texts = onnx_find_attr(c, "classlabels_strings");
  const char *after = onnx_text(c, "post_transform", "NONE");
  const uint32_t classes = whole && whole->ints.count ? whole->ints.count : texts ? texts->texts.count : 0, x = onnx_rows_in(c);
  const onnx_attr *ends = onnx_find_attr(c, "intercepts");
  const bool alone = classes == 2 && ends && ends->kind == ONNX_FLOATS && ends->floats.count == 1;
  onnx_ignore(c, "multi_class");
  const uint32_t y = x ? linear_scores(c, x, alone ? 1 : classes) : 0;
  if (!y) return false;
  if (!alone) {
    const uint32_t number = onnx_add(c, "argmax %%%u, axis=-1", y);
    return number && onnx_give_labels(c, "classlabels_ints", number, classes) &&
           onnx_out(c, 1, onnx_cast(c, onnx_transformed(c, y, after), SNT_F32));
  }
  const bool logistic = !strcmp(after, "LOGISTIC");
  const uint32_t second = onnx_flat(c, onnx_cast(c, onnx_2n(c, IR_OP_gt, y, 0), SNT_I64));
  const uint32_t scores[] = {logistic ? onnx_1(c, IR_OP_neg, y) : onnx_2(c, IR_OP_sub, onnx_like(c, y, 1), y), y};
  const uint32_t both = onnx_concat(c, 1, 2, scores);
  if (!logistic && !onnx_transformed(c, y, after)) return false; /* others change nothing there, but must be some */
  return both && onnx_give_labels(c, "classlabels_ints", second, classes) &&
         onnx_out(c, 1, onnx_cast(c, logistic ? onnx_transformed(c, both, after) : both, SNT_F32));
}
