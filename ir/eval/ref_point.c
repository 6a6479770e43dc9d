/* The reference evaluator's pointwise operators, casts and random numbers, in blocks of elements. */
#include "ir/eval/private.h"
#include <math.h>

enum { BLOCK = 256 };
typedef struct operands {
  eval_view view[3];
  int64_t at[3][BLOCK];
  uint32_t count;
  bool bounds; /* one of them has some */
} operands;

void ref_drop_zero_bounds(eval_ctx *ctx, eval_view *view) {
  eval_buffer *buffer = view->buffer;
  if (!buffer->bound) return;
  for (uint64_t i = 0; i < view->count; i++)
    if (buffer->bound[i] != 0) return;
  eval_give(ctx, buffer->bound, buffer->bound_bytes);
  buffer->bound = NULL;
  buffer->bound_bytes = 0;
}

static snt_result begin(eval_ctx *ctx, uint32_t node, operands *in, eval_view *out) {
  SNT_TRY(eval_type_of(ctx, node, out));
  in->count = ir_at(ctx->g, node)->arity;
  in->bounds = false;
  for (uint32_t i = 0; i < in->count; i++) {
    in->view[i] = eval_spread(&ctx->values[ir_arg(ctx->g, node, i)], out);
    in->bounds |= in->view[i].buffer->bound != NULL;
  }
  return SNT_OK;
}

static uint32_t block_at(uint64_t first, uint64_t count) { return count - first < BLOCK ? (uint32_t)(count - first) : BLOCK; }

static uint32_t next_block(operands *in, uint64_t first, uint64_t count) {
  const uint32_t part = block_at(first, count);
  for (uint32_t i = 0; i < in->count; i++) eval_offsets(&in->view[i], first, part, in->at[i]);
  return part;
}

/* ---- one element of each kind of operator ---- */
static bounded select_float(bounded_int c, bounded a, bounded b) {
  bounded chosen = c.v ? a : b, other = c.v ? b : a;
  if (c.e == 0) return chosen;
  double apart = chosen.v == other.v ? 0 : fabs(chosen.v - other.v);
  chosen.e = isnan(apart) ? INFINITY : fmax(chosen.e, apart + other.e);
  return chosen;
}

static bounded_int select_int(int32_t dtype, bounded_int c, bounded_int a, bounded_int b) {
  bounded_int chosen = c.v ? a : b, other = c.v ? b : a;
  if (c.e == 0) return chosen;
  chosen.e = fmax(chosen.e, fabs(eval_int_to_float(dtype, chosen.v) - eval_int_to_float(dtype, other.v)) + other.e);
  return chosen;
}

static void select_block(const operands *in, uint32_t count, uint64_t first, const eval_view *out) {
  bool is_float = ir_dtypes[out->dtype].is_float;
  for (uint32_t i = 0; i < count; i++) {
    bounded_int c = ref_load_int(&in->view[0], in->at[0][i]);
    if (is_float) ref_save(out, first + i, select_float(c, ref_load(&in->view[1], in->at[1][i]), ref_load(&in->view[2], in->at[2][i])));
    else
      ref_save_int(out, first + i,
                   select_int(out->dtype, c, ref_load_int(&in->view[1], in->at[1][i]), ref_load_int(&in->view[2], in->at[2][i])));
  }
}

/* `count` elements of an operand, in a row. */
static void fetch(const eval_view *v, uint64_t first, uint32_t count, int64_t *at, double *out) {
  const double *data = v->buffer->data;
  if (eval_is_dense(v)) {
    memcpy(out, data + v->offset + first, count * sizeof *out);
    return;
  }
  eval_offsets(v, first, count, at);
  for (uint32_t i = 0; i < count; i++) out[i] = data[at[i]];
}

/* Where only values are wanted they are f64 through any number of operators: a threshold is met by what a device would hold, the type's own number. */
static double held(const eval_ctx *ctx, int32_t dtype, double v) { return ctx->info->values_only && dtype == SNT_F32 ? (float)v : v; }

/* What bound_float gives without its bound: f64, infinite where the type is at its end. */
static void value_block(ir_op op, operands *in, uint64_t first, const eval_view *out) {
  const uint32_t count = block_at(first, out->count);
  const double limit = out->dtype == SNT_F32 ? 0x1.ffffffp127 : INFINITY;
  double x[3][BLOCK], *to = (double *)out->buffer->data + first;
  for (uint32_t k = 0; k < 3; k++) {
    if (k < in->count) fetch(&in->view[k], first, count, in->at[k], x[k]);
    else memset(x[k], 0, sizeof x[k]);
  }
  for (uint32_t i = 0; i < count; i++) {
    const double v = ir_op_eval(op, x[0][i], x[1][i], x[2][i]);
    to[i] = fabs(v) >= limit ? copysign(INFINITY, v) : v;
  }
}

/* Of these types a value does not depend on its bound, and the caller wants no bounds. */
static bool wants_values(const eval_ctx *ctx, const eval_view *out) {
  return ctx->info->values_only && (out->dtype == SNT_F32 || out->dtype == SNT_F64);
}

static void float_block(const eval_ctx *ctx, ir_op op, const operands *in, uint32_t count, uint64_t first, const eval_view *out) {
  bound_type type = bound_type_of(ctx, in->view[0].dtype);
  bool compares = out->dtype == SNT_BOOL;
  for (uint32_t i = 0; i < count; i++) {
    bounded x[3] = {{0, 0}, {0, 0}, {0, 0}};
    for (uint32_t k = 0; k < in->count; k++) x[k] = ref_load(&in->view[k], in->at[k][i]);
    for (uint32_t k = 0; ir_ops[op].flags & IR_EXACT && k < in->count; k++) x[k].v = held(ctx, in->view[0].dtype, x[k].v);
    if (compares) ref_save_int(out, first + i, bound_compare(op, x));
    else ref_save(out, first + i, bound_float(op, &type, x));
  }
}

static void int_block(ir_op op, const operands *in, uint32_t count, uint64_t first, const eval_view *out) {
  for (uint32_t i = 0; i < count; i++) {
    bounded_int x[3] = {{0, 0}, {0, 0}, {0, 0}};
    for (uint32_t k = 0; k < in->count; k++) x[k] = ref_load_int(&in->view[k], in->at[k][i]);
    ref_save_int(out, first + i, bound_int(op, in->view[0].dtype, x));
  }
}

snt_result ref_point(eval_ctx *ctx, uint32_t node, eval_view *out) {
  operands in;
  ir_op op = (ir_op)ir_at(ctx->g, node)->op;
  SNT_TRY(begin(ctx, node, &in, out));
  const bool values = wants_values(ctx, out) && !(ir_ops[op].flags & IR_EXACT) && in.view[0].dtype == out->dtype;
  bool rounds = ir_dtypes[out->dtype].is_float && !(ir_ops[op].flags & IR_EXACT);
  SNT_TRY(eval_new(ctx, out, !values && (in.bounds || rounds)));
  for (uint64_t first = 0; values && first < out->count; first += BLOCK) value_block(op, &in, first, out);
  for (uint64_t first = 0; !values && first < out->count;) {
    uint32_t part = next_block(&in, first, out->count);
    if (op == IR_OP_select) select_block(&in, part, first, out);
    else if (ir_dtypes[in.view[0].dtype].is_float) float_block(ctx, op, &in, part, first, out);
    else int_block(op, &in, part, first, out);
    first += part;
  }
  ref_drop_zero_bounds(ctx, out);
  return SNT_OK;
}

/* ---- casts ---- */
static bounded_int cast_int(int32_t from, int32_t to, bounded_int x) {
  int64_t stored = 0;
  if (to == SNT_BOOL) return (bounded_int){x.v != 0, x.e >= 1 && fabs(eval_int_to_float(from, x.v)) <= x.e};
  ir_dtype_store_int(to, &stored, 0, x.v);
  bounded_int out = {ir_dtype_load_int(to, &stored, 0), x.e};
  if (x.e == 0) return out;
  double v = eval_int_to_float(from, x.v), lo = eval_int_to_float(to, eval_int_end(to, false)),
         hi = eval_int_to_float(to, eval_int_end(to, true));
  if (v - x.e < lo || v + x.e > hi) out.e = INFINITY;
  return out;
}

/* A 16-bit float is made of f32: what that does not hold is rounded twice (docs/numerics.md). */
static double cast_ulps(int32_t from, int32_t to) {
  const ir_dtype_info *a = &ir_dtypes[from], *b = &ir_dtypes[to], *way = &ir_dtypes[SNT_F32];
  if (from == to || (a->is_float && b->bits > a->bits)) return 0;
  const bool held = a->is_float ? a->mantissa <= way->mantissa : a->bits - a->is_signed <= way->mantissa + 1;
  return held || b->bits != 16 ? 0.5 : 0.5 + ldexp(0.5, b->mantissa - way->mantissa);
}

static void cast_block(const eval_ctx *ctx, const bound_type *type, const operands *in, uint32_t count, uint64_t first,
                       const eval_view *out) {
  const eval_view *from = &in->view[0];
  bool from_float = ir_dtypes[from->dtype].is_float, to_float = ir_dtypes[out->dtype].is_float;
  const double ulps = to_float ? cast_ulps(from->dtype, out->dtype) : 0;
  for (uint32_t i = 0; i < count; i++) {
    int64_t at = in->at[0][i];
    if (from_float && to_float) {
      ref_save(out, first + i, bound_store(type, ref_load(from, at), ulps, true));
    } else if (from_float) {
      const bounded x = ref_load(from, at);
      ref_save_int(out, first + i, bound_to_int(out->dtype, (bounded){held(ctx, from->dtype, x.v), x.e}));
    } else if (to_float) {
      bounded_int x = ref_load_int(from, at);
      ref_save(out, first + i, bound_store(type, (bounded){eval_int_to_float(from->dtype, x.v), x.e}, ulps, true));
    } else {
      ref_save_int(out, first + i, cast_int(from->dtype, out->dtype, ref_load_int(from, at)));
    }
  }
}

snt_result ref_cast(eval_ctx *ctx, uint32_t node, eval_view *out) {
  operands in;
  SNT_TRY(begin(ctx, node, &in, out));
  bound_type type = bound_type_of(ctx, out->dtype);
  SNT_TRY(eval_new(ctx, out, in.bounds || ir_dtypes[out->dtype].is_float));
  for (uint64_t first = 0; first < out->count;) {
    uint32_t part = next_block(&in, first, out->count);
    cast_block(ctx, &type, &in, part, first, out);
    first += part;
  }
  ref_drop_zero_bounds(ctx, out);
  return SNT_OK;
}

/* Bits of a value that is not exactly known are anything. */
snt_result ref_bitcast(eval_ctx *ctx, uint32_t node, eval_view *out) {
  operands in;
  SNT_TRY(begin(ctx, node, &in, out));
  SNT_TRY(eval_new(ctx, out, in.bounds));
  const eval_view *from = &in.view[0];
  for (uint64_t first = 0; first < out->count;) {
    uint32_t part = next_block(&in, first, out->count);
    for (uint32_t i = 0; i < part; i++) {
      uint64_t stored = 0;
      int64_t at = in.at[0][i];
      double e = from->buffer->bound && from->buffer->bound[at] > 0 ? INFINITY : 0;
      if (ir_dtypes[from->dtype].is_float) ir_dtype_store(from->dtype, &stored, 0, ref_load(from, at).v);
      else ir_dtype_store_int(from->dtype, &stored, 0, ref_load_int(from, at).v);
      if (ir_dtypes[out->dtype].is_float) ref_save(out, first + i, (bounded){ir_dtype_load(out->dtype, &stored, 0), e});
      else ref_save_int(out, first + i, (bounded_int){ir_dtype_load_int(out->dtype, &stored, 0), e});
    }
    first += part;
  }
  return SNT_OK;
}

snt_result ref_random(eval_ctx *ctx, uint32_t node, eval_view *out) {
  operands in;
  SNT_TRY(begin(ctx, node, &in, out));
  SNT_TRY(eval_new(ctx, out, in.bounds));
  for (uint64_t first = 0; first < out->count;) {
    uint32_t part = next_block(&in, first, out->count);
    for (uint32_t i = 0; i < part; i++) {
      bounded_int key = ref_load_int(&in.view[0], in.at[0][i]), counter = ref_load_int(&in.view[1], in.at[1][i]);
      bounded_int word = {ir_random_word((uint64_t)key.v, (uint64_t)counter.v), key.e > 0 || counter.e > 0 ? INFINITY : 0};
      ref_save_int(out, first + i, word);
    }
    first += part;
  }
  return SNT_OK;
}
