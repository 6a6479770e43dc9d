/* NumPy's .npy files, version 1.0 and 2.0 (numpy.lib.format): little-endian, C order. */
#include "tools/sinter/tool.h"
#include <stdlib.h>
#include <string.h>

// clang-format off
static const char *const descriptions[SNT_DTYPE_COUNT] = {[SNT_F32] = "<f4", [SNT_F16] = "<f2", [SNT_F64] = "<f8", [SNT_I8] = "|i1", [SNT_I16] = "<i2", [SNT_I32] = "<i4", [SNT_I64] = "<i8",
                                                          [SNT_U8] = "|u1", [SNT_U16] = "<u2", [SNT_U32] = "<u4", [SNT_U64] = "<u8", [SNT_BOOL] = "|b1"};
// clang-format on

static bool shape_matches(const char *header, const tool_tensor *t) {
  const char *at = strstr(header, "'shape':");
  if (!at || !(at = strchr(at, '('))) return false;
  at++;
  for (uint32_t i = 0; i < t->port.tensor.rank; i++) {
    char *stop;
    if (strtoll(at, &stop, 10) != t->dims[i] || stop == at) return false;
    at = stop + strspn(stop, ", ");
  }
  return *at == ')';
}

static snt_result read_into(const char *path, const uint8_t *file, size_t size, tool_tensor *t, snt_diag *diag) {
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
  const char *wanted = descriptions[t->port.tensor.dtype];
  if (!wanted || !strstr(header, wanted))
    return host_fail(diag, SNT_E_SHAPE, "npy", "%s: the element type is not %s, that of %s", path, wanted ? wanted : "one of numpy's",
                     t->port.name);
  if (strstr(header, "'fortran_order': True")) return host_fail(diag, SNT_E_SHAPE, "npy", "%s: Fortran order", path);
  if (!shape_matches(header, t)) return host_fail(diag, SNT_E_SHAPE, "npy", "%s: not the shape of %s", path, t->port.name);
  if (size - start - length != t->bytes)
    return host_fail(diag, SNT_E_PARSE, "npy", "%s: %zu bytes of data, expected %llu", path, size - start - length,
                     (unsigned long long)t->bytes);
  memcpy(t->data, file + start + length, t->bytes);
  return SNT_OK;
}

snt_result npy_read(const char *path, tool_tensor *t, snt_diag *diag) {
  void *file;
  size_t size;
  snt_result r = host_read_file(path, &file, &size, diag);
  if (r != SNT_OK) return r;
  r = read_into(path, file, size, t, diag);
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
