/* Narrow floats of products as f32, where reading each of them as often as it is needed would cost more. In: a contraction of two. Out: the same sums.
   Where schedules form vectors themselves, every tile of columns would widen each element of the rows again, three conversions for eight multiply-adds: that
   operand is cast, below what moves it about, which grouping stores or computes again as is cheaper. Where reads go through texels, those are f32: both are
   cast. A constant is widened as it is: as columns, which every tile of rows would widen again, where these are so many that twice the bytes from memory
   take less. */
#include "fusion/rebuild.h"
#include "fusion/rewrite_constants.h"
#include "fusion/schedule_common.h"
#include "fusion/shown.h"
#include <math.h>

enum {
  COLUMNS = 128, /* several tiles of them, or a tile at several taps of a window */
  TILE_ROWS = 12
};
#define WIDEN_CYCLES 1.25 /* of a vector, both halves of which go through the ports of the multiply-adds */
#define CONSTANT_SHARE 8  /* of the last cache, for one constant: larger ones come from memory whatever is beside them */

static bool reads_texels(const fusion_context *c) {
  return c->options->profile->reads == COST_READS_TEXEL && c->options->profile->caps.texel;
}

static bool is_narrow(const rebuild *r, uint32_t side) {
  const ir_dtype_info *t = &ir_dtypes[ir_at(r->to, r->args[side])->type.dtype];
  return t->is_float && t->bytes < sizeof(float);
}

/* The operand in f32, a constant without a kernel for it; 0: it stays. */
static uint32_t widened(rebuild *r, uint32_t side) {
  fusion_shown constant;
  const uint32_t wide = rebuild_wide(r, r->args[side]);
  return fusion_show(r->to, r->args[side], &constant) ? rewrite_settle(r, wide) : wide;
}

/* How often a contraction reads an element of the operand: windows have it at several places. */
static double places(const rebuild *r, uint32_t side) {
  const uint32_t top = ir_arg(r->from, r->node, side);
  uint32_t below = top;
  while (fusion_only_moves(r->from, below)) below = ir_arg(r->from, below, 0);
  return fmax(1, schedule_bytes(r->c, top) / schedule_bytes(r->c, below));
}

/* Do vectors lie along axes of the operand? */
static bool has_lanes(const rebuild *r, uint32_t side) {
  return fusion_contract_lane(r->from, r->node, side) != ir_at(r->from, ir_arg(r->from, r->node, side))->type.rank;
}

/* Are there so many columns beside this operand, in all places, that it is worth a cast, or, if it is the columns, so many rows that it is worth more bytes? */
static bool is_worth_it(const rebuild *r, uint32_t side) {
  const double beside = fusion_columns_beside(r->from, r->node, side);
  fusion_shown constant;
  const bool columns = has_lanes(r, side);
  if (columns == has_lanes(r, 1 - side)) return false;
  if (!columns) return beside * places(r, side) >= COLUMNS;
  if (!fusion_show(r->to, r->args[side], &constant)) return false;
  const cost_profile *p = r->c->options->profile;
  return (double)constant.elements * (sizeof(float) * CONSTANT_SHARE) <= p->l3_bytes &&
         beside * p->dram_gbs > TILE_ROWS * (sizeof(float) - sizeof(uint16_t)) / WIDEN_CYCLES * (p->lanes * p->ghz * p->units);
}

static uint32_t widen_operands(rebuild *r) {
  if (!is_narrow(r, 0) || !is_narrow(r, 1)) return 0;
  uint32_t args[2] = {r->args[0], r->args[1]};
  for (uint32_t side = 0; side < 2; side++)
    if (reads_texels(r->c) || is_worth_it(r, side)) args[side] = widened(r, side);
  if (!args[0] || !args[1] || (args[0] == r->args[0] && args[1] == r->args[1])) return 0;
  return rebuild_copy_of(r, r->node, args);
}

static const rebuild_rule rules[] = {{widen_operands, .ops = {IR_OP_contract}}};

snt_result fusion_widen_operands(fusion_context *c, bool *changed) {
  return schedule_is_explicit(c) || reads_texels(c) ? fusion_rebuild(c, rules, IR_COUNT(rules), changed) : SNT_OK;
}
