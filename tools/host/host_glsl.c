/* GLSL to SPIR-V by the reference compiler, run as a process in a directory that goes again. In: a compute shader. Out: words, or its first complaint
   with the operator's name. */
#include "tools/host/host.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
enum { GLSL_PATH = 320 };

bool host_glsl_found(void) {
  char path[GLSL_PATH];
  for (const char *at = getenv("PATH"); at && *at;) {
    const size_t length = strcspn(at, ":");
    const int written = snprintf(path, sizeof path, "%.*s/glslangValidator", (int)length, at);
    if (written > 0 && written < GLSL_PATH && access(path, X_OK) == 0) return true;
    at += length + (at[length] == ':');
  }
  return false;
}

static int run(const char *source, const char *object, const char *log) {
  const char *const arguments[] = {"glslangValidator", "-V", "--target-env", "vulkan1.1", "-S", "comp", "-o", object, source, NULL};
  posix_spawn_file_actions_t actions;
  pid_t child;
  int status = -1;
  if (posix_spawn_file_actions_init(&actions) != 0) return -1;
  posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  const int code = posix_spawnp(&child, arguments[0], &actions, NULL, (char *const *)(uintptr_t)arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static snt_result complain(const char *label, const char *log, snt_diag *diag) {
  void *data = NULL;
  size_t size = 0;
  if (host_read_file(log, &data, &size, NULL) != SNT_OK)
    return host_fail(diag, SNT_E_UNSUPPORTED, "glsl", "operator %s: glslangValidator could not be run", label);
  const char *line = strstr(data, "ERROR:");
  if (!line) line = data;
  host_fail(diag, SNT_E_PARSE, "glsl", "operator %s: %.*s", label, (int)strcspn(line, "\n"), line);
  free(data);
  return SNT_E_PARSE;
}

snt_result SNT_CALL host_glsl_compile(void *user, const char *label, const char *text, size_t length, const uint32_t **words, size_t *bytes,
                                      snt_diag *diag) {
  host_glsl *self = user;
  const char *root = getenv("TMPDIR");
  char dir[GLSL_PATH - 32], source[GLSL_PATH], object[GLSL_PATH], log[GLSL_PATH];
  snprintf(dir, sizeof dir, "%s/sinter-glsl-XXXXXX", root && *root ? root : "/tmp");
  if (!mkdtemp(dir)) return host_fail(diag, SNT_E_BACKEND, "glsl", "%s could not be made", dir);
  snprintf(source, sizeof source, "%s/own.comp", dir);
  snprintf(object, sizeof object, "%s/own.spv", dir);
  snprintf(log, sizeof log, "%s/own.log", dir);
  host_glsl_free(self);
  snt_result r = host_write_file(source, text, length, diag);
  if (r == SNT_OK && run(source, object, log) != 0) r = complain(label, log, diag);
  if (r == SNT_OK) r = host_read_file(object, &self->words, bytes, diag);
  if (r == SNT_OK) *words = self->words;
  unlink(source);
  unlink(object);
  unlink(log);
  rmdir(dir);
  return r;
}

void host_glsl_free(host_glsl *self) {
  free(self->words);
  self->words = NULL;
}
