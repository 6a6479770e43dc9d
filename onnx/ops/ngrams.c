/* TfIdfVectorizer: how often each n-gram of a pool of whole numbers stands in a row, with gaps of equal length or without. */
#include "onnx/ops.h"

typedef struct ngrams {
  const int64_t *pool;   /* first the 1-grams, then the pairs .. */
  const int64_t *starts; /* where those of each length begin */
  uint32_t pool_count, lengths, gaps;
  int64_t row; /* numbers in one */
} ngrams;

static uint32_t pool_end(const ngrams *p, uint32_t length) { return length < p->lengths ? (uint32_t)p->starts[length] : p->pool_count; }

/* [rows, n-grams of that length]: in how many places they stand, `gap` apart. */
static uint32_t count_apart(onnx_call *c, const ngrams *p, uint32_t x, uint32_t length, int64_t gap) {
  const uint32_t first = (uint32_t)p->starts[length - 1], count = (pool_end(p, length) - first) / length;
  const int64_t places = p->row - (int64_t)(length - 1) * gap;
  const ir_expr rows = onnx_type_of(c, x)->dims[0], dims[] = {rows, places, 1};
  double *values = ir_arena_take(onnx_arena(c), count * sizeof *values, 8);
  uint32_t all = 0;
  if (!values || places < 1) return onnx_fill(c, &(ir_tensor){.dtype = SNT_F32, .rank = 2, .dims = {rows, count}}, 0);
  for (uint32_t k = 0; k < length; k++) {
    for (uint32_t i = 0; i < count; i++) values[i] = (double)p->pool[first + i * length + k];
    const uint32_t row = onnx_reshape(c, onnx_slice(c, x, 1, k * gap, places, 1), 3, dims);
    const uint32_t wanted = onnx_data(c, &(ir_tensor){.dtype = onnx_type_of(c, x)->dtype, .rank = 3, .dims = {1, 1, count}}, values);
    const uint32_t met = row && wanted ? onnx_2(c, IR_OP_eq, row, wanted) : 0;
    all = k && all && met ? onnx_2(c, IR_OP_and, all, met) : met;
  }
  return all ? onnx_reduce(c, IR_OP_reduce_sum, onnx_cast(c, all, SNT_F32), 1u << 1, false) : 0;
}

/* A number alone has no gaps: it is counted once. */
static uint32_t count_length(onnx_call *c, const ngrams *p, uint32_t x, uint32_t length) {
  uint32_t sum = count_apart(c, p, x, length, 1);
  for (int64_t gap = 2; length > 1 && sum && gap <= (int64_t)p->gaps + 1; gap++)
    sum = onnx_2(c, IR_OP_add, sum, count_apart(c, p, x, length, gap));
  return sum;
}

static bool read_pool(onnx_call *c, ngrams *p) {
  const onnx_attr *pool = onnx_find_attr(c, "pool_int64s"), *starts = onnx_find_attr(c, "ngram_counts");
  if (onnx_find_attr(c, "pool_strings")) return onnx_refuse(c, "a pool of strings");
  if (!pool || pool->kind != ONNX_INTS || !starts || starts->kind != ONNX_INTS)
    return onnx_refuse(c, "pool_int64s and ngram_counts must be given");
  *p = (ngrams){pool->ints.at, starts->ints.at, pool->ints.count, starts->ints.count, 0, 0};
  for (uint32_t n = 1; n <= p->lengths; n++) {
    const int64_t first = p->starts[n - 1], end = n < p->lengths ? p->starts[n] : (int64_t)p->pool_count;
    if (first < 0 || end < first || end > (int64_t)p->pool_count || (end - first) % n)
      return onnx_refuse(c, "ngram_counts does not divide the pool");
  }
  return true;
}

/* The n-grams' numbers at their places of the result: the last column of `counts`, zeros, is for places that none has. Null after refusing. */
static uint32_t put_in_place(onnx_call *c, uint32_t counts, uint32_t count, const double *column_of, const onnx_attr *weights) {
  const onnx_attr *places = onnx_find_attr(c, "ngram_indexes");
  const char *mode = onnx_text(c, "mode", "TF");
  int64_t width = 0;
  if (!places || places->kind != ONNX_INTS || places->ints.count == 0) return onnx_refuse(c, "ngram_indexes must be given"), 0;
  for (uint32_t i = 0; i < places->ints.count; i++) {
    if (places->ints.at[i] < 0 || places->ints.at[i] >= 1 << 24) return onnx_refuse(c, "ngram_indexes[%u] is outside", i), 0;
    if (places->ints.at[i] >= width) width = places->ints.at[i] + 1;
  }
  double *from = ir_arena_take(onnx_arena(c), (size_t)width * 2 * sizeof *from, 8), *scale = from + width;
  if (!from) return 0;
  for (int64_t i = 0; i < width; i++) from[i] = count, scale[i] = 1;
  for (uint32_t i = 0; i < places->ints.count; i++) {
    const int64_t at = places->ints.at[i];
    if (from[at] < count) return onnx_refuse(c, "two n-grams at place %lld of the result", (long long)at), 0;
    from[at] = column_of[i];
    if (weights) scale[at] = (double)weights->floats.at[i];
  }
  uint32_t y = onnx_gather(c, counts, onnx_data(c, &(ir_tensor){.dtype = SNT_I32, .rank = 1, .dims = {width}}, from), 1);
  if (!strcmp(mode, "IDF")) y = y ? onnx_cast(c, onnx_2n(c, IR_OP_gt, y, 0), SNT_F32) : 0;
  else if (strcmp(mode, "TF") != 0 && strcmp(mode, "TFIDF") != 0) return onnx_refuse(c, "mode %.20s", mode), 0;
  if (!strcmp(mode, "TF") || !weights || !y) return y;
  return onnx_2(c, IR_OP_mul, y, onnx_data(c, &(ir_tensor){.dtype = SNT_F32, .rank = 2, .dims = {1, width}}, scale));
}

bool onnx_op_ngrams(onnx_call *c) {
  const int64_t least = onnx_int(c, "min_gram_length", 1), most = onnx_int(c, "max_gram_length", 1),
                gaps = onnx_int(c, "max_skip_count", 0);
  const onnx_attr *weights = onnx_find_attr(c, "weights"), *places = onnx_find_attr(c, "ngram_indexes");
  uint32_t x = onnx_in(c, 0), parts[SNT_MAX_RANK + 1], count = 0, columns = 0, grams = 0;
  ngrams p;
  if (!x || !read_pool(c, &p)) return false;
  const ir_tensor type = *onnx_type_of(c, x);
  if (type.rank < 1 || type.rank > 2) return onnx_refuse(c, "rows of rank %u", type.rank);
  const ir_expr rows = type.rank == 2 ? type.dims[0] : 1, flat[] = {rows, type.dims[type.rank - 1]};
  if (!expr_is_const(c->g->pool, flat[1], &p.row)) return onnx_refuse(c, "the length of a row must be fixed");
  if (gaps < 0 || gaps > 64 || least < 1 || most < least)
    return onnx_refuse(c, "n-grams of %lld to %lld, %lld left out between", (long long)least, (long long)most, (long long)gaps);
  for (uint32_t n = 1; n <= p.lengths; n++) grams += (pool_end(&p, n) - (uint32_t)p.starts[n - 1]) / n;
  if (!places || places->kind != ONNX_INTS || places->ints.count != grams ||
      (weights && (weights->kind != ONNX_FLOATS || weights->floats.count != grams)))
    return onnx_refuse(c, "ngram_indexes and weights need a value for each of %u n-grams", grams);
  double *column_of = ir_arena_take(onnx_arena(c), (grams + 1u) * sizeof *column_of, 8);
  if (!column_of) return false;
  p.gaps = (uint32_t)gaps, grams = 0;
  x = onnx_reshape(c, x, 2, flat);
  for (uint32_t n = 1; n <= p.lengths; n++) {
    const uint32_t here = (pool_end(&p, n) - (uint32_t)p.starts[n - 1]) / n;
    const bool taken = here && n >= least && n <= most;
    for (uint32_t i = 0; i < here; i++) column_of[grams++] = taken ? (double)columns++ : -1.0;
    if (taken && count == SNT_MAX_RANK) return onnx_refuse(c, "n-grams of more than %u lengths", SNT_MAX_RANK);
    if (taken && !(parts[count++] = count_length(c, &p, x, n))) return false;
  }
  for (uint32_t i = 0; i < grams; i++)
    if (column_of[i] < 0) column_of[i] = columns;
  parts[count++] = onnx_fill(c, &(ir_tensor){.dtype = SNT_F32, .rank = 2, .dims = {rows, 1}}, 0);
  const uint32_t y = put_in_place(c, onnx_concat(c, 1, count, parts), columns, column_of, weights);
  return y && onnx_out(c, 0, type.rank == 2 ? y : onnx_flat(c, y));
}
