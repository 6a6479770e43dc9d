/* Differential test of the passes: random structured kernels are interpreted before and after the whole pipeline, for several targets, and must leave
   the same bits in every buffer (a NaN is a NaN). The argument is a seed to run alone, printed on failure with the kernel. */
#include "ir/kir_pass.h"
#include "tests/tap.h"
#include "tests/unit/kernel_random.h"

static bool same_buffers(const random_buffers *a, const random_buffers *b) {
  char why[160];
  const bool same = random_same(a, b, why, sizeof why);
  if (!same) tap_diag("%s", why);
  return same;
}

/* ---- targets ---- */
#define EXACT .target = "test", .int64 = true, .f64 = true, .exact_div = true, .exact_sqrt = true, .keeps_math = true, .atomics_f32 = true
// clang-format off
static const struct target { const char *name, *only; kir_caps caps; } targets[] = {
    {"like OpenCL", NULL, {EXACT, .max_lanes = 16, .vector_memory = 64, .f16_storage = true, .int8_storage = true, .int16_storage = true, .fma_fused = true,
                           .shuffle = true, .prefetch = true, .stream = true}},
    {"like CUDA", NULL, {EXACT, .max_lanes = 1, .vector_memory = 16, .f16_storage = true, .f16_arithmetic = true, .bf16_storage = true, .int8_storage = true,
                         .int16_storage = true, .fma_fused = true, .narrow_local = true}},
    {"like Vulkan without narrow storage", NULL, {EXACT, .max_lanes = 4, .vector_memory = 16, .fma_fused = true, .shuffle = true, .nan_unsafe = true,
                                                  .aligned_vectors = true}},
    {"like Vulkan with packing", NULL, {EXACT, .max_lanes = 4, .vector_memory = 16, .fma_fused = true, .pack2 = true, .minmax_nan = true, .int8_storage = true}},
    {"two lanes", NULL, {EXACT, .max_lanes = 2, .vector_memory = 8, .fma_fused = true, .divmod = true, .ix = true, .f16_storage = true}},
    {"everything", NULL, {EXACT, .max_lanes = 16, .vector_memory = 64, .f16_storage = true, .f16_arithmetic = true, .bf16_storage = true, .int8_storage = true,
                          .int16_storage = true, .fma_fused = true, .shuffle = true, .hred = true, .wrap = true, .divmod = true, .minmax_nan = true, .ix = true,
                          .fill = true, .lanes_memory = true, .pack2 = true, .permute = 16, .narrow_local = true}},
    {"unroll alone", "unroll", {EXACT, .max_lanes = 16}},
    {"scalar replacement alone", "sroa", {EXACT, .max_lanes = 16}},
    {"cse and dce", "cse,dce", {EXACT, .max_lanes = 16}},
    {"licm", "licm", {EXACT, .max_lanes = 16}},
    {"fold", "fold", {EXACT, .max_lanes = 16}},
    {"split to one lane", "expand,split", {EXACT, .max_lanes = 1, .vector_memory = 16}},
};
// clang-format on

static void explain(const kir_kernel *k, const char *title) {
  ir_arena arena;
  ir_text text;
  ir_arena_init(&arena, NULL);
  ir_text_init(&text, &arena);
  kir_print(k, &text);
  tap_diag("%s", title);
  tap_diag_text(text.at ? text.at : "");
  ir_arena_free(&arena);
}

/* After each pass, until one changes the bits: names it and shows its result. */
typedef struct blame {
  const random_buffers *before;
  bool found;
} blame;
static void blame_pass(void *user, const char *pass, const kir_kernel *k) {
  static random_buffers after;
  blame *b = user;
  snt_diag diag = {0};
  if (b->found) return;
  const bool ran = random_run(k, &after, &diag) == SNT_OK;
  b->found = !ran || !same_buffers(b->before, &after);
  if (!b->found) return;
  tap_diag("first wrong after pass %s %s", pass, ran ? "" : diag.text);
  explain(k, "which left:");
}

static bool check_target(const kir_kernel *in, const struct target *t, const random_buffers *before, bool show) {
  static random_buffers after;
  ir_arena arena;
  kir_kernel out;
  snt_diag diag = {0};
  blame who = {before, !show};
  const kir_pass_hooks hooks = {.verify = true, .after = blame_pass, .user = &who};
  ir_arena_init(&arena, NULL);
  kir_init(&out, &arena, "out");
  snt_result r = kir_run_passes(in, &out, &t->caps, t->only, &hooks, &diag);
  if (r == SNT_OK) r = random_run(&out, &after, &diag);
  const bool same = r == SNT_OK && same_buffers(before, &after);
  if (!same) tap_diag("%s: result %d %s: %s", t->name, r, diag.stage, diag.text);
  ir_arena_free(&arena);
  return same;
}

static bool check_seed(uint64_t seed, bool show, uint32_t *useful) {
  static random_buffers before;
  ir_arena arena;
  kir_kernel k;
  snt_diag diag = {0};
  bool good = true;
  ir_arena_init(&arena, NULL);
  kir_init(&k, &arena, "random");
  random_kernel(&k, seed, seed % 3 == 0);
  if (k.failed || kir_verify(&k, NULL, &diag) != SNT_OK || random_run(&k, &before, &diag) != SNT_OK) {
    tap_diag("seed %llu: the generated kernel is no good: %s", (unsigned long long)seed, k.failed ? k.first_error.text : diag.text);
    good = !show && !k.failed && false;
  }
  for (uint32_t t = 0; t < IR_COUNT(targets) && good; t++)
    if (!(good = check_target(&k, &targets[t], &before, show))) tap_diag("seed %llu, %s", (unsigned long long)seed, targets[t].name);
  *useful += k.insts.count > 100;
  if (!good && show) explain(&k, "before the passes:");
  ir_arena_free(&arena);
  return good;
}

int main(int argc, char **argv) {
  uint32_t failed = 0, useful = 0, total = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 300;
  if (argc > 1 && strtoull(argv[1], NULL, 0)) {
    tap_plan(1);
    tap_ok(check_seed(strtoull(argv[1], NULL, 0), true, &useful), "seed %s", argv[1]);
    return tap_done();
  }
  tap_plan(2);
  for (uint64_t seed = 1; seed <= total && failed < 5; seed++) failed += !check_seed(seed, false, &useful);
  tap_ok(failed == 0, "random kernels give the same bits before and after the passes, on %u targets", IR_COUNT(targets));
  tap_ok(useful > total / 2, "%u of %u kernels have more than 100 instructions", useful, total);
  return tap_done();
}
