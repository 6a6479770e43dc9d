/* One program of a graph on one device, and a run of it (attempt.c), as judge.c and the ways of ways.c make them. */
#ifndef CONFORMANCE_ATTEMPT_H
#define CONFORMANCE_ATTEMPT_H
#include "conformance/relations.h"

typedef struct source {
  const conform_graph *graph;
  double low, high;
  uint64_t state;
  const int64_t *symbols;
  const ports *given; /* the inputs and states; null: made */
} source;

enum { MASKED_RUN = 1, STRICT_RUN = 2, UNFUSED_RUN = 4, SAME_RUN = 8, INTERP_RUN = 16, FAST_RUN = 32 };
typedef struct recipe recipe;
struct recipe { /* how a program is made */
  uint32_t runs, compile_flags;
  uint64_t peak_bytes;
  snt_result (*steer)(snt_graph *, const recipe *); /* says contracts; or null */
  const char *text;                                 /* for it */
  uint64_t seed;
};
typedef struct attempt {
  snt_device *device;
  snt_program *program;
  snt_exec *exec;
  snt_stream *stream;
  snt_event *event;
  snt_buffer *buffers[MAX_PORTS];
  snt_argument arguments[MAX_PORTS];
  uint32_t argument_count;
  ports ports;
  uint8_t *scratch;
  bool holds; /* the exec keeps states itself: they are not given */
} attempt;

void attempt_enter(conform_device *, uint8_t phase);
bool attempt_make_ports(const snt_program *, source *, ports *);
void attempt_free_ports(ports *);
snt_result attempt_build(conform_device *, const char *text, const recipe *, attempt *, conform_verdict *, snt_diag *);
/* In device buffers between guard words. Inputs must be what they were behind it. */
snt_result attempt_run(attempt *, source *, conform_verdict *, snt_diag *);
snt_result attempt_make(conform_device *, const char *text, source *, const recipe *, attempt *, conform_verdict *, snt_diag *); /* both */
void attempt_end_run(attempt *); /* what one run made; the program stays for the next */
void attempt_end(attempt *);
uint64_t attempt_bits(const ports *);
snt_result attempt_hold(const conform_graph *, uint32_t path, const ports *, conform_verdict *, snt_diag *); /* against the reference */
void attempt_compare_bits(const ports *, const ports *, const char *whom, conform_verdict *);
#endif
