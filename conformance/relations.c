/* What the relations share: copies of inputs, the reference on them, equality of numbers and of bits. */
#include "conformance/relations.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const relation *const conform_relations[RELATIONS] = {&conform_relation_rows, &conform_relation_batches, &conform_relation_scaled};

bool relation_is_small(const ports *all) {
  uint64_t elements = 0;
  for (uint32_t i = 0; i < all->count; i++) {
    elements += all->at[i].elements;
    if (all->at[i].info.kind != SNT_PORT_INPUT && all->at[i].info.kind != SNT_PORT_OUTPUT) return false;
  }
  return elements <= RELATED_ELEMENTS;
}

bool relation_copy_inputs(const relation_case *c, related *out) {
  out->ports = *c->all;
  memcpy(out->symbols, c->graph->symbols, sizeof out->symbols);
  for (uint32_t i = 0; i < out->ports.count; i++) out->ports.at[i].data = NULL;
  for (uint32_t i = 0; i < out->ports.count; i++) {
    port *p = &out->ports.at[i];
    if (p->info.kind != SNT_PORT_INPUT) continue;
    if (!(p->data = malloc(p->bytes + 2 * GUARD))) return false;
    memcpy(p->data, c->all->at[i].data, p->bytes);
  }
  return true;
}

void relation_free(related runs[RELATED_RUNS]) {
  for (uint32_t r = 0; r < RELATED_RUNS; r++)
    for (uint32_t i = 0; i < runs[r].ports.count; i++) free(runs[r].ports.at[i].data);
}

bool relation_evaluate(const conform_graph *graph, const int64_t symbols[3], const ports *inputs, evaluation *e) {
  const void *data[MAX_PORTS];
  for (uint32_t i = 0; i < inputs->count; i++) data[i] = inputs->at[i].data;
  const ir_eval_info info = {.symbols = symbols, .inputs = data, .direct = true};
  return conform_parse(&e->of, graph->text, NULL) == SNT_OK && ir_eval_reference(&e->of.graph, &info, &e->of.arena, e->out, NULL) == SNT_OK;
}

bool relation_same_number(const ir_eval_tensor *a, uint64_t x, const ir_eval_tensor *b, uint64_t y) {
  if (!a->value) return a->ints[x] == b->ints[y];
  if (a->value[x] != a->value[x] || b->value[y] != b->value[y]) return a->value[x] != a->value[x] && b->value[y] != b->value[y];
  return a->value[x] == b->value[y] && !signbit(a->value[x]) == !signbit(b->value[y]);
}

bool relation_same_bits(int32_t dtype, const void *a, const void *b) {
  if (!memcmp(a, b, ir_dtypes[dtype].bytes)) return true;
  if (!ir_dtypes[dtype].is_float) return false;
  const double x = ir_dtype_load(dtype, a, 0), y = ir_dtype_load(dtype, b, 0);
  return x != x && y != y;
}

bool relation_differs(const relation *r, const relation_case *c, const related runs[RELATED_RUNS], const ports *const got[RELATED_RUNS],
                      relation_at *miss) {
  relation_at at = {0};
  for (at.port = 0; at.port < c->all->count; at.port++) {
    if (c->all->at[at.port].info.kind != SNT_PORT_OUTPUT) continue;
    for (at.element = 0; at.element < c->all->at[at.port].elements; at.element++) {
      if (r->holds(c, runs, got, &at)) continue;
      *miss = at;
      return true;
    }
    at.output++;
  }
  return false;
}

static bool is_nan_at(const ir_eval_tensor *t, uint64_t i) { return t->value && t->value[i] != t->value[i]; }

/* Rows that are one as far as the bound can tell look independent whatever they are computed from: a causal mean of one number is that number, rounded by where
   it stands, and so is the angle of what stands beside itself. NaN between them tells no numbers apart. */
bool relation_rows_alike(const ir_eval_tensor *t, int64_t rows) {
  const uint64_t row = t->count / (uint64_t)rows;
  for (uint64_t column = 0; column < row; column++) {
    uint64_t first = column;
    while (first < t->count && is_nan_at(t, first)) first += row;
    for (uint64_t i = first + row; i < t->count; i += row) {
      const bool near = t->value && t->bound && fabs(t->value[i] - t->value[first]) <= t->bound[i];
      if (!near && !is_nan_at(t, i) && !relation_same_number(t, i, t, first)) return false;
    }
  }
  return true;
}
