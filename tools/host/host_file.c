/* Files: read whole, written whole or not at all. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "tools/host/host.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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

/* What a device may say before it is taken for one that does not end, as /dev/zero; a file or a pipe of any length is read. */
static size_t most_of(FILE *file) {
  struct stat at;
  return fstat(fileno(file), &at) == 0 && S_ISCHR(at.st_mode) ? (size_t)64 << 20 : SIZE_MAX;
}

static snt_result read_stream(FILE *file, const char *path, void **data, size_t *size, snt_diag *diag) {
  const size_t most = most_of(file);
  size_t capacity = 1 << 16, have = 0;
  char *bytes = malloc(capacity);
  while (bytes) {
    have += fread(bytes + have, 1, capacity - have - 1, file);
    if (have + 1 < capacity || have > most) break;
    char *larger = realloc(bytes, capacity *= 2);
    if (!larger) free(bytes);
    bytes = larger;
  }
  if (!bytes) return host_fail(diag, SNT_E_HOST_MEM, "file", "%s: out of memory", path);
  if (ferror(file) || have > most) {
    const char *why = have > most ? "a device without an end" : strerror(errno);
    free(bytes);
    return host_fail(diag, SNT_E_ARG, "file", "%s: %s", path, why);
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

/* ---- written whole or not at all ---- */

static bool is_standard(const char *path) { return !strcmp(path, "-"); }

/* What is there and is no file of the disk (a pipe, a terminal) is written to: a new file in its place would be another thing. */
static bool is_device(const char *path) {
  struct stat at;
  return is_standard(path) || (stat(path, &at) == 0 && !S_ISREG(at.st_mode));
}

static FILE *open_there(const char *path) {
  if (!is_standard(path)) return fopen(path, "wb");
  const int file = fflush(stdout) ? -1 : dup(STDOUT_FILENO);
  FILE *out = file < 0 ? NULL : fdopen(file, "wb");
  if (file >= 0 && !out) close(file);
  return out;
}

/* A file without a name until it is whole, so that nothing is left of a process that is killed meanwhile; -1 where the file system has no such files. */
static int open_nameless(const char *path) {
  char folder[1024];
  const char *slash = strrchr(path, '/');
  const int length = snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 2, slash ? path : "./");
  return length < (int)sizeof folder ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
}

static bool give_name(FILE *file, const char *path) {
  char own[40];
  snprintf(own, sizeof own, "/proc/self/fd/%d", fileno(file));
  return !linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

static FILE *open_new(const char *path, bool *nameless) {
  int file = open_nameless(path);
  *nameless = file >= 0;
  if (file < 0) file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  FILE *out = file < 0 ? NULL : fdopen(file, "wb");
  if (file >= 0 && !out) close(file), unlink(path);
  return out;
}

snt_result host_begin_file(host_output *out, const char *path, snt_diag *diag) {
  static atomic_uint serial;
  *out = (host_output){.path = path};
  if (is_device(path)) out->file = open_there(path);
  else {
    const int length = snprintf(out->temporary, sizeof out->temporary, "%s.%ld-%u.tmp", path, (long)getpid(), atomic_fetch_add(&serial, 1));
    if (length < 0 || (size_t)length >= sizeof out->temporary) return host_fail(diag, SNT_E_ARG, "file", "%s: too long a name", path);
    out->file = open_new(out->temporary, &out->nameless);
  }
  if (out->file) return SNT_OK;
  *out->temporary = 0;
  return host_fail(diag, SNT_E_ARG, "file", "%s: %s", path, strerror(errno));
}

snt_result host_close_file(host_output *out, snt_result so_far, snt_diag *diag) {
  if (!out->file) return so_far;
  bool good = !ferror(out->file) && !fflush(out->file);
  int reason = errno;
  if (!out->nameless) { /* what has no name yet is given one when it is renamed, and is lost when it is closed */
    if (fclose(out->file)) good = false, reason = errno;
    out->file = NULL;
  }
  return good || so_far != SNT_OK ? so_far : host_fail(diag, SNT_E_LIMIT, "file", "%s: %s", out->path, strerror(reason));
}

/* Signals that end a process wait meanwhile: one that comes while the file is given a name of its own is delivered before that is its right one. */
static bool put_in_place(const host_output *out) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  bool good = !out->nameless || give_name(out->file, out->temporary);
  const bool named = good;
  good = good && !rename(out->temporary, out->path);
  const int reason = errno;
  if (named && !good) unlink(out->temporary);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = reason;
  return good;
}

snt_result host_end_file(host_output *out, snt_result so_far, snt_diag *diag) {
  snt_result r = host_close_file(out, so_far, diag);
  if (!*out->temporary) return r;
  if (r != SNT_OK && !out->nameless) unlink(out->temporary);
  if (r == SNT_OK && !put_in_place(out)) r = host_fail(diag, SNT_E_ARG, "file", "%s: %s", out->path, strerror(errno));
  if (out->file) fclose(out->file);
  out->file = NULL;
  return r;
}

snt_result host_write_file(const char *path, const void *data, size_t size, snt_diag *diag) {
  host_output out;
  const snt_result r = host_begin_file(&out, path, diag);
  if (r == SNT_OK) fwrite(data, 1, size, out.file);
  return host_end_file(&out, r, diag);
}

snt_result host_can_write(const char *path, snt_diag *diag) {
  host_output out;
  const snt_result r = host_begin_file(&out, path, diag);
  (void)host_end_file(&out, SNT_E_ARG, NULL);
  return r;
}

void host_put_json(FILE *f, const char *text, size_t most, const char *also) {
  fputc('"', f);
  for (size_t i = 0; i < most && text[i]; i++) {
    const unsigned char c = (unsigned char)text[i];
    if (c == '"' || c == '\\') fprintf(f, "\\%c", c);
    else if (c == '\n') fputs("\\n", f);
    else if (c < 32 || strchr(also, c)) fprintf(f, "\\u%04x", c);
    else fputc(c, f);
  }
  fputc('"', f);
}

bool host_end_output(const char *program) {
  errno = 0;
  const bool good = !fflush(stdout) && !ferror(stdout);
  if (!good) fprintf(stderr, "%s: standard output: %s\n", program, errno ? strerror(errno) : "not all of it was written");
  return good;
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
  struct stat at;
  if (stat(path, &at) == 0 && !S_ISDIR(at.st_mode)) return host_fail(diag, SNT_E_ARG, "file", "%s: %s", path, strerror(ENOTDIR));
  return SNT_OK;
}
