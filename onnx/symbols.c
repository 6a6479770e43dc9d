/* Symbols for the extents that a model leaves open. In: names from the file, bounds from the caller, rules that operators asked for (rules.c). Out:
   symbols of the graph. */
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

static bool is_named(const snt_symbol *given, const char *name, const char *param) {
  return given->name && (!strcmp(given->name, name) || !strcmp(given->name, param));
}

static const snt_symbol *given_bounds(const onnx_import *im, const char *name, const char *param) {
  for (uint32_t i = 0; i < im->given.count; i++)
    if (!strcmp(im->given.at[i].name, name)) return &im->given.at[i];
  for (uint32_t i = 0; i < im->dim_count; i++)
    if (is_named(&im->info->dims[i], name, param)) return &im->info->dims[i];
  return NULL;
}

/* Of an extent that has several names by what the model does with it, what is said of any of them. */
static const snt_symbol *given_of_any(const onnx_import *im, const char *name, const char *param) {
  const snt_symbol *given = given_bounds(im, name, param);
  for (uint32_t i = 0; !given && i < im->rules.count; i++) {
    const onnx_rule *r = &im->rules.at[i];
    if (r->same_as && !strcmp(r->same_as, name)) given = given_of_any(im, r->symbol, r->symbol);
  }
  return given;
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

static int64_t round_up(int64_t value, int64_t multiple) {
  const int64_t rest = value % multiple, left = rest ? multiple - rest : 0;
  return value > INT64_MAX - left ? INT64_MAX : value + left;
}

static bool apply_rule(onnx_import *im, const onnx_rule *r, expr_symbol *s) {
  if (r->multiple) {
    int64_t both = s->multiple_of;
    while (both % r->multiple && both <= s->max - s->multiple_of) both += s->multiple_of;
    s->multiple_of = both;
    return both % r->multiple == 0 ||
           onnx_fail(im, SNT_E_SHAPE, "extent %.80s must be a multiple of %lld", r->symbol, (long long)r->multiple);
  }
  if (r->max < s->min || (r->fixed && r->max > s->max))
    return onnx_fail(im, SNT_E_SHAPE, "extent %.80s must be %s%lld", r->symbol, r->fixed ? "" : "at most ", (long long)r->max);
  if (r->max < s->max) s->max = r->max;
  if (r->fixed) s->min = r->max;
  return true;
}

static bool settle_bounds(onnx_import *im, const char *name, const char *param, int64_t hint, expr_symbol *s) {
  const snt_symbol *given = given_of_any(im, name, param);
  *s = (expr_symbol){.min = 1, .max = INT32_MAX, .multiple_of = 1, .hint = hint};
  if (given)
    *s = (expr_symbol){NULL, given->min, given->max, given->multiple_of > 0 ? given->multiple_of : 1, given->hint > 0 ? given->hint : hint};
  if (s->min < 0 || s->max < s->min || (s->multiple_of > 1 && s->multiple_of > s->max))
    return onnx_fail(im, SNT_E_ARG, "bounds of %.80s: 0 <= min <= max, and a multiple of what is not more", name);
  for (uint32_t i = 0; i < im->rules.count; i++) {
    const onnx_rule *r = &im->rules.at[i];
    if (r->same_as || strcmp(r->symbol, name) != 0) continue;
    if (!given && r->fixed && r->max < s->min) s->min = r->max; /* nobody but the file says how many: it may be none */
    if (!apply_rule(im, r, s)) return false;
  }
  if (s->hint > s->max) s->hint = s->max;
  if (s->hint < s->min) s->hint = s->min;
  if (s->min == s->max || s->multiple_of == 1) return true;
  s->min = round_up(s->min, s->multiple_of);
  if (given && given->hint % s->multiple_of)
    return onnx_fail(im, SNT_E_SHAPE, "extent %.80s must be a multiple of %lld", name, (long long)s->multiple_of);
  s->hint = round_up(s->hint, s->multiple_of);
  return s->hint <= s->max || onnx_fail(im, SNT_E_SHAPE, "extent %.80s must be a multiple of %lld", name, (long long)s->multiple_of);
}

void onnx_note_dim(onnx_import *im, const char *param) {
  const char *name = symbol_name(im, param);
  for (uint32_t i = 0; i < im->dim_count; i++) im->dim_used[i] |= is_named(&im->info->dims[i], name, param);
}

const char *onnx_stray_dim(const onnx_import *im) {
  for (uint32_t i = 0; i < im->dim_count; i++)
    if (im->info->dims[i].name && !im->dim_used[i]) return im->info->dims[i].name;
  return NULL;
}

int64_t onnx_given_extent(onnx_import *im, const char *param) {
  const snt_symbol *given = given_bounds(im, symbol_name(im, param), param);
  return given && given->min == given->max ? given->min : -1;
}

bool onnx_give_extent(onnx_import *im, const char *param, int64_t extent) {
  const char *name = symbol_name(im, param);
  const snt_symbol *bounds = given_bounds(im, name, param);
  if (bounds && bounds->min == bounds->max) return true; /* the input itself is held against it */
  if (bounds && (extent < bounds->min || extent > bounds->max || (bounds->multiple_of > 1 && extent % bounds->multiple_of)))
    return onnx_fail(im, SNT_E_SHAPE, "extent %.80s is %lld in an input that is given, not %lld to %lld, a multiple of %lld", name,
                     (long long)extent, (long long)bounds->min, (long long)bounds->max, (long long)bounds->multiple_of);
  const snt_symbol fixed = {name, extent, extent, 1, extent};
  return IR_PUSH(im->temp, &im->given, fixed) || onnx_fail(im, SNT_E_HOST_MEM, "out of memory");
}

/* A number that the model computes has the name of its value: an extent that an axis could have as well would be meant by both. */
int64_t onnx_given_most(onnx_import *im, const char *value) {
  for (uint32_t i = 0; i < im->dim_count; i++) {
    const snt_symbol *given = &im->info->dims[i];
    if (!given->name || strcmp(given->name, value) != 0) continue;
    im->dim_used[i] = true;
    return given->max < INT32_MAX ? given->max : given->hint;
  }
  return -1;
}

/* A hint of 0 says nothing: so it is where nobody wrote one. */
static bool says_extent(const snt_symbol *given, int64_t *out) {
  *out = given->min == given->max ? given->min : given->hint;
  return given->min == given->max || (*out > 0 && *out >= given->min && *out <= given->max);
}

/* What the caller says an extent usually is holds also where the model made it a number, or another's. */
static bool is_as_given(onnx_import *im, const char *param, ir_expr extent) {
  const char *name = symbol_name(im, param);
  const expr_pool *pool = im->g->pool;
  const snt_symbol *given = given_bounds(im, name, param);
  int64_t is, said;
  if (!given || !says_extent(given, &said)) return true;
  if (!expr_is_const(pool, extent, &is)) {
    const expr_symbol *symbol = &pool->symbols.at[pool->nodes.at[-extent - 1].value];
    if (!strcmp(symbol->name, name)) return true; /* its own bounds say the rest */
    is = symbol->hint;
  }
  return is == said ||
         onnx_fail(im, SNT_E_SHAPE, "extent %.80s is %lld by what the model does with it, not %lld", name, (long long)is, (long long)said);
}

static bool make_symbol(onnx_import *im, const char *param, int64_t hint, ir_expr *out) {
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

bool onnx_symbol(onnx_import *im, const char *param, int64_t hint, ir_expr *out) {
  onnx_note_dim(im, param);
  return make_symbol(im, param, hint, out) && is_as_given(im, param, *out);
}
