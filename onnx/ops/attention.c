/* Attention (operator sets 23, 24 and 27) and rotary embedding. Attention is the graph's own where only its result is asked for; which keys a
   query may see beyond what that says, lengths of each batch and windows, is a mask. Where the scores are a result too they are computed here.
   A query without any key gives zeros, as the corrections of ONNX 1.23 say, and the scores' order is theirs: softcap, then the mask. */
#include "onnx/ops_attention.h"
#include <math.h>

typedef onnx_attention attention;

uint32_t onnx_split_heads(onnx_call *c, uint32_t x, int64_t heads) {
  static const uint32_t perm[] = {0, 2, 1, 3};
  if (!x || onnx_type_of(c, x)->rank == 4) return x;
  const ir_tensor type = *onnx_type_of(c, x);
  if (type.rank != 3 || heads < 1) return onnx_refuse(c, "q_num_heads and kv_num_heads are needed for rank 3"), 0;
  const ir_expr dims[] = {type.dims[0], type.dims[1], heads, expr_div(c->g->pool, type.dims[2], heads)};
  return onnx_transpose(c, onnx_reshape(c, x, 4, dims), perm);
}

uint32_t onnx_join_heads(onnx_call *c, uint32_t y) {
  static const uint32_t perm[] = {0, 2, 1, 3};
  if (!y) return 0;
  const ir_tensor type = *onnx_type_of(c, y);
  const ir_expr dims[] = {type.dims[0], type.dims[2], expr_mul(c->g->pool, type.dims[1], type.dims[3])};
  return onnx_reshape(c, onnx_transpose(c, y, perm), 3, dims);
}

uint32_t(onnx_with_past)(onnx_call *c, uint32_t past, uint32_t x) {
  const uint32_t parts[] = {past, x};
  return past ? onnx_concat(c, 2, 2, parts) : x;
}

/* ---- which keys ---- */
/* A mask that ends before the keys do leaves the others out. */
static uint32_t whole_mask(onnx_call *c, uint32_t mask, ir_expr keys) {
  if (!mask) return 0;
  ir_tensor type = *onnx_type_of(c, mask);
  if (type.rank == 0) return onnx_refuse(c, "a mask of rank 0"), 0;
  const uint32_t last = type.rank - 1u;
  const ir_expr missing = expr_sub(c->g->pool, keys, type.dims[last]);
  int64_t count;
  if (!expr_is_const(c->g->pool, missing, &count) || count <= 0 || type.dims[last] == 1) return mask;
  type.dims[last] = missing;
  const uint32_t parts[] = {mask, onnx_fill(c, &type, type.dtype == SNT_BOOL ? 0 : (double)-INFINITY)};
  return onnx_concat(c, last, 2, parts);
}

static uint32_t both_hold(onnx_call *c, uint32_t a, uint32_t b) { return a && b ? onnx_2(c, IR_OP_and, a, b) : a ? a : b; }

/* Where query i may see key j by their places alone: bool [queries, keys] or [batch, 1, queries, keys]; 0: everywhere. */
static uint32_t order_of(onnx_call *c, const attention *a) {
  const ir_expr dims[] = {a->queries, a->keys};
  if (!a->causal && !a->lengths && a->left < 0 && a->right < 0) return 0;
  const uint32_t key = onnx_iota(c, SNT_I32, 2, dims, 1), query = onnx_iota(c, SNT_I32, 2, dims, 0);
  const uint32_t offset = a->lengths ? onnx_2(c, IR_OP_sub, a->lengths, onnx_extent(c, a->queries, SNT_I32))
                                     : onnx_extent(c, a->past, SNT_I32);
  const uint32_t place = onnx_2(c, IR_OP_add, query, offset);
  uint32_t seen = a->lengths ? onnx_2(c, IR_OP_lt, key, a->lengths) : 0;
  if (a->causal) seen = both_hold(c, seen, onnx_2(c, IR_OP_le, key, place));
  if (a->left >= 0) seen = both_hold(c, seen, onnx_2(c, IR_OP_ge, key, onnx_2n(c, IR_OP_sub, place, (double)a->left)));
  if (a->right >= 0) seen = both_hold(c, seen, onnx_2(c, IR_OP_le, key, onnx_2n(c, IR_OP_add, place, (double)a->right)));
  return seen;
}

/* The mask and the order as one mask. */
static uint32_t joined_mask(onnx_call *c, uint32_t mask, uint32_t order) {
  if (!mask || !order) return mask ? mask : order;
  if (onnx_type_of(c, mask)->dtype == SNT_BOOL) return both_hold(c, mask, order);
  return onnx_select(c, order, mask, onnx_like(c, mask, (double)-INFINITY));
}

/* Which queries have a key at all: [.., queries, 1] of the mask; 0: all have. */
static uint32_t queries_with_keys(onnx_call *c, uint32_t mask) {
  if (!mask) return 0;
  const uint32_t last = 1u << (onnx_type_of(c, mask)->rank - 1u);
  if (onnx_type_of(c, mask)->dtype == SNT_BOOL) mask = onnx_cast(c, mask, SNT_I32);
  const uint32_t most = onnx_reduce(c, IR_OP_reduce_max, mask, last, true);
  const bool whole = most && onnx_type_of(c, most)->dtype == SNT_I32;
  return most ? onnx_2n(c, IR_OP_gt, most, whole ? 0 : (double)-INFINITY) : 0;
}

static uint32_t zero_where_none(onnx_call *c, uint32_t x, uint32_t with_keys) {
  return x && with_keys ? onnx_select(c, with_keys, x, onnx_like(c, x, 0)) : x;
}

/* ---- the result alone ---- */
uint32_t onnx_attend(onnx_call *c, const attention *a) {
  char words[5][48] = {"", "", "", "", ""};
  if (a->mask) snprintf(words[0], sizeof words[0], ", %%%u", a->mask);
  if (a->scale != 0) snprintf(words[1], sizeof words[1], ", scale=%a", a->scale);
  if (a->cap != 0) snprintf(words[2], sizeof words[2], ", softcap=%a", a->cap);
  if (a->causal) snprintf(words[3], sizeof words[3], a->past ? ", causal" : ", causal, past=0");
  if (a->window > 0) snprintf(words[4], sizeof words[4], ", window=%lld", (long long)a->window);
  if (!a->q || !a->k || !a->v) return 0;
  return onnx_add(c, "attention %%%u, %%%u, %%%u%s%s%s%s%s", a->q, a->k, a->v, words[0], words[1], words[2], words[3], words[4]);
}

/* The order is what the graph's operator says by itself: causal from the first key on, or so that the last query sees the last key. */
static bool is_plain(onnx_call *c, const attention *a) {
  const bool ends_together = !a->causal || !a->past || expr_sub(c->g->pool, a->keys, a->queries) == a->past;
  return ends_together && !a->lengths && a->left < 0 && a->right < 0;
}

static uint32_t attended(onnx_call *c, const attention *given, uint32_t all) {
  attention a = *given;
  a.causal = a.causal && is_plain(c, &a);
  if (!a.causal) a.mask = all;
  return onnx_attend(c, &a);
}

/* ---- with the scores ---- */
/* q [batch, kv heads, group, ..]: heads that share keys beside each other; k and v [batch, kv heads, 1, ..]. */
static uint32_t grouped(onnx_call *c, uint32_t x, ir_expr heads) {
  x = onnx_cast(c, x, SNT_F32);
  if (!x) return 0;
  const ir_tensor type = *onnx_type_of(c, x);
  const ir_expr dims[] = {type.dims[0], heads, expr_div(c->g->pool, type.dims[1], heads), type.dims[2], type.dims[3]};
  return onnx_reshape(c, x, 5, dims);
}

static uint32_t ungrouped(onnx_call *c, uint32_t x, ir_expr heads) {
  if (!x) return 0;
  const ir_tensor type = *onnx_type_of(c, x);
  const ir_expr dims[] = {type.dims[0], heads, type.dims[3], type.dims[4]};
  return onnx_reshape(c, x, 4, dims);
}

static uint32_t scaled_scores(onnx_call *c, const attention *a) {
  const ir_tensor q = *onnx_type_of(c, a->q);
  const ir_expr pairs = onnx_type_of(c, a->k)->dims[1];
  const uint32_t keys = grouped(c, a->k, pairs), s = onnx_add(c, "matmul %%%u, %%%u, transpose_b", grouped(c, a->q, pairs), keys);
  int64_t width = 1;
  if (a->scale == 0 && !expr_is_const(c->g->pool, q.dims[3], &width)) return onnx_refuse(c, "the width of a head must be fixed"), 0;
  return onnx_2n(c, IR_OP_mul, ungrouped(c, s, q.dims[1]), a->scale != 0 ? a->scale : 1 / sqrt((double)width));
}

uint32_t onnx_attend_scores(onnx_call *c, const attention *a, uint32_t all, uint32_t with_keys, int64_t mode, uint32_t *wanted) {
  const int32_t dtype = onnx_type_of(c, a->q)->dtype;
  const ir_expr heads = onnx_type_of(c, a->q)->dims[1], pairs = onnx_type_of(c, a->k)->dims[1];
  uint32_t stages[4], s = scaled_scores(c, a);
  stages[0] = s;
  if (a->cap != 0) s = onnx_2n(c, IR_OP_mul, onnx_1(c, IR_OP_tanh, onnx_2n(c, IR_OP_mul, s, 1 / a->cap)), a->cap);
  stages[1] = s;
  if (s && all && onnx_type_of(c, all)->dtype == SNT_BOOL) s = onnx_select(c, all, s, onnx_like(c, s, (double)-INFINITY));
  else if (all) s = onnx_2(c, IR_OP_add, s, onnx_cast(c, all, SNT_F32));
  stages[2] = s;
  s = s ? zero_where_none(c, onnx_add(c, "softmax %%%u", s), with_keys) : 0;
  stages[3] = s;
  *wanted = onnx_cast(c, stages[mode & 3], dtype);
  if (!s) return 0;
  const uint32_t values = grouped(c, a->v, pairs), y = onnx_add(c, "matmul %%%u, %%%u", grouped(c, s, pairs), values);
  return onnx_cast(c, ungrouped(c, y, heads), dtype);
}

static bool read_attention(onnx_call *c, attention *a) {
  const int64_t heads = onnx_int(c, "q_num_heads", 0), pairs = onnx_int(c, "kv_num_heads", 0);
  const uint32_t lengths = onnx_in(c, 6), mask = onnx_in(c, 3);
  a->q = onnx_split_heads(c, onnx_in(c, 0), heads);
  a->k = onnx_with_past(c, onnx_in(c, 4), onnx_split_heads(c, onnx_in(c, 1), pairs));
  a->v = onnx_with_past(c, onnx_in(c, 5), onnx_split_heads(c, onnx_in(c, 2), pairs));
  if (!a->q || !a->k || !a->v || (onnx_has(c, 3) && !mask) || (onnx_has(c, 6) && !lengths)) return false;
  a->flat = onnx_in_type(c, 0)->rank == 3;
  a->scale = onnx_float(c, "scale", 0), a->cap = onnx_float(c, "softcap", 0);
  a->causal = onnx_int(c, "is_causal", 0) != 0;
  a->left = onnx_int(c, "left_window_size", -1), a->right = onnx_int(c, "right_window_size", -1);
  a->queries = onnx_type_of(c, a->q)->dims[2], a->keys = onnx_type_of(c, a->k)->dims[2];
  a->past = onnx_has(c, 4) ? onnx_in_type(c, 4)->dims[2] : 0;
  a->mask = whole_mask(c, mask, a->keys);
  onnx_ignore(c, "softmax_precision");
  if (lengths) {
    const ir_expr dims[] = {onnx_type_of(c, lengths)->dims[0], 1, 1, 1};
    a->lengths = onnx_reshape(c, onnx_cast(c, lengths, SNT_I32), 4, dims);
  }
  return (!mask || a->mask) && (!lengths || a->lengths);
}

bool onnx_op_attention(onnx_call *c) {
  attention a = {0};
  const int64_t mode = onnx_int(c, "qk_matmul_output_mode", 0);
  if (!read_attention(c, &a)) return false;
  if (mode < 0 || mode > 3) return onnx_refuse(c, "qk_matmul_output_mode %lld", (long long)mode);
  /* The order alone leaves a query without keys only where lengths or windows do. */
  const bool scores = c->out_count > 3 && c->out[3].name[0];
  const bool plain = is_plain(c, &a);
  const uint32_t all = plain && !a.mask && !scores ? 0 : joined_mask(c, a.mask, order_of(c, &a));
  const uint32_t with_keys = plain && !a.mask ? 0 : queries_with_keys(c, all);
  uint32_t y, wanted = 0;
  if (scores) y = onnx_attend_scores(c, &a, all, with_keys, mode, &wanted);
  else y = zero_where_none(c, attended(c, &a, all), with_keys);
  if (a.flat) y = onnx_join_heads(c, y);
  return onnx_out(c, 0, y) && onnx_out(c, 1, a.k) && onnx_out(c, 2, a.v) && (!scores || onnx_out(c, 3, wanted));
}

/* ---- rotary ---- */
uint32_t onnx_turn(onnx_call *c, uint32_t x, uint32_t cosine, uint32_t sine, bool interleaved) {
  uint32_t table[] = {cosine, sine}, rest = 0;
  if (!x || !cosine || !sine) return 0;
  for (uint32_t i = 0; i < 2; i++) {
    const ir_tensor type = *onnx_type_of(c, table[i]);
    const ir_expr dims[] = {type.dims[0], 1, type.dims[1], type.dims[2]};
    if (type.rank != 3) return onnx_refuse(c, "tables of cosines or positions of another rank than 2"), 0;
    table[i] = onnx_reshape(c, table[i], 4, dims);
    if (!table[i]) return 0;
  }
  const ir_expr all = onnx_type_of(c, x)->dims[3], width = expr_mul(c->g->pool, 2, onnx_type_of(c, table[0])->dims[3]);
  if (width != all) {
    rest = onnx_slice(c, x, 3, width, expr_sub(c->g->pool, all, width), 1);
    x = onnx_slice(c, x, 3, 0, width, 1);
  }
  const uint32_t y = onnx_add(c, "rotary %%%u, %%%u, %%%u%s", x, table[0], table[1], interleaved ? ", interleaved" : "");
  const uint32_t parts[] = {y, rest};
  return rest ? onnx_concat(c, 3, 2, parts) : y;
}

/* x [batch, heads, length, width] or [batch, length, heads * width]; cos and sin are rows of the tables, or those at the positions. */
bool onnx_op_rotary(onnx_call *c) {
  const uint32_t given = onnx_in(c, 0), positions = onnx_in(c, 3);
  uint32_t table[2], x = onnx_split_heads(c, given, onnx_int(c, "num_heads", 0));
  const int64_t width = onnx_int(c, "rotary_embedding_dim", 0);
  if (!x) return false;
  for (uint32_t i = 0; i < 2; i++) {
    table[i] = onnx_in(c, 1 + i);
    if (positions) table[i] = onnx_gather(c, table[i], positions, 0);
    if (!table[i] || onnx_type_of(c, table[i])->rank != 3) return onnx_refuse(c, "tables of cosines need rank 2 with positions, 3 without");
  }
  const ir_expr turned = width ? expr_int(c->g->pool, width) : onnx_type_of(c, x)->dims[3];
  if (expr_mul(c->g->pool, 2, onnx_type_of(c, table[0])->dims[2]) != turned) return onnx_refuse(c, "tables of cosines of another width");
  const uint32_t y = onnx_turn(c, x, table[0], table[1], onnx_int(c, "interleaved", 0) != 0);
  return onnx_out(c, 0, onnx_type_of(c, given)->rank == 3 ? onnx_join_heads(c, y) : y);
}
