/* Bytes as the text of a graph, or of a kernel: what the parser takes, verifier and printer take, and what is printed reads back to the same print. */
#include "ir/graph.h"
#include "ir/kernel.h"
#include "tests/fuzz/fuzz.h"
#include <string.h>

static const char *const words[] = {"0",
                                    "1",
                                    "-1",
                                    "4294967295",
                                    "inf",
                                    "nan",
                                    "0x1p+0",
                                    "f32",
                                    "i64",
                                    "u8",
                                    "bool",
                                    "f16[4]",
                                    "{",
                                    "}",
                                    "yield",
                                    "loop",
                                    "repeat",
                                    "return",
                                    "%0",
                                    "%1",
                                    "%x",
                                    "const",
                                    "axis=",
                                    "[]",
                                    "[",
                                    "]",
                                    "=",
                                    ",",
                                    "state",
                                    "update",
                                    "n",
                                    "\n",
                                    "trips=",
                                    "barrier local",
                                    "else",
                                    "f16x4",
                                    "load",
                                    "add",
                                    "conv",
                                    "slice",
                                    "contract",
                                    "concat",
                                    "if",
                                    "store",
                                    "symbols { n: min=1 max=8 }\n"};
const fuzz_facts fuzz = {.name = "text", .words = words, .word_count = IR_COUNT(words), .least_of_corpus = 90, .least_of_mutations = 5};

static bool print_graph(const char *text, size_t length, ir_arena *arena, ir_text *out) {
  expr_pool *pool = IR_NEW(arena, expr_pool);
  ir_graph *graph = IR_NEW(arena, ir_graph);
  snt_diag diag = {.result = SNT_OK};
  if (!pool || !graph) return false;
  expr_pool_init(pool, arena);
  ir_graph_init(graph, arena, pool);
  if (ir_graph_parse(graph, text, length, &diag) != SNT_OK) {
    if (!diag.text[0]) fuzz_wrong("a graph is refused without a reason");
    return false;
  }
  ir_graph_print(graph, out);
  return !out->failed;
}

static bool print_kernel(const char *text, size_t length, ir_arena *arena, ir_text *out) {
  kir_kernel kernel;
  snt_diag diag = {.result = SNT_OK};
  ir_text errors;
  kir_init(&kernel, arena, "fuzz");
  ir_text_init(&errors, arena);
  if (kir_parse(&kernel, text, length, &diag) != SNT_OK) {
    if (!diag.text[0]) fuzz_wrong("a kernel is refused without a reason");
    return false;
  }
  if (kir_verify(&kernel, &errors, &diag)) {
    if (!errors.length) fuzz_wrong("the verifier gives no reason");
    return false;
  }
  kir_print(&kernel, out);
  return !out->failed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ir_arena arena;
  ir_text first, second;
  const bool kernel = size > 6 && memcmp(data, "kernel", 6) == 0;
  bool (*const print)(const char *, size_t, ir_arena *, ir_text *) = kernel ? print_kernel : print_graph;
  if (size >= FUZZ_ROOM) return 0;
  ir_arena_init(&arena, NULL);
  ir_text_init(&first, &arena);
  ir_text_init(&second, &arena);
  if (print((const char *)data, size, &arena, &first)) {
    fuzz_accept();
    if (!print(first.at, first.length, &arena, &second)) fuzz_wrong("what was printed is refused");
    if (first.length != second.length || memcmp(first.at, second.at, first.length) != 0) fuzz_wrong("printed again it is another text");
  }
  ir_arena_free(&arena);
  return 0;
}
