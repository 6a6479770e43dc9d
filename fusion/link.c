/* Plans of their own become loops of another one. In: two contexts, the inner one compiled, and the places of buffers that both have. Out: the inner plan's
   kernels, buffers, loops and steps in the outer plan. */
#include "fusion/link.h"

static snt_result starved(const plan_link *l) { return ir_no_memory(l->c->diag, "link"); }

snt_result fusion_link_begin(plan_link *l, uint32_t spare) {
  fusion_context *c = l->c;
  const ir_plan *plan = l->inner->plan;
  l->first_kernel = c->plan->kernels.count;
  for (uint32_t i = 0; i < plan->kernels.count; i++)
    if (!IR_PUSH(c->plan->arena, &c->plan->kernels, plan->kernels.at[i])) return starved(l);
  if (!IR_PUSH(c->arena, &c->body_graphs, l->inner->graph)) return starved(l);
  l->number = c->body_graphs.count;
  for (uint32_t i = 0; i < l->inner->body_graphs.count; i++)
    if (!IR_PUSH(c->arena, &c->body_graphs, l->inner->body_graphs.at[i])) return starved(l);
  l->places = IR_NEW_ARRAY(c->arena, link_place, plan->buffers.count + spare + 1);
  return l->places ? SNT_OK : starved(l);
}

static bool same_constant(const plan_buffer *a, const plan_buffer *b) {
  return b->kind == PLAN_CONSTANT && a->data == b->data && ir_same_making(a->making, b->making) && a->bytes == b->bytes &&
         a->dtype == b->dtype;
}

snt_result fusion_link_rest(plan_link *l) {
  ir_plan *to = l->c->plan;
  const ir_plan *from = l->inner->plan;
  for (uint32_t i = 0; i < from->buffers.count; i++) {
    plan_buffer b = from->buffers.at[i];
    uint32_t k = b.kind == PLAN_CONSTANT ? 0 : to->buffers.count;
    if (l->places[i].known) continue;
    while (k < to->buffers.count && !same_constant(&b, &to->buffers.at[k])) k++;
    l->places[i] = (link_place){.buffer = k, .known = true};
    b.node = 0; /* of another graph */
    if (k == to->buffers.count && !IR_PUSH(to->arena, &to->buffers, b)) return starved(l);
  }
  return SNT_OK;
}

static snt_result link_step(plan_link *l, uint32_t number, uint32_t choices) {
  ir_plan *to = l->c->plan;
  plan_step s = l->inner->plan->steps.at[number];
  s.kernel += l->first_kernel;
  if (s.choice) s.choice += choices;
  for (uint32_t i = 0; i < s.binding_count; i++) {
    plan_binding *b = &s.bindings[i];
    const link_place *own = &l->places[b->buffer], *other = &l->places[b->other];
    if (b->swap && (own->swap || other->swap)) return ir_fail(l->c->diag, SNT_E_INTERNAL, "link", 0, "a pair of buffers within a pair");
    b->buffer = own->buffer;
    if (b->swap) b->other = other->buffer;
    else b->other = own->swap ? own->other : 0, b->swap = own->swap;
  }
  return IR_PUSH(to->arena, &to->steps, s) ? SNT_OK : starved(l);
}

snt_result fusion_link_steps(plan_link *l, const plan_loop *own) {
  ir_plan *to = l->c->plan;
  const ir_plan *from = l->inner->plan;
  if (!IR_PUSH(to->arena, &to->loops, *own)) return starved(l);
  for (uint32_t i = 0; i < from->loops.count; i++) {
    plan_loop inner = from->loops.at[i];
    inner.first += own->first, inner.end += own->first, inner.body += l->number;
    inner.flag = 0; /* it lies elsewhere in each trip */
    if (!IR_PUSH(to->arena, &to->loops, inner)) return starved(l);
  }
  for (uint32_t i = 0; i < from->steps.count; i++) SNT_TRY(link_step(l, i, own->first));
  return SNT_OK;
}
