/* A program at the hints of its symbols: what explanations say, and who decides by what a run will take. */
#ifndef API_HINTS_H
#define API_HINTS_H
#include "api/handles.h"

double api_at_hints(const snt_program *, ir_expr);
bool api_runs(const snt_program *, uint32_t step);                /* false: the step is for other extents */
double api_times(const snt_program *, uint32_t step);             /* how often it runs; of steps for different extents one does */
const plan_loop *api_loop_around(const ir_plan *, uint32_t step); /* the innermost; null: none */
#endif
