/* Runs a fuzzer where libFuzzer is not: the corpus as it is, then mutations of it, in a child process, so that what ends or hangs it is
   told with its number and kept as a file.
     fuzz_<name> [--count N] [--seconds S] [--seed S] [--at I] [--whole] FILE|FOLDER...
   --seconds: as many mutations as fit; --at I: that mutation alone, in this process; --whole: the files alone, however few are accepted. Output: TAP. */
#include "tests/fuzz/fuzz.h"
#include "tests/tap.h"
#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FILES = 1 << 15, MOST_SECONDS = 20 /* of processor time an input */ };
typedef struct file {
  uint8_t *data;
  size_t size;
  char name[256];
} file;
static file files[MOST_FILES];
static uint32_t file_count;
/* What the child says: the input it is at, counted from 1 (the corpus comes first), and what it accepted of the corpus and of mutations. */
typedef struct progress {
  uint64_t at, of_corpus, of_mutations;
} progress;

static void add_file(const char *path) {
  static uint8_t data[FUZZ_ROOM];
  FILE *f = fopen(path, "rb");
  const size_t size = f ? fread(data, 1, sizeof data, f) : 0;
  if (f) fclose(f);
  if (!f || size == sizeof data || file_count == MOST_FILES) return;
  file *to = &files[file_count];
  to->data = malloc(size + 1);
  if (!to->data) return;
  memcpy(to->data, data, size);
  to->size = size;
  snprintf(to->name, sizeof to->name, "%s", path);
  file_count++;
}

static int by_name(const void *a, const void *b) { return strcmp(((const file *)a)->name, ((const file *)b)->name); }

static void add(const char *path) {
  struct stat status;
  DIR *dir = stat(path, &status) == 0 && S_ISDIR(status.st_mode) ? opendir(path) : NULL;
  const uint32_t first = file_count;
  if (!dir) {
    add_file(path);
    return;
  }
  for (struct dirent *item; (item = readdir(dir));) {
    char name[512];
    if (item->d_name[0] != '.' && snprintf(name, sizeof name, "%s/%s", path, item->d_name) < (int)sizeof name) add_file(name);
  }
  closedir(dir);
  qsort(files + first, file_count - first, sizeof *files, by_name);
}

static size_t mutate(uint8_t *data, uint64_t number) {
  uint64_t state = (number + 1) * 0x9E3779B97F4A7C15u | 1;
  for (int i = 0; i < 4; i++) (void)fuzz_dice(&state, 2);
  const file *from = &files[fuzz_dice(&state, file_count)];
  size_t size = from->size;
  memcpy(data, from->data, size);
  data[size] = 0;
  for (uint32_t n = 1 + fuzz_dice(&state, 4); n; n--) {
    if (fuzz.words) fuzz_mutate_text((char *)data, FUZZ_ROOM, fuzz.words, fuzz.word_count, &state);
    else size = fuzz_mutate_bytes(data, size, &state);
  }
  return fuzz.words ? strlen((char *)data) : size;
}

/* In memory of its own length, so that a read past its end is seen. */
static void run(const uint8_t *data, size_t size) {
  const struct itimerval end = {.it_value.tv_sec = MOST_SECONDS};
  uint8_t *copy = malloc(size ? size : 1);
  if (!copy) abort();
  memcpy(copy, data, size);
  setitimer(ITIMER_PROF, &end, NULL);
  (void)LLVMFuzzerTestOneInput(copy, size);
  free(copy);
}

typedef struct plan {
  uint64_t seed, count;
  double seconds;
  bool whole; /* the files, and no mutations */
} plan;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void work(const plan *p, progress *said) {
  static uint8_t data[FUZZ_ROOM];
  const double end = now() + p->seconds;
  for (uint32_t i = 0; i < file_count; i++) {
    said->at++;
    run(files[i].data, files[i].size);
  }
  said->of_corpus = fuzz_accepted();
  for (uint64_t i = 0; p->seconds > 0 ? now() < end : i < p->count; i++) {
    said->at++;
    run(data, mutate(data, p->seed + i));
  }
  said->of_mutations = fuzz_accepted() - said->of_corpus;
}

static void keep(const plan *p, uint64_t at) {
  static uint8_t data[FUZZ_ROOM];
  char path[128];
  if (at <= file_count) {
    tap_diag("the input was %s", files[at - 1].name);
    return;
  }
  const uint64_t number = p->seed + at - 1 - file_count;
  const size_t size = mutate(data, number);
  snprintf(path, sizeof path, "fuzz-%s-%llu", fuzz.name, (unsigned long long)number);
  FILE *f = fopen(path, "wb");
  const bool written = f && fwrite(data, 1, size, f) == size;
  if (f) fclose(f);
  tap_diag("mutation %llu, --at repeats it; %s %s", (unsigned long long)number, written ? "written to" : "cannot write", path);
}

static void judge(const plan *p) {
  progress *said = mmap(NULL, sizeof *said, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int status = 0;
  if (said == MAP_FAILED) {
    tap_result(false, __FILE__, __LINE__, "memory that is shared with a child");
    return;
  }
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    work(p, said);
    exit(0); /* a leak is told here */
  }
  if (child < 0 || waitpid(child, &status, 0) != child) status = 1;
  const unsigned long long mutations = said->at > file_count ? said->at - file_count : 0;
  const bool fine = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  tap_result(fine, __FILE__, __LINE__, "%s: %u files and %llu mutations, seed %llu", fuzz.name, file_count, mutations,
             (unsigned long long)p->seed);
  if (fine && !p->whole) {
    tap_result(said->of_corpus * 100 >= (uint64_t)file_count * fuzz.least_of_corpus, __FILE__, __LINE__, "%llu of the files are accepted",
               (unsigned long long)said->of_corpus);
    tap_result(said->of_mutations * 100 >= mutations * fuzz.least_of_mutations, __FILE__, __LINE__, "%llu of the mutations are accepted",
               (unsigned long long)said->of_mutations);
  } else if (!fine) {
    if (WIFSIGNALED(status)) tap_diag("signal %d%s", WTERMSIG(status), WTERMSIG(status) == SIGPROF ? ": an input takes too long" : "");
    keep(p, said->at);
  }
  munmap(said, sizeof *said);
}

int main(int argc, char **argv) {
  plan p = {.seed = 1, .count = 1000};
  const char *alone = NULL;
  for (int i = 1; i < argc; i++) {
    const char *value = argv[i + 1 < argc ? i + 1 : i];
    if (!strcmp(argv[i], "--count")) p.count = strtoull(value, NULL, 10), i++;
    else if (!strcmp(argv[i], "--seconds")) p.seconds = atof(value), i++;
    else if (!strcmp(argv[i], "--seed")) p.seed = strtoull(value, NULL, 10), i++;
    else if (!strcmp(argv[i], "--at")) alone = value, i++;
    else if (!strcmp(argv[i], "--whole")) p.whole = true, p.count = 0;
    else add(argv[i]);
  }
  if (!tap_result(file_count > 0, __FILE__, __LINE__, "a corpus")) return tap_done();
  if (alone) {
    static uint8_t data[FUZZ_ROOM];
    run(data, mutate(data, strtoull(alone, NULL, 10)));
    tap_result(true, __FILE__, __LINE__, "mutation %s", alone);
  } else {
    judge(&p);
  }
  for (uint32_t i = 0; i < file_count; i++) free(files[i].data);
  return tap_done();
}
