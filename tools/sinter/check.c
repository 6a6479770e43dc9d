/* --check: the f64 reference of the graph with its per-element bounds. */
#include "api/handles.h"
#include "fusion/narrow.h"
#include "ir/eval.h"
#include "ir/graph.h"
#include "tools/sinter/tool.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One output against its reference. Through a whole model first-order bounds grow past every use: behind sums of sums, where most of them exceed a
   thousandth of the largest value, the error may be twice that of the same graph in plain f32 on the host, plus a millionth of the largest value.
   A single sum, however long, is held to its bound: plain f32 adds in an order of its own. */
typedef struct verdict {
  double ratio, error, largest;
  bool is_slack;
  ir_eval_report report;
} verdict;

static double largest_error(const ir_eval_tensor *expected, int32_t dtype, const void *data) {
  double worst = 0;
  for (uint64_t i = 0; i < expected->count; i++) {
    const double error = fabs(ir_dtype_load(dtype, data, i) - expected->value[i]);
    if (!(error <= worst)) worst = isnan(error) ? INFINITY : error;
  }
  return worst;
}

/* How many sums there are one behind the other, at most; in regions: many. */
static uint32_t sums_behind(const ir_graph *g, uint32_t output, ir_arena *arena) {
  uint32_t *depth = ir_arena_take(arena, g->nodes.count * sizeof *depth, sizeof *depth);
  if (!depth || g->regions.count > 1) return UINT32_MAX;
  for (uint32_t n = 1; n < g->nodes.count; n++) {
    const ir_op op = (ir_op)ir_at(g, n)->op;
    uint32_t most = 0;
    for (uint32_t i = 0; i < ir_at(g, n)->arity; i++) {
      const uint32_t behind = depth[ir_arg(g, n, i)];
      if (behind > most) most = behind;
    }
    depth[n] = most + (op == IR_OP_contract || ((ir_ops[op].flags & (IR_REDUCE | IR_SCAN)) && !(ir_ops[op].flags & IR_EXACT)));
  }
  return depth[g->outputs.at[output].node];
}

static verdict judge(const ir_eval_tensor *expected, int32_t dtype, const void *data) {
  verdict v = {.ratio = 0};
  ir_eval_compare(expected, dtype, data, &v.report);
  v.ratio = v.report.nan_mismatch ? INFINITY : v.report.max_ratio;
  if (!expected->value || !expected->bound) return v;
  for (uint64_t i = 0; i < expected->count; i++) v.largest = fmax(v.largest, fabs(expected->value[i]));
  uint64_t wide = 0;
  for (uint64_t i = 0; i < expected->count; i++) wide += expected->bound[i] > 1e-3 * v.largest;
  v.is_slack = 2 * wide > expected->count; /* a few are thresholds, at which either side is right */
  if (v.is_slack) v.error = largest_error(expected, dtype, data);
  return v;
}

typedef struct check {
  const ir_graph *graph;
  const ir_eval_info *info;
  ir_arena *arena;
  ir_eval_tensor expected[2 * TOOL_MAX_PORTS], plain[2 * TOOL_MAX_PORTS];
  bool has_plain;
  double ratio;
  char *where;
  size_t size;
} check;

static snt_result hold_to_plain(check *c, uint32_t output, const char *name, verdict *v, snt_diag *diag) {
  if (!c->has_plain) SNT_TRY(ir_eval_fast(c->graph, c->info, c->arena, c->plain, diag));
  c->has_plain = true;
  const double plain = largest_error(&c->expected[output], c->plain[output].type.dtype, c->plain[output].data);
  v->ratio = v->error / (2 * plain + 1e-6 * v->largest);
  if (v->ratio >= c->ratio)
    snprintf(c->where, c->size, "%s, as a whole model: error %.3g, in plain f32 %.3g, largest value %.4g", name, v->error, plain,
             v->largest);
  return SNT_OK;
}

static snt_result compare_all(check *c, const tool_tensor *tensors, uint32_t count, snt_diag *diag) {
  const uint32_t outputs = c->graph->outputs.count;
  for (uint32_t i = 0; i < outputs; i++) {
    const tool_tensor *t = &tensors[count - outputs + i];
    verdict v = judge(&c->expected[i], t->port.tensor.dtype, t->data);
    if (v.is_slack && !v.report.nan_mismatch && sums_behind(c->graph, i, c->arena) > 1)
      SNT_TRY(hold_to_plain(c, i, t->port.name, &v, diag));
    else if (v.ratio >= c->ratio)
      snprintf(c->where, c->size, "%s[%llu]: got %.9g, want %.9g, bound %.3g%s", t->port.name, (unsigned long long)v.report.worst_index,
               v.report.got, v.report.want, v.report.bound, v.report.nan_mismatch ? "; NaN on one side" : "");
    c->ratio = fmax(c->ratio, v.ratio);
  }
  return SNT_OK;
}

/* With --weights the reference is the graph that was compiled; what its weights cost is how far it is from the one as given. */
static snt_result narrow_graph(tool_session *s, const ir_graph *given, bool direct, ir_graph *out) {
  fusion_options options = {.no_rewrites = direct};
  ir_graph from;
  uint32_t weights, made, *map = IR_NEW_ARRAY(given->arena, uint32_t, given->nodes.count);
  snt_result r = tool_weights(s, &weights);
  *out = *given;
  if (r != SNT_OK || !weights) return r;
  options.weights = api_weight_types[weights];
  ir_graph_init(&from, given->arena, given->pool);
  ir_graph_init(out, given->arena, given->pool);
  r = map ? ir_graph_copy_live(given, &from, map) : SNT_E_HOST_MEM;
  return r == SNT_OK ? fusion_narrow(&from, &options, out, &made, &s->diag) : r;
}

static snt_result say_loss(const ir_graph *given, const check *c, const char *weights, const tool_tensor *tensors, uint32_t count,
                           snt_diag *diag) {
  ir_eval_tensor as_given[2 * TOOL_MAX_PORTS], narrow[2 * TOOL_MAX_PORTS];
  const uint32_t outputs = given->outputs.count;
  SNT_TRY(ir_eval_fast(given, c->info, c->arena, as_given, diag));
  SNT_TRY(ir_eval_fast(c->graph, c->info, c->arena, narrow, diag));
  for (uint32_t i = 0; i < outputs; i++) {
    double largest = 0, apart = 0;
    for (uint64_t k = 0; k < as_given[i].count; k++) {
      const double was = ir_dtype_load(as_given[i].type.dtype, as_given[i].data, k);
      largest = fmax(largest, fabs(was));
      apart = fmax(apart, fabs(ir_dtype_load(narrow[i].type.dtype, narrow[i].data, k) - was));
    }
    printf("weights as %s: %s is at most %.3g from what the weights as given make, its largest value is %.4g\n", weights,
           tensors[count - outputs + i].port.name, apart, largest);
  }
  return SNT_OK;
}

snt_result tool_check(tool_session *s, const tool_tensor *tensors, uint32_t count, double *ratio, char *where, size_t where_size) {
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  expr_pool pool;
  ir_graph g, compiled;
  expr_pool_init(&pool, &arena);
  ir_graph_init(&g, &arena, &pool);
  char *text;
  snt_result r = tool_graph_text(s->graph, &text);
  if (r == SNT_OK) r = ir_graph_parse(&g, text, strlen(text), &s->diag);
  const void *inputs[TOOL_MAX_PORTS];
  for (uint32_t i = 0; i < g.inputs.count && i < TOOL_MAX_PORTS; i++) inputs[i] = tensors[i].data;
  const char *mode = s->options.numerics;
  const bool direct = (s->options.compile_flags & SNT_COMPILE_NO_REWRITES) ||
                      (mode && (!strcmp(mode, "strict") || !strcmp(mode, "reproducible")));
  if (r == SNT_OK) r = narrow_graph(s, &g, direct, &compiled);
  const ir_eval_info info = {.symbols = s->symbols, .inputs = inputs, .direct = direct, .fast = mode && !strcmp(mode, "fast")};
  check c = {.graph = &compiled, .info = &info, .arena = &arena, .where = where, .size = where_size};
  if (r == SNT_OK) r = ir_eval_reference(&compiled, &info, &arena, c.expected, &s->diag);
  if (r == SNT_OK) r = compare_all(&c, tensors, count, &s->diag);
  if (r == SNT_OK && s->options.weights) r = say_loss(&g, &c, s->options.weights, tensors, count, &s->diag);
  *ratio = c.ratio;
  free(text);
  ir_arena_free(&arena);
  return r;
}
