/* Operands of kernel IR text: values, literals, cells of arrays, and index sums. Loads of cells and sums in brackets are emitted as met. */
#include "ir/kir/text_parse.h"

enum { MAX_TERMS = 32 };

static uint32_t scalar_value(kir_parser *p, const kir_name *name) { return p->failed ? 0 : kir_scalar_read(p->k, name->id); }

/* A cell as an operand is a load; global memory is only read by `load`. */
static uint32_t load_cell(kir_parser *p) {
  uint32_t memory = 0, index[4];
  const uint32_t count = kir_take_cell(p, &memory, index);
  if (p->failed) return 0;
  if (p->k->memories.at[memory].space == KIR_GLOBAL) kir_parse_fail(p, "global memory is read by load");
  return p->failed ? 0 : kir_load(p->k, memory, 1, count, index);
}

kir_operand kir_take_operand(kir_parser *p) {
  kir_operand operand = {0};
  if (p->now.kind == KTOKEN_VALUE) {
    const kir_name *name = kir_lookup(p, p->now);
    if (!name) return operand;
    if (name->kind == KNAME_MEMORY) {
      operand.id = load_cell(p);
      return operand;
    }
    kir_advance(p);
    operand.id = name->kind == KNAME_SCALAR ? scalar_value(p, name) : name->id;
    return operand;
  }
  operand.is_literal = true;
  operand.literal = kir_take_literal(p);
  if (kir_take_sign(p, ':')) operand.type = kir_take_type(p);
  return operand;
}

uint32_t kir_settle(kir_parser *p, const kir_operand *operand, kir_type literal_type) {
  if (!operand->is_literal) return operand->id;
  return kir_put_literal(p, &operand->literal, operand->type.lanes ? operand->type : literal_type);
}

/* ---- sums: terms with a factor that is a literal or a scalar, and a constant ---- */
typedef struct term {
  int64_t factor;
  uint32_t scalar;
  kir_operand value;
} term; /* scalar: 1 + the factor's, or 0 */
typedef struct sum {
  term terms[MAX_TERMS + 1];
  uint32_t count;
  uint64_t constant;
  bool has_constant;
} sum;

static term *add_term(kir_parser *p, sum *s) {
  term *t = &s->terms[s->count];
  if (s->count < MAX_TERMS) s->count++;
  else kir_parse_fail(p, "too many terms");
  *t = (term){.factor = 1};
  return t;
}

static kir_operand take_factored(kir_parser *p) {
  if (p->now.kind == KTOKEN_VALUE) {
    const kir_name *name = kir_lookup(p, p->now);
    if (name && name->kind == KNAME_MEMORY) kir_parse_fail(p, "a sum has values, not cells");
  }
  return kir_take_operand(p);
}

static void take_value_term(kir_parser *p, sum *s, bool negative) {
  const kir_name *name = kir_lookup(p, p->now);
  if (!name) return;
  term *t = add_term(p, s);
  t->value = take_factored(p);
  if (kir_take_sign(p, '*')) {
    if (name->kind != KNAME_SCALAR) kir_parse_fail(p, "a factor must be a literal or a scalar parameter");
    t->scalar = name->id + 1;
    t->value = take_factored(p);
  }
  if (negative && t->scalar) kir_parse_fail(p, "a scalar factor has no sign");
  if (negative) t->factor = -1;
}

static void take_literal_term(kir_parser *p, sum *s, bool negative) {
  kir_operand literal = {.is_literal = true, .literal = kir_take_literal(p)};
  if (literal.literal.kind != KLITERAL_INT || (literal.literal.negative && negative)) kir_parse_fail(p, "an integer expected");
  literal.literal.negative |= negative;
  const uint64_t magnitude = literal.literal.magnitude, value = literal.literal.negative ? 0 - magnitude : magnitude;
  if (kir_take_sign(p, '*')) {
    term *t = add_term(p, s);
    t->factor = (int64_t)value;
    t->value = take_factored(p);
  } else if (kir_take_sign(p, ':')) {
    literal.type = kir_take_type(p);
    add_term(p, s)->value = literal;
  } else {
    s->constant += value;
    s->has_constant = true;
  }
}

static void take_terms(kir_parser *p, sum *s) {
  bool negative = kir_take_sign(p, '-');
  for (;;) {
    if (p->now.kind == KTOKEN_VALUE) take_value_term(p, s, negative);
    else take_literal_term(p, s, negative);
    if (p->failed) return;
    negative = kir_is_sign(p, '-');
    if (!negative && !kir_is_sign(p, '+')) return;
    kir_advance(p);
  }
}

static kir_type natural_type(const kir_parser *p, const sum *s) {
  kir_type type = kir_t(SNT_U32, 1);
  for (uint32_t i = 0; i < s->count; i++) {
    const kir_operand *value = &s->terms[i].value;
    const kir_type have = value->is_literal ? value->type : kir_type_of(p->k, value->id);
    if (have.lanes && have.base != SNT_U32) type = kir_element(have);
  }
  return type;
}

static uint32_t put_factor(kir_parser *p, const term *t, kir_type type) {
  if (t->scalar) return kir_scalar_read(p->k, t->scalar - 1);
  return kir_const_int(p->k, t->factor < 0 && type.base == SNT_U32 ? kir_t(SNT_I32, 1) : type, t->factor);
}

static uint32_t put_sum(kir_parser *p, const sum *s, kir_type type) {
  uint32_t args[2 * MAX_TERMS];
  if (p->k->failed) return 0;
  if (!type.lanes) type = natural_type(p, s);
  if (!kir_is_int(type.base) || type.lanes != 1) {
    kir_parse_fail(p, "a sum is of 32- or 64-bit integers");
    return 0;
  }
  for (uint32_t i = 0; i < s->count; i++) {
    args[2 * i] = put_factor(p, &s->terms[i], type);
    args[2 * i + 1] = kir_settle(p, &s->terms[i].value, type);
  }
  const kir_inst in = {.op = KIR_ix, .type = type, .imm.i = (int64_t)s->constant};
  return p->failed ? 0 : kir_put(p->k, &in, 2 * s->count, args);
}

/* In brackets a lone value or literal is itself, not a sum. */
static bool put_plain(kir_parser *p, const sum *s, uint32_t *out) {
  if (s->count == 1 && !s->has_constant && s->terms[0].factor == 1 && !s->terms[0].scalar) {
    *out = kir_settle(p, &s->terms[0].value, kir_t(SNT_U32, 1));
    return true;
  }
  if (s->count) return false;
  const int64_t v = (int64_t)s->constant;
  *out = kir_const_int(p->k, kir_t(v < 0 ? SNT_I32 : SNT_U32, 1), v);
  if (v != kir_wrap_int(v < 0 ? SNT_I32 : SNT_U32, v)) kir_parse_fail(p, "the index is out of range");
  return true;
}

uint32_t kir_take_sum(kir_parser *p, kir_type stated, bool in_brackets) {
  sum s = {.count = 0};
  take_terms(p, &s);
  uint32_t value = 0;
  if (p->failed || (in_brackets && put_plain(p, &s, &value))) return value;
  return put_sum(p, &s, stated);
}

/* ---- cells ---- */
uint32_t kir_take_indices(kir_parser *p, uint32_t index[4]) {
  uint32_t count = 0;
  kir_expect_sign(p, '[');
  do {
    if (count == 4) {
      kir_parse_fail(p, "at most 4 indices");
      return 0;
    }
    const uint32_t value = kir_take_sum(p, kir_t(0, 0), true);
    index[count++] = value;
  } while (!p->failed && kir_take_sign(p, ','));
  kir_expect_sign(p, ']');
  return p->failed ? 0 : count;
}

uint32_t kir_take_cell(kir_parser *p, uint32_t *memory, uint32_t index[4]) {
  const kir_token token = kir_expect(p, KTOKEN_VALUE, "%memory");
  const kir_name *name = p->failed ? NULL : kir_lookup(p, token);
  if (!name) return 0;
  if (name->kind != KNAME_MEMORY) {
    kir_parse_fail(p, "%%%.*s is no memory", (int)(token.length < 64 ? token.length : 64), token.at);
    return 0;
  }
  *memory = name->id;
  return kir_is_sign(p, '[') ? kir_take_indices(p, index) : 0;
}
