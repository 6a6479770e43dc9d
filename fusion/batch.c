/* Horizontal fusion: independent steps that launches dominate, or of so few groups that both run at once, become one kernel, some of whose
   groups do the one and some the other.
   In: steps as the schedules made them, before memory is planned. Out: fewer steps and kernels; a decision record for each pair that was taken.
   It works on kernels, whatever their kind and shape: they must have workgroups of one shape, and fit the device's bindings and scalars together. */
#include "fusion/emit.h"
#include "fusion/schedule_common.h"
#include "fusion/steer.h"
#include "ir/kir_pass.h"
#include <stdio.h>

enum { WINDOW = 24 };

typedef struct join {
  fusion_context *c;
  const plan_step *a, *b;
  kir_kernel *k;
  plan_step step;
  uint32_t slots, scalars; /* used so far */
} join;

/* ---- what may be joined ---- */

static bool may_meet(const plan_binding *a, const plan_binding *b) {
  return a->buffer == b->buffer || (a->swap && a->other == b->buffer) || (b->swap && b->other == a->buffer) ||
         (a->swap && b->swap && a->other == b->other);
}

bool fusion_steps_conflict(const plan_step *a, const plan_step *b) {
  for (uint32_t i = 0; i < a->binding_count; i++)
    for (uint32_t k = 0; k < b->binding_count; k++)
      if (may_meet(&a->bindings[i], &b->bindings[k]) && ((a->bindings[i].access | b->bindings[k].access) & KIR_WRITE)) return true;
  return false;
}

static const kir_kernel *kernel_of(const fusion_context *c, const plan_step *s) { return c->plan->kernels.at[s->kernel].kernel; }

bool fusion_is_launch_bound(const cost_profile *p, double ns) {
  enum { LAUNCHES = 4 }; /* that the rest of it takes at most */
  return ns - p->launch_ns <= LAUNCHES * p->launch_ns;
}

/* Do the groups of both run at once, each on a unit of its own? */
static bool run_beside(const fusion_context *c, const plan_step *a, const plan_step *b) {
  const expr_pool *x = c->graph->pool;
  return (double)(schedule_hint(x, a->groups) + schedule_hint(x, b->groups)) <= c->options->profile->units;
}

static bool is_launch_bound(const fusion_context *c, const plan_step *s) { return fusion_is_launch_bound(c->options->profile, s->est_ns); }

/* The items by which the workgroup of one is larger than that of the other have nothing to do in its groups. Where items are masked they go
   through the code with the others: all that stands in no loop, taken for as much as a trip, and a trip. */
static double idle_ns(const fusion_context *c, const plan_step *a, const plan_step *b) {
  const cost_profile *p = c->options->profile;
  const bool first = kernel_of(c, a)->items[0] < kernel_of(c, b)->items[0];
  const plan_step *few = first ? a : b;
  const double more = (double)kernel_of(c, first ? b : a)->items[0] / kernel_of(c, few)->items[0] - 1;
  kir_mix mix;
  if (!p->both_sides || more <= 0) return 0;
  kir_count_mix(kernel_of(c, few), 1, &mix);
  return (few->est_ns - p->launch_ns) * more * (mix.trips > 1 ? 2 / (1 + mix.trips) : 1);
}

/* Of two that take little beside their launches one is saved, whatever units they run on. */
static double joint_ns(const fusion_context *c, const plan_step *a, const plan_step *b) {
  const double longer = a->est_ns > b->est_ns ? a->est_ns : b->est_ns;
  if (run_beside(c, a, b) && !(is_launch_bound(c, a) && is_launch_bound(c, b))) return longer;
  return a->est_ns + b->est_ns - c->options->profile->launch_ns + idle_ns(c, a, b);
}

static bool is_bound(const kir_memory *m) { return m->space == KIR_GLOBAL || m->space == KIR_IMAGE || m->space == KIR_SCRATCH; }

/* A buffer that both read through the same view is bound once: the memory of a kernel, bound so, that `m` of the step is too. */
static uint32_t shared_memory(const kir_kernel *k, const plan_binding *bindings, const plan_step *s, const kir_memory *m) {
  for (uint32_t i = 0; i < k->memories.count; i++) {
    const kir_memory *had = &k->memories.at[i];
    if (had->space != KIR_GLOBAL || m->space != KIR_GLOBAL || had->flags != m->flags || had->view != m->view) continue;
    if (had->access != KIR_READ || m->access != KIR_READ || !kir_same(had->type, m->type)) continue;
    const plan_binding *x = &bindings[had->slot], *y = &s->bindings[m->slot];
    if (x->buffer == y->buffer && x->other == y->other && x->swap == y->swap && x->offset == y->offset && !m->offset_scalar &&
        !had->offset_scalar && had->dims[0] == m->dims[0] && !m->size_scalar && !had->size_scalar)
      return i;
  }
  return UINT32_MAX;
}

static uint32_t joint_bindings(const fusion_context *c, const plan_step *a, const plan_step *b) {
  const kir_kernel *x = kernel_of(c, a), *y = kernel_of(c, b);
  uint32_t count = 0;
  for (uint32_t i = 0; i < x->memories.count; i++) count += is_bound(&x->memories.at[i]);
  for (uint32_t i = 0; i < y->memories.count; i++)
    count += is_bound(&y->memories.at[i]) && shared_memory(x, a->bindings, b, &y->memories.at[i]) == UINT32_MAX;
  return count;
}

/* Its format is a word of the image's type, which a host sets that may choose another for each port: what one kernel writes is of one. */
static bool writes_image(const kir_kernel *k) {
  for (uint32_t i = 0; i < k->memories.count; i++)
    if (k->memories.at[i].space == KIR_IMAGE && k->memories.at[i].access & KIR_WRITE) return true;
  return false;
}

static const char *obstacle(const fusion_context *c, const plan_step *a, const plan_step *b) {
  const cost_profile *p = c->options->profile;
  const kir_kernel *x = kernel_of(c, a), *y = kernel_of(c, b);
  if (kir_is_written(x) || kir_is_written(y)) return "a kernel of the user's own";
  if (writes_image(x) && writes_image(y)) return "two images, whose formats may differ";
  if (!kir_fits_items(x, y) && !kir_fits_items(y, x)) return "workgroups of different shapes";
  if (x->sub && y->sub && x->sub != y->sub) return "subgroups of different sizes";
  if (p->group_shares && ((x->sub && x->items[0] > x->sub) || (y->sub && y->items[0] > y->sub))) return "several rows a group";
  if (p->max_bindings && joint_bindings(c, a, b) > p->max_bindings) return "bindings";
  if (8 * (x->scalars.count + y->scalars.count + 1) > p->max_scalar_bytes) return "scalars";
  const uint64_t one = kir_local_bytes(x), other = kir_local_bytes(y); /* of which one may have more than is usual */
  if (one && other && cost_usual_local(p) && one + other > cost_usual_local(p)) return "local memory";
  return NULL;
}

/* Contracts between the user's values. */
static steer_part part_of(const plan_step *s) { return (steer_part){s->nodes, s->node_count}; }
static bool is_forbidden(const fusion_context *c, const plan_step *a, const plan_step *b) {
  const steer_part parts[] = {part_of(a), part_of(b)};
  return steer_forbids(c->steer, parts, IR_COUNT(parts)) != NULL;
}

/* ---- joining two kernels ---- */

static uint32_t add_scalar(join *j, const kir_scalar *s, ir_expr value) {
  for (uint32_t i = 0; i < j->scalars; i++)
    if (j->step.scalars[i] == value && kir_same(j->k->scalars.at[i].type, s->type)) return i;
  char name[16];
  const int length = snprintf(name, sizeof name, "s%u", j->scalars);
  j->step.scalars[j->scalars++] = value;
  return kir_scalar_add(j->k, ir_arena_text(j->c->arena, name, (size_t)length), s->type.base, s->min, s->max, s->multiple_of);
}

static uint32_t add_memory(join *j, const plan_step *s, const kir_memory *m, const uint32_t *memories, const uint32_t *scalars) {
  const uint32_t shared = shared_memory(j->k, j->step.bindings, s, m);
  if (shared != UINT32_MAX) return shared;
  kir_memory made = *m;
  char name[16];
  const int length = snprintf(name, sizeof name, "%c%u", m->space == KIR_GLOBAL ? 'p' : 'm', j->k->memories.count);
  made.name = ir_arena_text(j->c->arena, name, (size_t)length);
  if (made.offset_scalar) made.offset_scalar = scalars[made.offset_scalar - 1] + 1;
  if (made.size_scalar) made.size_scalar = scalars[made.size_scalar - 1] + 1;
  if (made.overlay) made.overlay = memories[made.overlay - 1] + 1;
  if (is_bound(m)) {
    made.slot = j->slots;
    j->step.bindings[j->slots++] = s->bindings[m->slot];
  }
  return kir_memory_add(j->k, &made);
}

/* Declares what a part needs, then appends its body for `group`. */
static bool add_part(join *j, const plan_step *s, uint32_t group) {
  const kir_kernel *in = kernel_of(j->c, s);
  uint32_t *memories = IR_NEW_ARRAY(j->c->arena, uint32_t, in->memories.count + 1),
           *scalars = IR_NEW_ARRAY(j->c->arena, uint32_t, in->scalars.count + 1);
  if (!memories || !scalars) return false;
  for (uint32_t i = 0; i < in->scalars.count; i++) scalars[i] = add_scalar(j, &in->scalars.at[i], s->scalars[i]);
  for (uint32_t i = 0; i < in->memories.count; i++) memories[i] = add_memory(j, s, &in->memories.at[i], memories, scalars);
  const kir_site site = {.memories = memories, .scalars = scalars, .group = group};
  return kir_append(j->k, in, &site);
}

/* How many of the groups in front of `group` are the first part's. Parts of known size are dealt out evenly, so that whatever share of the
   groups a unit takes, in a row or by turns, it has as much of the dear part as any other; of others the first part's come first. */
static uint32_t groups_before(join *j, uint32_t group) {
  const expr_pool *x = j->c->graph->pool;
  const kir_type u32 = kir_t(SNT_U32, 1);
  int64_t first, second;
  const bool known = expr_is_const(x, j->a->groups, &first);
  if (known && first > 0 && expr_is_const(x, j->b->groups, &second)) {
    const int64_t both = expr_gcd(first, second), share = first / both, of = share + second / both;
    if ((first + second) * share < UINT32_MAX)
      return kir_2(j->k, KIR_udiv, kir_2(j->k, KIR_mul, group, kir_const_int(j->k, u32, share)), kir_const_int(j->k, u32, of));
  }
  const kir_scalar count = {.type = u32, .max = UINT32_MAX}; /* 0 where a size is */
  return kir_2(j->k, KIR_min, group, known ? kir_const_int(j->k, u32, first) : kir_scalar_read(j->k, add_scalar(j, &count, j->a->groups)));
}

static bool join_nodes(join *j) {
  uint32_t *nodes = IR_NEW_ARRAY(j->c->arena, uint32_t, j->a->node_count + j->b->node_count);
  if (!nodes) return false;
  for (uint32_t i = 0; i < j->a->node_count; i++) nodes[i] = j->a->nodes[i];
  for (uint32_t i = 0; i < j->b->node_count; i++) nodes[j->a->node_count + i] = j->b->nodes[i];
  j->step.nodes = nodes;
  j->step.node_count = j->a->node_count + j->b->node_count;
  return true;
}

static bool join_kernels(join *j, uint32_t number) {
  fusion_context *c = j->c;
  expr_pool *x = c->graph->pool;
  const kir_kernel *first = kernel_of(c, j->a), *second = kernel_of(c, j->b);
  char name[32];
  const int length = snprintf(name, sizeof name, "k%u_batch", number);
  j->k = IR_NEW(c->arena, kir_kernel);
  const uint32_t bindings = j->a->binding_count + j->b->binding_count, scalars = j->a->scalar_count + j->b->scalar_count + 1;
  j->step = *j->a;
  j->step.bindings = IR_NEW_ARRAY(c->arena, plan_binding, bindings);
  j->step.scalars = IR_NEW_ARRAY(c->arena, ir_expr, scalars);
  if (!j->k || !j->step.bindings || !j->step.scalars || !join_nodes(j)) return false;
  kir_init(j->k, c->arena, ir_arena_text(c->arena, name, (size_t)length));
  memcpy(j->k->items, kir_fits_items(first, second) ? second->items : first->items, sizeof j->k->items);
  j->k->sub = first->sub ? first->sub : second->sub;
  j->k->mode = first->mode;
  j->k->needs = first->needs;
  const uint32_t group = kir_id(j->k, KIR_group, 0), next = kir_2(j->k, KIR_add, group, kir_const_like(j->k, group, 1));
  const uint32_t before = groups_before(j, group), opened = kir_if(j->k, kir_2(j->k, KIR_lt, before, groups_before(j, next)));
  if (!add_part(j, j->a, before)) return false;
  kir_else(j->k, opened, 0, NULL);
  if (!add_part(j, j->b, kir_2(j->k, KIR_sub, group, before))) return false;
  kir_if_end(j->k, opened, 0, NULL, NULL);
  j->step.name = j->k->name;
  j->step.groups = expr_add(x, j->a->groups, j->b->groups);
  j->step.binding_count = j->slots;
  j->step.scalar_count = j->scalars;
  j->step.bytes_read = expr_add(x, j->a->bytes_read, j->b->bytes_read);
  j->step.bytes_written = expr_add(x, j->a->bytes_written, j->b->bytes_written);
  j->step.flops = j->a->flops + j->b->flops;
  j->step.est_ns = joint_ns(c, j->a, j->b);
  return !j->k->failed;
}

/* ---- the list of steps ---- */

static void record(fusion_context *c, const plan_step *a, const plan_step *b, bool taken, const char *rule) {
  const fusion_decision d = {.producer = a->nodes[a->node_count - 1],
                             .consumer = b->nodes[b->node_count - 1],
                             .taken = taken,
                             .form = DECISION_LAUNCH,
                             .rule = rule,
                             .count = joint_bindings(c, a, b),
                             .limit = c->options->profile->max_bindings,
                             .turn = UINT32_MAX,
                             .ns_parts = a->est_ns + b->est_ns,
                             .ns_fused = joint_ns(c, a, b)};
  if (!IR_PUSH(c->arena, &c->decisions, d)) c->plan->failed = true;
}

static bool is_plain(const plan_step *s) { return !s->choice && !s->guard_count && s->node_count; }

/* Steps move within a trip of their loop only: where the next loop begins or ends. */
static uint32_t segment_end(const ir_plan *p, uint32_t step) {
  uint32_t end = p->steps.count;
  for (uint32_t l = 0; l < p->loops.count; l++) {
    if (p->loops.at[l].first > step && p->loops.at[l].first < end) end = p->loops.at[l].first;
    if (p->loops.at[l].end > step && p->loops.at[l].end < end) end = p->loops.at[l].end;
  }
  return end;
}

/* Those of a loop's trips were joined where its body was compiled; their nodes are that graph's. */
static bool is_in_loop(const ir_plan *p, uint32_t step) {
  for (uint32_t l = 0; l < p->loops.count; l++)
    if (p->loops.at[l].first <= step && step < p->loops.at[l].end) return true;
  return false;
}

static void remove_step(ir_plan *p, uint32_t step) {
  memmove(&p->steps.at[step], &p->steps.at[step + 1], (p->steps.count - step - 1) * sizeof p->steps.at[0]);
  p->steps.count--;
  for (uint32_t l = 0; l < p->loops.count; l++) {
    p->loops.at[l].first -= p->loops.at[l].first > step;
    p->loops.at[l].end -= p->loops.at[l].end > step;
  }
}

/* Is a step independent of those from `first` up to `end`? From the last, which it most likely reads. */
static bool is_free_of(const ir_plan *p, uint32_t step, uint32_t first, uint32_t end) {
  for (uint32_t k = end; k-- > first;)
    if (k != step && fusion_steps_conflict(&p->steps.at[k], &p->steps.at[step])) return false;
  return true;
}

/* Steps `at` and `i` become one, in the place of `to`, which is one of them. *done is false when something is in the way. */
static bool join_pair(fusion_context *c, uint32_t at, uint32_t i, uint32_t to, const char *rule, bool *done) {
  ir_plan *p = c->plan;
  const plan_step *a = &p->steps.at[at], *b = &p->steps.at[i];
  const char *why = obstacle(c, a, b);
  *done = false;
  if (why) {
    record(c, a, b, false, why);
    return true;
  }
  join j = {.c = c, .a = a, .b = b};
  if (!join_kernels(&j, a->kernel)) return false;
  record(c, a, b, true, rule);
  const plan_kernel made = {.kernel = j.k, .kind = "batch"};
  p->kernels.at[a->kernel] = made;
  p->steps.at[to] = j.step;
  remove_step(p, to == at ? i : at);
  *done = true;
  return true;
}

/* What leaves units idle waits for what it could run beside: a step of few groups moves down to a later one, first of all to one that is as short
   or as long: a long one beside a short one leaves a unit to the next long one. */
static bool join_beside(fusion_context *c, uint32_t at, uint32_t end) {
  const ir_plan *p = c->plan;
  const plan_step *a = &p->steps.at[at], *b = a + 1;
  const bool is_short = is_launch_bound(c, a);
  for (uint32_t other = 0; is_plain(a) && run_beside(c, a, a) && other < 2; other++, b = a + 1)
    for (uint32_t i = at + 1; i < end && i <= at + WINDOW && is_free_of(p, at, at + 1, i); i++, b++) {
      bool done;
      if ((is_short != is_launch_bound(c, b)) != other) continue;
      if (!is_plain(b) || !run_beside(c, a, b) || fusion_steps_conflict(a, b) || is_forbidden(c, a, b)) continue;
      if (!join_pair(c, at, i, i, "horizontal", &done)) return false;
      if (done) return at >= p->steps.count || join_beside(c, at, end - 1); /* another step is in this place now */
    }
  return true;
}

/* Joins later steps into step `at`: independent of it and of everything between, which they move in front of. */
static bool join_into(fusion_context *c, uint32_t at, uint32_t end) {
  const ir_plan *p = c->plan;
  for (uint32_t i = at + 1; i < end && i <= at + WINDOW; i++) {
    const plan_step *a = &p->steps.at[at], *b = &p->steps.at[i];
    bool done;
    if (!is_plain(a) || !is_launch_bound(c, a)) return true;
    if (!is_plain(b) || !is_launch_bound(c, b) || !is_free_of(p, i, at, i)) continue;
    if (is_forbidden(c, a, b) || joint_ns(c, a, b) >= a->est_ns + b->est_ns) continue;
    if (!join_pair(c, at, i, at, "horizontal", &done)) return false;
    if (done) end--, i--;
  }
  return true;
}

/* What the user wants in one kernel, whatever it costs: the later step moves to the earlier one, or that to it. */
static bool join_wanted(fusion_context *c, uint32_t at, uint32_t end) {
  const ir_plan *p = c->plan;
  for (uint32_t i = at + 1; c->steer && c->steer->musts.count && i < end; i++) {
    const plan_step *a = &p->steps.at[at], *b = &p->steps.at[i];
    bool done;
    if (!is_plain(a) || !is_plain(b) || !steer_wants(c->steer, part_of(a), part_of(b)) || is_forbidden(c, a, b)) continue;
    const bool up = is_free_of(p, i, at, i), down = !up && is_free_of(p, at, at + 1, i + 1);
    if (!up && !down) continue;
    if (!join_pair(c, at, i, up ? at : i, "must_fuse", &done)) return false;
    if (!done) continue;
    if (down) return at >= p->steps.count || join_wanted(c, at, end - 1); /* another step is in this place now */
    end--, i--;
  }
  return true;
}

/* Kernels that no step runs any more leave the list. */
static bool drop_unused(fusion_context *c) {
  ir_plan *p = c->plan;
  uint32_t *number = IR_NEW_ARRAY(c->arena, uint32_t, p->kernels.count + 1), count = 0;
  if (!number) return false;
  for (uint32_t s = 0; s < p->steps.count; s++) number[p->steps.at[s].kernel] = 1;
  for (uint32_t k = 0; k < p->kernels.count; k++) {
    if (!number[k]) continue;
    number[k] = count;
    p->kernels.at[count++] = p->kernels.at[k];
  }
  for (uint32_t s = 0; s < p->steps.count; s++) p->steps.at[s].kernel = number[p->steps.at[s].kernel];
  p->kernels.count = count;
  return true;
}

static snt_result no_memory(const fusion_context *c) { return ir_no_memory(c->diag, "batch"); }

snt_result fusion_batch(fusion_context *c, bool *changed) {
  static bool (*const rounds[])(fusion_context *, uint32_t at, uint32_t end) = {join_wanted, join_into, join_beside};
  ir_plan *p = c->plan;
  *changed = false;
  if (c->options->level != FUSION_FUSED) return SNT_OK;
  for (size_t r = 0; r < IR_COUNT(rounds); r++)
    for (uint32_t at = 0; at < p->steps.count; at++)
      if (!is_in_loop(p, at) && !rounds[r](c, at, segment_end(p, at))) return no_memory(c);
  return drop_unused(c) ? steer_check(c) : no_memory(c);
}
