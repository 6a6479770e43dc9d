/* The reference evaluator's contraction and gather. Operands are packed into dense rows of f64, then multiplied with three sums beside each
   other: the value, the sum of sizes (for the rounding bound) and the propagated bound. */
#include "ir/eval/private.h"
#include <math.h>

enum { ROWS = 16, COLUMNS = 64 };

typedef struct product {
  const eval_view *lhs, *rhs;
  int64_t *m, *n, *k_lhs, *k_rhs, *batch_lhs, *batch_rhs, *out_m, *out_n, *batch_out;
  uint64_t count[4]; /* batch, m, n, k */
  bool bounds, is_float;
  double *a, *ea, *b, *eb; /* packed: ROWS x k, k x COLUMNS */
} product;

static int64_t *offsets_of(eval_ctx *ctx, const eval_group *group, const int64_t *strides, bool *failed) {
  int64_t *at = eval_take(ctx, group->size * sizeof *at);
  if (at) eval_group_offsets(group, strides, at);
  else *failed = true;
  return at;
}

static bool open_product(eval_ctx *ctx, const eval_labels *l, product *p) {
  bool failed = false;
  const eval_group *groups[4] = {&l->batch, &l->m, &l->n, &l->k};
  for (int i = 0; i < 4; i++) p->count[i] = groups[i]->size;
  p->batch_lhs = offsets_of(ctx, &l->batch, l->batch.lhs, &failed);
  p->batch_rhs = offsets_of(ctx, &l->batch, l->batch.rhs, &failed);
  p->batch_out = offsets_of(ctx, &l->batch, l->batch.out, &failed);
  p->m = offsets_of(ctx, &l->m, l->m.lhs, &failed);
  p->out_m = offsets_of(ctx, &l->m, l->m.out, &failed);
  p->n = offsets_of(ctx, &l->n, l->n.rhs, &failed);
  p->out_n = offsets_of(ctx, &l->n, l->n.out, &failed);
  p->k_lhs = offsets_of(ctx, &l->k, l->k.lhs, &failed);
  p->k_rhs = offsets_of(ctx, &l->k, l->k.rhs, &failed);
  p->a = eval_take(ctx, p->count[3] * ROWS * sizeof(double));
  p->ea = eval_take(ctx, p->count[3] * ROWS * sizeof(double));
  p->b = eval_take(ctx, p->count[3] * COLUMNS * sizeof(double));
  p->eb = eval_take(ctx, p->count[3] * COLUMNS * sizeof(double));
  return !failed && p->a && p->ea && p->b && p->eb;
}

static void close_product(eval_ctx *ctx, product *p) {
  int64_t *batch[3] = {p->batch_lhs, p->batch_rhs, p->batch_out},
          *others[3][2] = {{p->m, p->out_m}, {p->n, p->out_n}, {p->k_lhs, p->k_rhs}};
  for (int i = 0; i < 3; i++) eval_give(ctx, batch[i], p->count[0] * sizeof(int64_t));
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 2; j++) eval_give(ctx, others[i][j], p->count[i + 1] * sizeof(int64_t));
  eval_give(ctx, p->a, p->count[3] * ROWS * sizeof(double));
  eval_give(ctx, p->ea, p->count[3] * ROWS * sizeof(double));
  eval_give(ctx, p->b, p->count[3] * COLUMNS * sizeof(double));
  eval_give(ctx, p->eb, p->count[3] * COLUMNS * sizeof(double));
}

static void pack_rows(const product *p, int64_t base, uint64_t first, uint32_t rows) {
  for (uint32_t r = 0; r < rows; r++)
    for (uint64_t k = 0; k < p->count[3]; k++) {
      bounded x = ref_load(p->lhs, base + p->m[first + r] + p->k_lhs[k]);
      p->a[r * p->count[3] + k] = x.v;
      p->ea[r * p->count[3] + k] = x.e;
    }
}

static void pack_columns(const product *p, int64_t base, uint64_t first, uint32_t columns) {
  for (uint64_t k = 0; k < p->count[3]; k++)
    for (uint32_t c = 0; c < columns; c++) {
      bounded x = ref_load(p->rhs, base + p->n[first + c] + p->k_rhs[k]);
      p->b[k * COLUMNS + c] = x.v;
      p->eb[k * COLUMNS + c] = x.e;
    }
}

typedef struct sums {
  double v[COLUMNS], size[COLUMNS], e[COLUMNS];
} sums;

static void multiply_row(const product *p, uint32_t row, uint32_t columns, sums *s) {
  memset(s, 0, sizeof *s);
  for (uint64_t k = 0; k < p->count[3]; k++) {
    const double *b = p->b + k * COLUMNS, *eb = p->eb + k * COLUMNS;
    double a = p->a[row * p->count[3] + k], size = fabs(a), ea = p->ea[row * p->count[3] + k];
    for (uint32_t c = 0; c < columns; c++) {
      s->v[c] += a * b[c];
      s->size[c] += size * fabs(b[c]);
    }
    if (!p->bounds) continue;
    for (uint32_t c = 0; c < columns; c++) {
      double spread = (ea == 0 ? 0 : ea * (fabs(b[c]) + eb[c])) + (eb[c] == 0 ? 0 : size * eb[c]);
      s->e[c] += isnan(spread) ? (double)INFINITY : spread;
    }
  }
}

/* Whole operands (padding is whole too) whose products stay small add up without rounding. */
static bool all_whole(const eval_view *v) {
  const double *values = v->buffer->data;
  if (v->buffer->bound) return false;
  for (uint64_t i = 0; i < v->count; i++) {
    double x = values[eval_offset_at(v, i)];
    if (x != nearbyint(x)) return false;
  }
  return true;
}

typedef struct rounding {
  double gamma, tile; /* tile: of each weight, what sums over tiles of a convolution, or of slices of a vector, may add */
  bound_type inner, stored;
  bool whole;
  bool store_rounds;
} rounding;

/* A 3x3 convolution of stride 1 may be computed in tiles (fusion/winograd.c), whose rounding stands beside the largest operand near. */
static bool may_be_tiled(const eval_ctx *ctx, uint32_t node) {
  static const uint8_t keys[] = {IR_ATTR_dilation, IR_ATTR_stride, IR_ATTR_size};
  static const ir_expr wanted[] = {1, 1, 3};
  const uint32_t window = ir_arg(ctx->g, node, 0);
  uint32_t count;
  if (ctx->info->direct || ir_at(ctx->g, window)->op != IR_OP_window || ir_at(ctx->g, node)->type.dtype == SNT_F64) return false;
  for (uint32_t k = 0; k < sizeof keys; k++) {
    const ir_expr *list = ir_attr_ints(ctx->g, window, (ir_attr_key)keys[k], &count);
    if (!list || count != 2 || list[0] != wanted[k] || list[1] != wanted[k]) return false;
  }
  return true;
}

static double largest(const eval_view *v) {
  double most = 0;
  for (uint64_t i = 0; i < v->count; i++) {
    const double x = fabs(ref_load(v, eval_offset_at(v, i)).v);
    if (!(x <= most)) most = isnan(x) ? (double)INFINITY : x;
  }
  return most;
}

/* Made of unsigned bytes. */
static bool is_of_bytes(const ir_graph *g, uint32_t node, uint32_t depth) {
  const ir_node *n = ir_at(g, node);
  if (n->op == IR_OP_cast) return ir_at(g, ir_arg(g, node, 0))->type.dtype == SNT_U8;
  bool is = false;
  for (uint32_t i = 0; depth && i < n->arity && !is; i++) is = is_of_bytes(g, ir_arg(g, node, i), depth - 1);
  return is;
}

/* A row times a matrix of bytes may be cut into three slices of 8 bits (fusion/rewrite/word_bytes.c): they leave 2^-23.96 of the largest element of a
   block, or of 2^-103, and the first has half a code too much, whose sums round. */
static double sliced(const eval_ctx *ctx, uint32_t node, const eval_labels *l, const eval_view *lhs, double gamma) {
  enum { DEPTH = 12 };
  const bool may = l->batch.size * l->m.size == 1 && !ctx->info->direct && ir_at(ctx->g, node)->type.dtype == SNT_F32 &&
                   is_of_bytes(ctx->g, ir_arg(ctx->g, node, 1), DEPTH);
  const double most = may ? largest(lhs) : 0;
  return most > 0 ? fmax(most, 0x1p-103) * (0x1p-23 + gamma / 254) : 0;
}

static void add_weights(const product *p, uint32_t columns, double *sizes) {
  memset(sizes, 0, COLUMNS * sizeof *sizes);
  for (uint64_t k = 0; k < p->count[3]; k++)
    for (uint32_t c = 0; c < columns; c++) sizes[c] += fabs(p->b[k * COLUMNS + c]);
}

static bounded round_sum(const rounding *r, double v, double size, double e) {
  bounded x = {v, e};
  if (isnan(v) || isinf(v)) return bound_store(&r->stored, x, 0, true);
  if (!(r->whole && size <= 2 / r->inner.unit)) x.e += r->gamma * (size + e);
  if (r->inner.dtype == SNT_F32 && size > r->inner.top) x.e = INFINITY;
  return bound_store(&r->stored, x, r->store_rounds ? 0.5 : 0, true);
}

static bounded tiled_sum(const rounding *r, double weight, bounded x) {
  if (r->tile > 0 && weight > 0) x.e += r->tile * weight;
  return x;
}

static void float_product(const product *p, const rounding *r, const eval_view *out) {
  sums s;
  double weights[COLUMNS] = {0};
  for (uint64_t g = 0; g < p->count[0]; g++)
    for (uint64_t n = 0; n < p->count[2]; n += COLUMNS) {
      uint32_t columns = p->count[2] - n < COLUMNS ? (uint32_t)(p->count[2] - n) : COLUMNS;
      pack_columns(p, p->rhs->offset + p->batch_rhs[g], n, columns);
      if (r->tile > 0) add_weights(p, columns, weights);
      for (uint64_t m = 0; m < p->count[1]; m += ROWS) {
        uint32_t rows = p->count[1] - m < ROWS ? (uint32_t)(p->count[1] - m) : ROWS;
        pack_rows(p, p->lhs->offset + p->batch_lhs[g], m, rows);
        for (uint32_t row = 0; row < rows; row++) {
          multiply_row(p, row, columns, &s);
          for (uint32_t c = 0; c < columns; c++)
            ref_save(out, (uint64_t)(p->batch_out[g] + p->out_m[m + row] + p->out_n[n + c]),
                     tiled_sum(r, weights[c], round_sum(r, s.v[c], s.size[c], s.e[c])));
        }
      }
    }
}

/* Four products of bytes; of a word that is not exactly known, anything. */
static bounded_int add_words(bounded_int total, const bounded_int *pair) {
  const double e = pair[0].e > 0 || pair[1].e > 0 ? (double)INFINITY : total.e;
  return (bounded_int){(int32_t)ir_dot4((uint32_t)pair[0].v, (uint32_t)pair[1].v, (uint32_t)total.v), e};
}

/* Of what is known exactly, where all words stay 64 bits wide until the last: each of them would wrap alike. */
static int64_t exact_sum(const product *p, uint64_t g, uint64_t m, uint64_t n) {
  const int64_t *a = (const int64_t *)p->lhs->buffer->data + p->lhs->offset + p->batch_lhs[g] + p->m[m],
                *b = (const int64_t *)p->rhs->buffer->data + p->rhs->offset + p->batch_rhs[g] + p->n[n];
  uint64_t sum = 0;
  for (uint64_t k = 0; k < p->count[3]; k++) sum += (uint64_t)a[p->k_lhs[k]] * (uint64_t)b[p->k_rhs[k]];
  return (int64_t)sum;
}

static void int_product(const product *p, bool packed, const eval_view *out) {
  const bool exact = !packed && !p->bounds;
  for (uint64_t g = 0; g < p->count[0]; g++)
    for (uint64_t m = 0; m < p->count[1]; m++)
      for (uint64_t n = 0; n < p->count[2]; n++) {
        bounded_int total = {exact ? ir_op_eval_int(IR_OP_add, exact_sum(p, g, m, n), 0, 0, out->dtype) : 0, 0};
        for (uint64_t k = 0; k < p->count[3] && !exact; k++) {
          bounded_int pair[2] = {ref_load_int(p->lhs, p->lhs->offset + p->batch_lhs[g] + p->m[m] + p->k_lhs[k]),
                                 ref_load_int(p->rhs, p->rhs->offset + p->batch_rhs[g] + p->n[n] + p->k_rhs[k])};
          bounded_int both[2] = {total, packed ? (bounded_int){0, 0} : bound_int(IR_OP_mul, out->dtype, pair)};
          total = packed ? add_words(total, pair) : bound_int(IR_OP_add, out->dtype, both);
        }
        ref_save_int(out, (uint64_t)(p->batch_out[g] + p->out_m[m] + p->out_n[n]), total);
      }
}

snt_result ref_contract(eval_ctx *ctx, uint32_t node, eval_view *out) {
  const eval_view *lhs = &ctx->values[ir_arg(ctx->g, node, 0)], *rhs = &ctx->values[ir_arg(ctx->g, node, 1)];
  bool is_float = ir_dtypes[lhs->dtype].is_float;
  eval_labels labels;
  SNT_TRY(eval_type_of(ctx, node, out));
  eval_find_labels(ctx, node, lhs, rhs, out, &labels);
  product p = {.lhs = lhs, .rhs = rhs, .is_float = is_float, .bounds = lhs->buffer->bound || rhs->buffer->bound};
  SNT_TRY(eval_new(ctx, out, p.bounds || is_float));
  bool open = open_product(ctx, &labels, &p);
  if (open && is_float) {
    rounding r = {.inner = bound_accumulator(ctx, out->dtype), .stored = bound_type_of(ctx, out->dtype)};
    /* On each path one multiplication and, at worst, k - 1 additions. */
    r.gamma = bound_gamma(fmin(bound_depth(ctx, node, labels.k.size) + 1, (double)labels.k.size), &r.inner);
    r.whole = all_whole(lhs) && all_whole(rhs);
    r.store_rounds = r.stored.narrow;
    r.tile = may_be_tiled(ctx, node) ? 0x1p-19 * largest(lhs) : sliced(ctx, node, &labels, lhs, r.gamma);
    float_product(&p, &r, out);
  } else if (open) {
    int_product(&p, ir_attr_flag(ctx->g, node, IR_ATTR_packed), out);
  }
  close_product(ctx, &p);
  if (!open) return eval_fail(ctx, node, SNT_E_HOST_MEM, "out of memory");
  ref_drop_zero_bounds(ctx, out);
  return SNT_OK;
}

/* ---- gather ---- */
typedef struct picking {
  const eval_view *x, *index;
  eval_rows rows;
  bool zero, is_float;
} picking;

/* Outside: the nearest row, or 0 with the attribute. */
static bool picked_offset(const picking *p, uint64_t outer, int64_t i, uint64_t inner, int64_t *at) {
  int64_t row = eval_row(p->index->dtype, i, p->rows.extent);
  if (row < 0 && (p->zero || p->rows.extent == 0)) return false;
  if (row < 0) row = i < 0 && ir_dtypes[p->index->dtype].is_signed ? 0 : (int64_t)p->rows.extent - 1;
  *at = eval_offset_at(p->x, (outer * p->rows.extent + (uint64_t)row) * p->rows.inner + inner);
  return true;
}

static bounded picked_value(const picking *p, uint64_t outer, int64_t i, uint64_t inner) {
  int64_t at;
  if (!picked_offset(p, outer, i, inner, &at)) return (bounded){0, 0};
  if (p->is_float) return ref_load(p->x, at);
  bounded_int n = ref_load_int(p->x, at);
  return (bounded){eval_int_to_float(p->x->dtype, n.v), n.e};
}

/* How far the neighbours are that an uncertain index may pick instead. */
static double neighbours(const picking *p, uint64_t outer, bounded_int i, uint64_t inner) {
  enum { FAR = 16 };
  bounded here = picked_value(p, outer, i.v, inner);
  double bound = here.e;
  if (i.e > FAR) return INFINITY;
  for (int64_t d = -(int64_t)i.e; d <= (int64_t)i.e; d++) {
    bounded there = picked_value(p, outer, i.v + d, inner);
    double apart = there.v == here.v ? 0 : fabs(there.v - here.v);
    bound = isnan(apart) ? (double)INFINITY : fmax(bound, apart + there.e);
  }
  return bound;
}

snt_result ref_gather(eval_ctx *ctx, uint32_t node, eval_view *out) {
  picking p = {.x = &ctx->values[ir_arg(ctx->g, node, 0)],
               .index = &ctx->values[ir_arg(ctx->g, node, 1)],
               .zero = ir_attr_flag(ctx->g, node, IR_ATTR_zero)};
  p.rows = eval_find_rows(ctx, node, p.x, p.index);
  p.is_float = ir_dtypes[p.x->dtype].is_float;
  SNT_TRY(eval_type_of(ctx, node, out));
  SNT_TRY(eval_new(ctx, out, p.x->buffer->bound || p.index->buffer->bound));
  for (uint64_t i = 0; i < out->count; i++) {
    uint64_t inner = i % p.rows.inner, pick = i / p.rows.inner % p.rows.picks, outer = i / p.rows.inner / p.rows.picks;
    bounded_int n = ref_load_int(p.index, eval_offset_at(p.index, pick));
    int64_t at = 0;
    bool inside = picked_offset(&p, outer, n.v, inner, &at);
    if (p.is_float) ref_save(out, i, inside ? ref_load(p.x, at) : (bounded){0, 0});
    else ref_save_int(out, i, inside ? ref_load_int(p.x, at) : (bounded_int){0, 0});
    if (n.e > 0) out->buffer->bound[i] = neighbours(&p, outer, n, inner);
  }
  return SNT_OK;
}
