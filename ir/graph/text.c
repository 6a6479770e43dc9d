/* Rules of the graph text that printer and parser must agree on. */
#include "ir/graph_text.h"

const char *const graph_contract_words[IR_BARRIER + 1] = {
    [IR_MUST_FUSE] = "must_fuse", [IR_NEVER_FUSE] = "never_fuse", [IR_KEEP] = "keep", [IR_BARRIER] = "barrier"};

/* Operand places whose type is that of the result. */
static bool follows_result(ir_op op, uint32_t slot) {
  switch (ir_ops[op].rule) {
  case IR_RULE_SAME:
  case IR_RULE_REDUCE:
  case IR_RULE_RESHAPE:
  case IR_RULE_TRANSPOSE:
  case IR_RULE_BROADCAST:
  case IR_RULE_SLICE:
  case IR_RULE_PAD:
  case IR_RULE_CONCAT:
  case IR_RULE_WINDOW: return true;
  case IR_RULE_SELECT: return slot > 0;
  case IR_RULE_GATHER:
  case IR_RULE_SCATTER: return slot != 1;
  default: return false;
  }
}

int32_t graph_literal_dtype(ir_op op, uint32_t slot, int32_t result, uint32_t count, const uint8_t *operands) {
  const uint8_t rule = ir_ops[op].rule;
  if (rule == IR_RULE_SELECT && slot == 0) return SNT_BOOL;
  if ((rule == IR_RULE_GATHER || rule == IR_RULE_SCATTER) && slot == 1) return SNT_I64;
  if (rule == IR_RULE_RANDOM) return SNT_U32;
  if (rule == IR_RULE_CUSTOM || rule == IR_RULE_OPAQUE) return slot == 0 ? result : 0;
  const bool follows = follows_result(op, slot);
  if (follows && result) return result;
  if (!follows && rule != IR_RULE_BOOL && rule != IR_RULE_CONTRACT) return 0;
  for (uint32_t i = 0; i < count; i++)
    if (operands[i] && (rule == IR_RULE_BOOL || rule == IR_RULE_CONTRACT || follows_result(op, i))) return operands[i];
  return 0;
}

bool graph_type_carries(ir_op op, ir_attr_key key) {
  switch (ir_ops[op].rule) {
  case IR_RULE_RESHAPE:
  case IR_RULE_BROADCAST: return key == IR_ATTR_shape;
  case IR_RULE_CAST:
  case IR_RULE_BITCAST:
  case IR_RULE_CONTRACT: return key == IR_ATTR_dtype;
  default: return false;
  }
}

bool graph_is_identifier(const char *text) {
  for (const char *c = text; *c; c++) {
    bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
    if (!letter && (c == text || ((*c < '0' || *c > '9') && *c != '.'))) return false;
  }
  return *text != 0 && !(text[0] == '_' && text[1] == 0);
}
