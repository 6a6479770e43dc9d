/* argsort for both evaluators: the lines along one axis, each by a stable merge sort of positions. In: a view. Out: dense i64.
   The bound: values nearer to each other than their bounds may come in any order, so a position may be off by as much as theirs are apart. */
#include "ir/eval/private.h"
#include <math.h>

typedef struct sort_line {
  uint64_t count;
  int64_t *at, *spare; /* positions along the line */
  double *value, *error;
  int64_t *number; /* integers; u64 with its top bit turned */
  bool is_float, descending;
} sort_line;

static bool is_less(const sort_line *s, int64_t a, int64_t b) {
  if (!s->is_float) return s->number[a] < s->number[b];
  return s->value[a] < s->value[b] || (isnan(s->value[b]) && !isnan(s->value[a]));
}
static bool comes_before(const sort_line *s, int64_t a, int64_t b) { return s->descending ? is_less(s, b, a) : is_less(s, a, b); }

static void merge(sort_line *s, uint64_t lo, uint64_t middle, uint64_t hi) {
  uint64_t a = lo, b = middle;
  for (uint64_t i = lo; i < hi; i++) {
    const bool second = a == middle || (b < hi && comes_before(s, s->at[b], s->at[a]));
    s->spare[i] = second ? s->at[b++] : s->at[a++];
  }
}

static void sort_positions(sort_line *s) {
  for (uint64_t i = 0; i < s->count; i++) s->at[i] = (int64_t)i;
  for (uint64_t width = 1; width < s->count; width *= 2) {
    for (uint64_t lo = 0; lo < s->count; lo += 2 * width) {
      const uint64_t middle = lo + width < s->count ? lo + width : s->count, hi = lo + 2 * width < s->count ? lo + 2 * width : s->count;
      merge(s, lo, middle, hi);
    }
    int64_t *sorted = s->spare;
    s->spare = s->at;
    s->at = sorted;
  }
}

static bool may_swap(const sort_line *s, int64_t a, int64_t b) {
  const double room = s->error[a] + s->error[b];
  return room > 0 && (isinf(room) || isnan(s->value[a]) || isnan(s->value[b]) || !(fabs(s->value[a] - s->value[b]) > room));
}

/* Of two values the one that may come later (sign 1), or earlier (-1): one of a large bound comes behind many that follow it, and before
   many that it follows. */
static int64_t farthest(const sort_line *s, double sign, int64_t a, int64_t b) {
  const double along = s->descending ? -sign : sign;
  return along * s->value[a] + s->error[a] > along * s->value[b] + s->error[b] ? a : b;
}

/* Runs of values of which each may change places with one before it. */
static void bound_positions(const sort_line *s, double *bounds) {
  int64_t *earliest = s->spare; /* of the values from here on; the sort is over */
  for (uint64_t i = s->count; i-- > 0;) earliest[i] = i + 1 < s->count ? farthest(s, -1, s->at[i], earliest[i + 1]) : s->at[i];
  for (uint64_t first = 0; first < s->count;) {
    uint64_t end = first + 1;
    int64_t lo = s->at[first], hi = lo, last = lo;
    for (; end < s->count && (may_swap(s, s->at[end - 1], s->at[end]) || may_swap(s, last, earliest[end])); end++) {
      last = farthest(s, 1, last, s->at[end]);
      lo = s->at[end] < lo ? s->at[end] : lo;
      hi = s->at[end] > hi ? s->at[end] : hi;
    }
    for (; first < end; first++) {
      const double below = (double)(s->at[first] - lo), above = (double)(hi - s->at[first]);
      bounds[first] = below > above ? below : above;
    }
  }
}

/* A line's elements in the reference's 8 bytes, or in the type's own storage. */
static void read_line(const eval_ctx *ctx, const eval_view *x, int64_t base, int64_t step, sort_line *s) {
  for (uint64_t i = 0; i < s->count; i++) {
    const int64_t at = base + (int64_t)i * step;
    s->error[i] = 0;
    if (ctx->engine->bounds && s->is_float) s->value[i] = ref_load(x, at).v, s->error[i] = ref_load(x, at).e;
    else if (ctx->engine->bounds) s->number[i] = ref_load_int(x, at).v, s->error[i] = ref_load_int(x, at).e;
    else if (s->is_float) s->value[i] = ir_dtype_load(x->dtype, x->buffer->data, (size_t)at);
    else s->number[i] = ir_dtype_load_int(x->dtype, x->buffer->data, (size_t)at);
    if (!s->is_float) s->value[i] = eval_int_to_float(x->dtype, s->number[i]);
    if (x->dtype == SNT_U64) s->number[i] = (int64_t)((uint64_t)s->number[i] ^ (uint64_t)1 << 63);
  }
}

static void sort_lines(eval_ctx *ctx, uint32_t axis, const eval_view *x, const eval_view *out, sort_line *s, double *bounds) {
  eval_view starts = *x, to = *out;
  starts.dims[axis] = to.dims[axis] = 1;
  starts.count = to.count = s->count ? x->count / s->count : 0;
  int64_t *const first = s->at, *const second = s->spare;
  for (uint64_t l = 0; l < starts.count; l++) {
    const int64_t base = eval_offset_at(&to, l);
    s->at = first, s->spare = second;
    read_line(ctx, x, eval_offset_at(&starts, l), x->strides[axis], s);
    sort_positions(s);
    if (out->buffer->bound) bound_positions(s, bounds);
    for (uint64_t i = 0; i < s->count; i++) {
      const size_t at = (size_t)(base + (int64_t)i * out->strides[axis]);
      ((int64_t *)out->buffer->data)[at] = s->at[i];
      if (out->buffer->bound) out->buffer->bound[at] = bounds[i];
    }
  }
  s->at = first, s->spare = second;
}

snt_result eval_argsort(eval_ctx *ctx, uint32_t node, eval_view *out) {
  const eval_view *x = &ctx->values[ir_arg(ctx->g, node, 0)];
  const uint32_t axis = (uint32_t)ir_attr_int(ctx->g, node, IR_ATTR_axis, 0);
  SNT_TRY(eval_type_of(ctx, node, out));
  SNT_TRY(eval_new(ctx, out, ctx->engine->bounds && x->buffer->bound));
  sort_line s = {.count = (uint64_t)x->dims[axis], .is_float = ir_dtypes[x->dtype].is_float};
  s.descending = ir_attr_flag(ctx->g, node, IR_ATTR_descending);
  const size_t each = (size_t)s.count * sizeof(int64_t);
  int64_t *room = eval_take(ctx, 6 * each);
  if (!room) return eval_fail(ctx, node, SNT_E_HOST_MEM, "out of memory");
  s.at = room, s.spare = room + s.count, s.number = room + 2 * s.count;
  s.value = (double *)(void *)(room + 3 * s.count), s.error = s.value + s.count;
  sort_lines(ctx, axis, x, out, &s, s.error + s.count);
  eval_give(ctx, room, 6 * each);
  return SNT_OK;
}
