/* Integer expressions over symbols and loop variables: dimensions, index maps and the arithmetic of a plan are all written in them.
   Hash-consed and canonical on construction, so equal handles mean equal expressions and composing maps is substitution.
   In: handles of one pool. Out: handles of the same pool. Arithmetic is exact int64; overflow makes the pool fail (sticky). */
#ifndef IR_EXPR_H
#define IR_EXPR_H
#include "ir/base.h"

/* >= 0: that literal. < 0: node -e-1 of the pool (negative literals are EXPR_CONST nodes). */
typedef int64_t ir_expr;
#define IR_EXPR_NODE(e) ((uint32_t)(-(e)-1))

typedef enum {
  EXPR_CONST,   /* value */
  EXPR_SYMBOL,  /* index into pool->symbols */
  EXPR_VAR,     /* index into pool->vars */
  EXPR_SUM,     /* value + sum of coef[i] * term[i]; terms in structural order (the same in every pool), none is CONST or SUM */
  EXPR_PRODUCT, /* product of >= 2 terms, sorted; none is CONST or SUM or PRODUCT */
  EXPR_DIV,     /* floor(term[0] / term[1]), term[1] > 0 */
  EXPR_MOD,     /* term[0] - term[1] * floor(term[0] / term[1]) */
  EXPR_MIN,
  EXPR_MAX
} expr_kind;

typedef struct expr_symbol {
  const char *name;
  int64_t min, max, multiple_of, hint;
} expr_symbol;
/* A loop variable: lo <= v < hi (either may be symbolic or use outer variables), v - lo a multiple of `step`. */
typedef struct expr_var {
  const char *name;
  ir_expr lo, hi;
  int64_t step;
  uint32_t user; /* free for the owner: a kernel value, a lane width */
  bool plan;     /* the number of a trip of a plan's loop: known when a step is launched, like a symbol */
} expr_var;
typedef struct expr_node {
  uint8_t kind, depth; /* of the tree; limited, since walks recurse */
  uint32_t count;
  int64_t value;
  uint32_t first;  /* into pool->terms/coefs */
  int64_t lo, hi;  /* proven inclusive bounds, saturating */
  int64_t divisor; /* largest proven divisor, >= 1; 0 for 0 */
  uint64_t vars;   /* bit v mod 64 set: may use variable v */
} expr_node;
typedef struct expr_item {
  ir_expr term;
  int64_t coef;
} expr_item;
typedef struct expr_slot {
  uint32_t hash, node;
} expr_slot; /* node + 1; 0: free */
typedef struct expr_memo {
  ir_expr a, b, result;
  uint32_t key;
} expr_memo; /* key: operator and proof depth, 0: free */

/* What a word stands for while the definition of an operator is written out: an extent of an operand. */
typedef struct expr_alias {
  const char *at;
  uint32_t length;
  ir_expr value;
} expr_alias;

typedef struct expr_pool {
  ir_arena *arena;
  IR_VEC(expr_symbol) symbols;
  IR_VEC(expr_var) vars;
  IR_VEC(expr_node) nodes;
  IR_VEC(ir_expr) terms;
  IR_VEC(int64_t) coefs; /* parallel to terms; used by SUM */
  expr_slot *table;      /* open hash of nodes */
  uint32_t table_size;
  bool failed;               /* overflow or out of memory */
  IR_VEC(expr_item) work;    /* stack of sums under construction */
  expr_memo *memo;           /* recent answers: a nest of quotients, the loops of a kernel ask for the same ones again and again */
  uint32_t depth;            /* of proofs inside proofs: the inner ones use ranges only */
  const expr_alias *aliases; /* asked by the parser before symbols and variables; the owner is who set them */
  uint32_t alias_count;
} expr_pool;

void expr_pool_init(expr_pool *, ir_arena *);
bool expr_pool_copy(expr_pool *to, ir_arena *, const expr_pool *from); /* handles of `from` mean the same in `to`; false: out of memory */
ir_expr expr_int(expr_pool *, int64_t);
ir_expr expr_symbol_add(expr_pool *, const expr_symbol *);                                 /* a new symbol */
ir_expr expr_var_add(expr_pool *, const char *name, ir_expr lo, ir_expr hi, int64_t step); /* a new variable */
ir_expr expr_add(expr_pool *, ir_expr, ir_expr);
ir_expr expr_sub(expr_pool *, ir_expr, ir_expr);
ir_expr expr_mul(expr_pool *, ir_expr, ir_expr);
ir_expr expr_div(expr_pool *, ir_expr, ir_expr); /* floor; uses ranges: (i*c + j) / c = i when 0 <= j < c, c literal or symbolic */
ir_expr expr_mod(expr_pool *, ir_expr, ir_expr);
ir_expr expr_ceil_div(expr_pool *, ir_expr, ir_expr);
ir_expr expr_min(expr_pool *, ir_expr, ir_expr);
ir_expr expr_max(expr_pool *, ir_expr, ir_expr);

bool expr_is_const(const expr_pool *, ir_expr, int64_t *out);
/* Proven bounds (inclusive) from symbol and variable ranges, saturating at INT64_MIN / INT64_MAX when unknown. */
void expr_bounds(const expr_pool *, ir_expr, int64_t *lo, int64_t *hi);
bool expr_proves_lt(expr_pool *, ir_expr a, ir_expr b); /* a < b for every value; symbolic extents are compared symbolically */
bool expr_proves_le(expr_pool *, ir_expr a, ir_expr b);
int64_t expr_gcd(int64_t, int64_t);
int64_t expr_multiple_of(const expr_pool *, ir_expr); /* largest proven divisor; 0 for the literal 0 */
/* Splits e = coef * var + rest with rest free of `var`; false if var occurs under div, mod, min, max or a product. */
bool expr_split_affine(expr_pool *, ir_expr e, uint32_t var, int64_t *coef, ir_expr *rest);
bool expr_uses_var(const expr_pool *, ir_expr, uint32_t var);
uint32_t expr_cost(const expr_pool *, ir_expr); /* integer operations to evaluate; div/mod weigh 4 */
/* e with variable from[i] replaced by to[i]; re-canonicalised (ranges of the replacement are used). */
ir_expr expr_substitute(expr_pool *, ir_expr e, uint32_t count, const uint32_t *from, const ir_expr *to);
/* e with each symbol of a value other than 0 replaced by it; values: by number of the symbol. */
ir_expr expr_fix(expr_pool *, ir_expr e, const int64_t *values);
/* e with 1 in place of what it is divided by, and parts of it are, where that is less: for whom an empty extent leaves nothing to compute. */
ir_expr expr_never_by_0(expr_pool *, ir_expr e);
/* What is known of expressions over symbols alone, while these stay as they are: room for some, a power of two, each in the place of
   its number. libsinter-runtime, whose plans are small, is built without (cmake/SinterRuntime.cmake). */
#ifndef EXPR_KNOWN
#define EXPR_KNOWN 4096
#endif
typedef struct expr_known {
  uint32_t node, turn; /* a value is of the turn in which it was found */
  int64_t value;
} expr_known;
/* What symbols and variables stand for, by number; null: none is used. `other` is asked instead of both, where there is one; false: no value. */
typedef struct expr_values {
  const int64_t *symbols, *vars;
  bool (*other)(const struct expr_values *, const expr_pool *, const expr_node *symbol_or_var, int64_t *out);
  expr_known *known; /* EXPR_KNOWN of them, or null */
  uint32_t turn;     /* other symbols have another one, not 0 */
} expr_values;
bool expr_eval(const expr_pool *, ir_expr, const expr_values *, int64_t *out); /* false on overflow, division by <= 0 or a missing value */
void expr_print(const expr_pool *, ir_expr,
                ir_text *); /* n*64 + 3, min(n,4), (h-1)/2 , h%2: parsed back by expr_parse to the same handle */
/* Parses at *text up to end; symbols (and variables) by name. Advances *text. False on a syntax error or unknown name. */
bool expr_parse(expr_pool *, const char **text, const char *end, ir_expr *out);
#endif
