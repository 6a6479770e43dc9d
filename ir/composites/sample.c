/* Sampling at positions between the elements: by a table of taps and weights an axis, by a grid of coordinates, by boxes. Planes are flattened
   to [c, n * extents..], so that one gather reads a tap of every channel; for boxes to [n * extents.., c], since what says where a sample lies takes longer
   than reading it, and is the same for all channels. */
#include "ir/composites/private.h"

static uint32_t mul(composite_call *c, uint32_t a, uint32_t b) { return step_2(c, IR_OP_mul, a, b); }
static uint32_t add(composite_call *c, uint32_t a, uint32_t b) { return step_2(c, IR_OP_add, a, b); }
static uint32_t sub(composite_call *c, uint32_t a, uint32_t b) { return step_2(c, IR_OP_sub, a, b); }
static uint32_t addn(composite_call *c, uint32_t a, double b) { return step_2n(c, IR_OP_add, a, b); }
static uint32_t muln(composite_call *c, uint32_t a, double b) { return step_2n(c, IR_OP_mul, a, b); }

/* Few taps (linear, cubic) are a sum of products, pointwise: vectors of any axis go through it, where a reduction's would lie along its taps. */
enum { FEW_TAPS = 4 };

static uint32_t sum_of_taps(composite_call *c, uint32_t x, uint32_t index, uint32_t weights, uint32_t axis, int64_t taps) {
  const ir_expr extent = type_of(c, index)->dims[0];
  uint32_t sum = 0;
  for (int64_t t = 0; t < taps; t++) {
    const uint32_t at = step_reshape(c, step_slice(c, index, 1, (ir_expr)t, 1, 1), 1, &extent), picked = step_gather(c, x, at, axis);
    const uint32_t weight = step_reshape(c, step_slice(c, weights, 1, (ir_expr)t, 1, 1), 1, &extent);
    if (!picked || !weight) return 0;
    const ir_tensor shape = *type_of(c, picked);
    const uint32_t part = mul(c, picked, step_along(c, weight, axis, &shape));
    sum = sum ? add(c, sum, part) : part;
  }
  return sum;
}

/* out[.., o, ..] = sum over t of weights[o, t] x[.., index[o, t], ..] */
void build_resample(composite_call *c) {
  const uint32_t x = step_widen(c, c->args[0]), index = c->args[1];
  const ir_tensor shape = *type_of(c, x), taps = *type_of(c, index);
  const uint32_t axis = call_axis(c, IR_PARAM_axis, -1, shape.rank);
  if (taps.rank != 2 || !ir_same_shape(&taps, type_of(c, c->args[2])) || shape.rank == SNT_MAX_RANK) {
    call_mistake(c, "index and weights must be [extent, taps], and x have 7 axes at most");
    return;
  }
  const uint32_t weights = step_cast(c, c->args[2], shape.dtype);
  int64_t few;
  if (weights && expr_is_const(c->g->pool, taps.dims[1], &few) && few <= FEW_TAPS) {
    const uint32_t sum = sum_of_taps(c, x, index, weights, axis, few);
    c->results[0] = sum ? step_cast(c, sum, type_of(c, c->args[0])->dtype) : 0;
    return;
  }
  const uint32_t picked = step_gather(c, x, index, axis);
  if (!picked || !weights) return;
  const ir_tensor wide = *type_of(c, picked);
  const ir_expr axes[] = {axis, axis + 1};
  const ir_attr_value attrs[] = {{IR_ATTR_axes, 2, axes}, {IR_ATTR_shape, wide.rank, wide.dims}};
  const uint32_t spread = ir_add_node(c->g, IR_OP_broadcast, 1, &weights, 2, attrs, NULL);
  const uint32_t y = step_reduce(c, IR_OP_reduce_sum, mul(c, picked, spread), 1u << (axis + 1), false);
  c->results[0] = step_cast(c, y, type_of(c, c->args[0])->dtype);
}

/* ---- planes read at flat positions ---- */
enum { MAX_SPATIAL = 3 };
typedef enum { OUTSIDE_ZERO, OUTSIDE_BORDER, OUTSIDE_REFLECT } outside_mode;
typedef struct planes {
  uint32_t flat; /* [c, n * extents..], or rows of channels: [n * extents.., c] */
  bool rows;
  uint32_t spatial; /* axes of a plane */
  int64_t extent[MAX_SPATIAL];
  uint32_t image; /* i32, the number of the image that each sample reads; same rank as the coordinates */
  outside_mode outside;
  bool corners; /* the outermost positions are the centres of the outermost elements */
} planes;

static bool read_planes(composite_call *c, uint32_t x, planes *p) {
  const ir_tensor shape = *type_of(c, x);
  if (shape.rank < 4 || shape.rank > 2 + MAX_SPATIAL) return call_mistake(c, "x must be [n, c, h, w] or [n, c, d, h, w]"), false;
  p->spatial = shape.rank - 2u;
  uint32_t perm[SNT_MAX_RANK];
  ir_expr dims[2] = {shape.dims[1], shape.dims[1]}, *places = &dims[p->rows ? 0 : 1];
  for (uint32_t i = 0; i < shape.rank; i++) perm[i] = p->rows ? i == 0 ? 0 : i + 1 < shape.rank ? i + 1 : 1 : i < 2 ? 1 - i : i;
  *places = shape.dims[0];
  for (uint32_t i = 0; i < p->spatial; i++) {
    if (!expr_is_const(c->g->pool, shape.dims[2 + i], &p->extent[i]) || p->extent[i] < 1)
      return call_mistake(c, "spatial extents must be fixed"), false;
    *places = expr_mul(c->g->pool, *places, shape.dims[2 + i]);
  }
  p->flat = step_reshape(c, step_transpose(c, x, perm), 2, dims);
  return p->flat != 0;
}

/* |x - low| goes up to the far border and back again. */
static uint32_t reflected(composite_call *c, uint32_t x, double low, double high) {
  if (high <= low) return muln(c, x, 0);
  const uint32_t away = step_1(c, IR_OP_abs, addn(c, x, -low)), phase = step_2n(c, IR_OP_rem, away, 2 * (high - low));
  const uint32_t back = sub(c, step_number(c, phase, 2 * (high - low)), phase);
  return addn(c, step_2(c, IR_OP_min, phase, back), low);
}

static uint32_t clamped(composite_call *c, uint32_t x, double low, double high) {
  return step_2n(c, IR_OP_min, step_2n(c, IR_OP_max, x, low), high);
}

static uint32_t brought_inside(composite_call *c, const planes *p, uint32_t axis, uint32_t x) {
  const double last = (double)p->extent[axis] - 1;
  if (p->outside == OUTSIDE_BORDER) return clamped(c, x, 0, last);
  if (p->outside == OUTSIDE_REFLECT) return p->corners ? reflected(c, x, 0, last) : reflected(c, x, -0.5, last + 0.5);
  return x;
}

/* What is known of each sample, for all channels. */
static uint32_t of_channels(composite_call *c, const planes *p, uint32_t v, const ir_tensor *shape) {
  static const ir_expr axes[SNT_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
  const ir_attr_value attrs[] = {{IR_ATTR_axes, shape->rank - 1u, p->rows ? axes : axes + 1}, {IR_ATTR_shape, shape->rank, shape->dims}};
  return v ? ir_add_node(c->g, IR_OP_broadcast, 1, &v, 2, attrs, NULL) : 0;
}

/* The elements [c, samples..], or [samples.., c], at whole coordinates (floats); outside they are 0 or brought inside. */
static uint32_t read_tap(composite_call *c, const planes *p, const uint32_t *at) {
  uint32_t flat = p->image, inside = 0;
  for (uint32_t i = 0; i < p->spatial; i++) {
    const double last = (double)p->extent[i] - 1;
    uint32_t whole = brought_inside(c, p, i, at[i]);
    if (p->outside == OUTSIDE_ZERO) {
      const uint32_t low = step_2n(c, IR_OP_ge, whole, 0), high = step_2n(c, IR_OP_le, whole, last), both = step_2(c, IR_OP_and, low, high);
      inside = inside ? step_2(c, IR_OP_and, inside, both) : both;
    }
    whole = step_cast(c, clamped(c, whole, 0, last), SNT_I32);
    flat = add(c, muln(c, flat, (double)p->extent[i]), whole);
  }
  const uint32_t read = step_gather(c, p->flat, flat, p->rows ? 0 : 1);
  if (!inside || !read) return read;
  const ir_tensor shape = *type_of(c, read);
  inside = of_channels(c, p, inside, &shape);
  return step_select(c, inside, read, step_number(c, read, 0));
}

static uint32_t weighted_tap(composite_call *c, const planes *p, const uint32_t *at, uint32_t weight) {
  const uint32_t read = read_tap(c, p, at);
  if (!read) return 0;
  const ir_tensor shape = *type_of(c, read);
  return mul(c, read, of_channels(c, p, weight, &shape));
}

/* ---- by a grid of coordinates from -1 to 1 ---- */
typedef struct tap_weights {
  uint32_t count, at[MAX_SPATIAL][4], weight[MAX_SPATIAL][4];
} tap_weights;

static void linear_weights(composite_call *c, uint32_t x, uint32_t axis, tap_weights *t) {
  const uint32_t below = step_1(c, IR_OP_floor, x), far = sub(c, x, below);
  t->count = 2;
  t->at[axis][0] = below, t->at[axis][1] = addn(c, below, 1);
  t->weight[axis][0] = sub(c, step_number(c, far, 1), far), t->weight[axis][1] = far;
}

/* The cubic through four taps (a = -0.75): ((a + 2) d - (a + 3)) d^2 + 1 near, ((a d - 5 a) d + 8 a) d - 4 a far. */
static uint32_t cubic_weight(composite_call *c, uint32_t d, bool near) {
  const double a = -0.75;
  if (near) {
    const uint32_t square = mul(c, d, d), slope = addn(c, muln(c, d, a + 2), -(a + 3));
    return addn(c, mul(c, slope, square), 1);
  }
  const uint32_t bend = addn(c, muln(c, d, a), -5 * a), slope = addn(c, mul(c, bend, d), 8 * a);
  return addn(c, mul(c, slope, d), -4 * a);
}

static void cubic_weights(composite_call *c, uint32_t x, uint32_t axis, tap_weights *t) {
  const uint32_t below = step_1(c, IR_OP_floor, x), far = sub(c, x, below), near = sub(c, step_number(c, far, 1), far);
  const uint32_t distance[] = {addn(c, far, 1), far, near, addn(c, near, 1)};
  t->count = 4;
  for (uint32_t k = 0; k < 4; k++) {
    t->at[axis][k] = addn(c, below, (double)k - 1);
    t->weight[axis][k] = cubic_weight(c, distance[k], k == 1 || k == 2);
  }
}

/* The sum over all combinations of taps. */
static uint32_t weighted_taps(composite_call *c, const planes *p, const tap_weights *t) {
  uint32_t total = 0, combinations = 1;
  for (uint32_t i = 0; i < p->spatial; i++) combinations *= t->count;
  for (uint32_t k = 0; k < combinations; k++) {
    uint32_t at[MAX_SPATIAL], weight = 0;
    for (uint32_t i = 0, rest = k; i < p->spatial; i++, rest /= t->count) {
      const uint32_t own = t->weight[i][rest % t->count];
      at[i] = t->at[i][rest % t->count];
      weight = weight ? mul(c, weight, own) : own;
    }
    const uint32_t part = weighted_tap(c, p, at, weight);
    total = total ? add(c, total, part) : part;
  }
  return total;
}

/* Coordinate `axis` of the grid (its last entry runs along the last axis) in elements. */
static uint32_t grid_coordinate(composite_call *c, const planes *p, uint32_t grid, uint32_t axis) {
  const ir_tensor shape = *type_of(c, grid);
  const uint32_t given = step_slice(c, grid, shape.rank - 1u, p->spatial - 1 - axis, 1, 1);
  const uint32_t x = addn(c, step_reshape(c, given, shape.rank - 1u, shape.dims), 1);
  const double size = (double)p->extent[axis];
  return p->corners ? muln(c, x, (size - 1) / 2) : addn(c, muln(c, x, size / 2), -0.5);
}

static bool read_word(composite_call *c, ir_param_key key, uint32_t count, const char *const *words, uint32_t *out) {
  const char *word = c->params[key] ? c->params[key]->word : words[0];
  for (*out = 0; *out < count; ++*out)
    if (strcmp(word, words[*out]) == 0) return true;
  return call_mistake(c, "%s may not be %.40s", ir_param_infos[key].name, word), false;
}

void build_grid_sample(composite_call *c) {
  static const char *const modes[] = {"linear", "nearest", "cubic"}, *const paddings[] = {"zeros", "border", "reflection"};
  planes p = {.corners = call_has(c, IR_PARAM_align_corners)};
  uint32_t mode, outside;
  const uint32_t x = step_widen(c, c->args[0]), grid = step_cast(c, c->args[1], type_of(c, x)->dtype);
  if (!read_word(c, IR_PARAM_mode, 3, modes, &mode) || !read_word(c, IR_PARAM_padding, 3, paddings, &outside)) return;
  if (!x || !grid || !read_planes(c, x, &p)) return;
  p.outside = (outside_mode)outside;
  const ir_tensor shape = *type_of(c, grid);
  if (shape.rank != p.spatial + 2) {
    call_mistake(c, "the grid must be [n, extents.., coordinates]");
    return;
  }
  p.image = step_iota(c, SNT_I32, shape.rank - 1u, shape.dims, 0);
  tap_weights t;
  uint32_t at[MAX_SPATIAL] = {0};
  for (uint32_t i = 0; i < p.spatial; i++) {
    const uint32_t raw = grid_coordinate(c, &p, grid, i);
    if (mode == 1) at[i] = step_1(c, IR_OP_round, raw);
    else if (mode == 0) linear_weights(c, brought_inside(c, &p, i, raw), i, &t);
    else cubic_weights(c, raw, i, &t); /* each tap is brought inside by itself */
  }
  const uint32_t y = mode == 1 ? read_tap(c, &p, at) : weighted_taps(c, &p, &t);
  uint32_t perm[SNT_MAX_RANK];
  for (uint32_t i = 0; i < SNT_MAX_RANK; i++) perm[i] = i < 2 ? 1 - i : i;
  c->results[0] = step_cast(c, step_transpose(c, y, perm), type_of(c, c->args[0])->dtype);
}

/* ---- by boxes ---- */
typedef struct boxes {
  planes p;
  uint32_t rois, image; /* [r, 4]; [r] */
  int64_t size[2], ratio;
  double scale;
  bool half; /* positions are those of pixel centres, boxes may be smaller than a pixel */
} boxes;

/* Where the boxes begin along an axis (0: y), and their lengths: [r, 1..]. */
static uint32_t box_edge(composite_call *c, const boxes *b, uint32_t axis, uint32_t rank, uint32_t *length) {
  const ir_expr column[] = {type_of(c, b->rois)->dims[0], 1, 1, 1};
  uint32_t edge[2];
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t given = step_reshape(c, step_slice(c, b->rois, 1, 1 - axis + 2 * i, 1, 1), rank, column);
    edge[i] = addn(c, muln(c, given, b->scale), b->half ? -0.5 : 0);
  }
  *length = sub(c, edge[1], edge[0]);
  if (!b->half) *length = step_2n(c, IR_OP_max, *length, 1);
  return edge[0];
}

/* Coordinates [r, size * ratio] of the samples along an axis. */
static uint32_t box_samples(composite_call *c, const boxes *b, uint32_t axis) {
  const ir_expr dims[] = {type_of(c, b->rois)->dims[0], b->size[axis] * b->ratio};
  uint32_t length;
  const uint32_t edge = box_edge(c, b, axis, 2, &length);
  const uint32_t at = addn(c, step_iota(c, type_of(c, b->rois)->dtype, 2, dims, 1), 0.5);
  const uint32_t offset = mul(c, at, muln(c, length, 1.0 / (double)(b->size[axis] * b->ratio)));
  return add(c, edge, offset);
}

static uint32_t inside_box_reach(composite_call *c, uint32_t x, int64_t extent) {
  const uint32_t low = step_2n(c, IR_OP_ge, x, -1);
  return step_2(c, IR_OP_and, low, step_2n(c, IR_OP_le, x, (double)extent));
}

/* The samples of a cell that lie near a position of an axis, where a cell has one for each position that it is long, rounded up: their distance is above a
   half, so that at most NEAR samples lie within one of a position, wherever the box is and however large. */
enum { NEAR = 7 };
typedef struct near_samples {
  uint32_t weight, distance,
      inside;                  /* [r, cells, extent, NEAR]: what the position weighs in a sample, which may lie outside x or not be there */
  uint32_t count, first, last; /* [r, 1, 1, 1] how many there are; [r, cells, 1, 1] the outermost */
} near_samples;

static void find_near(composite_call *c, const boxes *b, uint32_t axis, near_samples *n) {
  const int32_t dtype = type_of(c, b->rois)->dtype;
  const int64_t extent = b->p.extent[axis];
  const ir_expr dims[] = {type_of(c, b->rois)->dims[0], b->size[axis], extent, NEAR}, cells[] = {dims[0], dims[1], 1, 1};
  uint32_t length;
  const uint32_t edge = box_edge(c, b, axis, 4, &length);
  const uint32_t cell = step_2n(c, IR_OP_div, length, (double)b->size[axis]);
  n->count = step_2n(c, IR_OP_max, step_1(c, IR_OP_ceil, cell), 0);
  const uint32_t some = step_2n(c, IR_OP_max, n->count, 1), step = step_2(c, IR_OP_div, cell, some);
  const uint32_t start = add(c, edge, mul(c, step_iota(c, dtype, 4, cells, 1), cell)), place = step_iota(c, dtype, 4, dims, 2);
  n->first = add(c, start, muln(c, step, 0.5)), n->last = add(c, start, mul(c, addn(c, some, -0.5), step));
  /* the last sample that lies at most at the position before */
  const uint32_t way = sub(c, addn(c, place, -1), start), stride = step_2n(c, IR_OP_max, step, 0.25);
  uint32_t sample = step_1(c, IR_OP_floor, addn(c, step_2(c, IR_OP_div, way, stride), -0.5));
  sample = step_2n(c, IR_OP_max, step_2(c, IR_OP_min, sample, addn(c, some, -1)), 0);
  sample = add(c, sample, step_iota(c, dtype, 4, dims, 3));
  const uint32_t x = add(c, start, mul(c, addn(c, sample, 0.5), step)), there = step_2(c, IR_OP_lt, sample, n->count);
  n->inside = step_2(c, IR_OP_and, there, inside_box_reach(c, x, extent));
  n->distance = step_1(c, IR_OP_abs, sub(c, clamped(c, x, 0, (double)extent - 1), place));
  n->weight = step_2n(c, IR_OP_max, addn(c, muln(c, n->distance, -1), 1), 0);
}

/* What each position of an axis weighs in the mean of a cell, [r, cells, extent]. */
static uint32_t box_means(composite_call *c, const boxes *b, uint32_t axis) {
  near_samples n;
  find_near(c, b, axis, &n);
  const uint32_t sum = step_reduce(c, IR_OP_reduce_sum, step_select(c, n.inside, n.weight, step_number(c, n.weight, 0)), 1u << 3, false);
  return step_2(c, IR_OP_div, sum,
                step_reshape(c, step_2n(c, IR_OP_max, n.count, 1), 3, (const ir_expr[]){type_of(c, b->rois)->dims[0], 1, 1}));
}

/* Means of cells as two products with what positions weigh. */
static uint32_t mean_cells(composite_call *c, const boxes *b, uint32_t x) {
  enum { R, C, H, W, P, Q };
  const contract_desc across = {.lhs = {{R, C, H, W}, 4}, .rhs = {{R, Q, W}, 3}, .out = {{R, C, H, Q}, 4}},
                      down = {.lhs = {{R, C, H, Q}, 4}, .rhs = {{R, P, H}, 3}, .out = {{R, C, P, Q}, 4}};
  const uint32_t columns = box_means(c, b, 1), rows = box_means(c, b, 0);
  const uint32_t lines = step_contract(c, step_gather(c, x, b->image, 0), columns, &across);
  return step_contract(c, lines, rows, &down);
}

/* The most and the least that each position of an axis weighs in a sample that it is part of, [r, cells, extent] (below 0: in none), and whether some sample
   of a cell may be 0: it lies outside or on the edge, or there is none, [r, cells]. */
typedef struct box_extremes {
  uint32_t most, least, zero;
} box_extremes;

static box_extremes find_extremes(composite_call *c, const boxes *b, uint32_t axis) {
  near_samples n;
  find_near(c, b, axis, &n);
  const uint32_t part = step_2(c, IR_OP_and, n.inside, step_2n(c, IR_OP_le, n.distance, 1));
  const uint32_t low = step_2n(c, IR_OP_le, n.first, 0), high = step_2n(c, IR_OP_ge, n.last, (double)b->p.extent[axis] - 1);
  const uint32_t none = step_2n(c, IR_OP_lt, n.count, 1), edge = step_2(c, IR_OP_or, low, high);
  box_extremes e = {.zero = step_2(c, IR_OP_or, edge, none)};
  e.most = step_reduce(c, IR_OP_reduce_max, step_select(c, part, n.weight, step_number(c, n.weight, -1)), 1u << 3, false);
  e.least = step_reduce(c, IR_OP_reduce_min, step_select(c, part, n.weight, step_number(c, n.weight, 2)), 1u << 3, false);
  return e;
}

/* Of an axis whose positions take part or not, which goes. */
static uint32_t greatest(composite_call *c, uint32_t value, uint32_t weight, uint32_t axis) {
  if (!value || !weight) return 0;
  const ir_tensor shape = *type_of(c, value);
  const uint32_t part = step_broadcast(c, step_2n(c, IR_OP_ge, weight, 0), &shape);
  const uint32_t lowest = step_number(c, value, shape.dtype == SNT_F64 ? -0x1.fffffffffffffp1023 : -0x1.fffffep127);
  return step_reduce(c, IR_OP_reduce_max, step_select(c, part, value, lowest), 1u << axis, false);
}

/* The greatest product of a position and its weights in any sample: a positive one where both axes weigh most, a negative one where they weigh least. */
static uint32_t greatest_cells(composite_call *c, const boxes *b, uint32_t x) {
  const ir_expr r = type_of(c, b->rois)->dims[0], channels = type_of(c, x)->dims[1], h = b->p.extent[0], w = b->p.extent[1];
  const ir_expr picture[] = {r, channels, h, 1, w}, columns[] = {r, 1, 1, b->size[1], w}, lines[] = {r, channels, 1, h, b->size[1]},
                rows[] = {r, 1, b->size[0], h, 1}, down_only[] = {r, 1, b->size[0], 1}, across_only[] = {r, 1, 1, b->size[1]};
  const box_extremes across = find_extremes(c, b, 1), down = find_extremes(c, b, 0);
  const uint32_t given = step_reshape(c, step_gather(c, x, b->image, 0), 5, picture), wide = step_reshape(c, across.most, 5, columns);
  const uint32_t most = greatest(c, mul(c, given, wide), wide, 4),
                 least = greatest(c, mul(c, given, step_reshape(c, across.least, 5, columns)), wide, 4);
  const uint32_t tall = step_reshape(c, down.most, 5, rows), low = step_reshape(c, down.least, 5, rows);
  const uint32_t positive = mul(c, step_reshape(c, most, 5, lines), tall), negative = mul(c, step_reshape(c, least, 5, lines), low);
  const uint32_t y = greatest(c, step_2(c, IR_OP_max, positive, negative), tall, 3), zero = step_reshape(c, down.zero, 4, down_only);
  const uint32_t may_be_zero = step_2(c, IR_OP_or, zero, step_reshape(c, across.zero, 4, across_only));
  if (!y || !may_be_zero) return 0;
  const ir_tensor shape = *type_of(c, y);
  const uint32_t chosen = step_broadcast(c, may_be_zero, &shape);
  return step_select(c, chosen, step_2n(c, IR_OP_max, y, 0), y);
}

/* Taps below and above, and their weights; a sample more than an element outside weighs nothing. */
static void box_weights(composite_call *c, uint32_t x, uint32_t axis, int64_t extent, tap_weights *t) {
  const double last = (double)extent - 1;
  const uint32_t inside = inside_box_reach(c, x, extent);
  linear_weights(c, clamped(c, x, 0, last), axis, t);
  t->at[axis][1] = step_2n(c, IR_OP_min, t->at[axis][1], last);
  for (uint32_t k = 0; k < 2; k++) t->weight[axis][k] = step_select(c, inside, t->weight[axis][k], step_number(c, x, 0));
}

/* [r, a] beside [r, b] as [r, a, b]: `axis` 0 for a. */
static uint32_t spread(composite_call *c, uint32_t v, uint32_t axis, const ir_tensor *shape) {
  const ir_expr axes[] = {0, 1 + axis};
  const ir_attr_value attrs[] = {{IR_ATTR_axes, 2, axes}, {IR_ATTR_shape, 3, shape->dims}};
  return v ? ir_add_node(c->g, IR_OP_broadcast, 1, &v, 2, attrs, NULL) : 0;
}

static bool read_boxes(composite_call *c, uint32_t x, boxes *b) {
  if (!read_planes(c, x, &b->p)) return false;
  b->rois = step_cast(c, c->args[1], type_of(c, x)->dtype);
  b->image = step_cast(c, c->args[2], SNT_I32);
  b->ratio = call_int(c, IR_PARAM_length, 0);
  b->scale = call_number(c, IR_PARAM_scale, 1);
  b->half = call_has(c, IR_PARAM_half_pixel);
  if (b->p.spatial != 2 || !b->rois || type_of(c, b->rois)->rank != 2)
    return call_mistake(c, "needs x [n, c, h, w] and boxes [r, 4]"), false;
  if (b->ratio < 0 || b->ratio > 1 << 10) return call_mistake(c, "length, the number of samples a side of a cell, is out of range"), false;
  if (!call_list(c, IR_PARAM_size, 2, 1, b->size)) return false;
  for (uint32_t i = 0; i < 2; i++)
    if (b->size[i] < 1 || b->size[i] > 1 << 20) return call_mistake(c, "size is out of range"), false;
  return true;
}

void build_roi_align(composite_call *c) {
  boxes b = {.p = {.outside = OUTSIDE_BORDER, .rows = true}};
  const uint32_t x = step_widen(c, c->args[0]);
  const bool top = call_has(c, IR_PARAM_mode) && strcmp(c->params[IR_PARAM_mode]->word, "max") == 0;
  if (!read_boxes(c, x, &b)) return;
  if (!b.ratio) {
    c->results[0] = step_cast(c, top ? greatest_cells(c, &b, x) : mean_cells(c, &b, x), type_of(c, c->args[0])->dtype);
    return;
  }
  const ir_expr count = type_of(c, b.rois)->dims[0], channels = type_of(c, x)->dims[1];
  const ir_tensor grid = {.rank = 3, .dims = {count, b.size[0] * b.ratio, b.size[1] * b.ratio}};
  tap_weights t = {.count = 2};
  for (uint32_t i = 0; i < 2; i++) {
    box_weights(c, box_samples(c, &b, i), i, b.p.extent[i], &t);
    for (uint32_t k = 0; k < 2; k++) t.at[i][k] = spread(c, t.at[i][k], i, &grid), t.weight[i][k] = spread(c, t.weight[i][k], i, &grid);
  }
  b.p.image = step_along(c, b.image, 0, &grid);
  uint32_t best = 0;
  for (uint32_t k = 0; k < 4; k++) {
    const uint32_t at[] = {t.at[0][k & 1], t.at[1][k >> 1]};
    const uint32_t part = weighted_tap(c, &b.p, at, mul(c, t.weight[0][k & 1], t.weight[1][k >> 1]));
    best = best ? step_2(c, top ? IR_OP_max : IR_OP_add, best, part) : part;
  }
  const ir_expr cells[] = {count, b.size[0], b.ratio, b.size[1], b.ratio, channels};
  const uint32_t perm[] = {0, 3, 1, 2}, split = step_reshape(c, best, 6, cells);
  uint32_t y = step_reduce(c, top ? IR_OP_reduce_max : IR_OP_reduce_sum, split, 1u << 2 | 1u << 4, false);
  if (!top) y = muln(c, y, 1.0 / (double)(b.ratio * b.ratio));
  c->results[0] = step_cast(c, step_transpose(c, y, perm), type_of(c, c->args[0])->dtype);
}
