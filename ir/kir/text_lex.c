/* Tokens, literals and names of kernel IR text. Numbers are read without the C library, so no locale changes them. */
#include "ir/kir/text_parse.h"
#include <math.h>
#include <stdio.h>

void kir_parse_fail(kir_parser *p, const char *format, ...) {
  if (p->failed) return;
  p->failed = true;
  char text[200];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  ir_fail(p->diag, SNT_E_PARSE, "parse kernel", p->line, "line %u: %s", p->line, text);
}

/* ---- tokens ---- */
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word_char(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.'; }

/* The sign of an exponent belongs to the word: 0x1.8p-1. */
static const char *word_end(const char *at, const char *end) {
  const bool hex = end - at > 2 && at[0] == '0' && at[1] == 'x';
  const char *c = at;
  while (c < end && (is_word_char(*c) || (hex && (*c == '-' || *c == '+') && (c[-1] == 'p' || c[-1] == 'P')))) c++;
  return c;
}

static void skip_blanks(kir_parser *p) {
  while (p->next < p->end) {
    const char c = *p->next;
    if (c == '#')
      while (p->next < p->end && *p->next != '\n') p->next++;
    else if (c == ' ' || c == '\t' || c == '\r') p->next++;
    else return;
  }
}

void kir_advance(kir_parser *p) {
  if (p->after_line) p->line++;
  skip_blanks(p);
  p->after_line = false;
  p->now = (kir_token){KTOKEN_END, p->next, 0};
  if (p->next >= p->end || p->failed) return;
  const char c = *p->next;
  if (c == '\n' || c == ';') {
    p->after_line = c == '\n';
    p->now = (kir_token){KTOKEN_LINE, p->next++, 1};
  } else if (is_word_char(c)) {
    const char *stop = word_end(p->next, p->end);
    p->now = (kir_token){KTOKEN_WORD, p->next, (uint32_t)(stop - p->next)};
    p->next = stop;
  } else if (c == '%' || c == '@') {
    const char *stop = word_end(p->next + 1, p->end);
    p->now = (kir_token){c == '%' ? KTOKEN_VALUE : KTOKEN_KERNEL, p->next + 1, (uint32_t)(stop - p->next - 1)};
    p->next = stop;
    if (!p->now.length) kir_parse_fail(p, "a name must follow %c", c);
  } else {
    p->now = (kir_token){KTOKEN_SIGN, p->next++, 1};
  }
}

void kir_skip_lines(kir_parser *p) {
  while (p->now.kind == KTOKEN_LINE) kir_advance(p);
}

bool kir_is_sign(const kir_parser *p, char c) { return p->now.kind == KTOKEN_SIGN && *p->now.at == c; }

bool kir_take_sign(kir_parser *p, char c) {
  if (!kir_is_sign(p, c)) return false;
  kir_advance(p);
  return true;
}

void kir_expect_sign(kir_parser *p, char c) {
  if (!kir_take_sign(p, c)) kir_parse_fail(p, "'%c' expected", c);
}

bool kir_is_word(const kir_parser *p, const char *word) {
  return p->now.kind == KTOKEN_WORD && strlen(word) == p->now.length && !memcmp(word, p->now.at, p->now.length);
}

bool kir_take_word(kir_parser *p, const char *word) {
  if (!kir_is_word(p, word)) return false;
  kir_advance(p);
  return true;
}

kir_token kir_expect(kir_parser *p, kir_token_kind kind, const char *what) {
  const kir_token token = p->now;
  if (token.kind != kind) kir_parse_fail(p, "%s expected", what);
  kir_advance(p);
  return token;
}

uint32_t kir_take_choice(kir_parser *p, const kir_word *words, const char *what) {
  for (; words->text; words++)
    if (kir_take_word(p, words->text)) return words->value;
  kir_parse_fail(p, "no such %s", what);
  return 0;
}

char *kir_token_text(kir_parser *p, kir_token token) {
  char *text = ir_arena_text(p->k->arena, token.at, token.length);
  if (!text) kir_parse_fail(p, "out of memory");
  return text;
}

/* ---- numbers ---- */
static int hex_digit(char c) {
  return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool read_decimal(const char *at, const char *end, uint64_t *out) {
  uint64_t v = 0;
  for (; at < end; at++) {
    if (!is_digit(*at) || v > (UINT64_MAX - (uint64_t)(*at - '0')) / 10) return false;
    v = v * 10 + (uint64_t)(*at - '0');
  }
  *out = v;
  return true;
}

/* 0x12 (an integer), 0x1.8p-1 (a float). */
static bool read_hex(const char *at, const char *end, kir_literal *out) {
  uint64_t v = 0;
  int places = 0;
  bool point = false;
  const char *first = at;
  for (; at < end && (*at == '.' || hex_digit(*at) >= 0); at++) {
    if (*at == '.') {
      if (point) return false;
      point = true;
      continue;
    }
    if (v >> 60) return false;
    v = v << 4 | (uint64_t)hex_digit(*at);
    places += point ? 4 : 0;
  }
  if (at == first) return false;
  out->magnitude = v;
  if (at == end && !point) return true;
  int64_t exponent = 0;
  if (at < end) {
    if (*at != 'p' && *at != 'P') return false;
    at++;
    const bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    uint64_t magnitude;
    if (at == end || !read_decimal(at, end, &magnitude) || magnitude > 10000) return false;
    exponent = negative ? -(int64_t)magnitude : (int64_t)magnitude;
  }
  out->kind = KLITERAL_FLOAT;
  out->value = ldexp((double)v, (int)exponent - places);
  return true;
}

static bool read_word(const kir_token *word, kir_literal *out) {
  static const struct {
    const char *text;
    kir_literal literal;
  } words[] = {{"inf", {KLITERAL_FLOAT, false, 0, INFINITY}},
               {"nan", {KLITERAL_FLOAT, false, 0, NAN}},
               {"lowest", {KLITERAL_LOWEST, false, 0, 0}},
               {"true", {KLITERAL_BOOL, false, 1, 0}},
               {"false", {KLITERAL_BOOL, false, 0, 0}}};
  for (uint32_t i = 0; i < IR_COUNT(words); i++)
    if (strlen(words[i].text) == word->length && !memcmp(words[i].text, word->at, word->length)) return *out = words[i].literal, true;
  return false;
}

static bool read_literal(const kir_token *word, kir_literal *out) {
  const char *at = word->at, *end = at + word->length;
  *out = (kir_literal){KLITERAL_INT, false, 0, 0};
  if (!word->length || !is_digit(*at)) return read_word(word, out);
  if (word->length > 2 && at[0] == '0' && at[1] == 'x') return read_hex(at + 2, end, out);
  return read_decimal(at, end, &out->magnitude);
}

bool kir_at_literal(const kir_parser *p) {
  kir_literal ignored;
  return kir_is_sign(p, '-') || (p->now.kind == KTOKEN_WORD && ((p->now.length && is_digit(*p->now.at)) || read_word(&p->now, &ignored)));
}

kir_literal kir_take_literal(kir_parser *p) {
  kir_literal literal = {KLITERAL_INT, false, 0, 0};
  const bool negative = kir_take_sign(p, '-');
  if (p->now.kind != KTOKEN_WORD || !read_literal(&p->now, &literal))
    kir_parse_fail(p, "'%.*s' is no literal (floats are hexadecimal)", (int)(p->now.length < 32 ? p->now.length : 32), p->now.at);
  if (negative && (literal.kind == KLITERAL_LOWEST || literal.kind == KLITERAL_BOOL)) kir_parse_fail(p, "this literal has no sign");
  literal.negative = negative;
  kir_advance(p);
  return literal;
}

uint64_t kir_take_number(kir_parser *p, uint64_t max) {
  const kir_literal literal = kir_take_literal(p);
  if (literal.kind != KLITERAL_INT || literal.negative || literal.magnitude > max) {
    kir_parse_fail(p, "an integer from 0 to %llu expected", (unsigned long long)max);
    return 0;
  }
  return literal.magnitude;
}

int64_t kir_take_signed(kir_parser *p) {
  const kir_literal literal = kir_take_literal(p);
  const uint64_t limit = (uint64_t)INT64_MAX + literal.negative;
  if (literal.kind != KLITERAL_INT || literal.magnitude > limit) kir_parse_fail(p, "an integer expected");
  return literal.negative ? (int64_t)(0 - literal.magnitude) : (int64_t)literal.magnitude;
}

/* ---- types ---- */
static uint8_t find_base(kir_parser *p, const char *at, uint32_t length) {
  const int32_t base = ir_dtype_find(at, length);
  if (base < SNT_F32 || base > SNT_BOOL) {
    kir_parse_fail(p, "'%.*s' is no type", (int)(length < 32 ? length : 32), at);
    return SNT_F32;
  }
  return (uint8_t)base;
}

static kir_type take_fragment(kir_parser *p) {
  kir_advance(p);
  kir_expect_sign(p, '<');
  const kir_token kind = kir_expect(p, KTOKEN_WORD, "a, b or c");
  kir_expect_sign(p, ',');
  const kir_token base = kir_expect(p, KTOKEN_WORD, "a type");
  kir_expect_sign(p, '>');
  if (p->failed || kind.length != 1 || *kind.at < 'a' || *kind.at > 'c') {
    kir_parse_fail(p, "a fragment is a, b or c");
    return kir_t(SNT_F32, 1);
  }
  kir_type type = kir_t(find_base(p, base.at, base.length), 1);
  type.frag = (uint8_t)(1 + *kind.at - 'a');
  return type;
}

kir_type kir_take_type(kir_parser *p) {
  if (kir_is_word(p, "frag")) return take_fragment(p);
  const kir_token word = kir_expect(p, KTOKEN_WORD, "a type");
  const char *x = p->failed ? NULL : memchr(word.at, 'x', word.length);
  uint64_t lanes = 1;
  const uint32_t length = x ? (uint32_t)(x - word.at) : word.length;
  if (x && (x + 1 == word.at + word.length || !read_decimal(x + 1, word.at + word.length, &lanes) || lanes > 16 || lanes < 2)) lanes = 0;
  const kir_type type = kir_t(p->failed ? SNT_F32 : find_base(p, word.at, length), (uint32_t)lanes);
  if (!kir_type_valid(type)) kir_parse_fail(p, "'%.*s' is no type", (int)(word.length < 32 ? word.length : 32), word.at);
  return type;
}

/* ---- literals as constants ---- */
double kir_literal_value(const kir_literal *literal, uint32_t base) {
  const double v = literal->kind == KLITERAL_FLOAT    ? literal->value
                   : literal->kind == KLITERAL_LOWEST ? kir_lowest(base)
                                                      : (double)literal->magnitude;
  return literal->negative ? -v : v;
}

static bool int_fits(const kir_literal *literal, uint32_t base) {
  const uint32_t bits = base == SNT_BOOL ? 1 : kir_base_bits(base);
  const uint32_t room = kir_is_signed(base) ? bits - 1 : bits;
  const uint64_t max = room == 64 ? UINT64_MAX : ((uint64_t)1 << room) - 1;
  if (literal->negative) return literal->magnitude == 0 || (kir_is_signed(base) && literal->magnitude <= max + 1);
  return literal->magnitude <= max;
}

static uint32_t put_int(kir_parser *p, const kir_literal *literal, kir_type type) {
  if (literal->kind == KLITERAL_LOWEST)
    return kir_const_int(p->k, type, kir_is_signed(type.base) ? (int64_t)(0 - ((uint64_t)1 << (kir_base_bits(type.base) - 1))) : 0);
  if (literal->kind == KLITERAL_FLOAT || (literal->kind == KLITERAL_BOOL && type.base != SNT_BOOL)) {
    kir_parse_fail(p, "the literal does not fit the type %s", ir_dtypes[type.base].name);
    return 0;
  }
  if (!int_fits(literal, type.base)) kir_parse_fail(p, "the literal is out of the range of %s", ir_dtypes[type.base].name);
  return kir_const_int(p->k, type, literal->negative ? (int64_t)(0 - literal->magnitude) : (int64_t)literal->magnitude);
}

static kir_type own_type(const kir_literal *literal) {
  switch (literal->kind) {
  case KLITERAL_INT: return kir_t(literal->negative ? SNT_I32 : SNT_U32, 1);
  case KLITERAL_BOOL: return kir_t(SNT_BOOL, 1);
  default: return kir_t(SNT_F32, 1);
  }
}

uint32_t kir_put_literal(kir_parser *p, const kir_literal *literal, kir_type type) {
  if (p->failed) return 0;
  if (!type.lanes) type = own_type(literal);
  if (!kir_is_float(type.base)) return put_int(p, literal, type);
  if (literal->kind == KLITERAL_BOOL) kir_parse_fail(p, "a bool where a float is wanted");
  return kir_const_float(p->k, type, kir_literal_value(literal, type.base));
}

/* ---- names ---- */
static uint32_t bucket_of(kir_token token) { return (uint32_t)(ir_hash64(0, token.at, token.length) % KIR_NAME_BUCKETS); }

static const kir_name *find_name(kir_parser *p, kir_token token) {
  for (uint32_t at = p->buckets[bucket_of(token)]; at; at = p->names.at[at - 1].before) {
    const kir_name *name = &p->names.at[at - 1];
    if (name->length == token.length && !memcmp(name->at, token.at, token.length)) return name;
  }
  return NULL;
}

void kir_bind(kir_parser *p, kir_token token, kir_name_kind kind, uint32_t id) {
  if (p->failed) return;
  const kir_name *old = find_name(p, token);
  if (old && (old->kind != KNAME_VALUE || kind != KNAME_VALUE)) {
    kir_parse_fail(p, "%%%.*s names something else already", (int)(token.length < 64 ? token.length : 64), token.at);
    return;
  }
  const uint32_t bucket = bucket_of(token);
  const kir_name name = {token.at, token.length, bucket, p->buckets[bucket], id, kind};
  if (IR_PUSH(p->scratch, &p->names, name)) p->buckets[bucket] = p->names.count;
  else kir_parse_fail(p, "out of memory");
}

void kir_unbind_to(kir_parser *p, uint32_t count) {
  while (p->names.count > count) {
    const kir_name *name = &p->names.at[--p->names.count];
    p->buckets[name->bucket] = name->before;
  }
}

const kir_name *kir_lookup(kir_parser *p, kir_token token) {
  const kir_name *name = p->failed ? NULL : find_name(p, token);
  if (!name) kir_parse_fail(p, "%%%.*s is not defined here", (int)(token.length < 64 ? token.length : 64), token.at);
  return name;
}
