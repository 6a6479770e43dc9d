/* Recognition of attention; see attention.h. Every value between the two contractions is visited once with its coordinates over the labels' variables;
   its kind follows from those of its operands (attention_rules.c). Nothing hangs on names of composites, layouts or the order of labels. */
#include "fusion/attention_private.h"
#include "fusion/schedule_common.h"
#include <stddef.h>

enum { FORWARD_STEPS = 8 };

/* ---- labels ---- */

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
    const int32_t i = fusion_find_label(l->side[o], l->count[o], label);
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
      if (fusion_find_label(l->out, l->out_count, own) >= 0 || label_extent(g, node, l, own) == 1 || own == *label) continue;
      if (fusion_find_label(l->side[1 - o], l->count[1 - o], own) < 0) return false; /* a sum of one operand alone */
      *label = own;
      found++;
    }
  return found == 1;
}

static map_access operand_place(const finder *f, const labels *l, uint32_t operand, int64_t summed) {
  const attention *a = f->a;
  map_access at = {.rank = l->count[operand]};
  for (uint32_t i = 0; i < at.rank; i++) {
    const int32_t out = fusion_find_label(l->out, l->out_count, l->side[operand][i]);
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
    const int32_t k = fusion_find_label(l->out, l->out_count, l->side[operand][i]);
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
  if (!summed_label(g, a->scores, &l, &inner)) return attention_bad(f, "scores summed over other than one axis"), false;
  a->inner = (uint32_t)inner;
  a->inner_extent = label_extent(g, a->scores, &l, inner);
  const map_access place[2] = {score_place(f, &l, 0), score_place(f, &l, 1)};
  const bool keyed[2] = {attention_along_keys(f, &place[0]), attention_along_keys(f, &place[1])};
  if (keyed[0] == keyed[1]) return attention_bad(f, "both operands of the scores follow the keys"), false;
  a->query_operand = keyed[0] ? 1 : 0;
  if (!is_own_axis(f, &place[1 - a->query_operand], a->key)) return attention_bad(f, "the keys do not lie along one axis"), false;
  const labels v = labels_of(g, a->values);
  int64_t longest = 0;
  a->row = a->depth = -1;
  for (uint32_t i = 0; i < a->label_count; i++) {
    if (a->extent[i] == 1) continue;
    const bool in_weights = fusion_find_label(v.side[a->weights], v.count[a->weights], v.out[i]) >= 0;
    const bool in_values = fusion_find_label(v.side[a->value_operand], v.count[a->value_operand], v.out[i]) >= 0;
    if (!in_weights && a->depth >= 0) return attention_bad(f, "values of several widths"), false;
    if (!in_weights) a->depth = (int32_t)i;
    if (!in_weights || in_values || attention_uses(f, &place[1 - a->query_operand], a->label[i])) continue;
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
    if ((!pointwise && op != IR_OP_reshape && op != IR_OP_transpose) || (pointwise && f->group && !attention_in_group(f->group, next)))
      return;
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
      const attention_kind kind = attention_visit(f, operand, &in);
      f->why = NULL;
      if (kind != ATTENTION_ROW && kind != ATTENTION_FREE) {
        memcpy(a, kept, sizeof kept);
        a->count = count;
        return;
      }
      reads_row |= kind == ATTENTION_ROW;
    }
    if (!reads_row) memcpy(a, kept, sizeof kept), a->count = count;
    else if (a->count < ATTENTION_NODES) attention_add(a, next, &place)->member = 1;
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

/* A choice stands before what its exp waits for: where that is no number, a key left out is 0 in the graph and none in the result. */
static bool is_chosen_early(const attention *a, uint32_t operand) {
  const attention_node *n = attention_at(a, operand);
  return n->chosen && n->exp && !a->exps[n->exp - 1].exact;
}
static bool chooses_early(const attention *a, const ir_graph *g) {
  bool early = is_chosen_early(a, ir_arg(g, a->values, a->weights));
  for (uint32_t i = 0; i < a->sum_count; i++) early |= is_chosen_early(a, ir_arg(g, a->sums[i], 0));
  return early;
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
  if (f->uses->is_output[node] || depth > ATTENTION_DEPTH) return true;
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
      if (n->kind != ATTENTION_FREE) return attention_bad(f, "scores or weights that something else reads"), false;
      n->member = 0;
      changed = true;
    }
  }
  return true;
}

/* Texels hold words: what widens narrower floats is not cheap there where every query would do so. */
static bool widens_often(const finder *f, uint32_t node) {
  enum { FEW_QUERIES = 4 };
  const ir_graph *g = graph_of(f);
  const attention *a = f->a;
  return f->c->options->profile->reads == COST_READS_TEXEL && ir_at(g, node)->op == IR_OP_cast &&
         ir_dtypes[ir_at(g, ir_arg(g, node, 0))->type.dtype].bytes < sizeof(float) && a->row >= 0 &&
         schedule_hint(g->pool, a->extent[a->row]) > FEW_QUERIES;
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
  if (!(flags & IR_POINTWISE) || (flags & IR_EXPENSIVE) || widens_often(f, node) || attention_at(a, node) || a->count == ATTENTION_NODES)
    return;
  attention_add(a, node, &(map_access){.rank = 0})->member = 1;
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
  const attention_kind kind = attention_visit(f, operand, &at);
  if (kind == ATTENTION_BAD) return false;
  if (!attention_is_linear((uint8_t)kind) || !a->scores) return attention_bad(f, "no contraction of scores behind the weights"), false;
  a->weight_exp = attention_at(a, operand)->exp;
  visit_forward(f);
  if (!a->sum_count && !a->exp_count) return attention_bad(f, "no reduction between the contractions"), false;
  if (!one_rule(a)) return attention_bad(f, "sums of exponentials beside sums of scores"), false;
  if (!maxes_fit(f)) return attention_bad(f, "a maximum of something else than the exponent"), false;
  if (!pick_score_operands(f)) return false;
  find_exact(a, g);
  if (chooses_early(a, g)) return attention_bad(f, "a choice among weights whose exponent is corrected at the end"), false;
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
