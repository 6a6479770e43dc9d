/* Rows in another order: where each row of the results comes from the same row of the inputs, the results of shuffled rows are the results, shuffled.
   Whether rows are independent is asked of the reference. */
#include "conformance/relations.h"
#include <math.h>
#include <string.h>

/* The rows that every output has; 0: there are none. */
static int64_t rows_of(const ports *all) {
  int64_t rows = 0;
  for (uint32_t i = 0; i < all->count; i++) {
    const port *p = &all->at[i];
    if (p->info.kind != SNT_PORT_OUTPUT) continue;
    if (!p->info.tensor.rank || (rows && p->dims[0] != rows)) return 0;
    rows = p->dims[0];
  }
  return rows >= 2 ? rows : 0;
}

static bool has_rows(const port *p, int64_t rows) { return p->info.kind == SNT_PORT_INPUT && p->info.tensor.rank && p->dims[0] == rows; }

static bool have_common_factor(uint64_t a, uint64_t b) {
  while (b) {
    const uint64_t rest = a % b;
    a = b, b = rest;
  }
  return a != 1;
}

/* Where row `row` goes: steps of about three eighths of all rows, so that neighbours part and places in a tile change. */
static uint64_t place_of(uint64_t row, int64_t rows) {
  uint64_t step = (uint64_t)rows * 3 / 8 + 1;
  while (have_common_factor(step, (uint64_t)rows)) step++;
  return (row * step + 1) % (uint64_t)rows;
}

static void shuffle(void *to, const void *from, uint64_t bytes, int64_t rows) {
  const uint64_t row = bytes / (uint64_t)rows;
  for (uint64_t i = 0; i < (uint64_t)rows; i++) memcpy((uint8_t *)to + place_of(i, rows) * row, (const uint8_t *)from + i * row, row);
}

/* Behind a step (a cast to integers, a comparison) a device may be on the other side of it than the reference. Rows that are alike by such numbers look
   independent whatever they are computed from. Roundings are far less than such a share of an output's largest number. */
static bool has_steps(const ir_eval_tensor *t) {
  static const double STEP = 0x1p-6;
  double largest = 0, widest = 0;
  for (uint64_t i = 0; t->bound && i < t->count; i++) {
    largest = fmax(largest, t->value ? fabs(t->value[i]) : 0);
    widest = fmax(widest, t->bound[i]);
  }
  return widest > STEP * largest;
}

static bool is_known(const evaluation *e) {
  bool known = true;
  for (uint32_t o = 0; known && o < e->of.graph.outputs.count; o++) known = !has_steps(&e->out[o]);
  return known;
}

/* Whether rows first.. of `a` are those of `b` where they went, or, not `moved`, where they were. */
static bool rows_agree(const evaluation *a, const evaluation *b, int64_t rows, uint64_t first, bool moved) {
  for (uint32_t o = 0; o < a->of.graph.outputs.count; o++) {
    const uint64_t row = a->out[o].count / (uint64_t)rows;
    for (uint64_t r = first; r < (uint64_t)rows; r++)
      for (uint64_t i = 0; i < row; i++)
        if (!relation_same_number(&a->out[o], r * row + i, &b->out[o], (moved ? place_of(r, rows) : r) * row + i)) return false;
  }
  return true;
}

/* Another first row: that of the second, or no numbers, which no sum over rows hides by rounding. */
static void change_first(const port *p, int64_t rows, bool spoil) {
  const uint64_t row = p->bytes / (uint64_t)rows;
  const bool is_float = ir_dtypes[p->info.tensor.dtype].is_float;
  if (spoil && is_float) memset(p->data, 0xFF, row);
  else memcpy(p->data, (uint8_t *)p->data + row, row);
}

/* With another first row no other result may change. Order alone would not tell sums over rows of two or three. */
static bool is_local(const relation_case *c, int64_t rows, const evaluation *plain, bool spoil) {
  related other[RELATED_RUNS] = {0};
  evaluation e;
  bool good = relation_copy_inputs(c, other);
  for (uint32_t i = 0; good && i < other->ports.count; i++)
    if (has_rows(&other->ports.at[i], rows)) change_first(&other->ports.at[i], rows, spoil);
  if (good) {
    good = relation_evaluate(c->graph, other->symbols, &other->ports, &e) && rows_agree(plain, &e, rows, 1, false);
    conform_forget(&e.of);
  }
  relation_free(other);
  return good;
}

static bool prepare_rows(const relation_case *c, related runs[RELATED_RUNS]) {
  const int64_t rows = rows_of(c->all);
  ports *in = &runs->ports;
  bool good = rows && relation_copy_inputs(c, runs), any = false;
  for (uint32_t i = 0; good && i < in->count; i++) {
    if (!has_rows(&in->at[i], rows)) continue;
    shuffle(in->at[i].data, c->all->at[i].data, in->at[i].bytes, rows);
    any = true;
  }
  if (!good || !any) return false;
  evaluation plain, moved;
  good = relation_evaluate(c->graph, c->graph->symbols, c->all, &plain) && is_known(&plain);
  for (uint32_t o = 0; good && o < plain.of.graph.outputs.count; o++) runs->alike[o] = relation_rows_alike(&plain.out[o], rows);
  if (good) {
    good = relation_evaluate(c->graph, runs->symbols, in, &moved) && rows_agree(&plain, &moved, rows, 0, true) &&
           is_local(c, rows, &plain, false) && is_local(c, rows, &plain, true);
    conform_forget(&moved.of);
  }
  conform_forget(&plain.of);
  return good;
}

static bool row_holds(const relation_case *c, const related runs[RELATED_RUNS], const ports *const got[RELATED_RUNS],
                      const relation_at *at) {
  if (runs->alike[at->output]) return true;
  const port *p = &c->all->at[at->port], *moved = &got[0]->at[at->port];
  const uint64_t size = ir_dtypes[p->info.tensor.dtype].bytes, row = p->elements / (uint64_t)p->dims[0];
  const uint64_t to = place_of(at->element / row, p->dims[0]) * row + at->element % row;
  return relation_same_bits(p->info.tensor.dtype, (const uint8_t *)p->data + at->element * size, (const uint8_t *)moved->data + to * size);
}

const relation conform_relation_rows = {"other bits where its row stands elsewhere", 1, prepare_rows, row_holds};
