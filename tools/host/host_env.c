/* Environment variables, all of them, in one place. */
#include "tools/host/host.h"
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

void host_read_env(host_env *env) {
  *env = (host_env){.debug = text_of("SNT_DEBUG"),
                    .dump_dir = text_of("SNT_DUMP_DIR"),
                    .device = text_of("SNT_DEVICE"),
                    .mask = text_of("SNT_MASK"),
                    .cache_bytes = (uint64_t)1 << 30};
  env->cache_dir = cache_dir(env);
  const char *bytes = text_of("SNT_CACHE_BYTES");
  if (bytes) env->cache_bytes = strtoull(bytes, NULL, 0);
}
