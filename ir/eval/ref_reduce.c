/* The reference evaluator's reductions and scans. Operands are read along lines: [outer] x [length], any strides. */
#include "ir/eval/private.h"
#include <math.h>

/* What a reduction of a line needs to know at its end. */
typedef struct line {
  bounded total;
  bounded_int total_int;
  double size, count;
  bool whole, over; /* over: a term is a product that overflowed */
} line;

/* Whole numbers whose sum of sizes stays below 2^mantissa are added without rounding in any order. */
static void note_size(line *l, bounded x) {
  l->size += fabs(x.v) + x.e;
  l->whole = l->whole && x.e == 0 && x.v == nearbyint(x.v);
}

static line start_line(ir_op op, int32_t dtype) {
  line l = {.whole = true};
  bool prod = op == IR_OP_reduce_prod || op == IR_OP_scan_prod, max = op == IR_OP_reduce_max || op == IR_OP_scan_max;
  bool min = op == IR_OP_reduce_min || op == IR_OP_scan_min;
  l.total.v = prod ? 1 : max ? -(double)INFINITY : min ? (double)INFINITY : 0;
  l.total_int.v = prod ? 1 : max || min ? eval_int_end(dtype, min) : 0;
  l.size = prod ? 1 : 0;
  return l;
}

static bounded_int add_int(ir_op op, int32_t dtype, bounded_int a, bounded_int b) {
  bounded_int pair[2] = {a, b};
  return bound_int(op, dtype, pair);
}

static ir_op pair_op(ir_op op) {
  switch (op) {
  case IR_OP_reduce_sum:
  case IR_OP_scan_sum:
  case IR_OP_scatter_add: return IR_OP_add;
  case IR_OP_reduce_prod:
  case IR_OP_scan_prod:
  case IR_OP_scatter_mul: return IR_OP_mul;
  case IR_OP_reduce_max:
  case IR_OP_scan_max:
  case IR_OP_scatter_max: return IR_OP_max;
  default: return IR_OP_min;
  }
}

/* max and min with their bounds; the exact total of a sum or product, with the propagated part of the bound. */
static void add_to_line(line *l, ir_op pair, bounded x) {
  bounded t = l->total;
  double v = ir_op_eval(pair, t.v, x.v, 0);
  l->count++;
  if (pair == IR_OP_add) {
    if (bound_over(x)) l->over = true, x.e = 0;
    t.e += x.e;
    note_size(l, x);
    if (isnan(v) && l->over) t.e = INFINITY;
  } else if (pair == IR_OP_mul) {
    t.e = (t.e == 0 || (x.v == 0 && x.e == 0) ? 0 : t.e * (fabs(x.v) + x.e)) + (x.e == 0 || t.v == 0 ? 0 : fabs(t.v) * x.e);
    l->whole = l->whole && x.e == 0 && x.v == nearbyint(x.v) && fabs(v) <= 0x1p53;
    l->size = fmax(l->size, fabs(v));
  } else {
    t.e = isinf(t.e) || isinf(x.e) ? INFINITY : bound_at_ends(pair, v, t, x);
  }
  t.v = v;
  l->total = t;
}

/* The rounding of `depth` additions or multiplications, then that of the store. */
static bounded end_line(const line *l, ir_op pair, double depth, const bound_type *inner, const bound_type *stored) {
  bounded x = l->total;
  if (pair == IR_OP_max || pair == IR_OP_min) return bound_store(stored, x, 0, true);
  bool exact = l->whole && l->size <= 2 / inner->unit;
  if (isnan(x.v) || isinf(x.v)) return bound_store(stored, x, 0, true);
  if (!exact && depth > 0) x.e += bound_gamma(depth, inner) * (pair == IR_OP_add ? l->size : fabs(x.v) + x.e);
  if (!exact && depth > 0 && pair == IR_OP_mul && fabs(x.v) < inner->tiny) x.e += depth * inner->tiny * inner->unit; /* least steps */
  if (inner->dtype == SNT_F32 && pair == IR_OP_add && l->size > inner->top) x.e = INFINITY; /* a partial sum may overflow */
  return bound_store(stored, x, stored->narrow ? 0.5 : 0, true);
}

/* ---- reductions ---- */
/* The kept axes as one view, the reduced ones as another, of the same buffer. */
static void split_axes(const eval_ctx *ctx, uint32_t node, const eval_view *x, eval_view *kept, eval_view *reduced) {
  uint32_t count;
  const ir_expr *axes = ir_attr_ints(ctx->g, node, IR_ATTR_axes, &count);
  *kept = *reduced = (eval_view){.dtype = x->dtype, .count = 1};
  kept->offset = x->offset;
  for (uint32_t i = 0; i < x->rank; i++) {
    bool gone = false;
    for (uint32_t k = 0; k < count; k++) gone |= axes[k] == (ir_expr)i;
    eval_view *into = gone ? reduced : kept;
    into->dims[into->rank] = x->dims[i];
    into->strides[into->rank++] = x->strides[i];
    into->count *= (uint64_t)x->dims[i];
  }
}

typedef struct argument {
  double v, e;
  int64_t at;
} argument;

/* First of equals; NaN wins. Every index whose value may be the best is within the bound. */
static bounded_int arg_line(const eval_view *x, int64_t base, const int64_t *at, uint64_t length, bool max) {
  bool is_float = ir_dtypes[x->dtype].is_float;
  argument best = {0, 0, -1};
  double bound = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (uint64_t i = 0; i < length; i++) {
      bounded v = {0, 0};
      bounded_int n = {0, 0};
      if (is_float) v = ref_load(x, base + at[i]);
      else n = ref_load_int(x, base + at[i]), v = (bounded){eval_int_to_float(x->dtype, n.v), n.e};
      if (pass == 0) {
        int64_t top = best.at < 0 ? 0 : ref_load_int(x, base + at[best.at]).v;
        bool better = max ? v.v > best.v : v.v < best.v;
        if (!is_float) better = best.at >= 0 && ir_op_eval_int(max ? IR_OP_gt : IR_OP_lt, n.v, top, 0, x->dtype);
        if (best.at < 0 || (isnan(v.v) && !isnan(best.v)) || (better && !isnan(best.v))) best = (argument){v.v, v.e, (int64_t)i};
      } else if (v.e + best.e > 0) {
        double gap = v.v == best.v ? 0 : fabs(v.v - best.v);
        if (!(gap > v.e + best.e) || isinf(v.e + best.e)) bound = fmax(bound, fabs((double)((int64_t)i - best.at)));
      }
    }
    if (pass == 0 && !x->buffer->bound) break;
  }
  return (bounded_int){best.at < 0 ? 0 : best.at, bound};
}

static line read_line(const eval_view *x, ir_op op, int64_t base, const int64_t *at, uint64_t length) {
  ir_op pair = pair_op(op);
  line l = start_line(op, x->dtype);
  bool is_float = ir_dtypes[x->dtype].is_float;
  for (uint64_t i = 0; i < length; i++) {
    if (is_float) add_to_line(&l, pair, ref_load(x, base + at[i]));
    else l.total_int = add_int(pair, x->dtype, l.total_int, ref_load_int(x, base + at[i]));
  }
  return l;
}

static void reduce_lines(eval_ctx *ctx, uint32_t node, const eval_view *x, const eval_view *kept, const eval_view *reduced,
                         const int64_t *at, const eval_view *out) {
  ir_op op = (ir_op)ir_at(ctx->g, node)->op;
  bool index = ir_ops[op].rule == IR_RULE_REDUCE_INDEX, is_float = ir_dtypes[x->dtype].is_float;
  bound_type inner = bound_accumulator(ctx, x->dtype), stored = bound_type_of(ctx, x->dtype);
  double depth = reduced->count ? fmin(bound_depth(ctx, node, reduced->count), (double)(reduced->count - 1)) : 0;
  for (uint64_t i = 0; i < out->count; i++) {
    int64_t base = eval_offset_at(kept, i);
    if (index) {
      ref_save_int(out, i, arg_line(x, base, at, reduced->count, op == IR_OP_reduce_argmax));
      continue;
    }
    line l = read_line(x, op, base, at, reduced->count);
    if (is_float) ref_save(out, i, end_line(&l, pair_op(op), depth, &inner, &stored));
    else ref_save_int(out, i, l.total_int);
  }
}

snt_result ref_reduce(eval_ctx *ctx, uint32_t node, eval_view *out) {
  const eval_view *x = &ctx->values[ir_arg(ctx->g, node, 0)];
  eval_view kept, reduced;
  SNT_TRY(eval_type_of(ctx, node, out));
  split_axes(ctx, node, x, &kept, &reduced);
  SNT_TRY(eval_new(ctx, out, x->buffer->bound || ir_dtypes[out->dtype].is_float));
  int64_t *at = eval_take(ctx, reduced.count * sizeof *at);
  if (!at) return eval_fail(ctx, node, SNT_E_HOST_MEM, "out of memory");
  eval_group group = {.count = reduced.rank, .size = reduced.count};
  memcpy(group.dims, reduced.dims, sizeof group.dims);
  eval_group_offsets(&group, reduced.strides, at);
  reduce_lines(ctx, node, x, &kept, &reduced, at, out);
  eval_give(ctx, at, reduced.count * sizeof *at);
  ref_drop_zero_bounds(ctx, out);
  return SNT_OK;
}

/* ---- scans ---- */
typedef struct scan {
  ir_op op, pair;
  bool exclusive, is_float;
  bound_type inner, stored;
  int32_t dtype;
} scan;

static void scan_line(const scan *s, const eval_view *x, const eval_view *out, const int64_t *at, const int64_t *step, int64_t length) {
  line l = start_line(s->op, s->dtype);
  int64_t in = at[0], to = at[1];
  for (int64_t i = 0; i < length; i++, in += step[0], to += step[1]) {
    line before = l;
    if (s->is_float) add_to_line(&l, s->pair, ref_load(x, in));
    else l.total_int = add_int(s->pair, s->dtype, l.total_int, ref_load_int(x, in));
    const line *now = s->exclusive ? &before : &l;
    if (s->is_float) ref_save(out, (uint64_t)to, end_line(now, s->pair, now->count - 1, &s->inner, &s->stored));
    else ref_save_int(out, (uint64_t)to, now->total_int);
  }
}

/* h <- a*h + b. The rounding grows with the recurrence of the sizes, whatever way the products are grouped. */
static void linear_line(const scan *s, const eval_view *a, const eval_view *b, const eval_view *out, const int64_t *at, const int64_t *step,
                        int64_t length) {
  bounded h = {0, 0};
  double size = 0;
  for (int64_t i = 0; i < length; i++) {
    bounded x = ref_load(a, at[0] + i * step[0]), y = ref_load(b, at[1] + i * step[1]);
    double e = fabs(x.v) * h.e + x.e * (fabs(h.v) + h.e) + y.e;
    size = fabs(x.v) * size + fabs(y.v);
    h = (bounded){x.v * h.v + y.v, isnan(e) ? INFINITY : e};
    bounded stored = h;
    stored.e += bound_gamma((double)(2 * i + 1), &s->inner) * size;
    if (i == 0 && h.e == 0) stored.e = 0;
    ref_save(out, (uint64_t)(at[2] + i * step[2]), bound_store(&s->stored, stored, s->stored.narrow ? 0.5 : 0, true));
  }
}

/* Views of the lines' starts: the axis has extent 1; backwards, they start at its end. */
static eval_view line_starts(const eval_view *v, uint32_t axis, bool reverse, int64_t *step) {
  eval_view starts = *v;
  starts.dims[axis] = 1;
  starts.count = v->dims[axis] ? v->count / (uint64_t)v->dims[axis] : 0;
  *step = reverse ? -v->strides[axis] : v->strides[axis];
  if (reverse) starts.offset += (v->dims[axis] - 1) * v->strides[axis];
  return starts;
}

snt_result ref_scan(eval_ctx *ctx, uint32_t node, eval_view *out) {
  ir_op op = (ir_op)ir_at(ctx->g, node)->op;
  uint32_t axis = (uint32_t)ir_attr_int(ctx->g, node, IR_ATTR_axis, 0), arity = ir_at(ctx->g, node)->arity;
  bool reverse = ir_attr_flag(ctx->g, node, IR_ATTR_reverse), bounds = false;
  SNT_TRY(eval_type_of(ctx, node, out));
  eval_view in[3], starts[3];
  int64_t step[3] = {0}, at[3] = {0};
  for (uint32_t i = 0; i < arity; i++) {
    in[i] = eval_spread(&ctx->values[ir_arg(ctx->g, node, i)], out);
    bounds |= in[i].buffer->bound != NULL;
  }
  SNT_TRY(eval_new(ctx, out, bounds || ir_dtypes[out->dtype].is_float));
  in[arity] = *out;
  for (uint32_t i = 0; i <= arity; i++) starts[i] = line_starts(&in[i], axis, reverse, &step[i]);
  scan s = {.op = op, .pair = pair_op(op), .exclusive = ir_attr_flag(ctx->g, node, IR_ATTR_exclusive), .dtype = out->dtype};
  s.is_float = ir_dtypes[out->dtype].is_float;
  s.inner = bound_accumulator(ctx, out->dtype);
  s.stored = bound_type_of(ctx, out->dtype);
  for (uint64_t l = 0; l < starts[0].count; l++) {
    for (uint32_t i = 0; i <= arity; i++) at[i] = eval_offset_at(&starts[i], l);
    if (op == IR_OP_scan_linear) linear_line(&s, &in[0], &in[1], out, at, step, out->dims[axis]);
    else scan_line(&s, &in[0], out, at, step, out->dims[axis]);
  }
  ref_drop_zero_bounds(ctx, out);
  return SNT_OK;
}

/* ---- scatter: a line for each target ---- */
static void scatter_start(const eval_view *x, line *lines, ir_op op) {
  bool is_float = ir_dtypes[x->dtype].is_float;
  for (uint64_t i = 0; i < x->count; i++) {
    int64_t at = eval_offset_at(x, i);
    lines[i] = start_line(op == IR_OP_scatter_mul ? IR_OP_reduce_prod : IR_OP_reduce_sum, x->dtype);
    if (is_float && op != IR_OP_scatter_set && (op == IR_OP_scatter_add || op == IR_OP_scatter_mul))
      add_to_line(&lines[i], pair_op(op), ref_load(x, at));
    else if (is_float) lines[i].total = ref_load(x, at);
    else lines[i].total_int = ref_load_int(x, at);
  }
}

static void scatter_one(line *l, ir_op op, int32_t dtype, const eval_view *updates, int64_t at) {
  bool is_float = ir_dtypes[dtype].is_float;
  if (op == IR_OP_scatter_set && is_float) l->total = ref_load(updates, at);
  else if (op == IR_OP_scatter_set) l->total_int = ref_load_int(updates, at);
  else if (is_float) add_to_line(l, pair_op(op), ref_load(updates, at));
  else l->total_int = add_int(pair_op(op), dtype, l->total_int, ref_load_int(updates, at));
}

/* An index that is not exactly known makes everything of its column unknown. */
static void scatter_unknown(line *lines, const eval_rows *rows, uint64_t outer, uint64_t inner) {
  for (uint64_t r = 0; r < rows->extent; r++) {
    line *l = &lines[(outer * rows->extent + r) * rows->inner + inner];
    l->total.e = l->total_int.e = INFINITY;
  }
}

snt_result ref_scatter(eval_ctx *ctx, uint32_t node, eval_view *out) {
  ir_op op = (ir_op)ir_at(ctx->g, node)->op;
  const eval_view *x = &ctx->values[ir_arg(ctx->g, node, 0)], *index = &ctx->values[ir_arg(ctx->g, node, 1)];
  const eval_view *updates = &ctx->values[ir_arg(ctx->g, node, 2)];
  eval_rows rows = eval_find_rows(ctx, node, x, index);
  bool bounds = x->buffer->bound || index->buffer->bound || updates->buffer->bound || ir_dtypes[x->dtype].is_float;
  SNT_TRY(eval_type_of(ctx, node, out));
  SNT_TRY(eval_new(ctx, out, bounds));
  line *lines = eval_take(ctx, out->count * sizeof *lines);
  if (!lines) return eval_fail(ctx, node, SNT_E_HOST_MEM, "out of memory");
  scatter_start(x, lines, op);
  for (uint64_t i = 0; i < updates->count; i++) {
    uint64_t inner = i % rows.inner, pick = i / rows.inner % rows.picks, outer = i / rows.inner / rows.picks;
    bounded_int n = ref_load_int(index, eval_offset_at(index, pick));
    int64_t row = eval_row(index->dtype, n.v, rows.extent);
    if (n.e > 0) scatter_unknown(lines, &rows, outer, inner);
    else if (row >= 0)
      scatter_one(&lines[(outer * rows.extent + (uint64_t)row) * rows.inner + inner], op, x->dtype, updates, eval_offset_at(updates, i));
  }
  bound_type inner = bound_accumulator(ctx, x->dtype), stored = bound_type_of(ctx, x->dtype);
  ir_op pair = op == IR_OP_scatter_set ? IR_OP_max : pair_op(op); /* max: no rounding of its own */
  for (uint64_t i = 0; i < out->count; i++) {
    if (ir_dtypes[x->dtype].is_float) ref_save(out, i, end_line(&lines[i], pair, lines[i].count - 1, &inner, &stored));
    else ref_save_int(out, i, lines[i].total_int);
  }
  eval_give(ctx, lines, out->count * sizeof *lines);
  ref_drop_zero_bounds(ctx, out);
  return SNT_OK;
}
