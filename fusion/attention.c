/* Recognition of attention; see attention.h. Every value between the two contractions is visited once with its coordinates over the labels' variables;
   its kind follows from those of its operands by the table `rules`. Nothing hangs on names of composites, layouts or the order of labels. */
#include "fusion/attention.h"
#include <math.h>
#include <stddef.h>
#include "fusion/schedule_common.h"

enum { MAX_DEPTH = 64, FORWARD_STEPS = 8 };

typedef struct finder {
  const fusion_context *c;
  const fusion_group *group;
  const ir_uses *uses;
  attention *a;
  const char *why;
  uint32_t depth;
} finder;

static const ir_graph *graph_of(const finder *f) { return f->c->graph; }

static attention_kind bad(finder *f, const char *why) {
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
static attention_node *add_node(attention *a, uint32_t node, const map_access *at) {
  attention_node *added = &a->nodes[a->count++];
  memset(added, 0, offsetof(attention_node, at));
  added->node = node;
  added->kind = ATTENTION_FREE;
  copy_place(&added->at, at);
  *seen_word(a, node) |= 1ull << (node % 64);
  return added;
}

static bool in_group(const fusion_group *group, uint32_t node) {
  for (uint32_t i = 0; i < group->count; i++)
    if (group->nodes[i] == node) return true;
  return false;
}

static bool same_place(const map_access *a, const map_access *b) {
  return a->rank == b->rank && a->condition_count == b->condition_count && !memcmp(a->at, b->at, a->rank * sizeof a->at[0]) &&
         !memcmp(a->conditions, b->conditions, a->condition_count * sizeof a->conditions[0]);
}

static bool uses_variable(const finder *f, const map_access *at, ir_expr variable) {
  const expr_pool *x = graph_of(f)->pool;
  if (variable >= 0) return false;
  const uint32_t number = (uint32_t)x->nodes.at[IR_EXPR_NODE(variable)].value;
  for (uint32_t i = 0; i < at->rank; i++)
    if (expr_uses_var(x, at->at[i], number)) return true;
  return false;
}
static bool along_keys(const finder *f, const map_access *at) { return uses_variable(f, at, f->a->key); }

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
  return s->kinds[i] == ATTENTION_ROW || (s->kinds[i] == ATTENTION_FREE && !along_keys(s->f, &s->places[i]));
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
  return ATTENTION_WEIGHT;
}

static attention_kind scale_shifted(site *s, uint32_t i) {
  double factor;
  const uint32_t other = fusion_through_views(graph_of(s->f), s->args[1 - i]);
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
  return as_weight(s, weight);
}

static bool is_linear(uint8_t kind) { return kind == ATTENTION_WEIGHT || kind == ATTENTION_SCORE; }

static attention_kind product_rule(site *s) {
  const bool divides = ir_at(graph_of(s->f), s->node)->op == IR_OP_div;
  for (uint32_t i = 0; i < (divides ? 1u : 2u); i++) {
    const uint32_t j = 1 - i;
    if (s->kinds[i] == ATTENTION_SHIFTED && s->kinds[j] == ATTENTION_FREE) return scale_shifted(s, i);
    if (is_linear(s->kinds[i]) && s->kinds[j] == ATTENTION_ROW) return defer(s, i, j, divides);
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

/* Does a value differ from key to key? Views show all there is of what they repeat. */
static bool differs_by_key(const finder *f, uint32_t node) {
  const ir_graph *g = graph_of(f);
  const attention_node *known = attention_at(f->a, node);
  const uint8_t flags = ir_ops[ir_at(g, node)->op].flags;
  if (!known || !along_keys(f, &known->at)) return false;
  if (!(flags & (IR_MOVEMENT | IR_POINTWISE))) return true;
  for (uint32_t i = 0; i < ir_at(g, node)->arity; i++)
    if (differs_by_key(f, ir_arg(g, node, i))) return true;
  return false;
}

/* Does the graph itself leave keys out, so that a row may have none? */
static bool leaves_out(const finder *f) {
  double value;
  for (uint32_t i = 0; i < f->a->count; i++)
    if (ir_is_scalar_const(graph_of(f), f->a->nodes[i].node, &value) && isinf(value)) return true;
  return false;
}

/* A weight or nothing: linear while the choice does not hang on the weights. Where a row's sum may be 0 or no number, what is chosen in place of all of
   its weights is 0 all the same: then it cannot stand behind a factor that waits for the result. */
static attention_kind select_rule(site *s) {
  double other;
  const uint32_t weight = s->kinds[1] == ATTENTION_WEIGHT ? 1 : 2;
  const uint32_t rest = fusion_through_views(graph_of(s->f), s->args[3 - weight]);
  if (s->kinds[0] != ATTENTION_FREE || s->kinds[weight] != ATTENTION_WEIGHT || !ir_is_scalar_const(graph_of(s->f), rest, &other) ||
      other != 0 || (s->f->a->factor_count && (!differs_by_key(s->f, s->args[0]) || leaves_out(s->f))))
    return ATTENTION_BAD;
  return keep_weight(s, weight);
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

static attention_kind visit(finder *f, uint32_t node, const map_access *at);

static attention_kind visit_pointwise(finder *f, attention_node *self) {
  const ir_graph *g = graph_of(f);
  site s; /* large */
  s.f = f, s.node = self->node, s.at = &self->at, s.self = self;
  const ir_node *n = ir_at(g, self->node);
  bool all_free = true, none_shifted = true, all_row = true;
  if (n->op == IR_OP_custom) return bad(f, "an operator of the user's own among the weights");
  for (uint32_t i = 0; i < n->arity; i++) {
    s.args[i] = ir_arg(g, self->node, i);
    copy_place(&s.places[i], &self->at);
    if (ir_at(g, s.args[i])->type.rank == 0) s.places[i].rank = 0;
    s.kinds[i] = (uint8_t)visit(f, s.args[i], &s.places[i]);
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
  return kind == ATTENTION_BAD ? bad(f, "an operator on the weights that the online rule does not pass through") : kind;
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
  if (along_keys(f, &self->at)) return ATTENTION_FREE;
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
  const attention_kind kind = visit(f, operand, &in);
  const bool extremum = op == IR_OP_reduce_max || op == IR_OP_reduce_min;
  if (kind == ATTENTION_FREE || kind == ATTENTION_BAD) return kind;
  if (extremum && kind == ATTENTION_SCORE && a->max_count < ATTENTION_REDUCES) {
    a->maxes[a->max_count++] = node;
    return ATTENTION_ROW;
  }
  if (op != IR_OP_reduce_sum || !is_linear((uint8_t)kind) || a->sum_count == ATTENTION_REDUCES)
    return bad(f, "a reduction that has no online form");
  a->sum_exp[a->sum_count] = attention_at(a, operand)->exp;
  a->sums[a->sum_count++] = node;
  return ATTENTION_ROW;
}

static attention_kind visit_view(finder *f, attention_node *self) {
  const ir_graph *g = graph_of(f);
  map_access in = self->at;
  if (ir_at(g, self->node)->arity != 1 || !ir_movement_access(g, self->node, 0, &in)) return ATTENTION_FREE;
  const uint32_t operand = ir_arg(g, self->node, 0);
  const attention_kind kind = visit(f, operand, &in);
  if (kind == ATTENTION_FREE || kind == ATTENTION_BAD) return kind;
  if (in.condition_count) return bad(f, "padded scores");
  const attention_node *from = attention_at(f->a, operand);
  self->sign = from->sign;
  self->exp = from->exp;
  self->argument = from->argument;
  return kind;
}

static attention_kind visit_contract(finder *f, attention_node *self) {
  attention *a = f->a;
  if (a->scores || !along_keys(f, &self->at)) return ATTENTION_FREE;
  a->scores = self->node;
  return ATTENTION_SCORE;
}

/* Is the node computed in this kernel? Views and what costs nothing always are. */
static bool is_inside(const finder *f, uint32_t node) {
  if (f->group) return in_group(f->group, node) || (fusion_is_free(graph_of(f), node) && !f->c->group_of[node]);
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

static attention_kind visit(finder *f, uint32_t node, const map_access *at) {
  attention *a = f->a;
  const attention_node *known = attention_at(a, node);
  if (known) {
    if (known->kind == ATTENTION_FREE || same_place(&known->at, at)) return (attention_kind)known->kind;
    return bad(f, "the scores are read in two orders");
  }
  if (a->count == ATTENTION_NODES || f->depth == MAX_DEPTH) return bad(f, "too many operators between the contractions");
  attention_node *self = add_node(a, node, at);
  self->kind = ATTENTION_BAD;
  if (!is_inside(f, node)) return (attention_kind)(self->kind = ATTENTION_FREE);
  f->depth++;
  const attention_kind kind = visit_inside(f, self);
  f->depth--;
  return (attention_kind)(self->kind = (uint8_t)kind);
}

/* ---- labels ---- */

static int32_t index_of(const ir_expr *list, uint32_t count, int64_t label) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == label) return (int32_t)i;
  return -1;
}

typedef struct labels {
  const ir_expr *side[2], *out;
  uint32_t count[2], out_count;
} labels;
static labels labels_of(const ir_graph *g, uint32_t node) {
  labels l;
  l.side[0] = ir_attr_ints(g, node, IR_ATTR_lhs, &l.count[0]);
  l.side[1] = ir_attr_ints(g, node, IR_ATTR_rhs, &l.count[1]);
  l.out = ir_attr_ints(g, node, IR_ATTR_out, &l.out_count);
  return l;
}
static ir_expr label_extent(const ir_graph *g, uint32_t node, const labels *l, int64_t label) {
  for (uint32_t o = 0; o < 2; o++) {
    const int32_t i = index_of(l->side[o], l->count[o], label);
    if (i >= 0) return ir_at(g, ir_arg(g, node, o))->type.dims[i];
  }
  return 1;
}

/* The one label that is summed and longer than 1. */
static bool summed_label(const ir_graph *g, uint32_t node, const labels *l, int64_t *label) {
  uint32_t found = 0;
  *label = -1;
  for (uint32_t o = 0; o < 2; o++)
    for (uint32_t i = 0; i < l->count[o]; i++) {
      const int64_t own = l->side[o][i];
      if (index_of(l->out, l->out_count, own) >= 0 || label_extent(g, node, l, own) == 1 || own == *label) continue;
      if (index_of(l->side[1 - o], l->count[1 - o], own) < 0) return false; /* a sum of one operand alone */
      *label = own;
      found++;
    }
  return found == 1;
}

static map_access operand_place(const finder *f, const labels *l, uint32_t operand, int64_t summed) {
  const attention *a = f->a;
  map_access at = {.rank = l->count[operand]};
  for (uint32_t i = 0; i < at.rank; i++) {
    const int32_t out = index_of(l->out, l->out_count, l->side[operand][i]);
    at.at[i] = out >= 0 ? a->label[out] : l->side[operand][i] == summed ? a->key : 0;
  }
  return at;
}

static void make_variables(finder *f, const labels *l, int64_t summed) {
  attention *a = f->a;
  expr_pool *x = graph_of(f)->pool;
  a->label_count = l->out_count;
  for (uint32_t i = 0; i < l->out_count; i++) {
    a->extent[i] = label_extent(graph_of(f), a->values, l, l->out[i]);
    a->label[i] = a->extent[i] == 1 ? 0 : expr_var_add(x, "q", 0, a->extent[i], 1);
  }
  a->keys = label_extent(graph_of(f), a->values, l, summed);
  a->key = expr_var_add(x, "key", 0, a->keys, 1);
}

/* Coordinates of an operand of the scores; the summed label is `inner`'s own variable or 0. */
static map_access score_place(const finder *f, const labels *l, uint32_t operand) {
  const attention *a = f->a;
  const map_access *out = &attention_at(a, a->scores)->at;
  map_access at = {.rank = l->count[operand]};
  for (uint32_t i = 0; i < at.rank; i++) {
    const int32_t k = index_of(l->out, l->out_count, l->side[operand][i]);
    at.at[i] = k >= 0 ? out->at[k] : 0;
  }
  return at;
}

/* Is the variable one coordinate by itself, plus what does not hang on it? */
static bool is_own_axis(const finder *f, const map_access *at, ir_expr variable) {
  expr_pool *x = graph_of(f)->pool;
  const uint32_t number = (uint32_t)x->nodes.at[IR_EXPR_NODE(variable)].value;
  uint32_t found = 0;
  for (uint32_t i = 0; i < at->rank; i++) {
    int64_t coef;
    ir_expr rest;
    if (!expr_uses_var(x, at->at[i], number)) continue;
    if (!expr_split_affine(x, at->at[i], number, &coef, &rest) || coef != 1) return false;
    found++;
  }
  return found == 1;
}

static bool pick_score_operands(finder *f) {
  attention *a = f->a;
  const ir_graph *g = graph_of(f);
  const labels l = labels_of(g, a->scores);
  int64_t inner;
  if (!summed_label(g, a->scores, &l, &inner)) return bad(f, "scores summed over other than one axis"), false;
  a->inner = (uint32_t)inner;
  a->inner_extent = label_extent(g, a->scores, &l, inner);
  const map_access place[2] = {score_place(f, &l, 0), score_place(f, &l, 1)};
  const bool keyed[2] = {along_keys(f, &place[0]), along_keys(f, &place[1])};
  if (keyed[0] == keyed[1]) return bad(f, "both operands of the scores follow the keys"), false;
  a->query_operand = keyed[0] ? 1 : 0;
  if (!is_own_axis(f, &place[1 - a->query_operand], a->key)) return bad(f, "the keys do not lie along one axis"), false;
  const labels v = labels_of(g, a->values);
  int64_t longest = 0;
  a->row = a->depth = -1;
  for (uint32_t i = 0; i < a->label_count; i++) {
    if (a->extent[i] == 1) continue;
    const bool in_weights = index_of(v.side[a->weights], v.count[a->weights], v.out[i]) >= 0;
    const bool in_values = index_of(v.side[a->value_operand], v.count[a->value_operand], v.out[i]) >= 0;
    if (!in_weights && a->depth >= 0) return bad(f, "values of several widths"), false;
    if (!in_weights) a->depth = (int32_t)i;
    if (!in_weights || in_values || uses_variable(f, &place[1 - a->query_operand], a->label[i])) continue;
    const int64_t length = schedule_hint(g->pool, a->extent[i]);
    if (length <= longest || !is_own_axis(f, &place[a->query_operand], a->label[i])) continue;
    longest = length;
    a->row = (int32_t)i;
  }
  return true;
}

/* ---- the whole ---- */

/* Division after the values: what follows the result element by element and reads values of the row. */
static void visit_forward(finder *f) {
  attention *a = f->a;
  const ir_graph *g = graph_of(f);
  uint32_t at = a->values;
  for (uint32_t step = 0; step < FORWARD_STEPS; step++) {
    if (f->uses->first[at + 1] - f->uses->first[at] != 1 || f->uses->is_output[at]) return;
    const uint32_t next = f->uses->user[f->uses->first[at]];
    const ir_op op = (ir_op)ir_at(g, next)->op;
    const bool pointwise = (ir_ops[op].flags & IR_POINTWISE) != 0;
    if ((!pointwise && op != IR_OP_reshape && op != IR_OP_transpose) || (pointwise && f->group && !in_group(f->group, next))) return;
    map_access place = {.rank = a->label_count};
    memcpy(place.at, a->label, sizeof place.at);
    if (!fusion_forward_access(f->c, a->values, next, &place)) return;
    bool reads_row = false;
    uint8_t kept[offsetof(attention, factors)]; /* how many there are of each list; those stay as they are */
    const uint32_t count = a->count;
    memcpy(kept, a, sizeof kept);
    for (uint32_t i = 0; pointwise && i < ir_at(g, next)->arity; i++) {
      const uint32_t operand = ir_arg(g, next, i);
      map_access in = place;
      if (operand == at) continue;
      if (ir_at(g, operand)->type.rank == 0) in.rank = 0;
      const attention_kind kind = visit(f, operand, &in);
      f->why = NULL;
      if (kind != ATTENTION_ROW && kind != ATTENTION_FREE) {
        memcpy(a, kept, sizeof kept);
        a->count = count;
        return;
      }
      reads_row |= kind == ATTENTION_ROW;
    }
    if (!reads_row) memcpy(a, kept, sizeof kept), a->count = count;
    else if (a->count < ATTENTION_NODES) add_node(a, next, &place)->member = 1;
    at = next;
  }
}

/* An exp whose only reference is the extremum of its own argument needs no correction. */
static void find_exact(attention *a, const ir_graph *g) {
  for (uint32_t i = 0; i < a->exp_count; i++) {
    uint32_t node = a->exps[i].shifted, references = 0, extremum = 0;
    while (true) { /* down to the sum with a(k), counting references on the way */
      const ir_node *n = ir_at(g, node);
      uint32_t next = 0;
      for (uint32_t k = 0; k < n->arity; k++) {
        const uint32_t operand = ir_arg(g, node, k);
        const attention_node *own = attention_at(a, operand);
        if (own && own->kind == ATTENTION_SHIFTED) next = operand;
        else if (own && own->kind == ATTENTION_ROW) {
          references++;
          extremum = fusion_through_views(g, operand);
        }
      }
      if (!next) break;
      node = next;
    }
    bool own_extremum = false;
    for (uint32_t m = 0; m < a->max_count; m++) own_extremum |= a->maxes[m] == extremum;
    a->exps[i].exact = references == 1 && own_extremum;
  }
}

/* Either everything is rescaled when the extremum moves, or nothing. */
static bool one_rule(const attention *a) {
  for (uint32_t i = 0; i < a->sum_count; i++)
    if ((a->sum_exp[i] != 0) != (a->exp_count != 0)) return false;
  return (a->weight_exp != 0) == (a->exp_count != 0);
}

/* Every extremum must be that of a(k), on its side. */
static bool maxes_fit(finder *f) {
  const attention *a = f->a;
  const ir_graph *g = graph_of(f);
  for (uint32_t i = 0; i < a->max_count; i++) {
    const uint32_t operand = fusion_through_views(g, ir_arg(g, a->maxes[i], 0));
    if ((ir_at(g, a->maxes[i])->op == IR_OP_reduce_min) != a->smallest) return false;
    if (operand != a->argument) return false;
  }
  return true;
}

static bool read_outside(const finder *f, uint32_t node, uint32_t depth) {
  const ir_graph *g = graph_of(f);
  if (f->uses->is_output[node] || depth > MAX_DEPTH) return true;
  for (uint32_t u = f->uses->first[node]; u < f->uses->first[node + 1]; u++) {
    const uint32_t user = f->uses->user[u];
    const attention_node *own = attention_at(f->a, user);
    if (user == f->a->values || (own && own->member)) continue;
    if (!fusion_is_view(g, user) || read_outside(f, user, depth + 1)) return true;
  }
  return false;
}

/* What others read too stays outside when it does not hang on the scores; scores and weights that others read forbid the pattern. */
static bool prune(finder *f) {
  attention *a = f->a;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = 0; i < a->count; i++) {
      attention_node *n = &a->nodes[i];
      if (!n->member || !read_outside(f, n->node, 0)) continue;
      const attention_node *next = attention_at(a, n->node);
      if (n->kind == ATTENTION_FREE && next && n->node > a->values) continue; /* what follows the result */
      if (n->kind != ATTENTION_FREE) return bad(f, "scores or weights that something else reads"), false;
      n->member = 0;
      changed = true;
    }
  }
  return true;
}

/* Cheap pointwise operators on the way to q, k and v are computed as they are loaded. */
static void add_prologue(finder *f, uint32_t node, uint32_t depth) {
  attention *a = f->a;
  const ir_graph *g = graph_of(f);
  const uint8_t flags = ir_ops[ir_at(g, node)->op].flags;
  if (depth > 16) return;
  if (flags & IR_MOVEMENT) {
    for (uint32_t i = 0; i < ir_at(g, node)->arity; i++) add_prologue(f, ir_arg(g, node, i), depth + 1);
    return;
  }
  if (!(flags & IR_POINTWISE) || (flags & IR_EXPENSIVE) || attention_at(a, node) || a->count == ATTENTION_NODES) return;
  add_node(a, node, &(map_access){.rank = 0})->member = 1;
  if (read_outside(f, node, 0)) {
    a->count--;
    return;
  }
  for (uint32_t i = 0; i < ir_at(g, node)->arity; i++) add_prologue(f, ir_arg(g, node, i), depth + 1);
}

static bool find_with(finder *f, uint32_t weights, const labels *l, int64_t summed) {
  attention *a = f->a;
  const ir_graph *g = graph_of(f);
  const uint32_t values = a->values;
  memset(a, 0, offsetof(attention, factors)); /* the rest is set as it is found */
  memset(a->seen, 0, sizeof a->seen);
  a->reference_count = a->factor_count = a->count = 0;
  a->values = values;
  a->weights = weights;
  a->value_operand = 1 - weights;
  make_variables(f, l, summed);
  const map_access at = operand_place(f, l, weights, summed);
  const uint32_t operand = ir_arg(g, values, weights);
  const attention_kind kind = visit(f, operand, &at);
  if (kind == ATTENTION_BAD) return false;
  if (!is_linear((uint8_t)kind) || !a->scores) return bad(f, "no contraction of scores behind the weights"), false;
  a->weight_exp = attention_at(a, operand)->exp;
  visit_forward(f);
  if (!a->sum_count && !a->exp_count) return bad(f, "no reduction between the contractions"), false;
  if (!one_rule(a)) return bad(f, "sums of exponentials beside sums of scores"), false;
  if (!maxes_fit(f)) return bad(f, "a maximum of something else than the exponent"), false;
  if (!pick_score_operands(f)) return false;
  find_exact(a, g);
  if (f->group) return true;
  if (!prune(f)) return false;
  for (uint32_t o = 0; o < 2; o++) add_prologue(f, ir_arg(g, a->scores, o), 0);
  add_prologue(f, ir_arg(g, values, a->value_operand), 0);
  return true;
}

bool attention_find(const fusion_context *c, const fusion_group *group, const ir_uses *uses, uint32_t values, attention *out,
                    const char **why_not) {
  const ir_graph *g = c->graph;
  const labels l = labels_of(g, values);
  int64_t summed;
  *why_not = "no contraction over keys";
  if (ir_at(g, values)->op != IR_OP_contract || !summed_label(g, values, &l, &summed)) return false;
  for (uint32_t weights = 0; weights < 2; weights++) {
    finder f = {.c = c, .group = group, .uses = uses, .a = out};
    out->values = values;
    if (find_with(&f, weights, &l, summed)) return true;
    if (f.why) *why_not = f.why;
  }
  return false;
}

const uint32_t *attention_members(const fusion_context *c, const attention *a, uint32_t *count) {
  uint32_t *list = IR_NEW_ARRAY(c->arena, uint32_t, a->count + 1);
  *count = 0;
  if (!list) return NULL;
  list[(*count)++] = a->values;
  for (uint32_t i = 0; i < a->count; i++)
    if (a->nodes[i].member) list[(*count)++] = a->nodes[i].node;
  for (uint32_t i = 1; i < *count; i++)
    for (uint32_t k = i; k && list[k - 1] > list[k]; k--) {
      const uint32_t t = list[k];
      list[k] = list[k - 1];
      list[k - 1] = t;
    }
  return list;
}
