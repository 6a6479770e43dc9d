/* Kind `repeat`: the body of a loop is compiled by the ordinary passes into a plan of its own, which becomes a loop of this plan's steps.
   In: a group of one `loop` node and its picks. A carried value whose kernel may write over the old one lives in the buffer of the result. Any
   other has two buffers that the trips write in turn, so that the last trip writes the result; which comes first is an expression of the plan.
   Where launches are most of it, the loop becomes one kernel (schedule/persistent.c). */
#include "fusion/link.h"
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"

typedef struct linking {
  plan_link link;
  const fusion_group *group;
  const fusion_body *body;
  const char *refused; /* why the loop is no persistent kernel, where that is known before it is linked */
} linking;

static snt_result starved(const linking *l) { return ir_no_memory(l->link.c->diag, "schedule"); }

/* ---- the body's plan ---- */

static snt_result compile_body(linking *l, bool reads_own) {
  fusion_context *c = l->link.c;
  ir_plan *plan = IR_NEW(c->arena, ir_plan);
  l->link.inner = IR_NEW(c->arena, fusion_context);
  if (!plan || !l->link.inner) return starved(l);
  plan_init(plan, c->plan->arena, c->plan->pool);
  return fusion_compile_body(l->link.inner, c, &l->body->graph, plan, reads_own);
}

/* Where reads go through texels, a kernel that goes through all trips must read what it stores in another way, and its weights still as texels: the body is
   compiled so first, and again if it does not become that kernel. */
static snt_result choose_body(linking *l) {
  const cost_profile *profile = l->link.c->options->profile;
  if (profile->reads == COST_READS_TEXEL && l->link.c->options->level == FUSION_FUSED) {
    SNT_TRY(compile_body(l, true));
    const plan_loop loop = {l->body->variable, l->body->trips, 0, l->link.inner->plan->steps.count, 0, 0};
    if (schedule_persistent_pays(l->link.c, l->group, l->link.inner, &loop, &l->refused)) return SNT_OK;
  }
  return compile_body(l, false);
}

/* What the passes decided inside, told with the names from inside. */
static void tell_decisions(linking *l) {
  fusion_context *c = l->link.c;
  const ir_graph *g = l->link.inner->graph;
  for (uint32_t i = 0; i < l->link.inner->decisions.count; i++) {
    fusion_decision d = l->link.inner->decisions.at[i];
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
  const ir_graph *g = l->link.c->graph;
  if (carried == 0) return l->group->hero;
  for (uint32_t i = 0; i < l->group->count; i++) {
    const uint32_t n = l->group->nodes[i];
    if (ir_at(g, n)->op == IR_OP_pick && ir_attr_int(g, n, IR_ATTR_index, 0) == (int64_t)carried) return n;
  }
  return 0;
}

static uint32_t result_buffer(linking *l, uint32_t carried) {
  fusion_context *c = l->link.c;
  const uint32_t node = result_node(l, carried), initial = ir_arg(c->graph, l->group->hero, carried);
  if (node && fusion_is_stored(c, node)) return fusion_buffer_of(c, node);
  const ir_tensor *t = &ir_at(c->graph, initial)->type;
  return fusion_add_scratch(c, "carried", t->dtype, ir_tensor_elements(c->graph->pool, t));
}

/* A kernel's own result that only this loop reads need not be copied: its kernel stores it where the loop wants it. */
static bool is_ours_alone(const linking *l, uint32_t node) {
  const fusion_context *c = l->link.c;
  const ir_graph *g = c->graph;
  uint32_t uses = 0;
  if (!c->group_of[node] || !fusion_is_stored(c, node) || ir_is_output(g, node)) return false;
  if (c->groups.at[c->group_of[node] - 1].kind == GROUP_REPEAT) return false;
  for (uint32_t n = 1; n < g->nodes.count; n++)
    for (uint32_t i = 0; i < ir_at(g, n)->arity; i++) uses += ir_arg(g, n, i) == node;
  for (uint32_t i = 0; i < g->updates.count; i++) uses += g->updates.at[i].value == node;
  return uses == 1;
}

static void redirect(ir_plan *p, uint32_t from, const link_place *to) {
  for (uint32_t s = 0; s < p->steps.count; s++)
    for (uint32_t i = 0; i < p->steps.at[s].binding_count; i++) {
      plan_binding *b = &p->steps.at[s].bindings[i];
      if (b->buffer != from || b->swap) continue;
      b->buffer = to->buffer, b->other = to->other, b->swap = to->swap;
    }
}

static snt_result put_initial(linking *l, uint32_t node, const link_place *to) {
  fusion_context *c = l->link.c;
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
  fusion_context *c = l->link.c;
  expr_pool *x = c->graph->pool;
  uint32_t number;
  const ir_update *u = update_of(l->link.inner->graph, state, &number);
  const uint32_t initial = ir_arg(c->graph, l->group->hero, carried), result = result_buffer(l, carried);
  const ir_tensor *t = &ir_at(c->graph, initial)->type;
  if (!u) return ir_fail(c->diag, SNT_E_INTERNAL, "schedule", l->group->hero, "a carried value without a new one");
  const uint32_t old = fusion_buffer_of(l->link.inner, state);
  l->link.places[old] = (link_place){.buffer = result, .known = true};
  if (!l->link.inner->copied_update[number]) return put_initial(l, initial, &l->link.places[old]);
  const uint32_t spare = fusion_add_scratch(c, "carried", t->dtype, ir_tensor_elements(x, t));
  const ir_expr last = expr_sub(x, l->body->trips, 1), left = expr_sub(x, last, l->body->variable);
  l->link.places[old] = (link_place){spare, result, expr_mod(x, left, 2), true};
  l->link.places[fusion_buffer_of(l->link.inner, u->value)] = (link_place){result, spare, expr_mod(x, left, 2), true};
  int64_t odd;
  link_place start = {spare, result, expr_mod(x, last, 2), true};
  if (expr_is_const(x, start.swap, &odd)) start = (link_place){.buffer = odd ? result : spare};
  return put_initial(l, initial, &start);
}

static snt_result place_read(linking *l, uint32_t input, uint32_t operand) {
  fusion_context *c = l->link.c;
  const uint32_t node = ir_arg(c->graph, l->group->hero, operand), own = fusion_buffer_of(l->link.inner, input);
  if (fusion_is_stored(c, node)) {
    l->link.places[own] = (link_place){.buffer = fusion_buffer_of(c, node), .known = true};
    return SNT_OK;
  }
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  l->link.places[own] = (link_place){.buffer = fusion_add_scratch(c, "around", t->dtype, ir_tensor_elements(c->graph->pool, t)),
                                     .known = true};
  return schedule_copy(c, node, l->link.places[own].buffer);
}

static snt_result place_inputs(linking *l) {
  for (uint32_t i = 0; i < l->body->input_count; i++) {
    const uint32_t node = l->link.inner->graph->inputs.at[i].node, operand = l->body->input_roles[i];
    SNT_TRY(operand < l->body->carried ? place_carried(l, node, operand) : place_read(l, node, operand));
  }
  return SNT_OK;
}

/* ---- the steps ---- */

/* Where the flag that ends the loop lies as a trip begins. */
static plan_binding flag_place(const linking *l) {
  if (!l->body->flag) return (plan_binding){0};
  const link_place *at = &l->link.places[fusion_buffer_of(l->link.inner, l->link.inner->graph->inputs.at[l->body->flag - 1].node)];
  return (plan_binding){.buffer = at->buffer, .other = at->other, .swap = at->swap, .access = KIR_READ};
}

/* Where it lies as a trip ends, with an even number of trips to come: there results are. */
static uint32_t flag_behind(const linking *l) {
  const ir_graph *g = l->link.inner->graph;
  uint32_t number;
  const ir_update *u = l->body->flag ? update_of(g, g->inputs.at[l->body->flag - 1].node, &number) : NULL;
  return u ? l->link.places[fusion_buffer_of(l->link.inner, u->value)].buffer + 1 : 0;
}

static snt_result link_steps(linking *l) {
  const uint32_t first = l->link.c->plan->steps.count, count = l->link.inner->plan->steps.count;
  if (!count) return SNT_OK;
  const plan_loop own = {l->body->variable, l->body->trips, first, first + count, l->link.number, flag_behind(l)};
  SNT_TRY(fusion_link_steps(&l->link, &own));
  const plan_binding flag = flag_place(l);
  return schedule_persistent(l->link.c, l->group, l->link.inner, &own, &flag, l->refused);
}

snt_result schedule_repeat_build(fusion_context *c, const fusion_group *group) {
  const int64_t number = ir_attr_int(c->graph, group->hero, IR_ATTR_region, 0);
  linking l = {.link = {.c = c}, .group = group, .body = c->bodies.at[number - 1]};
  SNT_TRY(choose_body(&l));
  SNT_TRY(fusion_link_begin(&l.link, 2 * l.body->input_count));
  SNT_TRY(place_inputs(&l));
  SNT_TRY(fusion_link_rest(&l.link));
  SNT_TRY(link_steps(&l));
  tell_decisions(&l);
  const double trips = (double)schedule_hint(c->graph->pool, l.body->trips);
  c->ns_unfused += trips * l.link.inner->ns_unfused;
  c->bytes_unfused += trips * l.link.inner->bytes_unfused;
  return SNT_OK;
}
