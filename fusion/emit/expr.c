/* Index arithmetic: pool expressions become kernel values. What depends on symbols alone is a scalar parameter that the plan computes; sums
   become `ix`; conditions become one unsigned comparison each. Values wrap in u32, which is right wherever a condition guards the use. */
#include "fusion/emit_private.h"

bool emit_has_vars(const expr_pool *x, ir_expr e) {
  if (e >= 0) return false;
  const expr_node *n = &x->nodes.at[IR_EXPR_NODE(e)];
  if (n->kind == EXPR_VAR) return !x->vars.at[n->value].plan;
  for (uint32_t i = 0; i < n->count; i++)
    if (emit_has_vars(x, x->terms.at[n->first + i])) return true;
  return false;
}

static kir_type u32(void) { return kir_t(SNT_U32, 1); }

/* The kernel's scalar parameter that the plan computes from an expression of symbols alone. */
uint32_t emit_scalar_for(emit *e, ir_expr expression) {
  for (uint32_t i = 0; i < e->scalars.count; i++)
    if (e->scalars.at[i].expression == expression) return e->scalars.at[i].scalar;
  int64_t lo, hi;
  char name[16];
  expr_bounds(e->x, expression, &lo, &hi);
  const int length = snprintf(name, sizeof name, "s%u", e->scalars.count);
  const int64_t multiple = expr_multiple_of(e->x, expression);
  const uint32_t scalar = kir_scalar_add(e->k, ir_arena_text(e->arena, name, (size_t)length), SNT_U32, lo < 0 ? 0 : lo,
                                         lo < 0 || hi > UINT32_MAX ? UINT32_MAX : hi, lo < 0 || multiple < 1 ? 1 : multiple);
  const emit_scalar entry = {expression, scalar};
  if (!IR_PUSH(e->arena, &e->scalars, entry)) e->failed = true;
  return scalar;
}

static uint32_t read_scalar(emit *e, ir_expr expression) { return kir_scalar_read(e->k, emit_scalar_for(e, expression)); }

/* What depends on symbols alone is a scalar of the plan; once the device's block of scalars is nearly full, it is computed from those there are and from
   the symbols themselves, for which the rest of the block is kept. */
static bool has_room(const emit *e) {
  enum { KEPT = 8 };
  const uint32_t words = e->c->options->profile->caps.push_bytes / 4;
  return !words || e->scalars.count + KEPT < words;
}

static bool is_scalar(const emit *e, ir_expr expression) {
  if (emit_has_vars(e->x, expression)) return false;
  const expr_kind kind = expression >= 0 ? EXPR_SYMBOL : (expr_kind)e->x->nodes.at[IR_EXPR_NODE(expression)].kind;
  bool found = kind == EXPR_SYMBOL || kind == EXPR_VAR || has_room(e);
  for (uint32_t i = 0; i < e->scalars.count && !found; i++) found = e->scalars.at[i].expression == expression;
  return found;
}

/* A product: its symbolic factors make one scalar. */
static uint32_t put_product(emit *e, const expr_node *n) {
  const bool room = has_room(e);
  ir_expr symbolic = 1;
  uint32_t value = 0;
  for (uint32_t i = 0; i < n->count; i++) {
    const ir_expr term = e->x->terms.at[n->first + i];
    if (room && !emit_has_vars(e->x, term)) {
      symbolic = expr_mul(e->x, symbolic, term);
      continue;
    }
    const uint32_t factor = emit_expr(e, term);
    value = value ? kir_2(e->k, KIR_mul, value, factor) : factor;
  }
  return symbolic == 1 ? value : kir_2(e->k, KIR_mul, value, emit_expr(e, symbolic));
}

static uint32_t put_sum(emit *e, const expr_node *n) {
  const bool room = has_room(e);
  int64_t coefs[KIR_IX_TERMS];
  uint32_t values[KIR_IX_TERMS], count = 0;
  ir_expr symbolic = 0;
  int64_t constant = n->value;
  for (uint32_t i = 0; i < n->count; i++) {
    const ir_expr term = e->x->terms.at[n->first + i];
    const int64_t coef = e->x->coefs.at[n->first + i];
    if (room && !emit_has_vars(e->x, term)) {
      symbolic = expr_add(e->x, symbolic, expr_mul(e->x, term, expr_int(e->x, coef)));
      continue;
    }
    if (count == KIR_IX_TERMS - 1) { /* rare: fold what is there; a place is left for the symbolic part */
      values[0] = kir_ix(e->k, count, coefs, values, 0);
      coefs[0] = 1;
      count = 1;
    }
    coefs[count] = coef;
    values[count++] = emit_expr(e, term);
  }
  if (symbolic) {
    coefs[count] = 1;
    values[count++] = read_scalar(e, symbolic);
  }
  return kir_ix(e->k, count, coefs, values, constant);
}

/* Floor division of what may be negative, by what is known at run time only: -1 - x is divided as x is, downwards. */
static uint32_t put_signed_division(emit *e, bool modulo, uint32_t a, uint32_t b) {
  const uint32_t ones = kir_const_int(e->k, u32(), UINT32_MAX), negative = kir_2(e->k, KIR_lt, kir_const_int(e->k, u32(), INT32_MAX), a);
  const uint32_t flip = kir_3(e->k, KIR_select, negative, ones, kir_const_int(e->k, u32(), 0)), x = kir_2(e->k, KIR_xor, a, flip);
  if (!modulo) return kir_2(e->k, KIR_xor, kir_2(e->k, KIR_udiv, x, b), flip);
  const uint32_t rest = kir_2(e->k, KIR_umod, x, b), back = kir_2(e->k, KIR_add, kir_2(e->k, KIR_sub, b, rest), ones);
  return kir_3(e->k, KIR_select, negative, back, rest);
}
#define put_signed_division(e, modulo, a, b) IR_LAST_FIRST_2(put_signed_division, a, b, e, modulo)

/* Floor division of what may be negative: shift the numerator up by whole divisors, so that the unsigned division is exact. Where elements are read the
   divisor is at least 1; a kernel may come here without any, and processors end a program that divides by 0. */
static uint32_t put_division(emit *e, const expr_node *n) {
  const ir_expr a = e->x->terms.at[n->first], b = e->x->terms.at[n->first + 1];
  const bool modulo = n->kind == EXPR_MOD;
  int64_t lo, hi, divisor;
  expr_bounds(e->x, a, &lo, &hi);
  const uint32_t by = emit_expr(e, b > 0 ? b : expr_max(e->x, b, 1));
  if (lo >= 0) return kir_2(e->k, modulo ? KIR_umod : KIR_udiv, emit_expr(e, a), by);
  if (!expr_is_const(e->x, b, &divisor) || lo < -((int64_t)1 << 30)) return put_signed_division(e, modulo, emit_expr(e, a), by);
  const int64_t shift = (-lo + divisor - 1) / divisor;
  const uint32_t raised = emit_expr(e, expr_add(e->x, a, expr_int(e->x, shift * divisor)));
  const uint32_t q = kir_2(e->k, modulo ? KIR_umod : KIR_udiv, raised, by);
  if (modulo) return q;
  const int64_t one = 1;
  return kir_ix(e->k, 1, &one, &q, -shift);
}

/* Indices are unsigned: what may be negative is compared 2^31 higher, where it keeps its order. */
static uint32_t put_choice(emit *e, const expr_node *n) {
  const kir_op op = n->kind == EXPR_MIN ? KIR_min : KIR_max;
  uint32_t value[2];
  bool negative = false;
  for (uint32_t i = 0; i < 2; i++) {
    int64_t lo, hi;
    expr_bounds(e->x, e->x->terms.at[n->first + i], &lo, &hi);
    negative |= lo < 0;
    value[i] = emit_expr(e, e->x->terms.at[n->first + i]);
  }
  if (!negative) return kir_2(e->k, op, value[0], value[1]);
  const uint32_t middle = kir_const_int(e->k, u32(), INT64_C(1) << 31);
  const uint32_t chosen = kir_2(e->k, op, kir_2(e->k, KIR_add, value[0], middle), kir_2(e->k, KIR_add, value[1], middle));
  return kir_2(e->k, KIR_add, chosen, middle);
}

static uint32_t put_expr(emit *e, ir_expr expression) {
  int64_t literal;
  if (expr_is_const(e->x, expression, &literal)) return kir_const_int(e->k, u32(), (int64_t)(uint32_t)literal);
  if (is_scalar(e, expression)) return read_scalar(e, expression);
  const expr_node n = e->x->nodes.at[IR_EXPR_NODE(expression)];
  switch ((expr_kind)n.kind) {
  case EXPR_VAR: {
    const uint32_t value = e->x->vars.at[n.value].user;
    if (!value) e->failed = true; /* the lane variable, or one of another kernel */
    return value;
  }
  case EXPR_SUM: return put_sum(e, &n);
  case EXPR_PRODUCT: return put_product(e, &n);
  case EXPR_DIV:
  case EXPR_MOD: return put_division(e, &n);
  case EXPR_MIN:
  case EXPR_MAX: return put_choice(e, &n);
  default: e->failed = true; return 0;
  }
}

uint32_t emit_expr(emit *e, ir_expr expression) {
  if (e->failed || e->x->failed) {
    e->failed = true;
    return 0;
  }
  uint32_t *bucket = emit_index_bucket(e, expression);
  for (uint32_t i = *bucket; i != UINT32_MAX; i = e->indices.at[i].next)
    if (e->indices.at[i].expression == expression) return e->indices.at[i].value;
  const uint32_t value = put_expr(e, expression);
  const emit_index entry = {expression, value, e->depth, *bucket};
  if (IR_PUSH(e->arena, &e->indices, entry)) *bucket = e->indices.count - 1;
  else e->failed = true;
  return value;
}

/* The expression along the lanes: base + coef * iota, or lane by lane where it is not affine. */
static uint32_t put_lane_expr(emit *e, ir_expr expression) {
  int64_t coef;
  ir_expr rest;
  const kir_type type = kir_t(SNT_U32, e->lanes);
  if (expr_split_affine(e->x, expression, e->lane_var, &coef, &rest)) {
    const kir_inst iota = {.op = KIR_iota, .type = type};
    uint32_t steps = kir_put(e->k, &iota, 0, NULL);
    if (coef != 1) steps = kir_2(e->k, KIR_mul, steps, kir_const_int(e->k, type, (int64_t)(uint32_t)coef));
    return kir_2(e->k, KIR_add, steps, emit_expr(e, rest));
  }
  uint32_t parts[16];
  for (uint32_t i = 0; i < e->lanes; i++) {
    const ir_expr lane = i;
    parts[i] = emit_expr(e, expr_substitute(e->x, expression, 1, &e->lane_var, &lane));
  }
  return kir_vector(e->k, type.base, e->lanes, parts);
}

bool emit_uses_lanes(const emit *e, ir_expr expression) {
  return e->lanes > 1 && expression < 0 && expr_uses_var(e->x, expression, e->lane_var);
}

uint32_t emit_any_expr(emit *e, ir_expr expression) {
  return emit_uses_lanes(e, expression) ? put_lane_expr(e, expression) : emit_expr(e, expression);
}

static bool begins_vector(const emit *e, ir_expr place) {
  return !emit_uses_lanes(e, place) && expr_multiple_of(e->x, place) % e->lanes == 0;
}

/* The value as lane 0 has it where a condition holds for all lanes or for none: for a whole vector, and a range between such. */
static ir_expr value_of_lanes(const emit *e, const map_condition *c) {
  int64_t step;
  ir_expr first;
  if (!emit_uses_lanes(e, c->value) || !begins_vector(e, c->lo) || !begins_vector(e, c->hi)) return c->value;
  return expr_split_affine(e->x, c->value, e->lane_var, &step, &first) && step == 1 && begins_vector(e, first) ? first : c->value;
}

bool emit_conditions_use_lanes(const emit *e, uint32_t count, const map_condition *conditions) {
  for (uint32_t i = 0; i < count; i++)
    if (emit_uses_lanes(e, value_of_lanes(e, &conditions[i])) || emit_uses_lanes(e, conditions[i].lo) ||
        emit_uses_lanes(e, conditions[i].hi))
      return true;
  return false;
}

/* lo <= v < hi as one unsigned comparison v - lo < hi - lo. */
uint32_t emit_conditions(emit *e, uint32_t count, const map_condition *conditions) {
  uint32_t all = 0;
  for (uint32_t i = 0; i < count; i++) {
    const map_condition *c = &conditions[i];
    const uint32_t offset = emit_any_expr(e, expr_sub(e->x, value_of_lanes(e, c), c->lo)),
                   width = emit_any_expr(e, expr_sub(e->x, c->hi, c->lo));
    const uint32_t holds = kir_2(e->k, KIR_lt, offset, width);
    all = all ? kir_2(e->k, KIR_and, all, holds) : holds;
  }
  return all;
}
