/* --check: the f64 reference of the graph with its per-element bounds. */
#include "ir/eval.h"
#include "ir/graph.h"
#include "tools/sinter/tool.h"
#include <math.h>
#include <string.h>

static snt_result compare_all(const ir_graph *g, const ir_eval_tensor *expected, const tool_tensor *tensors, uint32_t count, double *ratio,
                              char *where, size_t size) {
  *ratio = 0;
  for (uint32_t i = 0; i < g->outputs.count; i++) {
    const tool_tensor *t = &tensors[count - g->outputs.count + i];
    ir_eval_report report;
    ir_eval_compare(&expected[i], t->port.tensor.dtype, t->data, &report);
    const double own = report.nan_mismatch ? INFINITY : report.max_ratio;
    if (own < *ratio) continue;
    *ratio = own;
    snprintf(where, size, "%s[%llu]: got %.9g, want %.9g, bound %.3g%s", t->port.name, (unsigned long long)report.worst_index, report.got,
             report.want, report.bound, report.nan_mismatch ? "; NaN on one side" : "");
  }
  return SNT_OK;
}

snt_result tool_check(tool_session *s, const tool_tensor *tensors, uint32_t count, double *ratio, char *where, size_t where_size) {
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  expr_pool pool;
  ir_graph g;
  expr_pool_init(&pool, &arena);
  ir_graph_init(&g, &arena, &pool);
  size_t length = 0;
  (void)snt_graph_print(s->graph, NULL, &length);
  char *text = ir_arena_take(&arena, length + 1, 1);
  snt_result r = text ? snt_graph_print(s->graph, text, &length) : SNT_E_HOST_MEM;
  if (r == SNT_OK) r = ir_graph_parse(&g, text, strlen(text), &s->diag);
  const void *inputs[TOOL_MAX_PORTS];
  ir_eval_tensor outputs[2 * TOOL_MAX_PORTS];
  for (uint32_t i = 0; i < g.inputs.count && i < TOOL_MAX_PORTS; i++) inputs[i] = tensors[i].data;
  const ir_eval_info info = {.symbols = s->symbols, .inputs = inputs};
  if (r == SNT_OK) r = ir_eval_reference(&g, &info, &arena, outputs, &s->diag);
  if (r == SNT_OK) r = compare_all(&g, outputs, tensors, count, ratio, where, where_size);
  ir_arena_free(&arena);
  return r;
}
