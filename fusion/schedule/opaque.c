/* Kind `opaque`: a kernel whose body the user wrote, once for each target. In: an `opaque` node. Out: one step whose kernel binds the operands and
   the result as they lie in memory, has the scalars as the text calls them, and one instruction, `inline`. What has no memory of its own (a view, a
   constant number, an image) is copied first. */
#include "fusion/emit_private.h"
#include "fusion/image.h"
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"
#include "ir/custom.h"

static bool lies_in_memory(const fusion_context *c, uint32_t node) { return fusion_is_stored(c, node) && !fusion_image_layout(c, node); }

/* buffers[number] holds operand `number`; every binding is another buffer. */
static snt_result buffer_with(fusion_context *c, uint32_t node, uint32_t *buffers, uint32_t number) {
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  uint32_t *out = &buffers[number];
  bool taken = !lies_in_memory(c, node);
  *out = taken ? UINT32_MAX : fusion_buffer_of(c, node);
  for (uint32_t i = 0; i < number; i++) taken |= buffers[i] == *out;
  if (!taken) return SNT_OK;
  *out = fusion_add_scratch(c, "operand", t->dtype, ir_tensor_elements(c->graph->pool, t));
  return schedule_copy(c, node, *out);
}

/* As plain elements: what is written too is never read through texels. */
static void bind(emit *e, uint32_t buffer, uint8_t access) {
  const uint32_t memory = emit_bind(e, buffer, KIR_READ | KIR_WRITE);
  if (e->failed || e->k->failed) return;
  e->k->memories.at[memory].access = access;
  e->access.at[e->k->memories.at[memory].slot] = access;
}

static void put_body(emit *e, uint32_t node) {
  uint32_t count = 0, args[IR_CUSTOM_SCALARS] = {0};
  const ir_expr *scalars = ir_attr_ints(e->g, node, IR_ATTR_scalars, &count);
  kir_own own;
  emit_own_texts(e->g, node, e->arena, &own);
  for (uint32_t i = 0; i < count; i++) args[i] = emit_expr(e, scalars[i]);
  const kir_inst body = {.op = KIR_inline, .index = kir_own_add(e->k, &own)};
  kir_put(e->k, &body, count, args);
}

snt_result schedule_opaque_build(fusion_context *c, const fusion_group *group) {
  const ir_graph *g = c->graph;
  const uint32_t node = group->hero;
  const ir_node *n = ir_at(g, node);
  uint32_t buffers[1 + IR_CUSTOM_ARGS], items = 0;
  if (fusion_image_layout(c, node))
    return ir_fail(c->diag, SNT_E_UNSUPPORTED, "schedule", n->origin, "operator %s cannot write an image",
                   ir_custom_text(g, node, IR_ATTR_label, c->arena));
  buffers[0] = fusion_buffer_of(c, node);
  for (uint32_t i = 1; i < n->arity; i++) SNT_TRY(buffer_with(c, ir_arg(g, node, i), buffers, i));
  emit *e = emit_begin(c, group, ir_custom_text(g, node, IR_ATTR_label, c->arena));
  if (!e) return ir_no_memory(c->diag, "schedule");
  for (uint32_t i = 1; i < n->arity; i++) bind(e, buffers[i], KIR_READ);
  bind(e, buffers[0], KIR_WRITE);
  const ir_expr *counts = ir_attr_ints(g, node, IR_ATTR_items, &items);
  for (uint32_t i = 0; i < items && i < 3; i++) e->k->items[i] = (uint32_t)counts[i];
  put_body(e, node);
  return emit_end(e, *ir_attr_ints(g, node, IR_ATTR_groups, NULL), 0, 0, NULL);
}
