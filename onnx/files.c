/* Files mapped into memory: the model and, from its folder or below, the data that it keeps outside. Mappings live as long as the graph
   and its programs.
   A path of the model is followed one component at a time without symbolic links, so none leads out of the folder. */
#include "onnx/files.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static snt_result map_descriptor(onnx_mapping *m, int fd, const char *path, snt_diag *diag) {
  struct stat s;
  if (fstat(fd, &s) || !S_ISREG(s.st_mode)) return ir_fail(diag, SNT_E_ARG, "onnx", 0, "%.150s is no file", path);
  m->size = (size_t)s.st_size;
  m->data = NULL;
  if (m->size == 0) return SNT_OK;
  m->data = mmap(NULL, m->size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (m->data != MAP_FAILED) return SNT_OK;
  m->data = NULL;
  return ir_fail(diag, SNT_E_HOST_MEM, "onnx", 0, "%.150s cannot be mapped: %.60s", path, strerror(errno));
}

snt_result onnx_map_file(onnx_mapping *m, const char *path, snt_diag *diag) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ir_fail(diag, SNT_E_ARG, "onnx", 0, "%.150s: %.60s", path, strerror(errno));
  const snt_result r = map_descriptor(m, fd, path, diag);
  close(fd);
  return r;
}

/* Opens folder/part/part/.., refusing "..", absolute paths and links. */
static int open_inside(const char *model, const char *location, const char **why) {
  const char *slash = strrchr(model, '/');
  char part[256], folder[4096];
  const size_t length = slash ? (size_t)(slash - model) + 1 : 1;
  *why = "is not inside the model's folder";
  if (length >= sizeof folder || location[0] == '/') return -1;
  memcpy(folder, slash ? model : ".", length);
  folder[length] = 0;
  int at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  while (at >= 0 && *location) {
    const size_t size = strcspn(location, "/");
    const bool last = location[size] == 0;
    if (size >= sizeof part || (size == 2 && !memcmp(location, "..", 2))) break;
    memcpy(part, location, size);
    part[size] = 0;
    location += size + !last;
    if (!size || (size == 1 && part[0] == '.')) continue;
    const int next = openat(at, part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | (last ? 0 : O_DIRECTORY));
    close(at);
    at = next;
    if (at < 0) *why = errno == ELOOP ? "is a link, which is not followed" : "is not there";
    if (last) return at;
  }
  if (at >= 0) close(at);
  return -1;
}

static const onnx_mapping *map_inside(onnx_folder *f, const char *location, snt_diag *diag) {
  const char *why;
  onnx_mapping m;
  for (uint32_t i = 0; i < f->maps.count; i++)
    if (!strcmp(f->maps.at[i].name, location)) return &f->maps.at[i];
  const int fd = open_inside(f->model, location, &why);
  if (fd < 0) {
    ir_fail(diag, SNT_E_ARG, "onnx", 0, "its file %.80s %s", location, why);
    return NULL;
  }
  const snt_result r = map_descriptor(&m, fd, location, diag);
  close(fd);
  m.name = r == SNT_OK ? ir_arena_text(f->arena, location, strlen(location)) : NULL;
  if (m.name && IR_PUSH(f->arena, &f->maps, m)) return &f->maps.at[f->maps.count - 1];
  if (r == SNT_OK && m.data) munmap(m.data, m.size);
  return NULL;
}

static const void *find(void *user, const char *location, uint64_t offset, uint64_t bytes, snt_diag *diag) {
  const onnx_mapping *m = map_inside(user, location, diag);
  if (!m) return NULL;
  if (offset <= m->size && bytes <= m->size - offset) return (const char *)m->data + offset;
  ir_fail(diag, SNT_E_PARSE, "onnx", 0, "its file %.80s has %llu bytes: %llu at %llu are not there", location, (unsigned long long)m->size,
          (unsigned long long)bytes, (unsigned long long)offset);
  return NULL;
}

onnx_files onnx_folder_files(onnx_folder *f) { return (onnx_files){f, find}; }

void onnx_folder_close(void *user) {
  onnx_folder *f = user;
  for (uint32_t i = 0; i < f->maps.count; i++)
    if (f->maps.at[i].data) munmap(f->maps.at[i].data, f->maps.at[i].size);
  f->maps.count = 0;
}

bool onnx_folder_holds(void *user, const void *data, uint64_t bytes) {
  const onnx_folder *f = user;
  for (uint32_t i = 0; i < f->maps.count; i++) {
    const uintptr_t begin = (uintptr_t)f->maps.at[i].data, at = (uintptr_t)data;
    if (begin && at >= begin && at - begin <= f->maps.at[i].size && bytes <= f->maps.at[i].size - (at - begin)) return true;
  }
  return false;
}

/* The pages are read again from the file when somebody wants them. */
void onnx_folder_rest(void *user) {
  const onnx_folder *f = user;
  for (uint32_t i = 0; i < f->maps.count; i++)
    if (f->maps.at[i].data) (void)madvise(f->maps.at[i].data, f->maps.at[i].size, MADV_DONTNEED);
}
