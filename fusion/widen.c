/* Narrow floats of products as f32, where reading each of them as often as it is needed would cost more. In: a contraction with a constant. Out: the same sums.
   Where schedules form vectors themselves, every tile of columns would widen each element of the rows again, three conversions for eight multiply-adds: the
   other operand is cast, below what moves it about, which grouping stores or computes again as is cheaper. Where reads go through texels, those are f32, and only
   what is stored is read so: the constant is widened, too. */
#include "fusion/rebuild.h"
#include "fusion/rewrite_constants.h"
#include "fusion/schedule_common.h"
#include "fusion/shown.h"

enum { COLUMNS = 128 }; /* several tiles of them */

static bool reads_texels(const fusion_context *c) {
  return c->options->profile->reads == COST_READS_TEXEL && c->options->profile->caps.texel;
}

static bool is_narrow(const rebuild *r, uint32_t side) {
  const ir_dtype_info *t = &ir_dtypes[ir_at(r->to, r->args[side])->type.dtype];
  return t->is_float && t->bytes < sizeof(float);
}

/* The operand that is a constant below views, if only one is; -1: none. */
static int constant_side(const rebuild *r) {
  bool shown[2];
  for (uint32_t side = 0; side < 2; side++) {
    fusion_shown s;
    shown[side] = fusion_show(r->to, r->args[side], &s);
  }
  return shown[0] == shown[1] ? -1 : shown[1];
}

/* Do many columns lie along this operand's own axes, so that the elements of the other one meet all of them? */
static bool has_columns(const rebuild *r, int side) {
  uint32_t out_rank, rank;
  const ir_tensor *type = &ir_at(r->from, r->node)->type;
  const ir_expr *out = ir_attr_ints(r->from, r->node, IR_ATTR_out, &out_rank);
  const ir_expr *other = ir_attr_ints(r->from, r->node, side ? IR_ATTR_lhs : IR_ATTR_rhs, &rank);
  uint32_t lane = out_rank;
  while (lane > 0 && type->dims[lane - 1] == 1) lane--;
  return lane > 0 && fusion_find_label(other, rank, out[lane - 1]) < 0 && schedule_hint(r->from->pool, type->dims[lane - 1]) >= COLUMNS;
}

/* Whatever it costs to compute it again. */
static void keep_stored(ir_graph *g, uint32_t node) {
  const uint32_t base = fusion_through_views(g, node);
  ir_add_contract(g, IR_KEEP, 1, &base);
}

static uint32_t widen_operands(rebuild *r) {
  if (ir_at(r->from, r->node)->op != IR_OP_contract || !is_narrow(r, 0) || !is_narrow(r, 1)) return 0;
  const int side = constant_side(r);
  if (side < 0 || (!reads_texels(r->c) && !has_columns(r, side))) return 0;
  uint32_t args[2] = {r->args[0], r->args[1]};
  if (reads_texels(r->c)) args[side] = rewrite_settle(r, rebuild_wide(r, args[side]));
  args[1 - side] = rebuild_wide(r, args[1 - side]);
  if (reads_texels(r->c)) keep_stored(r->to, args[1 - side]);
  return args[side] ? rebuild_copy_of(r, r->node, args) : 0;
}

static const rebuild_rule rules[] = {widen_operands};

snt_result fusion_widen_operands(fusion_context *c, bool *changed) {
  return schedule_is_explicit(c) || reads_texels(c) ? fusion_rebuild(c, rules, IR_COUNT(rules), changed) : SNT_OK;
}
