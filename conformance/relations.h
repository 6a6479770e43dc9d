/* Checks that need no bound: what must hold, bit by bit, between runs of one program in STRICT on inputs that were changed. They see what depends on
   where a row stands, on how many rows there are or on the size of numbers (tails, shares of groups, orders of sums, wrong starting values) and is
   still within the bound. Each relation asks the graph or the reference first whether it applies. */
#ifndef CONFORMANCE_RELATIONS_H
#define CONFORMANCE_RELATIONS_H
#include "conformance/ports.h"
#include "ir/eval.h"

typedef struct related { /* one more run */
  ports ports;           /* its inputs; outputs have no data */
  int64_t symbols[3];
  int8_t degree[MAX_PORTS]; /* scaled.c: of each output */
  bool alike[MAX_PORTS];    /* each output's rows are */
} related;
enum { RELATED_RUNS = 2 };
typedef struct relation_case { /* a run that passed */
  const conform_graph *graph;
  const ports *all;
} relation_case;
typedef struct relation_at {
  uint32_t port, output; /* among all ports, among the outputs */
  uint64_t element;
} relation_at;
typedef struct relation {
  const char *words; /* what is wrong where it does not hold */
  uint32_t runs;
  /* Makes the runs, which are to be freed in any case; false: it does not apply. */
  bool (*prepare)(const relation_case *, related runs[RELATED_RUNS]);
  /* Is an element of the plain run what the others make it? */
  bool (*holds)(const relation_case *, const related runs[RELATED_RUNS], const ports *const got[RELATED_RUNS], const relation_at *);
} relation;
/* `got`: the ports of each run with its outputs. The first element for which the relation does not hold; false: it holds for all. */
bool relation_differs(const relation *, const relation_case *, const related runs[RELATED_RUNS], const ports *const got[RELATED_RUNS],
                      relation_at *);

extern const relation conform_relation_rows, conform_relation_scaled, conform_relation_batches; /* rows.c, scaled.c, batches.c */
enum { RELATIONS = 3 };
extern const relation *const conform_relations[RELATIONS];

/* ---- what they share (relations.c) ---- */
enum { RELATED_ELEMENTS = 1 << 18 }; /* more are too much to evaluate again */
/* Only inputs and outputs, and not too many elements. */
bool relation_is_small(const ports *all);
bool relation_copy_inputs(const relation_case *, related *out);
void relation_free(related runs[RELATED_RUNS]);
typedef struct evaluation {
  conform_parsed of; /* to be forgotten, whatever happened */
  ir_eval_tensor out[MAX_PORTS];
} evaluation;
bool relation_evaluate(const conform_graph *, const int64_t symbols[3], const ports *inputs, evaluation *);
/* Zeros of other signs are other numbers, NaNs are one. */
bool relation_rows_alike(const ir_eval_tensor *, int64_t rows); /* all rows are one, which says nothing of where they come from */
bool relation_same_number(const ir_eval_tensor *a, uint64_t x, const ir_eval_tensor *b, uint64_t y);
/* Which bits a NaN has is nobody's promise. */
bool relation_same_bits(int32_t dtype, const void *a, const void *b);
#endif
