/* Weights of a convolution that goes through local memory (contract/local.c), channels last: terms lie there as the weights do, so a step
   of them is of one tap, and where that lies in the source, or whether in its padding, is found once a step. In: a contraction of a window
   and a constant. Out: the constant described in the other order. */
#include "fusion/rewrite/tap_order.h"
#include "fusion/fragments.h"
#include "fusion/rewrite_constants.h"
#include "fusion/schedule_common.h"

/* Channels come in whole steps, or for matrix units in whole vectors. */
static int64_t least_channels(const fusion_context *c, const ir_tensor *weights) {
  enum { STEP = 16, VECTOR_BYTES = 16 };
  matrix_units units;
  return matrix_units_find(c, weights->dtype, &units) ? VECTOR_BYTES / ir_dtypes[weights->dtype].bytes : STEP;
}

bool rewrite_goes_through_local(const fusion_context *c) { return schedule_shares_local(c) && !fusion_keeps_order(c->options); }

/* The axis of the weights that goes last: that along channels, the only label of theirs that is summed and no tap; taps alone follow it. Or, of channels so few
   that rows of taps are no whole vectors, that along the results. */
static int32_t last_axis(const rebuild *r, uint32_t side, const ir_expr *labels, uint32_t rank) {
  enum { VECTOR = 4 };
  uint32_t taps, window_rank, out_rank;
  int64_t extent;
  const ir_node *window = ir_at(r->to, r->args[1 - side]);
  const ir_expr *own = ir_attr_ints(r->from, r->node, side ? IR_ATTR_lhs : IR_ATTR_rhs, &window_rank),
                *out = ir_attr_ints(r->from, r->node, IR_ATTR_out, &out_rank);
  if (window->op != IR_OP_window || !ir_attr_ints(r->to, r->args[1 - side], IR_ATTR_size, &taps) || rank <= taps) return -1;
  const uint32_t axis = rank - taps - 1;
  const int32_t at = fusion_find_label(own, window_rank - taps, labels[axis]);
  const ir_tensor *t = &ir_at(r->to, r->args[side])->type;
  if (at < 0 || fusion_find_label(out, out_rank, labels[axis]) >= 0) return -1;
  bool several = false;
  int64_t row = 1;
  for (uint32_t i = 0; i < taps; i++) {
    if (fusion_find_label(own + window_rank - taps, taps, labels[axis + 1 + i]) < 0) return -1;
    several |= t->dims[axis + 1 + i] != 1;
    row *= expr_multiple_of(r->to->pool, t->dims[axis + 1 + i]);
  }
  if (!several || !expr_is_const(r->to->pool, t->dims[axis], &extent)) return -1;
  if (extent % least_channels(r->c, t) == 0) return (int32_t)axis;
  return axis == 1 && extent * row % VECTOR && expr_multiple_of(r->to->pool, t->dims[0]) % VECTOR == 0 &&
                 fusion_find_label(out, out_rank, labels[0]) >= 0
             ? 0
             : -1;
}

uint32_t rewrite_tap_order(rebuild *r) {
  static const ir_attr_key keys[2] = {IR_ATTR_lhs, IR_ATTR_rhs};
  if (!rewrite_goes_through_local(r->c)) return 0;
  for (uint32_t side = 0; side < 2; side++) {
    uint32_t rank, args[2] = {r->args[0], r->args[1]};
    ir_expr perm[SNT_MAX_RANK], turned[SNT_MAX_RANK];
    const ir_expr *labels = ir_attr_ints(r->from, r->node, keys[side], &rank);
    const int32_t last = last_axis(r, side, labels, rank);
    if (last < 0) continue;
    for (uint32_t i = 0; i < rank; i++) {
      perm[i] = i < (uint32_t)last ? i : i + 1 < rank ? i + 1 : (uint32_t)last;
      turned[i] = labels[perm[i]];
    }
    args[side] = rewrite_moved(r, rebuild_transpose(r, args[side], rank, perm), true);
    if (args[side]) return rebuild_with(r, 2, args, 1, &(ir_attr_value){keys[side], rank, turned});
  }
  return 0;
}
