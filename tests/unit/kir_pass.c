/* Passes on kernel IR against files: tests/golden/passes/NAME.txt holds the passes to run, a target, a kernel before and the kernel or error after.
   `--bless` writes what comes out into the files. Then facts that listings must end with, and the time a large kernel takes. */
#include "ir/kir_pass.h"
#include "tests/tap.h"
#include <dirent.h>
#include <time.h>

static const char *folder = "tests/golden/passes";

/* ---- targets by name ---- */
// clang-format off
static const kir_caps targets[] = {
    {.target = "all", .max_lanes = 16, .vector_memory = 64, .f16_arithmetic = true, .f16_storage = true, .bf16_storage = true, .int8_storage = true,
     .int16_storage = true, .int64 = true, .f64 = true, .fma_fused = true, .fma_fast = true, .keeps_math = true, .subgroups = true,
     .subgroup_arithmetic = true, .exact_div = true, .exact_sqrt = true, .prefetch = true, .stream = true, .texel = true, .images = true,
     .async_copy = true, .mma = KIR_MMA_ALL(KIR_MMA_ANY), .atomics_f32 = true, .oob_zero = true, .shuffle = true, .hred = true, .wrap = true, .divmod = true,
     .minmax_nan = true, .ix = true, .fill = true, .lanes_memory = true, .pack2 = true, .permute = 16, .narrow_local = true},
    {.target = "opencl", .max_lanes = 16, .vector_memory = 64, .f16_storage = true, .int8_storage = true, .int16_storage = true, .int64 = true, .f64 = true,
     .fma_fused = true, .fma_fast = true, .exact_div = true, .exact_sqrt = true, .prefetch = true, .stream = true, .shuffle = true},
    {.target = "tables", .max_lanes = 16, .vector_memory = 64, .fma_fused = true, .fma_fast = true, .exact_div = true, .exact_sqrt = true, .shuffle = true, .permute = 16},
    {.target = "spirv", .max_lanes = 4, .vector_memory = 16, .subgroups = true, .subgroup_arithmetic = true, .texel = true, .images = true,
     .mma = {{16, 16, 16}}, .oob_zero = true, .shuffle = true, .aligned_vectors = true, .nan_unsafe = true},
    {.target = "words", .max_lanes = 4, .vector_memory = 16, .int8_storage = true, .texel = true, .shuffle = true, .aligned_vectors = true, .nan_unsafe = true},
    {.target = "cuda", .max_lanes = 1, .vector_memory = 16, .exp2 = true, .f16_arithmetic = true, .f16_storage = true, .bf16_storage = true, .int8_storage = true,
     .int16_storage = true, .int64 = true, .f64 = true, .fma_fused = true, .fma_fast = true, .subgroups = true, .subgroup_size = 32, .exact_div = true,
     .exact_sqrt = true, .atomics_f32 = true},
};
// clang-format on

static const kir_caps *find_target(const char *name) {
  for (uint32_t i = 0; i < IR_COUNT(targets); i++)
    if (!strcmp(targets[i].target, name)) return &targets[i];
  return NULL;
}

/* ---- files ---- */
typedef struct test_case {
  char passes[128], target[32], *head, *before, *after;
} test_case; /* texts point into the file's contents */

static char *read_whole(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  char *text = calloc(1, 1 << 20);
  const size_t n = text ? fread(text, 1, (1 << 20) - 1, f) : 0;
  if (text) text[n] = 0;
  fclose(f);
  return text;
}

static bool split_case(char *text, test_case *t) {
  char *before = strstr(text, "--- before\n"), *after = strstr(text, "--- after\n");
  memset(t, 0, sizeof *t);
  if (!before || !after || after < before) return false;
  const char *passes = strstr(text, "\npasses "), *target = strstr(text, "\ntarget ");
  if (!passes || !target || sscanf(passes, " passes %127s", t->passes) != 1 || sscanf(target, " target %31s", t->target) != 1) return false;
  t->head = text;
  t->before = before + strlen("--- before\n");
  t->after = after + strlen("--- after\n");
  before[0] = after[0] = 0;
  return true;
}

static void write_case(const char *path, const test_case *t, const char *after) {
  FILE *f = fopen(path, "wb");
  if (!f) return;
  fprintf(f, "%s--- before\n%s--- after\n%s", t->head, t->before, after);
  fclose(f);
}

/* The kernel after the passes as text, or `error:` and its diagnostic. */
static const char *outcome(ir_arena *arena, const test_case *t) {
  kir_kernel in, out;
  snt_diag diag = {0};
  const kir_pass_hooks hooks = {.verify = true};
  ir_text text;
  ir_text_init(&text, arena);
  kir_init(&in, arena, "in");
  kir_init(&out, arena, "out");
  snt_result r = kir_parse(&in, t->before, strlen(t->before), &diag);
  if (r == SNT_OK) r = kir_run_passes(&in, &out, find_target(t->target), strcmp(t->passes, "all") ? t->passes : NULL, &hooks, &diag);
  if (r == SNT_OK) kir_print(&out, &text);
  else ir_text_format(&text, "error: %s\n", diag.text);
  return text.at;
}

static void check_file(const char *name, bool bless) {
  char path[512];
  test_case t;
  ir_arena arena;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  char *text = read_whole(path);
  ir_arena_init(&arena, NULL);
  if (tap_ok(text && split_case(text, &t) && find_target(t.target), "%s has passes, a known target, before and after", name)) {
    const char *got = outcome(&arena, &t);
    if (bless) write_case(path, &t, got);
    else tap_is_text(got, t.after, "%s: %s for %s", name, t.passes, t.target);
  }
  ir_arena_free(&arena);
  free(text);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void check_folder(bool bless) {
  enum { MAX_FILES = 256 };
  char *names[MAX_FILES];
  uint32_t count = 0;
  DIR *dir = opendir(folder);
  if (!tap_ok(dir != NULL, "%s can be read", folder)) return;
  for (struct dirent *e; (e = readdir(dir)) && count < MAX_FILES;) {
    const size_t n = strlen(e->d_name);
    if (n > 4 && !strcmp(e->d_name + n - 4, ".txt")) names[count++] = strdup(e->d_name);
  }
  closedir(dir);
  qsort(names, count, sizeof *names, by_name);
  tap_ok(count >= 15, "%u files", count);
  for (uint32_t i = 0; i < count; i++) {
    check_file(names[i], bless);
    free(names[i]);
  }
}

/* ---- the listing of the matmul ---- */
static uint32_t count_ops(const kir_kernel *k, uint32_t from, uint32_t to, kir_op op, uint32_t lanes) {
  uint32_t n = 0;
  for (uint32_t i = from; i < to; i++) n += kir_at(k, i)->op == op && (!lanes || kir_at(k, i)->type.lanes == lanes);
  return n;
}

static void check_matmul(void) {
  ir_arena arena;
  kir_kernel in, out;
  kir_regions regions;
  snt_diag diag = {0};
  ir_arena_init(&arena, NULL);
  kir_init(&in, &arena, "in");
  kir_init(&out, &arena, "out");
  char *text = read_whole("tests/golden/kernel/linear_gelu.kir");
  const bool made = text && kir_parse(&in, text, strlen(text), &diag) == SNT_OK &&
                    kir_run_passes(&in, &out, find_target("opencl"), NULL, NULL, &diag) == SNT_OK &&
                    kir_find_regions(&out, &arena, &regions);
  if (tap_ok(made, "the matmul listing is compiled %s", diag.text)) {
    uint32_t loop = 0;
    for (uint32_t i = 1; i < out.insts.count; i++)
      if (kir_at(&out, i)->op == KIR_loop && kir_at(&out, i)->arg_count > 3) loop = i;
    const uint32_t end = loop ? regions.close[loop] : 0;
    tap_is_int(loop ? kir_at(&out, loop)->arg_count - 3 : 0, 12, "twelve accumulators are carried");
    tap_is_int(count_ops(&out, loop, end, KIR_load, 8), 2 * 2, "two vector loads a step of two");
    tap_is_int(count_ops(&out, loop, end, KIR_load, 1), 2 * 6, "six scalar loads");
    tap_is_int(count_ops(&out, loop, end, KIR_fma, 8), 2 * 12, "twelve multiply-adds");
    tap_ok(end - loop < 110, "%u instructions in the inner loop", end - loop);
    uint32_t arrays = 0;
    for (uint32_t m = 0; m < out.memories.count; m++) arrays += out.memories.at[m].space == KIR_PRIVATE;
    tap_is_int(arrays, 0, "no private array is left");
    const uint32_t words = kir_live_words(&out);
    tap_ok(words >= 12 * 8 && words < 24 * 8, "%u words live: accumulators, operands, the hoisted bias, addresses", words);
    kir_mix mix;
    kir_count_mix(&out, 6, &mix);
    /* 4 panels x 6 trips x 768 steps x 12 x 8 lanes x 2 */
    tap_ok(mix.flops >= 4.0 * 6 * 768 * 12 * 8 * 2 && mix.flops < 1.05 * 4 * 6 * 768 * 12 * 8 * 2, "%g floating point operations",
           mix.flops);
    tap_is_int((int64_t)(mix.loads / (4 * 6 * 768)), 8, "eight loads a step");
  }
  free(text);
  ir_arena_free(&arena);
}

/* ---- memory that runs out: the n-th request fails ---- */
static struct { uint64_t left, taken; } budget;
static void *SNT_CALL scarce_acquire(void *user, size_t size, size_t align, uint32_t scope) {
  const snt_host_alloc *plain = ir_host_malloc();
  (void)user;
  if (!budget.left) return NULL;
  budget.left--, budget.taken++;
  return plain->acquire(plain->user, size, align, scope);
}
static void SNT_CALL scarce_release(void *user, void *ptr, size_t size, size_t align) {
  const snt_host_alloc *plain = ir_host_malloc();
  (void)user;
  plain->release(plain->user, ptr, size, align);
}

static void check_scarce(const char *file, const char *target) {
  const snt_host_alloc scarce = {NULL, scarce_acquire, scarce_release};
  ir_arena arena;
  kir_kernel in, out;
  uint32_t odd = 0, runs = 0;
  char path[256];
  ir_arena_init(&arena, &scarce);
  budget.left = UINT64_MAX, budget.taken = 0;
  kir_init(&in, &arena, "in");
  snprintf(path, sizeof path, "tests/golden/kernel/%s.kir", file);
  char *text = read_whole(path);
  const bool parsed = text && kir_parse(&in, text, strlen(text), NULL) == SNT_OK;
  for (snt_result r = SNT_E_HOST_MEM; parsed && r != SNT_OK && runs < 2000; runs++) {
    ir_arena made;
    ir_arena_init(&made, &scarce);
    budget.left = UINT64_MAX;
    kir_init(&out, &made, "out");
    budget.left = runs;
    r = kir_run_passes(&in, &out, find_target(target), NULL, NULL, NULL);
    odd += r != SNT_OK && r != SNT_E_HOST_MEM;
    ir_arena_free(&made);
  }
  tap_ok(parsed && odd == 0 && runs > 5 && runs < 2000, "%s for %s: each of %u requests may fail", file, target, runs - 1);
  budget.left = UINT64_MAX;
  ir_arena_free(&arena);
  free(text);
}

/* What a pass takes ends anywhere in its one block: the first request beyond it fails. */
static void check_tight(const char *file, const char *target) {
  enum { BLOCK = 16 * 1024, STEP = 64 };
  const snt_host_alloc scarce = {NULL, scarce_acquire, scarce_release};
  ir_arena arena, scratch[2];
  kir_kernel in, out;
  uint32_t odd = 0, failed = 0;
  char path[256];
  ir_arena_init(&arena, &scarce);
  budget.left = UINT64_MAX;
  kir_init(&in, &arena, "in");
  snprintf(path, sizeof path, "tests/golden/kernel/%s.kir", file);
  char *text = read_whole(path);
  const bool parsed = text && kir_parse(&in, text, strlen(text), NULL) == SNT_OK;
  for (uint32_t pass = 0; parsed && pass < kir_pipeline_count; pass++)
    for (size_t taken = STEP; taken < BLOCK; taken += STEP) {
      for (uint32_t i = 0; i < 2; i++) ir_arena_init(&scratch[i], &scarce);
      budget.left = 1;
      (void)ir_arena_take(&scratch[0], taken, 1);
      kir_init(&out, &scratch[1], "out");
      const snt_result r = kir_run_passes_in(scratch, &in, &out, find_target(target), kir_pipeline[pass].name, NULL, NULL);
      odd += r != SNT_OK && r != SNT_E_HOST_MEM;
      failed += r == SNT_E_HOST_MEM;
      for (uint32_t i = 0; i < 2; i++) ir_arena_free(&scratch[i]);
    }
  tap_ok(parsed && odd == 0 && failed > BLOCK / STEP, "%s for %s: each pass may end in its block, at any place", file, target);
  budget.left = UINT64_MAX;
  ir_arena_free(&arena);
  free(text);
}

/* ---- time ---- */
static void make_large(kir_kernel *k, uint32_t rows) {
  const kir_memory x = {.name = "x", .space = KIR_GLOBAL, .type = kir_t(SNT_F32, 1), .rank = 1, .dims = {1 << 20}, .access = KIR_READ};
  const kir_memory y = {
      .name = "y", .space = KIR_GLOBAL, .type = kir_t(SNT_F32, 1), .rank = 1, .dims = {1 << 20}, .slot = 1, .access = KIR_WRITE};
  const uint32_t from = kir_memory_add(k, &x), to = kir_memory_add(k, &y), group = kir_id(k, KIR_group, 0),
                 zero = kir_const_int(k, kir_t(SNT_U32, 1), 0);
  const uint32_t loop = kir_loop(k, zero, kir_const_int(k, kir_t(SNT_U32, 1), 64), 0, 0, NULL, NULL, 0, 0);
  for (uint32_t r = 0; r < rows; r++) {
    const uint32_t at = kir_ix(k, 2, (int64_t[]){65536, 16}, (uint32_t[]){group, loop}, r * 8);
    uint32_t v = kir_load(k, from, 8, 1, &at);
    for (uint32_t i = 0; i < 8; i++) v = kir_2(k, i % 2 ? KIR_add : KIR_mul, v, kir_const_like(k, v, 1.5 + i));
    kir_store(k, to, 1, &at, kir_2(k, KIR_max, v, kir_const_like(k, v, 0)));
  }
  kir_loop_end(k, loop, 0, NULL, NULL);
}

static double milliseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* what others do on the machine does not count */
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double pass_time(uint32_t rows, uint32_t *insts) {
  double best = 1e9;
  ir_arena arena;
  kir_kernel in;
  ir_arena_init(&arena, NULL);
  kir_init(&in, &arena, "large");
  make_large(&in, rows);
  *insts = in.insts.count;
  for (uint32_t n = 0; n < 5; n++) {
    ir_arena made;
    kir_kernel out;
    ir_arena_init(&made, NULL);
    kir_init(&out, &made, "out");
    const double start = milliseconds();
    const snt_result r = kir_run_passes(&in, &out, find_target("opencl"), NULL, NULL, NULL);
    const double spent = milliseconds() - start;
    ir_arena_free(&made);
    if (r == SNT_OK && spent < best) best = spent;
  }
  ir_arena_free(&arena);
  return best;
}

static void check_time(void) {
  uint32_t insts, more;
  const double small = pass_time(130, &insts), large = pass_time(8 * 130, &more);
  tap_diag("%u instructions: %.2f ms; %u: %.2f ms", insts, small, more, large);
  tap_ok(large < 30 * small, "eight times the instructions take less than thirty times as long");
}

int main(int argc, char **argv) {
  const bool bless = argc > 1 && !strcmp(argv[1], "--bless");
  check_folder(bless);
  check_matmul();
  check_scarce("linear_gelu", "opencl");
  check_scarce("softmax_group", "spirv");
  check_scarce("kv_append", "cuda");
  check_scarce("post", "spirv");
  check_tight("linear_gelu", "opencl");
  check_tight("control", "spirv");
  check_tight("every_float", "spirv");
  check_time();
  return tap_done();
}
