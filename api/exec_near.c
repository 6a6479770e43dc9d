/* Whether the thread that submits a program's runs also computes them (rt_code.near). Threads of a device that sleep until a run comes, and
   a host that sleeps until it is over, cost a run of a few microseconds most of its time (profile: `wake_ns`). By the plan's prices: what
   all units save a run against one of them is weighed against waking them. A kernel's price knows its own operands; what a run of several
   reads may be more than the near caches keep for the next run. Runs whose extents are open may be longer than any price says. */
#include "api/exec.h"
#include "api/hints.h"
#include "cost_targets/cost.h"

/* A step's groups one after the other, less what they take beside each other. */
static double saved_by_units(const snt_exec *x, const plan_step *s) {
  const cost_profile *p = &x->device->profile;
  const double groups = api_at_hints(x->program, s->groups), beside = groups < p->units ? groups : p->units;
  return (s->est_ns - p->launch_ns) * (beside > 1 ? beside - 1 : 0);
}

/* What is read of all there is outside, once, takes one unit alone as many times as long as all; steps read what others of them write, too. */
double exec_saved_by_units(const snt_exec *x) {
  const cost_profile *p = &x->device->profile;
  double saved = 0, steps = 0, bytes = 0;
  for (uint32_t i = 0; i < x->program->plan.steps.count; i++) {
    const plan_step *s = &x->program->plan.steps.at[i];
    const double times = api_times(x->program, i);
    saved += saved_by_units(x, s) * times, steps += times;
    bytes += api_at_hints(x->program, s->bytes_read) - api_at_hints(x->program, s->bytes_written);
  }
  const double reading = bytes / cost_first_rate(p, bytes) * (p->units - 1);
  return (saved > reading ? saved : reading) + steps * (p->near_ns - p->launch_ns);
}

/* Steps that share a launch take less than one each. */
static double saved_by_links(const snt_exec *x) {
  double links = 0;
  for (uint32_t i = 0; i < x->chain_count; i++) {
    const exec_chain *c = &x->chains[i];
    links += api_times(x->program, c->first) * ((c->end - c->first) - 1. / c->trips);
  }
  return links * (x->device->profile.launch_ns - x->device->profile.link_ns);
}

bool exec_runs_near(const snt_exec *x) {
  if (!x->device->rt->near || x->flags || x->program->pool.symbols.count) return false;
  return exec_saved_by_units(x) + saved_by_links(x) < x->device->profile.wake_ns;
}
