/* Partitions of a graph. The passes before grouping are run once and their result is printed: on that text never_fuse, must_fuse and keep between
   neighbours say which groups may form. What the compiler refuses is no partition; what makes the same groups is one. */
#include "bench/cost.h"
#include <stdlib.h>
#include <string.h>

enum { ATTEMPTS = 90 };

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

/* Random contracts: cuts at a rate of their own, now and then a pair that must be one kernel or a value that is kept. */
static void add_contracts(cost_bench *b, snt_graph *g) {
  static const uint8_t rates[] = {0, 10, 25, 50, 75};
  cost_flow flows[COST_BENCH_FLOWS];
  const uint32_t count = cost_find_flows(&g->graph, flows), rate = rates[cost_random_below(b, IR_COUNT(rates))];
  const uint32_t musts = cost_random_below(b, 5) < 2 || !rate ? 1 + cost_random_below(b, 3) : 0;
  const uint32_t keeps = cost_random_below(b, 5) == 0 ? 1 : 0;
  if (!count) return;
  for (uint32_t i = 0; i < count; i++) {
    if (cost_random_below(b, 100) >= rate) continue;
    (void)snt_graph_contract(g, SNT_NEVER_FUSE, (const snt_value[]){flows[i].from, flows[i].to}, 2);
    flows[i].from = 0;
  }
  for (uint32_t i = 0; i < musts; i++) {
    const cost_flow *f = &flows[cost_random_below(b, count)];
    if (!f->from) continue;
    (void)snt_graph_contract(g, SNT_MUST_FUSE, (const snt_value[]){f->from, f->to}, 2);
  }
  for (uint32_t i = 0; i < keeps; i++) {
    const cost_flow *f = &flows[cost_random_below(b, count)];
    if (!f->from) continue;
    (void)snt_graph_contract(g, SNT_KEEP, &f->from, 1);
  }
}

/* The same kernels in the same order are the same partition, whichever views, which cost nothing, stand in which group. */
static uint64_t key_of(const snt_exec *x) {
  const snt_program *p = x->program;
  uint64_t key = p->plan.steps.count;
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

static void drop(partition *p) {
  snt_exec_destroy(p->exec);
  snt_program_destroy(p->program);
}

/* The program becomes a partition, or goes if it is one already. Its kernels are not built yet. */
snt_result cost_add_partition(cost_bench *b, snt_program *program) {
  partition p = {.program = program};
  const snt_exec_info apart = {.head = SNT_HEAD(exec_info), .flags = SNT_EXEC_APART}; /* as the model prices them */
  const snt_result r = snt_exec_create(b->device, p.program, &apart, &p.exec, &b->diag);
  if (r == SNT_OK) p.key = key_of(p.exec);
  if (r != SNT_OK || known(b, p.key)) {
    drop(&p);
    return r;
  }
  p.steps = p.program->plan.steps.count;
  cost_predict(b, &p);
  b->parts[b->count++] = p;
  return SNT_OK;
}

snt_result cost_parse_base(cost_bench *b, snt_graph **out) { return parse(b, b->base, b->base_length, out); }

/* attempt 0: as the compiler chooses; 1: unfused; then random. A refused or known one is left out. */
static snt_result try_partition(cost_bench *b, uint32_t attempt) {
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .flags = attempt == 1 ? SNT_COMPILE_UNFUSED : 0};
  snt_program *program = NULL;
  snt_graph *g = NULL;
  SNT_TRY(cost_parse_base(b, &g));
  if (attempt > 1) add_contracts(b, g);
  const bool compiled = snt_compile(g, b->profile, &info, &program, &b->diag) == SNT_OK;
  snt_graph_destroy(g);
  if (!compiled) return attempt ? SNT_OK : b->diag.result;
  return cost_add_partition(b, program);
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
  while (b->count > b->wanted) drop(&b->parts[--b->count]);
}

snt_result cost_make_partitions(cost_bench *b, const char *text, size_t length) {
  const uint32_t pool = b->best ? 4 * b->wanted : b->wanted, most = pool < COST_BENCH_PARTITIONS ? pool : COST_BENCH_PARTITIONS;
  SNT_TRY(cost_find_base(b, text, length));
  for (uint32_t i = 0; i < ATTEMPTS * (b->best ? 4 : 1) && b->count < most; i++) SNT_TRY(try_partition(b, i));
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
  for (uint32_t i = 0; i < b->count; i++) drop(&b->parts[i]);
  memset(b->parts, 0, sizeof b->parts);
  b->count = 0;
  free(b->base);
  b->base = NULL;
}
