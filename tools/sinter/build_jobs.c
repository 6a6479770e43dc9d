/* Builds an exec's kernels several at a time. The library offers them as jobs and starts no thread itself: a host with a job system of its own
   hands snt_exec_run_job to that in the same way. PoCL compiles under one lock of the process; there processes help: each runs
   `sinter build` on the same model, and what one has compiled the others find in the driver's cache. */
#include "tools/sinter/tool.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  MAX_THREADS = 64,
  FEW_JOBS = 4,
  SLOW_NS = 30000000,
  MAX_PAIRS = 3 * TOOL_MAX_PORTS + TOOL_MAX_DIMS,
  MAX_WORDS = 25 + 2 * (MAX_PAIRS + TOOL_MAX_FUSE)
};
typedef struct build_order {
  uint32_t job, code_bytes;
} build_order;
typedef struct build_work {
  snt_exec *exec;
  build_order *order;
  uint32_t count;
  atomic_uint next;
} build_work;
typedef struct build_thread {
  pthread_t id;
  build_work *work;
  snt_result result;
  snt_diag diag;
} build_thread;

static uint32_t at_once(const tool_session *s, uint32_t jobs) {
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  uint32_t count = s->options.jobs ? s->options.jobs : processors > 0 ? (uint32_t)processors : 1;
  if (count > MAX_THREADS) count = MAX_THREADS;
  return count < jobs ? count : jobs;
}

/* ---- threads ---- */

static void *run_jobs(void *user) {
  build_thread *t = user;
  build_work *w = t->work;
  for (uint32_t at; t->result == SNT_OK && (at = atomic_fetch_add(&w->next, 1)) < w->count;)
    t->result = snt_exec_run_job(w->exec, w->order[at].job, &t->diag);
  return NULL;
}

/* The first thread is this one: a thread that cannot be made leaves its share to the others. */
static snt_result run_threads(tool_session *s, build_work *work) {
  build_thread threads[MAX_THREADS] = {{.work = work}};
  const uint32_t wanted = at_once(s, work->count);
  uint32_t made = 1;
  for (; made < wanted; made++) {
    threads[made] = (build_thread){.work = work};
    if (pthread_create(&threads[made].id, NULL, run_jobs, &threads[made])) break;
  }
  run_jobs(&threads[0]);
  for (uint32_t i = 1; i < made; i++) pthread_join(threads[i].id, NULL);
  for (uint32_t i = 0; i < made; i++) {
    if (threads[i].result == SNT_OK) continue;
    s->diag = threads[i].diag;
    return threads[i].result;
  }
  return SNT_OK;
}

/* ---- processes ---- */

typedef struct command_line {
  char *words[MAX_WORDS];
  char *pairs[MAX_PAIRS];
  uint32_t count, pair_count;
} command_line;

static void add_option(command_line *c, const char *name, const char *value) {
  if (!value) return;
  c->words[c->count++] = (char *)(uintptr_t)name;
  c->words[c->count++] = (char *)(uintptr_t)value;
}

static void add_pairs(command_line *c, const char *name, const tool_pair *pairs, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const size_t bytes = strlen(pairs[i].name) + strlen(pairs[i].value) + 2;
    char *text = c->pairs[c->pair_count++] = malloc(bytes);
    if (text) snprintf(text, bytes, "%s=%s", pairs[i].name, pairs[i].value);
    add_option(c, name, text);
  }
}

/* What decides the kernels, and nothing else. */
static void write_command(const tool_session *s, uint32_t flags, const char *share, command_line *c) {
  const tool_options *o = &s->options;
  c->words[c->count++] = (char *)(uintptr_t) "sinter";
  c->words[c->count++] = (char *)(uintptr_t) "build";
  c->words[c->count++] = (char *)(uintptr_t)o->model;
  add_option(c, "--share", share);
  add_option(c, "--device", o->device);
  add_option(c, "--profile", o->profile);
  add_option(c, "--mask", o->mask);
  add_option(c, "--numerics", o->numerics);
  add_option(c, "--weights", o->weights);
  add_option(c, "--tune", o->tune);
  add_pairs(c, "--dim", o->dims, o->dim_count);
  add_pairs(c, "--fix", o->fixed, o->fixed_count);
  add_pairs(c, "--input", o->inputs, o->input_count);
  if (o->open) c->words[c->count++] = (char *)(uintptr_t) "--open";
  add_pairs(c, "--image", o->images, o->image_count);
  for (uint32_t i = 0; i < o->fuse_count; i++) add_option(c, "--fuse", o->fuse[i]);
  if (flags & SNT_COMPILE_UNFUSED) c->words[c->count++] = (char *)(uintptr_t) "--unfused";
  if (flags & SNT_COMPILE_UNFUSED_NODES) c->words[c->count++] = (char *)(uintptr_t) "--unfused=nodes";
  if (flags & SNT_COMPILE_NO_REWRITES) c->words[c->count++] = (char *)(uintptr_t) "--no-rewrites";
}

static void start_helpers(tool_session *s, uint32_t flags, uint32_t wanted) {
  static command_line lines[TOOL_MAX_HELPERS]; /* made before the fork: the child only replaces itself */
  char share[TOOL_MAX_HELPERS][32];
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (uint32_t i = 0; i < wanted && s->helper_count < TOOL_MAX_HELPERS; i++) {
    snprintf(share[i], sizeof share[i], "%u/%u", i + 1, wanted + 1);
    memset(&lines[i], 0, sizeof lines[i]);
    write_command(s, flags, share[i], &lines[i]);
    const pid_t child = fork();
    if (child == 0) {
      (void)dup2(nowhere, 1);
      (void)dup2(nowhere, 2);
      execv("/proc/self/exe", lines[i].words);
      _exit(127);
    }
    if (child > 0) s->helpers[s->helper_count++] = child;
    for (uint32_t p = 0; p < lines[i].pair_count; p++) free(lines[i].pairs[p]);
  }
  if (nowhere >= 0) close(nowhere);
}

void tool_end_helpers(tool_session *s) {
  for (uint32_t i = 0; i < s->helper_count; i++) (void)waitpid(s->helpers[i], NULL, 0);
  s->helper_count = 0;
}

/* Share `own` of `of`: its own jobs in order, then the others' backwards, which their owners come to last. */
static void order_share(build_order *order, uint32_t count, uint32_t own, uint32_t of) {
  build_order *from = malloc((count + 1) * sizeof *from);
  uint32_t to = 0;
  if (!from) return; /* any order will do */
  memcpy(from, order, count * sizeof *from);
  for (uint32_t i = own; i < count; i += of) order[to++] = from[i];
  for (uint32_t i = count; i-- > 0;)
    if (i % of != own) order[to++] = from[i];
  free(from);
}

/* Helpers start when the first kernels turn out not to be in the cache and slow to build. */
static snt_result run_with_helpers(tool_session *s, build_work *work, uint32_t flags) {
  unsigned own = 0, of = at_once(s, work->count);
  if (of > TOOL_MAX_HELPERS + 1) of = TOOL_MAX_HELPERS + 1;
  const bool helping = s->options.share != NULL;
  if (helping && (sscanf(s->options.share, "%u/%u", &own, &of) != 2 || own >= of))
    return host_fail(&s->diag, SNT_E_ARG, "share", "expected I/N, got \"%s\"", s->options.share);
  bool waiting = !helping && of > 1;
  order_share(work->order, work->count, own, of);
  snt_result r = SNT_OK;
  for (uint32_t i = 0; r == SNT_OK && i < work->count; i++) {
    snt_job job = {.head = SNT_HEAD(job)};
    r = snt_exec_run_job(work->exec, work->order[i].job, &s->diag);
    (void)snt_exec_job(work->exec, work->order[i].job, &job);
    if (!waiting || r != SNT_OK || job.from_cache || job.compile_ns < SLOW_NS || work->count - i < FEW_JOBS) continue;
    start_helpers(s, flags, of - 1);
    waiting = false;
  }
  return r;
}

/* ---- entry ---- */

/* Long ones first, so that nobody is left with one at the end; code is as long as it takes to compile, nearly. */
static int longest_first(const void *a, const void *b) {
  const build_order *x = a, *y = b;
  if (x->code_bytes != y->code_bytes) return x->code_bytes < y->code_bytes ? 1 : -1;
  return (x->job > y->job) - (x->job < y->job);
}

static bool builds_one_by_one(const tool_session *s) {
  snt_device_info info = {.head = SNT_HEAD(device_info)};
  return snt_device_get_info(s->device, &info) == SNT_OK && !strncmp(info.driver, "pocl ", 5);
}

snt_result tool_prepare(tool_session *s, snt_exec *exec, uint32_t flags) {
  build_work work = {.exec = exec, .count = snt_exec_job_count(exec)};
  work.order = calloc(work.count + 1, sizeof *work.order);
  if (!work.order) return SNT_E_HOST_MEM;
  for (uint32_t i = 0; i < work.count; i++) {
    snt_job job = {.head = SNT_HEAD(job)};
    (void)snt_exec_job(exec, i, &job);
    work.order[i] = (build_order){i, job.code_bytes};
  }
  if (work.count) qsort(work.order, work.count, sizeof *work.order, longest_first);
  const snt_result r = builds_one_by_one(s) ? run_with_helpers(s, &work, flags) : run_threads(s, &work);
  free(work.order);
  return r == SNT_OK ? snt_exec_prepare(exec, &s->diag) : r;
}
