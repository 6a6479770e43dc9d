/* Products of ONNX Runtime's own domain: those with an activation behind them, and those by weights of a few bits. */
#include "onnx/import_private.h"
#include "onnx/ops.h"

/* ---- activations behind a product: by name, as text of the graph with the numbers that were given ---- */
typedef struct activation {
  const char *name, *call;
  const char *numbers[2]; /* parameters of the call, in the order of the attributes */
} activation;

static const activation activations[] = {
    {"Relu", "relu", {0}},
    {"Sigmoid", "sigmoid", {0}},
    {"Tanh", "tanh", {0}},
    {"Softplus", "softplus", {0}},
    {"Softsign", "softsign", {0}},
    {"Gelu", "gelu", {0}},
    {"HardSwish", "hardswish", {0}},
    {"LeakyRelu", "leaky_relu", {"alpha"}},
    {"Elu", "elu", {"alpha"}},
    {"Celu", "celu", {"alpha"}},
    {"ThresholdedRelu", "thresholded_relu", {"alpha"}},
    {"HardSigmoid", "hardsigmoid", {"alpha", "beta"}},
    {"Clip", "clip", {"low", "high"}},
};

/* activation_params of convolutions, activation_alpha and activation_beta of matrix products; `given` has the attributes that are there. */
static void activation_numbers(onnx_call *c, double *values, bool *given) {
  static const char *const names[] = {"activation_alpha", "activation_beta"};
  const onnx_attr *all = onnx_find_attr(c, "activation_params");
  for (uint32_t i = 0; i < 2; i++) {
    given[i] = all ? i < all->floats.count : onnx_find_attr(c, names[i]) != NULL;
    values[i] = !given[i] ? 0 : all ? (double)all->floats.at[i] : onnx_float(c, names[i], 0);
  }
}

/* y behind the node's activation; y itself where it names none. */
static uint32_t activated(onnx_call *c, uint32_t y) {
  const char *name = onnx_text(c, "activation", "");
  double values[2];
  bool given[2];
  ir_text text;
  uint32_t kind = 0;
  activation_numbers(c, values, given);
  onnx_ignore(c, "activation_gamma"), onnx_ignore(c, "activation_axis"); /* of no activation here */
  if (!y || !name[0]) return y;
  while (kind < IR_COUNT(activations) && strcmp(activations[kind].name, name) != 0) kind++;
  if (kind == IR_COUNT(activations)) return onnx_refuse(c, "activation %.40s", name), 0;
  ir_text_init(&text, onnx_arena(c));
  ir_text_format(&text, "%s %%%u", activations[kind].call, y);
  for (uint32_t i = 0; i < 2; i++)
    if (activations[kind].numbers[i] && given[i]) ir_text_format(&text, ", %s=%a", activations[kind].numbers[i], values[i]);
  return text.failed ? 0 : onnx_add(c, "%s", text.at);
}

/* ---- matrix products ---- */
/* [d0, batch.., r, c] as [batch.., d0, c], r and c being the last two: the first axis is the matrix's rows. */
static uint32_t batches_first(onnx_call *c, uint32_t x) {
  uint32_t perm[SNT_MAX_RANK];
  const uint32_t rank = onnx_type_of(c, x)->rank;
  for (uint32_t i = 0; i < rank; i++) perm[i] = i + 2 < rank ? i + 1 : i + 2 == rank ? 0 : i;
  return rank < 3 ? x : onnx_transpose(c, x, perm);
}

bool onnx_op_fused_matmul(onnx_call *c) {
  const double alpha = onnx_float(c, "alpha", 1);
  uint32_t a = onnx_in(c, 0), b = onnx_in(c, 1);
  if (!a || !b) return false;
  /* vectors are not turned */
  const bool left = onnx_int(c, "transA", 0) && onnx_type_of(c, a)->rank > 1,
             right = onnx_int(c, "transB", 0) && onnx_type_of(c, b)->rank > 1;
  if (onnx_int(c, "transBatchA", 0)) a = batches_first(c, a);
  if (onnx_int(c, "transBatchB", 0)) b = batches_first(c, b);
  if (!a || !b) return false;
  uint32_t y = onnx_add(c, "matmul %%%u, %%%u%s%s", a, b, left ? ", transpose_a" : "", right ? ", transpose_b" : "");
  if (alpha != 1) y = onnx_2n(c, IR_OP_mul, y, alpha);
  return onnx_out(c, 0, activated(c, y));
}

bool onnx_op_fused_gemm(onnx_call *c) { return onnx_out(c, 0, activated(c, onnx_gemm(c))); }

bool onnx_op_gemm_fast_gelu(onnx_call *c) {
  const uint32_t a = onnx_in(c, 0), b = onnx_in(c, 1), bias = onnx_in(c, 2);
  uint32_t y = a && b ? onnx_add(c, "matmul %%%u, %%%u", a, b) : 0;
  if (onnx_has(c, 2)) y = onnx_2(c, IR_OP_add, y, bias);
  return y && onnx_out(c, 0, onnx_add(c, "gelu_tanh %%%u", y));
}

/* ---- convolutions ---- */
/* Operand 3 is added to the convolution before the activation. */
bool onnx_op_fused_conv(onnx_call *c) {
  const bool last = !strncmp(c->node->op, "Nhwc", 4);
  const uint32_t x = onnx_in(c, 0), sum = onnx_in(c, 3);
  uint32_t y = onnx_channels_back(c, onnx_conv(c, onnx_channels_second(c, x, last)), last);
  if (onnx_has(c, 3)) y = onnx_2(c, IR_OP_add, y, sum);
  return onnx_out(c, 0, activated(c, y));
}

/* ---- weights of a few bits ---- */
/* u8 [.., n] as the numbers of `bits` bits in it, the lowest first: u8 [.., n * 8 / bits]. */
static uint32_t unpacked(onnx_call *c, uint32_t x, int64_t bits) {
  uint32_t parts[8];
  const uint32_t count = (uint32_t)(8 / bits);
  if (!x || bits == 8) return x;
  ir_tensor type = *onnx_type_of(c, x);
  const uint32_t last = type.rank;
  if (type.rank == 0 || type.rank == SNT_MAX_RANK) return onnx_refuse(c, "packed numbers of rank %u", type.rank), 0;
  type.dims[type.rank++] = 1;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t moved = i ? onnx_2n(c, IR_OP_shr, x, (double)(bits * i)) : x;
    /* the uppermost are alone behind their shift */
    const uint32_t one = i + 1 == count ? moved : onnx_2n(c, IR_OP_and, moved, (double)((1 << bits) - 1));
    parts[i] = onnx_reshape(c, one, type.rank, type.dims);
  }
  const uint32_t all = onnx_concat(c, last, count, parts);
  type.rank--, type.dims[last - 1] = expr_mul(c->g->pool, type.dims[last - 1], count);
  return onnx_reshape(c, all, type.rank, type.dims);
}

typedef struct blocks {
  int64_t rows, columns, size, bits; /* of the weights [rows, columns]; a block is along a row */
  int64_t count;                     /* of blocks of a row */
  int32_t dtype;                     /* in which is computed: of the scales, or f32 beside rounded rows */
} blocks;

/* A factor or zero of each block, [rows, count]. */
static uint32_t of_blocks(onnx_call *c, uint32_t x, const blocks *b) {
  const ir_expr dims[] = {b->rows, b->count};
  return x ? onnx_reshape(c, x, 2, dims) : 0;
}

/* Zeros of blocks: none is the middle, u8 is packed as the weights are with rows of whole bytes, others are as they are. */
static uint32_t zeros_of(onnx_call *c, uint32_t i, const blocks *b) {
  const uint32_t given = onnx_in(c, i);
  if (!onnx_has(c, i)) return onnx_scalar(c, b->dtype, (double)(1 << (b->bits - 1)));
  if (!given || onnx_type_of(c, given)->dtype != SNT_U8) return of_blocks(c, onnx_cast(c, given, b->dtype), b);
  const ir_expr bytes[] = {b->rows, (b->count * b->bits + 7) / 8};
  const uint32_t all = unpacked(c, onnx_reshape(c, given, 2, bytes), b->bits);
  return of_blocks(c, onnx_cast(c, onnx_slice(c, all, 1, 0, b->count, 1), b->dtype), b);
}

/* A number of each block for each of its weights: [rows, count] as [rows, count, 1]. */
static uint32_t beside(onnx_call *c, uint32_t x) {
  if (!x || onnx_type_of(c, x)->rank == 0) return x;
  const ir_tensor type = *onnx_type_of(c, x);
  const ir_expr dims[] = {type.dims[0], type.dims[1], 1};
  return onnx_reshape(c, x, 3, dims);
}

/* A number of each block by the group of each column: [rows, columns]. */
static uint32_t grouped(onnx_call *c, uint32_t x, uint32_t groups) {
  return x && onnx_type_of(c, x)->rank ? onnx_gather(c, x, groups, 1) : x;
}

/* (q - zero) scale, [rows, columns]. Columns may be in groups by index (g_idx) instead of one behind the other. */
static uint32_t weights_of(onnx_call *c, const blocks *b, uint32_t packed, uint32_t scale, uint32_t zero, uint32_t groups) {
  const ir_expr open[] = {b->rows, b->count, b->size}, whole[] = {b->rows, b->count * b->size};
  uint32_t q = onnx_cast(c, onnx_reshape(c, unpacked(c, packed, b->bits), 3, open), b->dtype);
  if (!groups) q = onnx_2(c, IR_OP_mul, onnx_2(c, IR_OP_sub, q, beside(c, zero)), beside(c, scale));
  q = onnx_reshape(c, q, 2, whole);
  if (b->count * b->size != b->columns) q = onnx_slice(c, q, 1, 0, b->columns, 1);
  if (!groups) return q;
  return onnx_2(c, IR_OP_mul, onnx_2(c, IR_OP_sub, q, grouped(c, zero, groups)), grouped(c, scale, groups));
}

static bool read_blocks(onnx_call *c, blocks *b) {
  b->rows = onnx_int(c, "N", 0), b->columns = onnx_int(c, "K", 0), b->size = onnx_int(c, "block_size", 0), b->bits = onnx_int(c, "bits", 4);
  if (b->rows < 1 || b->columns < 1 || b->rows > INT32_MAX || b->columns > INT32_MAX)
    return onnx_refuse(c, "N %lld, K %lld", (long long)b->rows, (long long)b->columns);
  if (b->size < 16 || (b->size & (b->size - 1)) || b->size > INT32_MAX) return onnx_refuse(c, "block_size %lld", (long long)b->size);
  if (b->bits != 2 && b->bits != 4 && b->bits != 8) return onnx_refuse(c, "bits %lld; 2, 4 and 8 are supported", (long long)b->bits);
  b->count = (b->columns + b->size - 1) / b->size;
  return true;
}

/* Whether the model lets rows be rounded to 8 bits, and the caller does: the level is the least that is asked for. Not beside what has no blocks of whole
   codes: there ONNX Runtime does not round either. */
static bool rounds_rows(onnx_call *c) {
  const bool allowed = onnx_int(c, "accuracy_level", 0) == 4, wished = c->im->info && c->im->info->flags & SNT_ONNX_ACCURACY_LEVEL;
  const uint32_t zeros = onnx_in(c, 3);
  return allowed && wished && !onnx_has(c, 4) && (!zeros || onnx_type_of(c, zeros)->dtype == SNT_U8);
}

/* The rows x as codes of i8 times a scale a block, the greatest of the block being 127. The scale is never so small that its
   reciprocal is no number. */
static uint32_t rounded_rows(onnx_call *c, uint32_t x, const blocks *b) {
  const double least = 0x1p-119;
  if (!x || !onnx_type_of(c, x)->rank) return x;
  if (onnx_type_of(c, x)->rank == SNT_MAX_RANK) return onnx_refuse(c, "blocks of rows of rank %u", SNT_MAX_RANK), 0;
  const int64_t more = b->count * b->size - b->columns;
  ir_tensor open = *onnx_type_of(c, x), whole = open;
  const uint32_t last = open.rank - 1u;
  open.dims[last] = b->count, open.dims[open.rank++] = b->size, whole.dims[last] = b->count * b->size;
  ir_text high;
  ir_text_init(&high, onnx_arena(c));
  for (uint32_t i = 0; i < last; i++) ir_text_add(&high, "0,");
  x = onnx_cast(c, x, b->dtype);
  if (more) x = onnx_add(c, "pad %%%u, high=[%s%lld]", x, high.at, (long long)more);
  x = onnx_reshape(c, x, open.rank, open.dims);
  const uint32_t size = onnx_reduce(c, IR_OP_reduce_max, onnx_1(c, IR_OP_abs, x), 1u << (last + 1), true);
  const uint32_t most = onnx_2n(c, IR_OP_max, size, least);
  const uint32_t codes = onnx_cast(
      c, onnx_1(c, IR_OP_round, onnx_2(c, IR_OP_mul, x, onnx_2(c, IR_OP_div, onnx_scalar(c, b->dtype, 127), most))), SNT_I8);
  x = onnx_2(c, IR_OP_mul, onnx_cast(c, codes, b->dtype), onnx_2n(c, IR_OP_div, most, 127));
  x = onnx_reshape(c, x, whole.rank, whole.dims);
  return more ? onnx_slice(c, x, last, 0, b->columns, 1) : x;
}

bool onnx_op_matmul_bits(onnx_call *c) {
  const uint32_t packed = onnx_in(c, 1), scale = onnx_in(c, 2), groups = onnx_in(c, 4);
  const bool rounds = rounds_rows(c);
  uint32_t x = onnx_in(c, 0), bias = onnx_in(c, 5);
  blocks b;
  if (onnx_int(c, "weight_prepacked", 0)) return onnx_refuse(c, "weights packed for one vendor's devices");
  if (!x || !packed || !scale || !read_blocks(c, &b) || (onnx_has(c, 4) && !groups) || (onnx_has(c, 5) && !bias)) return false;
  const int32_t dtype = onnx_type_of(c, scale)->dtype;
  b.dtype = rounds ? SNT_F32 : dtype;
  const ir_expr bytes[] = {b.rows, b.count, b.size * b.bits / 8};
  const uint32_t zeros = zeros_of(c, 3, &b), scales = of_blocks(c, onnx_cast(c, scale, b.dtype), &b);
  const uint32_t w = weights_of(c, &b, onnx_reshape(c, packed, 3, bytes), scales, zeros, groups);
  if (rounds) x = rounded_rows(c, x, &b);
  if (!w || !x) return false;
  if (bias) bias = onnx_cast(c, bias, b.dtype);
  return onnx_out(c, 0,
                  onnx_cast(c, bias ? onnx_add(c, "linear %%%u, %%%u, %%%u", x, w, bias) : onnx_add(c, "linear %%%u, %%%u", x, w), dtype));
}

/* Values of 4-bit codes: https://arxiv.org/abs/2305.14314, as bitsandbytes has them. */
static const double codes[2][16] = {
    {0, 0.0052083333, 0.6666666667, 1, 0.3333333333, 0.5, 0.1666666667, 0.25, 0, -0.0052083333, -0.6666666667, -1, -0.3333333333, -0.5,
     -0.1666666667, -0.25},
    {-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495,
     0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
     0.7229568362236023, 1},
};

/* Weights [N, K] in one row of blocks, the upper half of a byte first. */
bool onnx_op_matmul_coded(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0), packed = onnx_in(c, 1), scale = onnx_in(c, 2);
  const int64_t kind = onnx_int(c, "quant_type", 0);
  blocks b;
  onnx_ignore(c, "training_mode");
  if (!x || !packed || !scale || !read_blocks(c, &b)) return false;
  if (kind != 0 && kind != 1) return onnx_refuse(c, "quant_type %lld", (long long)kind);
  const int64_t all = b.rows * b.columns, blocks_of_all = (all + b.size - 1) / b.size;
  const ir_tensor sixteen = {.dtype = (uint8_t)onnx_type_of(c, scale)->dtype, .rank = 1, .dims = {16}};
  const ir_expr bytes[] = {(all + 1) / 2, 1}, pairs[] = {2 * ((all + 1) / 2)}, open[] = {blocks_of_all, b.size}, one[] = {blocks_of_all, 1},
                flat[] = {blocks_of_all * b.size}, shape[] = {b.rows, b.columns};
  const uint32_t row = onnx_reshape(c, packed, 2, bytes);
  const uint32_t halves[] = {onnx_2n(c, IR_OP_shr, row, 4), onnx_2n(c, IR_OP_and, row, 15)};
  uint32_t q = onnx_slice(c, onnx_reshape(c, onnx_concat(c, 1, 2, halves), 1, pairs), 0, 0, all, 1);
  if (all != flat[0]) q = onnx_add(c, "pad %%%u, high=[%lld]", q, (long long)(flat[0] - all));
  const uint32_t index = onnx_cast(c, q, SNT_I32);
  q = onnx_gather(c, onnx_data(c, &sixteen, codes[kind]), index, 0);
  q = onnx_2(c, IR_OP_mul, onnx_reshape(c, q, 2, open), onnx_reshape(c, scale, 2, one));
  const uint32_t w = onnx_reshape(c, onnx_slice(c, onnx_reshape(c, q, 1, flat), 0, 0, all, 1), 2, shape);
  const char *turned = onnx_int(c, "transB", 1) ? ", transpose_b" : "";
  return w && onnx_out(c, 0, onnx_add(c, "matmul %%%u, %%%u%s", x, w, turned));
}

/* ---- rows of a table in blocks ---- */
/* x along axis 0 or `axis` at operand 1, numbers from the end if negative: as Gather. */
static uint32_t gathered(onnx_call *c, uint32_t x, uint32_t axis, uint32_t index) {
  if (!x || !index) return 0;
  const uint32_t extent = onnx_extent(c, onnx_type_of(c, x)->dims[axis], onnx_type_of(c, index)->dtype);
  const uint32_t at = onnx_select(c, onnx_2n(c, IR_OP_lt, index, 0), onnx_2(c, IR_OP_add, index, extent), index);
  return onnx_gather(c, x, at, axis);
}

/* Zeros of the blocks that `scales` are of, packed as the table is. */
static uint32_t table_zeros(onnx_call *c, uint32_t axis, uint32_t index, uint32_t scales, bool packed, int64_t bits) {
  const uint32_t zero = gathered(c, onnx_in(c, 3), axis, index);
  if (!zero || !packed) return zero;
  const uint32_t last = onnx_type_of(c, scales)->rank - 1u;
  return onnx_slice(c, unpacked(c, zero, bits), last, 0, onnx_type_of(c, scales)->dims[last], 1);
}

bool onnx_op_gather_blocks(onnx_call *c) {
  const uint32_t table = onnx_in(c, 0), index = onnx_in(c, 1), scale = onnx_in(c, 2);
  const int64_t bits = onnx_int(c, "bits", 4), block = onnx_int(c, "block_size", 128);
  uint32_t axis, along;
  if (!table || !index || !scale) return false;
  const ir_tensor type = *onnx_type_of(c, table);
  if (!onnx_axis(c, onnx_int(c, "gather_axis", 0), type.rank, &axis) || !onnx_axis(c, onnx_int(c, "quantize_axis", 1), type.rank, &along))
    return false;
  if (ir_dtypes[type.dtype].is_float) return onnx_refuse(c, "a table of %s", ir_dtypes[type.dtype].name);
  if (bits != 2 && bits != 4 && bits != 8) return onnx_refuse(c, "bits %lld; 2, 4 and 8 are supported", (long long)bits);
  if (axis == along || block < 1)
    return onnx_refuse(c, "block_size %lld along axis %u, gathered along axis %u", (long long)block, along, axis);
  const bool packed = type.dtype == SNT_U8 && bits < 8;
  uint32_t q = gathered(c, packed ? table : onnx_cast(c, table, onnx_type_of(c, scale)->dtype), axis, index);
  if (packed) q = unpacked(c, q, bits);
  const uint32_t factors = gathered(c, scale, axis, index);
  if (!q || !factors) return false;
  if (along > axis) along += onnx_type_of(c, index)->rank - 1u;
  const ir_tensor rows = *onnx_type_of(c, q);
  const int32_t dtype = onnx_type_of(c, scale)->dtype;
  uint32_t zero = onnx_has(c, 3) ? onnx_cast(c, table_zeros(c, axis, index, factors, packed, bits), dtype)
                                 : onnx_scalar(c, dtype, type.dtype == SNT_U8 ? (double)(1 << (bits - 1)) : 0);
  if (onnx_has(c, 3)) zero = onnx_unblocked(c, zero, &rows, along, block);
  q = onnx_2(c, IR_OP_sub, onnx_cast(c, q, dtype), zero);
  return onnx_out(c, 0, onnx_2(c, IR_OP_mul, q, onnx_unblocked(c, factors, &rows, along, block)));
}

/* ---- distances between rows ---- */
bool onnx_op_distances(onnx_call *c) {
  const uint32_t a = onnx_in(c, 0), b = onnx_in(c, 1);
  const char *metric = onnx_text(c, "metric", "sqeuclidean");
  const bool root = !strcmp(metric, "euclidean");
  if (!root && strcmp(metric, "sqeuclidean") != 0) return onnx_refuse(c, "metric %.40s", metric);
  if (!a || !b || onnx_type_of(c, a)->rank != 2 || onnx_type_of(c, b)->rank != 2) return onnx_refuse(c, "matrices are needed");
  const ir_expr left[] = {onnx_type_of(c, a)->dims[0], 1, onnx_type_of(c, a)->dims[1]},
                right[] = {1, onnx_type_of(c, b)->dims[0], onnx_type_of(c, b)->dims[1]};
  const uint32_t apart = onnx_2(c, IR_OP_sub, onnx_reshape(c, a, 3, left), onnx_reshape(c, b, 3, right));
  const uint32_t sum = onnx_reduce(c, IR_OP_reduce_sum, onnx_2(c, IR_OP_mul, apart, apart), 4, false);
  return onnx_out(c, 0, root ? onnx_1(c, IR_OP_sqrt, sum) : sum);
}
