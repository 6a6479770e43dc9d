/* The expression pool: interning, proven ranges and divisors of each node, symbols and variables, structural order.
   A node is immutable; its range and divisor are computed once, when it is made. */
#include "ir/expr_private.h"

int64_t expr_gcd(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
  while (y) {
    uint64_t rest = x % y;
    x = y, y = rest;
  }
  return x > INT64_MAX ? 1 : (int64_t)x;
}

int64_t expr_floor_div(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return a % b < 0 ? quotient - 1 : quotient;
}

ir_expr expr_fail(expr_pool *pool) {
  pool->failed = true;
  return 0;
}

void expr_pool_init(expr_pool *pool, ir_arena *arena) {
  memset(pool, 0, sizeof *pool);
  pool->arena = arena;
}

/* ---- ranges: INT64_MIN and INT64_MAX mean "not known" and absorb ---- */
static int64_t lower_add(int64_t a, int64_t b) {
  int64_t sum;
  if (a == INT64_MIN || b == INT64_MIN) return INT64_MIN;
  return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static int64_t upper_add(int64_t a, int64_t b) {
  int64_t sum;
  if (a == INT64_MAX || b == INT64_MAX) return INT64_MAX;
  return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static int64_t range_mul(int64_t a, int64_t b) {
  int64_t product;
  if (a == 0 || b == 0) return 0;
  bool unknown = a == INT64_MIN || a == INT64_MAX || b == INT64_MIN || b == INT64_MAX;
  if (!unknown && !__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

static int64_t range_div(int64_t a, int64_t b) {
  if (a == INT64_MIN || a == INT64_MAX) return a;
  if (b == INT64_MAX) return a < 0 ? -1 : 0;
  return expr_floor_div(a, b);
}

static void multiply_range(expr_node *node, int64_t lo, int64_t hi) {
  int64_t ends[4] = {range_mul(node->lo, lo), range_mul(node->lo, hi), range_mul(node->hi, lo), range_mul(node->hi, hi)};
  node->lo = node->hi = ends[0];
  for (int i = 1; i < 4; i++) {
    if (ends[i] < node->lo) node->lo = ends[i];
    if (ends[i] > node->hi) node->hi = ends[i];
  }
}

static void sum_facts(const expr_pool *pool, expr_node *node, const ir_expr *terms, const int64_t *coefs) {
  node->lo = node->hi = node->value;
  node->divisor = expr_gcd(node->value, 0);
  for (uint32_t i = 0; i < node->count; i++) {
    int64_t lo, hi, divisor;
    expr_bounds(pool, terms[i], &lo, &hi);
    int64_t low = range_mul(coefs[i], coefs[i] > 0 ? lo : hi), high = range_mul(coefs[i], coefs[i] > 0 ? hi : lo);
    node->lo = lower_add(node->lo, low);
    node->hi = upper_add(node->hi, high);
    if (__builtin_mul_overflow(coefs[i], expr_multiple_of(pool, terms[i]), &divisor)) divisor = coefs[i];
    node->divisor = expr_gcd(node->divisor, divisor);
  }
}

static void product_facts(const expr_pool *pool, expr_node *node, const ir_expr *terms) {
  node->lo = node->hi = node->divisor = 1;
  for (uint32_t i = 0; i < node->count; i++) {
    int64_t lo, hi, divisor;
    expr_bounds(pool, terms[i], &lo, &hi);
    multiply_range(node, lo, hi);
    if (!__builtin_mul_overflow(node->divisor, expr_multiple_of(pool, terms[i]), &divisor)) node->divisor = divisor;
  }
}

static void division_facts(const expr_pool *pool, expr_node *node, const ir_expr *terms) {
  int64_t lo, hi, by_lo, by_hi, divisor = expr_multiple_of(pool, terms[0]);
  expr_bounds(pool, terms[0], &lo, &hi);
  expr_bounds(pool, terms[1], &by_lo, &by_hi);
  if (by_lo < 1) by_lo = 1;
  if (by_hi < by_lo) by_hi = by_lo;
  if (node->kind == EXPR_DIV) {
    node->lo = range_div(lo, lo >= 0 ? by_hi : by_lo);
    node->hi = range_div(hi, hi >= 0 ? by_lo : by_hi);
    node->divisor = by_lo == by_hi && divisor % by_lo == 0 ? divisor / by_lo : 1;
  } else {
    node->lo = 0;
    node->hi = by_hi == INT64_MAX ? INT64_MAX : by_hi - 1;
    if (lo >= 0 && hi < node->hi) node->hi = hi;
    node->divisor = expr_gcd(divisor, expr_multiple_of(pool, terms[1]));
  }
}

static void choice_facts(const expr_pool *pool, expr_node *node, const ir_expr *terms) {
  int64_t lo[2], hi[2];
  for (int i = 0; i < 2; i++) expr_bounds(pool, terms[i], &lo[i], &hi[i]);
  bool max = node->kind == EXPR_MAX;
  node->lo = (lo[0] < lo[1]) != max ? lo[0] : lo[1];
  node->hi = (hi[0] < hi[1]) != max ? hi[0] : hi[1];
  node->divisor = expr_gcd(expr_multiple_of(pool, terms[0]), expr_multiple_of(pool, terms[1]));
}

static void variable_facts(const expr_pool *pool, expr_node *node) {
  const expr_var *var = &pool->vars.at[node->value];
  int64_t ignored;
  expr_bounds(pool, var->lo, &node->lo, &ignored);
  expr_bounds(pool, var->hi, &ignored, &node->hi);
  if (node->hi != INT64_MAX && node->hi != INT64_MIN) node->hi--;
  if (node->hi < node->lo) node->hi = node->lo; /* never runs: any range is right */
  node->divisor = expr_gcd(expr_multiple_of(pool, var->lo), var->step);
  node->vars = (uint64_t)1 << (node->value & 63);
}

static void symbol_facts(const expr_pool *pool, expr_node *node) {
  const expr_symbol *symbol = &pool->symbols.at[node->value];
  node->divisor = symbol->multiple_of;
  node->lo = symbol->min;
  node->hi = symbol->max;
  if (node->hi < INT64_MAX && node->hi > 0) node->hi -= node->hi % node->divisor;
  if (node->lo > 0 && node->lo < INT64_MAX - node->divisor) node->lo = (node->lo + node->divisor - 1) / node->divisor * node->divisor;
  if (node->hi < node->lo) node->hi = node->lo;
}

static void find_facts(const expr_pool *pool, expr_node *node, const ir_expr *terms, const int64_t *coefs) {
  for (uint32_t i = 0; i < node->count; i++) {
    const expr_node *term = terms[i] < 0 ? &pool->nodes.at[IR_EXPR_NODE(terms[i])] : NULL;
    if (!term) continue;
    node->vars |= term->vars;
    if (node->depth <= term->depth) node->depth = (uint8_t)(term->depth + 1);
  }
  switch ((expr_kind)node->kind) {
  case EXPR_CONST:
    node->lo = node->hi = node->value;
    node->divisor = expr_gcd(node->value, 0);
    break;
  case EXPR_SYMBOL: symbol_facts(pool, node); break;
  case EXPR_VAR: variable_facts(pool, node); break;
  case EXPR_SUM: sum_facts(pool, node, terms, coefs); break;
  case EXPR_PRODUCT: product_facts(pool, node, terms); break;
  case EXPR_DIV:
  case EXPR_MOD: division_facts(pool, node, terms); break;
  case EXPR_MIN:
  case EXPR_MAX: choice_facts(pool, node, terms); break;
  }
}

void expr_bounds(const expr_pool *pool, ir_expr e, int64_t *lo, int64_t *hi) {
  if (e >= 0) {
    *lo = *hi = e;
    return;
  }
  const expr_node *node = &pool->nodes.at[IR_EXPR_NODE(e)];
  *lo = node->lo;
  *hi = node->hi;
}

int64_t expr_multiple_of(const expr_pool *pool, ir_expr e) { return e >= 0 ? e : pool->nodes.at[IR_EXPR_NODE(e)].divisor; }

/* ---- interning ---- */
static uint64_t hash_node(expr_kind kind, int64_t value, uint32_t count, const ir_expr *terms, const int64_t *coefs) {
  uint64_t hash = ir_hash_word((uint64_t)kind, (uint64_t)value);
  for (uint32_t i = 0; i < count; i++) hash = ir_hash_word(hash, (uint32_t)terms[i]);
  for (uint32_t i = 0; kind == EXPR_SUM && i < count; i++) hash = ir_hash_word(hash, (uint64_t)coefs[i]);
  return hash;
}

static bool same_node(const expr_pool *pool, uint32_t n, expr_kind kind, int64_t value, uint32_t count, const ir_expr *terms,
                      const int64_t *coefs) {
  const expr_node *node = &pool->nodes.at[n];
  if (node->kind != kind || node->value != value || node->count != count) return false;
  if (count == 0) return true;
  if (memcmp(pool->terms.at + node->first, terms, count * sizeof *terms) != 0) return false;
  return kind != EXPR_SUM || memcmp(pool->coefs.at + node->first, coefs, count * sizeof *coefs) == 0;
}

static void place_in_table(expr_pool *pool, expr_slot slot) {
  uint32_t at = slot.hash & (pool->table_size - 1);
  while (pool->table[at].node) at = (at + 1) & (pool->table_size - 1);
  pool->table[at] = slot;
}

static bool grow_table(expr_pool *pool) {
  const expr_slot *old = pool->table;
  const uint32_t old_size = pool->table_size;
  expr_slot *table = IR_NEW_ARRAY(pool->arena, expr_slot, old_size ? old_size * 2 : 256);
  if (!table) return false;
  pool->table = table;
  pool->table_size = old_size ? old_size * 2 : 256;
  for (uint32_t i = 0; i < old_size; i++)
    if (old[i].node) place_in_table(pool, old[i]);
  return true;
}

ir_expr expr_intern(expr_pool *pool, expr_kind kind, int64_t value, uint32_t count, const ir_expr *terms, const int64_t *coefs) {
  if (pool->failed) return 0;
  if (pool->nodes.count * 2 >= pool->table_size && !grow_table(pool)) return expr_fail(pool);
  const uint32_t hash = (uint32_t)hash_node(kind, value, count, terms, coefs);
  for (uint32_t at = hash & (pool->table_size - 1); pool->table[at].node; at = (at + 1) & (pool->table_size - 1)) {
    const expr_slot slot = pool->table[at];
    if (slot.hash == hash && same_node(pool, slot.node - 1, kind, value, count, terms, coefs)) return -(ir_expr)slot.node;
  }
  expr_node node = {.kind = (uint8_t)kind, .count = count, .value = value, .first = pool->terms.count};
  find_facts(pool, &node, terms, coefs);
  if (node.depth > EXPR_MAX_DEPTH) return expr_fail(pool);
  for (uint32_t i = 0; i < count; i++) {
    bool stored = IR_PUSH(pool->arena, &pool->terms, terms[i]);
    if (!stored || !IR_PUSH(pool->arena, &pool->coefs, coefs ? coefs[i] : 0)) return expr_fail(pool);
  }
  if (!IR_PUSH(pool->arena, &pool->nodes, node)) return expr_fail(pool);
  place_in_table(pool, (expr_slot){hash, pool->nodes.count});
  return -(ir_expr)(pool->nodes.count - 1) - 1;
}

/* ---- what was asked before ---- */
enum { MEMO_SIZE = 2048, DEPTHS = 4 };
_Static_assert((MEMO_SIZE & (MEMO_SIZE - 1)) == 0, "a mask");

expr_ask expr_remember(expr_pool *pool, expr_question question, ir_expr a, ir_expr b) {
  expr_ask ask = {.now = {.a = a, .b = b, .key = (uint32_t)question * DEPTHS + pool->depth}};
  if (!pool->memo) pool->memo = IR_NEW_ARRAY(pool->arena, expr_memo, MEMO_SIZE);
  if (!pool->memo) return expr_fail(pool), ask;
  uint64_t hash = ((uint64_t)a * UINT64_C(0x9e3779b97f4a7c15)) ^ (((uint64_t)b + ask.now.key) * UINT64_C(0xc4ceb9fe1a85ec53));
  ask.memo = &pool->memo[(hash ^ hash >> 32) & (MEMO_SIZE - 1)];
  ask.known = ask.memo->key == ask.now.key && ask.memo->a == a && ask.memo->b == b;
  return ask;
}

ir_expr expr_learn(const expr_pool *pool, const expr_ask *ask, ir_expr result) {
  if (!ask->memo || pool->failed) return result;
  *ask->memo = ask->now;
  return ask->memo->result = result;
}

ir_expr expr_int(expr_pool *pool, int64_t value) { return value >= 0 ? value : expr_intern(pool, EXPR_CONST, value, 0, NULL, NULL); }

ir_expr expr_symbol_add(expr_pool *pool, const expr_symbol *symbol) {
  expr_symbol copy = *symbol;
  if (copy.multiple_of < 1) copy.multiple_of = 1;
  copy.name = ir_arena_text(pool->arena, symbol->name ? symbol->name : "", symbol->name ? strlen(symbol->name) : 0);
  if (!copy.name || !IR_PUSH(pool->arena, &pool->symbols, copy)) return expr_fail(pool);
  return expr_intern(pool, EXPR_SYMBOL, (int64_t)pool->symbols.count - 1, 0, NULL, NULL);
}

ir_expr expr_var_add(expr_pool *pool, const char *name, ir_expr lo, ir_expr hi, int64_t step) {
  expr_var var = {.lo = lo, .hi = hi, .step = step < 1 ? 1 : step};
  var.name = ir_arena_text(pool->arena, name ? name : "", name ? strlen(name) : 0);
  if (!var.name || !IR_PUSH(pool->arena, &pool->vars, var)) return expr_fail(pool);
  return expr_intern(pool, EXPR_VAR, (int64_t)pool->vars.count - 1, 0, NULL, NULL);
}

bool expr_is_const(const expr_pool *pool, ir_expr e, int64_t *out) {
  int64_t value;
  if (!expr_literal(pool, e, &value)) return false;
  if (out) *out = value;
  return true;
}

/* ---- structural order ---- */
static int order_int(int64_t a, int64_t b) { return (a > b) - (a < b); }

int expr_order(const expr_pool *pool, ir_expr a, ir_expr b) {
  if (a == b) return 0;
  if (a >= 0 && b >= 0) return order_int(a, b);
  expr_kind kind_a = expr_kind_of(pool, a), kind_b = expr_kind_of(pool, b);
  if (kind_a != kind_b) return order_int((int64_t)kind_a, (int64_t)kind_b);
  if (a >= 0 || b >= 0) return a >= 0 ? 1 : -1; /* a negative literal beside another */
  const expr_node *x = &pool->nodes.at[IR_EXPR_NODE(a)], *y = &pool->nodes.at[IR_EXPR_NODE(b)];
  int order = order_int((int64_t)x->count, (int64_t)y->count);
  for (uint32_t i = 0; i < x->count && order == 0; i++) {
    order = expr_order(pool, pool->terms.at[x->first + i], pool->terms.at[y->first + i]);
    if (order == 0) order = order_int(pool->coefs.at[x->first + i], pool->coefs.at[y->first + i]);
  }
  return order ? order : order_int(x->value, y->value);
}
