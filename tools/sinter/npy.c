/* Tensors in files: NumPy's .npy, version 1.0 and 2.0 (numpy.lib.format): little-endian, C order; and ONNX's TensorProto (.pb), which are only read. */
#include "tools/sinter/tool.h"
#include <sinter/sinter_onnx.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
static const char *const descriptions[SNT_DTYPE_COUNT] = {[SNT_F32] = "<f4", [SNT_F16] = "<f2", [SNT_F64] = "<f8", [SNT_I8] = "|i1", [SNT_I16] = "<i2", [SNT_I32] = "<i4", [SNT_I64] = "<i8",
                                                          [SNT_U8] = "|u1", [SNT_U16] = "<u2", [SNT_U32] = "<u4", [SNT_U64] = "<u8", [SNT_BOOL] = "|b1"};
// clang-format on

typedef struct npy_file {
  snt_tensor type;
  const uint8_t *data;
  size_t bytes;
} npy_file;

static bool parse_shape(const char *header, snt_tensor *out) {
  const char *at = strstr(header, "'shape':");
  if (!at || !(at = strchr(at, '('))) return false;
  for (at++, out->rank = 0; *at != ')'; out->rank++) {
    char *stop;
    if (out->rank == SNT_MAX_RANK) return false;
    out->dims[out->rank] = strtoll(at, &stop, 10);
    if (stop == at || out->dims[out->rank] < 0) return false;
    at = stop + strspn(stop, ", ");
  }
  return true;
}

/* Of the elements; no farther than beyond `most`, as extents of a file may be anything. */
static uint64_t data_bytes(const snt_tensor *type, uint64_t most) {
  uint64_t bytes = snt_dtype_size(type->dtype);
  for (uint32_t i = 0; i < type->rank; i++)
    if (type->dims[i] == 0) return 0;
  for (uint32_t i = 0; i < type->rank && bytes <= most; i++) bytes *= (uint64_t)type->dims[i];
  return bytes;
}

static snt_result parse_file(const char *path, const uint8_t *file, size_t size, npy_file *out, snt_diag *diag) {
  if (size < 10 || memcmp(file, "\x93NUMPY", 6) || file[6] < 1 || file[6] > 2)
    return host_fail(diag, SNT_E_PARSE, "npy", "%s: not an .npy file", path);
  const size_t start = file[6] == 1 ? 10 : 12;
  const size_t length = file[6] == 1 ? (size_t)file[8] | (size_t)file[9] << 8
                        : size < 12  ? 0
                                     : (size_t)file[8] | (size_t)file[9] << 8 | (size_t)file[10] << 16 | (size_t)file[11] << 24;
  if (length > 65536 || start + length > size) return host_fail(diag, SNT_E_PARSE, "npy", "%s: the header is cut off", path);
  char header[65537];
  memcpy(header, file + start, length);
  header[length] = 0;
  *out = (npy_file){.data = file + start + length, .bytes = size - start - length};
  for (int32_t d = 0; d < SNT_DTYPE_COUNT && !out->type.dtype; d++)
    if (descriptions[d] && strstr(header, descriptions[d])) out->type.dtype = d;
  if (!out->type.dtype) {
    const char *own = strstr(header, "'descr': ");
    own = own ? own + strlen("'descr': ") : "";
    return host_fail(diag, SNT_E_SHAPE, "npy", "%s: no tensor has elements of numpy's type %.*s (little-endian numbers: '<f4')", path,
                     (int)strcspn(own, ",}"), own);
  }
  if (strstr(header, "'fortran_order': True"))
    return host_fail(diag, SNT_E_SHAPE, "npy", "%s: Fortran order, where numpy.ascontiguousarray makes C order", path);
  if (!parse_shape(header, &out->type)) return host_fail(diag, SNT_E_PARSE, "npy", "%s: the header has no shape", path);
  const uint64_t bytes = data_bytes(&out->type, out->bytes);
  if (out->bytes != bytes)
    return host_fail(diag, SNT_E_PARSE, "npy", "%s: %zu bytes of data, expected %llu", path, out->bytes, (unsigned long long)bytes);
  return SNT_OK;
}

static bool ends_with(const char *path, const char *end) {
  const size_t length = strlen(path), own = strlen(end);
  return length > own && !strcmp(path + length - own, end);
}

bool npy_is_path(const char *path) { return ends_with(path, ".npy") || ends_with(path, ".pb"); }

/* A TensorProto, its elements in place of the file. */
static snt_result open_proto(const char *path, void **file, size_t size, npy_file *out, snt_diag *diag) {
  snt_result r = snt_onnx_tensor(*file, size, NULL, &out->type, NULL, &out->bytes, diag);
  void *data = r >= 0 ? malloc(out->bytes + 1) : NULL;
  if (r >= 0) r = data ? snt_onnx_tensor(*file, size, NULL, &out->type, data, &out->bytes, diag) : SNT_E_HOST_MEM;
  if (r != SNT_OK) {
    free(data);
    if (r == SNT_E_HOST_MEM) return host_fail(diag, r, "pb", "%s: out of memory", path);
    return host_fail(diag, SNT_E_PARSE, "pb", "%s: no tensor that is supported", path);
  }
  free(*file);
  *file = data;
  out->data = data;
  return SNT_OK;
}

snt_result npy_open(const char *path, void **file, snt_tensor *type, const void **data, snt_diag *diag) {
  npy_file npy = {0};
  size_t size;
  snt_result r = host_read_file(path, file, &size, diag);
  if (r != SNT_OK) return r;
  if (ends_with(path, ".npy")) r = parse_file(path, *file, size, &npy, diag);
  else if (ends_with(path, ".pb")) r = open_proto(path, file, size, &npy, diag);
  else npy = (npy_file){{.dtype = SNT_U8, .rank = 1, .dims = {(int64_t)size}}, *file, size};
  *type = npy.type;
  *data = npy.data;
  if (r != SNT_OK) free(*file);
  return r;
}

/* "f32[2,3]" */
static void put_type(char *out, size_t size, const snt_tensor *type, const int64_t *dims) {
  size_t used = (size_t)snprintf(out, size, "%s[", tool_dtype_name(type->dtype));
  for (uint32_t i = 0; i < type->rank && used < size; i++)
    used += (size_t)snprintf(out + used, size - used, "%s%lld", i ? "," : "", (long long)dims[i]);
  if (used < size) snprintf(out + used, size - used, "]");
}

static snt_result copy_into(const char *path, const snt_tensor *type, const void *data, tool_tensor *t, snt_diag *diag) {
  char own[200], wanted[200];
  const snt_tensor *to = &t->port.tensor;
  if (type->dtype == to->dtype && type->rank == to->rank && (!type->rank || !memcmp(type->dims, t->dims, type->rank * sizeof *t->dims))) {
    if (t->bytes) memcpy(t->data, data, t->bytes);
    return SNT_OK;
  }
  put_type(own, sizeof own, type, type->dims), put_type(wanted, sizeof wanted, to, t->dims);
  return host_fail(diag, SNT_E_SHAPE, "npy", "%s: %s, where %s is %s", path, own, t->port.name, wanted);
}

snt_result npy_read(const char *path, tool_tensor *t, snt_diag *diag) {
  void *file;
  snt_tensor type;
  const void *data;
  snt_result r = npy_open(path, &file, &type, &data, diag);
  if (r != SNT_OK) return r;
  r = copy_into(path, &type, data, t, diag);
  free(file);
  return r;
}

snt_result npy_write(const char *path, const tool_tensor *t, snt_diag *diag) {
  const char *description = descriptions[t->port.tensor.dtype];
  if (!description) return host_fail(diag, SNT_E_UNSUPPORTED, "npy", "%s: numpy has no such element type", path);
  char header[512];
  int length = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (", description);
  for (uint32_t i = 0; i < t->port.tensor.rank; i++)
    length += snprintf(header + length, sizeof header - (size_t)length, "%lld,", (long long)t->dims[i]);
  length += snprintf(header + length, sizeof header - (size_t)length, "), }");
  const size_t padded = ((size_t)length + 1 + 10 + 63) / 64 * 64 - 10;
  uint8_t *file = calloc(1, 10 + padded + t->bytes);
  if (!file) return host_fail(diag, SNT_E_HOST_MEM, "npy", "out of host memory");
  memcpy(file, "\x93NUMPY\x01\x00", 8);
  file[8] = (uint8_t)(padded & 255);
  file[9] = (uint8_t)(padded >> 8);
  memset(file + 10, ' ', padded);
  memcpy(file + 10, header, (size_t)length);
  file[10 + padded - 1] = '\n';
  memcpy(file + 10 + padded, t->data, t->bytes);
  const snt_result r = host_write_file(path, file, 10 + padded + t->bytes, diag);
  free(file);
  return r;
}
