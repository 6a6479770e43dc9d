/* What the files of the expression pool share: interning, sums under construction, products of terms.
   A "term" is a handle that is neither a literal nor a SUM; the literal 1 stands for the empty product. */
#ifndef IR_EXPR_PRIVATE_H
#define IR_EXPR_PRIVATE_H
#include "ir/expr.h"

/* Limits on what one expression may grow to; beyond them the pool fails. No real shape comes near. */
enum { EXPR_MAX_FACTORS = 48, EXPR_MAX_TERMS = 16384, EXPR_MAX_DEPTH = 100 };

ir_expr expr_intern(expr_pool *, expr_kind, int64_t value, uint32_t count, const ir_expr *terms, const int64_t *coefs);
ir_expr expr_fail(expr_pool *);                          /* marks the pool, returns 0 */
int expr_order(const expr_pool *, ir_expr a, ir_expr b); /* structural: independent of the order in which nodes were made */
int64_t expr_floor_div(int64_t, int64_t);                /* divisor > 0 */

static inline bool expr_literal(const expr_pool *pool, ir_expr e, int64_t *value) {
  if (e >= 0) return *value = e, true;
  const expr_node *node = &pool->nodes.at[IR_EXPR_NODE(e)];
  if (node->kind != EXPR_CONST) return false;
  return *value = node->value, true;
}
static inline expr_kind expr_kind_of(const expr_pool *pool, ir_expr e) {
  return e >= 0 ? EXPR_CONST : (expr_kind)pool->nodes.at[IR_EXPR_NODE(e)].kind;
}
static inline ir_expr expr_child(const expr_pool *pool, ir_expr e, uint32_t i) {
  return pool->terms.at[pool->nodes.at[IR_EXPR_NODE(e)].first + i];
}

/* Any handle read as constant + sum of coef * term. */
uint32_t expr_term_count(const expr_pool *, ir_expr);
int64_t expr_constant(const expr_pool *, ir_expr);
ir_expr expr_term(const expr_pool *, ir_expr, uint32_t i, int64_t *coef);
/* e = coef * term (term 1 for a literal); false for a sum of several parts. */
bool expr_monomial(const expr_pool *, ir_expr, int64_t *coef, ir_expr *term);

/* A term read as its factors. */
uint32_t expr_factor_count(const expr_pool *, ir_expr term);
ir_expr expr_factor(const expr_pool *, ir_expr term, uint32_t i);
ir_expr expr_multiply_terms(expr_pool *, ir_expr a, ir_expr b);
bool expr_divide_term(expr_pool *, ir_expr term, ir_expr by, ir_expr *out); /* exact, by removing factors */
ir_expr expr_common_factors(expr_pool *, ir_expr a, ir_expr b);

/* A sum under construction: items on top of pool->work. Begin, add, end nest like calls. */
typedef struct expr_acc {
  uint32_t base;
  int64_t value;
} expr_acc;
void expr_acc_begin(expr_pool *, expr_acc *);
void expr_acc_add(expr_pool *, expr_acc *, ir_expr, int64_t coef);
void expr_acc_sort(expr_pool *, expr_acc *); /* merges equal terms, drops zeros */
ir_expr expr_acc_end(expr_pool *, expr_acc *);
bool expr_recombine(expr_pool *, expr_acc *); /* one rewriting step of div and mod terms that belong together; ir/expr/recombine.c */
bool expr_split_low(expr_pool *, ir_expr r, ir_expr b, ir_expr *high,
                    ir_expr *low); /* not where plans are only loaded (EXPR_KNOWN): r / b = *high / b, and r % b = *high % b + *low */

bool expr_proves_nonneg(expr_pool *, ir_expr);
bool expr_is_negative_somewhere(const expr_pool *, ir_expr); /* in a corner of the ranges: then no proof of the contrary is to be found */

/* What was asked before. An answer depends on the operands and on how deep in proofs we are, so it can be kept. */
typedef enum {
  EXPR_ASK_FREE,
  EXPR_ASK_DIV,
  EXPR_ASK_MOD,
  EXPR_ASK_ADD,
  EXPR_ASK_SUB,
  EXPR_ASK_MUL,
  EXPR_ASK_MIN,
  EXPR_ASK_MAX,
  EXPR_ASK_NONNEG
} expr_question;
typedef struct expr_ask {
  expr_memo *memo; /* null: out of memory */
  expr_memo now;   /* the question */
  bool known;
} expr_ask;
expr_ask expr_remember(expr_pool *, expr_question, ir_expr a, ir_expr b);
ir_expr expr_learn(const expr_pool *, const expr_ask *, ir_expr result); /* gives the result; nothing is kept of a pool that failed */
#endif
