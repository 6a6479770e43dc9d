/* Extents that are one where it matters. A model of open rows whose weights are put together in the kernel (4-bit words) is one program for
   a prompt and for each word behind it; but beside one row such a matrix is a sum of products, and all that surrounds it groups otherwise.
   So the graph with these symbols written in as 1 is compiled once more, and the plan has two branches, of which a run takes one: loops of
   one trip or none, by the symbols.
   In: a plan with all its steps. Out: the same, or one of both. Constants that both lay out alike are one buffer. */
#include "fusion/link.h"
#include "fusion/schedule_common.h"

typedef enum { NOT_WEIGHTS, STORED, COMPUTED } weights;

typedef struct branch {
  fusion_context *c;
  uint8_t *weights;   /* per node: what is made of constants alone */
  int64_t *values;    /* per symbol: 1 where the branch writes it in, else 0 */
  ir_expr product;    /* of those symbols */
  double one, others; /* multiply-adds beside the values: of matrices that are computed times a vector, and the rest */
} branch;

static void find_weights(branch *b) {
  const ir_graph *g = b->c->graph;
  for (uint32_t n = 1; n < g->nodes.count; n++) {
    const ir_node *node = ir_at(g, n);
    b->weights[n] = node->op == IR_OP_const || (node->arity && fusion_is_view(g, n)) ? STORED : node->arity ? COMPUTED : NOT_WEIGHTS;
    for (uint32_t i = 0; i < node->arity; i++) {
      const uint8_t of = b->weights[ir_arg(g, n, i)];
      if (b->weights[n] && (!of || of > b->weights[n])) b->weights[n] = of;
    }
  }
}

/* Rows beside a matrix of weights that is computed; 0: `node` is no such product. */
static ir_expr rows_of(const branch *b, uint32_t node) {
  static const ir_attr_key keys[2] = {IR_ATTR_lhs, IR_ATTR_rhs};
  const ir_graph *g = b->c->graph;
  uint32_t count, rank;
  const ir_expr *out = ir_attr_ints(g, node, IR_ATTR_out, &rank);
  for (uint32_t o = 0; o < 2; o++) {
    if (b->weights[ir_arg(g, node, o)] != COMPUTED || b->weights[ir_arg(g, node, 1 - o)]) continue;
    const ir_expr *labels = ir_attr_ints(g, node, keys[o], &count);
    ir_expr rows = 1;
    for (uint32_t i = 0; i < rank; i++)
      if (fusion_find_label(labels, count, out[i]) < 0) rows = expr_mul(g->pool, rows, ir_at(g, node)->type.dims[i]);
    return rows;
  }
  return 0;
}

/* The symbols of an expression, where each of them can be 1. */
static void take_symbols(branch *b, ir_expr e) {
  expr_pool *x = b->c->graph->pool;
  if (e >= 0) return;
  const expr_node n = x->nodes.at[IR_EXPR_NODE(e)];
  if (n.kind == EXPR_SYMBOL && !b->values[n.value] && x->symbols.at[n.value].min <= 1 && x->symbols.at[n.value].multiple_of <= 1) {
    b->values[n.value] = 1;
    b->product = expr_mul(x, b->product, e);
  }
  for (uint32_t i = 0; i < n.count; i++) take_symbols(b, x->terms.at[n.first + i]);
}

static int64_t value_of(const branch *b, ir_expr e) {
  expr_pool *x = b->c->graph->pool;
  return schedule_hint(x, expr_fix(x, e, b->values));
}

static double work_of(const branch *b, uint32_t node) {
  const ir_graph *g = b->c->graph;
  const ir_tensor *operand = &ir_at(g, ir_arg(g, node, 0))->type;
  uint32_t rank, count;
  const ir_expr *out = ir_attr_ints(g, node, IR_ATTR_out, &rank), *labels = ir_attr_ints(g, node, IR_ATTR_lhs, &count);
  double work = (double)value_of(b, ir_tensor_elements(g->pool, &ir_at(g, node)->type));
  for (uint32_t i = 0; i < count; i++)
    if (fusion_find_label(out, rank, labels[i]) < 0) work *= (double)value_of(b, operand->dims[i]);
  return work;
}

static void weigh(branch *b, uint32_t node) {
  const ir_expr rows = rows_of(b, node);
  const bool one = rows < 0 && value_of(b, rows) == 1;
  *(one ? &b->one : &b->others) += work_of(b, node);
}

/* Most of what is left to multiply is a matrix times a vector. */
static bool is_worth_it(branch *b) {
  const ir_graph *g = b->c->graph;
  for (uint32_t n = 1; n < g->nodes.count; n++)
    if (ir_at(g, n)->op == IR_OP_contract) take_symbols(b, rows_of(b, n));
  for (uint32_t n = 1; n < g->nodes.count; n++)
    if (ir_at(g, n)->op == IR_OP_contract) weigh(b, n);
  return b->one > b->others;
}

/* The given graph with the values written in. */
static snt_result write_in(const branch *b, ir_graph *to) {
  const fusion_context *c = b->c;
  expr_pool *x = c->given->pool;
  uint32_t *map = IR_NEW_ARRAY(c->arena, uint32_t, c->given->nodes.count);
  if (!map) return SNT_E_HOST_MEM;
  ir_graph_init(to, c->arena, x);
  SNT_TRY(ir_graph_copy_live(c->given, to, map));
  for (uint32_t n = 1; n < to->nodes.count; n++) {
    ir_tensor *t = &to->nodes.at[n].type;
    for (uint32_t d = 0; d < t->rank; d++) t->dims[d] = expr_fix(x, t->dims[d], b->values);
  }
  for (uint32_t i = 0; i < to->attrs.count; i++) {
    const ir_attr *a = &to->attrs.at[i];
    if (ir_attr_infos[a->key].kind != IR_KIND_INTS && ir_attr_infos[a->key].kind != IR_KIND_INT) continue;
    for (uint32_t k = 0; k < a->count; k++) to->ints.at[a->first + k] = expr_fix(x, to->ints.at[a->first + k], b->values);
  }
  for (uint32_t n = 1; n < c->given->nodes.count; n++)
    if (map[n] && !to->nodes.at[map[n]].origin) to->nodes.at[map[n]].origin = n;
  return SNT_OK;
}

static void place_ports(plan_link *l) {
  fusion_context *c = l->c, *inner = l->inner;
  for (uint32_t i = 0; i < c->graph->inputs.count; i++)
    l->places[fusion_buffer_of(inner, inner->graph->inputs.at[i].node)] = (link_place){
        .buffer = fusion_buffer_of(c, c->graph->inputs.at[i].node), .known = true};
  for (uint32_t i = 0; i < c->graph->outputs.count; i++)
    l->places[fusion_buffer_of(inner, inner->graph->outputs.at[i].node)] = (link_place){
        .buffer = fusion_buffer_of(c, c->graph->outputs.at[i].node), .known = true};
}

/* The steps that there are become a branch, too: before its own loops, which lie within. */
static bool wrap(ir_plan *p, ir_expr trips) {
  const plan_loop all = {expr_var_add(p->pool, "many", 0, 1, 1), trips, 0, p->steps.count, 0, 0};
  p->pool->vars.at[p->pool->nodes.at[IR_EXPR_NODE(all.variable)].value].plan = true;
  if (!IR_PUSH(p->arena, &p->loops, all)) return false;
  memmove(p->loops.at + 1, p->loops.at, (p->loops.count - 1) * sizeof all);
  p->loops.at[0] = all;
  return true;
}

static snt_result add(branch *b, ir_expr many) {
  fusion_context *c = b->c;
  expr_pool *x = c->graph->pool;
  ir_graph *fixed = IR_NEW(c->arena, ir_graph);
  ir_plan *plan = IR_NEW(c->arena, ir_plan);
  plan_link l = {.c = c, .inner = IR_NEW(c->arena, fusion_context)};
  if (!fixed || !plan || !l.inner) return SNT_E_HOST_MEM;
  SNT_TRY(write_in(b, fixed));
  plan_init(plan, c->plan->arena, x);
  SNT_TRY(fusion_compile_branch(l.inner, c, fixed, plan));
  SNT_TRY(fusion_link_begin(&l, 0));
  place_ports(&l);
  SNT_TRY(fusion_link_rest(&l));
  if (!wrap(c->plan, many)) return SNT_E_HOST_MEM;
  const uint32_t first = c->plan->steps.count;
  const plan_loop own = {expr_var_add(x, "one", 0, 1, 1), expr_sub(x, 1, many), first, first + plan->steps.count, l.number, 0};
  x->vars.at[x->nodes.at[IR_EXPR_NODE(own.variable)].value].plan = true;
  return fusion_link_steps(&l, &own);
}

/* A loop that ends by its data reads its flag where it is outermost. */
static bool ends_by_data(const ir_plan *p) {
  for (uint32_t i = 0; i < p->loops.count; i++)
    if (p->loops.at[i].flag) return true;
  return false;
}

snt_result fusion_branch(fusion_context *c, bool *changed) {
  expr_pool *x = c->graph->pool;
  *changed = false;
  if (c->is_body || c->is_branch || fusion_keeps_order(c->options) || !c->plan->steps.count || ends_by_data(c->plan)) return SNT_OK;
  branch b = {.c = c,
              .product = 1,
              .weights = IR_NEW_ARRAY(c->arena, uint8_t, c->graph->nodes.count),
              .values = IR_NEW_ARRAY(c->arena, int64_t, x->symbols.count + 1)};
  snt_result r = b.weights && b.values ? SNT_OK : SNT_E_HOST_MEM;
  if (r == SNT_OK) find_weights(&b);
  if (r != SNT_OK || !is_worth_it(&b)) return r == SNT_OK ? r : ir_fail(c->diag, r, "branch", 0, "out of host memory");
  const ir_expr less = expr_sub(x, 1, b.product), more = expr_sub(x, b.product, 1); /* none is many, too */
  r = add(&b, expr_min(x, expr_max(x, more, less), 1));
  return r == SNT_E_HOST_MEM ? ir_fail(c->diag, r, "branch", 0, "out of host memory") : r;
}
