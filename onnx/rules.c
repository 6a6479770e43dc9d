/* What operators demand of extents that the file leaves open, and nothing in it says: two names are one symbol, a name is a number (also as a factor: n * 12 = 12),
   its greatest value is that of a table it indexes, or it is a multiple of a number. Rules hold from the start, so the import begins again when one is found. */
#include "onnx/import_private.h"

static const char *name_of(const expr_pool *pool, ir_expr e) {
  if (e >= 0 || pool->nodes.at[IR_EXPR_NODE(e)].kind != EXPR_SYMBOL) return NULL;
  return pool->symbols.at[pool->nodes.at[IR_EXPR_NODE(e)].value].name;
}

/* e is min(symbol, number). */
static bool is_least_of(const expr_pool *pool, ir_expr e, ir_expr symbol, int64_t *number) {
  const expr_node *node = e < 0 ? &pool->nodes.at[IR_EXPR_NODE(e)] : NULL;
  if (!node || node->kind != EXPR_MIN || node->count != 2) return false;
  const ir_expr *terms = &pool->terms.at[node->first];
  const ir_expr other = terms[0] == symbol ? terms[1] : terms[0];
  return (terms[0] == symbol || terms[1] == symbol) && expr_is_const(pool, other, number);
}

/* ---- multiples: extents of a model that halves and doubles differ by what rounding up adds, unless they divide ---- */
enum { MOST_MULTIPLE = 64, SAMPLES = 2 * MOST_MULTIPLE }; /* neighbouring multiples: every remainder of such a divisor is among them */
typedef struct sampling {
  expr_values values; /* first: what the callback is given */
  int64_t multiple, number;
  uint64_t used; /* symbols by number */
} sampling;

static bool sample(const expr_values *v, const expr_pool *pool, const expr_node *node, int64_t *out) {
  sampling *s = (sampling *)(uintptr_t)v;
  if (node->kind != EXPR_SYMBOL || node->value >= 64) return false;
  const expr_symbol *symbol = &pool->symbols.at[node->value];
  const int64_t first = (symbol->min + s->multiple - 1) / s->multiple, ahead = s->number * (2 * node->value + 1);
  s->used |= UINT64_C(1) << node->value;
  *out = (first + ahead) * s->multiple;
  return *out <= symbol->max && *out % symbol->multiple_of == 0;
}

static bool agree(const expr_pool *pool, ir_expr a, ir_expr b, sampling *s) {
  for (s->number = 0; s->number < SAMPLES; s->number++) {
    int64_t left, right;
    if (!expr_eval(pool, a, &s->values, &left) || !expr_eval(pool, b, &s->values, &right) || left != right) return false;
  }
  return true;
}

static bool add_rule(onnx_import *im, onnx_rule rule) {
  rule.symbol = ir_arena_text(im->temp, rule.symbol, strlen(rule.symbol));
  if (rule.same_as) rule.same_as = ir_arena_text(im->temp, rule.same_as, strlen(rule.same_as));
  if (!rule.symbol || !IR_PUSH(im->temp, &im->rules, rule)) return onnx_fail(im, SNT_E_HOST_MEM, "out of memory");
  return im->again = true;
}

/* False also where the symbols are such multiples already, and the two cannot be shown to be equal all the same. */
static bool demand_multiples(onnx_import *im, ir_expr a, ir_expr b) {
  const expr_pool *pool = im->g->pool;
  sampling s = {.values = {.other = sample}};
  for (s.multiple = 2; s.multiple <= MOST_MULTIPLE && !agree(pool, a, b, &s); s.multiple++) s.used = 0;
  if (s.multiple > MOST_MULTIPLE) return false;
  for (uint32_t i = 0; i < 64 && i < pool->symbols.count; i++) {
    const expr_symbol *symbol = &pool->symbols.at[i];
    if (s.used >> i & 1 && symbol->multiple_of % s.multiple) add_rule(im, (onnx_rule){.symbol = symbol->name, .multiple = s.multiple});
  }
  return im->again;
}

/* One product has a factor that is a symbol, the other a number in its place. */
static bool demand_factor(onnx_import *im, ir_expr a, ir_expr b) {
  expr_pool *pool = im->g->pool;
  const uint32_t count = pool->nodes.count;
  for (uint32_t n = 0; n < count; n++) {
    const ir_expr symbol = -(ir_expr)n - 1;
    const char *name = name_of(pool, symbol);
    int64_t low, high, number;
    if (!name || pool->symbols.at[pool->nodes.at[n].value].min < 1) continue;
    const ir_expr rest = expr_div(pool, a, symbol);
    expr_bounds(pool, rest, &low, &high);
    if (low < 1 || expr_mul(pool, rest, symbol) != a || !expr_is_const(pool, expr_div(pool, b, rest), &number)) continue;
    if (number >= 1 && expr_mul(pool, rest, expr_int(pool, number)) == b)
      return add_rule(im, (onnx_rule){.symbol = name, .max = number, .fixed = true});
  }
  return false;
}

bool onnx_demand_equal(onnx_import *im, ir_expr a, ir_expr b) {
  const expr_pool *pool = im->g->pool;
  const char *left = name_of(pool, a), *right = name_of(pool, b);
  onnx_rule rule = {0};
  if (left && right) rule = (onnx_rule){.symbol = right, .same_as = left};
  else if (left && expr_is_const(pool, b, &rule.max)) rule = (onnx_rule){.symbol = left, .max = rule.max, .fixed = true};
  else if (right && expr_is_const(pool, a, &rule.max)) rule = (onnx_rule){.symbol = right, .max = rule.max, .fixed = true};
  else if (left && is_least_of(pool, b, a, &rule.max)) rule.symbol = left;
  else if (right && is_least_of(pool, a, b, &rule.max)) rule.symbol = right;
  else return demand_factor(im, a, b) || demand_factor(im, b, a) || demand_multiples(im, a, b);
  return add_rule(im, rule);
}

/* A table of `number` elements of which all but as many as an extent says are left out, or taken. */
bool onnx_demand_within(onnx_import *im, ir_expr rest) {
  expr_pool *pool = im->g->pool;
  const uint32_t count = pool->nodes.count;
  for (uint32_t n = 0; n < count; n++) {
    const ir_expr symbol = -(ir_expr)n - 1;
    const char *name = name_of(pool, symbol);
    int64_t number;
    if (!name || !expr_is_const(pool, expr_add(pool, rest, symbol), &number)) continue;
    const expr_symbol *s = &pool->symbols.at[pool->nodes.at[n].value];
    return number >= s->min && number < s->max && add_rule(im, (onnx_rule){.symbol = name, .max = number});
  }
  return false;
}
