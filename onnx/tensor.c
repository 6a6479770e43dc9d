/* Tensors of an ONNX file to constant data. In: a tensor as read. Out: elements row-major in Sinter's storage, a view of the file where
   it holds them so already. Every size is checked against the extents before anything is allocated. */
#include "onnx/model.h"

// clang-format off
static const onnx_type_info types[] = {
    [0] = {"no type", 0},         [1] = {"float", SNT_F32},       [2] = {"uint8", SNT_U8},          [3] = {"int8", SNT_I8},
    [4] = {"uint16", SNT_U16},    [5] = {"int16", SNT_I16},       [6] = {"int32", SNT_I32},         [7] = {"int64", SNT_I64},
    [ONNX_STRING] = {"string", 0},[9] = {"bool", SNT_BOOL},       [10] = {"float16", SNT_F16},      [11] = {"double", SNT_F64},
    [12] = {"uint32", SNT_U32},   [13] = {"uint64", SNT_U64},     [ONNX_COMPLEX64] = {"complex64", 0}, [ONNX_COMPLEX128] = {"complex128", 0},
    [16] = {"bfloat16", SNT_BF16},[17] = {"float8e4m3fn", SNT_F8E4M3}, [18] = {"float8e4m3fnuz", SNT_F8E4M3FNUZ},[19] = {"float8e5m2", SNT_F8E5M2},
    [20] = {"float8e5m2fnuz", SNT_F8E5M2FNUZ}, [21] = {"uint4", SNT_U4},       [22] = {"int4", SNT_I4},          [23] = {"float4e2m1", 0},
};
// clang-format on

onnx_type_info onnx_type(int32_t type) {
  if (type < 0 || (uint32_t)type >= IR_COUNT(types) || !types[type].name) return (onnx_type_info){"an unknown type", 0};
  return types[type];
}

static snt_result count_elements(const onnx_tensor *t, uint64_t *out, snt_diag *diag) {
  uint64_t elements = 1;
  bool empty = false;
  if (t->dims.count > SNT_MAX_RANK)
    return ir_fail(diag, SNT_E_UNSUPPORTED, "onnx", 0, "tensor %.80s has rank %u; at most %d is possible", t->name, t->dims.count,
                   SNT_MAX_RANK);
  for (uint32_t i = 0; i < t->dims.count; i++) {
    const int64_t extent = t->dims.at[i];
    if (extent < 0) return ir_fail(diag, SNT_E_SHAPE, "onnx", 0, "tensor %.80s has a negative extent", t->name);
    empty |= extent == 0;
  }
  for (uint32_t i = 0; i < t->dims.count && !empty; i++) {
    if ((uint64_t)t->dims.at[i] > (UINT64_C(1) << 48) / elements)
      return ir_fail(diag, SNT_E_SHAPE, "onnx", 0, "tensor %.80s has more elements than memory can hold", t->name);
    elements *= (uint64_t)t->dims.at[i];
  }
  *out = empty ? 0 : elements;
  return SNT_OK;
}

static bool parse_number(const char *text, uint64_t *out) {
  uint64_t value = 0;
  if (!text) return false;
  for (; *text; text++) {
    if (*text < '0' || *text > '9' || value > UINT64_MAX / 10 - 1) return false;
    value = value * 10 + (uint64_t)(*text - '0');
  }
  *out = value;
  return true;
}

static snt_result find_external(const onnx_tensor *t, uint64_t bytes, const onnx_files *files, onnx_bytes *out, snt_diag *diag) {
  uint64_t offset = 0, length = bytes;
  if (!t->location || !t->location[0])
    return ir_fail(diag, SNT_E_PARSE, "onnx", 0, "tensor %.80s is external, but no file is named", t->name);
  if ((t->offset && !parse_number(t->offset, &offset)) || (t->length && !parse_number(t->length, &length)))
    return ir_fail(diag, SNT_E_PARSE, "onnx", 0, "tensor %.80s: offset and length of external data must be numbers", t->name);
  if (length != bytes)
    return ir_fail(diag, SNT_E_PARSE, "onnx", 0, "tensor %.80s needs %llu bytes, its external data has %llu", t->name,
                   (unsigned long long)bytes, (unsigned long long)length);
  if (!files || !files->find) return ir_fail(diag, SNT_E_PARSE, "onnx", 0, "tensor %.80s is in another file (%.80s)", t->name, t->location);
  if (bytes == 0) return SNT_OK;
  snt_diag inner = {0};
  out->at = files->find(files->user, t->location, offset, bytes, &inner);
  out->size = (size_t)bytes;
  if (out->at) return SNT_OK;
  return ir_fail(diag, inner.result ? inner.result : SNT_E_PARSE, "onnx", 0, "tensor %.60s: %s", t->name,
                 inner.text[0] ? inner.text : "its external data is not there");
}

static bool is_nibble(int32_t dtype) { return dtype == SNT_I4 || dtype == SNT_U4; }

static void put_nibbles(int32_t dtype, const onnx_tensor *t, onnx_bytes raw, uint8_t *to, uint64_t elements) { /* two a byte, low first */
  for (uint64_t i = 0; i < elements; i++) {
    const uint8_t both = raw.at ? raw.at[i / 2] : (uint8_t)t->ints.at[i / 2];
    ir_dtype_store_int(dtype, to, i, both >> (i % 2 * 4) & 15);
  }
}

static snt_result wrong_count(const onnx_tensor *t, uint64_t elements, uint64_t has, const char *unit, snt_diag *diag) {
  return ir_fail(diag, SNT_E_PARSE, "onnx", 0, "tensor %.80s: its extents need %llu %s, it has %llu", t->name, (unsigned long long)elements,
                 unit, (unsigned long long)has);
}

/* Elements of float_data, int32_data .. in pieces: the widest type of each family, stored one by one. */
static snt_result convert(const onnx_tensor *t, int32_t dtype, uint8_t *to, uint64_t elements, snt_diag *diag) {
  const bool reals = dtype == SNT_F32 || dtype == SNT_F64;
  const uint64_t needed = is_nibble(dtype) ? (elements + 1) / 2 : elements, has = reals ? t->reals.count : t->ints.count;
  if (has != needed) return wrong_count(t, needed, has, "values", diag);
  if (is_nibble(dtype)) put_nibbles(dtype, t, (onnx_bytes){0}, to, elements);
  for (uint64_t i = 0; i < elements && !is_nibble(dtype); i++) {
    if (reals) {
      ir_dtype_store(dtype, to, i, t->reals.at[i]);
      continue;
    }
    const uint64_t bits = (uint64_t)t->ints.at[i]; /* narrow floats are given as their bits */
    const uint8_t byte = dtype == SNT_BOOL ? bits != 0 : (uint8_t)bits;
    const uint16_t half = (uint16_t)bits;
    const uint32_t word = (uint32_t)bits;
    const uint32_t size = ir_dtypes[dtype].bytes;
    memcpy(to + i * size,
           size == 1   ? (const void *)&byte
           : size == 2 ? (const void *)&half
           : size == 4 ? (const void *)&word
                       : &bits,
           size);
  }
  return SNT_OK;
}

snt_result onnx_tensor_data(const onnx_tensor *t, ir_arena *arena, const onnx_files *files, const void **out, uint64_t *elements,
                            snt_diag *diag) {
  const int32_t dtype = onnx_type(t->type).dtype;
  if (!dtype) return ir_fail(diag, SNT_E_UNSUPPORTED, "onnx", 0, "tensor %.80s: elements are %s", t->name, onnx_type(t->type).name);
  SNT_TRY(count_elements(t, elements, diag));
  const size_t size = ir_dtypes[dtype].bytes;
  const uint64_t bytes = is_nibble(dtype) ? (*elements + 1) / 2 : *elements * size;
  onnx_bytes raw = t->raw.size ? t->raw : t->packed;
  if (t->external) SNT_TRY(find_external(t, bytes, files, &raw, diag));
  const bool typed = !raw.size && (t->ints.count || t->reals.count);
  if (!typed && raw.size != bytes) return wrong_count(t, bytes, raw.size, "bytes", diag);
  if (!typed && !is_nibble(dtype) && raw.size) {
    *out = raw.at;
    return SNT_OK;
  }
  void *copy = ir_arena_take(arena, *elements * size, 64);
  if (!copy) return ir_fail(diag, SNT_E_HOST_MEM, "onnx", 0, "out of memory for tensor %.80s", t->name);
  *out = copy;
  if (typed) return convert(t, dtype, copy, *elements, diag);
  if (is_nibble(dtype)) put_nibbles(dtype, t, raw, copy, *elements);
  else if (raw.size) memcpy(copy, raw.at, raw.size);
  return SNT_OK;
}
