/* A check that needs no bound: where each row of the results comes from the same row of the inputs, turning the rows of the inputs must turn those of
   the results, bit by bit. It sees what depends on where a row stands (tails, shares of groups, orders of sums) and is still within the bound.
   Whether rows are independent is asked of the reference. */
#include "conformance/ports.h"
#include "ir/eval.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_ELEMENTS = 1 << 18 };

/* The rows that every output has; 0: there are none, or too much to evaluate again. */
static int64_t rows_of(const ports *all) {
  int64_t rows = 0;
  uint64_t elements = 0;
  for (uint32_t i = 0; i < all->count; i++) {
    const port *p = &all->at[i];
    elements += p->elements;
    if (p->info.kind == SNT_PORT_INPUT) continue;
    if (p->info.kind != SNT_PORT_OUTPUT || !p->info.tensor.rank || (rows && p->dims[0] != rows)) return 0;
    rows = p->dims[0];
  }
  return rows >= 2 && elements <= MOST_ELEMENTS ? rows : 0;
}

static bool has_rows(const port *p, int64_t rows) { return p->info.kind == SNT_PORT_INPUT && p->info.tensor.rank && p->dims[0] == rows; }

static bool copy_inputs(const ports *all, ports *out) {
  *out = *all;
  for (uint32_t i = 0; i < out->count; i++) out->at[i].data = NULL;
  for (uint32_t i = 0; i < out->count; i++) {
    port *p = &out->at[i];
    if (p->info.kind != SNT_PORT_INPUT) continue;
    if (!(p->data = malloc(p->bytes + 2 * GUARD))) return false;
    memcpy(p->data, all->at[i].data, p->bytes);
  }
  return true;
}

static void turn(void *to, const void *from, uint64_t bytes, int64_t rows) {
  const uint64_t row = bytes / (uint64_t)rows;
  memcpy((uint8_t *)to + row, from, bytes - row);
  memcpy(to, (const uint8_t *)from + bytes - row, row);
}

/* ---- the reference ---- */
typedef struct evaluation {
  ir_arena arena;
  expr_pool pool;
  ir_graph g;
  ir_eval_tensor out[MAX_PORTS];
} evaluation;

static bool evaluate(const conform_graph *graph, uint32_t path, const ports *all, evaluation *e) {
  const void *inputs[MAX_PORTS];
  ir_arena_init(&e->arena, NULL);
  expr_pool_init(&e->pool, &e->arena);
  ir_graph_init(&e->g, &e->arena, &e->pool);
  for (uint32_t i = 0; i < all->count; i++) inputs[i] = all->at[i].data;
  const ir_eval_info info = {.symbols = graph->symbols, .inputs = inputs, .direct = path == PATH_STRICT};
  return ir_graph_parse(&e->g, graph->text, strlen(graph->text), NULL) == SNT_OK &&
         ir_eval_reference(&e->g, &info, &e->arena, e->out, NULL) == SNT_OK;
}

static bool same_number(const ir_eval_tensor *a, const ir_eval_tensor *b, uint64_t x, uint64_t y) {
  if (!a->value) return a->ints[x] == b->ints[y];
  return a->value[x] == b->value[y] || (a->value[x] != a->value[x] && b->value[y] != b->value[y]);
}

/* Whether rows first.. of `a` are those `shift` further in `b`, around the end. */
static bool rows_agree(const evaluation *a, const evaluation *b, int64_t rows, int64_t first, int64_t shift) {
  for (uint32_t o = 0; o < a->g.outputs.count; o++) {
    const ir_eval_tensor *x = &a->out[o], *y = &b->out[o];
    const uint64_t row = x->count / (uint64_t)rows;
    for (uint64_t i = (uint64_t)first * row; i < x->count; i++)
      if (!same_number(x, y, i, (i + (uint64_t)shift * row) % x->count)) return false;
  }
  return true;
}

/* The first row of the inputs is that of the second: no other result may change. Order alone would not tell sums over rows of two or three. */
static bool is_local(const conform_graph *graph, uint32_t path, const ports *all, int64_t rows, const evaluation *plain) {
  ports other;
  evaluation e;
  bool good = copy_inputs(all, &other);
  for (uint32_t i = 0; good && i < other.count; i++) {
    const uint64_t row = other.at[i].bytes / (uint64_t)rows;
    if (has_rows(&other.at[i], rows)) memcpy(other.at[i].data, (uint8_t *)other.at[i].data + row, row);
  }
  if (good) {
    good = evaluate(graph, path, &other, &e) && rows_agree(plain, &e, rows, 1, 0);
    ir_arena_free(&e.arena);
  }
  for (uint32_t i = 0; i < other.count; i++) free(other.at[i].data);
  return good;
}

bool conform_turn_rows(const conform_graph *graph, uint32_t path, const ports *all, ports *out) {
  const int64_t rows = rows_of(all);
  bool good = copy_inputs(all, out) && rows, any = false;
  for (uint32_t i = 0; good && i < out->count; i++) {
    if (!has_rows(&out->at[i], rows)) continue;
    turn(out->at[i].data, all->at[i].data, all->at[i].bytes, rows);
    any = true;
  }
  if (!good || !any) return false;
  evaluation plain, turned;
  good = evaluate(graph, path, all, &plain);
  if (good) {
    good = evaluate(graph, path, out, &turned) && rows_agree(&plain, &turned, rows, 0, 1) && is_local(graph, path, all, rows, &plain);
    ir_arena_free(&turned.arena);
  }
  ir_arena_free(&plain.arena);
  return good;
}

/* Which bits a NaN has is nobody's promise. */
static bool both_nan(int32_t dtype, const void *a, const void *b) {
  if (!ir_dtypes[dtype].is_float) return false;
  const double x = ir_dtype_load(dtype, a, 0), y = ir_dtype_load(dtype, b, 0);
  return x != x && y != y;
}

bool conform_rows_differ(const ports *all, const ports *turned, uint32_t *output, uint64_t *element) {
  for (uint32_t i = 0; i < all->count; i++) {
    const port *p = &all->at[i];
    if (p->info.kind != SNT_PORT_OUTPUT) continue;
    const int32_t dtype = p->info.tensor.dtype;
    const uint64_t size = ir_dtypes[dtype].bytes, row = p->bytes / (uint64_t)p->dims[0];
    for (uint64_t at = 0; at + size <= p->bytes; at += size) {
      const uint8_t *x = (const uint8_t *)p->data + at, *y = (const uint8_t *)turned->at[i].data + (at + row) % p->bytes;
      if (!memcmp(x, y, size) || both_nan(dtype, x, y)) continue;
      *output = i, *element = at / size;
      return true;
    }
  }
  return false;
}
