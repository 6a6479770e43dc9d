/* The plan that another class would choose, on this device. The other profile's groups of the working graph become contracts, so that this device's own
   schedules make kernels of them: what is compared is what to fuse, not how. In: the working graph of a graph and a second profile. */
#include "bench/cost.h"
#include <stdlib.h>
#include <string.h>

/* Neighbours in one group must be one kernel, others must not. What lies in several groups is left to this device. */
static void add_contracts(snt_graph *g, const uint32_t *group_of, bool musts) {
  cost_flow flows[COST_BENCH_FLOWS];
  const uint32_t count = cost_find_flows(&g->graph, flows);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t a = group_of[flows[i].from], b = group_of[flows[i].to];
    if (!a || !b || a == UINT32_MAX || b == UINT32_MAX || (a == b && !musts)) continue;
    (void)snt_graph_contract(g, a == b ? SNT_MUST_FUSE : SNT_NEVER_FUSE, (const snt_value[]){flows[i].from, flows[i].to}, 2);
  }
}

static snt_result compile_as_other(cost_bench *b, const uint32_t *group_of, bool musts, snt_program **out) {
  const snt_compile_info info = {.head = SNT_HEAD(compile_info)};
  snt_graph *g = NULL;
  SNT_TRY(cost_parse_base(b, &g));
  add_contracts(g, group_of, musts);
  const snt_result r = snt_compile(g, b->profile, &info, out, &b->diag);
  snt_graph_destroy(g);
  return r;
}

snt_result cost_make_versus(cost_bench *b, const snt_profile *other, const char *text, size_t length) {
  const snt_compile_info info = {.head = SNT_HEAD(compile_info)};
  snt_graph *g = NULL;
  snt_program *theirs = NULL, *ours = NULL;
  SNT_TRY(cost_find_base(b, text, length));
  SNT_TRY(cost_parse_base(b, &g));
  const uint32_t values = g->graph.nodes.count;
  snt_result r = snt_compile(g, other, &info, &theirs, &b->diag);
  snt_graph_destroy(g);
  uint32_t *group_of = r == SNT_OK ? cost_note_groups(theirs, values) : NULL;
  if (r == SNT_OK && !group_of) r = SNT_E_HOST_MEM;
  snt_program_destroy(theirs);
  if (r == SNT_OK) r = cost_parse_base(b, &g);
  if (r == SNT_OK) {
    r = snt_compile(g, b->profile, &info, &ours, &b->diag);
    snt_graph_destroy(g);
  }
  if (r == SNT_OK) r = cost_add_partition(b, ours, MADE_CHOSEN);
  /* a pair that this device's schedules refuse is no reason to give up: then only the cuts are the other's */
  if (r == SNT_OK && compile_as_other(b, group_of, true, &theirs) != SNT_OK) r = compile_as_other(b, group_of, false, &theirs);
  if (r == SNT_OK) r = cost_add_partition(b, theirs, MADE_RANDOM);
  free(group_of);
  return r;
}
