/* Numbers that are known only when it runs, as expressions: the number of a loop's trip, how much of a value is used, the elements of a list that the graph
   computes. Each is a variable of the pool beside its node, so that arithmetic on shapes stays arithmetic on known numbers; what they make of an extent
   is the most that it can be. No shape and no attribute of the graph may have one in it (import.c checks that). */
#include "onnx/ops.h"
#include "onnx/import_private.h"

static const onnx_late *find_late(const onnx_import *im, uint32_t variable) {
  for (uint32_t i = im->trips.count; i-- > 0;)
    if (im->trips.at[i].variable == variable) return &im->trips.at[i];
  for (uint32_t i = im->counts.count; i-- > 0;)
    if (im->counts.at[i].variable == variable) return &im->counts.at[i];
  return NULL;
}

uint32_t onnx_late_node(const onnx_import *im, uint32_t variable) {
  const onnx_late *found = find_late(im, variable);
  return found ? found->node : 0;
}

bool onnx_uses_trip(const onnx_import *im, ir_expr e) {
  bool uses = false;
  for (uint32_t i = 0; e < 0 && i < im->trips.count && !uses; i++) uses = expr_uses_var(im->g->pool, e, im->trips.at[i].variable);
  return uses;
}

bool onnx_is_late(const onnx_import *im, ir_expr e) { /* the importer has no other variables */
  return e < 0 && im->g->pool->nodes.at[IR_EXPR_NODE(e)].vars != 0;
}

ir_expr onnx_late_number(onnx_call *c, uint32_t node, ir_expr most) {
  expr_pool *x = c->g->pool;
  if (!node) return 0;
  const ir_expr number = expr_var_add(x, "count", 0, expr_add(x, most, 1), 1);
  const onnx_late late = {.variable = x->failed ? 0 : (uint32_t)x->nodes.at[IR_EXPR_NODE(number)].value, .node = node};
  return !x->failed && IR_PUSH(c->im->temp, &c->im->counts, late) ? number : 0;
}

void onnx_take_bound(onnx_call *c, onnx_value *v) {
  const bool number = v->node && !v->known && onnx_count(v) == 1 && !ir_dtypes[v->type.dtype].is_float && v->type.dtype != SNT_BOOL;
  const int64_t most = number ? onnx_given_most(c->im, v->name) : -1;
  onnx_number *known = most >= 0 ? IR_NEW_ARRAY(c->im->temp, onnx_number, 1) : NULL;
  if (!known) return;
  const uint32_t whole = onnx_2n(c, IR_OP_min, onnx_cast(c, onnx_reshape(c, v->node, 0, NULL), SNT_I64), (double)most);
  known[0] = (onnx_number){onnx_late_number(c, onnx_2n(c, IR_OP_max, whole, 0), expr_int(c->g->pool, most)), 1};
  if (known[0].num) v->known = known;
}

ir_expr onnx_late_sum(onnx_call *c, ir_expr number, uint32_t node) {
  enum { FEW_TERMS = 4 };
  const expr_pool *x = c->g->pool;
  if (!onnx_is_late(c->im, number) || x->nodes.at[IR_EXPR_NODE(number)].count <= FEW_TERMS) return number;
  for (uint32_t i = 0; i < c->im->counts.count; i++) /* values whose counts are equal still have one count */
    if (c->im->counts.at[i].sum == number) return c->im->counts.at[i].as;
  const ir_expr made = onnx_late_number(c, node, onnx_most(c, number));
  if (made) c->im->counts.at[c->im->counts.count - 1].sum = number, c->im->counts.at[c->im->counts.count - 1].as = made;
  return made;
}

/* The most, or the least, that it can be; *good false: nothing says so. */
static ir_expr extreme(const onnx_import *im, ir_expr e, bool most, bool *good) {
  expr_pool *x = im->g->pool;
  int64_t low, high;
  if (!onnx_is_late(im, e) || !*good) return e;
  const expr_node n = x->nodes.at[IR_EXPR_NODE(e)];
  ir_expr made = n.kind == EXPR_SUM ? expr_int(x, n.value) : 0;
  if (n.kind == EXPR_VAR) return most ? expr_sub(x, x->vars.at[n.value].hi, 1) : x->vars.at[n.value].lo;
  for (uint32_t i = 0; i < n.count; i++) {
    const ir_expr term = x->terms.at[n.first + i];
    const int64_t coef = n.kind == EXPR_SUM ? x->coefs.at[n.first + i] : 1;
    const bool turned = coef < 0 || (n.kind == EXPR_DIV && i == 1);
    const ir_expr end = extreme(im, term, most != turned, good);
    expr_bounds(x, term, &low, &high);
    *good &= low >= (n.kind == EXPR_DIV && i == 1) || n.kind == EXPR_SUM || n.kind == EXPR_MIN || n.kind == EXPR_MAX;
    if (n.kind == EXPR_SUM) made = expr_add(x, made, expr_mul(x, expr_int(x, coef), end));
    else if (n.kind == EXPR_MOD) made = most ? expr_sub(x, end, 1) : 0; /* of the divisor, which comes last */
    else if (i == 0) made = end;
    else if (n.kind == EXPR_PRODUCT) made = expr_mul(x, made, end);
    else if (n.kind == EXPR_DIV) made = *good ? expr_div(x, made, end) : made;
    else made = n.kind == EXPR_MIN ? expr_min(x, made, end) : expr_max(x, made, end);
  }
  return made;
}

ir_expr onnx_most(onnx_call *c, ir_expr e) {
  bool good = true;
  const ir_expr most = extreme(c->im, e, true, &good);
  int64_t low, high;
  if (good) return expr_max(c->g->pool, most, 0);
  expr_bounds(c->g->pool, e, &low, &high);
  if (high > INT32_MAX) onnx_refuse(c, "an extent depends on the data, and nothing says how much it may be");
  return expr_int(c->g->pool, high < 0 ? 0 : high);
}

ir_expr onnx_dim_in(const onnx_call *c, uint32_t i, uint32_t axis) {
  const onnx_value *v = c->in[i];
  return v->count && v->count_axis == axis ? v->count : v->type.dims[axis];
}

bool onnx_in_extents(onnx_call *c, uint32_t i, onnx_list *out, int32_t *late) {
  *late = -1;
  if (!onnx_in_list(c, i, out)) return false;
  ir_expr *at = IR_NEW_ARRAY(c->im->temp, ir_expr, out->count);
  for (uint32_t k = 0; at && k < out->count; k++) {
    if (onnx_is_late(c->im, out->at[k])) {
      if (*late >= 0) return onnx_refuse(c, "two axes whose extents depend on data");
      *late = (int32_t)k;
    }
    at[k] = onnx_is_late(c->im, out->at[k]) ? onnx_most(c, out->at[k]) : out->at[k];
  }
  out->at = at;
  return at && !c->refused;
}

ir_expr onnx_late_element(onnx_call *c, uint32_t i, int32_t late) { return onnx_known(c, i)[late].num; }
