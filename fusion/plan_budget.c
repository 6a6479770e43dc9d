/* A budget of scratch memory. In: a plan whose scratch does not fit. Out: its steps in another order, the one that keeps the fewest bytes alive at each
   point; or an error that names the largest tensors. Sizes are those at the hints of the symbols. */
#include "fusion/schedule_common.h"
#include <stdio.h>

static double bytes_at_hint(const fusion_context *c, ir_expr bytes) { return (double)schedule_hint(c->graph->pool, bytes); }

bool fusion_over_budget(const fusion_context *c) {
  return c->options->peak_bytes && !c->is_body && bytes_at_hint(c, c->plan->scratch_bytes) > (double)c->options->peak_bytes;
}

static bool depends(const plan_step *before, const plan_step *after) {
  for (uint32_t i = 0; i < before->binding_count; i++)
    for (uint32_t k = 0; k < after->binding_count; k++)
      if (before->bindings[i].buffer == after->bindings[k].buffer && ((before->bindings[i].access | after->bindings[k].access) & KIR_WRITE))
        return true;
  return false;
}

typedef struct ordering {
  const fusion_context *c;
  uint32_t *left;  /* per buffer: steps to come that bind it */
  uint8_t *opened; /* per buffer: it holds a value now */
  uint8_t *done;
} ordering;

/* Bytes that running the step adds to what is alive. */
static double growth(const ordering *o, const plan_step *s) {
  const ir_plan *p = o->c->plan;
  double bytes = 0;
  for (uint32_t i = 0; i < s->binding_count; i++) {
    const uint32_t b = s->bindings[i].buffer;
    if (p->buffers.at[b].kind != PLAN_SCRATCH) continue;
    const double own = bytes_at_hint(o->c, p->buffers.at[b].bytes);
    if (!o->opened[b]) bytes += own;
    if (o->left[b] == 1) bytes -= own;
  }
  return bytes;
}

static bool is_ready(const ordering *o, uint32_t step) {
  const ir_plan *p = o->c->plan;
  for (uint32_t i = 0; i < step; i++)
    if (!o->done[i] && depends(&p->steps.at[i], &p->steps.at[step])) return false;
  return true;
}

static uint32_t pick(const ordering *o) {
  const ir_plan *p = o->c->plan;
  uint32_t best = UINT32_MAX;
  double least = 0;
  for (uint32_t i = 0; i < p->steps.count; i++) {
    if (o->done[i] || !is_ready(o, i)) continue;
    const double bytes = growth(o, &p->steps.at[i]);
    if (best == UINT32_MAX || bytes < least) best = i, least = bytes;
  }
  return best;
}

snt_result fusion_order_for_memory(fusion_context *c) {
  ir_plan *p = c->plan;
  if (p->loops.count) return SNT_OK; /* ranges of steps belong together */
  ordering o = {.c = c,
                .left = IR_NEW_ARRAY(c->arena, uint32_t, p->buffers.count + 1),
                .opened = IR_NEW_ARRAY(c->arena, uint8_t, p->buffers.count + 1),
                .done = IR_NEW_ARRAY(c->arena, uint8_t, p->steps.count + 1)};
  plan_step *steps = IR_NEW_ARRAY(c->arena, plan_step, p->steps.count + 1);
  if (!o.left || !o.opened || !o.done || !steps) return ir_no_memory(c->diag, "plan");
  for (uint32_t s = 0; s < p->steps.count; s++)
    for (uint32_t i = 0; i < p->steps.at[s].binding_count; i++) o.left[p->steps.at[s].bindings[i].buffer]++;
  for (uint32_t n = 0; n < p->steps.count; n++) {
    const uint32_t s = pick(&o);
    steps[n] = p->steps.at[s];
    o.done[s] = 1;
    for (uint32_t i = 0; i < steps[n].binding_count; i++) {
      o.opened[steps[n].bindings[i].buffer] = 1;
      o.left[steps[n].bindings[i].buffer]--;
    }
  }
  memcpy(p->steps.at, steps, p->steps.count * sizeof *steps);
  return SNT_OK;
}

snt_result fusion_refuse_budget(const fusion_context *c) {
  enum { NAMED = 3 };
  const ir_plan *p = c->plan;
  uint32_t largest[NAMED] = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
  char names[160] = "";
  size_t used = 0;
  for (uint32_t b = 0; b < p->buffers.count; b++) {
    if (p->buffers.at[b].kind != PLAN_SCRATCH || p->buffers.at[b].first_step == UINT32_MAX) continue;
    uint32_t at = NAMED;
    while (at && (largest[at - 1] == UINT32_MAX ||
                  bytes_at_hint(c, p->buffers.at[b].bytes) > bytes_at_hint(c, p->buffers.at[largest[at - 1]].bytes)))
      at--;
    for (uint32_t k = NAMED; k-- > at + 1;) largest[k] = largest[k - 1];
    if (at < NAMED) largest[at] = b;
  }
  for (uint32_t i = 0; i < NAMED && largest[i] != UINT32_MAX; i++) {
    const plan_buffer *b = &p->buffers.at[largest[i]];
    const int length = snprintf(names + used, sizeof names - used, "%s%.32s %.0f", i ? ", " : "", b->name ? b->name : "workspace",
                                bytes_at_hint(c, b->bytes));
    if (length > 0) used += (size_t)length;
  }
  return ir_fail(c->diag, SNT_E_LIMIT, "plan", 0, "scratch needs %.0f bytes, the budget is %llu; the largest tensors: %s",
                 bytes_at_hint(c, p->scratch_bytes), (unsigned long long)c->options->peak_bytes, names);
}
