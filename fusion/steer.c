/* The contracts of a graph, made ready for grouping. In: the working graph. Out: rows of bits by which a union is judged in one walk of its members,
   and for each must_fuse the nodes that have to be one kernel. What is no computed node (an input, a constant) is in every kernel that reads it. */
#include "fusion/steer.h"

static bool is_computed(const ir_graph *g, uint32_t node) { return node && !(ir_ops[ir_at(g, node)->op].flags & IR_SOURCE); }

static uint64_t *row(const fusion_steer *s, uint64_t *rows, uint32_t node) { return rows + (size_t)node * s->words; }
static void set_bit(const fusion_steer *s, uint64_t *rows, uint32_t node, uint32_t bit) {
  row(s, rows, node)[bit / 64] |= UINT64_C(1) << bit % 64;
}

/* ---- reading them ---- */

static void mark_values(fusion_steer *s, uint32_t contract) {
  const ir_contract *k = &s->graph->contracts.at[contract];
  for (uint32_t v = 0; v < k->count; v++) {
    const uint32_t value = s->graph->contract_values.at[k->first + v], node = fusion_through_views(s->graph, value);
    if (k->kind == IR_BARRIER) set_bit(s, s->before, value, contract), set_bit(s, s->after, value, contract);
    if (k->kind == IR_NEVER_FUSE && is_computed(s->graph, node)) set_bit(s, s->apart, node, contract);
  }
}

/* What comes before the values, themselves included; and what comes after them and not before. */
static void spread_barriers(fusion_steer *s) {
  const ir_graph *g = s->graph;
  const uint32_t words = s->words;
  for (uint32_t n = g->nodes.count; n-- > 1;) /* operands come before their users */
    for (uint32_t i = 0; i < ir_at(g, n)->arity; i++)
      for (uint32_t w = 0; w < words; w++) row(s, s->before, ir_arg(g, n, i))[w] |= row(s, s->before, n)[w];
  for (uint32_t n = 1; n < g->nodes.count; n++)
    for (uint32_t i = 0; i < ir_at(g, n)->arity; i++)
      for (uint32_t w = 0; w < words; w++) row(s, s->after, n)[w] |= row(s, s->after, ir_arg(g, n, i))[w];
  for (size_t i = 0; i < (size_t)g->nodes.count * words; i++) s->after[i] &= ~s->before[i];
}

/* On a path from one of the values to another: reached from above and from below. */
static bool add_must(fusion_context *c, fusion_steer *s, uint32_t contract, uint8_t *reach) {
  enum { VALUE = 1, BELOW = 2, ABOVE = 4 };
  const ir_graph *g = s->graph;
  const ir_contract *k = &g->contracts.at[contract];
  const uint32_t n = g->nodes.count;
  IR_VEC(uint32_t) nodes = {0};
  memset(reach, 0, n);
  for (uint32_t v = 0; v < k->count; v++) reach[fusion_through_views(g, g->contract_values.at[k->first + v])] = VALUE;
  for (uint32_t at = 1; at < n; at++)
    for (uint32_t i = 0; i < ir_at(g, at)->arity; i++)
      if (reach[ir_arg(g, at, i)] & (VALUE | BELOW)) reach[at] |= BELOW;
  for (uint32_t at = n; at-- > 1;)
    for (uint32_t i = 0; (reach[at] & (VALUE | ABOVE)) && i < ir_at(g, at)->arity; i++) reach[ir_arg(g, at, i)] |= ABOVE;
  for (uint32_t at = 1; at < n; at++) {
    const bool inner = (reach[at] & BELOW) && (reach[at] & ABOVE) && !fusion_is_view(g, at);
    if (!is_computed(g, at) || (!(reach[at] & VALUE) && !inner)) continue;
    if (!IR_PUSH(c->arena, &nodes, at)) return false;
    s->pinned[at] = 1;
  }
  const steer_must must = {contract, nodes.count, nodes.at};
  return IR_PUSH(c->arena, &s->musts, must);
}

static snt_result starved(fusion_context *c) { return ir_no_memory(c->diag, "group"); }

snt_result steer_begin(fusion_context *c) {
  const ir_graph *g = c->graph;
  const uint32_t n = g->nodes.count, contracts = g->contracts.count;
  c->steer = NULL;
  if (!contracts) return SNT_OK;
  fusion_steer *s = IR_NEW(c->arena, fusion_steer);
  uint8_t *marks = IR_NEW_ARRAY(c->arena, uint8_t, n);
  if (!s || !marks) return starved(c);
  *s = (fusion_steer){.graph = g, .words = (contracts + 63) / 64, .pinned = IR_NEW_ARRAY(c->arena, uint8_t, n)};
  const size_t bits = (size_t)n * s->words;
  if (bits > UINT32_MAX) return starved(c);
  s->apart = IR_NEW_ARRAY(c->arena, uint64_t, (uint32_t)bits);
  s->before = IR_NEW_ARRAY(c->arena, uint64_t, (uint32_t)bits);
  s->after = IR_NEW_ARRAY(c->arena, uint64_t, (uint32_t)bits);
  if (!s->pinned || !s->apart || !s->before || !s->after) return starved(c);
  bool barriers = false;
  for (uint32_t i = 0; i < contracts; i++) {
    mark_values(s, i);
    barriers |= g->contracts.at[i].kind == IR_BARRIER;
  }
  if (barriers) spread_barriers(s);
  for (uint32_t i = 0; i < contracts; i++)
    if (g->contracts.at[i].kind == IR_MUST_FUSE && c->options->level == FUSION_FUSED && !add_must(c, s, i, marks)) return starved(c);
  c->steer = s;
  return SNT_OK;
}

/* ---- asking ---- */

static bool is_in(const steer_part *parts, uint32_t count, uint32_t node) {
  for (uint32_t p = 0; p < count; p++)
    for (uint32_t i = 0; i < parts[p].count; i++)
      if (parts[p].nodes[i] == node) return true;
  return false;
}

static const char *forbidden_by(const fusion_steer *s, const steer_part *parts, uint32_t count, uint32_t word) {
  uint64_t apart = 0, before = 0, after = 0;
  for (uint32_t p = 0; p < count; p++)
    for (uint32_t i = 0; i < parts[p].count; i++) {
      const uint32_t n = parts[p].nodes[i];
      const uint64_t own = row(s, s->apart, n)[word];
      if ((own & apart) && !is_in(parts, p, n)) return "never_fuse"; /* a node that several parts recompute is one value */
      apart |= own;
      before |= row(s, s->before, n)[word];
      after |= row(s, s->after, n)[word];
    }
  return before & after ? "barrier" : NULL;
}

const char *steer_forbids(const fusion_steer *s, const steer_part *parts, uint32_t count) {
  const char *why = NULL;
  for (uint32_t w = 0; s && w < s->words && !why; w++) why = forbidden_by(s, parts, count, w);
  return why;
}

bool steer_pins(const fusion_steer *s, uint32_t node) { return s && s->pinned[node]; }

static bool meets(const steer_must *m, steer_part part) {
  for (uint32_t i = 0; i < m->count; i++)
    if (is_in(&part, 1, m->nodes[i])) return true;
  return false;
}

bool steer_wants(const fusion_steer *s, steer_part a, steer_part b) {
  for (uint32_t i = 0; s && i < s->musts.count; i++)
    if (meets(&s->musts.at[i], a) && meets(&s->musts.at[i], b)) return true;
  return false;
}

/* ---- the end ---- */

static bool holds_all(const plan_step *step, const steer_must *m) {
  const steer_part part = {step->nodes, step->node_count};
  for (uint32_t i = 0; i < m->count; i++)
    if (!is_in(&part, 1, m->nodes[i])) return false;
  return true;
}

/* What was first in the way of one kernel. */
static void write_obstacle(const fusion_context *c, const steer_must *m, ir_text *out) {
  const steer_part part = {m->nodes, m->count};
  for (uint32_t d = 0; d < c->decisions.count; d++) {
    const fusion_decision *at = &c->decisions.at[d];
    if (!at->taken && is_in(&part, 1, at->producer) && is_in(&part, 1, at->consumer)) {
      fusion_decision_text(at, out);
      return;
    }
  }
  ir_text_add(out, "no kind of kernel holds them all");
}

static void list_values(const ir_graph *g, const ir_contract *k, ir_text *out) {
  for (uint32_t v = 0; v < k->count; v++) {
    const uint32_t value = g->contract_values.at[k->first + v];
    const char *name = ir_node_name(g, value);
    if (*name) ir_text_format(out, "%s%s", v ? ", " : "", name);
    else ir_text_format(out, "%s%%%u", v ? ", " : "", ir_at(g, value)->origin);
  }
}

snt_result steer_check(const fusion_context *c) {
  for (uint32_t i = 0; c->steer && i < c->steer->musts.count; i++) {
    const steer_must *m = &c->steer->musts.at[i];
    bool held = m->count < 2;
    for (uint32_t s = 0; s < c->plan->steps.count && !held; s++) held = holds_all(&c->plan->steps.at[s], m);
    if (held) continue;
    ir_text text;
    ir_text_init(&text, c->arena);
    list_values(c->graph, &c->graph->contracts.at[m->contract], &text);
    ir_text_add(&text, " cannot hold: ");
    write_obstacle(c, m, &text);
    return ir_fail(c->diag, SNT_E_CONTRACT, "group", ir_at(c->graph, m->nodes[m->count - 1])->origin, "must_fuse %s",
                   text.failed ? "cannot hold" : text.at);
  }
  return SNT_OK;
}
