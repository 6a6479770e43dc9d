/* Constants of fewer bytes below contractions: contract(x, (cast(q) - z) * s) with a scale s, of all or of each channel, is contract(x,
   cast(q) - z) * s, so what is scaled is the result. Schedules that lay constants out in panels take what is left as a constant
   (rewrite/constants.c), which then is f32 in memory, and as it was in a saved program (api/blob_save.c); the others read the few bytes and
   widen them on the way. */
#include "fusion/rewrite/weights.h"
#include "fusion/rewrite_constants.h"
#include "fusion/schedule_common.h"

typedef struct weights {
  uint32_t args[2], factor[2]; /* what is contracted; the factor of the result, 0: none */
  bool found;
} weights;

/* A factor that is one number, or varies along labels of the result alone, for the result. */
static uint32_t of_result(rebuild *r, uint32_t side, uint32_t node) {
  static const ir_attr_key keys[2] = {IR_ATTR_lhs, IR_ATTR_rhs};
  const ir_node *product = ir_at(r->from, r->node);
  uint32_t count, rank, out_rank;
  ir_expr axes[SNT_MAX_RANK];
  double number;
  if (ir_is_scalar_const(r->to, node, &number)) return ir_add_splat(r->to, SNT_F32, number);
  if (ir_at(r->to, node)->op != IR_OP_broadcast) return 0;
  const ir_expr *own = ir_attr_ints(r->to, node, IR_ATTR_axes, &count), *labels = ir_attr_ints(r->from, r->node, keys[side], &rank);
  const ir_expr *out = ir_attr_ints(r->from, r->node, IR_ATTR_out, &out_rank);
  for (uint32_t i = 0; i < count; i++) {
    const int32_t at = fusion_find_label(out, out_rank, labels[own[i]]);
    if (at < 0 || (i && at <= axes[i - 1])) return 0;
    axes[i] = at;
  }
  return rebuild_broadcast(r, ir_arg(r->to, node, 0), count, axes, product->type.rank, product->type.dims);
}

static void look_below(rebuild *r, weights *w, uint32_t side) {
  const uint32_t node = r->args[side];
  w->args[side] = node;
  if (ir_at(r->to, node)->op != IR_OP_mul || fusion_keeps_order(r->c->options)) return;
  for (uint32_t i = 0; i < 2 && !w->factor[side]; i++) {
    const uint32_t rest = ir_arg(r->to, node, 1 - i);
    if (rewrite_is_narrow(r, rest))
      w->factor[side] = of_result(r, side, ir_arg(r->to, node, i)), w->args[side] = w->factor[side] ? rest : node;
  }
  w->found |= w->factor[side] != 0;
}

/* Vectors of panels, and texels, are f32. */
static void settle(rebuild *r, weights *w, uint32_t side) {
  if (!schedule_is_explicit(r->c) && r->c->options->profile->reads != COST_READS_TEXEL) return;
  uint32_t made = rewrite_settle(r, w->args[side]);
  if (!made) made = rewrite_moved(r, w->args[side], false);
  if (made) w->args[side] = made, w->found = true;
}

uint32_t rewrite_narrow_weights(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  weights w = {{0}, {0}, false};
  if (n->type.dtype != SNT_F32) return 0;
  for (uint32_t side = 0; side < 2; side++)
    if (ir_at(r->to, r->args[side])->type.dtype != SNT_F32) return 0;
  for (uint32_t side = 0; side < 2; side++) {
    look_below(r, &w, side);
    settle(r, &w, side);
  }
  if (!w.found) return 0;
  uint32_t made = ir_add_like(r->to, r->from, r->node, w.args);
  for (uint32_t side = 0; side < 2; side++) {
    if (made) r->to->nodes.at[made].origin = n->origin;
    if (made && w.factor[side]) made = ir_add2(r->to, IR_OP_mul, made, w.factor[side]);
  }
  return made;
}
