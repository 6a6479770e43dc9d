/* What the operators of an ONNX model are imported with. An operator is a row of operators.def: a template of the graph's text form, or a
   handler, which gets an onnx_call and uses the functions below. How to add one: operators.def.

   A value of the model is a node of the graph, or a tensor of the file that nobody has needed yet, or KNOWN: a short list of numbers that
   are expressions over the symbols, which is what shapes are made of. known.c computes with those at import, so that shape arithmetic makes
   no nodes; a known value becomes a node only when an operator asks for it with onnx_in. */
#ifndef ONNX_IMPORT_H
#define ONNX_IMPORT_H
#include "ir/graph.h"
#include "onnx/model.h"
#include <sinter/sinter_onnx.h>

enum { ONNX_MAX_KNOWN = 2048, ONNX_MAX_INPUTS = 4096 };

/* num / den; den > 0, and 1 in every integer value. */
typedef struct onnx_number {
  ir_expr num;
  int64_t den;
} onnx_number;

typedef struct onnx_value {
  const char *name;
  ir_tensor type;            /* always right, also of values that are no node yet */
  uint32_t node;             /* 0: not made yet */
  const onnx_tensor *tensor; /* a tensor of the file, or null */
  const onnx_number *known;  /* all elements, row-major, or null */
  const void *data;          /* of `tensor`, once it was needed */
  ir_expr count;             /* how many places of an axis are used, where that is a late number; 0: all (onnx/bounded.c) */
  uint8_t count_axis;        /* that axis */
  double rest;               /* what the others are in an output of the model; inside it nobody may ask */
  bool broken;               /* its operator was refused: readers are skipped without a word */
  bool returned;             /* an output of the model already */
} onnx_value;

typedef struct onnx_import onnx_import;
typedef struct onnx_row onnx_row;
typedef struct onnx_call {
  onnx_import *im;
  ir_graph *g;
  const onnx_node *node;
  const onnx_row *row;
  const char *name; /* of the node, for the user */
  int64_t opset;    /* of the operator's domain */
  uint32_t in_count, out_count;
  onnx_value **in; /* null: left out */
  onnx_value *out; /* to be filled by onnx_out and its like */
  uint64_t used;   /* attributes that were asked for; the others are refused afterwards */
  uint32_t absent; /* operands that were asked for and left out, by bit */
  bool refused;
} onnx_call;
typedef bool (*onnx_handler)(onnx_call *); /* false: it was refused, or a builder of the graph failed */

enum {                     /* flags of rows */
       ONNX_BROADCAST = 1, /* operands are broadcast to each other first */
       ONNX_SCALARS = 2,   /* with ONNX_BROADCAST: no more than that rank-0 operands stay as they are */
       ONNX_AS = 256       /* times a version: an operator of another domain that is ONNX's own of that version */
};
struct onnx_row {
  const char *op; /* "Add", or with a domain "com.microsoft.Gelu" */
  uint16_t since, until, flags;
  const char *text; /* or */
  onnx_handler handler;
};
extern const onnx_row onnx_rows[];
extern const uint32_t onnx_row_count;
#define TEXT(op, since, until, flags, text)
#define CALL(op, since, until, flags, handler) bool handler(onnx_call *);
#include "onnx/operators.def"
#undef TEXT
#undef CALL

/* ---- refusing: collected, and listed all at once. Returns false, so that a handler can return it. ---- */
bool onnx_refuse(onnx_call *, const char *format, ...) IR_PRINTF(2, 3);

/* ---- operands ---- */
bool onnx_has(const onnx_call *, uint32_t i);
uint32_t onnx_in(onnx_call *, uint32_t i);                    /* its node; 0: left out, or a mistake */
const ir_tensor *onnx_in_type(const onnx_call *, uint32_t i); /* null: left out */
/* A list of expressions. */
typedef struct onnx_list {
  uint32_t count;
  const ir_expr *at;
} onnx_list;
/* The elements of an operand as expressions (rank 0 or 1, whole numbers), which may be late; false after refusing with "input i (NAME) must be known". */
bool onnx_in_list(onnx_call *, uint32_t i, onnx_list *out);
bool onnx_in_int(onnx_call *, uint32_t i, int64_t *out);   /* one fixed whole number */
bool onnx_in_number(onnx_call *, uint32_t i, double *out); /* one fixed number of any type: a constant of the model */
bool onnx_in_numbers(onnx_call *, uint32_t i, uint32_t room, double *out, uint32_t *count); /* constants of the model, up to `room` */
bool onnx_is_listed(onnx_call *, uint32_t i);                                               /* whether onnx_in_list would not refuse it */
const onnx_number *onnx_known(onnx_call *, uint32_t i); /* null: not known; no refusal. Count: onnx_count */
uint32_t onnx_count(const onnx_value *);                /* of elements, for known values */

/* ---- attributes: asking for one marks it as understood ---- */
const onnx_attr *onnx_find_attr(onnx_call *, const char *name); /* of a function's node: what the caller gave. Null: not given */
int64_t onnx_int(onnx_call *, const char *name, int64_t otherwise);
double onnx_float(onnx_call *, const char *name, double otherwise);
const char *onnx_text(onnx_call *, const char *name, const char *otherwise);
onnx_list onnx_int_list(onnx_call *, const char *name);                    /* count 0: not given, or empty */
bool onnx_axis(onnx_call *, int64_t axis, uint32_t rank, uint32_t *out);   /* counted from the front; refuses if outside */
int32_t onnx_dtype_attr(onnx_call *, const char *name, int32_t otherwise); /* an ONNX type number as Sinter's; 0 after refusing */
void onnx_ignore(onnx_call *, const char *name);                           /* an attribute that changes nothing here */

/* ---- results ---- */
bool onnx_out(onnx_call *, uint32_t i, uint32_t node); /* false for node 0, so a handler may end with it */
bool onnx_out_known(onnx_call *, uint32_t i, const ir_tensor *type, const onnx_number *elements);
bool onnx_out_same(onnx_call *, uint32_t i, uint32_t input);        /* the result is that operand, known or not */
bool onnx_out_tensor(onnx_call *, uint32_t i, const onnx_tensor *); /* a tensor of the file */

/* ---- making nodes ---- */
/* One call of the graph's text form, "softmax %%%u, axis=%d": its first result, 0 after a mistake, which is reported for this node. */
uint32_t onnx_add(onnx_call *, const char *format, ...) IR_PRINTF(2, 3);
/* [1,n,3] for such a text. */
const char *onnx_list_text(onnx_call *, uint32_t count, const ir_expr *at);
uint32_t onnx_reshape(onnx_call *, uint32_t node, uint32_t rank, const ir_expr *dims);
uint32_t onnx_transpose(onnx_call *, uint32_t node, const uint32_t *perm);
uint32_t onnx_broadcast(onnx_call *, uint32_t node, uint32_t rank,
                        const ir_expr *dims);                         /* as numpy: aligned at the last axis, extents of 1 repeated */
uint32_t onnx_cast(onnx_call *, uint32_t node, int32_t dtype);        /* the node itself if it has the type */
uint32_t onnx_scalar(onnx_call *, int32_t dtype, double value);       /* rank 0 */
uint32_t onnx_like(onnx_call *, uint32_t node, double value);         /* rank 0 of the node's type */
uint32_t onnx_fill(onnx_call *, const ir_tensor *type, double value); /* of that shape */
/* The shape that operands are broadcast to together; false after refusing. `types` has `count` entries. */
bool onnx_common_shape(onnx_call *, uint32_t count, const ir_tensor *const *types, ir_tensor *out);
/* Operands as nodes of one shape. With `scalars`, those of rank 0 stay. */
bool onnx_broadcast_all(onnx_call *, uint32_t count, uint32_t *nodes, bool scalars);
uint32_t onnx_extent(onnx_call *, ir_expr, int32_t dtype); /* an expression as a number, rank 0 */
static inline const ir_tensor *onnx_type_of(const onnx_call *c, uint32_t node) { return &ir_at(c->g, node)->type; }
static inline ir_arena *onnx_arena(const onnx_call *c) { return c->g->arena; }

/* ---- graphs in attributes (If, Loop, Scan ..): imports the nodes of `sub` here. Names of the graph around are visible in it. `in` become
   its inputs; its outputs are written to `out`. False after something was refused. ---- */
bool onnx_import_body(onnx_call *, const onnx_graph *sub, uint32_t in_count, onnx_value *const *in, uint32_t out_count, onnx_value **out);
onnx_value *onnx_value_of(onnx_call *, const char *name, uint32_t node); /* a value for a node */
uint32_t onnx_node_of(onnx_call *, onnx_value *);                        /* a node for a value */
#endif
