/* What the interpreter refuses and counts: each small kernel has one defect that must be named, or one access pattern that must be counted. */
#include "tests/unit/kernel_support.h"
#include "tests/tap.h"

static float data[4][1024];

/* Runs with four buffers of 1024 floats; the scalars x and z are 3 and 7. */
static snt_result run(const char *text, uint64_t groups, uint64_t limit, kernel_dispatch *d) {
  ir_arena arena;
  kir_kernel k;
  ir_arena_init(&arena, NULL);
  snt_result result = SNT_E_PARSE;
  memset(d, 0, sizeof *d);
  if (kernel_from_text(&k, &arena, text)) {
    kernel_dispatch_init(d, &k, groups);
    d->info.step_limit = limit;
    kernel_dispatch_scalar(d, "x", 3);
    kernel_dispatch_scalar(d, "z", 7);
    for (uint32_t i = 0; i < 4; i++) kernel_dispatch_buffer(d, data[i], sizeof data[i]);
    result = kernel_dispatch_run(d);
  }
  ir_arena_free(&arena);
  return result;
}

static void refuses(const char *text, uint64_t groups, snt_result want, const char *words) {
  kernel_dispatch d;
  const snt_result got = run(text, groups, 10000, &d);
  if (!tap_ok(got == want && strstr(d.diag.text, words), "refused: %s", words)) tap_diag("result %d: %s", got, d.diag.text);
}

static void accepts(const char *text, uint64_t groups, const char *what) {
  kernel_dispatch d;
  const snt_result got = run(text, groups, 100000, &d);
  if (!tap_ok(got == SNT_OK, "accepted: %s", what)) tap_diag("%s", d.diag.text);
}

#define TWO "param %a: f32[1024] ro\n param %y: f32[1024] rw\n"
#define HEAD8 "kernel @k items=(8,1,1) sub=4 {\n" TWO "local %t: f32[8]\n local %p: f32[4,8]\n %l = local 0; %g = group 0\n"

static void test_bounds(void) {
  refuses("kernel @k {\n" TWO "%v = load %a[1024]; store %y[0], %v }", 1, SNT_E_ARG, "%a: index 1024");
  refuses("kernel @k {\n" TWO "%v: f32x4 = load %a[1021] align=4; store %y[0], %v }", 1, SNT_E_ARG, "out of bounds of 1024");
  refuses("kernel @k {\n" TWO "%v: f32x2 = load %a[0] lanes=1024; store %y[0], %v }", 1, SNT_E_ARG, "2 elements 1024 apart");
  refuses("kernel @k {\n" TWO "%g = group 0; store %y[%g - 1], 0 }", 1, SNT_E_ARG, "index 4294967295");
  refuses(HEAD8 "store %p[%l,0], 0 }", 1, SNT_E_ARG, "item (4,0,0) of group 0: %p: index 4 (dimension 0");
  refuses(HEAD8 "store %p[0,%l + 1], 0 }", 1, SNT_E_ARG, "%p: index 8 (dimension 1");
  refuses("kernel @k {\n param %a: f32[2048] ro\n %v = load %a[0] }", 1, SNT_E_ARG, "smaller than declared");
  accepts("kernel @k {\n param %a: f32[1024] ro oob=zero\n param %y: f32[1024] wo\n %v = load %a[4000]; store %y[0], %v }", 1,
          "a read out of range where it gives zero");
  tap_ok(data[1][0] == 0, "and gives zero");
  accepts("kernel @k {\n" TWO "prefetch %a[999999] bytes=64 }", 1, "a prefetch out of range");
}

static void test_memory_state(void) {
  refuses("kernel @k {\n" TWO "private %r: f32[4] rows\n store %r[0], 0; %v = load %r[1]; store %y[0], %v }", 1, SNT_E_ARG,
          "%r, element 1: read before anything was written");
  refuses(HEAD8 "%v = load %t[%l]; store %y[%l], %v }", 1, SNT_E_ARG, "read before anything was written");
  refuses("kernel @k {\n" TWO
          "scratch %s: f32[4]\n %g = group 0; %f = eq %g, 0; if %f { fill %s, 0 }\n %v = load %s[2]; store %y[%g], %v }",
          2, SNT_E_ARG, "of group 1: %s, element 2: read before");
  accepts("kernel @k {\n" TWO "private %r: f32[2,4] rows\n fill %r[1], 0; %v: f32x4 = load %r[1,0]; store %y[0], %v }", 1,
          "reading what a fill wrote");
  refuses("kernel @k {\n" TWO "%v: f32x4 = load %a[2]; store %y[0], %v }", 1, SNT_E_ARG, "promised alignment of 16");
  refuses("kernel @k {\n param %a: f32[1024] ro align=8\n %v: f32x4 = load %a[4] }", 1, SNT_E_ARG, "the base of %a has 8");
}

/* What a copy brings is there after a wait that covers it, for others after a barrier; until then its place is nobody's. */
static void test_copies(void) {
#define COPY HEAD8 "async.copy %t[%l], %a[%l] bytes=4; async.commit; "
#define TAKE "%o = xor %l, 1; %v = load %t[%o]; store %y[%l], %v }"
  accepts(COPY "async.wait 0; barrier local; " TAKE, 1, "a copy, a wait and a barrier");
  tap_ok(data[1][3] == data[0][2], "bring what the other item copied");
  refuses(COPY "barrier local; " TAKE, 1, SNT_E_ARG, "%t, element 1: touched while a copy into it is under way");
  refuses(COPY "async.wait 1; barrier local; " TAKE, 1, SNT_E_ARG, "touched while a copy into it is under way");
  refuses(COPY "async.wait 0; " TAKE, 1, SNT_E_ARG, "reads what another item wrote without a barrier");
  refuses(COPY "store %t[%l], 0 }", 1, SNT_E_ARG, "touched while a copy into it is under way");
  refuses(
      HEAD8
      "store %t[%l], 0; barrier local; %o = xor %l, 1; %v = load %t[%o]; async.copy %t[%l], %a[%l] bytes=4; async.commit; async.wait 0 }",
      1, SNT_E_ARG, "overwrites what another item reads without a barrier");
  accepts(HEAD8 "%in = lt %l, 3; async.copy %t[%l], %a[%l], %in bytes=4; async.commit; async.wait 0; barrier local; " TAKE, 1,
          "copies of zeros");
  tap_ok(data[1][2] == 0 && data[1][3] == data[0][2], "where their condition is false");
}

/* Rows of a fragment are fetched 16 bytes at once (ldmatrix), or all of a row that has fewer. */
static void test_fragments(void) {
#define FRAGMENT(shape)                                     \
  "kernel @k items=(4,1,1) sub=4 needs=(mma.f16.f32." shape \
  ") {\n local %t: f16[512]\n %l = local 0; %z = eq %l, 0; if %z { fill %t, 0 }; barrier local; "
  accepts(FRAGMENT("4x4x16") "%f: frag<a,f16> = mma.load %t[24] ld=24 }", 1, "rows 48 bytes apart from byte 48 on");
  refuses(FRAGMENT("4x4x16") "%f: frag<a,f16> = mma.load %t[24] ld=20 }", 1, SNT_E_ARG,
          "begin at byte 48 and 40 apart, not at multiples of 16");
  refuses(FRAGMENT("4x4x16") "%f: frag<a,f16> = mma.load %t[20] ld=24 }", 1, SNT_E_ARG,
          "begin at byte 40 and 48 apart, not at multiples of 16");
  accepts(FRAGMENT("4x4x16") "%f: frag<a,f16> = mma.load %t[20] ld=20 columns }", 1, "columns of 8 bytes 40 apart");
  refuses(FRAGMENT("4x4x16") "%f: frag<a,f16> = mma.load %t[20] ld=18 columns }", 1, SNT_E_ARG, "36 apart, not at multiples of 8");
}

static void test_races(void) {
  refuses(HEAD8 "store %y[0], 0 }", 1, SNT_E_ARG, "overwrites what another item wrote");
  accepts(HEAD8 "store %y[0], 0 same; store %y[%g + 1], 5 same }", 2, "stores of the same by items that say so");
  accepts(HEAD8 "store %t[0], 0 same; barrier local; %v = load %t[0]; store %y[%l + 8*%g], %v }", 2,
          "of what nobody wrote before, whatever is there");
#define EITHER(one, other) "%f = eq %g, 0; %u: u32 = select %f, " one ", " other "; %v: f32 = bitcast %u; store %y[0], %v same }"
  accepts(HEAD8 EITHER("0x7fc00000", "0xffc00000"), 2, "NaN is NaN, whatever its sign");
  refuses(HEAD8 EITHER("0", "0x80000000"), 2, SNT_E_ARG, "%y, element 0: overwrites what another group wrote");
  refuses(HEAD8 EITHER("0x7fc00000", "0x7f800000"), 2, SNT_E_ARG, "%y, element 0: overwrites what another group wrote");
  refuses(HEAD8 "%v = load %a[%l]; store %y[0], %v same }", 1, SNT_E_ARG, "overwrites what another item wrote");
  refuses(HEAD8 "store %y[%l], 0 same; %o = xor %l, 1; %v = load %y[%o] }", 1, SNT_E_ARG, "reads what another item wrote");
  refuses(HEAD8 "store %t[%l], 0; %o = xor %l, 1; %v = load %t[%o]; store %y[%l], %v }", 1, SNT_E_ARG,
          "%t, element 1: reads what another item wrote without a barrier");
  accepts(HEAD8 "store %t[%l], 0; barrier local; %o = xor %l, 1; %v = load %t[%o]; store %y[%l + 8*%g], %v }", 2, "a barrier between");
  refuses(HEAD8 "store %t[%l], 0; barrier global; %o = xor %l, 1; %v = load %t[%o]; store %y[%l], %v }", 1, SNT_E_ARG, "without a barrier");
  accepts(HEAD8 "store %t[%l], 0; sg.barrier; %o = xor %l, 1; %v = load %t[%o]; store %y[%l], %v }", 1,
          "a subgroup's barrier inside the subgroup");
  refuses(HEAD8 "store %t[%l], 0; sg.barrier; %o = xor %l, 4; %v = load %t[%o]; store %y[%l], %v }", 1, SNT_E_ARG, "without a barrier");
  refuses(HEAD8 "%v = load %y[%l]; %o = xor %l, 1; store %y[%o], %v }", 1, SNT_E_ARG, "overwrites what another item reads");
  refuses("kernel @k {\n" TWO "%g = group 0; store %y[0], 0 }", 2, SNT_E_ARG,
          "of group 1: %y, element 0: overwrites what another group wrote");
  refuses("kernel @k {\n" TWO "%g = group 0; store %y[%g], 0; %v = load %y[0] }", 2, SNT_E_ARG, "reads what another group wrote");
  refuses("kernel @k {\n" TWO "%g = group 0; %v = load %y[5]; %f = eq %g, 1; if %f { store %y[5], %v } }", 3, SNT_E_ARG,
          "overwrites what another group reads");
  accepts("kernel @k items=(4,1,1) {\n param %c: u32[4] rw\n %v = atomic.add %c[0], 1 }", 4, "atomic updates of one cell");
  refuses("kernel @k items=(4,1,1) {\n param %c: u32[4] rw\n %v = atomic.add %c[0], 1; %w = load %c[0] }", 1, SNT_E_ARG,
          "reads what another item wrote");
}

static void test_control(void) {
  refuses("kernel @k {\n" TWO "loop %i = 0, 100000 { loop %j = 0, 100000 { prefetch %a[%j] bytes=64 } } }", 1, SNT_E_LIMIT, "step limit");
  refuses("kernel @k {\n scalar %x: u32 at=0\n" TWO "%n = sub %x, 3; loop %i = 0, %n trip>=1 { store %y[%i], 0 } }", 1, SNT_E_ARG,
          "promised a trip");
  refuses("kernel @k {\n scalar %x: u32 at=0\n" TWO "%n = sub %x, 3; loop %i = 0, 10, %n { store %y[%i], 0 } }", 1, SNT_E_ARG,
          "step is not positive");
  refuses(HEAD8 "%v = load %a[%l] uniform }", 1, SNT_E_ARG, "promised uniform");
  refuses("kernel @k {\n" TWO "%v = exp 0x1p+0:f32 dom=[-inf,0]; store %y[0], %v }", 1, SNT_E_ARG, "outside dom=");
  refuses("kernel @k {\n scalar %x: u32 at=0 min=4\n" TWO "store %y[0], 0 }", 1, SNT_E_ARG, "scalar x is 3, outside");
  refuses("kernel @k {\n scalar %z: u32 at=0 mul=4\n" TWO "store %y[0], 0 }", 1, SNT_E_ARG, "no multiple of 4");
  refuses("kernel @k items=(4,1,1) {\n" TWO "%l = local 0; %e: f32x4 = splat 0; %v = extract %e, %l; %m = ix %l + 1; %w = extract %e, %m }",
          1, SNT_E_ARG, "lane 4 of 4");
  refuses("kernel @k {\n param %a: f32[8] ro\n param %b: f32[8] ro\n param %c: f32[8] ro\n param %d: f32[8] ro\n param %e: f32[8] ro\n %v "
          "= load %e[0] }",
          1, SNT_E_ARG, "no buffer is bound");
}

/* A barrier under a condition that differs between items does not get to run. */
static void test_divergence(void) {
  kernel_dispatch d;
  ir_arena arena;
  kir_kernel k;
  ir_arena_init(&arena, NULL);
  const char *text = "kernel @k items=(4,1,1) {\n param %a: u32[4] ro\n local %t: f32[4]\n %l = local 0; %v = load %a[%l]; %c = eq %v, 0\n "
                     "if %c { store %t[%l], 0 }\n barrier local }";
  tap_ok(kernel_from_text(&k, &arena, text), "the kernel of the divergence test is valid");
  for (uint32_t i = 1; i < k.insts.count; i++)
    if (kir_at(&k, i)->op == KIR_store)
      kir_at(&k, i)->op = KIR_barrier, kir_at(&k, i)->arg_count = 0, kir_at(&k, i)->flags = KIR_SYNC_LOCAL;
  snt_diag diag = {0};
  tap_ok(kir_verify(&k, NULL, &diag) != SNT_OK && strstr(diag.text, "not every item"),
         "a barrier under an item's condition is refused before it runs");
  kernel_dispatch_init(&d, &k, 1);
  tap_ok(kernel_dispatch_run(&d) == SNT_E_ARG, "and the interpreter does not run such a kernel");
  ir_arena_free(&arena);
}

/* ---- counts ---- */
static void counts(const char *text, uint64_t transactions, uint64_t ideal, uint64_t conflicts, const char *what) {
  kernel_dispatch d;
  const snt_result result = run(text, 1, 0, &d);
  const bool right = d.stats.transactions == transactions && d.stats.ideal_transactions == ideal && d.stats.bank_conflicts == conflicts;
  if (!tap_ok(result == SNT_OK && right, "%s: %llu transactions, %llu at best, %llu conflicts", what, (unsigned long long)transactions,
              (unsigned long long)ideal, (unsigned long long)conflicts))
    tap_diag("%s; got %llu %llu %llu", d.diag.text, (unsigned long long)d.stats.transactions,
             (unsigned long long)d.stats.ideal_transactions, (unsigned long long)d.stats.bank_conflicts);
}
#define HEAD32 "kernel @k items=(32,1,1) {\n" TWO "local %t: f32[32,32]\n local %w: f32[32,33]\n %l = local 0\n"

static void test_counts(void) {
  counts(HEAD32 "%v = load %a[%l] }", 4, 4, 0, "adjacent lanes");
  counts(HEAD32 "%v = load %a[8*%l] }", 32, 4, 0, "lanes 32 bytes apart");
  counts(HEAD32 "%v = load %a[5] }", 1, 1, 0, "one address");
  counts(HEAD32 "%v: f32x4 = load %a[4*%l] }", 16, 16, 0, "vectors side by side");
  counts(HEAD32 "%v = load %a[%l + 1] }", 5, 4, 0, "adjacent lanes off by one");
  counts("kernel @k {\n" TWO "%v: f32x8 = load %a[0] lanes=100 }", 8, 1, 0, "one item's strided lanes");
  counts(HEAD32 "store %t[0,%l], 0 }", 0, 0, 0, "a row of local memory");
  counts(HEAD32 "store %t[%l,0], 0 }", 0, 0, 31, "a column of local memory");
  counts(HEAD32 "store %w[%l,0], 0 }", 0, 0, 0, "a column of padded rows");
  counts(HEAD32 "%q = udiv %l, 8; %m = umod %l, 8; %r = udiv %m, 2; %o = umod %l, 2; %z: f32x4 = splat 0; store %t[%r, 8*%q + 4*%o], %z }",
         0, 0, 12, "vectors of sixteen bytes, eight lanes at once");
  counts(HEAD32
         "%q = udiv %l, 16; %m = umod %l, 16; %r = udiv %m, 8; %o = umod %l, 8; %z: f32x2 = splat 0; store %t[%r, 16*%q + 2*%o], %z }",
         0, 0, 2, "vectors of eight bytes, sixteen lanes at once");
  kernel_dispatch d;
  run("kernel @k items=(4,1,1) {\n" TWO
      "%l = local 0; %c = lt %l, 2\n if %c { %v: f32x2 = load %a[2*%l]; %w = fma %v, %v, %v; store %y[2*%l], %w } }",
      1, 0, &d);
  tap_is_int(d.stats.loads, 2, "loads are counted by item, under the mask");
  tap_is_int(d.stats.flops, 8, "an fma of two lanes is four flops");
}

/* ---- one buffer bound twice races with itself ---- */
static void test_aliased_buffers(void) {
  kernel_dispatch d;
  ir_arena arena;
  kir_kernel k;
  ir_arena_init(&arena, NULL);
  if (tap_ok(kernel_from_text(
                 &k, &arena,
                 "kernel @k {\n param %a: f32[8] ro\n param %y: f32[8] wo\n %g = group 0; %v = load %a[%g + 1]; store %y[%g], %v }"),
             "valid")) {
    kernel_dispatch_init(&d, &k, 4);
    kernel_dispatch_buffer(&d, data[0] + 8, 32);
    kernel_dispatch_buffer(&d, data[0] + 8, 32);
    tap_ok(kernel_dispatch_run(&d) == SNT_E_ARG && strstr(d.diag.text, "another group"), "two views of one buffer: %s", d.diag.text);
    d.buffers[1].data = data[1];
    tap_ok(kernel_dispatch_run(&d) == SNT_OK, "apart they are fine");
  }
  ir_arena_free(&arena);
}

/* An allocator that fails at the n-th call. */
typedef struct failing {
  uint32_t left, live;
} failing;
static void *acquire(void *user, size_t size, size_t align, uint32_t scope) {
  failing *f = user;
  (void)scope;
  if (!f->left) return NULL;
  f->left--;
  f->live++;
  return aligned_alloc(align < 16 ? 16 : align, (size + 63) / 64 * 64);
}
static void release(void *user, void *ptr, size_t size, size_t align) {
  (void)size, (void)align;
  if (ptr) ((failing *)user)->live--;
  free(ptr);
}

static void test_out_of_memory(void) {
  ir_arena arena;
  kir_kernel k;
  ir_arena_init(&arena, NULL);
  if (tap_ok(kernel_from_golden(&k, &arena, "softmax_group"), "softmax_group is valid")) {
    bool fine = true;
    snt_result result = SNT_E_HOST_MEM;
    for (uint32_t n = 0; n < 1000 && result; n++) {
      failing f = {n, 0};
      const snt_host_alloc host = {&f, acquire, release};
      kernel_dispatch d;
      kernel_dispatch_init(&d, &k, 0); /* no group runs: preparing is what allocates */
      float *x = aligned_alloc(64, 4194304 * 4);
      for (uint32_t i = 0; i < 3; i++) kernel_dispatch_buffer(&d, x, 4194304 * 4);
      result = kir_interp_run(&d.info, &host, NULL, &d.diag);
      free(x);
      fine &= f.live == 0 && (result == SNT_OK || result == SNT_E_HOST_MEM);
    }
    tap_ok(fine && result == SNT_OK, "an allocation that fails is answered, and nothing leaks");
  }
  ir_arena_free(&arena);
}

int main(void) {
  for (uint32_t i = 0; i < 4; i++) kernel_numbers(data[i], 1024, i + 1);
  test_bounds();
  test_memory_state();
  test_copies();
  test_fragments();
  test_races();
  test_control();
  test_divergence();
  test_counts();
  test_aliased_buffers();
  test_out_of_memory();
  return tap_done();
}
