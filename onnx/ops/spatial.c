/* Convolutions and pools: what the file says of windows, with padding that is to be found from the extents. */
#include "onnx/ops.h"
#include "onnx/import_private.h"

static bool read_numbers(onnx_call *c, const char *name, uint32_t count, int64_t otherwise, int64_t *out) {
  const onnx_list list = onnx_int_list(c, name);
  if (list.count && list.count != count) return onnx_refuse(c, "%s has %u entries, %u are needed", name, list.count, count);
  for (uint32_t i = 0; i < count; i++)
    if (!list.count || !expr_is_const(c->g->pool, list.at[i], &out[i])) out[i] = otherwise;
  return !c->refused;
}

static bool read_kernel(onnx_call *c, const ir_tensor *weights, onnx_spatial *s) {
  if (!read_numbers(c, "kernel_shape", s->count, 0, s->size)) return false;
  for (uint32_t i = 0; i < s->count; i++) {
    if (s->size[i] == 0 && weights && !expr_is_const(c->g->pool, weights->dims[2 + i], &s->size[i]))
      return onnx_refuse(c, "the weights must have fixed extents");
    if (s->size[i] < 1 || s->size[i] > 1 << 20) return onnx_refuse(c, "kernel_shape is missing, or not of numbers from 1 to 2^20");
  }
  return true;
}

/* SAME: as many positions as extent / stride, rounded up. A stride of 1 needs no extent for that. */
static bool pad_same(onnx_call *c, const ir_tensor *x, onnx_spatial *s, bool upper) {
  for (uint32_t i = 0; i < s->count; i++) {
    const int64_t reach = s->dilation[i] * (s->size[i] - 1) + 1;
    int64_t total = reach - 1, extent;
    if (s->stride[i] != 1) {
      if (!expr_is_const(c->g->pool, x->dims[2 + i], &extent) || extent > INT32_MAX)
        return onnx_refuse(c, "auto_pad with strides needs fixed extents");
      total = ((extent + s->stride[i] - 1) / s->stride[i] - 1) * s->stride[i] + reach - extent;
    }
    if (total < 0) total = 0;
    s->pads[i] = upper ? total / 2 : total - total / 2;
    s->pads[s->count + i] = total - s->pads[i];
  }
  return true;
}

bool onnx_read_spatial(onnx_call *c, const ir_tensor *x, const ir_tensor *weights, onnx_spatial *s) {
  if (x->rank < 3 || (weights && weights->rank != x->rank))
    return onnx_refuse(c, "rank %u has no spatial axis, or not those of the weights", x->rank);
  s->count = x->rank - 2u;
  if (!read_kernel(c, weights, s) || !read_numbers(c, "strides", s->count, 1, s->stride)) return false;
  if (!read_numbers(c, "dilations", s->count, 1, s->dilation) || !read_numbers(c, "pads", 2 * s->count, 0, s->pads)) return false;
  for (uint32_t i = 0; i < s->count; i++)
    if (s->stride[i] < 1 || s->dilation[i] < 1 || s->stride[i] > 1 << 20 || s->dilation[i] > 1 << 20)
      return onnx_refuse(c, "strides and dilations must be numbers from 1 to 2^20");
  const char *mode = onnx_text(c, "auto_pad", "NOTSET");
  if (!strcmp(mode, "SAME_UPPER") || !strcmp(mode, "SAME_LOWER")) return pad_same(c, x, s, mode[5] == 'U');
  if (!strcmp(mode, "VALID")) memset(s->pads, 0, sizeof s->pads);
  else if (strcmp(mode, "NOTSET") != 0) return onnx_refuse(c, "auto_pad %.40s", mode);
  return true;
}

const char *onnx_spatial_text(onnx_call *c, const onnx_spatial *s) {
  ir_text text;
  ir_text_init(&text, c->im->temp);
  ir_text_format(&text, "stride=%s", onnx_numbers_text(c, s->count, s->stride));
  ir_text_format(&text, ", pads=%s", onnx_numbers_text(c, 2 * s->count, s->pads));
  ir_text_format(&text, ", dilation=%s", onnx_numbers_text(c, s->count, s->dilation));
  return text.failed ? "" : text.at;
}

/* ---- convolutions ---- */
bool onnx_demand_channels(onnx_call *c, uint32_t x, uint32_t w) {
  const ir_expr channels = onnx_type_of(c, x)->dims[1], group = expr_int(c->g->pool, onnx_int(c, "group", 1));
  return channels >= 0 || !onnx_demand_equal(c->im, channels, expr_mul(c->g->pool, onnx_type_of(c, w)->dims[1], group));
}

static uint32_t convolved(onnx_call *c, uint32_t x, const char *name, const char *last) {
  const uint32_t w = onnx_in(c, 1);
  onnx_spatial s;
  if (!x || !w || !onnx_read_spatial(c, onnx_type_of(c, x), onnx_type_of(c, w), &s) || !onnx_demand_channels(c, x, w)) return 0;
  return onnx_add(c, "%s %%%u, %%%u, %s%s, %s, groups=%lld", name, x, w, onnx_operand_text(c, 2), last, onnx_spatial_text(c, &s),
                  (long long)onnx_int(c, "group", 1));
}

uint32_t onnx_conv(onnx_call *c, uint32_t x) { return convolved(c, x, "conv", ""); }

bool onnx_op_conv(onnx_call *c) { return onnx_out(c, 0, onnx_conv(c, onnx_in(c, 0))); }

bool onnx_op_conv_integer(onnx_call *c) {
  char zero[32];
  snprintf(zero, sizeof zero, ", %s", onnx_operand_text(c, 3));
  return onnx_out(c, 0, convolved(c, onnx_in(c, 0), "conv_integer", zero));
}

/* Padding that gives output_shape, or extent * stride for SAME; what is over goes to the end unless SAME_LOWER says otherwise. */
static bool pad_transposed(onnx_call *c, const ir_tensor *x, onnx_spatial *s, int64_t *extra) {
  const onnx_list wanted = onnx_int_list(c, "output_shape");
  const char *mode = onnx_text(c, "auto_pad", "NOTSET");
  const bool same = !strncmp(mode, "SAME", 4);
  if (!wanted.count && !same) return true;
  if (wanted.count && wanted.count < s->count) return onnx_refuse(c, "output_shape has %u entries", wanted.count);
  for (uint32_t i = 0; i < s->count; i++) {
    int64_t extent, want;
    if (!expr_is_const(c->g->pool, x->dims[2 + i], &extent) || extent > INT32_MAX)
      return onnx_refuse(c, "output_shape needs fixed extents");
    want = extent * s->stride[i];
    if (wanted.count) expr_is_const(c->g->pool, wanted.at[wanted.count - s->count + i], &want);
    int64_t total = s->stride[i] * (extent - 1) + extra[i] + (s->size[i] - 1) * s->dilation[i] + 1 - want;
    if (total < 0) extra[i] -= total, total = 0;
    s->pads[i] = !strcmp(mode, "SAME_UPPER") ? total / 2 : total - total / 2;
    s->pads[s->count + i] = total - s->pads[i];
  }
  return true;
}

bool onnx_op_conv_transpose(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0), w = onnx_in(c, 1);
  onnx_spatial s;
  int64_t extra[SNT_MAX_RANK];
  if (!x || !w) return false;
  const ir_tensor type = *onnx_type_of(c, x);
  if (!onnx_read_spatial(c, &type, onnx_type_of(c, w), &s) || !read_numbers(c, "output_padding", s.count, 0, extra)) return false;
  if (!pad_transposed(c, &type, &s, extra)) return false;
  return onnx_out(c, 0,
                  onnx_add(c, "conv_transpose %%%u, %%%u, %s, %s, output_pads=%s, groups=%lld", x, w, onnx_operand_text(c, 2),
                           onnx_spatial_text(c, &s), onnx_numbers_text(c, s.count, extra), (long long)onnx_int(c, "group", 1)));
}

/* ---- channels last ---- */
uint32_t onnx_channels_second(onnx_call *c, uint32_t x, bool last) {
  uint32_t perm[SNT_MAX_RANK] = {0};
  if (!x || !last || onnx_type_of(c, x)->rank < 2) return x;
  perm[1] = onnx_type_of(c, x)->rank - 1u;
  for (uint32_t i = 2; i <= perm[1]; i++) perm[i] = i - 1;
  return onnx_transpose(c, x, perm);
}

uint32_t onnx_channels_back(onnx_call *c, uint32_t y, bool last) {
  uint32_t perm[SNT_MAX_RANK] = {0};
  if (!y || !last || onnx_type_of(c, y)->rank < 2) return y;
  const uint32_t end = onnx_type_of(c, y)->rank - 1u;
  for (uint32_t i = 1; i < end; i++) perm[i] = i + 1;
  perm[end] = 1;
  return onnx_transpose(c, y, perm);
}

/* ---- pools ---- */
const char *onnx_pool_text(onnx_call *c, const ir_tensor *x) {
  onnx_spatial s;
  ir_text text;
  if (!onnx_read_spatial(c, x, NULL, &s)) return NULL;
  ir_text_init(&text, c->im->temp);
  ir_text_format(&text, "size=%s, %s", onnx_numbers_text(c, s.count, s.size), onnx_spatial_text(c, &s));
  if (onnx_int(c, "ceil_mode", 0)) ir_text_add(&text, ", ceil");
  return text.failed ? NULL : text.at;
}

bool onnx_op_pool(onnx_call *c) {
  static const struct { const char *op, *call; } kinds[] = {{"MaxPool", "maxpool"}, {"AveragePool", "avgpool"}, {"LpPool", "lppool"}};
  const uint32_t x = onnx_in(c, 0);
  uint32_t kind = 0;
  while (kind < IR_COUNT(kinds) - 1 && strcmp(kinds[kind].op, c->node->op) != 0) kind++;
  const char *window = x ? onnx_pool_text(c, onnx_type_of(c, x)) : NULL;
  if (!window) return false;
  const bool count = kind == 1 && onnx_int(c, "count_include_pad", 0);
  char order[40] = "";
  if (kind == 2) snprintf(order, sizeof order, ", order=%lld", (long long)onnx_int(c, "p", 2));
  const char *columns = kind == 0 && onnx_int(c, "storage_order", 0) ? ", column_major" : "";
  const uint32_t y = onnx_add(c, "%s %%%u, %s%s%s", kinds[kind].call, x, window, count ? ", count_pads" : "", order);
  if (!onnx_out(c, 0, y)) return false;
  if (kind != 0 || c->out_count < 2) return true;
  return onnx_out(c, 1, onnx_add(c, "maxpool_index %%%u, %s%s", x, window, columns));
}

/* Positions count in the shape that kernel, strides and pads imply; output_shape adds zeros at the end. */
bool onnx_op_max_unpool(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0), index = onnx_in(c, 1);
  expr_pool *pool = c->g->pool;
  onnx_spatial s;
  onnx_list shape;
  ir_expr dims[SNT_MAX_RANK], high[SNT_MAX_RANK];
  if (!x || !index || !onnx_read_spatial(c, onnx_type_of(c, x), NULL, &s)) return false;
  const ir_tensor type = *onnx_type_of(c, x);
  memcpy(dims, type.dims, sizeof dims);
  for (uint32_t i = 0; i < s.count; i++) {
    const ir_expr reach = expr_mul(pool, expr_sub(pool, type.dims[2 + i], 1), s.stride[i]);
    dims[2 + i] = expr_add(pool, reach, expr_int(pool, s.size[i] - s.pads[i] - s.pads[s.count + i]));
  }
  const uint32_t y = onnx_add(c, "max_unpool %%%u, %%%u, shape=%s", x, index, onnx_list_text(c, type.rank, dims));
  if (!onnx_has(c, 2)) return onnx_out(c, 0, y);
  if (!y || !onnx_in_list(c, 2, &shape)) return false;
  if (shape.count != type.rank) return onnx_refuse(c, "output_shape has %u entries", shape.count);
  for (uint32_t i = 0; i < shape.count; i++) high[i] = expr_sub(pool, shape.at[i], dims[i]);
  return onnx_out(c, 0, ir_add_node(c->g, IR_OP_pad, 1, &y, 1, &(ir_attr_value){IR_ATTR_high, type.rank, high}, NULL));
}
