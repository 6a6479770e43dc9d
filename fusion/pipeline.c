/* The order of the passes and their one runner: verifies, times, reports after each. In: a verified graph. Out: a plan and the filled context. */
#include "fusion/fusion.h"
#include "fusion/winograd.h"
#include <time.h>

const fusion_pass fusion_pipeline[] = {
    {"outline", fusion_outline, 0},
    {"custom", fusion_settle_custom, 0},
    {"canonicalise", fusion_canonicalise, FUSION_TO_FIXPOINT},
    {"decompose", fusion_decompose, 0},
    {"bytes", fusion_store_bytes, 0},
    {"quantised", fusion_multiply_bytes, FUSION_REWRITE},
    {"integers", fusion_sum_as_floats, FUSION_REWRITE},
    {"rewrite", fusion_rewrite, FUSION_REWRITE},
    {"scales", fusion_fold_scale, FUSION_REWRITE},
    {"large", fusion_split_large, 0},
    {"layout", fusion_layout, FUSION_REWRITE},
    {"stages", fusion_reduce_in_stages, FUSION_REWRITE},
    {"words", fusion_pack_words, FUSION_REWRITE},
    {"winograd", fusion_winograd, FUSION_REWRITE},
    {"widen", fusion_widen_operands, FUSION_REWRITE},
    {"canonicalise", fusion_canonicalise, FUSION_TO_FIXPOINT},
    {"ports", fusion_copy_ports, FUSION_LAST_REWRITE},
    {"group", fusion_group_nodes, 0},
    {"fission", fusion_fission, 0},
    {"states", fusion_settle_states, 0},
    {"schedule", fusion_schedule, 0},
    {"batch", fusion_batch, 0},
    {"branch", fusion_branch, FUSION_REWRITE},
    {"plan", fusion_plan_memory, 0},
};
const uint32_t fusion_pipeline_count = IR_COUNT(fusion_pipeline);
enum { MAX_ROUNDS = 16 };

static bool is_wanted(const fusion_options *o, const char *name) {
  if (!o->only) return true;
  const size_t length = strlen(name);
  for (const char *p = o->only; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
    if (!strncmp(p, name, length) && (p[length] == 0 || p[length] == ',')) return true;
  return false;
}

static double now_ms(void) { return (double)clock() * 1e3 / CLOCKS_PER_SEC; }

/* Debug builds verify after each pass; others what all of them made of the graph: before it is grouped, and at the end where one changed it since. */
#ifdef NDEBUG
static const bool verify_always = false;
#else
static const bool verify_always = true;
#endif

static snt_result check_pass(fusion_context *c, const char *name) {
  snt_diag inner = {0};
  const snt_result r = ir_graph_verify(c->graph, NULL, &inner);
  return r == SNT_OK ? SNT_OK : ir_fail(c->diag, SNT_E_INTERNAL, name, inner.node, "the graph is invalid after this pass: %s", inner.text);
}

typedef struct progress {
  const char *changed_by;   /* the last pass that made what nobody has verified yet, or null */
  const fusion_pass *fixed; /* the last pass that ran until nothing changed, if nothing has since: it has nothing left to do */
} progress;

static snt_result check_changed(fusion_context *c, progress *p) {
  const char *pass = p->changed_by;
  p->changed_by = NULL;
  return pass && c->options->verify ? check_pass(c, pass) : SNT_OK;
}

static snt_result run_pass(fusion_context *c, const fusion_pass *pass, progress *p) {
  const double start = now_ms();
  const ir_graph *before = c->graph;
  const uint32_t count = c->graph->nodes.count;
  const bool again = p->fixed && p->fixed->run == pass->run;
  bool changed = !again, ever = false;
  for (uint32_t round = 0; changed && round < MAX_ROUNDS; round++) {
    changed = false;
    SNT_TRY(pass->run(c, &changed));
    ever |= changed || c->graph != before || c->graph->nodes.count != count;
    if (c->graph->failed || c->graph->pool->failed)
      return ir_fail(c->diag, SNT_E_HOST_MEM, pass->name, 0, "out of host memory, or an extent overflows");
    if (!(pass->flags & FUSION_TO_FIXPOINT)) break;
  }
  if (ever) p->fixed = NULL;
  if ((pass->flags & FUSION_TO_FIXPOINT) && !changed) p->fixed = pass;
  if (ever || verify_always) p->changed_by = pass->name;
  if (verify_always || (pass->flags & FUSION_LAST_REWRITE)) SNT_TRY(check_changed(c, p));
  const fusion_hooks *hooks = c->options->hooks;
  if (hooks && hooks->after_graph_pass) hooks->after_graph_pass(hooks->user, pass->name, c->graph, now_ms() - start);
  return SNT_OK;
}

static snt_result copy_graph(fusion_context *c, const ir_graph *from) {
  ir_graph *copy = IR_NEW(c->arena, ir_graph);
  uint32_t *map = IR_NEW_ARRAY(c->arena, uint32_t, from->nodes.count);
  if (!copy || !map) return ir_no_memory(c->diag, "compile");
  ir_graph_init(copy, c->arena, from->pool);
  SNT_TRY(ir_graph_copy_live(from, copy, map));
  for (uint32_t n = 1; n < from->nodes.count; n++)
    if (map[n] && !copy->nodes.at[map[n]].origin) copy->nodes.at[map[n]].origin = n;
  c->graph = copy;
  return SNT_OK;
}

static snt_result run_pipeline(fusion_context *c, const ir_graph *graph) {
  const fusion_options *options = c->options;
  progress p = {NULL, NULL};
  c->plan->title = graph->title;
  SNT_TRY(copy_graph(c, graph));
  for (uint32_t i = 0; i < fusion_pipeline_count; i++) {
    const fusion_pass *pass = &fusion_pipeline[i];
    if (!is_wanted(options, pass->name) || ((pass->flags & FUSION_REWRITE) && options->no_rewrites)) continue;
    if (options->hooks && options->hooks->progress &&
        options->hooks->progress(options->hooks->user, pass->name, (double)i / fusion_pipeline_count))
      return ir_fail(c->diag, SNT_E_CANCELLED, pass->name, 0, "cancelled by the caller");
    SNT_TRY(run_pass(c, pass, &p));
  }
  SNT_TRY(check_changed(c, &p));
  return c->plan->failed ? ir_no_memory(c->diag, "plan") : SNT_OK;
}

snt_result fusion_compile(fusion_context *c, const ir_graph *graph, const fusion_options *options, ir_arena *arena, ir_plan *plan,
                          snt_diag *diag) {
  *c = (fusion_context){.options = options, .arena = arena, .plan = plan, .diag = diag, .given = graph};
  return run_pipeline(c, graph);
}

snt_result fusion_compile_body(fusion_context *c, const fusion_context *outer, const ir_graph *body, ir_plan *plan, bool reads_own) {
  *c = (fusion_context){.options = outer->options, .arena = outer->arena, .plan = plan, .diag = outer->diag, .is_body = true};
  c->reads_own = reads_own;
  c->first_kernel = outer->first_kernel + outer->plan->kernels.count;
  return run_pipeline(c, body);
}

snt_result fusion_compile_branch(fusion_context *c, const fusion_context *outer, const ir_graph *fixed, ir_plan *plan) {
  *c = (fusion_context){
      .options = outer->options, .arena = outer->arena, .plan = plan, .diag = outer->diag, .given = fixed, .is_branch = true};
  c->first_kernel = outer->first_kernel + outer->plan->kernels.count;
  return run_pipeline(c, fixed);
}
