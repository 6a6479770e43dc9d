/* The fast evaluator's reductions and scans. A reduction runs along whichever axis has unit stride: as a sum of 16 partial sums where that axis
   is reduced, as a row of accumulators where it is kept. Narrow floats are widened to f32 first and rounded once at the end. */
#include "ir/eval/fast.h"
#include <math.h>
#include <stdlib.h>

typedef enum { SUM, PROD, MAX, MIN } fold;

static fold fold_of(ir_op op) {
  switch (op) {
  case IR_OP_reduce_sum:
  case IR_OP_scan_sum: return SUM;
  case IR_OP_reduce_prod:
  case IR_OP_scan_prod: return PROD;
  case IR_OP_reduce_max:
  case IR_OP_scan_max: return MAX;
  default: return MIN;
  }
}

/* One axis of the operand: extent, its stride, the result's stride (0: reduced). */
typedef struct axis {
  int64_t count, in, out;
} axis;
typedef struct plan {
  axis outer[SNT_MAX_RANK], inner;
  uint32_t rank;
  fold how;
  int32_t dtype;
} plan;

#define FOLD_F(T, how, acc, x)                                     \
  ((how) == SUM    ? (acc) + (x)                                   \
   : (how) == PROD ? (acc) * (x)                                   \
   : (how) == MAX  ? ((acc) > (x) || (acc) != (acc) ? (acc) : (x)) \
                   : ((acc) < (x) || (acc) != (acc) ? (acc) : (x)))

enum { LANES = 16 };
#define DEFINE_FLOAT_FOLDS(T, name, identity_of)                                                                  \
  static inline T name##_line_as(fold how, const T *x, int64_t stride, int64_t count, T start) {                  \
    T lanes[LANES];                                                                                               \
    int64_t i = 0;                                                                                                \
    for (int l = 0; l < LANES; l++) lanes[l] = identity_of(how);                                                  \
    if (stride == 1) {                                                                                            \
      for (; i + LANES <= count; i += LANES)                                                                      \
        for (int l = 0; l < LANES; l++) lanes[l] = FOLD_F(T, how, lanes[l], x[i + l]);                            \
    }                                                                                                             \
    for (; i < count; i++) lanes[i % LANES] = FOLD_F(T, how, lanes[i % LANES], x[i * stride]);                    \
    for (int step = LANES / 2; step > 0; step /= 2)                                                               \
      for (int l = 0; l < step; l++) lanes[l] = FOLD_F(T, how, lanes[l], lanes[l + step]);                        \
    return FOLD_F(T, how, start, lanes[0]);                                                                       \
  }                                                                                                               \
  static inline void name##_row_as(fold how, T *out, int64_t out_stride, const T *x, int64_t stride, int64_t n) { \
    if (stride == 1 && out_stride == 1) {                                                                         \
      for (int64_t i = 0; i < n; i++) out[i] = FOLD_F(T, how, out[i], x[i]);                                      \
    } else {                                                                                                      \
      for (int64_t i = 0; i < n; i++) out[i * out_stride] = FOLD_F(T, how, out[i * out_stride], x[i * stride]);   \
    }                                                                                                             \
  }                                                                                                               \
  static void name##_inner(const plan *p, const T *x, T *out) {                                                   \
    const axis *a = &p->inner;                                                                                    \
    switch (p->how) { CASES(T, name, SUM) CASES(T, name, PROD) CASES(T, name, MAX) CASES(T, name, MIN) }          \
  }                                                                                                               \
  static void name##_walk(const plan *p, uint32_t level, const T *x, T *out) {                                    \
    if (level == p->rank) {                                                                                       \
      name##_inner(p, x, out);                                                                                    \
      return;                                                                                                     \
    }                                                                                                             \
    const axis *a = &p->outer[level];                                                                             \
    for (int64_t i = 0; i < a->count; i++) name##_walk(p, level + 1, x + i * a->in, out + i * a->out);            \
  }
#define CASES(T, name, which)                                                \
  case which:                                                                \
    if (a->out == 0) *out = name##_line_as(which, x, a->in, a->count, *out); \
    else name##_row_as(which, out, a->out, x, a->in, a->count);              \
    break;

static double float_identity(fold how) { return how == SUM ? 0 : how == PROD ? 1 : how == MAX ? -(double)INFINITY : (double)INFINITY; }
static inline float f32_identity(fold how) { return (float)float_identity(how); }
static inline double f64_identity(fold how) { return float_identity(how); }
DEFINE_FLOAT_FOLDS(float, f32, f32_identity)
DEFINE_FLOAT_FOLDS(double, f64, f64_identity)

static int64_t fold_int(fold how, int32_t dtype, int64_t a, int64_t b) {
  static const ir_op ops[] = {[SUM] = IR_OP_add, [PROD] = IR_OP_mul, [MAX] = IR_OP_max, [MIN] = IR_OP_min};
  return ir_op_eval_int(ops[how], a, b, 0, dtype);
}

static void int_walk(const plan *p, uint32_t level, const int64_t *x, int64_t *out) {
  const axis *a = level < p->rank ? &p->outer[level] : &p->inner;
  for (int64_t i = 0; i < a->count; i++) {
    if (level < p->rank) int_walk(p, level + 1, x + i * a->in, out + i * a->out);
    else out[i * a->out] = fold_int(p->how, p->dtype, out[i * a->out], x[i * a->in]);
  }
}

static int64_t int_identity(fold how, int32_t dtype) { return how == PROD ? 1 : how == SUM ? 0 : eval_int_end(dtype, how == MIN); }

/* The axis of unit stride (the least stride there is) becomes the inner one. */
static plan make_plan(const eval_ctx *ctx, uint32_t node, const eval_view *x) {
  uint32_t count;
  const ir_expr *axes = ir_attr_ints(ctx->g, node, IR_ATTR_axes, &count);
  plan p = {.how = fold_of((ir_op)ir_at(ctx->g, node)->op), .dtype = x->dtype, .inner = {1, 1, 0}};
  axis all[SNT_MAX_RANK];
  uint32_t best = 0, rank = 0;
  int64_t kept = 1;
  for (uint32_t i = x->rank; i-- > 0;) {
    bool gone = false;
    for (uint32_t k = 0; k < count; k++) gone |= axes[k] == (ir_expr)i;
    axis a = {x->dims[i], x->strides[i], gone ? 0 : kept};
    if (!gone) kept *= x->dims[i];
    if (a.count != 1) all[rank++] = a;
  }
  for (uint32_t i = 0; i < rank; i++)
    if (llabs(all[i].in) < llabs(all[best].in)) best = i;
  for (uint32_t i = rank; i-- > 0;) {
    if (i == best) p.inner = all[i];
    else p.outer[p.rank++] = all[i];
  }
  return p;
}

/* ---- argmax and argmin ---- */
typedef struct best {
  double v;
  int64_t n, at;
} best;

static bool beats(bool is_float, bool max, int32_t dtype, const best *b, double v, int64_t n) {
  if (b->at < 0) return true;
  if (is_float) return b->v == b->v && (v != v || (max ? v > b->v : v < b->v));
  return ir_op_eval_int(max ? IR_OP_gt : IR_OP_lt, n, b->n, 0, dtype) != 0;
}

static snt_result arg_reduce(eval_ctx *ctx, uint32_t node, const eval_view *x, eval_view *out) {
  uint32_t gone = (uint32_t)ir_attr_ints(ctx->g, node, IR_ATTR_axes, NULL)[0];
  bool max = ir_at(ctx->g, node)->op == IR_OP_reduce_argmax, is_float = ir_dtypes[x->dtype].is_float;
  SNT_TRY(eval_new(ctx, out, false));
  eval_view starts = *x;
  starts.dims[gone] = 1;
  for (uint64_t i = 0; i < out->count; i++) {
    int64_t at = eval_offset_at(&starts, i);
    best b = {0, 0, -1};
    for (int64_t k = 0; k < x->dims[gone]; k++, at += x->strides[gone]) {
      double v = is_float ? ir_dtype_load(x->dtype, x->buffer->data, (size_t)at) : 0;
      int64_t n = is_float ? 0 : ir_dtype_load_int(x->dtype, x->buffer->data, (size_t)at);
      if (beats(is_float, max, x->dtype, &b, v, n)) b = (best){v, n, k};
    }
    ((int64_t *)out->buffer->data)[i] = b.at < 0 ? 0 : b.at;
  }
  return SNT_OK;
}

/* ---- widening ---- */
static size_t wide_bytes(int32_t dtype) { return fast_class_of(dtype) == FAST_F32 ? sizeof(float) : sizeof(double); }

/* The operand in the type that is computed in: itself where it is that already, else a dense copy. The view's buffer is then `*made`. */
static snt_result widen(eval_ctx *ctx, const eval_view *x, eval_view *out, void **made, size_t *bytes) {
  eval_view dense;
  *made = NULL;
  *out = *x;
  if (x->dtype == SNT_F32 || x->dtype == SNT_F64 || x->dtype == SNT_I64 || x->dtype == SNT_U64) return SNT_OK;
  SNT_TRY(eval_dense(ctx, x, &dense));
  *bytes = x->count * wide_bytes(x->dtype);
  *made = eval_take(ctx, *bytes);
  if (*made && fast_class_of(x->dtype) == FAST_F32) fast_to_f32(x->dtype, eval_at(ctx, &dense), x->count, *made);
  else if (*made) fast_to_int(x->dtype, eval_at(ctx, &dense), x->count, *made);
  eval_release(ctx, &dense);
  if (!*made) return eval_fail(ctx, 0, SNT_E_HOST_MEM, "out of memory");
  eval_set_dense(out);
  return SNT_OK;
}

static void narrow(int32_t dtype, const void *wide, uint64_t count, void *to) {
  if (fast_class_of(dtype) == FAST_F32) fast_from_f32(dtype, wide, count, to);
  else if (fast_class_of(dtype) == FAST_F64) fast_from_f64(dtype, wide, count, to);
  else fast_from_int(dtype, wide, count, to);
}

static const void *wide_at(const eval_view *view, const void *made) {
  const char *data = made ? made : view->buffer->data;
  return data + (size_t)view->offset * wide_bytes(view->dtype);
}

static void run_plan(const plan *p, const void *x, void *acc, uint64_t count) {
  fast_class class = fast_class_of(p->dtype);
  for (uint64_t i = 0; i < count; i++) {
    if (class == FAST_F32) ((float *)acc)[i] = f32_identity(p->how);
    else if (class == FAST_F64) ((double *)acc)[i] = f64_identity(p->how);
    else ((int64_t *)acc)[i] = int_identity(p->how, p->dtype);
  }
  if (class == FAST_F32) f32_walk(p, 0, x, acc);
  else if (class == FAST_F64) f64_walk(p, 0, x, acc);
  else int_walk(p, 0, x, acc);
}

snt_result fast_reduce(eval_ctx *ctx, uint32_t node, eval_view *out) {
  const eval_view *x = &ctx->values[ir_arg(ctx->g, node, 0)];
  SNT_TRY(eval_type_of(ctx, node, out));
  if (ir_ops[ir_at(ctx->g, node)->op].rule == IR_RULE_REDUCE_INDEX) return arg_reduce(ctx, node, x, out);
  eval_view wide;
  void *made;
  size_t made_bytes = 0, acc_bytes = out->count * wide_bytes(x->dtype);
  SNT_TRY(widen(ctx, x, &wide, &made, &made_bytes));
  void *acc = eval_take(ctx, acc_bytes);
  snt_result result = acc ? eval_new(ctx, out, false) : eval_fail(ctx, node, SNT_E_HOST_MEM, "out of memory");
  if (result == SNT_OK) {
    plan p = make_plan(ctx, node, &wide);
    run_plan(&p, wide_at(&wide, made), acc, out->count);
    narrow(x->dtype, acc, out->count, out->buffer->data);
  }
  eval_give(ctx, acc, acc_bytes);
  eval_give(ctx, made, made_bytes);
  return result;
}

/* ---- scans ---- */
typedef struct scan_line {
  fold how;
  bool exclusive, linear;
  int32_t dtype;
  int64_t length, in, in2, out;
} scan_line;

#define DEFINE_SCAN(T, name, start, combine)                             \
  static void name(const scan_line *s, const T *a, const T *b, T *out) { \
    T total = s->linear ? 0 : (T)(start);                                \
    for (int64_t i = 0; i < s->length; i++) {                            \
      T before = total, x = a[i * s->in];                                \
      total = s->linear ? (T)(x * total + b[i * s->in2]) : (T)(combine); \
      out[i * s->out] = s->exclusive ? before : total;                   \
    }                                                                    \
  }
DEFINE_SCAN(float, scan_f32, f32_identity(s->how), FOLD_F(float, s->how, total, x))
DEFINE_SCAN(double, scan_f64, f64_identity(s->how), FOLD_F(double, s->how, total, x))
DEFINE_SCAN(int64_t, scan_int, int_identity(s->how, s->dtype), fold_int(s->how, s->dtype, total, x))

static void run_scan(const scan_line *s, const eval_view *in, void *const *made, const eval_view *out, void *to, uint32_t axis,
                     bool reverse) {
  eval_view starts[3] = {in[0], in[1], *out};
  scan_line line = *s;
  int64_t *steps[3] = {&line.in, &line.in2, &line.out};
  uint64_t lines = out->dims[axis] ? out->count / (uint64_t)out->dims[axis] : 0;
  for (int k = 0; k < 3; k++) {
    *steps[k] = reverse ? -starts[k].strides[axis] : starts[k].strides[axis];
    if (reverse) starts[k].offset += (starts[k].dims[axis] - 1) * starts[k].strides[axis];
    starts[k].dims[axis] = 1;
  }
  size_t bytes = wide_bytes(out->dtype);
  for (uint64_t l = 0; l < lines; l++) {
    const char *x[2];
    for (int k = 0; k < 2; k++)
      x[k] = (const char *)(made[k] ? made[k] : in[k].buffer->data) + (size_t)eval_offset_at(&starts[k], l) * bytes;
    char *y = (char *)to + (size_t)eval_offset_at(&starts[2], l) * bytes;
    fast_class class = fast_class_of(out->dtype);
    if (class == FAST_F32) scan_f32(&line, (const void *)x[0], (const void *)x[1], (void *)y);
    else if (class == FAST_F64) scan_f64(&line, (const void *)x[0], (const void *)x[1], (void *)y);
    else scan_int(&line, (const void *)x[0], (const void *)x[1], (void *)y);
  }
}

snt_result fast_scan(eval_ctx *ctx, uint32_t node, eval_view *out) {
  ir_op op = (ir_op)ir_at(ctx->g, node)->op;
  uint32_t arity = ir_at(ctx->g, node)->arity, axis = (uint32_t)ir_attr_int(ctx->g, node, IR_ATTR_axis, 0);
  scan_line s = {.how = fold_of(op), .exclusive = ir_attr_flag(ctx->g, node, IR_ATTR_exclusive), .linear = op == IR_OP_scan_linear};
  SNT_TRY(eval_type_of(ctx, node, out));
  s.dtype = out->dtype;
  s.length = out->dims[axis];
  eval_view in[2];
  void *made[2] = {NULL, NULL};
  size_t made_bytes[2] = {0, 0}, to_bytes = out->count * wide_bytes(out->dtype);
  snt_result result = SNT_OK;
  for (uint32_t k = 0; k < 2 && result == SNT_OK; k++) {
    eval_view spread = eval_spread(&ctx->values[ir_arg(ctx->g, node, k < arity ? k : 0)], out);
    result = widen(ctx, &spread, &in[k], &made[k], &made_bytes[k]);
  }
  void *to = eval_take(ctx, to_bytes);
  if (result == SNT_OK) result = to ? eval_new(ctx, out, false) : eval_fail(ctx, node, SNT_E_HOST_MEM, "out of memory");
  if (result == SNT_OK) {
    run_scan(&s, in, made, out, to, axis, ir_attr_flag(ctx->g, node, IR_ATTR_reverse));
    narrow(out->dtype, to, out->count, out->buffer->data);
  }
  eval_give(ctx, to, to_bytes);
  for (int k = 0; k < 2; k++) eval_give(ctx, made[k], made_bytes[k]);
  return result;
}
