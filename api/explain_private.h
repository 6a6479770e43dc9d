/* What the explanations share: names, JSON strings. */
#ifndef API_EXPLAIN_PRIVATE_H
#define API_EXPLAIN_PRIVATE_H
#include "api/hints.h"

const ir_graph *explain_graph_of(const snt_program *,
                                 uint32_t step);                  /* that its nodes are of: a body's, a branch's, or the working graph */
void explain_name(const ir_graph *, uint32_t node, ir_text *out); /* the user's name of a node; else its number with its operator */
const char *explain_kernel(const snt_program *, uint32_t kernel); /* the nodes that it computes, in the program's arena */
void explain_quoted(const char *text, ir_text *out);              /* as a JSON string */
void explain_graphs(const snt_program *, ir_arena *temp, ir_text *out);
void explain_dot(const snt_program *, bool after, ir_arena *temp, ir_text *out);
#endif
