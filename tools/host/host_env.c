/* Environment variables, all of them, in one place. */
#include "tools/host/host.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const char *text_of(const char *name) {
  const char *value = getenv(name);
  return value && *value ? value : NULL;
}

static const char *cache_dir(host_env *env) {
  const char *own = getenv("SNT_CACHE_DIR"), *xdg = text_of("XDG_CACHE_HOME"), *home = text_of("HOME");
  if (own) return *own ? own : NULL; /* set to nothing: no cache */
  int length = -1;
  if (xdg) length = snprintf(env->storage, sizeof env->storage, "%s/sinter", xdg);
  else if (home) length = snprintf(env->storage, sizeof env->storage, "%s/.cache/sinter", home);
  return length > 0 && (size_t)length < sizeof env->storage ? env->storage : NULL;
}

bool host_read_number(const char *text, uint64_t *out) {
  char *stop;
  errno = 0;
  *out = strtoull(text, &stop, 10);
  return *text >= '0' && *text <= '9' && !*stop && !errno;
}

snt_result host_read_env(host_env *env, snt_diag *diag) {
  *env = (host_env){
      .dump_dir = text_of("SNT_DUMP_DIR"), .device = text_of("SNT_DEVICE"), .mask = text_of("SNT_MASK"), .cache_bytes = (uint64_t)1 << 30};
  env->cache_dir = cache_dir(env);
  env->cache_named = text_of("SNT_CACHE_DIR") != NULL;
  const char *bytes = text_of("SNT_CACHE_BYTES");
  return !bytes || host_read_number(bytes, &env->cache_bytes)
             ? SNT_OK
             : host_fail(diag, SNT_E_ARG, "environment", "SNT_CACHE_BYTES: not a number of bytes: \"%s\"", bytes);
}
