/* The fast evaluator's pointwise nodes: operands are read, converted, computed and stored block by block, which stays in the first cache. */
#include "ir/eval/fast.h"

/* Rooms are as wide as the widest element. */
typedef struct rooms {
  uint64_t raw[3][FAST_BLOCK], wide[3][FAST_BLOCK], result[FAST_BLOCK];
} rooms;
typedef struct point {
  uint32_t arity;
  int32_t from, to;
  ir_op op;
  rooms *r;
  fast_reader in[3];
} point;

static const void *operand(const point *p, uint32_t k, uint64_t first, uint32_t count) {
  return fast_read(&p->in[k], first, count, p->r->raw[k]);
}

static void f32_block(const point *p, uint64_t first, uint32_t count, void *to) {
  const float *x[3] = {NULL, NULL, NULL};
  for (uint32_t k = 0; k < p->arity; k++) x[k] = fast_to_f32(p->from, operand(p, k, first, count), count, (float *)p->r->wide[k]);
  if (p->to == SNT_BOOL) {
    fast_compare_f32(p->op, count, x[0], x[1], to);
    return;
  }
  float *result = p->to == SNT_F32 ? to : (float *)p->r->result;
  fast_op_f32(p->op, count, x[0], x[1], x[2], result);
  fast_from_f32(p->to, result, count, to);
}

static void f64_block(const point *p, uint64_t first, uint32_t count, void *to) {
  const double *x[3] = {NULL, NULL, NULL};
  double *results = to;
  uint8_t *truths = to;
  for (uint32_t k = 0; k < p->arity; k++) x[k] = operand(p, k, first, count);
  for (uint32_t i = 0; i < count; i++) {
    double y = ir_op_eval(p->op, x[0][i], p->arity > 1 ? x[1][i] : 0, p->arity > 2 ? x[2][i] : 0);
    if (p->to == SNT_BOOL) truths[i] = y != 0;
    else results[i] = y;
  }
}

static void int_block(const point *p, uint64_t first, uint32_t count, void *to) {
  const int64_t *x[3] = {NULL, NULL, NULL};
  for (uint32_t k = 0; k < p->arity; k++) x[k] = fast_to_int(p->from, operand(p, k, first, count), count, (int64_t *)p->r->wide[k]);
  int64_t *result = (int64_t *)p->r->result;
  fast_op_int(p->op, p->from, count, x, result);
  fast_from_int(p->to, result, count, to);
}

static void select_block(const point *p, uint64_t first, uint32_t count, void *to) {
  const uint8_t *c = operand(p, 0, first, count);
  const void *a = operand(p, 1, first, count), *b = operand(p, 2, first, count);
#define CASE(size, T)                                                                                 \
  case size:                                                                                          \
    for (uint32_t i = 0; i < count; i++) ((T *)to)[i] = c[i] ? ((const T *)a)[i] : ((const T *)b)[i]; \
    break;
  switch (ir_dtypes[p->to].bytes) {
    CASE(1, uint8_t)
    CASE(2, uint16_t)
    CASE(4, uint32_t)
    CASE(8, uint64_t)
  default: break;
  }
#undef CASE
}

static void cast_block(const point *p, uint64_t first, uint32_t count, void *to) {
  const void *x = operand(p, 0, first, count);
  fast_class from = fast_class_of(p->from), into = fast_class_of(p->to);
  if (from == FAST_INT && into == FAST_INT) {
    fast_from_int(p->to, fast_to_int(p->from, x, count, (int64_t *)p->r->wide[0]), count, to);
  } else if (from == FAST_F32 && into == FAST_F32) {
    fast_from_f32(p->to, fast_to_f32(p->from, x, count, (float *)p->r->wide[0]), count, to);
  } else if (from == FAST_INT) {
    const int64_t *n = fast_to_int(p->from, x, count, (int64_t *)p->r->wide[0]);
    for (uint32_t i = 0; i < count; i++) ir_dtype_store(p->to, to, i, eval_int_to_float(p->from, n[i]));
  } else if (into == FAST_INT) {
    const double *v = fast_to_f64(p->from, x, count, (double *)p->r->wide[0]);
    for (uint32_t i = 0; i < count; i++) ir_dtype_store_int(p->to, to, i, eval_float_to_int(p->to, v[i]));
  } else {
    fast_from_f64(p->to, fast_to_f64(p->from, x, count, (double *)p->r->wide[0]), count, to);
  }
}

typedef void (*block_fn)(const point *, uint64_t first, uint32_t count, void *to);

static block_fn block_of(const point *p) {
  static const block_fn by_class[] = {[FAST_F32] = f32_block, [FAST_F64] = f64_block, [FAST_INT] = int_block};
  if (p->op == IR_OP_select) return select_block;
  return p->op == IR_OP_cast ? cast_block : by_class[fast_class_of(p->from)];
}

snt_result fast_point(eval_ctx *ctx, uint32_t node, eval_view *out) {
  const ir_node *n = ir_at(ctx->g, node);
  point p = {.arity = n->arity, .op = (ir_op)n->op, .to = n->type.dtype};
  SNT_TRY(eval_type_of(ctx, node, out));
  for (uint32_t k = 0; k < p.arity; k++) {
    eval_view spread = eval_spread(&ctx->values[ir_arg(ctx->g, node, k)], out);
    fast_open(ctx, &spread, &p.in[k]);
  }
  p.from = p.in[0].view.dtype;
  SNT_TRY(eval_new(ctx, out, false));
  p.r = eval_take(ctx, sizeof *p.r);
  if (!p.r) return eval_fail(ctx, node, SNT_E_HOST_MEM, "out of memory");
  block_fn run = block_of(&p);
  size_t bytes = eval_element_bytes(ctx, out->dtype);
  for (uint64_t first = 0; first < out->count; first += FAST_BLOCK) {
    uint32_t part = out->count - first < FAST_BLOCK ? (uint32_t)(out->count - first) : FAST_BLOCK;
    run(&p, first, part, (char *)out->buffer->data + first * bytes);
  }
  eval_give(ctx, p.r, sizeof *p.r);
  return SNT_OK;
}

snt_result fast_cast(eval_ctx *ctx, uint32_t node, eval_view *out) { return fast_point(ctx, node, out); }

snt_result fast_bitcast(eval_ctx *ctx, uint32_t node, eval_view *out) {
  *out = eval_share(&ctx->values[ir_arg(ctx->g, node, 0)]);
  out->dtype = ir_at(ctx->g, node)->type.dtype;
  return SNT_OK;
}

snt_result fast_random(eval_ctx *ctx, uint32_t node, eval_view *out) {
  SNT_TRY(eval_type_of(ctx, node, out));
  eval_view key = eval_spread(&ctx->values[ir_arg(ctx->g, node, 0)], out),
            counter = eval_spread(&ctx->values[ir_arg(ctx->g, node, 1)], out);
  SNT_TRY(eval_new(ctx, out, false));
  uint32_t *words = out->buffer->data;
  for (uint64_t i = 0; i < out->count; i++) {
    int64_t k = ir_dtype_load_int(key.dtype, key.buffer->data, (size_t)eval_offset_at(&key, i));
    int64_t c = ir_dtype_load_int(counter.dtype, counter.buffer->data, (size_t)eval_offset_at(&counter, i));
    words[i] = ir_random_word((uint64_t)k, (uint64_t)c);
  }
  return SNT_OK;
}
