/* Narrow floats of products as f32, where reading each of them as often as it is needed would cost more. In: a contraction with a constant. Out: the same sums.
   Where schedules form vectors themselves, every tile of columns would widen each element of the rows again, three conversions for eight multiply-adds: the
   other operand is cast, below what moves it about, which grouping stores or computes again as is cheaper. Where reads go through texels, those are f32: the
   constant is widened, too. */
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
static bool has_columns(const rebuild *r, uint32_t side) {
  const ir_tensor *own = &ir_at(r->from, ir_arg(r->from, r->node, side))->type,
                  *other = &ir_at(r->from, ir_arg(r->from, r->node, 1 - side))->type;
  const uint32_t lane = fusion_contract_lane(r->from, r->node, side);
  return fusion_contract_lane(r->from, r->node, 1 - side) == other->rank && lane < own->rank &&
         schedule_hint(r->from->pool, own->dims[lane]) >= COLUMNS;
}

static uint32_t widen_operands(rebuild *r) {
  if (ir_at(r->from, r->node)->op != IR_OP_contract || !is_narrow(r, 0) || !is_narrow(r, 1)) return 0;
  const int side = constant_side(r);
  if (side < 0 || (!reads_texels(r->c) && !has_columns(r, (uint32_t)side))) return 0;
  uint32_t args[2] = {r->args[0], r->args[1]};
  if (reads_texels(r->c)) args[side] = rewrite_settle(r, rebuild_wide(r, args[side]));
  args[1 - side] = rebuild_wide(r, args[1 - side]);
  return args[side] ? rebuild_copy_of(r, r->node, args) : 0;
}

static const rebuild_rule rules[] = {widen_operands};

snt_result fusion_widen_operands(fusion_context *c, bool *changed) {
  return schedule_is_explicit(c) || reads_texels(c) ? fusion_rebuild(c, rules, IR_COUNT(rules), changed) : SNT_OK;
}
