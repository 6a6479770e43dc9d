/* Movements whose parameters are numbers or operands that must be known, and tensors made from nothing but numbers. */
#include "onnx/ops.h"
#include "onnx/import_private.h"
#include <math.h>

/* ---- axes of extent 1 ---- */
bool onnx_op_squeeze(onnx_call *c) {
  const ir_tensor *t = onnx_in_type(c, 0);
  uint32_t ones = 0, mask, rank = 0;
  ir_expr dims[SNT_MAX_RANK];
  if (!t) return onnx_refuse(c, "input 0 is missing");
  for (uint32_t i = 0; i < t->rank; i++) ones |= (uint32_t)(t->dims[i] == 1) << i;
  if (!onnx_axes(c, c->opset >= 13 ? 1 : 0, t->rank, ones, &mask)) return false;
  const bool named = c->opset >= 13 ? onnx_has(c, 1) : onnx_find_attr(c, "axes") != NULL;
  for (uint32_t i = 0; i < t->rank; i++) {
    if (!named && t->dims[i] < 0 && !expr_proves_lt(c->g->pool, 1, t->dims[i])) /* a literal, 0 among them, is known */
      return onnx_refuse(c, "no axes are named, and whether axis %u has extent 1 is open", i);
    if (!(mask >> i & 1)) dims[rank++] = t->dims[i];
    else if (t->dims[i] != 1) return onnx_refuse(c, "axis %u does not have extent 1", i);
  }
  return onnx_out(c, 0, onnx_reshape(c, onnx_in(c, 0), rank, dims));
}

bool onnx_op_unsqueeze(onnx_call *c) {
  const ir_tensor *t = onnx_in_type(c, 0);
  onnx_list axes = {0};
  ir_expr dims[SNT_MAX_RANK];
  uint32_t mask = 0, axis;
  if (!t) return onnx_refuse(c, "input 0 is missing");
  if (c->opset < 13) axes = onnx_int_list(c, "axes");
  else if (!onnx_in_list(c, 1, &axes)) return false;
  const uint32_t rank = t->rank + axes.count;
  if (rank > SNT_MAX_RANK) return onnx_refuse(c, "rank %u; at most %d is possible", rank, SNT_MAX_RANK);
  for (uint32_t i = 0; i < axes.count; i++) {
    int64_t number;
    if (!expr_is_const(c->g->pool, axes.at[i], &number)) return onnx_refuse(c, "axes must be fixed");
    if (!onnx_axis(c, number, rank, &axis)) return false;
    if (mask >> axis & 1) return onnx_refuse(c, "axis %u is named twice", axis);
    mask |= 1u << axis;
  }
  for (uint32_t i = 0, from = 0; i < rank; i++) dims[i] = mask >> i & 1 ? 1 : t->dims[from++];
  return onnx_out(c, 0, onnx_reshape(c, onnx_in(c, 0), rank, dims));
}

/* Of the axes that parts share, the least that an extent may be is all that it is. */
static bool fit_beside(onnx_call *c, uint32_t i, uint32_t along) {
  const onnx_value *v = c->in[i];
  const uint32_t axis = v->count_axis;
  if (!v->count || axis == along) return true;
  ir_expr least = v->type.dims[axis];
  bool known = false;
  for (uint32_t k = 0; k < c->in_count; k++) {
    const ir_tensor *other = onnx_in_type(c, k);
    if (!other || axis >= other->rank || other->dims[axis] == least || !expr_proves_le(c->g->pool, other->dims[axis], least)) continue;
    least = other->dims[axis], known = !onnx_is_counted(c, k, axis);
  }
  return onnx_cut_in(c, i, axis, least) && (!known || onnx_drop_in(c, i));
}

/* How many places of each part are used, or are not: [parts]. */
static uint32_t places_of_parts(onnx_call *c, uint32_t axis, const uint32_t *parts, bool used) {
  uint32_t *each = IR_NEW_ARRAY(c->im->temp, uint32_t, c->in_count);
  const ir_expr one = 1;
  for (uint32_t i = 0; each && i < c->in_count; i++) {
    const ir_expr count = onnx_dim_in(c, i, axis), extent = onnx_type_of(c, parts[i])->dims[axis];
    each[i] = onnx_reshape(c, onnx_extent(c, used ? count : expr_sub(c->g->pool, extent, count), SNT_I64), 1, &one);
  }
  return each ? onnx_concat(c, 0, c->in_count, each) : 0;
}

/* Parts of which less is used than there may be: place p is that of the parts beside each other, moved on by what is not used before it. */
static bool join_counted(onnx_call *c, uint32_t axis, const uint32_t *parts) {
  ir_expr count = 0;
  for (uint32_t i = 0; i < c->in_count; i++) count = expr_add(c->g->pool, count, onnx_dim_in(c, i, axis));
  const ir_expr most = onnx_most(c, count), dims[2] = {most, c->in_count}, column[2] = {most, 1};
  const uint32_t used = places_of_parts(c, axis, parts, true), unused = places_of_parts(c, axis, parts, false);
  const uint32_t place = onnx_iota(c, SNT_I64, 1, &most, 0), ends = used ? onnx_add(c, "scan.sum %%%u, axis=0", used) : 0;
  const uint32_t behind = onnx_2(c, IR_OP_ge, onnx_reshape(c, place, 2, column), onnx_broadcast(c, ends, 2, dims));
  const uint32_t before = onnx_select(c, behind, unused, onnx_scalar(c, SNT_I64, 0));
  const uint32_t at = onnx_2(c, IR_OP_add, place, onnx_reduce(c, IR_OP_reduce_sum, before, 2, false));
  const uint32_t moved = onnx_gather(c, onnx_concat(c, axis, c->in_count, parts), at, axis);
  count = onnx_late_sum(c, count, onnx_reduce(c, IR_OP_reduce_sum, used, 1, false));
  for (uint32_t i = 0; i < c->in_count; i++)
    if (onnx_is_counted(c, i, axis) && !onnx_drop_in(c, i)) return false;
  return count && onnx_out_counted(c, 0, moved, count, axis, 0);
}

bool onnx_op_concat(onnx_call *c) {
  const ir_tensor *first = onnx_in_type(c, 0);
  uint32_t *parts = IR_NEW_ARRAY(c->im->temp, uint32_t, c->in_count), axis;
  if (!first || !parts) return onnx_refuse(c, "input 0 is missing");
  if (c->opset >= 4 && !onnx_find_attr(c, "axis")) return onnx_refuse(c, "attribute axis is missing");
  if (!onnx_axis(c, onnx_int(c, "axis", 1), first->rank, &axis)) return false;
  bool counted = false;
  for (uint32_t i = 0; i < c->in_count; i++) {
    if (!onnx_in_type(c, i)) return onnx_refuse(c, "input %u is missing", i);
    if (!fit_beside(c, i, axis)) return false;
    if (!onnx_demand_beside(c, onnx_in_type(c, 0), onnx_in_type(c, i), axis)) return false;
    counted |= onnx_is_counted(c, i, axis);
  }
  for (uint32_t i = 0; i < c->in_count; i++)
    if (!(parts[i] = onnx_in(c, i))) return false;
  return counted ? join_counted(c, axis, parts) : onnx_out(c, 0, onnx_concat(c, axis, c->in_count, parts));
}

/* ---- slices: ends are clamped to the extent as numpy does it ---- */
static ir_expr clamped(expr_pool *pool, ir_expr e, ir_expr low, ir_expr high) { return expr_min(pool, expr_max(pool, e, low), high); }

/* A bound that counts from the end if it is negative; false: its sign depends on symbols, unless they are demanded to be small enough. */
static bool from_end(onnx_call *c, ir_expr *bound, ir_expr extent) {
  expr_pool *pool = c->g->pool;
  int64_t low, high;
  expr_bounds(pool, *bound, &low, &high);
  if (low >= 0) return true;
  if (high >= 0) return onnx_demand_within(c->im, *bound), false;
  *bound = low < -(INT64_C(1) << 40) ? expr_int(pool, -1) : expr_add(pool, *bound, extent);
  if (low < -(INT64_C(1) << 40)) *bound = expr_int(pool, INT32_MIN);
  return true;
}

/* The greatest number of a type says "to the end", also of extents that could be greater as far as anyone knows. */
static bool is_end(const expr_pool *pool, ir_expr bound) {
  int64_t number;
  return expr_is_const(pool, bound, &number) && number >= INT32_MAX;
}

/* *count: the extent, which may be a late number, of x; of the slice. */
static uint32_t slice_axis(onnx_call *c, uint32_t x, uint32_t axis, ir_expr start, ir_expr end, int64_t step, ir_expr *count) {
  expr_pool *pool = c->g->pool;
  const ir_expr extent = *count, last = expr_sub(pool, extent, 1), none = expr_int(pool, -1);
  if (step == 0 || !from_end(c, &start, extent) || !from_end(c, &end, extent))
    return c->im->again ? 0 : onnx_refuse(c, "bounds of unknown sign, or step 0"), 0;
  start = step > 0 ? clamped(pool, start, 0, extent) : is_end(pool, start) ? last : clamped(pool, start, 0, last);
  end = step < 0 ? clamped(pool, end, none, last) : is_end(pool, end) ? extent : clamped(pool, end, 0, extent);
  const ir_expr span = step > 0 ? expr_sub(pool, end, start) : expr_sub(pool, start, end);
  const ir_expr size = expr_max(pool, expr_ceil_div(pool, span, expr_int(pool, step > 0 ? step : -step)), 0);
  *count = size;
  if (start == 0 && size == extent && step == 1) return x;
  return onnx_slice(c, x, axis, size == 0 ? 0 : start, onnx_is_late(c->im, size) ? onnx_most(c, size) : size, step);
}

/* A bound that is a value, as a place along an axis of `extent` places. */
static uint32_t place_of(onnx_call *c, uint32_t input, uint32_t extent) {
  const uint32_t at = onnx_cast(c, onnx_scalar_in(c, input), SNT_I64);
  const uint32_t front = onnx_select(c, onnx_2n(c, IR_OP_lt, at, 0), onnx_2(c, IR_OP_add, at, extent), at);
  return onnx_2(c, IR_OP_min, onnx_2n(c, IR_OP_max, front, 0), extent);
}

/* Of one axis, between bounds of which one at least is a value: as many places as there can be, those that there are in front (bounded.c). */
static bool slice_by_data(onnx_call *c) {
  onnx_list axes = {0}, steps = {0};
  int64_t number = 0, step = 1;
  uint32_t x = onnx_in(c, 0), axis;
  for (uint32_t i = 1; i < 3; i++)
    if (!onnx_has(c, i) || onnx_count(c->in[i]) != 1) return onnx_refuse(c, "bounds that depend on data, of not one axis");
  if ((onnx_has(c, 3) && !onnx_in_list(c, 3, &axes)) || (onnx_has(c, 4) && !onnx_in_list(c, 4, &steps)) || !x) return false;
  if (axes.count && !expr_is_const(c->g->pool, axes.at[0], &number)) return onnx_refuse(c, "axes must be fixed");
  if (steps.count && (!expr_is_const(c->g->pool, steps.at[0], &step) || step != 1))
    return onnx_refuse(c, "bounds that depend on data, and a step that is not 1");
  const ir_tensor type = *onnx_type_of(c, x);
  if (!onnx_axis(c, number, type.rank, &axis)) return false;
  if (c->in[0]->count && c->in[0]->count_axis != axis) return onnx_refuse(c, "two axes whose extents depend on data");
  const uint32_t extent = onnx_extent(c, onnx_dim_in(c, 0, axis), SNT_I64);
  const uint32_t start = place_of(c, 1, extent), end = place_of(c, 2, extent);
  const ir_expr count = onnx_late_number(c, onnx_2n(c, IR_OP_max, onnx_2(c, IR_OP_sub, end, start), 0), type.dims[axis]);
  const onnx_number *first = onnx_known(c, 1);
  if (!first || first->num != 0) x = onnx_gather(c, x, onnx_2(c, IR_OP_add, onnx_iota(c, SNT_I64, 1, &type.dims[axis], 0), start), axis);
  return onnx_drop_in(c, 0) && onnx_out_counted(c, 0, x, count, axis, 0);
}

bool onnx_op_slice(onnx_call *c) {
  onnx_list starts = {0}, ends = {0}, axes = {0}, steps = {0};
  const bool by_attr = c->opset < 10;
  if (!by_attr && onnx_has(c, 1) && onnx_has(c, 2) && (!onnx_is_listed(c, 1) || !onnx_is_listed(c, 2))) return slice_by_data(c);
  if (by_attr) starts = onnx_int_list(c, "starts"), ends = onnx_int_list(c, "ends"), axes = onnx_int_list(c, "axes");
  else if (!onnx_in_list(c, 1, &starts) || !onnx_in_list(c, 2, &ends)) return false;
  if (onnx_has(c, 3) && !onnx_in_list(c, 3, &axes)) return false;
  if (onnx_has(c, 4) && !onnx_in_list(c, 4, &steps)) return false;
  uint32_t x = onnx_in(c, 0), late = UINT32_MAX;
  if (!x) return false;
  const uint32_t rank = onnx_type_of(c, x)->rank;
  ir_expr count = 0;
  if (starts.count != ends.count || (axes.count && axes.count != starts.count) || (steps.count && steps.count != starts.count))
    return onnx_refuse(c, "starts, ends, axes and steps differ in length");
  for (uint32_t i = 0; i < starts.count && x; i++) {
    int64_t number = i, step = 1;
    uint32_t axis;
    if (axes.count && !expr_is_const(c->g->pool, axes.at[i], &number)) return onnx_refuse(c, "axes must be fixed");
    if (steps.count && !expr_is_const(c->g->pool, steps.at[i], &step)) return onnx_refuse(c, "steps must be fixed");
    if (!onnx_axis(c, number, rank, &axis)) return false;
    ir_expr extent = axis == late ? count : onnx_dim_in(c, 0, axis);
    x = slice_axis(c, x, axis, starts.at[i], ends.at[i], step, &extent);
    if (axis != late && !onnx_is_late(c->im, extent) && !onnx_is_counted(c, 0, axis)) continue;
    if (late != UINT32_MAX && axis != late) return onnx_refuse(c, "two axes whose extents depend on data");
    late = axis, count = extent;
  }
  if (late == UINT32_MAX) return onnx_out(c, 0, x);
  return (!onnx_is_counted(c, 0, late) || onnx_drop_in(c, 0)) && onnx_out_counted(c, 0, x, count, late, 0);
}

/* Whether every entry of the batch is as long as the axis: layers that go backwards are written so, with lengths made of shapes. */
static bool is_whole(onnx_call *c, ir_expr extent) {
  const onnx_number *length = onnx_known(c, 1);
  for (uint32_t i = 0; length && i < onnx_count(c->in[1]); i++)
    if (length[i].num != extent || length[i].den != 1) return false;
  return length != NULL;
}

bool onnx_op_reverse_sequence(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  const int64_t batch = onnx_int(c, "batch_axis", 1);
  uint32_t axis;
  if (!x || !onnx_axis(c, onnx_int(c, "time_axis", 0), onnx_type_of(c, x)->rank, &axis)) return false;
  const ir_expr extent = onnx_type_of(c, x)->dims[axis], last = expr_max(c->g->pool, expr_sub(c->g->pool, extent, 1), 0);
  if (is_whole(c, extent)) return onnx_out(c, 0, onnx_slice(c, x, axis, last, extent, -1));
  const uint32_t lengths = onnx_in(c, 1);
  return lengths &&
         onnx_out(c, 0, onnx_add(c, "reverse_sequence %%%u, %%%u, axis=%u, batch_axis=%lld", x, lengths, axis, (long long)batch));
}

/* Equal parts, unless sizes are given (an attribute before 13); what is left over makes the last part of num_outputs smaller. */
enum { MOST_PARTS = 256 };
/* A list of known numbers in parts of known lengths: each part is known. False: that it is not. */
static bool split_known(onnx_call *c, const onnx_list *sizes) {
  const onnx_number *at = onnx_known(c, 0);
  const uint32_t count = c->out_count, all = at ? onnx_count(c->in[0]) : 0;
  int64_t lengths[16], sum = 0;
  if (!at || onnx_in_type(c, 0)->rank != 1 || count > IR_COUNT(lengths)) return false;
  for (uint32_t i = 0; i < count; i++) {
    const int64_t left = all - sum, part = (all + count - 1) / count;
    if (!sizes->count) lengths[i] = part < left ? part : left;
    else if (!expr_is_const(c->g->pool, sizes->at[i], &lengths[i])) return false;
    if (lengths[i] < 0 || lengths[i] > left) return false;
    sum += lengths[i];
  }
  for (uint32_t i = 0; i < count; at += lengths[i++]) {
    const ir_tensor type = {.dtype = onnx_in_type(c, 0)->dtype, .rank = 1, .dims = {lengths[i]}};
    if (!onnx_out_known(c, i, &type, at)) return false;
  }
  return true;
}

/* Sizes that the graph computes; the last is what the others leave. */
static bool sizes_by_data(onnx_call *c, ir_expr extent, onnx_list *out) {
  const uint32_t sizes = onnx_cast(c, onnx_in(c, 1), SNT_I64), count = onnx_count(c->in[1]);
  ir_expr *at = count <= MOST_PARTS ? IR_NEW_ARRAY(c->im->temp, ir_expr, count) : NULL, rest = extent;
  if (!sizes || !at || onnx_type_of(c, sizes)->rank != 1) return onnx_refuse(c, "%u sizes that depend on data", count);
  for (uint32_t i = 0; i + 1 < count; i++) {
    const uint32_t size = onnx_2n(c, IR_OP_max, onnx_reshape(c, onnx_slice(c, sizes, 0, i, 1, 1), 0, NULL), 0);
    const ir_expr most = onnx_most(c, extent);
    at[i] = onnx_late_number(c, onnx_2(c, IR_OP_min, size, onnx_extent(c, most, SNT_I64)), most);
    rest = expr_sub(c->g->pool, rest, at[i]);
  }
  if (count) at[count - 1] = rest;
  *out = (onnx_list){count, at};
  return true;
}

bool onnx_op_split(onnx_call *c) {
  expr_pool *pool = c->g->pool;
  onnx_list sizes = {0};
  const uint32_t count = c->out_count;
  uint32_t axis, x;
  if (!onnx_in_type(c, 0) || !onnx_axis(c, onnx_int(c, "axis", 0), onnx_in_type(c, 0)->rank, &axis)) return false;
  onnx_int(c, "num_outputs", 0);
  if (c->opset < 13) sizes = onnx_int_list(c, "split");
  if (onnx_has(c, 1) && !(onnx_is_listed(c, 1) ? onnx_in_list(c, 1, &sizes) : sizes_by_data(c, onnx_dim_in(c, 0, axis), &sizes)))
    return false;
  if (sizes.count && sizes.count != count) return onnx_refuse(c, "%u sizes for %u results", sizes.count, count);
  if (split_known(c, &sizes)) return true;
  if (!(x = onnx_in(c, 0))) return false;
  const ir_expr extent = onnx_dim_in(c, 0, axis), part = expr_ceil_div(pool, extent, (ir_expr)count);
  ir_expr start = 0;
  if (onnx_is_counted(c, 0, axis) && count > 1 && !onnx_drop_in(c, 0)) return false;
  for (uint32_t i = 0; i < count; i++) {
    ir_expr size = sizes.count ? sizes.at[i] : part;
    if (!sizes.count && i + 1 == count) size = expr_sub(pool, extent, start);
    const ir_expr most = onnx_is_late(c->im, size) ? onnx_most(c, size) : size;
    const uint32_t slice = count == 1 ? x : onnx_slice(c, x, axis, size == 0 ? 0 : start, most, 1);
    if (!(onnx_is_late(c->im, size) && count > 1 ? onnx_out_counted(c, i, slice, size, axis, 0) : onnx_out(c, i, slice))) return false;
    start = expr_add(pool, start, size);
  }
  return true;
}

/* ---- repetition and padding ---- */
bool onnx_op_tile(onnx_call *c) {
  uint32_t x = onnx_in(c, 0);
  onnx_list repeats;
  if (!x || !onnx_in_list(c, 1, &repeats)) return false;
  const uint32_t rank = onnx_type_of(c, x)->rank;
  if (repeats.count != rank) return onnx_refuse(c, "%u repeats for rank %u", repeats.count, rank);
  for (uint32_t axis = 0; axis < rank && x; axis++) {
    if (repeats.at[axis] == 1) continue;
    const ir_tensor is = *onnx_type_of(c, x);
    ir_expr open[SNT_MAX_RANK + 1], joined[SNT_MAX_RANK];
    if (rank == SNT_MAX_RANK) return onnx_refuse(c, "rank %u", rank);
    for (uint32_t i = 0; i < rank; i++) open[i < axis ? i : i + 1] = joined[i] = is.dims[i];
    open[axis] = 1;
    x = onnx_reshape(c, x, rank + 1, open);
    open[axis] = repeats.at[axis];
    joined[axis] = expr_mul(c->g->pool, is.dims[axis], repeats.at[axis]);
    x = onnx_reshape(c, onnx_broadcast(c, x, rank + 1, open), rank, joined);
  }
  return onnx_out(c, 0, x);
}

/* low.. high.. of every axis from the list for `axes` */
static bool spread_pads(onnx_call *c, const onnx_list *pads, uint32_t rank, ir_expr *out) {
  onnx_list axes = {0};
  if (onnx_has(c, 3) && !onnx_in_list(c, 3, &axes)) return false;
  const uint32_t count = axes.count ? axes.count : rank;
  if (pads->count != 2 * count) return onnx_refuse(c, "%u pads for %u axes", pads->count, count);
  for (uint32_t i = 0; i < 2 * rank; i++) out[i] = 0;
  for (uint32_t i = 0; i < count; i++) {
    int64_t number = i;
    uint32_t axis;
    if (axes.count && !expr_is_const(c->g->pool, axes.at[i], &number)) return onnx_refuse(c, "axes must be fixed");
    if (!onnx_axis(c, number, rank, &axis)) return false;
    out[axis] = pads->at[i], out[rank + axis] = pads->at[count + i];
  }
  return true;
}

static uint32_t pad_constant(onnx_call *c, uint32_t x, const ir_expr *pads, double value) {
  const ir_tensor type = *onnx_type_of(c, x);
  ir_expr bits = 0;
  const bool real = ir_dtypes[type.dtype].is_float;
  ir_attr_value attrs[] = {{IR_ATTR_high, type.rank, pads + type.rank}, {IR_ATTR_low, type.rank, pads}, {IR_ATTR_value, 1, &bits}};
  if (real) memcpy(&bits, &value, sizeof bits < sizeof value ? sizeof bits : sizeof value);
  else bits = (ir_expr)value;
  return ir_add_node(c->g, IR_OP_pad, 1, &x, value == 0 && !signbit(value) ? 2 : 3, attrs, NULL);
}

static uint32_t padded(onnx_call *c, uint32_t x, const ir_expr *pads, const char *mode, double value) {
  if (!strcmp(mode, "constant")) return x ? pad_constant(c, x, pads, value) : 0;
  if (strcmp(mode, "edge") != 0 && strcmp(mode, "reflect") != 0 && strcmp(mode, "wrap") != 0) return onnx_refuse(c, "mode %.40s", mode), 0;
  return x ? onnx_add(c, "pad_%s %%%u, pads=%s", mode, x, onnx_list_text(c, 2 * onnx_type_of(c, x)->rank, pads)) : 0;
}

bool onnx_op_pad(onnx_call *c) {
  const char *mode = onnx_text(c, "mode", "constant");
  uint32_t x = onnx_in(c, 0);
  ir_expr all[2 * SNT_MAX_RANK];
  onnx_list pads = {0};
  double value = onnx_float(c, "value", 0);
  if (c->opset < 2) pads = onnx_int_list(c, "paddings");
  else if (c->opset < 11) pads = onnx_int_list(c, "pads");
  else if (!onnx_in_list(c, 1, &pads)) return false;
  if (!x || !spread_pads(c, &pads, onnx_type_of(c, x)->rank, all)) return false;
  if (onnx_has(c, 2) && !onnx_in_number(c, 2, &value)) return false;
  const uint32_t axis = c->in[0]->count_axis, rank = onnx_type_of(c, x)->rank;
  const ir_expr more = c->in[0]->count ? expr_add(c->g->pool, all[axis], all[rank + axis]) : 0;
  if (!c->in[0]->count || (!more && !all[axis])) return onnx_out(c, 0, padded(c, x, all, mode, value));
  const ir_expr count = expr_max(c->g->pool, expr_add(c->g->pool, c->in[0]->count, more), 0);
  x = onnx_pad_moved(c, all, mode, onnx_like(c, x, value));
  if (onnx_is_late(c->im, all[rank + axis])) /* to a length that is known, say: what is behind the places that are used is filled already */
    all[rank + axis] = expr_sub(c->g->pool, onnx_most(c, count), expr_add(c->g->pool, c->in[0]->type.dims[axis], all[axis]));
  return x && onnx_drop_in(c, 0) && onnx_out_counted(c, 0, padded(c, x, all, mode, value), count, axis, 0);
}

/* Centred cuts, and zeros around. */
bool onnx_op_center_crop_pad(onnx_call *c) {
  expr_pool *pool = c->g->pool;
  uint32_t x = onnx_in(c, 0);
  onnx_list shape;
  if (!x || !onnx_in_list(c, 1, &shape)) return false;
  const ir_tensor type = *onnx_type_of(c, x);
  const onnx_list axes = onnx_int_list(c, "axes");
  ir_expr pads[2 * SNT_MAX_RANK] = {0};
  for (uint32_t i = 0; i < shape.count; i++) {
    int64_t number = i, want, is;
    uint32_t axis;
    if (axes.count > i) expr_is_const(pool, axes.at[i], &number);
    if (!onnx_axis(c, number, type.rank, &axis)) return false;
    if (!expr_is_const(pool, shape.at[i], &want) || !expr_is_const(pool, type.dims[axis], &is))
      return onnx_refuse(c, "extents must be fixed");
    if (want < 0 || want > INT32_MAX) return onnx_refuse(c, "an extent of %lld", (long long)want);
    if (want < is) x = onnx_slice(c, x, axis, (is - want) / 2, want, 1);
    else pads[axis] = (want - is) / 2, pads[type.rank + axis] = want - is - (want - is) / 2;
  }
  return onnx_out(c, 0, x ? pad_constant(c, x, pads, 0) : 0);
}

/* ---- made from numbers ---- */
bool onnx_op_constant_of_shape(onnx_call *c) {
  const onnx_attr *a = onnx_find_attr(c, "value");
  int32_t late;
  ir_tensor type = {.dtype = SNT_F32};
  onnx_list shape;
  double value = 0;
  if (!onnx_in_extents(c, 0, &shape, &late)) return false;
  if (shape.count > SNT_MAX_RANK) return onnx_refuse(c, "rank %u", shape.count);
  if (a && a->kind == ONNX_TENSOR) {
    const void *data;
    uint64_t count;
    snt_diag diag;
    type.dtype = (uint8_t)onnx_type(a->tensor->type).dtype;
    if (!type.dtype || onnx_tensor_data(a->tensor, onnx_arena(c), NULL, &data, &count, &diag) != SNT_OK || count != 1)
      return onnx_refuse(c, "value is not one number");
    value = ir_dtype_load(type.dtype, data, 0);
  }
  type.rank = (uint8_t)shape.count;
  for (uint32_t i = 0; i < shape.count; i++) type.dims[i] = shape.at[i];
  const uint32_t filled = onnx_fill(c, &type, value);
  return late < 0 ? onnx_out(c, 0, filled) : onnx_out_counted(c, 0, filled, onnx_late_element(c, 0, late), (uint32_t)late, 0);
}

bool onnx_op_eye_like(onnx_call *c) {
  const ir_tensor *t = onnx_in_type(c, 0);
  if (!t || t->rank != 2) return onnx_refuse(c, "the operand is no matrix");
  const int32_t dtype = onnx_dtype_attr(c, "dtype", t->dtype);
  const uint32_t row = onnx_iota(c, SNT_I32, 2, t->dims, 0), column = onnx_iota(c, SNT_I32, 2, t->dims, 1);
  const uint32_t diagonal = onnx_2n(c, IR_OP_add, row, (double)onnx_int(c, "k", 0));
  return dtype && onnx_out(c, 0, onnx_cast(c, onnx_2(c, IR_OP_eq, column, diagonal), dtype));
}

/* How many steps lie between two extents that are open: ceil((limit - start) / step), fractions as they are known. */
static bool open_steps(onnx_call *c, ir_expr *out) {
  expr_pool *pool = c->g->pool;
  onnx_number n[3] = {[2] = {1, 1}};
  int64_t step;
  for (uint32_t i = 0; i < 3 && i < c->in_count; i++) {
    const onnx_number *known = onnx_known(c, i);
    if (!known || onnx_count(c->in[i]) != 1 || known->den > INT32_MAX)
      return onnx_refuse(c, "input %u must be known when the model is loaded", i);
    n[i] = *known;
  }
  if (!expr_is_const(pool, n[2].num, &step) || step == 0 || step > INT32_MAX || step < -INT32_MAX)
    return onnx_refuse(c, "the step must be fixed");
  const ir_expr limit = expr_mul(pool, n[1].num, expr_int(pool, n[0].den)), start = expr_mul(pool, n[0].num, expr_int(pool, n[1].den));
  const ir_expr span = step > 0 ? expr_sub(pool, limit, start) : expr_sub(pool, start, limit);
  int64_t by = n[0].den * n[1].den;
  if (__builtin_mul_overflow(by, step > 0 ? step : -step, &by)) return onnx_refuse(c, "the step must be fixed");
  *out = expr_max(pool, expr_ceil_div(pool, expr_mul(pool, span, expr_int(pool, n[2].den)), expr_int(pool, by)), 0);
  return true;
}

/* A step of 1 may be left out, of the operator of ONNX Runtime's. */
static bool fixed_step(onnx_call *c, double *step) {
  *step = 1;
  return c->in_count < 3 || onnx_in_number(c, 2, step);
}

static bool fixed_steps(onnx_call *c, ir_expr *out) {
  double v[3];
  if (!onnx_in_number(c, 0, &v[0]) || !onnx_in_number(c, 1, &v[1]) || !fixed_step(c, &v[2])) return false;
  const double count = v[2] == 0 ? -1 : ceil((v[1] - v[0]) / v[2]);
  if (!(count < 0x1p30) || v[2] == 0) return onnx_refuse(c, "the range has no end");
  *out = count > 0 ? (ir_expr)count : 0;
  return true;
}

static bool is_open(onnx_call *c, uint32_t i) {
  const onnx_number *known = onnx_known(c, i);
  return known && onnx_count(c->in[i]) == 1 && !expr_is_const(c->g->pool, known->num, NULL);
}

bool onnx_op_range(onnx_call *c) {
  ir_expr size = 0;
  double step;
  if (!(is_open(c, 0) || is_open(c, 1) ? open_steps(c, &size) : fixed_steps(c, &size)) || !fixed_step(c, &step)) return false;
  const bool late = onnx_is_late(c->im, size);
  const ir_expr most = late ? onnx_most(c, size) : size;
  const uint32_t scaled = onnx_2n(c, IR_OP_mul, onnx_iota(c, onnx_in_type(c, 0)->dtype, 1, &most, 0), step);
  const uint32_t range = onnx_2(c, IR_OP_add, scaled, onnx_scalar_in(c, 0));
  return late ? onnx_out_counted(c, 0, range, size, 0, 0) : onnx_out(c, 0, range);
}

bool onnx_op_shape(onnx_call *c) { return onnx_refuse(c, "the shape is not known"); }

/* Channels in front of the places of a block. */
static bool space_to_channels_first(onnx_call *c, uint32_t x, int64_t block) {
  static const uint32_t perm[] = {0, 1, 3, 5, 2, 4};
  const ir_tensor type = *onnx_type_of(c, x);
  if (type.rank != 4 || block < 1 || block > INT32_MAX) return onnx_refuse(c, "rank %u, blocks of %lld", type.rank, (long long)block);
  const ir_expr high = expr_div(c->g->pool, type.dims[2], block), wide = expr_div(c->g->pool, type.dims[3], block);
  const ir_expr apart[] = {type.dims[0], type.dims[1], high, block, wide, block};
  const ir_expr dims[] = {type.dims[0], expr_mul(c->g->pool, type.dims[1], expr_int(c->g->pool, block * block)), high, wide};
  return onnx_out(c, 0, onnx_reshape(c, onnx_transpose(c, onnx_reshape(c, x, 6, apart), perm), 4, dims));
}

bool onnx_op_depth_to_space(onnx_call *c) {
  const bool back = !strcmp(c->node->op, "SpaceToDepth");
  const uint32_t x = onnx_in(c, 0);
  const long long block = onnx_int(c, "blocksize", 0);
  if (x && back && !strcmp(onnx_lower(c, "mode", "dcr"), "crd")) return space_to_channels_first(c, x, block);
  if (!x || back) return x && onnx_out(c, 0, onnx_add(c, "space_to_depth %%%u, size=[%lld]", x, block));
  return onnx_out(c, 0, onnx_add(c, "depth_to_space %%%u, size=[%lld], mode=%s", x, block, onnx_lower(c, "mode", "dcr")));
}

/* Columns [n, c * taps, positions] summed where their taps lay: the transposed convolution by an identity of taps. */
typedef struct columns {
  uint32_t count;
  int64_t taps, size[3], extra[3], stride[3], dilation[3], pads[6];
  ir_expr positions[3];
} columns;

static bool read_entries(onnx_call *c, const char *name, uint32_t count, int64_t otherwise, int64_t *out) {
  const onnx_list list = onnx_int_list(c, name);
  if (list.count && list.count != count) return onnx_refuse(c, "%s has %u entries", name, list.count);
  for (uint32_t i = 0; i < count; i++) {
    if (!list.count || !expr_is_const(c->g->pool, list.at[i], &out[i])) out[i] = otherwise;
    if (out[i] < otherwise || out[i] > 1 << 20) return onnx_refuse(c, "%s is out of range", name);
  }
  return true;
}

static bool read_columns(onnx_call *c, const onnx_list *image, const onnx_list *block, columns *k) {
  k->count = image->count;
  k->taps = 1;
  if (k->count < 1 || k->count > 3 || block->count != k->count) return onnx_refuse(c, "image_shape has %u entries", k->count);
  if (!read_entries(c, "strides", k->count, 1, k->stride) || !read_entries(c, "dilations", k->count, 1, k->dilation)) return false;
  if (!read_entries(c, "pads", 2 * k->count, 0, k->pads)) return false;
  for (uint32_t i = 0; i < k->count; i++) {
    int64_t extent;
    if (!expr_is_const(c->g->pool, block->at[i], &k->size[i]) || !expr_is_const(c->g->pool, image->at[i], &extent))
      return onnx_refuse(c, "shapes must be fixed");
    if (k->size[i] < 1 || k->size[i] > 256 || extent < 1 || extent > INT32_MAX) return onnx_refuse(c, "shapes are out of range");
    const int64_t room = extent + k->pads[i] + k->pads[k->count + i] - k->dilation[i] * (k->size[i] - 1) - 1;
    if (room < 0) return onnx_refuse(c, "the block is larger than the image");
    k->extra[i] = room % k->stride[i];
    k->positions[i] = room / k->stride[i] + 1;
    k->taps *= k->size[i];
  }
  return k->taps <= 1024 || onnx_refuse(c, "a block of %lld elements", (long long)k->taps);
}

bool onnx_op_col2im(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  onnx_list image, block;
  columns k;
  int64_t channels;
  if (!x || !onnx_in_list(c, 1, &image) || !onnx_in_list(c, 2, &block) || !read_columns(c, &image, &block, &k)) return false;
  const ir_tensor type = *onnx_type_of(c, x);
  if (type.rank != 3 || !expr_is_const(c->g->pool, type.dims[1], &channels) || channels % k.taps)
    return onnx_refuse(c, "the channels are no multiple of the block");
  ir_tensor eye = {.dtype = type.dtype, .rank = (uint8_t)(2 + k.count), .dims = {k.taps, 1}};
  double *ones = ir_arena_take(onnx_arena(c), (size_t)(k.taps * k.taps) * sizeof *ones, 8);
  ir_expr apart[5] = {expr_mul(c->g->pool, type.dims[0], channels / k.taps), k.taps}, joined[5] = {type.dims[0], channels / k.taps};
  for (uint32_t i = 0; i < k.count; i++) eye.dims[2 + i] = k.size[i], apart[2 + i] = k.positions[i], joined[2 + i] = image.at[i];
  for (int64_t i = 0; ones && i < k.taps; i++) ones[i * k.taps + i] = 1;
  const uint32_t split = ones ? onnx_reshape(c, x, 2 + k.count, apart) : 0, weights = split ? onnx_data(c, &eye, ones) : 0;
  if (!weights) return false;
  const char *stride = onnx_numbers_text(c, k.count, k.stride), *dilation = onnx_numbers_text(c, k.count, k.dilation);
  const uint32_t y = onnx_add(c, "conv_transpose %%%u, %%%u, output_pads=%s, stride=%s, dilation=%s, pads=%s", split, weights,
                              onnx_numbers_text(c, k.count, k.extra), stride, dilation, onnx_numbers_text(c, 2 * k.count, k.pads));
  return onnx_out(c, 0, onnx_reshape(c, y, 2 + k.count, joined));
}
