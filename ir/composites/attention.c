/* Attention and rotary embedding. Scores are f32. A key that is left out gets a finite score far below any other, so nothing depends on how
   a device treats infinities; a row without any key gives the mean of the values. */
#include "ir/composites/private.h"
#include <math.h>

typedef struct heads {              /* how q, k and v are labelled */
  uint32_t q, k, v;                 /* q split into [.., kv heads, group, l, d] if grouped */
  uint32_t batch, group;            /* axes before l of k and v; 1 if q has a group axis */
  ir_tensor q_type, k_type, v_type; /* as given */
} heads;
enum { LABEL_QUERY = 20, LABEL_KEY, LABEL_DEPTH, LABEL_VALUE, LABEL_GROUP };
static const double left_out = -1e30;

static bool read_heads(composite_call *c, heads *h) {
  h->q = c->args[0], h->k = c->args[1], h->v = c->args[2], h->group = 0;
  h->q_type = *type_of(c, h->q), h->k_type = *type_of(c, h->k), h->v_type = *type_of(c, h->v);
  const uint32_t rank = h->q_type.rank;
  if (rank < 2 || rank > 6 || h->k_type.rank != rank || h->v_type.rank != rank)
    return call_mistake(c, "q, k and v need the same rank, from 2 to 6"), false;
  h->batch = rank - 2;
  if (rank < 3 || h->q_type.dims[rank - 3] == h->k_type.dims[rank - 3]) return true;
  int64_t q_heads, kv_heads;
  if (!expr_is_const(c->g->pool, h->q_type.dims[rank - 3], &q_heads) || !expr_is_const(c->g->pool, h->k_type.dims[rank - 3], &kv_heads) ||
      kv_heads < 1 || q_heads % kv_heads != 0)
    return call_mistake(c, "the heads of q are no multiple of those of k"), false;
  ir_expr dims[SNT_MAX_RANK];
  memcpy(dims, h->q_type.dims, sizeof dims);
  dims[rank - 3] = kv_heads, dims[rank - 2] = q_heads / kv_heads;
  dims[rank - 1] = h->q_type.dims[rank - 2], dims[rank] = h->q_type.dims[rank - 1];
  h->q = step_reshape(c, h->q, rank + 1, dims);
  h->group = 1;
  return h->q != 0;
}

/* Labels [batch.., (group), a, b]. */
static void put_labels(const heads *h, bool grouped, int64_t a, int64_t b, label_list *out) {
  for (uint32_t i = 0; i < h->batch; i++) label_add(out, i);
  if (grouped && h->group) label_add(out, LABEL_GROUP);
  label_add(out, a);
  label_add(out, b);
}

static uint32_t put_scores(composite_call *c, const heads *h) {
  contract_desc d = {.dtype = h->q_type.dtype == SNT_F64 ? SNT_F64 : SNT_F32};
  double scale = call_number(c, IR_PARAM_scale, 0);
  put_labels(h, true, LABEL_QUERY, LABEL_DEPTH, &d.lhs);
  put_labels(h, false, LABEL_KEY, LABEL_DEPTH, &d.rhs);
  put_labels(h, true, LABEL_QUERY, LABEL_KEY, &d.out);
  uint32_t s = step_contract(c, h->q, h->k, &d);
  if (!call_has(c, IR_PARAM_scale)) {
    int64_t depth;
    if (!expr_is_const(c->g->pool, h->q_type.dims[h->q_type.rank - 1], &depth) || depth < 1)
      return call_mistake(c, "the last axis must be fixed");
    scale = 1 / sqrt((double)depth);
  }
  if (scale != 1) s = step_2n(c, IR_OP_mul, s, scale);
  const double cap = call_number(c, IR_PARAM_softcap, 0);
  if (cap > 0) s = step_2n(c, IR_OP_mul, step_1(c, IR_OP_tanh, step_2n(c, IR_OP_mul, s, 1 / cap)), cap);
  return s;
}

/* The mask [.., heads, l, s] beside scores that may have the heads split in two. */
static uint32_t fit_mask(composite_call *c, const heads *h, uint32_t mask) {
  const ir_tensor type = *type_of(c, mask);
  if (!h->group || type.rank < 3) return mask;
  const uint32_t at = type.rank - 3u;
  ir_expr dims[SNT_MAX_RANK];
  int64_t count;
  if (type.rank == SNT_MAX_RANK || !expr_is_const(c->g->pool, type.dims[at], &count))
    return call_mistake(c, "the mask does not suit the scores");
  memcpy(dims, type.dims, sizeof dims);
  const ir_expr kv_heads = h->k_type.dims[h->k_type.rank - 3];
  dims[at] = count == 1 ? 1 : kv_heads;
  dims[at + 1] = count == 1 ? 1 : expr_div(c->g->pool, count, kv_heads);
  dims[at + 2] = type.dims[at + 1], dims[at + 3] = type.dims[at + 2];
  return step_reshape(c, mask, type.rank + 1, dims);
}

static uint32_t keep_where(composite_call *c, uint32_t scores, uint32_t condition) {
  if (!scores || !condition) return 0;
  const ir_tensor shape = *type_of(c, scores);
  condition = step_broadcast(c, condition, &shape);
  return step_select(c, condition, scores, step_number(c, scores, left_out));
}

static uint32_t put_mask(composite_call *c, const heads *h, uint32_t scores) {
  uint32_t mask = c->args[3];
  if (!mask || !scores) return scores;
  mask = fit_mask(c, h, mask);
  if (mask && type_of(c, mask)->dtype == SNT_BOOL) return keep_where(c, scores, mask);
  return step_2(c, IR_OP_add, scores, step_cast(c, mask, type_of(c, scores)->dtype));
}

/* Query i stands at key i + past. */
static uint32_t put_order(composite_call *c, const heads *h, uint32_t scores) {
  const ir_expr l = h->q_type.dims[h->q_type.rank - 2], s = h->k_type.dims[h->k_type.rank - 2], dims[] = {l, s};
  if (!call_has(c, IR_PARAM_causal) && !call_has(c, IR_PARAM_window)) return scores;
  const ir_expr past = call_expr(c, IR_PARAM_past, expr_sub(c->g->pool, s, l));
  uint32_t query = step_iota(c, SNT_I32, 2, dims, 0);
  const uint32_t key = step_iota(c, SNT_I32, 2, dims, 1);
  if (past != 0) query = step_2(c, IR_OP_add, query, step_dim(c, past, SNT_I32));
  if (call_has(c, IR_PARAM_causal)) scores = keep_where(c, scores, step_2(c, IR_OP_le, key, query));
  if (!call_has(c, IR_PARAM_window)) return scores;
  const uint32_t reach = step_dim(c, call_expr(c, IR_PARAM_window, 0), SNT_I32);
  return keep_where(c, scores, step_2(c, IR_OP_gt, key, step_2(c, IR_OP_sub, query, reach)));
}

void build_attention(composite_call *c) {
  heads h;
  if (!read_heads(c, &h)) return;
  const uint32_t scores = put_order(c, &h, put_mask(c, &h, put_scores(c, &h)));
  if (!scores) return;
  const uint32_t p = step_softmax(c, scores, type_of(c, scores)->rank - 1u);
  contract_desc d = {.dtype = h.v_type.dtype};
  put_labels(&h, true, LABEL_QUERY, LABEL_KEY, &d.lhs);
  put_labels(&h, false, LABEL_KEY, LABEL_VALUE, &d.rhs);
  put_labels(&h, true, LABEL_QUERY, LABEL_VALUE, &d.out);
  const uint32_t y = step_contract(c, step_cast(c, p, h.v_type.dtype), h.v, &d);
  ir_tensor shape = h.q_type;
  shape.dims[shape.rank - 1] = h.v_type.dims[h.v_type.rank - 1];
  c->results[0] = step_reshape(c, y, shape.rank, shape.dims);
}

/* ---- rotary ---- */
static uint32_t turned(composite_call *c, ir_op op, uint32_t a, uint32_t cosine, uint32_t b, uint32_t sine) {
  const uint32_t along = step_2(c, IR_OP_mul, a, cosine), across = step_2(c, IR_OP_mul, b, sine);
  return step_2(c, op, along, across);
}

void build_rotary(composite_call *c) {
  const uint32_t x = step_widen(c, c->args[0]), cosine = step_widen(c, c->args[1]), sine = step_widen(c, c->args[2]);
  const ir_tensor shape = *type_of(c, x);
  const bool interleaved = call_has(c, IR_PARAM_interleaved);
  if (shape.rank < 2 || shape.rank == SNT_MAX_RANK) {
    call_mistake(c, "the operand has rank %u", shape.rank);
    return;
  }
  const uint32_t last = shape.rank - 1u;
  const ir_expr half = expr_div(c->g->pool, shape.dims[last], 2);
  const uint32_t a = step_slice(c, x, last, 0, half, interleaved ? 2 : 1),
                 b = step_slice(c, x, last, interleaved ? 1 : half, half, interleaved ? 2 : 1);
  uint32_t parts[2];
  parts[0] = turned(c, IR_OP_sub, a, cosine, b, sine);
  parts[1] = turned(c, IR_OP_add, b, cosine, a, sine);
  if (interleaved) {
    ir_expr dims[SNT_MAX_RANK];
    memcpy(dims, shape.dims, sizeof dims);
    dims[last] = half, dims[last + 1] = 1;
    for (uint32_t i = 0; i < 2; i++) parts[i] = step_reshape(c, parts[i], shape.rank + 1, dims);
  }
  const uint32_t y = step_reshape(c, step_concat(c, interleaved ? last + 1 : last, 2, parts), shape.rank, shape.dims);
  c->results[0] = y ? step_cast(c, y, type_of(c, c->args[0])->dtype) : 0;
}
