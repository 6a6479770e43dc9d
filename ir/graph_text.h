/* What printer and parser of the graph text share: words, and the rule for the element type that a bare literal takes. */
#ifndef IR_GRAPH_TEXT_H
#define IR_GRAPH_TEXT_H
#include "ir/graph.h"

extern const char *const graph_contract_words[IR_BARRIER + 1]; /* by ir_contract_kind */
/* The type of a literal in operand place `slot`: from the result (0: not stated) or from the first operand that is no literal (0 in
   `operands`). 0: nothing says it, so the literal must carry it ("3:i64"). */
int32_t graph_literal_dtype(ir_op, uint32_t slot, int32_t result, uint32_t count, const uint8_t *operands);
/* Shape or dtype that the declared type of the result carries, and that is therefore not printed among the attributes. */
bool graph_type_carries(ir_op, ir_attr_key);
bool graph_is_identifier(const char *text); /* a letter or _, then letters, digits, _ and . */
#endif
