/* The listings in tests/golden/kernel after the whole pipeline: some groups of each are interpreted before and after, for several targets. Where a
   target keeps functions, fused multiply-adds and subgroups the bits must be equal; elsewhere values must be close. */
#include "ir/kir_pass.h"
#include "tests/unit/kernel_support.h"
#include "tests/tap.h"

enum { MAX_BUFFERS = 5 };
typedef struct setting {
  const char *name;
  double value;
} setting;
/* Buffers: elements as the declared type; those that are floats are filled with numbers in [-1, 1). */
static const struct listing {
  const char *name;
  uint64_t groups;
  uint64_t elements[MAX_BUFFERS];
  setting scalars[3];
} listings[] = {
    {"chain10", 2, {100003, 100003, 100003}, {{"n", 100003}}},
    {"softmax_rows", 1, {4194304, 4194304, 4194304}, {{0}}},
    {"softmax_group", 3, {4194304, 4194304, 4194304}, {{0}}},
    {"linear_gelu", 3, {13 * 768, 2359296, 3072, 13 * 3072}, {{"M", 13}, {"q", 6}, {"rem", 1}}},
    {"attention", 1, {393216, 393216, 393216, 512, 393216}, {{0}}},
    {"kv_append", 2, {4096, 524288, 65536, 512 * 4}, {{"cap", 4}, {"past", 1}}},
    {"matmul_texel", 2, {262144, 262144, 1048576}, {{"K4", 16}}},
    {"post", 1, {6220800, 6220800}, {{0}}},
    {"fragments", 1, {64, 64, 64}, {{0}}},
    {"fragment_lanes", 1, {256, 256, 512}, {{0}}},
    {"control", 1, {64, 128, 128}, {{"n", 64}, {"f", 7}}},
};

#define EXACT .fma_fused = true, .exact_div = true, .exact_sqrt = true, .int64 = true, .f64 = true, .atomics_f32 = true
// clang-format off
static const struct target { const char *name; bool exact; kir_caps caps; } targets[] = {
    {"explicit vectors", true, {EXACT, .target = "a", .max_lanes = 16, .vector_memory = 64, .f16_storage = true, .int8_storage = true, .int16_storage = true,
                                .keeps_math = true, .shuffle = true, .prefetch = true, .stream = true, .subgroups = true, .subgroup_arithmetic = true}},
    {"single lanes", true, {EXACT, .target = "b", .max_lanes = 1, .vector_memory = 16, .f16_storage = true, .f16_arithmetic = true, .int8_storage = true,
                            .int16_storage = true, .keeps_math = true, .subgroups = true, .subgroup_arithmetic = true}},
    {"everything", true, {EXACT, .target = "e", .max_lanes = 16, .vector_memory = 64, .f16_arithmetic = true, .f16_storage = true, .bf16_storage = true,
                          .int8_storage = true, .int16_storage = true, .keeps_math = true, .subgroups = true, .subgroup_arithmetic = true, .prefetch = true,
                          .stream = true, .texel = true, .images = true, .async_copy = true, .mma = KIR_MMA_ALL(KIR_MMA_ANY), .fragment_lanes = true, .oob_zero = true, .shuffle = true, .hred = true,
                          .wrap = true, .divmod = true, .minmax_nan = true, .ix = true, .fill = true, .lanes_memory = true, .pack2 = true}},
    {"lanes by shuffles", false, {EXACT, .target = "d", .max_lanes = 1, .vector_memory = 16, .int8_storage = true, .subgroups = true, .subgroup_size = 4}},
    {"little", false, {.target = "c", .max_lanes = 4, .vector_memory = 16, .aligned_vectors = true, .nan_unsafe = true, .int64 = true}},
};
// clang-format on

/* ---- one run ---- */
typedef struct memory {
  void *data[MAX_BUFFERS];
  uint64_t bytes[MAX_BUFFERS];
  uint32_t count;
} memory;

static bool fill_memory(memory *m, const kir_kernel *k, const struct listing *l, ir_arena *arena) {
  for (m->count = 0; m->count < k->memories.count && m->count < MAX_BUFFERS && l->elements[m->count]; m->count++) {
    const kir_memory *mem = &k->memories.at[m->count];
    const uint64_t n = l->elements[m->count] * mem->type.lanes;
    uint32_t seed = m->count + 1;
    m->bytes[m->count] = n * ir_dtypes[mem->type.base].bytes;
    uint8_t *data = m->data[m->count] = ir_arena_take(arena, m->bytes[m->count], 64);
    if (!data) return false;
    for (uint64_t i = 0; i < n && mem->access != KIR_WRITE; i++) {
      if (mem->type.base == SNT_F32) ((float *)data)[i] = kernel_number(&seed);
      else if (mem->view == SNT_F16) ((uint32_t *)data)[i] = ir_f16_from_f32(kernel_number(&seed)) * 0x10001u;
      else data[i * ir_dtypes[mem->type.base].bytes] = (uint8_t)(seed >> 8), kernel_number(&seed);
    }
  }
  return true;
}

static snt_result run(const kir_kernel *k, const struct listing *l, const memory *m, snt_diag *diag) {
  kernel_dispatch d;
  kernel_dispatch_init(&d, k, l->groups);
  for (uint32_t i = 0; i < m->count; i++) kernel_dispatch_buffer(&d, m->data[i], m->bytes[i]);
  for (uint32_t i = 0; i < IR_COUNT(l->scalars) && l->scalars[i].name; i++)
    kernel_dispatch_scalar(&d, l->scalars[i].name, l->scalars[i].value);
  const snt_result r = kernel_dispatch_run(&d);
  *diag = d.diag;
  return r;
}

/* Largest difference of f32 buffers relative to max(1, |x|), counting differing bits of others as infinite. */
static double difference(const kir_kernel *k, const memory *a, const memory *b) {
  double most = 0;
  for (uint32_t n = 0; n < a->count; n++) {
    if (!memcmp(a->data[n], b->data[n], a->bytes[n])) continue;
    if (k->memories.at[n].type.base != SNT_F32 && k->memories.at[n].view != SNT_F16) return INFINITY;
    const bool half = k->memories.at[n].view == SNT_F16;
    for (uint64_t i = 0; i < a->bytes[n] / (half ? 2 : 4); i++) {
      const double x = ir_dtype_load(half ? SNT_F16 : SNT_F32, a->data[n], i), y = ir_dtype_load(half ? SNT_F16 : SNT_F32, b->data[n], i);
      const double error = x == y ? 0 : fabs(x - y) / fmax(1, fabs(x)) / (half ? 256 : 1);
      if (!(error <= most)) most = error;
    }
  }
  return most;
}

static void check_target(const kir_kernel *in, const struct listing *l, const memory *before, const struct target *t) {
  ir_arena arena;
  kir_kernel out;
  memory after = {.count = 0};
  snt_diag diag = {0};
  const kir_pass_hooks hooks = {.verify = true};
  ir_arena_init(&arena, NULL);
  kir_init(&out, &arena, "out");
  snt_result r = kir_run_passes(in, &out, &t->caps, NULL, &hooks, &diag);
  const char *lacks = *in->needs && !t->caps.mma[0].m ? in->needs : in->sub && in->sub != ~0u && !t->caps.subgroups ? "subgroups" : NULL;
  if (lacks) {
    tap_ok(r == SNT_E_UNSUPPORTED && strstr(diag.text, lacks), "%s for %s is refused by name: %s", l->name, t->name, diag.text);
    ir_arena_free(&arena);
    return;
  }
  if (r == SNT_OK) r = fill_memory(&after, in, l, &arena) ? run(&out, l, &after, &diag) : SNT_E_HOST_MEM;
  if (!tap_ok(r == SNT_OK, "%s runs after the passes for %s", l->name, t->name)) {
    tap_diag("%s", diag.text);
    ir_arena_free(&arena);
    return;
  }
  const double error = difference(in, before, &after);
  tap_ok(t->exact ? error == 0 : error < 2e-5, "%s for %s: difference %g", l->name, t->name, error);
  ir_arena_free(&arena);
}

static void check_listing(const struct listing *l) {
  ir_arena arena;
  kir_kernel k;
  memory before = {.count = 0};
  snt_diag diag = {0};
  ir_arena_init(&arena, NULL);
  const bool ready = kernel_from_golden(&k, &arena, l->name) && fill_memory(&before, &k, l, &arena);
  if (tap_ok(ready && run(&k, l, &before, &diag) == SNT_OK, "%s runs %s", l->name, diag.text))
    for (uint32_t t = 0; t < IR_COUNT(targets); t++) check_target(&k, l, &before, &targets[t]);
  ir_arena_free(&arena);
}

int main(int argc, char **argv) {
  for (uint32_t i = 0; i < IR_COUNT(listings); i++)
    if (argc < 2 || !strcmp(argv[1], listings[i].name)) check_listing(&listings[i]);
  return tap_done();
}
