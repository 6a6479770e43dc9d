/* Short lists of known numbers and what operators do with them at import: see known.c. */
#ifndef ONNX_KNOWN_H
#define ONNX_KNOWN_H
#include "onnx/import_private.h"

typedef struct known_list {
  ir_tensor type; /* literal extents */
  uint32_t count;
  onnx_number *at;
} known_list;
typedef enum { KNOWN_NO, KNOWN_YES, KNOWN_REFUSED } known_result; /* NO: the operator's row is tried */
typedef struct known_call {
  onnx_call *c;
  expr_pool *pool;
  known_list in[16];
  uint32_t in_count; /* in[i].at null: left out */
  known_list out;
} known_call;
typedef known_result (*known_handler)(known_call *);

bool known_literal(const known_call *, onnx_number, int64_t *out);                             /* a whole literal */
bool known_make(known_call *, int32_t dtype, uint32_t rank, const ir_expr *dims);              /* room for the result; false: too long */
bool known_ints(const known_call *, uint32_t i, uint32_t room, int64_t *out, uint32_t *count); /* a list of literals */
onnx_number known_whole(ir_expr);

/* ---- known_point.c ---- */
known_result known_binary(known_call *), known_compare(known_call *), known_unary(known_call *), known_cast(known_call *);
known_result known_where(known_call *), known_logic(known_call *), known_clip(known_call *);
/* ---- known_move.c ---- */
known_result known_gather(known_call *), known_slice(known_call *), known_concat(known_call *), known_unsqueeze(known_call *);
known_result known_squeeze(known_call *), known_reshape(known_call *), known_flatten(known_call *), known_expand(known_call *);
known_result known_transpose(known_call *), known_range(known_call *), known_constant_of_shape(known_call *), known_reduce(known_call *);
known_result known_same(known_call *), known_nonzero(known_call *), known_tile(known_call *);
#endif
