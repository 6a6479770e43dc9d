/* sinter-host: what a program around the library may do and the library may not: files, environment variables, processes. The command, the
   tests and the benchmarks use it; all of it is optional. Functions return snt_result and fill the diag as the library does. */
#ifndef TOOLS_HOST_HOST_H
#define TOOLS_HOST_HOST_H
#include <sinter/backend.h>
#include <stdbool.h>
#include <stdio.h>

/* ---- environment (host_env.c): the only reader of SNT_* variables ---- */
typedef struct host_env {
  const char *dump_dir; /* SNT_DUMP_DIR */
  const char *device;   /* SNT_DEVICE: selector when none is given */
  const char *mask;     /* SNT_MASK: device limits narrowed, "bindings=4,local=16384" */
  const char
      *cache_dir; /* SNT_CACHE_DIR; else $XDG_CACHE_HOME/sinter, else $HOME/.cache/sinter; null when none is known or SNT_CACHE_DIR is "" */
  bool cache_named;     /* by SNT_CACHE_DIR: one that cannot be used is an error */
  uint64_t cache_bytes; /* SNT_CACHE_BYTES; 1 GiB */
  char storage[512];
} host_env;
bool host_read_number(const char *text, uint64_t *out); /* digits and nothing else; false: it is none, or more than 64 bits */
snt_result host_read_env(host_env *, snt_diag *);       /* what is no number where one is wanted is told by its name */

/* ---- drivers (host_drivers.c): finds the software drivers of this machine and tells their loaders. Once, before any device is listed;
   variables that are already set are left alone. `device`: the selector of the only device that will be opened, whose backend's drivers
   alone are told then, or null. SNT_NVRTC names a libnvrtc.so outside the loader's path. ---- */
void host_prepare_drivers(const char *device);

/* ---- memory (host_alloc.c): for snt_context_info.alloc ---- */
snt_host_alloc host_allocator(void);

/* ---- files (host_file.c) ---- */
snt_result host_read_file(const char *path, void **data, size_t *size, snt_diag *);      /* free() it; a zero byte follows */
snt_result host_write_file(const char *path, const void *data, size_t size, snt_diag *); /* whole or not at all: renamed into place */
/* The same piece by piece into `file`; "-" is the standard output; `end` is given what became of it, and where that is not SNT_OK nothing
   is left. `path` is borrowed. */
typedef struct host_output {
  FILE *file;
  const char *path;
  char temporary[1024]; /* empty: written in place, it is a pipe or a device */
  bool nameless;        /* `temporary` is made of it when it is whole */
} host_output;
snt_result host_begin_file(host_output *, const char *path, snt_diag *);
snt_result host_close_file(host_output *, snt_result so_far,
                           snt_diag *); /* of several before the end of any: all that can fail but a name */
snt_result host_end_file(host_output *, snt_result so_far, snt_diag *);
snt_result host_can_write(const char *path, snt_diag *); /* what is made there later takes long; leaves nothing */
snt_result host_make_dirs(const char *path, snt_diag *);
/* A JSON string of a text, up to its zero byte or so many bytes; what is in `also` is escaped, too ("<": the JSON lies in HTML). */
void host_put_json(FILE *, const char *text, size_t most, const char *also);
bool host_end_output(const char *program); /* the standard output has all of it; if not, says so on the standard error */
snt_result host_fail(snt_diag *, snt_result, const char *stage, const char *format, ...);

/* ---- numbers (host_random.c) ---- */
uint64_t host_random(uint64_t *state); /* of a sequence that its first state, any number, decides */

/* ---- a cache of compiled code in files (host_cache.c): the functions have the shape of snt_cache_io, `user` is the host_cache.
   Entries are checked (length, key, SHA-256) before a byte is given out; any doubt is a miss. Safe between threads and processes. ---- */
typedef struct host_cache host_cache;
typedef struct host_cache_stats {
  uint64_t hits, misses, damaged, stored, evicted;
} host_cache_stats;
snt_result host_cache_open(const char *dir, uint64_t max_bytes, host_cache **out, snt_diag *);
void host_cache_close(host_cache *);
snt_result SNT_CALL host_cache_get(void *user, const uint8_t key[32], void *dst,
                                   size_t *size); /* SNT_INCOMPLETE: *size is needed; SNT_NOT_READY: a miss */
void SNT_CALL host_cache_set(void *user, const uint8_t key[32], const void *src, size_t size);
host_cache_stats host_cache_statistics(const host_cache *);

/* ---- cuda-text (cuda_text.c): CUDA C compiled as C++ by this machine's c++ and run on its processor, for machines without a GPU.
   For snt_context_add_backend; the struct is static. ---- */
const snt_backend *host_cuda_text(void);

/* ---- glsl (host_glsl.c): the glslangValidator on the PATH, for snt_compile_info.glsl; `user` is a host_glsl, all zero at first, and owns the
   words until the next call or host_glsl_free. ---- */
typedef struct host_glsl {
  void *words;
} host_glsl;
snt_result SNT_CALL host_glsl_compile(void *user, const char *label, const char *text, size_t length, const uint32_t **words, size_t *bytes,
                                      snt_diag *);
bool host_glsl_found(void);
void host_glsl_free(host_glsl *);
#endif
