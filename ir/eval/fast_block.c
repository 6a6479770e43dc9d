/* Blocks of elements for the fast evaluator: reading strided views, converting types. */
#include "ir/eval/fast.h"

fast_class fast_class_of(int32_t dtype) { return dtype == SNT_F64 ? FAST_F64 : ir_dtypes[dtype].is_float ? FAST_F32 : FAST_INT; }

void fast_open(const eval_ctx *ctx, const eval_view *view, fast_reader *reader) {
  eval_view joined = *view;
  joined.rank = 0;
  for (uint32_t i = 0; i < view->rank; i++) {
    if (view->dims[i] == 1) continue;
    uint32_t last = joined.rank - 1u;
    bool joins = joined.rank && joined.strides[last] == view->strides[i] * view->dims[i];
    if (joins) joined.dims[last] *= view->dims[i];
    else last = joined.rank++, joined.dims[last] = view->dims[i];
    joined.strides[last] = view->strides[i];
  }
  *reader = (fast_reader){.view = joined, .bytes = eval_element_bytes(ctx, view->dtype)};
  reader->base = (const char *)view->buffer->data;
  reader->constant = joined.rank == 0 || (joined.rank == 1 && joined.strides[0] == 0);
  reader->dense = joined.rank == 1 && joined.strides[0] == 1;
}

static void read_run(size_t bytes, const char *from, int64_t stride, char *to, int64_t count) {
  if (stride == 1) {
    memcpy(to, from, (size_t)count * bytes);
    return;
  }
#define RUN(T)                                                \
  {                                                           \
    const T *a = (const T *)(const void *)from;               \
    T *b = (T *)(void *)to;                                   \
    for (int64_t i = 0; i < count; i++) b[i] = a[i * stride]; \
  }
  switch (bytes) {
  case 1: RUN(uint8_t) break;
  case 2: RUN(uint16_t) break;
  case 4: RUN(uint32_t) break;
  default: RUN(uint64_t) break;
  }
#undef RUN
}

const void *fast_read(const fast_reader *r, uint64_t first, uint32_t count, void *room) {
  const eval_view *v = &r->view;
  if (r->dense) return r->base + (size_t)(v->offset + (int64_t)first) * r->bytes;
  if (r->constant) {
    read_run(r->bytes, r->base + (size_t)v->offset * r->bytes, 0, room, count);
    return room;
  }
  uint32_t last = v->rank - 1;
  for (uint64_t done = 0; done < count;) {
    int64_t at = (int64_t)((first + done) % (uint64_t)v->dims[last]), left = v->dims[last] - at;
    if (left > (int64_t)(count - done)) left = (int64_t)(count - done);
    int64_t from = eval_offset_at(v, first + done);
    read_run(r->bytes, r->base + (size_t)from * r->bytes, v->strides[last], (char *)room + done * r->bytes, left);
    done += (uint64_t)left;
  }
  return room;
}

const float *fast_to_f32(int32_t dtype, const void *from, uint64_t count, float *room) {
  const uint16_t *halves = from;
  switch (dtype) {
  case SNT_F32: return from;
  case SNT_F16:
    for (uint64_t i = 0; i < count; i++) room[i] = ir_f32_from_f16(halves[i]);
    return room;
  case SNT_BF16:
    for (uint64_t i = 0; i < count; i++) room[i] = ir_f32_from_bf16(halves[i]);
    return room;
  default:
    for (uint64_t i = 0; i < count; i++) room[i] = (float)ir_dtype_load(dtype, from, i);
    return room;
  }
}

void fast_from_f32(int32_t dtype, const float *from, uint64_t count, void *to) {
  uint16_t *halves = to;
  switch (dtype) {
  case SNT_F32:
    if (to != (const void *)from) memcpy(to, from, count * sizeof *from);
    return;
  case SNT_F16:
    for (uint64_t i = 0; i < count; i++) halves[i] = ir_f16_from_f32(from[i]);
    return;
  case SNT_BF16:
    for (uint64_t i = 0; i < count; i++) halves[i] = ir_bf16_from_f32(from[i]);
    return;
  default:
    for (uint64_t i = 0; i < count; i++) ir_dtype_store(dtype, to, i, (double)from[i]);
    return;
  }
}

const double *fast_to_f64(int32_t dtype, const void *from, uint64_t count, double *room) {
  if (dtype == SNT_F64) return from;
  for (uint64_t i = 0; i < count; i++) room[i] = ir_dtype_load(dtype, from, i);
  return room;
}

void fast_from_f64(int32_t dtype, const double *from, uint64_t count, void *to) {
  if (dtype == SNT_F64) {
    if (to != (const void *)from) memcpy(to, from, count * sizeof *from);
    return;
  }
  for (uint64_t i = 0; i < count; i++) ir_dtype_store(dtype, to, i, from[i]);
}

#define EACH_INT(X) X(SNT_I8, int8_t) X(SNT_U8, uint8_t) X(SNT_I16, int16_t) X(SNT_U16, uint16_t) X(SNT_I32, int32_t) X(SNT_U32, uint32_t)

const int64_t *fast_to_int(int32_t dtype, const void *from, uint64_t count, int64_t *room) {
  switch (dtype) {
  case SNT_I64:
  case SNT_U64: return from;
#define CASE(id, T)                                                      \
  case id:                                                               \
    for (uint64_t i = 0; i < count; i++) room[i] = ((const T *)from)[i]; \
    return room;
    EACH_INT(CASE)
#undef CASE
  default:
    for (uint64_t i = 0; i < count; i++) room[i] = ir_dtype_load_int(dtype, from, i);
    return room;
  }
}

void fast_from_int(int32_t dtype, const int64_t *from, uint64_t count, void *to) {
  switch (dtype) {
  case SNT_I64:
  case SNT_U64:
    if (to != (const void *)from) memcpy(to, from, count * sizeof *from);
    return;
#define CASE(id, T)                                                 \
  case id:                                                          \
    for (uint64_t i = 0; i < count; i++) ((T *)to)[i] = (T)from[i]; \
    return;
    EACH_INT(CASE)
#undef CASE
  default:
    for (uint64_t i = 0; i < count; i++) ir_dtype_store_int(dtype, to, i, from[i]);
    return;
  }
}
