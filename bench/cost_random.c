/* Random graphs for bench/cost, of two kinds: chains of values of one shape (pointwise operators, reductions along rows that are repeated
   again, products with a matrix); and dear values that several readers of unlike kinds have, which is where it can be wrong to fuse: to
   compute them in every reader, below a contraction, below taps. */
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

static const char *const unary[] = {"tanh", "exp", "abs", "neg", "sigmoid", "floor", "erf"};

void cost_random_graph(cost_bench *b, char *text, size_t room) {
  static const char *const binary[] = {"add", "mul", "sub", "max", "min"};
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

/* ---- values with several readers ---- */

/* A value %r of one number from the value %v of the other, of shape [n, n] but for the last. */
typedef struct reader_kind {
  void (*put)(writer *, uint32_t r, uint32_t v, uint32_t n);
  bool square;
} reader_kind;

static void put_product(writer *w, uint32_t r, uint32_t v, uint32_t n) {
  put(w, "  %%r%u = contract %%v%u, %%m, lhs=[0,1], rhs=[1,2], out=[0,2]\n", r, v);
  (void)n;
}
static void put_stencil(writer *w, uint32_t r, uint32_t v, uint32_t n) {
  put(w, "  %%w%u = window %%v%u, axis=0, size=[3,3], low=[1,1], high=[1,1]\n  %%r%u = reduce.sum %%w%u, axes=[2,3]\n", r, v, r, r);
  (void)n;
}
static void put_turned(writer *w, uint32_t r, uint32_t v, uint32_t n) {
  put(w, "  %%t%u = transpose %%v%u, perm=[1,0]\n  %%r%u = add %%t%u, %%v%u\n", r, v, r, r, v);
  (void)n;
}
static void put_rows(writer *w, uint32_t r, uint32_t v, uint32_t n) {
  put(w, "  %%s%u = reduce.sum %%v%u, axes=[1], keep\n  %%b%u = broadcast %%s%u, shape=[%u,%u]\n  %%r%u = div %%v%u, %%b%u\n", r, v, r, r,
      n, n, r, v, r);
}
static void put_pointwise(writer *w, uint32_t r, uint32_t v, uint32_t n) {
  put(w, "  %%r%u = mul %%v%u, %%x1\n", r, v);
  (void)n;
}
static void put_columns(writer *w, uint32_t r, uint32_t v, uint32_t n) {
  put(w, "  %%r%u = reduce.max %%v%u, axes=[0]\n", r, v);
  (void)n;
}

/* A value: a chain of up to three functions of an input, or of what read the value before. */
static void put_value(cost_bench *b, writer *w, uint32_t v, uint32_t last) {
  const uint32_t steps = 1 + cost_random_below(b, 3);
  char from[32];
  if (last) snprintf(from, sizeof from, "r%u", last);
  else snprintf(from, sizeof from, "x%u", cost_random_below(b, 2));
  for (uint32_t i = 0; i < steps; i++) {
    put(w, i + 1 < steps ? "  %%u%u_%u = " : "  %%v%u = ", v, i);
    put(w, "%s %%%s\n", unary[cost_random_below(b, IR_COUNT(unary))], from);
    snprintf(from, sizeof from, "u%u_%u", v, i);
  }
}

void cost_random_readers(cost_bench *b, char *text, size_t room) {
  static const reader_kind kinds[] = {{put_product, true}, {put_stencil, true},   {put_turned, true},
                                      {put_rows, true},    {put_pointwise, true}, {put_columns, false}};
  const uint32_t n = 128u << cost_random_below(b, 3), values = 1 + cost_random_below(b, 3);
  uint32_t readers = 0, last = 0;
  writer w = {text, room, 0};
  put(&w, "graph @readers(%%x0: f32[%u,%u], %%x1: f32[%u,%u], %%m: f32[%u,%u]) {\n", n, n, n, n, n, n);
  for (uint32_t v = 0; v < values; v++) {
    const uint32_t of = 2 + cost_random_below(b, 3), first = cost_random_below(b, IR_COUNT(kinds));
    put_value(b, &w, v, cost_random_below(b, 2) ? last : 0);
    for (uint32_t i = 0; i < of; i++) {
      const reader_kind *k = &kinds[(first + i) % IR_COUNT(kinds)]; /* no two of one kind */
      k->put(&w, ++readers, v, n);
      if (k->square) last = readers;
    }
  }
  put(&w, "  return ");
  for (uint32_t r = 1; r <= readers; r++) put(&w, "%sy%u=%%r%u", r > 1 ? ", " : "", r, r);
  put(&w, "\n}\n");
}
