/* Graphs of pairs: what one kernel's structure is made for, read by what may be in its way. From a sequence of choices, one byte a
   decision, 0 the simplest: an operator (HERO of pairs.def), perhaps a second that reads it as it lies, before them and behind them a value
   that is joined with itself moved (MOVE, JOIN), and perhaps more operators behind that. A value's extents are asked of the parser, which
   also refuses what makes no sense. */
#include "conformance/conform.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
  const char *name, *extents, *ports, *lines, *more; /* more: outputs beside the result */
} row;
// clang-format off
static const row heroes[] = {
#define HERO(name, extents, ports, lines, more) {name, extents, ports, lines, more},
#include "conformance/pairs.def"
#undef HERO
};
static const row moves[] = {
#define MOVE(name, ports, lines) {name, NULL, ports, lines, ""},
#include "conformance/pairs.def"
#undef MOVE
};
static const row joins[] = {
#define JOIN(name, ports, lines, more) {name, NULL, ports, lines, more},
#include "conformance/pairs.def"
#undef JOIN
};
static const uint16_t sizes[][3] = {
  {2, 3, 4}, {5, 7, 4}, {17, 33, 9}, {16, 24, 32}, {32, 64, 33}, {3, 130, 6}, {40, 48, 16}, {1, 40, 70}, {33, 200, 3}, {1, 1, 1}, {24, 2, 20},
};
static const uint8_t types[16] = {SNT_F32, SNT_F32, SNT_F32, SNT_F32, SNT_F32, SNT_F32, SNT_F32, SNT_F32, SNT_F32, SNT_F16, SNT_F16, SNT_I32, SNT_BF16, SNT_F64, SNT_I8, SNT_U8};
// clang-format on
static const char letters[] = "nmk"; /* of sizes */
enum { HEROES = sizeof heroes / sizeof *heroes, MOVES = sizeof moves / sizeof *moves, JOINS = sizeof joins / sizeof *joins };
enum {
  SIZES = sizeof sizes / sizeof *sizes,
  NAME = 24,
  EXTENT = 64,
  PORTS = 2048,
  BODY = CONFORM_TEXT - 2816,
  OUTPUTS = 256,
  SYMBOLS = 200,
  LEAST = 4 /* of a symbol, or a smaller one is 0 */
};

typedef struct buffer {
  char *at;
  size_t size, used;
  bool full;
} buffer;
typedef struct value {
  char name[NAME], extents[SNT_MAX_RANK][EXTENT];
  uint32_t rank;
} value;
typedef struct builder {
  const uint8_t *at, *end;
  const char *type;
  bool is_float;
  char sizes[3][EXTENT], head[SYMBOLS];
  uint32_t rows, outputs, axis;
  char ports_at[PORTS], body_at[BODY], returned_at[OUTPUTS];
  buffer ports, body, returned;
  value x;
  char moved[NAME]; /* $y */
} builder;

static uint32_t choose(builder *b, uint32_t sides) { return b->at < b->end ? *b->at++ % sides : 0; }

static void put(buffer *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(buffer *to, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(to->at + to->used, to->size - to->used, format, arguments);
  va_end(arguments);
  if (length < 0 || to->used + (size_t)length >= to->size) to->full = true;
  else to->used += (size_t)length;
}

/* ---- rows written out ---- */

/* One entry of a list, between `from` and `to`, for an axis. */
static bool put_entry(const builder *b, buffer *out, const char *from, const char *to, uint32_t axis, bool any) {
  if (from == to) return any;
  if (any) put(out, ",");
  for (; from < to; from++) {
    if (*from == '#') put(out, "%s", b->x.extents[axis]);
    else if (*from == '@') put(out, "%u", axis);
    else if (*from == '$' && from[1] == 'R') put(out, "%u", b->x.rank), from++;
    else if (*from == '$') put(out, "%u", (b->axis + (from[1] == 'b')) % b->x.rank), from++;
    else put(out, "%c", *from);
  }
  return true;
}

/* {others|a|b}, of which the text behind the bracket is given; returns its end. */
static const char *put_axes(const builder *b, buffer *out, const char *list, char close) {
  const char *entry[4] = {list}, *c = list;
  uint32_t entries = 1;
  for (; *c != close; c++)
    if (*c == '|') entry[entries++] = c + 1;
  entry[entries] = c + 1;
  bool any = false;
  for (uint32_t axis = 0; axis < b->x.rank; axis++) {
    const bool next = axis == (b->axis + 1) % b->x.rank && entries == 3;
    const uint32_t which = axis == b->axis ? 1 : next ? 2 : 0;
    any = put_entry(b, out, entry[which], entry[which + 1] - 1, axis, any);
  }
  return c;
}

static void put_extents(const builder *b, buffer *out, char between) {
  for (uint32_t i = 0; i < b->x.rank; i++) {
    if (i) put(out, "%c", between);
    put(out, between == '*' ? "(%s)" : "%s", b->x.extents[i]);
  }
}

static void put_size(const builder *b, buffer *out, char letter) {
  const char *size = b->sizes[strchr(letters, letter) - letters];
  put(out, strpbrk(size, "+-*/ ") ? "(%s)" : "%s", size);
}

static void put_word(const builder *b, buffer *out, char letter) {
  switch (letter) {
  case 'x': put(out, "%s", b->x.name); break;
  case 'y': put(out, "%s", b->moved); break;
  case 'T': put(out, "%s", b->type); break;
  case 'n':
  case 'm':
  case 'k': put_size(b, out, letter); break;
  case 'S': put(out, "["), put_extents(b, out, ','), put(out, "]"); break;
  case 'N': put_extents(b, out, '*'); break;
  case 'R': put(out, "%u", b->x.rank); break;
  case 'A': put(out, "%s", b->x.rank ? b->x.extents[b->axis] : "1"); break;
  case 'a': put(out, "%u", b->axis); break;
  default: put(out, "%u", b->x.rank ? (b->axis + 1) % b->x.rank : 0); break;
  }
}

/* A row's text, in which names get the row's number. */
static void put_text(const builder *b, buffer *out, const char *from) {
  static const char names[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  for (; *from; from++) {
    if (*from == '$') {
      put_word(b, out, *++from);
    } else if (*from == '%' && strchr(names, from[1])) {
      const int length = (int)strspn(from + 1, names);
      put(out, "%%%.*s_%u", length, from + 1, b->rows);
      from += length;
    } else if (*from == '{' && from[1] != '\n') {
      put(out, "["), from = put_axes(b, out, from + 1, '}'), put(out, "]");
    } else if (*from == '<') {
      from = put_axes(b, out, from + 1, '>');
    } else {
      put(out, "%c", *from);
    }
  }
}

static void put_row(builder *b, const row *r) {
  b->rows++;
  if (r->ports[0]) put(&b->ports, ", "), put_text(b, &b->ports, r->ports);
  put_text(b, &b->body, r->lines);
  put(&b->body, "\n");
  for (const char *name = r->more; *name; name += strspn(name, " ")) {
    char one[NAME];
    const size_t length = strcspn(name, " ");
    snprintf(one, sizeof one, "%.*s", (int)length, name);
    put(&b->returned, "y%u=", ++b->outputs), put_text(b, &b->returned, one), put(&b->returned, ", ");
    name += length;
  }
}

/* ---- values ---- */

static bool put_graph(const builder *b, char *out) {
  buffer to = {.at = out, .size = CONFORM_TEXT};
  put(&to, "%sgraph @pair(%s) {\n%sreturn %sy=%s\n}\n", b->head, b->ports_at, b->body_at, b->returned_at, b->x.name);
  return !to.full && !b->ports.full && !b->body.full && !b->returned.full;
}

/* The row's value of that name is the one that is read next; its extents are asked of the parser. */
static bool settle(builder *b, const char *letter) {
  static _Thread_local char whole[CONFORM_TEXT];
  conform_parsed p;
  snprintf(b->x.name, sizeof b->x.name, "%%%s_%u", letter, b->rows);
  if (!put_graph(b, whole)) return false;
  bool good = conform_parse(&p, whole, NULL) == SNT_OK;
  if (good) {
    const ir_tensor *type = &ir_at(&p.graph, p.graph.outputs.at[p.graph.outputs.count - 1].node)->type;
    b->x.rank = type->rank;
    for (uint32_t i = 0; i < type->rank; i++) {
      ir_text extent;
      ir_text_init(&extent, &p.arena);
      expr_print(&p.pool, type->dims[i], &extent);
      good = good && extent.length < EXTENT;
      snprintf(b->x.extents[i], EXTENT, "%.*s", (int)extent.length, extent.at);
    }
  }
  conform_forget(&p);
  return good;
}

/* The value joined with itself moved along an axis, counted from the last. */
static bool move_and_join(builder *b, uint32_t move, uint32_t axis, uint32_t join) {
  const value from = b->x;
  b->axis = from.rank ? from.rank - 1 - axis % from.rank : 0;
  put_row(b, &moves[move]);
  if (!settle(b, "m")) return false;
  snprintf(b->moved, sizeof b->moved, "%s", b->x.name);
  b->x = from;
  put_row(b, &joins[join]);
  return settle(b, "r");
}

/* As many elements of the value as the operator wants, in its shape: cut off or filled up, or picked. */
static bool bring(builder *b, const row *hero, uint32_t way) {
  char extents[EXTENT * 4], count[EXTENT * 4];
  buffer shape = {.at = extents, .size = sizeof extents};
  put_text(b, &shape, hero->extents);
  buffer product = {.at = count, .size = sizeof count};
  for (const char *c = extents; *c && !shape.full; c++)
    put(&product, "%.*s", *c == ',' ? 3 : 1, *c == '[' ? "(" : *c == ']' ? ")" : *c == ',' ? ")*(" : c);
  if (shape.full || product.full) return false;
  b->rows++;
  put(&b->body, "%%q_%u = reshape %s, shape=[-1]\n", b->rows, b->x.name);
  if (way == 0) {
    put(&b->body, "%%g_%u = pad %%q_%u, low=[0], high=[%s-", b->rows, b->rows, count);
    put_extents(b, &b->body, '*');
    put(&b->body, "]\n");
  } else {
    put(&b->body, "%%i_%u: i64[%s] = iota axis=0\n%%g_%u = gather %%q_%u, %%i_%u, axis=0\n", b->rows, count, b->rows, b->rows, b->rows);
  }
  put(&b->body, "%%r_%u = reshape %%g_%u, shape=%s\n", b->rows, b->rows, extents);
  return settle(b, "r");
}

/* The value's extents as the operator's sizes, where its shape allows that. */
static bool fit(builder *b, const row *hero) {
  char bound[3][EXTENT] = {""};
  const char *c = hero->extents; /* "[$n,3]" */
  for (uint32_t axis = 0; axis < b->x.rank; axis++) {
    const char *extent = b->x.extents[axis], *entry = *c == ']' ? c : ++c;
    const size_t length = strcspn(entry, ",]");
    c += length;
    if (length == 2 && entry[0] == '$' && strchr(letters, entry[1])) {
      char *size = bound[strchr(letters, entry[1]) - letters];
      if (size[0] && strcmp(size, extent) != 0) return false;
      memcpy(size, extent, EXTENT);
    } else if (strlen(extent) != length || strncmp(extent, entry, length) != 0) {
      return false;
    }
  }
  if (*c != ']') return false;
  for (uint32_t i = 0; i < 3; i++)
    if (bound[i][0]) memcpy(b->sizes[i], bound[i], EXTENT);
  return true;
}

static bool follow(builder *b, uint32_t hero) {
  if (!fit(b, &heroes[hero]) && !bring(b, &heroes[hero], choose(b, 2))) return false;
  put_row(b, &heroes[hero]);
  return settle(b, "r");
}

static bool build(builder *b, uint32_t hero, uint32_t move, uint32_t second) {
  const uint32_t axis = choose(b, 4), join = choose(b, JOINS), before = choose(b, 2 * MOVES), axis_before = choose(b, 4);
  const uint32_t join_before = choose(b, JOINS);
  b->rows++;
  put(&b->ports, "%%x: %s", b->type), put_text(b, &b->ports, heroes[hero].extents);
  put(&b->body, b->is_float ? "%%r_%u = tanh %%x\n" : "%%r_%u = min %%x, 3\n", b->rows);
  bool good = settle(b, "r");
  if (good && before >= MOVES) good = move_and_join(b, before - MOVES, axis_before, join_before) && bring(b, &heroes[hero], choose(b, 2));
  for (uint32_t stage = 0; good; stage++) {
    put_row(b, &heroes[hero]);
    good = settle(b, "r");
    if (good && !stage && second) good = follow(b, second - 1);
    if (good) good = stage ? move_and_join(b, choose(b, MOVES), choose(b, 4), choose(b, JOINS)) : move_and_join(b, move, axis, join);
    if (!good || stage == 2 || choose(b, 4) != 3) break;
    hero = choose(b, HEROES);
    good = bring(b, &heroes[hero], choose(b, 2));
  }
  return good;
}

/* Whether the graph's sizes leave each value an extent of 0 or more. */
static bool has_extents(const conform_graph *made) {
  conform_parsed p;
  const expr_values values = {.symbols = made->symbols};
  bool good = conform_parse(&p, made->text, NULL) == SNT_OK;
  for (uint32_t n = 1; good && n < p.graph.nodes.count; n++) {
    const ir_tensor *type = &ir_at(&p.graph, n)->type;
    int64_t extent;
    for (uint32_t i = 0; i < type->rank; i++) good = good && expr_eval(&p.pool, type->dims[i], &values, &extent) && extent >= 0;
  }
  conform_forget(&p);
  return good;
}

/* The symbols with their bounds; what the plan is made for is not what it runs with. */
static void put_symbols(builder *b, const uint16_t hints[3], uint32_t least) {
  buffer head = {.at = b->head, .size = sizeof b->head};
  for (uint32_t i = 0; i < 3; i++)
    put(&head, "%s%c: min=%u max=300 hint=%u%s", i ? ", " : "symbols { ", letters[i], least, hints[i] < LEAST ? least : hints[i],
        i == 2 ? " }\n" : "");
}

bool conform_pair(const uint8_t *choices, size_t count, conform_graph *out) {
  builder *b = calloc(1, sizeof *b);
  if (!b) return false;
  b->at = choices, b->end = choices + count;
  b->ports = (buffer){.at = b->ports_at, .size = PORTS}, b->body = (buffer){.at = b->body_at, .size = BODY};
  b->returned = (buffer){.at = b->returned_at, .size = OUTPUTS};
  const uint32_t hero = choose(b, HEROES), move = choose(b, MOVES), second = choose(b, 1 + HEROES);
  const uint32_t head = choose(b, 32), size = choose(b, SIZES), hints = choose(b, SIZES), type = types[choose(b, sizeof types)];
  const bool symbolic = (head & 3) == 3, may_be_0 = symbolic && head & 16;
  const uint32_t least = may_be_0 ? 0 : LEAST;
  *out = (conform_graph){.whole = (head >> 2 & 3) == 3};
  b->type = ir_dtypes[type].name, b->is_float = ir_dtypes[type].is_float;
  for (uint32_t i = 0; i < 3; i++) {
    out->symbols[i] = symbolic && sizes[size][i] < LEAST ? least : sizes[size][i];
    if (symbolic) snprintf(b->sizes[i], sizeof b->sizes[i], "%c", letters[i]);
    else snprintf(b->sizes[i], sizeof b->sizes[i], "%u", sizes[size][i]);
  }
  if (symbolic) put_symbols(b, sizes[hints], least);
  const bool good = build(b, hero, move, second) && put_graph(b, out->text) && (!may_be_0 || has_extents(out));
  free(b);
  return good;
}

/* Numbers that follow each other are the pairs of operators and moves, from CONFORM_TRIPLES on those of two operators; all else is drawn by the number. */
uint32_t conform_pairs(bool triples) { return HEROES * (triples ? HEROES : MOVES); }

size_t conform_pair_choices(uint32_t number, uint8_t choices[CONFORM_CHOICES]) {
  const size_t count = conform_grown_choices(number, choices);
  const bool triples = number >= CONFORM_TRIPLES;
  const uint32_t place = number % CONFORM_TRIPLES;
  choices[0] = (uint8_t)(place % HEROES);
  if (!triples) choices[1] = (uint8_t)(place / HEROES % MOVES);
  choices[2] = (uint8_t)(triples ? 1 + place / HEROES % HEROES : 0);
  return count;
}
