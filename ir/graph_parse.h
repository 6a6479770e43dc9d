/* What the files of the graph parser share. The parser reads characters, not tokens: only a line's end ends a statement, and inside
   brackets lines may be broken. The first error sticks; every function then returns false. */
#ifndef IR_GRAPH_PARSE_H
#define IR_GRAPH_PARSE_H
#include "ir/graph_text.h"
#include "ir/literal.h"

typedef struct text_name {
  const char *at;
  uint32_t length;
  bool numbered;
} text_name; /* of a value: its number or its name, unquoted */
typedef struct name_entry {
  text_name name;
  uint32_t node;
} name_entry;
typedef struct graph_parser {
  ir_graph *g;
  const ir_text_hooks *hooks;
  const char *text, *at, *end;
  snt_diag *diag;
  snt_result result; /* of the first error */
  ir_arena temp;     /* unquoted names, the table */
  name_entry *names; /* open hash */
  uint32_t name_count, name_size;
  uint32_t lines_before; /* of the text: what `text` begins with is in this line of what the user gave, from 0 */
  uint32_t depth;        /* of repeats */
  bool returned;
  struct text_call *call; /* room for one call, used again by each statement */
} graph_parser;

/* One result of a statement as written. */
typedef struct text_result {
  text_name name;
  const char *at;
  bool ignored, typed;
  ir_tensor type;
} text_result;
enum { TEXT_MAX_VALUES = 255, TEXT_MAX_INTS = 16, TEXT_MAX_DEPTH = 64 };

/* ---- ir/graph/lex.c ---- */
bool lex_fail(graph_parser *, const char *at, const char *format, ...) IR_PRINTF(3, 4);
bool lex_graph_failed(graph_parser *, const char *at); /* takes over the graph's error, if there is one: true then */
void lex_blanks(graph_parser *);                       /* blanks and comments up to the line's end */
void lex_lines(graph_parser *);                        /* line ends, too */
bool lex_peek(graph_parser *, char c);                 /* after blanks */
bool lex_take(graph_parser *, char c);
bool lex_expect(graph_parser *, char c);
bool lex_at_line_end(graph_parser *);
bool lex_word(graph_parser *, text_name *out); /* an identifier; false without an error if there is none */
bool lex_is(text_name, const char *word);
bool lex_take_word(graph_parser *, const char *word);
bool lex_quoted(graph_parser *, text_name *out);    /* "..." */
bool lex_long_text(graph_parser *, text_name *out); /* "..." or, over many lines and as it is, """...""" */
bool lex_name(graph_parser *, text_name *out);      /* identifier or quoted */
bool lex_value(graph_parser *, text_name *out);     /* %name %12 %"any text" */
bool lex_expr(graph_parser *, ir_expr *out);
bool lex_int(graph_parser *, int64_t *out);
bool lex_dtype(graph_parser *, int32_t *out);
bool lex_type(graph_parser *, ir_tensor *out);
const char *lex_text(graph_parser *, text_name); /* terminated, in the parser's arena */

/* ---- names ---- */
bool names_define(graph_parser *, const char *at, text_name, uint32_t node);
uint32_t names_find(graph_parser *, const char *at, text_name);     /* 0 after an error */
uint32_t names_find_any(graph_parser *, const char *at, text_name); /* of a repeat that is closed, too */

/* ---- ir/graph/parse_call.c ---- */
/* A value or literal with its own type, as in return and yield. */
bool parse_operand_value(graph_parser *, uint32_t *out);
/* The operator after "=": builds its node or nodes and defines the results. */
bool parse_call(graph_parser *, uint32_t count, const text_result *results);
bool parse_note(graph_parser *, text_name *note); /* , name="..." if it is there */
/* ---- ir/graph/parse_const.c ---- */
bool parse_const(graph_parser *, const text_result *);
uint32_t parse_add_literal(graph_parser *, const char *at, const ir_number *, int32_t dtype);
/* ---- ir/graph/parse.c ---- */
bool parse_symbols(graph_parser *);                                    /* the block before a graph or a plan; none is fine */
bool parse_define(graph_parser *, const text_result *, uint32_t node); /* names the node and makes the name known */
bool parse_body(graph_parser *, uint32_t count, uint32_t *next);       /* statements, then yield and "}" */
bool parse_finish(graph_parser *, const text_result *, uint32_t node); /* checks the declared type, then parse_define */
/* ---- ir/graph/define.c: operators of the user's own ---- */
bool parse_definitions(graph_parser *); /* as many as stand here; none is fine */
const ir_definition *definition_find(const ir_graph *, text_name);
typedef struct definition_call {
  const ir_definition *definition;
  const char *at; /* where it is called */
  uint32_t count, args[TEXT_MAX_VALUES];
  struct text_call *call;
} definition_call;
bool definition_call_out(graph_parser *, const definition_call *, uint32_t *out); /* writes it out; its value */
/* One `key=value` of a call that is being gathered, and building it: ir/graph/parse_call.c */
void call_begin(graph_parser *, struct text_call *, ir_op);
bool call_attr(graph_parser *, struct text_call *);
uint32_t call_build(graph_parser *, struct text_call *, uint32_t count, const uint32_t *args, uint32_t more,
                    const ir_attr_value *added); /* 0 after an error */
#endif
