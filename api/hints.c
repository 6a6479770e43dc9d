/* What a program's plan says at the hints of its symbols. */
#include "api/hints.h"
#include "fusion/schedule_common.h"

double api_at_hints(const snt_program *p, ir_expr e) { return (double)schedule_hint(&p->pool, e); }

static bool is_around(const plan_loop *l, uint32_t step) { return l->first <= step && step < l->end; }

const plan_loop *api_loop_around(const ir_plan *p, uint32_t step) {
  const plan_loop *inner = NULL;
  for (uint32_t i = 0; i < p->loops.count; i++)
    if (is_around(&p->loops.at[i], step)) inner = &p->loops.at[i];
  return inner;
}

/* Trips of the loops around a step, at the hints: of a branch one or none. */
static double trips_around(const snt_program *p, uint32_t step) {
  double n = 1;
  for (uint32_t i = 0; i < p->plan.loops.count; i++)
    if (is_around(&p->plan.loops.at[i], step)) n *= api_at_hints(p, p->plan.loops.at[i].trips);
  return n;
}

/* In a loop of several trips guards may ask for the trip. */
bool api_runs(const snt_program *p, uint32_t step) {
  const plan_loop *l = api_loop_around(&p->plan, step);
  int64_t least, most;
  expr_bounds(&p->pool, l ? l->trips : 0, &least, &most);
  return trips_around(p, step) > 0 && (most > 1 || schedule_runs(&p->plan, step));
}

double api_times(const snt_program *p, uint32_t step) { return api_runs(p, step) ? trips_around(p, step) : 0; }
