/* Caches of keys and values of which each batch uses its own beginning: [batch, heads, past, width], new rows to be put behind what is used. Attention
   reads the whole cache with the new rows behind it and a mask of what is seen, as its result does not depend on the order of keys; only the
   present, which the model gives out, has the new rows in their places. */
#include "onnx/ops_attention.h"

static const double left_out = -1e30; /* as in ir/composites/attention.c */

uint32_t onnx_cache_place(onnx_call *c, const onnx_cache *at, uint32_t key) {
  const uint32_t behind = onnx_2(c, IR_OP_add, at->before, onnx_2(c, IR_OP_sub, key, onnx_extent(c, at->past, SNT_I32)));
  return onnx_select(c, onnx_2(c, IR_OP_lt, key, onnx_extent(c, at->past, SNT_I32)), key, behind);
}

static uint32_t both(onnx_call *c, uint32_t a, uint32_t b) { return a && b ? onnx_2(c, IR_OP_and, a, b) : a ? a : b; }

/* Old keys that are in use, and all new ones. */
static uint32_t in_use(onnx_call *c, const onnx_cache *at, uint32_t key) {
  const uint32_t old = onnx_2(c, IR_OP_lt, key, at->before), fresh = onnx_2(c, IR_OP_ge, key, onnx_extent(c, at->past, SNT_I32));
  return onnx_2(c, IR_OP_or, old, fresh);
}

uint32_t onnx_cache_seen(onnx_call *c, const onnx_cache *at, ir_expr queries, bool causal, int64_t window) {
  const ir_expr dims[] = {1, 1, queries, onnx_cache_keys(c, at)};
  const uint32_t key = onnx_iota(c, SNT_I32, 4, dims, 3), query = onnx_iota(c, SNT_I32, 4, dims, 2);
  const uint32_t place = onnx_cache_place(c, at, key), own = onnx_2(c, IR_OP_add, query, at->before);
  uint32_t seen = in_use(c, at, key);
  if (causal) seen = both(c, seen, onnx_2(c, IR_OP_le, place, own));
  else if (at->after) seen = both(c, seen, onnx_2(c, IR_OP_lt, place, at->after));
  if (window > 0) seen = both(c, seen, onnx_2(c, IR_OP_gt, place, onnx_2n(c, IR_OP_sub, own, (double)window)));
  return seen;
}

ir_expr onnx_cache_keys(onnx_call *c, const onnx_cache *at) { return expr_add(c->g->pool, at->past, at->fresh); }

/* x [batch, n, ..] at index [batch, m]: [batch, m, ..] */
static uint32_t by_batch(onnx_call *c, uint32_t x, uint32_t index) {
  if (!x || !index) return 0;
  const ir_tensor type = *onnx_type_of(c, index);
  const ir_expr dims[] = {type.dims[0], type.dims[1], 1};
  return onnx_add(c, "gather_nd %%%u, %%%u, batch_dims=1", x, onnx_reshape(c, index, 3, dims));
}

/* x [batch, a, n, b] at index [batch or 1, 1, 1, m] along axis 2. */
static uint32_t rows_at(onnx_call *c, uint32_t x, uint32_t index) {
  static const uint32_t perm[] = {0, 2, 1, 3};
  if (!x || !index) return 0;
  const ir_tensor type = *onnx_type_of(c, index), *of = onnx_type_of(c, x);
  const ir_expr flat[] = {type.dims[0], type.dims[3]};
  if (type.dims[0] == 1) return onnx_gather(c, x, onnx_reshape(c, index, 1, flat + 1), 2);
  const ir_expr all[] = {type.dims[0], of->dims[1], of->dims[2], of->dims[3]};
  x = onnx_transpose(c, onnx_broadcast(c, x, 4, all), perm);
  return onnx_transpose(c, by_batch(c, x, onnx_reshape(c, index, 2, flat)), perm);
}

uint32_t onnx_cache_columns(onnx_call *c, const onnx_cache *at, uint32_t x) {
  static const uint32_t perm[] = {0, 1, 3, 2};
  const ir_expr dims[] = {1, 1, 1, onnx_cache_keys(c, at)};
  if (!x || onnx_type_of(c, x)->dims[3] == 1) return x;
  const uint32_t last = onnx_extent(c, expr_sub(c->g->pool, onnx_type_of(c, x)->dims[3], 1), SNT_I32);
  const uint32_t place = onnx_2(c, IR_OP_min, onnx_cache_place(c, at, onnx_iota(c, SNT_I32, 4, dims, 3)), last);
  return onnx_transpose(c, rows_at(c, onnx_transpose(c, x, perm), place), perm);
}

/* Row `past + fresh` of the rows is one of zeros, for what is not in use. */
uint32_t onnx_cache_present(onnx_call *c, const onnx_cache *at, uint32_t past, uint32_t fresh) {
  const uint32_t rows = onnx_with_past(c, past, fresh);
  if (!rows || !at->before) return rows;
  const ir_expr dims[] = {1, 1, 1, at->total}, all = onnx_cache_keys(c, at);
  const uint32_t padded = onnx_add(c, "pad %%%u, low=[0,0,0,0], high=[0,0,1,0]", rows), j = onnx_iota(c, SNT_I32, 4, dims, 3);
  const uint32_t behind = onnx_2(c, IR_OP_add, onnx_2(c, IR_OP_sub, j, at->before), onnx_extent(c, at->past, SNT_I32));
  const uint32_t unused = at->keeps ? j : onnx_extent(c, all, SNT_I32);
  const uint32_t used = onnx_select(c, onnx_2(c, IR_OP_lt, j, at->after), behind, unused);
  return rows_at(c, padded, onnx_select(c, onnx_2(c, IR_OP_lt, j, at->before), j, used));
}

uint32_t onnx_cache_mask(onnx_call *c, uint32_t seen, uint32_t added) {
  if (!seen || !added) return added ? added : seen;
  return onnx_select(c, seen, onnx_cast(c, added, SNT_F32), onnx_scalar(c, SNT_F32, left_out));
}

/* A key of zeros behind the others, whose score is the sink, takes its part of the sum and gives nothing. */
bool onnx_add_sink(onnx_call *c, onnx_attention *a, uint32_t sink) {
  const ir_expr dims[] = {1, 1, 1, expr_add(c->g->pool, a->keys, 1)};
  const uint32_t key = onnx_iota(c, SNT_I32, 4, dims, 3);
  const uint32_t own = onnx_2(c, IR_OP_eq, key, onnx_extent(c, a->keys, SNT_I32));
  uint32_t mask = a->mask ? a->mask : onnx_scalar(c, SNT_F32, 0);
  if (mask && onnx_type_of(c, mask)->dtype == SNT_BOOL)
    mask = onnx_select(c, mask, onnx_scalar(c, SNT_F32, 0), onnx_scalar(c, SNT_F32, left_out));
  if (mask && onnx_type_of(c, mask)->rank) mask = onnx_add(c, "pad %%%u, low=[0,0,0,0], high=[0,0,0,1]", mask);
  a->mask = onnx_select(c, own, onnx_cast(c, sink, SNT_F32), mask);
  a->k = onnx_add(c, "pad %%%u, low=[0,0,0,0], high=[0,0,1,0]", a->k);
  a->v = onnx_add(c, "pad %%%u, low=[0,0,0,0], high=[0,0,1,0]", a->v);
  a->keys = dims[3];
  return a->mask && a->k && a->v;
}
