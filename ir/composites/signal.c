/* Fourier transforms as contractions: with a table of the signal's length, or with those of its factors, pass by pass; and determinants. */
#include "ir/composites/private.h"
#include <math.h>

enum { MOST_DETERMINANT = 6 };
static const double tau = 6.28318530717958647692;

typedef struct transform {
  int64_t length, bins;
  uint32_t parts; /* 1: a real signal */
  int32_t dtype;
  bool inverse;
  double scale;
} transform;

/* ---- tables of exp(-i angle), or of its conjugates ---- */

/* [rows, parts, columns, 2]: what a part of a row's term adds to each part of a column's bin, by row times column `turn`ths of a turn; or to one part of it
   alone, [rows, parts, columns] or, where a column is no last axis, [rows, parts, columns, 1]. */
typedef struct table {
  int64_t rows, columns, turn;
  uint32_t parts, rank;
  enum { REAL, IMAGINARY, BOTH } of;
  double scale;
} table;

/* The sine of the angle or, a quarter further, its cosine. Quarters are exact. */
static double entry_of(const transform *t, const table *w, int64_t at) {
  const int64_t outs = w->of == BOTH ? 2 : 1, column = at / outs % w->columns, part = at / outs / w->columns % w->parts;
  const int64_t out = w->of == BOTH ? at % 2 : w->of, quarters = at / outs / w->columns / w->parts * column % w->turn * 4;
  const bool sine = part != out, back = sine && (out != 0) != t->inverse;
  const double angle = tau / 4 * (double)(quarters % w->turn) / (double)w->turn;
  const int64_t quarter = quarters / w->turn + !sine;
  const double size = quarter % 2 ? cos(angle) : sin(angle);
  return w->scale * ((quarter % 4 > 1) != back ? -size : size);
}

static uint32_t put_table(composite_call *c, const transform *t, const table *w) {
  enum { MOST_ENTRIES = 1 << 24 };
  const int64_t count = w->rows * w->parts * w->columns * (w->of == BOTH ? 2 : 1);
  const ir_tensor type = {
      .dtype = (uint8_t)t->dtype, .rank = (uint8_t)w->rank, .dims = {w->rows, w->parts, w->columns, w->of == BOTH ? 2 : 1}};
  if (count > MOST_ENTRIES) return call_mistake(c, "a table of %lld entries", (long long)count);
  const size_t size = ir_dtypes[t->dtype].bytes;
  void *numbers = ir_arena_take(c->g->arena, (size_t)count * size, size);
  const ir_const data = {.kind = IR_CONST_DATA, .data = numbers};
  if (!numbers) return call_mistake(c, "out of memory");
  for (int64_t at = 0; at < count; at++) {
    const double value = entry_of(t, w, at);
    if (t->dtype == SNT_F64) ((double *)numbers)[at] = value;
    else ((float *)numbers)[at] = (float)value;
  }
  return ir_add_const(c->g, &type, &data);
}

/* ---- passes: Cooley and Tukey's, in Stockham's order ---- */

enum { MOST_PASSES = 20, BEFORE = 0, PART, TERM, REST, DONE, BEHIND, BIN };

/* Pass by pass, `done` bins of the signals that begin at each j become done radix bins of those at each j2 of j = j1 rest + j2. */
typedef struct pass {
  int64_t radix, rest, done, bins; /* bins: those asked for, of radix */
  uint32_t parts;
  double scale;
} pass;

/* The least of multiply-adds a value, for which a pass over the values counts, too; fills the radices. */
static int64_t find_passes(int64_t length, uint32_t parts, int64_t most, int64_t *radix, uint32_t room) {
  enum { PASS = 200 }; /* by times on PoCL (bench/results/fourier.md) */
  int64_t best = 2 * parts * length, deeper[MOST_PASSES];
  radix[0] = length;
  for (int64_t r = 2; r <= most && r <= length / 2 && room > 2; r++) {
    if (length % r) continue;
    const int64_t cost = 2 * parts * r + PASS + find_passes(length / r, 2, r, deeper, room - 1);
    if (cost >= best) continue;
    best = cost, radix[0] = r;
    memcpy(radix + 1, deeper, (room - 1) * sizeof *deeper);
  }
  return best;
}

/* x [before, parts, rows, done, behind]: one part of the next bins, [before, rest, bins, done, behind]. */
static uint32_t put_sums(composite_call *c, uint32_t x, const transform *t, const pass *p, uint32_t of) {
  static const contract_desc d = {
      .lhs = {{BEFORE, PART, TERM, REST, DONE, BEHIND}, 6}, .rhs = {{TERM, PART, BIN}, 3}, .out = {{BEFORE, REST, BIN, DONE, BEHIND}, 5}};
  const ir_tensor *is = type_of(c, x);
  const ir_expr apart[] = {is->dims[0], p->parts, p->radix, p->rest, p->done, is->dims[4]};
  x = step_reshape(c, x, 6, apart);
  return step_contract(c, x, put_table(c, t, &(table){p->radix, p->bins, p->radix, p->parts, 3, of, p->scale}), &d);
}

/* Turned by exp(-i tau j1 k / (radix done)) for the pass `next`, both parts behind each other: [before, 2, rows, done, behind]. */
static uint32_t turn(composite_call *c, const uint32_t sum[2], const transform *t, const pass *next) {
  uint32_t whole[2], root[2], part[2];
  const ir_tensor shape = *type_of(c, sum[0]);
  const ir_expr apart[] = {shape.dims[0], next->radix, next->rest, next->done, shape.dims[4]};
  const ir_expr joined[] = {shape.dims[0], 1, next->radix * next->rest, next->done, shape.dims[4]};
  for (uint32_t i = 0; i < 2; i++) {
    whole[i] = step_reshape(c, sum[i], 5, apart);
    root[i] = put_table(c, t, &(table){next->radix, next->done, next->radix * next->done, 1, 4, i, 1});
  }
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t own = step_2(c, IR_OP_mul, whole[0], root[i]), other = step_2(c, IR_OP_mul, whole[1], root[1 - i]);
    part[i] = step_reshape(c, step_2(c, i ? IR_OP_add : IR_OP_sub, own, other), 5, joined);
  }
  return step_concat(c, 1, 2, part);
}

/* x [before, n, behind, parts] is [before, bins, behind, 2]. */
static uint32_t put_passes(composite_call *c, uint32_t x, const transform *t, const int64_t *radix) {
  static const uint32_t parts_first[] = {0, 3, 1, 2};
  const ir_tensor shape = *type_of(c, x);
  const ir_expr given[] = {shape.dims[0], t->parts, t->length, 1, shape.dims[2]};
  pass p = {.done = 1, .rest = t->length, .parts = t->parts, .scale = 1};
  uint32_t sum[2];
  x = step_reshape(c, step_transpose(c, x, parts_first), 5, given);
  while (x && p.rest > 1) {
    p.radix = p.bins = *radix++, p.rest /= p.radix;
    if (p.rest == 1) p.bins = (t->bins + p.done - 1) / p.done, p.scale = t->scale;
    for (uint32_t i = 0; i < 2; i++) sum[i] = put_sums(c, x, t, &p, i);
    p.done *= p.radix, p.parts = 2;
    if (p.rest > 1) x = turn(c, sum, t, &(pass){.radix = *radix, .rest = p.rest / *radix, .done = p.done});
  }
  if (!x) return 0;
  const ir_expr alone[] = {shape.dims[0], p.done / p.radix * p.bins, shape.dims[2], 1};
  for (uint32_t i = 0; i < 2; i++) sum[i] = step_slice(c, step_reshape(c, sum[i], 4, alone), 1, 0, t->bins, 1);
  return step_concat(c, 3, 2, sum);
}

/* x [.., terms at axis, .., parts] is [.., bins, .., 2], by one product: what is left of the length is 0. */
static uint32_t put_whole(composite_call *c, uint32_t x, uint32_t axis, const transform *t, int64_t terms) {
  contract_desc d = {.rhs = {{20, 21, 22, 23}, 4}};
  const uint32_t rank = type_of(c, x)->rank;
  for (uint32_t i = 0; i + 1 < rank; i++) {
    label_add(&d.lhs, i == axis ? 20 : (int64_t)i);
    label_add(&d.out, i == axis ? 22 : (int64_t)i);
  }
  label_add(&d.lhs, 21);
  label_add(&d.out, 23);
  return step_contract(c, x, put_table(c, t, &(table){terms, t->bins, t->length, t->parts, 4, BOTH, t->scale}), &d);
}

/* Zeros behind x. */
static uint32_t fill(composite_call *c, uint32_t x, uint32_t axis, int64_t count) {
  ir_tensor shape = *type_of(c, x);
  shape.dims[axis] = count;
  return step_concat(c, axis, 2, (const uint32_t[]){x, step_broadcast(c, step_number(c, x, 0), &shape)});
}

/* x [.., terms at axis, .., parts] is [.., bins, .., 2]. */
static uint32_t put_transform(composite_call *c, uint32_t x, uint32_t axis, const transform *t) {
  int64_t terms = 0, radix[MOST_PASSES];
  if (!x || !expr_is_const(c->g->pool, type_of(c, x)->dims[axis], &terms)) return 0;
  if (2 * t->parts * terms <= find_passes(t->length, t->parts, t->length, radix, MOST_PASSES)) return put_whole(c, x, axis, t, terms);
  if (terms < t->length) x = fill(c, x, axis, t->length - terms);
  if (!x) return 0;
  const ir_tensor shape = *type_of(c, x);
  ir_expr before = 1, behind = 1, out[SNT_MAX_RANK];
  for (uint32_t i = 0; i + 1 < shape.rank; i++) {
    out[i] = i == axis ? t->bins : shape.dims[i];
    if (i < axis) before = expr_mul(c->g->pool, before, shape.dims[i]);
    else if (i > axis) behind = expr_mul(c->g->pool, behind, shape.dims[i]);
  }
  out[shape.rank - 1] = 2;
  const ir_expr joined[] = {before, t->length, behind, t->parts};
  return step_reshape(c, put_passes(c, step_reshape(c, x, 4, joined), t, radix), shape.rank, out);
}

static bool read_transform(composite_call *c, ir_expr extent, ir_expr parts, transform *t) {
  int64_t own, given_parts;
  if (!expr_is_const(c->g->pool, extent, &own) || own < 1) return call_mistake(c, "the length of the signal must be fixed"), false;
  if (!expr_is_const(c->g->pool, parts, &given_parts) || given_parts < 1 || given_parts > 2)
    return call_mistake(c, "the last axis must have extent 1 (real) or 2 (complex)"), false;
  t->length = call_int(c, IR_PARAM_length, own);
  t->parts = (uint32_t)given_parts;
  t->dtype = type_of(c, c->args[0])->dtype == SNT_F64 ? SNT_F64 : SNT_F32;
  t->inverse = call_has(c, IR_PARAM_inverse);
  t->scale = t->inverse ? 1 / (double)t->length : 1;
  if (t->length < 1 || t->length > 1 << 20) return call_mistake(c, "length %lld", (long long)t->length), false;
  t->bins = call_has(c, IR_PARAM_onesided) ? t->length / 2 + 1 : t->length;
  return true;
}

void build_dft(composite_call *c) {
  uint32_t x = step_widen(c, c->args[0]);
  const ir_tensor shape = *type_of(c, x);
  transform t;
  if (shape.rank < 2 || !ir_dtypes[shape.dtype].is_float) {
    call_mistake(c, "needs a signal of floats with a last axis of 1 or 2 parts");
    return;
  }
  const uint32_t axis = call_axis(c, IR_PARAM_axis, -2, shape.rank);
  if (axis == shape.rank - 1u || !read_transform(c, shape.dims[axis], shape.dims[shape.rank - 1], &t)) return;
  int64_t given = 0;
  if (expr_is_const(c->g->pool, shape.dims[axis], &given) && given > t.length) x = step_slice(c, x, axis, 0, t.length, 1);
  c->results[0] = step_cast(c, put_transform(c, x, axis, &t), type_of(c, c->args[0])->dtype);
}

/* x [batch, samples, parts] [, window [length]]: frames every `step` samples, transformed. */
void build_stft(composite_call *c) {
  const uint32_t x = step_widen(c, c->args[0]);
  const ir_tensor shape = *type_of(c, x);
  transform t;
  const ir_expr length = c->args[1] ? type_of(c, c->args[1])->dims[0] : call_expr(c, IR_PARAM_length, 0);
  if (shape.rank != 3 || !ir_dtypes[shape.dtype].is_float || (c->args[1] && type_of(c, c->args[1])->rank != 1)) {
    call_mistake(c, "needs x [batch, samples, parts] of floats and a window of rank 1");
    return;
  }
  if (!read_transform(c, length, shape.dims[2], &t)) return;
  const window_desc w = {.axis = 1, .count = 1, .size = {t.length}, .stride = {call_int(c, IR_PARAM_step, 1)}, .dilation = {1}};
  static const uint32_t parts_last[] = {0, 1, 3, 2};
  uint32_t frames = step_transpose(c, step_window(c, x, &w), parts_last); /* [batch, frames, length, parts] */
  if (!frames) return;
  const ir_tensor type = *type_of(c, frames);
  if (c->args[1]) frames = step_2(c, IR_OP_mul, frames, step_along(c, step_widen(c, c->args[1]), 2, &type));
  c->results[0] = step_cast(c, put_transform(c, frames, 2, &t), type_of(c, c->args[0])->dtype);
}

/* ---- determinant: minors of the last rows by sets of columns, each from those of one row less ---- */
static uint32_t element(composite_call *c, uint32_t x, uint32_t row, uint32_t column) {
  const ir_tensor shape = *type_of(c, x);
  const uint32_t line = step_slice(c, x, shape.rank - 2u, row, 1, 1);
  return step_reshape(c, step_slice(c, line, shape.rank - 1u, column, 1, 1), shape.rank - 2u, shape.dims);
}

static uint32_t expand_minor(composite_call *c, uint32_t x, uint32_t row, uint32_t set, const uint32_t *minors) {
  uint32_t sum = 0;
  bool odd = false;
  for (uint32_t column = 0; set >> column; column++) {
    if (!(set >> column & 1)) continue;
    const uint32_t own = element(c, x, row, column), rest = minors[set & ~(1u << column)];
    const uint32_t part = rest ? step_2(c, IR_OP_mul, own, rest) : own;
    sum = sum ? step_2(c, odd ? IR_OP_sub : IR_OP_add, sum, part) : part;
    odd = !odd;
  }
  return sum;
}

void build_det(composite_call *c) {
  const uint32_t x = step_widen(c, c->args[0]);
  const ir_tensor shape = *type_of(c, x);
  int64_t n;
  if (shape.rank < 2 || shape.dims[shape.rank - 1] != shape.dims[shape.rank - 2] ||
      !expr_is_const(c->g->pool, shape.dims[shape.rank - 1], &n) || n < 1 || n > MOST_DETERMINANT) {
    call_mistake(c, "needs square matrices of %d rows at most", MOST_DETERMINANT);
    return;
  }
  uint32_t minors[1 << MOST_DETERMINANT] = {0};
  for (uint32_t set = 1; set < 1u << n; set++) {
    uint32_t size = 0;
    for (uint32_t i = 0; i < n; i++) size += set >> i & 1;
    minors[set] = expand_minor(c, x, (uint32_t)n - size, set, minors);
  }
  c->results[0] = step_cast(c, minors[(1u << n) - 1], type_of(c, c->args[0])->dtype);
}
