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

typedef struct root {
  double re, im;
} root;

/* Of `turns` parts in `of` of a turn. Quarters are exact. */
static root root_of(const transform *t, int64_t turns, int64_t of) {
  const int64_t quarters = turns % of * 4;
  const double angle = tau / 4 * (double)(quarters % of) / (double)of, c = cos(angle), s = sin(angle);
  const root at[] = {{c, s}, {-s, c}, {-c, -s}, {s, -c}}, r = at[quarters / of];
  return (root){r.re, t->inverse ? r.im : -r.im};
}

/* Room for a table; null: there is none, or too much is asked for. */
static void *begin_table(composite_call *c, const transform *t, ir_tensor *type) {
  enum { MOST_ENTRIES = 1 << 24 };
  int64_t count = 1;
  for (uint32_t i = 0; i < type->rank; i++) count *= type->dims[i];
  const size_t size = ir_dtypes[t->dtype].bytes;
  type->dtype = (uint8_t)t->dtype;
  void *table = count > MOST_ENTRIES ? NULL : ir_arena_take(c->g->arena, (size_t)count * size, size);
  if (!table) call_mistake(c, count > MOST_ENTRIES ? "a table of %lld entries" : "out of memory for %lld entries", (long long)count);
  return table;
}

static void put_number(void *table, int32_t dtype, int64_t at, double value) {
  if (dtype == SNT_F64) ((double *)table)[at] = value;
  else ((float *)table)[at] = (float)value;
}

static uint32_t end_table(composite_call *c, const ir_tensor *type, void *table) {
  const ir_const data = {.kind = IR_CONST_DATA, .data = table};
  return table ? ir_add_const(c->g, type, &data) : 0;
}

/* [terms, parts, bins, 2]: what a part of a term adds to each part of a bin. */
static uint32_t bins_table(composite_call *c, const transform *t, int64_t terms) {
  ir_tensor type = {.rank = 4, .dims = {terms, t->parts, t->bins, 2}};
  void *table = begin_table(c, t, &type);
  for (int64_t at = 0; table && at < terms * t->parts * t->bins; at++) {
    const bool imaginary = at / t->bins % t->parts;
    const root r = root_of(t, at / t->bins / t->parts * (at % t->bins), t->length);
    put_number(table, t->dtype, 2 * at, t->scale * (imaginary ? -r.im : r.re));
    put_number(table, t->dtype, 2 * at + 1, t->scale * (imaginary ? r.re : r.im));
  }
  return end_table(c, &type, table);
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
  enum { PASS = 200 };
  int64_t best = 2 * parts * length, deeper[MOST_PASSES];
  radix[0] = length, radix[1] = 0;
  for (int64_t r = 2; r <= most && r <= length / 2 && room > 2; r++) {
    if (length % r) continue;
    const int64_t cost = 2 * parts * r + PASS + find_passes(length / r, 2, r, deeper, room - 1);
    if (cost >= best) continue;
    best = cost, radix[0] = r;
    memcpy(radix + 1, deeper, (room - 1) * sizeof *deeper);
  }
  return best;
}

/* [radix, parts, bins]: what a part of term j1 adds to one part of bin k1. */
static uint32_t pass_table(composite_call *c, const transform *t, const pass *p, bool imaginary) {
  ir_tensor type = {.rank = 3, .dims = {p->radix, p->parts, p->bins}};
  void *table = begin_table(c, t, &type);
  for (int64_t at = 0; table && at < p->radix * p->parts * p->bins; at++) {
    const bool other = (at / p->bins % p->parts != 0) != imaginary;
    const root r = root_of(t, at / p->bins / p->parts * (at % p->bins), p->radix);
    put_number(table, t->dtype, at, p->scale * (!other ? r.re : imaginary ? r.im : -r.im));
  }
  return end_table(c, &type, table);
}

/* [radix, 1, done, 1]: one part of exp(-i tau j1 k / (radix done)), by which a pass turns bin k of what begins at j1. */
static uint32_t twiddle_table(composite_call *c, const transform *t, const pass *p, bool imaginary) {
  ir_tensor type = {.rank = 4, .dims = {p->radix, 1, p->done, 1}};
  void *table = begin_table(c, t, &type);
  for (int64_t at = 0; table && at < p->radix * p->done; at++) {
    const root r = root_of(t, at / p->done * (at % p->done), p->radix * p->done);
    put_number(table, t->dtype, at, imaginary ? r.im : r.re);
  }
  return end_table(c, &type, table);
}

/* Both parts of the next bins, [before, rest, bins, done, behind]: of x [before, rows, behind, parts] in the first pass, else of [before, 2, rows, done, behind]. */
static void put_sums(composite_call *c, uint32_t x, const transform *t, const pass *p, uint32_t sum[2]) {
  static const contract_desc first = {
      .lhs = {{BEFORE, TERM, REST, DONE, BEHIND, PART}, 6}, .rhs = {{TERM, PART, BIN}, 3}, .out = {{BEFORE, REST, BIN, DONE, BEHIND}, 5}};
  static const contract_desc later = {
      .lhs = {{BEFORE, PART, TERM, REST, DONE, BEHIND}, 6}, .rhs = {{TERM, PART, BIN}, 3}, .out = {{BEFORE, REST, BIN, DONE, BEHIND}, 5}};
  const ir_tensor shape = *type_of(c, x);
  const ir_expr given[] = {shape.dims[0], p->radix, p->rest, 1, shape.dims[2], p->parts};
  const ir_expr ours[] = {shape.dims[0], 2, p->radix, p->rest, p->done, shape.dims[4]};
  const bool is_first = p->done == 1;
  x = step_reshape(c, x, 6, is_first ? given : ours);
  for (uint32_t i = 0; i < 2; i++) sum[i] = step_contract(c, x, pass_table(c, t, p, i), is_first ? &first : &later);
}

/* Turned for the pass `next`, both parts behind each other: [before, 2, rows, done, behind]. */
static uint32_t turn(composite_call *c, const uint32_t sum[2], const transform *t, const pass *next) {
  uint32_t root[2], part[2];
  if (!sum[0] || !sum[1]) return 0;
  const ir_tensor shape = *type_of(c, sum[0]);
  const ir_expr apart[] = {shape.dims[0], next->radix, next->rest, next->done, shape.dims[4]};
  const ir_expr joined[] = {shape.dims[0], 1, next->radix * next->rest, next->done, shape.dims[4]};
  const uint32_t re = step_reshape(c, sum[0], 5, apart), im = step_reshape(c, sum[1], 5, apart);
  for (uint32_t i = 0; i < 2; i++) root[i] = twiddle_table(c, t, next, i);
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t own = step_2(c, IR_OP_mul, re, root[i]), other = step_2(c, IR_OP_mul, im, root[1 - i]);
    part[i] = step_reshape(c, step_2(c, i ? IR_OP_add : IR_OP_sub, own, other), 5, joined);
  }
  return step_concat(c, 1, 2, part);
}

/* x [before, n, behind, parts] is [before, bins, behind, 2]. */
static uint32_t put_passes(composite_call *c, uint32_t x, const transform *t, const int64_t *radix) {
  pass p = {.done = 1, .rest = t->length, .parts = t->parts, .scale = 1};
  for (uint32_t i = 0; x; i++) {
    const ir_tensor shape = *type_of(c, x);
    uint32_t sum[2];
    p.radix = p.bins = radix[i], p.rest /= p.radix;
    if (p.rest == 1) p.bins = (t->bins + p.done - 1) / p.done, p.scale = t->scale;
    put_sums(c, x, t, &p, sum);
    p.done *= p.radix, p.parts = 2;
    if (p.rest > 1) {
      x = turn(c, sum, t, &(pass){.radix = radix[i + 1], .rest = p.rest / radix[i + 1], .done = p.done});
      continue;
    }
    const ir_expr alone[] = {shape.dims[0], p.done / p.radix * p.bins, shape.dims[i ? 4 : 2], 1};
    for (uint32_t k = 0; k < 2; k++) sum[k] = step_slice(c, step_reshape(c, sum[k], 4, alone), 1, 0, t->bins, 1);
    return step_concat(c, 3, 2, sum);
  }
  return 0;
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
  return step_contract(c, x, bins_table(c, t, terms), &d);
}

static uint32_t fill(composite_call *c, uint32_t x, uint32_t axis, int64_t count) {
  ir_tensor shape = *type_of(c, x);
  shape.dims[axis] = count;
  const uint32_t parts[] = {x, count ? step_broadcast(c, step_number(c, x, 0), &shape) : 0};
  return step_concat(c, axis, count ? 2 : 1, parts);
}

/* x [.., terms at axis, .., parts] is [.., bins, .., 2]. */
static uint32_t put_transform(composite_call *c, uint32_t x, uint32_t axis, const transform *t) {
  int64_t terms = 0, radix[MOST_PASSES];
  if (!x || !expr_is_const(c->g->pool, type_of(c, x)->dims[axis], &terms)) return 0;
  if (2 * t->parts * terms <= find_passes(t->length, t->parts, t->length, radix, MOST_PASSES)) return put_whole(c, x, axis, t, terms);
  x = fill(c, x, axis, t->length - terms);
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
