/* The file cache under torture: every byte turned, every length cut, threads and processes that write at once, a bound that holds. A damaged entry is a miss,
   never a wrong answer. */
#include "tests/tap.h"
#include "tools/host/host.h"
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64];

static void make_key(uint8_t key[32], uint32_t number) {
  for (int i = 0; i < 32; i++) key[i] = (uint8_t)(number * 31 + (uint32_t)i * (number + 7));
  memcpy(key, &number, sizeof number);
}

static size_t make_payload(uint8_t *at, uint32_t number, size_t size) {
  for (size_t i = 0; i < size; i++) at[i] = (uint8_t)(number + i * 13 + i / 256);
  return size;
}

/* 1: the right bytes, 0: a miss, -1: wrong bytes. */
static int look_up(host_cache *cache, uint32_t number, size_t size) {
  uint8_t key[32], want[4096], got[4096];
  size_t have = sizeof got;
  make_key(key, number);
  if (host_cache_get(cache, key, got, &have) != SNT_OK) return 0;
  make_payload(want, number, size);
  return have == size && memcmp(got, want, size) == 0 ? 1 : -1;
}

static void store(host_cache *cache, uint32_t number, size_t size) {
  uint8_t key[32], payload[4096];
  make_key(key, number);
  host_cache_set(cache, key, payload, make_payload(payload, number, size));
}

static void path_of(uint32_t number, char path[256]) {
  uint8_t key[32];
  make_key(key, number);
  int length = snprintf(path, 256, "%s/%02x/", root, key[0]);
  for (int i = 1; i < 32; i++) length += snprintf(path + length, 256 - (size_t)length, "%02x", key[i]);
}

static void check_plain(void) {
  host_cache *cache = NULL;
  uint8_t key[32], got[100];
  size_t size = 0;
  tap_is_int(host_cache_open(root, 1 << 20, &cache, NULL), SNT_OK, "a cache opens in a new folder");
  tap_is_int(look_up(cache, 1, 100), 0, "what was not stored is a miss");
  store(cache, 1, 100), store(cache, 2, 0), store(cache, 3, 4096);
  tap_is_int(look_up(cache, 1, 100), 1, "what was stored is found");
  tap_is_int(look_up(cache, 2, 0), 1, "nothing, too");
  tap_is_int(look_up(cache, 3, 4096), 1, "and more");
  make_key(key, 1);
  tap_is_int(host_cache_get(cache, key, NULL, &size), SNT_INCOMPLETE, "its size can be asked");
  tap_is_int(size, 100, "and is right");
  size = 99;
  tap_is_int(host_cache_get(cache, key, got, &size), SNT_INCOMPLETE, "too small a place is said");
  host_cache_close(cache);
  tap_is_int(host_cache_open(root, 1 << 20, &cache, NULL), SNT_OK, "it opens again");
  tap_is_int(look_up(cache, 3, 4096), 1, "with what it had");
  host_cache_close(cache);
}

static void check_damage(void) {
  enum { SIZE = 64 };
  host_cache *cache = NULL;
  char path[256];
  void *file = NULL;
  size_t length = 0, wrong = 0, hits = 0;
  host_cache_open(root, 1 << 20, &cache, NULL);
  store(cache, 9, SIZE);
  path_of(9, path);
  if (!tap_is_int(host_read_file(path, &file, &length, NULL), SNT_OK, "an entry is a file")) return;
  for (size_t i = 0; i < length; i++) {
    ((uint8_t *)file)[i] ^= 0x40;
    host_write_file(path, file, length, NULL);
    int seen = look_up(cache, 9, SIZE);
    wrong += seen<0, hits += seen> 0;
    ((uint8_t *)file)[i] ^= 0x40;
  }
  tap_ok(wrong == 0 && hits == 0, "each byte turned is a miss (%zu wrong, %zu hits)", wrong, hits);
  for (size_t i = 0; i < length; i++) {
    host_write_file(path, file, i, NULL);
    int seen = look_up(cache, 9, SIZE);
    wrong += seen<0, hits += seen> 0;
  }
  tap_ok(wrong == 0 && hits == 0, "each length cut is a miss (%zu wrong, %zu hits)", wrong, hits);
  tap_is_int(host_cache_statistics(cache).damaged, 2 * length, "all were seen to be damaged");
  char other[256];
  path_of(10, other);
  store(cache, 10, SIZE);
  host_write_file(other, file, length, NULL);
  tap_is_int(look_up(cache, 10, SIZE), 0, "another key's entry is a miss");
  host_write_file(path, file, length, NULL);
  tap_is_int(look_up(cache, 9, SIZE), 1, "the whole file is found");
  free(file);
  host_cache_close(cache);
}

static void *write_and_read(void *user) {
  host_cache *cache = user;
  intptr_t wrong = 0;
  for (uint32_t i = 0; i < 200; i++) {
    store(cache, 100 + i % 5, 1000);
    wrong += look_up(cache, 100 + (i + 2) % 5, 1000) < 0;
  }
  return (void *)wrong;
}

static void check_at_once(void) {
  host_cache *cache = NULL;
  pthread_t threads[4];
  intptr_t wrong = 0;
  host_cache_open(root, 1 << 20, &cache, NULL);
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, write_and_read, cache);
  for (int i = 0; i < 4; i++) {
    void *result;
    pthread_join(threads[i], &result);
    wrong += (intptr_t)result;
  }
  tap_is_int(wrong, 0, "threads that write the same keys never read a wrong entry");
  host_cache_close(cache);
}

/* The same with processes, each with a cache of its own in the folder, whose bound is so small that each also deletes what others write. */
static void check_processes(void) {
  enum { PROCESSES = 4 };
  pid_t children[PROCESSES];
  int wrong = 0, ended = 0;
  for (int i = 0; i < PROCESSES; i++) {
    fflush(stdout);
    children[i] = fork();
    if (children[i] == 0) {
      host_cache *cache = NULL;
      if (host_cache_open(root, 3000, &cache, NULL) != SNT_OK) _exit(2);
      const intptr_t seen = (intptr_t)write_and_read(cache);
      host_cache_close(cache);
      _exit(seen != 0);
    }
  }
  for (int i = 0; i < PROCESSES; i++) {
    int status = 0;
    ended += waitpid(children[i], &status, 0) == children[i] && WIFEXITED(status) && WEXITSTATUS(status) != 2;
    wrong += status != 0;
  }
  host_cache *cache = NULL;
  host_cache_open(root, 1 << 20, &cache, NULL);
  for (uint32_t i = 0; i < 5; i++) wrong += look_up(cache, 100 + i, 1000) < 0;
  store(cache, 100, 1000);
  tap_is_int(look_up(cache, 100, 1000), 1, "behind them entries are stored and found");
  host_cache_close(cache);
  tap_ok(ended == PROCESSES && wrong == 0, "processes that write the same keys and delete each other's entries never read a wrong one");
}

/* Processes that are killed while they write. */
static void check_killed(void) {
  int wrong = 0;
  for (uint32_t round = 0; round < 30; round++) {
    pid_t child = fork();
    if (child == 0) {
      host_cache *cache = NULL;
      if (host_cache_open(root, 1 << 20, &cache, NULL) != SNT_OK) _exit(1);
      for (uint32_t i = 0;; i++) store(cache, 200 + i % 7, 4000);
    }
    struct timespec pause = {0, 1000000 + 200000 * (long)round};
    nanosleep(&pause, NULL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    host_cache *cache = NULL;
    host_cache_open(root, 1 << 20, &cache, NULL);
    for (uint32_t i = 0; i < 7; i++) wrong += look_up(cache, 200 + i, 4000) < 0;
    host_cache_close(cache);
  }
  tap_is_int(wrong, 0, "writers that were killed left no wrong entry");
}

static uint64_t bytes_under(const char *path) {
  uint64_t total = 0;
  DIR *dir = opendir(path);
  for (struct dirent *item; dir && (item = readdir(dir));) {
    char name[512];
    struct stat status;
    if (item->d_name[0] == '.' || snprintf(name, sizeof name, "%s/%s", path, item->d_name) >= (int)sizeof name) continue;
    if (stat(name, &status) == 0) total += S_ISDIR(status.st_mode) ? bytes_under(name) : (uint64_t)status.st_size;
  }
  if (dir) closedir(dir);
  return total;
}

static void check_bound(void) { /* in a folder without what killed writers left */
  host_cache *cache = NULL;
  strcat(root, "/bound");
  host_cache_open(root, 100000, &cache, NULL);
  for (uint32_t i = 0; i < 100; i++) store(cache, 1000 + i, 4000);
  tap_ok(bytes_under(root) <= 105000, "400 kB stored in a cache of 100 kB leave %llu bytes", (unsigned long long)bytes_under(root));
  tap_ok(host_cache_statistics(cache).evicted > 0, "the others were given up");
  tap_is_int(look_up(cache, 1099, 4000), 1, "the last one is there");
  tap_is_int(look_up(cache, 1000, 4000), 0, "the first one is not");
  host_cache_close(cache);
}

/* A file that its writer never ends, as of one that is killed: nothing of it has a name. */
static void check_unended(void) {
  char path[96];
  host_output out;
  snprintf(path, sizeof path, "%s/unended", root);
  tap_is_int(host_begin_file(&out, path, NULL), SNT_OK, "a file is begun");
  fputs("half", out.file), fflush(out.file);
  if (out.nameless) tap_ok(access(path, F_OK) && access(out.temporary, F_OK), "and has no name until it is ended");
  else tap_skip("this file system has no files without names");
  fclose(out.file);
}

int main(void) {
  char command[96], template[] = "/tmp/snt-cache-XXXXXX";
  if (!mkdtemp(template)) return tap_skip_all("no temporary folder");
  snprintf(root, sizeof root, "%s/deep/cache", template);
  check_plain();
  check_damage();
  check_at_once();
  check_processes();
  check_killed();
  check_bound();
  check_unended();
  snprintf(command, sizeof command, "rm -rf %s", template);
  tap_is_int(system(command), 0, "and is gone");
  return tap_done();
}
