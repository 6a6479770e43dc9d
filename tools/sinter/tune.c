/* --tune DIR: choices of the compiler that were close are tried the other way, on the device, and what proves faster is kept as contracts of the graph.
   A candidate is one decision turned over (one kernel: never_fuse; apart: must_fuse), the heaviest and closest first; it runs in turns with the best so
   far, A B B A, and wins when it is faster beyond what the best differs from itself, in two series. In: a loaded graph. Out: contracts on it, also
   kept in DIR by graph, device, profile and options. Entries are checked there; a damaged one is a miss, and said, and so is one that had less time
   (--timeout) and was stopped. A compile or a run that is under way when time is up is not. */
#include "ir/base.h"
#include "tools/sinter/bench.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CANDIDATES = 8, MOST_KEPT = CANDIDATES, ROUNDS = 6, ENTRY_BYTES = 4096, DATABASE_BYTES = 64 << 20, TUNE_SECONDS = 120 };
static const double least_gain = 0.02;

typedef struct turned_choice {
  uint32_t kind; /* SNT_NEVER_FUSE or SNT_MUST_FUSE */
  snt_value values[2];
  double score;
} turned_choice;
typedef struct tuning {
  tool_session *s;
  tool_tensor tensors[TOOL_MAX_PORTS];
  uint32_t tensor_count;
  turned_choice kept[MOST_KEPT];
  uint32_t kept_count, tried, found;
  double first_ms, best_ms, noise, deadline_ms;
  uint32_t seconds, stopped; /* how long it may take; of an entry that was stopped, after how many */
} tuning;
/* A program made with contracts of its own, ready to run: a session that borrows context, device and profile. */
typedef struct tuned_side {
  tool_session session;
  bench_side side;
} tuned_side;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* From then on for good. */
static bool is_late(tuning *t) {
  if (now_ms() > t->deadline_ms) t->stopped = t->seconds;
  return t->stopped > 0;
}

static bool is_loud(const tool_session *s) { return !s->options.quiet; }

/* ---- candidates ---- */

static int by_score(const void *a, const void *b) {
  const turned_choice *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? 1 : -1;
  return x->values[0] != y->values[0]  ? (x->values[0] < y->values[0] ? -1 : 1)
         : x->values[1] < y->values[1] ? -1
                                       : x->values[1] > y->values[1];
}

/* How much hangs on it, times how close it was. */
static bool turn_over(const snt_program *p, uint32_t number, turned_choice *out) {
  snt_decision d = {.head = SNT_HEAD(decision)};
  if (snt_program_decision(p, number, &d) != SNT_OK || (d.form != SNT_DECISION_PAIR && d.form != SNT_DECISION_WHOLE)) return false;
  if (!d.producer || !d.consumer || d.producer == d.consumer || !(d.ns_fused > 0) || !(d.ns_parts > 0)) return false;
  const double more = fmax(d.ns_parts, d.ns_fused), less = fmin(d.ns_parts, d.ns_fused);
  *out = (turned_choice){d.taken ? SNT_NEVER_FUSE : SNT_MUST_FUSE, {d.producer, d.consumer}, more * (less / more) * (less / more)};
  return true;
}

static snt_result find_candidates(const snt_program *p, turned_choice out[CANDIDATES], uint32_t *found) {
  const uint32_t all = snt_program_decision_count(p);
  turned_choice *list = calloc(all + 1, sizeof *list);
  uint32_t count = 0;
  if (!list) return SNT_E_HOST_MEM;
  for (uint32_t i = 0; i < all; i++) count += turn_over(p, i, &list[count]);
  if (count) qsort(list, count, sizeof *list, by_score);
  if (count > CANDIDATES) count = CANDIDATES;
  if (count) memcpy(out, list, count * sizeof *list);
  free(list);
  *found = count;
  return SNT_OK;
}

/* ---- a candidate made ready, and measured ---- */

static void close_side(tuned_side *t) {
  bench_close_side(&t->side);
  snt_exec_destroy(t->session.exec);
  snt_program_destroy(t->session.program);
  snt_graph_destroy(t->session.graph);
  free(t->session.text);
  memset(t, 0, sizeof *t);
}

static snt_result add_choices(snt_graph *g, const turned_choice *choices, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) SNT_TRY(snt_graph_contract(g, choices[i].kind, choices[i].values, 2));
  return SNT_OK;
}

/* The model once more, with these contracts. */
static snt_result open_program(const tuning *t, const turned_choice *choices, uint32_t count, tuned_side *out) {
  tool_session *s = &out->session;
  memset(out, 0, sizeof *out);
  *s = *t->s;
  s->graph = NULL, s->program = NULL, s->exec = NULL, s->text = NULL, s->helper_count = 0;
  s->options.quiet = true;
  SNT_TRY(tool_load(s));
  SNT_TRY(add_choices(s->graph, choices, count));
  SNT_TRY(tool_compile(s, 0));
  SNT_TRY(snt_exec_create(s->device, s->program, NULL, &s->exec, &s->diag));
  return snt_exec_prepare(s->exec, &s->diag);
}

static snt_result open_side(tuning *t, snt_stream *stream, const turned_choice *choices, uint32_t count, tuned_side *out) {
  SNT_TRY(open_program(t, choices, count, out));
  if (!t->tensor_count) SNT_TRY(tool_make_tensors(&out->session, t->tensors, &t->tensor_count));
  return bench_open_side(&out->session, stream, false, t->tensors, t->tensor_count, 2 * ROUNDS + 2, &out->side);
}

static snt_result run_once(const tuning *t, snt_stream *stream, tuned_side *x, double *ms) {
  SNT_TRY(bench_run_side(&x->session, stream, &x->side, t->tensor_count));
  *ms = x->side.ms[x->side.runs - 1];
  return SNT_OK;
}

/* Least times of both, A B B A; *noise: of the two halves of A. Where time is up, of what there is. */
static snt_result compare(tuning *t, snt_stream *stream, tuned_side *a, tuned_side *b, double least[2], double *noise) {
  double halves[2] = {INFINITY, INFINITY}, ms;
  least[0] = least[1] = INFINITY;
  SNT_TRY(run_once(t, stream, a, &ms));
  SNT_TRY(run_once(t, stream, b, &ms));
  for (uint32_t round = 0; round < 2 * ROUNDS && !is_late(t); round++)
    for (uint32_t k = 0; k < 2; k++) {
      const bool second = (k ^ round) & 1;
      SNT_TRY(run_once(t, stream, second ? b : a, &ms));
      least[second] = fmin(least[second], ms);
      if (!second) halves[round & 1] = fmin(halves[round & 1], ms);
    }
  *noise = fabs(halves[0] - halves[1]) / least[0];
  return SNT_OK;
}

static snt_result is_faster(tuning *t, snt_stream *stream, tuned_side *best, tuned_side *candidate, bool *out) {
  *out = true;
  for (uint32_t series = 0; series < 2 && *out; series++) {
    double least[2], noise;
    SNT_TRY(compare(t, stream, best, candidate, least, &noise));
    if (t->stopped) return *out = false, SNT_OK;
    if (t->first_ms == 0) t->first_ms = least[0];
    t->noise = fmax(t->noise, noise);
    *out = least[1] < least[0] * (1 - fmax(noise, least_gain));
    t->best_ms = *out ? least[1] : least[0];
  }
  return SNT_OK;
}

/* One candidate against the best so far, which it replaces when it is faster. What does not compile is passed over. */
static snt_result try_choice(tuning *t, snt_stream *stream, const turned_choice *choice, tuned_side *best) {
  tuned_side candidate;
  bool faster = false;
  t->kept[t->kept_count] = *choice;
  snt_result r = open_side(t, stream, t->kept, t->kept_count + 1, &candidate);
  if (r == SNT_OK) {
    r = is_faster(t, stream, best, &candidate, &faster);
    t->tried += !t->stopped;
  } else if (r != SNT_E_HOST_MEM) r = SNT_OK;
  if (faster) {
    tuned_side slower = *best;
    *best = candidate, candidate = slower;
    t->kept_count++;
  }
  close_side(&candidate);
  return r;
}

static snt_result measure_candidates(tuning *t) {
  turned_choice list[CANDIDATES];
  tuned_side best = {.side = {.runs = 0}};
  snt_stream *stream = NULL;
  SNT_TRY(snt_stream_create(t->s->device, &stream, &t->s->diag));
  snt_result r = open_side(t, stream, NULL, 0, &best);
  if (r != SNT_OK) t->s->diag = best.session.diag;
  if (r == SNT_OK) r = find_candidates(best.session.program, list, &t->found);
  for (uint32_t i = 0; r == SNT_OK && i < t->found && !is_late(t); i++) r = try_choice(t, stream, &list[i], &best);
  close_side(&best);
  snt_stream_destroy(stream);
  return r;
}

/* ---- the database ---- */

/* Of all that the choice hangs on. */
static snt_result make_key(const tool_session *s, const snt_device_info *device, uint8_t key[32]) {
  const uint32_t facts[] = {snt_version(), s->options.compile_flags, s->options.dim_count};
  const char *numerics = s->options.numerics, *weights = s->options.weights;
  const char *words[] = {"tune 1", device->selector, device->name, device->driver, numerics ? numerics : "", weights ? weights : ""};
  char *graph = NULL, *profile = NULL;
  snt_result r = tool_graph_text(s->graph, &graph);
  if (r == SNT_OK) r = tool_profile_text(s->profile, &profile);
  ir_sha256 sha;
  ir_sha256_init(&sha);
  for (uint32_t i = 0; i < IR_COUNT(words); i++) ir_sha256_add(&sha, words[i], strlen(words[i]) + 1);
  ir_sha256_add(&sha, facts, sizeof facts);
  for (uint32_t i = 0; i < s->options.dim_count; i++) {
    ir_sha256_add(&sha, s->options.dims[i].name, strlen(s->options.dims[i].name) + 1);
    ir_sha256_add(&sha, s->options.dims[i].value, strlen(s->options.dims[i].value) + 1);
  }
  if (r == SNT_OK) ir_sha256_add(&sha, graph, strlen(graph) + 1), ir_sha256_add(&sha, profile, strlen(profile) + 1);
  ir_sha256_end(&sha, key);
  free(graph);
  free(profile);
  return r;
}

/* A line a contract; lines that begin with # say how it was measured. */
static size_t write_entry(const tuning *t, const snt_device_info *device, char text[ENTRY_BYTES]) {
  const time_t now = time(NULL);
  char day[32] = "";
  struct tm at;
  if (gmtime_r(&now, &at)) strftime(day, sizeof day, "%Y-%m-%d %H:%M", &at);
  size_t used = (size_t)snprintf(
      text, ENTRY_BYTES, "# %s, %s, %s\n# %u candidates in turns of %u runs, by the clock; A/A at most %.1f %%; %.4f ms to %.4f ms\n", day,
      device->name, device->driver, t->tried, 2 * ROUNDS, 100 * t->noise, t->first_ms, t->best_ms);
  if (t->stopped) used += (size_t)snprintf(text + used, ENTRY_BYTES - used, "stopped %u\n", t->stopped);
  for (uint32_t i = 0; i < t->kept_count && used < ENTRY_BYTES; i++)
    used += (size_t)snprintf(text + used, ENTRY_BYTES - used, "%s %u %u\n", t->kept[i].kind == SNT_MUST_FUSE ? "must" : "never",
                             t->kept[i].values[0], t->kept[i].values[1]);
  return used < ENTRY_BYTES ? used : 0;
}

static bool read_entry(tuning *t, char *text) {
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    turned_choice *k = &t->kept[t->kept_count];
    char word[8];
    if (line[0] == '#' || sscanf(line, "stopped %u", &t->stopped) == 1) continue;
    if (t->kept_count == MOST_KEPT || sscanf(line, "%7s %u %u", word, &k->values[0], &k->values[1]) != 3) return false;
    k->kind = !strcmp(word, "must") ? SNT_MUST_FUSE : SNT_NEVER_FUSE;
    t->kept_count++;
  }
  return true;
}

/* Found and whole? */
static bool look_up(tuning *t, host_cache *database, const uint8_t key[32]) {
  char text[ENTRY_BYTES + 1];
  size_t size = ENTRY_BYTES;
  const bool found = host_cache_get(database, key, text, &size) == SNT_OK;
  if (host_cache_statistics(database).damaged)
    fprintf(stderr, "sinter: --tune %s: the entry of this model is damaged, so it is measured again\n", t->s->options.tune);
  if (!found) return false;
  text[size] = 0;
  if (read_entry(t, text) && (!t->stopped || t->seconds <= t->stopped)) return true;
  t->kept_count = t->stopped = 0;
  return false;
}

static void say(const tuning *t) {
  if (!is_loud(t->s)) return;
  fprintf(stderr, "sinter: --tune: %u candidates", t->tried);
  if (t->stopped) fprintf(stderr, " of %u in the %u s of --timeout", t->found, t->stopped);
  fprintf(stderr, ", %u kept", t->kept_count);
  if (t->tried) fprintf(stderr, ": %.3f ms to %.3f ms, A/A at most %.1f %%", t->first_ms, t->best_ms, 100 * t->noise);
  fprintf(stderr, "\n");
}

static snt_result tune_with(tuning *t, host_cache *database) {
  snt_device_info device = {.head = SNT_HEAD(device_info)};
  uint8_t key[32];
  char text[ENTRY_BYTES];
  SNT_TRY(snt_device_get_info(t->s->device, &device));
  SNT_TRY(make_key(t->s, &device, key));
  if (!look_up(t, database, key) && !t->s->options.share) { /* a helper does as its maker did */
    t->deadline_ms = now_ms() + t->seconds * 1e3;
    SNT_TRY(measure_candidates(t));
    const size_t size = write_entry(t, &device, text);
    if (size) host_cache_set(database, key, text, size);
    say(t);
  }
  return add_choices(t->s->graph, t->kept, t->kept_count);
}

snt_result tool_tune(tool_session *s) {
  host_cache *database = NULL;
  if (!s->options.tune) return SNT_OK;
  SNT_TRY(tool_need_graph(s));
  tuning *t = calloc(1, sizeof *t);
  if (!t) return SNT_E_HOST_MEM;
  t->s = s;
  t->seconds = s->options.timeout ? s->options.timeout : TUNE_SECONDS;
  snt_result r = host_cache_open(s->options.tune, DATABASE_BYTES, &database, &s->diag);
  if (r == SNT_OK) r = tune_with(t, database);
  host_cache_close(database);
  tool_free_tensors(t->tensors, t->tensor_count);
  free(t);
  return r;
}
