/* Buffers with a reference count and strided views of them; copies between views. */
#include "ir/eval/private.h"

snt_result eval_fail(eval_ctx *ctx, uint32_t node, snt_result result, const char *text) {
  return ir_fail(ctx->diag, result, ctx->engine->stage, node, "%s%s%s", node ? ir_ops[ir_at(ctx->g, node)->op].name : "", node ? ": " : "",
                 text);
}

snt_result eval_dim(eval_ctx *ctx, ir_expr e, int64_t *out) {
  if (expr_eval(ctx->g->pool, e, &(expr_values){.symbols = ctx->info->symbols}, out)) return SNT_OK;
  return eval_fail(ctx, 0, SNT_E_SHAPE, "an extent cannot be computed from the symbols given");
}

size_t eval_element_bytes(const eval_ctx *ctx, int32_t dtype) { return ctx->engine->bounds ? 8 : ir_dtypes[dtype].bytes; }

enum { BUFFER_ALIGN = 64 };

void *eval_take(eval_ctx *ctx, size_t bytes) { return ctx->host.acquire(ctx->host.user, bytes ? bytes : 1, BUFFER_ALIGN, 0); }

void eval_give(eval_ctx *ctx, void *data, size_t bytes) {
  if (data) ctx->host.release(ctx->host.user, data, bytes ? bytes : 1, BUFFER_ALIGN);
}

void eval_release(eval_ctx *ctx, eval_view *view) {
  eval_buffer *buffer = view->buffer;
  view->buffer = NULL;
  if (!buffer || --buffer->references) return;
  if (!buffer->borrowed) eval_give(ctx, buffer->data, buffer->bytes);
  eval_give(ctx, buffer->bound, buffer->bound_bytes);
  eval_give(ctx, buffer, sizeof *buffer);
}

eval_view eval_share(const eval_view *view) {
  view->buffer->references++;
  return *view;
}

void eval_set_dense(eval_view *view) {
  view->count = 1;
  view->offset = 0;
  for (uint32_t i = view->rank; i-- > 0;) {
    view->strides[i] = (int64_t)view->count;
    view->count *= (uint64_t)view->dims[i];
  }
}

snt_result eval_type_of(eval_ctx *ctx, uint32_t node, eval_view *out) {
  const ir_tensor *type = &ir_at(ctx->g, node)->type;
  *out = (eval_view){.dtype = type->dtype, .rank = type->rank};
  uint64_t count = 1;
  for (uint32_t i = 0; i < type->rank; i++) {
    SNT_TRY(eval_dim(ctx, type->dims[i], &out->dims[i]));
    if (out->dims[i] < 0) return eval_fail(ctx, node, SNT_E_SHAPE, "a negative extent");
    if (__builtin_mul_overflow(count, (uint64_t)out->dims[i], &count) || count > UINT64_C(1) << 48)
      return eval_fail(ctx, node, SNT_E_LIMIT, "too large");
  }
  eval_set_dense(out);
  return SNT_OK;
}

snt_result eval_new(eval_ctx *ctx, eval_view *view, bool with_bound) {
  eval_set_dense(view);
  view->buffer = NULL;
  eval_buffer *buffer = eval_take(ctx, sizeof *buffer);
  if (!buffer) return eval_fail(ctx, 0, SNT_E_HOST_MEM, "out of memory");
  *buffer = (eval_buffer){.bytes = view->count * eval_element_bytes(ctx, view->dtype), .references = 1};
  buffer->bound_bytes = with_bound ? view->count * sizeof(double) : 0;
  buffer->data = eval_take(ctx, buffer->bytes);
  buffer->bound = with_bound ? eval_take(ctx, buffer->bound_bytes) : NULL;
  view->buffer = buffer;
  if (buffer->data && (!with_bound || buffer->bound)) return SNT_OK;
  eval_release(ctx, view);
  return eval_fail(ctx, 0, SNT_E_HOST_MEM, "out of memory");
}

bool eval_is_dense(const eval_view *view) {
  int64_t stride = 1;
  for (uint32_t i = view->rank; i-- > 0;) {
    if (view->dims[i] != 1 && view->strides[i] != stride) return view->count == 0;
    stride *= view->dims[i];
  }
  return true;
}

snt_result eval_dense(eval_ctx *ctx, const eval_view *view, eval_view *out) {
  if (eval_is_dense(view)) {
    *out = eval_share(view);
    return SNT_OK;
  }
  eval_view dense = *view;
  SNT_TRY(eval_new(ctx, &dense, view->buffer->bound != NULL));
  eval_copy(ctx, view, &dense);
  *out = dense;
  return SNT_OK;
}

eval_view eval_spread(const eval_view *view, const eval_view *shape) {
  eval_view out = *shape;
  out.dtype = view->dtype;
  out.buffer = view->buffer;
  out.offset = view->offset;
  bool spread = view->rank == 0;
  for (uint32_t i = 0; i < out.rank; i++) out.strides[i] = spread ? 0 : view->strides[i];
  return out;
}

void eval_element(const eval_ctx *ctx, int32_t dtype, int64_t bits, uint64_t *element) {
  double value;
  uint64_t stored = 0;
  memcpy(&value, &bits, sizeof value);
  if (ir_dtypes[dtype].is_float) ir_dtype_store(dtype, &stored, 0, value);
  else ir_dtype_store_int(dtype, &stored, 0, bits);
  *element = stored;
  if (ctx->engine->bounds) eval_load(ctx, dtype, &stored, 1, element);
}

void eval_load(const eval_ctx *ctx, int32_t dtype, const void *data, uint64_t count, void *elements) {
  int64_t *ints = elements;
  if (!ctx->engine->bounds) {
    if (count) memcpy(elements, data, count * ir_dtypes[dtype].bytes);
  } else if (ir_dtypes[dtype].is_float) {
    ir_dtype_load_run(dtype, data, count, elements);
  } else {
    for (uint64_t i = 0; i < count; i++) ints[i] = ir_dtype_load_int(dtype, data, i);
  }
}

int64_t eval_offset_at(const eval_view *view, uint64_t linear) {
  int64_t offset = view->offset;
  for (uint32_t i = view->rank; i-- > 0 && linear;) {
    offset += (int64_t)(linear % (uint64_t)view->dims[i]) * view->strides[i];
    linear /= (uint64_t)view->dims[i];
  }
  return offset;
}

void eval_offsets(const eval_view *view, uint64_t first, uint32_t count, int64_t *out) {
  int64_t at[SNT_MAX_RANK] = {0}, offset = eval_offset_at(view, first);
  for (uint32_t i = view->rank; i-- > 0;) {
    at[i] = (int64_t)(first % (uint64_t)view->dims[i]);
    first /= (uint64_t)view->dims[i];
  }
  uint32_t last = view->rank ? view->rank - 1 : 0;
  for (uint32_t n = 0; n < count;) {
    int64_t stride = view->rank ? view->strides[last] : 0, left = view->rank ? view->dims[last] - at[last] : 1;
    for (; left > 0 && n < count; left--, n++, offset += stride) out[n] = offset, at[last]++;
    for (uint32_t i = last; i > 0 && at[i] == view->dims[i]; i--) {
      offset += view->strides[i - 1] - view->dims[i] * view->strides[i];
      at[i] = 0;
      at[i - 1]++;
    }
  }
}

/* ---- copies: two views of the same dims, walked together ---- */
typedef struct walk {
  uint32_t rank;
  int64_t dims[SNT_MAX_RANK], from[SNT_MAX_RANK], to[SNT_MAX_RANK];
} walk;

/* Axes of extent 1 go, neighbours that are one axis in both views join. */
static walk make_walk(const eval_view *from, const eval_view *to) {
  walk w = {0};
  for (uint32_t i = 0; i < from->rank; i++) {
    if (from->dims[i] == 1) continue;
    uint32_t last = w.rank - 1;
    bool joins = w.rank && w.from[last] == from->strides[i] * from->dims[i] && w.to[last] == to->strides[i] * from->dims[i];
    if (joins) w.dims[last] *= from->dims[i];
    else w.rank++, last = w.rank - 1, w.dims[last] = from->dims[i];
    w.from[last] = from->strides[i];
    w.to[last] = to->strides[i];
  }
  if (w.rank == 0) w.rank = 1, w.dims[0] = 1, w.from[0] = w.to[0] = 1;
  return w;
}

static void copy_run(size_t bytes, const char *from, int64_t from_stride, char *to, int64_t to_stride, int64_t count) {
  if (from_stride == 1 && to_stride == 1) {
    memcpy(to, from, (size_t)count * bytes);
    return;
  }
#define RUN(T)                                                                 \
  {                                                                            \
    const T *a = (const T *)(const void *)from;                                \
    T *b = (T *)(void *)to;                                                    \
    for (int64_t i = 0; i < count; i++) b[i * to_stride] = a[i * from_stride]; \
  }
  switch (bytes) {
  case 1: RUN(uint8_t) break;
  case 2: RUN(uint16_t) break;
  case 4: RUN(uint32_t) break;
  default: RUN(uint64_t) break;
  }
#undef RUN
}

static void copy_walk(const walk *w, uint32_t axis, size_t bytes, const char *from, char *to) {
  int64_t from_step = w->from[axis] * (int64_t)bytes, to_step = w->to[axis] * (int64_t)bytes;
  if (axis + 1 == w->rank) {
    copy_run(bytes, from, w->from[axis], to, w->to[axis], w->dims[axis]);
    return;
  }
  for (int64_t i = 0; i < w->dims[axis]; i++, from += from_step, to += to_step) copy_walk(w, axis + 1, bytes, from, to);
}

void eval_copy(eval_ctx *ctx, const eval_view *from, const eval_view *to) {
  if (from->count == 0) return;
  walk w = make_walk(from, to);
  copy_walk(&w, 0, eval_element_bytes(ctx, from->dtype), eval_at(ctx, from), eval_at(ctx, to));
  double *bound = to->buffer->bound;
  static const double exact = 0;
  if (!bound) return;
  if (from->buffer->bound) {
    copy_walk(&w, 0, sizeof(double), (const char *)(from->buffer->bound + from->offset), (char *)(bound + to->offset));
  } else {
    for (uint32_t i = 0; i < w.rank; i++) w.from[i] = 0;
    copy_walk(&w, 0, sizeof(double), (const char *)&exact, (char *)(bound + to->offset));
  }
}

void eval_fill(eval_ctx *ctx, const eval_view *view, const void *element) {
  if (view->count == 0) return;
  walk w = make_walk(view, view);
  for (uint32_t i = 0; i < w.rank; i++) w.from[i] = 0;
  copy_walk(&w, 0, eval_element_bytes(ctx, view->dtype), element, eval_at(ctx, view));
  static const double exact = 0;
  if (view->buffer->bound) copy_walk(&w, 0, sizeof(double), (const char *)&exact, (char *)(view->buffer->bound + view->offset));
}
