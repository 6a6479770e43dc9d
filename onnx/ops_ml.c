/* Operators of the domain ai.onnx.ml that are arithmetic on rows of numbers, as pipelines of scikit-learn are exported, and what these share with the forests
   (ops_trees.c). Results that ONNX Runtime gives as f32 whatever comes in are so here; of wider numbers they are computed in f64 first. */
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
  if (a && a->kind == ONNX_FLOATS) {
    if (!(*out = onnx_room(c, a->floats.count, sizeof **out))) return false;
    for (uint32_t i = 0; i < a->floats.count; i++) (*out)[(*count)++] = (double)a->floats.at[i];
  } else if (a && a->kind == ONNX_TENSOR && a->tensor) {
    const void *data;
    uint64_t elements;
    snt_diag unused;
    const int32_t dtype = onnx_type(a->tensor->type).dtype;
    if (!dtype || onnx_tensor_data(a->tensor, onnx_arena(c), NULL, &data, &elements, &unused) != SNT_OK || elements > ONNX_MOST_REALS)
      return onnx_refuse(c, "%s cannot be read", longer);
    if (!(*out = onnx_room(c, (size_t)elements, sizeof **out))) return false;
    for (; *count < elements; ++*count)
      (*out)[*count] = ir_dtypes[dtype].is_float ? ir_dtype_load(dtype, data, *count) : (double)ir_dtype_load_int(dtype, data, *count);
  } else if (a) return onnx_refuse(c, "%s is no list of numbers", name);
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

static uint32_t rows_in(onnx_call *c) {
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
  const onnx_attr *ints = onnx_find_attr(c, "imputed_value_int64s");
  const double replaced = whole ? (double)onnx_int(c, "replaced_value_int64", 0) : onnx_float(c, "replaced_value_float", 0);
  uint32_t given;
  onnx_ignore(c, whole ? "replaced_value_float" : "replaced_value_int64");
  if (whole) {
    double *values = ints ? onnx_room(c, ints->ints.count, sizeof *values) : NULL;
    if (!values || !ints->ints.count) return onnx_refuse(c, "imputed_value_int64s must be given");
    for (uint32_t i = 0; i < ints->ints.count; i++) values[i] = (double)ints->ints.at[i];
    given = ints->ints.count == 1 ? onnx_like(c, x, values[0]) : onnx_vector(c, onnx_type_of(c, x)->dtype, ints->ints.count, values);
  } else given = for_each_feature(c, "imputed_value_floats", x, 0);
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
  const onnx_attr *cats = onnx_find_attr(c, "cats_int64s");
  const uint32_t x = onnx_in(c, 0), count = cats ? cats->ints.count : 0;
  double *values = onnx_room(c, count, sizeof *values);
  if (!x || !values || !count) return x && values && onnx_refuse(c, "categories that are strings");
  for (uint32_t i = 0; i < count; i++) values[i] = (double)cats->ints.at[i];
  if (!onnx_int(c, "zeros", 1)) return onnx_refuse(c, "zeros 0: what is in no category must be told");
  return onnx_out(c, 0, onnx_cast(c, compare_each(c, onnx_cast(c, x, SNT_I64), onnx_vector(c, SNT_I64, count, values)), SNT_F32));
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
  const uint32_t x = rows_in(c);
  if (!x || targets < 1 || targets > ONNX_MOST_REALS) return x && onnx_refuse(c, "%lld targets", (long long)targets);
  return onnx_out(c, 0, onnx_cast(c, onnx_transformed(c, linear_scores(c, x, (uint32_t)targets), after), SNT_F32));
}

/* One score for two classes stands for the second; the first has, as ONNX Runtime has it, 1 less that, or the logistic of its negative. */
bool onnx_op_linear_classifier(onnx_call *c) {
  const onnx_attr *whole = onnx_find_attr(c, "classlabels_ints"), *texts = onnx_find_attr(c, "classlabels_strings");
  const char *after = onnx_text(c, "post_transform", "NONE");
  const uint32_t classes = whole && whole->ints.count ? whole->ints.count : texts ? texts->texts.count : 0, x = rows_in(c);
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

/* ---- support vectors ---- */

/* [rows, vectors]: how near each row of x is to each vector. */
static uint32_t kernel_of(onnx_call *c, uint32_t x, uint32_t vectors) {
  const char *kind = onnx_text(c, "kernel_type", "LINEAR");
  double *given, parameter[3] = {0}; /* gamma, coef0, degree */
  uint32_t count;
  if (!onnx_reals(c, "kernel_params", &given, &count)) return 0;
  for (uint32_t i = 0; i < count && i < 3; i++) parameter[i] = given[i];
  const uint32_t turned = vectors ? onnx_transpose(c, vectors, (const uint32_t[]){1, 0}) : 0;
  const uint32_t dot = turned ? onnx_add(c, "matmul %%%u, %%%u", x, turned) : 0;
  if (!strcmp(kind, "LINEAR")) return dot;
  if (!strcmp(kind, "RBF")) {
    const ir_expr dims[] = {onnx_type_of(c, x)->dims[0], 1, onnx_type_of(c, x)->dims[1]};
    const uint32_t apart = onnx_2(c, IR_OP_sub, onnx_reshape(c, x, 3, dims), vectors);
    const uint32_t far = onnx_reduce(c, IR_OP_reduce_sum, onnx_2(c, IR_OP_mul, apart, apart), 1u << 2, false);
    return onnx_1(c, IR_OP_exp, onnx_2n(c, IR_OP_mul, far, -parameter[0]));
  }
  const uint32_t scaled = dot ? onnx_2n(c, IR_OP_add, onnx_2n(c, IR_OP_mul, dot, parameter[0]), parameter[1]) : 0;
  if (!strcmp(kind, "SIGMOID")) return onnx_1(c, IR_OP_tanh, scaled);
  return !strcmp(kind, "POLY") ? onnx_2n(c, IR_OP_pow, scaled, parameter[2]) : (onnx_refuse(c, "kernel_type %.20s", kind), 0);
}

/* Without support vectors `coefficients` is the one that rows are compared with. */
bool onnx_op_svm_regressor(onnx_call *c) {
  const int64_t supports = onnx_int(c, "n_supports", 0), one_class = onnx_int(c, "one_class", 0);
  const char *after = onnx_text(c, "post_transform", "NONE");
  const uint32_t x = rows_in(c);
  double *weights, *vectors, *rho;
  uint32_t weight_count, count, ends;
  int64_t features;
  if (!x || !onnx_reals(c, "coefficients", &weights, &weight_count) || !onnx_reals(c, "support_vectors", &vectors, &count) ||
      !onnx_reals(c, "rho", &rho, &ends))
    return false;
  const ir_tensor type = *onnx_type_of(c, x);
  const int64_t rows = supports ? supports : 1;
  if (!expr_is_const(c->g->pool, type.dims[1], &features) || rows < 1 || ends < 1 || rows * features != (supports ? count : weight_count) ||
      (supports && weight_count != rows))
    return onnx_refuse(c, "%lld support vectors of %u numbers and %u coefficients", (long long)supports, count, weight_count);
  const ir_tensor shape = {.dtype = type.dtype, .rank = 2, .dims = {(ir_expr)rows, type.dims[1]}},
                  column = {.dtype = type.dtype, .rank = 2, .dims = {(ir_expr)rows, 1}};
  uint32_t y = kernel_of(c, x, onnx_data(c, &shape, supports ? vectors : weights));
  if (y && supports) y = onnx_add(c, "matmul %%%u, %%%u", y, onnx_data(c, &column, weights));
  y = y ? onnx_2n(c, IR_OP_add, y, rho[0]) : 0;
  if (y && one_class)
    return onnx_out(c, 0, onnx_select(c, onnx_2n(c, IR_OP_gt, y, 0), onnx_scalar(c, SNT_F32, 1), onnx_scalar(c, SNT_F32, -1)));
  return onnx_out(c, 0, onnx_cast(c, onnx_transformed(c, y, after), SNT_F32));
}
