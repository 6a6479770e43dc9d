/* Characters, words, names and types of the graph text. */
#include "ir/graph_parse.h"
#include <stdio.h>

bool lex_fail(graph_parser *p, const char *at, const char *format, ...) {
  if (p->result != SNT_OK) return false;
  uint32_t line = 1 + p->lines_before, column = 1;
  for (const char *c = p->text; c < at; c++) line += *c == '\n', column = *c == '\n' ? 1 : column + 1;
  char text[sizeof p->diag->text];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  p->result = SNT_E_PARSE;
  ir_fail(p->diag, SNT_E_PARSE, "parse graph", 0, "%u:%u: %s", line, column, text);
  return false;
}

bool lex_graph_failed(graph_parser *p, const char *at) {
  if (p->result != SNT_OK) return true;
  if (!p->g->failed && !p->g->pool->failed) return false;
  lex_fail(p, at, "%s", p->g->failed ? p->g->first_error.text : "a number is too large");
  p->result = p->g->failed ? p->g->first_error.result : SNT_E_SHAPE;
  if (p->diag) p->diag->result = p->result;
  return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

void lex_blanks(graph_parser *p) {
  while (p->at < p->end) {
    if (*p->at == '#')
      while (p->at < p->end && *p->at != '\n') p->at++;
    else if (*p->at == ' ' || *p->at == '\t' || *p->at == '\r') p->at++;
    else return;
  }
}

void lex_lines(graph_parser *p) {
  for (;;) {
    lex_blanks(p);
    if (p->at == p->end || *p->at != '\n') return;
    p->at++;
  }
}

bool lex_peek(graph_parser *p, char c) {
  lex_blanks(p);
  return p->at < p->end && *p->at == c;
}

bool lex_take(graph_parser *p, char c) {
  if (!lex_peek(p, c)) return false;
  p->at++;
  return true;
}

bool lex_expect(graph_parser *p, char c) { return lex_take(p, c) || lex_fail(p, p->at, "'%c' is expected", c); }

bool lex_at_line_end(graph_parser *p) {
  lex_blanks(p);
  return p->at == p->end || *p->at == '\n' || *p->at == '}';
}

bool lex_word(graph_parser *p, text_name *out) {
  lex_blanks(p);
  const char *start = p->at;
  if (start == p->end || !is_letter(*start)) return false;
  while (p->at < p->end && (is_letter(*p->at) || is_digit(*p->at) || *p->at == '.')) p->at++;
  *out = (text_name){start, (uint32_t)(p->at - start), false};
  return true;
}

bool lex_is(text_name name, const char *word) { return strlen(word) == name.length && memcmp(word, name.at, name.length) == 0; }

bool lex_take_word(graph_parser *p, const char *word) {
  const char *start = p->at;
  text_name name;
  if (lex_word(p, &name) && lex_is(name, word)) return true;
  p->at = start;
  return false;
}

static int hex_digit(char c) { return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

bool lex_quoted(graph_parser *p, text_name *out) {
  const char *start = p->at;
  if (!lex_expect(p, '"')) return false;
  size_t room = 0;
  while (p->at + room < p->end && p->at[room] != '"' && p->at[room] != '\n') room += p->at[room] == '\\' ? 2 : 1;
  char *text = ir_arena_take(&p->temp, room + 1, 1);
  if (!text) return lex_fail(p, start, "out of memory");
  uint32_t length = 0;
  for (; p->at < p->end && *p->at != '"' && *p->at != '\n'; p->at++) {
    char c = *p->at;
    if (c == '\\' && p->end - p->at > 3 && p->at[1] == 'x' && hex_digit(p->at[2]) >= 0 && hex_digit(p->at[3]) >= 0) {
      c = (char)(hex_digit(p->at[2]) * 16 + hex_digit(p->at[3]));
      p->at += 3;
    } else if (c == '\\' && p->end - p->at > 1 && (p->at[1] == '"' || p->at[1] == '\\')) {
      c = *++p->at;
    } else if (c == '\\') {
      return lex_fail(p, p->at, "only \\\", \\\\ and \\xhh may follow a backslash");
    }
    if (c == 0) return lex_fail(p, p->at, "a name holds a zero byte");
    text[length++] = c;
  }
  *out = (text_name){text, length, false};
  return lex_expect(p, '"');
}

static bool at_three_quotes(const graph_parser *p, const char *at) { return p->end - at >= 3 && !memcmp(at, "\"\"\"", 3); }

bool lex_long_text(graph_parser *p, text_name *out) {
  lex_blanks(p);
  const char *start = p->at;
  if (!at_three_quotes(p, start)) return lex_quoted(p, out);
  for (p->at += 3; p->at < p->end && !at_three_quotes(p, p->at); p->at++)
    if (!*p->at) return lex_fail(p, p->at, "a text holds a zero byte");
  if (p->at == p->end) return lex_fail(p, start, "the text is not closed");
  *out = (text_name){start + 3, (uint32_t)(p->at - start - 3), false};
  p->at += 3;
  return true;
}

bool lex_name(graph_parser *p, text_name *out) {
  if (lex_peek(p, '"')) return lex_quoted(p, out);
  return lex_word(p, out) || lex_fail(p, p->at, "a name is expected");
}

bool lex_value(graph_parser *p, text_name *out) {
  if (!lex_expect(p, '%')) return false;
  if (p->at < p->end && *p->at == '"') return lex_quoted(p, out) && (out->length || lex_fail(p, p->at, "a name is empty"));
  const char *start = p->at;
  const bool numbered = start < p->end && is_digit(*start);
  while (p->at < p->end && (is_digit(*p->at) || (!numbered && (is_letter(*p->at) || *p->at == '.')))) p->at++;
  *out = (text_name){start, (uint32_t)(p->at - start), numbered};
  if (out->length == 0 || *start == '.') return lex_fail(p, start, "a name or a number must follow %%");
  return true;
}

bool lex_expr(graph_parser *p, ir_expr *out) {
  lex_blanks(p);
  const char *start = p->at;
  if (expr_parse(p->g->pool, &p->at, p->end, out)) return !lex_graph_failed(p, start);
  return lex_fail(p, start, "a number or an expression over the symbols is expected");
}

bool lex_int(graph_parser *p, int64_t *out) {
  ir_expr value;
  const char *start = p->at;
  if (!lex_expr(p, &value)) return false;
  return expr_is_const(p->g->pool, value, out) || lex_fail(p, start, "a number is expected");
}

bool lex_dtype(graph_parser *p, int32_t *out) {
  text_name word;
  lex_blanks(p);
  const char *start = p->at;
  *out = lex_word(p, &word) ? ir_dtype_find(word.at, word.length) : 0;
  return *out != 0 || lex_fail(p, start, "an element type is expected");
}

bool lex_type(graph_parser *p, ir_tensor *out) {
  int32_t dtype;
  *out = (ir_tensor){0};
  if (!lex_dtype(p, &dtype)) return false;
  out->dtype = (uint8_t)dtype;
  if (p->at == p->end || *p->at != '[') return true;
  p->at++;
  while (!lex_peek(p, ']')) {
    if (out->rank == SNT_MAX_RANK) return lex_fail(p, p->at, "more than %d axes", SNT_MAX_RANK);
    if (out->rank && !lex_expect(p, ',')) return false;
    if (!lex_expr(p, &out->dims[out->rank])) return false;
    out->rank++;
  }
  return lex_expect(p, ']');
}

const char *lex_text(graph_parser *p, text_name name) {
  const char *text = ir_arena_text(&p->temp, name.at, name.length);
  if (!text) lex_fail(p, p->at, "out of memory");
  return text ? text : "";
}

/* ---- names ---- */
static name_entry *find_entry(graph_parser *p, text_name name) {
  uint32_t at = (uint32_t)ir_hash64(name.numbered, name.at, name.length) & (p->name_size - 1);
  for (;; at = (at + 1) & (p->name_size - 1)) {
    name_entry *e = &p->names[at];
    if (!e->node || (e->name.numbered == name.numbered && e->name.length == name.length && memcmp(e->name.at, name.at, name.length) == 0))
      return e;
  }
}

static bool grow_names(graph_parser *p) {
  name_entry *old = p->names;
  const uint32_t old_size = p->name_size, size = old_size ? old_size * 2 : 64;
  name_entry *table = IR_NEW_ARRAY(&p->temp, name_entry, size);
  if (!table) return lex_fail(p, p->at, "out of memory");
  p->names = table;
  p->name_size = size;
  for (uint32_t i = 0; i < old_size; i++)
    if (old[i].node) *find_entry(p, old[i].name) = old[i];
  return true;
}

bool names_define(graph_parser *p, const char *at, text_name name, uint32_t node) {
  if (p->name_count * 2 >= p->name_size && !grow_names(p)) return false;
  name_entry *entry = find_entry(p, name);
  if (entry->node) return lex_fail(p, at, "%%%.*s is defined twice", (int)name.length, name.at);
  *entry = (name_entry){name, node};
  p->name_count++;
  return true;
}

/* The line in which `name` is given a value after `at`, 0: nowhere. Only to say more about an error. */
static uint32_t later_definition(const graph_parser *p, const char *at, text_name name) {
  uint32_t line = 1;
  for (const char *c = p->text; c < at; c++) line += *c == '\n';
  for (const char *c = at; c < p->end; c++) {
    line += *c == '\n';
    if (*c != '%' || (size_t)(p->end - c) < name.length + 1u || memcmp(c + 1, name.at, name.length) != 0) continue;
    const char *after = c + 1 + name.length;
    while (after < p->end && *after == ' ') after++;
    if (after < p->end && (*after == ':' || *after == '=')) return line;
  }
  return 0;
}

/* Whether `region` is the open one or around it. */
static bool is_open(const ir_graph *g, uint32_t region) {
  for (uint32_t open = g->open_region; open; open = g->regions.at[open].parent)
    if (open == region) return true;
  return region == 0;
}

uint32_t names_find_any(graph_parser *p, const char *at, text_name name) {
  const name_entry *entry = p->name_size ? find_entry(p, name) : NULL;
  if (!entry || !entry->node) {
    const uint32_t line = later_definition(p, at, name);
    if (line)
      lex_fail(p, at, "%%%.*s is used before line %u defines it: values come in order, and a cycle has none", (int)name.length, name.at,
               line);
    else lex_fail(p, at, "%%%.*s is not defined", (int)name.length, name.at);
    return 0;
  }
  return entry->node;
}

uint32_t names_find(graph_parser *p, const char *at, text_name name) {
  const uint32_t node = names_find_any(p, at, name);
  if (!node || is_open(p->g, ir_at(p->g, node)->region)) return node;
  lex_fail(p, at, "%%%.*s belongs to a repeat that is closed", (int)name.length, name.at);
  return 0;
}
