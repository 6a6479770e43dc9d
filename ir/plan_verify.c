/* The verifier of plans: all errors, one a line. Checked: slots bound to buffers that exist with the access the kernel makes, scalars complete,
   scratch lifetimes disjoint where offsets meet, a barrier between every two steps that touch the same bytes. */
#include "ir/plan.h"

typedef struct checker {
  const ir_plan *p;
  ir_text *errors;
  snt_diag *diag;
  snt_result first;
} checker;

static void fail(checker *c, const char *step, const char *what, uint32_t number) {
  if (c->errors) ir_text_format(c->errors, "step %s: %s %u\n", step, what, number);
  if (c->first == SNT_OK) c->first = ir_fail(c->diag, SNT_E_INTERNAL, "plan", 0, "step %s: %s %u", step, what, number);
}

static void check_step(checker *c, const plan_step *s) {
  const ir_plan *p = c->p;
  if (s->kernel >= p->kernels.count) {
    fail(c, s->name, "no kernel", s->kernel);
    return;
  }
  const kir_kernel *k = p->kernels.at[s->kernel].kernel;
  for (uint32_t i = 0; i < s->binding_count; i++)
    if (s->bindings[i].buffer >= p->buffers.count) fail(c, s->name, "no buffer for slot", i);
  if (!k) return;
  if (s->scalar_count != k->scalars.count) fail(c, s->name, "scalars given, not as many as the kernel has:", s->scalar_count);
  for (uint32_t m = 0; m < k->memories.count; m++) {
    const kir_memory *memory = &k->memories.at[m];
    if (memory->space != KIR_GLOBAL && memory->space != KIR_IMAGE && memory->space != KIR_SCRATCH) continue;
    if (memory->slot >= s->binding_count) fail(c, s->name, "unbound slot", memory->slot);
    else if (memory->access & ~s->bindings[memory->slot].access) fail(c, s->name, "undeclared access of slot", memory->slot);
    else if ((memory->access & KIR_WRITE) && p->buffers.at[s->bindings[memory->slot].buffer].kind == PLAN_CONSTANT)
      fail(c, s->name, "writes a constant in slot", memory->slot);
  }
}

static bool overlap(const plan_buffer *a, const plan_buffer *b) {
  return a->kind == PLAN_SCRATCH && b->kind == PLAN_SCRATCH && a->offset == b->offset;
}

static bool depends(const ir_plan *p, const plan_step *a, const plan_step *b) {
  for (uint32_t i = 0; i < a->binding_count; i++)
    for (uint32_t k = 0; k < b->binding_count; k++) {
      const uint32_t x = a->bindings[i].buffer, y = b->bindings[k].buffer;
      if (((a->bindings[i].access | b->bindings[k].access) & KIR_WRITE) && (x == y || overlap(&p->buffers.at[x], &p->buffers.at[y])))
        return true;
    }
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

snt_result plan_verify(const ir_plan *p, ir_text *errors, snt_diag *diag) {
  checker c = {p, errors, diag, SNT_OK};
  for (uint32_t s = 0; s < p->steps.count; s++) check_step(&c, &p->steps.at[s]);
  if (c.first != SNT_OK) return c.first;
  check_barriers(&c);
  check_lifetimes(&c);
  return c.first;
}
