/* One operator or composite of the graph text: operands, attributes, the node. A bare literal among the operands takes its type from its
   place, so the constants are made once all operands are known. */
#include "ir/composites.h"
#include "ir/custom.h"
#include "ir/graph_parse.h"

typedef struct text_operand {
  uint32_t node;
  const char *at;
  ir_number number;
  int32_t dtype;
  bool absent;
} text_operand; /* node 0: a literal */
typedef struct text_attr {
  uint8_t key;
  uint32_t count;
  ir_number number;
  const char *word, *at;
  ir_expr ints[TEXT_MAX_INTS];
} text_attr;
enum { MAX_ATTRS = 64 };
_Static_assert((int)IR_PARAM_COUNT <= MAX_ATTRS && (int)IR_ATTR_COUNT <= MAX_ATTRS, "one of each key");
typedef struct text_call {
  ir_op op; /* or */
  ir_composite composite;
  const ir_definition *definition;
  const char *at;
  uint32_t operand_count, attr_count;
  text_operand operands[TEXT_MAX_VALUES];
  text_attr attrs[MAX_ATTRS];
  text_name note;
} text_call;

/* ---- operands ---- */
static bool starts_number(graph_parser *p) {
  const char *at = p->at;
  ir_number unused;
  return ir_read_number(&at, p->end, &unused);
}

static bool parse_operand(graph_parser *p, text_operand *out) {
  *out = (text_operand){.at = p->at};
  if (lex_peek(p, '%')) {
    text_name name;
    if (!lex_value(p, &name)) return false;
    out->node = names_find(p, out->at, name);
    return out->node != 0;
  }
  if (!ir_read_number(&p->at, p->end, &out->number)) return lex_fail(p, out->at, "a value or a literal is expected");
  if (p->at == p->end || *p->at != ':') return true;
  p->at++;
  return lex_dtype(p, &out->dtype);
}

bool parse_operand_value(graph_parser *p, uint32_t *out) {
  text_operand operand;
  lex_blanks(p);
  if (!parse_operand(p, &operand)) return false;
  *out = operand.node;
  if (operand.node) return true;
  if (!operand.dtype) return lex_fail(p, operand.at, "a literal needs its type here, as in 1:i64");
  *out = parse_add_literal(p, operand.at, &operand.number, operand.dtype);
  return !lex_graph_failed(p, operand.at);
}

static bool resolve_literals(graph_parser *p, text_call *call, int32_t result, uint32_t *args) {
  uint8_t types[TEXT_MAX_VALUES];
  for (uint32_t i = 0; i < call->operand_count; i++)
    types[i] = call->operands[i].node ? ir_at(p->g, call->operands[i].node)->type.dtype : (uint8_t)call->operands[i].dtype;
  for (uint32_t i = 0; i < call->operand_count; i++) {
    text_operand *o = &call->operands[i];
    args[i] = o->node;
    if (o->node || o->absent) continue;
    int32_t dtype = o->dtype;
    if (!dtype && call->op) dtype = graph_literal_dtype(call->op, i, result, call->operand_count, types);
    for (uint32_t other = 0; !dtype && !call->op && other < call->operand_count; other++) dtype = types[other];
    if (!dtype) return lex_fail(p, o->at, "nothing here says the literal's type: write it, as in 1:i64");
    args[i] = parse_add_literal(p, o->at, &o->number, dtype);
    if (lex_graph_failed(p, o->at)) return false;
  }
  return true;
}

/* ---- attributes ---- */
static bool parse_ints(graph_parser *p, text_attr *a) {
  if (!lex_expect(p, '[')) return false;
  for (lex_lines(p); !lex_peek(p, ']'); lex_lines(p)) {
    if (a->count && !lex_expect(p, ',')) return false;
    if (a->count == TEXT_MAX_INTS) return lex_fail(p, p->at, "more than %d entries", TEXT_MAX_INTS);
    lex_lines(p);
    if (!lex_expr(p, &a->ints[a->count])) return false;
    a->count++;
  }
  return lex_expect(p, ']');
}

static bool parse_attr_value(graph_parser *p, uint8_t kind, text_attr *a) {
  int32_t dtype;
  text_name word;
  switch (kind) {
  case IR_KIND_FLAG: return true;
  case IR_KIND_INTS: return lex_expect(p, '=') && parse_ints(p, a);
  case IR_KIND_INT: a->count = 1; return lex_expect(p, '=') && lex_expr(p, &a->ints[0]);
  case IR_KIND_DTYPE:
    if (!lex_expect(p, '=') || !lex_dtype(p, &dtype)) return false;
    a->count = 1;
    a->ints[0] = dtype;
    return true;
  case IR_KIND_WORD:
    if (!lex_expect(p, '=') || !lex_name(p, &word)) return false;
    a->word = lex_text(p, word);
    return true;
  case IR_KIND_TEXT:
    if (!lex_expect(p, '=') || !lex_long_text(p, &word)) return false;
    a->word = lex_text(p, word);
    return true;
  default: break;
  }
  if (!lex_expect(p, '=')) return false;
  lex_blanks(p);
  a->count = 1;
  return ir_read_number(&p->at, p->end, &a->number) || lex_fail(p, p->at, "a literal is expected");
}

static uint8_t find_key(const text_call *call, text_name word, uint8_t *kind) {
  const uint8_t count = call->op ? IR_ATTR_COUNT : IR_PARAM_COUNT;
  const ir_attr_info *infos = call->op ? ir_attr_infos : ir_param_infos;
  for (uint8_t key = 1; key < count; key++) {
    if (!lex_is(word, infos[key].name)) continue;
    *kind = infos[key].kind;
    return key;
  }
  return 0;
}

bool call_attr(graph_parser *p, text_call *call) {
  text_name word;
  uint8_t kind = 0;
  lex_blanks(p);
  const char *start = p->at;
  if (!lex_word(p, &word)) return lex_fail(p, start, "an operand or an attribute is expected");
  if (lex_is(word, "name")) return lex_expect(p, '=') && lex_quoted(p, &call->note);
  text_attr *a = &call->attrs[call->attr_count];
  *a = (text_attr){.key = find_key(call, word, &kind), .at = start};
  const char *owner = call->op ? ir_ops[call->op].name : ir_composites[call->composite].name;
  const uint64_t taken = call->op ? ir_ops[call->op].attrs : ir_composites[call->composite].params;
  if (!a->key || !(taken >> a->key & 1)) return lex_fail(p, start, "%s takes no attribute %.*s", owner, (int)word.length, word.at);
  for (uint32_t i = 0; i < call->attr_count; i++)
    if (call->attrs[i].key == a->key) return lex_fail(p, start, "attribute %.*s is given twice", (int)word.length, word.at);
  call->attr_count++;
  return parse_attr_value(p, kind, a);
}

bool parse_note(graph_parser *p, text_name *note) {
  if (!lex_take(p, ',')) return true;
  if (!lex_take_word(p, "name")) return lex_fail(p, p->at, "name= is expected");
  return lex_expect(p, '=') && lex_quoted(p, note);
}

/* Operators of the user's own have no attributes but name=. */
static bool parse_own_name(graph_parser *p, text_call *call) {
  if (lex_take_word(p, "name")) return lex_expect(p, '=') && lex_quoted(p, &call->note);
  return lex_fail(p, p->at, "%s takes no attributes", call->definition->name);
}

/* Operands come before attributes; "_" leaves an operand out. */
static bool parse_items(graph_parser *p, text_call *call) {
  for (bool more = !lex_at_line_end(p); more; more = lex_take(p, ',')) {
    lex_lines(p);
    const bool blank = call->composite && lex_take_word(p, "_");
    if (!blank && !lex_peek(p, '%') && !starts_number(p)) {
      if (call->definition ? !parse_own_name(p, call) : !call_attr(p, call)) return false;
      continue;
    }
    if (call->attr_count || call->note.at) return lex_fail(p, p->at, "an operand after an attribute");
    if (call->operand_count == TEXT_MAX_VALUES) return lex_fail(p, p->at, "more than %d operands", TEXT_MAX_VALUES);
    text_operand *operand = &call->operands[call->operand_count++];
    *operand = (text_operand){.at = p->at, .absent = true};
    if (!blank && !parse_operand(p, operand)) return false;
  }
  return true;
}

/* ---- building ---- */
void call_begin(graph_parser *p, text_call *call, ir_op op) {
  call->op = op;
  call->composite = IR_COMPOSITE_NONE;
  call->definition = NULL;
  call->at = p->at;
  call->operand_count = call->attr_count = 0;
  call->note = (text_name){0};
}

/* The attributes as the builder takes them. */
static bool read_attrs(graph_parser *p, text_call *call, int32_t dtype, ir_attr_value *values) {
  for (uint32_t i = 0; i < call->attr_count; i++) {
    text_attr *a = &call->attrs[i];
    const uint8_t kind = ir_attr_infos[a->key].kind;
    uint64_t bits;
    if (kind == IR_KIND_SCALAR) {
      if (!ir_number_bits(&a->number, dtype, &bits)) return lex_fail(p, a->at, "the literal is no %s", ir_dtypes[dtype].name);
      a->ints[0] = (ir_expr)bits;
    }
    values[i] = (ir_attr_value){a->key, a->count, a->ints};
    if (kind != IR_KIND_TEXT) continue;
    values[i].ints = ir_pack_text(&p->temp, a->word, strlen(a->word), &values[i].count);
    if (!values[i].ints) return lex_fail(p, a->at, "out of memory");
  }
  return true;
}

uint32_t call_build(graph_parser *p, text_call *call, uint32_t count, const uint32_t *args, uint32_t more, const ir_attr_value *added) {
  ir_attr_value values[IR_ATTR_COUNT];
  if (!read_attrs(p, call, count ? ir_at(p->g, args[0])->type.dtype : SNT_F32, values)) return 0;
  for (uint32_t i = 0; i < more; i++) values[call->attr_count + i] = added[i];
  return ir_add_node(p->g, call->op, count, args, call->attr_count + more, values, NULL);
}

static bool build_primitive(graph_parser *p, text_call *call, const text_result *result) {
  ir_attr_value values[IR_ATTR_COUNT];
  uint32_t args[TEXT_MAX_VALUES];
  if (!resolve_literals(p, call, result->typed ? result->type.dtype : 0, args)) return false;
  if (!read_attrs(p, call, call->operand_count ? ir_at(p->g, args[0])->type.dtype : SNT_F32, values)) return false;
  const uint32_t node = ir_add_node(p->g, call->op, call->operand_count, args, call->attr_count, values,
                                    result->typed ? &result->type : NULL);
  if (lex_graph_failed(p, call->at)) return false;
  if (call->note.length) ir_set_name(p->g, node, lex_text(p, call->note));
  return result->ignored || parse_define(p, result, node);
}

/* A literal among the operands has the type of the first that is none, as with a composite. */
static bool build_definition(graph_parser *p, text_call *call, const text_result *result) {
  const text_name note = call->note; /* the call's room is used again by the body */
  const ir_definition *d = call->definition;
  definition_call *out = IR_NEW(&p->temp, definition_call);
  uint32_t node;
  if (!out) return lex_fail(p, call->at, "out of memory");
  *out = (definition_call){.definition = d, .at = call->at, .count = call->operand_count, .call = call};
  if (!resolve_literals(p, call, 0, out->args) || !definition_call_out(p, out, &node)) return false;
  if (note.length && !ir_at(p->g, node)->name) ir_set_name(p->g, node, lex_text(p, note));
  return parse_finish(p, result, node);
}

static bool check_declared(graph_parser *p, const text_result *result, uint32_t node) {
  const ir_tensor *is = &ir_at(p->g, node)->type;
  if (!result->typed || (is->dtype == result->type.dtype && ir_same_shape(is, &result->type))) return true;
  return lex_fail(p, result->at, "the result has another type than declared");
}

static bool build_composite(graph_parser *p, text_call *call, uint32_t count, const text_result *results) {
  ir_param params[IR_PARAM_COUNT];
  uint32_t args[TEXT_MAX_VALUES], made[IR_MAX_RESULTS];
  if (!resolve_literals(p, call, results[0].typed ? results[0].type.dtype : 0, args)) return false;
  for (uint32_t i = 0; i < call->attr_count; i++) {
    const text_attr *a = &call->attrs[i];
    const double number = a->number.is_integer && a->number.negative ? -(double)a->number.integer : a->number.real;
    params[i] = (ir_param){.key = a->key, .count = a->count, .ints = a->ints, .number = number, .word = a->word};
  }
  const ir_composite_info *info = &ir_composites[call->composite];
  if (count > info->results) return lex_fail(p, results[0].at, "%s has %u results", info->name, info->results);
  const text_name name = call->note.length ? call->note : results[0].name;
  const char *text = name.length && !name.numbered ? lex_text(p, name) : NULL;
  const ir_composite_desc desc = {call->composite, call->operand_count, args, call->attr_count, params, text};
  ir_add_composite(p->g, &desc, made);
  if (lex_graph_failed(p, call->at)) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (!check_declared(p, &results[i], made[i])) return false;
    if (results[i].ignored) continue;
    /* The composite may give back a node that has a name already: an operand, say. */
    if (!names_define(p, results[i].at, results[i].name, made[i])) return false;
    if (!results[i].name.numbered && !ir_at(p->g, made[i])->name) ir_set_name(p->g, made[i], lex_text(p, results[i].name));
  }
  return true;
}

bool parse_call(graph_parser *p, uint32_t count, const text_result *results) {
  text_name word;
  lex_blanks(p);
  text_call *call = p->call ? p->call : IR_NEW(&p->temp, text_call);
  if (!call) return lex_fail(p, p->at, "out of memory");
  p->call = call;
  call_begin(p, call, IR_OP_NONE);
  if (!lex_word(p, &word)) return lex_fail(p, call->at, "an operator is expected");
  call->op = ir_op_find(word.at, word.length);
  if (!call->op) call->composite = ir_composite_find(word.at, word.length);
  if (!call->op && !call->composite) call->definition = definition_find(p->g, word);
  if (!call->op && !call->composite && !call->definition)
    return lex_fail(p, call->at, "unknown operator %.*s", (int)(word.length < 60 ? word.length : 60), word.at);
  if (call->op == IR_OP_input || call->op == IR_OP_state || call->op == IR_OP_argument)
    return lex_fail(p, call->at, "%s is declared, not computed", ir_ops[call->op].name);
  if (!call->composite && count != 1) return lex_fail(p, results[0].at, "%.*s has one result", (int)word.length, word.at);
  if (!parse_items(p, call)) return false;
  if (call->definition) return build_definition(p, call, &results[0]);
  return call->op ? build_primitive(p, call, &results[0]) : build_composite(p, call, count, results);
}
