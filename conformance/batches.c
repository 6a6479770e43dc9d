/* A batch in two parts: where a graph has a symbol for its rows and each row of the results comes from the same row of the inputs, the same program
   run on the first rows and then on the others gives what one run gives. It sees steps that are chosen by how many rows there are. */
#include "conformance/relations.h"
#include <stdlib.h>
#include <string.h>

enum { WHOLE, ROWS, OTHER };

/* Whether a port has as many rows as symbol `s` says, of a graph in which symbols have the values given. */
static int share_of(const evaluation *e, const port *p, uint32_t number, uint32_t s, const int64_t *values) {
  const uint32_t inputs = e->of.graph.inputs.count;
  const uint32_t node = number < inputs ? e->of.graph.inputs.at[number].node : e->of.graph.outputs.at[number - inputs].node;
  const ir_tensor *type = &ir_at(&e->of.graph, node)->type;
  int64_t more[3];
  memcpy(more, values, sizeof more);
  more[s]++;
  int share = WHOLE;
  for (uint32_t d = 0; d < p->info.tensor.rank; d++) {
    int64_t now, then;
    if (!expr_eval(&e->of.pool, type->dims[d], &(expr_values){.symbols = values}, &now) ||
        !expr_eval(&e->of.pool, type->dims[d], &(expr_values){.symbols = more}, &then))
      return OTHER;
    if (now == then) continue;
    if (d || now != values[s] || then != now + 1) return OTHER;
    share = ROWS;
  }
  return share;
}

/* The part of a port's rows from `first`, `rows` of them. */
static bool cut_port(port *to, const port *from, int64_t first, int64_t rows) {
  const uint64_t row = from->bytes / (uint64_t)from->dims[0];
  to->dims[0] = rows;
  to->elements = from->elements / (uint64_t)from->dims[0] * (uint64_t)rows;
  to->bytes = row * (uint64_t)rows;
  if (to->info.kind == SNT_PORT_OUTPUT) return true;
  if (!(to->data = malloc(to->bytes + 2 * GUARD))) return false;
  memcpy(to->data, (const uint8_t *)from->data + row * (uint64_t)first, to->bytes);
  return true;
}

static bool make_part(const relation_case *c, const int *shares, uint32_t s, int64_t first, int64_t rows, related *out) {
  bool good = relation_copy_inputs(c, out);
  out->symbols[s] = rows;
  for (uint32_t i = 0; good && i < c->all->count; i++) {
    if (shares[i] != ROWS) continue;
    free(out->ports.at[i].data);
    out->ports.at[i].data = NULL;
    good = cut_port(&out->ports.at[i], &c->all->at[i], first, rows);
  }
  return good;
}

/* The reference on a part gives the rows of the reference. */
static bool part_agrees(const relation_case *c, const related *part, const evaluation *plain, uint32_t s, int64_t first) {
  evaluation e;
  bool good = relation_evaluate(c->graph, part->symbols, &part->ports, &e);
  for (uint32_t o = 0; good && o < plain->of.graph.outputs.count; o++) {
    const uint64_t row = plain->out[o].count / (uint64_t)c->graph->symbols[s];
    good = e.out[o].count == row * (uint64_t)part->symbols[s];
    for (uint64_t i = 0; good && i < e.out[o].count; i++)
      good = relation_same_number(&plain->out[o], row * (uint64_t)first + i, &e.out[o], i);
  }
  conform_forget(&e.of);
  return good;
}

/* The symbol of the rows: every output has them, some input too, and no port depends on it in another way. */
static bool find_symbol(const relation_case *c, const evaluation *e, uint32_t *symbol, int shares[MAX_PORTS]) {
  for (uint32_t s = 0; s < e->of.pool.symbols.count && s < 3; s++) {
    uint32_t inputs = 0;
    bool fits = c->graph->symbols[s] >= 2;
    for (uint32_t i = 0; fits && i < c->all->count; i++) {
      shares[i] = share_of(e, &c->all->at[i], i, s, c->graph->symbols);
      const bool is_output = c->all->at[i].info.kind == SNT_PORT_OUTPUT;
      inputs += !is_output && shares[i] == ROWS;
      fits = shares[i] != OTHER && (!is_output || shares[i] == ROWS);
    }
    *symbol = s;
    if (fits && inputs) return true;
  }
  return false;
}

/* A part for the first run: about a third, a number that the symbol may have, as the rest. 0: none. */
static int64_t first_part(const expr_symbol *symbol, int64_t rows) {
  const int64_t step = symbol->multiple_of > 1 ? symbol->multiple_of : 1, part = (rows / 3 + step) / step * step;
  return rows % step == 0 && part >= symbol->min && part < rows && rows - part >= symbol->min ? part : 0;
}

static bool prepare_batches(const relation_case *c, related runs[RELATED_RUNS]) {
  evaluation plain;
  int shares[MAX_PORTS];
  uint32_t s;
  bool good = relation_evaluate(c->graph, c->graph->symbols, c->all, &plain) && find_symbol(c, &plain, &s, shares);
  const int64_t rows = good ? c->graph->symbols[s] : 0, part = good ? first_part(&plain.of.pool.symbols.at[s], rows) : 0;
  good = good && part && make_part(c, shares, s, 0, part, &runs[0]) && make_part(c, shares, s, part, rows - part, &runs[1]) &&
         part_agrees(c, &runs[0], &plain, s, 0) && part_agrees(c, &runs[1], &plain, s, part);
  for (uint32_t o = 0; good && o < plain.of.graph.outputs.count; o++) runs->alike[o] = relation_rows_alike(&plain.out[o], rows);
  conform_forget(&plain.of);
  return good;
}

static bool batch_holds(const relation_case *c, const related runs[RELATED_RUNS], const ports *const got[RELATED_RUNS],
                        const relation_at *at) {
  if (runs->alike[at->output]) return true;
  const port *p = &c->all->at[at->port];
  const uint64_t size = ir_dtypes[p->info.tensor.dtype].bytes, byte = at->element * size, border = got[0]->at[at->port].bytes;
  const uint8_t *part = byte < border ? (const uint8_t *)got[0]->at[at->port].data + byte
                                      : (const uint8_t *)got[1]->at[at->port].data + byte - border;
  return relation_same_bits(p->info.tensor.dtype, (const uint8_t *)p->data + byte, part);
}

const relation conform_relation_batches = {"other bits where the batch is run in two parts", 2, prepare_batches, batch_holds};
