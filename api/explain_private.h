/* What the explanations share: numbers at the hints of the symbols, names, JSON strings. */
#ifndef API_EXPLAIN_PRIVATE_H
#define API_EXPLAIN_PRIVATE_H
#include "api/handles.h"

double explain_at_hints(const snt_program *, ir_expr);
const plan_loop *explain_loop_of(const snt_program *, uint32_t step); /* the innermost loop around a step, or null */
const ir_graph *explain_graph_of(const snt_program *,
                                 uint32_t step);          /* that its nodes are of: a body's, a branch's, or the working graph */
bool explain_runs(const snt_program *, uint32_t step);    /* at the hints; false: it is for other extents */
double explain_times(const snt_program *, uint32_t step); /* how often it runs, at the hints; of steps for different extents one does */
void explain_name(const ir_graph *, uint32_t node, ir_text *out); /* the user's name of a node; else its number with its operator */
const char *explain_kernel(const snt_program *, uint32_t kernel); /* the nodes that it computes, in the program's arena */
void explain_quoted(const char *text, ir_text *out);              /* as a JSON string */
void explain_graphs(const snt_program *, ir_arena *temp, ir_text *out);
void explain_dot(const snt_program *, bool after, ir_arena *temp, ir_text *out);
#endif
