/* Scratch offsets by lifetime, barriers by true dependence, ports declared in the user's order.
   In: steps in execution order with their bindings. Out: offsets in one scratch range; buffers whose lifetimes meet never overlap. */
#include "fusion/image.h"
#include <stdlib.h>

/* Every port exists in the plan even if no kernel reads it, in the order of declaration. */
static void declare_ports(fusion_context *c) {
  for (uint32_t i = 0; i < c->graph->inputs.count; i++) (void)fusion_buffer_of(c, c->graph->inputs.at[i].node);
  for (uint32_t i = 0; i < c->graph->outputs.count; i++) (void)fusion_buffer_of(c, c->graph->outputs.at[i].node);
  for (uint32_t i = 0; i < c->plan->buffers.count; i++) {
    plan_buffer *b = &c->plan->buffers.at[i];
    if (b->kind == PLAN_INPUT || b->kind == PLAN_OUTPUT) b->image = fusion_image_layout(c, b->node);
  }
}

static void touch(plan_buffer *b, uint32_t step) {
  if (b->first_step > step) b->first_step = step;
  if (b->last_step < step) b->last_step = step;
}

static void widen(plan_buffer *b, const plan_loop *l) {
  if (b->first_step == UINT32_MAX || b->first_step >= l->end || b->last_step < l->first) return;
  if (b->first_step >= l->first && b->last_step < l->end) return; /* of the trip alone */
  if (b->first_step > l->first) b->first_step = l->first;
  if (b->last_step < l->end - 1) b->last_step = l->end - 1;
}

/* The halves of a pair live through the loop whose trips write them in turn: what one trip writes the next one reads, even if one step alone touches them. */
static void widen_pairs(ir_plan *p, const plan_loop *l) {
  const uint32_t trip = (uint32_t)p->pool->nodes.at[IR_EXPR_NODE(l->variable)].value;
  for (uint32_t s = l->first; s < l->end; s++)
    for (uint32_t i = 0; i < p->steps.at[s].binding_count; i++) {
      const plan_binding *at = &p->steps.at[s].bindings[i];
      if (!at->swap || !expr_uses_var(p->pool, at->swap, trip)) continue;
      const uint32_t pair[] = {at->buffer, at->other};
      for (uint32_t n = 0; n < 2; n++) touch(&p->buffers.at[pair[n]], l->first), touch(&p->buffers.at[pair[n]], l->end - 1);
    }
}

static void find_lifetimes(ir_plan *p) {
  for (uint32_t b = 0; b < p->buffers.count; b++) p->buffers.at[b].first_step = UINT32_MAX, p->buffers.at[b].last_step = 0;
  for (uint32_t s = 0; s < p->steps.count; s++)
    for (uint32_t i = 0; i < p->steps.at[s].binding_count; i++) {
      const plan_binding *at = &p->steps.at[s].bindings[i];
      touch(&p->buffers.at[at->buffer], s);
      if (at->swap) touch(&p->buffers.at[at->other], s);
    }
  for (uint32_t l = 0; l < p->loops.count; l++) widen_pairs(p, &p->loops.at[l]);
  /* What a loop shares with the steps around it lives through all of its trips. Inner loops come after outer ones, so backwards. */
  for (uint32_t l = p->loops.count; l-- > 0;)
    for (uint32_t b = 0; b < p->buffers.count; b++) widen(&p->buffers.at[b], &p->loops.at[l]);
}

/* A barrier where a step touches what an earlier one since the last barrier wrote, or writes what it read. Scratch that shares bytes counts as one. */
static bool same_bytes(const ir_plan *p, uint32_t x, uint32_t y) {
  const plan_buffer *a = &p->buffers.at[x], *b = &p->buffers.at[y];
  return x == y || (a->kind == PLAN_SCRATCH && b->kind == PLAN_SCRATCH && a->offset == b->offset);
}

static bool conflicts(const ir_plan *p, const plan_step *a, const plan_step *b) {
  for (uint32_t i = 0; i < a->binding_count; i++)
    for (uint32_t k = 0; k < b->binding_count; k++) {
      const plan_binding *x = &a->bindings[i], *y = &b->bindings[k];
      if (!((x->access | y->access) & KIR_WRITE)) continue;
      const uint32_t xs[2] = {x->buffer, x->swap ? x->other : x->buffer}, ys[2] = {y->buffer, y->swap ? y->other : y->buffer};
      for (int way = 0; way < 4; way++)
        if (same_bytes(p, xs[way & 1], ys[way >> 1])) return true;
    }
  return false;
}

/* The first step of a trip waits for the trip before, and what follows a loop for its last, if any ran. */
static bool at_loop_edge(const ir_plan *p, uint32_t step) {
  for (uint32_t l = 0; l < p->loops.count; l++)
    if (p->loops.at[l].first == step || p->loops.at[l].end == step) return true;
  return false;
}

static void place_barriers(ir_plan *p) {
  uint32_t since = 0;
  if (p->steps.count && p->loops.count && p->loops.at[0].first == 0) p->steps.at[0].barrier = 1;
  for (uint32_t s = 1; s < p->steps.count; s++) {
    bool needed = at_loop_edge(p, s);
    for (uint32_t t = since; t < s && !needed; t++) needed = conflicts(p, &p->steps.at[t], &p->steps.at[s]);
    p->steps.at[s].barrier = needed;
    if (needed) since = s;
  }
}

/* Parts of one device buffer begin at multiples of this: no device at hand wants more, and a program may be run on another than it was made for. */
enum { SCRATCH_ALIGN = 512 };

/* Slots of scratch: a buffer takes the first slot free for its whole life, best fit by size at the hints; a slot is as large as its largest buffer. */
typedef struct slot {
  ir_expr bytes;
  int64_t hint;
  uint32_t free_after;
} slot;

static int64_t hint_of(const expr_pool *x, ir_expr e) {
  int64_t values[64], out;
  for (uint32_t i = 0; i < x->symbols.count && i < 64; i++)
    values[i] = x->symbols.at[i].hint > 0 ? x->symbols.at[i].hint : x->symbols.at[i].min;
  return expr_eval(x, e, &(expr_values){.symbols = values}, &out) ? out : 0;
}

static snt_result place_scratch(fusion_context *c) {
  ir_plan *p = c->plan;
  expr_pool *x = c->graph->pool;
  const ir_expr unit = c->options->profile->offset_align > SCRATCH_ALIGN ? (ir_expr)c->options->profile->offset_align : SCRATCH_ALIGN;
  slot *slots = IR_NEW_ARRAY(c->arena, slot, p->buffers.count + 1);
  uint32_t *slot_of = IR_NEW_ARRAY(c->arena, uint32_t, p->buffers.count + 1), count = 0;
  if (!slots || !slot_of) return ir_no_memory(c->diag, "plan");
  for (uint32_t s = 0; s < p->steps.count; s++)
    for (uint32_t b = 0; b < p->buffers.count; b++) {
      const plan_buffer *buffer = &p->buffers.at[b];
      if (buffer->kind != PLAN_SCRATCH || buffer->first_step != s) continue;
      const int64_t hint = hint_of(x, buffer->bytes);
      uint32_t best = count;
      for (uint32_t i = 0; i < count; i++)
        if (slots[i].free_after < s && (best == count || llabs(slots[i].hint - hint) < llabs(slots[best].hint - hint))) best = i;
      if (best == count) slots[count++] = (slot){0, 0, 0};
      slots[best].bytes = expr_max(x, slots[best].bytes, expr_mul(x, expr_ceil_div(x, buffer->bytes, unit), unit));
      if (hint > slots[best].hint) slots[best].hint = hint;
      slots[best].free_after = buffer->last_step;
      slot_of[b] = best;
    }
  ir_expr offset = 0;
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t b = 0; b < p->buffers.count; b++)
      if (p->buffers.at[b].kind == PLAN_SCRATCH && p->buffers.at[b].first_step != UINT32_MAX && slot_of[b] == i)
        p->buffers.at[b].offset = offset;
    offset = expr_add(x, offset, slots[i].bytes ? slots[i].bytes : unit); /* without elements: bound, too, and in its own place */
  }
  p->scratch_bytes = offset;
  return SNT_OK;
}

snt_result fusion_plan_memory(fusion_context *c, bool *changed) {
  *changed = false;
  declare_ports(c);
  find_lifetimes(c->plan);
  SNT_TRY(place_scratch(c));
  if (fusion_over_budget(c)) {
    SNT_TRY(fusion_order_for_memory(c));
    find_lifetimes(c->plan);
    SNT_TRY(place_scratch(c));
    if (fusion_over_budget(c)) return fusion_refuse_budget(c);
  }
  place_barriers(c->plan);
  return SNT_OK;
}
