/* Operators that move known numbers, count them or make lists of them. */
#include "onnx/known.h"

enum { MAX_LIST = 16 };

/* Axes from the operand `input`, else from the attribute, counted from the front of `rank`. */
static bool axes_of(known_call *k, uint32_t input, uint32_t rank, uint32_t *mask, bool *given) {
  int64_t axes[MAX_LIST];
  uint32_t count = 0;
  *mask = 0;
  if (input < k->in_count && k->in[input].at) {
    if (!known_ints(k, input, MAX_LIST, axes, &count)) return false;
    *given = true;
  } else {
    const onnx_attr *a = onnx_find_attr(k->c, "axes");
    *given = a != NULL;
    if (a && a->ints.count > MAX_LIST) return false;
    count = a ? a->ints.count : 0;
    for (uint32_t i = 0; i < count; i++) axes[i] = a->ints.at[i];
  }
  for (uint32_t i = 0; i < count; i++) {
    const int64_t axis = axes[i] < 0 ? axes[i] + (int64_t)rank : axes[i];
    if (axis < 0 || axis >= (int64_t)rank) return false;
    *mask |= 1u << axis;
  }
  return true;
}

static known_result copy_as(known_call *k, uint32_t rank, const ir_expr *dims) {
  if (!known_make(k, k->in[0].type.dtype, rank, dims) || k->out.count != k->in[0].count) return KNOWN_NO;
  if (k->out.count) memcpy(k->out.at, k->in[0].at, k->out.count * sizeof *k->out.at);
  return KNOWN_YES;
}

known_result known_same(known_call *k) { return copy_as(k, k->in[0].type.rank, k->in[0].type.dims); }

known_result known_unsqueeze(known_call *k) {
  const ir_tensor *t = &k->in[0].type;
  ir_expr dims[SNT_MAX_RANK];
  uint32_t mask, count = 0;
  bool given;
  const onnx_attr *a = onnx_find_attr(k->c, "axes");
  count = k->in_count > 1 ? k->in[1].count : a ? a->ints.count : 0;
  const uint32_t rank = t->rank + count;
  if (rank > SNT_MAX_RANK || !axes_of(k, 1, rank, &mask, &given) || !given) return KNOWN_NO;
  for (uint32_t i = 0, from = 0; i < rank; i++) {
    if (!(mask >> i & 1) && from == t->rank) return KNOWN_NO; /* an axis named twice */
    dims[i] = mask >> i & 1 ? 1 : t->dims[from++];
  }
  return copy_as(k, rank, dims);
}

known_result known_squeeze(known_call *k) {
  const ir_tensor *t = &k->in[0].type;
  ir_expr dims[SNT_MAX_RANK];
  uint32_t mask, rank = 0;
  bool given;
  if (!axes_of(k, 1, t->rank, &mask, &given)) return KNOWN_NO;
  for (uint32_t i = 0; i < t->rank; i++)
    if (given ? !(mask >> i & 1) : t->dims[i] != 1) dims[rank++] = t->dims[i];
  return copy_as(k, rank, dims);
}

known_result known_reshape(known_call *k) {
  int64_t shape[SNT_MAX_RANK], known = 1;
  uint32_t rank, open = UINT32_MAX;
  if (k->in_count != 2 || !known_ints(k, 1, SNT_MAX_RANK, shape, &rank)) return KNOWN_NO;
  for (uint32_t i = 0; i < rank; i++) {
    if (shape[i] == 0 && !onnx_int(k->c, "allowzero", 0)) shape[i] = i < k->in[0].type.rank ? k->in[0].type.dims[i] : -2;
    if (shape[i] < -1 || shape[i] > ONNX_MAX_KNOWN || (shape[i] == -1 && open != UINT32_MAX)) return KNOWN_NO;
    if (shape[i] == -1) open = i;
    else known *= shape[i];
    if (known > ONNX_MAX_KNOWN) return KNOWN_NO;
  }
  if (open != UINT32_MAX && known) shape[open] = k->in[0].count / known;
  return copy_as(k, rank, shape);
}

known_result known_flatten(known_call *k) {
  const ir_tensor *t = &k->in[0].type;
  const int64_t given = onnx_int(k->c, "axis", 1), axis = given < 0 ? given + t->rank : given;
  ir_expr dims[2] = {1, 1};
  for (uint32_t i = 0; i < t->rank; i++) dims[(int64_t)i >= axis] *= t->dims[i];
  return copy_as(k, 2, dims);
}

/* Extents of `t` before, at and after an axis. */
static void around(const ir_tensor *t, uint32_t axis, uint32_t *before, uint32_t *after) {
  *before = *after = 1;
  for (uint32_t i = 0; i < axis; i++) *before *= (uint32_t)t->dims[i];
  for (uint32_t i = axis + 1; i < t->rank; i++) *after *= (uint32_t)t->dims[i];
}

known_result known_gather(known_call *k) {
  const ir_tensor *t = &k->in[0].type, *index = &k->in[1].type;
  const int64_t given = onnx_int(k->c, "axis", 0), axis = given < 0 ? given + t->rank : given;
  ir_expr dims[2 * SNT_MAX_RANK];
  uint32_t rank = 0, before, after;
  if (k->in_count != 2 || !k->in[1].at || axis < 0 || axis >= t->rank) return KNOWN_NO;
  for (uint32_t i = 0; i < t->rank; i++) {
    if (i != axis) dims[rank++] = t->dims[i];
    for (uint32_t d = 0; i == axis && d < index->rank; d++) dims[rank++] = index->dims[d];
  }
  if (!known_make(k, t->dtype, rank, dims)) return KNOWN_NO;
  around(t, (uint32_t)axis, &before, &after);
  for (uint32_t i = 0; i < k->out.count; i++) {
    const uint32_t at = i / after % k->in[1].count, outer = i / after / k->in[1].count;
    int64_t position;
    if (!known_literal(k, k->in[1].at[at], &position)) return KNOWN_NO;
    if (position < 0) position += t->dims[axis];
    if (position < 0 || position >= t->dims[axis]) {
      onnx_refuse(k->c, "index %lld is outside the axis' extent %lld", (long long)position, (long long)t->dims[axis]);
      return KNOWN_REFUSED;
    }
    k->out.at[i] = k->in[0].at[(outer * (uint32_t)t->dims[axis] + (uint32_t)position) * after + i % after];
  }
  return KNOWN_YES;
}

static void row_major(const ir_tensor *t, uint32_t *stride) {
  uint32_t at = 1;
  for (uint32_t d = t->rank; d-- > 0;) {
    stride[d] = at;
    at *= (uint32_t)t->dims[d];
  }
}

/* Up to opset 9 the bounds are attributes. */
static bool slice_bounds(known_call *k, int64_t *starts, int64_t *ends, int64_t *axes, int64_t *steps, uint32_t *count) {
  uint32_t counts[4] = {0};
  *count = 0;
  if (k->in_count == 1) {
    const onnx_attr *s = onnx_find_attr(k->c, "starts"), *e = onnx_find_attr(k->c, "ends"), *a = onnx_find_attr(k->c, "axes");
    if (!s || !e || s->ints.count > SNT_MAX_RANK || e->ints.count != s->ints.count || (a && a->ints.count != s->ints.count)) return false;
    for (uint32_t i = 0; i < s->ints.count; i++) {
      starts[i] = s->ints.at[i], ends[i] = e->ints.at[i], axes[i] = a ? a->ints.at[i] : i, steps[i] = 1;
    }
    *count = s->ints.count;
    return true;
  }
  if (!known_ints(k, 1, SNT_MAX_RANK, starts, &counts[0]) || !known_ints(k, 2, SNT_MAX_RANK, ends, &counts[1])) return false;
  for (uint32_t i = 0; i < counts[0]; i++) axes[i] = i, steps[i] = 1;
  counts[2] = counts[3] = counts[0];
  if (k->in_count > 3 && k->in[3].at && !known_ints(k, 3, SNT_MAX_RANK, axes, &counts[2])) return false;
  if (k->in_count > 4 && k->in[4].at && !known_ints(k, 4, SNT_MAX_RANK, steps, &counts[3])) return false;
  *count = counts[0];
  return counts[1] == counts[0] && counts[2] == counts[0] && counts[3] == counts[0];
}

static int64_t clamp(int64_t value, int64_t low, int64_t high) { return value < low ? low : value > high ? high : value; }

typedef struct slice_range {
  int64_t from, step, size;
} slice_range;

static bool find_range(slice_range *out, int64_t extent, int64_t start, int64_t end, int64_t step) {
  if (step == 0 || step == INT64_MIN) return false;
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  const int64_t from = clamp(start < 0 ? start + extent : start, low, high);
  const int64_t to = clamp(end < 0 ? (end < -extent ? low : end + extent) : end, low, high);
  const int64_t distance = step > 0 ? to - from : from - to, stride = step > 0 ? step : -step;
  *out = (slice_range){from, step, distance <= 0 ? 0 : (distance - 1) / stride + 1};
  return true;
}

known_result known_slice(known_call *k) {
  const ir_tensor *t = &k->in[0].type;
  int64_t starts[SNT_MAX_RANK], ends[SNT_MAX_RANK], axes[SNT_MAX_RANK], steps[SNT_MAX_RANK];
  slice_range range[SNT_MAX_RANK];
  uint32_t count, plain[SNT_MAX_RANK];
  ir_expr size[SNT_MAX_RANK];
  if (!slice_bounds(k, starts, ends, axes, steps, &count)) return KNOWN_NO;
  for (uint32_t d = 0; d < t->rank; d++) range[d] = (slice_range){0, 1, t->dims[d]};
  for (uint32_t i = 0; i < count; i++) {
    const int64_t axis = axes[i] < 0 ? axes[i] + t->rank : axes[i];
    if (axis < 0 || axis >= t->rank || !find_range(&range[axis], t->dims[axis], starts[i], ends[i], steps[i])) return KNOWN_NO;
  }
  for (uint32_t d = 0; d < t->rank; d++) size[d] = range[d].size;
  if (!known_make(k, t->dtype, t->rank, size)) return KNOWN_NO;
  row_major(t, plain);
  for (uint32_t i = 0; i < k->out.count; i++) {
    int64_t from = 0, rest = i;
    for (uint32_t d = t->rank; d-- > 0; rest /= range[d].size) from += (range[d].from + rest % range[d].size * range[d].step) * plain[d];
    k->out.at[i] = k->in[0].at[from];
  }
  return KNOWN_YES;
}

known_result known_concat(known_call *k) {
  const ir_tensor *t = &k->in[0].type;
  const int64_t given = onnx_int(k->c, "axis", 0), axis = given < 0 ? given + t->rank : given;
  ir_expr dims[SNT_MAX_RANK];
  uint32_t before, after, at = 0;
  if (axis < 0 || axis >= t->rank) return KNOWN_NO;
  memcpy(dims, t->dims, t->rank * sizeof *dims);
  for (uint32_t i = 1; i < k->in_count; i++) {
    if (!k->in[i].at || k->in[i].type.rank != t->rank) return KNOWN_NO;
    for (uint32_t d = 0; d < t->rank; d++)
      if (d != axis && k->in[i].type.dims[d] != dims[d]) return KNOWN_NO;
    dims[axis] += k->in[i].type.dims[axis];
  }
  if (!k->in[0].at || !known_make(k, t->dtype, t->rank, dims)) return KNOWN_NO;
  around(&k->out.type, (uint32_t)axis, &before, &after);
  for (uint32_t row = 0; row < before; row++)
    for (uint32_t i = 0; i < k->in_count; i++) {
      const uint32_t length = (uint32_t)k->in[i].type.dims[axis] * after;
      for (uint32_t n = 0; n < length; n++) k->out.at[at++] = k->in[i].at[row * length + n];
    }
  return KNOWN_YES;
}

/* ---- by coordinates: out[i0, i1 ..] = in[stride of each axis] ---- */
static known_result gather_strided(known_call *k, const uint32_t *stride, const uint32_t *wrap) {
  for (uint32_t i = 0; i < k->out.count; i++) {
    uint32_t rest = i, from = 0;
    for (uint32_t d = k->out.type.rank; d-- > 0;) {
      const uint32_t extent = (uint32_t)k->out.type.dims[d];
      from += rest % extent % wrap[d] * stride[d];
      rest /= extent;
    }
    k->out.at[i] = k->in[0].at[from];
  }
  return KNOWN_YES;
}

known_result known_expand(known_call *k) {
  const ir_tensor *t = &k->in[0].type;
  int64_t shape[SNT_MAX_RANK];
  uint32_t rank, stride[SNT_MAX_RANK], plain[SNT_MAX_RANK], wrap[SNT_MAX_RANK];
  if (k->in_count != 2 || !known_ints(k, 1, SNT_MAX_RANK, shape, &rank)) return KNOWN_NO;
  ir_tensor want = {.rank = (uint8_t)rank}, out;
  for (uint32_t i = 0; i < rank; i++) want.dims[i] = shape[i];
  for (uint32_t i = 0; i < rank; i++)
    if (shape[i] < 0) return KNOWN_NO;
  const ir_tensor *both[] = {t, &want};
  if (!onnx_common_shape(k->c, 2, both, &out) || !known_make(k, t->dtype, out.rank, out.dims)) return KNOWN_NO;
  row_major(t, plain);
  for (uint32_t d = 0; d < out.rank; d++) {
    const uint32_t shift = out.rank - t->rank;
    const bool repeated = d < shift || t->dims[d - shift] == 1;
    stride[d] = repeated ? 0 : plain[d - shift];
    wrap[d] = repeated ? 1 : (uint32_t)t->dims[d - shift];
  }
  return gather_strided(k, stride, wrap);
}

known_result known_tile(known_call *k) {
  const ir_tensor *t = &k->in[0].type;
  int64_t repeats[SNT_MAX_RANK];
  ir_expr dims[SNT_MAX_RANK];
  uint32_t count, stride[SNT_MAX_RANK], wrap[SNT_MAX_RANK];
  if (k->in_count != 2 || !known_ints(k, 1, SNT_MAX_RANK, repeats, &count) || count != t->rank) return KNOWN_NO;
  for (uint32_t i = 0; i < count; i++) {
    if (repeats[i] < 0 || repeats[i] > ONNX_MAX_KNOWN) return KNOWN_NO;
    dims[i] = t->dims[i] * repeats[i];
    wrap[i] = t->dims[i] ? (uint32_t)t->dims[i] : 1;
  }
  if (!known_make(k, t->dtype, count, dims)) return KNOWN_NO;
  row_major(t, stride);
  return gather_strided(k, stride, wrap);
}

known_result known_transpose(known_call *k) {
  const ir_tensor *t = &k->in[0].type;
  const onnx_attr *a = onnx_find_attr(k->c, "perm");
  ir_expr dims[SNT_MAX_RANK];
  uint32_t plain[SNT_MAX_RANK], stride[SNT_MAX_RANK], wrap[SNT_MAX_RANK];
  if (a && a->ints.count != t->rank) return KNOWN_NO;
  row_major(t, plain);
  for (uint32_t i = 0; i < t->rank; i++) {
    const int64_t from = a ? a->ints.at[i] : (int64_t)t->rank - 1 - i;
    if (from < 0 || from >= t->rank) return KNOWN_NO;
    dims[i] = t->dims[from];
    stride[i] = plain[from];
    wrap[i] = dims[i] ? (uint32_t)dims[i] : 1;
  }
  return known_make(k, t->dtype, t->rank, dims) && k->out.count == k->in[0].count ? gather_strided(k, stride, wrap) : KNOWN_NO;
}

/* ---- lists ---- */
known_result known_range(known_call *k) {
  int64_t delta, count;
  if (k->in_count != 3 || ir_dtypes[k->in[0].type.dtype].is_float) return KNOWN_NO;
  for (uint32_t i = 0; i < 3; i++)
    if (k->in[i].count != 1) return KNOWN_NO;
  if (!known_literal(k, k->in[2].at[0], &delta) || delta == 0 || delta == INT64_MIN) return KNOWN_NO;
  const ir_expr start = k->in[0].at[0].num, limit = k->in[1].at[0].num;
  const ir_expr span = delta > 0 ? expr_sub(k->pool, limit, start) : expr_sub(k->pool, start, limit);
  const ir_expr steps = expr_ceil_div(k->pool, span, expr_int(k->pool, delta > 0 ? delta : -delta));
  if (!expr_is_const(k->pool, steps, &count)) return KNOWN_NO;
  const ir_expr size = count < 0 ? 0 : count;
  if (!known_make(k, k->in[0].type.dtype, 1, &size)) return KNOWN_NO;
  for (int64_t i = 0; i < size; i++) k->out.at[i] = known_whole(expr_add(k->pool, start, expr_int(k->pool, i * delta)));
  return KNOWN_YES;
}

known_result known_constant_of_shape(known_call *k) {
  int64_t shape[SNT_MAX_RANK];
  uint32_t rank;
  onnx_value value = {.name = "value"};
  const onnx_attr *a = onnx_find_attr(k->c, "value");
  if (!a || a->kind != ONNX_TENSOR || !known_ints(k, 0, SNT_MAX_RANK, shape, &rank)) return KNOWN_NO;
  value.tensor = a->tensor;
  value.type.dtype = (uint8_t)onnx_type(a->tensor->type).dtype;
  if (!value.type.dtype || ir_dtypes[value.type.dtype].is_float || a->tensor->dims.count > 1) return KNOWN_NO;
  if (a->tensor->dims.count && a->tensor->dims.at[0] != 1) return KNOWN_NO;
  const onnx_number *fill = onnx_value_known(k->c->im, &value);
  if (!fill || !known_make(k, value.type.dtype, rank, shape)) return KNOWN_NO;
  for (uint32_t i = 0; i < k->out.count; i++) k->out.at[i] = fill[0];
  return KNOWN_YES;
}

known_result known_nonzero(known_call *k) {
  const ir_tensor *t = &k->in[0].type;
  uint32_t found[ONNX_MAX_KNOWN], count = 0, stride[SNT_MAX_RANK];
  int64_t value;
  for (uint32_t i = 0; i < k->in[0].count; i++) {
    if (!known_literal(k, k->in[0].at[i], &value)) return KNOWN_NO;
    if (value) found[count++] = i;
  }
  const ir_expr dims[2] = {t->rank, count};
  if (!known_make(k, SNT_I64, 2, dims)) return KNOWN_NO;
  row_major(t, stride);
  for (uint32_t d = 0; d < t->rank; d++)
    for (uint32_t i = 0; i < count; i++) k->out.at[d * count + i] = known_whole(found[i] / stride[d] % (uint32_t)t->dims[d]);
  return KNOWN_YES;
}

/* ---- reductions of a list, or of everything ---- */
static ir_expr reduce_two(known_call *k, ir_expr a, ir_expr b) {
  const char *op = k->c->node->op;
  if (!strcmp(op, "ReduceProd")) return expr_mul(k->pool, a, b);
  if (!strcmp(op, "ReduceSum")) return expr_add(k->pool, a, b);
  return strcmp(op, "ReduceMax") ? expr_min(k->pool, a, b) : expr_max(k->pool, a, b);
}

known_result known_reduce(known_call *k) {
  const ir_tensor *t = &k->in[0].type;
  const ir_expr ones[SNT_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
  uint32_t mask;
  bool given;
  if (k->in_count > 2 || !k->in[0].count || !axes_of(k, 1, t->rank, &mask, &given)) return KNOWN_NO;
  if (mask == 0 && onnx_int(k->c, "noop_with_empty_axes", 0)) return known_same(k);
  if (mask != 0 && mask != (1u << t->rank) - 1) return KNOWN_NO;
  if (!known_make(k, t->dtype, onnx_int(k->c, "keepdims", 1) ? t->rank : 0, ones)) return KNOWN_NO;
  k->out.at[0] = k->in[0].at[0];
  for (uint32_t i = 0; i < k->in[0].count; i++) {
    if (k->in[0].at[i].den != 1) return KNOWN_NO;
    if (i) k->out.at[0].num = reduce_two(k, k->out.at[0].num, k->in[0].at[i].num);
  }
  return KNOWN_YES;
}
