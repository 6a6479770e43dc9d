/* What `sinter bench` and `sinter build` share: a model made ready with the time of each part, and a program with buffers that is run and timed. */
#ifndef TOOLS_SINTER_BENCH_H
#define TOOLS_SINTER_BENCH_H
#include "tools/sinter/tool.h"

typedef struct bench_ready {
  double import_ms, compile_ms, build_ms; /* the clock's */
  double cpu_ms;                          /* processor time of the three, helping processes left out */
} bench_ready;
static inline double bench_ready_ms(const bench_ready *t) { return t->import_ms + t->compile_ms + t->build_ms; }

/* Load, compile, exec, kernels: the session then has `program` and `exec`. */
snt_result bench_make_ready(tool_session *, bench_ready *out);

typedef struct bench_side {
  const snt_program *program;
  snt_program *own; /* null: the session's */
  snt_exec *exec;   /* the session's, or of `own` */
  snt_buffer *buffers[TOOL_MAX_PORTS];
  double *ms, *cpu_ms; /* of each run; cpu: of the whole process, drivers' threads included */
  uint32_t runs, room;
} bench_side;
snt_result bench_open_side(tool_session *, snt_stream *, bool unfused, const tool_tensor *, uint32_t count, uint32_t room, bench_side *);
snt_result bench_run_side(tool_session *, snt_stream *, bench_side *, uint32_t count);
void bench_close_side(bench_side *);

/* Answers lines of standard input: N runs N times and prints the milliseconds as a JSON array. Before that the first result goes to --output
   and a line of JSON says that it is ready. */
snt_result bench_serve(tool_session *, snt_stream *, const bench_ready *, bench_side *, tool_tensor *, uint32_t count);
#endif
