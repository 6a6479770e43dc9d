/* The text of an expression and its parser. "n*64 + 3" at the top, "(h-1)/2" without spaces inside; / is floor division and % its remainder,
   both as strong as *, from left to right. A sum is parsed whole before it is simplified, so that printing and parsing give the same handle. */
#include "ir/expr_private.h"
#include <inttypes.h>

/* ---- printing ---- */
static void print_sum(const expr_pool *pool, ir_expr e, ir_text *out, bool compact);

/* Something that a following * / % reads as one operand. */
static void print_atom(const expr_pool *pool, ir_expr e, ir_text *out) {
  expr_kind kind = expr_kind_of(pool, e);
  int64_t value;
  if (expr_literal(pool, e, &value) && value >= 0) {
    ir_text_format(out, "%" PRId64, value);
  } else if (kind == EXPR_SYMBOL) {
    ir_text_add(out, pool->symbols.at[pool->nodes.at[IR_EXPR_NODE(e)].value].name);
  } else if (kind == EXPR_VAR) {
    ir_text_add(out, pool->vars.at[pool->nodes.at[IR_EXPR_NODE(e)].value].name);
  } else if (kind == EXPR_MIN || kind == EXPR_MAX) {
    ir_text_add(out, kind == EXPR_MIN ? "min(" : "max(");
    print_sum(pool, expr_child(pool, e, 0), out, true);
    ir_text_add(out, ",");
    print_sum(pool, expr_child(pool, e, 1), out, true);
    ir_text_add(out, ")");
  } else {
    ir_text_add(out, "(");
    print_sum(pool, e, out, true);
    ir_text_add(out, ")");
  }
}

static void print_term(const expr_pool *pool, ir_expr term, ir_text *out) {
  expr_kind kind = expr_kind_of(pool, term);
  if (kind == EXPR_PRODUCT) {
    for (uint32_t i = 0; i < expr_factor_count(pool, term); i++) {
      if (i) ir_text_add(out, "*");
      print_atom(pool, expr_factor(pool, term, i), out);
    }
  } else if (kind == EXPR_DIV || kind == EXPR_MOD) {
    ir_expr top = expr_child(pool, term, 0);
    if (expr_kind_of(pool, top) == EXPR_PRODUCT) print_term(pool, top, out);
    else print_atom(pool, top, out);
    ir_text_add(out, kind == EXPR_DIV ? "/" : "%");
    print_atom(pool, expr_child(pool, term, 1), out);
  } else {
    print_atom(pool, term, out);
  }
}

static void print_sign(ir_text *out, bool negative, bool first, bool compact) {
  if (first) ir_text_add(out, negative ? "-" : "");
  else ir_text_add(out, compact ? (negative ? "-" : "+") : (negative ? " - " : " + "));
}

static uint64_t magnitude(int64_t value) { return value < 0 ? 0 - (uint64_t)value : (uint64_t)value; }

static void print_sum(const expr_pool *pool, ir_expr e, ir_text *out, bool compact) {
  uint32_t count = expr_term_count(pool, e);
  int64_t constant = expr_constant(pool, e);
  for (uint32_t i = 0; i < count; i++) {
    int64_t coef;
    ir_expr term = expr_term(pool, e, i, &coef);
    print_sign(out, coef < 0, i == 0, compact);
    bool divided = magnitude(coef) != 1 && (expr_kind_of(pool, term) == EXPR_DIV || expr_kind_of(pool, term) == EXPR_MOD);
    if (divided) print_atom(pool, term, out);
    else print_term(pool, term, out);
    if (magnitude(coef) != 1) ir_text_format(out, "*%" PRIu64, magnitude(coef));
  }
  if (count && constant == 0) return;
  print_sign(out, constant < 0, count == 0, compact);
  ir_text_format(out, "%" PRIu64, magnitude(constant));
}

void expr_print(const expr_pool *pool, ir_expr e, ir_text *out) { print_sum(pool, e, out, false); }

/* ---- parsing ---- */
enum { MAX_NESTING = 100 };
typedef struct reader {
  expr_pool *pool;
  const char *at, *end;
  int nesting;
  bool failed;
} reader;

static ir_expr parse_sum(reader *r);

static ir_expr give_up(reader *r) {
  r->failed = true;
  return 0;
}

static void skip_space(reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t')) r->at++;
}

static bool take(reader *r, char c) {
  skip_space(r);
  if (r->at == r->end || *r->at != c) return false;
  r->at++;
  return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static ir_expr parse_number(reader *r, bool negative) {
  int64_t value = 0;
  for (; r->at < r->end && is_digit(*r->at); r->at++) {
    int digit = *r->at - '0';
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, negative ? -digit : digit, &value)) return give_up(r);
  }
  return expr_int(r->pool, value);
}

static bool named(const char *name, const char *text, size_t length) { return strlen(name) == length && memcmp(name, text, length) == 0; }

static ir_expr find_name(reader *r, const char *text, size_t length) {
  expr_pool *pool = r->pool;
  for (uint32_t i = 0; i < pool->alias_count; i++)
    if (pool->aliases[i].length == length && !memcmp(pool->aliases[i].at, text, length)) return pool->aliases[i].value;
  for (uint32_t i = 0; i < pool->symbols.count; i++)
    if (named(pool->symbols.at[i].name, text, length)) return expr_intern(pool, EXPR_SYMBOL, i, 0, NULL, NULL);
  for (uint32_t i = pool->vars.count; i-- > 0;)
    if (named(pool->vars.at[i].name, text, length)) return expr_intern(pool, EXPR_VAR, i, 0, NULL, NULL);
  return give_up(r);
}

static ir_expr parse_choice(reader *r, bool min) {
  ir_expr result = parse_sum(r);
  while (!r->failed && take(r, ',')) {
    ir_expr next = parse_sum(r);
    if (!r->failed) result = min ? expr_min(r->pool, result, next) : expr_max(r->pool, result, next);
  }
  return take(r, ')') ? result : give_up(r);
}

static ir_expr parse_name(reader *r) {
  const char *start = r->at;
  while (r->at < r->end && (is_name(*r->at) || is_digit(*r->at) || *r->at == '.')) r->at++;
  size_t length = (size_t)(r->at - start);
  bool min = named("min", start, length), max = named("max", start, length);
  if ((min || max) && r->at < r->end && *r->at == '(') {
    r->at++;
    return parse_choice(r, min);
  }
  return find_name(r, start, length);
}

static ir_expr parse_atom(reader *r) {
  skip_space(r);
  if (r->at == r->end || r->nesting >= MAX_NESTING) return give_up(r);
  r->nesting++;
  ir_expr result = 0;
  if (is_digit(*r->at)) {
    result = parse_number(r, false);
  } else if (is_name(*r->at)) {
    result = parse_name(r);
  } else if (*r->at == '(') {
    r->at++;
    result = parse_sum(r);
    if (!take(r, ')')) result = give_up(r);
  } else if (*r->at == '-') {
    r->at++;
    result = expr_sub(r->pool, 0, parse_atom(r));
  } else {
    result = give_up(r);
  }
  r->nesting--;
  return result;
}

static ir_expr parse_divisor(reader *r) {
  int64_t value;
  ir_expr by = parse_atom(r);
  return expr_literal(r->pool, by, &value) && value <= 0 ? give_up(r) : by;
}

static ir_expr parse_product(reader *r) {
  ir_expr result = parse_atom(r);
  while (!r->failed) {
    if (take(r, '*')) {
      ir_expr next = parse_atom(r);
      if (!r->failed) result = expr_mul(r->pool, result, next);
    } else if (take(r, '/')) {
      ir_expr by = parse_divisor(r);
      if (!r->failed) result = expr_div(r->pool, result, by);
    } else if (take(r, '%')) {
      ir_expr by = parse_divisor(r);
      if (!r->failed) result = expr_mod(r->pool, result, by);
    } else {
      break;
    }
  }
  return result;
}

static bool at_literal(const reader *r) { return r->at < r->end && is_digit(*r->at); }

/* A negative literal is read with its sign: the least int64 has no positive counterpart. */
static ir_expr parse_signed(reader *r, bool negative, int64_t *sign) {
  skip_space(r);
  *sign = negative ? -1 : 1;
  if (!negative || !at_literal(r)) return parse_product(r);
  const char *start = r->at;
  ir_expr value = parse_number(r, true);
  skip_space(r);
  bool alone = r->at == r->end || (*r->at != '*' && *r->at != '/' && *r->at != '%');
  if (alone) return *sign = 1, value;
  r->at = start;
  return parse_product(r);
}

static ir_expr parse_sum(reader *r) {
  expr_acc acc;
  int64_t sign;
  expr_acc_begin(r->pool, &acc);
  ir_expr term = parse_signed(r, take(r, '-'), &sign);
  while (!r->failed) {
    expr_acc_add(r->pool, &acc, term, sign);
    if (take(r, '+')) term = parse_signed(r, false, &sign);
    else if (take(r, '-')) term = parse_signed(r, true, &sign);
    else break;
  }
  ir_expr result = expr_acc_end(r->pool, &acc);
  return r->failed ? 0 : result;
}

bool expr_parse(expr_pool *pool, const char **text, const char *end, ir_expr *out) {
  reader r = {.pool = pool, .at = *text, .end = end};
  if (pool->failed) return false;
  *out = parse_sum(&r);
  /* An overflow in foreign text is the text's fault; the pool stays usable. */
  if (pool->failed && !pool->arena->failed) pool->failed = false, r.failed = true;
  if (!r.failed) *text = r.at;
  return !r.failed && !pool->failed;
}
