/* Convolutions whose dilation reaches far across the map (DeepLab's pyramid: a rate of 12 on maps of 14 x 14), so that most taps read zeros
   of the padding at most positions. In: a contraction over a window of a padded value. Out: a product a tap over the box of positions where
   it meets the map, with zeros around it, and their sum; where that is cheaper on the profile. Only explicit vectors, which lie along the
   channels: lanes lie along rows, and boxes two columns wide leave them empty (lavapipe: 1.4 times the processor time). Which weights may:
   as rewrite/taps.c. */
#include "fusion/rewrite/taps.h"
#include "fusion/schedule_common.h"

enum { MOST_TAPS = 25 };
static const double MOST_SHARE = 0.7; /* of the products, for which a box is worth while */

/* Of one tap along each axis: at how many positions from which one on it meets the map, and where the first of them reads. */
typedef struct tap_box {
  int64_t tap[TAPS_MOST_AXES], first[TAPS_MOST_AXES], count[TAPS_MOST_AXES], start[TAPS_MOST_AXES], positions;
} tap_box;

typedef struct boxes {
  taps t;
  uint32_t side; /* the operand that has the window */
  const ir_expr *labels, *own, *out;
  uint32_t rank, own_rank, out_rank;
  uint32_t count;
  tap_box at[MOST_TAPS];
} boxes;

/* Position p reads p * stride + tap * dilation - low. */
static void find_along(const tap_axis *a, tap_box *b, uint32_t i) {
  const int64_t from = b->tap[i] * a->dilation - a->low, room = a->extent - 1 - from;
  const int64_t first = from < 0 ? (-from + a->stride - 1) / a->stride : 0, last = room < 0 ? -1 : room / a->stride;
  const int64_t end = last + 1 < a->positions ? last + 1 : a->positions;
  b->first[i] = first, b->count[i] = end > first ? end - first : 0, b->start[i] = from + a->stride * first;
}

/* The boxes that are not empty. False: more taps than anybody wants products of. */
static bool find_boxes(boxes *x) {
  int64_t all = 1;
  for (uint32_t i = 0; i < x->t.count; i++)
    if (x->t.at[i].size > MOST_TAPS || (all *= x->t.at[i].size) > MOST_TAPS) return false;
  for (int64_t k = 0; k < all; k++) {
    tap_box b = {.positions = 1};
    int64_t rest = k;
    for (uint32_t i = x->t.count; i-- > 0; rest /= x->t.at[i].size) {
      b.tap[i] = rest % x->t.at[i].size;
      find_along(&x->t.at[i], &b, i);
      b.positions *= b.count[i];
    }
    if (b.positions) x->at[x->count++] = b;
  }
  return x->count > 1;
}

/* Taps are summed, positions are the result's and not the weights': a convolution. */
static bool has_labels(const boxes *x) {
  for (uint32_t i = 0; i < x->t.count; i++) {
    const ir_expr tap = x->labels[x->t.rank + i], position = x->labels[(uint32_t)x->t.axis + i];
    if (fusion_find_label(x->own, x->own_rank, tap) < 0 || fusion_find_label(x->out, x->out_rank, tap) >= 0) return false;
    if (fusion_find_label(x->own, x->own_rank, position) >= 0 || fusion_find_label(x->out, x->out_rank, position) < 0) return false;
  }
  return true;
}

static bool read_boxes(rebuild *r, uint32_t side, boxes *x) {
  static const ir_attr_key keys[2] = {IR_ATTR_lhs, IR_ATTR_rhs};
  *x = (boxes){.side = side};
  if (!rewrite_read_taps(r, r->args[side], &x->t)) return false;
  for (uint32_t d = 0; d < x->t.rank; d++)
    if ((d < x->t.axis || d >= x->t.axis + x->t.count) && (x->t.low[d] != 0 || x->t.high[d] != 0)) return false;
  x->labels = ir_attr_ints(r->from, r->node, keys[side], &x->rank);
  x->own = ir_attr_ints(r->from, r->node, keys[1 - side], &x->own_rank);
  x->out = ir_attr_ints(r->from, r->node, IR_ATTR_out, &x->out_rank);
  return has_labels(x) && find_boxes(x);
}

/* ---- what it costs, in ns ---- */

static double product_ns(const cost_profile *p, double fmas) {
  return fmas / (p->units * p->ghz * p->lanes * p->fma_per_cycle * (p->contract_share > 0 ? p->contract_share : 1));
}

/* The weights are read once either way; each box more is a launch, and its sums go to a cache and come back. Products of neighbours on
   small maps, a fifth of which reads padding, are Winograd's business. */
static bool pays(const rebuild *r, const boxes *x) {
  const cost_profile *p = r->c->options->profile;
  const ir_node *n = ir_at(r->from, r->node);
  const double results = (double)schedule_hint(r->to->pool, ir_tensor_elements(r->to->pool, &n->type));
  double terms = 1, positions = 1, taps = 1, met = 0;
  for (uint32_t i = 0; i < x->own_rank; i++)
    if (fusion_find_label(x->out, x->out_rank, x->own[i]) < 0)
      terms *= (double)schedule_hint(r->to->pool, ir_at(r->to, r->args[1 - x->side])->type.dims[i]);
  for (uint32_t i = 0; i < x->t.count; i++) taps *= (double)x->t.at[i].size, positions *= (double)x->t.at[i].positions;
  for (uint32_t i = 0; i < x->count; i++) met += (double)x->at[i].positions;
  const double share = met / (taps * positions), saved = product_ns(p, results * terms) * (1 - share);
  const double through = 2 * sizeof(float) * results * met / positions;
  return share < MOST_SHARE && saved > 2 * (x->count * p->launch_ns + through / p->cache_gbs);
}

/* ---- the products ---- */

static uint32_t cut(rebuild *r, uint32_t node, uint32_t rank, ir_expr *starts, ir_expr *sizes, ir_expr *steps) {
  return rebuild_slice(r, node, rank, starts, sizes, steps);
}

static uint32_t data_of(rebuild *r, const boxes *x, const tap_box *b) {
  const ir_tensor type = ir_at(r->to, x->t.source)->type;
  ir_expr starts[SNT_MAX_RANK] = {0}, sizes[SNT_MAX_RANK], steps[SNT_MAX_RANK];
  for (uint32_t d = 0; d < type.rank; d++) sizes[d] = type.dims[d], steps[d] = 1;
  for (uint32_t i = 0; i < x->t.count; i++) {
    const uint32_t d = (uint32_t)x->t.axis + i;
    starts[d] = b->start[i], sizes[d] = b->count[i], steps[d] = x->t.at[i].stride;
  }
  return cut(r, x->t.source, type.rank, starts, sizes, steps);
}

/* Which of the window's axes a label is; SNT_MAX_RANK: none. */
static uint32_t axis_of(const boxes *x, uint32_t from, ir_expr label) {
  for (uint32_t i = 0; i < x->t.count; i++)
    if (x->labels[from + i] == label) return i;
  return SNT_MAX_RANK;
}

/* The weights of the tap, without axes for it; `left`: their labels. */
static uint32_t weights_of(rebuild *r, const boxes *x, const tap_box *b, ir_expr *left, uint32_t *left_count) {
  const uint32_t weights = r->args[1 - x->side];
  const ir_tensor type = ir_at(r->to, weights)->type;
  ir_expr starts[SNT_MAX_RANK] = {0}, sizes[SNT_MAX_RANK], steps[SNT_MAX_RANK], dims[SNT_MAX_RANK];
  *left_count = 0;
  for (uint32_t d = 0; d < type.rank; d++) {
    const uint32_t i = axis_of(x, x->t.rank, x->own[d]);
    sizes[d] = type.dims[d], steps[d] = 1;
    if (i < SNT_MAX_RANK) starts[d] = b->tap[i], sizes[d] = 1;
    else dims[*left_count] = type.dims[d], left[(*left_count)++] = x->own[d];
  }
  const uint32_t one = cut(r, weights, type.rank, starts, sizes, steps);
  return rebuild_reshape(r, one, *left_count, dims);
}

/* Zeros where the tap reads none of the map. */
static uint32_t spread(rebuild *r, const boxes *x, const tap_box *b, uint32_t product) {
  ir_expr low[SNT_MAX_RANK] = {0}, high[SNT_MAX_RANK] = {0};
  for (uint32_t d = 0; d < x->out_rank; d++) {
    const uint32_t i = axis_of(x, (uint32_t)x->t.axis, x->out[d]);
    if (i < SNT_MAX_RANK) low[d] = b->first[i], high[d] = x->t.at[i].positions - b->first[i] - b->count[i];
  }
  return rebuild_view(r, IR_OP_pad, product, 2,
                      (const ir_attr_value[]){{IR_ATTR_high, x->out_rank, high}, {IR_ATTR_low, x->out_rank, low}});
}

static uint32_t product_of(rebuild *r, const boxes *x, const tap_box *b) {
  ir_expr left[SNT_MAX_RANK];
  uint32_t args[2], left_count;
  args[x->side] = data_of(r, x, b);
  args[1 - x->side] = weights_of(r, x, b, left, &left_count);
  const ir_expr dtype = ir_at(r->from, r->node)->type.dtype; /* which need not be the operands' */
  const ir_attr_value data = {0, x->t.rank, x->labels}, weights = {0, left_count, left};
  ir_attr_value lists[] = {
      {IR_ATTR_dtype, 1, &dtype}, x->side ? weights : data, {IR_ATTR_out, x->out_rank, x->out}, x->side ? data : weights};
  lists[1].key = IR_ATTR_lhs, lists[3].key = IR_ATTR_rhs;
  const uint32_t made = ir_add_node(r->to, IR_OP_contract, 2, args, IR_COUNT(lists), lists, NULL);
  if (!made) return 0;
  r->to->nodes.at[made].origin = ir_at(r->from, r->node)->origin;
  return spread(r, x, b, made);
}

uint32_t rewrite_tap_boxes(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  if (n->type.dtype != SNT_F32 || fusion_keeps_order(r->c->options) || !schedule_is_explicit(r->c)) return 0;
  for (uint32_t side = 0; side < 2; side++) {
    boxes x;
    if (!read_boxes(r, side, &x) || !pays(r, &x) || !rewrite_taps_finite(r, r->args[1 - side])) continue;
    uint32_t sum = product_of(r, &x, &x.at[0]);
    for (uint32_t i = 1; sum && i < x.count; i++) {
      const uint32_t both[2] = {sum, product_of(r, &x, &x.at[i])};
      sum = both[1] ? ir_add_node(r->to, IR_OP_add, 2, both, 0, NULL, NULL) : 0;
      if (sum) r->to->nodes.at[sum].origin = n->origin;
    }
    return sum;
  }
  return 0;
}
