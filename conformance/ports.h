/* The ports of a program under test with their data in host memory, as judge.c and rows.c hold them. */
#ifndef CONFORMANCE_PORTS_H
#define CONFORMANCE_PORTS_H
#include "conformance/conform.h"

enum { MAX_PORTS = 12, GUARD = 4096, POISON = 0xFF }; /* 0xFF bytes are a NaN in every float type */
typedef struct port {
  snt_port info;
  int64_t dims[SNT_MAX_RANK];
  uint64_t elements, bytes;
  void *data;
} port;
typedef struct ports {
  port at[MAX_PORTS];
  uint32_t count;
} ports;

/* ---- rows.c: results of a row must not depend on where the row stands ---- */
/* The inputs with their rows (places along the first axis) turned by one, in `out`, the rest of which is empty; false: in the reference the results
   do not turn with them, or there are no rows. `out` is to be freed in any case. */
bool conform_turn_rows(const conform_graph *, uint32_t path, const ports *all, ports *out);
/* The first element of an output of `turned` that has not the bits that it has one row before in `all`. */
bool conform_rows_differ(const ports *all, const ports *turned, uint32_t *output, uint64_t *element);
#endif
