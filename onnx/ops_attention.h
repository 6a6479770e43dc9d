/* What the attention of ONNX and that of ONNX Runtime share: ops/attention.c. Steps give 0 once something has failed. */
#ifndef ONNX_OPS_ATTENTION_H
#define ONNX_OPS_ATTENTION_H
#include "onnx/ops.h"

typedef struct onnx_attention {
  uint32_t q, k, v;      /* [batch, heads, length, width], the cache in front of k and v */
  uint32_t mask;         /* as given, widened to all keys; 0: none */
  uint32_t lengths;      /* keys of each batch, i32 [batch, 1, 1, 1]; 0: all */
  int64_t left, right;   /* windows; -1: none */
  bool causal, flat;     /* flat: q, k and v had rank 3 */
  ir_expr past;          /* keys in front of the first query */
  ir_expr queries, keys; /* how many */
  double scale, cap;     /* 0: 1 / sqrt(width), none */
  int64_t window;        /* keys that a query sees at most, itself included; 0: all */
} onnx_attention;

/* [batch, length, heads * width] as [batch, heads, length, width], and back. What has rank 4 is left alone. */
uint32_t onnx_split_heads(onnx_call *, uint32_t x, int64_t heads);
uint32_t onnx_join_heads(onnx_call *, uint32_t y);
uint32_t onnx_with_past(onnx_call *, uint32_t past, uint32_t x); /* past 0: x */
#define onnx_with_past(c, past, x) IR_LAST_FIRST_2(onnx_with_past, past, x, c)
/* The graph's own operator with what it says by itself: mask, scale, cap, causal (from `past`: 0, or the keys before the queries), window. */
uint32_t onnx_attend(onnx_call *, const onnx_attention *);
/* The result, and what `mode` asks for of the scores: 0 as they are, 1 behind the softcap, 2 behind the mask `all`, 3 behind the softmax. */
uint32_t onnx_attend_scores(onnx_call *, const onnx_attention *, uint32_t all, uint32_t with_keys, int64_t mode, uint32_t *wanted);
/* The first 2 n of x [batch, heads, length, width] turned by rows [batch or 1, length, n] of the tables; the others stay. */
uint32_t onnx_turn(onnx_call *, uint32_t x, uint32_t cosine, uint32_t sine, bool interleaved);

/* ---- contrib/attention.c ---- */
uint32_t onnx_fit_scores(onnx_call *, uint32_t x, ir_expr queries,
                         ir_expr keys); /* a mask or bias [.., queries, keys] to these extents, or 1 */

/* ---- contrib/cache.c: caches of which each batch uses its own beginning ---- */
typedef struct onnx_cache {
  uint32_t before, after; /* rows in use before and with the new ones, i32 [batch or 1, 1, 1, 1]; after 0: all new ones are */
  ir_expr past, fresh;    /* rows of the cache, new rows */
  ir_expr total;          /* rows of the present */
  bool keeps;             /* what is not in use stays in the present, else it is 0; total = past */
} onnx_cache;
ir_expr onnx_cache_keys(onnx_call *, const onnx_cache *); /* past + fresh: what attention reads */
/* Where in its batch the row `key` (i32) of the cache and the new rows stands. */
uint32_t onnx_cache_place(onnx_call *, const onnx_cache *, uint32_t key);
/* bool [batch or 1, 1, queries, keys]: what each query may see; window: so many keys up to its own, 0: all. */
uint32_t onnx_cache_seen(onnx_call *, const onnx_cache *, ir_expr queries, bool causal, int64_t window);
/* x [batch or 1, .., .., columns by place] with its columns by key. */
uint32_t onnx_cache_columns(onnx_call *, const onnx_cache *, uint32_t x);
/* [batch, heads, total, width]: the cache with the new rows in their places. Without `before` all of it is. */
uint32_t onnx_cache_present(onnx_call *, const onnx_cache *, uint32_t past, uint32_t fresh);
uint32_t onnx_cache_mask(onnx_call *, uint32_t seen, uint32_t added); /* one mask of both; either may be 0 */
bool onnx_add_sink(onnx_call *, onnx_attention *, uint32_t sink); /* a score of rank 4 that takes part in the sum of the softmax alone */
#endif
