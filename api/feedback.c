/* What drivers say after building, and what follows: a kernel whose items spill is split where the fewest values cross, by never_fuse contracts on the
   graph that the user gave. The next compile obeys them like any other, and says so in its decisions. */
#include "api/exec.h"

static uint32_t declared_bytes(const kir_kernel *k) {
  uint64_t bytes = 0;
  for (uint32_t m = 0; k && m < k->memories.count; m++) {
    const kir_memory *memory = &k->memories.at[m];
    uint64_t elements = 1;
    for (uint32_t d = 0; d < memory->rank; d++) elements *= memory->dims[d];
    if (memory->space == KIR_PRIVATE) bytes += elements * memory->type.lanes * ir_dtypes[memory->type.base].bytes;
  }
  return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

snt_result snt_exec_report(const snt_exec *x, uint32_t number, snt_report *out) {
  if (!x || !out || number >= x->job_count) return SNT_E_ARG;
  const exec_job *job = &x->jobs[number];
  if (job->kind != SNT_JOB_PIPELINE) return SNT_E_ARG;
  if (atomic_load(&job->state) != SNT_JOB_DONE || !job->pipeline) return SNT_NOT_READY;
  rt_report said = {UINT32_MAX, UINT32_MAX};
  if (job->pipeline->v->pipeline_report && !job->chain) job->pipeline->v->pipeline_report(job->pipeline, &said);
  const uint32_t own = declared_bytes(x->program->kernels[job->kernel].legal[x->target]);
  out->registers = said.registers;
  out->spilled = said.private_bytes == UINT32_MAX ? UINT32_MAX : said.private_bytes > own ? said.private_bytes - own : 0;
  return SNT_OK;
}

/* ---- where to split ---- */

static uint32_t place_of(const plan_step *s, uint32_t node) {
  for (uint32_t i = 0; i < s->node_count; i++)
    if (s->nodes[i] == node) return i;
  return UINT32_MAX;
}

/* Values computed before the cut that are read behind it. */
static uint32_t crossing(const ir_graph *g, const plan_step *s, uint32_t cut) {
  uint32_t count = 0;
  for (uint32_t before = 0; before < cut; before++) {
    bool read = false;
    for (uint32_t i = cut; i < s->node_count && !read; i++)
      for (uint32_t a = 0; a < ir_at(g, s->nodes[i])->arity; a++)
        read |= fusion_through_views(g, ir_arg(g, s->nodes[i], a)) == s->nodes[before];
    count += read;
  }
  return count;
}

/* The thinnest place in the middle half. 0: too few members. */
static uint32_t find_cut(const ir_graph *g, const plan_step *s) {
  enum { MOST_MEMBERS = 512 };
  uint32_t best = 0, thinnest = UINT32_MAX;
  if (s->node_count < 2 || s->node_count > MOST_MEMBERS) return 0;
  const uint32_t first = s->node_count < 4 ? 1 : s->node_count / 4,
                 last = s->node_count < 4 ? s->node_count - 1 : s->node_count - s->node_count / 4;
  for (uint32_t cut = first; cut <= last; cut++) {
    const uint32_t count = crossing(g, s, cut);
    if (count >= thinnest) continue;
    thinnest = count;
    best = cut;
  }
  return best;
}

/* As many live nodes: what can be told of a graph and a program without their texts. */
static bool is_of(const snt_program *p, const snt_graph *g, ir_arena *temp, bool *same) {
  expr_pool *pool = IR_NEW(temp, expr_pool);
  ir_graph *live = IR_NEW(temp, ir_graph);
  uint32_t *map = IR_NEW_ARRAY(temp, uint32_t, g->graph.nodes.count + 1);
  if (!pool || !live || !map || !expr_pool_copy(pool, temp, &g->pool)) return false;
  ir_graph_init(live, temp, pool);
  if (ir_graph_copy_live(&g->graph, live, map) != SNT_OK) return false;
  *same = live->nodes.count == p->graph.nodes.count;
  return true;
}

/* Every pair across the cut that touches; both as the user knows them, which is what origins are. */
static snt_result split_step(snt_graph *to, const ir_graph *g, const plan_step *s, bool *split) {
  const uint32_t cut = find_cut(g, s);
  *split = false;
  for (uint32_t i = cut; cut && i < s->node_count; i++)
    for (uint32_t a = 0; a < ir_at(g, s->nodes[i])->arity; a++) {
      const uint32_t from = fusion_through_views(g, ir_arg(g, s->nodes[i], a)), at = place_of(s, from);
      if (at >= cut) continue;
      const snt_value pair[2] = {ir_at(g, from)->origin, ir_at(g, s->nodes[i])->origin};
      if (!pair[0] || !pair[1] || pair[0] == pair[1]) continue;
      SNT_TRY(snt_graph_contract(to, SNT_NEVER_FUSE, pair, 2));
      *split = true;
    }
  return SNT_OK;
}

snt_result snt_graph_learn(snt_graph *g, const snt_exec *built, uint32_t bytes, uint32_t *out_splits, snt_diag *diag) {
  if (!g || !built || !out_splits)
    return ir_fail(diag, SNT_E_ARG, "learn", 0, "a graph, what was built of it and a place for the number are needed");
  const snt_program *p = built->program;
  uint32_t splits = 0;
  ir_arena temp;
  if (!p->fusion.graph) return ir_fail(diag, SNT_E_UNSUPPORTED, "learn", 0, "a saved program does not know its graph");
  ir_arena_init(&temp, &g->context->alloc);
  bool same = false;
  snt_result r = is_of(p, g, &temp, &same) ? SNT_OK : ir_no_memory(diag, "learn");
  if (r == SNT_OK && !same) r = ir_fail(diag, SNT_E_ARG, "learn", 0, "the program is not of this graph");
  for (uint32_t i = 0; r == SNT_OK && i < p->plan.steps.count && built->job_of; i++) {
    const plan_step *s = &p->plan.steps.at[i];
    snt_report said;
    bool split;
    if (snt_exec_report(built, built->job_of[s->kernel], &said) != SNT_OK || said.spilled == UINT32_MAX || said.spilled <= bytes) continue;
    r = split_step(g, p->fusion.graph, s, &split);
    splits += split;
  }
  ir_arena_free(&temp);
  if (r == SNT_OK) *out_splits = splits;
  return r;
}
