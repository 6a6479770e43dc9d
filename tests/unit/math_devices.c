/* The transcendental functions on every device this machine has: expanded and legalised for its capabilities, generated, compiled by its
   driver and compared with long double. What the promises of ir/kir_math.def are worth in practice. Arguments: parts of selectors. */
#include "ir/math/private.h"
#include "runtime/rt_common.h"
#include "runtime/targets.h"
#include "tests/tap.h"
#include "tests/unit/device_names.h"
#include "tests/unit/math_support.h"
#include "tools/host/host.h"

enum { SAMPLES = 65536, LANES = 4, ITEMS = 64, TOGETHER = 6 /* functions in one kernel */ };

typedef struct bench {
  rt_device *device;
  const rt_vtable *v;
  const codegen_target *target;
  rt_stream *stream;
  rt_buffer *a, *b, *y;
  kir_caps caps;
  const char *selector;
} bench;

static uint32_t a_bits[SAMPLES], b_bits[SAMPLES];
static float results[TOGETHER][SAMPLES];

static bool passed(bench *t, const char *what, snt_result result, const snt_diag *diag) {
  if (result == SNT_OK) return true;
  return tap_ok(false, "%s: %s: %s", t->selector, what, diag->text);
}

/* y[f * SAMPLES + i] = function f of a[i], b[i]; every lane its own element. */
static void build(kir_kernel *k, ir_arena *arena, const math_truth *first, uint32_t count) {
  static const char *const names[] = {"a", "b", "y"};
  kir_init(k, arena, "math");
  k->items[0] = ITEMS;
  uint32_t memory[3];
  for (uint32_t i = 0; i < 3; i++)
    memory[i] = kir_memory_add(k, &(kir_memory){.name = names[i],
                                                .space = KIR_GLOBAL,
                                                .access = i < 2 ? KIR_READ : KIR_WRITE,
                                                .rank = 1,
                                                .slot = i,
                                                .type = kir_t(SNT_F32, 1),
                                                .dims = {i < 2 ? SAMPLES : TOGETHER * SAMPLES}});
  const uint32_t ids[] = {kir_id(k, KIR_group, 0), kir_id(k, KIR_local, 0)};
  const int64_t coefs[] = {ITEMS * LANES, LANES};
  const uint32_t at = kir_ix(k, 2, coefs, ids, 0), a = kir_load(k, memory[0], LANES, 1, &at), b = kir_load(k, memory[1], LANES, 1, &at);
  for (uint32_t f = 0; f < count; f++) {
    const kir_op op = first[f].op;
    const uint32_t to = kir_ix(k, 2, coefs, ids, (int64_t)f * SAMPLES);
    kir_store(k, memory[2], 1, &to, kir_ops[op].args == 2 ? kir_2(k, op, a, b) : kir_1(k, op, a));
  }
}

static bool dispatch(bench *t, rt_pipeline *pipeline, uint32_t count) {
  const uint64_t bytes = sizeof a_bits;
  struct rt_bound bound[] = {{t->a, 0, bytes, KIR_READ}, {t->b, 0, bytes, KIR_READ}, {t->y, 0, bytes * TOGETHER, KIR_WRITE}};
  const rt_dispatch call = {
      .pipeline = pipeline, .groups = SAMPLES / (ITEMS * LANES), .binding_count = 3, .bindings = bound, .barrier = true};
  snt_diag diag = {0};
  return passed(t, "runs", t->v->submit(t->stream, 1, &call, false, NULL, &diag), &diag) &&
         passed(t, "reads back", t->v->download(t->stream, t->y, 0, results, bytes * count, &diag), &diag);
}

static bool run(bench *t, const math_truth *first, uint32_t count) {
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  kir_kernel kernel, legal;
  codegen_code text = {0};
  snt_diag diag = {0};
  rt_pipeline *pipeline = NULL;
  build(&kernel, &arena, first, count);
  kir_init(&legal, &arena, "math");
  bool ok = passed(t, "legalises", kir_run_passes(&kernel, &legal, &t->caps, NULL, NULL, &diag), &diag) &&
            passed(t, "generates", t->target->emit(&legal, &t->caps, &arena, &text, &diag), &diag);
  const rt_code code = {.data = text.data,
                        .size = text.size,
                        .entry = "math",
                        .kernel = &legal,
                        .items = {ITEMS, 1, 1},
                        .binding_count = ok ? kir_binding_count(&legal) : 0,
                        .block_bytes = ok ? kir_block_bytes(&legal) : 0};
  ok = ok && passed(t, "compiles", t->v->pipeline_create(t->device, &code, NULL, 0, &pipeline, &diag), &diag) &&
       dispatch(t, pipeline, count);
  if (pipeline) t->v->pipeline_destroy(pipeline);
  ir_arena_free(&arena);
  return ok;
}

static void compare(bench *t, const math_truth *m, const float *got) {
  double worst = 0;
  uint32_t at = 0;
  for (uint32_t i = 0; i < SAMPLES; i++) {
    const float a = math_float(a_bits[i]), b = math_float(b_bits[i]);
    const double e = math_error(got[i], m->one ? m->one(a) : m->two(a, b), true);
    if (e > worst) worst = e, at = i;
  }
  const double promise = (double)kir_math_max_ulp(m->op);
  if (!tap_ok(worst <= promise, "%s: %s within %.2f ulp (%.3f)", t->selector, kir_ops[m->op].name, promise, worst))
    tap_diag("  of %a, %a: %a", (double)math_float(a_bits[at]), (double)math_float(b_bits[at]), (double)got[at]);
}

static void check_functions(bench *t) {
  for (uint32_t first = 0; first < math_truth_count; first += TOGETHER) {
    const uint32_t left = math_truth_count - first, count = left < TOGETHER ? left : TOGETHER;
    if (!run(t, &math_truths[first], count)) continue;
    for (uint32_t f = 0; f < count; f++) compare(t, &math_truths[first + f], results[f]);
  }
}

/* Edges, bit patterns and dense samples; every fourth is a pair that makes sense for pow. */
static void make_samples(void) {
  static const math_truth pairs = {.two = powl}, singles = {.one = expl};
  static uint32_t alone[SAMPLES], zeros[SAMPLES];
  const uint32_t spread = (SAMPLES - math_edge_count) / 2;
  math_fill(&pairs, 0, spread, 1, SAMPLES, a_bits, b_bits);
  math_fill(&singles, 0, spread, (uint32_t)(((uint64_t)1 << 32) / spread), SAMPLES, alone, zeros);
  for (uint32_t i = 0; i < SAMPLES; i++)
    if (i % 4) a_bits[i] = alone[i];
}

static bool open_bench(bench *t, const rt_hooks *hooks) {
  snt_diag diag = {0};
  if (rt_open_device(NULL, hooks, t->selector, &t->device, &diag) != SNT_OK) {
    tap_skip("%s: %s", t->selector, diag.text);
    return false;
  }
  t->v = t->device->v;
  t->target = rt_codegen(t->device->target);
  if (!t->target) return tap_ok(false, "%s: has a generator", t->selector);
  t->caps = t->device->profile.caps;
  rt_narrow_caps(&t->caps, t->target->caps);
  const uint64_t bytes = sizeof a_bits;
  return passed(t, "stream", t->v->stream_create(t->device, &t->stream, &diag), &diag) &&
         passed(t, "buffers", t->v->buffer_create(t->device, bytes, &t->a, &diag), &diag) &&
         passed(t, "buffers", t->v->buffer_create(t->device, bytes, &t->b, &diag), &diag) &&
         passed(t, "buffers", t->v->buffer_create(t->device, bytes * TOGETHER, &t->y, &diag), &diag) &&
         passed(t, "upload", t->v->upload(t->stream, t->a, 0, a_bits, bytes, &diag), &diag) &&
         passed(t, "upload", t->v->upload(t->stream, t->b, 0, b_bits, bytes, &diag), &diag);
}

static void check_device(const char *selector, const rt_hooks *hooks) {
  bench t = {.selector = selector};
  if (open_bench(&t, hooks)) check_functions(&t);
  if (t.a) t.v->buffer_destroy(t.a);
  if (t.b) t.v->buffer_destroy(t.b);
  if (t.y) t.v->buffer_destroy(t.y);
  if (t.stream) t.v->stream_destroy(t.stream);
  if (t.device) rt_close_device(t.device);
}

static bool wanted(int argc, char **argv, const char *selector) {
  for (int i = 1; i < argc; i++)
    if (strstr(selector, argv[i])) return true;
  return argc < 2;
}

/* Arguments: parts of selectors, or another device's whole one; none: all. */
int main(int argc, char **argv) {
  host_prepare_drivers(NULL);
  const snt_backend *hook = host_cuda_text();
  const rt_hooks hooks = {1, &hook};
  make_samples();
  for (uint32_t i = 0; i < IR_COUNT(device_names); i++)
    if (wanted(argc, argv, device_names[i])) check_device(device_names[i], &hooks);
  for (int n = 1; n < argc; n++)
    if (device_is_another(argv[n])) check_device(argv[n], &hooks);
  return tap_done();
}
