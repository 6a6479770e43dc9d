/* What the files of the graph builder share. */
#ifndef IR_GRAPH_PRIVATE_H
#define IR_GRAPH_PRIVATE_H
#include "ir/graph.h"

/* Records the first mistake and makes it stick. Returns 0, so that `return graph_mistake(...)` reads as one step. */
uint32_t graph_mistake(ir_graph *, snt_result, const char *format, ...) IR_PRINTF(3, 4);
/* Fails the graph if one of the values is no node of it; false then (and when it failed before). */
bool graph_check_values(ir_graph *, const char *what, uint32_t count, const uint32_t *values);
/* Appends a node as it is: type, operands and attributes are the caller's. 0: out of memory. */
uint32_t graph_put(ir_graph *, const ir_node *, uint32_t arg_count, const uint32_t *args);
bool graph_put_attr(ir_graph *, uint8_t key, uint32_t count, const ir_expr *ints);
/* False after a failure of the arena or of the pool, which then is the graph's own. */
bool graph_alive(ir_graph *);
/* ir_repeat_end that makes no pick for the results marked unused (may be null). */
uint32_t graph_repeat_end(ir_graph *, uint32_t count, const uint32_t *next, const bool *unused, uint32_t *results);
#endif
