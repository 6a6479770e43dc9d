/* Operators along whose axis places move: windows, their inverse, frames, paddings, resizing, recurrences. In: an operand of which `count` places are used
   (bounded.c). Out: how many places of the result are, by the arithmetic that its extents have, and an operand whose other places hold what stands there: the
   zeros of a padding, the last place once more, steps that a recurrence does not make. */
#include "onnx/import_private.h"
#include "onnx/ops.h"
#include <math.h>

typedef struct moved_rule {
  const char *op;
  bool (*count)(onnx_call *, uint32_t axis, ir_expr *count); /* of operand 0's axis, or false: its places do not move, or it was refused */
  bool (*fill)(onnx_call *, uint32_t axis);
} moved_rule;

static ir_expr less(onnx_call *c, ir_expr a, int64_t b) { return expr_add(c->g->pool, a, expr_int(c->g->pool, -b)); }

static bool read_window(onnx_call *c, uint32_t axis, onnx_spatial *s, uint32_t *at) {
  const ir_tensor *weights = strstr(c->node->op, "Conv") ? onnx_in_type(c, 1) : NULL;
  *at = axis - 2;
  if (axis < 2 || !onnx_read_spatial(c, onnx_in_type(c, 0), weights, s)) return false;
  return s->stride[*at] == 1 || strncmp(onnx_text(c, "auto_pad", "NOTSET"), "SAME", 4) != 0 ||
         onnx_refuse(c, "auto_pad where how much there is depends on the data");
}

static int64_t reach(const onnx_spatial *s, uint32_t at) { return s->dilation[at] * (s->size[at] - 1) + 1; }
static int64_t padding(const onnx_spatial *s, uint32_t at) { return s->pads[at] + s->pads[s->count + at]; }

static bool count_windows(onnx_call *c, uint32_t axis, ir_expr *count) {
  onnx_spatial s;
  uint32_t at;
  if (!read_window(c, axis, &s, &at)) return false;
  if (onnx_int(c, "ceil_mode", 0)) return onnx_refuse(c, "ceil_mode where how much there is depends on the data");
  const ir_expr room = less(c, *count, reach(&s, at) - padding(&s, at));
  *count = less(c, expr_div(c->g->pool, room, expr_int(c->g->pool, s.stride[at])), -1);
  return true;
}

static bool count_turned(onnx_call *c, uint32_t axis, ir_expr *count) {
  onnx_spatial s;
  uint32_t at;
  int64_t extra = 0;
  if (!read_window(c, axis, &s, &at)) return false;
  if (onnx_int_list(c, "output_shape").count || !strncmp(onnx_text(c, "auto_pad", "NOTSET"), "SAME", 4))
    return onnx_refuse(c, "output_shape where how much there is depends on the data");
  const onnx_list more = onnx_int_list(c, "output_padding");
  if (more.count > at) expr_is_const(c->g->pool, more.at[at], &extra);
  *count = less(c, expr_mul(c->g->pool, less(c, *count, 1), expr_int(c->g->pool, s.stride[at])), padding(&s, at) - extra - reach(&s, at));
  return true;
}

static bool count_frames(onnx_call *c, uint32_t axis, ir_expr *count) {
  int64_t step, length = 0;
  if (axis != 1 || !onnx_in_int(c, 1, &step) || step < 1 || (onnx_has(c, 3) && !onnx_in_int(c, 3, &length))) return false;
  if (onnx_has(c, 2) && !expr_is_const(c->g->pool, onnx_in_type(c, 2)->dims[0], &length)) return false;
  *count = less(c, expr_div(c->g->pool, less(c, *count, length), expr_int(c->g->pool, step)), -1);
  return true;
}

/* By whole factors, up or down, whose positions hang on the scale alone. */
static bool count_resized(onnx_call *c, uint32_t axis, ir_expr *count) {
  static const char *const by_extent[] = {"align_corners", "tf_crop_and_resize", "half_pixel_symmetric"};
  const uint32_t scales = !strcmp(c->node->op, "Upsample") || c->opset < 11 ? 1 : 2, rank = onnx_in_type(c, 0)->rank;
  const char *coordinates = onnx_text(c, "coordinate_transformation_mode", "half_pixel");
  double scale[SNT_MAX_RANK];
  uint32_t given;
  bool good = onnx_has(c, scales) && !onnx_has(c, 3) && !onnx_int_list(c, "axes").count;
  for (uint32_t i = 0; i < IR_COUNT(by_extent); i++) good &= strcmp(coordinates, by_extent[i]) != 0;
  if (!good || !onnx_in_numbers(c, scales, SNT_MAX_RANK, scale, &given) || given != rank)
    return onnx_refuse(c, "sizes or corners where how much there is depends on the data");
  const double up = floor(scale[axis] + 0.5), down = floor(1 / scale[axis] + 0.5);
  const bool grows = up >= 1 && fabs(scale[axis] / up - 1) < 1e-6, shrinks = down >= 1 && fabs(scale[axis] * down - 1) < 1e-6;
  if (!(up < INT32_MAX && down < INT32_MAX) || (!grows && !shrinks))
    return onnx_refuse(c, "a scale of %g where how much there is depends on the data", scale[axis]);
  *count = grows ? expr_mul(c->g->pool, *count, expr_int(c->g->pool, (int64_t)up))
                 : expr_div(c->g->pool, *count, expr_int(c->g->pool, (int64_t)down));
  return true;
}

static bool count_steps(onnx_call *c, uint32_t axis, ir_expr *count) {
  (void)count;
  return axis == 0 && (!onnx_int(c, "layout", 0) || onnx_refuse(c, "layout 1 where how many steps there are depends on the data"));
}

static bool fill_zeros(onnx_call *c, uint32_t axis) { return (void)axis, onnx_mask_in(c, 0, ONNX_ZERO); }
static bool fill_least(onnx_call *c, uint32_t axis) { return (void)axis, onnx_mask_in(c, 0, ONNX_LEAST); }
static bool fill_nothing(onnx_call *c, uint32_t axis) { return (void)axis, onnx_drop_in(c, 0); }

/* Zeros are what the zero point stands for. */
static bool fill_zero_point(onnx_call *c, uint32_t axis) {
  (void)axis;
  return onnx_has(c, 2) ? onnx_fill_in(c, 0, onnx_scalar_in(c, 2)) : onnx_mask_in(c, 0, ONNX_ZERO);
}

/* The last place again and again, as what lies outside is read. */
static bool fill_last(onnx_call *c, uint32_t axis) {
  const uint32_t last = onnx_extent(c, expr_max(c->g->pool, less(c, c->in[0]->count, 1), 0), SNT_I64);
  const uint32_t place = onnx_2(c, IR_OP_min, onnx_iota(c, SNT_I64, 1, &c->in[0]->type.dims[axis], 0), last);
  onnx_value *v = onnx_value_of(c, c->in[0]->name, onnx_gather(c, c->in[0]->node, place, axis));
  return v && (c->in[0] = v);
}

/* A row of a batch has as many steps as there are places. */
static bool fill_lengths(onnx_call *c, uint32_t axis) {
  enum { LENGTHS = 4 };
  const ir_tensor type = *onnx_in_type(c, 0);
  const uint32_t one = onnx_extent(c, c->in[0]->count, SNT_I32);
  (void)axis;
  if (onnx_has(c, LENGTHS)) return onnx_drop_in(c, 0);
  onnx_value **in = IR_NEW_ARRAY(c->im->temp, onnx_value *, c->in_count + LENGTHS + 1);
  for (uint32_t i = 0; in && i < c->in_count; i++) in[i] = c->in[i];
  if (!in || !one) return false;
  in[LENGTHS] = onnx_value_of(c, "lengths", onnx_broadcast(c, one, 1, &type.dims[1]));
  c->in = in, c->in_count = c->in_count > LENGTHS ? c->in_count : LENGTHS + 1;
  return in[LENGTHS] && onnx_drop_in(c, 0);
}

/* Where place p of the padded axis is read: from the last used place back, or that one. */
static uint32_t padded_place(onnx_call *c, ir_expr extent, ir_expr low, bool reflect) {
  const uint32_t last = onnx_extent(c, expr_max(c->g->pool, less(c, c->in[0]->count, 1), 0), SNT_I64);
  uint32_t place = onnx_2(c, IR_OP_sub, onnx_iota(c, SNT_I64, 1, &extent, 0), onnx_extent(c, low, SNT_I64));
  if (reflect) place = onnx_1(c, IR_OP_abs, place);
  if (reflect) place = onnx_2(c, IR_OP_min, place, onnx_2(c, IR_OP_sub, onnx_2n(c, IR_OP_mul, last, 2), place));
  return onnx_2n(c, IR_OP_max, onnx_2(c, IR_OP_min, place, last), 0);
}

uint32_t onnx_pad_moved(onnx_call *c, ir_expr *pads, const char *mode, uint32_t fill) {
  const onnx_value *v = c->in[0];
  const uint32_t axis = v->count_axis, rank = v->type.rank;
  const ir_expr low = pads[axis], high = pads[rank + axis],
                extent = expr_add(c->g->pool, v->type.dims[axis], expr_add(c->g->pool, low, high));
  if (!strcmp(mode, "constant")) return onnx_mask(c, v->node, v->count, axis, fill);
  if (!strcmp(mode, "wrap")) return onnx_refuse(c, "mode wrap where how much there is depends on the data"), 0;
  pads[axis] = pads[rank + axis] = 0;
  return onnx_gather(c, v->node, padded_place(c, extent, low, !strcmp(mode, "reflect")), axis);
}

// clang-format off
static const moved_rule rules[] = {
    {"Conv", count_windows, fill_zeros},          {"ConvInteger", count_windows, fill_zero_point},
    {"ConvTranspose", count_turned, fill_zeros},  {"MaxPool", count_windows, fill_least},
    {"Resize", count_resized, fill_last},         {"Upsample", count_resized, fill_last},
    {"STFT", count_frames, fill_nothing},
    {"RNN", count_steps, fill_lengths},           {"GRU", count_steps, fill_lengths},
    {"LSTM", count_steps, fill_lengths},          {"DynamicQuantizeLSTM", count_steps, fill_lengths},
};
// clang-format on

bool onnx_ready_moved(onnx_call *c, onnx_counted *out) {
  const onnx_value *v = onnx_has(c, 0) ? c->in[0] : NULL;
  ir_expr count = v ? v->count : 0;
  const uint32_t axis = v ? v->count_axis : 0;
  const moved_rule *rule = NULL;
  for (uint32_t i = 0; count && i < IR_COUNT(rules); i++)
    if (!strcmp(rules[i].op, c->node->op)) rule = &rules[i];
  if (!rule || !rule->count(c, axis, &count)) return !c->refused;
  *out = (onnx_counted){.count = expr_max(c->g->pool, count, 0), .axis = axis, .sums = !strncmp(c->node->op, "Conv", 4)};
  return rule->fill(c, axis);
}
