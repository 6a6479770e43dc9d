/* How values between kernels, scratch that nobody else writes or reads, lie in their buffers where that is not as their types say.
   Rows that begin on whole texels: a value between strips (schedule_window_lanes.c) has rows as long as the next multiple of four: its vectors are
   texels, fetched without shifts and stored whole, whatever the width is. Points that do not meet in the near cache: a Winograd transform
   (schedule_winograd.c) writes or reads a line of each point of its tile in turn; where these are so far apart that most fall into few of the cache's sets,
   a point begins a line later. In: groups with their kinds, before the first is built. Out: `pitches` of the context; loads and stores ask
   fusion_stored_offset. */
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"
#include "fusion/winograd.h"

enum { TEXEL = 4, LEAST_ROW = 32 };         /* shorter rows would grow by too much */
enum { LINE_ELEMENTS = SCHEDULE_LINE / 4 }; /* f32 */
enum { WAY = 4096 };                        /* bytes: of all sets of a near cache, which are found by an address within a page */

static bool has_long_rows(const fusion_context *c, const ir_tensor *t) {
  const expr_pool *x = c->graph->pool;
  if (t->dtype != SNT_F32 || t->rank < 2) return false;
  const ir_expr width = t->dims[t->rank - 1];
  return expr_multiple_of(x, width) % TEXEL && schedule_hint(x, width) >= LEAST_ROW;
}

/* Only what a plan calls scratch is ours to lay out. */
static void set_pitch(fusion_context *c, uint32_t node, uint32_t axes, ir_expr elements) {
  if (c->group_of[node] && !c->uses->is_output[node] && fusion_storage_node(c, node) == node)
    c->pitches[node] = (fusion_pitch){axes, elements};
}

/* Of what strips alone read; readers come after who makes it. */
static void pad_rows(fusion_context *c, const fusion_group *group) {
  expr_pool *x = c->graph->pool;
  const bool strips = group->kind == GROUP_WINDOW || group->kind == GROUP_IMAGE;
  for (uint32_t n = 0; !strips && n < group->input_count; n++) c->pitches[group->inputs[n]].axes = 0;
  for (uint32_t o = 0; strips && o < group->output_count; o++) {
    const ir_tensor *t = &ir_at(c->graph, group->outputs[o])->type;
    const uint32_t last = t->rank - 1u;
    if (has_long_rows(c, t)) set_pitch(c, group->outputs[o], last, expr_mul(x, expr_ceil_div(x, t->dims[last], TEXEL), TEXEL));
  }
}

bool schedule_crowds(const cost_profile *p, int64_t lines, int64_t apart) {
  return (double)(lines * 2 * expr_gcd(apart, WAY)) > p->l1_bytes;
}

/* A transform's value with the points of tiles in front, in one axis or in two. */
static void part_points(fusion_context *c, const fusion_group *group) {
  bool output;
  const winograd_form *form = winograd_of(c, group->hero, &output);
  expr_pool *x = c->graph->pool;
  int64_t elements;
  if (!form) return;
  uint32_t node = output ? ir_arg(c->graph, group->hero, 0) : group->hero;
  while (fusion_is_view(c->graph, node) && !c->group_of[node]) node = ir_arg(c->graph, node, 0);
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  const uint32_t points = form->tile * form->tile, axes = t->dims[0] == (ir_expr)form->tile ? 2 : 1;
  if (expr_is_const(x, schedule_product(x, t->rank - axes, t->dims + axes), &elements) &&
      schedule_crowds(c->options->profile, points, elements * 4))
    set_pitch(c, node, axes, expr_int(x, (elements / LINE_ELEMENTS + 1) * LINE_ELEMENTS));
}

bool schedule_pitch(fusion_context *c) {
  const bool texels = c->options->profile->reads == COST_READS_TEXEL;
  if (!(c->pitches = IR_NEW_ARRAY(c->arena, fusion_pitch, c->graph->nodes.count))) return false;
  for (uint32_t i = 0; i < c->order_count; i++) (texels ? pad_rows : part_points)(c, &c->groups.at[c->order[i]]);
  return true;
}

bool fusion_has_pitch(const fusion_context *c, uint32_t node) { return c->pitches && c->pitches[node].axes; }

ir_expr fusion_stored_offset(const fusion_context *c, uint32_t node, const map_access *at) {
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  const fusion_pitch none = {0}, *p = c->pitches ? &c->pitches[node] : &none;
  expr_pool *x = c->graph->pool;
  ir_expr offset = 0, first = 0;
  for (uint32_t i = 0; i < t->rank; i++) {
    if (i == p->axes) first = expr_mul(x, offset, p->elements), offset = 0;
    offset = expr_add(x, expr_mul(x, offset, t->dims[i]), at->at[i]);
  }
  return expr_add(x, first, offset);
}
