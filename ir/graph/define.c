/* Operators that the user defines in the graph text, `custom` and `kernel`: kept as text, and written out where they are called, like a composite.
   What comes out is what the body computes, and around it a `custom` or `opaque` node that holds the texts for the targets. */
#include "ir/composites.h"
#include "ir/custom.h"
#include "ir/graph_parse.h"
#include "ir/graph_private.h"

enum { MAX_EXTENTS = IR_CUSTOM_ARGS * SNT_MAX_RANK };

/* ---- definitions ---- */
const ir_definition *definition_find(const ir_graph *g, text_name name) {
  for (uint32_t i = 0; i < g->definitions.count; i++)
    if (lex_is(name, g->definitions.at[i].name)) return &g->definitions.at[i];
  return NULL;
}

static bool skip_string(graph_parser *p) {
  text_name unused;
  return lex_long_text(p, &unused);
}

/* To the end of the line that closes all brackets and ends in no comma. */
static bool skip_definition(graph_parser *p) {
  const char *start = p->at;
  uint32_t depth = 0;
  bool body = false, comma = false;
  while (p->at < p->end && (depth || !body || comma || *p->at != '\n')) {
    const char c = *p->at;
    if (c == '"') {
      if (!skip_string(p)) return false;
      comma = false;
      continue;
    }
    if (c == '#') {
      while (p->at < p->end && *p->at != '\n') p->at++;
      continue;
    }
    if (c == '(' || c == '[' || c == '{') depth++;
    if ((c == ')' || c == ']' || c == '}') && depth-- == 0) return lex_fail(p, p->at, "'%c' closes nothing", c);
    body |= c == '{';
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') comma = c == ',';
    p->at++;
  }
  return !depth || lex_fail(p, start, "the definition is not closed");
}

static uint32_t line_of(const graph_parser *p, const char *at) {
  uint32_t line = p->lines_before;
  for (const char *c = p->text; c < at; c++) line += *c == '\n';
  return line;
}

static bool define(graph_parser *p, bool opaque) {
  text_name name;
  const char *start = p->at;
  if (!lex_word(p, &name)) return lex_fail(p, start, "the operator's name is expected");
  if (ir_op_find(name.at, name.length) || ir_composite_find(name.at, name.length))
    return lex_fail(p, start, "%.*s is an operator already", (int)name.length, name.at);
  if (definition_find(p->g, name)) return lex_fail(p, start, "%.*s is defined twice", (int)name.length, name.at);
  if (name.length >= IR_CUSTOM_NAME) return lex_fail(p, start, "the name is longer than %d letters", IR_CUSTOM_NAME - 1);
  if (!lex_peek(p, '(')) return lex_fail(p, p->at, "'(' is expected");
  ir_definition d = {.opaque = opaque, .line = line_of(p, p->at)};
  const char *from = p->at;
  if (!skip_definition(p)) return false;
  d.length = (uint32_t)(p->at - from);
  d.text = ir_arena_text(p->g->arena, from, d.length);
  d.name = ir_arena_text(p->g->arena, name.at, name.length);
  if (!d.text || !d.name || !IR_PUSH(p->g->arena, &p->g->definitions, d)) return lex_fail(p, start, "out of memory");
  return true;
}

bool parse_definitions(graph_parser *p) {
  for (;;) {
    lex_lines(p);
    const bool opaque = lex_take_word(p, "kernel");
    if (!opaque && !lex_take_word(p, "custom")) return true;
    if (!define(p, opaque)) return false;
  }
}

/* ---- writing one out ---- */
typedef struct writing {
  const definition_call *from;
  uint32_t alias_count;
  expr_alias aliases[MAX_EXTENTS];
  ir_text params; /* the names that the texts use: operands; `result` and scalars of a kernel */
  uint32_t scalar_count;
  ir_expr scalars[IR_CUSTOM_SCALARS];
} writing;

/* An extent of a parameter: a number, or a word that stands for it from here on. */
static bool take_extent(graph_parser *p, writing *w, ir_expr is) {
  expr_pool *pool = p->g->pool;
  text_name word;
  lex_blanks(p);
  const char *start = p->at;
  if (!lex_word(p, &word)) {
    ir_expr wanted;
    if (!lex_expr(p, &wanted)) return false;
    return wanted == is || lex_fail(p, start, "%s: an operand has another extent here", w->from->definition->name);
  }
  for (uint32_t i = 0; i < w->alias_count; i++)
    if (w->aliases[i].length == word.length && !memcmp(w->aliases[i].at, word.at, word.length))
      return w->aliases[i].value == is ||
             lex_fail(p, start, "%s: operands differ in extent %.*s", w->from->definition->name, (int)word.length, word.at);
  w->aliases[w->alias_count++] = (expr_alias){word.at, word.length, is};
  pool->aliases = w->aliases;
  pool->alias_count = w->alias_count;
  return true;
}

static bool take_type(graph_parser *p, writing *w, uint32_t number, const ir_tensor *is) {
  int32_t dtype;
  const char *start = p->at;
  const char *name = w->from->definition->name;
  if (!lex_dtype(p, &dtype)) return false;
  if (dtype != is->dtype)
    return lex_fail(p, start, "%s: operand %u is %s, %s is wanted", name, number + 1, ir_dtypes[is->dtype].name, ir_dtypes[dtype].name);
  if (p->at == p->end || *p->at != '[') return true;
  p->at++;
  for (uint32_t i = 0; i < is->rank; i++) {
    if (i && !lex_expect(p, ',')) return false;
    if (lex_peek(p, ']')) return lex_fail(p, start, "%s: operand %u has rank %u", name, number + 1, is->rank);
    if (!take_extent(p, w, is->dims[i])) return false;
  }
  return lex_peek(p, ']') ? lex_expect(p, ']') : lex_fail(p, p->at, "%s: operand %u has rank %u", name, number + 1, is->rank);
}

static bool take_params(graph_parser *p, writing *w) {
  const definition_call *from = w->from;
  const char *name = from->definition->name;
  uint32_t count = 0;
  if (!lex_expect(p, '(')) return false;
  for (lex_lines(p); !lex_peek(p, ')'); lex_lines(p), count++) {
    text_name param;
    if (count && !lex_expect(p, ',')) return false;
    lex_lines(p);
    const char *start = p->at;
    if (!lex_value(p, &param)) return false;
    if (param.numbered) return lex_fail(p, start, "an operand needs a name, not a number");
    if (count == from->count) return lex_fail(p, start, "%s is called with %u operands and has more", name, count);
    ir_text_put(&w->params, param.at, param.length);
    ir_text_add(&w->params, ",");
    if (lex_take(p, ':') && !take_type(p, w, count, &ir_at(p->g, from->args[count])->type)) return false;
    if (!names_define(p, start, param, from->args[count])) return false;
  }
  return lex_expect(p, ')');
}

/* How many parameters there are, for the error that is told where the call stands. Extents may hold brackets and remainders. */
static uint32_t count_params(const ir_definition *d) {
  uint32_t count = 0, depth = 0;
  for (const char *c = d->text; *c && (*c != ')' || depth > 1); c++) {
    depth += *c == '(' || *c == '[';
    depth -= *c == ')' || *c == ']';
    count += *c == '%' && depth == 1;
  }
  return count;
}

/* scalars=[h,w]: words, which are also their names in the texts. */
static bool take_scalars(graph_parser *p, writing *w) {
  text_name word;
  if (!lex_expect(p, '=') || !lex_expect(p, '[')) return false;
  for (; !lex_peek(p, ']'); w->scalar_count++) {
    if (w->scalar_count && !lex_expect(p, ',')) return false;
    lex_blanks(p);
    const char *start = p->at;
    if (w->scalar_count == IR_CUSTOM_SCALARS) return lex_fail(p, start, "more than %d scalars", IR_CUSTOM_SCALARS);
    if (!lex_word(p, &word)) return lex_fail(p, start, "a scalar is the name of an extent or a symbol");
    p->at = start;
    if (!lex_expr(p, &w->scalars[w->scalar_count])) return false;
    ir_text_put(&w->params, word.at, word.length);
    ir_text_add(&w->params, ",");
  }
  return lex_expect(p, ']');
}

/* key=value, key=value .. to the end of the line. */
static bool take_attrs(graph_parser *p, writing *w) {
  for (bool more = !lex_at_line_end(p); more; more = lex_take(p, ',')) {
    lex_lines(p);
    if (w->from->definition->opaque && lex_take_word(p, "scalars")) {
      if (!take_scalars(p, w)) return false;
    } else if (!call_attr(p, w->from->call)) {
      return false;
    }
  }
  lex_lines(p);
  return p->at == p->end || lex_fail(p, p->at, "the definition should end here");
}

static uint32_t build(graph_parser *p, writing *w, uint32_t value) {
  const definition_call *from = w->from;
  const char *name = from->definition->name;
  uint32_t args[1 + IR_CUSTOM_ARGS] = {value}, count = 0;
  ir_attr_value added[3];
  for (uint32_t i = 0; i < from->count; i++) args[1 + i] = from->args[i];
  added[count] = (ir_attr_value){.key = IR_ATTR_label};
  added[count].ints = ir_pack_text(&p->temp, name, strlen(name), &added[count].count);
  added[++count] = (ir_attr_value){.key = IR_ATTR_params}; /* the text ends in a comma */
  added[count].ints = ir_pack_text(&p->temp, w->params.at, w->params.length - 1, &added[count].count);
  count++;
  if (w->scalar_count) added[count++] = (ir_attr_value){IR_ATTR_scalars, w->scalar_count, w->scalars};
  if (p->temp.failed || w->params.failed) return lex_fail(p, p->at, "out of memory");
  return call_build(p, from->call, 1 + from->count, args, count, added);
}

static bool write_out(graph_parser *p, writing *w, uint32_t *out) {
  const ir_definition *d = w->from->definition;
  uint32_t value;
  if (!take_params(p, w) || !lex_expect(p, '{') || !parse_body(p, 1, &value)) return false;
  if (d->opaque) ir_text_add(&w->params, "result,");
  call_begin(p, w->from->call, d->opaque ? IR_OP_opaque : IR_OP_custom);
  if (!take_attrs(p, w)) return false;
  *out = build(p, w, value);
  return !lex_graph_failed(p, p->text);
}

bool definition_call_out(graph_parser *p, const definition_call *from, uint32_t *out) {
  const ir_definition *d = from->definition;
  expr_pool *pool = p->g->pool;
  const graph_parser outer = *p;
  const expr_alias *aliases = pool->aliases;
  const uint32_t alias_count = pool->alias_count, wanted = count_params(d);
  writing *w = IR_NEW(&p->temp, writing);
  if (!w) return lex_fail(p, from->at, "out of memory");
  if (wanted != from->count) return lex_fail(p, from->at, "%s takes %u operands, %u are given", d->name, wanted, from->count);
  if (wanted > IR_CUSTOM_ARGS) return lex_fail(p, from->at, "%s has more than %d operands", d->name, IR_CUSTOM_ARGS);
  if (p->depth == TEXT_MAX_DEPTH) return lex_fail(p, from->at, "%s: definitions call each other without end", d->name);
  w->from = from;
  ir_text_init(&w->params, &p->temp);
  p->text = p->at = d->text;
  p->end = d->text + d->length;
  p->lines_before = d->line;
  p->names = NULL;
  p->name_count = p->name_size = 0;
  p->returned = false;
  p->depth++;
  pool->alias_count = 0;
  const bool written = write_out(p, w, out);
  pool->aliases = aliases;
  pool->alias_count = alias_count;
  p->text = outer.text, p->at = outer.at, p->end = outer.end;
  p->lines_before = outer.lines_before;
  p->names = outer.names;
  p->name_count = outer.name_count, p->name_size = outer.name_size;
  p->returned = outer.returned;
  p->depth = outer.depth;
  return written;
}

snt_result ir_graph_define(ir_graph *g, const char *text, size_t length, snt_diag *diag) {
  snt_diag unused;
  graph_parser p = {.g = g, .text = text, .at = text, .end = text + length, .diag = diag ? diag : &unused, .result = SNT_OK};
  ir_arena_init(&p.temp, &g->arena->host);
  bool parsed = parse_definitions(&p);
  if (parsed && p.at != p.end) parsed = lex_fail(&p, p.at, "'custom' or 'kernel' is expected");
  const bool starved = p.temp.failed || g->arena->failed;
  ir_arena_free(&p.temp);
  if (starved) return ir_no_memory(diag, "define");
  return parsed ? SNT_OK : p.result;
}
