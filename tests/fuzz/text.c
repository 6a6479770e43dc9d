/* libFuzzer: bytes as the text of a graph. What the parser takes, the verifier and the printer take, and what is printed reads back to the same print. */
#include "ir/graph.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool print_of(const char *text, size_t length, ir_arena *arena, ir_text *out) {
  expr_pool *pool = IR_NEW(arena, expr_pool);
  ir_graph *graph = IR_NEW(arena, ir_graph);
  if (!pool || !graph) return false;
  expr_pool_init(pool, arena);
  ir_graph_init(graph, arena, pool);
  if (ir_graph_parse(graph, text, length, NULL) != SNT_OK) return false;
  ir_text_init(out, arena);
  ir_graph_print(graph, out);
  return !out->failed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ir_arena arena;
  ir_text first, second;
  ir_arena_init(&arena, NULL);
  if (size < 1 << 16 && print_of((const char *)data, size, &arena, &first)) {
    const bool again = print_of(first.at, first.length, &arena, &second);
    if (!again || first.length != second.length || memcmp(first.at, second.at, first.length) != 0) abort();
  }
  ir_arena_free(&arena);
  return 0;
}
