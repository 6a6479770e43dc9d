/* A loop of kernels as one kernel, that does not end between trips (a persistent kernel; for recurrences: Diamos et al., Persistent RNNs, ICML 2016).
   In: a loop of the plan whose steps are the last ones. Out: one step in their place, whose one workgroup goes through every group of every
   step of every trip, with a barrier where a step needs what an earlier one stored; or the loop as it was, where something is in the way or
   launches cost less than the rest of the device could do meanwhile. Where trips write a pair of buffers in turn, two trips stand in the
   kernel's loop, each with its own of the two. */
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"
#include "fusion/steer.h"
#include "ir/kir_pass.h"

enum { SIDES = 2 }; /* trips that write the first of a pair, or the other */

typedef struct part {
  const plan_step *step;
  const kir_kernel *kernel;
  uint32_t *memories[SIDES], *scalars, *values;
  bool waits; /* for what an earlier part of the trip stored */
} part;

typedef struct persistent {
  fusion_context *c;
  const ir_plan *plan;
  const fusion_group *group;
  const fusion_steer *steer; /* what the user says of the body */
  plan_loop loop;
  bool loop_inside, ends; /* ends: where its flag is down nothing changes any more */
  plan_binding flag;      /* if it ends; the buffer of that flag as a trip begins */
  uint32_t flags[SIDES];  /* it in the kernel */
  uint32_t variable, count, items[3], sides;
  part *parts;
  double ns_one, ns_apart;
  emit *e;
} persistent;

static bool varies(const persistent *p, ir_expr e) { return e < 0 && expr_uses_var(p->c->graph->pool, e, p->variable); }

/* ---- what may be in the way ---- */

/* Operands that the kernel IR wants to know before it begins: strides and divisors. */
static bool is_wanted_early(const kir_kernel *k, uint32_t scalar) {
  for (uint32_t m = 0; m < k->memories.count; m++)
    if (k->memories.at[m].offset_scalar == scalar + 1 || k->memories.at[m].size_scalar == scalar + 1) return true;
  for (uint32_t i = 1; i < k->insts.count; i++) {
    const kir_inst *in = kir_at(k, i);
    const bool divides = in->op == KIR_udiv || in->op == KIR_umod;
    for (uint32_t n = divides ? 1 : 0; (divides || in->op == KIR_ix) && n < in->arg_count; n += 2) {
      const kir_inst *a = kir_at(k, kir_arg(k, i, n));
      if (a->op == KIR_scalar && a->index == scalar) return true;
    }
  }
  return false;
}

static const char *scalar_obstacle(const persistent *p, const part *t) {
  for (uint32_t i = 0; i < t->step->scalar_count; i++) {
    const kir_scalar *s = &t->kernel->scalars.at[i];
    if (!kir_same(s->type, kir_t(SNT_U32, 1))) return "a scalar that is no extent";
    if (varies(p, t->step->scalars[i]) && is_wanted_early(t->kernel, i)) return "a stride that changes from trip to trip";
  }
  return NULL;
}

static bool is_stored_to(const persistent *p, uint32_t buffer) {
  for (uint32_t i = 0; i < p->count; i++)
    for (uint32_t b = 0; b < p->parts[i].step->binding_count; b++) {
      const plan_binding *x = &p->parts[i].step->bindings[b];
      if ((x->access & KIR_WRITE) && (x->buffer == buffer || (x->swap && x->other == buffer))) return true;
    }
  return false;
}

/* Texels are read through a cache that does not see what the kernel itself stores. */
static const char *memory_obstacle(const persistent *p, const part *t) {
  for (uint32_t m = 0; m < t->kernel->memories.count; m++) {
    const kir_memory *memory = &t->kernel->memories.at[m];
    if (memory->space == KIR_IMAGE) return "an image";
    if (memory->space != KIR_GLOBAL && memory->space != KIR_SCRATCH) continue;
    const plan_binding *b = &t->step->bindings[memory->slot];
    if (b->offset || varies(p, b->bytes)) return "a part of a buffer";
    if ((memory->flags & KIR_MEM_TEXEL) && (is_stored_to(p, b->buffer) || (b->swap && is_stored_to(p, b->other))))
      return "texels of what the loop itself stores";
  }
  return NULL;
}

static const char *part_obstacle(const persistent *p, const part *t) {
  if (t->step->choice || t->step->guard_count) return "kernels for other extents";
  if (kir_is_written(t->kernel)) return "a kernel of the user's own";
  const char *why = scalar_obstacle(p, t);
  return why ? why : memory_obstacle(p, t);
}

/* The kernel whose workgroup is that of all: the largest, of those whose items wait for each other if there are such. Others run on fewer
   items, too, in turns. */
static const kir_kernel *widest(const persistent *p) {
  const kir_kernel *best = NULL;
  for (uint32_t i = 0; i < p->count; i++) {
    const kir_kernel *k = p->parts[i].kernel;
    const bool dearer = best && kir_waits(k) != kir_waits(best) ? kir_waits(k) : best && k->items[0] > best->items[0];
    if (!best || dearer) best = k;
  }
  return best;
}

static bool runs_on(const kir_kernel *k, const kir_kernel *of) {
  const bool flat = k->items[1] * k->items[2] == 1 && of->items[1] * of->items[2] == 1;
  return kir_fits_items(k, of) || (flat && !kir_waits(k));
}

static uint32_t count_buffers(const persistent *p) {
  uint32_t count = 0;
  for (uint32_t b = 0; b < p->plan->buffers.count; b++) {
    bool used = false;
    for (uint32_t i = 0; i < p->count && !used; i++)
      for (uint32_t k = 0; k < p->parts[i].step->binding_count && !used; k++) {
        const plan_binding *x = &p->parts[i].step->bindings[k];
        used = x->buffer == b || (x->swap && x->other == b);
      }
    count += used;
  }
  return count;
}

/* Each is a scalar of the one kernel, too, unless it is computed from the number of the trip. */
static uint32_t count_scalars(const persistent *p) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->count; i++)
    for (uint32_t s = 0; s < p->parts[i].step->scalar_count; s++) {
      const ir_expr own = p->parts[i].step->scalars[s];
      bool had = varies(p, own);
      for (uint32_t k = 0; k <= i && !had; k++)
        for (uint32_t n = 0; n < (k < i ? p->parts[k].step->scalar_count : s) && !had; n++) had = p->parts[k].step->scalars[n] == own;
      count += !had;
    }
  return count;
}

/* Some drivers end a kernel after so many trips of all its loops. */
static bool has_too_many_trips(const persistent *p) {
  const double most = p->c->options->profile->max_trips;
  const expr_pool *x = p->c->graph->pool;
  int64_t least, trips, groups;
  double inside = 1;
  for (uint32_t i = 0; most > 0 && i < p->count; i++) {
    kir_mix mix;
    kir_count_mix(p->parts[i].kernel, most, &mix);
    expr_bounds(x, p->parts[i].step->groups, &least, &groups);
    inside += (double)groups * (1 + mix.trips);
  }
  expr_bounds(x, p->loop.trips, &least, &trips);
  return most > 0 && (double)trips * inside >= most;
}

static const char *forbidden(const persistent *p) {
  steer_part *parts = p->steer ? IR_NEW_ARRAY(p->c->arena, steer_part, p->count) : NULL;
  for (uint32_t i = 0; parts && i < p->count; i++) parts[i] = (steer_part){p->parts[i].step->nodes, p->parts[i].step->node_count};
  return parts ? steer_forbids(p->steer, parts, p->count) : NULL;
}

static const char *obstacle(const persistent *p) {
  enum { SPARE_SCALARS = 8 }; /* of what numbers of trips are made into more */
  const cost_profile *profile = p->c->options->profile;
  uint32_t local = 0, sub = 0;
  const char *own = forbidden(p);
  if (own) return own;
  if (p->loop_inside) return "a loop of kernels inside it";
  const kir_kernel *of = widest(p);
  for (uint32_t i = 0; i < p->count; i++) {
    const part *t = &p->parts[i];
    const char *why = part_obstacle(p, t);
    if (why) return why;
    if (!runs_on(t->kernel, of)) return "workgroups of different shapes";
    if (sub && t->kernel->sub && t->kernel->sub != sub) return "subgroups of different sizes";
    if (t->kernel->needs[0]) return "matrix units";
    sub = t->kernel->sub ? t->kernel->sub : sub;
    local += kir_local_bytes(t->kernel);
  }
  if (has_too_many_trips(p)) return "the device ends kernels of so many trips";
  if (profile->max_bindings && count_buffers(p) > profile->max_bindings) return "bindings";
  if (4 * (count_scalars(p) + SPARE_SCALARS) > profile->max_scalar_bytes) return "scalars";
  if (cost_usual_local(profile) && local > cost_usual_local(profile)) return "local memory";
  return NULL;
}

/* ---- what it costs ---- */

static double trips_of(const persistent *p) { return (double)schedule_hint(p->c->graph->pool, p->loop.trips); }

/* A step's groups one after the other: the work of all that would run at once is done by the items of one, and each group waits at its barriers alone. */
static double price_part(const persistent *p, const part *t) {
  const cost_profile *profile = p->c->options->profile;
  const double groups = (double)schedule_hint(p->c->graph->pool, t->step->groups);
  const double items = (double)t->kernel->items[0] * t->kernel->items[1] * t->kernel->items[2];
  const double at_once = profile->saturate_items > 0 ? profile->saturate_items / items : profile->units;
  kir_mix mix;
  kir_count_mix(t->kernel, 1, &mix);
  return (t->step->est_ns - profile->launch_ns) * (groups < at_once ? groups : at_once) +
         groups * (profile->group_ns + mix.barriers * profile->barrier_ns);
}

/* A loop that ends is taken to make half of the trips there may be; as launches it makes all. */
static double price_one(const persistent *p) {
  const cost_profile *profile = p->c->options->profile;
  double trip = profile->barrier_ns;
  for (uint32_t i = 0; i < p->count; i++) trip += price_part(p, &p->parts[i]) + (p->parts[i].waits ? profile->barrier_ns : 0);
  return profile->launch_ns + trips_of(p) * trip * (p->ends ? 0.5 : 1);
}

static double price_apart(const persistent *p) {
  double trip = 0;
  for (uint32_t i = 0; i < p->count; i++) trip += p->parts[i].step->est_ns;
  return trips_of(p) * trip;
}

static bool record(const persistent *p, bool taken, const char *rule) {
  fusion_context *c = p->c;
  const fusion_decision d = {.producer = p->group->hero,
                             .consumer = p->group->hero,
                             .taken = taken,
                             .form = DECISION_TRIPS,
                             .rule = rule,
                             .count = p->count,
                             .limit = c->options->profile->max_bindings,
                             .turn = UINT32_MAX,
                             .ns_parts = p->ns_apart,
                             .ns_fused = p->ns_one};
  return IR_PUSH(c->arena, &c->decisions, d);
}

/* ---- the kernel ---- */

/* The buffer that a binding names in trips of a side. */
static uint32_t buffer_at(const plan_binding *b, uint32_t side) { return b->swap && side ? b->other : b->buffer; }

static bool is_like(const kir_memory *a, const kir_memory *b) {
  return a->flags == b->flags && a->view == b->view && kir_same(a->type, b->type) && a->dims[0] == b->dims[0] && a->dims[1] == b->dims[1] &&
         a->offset_scalar == b->offset_scalar && a->size_scalar == b->size_scalar;
}

/* A buffer is one memory, where parts see the same elements in it; else several that may overlap. */
static uint32_t add_bound(persistent *p, const kir_memory *m, const plan_binding *b, uint32_t side, const uint32_t *scalars) {
  emit *e = p->e;
  const uint32_t buffer = buffer_at(b, side);
  kir_memory made = *m;
  if (made.offset_scalar) made.offset_scalar = scalars[made.offset_scalar - 1] + 1;
  if (made.size_scalar) made.size_scalar = scalars[made.size_scalar - 1] + 1;
  for (uint32_t i = 0; i < e->k->memories.count; i++) {
    kir_memory *had = &e->k->memories.at[i];
    if ((had->space != KIR_GLOBAL && had->space != KIR_SCRATCH) || e->slots.at[had->slot] != buffer) continue;
    if (is_like(had, &made)) {
      had->access |= m->access;
      if (m->alias) had->alias = m->alias;
      e->access.at[had->slot] |= b->access;
      return i;
    }
    if (!had->alias) had->alias = e->k->memories.count + 2; /* 1: all states */
    made.alias = had->alias;
  }
  char name[24];
  const int length = snprintf(name, sizeof name, "p%u", e->slots.count);
  made.name = ir_arena_text(e->arena, name, (size_t)length);
  made.slot = e->slots.count;
  if (!IR_PUSH(e->arena, &e->slots, buffer) || !IR_PUSH(e->arena, &e->access, b->access)) e->failed = true;
  return kir_memory_add(e->k, &made);
}

/* What is of the workgroup or an item alone serves trips of both sides. */
static uint32_t add_own(persistent *p, const kir_memory *m, const uint32_t *memories) {
  kir_memory made = *m;
  char name[24];
  const int length = snprintf(name, sizeof name, "m%u", p->e->k->memories.count);
  made.name = ir_arena_text(p->e->arena, name, (size_t)length);
  if (made.overlay) made.overlay = memories[made.overlay - 1] + 1;
  return kir_memory_add(p->e->k, &made);
}

static bool declare_part(persistent *p, part *t) {
  const uint32_t memories = t->kernel->memories.count, scalars = t->kernel->scalars.count;
  t->scalars = IR_NEW_ARRAY(p->c->arena, uint32_t, scalars + 1);
  t->values = IR_NEW_ARRAY(p->c->arena, uint32_t, scalars + 1);
  if (!t->scalars || !t->values) return false;
  for (uint32_t i = 0; i < scalars; i++)
    if (!varies(p, t->step->scalars[i])) t->scalars[i] = emit_scalar_for(p->e, t->step->scalars[i]);
  for (uint32_t side = 0; side < p->sides; side++) {
    t->memories[side] = IR_NEW_ARRAY(p->c->arena, uint32_t, memories + 1);
    if (!t->memories[side]) return false;
    for (uint32_t m = 0; m < memories; m++) {
      const kir_memory *memory = &t->kernel->memories.at[m];
      if (memory->space == KIR_GLOBAL || memory->space == KIR_SCRATCH)
        t->memories[side][m] = add_bound(p, memory, &t->step->bindings[memory->slot], side, t->scalars);
      else t->memories[side][m] = side ? t->memories[0][m] : add_own(p, memory, t->memories[0]);
    }
  }
  return true;
}

static bool is_alone(const persistent *p) { return p->items[0] * p->items[1] * p->items[2] == 1; }

static ir_expr in_trip(const persistent *p, ir_expr expression, ir_expr trip) {
  return varies(p, expression) ? expr_substitute(p->c->graph->pool, expression, 1, &p->variable, &trip) : expression;
}

static bool put_part(persistent *p, const part *t, uint32_t side, ir_expr trip) {
  emit *e = p->e;
  int64_t literal;
  for (uint32_t i = 0; i < t->step->scalar_count; i++)
    if (varies(p, t->step->scalars[i])) t->values[i] = emit_expr(e, in_trip(p, t->step->scalars[i], trip));
  kir_site site = {.memories = t->memories[side], .scalars = t->scalars, .values = t->values};
  const ir_expr groups = in_trip(p, t->step->groups, trip);
  if (expr_is_const(e->x, groups, &literal) && literal == 1) {
    site.group = kir_const_int(e->k, kir_t(SNT_U32, 1), 0);
    return kir_append(e->k, t->kernel, &site);
  }
  const emit_loop_info info = {.name = "g", .hi = groups, .step = 1, .flags = KIR_LOOP_ROLLED};
  const ir_expr group = emit_loop(e, &info);
  site.group = emit_expr(e, group);
  if (!kir_append(e->k, t->kernel, &site)) return false;
  if (kir_local_bytes(t->kernel) && !is_alone(p)) kir_barrier(e->k, KIR_SYNC_LOCAL);
  emit_loop_end(e, group, 0, NULL, NULL);
  return true;
}

/* Whoever works alone waits for nobody. */
static bool put_trip(persistent *p, uint32_t side, ir_expr trip) {
  for (uint32_t i = 0; i < p->count; i++) {
    if (p->parts[i].waits && !is_alone(p)) kir_barrier(p->e->k, KIR_SYNC_GLOBAL | KIR_SYNC_LOCAL);
    if (!put_part(p, &p->parts[i], side, trip)) return false;
  }
  if (!is_alone(p)) kir_barrier(p->e->k, KIR_SYNC_GLOBAL | KIR_SYNC_LOCAL);
  return true;
}

static void declare_flag(persistent *p) {
  const kir_memory m = {.space = KIR_GLOBAL, .access = KIR_READ, .rank = 1, .type = kir_t(SNT_U8, 1), .dims = {1}, .align = 16};
  for (uint32_t side = 0; side < p->sides; side++) p->flags[side] = add_bound(p, &m, &p->flag, side, NULL);
}

/* A trip that is made unless the one before it began with the flag down: then both halves of each pair hold what they end with. `runs` is 0
   where it is not made (none: there is no flag); `other`, if there is one, says whether it is one at all. Gives `runs` of the next. */
static bool put_trip_if(persistent *p, uint32_t side, ir_expr trip, uint32_t other, uint32_t *runs) {
  emit *e = p->e;
  uint32_t condition = other, next = 0;
  if (p->ends) {
    const uint32_t none = kir_const_int(e->k, kir_t(SNT_U32, 1), 0),
                   flag = kir_cast(e->k, kir_t(SNT_U32, 1), kir_load(e->k, p->flags[side], 1, 1, &none));
    const uint32_t alive = kir_2(e->k, KIR_ne, *runs, none);
    condition = other ? kir_2(e->k, KIR_and, alive, other) : alive;
    next = other ? kir_3(e->k, KIR_select, other, flag, *runs) : flag;
    if (!is_alone(p)) kir_barrier(e->k, KIR_SYNC_GLOBAL | KIR_SYNC_LOCAL); /* before anybody writes it */
  }
  if (condition) emit_if(e, condition);
  const bool good = put_trip(p, side, trip);
  if (condition) emit_if_end(e);
  *runs = next;
  return good;
}

/* A loop that carries whether trips are made, if it may end. */
static ir_expr begin_trips(const persistent *p, const char *name, ir_expr trips, uint32_t *runs) {
  const uint32_t yes = kir_const_int(p->e->k, kir_t(SNT_U32, 1), 1);
  const emit_loop_info info = {
      .name = name, .hi = trips, .step = 1, .flags = KIR_LOOP_ROLLED, .carry_count = p->ends, .initial = &yes, .carried = runs};
  return emit_loop(p->e, &info);
}

static bool put_trips(persistent *p) {
  uint32_t runs = 0, last;
  const ir_expr trip = begin_trips(p, "trip", p->loop.trips, &runs);
  const bool good = put_trip_if(p, 0, trip, 0, &runs);
  emit_loop_end(p->e, trip, p->ends, &runs, &last);
  return good;
}

/* Two trips a turn, of which the second writes the first of a pair, as the last trip does; where their number is odd, the first turn has none before it. */
static bool put_pairs(persistent *p) {
  emit *e = p->e;
  const ir_expr trips = p->loop.trips, odd = expr_mod(e->x, trips, 2);
  uint32_t runs = 0, last;
  const ir_expr turn = begin_trips(p, "turn", expr_ceil_div(e->x, trips, 2), &runs);
  const uint32_t first = emit_expr(e, expr_sub(e->x, expr_mul(e->x, turn, 2), odd));
  const int64_t one = 1;
  const uint32_t second = kir_ix(e->k, 1, &one, &first, 1);
  const uint32_t is_one = odd ? kir_2(e->k, KIR_lt, first, emit_expr(e, trips)) : 0;
  bool good = put_trip_if(p, 1, emit_var_for(e, "trip", first, 0, trips), is_one, &runs);
  good = good && put_trip_if(p, 0, emit_var_for(e, "trip", second, 0, trips), 0, &runs);
  emit_loop_end(e, turn, p->ends, &runs, &last);
  return good;
}

/* ---- the loop of the plan ---- */

static bool take_apart(persistent *p) {
  const ir_plan *plan = p->plan;
  p->sides = 1;
  p->parts = IR_NEW_ARRAY(p->c->arena, part, p->count);
  for (uint32_t i = 0; p->parts && i < p->count; i++) {
    part *t = &p->parts[i];
    t->step = &plan->steps.at[p->loop.first + i];
    t->kernel = plan->kernels.at[t->step->kernel].kernel;
    for (uint32_t k = i; k-- > 0 && !t->waits;) {
      t->waits = fusion_steps_conflict(p->parts[k].step, t->step);
      if (p->parts[k].waits) break; /* whatever is before that has been waited for */
    }
    for (uint32_t b = 0; b < t->step->binding_count; b++)
      if (t->step->bindings[b].swap) p->sides = SIDES;
  }
  if (!p->parts) return false;
  p->ns_one = price_one(p), p->ns_apart = price_apart(p);
  return true;
}

/* The step's estimate is of this kernel and not of its group, which was priced as a loop of kernels: it has a list of nodes of its own. */
static snt_result end_kernel(persistent *p, double flops) {
  fusion_context *c = p->c;
  uint32_t *nodes = IR_NEW_ARRAY(c->arena, uint32_t, p->group->count);
  if (!nodes) return ir_no_memory(c->diag, "schedule");
  memcpy(nodes, p->group->nodes, p->group->count * sizeof *nodes);
  c->plan->steps.count = p->loop.first;
  c->plan->loops.count--;
  SNT_TRY(emit_end(p->e, 1, 0, 0, NULL));
  plan_step *s = &c->plan->steps.at[c->plan->steps.count - 1];
  c->plan->kernels.at[s->kernel].kind = "persistent";
  s->nodes = nodes, s->est_ns = p->ns_one, s->flops = flops;
  return SNT_OK;
}

static snt_result build(persistent *p) {
  p->e = emit_begin(p->c, p->group, "persistent");
  if (!p->e) return ir_no_memory(p->c->diag, "schedule");
  double flops = 0;
  bool good = true;
  memcpy(p->items, widest(p)->items, sizeof p->items);
  memcpy(p->e->k->items, p->items, sizeof p->items);
  for (uint32_t i = 0; i < p->count; i++) {
    if (p->parts[i].kernel->sub) p->e->k->sub = p->parts[i].kernel->sub;
    flops += trips_of(p) * p->parts[i].step->flops;
    good = good && declare_part(p, &p->parts[i]);
  }
  if (p->ends && good) declare_flag(p);
  good = good && (p->sides == SIDES ? put_pairs(p) : put_trips(p));
  if (!good) p->e->failed = true;
  return end_kernel(p, flops);
}

static persistent of_loop(fusion_context *c, const fusion_group *group, const fusion_context *body, const ir_plan *plan,
                          const plan_loop *loop) {
  persistent p = {.c = c, .plan = plan, .group = group, .steer = body->steer, .loop = *loop, .count = loop->end - loop->first};
  p.variable = emit_var_number(c->graph->pool, loop->variable);
  p.ends = c->bodies.at[ir_attr_int(c->graph, group->hero, IR_ATTR_region, 0) - 1]->flag != 0;
  for (uint32_t i = 0; i < plan->loops.count; i++)
    p.loop_inside |= plan->loops.at[i].variable != loop->variable && plan->loops.at[i].first >= loop->first;
  return p;
}

/* Does node `from` hang on what node `on`, which stands before it, gives? */
static bool hangs_on(const ir_graph *g, uint32_t from, uint32_t on, bool *reached) {
  reached[from] = true;
  for (uint32_t n = from; n > on; n--)
    for (uint32_t i = 0; reached[n] && i < ir_at(g, n)->arity; i++) reached[ir_arg(g, n, i)] = true;
  return reached[on];
}

/* Loops of as many trips over values of one shape that neither wait for this one nor it for them, the other direction of a recurrence, are kernels of one
   group as well: as many as the device has units run beside each other (batch.c). How many there are with this one. Explicit vectors only: on lavapipe two of
   32 products of 1 x 512 by 512 x 512 took 12.6 ms so, 8.1 as launches (PoCL: 0.72 and 0.98). */
static double count_beside(const persistent *p) {
  const fusion_context *c = p->c;
  const ir_graph *g = c->graph;
  const uint32_t own = p->group->hero;
  double count = 1;
  const uint32_t most = c->options->profile->max_bindings;
  if (!schedule_is_explicit(c) || (most && 2 * count_buffers(p) > most)) return count;
  for (uint32_t n = 1; n < g->nodes.count && count < c->options->profile->units; n++) {
    if (n == own || ir_at(g, n)->op != IR_OP_loop || ir_at(g, n)->arity != ir_at(g, own)->arity) continue;
    if (*ir_attr_ints(g, n, IR_ATTR_trips, NULL) != *ir_attr_ints(g, own, IR_ATTR_trips, NULL)) continue;
    if (!ir_same_shape(&ir_at(g, n)->type, &ir_at(g, own)->type)) continue;
    bool *reached = IR_NEW_ARRAY(c->arena, bool, g->nodes.count);
    count += reached && !hangs_on(g, n > own ? n : own, n > own ? own : n, reached);
  }
  return count;
}

/* Why it stays a loop, or null. */
static const char *refusal(const persistent *p) {
  const char *why = obstacle(p);
  return why || p->ns_one < count_beside(p) * p->ns_apart ? why : "loses";
}

bool schedule_persistent_pays(fusion_context *c, const fusion_group *group, const fusion_context *body, const plan_loop *loop,
                              const char **why) {
  persistent p = of_loop(c, group, body, body->plan, loop);
  *why = take_apart(&p) ? refusal(&p) : "out of host memory";
  return !*why;
}

snt_result schedule_persistent(fusion_context *c, const fusion_group *group, const fusion_context *body, const plan_loop *loop,
                               const plan_binding *flag, const char *known) {
  persistent p = of_loop(c, group, body, c->plan, loop);
  p.flag = *flag;
  if (c->options->level != FUSION_FUSED) return SNT_OK;
  if (!take_apart(&p)) return ir_no_memory(c->diag, "schedule");
  const char *why = known ? known : refusal(&p);
  if (!record(&p, !why, why ? why : "saves")) return ir_no_memory(c->diag, "schedule");
  return why ? SNT_OK : build(&p);
}
