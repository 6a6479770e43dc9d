/* The ports of a program under test with their data in host memory, as judge.c and the relations hold them. */
#ifndef CONFORMANCE_PORTS_H
#define CONFORMANCE_PORTS_H
#include "conformance/conform.h"

enum { MAX_PORTS = 24, GUARD = 4096, POISON = 0xFF }; /* 0xFF bytes are a NaN in every float type */
typedef struct port {
  snt_port info;
  int64_t dims[SNT_MAX_RANK];
  uint64_t elements, bytes;
  void *data;
  void *after; /* what a state has become; null: it is none, or the exec keeps it */
} port;
typedef struct ports {
  port at[MAX_PORTS];
  uint32_t count;
} ports;
#endif
