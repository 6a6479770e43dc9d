/* Rules of grown graphs: many elements into one. Reductions, scans, rows, contractions, convolutions, pools, attention. */
#include "conformance/grow.h"
#include <math.h>
#include <string.h>

enum { SHAPE = GROW_RANK * GROW_WORD + 8, PRODUCTS = 1 << 17 };

static bool is_line(const grow_value *v) { return grow_is_float(v) && v->rank > 0; }
static bool is_matrix(const grow_value *v) { return grow_is_number(v) && v->rank > 1 && v->rank < 5; }
static bool is_float_matrix(const grow_value *v) { return grow_is_float(v) && v->rank > 1; }
static bool is_image(const grow_value *v) { return grow_is_float(v) && v->rank == 4; }

/* The largest magnitude that a type holds with room to spare. */
static double hard_limit(uint8_t dtype) { return dtype == SNT_F16 ? 30000 : 1e30; }

/* v, small enough that `terms` times it stays within its type. */
static grow_value *fit_terms(grower *g, grow_value *v, double terms) {
  if (!v || !grow_is_float(v) || grow_size(v) * terms <= hard_limit(v->dtype)) return v;
  const double most = hard_limit(v->dtype) / terms;
  return grow_confine(g, v, -most, most);
}

/* ---- reductions ---- */

static uint32_t choose_axes(grower *g, uint32_t rank, int32_t *axes) {
  uint32_t count = 0;
  const uint32_t mask = grow_choose(g, 1u << rank);
  for (uint32_t i = 0; i < rank; i++)
    if (mask >> i & 1) axes[count++] = (int32_t)i;
  if (!count) axes[count++] = (int32_t)rank - 1;
  return count;
}

static double reduce_dims(grow_value *as, const int32_t *axes, uint32_t count, bool keep) {
  double terms = 1;
  for (uint32_t i = count; i-- > 0;) {
    const uint32_t axis = (uint32_t)axes[i];
    terms *= (double)as->dims[axis].value;
    as->dims[axis] = grow_number(1);
    if (keep) continue;
    memmove(as->dims + axis, as->dims + axis + 1, (as->rank - axis - 1u) * sizeof *as->dims);
    as->rank--;
  }
  return terms;
}

/* The reduced value spread over what it came from, and combined with it: normalisations begin so. */
static bool spread_back(grower *g, const grow_value *from, const grow_value *reduced) {
  static const char *const names[] = {"sub", "add", "max"};
  char shape[SHAPE];
  grow_value as = *from;
  grow_shape(shape, sizeof shape, from->dims, from->rank);
  as.low = reduced->low, as.high = reduced->high, as.is_whole = reduced->is_whole;
  grow_value *wide = grow_line(g, &as, "broadcast %s, shape=%s", reduced->name, shape);
  if (!wide) return false;
  wide->is_read = true;
  const double most = grow_size(from) + grow_size(reduced);
  as.low = -most, as.high = most, as.is_whole = from->is_whole && reduced->is_whole;
  return grow_settle(g, grow_line(g, &as, "%s %s, %s", names[grow_choose(g, 3)], from->name, wide->name)) != NULL;
}

static bool rule_reduce(grower *g) {
  static const char *const names[] = {"sum", "max", "min", "sum"};
  grow_value *v = grow_pick(g, grow_has_axis);
  if (!v) return false;
  int32_t axes[GROW_RANK];
  const uint32_t count = choose_axes(g, v->rank, axes), op = grow_choose(g, 4);
  const uint32_t after = grow_choose(g, 4);
  const bool keep = after >= 2;
  grow_value probe = *v;
  const double terms = reduce_dims(&probe, axes, count, keep);
  if (op % 3 == 0 && !(v = fit_terms(g, v, terms))) return false;
  v->is_read = true;
  const grow_value from = *v;
  grow_value as = from;
  char list[48];
  (void)reduce_dims(&as, axes, count, keep);
  grow_list(list, sizeof list, axes, count);
  if (op % 3 == 0) as.low *= terms, as.high *= terms;
  grow_value *r = grow_settle(g, grow_line(g, &as, "reduce.%s %s, axes=%s%s", names[op], from.name, list, keep ? ", keep" : ""));
  if (!r || after != 3) return r != NULL;
  r->is_read = true;
  const grow_value reduced = *r;
  return spread_back(g, &from, &reduced);
}

static bool rule_argmax(grower *g) {
  grow_value *v = grow_pick(g, grow_has_axis);
  if (!v) return false;
  const int32_t axis = (int32_t)grow_choose(g, v->rank);
  grow_value as = *v;
  (void)reduce_dims(&as, &axis, 1, false);
  as.dtype = SNT_I64, as.low = 0, as.high = GROW_ELEMENTS;
  return grow_line(g, &as, "reduce.arg%s %s, axes=[%d]", grow_choose(g, 2) ? "min" : "max", v->name, axis) != NULL;
}

/* Composites along axes: statistics. */
static bool rule_statistic(grower *g) {
  static const char *const names[] = {"mean", "variance", "norm_l1", "norm_l2", "logsumexp"};
  grow_value *v = grow_pick(g, is_line);
  const uint32_t op = grow_choose(g, 5);
  if (!v || !(v = grow_confine(g, v, -60, 60))) return false;
  v->is_read = true;
  int32_t axes[GROW_RANK];
  char list[48];
  const uint32_t count = choose_axes(g, v->rank, axes);
  grow_value as = *v;
  const double terms = reduce_dims(&as, axes, count, true), size = grow_size(v);
  grow_list(list, sizeof list, axes, count);
  as.high = op == 0 || op == 4 ? size + 10
            : op == 1          ? size * size
                               : size * terms,
  as.low = op == 0 || op == 4 ? -as.high : 0, as.is_whole = false;
  if (as.high > hard_limit(as.dtype)) return false;
  return grow_settle(g, grow_line(g, &as, "%s %s, axes=%s, keep", names[op], v->name, list)) != NULL;
}

static bool rule_scan(grower *g) {
  static const char *const names[] = {"sum", "max", "min"};
  grow_value *v = grow_pick(g, grow_has_axis);
  if (!v) return false;
  const uint32_t op = grow_choose(g, 3), axis = grow_choose(g, v->rank), way = grow_choose(g, 4);
  if (op == 0 && !(v = fit_terms(g, v, (double)v->dims[axis].value))) return false;
  v->is_read = true;
  grow_value as = *v;
  const double terms = op == 0 ? (double)v->dims[axis].value : 1;
  as.low = fmin(0, as.low * terms), as.high = fmax(0, as.high * terms);
  return grow_settle(g, grow_line(g, &as, "scan.%s %s, axis=%u%s%s", names[op], v->name, axis, (way & 1) && op == 0 ? ", exclusive" : "",
                                  way & 2 ? ", reverse" : "")) != NULL;
}

/* h = a * h + b along an axis, where |a| <= 1. */
static bool rule_recurrence(grower *g) {
  grow_value *v = grow_pick(g, is_line);
  if (!v || !(v = grow_confine(g, v, -1, 1))) return false;
  v->is_read = true;
  const grow_value a = *v;
  const uint32_t axis = grow_choose(g, a.rank), reverse = grow_choose(g, 2);
  grow_value *b = fit_terms(g, grow_pick_like(g, &a), (double)a.dims[axis].value);
  if (!b) return false;
  b->is_read = true;
  grow_value as = a;
  as.high = grow_size(b) * (double)a.dims[axis].value, as.low = -as.high, as.is_whole = false;
  return grow_settle(g, grow_line(g, &as, "scan.linear %s, %s, axis=%u%s", a.name, b->name, axis, reverse ? ", reverse" : "")) != NULL;
}

/* The order of lines; only of what every device computes alike. */
static bool rule_order(grower *g) {
  const grow_value *v = grow_pick(g, grow_has_axis);
  if (!v || !v->is_whole) return false;
  const uint32_t axis = grow_choose(g, v->rank), descending = grow_choose(g, 2);
  grow_value as = *v;
  as.dtype = SNT_I64, as.low = 0, as.high = GROW_ELEMENTS;
  return grow_line(g, &as, "argsort %s, axis=%u%s", v->name, axis, descending ? ", descending" : "") != NULL;
}

/* ---- rows ---- */

static bool rule_row(grower *g) {
  static const struct {
    const char *name;
    double low, high;
  } rows[] = {{"softmax", 0, 1},        {"layernorm", -64, 64}, {"rmsnorm", -64, 64},
              {"log_softmax", -130, 0}, {"lp_norm", -1, 1},     {"hardmax", 0, 1}};
  grow_value *v = grow_pick(g, is_line);
  const uint32_t op = grow_choose(g, 6);
  if (!v || !(v = grow_confine(g, v, -60, 60))) return false;
  v->is_read = true;
  grow_value as = *v;
  const bool has_axis = op != 1 && op != 2;
  const uint32_t axis = has_axis && grow_choose(g, 3) == 2 ? 0 : as.rank - 1u;
  as.low = rows[op].low, as.high = rows[op].high, as.is_whole = op == 5 && as.is_whole;
  const grow_value *scale = !has_axis && grow_choose(g, 2) ? grow_port(g, as.dtype, 1, &as.dims[as.rank - 1]) : NULL;
  char name[8];
  memcpy(name, v->name, sizeof name);
  if (scale) {
    g->values[g->count - 1].is_read = true;
    as.low *= 4, as.high *= 4;
    return grow_settle(g, grow_line(g, &as, "%s %s, %s", rows[op].name, name, scale->name)) != NULL;
  }
  if (!has_axis) return grow_line(g, &as, "%s %s", rows[op].name, name) != NULL;
  return grow_line(g, &as, "%s %s, axis=%u", rows[op].name, name, axis) != NULL;
}

/* ---- contractions ---- */

/* What a product of such operands is kept as, and its other operand: now and then a wider type than theirs, which may differ. */
static bool choose_types(grower *g, uint8_t own, uint8_t *other, uint8_t *sums) {
  static const uint8_t floats[] = {SNT_F32, SNT_F16, SNT_BF16}, bytes[] = {SNT_I8, SNT_U8, SNT_I16};
  *other = *sums = own;
  const bool is_float = ir_dtypes[own].is_float;
  if (own == SNT_F64 || ir_dtypes[own].bytes > (is_float ? 4 : 2) || grow_choose(g, 3) < 2) return false;
  *sums = is_float ? SNT_F32 : SNT_I32;
  if (grow_choose(g, 2)) *other = (is_float ? floats : bytes)[grow_choose(g, 3)];
  return true;
}

/* The second operand: a new port [k, d] or [d, k], or any value with one of these shapes. */
static grow_value *choose_factor(grower *g, uint8_t dtype, const grow_dim *k, bool turned) {
  static const uint8_t extents[] = {4, 1, 3, 7, 8, 16, 17, 33, 64};
  if (grow_choose(g, 2))
    for (uint32_t i = g->count; i-- > 0;) {
      grow_value *v = &g->values[i];
      if (v->dtype == dtype && v->rank == 2 && !strcmp(v->dims[turned].text, k->text)) return v;
    }
  grow_dim dims[2];
  dims[turned] = *k, dims[!turned] = grow_number(extents[grow_choose(g, 9)]);
  return grow_weights(g, dtype, 2, dims);
}

static bool rule_matmul(grower *g) {
  grow_value *v = grow_pick(g, is_matrix);
  if (!v) return false;
  const bool turned = grow_choose(g, 2);
  const grow_dim k = v->dims[v->rank - 1];
  uint8_t other, sums;
  const bool wide = choose_types(g, v->dtype, &other, &sums);
  const double root = sqrt(hard_limit(sums) / (double)k.value);
  if (grow_is_float(v) && !(v = grow_confine(g, v, -fmin(root, 1000), fmin(root, 1000)))) return false;
  v->is_read = true;
  const grow_value a = *v;
  grow_value *b = choose_factor(g, other, &k, turned);
  if (b && grow_is_float(b)) b = grow_confine(g, b, -fmin(root, 1000), fmin(root, 1000));
  if (!b) return false;
  b->is_read = true;
  grow_value as = a;
  as.dims[as.rank - 1] = b->dims[!turned];
  if (grow_elements(&as) > GROW_ELEMENTS || grow_elements(&as) * (uint64_t)k.value > PRODUCTS) return false;
  const double most = grow_size(&a) * grow_size(b) * (double)k.value;
  as.low = -most, as.high = most, as.is_whole = a.is_whole && b->is_whole, as.dtype = sums;
  int32_t labels[GROW_RANK + 1];
  char left[48], out[48];
  for (int32_t i = 0; i <= as.rank; i++) labels[i] = i;
  grow_list(left, sizeof left, labels, as.rank);
  labels[as.rank - 1] = as.rank;
  grow_list(out, sizeof out, labels, as.rank);
  return grow_settle(g, grow_line(g, &as, "contract %s, %s, lhs=%s, rhs=[%d,%d], out=%s%s%s", a.name, b->name, left,
                                  turned ? as.rank : as.rank - 1, turned ? as.rank - 1 : as.rank, out, wide ? ", dtype=" : "",
                                  wide ? ir_dtypes[sums].name : "")) != NULL;
}

/* A value with itself: every row with every row, batched over the axes before. */
static bool rule_gram(grower *g) {
  grow_value *v = grow_pick(g, is_float_matrix);
  if (!v || v->rank > 4) return false;
  const uint32_t rank = v->rank;
  const double terms = (double)v->dims[rank - 1].value, most = fmin(sqrt(hard_limit(v->dtype) / terms), 1000);
  if (!(v = grow_confine(g, v, -most, most))) return false;
  v->is_read = true;
  grow_value as = *v;
  as.dims[rank - 1] = as.dims[rank - 2];
  if (grow_elements(&as) > GROW_ELEMENTS || (double)grow_elements(&as) * terms > PRODUCTS) return false;
  int32_t left[GROW_RANK + 1], right[GROW_RANK + 1], out[GROW_RANK + 1];
  for (uint32_t i = 0; i < rank; i++) left[i] = right[i] = out[i] = (int32_t)i;
  right[rank - 2] = (int32_t)rank, out[rank - 1] = (int32_t)rank;
  char texts[3][48];
  grow_list(texts[0], 48, left, rank), grow_list(texts[1], 48, right, rank), grow_list(texts[2], 48, out, rank);
  const double size = grow_size(v) * grow_size(v) * terms;
  as.low = -size, as.high = size;
  return grow_settle(g, grow_line(g, &as, "contract %s, %s, lhs=%s, rhs=%s, out=%s", as.name, as.name, texts[0], texts[1], texts[2])) !=
         NULL;
}

/* ---- images ---- */

/* Four axes from a value of fewer, so that images are met more often. */
static grow_value *choose_image(grower *g) {
  grow_value *v = grow_pick(g, is_image);
  if (v || !(v = grow_pick(g, is_float_matrix)) || v->rank > 4) return v && v->rank == 4 ? v : NULL;
  grow_value as = *v;
  char shape[SHAPE];
  for (; as.rank < 4; as.rank++) {
    memmove(as.dims + 1, as.dims, as.rank * sizeof *as.dims);
    as.dims[0] = grow_number(1);
  }
  grow_shape(shape, sizeof shape, as.dims, 4);
  grow_value *made = grow_line(g, &as, "reshape %s, shape=%s", v->name, shape);
  if (made) made->is_read = true;
  return made;
}

/* The extent of one axis behind windows, as windows count; false: there is none, or it is symbolic and would not stay as it is. */
static bool slide(grow_dim *d, int64_t taps, int64_t stride, int64_t pads) {
  if (!grow_is_literal(d)) return stride == 1 && pads == taps - 1;
  const int64_t room = d->value + pads - taps;
  if (room < 0) return false;
  *d = grow_number(room / stride + 1);
  return true;
}

static bool rule_conv(grower *g) {
  static const uint8_t channels[] = {4, 1, 3, 8, 6};
  grow_value *v = choose_image(g);
  const int64_t taps_h = 1 + grow_choose(g, 3), taps_w = 1 + grow_choose(g, 3), stride = 1 + (grow_choose(g, 4) == 3);
  static const uint8_t far[] = {1, 1, 1, 2, 3, 9};
  const int64_t rate = far[grow_choose(g, 6)], reach_h = (taps_h - 1) * rate, reach_w = (taps_w - 1) * rate;
  const bool same = grow_choose(g, 2) == 0, deep = grow_choose(g, 3) == 2;
  if (!v || !grow_is_literal(&v->dims[1]) || !(v = grow_confine(g, v, -40, 40))) return false;
  v->is_read = true;
  const int64_t in = v->dims[1].value, out = deep ? in : channels[grow_choose(g, 5)];
  const grow_dim w[4] = {grow_number(out), grow_number(deep ? 1 : in), grow_number(taps_h), grow_number(taps_w)};
  grow_value as = *v;
  const int64_t pads[4] = {same ? reach_h / 2 : 0, same ? reach_w / 2 : 0, same ? reach_h - reach_h / 2 : 0,
                           same ? reach_w - reach_w / 2 : 0};
  as.dims[1] = w[0];
  if (!slide(&as.dims[2], reach_h + 1, stride, pads[0] + pads[2]) || !slide(&as.dims[3], reach_w + 1, stride, pads[1] + pads[3]))
    return false;
  const double terms = (double)(w[1].value * taps_h * taps_w);
  if (grow_elements(&as) > GROW_ELEMENTS || (double)grow_elements(&as) * terms > PRODUCTS || 160 * terms > hard_limit(as.dtype))
    return false;
  grow_value *weights = grow_weights(g, as.dtype, 4, w);
  if (!weights) return false;
  weights->is_read = true;
  const double most = 4 * grow_size(&as) * terms;
  as.low = -most, as.high = most;
  as.is_whole = as.is_whole && weights->is_whole && (taps_h != 3 || taps_w != 3); /* 3x3 may be computed in tiles, with fractions */
  return grow_settle(g, grow_line(g, &as, "conv %s, %s, stride=[%d,%d], dilation=[%d,%d], pads=[%d,%d,%d,%d]%s%s", as.name, weights->name,
                                  (int)stride, (int)stride, (int)rate, (int)rate, (int)pads[0], (int)pads[1], (int)pads[2], (int)pads[3],
                                  deep ? ", groups=" : "", deep ? w[0].text : "")) != NULL;
}

static bool rule_pool(grower *g) {
  grow_value *v = choose_image(g);
  const int64_t taps = 2 + grow_choose(g, 2), stride = 1 + grow_choose(g, 2);
  const uint32_t kind = grow_choose(g, 3);
  const int64_t pad = grow_choose(g, 2);
  if (!v) return false;
  v->is_read = true;
  grow_value as = *v;
  if (!slide(&as.dims[2], taps, stride, 2 * pad) || !slide(&as.dims[3], taps, stride, 2 * pad) || grow_elements(&as) > GROW_ELEMENTS)
    return false;
  as.is_whole = as.is_whole && kind != 1;
  if (kind == 2) { /* the window itself */
    as.low *= (double)(taps * taps), as.high *= (double)(taps * taps);
    if (grow_size(&as) > hard_limit(as.dtype)) return false;
    const uint32_t n = g->lines++ % 1000;
    grow_text(g, "  %%w%u = window %s, axis=2, size=[%d,%d], stride=[%d,%d], low=[%d,%d], high=[%d,%d]\n", n, as.name, (int)taps, (int)taps,
              (int)stride, (int)stride, (int)pad, (int)pad, (int)pad, (int)pad);
    return grow_settle(g, grow_line(g, &as, "reduce.sum %%w%u, axes=[4,5]", n)) != NULL;
  }
  return grow_line(g, &as, "%s %s, size=[%d,%d], stride=[%d,%d], pads=[%d,%d,%d,%d]", kind ? "avgpool" : "maxpool", as.name, (int)taps,
                   (int)taps, (int)stride, (int)stride, (int)pad, (int)pad, (int)pad, (int)pad) != NULL;
}

static bool is_short(const grow_value *v) {
  return grow_is_float(v) && v->rank >= 2 && v->rank <= 4 && grow_is_literal(&v->dims[v->rank - 1]) && v->dims[v->rank - 1].value <= 64;
}

/* A value attends to itself or to another of its shape. */
static bool rule_attention(grower *g) {
  grow_value *v = grow_pick(g, is_short);
  if (!v || !(v = grow_confine(g, v, -8, 8))) return false;
  v->is_read = true;
  grow_value as = *v;
  const bool causal = grow_choose(g, 2);
  const grow_value *keys = grow_pick_like(g, &as), *values = grow_pick_like(g, &as);
  if (!keys || !values || !(keys = grow_confine(g, (grow_value *)keys, -8, 8))) return false;
  if ((double)grow_elements(&as) * (double)as.dims[as.rank - 2].value > PRODUCTS) return false;
  grow_value result = *values;
  result.is_whole = false;
  g->values[keys - g->values].is_read = true;
  return grow_line(g, &result, "attention %s, %s, %s%s", as.name, keys->name, values->name, causal ? ", causal" : "") != NULL;
}

const grow_rule grow_sums[] = {rule_reduce, rule_matmul, rule_row,  rule_reduce, rule_scan,      rule_matmul,     rule_statistic, rule_conv,
                               rule_gram,   rule_row,    rule_pool, rule_argmax, rule_attention, rule_recurrence, rule_order};
const uint32_t grow_sum_count = sizeof grow_sums / sizeof *grow_sums;
