/* How values between kernels, scratch that nobody else writes or reads, lie in their buffers where that is not as their types say.
   Rows that begin on whole texels: a value between strips (schedule/window_lanes.c) has rows as long as the next multiple of four: its vectors are
   texels, fetched without shifts and stored whole, whatever the width is. So has a constant that strips alone read: a plane's taps are one row, elements of
   texels that are known. Points that do not meet in the near cache: a Winograd transform
   (schedule/winograd.c) writes or reads a line of each point of its tile in turn; where these are so far apart that most fall into few of the cache's sets,
   a point begins a line later. In: groups with their kinds, before the first is built. Out: `pitches` of the context, which buffers.c goes by. */
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"
#include "fusion/winograd.h"

enum { TEXEL = 4, LEAST_ROW = 32 };       /* shorter rows would grow by too much */
enum { LINE_ELEMENTS = FUSION_LINE / 4 }; /* f32 */
enum { WAY = 4096 };                      /* bytes: of all sets of a near cache, which are found by an address within a page */

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

static ir_expr whole_texels(expr_pool *x, ir_expr elements) { return expr_mul(x, expr_ceil_div(x, elements, TEXEL), TEXEL); }

/* A row for each element of its first axis that has several. */
static void pad_constant(fusion_context *c, uint32_t node) {
  expr_pool *x = c->graph->pool;
  const ir_node *n = ir_at(c->graph, node);
  uint32_t axes = 1;
  if (n->op != IR_OP_const || c->uses->is_output[node] || !fusion_has_texels(n->type.dtype)) return;
  while (axes < n->type.rank && n->type.dims[axes - 1] == 1) axes++;
  if (axes >= n->type.rank) return;
  const ir_expr row = schedule_product(x, n->type.rank - axes, n->type.dims + axes);
  if (row % TEXEL) c->pitches[node] = (fusion_pitch){axes, whole_texels(x, row)};
}

/* Of what strips make, and of their constants. */
static void pad_rows(fusion_context *c, const fusion_group *group) {
  for (uint32_t n = 0; n < group->input_count; n++) pad_constant(c, group->inputs[n]);
  for (uint32_t o = 0; o < group->output_count; o++) {
    const ir_tensor *t = &ir_at(c->graph, group->outputs[o])->type;
    if (has_long_rows(c, t)) set_pitch(c, group->outputs[o], t->rank - 1u, whole_texels(c->graph->pool, t->dims[t->rank - 1]));
  }
}

/* What others read, too, lies as its type says. */
static void pad_strips(fusion_context *c, bool strips) {
  for (uint32_t i = 0; i < c->order_count; i++) {
    const fusion_group *group = &c->groups.at[c->order[i]];
    if ((group->kind == GROUP_WINDOW || group->kind == GROUP_IMAGE) != strips) continue;
    if (strips) pad_rows(c, group);
    else
      for (uint32_t n = 0; n < group->input_count; n++) c->pitches[group->inputs[n]].axes = 0;
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
  if (!(c->pitches = IR_NEW_ARRAY(c->arena, fusion_pitch, c->graph->nodes.count))) return false;
  if (c->options->profile->reads == COST_READS_TEXEL) pad_strips(c, true), pad_strips(c, false);
  else
    for (uint32_t i = 0; i < c->order_count; i++) part_points(c, &c->groups.at[c->order[i]]);
  return true;
}
