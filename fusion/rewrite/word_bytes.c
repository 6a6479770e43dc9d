/* Words of fields beside vectors of codes of 8 bits (rows rounded block by block), where the device multiplies four bytes at once
   (caps.dot4). In: rows of constant fields less a whole zero, times factors, [n, blocks, bytes, fields], and vectors that are i8 times a
   scale a block. Out: of a few words of a block the sum of their fields times the codes, in i32 and exact, less the zero times the codes'
   own sum, from which it begins; then times the scales. A word's fields of the same number are four bytes, and the codes beside them are
   put together likewise where they are stored. A vector of floats is the sum of three such vectors, but for f32's own rounding. */
#include "fusion/rewrite/words_private.h"
#include "fusion/words.h"

enum { PRODUCTS = 8 /* of a sum: written out */ };

typedef struct rounded {
  words *w;
  uint32_t count, codes[WORDS_SLICES], scale[WORDS_SLICES]; /* i8; f32 of as many elements as there are blocks beside each vector */
  uint32_t bytes, zero;                                     /* the constant; a number or a value beside the words, 0: none */
  double number;                                            /* the zero, where it is one */
  int64_t words;                                            /* of a sum */
} rounded;

/* A value of each block, along the last axis but one. */
static bool is_of_blocks(const rounded *x, uint32_t node, uint32_t rank) {
  const ir_graph *g = x->w->r->to;
  uint32_t count = 0;
  const ir_expr *axes = ir_attr_ints(g, node, IR_ATTR_axes, &count);
  const ir_tensor *t = &ir_at(g, ir_arg(g, node, 0))->type;
  const ir_expr blocks = expr_mul(g->pool, x->w->vectors, x->w->from.dims[1]);
  for (uint32_t i = 0; i < count; i++)
    if ((i && axes[i] <= axes[i - 1]) || (axes[i] == rank - 1 && t->dims[i] != 1)) return false;
  return (count || (t->rank == rank && t->dims[rank - 1] == 1)) && ir_tensor_elements(g->pool, t) == blocks;
}

/* The product of codes and scales that the vectors are; 0: they are none. */
static uint32_t product_of(const ir_graph *g, uint32_t node, uint32_t *codes, uint32_t *scale) {
  while (ir_at(g, node)->op == IR_OP_reshape) node = ir_arg(g, node, 0);
  const bool product = ir_at(g, node)->op == IR_OP_mul && ir_at(g, node)->type.dtype == SNT_F32;
  for (uint32_t side = 0; product && side < 2; side++) {
    const uint32_t cast = ir_arg(g, node, side);
    *scale = ir_arg(g, node, 1 - side);
    if (ir_at(g, cast)->op != IR_OP_cast || ir_at(g, *scale)->op != IR_OP_broadcast) continue;
    *codes = ir_arg(g, cast, 0);
    if (ir_at(g, *codes)->type.dtype == SNT_I8) return node;
  }
  return 0;
}

bool words_are_codes(const rebuild *r, uint32_t vectors) {
  uint32_t codes, scale;
  return r->c->options->profile->caps.dot4 && product_of(r->to, vectors, &codes, &scale);
}

/* In the blocks of the rows. */
static bool read_codes(rounded *x, uint32_t vectors) {
  const ir_graph *g = x->w->r->to;
  const ir_tensor *from = &x->w->from;
  const uint32_t product = product_of(g, vectors, x->codes, x->scale);
  const ir_tensor *t = &ir_at(g, product)->type;
  if (from->rank != 4) return false;
  if (x->w->sliced) return true;
  if (!product || t->rank < 2 || t->dims[t->rank - 2] != from->dims[1]) return false;
  if (t->dims[t->rank - 1] != expr_mul(g->pool, from->dims[2], from->dims[3]) || !is_of_blocks(x, *x->scale, t->rank)) return false;
  return x->count = 1, *x->scale = ir_arg(g, *x->scale, 0), true;
}

/* What is taken off the fields: a whole number, or one of each block. */
static bool read_zero(rounded *x, uint32_t node) {
  const ir_graph *g = x->w->r->to;
  if (!words_are_whole(g, node)) return false;
  if (ir_is_scalar_const(g, node, &x->number)) return true;
  return ir_at(g, node)->op == IR_OP_broadcast && (x->zero = words_shared(x->w, node)) != 0;
}

static bool read_matrix(rounded *x, uint32_t node) {
  const ir_graph *g = x->w->r->to;
  if (ir_at(g, node)->op == IR_OP_sub && !read_zero(x, ir_arg(g, node, 1))) return false;
  if (ir_at(g, node)->op == IR_OP_sub) node = ir_arg(g, node, 0);
  return ir_at(g, node)->op == IR_OP_cast && (x->bytes = words_joined_bytes(x->w, ir_arg(g, node, 0))) != 0;
}

static uint32_t kept(rebuild *r, uint32_t node) {
  ir_add_contract(r->to, IR_KEEP, 1, &node);
  return node;
}

/* The codes as words beside each field of each word of a sum, [vectors, blocks, sums, words * fields]. */
static uint32_t words_of_codes(const rounded *x, uint32_t codes) {
  const words *w = x->w;
  const ir_expr apart[6] = {w->vectors, w->to.dims[1], w->to.dims[2], x->words, WORDS_BYTES, w->fields},
                fields_first[6] = {0, 1, 2, 3, 5, 4}, beside[4] = {w->vectors, w->to.dims[1], w->to.dims[2], x->words * w->fields};
  const uint32_t bytes = rebuild_transpose(w->r, rebuild_reshape(w->r, codes, 6, apart), 6, fields_first);
  return rebuild_reshape(w->r, rebuild_view(w->r, IR_OP_words, kept(w->r, bytes), 0, NULL), 4, beside);
}

/* The codes with the terms of a sum last: as they are where that is a block, so that it is summed where it is rounded. */
static uint32_t codes_of_sums(const rounded *x, uint32_t codes, int64_t *last) {
  const words *w = x->w;
  const ir_expr dims[4] = {w->vectors, w->to.dims[1], w->to.dims[2], x->words * WORDS_BYTES * w->fields};
  const bool apart = w->to.dims[2] != 1;
  *last = apart ? 3 : ir_at(w->r->to, codes)->type.rank - 1;
  return ir_add_cast(w->r->to, apart ? rebuild_reshape(w->r, codes, 4, dims) : codes, SNT_I32);
}

/* Less the zero times the sum of the codes: what the sums begin with. */
static uint32_t first_of_sums(const rounded *x, uint32_t codes) {
  words *w = x->w;
  ir_graph *g = w->r->to;
  const ir_expr beside[4] = {w->vectors, w->to.dims[1], w->to.dims[2], 1};
  int64_t last;
  if (!x->zero && x->number == 0) return ir_add_splat(g, SNT_I32, 0);
  const uint32_t terms = codes_of_sums(x, codes, &last);
  uint32_t sums = ir_add_axes(g, IR_OP_reduce_sum, terms, 1, &last, false);
  sums = ir_add2(g, IR_OP_mul, sums, ir_add_splat(g, SNT_I32, x->zero ? -1 : -x->number));
  const uint32_t element = words_element(w, rebuild_reshape(w->r, kept(w->r, sums), 4, beside), 0);
  return x->zero ? ir_add2(g, IR_OP_mul, ir_add_cast(g, x->zero, SNT_I32), element) : element;
}

static uint32_t field_of(const rounded *x, uint32_t packed, uint32_t word, uint32_t field) {
  words *w = x->w;
  ir_graph *g = w->r->to;
  const ir_tensor t = ir_at(g, packed)->type;
  const int64_t width = 8 / w->fields;
  ir_expr starts[SNT_MAX_RANK] = {0}, sizes[SNT_MAX_RANK], flat[4] = {t.dims[0], t.dims[1], t.dims[2], w->lanes};
  memcpy(sizes, t.dims, sizeof sizes);
  starts[3] = word, sizes[3] = 1;
  uint32_t value = words_for_vectors(w, rebuild_reshape(w->r, rebuild_slice(w->r, packed, t.rank, starts, sizes, NULL), 4, flat));
  if (width == 8) return value;
  if (field) value = ir_add2(g, IR_OP_shr, value, ir_add_splat(g, SNT_I32, (double)(field * width)));
  return ir_add2(g, IR_OP_and, value, ir_add_splat(g, SNT_I32, (double)(((1 << width) - 1) * 0x01010101)));
}

/* The scales beside the sums. */
static uint32_t scale_of(const rounded *x, uint32_t scale) {
  words *w = x->w;
  const ir_expr blocks[2] = {w->vectors, w->to.dims[1]}, axes[2] = {0, 1}, beside[4] = {w->vectors, w->to.dims[1], w->to.dims[2], 1};
  return words_element(w, rebuild_broadcast(w->r, rebuild_reshape(w->r, scale, 2, blocks), 2, axes, 4, beside), 0);
}

/* The sums of a few words times the codes, each times its scale. A field is taken once for all slices. */
static uint32_t sum_of(const rounded *x) {
  words *w = x->w;
  ir_graph *g = w->r->to;
  ir_tensor type = w->to;
  uint32_t codes[WORDS_SLICES], sums[WORDS_SLICES], total = 0;
  type.dtype = SNT_I32, type.dims[3] = x->words, type.dims[type.rank++] = w->lanes;
  const uint32_t packed = words_pack(w, x->bytes, &type);
  if (!packed) return 0;
  for (uint32_t i = 0; i < x->count; i++) codes[i] = words_of_codes(x, x->codes[i]), sums[i] = first_of_sums(x, x->codes[i]);
  for (uint32_t at = 0; at < x->words * w->fields; at++) {
    const uint32_t field = field_of(x, packed, at / (uint32_t)w->fields, at % (uint32_t)w->fields);
    for (uint32_t i = 0; i < x->count; i++) sums[i] = ir_add3(g, IR_OP_dot4, field, words_element(w, codes[i], at), sums[i]);
  }
  for (uint32_t i = 0; i < x->count; i++) {
    const uint32_t sum = ir_add_cast(g, sums[i], SNT_F32), scale = scale_of(x, x->scale[i]);
    total = total ? ir_add3(g, IR_OP_fma, sum, scale, total) : ir_add2(g, IR_OP_mul, sum, scale);
  }
  return total;
}

/* ---- a vector of floats in slices ---- */

static uint32_t beside_terms(rebuild *r, uint32_t blocks, const ir_expr dims[2]) {
  static const ir_expr axis = 0;
  return rebuild_broadcast(r, blocks, 1, &axis, 2, dims);
}

/* x = q1 s1 + q2 s2 + q3 s3 + rest (the scheme of Ozaki et al., Numerical Algorithms 59, 2012, block by block): s1 is the greatest of a block over 127, each
   scale 1/254 of the one before, and what codes leave is exact, so that the rest is at most 2^-23.96 of the greatest. LEAST keeps the scales and what
   is multiplied with normal. */
static void slice(rounded *x, uint32_t vector) {
  const double least = 0x1p-103;
  const int64_t last = 1;
  rebuild *r = x->w->r;
  ir_graph *g = r->to;
  const ir_expr dims[2] = {x->w->from.dims[1], expr_mul(g->pool, x->w->from.dims[2], x->w->from.dims[3])};
  uint32_t rest = rebuild_reshape(r, vector, 2, dims);
  const uint32_t size = ir_add_axes(g, IR_OP_reduce_max, ir_add1(g, IR_OP_abs, rest), 1, &last, false);
  const uint32_t most = ir_add2(g, IR_OP_max, size, ir_add_splat(g, SNT_F32, least));
  uint32_t scale = ir_add2(g, IR_OP_div, most, ir_add_splat(g, SNT_F32, 127)),
           by = ir_add2(g, IR_OP_div, ir_add_splat(g, SNT_F32, 127), most);
  for (x->count = 0; x->count < WORDS_SLICES; x->count++) {
    const uint32_t whole = ir_add1(g, IR_OP_round, ir_add2(g, IR_OP_mul, rest, beside_terms(r, by, dims)));
    x->codes[x->count] = ir_add_cast(g, whole, SNT_I8), x->scale[x->count] = scale;
    const uint32_t off = ir_add1(g, IR_OP_neg, ir_add_cast(g, x->codes[x->count], SNT_F32));
    rest = ir_add3(g, IR_OP_fma, off, beside_terms(r, scale, dims), rest);
    scale = ir_add2(g, IR_OP_mul, scale, ir_add_splat(g, SNT_F32, 1. / 254)), by = ir_add2(g, IR_OP_mul, by, ir_add_splat(g, SNT_F32, 254));
  }
}

uint32_t words_times_codes(words *w, uint32_t matrix, uint32_t vectors) {
  words own = *w;
  rounded x = {.w = &own, .words = PRODUCTS / own.fields};
  uint32_t factors[WORDS_FACTORS];
  int64_t count;
  if (!w->r->c->options->profile->caps.dot4 || !read_codes(&x, vectors)) return 0;
  if (!expr_is_const(w->r->to->pool, own.to.dims[2], &count)) return 0;
  while (count % x.words) x.words /= 2;
  own.to.dims[2] = count / x.words;
  const uint32_t factor_count = words_take_factors(&own, &matrix, factors);
  if (!read_matrix(&x, matrix)) return 0;
  if (own.sliced) slice(&x, vectors);
  uint32_t sum = sum_of(&x);
  if (!sum) return 0;
  for (uint32_t i = 0; i < factor_count; i++) sum = ir_add2(own.r->to, IR_OP_mul, sum, factors[i]);
  return *w = own, sum;
}
