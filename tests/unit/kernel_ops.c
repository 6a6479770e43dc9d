/* The meaning of operations in the interpreter: rounding of each float type, wrapping of each integer type, edge cases the table promises.
   A kernel is made for each operation and type; inputs are literals, the result is stored and read back. */
#include "tests/unit/kernel_support.h"
#include "tests/tap.h"
#include <float.h>

/* Applies `op` to literals of type t; the result, of type `out`, as a double. */
typedef struct call {
  kir_op op;
  int32_t t, out;
  uint32_t count;
  double x[3];
  uint32_t flags;
} call;

static double apply(const call *c) {
  ir_arena arena;
  kir_kernel k;
  kernel_dispatch d;
  uint64_t result[2] = {0};
  ir_arena_init(&arena, NULL);
  kir_init(&k, &arena, "one");
  kir_memory_add(&k, &(kir_memory){.name = "y", .space = KIR_GLOBAL, .access = KIR_WRITE, .type = kir_t(c->out, 1), .dims = {1}});
  uint32_t args[3];
  for (uint32_t i = 0; i < c->count; i++) args[i] = kir_const_float(&k, kir_t(c->t, 1), c->x[i]);
  const kir_inst in = {.op = (uint16_t)c->op, .type = kir_t(c->out, 1), .flags = (uint16_t)c->flags};
  const uint32_t value = kir_put(&k, &in, c->count, args), zero = kir_const_int(&k, kir_t(SNT_U32, 1), 0);
  kir_store(&k, 0, 1, &zero, value);
  kernel_dispatch_init(&d, &k, 1);
  kernel_dispatch_buffer(&d, result, sizeof result);
  const snt_result ran = kernel_dispatch_run(&d);
  if (ran) tap_diag("%s", k.failed ? k.first_error.text : d.diag.text);
  const double v = ran ? -12345 : ir_dtype_load(c->out, result, 0);
  ir_arena_free(&arena);
  return v;
}

typedef struct want {
  call c;
  double result;
} want;

static void check(const want *w, uint32_t count, const char *what) {
  for (uint32_t i = 0; i < count; i++)
    tap_is_near(apply(&w[i].c), w[i].result, 0, "%s: %s of %s(%g, %g, %g)", what, kir_ops[w[i].c.op].name, ir_dtypes[w[i].c.t].name,
                w[i].c.x[0], w[i].c.x[1], w[i].c.x[2]);
}
#define F(op, t, n, a, b, c, r) \
  { {KIR_##op, SNT_##t, SNT_##t, n, {a, b, c}, 0}, r }
#define B(op, t, a, b, r) \
  { {KIR_##op, SNT_##t, SNT_BOOL, 2, {a, b, 0}, 0}, r }
#define C(from, to, a, flags, r) \
  { {KIR_cast, SNT_##from, SNT_##to, 1, {a, 0, 0}, flags}, r }

static void test_floats(void) {
  static const want rows[] = {
      F(add, F32, 2, 1, 0x1p-24, 0, 1), F(add, F32, 2, 1, 0x1.8p-24, 0, 0x1.000002p+0), F(add, F64, 2, 1, 0x1p-52, 0, 0x1.0000000000001p+0),
      F(add, F16, 2, 2048, 1, 0, 2048), F(add, F16, 2, 2048, 3, 0, 2052), F(add, BF16, 2, 256, 1, 0, 256),
      F(mul, F16, 2, 300, 300, 0, INFINITY), F(mul, F16, 2, 0x1p-14, 0x1p-10, 0, 0x1p-24), F(mul, F16, 2, 0x1p-14, 0x1p-12, 0, 0),
      F(sub, F32, 2, INFINITY, INFINITY, 0, NAN), F(fma, F32, 3, 0x1.000002p+0, 0x1.000002p+0, -0x1.000004p+0, 0x1p-46),
      F(fma, F64, 3, 3, 4, 5, 17),
      /* rounded once: the product's last place decides between two halves, which two roundings would miss */
      F(fma, F16, 3, 0x1.004p+0, 0x1.004p+0, 0x1p-24, 0x1.008p+0), F(fma, BF16, 3, 0x1.02p+0, 0x1.02p+0, 0x1p-30, 0x1.04p+0),
      F(fma, F16, 3, 6, 683, 0x1p-24, 4100), F(div, F32, 2, 1, 3, 0, (double)(1.0f / 3)), F(div, F32, 2, 1, 0, 0, INFINITY),
      F(rem, F32, 2, -7.5, 2, 0, -1.5), F(sqrt, F32, 1, 2, 0, 0, (double)1.41421356237309504880f), F(rcp, F16, 1, 3, 0, 0, 0x1.554p-2),
      F(min, F32, 2, NAN, 1, 0, NAN), F(min, F32, 2, 1, NAN, 0, NAN), F(max, F64, 2, NAN, 1, 0, NAN), F(max, F32, 2, 1, NAN, 0, NAN),
      F(max, F32, 2, 1, 2, 0, 2), F(floor, F32, 1, -1.5, 0, 0, -2), F(ceil, F32, 1, -1.5, 0, 0, -1), F(trunc, F64, 1, -1.5, 0, 0, -1),
      F(rint, F32, 1, 2.5, 0, 0, 2), F(rint, F32, 1, 3.5, 0, 0, 4), F(neg, F16, 1, 1, 0, 0, -1), F(abs, F64, 1, -3, 0, 0, 3),
      F(rsqrt, F32, 1, 4, 0, 0, 0.5), F(exp, F32, 1, 1, 0, 0, (double)2.71828182845904523536f), F(exp2, F16, 1, 0.5, 0, 0, 0x1.6ap+0),
      F(sigmoid, F32, 1, 0, 0, 0, 0.5), F(erf, F64, 1, INFINITY, 0, 0, 1), F(pow, F32, 2, 2, 10, 0, 1024),
      F(atan2, F32, 2, 0, -1, 0, (double)3.14159265358979323846f)};
  check(rows, IR_COUNT(rows), "floats");
}

static void test_integers(void) {
  static const want rows[] = {F(add, I8, 2, 127, 1, 0, -128),
                              F(add, U8, 2, 255, 1, 0, 0),
                              F(mul, I16, 2, 300, 300, 0, 24464),
                              F(sub, U16, 2, 0, 1, 0, 65535),
                              F(mul, U32, 2, 65536, 65537, 0, 65536),
                              F(neg, I32, 1, -2147483648.0, 0, 0, -2147483648.0),
                              F(abs, I8, 1, -128, 0, 0, -128),
                              F(abs, I64, 1, -5, 0, 0, 5),
                              F(div, I32, 2, -7, 2, 0, -3),
                              F(div, I32, 2, 7, 0, 0, 0),
                              F(div, I32, 2, -2147483648.0, -1, 0, -2147483648.0),
                              F(div, I8, 2, -128, -1, 0, -128),
                              F(rem, I32, 2, -7, 2, 0, -1),
                              F(rem, I32, 2, 7, -2, 0, 1),
                              F(rem, U32, 2, 7, 0, 0, 0),
                              F(udiv, U32, 2, 4294967295.0, 3, 0, 1431655765),
                              F(umod, U32, 2, 4294967295.0, 10, 0, 5),
                              F(mulhi, U32, 2, 4294967295.0, 4294967295.0, 0, 4294967294.0),
                              F(dot4, I32, 3, -1, 0x7f8001ff, 5, 5 + 255 * (127 - 128 + 1 - 1)),
                              F(dot4, I32, 3, 0x04030201, 0x01010101, -20, -10),
                              F(dot4, I32, 3, 255, 127, 2147483647.0, -2147483648.0 + 255 * 127 - 1),
                              F(wrap, U32, 3, 7, 5, 9, 3),
                              F(wrap, U32, 3, 3, 5, 9, 8),
                              F(wrap, U32, 3, 8, 9, 9, 8),
                              F(and, U8, 2, 12, 10, 0, 8),
                              F(or, I16, 2, -32768, 1, 0, -32767),
                              F(xor, BOOL, 2, 1, 1, 0, 0),
                              F(not, BOOL, 1, 0, 0, 0, 1),
                              F(not, U8, 1, 5, 0, 0, 250),
                              F(not, I32, 1, 5, 0, 0, -6),
                              F(shl, U8, 2, 255, 1, 0, 254),
                              F(shl, U32, 2, 1, 33, 0, 2),
                              F(shl, I16, 2, 1, 15, 0, -32768),
                              F(shr, I8, 2, -128, 7, 0, -1),
                              F(shr, U8, 2, 128, 7, 0, 1),
                              F(shr, U32, 2, 1, 32, 0, 1),
                              F(popcount, I8, 1, -1, 0, 0, 8),
                              F(popcount, U64, 1, 0xffff, 0, 0, 16),
                              F(clz, U16, 1, 1, 0, 0, 15),
                              F(clz, U32, 1, 0, 0, 0, 32),
                              F(min, U32, 2, 4294967295.0, 1, 0, 1),
                              F(min, I32, 2, -1, 1, 0, -1),
                              F(max, U64, 2, 0x1p63, 1, 0, 0x1p63)};
  check(rows, IR_COUNT(rows), "integers");
}

static void test_comparisons(void) {
  static const want rows[] = {B(eq, F32, NAN, NAN, 0), B(ne, F32, NAN, NAN, 1),        B(lt, F64, NAN, 1, 0),  B(ge, F32, NAN, 1, 0),
                              B(lt, I32, -1, 1, 1),    B(lt, U32, 4294967295.0, 1, 0), B(ge, U8, 200, 100, 1), B(gt, I8, -56, 100, 0),
                              B(le, I64, 3, 3, 1),     B(eq, F32, 0.0, -0.0, 1)};
  check(rows, IR_COUNT(rows), "comparisons");
}

static void test_casts(void) {
  static const want rows[] = {C(F32, I32, 3.99, 0, 3),
                              C(F32, I32, -3.99, 0, -3),
                              C(F32, U8, 300, 0, 255),
                              C(F32, U8, -1, 0, 0),
                              C(F32, I32, NAN, 0, 0),
                              C(F32, U32, 1e20, 0, 4294967295.0),
                              C(F64, I64, -1e30, 0, -0x1p63),
                              C(F32, I32, 2.5, KIR_ROUND_RNE, 2),
                              C(F32, I32, 2.5, KIR_ROUND_RTP, 3),
                              C(F32, I32, -2.5, KIR_ROUND_RTN, -3),
                              C(F32, BOOL, 0.5, 0, 1),
                              C(U32, U8, 300, 0, 44),
                              C(U32, U8, 300, KIR_SAT, 255),
                              C(I32, U8, -5, KIR_SAT, 0),
                              C(I32, I8, -200, KIR_SAT, -128),
                              C(U32, I32, 4294967295.0, KIR_SAT, 2147483647.0),
                              C(I32, U64, -1, 0, 18446744073709551616.0),
                              C(I32, BOOL, 7, 0, 1),
                              C(BOOL, F32, 1, 0, 1),
                              C(I8, U32, -1, 0, 4294967295.0),
                              C(U32, F32, 16777217, 0, 16777216),
                              C(I64, F32, 16777219, 0, 16777220),
                              C(U32, F16, 2049, 0, 2048),
                              C(F32, F16, 65520, 0, INFINITY),
                              C(F32, F16, 65520, KIR_SAT, 65504),
                              C(F32, F16, 2049, KIR_ROUND_RTP, 2050),
                              C(F32, F16, 2049, KIR_ROUND_RTZ, 2048),
                              C(F64, F16, 0x1.0020000001p+0, 0, 0x1.004p+0), /* through f32 this would be a tie and round down */
                              C(F64, F32, 0x1.000001p+0, KIR_ROUND_RTN, 1),
                              C(F64, F32, 1e300, KIR_ROUND_RTZ, FLT_MAX),
                              C(F16, F64, 0x1.554p-2, 0, 0x1.554p-2),
                              C(F32, BF16, 0x1.01p+0, 0, 1),
                              C(F32, BF16, 0x1.03p+0, 0, 0x1.04p+0)};
  check(rows, IR_COUNT(rows), "casts");
}

/* ---- vectors: a kernel in text that leaves 16 words ---- */
static void test_vectors(void) {
  static const char text[] =
      "kernel @v { param %y: f32[20] wo\n param %z: u32[8] wo\n %i: u32x4 = iota; %a: f32x4 = cast %i\n"
      "%b = add %a, 0x1.4p+3; %s = shuffle %a, %b, 3, 4, 0, 7; store %y[0], %s\n"
      "%n = insert %s, 2, 0x1p-1; store %y[4], %n; %e = extract %n, 2; %h0 = hred.add %b; %h1 = hred.max %b; %h2 = hred.min %b\n"
      "%v: f32x4 = vec %e, %h0, %h1, %h2; store %y[8], %v\n"
      "%c = gt %a, 0x1p+0; %d = select %c, %a, -0x1p+0; store %y[12], %d\n"
      "%p2 = extract %a, 3; %p1: f32x2 = vec %e, %p2; %w = pack2 %p1 as=f16; %x = pack2 %p1 as=bf16; store %z[0], %w; store %z[1], %x\n"
      "%u = unpack2 %w as=f16; %u1 = extract %u, 1; %ub: u32 = bitcast %u1; store %z[2], %ub\n"
      "%t: u32x3 = vec 5, 6, 7; %t0 = hred.mul %t; store %z[3], %t0; %lane = umod %t0, 3; %tl = extract %t, %lane; store %z[4], %tl\n"
      "%cc = true; %f = select %cc, %t, 9; %f1 = extract %f, 1; store %z[5], %f1\n"
      "%nn: u32x4 = vec 6, 1, 4, 15; %pp = permute %b, %nn; store %y[16], %pp }";
  static const float want_y[20] = {3, 10, 0, 13, 3, 10, 0.5f, 13, 0.5f, 46, 13, 10, -1, -1, 2, 3, 12, 11, 10, 13};
  static const uint32_t want_z[6] = {0x42003800, 0x40403f00, 0x40400000, 210, 5, 6};
  ir_arena arena;
  kir_kernel k;
  kernel_dispatch d;
  float y[20] = {0};
  uint32_t z[8] = {0};
  ir_arena_init(&arena, NULL);
  if (tap_ok(kernel_from_text(&k, &arena, text), "the kernel of vectors is valid")) {
    kernel_dispatch_init(&d, &k, 1);
    kernel_dispatch_buffer(&d, y, sizeof y);
    kernel_dispatch_buffer(&d, z, sizeof z);
    tap_is_int(kernel_dispatch_run(&d), SNT_OK, "it runs %s", d.diag.text);
    tap_is_bytes(y, want_y, sizeof y, "lanes move as written");
    tap_is_bytes(z, want_z, sizeof want_z, "packing, run-time lanes, scalar conditions");
  }
  ir_arena_free(&arena);
}

int main(void) {
  test_floats();
  test_integers();
  test_comparisons();
  test_casts();
  test_vectors();
  return tap_done();
}
