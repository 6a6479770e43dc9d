/* For the tests of the evaluators: a graph with its arena, fixed pseudo-random numbers. All static: the checks count in the test that includes it. */
#ifndef TESTS_UNIT_EVAL_SUPPORT_H
#define TESTS_UNIT_EVAL_SUPPORT_H
#include "ir/eval.h"
#include "tests/tap.h"

static uint64_t random_state = 1;
static uint32_t next_random(void) {
  random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (uint32_t)(random_state >> 33);
}
TAP_UNUSED static int64_t below(int64_t n) { return (int64_t)(next_random() % (uint64_t)n); }
TAP_UNUSED static double uniform(double lo, double hi) { return lo + (hi - lo) * (next_random() * 0x1p-31); }

typedef struct scene {
  ir_arena arena;
  expr_pool pool;
  ir_graph graph;
  snt_diag diag;
} scene;

TAP_UNUSED static void open_scene(scene *s) {
  memset(s, 0, sizeof *s);
  ir_arena_init(&s->arena, NULL);
  expr_pool_init(&s->pool, &s->arena);
  ir_graph_init(&s->graph, &s->arena, &s->pool);
}

/* False, with a failed check and nothing to free, if it does not parse. */
TAP_UNUSED static bool read_graph(scene *s, const char *text) {
  open_scene(s);
  if (ir_graph_parse(&s->graph, text, strlen(text), &s->diag) == SNT_OK) return true;
  tap_ok(false, "parses: %s", s->diag.text);
  ir_arena_free(&s->arena);
  return false;
}

TAP_UNUSED static double element(const ir_eval_tensor *t, uint64_t i) {
  if (t->value) return t->value[i];
  if (t->ints) return t->type.dtype == SNT_U64 ? (double)(uint64_t)t->ints[i] : (double)t->ints[i];
  return ir_dtype_load(t->type.dtype, t->data, i);
}
#endif
