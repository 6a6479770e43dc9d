/* Ways to the same answer: how else a case's program can be made and run. Each is a row of a table (ways.c): of those that run the program
   that passed, results are the same bits; of those that make another, they are within the reference's bound, in STRICT the same bits. What
   a way needs and a case lacks, or what a contract or a budget does not allow, leaves it out. */
#ifndef CONFORMANCE_WAYS_H
#define CONFORMANCE_WAYS_H
#include "conformance/attempt.h"

typedef struct way_case {
  conform_device *d;
  const conform_graph *graph;
  uint32_t path, runs; /* runs: flags of the first recipe */
  uint64_t seed;       /* of its inputs */
  double low, high;
  const attempt *first; /* which has run */
} way_case;
snt_result conform_ways(const way_case *, conform_verdict *, snt_diag *);
#endif
