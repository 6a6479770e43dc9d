/* Smallest cases of what drivers made of a kernel and ought not to have (docs/quirks.md has a row for each): every device gives the
   interpreter's bits, with what it can be asked to keep of floats and without. Run from the project's root. */
#include "tests/tap.h"
#include "tests/unit/codegen_support.h"
#include "tools/host/host.h"
#include <math.h>

enum { WORDS = 8 };
static const struct {
  const char *name;
  bool controls;    /* nobody promises it of a device that cannot be asked to keep zeros' signs */
  bool wide;        /* has 64-bit integers, which not every device has */
  bool not_mesa;    /* which is known to do otherwise: nothing is asked of it */
  const char *body; /* reads %x (f32[8]: 0, -0, NaN, -3, 65519.99, 2049, -1, 0.5) and %i (u32[8]: 0 to 7), writes %y (u32[8]) */
} cases[] = {
    {"halves of a literal", false, false, false, "%h: f32x2 = unpack2 1073757184 as=f16; %w: u32x2 = bitcast %h; store %y[0], %w\n"},
    {"greatest of literals", false, false, false,
     "%a: u32 = cast -18600:i16 sat; %b: u8 = cast -5:i32 sat; %c: i8 = cast 300:i32 sat; %d: u32 = cast %b; %e: u32 = cast %c\n"
     "store %y[0], %a; store %y[1], %d; store %y[2], %e\n"},
    {"NaN as a whole number", false, false, false,
     "%n = load %x[2]; %a: i32 = cast %n; %b: u32 = cast %n; %c: u32 = bitcast %a; store %y[0], %c; store %y[1], %b\n"},
    {"a zero with a sign", true, false, false,
     "%n = load %i[0]; %c = eq %n, 1; %f = select %c, 0x1p+0, 0x0p+0; %v = load %x[3]; %p = mul %f, %v; %w: u32 = bitcast %p\n"
     "store %y[0], %w\n"},
    {"a pair of halves", false, false, false, "%v: f32x2 = load %x[4]; %w = pack2 %v as=f16; store %y[0], %w\n"},
    {"words as floats", false, false, false,
     "%t = load %i[6]; %h = shl %t, 29; %a = or %h, 129; %f: f32 = cast %a; %u: u32 = bitcast %f; store %y[0], %u\n"
     "%b = or %h, 384; %g: f32 = cast %b; %v: u32 = bitcast %g; store %y[1], %v; %s = shr %a, 8; %d: f32 = cast %s; %w: u32 = bitcast %d; "
     "store %y[2], %w\n"},
    {"nothing added", true, false, false, "%v = load %x[1]; %z = load %x[0]; %s = add %v, %z; %w: u32 = bitcast %s; store %y[0], %w\n"},
    {"zero less a zero that is loaded", true, false, false,
     "%z = load %x[0]; %v = load %x[0]; %s = sub %z, %v; %w: u32 = bitcast %s; store %y[0], %w\n"},
    {"a literal zero less a zero", true, false, true, "%v = load %x[0]; %s = sub 0x0p+0, %v; %w: u32 = bitcast %s; store %y[0], %w\n"},
    {"an int as 64 bits", false, true, false,
     "%v = load %x[3]; %n: i32 = cast %v; %w: i64 = cast %n; %p = gt %w, 0; %a: u32 = cast %p; store %y[0], %a\n"
     "%q = lt %w, 0; %b: u32 = cast %q; store %y[1], %b\n"},
};

static bool run_case(rt_device *d, const char *body, bool *same, snt_diag *diag) {
  static const float x[WORDS] = {0, -0.0f, NAN, -3, 65519.99f, 2049, -1, 0.5f};
  uint32_t i[WORDS] = {0, 1, 2, 3, 4, 5, 6, 7}, want[WORDS] = {0}, got[WORDS] = {0};
  float in[WORDS];
  char text[1024];
  ir_arena arena;
  kir_kernel k;
  kernel_dispatch by_hand;
  ir_arena_init(&arena, NULL);
  memcpy(in, x, sizeof in);
  snprintf(text, sizeof text, "kernel @q mode=strict { param %%x: f32[8] ro\n param %%i: u32[8] ro\n param %%y: u32[8] wo\n %s}", body);
  bool good = kernel_from_text(&k, &arena, text);
  if (good) {
    kernel_dispatch_init(&by_hand, &k, 1);
    kernel_dispatch_buffer(&by_hand, in, sizeof in), kernel_dispatch_buffer(&by_hand, i, sizeof i);
    kernel_dispatch_buffer(&by_hand, want, sizeof want);
    good = kernel_dispatch_run(&by_hand) == SNT_OK;
  }
  codegen_dispatch there = {.kernel = &k, .groups = 1, .count = 3};
  there.data[0] = (uint8_t *)in, there.data[1] = (uint8_t *)i, there.data[2] = (uint8_t *)got;
  there.bytes[0] = there.bytes[1] = there.bytes[2] = sizeof got;
  good = good && codegen_run_on(d, &there, &arena, NULL, diag) == SNT_OK;
  *same = !memcmp(got, want, sizeof got);
  for (uint32_t n = 0; good && n < WORDS; n++)
    if (got[n] != want[n]) tap_diag("word %u is 0x%x, not 0x%x", n, got[n], want[n]);
  ir_arena_free(&arena);
  return good;
}

/* What is no SPIR-V reaches no driver: they crash on it. */
static void check_garbage(rt_device *d, const char *selector) {
  static const uint32_t words[16];
  const rt_code code = {.data = words, .size = sizeof words, .entry = "main", .items = {1, 1, 1}};
  rt_pipeline *p = NULL;
  snt_diag diag = {0};
  const snt_result r = d->v->pipeline_create(d, &code, NULL, 0, &p, &diag);
  tap_ok(r == SNT_E_BACKEND && strstr(diag.text, "not a SPIR-V module"), "%s: 64 bytes of nothing are no module: %s", selector, diag.text);
}

static void check_device(const char *selector, const char *mask) {
  const snt_backend *hook = host_cuda_text();
  const rt_hooks hooks = {1, &hook};
  snt_diag diag = {0};
  rt_device *d = NULL;
  if (rt_open_device(NULL, &hooks, selector, &d, &diag) != SNT_OK) {
    tap_skip("%s: %s", selector, diag.text);
    return;
  }
  if (d->target == SNT_TARGET_SPIRV && !mask) check_garbage(d, selector);
  if (mask) cost_profile_mask(&d->profile, mask, NULL);
  for (uint32_t n = 0; n < IR_COUNT(cases); n++) {
    bool same = false;
    if (cases[n].not_mesa && (!strcmp(selector, "opencl:rusticl") || !strcmp(selector, "vulkan:llvmpipe"))) continue;
    if ((mask && cases[n].controls) || (cases[n].wide && !d->profile.caps.int64)) continue;
    if (!tap_ok(run_case(d, cases[n].body, &same, &diag), "%s %s: %s runs %s", selector, mask ? mask : "", cases[n].name, diag.text))
      continue;
    tap_ok(same, "%s %s: %s", selector, mask ? mask : "", cases[n].name);
  }
  rt_close_device(d);
}

int main(void) {
  static const char *const selectors[] = {"opencl:pocl", "opencl:rusticl", "vulkan:llvmpipe", "vulkan:swiftshader", "cuda-text"};
  host_prepare_drivers(NULL);
  for (uint32_t i = 0; i < IR_COUNT(selectors); i++) {
    check_device(selectors[i], NULL);
    if (!strncmp(selectors[i], "vulkan", 6)) check_device(selectors[i], "float_controls=0");
  }
  return tap_done();
}
