/* What the files of the importer share, and no row needs. */
#ifndef ONNX_IMPORT_PRIVATE_H
#define ONNX_IMPORT_PRIVATE_H
#include "onnx/import.h"
#include <stdatomic.h>

/* The names of one graph. A graph inside a node sees the names around it; a function sees nothing but its inputs. */
typedef struct onnx_scope {
  struct onnx_scope *parent; /* whose names are visible, or null */
  struct onnx_scope *caller; /* of a function: where attributes of the calling node are looked up */
  const onnx_node *call;     /* that node, or null */
  const onnx_function *function;
  const onnx_opsets *opsets;
  const char *prefix; /* of node names */
  onnx_value **table; /* open hash by name */
  uint32_t size, count;
} onnx_scope;
typedef struct onnx_problem {
  const char *node, *op, *reason;
} onnx_problem;
/* What operators demand of symbols that the file left open: found while nodes are imported, which then starts again. */
typedef struct onnx_rule {
  const char *symbol, *same_as; /* same_as null: a multiple of `multiple`, if that is not 0, else at most `max`, or exactly, if fixed */
  int64_t max, multiple;
  bool fixed;
} onnx_rule;
/* A number that is known only when it runs, as a variable of known numbers and as a node: the trip's of a loop whose body is being imported, a count. */
typedef struct onnx_late {
  uint32_t variable, node;
  ir_expr sum, as; /* the sum of other late numbers that it is, and the variable as an expression; 0: it is none */
} onnx_late;
struct onnx_import {
  ir_graph *g;
  ir_arena *temp; /* the model and the names; ends with the import */
  const onnx_model *model;
  const snt_onnx_info *info;
  const onnx_files *files;
  snt_diag *diag;
  onnx_scope *scope;
  uint32_t depth, done, total;
  snt_result failed; /* a mistake of the file, told in diag: ends the import */
  IR_VEC(onnx_problem) problems;
  IR_VEC(onnx_rule) rules;
  IR_VEC(onnx_late) trips;  /* outer loops first */
  IR_VEC(onnx_late) counts; /* of values of bounded extent, and what else is an extent by data */
  bool again;               /* a rule was found: the import starts over with it */
  uint32_t dim_count;       /* of info */
  bool *dim_used;           /* which of them the model has */
  IR_VEC(snt_symbol) given; /* extents that the inputs which info fixes have where the model leaves them open */
  atomic_uint *starved;     /* the context's: times its allocator gave nothing */
  uint32_t starved_before;
};
/* What went wrong since then is no fault of the model's. */
static inline bool onnx_starved(const onnx_import *im) { return atomic_load(im->starved) != im->starved_before; }
enum { ONNX_MAX_DEPTH = 24, ONNX_MAX_NODES = 1000000 };

/* ---- scope.c ---- */
onnx_value *onnx_scope_find(const onnx_scope *, const char *name); /* null: not there */
onnx_value *onnx_scope_add(onnx_import *, const char *name);       /* a new value; null: the name is there already, or no memory */
int64_t onnx_scope_opset(const onnx_scope *, const char *domain);  /* 0: not imported */

/* ---- import.c ---- */
snt_result onnx_import_model(onnx_import *); /* everything below im->g; im is filled in */
bool onnx_import_nodes(onnx_import *, const onnx_nodes *);
bool onnx_know_nodes(onnx_import *, const onnx_nodes *); /* what known numbers say of them, and nothing else: nothing is refused */
bool onnx_import_constants(onnx_import *, const onnx_tensors *);
bool onnx_is_countable(onnx_import *, const ir_tensor *);
bool onnx_take_tensor(onnx_import *, onnx_value *, const onnx_tensor *);
bool onnx_fail(onnx_import *, snt_result, const char *format, ...) IR_PRINTF(3, 4); /* sets failed; returns false */
void onnx_add_problem(onnx_import *, const char *node, const char *op, const char *reason);

/* ---- symbols.c ---- */
bool onnx_symbol(onnx_import *, const char *param, int64_t hint, ir_expr *out); /* the extent that a name stands for */
void onnx_note_dim(onnx_import *, const char *param);                           /* an input has such an extent */
const char *onnx_stray_dim(const onnx_import *);                                /* one that the caller names and no input has, or null */
int64_t onnx_given_extent(onnx_import *, const char *param);                    /* the number that the caller fixes it to; -1: none */
bool onnx_give_extent(onnx_import *, const char *param, int64_t extent); /* a fixed input has that there; the first of a name counts */
int64_t onnx_given_most(onnx_import *, const char *value); /* what a number that is computed may be at most; -1: nothing says */
/* ---- rules.c ---- */
bool onnx_demand_equal(onnx_import *, ir_expr a, ir_expr b); /* true: a rule was added that makes them equal */
bool onnx_demand_within(onnx_import *, ir_expr rest);        /* true: one that makes this number less an extent not negative */

/* ---- loop_facts.c ---- */
/* What a Loop's graph says of itself before it is imported: found by its known numbers alone, of which the number of the trip is one. */
typedef struct onnx_loop_facts {
  const onnx_graph *body;
  uint32_t carried;
  onnx_value *const *initial; /* of the carried values */
  bool *read, *same, *counts; /* of each: a trip reads it; it never changes; it is start + step * the number of the trip */
  ir_expr *start;
  int64_t *step;
  ir_expr most; /* trips, by what the condition compares; INT64_MAX: nothing that is known ends them */
  bool alone;   /* nothing else does: where the first trip is made, so are all */
} onnx_loop_facts;
bool onnx_find_loop_facts(onnx_call *, onnx_loop_facts *);

/* ---- late.c ---- */
bool onnx_uses_trip(const onnx_import *, ir_expr); /* whether it changes from trip to trip */
uint32_t onnx_late_node(const onnx_import *, uint32_t variable);
void onnx_take_bound(onnx_call *, onnx_value *); /* a whole number that the graph computes is late where the caller bounds it by its name */

/* ---- bounded.c ---- */
bool onnx_spread_counts(onnx_call *, uint32_t first);  /* results of operands of bounded extent; first: of the call's nodes */
uint32_t onnx_node_at_rest(onnx_call *, onnx_value *); /* with the value's `rest` in the places that are not used */

/* ---- alike.c ---- */
uint32_t onnx_join_alike(onnx_call *, uint32_t axis, uint32_t count,
                         const uint32_t *parts); /* side by side; 0: they are not alike, or few */

/* ---- wanted.c ---- */
int64_t onnx_first_places_read(onnx_call *); /* of result 0, along its first axis: at most so many places are; INT64_MAX: nothing says so */

/* ---- counted.c ---- */
typedef struct onnx_counted { /* what is left to say of results once the row has run */
  ir_expr count;              /* 0: nothing */
  uint32_t axis;
  bool sums;      /* each place is many products: schedules are to ask whether it is wanted */
  ir_expr extent; /* not 0: the result is a mean of so many places, of which only the count is used */
} onnx_counted;
bool onnx_ready_counted(onnx_call *, onnx_counted *); /* operands of bounded extent as the operator may read them; false: refused */
/* ---- moved.c ---- */
bool onnx_ready_moved(onnx_call *, onnx_counted *); /* the same, of operators along whose axis places move */
/* Operand 0 of a Pad, padded along its axis of places already (and no more in `pads`), or with `fill` where that does as well. */
uint32_t onnx_pad_moved(onnx_call *, ir_expr *pads, const char *mode, uint32_t fill);
bool onnx_settle_counted(onnx_call *, const onnx_counted *, uint32_t first);

/* ---- function.c ---- */
const onnx_scope *onnx_know_body(onnx_call *, const onnx_graph *, uint32_t in_count,
                                 onnx_value *const *in); /* what is known in it; null: a mistake */
const onnx_function *onnx_find_function(const onnx_import *, const onnx_node *);
bool onnx_import_function(onnx_call *, const onnx_function *);

/* ---- known.c ---- */
bool onnx_know(onnx_call *, bool *known); /* tries to compute the call at import; false: a mistake was refused */
const onnx_number *onnx_value_known(onnx_import *, onnx_value *);

/* ---- call.c ---- */
uint32_t onnx_value_node(onnx_import *, onnx_value *, const char **why); /* 0: why not */
uint32_t onnx_whole_node(onnx_import *, int32_t dtype, ir_expr);         /* of rank 0; may change from trip to trip */

/* ---- rows.c ---- */
const onnx_row *onnx_find_row(const onnx_node *, int64_t opset, const onnx_row **other);
bool onnx_run_row(onnx_call *);

#endif
