/* Reductions, extremes, scans and rows. */
#include "onnx/ops.h"
#include "onnx/import_private.h"

static const struct reduction {
  const char *op, *call, *none, *after; /* none: of no axes, each element by itself, NULL: that itself; after: applied to the result */
  bool squared;
} reductions[] = {{"ReduceSum", "reduce.sum", NULL, NULL, false},      {"ReduceMean", "mean", NULL, NULL, false},
                  {"ReduceMax", "reduce.max", NULL, NULL, false},      {"ReduceMin", "reduce.min", NULL, NULL, false},
                  {"ReduceProd", "reduce.prod", NULL, NULL, false},    {"ReduceL1", "norm_l1", "abs", NULL, false},
                  {"ReduceL2", "norm_l2", "abs", NULL, false},         {"ReduceLogSum", "reduce.sum", "log", "log", false},
                  {"ReduceLogSumExp", "logsumexp", NULL, NULL, false}, {"ReduceSumSquare", "reduce.sum", NULL, NULL, true}};

/* Since 13 the axes of ReduceSum are an input, since 18 all others', too. */
bool onnx_op_reduce(onnx_call *c) {
  const struct reduction *r = reductions;
  const bool sum = !strcmp(c->node->op, "ReduceSum"), by_input = c->opset >= 18 || (sum && c->opset >= 13);
  uint32_t x = onnx_in(c, 0), mask;
  while (r < reductions + IR_COUNT(reductions) - 1 && strcmp(r->op, c->node->op) != 0) r++;
  if (!x) return false;
  const ir_tensor type = *onnx_type_of(c, x);
  const bool noop = onnx_int(c, "noop_with_empty_axes", 0) != 0, keep = onnx_int(c, "keepdims", 1) != 0, flags = type.dtype == SNT_BOOL;
  if (!onnx_axes(c, by_input ? 1 : 0, type.rank, noop ? 0 : (1u << type.rank) - 1, &mask)) return false;
  if (noop && !mask && !r->squared) return r->none ? onnx_out(c, 0, onnx_add(c, "%s %%%u", r->none, x)) : onnx_out_same(c, 0, 0);
  if (r->squared) x = onnx_2(c, IR_OP_mul, x, x);
  if (flags) x = onnx_cast(c, x, SNT_U8);
  uint32_t y = x ? onnx_add(c, "%s %%%u, axes=%s%s", r->call, x, onnx_mask_text(c, mask), keep ? ", keep" : "") : 0;
  if (r->after && y) y = onnx_add(c, "%s %%%u", r->after, y);
  return onnx_out(c, 0, flags ? onnx_cast(c, y, SNT_BOOL) : y);
}

bool onnx_op_arg(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  const bool last = onnx_int(c, "select_last_index", 0) != 0, keep = onnx_int(c, "keepdims", 1) != 0;
  return x && onnx_out(c, 0,
                       onnx_add(c, "%s %%%u, axis=%lld%s%s", !strcmp(c->node->op, "ArgMax") ? "argmax" : "argmin", x,
                                (long long)onnx_int(c, "axis", 0), keep ? ", keep" : "", last ? ", last" : ""));
}

/* Softmax, LogSoftmax and Hardmax before 13: all axes from `axis` on are one. */
bool onnx_op_flat_rows(onnx_call *c) {
  static const struct { const char *op, *call; } kinds[] = {{"Softmax", "softmax"}, {"LogSoftmax", "log_softmax"}, {"Hardmax", "hardmax"}};
  const uint32_t x = onnx_in(c, 0);
  uint32_t kind = 0, axis;
  while (kind < IR_COUNT(kinds) - 1 && strcmp(kinds[kind].op, c->node->op) != 0) kind++;
  if (!x) return false;
  const ir_tensor type = *onnx_type_of(c, x);
  if (!onnx_axis(c, onnx_int(c, "axis", 1), type.rank, &axis)) return false;
  if (axis + 1u == type.rank) return onnx_out(c, 0, onnx_add(c, "%s %%%u, axis=%u", kinds[kind].call, x, axis));
  const uint32_t flat = onnx_add(c, "flatten %%%u, axis=%u", x, axis),
                 y = flat ? onnx_add(c, "%s %%%u, axis=1", kinds[kind].call, flat) : 0;
  return onnx_out(c, 0, onnx_reshape(c, y, type.rank, type.dims));
}

bool onnx_op_cumulative(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  int64_t axis;
  if (!x || !onnx_in_int(c, 1, &axis)) return false;
  const char *call = !strcmp(c->node->op, "CumProd") ? "scan.prod" : "scan.sum";
  const bool exclusive = onnx_int(c, "exclusive", 0) != 0, reverse = onnx_int(c, "reverse", 0) != 0;
  return onnx_out(
      c, 0, onnx_add(c, "%s %%%u, axis=%lld%s%s", call, x, (long long)axis, exclusive ? ", exclusive" : "", reverse ? ", reverse" : ""));
}
