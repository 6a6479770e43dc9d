/* The reference evaluator, and the comparison of a device's result with it. */
#include "ir/eval/private.h"
#include <math.h>

snt_result ir_eval_reference(const ir_graph *g, const ir_eval_info *info, ir_arena *arena, ir_eval_tensor *outputs, snt_diag *diag) {
  static const eval_engine reference = {
      .stage = "reference",
      .bounds = true,
      .point = ref_point,
      .cast = ref_cast,
      .bitcast = ref_bitcast,
      .reduce = ref_reduce,
      .scan = ref_scan,
      .contract = ref_contract,
      .gather = ref_gather,
      .scatter = ref_scatter,
      .random = ref_random,
  };
  return eval_run(&reference, g, info, arena, outputs, diag);
}

/* error / bound: 0 where they agree, infinite where a bound of 0 is missed. */
static double ratio_of(double got, double want, double bound) {
  if (got == want || isinf(bound)) return 0;
  double error = fabs(got - want);
  return bound > 0 ? error / bound : (double)INFINITY;
}

void ir_eval_compare(const ir_eval_tensor *expected, int32_t dtype, const void *actual, ir_eval_report *out) {
  *out = (ir_eval_report){0};
  for (uint64_t i = 0; i < expected->count; i++) {
    double bound = expected->bound ? expected->bound[i] : 0, got, want, ratio;
    if (expected->value) {
      got = ir_dtype_load(dtype, actual, i), want = expected->value[i];
      if (isnan(got) != isnan(want) && !isinf(bound)) out->nan_mismatch++;
      if (isnan(got) || isnan(want)) continue;
      ratio = ratio_of(got, want, bound);
    } else {
      int64_t n = ir_dtype_load_int(dtype, actual, i);
      got = eval_int_to_float(dtype, n), want = eval_int_to_float(expected->type.dtype, expected->ints[i]);
      ratio = n == expected->ints[i] ? 0 : got == want && bound == 0 ? (double)INFINITY : ratio_of(got, want, bound);
    }
    if (ratio <= out->max_ratio && !(i == 0)) continue;
    out->max_ratio = ratio, out->worst_index = i, out->got = got, out->want = want, out->bound = bound;
  }
}
