/* Symbols for the extents that a model leaves open. In: names from the file, bounds from the caller. Out: symbols of the graph. Where an
   operator needs two extents to be equal and the file does not say so, a rule does: two names are one symbol, a name is a number, or its
   greatest value is that of a table it indexes. Rules hold from the start, so the import begins again when one is found. */
#include "onnx/import_private.h"

static const char *symbol_name(onnx_import *im, const char *text) {
  const size_t length = strlen(text);
  char *name = ir_arena_take(im->temp, length + 2, 1);
  uint32_t at = 0;
  if (!name) return "d";
  if (!length || (text[0] >= '0' && text[0] <= '9')) name[at++] = 'd';
  for (size_t i = 0; i < length; i++) {
    const char c = text[i];
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    name[at++] = word ? c : '_';
  }
  return name;
}

static const snt_symbol *given_bounds(const onnx_import *im, const char *name, const char *param) {
  const snt_onnx_info *info = im->info;
  for (uint32_t i = 0; info && i < info->dim_count; i++)
    if (info->dims[i].name && (!strcmp(info->dims[i].name, name) || !strcmp(info->dims[i].name, param))) return &info->dims[i];
  return NULL;
}

static const onnx_rule *find_rule(const onnx_import *im, const char *name, bool same) {
  for (uint32_t i = 0; i < im->rules.count; i++)
    if ((im->rules.at[i].same_as != NULL) == same && !strcmp(im->rules.at[i].symbol, name)) return &im->rules.at[i];
  return NULL;
}

static bool find_symbol(const expr_pool *pool, const char *name, ir_expr *out) {
  for (uint32_t n = 0; n < pool->nodes.count; n++) {
    const expr_node *node = &pool->nodes.at[n];
    if (node->kind != EXPR_SYMBOL || strcmp(pool->symbols.at[node->value].name, name) != 0) continue;
    *out = -(ir_expr)n - 1;
    return true;
  }
  return false;
}

static bool settle_bounds(onnx_import *im, const char *name, const char *param, int64_t hint, expr_symbol *s) {
  const snt_symbol *given = given_bounds(im, name, param);
  *s = (expr_symbol){.min = 1, .max = INT32_MAX, .multiple_of = 1, .hint = hint};
  if (given) *s = (expr_symbol){NULL, given->min, given->max, given->multiple_of > 0 ? given->multiple_of : 1, given->hint};
  if (s->min < 0 || s->max < s->min) return onnx_fail(im, SNT_E_ARG, "bounds of %.80s: 0 <= min <= max", name);
  for (uint32_t i = 0; i < im->rules.count; i++) {
    const onnx_rule *r = &im->rules.at[i];
    if (r->same_as || strcmp(r->symbol, name) != 0) continue;
    if (r->max < s->min || (r->fixed && r->max > s->max))
      return onnx_fail(im, SNT_E_SHAPE, "extent %.80s must be %s%lld", name, r->fixed ? "" : "at most ", (long long)r->max);
    if (r->max < s->max) s->max = r->max;
    if (r->fixed) s->min = r->max;
  }
  if (s->hint > s->max) s->hint = s->max;
  if (s->hint < s->min) s->hint = s->min;
  return true;
}

bool onnx_symbol(onnx_import *im, const char *param, int64_t hint, ir_expr *out) {
  const char *name = symbol_name(im, param);
  expr_symbol s;
  for (const onnx_rule *r = find_rule(im, name, true); r; r = find_rule(im, name, true)) name = r->same_as;
  if (find_symbol(im->g->pool, name, out)) return true;
  if (!settle_bounds(im, name, param, hint, &s)) return false;
  if (s.min == s.max) {
    *out = expr_int(im->g->pool, s.min);
    return true;
  }
  s.name = ir_arena_text(im->g->arena, name, strlen(name));
  if (!s.name) return onnx_fail(im, SNT_E_HOST_MEM, "out of memory");
  *out = expr_symbol_add(im->g->pool, &s);
  return true;
}

/* ---- rules ---- */
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

bool onnx_demand_equal(onnx_import *im, ir_expr a, ir_expr b) {
  const expr_pool *pool = im->g->pool;
  const char *left = name_of(pool, a), *right = name_of(pool, b);
  onnx_rule rule = {0};
  if (left && right) rule = (onnx_rule){.symbol = right, .same_as = left};
  else if (left && expr_is_const(pool, b, &rule.max)) rule = (onnx_rule){.symbol = left, .max = rule.max, .fixed = true};
  else if (right && expr_is_const(pool, a, &rule.max)) rule = (onnx_rule){.symbol = right, .max = rule.max, .fixed = true};
  else if (left && is_least_of(pool, b, a, &rule.max)) rule.symbol = left;
  else if (right && is_least_of(pool, a, b, &rule.max)) rule.symbol = right;
  else return false;
  rule.symbol = ir_arena_text(im->temp, rule.symbol, strlen(rule.symbol));
  if (rule.same_as) rule.same_as = ir_arena_text(im->temp, rule.same_as, strlen(rule.same_as));
  if (!rule.symbol || !IR_PUSH(im->temp, &im->rules, rule)) return onnx_fail(im, SNT_E_HOST_MEM, "out of memory");
  im->again = true;
  return true;
}
