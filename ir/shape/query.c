/* What the shape rules have in common: how they fail, how they name types, what they read of attributes and operands. */
#include "ir/shape_private.h"
#include <stdio.h>

snt_result shape_fail(shape_query *q, const char *format, ...) {
  char text[sizeof q->diag->text];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return ir_fail(q->diag, SNT_E_SHAPE, "shape", 0, "%s: %s", ir_ops[q->op].name, text);
}

void shape_print_type(const expr_pool *pool, const ir_tensor *type, ir_text *text) {
  ir_text_format(text, "%s[", type->dtype < SNT_DTYPE_COUNT ? ir_dtypes[type->dtype].name : "?");
  for (uint32_t i = 0; i < type->rank && i < SNT_MAX_RANK; i++) {
    if (i) ir_text_add(text, ",");
    expr_print(pool, type->dims[i], text);
  }
  ir_text_add(text, "]");
}

const char *shape_name_type(shape_query *q, const ir_tensor *type) {
  ir_text text;
  ir_text_init(&text, q->pool->arena);
  shape_print_type(q->pool, type, &text);
  return text.failed || !text.at ? "?" : text.at;
}

const char *shape_name_dim(shape_query *q, ir_expr dim) {
  ir_text text;
  ir_text_init(&text, q->pool->arena);
  expr_print(q->pool, dim, &text);
  return text.failed || !text.at ? "?" : text.at;
}

/* ---- attributes ---- */
void shape_set(shape_query *q, ir_attr_key key, uint32_t count, const ir_expr *ints) {
  if (count) memmove(q->ints[key], ints, count * sizeof *ints);
  q->has |= UINT64_C(1) << key;
  q->attr[key] = (ir_attr_value){.key = (uint8_t)key, .count = count, .ints = q->ints[key]};
}

snt_result shape_need(shape_query *q, ir_attr_key key) {
  return shape_has(q, key) ? SNT_OK : shape_fail(q, "attribute %s is missing", ir_attr_infos[key].name);
}

snt_result shape_list(shape_query *q, ir_attr_key key, uint32_t count, int64_t otherwise) {
  if (!shape_has(q, key)) {
    ir_expr all[SHAPE_MAX_INTS];
    for (uint32_t i = 0; i < count; i++) all[i] = expr_int(q->pool, otherwise);
    shape_set(q, key, count, all);
  }
  if (q->attr[key].count == count) return SNT_OK;
  return shape_fail(q, "%s has %u entries, %u are needed", ir_attr_infos[key].name, q->attr[key].count, count);
}

snt_result shape_axis(shape_query *q, ir_attr_key key, uint32_t i, uint32_t rank, uint32_t *out) {
  int64_t axis;
  if (!expr_is_const(q->pool, q->ints[key][i], &axis)) return shape_fail(q, "%s must be a number", ir_attr_infos[key].name);
  if (axis < -(int64_t)rank || axis >= (int64_t)rank)
    return shape_fail(q, "%s %lld is outside an operand of rank %u", ir_attr_infos[key].name, (long long)axis, rank);
  *out = (uint32_t)(axis < 0 ? axis + rank : axis);
  q->ints[key][i] = *out;
  return SNT_OK;
}

snt_result shape_fill_value(shape_query *q) {
  const ir_expr zero = 0; /* the bits of 0 in every type */
  if (!shape_has(q, IR_ATTR_value)) shape_set(q, IR_ATTR_value, 1, &zero);
  return SNT_OK;
}

snt_result shape_class(shape_query *q, uint32_t i, bool storage) {
  const ir_dtype_info *info = &ir_dtypes[shape_arg(q, i)->dtype];
  const uint8_t is = info->is_float ? IR_CLASS_F : info->is_int ? IR_CLASS_I : IR_CLASS_B;
  if (!(ir_ops[q->op].classes & is)) return shape_fail(q, "operand %u may not be %s", i + 1, info->name);
  if (!storage && info->bits < 8 && is == IR_CLASS_I)
    return shape_fail(q, "operand %u is %s, a storage type: cast it first", i + 1, info->name);
  if (!storage && info->bits == 8 && is == IR_CLASS_F)
    return shape_fail(q, "operand %u is %s, a storage type: cast it first", i + 1, info->name);
  return SNT_OK;
}
