/* Groups of a contraction on a processor: each of its units takes its part of those that are left, one after another, so that of two units
   the first one takes half of the groups. These have half of the multiply-adds, however many tiles there are; counted by the interpreter.
   And what stores that pass the caches by wait for, where vectors are wider than the profile's. */
#include "api/handles.h"
#include "ir/kir_interp.h"
#include "tests/tap.h"
#include <stdlib.h>

static const char profile_text[] = "base = pocl\nname = wide\nlanes = 16\nregisters = 32\n";
static const char linear[] = "graph @linear(%%x: f32[%d,%d]) {\n  %%w: f32[%d,%d] = const normal seed=1 scale=0.05\n  %%y: f32[%d,%d] = "
                             "linear %%x, %%w\n  return y=%%y\n}\n";
static const char convolution[] = "graph @convolution(%%x: f32[1,%d,%d,%d]) {\n  %%w: f32[%d,%d,3,3] = const normal seed=1 scale=0.05\n"
                                  "  %%y = conv %%x, %%w, pads=[1,1,1,1], stride=[2,2]\n  return y=%%y\n}\n";
/* One axis of positions, whose source is padded: there is nothing else to share out. Each group copies the source, so there is one for each unit. */
static const char along_one[] = "graph @along_one(%x: f32[1,64,2048]) {\n  %w: f32[64,64,11] = const normal seed=1 scale=0.05\n"
                                "  %y = conv %x, %w, pads=[5,5]\n  return y=%y\n}\n";

static uint64_t literal(const snt_program *p, ir_expr e) {
  int64_t value = 0;
  return expr_is_const(p->plan.pool, e, &value) ? (uint64_t)value : 0;
}

/* Multiply-adds of the first groups of the step. */
static double adds_of(const snt_program *p, const plan_step *s, uint64_t groups) {
  const kir_kernel *k = p->kernels[s->kernel].legal[0];
  for (uint32_t i = 0; !k && i < API_TARGETS; i++) k = p->kernels[s->kernel].legal[i];
  kir_interp_buffer buffers[16] = {{0}};
  kir_interp_inst *insts = calloc(k->insts.count, sizeof *insts);
  kir_interp_stats stats = {0};
  snt_diag diag = {0};
  for (uint32_t i = 0; i < s->binding_count && i < IR_COUNT(buffers); i++) {
    buffers[i].bytes = literal(p, s->bindings[i].bytes);
    buffers[i].data = calloc(buffers[i].bytes + 64, 1);
  }
  const kir_interp_info info = {.kernel = k, .groups = groups, .insts = insts, .buffer_count = s->binding_count, .buffers = buffers};
  tap_ok(kir_interp_run(&info, &p->context->alloc, &stats, &diag) == SNT_OK, "%llu groups run %s", (unsigned long long)groups, diag.text);
  double adds = 0;
  for (uint32_t i = 1; i < k->insts.count; i++)
    if (kir_at(k, i)->op == KIR_fma) adds += (double)insts[i].runs;
  for (uint32_t i = 0; i < s->binding_count && i < IR_COUNT(buffers); i++) free(buffers[i].data);
  free(insts);
  return adds;
}

static void shares_evenly(snt_context *context, snt_profile *profile, const char *text, uint64_t least, uint64_t most) {
  snt_graph *graph = NULL;
  snt_program *program = NULL;
  snt_diag diag = {0};
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .targets = SNT_TARGET_HOST};
  snt_result r = snt_graph_create(context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, text, strlen(text), NULL, &diag);
  if (r == SNT_OK) r = snt_compile(graph, profile, &info, &program, &diag);
  if (tap_ok(r == SNT_OK && program->plan.steps.count, "%.60s: compiled %s", text, diag.text)) {
    uint32_t at = 0;
    while (at + 1 < program->plan.steps.count && !strstr(program->plan.steps.at[at].name, "contract")) at++;
    const plan_step *s = &program->plan.steps.at[at];
    const uint64_t groups = literal(program, s->groups);
    const double part = adds_of(program, s, (groups + 1) / 2) / adds_of(program, s, groups);
    tap_ok(part > 0.47 && part < 0.53, "%.60s: the first half of %llu groups has half of the work: %.3f", text, (unsigned long long)groups,
           part);
    tap_ok(groups >= least && groups <= most, "in enough groups: %llu", (unsigned long long)groups);
  }
  snt_program_destroy(program);
  snt_graph_destroy(graph);
}

static void widens(double port_lanes, double times) {
  cost_profile storage, wide = *cost_profile_builtin("pocl", &storage);
  wide.port_lanes = port_lanes;
  cost_profile_widen(&wide, 16);
  tap_ok(wide.stream_threshold == times * storage.stream_threshold, "16 lanes by ports of %g: stores stream beyond %g of the last cache",
         port_lanes, wide.stream_threshold / storage.stream_threshold);
  tap_ok(cost_op_cycles(&storage, IR_OP_exp, SNT_F32) == storage.special_cycles &&
             cost_op_cycles(&wide, IR_OP_exp, SNT_F32) == storage.table_exp_cycles &&
             cost_op_cycles(&wide, IR_OP_tanh, SNT_F32) == storage.table_tanh_cycles &&
             cost_op_cycles(&wide, IR_OP_erf, SNT_F32) == storage.table_erf_cycles &&
             cost_op_cycles(&wide, IR_OP_log, SNT_F32) == cost_op_cycles(&storage, IR_OP_log, SNT_F32),
         "exp, tanh and erf take less where a vector is a table, log does not");
}

int main(void) {
  widens(0, 1.5);
  widens(8, 1);

  snt_context *context = NULL;
  snt_profile *profile = NULL;
  snt_diag diag = {0};
  char text[512];
  static const int columns[] = {384, 1152, 1280, 448, 1600};
  static const int images[] = {50, 64};
  tap_begin();
  tap_ok(snt_context_create(NULL, &context) == SNT_OK, "a context");
  tap_ok(snt_profile_parse(context, profile_text, sizeof profile_text - 1, &profile, &diag) == SNT_OK, "a profile of 16 lanes %s",
         diag.text);
  for (uint32_t i = 0; i < IR_COUNT(columns); i++) {
    const int n = columns[i];
    snprintf(text, sizeof text, linear, 96, 64, n, 64, 96, n);
    shares_evenly(context, profile, text, 6, UINT64_MAX);
  }
  for (uint32_t i = 0; i < IR_COUNT(images); i++) {
    const int n = images[i];
    snprintf(text, sizeof text, convolution, 64, n, n, 128, 64);
    shares_evenly(context, profile, text, 6, UINT64_MAX);
  }
  shares_evenly(context, profile, along_one, 2, 2);
  snt_profile_destroy(profile);
  snt_context_destroy(context);
  return tap_done();
}
