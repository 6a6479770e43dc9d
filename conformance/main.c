/* sinter-conform: the conformance suite as one program. See usage. */
#include "conformance/conform.h"
#include "tools/host/host.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char usage_text[] =
    "usage: sinter conform [--device D] [--profile smoke|standard|full] [options]\n"
    "       sinter conform report FILE.jsonl.. -o PAGE.html|TABLE.md\n"
    "       sinter conform pack FILE.jsonl.. -o SUBMISSION\n"
    "       sinter conform verify SUBMISSION [--count N] [--seed N]\n\n"
    "Runs generated cases on a device, each judged by an f64 reference with a bound for every element, and says who is wrong. TAP 13 on "
    "standard\n"
    "output; exit code 0: all passed, 1: not, 2: wrong usage.\n\n"
    "  --device D      as `sinter devices` prints it; \"all\" (the default): everything found, one after the other;\n"
    "                  D=PROFILE: what is compiled for that profile, as far as D can run it; several with commas\n"
    "  --mask M        makes the devices smaller, as sinter's own option does\n"
    "  --profile P     smoke: 60 s a device (the default), standard: 600 s, full: all cases, hours on most devices: in parts by --shard\n"
    "  --time SECONDS  another limit; 0: none          --case-time SECONDS  before a child counts as hanging (60)\n"
    "                  --compile-time SECONDS  the same for each step in which it or its driver compiles, and to open a device (5 times "
    "the case time)\n"
    "  --filter TEXT   only ids that contain TEXT      --seed N             of inputs and of the order of cases\n"
    "  --shard I/N     the I-th of N equal parts       --jobs N             child processes at a time (2)\n"
    "                  (the parts' JSON lines, joined by `cat`, are one run to report and pack)\n"
    "  --resume        of one device: what the file of --json has is left out, and the rest added to it\n"
    "  --json FILE     JSON lines beside TAP           --expect FILE        lines `DEVICE [~]FILTER YYYY-MM-DD reason`: known failures; ~: "
    "of some\n"
    "  --cases FILE    only the ids in FILE, a line each, in its order\n"
    "  --count N       only the first N cases; any beginning of the list covers the operators evenly\n"
    "  --grow N        instead of the list: N graphs grown at random from the seed; what fails is made simpler and printed\n"
    "  --pair N        instead of the list: N graphs of an operator and readers of its values at several places; all pairs, then again\n"
    "  --triple N      as --pair, of two operators, the second on the first's result, and readers of its values; all pairs of operators\n"
    "  --graph PATH    instead of the list: a graph, or a folder of graphs, on every path; not to be packed\n"
    "  --save DIR      where --grow, --pair and --triple write their simplest failing graphs\n"
    "  --ways          what passes is also saved and loaded, run on two threads, with other extents, with a state for an input, and "
    "compiled otherwise\n"
    "  --stop          at the first failure\n"
    "  --list          prints the ids and runs nothing --self-test          adds cases that must fail: wrong, crashing, hanging, flaky\n";

typedef struct options {
  const char *device, *filter, *json, *expect, *cases, *graph, *save, *mask;
  double seconds, case_seconds, compile_seconds;
  uint64_t seed;
  uint32_t shard, shards, jobs, count, grow, pair, triple;
  bool list, self_test, stop, ways, resume;
} options;
typedef struct profile {
  const char *name;
  double seconds;
} profile;
static const profile profiles[] = {{"smoke", 60}, {"standard", 600}, {"full", 0}};

static bool set_profile(options *o, const char *name) {
  for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++)
    if (!strcmp(name, profiles[i].name)) {
      o->seconds = profiles[i].seconds;
      return true;
    }
  return false;
}

static bool set_shard(options *o, const char *text) {
  unsigned i, n;
  char end;
  if (sscanf(text, "%u/%u%c", &i, &n, &end) != 2 || i < 1 || i > n) return false;
  o->shard = i - 1, o->shards = n;
  return true;
}

static bool set_number(double *out, const char *text) {
  char *end;
  *out = strtod(text, &end);
  return end != text && !*end && *out >= 0 && *out < 1e9;
}

static bool set_whole(uint32_t *out, const char *text, double most) {
  double number;
  if (!set_number(&number, text) || number < 1 || number > most || number != (uint32_t)number) return false;
  *out = (uint32_t)number;
  return true;
}

static bool set_option(options *o, const char *name, const char *value) {
  if (!*value && strcmp(name, "--filter") != 0 && strcmp(name, "--mask") != 0) return false;
  if (!strcmp(name, "--device")) o->device = value;
  else if (!strcmp(name, "--filter")) o->filter = value;
  else if (!strcmp(name, "--json")) o->json = value;
  else if (!strcmp(name, "--expect")) o->expect = value;
  else if (!strcmp(name, "--cases")) o->cases = value;
  else if (!strcmp(name, "--graph")) o->graph = value;
  else if (!strcmp(name, "--save")) o->save = value;
  else if (!strcmp(name, "--mask")) o->mask = value;
  else if (!strcmp(name, "--profile")) return set_profile(o, value);
  else if (!strcmp(name, "--shard")) return set_shard(o, value);
  else if (!strcmp(name, "--time")) return set_number(&o->seconds, value);
  else if (!strcmp(name, "--case-time")) return set_number(&o->case_seconds, value) && o->case_seconds > 0;
  else if (!strcmp(name, "--compile-time")) return set_number(&o->compile_seconds, value) && o->compile_seconds > 0;
  else if (!strcmp(name, "--seed")) return host_read_number(value, &o->seed);
  else if (!strcmp(name, "--jobs")) return set_whole(&o->jobs, value, 64);
  else if (!strcmp(name, "--grow")) return set_whole(&o->grow, value, 1e9);
  else if (!strcmp(name, "--pair")) return set_whole(&o->pair, value, 1e9);
  else if (!strcmp(name, "--triple")) return set_whole(&o->triple, value, 1e9);
  else if (!strcmp(name, "--count")) return set_whole(&o->count, value, 1e9);
  else return false;
  return true;
}

static bool is_option(const char *name) { /* one that the usage names */
  const size_t length = strlen(name);
  for (const char *at = strstr(usage_text, name); at; at = strstr(at + 1, name))
    if (at[-1] == ' ' && at[length] == ' ') return true;
  return false;
}

/* Always false. */
static bool refuse_option(const char *name, const char *value) {
  if (!is_option(name)) fprintf(stderr, "sinter conform: no option \"%s\"; sinter conform --help lists them\n", name);
  else if (!value) fprintf(stderr, "sinter conform: a value is missing after \"%s\"\n", name);
  else fprintf(stderr, "sinter conform: %s: \"%s\" is none of its values; sinter conform --help says which are\n", name, value);
  return false;
}

static bool read_options(options *o, int argc, char **argv) {
  *o = (options){.device = "all", .filter = "", .seconds = 60, .case_seconds = 60, .seed = 1, .shards = 1, .jobs = 2};
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--list")) o->list = true;
    else if (!strcmp(argv[i], "--self-test")) o->self_test = true;
    else if (!strcmp(argv[i], "--stop")) o->stop = true;
    else if (!strcmp(argv[i], "--ways")) o->ways = true;
    else if (!strcmp(argv[i], "--resume")) o->resume = true;
    else if (i + 1 < argc && set_option(o, argv[i], argv[i + 1])) i++;
    else return refuse_option(argv[i], i + 1 < argc ? argv[i + 1] : NULL);
  }
  if (o->resume && (!o->json || strchr(o->device, ',') || !strcmp(o->device, "all")))
    return fprintf(stderr, "sinter conform: --resume needs --json and one --device\n") < 0;
  const bool of_list = *o->filter || o->self_test;
  if ((o->graph != NULL) + (o->pair > 0) + (o->triple > 0) + (o->grow > 0) + of_list < 2) return true;
  return fprintf(stderr, "sinter conform: --graph, --pair, --triple, --grow, or --filter and --self-test of the list: one of them\n") < 0;
}

/* ---- devices: listed in a child, so that this process loads no driver ---- */

enum { MAX_DEVICES = 32, SELECTOR = 64 };

static _Noreturn void list_devices(int to) {
  snt_device_info info[MAX_DEVICES];
  uint32_t count = MAX_DEVICES;
  snt_context *context = NULL;
  memset(info, 0, sizeof info);
  host_prepare_drivers(NULL);
  const snt_context_info made = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION};
  if (snt_context_create(&made, &context) == SNT_OK) {
    (void)snt_context_add_backend(context, host_cuda_text());
    if (snt_device_list(context, &count, sizeof *info, info) < 0) count = 0;
    for (uint32_t i = 0; i < count && i < MAX_DEVICES; i++)
      if (write(to, info[i].selector, SELECTOR) != SELECTOR) break;
  }
  _exit(0);
}

static uint32_t find_devices(char found[MAX_DEVICES][SELECTOR]) {
  int ends[2];
  uint32_t count = 0;
  if (pipe(ends)) return 0;
  const pid_t pid = fork();
  if (pid == 0) close(ends[0]), list_devices(ends[1]);
  close(ends[1]);
  while (pid > 0 && count < MAX_DEVICES && read(ends[0], found[count], SELECTOR) == SELECTOR) count++;
  close(ends[0]);
  if (pid > 0) waitpid(pid, NULL, 0);
  return count;
}

/* ---- a run ---- */

enum { MOST_SHRUNK = 8 };
typedef struct watcher { /* what a run tells: the report, and the grown graphs that failed */
  conform_report *report;
  conform_case failed[MOST_SHRUNK];
  uint32_t count;
} watcher;

static void watch_device(void *user, const snt_device_info *info, const char *profile) {
  conform_report_device(((watcher *)user)->report, info, profile);
}

static void watch_case(void *user, const conform_case *c, const conform_verdict *v) {
  watcher *w = user;
  const uint32_t before = w->report->failed;
  conform_report_case(w->report, c, v);
  const char *slow = conform_phase_names[PHASE_DRIVER];
  const bool is_slow = v->result == CONFORM_TIMEOUT && !strncmp(v->detail, slow, strlen(slow)); /* nothing to make simpler */
  if (w->report->failed > before && (c->call == CONFORM_GROWN || c->call == CONFORM_PAIR) && w->count < MOST_SHRUNK && !is_slow)
    w->failed[w->count++] = *c;
}

static void begin_tap(const conform_report *report) {
  if (!report->number) printf("TAP version 13\n");
}

static void tell_closed(conform_report *report, const char *selector, const snt_diag *diag) {
  printf("not ok %u - %s opens\n# %s\n", ++report->number, selector, diag->text);
  report->failed++;
}

static double compile_seconds(const options *o) { return o->compile_seconds > 0 ? o->compile_seconds : 5 * o->case_seconds; }

static void run_device(const options *o, const conform_list *list, const char *selector, conform_report *report) {
  watcher watching = {.report = report};
  const conform_run run = {.selector = selector,
                           .list = list,
                           .jobs = o->jobs,
                           .shard = o->shard,
                           .shards = o->shards,
                           .seconds = o->seconds,
                           .case_seconds = o->case_seconds,
                           .compile_seconds = compile_seconds(o),
                           .seed = o->seed,
                           .stop = o->stop,
                           .ways = o->ways,
                           .mask = o->mask,
                           .user = &watching,
                           .device = watch_device,
                           .done = watch_case};
  snt_diag diag = {0};
  const uint32_t left = conform_run_all(&run, &diag);
  if (left == UINT32_MAX) {
    tell_closed(report, selector, &diag);
    return;
  }
  printf("# %s:", selector);
  for (uint32_t i = 0; i < CONFORM_RESULTS; i++) {
    if (report->counts[i]) printf(" %u %s,", report->counts[i], conform_result_names[i]);
    report->counts[i] = 0;
  }
  printf(" %u not run for lack of time; largest error / bound %.3g\n", left, report->worst);
  report->worst = 0;
  for (uint32_t i = 0; i < watching.count; i++) conform_shrink(&run, &watching.failed[i], o->save);
}

typedef struct named {
  char *id;
  uint32_t place;
} named;

static int by_text(const void *a, const void *b) { return strcmp(((const named *)a)->id, ((const named *)b)->id); }

/* The lines of a text that are not empty, sorted, each with its place; the text is cut into them. */
static named *lines_of(char *text, uint32_t *count) {
  uint32_t most = 1;
  for (const char *c = text; *c; c++) most += *c == '\n';
  named *lines = malloc(most * sizeof *lines);
  *count = 0;
  for (char *line = text, *next; lines && line; line = next) {
    if ((next = strchr(line, '\n'))) *next++ = 0;
    if (*line) lines[*count] = (named){line, *count}, ++*count;
  }
  if (lines) qsort(lines, *count, sizeof *lines, by_text);
  return lines;
}

/* Keeps the cases that the text names, in its order, and cuts the text; false: it names one that there is not. */
static bool keep_named(conform_list *list, const char *path, char *names, snt_diag *diag) {
  uint32_t kept = 0, wanted = 0;
  named *lines = lines_of(names, &wanted);
  conform_case *ordered = calloc(wanted + 1u, sizeof *ordered);
  for (uint32_t i = 0; lines && ordered && i < list->count; i++) {
    char id[CONFORM_ID];
    const named key = {id, 0}, *found;
    conform_case_id(&list->at[i], id);
    if ((found = bsearch(&key, lines, wanted, sizeof *lines, by_text))) ordered[found->place] = list->at[i], kept++;
  }
  free(lines);
  free(list->at);
  *list = (conform_list){.at = ordered, .count = kept};
  return kept == wanted || host_fail(diag, SNT_E_ARG, "conform", "%s names %u cases, of which there are %u", path, wanted, kept) == SNT_OK;
}

/* ---- a run that goes on ---- */

/* What --json has of a run that ended early, its whole lines alone, for the caller to free; false: it cannot be written. */
static bool begin_json(const options *o, conform_report *report, char **before, snt_diag *diag) {
  void *text = NULL;
  size_t size = 0;
  const bool read = o->resume && access(o->json, F_OK) == 0;
  if (read && host_read_file(o->json, &text, &size, diag) != SNT_OK) return false;
  *before = text;
  while (size && (*before)[size - 1] != '\n') (*before)[--size] = 0;
  if ((!read || truncate(o->json, (off_t)size) == 0) && (report->json = fopen(o->json, read ? "a" : "w"))) return true;
  return host_fail(diag, SNT_E_ARG, "conform", "%s: %s", o->json, strerror(errno)) == SNT_OK;
}

/* This shard's cases without those that lines of JSON, which are cut, name. */
static bool leave_out(options *o, conform_list *list, char *before) {
  char id[CONFORM_ID];
  uint32_t count = 0, ids = 0, kept = 0;
  named *done = lines_of(before, &count);
  for (uint32_t i = 0; done && i < count; i++)
    if (conform_field(done[i].id, "id", id, sizeof id)) done[ids] = (named){strcpy(done[i].id, id), 0}, ids++; /* shorter than its line */
  if (done) qsort(done, ids, sizeof *done, by_text);
  for (uint32_t i = o->shard; done && i < list->count; i += o->shards) {
    conform_case_id(&list->at[i], id);
    if (!bsearch(&(named){id, 0}, done, ids, sizeof *done, by_text)) list->at[kept++] = list->at[i];
  }
  free(done);
  list->count = kept, o->shard = 0, o->shards = 1;
  return done != NULL;
}

static bool make_list(const options *o, const char *named, conform_list *list, snt_diag *diag) {
  *list = (conform_list){.count = 0};
  if (o->graph) return conform_add_files(list, o->graph, diag);
  if (o->pair     ? conform_add_pairs(list, o->pair, o->seed, false)
      : o->triple ? conform_add_pairs(list, o->triple, o->seed, true)
      : o->grow   ? conform_add_grown(list, o->grow, o->seed)
                  : conform_make_list(list, o->filter, named, o->seed, o->self_test))
    return true;
  return host_fail(diag, SNT_E_HOST_MEM, "conform", "out of memory") == SNT_OK;
}

/* The devices of --device, or all there are; 0: what is given names none. */
static uint32_t choose_devices(const options *o, char devices[MAX_DEVICES][SELECTOR]) {
  if (!strcmp(o->device, "all")) return find_devices(devices);
  uint32_t count = 0;
  for (const char *at = o->device; at; count++) {
    const size_t length = strcspn(at, ",");
    if (!length || length >= SELECTOR || count == MAX_DEVICES) {
      fprintf(stderr, "sinter conform: --device: \"%s\" is no list of at most %d devices\n", o->device, MAX_DEVICES);
      return 0;
    }
    snprintf(devices[count], SELECTOR, "%.*s", (int)length, at);
    at = at[length] ? at + length + 1 : NULL;
  }
  return count;
}

/* Those of --device that open, before a list is made for them; UINT32_MAX: the options ask for what there cannot be. */
static uint32_t keep_open(const options *o, char devices[MAX_DEVICES][SELECTOR], uint32_t count, conform_report *report) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; i++) {
    snt_diag diag = {0};
    if (conform_opens(devices[i], o->mask, compile_seconds(o), &diag)) memmove(devices[kept++], devices[i], SELECTOR);
    else if (diag.result == SNT_E_ARG || diag.result == SNT_E_PARSE) /* no such name, mask or, behind =, profile */
      return fprintf(stderr, "sinter conform: %s: %s\n", devices[i], diag.text), UINT32_MAX;
    else begin_tap(report), tell_closed(report, devices[i], &diag);
  }
  return kept;
}

static double clock_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int run_list(const options *o, char devices[MAX_DEVICES][SELECTOR], uint32_t count, conform_report *report, char *before) {
  options first = *o; /* making the list counts as the first device's time */
  const double start = clock_seconds();
  conform_list list = {.count = 0};
  void *named = NULL;
  size_t size;
  snt_diag diag = {0};
  int bad = o->cases && host_read_file(o->cases, &named, &size, &diag) != SNT_OK ? 2 : 0;
  if (!bad && !make_list(o, named, &list, &diag)) bad = 1;
  if (!bad && named && !keep_named(&list, o->cases, named, &diag)) bad = 2;
  free(named);
  if (bad) return fprintf(stderr, "sinter conform: %s\n", diag.text), free(list.at), bad;
  if (o->count && list.count > o->count) list.count = o->count;
  char id[CONFORM_ID];
  for (uint32_t i = o->shard; o->list && i < list.count; i += o->shards) conform_case_id(&list.at[i], id), puts(id);
  if (!list.count) fprintf(stderr, "sinter conform: no case contains \"%s\"\n", o->filter);
  if (o->list || !list.count) return free(list.at), list.count ? 0 : 2;
  begin_tap(report);
  if (before && !leave_out(&first, &list, before)) return fprintf(stderr, "sinter conform: out of memory\n"), free(list.at), 1;
  printf("# %u cases, seed %llu\n", list.count, (unsigned long long)o->seed);
  const double spent = clock_seconds() - start;
  first.seconds = o->seconds > 2 * spent ? o->seconds - spent : o->seconds;
  for (uint32_t i = 0; i < count && list.count; i++) run_device(i ? o : &first, &list, devices[i], report);
  free(list.at);
  return 0;
}

static int run_suite(const options *o, conform_report *report, char *before) {
  char devices[MAX_DEVICES][SELECTOR];
  uint32_t count = 0;
  if (!o->list) {
    if (!(count = choose_devices(o, devices))) return 2;
    if (strcmp(o->device, "all") != 0 || o->mask) count = keep_open(o, devices, count, report);
    if (count == UINT32_MAX) return 2;
  }
  const int bad = o->list || count ? run_list(o, devices, count, report, before) : 0;
  if (bad || o->list) return bad;
  printf("1..%u\n", report->number);
  return report->failed || (!report->number && !before);
}

/* report and pack: files into one. */
static int join_runs(int argc, char **argv, snt_result (*join)(uint32_t, char *const *, const char *, snt_diag *)) {
  enum { MOST = 64 };
  const char *out = NULL;
  char *files[MOST];
  uint32_t count = 0;
  snt_diag diag = {0};
  for (int i = 2; i < argc; i++) {
    if (!strcmp(argv[i], "-o") && i + 1 < argc) out = argv[++i];
    else if (count++ < MOST) files[count - 1] = argv[i];
  }
  if (!out || !count) return fputs(usage_text, stderr), 2;
  if (count > MOST) return fprintf(stderr, "sinter conform: %s: more than %d files; `cat` joins them\n", argv[1], MOST), 2;
  if (join(count, files, out, &diag) == SNT_OK) return printf("%s: of %u file%s\n", out, count, count == 1 ? "" : "s"), 0;
  return fprintf(stderr, "sinter conform: %s\n", diag.text), 1;
}

static int run_command(int argc, char **argv) {
  options o;
  snt_diag diag = {0};
  conform_report report = {.tap = stdout};
  conform_excuse *excuses = NULL;
  char *before = NULL;
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--help")) return fputs(usage_text, stdout), 0;
  if (argc > 1 && !strcmp(argv[1], "report")) return join_runs(argc, argv, conform_write_page);
  if (argc > 1 && !strcmp(argv[1], "pack")) return join_runs(argc, argv, conform_pack);
  const bool verifies = argc > 2 && !strcmp(argv[1], "verify");
  if (!read_options(&o, argc - 2 * verifies, argv + 2 * verifies)) return 2;
  if (verifies) {
    const int code = conform_verify(argv[2], o.count ? o.count : 20, o.seed, &diag);
    if (diag.text[0]) fprintf(stderr, "sinter conform: %s\n", diag.text);
    return code;
  }
  if (o.expect && !conform_read_excuses(o.expect, &excuses, &report.excuse_count, &diag))
    return fprintf(stderr, "sinter conform: %s\n", diag.text), 2;
  if (o.save && host_make_dirs(o.save, &diag) != SNT_OK) return fprintf(stderr, "sinter conform: --save: %s\n", diag.text), 2;
  if (o.json && !begin_json(&o, &report, &before, &diag)) return fprintf(stderr, "sinter conform: %s\n", diag.text), 2;
  report.excuses = excuses, report.seed = o.seed;
  const int code = run_suite(&o, &report, before);
  free(before);
  if (report.json && fclose(report.json)) return fprintf(stderr, "sinter conform: %s was not written whole\n", o.json), 1;
  free(excuses);
  return code;
}

int main(int argc, char **argv) {
  const int code = run_command(argc, argv);
  return host_end_output("sinter conform") || code ? code : 1;
}
