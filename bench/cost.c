/* bench/cost: the cost model proven by measurement. usage: cost [--device D] [--profile FILE] [--prices FILE] [--graphs FILE] [--random N]
   [--readers N] [--seed S] [--parts N] [--best N] [--again N] [--rounds N] [--slice US] [--build N] [--cpu-time] [--apart]
   [--covered] [--versus PROFILE|FILE] [--only NAME] [--table FILE [--priced]] [--verbose]. Prints a line a graph and the means; --prices: by another
   profile than the one that makes the partitions; --build: N processes build all kernels first (SNT_CACHE_DIR keeps them); --versus: the plan that PROFILE would choose beside the chosen one instead; see bench/README.md. Exit codes: 0 measured,
   1 failed, 2 wrong usage. */
#include "bench/cost.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct cost_options {
  const char *device, *profile, *prices, *graphs, *versus, *only, *table;
  uint32_t random, readers, seed, parts, best, again, rounds, slice, build;
  bool verbose, processor_time, apart, priced, covered;
} cost_options;
/* Sums over graphs. */
typedef struct cost_totals {
  double rank[MODEL_COUNT], tied[MODEL_COUNT], told[MODEL_COUNT], agreement[MODEL_COUNT], regret[MODEL_COUNT], worst[MODEL_COUNT], chosen,
      chosen_worst, again, again_worst, noise, itself, slower[MADE_COUNT]; /* slower: logarithms, than the chosen plan */
  uint32_t made[MADE_COUNT];
  uint32_t graphs, graphs_told, graphs_again, left_out; /* told: whose partitions differ by more than A/A */
} cost_totals;
static const char *const model_names[MODEL_COUNT] = {
    [MODEL_FULL] = "the model",
    [MODEL_NO_RECOMPUTE] = "without recompute",
    [MODEL_NO_REGISTERS] = "without registers",
    [MODEL_BYTES] = "bytes and launches",
};

static const char *const origin_names[MADE_COUNT] = {[MADE_CHOSEN] = "chosen",
                                                     [MADE_UNFUSED] = "unfused",
                                                     [MADE_CUT] = "cut",
                                                     [MADE_FURTHER] = "fused further",
                                                     [MADE_RANDOM] = "by chance"};

/* ---- one graph ---- */

static uint32_t best_of(const cost_bench *b) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < b->count; i++)
    if (b->parts[i].measured < b->parts[best].measured) best = i;
  return best;
}

/* How much slower than the best, beyond what the run itself varies. */
static double regret_of(const cost_bench *b, uint32_t pick, double noise) {
  const double regret = b->parts[pick].measured / b->parts[best_of(b)].measured - 1 - noise;
  return regret > 0 ? regret : 0;
}

static uint32_t pick_of(const cost_bench *b, bench_model m) {
  uint32_t pick = 0;
  for (uint32_t i = 1; i < b->count; i++)
    if (b->parts[i].predicted[m] < b->parts[pick].predicted[m]) pick = i;
  return pick;
}

/* How well one half of the measurement ranks as the other does: beyond it no model can be asked to go. */
static double itself_of(const cost_bench *b) {
  double halves[2][COST_BENCH_PARTITIONS];
  for (uint32_t i = 0; i < b->count; i++)
    for (uint32_t h = 0; h < 2; h++) halves[h][i] = b->parts[i].halves[h];
  return cost_spearman(halves[0], halves[1], b->count);
}

/* What two measurements of the same partition differ by: the median of the graph. */
static double noise_of(const cost_bench *b) {
  double noises[COST_BENCH_PARTITIONS];
  for (uint32_t i = 0; i < b->count; i++) noises[i] = fabs(b->parts[i].halves[0] - b->parts[i].halves[1]) / b->parts[i].measured;
  return cost_median(noises, b->count);
}

static void show_parts(cost_bench *b) {
  for (uint32_t i = 0; i < b->count; i++) {
    const partition *p = &b->parts[i];
    printf("    %2u: %2u kernels, measured %9.2f us, predicted %9.2f us, by bytes %9.2f us (%s)\n", i, p->steps, p->measured / 1e3,
           p->predicted[MODEL_FULL] / 1e3, p->predicted[MODEL_BYTES] / 1e3, origin_names[p->made]);
    if (!b->priced) cost_show_steps(b, p);
  }
}

/* Of the best of many, what is not luck: how much slower than it the chosen plan is where both are measured again. */
static snt_result judge_again(cost_bench *b, cost_totals *t) {
  const uint32_t best = best_of(b);
  double again[2] = {1, 1};
  if (!b->again) return SNT_OK;
  if (best) SNT_TRY(cost_measure_again(b, best, again));
  const double regret = again[0] / again[1] - 1;
  t->graphs_again++;
  t->again += fmax(regret, 0);
  t->again_worst = fmax(t->again_worst, regret);
  if (best)
    printf("    again: the chosen plan %9.2f us, the best (%u) %9.2f us: %.1f %%\n", again[0] / 1e3, best, again[1] / 1e3, 100 * regret);
  else printf("    again: the chosen plan is the best\n");
  fflush(stdout);
  return SNT_OK;
}

static void judge(cost_bench *b, const char *name, cost_totals *t) {
  double measured[COST_BENCH_PARTITIONS], predicted[COST_BENCH_PARTITIONS], tied[COST_BENCH_PARTITIONS], rank[MODEL_COUNT];
  const double noise = noise_of(b), chosen = regret_of(b, 0, noise);
  for (uint32_t i = 0; i < b->count; i++) measured[i] = b->parts[i].measured;
  cost_tie(measured, b->count, noise, tied);
  double spread = 0;
  for (uint32_t i = 0; i < b->count; i++) spread = fmax(spread, measured[i] / measured[best_of(b)] - 1);
  const bool told = spread > noise;
  for (uint32_t m = 0; m < MODEL_COUNT; m++) {
    for (uint32_t i = 0; i < b->count; i++) predicted[i] = b->parts[i].predicted[m];
    rank[m] = cost_spearman(predicted, measured, b->count);
    const double regret = regret_of(b, pick_of(b, (bench_model)m), noise);
    t->rank[m] += rank[m];
    t->told[m] += told ? rank[m] : 0;
    t->tied[m] += cost_spearman(predicted, tied, b->count);
    t->agreement[m] += cost_agreement(predicted, measured, b->count, noise);
    t->regret[m] += regret;
    t->worst[m] = fmax(t->worst[m], regret);
  }
  for (uint32_t i = 0; i < b->count; i++) {
    t->made[b->parts[i].made]++;
    t->slower[b->parts[i].made] += log(b->parts[i].measured / b->parts[0].measured);
  }
  t->chosen += chosen;
  t->chosen_worst = fmax(t->chosen_worst, chosen);
  t->noise += noise;
  t->itself += itself_of(b);
  t->graphs++;
  t->graphs_told += told;
  printf("%-24s %2u partitions  rank %6.3f  (itself %6.3f, no recompute %6.3f, no registers %6.3f, bytes %6.3f)  regret "
         "%5.1f %%  A/A %4.1f "
         "%%  spread %4.0f %%  round trip %3.0f ns in %3.0f %%\n",
         name, b->count, rank[MODEL_FULL], itself_of(b), rank[MODEL_NO_RECOMPUTE], rank[MODEL_NO_REGISTERS], rank[MODEL_BYTES],
         100 * chosen, 100 * noise, 100 * spread, b->round_trip, 100 * b->counted);
  if (b->verbose) show_parts(b);
  fflush(stdout);
}

/* This device's choice beside the other class's. */
static void run_versus(cost_bench *b, const char *name, const char *text, size_t length, cost_totals *t) {
  snt_result r = cost_make_versus(b, b->other, text, length);
  const uint32_t count = b->count;
  if (b->taken) {
    (void)cost_build_kernels(b);
    cost_free_partitions(b);
    return;
  }
  if (r == SNT_OK && count == 2) r = cost_measure(b);
  if (r < 0) printf("%-24s left out: %s %s\n", name, snt_result_text(r), b->diag.text);
  else if (count < 2) printf("%-24s the same plan, %u kernels\n", name, b->parts[0].steps);
  else {
    const double noise = noise_of(b), ratio = b->parts[1].measured / b->parts[0].measured;
    const bool slower = ratio < 1 - noise;
    t->graphs++;
    t->chosen_worst = fmax(t->chosen_worst, 1 / ratio - 1 - noise);
    t->noise += noise;
    printf("%-24s chosen %u kernels %9.2f us, the other's %u kernels %9.2f us: %.2f times, A/A %.1f %%%s\n", name, b->parts[0].steps,
           b->parts[0].measured / 1e3, b->parts[1].steps, b->parts[1].measured / 1e3, ratio, 100 * noise, slower ? "  SLOWER" : "");
    if (b->verbose) show_parts(b);
  }
  t->left_out += r < 0;
  fflush(stdout);
  cost_free_partitions(b);
}

static void run_graph(cost_bench *b, const char *name, const char *text, size_t length, cost_totals *t) {
  enum { LEAST = 8 };
  if ((b->only && strcmp(b->only, name)) || !cost_takes(b)) return;
  b->name = name;
  cost_begin_random(b, name);
  if (b->other) {
    run_versus(b, name, text, length, t);
    return;
  }
  snt_result r = cost_make_partitions(b, text, length);
  const bool enough = (r == SNT_OK || r == SNT_INCOMPLETE) && b->count >= LEAST;
  if (enough) r = b->taken ? cost_build_kernels(b) : cost_measure(b);
  if (b->taken) {
    cost_free_partitions(b);
    return;
  }
  if (enough && r == SNT_OK && b->count) {
    judge(b, name, t);
    const snt_result again = judge_again(b, t);
    if (again < 0) printf("    again: %s %s\n", snt_result_text(again), b->diag.text);
  } else {
    t->left_out++;
    if (r < 0) printf("%-24s left out: %s %s\n", name, snt_result_text(r), b->diag.text);
    else printf("%-24s left out: %u partitions\n", name, b->count);
  }
  cost_free_partitions(b);
}

/* ---- all graphs ---- */

static void report(const cost_totals *t, const char *versus, uint32_t again) {
  const double n = t->graphs ? t->graphs : 1;
  if (versus) {
    printf("\n%u graphs with a plan of their own, %u left out; A/A %.1f %%; the chosen plan slower than that of %s by at most %.1f %% "
           "beyond it\n",
           t->graphs, t->left_out, 100 * t->noise / n, versus, 100 * fmax(t->chosen_worst, 0));
    return;
  }
  printf("\n%u graphs, %u left out; A/A %.1f %%; the plans chosen: regret %.2f %% on average, %.1f %% at most\n", t->graphs, t->left_out,
         100 * t->noise / n, 100 * t->chosen / n, 100 * t->chosen_worst);
  if (again)
    printf("the best measured again beside them, in other memory: regret %.2f %% on average, %.1f %% at most\n",
           100 * t->again / fmax(t->graphs_again, 1), 100 * t->again_worst);
  printf(
      "one half of each measurement ranks as the other does: %.3f; the partitions of %u graphs differ by more than A/A (rank of these)\n",
      t->itself / n, t->graphs_told);
  printf("%-20s %10s %10s %10s %14s %14s %14s\n", "", "rank", "of these", "with ties", "agreement", "regret, mean", "regret, most");
  for (uint32_t m = 0; m < MODEL_COUNT; m++)
    printf("%-20s %10.3f %10.3f %10.3f %14.3f %12.2f %% %12.1f %%\n", model_names[m], t->rank[m] / n, t->told[m] / fmax(t->graphs_told, 1),
           t->tied[m] / n, t->agreement[m] / n, 100 * t->regret[m] / n, 100 * t->worst[m]);
  for (uint32_t o = MADE_CUT; o < MADE_COUNT; o++)
    printf("%-20s %10u partitions, %.2f times the chosen plan's time\n", origin_names[o], t->made[o],
           exp(t->slower[o] / fmax(t->made[o], 1)));
}

/* The texts of a file stand one after another, each from a line "graph @NAME(". */
static void run_file(cost_bench *b, char *text, cost_totals *t) {
  for (char *at = strstr(text, "graph @"); at;) {
    char *next = strstr(at + 1, "\ngraph @");
    char name[COST_BENCH_NAME];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 7, "("), at + 7);
    run_graph(b, name, at, next ? (size_t)(next - at) : strlen(at), t);
    at = next ? next + 1 : NULL;
  }
}

static void run_random(cost_bench *b, const char *kind, void (*make)(cost_bench *, char *, size_t), uint32_t count, cost_totals *t) {
  char text[16384], name[COST_BENCH_NAME];
  for (uint32_t i = 0; i < count; i++) {
    snprintf(name, sizeof name, "%s %u", kind, i);
    cost_begin_random(b, name);
    make(b, text, sizeof text);
    if (b->verbose && (!b->only || !strcmp(b->only, name))) printf("%s", text);
    run_graph(b, name, text, strlen(text), t);
  }
}

static snt_result read_profile(cost_bench *b, const char *path, snt_profile **out) {
  void *text;
  size_t size;
  SNT_TRY(host_read_file(path, &text, &size, &b->diag));
  const snt_result r = snt_profile_parse(b->context, text, size, out, &b->diag);
  free(text);
  return r;
}

static snt_result open_bench(cost_bench *b, const cost_options *o, host_cache **cache) {
  host_env env;
  SNT_TRY(host_read_env(&env, &b->diag));
  host_prepare_drivers(NULL);
  snt_context_info info = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION};
  if (env.cache_dir && host_cache_open(env.cache_dir, env.cache_bytes, cache, NULL) == SNT_OK)
    info.cache = (snt_cache_io){*cache, host_cache_get, host_cache_set};
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = o->device ? o->device : env.device};
  SNT_TRY(snt_context_create(&info, &b->context));
  SNT_TRY(snt_device_open(b->context, &open, &b->device, &b->diag));
  SNT_TRY(snt_stream_create(b->device, &b->stream, &b->diag));
  if (o->versus && snt_profile_builtin(b->context, o->versus, &b->other) != SNT_OK) SNT_TRY(read_profile(b, o->versus, &b->other));
  if (o->prices) SNT_TRY(read_profile(b, o->prices, &b->prices));
  return o->profile ? read_profile(b, o->profile, &b->profile) : snt_device_profile(b->device, &b->profile);
}

static void close_bench(cost_bench *b, host_cache *cache) {
  snt_stream_destroy(b->stream);
  snt_profile_destroy(b->profile);
  snt_profile_destroy(b->other);
  snt_profile_destroy(b->prices);
  snt_device_destroy(b->device);
  snt_context_destroy(b->context);
  host_cache_close(cache);
}

static bool *flag_of(cost_options *o, const char *text) {
  if (!strcmp(text, "--verbose")) return &o->verbose;
  if (!strcmp(text, "--cpu-time")) return &o->processor_time;
  if (!strcmp(text, "--priced")) return &o->priced;
  if (!strcmp(text, "--covered")) return &o->covered;
  return strcmp(text, "--apart") ? NULL : &o->apart;
}

static bool parse_options(cost_options *o, int argc, char **argv) {
  const struct {
    const char *name, **text;
    uint32_t *number;
  } known[] = {
      {"--device", &o->device, NULL},   {"--profile", &o->profile, NULL}, {"--graphs", &o->graphs, NULL}, {"--random", NULL, &o->random},
      {"--readers", NULL, &o->readers}, {"--versus", &o->versus, NULL},   {"--seed", NULL, &o->seed},     {"--parts", NULL, &o->parts},
      {"--only", &o->only, NULL},       {"--table", &o->table, NULL},     {"--best", NULL, &o->best},     {"--again", NULL, &o->again},
      {"--rounds", NULL, &o->rounds},   {"--prices", &o->prices, NULL},   {"--slice", NULL, &o->slice},   {"--build", NULL, &o->build},
  };
  for (int i = 1; i < argc; i++) {
    size_t k = 0;
    bool *const flag = flag_of(o, argv[i]);
    if (flag) {
      *flag = true;
      continue;
    }
    while (k < IR_COUNT(known) && strcmp(known[k].name, argv[i])) k++;
    if (k == IR_COUNT(known) || ++i == argc) return false;
    if (known[k].text) *known[k].text = argv[i];
    else *known[k].number = (uint32_t)strtoul(argv[i], NULL, 10);
  }
  return o->rounds > 1 && o->parts <= COST_BENCH_PARTITIONS && o->best + 2 <= o->parts && (o->table || !o->priced);
}

typedef struct cost_run {
  const cost_options *options;
  char *text; /* of the file of graphs */
  cost_totals totals;
} cost_run;

static snt_result run_all(cost_bench *b, void *user) {
  cost_run *run = user;
  const cost_options *o = run->options;
  host_cache *cache = NULL;
  snt_result r = open_bench(b, o, &cache);
  if (r == SNT_OK && !b->taken) r = cost_cover_open(b);
  if (r == SNT_OK && run->text) run_file(b, run->text, &run->totals);
  if (r == SNT_OK) run_random(b, "random", cost_random_graph, o->random, &run->totals);
  if (r == SNT_OK) run_random(b, "readers", cost_random_readers, o->readers, &run->totals);
  cost_cover_close(b);
  close_bench(b, cache);
  return r;
}

int main(int argc, char **argv) {
  cost_options o = {.random = 10, .readers = 10, .seed = 1, .parts = 14, .rounds = 8, .slice = 2000};
  static cost_bench b;
  cost_run run = {.options = &o};
  void *text = NULL;
  size_t size;
  if (!parse_options(&o, argc, argv)) {
    fprintf(stderr, "usage: cost [--device D] [--profile FILE] [--prices FILE] [--graphs FILE] [--random N] [--readers N] [--seed S] "
                    "[--parts N] [--best "
                    "N] [--again N] [--rounds N] [--slice US] [--build N] "
                    "[--cpu-time] [--apart] [--covered] [--versus PROFILE|FILE] [--only NAME] [--table FILE [--priced]] [--verbose]\n");
    return 2;
  }
  b.seed = o.seed;
  b.wanted = o.parts, b.best = o.best, b.again = o.again, b.rounds = o.rounds, b.slice_ns = 1e3 * o.slice, b.verbose = o.verbose,
  b.only = o.only, b.table = o.table, b.processor_time = o.processor_time, b.apart = o.apart, b.priced = o.priced, b.covered = o.covered;
  snt_result r = o.graphs ? host_read_file(o.graphs, &text, &size, &b.diag) : SNT_OK;
  run.text = text;
  if (r == SNT_OK && o.build && cost_build(&b, o.build, run_all, &run) != SNT_OK) fprintf(stderr, "cost: a process that builds failed\n");
  if (r == SNT_OK) r = run_all(&b, &run);
  if (r == SNT_OK) report(&run.totals, o.versus, o.again);
  else fprintf(stderr, "cost: %s %s\n", snt_result_text(r), b.diag.text);
  free(text);
  return r == SNT_OK ? 0 : 1;
}
