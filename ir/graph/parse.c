/* The parser of the graph text (grammar: ir/IR.txt). In: text that nobody vouches for. Out: a graph built through the ordinary builder, or
   the first error with its line and column. Whether the graph as a whole holds together is ir_graph_verify's business. */
#include "ir/graph_parse.h"
#include "ir/graph_private.h"

/* ---- symbols ---- */
static bool parse_symbol_facts(graph_parser *p, expr_symbol *s) {
  static const char words[][12] = {"min", "max", "multiple_of", "hint"};
  int64_t *facts[] = {&s->min, &s->max, &s->multiple_of, &s->hint};
  bool hinted = false;
  for (;;) {
    uint32_t i = 0;
    lex_lines(p);
    while (i < IR_COUNT(words) && !lex_take_word(p, words[i])) i++;
    if (i == IR_COUNT(words)) break;
    if (!lex_expect(p, '=') || !lex_int(p, facts[i])) return false;
    hinted |= i == 3;
  }
  if (s->min < 0 || s->max < s->min || s->multiple_of < 1)
    return lex_fail(p, p->at, "%s: needs 0 <= min <= max and multiple_of over 0", s->name);
  if (!hinted) s->hint = s->max < 512 ? s->max : s->min > 512 ? s->min : 512;
  return true;
}

static bool parse_symbol(graph_parser *p) {
  text_name word;
  expr_pool *pool = p->g->pool;
  if (!lex_word(p, &word)) return lex_fail(p, p->at, "a symbol's name is expected");
  const char *name = ir_arena_text(pool->arena, word.at, word.length), *start = p->at;
  if (!name) return lex_fail(p, p->at, "out of memory");
  expr_symbol s = {.name = name, .min = 1, .max = INT32_MAX, .multiple_of = 1};
  if (!lex_expect(p, ':') || !parse_symbol_facts(p, &s)) return false;
  for (uint32_t i = 0; i < pool->symbols.count; i++) {
    const expr_symbol *old = &pool->symbols.at[i];
    if (strcmp(old->name, name) != 0) continue;
    bool same = old->min == s.min && old->max == s.max && old->multiple_of == s.multiple_of && old->hint == s.hint;
    return same || lex_fail(p, start, "symbol %s is there already, with other bounds", name);
  }
  expr_symbol_add(pool, &s);
  return !lex_graph_failed(p, start);
}

bool parse_symbols(graph_parser *p) {
  lex_lines(p);
  if (!lex_take_word(p, "symbols")) return true;
  if (!lex_expect(p, '{')) return false;
  for (lex_lines(p); !lex_peek(p, '}'); lex_lines(p)) {
    if (!parse_symbol(p)) return false;
    lex_lines(p);
    if (!lex_take(p, ',') && !lex_peek(p, '}')) return lex_fail(p, p->at, "',' or '}' is expected");
  }
  return lex_expect(p, '}');
}

/* ---- inputs ---- */
static bool parse_port(graph_parser *p) {
  text_name name;
  ir_tensor type;
  const bool is_state = lex_take_word(p, "state");
  lex_blanks(p);
  const char *start = p->at;
  if (!lex_value(p, &name)) return false;
  if (name.numbered) return lex_fail(p, start, "an input needs a name, not a number");
  if (!lex_expect(p, ':') || !lex_type(p, &type)) return false;
  const uint32_t node = (is_state ? ir_add_state : ir_add_input)(p->g, lex_text(p, name), &type);
  return !lex_graph_failed(p, start) && names_define(p, start, name, node);
}

static bool parse_head(graph_parser *p) {
  text_name title;
  lex_lines(p);
  if (!lex_take_word(p, "graph")) return lex_fail(p, p->at, "'graph' is expected");
  if (!lex_expect(p, '@') || !lex_name(p, &title)) return false;
  p->g->title = ir_arena_text(p->g->arena, title.at, title.length);
  if (!p->g->title || !lex_expect(p, '(')) return lex_fail(p, p->at, "out of memory");
  for (lex_lines(p); !lex_peek(p, ')'); lex_lines(p)) {
    if (p->g->inputs.count && !lex_expect(p, ',')) return false;
    lex_lines(p);
    if (!parse_port(p)) return false;
  }
  return lex_expect(p, ')') && lex_expect(p, '{');
}

/* ---- statements ---- */
bool parse_define(graph_parser *p, const text_result *result, uint32_t node) {
  if (!result->name.numbered && !ir_at(p->g, node)->name) ir_set_name(p->g, node, lex_text(p, result->name));
  return !lex_graph_failed(p, result->at) && names_define(p, result->at, result->name, node);
}

static bool parse_result(graph_parser *p, text_result *out) {
  lex_blanks(p);
  *out = (text_result){.at = p->at};
  if (lex_take_word(p, "_")) {
    out->ignored = true;
    return true;
  }
  if (!lex_value(p, &out->name)) return false;
  out->typed = lex_take(p, ':');
  return !out->typed || lex_type(p, &out->type);
}

static bool parse_statement(graph_parser *p);

static bool end_statement(graph_parser *p) { return lex_at_line_end(p) || lex_fail(p, p->at, "the line should end here"); }

static bool check_type(graph_parser *p, const text_result *result, uint32_t node) {
  const ir_tensor *is = &ir_at(p->g, node)->type;
  if (!result->typed || (is->dtype == result->type.dtype && ir_same_shape(is, &result->type))) return true;
  return lex_fail(p, result->at, "the value has another type than declared");
}

bool parse_finish(graph_parser *p, const text_result *result, uint32_t node) {
  if (!check_type(p, result, node)) return false;
  return result->ignored || parse_define(p, result, node);
}

/* (%a: type = %x, ..) */
static bool parse_carried(graph_parser *p, uint32_t count, text_result *inside, uint32_t *initial) {
  lex_lines(p);
  if (!lex_expect(p, '(')) return false;
  for (uint32_t i = 0; i < count; i++) {
    lex_lines(p);
    if (i && !lex_expect(p, ',')) return false;
    lex_lines(p);
    if (!parse_result(p, &inside[i]) || !lex_expect(p, '=') || !parse_operand_value(p, &initial[i])) return false;
    if (!check_type(p, &inside[i], initial[i])) return false;
  }
  lex_lines(p);
  if (lex_peek(p, ',')) return lex_fail(p, p->at, "more carried values than results");
  return lex_expect(p, ')') && lex_expect(p, '{');
}

bool parse_body(graph_parser *p, uint32_t count, uint32_t *next) {
  for (lex_lines(p); !lex_take_word(p, "yield"); lex_lines(p))
    if (!parse_statement(p)) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (i && !lex_expect(p, ',')) return false;
    if (!parse_operand_value(p, &next[i])) return false;
  }
  if (!end_statement(p)) return false;
  lex_lines(p);
  return lex_expect(p, '}');
}

typedef struct repeat_parts {
  uint32_t initial[TEXT_MAX_VALUES], inside[TEXT_MAX_VALUES], next[TEXT_MAX_VALUES], made[TEXT_MAX_VALUES];
  bool unused[TEXT_MAX_VALUES];
} repeat_parts;

static bool parse_repeat(graph_parser *p, uint32_t count, const text_result *results) {
  text_result *inside = IR_NEW_ARRAY(&p->temp, text_result, count);
  repeat_parts *parts = IR_NEW(&p->temp, repeat_parts);
  const char *start = p->at;
  text_name note = {0};
  ir_expr trips;
  int64_t goes_on = 0;
  if (!inside || !parts) return lex_fail(p, start, "out of memory");
  if (p->depth == TEXT_MAX_DEPTH) return lex_fail(p, start, "repeats are nested more than %d deep", TEXT_MAX_DEPTH);
  if (!lex_take_word(p, "trips") || !lex_expect(p, '=')) return lex_fail(p, p->at, "trips= is expected");
  if (!lex_expr(p, &trips)) return false;
  const bool ends = lex_take_word(p, "while");
  if (ends && (!lex_expect(p, '=') || !lex_int(p, &goes_on))) return false;
  if (!parse_carried(p, count, inside, parts->initial)) return false;
  ir_repeat_begin(p->g, count, parts->initial, trips, parts->inside);
  if (ends) ir_repeat_while(p->g, goes_on >= 0 && goes_on < count ? (uint32_t)goes_on : count);
  if (lex_graph_failed(p, start)) return false;
  for (uint32_t i = 0; i < count; i++)
    if (!inside[i].ignored && !parse_define(p, &inside[i], parts->inside[i])) return false;
  p->depth++;
  if (!parse_body(p, count, parts->next)) return false;
  p->depth--;
  for (uint32_t i = 0; i < count; i++) parts->unused[i] = results[i].ignored;
  graph_repeat_end(p->g, count, parts->next, parts->unused, parts->made);
  if (lex_graph_failed(p, start) || !parse_note(p, &note)) return false;
  if (note.length) ir_set_name(p->g, parts->made[0], lex_text(p, note));
  for (uint32_t i = 0; i < count; i++) {
    if (results[i].ignored) continue;
    if (!check_type(p, &results[i], parts->made[i])) return false;
    if (!parse_define(p, &results[i], parts->made[i])) return false;
  }
  return true;
}

/* %a, %b: type = operator .. */
static bool parse_assignment(graph_parser *p) {
  text_result one, *results = &one;
  uint32_t count = 1;
  if (!parse_result(p, &one)) return false;
  if (lex_peek(p, ',')) {
    results = IR_NEW_ARRAY(&p->temp, text_result, TEXT_MAX_VALUES);
    if (!results) return lex_fail(p, p->at, "out of memory");
    results[0] = one;
    while (lex_take(p, ',')) {
      if (count == TEXT_MAX_VALUES) return lex_fail(p, p->at, "more than %d results", TEXT_MAX_VALUES);
      if (!parse_result(p, &results[count++])) return false;
    }
  }
  if (!lex_expect(p, '=')) return false;
  if (lex_take_word(p, "repeat")) return parse_repeat(p, count, results);
  if (!lex_take_word(p, "const")) return parse_call(p, count, results);
  return count == 1 ? parse_const(p, results) : lex_fail(p, one.at, "const has one result");
}

static bool parse_update(graph_parser *p) {
  text_name name;
  uint32_t value;
  lex_blanks(p);
  const char *start = p->at;
  if (!lex_value(p, &name)) return false;
  const uint32_t state = names_find(p, start, name);
  if (!state || !lex_expect(p, ',') || !parse_operand_value(p, &value)) return false;
  ir_add_update(p->g, state, value);
  return !lex_graph_failed(p, start);
}

static bool parse_return(graph_parser *p) {
  p->returned = true;
  for (bool more = !lex_at_line_end(p); more; more = lex_take(p, ',')) {
    text_name name = {0};
    uint32_t value;
    lex_lines(p);
    const char *start = p->at;
    const bool named = lex_peek(p, '"') ? lex_quoted(p, &name) : lex_word(p, &name);
    if (named && !lex_take(p, '=')) {
      name.length = 0; /* a literal such as true or inf */
      p->at = start;
    }
    if (!parse_operand_value(p, &value)) return false;
    ir_add_output(p->g, name.length ? lex_text(p, name) : NULL, value);
    if (lex_graph_failed(p, start)) return false;
  }
  return true;
}

static bool parse_contract(graph_parser *p, ir_contract_kind kind) {
  uint32_t values[TEXT_MAX_VALUES], count = 0;
  lex_blanks(p);
  const char *start = p->at;
  do {
    text_name name;
    lex_lines(p);
    const char *at = p->at;
    if (count == TEXT_MAX_VALUES) return lex_fail(p, at, "more than %d values", TEXT_MAX_VALUES);
    if (!lex_value(p, &name)) return false;
    values[count] = names_find_any(p, at, name);
    if (!values[count++]) return false;
  } while (lex_take(p, ','));
  ir_add_contract(p->g, kind, count, values);
  return !lex_graph_failed(p, start);
}

static bool parse_order(graph_parser *p) {
  const char *start = p->at;
  if (p->depth) return lex_fail(p, start, "an operator or yield is expected");
  if (lex_take_word(p, "return")) return p->returned ? lex_fail(p, start, "a second return") : parse_return(p);
  if (lex_take_word(p, "update")) return parse_update(p);
  for (int kind = IR_MUST_FUSE; kind <= IR_BARRIER; kind++)
    if (lex_take_word(p, graph_contract_words[kind])) return parse_contract(p, (ir_contract_kind)kind);
  return lex_fail(p, start, "a statement is expected");
}

static bool starts_assignment(graph_parser *p) {
  if (lex_peek(p, '%')) return true;
  return lex_peek(p, '_') && (p->end - p->at == 1 || p->at[1] == ' ' || p->at[1] == ',');
}

static bool parse_statement(graph_parser *p) {
  const bool assignment = starts_assignment(p);
  if (assignment && p->returned) return lex_fail(p, p->at, "an operator after return");
  return (assignment ? parse_assignment(p) : parse_order(p)) && end_statement(p);
}

static bool parse_graph(graph_parser *p) {
  if (!parse_symbols(p) || !parse_definitions(p) || !parse_head(p)) return false;
  for (lex_lines(p); !lex_peek(p, '}'); lex_lines(p))
    if (p->at == p->end ? !lex_fail(p, p->at, "'}' is missing") : !parse_statement(p)) return false;
  if (!p->returned) return lex_fail(p, p->at, "the graph has no return");
  p->at++;
  lex_lines(p);
  return p->at == p->end || lex_fail(p, p->at, "text after the graph");
}

snt_result ir_graph_parse_with(ir_graph *g, const char *text, size_t length, const ir_text_hooks *hooks, snt_diag *diag) {
  graph_parser p = {.g = g, .hooks = hooks, .text = text, .at = text, .end = text + length, .diag = diag, .result = SNT_OK};
  snt_diag unused;
  if (!diag) p.diag = &unused;
  ir_arena_init(&p.temp, &g->arena->host);
  const bool parsed = parse_graph(&p), starved = p.temp.failed || g->arena->failed;
  ir_arena_free(&p.temp);
  if (starved) return ir_fail(diag, SNT_E_HOST_MEM, "parse graph", 0, "out of host memory");
  return parsed ? SNT_OK : p.result;
}

snt_result ir_graph_parse(ir_graph *g, const char *text, size_t length, snt_diag *diag) {
  return ir_graph_parse_with(g, text, length, NULL, diag);
}
