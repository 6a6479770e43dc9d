/* Partitions of a graph. The passes before grouping are run once and their result is printed: on that text never_fuse, must_fuse and keep between
   neighbours say which groups may form, and a profile on which fusions may cost something (`least_saving`) finds those that prices refuse: recomputing in every
   reader, producers in reductions and contractions. What the compiler refuses is no partition; what makes the same kernels is one. */
#include "bench/cost.h"
#include <stdlib.h>
#include <string.h>

enum { ATTEMPTS = 150 };

void cost_begin_random(cost_bench *b, const char *name) { b->random = ir_hash64(b->seed, name, strlen(name)); }

uint32_t cost_random_below(cost_bench *b, uint32_t n) {
  b->random = b->random * 6364136223846793005u + 1442695040888963407u;
  return n ? (uint32_t)((b->random >> 33) % n) : 0;
}

/* ---- the working graph ---- */

static void SNT_CALL keep_text(void *user, const char *stage, const char *text, size_t length) {
  cost_bench *b = user;
  if (strcmp(stage, "ports")) return; /* the last pass before grouping */
  free(b->base);
  b->base = malloc(length + 1);
  b->base_length = b->base ? length : 0;
  if (b->base) memcpy(b->base, text, length);
}

static snt_result parse(cost_bench *b, const char *text, size_t length, snt_graph **out) {
  snt_result r = snt_graph_create(b->context, out);
  if (r != SNT_OK) return r;
  r = snt_graph_parse(*out, text, length, NULL, &b->diag);
  if (r == SNT_OK) r = snt_graph_verify(*out, &b->diag);
  if (r == SNT_OK) return r;
  snt_graph_destroy(*out);
  *out = NULL;
  return r;
}

snt_result cost_find_base(cost_bench *b, const char *text, size_t length) {
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .user = b, .dump = keep_text};
  snt_graph *g = NULL;
  snt_program *p = NULL;
  free(b->base);
  b->base = NULL;
  snt_result r = parse(b, text, length, &g);
  if (r == SNT_OK) r = snt_compile(g, b->profile, &info, &p, &b->diag);
  snt_program_destroy(p);
  snt_graph_destroy(g);
  return r == SNT_OK && !b->base ? SNT_E_HOST_MEM : r;
}

/* ---- one partition ---- */

static bool computes(const ir_graph *g, uint32_t node) {
  return node && !(ir_ops[ir_at(g, node)->op].flags & IR_SOURCE) && !fusion_is_free(g, node);
}

uint32_t cost_find_flows(const ir_graph *g, cost_flow *out) {
  uint32_t count = 0;
  for (uint32_t n = 1; n < g->nodes.count; n++)
    for (uint32_t i = 0; computes(g, n) && i < ir_at(g, n)->arity && count < COST_BENCH_FLOWS; i++) {
      const uint32_t from = fusion_through_views(g, ir_arg(g, n, i));
      if (computes(g, from)) out[count++] = (cost_flow){from, n};
    }
  return count;
}

static void never(snt_graph *g, cost_flow *f) {
  (void)snt_graph_contract(g, SNT_NEVER_FUSE, (const snt_value[]){f->from, f->to}, 2);
  f->from = 0;
}

static void must(snt_graph *g, const cost_flow *f) { (void)snt_graph_contract(g, SNT_MUST_FUSE, (const snt_value[]){f->from, f->to}, 2); }

/* Contracts by chance: cuts at a rate of their own, now and then a pair that must be one kernel or a value that is kept. */
static void ask_anything(cost_bench *b, snt_graph *g, cost_flow *flows, uint32_t count) {
  static const uint8_t rates[] = {0, 10, 25, 50, 75};
  const uint32_t rate = rates[cost_random_below(b, IR_COUNT(rates))];
  const uint32_t musts = cost_random_below(b, 5) < 2 || !rate ? 1 + cost_random_below(b, 3) : 0;
  const bool keeps = cost_random_below(b, 5) == 0;
  for (uint32_t i = 0; i < count; i++)
    if (cost_random_below(b, 100) < rate) never(g, &flows[i]);
  for (uint32_t i = 0; i < musts; i++) {
    const cost_flow *f = &flows[cost_random_below(b, count)];
    if (f->from) must(g, f);
  }
  const cost_flow *f = &flows[cost_random_below(b, count)];
  if (keeps && f->from) (void)snt_graph_contract(g, SNT_KEEP, &f->from, 1);
}

static bool inside_group(const cost_bench *b, const cost_flow *f) {
  return b->group_of[f->from] && b->group_of[f->from] != UINT32_MAX && b->group_of[f->from] == b->group_of[f->to];
}

/* The chosen plan with up to four of its kernels' inner edges cut. */
static void ask_cuts(cost_bench *b, snt_graph *g, cost_flow *flows, uint32_t count) {
  enum { MOST = 4 };
  uint32_t inner = 0;
  for (uint32_t i = 0; i < count; i++)
    if (inside_group(b, &flows[i])) flows[inner++] = flows[i];
  for (uint32_t i = 1 + cost_random_below(b, MOST); inner && i > 0; i--) {
    cost_flow *f = &flows[cost_random_below(b, inner)];
    if (f->from) never(g, f);
  }
}

/* The chosen plan fused further: all that is legal and costs no more than a share of the plan each (`eager_by`), but for edges between
   kernels that are kept by chance; now and then with two readers of one value that must be one kernel. */
static void ask_further(cost_bench *b, snt_graph *g, cost_flow *flows, uint32_t count) {
  static const uint8_t rates[] = {0, 20, 40, 70};
  const uint32_t rate = rates[cost_random_below(b, IR_COUNT(rates))];
  const cost_flow *one = &flows[cost_random_below(b, count)], *other = &flows[cost_random_below(b, count)];
  if (one->from == other->from && one->to != other->to) must(g, &(cost_flow){one->to, other->to});
  for (uint32_t i = 0; i < count; i++)
    if (!inside_group(b, &flows[i]) && cost_random_below(b, 100) < rate) never(g, &flows[i]);
}
static double eager_by(cost_bench *b) {
  static const double shares[] = {0.02, 0.1, 0.3, 1, 3};
  return shares[cost_random_below(b, IR_COUNT(shares))] * b->parts[0].predicted[MODEL_FULL];
}

static void add_contracts(cost_bench *b, snt_graph *g, partition_origin made) {
  static void (*const ask[MADE_COUNT])(cost_bench *, snt_graph *, cost_flow *,
                                       uint32_t) = {[MADE_CUT] = ask_cuts, [MADE_FURTHER] = ask_further, [MADE_RANDOM] = ask_anything};
  cost_flow flows[COST_BENCH_FLOWS];
  const uint32_t count = cost_find_flows(&g->graph, flows);
  if (ask[made] && count) ask[made](b, g, flows, count);
}

uint32_t *cost_note_groups(const snt_program *p, uint32_t values) {
  const fusion_context *c = &p->fusion;
  uint32_t *group_of = calloc(values, sizeof *group_of);
  for (uint32_t i = 0; group_of && i < c->order_count; i++) {
    const fusion_group *g = &c->groups.at[c->order[i]];
    for (uint32_t k = 0; k < g->count; k++) {
      const uint32_t origin = ir_at(c->graph, g->nodes[k])->origin;
      if (origin && origin < values) group_of[origin] = group_of[origin] ? UINT32_MAX : i + 1;
    }
  }
  return group_of;
}

/* The same kernels in the same order are the same partition, whichever views, which cost nothing, stand in which group. */
static uint64_t key_of(const snt_exec *x) {
  const snt_program *p = x->program;
  uint64_t key = 2 * p->plan.steps.count + x->near;
  for (uint32_t i = 0; i < p->plan.steps.count; i++) {
    uint8_t code[32];
    api_code_key(&p->kernels[p->plan.steps.at[i].kernel].code[x->target], x->target, code);
    key = ir_hash64(key, code, sizeof code);
  }
  return key;
}

static bool known(const cost_bench *b, uint64_t key) {
  for (uint32_t i = 0; i < b->count; i++)
    if (b->parts[i].key == key) return true;
  return false;
}

snt_result cost_make_exec(cost_bench *b, const snt_program *program, bool apart, snt_exec **out) {
  const snt_exec_info info = {.head = SNT_HEAD(exec_info), .flags = apart ? SNT_EXEC_APART : 0};
  return snt_exec_create(b->device, program, &info, out, &b->diag);
}

void cost_drop_partition(partition *p) {
  snt_exec_destroy(p->exec);
  snt_program_destroy(p->program);
}

/* The program becomes a partition, or goes if it is one already. Its kernels are not built yet. */
snt_result cost_add_partition(cost_bench *b, snt_program *program, partition_origin made) {
  partition p = {.program = program, .made = made};
  const snt_result r = cost_make_exec(b, p.program, b->apart, &p.exec);
  if (r == SNT_OK) p.key = key_of(p.exec);
  if (r != SNT_OK || known(b, p.key)) {
    cost_drop_partition(&p);
    return r;
  }
  p.steps = p.program->plan.steps.count;
  cost_predict(b, &p);
  b->parts[b->count++] = p;
  return SNT_OK;
}

snt_result cost_parse_base(cost_bench *b, snt_graph **out) { return parse(b, b->base, b->base_length, out); }

/* What is refused, or known already, is left out. */
static snt_result try_partition(cost_bench *b, partition_origin made) {
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .flags = made == MADE_UNFUSED ? SNT_COMPILE_UNFUSED : 0};
  snt_profile profile = *b->profile;
  snt_program *program = NULL;
  snt_graph *g = NULL;
  SNT_TRY(cost_parse_base(b, &g));
  const uint32_t values = g->graph.nodes.count;
  if (made == MADE_FURTHER) profile.profile.least_saving = -eager_by(b);
  add_contracts(b, g, made);
  const bool compiled = snt_compile(g, &profile, &info, &program, &b->diag) == SNT_OK;
  snt_graph_destroy(g);
  if (!compiled) return made == MADE_CHOSEN ? b->diag.result : SNT_OK;
  if (made == MADE_CHOSEN && !(b->group_of = cost_note_groups(program, values))) return SNT_E_HOST_MEM;
  return cost_add_partition(b, program, made);
}

static int by_prediction(const void *a, const void *b) {
  const partition *x = a, *y = b;
  return (x->predicted[MODEL_FULL] > y->predicted[MODEL_FULL]) - (x->predicted[MODEL_FULL] < y->predicted[MODEL_FULL]);
}

/* Behind the first two: the best by the model, then of the others as many as are wanted, by chance. */
static void choose_partitions(cost_bench *b) {
  enum { FIXED = 2 };
  if (b->count <= b->wanted) return;
  qsort(b->parts + FIXED, b->count - FIXED, sizeof *b->parts, by_prediction);
  for (uint32_t i = FIXED + b->best; i < b->wanted; i++) {
    const uint32_t other = i + cost_random_below(b, b->count - i);
    const partition taken = b->parts[other];
    b->parts[other] = b->parts[i];
    b->parts[i] = taken;
  }
  while (b->count > b->wanted) cost_drop_partition(&b->parts[--b->count]);
}

snt_result cost_make_partitions(cost_bench *b, const char *text, size_t length) {
  const uint32_t pool = b->best ? 4 * b->wanted : b->wanted, most = pool < COST_BENCH_PARTITIONS ? pool : COST_BENCH_PARTITIONS;
  SNT_TRY(cost_find_base(b, text, length));
  for (uint32_t i = 0; i < ATTEMPTS * (b->best ? 4 : 1) && b->count < most; i++)
    SNT_TRY(try_partition(b, i < MADE_CUT ? (partition_origin)i : (partition_origin)(MADE_CUT + (i - MADE_CUT) % (MADE_COUNT - MADE_CUT))));
  choose_partitions(b);
  return b->count < b->wanted ? SNT_INCOMPLETE : SNT_OK;
}

void cost_free_buffers(cost_bench *b) {
  for (uint32_t i = 0; i < COST_BENCH_PORTS; i++) {
    snt_buffer_destroy(b->buffers[i]);
    b->buffers[i] = NULL;
  }
}

void cost_free_partitions(cost_bench *b) {
  cost_free_buffers(b);
  for (uint32_t i = 0; i < b->count; i++) cost_drop_partition(&b->parts[i]);
  memset(b->parts, 0, sizeof b->parts);
  b->count = 0;
  free(b->base);
  free(b->group_of);
  b->base = NULL;
  b->group_of = NULL;
}
