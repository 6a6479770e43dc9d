/* The fast evaluator's contraction: a blocked matrix product whose operands are packed through tables of element offsets, so that a window
   (convolution), a transpose or a broadcast is read in place. Computes in f32, f64 or int64; narrow floats are widened while packing. */
#include "ir/eval/fast.h"

enum { MR = 4, NR = 8, KC = 256, MC = 64, NC = 256 };

typedef struct side {
  const void *data;
  int32_t dtype;
  const int64_t *free, *summed;
  int64_t base;
} side; /* element at free[i] + summed[k] + base */
typedef struct tables {
  int64_t *m, *n, *k_lhs, *k_rhs, *batch_lhs, *batch_rhs, *batch_out, *out_m, *out_n;
  uint64_t batch, mc, nc, kc;
} tables;

/* Panels of `width` rows (columns), k after k; what is over is 0. */
#define DEFINE_PACK(T, name, LOAD)                                                                                    \
  static void name(const side *s, uint64_t first, uint64_t count, uint64_t k0, uint64_t kn, uint32_t width, T *out) { \
    const int64_t *summed = s->summed + k0;                                                                           \
    for (uint64_t panel = 0; panel < count; panel += width) {                                                         \
      for (uint32_t r = 0; r < width; r++) {                                                                          \
        if (panel + r >= count) {                                                                                     \
          for (uint64_t k = 0; k < kn; k++) out[k * width + r] = 0;                                                   \
          continue;                                                                                                   \
        }                                                                                                             \
        int64_t row = s->base + s->free[first + panel + r];                                                           \
        for (uint64_t k = 0; k < kn; k++) out[k * width + r] = LOAD;                                                  \
      }                                                                                                               \
      out += kn * width;                                                                                              \
    }                                                                                                                 \
  }
DEFINE_PACK(float, pack_f32, ((const float *)s->data)[row + summed[k]])
DEFINE_PACK(float, pack_f16, ir_f32_from_f16(((const uint16_t *)s->data)[row + summed[k]]))
DEFINE_PACK(float, pack_bf16, ir_f32_from_bf16(((const uint16_t *)s->data)[row + summed[k]]))
DEFINE_PACK(float, pack_narrow, (float)ir_dtype_load(s->dtype, s->data, (size_t)(row + summed[k])))
DEFINE_PACK(double, pack_f64, ((const double *)s->data)[row + summed[k]])
DEFINE_PACK(int64_t, pack_int, ir_dtype_load_int(s->dtype, s->data, (size_t)(row + summed[k])))

static void pack_float(const side *s, uint64_t first, uint64_t count, uint64_t k0, uint64_t kn, uint32_t width, float *out) {
  if (s->dtype == SNT_F32) pack_f32(s, first, count, k0, kn, width, out);
  else if (s->dtype == SNT_F16) pack_f16(s, first, count, k0, kn, width, out);
  else if (s->dtype == SNT_BF16) pack_bf16(s, first, count, k0, kn, width, out);
  else pack_narrow(s, first, count, k0, kn, width, out);
}

/* c[MR][NR] (row stride ldc) += a panel * b panel. The accumulators are the registers the compiler keeps. */
static void tile_f32(uint64_t kn, const float *a, const float *b, float *c, uint64_t ldc, uint32_t rows, uint32_t columns) {
  float acc[MR][NR] = {{0}};
  for (uint64_t k = 0; k < kn; k++, a += MR, b += NR)
    for (int r = 0; r < MR; r++)
      for (int j = 0; j < NR; j++) acc[r][j] += a[r] * b[j];
  for (uint32_t r = 0; r < rows; r++)
    for (uint32_t j = 0; j < columns; j++) c[r * ldc + j] += acc[r][j];
}

static void tile_f64(uint64_t kn, const double *a, const double *b, double *c, uint64_t ldc, uint32_t rows, uint32_t columns) {
  double acc[MR][NR] = {{0}};
  for (uint64_t k = 0; k < kn; k++, a += MR, b += NR)
    for (int r = 0; r < MR; r++)
      for (int j = 0; j < NR; j++) acc[r][j] += a[r] * b[j];
  for (uint32_t r = 0; r < rows; r++)
    for (uint32_t j = 0; j < columns; j++) c[r * ldc + j] += acc[r][j];
}

static void tile_int(uint64_t kn, const int64_t *a, const int64_t *b, int64_t *c, uint64_t ldc, uint32_t rows, uint32_t columns) {
  uint64_t acc[MR][NR] = {{0}};
  for (uint64_t k = 0; k < kn; k++, a += MR, b += NR)
    for (int r = 0; r < MR; r++)
      for (int j = 0; j < NR; j++) acc[r][j] += (uint64_t)a[r] * (uint64_t)b[j];
  for (uint32_t r = 0; r < rows; r++)
    for (uint32_t j = 0; j < columns; j++) c[r * ldc + j] = (int64_t)((uint64_t)c[r * ldc + j] + acc[r][j]);
}

/* Words of four bytes. */
static void tile_words(uint64_t kn, const int64_t *a, const int64_t *b, int64_t *c, uint64_t ldc, uint32_t rows, uint32_t columns) {
  uint32_t acc[MR][NR] = {{0}};
  for (uint64_t k = 0; k < kn; k++, a += MR, b += NR)
    for (int r = 0; r < MR; r++)
      for (int j = 0; j < NR; j++) acc[r][j] = ir_dot4((uint32_t)a[r], (uint32_t)b[j], acc[r][j]);
  for (uint32_t r = 0; r < rows; r++)
    for (uint32_t j = 0; j < columns; j++) c[r * ldc + j] = (int32_t)((uint32_t)c[r * ldc + j] + acc[r][j]);
}

typedef struct work {
  void (*tile)(uint64_t kn, const int64_t *a, const int64_t *b, int64_t *c, uint64_t ldc, uint32_t rows,
               uint32_t columns); /* of integers */
  void *a, *b, *c;
  size_t a_bytes, b_bytes, c_bytes;
} work;

#define DEFINE_PRODUCT(T, name, PACK, TILE, STORE)                                                                                 \
  static void name##_panel(const side *lhs, const tables *t, const work *w, uint64_t k0, uint64_t kn, uint64_t nn, uint64_t ldc) { \
    for (uint64_t m0 = 0; m0 < t->mc; m0 += MC) {                                                                                  \
      uint64_t mn = t->mc - m0 < MC ? t->mc - m0 : MC;                                                                             \
      PACK(lhs, m0, mn, k0, kn, MR, w->a);                                                                                         \
      for (uint64_t j = 0; j < nn; j += NR)                                                                                        \
        for (uint64_t i = 0; i < mn; i += MR)                                                                                      \
          TILE(kn, (const T *)w->a + i * kn, (const T *)w->b + j * kn, (T *)w->c + (m0 + i) * ldc + j, ldc,                        \
               (uint32_t)(mn - i < MR ? mn - i : MR), (uint32_t)(nn - j < NR ? nn - j : NR));                                      \
    }                                                                                                                              \
  }                                                                                                                                \
  static void name(const side *lhs, const side *rhs, const tables *t, const work *w, int32_t dtype, void *out, int64_t base) {     \
    for (uint64_t n0 = 0; n0 < t->nc; n0 += NC) {                                                                                  \
      uint64_t nn = t->nc - n0 < NC ? t->nc - n0 : NC;                                                                             \
      memset(w->c, 0, t->mc *nn * sizeof(T));                                                                                      \
      for (uint64_t k0 = 0; k0 < t->kc; k0 += KC) {                                                                                \
        uint64_t kn = t->kc - k0 < KC ? t->kc - k0 : KC;                                                                           \
        PACK(rhs, n0, nn, k0, kn, NR, w->b);                                                                                       \
        name##_panel(lhs, t, w, k0, kn, nn, nn);                                                                                   \
      }                                                                                                                            \
      const T *c = w->c;                                                                                                           \
      for (uint64_t m = 0; m < t->mc; m++)                                                                                         \
        for (uint64_t n = 0; n < nn; n++) STORE(dtype, out, (size_t)(base + t->out_m[m] + t->out_n[n0 + n]), c[m * nn + n]);       \
    }                                                                                                                              \
  }

static void store_f32(int32_t dtype, void *out, size_t at, float value) {
  if (dtype == SNT_F32) ((float *)out)[at] = value;
  else ir_dtype_store(dtype, out, at, (double)value);
}
DEFINE_PRODUCT(float, product_f32, pack_float, tile_f32, store_f32)
DEFINE_PRODUCT(double, product_f64, pack_f64, tile_f64, ir_dtype_store)
DEFINE_PRODUCT(int64_t, product_int, pack_int, w->tile, ir_dtype_store_int)

/* ---- one column (or row): no packing ----
   Summed as the blocked product sums, KC terms in order and then the next KC, so that a row has the same bits alone as among others. */
typedef struct part {
  const side *matrix;
  const int64_t *summed;
  const float *vector;
  uint64_t count;
} part; /* of the sum */

/* y[m] += sum over k of x[m, k] * v[k], rows that lie side by side. */
static void vector_product(const part *p, uint64_t rows, float *y) {
  const side *x = p->matrix;
  const float *data = (const float *)x->data + x->base;
  for (uint64_t first = 0, run; first < rows; first += run) {
    float sums[FAST_BLOCK] = {0};
    for (run = 1; first + run < rows && run < FAST_BLOCK && x->free[first + run] == x->free[first] + (int64_t)run;) run++;
    for (uint64_t k = 0; k < p->count; k++) {
      const float *from = data + x->free[first] + p->summed[k], factor = p->vector[k];
      for (uint64_t i = 0; i < run; i++) sums[i] += factor * from[i];
    }
    for (uint64_t i = 0; i < run; i++) y[first + i] += sums[i];
  }
}

/* The same of runs of one element each: dot products, some side by side. */
static void dot_products(const part *p, uint64_t rows, float *y) {
  enum { ROWS = 8 };
  const side *x = p->matrix;
  const float *data = (const float *)x->data + x->base;
  for (uint64_t m = 0; m < rows; m += ROWS) {
    const uint64_t count = rows - m < ROWS ? rows - m : ROWS;
    const float *row[ROWS];
    float sums[ROWS] = {0};
    for (uint64_t r = 0; r < ROWS; r++) row[r] = data + x->free[m + (r < count ? r : 0)];
    for (uint64_t k = 0; k < p->count; k++)
      for (int r = 0; r < ROWS; r++) sums[r] += row[r][p->summed[k]] * p->vector[k];
    for (uint64_t r = 0; r < count; r++) y[m + r] += sums[r];
  }
}

static bool contiguous_rows(const side *x, uint64_t rows) { return rows > 3 && x->free[3] == x->free[0] + 3; }

typedef struct target {
  void *data;
  int32_t dtype;
  const int64_t *rows;
  int64_t base;
} target; /* row m goes to rows[m] + base */

static void product_vector(const side *matrix, const side *vector, const tables *t, const work *w, uint64_t rows, const target *out) {
  float *v = w->b, *y = w->c;
  for (uint64_t k = 0; k < t->kc; k++) v[k] = ((const float *)vector->data)[vector->base + vector->free[0] + vector->summed[k]];
  memset(y, 0, rows * sizeof *y);
  for (uint64_t k = 0; k < t->kc; k += KC) {
    const part p = {matrix, matrix->summed + k, v + k, t->kc - k < KC ? t->kc - k : KC};
    (contiguous_rows(matrix, rows) ? vector_product : dot_products)(&p, rows, y);
  }
  for (uint64_t m = 0; m < rows; m++) store_f32(out->dtype, out->data, (size_t)(out->base + out->rows[m]), y[m]);
}

/* ---- set-up ---- */
static void close_tables(eval_ctx *ctx, tables *t, work *w) {
  int64_t *at[9] = {t->batch_lhs, t->batch_rhs, t->batch_out, t->m, t->out_m, t->n, t->out_n, t->k_lhs, t->k_rhs};
  const uint64_t counts[9] = {t->batch, t->batch, t->batch, t->mc, t->mc, t->nc, t->nc, t->kc, t->kc};
  for (int i = 0; i < 9; i++) eval_give(ctx, at[i], counts[i] * sizeof(int64_t));
  eval_give(ctx, w->a, w->a_bytes);
  eval_give(ctx, w->b, w->b_bytes);
  eval_give(ctx, w->c, w->c_bytes);
}

static bool open_tables(eval_ctx *ctx, const eval_labels *l, size_t bytes, tables *t, work *w) {
  *t = (tables){.batch = l->batch.size, .mc = l->m.size, .nc = l->n.size, .kc = l->k.size};
  const eval_group *groups[9] = {&l->batch, &l->batch, &l->batch, &l->m, &l->m, &l->n, &l->n, &l->k, &l->k};
  const int64_t *strides[9] = {l->batch.lhs, l->batch.rhs, l->batch.out, l->m.lhs, l->m.out, l->n.rhs, l->n.out, l->k.lhs, l->k.rhs};
  int64_t **at[9] = {&t->batch_lhs, &t->batch_rhs, &t->batch_out, &t->m, &t->out_m, &t->n, &t->out_n, &t->k_lhs, &t->k_rhs};
  bool whole = true;
  for (int i = 0; i < 9; i++) {
    *at[i] = eval_take(ctx, groups[i]->size * sizeof(int64_t));
    if (*at[i]) eval_group_offsets(groups[i], strides[i], *at[i]);
    else whole = false;
  }
  uint64_t longest = t->mc > t->nc ? t->mc : t->nc;
  w->a_bytes = KC * (MC + MR) * bytes;
  w->b_bytes = (KC * (NC + NR) > t->kc ? KC * (NC + NR) : t->kc) * bytes;
  w->c_bytes = (t->mc * (t->nc < NC ? t->nc : NC) > longest ? t->mc * (t->nc < NC ? t->nc : NC) : longest) * bytes;
  w->a = eval_take(ctx, w->a_bytes);
  w->b = eval_take(ctx, w->b_bytes);
  w->c = eval_take(ctx, w->c_bytes);
  return whole && w->a && w->b && w->c;
}

static void run_batches(const eval_view *lhs, const eval_view *rhs, const eval_view *out, const tables *t, const work *w) {
  side a = {lhs->buffer->data, lhs->dtype, t->m, t->k_lhs, 0}, b = {rhs->buffer->data, rhs->dtype, t->n, t->k_rhs, 0};
  bool f32 = lhs->dtype == SNT_F32 && rhs->dtype == SNT_F32;
  for (uint64_t g = 0; g < t->batch; g++) {
    a.base = lhs->offset + t->batch_lhs[g];
    b.base = rhs->offset + t->batch_rhs[g];
    int64_t base = t->batch_out[g];
    void *to = out->buffer->data;
    target rows = {to, out->dtype, t->out_m, base + (t->nc ? t->out_n[0] : 0)},
           columns = {to, out->dtype, t->out_n, base + (t->mc ? t->out_m[0] : 0)};
    if (f32 && t->nc == 1) product_vector(&a, &b, t, w, t->mc, &rows);
    else if (f32 && t->mc == 1) product_vector(&b, &a, t, w, t->nc, &columns);
    else if (lhs->dtype == SNT_F64) product_f64(&a, &b, t, w, out->dtype, to, base);
    else if (ir_dtypes[lhs->dtype].is_float) product_f32(&a, &b, t, w, out->dtype, to, base);
    else product_int(&a, &b, t, w, out->dtype, to, base);
  }
}

snt_result fast_contract(eval_ctx *ctx, uint32_t node, eval_view *out) {
  const eval_view *lhs = &ctx->values[ir_arg(ctx->g, node, 0)], *rhs = &ctx->values[ir_arg(ctx->g, node, 1)];
  eval_labels labels;
  tables t;
  work w;
  SNT_TRY(eval_type_of(ctx, node, out));
  eval_find_labels(ctx, node, lhs, rhs, out, &labels);
  SNT_TRY(eval_new(ctx, out, false));
  size_t bytes = fast_class_of(lhs->dtype) == FAST_F32 ? sizeof(float) : sizeof(double);
  bool open = open_tables(ctx, &labels, bytes, &t, &w);
  w.tile = ir_attr_flag(ctx->g, node, IR_ATTR_packed) ? tile_words : tile_int;
  if (open) run_batches(lhs, rhs, out, &t, &w);
  close_tables(ctx, &t, &w);
  return open ? SNT_OK : eval_fail(ctx, node, SNT_E_HOST_MEM, "out of memory");
}
