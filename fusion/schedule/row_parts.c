/* Values that a row kernel reads every second element of, or third, as sums of alternating parts do (fusion/rewrite/parts.c): once a work-item they are copied
   part by part, so that its rows read each part in whole vectors. */
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"

enum { NEAR_BYTES = 16384 };

/* slice(view[..., parts]) of one element of the last axis and all of the others; the view. 0: not that. */
static uint32_t alternating(const ir_graph *g, uint32_t node) {
  const ir_node *n = ir_at(g, node);
  int64_t parts;
  if (n->op != IR_OP_slice || (n->type.dtype != SNT_F32 && n->type.dtype != SNT_I32) || n->type.rank < 2 ||
      n->type.dims[n->type.rank - 1] != 1)
    return 0;
  const ir_tensor *from = &ir_at(g, ir_arg(g, node, 0))->type;
  for (uint32_t d = 0; d + 1 < from->rank; d++)
    if (from->dims[d] != n->type.dims[d]) return 0;
  return fusion_is_view(g, ir_arg(g, node, 0)) && expr_is_const(g->pool, from->dims[from->rank - 1], &parts) && parts > 1
             ? ir_arg(g, node, 0)
             : 0;
}

/* All of the value belongs to every row: it has as many elements as a row has columns, times the parts. */
static bool is_beside_rows(const expr_pool *x, const ir_tensor *t, ir_expr columns, int64_t *bytes) {
  int64_t elements = 1, extent, row;
  for (uint32_t d = 0; d < t->rank; d++) {
    if (!expr_is_const(x, t->dims[d], &extent)) return false;
    elements *= extent;
  }
  *bytes = elements * (int64_t)sizeof(float);
  return expr_is_const(x, columns, &row) && elements == row * extent;
}

uint32_t schedule_row_parts(const fusion_context *c, const uint8_t *needed, ir_expr columns, uint32_t most, uint32_t *found) {
  const ir_graph *g = c->graph;
  uint32_t count = 0;
  int64_t bytes;
  for (uint32_t i = 1; i < g->nodes.count && count < most; i++) {
    const uint32_t node = needed[i] ? alternating(g, i) : 0;
    if (node && is_beside_rows(g->pool, &ir_at(g, node)->type, columns, &bytes) && (!count || found[count - 1] != node))
      found[count++] = node;
  }
  return count;
}

void schedule_stage_parts(emit *e, uint32_t node, ir_expr group, ir_expr groups) {
  const ir_tensor *t = &ir_at(e->g, node)->type;
  stage_info info = {.node = node, .ring_axis = -1, .group = group, .groups = groups, .ordered = true};
  int64_t elements;
  for (uint32_t d = 0; d < t->rank; d++) {
    info.extent[d] = t->dims[d];
    info.order[d] = (uint8_t)((d + t->rank - 1) % t->rank);
  }
  const bool near = expr_is_const(e->x, ir_tensor_elements(e->x, t), &elements) && elements * (int64_t)sizeof(float) <= NEAR_BYTES;
  info.storage = near ? STAGE_PRIVATE : STAGE_WORKSPACE;
  emit_stage(e, &info, 1, UINT32_MAX);
}
