/* Constants of the graph text: a splat, a list of elements, a file beside the text, or values from a seed. */
#include "ir/graph_parse.h"

uint32_t parse_add_literal(graph_parser *p, const char *at, const ir_number *number, int32_t dtype) {
  const ir_tensor type = {.dtype = (uint8_t)dtype};
  ir_const value = {.kind = IR_CONST_SPLAT};
  if (!ir_number_bits(number, dtype, &value.bits)) {
    lex_fail(p, at, "the literal is no %s", ir_dtypes[dtype].name);
    return 0;
  }
  return ir_add_const(p->g, &type, &value);
}

static bool parse_bits(graph_parser *p, int32_t dtype, uint64_t *bits) {
  ir_number number;
  lex_blanks(p);
  const char *start = p->at;
  if (!ir_read_number(&p->at, p->end, &number)) return lex_fail(p, start, "a literal is expected");
  return ir_number_bits(&number, dtype, bits) || lex_fail(p, start, "the literal is no %s", ir_dtypes[dtype].name);
}

static void store_bits(int32_t dtype, void *data, size_t i, uint64_t bits) {
  double real;
  memcpy(&real, &bits, sizeof real);
  if (ir_dtypes[dtype].is_float) ir_dtype_store(dtype, data, i, real);
  else ir_dtype_store_int(dtype, data, i, (int64_t)bits);
}

/* Elements are gathered as bits first: how many there are is known at the closing bracket. */
static bool parse_elements(graph_parser *p, const ir_tensor *type, uint64_t count, ir_const *out) {
  IR_VEC(uint64_t) bits = {0};
  const char *start = p->at;
  if (!lex_expect(p, '[')) return false;
  for (lex_lines(p); !lex_peek(p, ']'); lex_lines(p)) {
    uint64_t element;
    if (bits.count && !lex_expect(p, ',')) return false;
    lex_lines(p);
    if (!parse_bits(p, type->dtype, &element)) return false;
    if (bits.count == count) return lex_fail(p, p->at, "more than %llu elements", (unsigned long long)count);
    if (!IR_PUSH(&p->temp, &bits, element)) return lex_fail(p, start, "out of memory");
  }
  if (bits.count != count) return lex_fail(p, start, "%u elements, the type has %llu", bits.count, (unsigned long long)count);
  void *data = ir_arena_take(p->g->arena, (size_t)count * ir_dtypes[type->dtype].bytes, 64);
  if (!data) return lex_fail(p, start, "out of memory");
  for (uint32_t i = 0; i < bits.count; i++) store_bits(type->dtype, data, i, bits.at[i]);
  *out = (ir_const){.kind = IR_CONST_DATA, .data = data};
  return lex_expect(p, ']');
}

static bool expect_key(graph_parser *p, const char *key) {
  return (lex_take_word(p, key) || lex_fail(p, p->at, "%s= is expected", key)) && lex_expect(p, '=');
}

static bool parse_file(graph_parser *p, const ir_tensor *type, uint64_t count, ir_const *out) {
  text_name file;
  int64_t offset = 0;
  const char *start = p->at;
  if (!lex_expect(p, '=') || !lex_quoted(p, &file)) return false;
  if (lex_take_word(p, "offset") && (!lex_expect(p, '=') || !lex_int(p, &offset))) return false;
  if (offset < 0) return lex_fail(p, start, "a negative offset");
  if (count > (uint64_t)1 << 48) return lex_fail(p, start, "a constant of %llu elements", (unsigned long long)count);
  if (!p->hooks || !p->hooks->load) return lex_fail(p, start, "there is no way to read a file here");
  const void *data = p->hooks->load(p->hooks->user, lex_text(p, file), (uint64_t)offset, count * ir_dtypes[type->dtype].bytes);
  if (!data) return lex_fail(p, start, "the bytes of %.*s cannot be read", (int)file.length, file.at);
  *out = (ir_const){.kind = IR_CONST_DATA, .data = data};
  return true;
}

static bool parse_random(graph_parser *p, ir_const_kind kind, ir_const *out) {
  ir_number number;
  *out = (ir_const){.kind = (uint8_t)kind, .scale = 1};
  if (!expect_key(p, "seed")) return false;
  lex_blanks(p);
  const char *start = p->at;
  if (!ir_read_number(&p->at, p->end, &number) || !ir_number_bits(&number, SNT_U64, &out->seed))
    return lex_fail(p, start, "a seed is expected");
  if (!lex_take_word(p, "scale")) return true;
  uint64_t bits;
  if (!lex_expect(p, '=') || !parse_bits(p, SNT_F64, &bits)) return false;
  memcpy(&out->scale, &bits, sizeof bits);
  return true;
}

static bool parse_value(graph_parser *p, const ir_tensor *type, ir_const *out) {
  const char *start = p->at;
  text_name word;
  int64_t count = -1;
  const bool fixed = expr_is_const(p->g->pool, ir_tensor_elements(p->g->pool, type), &count) && count >= 0;
  if (lex_peek(p, '[') || (lex_word(p, &word) && lex_is(word, "data"))) {
    if (!fixed) return lex_fail(p, start, "a list needs a fixed shape");
    return lex_peek(p, '[') ? parse_elements(p, type, (uint64_t)count, out) : parse_file(p, type, (uint64_t)count, out);
  }
  p->at = start;
  if (lex_take_word(p, "normal")) return parse_random(p, IR_CONST_NORMAL, out);
  if (lex_take_word(p, "uniform")) return parse_random(p, IR_CONST_UNIFORM, out);
  *out = (ir_const){.kind = IR_CONST_SPLAT};
  return parse_bits(p, type->dtype, &out->bits);
}

bool parse_const(graph_parser *p, const text_result *result) {
  const char *start = p->at;
  ir_const value;
  text_name note = {0};
  if (result->ignored || !result->typed) return lex_fail(p, result->at, "a constant needs a name and a type");
  if (!parse_value(p, &result->type, &value) || !parse_note(p, &note)) return false;
  const uint32_t node = ir_add_const(p->g, &result->type, &value);
  if (lex_graph_failed(p, start)) return false;
  if (note.length) ir_set_name(p->g, node, lex_text(p, note));
  return parse_define(p, result, node);
}
