/* A loop whose body asks for values at places that go on with the loop's variable: what a trip has of the next one's is carried, what is the same in all
   trips is computed before them. The body is emitted twice: once to see what it asks for, then for good.
   In: a loop, its body. Invariant: nothing of the first time is left but the scalars and bindings that it has in common with the second. */
#include "fusion/emit_private.h"

typedef struct slide {
  emit *e;
  uint32_t var, count;   /* of the loop looked at; values kept from trip to trip */
  emit_memo *kept;       /* as that loop remembered them */
  uint32_t *lanes;       /* of each; 0: the same in all trips */
  uint32_t *now, *later; /* of those that are not: in one trip, in the next */
} slide;

/* Where a value lies with another expression in place of the loop's variable. */
static map_access moved(const slide *s, const emit_memo *m, ir_expr to) {
  map_access a = {.rank = m->rank, .condition_count = m->condition_count};
  memcpy(a.at, m->at, m->rank * sizeof a.at[0]);
  if (m->condition_count) memcpy(a.conditions, m->conditions, m->condition_count * sizeof a.conditions[0]);
  map_substitute(s->e->x, &a, 1, &s->var, &to);
  return a;
}

/* Whether a value lies at a number that the body reads (a gather's), which is none outside of it. */
static bool is_placed_by_body(const slide *s, const emit_memo *m) {
  const expr_pool *x = s->e->x;
  bool found = false;
  for (uint32_t var = s->var + 1; var < x->vars.count; var++) {
    for (uint32_t i = 0; i < m->rank; i++) found |= expr_uses_var(x, m->at[i], var);
    for (uint32_t i = 0; i < m->condition_count; i++) found |= expr_uses_var(x, m->conditions[i].value, var);
  }
  return found;
}

static void look(slide *s, const emit_loop_info *loop, emit_slide_body *body, void *user) {
  emit *e = s->e;
  emit_expr(e, loop->lo), emit_expr(e, loop->hi); /* remembered outside, so made before what is thrown away */
  const uint32_t insts = e->k->insts.count, args = e->k->args.count, known = e->memos.count;
  const ir_expr v = emit_loop(e, loop);
  body(e, user, v);
  const uint32_t made = e->memos.count - known;
  s->kept = IR_NEW_ARRAY(e->arena, emit_memo, made);
  s->lanes = IR_NEW_ARRAY(e->arena, uint32_t, (size_t)made * 3);
  s->var = emit_var_number(e->x, v);
  if (!s->kept || !s->lanes || e->k->failed || e->x->failed) e->failed = true;
  for (uint32_t i = known; !e->failed && i < e->memos.count; i++) {
    const emit_memo m = e->memos.at[i];
    if (is_placed_by_body(s, &m)) continue;
    const map_access a = moved(s, &m, expr_add(e->x, v, expr_int(e->x, loop->step)));
    const uint32_t next = emit_recall(e, m.node, &a);
    if (!next) continue;
    s->lanes[s->count] = next == m.value ? 0 : emit_value_type(e, m.value).lanes;
    s->kept[s->count++] = m;
  }
  s->now = s->lanes + made, s->later = s->now + made;
  emit_loop_end(e, v, 0, NULL, NULL);
  if (!e->failed) e->k->insts.count = insts, e->k->args.count = args;
}

/* The values with `at` in place of the variable; of those that change from trip to trip. */
static uint32_t compute(slide *s, ir_expr at, uint32_t *values) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    const map_access a = moved(s, &s->kept[i], at);
    const uint32_t value = emit_value(s->e, s->kept[i].node, &a);
    if (s->lanes[i]) values[count++] = kir_splat(s->e->k, value, s->lanes[i]);
  }
  return count;
}

void emit_slide(emit *e, const emit_loop_info *loop, emit_slide_body *body, void *user) {
  slide s = {.e = e};
  emit_loop_info carrying = *loop;
  look(&s, loop, body, user);
  if (e->failed) return;
  carrying.carry_count = compute(&s, loop->lo, s.now);
  carrying.initial = s.now, carrying.carried = s.later;
  const ir_expr v = emit_loop(e, &carrying);
  for (uint32_t i = 0, n = 0; i < s.count; i++) {
    if (!s.lanes[i]) continue;
    const map_access a = moved(&s, &s.kept[i], v);
    emit_remember(e, s.kept[i].node, &a, s.later[n++]);
  }
  body(e, user, v);
  compute(&s, expr_add(e->x, v, expr_int(e->x, loop->step)), s.now);
  emit_loop_end(e, v, carrying.carry_count, s.now, s.later);
}
