/* Reading the axes of contractions, gathers and scatters: what each axis is for, as sizes and strides. */
#include "ir/eval/private.h"

static int find_label(const ir_expr *labels, uint32_t count, ir_expr label) {
  for (uint32_t i = 0; i < count; i++)
    if (labels[i] == label) return (int)i;
  return -1;
}

static void add_axis(eval_group *group, int64_t dim, int64_t lhs, int64_t rhs, int64_t out) {
  uint32_t i = group->count++;
  group->dims[i] = dim, group->lhs[i] = lhs, group->rhs[i] = rhs, group->out[i] = out;
  group->size *= (uint64_t)dim;
}

void eval_find_labels(const eval_ctx *ctx, uint32_t node, const eval_view *lhs, const eval_view *rhs, const eval_view *out,
                      eval_labels *labels) {
  uint32_t nl, nr, no;
  const ir_expr *l = ir_attr_ints(ctx->g, node, IR_ATTR_lhs, &nl), *r = ir_attr_ints(ctx->g, node, IR_ATTR_rhs, &nr);
  const ir_expr *o = ir_attr_ints(ctx->g, node, IR_ATTR_out, &no);
  memset(labels, 0, sizeof *labels);
  labels->batch.size = labels->m.size = labels->n.size = labels->k.size = 1;
  for (uint32_t i = 0; i < no; i++) {
    int in_l = find_label(l, nl, o[i]), in_r = find_label(r, nr, o[i]);
    eval_group *group = in_l >= 0 && in_r >= 0 ? &labels->batch : in_l >= 0 ? &labels->m : &labels->n;
    add_axis(group, out->dims[i], in_l >= 0 ? lhs->strides[in_l] : 0, in_r >= 0 ? rhs->strides[in_r] : 0, out->strides[i]);
  }
  for (uint32_t i = 0; i < nl; i++) {
    int in_r = find_label(r, nr, l[i]);
    if (in_r >= 0 && find_label(o, no, l[i]) < 0) add_axis(&labels->k, lhs->dims[i], lhs->strides[i], rhs->strides[in_r], 0);
  }
}

void eval_group_offsets(const eval_group *group, const int64_t *strides, int64_t *out) {
  eval_view view = {.rank = (uint8_t)group->count, .count = group->size};
  memcpy(view.dims, group->dims, sizeof view.dims);
  memcpy(view.strides, strides, sizeof view.strides);
  uint64_t done = 0;
  while (done < group->size) {
    uint64_t left = group->size - done;
    uint32_t part = left > 1u << 30 ? 1u << 30 : (uint32_t)left;
    eval_offsets(&view, done, part, out + done);
    done += part;
  }
}

eval_rows eval_find_rows(const eval_ctx *ctx, uint32_t node, const eval_view *x, const eval_view *index) {
  uint32_t axis = (uint32_t)ir_attr_int(ctx->g, node, IR_ATTR_axis, 0);
  eval_rows rows = {.outer = 1, .extent = (uint64_t)x->dims[axis], .inner = 1, .picks = index->count};
  for (uint32_t i = 0; i < axis; i++) rows.outer *= (uint64_t)x->dims[i];
  for (uint32_t i = axis + 1; i < x->rank; i++) rows.inner *= (uint64_t)x->dims[i];
  return rows;
}

int64_t eval_row(int32_t dtype, int64_t i, uint64_t extent) {
  if (i < 0 && (ir_dtypes[dtype].is_signed || dtype != SNT_U64)) return -1;
  return (uint64_t)i < extent ? i : -1;
}
