/* What is left above the primitives that schedules know: padding leaves windows (so that a padded region can be staged by itself), products written
   as contractions become multiplications, outputs that are inputs or constants become stored views. */
#include "fusion/rebuild.h"
#include "fusion/rewrite_rows.h"

/* window with padding = window of a padded value */
static uint32_t split_padding(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  uint32_t count, high_count, attr_count = 0;
  const ir_expr *low = ir_attr_ints(r->from, r->node, IR_ATTR_low, &count),
                *high = ir_attr_ints(r->from, r->node, IR_ATTR_high, &high_count);
  const int64_t axis = ir_attr_int(r->from, r->node, IR_ATTR_axis, 0);
  const ir_tensor *operand = &ir_at(r->to, r->args[0])->type;
  ir_expr lows[SNT_MAX_RANK] = {0}, highs[SNT_MAX_RANK] = {0};
  bool padded = false;
  for (uint32_t i = 0; low && i < count; i++) padded |= (lows[axis + i] = low[i]) != 0;
  for (uint32_t i = 0; high && i < high_count; i++) padded |= (highs[axis + i] = high[i]) != 0;
  if (!padded) return 0;
  ir_attr_value attrs[IR_ATTR_COUNT], pad[3] = {{IR_ATTR_high, operand->rank, highs}, {IR_ATTR_low, operand->rank, lows}};
  uint32_t pad_count = 2;
  for (uint32_t i = 0; i < n->attr_count; i++) {
    const ir_attr *a = &r->from->attrs.at[n->attrs + i];
    const ir_attr_value v = {a->key, a->count, r->from->ints.at + a->first};
    if (a->key == IR_ATTR_value) pad[pad_count++] = v;
    else if (a->key != IR_ATTR_low && a->key != IR_ATTR_high) attrs[attr_count++] = v;
  }
  const uint32_t inner = rebuild_view(r, IR_OP_pad, r->args[0], pad_count, pad);
  return rebuild_view(r, IR_OP_window, inner, attr_count, attrs);
}

static const rebuild_rule rules[] = {{split_padding, .ops = {IR_OP_window}}, {rewrite_set_rows, .ops = {IR_OP_scatter_set}}};

snt_result fusion_decompose(fusion_context *c, bool *changed) { return fusion_rebuild(c, rules, IR_COUNT(rules), changed); }
