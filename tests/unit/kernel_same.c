/* Equal kernels under other names are the same code; a kernel that differs in any fact is not, and no pair of equal ones has two hashes. */
#include "ir/kernel.h"
#include "tests/tap.h"

static const char source[] = "kernel @k0_loop items=(64,1,1) sub=none mode=default needs=() {\n"
                             "  scalar %n: u32 at=0 min=1 mul=4\n"
                             "  const %c: f32[4] = (1, 2, 3, 4)\n"
                             "  private %t: f32[32] rows\n"
                             "  param %x: f32[%n] slot=0 off=0 ro align=64 alias=0\n"
                             "  param %y: f32[%n] slot=1 off=0 wo align=16 alias=0\n"
                             "  %0: u32 = group 0\n"
                             "  %1: u32 = ix 4*%0 + 8\n"
                             "  %2: f32 = load %c[1] align=4\n"
                             "  loop %3: u32 = 0, %n, 1 unroll=2 {\n"
                             "    %4: f32x4 = load %x[%1] align=16\n"
                             "    %5: f32x4 = exp %4\n"
                             "    %6: f32x4 = splat %2\n"
                             "    %7: f32x4 = mul %5, %6\n"
                             "    store %y[%1], %7 align=16\n"
                             "  }\n"
                             "}\n";

/* Each makes another kernel of the same size. */
static const char *const edits[][2] = {
    {"items=(64", "items=(32"},
    {"mode=default", "mode=strict"},
    {"min=1", "min=2"},
    {"mul=4", "mul=8"},
    {"(1, 2, 3, 4)", "(1, 5, 3, 4)"},
    {"f32[32]", "f32[64]"},
    {"slot=1 off=0 wo", "slot=1 off=0 rw"},
    {"align=64", "align=32"},
    {"group 0", "group 1"},
    {"+ 8", "+ 9"},
    {"unroll=2", "unroll=4"},
    {"exp %4", "log %4"},
    {"mul %5, %6", "mul %6, %5"},
    {"%7 align=16", "%7 align=4"},
    {"load %c[1]", "load %c[2]"},
};

static bool read_kernel(kir_kernel *k, ir_arena *arena, const char *from, const char *to) {
  char text[sizeof source + 64];
  const char *at = strstr(source, from);
  snt_diag diag = {0};
  if (!at) return false;
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - source), source, to, at + strlen(from));
  kir_init(k, arena, "");
  const bool parsed = kir_parse(k, text, strlen(text), &diag) == SNT_OK;
  if (!parsed) tap_diag("%s", diag.text);
  return parsed;
}

int main(void) {
  ir_arena arena;
  kir_kernel first, other;
  ir_arena_init(&arena, NULL);
  tap_ok(read_kernel(&first, &arena, "k0_loop", "k0_loop"), "the kernel is read");
  tap_ok(read_kernel(&other, &arena, "k0_loop", "k7_loop") && kir_same_code(&first, &other), "under another name it is the same");
  tap_ok(kir_code_hash(&first) == kir_code_hash(&other), "and has the same hash");
  for (size_t i = 0; i < IR_COUNT(edits); i++)
    tap_ok(read_kernel(&other, &arena, edits[i][0], edits[i][1]) && !kir_same_code(&first, &other), "\"%s\" instead of \"%s\" is another",
           edits[i][1], edits[i][0]);
  const kir_own own = {.name = "f", .params = "x", .source = {[KIR_OWN_CUDA] = "x + 1"}},
                another = {.name = "f", .params = "x", .source = {[KIR_OWN_CUDA] = "x + 2"}};
  (void)read_kernel(&other, &arena, "k0_loop", "k7_loop");
  (void)kir_own_add(&first, &own), (void)kir_own_add(&other, &own);
  tap_ok(kir_same_code(&first, &other), "with one text of the user's own it is the same");
  other.owns.at[0] = another;
  tap_ok(!kir_same_code(&first, &other), "with another text it is another");
  ir_arena_free(&arena);
  return tap_done();
}
