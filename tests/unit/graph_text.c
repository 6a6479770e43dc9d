/* The text of the graph IR: canonical texts print as they are, sugar prints as the golden beside it, errors say where, and twenty thousand
   damaged texts neither crash the parser nor make it print what it would not read. Run from the project's root.
   tests/golden/graph: x.snt alone is canonical; beside x.txt it is any input, and x.txt what is printed. */
#include "ir/composites.h"
#include "tests/unit/graph_support.h"
#include <dirent.h>

enum { MAX_FILES = 64, MAX_TEXT = 1 << 16 };
static struct {
  char name[64];
  char *text;
} files[MAX_FILES];
static uint32_t file_count;
static const char folder[] = "tests/golden/graph";

static char *load(const char *path) {
  FILE *in = fopen(path, "rb");
  if (!in) return NULL;
  char *text = calloc(1, MAX_TEXT);
  size_t length = fread(text, 1, MAX_TEXT - 1, in);
  text[length] = 0;
  fclose(in);
  return text;
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

static void find_files(void) {
  DIR *dir = opendir(folder);
  struct dirent *entry;
  while (dir && (entry = readdir(dir)) && file_count < MAX_FILES) {
    const char *dot = strstr(entry->d_name, ".snt");
    if (!dot || dot[4] || dot - entry->d_name > 50) continue;
    snprintf(files[file_count++].name, sizeof files[0].name, "%.*s", (int)(dot - entry->d_name), entry->d_name);
  }
  if (dir) closedir(dir);
  qsort(files, file_count, sizeof *files, by_name);
  for (uint32_t i = 0; i < file_count; i++) {
    char path[200];
    if (snprintf(path, sizeof path, "%s/%s.snt", folder, files[i].name) < (int)sizeof path) files[i].text = load(path);
  }
}

/* ---- goldens ---- */
static void check_golden(const char *name, const char *text, bool bless) {
  test_graph t, again;
  char path[200];
  snprintf(path, sizeof path, "%s/%s.txt", folder, name);
  char *want = load(path);
  if (!tap_is_int(graph_read_text(&t, text), SNT_OK, "%s is read", name)) {
    tap_diag("  %s", t.diag.text);
    graph_close(&t);
    return;
  }
  tap_is_text(graph_errors(&t), "", "%s is sound", name);
  const char *printed = graph_text(&t);
  if (bless && want) {
    FILE *out = fopen(path, "wb");
    if (out) fputs(printed, out), fclose(out);
  } else {
    tap_is_text(printed, want ? want : text, "%s prints as %s", name, want ? "its golden" : "it is");
  }
  tap_is_int(graph_read_text(&again, printed), SNT_OK, "what %s prints is read", name);
  tap_is_text(graph_text(&again), printed, "and prints the same bytes");
  graph_close(&t);
  graph_close(&again);
  free(want);
}

/* ---- errors ---- */
typedef struct error_case {
  const char *text, *want;
} error_case;
// clang-format off
static const error_case error_cases[] = {
    {"", "1:1: 'graph' is expected"},
    {"graph @g(", "1:10: '%' is expected"},
    {"graph @g() {\n", "2:1: '}' is missing"},
    {"graph @g() {\n}\n", "2:1: the graph has no return"},
    {"graph @g() {\n return\n}\nmore", "4:1: text after the graph"},
    {"graph @g(%x: f33[4]) {\n return\n}", "1:14: an element type is expected"},
    {"graph @g(%1: f32[4]) {\n return\n}", "1:10: an input needs a name, not a number"},
    {"graph @g(%x: f32[n]) {\n return\n}", "1:18: a number or an expression over the symbols is expected"},
    {"graph @g(%x: f32[4], %x: f32[4]) {\n return\n}", "1:22: %x is defined twice"},
    {"symbols { n: min=5 max=3 }\ngraph @g() {\n return\n}", "needs 0 <= min <= max"},
    {"graph @g(%x: f32[4]) {\n %y = neg %z\n return %y\n}", "2:11: %z is not defined"},
    {"graph @g(%x: f32[4]) {\n %y = add %x, %z\n %z = neg %y\n return %y\n}", "2:15: %z is used before line 3 defines it: values come in order, and a cycle has none"},
    {"graph @g(%x: f32[4]) {\n %y: f32[5] = neg %x\n return %y\n}", "2:15: neg: the result is f32[4], declared as f32[5]"},
    {"graph @g(%x: f32[4]) {\n %y = neg %x %x\n return %y\n}", "2:14: the line should end here"},
    {"graph @g(%x: f32[4]) {\n %y = reduce.sum axes=[0], %x\n return %y\n}", "2:28: an operand after an attribute"},
    {"graph @g(%x: f32[4]) {\n %y = reduce.sum %x, axes=[0], axes=[0]\n return %y\n}", "attribute axes is given twice"},
    {"graph @g(%x: f32[4]) {\n %y = softmax %x, axes=[0]\n return %y\n}", "2:19: softmax takes no attribute axes"},
    {"graph @g(%x: f32[4]) {\n %y = softmax %x, axis=3\n return %y\n}", "softmax: axis 3 is outside rank 1"},
    {"graph @g(%x: f32[4]) {\n %y = add 1, 2\n return %y\n}", "2:11: nothing here says the literal's type"},
    {"graph @g(%x: u8[4]) {\n %y = add %x, 256\n return %y\n}", "the literal is no u8"},
    {"graph @g(%x: u8[4]) {\n %y = add %x, 1.5\n return %y\n}", "the literal is no u8"},
    {"graph @g() {\n %y: f32[3] = const [1, 2]\n return %y\n}", "2:21: 2 elements, the type has 3"},
    {"graph @g() {\n %y: f32[3] = const [1, 2, 3, 4]\n return %y\n}", "more than 3 elements"},
    {"graph @g() {\n %y = const 1\n return %y\n}", "a constant needs a name and a type"},
    {"graph @g() {\n %y: f32[3] = const data=\"w.bin\" offset=0\n return %y\n}", "there is no way to read a file here"},
    {"graph @g(%x: f32[4]) {\n %y = repeat trips=2 (%a = %x) {\n yield %x\n }\n return %a\n}", "5:9: %a belongs to a repeat that is closed"},
    {"graph @g(%x: f32[4]) {\n %y = repeat trips=2 (%a = %x, %b = %x) {\n yield %x\n }\n return %y\n}", "more carried values than results"},
    {"graph @g(%x: f32[4]) {\n %y = repeat trips=2 (%a = %x) {\n %s = reduce.sum %a, axes=[0]\n yield %s\n }\n return %y\n}", "value 1 (node 3) has not the type of its initial value"},
    {"graph @g(%x: bool[]) {\n %y = repeat trips=2 while=1 (%a = %x) {\n yield %a\n }\n return %y\n}", "while= names no carried bool of rank 0"},
    {"graph @g(%x: bool[1]) {\n %y = repeat trips=2 while=0 (%a = %x) {\n yield %a\n }\n return %y\n}", "while= names no carried bool of rank 0"},
    {"graph @g(%x: bool[]) {\n %y = repeat trips=2 while=%a (%a = %x) {\n yield %a\n }\n return %y\n}", "2:28: a number or an expression over the symbols is expected"},
    {"graph @g(%x: f32[4]) {\n update %x, %x\n return %x\n}", "is no state"},
    {"graph @g(%x: f32[4]) {\n return %x\n %y = neg %x\n}", "an operator after return"},
    {"graph @g(%x: f32[4]) {\n return %x\n return %x\n}", "a second return"},
    {"graph @g(%x: f32[4]) {\n return %x\n keep %q\n}", "%q is not defined"},
    {"graph @g(%x: f32[9223372036854775807,9]) {\n return %x\n}", "more than 2^56 elements"},
    {"graph @g(%\"a\\q\": f32[4]) {\n return\n}", "may follow a backslash"},
};
// clang-format on

static void check_errors(void) {
  for (uint32_t i = 0; i < IR_COUNT(error_cases); i++) {
    test_graph t;
    const snt_result result = graph_read_text(&t, error_cases[i].text);
    if (!tap_ok(result < 0 && strstr(t.diag.text, error_cases[i].want), "error: %s", error_cases[i].want))
      tap_diag("  %d: %s", result, t.diag.text);
    graph_close(&t);
  }
}

/* ---- constants beside the text ---- */
static const float stored[] = {1, 2, 3, 4, 5, 6};
static const void *load_bytes(void *user, const char *file, uint64_t offset, uint64_t size) {
  (void)user;
  return strcmp(file, "weights.bin") == 0 && offset + size <= sizeof stored ? (const char *)stored + offset : NULL;
}
static bool save_bytes(void *user, const void *data, uint64_t size, const char **file, uint64_t *offset) {
  memcpy(user, data, size);
  *file = "weights.bin";
  *offset = 0;
  return true;
}

static void check_files(void) {
  static const char text[] = "graph @g() {\n  %1: f32[2,2] = const data=\"weights.bin\" offset=8\n  return %1\n}\n";
  float saved[4];
  const ir_text_hooks hooks = {.user = saved, .load = load_bytes, .save = save_bytes, .limit = 3};
  test_graph t;
  graph_open(&t);
  tap_is_int(ir_graph_parse_with(&t.g, text, strlen(text), &hooks, &t.diag), SNT_OK, "data beside the text");
  const float *data = ir_const_data(&t.g, 1);
  tap_ok(data && data[0] == 3 && data[3] == 6, "is read from its offset");
  ir_text out;
  ir_text_init(&out, &t.arena);
  ir_graph_print_with(&t.g, &hooks, &out);
  tap_is_text(out.at, "graph @g() {\n  %1: f32[2,2] = const data=\"weights.bin\" offset=0\n  return %1\n}\n", "and goes out the same way");
  tap_ok(saved[0] == 3 && saved[3] == 6, "with its bytes");
  tap_is_text(graph_text(&t), "graph @g() {\n  %1: f32[2,2] = const [0x1.8p+1, 0x1p+2, 0x1.4p+2, 0x1.8p+2]\n  return %1\n}\n",
              "or in full");
  graph_close(&t);
}

/* ---- constants in a wider type ---- */
static void check_widening(void) {
  static const char text[] = "graph @g(%i: i32[2]) {\n  %1: f16[3] = const [1, 0.5, -2]\n  %2: f32[3] = cast %1\n  %3: f64[3] = cast %1\n"
                             "  %4: f32[2] = gather %2, %i, axis=0\n  %5: bf16[3] = const [1, 0.5, -2]\n  %6: f32[3] = cast %5\n"
                             "  %7: f32[3] = cast %1\n  return %2, %3, %4, %6, %7\n}\n";
  bool changed = false, again = true;
  test_graph t;
  graph_open(&t);
  tap_is_int(ir_graph_parse(&t.g, text, strlen(text), &t.diag), SNT_OK, "casts of constants");
  tap_ok(ir_graph_widen(&t.g, &changed) == SNT_OK && changed, "some of them become constants");
  tap_ok(ir_graph_widen(&t.g, &again) == SNT_OK && !again, "once");
  static const char wide[] = "f32[3] = const [0x1p+0, 0x1p-1, -0x1p+1]";
  const char *out = graph_text(&t), *first = strstr(out, wide);
  const char *second = first ? strstr(first + 1, wide) : NULL;
  tap_ok(second && !strstr(second + 1, wide), "those to f32: of f16 and of bf16");
  tap_ok(strstr(out, "f32[3] = cast ") && strstr(out, "f64[3] = cast "), "but not the table that is gathered from, nor another type");
  graph_close(&t);
}

/* ---- the specification ---- */
static bool mentions(const char *text, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = text; (at = strstr(at, word)); at++) {
    const char before = at == text ? ' ' : at[-1], after = at[length];
    if (!strchr(" \n[(=,`", before) || (after != 0 && strchr("abcdefghijklmnopqrstuvwxyz0123456789_", after))) continue;
    return true;
  }
  return false;
}

static void check_specification(void) {
  char *text = load("ir/IR.txt");
  if (!tap_ok(text != NULL, "ir/IR.txt")) return;
  uint32_t missing = 0;
  for (uint32_t i = 1; i < IR_OP_COUNT; i++)
    if (!mentions(text, ir_ops[i].name)) tap_diag("  operator %s", ir_ops[i].name), missing++;
  for (uint32_t i = 1; i < IR_ATTR_COUNT; i++)
    if (!mentions(text, ir_attr_infos[i].name)) tap_diag("  attribute %s", ir_attr_infos[i].name), missing++;
  for (uint32_t i = 1; i < IR_COMPOSITE_COUNT; i++)
    if (!mentions(text, ir_composites[i].name)) tap_diag("  composite %s", ir_composites[i].name), missing++;
  for (uint32_t i = 1; i < IR_PARAM_COUNT; i++)
    if (!mentions(text, ir_param_infos[i].name)) tap_diag("  parameter %s", ir_param_infos[i].name), missing++;
  tap_is_int(missing, 0, "names every operator, attribute, composite and parameter");
  free(text);
}

/* ---- damaged texts ---- */
static uint64_t random_state = 88172645463325252u;
static uint32_t random_below(uint32_t limit) {
  random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
  return (uint32_t)(random_state >> 33) % limit;
}

static const char *const tokens[] = {"%1",        "%x",        "[",      "]",          "(",           ")",           "{",
                                     "}",         "=",         ",",      ":",          "-1",          "0",           "9223372036854775807",
                                     "0x1p+1023", "nan",       "inf",    "f32",        "f16[n]",      "i64",         "repeat trips=n (",
                                     "yield",     "return",    "update", "const",      "axes=[0]",    "\"",          "\\x00",
                                     "n*n",       "min(n,4)",  "_",      "#",          "\n",          "reduce.sum ", "softmax",
                                     "conv",      "attention", "window", "groups=3",   "1e999",       "-",           "%\"a b\"",
                                     "keep",      "slice",     "i4",     "steps=[-1]", ", name=\"q\""};

static size_t damage(char *text, size_t length) {
  for (uint32_t times = random_below(4) ? 1 : 4; times; times--) {
    const size_t at = length ? random_below((uint32_t)length) : 0;
    const char *token = tokens[random_below(IR_COUNT(tokens))];
    size_t size = strlen(token), cut = random_below(12) + 1u, from = length ? random_below((uint32_t)length) : 0;
    switch (random_below(6)) {
    case 0:
      if (length) text[at] = (char)random_below(256);
      break;
    case 1:
      if (length) text[at] = "0123456789%[](){},:=-n_"[random_below(23)];
      break;
    case 2: /* a piece goes */
      if (cut > length - at) cut = length - at;
      memmove(text + at, text + at + cut, length - at - cut);
      length -= cut;
      break;
    case 3: /* a token comes */
      memmove(text + at + size, text + at, length - at);
      memcpy(text + at, token, size);
      length += size;
      break;
    case 4: /* a piece of the text is written over another */
      size = 40;
      if (size > length - at) size = length - at;
      if (size > length - from) size = length - from;
      memmove(text + at, text + from, size);
      break;
    default: length = random_below(4) ? length : at; break;
    }
  }
  return length;
}

static void check_damaged(void) {
  static char text[MAX_TEXT + 1024];
  uint32_t read = 0, sound = 0, unstable = 0;
  for (uint32_t i = 0; i < 20000; i++) {
    const char *from = files[random_below(file_count)].text;
    size_t length = strlen(from);
    memcpy(text, from, length);
    length = damage(text, length);
    char *exact = malloc(length + 1); /* so that a read past the end is seen */
    memcpy(exact, text, length);
    test_graph t, again;
    graph_open(&t);
    if (ir_graph_parse(&t.g, exact, length, &t.diag) == SNT_OK) {
      read++;
      if (!*graph_errors(&t)) {
        sound++;
        const char *printed = graph_text(&t);
        if (graph_read_text(&again, printed) != SNT_OK || strcmp(graph_text(&again), printed) != 0) {
          if (!unstable++) tap_diag("%s", again.diag.text), tap_diag_text(printed);
        }
        graph_close(&again);
      }
    }
    graph_close(&t);
    free(exact);
  }
  tap_ok(read > 200, "of 20000 damaged texts %u are read, %u sound", read, sound);
  tap_is_int(unstable, 0, "and those print what is read back to the same bytes");
}

/* ---- memory that runs out: at every allocation in turn ---- */
static int32_t allocations_left;
static void *SNT_CALL scarce_acquire(void *user, size_t size, size_t align, uint32_t scope) {
  if (allocations_left-- <= 0) return NULL;
  return ir_host_malloc()->acquire(user, size, align, scope);
}

/* Everything that a graph goes through; true if nothing was lacking. */
static bool live_through(const char *text, const snt_host_alloc *host) {
  ir_arena arena;
  expr_pool pool;
  ir_graph g, copy;
  ir_text out, errors;
  snt_diag diag;
  bool changed, ok;
  ir_arena_init(&arena, host);
  expr_pool_init(&pool, &arena);
  ir_graph_init(&g, &arena, &pool);
  ir_graph_init(&copy, &arena, &pool);
  ir_text_init(&out, &arena);
  ir_text_init(&errors, &arena);
  ok = ir_graph_parse(&g, text, strlen(text), &diag) == SNT_OK;
  ok = ir_graph_verify(&g, &errors, &diag) == SNT_OK && ok;
  uint32_t *map = IR_NEW_ARRAY(&arena, uint32_t, g.nodes.count);
  if (map && ok) ok = ir_graph_copy_live(&g, &copy, map) == SNT_OK;
  ok = map && ir_graph_fold(&g, 1000, &changed) == SNT_OK && ir_graph_widen(&g, &changed) == SNT_OK && ok;
  ir_graph_print(&g, &out);
  ok = ok && !out.failed && !arena.failed;
  ir_arena_free(&arena);
  return ok;
}

static void check_memory(void) {
  const snt_host_alloc host = {NULL, scarce_acquire, ir_host_malloc()->release};
  for (uint32_t i = 0; i < file_count; i++) {
    int32_t limit = 0;
    for (; limit < 500; limit++) {
      allocations_left = limit;
      if (live_through(files[i].text, &host)) break;
    }
    tap_ok(limit > 1 && limit < 500, "%s: every one of %d allocations may fail", files[i].name, limit);
  }
}

int main(int count, char **words) {
  const bool bless = count > 1 && strcmp(words[1], "--bless") == 0;
  find_files();
  tap_ok(file_count >= 5, "%u texts in %s", file_count, folder);
  for (uint32_t i = 0; i < file_count; i++) check_golden(files[i].name, files[i].text, bless);
  check_errors();
  check_files();
  check_widening();
  check_specification();
  check_memory();
  if (file_count) check_damaged();
  for (uint32_t i = 0; i < file_count; i++) free(files[i].text);
  return tap_done();
}
