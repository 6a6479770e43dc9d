/* ONNX Runtime's GroupQueryAttention: heads of queries share keys, which are appended to a cache, turned by their places first if asked for.

   How many rows the present has: max(total_sequence_length, rows of the past) where that number is known when the model is loaded (a constant, or
   made of shapes). Where it is data of the run: as many as the past if the model declares its present so, which is a buffer that both share, else
   past and new rows together. A single batch whose present is past and new rows together uses all of them, so nothing of it depends on seqlens_k;
   otherwise rows max(seqlens_k + 1 - new, 0) on are the new ones' places, in either form. */
#include "onnx/import_private.h"
#include "onnx/ops_attention.h"

enum {
  QUERY,
  KEY,
  VALUE,
  PAST_KEY,
  PAST_VALUE,
  LENGTHS,
  TOTAL,
  COSINES,
  SINES,
  POSITIONS,
  ADDED,
  SINK,
  KEY_SCALE,
  VALUE_SCALE,
  QUERY_NORM,
  KEY_NORM,
  QUERY_LENGTHS
};

typedef struct group_attention {
  onnx_attention a; /* k and v: new rows, until they are put behind the cache */
  onnx_cache cache; /* before 0: all of the past is in use */
  uint32_t past_key, past_value;
  ir_expr batch;
  int64_t heads, pairs;
} group_attention;

static bool refuse_rest(onnx_call *c) {
  if (onnx_has(c, KEY_SCALE) || onnx_has(c, VALUE_SCALE) || strcmp(onnx_text(c, "k_quant_type", "NONE"), "NONE") != 0 ||
      strcmp(onnx_text(c, "v_quant_type", "NONE"), "NONE") != 0 || onnx_int(c, "kv_cache_bit_width", 0))
    return onnx_refuse(c, "a quantised cache (k_scale, v_scale)");
  if (onnx_int(c, "sliding_window_cache", 0)) return onnx_refuse(c, "sliding_window_cache: a cache that drops rows");
  if (onnx_has(c, QUERY_NORM) != onnx_has(c, KEY_NORM)) return onnx_refuse(c, "q_norm_weight and k_norm_weight go together");
  if (onnx_int(c, "qk_output", 0)) return onnx_refuse(c, "qk_output");
  return true;
}

/* ---- queries, keys, values ---- */
/* Heads beside each other: those of the queries, the keys, the values. */
static bool unpack(onnx_call *c, uint32_t x, group_attention *g) {
  expr_pool *pool = c->g->pool;
  const ir_expr width = expr_div(pool, onnx_type_of(c, x)->dims[2], g->heads + 2 * g->pairs);
  const int64_t counts[] = {g->heads, g->pairs, g->pairs};
  uint32_t *to[] = {&g->a.q, &g->a.k, &g->a.v};
  ir_expr start = 0;
  for (uint32_t i = 0; i < 3; i++) {
    const ir_expr size = expr_mul(pool, counts[i], width);
    *to[i] = onnx_split_heads(c, onnx_slice(c, x, 2, start, size, 1), counts[i]);
    start = expr_add(pool, start, size);
  }
  return g->a.q && g->a.k && g->a.v;
}

static bool take_heads(onnx_call *c, group_attention *g) {
  const uint32_t q = onnx_in(c, QUERY);
  g->heads = onnx_int(c, "num_heads", 0), g->pairs = onnx_int(c, "kv_num_heads", 0);
  if (!q) return false;
  if (g->heads < 1 || g->pairs < 1 || g->heads % g->pairs)
    return onnx_refuse(c, "num_heads %lld beside kv_num_heads %lld", (long long)g->heads, (long long)g->pairs);
  if (onnx_type_of(c, q)->rank != 3) return onnx_refuse(c, "a query of rank %u", onnx_type_of(c, q)->rank);
  g->batch = onnx_type_of(c, q)->dims[0];
  if (onnx_has(c, KEY) != onnx_has(c, VALUE)) return onnx_refuse(c, "key and value go together");
  if (!onnx_has(c, KEY)) return unpack(c, q, g);
  g->a.q = onnx_split_heads(c, q, g->heads);
  g->a.k = onnx_split_heads(c, onnx_in(c, KEY), g->pairs), g->a.v = onnx_split_heads(c, onnx_in(c, VALUE), g->pairs);
  return g->a.q && g->a.k && g->a.v;
}

static uint32_t normed(onnx_call *c, uint32_t x, uint32_t input, const char *name) {
  const double epsilon = onnx_float(c, name, onnx_float(c, "qk_norm_epsilon", 1e-6));
  const uint32_t weight = onnx_in(c, input);
  if (!onnx_has(c, input)) return x;
  return x && weight ? onnx_add(c, "rmsnorm %%%u, %%%u, epsilon=%a", x, weight, epsilon) : 0;
}

/* ---- the cache ---- */
/* Whether the model says that result `out` has as many rows as that extent. */
static bool declares_rows(onnx_call *c, uint32_t out, ir_expr rows) {
  const onnx_graph *graph = c->im->model->graph;
  ir_text text;
  ir_text_init(&text, c->im->temp);
  expr_print(c->g->pool, rows, &text);
  for (uint32_t i = 0; out < c->out_count && !text.failed && i < graph->outputs.count; i++) {
    const onnx_port *p = &graph->outputs.at[i];
    if (strcmp(p->name, c->out[out].name) != 0 || p->dims.count != 4) continue;
    const onnx_dim *d = &p->dims.at[2];
    return d->value >= 0 ? expr_int(c->g->pool, d->value) == rows : d->param && !strcmp(d->param, text.at);
  }
  return false;
}

static ir_expr present_rows(onnx_call *c, const onnx_cache *at) {
  const onnx_number *total = onnx_known(c, TOTAL);
  if (at->past == 0) return at->fresh;
  if (total && onnx_count(c->in[TOTAL]) == 1 && total->den == 1) return expr_max(c->g->pool, total->num, at->past);
  return declares_rows(c, 1, at->past) ? at->past : onnx_cache_keys(c, at);
}

/* Lists of one number a batch as i32 [batch, 1, 1, 1]. */
static uint32_t numbers_of(onnx_call *c, uint32_t input, ir_expr batch) {
  const ir_expr dims[] = {batch, 1, 1, 1};
  return onnx_reshape(c, onnx_cast(c, onnx_in(c, input), SNT_I32), 4, dims);
}

static bool read_places(onnx_call *c, group_attention *g) {
  onnx_cache *at = &g->cache;
  const bool whole = at->past == 0 || (g->batch == 1 && at->total == onnx_cache_keys(c, at) && !onnx_has(c, QUERY_LENGTHS));
  if (whole && (g->a.causal || g->batch == 1)) return true;
  at->after = onnx_2n(c, IR_OP_add, numbers_of(c, LENGTHS, g->batch), 1);
  if (at->past == 0) return at->after != 0;
  const uint32_t fresh = onnx_has(c, QUERY_LENGTHS) ? numbers_of(c, QUERY_LENGTHS, g->batch) : onnx_extent(c, at->fresh, SNT_I32);
  at->before = onnx_2n(c, IR_OP_max, onnx_2(c, IR_OP_sub, at->after, fresh), 0);
  return at->before != 0;
}

static bool take_cache(onnx_call *c, group_attention *g) {
  onnx_cache *at = &g->cache;
  at->fresh = onnx_type_of(c, g->a.k)->dims[2];
  if (onnx_has(c, PAST_KEY) != onnx_has(c, PAST_VALUE)) return onnx_refuse(c, "past_key and past_value go together");
  if (!onnx_has(c, LENGTHS) || !onnx_has(c, TOTAL)) return onnx_refuse(c, "seqlens_k and total_sequence_length are missing");
  if (onnx_has(c, PAST_KEY)) {
    if (onnx_in_type(c, PAST_KEY)->rank != 4) return onnx_refuse(c, "past_key of rank %u", onnx_in_type(c, PAST_KEY)->rank);
    at->past = onnx_in_type(c, PAST_KEY)->dims[2];
  }
  if (at->past != 0 && (!(g->past_key = onnx_in(c, PAST_KEY)) || !(g->past_value = onnx_in(c, PAST_VALUE)))) return false;
  if (at->past == 0 && onnx_has(c, QUERY_LENGTHS)) return onnx_refuse(c, "query_seqlens without a past");
  at->total = present_rows(c, at);
  return read_places(c, g);
}

/* ---- turning by place ---- */
/* Indices into the tables, [batch or 1, new rows]. For a first prompt only the first of the given ones counts. */
static uint32_t positions_of(onnx_call *c, const group_attention *g) {
  const ir_expr rows[] = {1, g->cache.fresh}, batches[] = {g->batch, 1}, one[] = {1, 1};
  const uint32_t given = onnx_in(c, POSITIONS), each = onnx_iota(c, SNT_I64, 2, rows, 1);
  if (onnx_has(c, POSITIONS) && g->cache.past != 0) return given;
  if (onnx_has(c, POSITIONS))
    return given
               ? onnx_2(c, IR_OP_add, each, onnx_reshape(c, onnx_slice(c, onnx_flat(c, onnx_cast(c, given, SNT_I64)), 0, 0, 1, 1), 2, one))
               : 0;
  if (!g->cache.before) return onnx_2(c, IR_OP_add, each, onnx_extent(c, g->cache.past, SNT_I64));
  return onnx_2(c, IR_OP_add, each, onnx_reshape(c, onnx_cast(c, g->cache.before, SNT_I64), 2, batches));
}

static bool turn_heads(onnx_call *c, group_attention *g) {
  const bool interleaved = onnx_int(c, "rotary_interleaved", 0) != 0;
  uint32_t table[2];
  if (!onnx_int(c, "do_rotary", 0)) return true;
  if (!onnx_has(c, COSINES) || !onnx_has(c, SINES)) return onnx_refuse(c, "do_rotary without cos_cache and sin_cache");
  const uint32_t positions = positions_of(c, g);
  for (uint32_t i = 0; i < 2; i++) table[i] = onnx_gather(c, onnx_in(c, COSINES + i), positions, 0);
  g->a.q = onnx_turn(c, g->a.q, table[0], table[1], interleaved);
  g->a.k = onnx_turn(c, g->a.k, table[0], table[1], interleaved);
  return g->a.q && g->a.k;
}

/* ---- the result ---- */
static uint32_t sink_of(onnx_call *c, const group_attention *g) {
  const ir_expr dims[] = {1, expr_int(c->g->pool, g->heads), 1, 1};
  return onnx_has(c, SINK) ? onnx_reshape(c, onnx_in(c, SINK), 4, dims) : onnx_scalar(c, SNT_F32, 0);
}

/* What is seen, as a mask; causal order and a window are left to the graph's operator where they are all there is. */
static bool put_masks(onnx_call *c, group_attention *g) {
  onnx_attention *a = &g->a;
  onnx_cache known = g->cache;
  uint32_t added = onnx_in(c, ADDED);
  const bool sinks = onnx_has(c, SINK) || onnx_int(c, "smooth_softmax", 0) == 1;
  if (onnx_has(c, ADDED) && !added) return false;
  if (added && onnx_type_of(c, added)->rank != 4) return onnx_refuse(c, "attention_bias of rank %u", onnx_type_of(c, added)->rank);
  if (added) added = known.before ? onnx_cache_columns(c, &known, added) : onnx_fit_scores(c, added, a->queries, a->keys);
  const bool own = !known.before && !known.after && !sinks;
  if (!known.before) known.before = onnx_extent(c, known.past, SNT_I32);
  const uint32_t seen = own ? 0 : onnx_cache_seen(c, &known, a->queries, a->causal, a->window);
  a->mask = onnx_cache_mask(c, seen, added);
  if (own) return !c->refused;
  a->causal = false, a->window = 0;
  return a->mask && (!sinks || onnx_add_sink(c, a, sink_of(c, g)));
}

static bool read_numbers(onnx_call *c, onnx_attention *a) {
  a->scale = onnx_float(c, "scale", 0), a->cap = onnx_float(c, "softcap", 0);
  a->window = onnx_int(c, "local_window_size", -1);
  a->causal = onnx_int(c, "causal", 1) != 0;
  return a->causal || a->window <= 0 || onnx_refuse(c, "local_window_size without causal");
}

static bool attend_group(onnx_call *c, group_attention *g) {
  onnx_attention *a = &g->a;
  const uint32_t key = onnx_cache_present(c, &g->cache, g->past_key, a->k), value = onnx_cache_present(c, &g->cache, g->past_value, a->v);
  a->k = onnx_with_past(c, g->past_key, a->k), a->v = onnx_with_past(c, g->past_value, a->v);
  if (!a->k || !a->v || !key || !value) return false;
  a->queries = onnx_type_of(c, a->q)->dims[2], a->keys = onnx_type_of(c, a->k)->dims[2], a->past = g->cache.past;
  return put_masks(c, g) && onnx_out(c, 0, onnx_join_heads(c, onnx_attend(c, a))) && onnx_out(c, 1, key) && onnx_out(c, 2, value);
}

bool onnx_op_group_query(onnx_call *c) {
  group_attention g = {0};
  if (!refuse_rest(c) || !read_numbers(c, &g.a) || !take_heads(c, &g)) return false;
  g.a.q = normed(c, g.a.q, QUERY_NORM, "q_norm_epsilon"), g.a.k = normed(c, g.a.k, KEY_NORM, "k_norm_epsilon");
  return g.a.q && g.a.k && take_cache(c, &g) && turn_heads(c, &g) && attend_group(c, &g);
}

/* ---- RotaryEmbedding ---- */
/* x [batch, heads, length, width] or [batch, length, heads * width]; one position is that of the first row, others are those of all. */
static uint32_t row_positions(onnx_call *c, uint32_t given, ir_expr rows) {
  const ir_expr dims[] = {1, rows}, one[] = {1, 1};
  if (!given || onnx_type_of(c, given)->rank == 2) return given;
  const ir_tensor type = *onnx_type_of(c, given);
  if (type.rank != 1 || type.dims[0] != 1) return onnx_refuse(c, "positions that are neither (1) nor (batch, length)"), 0;
  const uint32_t each = onnx_iota(c, onnx_type_of(c, given)->dtype, 2, dims, 1);
  return onnx_2(c, IR_OP_add, each, onnx_reshape(c, given, 2, one));
}

/* How many heads lie beside each other: given, or as many as the tables are wide for. */
static bool heads_of(onnx_call *c, const ir_tensor *x, const ir_tensor *table, int64_t *heads) {
  const int64_t given = onnx_int(c, "num_heads", 0), turned = onnx_int(c, "rotary_embedding_dim", 0);
  int64_t all = 0, half = 0;
  *heads = given;
  if (x->rank == 4 || given > 0) return true;
  if (turned > 0) return onnx_refuse(c, "rotary_embedding_dim without num_heads");
  if (!expr_is_const(c->g->pool, x->dims[2], &all) || !expr_is_const(c->g->pool, table->dims[1], &half) || half < 1 || all % (2 * half))
    return onnx_refuse(c, "num_heads is needed");
  *heads = all / (2 * half);
  return true;
}

bool onnx_op_rotary_cache(onnx_call *c) {
  const uint32_t given = onnx_in(c, 0), tables[] = {onnx_in(c, 2), onnx_in(c, 3)};
  uint32_t at[2];
  int64_t heads;
  if (!given || !tables[0] || !tables[1] || !onnx_in(c, 1)) return false;
  if (onnx_int(c, "is_packed_batching", 0)) return onnx_refuse(c, "is_packed_batching");
  if (onnx_float(c, "scale", 1) != 1) return onnx_refuse(c, "a scale other than 1");
  if (onnx_type_of(c, tables[0])->rank != 2) return onnx_refuse(c, "cos_cache of rank %u", onnx_type_of(c, tables[0])->rank);
  if (!heads_of(c, onnx_type_of(c, given), onnx_type_of(c, tables[0]), &heads)) return false;
  const uint32_t x = onnx_split_heads(c, given, heads);
  const uint32_t positions = x ? row_positions(c, onnx_in(c, 1), onnx_type_of(c, x)->dims[2]) : 0;
  for (uint32_t i = 0; i < 2; i++) at[i] = onnx_gather(c, tables[i], positions, 0);
  const uint32_t y = onnx_turn(c, x, at[0], at[1], onnx_int(c, "interleaved", 0) != 0);
  return onnx_out(c, 0, onnx_type_of(c, given)->rank == 3 ? onnx_join_heads(c, y) : y);
}
