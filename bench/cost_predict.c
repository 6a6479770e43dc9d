/* Predicting: what the plan says of its run, and what lesser models do. */
#include "api/exec.h"
#include "bench/cost.h"
#include <stdlib.h>

static void work_of(const fusion_context *c, const fusion_group *g, cost_work *w) {
  const schedule_info *kind = &fusion_schedules[g->kind];
  if (kind->work) kind->work(c, g, w);
  else fusion_group_work(c, g, w);
}

static double price(const cost_profile *p, const cost_work *w) {
  cost_estimate e;
  cost_kernel(p, w, &e);
  return e.ns;
}

/* What the lesser models leave out of this group: computing a value for several readers, or in several groups; registers. */
static void ablate(const fusion_context *c, const fusion_group *g, uint8_t *seen, double left_out[MODEL_COUNT]) {
  const cost_profile *p = c->options->profile;
  cost_work w, once;
  work_of(c, g, &w);
  const double full = price(p, &w);
  once = w;
  once.extra_cycles -= w.recompute_cycles;
  for (uint32_t i = 0; i < g->count; i++) {
    const ir_node *n = ir_at(c->graph, g->nodes[i]);
    if (seen[g->nodes[i]] && (ir_ops[n->op].flags & IR_POINTWISE))
      once.extra_cycles -= c->elements[g->nodes[i]] * cost_op_cycles(p, n->op, n->type.dtype);
    seen[g->nodes[i]] = 1;
  }
  left_out[MODEL_NO_RECOMPUTE] += full - price(p, &once);
  w.spilled = 0;
  left_out[MODEL_NO_REGISTERS] += full - price(p, &w);
}

/* What a run takes beyond its steps where threads sleep until one comes: waking them or, where the thread that submits it runs it, doing without them. */
static double beside_steps(const cost_bench *b, const snt_exec *x) {
  if (!b->device->rt->near) return 0;
  return x->near ? exec_saved_by_units(x) : x->device->profile.wake_ns;
}

/* What the same kernels are priced at by another profile, beyond what they were made by. */
static double beyond_prices(const snt_program *program, const cost_profile *other) {
  fusion_context c = program->fusion;
  fusion_options options = *c.options;
  const cost_profile *const profiles[] = {options.profile, other};
  double total[2] = {0};
  c.options = &options;
  for (uint32_t k = 0; other && k < 2; k++) {
    options.profile = profiles[k];
    if (!fusion_count_elements(&c)) return 0;
    for (uint32_t i = 0; i < c.order_count; i++) {
      cost_work w;
      work_of(&c, &c.groups.at[c.order[i]], &w);
      total[k] += price(options.profile, &w);
    }
  }
  return total[1] - total[0];
}

void cost_predict(const cost_bench *b, partition *part) {
  const snt_program *program = part->program;
  const fusion_context *c = &program->fusion;
  const cost_profile *p = &b->profile->profile;
  double left_out[MODEL_COUNT] = {0}, full = beside_steps(b, part->exec), bytes = 0;
  if (b->prices) full += beyond_prices(program, &b->prices->profile);
  uint8_t *seen = calloc(c->graph->nodes.count + 1, 1);
  for (uint32_t i = 0; i < program->plan.steps.count; i++) {
    const plan_step *s = &program->plan.steps.at[i];
    int64_t read = 0, written = 0;
    full += s->est_ns;
    (void)expr_eval(&program->pool, s->bytes_read, &(expr_values){0}, &read);
    (void)expr_eval(&program->pool, s->bytes_written, &(expr_values){0}, &written);
    bytes += (double)(read + written);
  }
  for (uint32_t i = 0; seen && i < c->order_count; i++) ablate(c, &c->groups.at[c->order[i]], seen, left_out);
  free(seen);
  for (uint32_t m = 0; m < MODEL_COUNT; m++) part->predicted[m] = full - left_out[m];
  const double copied = p->dram_gbs * 2 / (1 + 1 / p->stream_store_factor); /* bytes a nanosecond of a copy, whose stores may be dearer */
  part->predicted[MODEL_BYTES] = program->plan.steps.count * p->launch_ns + bytes / copied;
}
