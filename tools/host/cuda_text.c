/* cuda-text: a backend whose device is this machine's C++ compiler. CUDA C comes in; it is compiled behind cuda_shim.hpp into a shared
   object, which is loaded and unlinked; dispatches call into it. It proves generated CUDA where there is no GPU. */
#include "tools/host/host.h"
#include "tools/host/host_texts.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
typedef int (*launch_fn)(const unsigned *grid, const unsigned *items, void *const *bindings, const void *words);
typedef struct text_pipeline {
  void *library;
  launch_fn launch;
  uint32_t items[3];
} text_pipeline;
enum { TEXT_PATH = 320 };

/* ---- the compiler ---- */

static bool find_compiler(char path[TEXT_PATH]) {
  static const char *const names[] = {"c++", "g++", "clang++"};
  const char *search = getenv("PATH");
  for (size_t i = 0; search && i < sizeof names / sizeof *names; i++) {
    for (const char *at = search; *at;) {
      size_t length = strcspn(at, ":");
      int written = snprintf(path, TEXT_PATH, "%.*s/%s", (int)length, at, names[i]);
      if (written > 0 && written < TEXT_PATH && access(path, X_OK) == 0) return true;
      at += length + (at[length] == ':');
    }
  }
  return false;
}

static int run_compiler(const char *compiler, const char *source, const char *object, const char *log, bool fibers) {
  posix_spawn_file_actions_t actions;
  pid_t child;
  int status = -1;
  const char *const arguments[] = {compiler,
                                   "-std=c++17",
                                   "-O1", /* tests run a kernel once: compiling is most of it */
                                   "-shared",
                                   "-fPIC",
                                   "-w",
                                   "-ffp-contract=off",
                                   "-fno-strict-aliasing",
                                   "-fno-math-errno",
                                   fibers ? "-DSNT_FIBERS=1" : "-DSNT_FIBERS=0",
                                   "-o",
                                   object,
                                   source,
                                   NULL};
  if (posix_spawn_file_actions_init(&actions) != 0) return -1;
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  int code = posix_spawn(&child, compiler, &actions, NULL, (char *const *)(uintptr_t)arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static snt_result compile_failed(const char *log, snt_diag *diag) {
  void *data = NULL;
  size_t size = 0;
  if (host_read_file(log, &data, &size, NULL) != SNT_OK)
    return host_fail(diag, SNT_E_BACKEND, "pipeline", "the C++ compiler could not be run");
  const char *line = strstr(data, "error:");
  if (!line) line = data;
  while (line > (const char *)data && line[-1] != '\n') line--;
  host_fail(diag, SNT_E_BACKEND, "pipeline", "the C++ compiler says: %.*s", (int)strcspn(line, "\n"), line);
  free(data);
  return SNT_E_BACKEND;
}

/* ---- the source: shim, kernel, launcher ---- */

static const char *shim_text(void) {
  for (uint32_t i = 0; i < host_text_count; i++) {
    if (strcmp(host_texts[i].name, "cuda_shim") == 0) return host_texts[i].text;
  }
  return "#error the shim is missing\n";
}

static snt_result write_source(const char *path, const snt_backend_code *code, snt_diag *diag) {
  static const char format[] =
      "%s\n#line 1 \"kernel.cu\"\n%.*s\nextern \"C\" int snt_launch(const unsigned *grid, const unsigned *items, void *const *bindings, "
      "const void *words) {\n  return snt::launch(&%s, grid, items, bindings, words);\n}\n";
  const char *shim = shim_text();
  size_t room = strlen(shim) + code->size + strlen(code->entry) + sizeof format + 64;
  char *text = malloc(room);
  if (!text) return host_fail(diag, SNT_E_HOST_MEM, "pipeline", "out of memory");
  int length = snprintf(text, room, format, shim, (int)code->size, (const char *)code->data, code->entry);
  snt_result result = host_write_file(path, text, (size_t)length, diag);
  free(text);
  return result;
}

static bool waits_for_others(const char *text) {
  static const char *const words[] = {"__syncthreads", "__syncwarp", "__shfl", "snt_mma("};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strstr(text, words[i])) return true;
  }
  return false;
}

/* ---- the backend ---- */

static snt_result load(text_pipeline *pipeline, const char *object, snt_diag *diag) {
  pipeline->library = dlopen(object, RTLD_NOW | RTLD_LOCAL);
  if (!pipeline->library) return host_fail(diag, SNT_E_BACKEND, "pipeline", "%s", dlerror());
  void *address = dlsym(pipeline->library, "snt_launch");
  if (!address) return host_fail(diag, SNT_E_INTERNAL, "pipeline", "the compiled kernel has no launcher");
  memcpy(&pipeline->launch, &address, sizeof address);
  return SNT_OK;
}

static void SNT_CALL text_pipeline_destroy(void *device, void *handle) {
  text_pipeline *pipeline = handle;
  (void)device;
  if (pipeline->library) dlclose(pipeline->library);
  free(pipeline);
}

static bool make_folder(char folder[TEXT_PATH]) {
  const char *base = getenv("TMPDIR");
  int length = snprintf(folder, TEXT_PATH, "%s/sinter-XXXXXX", base && *base ? base : "/tmp");
  return length < TEXT_PATH && mkdtemp(folder);
}

/* A folder a kernel, gone once it is loaded: a process that is killed later leaves nothing behind. */
static snt_result build(const snt_backend_code *code, text_pipeline *pipeline, snt_diag *diag) {
  char compiler[TEXT_PATH], folder[TEXT_PATH], source[TEXT_PATH + 16], object[TEXT_PATH + 16], log[TEXT_PATH + 16];
  if (!find_compiler(compiler)) return host_fail(diag, SNT_E_UNSUPPORTED, "pipeline", "there is no c++ on the PATH");
  if (!make_folder(folder)) return host_fail(diag, SNT_E_UNSUPPORTED, "pipeline", "no directory for compiled kernels: %s", strerror(errno));
  snprintf(source, sizeof source, "%s/kernel.cpp", folder);
  snprintf(object, sizeof object, "%s/kernel.so", folder);
  snprintf(log, sizeof log, "%s/kernel.log", folder);
  snt_result result = write_source(source, code, diag);
  if (result == SNT_OK) {
    int status = run_compiler(compiler, source, object, log, waits_for_others(code->data));
    result = status == 0 ? load(pipeline, object, diag) : compile_failed(log, diag);
  }
  unlink(source), unlink(object), unlink(log), rmdir(folder);
  return result;
}

static snt_result SNT_CALL text_pipeline_create(void *device, const snt_backend_code *code, void **out, snt_diag *diag) {
  text_pipeline *pipeline = calloc(1, sizeof *pipeline);
  if (!pipeline) return host_fail(diag, SNT_E_HOST_MEM, "pipeline", "out of memory");
  memcpy(pipeline->items, code->items, sizeof pipeline->items);
  snt_result result = build(code, pipeline, diag);
  if (result != SNT_OK) text_pipeline_destroy(device, pipeline);
  else *out = pipeline;
  return result;
}

static snt_result SNT_CALL text_run(void *device, void *handle, const snt_backend_launch *launch, uint64_t *ns, snt_diag *diag) {
  const text_pipeline *pipeline = handle;
  (void)device, (void)ns;
  switch (pipeline->launch(launch->grid, pipeline->items, launch->bindings, launch->block)) {
  case 0: return SNT_OK;
  case 1: return host_fail(diag, SNT_E_BACKEND, "submit", "threads of one block wait at different barriers");
  default: return host_fail(diag, SNT_E_HOST_MEM, "submit", "no memory for the threads of a block");
  }
}

/* There is no device: only a compiler, which has no state. */
static snt_result SNT_CALL text_open(void *user, const char *which, void **out, snt_diag *diag) {
  static char none;
  char compiler[TEXT_PATH];
  (void)user;
  if (*which && strcmp(which, "0") != 0) return host_fail(diag, SNT_E_UNSUPPORTED, "open", "no device cuda-text:%s", which);
  if (!find_compiler(compiler)) return host_fail(diag, SNT_E_UNSUPPORTED, "open", "cuda-text needs c++, g++ or clang++ on the PATH");
  *out = &none;
  return SNT_OK;
}

static void SNT_CALL text_close(void *handle) { (void)handle; }

const snt_backend *host_cuda_text(void) {
  static const snt_backend backend = {
      .head = SNT_HEAD(backend),
      .name = "cuda-text",
      .target = SNT_TARGET_CUDA,
      .device_count = 1,
      .device_name = "CUDA C through the C++ compiler",
      .driver = "cuda-text 1",
      .profile = "base = h100\nname = cuda-text\n",
      .open = text_open,
      .close = text_close,
      .pipeline_create = text_pipeline_create,
      .pipeline_destroy = text_pipeline_destroy,
      .run = text_run,
  };
  return &backend;
}
