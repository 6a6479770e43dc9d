/* Files: read whole, written whole or not at all. */
#include "tools/host/host.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

snt_result host_fail(snt_diag *diag, snt_result result, const char *stage, const char *format, ...) {
  if (!diag) return result;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(diag->text, sizeof diag->text, format, arguments);
  va_end(arguments);
  snprintf(diag->stage, sizeof diag->stage, "%s", stage);
  diag->result = result;
  diag->node = 0, diag->native = 0;
  return result;
}

static snt_result read_stream(FILE *file, const char *path, void **data, size_t *size, snt_diag *diag) {
  size_t capacity = 1 << 16, have = 0;
  char *bytes = malloc(capacity);
  while (bytes) {
    have += fread(bytes + have, 1, capacity - have - 1, file);
    if (have + 1 < capacity) break;
    char *larger = realloc(bytes, capacity *= 2);
    if (!larger) free(bytes);
    bytes = larger;
  }
  if (!bytes) return host_fail(diag, SNT_E_HOST_MEM, "file", "%s: out of memory", path);
  if (ferror(file)) {
    free(bytes);
    return host_fail(diag, SNT_E_ARG, "file", "%s: %s", path, strerror(errno));
  }
  bytes[have] = 0;
  *data = bytes, *size = have;
  return SNT_OK;
}

snt_result host_read_file(const char *path, void **data, size_t *size, snt_diag *diag) {
  FILE *file = fopen(path, "rb");
  if (!file) return host_fail(diag, SNT_E_ARG, "file", "%s: %s", path, strerror(errno));
  snt_result result = read_stream(file, path, data, size, diag);
  fclose(file);
  return result;
}

static bool write_all(int file, const char *bytes, size_t size) {
  while (size > 0) {
    ssize_t written = write(file, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written, size -= (size_t)written;
  }
  return true;
}

snt_result host_write_file(const char *path, const void *data, size_t size, snt_diag *diag) {
  static atomic_uint serial;
  char temporary[1024];
  int length = snprintf(temporary, sizeof temporary, "%s.%ld-%u.tmp", path, (long)getpid(), atomic_fetch_add(&serial, 1));
  if (length < 0 || (size_t)length >= sizeof temporary) return host_fail(diag, SNT_E_ARG, "file", "%s: too long a name", path);
  int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return host_fail(diag, SNT_E_ARG, "file", "%s: %s", temporary, strerror(errno));
  bool written = write_all(file, data, size);
  written = close(file) == 0 && written;
  if (written && rename(temporary, path) == 0) return SNT_OK;
  int reason = errno;
  unlink(temporary);
  return host_fail(diag, SNT_E_ARG, "file", "%s: %s", path, strerror(reason));
}

snt_result host_make_dirs(const char *path, snt_diag *diag) {
  char part[1024];
  size_t length = strlen(path);
  if (length >= sizeof part) return host_fail(diag, SNT_E_ARG, "file", "%s: too long a name", path);
  for (size_t i = 1; i <= length; i++) {
    if (i < length && path[i] != '/') continue;
    memcpy(part, path, i);
    part[i] = 0;
    if (mkdir(part, 0777) != 0 && errno != EEXIST) return host_fail(diag, SNT_E_ARG, "file", "%s: %s", part, strerror(errno));
  }
  return SNT_OK;
}
