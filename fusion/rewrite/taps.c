/* Convolutions whose dilation reaches beyond the map (DeepLab's pyramid: rates of 24 and 36 on maps of 14 x 14): taps that read nothing but
   zeros at any position are left out, with their weights and their padding. In: a contraction over a window of a padded value. Out: the
   same over fewer taps. Zeros times an infinite weight are NaN, which only FAST does not keep: elsewhere weights are constants, and finite. */
#include "fusion/rewrite/taps.h"
#include "fusion/shown.h"
#include <math.h>

typedef struct live {
  int64_t first[TAPS_MOST_AXES], size[TAPS_MOST_AXES];
  ir_expr low[SNT_MAX_RANK], high[SNT_MAX_RANK]; /* of the padding that is left */
  bool fewer;
} live;

static const ir_expr *list_of(const rebuild *r, uint32_t node, ir_attr_key key, uint32_t wanted) {
  uint32_t count = 0;
  const ir_expr *list = ir_attr_ints(r->to, node, key, &count);
  return count == wanted ? list : NULL;
}

/* False where something is not a number. */
static bool read_axis(const rebuild *r, taps *t, uint32_t i) {
  const uint32_t d = (uint32_t)t->axis + i;
  const ir_expr named[] = {ir_at(r->to, t->source)->type.dims[d],
                           ir_at(r->to, t->window)->type.dims[d],
                           t->low[d],
                           t->high[d],
                           list_of(r, t->window, IR_ATTR_size, t->count)[i],
                           list_of(r, t->window, IR_ATTR_stride, t->count)[i],
                           list_of(r, t->window, IR_ATTR_dilation, t->count)[i]};
  tap_axis *a = &t->at[i];
  int64_t *const to[] = {&a->extent, &a->positions, &a->low, &a->high, &a->size, &a->stride, &a->dilation};
  for (uint32_t k = 0; k < IR_COUNT(named); k++)
    if (!expr_is_const(r->to->pool, named[k], to[k])) return false;
  return true;
}

bool rewrite_read_taps(const rebuild *r, uint32_t node, taps *t) {
  static const uint8_t keys[] = {IR_ATTR_size, IR_ATTR_stride, IR_ATTR_dilation, IR_ATTR_low, IR_ATTR_high};
  const ir_graph *g = r->to;
  *t = (taps){.window = node};
  if (ir_at(g, node)->op != IR_OP_window || ir_at(g, ir_arg(g, node, 0))->op != IR_OP_pad) return false;
  t->pad = ir_arg(g, node, 0), t->source = ir_arg(g, t->pad, 0), t->rank = ir_at(g, t->source)->type.rank;
  t->axis = ir_attr_int(g, node, IR_ATTR_axis, 0), t->count = ir_at(g, node)->type.rank - t->rank;
  t->low = list_of(r, t->pad, IR_ATTR_low, t->rank), t->high = list_of(r, t->pad, IR_ATTR_high, t->rank);
  if (!t->low || !t->high || !t->count || t->count > TAPS_MOST_AXES || ir_attr_int(g, t->pad, IR_ATTR_value, 0) != 0) return false;
  for (uint32_t k = 0; k < IR_COUNT(keys); k++) {
    const ir_expr *list = list_of(r, node, (ir_attr_key)keys[k], t->count);
    for (uint32_t i = 0; i < t->count; i++)
      if (!list || (k > 2 && list[i] != 0)) return false;
  }
  for (uint32_t i = 0; i < t->count; i++)
    if (!read_axis(r, t, i)) return false;
  return true;
}

/* Which taps along the axis meet the map anywhere; all of them where less padding would be left than none. */
static void find_live(const taps *t, live *l, uint32_t i) {
  const tap_axis *a = &t->at[i];
  const uint32_t d = (uint32_t)t->axis + i;
  int64_t first = a->size, last = -1;
  for (int64_t k = 0; k < a->size; k++) {
    const int64_t from = k * a->dilation - a->low;
    if (from >= a->extent || from + a->stride * (a->positions - 1) < 0) continue;
    last = k;
    if (first == a->size) first = k;
  }
  l->first[i] = 0, l->size[i] = a->size;
  const int64_t less_low = first * a->dilation, less_high = (a->size - 1 - last) * a->dilation;
  if (last < 0 || less_low > a->low || less_high > a->high || last + 1 - first == a->size) return;
  l->first[i] = first, l->size[i] = last + 1 - first, l->fewer = true;
  l->low[d] = a->low - less_low, l->high[d] = a->high - less_high;
}

static live find_all_live(const taps *t) {
  live l = {.fewer = false};
  memcpy(l.low, t->low, t->rank * sizeof *t->low), memcpy(l.high, t->high, t->rank * sizeof *t->high);
  for (uint32_t i = 0; i < t->count; i++) find_live(t, &l, i);
  return l;
}

static uint32_t live_window(rebuild *r, const taps *t, const live *l) {
  const ir_attr_value pad[] = {{IR_ATTR_high, t->rank, l->high}, {IR_ATTR_low, t->rank, l->low}};
  ir_expr sizes[TAPS_MOST_AXES], strides[TAPS_MOST_AXES], dilations[TAPS_MOST_AXES];
  memcpy(strides, list_of(r, t->window, IR_ATTR_stride, t->count), t->count * sizeof *strides);
  memcpy(dilations, list_of(r, t->window, IR_ATTR_dilation, t->count), t->count * sizeof *dilations);
  for (uint32_t i = 0; i < t->count; i++) sizes[i] = l->size[i];
  const ir_expr axis = t->axis;
  const ir_attr_value window[] = {{IR_ATTR_axis, 1, &axis},
                                  {IR_ATTR_dilation, t->count, dilations},
                                  {IR_ATTR_size, t->count, sizes},
                                  {IR_ATTR_stride, t->count, strides}};
  return rebuild_view(r, IR_OP_window, rebuild_view(r, IR_OP_pad, t->source, IR_COUNT(pad), pad), IR_COUNT(window), window);
}

/* The weights of these taps; 0: they have not an axis for each. */
static uint32_t live_weights(rebuild *r, const taps *t, const live *l, uint32_t side) {
  static const ir_attr_key keys[2] = {IR_ATTR_lhs, IR_ATTR_rhs};
  uint32_t count, rank, out_rank;
  const ir_expr *labels = ir_attr_ints(r->from, r->node, keys[side], &count), *own = ir_attr_ints(r->from, r->node, keys[1 - side], &rank);
  const ir_expr *out = ir_attr_ints(r->from, r->node, IR_ATTR_out, &out_rank);
  ir_expr starts[SNT_MAX_RANK] = {0}, sizes[SNT_MAX_RANK], steps[SNT_MAX_RANK];
  for (uint32_t d = 0; d < rank; d++) sizes[d] = ir_at(r->to, r->args[1 - side])->type.dims[d], steps[d] = 1;
  for (uint32_t i = 0; i < t->count; i++) {
    const ir_expr label = labels[t->rank + i];
    const int32_t at = fusion_find_label(own, rank, label);
    if (at < 0 || fusion_find_label(out, out_rank, label) >= 0) return 0;
    starts[at] = l->first[i], sizes[at] = l->size[i];
  }
  return rebuild_slice(r, r->args[1 - side], rank, starts, sizes, steps);
}

static void check_finite(void *user, int64_t at, int64_t channel, float value) {
  (void)at, (void)channel;
  *(bool *)user &= isfinite(value) != 0;
}

bool rewrite_taps_finite(const rebuild *r, uint32_t node) {
  fusion_shown s;
  bool finite = true;
  if (r->c->options->numerics == SNT_NUMERICS_FAST) return true;
  if (!fusion_show(r->to, node, &s) || !(s.data = ir_const_data(r->to, s.constant))) return false;
  fusion_walk(&s, 0, check_finite, &finite);
  return finite;
}

uint32_t rewrite_live_taps(rebuild *r) {
  taps t;
  if (fusion_keeps_order(r->c->options)) return 0;
  for (uint32_t side = 0; side < 2; side++) {
    if (!rewrite_read_taps(r, r->args[side], &t)) continue;
    const live l = find_all_live(&t);
    if (!l.fewer || !rewrite_taps_finite(r, r->args[1 - side])) continue;
    uint32_t args[2];
    if (!(args[1 - side] = live_weights(r, &t, &l, side))) return 0;
    args[side] = live_window(r, &t, &l);
    return ir_add_like(r->to, r->from, r->node, args);
  }
  return 0;
}
