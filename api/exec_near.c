/* Whether the thread that submits a program's runs also computes them (rt_code.near). Threads of a device that sleep until a run comes, and
   a host that sleeps until it is over, cost a run of a few microseconds most of its time (profile: `wake_ns`). By the plan's prices: what
   all units save a run against one of them is weighed against waking them. Runs whose extents are open may be longer than any price says. */
#include "api/exec.h"
#include "api/hints.h"

/* A step's groups one after the other, less what they take beside each other and until all units know that it is done. */
static double saved_by_units(const snt_exec *x, const plan_step *s) {
  const cost_profile *p = &x->device->profile;
  const double groups = api_at_hints(x->program, s->groups), beside = groups < p->units ? groups : p->units;
  return (s->est_ns - p->launch_ns) * (beside > 1 ? beside - 1 : 0) + p->near_ns - p->launch_ns;
}

double exec_saved_by_units(const snt_exec *x) {
  const ir_plan *plan = &x->program->plan;
  double saved = 0;
  for (uint32_t i = 0; i < plan->steps.count; i++) saved += saved_by_units(x, &plan->steps.at[i]) * api_times(x->program, i);
  return saved;
}

bool exec_runs_near(const snt_exec *x) {
  if (!x->device->rt->near || x->flags || x->program->pool.symbols.count) return false;
  return exec_saved_by_units(x) < x->device->profile.wake_ns;
}
