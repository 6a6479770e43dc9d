/* The verifier of plans: the first error is told. Checked: slots bound to buffers that exist with the access the kernel makes, scalars complete,
   scratch lifetimes disjoint where offsets meet, a barrier between every two steps that touch the same bytes, loops nested, begun and followed
   by a barrier, no life that ends inside a loop that it enters, and halves of a pair that live through the loop whose trips write them in turn. */
#include "ir/plan.h"

typedef struct checker {
  const ir_plan *p;
  snt_diag *diag;
  snt_result first;
} checker;

static void fail(checker *c, const char *step, const char *what, uint32_t number) {
  if (c->first == SNT_OK) c->first = ir_fail(c->diag, SNT_E_INTERNAL, "plan", 0, "step %s: %s %u", step, what, number);
}

static bool is_constant(const ir_plan *p, uint32_t buffer) { return p->buffers.at[buffer].kind == PLAN_CONSTANT; }

static void check_step(checker *c, const plan_step *s) {
  const ir_plan *p = c->p;
  if (s->kernel >= p->kernels.count) {
    fail(c, s->name, "no kernel", s->kernel);
    return;
  }
  const kir_kernel *k = p->kernels.at[s->kernel].kernel;
  for (uint32_t i = 0; i < s->binding_count; i++)
    if (s->bindings[i].buffer >= p->buffers.count || s->bindings[i].other >= p->buffers.count) {
      fail(c, s->name, "no buffer for slot", i);
      return;
    }
  if (!k) return;
  if (s->scalar_count != k->scalars.count) fail(c, s->name, "scalars given, not as many as the kernel has:", s->scalar_count);
  for (uint32_t m = 0; m < k->memories.count; m++) {
    const kir_memory *memory = &k->memories.at[m];
    if (memory->space != KIR_GLOBAL && memory->space != KIR_IMAGE && memory->space != KIR_SCRATCH) continue;
    if (memory->slot >= s->binding_count) fail(c, s->name, "unbound slot", memory->slot);
    else if (memory->access & ~s->bindings[memory->slot].access) fail(c, s->name, "undeclared access of slot", memory->slot);
    else if ((memory->access & KIR_WRITE) && (is_constant(p, s->bindings[memory->slot].buffer) ||
                                              (s->bindings[memory->slot].swap && is_constant(p, s->bindings[memory->slot].other))))
      fail(c, s->name, "writes a constant in slot", memory->slot);
  }
}

/* ---- loops ---- */

enum { ANY_VARIABLE = -1 };

static bool uses_variable(const expr_pool *x, ir_expr e, int64_t number) {
  if (e >= 0) return false;
  const expr_node *n = &x->nodes.at[IR_EXPR_NODE(e)];
  if (n->kind == EXPR_VAR) return number == ANY_VARIABLE || n->value == number;
  for (uint32_t i = 0; i < n->count; i++)
    if (uses_variable(x, x->terms.at[n->first + i], number)) return true;
  return false;
}

/* What a loop meets is of its trips alone or lives through it; the halves of a pair, which trips write in turn, live through it. */
static void check_life(checker *c, uint32_t loop, uint32_t buffer, bool within) {
  const plan_loop *l = &c->p->loops.at[loop];
  const plan_buffer *b = &c->p->buffers.at[buffer];
  if (b->kind != PLAN_SCRATCH || b->first_step >= l->end || b->last_step < l->first) return;
  if (within && b->first_step >= l->first && b->last_step < l->end) return;
  if (b->first_step > l->first || b->last_step < l->end - 1) fail(c, b->name ? b->name : "scratch", "lives in a part of loop", loop);
}

static void check_pairs(checker *c, uint32_t loop) {
  const ir_plan *p = c->p;
  const plan_loop *l = &p->loops.at[loop];
  const int64_t trip = p->pool->nodes.at[IR_EXPR_NODE(l->variable)].value;
  for (const plan_step *s = p->steps.at + l->first; s < p->steps.at + l->end; s++)
    for (uint32_t i = 0; i < s->binding_count; i++) {
      if (!uses_variable(p->pool, s->bindings[i].swap, trip)) continue;
      check_life(c, loop, s->bindings[i].buffer, false);
      check_life(c, loop, s->bindings[i].other, false);
    }
}

static void check_loops(checker *c) {
  const ir_plan *p = c->p;
  for (uint32_t i = 0; i < p->loops.count; i++) {
    const plan_loop *l = &p->loops.at[i];
    const bool counts = l->variable < 0 && p->pool->nodes.at[IR_EXPR_NODE(l->variable)].kind == EXPR_VAR;
    if (!counts) fail(c, "-", "no variable for loop", i);
    if (l->first >= l->end || l->end > p->steps.count) {
      fail(c, "-", "no steps in loop", i);
      continue;
    }
    if (counts) check_pairs(c, i);
    if (l->flag > p->buffers.count) fail(c, "-", "a flag that is no buffer for loop", i);
    if (uses_variable(p->pool, l->trips, ANY_VARIABLE)) fail(c, "-", "trips that change from trip to trip in loop", i);
    for (uint32_t k = 0; k < i; k++) {
      const plan_loop *o = &p->loops.at[k];
      const bool before = o->end <= l->first, around = o->first <= l->first && l->end <= o->end;
      if (!before && !around) fail(c, "-", "loops that cross or are out of order: loop", i);
    }
    if (!p->steps.at[l->first].barrier) fail(c, p->steps.at[l->first].name, "no barrier at the start of loop", i);
    if (l->end < p->steps.count && !p->steps.at[l->end].barrier) fail(c, p->steps.at[l->end].name, "no barrier after loop", i);
    for (uint32_t b = 0; b < p->buffers.count; b++) check_life(c, i, b, true);
  }
}

static bool overlap(const plan_buffer *a, const plan_buffer *b) {
  return a->kind == PLAN_SCRATCH && b->kind == PLAN_SCRATCH && a->offset == b->offset;
}

static bool meet(const ir_plan *p, const plan_binding *a, const plan_binding *b) {
  const uint32_t xs[2] = {a->buffer, a->swap ? a->other : a->buffer}, ys[2] = {b->buffer, b->swap ? b->other : b->buffer};
  for (int i = 0; i < 4; i++) {
    const uint32_t x = xs[i & 1], y = ys[i >> 1];
    if (x == y || overlap(&p->buffers.at[x], &p->buffers.at[y])) return true;
  }
  return false;
}

static bool depends(const ir_plan *p, const plan_step *a, const plan_step *b) {
  for (uint32_t i = 0; i < a->binding_count; i++)
    for (uint32_t k = 0; k < b->binding_count; k++)
      if (((a->bindings[i].access | b->bindings[k].access) & KIR_WRITE) && meet(p, &a->bindings[i], &b->bindings[k])) return true;
  return false;
}

static void check_barriers(checker *c) {
  const ir_plan *p = c->p;
  uint32_t since = 0;
  for (uint32_t s = 1; s < p->steps.count; s++) {
    if (p->steps.at[s].barrier) {
      since = s;
      continue;
    }
    for (uint32_t t = since; t < s; t++)
      if (depends(p, &p->steps.at[t], &p->steps.at[s])) fail(c, p->steps.at[s].name, "no barrier after step", t);
  }
}

static void check_lifetimes(checker *c) {
  const ir_plan *p = c->p;
  for (uint32_t i = 0; i < p->buffers.count; i++)
    for (uint32_t k = i + 1; k < p->buffers.count; k++) {
      const plan_buffer *a = &p->buffers.at[i], *b = &p->buffers.at[k];
      if (a->first_step == UINT32_MAX || b->first_step == UINT32_MAX || !overlap(a, b)) continue;
      if (a->first_step <= b->last_step && b->first_step <= a->last_step)
        fail(c, b->name ? b->name : "scratch", "shares its bytes with living buffer", i);
    }
}

snt_result plan_verify(const ir_plan *p, snt_diag *diag) {
  checker c = {p, diag, SNT_OK};
  for (uint32_t s = 0; s < p->steps.count; s++) check_step(&c, &p->steps.at[s]);
  if (c.first != SNT_OK) return c.first;
  check_loops(&c);
  check_barriers(&c);
  check_lifetimes(&c);
  return c.first;
}
