/* One case on one device: compiled, run in device buffers between guard words, its outputs poisoned first, and held against the f64 reference. */
#include "conformance/ways.h"
#include "ir/eval.h"
#include "tools/host/host.h"
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sinter/backend.h>
#include <time.h>
#include <unistd.h>

const char *const conform_result_names[CONFORM_RESULTS] = {"pass", "fail", "skip", "crash", "timeout", "flaky", "excused"};

const char *const conform_phase_names[PHASE_COUNT] = {"compile time", "driver compile time",
                                                      "driver compile time or run time, as drivers compile on a kernel's first run",
                                                      "run time", "time of the reference"};

/* ---- devices ---- */

/* What a profile says of what a device can do. The interpreter can do it all. */
static bool is_ability(const char *line) {
  static const char *const begins[] = {"target ", "max_", "subgroup_", "offset_align ", "caps."};
  for (uint32_t i = 0; i < IR_COUNT(begins); i++)
    if (!strncmp(line, begins[i], strlen(begins[i]))) return true;
  return false;
}

/* Schedules and code of another device, as this one takes them: the interpreter by its target alone, a driver with what it can do in place of what the
   other can. */
static snt_result foreign_profile(const conform_device *d, const char *name, bool whole, snt_profile **out, snt_diag *diag) {
  char own[CONFORM_PROFILE], text[CONFORM_PROFILE + 128];
  size_t size = sizeof own - 1;
  snt_profile *profile;
  SNT_TRY(snt_device_profile(d->device, &profile));
  snt_result r = snt_profile_print(profile, own, &size);
  snt_profile_destroy(profile);
  size_t length = (size_t)snprintf(text, sizeof text, "base = %.60s\nname = %.40s\n%s", name, name, whole ? "target = kir\n" : "");
  for (const char *line = own, *next; r == SNT_OK && !whole && (next = strchr(line, '\n')); line = next + 1)
    if (is_ability(line)) length += (size_t)snprintf(text + length, sizeof text - length, "%.*s", (int)(next + 1 - line), line);
  return r == SNT_OK ? snt_profile_parse(d->context, text, length, out, diag) : r;
}

static snt_result narrow(snt_profile **profile, const char *mask, snt_diag *diag) {
  snt_profile *wide = *profile;
  *profile = NULL;
  const snt_result r = snt_profile_mask(wide, mask, profile, diag);
  snt_profile_destroy(wide);
  return r;
}

snt_result conform_open(const char *selector, conform_device *d, snt_diag *diag) {
  host_prepare_drivers(NULL);
  *d = (conform_device){.phase = d->phase, .again = d->again, .ways = d->ways, .mask = d->mask, .info = {.head = SNT_HEAD(device_info)}};
  const snt_context_info made = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION};
  snt_result r = snt_context_create(&made, &d->context);
  if (r == SNT_OK) (void)snt_context_add_backend(d->context, host_cuda_text());
  static const char mask[] = "vulkan11-min";
  const char *foreign = strchr(selector, '=');
  char own[CONFORM_ID];
  snprintf(own, sizeof own, "%.*s", (int)strcspn(selector, "="), selector);
  const bool whole = !strcmp(own, "interp");
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = own, .mask = d->mask};
  if (r == SNT_OK) r = snt_device_open(d->context, &open, &d->device, diag);
  if (r == SNT_OK && foreign) r = foreign_profile(d, foreign + 1, whole, &d->profile, diag);
  else if (r == SNT_OK) r = snt_device_profile(d->device, &d->profile);
  if (r == SNT_OK && foreign && whole && d->mask) r = narrow(&d->profile, d->mask, diag);
  if (r == SNT_OK) r = snt_device_get_info(d->device, &d->info);
  const snt_open_info judge = {.head = SNT_HEAD(open_info), .selector = "interp"};
  if (r == SNT_OK) r = snt_device_open(d->context, &judge, &d->interp, diag);
  if (r == SNT_OK) r = snt_device_profile(d->interp, &d->interp_profile);
  const snt_open_info less = {.head = SNT_HEAD(open_info), .selector = open.selector, .mask = mask};
  if (r == SNT_OK && snt_device_open(d->context, &less, &d->masked, NULL) == SNT_OK)
    (void)(foreign ? snt_profile_mask(d->profile, mask, &d->masked_profile, NULL) : snt_device_profile(d->masked, &d->masked_profile));
  return r;
}

void conform_close(conform_device *d) {
  snt_profile_destroy(d->interp_profile);
  snt_device_destroy(d->interp);
  snt_profile_destroy(d->masked_profile);
  snt_device_destroy(d->masked);
  snt_profile_destroy(d->profile);
  snt_device_destroy(d->device);
  snt_context_destroy(d->context);
}

/* The same program on other inputs, whose results are known from those it gave. */
static snt_result hold_relation(const relation *which, const conform_graph *graph, attempt *first, conform_verdict *v, snt_diag *diag) {
  const relation_case plain = {graph, &first->ports};
  related runs[RELATED_RUNS] = {0};
  attempt again[RELATED_RUNS] = {0};
  const ports *got[RELATED_RUNS] = {&again[0].ports, &again[1].ports};
  relation_at miss;
  snt_result r = SNT_OK;
  const bool applies = which->prepare(&plain, runs);
  for (uint32_t i = 0; r == SNT_OK && applies && i < which->runs; i++) {
    source s = {.graph = graph, .given = &runs[i].ports, .symbols = runs[i].symbols};
    again[i].device = first->device, again[i].program = first->program, again[i].exec = first->exec;
    r = attempt_run(&again[i], &s, v, diag);
  }
  if (r == SNT_OK && applies && v->result == CONFORM_PASS && relation_differs(which, &plain, runs, got, &miss)) {
    v->result = CONFORM_FAIL;
    snprintf(v->detail, sizeof v->detail, "%s[%llu]: %s", first->ports.at[miss.port].info.name, (unsigned long long)miss.element,
             which->words);
  }
  for (uint32_t i = 0; i < RELATED_RUNS; i++) attempt_end_run(&again[i]);
  relation_free(runs);
  return r;
}

static snt_result hold_relations(const conform_graph *graph, attempt *first, conform_verdict *v, snt_diag *diag) {
  snt_result r = SNT_OK;
  for (uint32_t i = 0; r == SNT_OK && v->result == CONFORM_PASS && i < RELATIONS && relation_is_small(&first->ports); i++)
    r = hold_relation(conform_relations[i], graph, first, v, diag);
  return r;
}

static void judge_runs(conform_device *d, const conform_graph *graph, uint32_t path, source s, bool spoils, conform_verdict *v) {
  const uint64_t seed = s.state;
  snt_diag diag = {0};
  attempt first = {.program = NULL}, second = {.program = NULL};
  static const uint32_t path_flags[PATH_COUNT] = {
      [PATH_MASKED] = MASKED_RUN, [PATH_STRICT] = STRICT_RUN, [PATH_SAME] = SAME_RUN, [PATH_FAST] = FAST_RUN, [PATH_CUT] = STRICT_RUN};
  static const struct {
    uint32_t flags;
    const char *whom;
  } again[PATH_COUNT] = {[PATH_STRICT] = {STRICT_RUN | UNFUSED_RUN, "fused and unfused in STRICT"},
                         [PATH_SAME] = {SAME_RUN | INTERP_RUN, "the device and the interpreter in REPRODUCIBLE"},
                         [PATH_CUT] = {STRICT_RUN, "inputs cut in two and whole ones in STRICT"}};
  const uint32_t flags = path_flags[path];
  char cut[CONFORM_TEXT];
  const bool cuts = path == PATH_CUT && conform_cut(graph->text, cut);
  snt_result r = attempt_make(d, cuts ? cut : graph->text, &s, &(recipe){.runs = flags}, &first, v, &diag);
  if (r == SNT_OK && spoils) ((uint8_t *)first.ports.at[first.ports.count - 1].data)[0] ^= 0x40;
  if (r == SNT_OK) v->bits = attempt_bits(&first.ports);
  attempt_enter(d, PHASE_REFERENCE);
  if (r == SNT_OK) r = attempt_hold(graph, path, &first.ports, v, &diag);
  attempt_enter(d, PHASE_RUN);
  s.state = seed;
  if (r == SNT_OK && again[path].flags) {
    r = attempt_make(d, graph->text, &s, &(recipe){.runs = again[path].flags}, &second, v, &diag);
    if (r == SNT_OK) attempt_compare_bits(&first.ports, &second.ports, again[path].whom, v);
  }
  if (r == SNT_OK && path == PATH_STRICT) r = hold_relations(graph, &first, v, &diag);
  if (r == SNT_OK && d->ways && !cuts)
    r = conform_ways(
        &(way_case){.d = d, .graph = graph, .path = path, .runs = flags, .seed = seed, .low = s.low, .high = s.high, .first = &first}, v,
        &diag);
  if (r != SNT_OK) {
    v->result = r == SNT_E_UNSUPPORTED ? CONFORM_SKIP : CONFORM_FAIL;
    snprintf(v->detail, sizeof v->detail, "%s: %s", snt_result_text(r), diag.text);
  }
  attempt_end(&first);
  attempt_end(&second);
}

static void judge_timed(conform_device *d, const conform_graph *graph, uint32_t path, source s, bool spoils, conform_verdict *v) {
  struct timespec start, end;
  *v = (conform_verdict){.result = CONFORM_PASS};
  if (path == PATH_MASKED && !d->masked) {
    v->result = CONFORM_SKIP;
    snprintf(v->detail, sizeof v->detail, "the device cannot be opened under vulkan11-min");
    return;
  }
  if (path == PATH_FAST && graph->special) {
    v->result = CONFORM_SKIP;
    snprintf(v->detail, sizeof v->detail, "a minimum or maximum of a NaN may be either operand in FAST");
    return;
  }
  clock_gettime(CLOCK_MONOTONIC, &start);
  s.graph = graph, s.symbols = graph->symbols;
  judge_runs(d, graph, path, s, spoils, v);
  clock_gettime(CLOCK_MONOTONIC, &end);
  v->us = (uint32_t)((end.tv_sec - start.tv_sec) * 1000000 + (end.tv_nsec - start.tv_nsec) / 1000);
}

void conform_judge_graph(conform_device *d, const conform_graph *graph, uint32_t path, uint64_t seed, conform_verdict *v) {
  judge_timed(d, graph, path, (source){.low = -4, .high = 4, .state = seed}, false, v);
}

/* One kernel that would run for hours. */
static const char endless[] = "graph @endless(%x: f32[4096]) {\n  %i: f32[4096,1073741824] = iota axis=1\n"
                              "  %w = broadcast %x, axes=[0], shape=[4096,1073741824]\n  %a = add %i, %w\n  %s = sin %a\n"
                              "  %y = reduce.sum %s, axes=[1]\n  return y=%y\n}\n";

void conform_judge(conform_device *d, const conform_case *c, uint64_t seed, conform_verdict *v) {
  const bool self = c->call == CONFORM_SELF;
  if (self && c->path == SELF_CRASH) raise(SIGKILL);
  conform_graph graph;
  source s = {.state = seed};
  (void)conform_case_graph(c, &graph);
  if (self && c->path == SELF_HANG) snprintf(graph.text, sizeof graph.text, "%s", endless);
  conform_domain(c, &s.low, &s.high);
  judge_timed(d, &graph, self ? PATH_FUSED : c->path, s, self && !(c->path == SELF_FLAKY && d->again), v);
}
