/* Operators of the user's own, settled for the targets of the compile. A `custom` node becomes what it means where no target has a text for it,
   and loses what it means where all have one; an `opaque` node loses its meaning, or is it where kernels are only interpreted. A text that is
   missing where nothing else will do is an error with the names of the operator and of the target. */
#include "fusion/rebuild.h"
#include "ir/custom.h"

static const struct {
  uint32_t target;
  ir_attr_key key;
  const char *name;
} texts[] = {
    {SNT_TARGET_OPENCL, IR_ATTR_opencl, "opencl"}, {SNT_TARGET_CUDA, IR_ATTR_cuda, "cuda"}, {SNT_TARGET_SPIRV, IR_ATTR_glsl, "spirv"}};

static uint32_t targets_with_text(const fusion_context *c, const ir_graph *g, uint32_t node) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < IR_COUNT(texts); i++)
    if (ir_find_attr(g, node, texts[i].key) && (texts[i].target != SNT_TARGET_SPIRV || c->options->glsl)) found |= texts[i].target;
  return found;
}

/* Names the operator, the target, and what there is. */
static snt_result refuse(fusion_context *c, const ir_graph *g, uint32_t node, uint32_t missing) {
  char have[64] = "";
  size_t used = 0;
  const char *wanted = "spirv", *extra = "";
  for (uint32_t i = 0; i < IR_COUNT(texts); i++) {
    if (missing & texts[i].target) wanted = texts[i].name;
    if (!ir_find_attr(g, node, texts[i].key)) continue;
    const size_t length = strlen(texts[i].key == IR_ATTR_glsl ? "glsl" : texts[i].name);
    if (used) have[used++] = ',', have[used++] = ' ';
    memcpy(have + used, texts[i].key == IR_ATTR_glsl ? "glsl" : texts[i].name, length);
    used += length;
    if (texts[i].key == IR_ATTR_glsl && missing & SNT_TARGET_SPIRV) extra = ", and nothing here compiles GLSL";
  }
  return ir_fail(c->diag, SNT_E_UNSUPPORTED, "custom", ir_at(g, node)->origin, "operator %s has no source for %s: it has %s%s",
                 ir_custom_text(g, node, IR_ATTR_label, c->arena), wanted, *have ? have : "none", extra);
}

static uint32_t with_operand_0(rebuild *r, uint32_t value) {
  const ir_node *n = ir_at(r->from, r->node);
  uint32_t args[1 + IR_CUSTOM_ARGS];
  ir_attr_value attrs[IR_ATTR_COUNT];
  for (uint32_t i = 0; i < n->arity; i++) args[i] = r->args[i];
  args[0] = value;
  for (uint32_t i = 0; i < n->attr_count; i++) {
    const ir_attr *a = &r->from->attrs.at[n->attrs + i];
    attrs[i] = (ir_attr_value){a->key, a->count, r->from->ints.at + a->first};
  }
  return ir_add_node(r->to, (ir_op)n->op, n->arity, args, n->attr_count, attrs, NULL);
}

static uint32_t zero_of(rebuild *r, const ir_tensor *type) { return ir_add_const(r->to, type, &(ir_const){.kind = IR_CONST_SPLAT}); }

/* The node's shape must follow from what it is computed from. */
static bool keeps_shape(const rebuild *r, const ir_node *n) {
  bool found = n->type.rank == 0;
  for (uint32_t i = 1; i < n->arity; i++) found |= ir_at(r->to, r->args[i])->type.rank != 0;
  return found;
}

static uint32_t settle(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  const fusion_options *o = r->c->options;
  snt_result *result = r->user;
  if (*result != SNT_OK) return 0;
  const bool opaque = n->op == IR_OP_opaque, native = opaque || ir_attr_flag(r->from, r->node, IR_ATTR_native);
  const uint32_t printed = o->targets & ~(uint32_t)SNT_TARGET_HOST, have = targets_with_text(r->c, r->from, r->node);
  if (!printed) return r->args[0]; /* the interpreter's, or nobody's: what it means */
  /* Texts promise nothing of their bits. */
  if (o->numerics == SNT_NUMERICS_REPRODUCIBLE && !native) return r->args[0];
  if (native && printed & ~have) {
    *result = refuse(r->c, r->from, r->node, printed & ~have);
    return 0;
  }
  if (opaque && o->targets & SNT_TARGET_HOST) {
    *result = ir_fail(r->c->diag, SNT_E_UNSUPPORTED, "custom", n->origin, "operator %s is a kernel: compile for the interpreter apart",
                      ir_custom_text(r->from, r->node, IR_ATTR_label, r->c->arena));
    return 0;
  }
  if (opaque) return with_operand_0(r, zero_of(r, &n->type));
  if (!(printed & have)) return r->args[0];
  if (o->targets & ~have || !keeps_shape(r, n)) return 0;
  const ir_tensor scalar = {.dtype = n->type.dtype};
  return with_operand_0(r, zero_of(r, &scalar));
}

snt_result fusion_settle_custom(fusion_context *c, bool *changed) {
  static const rebuild_rule rules[] = {{settle, .ops = {IR_OP_custom, IR_OP_opaque}}};
  snt_result result = SNT_OK;
  bool any = false;
  for (uint32_t n = 1; n < c->graph->nodes.count && !any; n++)
    any = ir_at(c->graph, n)->op == IR_OP_custom || ir_at(c->graph, n)->op == IR_OP_opaque;
  if (!any) return SNT_OK;
  const snt_result walked = fusion_rebuild_with(c, rules, IR_COUNT(rules), &result, changed);
  return result != SNT_OK ? result : walked;
}
