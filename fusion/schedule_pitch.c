/* Rows that begin on whole texels. A value between strips (schedule_window_lanes.c), scratch that nobody else writes or reads, has rows as long as the next
   multiple of four: its vectors are texels, fetched without shifts and stored whole, whatever the width is. In: groups with their kinds, before the
   first is built. Out: `rows_padded` of the context; loads and stores ask fusion_stored_dims. */
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"

enum { TEXEL = 4, LEAST_ROW = 32 }; /* shorter rows would grow by too much */

static bool has_long_rows(const fusion_context *c, uint32_t node) {
  const expr_pool *x = c->graph->pool;
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  if (t->dtype != SNT_F32 || t->rank < 2) return false;
  const ir_expr width = t->dims[t->rank - 1];
  return expr_multiple_of(x, width) % TEXEL && schedule_hint(x, width) >= LEAST_ROW;
}

/* Only what a plan calls scratch is ours to lay out. */
static bool is_between(const fusion_context *c, uint32_t node) {
  return c->group_of[node] && !c->uses->is_output[node] && fusion_storage_node(c, node) == node;
}

static bool is_strips(const fusion_group *group) { return group->kind == GROUP_WINDOW || group->kind == GROUP_IMAGE; }

bool schedule_pad_rows(fusion_context *c) {
  const cost_profile *p = c->options->profile;
  if (p->reads != COST_READS_TEXEL || !c->uses) return true;
  if (!(c->rows_padded = IR_NEW_ARRAY(c->arena, uint8_t, c->graph->nodes.count))) return false;
  for (uint32_t i = 0; i < c->order_count; i++) {
    const fusion_group *group = &c->groups.at[c->order[i]];
    for (uint32_t o = 0; is_strips(group) && o < group->output_count; o++)
      c->rows_padded[group->outputs[o]] = has_long_rows(c, group->outputs[o]) && is_between(c, group->outputs[o]);
  }
  for (uint32_t i = 0; i < c->order_count; i++) {
    const fusion_group *group = &c->groups.at[c->order[i]];
    for (uint32_t n = 0; !is_strips(group) && n < group->input_count; n++) c->rows_padded[group->inputs[n]] = 0;
  }
  return true;
}

const ir_expr *fusion_stored_dims(const fusion_context *c, uint32_t node, ir_expr own[SNT_MAX_RANK]) {
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  if (!c->rows_padded || !c->rows_padded[node]) return t->dims;
  expr_pool *x = c->graph->pool;
  memcpy(own, t->dims, sizeof t->dims);
  own[t->rank - 1] = expr_mul(x, expr_ceil_div(x, own[t->rank - 1], TEXEL), TEXEL);
  return own;
}
