/* PLAN: what a compiled graph does, step by step, as integer expressions over its symbols. Text form: ir/PLAN.txt.
   In: kernels and buffers from the schedules. Out: what runtimes evaluate at bind or record time without allocating.
   A step whose `guard` fails is skipped; of the steps with one `choice` number (not 0) only the first that holds runs.
   A loop repeats a range of the steps; what its steps give may depend on the number of the trip, a variable of the pool. */
#ifndef IR_PLAN_H
#define IR_PLAN_H
#include "ir/expr.h"
#include "ir/kernel.h"
#include "ir/making.h"

typedef enum {
  PLAN_INPUT,    /* a port the caller binds, read */
  PLAN_OUTPUT,   /* a port the caller binds, written */
  PLAN_STATE,    /* a port that is read and written and keeps its contents between runs */
  PLAN_CONSTANT, /* bytes of the program */
  PLAN_SCRATCH   /* part of the one scratch range, at `offset` */
} plan_buffer_kind;
/* How a port's tensor lies in an image that is bound in place of a buffer: its last axes are channels, rows and columns. */
enum { PLAN_IMAGE_NONE, PLAN_IMAGE_CHW, PLAN_IMAGE_HWC, PLAN_IMAGE_HW, PLAN_IMAGE_COUNT };
extern const char *const plan_image_words[PLAN_IMAGE_COUNT];
typedef struct plan_buffer {
  const char *name; /* ports: the user's name; else a name for people */
  uint8_t kind, dtype, rank;
  uint8_t image;                  /* PLAN_IMAGE_* */
  ir_expr dims[SNT_MAX_RANK];     /* logical dims of the value it holds (ports); scratch: may be of rank 1 */
  ir_expr bytes;                  /* storage size, a multiple of 16 for scratch and constants */
  ir_expr offset;                 /* scratch: byte offset in the scratch range, a multiple of `align` */
  uint32_t align;                 /* 256 unless the profile says more */
  const void *data;               /* constant: row-major or packed bytes; null while they are only described, */
  const ir_making *making;        /* by this; as many bytes as the value has */
  bool flushes;                   /* constant: what is below 2^-126 is 0 in the copy that a device has, and in a saved program */
  uint32_t first_step, last_step; /* lifetime, inclusive */
  uint32_t node;                  /* graph node it holds, 0: none */
} plan_buffer;
typedef struct plan_condition {
  ir_expr value, lo, hi;
} plan_condition; /* lo <= value < hi */
typedef struct plan_binding {
  uint32_t buffer;
  ir_expr offset, bytes;
  uint8_t access;
  uint32_t other; /* instead of `buffer` where `swap` is not 0: the two halves of a pair that trips write in turn */
  ir_expr swap;   /* literal 0: `buffer` always */
} plan_binding;   /* by kernel slot; access KIR_READ | KIR_WRITE */
typedef struct plan_step {
  const char *name; /* unique: "k3_layernorm" */
  uint32_t kernel;
  ir_expr groups; /* linear count; the runtime folds it into the device's grid limits, the kernel unfolds it */
  uint32_t binding_count, scalar_count, guard_count;
  plan_binding *bindings; /* [slot] */
  ir_expr *scalars;       /* [kernel scalar], integers; a float scalar holds its f32 bits */
  plan_condition *guards;
  uint32_t choice;
  uint32_t node_count;
  const uint32_t *nodes;             /* graph nodes it computes, for explain */
  uint32_t barrier;                  /* 1: must wait for earlier steps it depends on (a true dependence exists since the last barrier) */
  ir_expr bytes_read, bytes_written; /* of the step, for explain and bench: each buffer region once */
  double flops, est_ns;              /* cost model, at the hints of the symbols */
} plan_step;
/* Steps [first, end) run `trips` times, `variable` counting from 0. Loops are in order of their first step, outer ones before inner ones.
   `trips` is an expression over symbols alone. */
typedef struct plan_loop {
  ir_expr variable, trips;
  uint32_t first, end;
  uint32_t body; /* which of the compiler's bodies its steps compute, for explain; 0: none known */
  uint32_t
      flag; /* 1 more than the buffer whose first byte is 0, after a trip with an even number of trips to come, if those change nothing; 0: none */
} plan_loop;
typedef struct plan_kernel {
  const kir_kernel *kernel;
  const char *kind; /* "loop" "row" .. */
} plan_kernel;
typedef struct ir_plan {
  ir_arena *arena;
  expr_pool *pool;
  const char *title;
  IR_VEC(plan_kernel) kernels;
  IR_VEC(plan_buffer) buffers;
  IR_VEC(plan_step) steps;
  IR_VEC(plan_loop) loops;
  ir_expr scratch_bytes;
  bool failed;
} ir_plan;

void plan_init(ir_plan *, ir_arena *, expr_pool *);
snt_result plan_verify(const ir_plan *,
                       snt_diag *);          /* slots bound, lifetimes disjoint in scratch, barriers cover dependences, scalars complete */
void plan_print(const ir_plan *, ir_text *); /* without kernel bodies or constant bytes (their size and hash) */
snt_result plan_parse(ir_plan *, const char *text, size_t length,
                      snt_diag *); /* kernels named, not defined: bound by plan_attach_kernels */
/* The grid that a device with at most `limit` groups an axis launches for a linear count: x*y*z >= groups; x first. Kernels drop the excess. */
void plan_fold_grid(uint64_t groups, const uint64_t limit[3], uint32_t out[3]);
/* Values of one step. Allocates nothing. False on overflow or a size that does not fit. */
typedef struct plan_launch {
  bool runs;
  uint64_t groups;
  uint8_t scalars[128];
  uint32_t scalar_bytes;
} plan_launch;
bool plan_eval_step(const ir_plan *, uint32_t step, const expr_values *, uint32_t *taken_choice, plan_launch *out);
bool plan_eval(const ir_plan *, ir_expr, const int64_t *symbols, uint64_t *out);
bool plan_eval_at(const ir_plan *, ir_expr, const expr_values *, uint64_t *out);
uint32_t plan_variable_count(const ir_plan *); /* entries that expr_values.vars (only those of open loops are read) needs; 0: none */
/* Dispatches and bindings of a run, every step of every trip counted. False beyond PLAN_MAX_DISPATCHES. */
enum { PLAN_MAX_DISPATCHES = 1 << 20 };
bool plan_count_dispatches(const ir_plan *, const int64_t *symbols, uint64_t *dispatches, uint64_t *bindings);
/* The plan in the order in which it runs: `step` for each step of each trip. */
typedef struct plan_walk {
  void *user;
  snt_result (*step)(void *user, uint32_t step);
  void (*trip)(void *user); /* before each trip of a loop, and after the last; may be null */
  const int64_t *symbols;
  int64_t *variables; /* written */
} plan_walk;
snt_result plan_walk_steps(const ir_plan *, const plan_walk *);
bool plan_logical_bytes(const ir_plan *, const plan_buffer *, const int64_t *symbols,
                        uint64_t *out); /* of the value it holds, row-major; at most 2^46 */
/* Symbols from the extents that the caller's ports really have; checks min, max, multiple_of and consistency. */
snt_result plan_solve_symbols(const ir_plan *, uint32_t buffer, const int64_t *dims, int64_t *symbols, uint8_t *known, snt_diag *);
#endif
