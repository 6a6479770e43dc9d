/* The value of an operator of the user's own: that of its operand 0, with the error that its texts may have on top. Views, not copies, where
   there is no bound to widen. */
#include "ir/eval/private.h"
#include <math.h>

/* ulp=: what the texts may be off by, beside the reference's own error. */
static snt_result widen(eval_ctx *ctx, double ulps, eval_view *value) {
  const bound_type type = bound_type_of(ctx, value->dtype);
  eval_view wide = *value;
  SNT_TRY(eval_new(ctx, &wide, true));
  for (uint64_t i = 0; i < wide.count; i++) {
    const bounded was = ref_load(value, eval_offset_at(value, i));
    ((double *)wide.buffer->data)[i] = was.v;
    wide.buffer->bound[i] = was.e + (isfinite(was.v) ? ulps * bound_ulp(&type, was.v) : 0);
  }
  eval_release(ctx, value);
  *value = wide;
  return SNT_OK;
}

snt_result eval_custom(eval_ctx *ctx, uint32_t node, eval_view *out) {
  eval_view shape;
  const eval_view value = eval_share(&ctx->values[ir_arg(ctx->g, node, 0)]);
  *out = value; /* the caller releases it after an error */
  SNT_TRY(eval_type_of(ctx, node, &shape));
  *out = eval_spread(&value, &shape);
  const int64_t ulps = ir_attr_int(ctx->g, node, IR_ATTR_ulp, 0);
  if (!ctx->engine->bounds || !ulps || !ir_dtypes[out->dtype].is_float) return SNT_OK;
  return widen(ctx, (double)ulps, out);
}
