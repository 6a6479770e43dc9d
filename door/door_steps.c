/* What a run consists of: the sets of resources that a step binds, and how often loops bring it. In: the plan. Invariant: a step's sets are numbered
   one after the other, by which of its pairs of buffers lie the other way round. */
#include "door/door.h"

static snt_result add_swap(const plan_step *step, door_step *to, ir_expr swap, snt_diag *diag) {
  for (uint32_t i = 0; i < to->swap_count; i++)
    if (to->swaps[i] == swap) return SNT_OK;
  if (to->swap_count == DOOR_MAX_SWAPS)
    return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0, "%s is in loops around loops: more than %d kinds of pairs of buffers", step->name,
                   DOOR_MAX_SWAPS);
  to->swaps[to->swap_count++] = swap;
  return SNT_OK;
}

snt_result door_make_sets(snt_exec *x, snt_diag *diag) {
  const ir_plan *p = door_plan(x);
  door_exec *d = x->door;
  uint32_t count = 0;
  d->steps = api_take(x->device->context, p->steps.count * sizeof *d->steps);
  if (!d->steps) return ir_no_memory(diag, "exec");
  for (uint32_t s = 0; s < p->steps.count; s++) {
    const plan_step *step = &p->steps.at[s];
    d->steps[s].first_set = count;
    for (uint32_t i = 0; i < step->binding_count; i++)
      if (step->bindings[i].swap) SNT_TRY(add_swap(step, &d->steps[s], step->bindings[i].swap, diag));
    count += 1u << d->steps[s].swap_count;
  }
  d->sets = api_take(x->device->context, count * sizeof *d->sets);
  if (!d->sets) return ir_no_memory(diag, "exec");
  d->set_count = count;
  for (uint32_t s = 0; s < p->steps.count; s++)
    for (uint32_t i = 0; i < 1u << d->steps[s].swap_count; i++) d->sets[d->steps[s].first_set + i] = (door_set){s, i};
  return SNT_OK;
}

void door_give_sets(snt_exec *x) {
  api_give(x->device->context, x->door->steps, door_plan(x)->steps.count * sizeof *x->door->steps);
  api_give(x->device->context, x->door->sets, x->door->set_count * sizeof *x->door->sets);
}

static bool set_at(const snt_exec *x, uint32_t step, const expr_values *at, uint32_t *set) {
  const door_step *s = &x->door->steps[step];
  uint32_t turned = 0;
  for (uint32_t i = 0; i < s->swap_count; i++) {
    uint64_t holds;
    if (!plan_eval_at(door_plan(x), s->swaps[i], at, &holds)) return false;
    turned |= (uint32_t)(holds != 0) << i;
  }
  *set = s->first_set + turned;
  return true;
}

uint32_t door_bound_buffer(const snt_exec *x, uint32_t set, uint32_t slot) {
  const plan_binding *b = &door_step_of(x, set)->bindings[slot];
  const door_step *s = &x->door->steps[x->door->sets[set].step];
  uint32_t i = 0;
  if (!b->swap) return b->buffer;
  while (s->swaps[i] != b->swap) i++;
  return x->door->sets[set].turned >> i & 1 ? b->other : b->buffer;
}

/* ---- a run ---- */

static snt_result walk_step(void *user, uint32_t s) {
  door_run *r = user;
  const snt_exec *x = r->x;
  const plan_step *step = &door_plan(x)->steps.at[s];
  const uint32_t *most = door_of(x)->limits.core.maxComputeWorkGroupCount, block = x->program->kernels[step->kernel].block_bytes;
  const uint64_t limit[3] = {most[0], most[1], most[2]};
  plan_launch launch;
  door_launch to;
  if (!plan_eval_step(door_plan(x), s, &r->at, &r->choice, &launch) || !set_at(x, s, &r->at, &to.set))
    return ir_fail(r->diag, SNT_E_LIMIT, r->stage, 0, "a size of %s does not fit 32 bits", step->name);
  r->owed |= step->barrier != 0;
  to.step = s;
  to.runs = launch.runs;
  to.push_bytes = launch.runs ? door_push_bytes(x, step->kernel) : 0;
  if (!to.runs) return r->put(r->user, &to);
  to.barrier = r->owed;
  r->owed = false;
  plan_fold_grid(launch.groups, limit, to.grid);
  if ((uint64_t)to.grid[0] * to.grid[1] * to.grid[2] < launch.groups || to.grid[0] > most[0] || to.grid[1] > most[1] ||
      launch.groups > UINT32_MAX)
    return ir_fail(r->diag, SNT_E_LIMIT, r->stage, 0, "%s: %llu groups are too many", step->name, (unsigned long long)launch.groups);
  memset(to.push, 0, to.push_bytes);
  memcpy(to.push, launch.scalars, block);
  to.push[block / 4] = (uint32_t)launch.groups; /* addresses, behind it, are put in by who knows them */
  return r->put(r->user, &to);
}

/* Each trip chooses anew, and what it skips may have been what others wait for. */
static void walk_trip(void *user) {
  door_run *r = user;
  r->choice = 0;
  r->owed = true;
}

snt_result door_walk(door_run *r, int64_t *variables) {
  const plan_walk walk = {r, walk_step, walk_trip, r->at.symbols, variables};
  return plan_walk_steps(door_plan(r->x), &walk);
}

snt_result door_count_launches(const snt_exec *x, const int64_t *symbols, const char *stage, uint32_t *out, snt_diag *diag) {
  uint64_t launches, bindings;
  if (!plan_count_dispatches(door_plan(x), symbols, &launches, &bindings))
    return ir_fail(diag, SNT_E_LIMIT, stage, 0, "too many trips of a repeat");
  *out = (uint32_t)launches;
  return SNT_OK;
}

snt_result snt_vk_step_count(const snt_exec *x, const int64_t *symbols, uint32_t symbol_count, uint32_t *out) {
  if (!x || !x->door || !out) return SNT_E_ARG;
  SNT_TRY(api_check_symbols(x->program, symbols, symbol_count, "steps", NULL));
  return door_count_launches(x, symbols, "steps", out, NULL);
}
