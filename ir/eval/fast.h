/* Parts of the fast evaluator: blocks of elements and their conversion to what is computed in: float (f32 and all narrower floats), double,
   or int64 (integers, bool; u64 as its bits). */
#ifndef IR_EVAL_FAST_H
#define IR_EVAL_FAST_H
#include "ir/eval/private.h"

enum { FAST_BLOCK = 1024 };
typedef enum { FAST_F32, FAST_F64, FAST_INT } fast_class;
fast_class fast_class_of(int32_t dtype);

/* A view with its axes joined where memory allows, read block by block. */
typedef struct fast_reader {
  eval_view view;
  const char *base;
  size_t bytes;
  bool dense, constant;
} fast_reader;
void fast_open(const eval_ctx *, const eval_view *, fast_reader *);
/* Elements first..first+count in the type's storage: in place if dense, else gathered into `room` (FAST_BLOCK elements). */
const void *fast_read(const fast_reader *, uint64_t first, uint32_t count, void *room);

/* Conversions of `count` elements; where nothing changes they return `from`. */
const float *fast_to_f32(int32_t dtype, const void *from, uint64_t count, float *room);
const double *fast_to_f64(int32_t dtype, const void *from, uint64_t count, double *room);
const int64_t *fast_to_int(int32_t dtype, const void *from, uint64_t count, int64_t *room);
void fast_from_f32(int32_t dtype, const float *from, uint64_t count, void *to);
void fast_from_f64(int32_t dtype, const double *from, uint64_t count, void *to);
void fast_from_int(int32_t dtype, const int64_t *from, uint64_t count, void *to);

/* The operators on blocks; comparisons write truth values. */
void fast_op_f32(ir_op, uint32_t count, const float *a, const float *b, const float *c, float *out);
void fast_compare_f32(ir_op, uint32_t count, const float *a, const float *b, uint8_t *out);
void fast_op_int(ir_op, int32_t dtype, uint32_t count, const int64_t *const operands[3], int64_t *out);

snt_result fast_point(eval_ctx *, uint32_t node, eval_view *out);
snt_result fast_cast(eval_ctx *, uint32_t node, eval_view *out);
snt_result fast_bitcast(eval_ctx *, uint32_t node, eval_view *out);
snt_result fast_random(eval_ctx *, uint32_t node, eval_view *out);
snt_result fast_reduce(eval_ctx *, uint32_t node, eval_view *out);
snt_result fast_scan(eval_ctx *, uint32_t node, eval_view *out);
snt_result fast_contract(eval_ctx *, uint32_t node, eval_view *out);
snt_result fast_gather(eval_ctx *, uint32_t node, eval_view *out);
snt_result fast_scatter(eval_ctx *, uint32_t node, eval_view *out);
#endif
