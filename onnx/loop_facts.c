/* What a Loop's graph says of itself before it is imported. In: the graph and the initial values. Out: which carried values never change, which count
   (start + step * the number of the trip), and how many trips there can be at most, by what the condition compares a counter with.
   The graph is walked with known numbers alone: a carried number that might count is a variable; it does where the graph gives it plus a constant. */
#include "onnx/import_private.h"

enum { WALK_DEPTH = 64, NUMBER = 0, CONDITION = 1, CARRIED = 2 }; /* the graph's inputs; its outputs have no number */

typedef struct looking {
  onnx_call *c;
  expr_pool *pool;
  const onnx_loop_facts *facts;
  const onnx_scope *scope;   /* what is known of the graph */
  uint32_t trip, *variables; /* of the trip's number, and of each carried value; UINT32_MAX: none */
  ir_expr number;            /* the trip's */
  uint32_t count, *from;     /* those that count */
  ir_expr *means;            /* what they are by the trip's number */
} looking;

/* ---- the graph's nodes ---- */
static const onnx_node *producer(const looking *l, const char *name) {
  const onnx_nodes *nodes = &l->facts->body->nodes;
  for (uint32_t i = nodes->count; i-- > 0;)
    for (uint32_t k = 0; k < nodes->at[i].outputs.count; k++)
      if (!strcmp(nodes->at[i].outputs.at[k], name)) return nodes->at[i].domain[0] ? NULL : &nodes->at[i];
  return NULL;
}

static const char *operand(const onnx_node *n, uint32_t i) { return i < n->inputs.count ? n->inputs.at[i] : ""; }

static const char *through_identities(const looking *l, const char *name) {
  for (uint32_t depth = 0; depth < WALK_DEPTH; depth++) {
    const onnx_node *n = producer(l, name);
    if (!n || strcmp(n->op, "Identity") != 0) break;
    name = operand(n, 0);
  }
  return name;
}

/* Whether anything in a graph, or in those inside it, reads a name. */
static bool reads(const onnx_graph *g, const char *name, uint32_t depth) {
  bool found = false;
  for (uint32_t i = 0; i < g->outputs.count; i++) found |= !strcmp(g->outputs.at[i].name, name);
  for (uint32_t i = 0; i < g->nodes.count && !found; i++) {
    const onnx_node *n = &g->nodes.at[i];
    for (uint32_t k = 0; k < n->inputs.count; k++) found |= !strcmp(n->inputs.at[k], name);
    for (uint32_t k = 0; k < n->attrs.count; k++)
      if (n->attrs.at[k].graph) found |= depth == ONNX_MAX_DEPTH || reads(n->attrs.at[k].graph, name, depth + 1);
  }
  return found;
}

/* ---- carried values ---- */
static uint32_t number_of(const expr_pool *pool, ir_expr variable) { return (uint32_t)pool->nodes.at[IR_EXPR_NODE(variable)].value; }

/* One whole number that is known. */
static const onnx_number *one_number(onnx_call *c, onnx_value *v) {
  const onnx_number *known = v->broken || v->count || onnx_count(v) != 1 ? NULL : onnx_value_known(c->im, v);
  return known && known->den == 1 ? known : NULL;
}

static onnx_value *unknown_of(looking *l, const onnx_value *initial) {
  onnx_value *v = IR_NEW(l->c->im->temp, onnx_value);
  if (v) *v = (onnx_value){.name = initial->name, .type = initial->type, .broken = true};
  return v;
}

static onnx_value *variable_of(looking *l, const char *name, const ir_tensor *type, uint32_t *number) {
  onnx_value *v = IR_NEW(l->c->im->temp, onnx_value);
  onnx_number *at = IR_NEW(l->c->im->temp, onnx_number);
  if (!v || !at) return NULL;
  *at = (onnx_number){expr_var_add(l->pool, name, expr_int(l->pool, INT32_MIN), INT32_MAX, 1), 1};
  if (l->pool->failed) return NULL;
  *number = number_of(l->pool, at->num);
  *v = (onnx_value){.name = name, .type = *type, .known = at};
  return v;
}

static bool walk(looking *l) {
  const onnx_loop_facts *f = l->facts;
  const ir_tensor number = {.dtype = SNT_I64}, flag = {.dtype = SNT_BOOL};
  onnx_value **in = IR_NEW_ARRAY(l->c->im->temp, onnx_value *, CARRIED + f->carried);
  if (!in) return false;
  in[NUMBER] = variable_of(l, "trip", &number, &l->trip);
  in[CONDITION] = unknown_of(l, &(onnx_value){.name = "condition", .type = flag});
  if (!in[NUMBER] || !in[CONDITION]) return false;
  l->number = in[NUMBER]->known->num;
  for (uint32_t i = 0; i < f->carried; i++) {
    onnx_value *v = f->initial[i];
    const bool may_count = !f->same[i] && one_number(l->c, v);
    in[CARRIED + i] = f->same[i] ? v : may_count ? variable_of(l, "count", &v->type, &l->variables[i]) : unknown_of(l, v);
    if (!in[CARRIED + i]) return false;
  }
  return (l->scope = onnx_know_body(l->c, f->body, CARRIED + f->carried, in)) != NULL;
}

static bool find_count(looking *l, onnx_loop_facts *f, uint32_t i) {
  onnx_value *next = onnx_scope_find(l->scope, f->body->outputs.at[1 + i].name);
  const onnx_number *known = next ? one_number(l->c, next) : NULL;
  if (!known || next->type.dtype != f->initial[i]->type.dtype || !ir_same_shape(&next->type, &f->initial[i]->type)) return false;
  ir_expr rest;
  int64_t times;
  if (!expr_split_affine(l->pool, known->num, l->variables[i], &times, &rest) || times != 1 || !expr_is_const(l->pool, rest, &f->step[i]))
    return false;
  f->start[i] = one_number(l->c, f->initial[i])->num;
  return true;
}

/* ---- the condition ---- */
static const onnx_number *known_at(const looking *l, const char *name) {
  onnx_value *v = name[0] ? onnx_scope_find(l->scope, name) : NULL;
  return v && !v->broken && onnx_count(v) == 1 ? onnx_value_known(l->c->im, v) : NULL;
}

static bool is_zero(const looking *l, const char *name) {
  const onnx_number *known = known_at(l, name);
  int64_t number;
  return known && expr_is_const(l->pool, known->num, &number) && number == 0;
}

/* Trips until less < more (weak: less <= more) does not hold, the one at whose end it is found out included. */
static ir_expr trips_while(const looking *l, const onnx_number *less, const onnx_number *more, bool weak) {
  expr_pool *x = l->pool;
  ir_expr rest, gap = expr_sub(x, expr_mul(x, more->num, expr_int(x, less->den)), expr_mul(x, less->num, expr_int(x, more->den)));
  int64_t step;
  gap = expr_substitute(x, gap, l->count, l->from, l->means);
  for (uint32_t i = 0; i < l->facts->carried; i++)
    if (!l->facts->counts[i] && l->variables[i] != UINT32_MAX && expr_uses_var(x, gap, l->variables[i])) return INT64_MAX;
  if (!expr_split_affine(x, gap, l->trip, &step, &rest) || step >= 0) return INT64_MAX;
  const ir_expr hold = expr_ceil_div(x, weak ? expr_add(x, rest, 1) : rest, expr_int(x, -step));
  return expr_add(x, expr_max(x, hold, 0), 1);
}

static ir_expr least(expr_pool *x, ir_expr a, ir_expr b) { return a == INT64_MAX ? b : b == INT64_MAX ? a : expr_min(x, a, b); }

/* Operators that a truth goes through as it is. */
static bool passes(const looking *l, const onnx_node *n) {
  static const char *const ops[] = {"Cast", "Identity", "Squeeze", "Unsqueeze", "Reshape", "Flatten"};
  for (uint32_t i = 0; i < IR_COUNT(ops); i++)
    if (!strcmp(n->op, ops[i])) return true;
  return !strcmp(n->op, "Add") && is_zero(l, operand(n, 1));
}

typedef struct comparison {
  const char *op;
  bool swapped, weak;
} comparison;
static const comparison comparisons[] = {
    {"Less", false, false}, {"LessOrEqual", false, true}, {"Greater", true, false}, {"GreaterOrEqual", true, true}};

/* The most trips while the value is `truth`: of a conjunction either part says so. Of a comparison alone it is how many there are. */
static ir_expr trips_of(const looking *l, const char *name, bool truth, uint32_t depth, bool *alone) {
  const onnx_node *n = producer(l, name);
  if (!n || depth == WALK_DEPTH) return INT64_MAX;
  if (passes(l, n)) return trips_of(l, operand(n, 0), truth, depth + 1, alone);
  if (!strcmp(n->op, "Not")) return trips_of(l, operand(n, 0), !truth, depth + 1, alone);
  if (!strcmp(n->op, truth ? "And" : "Or")) {
    *alone = false;
    return least(l->pool, trips_of(l, operand(n, 0), truth, depth + 1, alone), trips_of(l, operand(n, 1), truth, depth + 1, alone));
  }
  for (uint32_t i = 0; i < IR_COUNT(comparisons); i++) {
    const comparison *c = &comparisons[i];
    if (strcmp(n->op, c->op) != 0) continue;
    const bool swapped = c->swapped == truth, weak = c->weak == truth; /* not a < b: b <= a */
    const onnx_number *less = known_at(l, operand(n, swapped)), *more = known_at(l, operand(n, !swapped));
    return less && more ? trips_while(l, less, more, weak) : INT64_MAX;
  }
  return INT64_MAX;
}

/* ---- all of it ---- */
static bool has_room(looking *l, onnx_loop_facts *f) {
  ir_arena *temp = l->c->im->temp;
  f->read = IR_NEW_ARRAY(temp, bool, f->carried + 1);
  f->same = IR_NEW_ARRAY(temp, bool, f->carried + 1), f->counts = IR_NEW_ARRAY(temp, bool, f->carried + 1);
  f->start = IR_NEW_ARRAY(temp, ir_expr, f->carried + 1), f->step = IR_NEW_ARRAY(temp, int64_t, f->carried + 1);
  l->variables = IR_NEW_ARRAY(temp, uint32_t, f->carried + 1), l->means = IR_NEW_ARRAY(temp, ir_expr, f->carried + 1);
  l->from = IR_NEW_ARRAY(temp, uint32_t, f->carried + 1);
  for (uint32_t i = 0; l->variables && i < f->carried; i++) l->variables[i] = UINT32_MAX;
  return f->read && f->same && f->counts && f->start && f->step && l->variables && l->means && l->from;
}

static void find_means(looking *l, const onnx_loop_facts *f) {
  l->count = 0;
  for (uint32_t i = 0; i < f->carried; i++) {
    if (!f->counts[i]) continue;
    l->means[l->count] = expr_add(l->pool, f->start[i], expr_mul(l->pool, expr_int(l->pool, f->step[i]), l->number));
    l->from[l->count++] = l->variables[i];
  }
}

bool onnx_find_loop_facts(onnx_call *c, onnx_loop_facts *f) {
  looking l = {.c = c, .pool = c->g->pool, .facts = f};
  f->most = INT64_MAX;
  if (!has_room(&l, f)) return false;
  if (f->body->inputs.count != CARRIED + f->carried || f->body->outputs.count < 1 + f->carried)
    return onnx_refuse(c, "its graph has %u inputs and %u outputs for %u carried values", f->body->inputs.count, f->body->outputs.count,
                       f->carried);
  for (uint32_t i = 0; i < f->carried; i++) {
    f->read[i] = reads(f->body, f->body->inputs.at[CARRIED + i].name, 0);
    f->same[i] = !strcmp(through_identities(&l, f->body->outputs.at[1 + i].name), f->body->inputs.at[CARRIED + i].name);
  }
  if (!walk(&l)) return false;
  for (uint32_t i = 0; i < f->carried; i++) f->counts[i] = l.variables[i] != UINT32_MAX && find_count(&l, f, i);
  find_means(&l, f);
  f->alone = true;
  f->most = trips_of(&l, f->body->outputs.at[0].name, true, 0, &f->alone);
  f->alone &= f->most != INT64_MAX;
  return true;
}
