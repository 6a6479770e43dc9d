/* The budget of scratch memory: a plan that fits in another order is made in that order, one that does not fit is refused by naming its tensors. */
#include "tests/tap.h"
#include <sinter/sinter.h>

/* Two branches whose wide values are alive together when they are computed side by side, one after the other when not. */
static const char text[] =
    "graph @branches(%x: f32[64,64]) {\n"
    "  %a = matmul %x, %x\n  %b = transpose %a, perm=[1,0]\n  %wide_a = matmul %b, %a\n  %ra = reduce.sum %wide_a, axes=[0]\n"
    "  %c = exp %x\n  %d = matmul %c, %x\n  %wide_b = matmul %d, %d\n  %rb = reduce.max %wide_b, axes=[0]\n"
    "  return a=%ra, b=%rb\n}\n";

static snt_result compile(snt_context *context, snt_profile *profile, uint64_t peak, uint64_t *scratch, snt_diag *diag) {
  snt_graph *graph = NULL;
  snt_program *program = NULL;
  snt_compile_info info = {.head = SNT_HEAD(compile_info), .targets = SNT_TARGET_HOST, .peak_bytes = peak};
  snt_result r = snt_graph_create(context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, text, sizeof text - 1, NULL, diag);
  if (r == SNT_OK) r = snt_compile(graph, profile, &info, &program, diag);
  if (r == SNT_OK && scratch) *scratch = snt_program_kernel_count(program);
  snt_program_destroy(program);
  snt_graph_destroy(graph);
  return r;
}

int main(void) {
  snt_context *context = NULL;
  snt_profile *profile = NULL;
  snt_diag diag = {0};
  uint64_t kernels = 0, within = 0;
  tap_begin();
  tap_ok(snt_context_create(NULL, &context) == SNT_OK, "a context");
  tap_ok(snt_profile_builtin(context, "pocl", &profile) == SNT_OK, "a profile");
  tap_ok(compile(context, profile, 0, &kernels, &diag) == SNT_OK && kernels > 2, "without a budget %s", diag.text);
  tap_ok(compile(context, profile, 1 << 20, &within, &diag) == SNT_OK && within == kernels, "within a budget %s", diag.text);
  const snt_result r = compile(context, profile, 4096, NULL, &diag);
  tap_ok(r == SNT_E_LIMIT, "over the budget is a limit: %d", (int)r);
  tap_ok(strstr(diag.text, "budget is 4096") && strstr(diag.text, "largest tensors: "), "the error has the numbers: %s", diag.text);
  tap_ok(strstr(diag.text, "16384") != NULL, "and the sizes of tensors: %s", diag.text);
  snt_profile_destroy(profile);
  snt_context_destroy(context);
  return tap_done();
}
