/* How else a case's program is made and run, a row a way: see ways.h. */
#include "conformance/ways.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3, NAMES = 160 };

static void blame(conform_verdict *v, const char *words) { /* the way at hand, in front of what is wrong */
  if (v->result != CONFORM_FAIL) return;
  char detail[CONFORM_DETAIL];
  memcpy(detail, v->detail, sizeof detail);
  snprintf(v->detail, sizeof v->detail, "%s: %.*s", words, (int)(sizeof v->detail / 2), detail);
}

static source same_inputs(const way_case *c) {
  return (source){.graph = c->graph, .given = &c->first->ports, .symbols = c->graph->symbols};
}

static uint32_t port_of(const way_case *c, bool output, uint32_t number) {
  uint32_t inputs = 0;
  while (inputs < c->first->ports.count && c->first->ports.at[inputs].info.kind != SNT_PORT_OUTPUT) inputs++;
  return output ? inputs + number : number;
}

/* ---- the same program ---- */

static snt_result run_same(const way_case *c, attempt *a, conform_verdict *v, snt_diag *diag) {
  source s = same_inputs(c);
  const snt_result r = attempt_run(a, &s, v, diag);
  if (r == SNT_OK) attempt_compare_bits(&c->first->ports, &a->ports, "two runs of one program", v);
  return r;
}

static snt_result run_loaded(const way_case *c, conform_verdict *v, snt_diag *diag) {
  attempt a = {.device = c->first->device};
  size_t size = 0;
  snt_result r = snt_program_save(c->first->program, NULL, &size);
  void *blob = r >= 0 ? malloc(size) : NULL;
  if (r >= 0) r = blob ? snt_program_save(c->first->program, blob, &size) : SNT_E_HOST_MEM;
  if (r == SNT_OK) r = snt_program_load(c->d->context, blob, size, &a.program, diag);
  if (r == SNT_OK) r = snt_exec_create(a.device, a.program, NULL, &a.exec, diag);
  if (r == SNT_OK) r = run_same(c, &a, v, diag);
  attempt_end(&a);
  free(blob);
  return r;
}

static void *copy_of(const port *p) {
  void *copy = malloc(p->bytes + 1);
  return copy ? memcpy(copy, p->data, p->bytes) : NULL;
}

/* In host memory, which the library moves to the device and back. */
static snt_result run_host(const way_case *c, conform_verdict *v, snt_diag *diag) {
  ports all;
  source s = same_inputs(c);
  snt_argument arguments[MAX_PORTS];
  memset(arguments, 0, sizeof arguments);
  snt_result r = attempt_make_ports(c->first->program, &s, &all) ? SNT_OK : SNT_E_HOST_MEM;
  for (uint32_t i = 0; i < all.count && i < MAX_PORTS; i++)
    arguments[i] = (snt_argument){.port = i, .host = all.at[i].data, .bytes = all.at[i].bytes};
  const snt_run_info run = {.head = SNT_HEAD(run_info),
                            .argument_count = all.count,
                            .arguments = arguments,
                            .symbols = s.symbols,
                            .symbol_count = snt_program_symbol_count(c->first->program)};
  if (r == SNT_OK) r = snt_run(c->first->exec, &run, diag);
  for (uint32_t i = 0; r == SNT_OK && i < all.count; i++)
    if (all.at[i].info.kind == SNT_PORT_STATE) all.at[i].after = all.at[i].data, all.at[i].data = copy_of(&c->first->ports.at[i]);
  if (r == SNT_OK) attempt_compare_bits(&c->first->ports, &all, "buffers and host memory", v);
  attempt_free_ports(&all);
  return r;
}

/* An exec that is made for the least extents and grows. */
static snt_result run_grown(const way_case *c, conform_verdict *v, snt_diag *diag) {
  static const int64_t least[3] = {4, 4, 4};
  attempt a = {.device = c->first->device};
  const uint32_t count = snt_program_symbol_count(c->first->program);
  if (!count || count > 3) return SNT_OK;
  const snt_exec_info info = {.head = SNT_HEAD(exec_info), .flags = SNT_EXEC_APART, .max_symbols = least, .symbol_count = count};
  snt_result r = snt_exec_create(a.device, c->first->program, &info, &a.exec, diag);
  a.program = c->first->program;
  if (r == SNT_OK) r = run_same(c, &a, v, diag);
  attempt_end_run(&a);
  snt_exec_destroy(a.exec);
  return r;
}

/* Several execs at once, each on a thread of its own. */
typedef struct racer {
  const way_case *c;
  attempt a;
  conform_verdict v;
  snt_diag diag;
  snt_result r;
} racer;

static void *race(void *user) {
  racer *me = user;
  me->r = snt_exec_create(me->a.device, me->c->first->program, NULL, &me->a.exec, &me->diag);
  me->a.program = me->c->first->program;
  for (uint32_t i = 0; me->r == SNT_OK && i < STEPS; i++) {
    me->r = run_same(me->c, &me->a, &me->v, &me->diag);
    attempt_end_run(&me->a);
    me->a = (attempt){.device = me->a.device, .program = me->a.program, .exec = me->a.exec};
  }
  snt_exec_destroy(me->a.exec);
  return NULL;
}

static snt_result run_threads(const way_case *c, conform_verdict *v, snt_diag *diag) {
  racer two[2];
  pthread_t thread;
  for (uint32_t i = 0; i < 2; i++) two[i] = (racer){.c = c, .a = {.device = c->first->device}};
  const bool other = !pthread_create(&thread, NULL, race, &two[1]);
  race(&two[0]);
  if (other) pthread_join(thread, NULL);
  for (uint32_t i = 0; i < 1u + other; i++) {
    if (two[i].r != SNT_OK) return *diag = two[i].diag, two[i].r;
    if (two[i].v.result != CONFORM_PASS && v->result == CONFORM_PASS) *v = two[i].v;
  }
  return SNT_OK;
}

/* ---- other extents, then the first again ---- */

/* The next multiple that the symbol may be; false: it may not be so large, or so small. */
static bool fit_symbol(const snt_program *program, uint32_t number, int64_t *value) {
  snt_symbol known;
  if (snt_program_symbol(program, number, &known) != SNT_OK) return false;
  const int64_t step = known.multiple_of > 1 ? known.multiple_of : 1;
  *value = (*value + step - 1) / step * step;
  return *value >= known.min && *value <= known.max;
}

static snt_result run_extents(const way_case *c, conform_verdict *v, snt_diag *diag) {
  static const int64_t others[][3] = {{4, 4, 4}, {5, 31, 7}, {61, 4, 5}, {4, 5, 67}, {1, 1, 1}, {2, 3, 1}, {1, 37, 2}};
  const uint32_t count = snt_program_symbol_count(c->first->program);
  snt_result r = SNT_OK;
  if (!count || count > 3) return SNT_OK;
  for (uint32_t i = 0; r == SNT_OK && v->result == CONFORM_PASS && i < sizeof others / sizeof *others; i++) {
    conform_graph *graph = malloc(sizeof *graph);
    if (!graph) return SNT_E_HOST_MEM;
    *graph = *c->graph;
    memcpy(graph->symbols, others[i], sizeof graph->symbols);
    bool fits = true;
    for (uint32_t k = 0; k < count; k++) fits = fits && fit_symbol(c->first->program, k, &graph->symbols[k]);
    if (!fits) {
      free(graph);
      continue;
    }
    attempt a = {.device = c->first->device, .program = c->first->program, .exec = c->first->exec};
    source s = {.graph = graph, .low = c->low, .high = c->high, .state = c->seed, .symbols = graph->symbols};
    r = attempt_run(&a, &s, v, diag);
    if (r == SNT_OK) r = attempt_hold(graph, c->path, &a.ports, v, diag);
    attempt_end_run(&a);
    char which[40];
    const int64_t *are = graph->symbols;
    snprintf(which, sizeof which, "%lld, %lld, %lld", (long long)are[0], (long long)are[1], (long long)are[2]);
    blame(v, which);
    free(graph);
  }
  attempt a = {.device = c->first->device, .program = c->first->program, .exec = c->first->exec};
  if (r == SNT_OK && v->result == CONFORM_PASS) r = run_same(c, &a, v, diag);
  attempt_end_run(&a);
  return r;
}

/* ---- another program of the graph ---- */

static snt_result hold_other(const way_case *c, const char *text, const recipe *how, conform_verdict *v, snt_diag *diag) {
  attempt a = {.program = NULL}, unfused = {.program = NULL};
  source s = same_inputs(c);
  recipe made = *how;
  made.runs = c->runs;
  snt_result r = attempt_make(c->d, text, &s, &made, &a, v, diag);
  if (r == SNT_OK) r = attempt_hold(c->graph, c->path, &a.ports, v, diag);
  const bool strict = c->runs & STRICT_RUN,
             own = strict && how->compile_flags & SNT_COMPILE_NO_REWRITES; /* rewrites may lay out sums otherwise */
  made.runs |= UNFUSED_RUN;
  if (r == SNT_OK && own) r = attempt_make(c->d, text, &s, &made, &unfused, v, diag);
  if (r == SNT_OK && strict) attempt_compare_bits(own ? &unfused.ports : &c->first->ports, &a.ports, "two programs in STRICT", v);
  attempt_end(&a);
  attempt_end(&unfused);
  return r;
}

static snt_result make_without_rewrites(const way_case *c, conform_verdict *v, snt_diag *diag) {
  return hold_other(c, c->graph->text, &(recipe){.compile_flags = SNT_COMPILE_NO_REWRITES}, v, diag);
}
static snt_result make_of_nodes(const way_case *c, conform_verdict *v, snt_diag *diag) {
  return hold_other(c, c->graph->text, &(recipe){.compile_flags = SNT_COMPILE_UNFUSED_NODES}, v, diag);
}

static snt_result make_in_budget(const way_case *c, conform_verdict *v, snt_diag *diag) {
  const snt_result r = hold_other(c, c->graph->text, &(recipe){.peak_bytes = 4096}, v, diag);
  return r == SNT_E_LIMIT ? SNT_OK : r;
}

/* The names of a text's lines. */
static uint32_t line_names(const char *text, char names[NAMES][32]) {
  uint32_t count = 0;
  for (const char *at = strstr(text, "\n  %"); at && count < NAMES; at = strstr(at + 1, "\n  %")) {
    const size_t length = strcspn(at + 4, " :,\n");
    if (!length || length > 31 || strspn(at + 4, "0123456789") == length) continue;
    snprintf(names[count++], 32, "%.*s", (int)length, at + 4);
  }
  return count;
}

static uint64_t next(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

static snt_result steer(snt_graph *g, const recipe *how) {
  char names[NAMES][32];
  uint64_t state = how->seed;
  const uint32_t count = line_names(how->text, names);
  for (uint32_t i = 0; count && i < 6; i++) {
    const uint32_t kind = how->seed % 2 ? SNT_NEVER_FUSE + (uint32_t)(next(&state) % 3) : SNT_MUST_FUSE,
                   at = (uint32_t)(next(&state) % count);
    const snt_value two[2] = {snt_graph_find(g, names[at]), snt_graph_find(g, names[(at + 1) % count])};
    const uint32_t of = kind <= SNT_NEVER_FUSE ? 2 : 1;
    if (!two[0] || !two[1] || two[0] == two[1]) continue;
    const snt_result r = snt_graph_contract(g, kind, two, of);
    if (r != SNT_OK) return r;
    if (kind == SNT_MUST_FUSE) break;
  }
  return SNT_OK;
}

static snt_result make_steered(const way_case *c, conform_verdict *v, snt_diag *diag) {
  const recipe how = {.steer = steer, .text = c->graph->text, .seed = c->seed | 1};
  return hold_other(c, c->graph->text, &how, v, diag);
}
static snt_result make_must(const way_case *c, conform_verdict *v, snt_diag *diag) {
  const recipe how = {.steer = steer, .text = c->graph->text, .seed = c->seed & ~UINT64_C(1)};
  const snt_result r = hold_other(c, c->graph->text, &how, v, diag);
  return r == SNT_E_CONTRACT ? SNT_OK : r;
}

/* ---- an input that an output of its type replaces, as a state ---- */

typedef struct state_pair {
  uint32_t input, output;
} state_pair;

static bool same_type(const ir_tensor *a, const ir_tensor *b) {
  return a->dtype == b->dtype && a->rank == b->rank && !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims);
}

static bool find_state(const ir_graph *g, state_pair *out) {
  for (uint32_t i = g->inputs.count; i-- > 0;)
    for (uint32_t o = 0; o < g->outputs.count; o++)
      if (ir_at(g, g->inputs.at[i].node)->op == IR_OP_input &&
          same_type(&ir_at(g, g->inputs.at[i].node)->type, &ir_at(g, g->outputs.at[o].node)->type) &&
          g->inputs.at[i].node != g->outputs.at[o].node) {
        *out = (state_pair){i, o};
        return true;
      }
  return false;
}

static bool state_text(const way_case *c, state_pair *which, char out[CONFORM_TEXT]) {
  conform_parsed p;
  bool good = conform_parse(&p, c->graph->text, NULL) == SNT_OK && find_state(&p.graph, which);
  char input[48] = "", label[48] = "", value[64] = "";
  if (good) {
    snprintf(input, sizeof input, "%%%.40s:", ir_node_name(&p.graph, p.graph.inputs.at[which->input].node));
    snprintf(label, sizeof label, "%.40s=%%", &p.graph.names.at[p.graph.outputs.at[which->output].name]);
  }
  conform_forget(&p);
  const char *text = c->graph->text, *head = good ? strstr(text, "graph @") : NULL, *port = head ? strstr(head, input) : NULL;
  const char *back = head ? strstr(head, "\n  return ") : NULL, *said = back ? strstr(back, label) : NULL;
  if (!port || !said || port > back || (said[-1] != ' ' && said[-1] != ',')) return false;
  const size_t length = strcspn(said + strlen(label), ", \n}");
  snprintf(value, sizeof value, "%.*s", (int)(length < 60 ? length : 60), said + strlen(label));
  input[strlen(input) - 1] = 0;
  const int size = snprintf(out, CONFORM_TEXT, "%.*sstate %.*s\n  update %s, %%%s%s", (int)(port - text), text, (int)(back - port), port,
                            input, value, back);
  return size > 0 && size < CONFORM_TEXT;
}

/* Its first contents given, one step: the outputs of the graph, and the output that it becomes. */
static snt_result make_given_state(const way_case *c, conform_verdict *v, snt_diag *diag) {
  char text[CONFORM_TEXT];
  state_pair which;
  attempt a = {.program = NULL};
  source s = same_inputs(c);
  if (!state_text(c, &which, text)) return SNT_OK;
  snt_result r = attempt_make(c->d, text, &s, &(recipe){.runs = c->runs}, &a, v, diag);
  if (r == SNT_OK) r = attempt_hold(c->graph, c->path, &a.ports, v, diag);
  if (r == SNT_OK && c->runs & STRICT_RUN) attempt_compare_bits(&c->first->ports, &a.ports, "an input and a state", v);
  if (r == SNT_OK && v->result == CONFORM_PASS) {
    ports kept = a.ports; /* what the state has become, as if it were the output */
    kept.at[port_of(c, true, which.output)].data = a.ports.at[which.input].after;
    r = attempt_hold(c->graph, c->path, &kept, v, diag);
    blame(v, "the state");
  }
  attempt_end(&a);
  return r;
}

static bool has_state(const ports *all) {
  for (uint32_t i = 0; i < all->count; i++)
    if (all->at[i].info.kind == SNT_PORT_STATE) return true;
  return false;
}

/* Its contents kept by the exec, from zero: several steps, each as the graph says of the contents before. A graph with a state of its own, which would be
   kept, too, is left out. */
static snt_result make_kept_state(const way_case *c, conform_verdict *v, snt_diag *diag) {
  char text[CONFORM_TEXT];
  state_pair which;
  attempt a = {.program = NULL};
  ports given = c->first->ports;
  if (!(c->runs & STRICT_RUN) || has_state(&given) || !state_text(c, &which, text)) return SNT_OK;
  const uint64_t bytes = given.at[which.input].bytes;
  void *contents = calloc(1, bytes + 1);
  snt_result r = contents ? attempt_build(c->d, text, &(recipe){.runs = c->runs}, &a, v, diag) : SNT_E_HOST_MEM;
  given.at[which.input].data = contents;
  for (uint32_t step = 0; r == SNT_OK && v->result == CONFORM_PASS && step < 2 * STEPS; step++) {
    attempt plain = {.device = c->first->device, .program = c->first->program, .exec = c->first->exec};
    source s = {.graph = c->graph, .given = &given, .symbols = c->graph->symbols};
    if (step == STEPS) memset(contents, 0, bytes), r = snt_exec_reset_states(a.exec, diag);
    if (r == SNT_OK) r = attempt_run(&plain, &s, v, diag);
    if (r == SNT_OK) a.holds = true, r = attempt_run(&a, &s, v, diag);
    if (r == SNT_OK) attempt_compare_bits(&plain.ports, &a.ports, "an input and a state that the exec keeps", v);
    char words[24];
    snprintf(words, sizeof words, "step %u", step);
    blame(v, words);
    if (r == SNT_OK) memcpy(contents, plain.ports.at[port_of(c, true, which.output)].data, bytes);
    attempt_end_run(&plain);
    attempt_end_run(&a);
    a = (attempt){.device = a.device, .program = a.program, .exec = a.exec};
  }
  attempt_end(&a);
  free(contents);
  return r;
}

static const struct way {
  const char *words;
  snt_result (*hold)(const way_case *, conform_verdict *, snt_diag *);
} ways[] = {
    {"saved and loaded", run_loaded},
    {"host memory", run_host},
    {"an exec made for less", run_grown},
    {"two execs at once", run_threads},
    {"other extents", run_extents},
    {"without rewrites", make_without_rewrites},
    {"one kernel a node", make_of_nodes},
    {"4096 bytes of scratch", make_in_budget},
    {"never_fuse, keep, barrier", make_steered},
    {"must_fuse", make_must},
    {"a state that is given", make_given_state},
    {"a state that is kept", make_kept_state},
};

snt_result conform_ways(const way_case *c, conform_verdict *v, snt_diag *diag) {
  snt_result r = SNT_OK;
  for (uint32_t i = 0; r == SNT_OK && v->result == CONFORM_PASS && i < sizeof ways / sizeof *ways; i++) {
    r = ways[i].hold(c, v, diag);
    blame(v, ways[i].words);
    if (r == SNT_E_UNSUPPORTED) r = SNT_OK; /* without rewrites, say, a small device may lack what the rewritten graph does without */
    if (r == SNT_OK) continue;
    char text[sizeof diag->text];
    memcpy(text, diag->text, sizeof text);
    snprintf(diag->text, sizeof diag->text, "%s: %.180s", ways[i].words, text);
  }
  return r;
}
