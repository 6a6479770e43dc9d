/* sinter onnx-test: finds the test folders, runs each in a child process, so that a crash or a hang is one failed test, and prints TAP in
   the folders' order. */
#include "tools/sinter/onnx_test.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_JOBS = 64, DEFAULT_TIMEOUT = 120, LINE = 700 };
typedef struct job {
  pid_t pid;
  int from; /* the child's line */
  bool done, passed;
  char *line;
} job;
typedef struct suite {
  char **folders;
  job *jobs;
  uint32_t count, room, started, printed, passed, running;
  bool full; /* out of memory */
} suite;

/* ---- finding ---- */
static bool add_folder(suite *s, const char *path) {
  if (s->count == s->room) {
    char **more = realloc(s->folders, (s->room * 2 + 64) * sizeof *more);
    if (!more) return s->full = true, false;
    s->folders = more;
    s->room = s->room * 2 + 64;
  }
  s->folders[s->count] = strdup(path);
  s->full = !s->folders[s->count++];
  return !s->full;
}

static bool find_folders(suite *s, const char *path, uint32_t depth) {
  char inner[4096];
  struct stat found;
  snprintf(inner, sizeof inner, "%s/model.onnx", path);
  if (!stat(inner, &found)) return add_folder(s, path);
  DIR *d = depth < 8 ? opendir(path) : NULL;
  bool good = d || depth;
  for (struct dirent *e = d ? readdir(d) : NULL; e && good; e = readdir(d)) {
    if (e->d_name[0] == '.' || snprintf(inner, sizeof inner, "%s/%s", path, e->d_name) >= (int)sizeof inner) continue;
    if (!stat(inner, &found) && S_ISDIR(found.st_mode)) good = find_folders(s, inner, depth + 1);
  }
  if (d) closedir(d);
  return good;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* ---- running ---- */
static void run_child(const onnx_case_info *info, const char *folder, int to) {
  char line[LINE] = "";
  alarm(info->options->timeout ? info->options->timeout : DEFAULT_TIMEOUT);
  const bool passed = onnx_case_run(info, folder, line, sizeof line);
  const size_t length = strlen(line);
  const bool written = write(to, line, length) == (ssize_t)length;
  _exit(passed && written ? 0 : 1);
}

static bool start_job(suite *s, const onnx_case_info *info) {
  int ends[2];
  job *j = &s->jobs[s->started];
  fflush(stdout);
  if (pipe(ends)) return false;
  j->pid = fork();
  if (j->pid == 0) {
    close(ends[0]);
    run_child(info, s->folders[s->started], ends[1]);
  }
  close(ends[1]);
  j->from = ends[0];
  s->started++;
  s->running++;
  return j->pid > 0;
}

static void end_job(suite *s, pid_t pid, int status) {
  char line[LINE] = "";
  uint32_t i = 0;
  while (i < s->started && (s->jobs[i].pid != pid || s->jobs[i].done)) i++;
  if (i == s->started) return;
  job *j = &s->jobs[i];
  ssize_t length = read(j->from, line, sizeof line - 1);
  line[length > 0 ? length : 0] = 0;
  close(j->from);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) snprintf(line, sizeof line, "timed out");
  else if (WIFSIGNALED(status)) snprintf(line, sizeof line, "crashed: %s", strsignal(WTERMSIG(status)));
  else if (WEXITSTATUS(status) > 1) snprintf(line, sizeof line, "the process ended with status %d", WEXITSTATUS(status));
  j->done = true;
  j->passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  j->line = strdup(line);
  s->running--;
}

static void print_done(suite *s) {
  for (; s->printed < s->started && s->jobs[s->printed].done; s->printed++) {
    const job *j = &s->jobs[s->printed];
    const char *name = strrchr(s->folders[s->printed], '/');
    const char *line = j->line ? j->line : "";
    printf("%sok %u - %s\n", j->passed ? "" : "not ", s->printed + 1, name ? name + 1 : s->folders[s->printed]);
    if (line[0]) printf("# %s\n", line);
    s->passed += j->passed;
  }
  fflush(stdout);
}

static bool run_suite(suite *s, const onnx_case_info *info) {
  uint32_t jobs = info->options->jobs ? info->options->jobs : 1;
  if (jobs > MAX_JOBS) jobs = MAX_JOBS;
  printf("TAP version 13\n1..%u\n", s->count);
  while (s->printed < s->count) {
    int status;
    while (s->running < jobs && s->started < s->count)
      if (!start_job(s, info)) return false;
    const pid_t pid = waitpid(-1, &status, 0);
    if (pid < 0 && errno != EINTR) return false;
    if (pid > 0) end_job(s, pid, status);
    print_done(s);
  }
  printf("# %u of %u passed\n", s->passed, s->count);
  return true;
}

static void free_suite(suite *s) {
  for (uint32_t i = 0; i < s->count; i++) {
    free(s->folders[i]);
    if (s->jobs) free(s->jobs[i].line);
  }
  free(s->folders);
  free(s->jobs);
}

int command_onnx_test(const tool_options *options) {
  const onnx_case_info info = {options, options->rtol, options->atol};
  suite s = {0};
  bool good = options->path_count > 0;
  for (uint32_t i = 0; good && i < options->path_count; i++) good = find_folders(&s, options->paths[i], 0);
  if (good && s.count) {
    qsort(s.folders, s.count, sizeof *s.folders, by_name);
    s.jobs = calloc(s.count, sizeof *s.jobs);
    s.full = !s.jobs;
    good = s.jobs && run_suite(&s, &info);
  } else if (!s.full) {
    fprintf(stderr, "sinter: %s\n", options->path_count ? "no folder with a model.onnx is there:" : "no folder given");
    for (uint32_t i = 0; i < options->path_count; i++) fprintf(stderr, "sinter:   %s\n", options->paths[i]);
    good = false;
  }
  if (s.full) fprintf(stderr, "sinter: onnx-test: out of memory\n");
  const int code = s.full ? EXIT_FAILED : !good ? EXIT_USAGE : s.passed == s.count ? EXIT_GOOD : EXIT_FAILED;
  free_suite(&s);
  return code;
}
