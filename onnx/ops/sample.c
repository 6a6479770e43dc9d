/* Resize, Upsample, GridSample, RoiAlign, AffineGrid. Scales are known at import, so an axis is resampled by a table of taps and weights; whole
   factors by repetition become a view. */
#include "onnx/ops.h"
#include <math.h>

typedef enum { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC } resize_mode;
typedef struct resize {
  resize_mode mode;
  const char *coordinates, *nearest, *policy;
  double cubic, outside; /* the cubic's coefficient; the value where tf_crop_and_resize reads outside */
  bool exclude, antialias;
  bool old; /* before operator set 11: to the nearest below, or above where there are fewer */
} resize;
typedef struct axis_plan {
  int64_t in, out;
  double length;            /* of the result before it is rounded down */
  double scale, start, end; /* start, end: the region of tf_crop_and_resize */
} axis_plan;
enum { MOST_TAPS = 64 };

/* Where position i of the result lies between the elements. */
static double source_position(const resize *r, const axis_plan *a, int64_t i) {
  const double x = (double)i, in = (double)a->in, out = (double)a->out;
  if (!strcmp(r->coordinates, "asymmetric")) return x / a->scale;
  if (!strcmp(r->coordinates, "align_corners")) return a->out == 1 ? 0 : x * (in - 1) / (a->length - 1);
  if (!strcmp(r->coordinates, "pytorch_half_pixel")) return a->out > 1 ? (x + 0.5) / a->scale - 0.5 : 0;
  if (!strcmp(r->coordinates, "tf_half_pixel_for_nn")) return (x + 0.5) / a->scale;
  if (!strcmp(r->coordinates, "tf_crop_and_resize"))
    return a->out > 1 ? a->start * (in - 1) + x * (a->end - a->start) * (in - 1) / (out - 1) : 0.5 * (a->start + a->end) * (in - 1);
  if (!strcmp(r->coordinates, "half_pixel_symmetric")) {
    const double adjustment = out / (a->scale * in), centre = in / 2;
    return centre * (1 - adjustment) + (x + 0.5) / a->scale - 0.5;
  }
  return (x + 0.5) / a->scale - 0.5;
}

static double nearest_of(const resize *r, const axis_plan *a, double x) {
  if (r->old && a->scale < 1) return ceil(x);
  if (!strcmp(r->nearest, "floor")) return floor(x);
  if (!strcmp(r->nearest, "ceil")) return ceil(x);
  if (!strcmp(r->nearest, "round_prefer_ceil")) return floor(x + 0.5);
  return ceil(x - 0.5);
}

/* The weight of a tap at this distance; `narrow` is below 1 where antialiasing widens the filter. */
static double filter(const resize *r, double distance, double narrow) {
  const double d = fabs(distance) * narrow, a = r->cubic;
  if (r->mode == RESIZE_LINEAR) return d < 1 ? 1 - d : 0;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static bool known_word(const char *word, const char *const *words, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!strcmp(words[i], word)) return true;
  return false;
}

static uint32_t tap_count(const resize *r, const axis_plan *a) {
  if (r->mode == RESIZE_NEAREST) return 1;
  const double reach = (r->mode == RESIZE_LINEAR ? 1 : 2) / (r->antialias && a->scale < 1 ? a->scale : 1);
  return (uint32_t)ceil(reach) * 2 + (r->antialias ? 2 : 0);
}

/* Indices and weights of one position. Taps outside are those of the edge, or weigh nothing if they are excluded. */
static void fill_taps(const resize *r, const axis_plan *a, double x, uint32_t taps, double *index, double *weight) {
  const double narrow = r->antialias && a->scale < 1 ? a->scale : 1, last = (double)a->in - 1;
  double sum = 0;
  const double first = floor(x) - taps / 2 + 1;
  for (uint32_t t = 0; t < taps; t++) {
    const double at = r->mode == RESIZE_NEAREST ? nearest_of(r, a, x) : first + t;
    const bool inside = at >= 0 && at <= last;
    weight[t] = r->mode == RESIZE_NEAREST ? 1 : filter(r, x - at, narrow);
    if (!inside && r->exclude) weight[t] = 0;
    index[t] = at < 0 ? 0 : at > last ? last : at;
    sum += weight[t];
  }
  if (r->mode != RESIZE_NEAREST && (r->exclude || r->antialias) && sum != 0)
    for (uint32_t t = 0; t < taps; t++) weight[t] /= sum;
}

/* Places of the result whose position lies outside get the value for that. */
static uint32_t fill_outside(onnx_call *c, const resize *r, uint32_t y, uint32_t axis, const axis_plan *a) {
  double *flags = ir_arena_take(onnx_arena(c), (size_t)a->out * sizeof *flags, 8);
  bool any = false;
  if (strcmp(r->coordinates, "tf_crop_and_resize") != 0 || !flags || !y) return y;
  for (int64_t i = 0; i < a->out; i++) {
    const double x = source_position(r, a, i);
    flags[i] = x < 0 || x > (double)a->in - 1;
    any |= flags[i] != 0;
  }
  if (!any) return y;
  ir_tensor type = {.dtype = SNT_BOOL, .rank = 1, .dims = {a->out}};
  ir_expr dims[SNT_MAX_RANK];
  for (uint32_t i = 0; i < onnx_type_of(c, y)->rank; i++) dims[i] = i == axis ? a->out : 1;
  const uint32_t mask = onnx_reshape(c, onnx_data(c, &type, flags), onnx_type_of(c, y)->rank, dims);
  return onnx_select(c, mask, onnx_like(c, y, r->outside), y);
}

static uint32_t resample_axis(onnx_call *c, const resize *r, uint32_t x, uint32_t axis, const axis_plan *a) {
  const uint32_t taps = tap_count(r, a);
  const size_t count = (size_t)a->out * taps;
  if (taps > MOST_TAPS || count > 1 << 24) return onnx_refuse(c, "a filter of %u elements", taps), 0;
  double *index = ir_arena_take(onnx_arena(c), count * sizeof *index, 8), *weight = ir_arena_take(onnx_arena(c), count * sizeof *weight, 8);
  if (!index || !weight) return 0;
  for (int64_t i = 0; i < a->out; i++) fill_taps(r, a, source_position(r, a, i), taps, index + i * taps, weight + i * taps);
  const ir_tensor wide = {.dtype = SNT_I32, .rank = 2, .dims = {a->out, taps}}, flat = {.dtype = SNT_I32, .rank = 1, .dims = {a->out}};
  ir_tensor weights = wide;
  weights.dtype = onnx_type_of(c, x)->dtype == SNT_F64 ? SNT_F64 : SNT_F32;
  if (r->mode == RESIZE_NEAREST) return fill_outside(c, r, onnx_gather(c, x, onnx_data(c, &flat, index), axis), axis, a);
  const uint32_t table = onnx_data(c, &wide, index), scales = onnx_data(c, &weights, weight);
  const uint32_t y = table && scales ? onnx_add(c, "resample %%%u, %%%u, %%%u, axis=%u", x, table, scales, axis) : 0;
  return fill_outside(c, r, y, axis, a);
}

/* Whole factors, each element repeated: a view that needs no fixed extent. */
static bool repeats(const resize *r, double scale) {
  if (r->mode != RESIZE_NEAREST || scale < 1 || scale != floor(scale)) return false;
  const bool half = !strcmp(r->coordinates, "half_pixel") || !strcmp(r->coordinates, "pytorch_half_pixel");
  if (!strcmp(r->coordinates, "asymmetric")) return !strcmp(r->nearest, "floor");
  return half && !strncmp(r->nearest, "round", 5);
}

typedef struct sizes {
  double scale[SNT_MAX_RANK], region[2 * SNT_MAX_RANK];
  int64_t out[SNT_MAX_RANK];
  bool fixed; /* out is given */
} sizes;

static uint32_t resize_axis(onnx_call *c, const resize *r, uint32_t x, uint32_t axis, const sizes *s, uint32_t rank) {
  axis_plan a = {.scale = s->scale[axis], .start = s->region[axis], .end = s->region[rank + axis]};
  const ir_tensor type = *onnx_type_of(c, x);
  if (!s->fixed && !(a.scale >= 1e-6 && a.scale <= 1e6)) return onnx_refuse(c, "scale %g", a.scale), 0;
  const bool fixed = expr_is_const(c->g->pool, type.dims[axis], &a.in), cropped = !strcmp(r->coordinates, "tf_crop_and_resize");
  if (!s->fixed && repeats(r, a.scale)) {
    ir_expr scales[SNT_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) scales[i] = i == axis ? (ir_expr)a.scale : 1;
    return a.scale == 1 ? x : onnx_add(c, "resize_nearest %%%u, scales=%s", x, onnx_list_text(c, rank, scales));
  }
  if (!s->fixed && a.scale == 1 && !cropped) return x;
  if (!fixed || a.in < 1 || a.in > INT32_MAX) return onnx_refuse(c, "axis %u must have a fixed extent", axis), 0;
  a.out = s->fixed ? s->out[axis] : (int64_t)floor((double)a.in * a.scale + 1e-9); /* of the whole, whatever is cropped */
  if (s->fixed) a.scale = s->scale[axis] > 0 ? s->scale[axis] : (double)a.out / (double)a.in;
  a.length = s->fixed ? (double)a.out : (double)a.in * a.scale;
  if (a.out < 1 || a.out > 1 << 24) return onnx_refuse(c, "axis %u would have extent %lld", axis, (long long)a.out), 0;
  if (a.out == a.in && a.scale == 1 && !cropped) return x;
  return resample_axis(c, r, x, axis, &a);
}

static bool read_resize(onnx_call *c, resize *r) {
  static const char *const coordinates[] = {"half_pixel",           "asymmetric",         "align_corners",       "pytorch_half_pixel",
                                            "tf_half_pixel_for_nn", "tf_crop_and_resize", "half_pixel_symmetric"};
  static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}, *const policies[] = {"stretch",
                                                                                                                          "not_larger",
                                                                                                                          "not_smaller"};
  const char *mode = onnx_lower(c, "mode", "nearest");
  const bool old = r->old = c->opset < 11;
  r->mode = !strcmp(mode, "nearest") ? RESIZE_NEAREST : !strcmp(mode, "linear") || !strcmp(mode, "bilinear") ? RESIZE_LINEAR : RESIZE_CUBIC;
  if (r->mode == RESIZE_CUBIC && strcmp(mode, "cubic") != 0) return onnx_refuse(c, "mode %.40s", mode);
  r->coordinates = onnx_text(c, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  r->nearest = onnx_text(c, "nearest_mode", old ? "floor" : "round_prefer_floor");
  r->policy = onnx_text(c, "keep_aspect_ratio_policy", "stretch"); /* of sizes; beside scales it says nothing */
  r->cubic = onnx_float(c, "cubic_coeff_a", -0.75);
  r->outside = onnx_float(c, "extrapolation_value", 0);
  r->exclude = onnx_int(c, "exclude_outside", 0) != 0;
  r->antialias = onnx_int(c, "antialias", 0) != 0 && r->mode != RESIZE_NEAREST;
  if (!known_word(r->coordinates, coordinates, IR_COUNT(coordinates)))
    return onnx_refuse(c, "coordinate_transformation_mode %.40s", r->coordinates);
  if (!known_word(r->nearest, nearest, IR_COUNT(nearest))) return onnx_refuse(c, "nearest_mode %.40s", r->nearest);
  return known_word(r->policy, policies, IR_COUNT(policies)) || onnx_refuse(c, "keep_aspect_ratio_policy %.40s", r->policy);
}

/* Values given for `axes` (all without), spread over the rank. */
static bool spread(onnx_call *c, const onnx_list *axes, uint32_t rank, uint32_t count, const double *from, double *to) {
  if (count != (axes->count ? axes->count : rank)) return onnx_refuse(c, "%u entries for rank %u", count, rank);
  for (uint32_t i = 0; i < count; i++) {
    int64_t number = i;
    uint32_t axis;
    if (axes->count) expr_is_const(c->g->pool, axes->at[i], &number);
    if (!onnx_axis(c, number, rank, &axis)) return false;
    to[axis] = from[i];
  }
  return true;
}

/* keep_aspect_ratio_policy: one scale for the axes that are resized. */
static void keep_ratio(onnx_call *c, const char *policy, const ir_tensor *type, const onnx_list *axes, sizes *s) {
  const bool smaller = !strcmp(policy, "not_larger");
  double scale = 0;
  if (!strcmp(policy, "stretch")) return;
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < type->rank; i++) {
      bool named = !axes->count;
      int64_t extent, axis;
      for (uint32_t k = 0; k < axes->count; k++)
        named |= expr_is_const(c->g->pool, axes->at[k], &axis) && (axis < 0 ? axis + type->rank : axis) == i;
      if (!named || !expr_is_const(c->g->pool, type->dims[i], &extent) || extent < 1) continue;
      const double own = (double)s->out[i] / (double)extent;
      if (pass == 0) scale = scale == 0 || (smaller ? own < scale : own > scale) ? own : scale;
      else s->scale[i] = scale, s->out[i] = (int64_t)floor(scale * (double)extent + 0.5);
    }
}

/* Sizes, 0 where it is the extent that is there already and open (a batch): that stays. */
static bool read_wanted(onnx_call *c, const ir_tensor *type, const onnx_list *axes, double *values, uint32_t *count) {
  const onnx_number *known = onnx_known(c, 3);
  if (!known) return onnx_in_numbers(c, 3, SNT_MAX_RANK, values, count);
  *count = onnx_count(c->in[3]);
  if (*count > SNT_MAX_RANK) return onnx_refuse(c, "%u sizes", *count);
  for (uint32_t i = 0; i < *count; i++) {
    int64_t size = 0, axis = i;
    uint32_t at;
    if (i < axes->count) expr_is_const(c->g->pool, axes->at[i], &axis);
    if (!onnx_axis(c, axis, type->rank, &at)) return false;
    if (!expr_is_const(c->g->pool, known[i].num, &size) && (known[i].den != 1 || known[i].num != type->dims[at]))
      return onnx_refuse(c, "the size of axis %u must be fixed, or what it is", at);
    values[i] = (double)size / (double)known[i].den;
  }
  return true;
}

static bool read_sizes(onnx_call *c, const resize *r, const ir_tensor *type, sizes *s) {
  const bool upsample = !strcmp(c->node->op, "Upsample"), old = c->opset < 11;
  const uint32_t by_scale = upsample || old ? 1 : 2, rank = type->rank;
  const onnx_list axes = onnx_int_list(c, "axes");
  double values[2 * SNT_MAX_RANK];
  uint32_t count = 0;
  *s = (sizes){.fixed = false};
  for (uint32_t i = 0; i < rank; i++) s->scale[i] = 1, s->region[rank + i] = 1;
  if (upsample && c->opset < 9) {
    const onnx_attr *a = onnx_find_attr(c, "scales");
    if (!a || a->kind != ONNX_FLOATS || a->floats.count != rank) return onnx_refuse(c, "scales are missing");
    for (uint32_t i = 0; i < rank; i++) s->scale[i] = (double)a->floats.at[i];
    return true;
  }
  if (!old && onnx_has(c, 1) && onnx_in_type(c, 1)->rank == 1 && onnx_in_type(c, 1)->dims[0] != 0) {
    if (!onnx_in_numbers(c, 1, IR_COUNT(values), values, &count)) return false;
    if (count % 2 || !spread(c, &axes, rank, count / 2, values, s->region) ||
        !spread(c, &axes, rank, count / 2, values + count / 2, s->region + rank))
      return false;
  }
  if (onnx_has(c, by_scale) && onnx_in_type(c, by_scale)->dims[0] != 0)
    return onnx_in_numbers(c, by_scale, SNT_MAX_RANK, values, &count) && spread(c, &axes, rank, count, values, s->scale);
  if (!onnx_has(c, 3)) return onnx_refuse(c, "neither scales nor sizes");
  double wanted[SNT_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) {
    int64_t extent = 0;
    s->scale[i] = 0;
    wanted[i] = expr_is_const(c->g->pool, type->dims[i], &extent) ? (double)extent : 0;
  }
  if (!read_wanted(c, type, &axes, values, &count) || !spread(c, &axes, rank, count, values, wanted)) return false;
  s->fixed = true;
  for (uint32_t i = 0; i < rank; i++) s->out[i] = (int64_t)wanted[i];
  keep_ratio(c, r->policy, type, &axes, s);
  return true;
}

bool onnx_op_resize(onnx_call *c) {
  resize r;
  sizes s;
  uint32_t x = onnx_in(c, 0);
  if (!x || !read_resize(c, &r)) return false;
  const ir_tensor type = *onnx_type_of(c, x);
  if (!read_sizes(c, &r, &type, &s)) return false;
  const bool widen = r.mode != RESIZE_NEAREST && !ir_dtypes[type.dtype].is_float;
  if (widen) x = onnx_cast(c, x, SNT_F32);
  for (uint32_t axis = 0; x && axis < type.rank; axis++) {
    int64_t extent;
    const bool known = expr_is_const(c->g->pool, type.dims[axis], &extent), whole = s.fixed && known && extent == s.out[axis];
    const bool cropped = !strcmp(r.coordinates, "tf_crop_and_resize") && (s.region[axis] != 0 || s.region[type.rank + axis] != 1);
    if (s.fixed && !s.out[axis] && !known) continue; /* a symbolic extent that stays */
    if (!whole || cropped) x = resize_axis(c, &r, x, axis, &s, type.rank);
  }
  if (widen && r.antialias) x = onnx_1(c, IR_OP_round, x); /* as those of pictures do; others are cut, as ONNX Runtime does it */
  return onnx_out(c, 0, widen ? onnx_cast(c, x, type.dtype) : x);
}

/* ---- grids and boxes ---- */
bool onnx_op_grid_sample(onnx_call *c) {
  const char *mode = onnx_text(c, "mode", c->opset < 20 ? "bilinear" : "linear"), *padding = onnx_text(c, "padding_mode", "zeros");
  const uint32_t x = onnx_in(c, 0), grid = onnx_in(c, 1);
  const bool corners = onnx_int(c, "align_corners", 0) != 0;
  if (!strncmp(mode, "bi", 2)) mode += 2;
  return x && grid &&
         onnx_out(
             c, 0,
             onnx_add(c, "grid_sample %%%u, %%%u, mode=%.20s, padding=%.20s%s", x, grid, mode, padding, corners ? ", align_corners" : ""));
}

bool onnx_op_roi_align(onnx_call *c) {
  const uint32_t v[] = {onnx_in(c, 0), onnx_in(c, 1), onnx_in(c, 2)};
  const char *frame = onnx_text(c, "coordinate_transformation_mode", c->opset < 16 ? "output_half_pixel" : "half_pixel");
  const long long height = onnx_int(c, "output_height", 1), width = onnx_int(c, "output_width", 1),
                  ratio = onnx_int(c, "sampling_ratio", 0);
  const char *mode = onnx_text(c, "mode", "avg");
  const double scale = onnx_float(c, "spatial_scale", 1);
  if (!v[0] || !v[1] || !v[2]) return false;
  return onnx_out(c, 0,
                  onnx_add(c, "roi_align %%%u, %%%u, %%%u, size=[%lld,%lld], length=%lld, scale=%a, mode=%.10s%s", v[0], v[1], v[2], height,
                           width, ratio < 0 ? 0 : ratio, scale, mode, strcmp(frame, "half_pixel") ? "" : ", half_pixel"));
}

/* theta [n, 2, 3] or [n, 3, 4] times the positions of a grid of that size. */
bool onnx_op_affine_grid(onnx_call *c) {
  const uint32_t theta = onnx_in(c, 0);
  const bool corners = onnx_int(c, "align_corners", 0) != 0;
  onnx_list size;
  if (!theta || !onnx_in_list(c, 1, &size)) return false;
  const uint32_t spatial = size.count - 2;
  const int32_t dtype = onnx_type_of(c, theta)->dtype;
  if (size.count < 4 || size.count > 5) return onnx_refuse(c, "size has %u entries", size.count);
  ir_expr dims[5];
  uint32_t parts[4];
  for (uint32_t i = 0; i < spatial; i++) dims[i] = size.at[2 + i];
  dims[spatial] = 1;
  for (uint32_t i = 0; i < spatial; i++) {
    int64_t extent;
    const uint32_t axis = spatial - 1 - i;
    if (!expr_is_const(c->g->pool, dims[axis], &extent) || extent < 1) return onnx_refuse(c, "size must be fixed");
    const double step = corners ? (extent > 1 ? 2.0 / (double)(extent - 1) : 0) : 2.0 / (double)extent, first = corners ? -1 : step / 2 - 1;
    parts[i] = onnx_2n(c, IR_OP_add, onnx_2n(c, IR_OP_mul, onnx_iota(c, dtype, spatial + 1, dims, axis), step), first);
  }
  parts[spatial] = onnx_broadcast(c, onnx_scalar(c, dtype, 1), spatial + 1, dims);
  const uint32_t points = onnx_concat(c, spatial, spatial + 1, parts);
  return points &&
         onnx_out(c, 0, onnx_add(c, "einsum %%%u, %%%u, labels=\"%s\"", theta, points, spatial == 2 ? "nij,hwj->nhwi" : "nij,dhwj->ndhwi"));
}

/* Which positions of `extent` lie in each of `cells` equal parts of a box, whose corners are whole positions: [boxes, cells, extent]. In integers: a part
   begins and ends between positions, or on one, which rounding must not move. */
static uint32_t cells_of_boxes(onnx_call *c, uint32_t boxes, int64_t column, double scale, int64_t cells, ir_expr extent) {
  const ir_expr rows = onnx_type_of(c, boxes)->dims[0], per_cell[] = {rows, cells, 1}, per_place[] = {rows, 1, extent},
                each[] = {rows, 1, 1};
  uint32_t corner[2];
  for (int i = 0; i < 2; i++) { /* half away from zero, as the C library rounds */
    const uint32_t at = onnx_2n(c, IR_OP_mul, onnx_reshape(c, onnx_slice(c, boxes, 1, column + 2 * i, 1, 1), 3, each), scale);
    const uint32_t up = at ? onnx_1(c, IR_OP_floor, onnx_2n(c, IR_OP_add, onnx_1(c, IR_OP_abs, at), 0.5)) : 0;
    corner[i] = up ? onnx_cast(c, onnx_2(c, IR_OP_mul, onnx_1(c, IR_OP_sign, at), up), SNT_I32) : 0;
  }
  const uint32_t span = corner[0] && corner[1]
                            ? onnx_2n(c, IR_OP_max, onnx_2n(c, IR_OP_add, onnx_2(c, IR_OP_sub, corner[1], corner[0]), 1), 1)
                            : 0;
  const uint32_t number = onnx_iota(c, SNT_I32, 3, per_cell, 1), place = onnx_iota(c, SNT_I32, 3, per_place, 2);
  const uint32_t start = span && number ? onnx_2(c, IR_OP_mul, number, span) : 0,
                 inside = start && place ? onnx_2(c, IR_OP_sub, place, corner[0]) : 0;
  if (!inside) return 0;
  const uint32_t from = onnx_2n(c, IR_OP_div, start, (double)cells),
                 to = onnx_2n(c, IR_OP_div, onnx_2n(c, IR_OP_add, onnx_2(c, IR_OP_add, start, span), (double)cells - 1), (double)cells);
  return from && to ? onnx_2(c, IR_OP_and, onnx_2(c, IR_OP_ge, inside, from), onnx_2(c, IR_OP_lt, inside, to)) : 0;
}

/* The largest along an axis of [boxes, channels, .., cells, extent..] where the mask holds. */
static uint32_t largest_within(onnx_call *c, uint32_t mask, uint32_t rank, const ir_expr *mask_dims, uint32_t x, uint32_t axis) {
  const uint32_t inside = onnx_reshape(c, mask, rank, mask_dims);
  return onnx_reduce(c, IR_OP_reduce_max, inside && x ? onnx_select(c, inside, x, onnx_like(c, x, -INFINITY)) : 0, 1u << axis, false);
}

/* Rows first, then columns; a cell that holds nothing is 0 (so is one of nothing but -inf). */
bool onnx_op_max_roi_pool(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0), boxes = onnx_in(c, 1);
  const onnx_list size = onnx_int_list(c, "pooled_shape");
  const double scale = onnx_float(c, "spatial_scale", 1);
  int64_t cells[2];
  if (!x || !boxes) return false;
  const ir_tensor type = *onnx_type_of(c, x);
  if (size.count != 2 || !expr_is_const(c->g->pool, size.at[0], &cells[0]) || !expr_is_const(c->g->pool, size.at[1], &cells[1]) ||
      cells[0] < 1 || cells[1] < 1)
    return onnx_refuse(c, "pooled_shape must be two extents");
  if (type.rank != 4 || onnx_type_of(c, boxes)->rank != 2)
    return onnx_refuse(c, "operands of rank %u and %u", type.rank, onnx_type_of(c, boxes)->rank);
  const ir_expr rows = onnx_type_of(c, boxes)->dims[0], channels = type.dims[1], height = type.dims[2], width = type.dims[3];
  const ir_expr image_dims[] = {rows, channels, 1, height, width}, high[] = {rows, 1, cells[0], height, 1};
  const ir_expr line_dims[] = {rows, channels, cells[0], 1, width}, wide[] = {rows, 1, 1, cells[1], width};
  const uint32_t exact = type.dtype == SNT_F64 ? boxes : onnx_cast(c, boxes, SNT_F32); /* positions are no 16-bit numbers */
  const uint32_t image = onnx_cast(c, onnx_reshape(c, onnx_slice(c, boxes, 1, 0, 1, 1), 1, &rows), SNT_I64);
  const uint32_t own = image ? onnx_reshape(c, onnx_gather(c, x, image, 0), 5, image_dims) : 0;
  const uint32_t lines = largest_within(c, cells_of_boxes(c, exact, 2, scale, cells[0], height), 5, high, own, 3);
  const uint32_t whole = onnx_reshape(c, lines, 5, line_dims);
  const uint32_t y = largest_within(c, cells_of_boxes(c, exact, 1, scale, cells[1], width), 5, wide, whole, 4);
  return y && onnx_out(c, 0, onnx_select(c, onnx_2n(c, IR_OP_eq, y, -INFINITY), onnx_like(c, y, 0), y));
}
