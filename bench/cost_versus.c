/* The plan that another class would choose, on this device. The other profile's groups of the working graph become contracts, so that this device's own
   schedules make kernels of them: what is compared is what to fuse, not how. In: the working graph of a graph and a second profile. */
#include "bench/cost.h"
#include <stdlib.h>
#include <string.h>

typedef struct other_groups {
  uint32_t *group_of, count; /* per value of the working graph: group + 1; 0: a view, or in several */
} other_groups;

static void note_groups(const snt_program *p, other_groups *o) {
  const fusion_context *c = &p->fusion;
  for (uint32_t i = 0; i < c->order_count; i++) {
    const fusion_group *g = &c->groups.at[c->order[i]];
    for (uint32_t k = 0; k < g->count; k++) {
      const uint32_t origin = ir_at(c->graph, g->nodes[k])->origin;
      if (origin && origin < o->count) o->group_of[origin] = o->group_of[origin] ? UINT32_MAX : i + 1;
    }
  }
}

/* Neighbours in one group must be one kernel, others must not. What lies in several groups is left to this device. */
static void add_contracts(snt_graph *g, const other_groups *o, bool musts) {
  cost_flow flows[COST_BENCH_FLOWS];
  const uint32_t count = cost_find_flows(&g->graph, flows);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t a = o->group_of[flows[i].from], b = o->group_of[flows[i].to];
    if (!a || !b || a == UINT32_MAX || b == UINT32_MAX || (a == b && !musts)) continue;
    (void)snt_graph_contract(g, a == b ? SNT_MUST_FUSE : SNT_NEVER_FUSE, (const snt_value[]){flows[i].from, flows[i].to}, 2);
  }
}

static snt_result compile_as_other(cost_bench *b, const other_groups *o, bool musts, snt_program **out) {
  const snt_compile_info info = {.head = SNT_HEAD(compile_info)};
  snt_graph *g = NULL;
  SNT_TRY(cost_parse_base(b, &g));
  add_contracts(g, o, musts);
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
  other_groups o = {calloc(g->graph.nodes.count, sizeof(uint32_t)), g->graph.nodes.count};
  snt_result r = o.group_of ? snt_compile(g, other, &info, &theirs, &b->diag) : SNT_E_HOST_MEM;
  snt_graph_destroy(g);
  if (r == SNT_OK) note_groups(theirs, &o);
  snt_program_destroy(theirs);
  if (r == SNT_OK) r = cost_parse_base(b, &g);
  if (r == SNT_OK) {
    r = snt_compile(g, b->profile, &info, &ours, &b->diag);
    snt_graph_destroy(g);
  }
  if (r == SNT_OK) r = cost_add_partition(b, ours);
  /* a pair that this device's schedules refuse is no reason to give up: then only the cuts are the other's */
  if (r == SNT_OK && compile_as_other(b, &o, true, &theirs) != SNT_OK) r = compile_as_other(b, &o, false, &theirs);
  if (r == SNT_OK) r = cost_add_partition(b, theirs);
  free(o.group_of);
  return r;
}
