/* What does not hold in some corner of the ranges is not proven: a few evaluations in place of a search for a proof that is not to be found. */
#include "ir/expr_private.h"

typedef struct corner {
  expr_values values; /* first member */
  uint32_t
      upper;   /* bit n mod 32: variable n is as large as it can be, else as small; any: symbols are at their hints, else at their least */
  int *budget; /* of variables: their ends are expressions of others */
} corner;

static bool in_corner(const expr_values *values, const expr_pool *pool, const expr_node *leaf, int64_t *out) {
  const corner *at = (const corner *)values;
  int64_t lo, hi;
  if (leaf->kind == EXPR_SYMBOL) {
    const expr_symbol *s = &pool->symbols.at[leaf->value];
    return *out = at->upper && s->hint > s->min ? s->hint : s->min, true;
  }
  const expr_var *v = &pool->vars.at[leaf->value];
  if (--*at->budget < 0 || !expr_eval(pool, v->lo, values, &lo) || !expr_eval(pool, v->hi, values, &hi) || lo >= hi) return false;
  *out = at->upper >> (leaf->value & 31) & 1 ? hi - 1 - (hi - 1 - lo) % v->step : lo;
  return true;
}

bool expr_is_negative_somewhere(const expr_pool *pool, ir_expr e) {
  static const uint32_t uppers[] = {0, 0xffffffff, 0x55555555, 0xaaaaaaaa};
  for (uint32_t i = 0; i < IR_COUNT(uppers); i++) {
    int budget = 32;
    int64_t value;
    const corner at = {{.other = in_corner}, uppers[i], &budget};
    if (expr_eval(pool, e, &at.values, &value) && value < 0) return true;
  }
  return false;
}
