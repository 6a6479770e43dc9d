/* ONNX Runtime's attention whose keys and values have as many heads as the queries: MultiHeadAttention, DecoderMaskedMultiHeadAttention, and
   Attention and QAttention, which multiply by the weights of all three themselves. In: queries, keys and values beside each other or packed.
   Out: the graph's own attention.
   What a padding mask leaves out gets mask_filter_value added to its score, so a row of nothing else is that of its scores; what comes after a
   query is left out for good. */
#include "onnx/ops_attention.h"

/* Which input is what; NONE: the operator has no such input. */
enum { NONE = 99 };
typedef struct ports {
  uint32_t bias, mask, added, past_key, past_value, shared, beams;
} ports;

static const ports multi_head = {.bias = 3, .mask = 4, .added = 5, .past_key = 6, .past_value = 7, .shared = 8, .beams = 9};
static const ports decoder = {.bias = 10, .mask = 3, .added = 4, .past_key = 5, .past_value = 6, .shared = 7, .beams = 9};

/* ---- masks ---- */
/* A mask over extents that the model names on their own, beside what they are made of here: taken to be equal. */
static uint32_t fit_axis(onnx_call *c, uint32_t x, uint32_t axis, ir_expr extent) {
  if (!x) return 0;
  const ir_expr is = onnx_type_of(c, x)->dims[axis];
  int64_t a, b;
  if (is == extent || is == 1) return x;
  if (expr_is_const(c->g->pool, is, &a) && expr_is_const(c->g->pool, extent, &b))
    return onnx_refuse(c, "a mask or bias of %lld, expected %lld", (long long)a, (long long)b), 0;
  return onnx_gather(c, x, onnx_iota(c, SNT_I64, 1, &extent, 0), axis);
}

uint32_t onnx_fit_scores(onnx_call *c, uint32_t x, ir_expr queries, ir_expr keys) {
  if (!x) return 0;
  const uint32_t rank = onnx_type_of(c, x)->rank;
  if (rank < 2) return onnx_refuse(c, "a mask or bias of rank %u", rank), 0;
  return fit_axis(c, fit_axis(c, x, rank - 1, keys), rank - 2, queries);
}

/* Part `part` of a list of batches one behind another, as [batch, 1, 1, 1]. */
static uint32_t of_batches(onnx_call *c, uint32_t list, int64_t part, ir_expr batch) {
  const ir_expr dims[] = {batch, 1, 1, 1};
  return onnx_reshape(c, onnx_slice(c, list, 0, expr_mul(c->g->pool, part, batch), batch, 1), 4, dims);
}

/* Lengths (batch), with starts behind them (2 batch), or with the places of packed rows, which nothing here needs (3 batch + 2). */
static uint32_t within_lengths(onnx_call *c, uint32_t mask, ir_expr batch, ir_expr keys) {
  const ir_expr is = onnx_type_of(c, mask)->dims[0], dims[] = {1, 1, 1, keys};
  expr_pool *pool = c->g->pool;
  const bool starts = is == expr_mul(pool, 2, batch);
  if (is != batch && !starts && is != expr_add(pool, expr_mul(pool, 3, batch), 2)) batch = is; /* another name of the batch */
  const uint32_t key = onnx_iota(c, SNT_I32, 4, dims, 3);
  const uint32_t ends = onnx_2(c, IR_OP_lt, key, of_batches(c, mask, 0, batch));
  return starts ? onnx_2(c, IR_OP_and, ends, onnx_2(c, IR_OP_ge, key, of_batches(c, mask, 1, batch))) : ends;
}

/* Columns of a mask or bias as attention reads the keys. */
static uint32_t to_keys(onnx_call *c, uint32_t x, const onnx_attention *a, const onnx_cache *cache) {
  return cache->before ? onnx_cache_columns(c, cache, x) : onnx_fit_scores(c, x, a->queries, a->keys);
}

/* [batch, keys] or [batch, queries, keys] of numbers above 0 where a key is seen. */
static uint32_t raw_mask(onnx_call *c, uint32_t mask, const onnx_attention *a, const onnx_cache *cache) {
  const ir_tensor type = *onnx_type_of(c, mask);
  const ir_expr dims[] = {type.dims[0], 1, type.rank == 3 ? type.dims[1] : 1, type.dims[type.rank - 1]};
  return onnx_2n(c, IR_OP_gt, to_keys(c, onnx_reshape(c, mask, 4, dims), a, cache), 0);
}

static uint32_t padding_mask(onnx_call *c, uint32_t i, const onnx_attention *a, const onnx_cache *cache) {
  const double value = onnx_float(c, "mask_filter_value", -10000);
  if (!onnx_has(c, i)) return 0;
  const uint32_t mask = onnx_cast(c, onnx_in(c, i), SNT_I32);
  if (!mask) return 0;
  const uint32_t rank = onnx_type_of(c, mask)->rank;
  if (rank < 1 || rank > 3) return onnx_refuse(c, "a mask of rank %u", rank), 0;
  if (rank == 1 && cache->before) return onnx_refuse(c, "a mask of rank 1 beside past_sequence_length"), 0;
  const uint32_t seen = rank == 1 ? within_lengths(c, mask, onnx_type_of(c, a->q)->dims[0], a->keys) : raw_mask(c, mask, a, cache);
  return onnx_select(c, seen, onnx_scalar(c, SNT_F32, 0), onnx_scalar(c, SNT_F32, value));
}

/* The padding mask and the bias of scores together. False after refusing. */
static bool take_masks(onnx_call *c, const ports *at, onnx_attention *a, const onnx_cache *cache) {
  const uint32_t mask = padding_mask(c, at->mask, a, cache);
  uint32_t added = onnx_in(c, at->added);
  if (added && onnx_type_of(c, added)->rank != 4) return onnx_refuse(c, "attention_bias of rank %u", onnx_type_of(c, added)->rank);
  if (added) added = to_keys(c, added, a, cache);
  if ((onnx_has(c, at->mask) && !mask) || (onnx_has(c, at->added) && !added)) return false;
  if (mask && added) added = onnx_2(c, IR_OP_add, onnx_cast(c, added, SNT_F32), mask);
  a->mask = added ? added : mask;
  if ((mask || onnx_has(c, at->added)) && !a->mask) return false;
  if (!cache->before) return true;
  a->mask = onnx_cache_mask(c, onnx_cache_seen(c, cache, a->queries, a->causal, 0), a->mask);
  a->causal = false;
  return a->mask != 0;
}

/* ---- what all of them end with ---- */
static bool read_numbers(onnx_call *c, onnx_attention *a, ir_expr past) {
  if (!a->q || !a->k || !a->v) return false;
  int64_t queries = 0;
  a->past = past, a->left = a->right = -1;
  a->queries = onnx_type_of(c, a->q)->dims[2], a->keys = onnx_type_of(c, a->k)->dims[2];
  a->scale = onnx_float(c, "scale", 0);
  a->causal = onnx_int(c, "unidirectional", 0) != 0;
  /* One query is the last of all: it sees every key, whatever their number. */
  if (expr_is_const(c->g->pool, a->queries, &queries) && queries == 1) a->causal = false;
  return true;
}

static bool wants(const onnx_call *c, uint32_t i) { return i < c->out_count && c->out[i].name[0]; }

/* With the scaled and masked scores as result 3 if somebody wants them. */
static bool put_result(onnx_call *c, const onnx_attention *a) {
  if (!wants(c, 3)) return onnx_out(c, 0, onnx_join_heads(c, onnx_attend(c, a)));
  uint32_t scores = 0;
  if (a->causal) return onnx_refuse(c, "scores as a result of unidirectional attention");
  const uint32_t y = onnx_attend_scores(c, a, a->mask, 0, 2, &scores);
  return onnx_out(c, 0, onnx_join_heads(c, y)) && onnx_out(c, 3, scores);
}

/* ---- MultiHeadAttention ---- */
/* Part `part` of x [batch, length, heads, parts, width] as [batch, heads, length, width] */
static uint32_t packed_part(onnx_call *c, uint32_t x, int64_t part) {
  static const uint32_t perm[] = {0, 2, 1, 3};
  const ir_tensor type = *onnx_type_of(c, x);
  const ir_expr dims[] = {type.dims[0], type.dims[1], type.dims[2], type.dims[4]};
  return onnx_transpose(c, onnx_reshape(c, onnx_slice(c, x, 3, part, 1, 1), 4, dims), perm);
}

static bool is_packed(onnx_call *c, uint32_t x, int64_t heads, int64_t parts) {
  const ir_tensor *type = onnx_type_of(c, x);
  return type->rank == 5 && type->dims[2] == expr_int(c->g->pool, heads) && type->dims[3] == parts;
}

/* A decoder's one row of all three beside each other, as wide as its bias. */
static bool unpack_row(onnx_call *c, uint32_t x, int64_t heads, onnx_attention *a) {
  const ir_tensor type = *onnx_type_of(c, x);
  const ir_expr third = expr_div(c->g->pool, type.dims[2], 3);
  uint32_t *to[] = {&a->q, &a->k, &a->v};
  for (uint32_t i = 0; i < 3; i++) *to[i] = onnx_split_heads(c, onnx_slice(c, x, 2, expr_mul(c->g->pool, i, third), third, 1), heads);
  return a->q && a->k && a->v;
}

static bool take_heads(onnx_call *c, int64_t heads, bool decodes, onnx_attention *a) {
  const uint32_t q = onnx_in(c, 0), k = onnx_in(c, 1), v = onnx_in(c, 2);
  if (!q || (onnx_has(c, 1) && !k) || (onnx_has(c, 2) && !v)) return false;
  if (heads < 1) return onnx_refuse(c, "num_heads %lld", (long long)heads);
  if (!k && is_packed(c, q, heads, 3)) {
    a->q = packed_part(c, q, 0), a->k = packed_part(c, q, 1), a->v = packed_part(c, q, 2);
    return a->q && a->k && a->v;
  }
  if (onnx_type_of(c, q)->rank != 3) return onnx_refuse(c, "a query of rank %u", onnx_type_of(c, q)->rank);
  if (!k) return decodes ? unpack_row(c, q, heads, a) : onnx_refuse(c, "no key beside a query of rank 3");
  a->q = onnx_split_heads(c, q, heads);
  if (!v && is_packed(c, k, heads, 2)) {
    a->k = packed_part(c, k, 0), a->v = packed_part(c, k, 1);
    return a->q && a->k && a->v;
  }
  if (!v) return onnx_refuse(c, "no value beside a key of rank %u", onnx_type_of(c, k)->rank);
  a->k = onnx_split_heads(c, k, heads), a->v = onnx_split_heads(c, v, heads);
  return a->q && a->k && a->v;
}

/* x [batch, heads, length, width] and the part of the bias that begins at *start. */
static uint32_t with_bias(onnx_call *c, uint32_t x, uint32_t bias, ir_expr *start) {
  if (!x || !bias) return x;
  const ir_tensor type = *onnx_type_of(c, x);
  const ir_expr dims[] = {type.dims[1], 1, type.dims[3]}, size = expr_mul(c->g->pool, type.dims[1], type.dims[3]), from = *start;
  *start = expr_add(c->g->pool, from, size);
  return onnx_2(c, IR_OP_add, x, onnx_reshape(c, onnx_slice(c, bias, 0, from, size, 1), 3, dims));
}

/* Keys and values that come as a cache had their bias when they were made. */
static bool add_biases(onnx_call *c, const ports *at, onnx_attention *a) {
  const uint32_t bias = onnx_in(c, at->bias);
  ir_expr start = 0;
  if (!onnx_has(c, at->bias)) return true;
  a->q = with_bias(c, a->q, bias, &start);
  if (onnx_has(c, 1) && onnx_in_type(c, 1)->rank == 4) return a->q != 0;
  a->k = with_bias(c, a->k, bias, &start), a->v = with_bias(c, a->v, bias, &start);
  return a->q && a->k && a->v;
}

/* One buffer for past and present, of which the first past_sequence_length rows are in use. The present keeps the others as they are, and all rows in
   their order, as ONNX Runtime's CPU does: what another of its devices makes of the order of such a buffer is its own. */
static bool share_buffer(onnx_call *c, const ports *at, onnx_cache *cache) {
  const ir_expr ones[] = {1, 1, 1, 1};
  cache->before = onnx_reshape(c, onnx_cast(c, onnx_in(c, at->shared), SNT_I32), 4, ones);
  cache->after = onnx_2(c, IR_OP_add, cache->before, onnx_extent(c, cache->fresh, SNT_I32));
  cache->total = cache->past, cache->keeps = true;
  return cache->after != 0;
}

/* The cache in front of keys and values; results 1 and 2 are what the model keeps of them. */
static bool take_past(onnx_call *c, const ports *at, bool shares, onnx_attention *a, onnx_cache *cache) {
  if (onnx_has(c, at->past_key) != onnx_has(c, at->past_value)) return onnx_refuse(c, "past_key and past_value go together");
  if (!onnx_has(c, at->past_key)) return onnx_out(c, 1, a->k) && onnx_out(c, 2, a->v);
  if (onnx_in_type(c, at->past_key)->rank != 4) return onnx_refuse(c, "past_key of rank %u", onnx_in_type(c, at->past_key)->rank);
  if (shares && !onnx_has(c, at->shared)) return onnx_refuse(c, "past_present_share_buffer without past_sequence_length");
  const uint32_t key = onnx_in(c, at->past_key), value = onnx_in(c, at->past_value);
  if (!key || !value) return false;
  cache->past = onnx_type_of(c, key)->dims[2], cache->fresh = onnx_type_of(c, a->k)->dims[2];
  if (shares && !share_buffer(c, at, cache)) return false;
  if (!onnx_out(c, 1, onnx_cache_present(c, cache, key, a->k)) || !onnx_out(c, 2, onnx_cache_present(c, cache, value, a->v))) return false;
  a->k = onnx_with_past(c, key, a->k), a->v = onnx_with_past(c, value, a->v);
  return a->k && a->v;
}

static bool attend_heads(onnx_call *c, const ports *at, bool decodes, bool shares) {
  onnx_attention a = {0};
  onnx_cache cache = {0};
  if (onnx_has(c, at->beams)) return onnx_refuse(c, "cache_indirection");
  if (!take_heads(c, onnx_int(c, "num_heads", 0), decodes, &a) || !add_biases(c, at, &a) || !take_past(c, at, shares, &a, &cache))
    return false;
  return read_numbers(c, &a, cache.past) && take_masks(c, at, &a, &cache) && put_result(c, &a);
}

bool onnx_op_multi_head(onnx_call *c) { return attend_heads(c, &multi_head, false, onnx_has(c, multi_head.shared)); }

/* One query, which sees all keys. */
bool onnx_op_decoder_multi_head(onnx_call *c) {
  double beams = 1;
  onnx_ignore(c, "output_qk"); /* the result's name says whether somebody wants it */
  if (onnx_has(c, 8) && (!onnx_in_number(c, 8, &beams) || beams != 1)) return onnx_refuse(c, "a beam_width other than 1");
  return attend_heads(c, &decoder, true, onnx_int(c, "past_present_share_buffer", 0) != 0);
}

/* ---- Attention ---- */
enum { STATES = 2 };

/* Input [batch, length, in] times weights [in, all of q, k and v], their bias added, as heads of these widths together. */
static bool project(onnx_call *c, uint32_t product, const ir_expr *widths, int64_t heads, onnx_attention *a) {
  uint32_t *to[] = {&a->q, &a->k, &a->v}, all = product;
  if (heads < 1) return onnx_refuse(c, "num_heads %lld", (long long)heads);
  if (onnx_has(c, 2)) all = onnx_2(c, IR_OP_add, all, onnx_in(c, 2));
  ir_expr start = 0;
  for (uint32_t i = 0; all && i < 3; i++) {
    *to[i] = onnx_split_heads(c, onnx_slice(c, all, 2, start, widths[i], 1), heads);
    start = expr_add(c->g->pool, start, widths[i]);
  }
  return a->q && a->k && a->v;
}

static bool read_widths(onnx_call *c, ir_expr *widths) {
  const onnx_list given = onnx_int_list(c, "qkv_hidden_sizes");
  const ir_tensor *weights = onnx_in_type(c, 1);
  if (!weights || weights->rank != 2) return onnx_refuse(c, "weights of rank %u", weights ? weights->rank : 0u);
  if (given.count != 0 && given.count != 3) return onnx_refuse(c, "%u qkv_hidden_sizes", given.count);
  for (uint32_t i = 0; i < 3; i++) widths[i] = given.count ? given.at[i] : expr_div(c->g->pool, weights->dims[1], 3);
  return true;
}

/* Keys (0) or values (1) of a state [2, batch, heads, length, width]. */
static uint32_t of_state(onnx_call *c, uint32_t state, int64_t which) {
  return state ? onnx_reshape(c, onnx_slice(c, state, 0, which, 1, 1), 4, onnx_type_of(c, state)->dims + 1) : 0;
}

static uint32_t joined_state(onnx_call *c, uint32_t keys, uint32_t values) {
  uint32_t parts[] = {keys, values};
  for (uint32_t i = 0; i < STATES; i++) {
    const ir_tensor type = *onnx_type_of(c, parts[i]);
    const ir_expr dims[] = {1, type.dims[0], type.dims[1], type.dims[2], type.dims[3]};
    parts[i] = onnx_reshape(c, parts[i], 5, dims);
  }
  return onnx_concat(c, 0, STATES, parts);
}

static bool refuse_rest(onnx_call *c, const ports *at) {
  if (onnx_int(c, "do_rotary", 0)) return onnx_refuse(c, "do_rotary");
  if (onnx_int(c, "past_present_share_buffer", 0) || onnx_has(c, at->shared))
    return onnx_refuse(c, "past_sequence_length: one buffer for past and present");
  return true;
}

static bool attend_state(onnx_call *c, const ports *at, onnx_attention *a) {
  const uint32_t state = onnx_in(c, at->past_key);
  ir_expr past = 0;
  if (onnx_has(c, at->past_key)) {
    if (!state || onnx_type_of(c, state)->rank != 5) return onnx_refuse(c, "a past of another rank than 5");
    past = onnx_type_of(c, state)->dims[3];
    a->k = onnx_with_past(c, of_state(c, state, 0), a->k), a->v = onnx_with_past(c, of_state(c, state, 1), a->v);
  }
  if (!read_numbers(c, a, past) || !take_masks(c, at, a, &(onnx_cache){0})) return false;
  if (!onnx_out(c, 0, onnx_join_heads(c, onnx_attend(c, a)))) return false;
  return !wants(c, 1) || onnx_out(c, 1, joined_state(c, a->k, a->v));
}

static bool attend_packed(onnx_call *c, const ports *at, uint32_t product) {
  onnx_attention a = {0};
  ir_expr widths[3];
  const int64_t heads = onnx_int(c, "num_heads", 0);
  return product && read_widths(c, widths) && project(c, product, widths, heads, &a) && attend_state(c, at, &a);
}

bool onnx_op_packed_attention(onnx_call *c) {
  static const ports at = {.mask = 3, .past_key = 4, .added = 5, .shared = 6};
  const uint32_t x = onnx_in(c, 0), weights = onnx_in(c, 1);
  onnx_ignore(c, "rotary_embedding_dim"); /* means something with do_rotary only */
  return x && weights && refuse_rest(c, &at) && attend_packed(c, &at, onnx_add(c, "matmul %%%u, %%%u", x, weights));
}

/* An operand of one number, or one a column; without it 0 of the type. */
static uint32_t by_column(onnx_call *c, uint32_t i, int32_t dtype) {
  if (!onnx_has(c, i)) return onnx_scalar(c, dtype, 0);
  const uint32_t node = onnx_in(c, i);
  const bool one = node && onnx_type_of(c, node)->rank == 1 && onnx_type_of(c, node)->dims[0] == 1;
  return one ? onnx_reshape(c, node, 0, NULL) : node;
}

/* The same with 8-bit input and weights, whose product is scaled back before the bias. */
bool onnx_op_quantised_attention(onnx_call *c) {
  static const ports at = {.mask = 5, .past_key = 8, .added = NONE, .shared = NONE};
  const uint32_t x = onnx_in(c, 0), weights = onnx_in(c, 1);
  if (!x || !weights || !refuse_rest(c, &at)) return false;
  const uint32_t zeros[] = {by_column(c, 6, onnx_type_of(c, x)->dtype), by_column(c, 7, onnx_type_of(c, weights)->dtype)};
  const uint32_t scale = onnx_2(c, IR_OP_mul, by_column(c, 3, SNT_F32), by_column(c, 4, SNT_F32));
  if (!zeros[0] || !zeros[1] || !scale) return false;
  const uint32_t product = onnx_add(c, "matmul_integer %%%u, %%%u, %%%u, %%%u", x, weights, zeros[0], zeros[1]);
  return attend_packed(c, &at, onnx_2(c, IR_OP_mul, onnx_cast(c, product, onnx_type_of(c, scale)->dtype), scale));
}
