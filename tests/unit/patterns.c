/* The fusions that Sinter must find: each graph of tests/patterns is compiled for the profiles of tests/patterns/table.txt and its kernels counted,
   then run on every device found: fused, fused and unfused under STRICT. All runs are compared with the reference, the STRICT ones bit by bit.
   Arguments, in any order: a device selector, a graph name, mask=NAME, "counts" (no devices). */
#include "ir/eval.h"
#include "tests/tap.h"
#include "tools/host/host.h"
#include <sinter/sinter.h>

enum { MAX_PORTS = 64, MAX_SYMBOLS = 4, MAX_ROWS = 2048, MAX_NAMES = 256, MAX_DEVICES = 16 };
static const char folder[] = "tests/patterns";

typedef struct row {
  char name[48], profile[24], mask[64], rule[24];
  uint32_t least, most, bindings;
  bool large, tiny;
} row;
typedef struct port {
  snt_port info;
  int64_t dims[SNT_MAX_RANK];
  uint64_t bytes;
  void *data;
} port;
typedef struct pattern {
  char name[48];
  char *text;
  snt_graph *graph;
  bool large, tiny;
} pattern;
/* The reference of a pattern with its inputs, for one choice of symbols. */
typedef struct reference {
  ir_arena arena;
  expr_pool pool;
  ir_graph graph;
  ir_eval_tensor out[MAX_PORTS];
  const void *inputs[MAX_PORTS];
  int64_t symbols[MAX_SYMBOLS];
} reference;
typedef struct target {
  const char *selector, *mask;
  snt_device *device;
  snt_profile *profile;
  uint32_t every, strict_every; /* which patterns it runs, which of those unfused and STRICT too, where a driver takes seconds a kernel */
} target;

static struct {
  snt_context *context;
  row rows[MAX_ROWS];
  pattern patterns[MAX_NAMES];
  uint32_t row_count, pattern_count;
  const char *only_device, *only_name, *only_mask;
  bool counts;
} t;

/* ---- the table ---- */

static pattern *find_pattern(const char *name) {
  for (uint32_t i = 0; i < t.pattern_count; i++)
    if (!strcmp(t.patterns[i].name, name)) return &t.patterns[i];
  return NULL;
}

static bool load_pattern(const row *r) {
  pattern *p = find_pattern(r->name);
  if (p) {
    p->large |= r->large, p->tiny |= r->tiny;
    return true;
  }
  char path[128];
  size_t size;
  void *text;
  snt_diag diag = {0};
  if (t.pattern_count == MAX_NAMES) return false;
  p = &t.patterns[t.pattern_count++];
  memcpy(p->name, r->name, sizeof p->name);
  p->large = r->large, p->tiny = r->tiny;
  snprintf(path, sizeof path, "%s/%s.snt", folder, r->name);
  snt_result result = host_read_file(path, &text, &size, &diag);
  if (result == SNT_OK) p->text = text, result = snt_graph_create(t.context, &p->graph);
  if (result == SNT_OK) result = snt_graph_parse(p->graph, text, size, NULL, &diag);
  if (result == SNT_OK) result = snt_graph_verify(p->graph, &diag);
  return tap_ok(result == SNT_OK, "%s is read %s", r->name, diag.text);
}

static bool read_row(char *line, row *r) {
  *r = (row){.least = 0};
  int used = 0;
  if (sscanf(line, "%47s %23s %u %u %n", r->name, r->profile, &r->least, &r->most, &used) != 4) return false;
  for (char *word = strtok(line + used, " \n"); word; word = strtok(NULL, " \n")) {
    if (!strncmp(word, "mask=", 5)) snprintf(r->mask, sizeof r->mask, "%s", word + 5);
    else if (!strncmp(word, "rule=", 5)) snprintf(r->rule, sizeof r->rule, "%s", word + 5);
    else if (!strncmp(word, "within=", 7)) r->bindings = (uint32_t)atoi(word + 7);
    else if (!strcmp(word, "large")) r->large = true;
    else if (!strcmp(word, "tiny")) r->tiny = true;
    else return false;
  }
  return true;
}

/* "all": a row a profile. */
static bool add_rows(const row *r) {
  static const char *const all[] = {"pocl", "lavapipe", "igpu", "dgpu", "mobile", "h100"};
  const bool each = !strcmp(r->profile, "all");
  for (uint32_t i = 0; i < (each ? IR_COUNT(all) : 1); i++) {
    if (t.row_count == MAX_ROWS) return false;
    t.rows[t.row_count] = *r;
    if (each) snprintf(t.rows[t.row_count].profile, sizeof r->profile, "%s", all[i]);
    t.row_count++;
  }
  return true;
}

static bool wanted_name(const char *name) { return !t.only_name || !strcmp(t.only_name, name); }

static bool read_table(void) {
  char path[64], line[256];
  snprintf(path, sizeof path, "%s/table.txt", folder);
  FILE *f = fopen(path, "r");
  if (!f) return false;
  bool good = true;
  while (good && fgets(line, sizeof line, f)) {
    if (line[0] == '#' || line[0] == '\n') continue;
    row r;
    good = tap_ok(read_row(line, &r), "row of the table: %s", line);
    if (good && wanted_name(r.name)) good = load_pattern(&r) && add_rows(&r);
  }
  fclose(f);
  return good;
}

/* ---- counts ---- */

static snt_result profile_of(const row *r, snt_profile **out, snt_diag *diag) {
  snt_profile *plain;
  snt_result result = snt_profile_builtin(t.context, r->profile, &plain);
  if (result != SNT_OK || !r->mask[0]) {
    *out = plain;
    return result;
  }
  result = snt_profile_mask(plain, r->mask, out, diag);
  snt_profile_destroy(plain);
  return result;
}

static uint32_t most_bindings(const snt_program *program) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < snt_program_kernel_count(program); i++) {
    snt_kernel k = {.head = SNT_HEAD(kernel)};
    if (snt_program_kernel(program, i, SNT_TARGET_HOST, &k) == SNT_OK && k.binding_count > most) most = k.binding_count;
  }
  return most;
}

static bool has_rule(const snt_program *program, const char *rule) {
  char wanted[48];
  size_t length = 0;
  snprintf(wanted, sizeof wanted, "\"rule\": \"%s\"", rule);
  (void)snt_program_explain(program, SNT_EXPLAIN_JSON, NULL, &length);
  char *text = malloc(length + 1);
  const bool found = text && snt_program_explain(program, SNT_EXPLAIN_JSON, text, &length) == SNT_OK && strstr(text, wanted);
  free(text);
  return found;
}

static void check_count(const row *r) {
  snt_profile *profile = NULL;
  snt_program *program = NULL;
  snt_diag diag = {0};
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .targets = SNT_TARGET_HOST};
  snt_result result = profile_of(r, &profile, &diag);
  if (result == SNT_OK) result = snt_compile(find_pattern(r->name)->graph, profile, &info, &program, &diag);
  const uint32_t kernels = result == SNT_OK ? snt_program_kernel_count(program) : 0;
  tap_ok(result == SNT_OK && kernels >= r->least && kernels <= r->most, "%s for %s%s%s: %u kernels, wanted %u to %u %s", r->name,
         r->profile, r->mask[0] ? " masked " : "", r->mask, kernels, r->least, r->most, diag.text);
  if (result == SNT_OK && r->rule[0])
    tap_ok(has_rule(program, r->rule), "%s for %s: a decision by the rule \"%s\"", r->name, r->profile, r->rule);
  if (result == SNT_OK && r->bindings)
    tap_ok(most_bindings(program) <= r->bindings, "%s for %s masked %s: no kernel has more than %u bindings", r->name, r->profile, r->mask,
           r->bindings);
  snt_program_destroy(program);
  snt_profile_destroy(profile);
}

/* ---- running ---- */

static void put_random(int32_t dtype, void *data, uint64_t i, uint64_t bits) {
  const float real = (float)((double)(bits >> 11) * 0x1p-52 - 1.0);
  uint32_t raw;
  memcpy(&raw, &real, 4);
  switch (dtype) {
  case SNT_F32: ((float *)data)[i] = real; break;
  case SNT_F16: ((uint16_t *)data)[i] = (uint16_t)(((bits >> 16) & 0x8000) | (0x3000 + ((bits >> 40) & 0xBFF))); break; /* +-[0.125, 1) */
  case SNT_BF16: ((uint16_t *)data)[i] = (uint16_t)(raw >> 16); break;
  case SNT_I64:
  case SNT_U64: ((int64_t *)data)[i] = (int64_t)(bits % 5); break;
  case SNT_I32:
  case SNT_U32: ((int32_t *)data)[i] = (int32_t)(bits % 5); break;
  case SNT_BOOL: ((uint8_t *)data)[i] = bits & 1; break;
  default: ((uint8_t *)data)[i] = bits % 5; break;
  }
}

static bool make_ports(const snt_program *program, const int64_t *symbols, port *ports, uint32_t *count) {
  *count = snt_program_port_count(program);
  if (*count > MAX_PORTS) return false;
  for (uint32_t i = 0; i < *count; i++) {
    port *p = &ports[i];
    *p = (port){.info = {.head = SNT_HEAD(port)}};
    uint64_t elements = 1, seed = 1 + i;
    if (snt_program_port(program, i, &p->info) != SNT_OK || snt_program_port_dims(program, i, symbols, p->dims) != SNT_OK) return false;
    for (uint32_t d = 0; d < p->info.tensor.rank; d++) elements *= (uint64_t)p->dims[d];
    p->bytes = elements * snt_dtype_size(p->info.tensor.dtype);
    p->data = calloc(1, p->bytes + 64);
    if (!p->data) return false;
    if (p->info.kind == SNT_PORT_OUTPUT) memset(p->data, 0xA5, p->bytes);
    for (uint64_t e = 0; p->info.kind != SNT_PORT_OUTPUT && e < elements; e++)
      put_random(p->info.tensor.dtype, p->data, e, host_random(&seed));
  }
  return true;
}

static void free_ports(port *ports, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) free(ports[i].data);
}

static snt_result run_program(const target *d, const snt_program *program, const int64_t *symbols, port *ports, uint32_t count,
                              snt_diag *diag) {
  snt_exec *exec = NULL;
  snt_argument arguments[MAX_PORTS];
  uint32_t used = 0;
  for (uint32_t i = 0; i < count; i++) arguments[used++] = (snt_argument){.port = i, .host = ports[i].data, .bytes = ports[i].bytes};
  const snt_run_info info = {.head = SNT_HEAD(run_info),
                             .argument_count = used,
                             .arguments = arguments,
                             .symbols = symbols,
                             .symbol_count = snt_program_symbol_count(program)};
  snt_result result = snt_exec_create(d->device, program, NULL, &exec, diag);
  if (result == SNT_OK) result = snt_run(exec, &info, diag);
  snt_exec_destroy(exec);
  return result;
}

static snt_result settle_symbols(const snt_program *program, int64_t *symbols) {
  for (uint32_t i = 0; i < snt_program_symbol_count(program); i++) {
    snt_symbol s;
    if (i == MAX_SYMBOLS || snt_program_symbol(program, i, &s) != SNT_OK) return SNT_E_LIMIT;
    symbols[i] = s.hint;
  }
  return SNT_OK;
}

/* One way to compile and run a pattern. */
typedef struct variant {
  const char *name;
  uint32_t numerics, flags;
} variant;
static const variant variants[] = {
    {"fused", SNT_NUMERICS_DEFAULT, 0}, {"strict", SNT_NUMERICS_STRICT, 0}, {"strict unfused", SNT_NUMERICS_STRICT, SNT_COMPILE_UNFUSED}};
enum { VARIANTS = 3 };
typedef struct outcome {
  port ports[MAX_PORTS];
  uint32_t count, kernels;
  double ratio;
  snt_result result;
  snt_diag diag;
} outcome;

static snt_result make_reference(const pattern *p, const port *ports, uint32_t count, reference *ref, snt_diag *diag) {
  snt_result result = ir_graph_parse(&ref->graph, p->text, strlen(p->text), diag);
  const ir_eval_info info = {.symbols = ref->symbols, .inputs = ref->inputs};
  for (uint32_t i = 0; i < ref->graph.inputs.count && i < count; i++) ref->inputs[i] = ports[i].data;
  return result == SNT_OK ? ir_eval_reference(&ref->graph, &info, &ref->arena, ref->out, diag) : result;
}

static void compare_port(outcome *o, const port *p, const ir_eval_tensor *expected) {
  ir_eval_report report;
  ir_eval_compare(expected, p->info.tensor.dtype, p->data, &report);
  const double own = report.nan_mismatch ? INFINITY : report.max_ratio;
  if (own <= o->ratio) return;
  o->ratio = own;
  snprintf(o->diag.text, sizeof o->diag.text, "%s[%llu]: got %.9g, want %.9g, bound %.3g", p->info.name,
           (unsigned long long)report.worst_index, report.got, report.want, report.bound);
}

/* Outputs are the last ports; a state is among the first, with its new value. */
static void compare(outcome *o, const reference *ref) {
  const ir_graph *g = &ref->graph;
  for (uint32_t i = 0; i < g->outputs.count; i++) compare_port(o, &o->ports[o->count - g->outputs.count + i], &ref->out[i]);
  for (uint32_t u = 0; u < g->updates.count; u++)
    for (uint32_t i = 0; i < g->inputs.count; i++)
      if (g->inputs.at[i].node == g->updates.at[u].state) compare_port(o, &o->ports[i], &ref->out[g->outputs.count + u]);
}

static void run_variant(const target *d, const pattern *p, const variant *v, reference *ref, outcome *o) {
  snt_program *program = NULL;
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .numerics = v->numerics, .flags = v->flags};
  *o = (outcome){.kernels = 0};
  o->result = snt_compile(p->graph, d->profile, &info, &program, &o->diag);
  if (o->result == SNT_OK) o->result = settle_symbols(program, ref->symbols);
  if (o->result == SNT_OK && !make_ports(program, ref->symbols, o->ports, &o->count)) o->result = SNT_E_HOST_MEM;
  if (o->result == SNT_OK) o->kernels = snt_program_kernel_count(program);
  if (o->result == SNT_OK && !ref->out[0].type.dtype && !ref->out[0].count)
    o->result = make_reference(p, o->ports, o->count, ref, &o->diag);
  if (o->result == SNT_OK) o->result = run_program(d, program, ref->symbols, o->ports, o->count, &o->diag);
  if (o->result == SNT_OK) compare(o, ref);
  snt_program_destroy(program);
}

static void check_bits(const target *d, const pattern *p, const outcome *a, const outcome *b) {
  uint32_t other = 0; /* ports whose bits differ; their names went with the program */
  for (uint32_t i = 0; i < a->count; i++)
    other += a->ports[i].info.kind == SNT_PORT_OUTPUT && memcmp(a->ports[i].data, b->ports[i].data, a->ports[i].bytes) != 0;
  tap_is_int(other, 0, "%s on %s%s%s: strict, fused and unfused: outputs whose bits differ", p->name, d->selector,
             d->mask ? " masked " : "", d->mask ? d->mask : "");
}

static void check_pattern(const target *d, const pattern *p, bool with_strict) {
  reference ref = {.symbols = {0}};
  outcome out[VARIANTS];
  ir_arena_init(&ref.arena, NULL);
  expr_pool_init(&ref.pool, &ref.arena);
  ir_graph_init(&ref.graph, &ref.arena, &ref.pool);
  const uint32_t wanted = with_strict ? VARIANTS : 1;
  for (uint32_t i = 0; i < wanted; i++) {
    outcome *o = &out[i];
    run_variant(d, p, &variants[i], &ref, o);
    const bool good = tap_ok(o->result == SNT_OK && o->ratio <= 1, "%s on %s%s%s, %s: %u kernels, max(error / bound) %.3g", p->name,
                             d->selector, d->mask ? " masked " : "", d->mask ? d->mask : "", variants[i].name, o->kernels, o->ratio);
    if (!good) tap_diag("  %s: %s", snt_result_text(o->result), o->diag.text);
  }
  if (wanted > 2 && out[1].result == SNT_OK && out[2].result == SNT_OK) check_bits(d, p, &out[1], &out[2]);
  for (uint32_t i = 0; i < wanted; i++) free_ports(out[i].ports, out[i].count);
  ir_arena_free(&ref.arena);
}

static void check_device(target *d) {
  snt_diag diag = {0};
  const snt_open_info info = {.head = SNT_HEAD(open_info), .selector = d->selector, .mask = d->mask};
  const bool small = strstr(d->selector, "oclgrind") || (strstr(d->selector, "rusticl") && d->every > 1);
  if (snt_device_open(t.context, &info, &d->device, &diag) != SNT_OK) {
    tap_skip("%s is not here: %s", d->selector, diag.text);
    return;
  }
  const bool known = tap_ok(snt_device_profile(d->device, &d->profile) == SNT_OK, "%s has a profile", d->selector);
  for (uint32_t i = 0, number = 0; known && i < t.pattern_count; i++) {
    if (t.patterns[i].large || (small && !t.patterns[i].tiny) || number++ % d->every) continue;
    check_pattern(d, &t.patterns[i], (number - 1) / d->every % d->strict_every == 0);
  }
  snt_profile_destroy(d->profile);
  snt_device_destroy(d->device);
}

#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* All patterns everywhere are for SNT_TEST_FULL, for a single pattern, and for the host's own; the sanitizers' build leaves out what only other code
   would be run for. */
static bool is_wanted(target *d) {
  const bool own = !strcmp(d->selector, "host") || !strcmp(d->selector, "interp");
  if (getenv("SNT_TEST_FULL") || t.only_name || own) d->every = d->strict_every = 1;
  else if (SANITIZED) d->every *= 4;
  return getenv("SNT_TEST_FULL") || !SANITIZED || own || (!strcmp(d->selector, "vulkan:llvmpipe") && !d->mask);
}

static void check_devices(void) {
  target targets[] = {{.selector = "host"},
                      {.selector = "interp"},
                      {.selector = "opencl:pocl", .every = 3, .strict_every = 3},
                      {.selector = "opencl:rusticl", .every = 3, .strict_every = UINT32_MAX},
                      {.selector = "vulkan:llvmpipe", .every = 1, .strict_every = 3},
                      {.selector = "vulkan:llvmpipe", .mask = "vulkan11-min", .every = 3, .strict_every = UINT32_MAX},
                      {.selector = "vulkan:swiftshader", .every = 3, .strict_every = UINT32_MAX},
                      {.selector = "cuda-text", .every = 9, .strict_every = UINT32_MAX},
                      {.selector = "opencl:oclgrind", .every = 1, .strict_every = 1}};
  for (uint32_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    target *d = &targets[i];
    if (t.only_device && strcmp(t.only_device, d->selector)) continue;
    if (t.only_mask && !d->mask) d->mask = t.only_mask;
    if (!is_wanted(d)) tap_diag("%s: with SNT_TEST_FULL", d->selector);
    else {
      if (d->every > 1) tap_diag("%s: one pattern in %u; all with SNT_TEST_FULL", d->selector, d->every);
      check_device(d);
    }
  }
}

int main(int argc, char **argv) {
  host_env env;
  host_cache *cache = NULL;
  snt_diag wrong = {.head = SNT_HEAD(diag)};
  if (host_read_env(&env, &wrong) != SNT_OK) tap_bail_out(wrong.text);
  setenv("OCLGRIND_UNINITIALIZED", "0", 0); /* that check of Oclgrind 21.10 itself crashes on vectors in private arrays */
  host_prepare_drivers(NULL);
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "counts")) t.counts = true;
    else if (!strncmp(argv[i], "mask=", 5)) t.only_mask = argv[i] + 5;
    else if (strchr(argv[i], ':') || !strcmp(argv[i], "host") || !strcmp(argv[i], "interp") || !strcmp(argv[i], "cuda-text"))
      t.only_device = argv[i];
    else t.only_name = argv[i];
  }
  snt_context_info info = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION};
  if (env.cache_dir && host_cache_open(env.cache_dir, env.cache_bytes, &cache, NULL) == SNT_OK)
    info.cache = (snt_cache_io){cache, host_cache_get, host_cache_set};
  if (snt_context_create(&info, &t.context) != SNT_OK || snt_context_add_backend(t.context, host_cuda_text()) != SNT_OK)
    tap_bail_out("no context");
  if (tap_ok(read_table(), "the table of patterns is read")) {
    for (uint32_t i = 0; i < t.row_count && !t.only_device; i++) check_count(&t.rows[i]);
    if (!t.counts) check_devices();
  }
  for (uint32_t i = 0; i < t.pattern_count; i++) {
    snt_graph_destroy(t.patterns[i].graph);
    free(t.patterns[i].text);
  }
  snt_context_destroy(t.context);
  host_cache_close(cache);
  return tap_done();
}
