/* A failing grown graph made as simple as it goes: its choices are cut and made smaller as long as a child process still fails in the same way.
   A child judges one sequence after the other and is replaced when it dies of one, or does not answer. */
#include "conformance/conform.h"
#include "tools/host/host.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TRIALS = 1500, TRIAL_MS = 20000, SECONDS = 120 };
typedef struct trial {
  uint32_t count, path;
  bool is_pair;
  uint64_t seed;
  uint8_t choices[CONFORM_CHOICES];
} trial;
typedef struct shrinker {
  const conform_run *run;
  pid_t pid;
  int to, from;
  uint32_t tried;
  time_t deadline;
  trial best;
  conform_verdict verdict; /* of the best */
} shrinker;

static bool graph_of(const trial *t, conform_graph *out) {
  return t->is_pair ? conform_pair(t->choices, t->count, out) : conform_grow(t->choices, t->count, out);
}

static _Noreturn void judge_trials(const conform_run *run, int from, int to) {
  conform_device device = {.ways = run->ways, .mask = run->mask};
  snt_diag diag = {0};
  trial t;
  if (conform_open(run->selector, &device, &diag) != SNT_OK) _exit(1);
  while (read(from, &t, sizeof t) == (ssize_t)sizeof t) {
    static conform_graph graph;
    conform_verdict v = {.result = CONFORM_SKIP};
    if (graph_of(&t, &graph)) conform_judge_graph(&device, &graph, t.path, t.seed, &v);
    if (write(to, &v, sizeof v) != (ssize_t)sizeof v) break;
  }
  _exit(0);
}

static void end_child(shrinker *s) {
  if (!s->pid) return;
  kill(s->pid, SIGKILL);
  close(s->to), close(s->from);
  while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR) {}
  s->pid = 0;
}

static bool start_child(shrinker *s) {
  int down[2], up[2];
  if (s->pid) return true;
  if (pipe(down) || pipe(up)) return false;
  fflush(NULL);
  s->pid = fork();
  if (s->pid == 0) close(down[1]), close(up[0]), judge_trials(s->run, down[0], up[1]);
  close(down[0]), close(up[1]);
  s->to = down[1], s->from = up[0];
  return s->pid > 0;
}

static void try_one(shrinker *s, const trial *t, conform_verdict *v) {
  *v = (conform_verdict){.result = CONFORM_CRASH, .detail = "the process ended"};
  if (!start_child(s)) return;
  s->tried++;
  struct pollfd answer = {.fd = s->from, .events = POLLIN};
  if (write(s->to, t, sizeof *t) == (ssize_t)sizeof *t && poll(&answer, 1, TRIAL_MS) == 0) {
    v->result = CONFORM_TIMEOUT;
    snprintf(v->detail, sizeof v->detail, "no answer in time; the process was ended");
    end_child(s);
  } else if (read(s->from, v, sizeof *v) != (ssize_t)sizeof *v) {
    end_child(s);
  }
}

/* Both wrong numbers, or the same first words of a message. */
static bool is_alike(const conform_verdict *a, const conform_verdict *b) {
  const bool numbers = strstr(a->detail, ": got ") != NULL;
  if (a->result != b->result || numbers != (strstr(b->detail, ": got ") != NULL)) return false;
  return numbers || strstr(a->detail, " differ") || !strncmp(a->detail, b->detail, 20);
}

/* Keeps the candidate if it fails like the first. */
static bool accept(shrinker *s, const trial *candidate) {
  conform_verdict v;
  if (s->tried >= TRIALS || time(NULL) > s->deadline) return false;
  try_one(s, candidate, &v);
  if (!is_alike(&s->verdict, &v)) return false;
  s->best = *candidate, s->verdict = v;
  return true;
}

static bool cut(shrinker *s, uint32_t length) {
  bool any = false;
  for (uint32_t at = s->best.count; at >= length && at > 0; at--) {
    trial less = s->best;
    if (at > less.count) continue;
    memmove(less.choices + at - length, less.choices + at, less.count - at);
    less.count -= length;
    any |= accept(s, &less);
  }
  return any;
}

static bool lower(shrinker *s) {
  bool any = false;
  for (uint32_t at = 0; at < s->best.count; at++)
    for (uint32_t to = 0; to < s->best.choices[at]; to = to ? 2 * to : 1) {
      trial less = s->best;
      less.choices[at] = (uint8_t)to;
      if (!accept(s, &less)) continue;
      any = true;
      break;
    }
  return any;
}

static void print_result(const shrinker *s, const char *id, const char *save) {
  static conform_graph graph;
  char path[4096];
  snt_diag diag = {0};
  if (!graph_of(&s->best, &graph)) return;
  printf("# %s shrunk to %u choices in %u trials: %s\n", id, s->best.count, s->tried, s->verdict.detail);
  for (const char *line = graph.text; *line;) {
    const int length = (int)strcspn(line, "\n");
    printf("#   %.*s\n", length, line);
    line += length + (line[length] != 0);
  }
  fflush(stdout);
  if (!save) return;
  snprintf(path, sizeof path, "%s/%.100s.snt", save, id);
  if (host_write_file(path, graph.text, strlen(graph.text), &diag) != SNT_OK) printf("# %s\n", diag.text);
}

void conform_shrink(const conform_run *run, const conform_case *c, const char *save) {
  char id[CONFORM_ID];
  shrinker s = {.run = run, .deadline = time(NULL) + SECONDS, .best = {.path = c->path, .seed = conform_case_seed(c, run->seed)}};
  conform_case_id(c, id);
  s.best.is_pair = c->call == CONFORM_PAIR;
  s.best.count = (uint32_t)(s.best.is_pair ? conform_pair_choices : conform_grown_choices)(conform_case_number(c), s.best.choices);
  try_one(&s, &s.best, &s.verdict);
  const conform_result first = s.verdict.result;
  const bool fails = first == CONFORM_FAIL || first == CONFORM_CRASH || first == CONFORM_TIMEOUT;
  for (bool again = fails; again;) {
    again = false;
    for (uint32_t length = 32; length; length /= 2) again |= cut(&s, length);
    again |= lower(&s);
    again = again && s.tried < TRIALS && time(NULL) <= s.deadline;
  }
  end_child(&s);
  if (fails) print_result(&s, id, save);
  else printf("# %s does not fail again\n", id);
}
