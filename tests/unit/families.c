/* The families of primitives that one kernel is not enough for: repeat, scans, gather and scatter, random numbers, states, sorting. Each case is run on
   every device found, for each of its sizes: fused, and fused and unfused under STRICT. All are compared with the reference, the STRICT ones bit by bit.
   Cases with states run three times, the state carried on. Arguments, in any order: a device selector, the beginning of a case's name. */
#include "ir/eval.h"
#include "tests/tap.h"
#include "tools/host/host.h"
#include <sinter/sinter.h>

enum { MAX_PORTS = 24, MAX_SYMBOLS = 4, MAX_SIZES = 5, RUNS = 3 };
typedef struct family_case {
  const char *name, *text;
  int64_t low, high; /* whole numbers among the inputs: low <= x < high */
  uint32_t size_count;
  int64_t sizes[MAX_SIZES][MAX_SYMBOLS];
} family_case;

#define SYMBOLS "symbols { n: min=0 max=100000 hint=64, m: min=1 max=100000 hint=64 }\n"
// clang-format off
static const family_case cases[] = {
    {"repeat rnn",
     "graph @g(%x: f32[7,3,5], %wx: f32[5,9], %wh: f32[9,9], %b: f32[9]) {\n %h0: f32[3,9] = const 0.0\n %i0: i64[] = const 0\n"
     " %ys0: f32[7,3,9] = const 0.0\n %ys: f32[7,3,9], %h: f32[3,9], _ = repeat trips=7 (%y: f32[7,3,9] = %ys0, %s: f32[3,9] = %h0, %i: i64[] = %i0) {\n"
     "  %xt = gather %x, %i, axis=0\n  %p = matmul %xt, %wx\n  %q = matmul %s, %wh\n  %pq = add %p, %q\n  %bb: f32[3,9] = broadcast %b\n"
     "  %z = add %pq, %bb\n  %t = tanh %z\n  %yn = scatter.set %y, %i, %t, axis=0\n  %in = add %i, 1\n  yield %yn, %t, %in\n }\n return ys=%ys, h=%h\n}\n", 0, 5, 0, {{0}}},
    {"repeat lstm backwards",
     SYMBOLS "graph @g(%x: f32[n,2,4], %w: f32[10,24], %h0: f32[2,6], %c0: f32[2,6]) {\n %l = dim shape=[n]\n %i0 = sub %l, 1\n"
     " %h: f32[2,6], %c: f32[2,6], %e: i64[] = repeat trips=n (%hp: f32[2,6] = %h0, %cp: f32[2,6] = %c0, %i: i64[] = %i0) {\n"
     "  %xt = gather %x, %i, axis=0\n  %xh = concat %xt, %hp, axis=1\n  %g = matmul %xh, %w\n  %a = slice %g, starts=[0,0], sizes=[2,6], steps=[1,1]\n"
     "  %f = slice %g, starts=[0,6], sizes=[2,6], steps=[1,1]\n  %o = slice %g, starts=[0,12], sizes=[2,6], steps=[1,1]\n"
     "  %u = slice %g, starts=[0,18], sizes=[2,6], steps=[1,1]\n  %sa = sigmoid %a\n  %sf = sigmoid %f\n  %so = sigmoid %o\n  %tu = tanh %u\n"
     "  %k1 = mul %sf, %cp\n  %k2 = mul %sa, %tu\n  %cn = add %k1, %k2\n  %tc = tanh %cn\n  %hn = mul %so, %tc\n  %j = sub %i, 1\n  yield %hn, %cn, %j\n }\n"
     " return h=%h, c=%c, e=%e\n}\n", 0, 5, 3, {{1, 1}, {2, 1}, {11, 1}}},
    {"repeat nested",
     SYMBOLS "graph @g(%x: f32[m], %q0: i32[n]) {\n %k: i32[] = const 3\n %r: f32[m], %c: i32[] = repeat trips=n (%a: f32[m] = %x, %e: i32[] = %k) {\n"
     "  %b: f32[m], %d: f32[m] = repeat trips=3 (%p: f32[m] = %a, %q: f32[m] = %x) {\n   %s = reduce.sum %p, axes=[0], keep\n   %sb: f32[m] = broadcast %s\n"
     "   %t = mul %sb, 0.01\n   %v = add %q, %t\n   yield %v, %p\n  }\n  %w = add %b, %d\n  %w2 = mul %w, 0.25\n  %e2 = mul %e, 2\n  yield %w2, %e2\n }\n"
     " %z = mul %r, %x\n return r=%r, z=%z, c=%c\n}\n", 0, 5, 4, {{0, 5}, {1, 1}, {2, 37}, {9, 70}}},
    {"repeat swaps and keeps",
     SYMBOLS "graph @g(%x: f32[m], %y: f32[m], %q0: i32[n]) {\n %a: f32[m], %b: f32[m], %c: f32[m], %d: f32[m] = repeat trips=n (%p: f32[m] = %x, %q: f32[m] = %y, "
     "%r: f32[m] = %x, %s: f32[m] = %y) {\n  %t = add %s, %r\n  yield %q, %p, %r, %t\n }\n return %a, %b, %c, %d\n}\n", 0, 5, 4, {{0, 3}, {1, 3}, {2, 9}, {5, 33}}},
    {"repeat pointwise",
     SYMBOLS "graph @g(%x: f32[m,3], %q0: i32[n]) {\n %a: f32[m,3], %i: i32[] = repeat trips=n (%p: f32[m,3] = %x, %i0: i32[] = 0:i32) {\n  %t = mul %p, %p\n"
     "  %f = cast %i0, dtype=f32\n  %g = mul %f, 0.01\n  %u = mul %t, 0.5\n  %v = add %u, %g\n  %w = sin %v\n  %j = add %i0, 2\n  yield %w, %j\n }\n return %a, %i\n}\n", 0, 5, 4,
     {{0, 3}, {1, 1}, {2, 40}, {13, 50}}},
    {"repeat mandelbrot",
     "symbols { n: min=0 max=1000 hint=20, m: min=1 max=100000 hint=64 }\ngraph @g(%x: f32[m,5], %y: f32[m,5], %q0: i32[n], %s: f32[5]) {\n %cx = mul %x, 1.5\n %o: f32[m,5] = const 0.0\n %k0: i32[m,5] = const 0\n"
     " %zx: f32[m,5], %zy: f32[m,5], %k: i32[m,5] = repeat trips=n (%a: f32[m,5] = %o, %b: f32[m,5] = %o, %k1: i32[m,5] = %k0) {\n  %aa = mul %a, %a\n  %bb = mul %b, %b\n  %ab = mul %a, %b\n  %r = add %aa, %bb\n"
     "  %in = lt %r, 4.0\n  %d = sub %aa, %bb\n  %an = add %d, %cx\n  %ab2 = mul %ab, 2.0\n  %bn = add %ab2, %y\n  %a2 = select %in, %an, %a\n  %b2 = select %in, %bn, %b\n  %one = cast %in, dtype=i32\n"
     "  %k2 = add %k1, %one\n  yield %a2, %b2, %k2\n }\n %sb: f32[m,5] = broadcast %s\n %f = cast %k, dtype=f32\n %g = mul %f, %sb\n %t = reduce.sum %g, axes=[1]\n return %k, %t\n}\n", 0, 5, 4, {{0, 3}, {1, 1}, {3, 40}, {5, 50}}},
    {"repeat that ends by its data",
     SYMBOLS "graph @g(%x: f32[m], %q0: i32[n]) {\n %t: bool[] = const true\n %o: i32[] = const 0\n"
     " %a: f32[m], %g: bool[], %k: i32[], %w: i32[], _ = repeat trips=n while=1 (%p: f32[m] = %x, %on: bool[] = %t, %c: i32[] = %o, %d: i32[] = %o, %e: i32[] = %o) {\n"
     "  %f = cast %e, dtype=f32\n  %s = mul %p, 0.5\n  %u = add %s, 0.25\n  %v = add %u, %f\n  %h = reduce.max %v, axes=[0]\n  %l = lt %h, 7.5\n  %j = add %c, 1\n"
     "  %i = add %e, 1\n  %z = mul %d, 3\n  %y = add %z, %e\n  yield %v, %l, %j, %y, %i\n }\n return %a, %g, %k, %w\n}\n", 0, 5, 4, {{0, 3}, {1, 1}, {5, 40}, {30, 50}}},
    {"repeat that may not begin, in another",
     "graph @g(%x: f32[6,5], %b: i32[4]) {\n %k0: i32[] = const 0\n %r: f32[6,5], _ = repeat trips=9 (%p: f32[6,5] = %x, %k: i32[] = %k0) {\n  %m = reduce.max %p, axes=[0,1]\n"
     "  %on = lt %m, 6.0\n  %v: f32[6,5], _ = repeat trips=12 while=1 (%q: f32[6,5] = %p, %g: bool[] = %on) {\n   %s = reduce.sum %q, axes=[1], keep\n   %sb: f32[6,5] = broadcast %s\n"
     "   %t = mul %sb, 0.125\n   %u = add %q, %t\n   %n = reduce.max %u, axes=[0,1]\n   %go = lt %n, 40.0\n   yield %u, %go\n  }\n  %w = mul %v, 0.5\n  %j = add %k, 1\n  yield %w, %j\n }\n"
     " return %r\n}\n", 0, 5, 0, {{0}}},
    {"repeat of few trips that ends",
     "graph @g(%x: f32[3]) {\n %y: bool[] = const true\n %a: f32[3], %g: bool[] = repeat trips=4 while=1 (%p: f32[3] = %x, %on: bool[] = %y) {\n  %t = add %p, 1.5\n  %e = slice %t, starts=[0], sizes=[1], steps=[1]\n"
     "  %f: f32[] = reshape %e\n  %l = lt %f, 4.0\n  yield %t, %l\n }\n return %a, %g\n}\n", 0, 5, 0, {{0}}},
    {"repeat few trips", "graph @g(%x: f32[9,3]) {\n %a: f32[9,3] = repeat trips=4 (%p: f32[9,3] = %x) {\n  %t = mul %p, %p\n  %u = add %t, 0.25\n  yield %u\n }\n return %a\n}\n", 0, 5, 0, {{0}}},
    {"repeat over a state", "graph @g(state %s: f32[5], %x: f32[5]) {\n %a: f32[5] = repeat trips=9 (%p: f32[5] = %s) {\n  %r = reduce.max %p, axes=[0], keep\n"
     "  %rb: f32[5] = broadcast %r\n  %t = mul %rb, 0.5\n  %u = add %t, %x\n  yield %u\n }\n update %s, %a\n %o = mul %a, 2.0\n return %o\n}\n", 0, 5, 0, {{0}}},
    {"scans of many lines",
     SYMBOLS "graph @g(%x: f32[m,n], %k: i32[n,m]) {\n %a = scan.sum %x, axis=1\n %b = scan.prod %x, axis=0, exclusive\n %c = scan.max %x, axis=1, reverse\n"
     " %d = scan.sum %k, axis=0, exclusive, reverse\n %e = scan.min %k, axis=1\n %f = mul %a, 2.0\n return %a, %b, %c, %d, %e, %f\n}\n", -9, 9, 4, {{0, 3}, {1, 1}, {33, 65}, {70, 200}}},
    {"scan of one long line",
     "symbols { n: min=0 max=1000000 hint=50000, m: min=1 max=100000 hint=1 }\n" "graph @g(%x: f32[n], %k: i32[n], %h: f16[n]) {\n %y = mul %x, %x\n %a = scan.sum %y, axis=0\n %b = scan.sum %k, axis=0, exclusive\n %c = scan.max %x, axis=0, reverse\n"
     " %d = scan.sum %h, axis=0, exclusive, reverse\n %e = add %a, 1.0\n return %a, %b, %c, %d, %e\n}\n", -9, 9, 5, {{1, 1}, {2, 1}, {1000, 1}, {4097, 1}, {70001, 1}}},
    {"scan.linear",
     "symbols { n: min=0 max=1000000 hint=50000, m: min=1 max=100000 hint=1 }\n" "graph @g(%x: f32[2,n], %y: f32[2,n], %z: f32[n,5]) {\n %a = scan.linear %x, %y, axis=1\n %b = scan.linear %y, %x, axis=1, reverse\n %c = scan.linear %z, %z, axis=0\n"
     " return %a, %b, %c\n}\n", 0, 5, 4, {{1, 1}, {2, 1}, {129, 1}, {9000, 1}}},
    {"gather",
     SYMBOLS "graph @g(%x: f32[m,12], %i: i32[n], %j: i32[2,n], %w: f16[4,m], %c: i64[n]) {\n %a = gather %x, %i, axis=0\n %b = gather %x, %j, axis=1, zero\n %d = gather %w, %j, axis=1\n"
     " %e = mul %a, 2.0\n %f = gather %x, %c, axis=0, zero\n return %b, %d, %e, %f\n}\n", -3, 14, 3, {{0, 4}, {5, 1}, {40, 9}}},
    {"scatter.set",
     SYMBOLS "graph @g(%x: f32[m,6], %i: i32[n], %u: f32[n,6], %b: u8[5,m,3], %v: u8[5,n,3], %y: f32[4,m], %j: i32[2,n], %w: f32[4,2,n]) {\n %a = scatter.set %x, %i, %u, axis=0\n"
     " %c = scatter.set %b, %i, %v, axis=1\n %d = scatter.set %y, %j, %w, axis=1\n return %a, %c, %d\n}\n", -2, 12, 4, {{0, 4}, {1, 1}, {40, 9}, {700, 20}}},
    {"scatter combined",
     SYMBOLS "graph @g(%x: f32[m,6], %i: i32[n], %u: f32[n,6], %h: f16[m,4], %v: f16[n,4], %k: i32[m], %l: i32[n], %y: f32[2,m], %w: f32[2,n]) {\n %a = scatter.add %x, %i, %u, axis=0\n"
     " %b = scatter.mul %x, %i, %u, axis=0\n %c = scatter.max %x, %i, %u, axis=0\n %d = scatter.add %h, %i, %v, axis=0\n %e = scatter.add %k, %i, %l, axis=0\n"
     " %f = scatter.min %k, %i, %l, axis=0\n %g = scatter.add %y, %i, %w, axis=1\n return %a, %b, %c, %d, %e, %f, %g\n}\n", -2, 12, 4, {{0, 4}, {1, 1}, {40, 9}, {700, 20}}},
    {"scatter few", "graph @g(%x: f32[9,6], %i: i32[3], %u: f32[3,6]) {\n %a = scatter.set %x, %i, %u, axis=0\n %b = scatter.add %x, %i, %u, axis=0\n return %a, %b\n}\n", -2, 12, 0, {{0}}},
    {"scatter into states",
     SYMBOLS "graph @g(state %s: f32[m,6], %i: i32[n], %u: f32[n,6], state %k: i32[m], %l: i32[n], state %y: f32[m,2], %w: f32[n,2]) {\n %a = scatter.set %s, %i, %u, axis=0\n"
     " %b = scatter.max %k, %i, %l, axis=0\n %c = scatter.add %y, %i, %w, axis=0\n update %s, %a\n update %k, %b\n update %y, %c\n %o = reduce.sum %a, axes=[1]\n return %o\n}\n",
     -2, 12, 4, {{0, 4}, {1, 1}, {40, 9}, {300, 20}}},
    {"cache append",
     "symbols { t: min=1 max=4 hint=1, p: min=0 max=60 hint=3 }\ngraph @g(state %k: f32[2,64,8], %x: f32[2,t,8], %q: i32[p]) {\n %i: i32[t] = iota\n %s: i32[] = dim shape=[p]\n"
     " %at = add %i, %s\n %n = scatter.set %k, %at, %x, axis=1\n update %k, %n\n %o = reduce.max %n, axes=[1]\n return %o\n}\n", 0, 5, 3, {{1, 0}, {3, 7}, {4, 60}}},
    {"dropout",
     SYMBOLS "graph @g(state %c: u32[], %x: f32[m,7]) {\n %i: u32[m,7] = iota axis=0\n %j: u32[m,7] = iota axis=1\n %i7 = mul %i, 7:u32\n %ij = add %i7, %j\n"
     " %r = random %c, %ij\n %t = shr %r, 8:u32\n %f = cast %t, dtype=f32\n %u = mul %f, 0x1p-24\n %k = lt %u, 0.75\n %y = mul %x, 0x1.555556p+0\n %z = select %k, %y, 0.0\n"
     " %n = add %c, 1:u32\n update %c, %n\n return %z\n}\n", 0, 5, 3, {{0, 1}, {0, 33}, {0, 500}}},
    {"adam",
     SYMBOLS "graph @g(state %w: f32[m,3], state %a: f32[m,3], state %v: f32[m,3], %g: f32[m,3]) {\n %a1 = mul %a, 0.9\n %g1 = mul %g, 0.1\n %an = add %a1, %g1\n %gg = mul %g, %g\n"
     " %v1 = mul %v, 0.99\n %g2 = mul %gg, 0.01\n %s = add %v1, %g2\n %vn = abs %s\n %r = sqrt %vn\n %re = add %r, 0.001\n %d = div %an, %re\n %l = mul %d, 0.01\n %wn = sub %w, %l\n"
     " update %w, %wn\n update %a, %an\n update %v, %vn\n %o = reduce.sum %wn, axes=[0,1]\n return %o\n}\n", 0, 5, 3, {{0, 1}, {0, 33}, {0, 300}}},
    {"argsort",
     SYMBOLS "graph @g(%x: f32[2,n], %k: i32[n,3], %h: f16[m,n]) {\n %a = argsort %x, axis=1\n %b = argsort %k, axis=0, descending\n %c = argsort %h, axis=-1\n %d = argsort %h, axis=0, descending\n"
     " return %a, %b, %c, %d\n}\n", -9, 9, 5, {{1, 1}, {33, 2}, {129, 5}, {1000, 3}, {4500, 2}}},
    {"top k",
     "graph @g(%x: f32[5,100]) {\n %o = argsort %x, axis=1, descending\n %i = slice %o, starts=[0,0], sizes=[5,7], steps=[1,1]\n %r: i64[5,7] = iota axis=0\n %r1 = mul %r, 100:i64\n"
     " %at = add %r1, %i\n %f: f32[500] = reshape %x\n %v = gather %f, %at, axis=0\n return v=%v, i=%i\n}\n", 0, 5, 0, {{0}}},
    {"wide integers",
     SYMBOLS "graph @g(%x: i64[m], %y: i64[m], %f: f32[m], %s: i32[m], %u: u64[m]) {\n %a = add %x, %y\n %b = sub %x, %y\n %c = mul %x, %y\n %d = min %x, %y\n %e = max %u, 77:u64\n"
     " %t = cast %s, dtype=i64\n %l = shl %x, %t\n %r = shr %y, %t\n %q = cast %t, dtype=u64\n %v = shr %u, %q\n %lt = lt %x, %y\n %ge = ge %u, %v\n %eq = eq %d, %x\n %n = neg %x\n %p = abs %y\n"
     " %xf = cast %x, dtype=f32\n %uf = cast %u, dtype=f32\n %g = mul %f, 0x1p+62\n %gi = cast %g, dtype=i64\n %gu = cast %f, dtype=u64\n %xi = cast %x, dtype=i32\n %w = xor %a, %b\n %z = select %lt, %w, %c\n"
     " %k = scan.sum %x, axis=0\n %o = reduce.max %x, axes=[0]\n %al = add %l, %r\n %bl = add %n, %p\n"
     " return %z, %d, %e, %al, %v, %ge, %eq, %bl, %xf, %uf, %gi\n}\n", INT64_MIN / 2, INT64_MAX / 2, 3, {{0, 1}, {0, 9}, {0, 2000}}},
};
// clang-format on

typedef struct port {
  snt_port info;
  uint64_t bytes;
  void *data;
} port;
typedef struct outcome {
  port ports[MAX_PORTS];
  uint32_t count, kernels;
  double ratio;
  snt_result result;
  snt_diag diag;
} outcome;
static snt_context *context;
static const struct {
  const char *name;
  uint32_t numerics, flags;
} variants[] = {
    {"fused", SNT_NUMERICS_DEFAULT, 0}, {"strict", SNT_NUMERICS_STRICT, 0}, {"strict unfused", SNT_NUMERICS_STRICT, SNT_COMPILE_UNFUSED}};

/* ---- data ---- */

static void put_element(const family_case *c, int32_t dtype, void *data, uint64_t i, uint64_t bits) {
  const int64_t whole = c->low + (int64_t)(bits % (uint64_t)(c->high - c->low));
  switch (dtype) {
  case SNT_F32: ((float *)data)[i] = (float)((double)(bits >> 11) * 0x1p-52 - 1.0); break;
  case SNT_F16: ((uint16_t *)data)[i] = (uint16_t)(((bits >> 16) & 0x8000) | (0x3000 + ((bits >> 40) & 0xBFF))); break;
  case SNT_U64:
  case SNT_I64: ((int64_t *)data)[i] = whole; break;
  case SNT_I32:
  case SNT_U32: ((int32_t *)data)[i] = (int32_t)whole; break;
  default: ((uint8_t *)data)[i] = (uint8_t)whole; break;
  }
}

static bool make_ports(const family_case *c, const snt_program *program, const int64_t *symbols, outcome *o) {
  o->count = snt_program_port_count(program);
  if (o->count > MAX_PORTS) return false;
  for (uint32_t i = 0; i < o->count; i++) {
    port *p = &o->ports[i];
    int64_t dims[SNT_MAX_RANK];
    uint64_t elements = 1, seed = 1 + i;
    *p = (port){.info = {.head = SNT_HEAD(port)}};
    if (snt_program_port(program, i, &p->info) != SNT_OK || snt_program_port_dims(program, i, symbols, dims) != SNT_OK) return false;
    for (uint32_t d = 0; d < p->info.tensor.rank; d++) elements *= (uint64_t)dims[d];
    p->bytes = elements * snt_dtype_size(p->info.tensor.dtype);
    p->data = calloc(1, p->bytes + 64);
    if (!p->data) return false;
    if (p->info.kind == SNT_PORT_OUTPUT) memset(p->data, 0xA5, p->bytes);
    for (uint64_t e = 0; p->info.kind != SNT_PORT_OUTPUT && e < elements; e++)
      put_element(c, p->info.tensor.dtype, p->data, e, host_random(&seed));
  }
  return true;
}

/* ---- running ---- */

static void compare_port(outcome *o, const port *p, const ir_eval_tensor *expected) {
  ir_eval_report report;
  ir_eval_compare(expected, p->info.tensor.dtype, p->data, &report);
  const double own = report.nan_mismatch ? INFINITY : report.max_ratio;
  if (own <= o->ratio) return;
  o->ratio = own;
  snprintf(o->diag.text, sizeof o->diag.text, "%s[%llu]: got %.9g, want %.9g, bound %.3g", p->info.name,
           (unsigned long long)report.worst_index, report.got, report.want, report.bound);
}

/* The reference of what the ports hold now: before the run that is checked. */
typedef struct expected {
  ir_arena arena;
  expr_pool pool;
  ir_graph graph;
  ir_eval_tensor out[MAX_PORTS];
} expected;

static snt_result expect(expected *e, const family_case *c, const int64_t *symbols, const outcome *o, snt_diag *diag) {
  const void *inputs[MAX_PORTS];
  ir_arena_init(&e->arena, NULL);
  expr_pool_init(&e->pool, &e->arena);
  ir_graph_init(&e->graph, &e->arena, &e->pool);
  for (uint32_t i = 0; i < o->count; i++) inputs[i] = o->ports[i].data;
  const ir_eval_info info = {.symbols = symbols, .inputs = inputs};
  const snt_result r = ir_graph_parse(&e->graph, c->text, strlen(c->text), diag);
  return r == SNT_OK ? ir_eval_reference(&e->graph, &info, &e->arena, e->out, diag) : r;
}

static void compare(outcome *o, const expected *e) {
  const ir_graph *g = &e->graph;
  for (uint32_t i = 0; i < g->outputs.count; i++) compare_port(o, &o->ports[o->count - g->outputs.count + i], &e->out[i]);
  for (uint32_t u = 0; u < g->updates.count; u++)
    for (uint32_t i = 0; i < g->inputs.count; i++)
      if (g->inputs.at[i].node == g->updates.at[u].state) compare_port(o, &o->ports[i], &e->out[g->outputs.count + u]);
}

static void run_once(snt_exec *exec, const family_case *c, const int64_t *symbols, uint32_t symbol_count, outcome *o) {
  snt_argument arguments[MAX_PORTS];
  expected *e = calloc(1, sizeof *e);
  for (uint32_t i = 0; i < o->count; i++) arguments[i] = (snt_argument){.port = i, .host = o->ports[i].data, .bytes = o->ports[i].bytes};
  const snt_run_info info = {
      .head = SNT_HEAD(run_info), .argument_count = o->count, .arguments = arguments, .symbols = symbols, .symbol_count = symbol_count};
  o->result = e ? expect(e, c, symbols, o, &o->diag) : SNT_E_HOST_MEM;
  if (o->result == SNT_OK) o->result = snt_run(exec, &info, &o->diag);
  if (o->result == SNT_OK) compare(o, e);
  if (e) ir_arena_free(&e->arena);
  free(e);
}

/* One way to compile a case, and what it gave for each size. */
typedef struct built {
  snt_program *program;
  snt_exec *exec;
  snt_result result;
  snt_diag diag;
} built;

static void build(snt_device *d, const snt_profile *profile, snt_graph *graph, uint32_t v, built *b) {
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .numerics = variants[v].numerics, .flags = variants[v].flags};
  *b = (built){.diag = {.head = SNT_HEAD(diag)}};
  b->result = snt_compile(graph, profile, &info, &b->program, &b->diag);
  if (b->result == SNT_OK) b->result = snt_exec_create(d, b->program, NULL, &b->exec, &b->diag);
}

static void run_size(const built *b, const family_case *c, uint32_t size, outcome *o) {
  const bool states = strstr(c->text, "state %") != NULL;
  *o = (outcome){.result = b->result, .diag = b->diag};
  if (o->result == SNT_OK && !make_ports(c, b->program, c->sizes[size], o)) o->result = SNT_E_HOST_MEM;
  o->kernels = snt_exec_step_count(b->exec);
  for (int run = 0; o->result == SNT_OK && run < (states ? RUNS : 1); run++)
    run_once(b->exec, c, c->sizes[size], snt_program_symbol_count(b->program), o);
}

static const char *different_port(const outcome *a, const outcome *b) {
  for (uint32_t i = 0; i < a->count; i++)
    if (a->ports[i].info.kind != SNT_PORT_INPUT && memcmp(a->ports[i].data, b->ports[i].data, a->ports[i].bytes) != 0)
      return a->ports[i].info.name;
  return NULL;
}

static void check_size(const char *selector, const built *ways, const family_case *c, uint32_t size, uint32_t wanted) {
  static outcome out[3];
  const int64_t *n = c->sizes[size];
  for (uint32_t v = 0; v < wanted; v++) {
    outcome *o = &out[v];
    run_size(&ways[v], c, size, o);
    if (!tap_ok(o->result == SNT_OK && o->ratio <= 1, "%s, sizes %lld %lld, on %s, %s: %u kernels, max(error / bound) %.3g", c->name,
                (long long)n[0], (long long)n[1], selector, variants[v].name, o->kernels, o->ratio))
      tap_diag("  %s: %s", snt_result_text(o->result), o->diag.text);
  }
  if (wanted == 3 && out[1].result == SNT_OK && out[2].result == SNT_OK) {
    const char *where = different_port(&out[1], &out[2]);
    tap_ok(!where, "%s, sizes %lld %lld, on %s: strict, fused and unfused have the same bits %s", c->name, (long long)n[0], (long long)n[1],
           selector, where ? where : "");
  }
  for (uint32_t v = 0; v < wanted; v++)
    for (uint32_t i = 0; i < out[v].count; i++) free(out[v].ports[i].data);
}

static void check_case(snt_device *d, const char *selector, const snt_profile *profile, const family_case *c) {
  snt_graph *graph = NULL;
  snt_diag diag = {.head = SNT_HEAD(diag)};
  snt_result r = snt_graph_create(context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, c->text, strlen(c->text), NULL, &diag);
  if (!tap_ok(r == SNT_OK, "%s is read %s", c->name, diag.text)) return;
  const bool full = getenv("SNT_TEST_FULL") || !strcmp(selector, "interp") || !strcmp(selector, "opencl:pocl") ||
                    !strcmp(selector, "vulkan:llvmpipe");
  const bool slow = strstr(selector, "rusticl") || strstr(selector, "swiftshader") || !strcmp(selector, "cuda-text");
  const uint32_t count = c->size_count ? c->size_count : 1, wanted = full ? 3 : 1;
  built ways[3];
  for (uint32_t v = 0; v < wanted; v++) build(d, profile, graph, v, &ways[v]);
  for (uint32_t s = 0; s < count; s++)
    if (!slow || getenv("SNT_TEST_FULL") || s + 1 == count) check_size(selector, ways, c, s, wanted);
  for (uint32_t v = 0; v < wanted; v++) snt_exec_destroy(ways[v].exec), snt_program_destroy(ways[v].program);
  snt_graph_destroy(graph);
}

static const struct {
  const char *selector, *mask;
} targets[] = {{"host", NULL},        {"interp", NULL},         {"interp", "int64=0"},     {"interp", "bindings=4,push=128"},
               {"opencl:pocl", NULL}, {"opencl:rusticl", NULL}, {"vulkan:llvmpipe", NULL}, {"vulkan:swiftshader", NULL},
               {"cuda-text", NULL}};

static void check_device(uint32_t target, const char *only_case) {
  snt_device *device = NULL;
  snt_profile *profile = NULL;
  snt_diag diag = {.head = SNT_HEAD(diag)};
  const char *selector = targets[target].selector;
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = selector, .mask = targets[target].mask};
  if (snt_device_open(context, &open, &device, &diag) != SNT_OK) {
    tap_skip("%s is not here: %s", selector, diag.text);
    return;
  }
  if (tap_ok(snt_device_profile(device, &profile) == SNT_OK, "%s has a profile", selector))
    for (uint32_t i = 0; i < IR_COUNT(cases); i++)
      if (!only_case || !strncmp(cases[i].name, only_case, strlen(only_case))) check_case(device, selector, profile, &cases[i]);
  snt_profile_destroy(profile);
  snt_device_destroy(device);
}

int main(int argc, char **argv) {
  const char *only_device = NULL, *only_case = NULL;
  host_env env;
  host_cache *cache = NULL;
  snt_diag wrong = {.head = SNT_HEAD(diag)};
  if (host_read_env(&env, &wrong) != SNT_OK) tap_bail_out(wrong.text);
  host_prepare_drivers(NULL);
  for (int i = 1; i < argc; i++) {
    bool device = false;
    for (uint32_t s = 0; s < IR_COUNT(targets); s++) device |= !strcmp(argv[i], targets[s].selector);
    if (device) only_device = argv[i];
    else only_case = argv[i];
  }
  snt_context_info info = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION};
  if (env.cache_dir && host_cache_open(env.cache_dir, env.cache_bytes, &cache, NULL) == SNT_OK)
    info.cache = (snt_cache_io){cache, host_cache_get, host_cache_set};
  if (snt_context_create(&info, &context) != SNT_OK || snt_context_add_backend(context, host_cuda_text()) != SNT_OK)
    tap_bail_out("no context");
  for (uint32_t s = 0; s < IR_COUNT(targets); s++)
    if (!only_device || !strcmp(only_device, targets[s].selector)) check_device(s, only_case);
  snt_context_destroy(context);
  host_cache_close(cache);
  return tap_done();
}
