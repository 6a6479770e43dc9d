/* The fast evaluator: its table of functions, gather and scatter. */
#include "ir/eval/fast.h"

/* ---- gather: whole rows of a dense operand ---- */
snt_result fast_gather(eval_ctx *ctx, uint32_t node, eval_view *out) {
  const eval_view *index = &ctx->values[ir_arg(ctx->g, node, 1)];
  eval_view x;
  bool zero = ir_attr_flag(ctx->g, node, IR_ATTR_zero);
  SNT_TRY(eval_type_of(ctx, node, out));
  SNT_TRY(eval_dense(ctx, &ctx->values[ir_arg(ctx->g, node, 0)], &x));
  snt_result result = eval_new(ctx, out, false);
  eval_rows rows = eval_find_rows(ctx, node, &x, index);
  size_t bytes = rows.inner * eval_element_bytes(ctx, x.dtype);
  if (result == SNT_OK && bytes) {
    char *to = out->buffer->data;
    const char *from = eval_at(ctx, &x);
    for (uint64_t outer = 0; outer < rows.outer; outer++, from += rows.extent * bytes)
      for (uint64_t pick = 0; pick < rows.picks; pick++, to += bytes) {
        int64_t i = ir_dtype_load_int(index->dtype, index->buffer->data, (size_t)eval_offset_at(index, pick)),
                row = eval_row(index->dtype, i, rows.extent);
        if (row < 0 && !zero && rows.extent) row = i < 0 && ir_dtypes[index->dtype].is_signed ? 0 : (int64_t)rows.extent - 1;
        if (row < 0) memset(to, 0, bytes);
        else memcpy(to, from + (size_t)row * bytes, bytes);
      }
  }
  eval_release(ctx, &x);
  return result;
}

/* ---- scatter: targets in the type that is computed in, rounded once at the end ---- */
typedef struct scattering {
  ir_op op;
  int32_t dtype;
  fast_class class;
  void *wide;
  const eval_view *updates;
} scattering;

static double put_float(ir_op op, double old, double x) {
  switch (op) {
  case IR_OP_scatter_add: return old + x;
  case IR_OP_scatter_mul: return old * x;
  case IR_OP_scatter_max: return ir_op_eval(IR_OP_max, old, x, 0);
  case IR_OP_scatter_min: return ir_op_eval(IR_OP_min, old, x, 0);
  default: return x;
  }
}

static int64_t put_int(ir_op op, int32_t dtype, int64_t old, int64_t x) {
  switch (op) {
  case IR_OP_scatter_add: return ir_op_eval_int(IR_OP_add, old, x, 0, dtype);
  case IR_OP_scatter_mul: return ir_op_eval_int(IR_OP_mul, old, x, 0, dtype);
  case IR_OP_scatter_max: return ir_op_eval_int(IR_OP_max, old, x, 0, dtype);
  case IR_OP_scatter_min: return ir_op_eval_int(IR_OP_min, old, x, 0, dtype);
  default: return x;
  }
}

/* Elements at, at+1 .. take the update's elements first, first+1 .. (row-major). */
static void put_row(const scattering *s, uint64_t at, uint64_t first, uint64_t count) {
  const void *data = s->updates->buffer->data;
  for (uint64_t i = 0; i < count; i++) {
    size_t from = (size_t)eval_offset_at(s->updates, first + i);
    if (s->class == FAST_INT) {
      int64_t *to = (int64_t *)s->wide + at + i;
      *to = put_int(s->op, s->dtype, *to, ir_dtype_load_int(s->dtype, data, from));
    } else if (s->class == FAST_F64) {
      double *to = (double *)s->wide + at + i;
      *to = put_float(s->op, *to, ir_dtype_load(s->dtype, data, from));
    } else {
      float *to = (float *)s->wide + at + i;
      *to = (float)put_float(s->op, (double)*to, ir_dtype_load(s->dtype, data, from));
    }
  }
}

static void load_wide(const eval_ctx *ctx, const eval_view *x, const scattering *s) {
  const void *from = eval_at(ctx, x);
  size_t bytes = s->class == FAST_F32 ? sizeof(float) : sizeof(double);
  const void *got = s->class == FAST_F32   ? (const void *)fast_to_f32(x->dtype, from, x->count, s->wide)
                    : s->class == FAST_F64 ? from
                                           : (const void *)fast_to_int(x->dtype, from, x->count, s->wide);
  if (got != s->wide && x->count) memcpy(s->wide, got, x->count * bytes);
}

static void store_wide(const eval_view *out, const scattering *s) {
  if (s->class == FAST_F32) fast_from_f32(out->dtype, s->wide, out->count, out->buffer->data);
  else if (s->class == FAST_F64) fast_from_f64(out->dtype, s->wide, out->count, out->buffer->data);
  else fast_from_int(out->dtype, s->wide, out->count, out->buffer->data);
}

static void put_rows(const scattering *s, const eval_view *index, const eval_rows *rows) {
  for (uint64_t outer = 0; outer < rows->outer; outer++)
    for (uint64_t pick = 0; pick < rows->picks; pick++) {
      int64_t i = ir_dtype_load_int(index->dtype, index->buffer->data, (size_t)eval_offset_at(index, pick)),
              row = eval_row(index->dtype, i, rows->extent);
      if (row >= 0)
        put_row(s, (outer * rows->extent + (uint64_t)row) * rows->inner, (outer * rows->picks + pick) * rows->inner, rows->inner);
    }
}

snt_result fast_scatter(eval_ctx *ctx, uint32_t node, eval_view *out) {
  const eval_view *index = &ctx->values[ir_arg(ctx->g, node, 1)];
  eval_view x;
  scattering s = {.op = (ir_op)ir_at(ctx->g, node)->op, .updates = &ctx->values[ir_arg(ctx->g, node, 2)]};
  SNT_TRY(eval_type_of(ctx, node, out));
  s.dtype = out->dtype;
  s.class = fast_class_of(out->dtype);
  SNT_TRY(eval_dense(ctx, &ctx->values[ir_arg(ctx->g, node, 0)], &x));
  size_t bytes = out->count * (s.class == FAST_F32 ? sizeof(float) : sizeof(double));
  s.wide = eval_take(ctx, bytes);
  snt_result result = s.wide ? eval_new(ctx, out, false) : eval_fail(ctx, node, SNT_E_HOST_MEM, "out of memory");
  if (result == SNT_OK) {
    eval_rows rows = eval_find_rows(ctx, node, &x, index);
    load_wide(ctx, &x, &s);
    put_rows(&s, index, &rows);
    store_wide(out, &s);
  }
  eval_give(ctx, s.wide, bytes);
  eval_release(ctx, &x);
  return result;
}

snt_result ir_eval_fast(const ir_graph *g, const ir_eval_info *info, ir_arena *arena, ir_eval_tensor *outputs, snt_diag *diag) {
  static const eval_engine fast = {
      .stage = "host",
      .bounds = false,
      .point = fast_point,
      .cast = fast_cast,
      .bitcast = fast_bitcast,
      .reduce = fast_reduce,
      .scan = fast_scan,
      .contract = fast_contract,
      .gather = fast_gather,
      .scatter = fast_scatter,
      .random = fast_random,
  };
  return eval_run(&fast, g, info, arena, outputs, diag);
}
