/* What each value between the two contractions is, from what its operands are: see attention.h for the kinds. In: a finder and a value with its
   coordinates over the labels' variables. Out: its kind, kept with it; references, factors and members on the way. */
#include "fusion/attention_private.h"
#include <math.h>
#include <stddef.h>

attention_kind attention_bad(finder *f, const char *why) {
  if (!f->why) f->why = why;
  return ATTENTION_BAD;
}

static uint64_t *seen_word(attention *a, uint32_t node) { return &a->seen[node / 64 % IR_COUNT(a->seen)]; }

const attention_node *attention_at(const attention *a, uint32_t node) {
  if (!(a->seen[node / 64 % IR_COUNT(a->seen)] >> (node % 64) & 1)) return NULL;
  for (uint32_t i = 0; i < a->count; i++)
    if (a->nodes[i].node == node) return &a->nodes[i];
  return NULL;
}

/* Coordinates are large: only what is used of them is copied. */
static void copy_place(map_access *to, const map_access *from) {
  memcpy(to, from, offsetof(map_access, conditions) + from->condition_count * sizeof from->conditions[0]);
}

/* There is room; a free value until more is known. */
attention_node *attention_add(attention *a, uint32_t node, const map_access *at) {
  attention_node *added = &a->nodes[a->count++];
  memset(added, 0, offsetof(attention_node, at));
  added->node = node;
  added->kind = ATTENTION_FREE;
  copy_place(&added->at, at);
  *seen_word(a, node) |= 1ull << (node % 64);
  return added;
}

bool attention_in_group(const fusion_group *group, uint32_t node) {
  for (uint32_t i = 0; i < group->count; i++)
    if (group->nodes[i] == node) return true;
  return false;
}

static bool same_place(const map_access *a, const map_access *b) {
  return a->rank == b->rank && a->condition_count == b->condition_count && !memcmp(a->at, b->at, a->rank * sizeof a->at[0]) &&
         !memcmp(a->conditions, b->conditions, a->condition_count * sizeof a->conditions[0]);
}

bool attention_uses(const finder *f, const map_access *at, ir_expr variable) {
  const expr_pool *x = graph_of(f)->pool;
  if (variable >= 0) return false;
  const uint32_t number = (uint32_t)x->nodes.at[IR_EXPR_NODE(variable)].value;
  for (uint32_t i = 0; i < at->rank; i++)
    if (expr_uses_var(x, at->at[i], number)) return true;
  return false;
}
bool attention_along_keys(const finder *f, const map_access *at) { return attention_uses(f, at, f->a->key); }

/* ---- the rules: from the kinds of the operands to that of the value ---- */

typedef struct site {
  finder *f;
  uint32_t node;
  const map_access *at;
  attention_node *self;
  uint32_t args[3];
  map_access places[3];
  uint8_t kinds[3];
} site;
typedef attention_kind (*rule)(site *);

static bool row_only(const site *s, uint32_t i) {
  return s->kinds[i] == ATTENTION_ROW || (s->kinds[i] == ATTENTION_FREE && !attention_along_keys(s->f, &s->places[i]));
}

static bool add_reference(site *s, uint32_t i, int8_t use) {
  attention *a = s->f->a;
  if (s->kinds[i] != ATTENTION_ROW) return true; /* computed where it stands */
  for (uint32_t r = 0; r < a->reference_count; r++)
    if (a->references[r].node == s->args[i]) return a->references[r].use == use && same_place(&a->references[r].at, &s->places[i]);
  if (a->reference_count == ATTENTION_REFERENCES) return false;
  a->references[a->reference_count++] = (attention_reference){s->args[i], s->places[i], use};
  return true;
}

/* a(k) - r, r - a(k), a(k) + r and further values of the row beside them. */
static attention_kind sum_rule(site *s) {
  const bool minus = ir_at(graph_of(s->f), s->node)->op == IR_OP_sub;
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t j = 1 - i;
    const int8_t flip = minus && i == 1 ? -1 : 1;
    if (s->kinds[i] == ATTENTION_SHIFTED && row_only(s, j)) {
      const attention_node *from = attention_at(s->f->a, s->args[i]);
      s->self->sign = (int8_t)(from->sign * flip);
      s->self->argument = from->argument;
      return add_reference(s, j, 0) ? ATTENTION_SHIFTED : ATTENTION_BAD;
    }
    if (s->kinds[i] == ATTENTION_SCORE && s->kinds[j] == ATTENTION_ROW) {
      s->self->sign = flip;
      s->self->argument = fusion_through_views(graph_of(s->f), s->args[i]);
      return add_reference(s, j, minus ? 1 : -1) ? ATTENTION_SHIFTED : ATTENTION_BAD;
    }
  }
  return ATTENTION_BAD;
}

static attention_kind keep_weight(site *s, uint32_t i) {
  const attention_node *from = attention_at(s->f->a, s->args[i]);
  s->self->exp = from->exp;
  s->self->waiting = from->waiting;
  s->self->chosen = from->chosen;
  return ATTENTION_WEIGHT;
}

static attention_kind scale_shifted(site *s, uint32_t i) {
  double factor;
  const uint32_t other = fusion_through_moves(graph_of(s->f), s->args[1 - i]);
  if (!ir_is_scalar_const(graph_of(s->f), other, &factor) || factor == 0 || factor != factor) return ATTENTION_BAD;
  const attention_node *from = attention_at(s->f->a, s->args[i]);
  s->self->sign = (int8_t)(factor < 0 ? -from->sign : from->sign);
  s->self->argument = from->argument;
  return ATTENTION_SHIFTED;
}

static attention_kind as_weight(site *s, uint32_t i) {
  if (s->kinds[i] == ATTENTION_WEIGHT) return keep_weight(s, i);
  s->self->exp = 0;
  return ATTENTION_WEIGHT;
}

/* A value of the row times a weight (or a score): it moves to the result. */
static attention_kind defer(site *s, uint32_t weight, uint32_t row, bool divides) {
  attention *a = s->f->a;
  if (a->factor_count == ATTENTION_FACTORS) return ATTENTION_BAD;
  a->factors[a->factor_count].node = s->args[row];
  a->factors[a->factor_count].at = s->places[row];
  a->factors[a->factor_count++].divides = divides;
  const attention_kind kind = as_weight(s, weight);
  s->self->waiting = (uint8_t)a->factor_count;
  return kind;
}

bool attention_is_linear(uint8_t kind) { return kind == ATTENTION_WEIGHT || kind == ATTENTION_SCORE; }

static attention_kind product_rule(site *s) {
  const bool divides = ir_at(graph_of(s->f), s->node)->op == IR_OP_div;
  for (uint32_t i = 0; i < (divides ? 1u : 2u); i++) {
    const uint32_t j = 1 - i;
    if (s->kinds[i] == ATTENTION_SHIFTED && s->kinds[j] == ATTENTION_FREE) return scale_shifted(s, i);
    if (attention_is_linear(s->kinds[i]) && s->kinds[j] == ATTENTION_ROW) return defer(s, i, j, divides);
    if (s->kinds[i] == ATTENTION_WEIGHT && s->kinds[j] == ATTENTION_FREE) return keep_weight(s, i);
  }
  return ATTENTION_BAD;
}

static attention_kind exp_rule(site *s) {
  attention *a = s->f->a;
  if (s->kinds[0] != ATTENTION_SHIFTED || a->exp_count == ATTENTION_EXPS) return ATTENTION_BAD;
  const attention_node *from = attention_at(a, s->args[0]);
  const bool smallest = from->sign < 0;
  if (a->argument && (a->argument != from->argument || a->smallest != smallest)) return ATTENTION_BAD;
  a->argument = from->argument;
  a->smallest = smallest;
  a->exps[a->exp_count++] = (attention_exp){s->node, s->args[0], false};
  s->self->exp = (uint8_t)a->exp_count;
  return ATTENTION_WEIGHT;
}

/* neg and casts keep the kind. */
static attention_kind unary_rule(site *s) {
  const bool negates = ir_at(graph_of(s->f), s->node)->op == IR_OP_neg;
  if (s->kinds[0] == ATTENTION_WEIGHT) return keep_weight(s, 0);
  if (s->kinds[0] != ATTENTION_SHIFTED) return ATTENTION_BAD;
  const attention_node *from = attention_at(s->f->a, s->args[0]);
  s->self->sign = (int8_t)(negates ? -from->sign : from->sign);
  s->self->argument = from->argument;
  return ATTENTION_SHIFTED;
}

/* A weight or nothing: linear while the choice does not hang on the weights. */
static attention_kind select_rule(site *s) {
  double other;
  attention *a = s->f->a;
  const uint32_t weight = s->kinds[1] == ATTENTION_WEIGHT ? 1 : 2;
  const uint32_t rest = fusion_through_moves(graph_of(s->f), s->args[3 - weight]);
  if (s->kinds[0] != ATTENTION_FREE || s->kinds[weight] != ATTENTION_WEIGHT || !ir_is_scalar_const(graph_of(s->f), rest, &other) ||
      other != 0)
    return ATTENTION_BAD;
  const attention_kind kind = keep_weight(s, weight);
  if (!s->self->waiting) {
    s->self->chosen = true;
    return kind;
  }
  if (a->choice_count == ATTENTION_CHOICES || (a->choice_count && a->chosen_after != s->self->waiting)) return ATTENTION_BAD;
  a->choices[a->choice_count++] = s->node;
  a->chosen_after = s->self->waiting;
  return kind;
}

static rule rule_of(ir_op op) {
  switch (op) {
  case IR_OP_add:
  case IR_OP_sub: return sum_rule;
  case IR_OP_mul:
  case IR_OP_div: return product_rule;
  case IR_OP_exp:
  case IR_OP_exp2: return exp_rule;
  case IR_OP_neg:
  case IR_OP_cast: return unary_rule;
  case IR_OP_select: return select_rule;
  default: return NULL;
  }
}

/* ---- visiting ---- */

static attention_kind visit_pointwise(finder *f, attention_node *self) {
  const ir_graph *g = graph_of(f);
  site s; /* large */
  s.f = f, s.node = self->node, s.at = &self->at, s.self = self;
  const ir_node *n = ir_at(g, self->node);
  bool all_free = true, none_shifted = true, all_row = true;
  if (n->op == IR_OP_custom) return attention_bad(f, "an operator of the user's own among the weights");
  for (uint32_t i = 0; i < n->arity; i++) {
    s.args[i] = ir_arg(g, self->node, i);
    copy_place(&s.places[i], &self->at);
    if (ir_at(g, s.args[i])->type.rank == 0) s.places[i].rank = 0;
    s.kinds[i] = (uint8_t)attention_visit(f, s.args[i], &s.places[i]);
    if (s.kinds[i] == ATTENTION_BAD) return ATTENTION_BAD;
    all_free &= s.kinds[i] == ATTENTION_FREE;
    none_shifted &= s.kinds[i] == ATTENTION_FREE || s.kinds[i] == ATTENTION_SCORE;
    all_row &= row_only(&s, i);
  }
  if (all_free) return ATTENTION_FREE;
  if (none_shifted) return ATTENTION_SCORE;
  if (all_row) return ATTENTION_ROW;
  const rule r = rule_of((ir_op)n->op);
  const attention_kind kind = r ? r(&s) : ATTENTION_BAD;
  return kind == ATTENTION_BAD ? attention_bad(f, "an operator on the weights that the online rule does not pass through") : kind;
}

/* A reduction over the keys: its operand at the key's variable must be what the rest of the pattern reads there. */
static attention_kind visit_reduce(finder *f, attention_node *self) {
  const ir_graph *g = graph_of(f);
  attention *a = f->a;
  const uint32_t node = self->node, operand = ir_arg(g, node, 0);
  const ir_op op = (ir_op)ir_at(g, node)->op;
  const ir_tensor *from = &ir_at(g, operand)->type;
  uint32_t count, kept = 0, long_axes = 0;
  const ir_expr *axes = ir_attr_ints(g, node, IR_ATTR_axes, &count);
  const bool keep = ir_attr_flag(g, node, IR_ATTR_keep);
  map_access in = self->at;
  in.rank = from->rank;
  if (attention_along_keys(f, &self->at)) return ATTENTION_FREE;
  for (uint32_t i = 0; i < from->rank; i++) {
    bool reduced = false;
    for (uint32_t k = 0; k < count; k++) reduced |= axes[k] == i;
    if (!reduced) in.at[i] = self->at.at[keep ? i : kept];
    else in.at[i] = from->dims[i] == 1 ? 0 : a->key;
    if (reduced && from->dims[i] != 1) {
      long_axes++;
      if (from->dims[i] != a->keys) return ATTENTION_FREE;
    }
    kept += !reduced;
  }
  if (long_axes != 1) return ATTENTION_FREE;
  const attention_kind kind = attention_visit(f, operand, &in);
  const bool extremum = op == IR_OP_reduce_max || op == IR_OP_reduce_min;
  if (kind == ATTENTION_FREE || kind == ATTENTION_BAD) return kind;
  if (extremum && kind == ATTENTION_SCORE && a->max_count < ATTENTION_REDUCES) {
    a->maxes[a->max_count++] = node;
    return ATTENTION_ROW;
  }
  if (op != IR_OP_reduce_sum || !attention_is_linear((uint8_t)kind) || a->sum_count == ATTENTION_REDUCES)
    return attention_bad(f, "a reduction that has no online form");
  if (attention_at(a, operand)->waiting) return attention_bad(f, "a sum of weights that a value of the row was multiplied into");
  a->sum_exp[a->sum_count] = attention_at(a, operand)->exp;
  a->sums[a->sum_count++] = node;
  return ATTENTION_ROW;
}

static attention_kind visit_view(finder *f, attention_node *self) {
  const ir_graph *g = graph_of(f);
  map_access in = self->at;
  if (ir_at(g, self->node)->arity != 1 || !ir_movement_access(g, self->node, 0, &in)) return ATTENTION_FREE;
  const uint32_t operand = ir_arg(g, self->node, 0);
  const attention_kind kind = attention_visit(f, operand, &in);
  if (kind == ATTENTION_FREE || kind == ATTENTION_BAD) return kind;
  if (in.condition_count) return attention_bad(f, "padded scores");
  const attention_node *from = attention_at(f->a, operand);
  self->sign = from->sign;
  self->exp = from->exp;
  self->waiting = from->waiting;
  self->chosen = from->chosen;
  self->argument = from->argument;
  return kind;
}

static attention_kind visit_contract(finder *f, attention_node *self) {
  attention *a = f->a;
  if (a->scores || !attention_along_keys(f, &self->at)) return ATTENTION_FREE;
  a->scores = self->node;
  return ATTENTION_SCORE;
}

/* Is the node computed in this kernel? Views and what costs nothing always are. */
static bool is_inside(const finder *f, uint32_t node) {
  if (f->group) return attention_in_group(f->group, node) || (fusion_is_free(graph_of(f), node) && !f->c->group_of[node]);
  return !f->uses->is_output[node] || fusion_is_view(graph_of(f), node);
}

static attention_kind visit_inside(finder *f, attention_node *self) {
  const ir_op op = (ir_op)ir_at(graph_of(f), self->node)->op;
  const uint8_t flags = ir_ops[op].flags;
  if (flags & IR_SOURCE) return ATTENTION_FREE;
  if (flags & IR_MOVEMENT) return visit_view(f, self);
  if (flags & IR_POINTWISE) self->member = 1;
  if (flags & IR_POINTWISE) return visit_pointwise(f, self);
  if (op == IR_OP_contract || (flags & IR_REDUCE)) {
    const attention_kind kind = op == IR_OP_contract ? visit_contract(f, self) : visit_reduce(f, self);
    self->member = kind != ATTENTION_FREE && kind != ATTENTION_BAD;
    return kind;
  }
  return ATTENTION_FREE;
}

attention_kind attention_visit(finder *f, uint32_t node, const map_access *at) {
  attention *a = f->a;
  const attention_node *known = attention_at(a, node);
  if (known) {
    if (known->kind == ATTENTION_FREE || same_place(&known->at, at)) return (attention_kind)known->kind;
    return attention_bad(f, "the scores are read in two orders");
  }
  if (a->count == ATTENTION_NODES || f->depth == ATTENTION_DEPTH) return attention_bad(f, "too many operators between the contractions");
  attention_node *self = attention_add(a, node, at);
  self->kind = ATTENTION_BAD;
  if (!is_inside(f, node)) return (attention_kind)(self->kind = ATTENTION_FREE);
  f->depth++;
  const attention_kind kind = visit_inside(f, self);
  f->depth--;
  return (attention_kind)(self->kind = (uint8_t)kind);
}
