/* The list of cases: the pointwise rows of ir/ops.def and the rows of calls.def, times types, data, shapes, contexts and paths. */
#include "conformance/conform.h"
#include <stdlib.h>
#include <string.h>

enum { SYMBOL_MAX = 2000 };
enum { EXACT = 1, EMPTY = 2, SMALL = 4, FIXED = 8, POINTWISE = 16 };
typedef struct call {
  const char *name, *types, *ports, *lines;
  uint32_t flags;
} call;
typedef struct shape {
  const char *name;
  int64_t n, m, k;
  bool is_empty, is_long;
} shape;

// clang-format off
static const call calls[] = {
#define CALL(name, types, ports, lines, flags) {name, types, ports, lines, flags},
#include "conformance/calls.def"
#undef CALL
};
static const shape shapes[] = {
  {"prime", 7, 13, 5, false, false}, {"one", 1, 1, 1, false, false}, {"tile", 16, 64, 32, false, false}, {"tile-1", 15, 63, 31, false, false},
  {"tile+1", 17, 65, 33, false, false}, {"wide", 3, 1031, 9, false, true}, {"tall", 1031, 3, 7, false, true}, {"empty", 0, 5, 3, true, false},
  {"square", 128, 128, 64, false, true}, {"thin", 257, 1, 2, false, true}, {"long", 1, 4099, 3, false, true}, {"half", 10, 24, 12, false, false}, /* of a vector of 16, and of 8 */
};
/* Contexts: around the call, by text. `before` reads %a0 and gives %a; `after` reads %r and gives %s. {0}: nothing. */
typedef struct context { const char *name, *before, *after, *outputs; bool symbolic, plain_first; } context;
static const context contexts[] = {
  {"alone",    NULL, NULL, "y=%r", false, false},
  {"chained",  "%a = min %a0, 100", "%s = add %r, %r", "y=%s", false, false},
  {"stored",   NULL, "%s = add %r, %r", "y=%s, z=%r", false, false},
  {"symbolic", NULL, NULL, "y=%r", true, false},
  {"reduced",  NULL, "%s = reduce.sum %r, axes=[-1]", "y=%s", false, false},
  {"turned",   "%a = transpose %a0, perm=[1,0]", NULL, "y=%r", false, true},
  {"bounded",  NULL, "%s = max %r, 3", "y=%s", false, false},
  {"both",     "%a = min %a0, 100", "%s = add %r, %r", "y=%s", true, false},
};
static const struct { char class; uint8_t dtypes[8]; } classes[] = {
  {'F', {SNT_F32, SNT_F16, SNT_BF16, SNT_F64}}, {'N', {SNT_I32, SNT_I64, SNT_U32, SNT_I8, SNT_U8, SNT_I16, SNT_U16, SNT_U64}}, {'B', {SNT_BOOL}}, {'f', {SNT_F32}}, {'i', {SNT_I32, SNT_I64}},
};
static const struct { const char *op; double low, high; } domains[] = { /* where a result is defined, finite and not chaos */
  {"log", 0.01, 8}, {"log2", 0.01, 8}, {"log1p", -0.9, 8}, {"sqrt", 0, 8}, {"rsqrt", 0.01, 8}, {"recip", 0.05, 8}, {"acosh", 1.01, 8}, {"atanh", -0.95, 0.95},
  {"asin", -0.99, 0.99}, {"acos", -0.99, 0.99}, {"pow", 0.05, 4}, {"div", 0.1, 8}, {"rem", 0.5, 8}, {"mod", 0.5, 8}, {"tan", -1.4, 1.4}, {"reduce.prod", 0.5, 1.5}, {"scan.prod", 0.5, 1.5},
};
// clang-format on
enum { CALLS = sizeof calls / sizeof *calls, SHAPES = sizeof shapes / sizeof *shapes, CONTEXTS = sizeof contexts / sizeof *contexts };
enum { CLASSES = sizeof classes / sizeof *classes, POINTWISE_BASE = CALLS };
static const char *const data_names[DATA_COUNT] = {"real", "whole", "full", "special"};
const char *const conform_path_names[PATH_COUNT] = {"fused", "strict", "masked", "same", "fast", "cut"};
static const char *const self_names[SELF_COUNT] = {"wrong", "crash", "hang", "flaky"};

/* ---- calls: a row of calls.def, or a pointwise operator (numbers from POINTWISE_BASE) ---- */

static uint32_t call_flags(uint32_t number) {
  if (number < CALLS) return calls[number].flags;
  return EMPTY | POINTWISE | (ir_ops[number - POINTWISE_BASE].flags & IR_EXACT ? EXACT : 0);
}

static bool is_pointwise_call(ir_op op) {
  return (ir_ops[op].flags & IR_POINTWISE) && op != IR_OP_cast && op != IR_OP_bitcast && op != IR_OP_custom;
}

static bool is_float(uint8_t dtype) { return memchr(classes[0].dtypes, dtype, sizeof classes[0].dtypes) != NULL; }

static bool takes(uint32_t number, uint8_t dtype) {
  if (number >= POINTWISE_BASE) {
    const uint8_t allowed = ir_ops[number - POINTWISE_BASE].classes;
    return allowed & (dtype == SNT_BOOL ? IR_CLASS_B : is_float(dtype) ? IR_CLASS_F : IR_CLASS_I);
  }
  for (const char *c = calls[number].types; *c; c++)
    for (uint32_t i = 0; i < CLASSES; i++)
      if (classes[i].class == *c && memchr(classes[i].dtypes, dtype, sizeof classes[i].dtypes)) return true;
  return false;
}

static const char *call_name(uint32_t number) { return number < CALLS ? calls[number].name : ir_ops[number - POINTWISE_BASE].name; }

const char *conform_case_family(const conform_case *c) {
  static _Thread_local char family[40];
  if (c->call == CONFORM_SELF) return "self";
  if (c->call >= CONFORM_FILE) return "graph";
  snprintf(family, sizeof family, "%.*s", (int)strcspn(call_name(c->call), " "), call_name(c->call));
  return family;
}

void conform_case_id(const conform_case *c, char id[CONFORM_ID]) {
  if (c->call == CONFORM_SELF) {
    snprintf(id, CONFORM_ID, "self.%s", self_names[c->path]);
    return;
  }
  if (c->call == CONFORM_GROWN || c->call == CONFORM_PAIR) {
    snprintf(id, CONFORM_ID, "%s.%08x.%s", c->call == CONFORM_PAIR ? "pair" : "graph", conform_case_number(c), conform_path_names[c->path]);
    return;
  }
  if (c->call == CONFORM_FILE) {
    snprintf(id, CONFORM_ID, "graph.%s.%s", conform_file_name(conform_case_number(c)), conform_path_names[c->path]);
    return;
  }
  char name[64];
  snprintf(name, sizeof name, "%s", call_name(c->call));
  for (char *p = name; *p; p++)
    if (*p == ' ') *p = '-';
  snprintf(id, CONFORM_ID, "%s.%s.%s.%s.%s.%s", name, ir_dtypes[c->dtype].name, data_names[c->data], shapes[c->shape].name,
           contexts[c->context].name, conform_path_names[c->path]);
}

/* The i-th name of a part behind the call; null: there are not so many. */
static const char *part_name(uint32_t part, uint32_t i) {
  switch (part) {
  case 0: return i < SNT_DTYPE_COUNT ? ir_dtypes[i].name : NULL;
  case 1: return i < DATA_COUNT ? data_names[i] : NULL;
  case 2: return i < SHAPES ? shapes[i].name : NULL;
  case 3: return i < CONTEXTS ? contexts[i].name : NULL;
  default: return i < PATH_COUNT ? conform_path_names[i] : NULL;
  }
}

static bool has_id(const conform_case *c, const char *id) {
  char own[CONFORM_ID];
  conform_case_id(c, own);
  return !strcmp(own, id);
}

static bool is_name_of_call(uint32_t number, const char *text) {
  const char *name = call_name(number);
  for (; *name && *text == (*name == ' ' ? '-' : *name); name++) text++;
  return *name == *text;
}

static bool find_call(conform_case *c, const char *name) {
  for (c->call = 0; c->call < POINTWISE_BASE + IR_OP_COUNT; c->call++) {
    const bool is_call = c->call < CALLS || is_pointwise_call((ir_op)(c->call - POINTWISE_BASE));
    if (is_call && takes(c->call, c->dtype) && is_name_of_call(c->call, name)) return true;
  }
  return false;
}

bool conform_case_of_id(const char *id, conform_case *out) {
  enum { PARTS = 5 };
  uint8_t *const parts[PARTS] = {&out->dtype, &out->data, &out->shape, &out->context, &out->path};
  char text[CONFORM_ID], path[8];
  uint32_t number;
  *out = (conform_case){.call = id[0] == 'p' ? CONFORM_PAIR : CONFORM_GROWN};
  for (uint32_t p = 0; sscanf(id, "%*5[a-z].%8x.%7s", &number, path) == 2 && p < PATH_COUNT; p++) {
    *out = conform_numbered(out->call, number, p);
    if (has_id(out, id)) return true;
  }
  snprintf(text, sizeof text, "%s", id);
  for (uint32_t part = PARTS; part--;) {
    char *end = strrchr(text, '.');
    const char *name = NULL;
    uint32_t i = 0;
    while (end && (name = part_name(part, i)) && strcmp(name, end + 1) != 0) i++;
    if (!name) return false;
    *parts[part] = (uint8_t)i, *end = 0;
  }
  return find_call(out, text);
}

static bool is_exact(const conform_case *c) {
  if (c->call == CONFORM_SELF) return true;
  return (c->data == DATA_WHOLE || c->data == DATA_FULL) && (call_flags(c->call) & EXACT) && c->dtype != SNT_F16 && c->dtype != SNT_BF16;
}

void conform_domain(const conform_case *c, double *low, double *high) {
  *low = -4, *high = 4;
  if (c->call >= CONFORM_FILE) return;
  const char *family = conform_case_family(c);
  for (uint32_t i = 0; i < sizeof domains / sizeof *domains; i++)
    if (!strcmp(family, domains[i].op)) *low = domains[i].low, *high = domains[i].high;
}

/* ---- text ---- */

typedef struct writer {
  char *to;
  size_t used;
  bool full;
} writer;

static void put(writer *w, const char *text, size_t length) {
  if (w->used + length + 1 > CONFORM_TEXT) {
    w->full = true;
    return;
  }
  memcpy(w->to + w->used, text, length);
  w->used += length;
  w->to[w->used] = 0;
}
static void put_text(writer *w, const char *text) { put(w, text, strlen(text)); }

/* A template with $T, $n, $m, $k filled in; `from` (may be null) is a word that becomes `to`. */
static void fill(writer *w, const conform_case *c, const char *text, const char *from, const char *to) {
  const shape *s = &shapes[c->shape];
  const bool symbolic = contexts[c->context].symbolic;
  for (; *text; text++) {
    char number[24];
    if (from && !strncmp(text, from, strlen(from))) {
      put_text(w, to);
      text += strlen(from) - 1;
    } else if (*text == '$' && text[1] == 'T') {
      put_text(w, ir_dtypes[c->dtype].name), text++;
    } else if (*text == '$') {
      const char which = *++text;
      snprintf(number, sizeof number, "%lld", (long long)(which == 'n' ? s->n : which == 'm' ? s->m : s->k));
      put(w, symbolic ? &which : number, symbolic ? 1 : strlen(number));
    } else {
      put(w, text, 1);
    }
  }
}

/* A pointwise operator as a row of calls.def. */
static void pointwise_parts(ir_op op, char *ports, char *lines, size_t size) {
  const uint8_t arity = ir_ops[op].arity;
  const char *first = op == IR_OP_select ? ", %c: bool[$n,$m]" : "";
  snprintf(ports, size, "%%a: $T[$n,$m]%s%s%s", first, arity > 1 ? ", %b: $T[$n,$m]" : "",
           arity > 2 && op != IR_OP_select ? ", %d: $T[$n,$m]" : "");
  const char *operands = op == IR_OP_select ? "%c, %a, %b" : arity == 1 ? "%a" : arity == 2 ? "%a, %b" : "%a, %b, %d";
  snprintf(lines, size, "%%r = %s %s", ir_ops[op].name, operands);
}

/* The text of a row of a table. */
/* The operator of the user's own that rows may name. */
static const char custom_name[] = " = softclip ",
                  custom_text[] = "custom softclip(%x: f32, %k: f32) {\n"
                                  "  %a = abs %x\n"
                                  "  %b = fma %a, %k, 1\n"
                                  "  %y = div %x, %b\n"
                                  "  yield %y\n"
                                  "} opencl=\"x / (1.0f + k * fabs(x))\", ulp=16, cuda=\"x / (1.0f + k * fabsf(x))\", "
                                  "glsl=\"x / (1.0 + k * abs(x))\"\n";

static bool row_text(const conform_case *c, char text[CONFORM_TEXT], int64_t symbols[3]) {
  char made_ports[128], made_lines[128];
  const char *ports = made_ports, *lines = made_lines;
  const conform_case self = {.dtype = SNT_F32};
  if (c->call == CONFORM_SELF) c = &self, pointwise_parts(IR_OP_neg, made_ports, made_lines, sizeof made_ports);
  else if (c->call < CALLS) ports = calls[c->call].ports, lines = calls[c->call].lines;
  else pointwise_parts((ir_op)(c->call - POINTWISE_BASE), made_ports, made_lines, sizeof made_ports);
  const shape *s = &shapes[c->shape];
  const context *around = &contexts[c->context];
  symbols[0] = s->n, symbols[1] = s->m, symbols[2] = s->k;
  writer w = {.to = text};
  const char *before = around->before, *turned = NULL;
  char from[40] = "%a: $T[$n,$m]";
  if (around->plain_first && strncmp(ports, from, strlen(from))) return false;
  if (around->plain_first) turned = "%a0: $T[$m,$n]";
  else snprintf(from, sizeof from, "%%a:"), turned = before ? "%a0:" : NULL;
  if (around->symbolic) put_text(&w, "symbols { n: min=1 max=2000, m: min=1 max=2000, k: min=1 max=2000 }\n");
  if (strstr(lines, custom_name)) put_text(&w, custom_text);
  put_text(&w, "graph @case(");
  fill(&w, c, ports, turned ? from : NULL, turned);
  put_text(&w, ") {\n");
  if (before) put_text(&w, before), put_text(&w, "\n");
  fill(&w, c, lines, NULL, NULL);
  put_text(&w, "\n");
  if (around->after) put_text(&w, around->after), put_text(&w, "\n");
  put_text(&w, "return ");
  put_text(&w, around->outputs);
  put_text(&w, "\n}\n");
  return !w.full;
}

bool conform_case_graph(const conform_case *c, conform_graph *out) {
  *out = (conform_graph){.exact = 0};
  if (c->call == CONFORM_FILE) return conform_file_graph(conform_case_number(c), out, NULL);
  if (c->call == CONFORM_PAIR) {
    uint8_t choices[CONFORM_CHOICES];
    return conform_pair(choices, conform_pair_choices(conform_case_number(c), choices), out);
  }
  if (c->call == CONFORM_GROWN) {
    uint8_t choices[CONFORM_CHOICES];
    return conform_grow(choices, conform_grown_choices(conform_case_number(c), choices), out);
  }
  out->exact = is_exact(c) ? UINT32_MAX : 0;
  out->whole = c->call == CONFORM_SELF || c->data == DATA_WHOLE || c->data == DATA_FULL;
  out->full = c->call != CONFORM_SELF && c->data == DATA_FULL;
  out->special = c->call != CONFORM_SELF && c->data == DATA_SPECIAL;
  return row_text(c, out->text, out->symbols);
}

bool conform_case_text(const conform_case *c, char text[CONFORM_TEXT], int64_t symbols[3]) {
  if (c->call < CONFORM_FILE || c->call == CONFORM_SELF) return row_text(c, text, symbols);
  static _Thread_local conform_graph graph;
  if (!conform_case_graph(c, &graph)) return false;
  memcpy(text, graph.text, sizeof graph.text);
  memcpy(symbols, graph.symbols, sizeof graph.symbols);
  return true;
}

/* ---- the list ---- */

static bool is_legal(const conform_case *c) {
  const uint32_t flags = call_flags(c->call);
  const shape *s = &shapes[c->shape];
  const context *around = &contexts[c->context];
  const bool is_bool = c->dtype == SNT_BOOL;
  if (s->is_empty && (!(flags & EMPTY) || around->symbolic)) return false;
  if (s->is_long && (flags & SMALL)) return false;
  if (((flags & FIXED) || s->m > SYMBOL_MAX) && around->symbolic) return false;
  if (is_bool && (around->before || around->after) && !around->plain_first) return false;
  if (c->data == DATA_FULL) return !is_float(c->dtype) && !is_bool && s->n <= 17;
  if (c->data == DATA_SPECIAL) return is_float(c->dtype) && !s->is_long && !s->is_empty;
  return is_float(c->dtype) ? c->data == DATA_REAL || !(flags & POINTWISE) : c->data == DATA_WHOLE;
}

/* Parses and verifies, so that a context that does not fit the result's type is no case. */
static bool is_sound(const conform_case *c) {
  char text[CONFORM_TEXT];
  int64_t symbols[3];
  if (!conform_case_text(c, text, symbols)) return false;
  conform_parsed parsed;
  const bool sound = conform_parse(&parsed, text, NULL) == SNT_OK;
  conform_forget(&parsed);
  return sound;
}

static uint64_t mix(uint64_t x) { /* SplitMix64's finaliser */
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

typedef struct ranked {
  conform_case c;
  uint32_t round; /* the how-manieth case of its call */
  uint64_t order;
} ranked;

static int by_round(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  if (x->round != y->round) return x->round < y->round ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}
static int by_order(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  return x->order < y->order ? -1 : x->order > y->order;
}

typedef struct collector {
  ranked *at;
  uint32_t count, capacity;
  const char *filter, *named;
  uint64_t seed;
} collector;

/* Whether a line of `named` is the id of a case of this call, or no ids are named. */
static bool is_named(const collector *all, uint32_t number) {
  char start[64];
  snprintf(start, sizeof start, "%s.", call_name(number));
  for (char *p = start; *p; p++)
    if (*p == ' ') *p = '-';
  for (const char *line = all->named; line; line = *line ? line + 1 : NULL) {
    if (!strncmp(line, start, strlen(start))) return true;
    line += strcspn(line, "\n");
  }
  return !all->named;
}

static bool collect(collector *all, const conform_case *c) {
  char id[CONFORM_ID];
  conform_case_id(c, id);
  if (all->filter && !strstr(id, all->filter)) return true;
  if (all->count == all->capacity) {
    const uint32_t capacity = all->capacity ? 2 * all->capacity : 4096;
    ranked *more = realloc(all->at, capacity * sizeof *more);
    if (!more) return false;
    all->at = more, all->capacity = capacity;
  }
  const uint64_t packed = (uint64_t)c->call << 40 | (uint64_t)c->dtype << 32 | c->data << 24 | c->shape << 16 | c->context << 8 | c->path;
  all->at[all->count++] = (ranked){.c = *c, .order = mix(packed + all->seed)};
  return true;
}

static bool can_cut(const conform_case *c) {
  char text[CONFORM_TEXT], cut[CONFORM_TEXT];
  int64_t symbols[3];
  return !contexts[c->context].symbolic && conform_case_text(c, text, symbols) && conform_cut(text, cut);
}

/* In FAST a minimum or maximum of a NaN may be either operand. */
static bool fits_path(const conform_case *c) { return c->path == PATH_CUT ? can_cut(c) : c->path != PATH_FAST || c->data != DATA_SPECIAL; }

/* All shapes and paths of one call, type and context; soundness does not depend on them except for the shape's kind. */
static bool collect_shapes(collector *all, conform_case c) {
  for (c.data = 0; c.data < DATA_COUNT; c.data++)
    for (c.shape = 0; c.shape < SHAPES; c.shape++) {
      c.path = 0;
      if (!is_legal(&c)) continue;
      for (; c.path < PATH_COUNT; c.path++)
        if (fits_path(&c) && !collect(all, &c)) return false;
    }
  return true;
}

static bool collect_call(collector *all, uint32_t number) {
  const uint32_t first = all->count;
  for (uint32_t k = 0; k < CLASSES && is_named(all, number); k++)
    for (uint32_t i = 0; i < sizeof classes[k].dtypes && k < 3; i++) {
      conform_case c = {.call = (uint16_t)number, .dtype = classes[k].dtypes[i], .data = 0, .shape = 0};
      if (!c.dtype || !takes(number, c.dtype)) continue;
      for (c.context = 0; c.context < CONTEXTS; c.context++)
        if (is_sound(&c) && !collect_shapes(all, c)) return false;
    }
  if (all->count > first) qsort(all->at + first, all->count - first, sizeof *all->at, by_order);
  for (uint32_t i = first; i < all->count; i++) all->at[i].round = i - first;
  return true;
}

uint64_t conform_case_seed(const conform_case *c, uint64_t seed) {
  char id[CONFORM_ID];
  conform_case_id(c, id);
  return ir_hash64(seed, id, strlen(id));
}

bool conform_make_list(conform_list *list, const char *filter, const char *named, uint64_t seed, bool self_test) {
  collector all = {.filter = filter, .named = named, .seed = seed};
  bool good = true;
  *list = (conform_list){.count = 0};
  for (uint32_t number = 0; good && number < POINTWISE_BASE + IR_OP_COUNT; number++)
    if (number < CALLS || is_pointwise_call((ir_op)(number - POINTWISE_BASE))) good = collect_call(&all, number);
  for (uint32_t i = 0; good && self_test && i < SELF_COUNT; i++)
    good = collect(&all, &(conform_case){.call = CONFORM_SELF, .path = (uint8_t)i});
  if (good && all.count) {
    qsort(all.at, all.count, sizeof *all.at, by_round);
    list->at = malloc(all.count * sizeof *list->at);
    good = list->at != NULL;
    for (uint32_t i = 0; good && i < all.count; i++) list->at[list->count++] = all.at[i].c;
  }
  free(all.at);
  return good;
}
