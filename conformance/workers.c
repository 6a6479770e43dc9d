/* Cases in child processes: a crash, a hang or a lost device costs one case and one child. The parent never loads a driver. Each child is told a
   case number at a time through one pipe and answers through another; a failure is tried again in a new child, and is flaky if it then passes. */
#include "conformance/conform.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_JOBS = 64, CASES_A_CHILD = 512 };
typedef struct opened { /* a child's first words */
  snt_result result;
  snt_diag diag;
  snt_device_info info;
  char profile[CONFORM_PROFILE];
} opened;
typedef struct worker {
  pid_t pid;
  int to, from;
  volatile uint8_t *phase; /* shared with the child */
  uint32_t index, done;
  bool greeted, busy, again;
  double started;        /* by the pool's own clock */
  uint8_t seen;          /* the phase in which `started` is */
  conform_verdict first; /* of the case that is tried again */
} worker;
typedef struct pool {
  const conform_run *run;
  worker workers[MAX_JOBS];
  uint32_t next, step, reported;
  double start, watch, last; /* watch: time in which this process ran, last: when it last looked */
  bool told_device, failed;
  snt_diag *diag;
} pool;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The clock of whoever waits: a pause in which this process did not run either (stopped, suspended, starved) is no delay of a child's. */
static void watch_time(pool *p) {
  const double most = 1, at = now(), passed = at - p->last; /* five waits */
  p->watch += passed < most ? passed : most;
  p->last = at;
}

static bool send_all(int to, const void *data, size_t size) {
  const char *at = data;
  while (size) {
    const ssize_t n = write(to, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n, size -= (size_t)n;
  }
  return true;
}

static bool receive_all(int from, void *data, size_t size) {
  char *at = data;
  while (size) {
    const ssize_t n = read(from, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n, size -= (size_t)n;
  }
  return true;
}

/* ---- the child ---- */

static _Noreturn void be_child(const conform_run *run, const worker *w, int from, int to) {
  conform_device device = {.phase = w->phase, .again = w->again, .ways = run->ways, .mask = run->mask};
  opened words = {.result = SNT_OK};
  uint32_t index;
  words.result = conform_open(run->selector, &device, &words.diag);
  words.info = device.info;
  size_t length = sizeof words.profile - 1;
  if (words.result != SNT_OK || snt_profile_print(device.profile, words.profile, &length) != SNT_OK) words.profile[0] = 0;
  bool good = send_all(to, &words, sizeof words) && words.result == SNT_OK;
  while (good && receive_all(from, &index, sizeof index)) {
    conform_verdict verdict;
    const conform_case *c = &run->list->at[index];
    conform_judge(&device, c, conform_case_seed(c, run->seed), &verdict);
    good = send_all(to, &verdict, sizeof verdict);
  }
  _exit(0); /* drivers' exit handlers are not what is tested */
}

static bool start_child(pool *p, worker *w) {
  int down[2], up[2];
  if (pipe(down)) return false;
  if (pipe(up)) {
    close(down[0]), close(down[1]);
    return false;
  }
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    for (uint32_t i = 0; i < p->run->jobs; i++)
      if (p->workers[i].pid) close(p->workers[i].to), close(p->workers[i].from);
    close(down[1]), close(up[0]);
    be_child(p->run, w, down[0], up[1]);
  }
  close(down[0]), close(up[1]);
  if (pid < 0) {
    close(down[1]), close(up[0]);
    return false;
  }
  w->pid = pid, w->to = down[1], w->from = up[0], w->done = 0, w->greeted = false, w->started = p->watch;
  return true;
}

/* Gives the status of one that had ended by itself. */
static int end_child(worker *w) {
  int status = 0;
  if (!w->pid) return status;
  kill(w->pid, SIGKILL);
  close(w->to), close(w->from);
  while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR) {}
  w->pid = 0;
  return status;
}

/* ---- the parent ---- */

static bool is_over(const pool *p) { return p->failed || (p->run->seconds > 0 && now() - p->start > p->run->seconds); }

static void tell(pool *p, worker *w, const conform_verdict *v) {
  w->busy = w->again = false;
  p->reported++;
  p->failed |= p->run->stop && (v->result == CONFORM_FAIL || v->result == CONFORM_CRASH || v->result == CONFORM_TIMEOUT);
  p->run->done(p->run->user, &p->run->list->at[w->index], v);
}

static void settle(pool *p, worker *w, conform_verdict *v) {
  const bool bad = v->result == CONFORM_FAIL || v->result == CONFORM_CRASH;
  if (w->again && !bad && v->result != CONFORM_TIMEOUT) {
    *v = w->first;
    v->result = CONFORM_FLAKY;
  } else if (bad && !w->again) {
    w->first = *v, w->again = true;
    end_child(w);
    return;
  }
  tell(p, w, v);
  if (bad) end_child(w); /* it may have lost its device */
}

static void give_up(pool *p, worker *w, conform_result result, const char *text) {
  conform_verdict v = {.result = result};
  snprintf(v.detail, sizeof v.detail, "%s", text);
  end_child(w);
  settle(p, w, &v);
}

/* Says how and at what a process ended that was not told to. */
static void end_crashed(pool *p, worker *w, const char *when) {
  char text[160];
  const uint8_t phase = w->phase ? *w->phase : PHASE_COUNT;
  const int status = end_child(w), number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  snprintf(text, sizeof text, "the process ended%s by %s %d, at %s", when, WIFSIGNALED(status) ? "signal" : "exit", number,
           phase < PHASE_COUNT ? conform_phase_names[phase] : "no step");
  give_up(p, w, CONFORM_CRASH, text);
}

/* A compiler may take its time, and each phase of a case has its own. */
static bool is_late(const pool *p, worker *w) {
  const uint8_t phase = w->phase ? *w->phase : PHASE_COUNT;
  if (phase != w->seen) w->seen = phase, w->started = p->watch;
  return p->watch - w->started > (phase <= PHASE_FIRST && w->greeted ? p->run->compile_seconds : p->run->case_seconds);
}

/* Says what took too long: only a driver that compiles for minutes is no news about the numbers. */
static void end_late(pool *p, worker *w) {
  char text[160];
  const uint8_t phase = w->phase ? *w->phase : PHASE_COUNT;
  snprintf(text, sizeof text, "%s: no answer in %.0f s; the process was ended", phase < PHASE_COUNT ? conform_phase_names[phase] : "time",
           p->watch - w->started);
  give_up(p, w, CONFORM_TIMEOUT, text);
}

static bool give_case(pool *p, worker *w) {
  if (!w->again) {
    if (p->next >= p->run->list->count || is_over(p)) return true;
    w->index = p->next, p->next += p->step;
  }
  w->busy = true, w->started = p->watch, w->done++;
  return send_all(w->to, &w->index, sizeof w->index);
}

/* Words from a child: the device at first, then verdicts. False: the device does not open. */
static bool hear(pool *p, worker *w) {
  if (!w->greeted) {
    opened words;
    if (!receive_all(w->from, &words, sizeof words)) {
      words = (opened){.result = SNT_E_DEVICE_LOST};
      snprintf(words.diag.text, sizeof words.diag.text, "opening %s ended the process", p->run->selector);
    }
    if (words.result != SNT_OK) {
      *p->diag = words.diag;
      return false;
    }
    if (!p->told_device) p->run->device(p->run->user, &words.info, words.profile);
    p->told_device = w->greeted = true;
    w->busy = false;
    return true;
  }
  conform_verdict v;
  if (receive_all(w->from, &v, sizeof v)) settle(p, w, &v);
  else end_crashed(p, w, "");
  return true;
}

/* An opening has as long as a step of a case that compiles. */
static bool opens_late(const pool *p, double seconds) {
  snprintf(p->diag->text, sizeof p->diag->text, "opening %s: no answer in %.0f s; the process was ended", p->run->selector, seconds);
  return true;
}

/* One turn for a worker without words: a child for it, a case for it. */
static bool feed(pool *p, worker *w) {
  const bool more = w->again || (p->next < p->run->list->count && !is_over(p));
  if (w->pid && !w->busy && w->greeted && w->done >= CASES_A_CHILD) end_child(w);
  if (!more && !w->busy) return true;
  if (!w->pid && !start_child(p, w)) return false;
  if (w->greeted && !w->busy && !give_case(p, w)) end_crashed(p, w, " between cases");
  return true;
}

static bool is_working(const pool *p) {
  for (uint32_t i = 0; i < p->run->jobs; i++)
    if (p->workers[i].busy || p->workers[i].again) return true;
  return p->next < p->run->list->count && !is_over(p);
}

static bool turn(pool *p) {
  struct pollfd waiting[MAX_JOBS];
  for (uint32_t i = 0; i < p->run->jobs; i++) {
    worker *w = &p->workers[i];
    if (!feed(p, w)) return false;
    waiting[i] = (struct pollfd){.fd = w->pid ? w->from : -1, .events = POLLIN};
  }
  if (poll(waiting, p->run->jobs, 200) < 0 && errno != EINTR) return false;
  watch_time(p);
  for (uint32_t i = 0; i < p->run->jobs; i++) {
    worker *w = &p->workers[i];
    if (w->pid && (waiting[i].revents & (POLLIN | POLLHUP)) && !hear(p, w)) return false;
    if (w->pid && !w->greeted && p->watch - w->started > p->run->compile_seconds) return !opens_late(p, p->run->compile_seconds);
    if (w->pid && w->busy && is_late(p, w)) end_late(p, w);
  }
  return true;
}

bool conform_opens(const char *selector, const char *mask, double seconds, snt_diag *diag) {
  const conform_run run = {.selector = selector, .mask = mask, .jobs = 1};
  pool p = {.run = &run, .told_device = true, .diag = diag};
  bool good = start_child(&p, p.workers);
  struct pollfd answer = {.fd = p.workers->from, .events = POLLIN};
  if (good) good = poll(&answer, 1, (int)(seconds * 1000)) ? hear(&p, p.workers) : !opens_late(&p, seconds);
  end_child(p.workers);
  return good;
}

uint32_t conform_run_all(const conform_run *run, snt_diag *diag) {
  pool p = {.run = run, .next = run->shard, .step = run->shards, .start = now(), .last = now(), .diag = diag};
  conform_run clamped = *run;
  if (clamped.jobs > MAX_JOBS) clamped.jobs = MAX_JOBS;
  p.run = &clamped;
  signal(SIGPIPE, SIG_IGN);
  bool good = true;
  uint8_t *phases = mmap(NULL, MAX_JOBS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (uint32_t i = 0; i < clamped.jobs && phases != MAP_FAILED; i++) p.workers[i].phase = &phases[i];
  while (good && is_working(&p)) good = turn(&p);
  for (uint32_t i = 0; i < clamped.jobs; i++) end_child(&p.workers[i]);
  if (phases != MAP_FAILED) munmap(phases, MAX_JOBS);
  if (!good) return UINT32_MAX;
  const uint32_t mine = run->list->count > run->shard ? (run->list->count - run->shard + run->shards - 1) / run->shards : 0;
  return mine - p.reported;
}
