/* A graph with its pool and arena, made from text or empty, for the tests of the graph IR. */
#ifndef TESTS_GRAPH_SUPPORT_H
#define TESTS_GRAPH_SUPPORT_H
#include "ir/graph.h"
#include "tests/tap.h"

typedef struct test_graph {
  ir_arena arena;
  expr_pool pool;
  ir_graph g;
  snt_diag diag;
} test_graph;

TAP_UNUSED static void graph_open(test_graph *t) {
  ir_arena_init(&t->arena, NULL);
  expr_pool_init(&t->pool, &t->arena);
  ir_graph_init(&t->g, &t->arena, &t->pool);
  memset(&t->diag, 0, sizeof t->diag);
}

TAP_UNUSED static void graph_close(test_graph *t) { ir_arena_free(&t->arena); }

TAP_UNUSED static snt_result graph_read_text(test_graph *t, const char *text) {
  graph_open(t);
  return ir_graph_parse(&t->g, text, strlen(text), &t->diag);
}

/* In the graph's arena. */
TAP_UNUSED static const char *graph_text(test_graph *t) {
  ir_text text;
  ir_text_init(&text, &t->arena);
  ir_graph_print(&t->g, &text);
  return text.failed || !text.at ? "" : text.at;
}

TAP_UNUSED static const char *graph_errors(test_graph *t) {
  ir_text errors;
  ir_text_init(&errors, &t->arena);
  snt_result result = ir_graph_verify(&t->g, &errors, &t->diag);
  return result == SNT_OK ? "" : errors.at ? errors.at : "?";
}
#endif
