/* Kind `image`: the last value of a chain of pointwise nodes and views, with at most one stencil, stored to an image port. An item computes all
   channels of one pixel, since a store is a whole texel; groups are tiles of 16 x 8 pixels, so that neighbours read the same texels. Where reads go
   through texels an item has a strip of pixels instead (schedule/window_lanes.c). */
#include "fusion/image.h"
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"

enum { TILE_WIDTH = 16, TILE_HEIGHT = 8 };

bool schedule_image_accepts(const fusion_context *c, const fusion_group *group, const char **why_not) {
  uint32_t stencils = 0;
  for (uint32_t i = 0; i < group->count; i++) stencils += ir_at(c->graph, group->nodes[i])->op == IR_OP_contract;
  if (stencils > 1) *why_not = "recomputing one stencil inside another";
  else if (group->output_count != 1) *why_not = "a second result beside an image";
  return stencils <= 1 && group->output_count == 1;
}

static void store_pixel(emit *e, uint32_t node, const image_axes *axes, ir_expr px, ir_expr py) {
  uint32_t channels[4] = {0};
  for (uint32_t i = 0; i < axes->channels; i++) {
    map_access at = {.rank = ir_at(e->g, node)->type.rank};
    at.at[axes->y] = py, at.at[axes->x] = px;
    if (axes->channel >= 0) at.at[axes->channel] = (ir_expr)i;
    channels[i] = emit_value(e, node, &at);
  }
  emit_store_texel(e, node, px, py, axes->channels, channels);
}

snt_result schedule_image_build(fusion_context *c, const fusion_group *group) {
  expr_pool *x = c->graph->pool;
  const ir_tensor *t = &ir_at(c->graph, group->hero)->type;
  image_axes axes;
  snt_result result = SNT_OK;
  if (!schedule_is_explicit(c) && schedule_window_lanes_build(c, group, "image", &result)) return result;
  const char *wrong = fusion_image_axes(x, t, fusion_image_layout(c, group->hero), &axes);
  if (wrong) return ir_fail(c->diag, SNT_E_INTERNAL, "schedule", group->hero, "%s", wrong);
  emit *e = emit_begin(c, group, "image");
  if (!e) return ir_no_memory(c->diag, "schedule");
  uint32_t height = TILE_HEIGHT;
  while (height > 1 && c->options->profile->max_items && TILE_WIDTH * height > c->options->profile->max_items) height /= 2;
  const ir_expr across = expr_ceil_div(x, t->dims[axes.x], TILE_WIDTH), down = expr_ceil_div(x, t->dims[axes.y], (ir_expr)height);
  const ir_expr groups = expr_mul(x, across, down), g = emit_group(e, groups);
  const ir_expr px = expr_add(x, expr_mul(x, expr_mod(x, g, across), TILE_WIDTH), emit_item(e, 0, TILE_WIDTH));
  const ir_expr py = expr_add(x, expr_mul(x, expr_div(x, g, across), (ir_expr)height), emit_item(e, 1, height));
  emit_if_below(e, px, t->dims[axes.x]);
  emit_if_below(e, py, t->dims[axes.y]);
  store_pixel(e, group->hero, &axes, px, py);
  emit_if_end(e);
  emit_if_end(e);
  return emit_end(e, groups, 0, 0, NULL);
}
