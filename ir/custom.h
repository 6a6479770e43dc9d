/* Operators of the user's own, in the graph: `custom` is computed element by element and fused like any other, `opaque` is a kernel of its own.
   Both have their meaning as operand 0, which other operators compute, and texts for targets that are used in its place there. How they are
   defined and called: ir/graph/define.c; what becomes of them in a compile: fusion/custom.c. */
#ifndef IR_CUSTOM_H
#define IR_CUSTOM_H
#include "ir/graph.h"

enum { IR_CUSTOM_ARGS = 8, IR_CUSTOM_SCALARS = 16, IR_CUSTOM_NAME = 32 };

/* A text attribute: its length, then seven bytes a number, so that none is a handle of an expression. */
ir_expr *ir_pack_text(ir_arena *, const char *text, size_t length, uint32_t *count);
bool ir_text_attr_fits(const ir_expr *ints, uint32_t count);
/* Terminated, in the arena; "" where there is none, or no memory. */
const char *ir_attr_text(const ir_graph *, const ir_attr *, ir_arena *);
const char *ir_custom_text(const ir_graph *, uint32_t node, ir_attr_key, ir_arena *); /* null if absent */
#endif
