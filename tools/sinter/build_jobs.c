/* Builds an exec's kernels and makes its constants several at a time. The library offers them as jobs and starts no thread itself: a host with a job system
   of its own hands snt_exec_run_job to that in the same way. PoCL compiles under one lock of the process; there other threads make constants, and processes
   help with kernels: each runs `sinter build` on the same model, and what one has compiled the others find in the driver's cache. */
#include "tools/sinter/tool.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
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
  for (uint32_t at; t->result == SNT_OK && (at = atomic_fetch_add(&w->next, 1)) < w->count;) {
    t->result = snt_exec_run_job(w->exec, w->order[at].job, &t->diag);
    sched_yield(); /* at a real-time priority a driver's thread that is bound to this processor waits for it */
  }
  return NULL;
}

/* Threads beside this one: one that cannot be made leaves its share to the others. */
static uint32_t start_threads(build_work *work, build_thread *threads, uint32_t wanted) {
  uint32_t made = 0;
  for (; made < wanted; made++) {
    threads[made] = (build_thread){.work = work};
    if (pthread_create(&threads[made].id, NULL, run_jobs, &threads[made])) break;
  }
  return made;
}

/* This thread takes part until nothing is left. The first failure is told. */
static snt_result end_threads(tool_session *s, build_work *work, build_thread *threads, uint32_t count) {
  build_thread own = {.work = work};
  run_jobs(&own);
  for (uint32_t i = 0; i < count; i++) {
    pthread_join(threads[i].id, NULL);
    if (own.result == SNT_OK) own = threads[i];
  }
  if (own.result != SNT_OK) s->diag = own.diag;
  return own.result;
}

static snt_result run_threads(tool_session *s, build_work *work) {
  build_thread threads[MAX_THREADS];
  const uint32_t wanted = at_once(s, work->count), made = start_threads(work, threads, wanted ? wanted - 1 : 0);
  return end_threads(s, work, threads, made);
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
  if (o->accuracy_level) c->words[c->count++] = (char *)(uintptr_t) "--accuracy-level";
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

/* Other threads make constants while this one, and processes, build kernels. A process that helps builds kernels only. */
static snt_result run_apart(tool_session *s, build_work *kernels, build_work *constants, uint32_t flags) {
  build_thread threads[MAX_THREADS];
  const uint32_t wanted = s->options.share ? 0 : at_once(s, constants->count + 1) - 1, made = start_threads(constants, threads, wanted);
  const snt_result r = run_with_helpers(s, kernels, flags);
  if (s->options.share) return r;
  if (r != SNT_OK) atomic_store(&constants->next, constants->count);
  const snt_diag first = s->diag;
  const snt_result made_all = end_threads(s, constants, threads, made);
  if (r != SNT_OK) s->diag = first;
  return r == SNT_OK ? made_all : r;
}

/* Pipelines come first. */
static uint32_t order_jobs(const snt_exec *exec, build_order *order, uint32_t count) {
  uint32_t pipelines = 0;
  for (uint32_t i = 0; i < count; i++) {
    snt_job job = {.head = SNT_HEAD(job)};
    (void)snt_exec_job(exec, i, &job);
    order[i] = (build_order){i, job.code_bytes};
    pipelines += job.kind == SNT_JOB_PIPELINE;
  }
  if (pipelines) qsort(order, pipelines, sizeof *order, longest_first);
  return pipelines;
}

snt_result tool_prepare(tool_session *s, snt_exec *exec, uint32_t flags) {
  const uint32_t count = snt_exec_job_count(exec);
  build_order *order = calloc(count + 1, sizeof *order);
  if (!order) return SNT_E_HOST_MEM;
  const uint32_t pipelines = order_jobs(exec, order, count);
  build_work all = {.exec = exec, .order = order, .count = count}, kernels = {.exec = exec, .order = order, .count = pipelines},
             constants = {.exec = exec, .order = order + pipelines, .count = count - pipelines};
  const snt_result r = builds_one_by_one(s) ? run_apart(s, &kernels, &constants, flags) : run_threads(s, &all);
  free(order);
  return r;
}

uint32_t tool_count_pipelines(const snt_exec *exec, uint32_t *cached) {
  uint32_t count = 0;
  *cached = 0;
  for (uint32_t i = 0; i < snt_exec_job_count(exec); i++) {
    snt_job job = {.head = SNT_HEAD(job)};
    if (snt_exec_job(exec, i, &job) != SNT_OK || job.kind != SNT_JOB_PIPELINE) continue;
    count++;
    *cached += job.from_cache;
  }
  return count;
}
