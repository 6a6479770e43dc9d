/* What all runtimes share: numbers and endings in selectors, the line of a compiler's log that tells, and what is left of a device's facts where the
   generator's are fewer. */
#include "runtime/rt_common.h"
#include "runtime/targets.h"
#include "tests/tap.h"
#include <sinter/sinter.h>

static void test_numbers(void) {
  static const struct {
    const char *text;
    bool good;
    uint32_t value;
  } rows[] = {{"0", true, 0},  {"7", true, 7},  {"12", true, 12}, {"1000009", true, 1000009}, {"10000000", false, 0},   {"-1", false, 0},
              {"/", false, 0}, {":", false, 0}, {"1x", false, 0}, {" 1", false, 0},           {"99999999999", false, 0}};
  for (size_t i = 0; i < IR_COUNT(rows); i++) {
    uint32_t value = 0;
    const bool good = rt_index(rows[i].text, &value);
    tap_result(good == rows[i].good && value == rows[i].value, __FILE__, __LINE__, "the number of \"%s\": %d %u", rows[i].text, good,
               value);
  }
}

static void test_endings(void) {
  static const struct {
    const char *text, *ending, *left; /* null: it does not end so */
  } rows[] = {
      {"pocl.text", ".text", "pocl"}, {".text", ".text", ""}, {"text", ".text", NULL}, {"pocl", ".text", NULL}, {"", ".text", NULL}};
  for (size_t i = 0; i < IR_COUNT(rows); i++) {
    char which[16];
    snprintf(which, sizeof which, "%s", rows[i].text);
    const bool taken = rt_take_suffix(which, rows[i].ending);
    tap_result(taken == (rows[i].left != NULL) && !strcmp(which, taken ? rows[i].left : rows[i].text), __FILE__, __LINE__,
               "\"%s\" without %s: \"%s\"", rows[i].text, rows[i].ending, which);
  }
}

static void test_logs(void) {
  static const struct {
    const char *log, *line;
  } rows[] = {{"a.cl:1: error: no x\n  ^\n", "a.cl:1: error: no x"},
              {"a.cl:1: warning: y\na.cl:2: error: no x\n", "a.cl:2: error: no x"},
              {"warning: y\r\nanother\r\n", "warning: y"},
              {"   \n\t\nwhat it says\n", "what it says"},
              {"   \n \t", ""},
              {"", ""},
              {NULL, ""}};
  for (size_t i = 0; i < IR_COUNT(rows); i++) {
    snt_diag diag = {.head = SNT_HEAD(diag)};
    char expected[64];
    snprintf(expected, sizeof expected, "build: %s", rows[i].line);
    const snt_result r = rt_fail_log(&diag, SNT_E_BACKEND, -11, "build", "build", rows[i].log);
    tap_result(r == SNT_E_BACKEND && diag.native == -11 && strstr(diag.text, expected) &&
                   strlen(strstr(diag.text, expected)) == strlen(expected),
               __FILE__, __LINE__, "a log tells \"%s\": %s", rows[i].line, diag.text);
    tap_result(rt_fail_log(NULL, SNT_E_BACKEND, -11, "build", "build", rows[i].log) == SNT_E_BACKEND, __FILE__, __LINE__,
               "the same with nobody to tell");
  }
}

/* A device that has everything, narrowed by a generator that has everything but what a row takes from it. */
static kir_caps whole_caps(void) {
  return (kir_caps){.max_lanes = 16,
                    .vector_memory = 64,
                    .fma_fused = true,
                    .fma_fast = true,
                    .subgroups = true,
                    .subgroup_arithmetic = true,
                    .atomics_f32 = true,
                    .hred = true,
                    .minmax_nan = true,
                    .push_bytes = 256,
                    .permute = 32,
                    .mma = {{16, 8, 16}}};
}

static void test_narrowed(void) {
  const kir_caps whole = whole_caps();
  kir_caps c = whole, g = whole;
  rt_narrow_caps(&c, &g);
  tap_result(c.max_lanes == 16 && c.vector_memory == 64 && c.permute == 32 && c.push_bytes == 256 && c.mma[0].m == 16 && c.hred &&
                 c.minmax_nan && c.fma_fused && c.subgroup_arithmetic && c.atomics_f32,
             __FILE__, __LINE__, "a generator with as much takes nothing");
  c = whole, g = whole;
  g.max_lanes = 4, g.vector_memory = 16, g.permute = 16, g.push_bytes = 128, g.mma[0].m = 8, g.atomics_f32 = false;
  rt_narrow_caps(&c, &g);
  tap_result(c.max_lanes == 4 && c.vector_memory == 16 && c.permute == 0 && c.push_bytes == 128 && c.mma[0].m == 0 && !c.atomics_f32,
             __FILE__, __LINE__, "one with less takes just that: %u lanes, %u bytes, %u constants", c.max_lanes, c.vector_memory,
             c.push_bytes);
  c = whole, g = whole;
  c.max_lanes = 4, c.vector_memory = 16, c.permute = 16, c.push_bytes = 128, g.mma[0].m = KIR_MMA_ANY;
  rt_narrow_caps(&c, &g);
  tap_result(c.max_lanes == 4 && c.vector_memory == 16 && c.permute == 16 && c.push_bytes == 128 && c.mma[0].m == 16, __FILE__, __LINE__,
             "one with more adds nothing, and any fragment is its own");
  c = whole, g = whole;
  c.target = "spirv", g.target = "spirv", c.exact_div = true;
  rt_narrow_caps(&c, &g);
  tap_result(c.exact_div && !c.exact_sqrt, __FILE__, __LINE__, "what the target's own driver is known to round");
  c.target = "cuda", c.exact_div = true;
  rt_narrow_caps(&c, &g);
  tap_result(!c.exact_div, __FILE__, __LINE__, "and another target's is not");
}

/* What flushes, or may assume that there is no NaN, does without what a driver does in one step. */
static void test_flushing(void) {
  const kir_caps whole = whole_caps();
  kir_caps c = whole, g = whole;
  c.flushes = true;
  rt_narrow_caps(&c, &g);
  tap_result(!c.minmax_nan && !c.hred && !c.fma_fused && !c.fma_fast && !c.subgroup_arithmetic && !c.atomics_f32, __FILE__, __LINE__,
             "a device that flushes");
  c = whole, g = whole;
  g.nan_unsafe = true;
  rt_narrow_caps(&c, &g);
  tap_result(!c.minmax_nan && c.nan_unsafe && c.hred && c.fma_fused, __FILE__, __LINE__, "a target that may assume that there is no NaN");
}

int main(void) {
  test_numbers();
  test_endings();
  test_logs();
  test_narrowed();
  test_flushing();
  return tap_done();
}
