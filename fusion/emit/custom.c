/* An operator of the user's own as a value: what it means, and beside it the texts that targets may print in its place (pass `own` chooses).
   In: a `custom` node. Out: an instruction `own`, in vectors like any other. */
#include "fusion/emit_private.h"
#include "ir/custom.h"

void emit_own_texts(const ir_graph *g, uint32_t node, ir_arena *arena, kir_own *out) {
  static const ir_attr_key keys[KIR_OWN_TARGETS] = {
      [KIR_OWN_OPENCL] = IR_ATTR_opencl, [KIR_OWN_CUDA] = IR_ATTR_cuda, [KIR_OWN_GLSL] = IR_ATTR_glsl};
  *out = (kir_own){.native = ir_attr_flag(g, node, IR_ATTR_native)};
  out->name = ir_custom_text(g, node, IR_ATTR_label, arena);
  out->params = ir_custom_text(g, node, IR_ATTR_params, arena);
  for (uint32_t i = 0; i < KIR_OWN_TARGETS; i++) out->source[i] = ir_custom_text(g, node, keys[i], arena);
}

uint32_t emit_custom(emit *e, uint32_t node, const map_access *access) {
  const ir_node *n = ir_at(e->g, node);
  uint32_t args[1 + IR_CUSTOM_ARGS] = {0}, lanes = 1;
  kir_own own;
  emit_own_texts(e->g, node, e->arena, &own);
  for (uint32_t i = 0; i < n->arity; i++) {
    map_access at = *access;
    if (ir_at(e->g, ir_arg(e->g, node, i))->type.rank == 0) at.rank = 0;
    args[i] = emit_value(e, ir_arg(e->g, node, i), &at);
    if (!args[i] || e->failed || e->k->failed) return 0;
    own.types[i] = emit_value_type(e, args[i]).base;
    if (emit_value_type(e, args[i]).lanes > lanes) lanes = emit_value_type(e, args[i]).lanes;
  }
  for (uint32_t i = 0; i < n->arity; i++) args[i] = kir_splat(e->k, args[i], lanes);
  const kir_inst inst = {.op = KIR_own, .index = kir_own_add(e->k, &own)};
  const uint32_t value = kir_put(e->k, &inst, n->arity, args);
  return value ? emit_round_node(e, n, value) : 0;
}
