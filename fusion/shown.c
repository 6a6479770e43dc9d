/* Constants below views: which element of the data a value's element is. In: a value of a graph. Out: the constant, and strides along the value's axes. */
#include "fusion/shown.h"
#include "fusion/emit_private.h"

static bool keeps_value(const ir_dtype_info *from, const ir_dtype_info *to) {
  if (from->is_float) return to->is_float && to->bits > from->bits;
  if (to->is_float) return 2u * from->bits <= to->bits;
  return from->is_int && to->is_int && to->bits > from->bits && (to->is_signed || !from->is_signed);
}

bool fusion_show(ir_graph *g, uint32_t node, fusion_shown *s) {
  expr_pool *x = g->pool;
  const ir_tensor *type = &ir_at(g, node)->type;
  map_access at = {.rank = type->rank};
  *s = (fusion_shown){.rank = type->rank, .elements = 1};
  for (uint32_t d = 0; d < s->rank; d++) {
    if (!expr_is_const(x, type->dims[d], &s->extent[d])) return false;
    s->elements *= s->extent[d];
    at.at[d] = expr_var_add(x, "w", 0, type->dims[d], 1);
  }
  const map_access own = at;
  for (;; node = ir_arg(g, node, 0)) {
    const ir_node *n = ir_at(g, node);
    if (n->op == IR_OP_cast && keeps_value(&ir_dtypes[ir_at(g, ir_arg(g, node, 0))->type.dtype], &ir_dtypes[n->type.dtype])) continue;
    if (!fusion_is_view(g, node) || n->op == IR_OP_concat || n->op == IR_OP_words) break;
    if (!ir_movement_access(g, node, 0, &at)) return false;
  }
  if (ir_at(g, node)->op != IR_OP_const || at.condition_count) return false;
  ir_expr rest = map_linear(x, &at, ir_at(g, node)->type.dims);
  for (uint32_t d = 0; d < s->rank; d++) {
    const ir_expr whole = rest;
    if (own.at[d] < 0 && !expr_split_affine(x, whole, emit_var_number(x, own.at[d]), &s->stride[d], &rest)) return false;
  }
  s->constant = node;
  s->dtype = ir_at(g, node)->type.dtype;
  return expr_is_const(x, rest, &s->first);
}

int64_t fusion_walk(const fusion_shown *s, uint32_t channels, fusion_element_fn each, void *user) {
  int64_t step[SNT_MAX_RANK] = {0}, at[SNT_MAX_RANK] = {0}, count = 1, offset = s->first, channel = 0;
  for (uint32_t d = s->rank; d-- > 0;)
    if (channels >> d & 1) step[d] = count, count *= s->extent[d];
  for (int64_t i = 0; i < s->elements; i++) {
    each(user, i, channel, (float)ir_dtype_load(s->dtype, s->data, (size_t)offset));
    for (uint32_t d = s->rank; d-- > 0;) {
      offset += s->stride[d], channel += step[d];
      if (++at[d] < s->extent[d]) break;
      offset -= at[d] * s->stride[d], channel -= at[d] * step[d];
      at[d] = 0;
    }
  }
  return count;
}
