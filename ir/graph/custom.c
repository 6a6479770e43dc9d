/* Text attributes, and the type rules of `custom` and `opaque`. */
#include "ir/custom.h"
#include "ir/kernel.h"
#include "ir/shape_private.h"

enum { BYTES_A_NUMBER = 7, MAX_TEXT = 1 << 16, MAX_ITEMS = 1024 };

/* ---- texts ---- */
ir_expr *ir_pack_text(ir_arena *arena, const char *text, size_t length, uint32_t *count) {
  if (length > MAX_TEXT) length = MAX_TEXT + 1; /* refused by the rule below */
  *count = 1 + (uint32_t)((length + BYTES_A_NUMBER - 1) / BYTES_A_NUMBER);
  ir_expr *ints = IR_NEW_ARRAY(arena, ir_expr, *count);
  if (!ints) return NULL;
  ints[0] = (ir_expr)length;
  for (size_t i = 0; i < length; i++) ints[1 + i / BYTES_A_NUMBER] |= (ir_expr)(unsigned char)text[i] << (8 * (i % BYTES_A_NUMBER));
  return ints;
}

bool ir_text_attr_fits(const ir_expr *ints, uint32_t count) {
  if (!count || ints[0] < 0 || ints[0] > MAX_TEXT) return false;
  if (count != 1 + (uint32_t)((ints[0] + BYTES_A_NUMBER - 1) / BYTES_A_NUMBER)) return false;
  for (uint32_t i = 1; i < count; i++)
    if (ints[i] < 0 || ints[i] >> 56) return false;
  return true;
}

const char *ir_attr_text(const ir_graph *g, const ir_attr *a, ir_arena *arena) {
  const ir_expr *ints = &g->ints.at[a->first];
  char *text = ir_arena_take(arena, (size_t)ints[0] + 1, 1);
  if (!text) return "";
  for (size_t i = 0; i < (size_t)ints[0]; i++) text[i] = (char)(ints[1 + i / BYTES_A_NUMBER] >> (8 * (i % BYTES_A_NUMBER)) & 0xff);
  text[ints[0]] = 0;
  return text;
}

const char *ir_custom_text(const ir_graph *g, uint32_t node, ir_attr_key key, ir_arena *arena) {
  const ir_attr *a = ir_find_attr(g, node, key);
  return a ? ir_attr_text(g, a, arena) : NULL;
}

/* ---- rules ---- */
static bool is_name(const char *at, uint32_t length) {
  for (uint32_t i = 0; i < length; i++) {
    const char c = at[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && (i == 0 || c < '0' || c > '9')) return false;
  }
  return length > 0 && length < IR_CUSTOM_NAME;
}

/* The text of an attribute of the query; null: there is none, or no memory. */
static const char *text_of(shape_query *q, ir_attr_key key) {
  if (!shape_has(q, key)) return NULL;
  const ir_graph holder = {.ints = {.at = (ir_expr *)(uintptr_t)q->attr[key].ints}};
  return ir_attr_text(&holder, &(ir_attr){.first = 0}, q->pool->arena);
}

/* The operator's name, and as many names as its texts use. */
static snt_result check_names(shape_query *q, uint32_t wanted) {
  const char *label = text_of(q, IR_ATTR_label), *params = text_of(q, IR_ATTR_params), *at;
  if (!label || !is_name(label, (uint32_t)strlen(label))) return shape_fail(q, "label must be the operator's name, a word of C");
  if (!params) return shape_fail(q, "%s: params is missing", label);
  for (uint32_t i = 0; i < wanted; i++) {
    const uint32_t length = kir_own_param(params, i, &at);
    if (!is_name(at, length)) return shape_fail(q, "%s: params has no name number %u; %u are needed", label, i + 1, wanted);
  }
  return kir_own_param(params, wanted, &at) ? shape_fail(q, "%s: params has more than %u names", label, wanted) : SNT_OK;
}

static snt_result check_ulp(shape_query *q) {
  int64_t ulp = 0;
  if (shape_has(q, IR_ATTR_ulp) && (!expr_is_const(q->pool, q->ints[IR_ATTR_ulp][0], &ulp) || ulp < 0 || ulp > 1 << 20))
    return shape_fail(q, "ulp must be a number from 0 to %d", 1 << 20);
  return SNT_OK;
}

/* Values that a text can compute with: as float, int and uint. */
static bool is_computed(uint32_t dtype) {
  return dtype == SNT_F32 || dtype == SNT_F16 || dtype == SNT_BF16 || dtype == SNT_I32 || dtype == SNT_U32;
}

snt_result shape_custom(shape_query *q) {
  if (q->arg_count < 2 || q->arg_count > 1 + IR_CUSTOM_ARGS)
    return shape_fail(q, "%u operands: its value, then 1 to %d that it is computed from", q->arg_count, IR_CUSTOM_ARGS);
  for (uint32_t i = 0; i < q->arg_count; i++)
    if (!is_computed(shape_arg(q, i)->dtype))
      return shape_fail(q, "operand %u is %s: f32, f16, bf16, i32 and u32 are computed with", i + 1,
                        ir_dtypes[shape_arg(q, i)->dtype].name);
  SNT_TRY(check_names(q, q->arg_count - 1));
  SNT_TRY(check_ulp(q));
  q->out.dtype = shape_arg(q, 0)->dtype;
  return shape_common(q, 0);
}

static snt_result check_items(shape_query *q) {
  int64_t total = 1, items;
  SNT_TRY(shape_need(q, IR_ATTR_items));
  const uint32_t count = q->attr[IR_ATTR_items].count;
  for (uint32_t i = 0; i < count; i++) {
    if (!expr_is_const(q->pool, q->ints[IR_ATTR_items][i], &items) || items < 1 || items > MAX_ITEMS)
      return shape_fail(q, "items must be numbers from 1 to %d", MAX_ITEMS);
    total *= items;
  }
  return count >= 1 && count <= 3 && total <= MAX_ITEMS ? SNT_OK : shape_fail(q, "items has 1 to 3 entries, %d in all", MAX_ITEMS);
}

snt_result shape_opaque(shape_query *q) {
  if (q->arg_count < 2 || q->arg_count > 1 + IR_CUSTOM_ARGS)
    return shape_fail(q, "%u operands: its value, then 1 to %d that its kernel reads", q->arg_count, IR_CUSTOM_ARGS);
  for (uint32_t i = 0; i < q->arg_count; i++)
    if (shape_arg(q, i)->dtype > SNT_BOOL)
      return shape_fail(q, "operand %u is %s, a storage type: cast it first", i + 1, ir_dtypes[shape_arg(q, i)->dtype].name);
  const uint32_t scalars = shape_has(q, IR_ATTR_scalars) ? q->attr[IR_ATTR_scalars].count : 0;
  SNT_TRY(check_names(q, q->arg_count + scalars));
  SNT_TRY(check_ulp(q));
  SNT_TRY(check_items(q));
  SNT_TRY(shape_need(q, IR_ATTR_groups));
  q->out = *shape_arg(q, 0);
  return SNT_OK;
}
