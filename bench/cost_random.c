/* Random graphs for bench/cost: values of one shape; pointwise operators, reductions along rows that are repeated again, products with a matrix. */
#include "bench/cost.h"
#include <stdarg.h>

typedef struct writer {
  char *at;
  size_t room, length;
} writer;

static void put(writer *w, const char *format, ...) {
  va_list list;
  va_start(list, format);
  const int added = vsnprintf(w->at + w->length, w->room - w->length, format, list);
  va_end(list);
  if (added > 0 && (size_t)added < w->room - w->length) w->length += (size_t)added;
}

void cost_random_graph(cost_bench *b, char *text, size_t room) {
  static const char *const unary[] = {"tanh", "exp", "abs", "neg", "sigmoid", "floor", "erf"}, *const binary[] = {"add", "mul", "sub",
                                                                                                                  "max", "min"};
  const uint32_t rows = 64u << cost_random_below(b, 4), columns = 64u << cost_random_below(b, 4), steps = 8 + cost_random_below(b, 10);
  writer w = {text, room, 0};
  put(&w, "graph @random(%%v0: f32[%u,%u], %%v1: f32[%u,%u], %%m: f32[%u,%u]) {\n", rows, columns, rows, columns, columns, columns);
  for (uint32_t i = 2; i < steps + 2; i++) {
    const uint32_t a = cost_random_below(b, 3) ? i - 1 : cost_random_below(b, i), other = cost_random_below(b, i),
                   kind = cost_random_below(b, 20);
    if (kind < 6) put(&w, "  %%v%u = %s %%v%u\n", i, unary[cost_random_below(b, IR_COUNT(unary))], a);
    else if (kind < 15) put(&w, "  %%v%u = %s %%v%u, %%v%u\n", i, binary[cost_random_below(b, IR_COUNT(binary))], a, other);
    else if (kind < 19) {
      put(&w, "  %%s%u = reduce.%s %%v%u, axes=[1], keep\n", i, cost_random_below(b, 2) ? "sum" : "max", a);
      put(&w, "  %%b%u = broadcast %%s%u, shape=[%u,%u]\n  %%v%u = mul %%b%u, %%v%u\n", i, i, rows, columns, i, i, other);
    } else put(&w, "  %%v%u = contract %%v%u, %%m, lhs=[0,1], rhs=[1,2], out=[0,2]\n", i, a);
  }
  put(&w, "  return y=%%v%u, z=%%v%u\n}\n", steps + 1, steps - 1);
}
