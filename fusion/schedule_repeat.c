/* Kind `repeat`: the body of a loop is compiled by the ordinary passes into a plan of its own, which becomes a loop of this plan's steps.
   In: a group of one `loop` node and its picks. A carried value whose kernel may write over the old one lives in the buffer of the result. Any
   other has two buffers that the trips write in turn, so that the last trip writes the result; which comes first is an expression of the plan.
   Where launches are most of it, the loop becomes one kernel (schedule_persistent.c). */
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"

/* The outer buffer that stands for one of the body's; `other` where `swap` is not 0. */
typedef struct place {
  uint32_t buffer, other;
  ir_expr swap;
  bool known;
} place;

typedef struct linking {
  fusion_context *c, *inner;
  const fusion_group *group;
  const fusion_body *body;
  place *places; /* per buffer of the body's plan */
  uint32_t first_kernel, number;
  const char *refused; /* why the loop is no persistent kernel, where that is known before it is linked */
} linking;

static snt_result starved(const linking *l) { return ir_fail(l->c->diag, SNT_E_HOST_MEM, "schedule", 0, "out of host memory"); }

/* ---- the body's plan ---- */

static snt_result compile_body(linking *l, bool reads_own) {
  fusion_context *c = l->c;
  ir_plan *plan = IR_NEW(c->arena, ir_plan);
  l->inner = IR_NEW(c->arena, fusion_context);
  if (!plan || !l->inner) return starved(l);
  plan_init(plan, c->plan->arena, c->plan->pool);
  return fusion_compile_body(l->inner, c, &l->body->graph, plan, reads_own);
}

/* Where reads go through texels, a kernel that goes through all trips must read what it stores in another way, and its weights still as texels: the body is
   compiled so first, and again if it does not become that kernel. */
static snt_result choose_body(linking *l) {
  const cost_profile *profile = l->c->options->profile;
  if (profile->reads == COST_READS_TEXEL && l->c->options->level == FUSION_FUSED) {
    SNT_TRY(compile_body(l, true));
    const plan_loop loop = {l->body->variable, l->body->trips, 0, l->inner->plan->steps.count, 0, 0};
    if (schedule_persistent_pays(l->c, l->group, l->inner, &loop, &l->refused)) return SNT_OK;
  }
  return compile_body(l, false);
}

static snt_result adopt_body(linking *l) {
  fusion_context *c = l->c;
  const ir_plan *plan = l->inner->plan;
  l->first_kernel = c->plan->kernels.count;
  for (uint32_t i = 0; i < plan->kernels.count; i++)
    if (!IR_PUSH(c->plan->arena, &c->plan->kernels, plan->kernels.at[i])) return starved(l);
  if (!IR_PUSH(c->arena, &c->body_graphs, l->inner->graph)) return starved(l);
  l->number = c->body_graphs.count;
  for (uint32_t i = 0; i < l->inner->body_graphs.count; i++)
    if (!IR_PUSH(c->arena, &c->body_graphs, l->inner->body_graphs.at[i])) return starved(l);
  l->places = IR_NEW_ARRAY(c->arena, place, plan->buffers.count + 2 * l->body->input_count + 1);
  return l->places ? SNT_OK : starved(l);
}

/* What the passes decided inside, told with the names from inside. */
static void tell_decisions(linking *l) {
  fusion_context *c = l->c;
  const ir_graph *g = l->inner->graph;
  for (uint32_t i = 0; i < l->inner->decisions.count; i++) {
    fusion_decision d = l->inner->decisions.at[i];
    ir_text text;
    ir_text_init(&text, c->arena);
    ir_text_format(&text, "in the body, %s %s -> %s %s: ", ir_ops[ir_at(g, d.producer)->op].name, ir_node_name(g, d.producer),
                   ir_ops[ir_at(g, d.consumer)->op].name, ir_node_name(g, d.consumer));
    fusion_decision_text(&d, &text);
    d.producer = d.consumer = l->group->hero;
    d.form = DECISION_BODY;
    d.what = text.failed ? d.rule : text.at;
    if (!IR_PUSH(c->arena, &c->decisions, d)) c->plan->failed = true;
  }
}

/* ---- places of carried values and of those from around ---- */

static uint32_t result_node(const linking *l, uint32_t carried) {
  const ir_graph *g = l->c->graph;
  if (carried == 0) return l->group->hero;
  for (uint32_t i = 0; i < l->group->count; i++) {
    const uint32_t n = l->group->nodes[i];
    if (ir_at(g, n)->op == IR_OP_pick && ir_attr_int(g, n, IR_ATTR_index, 0) == (int64_t)carried) return n;
  }
  return 0;
}

static uint32_t result_buffer(linking *l, uint32_t carried) {
  fusion_context *c = l->c;
  const uint32_t node = result_node(l, carried), initial = ir_arg(c->graph, l->group->hero, carried);
  if (node && fusion_is_stored(c, node)) return fusion_buffer_of(c, node);
  const ir_tensor *t = &ir_at(c->graph, initial)->type;
  return fusion_add_scratch(c, "carried", t->dtype, ir_tensor_elements(c->graph->pool, t));
}

/* A kernel's own result that only this loop reads need not be copied: its kernel stores it where the loop wants it. */
static bool is_ours_alone(const linking *l, uint32_t node) {
  const fusion_context *c = l->c;
  const ir_graph *g = c->graph;
  uint32_t uses = 0;
  if (!c->group_of[node] || !fusion_is_stored(c, node) || ir_is_output(g, node)) return false;
  if (c->groups.at[c->group_of[node] - 1].kind == GROUP_REPEAT) return false;
  for (uint32_t n = 1; n < g->nodes.count; n++)
    for (uint32_t i = 0; i < ir_at(g, n)->arity; i++) uses += ir_arg(g, n, i) == node;
  for (uint32_t i = 0; i < g->updates.count; i++) uses += g->updates.at[i].value == node;
  return uses == 1;
}

static void redirect(ir_plan *p, uint32_t from, const place *to) {
  for (uint32_t s = 0; s < p->steps.count; s++)
    for (uint32_t i = 0; i < p->steps.at[s].binding_count; i++) {
      plan_binding *b = &p->steps.at[s].bindings[i];
      if (b->buffer != from || b->swap) continue;
      b->buffer = to->buffer, b->other = to->other, b->swap = to->swap;
    }
}

static snt_result put_initial(linking *l, uint32_t node, const place *to) {
  fusion_context *c = l->c;
  if (is_ours_alone(l, node)) {
    redirect(c->plan, fusion_buffer_of(c, node), to);
    return SNT_OK;
  }
  const uint32_t first = c->plan->steps.count;
  SNT_TRY(schedule_copy(c, node, to->buffer));
  for (uint32_t s = first; s < c->plan->steps.count && to->swap; s++)
    for (uint32_t i = 0; i < c->plan->steps.at[s].binding_count; i++) {
      plan_binding *b = &c->plan->steps.at[s].bindings[i];
      if (b->buffer == to->buffer) b->other = to->other, b->swap = to->swap;
    }
  return SNT_OK;
}

static const ir_update *update_of(const ir_graph *g, uint32_t state, uint32_t *number) {
  for (*number = 0; *number < g->updates.count; ++*number)
    if (g->updates.at[*number].state == state) return &g->updates.at[*number];
  return NULL;
}

static snt_result place_carried(linking *l, uint32_t state, uint32_t carried) {
  fusion_context *c = l->c;
  expr_pool *x = c->graph->pool;
  uint32_t number;
  const ir_update *u = update_of(l->inner->graph, state, &number);
  const uint32_t initial = ir_arg(c->graph, l->group->hero, carried), result = result_buffer(l, carried);
  const ir_tensor *t = &ir_at(c->graph, initial)->type;
  if (!u) return ir_fail(c->diag, SNT_E_INTERNAL, "schedule", l->group->hero, "a carried value without a new one");
  const uint32_t old = fusion_buffer_of(l->inner, state);
  l->places[old] = (place){.buffer = result, .known = true};
  if (!l->inner->copied_update[number]) return put_initial(l, initial, &l->places[old]);
  const uint32_t spare = fusion_add_scratch(c, "carried", t->dtype, ir_tensor_elements(x, t));
  const ir_expr last = expr_sub(x, l->body->trips, 1), left = expr_sub(x, last, l->body->variable);
  l->places[old] = (place){spare, result, expr_mod(x, left, 2), true};
  l->places[fusion_buffer_of(l->inner, u->value)] = (place){result, spare, expr_mod(x, left, 2), true};
  int64_t odd;
  place start = {spare, result, expr_mod(x, last, 2), true};
  if (expr_is_const(x, start.swap, &odd)) start = (place){.buffer = odd ? result : spare};
  return put_initial(l, initial, &start);
}

static snt_result place_read(linking *l, uint32_t input, uint32_t operand) {
  fusion_context *c = l->c;
  const uint32_t node = ir_arg(c->graph, l->group->hero, operand), own = fusion_buffer_of(l->inner, input);
  if (fusion_is_stored(c, node)) {
    l->places[own] = (place){.buffer = fusion_buffer_of(c, node), .known = true};
    return SNT_OK;
  }
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  l->places[own] = (place){.buffer = fusion_add_scratch(c, "around", t->dtype, ir_tensor_elements(c->graph->pool, t)), .known = true};
  return schedule_copy(c, node, l->places[own].buffer);
}

static snt_result place_inputs(linking *l) {
  for (uint32_t i = 0; i < l->body->input_count; i++) {
    const uint32_t node = l->inner->graph->inputs.at[i].node, operand = l->body->input_roles[i];
    SNT_TRY(operand < l->body->carried ? place_carried(l, node, operand) : place_read(l, node, operand));
  }
  return SNT_OK;
}

/* Constants that the program has already are shared; everything else is new. */
static snt_result place_rest(linking *l) {
  ir_plan *to = l->c->plan;
  const ir_plan *from = l->inner->plan;
  for (uint32_t i = 0; i < from->buffers.count; i++) {
    plan_buffer b = from->buffers.at[i];
    if (l->places[i].known) continue;
    l->places[i] = (place){.buffer = to->buffers.count, .known = true};
    for (uint32_t k = 0; b.kind == PLAN_CONSTANT && k < to->buffers.count; k++)
      if (to->buffers.at[k].kind == PLAN_CONSTANT && to->buffers.at[k].data == b.data && to->buffers.at[k].making == b.making &&
          to->buffers.at[k].bytes == b.bytes && to->buffers.at[k].dtype == b.dtype)
        l->places[i].buffer = k;
    if (l->places[i].buffer != to->buffers.count) continue;
    b.node = 0; /* of another graph */
    if (!IR_PUSH(to->arena, &to->buffers, b)) return starved(l);
  }
  return SNT_OK;
}

/* ---- the steps ---- */

static snt_result link_step(linking *l, uint32_t number, uint32_t choices) {
  ir_plan *to = l->c->plan;
  plan_step s = l->inner->plan->steps.at[number];
  s.kernel += l->first_kernel;
  if (s.choice) s.choice += choices;
  for (uint32_t i = 0; i < s.binding_count; i++) {
    plan_binding *b = &s.bindings[i];
    const place *own = &l->places[b->buffer], *other = &l->places[b->other];
    if (b->swap && (own->swap || other->swap))
      return ir_fail(l->c->diag, SNT_E_INTERNAL, "schedule", l->group->hero, "a pair of buffers within a pair");
    b->buffer = own->buffer;
    if (b->swap) b->other = other->buffer;
    else b->other = own->swap ? own->other : 0, b->swap = own->swap;
  }
  return IR_PUSH(to->arena, &to->steps, s) ? SNT_OK : starved(l);
}

/* Where the flag that ends the loop lies as a trip begins. */
static plan_binding flag_place(const linking *l) {
  if (!l->body->flag) return (plan_binding){0};
  const place *at = &l->places[fusion_buffer_of(l->inner, l->inner->graph->inputs.at[l->body->flag - 1].node)];
  return (plan_binding){.buffer = at->buffer, .other = at->other, .swap = at->swap, .access = KIR_READ};
}

/* Where it lies as a trip ends, with an even number of trips to come: there results are. */
static uint32_t flag_behind(const linking *l) {
  const ir_graph *g = l->inner->graph;
  uint32_t number;
  const ir_update *u = l->body->flag ? update_of(g, g->inputs.at[l->body->flag - 1].node, &number) : NULL;
  return u ? l->places[fusion_buffer_of(l->inner, u->value)].buffer + 1 : 0;
}

static snt_result link_steps(linking *l) {
  ir_plan *to = l->c->plan;
  const ir_plan *from = l->inner->plan;
  const uint32_t first = to->steps.count;
  if (!from->steps.count) return SNT_OK;
  const plan_loop own = {l->body->variable, l->body->trips, first, first + from->steps.count, l->number, flag_behind(l)};
  if (!IR_PUSH(to->arena, &to->loops, own)) return starved(l);
  for (uint32_t i = 0; i < from->loops.count; i++) {
    plan_loop inner = from->loops.at[i];
    inner.first += first, inner.end += first, inner.body += l->number, inner.flag = 0; /* it lies elsewhere in each trip */
    if (!IR_PUSH(to->arena, &to->loops, inner)) return starved(l);
  }
  for (uint32_t i = 0; i < from->steps.count; i++) SNT_TRY(link_step(l, i, first));
  const plan_binding flag = flag_place(l);
  return schedule_persistent(l->c, l->group, l->inner, &own, &flag, l->refused);
}

snt_result schedule_repeat_build(fusion_context *c, const fusion_group *group) {
  const int64_t number = ir_attr_int(c->graph, group->hero, IR_ATTR_region, 0);
  linking l = {.c = c, .group = group, .body = c->bodies.at[number - 1]};
  SNT_TRY(choose_body(&l));
  SNT_TRY(adopt_body(&l));
  SNT_TRY(place_inputs(&l));
  SNT_TRY(place_rest(&l));
  SNT_TRY(link_steps(&l));
  tell_decisions(&l);
  const double trips = (double)schedule_hint(c->graph->pool, l.body->trips);
  c->ns_unfused += trips * l.inner->ns_unfused;
  c->bytes_unfused += trips * l.inner->bytes_unfused;
  return SNT_OK;
}
