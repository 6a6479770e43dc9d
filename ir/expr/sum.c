/* Sums and products: any expression is kept as a polynomial, constant + sum of coef * (product of factors), expanded and sorted. */
#include "ir/expr_private.h"

uint32_t expr_term_count(const expr_pool *pool, ir_expr e) {
  expr_kind kind = expr_kind_of(pool, e);
  return kind == EXPR_CONST ? 0 : kind == EXPR_SUM ? pool->nodes.at[IR_EXPR_NODE(e)].count : 1;
}

int64_t expr_constant(const expr_pool *pool, ir_expr e) {
  int64_t value;
  if (expr_literal(pool, e, &value)) return value;
  return expr_kind_of(pool, e) == EXPR_SUM ? pool->nodes.at[IR_EXPR_NODE(e)].value : 0;
}

ir_expr expr_term(const expr_pool *pool, ir_expr e, uint32_t i, int64_t *coef) {
  if (expr_kind_of(pool, e) != EXPR_SUM) return *coef = 1, e;
  const expr_node *node = &pool->nodes.at[IR_EXPR_NODE(e)];
  *coef = pool->coefs.at[node->first + i];
  return pool->terms.at[node->first + i];
}

bool expr_monomial(const expr_pool *pool, ir_expr e, int64_t *coef, ir_expr *term) {
  if (expr_literal(pool, e, coef)) return *term = 1, true;
  if (expr_term_count(pool, e) != 1 || expr_constant(pool, e) != 0) return false;
  *term = expr_term(pool, e, 0, coef);
  return true;
}

/* ---- products of terms ---- */
uint32_t expr_factor_count(const expr_pool *pool, ir_expr term) {
  if (term == 1) return 0;
  return expr_kind_of(pool, term) == EXPR_PRODUCT ? pool->nodes.at[IR_EXPR_NODE(term)].count : 1;
}

ir_expr expr_factor(const expr_pool *pool, ir_expr term, uint32_t i) {
  return expr_kind_of(pool, term) == EXPR_PRODUCT ? expr_child(pool, term, i) : term;
}

static ir_expr make_product(expr_pool *pool, uint32_t count, const ir_expr *factors) {
  if (count == 0) return 1;
  return count == 1 ? factors[0] : expr_intern(pool, EXPR_PRODUCT, 0, count, factors, NULL);
}

IR_COLD ir_expr expr_multiply_terms(expr_pool *pool, ir_expr a, ir_expr b) {
  uint32_t na = expr_factor_count(pool, a), nb = expr_factor_count(pool, b), i = 0, j = 0, count = 0;
  ir_expr factors[EXPR_MAX_FACTORS];
  if (na + nb > EXPR_MAX_FACTORS) return expr_fail(pool);
  while (i < na || j < nb) {
    bool from_a = j == nb || (i < na && expr_order(pool, expr_factor(pool, a, i), expr_factor(pool, b, j)) <= 0);
    factors[count++] = from_a ? expr_factor(pool, a, i++) : expr_factor(pool, b, j++);
  }
  return make_product(pool, count, factors);
}

bool expr_divide_term(expr_pool *pool, ir_expr term, ir_expr by, ir_expr *out) {
  uint32_t count = expr_factor_count(pool, term), remove = expr_factor_count(pool, by), next = 0, kept = 0;
  ir_expr factors[EXPR_MAX_FACTORS];
  for (uint32_t i = 0; i < count; i++) {
    ir_expr factor = expr_factor(pool, term, i);
    if (next < remove && factor == expr_factor(pool, by, next)) next++;
    else factors[kept++] = factor;
  }
  if (next < remove) return false;
  *out = make_product(pool, kept, factors);
  return true;
}

IR_COLD ir_expr expr_common_factors(expr_pool *pool, ir_expr a, ir_expr b) {
  ir_expr factors[EXPR_MAX_FACTORS];
  uint32_t count = 0, na = expr_factor_count(pool, a), nb = expr_factor_count(pool, b);
  for (uint32_t i = 0, j = 0; i < na && j < nb;) {
    int order = expr_order(pool, expr_factor(pool, a, i), expr_factor(pool, b, j));
    if (order == 0) factors[count++] = expr_factor(pool, a, i);
    i += order <= 0;
    j += order >= 0;
  }
  return make_product(pool, count, factors);
}

/* ---- sums under construction ---- */
void expr_acc_begin(expr_pool *pool, expr_acc *acc) {
  acc->base = pool->work.count;
  acc->value = 0;
}

void expr_acc_add(expr_pool *pool, expr_acc *acc, ir_expr e, int64_t coef) {
  uint32_t count = expr_term_count(pool, e);
  int64_t product;
  if (__builtin_mul_overflow(expr_constant(pool, e), coef, &product) || __builtin_add_overflow(acc->value, product, &acc->value)) {
    expr_fail(pool);
    return;
  }
  for (uint32_t i = 0; i < count && coef; i++) {
    int64_t factor;
    expr_item item = {.term = expr_term(pool, e, i, &factor)};
    if (__builtin_mul_overflow(factor, coef, &item.coef) || !IR_PUSH(pool->arena, &pool->work, item)) expr_fail(pool);
  }
}

static void insertion_sort(const expr_pool *pool, expr_item *items, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    expr_item item = items[i];
    uint32_t at = i;
    for (; at > 0 && expr_order(pool, items[at - 1].term, item.term) > 0; at--) items[at] = items[at - 1];
    items[at] = item;
  }
}

/* Merge sort; `room` holds half of the items. */
static void sort_items(const expr_pool *pool, expr_item *items, uint32_t count, expr_item *room) {
  if (count <= 16) {
    insertion_sort(pool, items, count);
    return;
  }
  uint32_t half = count / 2, i = 0, j = half, to = 0;
  sort_items(pool, items, half, room);
  sort_items(pool, items + half, count - half, room);
  memcpy(room, items, half * sizeof *room);
  while (i < half) items[to++] = j < count && expr_order(pool, room[i].term, items[j].term) > 0 ? items[j++] : room[i++];
}

void expr_acc_sort(expr_pool *pool, expr_acc *acc) {
  uint32_t count = pool->work.count - acc->base, kept = 0;
  expr_item *room = NULL;
  if (!count) return;
  if (count > 16) room = IR_NEW_ARRAY(pool->arena, expr_item, count / 2);
  if (count > EXPR_MAX_TERMS || (count > 16 && !room)) {
    expr_fail(pool);
    return;
  }
  expr_item *items = pool->work.at + acc->base;
  sort_items(pool, items, count, room);
  for (uint32_t i = 0; i < count; i++) {
    if (kept && items[kept - 1].term == items[i].term) {
      if (__builtin_add_overflow(items[kept - 1].coef, items[i].coef, &items[kept - 1].coef)) expr_fail(pool);
    } else {
      if (kept && items[kept - 1].coef == 0) kept--;
      items[kept++] = items[i];
    }
  }
  if (kept && items[kept - 1].coef == 0) kept--;
  pool->work.count = acc->base + kept;
}

static ir_expr make_sum(expr_pool *pool, int64_t value, uint32_t count, const expr_item *items) {
  ir_expr few_terms[16], *terms = few_terms;
  int64_t few_coefs[16], *coefs = few_coefs;
  if (count > 16) {
    terms = IR_NEW_ARRAY(pool->arena, ir_expr, count);
    coefs = IR_NEW_ARRAY(pool->arena, int64_t, count);
    if (!terms || !coefs) return expr_fail(pool);
  }
  for (uint32_t i = 0; i < count; i++) terms[i] = items[i].term, coefs[i] = items[i].coef;
  return expr_intern(pool, EXPR_SUM, value, count, terms, coefs);
}

ir_expr expr_acc_end(expr_pool *pool, expr_acc *acc) {
  expr_acc_sort(pool, acc);
  if (pool->failed) return pool->work.count = acc->base, 0;
  for (int step = 0; step < 64 && !pool->failed && expr_recombine(pool, acc); step++) expr_acc_sort(pool, acc);
  uint32_t count = pool->work.count - acc->base;
  const expr_item *items = pool->work.at + acc->base;
  ir_expr result;
  if (count == 0) result = expr_int(pool, acc->value);
  else if (count == 1 && acc->value == 0 && items[0].coef == 1) result = items[0].term;
  else result = make_sum(pool, acc->value, count, items);
  pool->work.count = acc->base;
  return pool->failed ? 0 : result;
}

/* ---- public arithmetic ---- */
static ir_expr combine(expr_pool *pool, ir_expr a, int64_t coef_a, ir_expr b, int64_t coef_b) {
  expr_acc acc;
  expr_acc_begin(pool, &acc);
  expr_acc_add(pool, &acc, a, coef_a);
  expr_acc_add(pool, &acc, b, coef_b);
  return expr_acc_end(pool, &acc);
}

ir_expr expr_add(expr_pool *pool, ir_expr a, ir_expr b) {
  if (a == 0) return b;
  if (b == 0) return a;
  const expr_ask ask = expr_remember(pool, EXPR_ASK_ADD, a, b);
  return ask.known ? ask.memo->result : expr_learn(pool, &ask, combine(pool, a, 1, b, 1));
}

ir_expr expr_sub(expr_pool *pool, ir_expr a, ir_expr b) {
  if (b == 0) return a;
  if (a == b) return 0;
  const expr_ask ask = expr_remember(pool, EXPR_ASK_SUB, a, b);
  return ask.known ? ask.memo->result : expr_learn(pool, &ask, combine(pool, a, 1, b, -1));
}

static ir_expr multiply(expr_pool *pool, ir_expr a, ir_expr b) {
  int64_t value;
  if (expr_literal(pool, b, &value)) return combine(pool, a, value, 0, 0);
  if (expr_literal(pool, a, &value)) return combine(pool, b, value, 0, 0);
  expr_acc acc;
  uint32_t count_a = expr_term_count(pool, a), count_b = expr_term_count(pool, b);
  if ((uint64_t)count_a * count_b > EXPR_MAX_TERMS / 2) return expr_fail(pool);
  expr_acc_begin(pool, &acc);
  expr_acc_add(pool, &acc, a, expr_constant(pool, b));
  for (uint32_t j = 0; j < count_b && !pool->failed; j++) {
    int64_t coef_a, coef_b;
    ir_expr term_b = expr_term(pool, b, j, &coef_b);
    int64_t constant;
    if (__builtin_mul_overflow(expr_constant(pool, a), coef_b, &constant)) return pool->work.count = acc.base, expr_fail(pool);
    expr_acc_add(pool, &acc, term_b, constant);
    for (uint32_t i = 0; i < count_a; i++) {
      ir_expr term_a = expr_term(pool, a, i, &coef_a);
      int64_t coef;
      if (__builtin_mul_overflow(coef_a, coef_b, &coef)) return pool->work.count = acc.base, expr_fail(pool);
      expr_acc_add(pool, &acc, expr_multiply_terms(pool, term_a, term_b), coef);
    }
  }
  return expr_acc_end(pool, &acc);
}

ir_expr expr_mul(expr_pool *pool, ir_expr a, ir_expr b) {
  if (a == 1) return b;
  if (b == 1) return a;
  const expr_ask ask = expr_remember(pool, EXPR_ASK_MUL, a, b);
  return ask.known ? ask.memo->result : expr_learn(pool, &ask, multiply(pool, a, b));
}
