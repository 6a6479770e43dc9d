/* Measuring: what of a time is the partition's own. Where its buffers lie by chance is not, so ports and execs are made anew a number of
   times; nor is how far the processors are from each other, which changes while a run goes on, so short slices of all partitions go by in
   sweeps, forwards and backwards, with a round trip beside each, and only those sweeps count that were in the state which most were in. A
   partition's time is the mean, over what was made, of the median of its slices. */
#include "bench/cost.h"
#include <math.h>
#include <stdlib.h>

enum { SWEEPS = 5 }; /* of what is made once */

/* Nanoseconds of a slice of each partition, one after another, and of a round trip between two processors before them. */
typedef struct sweep {
  double round_trip, ns[COST_BENCH_PARTITIONS];
} sweep;
/* Most sweeps had a round trip of at most `bound`, or more. */
typedef struct sweep_state {
  double bound;
  bool near;
} sweep_state;

/* ---- what sweeps say ---- */

static bool counts(const sweep *s, sweep_state state) { return (s->round_trip <= state.bound) == state.near; }

static sweep_state state_of(const sweep *sweeps, uint32_t count) {
  sweep_state state = {INFINITY, true};
  uint32_t near = 0;
  for (uint32_t s = 0; s < count; s++) state.bound = fmin(state.bound, 1.5 * sweeps[s].round_trip);
  for (uint32_t s = 0; s < count; s++) near += counts(&sweeps[s], state);
  state.near = 2 * near >= count;
  return state;
}

/* 0: none of its sweeps counts. */
static double time_of(const sweep made[SWEEPS], uint32_t part, sweep_state state) {
  double ns[SWEEPS];
  uint32_t count = 0;
  for (uint32_t s = 0; s < SWEEPS; s++)
    if (counts(&made[s], state)) ns[count++] = made[s].ns[part];
  return cost_median(ns, count);
}

static void judge_partition(const sweep *sweeps, uint32_t makings, sweep_state state, uint32_t part, partition *p) {
  double sum[2] = {0};
  uint32_t count[2] = {0};
  for (uint32_t m = 0; m < makings; m++) {
    const double ns = time_of(sweeps + m * SWEEPS, part, state);
    sum[m & 1] += ns;
    count[m & 1] += ns > 0;
  }
  const double both = (sum[0] + sum[1]) / (count[0] + count[1]);
  for (uint32_t h = 0; h < 2; h++) p->halves[h] = count[h] ? sum[h] / count[h] : both;
  p->measured = both;
}

static void judge_sweeps(cost_bench *b, const sweep *sweeps, uint32_t makings, partition *parts, uint32_t count) {
  const sweep_state state = state_of(sweeps, makings * SWEEPS);
  double trips = 0;
  uint32_t counted = 0;
  for (uint32_t i = 0; i < count; i++) judge_partition(sweeps, makings, state, i, &parts[i]);
  for (uint32_t s = 0; s < makings * SWEEPS; s++)
    if (counts(&sweeps[s], state)) trips += sweeps[s].round_trip, counted++;
  b->round_trip = trips / counted;
  b->counted = (double)counted / (makings * SWEEPS);
}

/* ---- sweeps ---- */

/* Submissions that fill a slice, by a slice: a first run wakes threads, and each slice waits once, so that of two alike the one of fewer
   submissions would be the slower one. */
static snt_result find_repeats(cost_bench *b, const partition *p, uint32_t *repeats) {
  enum { LOOKS = 4 };
  SNT_TRY(snt_exec_prepare(p->exec, &b->diag));
  *repeats = 1;
  for (uint32_t look = 0; look < LOOKS; look++) {
    double ns = 0;
    SNT_TRY(cost_sample(b, p, *repeats, &ns));
    const double wanted = b->slice_ns / ns;
    *repeats = cost_cover_most(b, p, ns > 0 && wanted < 1 ? 1 : ns <= 0 || wanted > 4096 ? 4096 : (uint32_t)wanted);
  }
  return SNT_OK;
}

/* Each slice after a run that is not counted, which brings the partition's own data near. */
static snt_result sweep_once(cost_bench *b, const partition *parts, uint32_t count, const uint32_t *repeats, bool backwards, sweep *out) {
  double first;
  out->round_trip = cost_round_trip();
  for (uint32_t k = 0; k < count; k++) {
    const uint32_t i = backwards ? count - 1 - k : k;
    if (!b->covered) SNT_TRY(cost_sample(b, &parts[i], 1, &first));
    SNT_TRY(cost_sample(b, &parts[i], repeats[i], &out->ns[i]));
  }
  return SNT_OK;
}

/* In memory that begins elsewhere: `between` lies before it. */
static snt_result make_anew(cost_bench *b, partition *parts, uint32_t count, snt_buffer **between) {
  enum { PAGES = 64, PAGE = 4096 };
  cost_free_buffers(b);
  for (uint32_t i = 0; i < count; i++) {
    snt_exec_destroy(parts[i].exec);
    parts[i].exec = NULL;
  }
  SNT_TRY(snt_buffer_create(b->device, PAGE * (uint64_t)(1 + cost_random_below(b, PAGES)), between, &b->diag));
  SNT_TRY(cost_make_buffers(b));
  for (uint32_t i = 0; i < count; i++) SNT_TRY(cost_make_exec(b, parts[i].program, b->apart, &parts[i].exec));
  return SNT_OK;
}

static snt_result measure_made(cost_bench *b, partition *parts, uint32_t count, sweep sweeps[SWEEPS]) {
  uint32_t repeats[COST_BENCH_PARTITIONS];
  snt_buffer *between = NULL;
  snt_result r = make_anew(b, parts, count, &between);
  for (uint32_t i = 0; i < count && r == SNT_OK; i++) r = find_repeats(b, &parts[i], &repeats[i]);
  for (uint32_t s = 0; s < SWEEPS && r == SNT_OK; s++) r = sweep_once(b, parts, count, repeats, s & 1, &sweeps[s]);
  snt_buffer_destroy(between);
  return r;
}

static snt_result measure_makings(cost_bench *b, partition *parts, uint32_t count, uint32_t makings) {
  sweep *sweeps = calloc((size_t)makings * SWEEPS, sizeof *sweeps);
  snt_result r = sweeps ? SNT_OK : SNT_E_HOST_MEM;
  for (uint32_t m = 0; m < makings && r == SNT_OK; m++) r = measure_made(b, parts, count, sweeps + m * SWEEPS);
  if (r == SNT_OK) judge_sweeps(b, sweeps, makings, parts, count);
  free(sweeps);
  return r;
}

snt_result cost_measure(cost_bench *b) {
  b->round_trip = b->counted = 0;
  if (!cost_table_read(b)) {
    SNT_TRY(measure_makings(b, b->parts, b->count, b->rounds));
    cost_table_write(b);
    return SNT_OK;
  }
  return b->priced ? SNT_OK : cost_make_buffers(b); /* single kernels are timed though all partitions stand in the table */
}

snt_result cost_measure_again(cost_bench *b, uint32_t best, double measured[2]) {
  partition pair[2] = {{.program = b->parts[0].program}, {.program = b->parts[best].program}};
  const snt_result r = measure_makings(b, pair, 2, b->again);
  for (uint32_t i = 0; i < 2; i++) {
    measured[i] = pair[i].measured;
    snt_exec_destroy(pair[i].exec);
  }
  return r;
}
