/* The file cache: one file an entry, dir/ab/cdef.., a header with its own SHA-256 over what follows. Written beside and renamed, so a
   reader sees all or nothing; nothing is ever changed in place; what does not check out is deleted and is a miss. Reading an entry renews its
   time; when the sum of sizes passes the bound, the oldest go until three quarters are left. */
#include "ir/base.h"
#include "tools/host/host.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CACHE_VERSION = 1, CACHE_PATH = 768, STALE_SECONDS = 3600 };
typedef struct cache_header {
  char magic[8];
  uint32_t version, endian;
  uint8_t key[32];
  uint64_t size;
  uint8_t checksum[32];
} cache_header;
static const char cache_magic[8] = "SNTCACHE"; /* no terminator */

struct host_cache {
  pthread_mutex_t lock;
  uint64_t bytes, max_bytes; /* bytes: what this process knows of; corrected at each sweep, of which the first store makes one */
  bool swept;
  host_cache_stats stats;
  char dir[CACHE_PATH - 96];
};

/* ---- names, headers ---- */

static void entry_dir(const host_cache *cache, const uint8_t key[32], char path[CACHE_PATH]) {
  snprintf(path, CACHE_PATH, "%s/%02x", cache->dir, key[0]);
}

static void entry_path(const host_cache *cache, const uint8_t key[32], char path[CACHE_PATH]) {
  entry_dir(cache, key, path);
  size_t length = strlen(path);
  path[length++] = '/';
  for (int i = 1; i < 32; i++, length += 2) snprintf(path + length, CACHE_PATH - length, "%02x", key[i]);
}

static cache_header make_header(const uint8_t key[32], const void *data, size_t size) {
  cache_header header = {.version = CACHE_VERSION, .endian = 0x01020304, .size = size};
  ir_sha256 sum;
  memcpy(header.magic, cache_magic, sizeof header.magic);
  memcpy(header.key, key, 32);
  ir_sha256_init(&sum);
  ir_sha256_add(&sum, &header, offsetof(cache_header, checksum));
  ir_sha256_add(&sum, data, size);
  ir_sha256_end(&sum, header.checksum);
  return header;
}

static bool checks_out(const uint8_t key[32], const uint8_t *file, size_t size) {
  if (size < sizeof(cache_header)) return false;
  cache_header wanted = make_header(key, file + sizeof wanted, size - sizeof wanted);
  return memcmp(file, &wanted, sizeof wanted) == 0;
}

/* ---- get, set ---- */

static void count(host_cache *cache, uint64_t *which) {
  pthread_mutex_lock(&cache->lock);
  ++*which;
  pthread_mutex_unlock(&cache->lock);
}

static snt_result give_out(const uint8_t *payload, size_t have, void *dst, size_t *size) {
  size_t room = *size;
  *size = have;
  if (have == 0) return SNT_OK;
  if (!dst || room < have) return SNT_INCOMPLETE;
  memcpy(dst, payload, have);
  return SNT_OK;
}

/* Of an entry that nobody has read yet: reading it will tell whether it is whole. */
static snt_result give_size(host_cache *cache, const char *path, size_t *size) {
  struct stat status;
  if (stat(path, &status) != 0 || (size_t)status.st_size < sizeof(cache_header)) {
    count(cache, &cache->stats.misses);
    return SNT_NOT_READY;
  }
  *size = (size_t)status.st_size - sizeof(cache_header);
  return *size ? SNT_INCOMPLETE : SNT_OK;
}

snt_result SNT_CALL host_cache_get(void *user, const uint8_t key[32], void *dst, size_t *size) {
  host_cache *cache = user;
  char path[CACHE_PATH];
  void *file;
  size_t length;
  entry_path(cache, key, path);
  if (!dst) return give_size(cache, path, size);
  if (host_read_file(path, &file, &length, NULL) != SNT_OK) {
    count(cache, &cache->stats.misses);
    return SNT_NOT_READY;
  }
  snt_result result = SNT_NOT_READY;
  if (checks_out(key, file, length)) {
    result = give_out((uint8_t *)file + sizeof(cache_header), length - sizeof(cache_header), dst, size);
    if (dst) utimensat(AT_FDCWD, path, NULL, 0);
    if (dst) count(cache, &cache->stats.hits);
  } else {
    unlink(path);
    count(cache, &cache->stats.damaged);
  }
  free(file);
  return result;
}

static void sweep(host_cache *);

void SNT_CALL host_cache_set(void *user, const uint8_t key[32], const void *src, size_t size) {
  host_cache *cache = user;
  char path[CACHE_PATH];
  const cache_header header = make_header(key, src, size);
  uint8_t *file = malloc(sizeof header + size);
  if (!file) return; /* a cache may forget */
  memcpy(file, &header, sizeof header);
  if (size) memcpy(file + sizeof header, src, size);
  entry_dir(cache, key, path);
  snt_result result = host_make_dirs(path, NULL);
  entry_path(cache, key, path);
  if (result == SNT_OK) result = host_write_file(path, file, sizeof header + size, NULL);
  free(file);
  if (result != SNT_OK) return;
  pthread_mutex_lock(&cache->lock);
  cache->stats.stored++;
  cache->bytes += sizeof header + size;
  if (!cache->swept || cache->bytes > cache->max_bytes) sweep(cache);
  pthread_mutex_unlock(&cache->lock);
}

/* ---- the bound ---- */

typedef struct old_entry {
  char path[CACHE_PATH];
  uint64_t bytes;
  struct timespec time;
} old_entry;
typedef struct old_list {
  old_entry *at;
  size_t count, capacity;
} old_list;

static int older_first(const void *a, const void *b) {
  const struct timespec *x = &((const old_entry *)a)->time, *y = &((const old_entry *)b)->time;
  if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
  return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static void note_entry(old_list *list, const char *dir, const char *name) {
  old_entry entry;
  struct stat status;
  if (snprintf(entry.path, sizeof entry.path, "%s/%s", dir, name) >= (int)sizeof entry.path) return;
  if (stat(entry.path, &status) != 0 || !S_ISREG(status.st_mode)) return;
  if (strstr(name, ".tmp")) { /* of a writer that died, if it is old */
    if (time(NULL) - status.st_mtime > STALE_SECONDS) unlink(entry.path);
    return;
  }
  entry.bytes = (uint64_t)status.st_size, entry.time = status.st_mtim;
  if (list->count == list->capacity) {
    size_t larger = list->capacity ? 2 * list->capacity : 64;
    old_entry *at = realloc(list->at, larger * sizeof *at);
    if (!at) return;
    list->at = at, list->capacity = larger;
  }
  list->at[list->count++] = entry;
}

static void list_dir(old_list *list, const char *path) {
  DIR *dir = opendir(path);
  if (!dir) return;
  for (struct dirent *item; (item = readdir(dir));) {
    if (item->d_name[0] != '.') note_entry(list, path, item->d_name);
  }
  closedir(dir);
}

/* With the lock held. Other processes may delete the same files: that is no error. */
static void sweep(host_cache *cache) {
  old_list list = {0};
  char path[CACHE_PATH];
  for (unsigned first = 0; first < 256; first++) {
    const uint8_t key[32] = {(uint8_t)first};
    entry_dir(cache, key, path);
    list_dir(&list, path);
  }
  cache->swept = true;
  cache->bytes = 0;
  for (size_t i = 0; i < list.count; i++) cache->bytes += list.at[i].bytes;
  if (list.count) qsort(list.at, list.count, sizeof *list.at, older_first);
  uint64_t goal = cache->bytes > cache->max_bytes ? cache->max_bytes / 4 * 3 : UINT64_MAX;
  for (size_t i = 0; i < list.count && cache->bytes > goal; i++) {
    unlink(list.at[i].path);
    cache->bytes -= list.at[i].bytes;
    cache->stats.evicted++;
  }
  free(list.at);
}

/* ---- open, close ---- */

snt_result host_cache_open(const char *dir, uint64_t max_bytes, host_cache **out, snt_diag *diag) {
  host_cache *cache = calloc(1, sizeof *cache);
  if (!cache) return host_fail(diag, SNT_E_HOST_MEM, "cache", "out of memory");
  cache->max_bytes = max_bytes;
  bool fits = strlen(dir) < sizeof cache->dir;
  if (fits) memcpy(cache->dir, dir, strlen(dir) + 1);
  snt_result result = fits ? host_make_dirs(dir, diag) : host_fail(diag, SNT_E_ARG, "cache", "%s: too long a name", dir);
  if (result != SNT_OK) {
    free(cache);
    return result;
  }
  pthread_mutex_init(&cache->lock, NULL);
  *out = cache;
  return SNT_OK;
}

void host_cache_close(host_cache *cache) {
  if (!cache) return;
  pthread_mutex_destroy(&cache->lock);
  free(cache);
}

host_cache_stats host_cache_statistics(const host_cache *cache) { return cache->stats; }
