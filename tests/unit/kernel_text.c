/* Text of kernels: sugar becomes canonical form, literals keep every bit, and errors name their line. */
#include "tests/unit/kernel_support.h"
#include "tests/tap.h"

/* Prints what parses; null and a comment otherwise. */
static char *canonical(ir_arena *arena, const char *text) {
  kir_kernel k;
  snt_diag diag = {0};
  kir_init(&k, arena, "k");
  if (kir_parse(&k, text, strlen(text), &diag) || kir_verify(&k, NULL, &diag)) {
    tap_diag("%s", diag.text);
    return NULL;
  }
  return kernel_print(&k);
}

#define OPEN "kernel @k items=(1,1,1) sub=none mode=default needs=() {\n"

/* `sugar` is the body in short form, `want` the whole in canonical form; the canonical form is its own print. */
static void becomes(const char *what, const char *sugar, const char *want) {
  char text[2000];
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  snprintf(text, sizeof text, "kernel @k {\n%s}\n", sugar);
  tap_is_text(canonical(&arena, text), want, "%s", what);
  tap_is_text(canonical(&arena, want), want, "%s: canonical", what);
  ir_arena_free(&arena);
}

static void test_sugar(void) {
  becomes("declarations",
          "param %a, %b: f32[%n] ro\nparam %c: f16[64*%m] rw align=4 state=cache view=f16 alias=3 off=%n # later names\nscalar %n, %m: u32 "
          "at=4, 0 min=2\nlocal %l: u8[2,3]\nlocal %o: f32[1] overlay=%l\n",
          OPEN "  scalar %n: u32 at=4 min=2\n  scalar %m: u32 at=0 min=2\n"
               "  param %a: f32[%n] slot=0 off=0 ro align=64 alias=0\n  param %b: f32[%n] slot=1 off=0 ro align=64 alias=0\n"
               "  param %c: f16[64*%m] slot=2 off=%n rw align=4 alias=3 view=f16 state=cache\n  local %l: u8[2,3] align=64\n  local %o: "
               "f32[1] align=64 overlay=%l\n}\n");
  becomes("cells as operands and targets",
          "private %r: f32x4[2] regs\n%i = group 0; %r[0] = 0x1p+0; %r[1] = max %r[0], -inf\n%r[%i] = %r[1]\n",
          OPEN "  private %r: f32x4[2] regs\n  %0: u32 = group 0\n  store %r[0], 0x1p+0\n  %1: f32x4 = load %r[0]\n  %2: f32x4 = max %1, "
               "-inf\n  store %r[1], %2\n"
               "  %3: f32x4 = load %r[1]\n  store %r[%0], %3\n}\n");
  becomes("divmod, shadowed names, an alias", "%a = group 0; %q, %a = divmod %a, 3; %b = %q; %c = add %b, %a\n",
          OPEN "  %0: u32 = group 0\n  %1: u32 = udiv %0, 3\n  %2: u32 = umod %0, 3\n  %3: u32 = add %1, %2\n}\n");
  becomes("sums",
          "scalar %s: u32\nparam %x: f32[9] rw\n%g = group 0; %a = ix %s*%g + 4*%g - 3*%g + 2 - 7; %v = load %x[2*%a - 1]\nstore %x[%a], "
          "%v; %b: i32 = bitcast %a; %c = ix 1 - %b\nstore %x[1*5 + %g], %v; store %x[3], 0; store %x[%c], 0\n",
          OPEN "  scalar %s: u32 at=0\n  param %x: f32[9] slot=0 off=0 rw align=64 alias=0\n  %0: u32 = group 0\n  %1: u32 = ix %s*%0 + "
               "4*%0 + -3*%0 - 5\n"
               "  %2: f32 = load %x[2*%1 - 1] align=4\n  store %x[%1], %2 align=4\n  %3: i32 = bitcast %1\n  store %x[1*5 + %0], %2 "
               "align=4\n  store %x[3], 0 align=4\n"
               "  store %x[-1*%3 + 1], 0 align=4\n}\n");
}

static void test_more_sugar(void) {
  becomes("literals by position",
          "%g = group 0; %f: f32x2 = cast %g; %a = add %f, 0; %c = lt %a, lowest; %d = select %c, %a, inf\n%h = eq 0x10, %g; %i: u64 = "
          "cast -1:i8; %n = add %a, nan\n%z = xor %h, true\n",
          OPEN "  %0: u32 = group 0\n  %1: u32x2 = splat %0\n  %2: f32x2 = cast %1\n  %3: f32x2 = add %2, 0\n  %4: boolx2 = lt %3, "
               "lowest\n  %5: f32x2 = select %4, %3, inf\n"
               "  %6: bool = eq 16, %0\n  %7: u64 = cast -1:i8\n  %8: f32x2 = add %3, nan\n  %9: bool = xor %6, true\n}\n");
  becomes("regions",
          "%g = group 0\n%r, %s = loop %i: u32 = 0, %g, 2 carry(%c: f32x4 = 0, %d = %g) full peel=1,0 trip>=3 { %e = add %d, %i\n yield "
          "%c, %e }\n%b = lt %g, 4; %t: f32 = if %b { yield lowest }\n else { loop %j = 0, 1 { }; yield 0 }\nif %b { } else { }\n",
          OPEN "  %0: u32 = group 0\n  %1: f32x4, %2: u32 = loop %3: u32 = 0, %0, 2 carry(%4: f32x4 = 0, %5: u32 = %0) full peel=1,0 "
               "trip>=1 {\n    %6: u32 = add %5, %3\n    yield %4, %6\n  }\n"
               "  %7: bool = lt %0, 4\n  %8: f32 = if %7 {\n    yield lowest\n  } else {\n    loop %9: u32 = 0, 1, 1 {\n    }\n    yield "
               "0\n  }\n  if %7 {\n  } else {\n  }\n}\n");
}

/* ---- every bit of a float literal ---- */
static void test_literals(void) {
  static const struct {
    int32_t base;
    double v;
    const char *text;
  } rows[] = {{SNT_F32, 0x1.fffffep+127, "0x1.fffffep+127"},
              {SNT_F32, -0x1.fffffep+127, "lowest"},
              {SNT_F32, 0x1p-149, "0x1p-149"},
              {SNT_F32, -0.0, "-0x0p+0"},
              {SNT_F64, 0x0.0000000000001p-1022, "0x1p-1074"},
              {SNT_F64, 0x1.fffffffffffffp+1023, "0x1.fffffffffffffp+1023"},
              {SNT_F16, 65504, "0x1.ffcp+15"},
              {SNT_F16, 0x1p-24, "0x1p-24"},
              {SNT_F64, 0.1, "0x1.999999999999ap-4"},
              {SNT_F32, -INFINITY, "-inf"},
              {SNT_BF16, 3, "0x1.8p+1"},
              {SNT_F32, 0, "0"}};
  for (uint32_t i = 0; i < IR_COUNT(rows); i++) {
    char text[200];
    ir_arena arena;
    kir_kernel k;
    snt_diag diag = {0};
    ir_arena_init(&arena, NULL);
    kir_init(&k, &arena, "k");
    snprintf(text, sizeof text, "kernel @k { %%v = neg %s:%s }", rows[i].text, ir_dtypes[rows[i].base].name);
    double v = 12345;
    const bool fine = kir_parse(&k, text, strlen(text), &diag) == SNT_OK && kir_is_const(&k, 1, NULL, &v) && !memcmp(&v, &rows[i].v, 8);
    const char *printed = fine ? kernel_print(&k) : diag.text;
    snprintf(text, sizeof text, "neg %s\n", rows[i].text);
    tap_ok(fine && strstr(printed, text), "%s is read and printed exactly", rows[i].text);
    ir_arena_free(&arena);
  }
}

/* ---- errors ---- */
static void fails(const char *text, uint32_t line, const char *words) {
  ir_arena arena;
  kir_kernel k;
  snt_diag diag = {0};
  ir_arena_init(&arena, NULL);
  kir_init(&k, &arena, "k");
  const snt_result result = kir_parse(&k, text, strlen(text), &diag);
  if (!tap_ok(result == SNT_E_PARSE && diag.node == line && strstr(diag.text, words), "line %u: %s", line, words))
    tap_diag("%d, line %u: %s", result, diag.node, diag.text);
  tap_ok(k.failed, "the kernel is marked as failed");
  ir_arena_free(&arena);
}

static void test_errors(void) {
  fails("", 1, "'kernel' expected");
  fails("kernel @k {\n", 2, "'}' expected");
  fails("kernel @k { }\nmore", 2, "text after the kernel");
  fails("kernel @k {\n\n%a = frobnicate 1 }", 3, "'frobnicate' is no operation");
  fails("kernel @k {\n%a = add %b, 1 }", 2, "%b is not defined here");
  fails("kernel @k {\n%a = group 0; %b = add %a }", 2, "add takes 2 operands");
  fails("kernel @k {\n%a = group 0 %b }", 2, "end of the instruction");
  fails("kernel @k {\n%a = group 0; %b: f32 = add %a, %a }", 2, "another type than stated");
  fails("kernel @k {\n%a = group 0; %b = add %a, 0x1p+0 }", 2, "does not fit the type u32");
  fails("kernel @k {\n%a = group 0; %b = add %a, 4294967296 }", 2, "out of the range of u32");
  fails("kernel @k {\n%a = group 0; %b = add %a, 0.5 }", 2, "is no literal");
  fails("kernel @k {\nloop %i = 0, 4 { }\n%a = add %i, 1 }", 3, "%i is not defined here");
  fails("kernel @k {\nloop %i = 0, 4 carry(%c: f32 = 0) { } }", 2, "0 values are yielded where 1 are wanted");
  fails("kernel @k {\nloop %i = 0, 4 carry(%c: f32 = 0) { yield %c; %d = neg %c } }", 2, "yield must come last");
  fails("kernel @k {\nyield 1 }", 2, "nothing to yield to");
  fails("kernel @k {\nif true { yield 1 } }", 2, "1 values are yielded where 0");
  fails("kernel @k {\nparam %x: f32[4] ro\n%x = group 0 }", 3, "names something else already");
  fails("kernel @k {\nparam %x: f32[%n] ro\n}", 3, "%n is not defined here");
  fails("kernel @k {\nparam %x: f32[4]\n}", 2, "ro, wo or rw expected");
  fails("kernel @k {\nparam %x: f33[4] ro\n}", 2, "'f33' is no type");
  fails("kernel @k {\nparam %x: f32x5[4] ro\n}", 2, "'f32x5' is no type");
  fails("kernel @k {\nconst %x: f32[3] = (1, 2)\n}", 2, "2 values for 3 elements");
  fails("kernel @k {\nparam %x: f32[4] ro\n%v = load %x[0] stream }", 3, "load does not take 'stream'");
  fails("kernel @k {\nparam %x: f32[4] ro\n%v = load %x[0,1] }", 3, "wrong number of indices");
  fails("kernel @k {\nparam %x: f32[4] ro\n%v = neg %x[0] }", 3, "global memory is read by load");
  fails("kernel @k {\nparam %x: f32[4] rw\nstore %x }", 3, "");
  fails("kernel @k {\nparam %x: f16[256] ro\n%f: frag<a,f16> = mma.load %x[0] ld=16 }", 3, "fragments come from local memory");
#define LANES(sub, shape, what)                                                                                                   \
  "kernel @k items=(32,1,1) sub=" sub " needs=(mma.f16.f32." shape                                                                \
  ") {\nlocal %t: f32[256]\nlocal %h: f16[256]\n%c: frag<c,f32> = mma.load %t[0] ld=16\n%a: frag<a,f16> = mma.load %h[0] ld=16\n" \
  "%l = sg.lane\n" what " }"
  fails(LANES("32", "16x16x16", "%v = mma.get %c, 8"), 7, "no lane is known to hold such an element");
  fails(LANES("16", "16x16x16", "%v = mma.get %c, 0"), 7, "no lane is known to hold such an element");
  fails(LANES("32", "8x32x16", "%v = mma.get %c, 0"), 7, "no lane is known to hold such an element");
  fails(LANES("32", "16x16x16", "%v = mma.get %c, %l"), 7, "the element must be a literal");
  fails(LANES("32", "16x16x16", "%v = mma.get %a, 0"), 7, "must be a fragment c of f32");
  fails(LANES("32", "16x16x16", "%v: frag<a,f16> = mma.make 0, 0, 0, 0"), 7, "not as many elements as a lane is known to hold");
  fails(LANES("32", "16x16x16", "%v: frag<b,f16> = mma.make 0, 0, 0, 0, 0, 0, 0, 0"), 7, "not as many elements as a lane is known to hold");
  fails(LANES("32", "16x16x16", "%v: frag<a,i8> = mma.make 0, 0, 0, 0, 0, 0, 0, 0"), 7, "only fragments of floats are made");
  fails(LANES("32", "16x16x16", "%v: frag<a,f16> = mma.make %l, 0, 0, 0, 0, 0, 0, 0"), 7, "an element must be an f32");
#undef LANES
  fails("kernel @k bits=3 {\n}", 1, "no such attribute of a kernel");
}

/* Deep nesting and long sums do not exhaust anything but memory. */
static void test_depth(void) {
  enum { DEPTH = 5000 };
  ir_arena arena;
  ir_text text;
  kir_kernel k;
  snt_diag diag = {0};
  ir_arena_init(&arena, NULL);
  ir_text_init(&text, &arena);
  ir_text_add(&text, "kernel @deep {\n");
  for (uint32_t i = 0; i < DEPTH; i++) ir_text_add(&text, "if true {\n");
  for (uint32_t i = 0; i < DEPTH; i++) ir_text_add(&text, "}\n");
  ir_text_add(&text, "}\n");
  kir_init(&k, &arena, "k");
  tap_is_int(kir_parse(&k, text.at, text.length, &diag), SNT_OK, "%d nested regions parse %s", DEPTH, diag.text);
  tap_is_int(kir_verify(&k, NULL, &diag), SNT_OK, "and verify %s", diag.text);
  kernel_dispatch d;
  kernel_dispatch_init(&d, &k, 1);
  tap_is_int(kernel_dispatch_run(&d), SNT_OK, "and run %s", d.diag.text);
  ir_arena_free(&arena);
}

int main(void) {
  test_sugar();
  test_more_sugar();
  test_literals();
  test_errors();
  test_depth();
  return tap_done();
}
